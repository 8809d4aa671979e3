"""Pools of regression models: shapes, units, games."""

import numpy as np
import pytest

from reticent.errors import InvalidInput
from reticent.pool import Pool, PredictionPool, balanced_masks
from reticent.run import stream


def pool(models: int = 6, n: int = 40, seed: int = 42) -> PredictionPool:
    rng = stream(seed, "predictions")
    masks = balanced_masks(models, np.arange(n), rng=rng)
    targets = rng.normal(size=n)
    noise = rng.normal(size=masks.shape)
    return PredictionPool(
        masks=masks,
        predictions=targets + np.where(masks, 0.1, 1.0) * noise,
        targets=targets,
    )


def test_residuals_are_the_truth_minus_the_prediction():
    made = pool()
    for model in range(len(made)):
        for record in (0, 7, 39):
            expected = made.targets[record] - made.predictions[model, record]
            assert made.residuals[model, record] == expected


def test_the_typical_error_is_that_of_models_without_the_record():
    made = pool()
    errors = [
        abs(made.residuals[m, i])
        for m in range(6)
        for i in range(40)
        if not made.masks[m, i]
    ]
    assert made.typical_error == pytest.approx(np.median(errors))
    inside = np.median(abs(made.residuals[made.masks]))
    assert made.typical_error > 4 * inside  # the twin: errors on members are smaller


def test_exact_predictions_leave_a_unit_above_zero():
    base = pool()
    exact = PredictionPool(
        masks=base.masks,
        predictions=np.tile(base.targets, (6, 1)),
        targets=base.targets,
    )
    assert exact.typical_error == pytest.approx(1e-6 * exact.spread)
    constant = PredictionPool(
        masks=base.masks, predictions=np.zeros((6, 40)), targets=np.zeros(40)
    )
    assert constant.spread == 1.0
    assert constant.typical_error > 0


def test_a_large_mean_costs_no_digits_in_single_precision():
    base = pool()
    near = PredictionPool(
        masks=base.masks,
        predictions=(base.targets + 0 * base.predictions + 2**20).astype(np.float32),
        targets=base.targets + 2**20,
    )
    assert near.residuals.dtype == np.float64


def test_games_leave_target_and_complement_out():
    made = pool()
    for model, shadows in made.games():
        assert isinstance(shadows, PredictionPool)
        assert len(shadows) == 4
        assert not (shadows.masks == made.masks[model]).all(axis=1).any()
        assert not (shadows.masks == ~made.masks[model]).all(axis=1).any()
        again = PredictionPool(
            masks=shadows.masks,
            predictions=shadows.predictions,
            targets=shadows.targets,
        )
        assert np.array_equal(again.residuals, shadows.residuals)
        assert again.typical_error == shadows.typical_error


def test_some_records_and_some_models():
    made = pool()
    rows = np.array([5, 3, 11])
    assert np.array_equal(made.take(rows).residuals, made.residuals[:, rows])
    assert np.array_equal(made.first(2).residuals, made.residuals[:2])
    assert made.pairs.tolist() == [0, 0, 1, 1, 2, 2]
    expected = [made.residuals[made.masks[:, i], i].mean() for i in range(40)]
    assert made.mean(made.residuals, inside=True) == pytest.approx(expected)


def test_shapes_that_do_not_fit_and_numbers_that_are_none_are_refused():
    made = pool()
    with pytest.raises(InvalidInput, match="do not fit together"):
        PredictionPool(
            masks=made.masks, predictions=made.predictions[:, :5], targets=made.targets
        )
    broken = made.predictions.copy()
    broken[0, 0] = np.nan
    with pytest.raises(InvalidInput, match="1 predictions of the pool are NaN"):
        PredictionPool(masks=made.masks, predictions=broken, targets=made.targets)
    with pytest.raises(InvalidInput, match="in all models of the pool or in none"):
        PredictionPool(
            masks=np.ones_like(made.masks),
            predictions=made.predictions,
            targets=made.targets,
        )


def test_both_kinds_of_pool_play_the_same_games():
    made = pool()
    p = np.full((6, 40, 2), 0.5, dtype=np.float32)
    classes = Pool(masks=made.masks, probabilities=p, labels=np.zeros(40, dtype=int))
    for (one, a), (two, b) in zip(made.games(), classes.games(), strict=True):
        assert one == two
        assert np.array_equal(a.masks, b.masks)
    assert np.array_equal(made.pairs, classes.pairs)
