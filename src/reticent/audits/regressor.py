"""The audit of a regression model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Attack, Need, Reader
from reticent.attack.regression import (
    CombinedResidual,
    GapT,
    QuantileResidual,
    RegressionChallenge,
    RelativeResidual,
    Residual,
)
from reticent.audits._kind import Answers, Kind, View, Views
from reticent.audits._measures import MEASURES
from reticent.audits._sides import Sides
from reticent.data import Table
from reticent.evidence import (
    Joint,
    Utility,
    absolute_skill,
    clipped_loss,
    r_squared,
    theorem_1,
    theorem_2,
)
from reticent.pool import PredictionPool

__all__ = ["REGRESSOR", "RegressorKind"]

# Errors below this part of the targets' spread are not told apart: rounding decides there.
FAINT = 1e-9


class RegressorKind(Kind):
    """Products that predict a quantity."""

    name = "regressor"
    attacks = (
        Residual(),
        QuantileResidual(),
        GapT(),
        RelativeResidual(),
        CombinedResidual(),
        Reader(),
    )
    quick_attacks = (RelativeResidual(), GapT())
    ratio_attack = "gap_t"
    posterior_attacks = ("combined_residual",)
    measures = MEASURES

    def available(self, has: frozenset[Need]) -> tuple[Attack, ...]:
        """Return the attacks that can be run; with a pool the quantile regression adds nothing and is left out."""
        attacks = super().available(has)
        if Need.POOL not in has:
            return attacks
        return tuple(a for a in attacks if a.name != QuantileResidual().name)

    def ask(self, product: Any, table: Table, *, looks_inside: bool = True) -> Answers:
        """Return predictions; regression models are not opened."""
        predictions, outputs = product.asked(table.features)
        return Answers(values=predictions, outputs=outputs, warnings=product.warnings)

    def can_learn_from(self, table: Table) -> bool:
        """Return whether the target varies."""
        return len(np.unique(table.target)) > 1

    def challenge(
        self, answers: Answers, table: Table, features: NDArray[np.float64] | None
    ) -> RegressionChallenge:
        """Return predictions and true quantities."""
        return RegressionChallenge(
            predictions=answers.values[:, 0],
            targets=np.asarray(table.target, dtype=np.float64),
            features=features,
        )

    def memorised(
        self, challenge: RegressionChallenge, known: NDArray[np.bool_]
    ) -> RegressionChallenge:
        """Return predictions that are exact for every known record and the mean for all others."""
        mean = float(challenge.targets.mean())
        return replace(
            challenge,
            predictions=np.where(known, challenge.targets, mean),
            file=None if challenge.file is None else challenge.file.memorised(known),
        )

    def pool(
        self, masks: NDArray[np.bool_], answers: NDArray[np.float32], table: Table
    ) -> PredictionPool:
        """Return predictions of many models."""
        return PredictionPool(
            masks=masks,
            predictions=answers[..., 0],
            targets=np.asarray(table.target, dtype=np.float64),
        )

    def model_challenge(self, pool: PredictionPool, model: int) -> RegressionChallenge:
        """Return the predictions of one model of the pool."""
        return RegressionChallenge(
            predictions=pool.predictions[model].astype(np.float64),
            targets=pool.targets,
        )

    def utility(
        self,
        challenge: RegressionChallenge,
        sides: Sides,
        *,
        members: Table | None,
        joint: Joint,
    ) -> Utility:
        """Return R squared against the training mean on non-members, and the skill of the absolute error beside it."""
        outside = ~sides.tags
        predictions = challenge.predictions[outside]
        targets, units = challenge.targets[outside], sides.units[outside]
        known = challenge.targets[sides.tags]
        score = r_squared(
            predictions,
            targets,
            mean=float(known.mean()),
            units=units,
            level=joint.each,
        )
        skill = absolute_skill(
            predictions,
            targets,
            median=float(np.median(known)),
            units=units,
            # The skill decides nothing, so it takes no part of the joint confidence.
            level=joint.level,
        )
        stated = joint.state(score)
        return Utility(
            score=stated,
            gain=stated,  # R squared is a gain already
            definition="R squared: the share of the squared error of the training mean that the model saves; 1 is never wrong",
            baseline=0.0,
            baseline_words="always predicting the mean of the training records",
            beside={"skill of the mean absolute error": skill},
        )

    def theorems(
        self,
        challenge: RegressionChallenge,
        sides: Sides,
        *,
        pool: PredictionPool | None,
    ) -> Mapping[str, float]:
        """Return them by the absolute error; Theorem 2, which needs a bounded loss, by one that is cut off.

        The cut is at twice a typical error that the judged residuals have no part in: that of the pool's models on records
        they were not trained on, or without a pool the median deviation of the targets.
        """
        errors = np.abs(challenge.residuals)
        members, nonmembers = errors[sides.tags], errors[~sides.tags]
        p_reserved, p_defender, first = theorem_1(members, nonmembers)
        targets = challenge.targets
        if pool is not None:
            typical = pool.typical_error
        else:
            typical = float(np.median(np.abs(targets - np.median(targets))))
        typical = max(typical, FAINT * (float(targets.std()) or 1.0))
        cut = clipped_loss(challenge.residuals, typical_error=typical)
        e_reserved, e_defender, second = theorem_2(cut[sides.tags], cut[~sides.tags])
        return {
            "p_reserved": p_reserved,
            "p_defender": p_defender,
            "theorem_1": first,
            "e_reserved": e_reserved,
            "e_defender": e_defender,
            "theorem_2": second,
        }

    def views(self, challenge: RegressionChallenge, sides: Sides) -> Views:
        """Return the absolute error, and the prediction with the truth."""
        spread = float(challenge.targets.std()) or 1.0
        # On a logarithmic scale, where errors of members pile up near 0 and their density can be told apart.
        error = np.log(np.abs(challenge.residuals) / spread + FAINT)
        columns = (error, challenge.predictions / spread, challenge.targets / spread)
        return Views(
            density=(
                View(
                    feature="absolute error",
                    stream="worst/loss",
                    values=sides.by_unit(error),
                ),
            ),
            vectors=(
                View(
                    feature="prediction and truth",
                    stream="worst/answer",
                    values=np.column_stack([sides.by_unit(c) for c in columns]),
                ),
            ),
        )


REGRESSOR = RegressorKind()
