"""What whoever trained a product guarantees about it, with all that the guarantee rests on."""

from dataclasses import dataclass

__all__ = ["Guarantee"]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee that travels with a product.

    It speaks of every attack, whatever an attacker knows, and of nothing that was measured.

    Parameters
    ----------
    mechanism : str
        What protects, in words.
    holds : bool
        Whether it is a guarantee at all; if not, ``caveats`` say why, and the numbers are what it would have been.
    relation : str
        When two tables are neighbours.
    epsilon, delta : float
        Differential privacy under the relation.
    noise_multiplier, sampling_rate : float
        Noise over the bound on a record's share, and how likely a record takes part in a step.
    steps : int
        Number of steps.
    advantage : float
        Largest TPR - FPR of any membership attack.
    belief, prior : float
        Highest belief that a record was used, but with probability ``delta``, and the belief before.
    tpr, fpr : float
        Largest true-positive rate at a false-positive rate.
    caveats : tuple of str
        What the reader must know.
    public : tuple of str
        What is treated as known to everyone, so that nothing protects it.
    """

    mechanism: str
    holds: bool
    relation: str
    epsilon: float
    delta: float
    noise_multiplier: float
    sampling_rate: float
    steps: int
    advantage: float
    belief: float
    prior: float
    tpr: float
    fpr: float
    caveats: tuple[str, ...] = ()
    public: tuple[str, ...] = ()
