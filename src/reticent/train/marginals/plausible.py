r"""The distribution that noisy marginals make most plausible.

With factors on single columns and pairs, the distribution is :math:`p \propto \exp \sum_f \theta_f`; a junction tree gives its marginals :math:`\mu_f`. Of N records with noisy counts :math:`y_f` of variances :math:`\sigma_f^2`,

.. math:: \max_p\; \lambda N H(p) - \tfrac12 \sum_f \|N \mu_f - y_f\|^2 / \sigma_f^2

is found by its dual, :math:`\min_\theta N \log Z(\theta) - \theta \cdot y + \tfrac\lambda2 \sum_f \sigma_f^2 \|\theta_f\|^2`, which is convex without bounds. With
:math:`\lambda = 1` this would be the most probable table, if all records were equally probable; with :math:`\lambda = 0` the least squares of McKenna, Sheldon & Miklau ("Graphical-model based
estimation and inference for differential privacy", ICML 2019), which fit the noise as well.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy

from reticent.train.marginals.graphs import Factor
from reticent.train.marginals.junction import Junction
from reticent.train.marginals.messages import Messages

__all__ = ["Measured", "fitted"]

Array = NDArray[np.float64]
# The weight of entropy, as a part of that which makes the most probable table: from tables with a tenth models learn as much as from any other, or more (Adult, Framingham and Diabetes: tried were 0.1, 0.3 and 1, beside least
# squares). All of it shrinks what much noise measured too far towards independence, because real columns are not independent.
ENTROPY = 0.1
# Counts are of people: to be told them to less than one helps nobody, and with less noise the search would be long, because margins that contradict each other a little pull without end.
LEAST_VARIANCE = 1.0
MOST_STEPS, MOST_HALVINGS, REMEMBERED = 300, 20, 10  # of L-BFGS
SUFFICIENT = (
    1e-4  # part of the decrease that the slope promises, with which a step is content
)


@dataclass(frozen=True)
class Measured:
    """Noisy counts of one factor.

    Parameters
    ----------
    factor : tuple of int
        Its columns.
    counts : array of float
        The counts.
    variances : array of float or float
        Of the noise on each of them.
    """

    factor: Factor
    counts: Array
    variances: Array | float


def fitted(
    tree: Junction,
    measured: Sequence[Measured],
    start: Mapping[Factor, Array],
    *,
    total: float,
    precision: float,
) -> tuple[dict[Factor, Array], list[Array]]:
    """Return the potentials that maximise entropy less the squared errors of the counts, and the beliefs of all cliques; see the top of this module.

    Steps are those of L-BFGS (Nocedal & Wright, 2006, Algorithm 7.4), with the diagonal of the Hessian at the start in place of a multiple of the unit matrix: it
    spans four orders of magnitude from rare to frequent bins.

    Parameters
    ----------
    tree : Junction
        With a home for every factor.
    measured : sequence of Measured
        What is known.
    start : mapping
        Potentials to begin with.
    total : float
        Number of records.
    precision : float
        Part of the noise's standard deviation by which counts may lie beside where they should, in the root mean square.
    """
    goal = _Goal.of(measured, total)
    messages = Messages(tree, goal.factors)
    pull = ENTROPY / goal.weights

    def dual(theta: Array) -> tuple[float, Array]:
        shares, log_sum = messages.sweep(theta)
        pulled = pull * theta
        value = total * log_sum + theta @ (pulled / 2 - goal.counts)
        return float(value), total * shares - goal.counts + pulled

    theta = goal.flat(start)
    value, slope = dual(theta)
    shares = (slope + goal.counts - pull * theta) / total
    steps = _Steps(1 / (total * shares * (1 - shares) + pull))
    near = precision**2 * len(theta)
    for _ in range(MOST_STEPS):
        if slope @ (goal.weights * slope) <= near:
            break
        move = steps.direction(slope)
        length, gain = 1.0, SUFFICIENT * float(slope @ move)
        for _ in range(MOST_HALVINGS):
            moved = theta + length * move
            lower, flatter = dual(moved)
            if lower <= value + length * gain:
                break
            length /= 2
        else:
            # The value no longer changes by more than its rounding. Beliefs are those of the last sweep.
            messages.sweep(theta)
            break
        steps.learn(moved - theta, flatter - slope)
        theta, value, slope = moved, lower, flatter
    return goal.parted(theta), messages.beliefs()


class _Steps:
    """The inverse of the Hessian as L-BFGS learns it from steps.

    Parameters
    ----------
    diagonal : array of float
        What it is taken for at first.
    """

    def __init__(self, diagonal: Array) -> None:
        self.diagonal = diagonal
        self.scale = 1.0
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=REMEMBERED)

    def direction(self, slope: Array) -> Array:
        """Return the step that a quadratic function with this Hessian would ask for."""
        rest = slope.copy()
        parts = []
        for moved, bent, product in reversed(self.pairs):
            parts.append(float(moved @ rest) / product)
            daxpy(bent, rest, a=-parts[-1])  # in place
        rest *= self.scale * self.diagonal
        for (moved, bent, product), part in zip(self.pairs, reversed(parts), strict=True):  # fmt: skip
            daxpy(moved, rest, a=part - float(bent @ rest) / product)
        return -rest

    def learn(self, moved: Array, bent: Array) -> None:
        """Remember how the slope changed by a step."""
        product = float(moved @ bent)
        if product > 0:  # the function is convex, so only rounding says otherwise
            self.pairs.append((moved, bent, product))
            self.scale = product / float(bent @ (self.diagonal * bent))


@dataclass(frozen=True)
class _Goal:
    """What is known of all factors, one behind the other in flat arrays: counts, and one over their variances."""

    shapes: Mapping[Factor, tuple[int, ...]]
    counts: Array
    weights: Array

    @classmethod
    def of(cls, measured: Sequence[Measured], total: float) -> "_Goal":
        """Return the goal; a factor that was measured twice has the mean of its counts, weighted by their precision.

        The counts of each factor are moved to add up to the total, each in proportion to its variance. That moves no maximum, because no distribution could do
        anything about it, but it spares the search a direction that leads nowhere.
        """
        sums: dict[Factor, Array] = {}
        weights: dict[Factor, Array] = {}
        for m in measured:
            variances = np.maximum(np.asarray(m.variances), LEAST_VARIANCE)
            precision = np.broadcast_to(1.0 / variances, m.counts.shape)
            weights[m.factor] = weights.get(m.factor, 0.0) + precision
            sums[m.factor] = sums.get(m.factor, 0.0) + precision * m.counts
        counts = []
        for factor, precision in weights.items():
            mean, variance = sums[factor] / precision, 1 / precision
            mean -= (mean.sum() - total) * variance / variance.sum()
            counts.append(mean.ravel())
        flat = np.concatenate([w.ravel() for w in weights.values()])
        shapes = {f: w.shape for f, w in weights.items()}
        return cls(shapes, np.concatenate(counts), flat)

    @property
    def factors(self) -> tuple[Factor, ...]:
        return tuple(self.shapes)

    def flat(self, potentials: Mapping[Factor, Array]) -> Array:
        """Return potentials one behind the other; those of a factor that has none yet are 0."""
        each = (potentials.get(f, np.zeros(shape)) for f, shape in self.shapes.items())
        return np.concatenate([theta.ravel() for theta in each])

    def parted(self, flat: Array) -> dict[Factor, Array]:
        """Return the potentials of each factor."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])[:-1]
        parts = np.split(flat, ends)
        return {
            factor: part.reshape(shape)
            for (factor, shape), part in zip(self.shapes.items(), parts, strict=True)
        }
