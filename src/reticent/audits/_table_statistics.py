"""What describes a synthetic table and decides nothing: neighbours, disclosure, marginals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.attack.synthetic import Tables
from reticent.audits._sides import Sides
from reticent.data import Coded
from reticent.evidence import (
    AttributeEvidence,
    Columns,
    DescribedTable,
    Disclosure,
    PrivacyLoss,
    compare_correlations,
    compare_marginals,
    count_rare_categories,
    cover_rows,
    infer_attribute,
    link_halves,
    privacy_loss,
    single_out,
)
from reticent.run import stream

__all__ = ["describe_table", "loss_of_recipe", "sampled_rows"]

# People of each side, and rows, that are looked at: the time grows with the square of it, and an error of about 2 % is left. None of this decides.
MOST_ROWS = 1_000
PERMUTATIONS = 99  # of tags; the smallest p-value is 1 %
# Columns whose value is guessed from the others, the target first.
MOST_SECRETS = 6


@dataclass(frozen=True)
class _Sets:
    """One row per person of either side, the synthetic rows, and the columns' names in the order of :class:`Columns`."""

    members: Columns
    others: Columns
    synthetic: Columns
    names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        tables: Tables,
        tags: NDArray[np.bool_],
        units: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> "_Sets":
        order = rng.permutation(len(tags))
        _, first = np.unique(units[order], return_index=True)
        people = np.sort(order[first])

        def some(rows: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.sort(rng.permutation(rows)[:MOST_ROWS])

        records = tables.records
        numeric = records.numeric
        names = [n for n, is_number in zip(tables.names, numeric, strict=True) if is_number]  # fmt: skip
        names += [n for n, is_number in zip(tables.names, numeric, strict=True) if not is_number]  # fmt: skip
        return cls(
            members=_columns(records.take(some(people[tags[people]]))),
            others=_columns(records.take(some(people[~tags[people]]))),
            synthetic=_columns(
                tables.synthetic.take(some(np.arange(len(tables.synthetic))))
            ),
            names=tuple(names),
        )


def _columns(coded: Coded) -> Columns:
    # On the scale of all records; a missing number lies at 3 there.
    numbers = np.where(coded.scaled > 2, np.nan, coded.scaled.astype(np.float64))
    return Columns(
        numbers=numbers,
        codes=coded.categories.astype(np.int64),
        ranges=np.tile([0.0, 1.0], (numbers.shape[1], 1)),
    )


def sampled_rows(made: Coded, *, seed: int) -> Columns:
    """Return as many rows of a table as are compared with people.

    Parameters
    ----------
    made : Coded
        The rows.
    seed : int
        Of the sample.
    """
    rows = stream(seed, "table/sampled rows").permutation(len(made))[:MOST_ROWS]
    return _columns(made.take(np.sort(rows)))


def loss_of_recipe(
    made: Sequence[Columns],
    tables: Tables,
    sides: Sides,
    *,
    level: float,
    seed: int,
) -> PrivacyLoss:
    """Return resemblance and privacy loss over several tables of one recipe, by the same people as those of the audited table.

    Parameters
    ----------
    made : sequence of Columns
        What :func:`sampled_rows` returned for each of the tables.
    tables : Tables
        Records of members and non-members.
    sides : Sides
        Who is a member.
    level : float
        Confidence of each interval by itself: none of them decides.
    seed : int
        Of the audit.
    """
    # The stream that chose the people in :func:`describe_table`.
    sets = _Sets.of(tables, sides.tags, sides.units, stream(seed, "table/describe"))
    return privacy_loss(
        sets.members,
        sets.others,
        made,
        level=level,
        rng=stream(seed, "table/loss of recipe"),
        permutations=PERMUTATIONS,
    )


def describe_table(
    tables: Tables,
    tags: NDArray[np.bool_],
    units: NDArray[np.int64],
    *,
    target: str | None,
    level: float,
    smallest: int,
    seed: int,
) -> DescribedTable:
    """Return adversarial accuracies, the three questions of European guidance, and how alike the tables are.

    Parameters
    ----------
    tables : Tables
        Records, synthetic and auxiliary table.
    tags : array of bool
        Whether each record is a member.
    units : array of int
        Unit of each record.
    target : str or None
        The column whose value is guessed first.
    level : float
        Confidence of each interval by itself: none of them decides.
    smallest : int
        Number of people from which something may be said of them.
    seed : int
        Of samples, permutations and predicates.
    """
    rng = stream(seed, "table/describe")
    sets = _Sets.of(tables, tags, units, rng)
    members, others, synthetic = sets.members, sets.others, sets.synthetic
    width = members.width
    secrets = sorted(range(width), key=lambda j: sets.names[j] != target)
    linked: Disclosure | None = None
    if width > 1:
        # Every second column, so that either half has columns of all kinds.
        first = np.arange(width) % 2 == 0
        linked = link_halves(
            members, others, synthetic, first=first, level=level, rng=rng
        )
    correlated = None
    if members.numbers.shape[1] > 1:
        correlated = compare_correlations(others, synthetic, level=level)
    return DescribedTable(
        rows=min(len(members), len(others), len(synthetic)),
        names=sets.names,
        loss=privacy_loss(
            members,
            others,
            [synthetic],
            level=level,
            rng=rng,
            permutations=PERMUTATIONS,
        ),
        singling_out=single_out(members, others, synthetic, level=level, rng=rng),
        linkability=linked,
        inference=tuple(
            AttributeEvidence(
                column=sets.names[j],
                success=infer_attribute(
                    members, others, synthetic, secret=j, level=level, rng=rng
                ),
            )
            for j in (secrets[:MOST_SECRETS] if width > 1 else ())
        ),
        marginals=compare_marginals(others, synthetic, level=level),
        correlations=correlated,
        rare=count_rare_categories(others, synthetic, smallest=smallest),
        coverage=cover_rows(others, members, synthetic, level=level, rng=rng),
    )
