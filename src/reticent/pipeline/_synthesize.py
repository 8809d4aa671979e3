"""Make a synthetic table for a stated risk: bound the rows of each person, calibrate, fit, sample, account."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from reticent.account import Guarantee
from reticent.data import ColumnKind, Schema, Table, as_frame, table_from_frame
from reticent.errors import InvalidInput, OutputRefused
from reticent.pipeline._risk import Risk
from reticent.product import (
    Provenance,
    SyntheticTable,
    table_digest,
    versions,
    write_synthetic,
)
from reticent.train import MarginalGenerator, WassersteinGenerator, size_class

__all__ = ["Method", "SynthesisPlan", "Synthesized", "run_synthesis", "synthesize"]

DEFENDER = "defender"
ENDINGS = (".csv", ".csv.gz", ".parquet")
Method = Literal["auto", "tree", "adaptive", "wgan"]


@dataclass(frozen=True, kw_only=True)
class SynthesisPlan:
    """What is made, and what must be guaranteed about it.

    Parameters
    ----------
    risk : Risk
        What may be found out about a person.
    method : str
        ``"auto"``, ``"tree"``, ``"adaptive"`` or ``"wgan"``.
    target : str, optional
        The column that models will predict.
    rows : int, optional
        Rows to make; by default about as many as there are, with noise.
    rows_per_person : int
        Rows of each person that are used at most, and that the noise covers.
    domain : path, optional
        Values of the columns declared in TOML; else they are learned with a tenth of the budget.
    seeded : bool
        Whether the noise comes from the seed, for experiments: nothing is guaranteed then.
    seed : int
        Of the sample.
    """

    risk: Risk
    method: Method = "auto"
    target: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    domain: Path | None = None
    seeded: bool = False
    seed: int = 0

    def generator(self) -> MarginalGenerator | WassersteinGenerator:
        """Return the recipe without the noise that the risk asks for."""
        if self.method == "wgan":
            return WassersteinGenerator(
                target=self.target,
                domain=None if self.domain is None else str(self.domain),
                rows=self.rows,
                rows_per_person=self.rows_per_person,
                noise="seeded" if self.seeded else "secret",
            )
        return MarginalGenerator(
            method=self.method,
            target=self.target,
            domain=None if self.domain is None else str(self.domain),
            rows=self.rows,
            rows_per_person=self.rows_per_person,
            noise="seeded" if self.seeded else "secret",
        )


@dataclass(frozen=True, kw_only=True)
class Synthesized:
    """A synthetic table and what is guaranteed about it.

    Parameters
    ----------
    table : SyntheticTable
        What may be released, in the types of the real table.
    guarantee : Guarantee
        What holds for every person and every attack.
    target : str
        The risk that was asked for, in words.
    """

    table: SyntheticTable
    guarantee: Guarantee
    target: str

    @property
    def frame(self) -> pd.DataFrame:
        """The rows."""
        return self.table.frame

    def save(self, file: Path | str) -> Path:
        """Write the rows to a CSV or Parquet file, and provenance with guarantee beside it; return the file.

        Raises
        ------
        OutputRefused
            If it cannot be written.
        """
        write_synthetic(self.table, Path(file))
        return Path(file)

    def __str__(self) -> str:
        made = f"{len(self.frame):,} rows, {self.frame.shape[1]} columns. "
        if not self.guarantee.holds:
            return f"{made}Nothing is guaranteed: {self.guarantee.caveats[0]}."
        return (
            f"{made}Guaranteed: epsilon {self.guarantee.epsilon:.2f} at delta {self.guarantee.delta:.2g} ({self.guarantee.relation}), so that nobody becomes more "
            f"than {100 * self.guarantee.belief:.0f} % sure that a person was among the records."
        )


def synthesize(
    real: Any,
    *,
    target: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    belief: float | None = None,
    advantage: float | None = None,
    method: Method = "auto",
    rows: int | None = None,
    unit: str | None = None,
    rows_per_person: int = 1,
    domain: Path | str | None = None,
    schema: Schema | None = None,
    seed: int = 0,
    out: Path | str | None = None,
) -> Synthesized:
    """Make a synthetic table with the least noise that keeps a risk below a limit.

    Say one limit: ``epsilon``, ``belief`` or ``advantage``.

    Parameters
    ----------
    real : data frame
        The records, in a frame of any library.
    target : str, optional
        The column that models will predict; it is kept best.
    epsilon, delta : float, optional
        Differential privacy under add/remove; delta is a tenth of one over the next power of ten of the rows by default.
    belief : float, optional
        Highest belief that a person was among the records, in (0.5, 1).
    advantage : float, optional
        Largest TPR - FPR of any membership attack, in (0, 1).
    method : str
        ``"tree"`` for small tables, ``"adaptive"`` for more than 10,000 rows, ``"auto"`` to choose by the size; ``"wgan"`` for a generator that
        is trained against a critic, which keeps less.
    rows : int, optional
        Rows to make; by default about as many as there are, with noise.
    unit : str, optional
        Column that names the person a row belongs to; it is not imitated.
    rows_per_person : int
        Rows of each person that are used at most: the guarantee is about people, and more rows need more noise.
    domain : path, optional
        Values of the columns declared in TOML; else they are learned with a tenth of the budget.
    schema : Schema, optional
        What the columns hold.
    seed : int
        Of the sample, never of the noise.
    out : path, optional
        CSV or Parquet file to write, with a file of provenance and guarantee beside it.

    Returns
    -------
    Synthesized
        With ``frame``, ``guarantee`` and ``save(file)``.

    Raises
    ------
    InvalidInput
        If there is not exactly one limit, or the table cannot be imitated under it.

    Examples
    --------
    >>> import reticent
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(20, 80, size=3000)
    >>> people = pd.DataFrame({"age": age, "ill": rng.random(3000) < age / 100})
    >>> made = reticent.synthesize(people, target="ill", epsilon=3)
    >>> made.guarantee.epsilon <= 3, list(made.frame.columns)
    (True, ['age', 'ill'])
    """
    plan = SynthesisPlan(
        risk=Risk(epsilon=epsilon, delta=delta, belief=belief, advantage=advantage),
        method=method,
        target=target,
        rows=rows,
        rows_per_person=rows_per_person,
        domain=None if domain is None else Path(domain),
        seed=seed,
    )
    frame = as_frame(real, name="real").rename(columns=str)
    table = table_from_frame(
        frame, target=None, unit=unit, schema=schema, name="the real table"
    )
    return run_synthesis(
        table, plan, original=frame, out=None if out is None else Path(out)
    )


def run_synthesis(
    table: Table,
    plan: SynthesisPlan,
    *,
    original: pd.DataFrame,
    out: Path | None = None,
) -> Synthesized:
    """Make a synthetic table by a plan.

    Parameters
    ----------
    table : Table
        The records, with all columns that are imitated as features; if it has parts, only the defender's are used.
    plan : SynthesisPlan
        Risk and recipe.
    original : pandas.DataFrame
        The frame that the table was read from, for the types of its columns.
    out : Path, optional
        File to write.
    """
    if out is not None:
        _must_be_a_table_file(out)
    members = _of_each_person(_defenders(table), plan.rows_per_person)
    public_rows = size_class(len(members))
    risk = plan.risk
    target, terms = risk.target(public_rows), risk.terms(public_rows)
    generator = plan.generator().keeping(
        target, members, delta=terms.delta, relation=terms.relation
    )
    made = generator.train(members, seed=plan.seed)
    guarantee = generator.guarantee_on(members, terms)
    divided = table.parts is not None
    provenance = Provenance(
        recipe=generator.recipe,
        data_fingerprint=table_digest(table, seed=None),
        versions=versions(),
        split={"by": "part" if divided else "everything"},
        claimed_epsilon=guarantee.epsilon if guarantee.holds else None,
        guarantee=guarantee,
    )
    frame = _in_types_of(made.frame, table.schema, original)
    result = Synthesized(
        table=replace(made, frame=frame, provenance=provenance),
        guarantee=guarantee,
        target=target.words,
    )
    if out is not None:
        result.save(out)
    return result


def _must_be_a_table_file(out: Path) -> None:
    """Refuse a place that cannot be written before the budget is spent."""
    if not out.name.endswith(ENDINGS):
        raise InvalidInput(
            f"the synthetic table would be written to {out}, whose name does not say in which form; end it in .csv, .csv.gz or .parquet."
        )
    is_new = not out.exists()
    try:
        with out.open("ab"):
            pass
        if is_new:
            out.unlink()
    except OSError as error:
        raise OutputRefused(
            f"the file {out} cannot be written ({error.strerror or error}), so the budget would be spent for nothing; choose another one."
        ) from error


def _defenders(table: Table) -> Table:
    if table.parts is None:
        return table
    return table.take(np.flatnonzero(table.parts == DEFENDER))


def _of_each_person(table: Table, most: int) -> Table:
    """Return at most so many rows of each person: their first ones, so that nobody decides about rows of others."""
    if most == 1:
        return table  # the generator refuses people with several rows, so that nobody is surprised
    number = pd.Series(table.units).groupby(table.units).cumcount().to_numpy()
    return table.take(np.flatnonzero(number < most))


def _in_types_of(
    frame: pd.DataFrame, schema: Schema, original: pd.DataFrame
) -> pd.DataFrame:
    """Return rows with dates, truth values and whole numbers as such."""
    columns: dict[str, pd.Series[Any]] = {}
    for name, kind in schema.columns.items():
        values = frame[name]
        if name in schema.dates:
            columns[name] = _dates(values, original[name])
        elif kind == ColumnKind.BOOLEAN:
            columns[name] = _with_gaps(values, "bool", "boolean")
        elif kind == ColumnKind.NUMERIC and _is_whole(values):
            columns[name] = _with_gaps(values, "int64", "Int64")
        else:
            columns[name] = values
    return pd.DataFrame(columns)


def _with_gaps(values: "pd.Series[Any]", plain: str, nullable: str) -> "pd.Series[Any]":
    return values.astype(nullable if values.isna().any() else plain)  # type: ignore[call-overload,no-any-return]


def _is_whole(values: "pd.Series[Any]") -> bool:
    numbers = values.dropna().to_numpy(dtype=np.float64)
    return bool((numbers == np.floor(numbers)).all()) and len(numbers) > 0


def _dates(days: "pd.Series[Any]", original: "pd.Series[Any]") -> "pd.Series[Any]":
    seconds = (days * 86_400).round()
    if pd.api.types.is_timedelta64_dtype(original):
        return pd.to_timedelta(seconds, unit="s")
    return pd.to_datetime(seconds, unit="s")
