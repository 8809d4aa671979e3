"""What is said of a synthetic table beside the attacks: its columns, and its most isolated people."""

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic import SyntheticChallenge, Tables, nearest
from reticent.attack.synthetic._counts import excess, occurrences, tuples
from reticent.attack.synthetic._nearest import rows_searched
from reticent.audits._sides import Sides
from reticent.audits._table_statistics import describe_table
from reticent.audits._table_transfer import transfer_of
from reticent.evidence import (
    ColumnLeak,
    ColumnShape,
    Estimate,
    IsolatedEvidence,
    Joint,
    SyntheticEvidence,
    ltu_accuracy,
)

__all__ = ["evidence_of_table", "isolation"]

# Share of people that are looked at apart: attacks on synthetic tables hit those hardest whom nobody resembles (Stadler, Oprisanu & Troncoso,
# arXiv:2011.07018, Section 6).
MOST_ISOLATED = 0.05
# Fewest people on either side of whom something is said by themselves, as for groups.
FEWEST = 20
MOST_CELLS = 18  # bins of a column, those of missing and of unknown values included


def evidence_of_table(
    challenge: SyntheticChallenge,
    sides: Sides,
    scores: NDArray[np.float64],
    *,
    target: str,
    joint: Joint,
    choices: int,
    smallest: int,
    seed: int,
) -> SyntheticEvidence:
    """Return everything about a synthetic table that is no attack.

    Parameters
    ----------
    challenge : SyntheticChallenge
        Records and tables.
    sides : Sides
        Who is a member.
    scores : array of float
        Those of the strongest attack.
    target : str
        The column that a user would predict.
    joint : Joint
        The confidence that the statements of the policy share.
    choices : int
        Attacks among which the strongest was chosen.
    smallest : int
        Number of people from which something may be said of them.
    seed : int
        Of the audit.
    """
    tables = challenge.need_tables("the audit")
    return SyntheticEvidence(
        rows=len(tables.synthetic),
        auxiliary=len(tables.auxiliary),
        columns=_columns(tables, sides, level=joint.level),
        isolated=_isolated(
            tables, sides, scores, joint=Joint(level=joint.level).times(choices)
        ),
        shapes=_shapes(tables, smallest=smallest),
        described=describe_table(
            tables,
            sides.tags,
            sides.units,
            target=target,
            level=joint.level,
            smallest=smallest,
            seed=seed,
        ),
        use=transfer_of(
            tables,
            sides,
            target=target,
            level=joint.level,
            smallest=smallest,
            seed=seed,
        ),
        searched=rows_searched(tables.synthetic, tables.auxiliary),
    )


def isolation(tables: Tables) -> NDArray[np.float64]:
    """Return how far each record is from the nearest record of the auxiliary table, by ranks; membership has no part in it."""
    known = tables.to_auxiliary
    if "ranks" not in known:
        known.update(nearest(tables.records, tables.auxiliary))
    return known["ranks"]


def _isolated(
    tables: Tables, sides: Sides, scores: NDArray[np.float64], *, joint: Joint
) -> IsolatedEvidence | None:
    apart = sides.by_unit(isolation(tables))
    chosen = apart > np.quantile(apart, 1 - MOST_ISOLATED)
    members, others = chosen & sides.unit_tags, chosen & ~sides.unit_tags
    sizes = int(members.sum()), int(others.sum())
    if min(sizes) < FEWEST:
        return None
    per_unit = sides.by_unit(scores)
    accuracy = ltu_accuracy(per_unit[members], per_unit[others], level=joint.each)
    return IsolatedEvidence(
        share=MOST_ISOLATED,
        members=sizes[0],
        nonmembers=sizes[1],
        accuracy=joint.state(accuracy),
    )


def _columns(tables: Tables, sides: Sides, *, level: float) -> tuple[ColumnLeak, ...]:
    """Return what the exact values of each column tell, and what is left of it in bins."""
    # Each column is judged twice.
    joint = Joint(level=level, statements=2 * len(tables.names))
    leaks = []
    for j, name in enumerate(tables.names):
        exact = _accuracy(tables, sides, j, "codes", joint=joint)
        is_coarse = len(np.unique(tables.records.codes[:, j])) <= len(
            np.unique(tables.records.bins[:, j])
        )
        leaks.append(
            ColumnLeak(
                name=name,
                is_number=bool(tables.records.numeric[j]),
                accuracy=exact,
                rounded=None
                if is_coarse
                else _accuracy(tables, sides, j, "bins", joint=joint),
            )
        )
    return tuple(sorted(leaks, key=lambda leak: -leak.accuracy.low))


def _accuracy(
    tables: Tables, sides: Sides, column: int, form: str, *, joint: Joint
) -> Estimate:
    parts = (tables.records, tables.synthetic, tables.auxiliary)
    codes = [getattr(part, form).astype(np.int32) for part in parts]
    keys = tuples(codes[0], [column])
    scores = excess(
        occurrences(keys, tuples(codes[1], [column])),
        occurrences(keys, tuples(codes[2], [column])),
        (len(codes[1]), len(codes[2])),
    )
    divided = sides.divide(scores)
    return joint.state(
        ltu_accuracy(divided.members, divided.nonmembers, level=joint.each)
    )


def _shapes(tables: Tables, *, smallest: int) -> tuple[ColumnShape, ...]:
    """Return the histogram of each column, for people and for synthetic rows, without bins of few people."""
    shapes = []
    for j, name in enumerate(tables.names):
        people = np.bincount(tables.records.bins[:, j], minlength=MOST_CELLS)
        rows = np.bincount(tables.synthetic.bins[:, j], minlength=MOST_CELLS)
        cells: list[tuple[int, int]] = []
        for ours, theirs in zip(people.tolist(), rows.tolist(), strict=True):
            # A bin of few people is joined with the one before it, or the next if it is the first.
            if cells and (ours < smallest or cells[-1][0] < smallest):
                cells[-1] = (cells[-1][0] + ours, cells[-1][1] + theirs)
            elif ours or theirs:
                cells.append((ours, theirs))
        shapes.append(
            ColumnShape(
                name=name,
                real=tuple(round(ours / people.sum(), 4) for ours, _ in cells),
                synthetic=tuple(round(theirs / rows.sum(), 4) for _, theirs in cells),
            )
        )
    return tuple(shapes)
