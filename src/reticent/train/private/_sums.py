r"""Sums of treated per-record gradients, without making the gradients where their form allows it.

The gradient of a linear layer's weights for one record is an outer product: deltas above times activations
below. Its length is the product of theirs, so that clipping needs no gradient at all ("book-keeping",
arXiv:2210.00038), and any power of it, taken element by element, is an outer product again: an odd polynomial
for tanh turns the filtered sum into one matrix product with a few terms per record.
Gradients that have no such form (convolutions) are made, one per record, and treated as they are.

All arrays have the models that are trained together in front and the records of a batch behind or next.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.private.clipping import (
    Clipping,
    ClipThenTanh,
    Filter,
    PerLayer,
    Scaling,
    Sigmoid,
    TanhThenClip,
)

__all__ = ["Column", "Outer", "Piece", "Sum", "Whole", "clipped_sums"]

# Terms of an odd polynomial that is tanh up to 5e-7 of its value, as far as so much.
REACHES = ((2, 0.067), (3, 0.24), (4, 0.48), (5, 0.70), (6, 0.95), (8, 1.36))
CHUNK = 2**22  # numbers of materialised gradients at once


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of clipped gradients of one parameter: a product still to be formed, or itself.

    Parameters
    ----------
    left, right : Tensor, (M, out, k) and (M, in, k), optional
        The sum is ``left right'``.
    whole : Tensor, (M, ...), optional
        The sum.
    """

    left: Tensor | None = None
    right: Tensor | None = None
    whole: Tensor | None = None

    def onto(self, noise: Tensor, deviation: float) -> Tensor:
        """Return ``deviation * noise`` plus the sum, in the place of the noise."""
        if self.whole is not None:
            return noise.mul_(deviation).add_(self.whole)
        assert self.left is not None
        assert self.right is not None
        return noise.baddbmm_(self.left, self.right.transpose(1, 2), beta=deviation)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sum's shape."""
        if self.whole is not None:
            return tuple(self.whole.shape)
        assert self.left is not None
        assert self.right is not None
        return (*self.left.shape[:2], self.right.shape[1])

    def formed(self) -> Tensor:
        """Return the sum."""
        if self.whole is not None:
            return self.whole
        assert self.left is not None
        assert self.right is not None
        return torch.bmm(self.left, self.right.transpose(1, 2))


class Piece(Protocol):
    """The gradients of one parameter for every record of a batch."""

    def squares(self) -> Tensor:
        """Return their squared lengths, (M, batch)."""
        ...

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum of gradients times a factor each."""
        ...

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths of ``tanh(inner g)``."""
        ...

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum of ``outer tanh(inner g)``."""
        ...

    def only(self, kept: Tensor) -> "Piece":
        """Return the gradients with those that are not kept set to zero."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outer:
    """Gradients that are outer products, of a linear layer's weights.

    Parameters
    ----------
    above : Tensor, (M, out, batch)
        Deltas.
    below : Tensor, (M, in, batch)
        Activations.
    lengths : Tensor, (M, batch), optional
        Squared lengths of the activations, if they are known.
    """

    above: Tensor
    below: Tensor
    lengths: Tensor | None = None

    def squares(self) -> Tensor:
        """Return the products of both squared lengths."""
        below = _squares(self.below) if self.lengths is None else self.lengths
        return _squares(self.above) * below

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum as a product of scaled deltas and activations."""
        return Sum(left=self.above * factor[:, None], right=self.below)

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths from even powers, or from the gradients if they are long."""
        above, below = self._balanced(inner)
        terms = _terms(above, below)
        if terms is None:
            return torch.cat(
                [
                    torch.tanh(part).square_().sum((2, 3))
                    for part in _parts(above, below)
                ],
                1,
            )
        first, second = above.square(), below.square()
        total = torch.zeros_like(inner)
        powers = (first, second)
        for coefficient in _even(terms):
            total += coefficient * powers[0].sum(1) * powers[1].sum(1)
            powers = (powers[0] * first, powers[1] * second)
        return total

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum from odd powers, or from the gradients if they are long."""
        above, below = self._balanced(inner)
        terms = _terms(above, below)
        if terms is None:
            total = torch.zeros(
                len(above), above.shape[1], below.shape[1], dtype=above.dtype
            )
            at = 0
            for part in _parts(above, below):
                width = part.shape[1]
                share = outer[:, at : at + width]
                total += torch.einsum("mb,mboi->moi", share, torch.tanh(part))
                at += width
            return Sum(whole=total)
        first, second = above.square(), below.square()
        left, right = above * outer[:, None], below
        lefts, rights = [], []
        for coefficient in _odd(terms):
            lefts.append(coefficient * left)
            rights.append(right)
            left, right = left * first, right * second
        return Sum(left=torch.cat(lefts, 2), right=torch.cat(rights, 2))

    def only(self, kept: Tensor) -> "Outer":
        """Return the gradients with those that are not kept set to zero."""
        return Outer(
            above=torch.where(kept[:, None], self.above, 0.0),
            below=torch.where(kept[:, None], self.below, 0.0),
        )

    def _balanced(self, inner: Tensor) -> tuple[Tensor, Tensor]:
        """Return deltas times a factor and activations, scaled to be equally large in each record.

        Their product stays as it is, and no power of one overflows while that of the other vanishes.
        """
        above = self.above * inner[:, None]
        tall = above.abs().amax(1).clip(min=1e-30)
        wide = self.below.abs().amax(1).clip(min=1e-30)
        balance = (wide / tall).sqrt()[:, None]
        return above * balance, self.below / balance


def _terms(above: Tensor, below: Tensor) -> int | None:
    """Return how many terms reach the largest element of any gradient, if any number does."""
    largest = (above.abs().amax(1) * below.abs().amax(1)).max()
    reach = float(largest)
    return next((terms for terms, far in REACHES if reach <= far), None)


def _parts(above: Tensor, below: Tensor) -> Iterator[Tensor]:
    """Yield the gradients, (M, some records, out, in), a few at a time."""
    size = above.shape[0] * above.shape[1] * below.shape[1]
    width = max(1, CHUNK // max(size, 1))
    for at in range(0, above.shape[2], width):
        yield (
            above[..., at : at + width].transpose(1, 2)[..., None]
            * below[..., at : at + width].transpose(1, 2)[:, :, None]
        )


@dataclass(frozen=True, kw_only=True)
class Column:
    """Gradients of a linear layer's biases: its deltas.

    Parameters
    ----------
    above : Tensor, (M, out, batch)
        Deltas.
    """

    above: Tensor

    def squares(self) -> Tensor:
        """Return the squared lengths."""
        return _squares(self.above)

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum, (M, out, 1)."""
        return Sum(whole=(self.above * factor[:, None]).sum(2, keepdim=True))

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths."""
        return torch.tanh(inner[:, None] * self.above).square_().sum(1)

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum, (M, out, 1)."""
        bent = torch.tanh(inner[:, None] * self.above).mul_(outer[:, None])
        return Sum(whole=bent.sum(2, keepdim=True))

    def only(self, kept: Tensor) -> "Column":
        """Return the gradients with those that are not kept set to zero."""
        return Column(above=torch.where(kept[:, None], self.above, 0.0))


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Gradients that had to be made, one per record.

    Parameters
    ----------
    gradients : Tensor, (M, batch, ...)
        Of one parameter.
    """

    gradients: Tensor

    def squares(self) -> Tensor:
        """Return the squared lengths."""
        return self.gradients.flatten(2).square().sum(2)

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum."""
        m, _, *shape = self.gradients.shape
        flat = torch.bmm(factor[:, None], self.gradients.flatten(2))
        return Sum(whole=flat.view(m, *shape))

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths."""
        return torch.tanh(inner[..., None] * self.gradients.flatten(2)).square_().sum(2)

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum."""
        m, _, *shape = self.gradients.shape
        bent = torch.tanh(inner[..., None] * self.gradients.flatten(2))
        return Sum(whole=torch.bmm(outer[:, None], bent).view(m, *shape))

    def only(self, kept: Tensor) -> "Whole":
        """Return the gradients with those that are not kept set to zero."""
        shape = (*kept.shape, *[1] * (self.gradients.ndim - 2))
        return Whole(gradients=torch.where(kept.view(shape), self.gradients, 0.0))


def clipped_sums(
    clipping: Clipping,
    layers: Sequence[Sequence[Piece]],
    present: Tensor,
    *,
    margin: float,
) -> list[list[Sum]]:
    """Return the sum over a batch of the clipped gradients of every parameter.

    A gradient that is not finite counts as zero: a record cannot escape its bound by breaking arithmetic.

    Parameters
    ----------
    clipping : Clipping
        What is done to each record's gradient.
    layers : sequence of sequences of Piece
        The parameters of each layer.
    present : Tensor of bool, (M, batch)
        Which places of the batch hold a record.
    margin : float
        Treated gradients are kept shorter than the clipping's bound by this share, for rounding.
    """
    squares = [_total([piece.squares() for piece in layer]) for layer in layers]
    whole = _total(squares)
    finite = torch.isfinite(whole)
    kept = present & finite
    if not bool(finite.all()):
        layers = [[piece.only(kept) for piece in layer] for layer in layers]
        squares = [torch.where(kept, square, 0.0) for square in squares]
        whole = torch.where(kept, whole, 0.0)
    share = kept * (1.0 - margin)
    if isinstance(clipping, Scaling):
        factor = share * clipping.factor(whole.sqrt())
        return [[piece.scaled(factor) for piece in layer] for layer in layers]
    if isinstance(clipping, PerLayer):
        norms = clipping.of_layers(len(layers))
        return [
            [
                piece.scaled(share * (norm / square.sqrt().clip(min=norm)))
                for piece in layer
            ]
            for layer, square, norm in zip(layers, squares, norms, strict=True)
        ]
    if isinstance(clipping, Filter):
        return _filtered(clipping, layers, whole, share)
    raise InvalidInput(
        f"{type(clipping).__name__} is no clipping that can be computed; give it a method `factor`, as in Clip."
    )


def _filtered(
    clipping: Filter,
    layers: Sequence[Sequence[Piece]],
    squares: Tensor,
    share: Tensor,
) -> list[list[Sum]]:
    """Return the sums of gradients after a filter on each element."""
    inner = torch.full_like(squares, 1 / clipping.width)
    outer = share * clipping.scale
    if isinstance(clipping, ClipThenTanh):
        inner = inner * (clipping.norm / squares.sqrt().clip(min=clipping.norm))
    if isinstance(clipping, TanhThenClip):
        bent = _total(
            [piece.bent_squares(inner) for layer in layers for piece in layer]
        )
        lengths = clipping.scale * bent.sqrt()
        outer = outer * (clipping.norm / lengths.clip(min=clipping.norm))
    if isinstance(clipping, Sigmoid):  # 1 / (1 + e^-x) = 1/2 + tanh(x/2) / 2
        inner, outer = inner / 2, outer / 2
        raised = outer.sum(1)
        return [
            [_raised(piece.bent(inner, outer), raised) for piece in layer]
            for layer in layers
        ]
    return [[piece.bent(inner, outer) for piece in layer] for layer in layers]


def _raised(bent: Sum, by: Tensor) -> Sum:
    formed = bent.formed()
    return Sum(whole=formed + by.view(-1, *[1] * (formed.ndim - 1)))


def _squares(columns: Tensor) -> Tensor:
    """Return the squared length of each column, (M, batch)."""
    if (
        columns.stride(1) == 1
    ):  # a column lies in one piece: no need to make the squares
        lengths: Tensor = torch.linalg.vector_norm(columns, dim=1)
        return lengths.square_()
    return columns.square().sum(1)


def _total(parts: Sequence[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@functools.cache
def _odd(terms: int) -> tuple[float, ...]:
    """Return coefficients of x, x^3, ... that fit tanh as far as the terms reach."""
    return _fit(terms, 1, np.tanh)


@functools.cache
def _even(terms: int) -> tuple[float, ...]:
    """Return coefficients of x^2, x^4, ... that fit the square of tanh as far as the terms reach."""
    return _fit(terms + 1, 2, lambda x: np.tanh(x) ** 2)


def _fit(
    terms: int,
    first: int,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float, ...]:
    """Return least-squares coefficients of the relative error at Chebyshev's points."""
    reach = dict(REACHES)[terms if first == 1 else terms - 1]
    angles = (np.arange(200) + 0.5) * np.pi / 400
    points = reach * np.cos(angles)
    powers = (points[:, None] / reach) ** (first + 2 * np.arange(terms))
    values = function(points)
    solved = np.linalg.lstsq(
        powers / values[:, None], np.ones_like(values), rcond=None
    )[0]
    return tuple(float(c) for c in solved / reach ** (first + 2.0 * np.arange(terms)))
