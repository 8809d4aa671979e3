"""The audit in one run: a tree that memorises is caught, a private network keeps its word, who ignores records shows nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from reticent.account import Relation, trade_off
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.evidence import epsilon_lower_bound, one_run_ceiling, one_run_lower_bound
from reticent.pipeline import audit_in_one_run
from reticent.product import FittedProduct
from reticent.run import stream
from reticent.train import EstimatorTrainer, parse_trainer

FALSE_ALARM = 1e-6
DELTA = 1e-5


def made_up_table(rows, *, classes=3, columns=12, seed=0):
    rng = stream(seed, "canaries/table")
    X = rng.normal(size=(rows, columns))
    y = (X[:, :classes] + 0.5 * rng.normal(size=(rows, classes))).argmax(axis=1)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(columns)])
    frame["kind"] = np.where(X[:, -1] > 0, "a", "b")
    return table_from_frame(
        frame, target=np.array(["p", "q", "r", "s"])[y], name="made up"
    )


TREE = EstimatorTrainer.of(DecisionTreeClassifier(), preprocess=True)


@dataclasses.dataclass(frozen=True)
class Spy:
    """A trainer that keeps the table it was given."""

    seen: list
    recipe: str = "spy"

    def train(self, table, *, seed):
        self.seen.append(table)
        return TREE.train(table, seed=seed)


def test_an_overfitted_tree_is_caught(seed):
    found = audit_in_one_run(
        made_up_table(1500), TREE, canaries=600, seed=seed, delta=DELTA
    )
    # A tree grown to the end knows every canary that is in by its leaf.
    assert found.gaussian.low > 5
    assert found.any_form.low > 2
    assert found.refutes(2.0)
    assert not found.refutes(found.any_form_ceiling)
    assert found.guesses[1].made == 600
    assert found.guesses[1].right > 450
    assert found.gaussian.low <= found.gaussian_ceiling
    assert found.any_form.low <= found.any_form_ceiling
    assert found.gaussian_ceiling == one_run_ceiling(600, level=0.95, delta=DELTA)


def test_a_trainer_that_ignores_its_records_shows_nothing(seed):
    ignores = EstimatorTrainer.of(DummyClassifier(strategy="uniform"), preprocess=False)
    found = audit_in_one_run(
        made_up_table(700), ignores, canaries=300, seed=seed, level=1 - FALSE_ALARM
    )
    assert found.gaussian.low == 0
    assert found.any_form.low == 0
    assert not found.refutes(0.0)


@pytest.mark.parametrize(("noise", "epochs"), [(1.0, 5), (8.0, 2)])
def test_a_private_network_shows_no_more_than_it_promises(noise, epochs, seed):
    pytest.importorskip("torch")
    trainer = parse_trainer(
        f"reticent.PrivateNetwork(hidden=[16], epochs={epochs}, batch=64, noise_multiplier={noise}, noise='seeded')",
        preprocess=True,
    )
    found = audit_in_one_run(
        made_up_table(700),
        trainer,
        canaries=300,
        seed=seed,
        level=1 - FALSE_ALARM,
        delta=DELTA,
    )
    recipe = dataclasses.replace(trainer.network, rows=found.rows)
    honest = trade_off(recipe.mechanism(found.rows, Relation.ADD_REMOVE), grid=1e-3)
    assert found.any_form.low <= honest.epsilon(DELTA)
    assert found.gaussian.low <= honest.epsilon(DELTA)


def test_what_is_trained_on_is_the_rest_and_the_canaries_that_are_in(seed):
    table, spy = made_up_table(400), Spy([])
    found = audit_in_one_run(table, spy, canaries=150, seed=seed)
    (trained,) = spy.seen
    assert found.rows == len(trained) == 250 + found.included
    assert len(np.unique(trained.ids)) == len(trained)
    wrong = trained.target != table.target[trained.ids]
    assert wrong.sum() == found.included  # every canary has a wrong class, nobody else
    features = table.features.iloc[trained.ids].reset_index(drop=True)
    pd.testing.assert_frame_equal(trained.features, features)
    # Canaries stand anywhere, and each is a unit of its own.
    assert 0 < np.flatnonzero(wrong).mean() / len(trained) < 1
    assert not set(trained.units[wrong]) & set(table.units)
    assert str(found).startswith("spy was trained once on ")
    assert "answers alone" in str(found)


def test_the_same_seed_gives_the_same_audit_and_another_one_other_coins():
    table = made_up_table(300)
    one, again, other = (
        audit_in_one_run(table, TREE, canaries=100, seed=s) for s in (1, 1, 2)
    )
    assert one == again
    assert (one.included, one.guesses) != (other.included, other.guesses)


def test_the_bounds_are_those_of_the_scores(seed):
    """A product that is a table of numbers: the bounds are those of these numbers."""
    table = made_up_table(400, classes=2)

    @dataclasses.dataclass(frozen=True)
    class Looks:
        recipe: str = "looks"

        def train(self, table, *, seed):
            known = set(table.features["x0"])

            class Memory:
                classes_ = np.array([0, 1])

                def predict_proba(self, features):
                    sure = np.where(features["x0"].isin(known), 0.9, 0.5)
                    # Of the class that is wrong for canaries, by the sign that was hidden in the column x1.
                    return np.column_stack([sure, 1 - sure])

            return FittedProduct(estimator=Memory(), classes=table.classes)

    found = audit_in_one_run(table, Looks(), canaries=200, seed=seed)
    coins = stream(seed, "canaries/coins").random(200) < 0.5
    assert found.included == coins.sum()
    # A canary with class 0 scores log 9 if it is in, else 0; with class 1, -log 9 or 0.
    drawn = stream(seed, "canaries").permutation(400)[:200]
    sign = np.where(table.target[drawn] == 1, 1.0, -1.0)  # the wrong class is the other
    scores = np.where(coins, sign * np.log(9), 0.0)
    assert found.gaussian == one_run_lower_bound(
        scores.round(9), coins, level=0.95, delta=1e-5
    )
    ranks = rankdata(scores.round(9), method="ordinal")
    plain = epsilon_lower_bound(
        ranks[coins],
        ranks[~coins],
        level=0.95,
        delta=1e-5,
        prior=0.5,
        rng=stream(0, "no ties"),
    )
    assert found.any_form.low == plain.low


@pytest.mark.parametrize(
    ("rows", "canaries", "words"),
    [(100, 90, "leave 10"), (100, 5, "5 canaries"), (100, 200, "leave -100")],
)
def test_too_few_records_are_refused(rows, canaries, words):
    with pytest.raises(InvalidInput, match=words):
        audit_in_one_run(made_up_table(rows), TREE, canaries=canaries, seed=0)


def test_a_class_that_would_be_lost_is_named():
    table = made_up_table(100, classes=2)
    rare = dataclasses.replace(
        table,
        target=np.where(np.arange(100) == 0, 1, 0),
    )
    lost = [s for s in range(40) if 0 in stream(s, "canaries").permutation(100)[:60]]
    with pytest.raises(InvalidInput, match="no record of the class 'q' is left"):
        audit_in_one_run(rare, TREE, canaries=60, seed=lost[0])
    alone = dataclasses.replace(table, classes=("p",), target=np.zeros(100, dtype=int))
    with pytest.raises(InvalidInput, match="one class only"):
        audit_in_one_run(alone, TREE, canaries=60, seed=0)
