"""Scores of members and non-members whose true rates are known in closed form.

Nothing here uses the library: this is the second implementation of what the statements are about. A test compares each closed form
with a large sample.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import cauchy

Draw = Callable[[np.random.Generator, int, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Two distributions of scores: how to draw them, and what is true of them.

    ``auc`` counts ties as one half, ``tpr`` breaks them at random, ``variation`` is the total variation distance.
    """

    name: str
    draw: Draw
    auc: float
    tpr: Callable[[float], float]
    variation: float


def normal(shift: float) -> Scores:
    return Scores(
        name=f"normal, apart by {shift:g}",
        draw=lambda rng, m, n: (rng.normal(shift, 1, m), rng.normal(0, 1, n)),
        auc=float(ndtr(shift / np.sqrt(2))),
        tpr=lambda f: float(ndtr(ndtri(f) + shift)),
        variation=float(2 * ndtr(abs(shift) / 2) - 1),
    )


def exponential(scale: float) -> Scores:
    """Non-members have mean 1, members the mean ``scale`` above 1."""
    cut = scale * np.log(scale) / (scale - 1)  # where the densities cross
    return Scores(
        name=f"exponential, means {scale:g} and 1",
        draw=lambda rng, m, n: (rng.exponential(scale, m), rng.exponential(1, n)),
        auc=scale / (scale + 1),
        tpr=lambda f: float(f ** (1 / scale)),
        variation=float(np.exp(-cut / scale) - np.exp(-cut)),
    )


def heavy(shift: float) -> Scores:
    """Cauchy: neither mean nor variance exists."""
    return Scores(
        name=f"Cauchy, apart by {shift:g}",
        draw=lambda rng, m, n: (
            shift + rng.standard_cauchy(m),
            rng.standard_cauchy(n),
        ),
        auc=float(0.5 + np.arctan(shift / 2) / np.pi),
        tpr=lambda f: float(cauchy.sf(cauchy.isf(f) - shift)),
        variation=float(2 * cauchy.cdf(shift / 2) - 1),
    )


def few_exposed(share: float) -> Scores:
    """A share of the members stands above everybody; all others are alike."""

    def draw(rng: np.random.Generator, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        members = rng.normal(size=m)
        members[rng.random(m) < share] += 100.0
        return members, rng.normal(size=n)

    return Scores(
        name=f"{100 * share:g} % of members exposed",
        draw=draw,
        auc=0.5 + share / 2,
        tpr=lambda f: share + (1 - share) * f,
        variation=share,
    )


def discrete(members: tuple[float, ...], nonmembers: tuple[float, ...]) -> Scores:
    """Few values, hence many ties; probabilities of the values 0, 1, 2, ..."""
    p, q = np.array(members), np.array(nonmembers)
    below = np.concatenate([[0.0], np.cumsum(q)[:-1]])

    def tpr(f: float) -> float:
        # Along the ROC curve from the highest value down; inside a block of ties it is a straight line.
        falses = np.concatenate([[0.0], np.cumsum(q[::-1])])
        trues = np.concatenate([[0.0], np.cumsum(p[::-1])])
        return float(np.interp(f, falses, trues))

    return Scores(
        name=f"{len(p)} values",
        draw=lambda rng, m, n: (
            rng.choice(len(p), m, p=p).astype(float),
            rng.choice(len(q), n, p=q).astype(float),
        ),
        auc=float(np.sum(p * (below + q / 2))),
        tpr=tpr,
        variation=float(np.abs(p - q).sum() / 2),
    )


def comb(teeth: int, width: float = 1.0) -> Scores:
    """Members on even and non-members on odd integers, up to a share ``1 - width`` that is drawn from all of them."""

    def draw(rng: np.random.Generator, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        sides = []
        for size, odd in ((m, 0), (n, 1)):
            own = 2 * rng.integers(teeth, size=size) + odd
            any_ = rng.integers(2 * teeth, size=size)
            sides.append(np.where(rng.random(size) < width, own, any_).astype(float))
        return sides[0], sides[1]

    # Pairs of teeth are compared like two independent uniform numbers; within a pair the non-member is the higher.
    apart = 0.5 - 0.5 / teeth
    return Scores(
        name=f"{2 * teeth} values, members on every other one",
        draw=draw,
        auc=width**2 * apart
        + 2 * width * (1 - width) * (0.5 - 0.25 / teeth)
        + (1 - width) ** 2 * 0.5,
        tpr=lambda f: float("nan"),
        variation=width,
    )
