"""Synthetic tables from noisy counts of columns and of pairs of columns."""

from reticent.train.marginals.budget import Budget
from reticent.train.marginals.fitted import FittedMarginals
from reticent.train.marginals.recipe import MarginalGenerator, size_class

__all__ = ["Budget", "FittedMarginals", "MarginalGenerator", "size_class"]
