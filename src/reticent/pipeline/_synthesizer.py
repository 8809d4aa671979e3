"""A generator of synthetic tables as an object: fit once, sample as often as you like."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent.data import Schema, as_frame
from reticent.pipeline._held_out import RealTable
from reticent.pipeline._risk import Risk
from reticent.pipeline._synthesize import (
    FittedTable,
    Method,
    SynthesisPlan,
    fit_table,
)
from reticent.run import Run

__all__ = ["Synthesizer"]


@dataclass(frozen=True, kw_only=True)
class Synthesizer:
    """Fit a model of a table under a guarantee, and draw rows from it.

    The whole budget is spent by :meth:`fit`. Everything that is drawn from the fitted model, however often, is covered by its
    guarantee; to fit again is to spend again. Say one limit: ``epsilon``, ``belief`` or ``advantage``. To hold people out and get a verdict,
    use :func:`reticent.synthesize`.

    Parameters
    ----------
    epsilon, delta, belief, advantage : float, optional
        The limit, as in :func:`reticent.synthesize`.
    method : str
        ``"auto"``, ``"tree"``, ``"adaptive"`` or ``"wgan"``, as in :func:`reticent.synthesize`.
    target : str, optional
        The column that models will predict; it is kept best.
    rows_per_person : int
        Rows of each person that are used at most.
    domain : path, optional
        Values of the columns declared in TOML.
    constraints : tuple of str
        What every row keeps, such as ``"systolic > diastolic"``.

    Examples
    --------
    >>> import numpy as np, pandas as pd, reticent
    >>> rng = np.random.default_rng(0)
    >>> low = rng.integers(50, 90, size=2000)
    >>> people = pd.DataFrame({"low": low, "high": low + rng.integers(20, 60, size=2000)})
    >>> fitted = reticent.Synthesizer(epsilon=2, constraints=["low < high"]).fit(people)
    >>> rows = fitted.sample(500, seed=1)
    >>> len(rows), bool((rows["low"] < rows["high"]).all()), fitted.guarantee.epsilon <= 2
    (500, True, True)
    """

    epsilon: float | None = None
    delta: float | None = None
    belief: float | None = None
    advantage: float | None = None
    method: Method = "auto"
    target: str | None = None
    rows_per_person: int = 1
    domain: Path | str | None = None
    constraints: tuple[str, ...] = ()

    def fit(
        self,
        real: Any,
        *,
        unit: str | None = None,
        schema: Schema | None = None,
        seed: int = 0,
    ) -> FittedTable:
        """Spend the budget on a table.

        Parameters
        ----------
        real : data frame
            The records, in a frame of any library.
        unit : str, optional
            Column that names the person a row belongs to; it is not imitated.
        schema : Schema, optional
            What the columns hold.
        seed : int
            Of samples of the model while it is fitted, never of the noise.

        Returns
        -------
        FittedTable
            With ``sample(rows, seed=...)``, ``drawn(rows, seed=...)``, which can be saved with its guarantee, and ``guarantee``.

        Raises
        ------
        InvalidInput
            If there is not exactly one limit, or the table cannot be imitated under it.
        """
        plan = SynthesisPlan(
            risk=Risk(
                epsilon=self.epsilon,
                delta=self.delta,
                belief=self.belief,
                advantage=self.advantage,
            ),
            method=self.method,
            target=self.target,
            rows_per_person=self.rows_per_person,
            domain=None if self.domain is None else Path(self.domain),
            constraints=tuple(self.constraints),
            seed=seed,
        )
        frame = as_frame(real, name="real").rename(columns=str)
        table = RealTable(frame=frame, unit=unit, schema=schema)
        return fit_table(table, plan, run=Run(seed=seed))
