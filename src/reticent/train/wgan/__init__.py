"""Synthetic tables from a generator that is trained against a critic, with bounds on what the critic learns of a record."""

from reticent.train.wgan.activations import LeakyReLU, MaxMin
from reticent.train.wgan.bounds import Block, Bounds, blocks_of, bounds_of
from reticent.train.wgan.budget import CriticBudget
from reticent.train.wgan.comparisons import PrintedBounds, printed_bounds
from reticent.train.wgan.critics import (
    Critic,
    Factors,
    critic_of,
    values_and_factors,
)
from reticent.train.wgan.healthgan import HealthGAN
from reticent.train.wgan.modes import ClipMode, LipschitzMode, TanhMode, ThesisMode
from reticent.train.wgan.penalty import penalty_factors, spectral_penalty_bounds
from reticent.train.wgan.recipe import WassersteinGenerator
from reticent.train.wgan.regions import Region
from reticent.train.wgan.released import ReleasedCritic, load_critic
from reticent.train.wgan.shapes import Allotment, allot

__all__ = [
    "Allotment",
    "Block",
    "Bounds",
    "ClipMode",
    "Critic",
    "CriticBudget",
    "Factors",
    "HealthGAN",
    "LeakyReLU",
    "LipschitzMode",
    "MaxMin",
    "PrintedBounds",
    "Region",
    "ReleasedCritic",
    "TanhMode",
    "ThesisMode",
    "WassersteinGenerator",
    "allot",
    "blocks_of",
    "bounds_of",
    "critic_of",
    "load_critic",
    "penalty_factors",
    "printed_bounds",
    "spectral_penalty_bounds",
    "values_and_factors",
]
