"""Decide by rules that were written down before."""

from reticent.evidence import Limit, Outcome
from reticent.policy._decide import (
    Control,
    Decision,
    Gap,
    LimitCheck,
    Verdict,
    decide,
)
from reticent.policy._first_form import FIRST_NAMES
from reticent.policy._policy import SHIPPED, Policy, read_policy

__all__ = [
    "FIRST_NAMES",
    "SHIPPED",
    "Control",
    "Decision",
    "Gap",
    "Limit",
    "LimitCheck",
    "Outcome",
    "Policy",
    "Verdict",
    "decide",
    "read_policy",
]
