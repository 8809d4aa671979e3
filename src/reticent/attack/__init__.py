"""A product's answers and records become scores; attackers never hold the answer."""

from reticent.attack._base import Attack, Challenge, Knowledge, Scores, SealedTags
from reticent.attack.learned import LearnedOutputs
from reticent.attack.outputs import Confidence, Entropy, Loss, ModifiedEntropy
from reticent.attack.retraining import Regime, RetrainingRounds

__all__ = [
    "Attack",
    "Challenge",
    "Confidence",
    "Entropy",
    "Knowledge",
    "LearnedOutputs",
    "Loss",
    "ModifiedEntropy",
    "Regime",
    "RetrainingRounds",
    "Scores",
    "SealedTags",
]
