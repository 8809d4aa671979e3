"""The insider in an audit: which rounds share a model, which regimes are left out, and what follows for the verdict."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from reticent.attack import Regime, Retrained
from reticent.audits import CLASSIFIER, Answers
from reticent.data import table_from_frame
from reticent.evidence import clopper_pearson, split_level
from reticent.pipeline import LOOKS, AuditPlan, train_seed
from reticent.pipeline._audit import gaps_of
from reticent.pipeline._case import Case
from reticent.pipeline._insider import checked_rounds, play_insider
from reticent.policy import read_policy
from reticent.run import Effort, Run, stream
from reticent.train import EstimatorTrainer, PlainTrainer


def a_table(n=60):
    rng = stream(0, "table")
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=[*"abc"])
    return table_from_frame(frame, target=(frame["a"] > 0).astype(int).to_numpy())


@dataclass
class Number:
    """A product that gives one number to everybody."""

    answer: float

    def outputs(self, features):
        return np.full((len(features), 1), self.answer)


@dataclass(frozen=True)
class Lottery(PlainTrainer):
    """A trainer that learns nothing: with some probability it gives a first prize, else a number that nobody else has."""

    rng: np.random.Generator
    first_prize: float = 0.0
    recipe: str = "lottery"

    def train(self, table, *, seed):
        return Number(0.0 if self.rng.random() < self.first_prize else self.rng.random())  # fmt: skip


def played(trainer, answer, *, rounds=16, policy="default", seed=0):
    """Return the insider's evidence against a product with one answer, or against given outputs."""
    plan = AuditPlan(trainer=trainer, rounds=rounds, pool=0, policy=read_policy(policy))
    run = Run(seed=seed, effort=Effort(minutes=60))
    case = Case.of(a_table(), plan, None, run)
    outputs = answer(case) if callable(answer) else np.full((len(case.both), 1), answer)
    answers = Answers(values=outputs, outputs=outputs)
    return play_insider(case, answers, None, run)


def test_a_product_that_no_seed_fixes_shares_no_model_between_rounds():
    insider = played(Lottery(stream(0, "lottery")), 0.3)
    assert insider.trained_again == Retrained.VARIES
    assert insider.left_out == ()
    assert [regime.repeats for regime in insider.regimes] == [0, 0, 0]


def trained_tree(seed):
    def outputs(case):
        product = case.plan.trainer.train(case.split.defender, seed=seed)
        return product.outputs(case.both.features)

    return outputs


def a_tree():
    return EstimatorTrainer.of(
        DecisionTreeClassifier(max_features=1, max_depth=3), preprocess=False
    )


def test_a_product_that_its_seed_fixes_is_given_away_in_its_own_order():
    insider = played(a_tree(), trained_tree(train_seed(0)))
    assert insider.trained_again == Retrained.PRODUCT
    first = insider.regimes[0]
    assert (first.name, first.repeats) == (Regime.ORIGINAL_SEEDED, first.rounds)
    assert first.wins > first.rounds / 2


def test_regimes_that_need_a_seed_are_left_out_if_it_is_not_the_products():
    insider = played(a_tree(), trained_tree(train_seed(1)), policy="strict")
    assert insider.trained_again == Retrained.OTHER
    assert [r.name for r in insider.regimes] == [Regime.SHUFFLED_UNSEEDED]
    assert [r.name for r in insider.left_out] == [
        Regime.ORIGINAL_SEEDED,
        Regime.SHUFFLED_SEEDED,
    ]


@pytest.mark.parametrize(("policy", "gaps"), [("strict", 1), ("default", 0)])
def test_a_regime_that_was_left_out_rules_out_a_release_where_insiders_count(
    policy, gaps
):
    insider = played(a_tree(), trained_tree(train_seed(1)))

    @dataclass
    class Known:
        attacks: tuple = ()
        failed: tuple = ()
        skipped: tuple = ()
        aside: tuple = ()
        insider: object = None
        file: object = None

    rules = read_policy(policy)
    complete = gaps_of(rules, CLASSIFIER, Known(insider=replace(insider, left_out=())))
    found = gaps_of(rules, CLASSIFIER, Known(insider=insider))
    assert len(found) - len(complete) == gaps
    assert sum("not played in" in gap.reason for gap in found) == gaps


def test_later_rounds_share_a_model_only_if_all_earlier_ones_repeat_the_product():
    """A replica may be the product by luck: the rounds' own models find out, and no round shares it."""

    class LuckyOnce(Lottery):
        """Gives the product once, in the training that is timed."""

        def train(self, table, *, seed):
            rare = self.rng.random() if trainings else 0.0
            trainings.append(rare)
            return Number(rare)

    trainings: list[float] = []
    insider = played(LuckyOnce(stream(0, "lucky")), 0.0, rounds=32)
    assert insider.trained_again == Retrained.PRODUCT
    first = insider.regimes[0]
    assert first.repeats == 0
    # Planned as 32 + 8 trainings, of which 32 are those of 16 rounds with two models each.
    assert first.rounds == 16


def false_alarms_by_luck(q, *, checked, looks, regimes):
    """Return the largest share of wrong intervals that sharing adds, if the product comes by chance with probability q.

    Each round with a shared model that is the product is won unless the other model is the product too, which is a tie. The exact
    distribution of the wins, stopped at the looks.
    """
    each = split_level(0.95, len(looks) * regimes)
    halves, wrong, rounds = np.array([1.0]), 0.0, 0
    for look in looks:
        for _ in range(look - rounds):
            halves = np.convolve(halves, [0, q, 1 - q])
        rounds = look
        ends = [clopper_pearson(k / 2, look, level=each).low for k in range(len(halves))]  # fmt: skip
        excluded = np.array(ends) > 0.5
        wrong += halves[excluded].sum()
        halves = np.where(excluded, 0, halves)
    return q ** (1 + checked) * wrong


@pytest.mark.parametrize("rounds", [7, 8, 9, 12, 13, 16, 17, 32, 64, 100])
@pytest.mark.parametrize(("regimes", "most"), [(3, 0.02), (1, 0.034)])
def test_the_bound_on_false_alarms_by_luck_is_the_one_that_is_documented(
    regimes, most, rounds
):
    grid = np.arange(0.4, 0.84, 0.04)
    looks = sorted({look for look in (*LOOKS, rounds) if look <= rounds})
    checked = max(
        false_alarms_by_luck(q, checked=checked_rounds(rounds), looks=looks, regimes=regimes)
        for q in grid
    )  # fmt: skip
    assert checked <= most
    if rounds == LOOKS[-1]:
        assert checked > most / 2
    # The twin: one replica that repeats the product is no evidence that the seed fixes it.
    alone = max(
        false_alarms_by_luck(q, checked=0, looks=looks, regimes=regimes)
        for q in (0.25, 0.4, 0.6)
    )
    assert alone > most or rounds == 7  # of which all may be won by chance
