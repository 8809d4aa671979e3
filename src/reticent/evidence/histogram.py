"""Histograms of people, in which bins with few people are not shown."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.evidence.ltu import individual_privacy, pair_wins

__all__ = [
    "Histogram",
    "belief_histogram",
    "individual_histogram",
    "posterior_histogram",
    "score_histogram",
]

SMALLEST_BIN = 5  # fewer people could be recognised, so such bins are shown as 0
# Standard deviations below which all scores count as one: edges have six decimals, and scores that are equal may differ in their last bits.
NARROW = 1e-3


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Shares of members and of non-members in each bin; a bin with fewer than 5 people is shown as 0."""

    edges: tuple[float, ...]
    members: tuple[float, ...]
    nonmembers: tuple[float, ...]


def score_histogram(
    members: NDArray[np.float64], nonmembers: NDArray[np.float64], *, bins: int = 30
) -> Histogram:
    """Return the histogram of scores between their 1st and 99th percentile; the rest is counted in the end bins.

    Scores of different attacks have different units, so they are shown in standard deviations from their mean.

    Examples
    --------
    >>> h = score_histogram(np.arange(100.0), np.arange(100.0), bins=2)
    >>> h.members
    (0.5, 0.5)
    """
    both = np.concatenate([members, nonmembers])
    centre, spread = float(both.mean()), float(both.std()) or 1.0
    members, nonmembers = (members - centre) / spread, (nonmembers - centre) / spread
    both = (both - centre) / spread
    low, high = np.quantile(both, [0.01, 0.99])
    if high - low < NARROW:
        low, high = float(both.min()), float(both.max())
    if high - low < NARROW:
        high = low + 1.0
    return _histogram(members, nonmembers, np.linspace(low, high, bins + 1))


def individual_histogram(
    members: NDArray[np.float64], nonmembers: NDArray[np.float64], *, bins: int = 20
) -> Histogram:
    """Return the histogram of the individual privacy scores of members and non-members."""
    wins = pair_wins(members, nonmembers)
    return _histogram(
        individual_privacy(wins),
        np.minimum(2 * (1 - wins.nonmembers), 1.0),
        np.linspace(0, 1, bins + 1),
    )


def posterior_histogram(
    members: NDArray[np.float64], nonmembers: NDArray[np.float64], *, bins: int = 20
) -> Histogram:
    """Return the histogram of the predicted probabilities of membership of members and non-members.

    Examples
    --------
    >>> posterior_histogram(np.full(10, 0.9), np.full(10, 0.2), bins=2).members
    (0.0, 1.0)
    """
    return _histogram(members, nonmembers, np.linspace(0, 1, bins + 1))


def belief_histogram(
    first: NDArray[np.float64], second: NDArray[np.float64], *, bins: int = 20
) -> Histogram:
    """Return the histogram of beliefs over runs on two tables; runs are not people, so no bin is hidden.

    Examples
    --------
    >>> belief_histogram(np.array([0.9]), np.array([0.2]), bins=2).nonmembers
    (1.0, 0.0)
    """
    return _histogram(first, second, np.linspace(0, 1, bins + 1), smallest=1)


def _histogram(
    members: NDArray[np.float64],
    nonmembers: NDArray[np.float64],
    edges: NDArray[np.float64],
    *,
    smallest: int = SMALLEST_BIN,
) -> Histogram:
    def shares(values: NDArray[np.float64]) -> tuple[float, ...]:
        counts = np.histogram(values.clip(edges[0], edges[-1]), edges)[0]
        counts[counts < smallest] = 0
        return tuple(round(float(c), 6) for c in counts / max(len(values), 1))

    return Histogram(
        edges=tuple(round(float(e), 6) for e in edges),
        members=shares(members),
        nonmembers=shares(nonmembers),
    )
