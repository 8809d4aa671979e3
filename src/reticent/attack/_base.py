"""What an attacker is shown, what it may know, and what it returns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput, InvalidPredictions
from reticent.pool import Pool
from reticent.product import Internals

__all__ = ["Attack", "Challenge", "Knowledge", "Scores", "SealedTags"]


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """The product's answers on every record in question, and the records' true classes.

    There is no tag in it: which records are members is what the attacker must say.

    Parameters
    ----------
    probabilities : array of float, shape (n, c)
        The product's probability of each class for each record.
    labels : array of int, shape (n,)
        The true class of each record.
    features : array of float, shape (n, d), or None
        The records themselves as numbers, for attacks that look at them; missing values are NaN.
    internals : Internals or None
        Losses, gradients and activations at the records, for attackers who can open the product.
    """

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    features: NDArray[np.float64] | None = None
    internals: Internals | None = None

    def __post_init__(self) -> None:
        p, y = self.probabilities, self.labels
        if p.ndim != 2 or y.shape != (len(p),) or p.shape[1] < 2:
            raise InvalidPredictions(
                f"probabilities of shape {p.shape} do not fit {y.shape} labels; pass one row per "
                "record and one column per class."
            )
        if not np.isfinite(p).all():
            bad = int((~np.isfinite(p)).any(axis=1).sum())
            raise InvalidPredictions(
                f"the outputs for {bad} of {len(p)} records are NaN or infinite, so no attack can be "
                "judged; repair the model or impute missing values."
            )
        if p.min(initial=0.0) < -1e-6 or abs(p.sum(axis=1) - 1).max(initial=0.0) > 0.02:
            raise InvalidPredictions(
                f"the outputs span [{p.min():.3g}, {p.max():.3g}] and do not sum to 1 per record, so they "
                "are not probabilities; pass predict_proba's result."
            )
        if len(y) and (y.min() < 0 or y.max() >= p.shape[1]):
            raise InvalidPredictions(
                f"labels span {y.min()} to {y.max()} but there are {p.shape[1]} classes; number "
                "the classes from 0."
            )
        if self.features is not None and len(self.features) != len(p):
            raise InvalidPredictions(
                f"there are {len(self.features)} records but answers on {len(p)}; pass one of each per record."
            )
        if self.internals is not None:
            self._must_be_of_the_same_product(self.internals)

    def __len__(self) -> int:
        return len(self.labels)

    def need_internals(self, attack: str) -> Internals:
        """Return what is inside the product, or say that an attack cannot do without."""
        if self.internals is None:
            raise InvalidInput(
                f"the attack {attack!r} looks at gradients, but the product cannot be opened; audit a network, or leave the "
                "attack out."
            )
        return self.internals

    def _must_be_of_the_same_product(self, seen: Internals) -> None:
        if len(seen) != len(self):
            raise InvalidPredictions(
                f"there are gradients at {len(seen)} records but answers on {len(self)}; pass one of each per record."
            )
        apart = abs(np.exp(-seen.losses) - self.true_class_probability())
        if apart.max(initial=0.0) > 0.02:
            raise InvalidPredictions(
                f"the losses of the opened product and its answers disagree on {int((apart > 0.02).sum())} of {len(self)} records, so they "
                "are of different products, or count the classes in another order; take both from one product."
            )

    def true_class_probability(self) -> NDArray[np.float64]:
        """Return the probability the product gave to each record's true class."""
        picked = self.probabilities[np.arange(len(self)), self.labels]
        return np.clip(picked, 0.0, 1.0)


class SealedTags:
    """Membership tags that can be read only for records other than those to be scored.

    Parameters
    ----------
    tags : array of bool
        Whether each record of the challenge is a member.
    units : array of int
        The unit each record belongs to: all its records are sealed together.
    """

    def __init__(self, tags: NDArray[np.bool_], units: NDArray[np.int64]) -> None:
        if len(tags) != len(units):
            raise InvalidInput(
                f"{len(tags)} tags do not fit {len(units)} units; pass one of each per record."
            )
        self.__tags, self.__units = tags, units

    def folds(
        self, count: int, *, rng: np.random.Generator
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]]:
        """Yield records to learn from, their tags, and records to score.

        Every record is scored once, by an attack that saw the tag of no record of its unit.
        Folds hold equal shares of members and non-members.
        """
        units, unit_of_row = np.unique(self.__units, return_inverse=True)
        tag_of_unit = np.zeros(len(units), dtype=bool)
        tag_of_unit[unit_of_row] = self.__tags
        fold_of_unit = np.empty(len(units), dtype=np.int64)
        for tag in (False, True):
            its = rng.permutation(np.flatnonzero(tag_of_unit == tag))
            fold_of_unit[its] = np.arange(len(its)) % count
        fold = fold_of_unit[unit_of_row]
        for k in range(count):
            learn = np.flatnonzero(fold != k)
            yield learn, self.__tags[learn], np.flatnonzero(fold == k)


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What an attacker has beside the product's answers.

    Parameters
    ----------
    tags : SealedTags
        Tags of other records; never of the record to be scored.
    pool : Pool or None
        Models trained on known parts of the same records.
    """

    tags: SealedTags
    pool: Pool | None = None

    def need_pool(self, attack: str) -> Pool:
        """Return the pool, or say that an attack cannot do without."""
        if self.pool is None:
            raise InvalidInput(
                f"the attack {attack!r} compares with other models, but there is no pool; audit with a pool."
            )
        return self.pool


@dataclass(frozen=True, kw_only=True)
class Scores:
    """One number per record of the challenge; larger means more like a member.

    Parameters
    ----------
    values : array of float
        The scores, without NaN.
    probabilities : array of float or None
        Predicted probability of membership, if the attack makes one.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if np.isnan(self.values).any():
            raise InvalidPredictions(
                f"an attack gave {np.isnan(self.values).sum()} NaN scores, which have no rank; "
                "an attack must score every record."
            )


@runtime_checkable
class Attack(Protocol):
    """A recipe with one verb: score the records of a challenge."""

    @property
    def name(self) -> str:
        """Short name, as policies and dossiers use it."""
        ...

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return a score per record, larger meaning more like a member."""
        ...
