r"""Release numbers, answers and choices under a mechanism, so that floating point does not betray them.

Noise in floating point leaks: some sums can come from one table only [1]_, and the size of the last digit tells of the
value beneath [2]_. So the values are first rounded to a grid, whose step is a power of two and depends on the mechanism,
the sensitivity and the number of values, never on the values; the noise is a whole number of steps, the sum is
one of whole numbers, and only that is multiplied by the step, without any rounding.

Noise rounded to whole numbers and added to whole numbers is the sum, rounded: a function of what the mechanism
released. So the mechanism's whole guarantee holds, in any dimension. Rounding moves each of k values by up to half a
step, which adds up to :math:`\gamma\sqrt{k}` to the L2 sensitivity and :math:`\gamma k` to the L1 sensitivity;
the noise is scaled to the sum, about 0.05 % more than the mechanism says at most.

How the noise is drawn, from :func:`reticent.train.private.noise.secure_generator` always:

- Laplace noise, randomised answers and choices are exact, by whole numbers (:mod:`reticent.train.private._exact`). The
  exponential mechanism proposes outcomes uniformly and accepts by exact coins, so no weight is ever computed.
- Normal noise is the sum of two normal draws in double precision, a large one and one of 32 steps, rounded. The small
  one blurs the gaps between the numbers that the large one can be: the probability of a step, and with it
  the privacy loss, is off by a share of about :math:`10^{-10}` at most, but with probability :math:`10^{-14}`.

The values' own sensitivity is the caller's: sums in floating point can move by more than theory says [3]_.

Cost per number, of a million on one core: normal noise 45 ns (plain NumPy: 11 ns), Laplace noise 150 ns (17 ns), a randomised
answer 20 ns (8 ns); a choice among a thousand takes half a millisecond.

References
----------
.. [1] Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.
.. [2] Haney, Desfontaines, Hartman, Shrestha & Hay, "Precision-based attacks and interval refining: how to break,
   then fix, differential privacy on finite computers", arXiv:2207.13793.
.. [3] Casacuberta, Shoemate, Vadhan & Wagaman, "Widespread underestimation of sensitivity in differentially
   private libraries and how to fix it", arXiv:2207.10635.
.. [4] McSherry & Talwar, "Mechanism design via differential privacy", FOCS 2007.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import InvalidInput
from reticent.train.private._exact import choice_by_weight, rounded_laplace
from reticent.train.private.noise import secure_generator

if TYPE_CHECKING:
    from reticent.account import (
        Exponential,
        Gaussian,
        Laplace,
        NonSphericalGaussian,
        RandomisedResponse,
    )

__all__ = [
    "release_answers",
    "release_choice",
    "release_coordinates",
    "release_numbers",
]

FINENESS = 2**12  # steps of the grid in the sensitivity, and in the noise, at least
BLUR = 32.0  # steps; at most 1/16,000 of the variance
MOST_STEPS = 2**52  # a value and its noise, each: the sum is exact in a double
MOST_NOISE = 2**45  # steps; a tail a hundred times as long still fits


def release_numbers(
    mechanism: "Gaussian | Laplace", values: ArrayLike, *, sensitivity: float
) -> NDArray[np.float64]:
    """Return numbers with noise, on a public grid.

    Parameters
    ----------
    mechanism : Gaussian or Laplace
        How much noise over the sensitivity.
    values : array of float
        Any shape; all of it is one release. They are taken as doubles, and so is what the sensitivity is about.
    sensitivity : float
        Distance, L2 for Gaussian and L1 for Laplace, by which adding or removing a record moves the values at most. What
        replacing one moves is counted by the mechanism, as twice that.

    Raises
    ------
    InvalidInput
        If a value is not finite, or too large for the grid.

    Examples
    --------
    >>> from reticent.account import Laplace
    >>> count = release_numbers(Laplace(noise_multiplier=2.0), [1000], sensitivity=1)
    >>> 900 < count[0] < 1100
    np.True_
    """
    from reticent.account import Gaussian, Laplace  # heavy, and few trainings release

    if not isinstance(mechanism, Gaussian | Laplace):
        raise InvalidInput(
            f"{type(mechanism).__name__} adds no noise that is the same for all numbers; use Gaussian or Laplace, or another release_* function."
        )
    numbers = _finite(values, "values")
    _positive(sensitivity)
    l2 = isinstance(mechanism, Gaussian)
    # By how much the rounding of all values together can move them, in steps.
    rounding = math.sqrt(numbers.size) if l2 else float(numbers.size)
    least = min(sensitivity / rounding, mechanism.noise_multiplier * sensitivity)
    step = float(_power_of_two_below(least / FINENESS))
    reach = Fraction(sensitivity) / Fraction(step) + Fraction(rounding)
    scale = Fraction(mechanism.noise_multiplier) * reach  # in steps, and exact
    _check_noise(scale)
    whole = _whole(numbers, np.float64(step))
    rng = secure_generator()
    if l2:
        noise = _rounded_normal(np.full(numbers.shape, float(math.ceil(scale))), rng)
    else:
        noise = rounded_laplace(math.ceil(2 * scale), numbers.size, rng)
    return np.asarray((whole + noise.reshape(numbers.shape)) * step)


def release_coordinates(
    mechanism: "NonSphericalGaussian", values: ArrayLike
) -> NDArray[np.float64]:
    """Return a vector with normal noise of its own for each coordinate, each on a public grid of its own.

    Parameters
    ----------
    mechanism : NonSphericalGaussian
        Its ranges say by how much a record moves each coordinate at most.
    values : array of float
        One number per coordinate.

    Examples
    --------
    >>> from reticent.account import NonSphericalGaussian
    >>> noisy = NonSphericalGaussian(deviations=(1.0, 50.0), ranges=(0.1, 5.0))
    >>> release_coordinates(noisy, [3.0, 700.0]).shape
    (2,)
    """
    numbers = _finite(values, "values")
    ranges, deviations = np.array(mechanism.ranges), np.array(mechanism.deviations)
    if numbers.shape != ranges.shape:
        raise InvalidInput(
            f"the values have the shape {numbers.shape}, but the mechanism has {len(ranges)} coordinates; pass one number for each."
        )
    moved = ranges > 0
    # A coordinate that no record moves is the same in neighbouring tables, on any grid.
    least = np.where(moved, np.minimum(ranges, deviations), deviations.max())
    step = _power_of_two_below(least / FINENESS)
    wider = np.where(moved, 1 + step / np.where(moved, ranges, 1.0), 1.0)
    scale = np.ceil(deviations / step * wider)
    _check_noise(scale.max())
    whole = _whole(numbers, step)
    return np.asarray((whole + _rounded_normal(scale, secure_generator())) * step)


def release_answers(
    mechanism: "RandomisedResponse", answers: ArrayLike
) -> NDArray[np.int64]:
    """Return each answer as it is with the mechanism's probability, else a uniform draw of all answers.

    Parameters
    ----------
    mechanism : RandomisedResponse
        The probability, and how many answers there are.
    answers : array of int
        From 0 to the number of answers less one. Each is protected by itself.

    Examples
    --------
    >>> from reticent.account import RandomisedResponse
    >>> said = release_answers(RandomisedResponse(truth=0.5), [0, 1, 1, 0])
    >>> set(said.tolist()) <= {0, 1}
    True
    """
    given = _finite(answers, "answers")
    known = (given == np.floor(given)) & (given >= 0) & (given < mechanism.answers)
    if not known.all():
        raise InvalidInput(
            f"{np.count_nonzero(~known)} of {given.size} answers are none of 0 to {mechanism.answers - 1}, so no draw could hide them; "
            "number the answers from 0."
        )
    rng = secure_generator()
    # Rounded down: with 53 bits the truth is told no more often than stated.
    true = rng.integers(0, 2**53, size=given.shape) < math.floor(mechanism.truth * 2**53)  # fmt: skip
    drawn = rng.integers(0, mechanism.answers, size=given.shape)
    return np.where(true, given.astype(np.int64), drawn)


def release_choice(
    mechanism: "Exponential", qualities: ArrayLike, *, sensitivity: float
) -> int:
    r"""Return the place of an outcome, drawn with probability proportional to :math:`e^{\varepsilon q/2\Delta}` [4]_.

    Parameters
    ----------
    mechanism : Exponential
        Its epsilon.
    qualities : array of float
        How good each outcome is.
    sensitivity : float
        By which a neighbouring table changes a quality at most.

    Examples
    --------
    >>> from reticent.account import Exponential
    >>> release_choice(Exponential(epsilon=1.0), [0, 500, 10], sensitivity=1)
    1
    """
    numbers = _finite(qualities, "qualities")
    if numbers.ndim != 1:
        raise InvalidInput(
            f"the qualities have the shape {numbers.shape}, but one outcome is chosen of a list; pass one quality per outcome."
        )
    _positive(sensitivity)
    spread = 2 * sensitivity / mechanism.epsilon  # of quality, that costs a factor e
    step = float(_power_of_two_below(min(sensitivity, spread) / FINENESS))
    # Each quality is rounded by up to half a step, so two of them differ by one step more.
    reach = Fraction(sensitivity) / Fraction(step) + 1
    scale = 2 * reach / Fraction(mechanism.epsilon)
    _check_noise(scale)
    whole = _whole(numbers, np.float64(step))
    return choice_by_weight(whole.max() - whole, math.ceil(scale), secure_generator())


def _rounded_normal(
    scales: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return normal noise, rounded to the nearest whole number, of at least the scales."""
    large = scales * rng.standard_normal(scales.shape)
    floor = np.floor(large)
    # What is added to a fraction keeps digits that the whole would swallow.
    small = (large - floor) + BLUR * rng.standard_normal(scales.shape)
    return np.asarray(floor + np.rint(small), dtype=np.int64)


def _whole(
    numbers: NDArray[np.float64], step: NDArray[np.float64] | np.float64
) -> NDArray[np.int64]:
    """Return numbers in steps of the grid, rounded to the nearest."""
    with np.errstate(over="ignore"):
        steps = numbers / step  # exact: the step is a power of two
    beyond = np.abs(steps) > MOST_STEPS
    if beyond.any():
        most = float(np.min(step)) * MOST_STEPS
        raise InvalidInput(
            f"{np.count_nonzero(beyond)} of {numbers.size} numbers are larger than {most:.3g}, which the grid that the noise needs does not "
            "hold exactly; clip them to a range known beforehand, or state a larger sensitivity."
        )
    return np.rint(steps).astype(np.int64)


def _finite(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf":
            raise TypeError  # words, dates, complex numbers
        numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the {name} are not an array of numbers, so nothing can be added to them; pass numbers."
        ) from None
    if numbers.size == 0:
        raise InvalidInput(f"there are no {name} to release; pass at least one.")
    wrong = np.count_nonzero(~np.isfinite(numbers))
    if wrong:
        raise InvalidInput(
            f"{wrong} of {numbers.size} {name} are NaN or infinite, which no noise hides; replace or clip them before, by a rule "
            "that holds for every record."
        )
    return numbers


def _positive(sensitivity: float) -> None:
    if not (sensitivity > 0 and math.isfinite(sensitivity)):
        raise InvalidInput(
            f"the sensitivity is {sensitivity}, but the noise is scaled to it; pass the most that one record moves the values, a "
            "positive number."
        )


def _check_noise(steps: Fraction | float) -> None:
    if not steps <= MOST_NOISE:
        raise InvalidInput(
            f"the noise would be {float(steps):.3g} steps of the grid, more than is drawn exactly; release fewer numbers at once, or use less noise."
        )


def _power_of_two_below(
    numbers: NDArray[np.float64] | float,
) -> NDArray[np.float64]:
    """Return the largest powers of two that are not larger.

    Examples
    --------
    >>> _power_of_two_below(np.array([0.3, 4.0]))
    array([0.25, 4.  ])
    """
    least = float(np.min(numbers))
    if least < 1e-290:
        raise InvalidInput(
            f"a grid with a step of {least:.3g} cannot be told from 0; state sensitivity and values in a smaller unit."
        )
    return np.asarray(np.ldexp(0.5, np.frexp(numbers)[1]))
