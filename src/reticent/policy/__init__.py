"""Decide by rules that were written down before."""

from reticent.policy._decide import (
    Control,
    Decision,
    LimitCheck,
    Outcome,
    Verdict,
    decide,
)
from reticent.policy._policy import SHIPPED, THREATS, Limits, Policy, read_policy

__all__ = [
    "SHIPPED",
    "THREATS",
    "Control",
    "Decision",
    "LimitCheck",
    "Limits",
    "Outcome",
    "Policy",
    "Verdict",
    "decide",
    "read_policy",
]
