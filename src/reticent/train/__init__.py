"""Turn records into products."""

from reticent.train.many import PoolTrainer, train_many
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.networks import (
    ModuleProduct,
    ModuleTrainer,
    NetworkTrainer,
)
from reticent.train.private.budget import promise_of, spent, with_noise_for
from reticent.train.private.classifier import PrivateNetworkClassifier
from reticent.train.private.release import (
    release_answers,
    release_choice,
    release_coordinates,
    release_numbers,
)
from reticent.train.private.trainers import PrivateModuleTrainer, PrivateNetworkTrainer
from reticent.train.recipes import (
    SGD,
    Adam,
    Module,
    Network,
    PrivateModule,
    PrivateNetwork,
    Training,
    fitting_batch,
)
from reticent.train.spec import parse_trainer, parse_treatment, spell

__all__ = [
    "SGD",
    "Adam",
    "EstimatorTrainer",
    "Module",
    "ModuleProduct",
    "ModuleTrainer",
    "Network",
    "NetworkTrainer",
    "PoolTrainer",
    "PrivateModule",
    "PrivateModuleTrainer",
    "PrivateNetwork",
    "PrivateNetworkClassifier",
    "PrivateNetworkTrainer",
    "Training",
    "fitting_batch",
    "parse_trainer",
    "parse_treatment",
    "promise_of",
    "release_answers",
    "release_choice",
    "release_coordinates",
    "release_numbers",
    "spell",
    "spent",
    "standard_preprocessing",
    "train_many",
    "with_noise_for",
]
