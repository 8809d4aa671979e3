"""Contracts that every trainer, attack and mechanism must pass; public, so that others can run them.

Statistical checks have a stated false-alarm rate: correct code fails them once in a million runs.
"""

from reticent.testing._attacks import (
    FALSE_ALARM,
    PinnedTags,
    check_attack,
    check_regression_attack,
)
from reticent.testing._mechanisms import check_mechanism
from reticent.testing._trainers import check_trainer

__all__ = [
    "FALSE_ALARM",
    "PinnedTags",
    "check_attack",
    "check_mechanism",
    "check_regression_attack",
    "check_trainer",
]
