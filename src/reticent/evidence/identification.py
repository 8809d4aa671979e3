"""The complete result of watching a training."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reticent.evidence.checks import Check, failed
from reticent.evidence.epsilons import Epsilons
from reticent.evidence.watched import WatchedEvidence

__all__ = ["Identification"]


@dataclass(frozen=True, kw_only=True)
class Identification:
    """What the adversary that watched every step showed, beside the claimed and the proven epsilon.

    Parameters
    ----------
    epsilons : Epsilons
        Claimed, proven and audited epsilon.
    evidence : WatchedEvidence
        Beliefs, sensitivities and noise.
    relation : str
        When two tables are neighbours.
    sensitivity : str
        ``"global"``, or ``"local: empirical, not DP"``.
    sampling : str
        How batches were drawn.
    neighbour : str
        How the record that distinguishes the two tables was chosen.
    recipe : str
        The training, in words.
    rows : int
        Number of records of the first table.
    warnings : tuple of str
        What the reader must know.
    subject : mapping of str to str
        Names for the report.
    seed : int
        Seed of coins, initialisation, batches and noise.
    repeat : str
        How to run the audit again.
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

    @property
    def departures(self) -> tuple[Check, ...]:
        """What is stated of the training and was found to be false."""
        return failed(self.evidence.checks)

    @property
    def contradicted(self) -> bool:
        """Whether the claim is refuted, or the training is not the one that the claim speaks of."""
        return self.epsilons.refuted or bool(self.departures)
