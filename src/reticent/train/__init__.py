"""Turn records into products."""

from reticent.train.many import train_many
from reticent.train.models import EstimatorTrainer, standard_preprocessing
from reticent.train.spec import parse_trainer

__all__ = ["EstimatorTrainer", "parse_trainer", "standard_preprocessing", "train_many"]
