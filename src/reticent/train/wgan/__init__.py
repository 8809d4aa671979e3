"""Synthetic tables from a generator that is trained against a critic, with bounds on what the critic learns of a record."""

from reticent.train.wgan.budget import CriticBudget
from reticent.train.wgan.modes import Clip, Lipschitz, Tanh, Thesis
from reticent.train.wgan.recipe import WassersteinGenerator

__all__ = [
    "Clip",
    "CriticBudget",
    "Lipschitz",
    "Tanh",
    "Thesis",
    "WassersteinGenerator",
]
