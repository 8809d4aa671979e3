"""Clean a product: the verb, which puts the parts in order and checks what they did."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np

from reticent.data import Table
from reticent.errors import InvalidInput, OutputRefused
from reticent.product._fitted import FittedProduct
from reticent.product._module import ModuleProduct
from reticent.product._network import NetworkProduct
from reticent.product._protocols import Product
from reticent.product._regressor import FittedRegressor
from reticent.product.clean._boosters import clean_boosters, methods_of_boosters
from reticent.product.clean._digits import clean_digits, rounded_parts
from reticent.product.clean._inside import Part, parts_of, recorded
from reticent.product.clean._left import note_what_is_left
from reticent.product.clean._names import clean_encoder, clean_names, named_parts
from reticent.product.clean._trees import (
    clean_histograms,
    clean_trees,
    methods_of_trees,
)
from reticent.product.clean._values import (
    SMALLEST_GROUP,
    Cleaned,
    Notes,
    answer_change,
)
from reticent.product.contents import contents_of

__all__ = ["clean_product"]

# Attributes that training leaves behind, with one entry per member or word, and that no answer needs.
_LEFTOVERS = (
    "oob_decision_function_",
    "oob_prediction_",
    "stop_words_",
    "_sample_weight",
)
_PRIVATE = "reticent.train.private."


def clean_product(
    product: Product,
    members: Table | None,
    *,
    rng: np.random.Generator,
    smallest_group: int = SMALLEST_GROUP,
) -> Cleaned:
    """Return a product that answers members as before, and whose file holds less about them.

    - Thresholds of trees (scikit-learn, histogram-based gradient boosting, XGBoost) are drawn anew between the nearest values of members
      that reach the node. No member goes another way, so the trees answer all members the same, digit for digit; this is checked.
    - Arrays with an entry for each member are dropped where all members are answered the same without them.
    - Counts, impurities and gains of nodes, borders of bins, and what training left behind are dropped. Feature importances go with them.
    - Names that fewer than ``smallest_group`` members hold are withheld from encoders and vocabularies that let unknown names pass. Members with
      such a name are then answered as if it were unknown, unless it shared a column with other infrequent names already.
    - Quantiles, borders, medians, minima and maxima are rounded to three digits of their column's spread.

    What a product needs to answer cannot be taken out, and is named: support vectors, stored neighbours, leaves with the target of one person.

    Parameters
    ----------
    product : Product
        The product, whose types were checked if it was loaded. It is not changed.
    members : Table or None
        The records that it was trained on. Without them gaps and rare names are unknown, and only what no answer needs is dropped.
    rng : Generator
        Draws thresholds. Seed it from the system's entropy, and keep no seed: whoever knows it can undo the shift.
    smallest_group : int
        A name that as many people hold is nobody's own.

    Raises
    ------
    InvalidInput
        If the product holds a model with a privacy guarantee. What is done here depends on the records, and no guarantee covers it.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from reticent.data import table_from_frame
    >>> import pandas as pd
    >>> X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=["a", "b", "c"])
    >>> table = table_from_frame(X, target=(X["a"] > X["b"]).to_numpy().astype(int))
    >>> tree = DecisionTreeClassifier(random_state=0).fit(table.features, table.target)
    >>> product = FittedProduct(estimator=tree, classes=table.classes)
    >>> cleaned = clean_product(product, table, rng=np.random.default_rng())
    >>> print(cleaned.changed)
    the answers on all 100 records are the same, digit for digit
    """
    notes = Notes()
    source = _Source(members=members, rng=rng, smallest_group=smallest_group)
    cleaned = _without(product, source, notes)
    if members is None:
        notes.keep(
            "names and values of few people",
            "which they are is known only from the members' records, and these were not given",
        )
        return Cleaned(product=cleaned, done=notes.done, kept=notes.kept, changed=None)
    _note_long_axes(cleaned, members, notes)
    return Cleaned(
        product=cleaned,
        done=notes.done,
        kept=notes.kept,
        changed=answer_change(product, cleaned, members.features),
    )


@dataclass(frozen=True, kw_only=True)
class _Source:
    """What cleaning takes from: the records, if they are known, and chance."""

    members: Table | None
    rng: np.random.Generator
    smallest_group: int


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A way to ask an estimator about the members."""

    product: FittedProduct | FittedRegressor
    members: Table

    def answers(self, estimator: Any) -> Any:
        return replace(self.product, estimator=estimator).outputs(self.members.features)


@singledispatch
def _without(product: Any, source: _Source, notes: Notes) -> Any:
    """Return a product without what no answer needs; a new kind of product registers its own way."""
    notes.keep(
        f"everything in a {type(product).__name__}",
        "reticent does not know what it is made of",
    )
    return product


@_without.register(NetworkProduct)
@_without.register(ModuleProduct)
def _clean_network(
    product: NetworkProduct | ModuleProduct, source: _Source, notes: Notes
) -> NetworkProduct | ModuleProduct:
    if source.members is None:
        return product
    encoder = clean_encoder(
        product.encoder, source.members, notes, source.smallest_group
    )
    return replace(product, encoder=encoder)


@_without.register(FittedProduct)
@_without.register(FittedRegressor)
def _clean_fitted(
    product: FittedProduct | FittedRegressor, source: _Source, notes: Notes
) -> FittedProduct | FittedRegressor:
    members, rng, smallest_group = source.members, source.rng, source.smallest_group
    try:
        estimator = copy.deepcopy(product.estimator)
    except Exception as error:  # an estimator of the user's own may raise anything
        name = type(product.estimator).__name__
        notes.keep(f"everything in a {name}", f"it cannot be copied ({type(error).__name__})")  # fmt: skip
        return product
    parts = parts_of(estimator)
    _refuse_private(parts)
    _drop_leftovers(parts, notes)
    note_what_is_left(parts, notes)
    if members is None:
        _clean_all_trees(parts, None, notes, rng)
        return replace(product, estimator=estimator)
    asked = _Asked(product=product, members=members)
    _drop_lists(estimator, parts, asked, notes)
    prepares = [(t, "transform") for t in (*named_parts(parts), *rounded_parts(parts))]
    if prepares:
        with recorded(prepares) as inputs:
            asked.answers(estimator)
        clean_names(parts, inputs, members.units, notes, smallest_group=smallest_group, rng=rng)  # fmt: skip
        clean_digits(parts, inputs, members.units, notes, smallest_group=smallest_group, rng=rng)  # fmt: skip
    methods = [*methods_of_trees(parts), *methods_of_boosters(parts)]
    if methods:
        estimator = _with_moved_thresholds(estimator, methods, asked, notes, rng)
    return replace(product, estimator=estimator)


def _with_moved_thresholds(
    estimator: Any,
    methods: list[tuple[Any, str]],
    asked: _Asked,
    notes: Notes,
    rng: np.random.Generator,
) -> Any:
    """Return the estimator with cleaned trees; as it was if that changed any answer on a member."""
    with recorded(methods) as inputs:
        before = asked.answers(estimator)
    untouched = copy.deepcopy(estimator)
    parts, trial = parts_of(estimator), Notes()
    _clean_all_trees(parts, inputs, trial, rng)
    if np.array_equal(before, asked.answers(estimator)):
        notes.add(trial)
        return estimator
    notes.keep(
        "thresholds of trees",
        "moving them inside their gaps changed answers on members, so they were left as they were",
        attacked=True,
    )
    return untouched


def _clean_all_trees(
    parts: list[Part],
    inputs: Callable[[Any], list[Any]] | None,
    notes: Notes,
    rng: np.random.Generator,
) -> None:
    clean_trees(parts, inputs, notes, rng=rng)
    clean_histograms(parts, inputs, notes, rng=rng)
    clean_boosters(parts, inputs, notes, rng=rng)


def _refuse_private(parts: list[Part]) -> None:
    for part in parts:
        kind = type(part.thing)
        if kind.__module__.startswith(_PRIVATE) and hasattr(part.thing, "guarantee_"):
            raise InvalidInput(
                f"the product holds a {kind.__name__}, which has a privacy guarantee; cleaning looks at the records again, which that guarantee "
                "does not cover, so release the product as it is."
            )


def _drop_leftovers(parts: list[Part], notes: Notes) -> None:
    for part in parts:
        attributes = getattr(part.thing, "__dict__", {})
        for name in _LEFTOVERS:
            if attributes.get(name) is not None:
                delattr(part.thing, name)
                notes.did("arrays of the training dropped that no answer needs", 1)


def _drop_lists(estimator: Any, parts: list[Part], asked: _Asked, notes: Notes) -> None:
    """Drop every array and list with an entry for each member, or for each person, without which all members are answered the same."""
    lengths = _lengths(asked.members)
    before = None
    for part in parts:
        attributes = getattr(part.thing, "__dict__", {})
        for name, value in [*attributes.items()]:
            shape = getattr(value, "shape", None)
            if shape is None and isinstance(value, list | tuple):
                shape = (len(value),)
            if not isinstance(shape, tuple) or not lengths.intersection(shape):
                continue
            if before is None:
                before = asked.answers(estimator)
            try:
                delattr(part.thing, name)
                same = np.array_equal(before, asked.answers(estimator))
            except Exception:  # a stranger's estimator that needs it may raise anything
                same = False
            if same:
                notes.did("arrays with an entry for each member dropped that no answer needs", 1)  # fmt: skip
            else:
                attributes[name] = value


def _lengths(members: Table) -> set[int]:
    return {len(members), len(np.unique(members.units))}


def _note_long_axes(product: Product, members: Table, notes: Notes) -> None:
    """Note arrays with one entry per member, or per person, that are still in the file."""
    people = len(members)
    try:
        places = contents_of(product).with_axis(*_lengths(members))
    except OutputRefused as error:
        notes.keep("what the product's file holds", f"it has none ({error})")
        return
    if places:
        notes.keep(
            f"arrays with an axis of {people:,} entries, as many as there are members, at {', '.join(places)}",
            "the product needs them to answer, or reticent does not know them",
        )
