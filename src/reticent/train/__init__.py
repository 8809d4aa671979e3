"""Turn records into products."""

from reticent.train.many import PoolTrainer, train_many
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.networks import ModuleTrainer, NetworkProduct, NetworkTrainer
from reticent.train.recipes import SGD, Adam, Module, Network, Training
from reticent.train.spec import parse_trainer

__all__ = [
    "SGD",
    "Adam",
    "EstimatorTrainer",
    "Module",
    "ModuleTrainer",
    "Network",
    "NetworkProduct",
    "NetworkTrainer",
    "PoolTrainer",
    "Training",
    "parse_trainer",
    "standard_preprocessing",
    "train_many",
]
