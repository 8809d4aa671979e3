"""The one pipeline: order, controls, streams, resume."""

from reticent.pipeline._answers import train_seed
from reticent.pipeline._api import audit, audit_outputs
from reticent.pipeline._audit import divide, results_folder, run_audit
from reticent.pipeline._canaries import OneRunAudit, audit_in_one_run
from reticent.pipeline._identify import WatchPlan, identify
from reticent.pipeline._neighbour import (
    Dissimilar,
    LargestGradient,
    Mislabelled,
    Neighbour,
)
from reticent.pipeline._observed import report_observed
from reticent.pipeline._plan import (
    DEFAULT_ATTACKS,
    OUTPUT_ATTACKS,
    POOL_ATTACKS,
    WHITE_BOX_ATTACKS,
    AuditPlan,
    AuditResult,
    PerRecord,
)
from reticent.pipeline._stages import Stages

__all__ = [
    "DEFAULT_ATTACKS",
    "OUTPUT_ATTACKS",
    "POOL_ATTACKS",
    "WHITE_BOX_ATTACKS",
    "AuditPlan",
    "AuditResult",
    "Dissimilar",
    "LargestGradient",
    "Mislabelled",
    "Neighbour",
    "OneRunAudit",
    "PerRecord",
    "Stages",
    "WatchPlan",
    "audit",
    "audit_in_one_run",
    "audit_outputs",
    "divide",
    "identify",
    "report_observed",
    "results_folder",
    "run_audit",
    "train_seed",
]
