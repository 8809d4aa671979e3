"""Intervals over people and generated tables: what holds for a recipe, and that people alone do not cover it."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from reticent.errors import InvalidInput
from reticent.evidence import (
    Columns,
    compare_transfer,
    mean_share_saved,
    privacy_loss,
    share_saved,
)
from reticent.run import stream

FALSE_ALARM = 1e-6
LEVEL = 0.95
PEOPLE, TABLES = 150, 4
SKILL, SPREAD = 1.0, 0.45  # of the tables: how far apart their models put the classes


def ranked(rng, tables):
    """Return classes, scores of a model trained on real rows, and of one for each table; all make half of their errors together.

    A table whose model puts the classes a apart has the AUC Phi(a / sqrt 2); with a normal of mean m and variance v, the mean over tables is Phi(m / sqrt(2 + v)).
    """
    y = np.arange(PEOPLE) % 2
    shared = rng.normal(size=PEOPLE)

    def scores(apart):
        s = apart * y + np.sqrt(0.5) * (shared + rng.normal(size=PEOPLE))
        return np.column_stack([-s, s])

    return y, scores(SKILL), [scores(rng.normal(SKILL, SPREAD)) for _ in range(tables)]


MEAN_AUC = norm.cdf(SKILL / np.sqrt(2 + SPREAD**2))


def test_the_interval_over_people_and_tables_covers_the_mean_of_the_recipe(seed):
    """The twin is the interval of one table over people, which is right about that table and wrong about the recipe."""
    rng = stream(seed, "recipe")
    runs, misses, loss_misses, twin = 120, 0, 0, 0
    real_auc = norm.cdf(SKILL / np.sqrt(2))
    for _ in range(runs):
        y, real, tables = ranked(rng, TABLES)
        both = compare_transfer(y, real, tables, units=range(PEOPLE), level=LEVEL, rng=rng)  # fmt: skip
        assert both.auc_synthetic.covers == both.auc_loss.covers == "trainer"
        misses += not both.auc_synthetic.low <= MEAN_AUC <= both.auc_synthetic.high
        loss = real_auc - MEAN_AUC
        loss_misses += not both.auc_loss.low <= loss <= both.auc_loss.high
        alone = compare_transfer(y, real, tables[:1], units=range(PEOPLE), level=LEVEL, rng=rng)  # fmt: skip
        assert alone.auc_loss.covers == "product"
        twin += not alone.auc_synthetic.low <= MEAN_AUC <= alone.auc_synthetic.high
    allowed = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    assert max(misses, loss_misses) <= allowed < twin


def test_the_share_saved_by_a_recipe_is_covered_over_people_and_tables(seed):
    """Tables whose models are wrong about a share of people that varies; the share saved is 1 minus that share, for a constant that is always wrong."""
    rng = stream(seed, "saved")
    runs, misses, twin, ones = 600, 0, 0, np.ones(PEOPLE)
    for _ in range(runs):
        hard = rng.random(PEOPLE)
        shares = rng.beta(8, 12, size=TABLES)
        # Uniform, whatever a table's model adds to it: people who are hard for one model are hard for the next.
        lost = (np.mod(hard + rng.random((TABLES, PEOPLE)) * 0.5, 1) < shares[:, None]).astype(float)  # fmt: skip
        both = mean_share_saved(lost, ones, units=range(PEOPLE), level=LEVEL)
        misses += not both.low <= 0.6 <= both.high
        alone = share_saved(lost[0], ones, units=range(PEOPLE), level=LEVEL)
        twin += not alone.low <= 0.6 <= alone.high
    allowed = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    assert misses <= allowed < twin


def test_the_mean_of_shares_is_the_share_of_mean_losses():
    lost = np.array([[0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1.0]])
    constant = np.array([1, 1, 0, 1.0])
    each = [share_saved(row, constant, units=range(4), level=LEVEL).value for row in lost]  # fmt: skip
    both = mean_share_saved(lost, constant, units=range(4), level=LEVEL)
    assert both.value == pytest.approx(np.mean(each))
    # Tables that do not differ add nothing to what people leave open.
    equal = mean_share_saved([lost[0]] * 3, constant, units=range(4), level=LEVEL)
    alone = share_saved(lost[0], constant, units=range(4), level=LEVEL)
    assert (equal.low, equal.high) == pytest.approx((alone.low, alone.high))
    assert both.low < mean_share_saved([lost.mean(axis=0)] * 3, constant, units=range(4), level=LEVEL).low  # fmt: skip


def test_one_table_says_nothing_about_its_recipe():
    with pytest.raises(InvalidInput, match="at least two products"):
        mean_share_saved([[0, 1]], [1, 1], units=range(2), level=LEVEL)


@pytest.mark.slow
def test_losses_of_a_recipe_are_covered_over_people_and_tables(seed):
    """Tables that copy more or fewer of their training rows. The twin is one table's interval over people, which speaks of that table and misses the recipe.

    The mean of the recipe is that of all tables of all runs, whose error is a tenth of the length of an interval.
    """
    rng = stream(seed, "losses of a recipe")
    people, runs = 60, 40

    def rows(points):
        ends = np.tile([0.0, 1.0], (points.shape[1], 1))
        return Columns(numbers=points, codes=np.empty((len(points), 0)), ranges=ends)

    def losses(train, test, made):
        found = privacy_loss(train, test, made, level=LEVEL, rng=rng, permutations=39)
        return found.loss, found.train.mean

    of_recipe, alone = [], []
    for _ in range(runs):
        train, test = rng.random((2, people, 3))
        made = []
        for share in rng.random(TABLES):
            copied = rng.random((people, 1)) < share
            made.append(rows(np.where(copied, train, rng.random((people, 3)))))
        of_recipe.append(losses(rows(train), rows(test), made))
        alone.append(losses(rows(train), rows(test), made[:1]))
    allowed = binom.ppf(1 - FALSE_ALARM, runs, 1 - LEVEL)
    for k in range(2):
        truth = np.mean([run[k].value for run in of_recipe])
        misses, twin = (
            sum(not run[k].low <= truth <= run[k].high for run in each)
            for each in (of_recipe, alone)
        )
        assert {run[k].covers for run in of_recipe} == {"trainer"}
        assert {run[k].covers for run in alone} == {"product"}
        assert misses <= allowed < twin
