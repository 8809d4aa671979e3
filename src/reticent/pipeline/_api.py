"""Audits from Python: an estimator with data, or saved outputs alone."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reticent.attack import Attack, Challenge
from reticent.data import ColumnKind, Finding, Severity, Table, table_from_frame
from reticent.errors import InvalidInput
from reticent.evidence import Measure
from reticent.pipeline._audit import outputs_dossier, run_audit
from reticent.pipeline._plan import AuditPlan
from reticent.policy import Policy, read_policy
from reticent.product import Provenance, versions
from reticent.report import Dossier, Section
from reticent.run import Effort, Processes, Run, Serial, Workers, keyed
from reticent.train import trainer_of

__all__ = ["audit", "audit_outputs", "workers_of"]

FEWEST_OUTPUTS = 20  # members, and non-members: as many as a part of a table needs
USUAL_MEMORY = 2.0  # gigabytes, the same as on the command line


def workers_of(count: int | None) -> Workers:
    """Return so many processes; by default one per core.

    Examples
    --------
    >>> workers_of(1).count
    1
    """
    number = os.cpu_count() or 1 if count is None else count
    return Serial() if number == 1 else Processes(number)


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
    attacks: Sequence[Attack] = (),
    measures: Sequence[Measure] = (),
    sections: Sequence[Section] = (),
    minutes: float | None = None,
    rounds: int = 100,
    pool: int | None = None,
    memory: float = USUAL_MEMORY,
    workers: int | Workers | None = None,
    by: str = "",
) -> Dossier:
    """Train an estimator on a part of the data, attack it, and decide.

    Parameters
    ----------
    estimator : estimator, recipe, Trainer or str
        A scikit-learn-like model or pipeline (cloned, never fitted itself), a recipe such as
        ``reticent.Network(hidden=[8])``, a trainer, or a description such as ``"sklearn.naive_bayes.GaussianNB()"``.
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
        Seed of split, training and attacks.
    parts : array-like of str, optional
        ``"defender"``, ``"reserved"``, ``"auxiliary"``; by default a random split.
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
    rounds, pool : int
        Most rounds of the retraining insider per regime, and number of models that attacks compare with; see
        :class:`AuditPlan`.
    workers : int or Workers, optional
        Processes, or a cluster; by default one process per core.
    by : str
        Who runs the audit, for the dossier.

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
    data = _Data(X=X, y=y, groups=groups, units=units, parts=parts)
    rules = _policy(policy)
    trainer = trainer_of(estimator, preprocess=data.needs_preprocessing)
    table = data.table(quantity=trainer.quantity)
    shown = {"groups": groups, "units": units, "parts": parts}
    given = {k: None if v is None else _Name(k) for k, v in shown.items()}
    plan = AuditPlan(
        trainer=trainer,
        policy=rules,
        claimed_epsilon=claimed_epsilon,
        own_attacks=tuple(attacks),
        own_measures=tuple(measures),
        own_sections=tuple(sections),
        rounds=rounds,
        pool=pool,
        by=by,
        subject={"table": f"{len(table):,} records", "product": trainer.recipe},
        repeat=_call(
            "audit",
            trainer.recipe,
            "X",
            "y",
            groups=given["groups"],
            units=given["units"],
            policy=rules.name,
            seed=seed,
            parts=given["parts"],
            claimed_epsilon=claimed_epsilon,
            minutes=minutes,
            rounds=rounds,
            pool=pool,
            memory=None if memory == USUAL_MEMORY else memory,
        ),
    )
    by_count = workers is None or isinstance(workers, int)
    who = workers_of(workers) if by_count else workers  # type: ignore[arg-type]
    effort = Effort(
        minutes=minutes,
        memory=memory,
        workers=who,  # type: ignore[arg-type]
    )
    return run_audit(table, plan, run=Run(seed=seed, effort=effort)).dossier


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
        Name of the product in the report.

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
        if len(labels) < FEWEST_OUTPUTS:
            raise InvalidInput(
                f"there are {len(labels)} {who} but at least {FEWEST_OUTPUTS} are needed to say anything; bring more."
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
    rules = _policy(policy)
    plan = AuditPlan(
        trainer=None,
        answers_only=True,
        policy=rules,
        provenance=Provenance(
            data_fingerprint=keyed(digest.hexdigest(), about="outputs"),
            classes=classes,
            versions=versions(),
            claimed_epsilon=claimed_epsilon,
        ),
        subject={"table": f"{len(challenge):,} saved outputs", "product": name},
        repeat=_call(
            "audit_outputs",
            "(p_members, y_members)",
            "(p_nonmembers, y_nonmembers)",
            policy=rules.name,
            seed=seed,
            claimed_epsilon=claimed_epsilon,
        ),
    )
    return outputs_dossier(
        challenge,
        tags=np.repeat([True, False], [len(y_in), len(y_out)]),
        plan=plan,
        findings=[finding],
        run=Run(seed=seed),
    )


@dataclass(frozen=True, kw_only=True)
class _Data:
    """Records as a caller has them."""

    X: Any
    y: Any
    groups: Any
    units: Any
    parts: Any

    def table(self, *, quantity: bool = False) -> Table:
        return table_from_frame(
            _frame(self.X),
            target=np.asarray(self.y),
            group=self.groups,
            unit=self.units,
            part=self.parts,
            quantity=quantity,
            name="X",
        )

    @property
    def needs_preprocessing(self) -> bool:
        """Whether there is text or something missing; complete numbers reach an estimator as they are."""
        frame = _frame(self.X)
        kinds = table_from_frame(
            frame, target=np.arange(len(frame)) % 2, unit=self.units, name="X"
        )
        return bool(kinds.schema.names(ColumnKind.CATEGORICAL)) or bool(
            kinds.features.isna().to_numpy().any()
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
