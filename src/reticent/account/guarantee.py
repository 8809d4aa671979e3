"""What the trainer of a product guarantees about it, with everything that the guarantee rests on."""

from dataclasses import dataclass, field

from reticent._codec import NOT_WRITTEN
from reticent.errors import InvalidInput

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
    witnessed : bool
        Whether the process that speaks has done the training itself. Read from a file it is never true: anybody can write
        numbers, and then they are a claim.

    Raises
    ------
    InvalidInput
        If a number is none of its kind.
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
    # Neither written nor read, so that no file can say it.
    witnessed: bool = field(default=False, compare=False, metadata=NOT_WRITTEN)

    def __post_init__(self) -> None:
        shares = {"delta": self.delta, "prior": self.prior, "fpr": self.fpr}
        for name, share in shares.items():
            if not 0 <= share < 1:
                raise InvalidInput(
                    f"{name} of a guarantee must be in [0, 1), got {share}."
                )
