r"""Constraints between the columns of a synthetic table, kept after its rows were drawn.

A constraint is a linear relation that its owner knows to hold, such as ``diastolic < systolic``, ``0 <= age <= 120`` or
``total = rent + food``. Keeping it is a function of rows that were released already and of public knowledge, so it costs no privacy.

An equation computes one of its columns from the others. Rows that break an inequality are drawn again, which conditions the
distribution on the constraint; rows that are still missing then are moved to the nearest place that keeps it. A row in which a column of a constraint is missing keeps
that constraint.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linprog

from reticent.data import ColumnKind, Schema
from reticent.errors import InvalidInput
from reticent.train._linear import Sum, put_in, relations_in

__all__ = ["Constraints", "KeptRows", "parse_constraints"]

Range = tuple[float, float]
# Times that rows are drawn again, never more at once than are wanted in all: a constraint that one row in twelve keeps is met without moving any.
ROUNDS = 12
MOVES = 50  # passes over all inequalities; each one moves rows onto the ones that are still broken
TOLERANCE = 1e-9  # relative to the numbers in a constraint: sums of decimal fractions are not exact
STRICT = 1e-6  # of the size of the numbers: how far inside of a strict inequality a number is moved


@dataclass(frozen=True)
class _Equation:
    """One column as a sum of others."""

    text: str
    column: str
    value: Sum


@dataclass(frozen=True)
class _Inequality:
    """A sum that is at most 0, or below 0."""

    text: str
    value: Sum
    strict: bool

    def broken_in(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        value, size = self.value.of(frame), self.value.size_in(frame)
        with np.errstate(invalid="ignore"):
            return np.asarray(
                value >= 0 if self.strict else value > TOLERANCE * size, dtype=np.bool_
            )


@dataclass(frozen=True)
class KeptRows:
    """Rows that keep all constraints.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows.
    share : float
        Share of all rows that were drawn and kept the constraints as they were.
    moved : int
        Rows that had to be moved to keep them.
    """

    frame: pd.DataFrame
    share: float
    moved: int


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Linear relations between columns; made by :func:`parse_constraints`.

    Parameters
    ----------
    equations : tuple
        Columns that are computed, in an order in which they can be.
    inequalities : tuple
        What must hold of the columns that are not computed.
    """

    equations: tuple[_Equation, ...] = ()
    inequalities: tuple[_Inequality, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.equations or self.inequalities)

    def broken_in(self, frame: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which rows break a constraint."""
        broken = np.zeros(len(frame), dtype=np.bool_)
        for inequality in self.inequalities:
            broken |= inequality.broken_in(frame)
        for equation in self.equations:
            value = equation.value.of(frame)
            apart = np.abs(value - frame[equation.column].to_numpy(dtype=np.float64))
            with np.errstate(invalid="ignore"):
                broken |= apart > TOLERANCE * equation.value.size_in(frame)
        return broken

    def kept(
        self,
        draw: Callable[[int], pd.DataFrame],
        rows: int,
        *,
        rng: np.random.Generator,
    ) -> KeptRows:
        """Return rows that keep all constraints.

        Parameters
        ----------
        draw : callable
            From a number of rows to a frame of so many new ones.
        rows : int
            How many are wanted.
        rng : numpy.random.Generator
            Of their order, which protects nobody.
        """
        good, bad, drawn = [], [], 0
        have, ask = 0, rows
        for _ in range(1 + ROUNDS):
            frame = self.computed(draw(ask))
            broken = self.broken_in(frame)
            good.append(frame[~broken])
            bad.append(frame[broken])
            drawn += ask
            have += int((~broken).sum())
            if have >= rows:
                break
            # A tenth more than what is missing, at the share that was met so far.
            wanted = math.ceil(1.1 * (rows - have) * drawn / max(have, 1))
            ask = min(max(wanted, 1), rows)
        frame = pd.concat(good, ignore_index=True)[:rows]
        missing = rows - len(frame)
        if missing:
            moved = self.moved(pd.concat(bad, ignore_index=True)[:missing])
            frame = pd.concat([frame, moved], ignore_index=True)
        if len(bad[0]):
            # Rows that were drawn again or moved stand last; their place must not tell them from others.
            frame = frame.iloc[rng.permutation(rows)].reset_index(drop=True)
        return KeptRows(frame=frame, share=have / drawn, moved=missing)

    def computed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows whose equations hold."""
        if not self.equations:
            return frame
        frame = frame.copy()
        for equation in self.equations:
            frame[equation.column] = equation.value.of(frame)
        return frame

    def moved(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows moved to where they keep all constraints, each time by the shortest way.

        Raises
        ------
        InvalidInput
            If a row still breaks one after all passes.
        """
        frame = frame.copy()
        whole = {
            name
            for inequality in self.inequalities
            for name in inequality.value.weights
            if _is_whole(frame[name])
        }
        for _ in range(MOVES):
            if not self.broken_in(frame).any():
                break
            for inequality in self.inequalities:
                _move(frame, inequality, whole)
            frame = self.computed(frame)
        if self.broken_in(frame).any():
            texts = ", ".join(repr(i.text) for i in self.inequalities[:4])
            raise InvalidInput(
                f"no row that keeps the constraints {texts} was found, although one could exist; state them more simply, or leave one out. The noisy "
                "counts are kept, so that the same command with other constraints spends no further privacy."
            )
        return frame


def _is_whole(values: "pd.Series[float]") -> bool:
    numbers = values.dropna().to_numpy(dtype=np.float64)
    return bool((numbers == np.floor(numbers)).all())


def _move(frame: pd.DataFrame, inequality: _Inequality, whole: set[str]) -> None:
    """Project the rows that break an inequality onto it; whole numbers stay whole and go as far as they must."""
    rows = np.flatnonzero(inequality.broken_in(frame))
    if not len(rows):
        return
    part = frame.iloc[rows]
    weights = inequality.value.weights
    excess = inequality.value.of(part)
    if inequality.strict:
        excess = excess + STRICT * inequality.value.size_in(part)
    length = sum(weight**2 for weight in weights.values())
    for name, weight in weights.items():
        values = part[name].to_numpy(dtype=np.float64) - weight * excess / length
        if name in whole:
            values = np.floor(values + TOLERANCE) if weight > 0 else np.ceil(values - TOLERANCE)  # fmt: skip
        frame.iloc[rows, frame.columns.get_loc(name)] = values  # type: ignore[index]


def parse_constraints(
    texts: Sequence[str],
    schema: Schema,
    *,
    ranges: Mapping[str, Range] | None = None,
) -> Constraints:
    """Return constraints, given as texts about the columns of a table.

    Parameters
    ----------
    texts : sequence of str
        Such as ``"a <= b"``, ``"0 <= age <= 120"``, ``"total = rent + food"`` or ``"since >= '2020-01-01'"``. Names with other characters than letters, digits and
        underscores stand in backticks.
    schema : Schema
        The columns.
    ranges : mapping, optional
        Declared ranges of columns, inside which the constraints must be able to hold.

    Raises
    ------
    InvalidInput
        If a text is no constraint, names a column that is not there or holds no numbers, or the constraints contradict each other.

    Examples
    --------
    >>> schema = Schema(columns={"a": ColumnKind.NUMERIC, "b": ColumnKind.NUMERIC})
    >>> rules = parse_constraints(["a <= b"], schema)
    >>> rules.broken_in(pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 2.0]})).tolist()
    [False, True]
    """
    values: dict[str, Sum] = {}  # computed columns, as sums of columns that are not
    sums: list[tuple[str, Sum, bool]] = []
    equations: list[tuple[str, str]] = []
    for text in texts:
        for relation in relations_in(text, schema):
            if relation.sign != "=":
                sums.append((text, relation.value, relation.sign == "<"))
                continue
            value = put_in(relation.value, values)
            solved = _solved(text, value, relation.alone, schema)
            if solved is None:
                continue  # it follows from the others
            column, meaning = solved
            values = {c: put_in(v, {column: meaning}) for c, v in values.items()}
            values[column] = meaning
            equations.append((text, column))
    named = dict.fromkeys(
        n
        for _, value, _ in [*sums, *((t, values[c], False) for t, c in equations)]
        for n in value.weights
    )
    for name in [n for n in (*named, *values) if n in (ranges or {})]:
        low, high = (ranges or {})[name]
        words = f"{low:g} <= {name} <= {high:g}"
        sums.append((words, Sum({name: 1.0}, -high), False))
        sums.append((words, Sum({name: -1.0}, low), False))
    rules = Constraints(
        equations=tuple(_Equation(t, c, values[c]) for t, c in equations),
        inequalities=tuple(_Inequality(t, put_in(v, values), s) for t, v, s in sums),
    )
    _must_be_possible(rules, texts, schema)
    return rules


def _solved(
    text: str, value: Sum, alone: str | None, schema: Schema
) -> tuple[str, Sum] | None:
    """Return the column that an equation computes, and from what: the one that stands alone on a side, or else the last one that is named."""
    if not value.weights:
        if abs(value.number) <= TOLERANCE:
            return None
        raise InvalidInput(
            f"the constraint {text!r} contradicts the equations before it, so no row could be made; correct one of them."
        )
    named = list(value.weights)[::-1]
    order = [name for name in named if name == alone] + named
    free = [n for n in order if schema.columns[n] != ColumnKind.BOOLEAN]
    if not free:
        raise InvalidInput(
            f"the constraint {text!r} would compute a column of truth values, which only holds yes and no; leave it out."
        )
    column = free[0]
    rest = Sum({n: w for n, w in value.weights.items() if n != column}, value.number)
    return column, rest.times(-1 / value.weights[column])


def _must_be_possible(rules: Constraints, texts: Sequence[str], schema: Schema) -> None:
    """Refuse constraints that no row keeps: a linear programme looks for one, as far inside of strict inequalities as it can be."""
    limits = rules.inequalities
    names = list(dict.fromkeys(n for limit in limits for n in limit.value.weights))
    if not limits:
        return
    truth = (0.0, 1.0)
    found = linprog(
        [*(0.0 for _ in names), -1.0],
        A_ub=[
            [*(limit.value.weights.get(n, 0.0) for n in names), float(limit.strict)]
            for limit in limits
        ],
        b_ub=[-limit.value.number for limit in limits],
        bounds=[
            *(
                truth if schema.columns[n] == ColumnKind.BOOLEAN else (None, None)
                for n in names
            ),
            truth,
        ],
    )
    strict = any(limit.strict for limit in limits)
    # 2: infeasible. The largest distance from strict inequalities, the last variable, must not be 0.
    touches = found.x is not None and found.x[-1] < TOLERANCE
    if found.status == 2 or (strict and touches):
        raise InvalidInput(
            f"the constraints {', '.join(map(repr, texts[:6]))} cannot hold together, or not inside the declared ranges, so no row could be made; correct one "
            "of them."
        )
