"""A product's answers and records become scores; attackers never hold the answer."""

from reticent.attack._base import Attack, Challenge, Knowledge, Scores, SealedTags
from reticent.attack._pool import Pool, balanced_masks
from reticent.attack.learned import LearnedOutputs
from reticent.attack.lira import LikelihoodRatio, LikelihoodRatioOffline
from reticent.attack.outputs import Confidence, Entropy, Loss, ModifiedEntropy
from reticent.attack.retraining import Regime, RetrainingRounds
from reticent.attack.rmia import RelativeRatio
from reticent.attack.shadow import CombinedPool, ShadowModels

__all__ = [
    "Attack",
    "Challenge",
    "CombinedPool",
    "Confidence",
    "Entropy",
    "Knowledge",
    "LearnedOutputs",
    "LikelihoodRatio",
    "LikelihoodRatioOffline",
    "Loss",
    "ModifiedEntropy",
    "Pool",
    "Regime",
    "RelativeRatio",
    "RetrainingRounds",
    "Scores",
    "SealedTags",
    "ShadowModels",
    "balanced_masks",
]
