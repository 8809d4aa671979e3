"""What a mechanism guarantees, and which mechanism meets a target: mathematics without data."""

from reticent.account.calibrate import calibrate
from reticent.account.choice import Choice
from reticent.account.combined import Composition, Group
from reticent.account.gaussian import (
    analytic_noise,
    gaussian_delta,
    gaussian_epsilon,
)
from reticent.account.guarantee import Guarantee
from reticent.account.mechanisms import (
    Exponential,
    Failure,
    Gaussian,
    Laplace,
    Mechanism,
    NonSphericalGaussian,
    PrivateTraining,
    RandomisedResponse,
    Relation,
    SubsampledGaussian,
)
from reticent.account.plan import Course, Plan, SourceFormulas, Terms, make_plan
from reticent.account.renyi import renyi_epsilon
from reticent.account.source import (
    advantage_of_source,
    belief_of_source,
    classical_noise,
    epsilon_of_source,
    renyi_of_source,
)
from reticent.account.table import (
    BELIEFS,
    FALSE_RATES,
    Curves,
    PlanTable,
    Stops,
    curves_of,
    plan_table,
)
from reticent.account.targets import (
    Budget,
    ErrorRates,
    MaxAdvantage,
    MaxPosterior,
    Target,
)
from reticent.account.tradeoff import TradeOff, trade_off

__all__ = [
    "BELIEFS",
    "FALSE_RATES",
    "Budget",
    "Choice",
    "Composition",
    "Course",
    "Curves",
    "ErrorRates",
    "Exponential",
    "Failure",
    "Gaussian",
    "Group",
    "Guarantee",
    "Laplace",
    "MaxAdvantage",
    "MaxPosterior",
    "Mechanism",
    "NonSphericalGaussian",
    "Plan",
    "PlanTable",
    "PrivateTraining",
    "RandomisedResponse",
    "Relation",
    "SourceFormulas",
    "Stops",
    "SubsampledGaussian",
    "Target",
    "Terms",
    "TradeOff",
    "advantage_of_source",
    "analytic_noise",
    "belief_of_source",
    "calibrate",
    "classical_noise",
    "curves_of",
    "epsilon_of_source",
    "gaussian_delta",
    "gaussian_epsilon",
    "make_plan",
    "plan_table",
    "renyi_epsilon",
    "renyi_of_source",
    "trade_off",
]
