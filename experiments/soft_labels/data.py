"""The records: features of CIFAR-10, adapted or not, swapped labels, and halves with equal class counts."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from settings import (
    CLASSES,
    RECORDS,
    SEED,
    SWAPPED,
    TEST,
    VALIDATION,
    Series,
)

from reticent import SGD, Network
from reticent.run import stream
from reticent.train.tensors import Cohort, train_networks

__all__ = ["Records", "halves", "read"]

# The last hidden layer gives as many features as the frozen network.
ADAPTING_WIDTHS = (1280, 1280)
ADAPTING_EPOCHS, ADAPTING_BATCH, ADAPTING_RATE = 10, 64, 0.05


@dataclass(frozen=True, kw_only=True)
class Records:
    """What a series is about.

    Parameters
    ----------
    inputs, validation, test : array of float, shapes (800, 1280), (1000, 1280) and (4000, 1280)
        Features.
    labels, truth : array of int, shape (800,)
        Labels as given, a fifth of them swapped, and true classes.
    validation_labels, test_labels : array of int
        True classes.
    """

    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    truth: NDArray[np.int64]
    validation: NDArray[np.float32]
    validation_labels: NDArray[np.int64]
    test: NDArray[np.float32]
    test_labels: NDArray[np.int64]


def read(series: Series, data: Path, out: Path) -> Records:
    """Return the records of a series; adapted features are kept in a file."""
    with np.load(data / "cifar10_efflite0" / "features.npz") as file:
        train, train_labels = _decoded(file["q_train"]), file["y_train"].astype(int)
        test, test_labels = _decoded(file["q_test"]), file["y_test"].astype(int)
    chosen = _balanced(train_labels)
    judged = stream(SEED, "soft_labels/test").permutation(len(test))
    validating, testing = judged[:VALIDATION], judged[VALIDATION : VALIDATION + TEST]
    if series.adapted:
        others = np.setdiff1d(np.arange(len(train)), chosen)
        adapting = _adapting(train[others], train_labels[others], out / "adapted.npz")
        train, test = _through(train, adapting), _through(test, adapting)
    truth = train_labels[chosen]
    return Records(
        inputs=train[chosen],
        labels=_swapped(truth) if series.swapped else truth,
        truth=truth,
        validation=test[validating],
        validation_labels=test_labels[validating],
        test=test[testing],
        test_labels=test_labels[testing],
    )


def halves(labels: NDArray[np.int64], split: int) -> tuple[NDArray, NDArray]:
    """Return the two halves of a split, each with the given classes in equal numbers."""
    rng = stream(SEED, f"soft_labels/split/{split}")
    first = np.zeros(len(labels), dtype=bool)
    for label in range(CLASSES):
        own = rng.permutation(np.flatnonzero(labels == label))
        first[own[: len(own) // 2]] = True
    return np.flatnonzero(first), np.flatnonzero(~first)


def _decoded(coded: NDArray[np.uint8]) -> NDArray[np.float32]:
    return 6 * (coded.astype(np.float32) / 255) ** 2


def _balanced(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return as many records of each class as of any other."""
    rng = stream(SEED, "soft_labels/records")
    each = RECORDS // CLASSES
    return np.sort(
        np.concatenate(
            [
                rng.permutation(np.flatnonzero(labels == label))[:each]
                for label in range(CLASSES)
            ]
        )
    )


def _swapped(truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return labels of which a fifth was exchanged in pairs of different classes, so that classes stay equally frequent."""
    rng = stream(SEED, "soft_labels/swapped")
    labels = truth.copy()
    while True:
        pairs = rng.permutation(len(truth))[: round(SWAPPED * len(truth))].reshape(
            -1, 2
        )
        if (truth[pairs[:, 0]] != truth[pairs[:, 1]]).all():
            break
        # Exchange partners among the pairs until no two of one class are left.
        order = pairs.ravel()
        for _ in range(1000):
            order = rng.permutation(order)
            pairs = order.reshape(-1, 2)
            if (truth[pairs[:, 0]] != truth[pairs[:, 1]]).all():
                break
        else:
            same = truth[pairs[:, 0]] == truth[pairs[:, 1]]
            for k in np.flatnonzero(same):
                other = next(
                    j
                    for j in range(len(pairs))
                    if truth[pairs[j]].tolist().count(truth[pairs[k, 0]]) == 0
                )
                pairs[k, 1], pairs[other, 1] = pairs[other, 1], pairs[k, 1]
        break
    labels[pairs[:, 0]], labels[pairs[:, 1]] = truth[pairs[:, 1]], truth[pairs[:, 0]]
    return labels


def _adapting(
    inputs: NDArray[np.float32], labels: NDArray[np.int64], kept: Path
) -> list[NDArray[np.float32]]:
    """Return centre and scale of features, and weights and biases of the hidden layers of a network that learned other records."""
    if not kept.exists():
        centre, scale = inputs.mean(axis=0), inputs.std(axis=0) + 1e-6
        cohort = Cohort(
            inputs=torch.from_numpy((inputs - centre) / scale),
            targets=torch.from_numpy(np.eye(CLASSES, dtype=np.float32)[labels]),
            masks=np.ones((1, len(inputs)), dtype=bool),
            seeds=[SEED],
        )
        recipe = Network(
            hidden=ADAPTING_WIDTHS,
            epochs=ADAPTING_EPOCHS,
            batch=ADAPTING_BATCH,
            optimiser=SGD(rate=ADAPTING_RATE),
        )
        trained = train_networks(cohort, recipe)
        hidden = zip(trained.weights[:-1], trained.biases[:-1], strict=True)
        layers = [values[0].numpy() for layer in hidden for values in layer]
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}.part.npz")
        np.savez(part, centre, scale, *layers)
        part.replace(kept)
    with np.load(kept) as file:
        return [file[f"arr_{k}"] for k in range(len(file.files))]


def _through(
    inputs: NDArray[np.float32], adapting: list[NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the activations of the last hidden layer."""
    centre, scale, *layers = adapting
    values = (inputs - centre) / scale
    for weights, biases in zip(layers[::2], layers[1::2], strict=True):
        values = np.maximum(values @ weights.T + biases.T, 0)
    return values
