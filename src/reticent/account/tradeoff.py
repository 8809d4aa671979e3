r"""What a mechanism guarantees: one trade-off curve, from which every statement follows.

The privacy loss distribution gives, for the worst pair of neighbouring tables, the distribution of the
log-likelihood ratio of the released output. It determines the whole trade-off between the two errors
of any attacker, so epsilon at every delta, the advantage, the posterior belief under any prior and
the true-positive rate at any false-positive rate are read from it, exact up to the width of the grid.

References
----------
.. [1] Dong, Roth & Su, "Gaussian differential privacy", arXiv:1905.02383.
.. [2] Kulynych et al., "Attack-aware noise calibration for differential privacy", arXiv:2407.02191.
.. [3] Doroshenko et al., "Connect the dots: tighter discrete approximations of privacy loss
   distributions", arXiv:2207.04380.
.. [4] Hayes, Mahloujifar & Balle, "Bounding training data reconstruction in DP-SGD", arXiv:2302.07225.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent._check import in_open_unit
from reticent.account.combined import Composition, Group, largest_loss
from reticent.account.mechanisms import (
    Gaussian,
    Mechanism,
    PrivateTraining,
    Relation,
    SubsampledGaussian,
)
from reticent.account.sampled import fitting_grid
from reticent.errors import InvalidInput

__all__ = ["TradeOff", "trade_off"]

LARGEST = 700.0  # largest loss whose exponential does not overflow
GRID = 1e-4  # coarsest width of a cell of the privacy loss; `fitting` makes it finer, and coarser for compositions
# Cells of a composition in one standard deviation of a use's share of its Gaussian noise. Epsilon comes out larger by some hundred-thousandths of itself, far less than the tenth of a per cent to which noise is
# searched; with 250 cells the search took four times as long.
CELLS = 64


@dataclass(frozen=True, kw_only=True)
class _Side:
    """One direction: losses l with probabilities p under the first table, e^-l p under the second."""

    losses: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    # Probability, under the first table, of an output that the second table never produces.
    certain: float


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """The guarantee of a mechanism for the worst pair of neighbouring tables and the worse direction.

    Parameters
    ----------
    relation : Relation
        When two tables are neighbours.
    grid : float
        Width of a cell of the privacy loss.
    sides : tuple
        Loss distributions, one for each direction.
    largest_loss : float
        The pure epsilon, which bounds every statement; infinite if there is none. The grid alone rounds losses up, and counts
        what lies beyond the end of a composition as a certain loss.
    """

    relation: Relation
    grid: float
    sides: tuple[_Side, ...]
    largest_loss: float = math.inf

    def delta(self, epsilon: float) -> float:
        r"""Return the smallest delta at an epsilon: :math:`E[(1 - e^{\varepsilon - L})_+]`."""
        if epsilon >= self.largest_loss:
            return 0.0
        # Randomised response is the worst mechanism with a pure epsilon: delta is (e^E - e^epsilon)/(1 + e^E).
        ends = math.exp(-self.largest_loss), math.exp(epsilon - self.largest_loss)
        return min(
            (1 - ends[1]) / (1 + ends[0]),
            max(_delta(side, epsilon) for side in self.sides),
        )

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon at a delta, or infinity if no epsilon reaches it.

        Parameters
        ----------
        delta : float
            In [0, 1).
        """
        if not 0 <= delta < 1:
            raise InvalidInput(f"delta must lie in [0, 1), got {delta}.")
        return min(self.largest_loss, max(_epsilon(side, delta) for side in self.sides))

    @property
    def advantage(self) -> float:
        """The largest TPR - FPR of any membership attack: delta at epsilon 0 [2]_."""
        return self.delta(0.0)

    def tpr(self, fpr: float) -> float:
        """Return the largest true-positive rate of any attack at a false-positive rate.

        Parameters
        ----------
        fpr : float
            In [0, 1].
        """
        if not 0 <= fpr <= 1:
            raise InvalidInput(
                f"the false-positive rate must lie in [0, 1], got {fpr}."
            )
        return float(self.tprs([fpr])[0])

    def tprs(self, fprs: Sequence[float]) -> NDArray[np.float64]:
        """Return :meth:`tpr` at several false-positive rates at once."""
        rates = [_tprs(side, fprs) for side in self.sides]
        found = np.asarray(np.max(rates, axis=0))
        if math.isinf(self.largest_loss):
            return found
        # Under a pure epsilon E the true-positive rate is at most e^E times the false one, and 1 - FPR at most e^E times 1 - TPR.
        false = np.asarray(fprs, dtype=np.float64)
        steep = false * math.exp(min(self.largest_loss, LARGEST))
        flat = 1 - (1 - false) * math.exp(-self.largest_loss)
        return np.asarray(np.minimum(found, np.minimum(steep, flat)))

    def probability_of_belief(self, belief: float, *, prior: float = 0.5) -> float:
        """Return the probability that an attacker's belief in the truth comes to exceed ``belief``.

        The posterior odds are the prior odds times e to the power of the loss.

        Parameters
        ----------
        belief : float
            In (0, 1).
        prior : float
            Belief in the truth before the release, in (0, 1).
        """
        least = _logit(in_open_unit(belief, "belief")) - _logit(
            in_open_unit(prior, "prior")
        )
        if least >= self.largest_loss:
            return 0.0
        # The cell that holds the limit is counted whole, so that the bound leans to the safe side.
        return max(
            float(side.first[side.losses > least - self.grid].sum()) + side.certain
            for side in self.sides
        )

    def belief(self, failure: float, *, prior: float = 0.5) -> float:
        """Return the belief in the truth that no attacker exceeds, except with probability ``failure``.

        Parameters
        ----------
        failure : float
            In (0, 1); usually the delta of the guarantee.
        prior : float
            Belief in the truth before the release, in (0, 1).
        """
        in_open_unit(failure, "failure")
        highest = -math.inf
        for side in self.sides:
            if side.certain > failure:
                highest = math.inf
                continue
            above = np.cumsum(side.first[::-1])[::-1] + side.certain
            place = int(np.searchsorted(-above, -failure, side="left"))
            # Losses from `place` on have a probability of at most the failure.
            last = side.losses[min(place, len(side.losses) - 1)]
            highest = max(highest, float(last) + self.grid)
        highest = min(highest, self.largest_loss)
        if math.isinf(highest):
            return 1.0
        return _sigmoid(highest + _logit(in_open_unit(prior, "prior")))

    def accuracy(self, *, prior: float = 0.5) -> float:
        """Return the share of correct guesses of the best membership attacker.

        Parameters
        ----------
        prior : float
            Probability of membership before the release, in (0, 1).
        """
        shift = _logit(in_open_unit(prior, "prior"))
        least = 1.0
        for side in self.sides:
            # The best attacker guesses "member" where prior odds times likelihood ratio exceed 1.
            positive = side.losses > -shift
            missed = float(side.first[~positive].sum())
            false_alarms = float(side.second[positive].sum())
            least = min(least, prior * missed + (1 - prior) * false_alarms)
        # No attacker errs less often than with randomised response, or than by always giving one answer.
        decay = math.exp(-self.largest_loss)
        return 1 - max(least, min(prior, 1 - prior, decay / (1 + decay)))

    def reconstruction(self, chance: float) -> float:
        """Return the largest probability of reconstructing a record, given that of guessing it without the release [4]_.

        Parameters
        ----------
        chance : float
            Probability of success without the release, in (0, 1).
        """
        return self.tpr(in_open_unit(chance, "chance"))


def fitting(mechanism: Mechanism) -> float:
    """Return a grid of the privacy loss that is fine enough for a mechanism.

    Each use of a sampled mechanism adds part of a cell to the loss, and a small sampling rate makes the loss
    itself small: 1e-4 is too coarse for a sampling rate below about 0.001.

    Examples
    --------
    >>> from reticent.account import PrivateTraining
    >>> fitting(PrivateTraining(noise_multiplier=1.0, sampling_rate=0.01, steps=1000))
    0.0001
    """
    if isinstance(mechanism, Composition):
        finest = min(fitting(part) for part, _ in mechanism.parts)
        # Steps of a training are many uses, and a small sampling rate makes each one's loss small.
        coarser = finest == GRID and not _is_sampled(mechanism)
        return max(finest, _ample(mechanism)) if coarser else finest
    if isinstance(mechanism, SubsampledGaussian | PrivateTraining):
        noise, rate = mechanism.noise_multiplier, mechanism.sampling_rate
        return fitting_grid(noise, rate, GRID)
    return GRID


def _is_sampled(mechanism: Mechanism) -> bool:
    """Return whether records take part at random in any of a mechanism's parts."""
    if isinstance(mechanism, Composition):
        return any(_is_sampled(part) for part, _ in mechanism.parts)
    if isinstance(mechanism, Group):
        return _is_sampled(mechanism.mechanism)
    return isinstance(mechanism, SubsampledGaussian | PrivateTraining)


def _ample(mechanism: Composition) -> float:
    """Return a grid that is ample for the Gaussian noise in a composition, in powers of two of the usual one.

    Each use widens the variance of the loss by at most a quarter of a squared cell: all of them together by 61 millionths of what the Gaussian parts alone have.
    """
    uses = sum(times for _, times in mechanism.parts)
    variance = sum(times * _spread(part) ** 2 for part, times in mechanism.parts)
    cell = math.sqrt(variance / uses) / CELLS
    return GRID * 2.0 ** math.floor(math.log2(max(cell / GRID, 1.0)))


def _spread(mechanism: Mechanism) -> float:
    """Return the standard deviation of the loss of Gaussian noise; 0 for other mechanisms, which are then left out of account."""
    if isinstance(mechanism, Group):
        return mechanism.size * _spread(mechanism.mechanism)
    return mechanism.mu if isinstance(mechanism, Gaussian) else 0.0


def trade_off(mechanism: Mechanism, *, grid: float | None = None) -> TradeOff:
    """Return what a mechanism guarantees.

    Parameters
    ----------
    mechanism : Mechanism
        The description.
    grid : float, optional
        Width of a cell of the privacy loss, as fine as the mechanism needs if not given; errors lean to the safe side.

    Examples
    --------
    >>> from reticent.account import Gaussian
    >>> g = trade_off(Gaussian(noise_multiplier=1.0))
    >>> round(g.advantage, 6), round(g.tpr(0.001), 4), round(g.epsilon(1e-5), 3)
    (0.382925, 0.0183, 4.377)
    """
    grid = grid or fitting(mechanism)
    loss = mechanism.loss(grid)
    pmfs = [loss._pmf_remove]
    if not loss._symmetric:
        pmfs.append(loss._pmf_add)
    return TradeOff(
        relation=mechanism.relation,
        grid=grid,
        sides=tuple(_side(p) for p in pmfs),
        largest_loss=largest_loss(mechanism),
    )


def _side(pmf: object) -> _Side:
    dense = pmf.to_dense_pmf()  # type: ignore[attr-defined]
    probabilities = np.asarray(dense._probs, dtype=np.float64)
    cells = np.flatnonzero(probabilities > 0)
    losses = (cells + dense._lower_loss) * dense._discretization
    first = probabilities[cells]
    return _Side(
        losses=losses,
        first=first,
        second=np.minimum(first * np.exp(np.minimum(-losses, LARGEST)), 1.0),
        certain=float(dense._infinity_mass),
    )


def _delta(side: _Side, epsilon: float) -> float:
    above = side.losses > epsilon
    gain = -np.expm1(epsilon - side.losses[above])
    return min(1.0, float(gain @ side.first[above]) + side.certain)


def _epsilon(side: _Side, delta: float) -> float:
    if delta < side.certain:
        return math.inf
    if _delta(side, 0.0) <= delta:
        return 0.0
    # delta(e) is convex, decreasing and a closed form between two losses: find the cell, then solve in it.
    p = side.first[::-1]
    upper, lower = np.cumsum(p), np.cumsum(side.second[::-1])
    losses = side.losses[::-1]
    at = upper - np.exp(np.minimum(losses, LARGEST)) * lower + side.certain
    place = int(np.searchsorted(at, delta, side="right"))
    place = min(max(place, 1), len(losses)) - 1
    if losses[place] >= LARGEST:  # delta(e) is at most the mass above e
        return float(losses[place])
    mass, other = upper[place] + side.certain - delta, lower[place]
    if mass <= 0:
        return max(0.0, float(losses[place]))
    return max(0.0, math.log(mass / other))


def _tprs(side: _Side, fprs: Sequence[float]) -> NDArray[np.float64]:
    true = np.concatenate([[side.certain], side.certain + np.cumsum(side.first[::-1])])
    false = np.concatenate([[0.0], np.cumsum(side.second[::-1])])
    return np.asarray(np.minimum(1.0, np.interp(fprs, false, true)))


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
