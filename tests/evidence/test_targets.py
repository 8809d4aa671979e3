"""Every model as a target: rates against naive counts, coverage when models and records vary."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import binom, rankdata
from sklearn.metrics import roc_auc_score

from reticent.errors import InvalidInput
from reticent.evidence import measure_targets, targets
from reticent.run import stream

FALSE_ALARM = 1e-6


def tpr_by_hand(scores, mask, fpr):
    """Try every threshold: the naive second implementation, for scores without ties."""
    rates = [
        ((scores[mask] > cut).mean(), (scores[~mask] > cut).mean())
        for cut in [*scores, -np.inf]
    ]
    return max(tpr for tpr, false in rates if false <= fpr + 1e-12)


def test_means_over_targets_equal_the_definition(seed):
    rng = stream(seed, "definition")
    masks = rng.random((5, 60)) < 0.5
    scores = rng.normal(masks, 1.0)
    found = measure_targets(
        "x", scores, masks, clusters=np.arange(5), fpr=[0.1, 0.3], level=0.95, rng=rng
    )
    auc = [roc_auc_score(m, s) for m, s in zip(masks, scores, strict=True)]
    assert found.auc.value == pytest.approx(np.mean(auc))
    assert (found.lowest, found.highest) == pytest.approx((min(auc), max(auc)))
    for estimate, rate in zip(found.tpr, found.fpr, strict=True):
        by_hand = [tpr_by_hand(s, m, rate) for m, s in zip(masks, scores, strict=True)]
        assert estimate.value == pytest.approx(np.mean(by_hand))
    assert found.targets == 5
    assert found.auc.covers == "trainer"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=20))
@settings(max_examples=80, deadline=None)
def test_weights_count_as_copies(rows):
    """A replicate's weights are how often each record was drawn: drawing it so often is the same."""
    mask = np.array([tag for tag, _ in rows])
    weights = np.array([weight for _, weight in rows])
    copied = np.repeat(mask, weights)
    assume(copied.any() and not copied.all())
    order = -np.repeat(np.arange(len(mask)), weights)
    (made,) = targets.rates_of_draws(weights[None].astype(float), mask, [0.3])
    # Copies of one record have one tag, so their order does not count.
    assert made[0] == pytest.approx(roc_auc_score(copied, order))


def varied(rng, models, n, spread, hardness):
    """Pairs of models that differ in how much they memorise, records in how hard they are."""
    half = rng.random((models // 2, n)) < 0.5
    masks = np.stack([half, ~half], axis=1).reshape(models, n)
    leak = rng.normal(1, spread, models // 2).repeat(2)
    noise = rng.normal(size=(models, n)) + hardness * rng.normal(size=n)
    return leak[:, None] * masks + noise, masks, np.arange(models) // 2


@pytest.mark.parametrize(("spread", "hardness"), [(0.4, 0.0), (0.4, 1.0)])
def test_the_interval_covers_the_trainer(spread, hardness, seed):
    """Closed form: leak ~ N(1, s^2) of a model, scores of variance v: Phi(1 / sqrt(2 v + s^2))."""
    rng, runs = stream(seed, f"trainer {hardness}"), 400
    v = 1 + hardness**2
    auc = ndtr(1 / np.sqrt(2 * v + spread**2))
    tpr = ndtr((1 - np.sqrt(v) * ndtri(0.9)) / np.sqrt(v + spread**2))
    missed = np.zeros(2)
    for _ in range(runs):
        scores, masks, clusters = varied(rng, 12, 100, spread, hardness)
        found = measure_targets(
            "x", scores, masks, clusters=clusters, fpr=[0.1], level=0.95, rng=rng
        )
        missed[0] += not found.auc.low <= auc <= found.auc.high
        missed[1] += not found.tpr[0].low <= tpr <= found.tpr[0].high
    # 11 % would be noticed.
    assert (missed <= binom.isf(FALSE_ALARM, runs, 0.05)).all()


def mean_auc(scores, masks):
    """Mean over models, by the sum of ranks."""
    inside = masks.sum(axis=1)
    ranks = (rankdata(scores, axis=1) * masks).sum(axis=1)
    return np.mean((ranks - inside * (inside + 1) / 2) / inside / (~masks).sum(axis=1))


def test_twin_resampling_records_only_is_too_narrow(seed):
    rng, runs, n, missed = stream(seed, "records only"), 60, 200, 0
    truth = ndtr(1 / np.sqrt(2 + 0.4**2))
    for _ in range(runs):
        scores, masks, _ = varied(rng, 12, n, 0.4, 0.0)
        drawn = [
            mean_auc(scores[:, its], masks[:, its])
            for its in rng.integers(n, size=(25, n))
        ]
        missed += abs(mean_auc(scores, masks) - truth) > 1.96 * np.std(drawn, ddof=1)
    assert missed > binom.isf(FALSE_ALARM, runs, 0.05)


def test_models_alike_still_leave_the_draw_of_records(seed):
    """Resampling models only would say that copies of one model on hard records are certain."""
    rng = stream(seed, "copies")
    mask = np.arange(200) < 100
    scores = np.tile(rng.normal(mask, 1.0), (8, 1))
    found = measure_targets(
        "x", scores, np.tile(mask, (8, 1)), clusters=np.arange(8), fpr=[], level=0.95, rng=rng
    )  # fmt: skip
    # Hanley and McNeil's error of one AUC of .76 with 100 a side is .034.
    assert found.auc.high - found.auc.low > 2 * 0.034
    assert found.tpr == ()


def test_complements_counted_as_independent_make_it_narrower(seed):
    rng = stream(seed, "clusters")
    wide = narrow = 0.0
    for _ in range(30):
        scores, masks, clusters = varied(rng, 12, 100, 0.6, 0.0)
        asked = {"fpr": [], "level": 0.95}
        a = measure_targets("x", scores, masks, clusters=clusters, rng=rng, **asked)
        b = measure_targets("x", scores, masks, clusters=np.arange(12), rng=rng, **asked)  # fmt: skip
        wide, narrow = wide + a.auc.high - a.auc.low, narrow + b.auc.high - b.auc.low
    assert wide > 1.2 * narrow


def test_an_attack_that_says_nothing_ties_at_one_half(seed):
    rng = stream(seed, "ties")
    masks = rng.random((6, 3000)) < 0.5
    found = measure_targets(
        "x", np.zeros((6, 3000)), masks, clusters=np.arange(6), fpr=[0.1], level=0.999, rng=rng
    )  # fmt: skip
    assert found.auc.value == pytest.approx(0.5, abs=0.04)
    assert found.tpr[0].value == pytest.approx(0.1, abs=0.04)


def test_many_records_are_thinned(monkeypatch, seed):
    monkeypatch.setattr(targets, "MOST_RECORDS", 50)
    rng = stream(seed, "thinned")
    masks = rng.random((4, 500)) < 0.5
    found = measure_targets(
        "x", rng.normal(masks), masks, clusters=np.arange(4), fpr=[], level=0.95, rng=rng
    )  # fmt: skip
    assert "50 records" in found.auc.method


def test_what_cannot_be_averaged_is_refused():
    rng = np.random.default_rng(0)
    masks = rng.random((4, 30)) < 0.5
    scores = rng.normal(size=(4, 30))

    def ask(scores, masks, clusters=(0, 0, 1, 1), fpr=(0.1,), level=0.95):
        return measure_targets(
            "x", scores, masks, clusters=np.array(clusters), fpr=fpr, level=level, rng=rng
        )  # fmt: skip

    with pytest.raises(InvalidInput, match="at least two targets that do not depend"):
        ask(scores, masks, clusters=(0, 0, 0, 0))
    with pytest.raises(InvalidInput, match="one row per target"):
        ask(scores, masks[:, :-1])
    with pytest.raises(InvalidInput, match="a score is NaN"):
        ask(np.where(scores == scores.max(), np.nan, scores), masks)
    with pytest.raises(InvalidInput, match="has no members or no non-members"):
        ask(scores, np.ones_like(masks))
    with pytest.raises(InvalidInput, match="fpr"):
        ask(scores, masks, fpr=(10,))
    with pytest.raises(InvalidInput, match="level"):
        ask(scores, masks, level=95)
