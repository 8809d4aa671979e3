"""Turn a product's answers and its records into scores; an attack never holds the tag it is asked for."""

from reticent.attack._base import (
    Attack,
    Challenge,
    Knowledge,
    Lessons,
    Need,
    Scores,
    SealedTags,
)
from reticent.attack._searched import Searched
from reticent.attack.blind import BlindBaseline, blind_baseline
from reticent.attack.boost import Boosting, XGBoosting
from reticent.attack.combined import CombinedPool
from reticent.attack.dissimilar import (
    Chosen,
    ChosenPair,
    most_dissimilar_pair,
    most_dissimilar_record,
)
from reticent.attack.distances import (
    Dissimilarity,
    Euclidean,
    Gower,
    Records,
    StructuralSimilarity,
)
from reticent.attack.learned import LearnedOutputs
from reticent.attack.lira import LikelihoodRatio, LikelihoodRatioOffline
from reticent.attack.outputs import Confidence, Entropy, Gap, Loss, ModifiedEntropy
from reticent.attack.population import Population
from reticent.attack.quantile import QuantileRegression
from reticent.attack.reader import (
    FileCounts,
    FoundAt,
    Reader,
    count_file,
    search_file,
)
from reticent.attack.retraining import (
    Regime,
    Retrained,
    RetrainingRounds,
    Round,
    play_round,
)
from reticent.attack.rmia import RelativeRatio
from reticent.attack.shadow import ShadowModels
from reticent.attack.targets import score_targets
from reticent.attack.watching import log_odds
from reticent.attack.whitebox import GradientNorm, LearnedWhiteBox

__all__ = [
    "Attack",
    "BlindBaseline",
    "Boosting",
    "Challenge",
    "Chosen",
    "ChosenPair",
    "CombinedPool",
    "Confidence",
    "Dissimilarity",
    "Entropy",
    "Euclidean",
    "FileCounts",
    "FoundAt",
    "Gap",
    "Gower",
    "GradientNorm",
    "Knowledge",
    "LearnedOutputs",
    "LearnedWhiteBox",
    "Lessons",
    "LikelihoodRatio",
    "LikelihoodRatioOffline",
    "Loss",
    "ModifiedEntropy",
    "Need",
    "Population",
    "QuantileRegression",
    "Reader",
    "Records",
    "Regime",
    "RelativeRatio",
    "Retrained",
    "RetrainingRounds",
    "Round",
    "Scores",
    "SealedTags",
    "Searched",
    "ShadowModels",
    "StructuralSimilarity",
    "XGBoosting",
    "blind_baseline",
    "count_file",
    "log_odds",
    "most_dissimilar_pair",
    "most_dissimilar_record",
    "play_round",
    "score_targets",
    "search_file",
]
