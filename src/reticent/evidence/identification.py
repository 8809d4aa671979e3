"""What came of watching a training: one result, complete."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reticent.evidence.epsilons import Epsilons
from reticent.evidence.watched import WatchedEvidence

__all__ = ["Identification"]


@dataclass(frozen=True, kw_only=True)
class Identification:
    """The adversary that watched every step, and what it says of the three epsilons.

    Parameters
    ----------
    epsilons : Epsilons
        Claimed, proven, audited.
    evidence : WatchedEvidence
        Beliefs, sensitivities, noise.
    relation : str
        When tables are neighbours.
    sensitivity : str
        ``"global"``, or ``"local: empirical, not DP"``.
    sampling : str
        How batches were made.
    neighbour : str
        How the record was chosen that tells the tables apart.
    recipe : str
        The training.
    rows : int
        Records of the first table.
    warnings : tuple of str
        What the reader must know.
    subject : mapping of str to str
        Names for the report.
    seed : int
        Of coins, initialisation, batches and noise.
    repeat : str
        How to run it again.
    """

    epsilons: Epsilons
    evidence: WatchedEvidence
    relation: str
    sensitivity: str
    sampling: str
    neighbour: str
    recipe: str
    rows: int
    warnings: tuple[str, ...] = ()
    subject: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    repeat: str = ""
