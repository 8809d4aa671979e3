"""Audits from Python: an estimator with data, a product, or a synthetic table."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from reticent.attack import Attack
from reticent.audits import SyntheticTableKind
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.evidence import Measure
from reticent.pipeline._audit import run_audit
from reticent.pipeline._coins import with_people_held_out
from reticent.pipeline._given import GivenProduct, GivenRecords, both_sides
from reticent.pipeline._plan import AuditPlan, policy_of
from reticent.pipeline._repeat import Name, call, shown
from reticent.pipeline._tables import GivenTables, frame_of, synthetic_of
from reticent.policy import Policy
from reticent.product import Provenance
from reticent.report import Dossier, Section, is_watched, terminal
from reticent.run import Effort, Run, Workers, workers_of
from reticent.train import trainer_of

__all__ = ["audit"]

USUAL_MEMORY = 2.0  # gigabytes, the same as on the command line


def audit(
    estimator: Any = None,
    X: Any = None,
    y: str | ArrayLike | None = None,
    groups: ArrayLike | None = None,
    units: ArrayLike | None = None,
    policy: Policy | Path | str | None = None,
    seed: int = 0,
    *,
    product: Any = None,
    members: tuple[Any, ArrayLike] | None = None,
    nonmembers: tuple[Any, ArrayLike] | None = None,
    synthetic: Any = None,
    real: Any = None,
    holdout: Any = None,
    auxiliary: Any = None,
    generator: Any = None,
    critic: Any = None,
    parts: ArrayLike | None = None,
    drop: Sequence[str] = (),
    claimed_epsilon: float | None = None,
    attacks: Sequence[Attack] = (),
    measures: Sequence[Measure] = (),
    sections: Sequence[Section] = (),
    minutes: float | None = None,
    rounds: int = 100,
    pool: int | None = None,
    watch: int | None = None,
    memory: float = USUAL_MEMORY,
    workers: int | Workers | None = None,
    by: str = "",
    progress: bool | Callable[[str, int, int], None] | None = None,
) -> Dossier:
    """Train an estimator on a part of the data, or take a product that is trained already; attack it, and decide.

    Parameters
    ----------
    estimator : estimator, recipe, Trainer or str
        A scikit-learn-like model or pipeline (cloned, never fitted itself), a recipe such as
        ``reticent.Network(hidden=[8])``, a trainer, or a description such as ``"sklearn.naive_bayes.GaussianNB()"``.
        A fitted estimator is refused: it is a product.
    X : data frame or array, shape (n, d)
        Features, in a frame of pandas, Polars, PyArrow or another library. A frame with text or missing values is imputed, one-hot coded and scaled
        inside the trainer, unless the estimator begins with a ``ColumnTransformer``;
        complete numeric data reach the estimator as they are.
    y : array-like, shape (n,), or str
        Classes, or the quantity that a regression model predicts; or the column of X that holds them.
    groups : array-like or str, optional
        Subgroup of each record, or the column that holds it; with ``members``, of the members and then of the non-members.
    units : array-like or str, optional
        Person each record belongs to; no person is in two parts. In the order of ``groups``.
    policy : Policy, path or str, optional
        Rules of release: ``"default"``, ``"strict"``, a TOML file or a policy.
    seed : int
        Seed of split, training and attacks.
    product : fitted estimator, Product or path, optional
        A product that is audited as it is, on the records that it was trained on and on others: pass ``members`` and ``nonmembers``, or X, y
        and ``parts``. With an estimator beside it, which must be the product's recipe, attacks that train others like it are run as well.
    members, nonmembers : pair of X and y, optional
        Records that the product was trained on, and others from the same source.
    synthetic : data frame, SyntheticTable or path, optional
        A synthetic table that is audited in place of a model, with ``real`` and ``holdout``. Columns (``y``, ``groups``, ``units``, ``parts``) are
        then named, and no target is needed.
    real, holdout : data frame or path, optional
        The records that the generator of the synthetic table was trained on, and others from the same source that it never saw.
    auxiliary : data frame or path, optional
        Further such records, which attackers compare with; by default half of the holdout.
    generator : str or recipe, optional
        What made the synthetic table, as ``"module:function"``: a function of a data frame, a number of rows and a seed that fits and samples; or a
        recipe such as ``reticent.MarginalGenerator(noise_multiplier=2)``, or its description, which may state ``epsilon`` instead. Attackers then make
        other tables with it. By default it is the recipe that :func:`reticent.synthesize` wrote beside the table.
    critic : callable or str, optional
        What the generator was trained against, if it is released too: from a data frame of records to one number each, larger meaning more real.
    parts : array-like of str, or str, optional
        ``"defender"``, ``"reserved"``, ``"auxiliary"``; by default a random split.
    drop : sequence of str
        Columns that are left out.
    claimed_epsilon : float, optional
        Privacy that the trainer claims.
    attacks : sequence of Attack
        Attacks of your own, beside those of reticent.
    measures : sequence of Measure
        Measures of your own, which the policy may limit.
    sections : sequence of Section
        Sections of your own in the report.
    minutes : float, optional
        About how long the audit may take; by default two minutes, or what a pool of 8 models needs.
    memory : float
        Gigabytes.
    rounds, pool, watch : int
        Most rounds of the retraining insider per regime, number of models that attacks compare with, and trainings that are watched, or runs of a
        generator on neighbouring tables, if privacy is claimed; see :class:`AuditPlan`.
    workers : int or Workers, optional
        Processes, or a cluster; by default one process per core.
    by : str
        Who runs the audit, for the dossier.
    progress : bool or callable, optional
        Whether stages and findings about the data are shown on the way; by default they are on a terminal and in a notebook. A function is
        called with the stage, how many of its jobs are done, and how many there are.

    Returns
    -------
    Dossier
        With ``verdict``, ``reasons``, ``privacy``, ``utility``, ``save(folder)``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> dossier = audit(DecisionTreeClassifier(), X, y, rounds=1, pool=0, workers=1)
    >>> str(dossier.verdict)
    'INCONCLUSIVE'
    """
    rules = policy_of(policy)
    if synthetic is not None or real is not None:
        table, plan = _tables_plan(
            GivenTables(
                synthetic=synthetic_of(synthetic, critic=critic),
                real=frame_of(real),
                holdout=frame_of(holdout),
                auxiliary=frame_of(auxiliary),
                target=_named(y, "y"),
                group=_named(groups, "groups"),
                unit=_named(units, "units"),
                part=_named(parts, "parts"),
                drop=drop,
            ),
            policy=rules,
            own_attacks=tuple(attacks),
            own_measures=tuple(measures),
            own_sections=tuple(sections),
            claimed_epsilon=claimed_epsilon,
            generator=generator,
            pool=pool,
            watch=watch,
            seed=seed,
            by=by,
        )
        return _carried_out(
            table,
            plan,
            _effort(minutes, memory, workers),
            seed=seed,
            progress=progress,
        )
    given_product = None if product is None else GivenProduct(product)
    given = GivenRecords(X=X, y=y, groups=groups, units=units, parts=parts, drop=drop)
    records = _complete(given, given_product, members, nonmembers)
    trainer = None
    if estimator is not None:
        trainer = trainer_of(estimator, preprocess=records.needs_preprocessing)
    elif given_product is None:
        raise InvalidInput(
            "there is neither an estimator nor a product, so there is nothing to audit; pass one of them."
        )
    predicts = given_product or trainer
    assert predicts is not None
    table = records.table(quantity=predicts.quantity)
    made, provenance, files = None, Provenance(), None
    if given_product is not None:
        made, provenance = given_product.on(table, records)
        files = given_product.files
    name = given_product.name if given_product else trainer.recipe  # type: ignore[union-attr]
    by_sides = members is not None
    plan = AuditPlan(
        trainer=trainer,
        product=made,
        product_files=files,
        product_digest="" if files is None else files.digest,
        provenance=provenance,
        policy=rules,
        claimed_epsilon=claimed_epsilon,
        own_attacks=tuple(attacks),
        own_measures=tuple(measures),
        own_sections=tuple(sections),
        rounds=rounds,
        pool=pool,
        watch=watch,
        by=by,
        subject={"table": f"{len(table):,} records", "product": name},
        repeat=call(
            "audit",
            *(() if trainer is None else (trainer.recipe,)),
            *(() if by_sides or trainer is None else ("X", repr(shown(y, "y")))),
            X=None if by_sides or trainer is not None else Name("X"),
            y=None if by_sides or trainer is not None else shown(y, "y"),
            groups=shown(groups, "groups"),
            units=shown(units, "units"),
            policy=rules.name,
            seed=seed,
            product=shown(product, "product"),
            members=shown(members, "members"),
            nonmembers=shown(nonmembers, "nonmembers"),
            parts=shown(parts, "parts"),
            drop=list(drop) or None,
            claimed_epsilon=claimed_epsilon,
            minutes=minutes,
            rounds=rounds,
            pool=pool,
            watch=watch,
            memory=None if memory == USUAL_MEMORY else memory,
        ),
    )
    return _carried_out(
        table, plan, _effort(minutes, memory, workers), seed=seed, progress=progress
    )


def _effort(
    minutes: float | None, memory: float, workers: int | Workers | None
) -> Effort:
    by_count = workers is None or isinstance(workers, int)
    who = workers_of(workers) if by_count else workers  # type: ignore[arg-type]
    return Effort(minutes=minutes, memory=memory, workers=who)  # type: ignore[arg-type]


def _carried_out(
    table: Table,
    plan: AuditPlan,
    effort: Effort,
    *,
    seed: int,
    progress: bool | Callable[[str, int, int], None] | None,
) -> Dossier:
    """Run an audit, and show how far it is."""
    if callable(progress):
        run = Run(seed=seed, effort=effort, tell=progress)
        return run_audit(table, plan, run=run).dossier
    shown = is_watched() if progress is None else progress
    with terminal(quiet=not shown) as screen:
        run = Run(seed=seed, effort=effort, tell=screen.tell, say=screen.say)
        return run_audit(table, plan, run=run).dossier


def _tables_plan(
    given: GivenTables,
    *,
    generator: Any,
    policy: Policy,
    seed: int,
    pool: int | None,
    **settings: Any,
) -> tuple[Table, AuditPlan]:
    """Return the records of a synthetic table's audit, and its plan."""
    given = with_people_held_out(given)
    prepared = given.prepared(seed=seed)
    trainer = prepared.generator(generator)
    made_by = given.made_by
    if made_by is not None and trainer is None:
        pool = None  # nobody asked for it, and too few people were held out
    plan = AuditPlan(
        trainer=trainer,
        product=prepared.synthetic,
        of_kind=SyntheticTableKind(given.judged_target),
        product_content=prepared.content(),
        policy=policy,
        provenance=given.synthetic.provenance,
        subject={
            "table": f"{len(prepared.table):,} records",
            "product": f"a synthetic table of {len(prepared.synthetic):,} rows",
        },
        repeat=call(
            "audit",
            synthetic=Name("synthetic"),
            real=Name("real"),
            holdout=None if given.holdout is None else Name("holdout"),
            auxiliary=None if given.auxiliary is None else Name("auxiliary"),
            y=given.target,
            groups=given.group,
            units=given.unit,
            parts=given.part,
            drop=list(given.drop) or None,
            policy=policy.name,
            seed=seed,
            claimed_epsilon=settings["claimed_epsilon"],
            generator=shown(generator, "generator")
            if made_by is None or trainer is None
            else made_by.recipe,
            pool=pool,
            watch=settings["watch"],
        ),
        pool=pool,
        **settings,
    )
    return prepared.audited_by(trainer), plan


def _named(column: object, argument: str) -> str | None:
    """Return the name of a column; a synthetic table has no other records to take values from."""
    if column is None or isinstance(column, str):
        return column
    raise InvalidInput(
        f"{argument} must be the name of a column of the real table where a synthetic one is audited, got a {type(column).__name__}."
    )


def _complete(
    given: GivenRecords, product: GivenProduct | None, members: Any, nonmembers: Any
) -> GivenRecords:
    """Return the records, of which either the parts are known or a random split is allowed."""
    if members is None and nonmembers is None:
        if given.X is None or given.y is None:
            raise InvalidInput(
                f"{'X' if given.X is None else 'y'} is missing, so there are no records to audit with; pass X and y"
                + (", or members and nonmembers." if product else ".")
            )
        if product is not None and given.parts is None:
            raise InvalidInput(
                "it is not known which of the records the product was trained on, so nobody can be called a member; pass "
                "members=(X, y) and nonmembers=(X, y), or parts with defender and reserved."
            )
        return given
    if product is None:
        raise InvalidInput(
            "members and nonmembers belong to a product that is trained already, but there is none; pass it as product=, or pass X and y to "
            "train one."
        )
    if members is None or nonmembers is None:
        raise InvalidInput(
            f"{'members' if members is None else 'nonmembers'} is missing, so there is nobody to compare with; pass both."
        )
    if not (given.X is None and given.y is None and given.parts is None):
        raise InvalidInput(
            "members and nonmembers are all records of the audit, but there are also X, y or parts; leave these out."
        )
    X, y, parts = both_sides(members, nonmembers)
    return replace(given, X=X, y=y, parts=parts)
