"""What came of cleaning a product: what was done, what could not be, and by how much answers changed."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.product._protocols import Product

__all__ = [
    "SMALLEST_GROUP",
    "AnswerChange",
    "Cleaned",
    "Done",
    "Kept",
    "Notes",
    "answer_change",
]

# A name or a value that fewer people share says something about each of them; the same number as the reader's.
SMALLEST_GROUP = 20


@dataclass(frozen=True, kw_only=True)
class Done:
    """One thing that was taken out of a product.

    Parameters
    ----------
    what : str
        What was done, as a clause: ``"thresholds moved at random inside their gap"``.
    count : int
        How many of them.
    """

    what: str
    count: int

    def __str__(self) -> str:
        return f"{self.count:,} {self.what}"


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Something about single people that is still in a product.

    Parameters
    ----------
    what : str
        What it is, and in which part of the product.
    why : str
        Why it could not be taken out.
    attacked : bool
        Whether the reader of files measures what it tells, as with the trees of a forest; else nobody knows whom it names.
    """

    what: str
    why: str
    attacked: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, kw_only=True)
class AnswerChange:
    """By how much the answers of two products differ on the same records.

    Parameters
    ----------
    records : int
        Number of records that both were asked about.
    changed : int
        Records whose answers differ in any digit.
    largest : float
        Largest difference of two answers: of probabilities, decision values or predictions.
    """

    records: int
    changed: int
    largest: float

    def __str__(self) -> str:
        if not self.changed:
            return f"the answers on all {self.records:,} records are the same, digit for digit"
        return f"the answers on {self.changed:,} of {self.records:,} records changed, by at most {self.largest:.3g}"


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """A product that holds less, and what that took.

    Parameters
    ----------
    product : Product
        The new product; the old one is unchanged.
    done : tuple of Done
        What was taken out.
    kept : tuple of Kept
        What could not be taken out.
    changed : AnswerChange or None
        How answers on the members differ from the old product's; None if there were no members to ask about.
    """

    product: Product
    done: tuple[Done, ...]
    kept: tuple[Kept, ...]
    changed: AnswerChange | None


class Notes:
    """What is done and kept, collected on the way: equal things are counted together."""

    def __init__(self) -> None:
        self._done: defaultdict[str, int] = defaultdict(int)
        self._kept: dict[Kept, None] = {}

    def did(self, what: str, count: int) -> None:
        """Add so many of something that was done."""
        if count:
            self._done[what] += count

    def keep(self, what: str, why: str, *, attacked: bool = False) -> None:
        """Add something that could not be taken out."""
        self._kept[Kept(what=what, why=why, attacked=attacked)] = None

    def add(self, other: "Notes") -> None:
        """Add everything of other notes."""
        for done in other.done:
            self.did(done.what, done.count)
        self._kept.update(other._kept)

    @property
    def done(self) -> tuple[Done, ...]:
        """What was done."""
        return tuple(Done(what=what, count=n) for what, n in self._done.items())

    @property
    def kept(self) -> tuple[Kept, ...]:
        """What could not be taken out."""
        return tuple(self._kept)


def answer_change(
    before: Product | NDArray[np.float64], after: Product, features: pd.DataFrame
) -> AnswerChange:
    """Compare what two products answer.

    Parameters
    ----------
    before : Product or array
        The first product, or its outputs on the records.
    after : Product
        The second product.
    features : data frame
        The records.
    """
    old = before if isinstance(before, np.ndarray) else before.outputs(features)
    apart = np.abs(np.asarray(old) - np.asarray(after.outputs(features)))
    apart = apart.reshape(len(features), -1).max(axis=1, initial=0.0)
    return AnswerChange(
        records=len(features),
        changed=int((apart > 0).sum()),
        largest=float(apart.max(initial=0.0)),
    )
