"""Optimally soft labels: train on what teachers that never saw a record say of it, moved towards its label."""

from reticent.train.soft.procedure import with_noise_for_procedure
from reticent.train.soft.recipes import (
    PerRecord,
    RepairedLabels,
    SoftLabels,
    Validated,
)
from reticent.train.soft.targets import (
    LeaveOut,
    leave_out,
    mixed_targets,
    repaired_targets,
    shift_alphas,
    shifted_targets,
)
from reticent.train.soft.trainer import SoftLabelTrainer

__all__ = [
    "LeaveOut",
    "PerRecord",
    "RepairedLabels",
    "SoftLabelTrainer",
    "SoftLabels",
    "Validated",
    "leave_out",
    "mixed_targets",
    "repaired_targets",
    "shift_alphas",
    "shifted_targets",
    "with_noise_for_procedure",
]
