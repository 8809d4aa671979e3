"""The quantile attack: the contract, a case in closed form, records that differ in difficulty."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.attack import Challenge, Knowledge, Loss, QuantileRegression, SealedTags
from reticent.errors import InvalidInput
from reticent.evidence import ltu_accuracy
from reticent.run import stream
from reticent.testing import check_attack


def test_the_contract(seed):
    check_attack(QuantileRegression(), seed=seed)


def answered(logit, features):
    own = 1 / (1 + np.exp(-logit))
    return Challenge(
        probabilities=np.column_stack([own, 1 - own]),
        labels=np.zeros(len(own), int),
        features=features,
    )


def score(attack, challenge, tags, seed):
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(len(tags))))
    rng = stream(seed, "quantile")
    return attack.score(challenge, knowledge=knowledge, rng=rng).values


def accuracy(values, tags):
    return ltu_accuracy(values[tags], values[~tags], level=1 - 1e-6)


@pytest.fixture(scope="module")
def uneven():
    """Records of which some are much harder than others, and noisier; members a little better."""

    def made(seed):
        rng = stream(seed, "uneven")
        n = 1000
        tags = np.arange(n) < n // 2
        x = rng.uniform(-1, 1, (n, 2))
        spread = np.where(x[:, 1] > 0, 0.3, 1.5)
        logit = 4 * x[:, 0] + spread * (rng.normal(size=n) + 1.5 * tags)
        return tags, x, logit

    return made


def test_it_sees_members_among_records_of_unlike_difficulty(uneven, seed):
    """Twins: the loss, and the same attack without the features that make records hard."""
    tags, x, logit = uneven(seed)
    ours = accuracy(score(QuantileRegression(), answered(logit, x), tags, seed), tags)
    loss = accuracy(score(Loss(), answered(logit, x), tags, seed), tags)
    blind = answered(logit, stream(seed, "blind").permutation(x))
    without = accuracy(score(QuantileRegression(), blind, tags, seed), tags)
    # A shift of 1.5 spreads, were they known, is worth Phi(1.5 / sqrt 2) = .856. Learned from some 330
    # others it is .814, the loss .638 and without features .623, over draws with errors of .016 each.
    assert ours.value > 0.73
    assert ours.value > loss.value + 0.1
    assert without.value < ours.value - 0.1
    assert without.low < loss.high


def test_without_anything_to_learn_it_is_the_loss_less_a_mean(seed):
    """Equal features: the regression is the mean of known non-members, the spread one number."""
    rng = stream(seed, "constant")
    n = 90
    tags, logit = np.arange(n) % 2 == 0, rng.normal(size=n)
    made = score(QuantileRegression(), answered(logit, np.ones((n, 2))), tags, seed)
    sealed = SealedTags(tags, np.arange(n))
    for learn, known, judge in sealed.folds(3, rng=stream(seed, "quantile")):
        mean = logit[learn[~known]].mean()
        ratio = made[judge] / (logit[judge] - mean)
        assert ratio == pytest.approx(np.full(len(judge), ratio[0]), rel=1e-6)
        # exp(E log |residual|) of a normal is .53 of its spread, plus the least spread.
        assert 0.5 < ratio[0] < 5


@given(st.integers(-50, 50), st.sampled_from([0.125, 0.5, 2.0, 64.0]))
@settings(max_examples=3, deadline=None)
def test_units_of_the_features_do_not_count(shift, scale):
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (60, 2)).astype(
        float
    )  # with these shifts and scales nothing is rounded
    tags, logit = np.arange(60) < 30, rng.normal(size=60)
    plain = score(QuantileRegression(), answered(logit, x), tags, 0)
    other = score(QuantileRegression(), answered(logit, x * scale + shift), tags, 0)
    assert other == pytest.approx(plain, rel=1e-6, abs=1e-9)


def test_missing_values_and_many_records_are_taken(seed):
    rng = stream(seed, "missing")
    x = rng.normal(size=(120, 3))
    x[rng.random((120, 3)) < 0.3] = np.nan
    tags = np.arange(120) < 60
    made = score(
        QuantileRegression(most_rows=25),
        answered(rng.normal(3.0 * tags), x),
        tags,
        seed,
    )
    assert np.isfinite(made).all()
    assert ltu_accuracy(made[tags], made[~tags], level=0.95).value > 0.8


def test_without_features_it_says_what_it_needs():
    challenge = Challenge(probabilities=np.full((8, 2), 0.5), labels=np.zeros(8, int))
    with pytest.raises(InvalidInput, match="pass the features as well"):
        score(QuantileRegression(), challenge, np.arange(8) < 4, 0)
