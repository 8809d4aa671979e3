"""Clean decision trees of scikit-learn: thresholds moved inside their gaps, and nothing kept that no answer needs."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import (
    BaseHistGradientBoosting,
)
from sklearn.tree import BaseDecisionTree, DecisionTreeRegressor

from reticent.product.clean._gaps import Splits, moved
from reticent.product.clean._inside import Part, as_matrix
from reticent.product.clean._values import Notes

__all__ = ["clean_histograms", "clean_trees", "methods_of_trees"]

MOVED = "thresholds of trees moved at random inside their gap"
DROPPED = "nodes of trees without counts, impurities and gains"
NOT_ASKED = "no member was seen to reach it when the product answered, so the gaps of its thresholds are not known"
# Methods of a tree, or of what asks its trees in compiled code, whose first argument is what trees compare.
TREE_METHODS = ("predict", "predict_proba", "apply", "decision_path")
BOOSTING_METHOD = "_raw_predict"
HISTOGRAM_METHODS = ("_predict_iterations",)
# Leaves whose answer is the mean of one record tell its target.
ALONE = 1


def methods_of_trees(parts: list[Part]) -> list[tuple[Any, str]]:
    """Return the methods that must be recorded to know what every tree compares."""
    methods: list[tuple[Any, str]] = []
    for part in parts:
        thing = part.thing
        if isinstance(thing, BaseDecisionTree):
            methods += [(thing, name) for name in TREE_METHODS]
        elif isinstance(thing, BaseGradientBoosting):
            methods.append((thing, BOOSTING_METHOD))
        elif isinstance(thing, BaseHistGradientBoosting):
            methods += [(thing, name) for name in HISTOGRAM_METHODS]
    return methods


def clean_trees(
    parts: list[Part], inputs: Any, notes: Notes, *, rng: np.random.Generator
) -> None:
    """Clean every CART tree, in place.

    Parameters
    ----------
    parts : list of Part
        The objects of the estimator.
    inputs : callable or None
        From an object to what it was given when members were asked about; None if there are no members.
    notes : Notes
        What is done and kept.
    rng : Generator
        Draws the thresholds.
    """
    for part in parts:
        tree = part.thing
        if not isinstance(tree, BaseDecisionTree) or not hasattr(tree, "tree_"):
            continue
        asked: list[Any] = []
        if inputs is not None:
            boosting = isinstance(part.owner, BaseGradientBoosting)
            asked = inputs(part.owner) if boosting else inputs(tree)
        needs_counts = isinstance(part.owner, IsolationForest)
        if needs_counts:
            notes.keep(
                "the number of records in each node of an IsolationForest",
                "its answers are made of these counts",
                attacked=True,
            )
        # Boosted trees of a classifier hold corrections of probabilities, and no targets.
        says_targets = isinstance(tree, DecisionTreeRegressor) and not isinstance(
            part.owner, GradientBoostingClassifier | IsolationForest
        )
        _clean_tree(
            tree,
            _stacked(asked, np.float32),
            notes,
            rng,
            needs_counts=needs_counts,
            says_targets=says_targets,
        )


def _clean_tree(
    owner: Any,
    matrix: NDArray[Any] | None,
    notes: Notes,
    rng: np.random.Generator,
    *,
    needs_counts: bool,
    says_targets: bool,
) -> None:
    old = owner.tree_
    state = old.__getstate__()
    nodes, values = state["nodes"].copy(), state["values"].copy()
    leaf = nodes["left_child"] < 0
    if (~leaf).any():
        if matrix is None:
            notes.keep(
                f"thresholds of a {type(owner).__name__}", NOT_ASKED, attacked=True
            )
        else:
            splits = Splits(
                features=nodes["feature"].astype(np.int64),
                thresholds=nodes["threshold"].astype(np.float64),
                left=nodes["left_child"].astype(np.int64),
                right=nodes["right_child"].astype(np.int64),
                missing_left=nodes["missing_go_to_left"].astype(bool),
            )
            nodes["threshold"], changed = moved(splits, matrix, rng=rng)
            notes.did(MOVED, int(changed.sum()))
    alone = leaf & (nodes["n_node_samples"] <= ALONE)
    if says_targets and alone.any():
        notes.keep(
            f"leaves of a {type(owner).__name__} with the answer of one person",
            "they are the answers; train it with a larger min_samples_leaf",
            attacked=True,
        )
    if not needs_counts:
        notes.did(DROPPED, len(nodes))
        nodes["n_node_samples"] = 0
        # Not a number rather than 0, so that feature importances are unknown and not wrong.
        nodes["weighted_n_node_samples"] = np.nan
    nodes["impurity"] = 0.0
    values[~leaf] = 0.0
    new = type(old)(old.n_features, np.asarray(old.n_classes), old.n_outputs)
    new.__setstate__({**state, "nodes": nodes, "values": values})
    owner.tree_ = new


def clean_histograms(
    parts: list[Part], inputs: Any, notes: Notes, *, rng: np.random.Generator
) -> None:
    """Clean every histogram-based gradient boosting, in place: its trees, and the borders of its bins.

    Parameters
    ----------
    parts : list of Part
        The objects of the estimator.
    inputs : callable or None
        From an object to what it was given when members were asked about; None if there are no members.
    notes : Notes
        What is done and kept.
    rng : Generator
        Draws the thresholds.
    """
    for part in parts:
        model = part.thing
        if not isinstance(model, BaseHistGradientBoosting):
            continue
        if not hasattr(model, "_predictors"):
            continue
        name = type(model).__name__
        matrix = None
        if inputs is not None:
            matrix = _stacked(inputs(model), np.float64)
        if matrix is None:
            notes.keep(f"thresholds of a {name}", NOT_ASKED, attacked=True)
        bins = model._bin_mapper
        for predictor in (p for stage in model._predictors for p in stage):
            nodes = predictor.nodes.copy()
            leaf = nodes["is_leaf"] > 0
            if matrix is not None:
                splits = _histogram_splits(nodes, predictor, bins)
                nodes["num_threshold"], changed = moved(splits, matrix, rng=rng)
                notes.did(MOVED, int(changed.sum()))
            nodes["count"] = 0
            nodes["gain"] = 0.0
            nodes["bin_threshold"] = 0
            nodes["value"] = np.where(leaf, nodes["value"], 0.0)
            predictor.nodes = nodes
            notes.did(DROPPED, len(nodes))
        # The bins of categories say which categories are known; those of numbers are needed for training alone.
        kept = [
            borders if by_name else borders[:0]
            for borders, by_name in zip(
                bins.bin_thresholds_, bins.is_categorical_, strict=True
            )
        ]
        before = sum(len(borders) for borders in bins.bin_thresholds_)
        notes.did("borders of bins dropped", before - sum(map(len, kept)))
        bins.bin_thresholds_ = kept


def _histogram_splits(nodes: NDArray[Any], predictor: Any, bins: Any) -> Splits:
    leaf = nodes["is_leaf"] > 0
    by_name = (nodes["is_categorical"] > 0) & ~leaf
    features = nodes["feature_idx"].astype(np.int64)
    missing_left = nodes["missing_go_to_left"].astype(bool)
    known = {
        j: np.asarray(bins.bin_thresholds_[j]).astype(np.int64)
        for j in np.unique(features[by_name]).tolist()
    }

    def goes_left(node: NDArray[np.int64], x: NDArray[np.float64]) -> NDArray[np.bool_]:
        left = missing_left[node].copy()
        for at in np.unique(node).tolist():
            here = node == at
            with np.errstate(invalid="ignore"):
                codes = np.where(np.isfinite(x[here]), x[here], -1).astype(np.int64)
            inside = np.isin(codes, known[int(features[at])]) & (codes >= 0)
            bits = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][at]]
            codes = np.where(inside, codes, 0)
            chosen = (bits[codes // 32] >> (codes % 32).astype(np.uint32)) & 1 > 0
            left[here] = np.where(inside, chosen, left[here])
        return left

    return Splits(
        features=np.where(leaf, 0, features),
        thresholds=nodes["num_threshold"].astype(np.float64),
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        missing_left=missing_left,
        by_category=by_name,
        goes_left=goes_left,
    )


def _stacked(asked: list[Any], dtype: Any) -> NDArray[Any] | None:
    """Return all inputs below each other, in the precision in which they are compared; None if one cannot be used."""
    matrices = [as_matrix(X) for X in asked]
    if not matrices or any(matrix is None for matrix in matrices):
        return None
    with np.errstate(over="ignore"):
        parts = [np.asarray(m, dtype=dtype) for m in matrices if m is not None]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
