"""What reticent asks of products and trainers, and nothing more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.account import Guarantee, Relation, Target, Terms
from reticent.data import Table
from reticent.product.internals import Internals
from reticent.run import Content, Workers

__all__ = [
    "Departure",
    "Predictor",
    "Procedure",
    "Product",
    "Regressor",
    "Student",
    "Trainer",
    "Watchable",
]


@runtime_checkable
class Predictor(Protocol):
    """A classifier as it would be released: it answers queries."""

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class, in the order of the table's classes."""
        ...

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by: probabilities or decision values."""
        ...


@runtime_checkable
class Regressor(Protocol):
    """A regression model as it would be released: it answers queries."""

    def predict(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the predicted quantity of each record, shape (n,)."""
        ...

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by: the predictions, shape (n, 1)."""
        ...


@runtime_checkable
class Product(Protocol):
    """What may be released, of any kind: it answers queries and describes itself.

    A product that predicts a class is a :class:`Predictor` as well; one that predicts a quantity is a :class:`Regressor`.
    """

    @property
    def quantity(self) -> bool:
        """Whether it predicts a quantity; else it predicts a class."""
        ...

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the class numbers that the product was trained on; empty if it knows the names itself."""
        ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What users should know about the training."""
        ...

    @property
    def has_probabilities(self) -> bool:
        """Whether the product itself gives its answers; else they are decision values turned into probabilities."""
        ...

    @property
    def file_name(self) -> str:
        """Name of the file in a folder that the product is saved to."""
        ...

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return what two products are compared by, one row per record."""
        ...

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return answers (a probability per class, or one prediction) and outputs, one row per record, of one query where both follow from it."""
        ...

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return losses, gradients and activations at records with these classes; None if the product cannot be opened."""
        ...

    def save(self, file: Path) -> None:
        """Write the product to a file.

        Raises
        ------
        OutputRefused
            If it cannot be stored without pickle or code.
        """
        ...


@runtime_checkable
class Trainer(Protocol):
    """A recipe that turns records into a product, and says what it is capable of.

    :class:`reticent.train.PlainTrainer` implements everything but ``recipe`` and ``train``.
    """

    @property
    def recipe(self) -> str:
        """A description from which the trainer can be built again."""
        ...

    @property
    def quantity(self) -> bool:
        """Whether products predict a quantity; else they predict a class."""
        ...

    @property
    def chunk(self) -> int:
        """Number of models that are best trained in one pass; 1 if they are trained one by one.

        It depends on the trainer alone, so that a pool has the same chunks on every machine.
        """
        ...

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again; not if its noise is secret."""
        ...

    def content(self) -> Content:
        """Return everything that a product depends on besides the table and the seed."""
        ...

    def train(self, table: Table, *, seed: int) -> Any:
        """Return a product trained on all records of a table, in their order."""
        ...

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records, shape (M, n, c), or (M, n, 1) for a quantity.

        The models are one chunk and are trained in this process; the caller distributes chunks over processes.
        They are never released, so their noise, if there is any, comes from the seeds.

        Parameters
        ----------
        table : Table
            All n records.
        masks : array of bool, shape (M, n)
            Which records train which model.
        seeds : array of int, shape (M,)
            Training seed of each model.
        memory : float
            Gigabytes that the models may take, not counting the records; it changes no result.
        """
        ...

    def prepared(self, table: Table) -> Table:
        """Return the table in the form from which ``train_many`` learns fastest: encoded once for all models, if that changes no result."""
        ...

    def guarantee(self, rows: int) -> Guarantee | None:
        """Return the guarantee of a product trained on ``rows`` rows, at delta 1 / (10 rows) under add/remove; None if there is none."""
        ...

    def table_guarantee(self, table: Table, terms: Terms) -> Guarantee | None:
        """Return what a product made of this table guarantees, if that depends on its columns, as for synthetic tables; None for models."""
        ...

    def sampling(self, rows_per_record: float) -> "Trainer":
        """Return the same recipe for products with so many rows for each record, as synthetic tables have them; itself for models."""
        ...

    def must_be_storable(self, table: Table) -> None:
        """Refuse a product that could not be saved, before time is spent on training it.

        Raises
        ------
        OutputRefused
            If a product of this trainer cannot be written down without code.
        """
        ...

    def watching(self) -> "Watchable | None":
        """Return the training in a form that can be watched step by step; None if it has no noisy steps."""
        ...

    @property
    def prepares(self) -> bool:
        """Whether it prepares the columns itself, by what enough people have."""
        ...

    def parameters(self) -> Mapping[str, Any]:
        """Return the parameters that its recipe could be written with, and their values; empty if they are not known."""
        ...

    def procedure(self) -> "Procedure | None":
        """Return the guarantee of several private trainings taken together, which can be worked out; None if it is one training or has none."""
        ...

    def student(self) -> "Student":
        """Return the same training on targets in place of labels, such as class probabilities.

        Raises
        ------
        InvalidSpec
            If it takes hard labels only.
        """
        ...


class Procedure(Protocol):
    """Several private trainings whose products go into one, and are paid for together."""

    @property
    def stated_rows(self) -> tuple[int, ...]:
        """The numbers of rows that its trainings were planned for, where they state one."""
        ...

    def guarantee_on(
        self, rows: int, terms: Terms, *, largest_unit: int = 1
    ) -> Guarantee | None:
        """Return what the whole procedure guarantees in the given terms; None if a part adds no noise.

        Parameters
        ----------
        rows : int
            Number of records that a product is trained on.
        terms : Terms
            Delta, relation, prior and false-positive rate.
        largest_unit : int
            Largest number of rows that one person has.
        """
        ...

    def keeping(
        self, target: Target, *, rows: int, delta: float, relation: Relation
    ) -> object:
        """Return the recipe with the least noise with which the whole procedure meets a target.

        Raises
        ------
        InvalidInput
            If no noise in its trainings could keep it.
        """
        ...


class Student(Protocol):
    """A training on targets that stand in place of the table's labels: class probabilities, or other quantities."""

    def train_on(
        self, table: Table, targets: NDArray[np.floating[Any]], *, seed: int
    ) -> Any:
        """Return a product trained on all records of a table, in their order.

        Parameters
        ----------
        table : Table
            The records.
        targets : array of float, shape (n, c), or (n, 1) for a quantity
            What is learned of each record.
        seed : int
            Training seed.
        """
        ...

    def train_many_on(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        targets: NDArray[np.floating[Any]],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records, as :meth:`Trainer.train_many` does.

        Parameters
        ----------
        table, masks, seeds, memory
            As in :meth:`Trainer.train_many`.
        targets : array of float, shape (n, c) or (M, n, c)
            What is learned of each record, by all models or by each; those of non-members are not read.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Departure:
    """How a watched training departs from DP-SGD; by default it does not.

    Parameters
    ----------
    local : str, optional
        Scale the noise to the records instead of the clipping's bound: empirical, not DP. ``"pair"`` takes the distance between the two
        shares, as the source does; ``"own"`` takes the longest share in the table that is used, which a holder of
        that table can compute, and which differs between the tables.
    shuffled : bool
        Whether batches are cut from a shuffled table instead of Poisson sampling. The second table then has an empty place
        where the first one has the record.
    """

    local: Literal["pair", "own"] | None = None
    shuffled: bool = False


class Watchable(Protocol):
    """A private training whose every step can be watched by an observer."""

    @property
    def recipe(self) -> str:
        """A description from which the trainer can be built again."""
        ...

    @property
    def private(self) -> Any:
        """The recipe of the steps, a :class:`reticent.train.recipes.Private`, whose type is defined above this package."""
        ...

    def content(self) -> Content:
        """Return everything that the steps depend on besides the table and the seeds."""
        ...

    def watch(
        self,
        table: Table,
        *,
        own: int,
        other: int | None = None,
        seeds: Sequence[int],
        columns_seed: int,
        departure: Departure,
        workers: Workers | None = None,
    ) -> tuple[Any, Any]:
        """Train on one of two neighbouring tables per seed; return what was observed, and which table was used.

        What is known of the columns, if it is learned, follows from ``columns_seed`` alone. The result is a :class:`reticent.pool.Trace`
        and a :class:`reticent.pool.Truth`, whose types are defined above this package.
        """
        ...

    def gradients_at_start(
        self, table: Table, rows: Sequence[int], *, seed: int
    ) -> NDArray[np.float32]:
        """Return the clipped gradients of the given records at the initial weights, one row per record."""
        ...

    def for_rows(self, rows: int) -> Any:
        """Return the trainer of the same training for a public number of rows, from which sampling rate and steps follow."""
        ...

    def unclipped(self) -> "Watchable":
        """Return the same training without clipping: gradients of any length are left unchanged."""
        ...
