"""Withhold names that few people hold from encoders and vocabularies."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from reticent.data import Table
from reticent.product._encode import Encoder
from reticent.product.clean._inside import Part
from reticent.product.clean._values import Notes

__all__ = ["clean_encoder", "clean_names", "named_parts"]

WITHHELD = "names that fewer than {} members hold withheld"
GROUPED = "infrequent names withheld that share a column"
# Ways in which scikit-learn lets an unknown name pass; the others refuse it.
_PASS = ("ignore", "infrequent_if_exist", "warn", "use_encoded_value")
# Of those, the ways that treat an unknown name like an infrequent one.
_JOIN = ("infrequent_if_exist", "warn")
_MISSING = "(missing)"  # how a network's encoder names a missing value

Inputs = Callable[[Any], list[Any]]


def named_parts(parts: list[Part]) -> list[Any]:
    """Return the encoders and vectorizers that have learned names from records."""
    return [
        part.thing
        for part in parts
        if (
            isinstance(part.thing, OneHotEncoder | OrdinalEncoder | TargetEncoder)
            and isinstance(part.thing.categories, str)
            and hasattr(part.thing, "categories_")
        )
        or (
            isinstance(part.thing, CountVectorizer)
            and hasattr(part.thing, "vocabulary_")
            and not getattr(part.thing, "fixed_vocabulary_", False)
        )
    ]


def clean_names(
    parts: list[Part],
    inputs: Inputs,
    people: NDArray[np.int64],
    notes: Notes,
    *,
    smallest_group: int,
    rng: np.random.Generator,
) -> None:
    """Withhold rare names from every encoder and vectorizer that lets unknown names pass, in place.

    Names that were declared, and not learned from records, stay.

    Parameters
    ----------
    parts : list of Part
        The objects of the estimator.
    inputs : callable
        From an object to what it was given when members were asked about.
    people : array of int
        The person each member's record belongs to.
    notes : Notes
        What is done and kept.
    smallest_group : int
        A name that as many people hold is nobody's own.
    rng : Generator
        Draws what stands in place of rare numbers.
    """
    for thing in named_parts(parts):
        name = type(thing).__name__
        asked = inputs(thing)
        if not asked:
            notes.keep(f"names in a {name}", "it was not used when members were asked about, so it is not known who holds them")  # fmt: skip
        elif isinstance(thing, CountVectorizer):
            _clean_vocabulary(thing, asked[0], people, notes, smallest_group)
        else:
            holders = [_holders(c, people) for c in _columns(asked[0])]
            rare = [
                np.array([_is_rare(c, held, smallest_group) for c in categories], dtype=bool)
                for categories, held in zip(thing.categories_, holders, strict=True)
            ]  # fmt: skip
            if isinstance(thing, TargetEncoder):
                _clean_targets(thing, rare, notes, smallest_group)
            elif thing.handle_unknown in _PASS:
                _clean_categories(thing, rare, notes, smallest_group, rng)
            elif any(mask.any() for mask in rare):
                count = sum(int(mask.sum()) for mask in rare)
                notes.keep(
                    f"{count:,} names in a {name} that fewer than {smallest_group} members hold",
                    f"with handle_unknown={thing.handle_unknown!r} it refuses records whose name it does not know",
                )


def _clean_categories(
    encoder: Any,
    rare: list[NDArray[np.bool_]],
    notes: Notes,
    smallest_group: int,
    rng: np.random.Generator,
) -> None:
    categories = list(encoder.categories_)
    for at, mask in enumerate(rare):
        chosen = mask.copy()
        infrequent = _infrequent(encoder, at)
        if infrequent is not None and encoder.handle_unknown in _JOIN:
            # Unknown names go to the same column, so that none of these needs to be known.
            grouped = np.zeros(len(mask), dtype=bool)
            grouped[infrequent] = True
            notes.did(GROUPED, int(grouped.sum()))
            if getattr(encoder, "drop", None) is None and not pd.isna(categories[at]).any():  # fmt: skip
                frequent = categories[at][~grouped]
                categories[at] = _with_one_more(frequent)
                # Where infrequent names stood among the others would tell what they begin with.
                encoder._infrequent_indices[at] = np.array([len(frequent)])
                mapping = np.arange(len(frequent) + 1)
                encoder._default_to_infrequent_mappings[at] = mapping
                chosen = np.append(mask[~grouped], False)
            else:
                categories[at] = _withheld(categories[at], grouped, rng)
                chosen = mask & ~grouped
        notes.did(WITHHELD.format(smallest_group), int(chosen.sum()))
        categories[at] = _withheld(categories[at], chosen, rng)
    encoder.categories_ = categories


def _with_one_more(categories: NDArray[Any]) -> NDArray[Any]:
    """Return categories with one behind them that nobody has."""
    if categories.dtype.kind in "OUS":
        return np.array([*categories, "(withheld)"], dtype=object)
    return np.append(categories.astype(np.float64), np.inf)


def _infrequent(encoder: Any, at: int) -> NDArray[np.int64] | None:
    indices = getattr(encoder, "_infrequent_indices", None)
    return None if indices is None else indices[at]


def _withheld(
    categories: NDArray[Any], chosen: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[Any]:
    """Return categories with other names, or other numbers in the same order, in the chosen places."""
    if not chosen.any():
        return categories
    if categories.dtype.kind in "OUS":
        names = categories.astype(object)
        names[chosen] = [f"(withheld {k})" for k in range(1, int(chosen.sum()) + 1)]
        return names
    numbers = categories.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    spread = float(np.ptp(finite)) or 1.0
    at = 0
    while at < len(numbers):
        if not chosen[at]:
            at += 1
            continue
        end = at
        while end < len(numbers) and chosen[end]:
            end += 1
        low = numbers[at - 1] if at else finite[0] - 0.1 * spread
        follows = end < len(numbers) and np.isfinite(numbers[end])
        high = numbers[end] if follows else finite[-1] + 0.1 * spread
        numbers[at:end] = np.sort(rng.uniform(low, high, end - at))
        at = end
    return numbers


def _clean_targets(
    encoder: TargetEncoder,
    rare: list[NDArray[np.bool_]],
    notes: Notes,
    smallest_group: int,
) -> None:
    """Leave out rare names together with the mean of their holders' targets; they then get the mean of all."""
    means = np.atleast_1d(encoder.target_mean_)
    per_column = len(encoder.encodings_) // len(encoder.categories_)
    categories, encodings = list(encoder.categories_), list(encoder.encodings_)
    for at, mask in enumerate(rare):
        notes.did(WITHHELD.format(smallest_group), int(mask.sum()))
        if not mask.any():
            continue
        kept = categories[at][~mask]
        alone = not len(kept)  # one must stay, and nobody has it
        if alone:
            textual = categories[at].dtype.kind in "OUS"
            kept = np.array(["(withheld)"], dtype=object) if textual else np.array([-np.inf])  # fmt: skip
        categories[at] = kept
        for k in range(per_column):
            mean = means[k % len(means)]
            old = encodings[at * per_column + k]
            new = np.array([mean]) if alone else old[~mask]
            encodings[at * per_column + k] = new
    encoder.categories_, encoder.encodings_ = categories, encodings


def _clean_vocabulary(
    vectorizer: CountVectorizer,
    texts: Any,
    people: NDArray[np.int64],
    notes: Notes,
    smallest_group: int,
) -> None:
    analyse = vectorizer.build_analyzer()
    holders: defaultdict[str, set[int]] = defaultdict(set)
    for text, person in zip(_texts(texts), people.tolist(), strict=True):
        for token in set(analyse(text)):
            if len(holders[token]) < smallest_group:
                holders[token].add(person)
    withheld = []
    vocabulary: dict[str, int] = {}
    for token, column in vectorizer.vocabulary_.items():
        if len(holders[token]) < smallest_group:
            withheld.append(column)
            vocabulary[f"(withheld {len(withheld)})"] = column
        else:
            vocabulary[token] = column
    vectorizer.vocabulary_ = vocabulary
    notes.did(WITHHELD.format(smallest_group), len(withheld))
    weighting = getattr(vectorizer, "_tfidf", None)
    idf = getattr(weighting, "idf_", None)
    if idf is not None and withheld:
        # How rare a word was says something of its holders, and a column that stays empty needs no weight.
        weights = np.array(idf)
        weights[withheld] = 1.0
        weighting.idf_ = weights  # type: ignore[union-attr]


def clean_encoder(
    encoder: Encoder, members: Table, notes: Notes, smallest_group: int
) -> Encoder:
    """Return a network's encoder without names that few members hold; these are then answered as unknown."""
    categories = []
    for name, known in encoder.categories:
        if name not in members.features:
            categories.append((name, known))
            continue
        column = members.features[name].fillna(_MISSING).astype(str).to_numpy()
        held = _holders(column, members.units)
        names, count = [], 0
        for category in known:
            rare = category != _MISSING and held.get(category, 0) < smallest_group
            count += rare
            names.append(f"(withheld {count})" if rare else category)
        notes.did(WITHHELD.format(smallest_group), count)
        categories.append((name, tuple(names)))
    return replace(encoder, categories=tuple(categories))


def _columns(X: Any) -> Iterable[NDArray[Any]]:
    if isinstance(X, pd.DataFrame):
        return [X.iloc[:, j].to_numpy() for j in range(X.shape[1])]
    matrix = np.asarray(X)
    return [matrix[:, j] for j in range(matrix.shape[1])]


def _texts(texts: Any) -> list[str]:
    return list(np.asarray(texts, dtype=object).ravel().tolist())


def _holders(column: NDArray[Any], people: NDArray[np.int64]) -> dict[Any, int]:
    """Return how many people hold each value of a column."""
    frame = pd.DataFrame({"value": column, "person": people}).drop_duplicates()
    counts: dict[Any, int] = frame.groupby("value")["person"].size().to_dict()
    return counts


def _is_rare(category: Any, holders: dict[Any, int], smallest_group: int) -> bool:
    if pd.isna(category):
        return False  # a missing value is no name
    return holders.get(category, 0) < smallest_group
