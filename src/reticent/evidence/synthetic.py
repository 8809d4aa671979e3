"""What is found out about a synthetic table beside the attacks on it, in counts and estimates: no record and no value stands here."""

from dataclasses import dataclass

from reticent.evidence._estimate import Estimate

__all__ = ["ColumnLeak", "IsolatedEvidence", "SyntheticEvidence"]


@dataclass(frozen=True, kw_only=True)
class ColumnLeak:
    """How much the exact values of one column tell about membership.

    Parameters
    ----------
    name : str
        The column.
    is_number : bool
        Whether it holds numbers.
    accuracy : Estimate
        LTU accuracy of its exact values alone; the intervals hold together over all columns.
    rounded : Estimate or None
        The same after the column was put into at most 16 bins, in the synthetic table and for everybody; None if it has no more values than that.
    """

    name: str
    is_number: bool
    accuracy: Estimate
    rounded: Estimate | None

    @property
    def leaks(self) -> bool:
        """Whether the values tell members from others beyond chance."""
        return self.accuracy.low > 0.5


@dataclass(frozen=True, kw_only=True)
class IsolatedEvidence:
    """The strongest attack on the people whom nobody resembles.

    Parameters
    ----------
    share : float
        Share of all people, the most isolated by their distance to the auxiliary table.
    members, nonmembers : int
        How many of them are on either side.
    accuracy : Estimate
        LTU accuracy among them; the choice of the attack is paid for.
    """

    share: float
    members: int
    nonmembers: int
    accuracy: Estimate


@dataclass(frozen=True, kw_only=True)
class SyntheticEvidence:
    """What is known about a synthetic table beside the attacks.

    Parameters
    ----------
    rows : int
        Its rows.
    auxiliary : int
        Records of other people that attackers compare with.
    columns : tuple of ColumnLeak
        Its columns, those that tell most first.
    isolated : IsolatedEvidence or None
        The most isolated people; None if there are too few of them.
    """

    rows: int
    auxiliary: int
    columns: tuple[ColumnLeak, ...]
    isolated: IsolatedEvidence | None = None

    @property
    def leaking(self) -> tuple[ColumnLeak, ...]:
        """The columns whose exact values tell members from others."""
        return tuple(column for column in self.columns if column.leaks)
