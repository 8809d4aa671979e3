"""How many members could be named, and how often a name is right."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.errors import InvalidInput
from reticent.evidence import Estimate, name_members, predictive_value
from reticent.run import stream

FALSE_ALARM = 1e-6


def _exactly(value):
    return Estimate(value=value, low=value, high=value, level=0.95, method="known")


def test_the_predictive_value_is_the_share_of_members_among_those_pointed_out(seed):
    """Counted in a drawn population; fails for correct code once in a million runs."""
    members, population, tpr, fpr = 20_000, 400_000, 0.05, 0.01
    rng = stream(seed, "population")
    right = rng.binomial(members, tpr)
    wrong = rng.binomial(population - members, fpr)
    stated = predictive_value(
        _exactly(tpr), fpr=fpr, members=members, population=population
    ).value
    low, high = binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], right + wrong, stated)
    assert low <= right <= high
    # Its twin: the rate at even odds, which forgets how rare members are.
    even = tpr / (tpr + fpr)
    assert not binom.ppf(FALSE_ALARM / 2, right + wrong, even) <= right


def test_the_interval_is_that_of_the_true_positive_rate():
    tpr = Estimate(value=0.01, low=0.0, high=1.0, level=0.9, method="exact")
    value = predictive_value(tpr, fpr=0.001, members=10, population=1_000)
    assert (value.low, value.level) == (0.0, 0.9)
    assert value.high == pytest.approx(10 / (10 + 0.99))


@pytest.mark.parametrize("population", [10, 9, 0])
def test_a_population_without_others_is_refused(population):
    with pytest.raises(InvalidInput, match="members included"):
        predictive_value(_exactly(0.1), fpr=0.01, members=10, population=population)


def _naive(members, known, sought, *, others, q):
    """Return the members named, by going through all thresholds one by one."""
    best = 0
    for t in np.unique(np.concatenate([members, known, sought])):
        p = (1 + (known >= t).sum()) / (1 + len(known))
        pointed_at = (members >= t).sum() + (sought >= t).mean() * others
        if (len(members) + others) * p <= q * pointed_at:
            best = max(best, int((members >= t).sum()))
    return best


@pytest.mark.parametrize("decimals", [8, 1])
def test_it_names_as_many_as_going_through_all_thresholds(seed, decimals):
    """Ties included."""
    rng = stream(seed, "naive")
    members = rng.normal(2.5, 1, 80).round(decimals)
    nonmembers = rng.normal(0, 1, 60).round(decimals)
    share = name_members(
        members, nonmembers, others=90, level=0.9, rng=stream(seed, "halves")
    )
    half = np.zeros(60, dtype=bool)
    half[stream(seed, "halves").permutation(60)[:30]] = True
    one, two = nonmembers[half], nonmembers[~half]
    counts = [
        _naive(members, known, sought, others=90, q=0.1)
        for known, sought in ((one, two), (two, one))
    ]
    assert share.value == pytest.approx(np.mean(counts) / 80)
    assert share.low <= share.value <= share.high


def test_without_a_leak_nobody_can_be_named(seed):
    """Of 100 tables; a p-value without the added one, its twin, names people in many of them."""
    rng = stream(seed, "null")
    names, careless = 0, 0
    for _ in range(100):
        members, nonmembers = rng.normal(size=(2, 100))
        share = name_members(
            members, nonmembers, others=100, level=0.9, rng=rng, replicates=1
        )
        names += share.value > 0
        careless += members.max() > nonmembers[:50].max()  # its p-value would be 0
    # By Bates et al. a name occurs in at most a share q = 0.1 of the tables, for each of the two roles.
    most = binom.ppf(1 - FALSE_ALARM, 100, 0.2)
    assert names <= most < careless


def test_the_share_of_false_names_is_as_stated(seed):
    """The mean over 200 tables lies within its error of q or below; a threshold at a p-value of q, its twin, is far above."""
    rng = stream(seed, "fdr")
    wrong, careless = [], []
    for _ in range(200):
        members, known, sought = (rng.normal(mean, 1, 200) for mean in (2.0, 0.0, 0.0))
        best, t_best = 0, np.inf
        for t in np.sort(np.concatenate([members, sought]))[::-1]:
            p = (1 + (known >= t).sum()) / 201
            pointed_at = (members >= t).sum() + (sought >= t).sum()
            if 400 * p <= 0.1 * pointed_at:
                best, t_best = pointed_at, t
        wrong.append((sought >= t_best).sum() / max(best, 1))
        at_q = np.quantile(known, 0.9)
        careless.append(
            (sought >= at_q).sum() / ((sought >= at_q) | (members >= at_q)).sum()
        )
    error = np.std(wrong) / np.sqrt(200)
    assert np.mean(wrong) <= 0.1 + norm.ppf(1 - FALSE_ALARM) * error
    assert np.mean(careless) > 0.1 + norm.ppf(1 - FALSE_ALARM) * error


def test_more_others_leave_fewer_names(seed):
    rng = stream(seed, "others")
    members, nonmembers = rng.normal(3, 1, 2_000), rng.normal(0, 1, 2_000)
    shares = [
        name_members(
            members, nonmembers, others=others, level=0.9, rng=stream(seed, "halves")
        ).value
        for others in (200, 2_000, 20_000)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_the_interval_contains_what_many_tables_show(seed):
    """Of 300 tables at level .9, as many as a binomial allows (19 % would be noticed); a fifth of the width, its twin, is missed too often."""
    rng = stream(seed, "coverage")

    def one(replicates):
        return name_members(
            rng.normal(2.5, 1, 200),
            rng.normal(0, 1, 200),
            others=200,
            level=0.9,
            rng=rng,
            replicates=replicates,
        )

    truth = np.mean([one(1).value for _ in range(1_000)])
    shares = [one(100) for _ in range(300)]
    inside = sum(s.low <= truth <= s.high for s in shares)
    assert inside >= binom.ppf(FALSE_ALARM, 300, 0.9)
    narrow = sum(
        s.value - (s.value - s.low) / 5 <= truth <= s.value + (s.high - s.value) / 5
        for s in shares
    )
    assert narrow < binom.ppf(FALSE_ALARM, 300, 0.9)


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="among members alone"):
        name_members([1.0], [0.0], others=0, level=0.9, rng=rng)
    with pytest.raises(ValueError, match="false_names"):
        name_members([1.0], [0.0], others=1, false_names=1.0, level=0.9, rng=rng)
