"""Turn records into products."""

from reticent.train.many import PoolTrainer, train_many
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.networks import (
    ModuleTrainer,
    NetworkTrainer,
)
from reticent.train.private.budget import (
    guarantee_of,
    proven_epsilon,
    spent,
    with_noise_for,
)
from reticent.train.private.classifier import PrivateNetworkClassifier
from reticent.train.private.opacus import (
    OpacusClaim,
    claim_of_opacus,
    product_of_module,
)
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
from reticent.train.spec import parse_clipping, parse_trainer, spell

__all__ = [
    "SGD",
    "Adam",
    "EstimatorTrainer",
    "Module",
    "ModuleTrainer",
    "Network",
    "NetworkTrainer",
    "OpacusClaim",
    "PoolTrainer",
    "PrivateModule",
    "PrivateModuleTrainer",
    "PrivateNetwork",
    "PrivateNetworkClassifier",
    "PrivateNetworkTrainer",
    "Training",
    "claim_of_opacus",
    "fitting_batch",
    "guarantee_of",
    "parse_clipping",
    "parse_trainer",
    "product_of_module",
    "proven_epsilon",
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
