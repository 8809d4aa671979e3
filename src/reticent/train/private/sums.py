r"""Sums of clipped per-record gradients, without forming the gradients where their structure allows it.

The gradient of a linear layer's weights for one record is an outer product: deltas above times activations
below. Its length is the product of theirs, so that clipping needs no gradient at all ("book-keeping",
arXiv:2210.00038), and any power of it, taken element by element, is an outer product again: an odd polynomial
for tanh turns the filtered sum into one matrix product with a few terms per record.
Gradients without such a structure (convolutions) are formed, one per record, and clipped directly.

The first dimension of all arrays is the models that are trained together; the records of a batch are the last or the second.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Protocol, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train.private.clipping import Clipping, Filter, PerLayer, Scaling

__all__ = ["Column", "Outer", "Piece", "Sum", "Whole", "clipped_sums", "of_linear"]

# Number of terms of an odd polynomial, and the argument up to which it approximates tanh with a relative error of 5e-7.
REACHES = ((2, 0.067), (3, 0.24), (4, 0.48), (5, 0.70), (6, 0.95), (8, 1.36))
CHUNK = 2**22  # numbers of gradients formed at once: 16 MB in single precision


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of clipped gradients of one parameter: as two factors, or formed.

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
        """Return ``deviation * noise`` plus the sum, in the memory of the noise."""
        if self.whole is not None:
            return noise.mul_(deviation).add_(self.whole)
        assert self.left is not None
        assert self.right is not None
        return noise.baddbmm_(self.left, self.right.transpose(1, 2), beta=deviation)

    def add_to(self, parameter: Tensor, factor: float) -> None:
        """Add ``factor`` times the sum to a parameter, in place."""
        if self.whole is not None:
            parameter.add_(self.whole, alpha=factor)
            return
        assert self.left is not None
        assert self.right is not None
        parameter.baddbmm_(self.left, self.right.transpose(1, 2), alpha=factor)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the sum."""
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

    def raised(self, by: Tensor) -> "Sum":
        """Return the sum with a number per model, (M,), added to each element."""
        formed = self.formed()
        return Sum(whole=formed + by.view(-1, *[1] * (formed.ndim - 1)))


class Piece(Protocol):
    """The gradients of one parameter for every record of a batch."""

    def squares(self) -> Tensor:
        """Return the squared lengths of the gradients, (M, batch)."""
        ...

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum of the gradients, each multiplied by its factor."""
        ...

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths of ``tanh(inner g)``."""
        ...

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum of ``outer tanh(inner g)``."""
        ...

    def only(self, valid: Tensor) -> "Piece":
        """Return the gradients, with zero in place of those that are not valid."""
        ...

    def stretched(self, factor: Tensor) -> "Piece":
        """Return the gradients, each multiplied by its factor, (batch,), before they are clipped."""
        ...


@dataclass(frozen=True, kw_only=True)
class Outer:
    """Gradients of a linear layer's weights, which are outer products.

    Parameters
    ----------
    above : Tensor, (M, out, batch)
        Deltas.
    below : Tensor, (M, in, batch)
        Activations.
    lengths, lengths_above : Tensor, (M, batch), optional
        Squared lengths of the activations and of the deltas, if they are already known.
    """

    above: Tensor
    below: Tensor
    lengths: Tensor | None = None
    lengths_above: Tensor | None = None

    def squares(self) -> Tensor:
        """Return the products of the squared lengths of deltas and activations."""
        return _known(self.lengths_above, self.above) * _known(self.lengths, self.below)

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum as a product of scaled deltas and activations."""
        return Sum(left=self.above * factor[:, None], right=self.below)

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths from even powers, or from the gradients if their elements are large."""
        above, below = self._balanced(inner)
        terms = _terms(above, below)
        if terms is None:
            return _tanh_squares(above, below)
        first, second = above.square(), below.square()
        total = torch.zeros_like(inner)
        powers = (first, second)
        for coefficient in _even(terms):
            total += coefficient * powers[0].sum(1) * powers[1].sum(1)
            powers = (powers[0] * first, powers[1] * second)
        return total

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum from odd powers, or from the gradients if their elements are large."""
        above, below = self._balanced(inner)
        terms = _terms(above, below)
        if terms is None:
            return Sum(whole=_tanh_products(above, below, outer))
        first, second = above.square(), below.square()
        left, right = above * outer[:, None], below
        lefts, rights = [], []
        for coefficient in _odd(terms):
            lefts.append(coefficient * left)
            rights.append(right)
            left, right = left * first, right * second
        return Sum(left=torch.cat(lefts, 2), right=torch.cat(rights, 2))

    def only(self, valid: Tensor) -> "Outer":
        """Return the gradients, with zero in place of those that are not valid."""
        return Outer(
            above=torch.where(valid[:, None], self.above, 0.0),
            below=torch.where(valid[:, None], self.below, 0.0),
        )

    def stretched(self, factor: Tensor) -> "Outer":
        """Return the gradients, each multiplied by its factor."""
        return Outer(above=self.above * factor, below=self.below, lengths=self.lengths)

    def _balanced(self, inner: Tensor) -> tuple[Tensor, Tensor]:
        """Return deltas times a factor, and activations, scaled so that both are equally large in each record.

        Their product does not change, and no power of one overflows while that of the other vanishes.
        """
        above = self.above * inner[:, None]
        # Clipped far below any number that matters, so that nothing is divided by zero.
        largest_above = above.abs().amax(1).clip(min=1e-30)
        largest_below = self.below.abs().amax(1).clip(min=1e-30)
        balance = (largest_below / largest_above).sqrt()[:, None]
        return above * balance, self.below / balance


def _terms(above: Tensor, below: Tensor) -> int | None:
    """Return the number of terms that suffices for the largest element of any gradient, or None if none does."""
    largest = float((above.abs().amax(1) * below.abs().amax(1)).max())
    return next((terms for terms, reach in REACHES if largest <= reach), None)


def _tanh_products(above: Tensor, below: Tensor, outer: Tensor) -> Tensor:
    """Return the sum over records of ``outer tanh(above below')``, (M, out, in)."""
    total = torch.zeros(len(above), above.shape[1], below.shape[1], dtype=above.dtype)
    compiled = _compiled() if above.dtype == torch.float32 else None
    if compiled is not None:
        for model, (deltas, inputs, weights) in enumerate(
            zip(*_by_record(above, below), outer, strict=True)
        ):
            compiled.add_tanh_products(
                deltas, inputs, weights.contiguous().numpy(), total[model].numpy()
            )
        return total
    at = 0
    for part in _parts(above, below):
        width = part.shape[1]
        share = outer[:, at : at + width]
        total += torch.einsum("mb,mboi->moi", share, torch.tanh(part))
        at += width
    return total


def _tanh_squares(above: Tensor, below: Tensor) -> Tensor:
    """Return the squared lengths of ``tanh(above below')``, (M, batch)."""
    compiled = _compiled() if above.dtype == torch.float32 else None
    if compiled is not None:
        squares = torch.empty(above.shape[0], above.shape[2])
        for own, deltas, inputs in zip(squares, *_by_record(above, below), strict=True):
            compiled.tanh_squares(deltas, inputs, own.numpy())
        return squares
    parts = [torch.tanh(part).square_().sum((2, 3)) for part in _parts(above, below)]
    return torch.cat(parts, 1)


def _by_record(
    above: Tensor, below: Tensor
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return deltas and activations, (M, batch, ...), each record in one piece of memory."""
    return (
        above.transpose(1, 2).contiguous().numpy(),
        below.transpose(1, 2).contiguous().numpy(),
    )


@functools.cache
def _compiled() -> ModuleType | None:
    """Return the compiled loops; None if the extra ``compiled`` is not installed."""
    try:
        from reticent.train.private import compiled
    except ImportError:
        return None
    return compiled


def _parts(above: Tensor, below: Tensor) -> Iterator[Tensor]:
    """Yield the gradients of a few records at a time, (M, records, out, in)."""
    size = above.shape[0] * above.shape[1] * below.shape[1]
    width = max(1, CHUNK // max(size, 1))
    for at in range(0, above.shape[2], width):
        yield (
            above[..., at : at + width].transpose(1, 2)[..., None]
            * below[..., at : at + width].transpose(1, 2)[:, :, None]
        )


@dataclass(frozen=True, kw_only=True)
class Column:
    """Gradients of a linear layer's biases, which are its deltas.

    Parameters
    ----------
    above : Tensor, (M, out, batch)
        Deltas.
    lengths : Tensor, (M, batch), optional
        Their squared lengths, if they are already known.
    """

    above: Tensor
    lengths: Tensor | None = None

    def squares(self) -> Tensor:
        """Return the squared lengths."""
        return _known(self.lengths, self.above)

    def scaled(self, factor: Tensor) -> Sum:
        """Return the sum, (M, out, 1)."""
        return Sum(whole=torch.bmm(self.above, factor[:, :, None]))

    def bent_squares(self, inner: Tensor) -> Tensor:
        """Return the squared lengths."""
        return torch.tanh(inner[:, None] * self.above).square_().sum(1)

    def bent(self, inner: Tensor, outer: Tensor) -> Sum:
        """Return the sum, (M, out, 1)."""
        bent = torch.tanh(inner[:, None] * self.above).mul_(outer[:, None])
        return Sum(whole=bent.sum(2, keepdim=True))

    def only(self, valid: Tensor) -> "Column":
        """Return the gradients, with zero in place of those that are not valid."""
        return Column(above=torch.where(valid[:, None], self.above, 0.0))

    def stretched(self, factor: Tensor) -> "Column":
        """Return the gradients, each multiplied by its factor."""
        return Column(above=self.above * factor)


def of_linear(
    above: Tensor, below: Tensor, lengths: Tensor | None = None
) -> tuple[Outer, Column]:
    """Return the gradients of a linear layer's weights and biases.

    Parameters
    ----------
    above, below : Tensor, (M, out, batch) and (M, in, batch)
        Deltas and activations.
    lengths : Tensor, (M, batch), optional
        Squared lengths of the activations, if they are already known.
    """
    squares = _squares(above)
    return (
        Outer(above=above, below=below, lengths=lengths, lengths_above=squares),
        Column(above=above, lengths=squares),
    )


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Gradients that had to be formed, one per record.

    Parameters
    ----------
    gradients : Tensor, (M, batch, ...)
        Gradients of one parameter.
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

    def only(self, valid: Tensor) -> "Whole":
        """Return the gradients, with zero in place of those that are not valid."""
        shape = (*valid.shape, *[1] * (self.gradients.ndim - 2))
        return Whole(gradients=torch.where(valid.view(shape), self.gradients, 0.0))

    def stretched(self, factor: Tensor) -> "Whole":
        """Return the gradients, each multiplied by its factor."""
        shape = (-1, *[1] * (self.gradients.ndim - 2))
        return Whole(gradients=self.gradients * factor.view(shape))


def clipped_sums(
    clipping: Clipping,
    layers: Sequence[Sequence[Piece]],
    present: Tensor,
    *,
    margin: float,
) -> list[list[Sum]]:
    """Return the sum over a batch of the clipped gradients of every parameter.

    A gradient that is not finite counts as zero, so that a record cannot escape its bound by breaking the arithmetic.

    Parameters
    ----------
    clipping : Clipping
        The clipping of each record's gradient.
    layers : sequence of sequences of Piece
        The parameters of each layer.
    present : Tensor of bool, (M, batch)
        Which places of the batch hold a record.
    margin : float
        Share by which clipped gradients stay below the clipping's bound, to leave room for rounding.
    """
    squares = [_total([piece.squares() for piece in layer]) for layer in layers]
    whole = _total(squares)
    finite = torch.isfinite(whole)
    valid = present & finite
    if not bool(finite.all()):
        layers = [[piece.only(valid) for piece in layer] for layer in layers]
        squares = [torch.where(valid, square, 0.0) for square in squares]
        whole = torch.where(valid, whole, 0.0)
    share = valid * (1.0 - margin)
    if _scales(clipping):
        factor = share * clipping.factor(whole.sqrt())
        return [[piece.scaled(factor) for piece in layer] for layer in layers]
    if isinstance(clipping, PerLayer):
        factors = clipping.factors([square.sqrt() for square in squares])
        return [
            [piece.scaled(share * factor) for piece in layer]
            for layer, factor in zip(layers, factors, strict=True)
        ]
    if isinstance(clipping, Filter):
        return _filtered(clipping, layers, whole, share)
    raise InvalidInput(
        f"{type(clipping).__name__} states a bound but not how gradients are clipped; give it a method `factor`, as in Clip."
    )


def _scales(clipping: Clipping) -> TypeGuard[Scaling]:
    """Whether a clipping shortens gradients; looked up once per class, because comparing methods takes as long as a small product."""
    return _class_scales(type(clipping))


@functools.cache
def _class_scales(kind: type[Clipping]) -> bool:
    return issubclass(kind, Scaling)


def _filtered(
    clipping: Filter,
    layers: Sequence[Sequence[Piece]],
    squares: Tensor,
    share: Tensor,
) -> list[list[Sum]]:
    """Return the sums of gradients after a filter on each element."""
    inner = clipping.inner(squares.sqrt())

    def lengths() -> Tensor:
        parts = [piece.bent_squares(inner) for layer in layers for piece in layer]
        return clipping.scale * _total(parts).sqrt()

    outer = clipping.outer(share * clipping.scale, lengths)
    return [
        [clipping.completed(piece.bent(inner, outer), outer) for piece in layer]
        for layer in layers
    ]


def _known(lengths: Tensor | None, columns: Tensor) -> Tensor:
    """Return squared lengths that are known, or compute them."""
    return _squares(columns) if lengths is None else lengths


def _squares(columns: Tensor) -> Tensor:
    """Return the squared length of each column, (M, batch)."""
    # A column that is contiguous in memory needs no array of squares.
    if columns.stride(1) == 1:
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
    """Return the coefficients of x, x^3, ... that fit tanh up to the reach of the terms."""
    return _fit(terms, 1, np.tanh)


@functools.cache
def _even(terms: int) -> tuple[float, ...]:
    """Return the coefficients of x^2, x^4, ... that fit the square of tanh up to the reach of the terms."""
    return _fit(terms + 1, 2, lambda x: np.tanh(x) ** 2)


def _fit(
    terms: int,
    first: int,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float, ...]:
    """Return the coefficients with the least squared relative error at Chebyshev's points."""
    reach = dict(REACHES)[terms if first == 1 else terms - 1]
    angles = (np.arange(200) + 0.5) * np.pi / 400
    points = reach * np.cos(angles)
    powers = (points[:, None] / reach) ** (first + 2 * np.arange(terms))
    values = function(points)
    solved = np.linalg.lstsq(
        powers / values[:, None], np.ones_like(values), rcond=None
    )[0]
    return tuple(float(c) for c in solved / reach ** (first + 2.0 * np.arange(terms)))
