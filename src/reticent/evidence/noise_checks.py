r"""Tests of the noise of a watched training: its scale, its law, and its independence between steps, numbers and tensors.

Every test takes the noise over its stated deviation, which should be independent standard normal numbers. Sums of squares are
compared with :math:`\chi^2` wherever noise could be missing: on a tensor, in a step, on a tensor in a step, on one number. The direction of
normal noise is uniform on a sphere, so the cosine c between two steps has :math:`c^2 \sim \mathrm{Beta}(1/2, (K-1)/2)` whatever the scale, and any
two cosines are independent; the sum of their squares is also a test of sphericity over numbers [1]_, because steps that share a direction are numbers that
are correlated. Equal values are looked for in a whole run, so that noise which is used again is found wherever it is used. Each p-value
pays for the tensors, steps or pairs among which the smallest was chosen.

References
----------
.. [1] John, "The distribution of a statistic used for testing sphericity of normal distributions", Biometrika 59 (1972).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, betainc, betaincc, chdtr, chdtrc, ndtr, pdtrc
from scipy.stats import kstest

from reticent.pool import Noise

__all__ = ["NOISE_CHECKS", "Found"]

TAILS = (2.0, 3.0, 4.0, 5.0)  # deviations beyond which values are counted
# Steps whose directions are compared, each with each: a matrix of 32 MB.
MOST_STEPS = 2048
# Values whose law is tested: more would see departures of 0.1 %, as generators in single precision have.
MOST_VALUES = 2**20
# Equal values are those closer than so many times the error of rounding.
AS_EQUAL = 8.0
# Where chance makes more than this share of the values equal, equal values say nothing.
MOST_EQUAL = 0.1
NO_NOISE = 1e-30  # keeps the logarithm of a missing noise finite

Test = Callable[[Noise], "Found"]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A p-value that pays for its own choices, and what it rests on in words."""

    p_value: float
    words: str


def scale(noise: Noise) -> Found:
    """Test that the noise as a whole is not smaller than stated."""
    total, count = float(noise.squares.sum()), noise.runs * noise.steps * noise.size
    return Found(
        p_value=float(chdtr(count, total)),
        words=f"{math.sqrt(total / count):.4g} times the stated deviation in all, from {count:,} numbers",
    )


def scale_by_tensor(noise: Noise) -> Found:
    """Test that the noise on no tensor is smaller than stated."""
    totals = noise.squares.sum((0, 1))
    counts = noise.runs * noise.steps * noise.sizes
    at, p_value = _least(chdtr(counts, totals))
    deviation = math.sqrt(totals[at] / counts[at])
    return Found(
        p_value=p_value,
        words=f"least on {noise.names[at]}: {deviation:.4g} times the stated deviation",
    )


def scale_by_step(noise: Noise) -> Found:
    """Test that the noise of no step is smaller than stated."""
    totals = noise.squares.sum(2)
    at, p_value = _least(chdtr(noise.size, totals))
    run, step = divmod(at, noise.steps)
    deviation = math.sqrt(totals[run, step] / noise.size)
    return Found(
        p_value=p_value,
        words=f"least in step {step + 1} of run {run + 1}: {deviation:.4g} times the stated deviation",
    )


def scale_by_cell(noise: Noise) -> Found:
    """Test that the noise on no tensor is smaller than stated in a single step."""
    at, p_value = _least(chdtr(noise.sizes, noise.squares))
    run, step, tensor = np.unravel_index(at, noise.squares.shape)
    deviation = math.sqrt(noise.squares[run, step, tensor] / noise.sizes[tensor])
    return Found(
        p_value=p_value,
        words=f"least on {noise.names[tensor]} in step {step + 1} of run {run + 1}: {deviation:.4g} times the stated deviation",
    )


def scale_by_number(noise: Noise) -> Found:
    """Test that the noise on no single number is smaller than stated."""
    totals = np.square(noise.kept, dtype=np.float64).sum((0, 1))
    count = noise.kept.shape[0] * noise.kept.shape[1]
    at, p_value = _least(chdtr(count, totals))
    deviation = math.sqrt(totals[at] / count)
    return Found(
        p_value=p_value,
        words=f"least on number {noise.place[at] + 1} of {noise.names[noise.tensor[at]]}: {deviation:.4g} times the stated deviation",
    )


def evenness(noise: Noise) -> Found:
    """Test that the noise has the same scale in all steps, whatever that scale is.

    The cube root of a mean of squares is nearly normal (Wilson and Hilferty), so that the squares of its deviations add up to a chi-square.
    """
    means = noise.squares.sum(2) / noise.size
    overall = max(float(means.mean()), NO_NOISE)
    width = 2 / (9 * noise.size)
    roots = (np.cbrt(means / overall) - 1 + width) / math.sqrt(width)
    count = roots.size
    if count < 2:
        return Found(p_value=1.0, words="one step only")
    spread = float(np.square(roots - roots.mean()).sum())
    # A share of a sum of chi-squares has a beta distribution, exactly.
    half = noise.size / 2
    shares = means / (overall * count)
    ends = half, (count - 1) * half
    fewest = float(betainc(*ends, shares.min()))
    one = 2 * count * min(fewest, float(betaincc(*ends, min(1.0, shares.max()))))
    low, high = math.sqrt(float(means.min())), math.sqrt(float(means.max()))
    return Found(
        p_value=2 * min(float(chdtrc(count - 1, spread)), one),
        words=f"from {low:.3g} to {high:.3g} times the stated deviation in single steps",
    )


def law(noise: Noise) -> Found:
    """Test that the noise is normal, by Kolmogorov and Smirnov; its scale is fitted, which makes the test conservative."""
    values = _standardised(noise)
    test = kstest(values, "norm")
    return Found(
        p_value=float(test.pvalue),
        words=f"distribution functions at most {test.statistic:.3g} apart, from {len(values):,} numbers",
    )


def tails(noise: Noise) -> Found:
    """Test that as many values lie beyond 2, 3, 4 and 5 deviations as normal noise has there, and that the largest is not too small."""
    values = np.abs(_standardised(noise))
    n, largest = len(values), float(values.max())
    tests = len(TAILS) + 1
    # The chance that all values are below the largest.
    smallest = tests * math.exp(n * math.log1p(-2 * float(ndtr(-largest))))
    words = f"the largest of {n:,} values is {largest:.3g} deviations"
    for beyond in TAILS:
        chance = 2 * float(ndtr(-beyond))
        count = int((values > beyond).sum())
        few, many = bdtr(count, n, chance), bdtrc(count - 1, n, chance) if count else 1
        p_value = 2 * tests * min(float(few), float(many))
        if p_value <= smallest:
            smallest = p_value
            words = f"{count:,} values beyond {beyond:g} deviations, where {n * chance:,.3g} are expected"
    return Found(p_value=smallest, words=words)


def equal_values(noise: Noise) -> Found:
    """Test that values do not occur again in a run, on whichever number, in whichever step and with whichever sign.

    Of n values with the density f, about n² h times the integral of f² pairs are closer than h. Noise that is rounded to a coarse grid has equal values, too.
    """
    n = noise.kept.shape[1] * noise.kept.shape[2]
    expected, count = 0.0, 0
    deviation = _deviation(noise)
    for values, rounding in zip(noise.kept, noise.rounding, strict=True):
        ordered = np.sort(np.abs(values), axis=None).astype(np.float64)
        near = AS_EQUAL * float(rounding)
        # The density of |z| is twice the normal one, and the integral of its square 1 / sqrt(pi).
        chance = float(n) ** 2 * near / (math.sqrt(math.pi) * deviation)
        if chance > MOST_EQUAL * n:
            continue
        expected += chance
        count += int((np.diff(ordered) < near).sum())
    return Found(
        p_value=float(pdtrc(count - 1, expected)) if count and expected else 1.0,
        words=f"{count:,} of {n * noise.runs:,} values occur again, where chance gives {expected:,.3g}",
    )


def repeats(noise: Noise) -> Found:
    """Test that no two steps, of one run or of two, have noise of nearly the same direction."""
    cosines, steps = _cosines(noise)
    count, k = len(cosines), noise.kept.shape[2]
    if count < 2 or k < 2:
        return Found(p_value=1.0, words="one step or one number only")
    upper = np.triu(np.abs(cosines), 1)
    first, second = np.unravel_index(int(upper.argmax()), upper.shape)
    largest = min(float(upper[first, second]), 1.0)
    tail = float(betainc((k - 1) / 2, 0.5, 1 - largest**2))
    pairs = count * (count - 1) / 2

    def name(row: int) -> str:
        return f"step {row % steps + 1} of run {row // steps + 1}"

    return Found(
        p_value=pairs * tail,
        words=f"largest correlation {largest:.3g}, of {name(int(first))} with {name(int(second))}",
    )


def lags(noise: Noise) -> Found:
    r"""Test that steps so and so far apart are not correlated in the mean.

    Given all earlier steps, :math:`\sqrt K` times a cosine is sub-Gaussian with variance 1, so the sum over a lag has the tail of a normal variable, by Chernoff's bound.
    """
    cosines, steps = _cosines(noise)
    runs, k = len(cosines) // steps, noise.kept.shape[2]
    smallest, words = 1.0, "no two steps"
    for lag in range(1, steps):
        total = 0.0
        for run in range(runs):
            block = cosines[run * steps : (run + 1) * steps]
            block = block[:, run * steps : (run + 1) * steps]
            total += float(np.trace(block, offset=lag))
        count = runs * (steps - lag)
        size = abs(total) * math.sqrt(k / count)
        p_value = 2 * (steps - 1) * math.exp(-(size**2) / 2)
        if p_value <= smallest or lag == 1:
            smallest = min(smallest, p_value)
            words = f"mean correlation {total / count:.2g} of steps {lag} apart"
    return Found(p_value=smallest, words=words)


def sphericity(noise: Noise) -> Found:
    """Test that the noise prefers no direction: numbers are neither correlated nor unequal, steps share nothing."""
    cosines, _ = _cosines(noise)
    count, k = len(cosines), noise.kept.shape[2]
    pairs = count * (count - 1) / 2
    if count < 2 or k < 2:
        return Found(p_value=1.0, words="one step or one number only")
    total = (float(np.square(cosines).sum()) - count) / 2
    # Cosines of pairs are independent in pairs, so mean and variance of the sum are exact.
    mean, variance = pairs / k, pairs * 2 * (k - 1) / (k**2 * (k + 2))
    apart = (total - mean) / math.sqrt(variance)
    # The chi-square with the fewer degrees of freedom of the two limits has the heavier tail.
    freedom = max(1.0, min(pairs, k * (k + 1) / 2 - 1))
    return Found(
        p_value=float(chdtrc(freedom, freedom + math.sqrt(2 * freedom) * apart)),
        words=f"mean squared correlation of two steps {total / pairs:.3g}, where {1 / k:.3g} is expected",
    )


def tensors(noise: Noise) -> Found:
    """Test that no two tensors have noise that is correlated place by place."""
    count = len(noise.sizes)
    kept = noise.kept.reshape(-1, noise.kept.shape[2]).astype(np.float64)
    smallest, words, pairs = 1.0, "one tensor only", count * (count - 1) / 2
    for one in range(count):
        for two in range(one):
            _, a, b = np.intersect1d(
                np.where(noise.tensor == one, noise.place, -1),
                np.where(noise.tensor == two, noise.place, -2),
                return_indices=True,
            )
            first, second = kept[:, a], kept[:, b]
            lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
            inner = (first * second).sum(1)
            cosines = np.divide(inner, lengths, where=lengths > 0, out=inner * 0)
            size = abs(float(cosines.sum())) * math.sqrt(len(a) / len(kept))
            p_value = 2 * pairs * math.exp(-(size**2) / 2)
            if p_value <= smallest or words == "one tensor only":
                smallest = min(smallest, p_value)
                words = f"mean correlation {cosines.mean():.2g} of {noise.names[two]} with {noise.names[one]}"
    return Found(p_value=smallest, words=words)


def along_sum(noise: Noise) -> Found:
    """Test that the noise does not depend on the sum that it hides: along it, it is normal like everywhere else."""
    seen = np.isfinite(noise.along_sum)
    return _along(noise.along_sum[seen] / _deviation(noise), "the sum")


def along_record(noise: Noise) -> Found:
    """Test that nothing of the record is released beside its share, and that the noise along the share is not smaller."""
    seen = np.isfinite(noise.along_record)
    values = noise.along_record / _deviation(noise)
    everywhere = _along(values[seen], "the record's share")
    with_it = _along(
        values[seen & noise.taken], "the record's share where it took part"
    )
    worse = min(everywhere, with_it, key=lambda found: found.p_value)
    return Found(p_value=2 * worse.p_value, words=worse.words)


def _along(values: NDArray[np.float64], what: str) -> Found:
    n = len(values)
    if not n:
        return Found(p_value=1.0, words=f"{what} is always zero")
    squares, mean = float(np.square(values).sum()), float(values.mean())
    p_values = (
        2 * float(ndtr(-abs(mean) * math.sqrt(n))),
        float(chdtr(n, squares)),
        float(chdtrc(n, squares)),
    )
    return Found(
        p_value=3 * min(p_values),
        words=f"mean {mean:.2g} and deviation {math.sqrt(squares / n):.3g} along {what}, in units of the noise, from {n:,} steps",
    )


def _deviation(noise: Noise) -> float:
    """Return the deviation of all noise, in units of the stated one: tests of the law leave the scale to others."""
    count = noise.runs * noise.steps * noise.size
    return math.sqrt(max(float(noise.squares.sum()) / count, NO_NOISE))


def _standardised(noise: Noise) -> NDArray[np.float64]:
    values = noise.kept.reshape(-1)[:MOST_VALUES].astype(np.float64)
    return values / math.sqrt(max(float(np.square(values).mean()), NO_NOISE))


def _cosines(noise: Noise) -> tuple[NDArray[np.float32], int]:
    """Return the cosines between the directions of some steps, and how many of these there are in each run."""
    runs, steps, k = noise.kept.shape
    steps = min(steps, MOST_STEPS)
    runs = max(1, min(runs, MOST_STEPS // steps))
    rows = noise.kept[:runs, :steps].reshape(-1, k)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    directions = np.divide(rows, lengths, where=lengths > 0, out=np.zeros_like(rows))
    return directions @ directions.T, steps


def _least(p_values: NDArray[np.floating]) -> tuple[int, float]:
    """Return where the smallest p-value is, and that p-value after paying for the choice."""
    at = int(p_values.argmin())
    return at, float(p_values.flat[at]) * p_values.size


NOISE_CHECKS: tuple[tuple[str, str, Test], ...] = (
    ("noise", "the noise has at least the stated deviation", scale),
    (
        "noise by tensor",
        "the noise on every tensor has at least the stated deviation",
        scale_by_tensor,
    ),
    (
        "noise by step",
        "the noise of every step has at least the stated deviation",
        scale_by_step,
    ),
    (
        "noise by tensor and step",
        "the noise on every tensor has at least the stated deviation in every step",
        scale_by_cell,
    ),
    (
        "noise by number",
        "the noise on every single number has at least the stated deviation",
        scale_by_number,
    ),
    (
        "even noise",
        "the scale of the noise does not change from step to step",
        evenness,
    ),
    ("law", "the noise is normal", law),
    ("tails", "the noise has the tails of a normal distribution", tails),
    ("equal values", "no value of the noise is used again", equal_values),
    ("repeats", "no two steps have the same noise", repeats),
    ("lags", "the noise is independent between steps", lags),
    ("directions", "the noise prefers no direction among the numbers", sphericity),
    ("tensors", "the noise is independent between tensors", tensors),
    (
        "noise along the sum",
        "the noise does not depend on the sum that it hides",
        along_sum,
    ),
    (
        "noise along the record",
        "nothing of the record is released beside its share of the sum",
        along_record,
    ),
)
