"""The risk a person states on the command line, as a target of the accounting."""

from collections.abc import Callable
from dataclasses import dataclass

from reticent.account import (
    Budget,
    ErrorRates,
    MaxAdvantage,
    MaxPosterior,
    Relation,
    Target,
)
from reticent.errors import InvalidInput

__all__ = ["Risk", "delta_of", "relation_of", "target_of"]


@dataclass(frozen=True, kw_only=True)
class Risk:
    """The options that `reticent plan` and `reticent train` share, as typed."""

    belief: float | None = None
    advantage: float | None = None
    tpr: float | None = None
    fpr: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    prior: float = 0.5
    relation: str = "add/remove"


def target_of(
    risk: Risk, rows: int | None
) -> tuple[str, float, Callable[[float], Target]]:
    """Return the kind of risk, its limit, and the target of any limit of this kind."""
    given = {
        "belief": risk.belief,
        "advantage": risk.advantage,
        "tpr": risk.tpr,
        "epsilon": risk.epsilon,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    if len(asked) != 1:
        named = ", ".join(f"--{name}" for name in asked) or "none"
        raise InvalidInput(
            f"a plan has one target, but {named} is given; choose one of --belief, --advantage, --tpr with --fpr, or --epsilon."
        )
    kind, limit = next(iter(asked.items()))
    if kind == "tpr" and risk.fpr is None:
        raise InvalidInput(
            "--tpr says how many members may be pointed out, but not at which false-positive rate; add --fpr, for example --fpr 0.001."
        )
    delta = delta_of(risk, rows)

    def target(value: float) -> Target:
        if kind == "belief":
            return MaxPosterior(belief=value, failure=delta, prior=risk.prior)
        if kind == "advantage":
            return MaxAdvantage(advantage=value)
        if kind == "tpr":
            assert risk.fpr is not None
            return ErrorRates(tpr=value, fpr=risk.fpr)
        return Budget(epsilon=value, delta=delta)

    return kind, limit, target


def delta_of(risk: Risk, rows: int | None) -> float:
    """Return the probability of failure that was asked for, or one that fits the rows."""
    if risk.delta is None:
        if rows is None:
            raise InvalidInput(
                "delta is not given, nor a number of rows to take one from; add --delta, for example --delta 1e-5."
            )
        # A failure probability well below one person in the table.
        return 1 / (10 * rows)
    if risk.delta == 0:
        raise InvalidInput(
            "delta is 0, but Gaussian noise has no pure epsilon: rare outputs betray more; allow a small delta such as 1e-5."
        )
    if not 0 < risk.delta < 1:
        raise InvalidInput(
            f"delta is {risk.delta:g}, but is a probability of failure; use one far below 1, such as 1e-5."
        )
    return risk.delta


def relation_of(text: str) -> Relation:
    """Return the neighbouring relation of a name."""
    for relation in Relation:
        if text in (
            relation.value,
            relation.name.lower(),
            relation.value.split("-")[0],
        ):
            return relation
    raise InvalidInput(
        f"the relation {text!r} is not known; use add/remove (a record is there or is not) or replace-one (a record has another content)."
    )
