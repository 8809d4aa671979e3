"""What an observer learns from a training watched step by step, as the numbers that a likelihood needs."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.pool._noise import Noise

__all__ = ["Side", "Trace", "Truth"]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The releases of R runs of T steps, compared with what one table would have given without noise.

    All arrays have the shape (R, T). The sum over the records that both tables share is called the common sum.

    Parameters
    ----------
    residual : array of float
        Squared distance of the release from the common sum.
    inner : array of float
        Inner product of that difference with the share of the record in question.
    square : array of float
        Squared length of the share.
    deviation : array of float
        Standard deviation of the noise, in the units of the release.
    """

    residual: NDArray[np.float64]
    inner: NDArray[np.float64]
    square: NDArray[np.float64]
    deviation: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Everything in the watched releases that tells two tables apart, without the answer which of them was used.

    Parameters
    ----------
    first, second : Side
        The releases compared with either table. A record that a table lacks has a share of length 0.
    distance : array of float, (R, T)
        Distance between the two shares: the local sensitivity.
    size : int
        Numbers in one release.
    rate : float
        Probability that the record takes part in a step.
    place : array of bool, (R, T), or None
        Steps with a place for the record, if batches are cut from a shuffled table: whoever knows the places of the other
        records knows which one is left. None for Poisson sampling, where the other records' places reveal nothing.
    """

    first: Side
    second: Side
    distance: NDArray[np.float64]
    size: int
    rate: float
    place: NDArray[np.bool_] | None = None

    @property
    def known_rate(self) -> float:
        """Probability that the record takes part in a step that has a place for it."""
        return self.rate if self.place is None else 1.0

    @property
    def runs(self) -> int:
        """Number of trainings that were watched."""
        return len(self.distance)

    @property
    def steps(self) -> int:
        """Number of steps of each training."""
        return int(self.distance.shape[1])

    @property
    def lengths(self) -> NDArray[np.float64]:
        """How far apart the tables' releases lie if the record takes part, in deviations of the noise, (R, T).

        Steps that have no place for the record reveal nothing and get 0.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = self.distance / self.first.deviation
        informative = self.distance > 0
        if self.place is not None:
            informative &= self.place
        return np.asarray(np.where(informative, shift, 0.0))

    @property
    def scales(self) -> NDArray[np.float64]:
        r"""How far apart the releases lie by the scale of their noise alone, whether or not the record takes part, (R, T).

        In the normal limit, n numbers whose deviations have the ratio :math:`\rho` are as far apart as two normal
        distributions at distance :math:`\sqrt{2n}\,|\log\rho|`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(self.first.deviation / self.second.deviation)
        return np.asarray(math.sqrt(2 * self.size) * np.abs(np.nan_to_num(ratio)))

    @classmethod
    def join(cls, traces: "list[Trace]") -> "Trace":
        """Return several traces of the same training as one, with their runs one after another.

        If their releases have different sizes, ``size`` is the largest; it matters only where deviations differ between the tables.
        """
        if not traces:
            raise InvalidInput(
                "there is no trace to join; watch at least one training."
            )
        head = traces[0]
        sizes = sorted({trace.size for trace in traces})
        if len(sizes) > 1 and any(trace.scales.any() for trace in traces):
            raise InvalidInput(
                f"the trainings release {sizes[0]:,} to {sizes[-1]:,} numbers at a scale that depends on the table, so what the scale tells "
                "differs between them; watch trainings of one size."
            )

        def side(name: str) -> Side:
            sides = [getattr(trace, name) for trace in traces]
            return Side(
                **{
                    field: np.concatenate([getattr(s, field) for s in sides])
                    for field in ("residual", "inner", "square", "deviation")
                }
            )

        return cls(
            first=side("first"),
            second=side("second"),
            distance=np.concatenate([trace.distance for trace in traces]),
            size=sizes[-1],
            rate=head.rate,
            place=None
            if head.place is None
            else np.concatenate([t.place for t in traces if t.place is not None]),
        )


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The answers to a trace, which no adversary sees.

    Parameters
    ----------
    first : array of bool, (R,)
        Whether the run used the first table.
    taken : array of bool, (R, T)
        Whether the record in question took part in the step.
    seen : tuple of Noise
        The noise itself, for tests of it, apart for runs with tensors of other sizes; empty if it was not kept.
    """

    first: NDArray[np.bool_]
    taken: NDArray[np.bool_]
    seen: tuple[Noise, ...] = ()

    def noise(self, trace: Trace) -> NDArray[np.float64]:
        """Return the noise along the direction that tells the tables apart, divided by the stated deviation.

        Steps in which nothing tells the tables apart have no such direction and are left out.
        """
        one, two = trace.first, trace.second
        cross = (one.square + two.square - trace.distance**2) / 2
        used = self.first[:, None]
        mean = np.where(used, one.square - cross, cross - two.square) * self.taken
        deviation = np.where(used, one.deviation, two.deviation)
        informative = trace.distance > 0
        along = (one.inner - two.inner - mean)[informative]
        return np.asarray(along / (trace.distance * deviation)[informative])

    @classmethod
    def join(cls, truths: "list[Truth]") -> "Truth":
        """Return the answers to several traces as one, in the order of :meth:`Trace.join`."""
        seen = [part for truth in truths for part in truth.seen]
        return cls(
            first=np.concatenate([truth.first for truth in truths]),
            taken=np.concatenate([truth.taken for truth in truths]),
            seen=Noise.join(seen) if all(truth.seen for truth in truths) else (),
        )
