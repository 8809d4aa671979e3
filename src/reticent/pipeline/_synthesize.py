"""Make a synthetic table for a stated risk: hold people out, calibrate, fit, sample, account, audit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.account import Guarantee
from reticent.data import ColumnKind, Schema, Table, as_frame
from reticent.errors import InvalidInput, OutputRefused, ReticentError
from reticent.pipeline._coins import HELD_OUT, HeldOut, Seal
from reticent.pipeline._held_out import HeldOutAudit, RealTable, divided
from reticent.pipeline._input import must_be_writable
from reticent.pipeline._risk import Risk
from reticent.policy import Policy, read_policy
from reticent.product import (
    Provenance,
    SyntheticTable,
    load_synthetic,
    table_digest,
    versions,
    write_synthetic,
)
from reticent.report import Dossier, is_watched, terminal
from reticent.run import Run
from reticent.train import (
    MarginalGenerator,
    PrivateTable,
    TableModel,
    WassersteinGenerator,
    size_class,
)

__all__ = [
    "FittedTable",
    "Method",
    "SynthesisPlan",
    "Synthesized",
    "fit_table",
    "run_synthesis",
    "synthesize",
]

# At 100 the belief of an attacker is bounded by 1 - 4e-44, which is no bound; and the exact accounting of so little noise takes minutes.
MOST_EPSILON = 100
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
        Values of the columns declared in TOML; else they are learned with a part of the budget.
    constraints : tuple of str
        What every row keeps, beside what the domain declares.
    audit : HeldOutAudit or None
        How the table is judged by people who are held out; None to use everybody.
    seeded : bool
        Whether the noise comes from the seed, for experiments: nothing is guaranteed then.
    seed : int
        Of the sample.
    critic : Path, optional
        File for the critic, if it is released with the table; else nobody gets it.

    Raises
    ------
    InvalidInput
        If epsilon guarantees nothing, or the method has no critic.
    """

    risk: Risk
    method: Method = "auto"
    target: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    domain: Path | None = None
    constraints: tuple[str, ...] = ()
    audit: HeldOutAudit | None = None
    seeded: bool = False
    seed: int = 0
    critic: Path | None = None

    def __post_init__(self) -> None:
        if self.critic is not None and self.method != "wgan":
            raise InvalidInput(
                f"the critic would be written to {self.critic}, but the method {self.method!r} trains none; leave --critic out, or use --method wgan."
            )
        epsilon = self.risk.epsilon
        if epsilon is not None and math.isfinite(epsilon) and epsilon > MOST_EPSILON:
            raise InvalidInput(
                f"epsilon must be at most {MOST_EPSILON}, got {epsilon:g}: far below that an attacker may become sure of everybody, so that nothing would be "
                "guaranteed; ask for 3 or less, and for 10 at most if little is at stake."
            )

    def generator(self) -> PrivateTable:
        """Return the recipe without the noise that the risk asks for."""
        if self.method == "wgan":
            return WassersteinGenerator(
                target=self.target,
                domain=None if self.domain is None else str(self.domain),
                rows=self.rows,
                rows_per_person=self.rows_per_person,
                constraints=self.constraints,
                noise="seeded" if self.seeded else "secret",
            )
        return MarginalGenerator(
            method=self.method,
            target=self.target,
            domain=None if self.domain is None else str(self.domain),
            rows=self.rows,
            rows_per_person=self.rows_per_person,
            constraints=self.constraints,
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
    dossier : Dossier or None
        What an audit found about the table, and its verdict; None if everybody was used and nobody is left to compare with.
    seal : Seal or None
        By which the owner finds the people again who were held out; None if nobody was.
    """

    table: SyntheticTable
    guarantee: Guarantee
    target: str
    dossier: Dossier | None = None
    seal: Seal | None = None

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
        split_of = None if self.seal is None else self.seal.split
        write_synthetic(self.table, Path(file), split_of=split_of)
        return Path(file)

    def __str__(self) -> str:
        made = f"{len(self.frame):,} rows, {self.frame.shape[1]} columns. "
        if self.dossier is not None:
            made += f"{self.dossier.verdict}. "
        if not self.guarantee.holds:
            return f"{made}Nothing is guaranteed: {self.guarantee.caveats[-1]}."
        return (
            f"{made}Guaranteed: epsilon {self.guarantee.epsilon:.2f} at delta {self.guarantee.delta:.2g} ({self.guarantee.relation}), so that nobody becomes more "
            f"than {100 * self.guarantee.belief:.0f} % sure that a person was among the records."
        )


@dataclass(frozen=True, kw_only=True)
class FittedTable:
    """A model of a table, all of which has been paid for.

    Parameters
    ----------
    model : TableModel
        Draws rows.
    guarantee : Guarantee
        What holds for everything that is drawn, however much that is.
    target : str
        The risk that was asked for, in words.
    provenance : Provenance
        Where its tables come from.
    real : RealTable
        For the types of its columns.
    recipe : PrivateTable
        What was fitted, with its noise.
    seal : Seal or None
        By which the owner finds the people again who were held out; None if nobody was.
    """

    model: TableModel
    guarantee: Guarantee
    target: str
    provenance: Provenance
    real: RealTable
    recipe: PrivateTable
    seal: Seal | None = None

    def sample(self, rows: int | None = None, *, seed: int = 0) -> pd.DataFrame:
        """Return new rows as a frame; see :meth:`drawn`."""
        return self.drawn(rows, seed=seed).frame

    def drawn(self, rows: int | None = None, *, seed: int = 0) -> Synthesized:
        """Return a table of new rows, in the types of the real one.

        Parameters
        ----------
        rows : int, optional
            How many; by default about as many as were used, with noise.
        seed : int
            Of the sample. All samples together are covered by the one guarantee.
        """
        frame, warnings = self.model.sample(rows, seed=seed)
        frame = _in_types_of(frame, self.real.table.schema, self.real.frame)
        made = SyntheticTable(frame, provenance=self.provenance, warnings=warnings)
        return Synthesized(
            table=made, guarantee=self.guarantee, target=self.target, seal=self.seal
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
    constraints: Sequence[str] = (),
    schema: Schema | None = None,
    audit: bool = True,
    held_out: float = HeldOutAudit.share,
    policy: Policy | Path | str | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    critic: Path | str | None = None,
    progress: bool | None = None,
) -> Synthesized:
    """Make a synthetic table with the least noise that keeps a risk below a limit, and audit it.

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
        ``"tree"`` for small tables or much noise, ``"adaptive"`` for others, ``"auto"`` to choose by both; ``"wgan"`` for a generator that
        is trained against a critic, which keeps less.
    rows : int, optional
        Rows to make; by default about as many as are used, with noise.
    unit : str, optional
        Column that names the person a row belongs to; it is not imitated.
    rows_per_person : int
        Rows of each person that are used at most: the guarantee is about people, and more rows need more noise.
    domain : path, optional
        Values of the columns declared in TOML; else they are learned with a part of the budget.
    constraints : sequence of str
        What every row keeps, such as ``"systolic > diastolic"`` or ``"total = rent + food"``.
    schema : Schema, optional
        What the columns hold.
    audit : bool
        Whether a share of the people is held out, whom the generator never sees, and the table is judged by comparison with them. Without it all records are
        used, and only the guarantee speaks of the table.
    held_out : float
        That share.
    policy : Policy, path or str, optional
        Rules of release for the audit: ``"default"``, ``"strict"``, a TOML file or a policy.
    seed : int
        Of the sample and the audit, never of the noise.
    out : path, optional
        CSV or Parquet file to write, with a file of provenance and guarantee beside it.
    critic : path, optional
        File for the critic of ``method="wgan"``, if it is to be released with the table: the guarantee covers both together, and the audit attacks both. By default
        nobody gets it.
    progress : bool, optional
        Whether stages are shown on the way; by default they are on a terminal and in a notebook.

    Returns
    -------
    Synthesized
        With ``frame``, ``guarantee``, ``dossier`` and ``save(file)``.

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
    >>> made = reticent.synthesize(people, target="ill", epsilon=3, audit=False)
    >>> made.guarantee.epsilon <= 3, list(made.frame.columns)
    (True, ['age', 'ill'])
    """
    rules = policy if isinstance(policy, Policy) else read_policy(policy or "default")
    plan = SynthesisPlan(
        risk=Risk(epsilon=epsilon, delta=delta, belief=belief, advantage=advantage),
        method=method,
        target=target,
        rows=rows,
        rows_per_person=rows_per_person,
        domain=None if domain is None else Path(domain),
        constraints=tuple(constraints),
        audit=HeldOutAudit(share=held_out, policy=rules) if audit else None,
        seed=seed,
        critic=None if critic is None else Path(critic),
    )
    frame = as_frame(real, name="real").rename(columns=str)
    file = None if out is None else Path(out)
    with terminal(quiet=not (is_watched() if progress is None else progress)) as screen:
        run = Run(seed=seed, tell=screen.tell, say=screen.say)
        return run_synthesis(
            RealTable(frame=frame, unit=unit, schema=schema), plan, out=file, run=run
        )


def run_synthesis(
    real: RealTable,
    plan: SynthesisPlan,
    *,
    out: Path | None = None,
    run: Run | None = None,
) -> Synthesized:
    """Make a synthetic table by a plan, write it, and audit it if the plan says so.

    Parameters
    ----------
    real : RealTable
        The records; if they have parts, only the defender's are used.
    plan : SynthesisPlan
        Risk, recipe and audit.
    out : Path, optional
        File to write.
    run : Run, optional
        Where finished steps are kept, effort, and who is told of progress. After an interruption the same noisy answers are found
        there, so that the same table is made again and nothing is paid for twice.
    """
    run = run or Run(seed=plan.seed)
    if out is not None:
        _must_be_a_table_file(out)
    if plan.critic is not None:
        _must_be_beside_a_table(plan.critic, out)
    if plan.audit is not None and plan.audit.report is not None:
        must_be_writable(plan.audit.report)
    members = divided(real, plan.audit, seed=plan.seed)
    fitted = fit_table(real, plan, run=run, members=members)
    result = fitted.drawn(seed=plan.seed)
    critic = None if plan.critic is None else fitted.model.critic
    result = replace(result, table=replace(result.table, critic=critic))
    if out is not None:
        result = _written(result, out)
    if critic is not None and plan.critic is not None:
        critic.save(plan.critic, table=out)
    if plan.audit is None:
        return result
    dossier = plan.audit.judge(
        result.table, real, members, recipe=fitted.recipe, file=out, run=run
    )
    return replace(result, dossier=dossier)


def fit_table(
    real: RealTable,
    plan: SynthesisPlan,
    *,
    run: Run,
    members: NDArray[np.bool_] | None = None,
) -> FittedTable:
    """Spend the budget of a plan on a table.

    Parameters
    ----------
    real : RealTable
        The records.
    plan : SynthesisPlan
        Risk and recipe.
    run : Run
        Where noisy answers are kept, effort, progress.
    members : array of bool, optional
        The records that are used; by default all, or those of the defender.
    """
    table = real.table
    used = divided(real, None, seed=plan.seed) if members is None else members
    records = _of_each_person(table.take(np.flatnonzero(used)), plan.rows_per_person)
    # Refused before the noise is calibrated, let alone spent.
    recipe = plan.generator()
    recipe.parsed_constraints(records)
    recipe.must_be_in_memory(records, memory=run.effort.memory)
    public_rows = size_class(len(records))
    target, terms = plan.risk.target(public_rows), plan.risk.terms(public_rows)
    recipe = recipe.keeping(target, records, delta=terms.delta, relation=terms.relation)
    model = recipe.fit(records, run=replace(run, seed=plan.seed))
    guarantee = recipe.guarantee_on(records, terms)
    split, seal = {"by": "everything"}, None
    if table.parts is not None:
        split = {"by": "part"}
    elif plan.audit is not None:
        split = {"by": HELD_OUT}
        held_out = HeldOut.by_seed(plan.audit.share, seed=plan.seed)
        seal = Seal(held_out=held_out, fingerprint=table.fingerprint)
        share = (
            f"that about {100 * plan.audit.share:g} % of the people were held out for an audit, by secret coins, and a keyed digest by which the owner finds "
            "them again"
        )
        guarantee = replace(guarantee, public=(*guarantee.public, share))
    return FittedTable(
        model=model,
        guarantee=guarantee,
        target=target.words,
        provenance=Provenance(
            recipe=recipe.recipe,
            data_fingerprint=table_digest(table, seed=None),
            versions=versions(),
            split=split,
            claimed_epsilon=guarantee.epsilon if guarantee.holds else None,
            guarantee=guarantee,
        ),
        real=real,
        recipe=recipe,
        seal=seal,
    )


def _written(result: Synthesized, out: Path) -> Synthesized:
    """Write a table; say that two tables of the same records cost twice, if another one stood where this one goes."""
    before = _bytes_of_same_records(result, out)
    result.save(out)
    if before is None or before == out.read_bytes():
        return result  # after an interruption the same table is made again
    note = "a table of the same records stood in this file and is replaced. If it was passed on, both together guarantee less: their epsilons and deltas add up."
    table = replace(result.table, warnings=(*result.table.warnings, note))
    return replace(result, table=table)


def _bytes_of_same_records(result: Synthesized, out: Path) -> bytes | None:
    """Return the file that stands at a place, if it is a table that was made from the same records."""
    if not out.is_file():
        return None
    try:
        before = load_synthetic(out).provenance.data_fingerprint
    except ReticentError:
        return None
    same = before == result.table.provenance.data_fingerprint
    return out.read_bytes() if same else None


def _must_be_a_table_file(out: Path) -> None:
    """Refuse a place that cannot be written before the budget is spent."""
    if not out.name.endswith(ENDINGS):
        raise InvalidInput(
            f"the synthetic table would be written to {out}, whose name does not say in which form; end it in .csv, .csv.gz or .parquet."
        )
    _must_be_writable_file(out)


def _must_be_writable_file(file: Path) -> None:
    is_new = not file.exists()
    try:
        with file.open("ab"):
            pass
        if is_new:
            file.unlink()
    except OSError as error:
        raise OutputRefused(
            f"the file {file} cannot be written ({error.strerror or error}), so the budget would be spent for nothing; choose another one."
        ) from error


def _must_be_beside_a_table(critic: Path, out: Path | None) -> None:
    """Refuse a place for the critic that cannot be written, or has no table to belong to, before the budget is spent."""
    if out is None:
        raise InvalidInput(
            f"the critic would be written to {critic}, but the table to no file, so that nobody could tell what it belongs to; pass out= as well."
        )
    if critic.resolve() == out.resolve():
        raise InvalidInput(
            f"table and critic would both be written to {out}; choose another file for the critic."
        )
    _must_be_writable_file(critic)


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
