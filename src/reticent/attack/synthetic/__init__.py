"""Membership attacks on synthetic tables: compare records with the rows that would be released."""

from reticent.attack.synthetic._base import Comparison, SyntheticChallenge, Tables
from reticent.attack.synthetic._nearest import nearest
from reticent.attack.synthetic.critic import CriticScore
from reticent.attack.synthetic.density import DensityRatio
from reticent.attack.synthetic.distances import (
    DistanceRatio,
    GowerDistance,
    HammingDifference,
    RankDistance,
)
from reticent.attack.synthetic.exact_values import (
    ExactPairs,
    ExactTriples,
    ExactValues,
)
from reticent.attack.synthetic.identical import IdenticalRows
from reticent.attack.synthetic.learned import LearnedTable
from reticent.attack.synthetic.marginals import PairMarginals
from reticent.attack.synthetic.shadow import ShadowTable
from reticent.attack.synthetic.tree_likelihood import TreeLikelihood

__all__ = [
    "COMPARISONS",
    "Comparison",
    "CriticScore",
    "DensityRatio",
    "DistanceRatio",
    "ExactPairs",
    "ExactTriples",
    "ExactValues",
    "GowerDistance",
    "HammingDifference",
    "IdenticalRows",
    "LearnedTable",
    "PairMarginals",
    "RankDistance",
    "ShadowTable",
    "SyntheticChallenge",
    "Tables",
    "TreeLikelihood",
    "nearest",
]

# The battery, in the order of the report: one file, or one class, and one line here.
COMPARISONS: tuple[Comparison, ...] = (
    IdenticalRows(),
    RankDistance(),
    GowerDistance(),
    DistanceRatio(),
    HammingDifference(),
    ExactValues(),
    ExactPairs(),
    ExactTriples(),
    TreeLikelihood(),
    PairMarginals(),
    DensityRatio(),
)
