r"""Four ways to keep what a critic learns of a record within a bound, each with the noise that goes with it.

In every step the critic asks the data for one sum, :math:`\sum_i (\nabla D(x_i) - m)` over a Poisson sample, with m public. A mode says how far one record moves
this sum and how noise is shared out; the loss of fakes, penalties at points without data, the generator, and every optimiser only see what was released.

- ``Lipschitz``: weights are projected to spectral norm one after each step, which is post-processing; MaxMin keeps gradients as long as they are. The bound
  is recomputed from the weights of the moment and is a few per cent above what is reached, so that nothing needs to be clipped. Bethune et al. [1]_ train classifiers that way.
- ``Thesis``: the critic of the source, free weights and LeakyReLU, with component-wise intervals narrowed by norms. A penalty at data is bounded by spectral norms and *added*.
- ``Clip``: the residual around the mean gradient of the fakes is clipped; clipping the gradient of real records alone lets the critic drift.
- ``Tanh``: :math:`c \tanh((g - m)/k)` for every component [2]_. A record then moves the sum by up to :math:`c\sqrt{D}` for D parameters, and the noise is scaled to that, not to c.

References
----------
.. [1] Béthune et al., "DP-SGD without clipping: the Lipschitz neural network way", ICLR 2024, arXiv:2305.16202.
.. [2] Amian, on a tanh filter for the gradients of DP-SGD, section 6.6; the source accounts for a sensitivity of 1.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.wgan.activations import Activation, LeakyReLU, MaxMin
from reticent.train.wgan.bounds import Block, blocks_of, bounds_of
from reticent.train.wgan.critics import Critic, Factors, Sums, values_and_factors
from reticent.train.wgan.noise import Source
from reticent.train.wgan.penalty import penalty_factors, spectral_penalty_bounds
from reticent.train.wgan.regions import Region
from reticent.train.wgan.shapes import MARGIN, Allotment, Shape, allot
from reticent.train.wgan.spectral import projected, projected_vector

__all__ = [
    "ClipMode",
    "LipschitzMode",
    "Mode",
    "Query",
    "Step",
    "TanhMode",
    "ThesisMode",
]

Array = NDArray[np.float64]
CANCELLED = 1e-13  # share of squared norms that rounding may lose: hundreds of units in the last place
# Centres that are so many times longer than the bound leave no digits for the residuals.
DRIFTED = 1e6
CHUNK = 64  # records whose gradients the tanh filter holds at once: some megabytes


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is known in one step before the data are asked.

    Parameters
    ----------
    critic : Critic
        The critic of the moment, public because every earlier sum carries noise.
    region : Region
        Where coded records lie.
    fakes : array
        Coded rows of the generator.
    fake_mean : tuple of array
        Mean gradient of the critic's value at the fakes.
    noise : float
        Noise multiplier of this step.
    source : Source
        Of the fake that each record is paired with, if the penalty is taken at data.
    """

    critic: Critic
    region: Region
    fakes: Array
    fake_mean: Sums
    noise: float
    source: Source


@dataclass(frozen=True, kw_only=True)
class Query:
    """The exact sum of one step, which is released with the noise of its allotment.

    Parameters
    ----------
    sums : tuple of array
        Sum over the records of the step of what each adds.
    allotment : Allotment
        Centres, reaches and deviations.
    """

    sums: Sums
    allotment: Allotment


class Mode(Protocol):
    """A way to bound what a record adds to a step."""

    @property
    def activation(self) -> Activation:
        """The activation of the critic's hidden layers."""
        ...

    @property
    def penalty(self) -> float:
        """Strength of the penalty at points without data; 0 if there is none."""
        ...

    @property
    def words(self) -> str:
        """What bounds a record's part, for the guarantee."""
        ...

    def settled(self, critic: Critic) -> Critic:
        """Return the critic after a step of the optimiser."""
        ...

    def query(self, step: Step, records: Array) -> Query:
        """Return the sum over the records of a step, and its noise."""
        ...


@dataclass(frozen=True, kw_only=True)
class LipschitzMode:
    """A critic that is 1-Lipschitz by construction.

    Parameters
    ----------
    shape : str
        ``"layers"``, the least noise for blocks bounded in norm, or ``"spherical"``.
    """

    shape: Shape = "layers"
    activation: ClassVar[Activation] = MaxMin()
    penalty: ClassVar[float] = 0.0
    words: ClassVar[str] = (
        "a critic of spectral norm one in every layer, whose bound is recomputed from its weights"
    )

    def __post_init__(self) -> None:
        _only(self.shape, ("layers", "spherical"), "the Lipschitz mode")

    def settled(self, critic: Critic) -> Critic:
        """Return the nearest critic with weights of spectral norm one and biases of norm one."""
        return replace(
            critic,
            weights=tuple(projected(weight) for weight in critic.weights),
            biases=tuple(projected_vector(bias) for bias in critic.biases),
        )

    def query(self, step: Step, records: Array) -> Query:
        """Return the sum around public centres; each block is clipped at its bound, which never happens unless the bound is wrong."""
        # Balls alone: intervals are wider for MaxMin, and components could not be clipped without forming every gradient.
        blocks = [
            replace(block, half=np.full_like(block.half, np.inf))
            for block in blocks_of(bounds_of(step.critic, step.region))
        ]
        allotment = allot(blocks, self.shape, step.noise)
        _, factors = values_and_factors(step.critic, records)
        squares = _squared_distances(factors, allotment.centres)
        scales = [
            _scales(square, float(reach) / (1 + MARGIN))
            for square, reach in zip(squares, allotment.reaches, strict=True)
        ]
        return Query(
            sums=_scaled_sums(factors, allotment.centres, scales), allotment=allotment
        )


@dataclass(frozen=True, kw_only=True)
class ThesisMode:
    """The critic of the source with its intervals, narrowed by norms.

    Parameters
    ----------
    shape : str
        Of the noise: ``"spherical"``, ``"thesis"`` (Theorem 3.1.2), ``"layers"`` or ``"best"``.
    strength : float
        Lambda of the gradient penalty.
    penalty_at : str
        ``"fakes"``: between fakes and random points of the region, which no record moves; ``"data"``: between records and fakes as in the source, which adds the spectral bound.
    slope : float
        Of the LeakyReLU.
    """

    shape: Shape = "best"
    strength: float = 10.0
    penalty_at: str = "fakes"
    slope: float = 0.2

    def __post_init__(self) -> None:
        if self.penalty_at not in ("fakes", "data"):
            raise InvalidInput(
                f"the penalty is taken at 'fakes' or at 'data', got {self.penalty_at!r}."
            )

    @property
    def activation(self) -> Activation:
        """LeakyReLU."""
        return LeakyReLU(self.slope)

    @property
    def penalty(self) -> float:
        """Strength of the penalty at points without data."""
        return self.strength if self.penalty_at == "fakes" else 0.0

    @property
    def words(self) -> str:
        """What bounds a record's part."""
        where = "no data" if self.penalty_at == "fakes" else "interpolates of records"
        return f"a critic of free weights, bounded by intervals and spectral norms, with its penalty at {where}, noise of shape {self.shape}"

    def settled(self, critic: Critic) -> Critic:
        """Return the critic itself."""
        return critic

    def query(self, step: Step, records: Array) -> Query:
        """Return the sum around the middles of intervals or the centres of balls, whichever need less noise."""
        bounds = bounds_of(step.critic, step.region)
        blocks = list(blocks_of(bounds))
        _, factors = values_and_factors(step.critic, records)
        sums = list(factors.total())
        if self.penalty_at == "data":
            mixed = _interpolates(records, step)
            pulled = penalty_factors(step.critic, mixed, self.strength).total()
            for layer, reach in enumerate(
                spectral_penalty_bounds(bounds, self.strength)
            ):
                blocks[layer] = _wider(blocks[layer], reach)
                sums[layer] = sums[layer] - pulled[layer]
        allotment = allot(blocks, self.shape, step.noise)
        around = tuple(
            total - len(records) * centre
            for total, centre in zip(sums, allotment.centres, strict=True)
        )
        return Query(sums=around, allotment=allotment)


@dataclass(frozen=True, kw_only=True)
class ClipMode:
    """Clip each record's residual around the mean gradient of the fakes.

    Parameters
    ----------
    bound : float
        Largest norm of a residual.
    strength : float
        Of the penalty at points without data.
    slope : float
        Of the LeakyReLU.
    """

    bound: float = 1.5
    strength: float = 10.0
    slope: float = 0.2

    def __post_init__(self) -> None:
        if not (self.bound > 0 and math.isfinite(self.bound)):
            raise InvalidInput(
                f"the clipping bound must be positive and finite, got {self.bound}."
            )

    @property
    def activation(self) -> Activation:
        """LeakyReLU."""
        return LeakyReLU(self.slope)

    @property
    def penalty(self) -> float:
        """Strength of the penalty at points without data."""
        return self.strength

    @property
    def words(self) -> str:
        """What bounds a record's part."""
        return (
            f"gradients clipped at {self.bound:g} around the mean gradient of the fakes"
        )

    def settled(self, critic: Critic) -> Critic:
        """Return the critic itself."""
        return critic

    def query(self, step: Step, records: Array) -> Query:
        """Return the sum of clipped residuals; their norms are exact, by the factors of the gradient.

        Raises
        ------
        InvalidInput
            If gradients have grown so large that residuals cannot be told from rounding.
        """
        centres = step.fake_mean
        if max(float(np.abs(c).max()) for c in centres) > DRIFTED * self.bound:
            raise InvalidInput(
                f"the gradients of the critic grew to more than {DRIFTED:g} times the clipping bound, so that nothing can be learned; use a larger bound, or the Lipschitz mode."
            )
        _, factors = values_and_factors(step.critic, records)
        squares = np.sum(_squared_distances(factors, centres), axis=0)
        scales = [_scales(squares, self.bound)] * len(centres)
        reach = self.bound * (1 + MARGIN)
        count = len(centres)
        return Query(
            sums=_scaled_sums(factors, centres, scales),
            # One ball for all blocks, and noise of one deviation: how the reach is divided over the blocks does not matter.
            allotment=Allotment(
                centres=centres,
                reaches=(np.array(reach / math.sqrt(count)),) * count,
                deviations=(np.array(step.noise * reach),) * count,
            ),
        )


@dataclass(frozen=True, kw_only=True)
class TanhMode:
    """Pass every component of each record's residual through a tanh.

    Parameters
    ----------
    width : float
        k: components within it pass almost unchanged in proportion.
    height : float
        c: the largest value of a component afterwards. It only rescales noise and signal together.
    strength : float
        Of the penalty at points without data.
    """

    width: float = 0.05
    height: float = 0.05
    strength: float = 10.0

    def __post_init__(self) -> None:
        if not (self.width > 0 and self.height > 0):
            raise InvalidInput(
                f"width and height of the tanh filter must be positive, got {self.width} and {self.height}."
            )

    @property
    def activation(self) -> Activation:
        """LeakyReLU."""
        return LeakyReLU()

    @property
    def penalty(self) -> float:
        """Strength of the penalty at points without data."""
        return self.strength

    @property
    def words(self) -> str:
        """What bounds a record's part."""
        return "gradients through a tanh filter, with a sensitivity of its height times the root of the number of parameters"

    def settled(self, critic: Critic) -> Critic:
        """Return the critic itself."""
        return critic

    def query(self, step: Step, records: Array) -> Query:
        """Return the sum of filtered residuals around the mean gradient of the fakes."""
        centres = step.fake_mean
        _, factors = values_and_factors(step.critic, records)
        sums = [np.zeros_like(centre) for centre in centres]
        layers = len(factors.inputs)
        for start in range(0, len(records), CHUNK):
            rows = slice(start, start + CHUNK)
            for layer, (g, x) in enumerate(
                zip(factors.gradients, factors.inputs, strict=True)
            ):
                each = g[rows, :, None] * x[rows, None, :] - centres[layer]
                sums[layer] += self.height * np.tanh(each / self.width).sum(axis=0)
                if layer < layers - 1:
                    each = g[rows] - centres[layers + layer]
                    sums[layers + layer] += self.height * np.tanh(
                        each / self.width
                    ).sum(axis=0)
        size = sum(centre.size for centre in centres)
        reach = self.height * (1 + MARGIN)
        return Query(
            sums=tuple(sums),
            allotment=Allotment(
                centres=centres,
                reaches=tuple(np.full(centre.shape, reach) for centre in centres),
                deviations=(np.array(step.noise * reach * math.sqrt(size)),)
                * len(centres),
            ),
        )


def _only(shape: str, known: tuple[str, ...], what: str) -> None:
    if shape not in known:
        raise InvalidInput(
            f"{what} shares noise out as {' or '.join(known)}, got {shape!r}."
        )


def _wider(block: Block, reach: float) -> Block:
    """Return a block to which a record adds something more of a bounded norm: the reaches add up."""
    return replace(block, half=block.half + reach, radius=block.radius + reach)


def _interpolates(records: Array, step: Step) -> Array:
    """Return points between records and fakes, drawn for each record by itself: nobody's fake depends on who else takes part."""
    rows, shares = step.source.pairs(len(records), len(step.fakes))
    return shares[:, None] * records + (1 - shares[:, None]) * step.fakes[rows]


def _squared_distances(factors: Factors, centres: Sums) -> list[Array]:
    """Return the squared distance of each block of each record's gradient from a centre."""
    squares = factors.squared_norms()
    if not any(centre.any() for centre in centres):
        return list(squares)
    products = factors.products(centres)
    distances = []
    for square, product, centre in zip(squares, products, centres, strict=True):
        norm = float(np.square(centre).sum())
        # Rounded up by what the difference of large numbers may have lost.
        exact = np.maximum(square - 2 * product + norm, 0.0)
        distances.append(exact + CANCELLED * (square + norm))
    return distances


def _scales(squares: Array, bound: float) -> Array:
    """Return the factor that brings each record within a bound."""
    return bound / np.maximum(np.sqrt(squares), bound)


def _scaled_sums(factors: Factors, centres: Sums, scales: list[Array]) -> Sums:
    """Return the sum of each block's residuals around its centre, with a factor for every record and block."""
    layers = len(factors.inputs)
    sums = []
    for place, (centre, scale) in enumerate(zip(centres, scales, strict=True)):
        scaled = factors.gradients[place % layers] * scale[:, None]
        total = (
            scaled.T @ factors.inputs[place] if place < layers else scaled.sum(axis=0)
        )
        sums.append(total - scale.sum() * centre)
    return tuple(sums)
