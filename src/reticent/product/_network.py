"""A trained multilayer perceptron as a product: numbers and names, without code and without PyTorch."""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from reticent.errors import InvalidPredictions, UnsafeProduct
from reticent.product._encode import Encoder
from reticent.product.internals import (
    Internals,
    joined,
    loss_and_delta,
    units_shown,
)
from reticent.product.stages import Stages, network_stages
from reticent.run import write_bytes

__all__ = ["NETWORK_FILE", "NetworkProduct", "metadata_of"]

NETWORK_FILE = "product.safetensors"
ACTIVATIONS = ("relu", "tanh")
PIECE = 4096  # records predicted at once, so that the layers' outputs stay small


@dataclass(frozen=True, kw_only=True)
class NetworkProduct:
    """A multilayer perceptron that answers queries about raw records.

    Parameters
    ----------
    encoder : Encoder
        Turns the columns into numbers.
    centre, scale : array of float, shape (inputs,)
        The network sees ``(numbers - centre) / scale``, and 0 for a missing number.
    weights, biases : tuple of array
        Weights (out, in) and biases (out,) of each layer.
    activation : str
        Activation function of the hidden units: ``"relu"`` or ``"tanh"``.
    classes : tuple of str
        Names of the classes, in the order of the answers; empty if the network predicts a quantity.
    warnings : tuple of str
        What users should know about the training.
    target_centre, target_scale : float
        A predicted quantity is ``target_centre + target_scale * output``, with the network's single output.
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
    target_centre: float = 0.0
    target_scale: float = 1.0

    @property
    def quantity(self) -> bool:
        """Whether the network predicts a quantity; else it predicts a class."""
        return not self.classes

    @property
    def file_name(self) -> str:
        """Name of the file in a folder that the product is saved to."""
        return NETWORK_FILE

    @property
    def learned(self) -> tuple[str, ...]:
        """Empty: a network knows the names of its classes."""
        return ()

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        if self.quantity:
            raise InvalidPredictions(
                "the network predicts a quantity and gives no probabilities of classes; ask for predict."
            )
        return self._answers(features, lambda logits: softmax(logits, axis=1))

    def predict(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the predicted quantity of each record, shape (n,)."""
        if not self.quantity:
            raise InvalidPredictions(
                "the network predicts a class and not a quantity; ask for predict_proba."
            )
        return self._answers(
            features, lambda z: self.target_centre + self.target_scale * z
        )[:, 0]

    def _answers(
        self,
        features: pd.DataFrame,
        answer: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """Return the network's answers, which ``answer`` makes of the last layer's outputs (n, outputs)."""
        matrix = self._matrix(features)
        parts = [
            np.asarray(answer(self._logits(matrix[at : at + PIECE])[0]))
            for at in range(0, len(matrix), PIECE)
        ]
        width = len(self.classes) or 1
        answers = np.concatenate(parts) if parts else np.empty((0, width))
        if not np.isfinite(answers).all():
            bad = int((~np.isfinite(answers)).any(axis=1).sum())
            raise InvalidPredictions(
                f"a network's answers for {bad} of {len(answers)} records are not finite, so its training diverged and no "
                "attack can be judged; lower the rate of its optimiser."
            )
        return answers

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities, or the predicted quantity as one column."""
        if self.quantity:
            return self.predict(features)[:, None]
        return self.predict_proba(features)

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return probabilities or the predicted quantity, which are the outputs as well."""
        outputs = self.outputs(features)
        return outputs, outputs

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records as numbers, and scaled."""
        matrix = self._matrix(features)
        return network_stages(matrix, (matrix - self.centre) / self.scale)

    def internals(self, features: pd.DataFrame, labels: NDArray[np.int64]) -> Internals:
        r"""Return what an attacker who opens the network sees at each record.

        The gradient of a layer's weights is the outer product of its deltas :math:`\delta` with its inputs :math:`a`, and
        that of its biases is :math:`\delta`. So its length is :math:`|\delta| \sqrt{|a|^2 + 1}`, and no gradient is formed.

        Parameters
        ----------
        features : data frame
            The records.
        labels : array of int
            Their true classes, by position in ``classes``.
        """
        if self.quantity:
            raise InvalidPredictions(
                "gradients are taken of the cross-entropy of classes, but the network predicts a quantity; ask for predict."
            )
        matrix, labels = self._matrix(features), np.asarray(labels)
        if len(labels) != len(matrix):
            raise InvalidPredictions(
                f"there are {len(labels)} labels for {len(matrix)} records; pass one of each per record."
            )
        return joined(
            [
                self._internals(matrix[at : at + PIECE], labels[at : at + PIECE])
                for at in range(0, max(len(matrix), 1), PIECE)
            ]
        )

    def _internals(
        self, matrix: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> Internals:
        logits, inputs = self._logits(matrix)
        losses, delta = loss_and_delta(logits, labels)
        lengths = np.linalg.norm(delta, axis=1)
        # Deltas of length 1 are propagated back, so that single precision is precise enough.
        unit = (delta / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
        norms = np.empty((len(matrix), len(self.weights)))
        for layer in reversed(range(len(self.weights))):
            size = np.linalg.norm(inputs[layer], axis=1).astype(np.float64)
            norms[:, layer] = lengths * np.linalg.norm(unit, axis=1) * np.hypot(size, 1)
            if layer > 0:
                unit = (unit @ self.weights[layer]) * self._slope(inputs[layer])
        hidden = (f"hidden {k + 1}" for k in range(len(self.weights) - 1))
        return Internals(
            losses=losses,
            gradient_norms=norms,
            layers=(*hidden, "output"),
            activations=units_shown(inputs[-1]),
        )

    def _slope(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the derivative of the activation function, given its values."""
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
        """Return the logits, and the inputs of each layer."""
        values = np.nan_to_num((matrix - self.centre) / self.scale)
        last, inputs = len(self.weights) - 1, []
        for layer, (weight, bias) in enumerate(
            zip(self.weights, self.biases, strict=True)
        ):
            inputs.append(values)
            values = values @ weight.T + bias
            if layer < last:
                values = (
                    np.maximum(values, 0)
                    if self.activation == "relu"
                    else np.tanh(values)
                )
        return values.astype(np.float64), inputs

    def with_classes(self, classes: tuple[str, ...]) -> "NetworkProduct":
        """Return the product with its answers in the order of a table's classes."""
        if self.quantity != (not classes):
            raise InvalidPredictions(
                f"the network predicts a {'quantity' if self.quantity else 'class'}, but the table's target is a "
                f"{'class' if self.quantity else 'quantity'}; audit it on a table with the same target."
            )
        if self.quantity:
            return self
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
        write_bytes(file, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the safetensors file."""
        from safetensors.numpy import save

        layers = range(len(self.weights))
        arrays = {
            "centre": self.centre,
            "scale": self.scale,
            **{f"weights.{k}": np.ascontiguousarray(self.weights[k]) for k in layers},
            **{f"biases.{k}": np.ascontiguousarray(self.biases[k]) for k in layers},
        }
        words: dict[str, object] = {
            "numbers": self.encoder.numbers,
            "categories": self.encoder.categories,
            "activation": self.activation,
            "classes": self.classes,
            "warnings": self.warnings,
        }
        if self.quantity:
            words["target"] = (self.target_centre, self.target_scale)
        return bytes(save(arrays, metadata={"network": json.dumps(words)}))

    @classmethod
    def load(cls, data: bytes, name: str = NETWORK_FILE) -> "NetworkProduct":
        """Read a network from the bytes of a file; nothing in them is executed.

        Raises
        ------
        UnsafeProduct
            If the file holds no such network.
        """
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load
        except ImportError as error:
            raise UnsafeProduct(
                "the product is a network and cannot be read without safetensors, which is not installed; install reticent[torch]."
            ) from error

        try:
            arrays = {key: value.copy() for key, value in load(data).items()}
            return cls._from_parts(json.loads(metadata_of(data)["network"]), arrays)
        except (
            *(OSError, SafetensorError, KeyError, TypeError, ValueError),
            *(AttributeError, OverflowError, RecursionError),
        ) as error:
            raise UnsafeProduct(
                f"{name} cannot be read as a network of reticent ({error}); save it with `reticent train` or --save-product."
            ) from error

    @classmethod
    def _from_parts(
        cls, words: Mapping[str, Any], arrays: Mapping[str, NDArray[np.float32]]
    ) -> "NetworkProduct":
        layers = sum(name.startswith("weights.") for name in arrays)
        target_centre, target_scale = map(float, words.get("target", (0.0, 1.0)))
        if not (math.isfinite(target_centre) and 0 < target_scale < math.inf):
            raise ValueError("its target has no finite centre and scale")
        network = cls(
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
            target_centre=target_centre,
            target_scale=target_scale,
        )
        if ("target" in words) != network.quantity:
            raise ValueError(
                "it does not clearly say whether it predicts a class or a quantity"
            )
        widths = [network.encoder.width, *(len(b) for b in network.biases)]
        shapes = [(a, b) for b, a in itertools.pairwise(widths)]
        outputs = len(network.classes) or 1
        if [w.shape for w in network.weights] != shapes or widths[-1] != outputs:
            raise ValueError("its layers do not fit each other")
        scaling = (network.encoder.width,)
        if network.centre.shape != scaling or network.scale.shape != scaling:
            raise ValueError("its scaling does not fit its columns")
        numbers = (network.centre, network.scale, *network.weights, *network.biases)
        if not all(np.isfinite(array).all() for array in numbers):
            raise ValueError("some of its numbers are not finite")
        if network.activation not in ACTIVATIONS:
            raise ValueError(f"its activation {network.activation!r} is not known")
        return network


def metadata_of(data: bytes) -> dict[str, str]:
    """Return the texts in the header of a safetensors file, whose length stands in its first 8 bytes; empty if there are none.

    Raises
    ------
    ValueError, RecursionError
        If there is no such header.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    texts = header.get("__metadata__") if isinstance(header, dict) else None
    return texts if isinstance(texts, dict) else {}
