"""Limits on risk that a person can state, each of which determines an amount of noise."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from reticent._check import in_open_unit
from reticent.account.tradeoff import TradeOff
from reticent.errors import InvalidInput

__all__ = ["Budget", "ErrorRates", "MaxAdvantage", "MaxPosterior", "Target"]


@runtime_checkable
class Target(Protocol):
    """A limit that enough noise meets."""

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much a guarantee exceeds the limit, relative to the limit; at most 0 if it meets it."""
        ...

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        ...


@dataclass(frozen=True, kw_only=True)
class MaxPosterior:
    """No attacker may believe more firmly than ``belief`` that a record was used.

    Parameters
    ----------
    belief : float
        Highest posterior belief, above the prior and below 1.
    failure : float
        Probability with which it may be exceeded: the delta of the plan.
    prior : float
        Belief before the release.
    """

    belief: float
    failure: float
    prior: float = 0.5

    def __post_init__(self) -> None:
        in_open_unit(self.prior, "prior")
        in_open_unit(self.failure, "delta")
        if not self.prior < self.belief < 1:
            raise InvalidInput(
                f"the highest belief is {self.belief}, but the belief is {self.prior} even without a release; ask for a value "
                f"above {self.prior} and below 1."
            )

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the probability of a higher belief exceeds ``failure``, relative to it."""
        p = guarantee.probability_of_belief(self.belief, prior=self.prior)
        return p / self.failure - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return (
            f"nobody who was {100 * self.prior:g} % sure beforehand becomes more than {100 * self.belief:g} % sure that a "
            f"record was used, except with probability {self.failure:g}"
        )


@dataclass(frozen=True, kw_only=True)
class MaxAdvantage:
    """No membership attack may have a larger advantage, TPR - FPR.

    Parameters
    ----------
    advantage : float
        Largest tolerated TPR - FPR, in (0, 1).
    """

    advantage: float

    def __post_init__(self) -> None:
        in_open_unit(self.advantage, "advantage")

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the advantage exceeds the limit, relative to it."""
        return guarantee.advantage / self.advantage - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"no membership attack has a true-positive rate more than {self.advantage:g} above its false-positive rate"


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """No membership attack may exceed a true-positive rate at a false-positive rate.

    Parameters
    ----------
    tpr, fpr : float
        The two rates, ``fpr < tpr``, both in (0, 1).
    """

    tpr: float
    fpr: float

    def __post_init__(self) -> None:
        in_open_unit(self.fpr, "fpr")
        if not self.fpr < self.tpr < 1:
            raise InvalidInput(
                f"a true-positive rate of {self.tpr} at a false-positive rate of {self.fpr} cannot be a limit: guessing reaches "
                f"{self.fpr}, and no attack exceeds 1; ask for a rate above {self.fpr} and below 1."
            )

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the true-positive rate exceeds the limit, relative to it."""
        return guarantee.tpr(self.fpr) / self.tpr - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"no attack that wrongly accuses {100 * self.fpr:g} % of the non-members identifies more than {100 * self.tpr:g} % of the members"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Differential privacy with an epsilon and a delta.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise InvalidInput(
                f"epsilon must be positive and finite, got {self.epsilon}: only infinite noise would give 0, and no noise at all infinity."
            )
        if self.delta == 0:
            raise InvalidInput(
                "delta must be above 0, got 0: Gaussian noise has no pure epsilon, since rare outputs reveal more; allow a small "
                "delta such as 1e-5."
            )
        in_open_unit(self.delta, "delta")

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much epsilon at the delta exceeds the limit, relative to it."""
        return guarantee.epsilon(self.delta) / self.epsilon - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"epsilon {self.epsilon:g} at delta {self.delta:g}"
