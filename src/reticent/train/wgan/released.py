"""A critic as whoever holds its file sees it: from records to one number each."""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.errors import InvalidInput, OutputRefused
from reticent.run import Content, content_of, pack, unpack, write_bytes
from reticent.train.marginals.columns import Categories, Column, Numbers
from reticent.train.wgan.activations import LeakyReLU, MaxMin
from reticent.train.wgan.coding import Coding, Levels, Piece, Ranks
from reticent.train.wgan.critics import Critic, values_and_factors

__all__ = ["ReleasedCritic", "load_critic"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReleasedCritic:
    """The critic of a training, with all that is needed to ask it about a record and nothing else.

    Histograms, generator and optimisers are not in it. Where the critic was trained with noise, its weights follow from what was paid for, so the
    guarantee of the table covers table and critic together. Where it was trained without, nothing covers it.

    Parameters
    ----------
    columns : tuple of Numbers or Categories
        The cells of every column.
    pieces : tuple of Levels or Ranks
        Their coordinates.
    weights, biases : tuple of array
        Those of the layers.
    activation : LeakyReLU or MaxMin
        Of the hidden layers.
    table : str
        SHA-256 of the file of the table that was made in the same training; empty if none was written. It is what the file says, and proves nothing.
    """

    columns: tuple[Numbers | Categories, ...]
    pieces: tuple[Levels | Ranks, ...]
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: LeakyReLU | MaxMin
    table: str = ""

    def __post_init__(self) -> None:
        inputs = sum(piece.width for piece in self.pieces)
        widths = [inputs, *(len(weight) for weight in self.weights)]
        shapes = [(b, a) for a, b in itertools.pairwise(widths)]
        fits = (
            len(self.columns) == len(self.pieces)
            and [w.shape for w in self.weights] == shapes
            and [b.shape for b in self.biases] == [(n,) for n in widths[1:-1]]
            and widths[-1:] == [1]
            and len(self.weights) > 0
        )
        if not fits or not all(
            np.isfinite(p).all() for p in (*self.weights, *self.biases)
        ):
            raise InvalidInput(
                "the columns and layers of the critic do not fit together, so it cannot be asked; write it again from the training."
            )

    @classmethod
    def of(
        cls, columns: Sequence[Column], coding: Coding, critic: Critic
    ) -> "ReleasedCritic":
        """Return the critic of a training.

        Parameters
        ----------
        columns : sequence of Column
            The cells of every column.
        coding : Coding
            Their coordinates.
        critic : Critic
            The weights.
        """
        return cls(
            columns=tuple(columns),  # type: ignore[arg-type]
            pieces=tuple(_without_counts(piece) for piece in coding.pieces),
            # Some trainings hold single precision, which is exact in double.
            weights=tuple(w.astype(np.float64) for w in critic.weights),
            biases=tuple(b.astype(np.float64) for b in critic.biases),
            activation=critic.activation,  # type: ignore[arg-type]
        )

    def __call__(self, features: pd.DataFrame) -> Array:
        """Return the critic's value of each record, larger meaning more real.

        Parameters
        ----------
        features : pandas.DataFrame
            Records as in :class:`reticent.data.Table`: numbers and truth values as floats, categories as texts, missing values as NaN.

        Raises
        ------
        InvalidInput
            If a column is missing.
        """
        absent = [c.name for c in self.columns if c.name not in features.columns]
        if absent:
            raise InvalidInput(
                f"the critic was trained with the column {absent[0]!r}, which is not among those of the records, so it cannot be asked; bring the column, "
                "or leave the critic out."
            )
        cells = [column.code(features[column.name]) for column in self.columns]
        coded = Coding(self.pieces).code(np.stack(cells, axis=1))
        critic = Critic(
            weights=self.weights, biases=self.biases, activation=self.activation
        )
        return values_and_factors(critic, coded)[0]

    def content(self) -> Content:
        """Return a hash of everything in it."""
        return content_of(hashlib.sha256(pack(self)).hexdigest())

    def save(self, file: Path | str, *, table: Path | None = None) -> Path:
        """Write the critic to a file that :func:`load_critic` reads; return the file.

        Parameters
        ----------
        file : path
            Where it goes. Its owner alone may read it: to release it is a decision of its own.
        table : Path, optional
            The file of the table that was made in the same training, so that an audit of both can tell that they belong together.

        Raises
        ------
        OutputRefused
            If it cannot be written.
        """
        file = Path(file)
        digest = "" if table is None else _digest(table)
        try:
            write_bytes(file, pack(replace(self, table=digest)))
        except OSError as error:
            raise OutputRefused(
                f"the critic cannot be written to {file} ({error.strerror or error}); choose another place."
            ) from error
        return file


def load_critic(file: Path | str) -> ReleasedCritic:
    """Return a critic from the file that :meth:`ReleasedCritic.save` wrote; reading it runs nothing.

    Raises
    ------
    InvalidInput
        If there is no such file, or it holds something else.
    """
    file = Path(file)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the critic {file} cannot be read ({error.strerror or error}); name a file that reticent synthesize --critic wrote, or a function as module:function."
        ) from error
    try:
        critic: ReleasedCritic = unpack(ReleasedCritic, data)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{file} does not hold a critic as this version of reticent writes it, so it cannot be asked; write it again with reticent synthesize --critic, or name "
            "a function as module:function."
        ) from error
    return critic


def _without_counts(piece: Piece) -> Any:
    """Return a piece that can code but not draw: how many people each cell has is not needed to ask."""
    if isinstance(piece, Levels):
        return Levels(piece.level, np.zeros(len(piece.counts)))
    assert isinstance(piece, Ranks), "there are two kinds of pieces"
    missing = None if piece.missing is None else _without_counts(piece.missing)
    return Ranks(piece.ends, missing)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
