"""The retraining insider: Theorem 3, regimes, repeatability."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from reticent.attack import Regime, Retrained, RetrainingRounds
from reticent.data import table_from_frame
from reticent.evidence import clopper_pearson, privacy_from_rounds
from reticent.run import Processes, Serial, stream
from reticent.testing import FALSE_ALARM
from reticent.train import EstimatorTrainer


def game(estimator, seed=0, n=60, flip=0.0):
    rng = stream(seed, "game")
    X = rng.normal(size=(2 * n, 4))
    y = ((X[:, 0] + rng.normal(size=2 * n)) > 0).astype(int)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])
    table = table_from_frame(frame, target=y)
    defender, reserved = table.take(np.arange(n)), table.take(np.arange(n, 2 * n))
    trainer = EstimatorTrainer.of(estimator, preprocess=False)
    product = trainer.train(defender, seed=7)
    return RetrainingRounds(
        trainer=trainer, defender=defender, reserved=reserved,
        answers=product.outputs(table.features), train_seed=7, seed=seed,
    )  # fmt: skip


def wins(rounds, regime, count):
    return rounds.play_many(
        regime, range(count), replica=rounds.replica(), workers=Serial()
    )


@pytest.mark.parametrize("regime", list(Regime))
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()], ids=repr)
def test_theorem_3_a_deterministic_trainer_always_loses(estimator, regime):
    """Deterministic, order-free and injective: accuracy 1, privacy 0, in every regime."""
    won = wins(game(estimator), regime, 20)
    assert won.tolist() == [1.0] * 20
    assert privacy_from_rounds(won.sum(), 20, level=0.95).value == 0


def test_a_seeded_forest_loses_when_seed_and_order_are_known():
    assert (
        wins(game(RandomForestClassifier(10)), Regime.ORIGINAL_SEEDED, 20).sum() == 20
    )


class Coin(ClassifierMixin, BaseEstimator):
    """Answers by its seed alone: no attacker can learn anything from it."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.answer_ = np.random.default_rng(self.random_state).random()
        return self

    def predict_proba(self, X):
        return np.tile([self.answer_, 1 - self.answer_], (len(X), 1))


def test_a_trainer_that_ignores_its_records_ties_when_seeded():
    rounds = game(Coin())
    assert wins(rounds, Regime.ORIGINAL_SEEDED, 5).tolist() == [0.5] * 5
    assert wins(rounds, Regime.SHUFFLED_SEEDED, 5).tolist() == [0.5] * 5


def test_a_trainer_that_ignores_its_records_wins_half_when_unseeded(seed):
    won = wins(game(Coin(), seed=seed), Regime.SHUFFLED_UNSEEDED, 400)
    interval = clopper_pearson(won.sum(), 400, level=1 - 1e-6)
    assert interval.low < 0.5 < interval.high


def test_ties_on_the_pair_are_decided_by_other_records():
    """A nearest-neighbour product may answer alike on both records yet betray d elsewhere."""
    rounds = game(KNeighborsClassifier(5), n=80)
    no_probes = RetrainingRounds(**{**rounds.__dict__, "probes": 0})
    plain = wins(no_probes, Regime.ORIGINAL_SEEDED, 60)
    probed = wins(rounds, Regime.ORIGINAL_SEEDED, 60)
    assert (plain == 0.5).sum() > (probed == 0.5).sum()
    assert probed.mean() > plain.mean()
    assert (plain != 0).all()  # the right model is never farther away


def test_rounds_do_not_depend_on_order_or_workers():
    rounds = game(RandomForestClassifier(5))
    replica = rounds.replica()
    forth = rounds.play_many(
        Regime.SHUFFLED_UNSEEDED, range(6), replica=replica, workers=Serial()
    )
    back = [
        rounds.play(Regime.SHUFFLED_UNSEEDED, k, replica=replica).win
        for k in reversed(range(6))
    ]
    parallel = rounds.play_many(
        Regime.SHUFFLED_UNSEEDED, range(6), replica=replica, workers=Processes(2)
    )
    assert forth.tolist() == back[::-1] == parallel.tolist()


def test_people_with_several_records_are_exchanged_whole():
    rounds = game(LogisticRegression(), n=80)
    units = np.repeat(np.arange(40), 2)
    paired = replace(
        rounds,
        defender=replace(rounds.defender, units=units),
        reserved=replace(rounds.reserved, units=units + 40),
    )
    sizes = []

    class Watching:
        recipe = "watching"

        def train(self, table, *, seed):
            sizes.append((len(table), len(np.unique(table.units))))
            return rounds.trainer.train(table, seed=seed)

    watched = replace(paired, trainer=Watching())
    assert wins(watched, Regime.ORIGINAL_SEEDED, 5).tolist() == [1.0] * 5
    assert set(sizes) == {(80, 40)}


@dataclass
class Fixed:
    """A product that gives one number to everybody."""

    answer: float

    def outputs(self, features):
        return np.full((len(features), 1), self.answer)


@dataclass
class Entropy:
    """A trainer that learns nothing and whose seed does not fix what it gives, like one with privacy noise or racing threads.

    A second draw in ``stuck`` trainings of a hundred is not made: they all give the same product.
    """

    rng: np.random.Generator
    stuck: float = 0.0
    recipe: str = "entropy"

    def train(self, table: Any, *, seed: int) -> Fixed:
        is_stuck = self.rng.random() < self.stuck
        return Fixed(0.0 if is_stuck else self.rng.normal())


def entropy_game(rng, number, stuck=0.0):
    """Return rounds against a product of a trainer that ignores records and seed."""
    table = table_from_frame(
        pd.DataFrame({"x": np.arange(12.0)}), target=np.arange(12) % 2
    )
    trainer = Entropy(rng, stuck=stuck)
    answers = trainer.train(table, seed=7).outputs(table.features)
    return RetrainingRounds(
        trainer=trainer, defender=table.take(np.arange(6)), reserved=table.take(np.arange(6, 12)),
        answers=answers, train_seed=7, seed=number, probes=0,
    )  # fmt: skip


def excludes_a_coin(rounds, regime, replica, count=16):
    """Whether the interval of some rounds excludes one half, at a nominal 5 %."""
    won = rounds.play_many(regime, range(count), replica=replica, workers=Serial())
    interval = clopper_pearson(won.sum(), count, level=0.95)
    return not interval.low <= 0.5 <= interval.high


@pytest.mark.parametrize("regime", list(Regime))
def test_rounds_are_binomial_if_the_seed_does_not_fix_the_product(regime, seed):
    """No regime shares anything between rounds that was drawn at random (false alarms: one in a million)."""
    rng = stream(seed, f"entropy/{regime}")
    games = [entropy_game(rng, number) for number in range(60)]
    wrong = sum(excludes_a_coin(rounds, regime, None) for rounds in games)
    assert wrong <= binom.ppf(1 - FALSE_ALARM, len(games), 0.05)


def test_a_replica_that_is_shared_all_the_same_excludes_a_coin_too_often(seed):
    """The twin of the test above: one replica near the product, or far from it, decides all rounds."""
    rng = stream(seed, "shared")
    games = [entropy_game(rng, number) for number in range(60)]
    wrong = sum(
        excludes_a_coin(rounds, Regime.ORIGINAL_SEEDED, rounds.replica())
        for rounds in games
    )
    # By chance at most this many; about half of the games are wrong, because the shared distance has a uniform rank.
    assert wrong > binom.ppf(1 - FALSE_ALARM, len(games), 0.05)


def test_what_training_again_gives_is_looked_at():
    forest = game(RandomForestClassifier(5))
    assert forest.train_again(forest.replica()) == Retrained.PRODUCT
    # The same recipe with another seed: always the same product, and not this one.
    other = replace(forest, train_seed=8)
    assert other.train_again(other.replica()) == Retrained.OTHER
    noisy = entropy_game(stream(0, "again"), 0)
    assert noisy.train_again(noisy.replica()) == Retrained.VARIES
    # A product that was changed after its training is compared as it was trained.
    changed = replace(forest, answers=forest.answers + 1e-3)
    assert changed.train_again(changed.replica()) == Retrained.OTHER
    known = replace(changed, as_trained=forest.answers)
    assert known.train_again(known.replica()) == Retrained.PRODUCT


def test_a_round_says_whether_its_model_repeats_the_product():
    forest = game(RandomForestClassifier(5))
    assert forest.play(Regime.ORIGINAL_SEEDED, 0, replica=None).repeats
    assert not forest.play(Regime.SHUFFLED_UNSEEDED, 0, replica=None).repeats
    # Rounding of the last digits is no difference, a change of the tenth digit is one.
    for change, repeats in ((1e-15, True), (1e-9, False)):
        near = replace(forest, answers=forest.answers * (1 + change))
        assert near.play(Regime.ORIGINAL_SEEDED, 0, replica=None).repeats == repeats


def test_a_deterministic_trainer_is_told_the_same_with_and_without_a_shared_replica():
    forest = game(RandomForestClassifier(5))
    shared, own = (
        forest.play_many(Regime.ORIGINAL_SEEDED, range(8), replica=replica, workers=Serial())
        for replica in (forest.replica(), None)
    )  # fmt: skip
    assert shared.tolist() == own.tolist()
