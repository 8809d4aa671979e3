"""The population attack: the contract, counting by hand, classes that are answered unlike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.attack import Challenge, Knowledge, Loss, Population, SealedTags
from reticent.evidence import ltu_accuracy
from reticent.run import stream
from reticent.testing import check_attack


def test_the_contract(seed):
    check_attack(Population(), seed=seed)


def answered(own, labels, classes=2):
    """Probabilities that give the true class ``own`` and share the rest."""
    p = np.repeat(((1 - own) / (classes - 1))[:, None], classes, axis=1)
    p[np.arange(len(own)), labels] = own
    return Challenge(probabilities=p, labels=labels)


def score(challenge, tags, seed, attack=None):
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(len(tags))))
    return (attack or Population()).score(
        challenge, knowledge=knowledge, rng=stream(seed, "population")
    ).values  # fmt: skip


def test_the_score_is_the_share_counted_by_hand(seed):
    rng = stream(seed, "by hand")
    n = 120
    labels, tags = rng.integers(2, size=n), rng.random(n) < 0.5
    own = rng.beta(3, 2, n)
    made = score(answered(own, labels), tags, seed)
    # Folds are the first draws of the stream.
    sealed = SealedTags(tags, np.arange(n))
    for learn, known, judge in sealed.folds(5, rng=stream(seed, "population")):
        others = [j for j, tag in zip(learn, known, strict=True) if not tag]
        for i in judge:
            same = [j for j in others if labels[j] == labels[i]]
            worse = sum(own[j] < own[i] for j in same)
            # Within a step of the counting the answer itself orders.
            assert made[i] == pytest.approx(worse / (len(same) + 1), abs=1e-3 / len(same))  # fmt: skip


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_a_better_answer_never_lowers_the_score(key):
    rng = np.random.default_rng(key)
    n = 60
    labels, tags = np.zeros(n, int), np.arange(n) < 30
    own = rng.integers(1, 9, n) / 10  # with ties
    before = score(answered(own, labels), tags, 0)
    own[3] += 0.05  # a member: nobody else is compared with it
    after = score(answered(own, labels), tags, 0)
    assert after[3] > before[3]
    assert np.array_equal(np.delete(after, 3), np.delete(before, 3))
    assert ((before > -1e-3) & (before < 1)).all()


def test_classes_that_are_answered_unlike_do_not_hide_members(seed):
    """Twin: the loss compares an easy class with a hard one and loses half of what there is."""
    rng = stream(seed, "classes")
    n = 1200
    labels, tags = np.arange(n) % 2, np.arange(n) < n // 2
    logit = rng.normal(1.5 * tags + 8.0 * labels - 4, 1.0)
    challenge = answered(1 / (1 + np.exp(-logit)), labels)
    ours, loss = (
        ltu_accuracy(s[tags], s[~tags], level=1 - 1e-6)
        for s in (
            score(challenge, tags, seed),
            score(challenge, tags, seed, Loss()),
        )
    )
    # Within a class 1.5 spreads are worth Phi(1.5 / sqrt 2) = .856; over both (.856 + .5) / 2.
    assert ours.low < 0.856 < ours.high
    assert loss.low < 0.678 < loss.high
    assert ours.low > 0.75
    assert loss.high < 0.8


def test_a_class_too_rare_is_compared_with_all(seed):
    rng = stream(seed, "rare")
    n = 100
    labels, tags = np.zeros(n, int), np.arange(n) < 50
    labels[[0, 60]] = 1
    own = rng.uniform(0.2, 0.8, n)
    own[0] = 0.9  # better than every known non-member
    own[60] = 0.1
    made = score(answered(own, labels), tags, seed)
    assert made[0] > 0.95
    assert made[60] < 0.05
