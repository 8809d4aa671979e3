"""One attack that combines everything a pool, and the answers on similar records, tell about a record.

The ingredients are those of the likelihood ratio [1]_ and of the relative ratio [2]_. New here is that a classifier,
which learned from games between the models of the pool, weighs them and compares them with the answers
on neighbouring records (docs/decisions/0015).

References
----------
.. [1] Carlini et al., "Membership inference attacks from first principles", arXiv:2112.03570.
.. [2] Zarifzadeh, Liu & Shokri, "Low-cost high-power membership inference attacks", arXiv:2312.03262.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.attack._games import (
    Games,
    Neighbours,
    learn_from_games,
    nearest_records,
)
from reticent.pool import FLOOR, Pool, logit_of_probability, record_blocks

__all__ = ["CombinedPool"]


@dataclass(frozen=True, kw_only=True)
class CombinedPool:
    """Learn to combine everything a pool, and the answers on similar records, tell about a record.

    Models of the pool play the target, and the others are their shadows. From those games, whose answers are
    known, a classifier learns how a record's answer, its distance from the models with and without
    the record, and the same distance at its neighbours add up to membership. What the
    product does to similar records is not due to this record: it is the part of the distance that
    other training records and chance explain. The attack never sees a tag of the product's records.

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

    name: str = "combined_pool"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.POOL})
    most_rows: int = 60_000
    most_games: int = 16
    neighbours: tuple[int, ...] = (3, 10, 30)
    most_anchors: int = 8_000

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership."""
        pool = knowledge.need_pool(self.name)
        near, games = knowledge.lesson(
            self.name, lambda: self._learn(pool, challenge.features, rng)
        )
        everybody, answers = np.arange(len(challenge)), challenge.probabilities
        return games.judge(
            lambda shadows: self._known(answers, pool, near, shadows, everybody)
        )

    def _learn(
        self,
        pool: Pool,
        features: NDArray[np.float64] | None,
        rng: np.random.Generator,
    ) -> tuple[Neighbours | None, Games]:
        """Return what the records and the pool tell, whatever product is attacked."""
        near = None
        if features is not None and self.neighbours:
            near = nearest_records(
                features, max(self.neighbours), self.most_anchors, rng
            )

        def evidence(
            model: int, shadows: NDArray[np.bool_], rows: NDArray[np.int64]
        ) -> NDArray[np.float64]:
            answers = pool.probabilities[model].astype(np.float64)
            return self._known(answers, pool, near, shadows, rows)

        games = learn_from_games(
            pool,
            evidence,
            most_rows=self.most_rows,
            most_games=self.most_games,
            rng=rng,
        )
        return near, games

    def _known(
        self,
        answers: NDArray[np.float64],
        pool: Pool,
        near: Neighbours | None,
        shadows: NDArray[np.bool_],
        rows: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return what is known about some records when a model with these answers on all of them is the target."""
        around = _Around.of(near, answers, pool, shadows)
        return np.concatenate(
            [
                self._evidence(
                    answers, pool.take(rows[its]).of_models(shadows), around, rows[its]
                )
                for its in record_blocks(len(rows))
            ]
        )

    def _evidence(
        self,
        answers: NDArray[np.float64],
        shadows: Pool,
        around: "_Around | None",
        rows: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return what is known about some records, on which the shadows are given, when a model with these answers is the target.

        There are only means over models and no counts, so the columns mean the same for every size of the pool.
        """
        centre, labels, at = _centre(shadows), shadows.labels, np.arange(len(rows))
        truth, expected = answers[rows, labels], centre[at, labels]
        inside = shadows.mean(shadows.logits, inside=True)
        outside = shadows.mean(shadows.logits, inside=False)
        others = centre.copy()
        others[at, labels] = -1
        rival = others.argmax(axis=1)
        columns = [
            np.log(truth.clip(FLOOR) / expected.clip(FLOOR)),
            logit_of_probability(truth) - (inside + outside) / 2,
            inside - outside,
            expected,
            truth - expected,
            np.log(answers[rows, rival].clip(FLOOR) / centre[at, rival].clip(FLOOR)),
            centre[at, rival],
        ]
        if around is not None:
            shift = around.shift[around.near.places[rows], labels[:, None]]
            columns += [shift[:, :size].mean(axis=1) for size in self.neighbours]
        return np.column_stack(columns)


@dataclass(frozen=True, kw_only=True)
class _Around:
    """How far a target's answers on the anchors lie from what its shadows expect, shape (anchors, c)."""

    near: Neighbours
    shift: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        near: Neighbours | None,
        answers: NDArray[np.float64],
        pool: Pool,
        shadows: NDArray[np.bool_],
    ) -> "_Around | None":
        if near is None:
            return None
        expected = _centre(pool.take(near.anchors).of_models(shadows))
        return cls(near=near, shift=answers[near.anchors] - expected)


def _centre(pool: Pool) -> NDArray[np.float64]:
    """Return the mean answer of models with and without each record, both sides with the same weight."""
    inside = pool.masks / pool.masks.sum(axis=0)
    outside = ~pool.masks / (~pool.masks).sum(axis=0)
    # In single precision, as the answers of the pool are stored.
    weights = ((inside + outside) / 2).astype(np.float32)
    mean = np.einsum("mn,mnc->nc", weights, pool.probabilities)
    return np.asarray(mean, dtype=np.float64)
