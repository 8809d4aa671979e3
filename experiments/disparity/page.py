"""Write the page that sets the grid beside the figures of the thesis."""

import json
import math
from pathlib import Path

import figures
import numpy as np
from scipy.stats import pearsonr, ttest_rel
from settings import BATCHES, CELLS, CODINGS, REPEATS, STUDIES

from reticent.evidence import Correction, adjust, anova
from reticent.run import write_text

__all__ = ["write_page"]

ATTACKS = ("five shadows, 0-1 loss (the thesis's)", "likelihood ratio")
ALPHA = 0.05  # of a family of ten pairs, after Holm

# Chapter 7 of the thesis: correlation, F, and t of each pair (Tables 7.3 to 7.6), White against the others.
# Table 7.3 prints F = 9.185; its p-value, 4.440025e-15 at (4, 796) degrees of freedom, belongs to 19.185.
THESIS = {
    "law_school": {"correlation": 0.66, "f": 19.185, "white": "white"},
    "adult": {"correlation": 0.998, "f": 234.554, "white": "White"},
}

ADULT = ("Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White")


def write_page(folder: Path, page: Path) -> None:
    """Read the finished cells; write the page and its pictures."""
    found = {
        cell.name: json.loads(path.read_text(encoding="utf-8"))
        for cell in CELLS
        if (path := folder / f"{cell.name}.json").exists()
    }
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    page.parent.mkdir(parents=True, exist_ok=True)
    for study in STUDIES:
        drawn = figures.scatter(_grid(found, study), STUDIES[study].title)
        write_text(page.parent / f"disparity_{study}.svg", drawn)
        for name, table in (
            ("grid", _overview),
            ("groups", _groups),
            ("pairs", _pairs),
        ):
            text = text.replace(f"{{{name} {study}}}", table(found, study))
    for name, value in {
        "state": _state(found),
        "minutes": f"{sum(one['minutes'] for one in found.values()):.0f}",
        "xgboost": _xgboost(found),
        "compiled": _compiled(found),
        "repeats": str(REPEATS),
        "findings": (Path(__file__).parent / "findings.md")
        .read_text(encoding="utf-8")
        .strip(),
    }.items():
        text = text.replace("{" + name + "}", value)
    write_text(page, text)


def _grid(found: dict, study: str) -> list[tuple[str, int, dict | None]]:
    """Return coding, batch and result of each cell of a table; None if it is not finished."""
    return [
        (coding, batch, found.get(f"{study}-{batch}-{coding}"))
        for coding in CODINGS
        for batch in BATCHES
    ]


def _state(found: dict) -> str:
    missing = [cell.name for cell in CELLS if cell.name not in found]
    if not missing:
        return f"All {len(CELLS)} cells are finished."
    return (
        f"{len(found)} of {len(CELLS)} cells are finished. Not run yet: {', '.join(missing)}. The command goes on with them; "
        "nothing is shown of a cell before all its repeats are there."
    )


def _xgboost(found: dict) -> str:
    asked = sum(one["xgboost"]["asked"] for one in found.values())
    different = sum(one["xgboost"]["different"] for one in found.values())
    return f"{different} of {asked}"


def _compiled(found: dict) -> str:
    """Return which cells the compiled loop trained, and how far it is from the library's engine."""
    checked = [one["engine"] for one in found.values() if "engine" in one]
    if not checked:
        return "All networks are trained by the package's own engine."
    different, nudged, decisions = (
        sum(one[key] for one in checked) for key in ("different", "nudged", "decisions")
    )
    apart = max(
        abs(a - b)
        for one in checked
        for a, b in zip(one["errors"], one["compiled"], strict=True)
    )
    return (
        f"Networks of {len(checked)} cells of Adult are trained by a compiled loop that leaves out the zeros of one-hot records (`compiled.py`), those of the other cells by the package's engine. "
        "Both take the same initial weights and batches. "
        f"The first {checked[0]['networks']} networks of each of these cells were trained by both: {different:,} of {decisions:,} decisions differ, and no network's error by more than {apart:.4f}. "
        f"That is what rounding does in so many steps: if the loop starts with weights that are larger by 1 part in 8 million, {nudged:,} of its own decisions differ."
    )


def _overview(found: dict, study: str) -> str:
    thesis = THESIS[study]
    lines = [
        "| coding | batch | error in, out | worst case, plug-in | of which chance alone | shadow estimate | "
        f"correlation with the worst case (thesis: {thesis['correlation']}) | with the gap's sign | F (thesis: {thesis['f']}) | p, crossed (valid) | "
        "likelihood ratio | its F | its p, crossed |",
        "|---" * 13 + "|",
    ]
    for coding, batch, one in _grid(found, study):
        if one is None:
            lines.append(_missing(coding, batch, 10))
            continue
        inside, outside = np.array(one["error_in"]), np.array(one["error_out"])
        shadow, ratio = (np.array(a["vulnerability"]) for a in one["attacks"])
        gap = outside - inside
        first, second = one["attacks"]
        cells = [
            coding,
            str(batch),
            f"{inside.mean():.4f}, {outside.mean():.4f}",
            f"{np.abs(gap).mean():.4f}",
            f"{_chance(one):.4f}",
            f"{shadow.mean():+.4f}",
            _correlation(np.abs(gap), shadow),
            _correlation(gap, shadow),
            _f(first),
            f"{first['p']:.2g}",
            f"{ratio.mean():+.4f}",
            _f(second),
            f"{second['p']:.2g}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _missing(coding: str, batch: int, empty: int) -> str:
    """Return the row of a cell that is not finished."""
    return f"| {coding} | {batch} | not run |" + " |" * empty


def _chance(one: dict) -> float:
    """Return the mean absolute gap of errors on two samples of this size that do not differ."""
    records = 0.4 * sum(one["groups"].values())
    error = (np.mean(one["error_in"]) + np.mean(one["error_out"])) / 2
    deviation = math.sqrt(2 * error * (1 - error) / records)
    return math.sqrt(2 / math.pi) * deviation


def _correlation(a: np.ndarray, b: np.ndarray) -> str:
    r = pearsonr(a, b)
    low, high = r.confidence_interval(0.95)
    return f"{r.statistic:.2f} [{low:.2f}, {high:.2f}]"


def _f(attack: dict) -> str:
    return f"{anova(attack['by_group'], overlap=0.0).f:.1f}"


def _groups(found: dict, study: str) -> str:
    names = next(
        (list(one["groups"]) for _, _, one in _grid(found, study) if one), list(ADULT)
    )
    lines = [
        "| coding | batch | attack | " + " | ".join(names) + " | least vulnerable |",
        "|---" * (len(names) + 4) + "|",
    ]
    for coding, batch, one in _grid(found, study):
        for words, attack in zip(ATTACKS, one["attacks"] if one else (), strict=False):
            values = [e[0] for e in attack["intervals"]]
            cells = [
                f"{v:+.4f} [{lo:+.4f}, {hi:+.4f}]" for v, lo, hi in attack["intervals"]
            ]
            least = names[int(np.argmin(values))]
            lines.append(
                f"| {coding} | {batch} | {words} | "
                + " | ".join(cells)
                + f" | {least} |"
            )
    return "\n".join(lines)


def _pairs(found: dict, study: str) -> str:
    """Return how many of the ten pairs each test calls different, and which by the valid one."""
    lines = [
        "| coding | batch | t-tests over repeats, Benjamini-Hochberg at 0.01 (the thesis's) | valid test, Holm at 0.05 | which | likelihood ratio, valid test, Holm at 0.05 | which |",
        "|---" * 7 + "|",
    ]
    every: list[list[set]] = [[], []]
    for coding, batch, one in _grid(found, study):
        if one is None:
            lines.append(_missing(coding, batch, 4))
            continue
        cells = [coding, str(batch), str(_plain(one))]
        for k, attack in enumerate(one["attacks"]):
            its = _different(attack)
            every[k].append(its)
            cells += [str(len(its)), "; ".join(sorted(its)) or "none"]
        lines.append("| " + " | ".join(cells) + " |")
    if every[0]:
        always = [set.intersection(*each) for each in every]
        words = [", ".join(sorted(each)) or "none" for each in always]
        lines += [
            "",
            f"In {'the finished cell' if len(every[0]) == 1 else f'every one of the {len(every[0])} finished cells'}: {words[0]} (the thesis's attack); {words[1]} (likelihood ratio).",
        ]
    return "\n".join(lines)


def _plain(one: dict) -> int:
    names, values = list(one["groups"]), np.array(one["attacks"][0]["by_group"])
    p = [
        float(ttest_rel(values[:, i], values[:, j]).pvalue)
        for i in range(len(names))
        for j in range(i)
    ]
    return sum(q < 0.01 for q in adjust(p, Correction.BENJAMINI_HOCHBERG))


def _different(attack: dict) -> set:
    made = set()
    for pair in attack["pairs"]:
        if pair["holm"] < ALPHA:
            names = [pair["first"], pair["second"]]
            if pair["difference"][0] < 0:
                names.reverse()
            made.add(f"{names[0]} above {names[1]}")
    return made


if __name__ == "__main__":
    write_page(Path(__file__).parent / "results", Path("docs/experiments/disparity.md"))
