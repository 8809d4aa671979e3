"""Two defences that people try first: ordinary label smoothing, and distillation. Neither hides who was trained on; an audit shows it.

They change what a model is taught, as soft labels do, without teachers that never saw the record. They are here to be compared with.

References
----------
.. [1] Szegedy et al., "Rethinking the Inception architecture for computer vision", arXiv:1512.00567, Section 7.
.. [2] Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", arXiv:1503.02531.
"""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee
from reticent.data import Table
from reticent.errors import InvalidInput, InvalidSpec
from reticent.product import Trainer, answers_of, as_product
from reticent.run import Content, content_of
from reticent.train._plain import PlainTrainer, must_fit

__all__ = ["Distillation", "LabelSmoothing", "Retaught", "RetaughtTrainer"]

# Probabilities below this are not told apart, so that a temperature can be applied to their logarithms.
FLOOR = 1e-6
MEMORY = 2.0  # gigabytes for the teacher of a single product, as for a pool
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Retaught:
    """A recipe that teaches a model something else than its labels.

    Parameters
    ----------
    trainer : object
        What is trained: a recipe, an estimator, a trainer or a line of text.
    """

    trainer: Any

    @property
    @abstractmethod
    def has_teacher(self) -> bool:
        """Whether targets come from a model that is trained on the same records first."""

    @abstractmethod
    def targets(self, labels: Array, taught: Array | None) -> Array:
        """Return what is learned of each record, from its one-hot class and from what the teacher says of it."""


@dataclass(frozen=True)
class LabelSmoothing(Retaught):
    """Train on ``(1 - share) * label + share / classes`` (Section 7 of [1]_).

    The target of a record depends on its own label alone, so a guarantee of the training inside remains.

    Parameters
    ----------
    trainer : object
        What is trained.
    share : float
        Weight of equal probabilities, in (0, 1).

    Examples
    --------
    >>> LabelSmoothing("reticent.Network()", share=0.2).targets(np.array([[1.0, 0.0]]), None)
    array([[0.9, 0.1]])
    """

    share: float = field(default=0.1, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(
                f"share must lie in (0, 1), got {self.share!r}: it is the weight of equal probabilities."
            )

    @property
    def has_teacher(self) -> bool:
        """Whether targets come from a teacher: no."""
        return False

    def targets(self, labels: Array, taught: Array | None) -> Array:
        """Return the smoothed labels."""
        return np.asarray((1 - self.share) * labels + self.share / labels.shape[1])


@dataclass(frozen=True)
class Distillation(Retaught):
    """Train on the answers of a teacher that was trained on the same records ([2]_).

    The teacher has seen every record that it is asked about, and what it remembers of them it passes on: unlike
    :class:`reticent.SoftLabels`, this is no defence. Nothing is guaranteed about it, whatever the training inside guarantees.

    Parameters
    ----------
    trainer : object
        What teacher and student are.
    temperature : float
        The teacher's logits are divided by it; above 1 its answers are flatter.
    """

    temperature: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        if not 0 < self.temperature < np.inf:
            raise InvalidInput(
                f"temperature must be positive and finite, got {self.temperature!r}; 1 leaves the teacher's answers as they are."
            )

    @property
    def has_teacher(self) -> bool:
        """Whether targets come from a teacher: yes."""
        return True

    def targets(self, labels: Array, taught: Array | None) -> Array:
        """Return the teacher's answers at the temperature."""
        assert taught is not None, "the teacher was asked"
        flat = np.asarray(taught, dtype=np.float64).clip(FLOOR, None)
        flat = flat ** (1 / self.temperature)
        return np.asarray(flat / flat.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class RetaughtTrainer(PlainTrainer):
    """Train a model on smoothed labels, or on its own teacher's answers.

    Parameters
    ----------
    how : Retaught
        How targets are made.
    inner : Trainer
        What is trained on them.
    recipe : str
        Description from which the trainer can be built again.
    """

    how: Retaught
    inner: Trainer
    recipe: str

    def __post_init__(self) -> None:
        if self.inner.quantity:
            raise InvalidSpec(
                f"the trainer {self.inner.recipe} predicts a quantity, but {type(self.how).__name__} is about classes; use reticent.SoftLabels for a "
                "quantity."
            )
        self.inner.student()  # one that takes hard labels only is refused before the audit begins

    @property
    def chunk(self) -> int:
        """Number of models that are best trained in one pass: as many as inside."""
        return self.inner.chunk

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again."""
        return self.inner.repeatable

    @property
    def prepares(self) -> bool:
        """Whether the columns are prepared by what enough people have."""
        return self.inner.prepares

    def content(self) -> Content:
        """Return how targets are made, and what the training inside depends on."""
        settings = {k: v for k, v in vars(self.how).items() if k != "trainer"}
        how = content_of(type(self.how).__name__, repr(sorted(settings.items())))
        return how + self.inner.content()

    def prepared(self, table: Table) -> Table:
        """Return the table as the training inside prepares it."""
        return self.inner.prepared(table)

    def must_be_storable(self, table: Table) -> None:
        """Refuse a product that could not be saved."""
        self.inner.must_be_storable(table)

    def guarantee(self, rows: int) -> Guarantee | None:
        """Return the guarantee of the training inside, if targets come from a record's own label alone; else None."""
        return None if self.how.has_teacher else self.inner.guarantee(rows)

    def train(self, table: Table, *, seed: int) -> Any:
        """Return a product trained on all records of a table."""
        taught = None
        if self.how.has_teacher:
            teacher = as_product(self.inner.train(table, seed=seed))
            taught = answers_of(teacher, table.features).astype(np.float64)
        targets = self.how.targets(_one_hot(table), taught)
        return self.inner.student().train_on(table, targets, seed=seed)

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records, shape (M, n, c), teachers trained anew for each."""
        must_fit(table, masks, seeds)
        taught = None
        if self.how.has_teacher:
            taught = self.inner.train_many(table, masks, seeds, memory=memory)
        targets = self.how.targets(_one_hot(table), taught)
        return self.inner.student().train_many_on(
            table, masks, targets, seeds, memory=memory
        )


def _one_hot(table: Table) -> Array:
    return np.asarray(np.eye(len(table.classes))[table.target])
