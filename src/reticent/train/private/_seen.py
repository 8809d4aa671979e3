"""What an observer keeps of batches and noise while a training runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reticent.pool import Noise, kept_places

__all__ = ["Batches", "NoiseOfMany", "NoiseRecorder"]

NUMBERS_KEPT = 1024  # of each release, for the tests that need the noise itself
# Of each run where many are watched: enough to compare its steps, and little for a thousand runs.
NOISE_KEPT_OF_MANY = 2**12
FEWEST_KEPT = 16  # numbers of each release, however many steps there are
NOISE_KEPT = 2**22  # numbers of a run: 16 MB in single precision
SINGLE = float(torch.finfo(torch.float32).eps)


class Batches:
    """The batches since the last step, and where in them one record is.

    Parameters
    ----------
    dataset : Dataset
        The table.
    record : Tensor
        The record in question.
    """

    def __init__(self, dataset: Any, record: Tensor) -> None:
        self.dataset, self.record = dataset, record
        self.number = 0  # of the last batch
        self.copies = 1
        self._counted = False
        self._since: list[Tensor] = []  # places in the batches that are not summed yet
        self._records = 0
        self.is_present = False

    def add(self, batch: Tensor, *, look: bool) -> None:
        """Take note of a batch."""
        self.number += 1
        places = torch.zeros(len(batch), dtype=torch.bool)
        if len(batch) and look:
            same = batch == self.record.to(batch)[None]
            places = same.flatten(1).all(1).cpu()
        if int(places.sum()) > 1:
            places = self._one_of(places)
        self.is_present = self.is_present or bool(places.any())
        self._since.append(places)
        self._records += len(batch)

    def places(self, rows: int) -> Tensor | None:
        """Return which of so many per-record gradients are the record's; None if batches do not have as many records."""
        for last in range(1, len(self._since) + 1):
            places = torch.cat(self._since[-last:])
            if len(places) == rows:
                return places
        return None

    def finish(self) -> int:
        """Return the number of records since the last step, and begin a new one."""
        records, self._records = self._records, 0
        self._since, self.is_present = [], False
        return records

    def _one_of(self, places: Tensor) -> Tensor:
        """Return all places of the record, or one of them if several rows of the table equal it."""
        if not self._counted:
            self._counted = True
            rows = (self.dataset[i][0] for i in range(len(self.dataset)))
            equal = sum(bool((row == self.record.to(row)).all()) for row in rows)
            self.copies = max(1, equal)
        if self.copies == 1:
            return places  # a record that is in a batch twice is one record
        first = torch.zeros_like(places)
        first[int(places.nonzero()[0, 0])] = True
        return first


class NoiseRecorder:
    """Collect the noise of one run, step by step.

    Parameters
    ----------
    sizes : mapping of str to int
        Number of elements of every tensor.
    """

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.names, self.sizes = tuple(sizes), tuple(sizes.values())
        self.tensor, self.place = kept_places(self.sizes, NUMBERS_KEPT)
        starts = np.cumsum([0, *self.sizes[:-1]])
        self._index = torch.from_numpy(starts[self.tensor] + self.place)
        self._kept: list[Tensor] = []
        self._rows: list[tuple[Sequence[float], float, float, float, int]] = []
        self._rounding = 0.0

    @property
    def steps_kept(self) -> int:
        """Number of steps of which the noise itself was kept."""
        return len(self._kept)

    def add(
        self,
        *,
        noise: Tensor,
        summed: Tensor,
        share: Tensor,
        reach: float,
        records: int,
        rounding: float,
    ) -> None:
        """Take note of the noise of a step.

        Parameters
        ----------
        noise : Tensor, (P,)
            Over its stated deviation.
        summed, share : Tensor, (P,)
            The sum that it was added to, and the record's part in it.
        reach : float
            How far one record moves the sum, over the stated bound.
        records : int
            Records that took part.
        rounding : float
            Largest released number over the stated deviation.
        """
        squares = [float(part @ part) for part in torch.split(noise, list(self.sizes))]
        along = [float(noise @ way) / length if (length := float(way.norm())) > 0 else np.nan for way in (summed, share)]  # fmt: skip
        self._rows.append((squares, along[0], along[1], reach, records))
        if (len(self._kept) + 1) * len(self._index) <= NOISE_KEPT:
            self._kept.append(noise[self._index].float())
        self._rounding = max(self._rounding, SINGLE * max(rounding, 1.0))

    def noise(self, *, rows: int, taken: NDArray[np.bool_]) -> Noise:
        """Return what was seen of a run on a table of so many rows, with the steps in which the record took part, (1, T)."""
        squares, along_sum, along_record, reach, records = zip(*self._rows, strict=True)
        return Noise(
            names=self.names,
            sizes=np.array(self.sizes, dtype=np.int64),
            squares=np.array([squares]),
            kept=torch.stack(self._kept)[None].numpy(),
            tensor=self.tensor,
            place=self.place,
            rounding=np.array([self._rounding]),
            along_sum=np.array([along_sum]),
            along_record=np.array([along_record]),
            reach=np.array([reach]),
            records=np.array([records], dtype=np.int64),
            taken=taken,
            rows=np.array([rows], dtype=np.int64),
        )


class NoiseOfMany:
    """Collect the noise of models that are trained side by side, step by step.

    Parameters
    ----------
    sizes : sequence of int
        Number of elements of every tensor.
    steps : int
        Number of steps.
    """

    def __init__(self, sizes: Sequence[int], steps: int) -> None:
        self.sizes = list(sizes)
        most = max(FEWEST_KEPT, NOISE_KEPT_OF_MANY // max(steps, 1))
        self.tensor, self.place = kept_places(self.sizes, most)
        starts = np.cumsum([0, *self.sizes[:-1]])
        self._index = torch.from_numpy(starts[self.tensor] + self.place)
        self._columns: dict[str, list[Tensor]] = {}

    def add(
        self,
        *,
        noise: Tensor,
        summed: Tensor,
        apart: Tensor,
        reach: Tensor,
        records: Tensor,
    ) -> None:
        """Take note of the noise of a step.

        Parameters
        ----------
        noise : Tensor, (M, P)
            Over its stated deviation.
        summed, apart : Tensor, (M, P)
            The sums that it was added to, and what tells the tables apart.
        reach : Tensor, (M,)
            How far one record moves the sum, over the stated bound.
        records : Tensor, (M,)
            Records that took part.
        """
        step = {
            "squares": torch.stack(
                [part.double().square().sum(1) for part in torch.split(noise, self.sizes, 1)], 1
            ),
            "kept": noise[:, self._index].clone(),
            "along_sum": _along(noise, summed),
            "along_record": _along(noise, apart),
            "reach": reach.double(),
            "records": records,
        }  # fmt: skip
        for name, values in step.items():
            self._columns.setdefault(name, []).append(values)

    def noise(self, rows: Tensor, taken: NDArray[np.bool_]) -> Noise:
        """Return what was seen of runs on tables of so many rows, (M,), with the steps in which the record took part, (M, T)."""
        stacked = {n: torch.stack(v, 1).numpy() for n, v in self._columns.items()}
        return Noise(
            names=tuple(f"tensor {number + 1}" for number in range(len(self.sizes))),
            sizes=np.array(self.sizes, dtype=np.int64),
            tensor=self.tensor,
            place=self.place,
            # The noise is kept as it was drawn, in single precision; no draw is larger than six deviations.
            rounding=np.full(len(rows), 6 * SINGLE),
            taken=taken,
            rows=rows.numpy(),
            **stacked,
        )


def _along(noise: Tensor, way: Tensor) -> Tensor:
    """Return the noise along a direction, (M,); NaN where there is none."""
    inner = (noise * way).sum(1, dtype=torch.float64)
    length = way.double().square().sum(1).sqrt()
    return torch.where(length > 0, inner / length, torch.nan)
