"""Clean boosters of XGBoost: their trees are rewritten as JSON and read again by the library."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.product.clean._gaps import Splits, moved
from reticent.product.clean._inside import Part, as_matrix
from reticent.product.clean._trees import DROPPED, MOVED, NOT_ASKED
from reticent.product.clean._values import Notes

__all__ = ["clean_boosters", "methods_of_boosters"]

METHODS = ("predict_proba", "predict")
# What training keeps in a node, and no answer needs.
UNUSED = ("loss_changes", "sum_hessian", "base_weights")


def methods_of_boosters(parts: list[Part]) -> list[tuple[Any, str]]:
    """Return the methods that must be recorded to know what every booster compares."""
    return [(p.thing, name) for p in parts if _is_model(p.thing) for name in METHODS]


def clean_boosters(
    parts: list[Part], inputs: Any, notes: Notes, *, rng: np.random.Generator
) -> None:
    """Clean every model of XGBoost, in place.

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
        if not _is_model(model) or vars(model).get("_Booster") is None:
            continue
        asked = [] if inputs is None else inputs(model)
        matrix = as_matrix(asked[0]) if asked else None
        if matrix is not None:
            with np.errstate(over="ignore"):
                matrix = matrix.astype(np.float32)
            missing = getattr(model, "missing", np.nan)
            if missing is not None and not np.isnan(missing):
                matrix = np.where(matrix == np.float32(missing), np.nan, matrix)
        model._Booster = _cleaned(model._Booster, matrix, notes, rng)


def _is_model(thing: Any) -> bool:
    """Whether something is XGBoost's, without importing XGBoost, which may not be installed."""
    return type(thing).__module__ == "xgboost.sklearn" and "_Booster" in vars(thing)


def _cleaned(
    booster: Any,
    matrix: NDArray[Any] | None,
    notes: Notes,
    rng: np.random.Generator,
) -> Any:
    content = json.loads(booster.save_raw("json"))
    forest = content["learner"]["gradient_booster"]
    forest = forest.get("gbtree", forest)  # inside a dart
    trees = forest.get("model", {}).get("trees", [])
    if not trees:
        return booster
    plain = all(_is_plain(tree) for tree in trees)
    if not plain or matrix is None:
        why = (
            NOT_ASKED
            if plain
            else "it compares sets of categories or answers several targets"
        )
        notes.keep("thresholds of an XGBoost booster", why, attacked=True)
    for tree in trees:
        if plain and matrix is not None:
            _move(tree, matrix, notes, rng)
        if plain:
            for name in UNUSED:
                tree[name] = [0.0] * len(tree["left_children"])
            notes.did(DROPPED, len(tree["left_children"]))
    new = type(booster)()
    new.load_model(bytearray(json.dumps(content).encode()))
    new.load_config(booster.save_config())
    return new


def _is_plain(tree: Mapping[str, Any]) -> bool:
    single = str(tree["tree_param"].get("size_leaf_vector", "1")) in ("0", "1")
    return single and not any(tree.get("split_type", ()))


def _move(
    tree: dict[str, Any],
    matrix: NDArray[Any],
    notes: Notes,
    rng: np.random.Generator,
) -> None:
    left = np.asarray(tree["left_children"], dtype=np.int64)
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32)
    splits = Splits(
        features=np.where(left < 0, 0, np.asarray(tree["split_indices"], dtype=np.int64)),
        thresholds=conditions.astype(np.float64),
        left=left,
        right=np.asarray(tree["right_children"], dtype=np.int64),
        missing_left=np.asarray(tree["default_left"]).astype(bool),
        strict=True,
    )  # fmt: skip
    thresholds, changed = moved(splits, matrix, rng=rng)
    tree["split_conditions"] = thresholds.tolist()
    notes.did(MOVED, int(changed.sum()))
