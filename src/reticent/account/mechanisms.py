r"""Descriptions of mechanisms: which noise is added to what, under which neighbouring relation.

A mechanism draws no random numbers and holds no data. It describes the worst pair of output distributions that two
neighbouring tables can have; :func:`reticent.account.trade_off` turns that into statements.

References
----------
.. [1] Dwork & Roth, "The algorithmic foundations of differential privacy", 2014, Sections 3.2 to 3.5.
.. [2] McSherry & Talwar, "Mechanism design via differential privacy", FOCS 2007.
.. [3] Koskela, Jälkö & Honkela, "Computing tight differential privacy guarantees using FFT", arXiv:1906.03049.
.. [4] Balle & Wang, "Improving the Gaussian mechanism for differential privacy", arXiv:1805.06530.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from reticent.account._library import DP
from reticent.account.composed import composed
from reticent.account.gaussian import analytic_noise, check_budget
from reticent.account.sampled import group_sampled_loss, sampled_loss
from reticent.account.source import classical_noise
from reticent.errors import InvalidInput

__all__ = [
    "Bounded",
    "Exponential",
    "Failure",
    "Gaussian",
    "Grouped",
    "Laplace",
    "Mechanism",
    "NonSphericalGaussian",
    "PrivateTraining",
    "RandomisedResponse",
    "Relation",
    "SubsampledGaussian",
    "repeated",
]

Loss = Any  # a PrivacyLossDistribution of dp-accounting, which has no types


class Relation(StrEnum):
    """When two tables are neighbours. The same noise has a different epsilon under each relation."""

    ADD_REMOVE = "add/remove"  # one record is present or absent
    REPLACE = "replace-one"  # one record has a different content


@runtime_checkable
class Mechanism(Protocol):
    """A description of a random release."""

    @property
    def relation(self) -> Relation:
        """When two tables count as neighbours."""
        ...

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution on a grid, rounded to the safe side."""
        ...


@runtime_checkable
class Bounded(Mechanism, Protocol):
    """A mechanism with a pure epsilon, which no output exceeds."""

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss of any output; infinite if a part is not bounded."""
        ...


@runtime_checkable
class Grouped(Mechanism, Protocol):
    """A mechanism that says how it protects several records that come and go together."""

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of ``size`` records."""
        ...


@dataclass(frozen=True, kw_only=True)
class RandomisedResponse:
    """Answer truthfully with some probability, otherwise draw an answer uniformly (Section 3.2 of [1]_).

    Two fair coins (tell the truth on heads, otherwise let the second coin answer) are ``truth=0.5`` with two answers:
    epsilon is ln 3.

    Parameters
    ----------
    truth : float
        Probability of telling the truth without a draw, in [0, 1).
    answers : int
        Number of possible answers.
    """

    truth: float
    answers: int = 2
    relation: Relation = Relation.REPLACE

    def __post_init__(self) -> None:
        if not 0 <= self.truth < 1 or self.answers < 2:
            raise InvalidInput(
                f"truth must lie in [0, 1) (at 1 nothing is hidden) with at least two answers, got {self.truth} with "
                f"{self.answers} answers."
            )
        _only(self.relation, Relation.REPLACE, "randomised response")

    @property
    def epsilon(self) -> float:
        """The pure epsilon: the logarithm of the ratio of the probabilities of a true and of a false answer."""
        false = (1 - self.truth) / self.answers
        return math.log((self.truth + false) / false)

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution."""
        return DP.pld.from_randomized_response(
            1 - self.truth, self.answers, value_discretization_interval=grid
        )

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss."""
        return self.epsilon

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group, each of whom answers independently."""
        return repeated(self, size, grid)


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Add Laplace noise to a number, or to a vector whose sensitivity is measured in the L1 norm (Section 3.3 of [1]_).

    Parameters
    ----------
    noise_multiplier : float
        Scale of the noise over the L1 sensitivity; epsilon is its inverse.
    """

    noise_multiplier: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier, "noise_multiplier")

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution."""
        return DP.pld.from_laplace_mechanism(
            self.noise_multiplier / _reach(self.relation),
            value_discretization_interval=grid,
        )

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss: the pure epsilon."""
        return _reach(self.relation) / self.noise_multiplier

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of records."""
        wider = replace(self, noise_multiplier=self.noise_multiplier / size)
        return wider.loss(grid)


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Add normal noise to a vector whose sensitivity is measured in the L2 norm.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation over the L2 sensitivity to adding or removing a record. Under ``replace-one`` the
        sensitivity is twice as large, and the guarantee is weaker.
    """

    noise_multiplier: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier, "noise_multiplier")

    @classmethod
    def analytic(
        cls, *, epsilon: float, delta: float, relation: Relation = Relation.ADD_REMOVE
    ) -> "Gaussian":
        """Return the mechanism with the least noise that has an epsilon and a delta [4]_.

        Examples
        --------
        >>> round(Gaussian.analytic(epsilon=1.0, delta=1e-5).noise_multiplier, 3)
        3.731
        """
        noise = _reach(relation) * analytic_noise(epsilon, delta)
        return cls(noise_multiplier=noise, relation=relation)

    @classmethod
    def classical(
        cls, *, epsilon: float, delta: float, relation: Relation = Relation.ADD_REMOVE
    ) -> "Gaussian":
        """Return the mechanism with the textbook noise (Theorem A.1 of [1]_); :meth:`analytic` needs less.

        Parameters
        ----------
        epsilon : float
            Above 0 and below 1, where the theorem is proved.
        delta : float
            In (0, 1).

        Examples
        --------
        >>> round(Gaussian.classical(epsilon=0.5, delta=1e-5).noise_multiplier, 3)
        9.69
        """
        check_budget(epsilon, delta)
        if epsilon >= 1:
            raise InvalidInput(
                f"epsilon must be below 1, got {epsilon:g}: the classical noise is proved to be sufficient only there, and is not for "
                "a large epsilon; use Gaussian.analytic, which needs less noise and holds for every epsilon."
            )
        noise = _reach(relation) * classical_noise(epsilon, delta)
        return cls(noise_multiplier=noise, relation=relation)

    @property
    def mu(self) -> float:
        """The parameter of Gaussian differential privacy."""
        return _reach(self.relation) / self.noise_multiplier

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution."""
        return sampled_loss(1 / self.mu, 1.0, grid, replace=False)

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of records."""
        wider = replace(self, noise_multiplier=self.noise_multiplier / size)
        return wider.loss(grid)


@dataclass(frozen=True, kw_only=True)
class NonSphericalGaussian:
    r"""Add normal noise to a vector, with a separate standard deviation for each coordinate.

    With :math:`r_i` the most by which a record moves coordinate i, whitening turns it into one Gaussian
    mechanism with :math:`\mu^2 = \sum_i (r_i/\sigma_i)^2`.

    Parameters
    ----------
    deviations : tuple of float
        Standard deviation of the noise of each coordinate.
    ranges : tuple of float
        The most by which a record moves each coordinate.
    """

    deviations: tuple[float, ...]
    ranges: tuple[float, ...]
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if len(self.deviations) != len(self.ranges) or not self.ranges:
            raise InvalidInput(
                f"{len(self.deviations)} deviations do not fit {len(self.ranges)} ranges; pass one of each per coordinate."
            )
        for deviation in self.deviations:
            _positive(deviation, "a deviation")
        if min(self.ranges) < 0 or max(self.ranges) == 0:
            raise InvalidInput(
                f"ranges must be at least 0, and one of them above 0, got {self.ranges[:4]}; a record that moves nothing needs no noise."
            )

    @property
    def mu(self) -> float:
        """The parameter of Gaussian differential privacy."""
        squares = (
            (r / s) ** 2 for r, s in zip(self.ranges, self.deviations, strict=True)
        )
        return _reach(self.relation) * math.sqrt(sum(squares))

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution."""
        return sampled_loss(1 / self.mu, 1.0, grid, replace=False)

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of records."""
        return sampled_loss(1 / (size * self.mu), 1.0, grid, replace=False)

    @classmethod
    def cheapest(cls, ranges: Sequence[float], *, mu: float) -> "NonSphericalGaussian":
        r"""Return the mechanism of a given mu with the least total variance.

        By the Cauchy-Schwarz inequality, :math:`\sigma_i^2 \propto r_i` is optimal: the total variance is
        :math:`(\sum r_i)^2/\mu^2`, where equal deviations need :math:`k \sum r_i^2/\mu^2`.
        """
        whole = math.fsum(ranges)
        # A coordinate that no record moves gets a deviation that is tiny, but a valid positive number.
        deviations = tuple(math.sqrt(max(r, 1e-300) * whole) / mu for r in ranges)
        return cls(deviations=deviations, ranges=tuple(ranges))


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """Choose an outcome with a probability that grows exponentially with its quality [2]_.

    Parameters
    ----------
    epsilon : float
        The pure epsilon: the factor in the exponent is epsilon / (2 sensitivity of the quality).
    """

    epsilon: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _positive(self.epsilon, "epsilon")

    def loss(self, grid: float) -> Loss:
        """Return the loss of the worst mechanism with this epsilon."""
        return DP.pld.from_privacy_parameters(
            DP.common.DifferentialPrivacyParameters(self.epsilon, 0.0),
            value_discretization_interval=grid,
        )

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss."""
        return self.epsilon

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the loss of the worst mechanism with this epsilon for a group: qualities move that much further."""
        return replace(self, epsilon=size * self.epsilon).loss(grid)


@dataclass(frozen=True, kw_only=True)
class SubsampledGaussian:
    """A Gaussian mechanism on a Poisson sample: each record takes part independently with the same probability [3]_.

    Parameters
    ----------
    noise_multiplier : float
        As in :class:`Gaussian`.
    sampling_rate : float
        Probability that a record takes part, in (0, 1].
    """

    noise_multiplier: float
    sampling_rate: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        _positive(self.noise_multiplier, "noise_multiplier")
        if not 0 < self.sampling_rate <= 1:
            raise InvalidInput(
                f"the sampling rate must lie in (0, 1], got {self.sampling_rate}: it is the probability that a record takes part; "
                "check that the batch is not larger than the table."
            )

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution of one step."""
        return sampled_loss(
            self.noise_multiplier,
            self.sampling_rate,
            grid,
            replace=self.relation == Relation.REPLACE,
        )

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution of one step for a group of records."""
        if size == 1:
            return self.loss(grid)
        _only(self.relation, Relation.ADD_REMOVE, "a group under sampling")
        return group_sampled_loss(self.noise_multiplier, self.sampling_rate, size, grid)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A release that reveals everything with a small probability, and nothing otherwise.

    Parameters
    ----------
    probability : float
        In (0, 1); it is added to every delta.
    """

    probability: float
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if not 0 < self.probability < 1:
            raise InvalidInput(
                f"the probability of failure must lie inside (0, 1), got {self.probability}."
            )

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution."""
        return DP.pld.from_privacy_parameters(
            DP.common.DifferentialPrivacyParameters(0.0, self.probability),
            value_discretization_interval=grid,
        )

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group: by the union bound, each record adds its own failure."""
        return DP.pld.from_privacy_parameters(
            DP.common.DifferentialPrivacyParameters(
                0.0, min(1.0, size * self.probability)
            ),
            value_discretization_interval=grid,
        )


@dataclass(frozen=True, kw_only=True)
class PrivateTraining:
    """The steps of DP-SGD: a Poisson-subsampled Gaussian mechanism, repeated.

    Parameters
    ----------
    noise_multiplier, sampling_rate : float
        As in :class:`SubsampledGaussian`.
    steps : int
        Number of steps.
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InvalidInput(f"steps must be at least 1, got {self.steps}.")
        self._step()

    def _step(self) -> "SubsampledGaussian | Gaussian":
        if self.sampling_rate == 1:
            return Gaussian(
                noise_multiplier=self.noise_multiplier, relation=self.relation
            )
        return SubsampledGaussian(
            noise_multiplier=self.noise_multiplier,
            sampling_rate=self.sampling_rate,
            relation=self.relation,
        )

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution of all steps."""
        return repeated(self._step(), self.steps, grid)

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution of all steps for a group of records."""
        if size == 1:
            return self.loss(grid)
        step = self._step()
        if isinstance(step, Gaussian):
            wider = replace(step, noise_multiplier=step.noise_multiplier / size)
            return repeated(wider, self.steps, grid)
        return composed(step.group_loss(size, grid), self.steps)


def repeated(mechanism: Mechanism, times: int, grid: float) -> Loss:
    """Return the privacy loss distribution of several uses of a mechanism."""
    if isinstance(mechanism, Gaussian | NonSphericalGaussian):
        # Many uses equal one use with less noise, so that no error of the grid adds up.
        once = Gaussian(noise_multiplier=1 / (mechanism.mu * math.sqrt(times)))
        return once.loss(grid)
    return composed(mechanism.loss(grid), times)


def _reach(relation: Relation) -> int:
    """Return the sensitivity of a query under a relation, as a multiple of that under add/remove."""
    return 2 if relation == Relation.REPLACE else 1


def _positive(value: float, name: str) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise InvalidInput(
            f"{name} must be positive and finite, got {value}; without noise there is no guarantee."
        )


def _only(relation: Relation, right: Relation, what: str) -> None:
    if relation != right:
        raise InvalidInput(
            f"{what} can only be accounted under {right.value}, got {relation.value}; describe it under {right.value}."
        )
