"""Write the page that sets our figures beside those of the thesis."""

from pathlib import Path

import numpy as np
from scipy.stats import pearsonr, ttest_rel

from reticent.evidence import (
    Correction,
    Crossed,
    adjust,
    anova,
    crossed,
    subgroup_aware,
    worst_case_density,
    worst_case_discrete,
)
from reticent.pool import logit_of_probability
from reticent.run import stream, write_text

# Chapter 7 of the thesis: correlation, F, and t of each pair (Tables 7.3 to 7.6).
THESIS = {
    "law_school": {
        "title": "Law School",
        "correlation": 0.66,
        "f": 9.185,
        "t": {
            ("asian", "black"): (-2.1616, 0.0318, 0.0455),
            ("asian", "hisp"): (-0.3078, 0.7586, 0.7586),
            ("asian", "other"): (-3.0455, 0.0026, 0.0053),
            ("asian", "white"): (5.7856, 0.0000, 0.0000),
            ("black", "hisp"): (1.9998, 0.0469, 0.0586),
            ("black", "other"): (-1.4794, 0.1406, 0.1562),
            ("black", "white"): (10.4066, 0.0000, 0.0000),
            ("hisp", "other"): (-2.855, 0.0048, 0.0079),
            ("hisp", "white"): (6.6791, 0.0000, 0.0000),
            ("other", "white"): (8.158, 0.0000, 0.0000),
        },
    },
    "adult": {
        "title": "Adult",
        "correlation": 0.998,
        "f": 234.554,
        "t": {
            ("Amer-Indian-Eskimo", "Asian-Pac-Islander"): (-18.4981, 0.0, 0.0),
            ("Amer-Indian-Eskimo", "Black"): (3.4963, 0.0006, 0.0006),
            ("Amer-Indian-Eskimo", "Other"): (-3.352, 0.001, 0.001),
            ("Amer-Indian-Eskimo", "White"): (6.148, 0.0, 0.0),
            ("Asian-Pac-Islander", "Black"): (40.6659, 0.0, 0.0),
            ("Asian-Pac-Islander", "Other"): (13.5096, 0.0, 0.0),
            ("Asian-Pac-Islander", "White"): (51.7445, 0.0, 0.0),
            ("Black", "Other"): (-7.5032, 0.0, 0.0),
            ("Black", "White"): (8.1134, 0.0, 0.0),
            ("Other", "White"): (10.2026, 0.0, 0.0),
        },
    },
}
ATTACKS = (
    "five shadows, 0-1 loss (as the thesis)",
    "five shadows, 0-1 loss and group",
    "five shadows, whole answer",
    "likelihood ratio, the targets as each other's shadows",
)
OVERLAP = 0.8  # of the records judged in one repeat, those judged in another


def write_page(out: Path, page: Path) -> None:
    """Read the results of both tables; write the page and its pictures."""
    page.parent.mkdir(parents=True, exist_ok=True)
    parts, runs = [], []
    for name, thesis in THESIS.items():
        result = dict(np.load(out / name / "result.npz"))
        section, run = _section(name, thesis, result, page.parent)
        parts.append(section)
        runs.append(run)
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    text = text.replace("{tables}", "\n\n".join(parts)).replace(
        "{runs}", "\n".join(runs)
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, text)


def _section(name: str, thesis: dict, z: dict, folder: Path) -> tuple[str, str]:
    masks, judged, groups, labels = (
        z[key] for key in ("masks", "judged", "groups", "labels")
    )
    outside = judged & ~masks
    wrong = (z["answers"] > 0.5) != labels
    error_in, error_out = _rates(wrong, masks), _rates(wrong, outside)
    decisions = [*np.moveaxis(z["called"], 1, 0), z["lira"]]
    tests = [
        crossed(called, masks, groups, judged=judged, level=0.95)
        for called in decisions
    ]
    values = [_rates(called, masks) - _rates(called, outside) for called in decisions]
    worst = np.abs(error_in - error_out)
    write_text(folder / f"disparity_{name}.svg", _picture(tests[3], thesis["title"]))
    lines = [
        f"### {thesis['title']}",
        "",
        f"Error on training records {error_in.mean():.4f}, on test records {error_out.mean():.4f}, mean over {len(masks)} repeats. "
        + _worst_case(z, wrong, outside),
        "",
        *_correlations(thesis, worst, error_out - error_in, values, tests[0], z, wrong),
        "",
        "Vulnerability by group, mean over repeats, with an interval that covers records and trainings, jointly over the groups:",
        "",
        *_groups(tests, values),
        "",
        f"![Vulnerability by group over the repeats](disparity_{name}.svg)",
        "",
        *_anovas(thesis, tests),
        "",
        f"Pairs, attack as in the thesis ({ATTACKS[0]}), and by the stronger attack in the last two columns:",
        "",
        *_pairs(thesis, tests[0], tests[3]),
    ]
    run = (
        f"| {thesis['title']} | {len(masks)} targets and {5 * len(masks)} shadow models | "
        f"{float(z['minutes'][0]):.1f} minutes |"
    )
    return "\n".join(lines), run


def _rates(hits: np.ndarray, side: np.ndarray) -> np.ndarray:
    return (hits & side).sum(axis=1) / side.sum(axis=1)


def _worst_case(z: dict, wrong: np.ndarray, outside: np.ndarray) -> str:
    """Describe V* of the 0-1 loss and of the loss for the first 20 repeats."""
    found = {"0-1 loss": [], "loss": [], "loss and group": []}
    phi = logit_of_probability(
        np.where(z["labels"] == 1, z["answers"], 1 - z["answers"]).astype(float)
    )
    plug = []
    for k in range(min(20, len(wrong))):
        inside, out = z["masks"][k], outside[k]
        rng = stream(0, f"disparity/worst/{k}")
        first = worst_case_discrete(
            wrong[k][inside], wrong[k][out], feature="0-1 loss", level=0.95, rng=rng
        )
        second = worst_case_density(
            phi[k][inside], phi[k][out], feature="loss", level=0.95, rng=rng
        )
        each = [
            (
                float((z["groups"] == g).mean()),
                worst_case_density(
                    phi[k][inside & (z["groups"] == g)],
                    phi[k][out & (z["groups"] == g)],
                    feature="loss",
                    level=0.95,
                    rng=rng,
                ).estimate,
            )
            for g in np.unique(z["groups"])
        ]
        found["0-1 loss"].append(first.estimate.value)
        found["loss"].append(second.estimate.value)
        found["loss and group"].append(subgroup_aware(each, level=0.95).value)
        plug.append((first.plug_in, second.plug_in))
    raw = np.mean(plug, axis=0)
    return (
        f"Worst case V*, mean over {len(plug)} repeats, bias taken away (plug-in in brackets): 0-1 loss {np.mean(found['0-1 loss']):.4f} ({raw[0]:.4f}), "
        f"loss {np.mean(found['loss']):.4f} ({raw[1]:.4f}), loss and group {np.mean(found['loss and group']):.4f}."
    )


def _correlations(
    thesis: dict,
    worst: np.ndarray,
    signed: np.ndarray,
    values: list,
    test: Crossed,
    z: dict,
    wrong: np.ndarray,
) -> list[str]:
    by_group = []
    for name in test.names:
        its = z["groups"] == name
        by_group.append(
            np.abs(
                _rates(wrong[:, its], z["masks"][:, its])
                - _rates(wrong[:, its], (z["judged"] & ~z["masks"])[:, its])
            )
        )
    spread = np.array(by_group).T.ravel()
    rows = [
        (
            "over repeats, gap of errors in absolute value, as the thesis",
            worst,
            values[0],
        ),
        ("over repeats, gap of errors with its sign", signed, values[0]),
        (
            "over repeats and groups, absolute value",
            spread,
            np.array(test.by_model).ravel(),
        ),
    ]
    lines = [
        f"| correlation of worst case and shadow estimate | thesis: {thesis['correlation']} | 95 % interval |",
        "|---|---|---|",
    ]
    for words, a, b in rows:
        r = pearsonr(a, b)
        low, high = r.confidence_interval(0.95)
        lines.append(f"| {words} | {r.statistic:.3f} | [{low:.2f}, {high:.2f}] |")
    return lines


def _groups(tests: list[Crossed], values: list) -> list[str]:
    lines = [
        "| attack | all | " + " | ".join(tests[0].names) + " |",
        "|---|---|" + "---|" * len(tests[0].names),
    ]
    for words, test, each in zip(ATTACKS, tests, values, strict=True):
        cells = [
            f"{e.value:+.4f} [{e.low:+.4f}, {e.high:+.4f}]" for e in test.vulnerability
        ]
        lines.append(f"| {words} | {each.mean():+.4f} | " + " | ".join(cells) + " |")
    return lines


def _anovas(thesis: dict, tests: list[Crossed]) -> list[str]:
    lines = [
        f"| test that no group differs | thesis: F {thesis['f']} | plain F over repeats | its p | p, Nadeau-Bengio, overlap {OVERLAP} | p, crossed (valid) |",
        "|---|---|---|---|---|---|",
    ]
    for words, test in zip(ATTACKS, tests, strict=True):
        plain = anova(test.by_model, overlap=0.0)
        wide = anova(test.by_model, overlap=OVERLAP)
        lines.append(
            f"| {words} | | {plain.f:.2f} (epsilon {plain.epsilon:.2f}) | {plain.p_value:.2g} | {wide.p_value:.2g} | {test.p_value:.2g} |"
        )
    return lines


def _pairs(thesis: dict, test: Crossed, strong: Crossed) -> list[str]:
    by_model = np.array(test.by_model)
    place = {name: k for k, name in enumerate(test.names)}
    plain = [
        ttest_rel(by_model[:, place[a]], by_model[:, place[b]]) for a, b in thesis["t"]
    ]
    p = [float(t.pvalue) for t in plain]
    holm, hochberg = (
        adjust(p, c) for c in (Correction.HOLM, Correction.BENJAMINI_HOCHBERG)
    )
    valid = {(x.first, x.second): x for x in test.pairs}
    stronger = {(x.first, x.second): x for x in strong.pairs}
    lines = [
        "| pair | thesis: t | thesis: p, called Bonferroni | ours: t over repeats | Benjamini-Hochberg | Holm | valid test, Holm | difference, likelihood ratio | valid test, Holm |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for k, (pair, (t, _, corrected)) in enumerate(thesis["t"].items()):
        one, two = valid[pair], stronger[pair]
        lines.append(
            f"| {pair[0]} - {pair[1]} | {t:.2f} | {corrected:.4f} | {float(plain[k].statistic):.2f} | {hochberg[k]:.4f} | {holm[k]:.4f} | "
            f"{one.adjusted:.4f} | {two.difference.value:+.4f} | {two.adjusted:.4f} |"
        )
    return lines


def _picture(test: Crossed, title: str) -> str:
    """Return box plots of the repeats, one a group, as a picture that stands alone."""
    values = np.array(test.by_model)
    low, high = np.quantile(values, [0.0, 1.0])
    left, right, top, step = 170, 640, 34, 44
    height = top + step * len(test.names) + 44

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right + 30} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{right + 30}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="20" font-weight="bold">{title}: vulnerability over {len(values)} repeats (likelihood ratio)</text>',
    ]
    for tick in np.linspace(low, high, 5):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top}" y2="{height - 34}" stroke="#ddd"/>'
            f'<text x="{x(tick):.1f}" y="{height - 16}" text-anchor="middle" fill="#555">{tick:.2f}</text>'
        )
    parts.append(
        f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{height - 34}" stroke="#888" stroke-dasharray="4 3"/>'
    )
    for k, name in enumerate(test.names):
        y = top + step * k + step / 2
        q = np.quantile(values[:, k], [0.025, 0.25, 0.5, 0.75, 0.975])
        parts.append(
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{name}</text>'
            f'<line x1="{x(q[0]):.1f}" x2="{x(q[4]):.1f}" y1="{y}" y2="{y}" stroke="#1b5e8c"/>'
            f'<rect x="{x(q[1]):.1f}" y="{y - 11}" width="{x(q[3]) - x(q[1]):.1f}" height="22" fill="#cfe3f1" stroke="#1b5e8c"/>'
            f'<line x1="{x(q[2]):.1f}" x2="{x(q[2]):.1f}" y1="{y - 11}" y2="{y + 11}" stroke="#1b5e8c" stroke-width="2.5"/>'
        )
    return "".join(parts) + "</svg>\n"
