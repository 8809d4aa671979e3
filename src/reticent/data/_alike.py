"""Lay the columns of a synthetic table beside those of the real one, by name and by kind; every difference is a finding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data._columns import features_of
from reticent.data._finding import Finding, Severity, quoted
from reticent.data._table import ColumnKind, Schema
from reticent.errors import InvalidTable

__all__ = ["OTHER", "Alike", "in_columns_of"]

OTHER = "(other)"  # what our generators write for categories that they do not list

# Decimal places that are looked at: beyond them, rounding errors of double precision begin for numbers of some millions.
MOST_DECIMALS = 8
# Share of cells that must have so few decimals: a handful of cells may be typing errors.
MOSTLY = 0.99
# Share of cells by which two tables must differ before it is called another rounding.
CLEARLY = 0.05


@dataclass(frozen=True, kw_only=True)
class Alike:
    """The rows of one table in the columns of another.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows, with the columns of the other table that both have.
    findings : tuple of Finding
        How the two tables differ, by column. No value stands in them.
    """

    frame: pd.DataFrame
    findings: tuple[Finding, ...]


def in_columns_of(
    frame: pd.DataFrame,
    features: pd.DataFrame,
    schema: Schema,
    *,
    not_judged: Sequence[str] = (),
) -> Alike:
    """Return the rows of a synthetic table in the columns of the real one, and how the two differ.

    Parameters
    ----------
    frame : pandas.DataFrame
        The synthetic rows, as they were read.
    features : pandas.DataFrame
        The real records, as in a :class:`reticent.data.Table`, with columns that the synthetic table has as well.
    schema : Schema
        What these columns hold.
    not_judged : sequence of str
        Columns of the synthetic table that are compared with nothing.

    Raises
    ------
    InvalidTable
        If a column holds what no table can.
    """
    findings, columns = [], {}
    if not_judged:
        findings.append(
            Finding(
                name="not_judged",
                severity=Severity.OPEN,
                text=f"the synthetic table has the columns {quoted(list(not_judged))}, which are compared with nothing, so nobody knows what they tell "
                "about people; take them out of what is released, or bring them in the real table.",
            )
        )
    other_type, unreadable = [], 0
    for name, kind in schema.columns.items():
        declared = Schema(
            columns={name: kind},
            missing=schema.missing,
            dates=tuple(d for d in schema.dates if d == name),
        )
        try:
            read = features_of(frame[[name]], declared, "the synthetic table").frame
            columns[name] = read[name]
        except InvalidTable:
            numbers = pd.to_numeric(frame[name], errors="coerce").astype(np.float64)
            columns[name] = numbers.where(np.isfinite(numbers)).reset_index(drop=True)
            unreadable += int(columns[name].isna().sum() - frame[name].isna().sum())
            other_type.append(name)
    if other_type:
        findings.append(
            Finding(
                name="other_type",
                severity=Severity.WARNING,
                text=f"the synthetic table holds other types than the real one in {quoted(other_type)}; {unreadable:,} of these cells are "
                "not comparable and count as missing. Write both tables alike.",
            )
        )
    alike = pd.DataFrame(columns)
    findings += _new_categories(alike, features, schema)
    findings += _other_rounding(alike, features, schema)
    return Alike(frame=alike, findings=tuple(findings))


def _new_categories(
    frame: pd.DataFrame, features: pd.DataFrame, schema: Schema
) -> list[Finding]:
    new: list[str] = []
    pooled: list[str] = []
    for name in schema.names(ColumnKind.CATEGORICAL):
        known = set(features[name].dropna().map(str))
        values = frame[name].dropna().map(str)
        invented = set(values) - known
        if invented:
            (pooled if invented == {OTHER} else new).append(name)
    findings = []
    if new:
        findings.append(
            Finding(
                name="new_categories",
                severity=Severity.WARNING,
                text=f"the synthetic table has categories that no real record has in {quoted(new)}: they are invented, or written in another "
                "way, and then no copy of a record can be recognised by them. Write both tables alike.",
            )
        )
    if pooled:
        findings.append(
            Finding(
                name="pooled_categories",
                severity=Severity.NOTE,
                text=f"rows of the synthetic table have {OTHER} in {quoted(pooled)}, as reticent synthesize writes categories that are too rare to "
                "be listed: no copy of a record can be recognised by these cells.",
            )
        )
    return findings


def _other_rounding(
    frame: pd.DataFrame, features: pd.DataFrame, schema: Schema
) -> list[Finding]:
    coarser, finer = [], []
    for name in schema.names(ColumnKind.NUMERIC):
        real, synthetic = _ending(features[name]), _ending(frame[name])
        usual, made = (int(np.argmax(shares >= MOSTLY)) for shares in (real, synthetic))
        # Some cells of either table may end otherwise by chance.
        if made > usual and synthetic[usual] < 1 - CLEARLY:
            finer.append(name)
        elif made < usual and real[made] < 1 - CLEARLY:
            coarser.append(name)
    findings = []
    if finer:
        findings.append(
            Finding(
                name="finer_numbers",
                severity=Severity.NOTE,
                text=f"the synthetic table has more decimals than the real one in {quoted(finer)}, so a user can tell that they are "
                "made up, and copies of records can be recognised by distance only.",
            )
        )
    if coarser:
        findings.append(
            Finding(
                name="coarser_numbers",
                severity=Severity.NOTE,
                text=f"the synthetic table is rounded in {quoted(coarser)}: fewer people can be recognised by an exact value.",
            )
        )
    return findings


def _ending(column: pd.Series) -> NDArray[np.float64]:
    """Return the share of cells that end after 0, 1, 2, ... decimals; 1 at the last place, which stands for any number of them."""
    values = column.dropna().to_numpy(np.float64)
    shares = np.ones(MOST_DECIMALS + 2)
    if len(values):
        for decimals in range(MOST_DECIMALS + 1):
            shares[decimals] = np.mean(np.round(values, decimals) == values)
    return shares
