"""The blind baseline: tell members from non-members without looking at the product.

If that is possible, they differ by more than membership (another year, another hospital), and every
attack on the product would mistake that difference for a leak.
"""

from reticent.attack.blind._baseline import BlindBaseline, blind_baseline
from reticent.attack.blind._power import Visible

__all__ = ["BlindBaseline", "Visible", "blind_baseline"]
