"""What an attacker is shown, what it may know, and what it returns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from reticent.attack._searched import Searched
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import Internals, OpenedFile

__all__ = [
    "Attack",
    "Challenge",
    "Knowledge",
    "Lessons",
    "Need",
    "PermutedTags",
    "Scores",
    "SealedTags",
]

# Answers in single precision, or rounded to two digits, may be off by this much and are still probabilities.
ROUNDING = 0.02
# Probabilities below zero by less than this come from floating-point sums.
BELOW_ZERO = 1e-6


class Need(StrEnum):
    """What an attack cannot do without; whoever runs it asks for this, never for its name or type."""

    ANSWERS = "answers"  # the product's answers on the records in question
    RECORDS = "records"  # the records themselves, as numbers
    INTERNALS = "internals"  # the opened product: losses, gradients, activations
    POOL = "pool"  # models of the same recipe on known parts of the records
    AUXILIARY = "auxiliary"  # other records of the same source
    SYNTHETIC = "synthetic"  # a synthetic table
    CRITIC = "critic"  # what a generator of synthetic tables was trained against
    RECIPE = "recipe"  # the trainer, to train again
    FILE = "file"  # everything in the product's file, laid beside the records


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
    file : OpenedFile or None
        The product's file laid beside the records, for attackers who hold it.
    searched : Searched or None
        What was found of the records in that file, if it was searched before.
    """

    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]
    features: NDArray[np.float64] | None = None
    internals: Internals | None = None
    file: OpenedFile | None = None
    searched: Searched | None = None

    def __post_init__(self) -> None:
        p, y = self.probabilities, self.labels
        if p.ndim != 2 or y.shape != (len(p),) or p.shape[1] < 2:
            raise InvalidPredictions(
                f"probabilities of shape {p.shape} do not fit labels of shape {y.shape}; pass one row per "
                "record and one column per class."
            )
        if not np.isfinite(p).all():
            bad = int((~np.isfinite(p)).any(axis=1).sum())
            raise InvalidPredictions(
                f"the outputs for {bad} of {len(p)} records are NaN or infinite, so no attack can be "
                "judged; repair the model or impute missing values."
            )
        sums = p.sum(axis=1)
        if (
            p.min(initial=0.0) < -BELOW_ZERO
            or abs(sums - 1).max(initial=0.0) > ROUNDING
        ):
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
        if self.file is not None and len(self.file) != len(p):
            raise InvalidPredictions(
                f"the file was laid beside {len(self.file)} records but there are answers on {len(p)}; pass one of each per record."
            )
        if self.internals is not None:
            self._must_be_of_the_same_product(self.internals)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy of it takes, without the internals of the product."""
        size = self.probabilities.nbytes + self.labels.nbytes
        size += 0 if self.file is None else self.file.nbytes
        size += 0 if self.searched is None else self.searched.nbytes
        return size + (0 if self.features is None else self.features.nbytes)

    def take(self, rows: NDArray[np.int64]) -> "Challenge":
        """Return the same challenge with only some of the records."""
        return Challenge(
            probabilities=self.probabilities[rows],
            labels=self.labels[rows],
            features=None if self.features is None else self.features[rows],
            internals=None if self.internals is None else self.internals.take(rows),
            file=None if self.file is None else self.file.take(rows),
            searched=None if self.searched is None else self.searched.take(rows),
        )

    def need_internals(self, attack: str) -> Internals:
        """Return the internals of the product, or refuse because an attack cannot do without them."""
        if self.internals is None:
            raise InvalidInput(
                f"the attack {attack!r} looks at gradients, but the product cannot be opened; audit a network, or leave the "
                "attack out."
            )
        return self.internals

    def _must_be_of_the_same_product(self, internals: Internals) -> None:
        if len(internals) != len(self):
            raise InvalidPredictions(
                f"there are gradients at {len(internals)} records but answers on {len(self)}; pass one of each per record."
            )
        apart = abs(np.exp(-internals.losses) - self.true_class_probability())
        if apart.max(initial=0.0) > ROUNDING:
            raise InvalidPredictions(
                f"the losses of the opened product and its answers disagree on {int((apart > ROUNDING).sum())} of {len(self)} records, so they "
                "belong to different products or number the classes in another order; take both from one product."
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
        The unit each record belongs to; all records of a unit are sealed together.
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

        Every record is scored once, by an attack that saw no tag of its unit. All folds hold
        the same shares of members and non-members.
        """
        units, unit_of_row = np.unique(self.__units, return_inverse=True)
        tag_of_unit = np.zeros(len(units), dtype=bool)
        tag_of_unit[unit_of_row] = self.__tags
        fold_of_unit = np.empty(len(units), dtype=np.int64)
        for tag in (False, True):
            shuffled = rng.permutation(np.flatnonzero(tag_of_unit == tag))
            fold_of_unit[shuffled] = np.arange(len(shuffled)) % count
        fold = fold_of_unit[unit_of_row]
        for k in range(count):
            learn = np.flatnonzero(fold != k)
            yield learn, self.__tags[learn], np.flatnonzero(fold == k)

    def permuted(self, *, rng: np.random.Generator) -> "PermutedTags":
        """Return tags that were dealt to the units anew: whoever learns from them finds out what chance alone gives."""
        units, unit_of_row = np.unique(self.__units, return_inverse=True)
        tag_of_unit = np.zeros(len(units), dtype=bool)
        tag_of_unit[unit_of_row] = self.__tags
        return PermutedTags(rng.permutation(tag_of_unit)[unit_of_row], unit_of_row)


class PermutedTags(SealedTags):
    """Tags dealt at random, and so nobody's secret.

    Parameters
    ----------
    tags : array of bool
        One tag per record, the same for all records of a unit.
    units : array of int
        The unit of each record, numbered from 0.
    """

    def __init__(self, tags: NDArray[np.bool_], units: NDArray[np.int64]) -> None:
        super().__init__(tags, units)
        self._tags, self._units = tags, units

    def deviation(self, scores: NDArray[np.float64]) -> float:
        """Return by how many standard deviations of untrained scores the LTU accuracy of these scores exceeds one half."""
        per_unit = np.bincount(self._units, weights=scores) / np.bincount(self._units)
        tags = np.zeros(len(per_unit), dtype=bool)
        tags[self._units] = self._tags
        members, others = int(tags.sum()), int((~tags).sum())
        ranks = rankdata(per_unit)
        accuracy = (ranks[tags].sum() - members * (members + 1) / 2) / (
            members * others
        )
        deviation = np.sqrt((members + others + 1) / (12 * members * others))
        return float((accuracy - 0.5) / deviation)


AnyPool = TypeVar("AnyPool")
T = TypeVar("T")


class Lessons:
    """What attacks have learned from a pool alone, so that whoever attacks several products beside one pool learns it once."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def once(self, name: str, learn: Callable[[], T]) -> T:
        """Return what was learned under a name; learn it if nobody has.

        Parameters
        ----------
        name : str
            Of the attack.
        learn : callable
            Returns the lesson. It may use pool and records, and nothing that the product says: other products are judged by it, too.

        Examples
        --------
        >>> lessons = Lessons()
        >>> lessons.once("median", lambda: 3), lessons.once("median", lambda: 4)
        (3, 3)
        """
        if name not in self._known:
            self._known[name] = learn()
        known: T = self._known[name]
        return known


@dataclass(frozen=True, kw_only=True)
class Knowledge(Generic[AnyPool]):
    """What an attacker has besides the product's answers.

    Parameters
    ----------
    tags : SealedTags
        Tags of other records; never of the record to be scored.
    pool : Pool or None
        Models trained on known parts of the same records.
    lessons : Lessons or None
        Where attacks on other products, beside the same pool and records, leave what they have learned; None if there are no others.
    """

    tags: SealedTags
    pool: AnyPool | None = None
    lessons: Lessons | None = None

    def need_pool(self, attack: str) -> AnyPool:
        """Return the pool, or refuse because an attack cannot do without it."""
        if self.pool is None:
            raise InvalidInput(
                f"the attack {attack!r} compares with other models, but there is no pool; audit with a pool."
            )
        return self.pool

    def lesson(self, attack: str, learn: Callable[[], T]) -> T:
        """Return what an attack learns from the pool alone, now or when it attacked another product; see :meth:`Lessons.once`."""
        return learn() if self.lessons is None else self.lessons.once(attack, learn)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """One number per record of the challenge; larger means more like a member.

    Parameters
    ----------
    values : array of float
        The scores, without NaN.
    probabilities : array of float or None
        Predicted probability of membership, if the attack predicts one.
    spread : float
        How much wider the LTU accuracy of such scores spreads, where nothing leaks, than that of scores that were not learned from tags; at
        least 1. Scores that are cross-fitted with few parameters share what they learned, and their accuracies vary together.
    """

    values: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None
    spread: float = 1.0

    def __post_init__(self) -> None:
        if np.isnan(self.values).any():
            raise InvalidPredictions(
                f"{np.isnan(self.values).sum()} scores of an attack are NaN, which has no rank; "
                "return a number for every record."
            )
        if not self.spread >= 1:
            raise InvalidPredictions(
                f"the spread of an attack's scores must be at least 1, got {self.spread}."
            )


@runtime_checkable
class Attack(Protocol):
    """A recipe with one verb: score the records of a challenge."""

    @property
    def name(self) -> str:
        """Short name, as policies and dossiers use it; unique in an audit."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What the attack cannot do without."""
        ...

    def score(
        self, challenge: Any, *, knowledge: Any, rng: np.random.Generator
    ) -> Scores:
        """Return one score per record; larger means more like a member.

        Parameters
        ----------
        challenge : Challenge or RegressionChallenge
            What the product shows, by its kind.
        knowledge : Knowledge
            What else the attacker knows.
        rng : numpy.random.Generator
            The attack's own stream.
        """
        ...
