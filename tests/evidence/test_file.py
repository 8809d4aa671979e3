"""Counts of people in a file, judged as counts: exact, for the place that was chosen, and by people."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact, hypergeom

from reticent.evidence import (
    FoundInFile,
    found_beyond_chance,
    held_out_found,
    without_small_counts,
)
from reticent.evidence.file import READABLE_LEVEL, SEEN_ERROR
from reticent.evidence.proportion import clopper_pearson
from reticent.run import stream

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test
LEVEL = 0.95  # of the simulations; audits use READABLE_LEVEL
M, U = 300, 100  # sides of different size


def at(members, nonmembers, among=1):
    return FoundInFile(place="here", stage="", members=members, nonmembers=nonmembers, among=among)  # fmt: skip


def readable(members, nonmembers, sides, *, among=1, level=READABLE_LEVEL):
    place = at(members, nonmembers, among)
    return found_beyond_chance(place, members=sides[0], nonmembers=sides[1], level=level)  # fmt: skip


def by_intervals(members, nonmembers, sides, level=1 - 1e-6):
    """The former rule: the low end of a difference of two intervals, at a level for hundreds of places."""
    each = (1 + level) / 2
    inside = clopper_pearson(members, sides[0], level=each)
    outside = clopper_pearson(nonmembers, sides[1], level=each)
    return max(0.0, sides[0] * (inside.low - outside.high))


@pytest.mark.parametrize("copied", [28, 56])
def test_a_few_rows_of_many_members_and_of_nobody_else_are_beyond_chance(copied):
    assert readable(copied, 0, (14_000, 7_000)).low >= 1
    # The twin: the former rule kept both, although such counts have a chance of a hundred thousandth or less.
    assert by_intervals(copied, 0, (14_000, 7_000)) < 1
    # Of as many others, half as many are found by chance alone.
    assert readable(copied, copied // 2, (14_000, 7_000)).low == 0


@given(st.integers(0, 60), st.integers(0, 40), st.integers(1, 30), st.floats(1e-6, 0.4))
def test_the_low_end_is_that_of_a_naive_search_by_fishers_test(m, u, among, error):
    found = readable(m, u, (60, 40), among=among, level=1 - error)
    low = 0
    while low < m:
        left = m - low
        table = [[left, 60 - left], [u, 40 - u]]
        if fisher_exact(table, alternative="greater").pvalue > error / among:
            break
        low += 1
    assert found.low == low
    assert found.low <= found.value <= found.high == m


def audits(rng, runs, *, places, rows_per_person=1, by_row=False):
    """Yield the places of files that tell nothing: people whose coarse records coincide with what stands at each."""
    for _ in range(runs):
        shares = rng.beta(0.4, 4, places)
        person = np.repeat(np.arange(M + U), rows_per_person)
        found = []
        for share in shares:
            # The rows of a person are alike: found together, or not at all.
            here = (rng.random(M + U) < share)[person]
            if not by_row:
                here = np.bincount(person, weights=here) > 0
            sides = M * rows_per_person if by_row else M
            found.append((int(here[:sides].sum()), int(here[sides:].sum())))
        yield [counts for counts in found if sum(counts)]


def alarms(files, sides, *, shared=True):
    count = 0
    for places in filter(None, files):
        among = len(places) if shared else 1
        chances = [hypergeom.sf(m - 1, sum(sides), sides[0], m + u) for m, u in places]
        m, u = places[int(np.argmin(chances))]
        count += readable(m, u, sides, among=among, level=LEVEL).low > 0
    return count


def test_files_that_tell_nothing_are_broken_no_more_often_than_stated(seed):
    """Of 600 files with 40 places each, at most 5 % are called readable; the twin that pays for no choice calls most of them."""
    runs, rng = 600, stream(seed, "test/null files")
    files = [*audits(rng, runs, places=40)]
    most = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    assert alarms(files, (M, U)) <= most
    assert alarms(files, (M, U), shared=False) > most


def test_people_and_not_their_rows_are_counted(seed):
    """Ten like rows of a person are one observation; the twin that counts them as ten calls most files readable."""
    runs, rng = 300, stream(seed, "test/null rows")
    most = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    people = [*audits(rng, runs, places=5, rows_per_person=10)]
    assert alarms(people, (M, U)) <= most
    rows = [*audits(rng, runs, places=5, rows_per_person=10, by_row=True)]
    assert alarms(rows, (10 * M, 10 * U)) > most


def test_a_copied_twentieth_is_found_among_many_coincidences(seed):
    """Power: 30 copies of 300 members, where 5 % of all people coincide, in 90 % of files or more; a twin without copies shows nobody."""
    rng, runs = stream(seed, "test/power"), 200
    seen = none = 0
    for _ in range(runs):
        m, u = rng.binomial(M - 60, 0.02) + 60, rng.binomial(U, 0.02)
        seen += readable(m, u, (M, U), among=10).low > 0
        none += readable(rng.binomial(M, 0.02), u, (M, U), among=10).low > 0
    assert seen >= binom.ppf(FALSE_ALARM, runs, 0.9)
    assert none <= binom.ppf(1 - FALSE_ALARM, runs, 1 - READABLE_LEVEL)


def test_small_counts_are_hidden_and_judged_by_exact_ones():
    place = without_small_counts(at(15, 0), members=200, nonmembers=400, smallest=20)
    assert (place.members, place.nonmembers) == (0, 0)
    assert place.beyond is not None
    assert (place.beyond.low, place.beyond.high) == (0.5, 20.0)
    # The judgement stays what it was, whoever reads the dossier again.
    assert found_beyond_chance(place, members=200, nonmembers=400, level=LEVEL).low > 0
    chance = without_small_counts(at(15, 20), members=200, nonmembers=400, smallest=20)
    assert chance.beyond is not None
    assert chance.beyond.low == 0


def test_held_out_people_are_called_seen_as_rarely_as_stated():
    """The largest chance of an alarm is that of the largest share of pairs, and is worked out, not simulated."""
    for pairs in (10, 50, 400):
        counts = np.arange(pairs + 1)
        seen = [
            held_out_found("rows", k, pairs - k, factor=2, among=3, smallest=1).seen
            for k in counts
        ]
        chance = binom.pmf(counts, pairs, 2 / 3)[seen].sum()
        assert chance <= SEEN_ERROR / 3
    # The twin: half of the pairs would be called an alarm by a test that allows generators nothing.
    assert not held_out_found("rows", 60, 40, factor=2, among=1, smallest=1).seen
    assert held_out_found("rows", 28, 0, factor=2, among=1, smallest=20).seen
