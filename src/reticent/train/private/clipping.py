r"""What is done to the gradient of one record before it is summed: clippings that state their sensitivity.

A clipping bounds how long a record's clipped gradient can be, whatever the record; noise is scaled to
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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from reticent.errors import InvalidInput

if TYPE_CHECKING:
    from reticent.account import Relation

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

Array = Any  # of torch or numpy: a factor is a formula


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
        """Return by what gradients of these lengths are multiplied."""
        ...


def sensitivity(
    clipping: Clipping, sizes: Sequence[int], relation: "Relation"
) -> float:
    """Return by how much a neighbour can move the sum of clipped gradients.

    A record that comes or goes moves it by one clipped gradient, one that is replaced by two; what
    a sigmoid lets through has one sign, so that two never add up.

    Parameters
    ----------
    clipping : Clipping
        What is done to each gradient.
    sizes : sequence of int
        Parameters of each layer.
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
    """Shorten gradients longer than a norm to it [1]_."""

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
    """Give all gradients nearly the same length (AUTO-S [2]_); no norm to choose but the learning rate's."""

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
    """Clip the gradient of each layer by itself.

    Parameters
    ----------
    norms : tuple of float
        One for each layer, or one for all.
    """

    norms: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "norms", tuple(self.norms))
        if not self.norms:
            raise InvalidInput("per-layer clipping needs at least one norm.")
        for norm in self.norms:
            if not (norm > 0 and math.isfinite(norm)):
                raise InvalidInput(
                    f"a norm is {norm}, but a bound on a gradient's length is a positive number."
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


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What the element-wise clippings share: c tanh(g / k).

    Parameters
    ----------
    scale : float
        c: no element comes out larger.
    width : float
        k: elements well below it pass unchanged, up to c / k.
    """

    scale: float = 1.0
    width: float = 1.0

    def __post_init__(self) -> None:
        _positive(self, "scale", "width")

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`c\sqrt n`: every element may come out at its largest."""
        return self.scale * math.sqrt(sum(sizes))


@dataclass(frozen=True, kw_only=True)
class Tanh(Filter):
    r"""The tanh filter of [4]_ alone. Its sensitivity is :math:`c\sqrt n`: ask for :class:`TanhThenClip`.

    Examples
    --------
    >>> Tanh(scale=1.0).bound([535_818])
    731.99...
    """


@dataclass(frozen=True, kw_only=True)
class Sigmoid(Filter):
    """A sigmoid on each element, c / (1 + e^(-g/k)): the bad contrast of [4]_, since no gradient still moves by c/2."""


@dataclass(frozen=True, kw_only=True)
class ClippedFilter(Filter):
    """What filters with a clip share.

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
    """The tanh filter, and then a clip: what is meant when a tanh filter with a guarantee is asked for."""

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`\min(C, c\sqrt n)`."""
        return min(self.norm, super().bound(sizes))


@dataclass(frozen=True, kw_only=True)
class ClipThenTanh(ClippedFilter):
    """A clip, and then the tanh filter."""

    def bound(self, sizes: Sequence[int]) -> float:
        r"""Return :math:`c\sqrt n\,\tanh(C/(k\sqrt n))`.

        The square of tanh is concave in the square of its argument, so that the longest clipped gradient
        has equal elements.
        """
        root = math.sqrt(sum(sizes))
        return self.scale * root * math.tanh(self.norm / (self.width * root))


def _positive(clipping: object, *names: str) -> None:
    for name in names:
        value = getattr(clipping, name)
        if not (value > 0 and math.isfinite(value)):
            raise InvalidInput(
                f"{name} of {type(clipping).__name__} is {value}, but a bound on gradients is a positive number."
            )
