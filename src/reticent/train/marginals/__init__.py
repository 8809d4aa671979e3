"""Synthetic tables from noisy counts of columns and of pairs of columns."""

from reticent.train.marginals.budget import Budget
from reticent.train.marginals.fitted import FittedMarginals
from reticent.train.marginals.private_table import PrivateTable, size_class
from reticent.train.marginals.recipe import MarginalGenerator

__all__ = [
    "Budget",
    "FittedMarginals",
    "MarginalGenerator",
    "PrivateTable",
    "size_class",
]
