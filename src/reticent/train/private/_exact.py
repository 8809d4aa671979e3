r"""Random integers whose probabilities are exact: no logarithm, no rounding, only whole numbers.

Everything is made of fair bounded integers (drawn by rejection, so that none is likelier than another) and of
:math:`\mathrm{Bernoulli}(e^{-u/n})` for whole u and n, which von Neumann's trick turns into comparisons of such integers
(Algorithm 1 of [1]_). What these functions draw is the named distribution itself, not an approximation.

They take a time that depends on what they draw; whoever can measure it to the nanosecond learns something.

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

    Flip coins of u/n, u/2n, u/3n, ... until one falls on tails: the number of flips is odd with that probability.
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
    """Return how often a coin of probability 1/e falls on heads before the first tails: k or more with e^-k."""
    count = np.zeros(size, dtype=np.int64)
    left = np.arange(size)
    while len(left):
        heads = bernoulli_exp(np.ones(len(left), dtype=np.int64), 1, rng)
        left = left[heads]
        count[left] += 1
    return count


def rounded_laplace(halves: int, size: int, rng: np.random.Generator) -> Whole:
    r"""Return Laplace noise of scale ``halves / 2``, rounded to the nearest whole number.

    Its magnitude in half steps, rounded down, is geometric: j or more with probability :math:`e^{-j/n}`, n the scale in
    half steps. So it is :math:`u + nv` with u uniform below n and kept with probability :math:`e^{-u/n}`, and v
    as :func:`exp_successes`.
    """
    kept: list[Whole] = []
    missing = size
    while missing > 0:
        # Of those drawn, 1 - 1/e are kept.
        u = rng.integers(0, halves, size=int(1.6 * missing) + 16)
        kept.append(u[bernoulli_exp(u, halves, rng)][:missing])
        missing -= len(kept[-1])
    half_steps = np.concatenate(kept) + halves * exp_successes(size, rng)
    signs = 2 * rng.integers(0, 2, size=size) - 1
    return np.asarray(signs * ((half_steps + 1) // 2), dtype=np.int64)


def choice_by_weight(deficits: Whole, n: int, rng: np.random.Generator) -> int:
    """Return a place, drawn with probability proportional to e^(-deficit/n).

    Places are proposed uniformly and accepted with that probability. One deficit must be 0, so that a proposal is
    accepted at least once in as many as there are places.
    """
    batch = 16
    while True:
        proposed = rng.integers(0, len(deficits), size=batch)
        lack = deficits[proposed]
        accepted = (exp_successes(batch, rng) >= lack // n) & bernoulli_exp(
            lack % n, n, rng
        )
        if accepted.any():
            return int(proposed[np.argmax(accepted)])
        batch = min(2 * batch, 2**16)
