"""Estimates: numbers that never travel without their intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from reticent._check import in_open_unit
from reticent.errors import InvalidInput

__all__ = ["Estimate", "Joint", "best_of", "split_level"]


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
        product) or ``"trainer"`` (re-runs of the trainer as well).

    Examples
    --------
    >>> print(Estimate(value=0.63, low=0.62, high=0.64, level=0.95, method="DeLong"))
    0.630 [0.620, 0.640]
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

    def __str__(self) -> str:
        # A third digit would suggest more precision than a wide interval has.
        digits = 2 if self.high - self.low > 0.05 else 3
        value, low, high = (
            _short(number, digits) for number in (self.value, self.low, self.high)
        )
        return f"{value} [{low}, {high}]"

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


def _short(number: float, digits: int) -> str:
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    if number and abs(number) < 10.0**-digits:
        return f"{number:.1g}"
    return f"{number:.{digits}f}" if number % 1 else f"{number:.0f}"
