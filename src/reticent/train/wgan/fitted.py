"""What a training against a critic has learned: a generator, from which rows are drawn at no further cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from reticent.run import stream
from reticent.train.constraints import Constraints
from reticent.train.marginals.columns import Column
from reticent.train.marginals.fitted import kept_rows, must_be_rows
from reticent.train.marginals.sampling import decoded
from reticent.train.wgan.coding import Coding
from reticent.train.wgan.released import ReleasedCritic
from reticent.train.wgan.training import Trained

__all__ = ["FittedGenerator", "lost_modes"]

# A column that is further than this from its histogram, in total variation, is named as a lost mode.
LOST = 0.25


@dataclass(frozen=True, kw_only=True)
class FittedGenerator:
    """A generator, all of which has been paid for: any number of rows may be drawn from it under one guarantee.

    Parameters
    ----------
    columns : tuple of Column
        The cells of every column.
    coding : Coding
        Columns as coordinates.
    trained : Trained
        The networks.
    matched : bool
        Whether columns are matched to their noisy histograms.
    constraints : Constraints
        What every row keeps.
    rows : int
        Rows to draw if nobody says how many.
    far : tuple of float
        How far each column of the generator's own rows is from its noisy histogram, as a total variation.
    """

    columns: tuple[Column, ...]
    coding: Coding
    trained: Trained
    matched: bool
    constraints: Constraints
    rows: int
    far: tuple[float, ...]

    def sample(
        self, rows: int | None = None, *, seed: int = 0
    ) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """Return new rows, and what users should know about them.

        Parameters
        ----------
        rows : int, optional
            How many; by default about as many as there are records.
        seed : int
            Of the sample, which protects nobody: the guarantee rests on the noise of the fit.

        Raises
        ------
        InvalidInput
            If there are too few or too many rows.
        """
        number = self.rows if rows is None else rows
        must_be_rows(number)
        rng = stream(seed, "rows of a generator")
        frame, warnings = kept_rows(
            self.constraints, lambda n: self._drawn(n, rng), number, rng
        )
        names = [column.name for column in self.columns]
        lost = lost_modes(names, self.far, matched=self.matched)
        return frame, (*lost, *warnings)

    @property
    def critic(self) -> ReleasedCritic:
        """What it was trained against; the same guarantee covers it."""
        return ReleasedCritic.of(self.columns, self.coding, self.trained.critic)

    def _drawn(self, rows: int, rng: np.random.Generator) -> pd.DataFrame:
        values = self.trained.rows(rows, rng)
        cells = self.coding.decode(values, self.matched, rng)
        names = [column.name for column in self.columns]
        return pd.DataFrame(decoded(cells, self.columns, rng))[names]


def lost_modes(
    names: Sequence[str], far: Sequence[float], *, matched: bool
) -> tuple[str, ...]:
    """Say which columns the generator did not get right by itself, measured against noisy histograms alone.

    Parameters
    ----------
    names : sequence of str
        The columns.
    far : sequence of float
        How far each is from its noisy histogram, as a total variation.
    matched : bool
        Whether columns are matched to their histograms afterwards.
    """
    lost = [name for name, distance in zip(names, far, strict=True) if distance > LOST]
    if not lost:
        return ()
    words = f"the generator by itself misses the distribution of {', '.join(map(repr, lost[:5]))} by up to {100 * max(far):.0f} % of the rows (lost modes)"
    after = (
        "; single columns were matched to noisy histograms afterwards, but what goes with what may be lost"
        if matched
        else ""
    )
    return (f"{words}{after}; more rows, a larger epsilon or --method tree help.",)
