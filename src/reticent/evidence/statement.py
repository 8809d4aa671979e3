"""What a measure says about a product, and the limit that a policy sets to it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate

__all__ = ["Limit", "Outcome", "Statement", "Threat"]


class Threat(StrEnum):
    """Whose attack a statement is about."""

    OUTSIDER = "outsider"  # holds the product, its answers or its file
    INSIDER = "insider"  # knows the recipe and every record's tag but two


class Outcome(StrEnum):
    """How a limit fared."""

    KEPT = "kept"  # the whole interval is on the right side
    BROKEN = "broken"  # the whole interval is on the wrong side
    OPEN = "open"  # the interval has both sides in it, or there is none


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limit on a measure, as a policy writes it.

    Parameters
    ----------
    measure : str
        The measure's name.
    at_least, at_most : float or None
        The limit, one of the two; with neither, ``at`` sets how the measure is taken and nothing is judged.
    at : mapping of str to float
        Parameters of the measure, such as the false-positive rate of a true-positive rate.

    Raises
    ------
    InvalidInput
        If both ends are given, or a number is not finite.

    Examples
    --------
    >>> limit = Limit(measure="privacy", at_least=0.9)
    >>> print(limit)
    at least 0.9
    >>> limit.outcome(Estimate(value=0.95, low=0.92, high=1.0, level=0.95, method="DeLong"))
    <Outcome.KEPT: 'kept'>
    """

    measure: str
    at_least: float | None = None
    at_most: float | None = None
    at: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.at_least is not None and self.at_most is not None:
            raise InvalidInput(
                f"the limit on {self.measure} has both at_least ({self.at_least}) and at_most ({self.at_most}); "
                "a measure is better in one direction only, so keep one of them."
            )
        numbers = {"at_least": self.at_least, "at_most": self.at_most, **self.at}
        for name, number in numbers.items():
            if number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise InvalidInput(
                    f"{name} of the limit on {self.measure} is {number!r}, which is not a number; write for example 0.9."
                )
            if not math.isfinite(number):
                raise InvalidInput(
                    f"{name} of the limit on {self.measure} is {number}, which can decide nothing; write a finite number."
                )
        # A limit of 0 and one of 0.0 are the same, also to the digest of a policy.
        for side in ("at_least", "at_most"):
            number = getattr(self, side)
            object.__setattr__(self, side, None if number is None else float(number))
        object.__setattr__(self, "at", {k: float(v) for k, v in self.at.items()})

    @property
    def judges(self) -> bool:
        """Whether there is anything to keep."""
        return self.at_least is not None or self.at_most is not None

    @property
    def value(self) -> float:
        """The number that must not be passed."""
        number = self.at_least if self.at_least is not None else self.at_most
        assert number is not None, "a limit without a number judges nothing"
        return number

    def outcome(self, estimate: Estimate | None) -> Outcome:
        """Return how an estimate fares: its whole interval must be on one side to decide anything."""
        if estimate is None:
            return Outcome.OPEN
        if self.at_least is not None:
            is_kept, is_broken = (
                estimate.low >= self.at_least,
                estimate.high < self.at_least,
            )
        else:
            is_kept, is_broken = estimate.high <= self.value, estimate.low > self.value
        return (
            Outcome.KEPT if is_kept else Outcome.BROKEN if is_broken else Outcome.OPEN
        )

    def __str__(self) -> str:
        side = "at least" if self.at_least is not None else "at most"
        return f"{side} {self.value:g}" if self.judges else "no limit"


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One thing that an audit says about a product, with its interval.

    Parameters
    ----------
    measure : str
        Name of the measure, by which a policy limits it.
    label : str
        The measure in a table: ``"privacy, outsider"``.
    words : str
        The measure as the subject of a sentence: ``"the privacy score against the outsider's best attack"``.
    better : str
        ``"higher"`` or ``"lower"``.
    estimate : Estimate or None
        The number; None if it could not be measured.
    threat : str
        Whose attack it is about (:class:`Threat`); empty if it is about none.
    compares : bool
        Whether it rests on comparing members with non-members, and so means nothing where these differ without the product.
    own_limit : Limit or None
        A limit that the product brings itself: what its maker claims of it.
    own_outcome : Outcome or None
        How that claim fared.
    sentences : mapping of str to str
        Sentences by outcome, where the usual one would not do.
    to_settle : str
        What would settle an open question about it; empty if nothing is known.
    if_broken : str
        What could help where its limit is broken; empty if that depends on more than this statement.
    """

    measure: str
    label: str
    words: str
    better: str
    estimate: Estimate | None
    threat: str = ""
    compares: bool = True
    own_limit: Limit | None = None
    own_outcome: Outcome | None = None
    sentences: Mapping[str, str] = field(default_factory=dict)
    to_settle: str = ""
    if_broken: str = ""
