"""Risks a person can state, each of which asks for an amount of noise."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from reticent._check import in_open_unit
from reticent.account.tradeoff import TradeOff
from reticent.errors import InvalidInput

__all__ = ["Budget", "ErrorRates", "MaxAdvantage", "MaxPosterior", "Target"]


@runtime_checkable
class Target(Protocol):
    """A limit that more noise keeps."""

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much a guarantee breaks the limit, relative to it; at most 0 if it keeps it."""
        ...

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        ...


@dataclass(frozen=True, kw_only=True)
class MaxPosterior:
    """Nobody may become more sure than so much that a record was used.

    Parameters
    ----------
    belief : float
        Highest posterior belief, above the prior and below 1.
    failure : float
        Probability with which it may be exceeded; "delta" of the plan.
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
                f"the highest belief is {self.belief}, but without any release it is {self.prior} already; ask for a value "
                f"above {self.prior} and below 1."
            )

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the chance of a higher belief exceeds the failure."""
        p = guarantee.probability_of_belief(self.belief, prior=self.prior)
        return p / self.failure - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return (
            f"nobody who believed in it with {100 * self.prior:g} % before becomes more than {100 * self.belief:g} % sure that a "
            f"record was used, but with probability {self.failure:g}"
        )


@dataclass(frozen=True, kw_only=True)
class MaxAdvantage:
    """No attack may have a larger TPR - FPR.

    Parameters
    ----------
    advantage : float
        In (0, 1).
    """

    advantage: float

    def __post_init__(self) -> None:
        in_open_unit(self.advantage, "advantage")

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the advantage exceeds the limit."""
        return guarantee.advantage / self.advantage - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"no membership attack has a true-positive rate more than {self.advantage:g} above its false-positive rate"


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """No attack may reach a true-positive rate at a false-positive rate.

    Parameters
    ----------
    tpr, fpr : float
        ``fpr < tpr``, both in (0, 1).
    """

    tpr: float
    fpr: float

    def __post_init__(self) -> None:
        in_open_unit(self.fpr, "fpr")
        if not self.fpr < self.tpr < 1:
            raise InvalidInput(
                f"the true-positive rate of {self.tpr} at a false-positive rate of {self.fpr} is reached by guessing; ask for one "
                f"above {self.fpr} and below 1."
            )

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much the true-positive rate exceeds the limit."""
        return guarantee.tpr(self.fpr) / self.tpr - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"no attack that wrongs {100 * self.fpr:g} % of non-members points out more than {100 * self.tpr:g} % of members"


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
        if self.epsilon <= 0:
            raise InvalidInput(
                f"epsilon is {self.epsilon}, but no noise short of infinite gives 0 or less; ask for a positive one."
            )
        if self.delta == 0:
            raise InvalidInput(
                "delta is 0, but Gaussian noise has no pure epsilon: rare outputs betray more; allow a small delta such as 1e-5."
            )
        in_open_unit(self.delta, "delta")

    def excess(self, guarantee: TradeOff) -> float:
        """Return by how much epsilon at the delta exceeds the limit."""
        return guarantee.epsilon(self.delta) / self.epsilon - 1

    @property
    def words(self) -> str:
        """The limit as a sentence."""
        return f"epsilon {self.epsilon:g} at delta {self.delta:g}"
