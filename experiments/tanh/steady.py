"""The part of the page on steadiness: a table, and the curves over the epochs."""

import json

import numpy as np
from scipy.stats import t as student
from stability import (
    EPOCHS,
    RESULTS,
    SEEDS,
    SETTLED,
    TESTED,
    VARIANTS,
    Variant,
    unsteadiness,
)

__all__ = ["drawn_curves", "steady_table", "steady_words"]

NAMES = {"cifar10": "CIFAR-10", "mnist": "MNIST"}
PANEL, TALL, GAP, LEFT, TOP = 170, 130, 20, 66, 64


def _found() -> dict[str, dict[str, np.ndarray]]:
    """Return accuracies, (seeds, epochs), by data set and variant; complete ones only."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    made: dict[str, dict[str, np.ndarray]] = {}
    for data in NAMES:
        for variant in VARIANTS:
            correct = kept.get(f"{data}/{variant.name}", {}).get("correct", {})
            if len(correct) == SEEDS:
                hits = np.array([correct[str(seed)] for seed in range(SEEDS)])
                made.setdefault(data, {})[variant.name] = hits / TESTED
    return made


def steady_table() -> str:
    """Return one row per variant: accuracy at the end, changes from epoch to epoch, and by how much they are fewer than at k = c = 1."""
    found = _found()
    lines = [
        "| data | k | c | rate | slope c/k | accuracy, mean of the last 5 epochs | mean change per epoch, points | against k = c = 1, same seeds | largest fall, points |",
        "|---" * 9 + "|",
    ]
    for data, words in NAMES.items():
        base = found.get(data, {}).get(VARIANTS[0].name)
        for variant in VARIANTS:
            head = f"| {words} | {variant.k:g} | {variant.c:g} | {variant.rate:g} | {variant.c / variant.k:.2g} |"
            own = found.get(data, {}).get(variant.name)
            if own is None:
                lines.append(f"{head} not run | | | |")
                continue
            changes, falls = _changes(own)
            against = ""
            if base is not None and variant != VARIANTS[0]:
                against = _interval(changes - _changes(base)[0], "+.2f")
            lines.append(
                f"{head} {_interval(100 * own[:, -5:].mean(axis=1), '.1f')} | {_interval(changes, '.2f')} | {against} | {falls.max():.1f} |"
            )
    return "\n".join(lines)


def steady_words() -> dict[str, str]:
    """Return what sentences quote."""
    done = sum(len(own) for own in _found().values())
    planned = len(NAMES) * len(VARIANTS)
    missing = f"{planned - done} of {planned} settings are not finished; the command goes on with them. "
    return {
        "steady_missing": missing if done < planned else "",
        "steady_seeds": str(SEEDS),
        "steady_epochs": str(EPOCHS),
        "steady_settled": str(SETTLED),
    }


def drawn_curves() -> str:
    """Return the curves of every seed, a panel per variant and a row per data set, as a picture that stands alone."""
    found = _found()
    width = LEFT + 5 * (PANEL + GAP)
    rows = [(data, some) for data in NAMES for some in (VARIANTS[:5], VARIANTS[5:])]
    height = TOP + len(rows) * (TALL + 44)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">Test accuracy over {EPOCHS} epochs, one line per seed</text>',
    ]
    for row, (data, some) in enumerate(rows):
        y0 = TOP + row * (TALL + 44)
        high = 1.0 if data == "mnist" else 0.5
        parts += [
            f'<text x="{LEFT - 6}" y="{y0 + 8}" text-anchor="end" fill="#555">{high:.0%}</text>',
            f'<text x="{LEFT - 6}" y="{y0 + TALL}" text-anchor="end" fill="#555">0 %</text>',
            f'<text transform="translate(18 {y0 + TALL / 2}) rotate(-90)" text-anchor="middle">{NAMES[data]}</text>',
        ]
        for column, variant in enumerate(some):
            x0 = LEFT + column * (PANEL + GAP)
            own = found.get(data, {}).get(variant.name)
            parts.append(_panel(x0, y0, variant, own, high))
    return "".join(parts) + "</svg>\n"


def _panel(
    x0: float, y0: float, variant: Variant, own: np.ndarray | None, high: float
) -> str:
    parts = [
        f'<rect x="{x0}" y="{y0}" width="{PANEL}" height="{TALL}" fill="none" stroke="#bbb"/>',
        f'<text x="{x0 + PANEL / 2}" y="{y0 - 6}" text-anchor="middle">{variant.name}</text>',
    ]
    if own is None:
        parts.append(
            f'<text x="{x0 + PANEL / 2}" y="{y0 + TALL / 2}" text-anchor="middle" fill="#888">not run</text>'
        )
        return "".join(parts)
    for line in own:
        points = " ".join(
            f"{x0 + k / (EPOCHS - 1) * PANEL:.1f},{y0 + TALL * (1 - min(value / high, 1)):.1f}"
            for k, value in enumerate(line)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="#1b5e8c" stroke-opacity="0.6" stroke-width="1.2"/>'
        )
    return "".join(parts)


def _changes(own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array([unsteadiness(line) for line in own])
    return 100 * pairs[:, 0], 100 * pairs[:, 1]


def _interval(values: np.ndarray, form: str) -> str:
    """Return a mean with its 95 % interval by Student's t over seeds."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1)
    half /= np.sqrt(len(values))
    mean = values.mean()
    return f"{mean:{form}} [{mean - half:{form}}, {mean + half:{form}}]"
