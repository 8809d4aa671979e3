"""Recognise decision trees by the names of their arrays, whatever object they stand in."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.product.contents._values import CategorySets, NamedArray, Tree

__all__ = [
    "BOOSTER_TREE",
    "by_column",
    "tree_of_booster",
    "tree_of_nodes",
    "with_own_columns",
]

# Keys by which a tree of an XGBoost booster is recognised.
BOOSTER_TREE = frozenset(
    {"left_children", "right_children", "split_indices", "split_conditions"}
)
_TREE = frozenset({"left_child", "right_child", "feature", "threshold"})
_HISTOGRAM_TREE = frozenset({"left", "right", "feature_idx", "num_threshold"})
# One of the estimators of a bag in a path, and what may stand between it and the nodes of a tree without changing the columns.
_MEMBER = re.compile(r"estimators_\[(\d+)\]")
_BELOW = re.compile(r"(?:\.(?:estimators_|_predictors)(?:\[\d+\])+|\.tree_)*\.nodes")
# A sum of so many shares may differ from 1 by this much.
ROUNDING = 1e-6


def tree_of_nodes(
    path: str,
    nodes: NDArray[Any],
    values: NDArray[Any] | None,
    sets: NDArray[Any] | None = None,
) -> Tree | None:
    """Return the tree of scikit-learn that a structured array holds; None if it holds none.

    Parameters
    ----------
    path : str
        Where it stands.
    nodes : structured array
        One entry per node.
    values : array or None
        What each node answers, if that stands in an array of its own.
    sets : array or None
        Sets of categories that nodes compare, one row of bits per set.

    Raises
    ------
    InvalidInput
        If the nodes do not form a tree.
    """
    names = frozenset(nodes.dtype.names or ())
    if names >= _TREE and values is not None:
        return _tree(path, nodes, values)
    if names >= _HISTOGRAM_TREE:
        return _histogram_tree(path, nodes, sets)
    return None


def _tree(path: str, nodes: NDArray[Any], values: NDArray[Any]) -> Tree:
    leaf = nodes["left_child"] < 0
    answers = values.reshape(len(nodes), -1).astype(np.float64)
    sums = answers.sum(axis=1)
    counts = _field(nodes, "weighted_n_node_samples")
    several = values.ndim == 3 and values.shape[1] == 1 and values.shape[2] > 1
    # Before scikit-learn 1.3 the values of classes were weighted counts, and not shares.
    if several and np.allclose(sums, counts, rtol=ROUNDING) and (counts > 0).all():
        answers, sums = answers / counts[:, None], np.ones(len(nodes))
    shares = several and bool(np.allclose(sums, 1, atol=ROUNDING))
    if "missing_go_to_left" in (nodes.dtype.names or ()):
        missing_left = nodes["missing_go_to_left"].astype(bool)
    else:
        missing_left = np.zeros(len(nodes), dtype=bool)
    return Tree(
        path=path,
        features=np.where(leaf, -1, nodes["feature"]).astype(np.int64),
        thresholds=nodes["threshold"].astype(np.float64),
        left=_children(nodes["left_child"], leaf),
        right=_children(nodes["right_child"], leaf),
        missing_left=missing_left,
        counts=counts,
        values=answers,
        shares=shares and bool((answers >= 0).all()),
    )


def _histogram_tree(path: str, nodes: NDArray[Any], sets: NDArray[Any] | None) -> Tree:
    leaf = _field(nodes, "is_leaf") > 0
    categorical = _field(nodes, "is_categorical") > 0
    return Tree(
        path=path,
        features=np.where(leaf | categorical, -1, nodes["feature_idx"]).astype(np.int64),
        thresholds=nodes["num_threshold"].astype(np.float64),
        left=_children(nodes["left"], leaf),
        right=_children(nodes["right"], leaf),
        missing_left=_field(nodes, "missing_go_to_left") > 0,
        counts=_field(nodes, "count"),
        values=_field(nodes, "value")[:, None],
        single=False,
        categories=_category_sets(nodes, ~leaf & categorical, sets),
    )  # fmt: skip


def _category_sets(
    nodes: NDArray[Any], is_set: NDArray[np.bool_], bits: NDArray[Any] | None
) -> CategorySets | None:
    """Return the sets that nodes compare, written as rows of 32-bit numbers; None if they cannot be read."""
    if not is_set.any() or bits is None or bits.ndim != 2 or bits.dtype.kind != "u":
        return None
    # The lowest bit of the first number is category 0, on every machine.
    unpacked = bits.astype("<u4").view(np.uint8)
    sets = np.unpackbits(unpacked, axis=1, bitorder="little").astype(bool)
    rows = np.nan_to_num(_field(nodes, "bitset_idx"), nan=-1.0).astype(np.int64)
    return CategorySets(
        columns=np.where(is_set, nodes["feature_idx"], -1).astype(np.int64),
        rows=np.where(is_set, rows, -1),
        sets=sets,
    )


def tree_of_booster(path: str, content: Mapping[str, Any]) -> Tree:
    """Return a tree of an XGBoost booster.

    It says the sum of second derivatives instead of the number of records. They are the same for squared errors, where all
    sums are whole numbers; for other losses the number is unknown.

    Raises
    ------
    InvalidInput
        If the nodes do not form a tree.
    """
    left, right = (
        np.asarray(content[name]).astype(np.int64)
        for name in ("left_children", "right_children")
    )
    leaf, nodes = left < 0, len(left)

    def entries(name: str) -> NDArray[np.float64]:
        values = np.asarray(content.get(name, ()), dtype=np.float64)
        return values if values.shape == (nodes,) else np.full(nodes, np.nan)

    thresholds = entries("split_conditions")
    sums = entries("sum_hessian")
    whole = bool((np.isfinite(sums) & (sums == np.round(sums))).all())
    categorical = entries("split_type") == 1
    features = np.nan_to_num(entries("split_indices"), nan=-1.0).astype(np.int64)
    return Tree(
        path=path,
        features=np.where(leaf | categorical, -1, features),
        thresholds=thresholds,
        left=_children(left, leaf),
        right=_children(right, leaf),
        missing_left=entries("default_left") > 0,
        counts=sums if whole else np.full(nodes, np.nan),
        # In leaves the threshold's place holds the answer.
        values=np.where(leaf, thresholds, entries("base_weights"))[:, None],
        strict=True,
    )


def with_own_columns(
    trees: list[Tree], arrays: Mapping[str, NDArray[Any]]
) -> tuple[list[Tree], list[str]]:
    """Return trees of bags that see some of the columns with the numbers of these columns, and the paths of those that cannot be told.

    A bag of scikit-learn keeps beside ``estimators_[k]`` which columns that one was given, ``estimators_features_[k]``. Where something else
    stands between the bag and its trees, such as a step that scales, the columns of the trees are those after that step.

    Parameters
    ----------
    trees : list of Tree
        The trees.
    arrays : mapping of str to array
        The arrays of the file, by their paths.
    """
    mapped, lost = [], []
    for tree in trees:
        own = tree
        for found in reversed(list(_MEMBER.finditer(tree.path))):
            columns = arrays.get(
                f"{tree.path[: found.start()]}estimators_features_[{found[1]}]"
            )
            if columns is None or _is_all(columns):
                continue
            if not _BELOW.fullmatch(tree.path[found.end() :]):
                lost.append(tree.path)
                break
            if columns.ndim != 1 or columns.dtype.kind not in "iu" or own.width > len(columns):  # fmt: skip
                lost.append(tree.path)
                break
            own = _renumbered(own, columns.astype(np.int64))
        mapped.append(own)
    return mapped, lost


def _is_all(columns: NDArray[Any]) -> bool:
    return columns.ndim == 1 and np.array_equal(columns, np.arange(len(columns)))


def _renumbered(tree: Tree, columns: NDArray[np.int64]) -> Tree:
    def own(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(numbers >= 0, columns[numbers.clip(0)], -1)

    sets = tree.categories
    if sets is not None:
        sets = replace(sets, columns=own(sets.columns))
    return replace(tree, features=own(tree.features), categories=sets)


def by_column(trees: list[Tree]) -> list[NamedArray]:
    """Return the thresholds of trees, one array per place and column, and what their leaves hold instead.

    A threshold says something about the values of its own column alone.
    """
    parts: dict[str, list[NDArray[np.float64]]] = {}
    for tree in trees:
        for feature in np.unique(tree.features):
            column = "leaves" if feature < 0 else str(feature)
            place = f"{tree.place}.thresholds#{column}"
            chosen = tree.thresholds[tree.features == feature]
            parts.setdefault(place, []).append(chosen)
    return [
        NamedArray(path=place, values=np.concatenate(values))
        for place, values in parts.items()
    ]


def _children(nodes: NDArray[Any], leaf: NDArray[np.bool_]) -> NDArray[np.int64]:
    # Unsigned numbers of a damaged file may be too large; as 0 they are refused, since the root is nobody's child.
    numbers = np.where(nodes < len(nodes), nodes, 0).astype(np.int64)
    return np.asarray(np.where(leaf, -1, numbers))


def _field(nodes: NDArray[Any], name: str) -> NDArray[np.float64]:
    if name not in (nodes.dtype.names or ()):
        return np.full(len(nodes), np.nan)
    return np.asarray(nodes[name], dtype=np.float64)
