"""What was seen of the noise of watched trainings: enough to test it by tensor, by step, by number and between steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["Noise", "kept_places"]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of R runs of T steps on P numbers in L tensors, over its stated deviation, and how far one record moves a sum.

    Noise is the release less the sum that it was added to, so it is known only to whoever knows which table was used.

    Parameters
    ----------
    names : tuple of str
        Names of the tensors.
    sizes : array of int, (L,)
        Numbers in each tensor.
    squares : array of float, (R, T, L)
        Sum of squares of the noise on each tensor.
    kept : array of float, (R, S, K)
        The noise itself, on K of the P numbers in the first S steps.
    tensor, place : array of int, (K,)
        Tensor of each number that was kept, and its place in that tensor.
    rounding : array of float, (R,)
        Largest error of a number that was kept.
    along_sum, along_record : array of float, (R, T)
        Noise along the sum and along the share of the record in question; NaN where these are zero.
    reach : array of float, (R, T)
        How far one record moves the sum, over the stated bound.
    records : array of int, (R, T)
        Records that took part in each step.
    taken : array of bool, (R, T)
        Whether the record in question took part in each step.
    rows : array of int, (R,)
        Records of the table that the run used.
    """

    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    squares: NDArray[np.float64]
    kept: NDArray[np.float32]
    tensor: NDArray[np.int64]
    place: NDArray[np.int64]
    rounding: NDArray[np.float64]
    along_sum: NDArray[np.float64]
    along_record: NDArray[np.float64]
    reach: NDArray[np.float64]
    records: NDArray[np.int64]
    taken: NDArray[np.bool_]
    rows: NDArray[np.int64]

    @property
    def runs(self) -> int:
        """Number of trainings."""
        return int(self.squares.shape[0])

    @property
    def steps(self) -> int:
        """Number of steps of each training."""
        return int(self.squares.shape[1])

    @property
    def size(self) -> int:
        """Numbers in one release."""
        return int(self.sizes.sum())

    @classmethod
    def join(cls, parts: "Sequence[Noise]") -> "tuple[Noise, ...]":
        """Return the noise of several trainings of one recipe: runs whose tensors have the same sizes one after another, others apart."""
        if len({part.names for part in parts}) != 1:
            raise InvalidInput(
                "the trainings do not have the same tensors, so their noise cannot be judged together; watch runs of one recipe."
            )
        alike: dict[tuple[int, ...], list[Noise]] = {}
        for part in parts:
            alike.setdefault(tuple(part.sizes.tolist()), []).append(part)
        each_run = (
            *("squares", "kept", "rounding", "along_sum"),
            *("along_record", "reach", "records", "taken", "rows"),
        )
        return tuple(
            cls(
                names=some[0].names,
                sizes=some[0].sizes,
                tensor=some[0].tensor,
                place=some[0].place,
                **{
                    name: np.concatenate([getattr(part, name) for part in some])
                    for name in each_run
                },
            )
            for some in alike.values()
        )


def kept_places(
    sizes: Sequence[int], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tensor and the place of at most about ``most`` numbers, each tensor by its size.

    Half of a tensor's places are its first ones, so that tensors can be compared place by place; the others are spread evenly.

    Examples
    --------
    >>> kept_places([3, 1], 10)
    (array([0, 0, 0, 1]), array([0, 1, 2, 0]))
    >>> kept_places([100, 1], 8)[1]
    array([ 0,  1,  2,  3,  4, 36, 67, 99,  0])
    """
    total = sum(sizes)
    tensors, places = [], []
    for number, size in enumerate(sizes):
        quota = size if total <= most else min(size, max(1, size * most // total + 1))
        first = quota if quota == size else (quota + 1) // 2
        spread = np.linspace(first, size - 1, quota - first).round().astype(np.int64)
        chosen = np.unique(np.concatenate([np.arange(first), spread]))
        tensors.append(np.full(len(chosen), number, dtype=np.int64))
        places.append(chosen.astype(np.int64))
    return np.concatenate(tensors), np.concatenate(places)
