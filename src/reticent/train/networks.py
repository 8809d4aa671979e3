"""Train networks on tables: encoding, one model, or a whole pool in one pass."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import ColumnKind, Table
from reticent.errors import InvalidSpec
from reticent.train.recipes import Network

if TYPE_CHECKING:
    from reticent.train.engine import Networks

__all__ = ["NetworkProduct", "NetworkTrainer"]

TOGETHER = 25  # models per pass: more leave the processor's cache


@dataclass(frozen=True, kw_only=True)
class _Encoder:
    """One column per number and per category, in a fixed order."""

    numbers: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, table: Table) -> "_Encoder":
        schema = table.schema
        numbers = [*schema.names(ColumnKind.NUMERIC), *schema.names(ColumnKind.BOOLEAN)]
        categories = [
            (
                name,
                tuple(
                    sorted({str(v) for v in table.features[name].fillna("(missing)")})
                ),
            )
            for name in schema.names(ColumnKind.CATEGORICAL)
        ]
        return cls(numbers=tuple(numbers), categories=tuple(categories))

    def matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        """Return numbers as they are, missing ones NaN, and categories as 0 and 1."""
        parts = [features[list(self.numbers)].to_numpy(dtype=np.float32)]
        for name, known in self.categories:
            values = features[name].fillna("(missing)").astype(str).to_numpy()
            parts.append((values[:, None] == np.array(known)[None]).astype(np.float32))
        return np.concatenate(parts, axis=1)

    def standardisation(
        self, matrix: NDArray[np.float32], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return centre and scale of every column from each model's own members.

        Numbers get mean 0 and variance 1. A category that no member has is scaled to nothing.
        """
        count = len(self.numbers)
        centres = np.zeros((len(masks), matrix.shape[1]), dtype=np.float32)
        scales = np.ones_like(centres)
        for k, mask in enumerate(masks):
            own = matrix[mask]
            seen = np.isfinite(own[:, :count])
            total = np.maximum(seen.sum(axis=0), 1)
            filled = np.where(seen, own[:, :count], 0.0).astype(np.float64)
            mean = filled.sum(axis=0) / total
            spread = np.sqrt(
                np.where(seen, (filled - mean) ** 2, 0.0).sum(axis=0) / total
            )
            centres[k, :count] = mean
            scales[k, :count] = np.where(spread > 0, spread, 1.0)
            scales[k, count:] = np.where(own[:, count:].any(axis=0), 1.0, 1e30)
        return centres, scales


@dataclass(frozen=True, kw_only=True)
class NetworkProduct:
    """A trained network that answers queries about raw records."""

    encoder: _Encoder
    networks: "Networks"
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        import torch

        seen = np.nan_to_num((self.encoder.matrix(features) - self.centre) / self.scale)
        answers = self.networks.probabilities(torch.from_numpy(seen))[0]
        return np.asarray(answers, dtype=np.float64)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities."""
        return self.predict_proba(features)


@dataclass(frozen=True, kw_only=True)
class NetworkTrainer:
    """Train multilayer perceptrons on a table; needs the extra ``torch``.

    Parameters
    ----------
    network : Network
        Shape and training.
    recipe : str
        Description from which the trainer can be made again.
    """

    network: Network
    recipe: str

    @property
    def together(self) -> int:
        """How many models are best trained in one pass."""
        return TOGETHER

    def train(self, table: Table, *, seed: int) -> NetworkProduct:
        """Return a network trained on all records of a table."""
        encoder = _Encoder.of(table)
        matrix = encoder.matrix(table.features)
        everyone = np.ones((1, len(table)), dtype=bool)
        centres, scales = encoder.standardisation(matrix, everyone)
        networks = _fit(self.network, matrix, table, everyone, [seed], centres, scales)
        return NetworkProduct(
            encoder=encoder, networks=networks, centre=centres[0], scale=scales[0]
        )

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        workers: int,
    ) -> NDArray[np.float32]:
        """Return the answers of one network per mask on all records, shape (M, n, c).

        Groups of models are trained in one pass each, one group a process.
        """
        size = max(1, min(TOGETHER, -(-len(masks) // workers)))
        groups = [
            (
                self.network,
                table,
                masks[start : start + size],
                seeds[start : start + size],
            )
            for start in range(0, len(masks), size)
        ]
        if workers == 1 or len(groups) == 1:
            return np.concatenate([_answer_group(*group) for group in groups])
        made = joblib.Parallel(n_jobs=workers)(
            joblib.delayed(_answer_group)(*group) for group in groups
        )
        return np.concatenate(made)


def _answer_group(
    network: Network, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
) -> NDArray[np.float32]:
    import torch

    encoder = _Encoder.of(table)
    matrix = encoder.matrix(table.features)
    centres, scales = encoder.standardisation(matrix, masks)
    networks = _fit(
        network, matrix, table, masks, [int(s) for s in seeds], centres, scales
    )
    answers = np.empty((len(masks), len(table), len(table.classes)), dtype=np.float32)
    for k in range(len(masks)):
        seen = np.nan_to_num((matrix - centres[k]) / scales[k])
        one = type(networks)(
            weights=tuple(w[k : k + 1] for w in networks.weights),
            biases=tuple(b[k : k + 1] for b in networks.biases),
        )
        answers[k] = one.probabilities(torch.from_numpy(seen))[0]
    return answers


def _fit(
    network: Network,
    matrix: NDArray[np.float32],
    table: Table,
    masks: NDArray[np.bool_],
    seeds: list[int],
    centres: NDArray[np.float32],
    scales: NDArray[np.float32],
) -> "Networks":
    try:
        import torch
    except ImportError as error:
        raise InvalidSpec(
            "networks are trained with PyTorch, which is not installed; install reticent[torch]."
        ) from error
    from reticent.train.engine import train_networks

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # two threads on small matrices wait for each other
    try:
        targets = np.eye(len(table.classes), dtype=np.float32)[table.target]
        return train_networks(
            torch.from_numpy(matrix),
            torch.from_numpy(targets),
            masks,
            seeds,
            network,
            centres=torch.from_numpy(centres),
            scales=torch.from_numpy(scales),
        )
    finally:
        torch.set_num_threads(threads)
