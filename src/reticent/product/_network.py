"""A trained multilayer perceptron as a product: numbers and names, no code, no PyTorch."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from reticent.errors import InvalidPredictions, UnsafeProduct
from reticent.product._encode import Encoder
from reticent.product._internals import (
    Internals,
    joined,
    loss_and_delta,
    units_shown,
)

__all__ = ["NETWORK_FILE", "NetworkProduct"]

NETWORK_FILE = "product.safetensors"
PIECE = 4096  # records asked about at once


@dataclass(frozen=True, kw_only=True)
class NetworkProduct:
    """A multilayer perceptron that answers queries about raw records.

    Parameters
    ----------
    encoder : Encoder
        From columns to numbers.
    centre, scale : array of float, shape (inputs,)
        What the network sees is ``(numbers - centre) / scale``, and 0 for a missing one.
    weights, biases : tuple of array
        Of each layer, (out, in) and (out,).
    activation : str
        What hidden units do: ``"relu"`` or ``"tanh"``.
    classes : tuple of str
        Names of the classes, in the order of the answers.
    warnings : tuple of str
        What users should know of the training.
    """

    encoder: Encoder
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    weights: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    activation: str
    classes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        matrix = self._matrix(features)
        parts = [
            np.asarray(softmax(self._logits(matrix[at : at + PIECE])[0], axis=1))
            for at in range(0, len(matrix), PIECE)
        ]
        answers = np.concatenate(parts) if parts else np.empty((0, len(self.classes)))
        if not np.isfinite(answers).all():
            bad = int((~np.isfinite(answers)).any(axis=1).sum())
            raise InvalidPredictions(
                f"a network's answers for {bad} of {len(answers)} records are not finite, so its training diverged and no "
                "attack can be judged; lower the rate of its optimiser."
            )
        return answers

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities."""
        return self.predict_proba(features)

    def internals(self, features: pd.DataFrame, labels: NDArray[np.int64]) -> Internals:
        r"""Return what somebody sees at each record who opens the network.

        The gradient of a layer is the outer product of its deltas :math:`\delta` with what goes into it, :math:`a`, and
        :math:`\delta` itself for the biases. So its length is :math:`|\delta| \sqrt{|a|^2 + 1}`, and no gradient is formed.

        Parameters
        ----------
        features : data frame
            The records.
        labels : array of int
            Their true classes, by position in ``classes``.
        """
        matrix, labels = self._matrix(features), np.asarray(labels)
        if len(labels) != len(matrix):
            raise InvalidPredictions(
                f"there are {len(labels)} labels for {len(matrix)} records; pass one of each per record."
            )
        return joined(
            [
                self._opened(matrix[at : at + PIECE], labels[at : at + PIECE])
                for at in range(0, max(len(matrix), 1), PIECE)
            ]
        )

    def _opened(
        self, matrix: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> Internals:
        logits, below = self._logits(matrix)
        losses, delta = loss_and_delta(logits, labels)
        lengths = np.linalg.norm(delta, axis=1)
        # What is sent back has length 1, so that single precision is precise enough.
        sent = (delta / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
        norms = np.empty((len(matrix), len(self.weights)))
        for layer in reversed(range(len(self.weights))):
            seen = np.linalg.norm(below[layer], axis=1).astype(np.float64)
            norms[:, layer] = lengths * np.linalg.norm(sent, axis=1) * np.hypot(seen, 1)
            if layer > 0:
                sent = (sent @ self.weights[layer]) * self._slope(below[layer])
        hidden = (f"hidden {k + 1}" for k in range(len(self.weights) - 1))
        return Internals(
            losses=losses,
            gradient_norms=norms,
            layers=(*hidden, "output"),
            activations=units_shown(below[-1]),
        )

    def _slope(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the derivative of hidden units from what they give."""
        if self.activation == "relu":
            return (values > 0).astype(np.float32)
        return np.asarray(1 - values**2, dtype=np.float32)

    def _matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        absent = [c for c in self.encoder.columns if c not in features]
        if absent:
            raise InvalidPredictions(
                f"the product was trained on the column {absent[0]!r}, which the table does not have; audit it on a table with "
                "the same columns."
            )
        return self.encoder.matrix(features)

    def _logits(
        self, matrix: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], list[NDArray[np.float32]]]:
        """Return the logits, and what goes into each layer."""
        values = np.nan_to_num((matrix - self.centre) / self.scale)
        last, below = len(self.weights) - 1, []
        for layer, (weight, bias) in enumerate(
            zip(self.weights, self.biases, strict=True)
        ):
            below.append(values)
            values = values @ weight.T + bias
            if layer < last:
                values = (
                    np.maximum(values, 0)
                    if self.activation == "relu"
                    else np.tanh(values)
                )
        return values.astype(np.float64), below

    def with_classes(self, classes: tuple[str, ...]) -> "NetworkProduct":
        """Return the product with its answers in the order of a table's classes."""
        if sorted(classes) != sorted(self.classes):
            raise InvalidPredictions(
                f"the product knows the classes {', '.join(self.classes[:5])}, but the table has {', '.join(classes[:5])}; audit it "
                "on a table with the same target."
            )
        order = [self.classes.index(name) for name in classes]
        return replace(
            self,
            classes=classes,
            weights=(*self.weights[:-1], self.weights[-1][order]),
            biases=(*self.biases[:-1], self.biases[-1][order]),
        )

    def save(self, file: Path) -> None:
        """Write numbers and names to a safetensors file."""
        from safetensors.numpy import save

        layers = range(len(self.weights))
        arrays = {
            "centre": self.centre,
            "scale": self.scale,
            **{f"weights.{k}": np.ascontiguousarray(self.weights[k]) for k in layers},
            **{f"biases.{k}": np.ascontiguousarray(self.biases[k]) for k in layers},
        }
        words = {
            "numbers": self.encoder.numbers,
            "categories": self.encoder.categories,
            "activation": self.activation,
            "classes": self.classes,
            "warnings": self.warnings,
        }
        part = file.with_name(file.name + ".part")
        part.write_bytes(save(arrays, metadata={"network": json.dumps(words)}))
        part.replace(file)

    @classmethod
    def load(cls, file: Path) -> "NetworkProduct":
        """Read a network back; nothing in the file is executed.

        Raises
        ------
        UnsafeProduct
            If the file is not such a network.
        """
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise UnsafeProduct(
                "the product is a network, and the library that reads it is not installed; install reticent[torch]."
            ) from error

        try:
            with safe_open(file, framework="numpy") as content:
                words = json.loads((content.metadata() or {})["network"])
                arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (no mapping)
            return cls._made(words, arrays)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise UnsafeProduct(
                f"{file.name} cannot be read as a network of reticent ({error}); save it with `reticent train` or --save-product."
            ) from error

    @classmethod
    def _made(
        cls, words: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float32]]
    ) -> "NetworkProduct":
        layers = sum(name.startswith("weights.") for name in arrays)
        made = cls(
            encoder=Encoder(
                numbers=tuple(map(str, words["numbers"])),
                categories=tuple(
                    (str(name), tuple(map(str, known)))
                    for name, known in words["categories"]
                ),
            ),
            centre=arrays["centre"],
            scale=arrays["scale"],
            weights=tuple(arrays[f"weights.{k}"] for k in range(layers)),
            biases=tuple(arrays[f"biases.{k}"] for k in range(layers)),
            activation=str(words["activation"]),
            classes=tuple(map(str, words["classes"])),
            warnings=tuple(map(str, words["warnings"])),
        )
        widths = [made.encoder.width, *(len(b) for b in made.biases)]
        shapes = [(a, b) for b, a in itertools.pairwise(widths)]
        if [w.shape for w in made.weights] != shapes or widths[-1] != len(made.classes):
            raise ValueError("its layers do not fit each other")
        return made
