r"""The values that columns take, for a private training: declared by the owner, or learned with noise.

To scale a number or to list the categories of a column is to look at the records; done without noise, it voids every
guarantee about them. A domain is either declared, from public knowledge about the columns, or learned from histograms
with normal noise, one count per record and column: all k histograms together move by :math:`\sqrt k` when a record is added
or removed. A category is listed only if its noisy count exceeds a threshold that a category of a single record passes
with a stated, tiny probability (Korolova et al., WWW 2009; this probability is part of the guarantee).
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidInput
from reticent.product import Encoder

__all__ = [
    "Domain",
    "declared_content",
    "learn_domain",
    "noisy_counts",
    "read_declared",
    "read_domain",
]

OCTAVES = range(-20, 41)  # powers of two that are told apart: from 1e-6 to 1e12
STEPS = 2  # cells of the histogram per octave: few, so that the count of each exceeds the noise
# Counts below this many standard deviations of the noise count as noise: a cell without records exceeds it once in 30,000.
HEARD = 4.0
MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class Domain:
    """What a network may know about columns before it sees a record.

    Parameters
    ----------
    numbers : tuple of (str, float, float)
        Numeric columns, each with centre and scale.
    categories : tuple of (str, tuple of str)
        Categorical columns, each with its known categories.
    unheard : tuple of str
        Columns whose values were too few to be learned through the noise.
    """

    numbers: tuple[tuple[str, float, float], ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]
    unheard: tuple[str, ...] = ()

    @property
    def encoder(self) -> Encoder:
        """The encoder that turns these columns into numbers."""
        return Encoder(
            numbers=tuple(name for name, _, _ in self.numbers),
            categories=self.categories,
        )

    def standardisation(
        self, encoder: Encoder | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the centre and scale of every input of an encoder; a category that the domain does not know is scaled down to 0."""
        encoder = encoder or self.encoder
        known = dict(self.categories)
        places = {name: (centre, scale) for name, centre, scale in self.numbers}
        pairs = [places[name] for name in encoder.numbers]
        for name, values in encoder.categories:
            pairs += [(0.0, 1.0 if v in known[name] else 1e30) for v in values]
        both = np.array(pairs, dtype=np.float32).reshape(-1, 2)
        return both[:, 0].copy(), both[:, 1].copy()


def declared_content(path: Path) -> Mapping[str, Any]:
    """Return everything that a domain in TOML declares.

    Raises
    ------
    InvalidInput
        If the file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(
            f"the domain {path} cannot be read ({error}); write it as TOML with tables [numbers] and [categories]."
        ) from error


def read_declared(
    path: Path, *, also: frozenset[str] = frozenset()
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what a domain in TOML declares of columns: the table ``[numbers]`` and the table ``[categories]``.

    Parameters
    ----------
    path : Path
        The file.
    also : frozenset of str
        Further keys that it may have.

    Raises
    ------
    InvalidInput
        If the file cannot be read or has anything else in it.
    """
    content = declared_content(path)
    unknown = set(content) - {"numbers", "categories"} - also
    if unknown:
        raise InvalidInput(
            f"the domain {path} has the unknown key {min(unknown)!r}; it has two tables, [numbers] and [categories]."
        )
    numbers, categories = content.get("numbers", {}), content.get("categories", {})
    if not isinstance(numbers, Mapping) or not isinstance(categories, Mapping):
        raise InvalidInput(
            f"the domain {path} needs tables, [numbers] and [categories], with one line per column."
        )
    return numbers, categories


def read_domain(path: Path | str, table: Table) -> Domain:
    """Read a declared domain from TOML: ``[numbers]`` with the lowest and highest values, ``[categories]`` with names.

    Parameters
    ----------
    path : path
        The file.
    table : Table
        The table whose columns the file must declare, all of them and no others; its records are not used.

    Raises
    ------
    InvalidInput
        If the file cannot be read or does not fit the columns.
    """
    path = Path(path)
    numbers, categories = read_declared(path)
    columns = _columns(table)
    declared = {*numbers, *categories}
    for name in (*columns[0], *columns[1]):
        if name not in declared:
            raise InvalidInput(
                f"the domain {path} does not declare the column {name!r}, and looking at its values would void the guarantee; add it."
            )
    for name in declared - {*columns[0], *columns[1]}:
        raise InvalidInput(
            f"the domain {path} declares the column {name!r}, which the table does not have; correct its name."
        )
    return Domain(
        numbers=tuple(
            (name, *_range(path, name, numbers.get(name))) for name in columns[0]
        ),
        categories=tuple(
            (name, _names(path, name, categories.get(name))) for name in columns[1]
        ),
    )


def learn_domain(
    table: Table,
    *,
    noise_multiplier: float,
    failure: float,
    generator: np.random.Generator,
) -> Domain:
    """Learn the domain of a table's columns from noisy histograms.

    Numbers are centred at their median and scaled by the distance between the 10 % and 90 % quantiles.

    Parameters
    ----------
    table : Table
        The table; the kinds of its columns are public, its records are not.
    noise_multiplier : float
        Standard deviation of the noise on counts divided by the sensitivity, which is the root of the number of columns.
    failure : float
        Probability that a category of a single record is listed, over all columns.
    generator : numpy.random.Generator
        Generator of the noise: a cryptographic one if the product may be released.
    """
    numeric, categorical = _columns(table)
    deviation = noise_multiplier * math.sqrt(max(len(numeric) + len(categorical), 1))
    each = failure / max(len(categorical), 1)
    threshold = 1 + deviation * float(-ndtri(each))
    unheard = []
    numbers = []
    for name in numeric:
        values = table.features[name].to_numpy(dtype=np.float64)
        place = _place(values, deviation, generator)
        if place is None:
            unheard.append(name)
        numbers.append((name, *(place or (0.0, 1.0))))
    categories = []
    for name in categorical:
        known = _listed(table.features[name], deviation, threshold, generator)
        if not known:
            unheard.append(name)
        categories.append((name, known))
    return Domain(
        numbers=tuple(numbers), categories=tuple(categories), unheard=tuple(unheard)
    )


def _columns(table: Table) -> tuple[list[str], list[str]]:
    schema = table.schema
    numeric = [*schema.names(ColumnKind.NUMERIC), *schema.names(ColumnKind.BOOLEAN)]
    return numeric, schema.names(ColumnKind.CATEGORICAL)


def _range(path: Path, name: str, pair: Any) -> tuple[float, float]:
    """Return the centre and scale of a declared range."""
    try:
        low, high = (float(x) for x in pair)
        fits = math.isfinite(low) and math.isfinite(high) and low < high
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise InvalidInput(
            f"the column {name!r} of the domain {path} is declared {pair!r}; a column of numbers needs its lowest and highest "
            "value, such as [0, 100]."
        )
    # A quarter of the range is about the standard deviation of values that fill it.
    return (low + high) / 2, (high - low) / 4


def _names(path: Path, name: str, known: Any) -> tuple[str, ...]:
    if not isinstance(known, list) or not known:
        raise InvalidInput(
            f"the column {name!r} of the domain {path} is declared {known!r}; a column of categories needs a list of names, "
            'such as ["no", "yes"].'
        )
    return tuple(sorted({str(value) for value in known}))


def noisy_counts(
    counts: NDArray[np.int64], deviation: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return integer counts with integer noise: on integers, rounding the noise is the same as rounding the sum."""
    noise: NDArray[np.float64] = np.rint(
        deviation * generator.standard_normal(len(counts))
    )
    return counts.astype(np.float64) + noise


def _place(
    values: NDArray[np.float64], deviation: float, generator: np.random.Generator
) -> tuple[float, float] | None:
    """Return the centre and scale of numbers from a noisy histogram on a public grid; None if no cell exceeds the noise."""
    edges = 2.0 ** np.arange(OCTAVES.start, OCTAVES.stop, 1 / STEPS)
    edges = np.concatenate([-edges[::-1], edges])
    cells = np.searchsorted(edges, values[np.isfinite(values)], side="right")
    counts = np.bincount(cells, minlength=len(edges) + 1)
    noisy = noisy_counts(counts, deviation, generator)
    noisy[noisy < HEARD * deviation] = 0
    if noisy.sum() <= 0:
        return None
    lower = np.concatenate([2 * edges[:1], edges])
    upper = np.concatenate([edges, 2 * edges[-1:]])
    share = np.concatenate([[0.0], np.cumsum(noisy) / noisy.sum()])

    def quantile(q: float) -> float:
        cell = int(np.searchsorted(share, q)) - 1
        part = (q - share[cell]) / (share[cell + 1] - share[cell])
        return float(lower[cell] + part * (upper[cell] - lower[cell]))

    low, middle, high = (quantile(q) for q in (0.1, 0.5, 0.9))
    spread = (high - low) / 2.56  # in standard deviations of a normal distribution
    filled = np.flatnonzero(noisy)
    if filled[-1] > filled[0]:
        # Where nearly all values are equal, the few others determine the scale.
        far = max(lower[filled[-1]] - middle, middle - upper[filled[0]])
        spread = max(spread, float(far) / 4)
    return middle, spread


def _listed(
    values: "pd.Series[Any]",
    deviation: float,
    threshold: float,
    generator: np.random.Generator,
) -> tuple[str, ...]:
    """Return the categories whose noisy counts pass the threshold."""
    names, counts = np.unique(
        values.fillna(MISSING).astype(str).to_numpy(dtype=object).astype(str),
        return_counts=True,
    )
    noisy = noisy_counts(counts, deviation, generator)
    return tuple(str(name) for name in names[noisy > threshold])
