"""Read linear relations between columns from texts, as people write them."""

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Schema
from reticent.errors import InvalidInput

__all__ = ["Relation", "Sum", "put_in", "relations_in"]

Array = NDArray[np.float64]
QUOTED = re.compile(r"`([^`]+)`")
SINGLE_EQUALS = re.compile(r"(?<![<>=!])=(?!=)")
EPOCH = pd.Timestamp("1970-01-01")


@dataclass(frozen=True)
class Sum:
    """A weighted sum of columns and a number."""

    weights: Mapping[str, float]
    number: float = 0.0

    def plus(self, other: "Sum", times: float = 1.0) -> "Sum":
        names = dict.fromkeys([*self.weights, *other.weights])
        weights = {
            n: self.weights.get(n, 0.0) + times * other.weights.get(n, 0.0)
            for n in names
        }
        return Sum(
            {n: w for n, w in weights.items() if w != 0},
            self.number + times * other.number,
        )

    def times(self, factor: float) -> "Sum":
        return Sum({}).plus(self, factor)

    def of(self, frame: pd.DataFrame) -> Array:
        """Return its value in each row, NaN where a column is missing."""
        total = np.zeros(len(frame))
        for name, weight in self.weights.items():
            total = total + weight * frame[name].to_numpy(dtype=np.float64)
        return total + self.number

    def size_in(self, frame: pd.DataFrame) -> Array:
        """Return how large the numbers are that it adds up, at least 1."""
        total = np.full(len(frame), max(abs(self.number), 1.0))
        for name, weight in self.weights.items():
            values = weight * frame[name].to_numpy(dtype=np.float64)
            total = np.fmax(total, np.abs(values))
        return total


@dataclass(frozen=True)
class Relation:
    """A sum that is equal to 0, at most 0 or below 0.

    Parameters
    ----------
    value : Sum
        The sum.
    sign : str
        ``"="``, ``"<="`` or ``"<"``.
    alone : str or None
        The column that stands alone on a side of it.
    """

    value: Sum
    sign: str
    alone: str | None


def put_in(value: Sum, known: Mapping[str, Sum]) -> Sum:
    """Return a sum in which known columns are replaced by what they are."""
    for name in [n for n in value.weights if n in known]:
        weight = value.weights[name]
        rest = Sum({n: w for n, w in value.weights.items() if n != name}, value.number)
        value = rest.plus(known[name], weight)
    return value


def relations_in(text: str, schema: Schema) -> list[Relation]:
    """Return the relations that a text states; a chain such as ``0 <= a <= b`` has several.

    Raises
    ------
    InvalidInput
        If it is no linear relation, or names a column that is not there or holds categories.
    """
    quoted: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        name = f"quoted_{len(quoted)}_"
        quoted[name] = match.group(1)
        return name

    plain = SINGLE_EQUALS.sub("==", QUOTED.sub(placeholder, text))
    try:
        node = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    if not isinstance(node, ast.Compare):
        raise InvalidInput(
            f"the constraint {text!r} cannot be read; write it as 'a <= b', '0 <= a <= 10' or 'c = a + b', and names with spaces or hyphens in `backticks`."
        )
    sides = [node.left, *node.comparators]
    sums = [_sum_of(side, text, quoted, schema) for side in sides]
    found: list[Relation] = []
    for k, operator in enumerate(node.ops):
        left, right = sums[k], sums[k + 1]
        alone = _alone(left) or _alone(right)
        below = {ast.LtE: "<=", ast.Lt: "<", ast.Eq: "="}.get(type(operator))
        above = {ast.GtE: "<=", ast.Gt: "<"}.get(type(operator))
        if below is not None:
            found.append(Relation(left.plus(right, -1.0), below, alone))
        elif above is not None:
            found.append(Relation(right.plus(left, -1.0), above, alone))
        else:
            raise InvalidInput(
                f"the constraint {text!r} compares by something else than <, <=, =, >= or >; write it with one of these."
            )
    for relation in found:
        if not relation.value.weights:
            raise InvalidInput(
                f"the constraint {text!r} says nothing about any column; name one."
            )
    return found


def _alone(side: Sum) -> str | None:
    """Return the column that a side of a relation consists of, if it is a single one."""
    if len(side.weights) == 1 and side.number == 0:
        name, weight = next(iter(side.weights.items()))
        return name if weight == 1 else None
    return None


def _sum_of(
    node: ast.expr, text: str, quoted: Mapping[str, str], schema: Schema
) -> Sum:
    """Return an expression as a weighted sum of columns."""

    def of(part: ast.expr) -> Sum:
        return _sum_of(part, text, quoted, schema)

    match node:
        case ast.Name(id=name):
            return Sum({_column(quoted.get(name, name), text, schema): 1.0})
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number) if math.isfinite(number):
            return Sum({}, float(number))
        case ast.Constant(value=str() as date):
            return Sum({}, _days(date, text))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return of(operand).times(-1.0)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return of(left).plus(of(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return of(left).plus(of(right), -1.0)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = of(left), of(right)
            if not other.weights:
                return one.times(other.number)
            if not one.weights:
                return other.times(one.number)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            below = of(right)
            if not below.weights and below.number != 0:
                return of(left).times(1 / below.number)
    raise InvalidInput(
        f"the constraint {text!r} is more than sums of columns and numbers, which is all that can be kept; write it without products of columns, "
        "functions and words."
    )


def _days(date: str, text: str) -> float:
    try:
        moment = pd.Timestamp(date)
        return float((moment - EPOCH) / pd.Timedelta(days=1))
    except (ValueError, TypeError, OverflowError):
        raise InvalidInput(
            f"the constraint {text!r} has the text {date!r}, which is no date; write dates as '2020-01-31'."
        ) from None


def _column(name: str, text: str, schema: Schema) -> str:
    if name not in schema.columns:
        raise InvalidInput(
            f"the constraint {text!r} names {name!r}, but there is no such column; the columns are {', '.join(list(schema.columns)[:10])} (a name with "
            "spaces or hyphens stands in `backticks`)."
        )
    if schema.columns[name] == ColumnKind.CATEGORICAL:
        raise InvalidInput(
            f"the constraint {text!r} names {name!r}, which holds categories, but only numbers and dates can be compared; leave the constraint out."
        )
    return name
