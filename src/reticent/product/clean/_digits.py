"""Cut the digits of numbers that are single people's values: quantiles, borders of bins, medians, minima and maxima."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
)

from reticent.data import number_of_people
from reticent.product.clean._inside import Part, as_matrix
from reticent.product.clean._values import Notes

__all__ = ["clean_digits", "rounded_parts", "steps_of"]

DIGITS = 3  # that are left, of the spread of the column
ROUNDED = "quantiles, borders, medians, minima and maxima rounded"

Steps = NDArray[np.float64]


def rounded_parts(parts: list[Part]) -> list[Any]:
    """Return the transformers that hold values of single people."""
    return [part.thing for part in parts if type(part.thing) in _ROUNDINGS]


def steps_of(matrix: NDArray[Any]) -> Steps:
    """Return to which multiple the numbers of each column are rounded; 0 if the column has no spread.

    The spread is the distance of the quartiles, which one extreme value does not widen; if it is 0, that of the ends.

    Examples
    --------
    >>> steps_of(np.column_stack([np.arange(101), np.zeros(101)])).tolist()
    [0.1, 0.0]
    """
    steps = np.zeros(matrix.shape[1])
    for j, column in enumerate(matrix.T.astype(np.float64)):
        values = column[np.isfinite(column)]
        if len(values):
            first, last = np.quantile(values, [0.25, 0.75])
            spread = (last - first) or np.ptp(values)
            if spread > 0:
                # A decimal literal, so that multiples have as few digits as they can.
                exponent = int(np.floor(np.log10(spread))) - (DIGITS - 1)
                steps[j] = float(f"1e{exponent}")
    return steps


def clean_digits(
    parts: list[Part],
    inputs: Callable[[Any], list[Any]],
    people: NDArray[np.int64],
    notes: Notes,
    *,
    smallest_group: int,
    rng: np.random.Generator,
) -> None:
    """Round what transformers keep of single people, in place.

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
        A transformer by quantiles keeps one for as many people, and not one for each.
    rng : Generator
        Draws the borders of bins.
    """
    for thing in rounded_parts(parts):
        asked = inputs(thing)
        matrix = as_matrix(asked[0]) if asked else None
        if matrix is None:
            continue
        if isinstance(thing, QuantileTransformer):
            most = max(2, number_of_people(people) // smallest_group)
            notes.did("quantiles dropped", _fewer_quantiles(thing, most))
        if isinstance(thing, KBinsDiscretizer):
            notes.did(
                "borders of bins moved at random inside their gap",
                _move_borders(thing, matrix, rng),
            )
        notes.did(ROUNDED, _ROUNDINGS[type(thing)](thing, steps_of(matrix)))


def _round(values: NDArray[Any], steps: Steps | float) -> NDArray[np.float64]:
    numbers, widths = np.asarray(values, dtype=np.float64), np.asarray(steps)
    coarse = np.where(widths > 0, widths, 1.0)
    return np.asarray(
        np.where(widths > 0, np.round(numbers / coarse) * coarse, numbers)
    )


def _fewer_quantiles(thing: QuantileTransformer, most: int) -> int:
    before = len(thing.references_)
    if before <= most or not hasattr(thing, "quantiles_"):
        return 0
    references = np.linspace(0, 1, most)
    thing.quantiles_ = np.column_stack(
        [np.interp(references, thing.references_, q) for q in thing.quantiles_.T]
    )
    thing.references_, thing.n_quantiles_ = references, most
    return int((before - most) * thing.quantiles_.shape[1])


def _quantiles(thing: QuantileTransformer, steps: Steps) -> int:
    thing.quantiles_ = _round(thing.quantiles_, steps)
    return int(thing.quantiles_.size)


def _move_borders(
    thing: KBinsDiscretizer, matrix: NDArray[Any], rng: np.random.Generator
) -> int:
    """Move every inner border between the nearest values of members, so that each stays in its bin."""
    count = 0
    for borders, column in zip(thing.bin_edges_, matrix.T.astype(np.float64), strict=True):  # fmt: skip
        values = np.unique(column[np.isfinite(column)])
        inner = borders[1:-1]
        # A value at the border lies in the upper bin.
        at = np.searchsorted(values, inner, side="left")
        between = (at > 0) & (at < len(values))
        low, high = values[at[between] - 1], values[at[between]]
        share = rng.random(len(low))
        drawn = np.clip(low * share + high * (1 - share), np.nextafter(low, high), high)
        # Several borders in one gap stay in order: the bins between them are empty.
        inner[between] = np.sort(drawn)
        count += int(between.sum())
    return count


def _outer_borders(thing: KBinsDiscretizer, steps: Steps) -> int:
    """Round the ends, which no answer needs."""
    for borders, step in zip(thing.bin_edges_, steps, strict=True):
        borders[[0, -1]] = _round(borders[[0, -1]], step)
    return 2 * len(steps)


def _median(thing: RobustScaler, steps: Steps) -> int:
    count = 0
    for name in ("center_", "scale_"):
        values = getattr(thing, name, None)
        if values is not None:
            rounded = _round(values, steps)
            setattr(thing, name, np.where(rounded == 0, values, rounded) if name == "scale_" else rounded)  # fmt: skip
            count += len(rounded)
    return count


def _fill(thing: SimpleImputer, steps: Steps) -> int:
    values = thing.statistics_
    if thing.strategy not in ("median", "most_frequent") or values.dtype.kind != "f":
        return 0
    if thing.strategy == "most_frequent" or len(values) != len(steps):
        return 0  # many have the most frequent value
    thing.statistics_ = _round(values, steps)
    return len(values)


def _ends(thing: MinMaxScaler, steps: Steps) -> int:
    spread = thing.data_max_ > thing.data_min_
    rounds = spread & (steps > 0)
    low = np.where(rounds, _round(thing.data_min_, steps), thing.data_min_)
    high = np.where(rounds, _round(thing.data_max_, steps), thing.data_max_)
    least, most = thing.feature_range
    width = high - low
    thing.scale_ = np.where(
        width > 0, (most - least) / np.where(width > 0, width, 1.0), thing.scale_
    )
    thing.data_min_, thing.data_max_, thing.data_range_ = low, high, width
    thing.min_ = least - low * thing.scale_
    return 2 * int(rounds.sum())


def _largest(thing: MaxAbsScaler, steps: Steps) -> int:
    rounded = _round(thing.max_abs_, steps)
    thing.max_abs_ = np.where(rounded > 0, rounded, thing.max_abs_)
    thing.scale_ = np.where(thing.max_abs_ > 0, thing.max_abs_, 1.0)
    return len(rounded)


_ROUNDINGS: dict[type, Callable[[Any, Steps], int]] = {
    KBinsDiscretizer: _outer_borders,
    MaxAbsScaler: _largest,
    MinMaxScaler: _ends,
    QuantileTransformer: _quantiles,
    RobustScaler: _median,
    SimpleImputer: _fill,
}
