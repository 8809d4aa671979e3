r"""Random integers whose probabilities are exact: without logarithms and rounding, from integers alone.

Everything is built from uniform bounded integers (drawn by rejection, so that all are equally likely) and from
:math:`\mathrm{Bernoulli}(e^{-u/n})` for integers u and n, which von Neumann's trick turns into comparisons of such integers
(Algorithm 1 of [1]_). These functions draw from the named distribution itself, not from an approximation.

The time that they take depends on what they draw; whoever can measure it to the nanosecond learns something.

References
----------
.. [1] Canonne, Kamath & Steinke, "The discrete Gaussian for differential privacy", arXiv:2004.00010, Section 5.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["bernoulli_exp", "choice_by_weight", "exp_successes", "rounded_laplace"]

Whole = NDArray[np.int64]


def bernoulli_exp(u: Whole, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return True with probability e^(-u/n), for each u from 0 to n.

    Flip coins with probabilities u/n, u/2n, u/3n, ... until one shows tails: the number of flips is odd with that probability.
    """
    answer = np.empty(len(u), dtype=np.bool_)
    left = np.arange(len(u))
    flips = 1
    while len(left):
        heads = rng.integers(0, n * flips, size=len(left)) < u[left]
        answer[left[~heads]] = flips % 2 == 1
        left = left[heads]
        flips += 1
    return answer


def exp_successes(size: int, rng: np.random.Generator) -> Whole:
    """Return the number of heads of a coin of probability 1/e before the first tails: k or more with probability e^-k."""
    count = np.zeros(size, dtype=np.int64)
    left = np.arange(size)
    while len(left):
        heads = bernoulli_exp(np.ones(len(left), dtype=np.int64), 1, rng)
        left = left[heads]
        count[left] += 1
    return count


def rounded_laplace(halves: int, size: int, rng: np.random.Generator) -> Whole:
    r"""Return Laplace noise of scale ``halves / 2``, rounded to the nearest whole number.

    The magnitude in half steps, rounded down, is geometric: j or more with probability :math:`e^{-j/n}`, with n the scale
    in half steps. So it is :math:`u + nv` with u uniform below n and accepted with probability :math:`e^{-u/n}`, and v
    drawn by :func:`exp_successes`.
    """
    accepted: list[Whole] = []
    missing = size
    while missing > 0:
        # About 1 - 1/e of the draws are accepted, so 1.6 times as many usually suffice.
        u = rng.integers(0, halves, size=int(1.6 * missing) + 16)
        accepted.append(u[bernoulli_exp(u, halves, rng)][:missing])
        missing -= len(accepted[-1])
    half_steps = np.concatenate(accepted) + halves * exp_successes(size, rng)
    signs = 2 * rng.integers(0, 2, size=size) - 1
    return np.asarray(signs * ((half_steps + 1) // 2), dtype=np.int64)


def choice_by_weight(deficits: Whole, n: int, rng: np.random.Generator) -> int:
    """Return a position, drawn with probability proportional to e^(-deficit/n).

    Positions are proposed uniformly and accepted with that probability. One deficit must be 0, so that on average at
    least one of as many proposals as there are positions is accepted.
    """
    # As many as there are positions, of which one is accepted on average; doubled after each failure, up to 2**16, which bounds the memory.
    batch = min(max(16, len(deficits)), 2**16)
    while True:
        proposed = rng.integers(0, len(deficits), size=batch)
        # Accepted with probability e^(-floor(deficit / n)), and of those with that of what is left.
        reached = proposed[exp_successes(batch, rng) >= deficits[proposed] // n]
        accepted = reached[bernoulli_exp(deficits[reached] % n, n, rng)]
        if len(accepted):
            return int(accepted[0])
        batch = min(2 * batch, 2**16)
