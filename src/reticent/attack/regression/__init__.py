"""Membership attacks on regression models: turn predictions and records into scores."""

from reticent.attack.regression._base import (
    RegressionChallenge,
    RegressionKnowledge,
)
from reticent.attack.regression.combined import CombinedResidual
from reticent.attack.regression.gap_t import GapT
from reticent.attack.regression.quantile import QuantileResidual
from reticent.attack.regression.residual import Residual
from reticent.attack.regression.rmia import RelativeResidual

__all__ = [
    "CombinedResidual",
    "GapT",
    "QuantileResidual",
    "RegressionChallenge",
    "RegressionKnowledge",
    "RelativeResidual",
    "Residual",
]
