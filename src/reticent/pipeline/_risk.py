"""The risk that a person accepts, as a target of the accounting."""

from dataclasses import dataclass

from reticent.account import (
    Budget,
    ErrorRates,
    MaxAdvantage,
    MaxPosterior,
    Relation,
    Target,
    Terms,
)
from reticent.errors import InvalidInput

__all__ = ["Risk", "relation_of"]


@dataclass(frozen=True, kw_only=True)
class Risk:
    """What may be found out about a record: one of four statements, and when tables are neighbours.

    Parameters
    ----------
    belief : float, optional
        Highest belief that a record was used, in (prior, 1).
    advantage : float, optional
        Largest TPR - FPR of any membership attack, in (0, 1).
    tpr, fpr : float, optional
        Largest true-positive rate at a false-positive rate, both in (0, 1). Without ``tpr``, ``fpr`` is only where the
        true-positive rate is stated.
    epsilon : float, optional
        Differential privacy at ``delta``.
    delta : float, optional
        Probability of failure; by default 1 / (10 rows).
    prior : float
        Belief before the release.
    relation : str
        ``"add/remove"`` or ``"replace-one"``.

    Examples
    --------
    >>> Risk(belief=0.9).target(1000).words
    '...becomes more than 90 % sure...
    """

    belief: float | None = None
    advantage: float | None = None
    tpr: float | None = None
    fpr: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    prior: float = 0.5
    relation: str = "add/remove"

    @property
    def is_stated(self) -> bool:
        """Whether any of the four is limited."""
        four = (self.belief, self.advantage, self.tpr, self.epsilon)
        return any(limit is not None for limit in four)

    @property
    def kind(self) -> str:
        """Which of the four is limited: ``"belief"``, ``"advantage"``, ``"tpr"`` or ``"epsilon"``."""
        return self._only()[0]

    @property
    def limit(self) -> float:
        """What it is limited to."""
        return self._only()[1]

    @property
    def neighbours(self) -> Relation:
        """When two tables are neighbours."""
        return relation_of(self.relation)

    def target(self, rows: int | None, *, limit: float | None = None) -> Target:
        """Return what must hold for a table of so many rows, or with another limit of the same kind.

        Raises
        ------
        InvalidInput
            If not exactly one of the four is given, or something that it needs is not.
        """
        kind, value = self._only()
        value = value if limit is None else limit
        # Checked for every kind, also for those that need no delta: a wrong one is an error wherever it is typed.
        delta = self.delta_for(rows)
        if kind == "belief":
            return MaxPosterior(belief=value, failure=delta, prior=self.prior)
        if kind == "advantage":
            return MaxAdvantage(advantage=value)
        if kind == "epsilon":
            return Budget(epsilon=value, delta=delta)
        if self.fpr is None:
            raise InvalidInput(
                "tpr says how many members may be pointed out, but not at which false-positive rate; add fpr, for example 0.001."
            )
        return ErrorRates(tpr=value, fpr=self.fpr)

    def delta_for(self, rows: int | None) -> float:
        """Return the probability of failure that was asked for, or one that fits the rows."""
        if self.delta is None:
            if rows is None:
                raise InvalidInput(
                    "delta is not given, nor a number of rows to take one from; state delta, for example 1e-5."
                )
            # A failure probability well below one person in the table.
            return 1 / (10 * rows)
        if self.delta == 0:
            raise InvalidInput(
                "delta is 0, but Gaussian noise has no pure epsilon: rare outputs betray more; allow a small delta such as 1e-5."
            )
        if not 0 < self.delta < 1:
            raise InvalidInput(
                f"delta is {self.delta:g}, but is a probability of failure; use one far below 1, such as 1e-5."
            )
        return self.delta

    def terms(self, rows: int | None) -> Terms:
        """Return the terms in which a guarantee about a table of so many rows is stated."""
        return Terms(
            delta=self.delta_for(rows),
            relation=self.neighbours,
            prior=self.prior,
            fpr=Terms.fpr if self.fpr is None else self.fpr,
        )

    def _only(self) -> tuple[str, float]:
        given = {
            "belief": self.belief,
            "advantage": self.advantage,
            "tpr": self.tpr,
            "epsilon": self.epsilon,
        }
        asked = {name: value for name, value in given.items() if value is not None}
        if len(asked) != 1:
            named = " and ".join(asked) or "none"
            raise InvalidInput(
                f"a plan has exactly one target, got {named}; choose one of belief, advantage, tpr with fpr, or epsilon."
            )
        return next(iter(asked.items()))


def relation_of(text: str) -> Relation:
    """Return the neighbouring relation of a name."""
    for relation in Relation:
        # Long and short names are accepted: add/remove, add_remove, replace-one, replace.
        if text in (
            relation.value,
            relation.name.lower(),
            relation.value.split("-")[0],
        ):
            return relation
    raise InvalidInput(
        f"the relation {text!r} is not known; use add/remove (a record is there or is not) or replace-one (a record has another content)."
    )
