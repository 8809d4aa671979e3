"""Audits from saved answers alone."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from reticent.attack import Challenge
from reticent.data import Finding, Severity, as_values
from reticent.errors import InvalidInput
from reticent.pipeline._audit import outputs_dossier
from reticent.pipeline._plan import AuditPlan, policy_of
from reticent.pipeline._repeat import call
from reticent.policy import Policy
from reticent.product import Provenance, versions
from reticent.report import Dossier
from reticent.run import Run, keyed

__all__ = ["audit_outputs"]

FEWEST_OUTPUTS = 20  # members, and non-members: as many as a part of a table needs


def audit_outputs(
    members: tuple[ArrayLike, ArrayLike],
    nonmembers: tuple[ArrayLike, ArrayLike],
    *,
    policy: Policy | Path | str | None = None,
    seed: int = 0,
    claimed_epsilon: float | None = None,
    name: str = "saved outputs",
    classes: Sequence[object] | None = None,
) -> Dossier:
    """Audit a product of which only the answers are at hand.

    Parameters
    ----------
    members, nonmembers : pair of arrays
        ``predict_proba`` of shape (n, c), and the true classes, as numbers 0 to c - 1 or as names; of
        records the product was trained on, and of others from the same source.
    policy, seed, claimed_epsilon
        As in :func:`audit`.
    name : str
        Name of the product in the report.
    classes : sequence, optional
        Names of the classes in the order of the columns; by default, for names, the sorted names, which is how scikit-learn orders them.

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
    (p_in, labels_in), (p_out, labels_out) = (
        _outputs(members, "members"),
        _outputs(nonmembers, "nonmembers"),
    )
    if p_in.shape[1:] != p_out.shape[1:]:
        raise InvalidInput(
            f"members have answers of shape {p_in.shape} and non-members of {p_out.shape}; both must come "
            "from the same product."
        )
    numbers, names = _class_numbers(
        pd.concat([labels_in, labels_out], ignore_index=True), p_in.shape[1], classes
    )
    y_in, y_out = numbers[: len(labels_in)], numbers[len(labels_in) :]
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
    finding = Finding(
        name="outputs_only",
        severity=Severity.WARNING,
        text="the audit started from saved outputs: whether members and non-members differ by more than "
        "membership could not be checked, nor whether a person is on both sides.",
    )
    rules = policy_of(policy)
    plan = AuditPlan(
        trainer=None,
        answers_only=True,
        policy=rules,
        provenance=Provenance(
            data_fingerprint=keyed(digest.hexdigest(), about="outputs"),
            classes=names,
            versions=versions(),
            claimed_epsilon=claimed_epsilon,
        ),
        subject={"table": f"{len(challenge):,} saved outputs", "product": name},
        repeat=call(
            "audit_outputs",
            "(p_members, y_members)",
            "(p_nonmembers, y_nonmembers)",
            policy=rules.name,
            seed=seed,
            claimed_epsilon=claimed_epsilon,
            classes=None if classes is None else list(classes),
        ),
    )
    return outputs_dossier(
        challenge,
        tags=np.repeat([True, False], [len(y_in), len(y_out)]),
        plan=plan,
        findings=[finding],
        run=Run(seed=seed),
    )


def _outputs(side: Any, name: str) -> tuple[NDArray[np.float64], pd.Series]:
    """Return the answers and the true classes of one side."""
    if not isinstance(side, tuple | list) or len(side) != 2:
        raise InvalidInput(
            f"{name} must be a pair of answers and true classes, such as {name}=(model.predict_proba(X), y)."
        )
    try:
        probabilities = np.asarray(side[0], dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the answers of {name} are not numbers; pass the result of predict_proba."
        ) from None
    if probabilities.ndim != 2 or probabilities.shape[1] < 2:
        raise InvalidInput(
            f"the answers of {name} have shape {probabilities.shape}, but must have one row per record and one column per class; pass the "
            "result of predict_proba."
        )
    labels = as_values(side[1], role="class")
    if len(labels) != len(probabilities):
        raise InvalidInput(
            f"{name} has {len(probabilities)} answers but {len(labels)} true classes; pass one per record."
        )
    if labels.isna().any():
        raise InvalidInput(
            f"{int(labels.isna().sum())} true classes of {name} are missing; leave those records out."
        )
    return probabilities, labels


def _class_numbers(
    labels: pd.Series, columns: int, classes: Sequence[object] | None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the column of each true class, and the names of the classes."""
    present = labels.unique().tolist()
    if classes is None:
        numbers = {k: k for k in range(columns)}
        # True and False are 1 and 0, as are 1.0 and 0.0.
        if all(value in numbers for value in present):
            return labels.to_numpy(dtype=np.int64), tuple(map(str, numbers))
        try:
            classes = sorted(present)
        except TypeError:
            classes = present
    order = {value: k for k, value in enumerate(classes)}
    unknown = [value for value in present if value not in order]
    if len(order) != columns or unknown:
        raise InvalidInput(
            f"there are answers for {columns} classes, but the true classes are {', '.join(map(str, present[:6]))}, so nobody knows which "
            "column is whose; pass classes= with the name of each column, such as classes=model.classes_."
        )
    return labels.map(order).to_numpy(dtype=np.int64), tuple(map(str, classes))
