"""Defences compared on the same splits and people: size under the null, power, and people who look exposed by chance."""

import numpy as np
import pytest
from scipy.stats import binom, norm, ttest_ind

from reticent.errors import InvalidInput
from reticent.evidence import Defended, compare_defences
from reticent.pool import balanced_masks
from reticent.run import stream

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test


def defended(name, masks, rng, *, leak=0.5, wrong=0.2):
    """A defence whose leak and errors differ between people and between models."""
    models, people = masks.shape
    shift = rng.normal(leak, 0.7, people) + rng.normal(0, 0.3, models)[:, None]
    chance = rng.beta(wrong, 1 - wrong, people)
    chance = (chance + rng.normal(0, 0.03, models)[:, None]).clip(0, 1)
    return Defended(
        name=name,
        scores={"attack": masks * shift + rng.normal(size=masks.shape)},
        errors=(rng.random(masks.shape) < chance).astype(float),
        baseline=np.full(masks.shape, 0.5),
    )


def compared(seed, name, *, models=12, people=150, second=None):
    rng = stream(seed, name)
    masks = balanced_masks(models, np.arange(people), rng=rng)
    pair = [defended("a", masks, rng), defended("b", masks, rng, **(second or {}))]
    return compare_defences(pair, masks, splits=np.arange(models) // 2, rng=rng), pair


def test_two_defences_that_do_the_same_are_rarely_called_different(seed):
    runs = 60
    results = [compared(seed, f"null/{k}") for k in range(runs)]
    alarms = sum(
        min(c.differences[0].gain_p, c.differences[0].privacy_p) < 0.05
        for c, _ in results
    )
    most = binom.ppf(1 - FALSE_ALARM, runs, 0.05)
    assert alarms <= most
    beaten = sum(bool(c.dominated) for c, _ in results)
    assert beaten <= most
    # The twin: errors of all models on all people, taken for independent, find a difference far too often.
    careless = sum(
        ttest_ind(a.errors.ravel(), b.errors.ravel()).pvalue < 0.05
        for _, (a, b) in results
    )
    assert careless > most


def test_intervals_of_differences_hold_the_truth_and_see_a_leak(seed):
    truth = 2 * (
        norm.cdf(0.5 / np.hypot(np.sqrt(2), np.hypot(0.7, 0.3)))
        - norm.cdf(1.5 / np.hypot(np.sqrt(2), np.hypot(0.7, 0.3)))
    )
    runs, misses, seen = 40, 0, 0
    for k in range(runs):
        c, _ = compared(seed, f"leak/{k}", second={"leak": 1.5})
        difference = c.differences[0].privacy
        misses += not difference.low <= truth <= difference.high
        seen += difference.high < 0  # the second leaks more
    assert misses <= binom.ppf(1 - FALSE_ALARM, runs, 0.05)
    # Power: over 200 such comparisons 0.97 saw it; fewer than three in four would be seen once in a million.
    assert seen >= binom.ppf(FALSE_ALARM, runs, 0.93)


def test_nobody_looks_exposed_by_chance_alone(seed):
    rng = stream(seed, "exposed")
    masks = balanced_masks(8, np.arange(1000), rng=rng)
    noise = Defended(
        name="a",
        scores={"x": rng.normal(size=masks.shape)},
        errors=np.zeros(masks.shape),
        baseline=np.ones(masks.shape),
    )
    pair = [noise, Defended(**{**vars(noise), "name": "b"})]
    c = compare_defences(pair, masks, splits=np.arange(8) // 2, rng=rng)
    exposed = c.defences[0].exposed
    # Each split's mean over 50 people of a difference of two uniform shares: variance 1/6 per person; 4 splits.
    deviation = np.sqrt(1 / 6 / 50 / 4)
    assert abs(exposed.value) < -norm.ppf(FALSE_ALARM / 2) * deviation
    # The twin: people chosen and judged by the same splits look exposed.
    share = np.empty(masks.shape)
    for k, mask in enumerate(masks):
        others = np.sort(noise.scores["x"][k][~mask])
        share[k] = np.searchsorted(others, noise.scores["x"][k]) / len(others)
    signed = np.where(masks, share, -share)
    mean = (signed[0::2] + signed[1::2]).mean(axis=0)
    assert np.sort(mean)[-50:].mean() > 5 * deviation


def test_people_who_are_exposed_are_found(seed):
    rng = stream(seed, "few")
    masks = balanced_masks(24, np.arange(400), rng=rng)
    leak = np.where(np.arange(400) < 20, 4.0, 0.0)
    one = Defended(
        name="a",
        scores={"x": masks * leak + rng.normal(size=masks.shape)},
        errors=np.zeros(masks.shape),
        baseline=np.ones(masks.shape),
    )
    pair = [one, Defended(**{**vars(one), "name": "b"})]
    c = compare_defences(pair, masks, splits=np.arange(24) // 2, rng=rng)
    assert c.defences[0].exposed.low > 0.15  # of at most 1/2 for a perfect attack
    assert c.defences[0].privacy.value > 0.85  # the mean over all people hides them


def test_the_strongest_attack_is_shown_and_paid_for(seed):
    rng = stream(seed, "two")
    masks = balanced_masks(8, np.arange(300), rng=rng)
    zeros, ones = np.zeros(masks.shape), np.ones(masks.shape)
    weak, strong = rng.normal(size=masks.shape), rng.normal(masks, 1.0)

    def one(name, scores):
        return Defended(name=name, scores=scores, errors=zeros, baseline=ones)

    both = [one("a", {"weak": weak, "strong": strong}), one("b", {"strong": strong})]
    c = compare_defences(
        both, masks, splits=np.arange(8) // 2, rng=stream(seed, "draws")
    )
    first, second = c.defences
    assert first.attack == second.attack == "strong"
    # Equal scores, but ties aside the interval of the choice between two attacks is wider.
    assert first.auc.high - first.auc.low > second.auc.high - second.auc.low
    assert first.gain.value == 1.0


def test_bad_shapes_are_refused(seed):
    rng = stream(seed, "bad")
    masks = balanced_masks(4, np.arange(40), rng=rng)
    good = defended("a", masks, rng)
    with pytest.raises(InvalidInput, match="at least 2 splits"):
        compare_defences([good], masks, splits=np.zeros(4, dtype=int), rng=rng)
    bad = Defended(**{**vars(good), "errors": np.zeros((3, 40))})
    with pytest.raises(InvalidInput, match="one row per model"):
        compare_defences([bad], masks, splits=np.arange(4) // 2, rng=rng)
