"""Train a module of the user on a public table's labels and the defender's unlabelled records."""

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import Table, read_table
from reticent.errors import InvalidInput, InvalidSpec, InvalidTable
from reticent.product import Encoder, Student
from reticent.run import Content, content_of
from reticent.train.networks import (
    Encoded,
    Lesson,
    ModuleTrainer,
    as_trainer_failure,
)
from reticent.train.recipes import AdaptedModule

if TYPE_CHECKING:
    import torch

    from reticent.train.modules import Modules

__all__ = ["AdaptedModuleTrainer"]


@dataclass(frozen=True, kw_only=True)
class AdaptedModuleTrainer(ModuleTrainer):
    """Train modules by domain adaptation from a public source; needs the extra ``torch``.

    Columns are encoded and scaled by the values of the source, so that the defender's records reach the product through
    the weights alone, and their labels not at all.

    Parameters
    ----------
    training : AdaptedModule
        The source, and how the module is adapted from it.
    chunk : int
        Number of modules in one pass: one, because adapted modules are trained one by one.
    """

    training: AdaptedModule
    chunk: int = 1

    def content(self) -> Content:
        """Return the training, the code of the module, and the content of the source's file."""
        source = Path(self.training.source)
        digest = (
            hashlib.sha256(source.read_bytes()).hexdigest() if source.is_file() else ""
        )
        return super().content() + content_of(digest)

    def must_be_storable(self, table: Table) -> None:
        """Refuse a source that does not fit the table, or a module that cannot be saved, before time is spent on training."""
        self._source(table)
        super().must_be_storable(table)

    def _encoder(self, table: Table) -> Encoder:
        return Encoder.of(self._source(table))

    def _encode(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> Encoded:
        source = self._source(table)
        encoder = Encoder.of(source)
        everyone = np.ones((1, len(source)), dtype=bool)
        centre, scale = encoder.standardisation(
            encoder.matrix(source.features), everyone
        )
        return Encoded(
            encoder=encoder,
            matrix=encoder.matrix(table.features),
            centres=np.repeat(centre, len(masks), axis=0),
            scales=np.repeat(scale, len(masks), axis=0),
        )

    def student(self) -> Student:
        """Refuse: the labels of the defender's records are not used at all, so softer ones change nothing."""
        raise InvalidSpec(
            f"the trainer {self.recipe} learns no label of these records, so soft labels change nothing; use a reticent.Module(...) for "
            "labels of your own records."
        )

    def _fit(self, encoded: Encoded, lesson: Lesson) -> "Modules":
        import torch

        from reticent.train.adaptation import train_adapted
        from reticent.train.modules import Modules

        table = lesson.table
        source = self._source(table)
        # A class has the same number on both sides: that of the defender's table.
        order = [table.classes.index(name) for name in source.classes]
        classes = np.eye(len(order), dtype=np.float32)[np.array(order)[source.target]]
        public = _scaled(encoded, encoded.encoder.matrix(source.features))
        records = _scaled(encoded, encoded.matrix)
        make = functools.partial(self.make, encoded.encoder.width, len(order))
        with as_trainer_failure(self.recipe):
            modules = [
                train_adapted(
                    make,
                    public,
                    torch.from_numpy(classes),
                    records[torch.from_numpy(mask)],
                    self.training,
                    int(seed),
                )
                for mask, seed in zip(lesson.masks, lesson.seeds, strict=True)
            ]
        return Modules(
            modules=tuple(model.modules[0] for model in modules),
            together=False,
            stackable=True,
            why=modules[0].why,
        )

    def _source(self, table: Table) -> Table:
        """Return the labelled source, which must have the columns and classes of a table."""
        path = Path(self.training.source)
        target = self.training.target or _target_of(path, table)
        try:
            source = read_table(path, target=target, schema=table.schema)
        except InvalidTable as error:
            raise InvalidInput(
                f"the source {path.name} of the adaptation does not fit the defender's table: {error}"
            ) from error
        if sorted(source.classes) != sorted(table.classes):
            raise InvalidInput(
                f"the source {path.name} has the classes {', '.join(source.classes[:5])} but the defender's table has "
                f"{', '.join(table.classes[:5])}, so no module can learn them from it; use a source with the same classes."
            )
        return source


def _scaled(encoded: Encoded, matrix: NDArray[np.float32]) -> "torch.Tensor":
    """Return records as the module sees them: standardised, with 0 for a missing number."""
    import torch

    scaled = (matrix - encoded.centres[0]) / encoded.scales[0]
    return torch.from_numpy(np.nan_to_num(scaled))


def _target_of(path: Path, table: Table) -> str:
    """Return the only column of the source that is not a feature of the defender's table."""
    if not path.is_file():
        raise InvalidInput(
            f"there is no file {path} to adapt from; give the path of the labelled source."
        )
    if path.suffix in (".parquet", ".pq"):
        columns = [str(name) for name in pd.read_parquet(path).columns]
    else:
        columns = [str(name) for name in pd.read_csv(path, nrows=0).columns]
    others = [name for name in columns if name not in table.features.columns]
    if len(others) != 1:
        named = ", ".join(others[:5]) or "none"
        raise InvalidInput(
            f"the source {path.name} must have one column besides the features of the defender's table, which holds the classes, but has "
            f"{len(others)} ({named}); name that column with target=, and remove the others."
        )
    return others[0]
