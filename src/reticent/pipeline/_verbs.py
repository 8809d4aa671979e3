"""Verbs for people: plan a private training, and put one to the test."""

import pandas as pd
from numpy.typing import ArrayLike

from reticent.account import Course, MaxPosterior, Plan, Relation, make_plan
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.evidence import Identification
from reticent.pipeline._case import divide
from reticent.pipeline._identify import WatchPlan, run_identification
from reticent.pipeline._input import table_of
from reticent.pipeline._risk import Risk
from reticent.pipeline._train import default_network
from reticent.product import Watchable
from reticent.run import Effort, Run, workers_of
from reticent.train import trainer_of, with_noise_for

__all__ = ["identify", "plan", "training_to_watch"]


def plan(
    *,
    rows: int,
    batch: int,
    epochs: float,
    belief: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Plan:
    """Return the least noise that keeps a risk below a limit, and everything that is equivalent to it.

    Say one limit: ``belief``, ``advantage``, ``tpr`` with ``fpr``, or ``epsilon``. Nothing is trained, and no record is needed. Other
    relations, priors and courses: :func:`reticent.account.make_plan`.

    Parameters
    ----------
    rows : int
        Records of the table.
    batch : int
        Records that take part in a step, on average.
    epochs : float
        Passes over the table.
    belief : float, optional
        Highest belief that a record was used, in (0.5, 1).
    advantage : float, optional
        Largest TPR - FPR of any membership attack, in (0, 1).
    tpr, fpr : float, optional
        Largest true-positive rate at a false-positive rate.
    epsilon, delta : float, optional
        Differential privacy under add/remove; delta is 1 / (10 rows) by default.

    Returns
    -------
    Plan
        With ``noise_multiplier``, ``epsilon``, ``advantage``, ``belief`` and ``tpr``.

    Examples
    --------
    >>> planned = plan(rows=10_000, batch=256, epochs=5, advantage=0.2)
    >>> 0.19 < planned.advantage <= 0.2
    True
    """
    risk = Risk(
        belief=belief,
        advantage=advantage,
        tpr=tpr,
        fpr=fpr,
        epsilon=epsilon,
        delta=delta,
    )
    return make_plan(
        risk.target(rows),
        Course.of_epochs(rows=rows, batch=batch, epochs=epochs),
        risk.terms(rows),
    )


def identify(
    X: Table | pd.DataFrame | ArrayLike,
    y: str | ArrayLike | None = None,
    trainer: object = None,
    *,
    claimed_epsilon: float | None = None,
    belief: float = 0.9,
    runs: int = 100,
    seed: int = 0,
    workers: int | None = None,
) -> Identification:
    """Put the privacy of a training to the test: let an adversary watch every step of it.

    A part of the records is trained on many times, each time with or without a mislabelled record by the toss of a coin. What else can be
    chosen stands in :class:`WatchPlan`, for :func:`reticent.pipeline.run_identification`.

    Parameters
    ----------
    X : Table, data frame or array, shape (n, d)
        Records.
    y : str or array-like, shape (n,), optional
        Classes, or the column of the frame that holds them; none for a table.
    trainer : PrivateNetwork, PrivateModule, trainer or str, optional
        The private training; by default what :func:`reticent.train` would train for the same belief.
    claimed_epsilon : float, optional
        The epsilon to be put to the test; by default what the recipe's own accounting says.
    belief : float
        The share of runs in which the belief in the truth exceeds this value is reported, in (0.5, 1).
    runs : int
        Trainings that are watched, at least 2.
    seed : int
        Seed of split, coins, initialisation, batches and noise.
    workers : int, optional
        Processes; by default one per core.

    Returns
    -------
    Identification
        Beliefs, sensitivities and the three epsilons: claimed, proven and audited.

    Raises
    ------
    InvalidInput
        If the training is not private, so that there are no noisy steps to watch.

    Examples
    --------
    >>> import reticent
    >>> from reticent.data import builtin_table
    >>> small = reticent.PrivateNetwork(hidden=[], epochs=1, batch=64, noise_multiplier=1.0)
    >>> watched = reticent.identify(builtin_table(), trainer=small, runs=4, workers=1)
    >>> watched.epsilons.refuted
    False
    """
    split = divide(table_of(X, y), seed=seed)
    members = split.defender
    delta = 1 / (10 * len(members))
    watchable = training_to_watch(
        trainer, rows=len(members), delta=delta, belief=belief
    )
    plan = WatchPlan(
        trainer=watchable,
        runs=runs,
        claimed=claimed_epsilon,
        claimed_by="claimed_epsilon" if claimed_epsilon else WatchPlan.claimed_by,
        delta=delta,
        belief=belief,
        subject={"table": f"{len(members):,} records", "product": watchable.recipe},
    )
    run = Run(seed=seed, effort=Effort(workers=workers_of(workers)))
    return run_identification(members, plan, outside=split.reserved, run=run)


def training_to_watch(
    trainer: object,
    *,
    rows: int,
    delta: float,
    belief: float,
    relation: Relation = Relation.ADD_REMOVE,
) -> Watchable:
    """Return the training that is watched.

    Parameters
    ----------
    trainer : object
        Whatever :func:`reticent.train.trainer_of` takes; None for the network that is trained for a belief by default.
    rows : int
        Records it is trained on.
    delta, belief : float
        The guarantee of that network.
    relation : Relation
        When tables are neighbours.

    Raises
    ------
    InvalidInput
        If the training has no noisy steps.
    """
    if trainer is None:
        target = MaxPosterior(belief=belief, failure=delta)
        trainer = with_noise_for(
            default_network(rows), target, rows=rows, delta=delta, relation=relation
        )
    given = trainer_of(trainer)
    watchable = given.watching()
    if watchable is None:
        raise InvalidInput(
            f"{given.recipe} is no private training, so there are no noisy steps to watch; name a reticent.PrivateNetwork(...) or "
            "reticent.PrivateModule(...), or audit it with `reticent audit`."
        )
    return watchable
