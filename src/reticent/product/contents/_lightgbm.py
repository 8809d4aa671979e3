"""Read a model of LightGBM, which stands in a file as one text with a line for each array."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reticent.product.contents._values import (
    CategorySets,
    NamedArray,
    Tree,
    attribute,
    position,
)

__all__ = ["is_lightgbm", "lightgbm_parts"]

_SEPARATORS = re.compile(r"[\s:\[\]]+")  # of lists of numbers, and of ranges [low:high]
# Bits of a node's decision_type, by LightGBM's include/LightGBM/tree.h: whether it compares a set of categories, whether records without a
# value go left, and, in the next two bits, what counts as no value.
_CATEGORICAL, _MISSING_LEFT, _MISSING_SHIFT = 1, 2, 2
_NEVER_MISSING = 0
WORD = 32  # bits of one number of a set of categories
MOST_CATEGORIES = (
    2**16
)  # in a set; LightGBM takes codes for categories, and more of them are something else


def is_lightgbm(text: str) -> bool:
    """Return whether a text begins like a model of LightGBM."""
    return text.startswith("tree\n") and "\nnum_tree_per_iteration=" in text[:10_000]


def lightgbm_parts(path: str, text: str) -> Iterator[Tree | NamedArray]:
    """Yield the trees in a model of LightGBM, and every other line that holds numbers: among them the range of each column.

    Parameters
    ----------
    path : str
        Where it stands.
    text : str
        The model.

    Raises
    ------
    InvalidInput
        If the nodes of a tree do not form one.
    ValueError
        If a line of a tree holds something else than numbers.
    """
    head, *trees = re.split(r"^Tree=\d+$", text, flags=re.MULTILINE)
    for name, words in _lines(head):
        numbers = _numbers(words)
        if numbers is not None:
            yield NamedArray(path=attribute(path, name), values=numbers)
    for at, part in enumerate(trees):
        # After the last tree come importances and settings, which hold nobody.
        lines = dict(_lines(part.partition("\nend of trees")[0]))
        yield _tree(position(f"{path}.trees", at), lines)


def _tree(path: str, lines: Mapping[str, str]) -> Tree:
    leaves = int(lines["num_leaves"])
    inner = leaves - 1

    def entries(name: str, count: int) -> NDArray[np.float64]:
        numbers = _numbers(lines.get(name, ""))
        if count == 0:
            return np.zeros(0)
        if numbers is None or len(numbers) != count:
            return np.full(count, np.nan)
        return numbers

    def whole(name: str) -> NDArray[np.int64]:
        return np.nan_to_num(entries(name, inner), nan=0.0).astype(np.int64)

    def child(name: str) -> NDArray[np.int64]:
        # Leaf k is written as -1 - k; here the leaves stand behind the inner nodes.
        nodes = whole(name)
        return np.concatenate(
            [np.where(nodes < 0, inner - 1 - nodes, nodes), np.full(leaves, -1)]
        )

    decision = whole("decision_type")
    is_set = (decision & _CATEGORICAL) > 0
    thresholds, features = entries("threshold", inner), whole("split_feature")
    kind_of_missing = decision >> _MISSING_SHIFT & 3
    goes_left = (decision & _MISSING_LEFT) > 0
    # Where nothing counts as missing, a missing value is 0.
    goes_left = np.where(kind_of_missing == _NEVER_MISSING, thresholds >= 0, goes_left)
    none, no_leaf = np.full(leaves, np.nan), np.zeros(leaves, dtype=bool)
    return Tree(
        path=path,
        features=np.concatenate([np.where(is_set, -1, features), np.full(leaves, -1)]),
        thresholds=np.concatenate([thresholds, none]),
        left=child("left_child"),
        right=child("right_child"),
        missing_left=np.concatenate([goes_left & ~is_set, no_leaf]),
        counts=np.concatenate(
            [entries("internal_count", inner), entries("leaf_count", leaves)]
        ),
        values=np.concatenate(
            [entries("internal_value", inner), entries("leaf_value", leaves)]
        )[:, None],
        single=False,
        categories=_sets(lines, is_set, features, thresholds, nodes=inner + leaves),
    )


def _sets(
    lines: Mapping[str, str],
    is_set: NDArray[np.bool_],
    features: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    *,
    nodes: int,
) -> CategorySets | None:
    """Return the sets of categories that go left; None if there are none, or they cannot be read."""
    borders, numbers = (
        _numbers(lines.get(name, "")) for name in ("cat_boundaries", "cat_threshold")
    )
    if not is_set.any() or borders is None or numbers is None:
        return None
    borders = borders.astype(np.int64)
    lengths = np.diff(borders)
    which = np.nan_to_num(thresholds[is_set], nan=-1.0).astype(np.int64)
    fit = len(lengths) and (lengths >= 0).all() and borders[-1] == len(numbers)
    if not fit or which.min() < 0 or which.max() >= len(lengths):
        return None
    width = int(lengths.max()) * WORD
    if width > MOST_CATEGORIES:
        return None
    sets = np.zeros((len(lengths), width), dtype=bool)
    for row, (start, stop) in enumerate(pairwise(borders)):
        bits = numbers[start:stop].astype(np.uint32)
        unpacked = (bits[:, None] >> np.arange(WORD, dtype=np.uint32)) & 1
        sets[row, : unpacked.size] = unpacked.reshape(-1) > 0
    at = np.flatnonzero(is_set)
    columns, rows = np.full(nodes, -1), np.full(nodes, -1)
    columns[at], rows[at] = features[at], which
    return CategorySets(columns=columns, rows=rows, sets=sets)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, equals, words = line.partition("=")
        if equals and name.isidentifier():
            yield name, words


def _numbers(words: str) -> NDArray[np.float64] | None:
    parts = [part for part in _SEPARATORS.split(words) if part]
    try:
        return np.array([float(part) for part in parts]) if parts else None
    except ValueError:
        return None
