"""What training produces and attacks read: many models trained on known parts of the records, and observed trainings."""

from reticent.pool._models import ModelPool, balanced_masks, record_blocks
from reticent.pool._noise import Noise, kept_places
from reticent.pool._pool import FLOOR, Pool, logit_of_probability, logit_of_truth
from reticent.pool._predictions import PredictionPool
from reticent.pool._tables import TablePool
from reticent.pool._trace import Side, Trace, Truth

__all__ = [
    "FLOOR",
    "ModelPool",
    "Noise",
    "Pool",
    "PredictionPool",
    "Side",
    "TablePool",
    "Trace",
    "Truth",
    "balanced_masks",
    "kept_places",
    "logit_of_probability",
    "logit_of_truth",
    "record_blocks",
]
