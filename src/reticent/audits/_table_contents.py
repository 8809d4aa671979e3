"""What stands in a synthetic table as it stands in the real one: whole rows, and values that few people have."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import fisher_exact

from reticent.attack import FileCounts, FoundAt, count_file, search_file
from reticent.attack.reader import first_alone
from reticent.attack.synthetic import Tables
from reticent.attack.synthetic._counts import (
    hashed_rows,
    occurrences,
    unlike_all_others,
)
from reticent.evidence import (
    FileEvidence,
    FoundInFile,
    HeldOutFound,
    LoneRow,
    held_out_found,
    without_small_counts,
)
from reticent.product import OpenedFile
from reticent.run import stream

__all__ = [
    "PEAKED",
    "contents_of_table",
    "lone_row",
    "rare_in_columns",
    "seen_in_rows",
]

# How many times as many held-out rows may stand in the table of an honest generator and equal no member's as equal a member's and do not stand
# there. On Stroke, COMPAS, Cardio, Law School and Adult, each with its own values and in 4 and 8 bins, it was at most 1.21 (29 to 24) for tables of
# other people, where it is 1 but for chance; at most 1.14 for trees and adaptive pairs of MarginalGenerator at three levels of noise; and at most
# 0.88 for tables that emit what is common more often than people have it, because these emit less of what is rare.
PEAKED = 2.0
# Other people whom nobody resembles, from which on it is told that a member stands alone: coincidence then puts at most 1 % of them there.
FEWEST_OTHERS = 300
DIFFERENT = (
    0.05  # chance that auxiliary people who are like the others are not added to them
)
MISSES = 0.05  # chance that the largest share due to coincidence is understated


def contents_of_table(
    tables: Tables,
    tags: NDArray[np.bool_],
    units: NDArray[np.int64],
    *,
    smallest_group: int,
    beside: OpenedFile | None = None,
    seed: int = 0,
) -> FileEvidence:
    """Return how many members, and how many non-members, stand in a synthetic table by their row or by a rare value.

    Parameters
    ----------
    tables : Tables
        Records, synthetic and auxiliary table.
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    smallest_group : int
        A value of fewer people than this is rare.
    beside : OpenedFile or None
        What the table's file holds besides its cells, laid beside the same records.
    seed : int
        Of the audit: it draws as many synthetic rows as there are members where there are more.
    """
    names, unit_of_row = np.unique(units, return_inverse=True)
    is_member = np.zeros(len(names), dtype=bool)
    is_member[unit_of_row] = tags

    sizes = int(is_member.sum()), int((~is_member).sum())
    # Who the auxiliary rows are of is not known, so that they count as people only where everybody has one.
    further = len(tables.auxiliary) if len(names) == len(units) else 0

    def found(place: str, here: NDArray[np.bool_]) -> tuple[FoundAt, int]:
        """Return who of the people in question is found, and how many of the auxiliary ones."""
        # People and not rows: one row that is found tells on its person.
        weights = here[: len(tags)]
        person = np.bincount(unit_of_row, weights=weights, minlength=len(names)) > 0
        at = FoundAt(
            place=place,
            stage="",
            members=int((person & is_member).sum()),
            nonmembers=int((person & ~is_member).sum()),
        )
        return at, int(here[len(tags) :].sum())

    codes = np.concatenate([tables.records.codes, tables.auxiliary.codes])
    stands = occurrences(_hashes(codes), _hashes(tables.synthetic.codes)) > 0
    is_copied = stands[: len(tags)]
    alone = unlike_all_others(codes)
    # Rows of people whom somebody resembles are found by coincidence, and copies of others would drown among them.
    whole = [
        found("equal rows", stands),
        found("equal rows of people whom nobody resembles", stands & alone),
    ]
    by_column = rare_in_columns(tables, smallest_group=smallest_group)
    counts = beside_rows = beside_values = lone_beside = None
    if beside is not None:
        searched = search_file(beside, smallest_group=smallest_group)
        counts = count_file(beside, searched, tags)
        beside_rows, beside_values = counts.rows, counts.values
        lone_beside = lone_row(counts)

    def least_explained(
        places: Sequence[tuple[FoundAt, int]], other: FoundAt | None
    ) -> FoundInFile | None:
        """Return the place that coincidence explains least, with exact judgement and no small count."""
        here = [
            _with_others(at, among_others, sizes[1], further)
            for at, among_others in places
            if at.members + at.nonmembers + among_others
        ]
        among = len(here) + (0 if other is None else other.among)
        here += [] if other is None else [(other, sizes[1])]
        if not any(at.members for at, _ in here):
            return None
        at, others = min(here, key=lambda one: (one[0].chance(sizes[0], one[1]), -one[0].members))  # fmt: skip
        return without_small_counts(
            FoundInFile(
                place=at.place,
                stage=at.stage,
                members=at.members,
                nonmembers=at.nonmembers,
                among=among,
                rows=at.rows,
                coincidence=at.coincidence,
            ),
            members=sizes[0],
            nonmembers=others,
            smallest=smallest_group,
        )

    columns = [found(name, by_column[:, j]) for j, name in enumerate(tables.names)]
    synthetic = tables.synthetic
    return FileEvidence(
        members=sizes[0],
        nonmembers=sizes[1],
        rows=least_explained(whole, beside_rows),
        values=least_explained(columns, beside_values),
        trees=None,
        rare_values=int(by_column[: len(tags)].any(axis=0).sum()),
        smallest_group=smallest_group,
        long_axes=(),
        parameters=int(synthetic.codes.size),
        size=int(synthetic.nbytes),
        unread=() if counts is None else counts.unread,
        lone_row=_lone_row(tables, tags, is_copied, alone) or lone_beside,
        held_out=_held_out(
            tables, tags, units, counts, smallest=smallest_group, seed=seed
        ),
    )


def _with_others(
    at: FoundAt, found: int, nonmembers: int, further: int
) -> tuple[FoundAt, int]:
    """Add the auxiliary people to the non-members if they coincide as often: more people tell a few copies from coincidences.

    The comparison looks only at how those found divide between the two, which says nothing of the members, so that the test of these stays exact.
    """
    theirs = np.array(
        [[at.nonmembers, nonmembers - at.nonmembers], [found, further - found]]
    )
    if not further or fisher_exact(theirs).pvalue < DIFFERENT:
        return at, nonmembers
    return replace(at, nonmembers=at.nonmembers + found), nonmembers + further


def lone_row(counts: FileCounts) -> LoneRow | None:
    """Return where the whole record of a member stands whom nobody resembles, if enough others could have been found there."""
    if counts.lone is None or counts.lone[1] < FEWEST_OTHERS:
        return None
    place, others = counts.lone
    return LoneRow(place=place, others=others, chance=1 - MISSES ** (1 / others))


def _lone_row(
    tables: Tables,
    tags: NDArray[np.bool_],
    is_copied: NDArray[np.bool_],
    alone: NDArray[np.bool_],
) -> LoneRow | None:
    """Return that the row of a member whom nobody resembles stands in the table, if that of no such other does."""
    others = np.append(~tags, np.ones(len(tables.auxiliary), dtype=bool)) & alone
    count = int(others.sum())
    if count < FEWEST_OTHERS or not (alone[: len(tags)] & tags & is_copied).any():
        return None
    codes = np.concatenate([tables.records.codes, tables.auxiliary.codes])[others]
    if np.isin(_hashes(codes), _hashes(tables.synthetic.codes)).any():
        return None
    return LoneRow(place="equal rows", others=count, chance=1 - MISSES ** (1 / count))


def _held_out(
    tables: Tables,
    tags: NDArray[np.bool_],
    units: NDArray[np.int64],
    counts: FileCounts | None,
    *,
    smallest: int,
    seed: int,
) -> HeldOutFound:
    """Return whether held-out people stand in the table, or beside its cells, whom whoever made it must have seen."""
    rows, made = _hashes(tables.records.codes), _hashes(tables.synthetic.codes)
    # One row for each member: more coincide with more people, and the rows of one person may be alike.
    members = len(np.unique(units[tags]))
    if len(made) > members:
        rng = stream(seed, "held-out people")
        made = made[rng.permutation(len(made))[:members]]
    asked = first_alone(units, rows, ~tags)
    stands, equals = np.isin(rows, made), np.isin(rows, rows[tags])
    other = None if counts is None else counts.held_out
    here = held_out_found(
        "equal rows",
        int((asked & stands & ~equals).sum()),
        int((asked & equals & ~stands).sum()),
        factor=PEAKED,
        among=1 + (0 if other is None else other.among),
        smallest=smallest,
    )
    if here.seen or other is None:
        return here
    beside = seen_in_rows(counts, smallest=smallest, further=1)
    return beside if beside is not None and beside.seen else here


def seen_in_rows(
    counts: FileCounts | None, *, smallest: int, further: int = 0
) -> HeldOutFound | None:
    """Return whether held-out people stand among whole rows of a file whom its maker must have seen; None if there are no whole rows."""
    at = None if counts is None else counts.held_out
    if counts is None or at is None:
        return None
    return held_out_found(
        at.place,
        at.found,
        at.alike,
        # A place with more rows than there are members coincides with more people.
        factor=PEAKED * max(1.0, at.rows / max(counts.members, 1)),
        among=at.among + further,
        smallest=smallest,
    )


def _hashes(codes: NDArray[np.int32]) -> NDArray[np.uint64]:
    return np.asarray(hashed_rows(codes).sum(axis=1, dtype=np.uint64))


def rare_in_columns(tables: Tables, *, smallest_group: int) -> NDArray[np.bool_]:
    """Return whether each record, and then each auxiliary one, has in each column a value of few people that stands in the synthetic table.

    How many people have a value is counted among all of them, whoever is a member.
    """
    everybody = np.concatenate([tables.records.codes, tables.auxiliary.codes])
    synthetic = tables.synthetic.codes
    found = np.zeros(everybody.shape, dtype=bool)
    for j in range(everybody.shape[1]):
        counts = np.bincount(everybody[:, j])
        present = np.zeros(len(counts), dtype=bool)
        emitted = synthetic[:, j]
        present[emitted[emitted >= 0]] = True
        is_rare = counts < smallest_group
        found[:, j] = (is_rare & present)[everybody[:, j]]
    return found
