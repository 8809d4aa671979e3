"""Write the page on two uses of synthetic rows from its results."""

from pathlib import Path

import numpy as np
from scipy.stats import t as student
from settings import ADAPTATION, AUGMENTATION, SIZES

from reticent.run import write_text

LEVEL = 0.95
MEASURES = {"auc": "area under the curve", "log loss": "log loss", "membership": "membership by the loss"}  # fmt: skip


def write_page(results: dict, page: Path) -> None:
    """Write the page."""
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    values = {
        "minutes": f"{sum(r['seconds'] for r in results.values()) / 60:.0f}",
        "sizes": _sizes(_trials(results, "sizes")),
        "sizes_trials": str(SIZES["trials"]),
        "sizes_test": f"{SIZES['test']:,}",
        "adaptation": _table(_trials(results, "adaptation"), "supervised"),
        "gained": _difference(_trials(results, "adaptation"), "adapted", "source"),
    }
    for number, share in enumerate(AUGMENTATION["flipped"]):
        trials = _trials(results, f"augmentation {share:g}")
        values[f"augmentation_{number}"] = _table(trials, "records")
        values[f"softened_{number}"] = _difference(trials, "both, soft labels", "records, soft labels")  # fmt: skip
        values[f"flipped_{number}"] = f"{100 * share:.0f} %"
    for part, settings in (("first", AUGMENTATION), ("second", ADAPTATION)):
        for name in ("trials", "records", "rows", "test"):
            values[f"{part}_{name}"] = f"{settings.get(name, 0):,}"
        values[f"{part}_epsilon"] = f"{settings['epsilon']:g}"
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    write_text(page, text)


def _trials(results: dict, name: str) -> list[dict]:
    return [
        result["arms"]
        for key, result in results.items()
        if key.rsplit(" ", 1)[0] == name
    ]


def _table(trials: list[dict], base: str) -> str:
    """Return means over trials, and differences from one arm, trial by trial."""
    heads = [words for name in MEASURES.values() for words in (name, "less " + base)]
    lines = [f"| learned from | {' | '.join(heads)} |", f"|---|{'---|' * len(heads)}"]
    for arm in trials[0]:
        cells = []
        for measure in MEASURES:
            own = np.array([trial[arm][measure] for trial in trials])
            gain = own - [trial[base][measure] for trial in trials]
            cells += [_interval(own), "" if arm == base else _interval(gain, "+")]
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _sizes(trials: list[dict]) -> str:
    """Return areas under the curve by number of records and epsilon, with the smallest and the largest of the trials."""
    heads = " | ".join(f"epsilon {epsilon:g}" for epsilon in SIZES["epsilons"])
    lines = [f"| records | learned from them | {heads} |", f"|---:|{'---|' * (1 + len(SIZES['epsilons']))}"]  # fmt: skip
    for count in SIZES["records"]:
        cells = []
        for name in ("records", *(f"{epsilon:g}" for epsilon in SIZES["epsilons"])):
            own = [trial[f"{count} {name}"]["auc"] for trial in trials]
            cells.append(f"**{np.mean(own):.3f}** ({min(own):.3f} to {max(own):.3f})")
        lines.append(f"| {count:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _difference(trials: list[dict], arm: str, base: str) -> str:
    gains = [trial[arm]["auc"] - trial[base]["auc"] for trial in trials]
    return _interval(np.array(gains), "+")


def _interval(values: np.ndarray, sign: str = "") -> str:
    """Return a mean and its interval by Student's t over trials, which share nobody."""
    half = student.ppf((1 + LEVEL) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))  # fmt: skip
    mean = values.mean()
    return f"**{mean:{sign}.3f}** [{mean - half:{sign}.3f}, {mean + half:{sign}.3f}]"
