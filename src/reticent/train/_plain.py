"""What a trainer is capable of by default: one model at a time, and no guarantee."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee, Terms
from reticent.data import Table
from reticent.errors import InvalidInput, InvalidSpec
from reticent.product import (
    Procedure,
    Student,
    Watchable,
    answers_of,
    as_product,
)
from reticent.run import Content, code_of, content_of

__all__ = ["PlainTrainer", "WrappedTrainer", "must_fit"]


class PlainTrainer(ABC):
    """A trainer that lacks only ``recipe`` and ``train``.

    Derive from it to add a trainer: everything else has a default that is right for a training without noise that trains
    one model after another. Override what your trainer does better.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from reticent.data import builtin_table
    >>> from reticent.product import FittedProduct
    >>> @dataclass(frozen=True)
    ... class Stump(PlainTrainer):
    ...     recipe: str = "a tree with one question"
    ...
    ...     def train(self, table, *, seed):
    ...         tree = DecisionTreeClassifier(max_depth=1, random_state=seed)
    ...         tree.fit(table.features, table.target)
    ...         return FittedProduct(estimator=tree, classes=table.classes)
    >>> table = builtin_table()
    >>> masks = np.ones((2, len(table)), dtype=bool)
    >>> Stump().train_many(table, masks, np.arange(2), memory=1.0).shape
    (2, 442, 2)
    """

    recipe: str

    @abstractmethod
    def train(self, table: Table, *, seed: int) -> Any:
        """Return a product trained on all records of a table, in their order."""

    @property
    def quantity(self) -> bool:
        """Whether products predict a quantity: no, they predict a class."""
        return False

    @property
    def chunk(self) -> int:
        """Number of models that are best trained in one pass: one."""
        return 1

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again."""
        return True

    def content(self) -> Content:
        """Return the recipe, the parameters and the code of the class: everything that a product depends on besides table and seed."""
        return _content_of_object(self, self.recipe)

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records, shape (M, n, c), trained one after another.

        Parameters
        ----------
        table : Table
            All n records.
        masks : array of bool, shape (M, n)
            Which records train which model.
        seeds : array of int, shape (M,)
            Training seed of each model.
        memory : float
            Gigabytes that the models may take; not used, because fewer than one model at a time cannot be trained.
        """
        must_fit(table, masks, seeds)
        return np.stack(
            [
                self._answers(table, mask, int(seed))
                for mask, seed in zip(masks, seeds, strict=True)
            ]
        )

    def prepared(self, table: Table) -> Table:
        """Return the table unchanged."""
        return table

    def guarantee(self, rows: int) -> Guarantee | None:
        """Return None: nothing bounds what a product reveals about a record."""
        return None

    def table_guarantee(self, table: Table, terms: Terms) -> Guarantee | None:
        """Return None: what it guarantees does not depend on the columns of a table."""
        return None

    def sampling(self, rows_per_record: float) -> "PlainTrainer":
        """Return the trainer itself: models have no rows to sample."""
        return self

    def must_be_storable(self, table: Table) -> None:  # noqa: B027 (a default, not a gap)
        """Refuse nothing: whether a product can be saved is only known once it is trained."""

    def watching(self) -> Watchable | None:
        """Return None: there are no noisy steps to watch."""
        return None

    def procedure(self) -> Procedure | None:
        """Return None: it is one training."""
        return None

    @property
    def prepares(self) -> bool:
        """Whether it prepares the columns by reticent's own rules: not known of a trainer of one's own."""
        return False

    def parameters(self) -> Mapping[str, Any]:
        """Return nothing: of a trainer of one's own it is not known what could be changed about it."""
        return {}

    def student(self) -> Student:
        """Refuse: of a trainer of one's own it is not known how it learns anything but labels.

        Raises
        ------
        InvalidSpec
            Always; override it if your trainer can learn class probabilities.
        """
        raise InvalidSpec(
            f"the trainer {self.recipe} takes hard labels only, so it cannot learn soft ones; use a reticent.Network(...), a forest, or a "
            "classifier that takes sample weights, or give your trainer a method student()."
        )

    def _answers(
        self, table: Table, mask: NDArray[np.bool_], seed: int
    ) -> NDArray[Any]:
        product = as_product(self.train(table.take(np.flatnonzero(mask)), seed=seed))
        return answers_of(product, table.features)


@dataclass(frozen=True)
class WrappedTrainer(PlainTrainer):
    """An object with ``recipe`` and ``train``, given the capabilities of a plain trainer.

    Parameters
    ----------
    thing : object
        The user's trainer.
    """

    thing: Any

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The description that the object gives of itself."""
        return str(self.thing.recipe)

    def train(self, table: Table, *, seed: int) -> Any:
        """Return what the object trains."""
        return self.thing.train(table, seed=seed)

    def content(self) -> Content:
        """Return the recipe, the parameters and the code of the object's class."""
        return _content_of_object(self.thing, self.recipe)


def _content_of_object(thing: object, recipe: str) -> Content:
    kind, parameters = type(thing), sorted(getattr(thing, "__dict__", {}).items())
    values = (value for pair in parameters for value in pair)
    return content_of(recipe, kind.__qualname__, *values) + code_of(kind)


def must_fit(table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]) -> None:
    """Refuse masks and seeds unless there is one of each per model and masks have one column per record.

    Raises
    ------
    InvalidInput
        If the shapes do not fit.
    """
    if masks.ndim != 2 or masks.shape[1] != len(table) or len(seeds) != len(masks):
        raise InvalidInput(
            f"masks of shape {masks.shape} and {len(seeds)} seeds do not fit {len(table)} records; pass one row "
            "and one seed per model."
        )
