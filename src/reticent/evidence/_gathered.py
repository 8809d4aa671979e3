"""Gather everything that is known about one product: the evidence of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reticent.evidence._estimate import Estimate, best_of
from reticent.evidence.blind import BlindEvidence
from reticent.evidence.calibration import Calibration
from reticent.evidence.disclosure import GuessedAttribute
from reticent.evidence.file import FileEvidence
from reticent.evidence.histogram import Histogram
from reticent.evidence.ltu import privacy_from_accuracy
from reticent.evidence.naming import Naming
from reticent.evidence.pool import PoolEvidence
from reticent.evidence.roc import RocPoint
from reticent.evidence.synthetic import SyntheticEvidence
from reticent.evidence.worst_case import WorstCase

__all__ = [
    "AttackEvidence",
    "AttackFailed",
    "AttackSkipped",
    "Evidence",
    "GroupEvidence",
    "InsiderEvidence",
    "LongStatistic",
    "RegimeEvidence",
    "RegimeLeftOut",
    "StatisticSkipped",
    "Utility",
]


class LongStatistic(StrEnum):
    """Statistics that may be left out before a deadline; those of the worst case have the name of what is seen."""

    GROUPS = "privacy by group"
    NAMED = "members that could be named"
    OTHER_MODELS = "attacks on other models"
    CONVERGENCE = "attacks with parts of the pool"
    INSIDER = "retraining insider"
    WATCHING = "observer of the training"


@dataclass(frozen=True, kw_only=True)
class AttackEvidence:
    """What one attack showed; its intervals hold jointly with those of the other attacks.

    Parameters
    ----------
    name : str
        The attack.
    family : str
        What the attacker does beside querying: ``"queries"``, ``"looks inside"``, ``"trains others"``, ``"reads the file"`` or, of a
        synthetic table, ``"compares rows"``.
    auc : Estimate
        LTU accuracy over all pairs, which is the area under the ROC curve.
    privacy : Estimate
        ``min(2 (1 - auc), 1)``.
    tpr_at_fpr : Estimate
        True-positive rate at the policy's false-positive rate ``fpr``.
    exposed : Estimate
        Share of members whose individual privacy is below the policy's value.
    vulnerability : Estimate
        TPR - FPR at a threshold learned on other records.
    epsilon : Estimate
        Lower bound on epsilon.
    roc : tuple of RocPoint
        The curve, each point with an interval of its own.
    """

    name: str
    family: str
    auc: Estimate
    privacy: Estimate
    tpr_at_fpr: Estimate
    fpr: float
    exposed: Estimate
    vulnerability: Estimate
    epsilon: Estimate
    roc: tuple[RocPoint, ...]


@dataclass(frozen=True, kw_only=True)
class GroupEvidence:
    """Privacy of the members of one group, judged by the strongest attack.

    Parameters
    ----------
    name : str
        The group.
    members, nonmembers : int
        Its size on either side.
    privacy : Estimate
        Privacy score; intervals hold jointly over groups.
    vulnerability : Estimate
        TPR - FPR of the attack's decisions inside the group, the threshold learned on other records of all groups.
    worst_case : Estimate
        The most that any adversary who sees the attack's score could reach inside the group.
    """

    name: str
    members: int
    nonmembers: int
    privacy: Estimate
    vulnerability: Estimate
    worst_case: Estimate


@dataclass(frozen=True, kw_only=True)
class RegimeEvidence:
    """Rounds of the retraining attacker in one regime.

    Parameters
    ----------
    name : str
        What the attacker knows.
    rounds : int
        Rounds that were played.
    wins : float
        Those that it won; a tie counts one half.
    privacy : Estimate
        Privacy score.
    repeats : int
        Rounds whose model, trained on the members, gave the answers of the product.
    """

    name: str
    rounds: int
    wins: float
    privacy: Estimate
    repeats: int = 0


@dataclass(frozen=True, kw_only=True)
class RegimeLeftOut:
    """A regime that could not be played, so that nothing is known about it.

    Parameters
    ----------
    name : str
        What the attacker would have known.
    why : str
        Why its rounds would have said nothing.
    """

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class InsiderEvidence:
    """What the LTU insider achieves by retraining.

    Parameters
    ----------
    regimes : tuple of RegimeEvidence
        The regimes that were played.
    privacy : Estimate
        That of the worst regime.
    trained_again : str or None
        What training again gives, on the members with the product's order and seed; None if an older version wrote it.
    left_out : tuple of RegimeLeftOut
        Regimes that could not be played with this product.
    """

    regimes: tuple[RegimeEvidence, ...]
    privacy: Estimate
    trained_again: str | None = None
    left_out: tuple[RegimeLeftOut, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AttackFailed:
    """An attack that raised an exception: what it would have found is not known.

    Parameters
    ----------
    name : str
        The attack.
    why : str
        The kind of exception, and its message if it is one of reticent's own; a stranger's message could quote a record.
    """

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class AttackSkipped:
    """An attack that was not begun, by a rule that looks at no result.

    Parameters
    ----------
    name : str
        The attack.
    why : str
        What it lacked: time, or something that it needs.
    """

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class StatisticSkipped:
    """A statistic that was not computed, by a rule that looks at no result.

    Parameters
    ----------
    name : str
        The statistic.
    why : str
        What it lacked.
    """

    name: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Utility:
    """What the product is good for.

    Parameters
    ----------
    score : Estimate
        0 is a guess, 1 is never wrong.
    definition : str
        How the score is defined, in words.
    baseline : float
        The score of an answer that looks at no feature.
    baseline_words : str
        What that answer is: ``"always answering the most frequent class"``.
    gain : Estimate or None
        Share of that answer's errors that the product saves; None if that answer is never wrong.
    beside : mapping of str to Estimate
        Other scores that belong to it, by what they are called.
    """

    score: Estimate
    definition: str
    baseline: float
    baseline_words: str
    gain: Estimate | None = None
    beside: Mapping[str, Estimate]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that an audit has found about one product, with intervals.

    Parameters
    ----------
    attacks : tuple of AttackEvidence
        Every attack that was run.
    failed : tuple of AttackFailed
        Attacks that raised an exception.
    skipped : tuple of AttackSkipped
        Attacks that were not begun.
    utility : Utility
        On reserved records.
    epsilon_ceiling : float
        Largest lower bound on epsilon that any attack on so many records could have given.
    smallest_leak : float
        LTU accuracy this audit tells from chance with 80 % power.
    members, nonmembers : int
        Independent units on the two sides.
    groups : tuple of GroupEvidence
        Privacy by group.
    insider : InsiderEvidence or None
        The retraining attacker, if it was run.
    scores : Histogram
        Scores of the strongest attack.
    individual : Histogram
        Individual privacy of members (and, for comparison, of non-members).
    calibration : Calibration or None
        Of the attack that predicts probabilities of membership.
    predicted_by : str
        That attack; empty if there is none.
    theorems : mapping of str to float
        pR, pD, eR, eD and the LTU accuracies that Theorems 1 and 2 guarantee by the 0-1
        loss and by the loss.
    worst_case : tuple of WorstCase
        The most that any adversary could reach, by what it sees of an answer.
    subgroup_aware : Estimate or None
        The same for one who sees the strongest attack's score and the group.
    vulnerability_bound : float or None
        The largest vulnerability that the claimed epsilon allows.
    pool : PoolEvidence or None
        What many models tell, if they were trained.
    aside : tuple of AttackEvidence
        Attacks that need more than would be released; they are shown, and the verdict does not rest on them.
    file : FileEvidence or None
        What the product's file contains, if it was read.
    naming : Naming or None
        What the strongest attack is good for when names must be right.
    not_computed : tuple of StatisticSkipped
        Statistics that were left out because of a deadline.
    blind : BlindEvidence or None
        Whether members and non-members differ without the product, if their records were looked at.
    synthetic : SyntheticEvidence or None
        What else is known about a synthetic table; None for models.
    attributes : tuple of GuessedAttribute
        Columns that were guessed from a classifier's answers; none for other products.
    """

    attacks: tuple[AttackEvidence, ...]
    failed: tuple[AttackFailed, ...] = ()
    skipped: tuple[AttackSkipped, ...] = ()
    utility: Utility
    epsilon_ceiling: float
    smallest_leak: float
    members: int
    nonmembers: int
    groups: tuple[GroupEvidence, ...]
    insider: InsiderEvidence | None
    scores: Histogram
    individual: Histogram
    calibration: Calibration | None
    predicted_by: str = ""
    theorems: Mapping[str, float]
    worst_case: tuple[WorstCase, ...]
    subgroup_aware: Estimate | None
    vulnerability_bound: float | None
    pool: PoolEvidence | None
    aside: tuple[AttackEvidence, ...] = ()
    file: FileEvidence | None = None
    naming: Naming | None = None
    not_computed: tuple[StatisticSkipped, ...] = ()
    blind: BlindEvidence | None = None
    synthetic: SyntheticEvidence | None = None
    attributes: tuple[GuessedAttribute, ...] = ()

    def skipped_statistic(self, name: str) -> StatisticSkipped | None:
        """Return why a statistic was left out; None if it was not."""
        return next((s for s in self.not_computed if s.name == name), None)

    @property
    def privacy(self) -> Estimate:
        """Privacy score against the best attack of the outsider, the choice paid for."""
        return privacy_from_accuracy(self._best("auc"))

    @property
    def tpr_at_fpr(self) -> Estimate:
        """Largest true-positive rate of any attack at the policy's false-positive rate."""
        return self._best("tpr_at_fpr")

    @property
    def exposed(self) -> Estimate:
        """Largest share of exposed members by any attack."""
        return self._best("exposed")

    @property
    def epsilon(self) -> Estimate:
        """Largest lower bound on epsilon of any attack."""
        return self._best("epsilon")

    def _best(self, what: str) -> Estimate:
        """Return the largest of one quantity over attacks, whose intervals hold jointly."""
        estimates: list[Estimate] = [getattr(attack, what) for attack in self.attacks]
        return best_of(estimates, level=estimates[0].level)
