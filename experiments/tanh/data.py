"""MNIST and CIFAR-10 as pictures with values from 0 to 1; nothing is taken from the records to scale them."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

__all__ = ["Pictures", "cifar10", "mnist"]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Pictures and their classes.

    Parameters
    ----------
    x_train, x_test : Tensor, (n, channels, side, side)
        From 0 to 1.
    y_train, y_test : Tensor of int64
        Classes, from 0.
    """

    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor

    def first(self, train: int, test: int) -> "Pictures":
        """Return the first records of both parts."""
        return Pictures(
            x_train=self.x_train[:train],
            y_train=self.y_train[:train],
            x_test=self.x_test[:test],
            y_test=self.y_test[:test],
        )


def mnist(data: Path) -> Pictures:
    """Return all of MNIST: 60,000 training and 10,000 test records."""
    with np.load(data / "mnist/mnist.npz") as z:
        x = [_scaled(z[f"x_{part}"][:, None]) for part in ("train", "test")]
        y = [_classes(z[f"y_{part}"]) for part in ("train", "test")]
    return Pictures(x_train=x[0], y_train=y[0], x_test=x[1], y_test=y[1])


def cifar10(data: Path) -> Pictures:
    """Return the 10,000 training records of CIFAR-10 that there are, and all 10,000 test records."""
    x, y = [], []
    with np.load(data / "cifar10/cifar10_lossless_20k.npz") as z:
        for part in ("train", "test"):
            stream = z[f"webp_{part}"].tobytes()
            lengths = z[f"len_{part}"].astype(int)
            files = [
                stream[end - length : end]
                for length, end in zip(lengths, np.cumsum(lengths), strict=True)
            ]
            pixels = np.stack(
                [np.asarray(Image.open(io.BytesIO(f)).convert("RGB")) for f in files]
            )
            x.append(_scaled(pixels.transpose(0, 3, 1, 2)))
            y.append(_classes(z[f"y_{part}"]))
    return Pictures(x_train=x[0], y_train=y[0], x_test=x[1], y_test=y[1])


def _scaled(pixels: np.ndarray) -> Tensor:
    return torch.from_numpy(pixels.astype(np.float32) / 255)


def _classes(labels: np.ndarray) -> Tensor:
    return torch.from_numpy(labels.astype(np.int64))
