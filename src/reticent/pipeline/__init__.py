"""The one pipeline: order, controls, streams, resume."""

from reticent.pipeline._api import audit
from reticent.pipeline._audit import results_folder, run_audit
from reticent.pipeline._bind import (
    bound_to_product,
    must_be_unchanged,
    table_file_digest,
)
from reticent.pipeline._canaries import OneRunAudit, audit_in_one_run
from reticent.pipeline._case import divide, train_seed
from reticent.pipeline._clean import CleanResult, clean
from reticent.pipeline._coins import with_people_held_out
from reticent.pipeline._compare import ComparePlan, compare, run_comparison
from reticent.pipeline._defences import Candidate, candidates_of, defences_around
from reticent.pipeline._derive import Derived, derive_again
from reticent.pipeline._held_out import (
    CHOOSING_SPENDS,
    SHADOWS,
    HeldOutAudit,
    RealTable,
)
from reticent.pipeline._identify import WatchPlan, run_identification
from reticent.pipeline._input import must_be_writable, table_of
from reticent.pipeline._insider import LOOKS, plan_rounds
from reticent.pipeline._neighbour import (
    Dissimilar,
    LargestGradient,
    Mislabelled,
    Neighbour,
)
from reticent.pipeline._observed import check_observed, report_observed
from reticent.pipeline._outputs import audit_outputs
from reticent.pipeline._plan import (
    AuditPlan,
    AuditResult,
    PerRecord,
)
from reticent.pipeline._pool import SIZES, forecast, largest_size
from reticent.pipeline._repair import Repaired, run_repair
from reticent.pipeline._risk import Risk, relation_of
from reticent.pipeline._synthesize import (
    FittedTable,
    Method,
    SynthesisPlan,
    Synthesized,
    run_synthesis,
    synthesize,
)
from reticent.pipeline._synthesizer import Synthesizer
from reticent.pipeline._tables import NO_HOLDOUT, GivenTables, TablesAudit, critic_of
from reticent.pipeline._train import (
    TrainedProduct,
    TrainPlan,
    default_network,
    run_training,
    train,
)
from reticent.pipeline._verbs import identify, plan, training_to_watch
from reticent.pipeline._verify import Verification, dossier_file, verify
from reticent.pipeline._watched import watched_evidence

__all__ = [
    "CHOOSING_SPENDS",
    "LOOKS",
    "NO_HOLDOUT",
    "SHADOWS",
    "SIZES",
    "AuditPlan",
    "AuditResult",
    "Candidate",
    "CleanResult",
    "ComparePlan",
    "Derived",
    "Dissimilar",
    "FittedTable",
    "GivenTables",
    "HeldOutAudit",
    "LargestGradient",
    "Method",
    "Mislabelled",
    "Neighbour",
    "OneRunAudit",
    "PerRecord",
    "RealTable",
    "Repaired",
    "Risk",
    "SynthesisPlan",
    "Synthesized",
    "Synthesizer",
    "TablesAudit",
    "TrainPlan",
    "TrainedProduct",
    "Verification",
    "WatchPlan",
    "audit",
    "audit_in_one_run",
    "audit_outputs",
    "bound_to_product",
    "candidates_of",
    "check_observed",
    "clean",
    "compare",
    "critic_of",
    "default_network",
    "defences_around",
    "derive_again",
    "divide",
    "dossier_file",
    "forecast",
    "identify",
    "largest_size",
    "must_be_unchanged",
    "must_be_writable",
    "plan",
    "plan_rounds",
    "relation_of",
    "report_observed",
    "results_folder",
    "run_audit",
    "run_comparison",
    "run_identification",
    "run_repair",
    "run_synthesis",
    "run_training",
    "synthesize",
    "table_file_digest",
    "table_of",
    "train",
    "train_seed",
    "training_to_watch",
    "verify",
    "watched_evidence",
    "with_people_held_out",
]
