"""Attackers who open the product: contract, formulas, power, silence, and the LTU paper's sanity check."""

import functools

import numpy as np
import pandas as pd
import pytest

from reticent.attack import (
    Challenge,
    GradientNorm,
    Knowledge,
    LearnedOutputs,
    LearnedWhiteBox,
    Loss,
    Scores,
    SealedTags,
)
from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.evidence import ltu_accuracy, privacy_from_accuracy
from reticent.product import Internals
from reticent.run import stream
from reticent.testing import FALSE_ALARM, check_attack
from reticent.train import Adam, Network, NetworkTrainer

ATTACKS = [GradientNorm(), GradientNorm(layer="output"), LearnedWhiteBox()]


def inside(norms, *, losses=None, activations=None, layers=("hidden 1", "output")):
    norms = np.asarray(norms, dtype=np.float64)
    n = len(norms)
    return Internals(
        losses=np.full(n, np.log(2)) if losses is None else losses,
        gradient_norms=norms,
        layers=layers,
        activations=np.ones((n, 1), np.float32) if activations is None else activations,
    )


def even(n, internals=None):
    """Return a challenge of a product that always answers with one half."""
    return Challenge(
        probabilities=np.full((n, 2), 0.5),
        labels=np.zeros(n, dtype=np.int64),
        internals=internals,
    )


def score(attack, challenge, *, members=None, seed=0):
    n = len(challenge)
    tags = np.arange(n) < (n // 2 if members is None else members)
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(n)))
    return attack.score(challenge, knowledge=knowledge, rng=stream(seed, "test")).values


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_the_contract(attack, seed):
    check_attack(attack, seed=seed)


def test_twin_long_gradients_as_members_break_the_contract():
    class UpsideDown(GradientNorm):
        def score(self, challenge, *, knowledge, rng):
            right = super().score(challenge, knowledge=knowledge, rng=rng)
            return Scores(values=-right.values)

    with pytest.raises(AssertionError, match="direction of scores"):
        check_attack(UpsideDown())


def test_the_length_is_that_of_all_layers_or_of_one():
    challenge = even(3, inside([[3, 4], [0, 0], [1e-200, 1e-200]]))
    whole = score(GradientNorm(), challenge)
    assert whole[0] == pytest.approx(-np.log(5))
    assert whole[2] == pytest.approx(-np.log(np.sqrt(2) * 1e-200))
    assert whole.argsort().tolist() == [0, 2, 1]
    last = score(GradientNorm(layer="output"), challenge)
    assert last[0] == pytest.approx(-np.log(4))
    assert GradientNorm(layer="hidden 1").name == "gradient_norm_hidden_1"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_a_product_that_cannot_be_opened_is_told(attack):
    with pytest.raises(InvalidInput, match=f"{attack.name}.*cannot be opened"):
        score(attack, even(10))


def test_a_layer_that_is_not_there_is_told():
    with pytest.raises(InvalidInput, match=r"no layer 'conv'.*'hidden 1', 'output'"):
        score(GradientNorm(layer="conv"), even(2, inside(np.ones((2, 2)))))


def test_internals_of_something_else_are_refused():
    with pytest.raises(InvalidPredictions, match="gradients at 3 records"):
        even(2, inside(np.ones((3, 2))))
    other = inside(np.ones((2, 2)), losses=np.array([np.log(2), 3.0]))
    with pytest.raises(InvalidPredictions, match="disagree on 1 of 2 records"):
        even(2, other)


def test_the_learned_attack_sees_what_no_answer_shows(seed):
    """All answers are the same; members excite other units of the last hidden layer."""
    n = 300
    units = stream(seed, "units").normal(size=(2 * n, 5)).astype(np.float32)
    units[:n, 0] += 2.0
    lengths = np.linalg.norm(units, axis=1)[:, None] * np.sqrt(0.5)
    challenge = even(2 * n, inside(lengths, activations=units, layers=("output",)))
    learned = score(LearnedWhiteBox(), challenge)
    # Two normals at a distance of 2 give an AUC of Phi(sqrt(2)) = .92.
    assert ltu_accuracy(learned[:n], learned[n:], level=1 - FALSE_ALARM).low > 0.75
    answers = score(LearnedOutputs(), challenge)
    assert ltu_accuracy(answers[:n], answers[n:], level=1 - FALSE_ALARM).low <= 0.5


# The LTU paper's sanity check. 20 % of the labels of both sides are changed and a network is made to overfit: the
# attacker by gradients must see it (.55 in the paper), and must not see a network that did not overfit.
FITTED = Network(hidden=(64,), epochs=6, batch=64, optimiser=Adam(rate=2e-3), l2=1e-3)
OVERFITTED = Network(hidden=(192,), epochs=120, batch=64, optimiser=Adam(rate=2e-3))
THIRD = 599


@functools.cache
def opened(network, flipped, seed):
    """Return the challenge of a network trained on the first third of the digits, on all three thirds."""
    from sklearn.datasets import load_digits

    rng = stream(seed, "digits")
    X, y = load_digits(return_X_y=True)
    changed = rng.random(len(y)) < flipped
    y = np.where(changed, (y + rng.integers(1, 10, len(y))) % 10, y)
    order = rng.permutation(len(y))
    frame = pd.DataFrame(X[order]).add_prefix("x")
    table = table_from_frame(frame, target=y[order])
    trainer = NetworkTrainer(network=network, recipe="test")
    product = trainer.train(table.take(np.arange(THIRD)), seed=seed)
    p = product.predict_proba(table.features)
    internals = product.internals(table.features, table.target)
    return Challenge(probabilities=p, labels=table.target, internals=internals)


def privacy(attack, challenge, members, others, seed):
    rows = np.concatenate([members, others])
    asked = Challenge(
        probabilities=challenge.probabilities[rows],
        labels=challenge.labels[rows],
        internals=challenge.internals.take(rows),
    )
    n = len(members)
    values = score(attack, asked, members=n, seed=seed)
    accuracy = ltu_accuracy(values[:n], values[n:], level=1 - FALSE_ALARM)
    return privacy_from_accuracy(accuracy)


MEMBERS, OTHERS, FURTHER = np.arange(3 * THIRD).reshape(3, THIRD)


def test_the_sanity_check_of_the_ltu_paper(seed):
    everybody_else = np.concatenate([OTHERS, FURTHER])
    noisy = opened(OVERFITTED, 0.2, seed)
    right = noisy.probabilities.argmax(axis=1) == noisy.labels
    assert right[MEMBERS].mean() > 0.95
    assert right[everybody_else].mean() < 0.85
    clean = opened(FITTED, 0.0, seed)
    caught = privacy(GradientNorm(), noisy, MEMBERS, everybody_else, seed)
    spared = privacy(GradientNorm(), clean, MEMBERS, everybody_else, seed)
    assert caught.high < min(0.75, spared.low)
    assert spared.low > 0.65


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_who_did_not_train_it_cannot_be_told_from_others(attack, seed):
    """The same overfitted network: its members are caught, and none of two thirds it never saw is."""
    noisy = opened(OVERFITTED, 0.2, seed)
    assert privacy(attack, noisy, MEMBERS, OTHERS, seed).high < 0.85
    unrelated = privacy(attack, noisy, OTHERS, FURTHER, seed)
    assert unrelated.high == 1.0


def test_looking_inside_tells_more_than_the_answers(seed):
    noisy = opened(OVERFITTED, 0.2, seed)
    inside_it = privacy(LearnedWhiteBox(), noisy, MEMBERS, OTHERS, seed)
    for attack in (Loss(), LearnedOutputs()):
        from_outside = privacy(attack, noisy, MEMBERS, OTHERS, seed)
        assert inside_it.value < from_outside.value
