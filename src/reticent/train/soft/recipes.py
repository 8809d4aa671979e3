"""Recipes of soft labels: plain descriptions, which can be written and read without training anything."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.soft.targets import (
    LeaveOut,
    mixed_targets,
    repaired_targets,
    shift_alphas,
    shifted_targets,
)

__all__ = ["PerRecord", "RepairedLabels", "SoftLabels", "Taught", "Validated"]

# Most teachers of one model: beyond, a recipe is a slip of the keyboard and would take days.
MOST_TEACHERS = 1000


@dataclass(frozen=True, kw_only=True)
class PerRecord:
    r"""Choose alpha for each record by how far training on it moves a teacher's answer.

    With :math:`d_i` the difference between the mean logits of the label of teachers that trained on record i and of those that did
    not, in standard deviations of the latter, :math:`\alpha_i = \min(\mathrm{most}, \tau \, \mathrm{median}(d) / d_i)`. A record that
    teachers hardly notice may keep its label; one that they would memorise is taught as others see it.

    Parameters
    ----------
    most : float
        Largest alpha of any record.
    tau : float
        Share of the median shift that a record may be moved by, in standard deviations.
    reference : float, optional
        A number in place of the median of the shifts. The median depends on all records, so that private training needs a number that
        was not derived from them.
    """

    most: float = 1.0
    tau: float = 0.5
    reference: float | None = None

    def __post_init__(self) -> None:
        given = [self.most, self.tau]
        given += [] if self.reference is None else [self.reference]
        if not all(_is_number(value) and value > 0 for value in given):
            raise InvalidInput(
                f"most, tau and reference of PerRecord must be positive, got {self.most!r}, {self.tau!r} and {self.reference!r}; take "
                "PerRecord(most=1.0, tau=0.5), or alpha=0 for the teachers' answers alone."
            )

    def alphas(self, answers: LeaveOut) -> NDArray[np.float64]:
        """Return the alpha of each record."""
        return shift_alphas(
            answers, most=self.most, tau=self.tau, reference=self.reference
        )


@dataclass(frozen=True, kw_only=True)
class Validated:
    """Choose alpha by cross-validation inside the training records.

    The whole procedure, teachers included, is repeated without each fold, and the alpha with the fewest wrong answers on the records
    left out is taken; of equal ones the smallest. The choice is part of the procedure, so every model of an attacker makes it anew. It
    multiplies the training time by about ``folds``.

    Parameters
    ----------
    alphas : tuple of float
        The alphas among which is chosen.
    folds : int
        Number of parts that are left out in turn.
    """

    alphas: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0)
    folds: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "alphas", tuple(self.alphas))  # a list is fine too
        if len(self.alphas) < 2 or not all(_is_alpha(value) for value in self.alphas):
            raise InvalidInput(
                f"alphas of Validated must be two or more numbers of at least 0, got {self.alphas!r}; for one alpha write alpha=0.5."
            )
        if self.folds < 2:
            raise InvalidInput(
                f"folds of Validated must be at least 2, got {self.folds}: a model is judged on records that it was not trained on."
            )


@dataclass(frozen=True)
class Taught(ABC):
    """What recipes with leave-out teachers share.

    Parameters
    ----------
    trainer : object
        What is trained on the soft labels: a recipe, an estimator, a trainer or a line of text.
    folds, repeats : int
        The records are divided by person into ``folds`` parts, ``repeats`` times anew, and a teacher is trained without each part. A
        record has ``repeats`` teachers that did not see it. Two folds are halvings.
    teacher : object, optional
        What teachers are, if they are trained otherwise than the student: for longer, for example.
    floor : float
        Smallest probability of a teacher that is told apart from 0, so that logits are finite. Forests and trees answer 0 for what few
        records have not shown.
    """

    trainer: Any
    folds: int = field(default=5, kw_only=True)
    repeats: int = field(default=4, kw_only=True)
    teacher: Any = field(default=None, kw_only=True)
    floor: float = field(default=1e-3, kw_only=True)

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise InvalidInput(
                f"folds must be at least 2, got {self.folds}: a teacher must not see the records that it is asked about."
            )
        if self.repeats < 2:
            raise InvalidInput(
                f"repeats must be at least 2, got {self.repeats}: the spread of the teachers' answers to a record is not known from one."
            )
        if self.teachers > MOST_TEACHERS:
            raise InvalidInput(
                f"{self.teachers:,} teachers are asked for, more than the {MOST_TEACHERS:,} allowed; lower folds or repeats."
            )
        if not 0 < self.floor < 0.1:
            raise InvalidInput(
                f"floor must lie in (0, 0.1), got {self.floor!r}: it is the smallest probability that is told apart from 0."
            )

    @property
    def teachers(self) -> int:
        """Number of teachers of one model in each round."""
        return self.folds * self.repeats

    @property
    def seen_by(self) -> int:
        """Number of teachers of all rounds that train on any given record."""
        return (self.folds - 1) * self.repeats * self.passes

    @property
    def passes(self) -> int:
        """How often teachers are trained and targets computed."""
        return 1

    @property
    def validation(self) -> Validated | None:
        """How alpha is chosen by cross-validation; None if it is not."""
        return None

    @property
    @abstractmethod
    def mixes_records(self) -> bool:
        """Whether a record's target depends on other records otherwise than through the teachers, which no noise covers."""

    @abstractmethod
    def targets(
        self, answers: LeaveOut, alpha: float | None = None
    ) -> NDArray[np.float64]:
        """Return what the student learns, (n, c), or (n, 1) for a quantity.

        Parameters
        ----------
        answers : LeaveOut
            What teachers say of the records.
        alpha : float, optional
            The alpha that validation chose, in place of the recipe's.
        """


@dataclass(frozen=True)
class SoftLabels(Taught):
    r"""Train on optimally soft labels: a defence without a guarantee of its own.

    Teachers are trained with hard labels on parts of the records. For each record, :math:`\mu_i` and :math:`\sigma_i` are the mean and
    standard deviation over the teachers that did not see it of their logits, centred over classes. The student learns
    :math:`\mathrm{softmax}(\mu_i + \alpha \sigma^*_i)` with :math:`\sigma^* = +\sigma` at the label and :math:`-\sigma` elsewhere
    (Eq. 5.15 of [1]_). A quantity is learned as the teachers' mean, moved towards its value by at most alpha standard deviations.

    Parameters
    ----------
    trainer, folds, repeats, teacher, floor
        As in :class:`Taught`. Two folds with 25 repeats are the 25 halvings of the source.
    alpha : float, PerRecord or Validated
        How many standard deviations targets are moved towards the labels. 0 is the teachers' answer; it may exceed 1, and 1 is not hard
        labels. With ``mixture`` it is the weight of the hard label, in [0, 1].
    mixture : bool
        Whether targets are ``alpha * label + (1 - alpha) * mean probability`` (Eq. 5.14) instead.
    rounds : int
        How often targets are computed; from the second round on, teachers learn the targets of the round before. Targets then drift
        towards equal probabilities: a lower alpha protects more for the same loss, so leave it at 1.

    References
    ----------
    .. [1] Pedersen, doctoral thesis, chapter 5, "Optimally soft labels".

    Examples
    --------
    >>> SoftLabels("sklearn.ensemble.RandomForestClassifier()", alpha=0.25).teachers
    20
    """

    alpha: float | PerRecord | Validated = field(default=0.5, kw_only=True)
    mixture: bool = field(default=False, kw_only=True)
    rounds: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = isinstance(self.alpha, PerRecord | Validated)
        if not rules and not _is_alpha(self.alpha):
            raise InvalidInput(
                f"alpha must be a number of at least 0, reticent.PerRecord() or reticent.Validated(), got {self.alpha!r}."
            )
        largest = self._largest_alpha()
        if self.mixture and largest > 1:
            raise InvalidInput(
                f"alpha is the weight of the hard label in a mixture, so it must be at most 1, got {largest:g}."
            )
        if self.rounds < 1:
            raise InvalidInput(f"rounds must be at least 1, got {self.rounds}.")

        if self.rounds > 1 and isinstance(self.alpha, Validated):
            raise InvalidInput(
                "alpha is chosen by validation for targets of one round, but rounds is above 1; give alpha a number, or leave rounds at 1."
            )

    @property
    def passes(self) -> int:
        """How often teachers are trained and targets computed."""
        return self.rounds

    @property
    def validation(self) -> Validated | None:
        """How alpha is chosen by cross-validation; None if it is not."""
        return self.alpha if isinstance(self.alpha, Validated) else None

    @property
    def mixes_records(self) -> bool:
        """Whether alpha depends on all records: by validation, or by the median of their shifts."""
        if isinstance(self.alpha, PerRecord):
            return self.alpha.reference is None
        return isinstance(self.alpha, Validated)

    def targets(
        self, answers: LeaveOut, alpha: float | None = None
    ) -> NDArray[np.float64]:
        """Return the targets (5.15), or (5.14) if they are mixtures."""
        chosen = self.alpha if alpha is None else alpha
        assert not isinstance(chosen, Validated), "validation has chosen an alpha"
        make = mixed_targets if self.mixture else shifted_targets
        if isinstance(chosen, PerRecord):
            return make(answers, chosen.alphas(answers))
        return make(answers, chosen)

    def _largest_alpha(self) -> float:
        if isinstance(self.alpha, PerRecord):
            return self.alpha.most
        if isinstance(self.alpha, Validated):
            return max(self.alpha.alphas)
        return float(self.alpha)


@dataclass(frozen=True)
class RepairedLabels(Taught):
    r"""Train on labels that were repaired by leave-out teachers: for accuracy under wrong labels, not for protection.

    The target is the posterior of the true class given the label: proportional to :math:`p_T(k) (1 - e)` for the given label and to
    :math:`p_T(k) e / (K - 1)` for others, where :math:`p_T` is the teachers' mean answer at temperature T. T and the share e of wrong
    labels maximise the likelihood of the given labels under answers of teachers that did not see them. If the labels are clean, e is
    near 0 and the targets are the hard labels: nothing is then hidden. Audit it as any other training.

    Parameters
    ----------
    trainer, folds, repeats, teacher, floor
        As in :class:`Taught`.
    """

    @property
    def mixes_records(self) -> bool:
        """Whether targets depend on several records: yes, temperature and noise are fitted to all of them."""
        return True

    def targets(
        self, answers: LeaveOut, alpha: float | None = None
    ) -> NDArray[np.float64]:
        """Return the posterior of each record's true class."""
        return repaired_targets(answers)[0]


def _is_number(value: object) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def _is_alpha(value: object) -> bool:
    return _is_number(value) and float(value) >= 0  # type: ignore[arg-type]
