"""Write the page that sets our figures beside those of Table 2 of the LTU paper."""

from pathlib import Path

import numpy as np
from scipy.stats import t as student
from settings import PART, PRODUCTS, SHARE, SOURCE, TRIALS

from reticent.evidence import Estimate, privacy_from_accuracy, utility
from reticent.run import write_text

LEVEL = 0.95
ASKED = "adapted, asked with flipped labels"
ROWS = {
    "supervised": "supervised, {epochs} epochs",
    "adapted": "domain adaptation (DSAN)",
    "stopped": "supervised, stopped after {epochs} epochs",
    "source": "synthetic digits alone",
    "flipped": "supervised, flipped labels, {epochs} epochs",
    ASKED: "domain adaptation, attacked with flipped labels",
}
# Utility and privacy in the paper: Table 2, and the sanity check of its discussion (an accuracy of 78 %).
PAPER = {
    "supervised": ("1.00 ± 0.00", "0.97 ± 0.03"),
    "adapted": ("0.99 ± 0.00", "0.94 ± 0.03"),
    "flipped": ("0.76", "0.55"),
}
ATTACKS = ("gradient", "loss", "gradient_unlabelled", "learned")


def write_page(results: dict, page: Path) -> None:
    """Write the page."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    cells = list(results.values())
    seconds = sum(c["cpu_seconds"] for c in cells)
    for name, value in {
        "beside": "\n".join(_beside(results, row) for row in ROWS),
        "attacks": "\n".join(_attacks(results, row) for row in ROWS),
        "differences": "\n".join(
            _difference(results, row) for row in ("supervised", "stopped", "source")
        ),
        "trials": "\n".join(
            _trial(results, trial, direction)
            for trial in range(TRIALS)
            for direction in (0, 1)
        ),
        "count": str(TRIALS),
        "part": f"{PART:,}",
        "source": f"{SOURCE:,}",
        "share": f"{100 * SHARE:.0f} %",
        "writers": str(max(max(c["writers"]) for c in cells)),
        "models": str(len(cells)),
        "minutes": f"{seconds / 60:.0f}",
        "training": f"{sum(c['training_seconds'] for c in cells) / 60:.0f}",
    }.items():
        text = text.replace("{" + name + "}", value)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_text(page, text)


def over_trials(values: np.ndarray) -> Estimate:
    """Return the mean of independent trials and its interval by Student's t."""
    half = student.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1)
    half /= np.sqrt(len(values))
    mean = float(values.mean())
    return Estimate(
        value=mean,
        low=mean - half,
        high=mean + half,
        level=LEVEL,
        method=f"Student's t over {len(values)} trials",
        covers="trainer",
    )


def _cells(results: dict, row: str) -> list[list[dict]]:
    """Return the cells of a row, both directions of each trial."""
    name = "adapted" if row == ASKED else row
    return [
        [results[f"{name}-{trial}-{direction}"] for direction in (0, 1)]
        for trial in range(TRIALS)
    ]


def accuracies(
    results: dict, row: str, attack: str, unit: str = "digits"
) -> np.ndarray:
    """Return an attack's accuracy over pairs in each trial, the mean of both directions.

    Writers of one part may be easier than those of the other, whoever the product was trained on. In one direction that
    looks like membership, in the other like its opposite; in the mean it cancels.
    """
    key = "attacks_flipped" if row == ASKED else "attacks"
    return np.array(
        [
            np.mean([cell[key][attack][unit][0] for cell in trial])
            for trial in _cells(results, row)
        ]
    )


def utilities(results: dict, row: str, side: int = 1) -> np.ndarray:
    """Return the utility in each trial, on reserved (1) or on the defender's (0) digits."""
    return np.array(
        [
            np.mean(
                [
                    utility(c["correct"][side], c["records"], classes=10, level=LEVEL).value
                    for c in trial
                ]
            )
            for trial in _cells(results, row)
        ]
    )  # fmt: skip


def _title(row: str) -> str:
    epochs = PRODUCTS["adapted" if row == ASKED else row].epochs
    return ROWS[row].format(epochs=epochs)


def _private(results: dict, row: str, attack: str, unit: str = "digits") -> Estimate:
    return privacy_from_accuracy(over_trials(accuracies(results, row, attack, unit)))


def _beside(results: dict, row: str) -> str:
    useful, private = PAPER.get(row, ("", ""))
    cells = [
        _title(row),
        useful,
        _shown(over_trials(utilities(results, row))),
        _shown(over_trials(utilities(results, row, side=0)), bold=False),
        private,
        _shown(_private(results, row, "gradient")),
    ]
    return f"| {' | '.join(cells)} |"


def _attacks(results: dict, row: str) -> str:
    found = [_private(results, row, attack) for attack in ATTACKS]
    found.append(_private(results, row, "gradient", "writers"))
    found.append(_private(results, row, "learned", "writers"))
    cells = [_title(row), *(_shown(e, bold=False) for e in found)]
    return f"| {' | '.join(cells)} |"


def _difference(results: dict, row: str) -> str:
    """Return what adaptation gains on another product, trial by trial."""
    useful = utilities(results, "adapted") - utilities(results, row)
    cells = [_title(row), _shown(over_trials(useful), signed=True, digits=3)]
    for attack in ("gradient", "learned"):
        less = accuracies(results, row, attack) - accuracies(results, "adapted", attack)
        cells.append(_shown(over_trials(2 * less), signed=True, digits=3))
    return f"| {' | '.join(cells)} |"


def _trial(results: dict, trial: int, direction: int) -> str:
    cells = [f"{trial + 1}, {'ab'[direction]}"]
    for row in ("supervised", "adapted", "stopped", "source", "flipped"):
        cell = results[f"{row}-{trial}-{direction}"]
        value, low, high = cell["attacks"]["gradient"]["digits"]
        accuracy = Estimate(
            value=value, low=low, high=high, level=LEVEL, method="DeLong"
        )
        cells.append(_shown(privacy_from_accuracy(accuracy), bold=False))
    return f"| {' | '.join(cells)} |"


def _shown(
    e: Estimate, *, bold: bool = True, signed: bool = False, digits: int = 2
) -> str:
    sign = "+" if signed else ""
    value, low, high = (f"{v:{sign}.{digits}f}" for v in (e.value, e.low, e.high))
    return f"{'**' if bold else ''}{value}{'**' if bold else ''} [{low}, {high}]"
