r"""Clipping of the gradient of one record before it is summed; every clipping states its sensitivity.

A clipping bounds how long a record's clipped gradient can be, whatever the record. Noise is scaled to
that bound and to nothing else, so that noise and accounting cannot disagree. Sizes are
the numbers of parameters of each layer.

References
----------
.. [1] Abadi et al., "Deep learning with differential privacy", arXiv:1607.00133.
.. [2] Bu, Wang, Zha & Karypis, "Automatic clipping", arXiv:2206.07136.
.. [3] Xia et al., "Differentially private learning with per-sample adaptive clipping", arXiv:2212.00328.
.. [4] Amian, "Differential privacy in deep learning models", M.Sc. thesis, INRS, which accounts its tanh filter as if the
   sensitivity were 1; it is :math:`c\sqrt n`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from reticent.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.account import Relation
    from reticent.train.private.sums import Sum

__all__ = [
    "PSAC",
    "Automatic",
    "Clip",
    "ClipThenTanh",
    "Clipping",
    "Filter",
    "PerLayer",
    "Scaling",
    "Sigmoid",
    "Tanh",
    "TanhThenClip",
    "sensitivity",
]

Array = (
    Any  # an array of torch or numpy, since a factor is a formula that works on both
)


@runtime_checkable
class Clipping(Protocol):
    """What bounds the influence of a record on a step."""

    def bound(self, sizes: Sequence[int]) -> float:
        """Return the largest length of a clipped gradient."""
        ...


@runtime_checkable
class Scaling(Clipping, Protocol):
    """A clipping that shortens a gradient without turning it."""

    def factor(self, norm: Array) -> Array:
        """Return the factors by which gradients of these lengths are multiplied."""
        ...


def sensitivity(
    clipping: Clipping, sizes: Sequence[int], relation: "Relation"
) -> float:
    """Return the largest distance between the sums of clipped gradients of neighbouring tables.

    A record that is added or removed moves the sum by one clipped gradient, one that is replaced by
    two. What a sigmoid lets through is positive, so that two of them never add up.

    Parameters
    ----------
    clipping : Clipping
        The clipping of each gradient.
    sizes : sequence of int
        Number of parameters of each layer.
    relation : Relation
        When tables are neighbours.

    Examples
    --------
    >>> from reticent.account import Relation
    >>> sensitivity(Clip(norm=1.5), [90, 10], Relation.REPLACE)
    3.0
    >>> sensitivity(Tanh(scale=1.0), [90, 10], Relation.ADD_REMOVE)
    10.0
    """
    from reticent.account import Relation

    bound = clipping.bound(sizes)
    if relation == Relation.ADD_REMOVE or isinstance(clipping, Sigmoid):
        return bound
    return 2 * bound


@dataclass(frozen=True, kw_only=True)
class Clip:
    """Shorten gradients that are longer than a norm to that norm [1]_."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, "norm")

    def bound(self, sizes: Sequence[int]) -> float:
        """Return the norm."""
        return self.norm

    def factor(self, norm: Array) -> Array:
        """Return ``min(1, C / |g|)``."""
        return self.norm / norm.clip(min=self.norm)


@dataclass(frozen=True, kw_only=True)
class Automatic:
    """Give all gradients nearly the same length (AUTO-S [2]_), so that only the learning rate is left to choose."""

    norm: float = 1.0
    stability: float = 0.01

    def __post_init__(self) -> None:
        _positive(self, "norm", "stability")

    def bound(self, sizes: Sequence[int]) -> float:
        """Return the norm."""
        return self.norm

    def factor(self, norm: Array) -> Array:
        """Return ``C / (|g| + stability)``."""
        return self.norm / (norm + self.stability)


@dataclass(frozen=True, kw_only=True)
class PSAC:
    """Like :class:`Automatic`, with less weight on the shortest gradients: per-sample adaptive clipping [3]_."""

    norm: float = 1.0
    stability: float = 0.1

    def __post_init__(self) -> None:
        _positive(self, "norm", "stability")

    def bound(self, sizes: Sequence[int]) -> float:
        """Return the norm."""
        return self.norm

    def factor(self, norm: Array) -> Array:
        """Return ``C / (|g| + r / (|g| + r))``."""
        return self.norm / (norm + self.stability / (norm + self.stability))


@dataclass(frozen=True, kw_only=True)
class PerLayer:
    """Clip the gradient of each layer separately.

    Parameters
    ----------
    norms : tuple of float
        One norm for each layer, or one for all.
    """

    norms: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", tuple(self.norms))
        if not self.norms:
            raise InvalidInput("per-layer clipping needs at least one norm.")
        for norm in self.norms:
            if not (norm > 0 and math.isfinite(norm)):
                raise InvalidInput(
                    f"a norm must be positive and finite to bound the length of a gradient, got {norm}."
                )

    def of_layers(self, layers: int) -> tuple[float, ...]:
        """Return the norm of each layer."""
        if len(self.norms) == 1:
            return self.norms * layers
        if len(self.norms) != layers:
            raise InvalidInput(
                f"there are {len(self.norms)} norms for {layers} layers; pass one for each or one for all."
            )
        return self.norms

    def bound(self, sizes: Sequence[int]) -> float:
        """Return the root of the sum of the norms' squares."""
        return math.sqrt(sum(norm**2 for norm in self.of_layers(len(sizes))))

    def factors(self, lengths: Sequence[Array]) -> list[Array]:
        """Return ``min(1, C / |g|)`` for each layer, given the lengths of its gradients."""
        norms = self.of_layers(len(lengths))
        return [
            norm / length.clip(min=norm)
            for norm, length in zip(norms, lengths, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What element-wise clippings share: c tanh(g / k).

    Parameters
    ----------
    scale : float
        The largest size c that an element can have afterwards.
    width : float
        The width k: elements well below it are only multiplied by c / k.
    """

    scale: float = 1.0
    width: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, "scale", "width")

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`c\sqrt n`: every element may have its largest size."""
        return self.scale * math.sqrt(sum(sizes))

    def inner(self, norm: Array) -> Array:
        """Return the factors on gradients of these lengths before tanh: ``1 / k``."""
        return 0 * norm + 1 / self.width

    def outer(self, scale: Array, lengths: Callable[[], Array]) -> Array:
        """Return the factors after tanh.

        Parameters
        ----------
        scale : array
            c for records that take part, 0 for others.
        lengths : callable
            Returns the lengths of the filtered gradients.
        """
        return scale

    def completed(self, total: "Sum", outer: Array) -> "Sum":
        """Return the sum of clipped gradients, given that of ``outer tanh(inner g)``."""
        return total


@dataclass(frozen=True, kw_only=True)
class Tanh(Filter):
    r"""The tanh filter of [4]_ alone. Its sensitivity is :math:`c\sqrt n`: prefer :class:`TanhThenClip`.

    Examples
    --------
    >>> Tanh(scale=1.0).bound([535_818])
    731.99...
    """


@dataclass(frozen=True, kw_only=True)
class Sigmoid(Filter):
    """A sigmoid on each element, c / (1 + e^(-g/k)): the negative example of [4]_, since even a zero gradient moves weights by c/2."""

    # With x = g / k, 1 / (1 + e^-x) = 1/2 + tanh(x/2) / 2: half the factors, and half of c for each record.

    def inner(self, norm: Array) -> Array:
        """Return ``1 / 2k``."""
        return super().inner(norm) / 2

    def outer(self, scale: Array, lengths: Callable[[], Array]) -> Array:
        """Return ``c / 2``."""
        return scale / 2

    def completed(self, total: "Sum", outer: Array) -> "Sum":
        """Return the sum with ``c / 2`` added to each element for each record."""
        return total.raised(outer.sum(1))


@dataclass(frozen=True, kw_only=True)
class ClippedFilter(Filter):
    """What filters that are combined with a clip share.

    Parameters
    ----------
    norm : float
        Norm of the clip.
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "norm")


@dataclass(frozen=True, kw_only=True)
class TanhThenClip(ClippedFilter):
    """The tanh filter, and then a clip: the tanh filter to use if there must be a guarantee."""

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`\min(C, c\sqrt n)`."""
        return min(self.norm, super().bound(sizes))

    def outer(self, scale: Array, lengths: Callable[[], Array]) -> Array:
        """Return ``c min(1, C / |g|)`` with g the filtered gradient."""
        return scale * (self.norm / lengths().clip(min=self.norm))


@dataclass(frozen=True, kw_only=True)
class ClipThenTanh(ClippedFilter):
    """A clip, and then the tanh filter."""

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`c\sqrt n\,\tanh(C/(k\sqrt n))`.

        The square of tanh is concave in the square of its argument, so that the elements of the longest
        clipped gradient are equal.
        """
        root = math.sqrt(sum(sizes))
        return self.scale * root * math.tanh(self.norm / (self.width * root))

    def inner(self, norm: Array) -> Array:
        """Return ``min(1, C / |g|) / k``."""
        return super().inner(norm) * (self.norm / norm.clip(min=self.norm))


def _positive(clipping: object, *names: str) -> None:
    for name in names:
        value = getattr(clipping, name)
        if not (value > 0 and math.isfinite(value)):
            raise InvalidInput(
                f"{name} of {type(clipping).__name__} must be positive and finite to bound gradients, got {value}."
            )
