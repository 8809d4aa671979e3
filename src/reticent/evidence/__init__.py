"""Scores and answers become bounded statements: pure statistics on arrays."""

from reticent.evidence._estimate import Estimate, best_of, split_level
from reticent.evidence._measure import (
    AttackEvidence,
    Evidence,
    GroupEvidence,
    InsiderEvidence,
    RegimeEvidence,
    measure_attack,
    measure_groups,
    strongest,
    worst_privacy,
)
from reticent.evidence.by_group import ByGroup, by_group
from reticent.evidence.calibration import Calibration, CalibrationBin, calibration
from reticent.evidence.disparity import (
    Anova,
    Correction,
    Crossed,
    PairDifference,
    adjust,
    anova,
    crossed,
    pairwise,
    vulnerability_bound,
)
from reticent.evidence.epsilon import epsilon_ceiling, epsilon_lower_bound
from reticent.evidence.histogram import (
    Histogram,
    individual_histogram,
    posterior_histogram,
    score_histogram,
)
from reticent.evidence.ltu import (
    PairWins,
    individual_privacy,
    ltu_accuracy,
    pair_wins,
    privacy_from_accuracy,
    privacy_from_rounds,
    theorem_1,
    theorem_2,
    utility,
)
from reticent.evidence.pool import (
    Box,
    Convergence,
    DisparityEvidence,
    GroupSpread,
    LossQuantile,
    PoolEvidence,
    disparity_of,
    loss_quantiles,
)
from reticent.evidence.power import (
    records_to_resolve,
    records_to_settle,
    smallest_visible_leak,
)
from reticent.evidence.proportion import clopper_pearson
from reticent.evidence.roc import RocPoint, exposed_share, roc_points, tpr_at_fpr
from reticent.evidence.shares import estimate_share
from reticent.evidence.targets import TargetsEvidence, measure_targets
from reticent.evidence.vulnerability import guesses, vulnerability
from reticent.evidence.worst_case import (
    WorstCase,
    subgroup_aware,
    worst_case_density,
    worst_case_discrete,
    worst_case_vectors,
)

__all__ = [
    "Anova",
    "AttackEvidence",
    "Box",
    "ByGroup",
    "Calibration",
    "CalibrationBin",
    "Convergence",
    "Correction",
    "Crossed",
    "DisparityEvidence",
    "Estimate",
    "Evidence",
    "GroupEvidence",
    "GroupSpread",
    "Histogram",
    "InsiderEvidence",
    "LossQuantile",
    "PairDifference",
    "PairWins",
    "PoolEvidence",
    "RegimeEvidence",
    "RocPoint",
    "TargetsEvidence",
    "WorstCase",
    "adjust",
    "anova",
    "best_of",
    "by_group",
    "calibration",
    "clopper_pearson",
    "crossed",
    "disparity_of",
    "epsilon_ceiling",
    "epsilon_lower_bound",
    "estimate_share",
    "exposed_share",
    "guesses",
    "individual_histogram",
    "individual_privacy",
    "loss_quantiles",
    "ltu_accuracy",
    "measure_attack",
    "measure_groups",
    "measure_targets",
    "pair_wins",
    "pairwise",
    "posterior_histogram",
    "privacy_from_accuracy",
    "privacy_from_rounds",
    "records_to_resolve",
    "records_to_settle",
    "roc_points",
    "score_histogram",
    "smallest_visible_leak",
    "split_level",
    "strongest",
    "subgroup_aware",
    "theorem_1",
    "theorem_2",
    "tpr_at_fpr",
    "utility",
    "vulnerability",
    "vulnerability_bound",
    "worst_case_density",
    "worst_case_discrete",
    "worst_case_vectors",
    "worst_privacy",
]
