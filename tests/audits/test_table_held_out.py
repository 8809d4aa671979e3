"""People who are said to be held out and stand in a synthetic table all the same."""

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

from reticent.attack.synthetic import Tables
from reticent.audits import SYNTHETIC_TABLE, contents_of_table
from reticent.audits._table_contents import PEAKED
from reticent.data import Coded
from reticent.errors import InvalidPolicy
from reticent.evidence import Estimate, HeldOutPeople, Limit, Outcome, Statement
from reticent.evidence.measures import TableRecords
from reticent.policy import Control, Verdict, decide, read_policy
from reticent.run import stream

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test
M, U = 700, 400


def coded(codes):
    nothing = np.empty((len(codes), 0), dtype=np.float32)
    return Coded(
        codes=codes.astype(np.int32),
        bins=codes.astype(np.int16),
        ranks=nothing,
        scaled=nothing,
        numeric=np.zeros(codes.shape[1], dtype=bool),
    )


def people(count, rng, *, values=4, columns=5):
    """Return people of a population in which some are frequent and many are rare."""
    return np.minimum(rng.geometric(0.5, (count, columns)), values)


def looked_at(members, others, made, *, units=None, smallest=1):
    records = np.concatenate([members, others])
    # A value that nobody has has no code.
    known = np.column_stack([np.isin(made[:, j], records[:, j]) for j in range(made.shape[1])])  # fmt: skip
    made = np.where(known, made, -1)
    tables = Tables(
        records=coded(records),
        synthetic=coded(made),
        auxiliary=coded(others[:0]),
        names=tuple(f"c{j}" for j in range(records.shape[1])),
    )
    return contents_of_table(
        tables,
        np.arange(len(records)) < len(members),
        np.arange(len(records)) if units is None else units,
        smallest_group=smallest,
    )


def chance_of(found):
    """Return the p-value of "held-out people are found no more often than they equal members"."""
    return binom.sf(found.found - 1, found.found + found.alike, 0.5)


def test_tables_of_other_people_show_nobody_who_was_held_out(seed):
    """Of tables of fresh people, 5 % have a p-value of 5 % or less, be there more rows than members or not; none is called seen."""
    rng, runs = stream(seed, "test/fresh tables"), 200
    for rows in (M, 3 * M):
        small = seen = unequal = 0
        for _ in range(runs):
            members, others, made = (people(n, rng, values=8) for n in (M, U, rows))
            found = looked_at(members, others, made).held_out
            small += chance_of(found) <= 0.05
            seen += found.seen
            # The twin: with all of its rows, a larger table seems to know them.
            here, there = ({row.tobytes() for row in t} for t in (made, members))
            asked = [row.tobytes() for row in others]
            a = sum(row in here and row not in there for row in asked)
            b = sum(row in there and row not in here for row in asked)
            unequal += binom.sf(a - 1, a + b, 0.5) <= 0.05
        most = binom.ppf(1 - FALSE_ALARM, runs, 0.05)
        assert small <= most
        assert seen == 0
        assert (unequal > most) == (rows > M)


def test_a_generator_that_emits_what_is_common_is_not_called_one_that_saw(seed):
    rng = stream(seed, "test/peaked")
    members, others, fresh = (people(n, rng) for n in (M, U, 4 * M))
    values, counts = np.unique(fresh, axis=0, return_counts=True)
    for power in (1.5, 2, 3):
        shares = counts**power / (counts**power).sum()
        made = values[rng.choice(len(values), M, p=shares)]
        assert not looked_at(members, others, made).held_out.seen
    assert PEAKED == 2


def test_like_rows_of_one_person_are_one_observation(seed):
    """Every person has ten like rows, and a table has one row for each row of the members: it coincides with more people than members do."""
    rng = stream(seed, "test/like rows")
    members, others = (np.repeat(people(n, rng, values=9), 10, axis=0) for n in (100, 200))  # fmt: skip
    made = people(1_000, rng, values=9)
    found = looked_at(members, others, made, units=np.repeat(np.arange(300), 10))
    assert not found.held_out.seen
    assert found.held_out.found + found.held_out.alike <= 200


@pytest.mark.parametrize("copied", [28, U])
def test_held_out_people_in_a_table_are_seen(copied):
    rng = stream(0, "test/held out")
    members, others, fresh = (people(n, rng, values=99, columns=16) for n in (M, U, M))
    made = np.concatenate([members, others[:copied]])
    file = looked_at(members, others, np.concatenate([others[:copied], fresh[copied:]]))
    assert file.held_out.seen
    if copied == U:
        assert looked_at(members, others, made).held_out.seen
    # The twins: copies of members alone, and fresh people.
    assert not looked_at(members, others, members).held_out.seen
    assert not looked_at(members, others, fresh).held_out.seen
    hidden = looked_at(members, others, np.concatenate([others[:9], fresh]), smallest=20)  # fmt: skip
    assert hidden.held_out.found == 0


@pytest.mark.parametrize("copied", [28, 56])
def test_a_few_copied_members_of_many_break_the_limit(copied):
    """0 of 7,000 others are found; the dossier hides both counts, and the judgement does not."""
    rng = stream(0, "test/few of many")
    members, others, fresh = (rng.integers(0, 90, (n, 6)) for n in (14_000, 7_000, 14_000))  # fmt: skip
    made = np.concatenate([members[:copied], fresh[copied:]])
    file = looked_at(members, others, made, smallest=20)
    statement = judged(file)
    assert statement.own_outcome == Outcome.BROKEN
    assert judged(looked_at(members, others, fresh, smallest=20)).own_outcome == Outcome.KEPT  # fmt: skip


def test_a_single_member_is_shown_by_place_although_the_limit_is_kept():
    rng = stream(0, "test/alone")
    members, others, fresh = (rng.integers(0, 90, (n, 6)) for n in (2_000, 1_000, 2_000))  # fmt: skip
    file = looked_at(members, others, np.concatenate([members[:1], fresh]), smallest=20)
    assert judged(file).own_outcome == Outcome.KEPT
    assert file.lone_row.place == "equal rows"
    # Exact: none of so many others with a true share of `chance` happens in one case of twenty.
    assert (1 - file.lone_row.chance) ** file.lone_row.others == pytest.approx(0.05)
    # The twins: nobody; somebody whom others resemble; somebody where such others are found as well.
    assert looked_at(members, others, fresh, smallest=20).lone_row is None
    alike = members.copy()
    alike[1] = members[0]
    alike[1, 3] += 1
    assert looked_at(alike, others, members[:1], smallest=20).lone_row is None
    both = np.concatenate([members[:1], others[:1], fresh])
    assert looked_at(members, others, both, smallest=20).lone_row is None


class Seen:
    """What a measure looks at, of a file alone."""

    queries_only = False
    confidence = 0.95

    def __init__(self, file):
        self.evidence = self
        self.file = file


def judged(file):
    limit = Limit(measure="file_records", at_most=0)
    return TableRecords().measure(Seen(file), limit=limit, rng=stream(0, "none"))


@pytest.mark.parametrize("policy", ["default", "strict"])
def test_seen_people_outweigh_findings_and_controls(policy):
    rng = stream(0, "test/outweigh")
    members, others = (people(n, rng, values=99, columns=16) for n in (M, U))
    file = looked_at(members, others, np.concatenate([members, others]))
    statement = HeldOutPeople().measure(Seen(file), limit=None, rng=rng)
    privacy = Estimate(value=0.5, low=0.4, high=0.6, level=0.95, method="made up")
    control = Control(name="unrelated", privacy=privacy, behaved=False, text="The control misbehaved.", misleads=True)  # fmt: skip
    usual = {"controls": [control], "stops": ["The parts differ."]}
    decision = decide(read_policy(policy), [statement], **usual)
    assert decision.verdict == Verdict.REFUSE
    assert "whoever made it saw them" in decision.reasons[0]
    assert "they are people, too" in decision.reasons[0]
    # The twin: a limit on what compares members with them counts for nothing then.
    compared = Statement(
        measure="privacy",
        label="privacy",
        words="privacy",
        better="higher",
        estimate=privacy,
        threat="outsider",
    )
    assert decide(read_policy(policy), [compared], **usual).verdict == Verdict.INCONCLUSIVE  # fmt: skip
    clean = looked_at(members, others, members)
    assert HeldOutPeople().measure(Seen(clean), limit=None, rng=rng) is None


def test_no_policy_limits_people_who_were_seen():
    assert any(
        measure.name == "held_out_people" for measure in SYNTHETIC_TABLE.measures
    )
    with pytest.raises(InvalidPolicy, match="would be ignored"):
        HeldOutPeople().check(Limit(measure="held_out_people", at_most=5))


def test_copies_of_people_whom_nobody_resembles_do_not_drown_in_coincidences(seed):
    """Most people coincide; the twin, which asks about all rows at once, sees too few copies among them."""
    rng = stream(seed, "test/drown")
    members, others, fresh = (people(n, rng) for n in (1_400, 700, 1_400))
    for table in (members, others):
        few = len(table) // 7
        table[:few] = rng.integers(10, 999, (few, 5))
    made = np.concatenate([members[:40], fresh[40:]])
    file = looked_at(members, others, made, smallest=20)
    assert file.rows.place == "equal rows of people whom nobody resembles"
    assert judged(file).own_outcome == Outcome.BROKEN
    rows = {row.tobytes() for row in made}
    m, u = (sum(row.tobytes() in rows for row in table) for table in (members, others))
    assert hypergeom.sf(m - 1, 2_100, 1_400, m + u) > 5e-5
    honest = looked_at(members, others, fresh, smallest=20)
    assert judged(honest).own_outcome == Outcome.KEPT
