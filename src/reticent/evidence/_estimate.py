"""Estimates: numbers that never travel without their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from reticent._check import in_open_unit
from reticent.errors import InvalidInput

__all__ = ["Estimate", "Joint", "best_of", "split_level"]

# An interval this long is one of counts or of quantities in a large unit, whose decimals nobody needs.
WIDE = 10.0
NOTHING = "nothing"  # what the interval of an exact number covers


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value, its confidence interval, and the randomness that the interval covers.

    Parameters
    ----------
    value : float
        The best single number.
    low, high : float
        Ends of the confidence interval; ``low <= value <= high``.
    level : float
        Probability, before the data were seen, that the interval contains the truth.
    method : str
        How the interval was computed.
    covers : str
        Which randomness it covers: ``"product"`` (the draw of records, for this very
        product), ``"trainer"`` (re-runs of the trainer as well) or ``"nothing"`` (a number that was worked out or stated, and not measured).

    Examples
    --------
    >>> print(Estimate(value=0.63, low=0.62, high=0.64, level=0.95, method="DeLong"))
    0.630 [0.620, 0.640]

    All three numbers have the same decimals, and the ends are rounded outwards, so that
    what is printed contains the interval:

    >>> print(Estimate(value=0.012, low=8e-5, high=0.131, level=0.95, method="exact"))
    0.01 [<0.01, 0.14]

    A number that was not measured has no interval to print:

    >>> print(Estimate.exact(2.9993, level=0.95, method="worked out"))
    2.999
    """

    value: float
    low: float
    high: float
    level: float
    method: str
    covers: str = "product"

    def __post_init__(self) -> None:
        in_open_unit(self.level, "level")
        if not self.low <= self.value <= self.high:  # also catches NaN
            raise InvalidInput(
                f"the value {self.value} is outside its interval [{self.low}, {self.high}]; "
                "an estimate must lie inside its interval."
            )

    @classmethod
    def exact(cls, number: float, *, level: float, method: str) -> "Estimate":
        """Return a number that was worked out or stated, and not measured."""
        return cls(
            value=number,
            low=number,
            high=number,
            level=level,
            method=method,
            covers=NOTHING,
        )

    def __str__(self) -> str:
        return _in_words(self)

    @property
    def signed(self) -> str:
        """The same with the sign of every number, for a difference.

        Examples
        --------
        >>> Estimate(value=0.031, low=-0.0012, high=0.0644, level=0.95, method="paired").signed
        '+0.03 [-0.01, +0.07]'
        """
        return _in_words(self, sign="+")

    @property
    def percent(self) -> str:
        """The same in percent, for a share.

        Examples
        --------
        >>> Estimate(value=0.0014, low=7.8e-5, high=0.0042, level=0.95, method="exact").percent
        '0.14 % [<0.01 %, 0.42 %]'
        """
        # One decimal, or two where the whole interval is shorter than half a percent.
        digits = 1 if self.high - self.low > 0.005 else 2
        return _in_words(self, scale=100, digits=digits, unit=" %")

    def stated(self, *, level: float, why: str) -> "Estimate":
        """Return the same interval, stated at the joint level for which it was computed.

        The interval must have been computed at ``split_level(level, k)`` for each of k
        statements; ``why`` says which statements share the level.
        """
        return replace(self, level=level, method=f"{self.method}; {why}")


def split_level(level: float, statements: int) -> float:
    """Return the level that each of several statements needs so that all hold together.

    By Bonferroni's inequality, the probability that any is wrong is at most the sum of theirs.

    Examples
    --------
    >>> round(split_level(0.95, 5), 4)
    0.99
    """
    in_open_unit(level, "level")
    return 1 - (1 - level) / max(1, statements)


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A confidence level that several statements share.

    Parameters
    ----------
    level : float
        Probability that all of them hold together.
    statements : int
        Number of statements.

    Examples
    --------
    >>> round(Joint(level=0.95, statements=5).each, 4)
    0.99
    """

    level: float = 0.95
    statements: int = 1

    @property
    def each(self) -> float:
        """The level that each statement needs."""
        return split_level(self.level, self.statements)

    def times(self, choices: int) -> "Joint":
        """Return the joint confidence if each statement is made for several choices, of which one is then picked."""
        return replace(self, statements=self.statements * choices)

    def state(self, estimate: Estimate) -> Estimate:
        """Return an estimate that was computed at the level of each statement, stated at the level of all."""
        return estimate.stated(
            level=self.level, why=f"joint over {self.statements} statements"
        )


def best_of(estimates: Sequence[Estimate], *, level: float) -> Estimate:
    """Return an estimate of the largest of several quantities, paying for the choice.

    If the intervals hold together with probability ``level`` (each was computed at
    :func:`split_level`), the largest true value lies between the largest low end and the
    largest high end. The value is the largest observed one, which is biased upwards.

    Examples
    --------
    >>> a = Estimate(value=0.60, low=0.55, high=0.65, level=0.975, method="DeLong")
    >>> b = Estimate(value=0.58, low=0.57, high=0.59, level=0.975, method="DeLong")
    >>> print(best_of([a, b], level=0.95))
    0.60 [0.57, 0.65]
    """
    if not estimates:
        raise InvalidInput(
            "there are no estimates to choose the best from; run at least one attack."
        )
    return Estimate(
        value=max(e.value for e in estimates),
        low=max(e.low for e in estimates),
        high=max(e.high for e in estimates),
        level=level,
        method=f"{estimates[0].method}; best of {len(estimates)}, Bonferroni",
        covers=estimates[0].covers,
    )


def _in_words(
    estimate: Estimate,
    *,
    scale: int = 1,
    digits: int | None = None,
    sign: str = "",
    unit: str = "",
) -> str:
    """Return value and interval with the same decimals, the ends rounded outwards.

    An end that is rounded inwards could say less risk than was found, or that a limit is kept which is not.
    """
    if digits is None:
        width = estimate.high - estimate.low
        # More decimals would suggest more precision than a wide interval has.
        digits = 0 if WIDE < width < math.inf else 2 if width > 0.05 else 3
    value, low, high = (
        _rounded(scale * number, digits, rounding, sign) + unit
        for number, rounding in (
            (estimate.value, ROUND_HALF_EVEN),
            (estimate.low, ROUND_FLOOR),
            (estimate.high, ROUND_CEILING),
        )
    )
    return value if estimate.covers == NOTHING else f"{value} [{low}, {high}]"


def _rounded(number: float, digits: int, rounding: str, sign: str) -> str:
    if math.isinf(number):
        return f"{number:{sign}}"
    # Where 0.3 is computed as 0.1 + 0.2, its upper end is not 0.31: no interval here is accurate to more than twelve decimals.
    exact = Decimal(f"{number:.12f}")
    if exact and exact == exact.to_integral_value():
        return (
            f"{exact:{sign}.0f}"  # a whole number is exact: 1, where 1.00 may be 0.999
        )
    if not number:
        return "0"
    step = Decimal(1).scaleb(-digits)
    result = exact.quantize(step, rounding=rounding)
    if not result:
        # Not 0, which would say that there is nothing; of a loss nearly as small, that is what is meant.
        return f"<{step:{sign}}" if number > 0 else f"{step * 0}"
    return f"{result:{sign}}"
