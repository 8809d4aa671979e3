"""Train a private product for a stated risk: split, calibrate, train, account, measure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from reticent.account import Guarantee, Terms
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.evidence import Estimate, clopper_pearson
from reticent.pipeline._case import divide, train_seed
from reticent.pipeline._input import must_be_writable, table_of
from reticent.pipeline._risk import Risk
from reticent.product import (
    Product,
    Provenance,
    Trainer,
    as_product,
    save_product,
    table_digest,
    versions,
)
from reticent.train import (
    SGD,
    PrivateModule,
    PrivateNetwork,
    fitting_batch,
    guarantee_of,
    private_trainer_of,
    spent,
    trainer_of,
    with_noise_for,
)

__all__ = [
    "TrainPlan",
    "TrainedProduct",
    "default_network",
    "largest_unit",
    "run_training",
    "train",
]

# What is trained if nothing else is asked for. One small hidden layer learns tables well within a budget; gradients are
# clipped to length 1 and averaged, so that a rate of 1 moves the weights by at most 1 per step.
EPOCHS, RATE, HIDDEN = 30, 1.0, (32,)
MARKS = 5  # how often the epsilon spent so far is computed, which takes about a second each time
LEVEL = 0.95  # of the interval of the accuracy
StepProgress = Callable[[str, int, int, str], None]
KEPT_ASIDE = "which rows were kept aside"


@dataclass(frozen=True, kw_only=True)
class TrainPlan:
    """What is trained, and what must be guaranteed about it.

    Parameters
    ----------
    risk : Risk, optional
        What may be found out about a record; none to train a trainer as it stands.
    trainer : Trainer, optional
        What is trained in place of a recipe: as it stands, with the noise that it states or with none; or soft labels, whose noise
        follows from the risk if there is one.
    recipe : PrivateNetwork or PrivateModule, optional
        Everything but the noise, which follows from the risk; by default a small network that fits the rows.
    everything : bool
        Whether all records are trained on, so that none are left for an audit.
    divided_by : str, optional
        How the table is divided, for the provenance: ``"row"``, ``"unit"`` or ``"part"``; by default what the table shows.
    seed : int
        Seed of the split and the first weights; of the noise only if the recipe says so.
    """

    risk: Risk | None = None
    trainer: Trainer | None = None
    recipe: PrivateNetwork | PrivateModule | None = None
    everything: bool = False
    divided_by: str | None = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class TrainedProduct:
    """A product, what is guaranteed about it, and what it is worth.

    Parameters
    ----------
    product : Product
        What may be released.
    guarantee : Guarantee or None
        What holds for every record and every attack; None if the training adds no noise.
    target : str
        The risk that was asked for, in words.
    rows : int
        Records it was trained on.
    accuracy : Estimate or None
        Share of other records whose class it predicts; None if all records were trained on.
    guessing : float or None
        The same share for whoever always says the most frequent class.
    provenance : Provenance
        Where the product comes from; it is saved with it.
    """

    product: Product
    guarantee: Guarantee | None
    target: str
    rows: int
    accuracy: Estimate | None
    guessing: float | None
    provenance: Provenance

    def save(self, folder: Path | str) -> Path:
        """Write the product and its provenance into a folder; return the folder.

        Raises
        ------
        OutputRefused
            If it cannot be written.
        """
        return save_product(folder, self.product, self.provenance)

    def __str__(self) -> str:
        guarantee = self.guarantee
        start = f"Trained on {self.rows:,} rows. "
        if guarantee is None:
            start += "Nothing is guaranteed: the training adds no noise."
        elif guarantee.holds:
            start += (
                f"Guaranteed: epsilon {guarantee.epsilon:.2f} at delta {guarantee.delta:.2g} ({guarantee.relation}), so that nobody becomes "
                f"more than {100 * guarantee.belief:.0f} % sure that a record was used."
            )
        else:
            start += f"Nothing is guaranteed: {guarantee.caveats[0]}."
        if self.accuracy is None:
            return start
        return f"{start} Accuracy on other records: {self.accuracy}."


def train(
    X: Table | pd.DataFrame | ArrayLike,
    y: str | ArrayLike | None = None,
    *,
    belief: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    recipe: PrivateNetwork | PrivateModule | None = None,
    seed: int = 0,
    out: Path | str | None = None,
) -> TrainedProduct:
    """Train a classifier with the least noise that keeps a risk below a limit.

    Say one limit: ``belief``, ``advantage``, ``tpr`` with ``fpr``, or ``epsilon``. A part of the records is kept aside, so that the
    product can be measured and audited. What else can be chosen stands in :class:`TrainPlan`, for
    :func:`reticent.pipeline.run_training`.

    Parameters
    ----------
    X : Table, data frame or array, shape (n, d)
        Records. :func:`reticent.read_table` makes a table of a file, and says whose rows are whose.
    y : str or array-like, shape (n,), optional
        Classes, or the column of the frame that holds them; none for a table.
    belief : float, optional
        Highest belief that a record was used, in (0.5, 1).
    advantage : float, optional
        Largest TPR - FPR of any membership attack, in (0, 1).
    tpr, fpr : float, optional
        Largest true-positive rate at a false-positive rate.
    epsilon, delta : float, optional
        Differential privacy under add/remove; delta is 1 / (10 rows) by default.
    recipe : PrivateNetwork or PrivateModule, optional
        Shape and training, such as ``reticent.PrivateNetwork(hidden=[64])``; its noise is set by the limit.
    seed : int
        Seed of the split and the first weights, never of secret noise.
    out : path, optional
        Folder to save the product in.

    Returns
    -------
    TrainedProduct
        With ``product``, ``guarantee``, ``accuracy``, ``provenance`` and ``save(folder)``.

    Raises
    ------
    InvalidInput
        If there is not exactly one limit, or no amount of noise keeps it.

    Examples
    --------
    >>> import reticent
    >>> from reticent.data import builtin_table
    >>> small = reticent.PrivateNetwork(hidden=[], epochs=2, batch=64)
    >>> trained = reticent.train(builtin_table(), belief=0.9, recipe=small)
    >>> trained.guarantee.holds, trained.guarantee.belief <= 0.9
    (True, True)
    """
    risk = Risk(
        belief=belief,
        advantage=advantage,
        tpr=tpr,
        fpr=fpr,
        epsilon=epsilon,
        delta=delta,
    )
    plan = TrainPlan(risk=risk, recipe=recipe, seed=seed)
    folder = None if out is None else Path(out)
    return run_training(table_of(X, y), plan, out=folder)


def run_training(
    table: Table,
    plan: TrainPlan,
    *,
    out: Path | None = None,
    progress: StepProgress | None = None,
) -> TrainedProduct:
    """Train a private product by a plan.

    Parameters
    ----------
    table : Table
        All records, of which a part is kept aside unless the plan says otherwise.
    plan : TrainPlan
        Risk and recipe.
    out : Path, optional
        Folder to save the product in.
    progress : callable, optional
        Called with a stage's name, steps done, steps to do, and at times words on the epsilon spent so far.
    """
    if plan.trainer is not None:
        return _train_as_it_stands(table, plan, plan.trainer, out)
    if plan.risk is None:
        raise InvalidInput(
            "neither a risk nor a trainer is given, so it is not known how much noise to add; say one risk, such as --belief 0.9."
        )
    risk, relation = plan.risk, plan.risk.neighbours
    members, others = table, None
    if not plan.everything:
        split = divide(table, seed=plan.seed)
        members, others = split.defender, split.reserved
    rows = len(members)
    target, delta = risk.target(rows), risk.delta_for(rows)
    recipe = default_network(rows) if plan.recipe is None else plan.recipe
    # What is not private, or has a batch larger than the table, is refused before anything is made.
    private_trainer_of(recipe).private.course(rows)
    if out is not None:
        must_be_writable(out, private=True)
    recipe = with_noise_for(recipe, target, rows=rows, delta=delta, relation=relation)
    trainer = private_trainer_of(recipe)
    tell = None
    if progress is not None:
        tell = _teller(progress, recipe, rows=rows, delta=delta, plan=plan)
    product = trainer.train(members, seed=train_seed(plan.seed), tell=tell)
    guarantee = guarantee_of(
        recipe,
        rows=rows,
        terms=risk.terms(rows),
        largest_unit=largest_unit(members),
    )
    trained = _described(
        table, plan, trainer.recipe, product, guarantee, members=members, others=others
    )
    trained = replace(trained, target=target.words)
    if out is not None:
        trained.save(out)
    return trained


def _train_as_it_stands(
    table: Table, plan: TrainPlan, trainer: Trainer, out: Path | None
) -> TrainedProduct:
    """Train a product by a trainer, with the noise that it states, or that the risk asks for if it is soft labels."""
    members, others = table, None
    if not plan.everything:
        split = divide(table, seed=plan.seed)
        members, others = split.defender, split.reserved
    rows = len(members)
    words = "no risk was stated: the training is as its recipe says"
    if plan.risk is not None:
        trainer, words = (
            _calibrated(trainer, plan.risk, rows),
            plan.risk.target(rows).words,
        )
    if out is not None:
        must_be_writable(out, private=True)
        trainer.must_be_storable(members)
    product = as_product(trainer.train(members, seed=train_seed(plan.seed)))
    guarantee, procedure = trainer.guarantee(rows), trainer.procedure()
    if procedure is not None:
        terms = (
            Terms(delta=1 / (10 * rows)) if plan.risk is None else plan.risk.terms(rows)
        )
        guarantee = procedure.guarantee_on(
            rows, terms, largest_unit=largest_unit(members)
        )
    trained = _described(
        table, plan, trainer.recipe, product, guarantee, members=members, others=others
    )
    trained = replace(trained, target=words)
    if out is not None:
        trained.save(out)
    return trained


def _calibrated(trainer: Trainer, risk: Risk, rows: int) -> Trainer:
    """Return a procedure with the noise that a risk asks for; any other trainer has none that could be set."""
    procedure = trainer.procedure()
    if procedure is None:
        raise InvalidInput(
            f"{trainer.recipe} adds no noise that could be set to keep a risk; name a reticent.PrivateNetwork(...), soft labels of one, or leave "
            "the risk out: nothing is then guaranteed."
        )
    recipe = procedure.keeping(
        risk.target(rows),
        rows=rows,
        delta=risk.delta_for(rows),
        relation=risk.neighbours,
    )
    return trainer_of(recipe)


def _described(
    table: Table,
    plan: TrainPlan,
    recipe: str,
    product: Product,
    guarantee: Guarantee | None,
    *,
    members: Table,
    others: Table | None,
) -> TrainedProduct:
    """Return a product with what is guaranteed about it, what it is worth, and where it comes from."""
    if others is not None and guarantee is not None:
        guarantee = replace(guarantee, public=(*guarantee.public, KEPT_ASIDE))
    counted = others is not None and not table.is_quantity
    holds = guarantee is not None and guarantee.holds
    # Without a part of its own for the audit, nobody can be called a non-member.
    seed = None if plan.everything else plan.seed
    return TrainedProduct(
        product=product,
        guarantee=guarantee,
        target="",
        rows=len(members),
        accuracy=_accuracy(product, others) if counted and others else None,
        guessing=_guessing(others) if counted and others else None,
        provenance=Provenance(
            recipe=recipe,
            data_fingerprint=table_digest(table, seed=seed),
            seed=seed,
            classes=table.classes,
            versions=versions(),
            split={"by": _divided_by(table, plan)},
            claimed_epsilon=guarantee.epsilon if guarantee and holds else None,
            guarantee=guarantee,
        ),
    )


def default_network(rows: int) -> PrivateNetwork:
    """Return the recipe that is trained if nothing else is asked for, without the noise that a risk asks for."""
    return PrivateNetwork(
        hidden=HIDDEN,
        activation="tanh",
        epochs=EPOCHS,
        batch=fitting_batch(rows),
        optimiser=SGD(rate=RATE),
    )


def _accuracy(product: Any, others: Table) -> Estimate:
    answers = product.predict_proba(others.features).argmax(axis=1)
    hits = int((answers == others.target).sum())
    return clopper_pearson(hits, len(others), level=LEVEL)


def _guessing(others: Table) -> float:
    return float(np.bincount(others.target).max() / len(others))


def _divided_by(table: Table, plan: TrainPlan) -> str:
    if plan.everything:
        return "everything"
    if plan.divided_by is not None:
        return plan.divided_by
    if table.parts is not None:
        return "part"
    return "unit" if table.repeats_units else "row"


def _teller(
    progress: StepProgress,
    recipe: PrivateNetwork | PrivateModule,
    *,
    rows: int,
    delta: float,
    plan: TrainPlan,
) -> Callable[[int], None]:
    """Return what shows steps done, and at some marks the epsilon spent so far."""
    assert plan.risk is not None
    relation, steps = plan.risk.neighbours, recipe.course(rows).steps
    marks = {max(1, round(steps * k / MARKS)) for k in range(1, MARKS + 1)}

    def tell(done: int) -> None:
        note = ""
        if done in marks:
            epsilon = spent(
                recipe, rows=rows, delta=delta, relation=relation, steps=done
            )
            note = f"epsilon {epsilon:.2f} spent (delta {delta:.2g}, {relation.value})"
        progress("training privately", done, steps, note)

    return tell


def largest_unit(members: Table) -> int:
    """Return the most rows one person has; what is said of it is public as the settings are."""
    return int(np.unique(members.units, return_counts=True)[1].max())
