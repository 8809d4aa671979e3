"""Write docs/experiments/soft_labels.md from the finished splits, or from their summaries if the splits are elsewhere.

python experiments/soft_labels/page.py --data ../shared/data --out build/soft_labels
"""

import argparse
import json
from pathlib import Path

import numpy as np
from figures import boxes, calibration, curves, frontier
from settings import (
    EPOCHS,
    FEWER,
    HALVINGS,
    MAIN,
    MORE_TREATMENTS_UNTIL,
    SERIES,
    SERIES_BY_NAME,
    TEACHER_EPOCHS,
    network,
)
from summary import summarise
from tables import cells, path_of

from data import read
from reticent.account import (
    Composition,
    Mechanism,
    PrivateTraining,
    Relation,
    trade_off,
)
from reticent.run import write_text

GRID = 1e-3  # of the privacy loss: fine enough for epsilons of 20 and 300
HERE = Path(__file__).parent
PAGE = Path("docs/experiments/soft_labels.md")
THESIS_AUC = {
    "hard": 0.62,
    "alpha 1": 0.61,
    "alpha 0.5": 0.60,
    "alpha 0.25": 0.59,
    "alpha 0": 0.58,
}
THESIS_MOOD = {
    "alpha 1": "0.36",
    "alpha 0.5": "0.22",
    "alpha 0.25": "1e-6",
    "alpha 0": "9e-13",
}
THESIS_MEDIAN = {"hard": "52.3", "alpha 1": "52.0"}
THESIS_ERROR = {"hard": "27.8", "alpha 1": "23.4"}


def main() -> None:
    """Summarise what is finished, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/soft_labels"))
    arguments = parser.parse_args()
    for series in SERIES:
        folder = arguments.out / series.name
        if not any(folder.glob("*.npz")):
            continue
        records = read(series, arguments.data, arguments.out)
        found = summarise(series, records.labels, records.truth, folder)
        if found is not None:
            (HERE / "results").mkdir(exist_ok=True)
            kept = HERE / "results" / f"{series.name}.json"
            write_text(kept, json.dumps(found) + "\n")
    write_page()


def write_page() -> None:
    """Write the page and its pictures from the summaries."""
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((HERE / "results").glob("*.json"))
    }
    findings = HERE / "findings.md"
    text = (HERE / "page.md").read_text(encoding="utf-8")
    parts = {
        "state": _state(results),
        "findings": findings.read_text(encoding="utf-8").strip()
        if findings.exists()
        else "Nothing is claimed before the series are finished.",
        "series": "\n\n".join(
            _series(name, results[name]) for name in SERIES_BY_NAME if name in results
        ),
        "epsilon": _epsilon(),
        "tables": _tables(),
        "cost": _cost(results),
    }
    for name, words in parts.items():
        text = text.replace("{" + name + "}", words)
    write_text(PAGE, text)
    print(f"wrote {PAGE}")


def _state(results: dict) -> str:
    lines = []
    for series in SERIES:
        found = results.get(series.name)
        done = 0 if found is None else found["splits"]
        if done < series.splits:
            lines.append(f"{series.title}: {done} of {series.splits} splits")
    if not lines:
        return "All series are finished, with the numbers of splits that were fixed before the first model was trained."
    return (
        "The numbers of splits were fixed before the first model was trained. **Not all are finished:** "
        + "; ".join(lines)
        + ". Splits count in their fixed order up to the first that is missing, so that which ones are finished says nothing about the results. "
        "The same command goes on."
    )


def _series(name: str, found: dict) -> str:
    series = SERIES_BY_NAME[name]
    main = found["main"]["treatments"]
    parts = [
        f"## {series.title[0].upper()}{series.title[1:]}",
        f"{found['splits']} splits, {2 * found['splits']} models per treatment.",
        _table(main, thesis=name == "adapted_dp"),
        _explained(),
        _figures(name, series.title, found),
    ]
    if "more" in found:
        more = found["more"]
        parts += [
            f"Other treatments of the labels, and what needs no teachers, on the first {more['splits']} splits (all lines anew on these):",
            _table(more["treatments"], thesis=False),
        ]
    if found.get("recursion"):
        parts.append(_recursion(found["recursion"]))
    return "\n\n".join(parts)


def _explained() -> str:
    return (
        'Intervals hold jointly over the lines at 95 % and cover splits and records (pigeonhole bootstrap). "p" are those of "as private as hard" and "as accurate on the records outside as hard", '
        "two-way clustered and adjusted by Holm's method over all lines; Mood's median test pools records and models that depend on each other, so its p-value is shown under its name only because the "
        "thesis uses it. The test error is the median over models; its difference to hard labels is a mean over splits with one standard error."
    )


def _table(treatments: dict, *, thesis: bool) -> str:
    head = "| labels | AUC | AUC, thesis's statistic | TPR at 1 % / 0.1 % | advantage, worst 5 % | p, privacy | median P(member) of members, % | Mood's p | test error, % | difference, points | p, accuracy |"
    lines = [head, "|" + "---|" * 11]
    for title, each in treatments.items():
        auc = _interval(each["auc"])
        median, mood = f"{100 * each['posterior']['median']:.1f}", "-"
        if each["posterior"]["mood"] is not None:
            mood = _p(each["posterior"]["mood"])
        error = f"{100 * float(np.median(each['test'])):.1f}"
        if thesis:
            auc += f" (thesis {THESIS_AUC[title]:.2f})"
            median += (
                f" (thesis {THESIS_MEDIAN[title]})" if title in THESIS_MEDIAN else ""
            )
            mood += f" (thesis {THESIS_MOOD[title]})" if title in THESIS_MOOD else ""
            error += f" (thesis {THESIS_ERROR[title]})" if title in THESIS_ERROR else ""
        mean, deviation = each["test_difference"]
        change = (
            "-" if title == "hard" else f"{100 * mean:+.1f} ± {100 * deviation:.1f}"
        )
        exposed = "-" if each["exposed"] is None else f"{each['exposed'][0]:.2f}"
        lines.append(
            f"| {title} | {auc} | {each['auc_raw']:.3f} | {100 * each['tpr'][0][0]:.1f} / {100 * each['tpr'][1][0]:.1f} % | {exposed} | "
            f"{_p(each['privacy_p'])} | {median} | {mood} | {error} | {change} | {_p(each['gain_p'])} |"
        )
    return "\n".join(lines)


def _figures(name: str, title: str, found: dict) -> str:
    """Return Figures 5.2 to 5.12 of a series: pictures, or sentences with the numbers."""
    main, targets = found["main"]["treatments"], found["targets"]
    pictures = {
        "calibration": calibration(
            main, f"{title}: is the probability of membership right?"
        ),
        "validation": boxes(main, "validation", f"{title}: validation error"),
        "test": boxes(main, "test", f"{title}: test error"),
        "argmax": curves(
            targets,
            ["is given", "is true"],
            f"{title}: the target's largest class",
            "share of records",
        ),
        "entropy": curves(
            targets,
            ["entropy given", "entropy true"],
            f"{title}: cross-entropy of the targets",
            "nats",
        ),
        "frontier": frontier(main, f"{title}: privacy and error"),
    }
    for kind, picture in pictures.items():
        write_text(PAGE.parent / f"soft_labels_{name}_{kind}.svg", picture)
    largest = {title: max(each["posterior"]["actual"]) for title, each in main.items()}
    chosen = min(main, key=lambda t: float(np.median(main[t]["validation"])))
    best_true = targets["grid"][int(np.argmax(targets["is true"]))]
    least = targets["grid"][int(np.argmin(targets["entropy true"]))]
    zero, one = targets["medians"]["alpha 0"], targets["medians"]["alpha 1"]
    se = 3 * 0.5 / np.sqrt(main["hard"]["posterior"]["group"])
    lines = [
        "- Figure 5.2, probabilities of membership: the column of medians above.",
        f"- Figure 5.3, calibration in 100 groups: [picture](soft_labels_{name}_calibration.svg). Three standard errors of a group are at most {se:.3f}. The largest share of members in any group is "
        + ", ".join(
            f"{100 * value:.0f} % ({title})" for title, value in largest.items()
        )
        + ". Thesis: 6.3 points lower at alpha 0 than for hard labels.",
        "- Figure 5.4, ROC at low false-positive rates: the columns of TPR above.",
        f"- Figures 5.5 and 5.6, validation and test errors: [validation](soft_labels_{name}_validation.svg), [test](soft_labels_{name}_test.svg). The lowest median validation error has {chosen} (thesis: alpha 1).",
        f"- Figure 5.7 (alpha 0): median target of the labelled class {_two(zero['label'])} (thesis .46)"
        + (
            f", of swapped records {_two(zero['label of swapped'])} (.026), of their true class {_two(zero['truth of swapped'])} (about .54)."
            if SERIES_BY_NAME[name].swapped
            else "; no record is swapped."
        ),
        f"- Figure 5.8 (alpha 1): median target of the labelled class {_two(one['label'])} (.90)"
        + (
            f", of the true class of swapped records {_two(one['truth of swapped'])} (.508)."
            if SERIES_BY_NAME[name].swapped
            else "."
        ),
        f"- Figures 5.10 and 5.11: [largest class](soft_labels_{name}_argmax.svg), [cross-entropy](soft_labels_{name}_entropy.svg). The largest class of the target is the given label for {100 * targets['is given'][0]:.0f} % at alpha 0 (thesis 70 %) and the true one for "
        f"{100 * targets['is true'][0]:.0f} % (90 %), most at alpha {best_true:g} with {100 * max(targets['is true']):.0f} % (0.7, 96 %). The cross-entropy to the true labels is least at alpha {least:g} (1.2).",
        f"- Figure 5.12, privacy and utility: [picture](soft_labels_{name}_frontier.svg).",
    ]
    if "more" in found:
        smoothed = {
            title: each
            for title, each in found["more"]["treatments"].items()
            if title.startswith(("hard", "smoothed")) and "," not in title
        }
        lines.insert(
            6,
            "- Figure 5.9, ordinary label smoothing, whose range the thesis states ambiguously: "
            + "; ".join(
                f"{title}: error {100 * float(np.median(each['test'])):.1f} %, AUC {each['auc'][0]:.3f}"
                for title, each in smoothed.items()
            )
            + '. "By" is the share that is spread over all classes, "to" the target of the labelled class.',
        )
    return "\n".join(lines)


def _recursion(found: dict) -> str:
    rows = [
        f"Targets computed again from teachers that learned the targets before (alpha 1), on {found['splits']} splits:",
        "",
        "| round | test error, % | median target of the label | mean entropy of the targets, nats |",
        "|---|---|---|---|",
    ]
    for number, each in found["rounds"].items():
        spread = "" if each["error"] is None else f" ± {100 * each['error']:.1f}"
        rows.append(
            f"| {number} | {100 * each['test']:.1f}{spread} | {each['target of the label']:.2f} | {each['entropy']:.2f} |"
        )
    return "\n".join(rows)


def _epsilon() -> str:
    """Return what the private procedure guarantees, if its noise were secret, and what its student alone would."""
    series = SERIES_BY_NAME["adapted_dp"]
    student, teacher = (
        network(series, epochs=epochs) for epochs in (EPOCHS, TEACHER_EPOCHS)
    )
    # A teacher is trained on half of the 400 records.
    of_student, of_teacher = (
        PrivateTraining(
            noise_multiplier=recipe.noise_multiplier,
            sampling_rate=recipe.course(rows).sampling_rate,
            steps=recipe.course(rows).steps,
            relation=Relation.ADD_REMOVE,
        )
        for recipe, rows in ((student, 400), (teacher, 200))
    )

    def epsilon(*parts: tuple[Mechanism, int]) -> float:
        return trade_off(Composition(parts=parts), grid=GRID).epsilon(1e-5)

    procedures = {
        repeats: epsilon((of_teacher, repeats), (of_student, 1))
        for repeats in (HALVINGS, FEWER)
    }
    alone, one = epsilon((of_student, 1)), epsilon((of_teacher, 1))
    return (
        f"At delta 1e-5, when neighbouring tables differ by one record more or less: the student alone has epsilon {alone:.1f}, one teacher {one:.1f}. "
        f"What is released is the student, but it has learned from teachers that saw the record: the procedure with {HALVINGS} halvings has epsilon **{procedures[HALVINGS]:.0f}**, with {FEWER} halvings {procedures[FEWER]:.0f}. "
        "The student's epsilon must never be stated for the procedure. The models of this experiment have seeded noise and guarantee nothing; choosing alpha by looking at these results would be part of a procedure too."
    )


def _tables() -> str:
    found = [
        json.loads(path_of(*cell).read_text(encoding="utf-8"))
        for cell in cells()
        if path_of(*cell).exists()
    ]
    missing = len(cells()) - len(found)
    head = (
        "`python experiments/soft_labels/tables.py`: 1,500 rows of each table, labels flipped independently of each other, twelve models per defence on six splits, five folds four times as teachers. "
        "The error is against the labels as given, so that a fifth of flipped labels costs every model about a fifth. Sizes and recipes were fixed beforehand."
    )
    if not found:
        return head + " **Not run yet.**"
    lines = [
        head
        + (
            f" {missing} of {len(cells())} comparisons are not run yet."
            if missing
            else ""
        )
    ]
    for each in found:
        lines += [
            "",
            f"**{each['table'].replace('_', ' ').title()}, {100 * each['flipped']:.0f} % flipped, {each['kind']}** ({each['seconds']:.0f} s of CPU)",
            "",
            "| defence | AUC | TPR at 1 % | advantage, worst 5 % | errors of a constant answer saved | difference | p, privacy | p, gain | dominated |",
            "|" + "---|" * 9,
        ]
        for row in each["defences"]:
            change = row["gain_difference"]
            exposed = "-" if row["exposed"] is None else f"{row['exposed'][0]:.2f}"
            lines.append(
                f"| {row['defence']} | {_interval(row['auc'])} | {100 * row['tpr'][0]:.1f} % | {exposed} | {100 * row['gain'][0]:.0f} % | "
                f"{'-' if change is None else f'{100 * change[0]:+.0f} points'} | {_p(row['privacy_p'])} | {_p(row['gain_p'])} | {'yes' if row['dominated'] else ''} |"
            )
    return "\n".join(lines)


def _cost(results: dict) -> str:
    lines = [
        f"{SERIES_BY_NAME[name].title}: {found['seconds'] / 60:.0f} minutes of CPU for {found['splits']} splits"
        for name, found in results.items()
        if name in SERIES_BY_NAME
    ]
    if not lines:
        return (
            "Nothing has been run yet. The thesis: two days on two GPUs for one alpha."
        )
    return (
        "; ".join(lines)
        + f". Measured on one thread of a machine with two cores that other work shared. The first {MORE_TREATMENTS_UNTIL} splits of a series have up to 19 students per training set, the others the thesis's five. "
        "A training set of 50 teachers and five students took 18 s with DP-SGD and adapted features and 9 s with SGD (medians over the splits with five students), so that 50 splits of all five treatments take 15 and 7 minutes on two cores. "
        "The thesis: two days on two GPUs for one alpha."
    )


def _interval(numbers: list[float]) -> str:
    value, low, high = numbers
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    # Smaller ones are 0 in double precision.
    return f"{value:.2g}" if value > 0 else "< 1e-300"


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    assert MAIN[0] == "hard"
    main()
