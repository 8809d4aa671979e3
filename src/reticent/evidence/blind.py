"""What the records alone tell about membership, and the smallest difference that would have been seen."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BlindEvidence"]


@dataclass(frozen=True, kw_only=True)
class BlindEvidence:
    """The blind baseline: whether members and non-members differ without the product.

    Parameters
    ----------
    p_value : float
        Of "the two sides are alike", over all tests together.
    false_alarm : float
        The p-value up to which they count as different.
    accuracy : float
        LTU accuracy of the strongest sign; 1/2 is chance. Chosen among many, it leans upwards.
    sign : str
        What the strongest sign is, in words.
    rows, of_rows : int
        Records that were looked at, and all.
    at_random : bool
        Whether the audit itself drew the members at random from one table.
    power : float
        Probability with which each of the following would have been seen, at least.
    smallest : mapping of str to float
        The smallest differences: ``shift`` of one property in standard deviations, the LTU ``accuracy`` that it gives,
        ``learned_accuracy`` of a classifier on other records, and ``wrong_classes`` on one side as a share, or ``target_shift`` for the same record in
        standard deviations. What could not have been seen at any size is missing.
    """

    p_value: float
    false_alarm: float
    accuracy: float
    sign: str
    rows: int
    of_rows: int
    at_random: bool
    power: float
    smallest: Mapping[str, float]

    @property
    def differs(self) -> bool:
        """Whether the two sides were told apart."""
        return self.p_value <= self.false_alarm
