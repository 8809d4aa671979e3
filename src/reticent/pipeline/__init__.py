"""The one pipeline: order, controls, streams, resume."""

from reticent.pipeline._answers import train_seed
from reticent.pipeline._api import audit, audit_outputs
from reticent.pipeline._audit import divide, results_folder, run_audit
from reticent.pipeline._plan import (
    DEFAULT_ATTACKS,
    OUTPUT_ATTACKS,
    POOL_ATTACKS,
    AuditPlan,
    AuditResult,
    PerRecord,
)
from reticent.pipeline._stages import Stages

__all__ = [
    "DEFAULT_ATTACKS",
    "OUTPUT_ATTACKS",
    "POOL_ATTACKS",
    "AuditPlan",
    "AuditResult",
    "PerRecord",
    "Stages",
    "audit",
    "audit_outputs",
    "divide",
    "results_folder",
    "run_audit",
    "train_seed",
]
