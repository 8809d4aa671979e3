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
        absent = [c for c in self.encoder.columns if c not in features]
        if absent:
            raise InvalidPredictions(
                f"the product was trained on the column {absent[0]!r}, which the table does not have; audit it on a table with "
                "the same columns."
            )
        matrix = self.encoder.matrix(features)
        parts = [
            self._answers(matrix[at : at + PIECE])
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

    def _answers(self, matrix: NDArray[np.float32]) -> NDArray[np.float64]:
        values = np.nan_to_num((matrix - self.centre) / self.scale)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(
            zip(self.weights, self.biases, strict=True)
        ):
            values = values @ weight.T + bias
            if layer < last:
                values = (
                    np.maximum(values, 0)
                    if self.activation == "relu"
                    else np.tanh(values)
                )
        return np.asarray(softmax(values.astype(np.float64), axis=1))

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
