"""The networks and every setting that is run; nothing else was tried on these data."""

import math
from dataclasses import dataclass, replace

import torch
from torch import nn

from reticent.account import Course, PrivateTraining
from reticent.train.private import (
    Clip,
    Clipping,
    ClipThenTanh,
    Sigmoid,
    Tanh,
    TanhThenClip,
)

__all__ = [
    "BATCH",
    "CURVES",
    "DELTA",
    "LONG",
    "ROWS",
    "SETTINGS",
    "SHORT",
    "SIZES",
    "Setting",
    "convolutional",
]

DELTA = 1e-5
BATCH = 256
NOISE = 1.1
RATE = 0.15

ROWS = {"mnist": 60_000, "cifar10": 10_000}
LONG = {"mnist": 8, "cifar10": 15}  # epochs of the curves
SHORT = {"mnist": 2, "cifar10": 8}  # epochs of the sweeps


def convolutional(channels: int, side: int) -> nn.Module:
    """Return the network of TensorFlow Privacy's MNIST tutorial, whose settings the thesis has; 26,010 parameters for MNIST.

    Parameters
    ----------
    channels, side : int
        Of the pictures.
    """
    bottom = [
        nn.Conv2d(channels, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
    ]
    with torch.no_grad():
        seen = nn.Sequential(*bottom)(torch.zeros(1, channels, side, side)).shape[1]
    return nn.Sequential(*bottom, nn.Linear(seen, 32), nn.ReLU(), nn.Linear(32, 10))


SIZES = {
    data: sum(p.numel() for p in convolutional(channels, side).parameters())
    for data, channels, side in (("mnist", 1, 28), ("cifar10", 3, 32))
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One training, what its accountant is told and what is true.

    Parameters
    ----------
    name : str
        By which results are kept, after the data set's.
    data : str
        ``"mnist"`` or ``"cifar10"``.
    clipping : Clipping
        What is done to each record's gradient.
    assumed : float or None
        The sensitivity that the noise is scaled to; none for the clipping's true bound. The thesis has 1 for its filter.
    noise : float
        Standard deviation of the noise over what is assumed: the noise multiplier that the accountant is told.
    rate : float
        Learning rate of plain SGD.
    epochs : int
        Passes over the records.
    seeds : tuple of int
        One training each.
    """

    name: str
    data: str
    clipping: Clipping
    epochs: int
    assumed: float | None = None
    noise: float = NOISE
    rate: float = RATE
    seeds: tuple[int, ...] = (0,)

    @property
    def key(self) -> str:
        """Data set and name."""
        return f"{self.data}/{self.name}"

    @property
    def bound(self) -> float:
        """The largest length of a clipped gradient."""
        return self.clipping.bound([SIZES[self.data]])

    @property
    def noise_multiplier(self) -> float:
        """The true one: the noise over the largest length of a clipped gradient."""
        assumed = self.bound if self.assumed is None else self.assumed
        return self.noise * assumed / self.bound

    def training(self, noise_multiplier: float, steps: int) -> PrivateTraining:
        """Return the first steps as a mechanism with some noise multiplier."""
        return PrivateTraining(
            noise_multiplier=noise_multiplier,
            sampling_rate=BATCH / ROWS[self.data],
            steps=steps,
        )

    def moments(self) -> list[int]:
        """Return after which steps the network is looked at: the first, and the last of each epoch; in sweeps, the very last."""
        ends = [
            Course.of_epochs(rows=ROWS[self.data], batch=BATCH, epochs=e).steps
            for e in range(1, self.epochs + 1)
        ]
        return [1, *ends] if self.epochs == LONG[self.data] else ends[-1:]


def _of(data: str) -> list[Setting]:
    clip = Setting(name="clip", data=data, clipping=Clip(norm=1.0), epochs=LONG[data])
    tanh = replace(clip, name="tanh", clipping=Tanh(), assumed=1.0)
    both = replace(clip, name="tanh, clip", clipping=TanhThenClip(norm=1.0))
    curves = [clip, tanh, both]
    # With c = 1/sqrt(n) the filter's bound is 1, and noise of 1.1 is what the accountant believes it to be.
    unit = 1 / math.sqrt(SIZES[data])
    true = [
        replace(
            clip,
            name=f"tanh, true noise, k {k:g}",
            clipping=Tanh(scale=unit, width=k),
        )
        for k in (1.0, 0.001)
    ]
    sweeps = [
        *(replace(one, name=f"{one.name}, again", seeds=(1, 2)) for one in curves),
        *true,
        *(
            replace(tanh, name=f"tanh, k {k:g}", clipping=Tanh(width=k))
            for k in (0.1, 10.0)
        ),
        # The noise stays 1.1, as printed in Algorithm 2. If it grew with c, c would be the learning rate.
        *(
            replace(tanh, name=f"tanh, c {c:g}", clipping=Tanh(scale=c))
            for c in (0.1, 10.0)
        ),
        *(
            replace(tanh, name=f"tanh, noise {noise:g}", noise=noise)
            for noise in (0.7, 4.0)
        ),
        *(
            replace(one, name=f"{one.name}, rate {rate:g}", rate=rate)
            for one, rates in ((tanh, (0.015, 0.5)), (clip, (0.5, 1.0)))
            for rate in rates
        ),
        replace(clip, name="clip, tanh", clipping=ClipThenTanh(norm=1.0)),
        replace(tanh, name="noise alone", clipping=Clip(norm=1e6)),
        replace(tanh, name="sigmoid", clipping=Sigmoid()),
    ]
    return [*curves, *(replace(one, epochs=SHORT[data]) for one in sweeps)]


SETTINGS = tuple(_of("mnist") + _of("cifar10"))
CURVES = tuple(one for one in SETTINGS if one.epochs == LONG[one.data])
