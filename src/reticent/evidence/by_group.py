"""Compute any measure of members and non-members separately for each group."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate, split_level

__all__ = ["ByGroup", "by_group"]

Measure = Callable[[NDArray[np.float64], NDArray[np.float64], float], Estimate]


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """A measure of each group; the intervals hold together.

    Parameters
    ----------
    names : tuple of str
        The groups, sorted.
    members, nonmembers : tuple of int
        Number of members and of non-members in each group.
    estimates : tuple of Estimate
        The measure of each group.
    """

    names: tuple[str, ...]
    members: tuple[int, ...]
    nonmembers: tuple[int, ...]
    estimates: tuple[Estimate, ...]

    def columns(self) -> dict[str, list[object]]:
        """Return columns of equal length, as ``pandas.DataFrame(result.columns())`` takes them."""
        return {
            "group": list(self.names),
            "members": list(self.members),
            "nonmembers": list(self.nonmembers),
            "value": [e.value for e in self.estimates],
            "low": [e.low for e in self.estimates],
            "high": [e.high for e in self.estimates],
        }

    def difference(self) -> Estimate:
        """Return the largest value minus the smallest; its low end is 0 when all intervals overlap."""
        values = [e.value for e in self.estimates]
        return Estimate(
            value=max(values) - min(values),
            low=max(
                0.0,
                max(e.low for e in self.estimates)
                - min(e.high for e in self.estimates),
            ),
            high=max(e.high for e in self.estimates)
            - min(e.low for e in self.estimates),
            level=self.estimates[0].level,
            method=f"ends of {len(values)} joint intervals",
        )


def by_group(
    measure: Measure,
    members: ArrayLike,
    nonmembers: ArrayLike,
    member_groups: ArrayLike,
    nonmember_groups: ArrayLike,
    *,
    level: float,
    smallest: int = 20,
) -> ByGroup:
    """Return a measure of every group that is large enough.

    Parameters
    ----------
    measure : callable
        Maps the members' values, the non-members' values and a confidence level to an estimate, for example
        ``lambda d, r, level: ltu_accuracy(d, r, level=level)``.
    members, nonmembers : array-like, one entry (or row) per record
        Values from which the measure is computed.
    member_groups, nonmember_groups : array-like
        Group of each record.
    level : float
        Confidence of all intervals together (Bonferroni).
    smallest : int
        Smallest number of members, and of non-members, that a group must have to be named.

    Examples
    --------
    >>> from reticent.evidence import ltu_accuracy
    >>> rng = np.random.default_rng(0)
    >>> group = np.arange(200) % 2
    >>> result = by_group(lambda d, r, level: ltu_accuracy(d, r, level=level),
    ...                   rng.normal(2 * group), rng.normal(size=200), group, group, level=0.95)
    >>> result.names, [round(e.value, 1) for e in result.estimates], result.difference().low > 0
    (('0', '1'), [0.5, 0.9], True)
    """
    d, r = np.asarray(members), np.asarray(nonmembers)
    d_group, r_group = (
        np.asarray(groups).astype(str) for groups in (member_groups, nonmember_groups)
    )
    if len(d) != len(d_group) or len(r) != len(r_group):
        raise InvalidInput(
            f"{len(d)} members and {len(r)} non-members do not fit {len(d_group)} and {len(r_group)} groups; pass one group per "
            "record."
        )
    names = [
        str(name)
        for name in np.unique(np.concatenate([d_group, r_group]))
        if min((d_group == name).sum(), (r_group == name).sum()) >= smallest
    ]
    if not names:
        raise InvalidInput(
            f"no group has {smallest} members and as many non-members, so none can be named; merge small groups."
        )
    each = split_level(level, len(names))
    why = f"joint over {len(names)} groups"
    return ByGroup(
        names=tuple(names),
        members=tuple(int((d_group == name).sum()) for name in names),
        nonmembers=tuple(int((r_group == name).sum()) for name in names),
        estimates=tuple(
            measure(d[d_group == name], r[r_group == name], each).stated(
                level=level, why=why
            )
            for name in names
        ),
    )
