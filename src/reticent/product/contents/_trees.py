"""Recognise decision trees by the names of their arrays, whatever object they stand in."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.product.contents._values import NamedArray, Tree

__all__ = ["BOOSTER_TREE", "by_column", "tree_of_booster", "tree_of_nodes"]

# Keys by which a tree of an XGBoost booster is recognised.
BOOSTER_TREE = frozenset(
    {"left_children", "right_children", "split_indices", "split_conditions"}
)
_TREE = frozenset({"left_child", "right_child", "feature", "threshold"})
_HISTOGRAM_TREE = frozenset({"left", "right", "feature_idx", "num_threshold"})
# A sum of so many shares may differ from 1 by this much.
ROUNDING = 1e-6


def tree_of_nodes(
    path: str, nodes: NDArray[Any], values: NDArray[Any] | None
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

    Raises
    ------
    InvalidInput
        If the nodes do not form a tree.
    """
    names = frozenset(nodes.dtype.names or ())
    if names >= _TREE and values is not None:
        return _tree(path, nodes, values)
    if names >= _HISTOGRAM_TREE:
        return _histogram_tree(path, nodes)
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


def _histogram_tree(path: str, nodes: NDArray[Any]) -> Tree:
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
    )  # fmt: skip


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
