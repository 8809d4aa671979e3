"""What the trainer of a product guarantees about it, with everything that the guarantee rests on."""

from dataclasses import dataclass

__all__ = ["Guarantee"]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """The guarantee that travels with a product.

    It covers every attack, whatever the attacker knows, and does not depend on any measurement.

    Parameters
    ----------
    mechanism : str
        The mechanism that protects the records, in words.
    holds : bool
        Whether the guarantee holds; if not, ``caveats`` say why, and the numbers are what would have been guaranteed.
    relation : str
        When two tables are neighbours.
    epsilon, delta : float
        Differential privacy under the relation.
    noise_multiplier, sampling_rate : float
        Standard deviation of the noise over the clipping norm, and the probability that a record takes part in a step.
    steps : int
        Number of steps.
    advantage : float
        Largest TPR - FPR of any membership attack.
    belief, prior : float
        Highest belief that a record was used, except with probability ``delta``, and the belief before the release.
    tpr, fpr : float
        Largest true-positive rate at a false-positive rate.
    caveats : tuple of str
        What the reader must know before relying on the guarantee.
    public : tuple of str
        What is treated as known to everyone and is therefore not protected.
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
