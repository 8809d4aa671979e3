r"""How noise is shared out over the components of a gradient, all with the same guarantee.

A record moves block b (one array of parameters) by at most :math:`\rho_b` in norm, or its components by at most :math:`r_i`. Noise of deviations
:math:`\sigma` is, after whitening, one Gaussian mechanism with :math:`\mu^2 = \sum_b \rho_b^2/\sigma_b^2` or :math:`\sum_i r_i^2/\sigma_i^2`. Every shape below has
:math:`\mu = 1/z`; they differ in their total variance:

- ``spherical``: the same deviation everywhere, :math:`z^2 D \sum_b \rho_b^2` with D parameters.
- ``thesis``: :math:`\sigma_i \propto r_i` (Theorem 3.1.2 [1]_), :math:`z^2 D \sum_i r_i^2`: the variance of spherical noise for the box.
- ``layers``: :math:`\sigma_b^2 \propto \rho_b/\sqrt{D_b}`, :math:`z^2 (\sum_b \rho_b \sqrt{D_b})^2`, which is the least for balls by the Cauchy-Schwarz inequality.
- ``best``: for each block the smaller of :math:`A_b = \rho_b\sqrt{D_b}` and :math:`A_b = \sum_i r_i` (:math:`\sigma_i^2 \propto r_i`, the least for a box), :math:`z^2 (\sum_b A_b)^2`.

References
----------
.. [1] Pedersen, "Privacy-preserving synthetic data", Theorem 3.1.2.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.wgan.bounds import Block
from reticent.train.wgan.critics import Sums

__all__ = ["MARGIN", "SHAPES", "Allotment", "Shape", "allot", "for_balls"]

Array = NDArray[np.float64]
Shape = Literal["spherical", "thesis", "layers", "best"]
# Share by which every reach is widened, for what arithmetic adds to it: releasing on a grid moves a block by 1e-5 of its reach, and sums of B records in
# double precision err by about B * 1e-16 of it each.
MARGIN = 1e-4
# Components that hardly move count as moving by this share of the largest number that occurs, so that every deviation is positive and the margin
# covers the rounding of sums.
LEAST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Allotment:
    """What is subtracted from each record's gradient, how far a record moves the rest, and the noise for it.

    Parameters
    ----------
    centres : tuple of array
        One per block: public values around which gradients are summed.
    reaches : tuple of array
        Largest norm of what a record adds to a block, as a number, or the largest absolute value of each component.
    deviations : tuple of array
        Standard deviations of the noise: a number per block, or one per component.
    """

    centres: Sums
    reaches: tuple[Array, ...]
    deviations: tuple[Array, ...]

    @property
    def mu(self) -> float:
        """The parameter of Gaussian differential privacy of one unsampled release, under add/remove."""
        return math.sqrt(
            math.fsum(
                float(np.square(reach / deviation).sum())
                for reach, deviation in zip(self.reaches, self.deviations, strict=True)
            )
        )

    @property
    def variance(self) -> float:
        """The total variance of the noise."""
        return math.fsum(
            float(np.broadcast_to(np.square(s), c.shape).sum())
            for s, c in zip(self.deviations, self.centres, strict=True)
        )


def allot(blocks: Sequence[Block], shape: Shape, noise: float) -> Allotment:
    """Return centres and noise for blocks, in a given shape.

    Parameters
    ----------
    blocks : sequence of Block
        Bounds on a record's gradient.
    shape : str
        One of ``SHAPES``.
    noise : float
        The noise multiplier z.

    Examples
    --------
    The toy example of the thesis: components that move by 2 and by 100 between any two records. Its deviations are 137 and 6,850 where spherical noise
    has 4,850; the best are 692 and 4,893.

    >>> toy = Block(middle=np.zeros(2), half=np.array([1.0, 50.0]), centre=np.zeros(2), radius=50.01)
    >>> [allot([toy], shape, 1.0).deviations[0].round(1).tolist() for shape in ("spherical", "thesis", "best")]
    [50.0, [1.4, 70.7], [7.1, 50.5]]
    """
    if shape not in SHAPES:
        raise InvalidInput(
            f"the shape {shape!r} of the noise is not known; use {', '.join(SHAPES)}."
        )
    return SHAPES[shape](blocks, noise)


def for_balls(centres: Sums, radii: Sequence[float], noise: float) -> Allotment:
    """Return the noise with the least total variance for blocks that are bounded in norm."""
    wide = [max(radius, LEAST * max(radii)) * (1 + MARGIN) for radius in radii]
    roots = [math.sqrt(centre.size) for centre in centres]
    whole = math.fsum(r * root for r, root in zip(wide, roots, strict=True))
    return Allotment(
        centres=centres,
        reaches=tuple(np.array(r) for r in wide),
        deviations=tuple(
            np.array(noise * math.sqrt(r / root * whole))
            for r, root in zip(wide, roots, strict=True)
        ),
    )


def _spherical(blocks: Sequence[Block], noise: float) -> Allotment:
    centres, radii = [], []
    for block in blocks:
        corner = float(np.linalg.norm(block.half))
        centres.append(block.middle if corner < block.radius else block.centre)
        radii.append(min(corner, block.radius) * (1 + MARGIN))
    radii = [max(radius, LEAST * max(radii)) for radius in radii]
    deviation = noise * math.hypot(*radii)
    return Allotment(
        centres=tuple(centres),
        reaches=tuple(np.array(r) for r in radii),
        deviations=tuple(np.array(deviation) for _ in radii),
    )


def _thesis(blocks: Sequence[Block], noise: float) -> Allotment:
    halves = _halves(blocks)
    root = math.sqrt(sum(half.size for half in halves))
    return Allotment(
        centres=tuple(block.middle for block in blocks),
        reaches=halves,
        deviations=tuple(noise * root * half for half in halves),
    )


def _layers(blocks: Sequence[Block], noise: float) -> Allotment:
    centres, radii = [], []
    for block in blocks:
        corner = float(np.linalg.norm(block.half))
        centres.append(block.middle if corner < block.radius else block.centre)
        radii.append(min(corner, block.radius))
    return for_balls(tuple(centres), radii, noise)


def _best(blocks: Sequence[Block], noise: float) -> Allotment:
    balls, halves = _layers(blocks, noise), _halves(blocks)
    sizes = []
    for reach, half in zip(balls.reaches, halves, strict=True):
        sizes.append((float(reach) * math.sqrt(half.size), float(half.sum())))
    whole = math.fsum(min(pair) for pair in sizes)
    centres, reaches, deviations = [], [], []
    for place, (ball, box) in enumerate(sizes):
        half, reach = halves[place], balls.reaches[place]
        if ball <= box:
            centres.append(balls.centres[place])
            reaches.append(reach)
            deviations.append(noise * np.sqrt(reach / math.sqrt(half.size) * whole))
        else:
            centres.append(blocks[place].middle)
            reaches.append(half)
            deviations.append(noise * np.sqrt(half * whole))
    return Allotment(
        centres=tuple(centres), reaches=tuple(reaches), deviations=tuple(deviations)
    )


def _halves(blocks: Sequence[Block]) -> tuple[Array, ...]:
    largest = max(float((np.abs(block.middle) + block.half).max()) for block in blocks)
    return tuple(
        np.maximum(block.half, LEAST * largest) * (1 + MARGIN) for block in blocks
    )


SHAPES: dict[str, Callable[[Sequence[Block], float], Allotment]] = {
    "spherical": _spherical,
    "thesis": _thesis,
    "layers": _layers,
    "best": _best,
}
