"""What a measure sees, and what it must say."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from reticent.errors import InvalidPolicy
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence._gathered import Evidence
from reticent.evidence._scores import UnitScores
from reticent.evidence.checks import Check
from reticent.evidence.epsilons import Epsilons
from reticent.evidence.power import records_to_settle
from reticent.evidence.statement import Limit, Statement, Threat

__all__ = ["Claim", "Measure", "Seen", "refuse_limit_on_claim"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """An epsilon that somebody states about a product, with what it is stated under.

    Parameters
    ----------
    epsilon, delta : float
        The privacy that is claimed.
    relation : str
        When two tables are neighbours; empty if that is not said.
    """

    epsilon: float
    delta: float = 0.0
    relation: str = ""

    def __str__(self) -> str:
        under = [f"delta {self.delta:.2g}"] if self.delta else []
        under += [self.relation] if self.relation else []
        return f"{self.epsilon:.4g}" + (f" ({', '.join(under)})" if under else "")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Everything a measure may look at; the last place where single people have scores.

    Parameters
    ----------
    evidence : Evidence
        What attacks, retraining and models of the same recipe have shown.
    scores : mapping of str to UnitScores
        Scores by attack, one per unit.
    claim : Claim or None
        The privacy that is claimed of the product.
    epsilons : Epsilons or None
        Claimed, proven and audited epsilon.
    was_watched : bool
        Whether the audited epsilon comes from watching the training.
    checks : tuple of Check
        What is stated of the training, put to the test by watching it.
    people_repeat : bool
        Whether people have several records each: attacks then speak of people, and a claim, which is about one
        record, cannot be refuted by them.
    confidence : float
        Chance that all judged intervals of the audit hold together.
    statements : int
        How many statements share that confidence.
    queries_only : bool
        Whether only answers to queries are released, so that nobody holds the file.
    rows : int
        Rows of the user's table, of which advice speaks; by default one per unit.
    """

    evidence: Evidence
    scores: Mapping[str, UnitScores] = field(default_factory=dict)
    claim: Claim | None = None
    epsilons: Epsilons | None = None
    was_watched: bool = False
    checks: tuple[Check, ...] = ()
    people_repeat: bool = False
    confidence: float = 0.95
    statements: int = 1
    queries_only: bool = False
    rows: int = 0

    @property
    def level(self) -> float:
        """Confidence that one statement needs so that all hold together."""
        return split_level(self.confidence, self.statements)

    @property
    def records(self) -> int:
        """Units on the smaller side."""
        return min(self.evidence.members, self.evidence.nonmembers)


def refuse_limit_on_claim(limit: Limit) -> None:
    """Refuse a limit on a measure that is judged by the product's own claim.

    Raises
    ------
    InvalidPolicy
        Always.
    """
    raise InvalidPolicy(
        f"the policy limits {limit.measure}, which is judged by the epsilon that the product itself claims, so the limit would be "
        "ignored; limit claimed_epsilon instead."
    )


class Measure(ABC):
    """A recipe with one verb: from what was seen to one statement. One file each.

    A measure of your own derives from it, sets the class attributes and writes :meth:`measure`; a policy limits it by its
    ``name``.

    Attributes
    ----------
    name : str
        As policies and dossiers write it.
    label : str
        As tables write it.
    better : str
        ``"higher"`` or ``"lower"``: the side on which a limit may be set.
    threat : Threat or None
        Whose attack it is about.
    compares : bool
        Whether it rests on comparing members with non-members.
    has_interval : bool
        Whether it is judged by an interval, which then shares the joint confidence.
    bounds : tuple of float
        Smallest and largest value a limit may have.
    parameters : mapping of str to float
        Names and usual values of what a limit may set beside its number.
    noun : str
        The measure inside a sentence on what would settle it.
    if_broken : str
        What could help where its limit is broken, if that depends on nothing else.
    """

    name: str
    label: str
    better: str = "higher"
    threat: Threat | None = Threat.OUTSIDER
    compares: bool = True
    has_interval: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    parameters: Mapping[str, float] = {}
    noun: str = ""
    if_broken: str = ""

    @abstractmethod
    def measure(
        self, seen: Seen, *, limit: Limit | None, rng: np.random.Generator
    ) -> Statement | None:
        """Return what was seen, as one statement; None if the question does not arise.

        Parameters
        ----------
        seen : Seen
            Evidence and scores.
        limit : Limit or None
            What the policy sets, parameters included.
        rng : numpy.random.Generator
            The measure's own stream.
        """

    def check(self, limit: Limit) -> None:
        """Refuse a limit on this measure that could never decide anything.

        Raises
        ------
        InvalidPolicy
            If the limit is on the wrong side, outside of the measure's range, or names an unknown parameter.
        """
        wrong = limit.at_most if self.better == "higher" else limit.at_least
        if wrong is not None:
            side = "at_least" if self.better == "higher" else "at_most"
            raise InvalidPolicy(
                f"the limit on {self.name} has the wrong side: {self.better} values are better, so write {side}."
            )
        low, high = self.bounds
        if limit.judges and not low <= limit.value <= high:
            raise InvalidPolicy(
                f"the limit on {self.name} is {limit.value}, outside [{low:g}, {high:g}], so it could never decide "
                "anything; correct it."
            )
        for name, value in limit.at.items():
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise InvalidPolicy(
                    f"the limit on {self.name} sets {name!r}, which would be ignored; its parameters are: {known}."
                )
            if not 0 < value < 1:
                raise InvalidPolicy(
                    f"{name} of the limit on {self.name} is {value}, but is a share; it must lie inside (0, 1)."
                )

    def parameter(self, name: str, limit: Limit | None) -> float:
        """Return a parameter as the limit sets it, or its usual value."""
        usual = self.parameters[name]
        return usual if limit is None else limit.at.get(name, usual)

    def to_settle(self, estimate: Estimate, limit: Limit, seen: Seen) -> str:
        """Return what would settle on which side of its limit the measure lies."""
        return self.records_sentence(
            records_to_settle(estimate, limit.value, seen.records), seen
        )

    def records_sentence(self, needed: int | None, seen: Seen) -> str:
        """Return how many records would settle it, in a sentence."""
        noun = self.noun or self.label
        if needed is None or needed <= seen.records:
            return f"The {noun} is too near its limit for any practical number of records to settle it."
        rows = seen.rows or seen.evidence.members + seen.evidence.nonmembers
        more = math.ceil(needed / seen.records * rows)
        return f"About {more:,} rows (now {rows:,}) would settle the {noun}."

    def statement(
        self, words: str, estimate: Estimate | None, *, limit: Limit | None, seen: Seen
    ) -> Statement:
        """Return the usual statement: an estimate, judged by the policy's limit alone."""
        judged = limit is not None and limit.judges and estimate is not None
        return Statement(
            measure=self.name,
            label=self.label,
            words=words,
            better=self.better,
            estimate=estimate,
            threat="" if self.threat is None else self.threat.value,
            compares=self.compares,
            to_settle=self.to_settle(estimate, limit, seen) if judged else "",  # type: ignore[arg-type]
            if_broken=self.if_broken if judged else "",
        )
