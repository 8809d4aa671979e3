"""One attack that combines everything a pool of regression models tells about a record.

The ingredients are the likelihood ratio [1]_, the relative ratio [2]_ and the product's predictions for similar records. New here,
as in the attack on classifiers, is that a classifier weighs them, which learned from games between the models of the pool
(docs/decisions/0015).

References
----------
.. [1] Carlini et al., "Membership inference attacks from first principles", arXiv:2112.03570.
.. [2] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks", arXiv:2312.03262.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Need, Scores
from reticent.attack._games import (
    Games,
    Neighbours,
    learn_from_games,
    nearest_records,
)
from reticent.attack.regression._base import RegressionChallenge, RegressionKnowledge
from reticent.attack.regression.gap_t import gap_log_ratio, prediction_moments
from reticent.attack.regression.rmia import log_relative_ratio
from reticent.pool import PredictionPool, record_blocks

__all__ = ["CombinedResidual"]

# In units of the typical error. Smaller errors are rounding, and their logarithms would go to minus infinity,
# because a model that interpolates predicts its members exactly.
LEAST_ERROR = 1e-4
# Of any column, all of which are logarithms: a larger number only says that something overflowed.
LARGEST = 50.0


@dataclass(frozen=True, kw_only=True)
class CombinedResidual:
    """Learn to combine everything a pool, and the predictions for similar records, tell about a record.

    Models of the pool play the target, and the others are their shadows. From those games, whose answers are
    known, a classifier learns how ratios, errors and spreads add up to membership. It finds what no formula looks for, such
    as errors of exactly epsilon, which support vector machines leave on many members. It never sees a tag of the
    product's records.

    Parameters
    ----------
    most_rows : int
        Largest number of (model, record) pairs to learn from.
    most_games : int
        Largest number of models that play the target.
    neighbours : tuple of int
        Sizes of the neighbourhoods; without features there are none.
    most_anchors : int
        Largest number of records among which neighbours are sought.
    """

    name: str = "combined_residual"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})
    most_rows: int = 60_000
    most_games: int = 16
    neighbours: tuple[int, ...] = (3, 10, 30)
    most_anchors: int = 8_000

    def score(
        self,
        challenge: RegressionChallenge,
        *,
        knowledge: RegressionKnowledge,
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        near, games = knowledge.lesson(
            self.name, lambda: self._learn(pool, challenge.features, rng)
        )
        predictions = challenge.predictions
        return games.judge(
            lambda shadows: _evidence(predictions, pool.of_models(shadows), near)
        )

    def _learn(
        self,
        pool: PredictionPool,
        features: NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> "tuple[_Neighbourhood | None, Games]":
        """Return what the records and the pool tell, whatever product is attacked."""
        near = None
        if features is not None and self.neighbours and len(features) > 1:
            near = _Neighbourhood.of(
                features,
                pool.targets,
                sizes=self.neighbours,
                most=self.most_anchors,
                rng=rng,
            )

        def evidence(
            model: int, shadows: NDArray[np.bool_], rows: NDArray[np.int64]
        ) -> NDArray[np.float64]:
            answers = pool.predictions[model]
            return _evidence(answers, pool.of_models(shadows), near)[rows]

        games = learn_from_games(
            pool,
            evidence,
            most_rows=self.most_rows,
            most_games=self.most_games,
            rng=rng,
        )
        return near, games


@dataclass(frozen=True, kw_only=True)
class _Neighbourhood:
    """The records that are most like each record, and how much their targets vary."""

    nearest: Neighbours
    spread: NDArray[np.float64]
    sizes: tuple[int, ...]

    @classmethod
    def of(
        cls,
        features: NDArray[np.float64],
        targets: NDArray[np.float64],
        *,
        sizes: tuple[int, ...],
        most: int,
        rng: np.random.Generator,
    ) -> "_Neighbourhood":
        nearest = nearest_records(features, max(sizes), most, rng)
        spread, known = np.empty(len(features)), targets[nearest.anchors]
        for its in record_blocks(len(features)):
            spread[its] = known[nearest.places[its]].std(axis=1)
        return cls(nearest=nearest, spread=spread, sizes=sizes)

    def means(
        self, shift: NDArray[np.float64], signs: NDArray[np.float64]
    ) -> list[NDArray[np.float64]]:
        """Return each record's sign times the mean shift of its neighbours, for each size of the neighbourhood."""
        means = [np.empty(len(signs)) for _ in self.sizes]
        known = shift[self.nearest.anchors]
        for its in record_blocks(len(signs)):
            moved = signs[its, None] * known[self.nearest.places[its]]
            for mean, size in zip(means, self.sizes, strict=True):
                mean[its] = moved[:, :size].mean(axis=1)
        return means


def _evidence(
    predictions: NDArray[np.floating], pool: PredictionPool, near: _Neighbourhood | None
) -> NDArray[np.float64]:
    """Return what is known about every record when a model with these predictions is the target.

    Positive shifts are towards the truth, and the unit is the typical error of models without a record, so the columns
    mean the same for every quantity and every size of the pool.
    """
    unit, moments = pool.typical_error, prediction_moments(pool)
    f = predictions.astype(np.float64)
    mean_in = pool.mean(pool.predictions.astype(np.float64), inside=True)
    mean_out = pool.mean(pool.predictions.astype(np.float64), inside=False)
    centre = (mean_in + mean_out) / 2
    towards = np.where(pool.targets >= centre, 1.0, -1.0)
    shift = (f - centre) / unit
    shared = (moments.variance_in + moments.variance_out) / 2
    deviation = np.sqrt(shared) * moments.unit / unit
    middle = (moments.mean_in + moments.mean_out) / 2
    linear = (
        (moments.standardised(f) - middle)
        * (moments.mean_in - moments.mean_out)
        / shared
    )
    error = _log_size((pool.targets - f) / unit)
    errors = _log_size(pool.residuals / unit)
    usual = (pool.mean(errors, inside=True) + pool.mean(errors, inside=False)) / 2
    columns = [
        _compressed(gap_log_ratio(f, moments)),
        _compressed(linear),
        _compressed(log_relative_ratio(pool.targets - f, pool)),
        np.log(moments.variance_in / moments.variance_out) / 2,
        _compressed(towards * shift),
        _compressed(towards * shift / deviation),
        error,
        error - usual,
        _compressed(towards * (mean_in - mean_out) / unit),
        np.log(deviation),
        _log_size((pool.targets - centre) / unit),
    ]
    if near is not None:
        columns += [
            np.log(near.nearest.distance + LEAST_ERROR),
            _log_size(near.spread / unit),
            *map(_compressed, near.means(shift, towards)),
        ]
    return np.column_stack(columns).clip(-LARGEST, LARGEST)


def _log_size(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.log(np.abs(values).clip(LEAST_ERROR)))


def _compressed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sign times the logarithm of 1 plus the size, so that outliers keep their order and lose their weight."""
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)))
