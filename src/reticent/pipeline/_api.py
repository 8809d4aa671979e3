"""Audits from Python: an estimator with data, or saved outputs alone."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reticent.attack import Challenge
from reticent.data import ColumnKind, Finding, Severity, table_from_frame
from reticent.errors import InvalidInput
from reticent.pipeline._audit import outputs_dossier, run_audit
from reticent.pipeline._plan import AuditPlan
from reticent.policy import Policy, read_policy
from reticent.product import Provenance, Trainer, versions
from reticent.report import Dossier
from reticent.train import EstimatorTrainer, parse_trainer

__all__ = ["audit", "audit_outputs"]


def audit(
    estimator: Any,
    X: pd.DataFrame | ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    units: ArrayLike | None = None,
    policy: Policy | Path | str | None = None,
    seed: int = 0,
    *,
    parts: ArrayLike | None = None,
    claimed_epsilon: float | None = None,
    minutes: float = 2.0,
    rounds: int = 100,
    pool: int | None = None,
    memory: float = 2.0,
    workers: int | None = None,
) -> Dossier:
    """Train an estimator on a part of the data, attack it, and decide.

    Parameters
    ----------
    estimator : estimator, Trainer or str
        A scikit-learn-like classifier or pipeline (cloned, never fitted itself), a trainer,
        or a description such as ``"sklearn.naive_bayes.GaussianNB()"``.
    X : data frame or array, shape (n, d)
        Features. A frame with text or missing values is imputed, one-hot coded and scaled
        inside the trainer, unless the estimator begins with a ``ColumnTransformer``;
        complete numeric data reach the estimator as they are.
    y : array-like, shape (n,)
        Classes.
    groups : array-like, optional
        Subgroup of each record.
    units : array-like, optional
        Person each record belongs to; no person is in two parts.
    policy : Policy, path or str, optional
        Rules of release: ``"default"``, ``"strict"``, a TOML file or a policy.
    seed : int
        For split, training and attacks.
    parts : array-like of str, optional
        ``"defender"``, ``"reserved"``, ``"auxiliary"``; by default a random split.
    claimed_epsilon : float, optional
        Privacy that the trainer claims.
    minutes, rounds, pool, memory, workers
        Effort: of the retraining insider, and of the attacks that compare with a pool of
        models; see :class:`AuditPlan`.

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
    frame = _frame(X)
    table = table_from_frame(
        frame, target=np.asarray(y), group=groups, unit=units, part=parts, name="X"
    )
    plain = not table.schema.names(ColumnKind.CATEGORICAL) and not bool(
        table.features.isna().to_numpy().any()
    )
    trainer = _trainer(estimator, preprocess=not plain)
    plan = AuditPlan(
        trainer=trainer,
        policy=_policy(policy),
        seed=seed,
        claimed_epsilon=claimed_epsilon,
        minutes=minutes,
        rounds=rounds,
        pool=pool,
        memory=memory,
        subject={"table": f"{len(table):,} records", "product": trainer.recipe},
        repeat=_call(
            "audit",
            trainer.recipe,
            "X",
            "y",
            groups=None if groups is None else _Name("groups"),
            units=None if units is None else _Name("units"),
            policy=_policy(policy).name,
            seed=seed,
            parts=None if parts is None else _Name("parts"),
            claimed_epsilon=claimed_epsilon,
            minutes=minutes,
            rounds=rounds,
            pool=pool,
            memory=None if memory == 2.0 else memory,
        ),
    )
    if workers is not None:
        plan = replace(plan, workers=workers)
    return run_audit(table, plan).dossier


def audit_outputs(
    members: tuple[ArrayLike, ArrayLike],
    nonmembers: tuple[ArrayLike, ArrayLike],
    *,
    policy: Policy | Path | str | None = None,
    seed: int = 0,
    claimed_epsilon: float | None = None,
    name: str = "saved outputs",
) -> Dossier:
    """Audit a product of which only the answers are at hand.

    Parameters
    ----------
    members, nonmembers : pair of arrays
        ``predict_proba`` of shape (n, c), and the true classes as numbers 0 to c - 1; of
        records the product was trained on, and of others from the same source.
    policy, seed, claimed_epsilon
        As in :func:`audit`.
    name : str
        How the report calls the product.

    Returns
    -------
    Dossier
        Without an insider (it needs the trainer) and without checks of the records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=200)
    >>> sure, unsure = np.eye(2)[labels], np.full((200, 2), 0.5)
    >>> str(audit_outputs((sure, labels), (unsure, labels)).verdict)
    'REFUSE'
    """
    (p_in, y_in), (p_out, y_out) = (_outputs(*members), _outputs(*nonmembers))
    if p_in.shape[1:] != p_out.shape[1:]:
        raise InvalidInput(
            f"members have answers of shape {p_in.shape} and non-members of {p_out.shape}; both must come "
            "from the same product."
        )
    for who, labels in (("members", y_in), ("non-members", y_out)):
        if len(labels) < 20:
            raise InvalidInput(
                f"there are {len(labels)} {who} but at least 20 are needed to say anything; bring more."
            )
    challenge = Challenge(
        probabilities=np.concatenate([p_in, p_out]),
        labels=np.concatenate([y_in, y_out]),
    )
    digest = hashlib.sha256(
        challenge.probabilities.tobytes() + challenge.labels.tobytes()
    )
    classes = tuple(str(k) for k in range(p_in.shape[1]))
    finding = Finding(
        name="outputs_only",
        severity=Severity.WARNING,
        text="the audit started from saved outputs: whether members and non-members differ by more than "
        "membership could not be checked, nor whether a person is on both sides.",
    )
    return outputs_dossier(
        challenge,
        tags=np.repeat([True, False], [len(y_in), len(y_out)]),
        findings=[finding],
        policy=_policy(policy),
        seed=seed,
        provenance=Provenance(
            data_fingerprint=digest.hexdigest(),
            classes=classes,
            versions=versions(),
            claimed_epsilon=claimed_epsilon,
        ),
        subject={"table": f"{len(challenge):,} saved outputs", "product": name},
        repeat=_call(
            "audit_outputs",
            "(p_members, y_members)",
            "(p_nonmembers, y_nonmembers)",
            policy=_policy(policy).name,
            seed=seed,
            claimed_epsilon=claimed_epsilon,
        ),
    )


class _Name(str):
    """A variable of the caller, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _call(name: str, *positional: str, **named: object) -> str:
    """Return the call that would run the audit again."""
    arguments = [
        *positional,
        *(f"{k}={v!r}" for k, v in named.items() if v is not None),
    ]
    return f"reticent.{name}({', '.join(arguments)})"


def _policy(policy: Policy | Path | str | None) -> Policy:
    if isinstance(policy, Policy):
        return policy
    return read_policy("default" if policy is None else policy)


def _trainer(estimator: Any, *, preprocess: bool) -> Trainer:
    if isinstance(estimator, str):
        return parse_trainer(estimator, preprocess=preprocess)
    if hasattr(estimator, "train") and hasattr(estimator, "recipe"):
        made: Trainer = estimator
        return made
    return EstimatorTrainer.of(estimator, preprocess=preprocess)


def _frame(X: pd.DataFrame | ArrayLike) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    array = np.asarray(X)
    if array.ndim != 2:
        raise InvalidInput(
            f"X has shape {array.shape}, but must have one row per record and one column per feature."
        )
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _outputs(
    probabilities: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    return np.asarray(probabilities, dtype=np.float64), np.asarray(
        labels, dtype=np.int64
    )
