"""Every model as a target: the same as playing each game by hand, and no tag in sight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.attack import (
    Challenge,
    Knowledge,
    LikelihoodRatio,
    Loss,
    Population,
    QuantileRegression,
    RelativeRatio,
    Scores,
    SealedTags,
    score_targets,
)
from reticent.errors import InvalidInput
from reticent.evidence import ltu_accuracy
from reticent.pool import Pool, balanced_masks
from reticent.run import stream


def leaking(rng, models=8, n=100, shift=1.5, hardness=2.0):
    masks = balanced_masks(models, np.arange(n), rng=rng)
    logit = rng.normal(shift * masks) + hardness * rng.normal(size=n)
    own = 1 / (1 + np.exp(-logit))
    p = np.stack([own, 1 - own], axis=-1).astype(np.float32)
    return Pool(masks=masks, probabilities=p, labels=np.zeros(n, int))


@pytest.mark.parametrize(
    "attack", [RelativeRatio(), LikelihoodRatio(), Loss()], ids=lambda a: a.name
)
def test_it_equals_playing_each_game_by_hand(attack, seed):
    pool = leaking(stream(seed, "by hand"))
    targets, scores = score_targets(attack, pool, rng=stream(seed, "play"))
    assert targets.tolist() == list(range(8))
    for model in range(8):
        partner = model + 1 - 2 * (model % 2)
        rest = [k for k in range(8) if k not in (model, partner)]
        shadows = Pool(
            masks=pool.masks[rest],
            probabilities=pool.probabilities[rest],
            labels=pool.labels,
        )
        made = attack.score(
            Challenge(
                probabilities=pool.probabilities[model].astype(float),
                labels=pool.labels,
            ),
            knowledge=Knowledge(
                tags=SealedTags(pool.masks[model], np.arange(100)), pool=shadows
            ),
            rng=stream(seed, "play"),
        )
        assert scores[model] == pytest.approx(made.values)


def test_a_pool_sees_members_that_the_loss_does_not(seed):
    """Hard and easy records hide a shift of one spread from the loss, in every game."""
    pool = leaking(stream(seed, "power"), models=16, n=400, hardness=4.0)

    def mean(attack):
        targets, scores = score_targets(attack, pool, rng=stream(seed, "power"))
        return np.mean(
            [
                ltu_accuracy(s[m], s[~m], level=0.95).value
                for s, m in zip(scores, pool.masks[targets], strict=True)
            ]
        )

    assert mean(LikelihoodRatio()) > mean(Loss()) + 0.1


def test_a_pool_that_does_not_leak_gives_nothing_away(seed):
    """Balanced games: a count of shadows per record would tell members from others.

    Records' answers do not depend on membership; each game's accuracy has the error of 200 a side.
    """
    pool = leaking(stream(seed, "quiet"), models=8, n=400, shift=0.0)
    targets, scores = score_targets(RelativeRatio(), pool, rng=stream(seed, "quiet"))
    for s, m in zip(scores, pool.masks[targets], strict=True):
        made = ltu_accuracy(s[m], s[~m], level=1 - 1e-6)
        assert made.low <= 0.5 <= made.high


class CountsShadows:
    """Score by how many shadows lack a record: the leak that complements would open."""

    name = "counts"

    def score(self, challenge, *, knowledge, rng):
        return Scores(values=(~knowledge.pool.masks).sum(axis=0).astype(float))


def test_twin_a_partner_left_among_the_shadows_would_tell(seed):
    pool = leaking(stream(seed, "count"), n=60)
    _, scores = score_targets(CountsShadows(), pool, rng=stream(seed, "count"))
    assert (scores == 3).all()
    left = (~pool.masks[1:]).sum(axis=0)  # model 0 the target, its complement stays
    assert np.array_equal(left == 4, pool.masks[0])


@given(st.integers(2, 5), st.integers(1, 12))
@settings(max_examples=20, deadline=None)
def test_no_more_targets_than_asked_for(pairs, most):
    pool = leaking(np.random.default_rng(0), models=2 * pairs, n=20)
    targets, scores = score_targets(
        Loss(), pool, most=most, rng=np.random.default_rng(0)
    )
    assert targets.tolist() == list(range(min(most, 2 * pairs)))
    assert scores.shape == (len(targets), 20)


def test_tags_are_those_of_the_target_and_sealed_by_unit(seed):
    units = np.arange(100) // 2
    seen = []

    class Watching(Population):
        def score(self, challenge, *, knowledge, rng):
            tags = np.zeros(len(challenge), bool)
            for learn, known, judge in knowledge.tags.folds(2, rng=rng):
                assert not set(units[learn]) & set(units[judge])
                tags[learn] = known
            seen.append(tags)
            return super().score(challenge, knowledge=knowledge, rng=rng)

    rng = stream(seed, "units")
    masks = balanced_masks(6, units, rng=rng)
    p = rng.dirichlet([1, 1], size=masks.shape).astype(np.float32)
    pool = Pool(masks=masks, probabilities=p, labels=np.zeros(100, int))
    score_targets(Watching(), pool, units=units, rng=rng)
    assert np.array_equal(seen, masks)


def test_what_an_attack_or_a_pool_lacks_is_said():
    rng = np.random.default_rng(0)
    pool = leaking(rng, n=20)
    with pytest.raises(InvalidInput, match="pass the features as well"):
        score_targets(QuantileRegression(), pool, rng=rng)
    with pytest.raises(InvalidInput, match="one of each per record"):
        score_targets(Loss(), pool, units=np.arange(19), rng=rng)
