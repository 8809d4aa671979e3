"""A product's answers and records become scores; attackers never hold the answer."""

from reticent.attack._base import Attack, Challenge, Knowledge, Scores, SealedTags
from reticent.attack._boost import Boosting, XGBoosting
from reticent.attack._pool import Pool, balanced_masks
from reticent.attack.combined import CombinedPool
from reticent.attack.learned import LearnedOutputs
from reticent.attack.lira import LikelihoodRatio, LikelihoodRatioOffline
from reticent.attack.outputs import Confidence, Entropy, Gap, Loss, ModifiedEntropy
from reticent.attack.population import Population
from reticent.attack.quantile import QuantileRegression
from reticent.attack.retraining import Regime, RetrainingRounds
from reticent.attack.rmia import RelativeRatio
from reticent.attack.shadow import ShadowModels
from reticent.attack.targets import score_targets
from reticent.attack.watching import log_odds
from reticent.attack.whitebox import GradientNorm, LearnedWhiteBox

__all__ = [
    "Attack",
    "Boosting",
    "Challenge",
    "CombinedPool",
    "Confidence",
    "Entropy",
    "Gap",
    "GradientNorm",
    "Knowledge",
    "LearnedOutputs",
    "LearnedWhiteBox",
    "LikelihoodRatio",
    "LikelihoodRatioOffline",
    "Loss",
    "ModifiedEntropy",
    "Pool",
    "Population",
    "QuantileRegression",
    "Regime",
    "RelativeRatio",
    "RetrainingRounds",
    "Scores",
    "SealedTags",
    "ShadowModels",
    "XGBoosting",
    "balanced_masks",
    "log_odds",
    "score_targets",
]
