"""Three epsilons side by side: the claimed one, the proven one, and the audited lower bound."""

from dataclasses import dataclass

from reticent.evidence._estimate import Estimate

__all__ = ["Epsilons"]


@dataclass(frozen=True, kw_only=True)
class Epsilons:
    """Claimed, proven and audited epsilon of one training, at one delta, under one relation.

    Parameters
    ----------
    delta : float
        The delta at which all three are stated.
    relation : str
        When two tables are neighbours.
    claimed : float or None
        The epsilon claimed by whoever trained the product; None if there is no claim.
    claimed_by : str
        Who makes the claim, and how it was accounted.
    proven : float or None
        The epsilon that the recipe guarantees by its privacy loss distribution; None if it guarantees nothing, or if
        the recipe is not known.
    proven_by : str
        Where the proven epsilon comes from, or why there is none.
    audited : Estimate
        A lower bound on epsilon, at its confidence; the upper end is always infinite.
    ceiling : float
        About the lower bound that this audit gives for a training in which everything is as stated and every step uses
        its whole sensitivity bound; by luck the audited bound may lie a little above it.
    method : str
        How the training was audited.
    """

    delta: float
    relation: str
    claimed: float | None
    claimed_by: str
    proven: float | None
    proven_by: str
    audited: Estimate
    ceiling: float
    method: str

    @property
    def refuted(self) -> bool:
        """Whether the audited lower bound exceeds the claimed epsilon."""
        return self.claimed is not None and self.audited.low > self.claimed
