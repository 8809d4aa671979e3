"""What training makes and attacks read: many models on known parts of the records, and trainings that were watched."""

from reticent.pool._pool import (
    FLOOR,
    Pool,
    balanced_masks,
    logit_of_probability,
    logit_of_truth,
)
from reticent.pool._trace import Side, Trace, Truth

__all__ = [
    "FLOOR",
    "Pool",
    "Side",
    "Trace",
    "Truth",
    "balanced_masks",
    "logit_of_probability",
    "logit_of_truth",
]
