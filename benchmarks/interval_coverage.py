"""Measure how often each end of the LTU accuracy's interval misses the truth, over sizes, accuracies and forms of scores."""

import argparse
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import rankdata

from reticent.evidence import PairWins, clopper_pearson, ltu_accuracy

SIZES = (10, 30, 100, 600)
AREAS = (0.5, 0.7, 0.9, 0.98)
FORMS = ("normal", "exponential", "few values")
LEVEL = 0.95
Array = NDArray[np.float64]


def draw(
    form: str, area: float, shape: tuple[int, int], rng: np.random.Generator, *, inside: bool
) -> Array:  # fmt: skip
    """Draw scores, one row per audit, with a given area under the ROC curve."""
    if form == "normal":
        return rng.normal(np.sqrt(2) * ndtri(area) if inside else 0.0, 1, shape)
    if form == "exponential":
        return rng.exponential(area / (1 - area) if inside else 1.0, shape)
    # A share of the members stands above all; the others, and the non-members, have four values.
    values = rng.integers(4, size=shape).astype(float)
    leaks = rng.random(shape) < (2 * area - 1 if inside else 0.0)
    return np.where(leaks, 4.0, values)


def old_interval(wins: PairWins) -> tuple[float, float]:
    """Return DeLong's interval on the logit scale, with normal quantiles."""
    a, m, n = wins.accuracy, len(wins.members), len(wins.nonmembers)
    variance = wins.members.var(ddof=1) / m + wins.nonmembers.var(ddof=1) / n
    if not 0 < a < 1 or variance == 0:
        exact = clopper_pearson(a * min(m, n), min(m, n), level=LEVEL)
        return exact.low, exact.high
    half = -ndtri((1 - LEVEL) / 2) * np.sqrt(variance) / (a * (1 - a))
    return float(expit(logit(a) - half)), float(expit(logit(a) + half))


def new_interval(wins: PairWins) -> tuple[float, float]:
    """Return the interval that audits show."""
    estimate = ltu_accuracy(wins, level=LEVEL)
    return estimate.low, estimate.high


def misses(form: str, area: float, m: int, n: int, audits: int) -> Array:
    """Return the shares of audits in which the low and the high end miss: of the old interval, then of the new."""
    rng = np.random.default_rng([FORMS.index(form), int(1000 * area), m, n])
    d = draw(form, area, (audits, m), rng, inside=True)
    r = draw(form, area, (audits, n), rng, inside=False)
    ranks = rankdata(np.concatenate([d, r], axis=1), axis=1)
    inside = (ranks[:, :m] - rankdata(d, axis=1)) / n
    outside = 1 - (ranks[:, m:] - rankdata(r, axis=1)) / m
    found = np.zeros(4)
    for pair in zip(inside, outside, strict=True):
        wins = PairWins(members=pair[0], nonmembers=pair[1])
        ends = [*old_interval(wins), *new_interval(wins)]
        # Ends are compared up to rounding.
        found += [ends[0] > area + 1e-9, ends[1] < area - 1e-9, ends[2] > area + 1e-9, ends[3] < area - 1e-9]  # fmt: skip
    return found / audits


def run(audits: int) -> list[str]:
    """Return the lines of a table: the worst over all pairs of sizes."""
    lines = [
        "| scores | accuracy | logit scale: low end | high end | audits: low end | high end |",
        "|---|---|---|---|---|---|",
    ]
    for form, area in product(FORMS, AREAS):
        cells = [misses(form, area, m, n, audits) for m, n in product(SIZES, SIZES)]
        worst = " | ".join(f"{100 * share:.1f} %" for share in np.max(cells, axis=0))
        lines.append(f"| {form} | {area} | {worst} |")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2500)
    print("\n".join(run(parser.parse_args().audits)))
