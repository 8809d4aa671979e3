"""Three epsilons side by side: what is claimed, what the recipe truly guarantees, and what was shown at least."""

from dataclasses import dataclass

from reticent.evidence._estimate import Estimate

__all__ = ["Epsilons"]


@dataclass(frozen=True, kw_only=True)
class Epsilons:
    """Claimed, proven and audited epsilon of one training, at one delta, under one relation.

    Parameters
    ----------
    delta : float
        At which all three are stated.
    relation : str
        When two tables are neighbours.
    claimed : float or None
        What whoever trained the product says; None if nothing is said.
    claimed_by : str
        Who says so, and how it was accounted.
    proven : float or None
        What the recipe guarantees by its privacy loss distribution; None if it guarantees nothing, or if the
        recipe is not known.
    proven_by : str
        Where the proven one comes from, or why there is none.
    audited : Estimate
        An epsilon that is exceeded with confidence; its upper end is always infinite.
    ceiling : float
        About what this way of auditing shows of a training in which everything is as stated and every step uses up its bound;
        by luck a bound may lie a little above.
    method : str
        How it was audited.
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
        """Whether more was shown than is claimed."""
        return self.claimed is not None and self.audited.low > self.claimed
