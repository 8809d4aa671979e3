"""Scores and answers become bounded statements: pure statistics on arrays."""

from reticent.evidence._estimate import Estimate, best_of, split_level
from reticent.evidence._measure import (
    AttackEvidence,
    Evidence,
    GroupEvidence,
    Histogram,
    InsiderEvidence,
    RegimeEvidence,
    individual_histogram,
    measure_attack,
    measure_groups,
    score_histogram,
    strongest,
    worst_privacy,
)
from reticent.evidence.calibration import Calibration, CalibrationBin, calibration
from reticent.evidence.disparity import (
    Anova,
    Correction,
    PairDifference,
    adjust,
    anova,
    pairwise,
    vulnerability_bound,
)
from reticent.evidence.epsilon import epsilon_ceiling, epsilon_lower_bound
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
from reticent.evidence.power import (
    records_to_resolve,
    records_to_settle,
    smallest_visible_leak,
)
from reticent.evidence.proportion import clopper_pearson
from reticent.evidence.roc import RocPoint, exposed_share, roc_points, tpr_at_fpr
from reticent.evidence.vulnerability import guesses, vulnerability

__all__ = [
    "Anova",
    "AttackEvidence",
    "Calibration",
    "CalibrationBin",
    "Correction",
    "Estimate",
    "Evidence",
    "GroupEvidence",
    "Histogram",
    "InsiderEvidence",
    "PairDifference",
    "PairWins",
    "RegimeEvidence",
    "RocPoint",
    "adjust",
    "anova",
    "best_of",
    "calibration",
    "clopper_pearson",
    "epsilon_ceiling",
    "epsilon_lower_bound",
    "exposed_share",
    "guesses",
    "individual_histogram",
    "individual_privacy",
    "ltu_accuracy",
    "measure_attack",
    "measure_groups",
    "pair_wins",
    "pairwise",
    "privacy_from_accuracy",
    "privacy_from_rounds",
    "records_to_resolve",
    "records_to_settle",
    "roc_points",
    "score_histogram",
    "smallest_visible_leak",
    "split_level",
    "strongest",
    "theorem_1",
    "theorem_2",
    "tpr_at_fpr",
    "utility",
    "vulnerability",
    "vulnerability_bound",
    "worst_privacy",
]
