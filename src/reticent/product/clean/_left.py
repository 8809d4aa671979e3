"""Name what a product keeps of single people because it answers from it."""

from typing import Any

from reticent.product.clean._inside import Part
from reticent.product.clean._values import Notes

__all__ = ["note_what_is_left"]

# Attributes of fitted estimators that hold records: what they are, and why they must stay.
_RECORDS = {
    "support_vectors_": ("support vectors", "they are records, and it answers by the distance to them"),
    "_fit_X": ("stored neighbours", "it answers by the nearest of all records"),
    "X_train_": ("all records", "a Gaussian process answers by the distance to them"),
    "X_fit_": ("all records", "its kernel compares with each of them"),
    "X_": ("all records", "labels are spread over their graph"),
    "X_thresholds_": ("scores of single people", "they are the steps of an isotonic curve"),
}  # fmt: skip
# Classes that hold records under a name that elsewhere means something else.
_SAMPLES = {
    "Nystroem": ("components_", "a sample of the records", "its kernel compares with each of them"),
    "KernelDensity": ("tree_", "all records", "it answers by the distance to them"),
    "NearestNeighbors": ("_tree", "stored neighbours", "it answers by the nearest of all records"),
}  # fmt: skip
# Libraries whose trees are not changed, and those whose objects are cleaned or hold nothing of single people.
_AS_LEARNED = ("lightgbm", "catboost")
_READ = ("lightgbm",)  # of these, those whose trees the reader follows
_KNOWN = ("sklearn", "xgboost", "numpy", "scipy", "reticent", "builtins", "functools", "pandas", "collections", "ctypes")  # fmt: skip


def note_what_is_left(parts: list[Part], notes: Notes) -> None:
    """Note every part that keeps records, and every part of a library that is not known.

    Parameters
    ----------
    parts : list of Part
        The objects of the estimator.
    notes : Notes
        What is kept.
    """
    for part in parts:
        thing = part.thing
        attributes: dict[str, Any] = getattr(thing, "__dict__", {})
        name = type(thing).__name__
        held = [
            why for attribute, why in _RECORDS.items() if _filled(attributes, attribute)
        ]
        if name in _SAMPLES and _filled(attributes, _SAMPLES[name][0]):
            held.append(_SAMPLES[name][1:])
        for what, why in held:
            notes.keep(f"{what} of a {name}", why)
        library = type(thing).__module__.partition(".")[0]
        if library in _AS_LEARNED:
            notes.keep(
                f"the trees of a {type(thing).__module__}.{name}",
                f"reticent does not clean what {library} has learned: thresholds, counts and the ranges of columns stand in it",
                attacked=library in _READ,
            )
        elif library not in _KNOWN:
            notes.keep(
                f"a {type(thing).__module__}.{name}",
                f"reticent does not know how {library} keeps what it has learned",
            )


def _filled(attributes: dict[str, Any], name: str) -> bool:
    value = attributes.get(name)
    return value is not None and getattr(value, "size", 1) > 0
