"""The table of 100 digits, and the records that tell its neighbours from it.

The pairs are ranked by the structural similarity of the two pictures over all training pictures outside the table, as
in Definition 6 of D5.3, and by the distance of their clipped gradients at initial weights, for comparison.
"""

import functools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from kept import keep_text
from scipy.stats import spearmanr
from settings import CLIP, RECORDS, network, recipe_of
from torch import Tensor

from reticent.attack import StructuralSimilarity, most_dissimilar_record
from reticent.run import seed_for, stream
from reticent.train.tensors import Neighbours, View, module_shares_at_start

__all__ = ["Choice", "Digits", "choose", "read_digits"]

LOOKED_AT = 2_000  # pictures outside the table whose gradients are compared
STARTS = 3  # initial weights at which they are; none of those that are watched later


@dataclass(frozen=True, kw_only=True)
class Digits:
    """MNIST: pictures as rows of 784 pixels, from 0 to 255, and classes."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray

    def tensors(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return training pictures from 0 to 1, and their classes as probabilities."""
        x = torch.from_numpy(self.x_train[rows].astype(np.float32) / 255)
        y = torch.from_numpy(self.y_train[rows].astype(np.int64))
        return x, torch.nn.functional.one_hot(y, 10).float()


@functools.lru_cache(maxsize=1)
def read_digits(data: Path) -> Digits:
    """Read MNIST."""
    with np.load(data / "mnist/mnist.npz") as z:
        return Digits(
            x_train=z["x_train"].reshape(-1, 784),
            y_train=z["y_train"],
            x_test=z["x_test"].reshape(-1, 784),
            y_test=z["y_test"],
        )


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which records tell tables apart, as rows of the training pictures.

    Parameters
    ----------
    table : tuple of int
        The first table, 100 rows in order.
    removed : int
        The record that the second table lacks (unbounded).
    pairs : dict
        By name, the record that is replaced and the one that takes its place (bounded).
    told : dict
        What is to be said about the choice.
    """

    table: tuple[int, ...]
    removed: int
    pairs: dict[str, tuple[int, int]]
    told: dict

    def rows(self, name: str, *, bounded: bool) -> tuple[np.ndarray, Neighbours]:
        """Return the records of both tables, and the places of those that tell them apart."""
        own, other = self.pairs[name] if bounded else (self.removed, None)
        at = self.table.index(own)
        common = np.delete(np.arange(RECORDS), at)
        if other is None:
            return np.array(self.table), Neighbours(common=common, own=at)
        rows = np.array([*self.table, other])
        return rows, Neighbours(common=common, own=at, other=RECORDS)


def choose(digits: Digits) -> Choice:
    """Draw the table and rank its neighbours, or find what was chosen before."""
    text = keep_text(
        "choice.json", lambda: json.dumps(asdict(_chosen(digits)), indent=1) + "\n"
    )
    found = json.loads(text)
    pairs = {name: tuple(pair) for name, pair in found["pairs"].items()}
    return Choice(**found | {"table": tuple(found["table"]), "pairs": pairs})


def _chosen(digits: Digits) -> Choice:
    rng = stream(0, "identifiability/table")
    table = np.sort(rng.choice(len(digits.x_train), RECORDS, replace=False))
    rest = np.setdiff1d(np.arange(len(digits.x_train)), table)
    distance = StructuralSimilarity(shape=(28, 28), dynamic_range=255)
    alone = most_dissimilar_record(digits.x_train[table], distance, rng=rng)
    unlike = distance.between(digits.x_train[table], digits.x_train[rest])
    order = np.argsort(unlike, axis=None, kind="stable")

    def pair(flat: int) -> tuple[int, int]:
        i, j = np.unravel_index(order[flat], unlike.shape)
        return int(table[i]), int(rest[j])

    some = np.sort(rng.choice(len(rest), LOOKED_AT, replace=False))
    apart, short = _gradients(digits, table, rest[some])
    i, j = np.unravel_index(int(apart.mean(0).argmax()), apart.shape[1:])
    pairs = {
        "ssim": pair(-1),
        "ssim-2": pair(-2),
        "ssim-3": pair(-3),
        "alike-3": pair(2),
        "alike-2": pair(1),
        "alike-1": pair(0),
        "gradient": (int(table[i]), int(rest[some[j]])),
    }
    chosen = _distances(digits, pairs["ssim"])
    told = {
        "removed": {
            "dissimilarity": alone.dissimilarity,
            "class": int(digits.y_train[table[alone.row]]),
        },
        "pairs": {
            name: {
                "dissimilarity": float(
                    unlike[np.searchsorted(table, a), np.searchsorted(rest, b)]
                ),
                "classes": [int(digits.y_train[a]), int(digits.y_train[b])],
            }
            for name, (a, b) in pairs.items()
        },
        "correlation": [
            float(spearmanr(unlike[:, some].ravel(), each.ravel()).statistic)
            for each in apart
        ],
        "farther_than_chosen": [
            float((each > mine).mean())
            for each, mine in zip(apart, chosen, strict=True)
        ],
        "distance": {
            "chosen": chosen,
            "median": [float(np.median(each)) for each in apart],
            "largest": [float(each.max()) for each in apart],
        },
        "unclipped": short,
        "looked_at": LOOKED_AT,
    }
    return Choice(
        table=tuple(table.tolist()),
        removed=int(table[alone.row]),
        pairs=pairs,
        told=told,
    )


def _gradients(
    digits: Digits, table: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the distances of clipped gradients, (starts, table, others), and how many records of the table are not clipped."""
    x, y = digits.tensors(np.concatenate([table, others]))
    recipe = recipe_of(RECORDS, 1.0, plain=True)
    made, short = [], 0
    for start in range(STARTS):
        found = module_shares_at_start(
            network,
            View(inputs=x, targets=y),
            range(len(x)),
            recipe,
            seed=_start(start),
        )
        own, theirs = found[: len(table)].double(), found[len(table) :].double()
        made.append(torch.cdist(own, theirs).numpy())
        short += int((own.norm(dim=1) < CLIP * (1 - 1e-3)).sum())
    return np.stack(made), short


def _distances(digits: Digits, pair: tuple[int, int]) -> list[float]:
    x, y = digits.tensors(np.array(pair))
    recipe = recipe_of(RECORDS, 1.0, plain=True)
    made = []
    for start in range(STARTS):
        a, b = module_shares_at_start(
            network, View(inputs=x, targets=y), range(2), recipe, seed=_start(start)
        ).double()
        made.append(float((a - b).norm()))
    return made


def _start(number: int) -> int:
    return seed_for(0, f"identifiability/start/{number}")
