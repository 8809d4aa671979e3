"""What is found in a file: arrays, texts and trees, each with the place where it stands."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = [
    "CategorySets",
    "Contents",
    "NamedArray",
    "NamedTexts",
    "Tree",
    "Unread",
    "attribute",
    "key",
    "place_of",
    "position",
]

LONGEST_NAME = 64  # characters of a name in a path
LONGEST_SETTING = 16  # numbers of a parameter, such as the widths of hidden layers
EVEN = 1e-12  # by which distances may differ that are the same but for rounding
# Positions in lists and keys of dictionaries. A key is data: the keys of a vocabulary are people's words.
_POSITION = re.compile(r"\[\d+\]")
_SETTING = re.compile(
    r"[.:][a-zA-Z]\w*(?<!_)$"
)  # what training finds out begins or ends with an underscore
_KEY = re.compile(r"\{[^{}]*\}")


def attribute(path: str, name: str) -> str:
    """Return the path of an attribute of the object at a path.

    Examples
    --------
    >>> attribute("product.skops:", "tree_"), attribute("product.skops:tree_", "nodes")
    ('product.skops:tree_', 'product.skops:tree_.nodes')
    """
    word = re.sub(r"\W", "_", str(name))[:LONGEST_NAME]
    return path + word if path.endswith(":") else f"{path}.{word}"


def key(path: str, name: object) -> str:
    """Return the path of what a dictionary at a path holds under a key."""
    word = re.sub(r"[{}]", "_", str(name))[:LONGEST_NAME]
    return f"{path}{{{word}}}"


def position(path: str, at: int) -> str:
    """Return the path of what a list at a path holds at a position."""
    return f"{path}[{at}]"


def place_of(path: str) -> str:
    """Return a path without positions and keys, so that like things share it and nobody's word stands in it.

    Examples
    --------
    >>> place_of("product.skops:estimators_[3].tree_.nodes")
    'product.skops:estimators_[].tree_.nodes'
    >>> place_of("product.skops:vocabulary_{smith}")
    'product.skops:vocabulary_{}'
    """
    return _KEY.sub("{}", _POSITION.sub("[]", path))


@dataclass(frozen=True, kw_only=True)
class NamedArray:
    """Numbers that stand together in a file.

    Parameters
    ----------
    path : str
        Where they stand. It may quote keys of the file; :attr:`place` does not.
    values : array
        The numbers, of any shape: booleans, integers or floats.
    """

    path: str
    values: NDArray[Any]

    @property
    def place(self) -> str:
        """The path without positions in lists and keys of dictionaries."""
        return place_of(self.path)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.values.shape


@dataclass(frozen=True, kw_only=True)
class NamedTexts:
    """Texts that stand together in a file: categories, keys of a vocabulary, settings.

    Parameters
    ----------
    path : str
        Where they stand. It may quote keys of the file; :attr:`place` does not.
    values : tuple of str
        The texts, in the order of the file.
    """

    path: str
    values: tuple[str, ...]

    @property
    def place(self) -> str:
        """The path without positions in lists and keys of dictionaries."""
        return place_of(self.path)


@dataclass(frozen=True, kw_only=True)
class CategorySets:
    """Which nodes of a tree compare a set of categories, and which sets.

    Parameters
    ----------
    columns : array of int
        Column that a node compares with a set; -1 in all other nodes.
    rows : array of int
        Which of the sets it is; -1 in all other nodes.
    sets : array of bool, shape (sets, categories)
        Whether records with a category, by its number, go left; those beyond the last go right.
    """

    columns: NDArray[np.int64]
    rows: NDArray[np.int64]
    sets: NDArray[np.bool_]

    def __post_init__(self) -> None:
        used = self.rows[self.columns >= 0]
        if self.columns.shape != self.rows.shape or (
            used.size and not 0 <= used.min() <= used.max() < len(self.sets)
        ):
            raise InvalidInput(
                f"the nodes name {used.size} of {len(self.sets)} sets of categories that do not fit them, so no record can be led on."
            )

    def goes_left(
        self, nodes: NDArray[np.int64], values: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """Return whether records go left at nodes that compare sets.

        Parameters
        ----------
        nodes : array of int
            The node of each record.
        values : array of float
            The record's value in the column of that node.
        """
        width = self.sets.shape[1]
        known = np.isfinite(values) & (values >= 0) & (values < width)
        code = np.where(known, values, 0).astype(np.int64)
        return np.asarray(known & self.sets[self.rows[nodes], code])


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A decision tree as arrays with one entry per node; node 0 is the root.

    Parameters
    ----------
    path : str
        Where it stands.
    features : array of int
        Column that a node compares; -1 in leaves, and in nodes that compare a set of categories.
    thresholds : array of float
        Records go left if their value is at most the threshold, or below it if ``strict``.
    left, right : array of int
        Children; -1 in leaves.
    missing_left : array of bool
        Whether records without a value go left.
    counts : array of float
        Weighted number of training records in each node; NaN if the file does not say.
    values : array of float, shape (nodes, outputs)
        What the node answers.
    shares : bool
        Whether ``values`` are the shares of the classes among the node's records; else they are a quantity or a score.
    strict : bool
        Whether records go left only if they are below the threshold.
    single : bool
        Whether records are compared in single precision.
    categories : CategorySets or None
        What is known of nodes that compare sets of categories; None if there are none, or nothing is known.

    Raises
    ------
    InvalidInput
        If the nodes do not form a tree, so that a walk down from the root would not end.
    """

    path: str
    features: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    counts: NDArray[np.float64]
    values: NDArray[np.float64]
    shares: bool = False
    strict: bool = False
    single: bool = True
    categories: CategorySets | None = None

    def __post_init__(self) -> None:
        nodes = len(self.features)
        arrays = (self.thresholds, self.left, self.right, self.missing_left)
        fit = all(a.shape == (nodes,) for a in (*arrays, self.counts))
        if not (nodes and fit and self.values.ndim == 2 and len(self.values) == nodes):
            raise InvalidInput(
                f"the arrays of a tree with {nodes} nodes do not fit each other, so no record can be led through it."
            )
        children = np.concatenate([self.left, self.right])
        children = children[children >= 0]
        # With one parent each and none for the root, whatever is reached from the root is a tree.
        if ((self.left < 0) != (self.right < 0)).any() or (
            children.size
            and (
                children.max() >= nodes
                or children.min() == 0
                or np.bincount(children).max() > 1
            )
        ):
            raise InvalidInput(
                f"the {nodes} nodes do not form a tree, so a walk down from the root might not end."
            )

    @property
    def place(self) -> str:
        """The path without positions in lists and keys of dictionaries."""
        return place_of(self.path)

    @property
    def width(self) -> int:
        """Least number of columns of the records that it compares."""
        return int(self.columns.max(initial=-1)) + 1

    @property
    def columns(self) -> NDArray[np.int64]:
        """Column that a node compares with a threshold or with a set; -1 if it is not known, and in leaves."""
        if self.categories is None:
            return self.features
        return np.maximum(self.features, self.categories.columns)

    @property
    def not_followed(self) -> int:
        """How many nodes have children of which nobody knows who goes where."""
        return int(((self.left >= 0) & (self.columns < 0)).sum())


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Something in the file that could not be read, and why.

    Parameters
    ----------
    path : str
        Where it stands.
    why : str
        Why it could not be read.
    """

    path: str
    why: str

    @property
    def place(self) -> str:
        """The path without positions in lists and keys of dictionaries."""
        return place_of(self.path)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """Everything in the file of a product: numbers, texts, trees, and what could not be read.

    Parameters
    ----------
    arrays : tuple of NamedArray
        Arrays, lists of numbers, fields of structured arrays, thresholds of trees by column, and runs of floats in
        bytes of unknown form.
    texts : tuple of NamedTexts
        Strings, by the list or object that they stand in.
    trees : tuple of Tree
        Decision trees. Their thresholds and values are among ``arrays`` as well.
    unread : tuple of Unread
        What could not be read. It is a finding, because anything may stand there.
    size : int
        Number of bytes of all files.
    """

    arrays: tuple[NamedArray, ...] = ()
    texts: tuple[NamedTexts, ...] = ()
    trees: tuple[Tree, ...] = ()
    unread: tuple[Unread, ...] = ()
    size: int = 0

    @property
    def parameters(self) -> int:
        """How many numbers stand in arrays of floats."""
        return sum(a.values.size for a in self.arrays if a.values.dtype.kind in "fc")

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take in memory."""
        return sum(array.values.nbytes for array in self.arrays)

    def with_axis(self, *lengths: int) -> tuple[str, ...]:
        """Return the places of arrays that have an entry, or a row, for each of so many people, and tell something of each.

        Three things are left out because they tell nothing: what belongs to the nodes of a tree, of which there may be as many by coincidence; entries that
        are all equal or evenly spaced, so that they are the same whoever the people are; and what is as long as a setting of the object that it
        stands in, such as the width of a hidden layer.
        """
        of_nodes = {tree.place for tree in self.trees}
        settings = [
            (array.path.rpartition(".")[0], set(array.values.ravel().tolist()))
            for array in self.arrays
            if array.values.size <= LONGEST_SETTING
            and array.values.dtype.kind == "i"
            and _SETTING.search(array.path)
        ]

        def is_set(array: NamedArray, length: int) -> bool:
            return any(
                length in values and owner and array.path.startswith(owner)
                for owner, values in settings
            )

        places: dict[str, None] = {}
        for array in self.arrays:
            for length in lengths:
                if (
                    length in array.shape
                    and array.place.rpartition(".")[0] not in of_nodes
                    and f"{array.place.removesuffix('values')}nodes" not in of_nodes
                    and not _is_even(array.values, array.shape.index(length))
                    and not is_set(array, length)
                ):
                    places[array.place] = None
        return tuple(places)


def _is_even(values: NDArray[Any], axis: int) -> bool:
    """Whether the entries along an axis are all equal, or follow each other at even distances, as those of a counter do."""
    steps = np.diff(np.moveaxis(values, axis, 0).astype(np.float64), axis=0)
    if not len(steps) or not np.isfinite(steps).all():
        return not len(steps)
    size = np.abs(values[np.isfinite(values)]).max(initial=0.0)
    return bool((np.abs(steps - steps[0]) <= EVEN * size).all())
