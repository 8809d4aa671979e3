"""From potentials of columns and pairs to the probabilities of all cliques of a junction tree, and back to columns and pairs.

The weight of a clique's cell is the product of its factors' exponentials; cliques tell each other what they know of the columns that they share, up the tree and down again
(Koller & Friedman, 2009, Section 10.3). The columns of a large clique are divided into three blocks, so that its cells fill a box and every column and every pair lies in two of the blocks. Its weights are
the product of three tables, one for each face of the box, and what the cells add up to on a face is a product of matrices: of a hundred thousand cells none is ever written down before the end.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from reticent.train.marginals.graphs import Factor, cells_of
from reticent.train.marginals.junction import Junction, places_in

__all__ = ["Messages"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Columns = tuple[int, ...]
# The least logarithm of a cell's weight, beside 0 for the largest: 1e-109. Each of the three faces of a box has a third of it. What is rarer is never drawn, and no message has a zero, by which another one would be divided.
LEAST = -250.0
FAINT = 1e-10  # weights are made larger if none is above this


class Messages:
    """Sweeps over a junction tree.

    Parameters
    ----------
    tree : Junction
        With a home for every factor.
    factors : sequence of tuple of int
        Columns and pairs that have potentials.
    """

    def __init__(self, tree: Junction, factors: Sequence[Factor]) -> None:
        faces = [_faces(blocks) for blocks in tree.blocks]
        lengths = [cells_of(tree.sizes, face) for each in faces for face in each]
        least = [LEAST / len(each) for each in faces for _ in each]
        self._starts: Places = np.cumsum([0, *lengths[:-1]])
        self._face = np.repeat(np.arange(len(lengths)), lengths)
        self._least = np.repeat(least, lengths)
        # All faces stand one behind the other, in memory that every sweep writes over.
        self._weights, self._shares = np.empty((2, len(self._face)))
        views = zip(np.split(self._weights, self._starts[1:]), np.split(self._shares, self._starts[1:]), strict=True)  # fmt: skip
        self._cliques = [
            _clique(tree.sizes, blocks, [next(views) for _ in each])
            for blocks, each in zip(tree.blocks, faces, strict=True)
        ]
        self._links = [
            None if parent < 0 else _link(tree, k, self._cliques, faces)
            for k, parent in enumerate(tree.parents)
        ]
        self._spread = _spreading(tree, faces, factors)
        self._gathered = self._spread.T.tocsr()

    def sweep(self, theta: Array) -> tuple[Array, float]:
        """Return the probabilities of all factors' cells, one behind the other, and the logarithm of the sum of all weights.

        Parameters
        ----------
        theta : array of float
            The potentials of all factors' cells, one behind the other.
        """
        logs = self._spread @ theta
        peaks = np.maximum.reduceat(logs, self._starts)
        logs -= peaks[self._face]
        np.maximum(logs, self._least, out=logs)
        np.exp(logs, out=self._weights)
        log_sum = float(peaks.sum())
        told = []
        for link in reversed(self._links):
            if link is not None:
                message, logarithm = link.up()
                told.append(message)
                log_sum += logarithm
        for clique, link in zip(self._cliques, self._links, strict=True):
            if link is not None:
                # A clique that is divided by what it told and multiplied by what it is told adds up to 1 as its parent does.
                link.down(told.pop())
            clique.fold()
            if link is None:
                log_sum += math.log(clique.normalise())
        return self._gathered @ self._shares, log_sum

    def beliefs(self) -> list[Array]:
        """Return the probabilities of each clique's cells, after a sweep."""
        return [clique.cells() for clique in self._cliques]


@dataclass(frozen=True)
class _Clique:
    """The weights and the probabilities of a clique, on each of its faces.

    Parameters
    ----------
    weights : tuple of array of float
        Tables of which the weights of all cells are the product.
    shares : tuple of array of float
        What the cells add up to.
    """

    weights: tuple[Array, ...]
    shares: tuple[Array, ...]

    def fold(self) -> None:
        """Add the cells up on all faces."""
        for face in range(len(self.shares)):
            self.sums(face)

    def normalise(self) -> float:
        """Divide weights and shares by the sum of all cells, and return it."""
        whole = float(self.shares[0].sum())
        for table in (self.weights[0], *self.shares):
            np.divide(table, whole, out=table)
        return whole

    def sums(self, face: int) -> Array:
        """Return what the cells add up to on a face."""
        self.shares[face][:] = self.weights[face]
        return self.shares[face]

    def cells(self) -> Array:
        """Return the weights of all cells."""
        return self.weights[0].copy()


class _Box(_Clique):
    """A clique whose columns are divided into three blocks."""

    def sums(self, face: int) -> Array:
        """Return what the cells add up to on a face."""
        xy, xz, yz = self.weights
        first, second = ((xz, yz.T), (xy, yz), (xy.T, xz))[face]
        sums = np.matmul(first, second, out=self.shares[face])
        sums *= self.weights[face]
        return sums

    def cells(self) -> Array:
        """Return the weights of all cells."""
        xy, xz, yz = self.weights
        return (xy[:, :, None] * xz[:, None, :] * yz[None]).ravel()


@dataclass(frozen=True, kw_only=True)
class _Link:
    """What a clique and its parent tell each other: the weights of the columns that they share.

    Parameters
    ----------
    states : int
        Number of states of these columns.
    clique, parent : _Clique
        The two.
    face, parent_face : int
        A face of each that has these columns.
    places, parent_places : array of int
        The state of each cell of these faces.
    """

    states: int
    clique: _Clique
    face: int
    places: Places
    parent: _Clique
    parent_face: int
    parent_places: Places

    def up(self) -> tuple[Array, float]:
        """Tell the parent what a clique knows; return the message, and the logarithm by which weights were made larger."""
        sums = self.clique.sums(self.face).reshape(-1)
        message: Array = np.asarray(np.bincount(self.places, sums, self.states))
        largest = float(message.max())
        weights, logarithm = self._parent_weights, math.log(largest)
        weights *= (message / largest)[self.parent_places]
        if (scale := float(weights.max())) < FAINT:
            weights /= scale
            logarithm += math.log(scale)
        np.maximum(weights, self._least, out=weights)
        return message, logarithm

    def down(self, told: Array) -> None:
        """Tell a clique what its parent knows, in place of what it told itself."""
        shares = self.parent.shares[self.parent_face].reshape(-1)
        message = np.bincount(self.parent_places, shares, self.states) / told
        weights = self.clique.weights[self.face].reshape(-1)
        weights *= message[self.places]

    @cached_property
    def _parent_weights(self) -> Array:
        return self.parent.weights[self.parent_face].reshape(-1)

    @cached_property
    def _least(self) -> float:
        """The least weight on a face of the parent."""
        return math.exp(LEAST / len(self.parent.weights))


def _clique(
    sizes: Sequence[int], blocks: tuple[Columns, ...], faces: list[tuple[Array, Array]]
) -> _Clique:
    """Return a clique whose weights and shares are in given memory."""
    weights, shares = zip(*faces, strict=True)
    if len(blocks) == 1:
        return _Clique(weights, shares)
    x, y, z = (cells_of(sizes, block) for block in blocks)
    shapes = [(x, y), (x, z), (y, z)]
    return _Box(
        tuple(table.reshape(s) for table, s in zip(weights, shapes, strict=True)),
        tuple(table.reshape(s) for table, s in zip(shares, shapes, strict=True)),
    )


def _link(
    tree: Junction, k: int, cliques: list[_Clique], faces: list[list[Columns]]
) -> _Link:
    """Return the link of a clique to its parent, by the smallest faces that have what they share."""
    common, parent = tree.common(k), tree.parents[k]
    own, above = (_face_of(tree.sizes, faces[c], common) for c in (k, parent))
    return _Link(
        states=cells_of(tree.sizes, common),
        clique=cliques[k],
        face=own,
        places=places_in(tree.sizes, faces[k][own], common),
        parent=cliques[parent],
        parent_face=above,
        parent_places=places_in(tree.sizes, faces[parent][above], common),
    )


def _face_of(sizes: Sequence[int], faces: list[Columns], columns: Columns) -> int:
    """Return the smallest of a clique's faces that has some columns."""
    able = [k for k, face in enumerate(faces) if set(columns) <= set(face)]
    return min(able, key=lambda k: cells_of(sizes, faces[k]))


def _faces(blocks: tuple[Columns, ...]) -> list[Columns]:
    """Return the columns of each face of a clique."""
    if len(blocks) == 1:
        return [*blocks]
    x, y, z = blocks
    return [(*x, *y), (*x, *z), (*y, *z)]


def _spreading(
    tree: Junction, faces: list[list[Columns]], factors: Sequence[Factor]
) -> csr_array:
    """Return the matrix of zeros and ones that adds the potentials of all factors up on the cells of all faces.

    Transposed, it adds cells up to marginals. Sums along the axes of small arrays took most of a fit.
    """
    guests: list[list[list[Places]]] = [[[] for _ in each] for each in faces]
    width = 0
    for factor in factors:
        at = tree.home(factor)
        face = _face_of(tree.sizes, faces[at], factor)
        places = places_in(tree.sizes, faces[at][face], factor)
        guests[at][face].append(width + places)
        width += cells_of(tree.sizes, factor)
    # Every cell of a face has one entry for each factor that is at home there.
    sizes = [cells_of(tree.sizes, face) for each in faces for face in each]
    at_home = list(chain.from_iterable(guests))
    entries = np.repeat([len(places) for places in at_home], sizes)
    columns = [np.stack(places, axis=1).ravel() for places in at_home if places]
    ends = np.concatenate([[0], np.cumsum(entries)])
    ones, shape = np.ones(ends[-1]), (len(entries), width)
    return csr_array((ones, np.concatenate(columns), ends), shape=shape)
