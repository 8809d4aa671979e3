"""Turn records into products."""

from reticent.train.many import train_many
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.networks import NetworkProduct, NetworkTrainer
from reticent.train.recipes import SGD, Adam, Network
from reticent.train.spec import parse_trainer

__all__ = [
    "SGD",
    "Adam",
    "EstimatorTrainer",
    "Network",
    "NetworkProduct",
    "NetworkTrainer",
    "parse_trainer",
    "standard_preprocessing",
    "train_many",
]
