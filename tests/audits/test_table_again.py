"""Resemblance and privacy loss of tables that a generator makes again: of the recipe, by the people of the audit."""

import numpy as np
import pandas as pd
from scipy.stats import norm

from made_tables import copied_among, people
from reticent.attack.synthetic import Tables
from reticent.audits import Sides
from reticent.audits._table_statistics import loss_of_recipe, sampled_rows
from reticent.data import Coder, table_from_frame
from reticent.run import stream

N, TABLES = 80, 3
LEVEL = 0.95
FALSE_ALARM = 1e-6


def losses(share, seed):
    """Return the losses of tables that copy a share of the members, each by itself, among fresh people."""
    rng = stream(seed, "tables again")
    real, others = people(N, rng), people(N, rng)
    table = table_from_frame(pd.concat([real, others], ignore_index=True), target=None)
    coder = Coder(table.features, table.schema)
    records = coder.code(table.features)
    tables = Tables(
        records=records, synthetic=records, auxiliary=records, names=coder.names
    )
    made = []
    for k in range(TABLES):
        frame = copied_among(real, people(N, rng), share, rng)
        features = table_from_frame(frame, target=None).features
        made.append(sampled_rows(coder.code(features), seed=k))
    sides = Sides(np.arange(2 * N) < N, np.arange(2 * N))
    return loss_of_recipe(made, tables, sides, level=LEVEL, seed=seed)


def spread(loss):
    """Return the standard deviation over people and tables, of which the loss that would have been seen is so many."""
    return loss.visible / (norm.isf((1 - LEVEL) / 2) + norm.isf(0.2))


def test_a_recipe_that_copies_has_a_loss_and_one_that_does_not_has_none(seed):
    """Either bound is crossed by a recipe without a leak once in a million times."""
    copying, blind = losses(0.9, seed), losses(0.0, seed)
    assert copying.tables == blind.tables == TABLES
    assert copying.loss.value > norm.isf(FALSE_ALARM) * spread(copying)
    assert abs(blind.loss.value) < norm.isf(FALSE_ALARM / 2) * spread(blind)
    # Copies draw the rows of members near and leave those of others where they are.
    assert copying.train.mean.high < copying.test.mean.value
    for each in (copying.loss, copying.train.mean, copying.test.mean):
        assert each.covers == "trainer"
        assert each.low < each.value < each.high
