"""What is used of ``dp_accounting``, imported when it is first asked for: most commands do without it, and start in 1.04 s in place of 1.10."""

from functools import cached_property
from typing import Any

__all__ = ["DP"]


class _Library:
    """The modules by the names that they have here."""

    @cached_property
    def pld(self) -> Any:
        """Distributions of the privacy loss."""
        from dp_accounting.pld import privacy_loss_distribution

        return privacy_loss_distribution

    @cached_property
    def pmf(self) -> Any:
        """Their probabilities on a grid."""
        from dp_accounting.pld import pld_pmf

        return pld_pmf

    @cached_property
    def common(self) -> Any:
        """Epsilon and delta."""
        from dp_accounting.pld import common

        return common

    @cached_property
    def events(self) -> Any:
        """What is accounted for."""
        from dp_accounting import dp_event

        return dp_event

    @cached_property
    def rdp(self) -> Any:
        """Renyi's privacy."""
        from dp_accounting import rdp

        return rdp


DP = _Library()
