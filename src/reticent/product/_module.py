"""A trained module as a product: weights and a description of the operations, without code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.errors import InvalidPredictions, UnsafeProduct
from reticent.product._encode import Encoder
from reticent.product._network import NETWORK_FILE, metadata_of
from reticent.product.internals import Internals
from reticent.product.stages import Stages, network_stages
from reticent.run import write_bytes

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["ModuleProduct", "holds_module", "must_be_storable"]

PIECE = 4096  # records encoded at once, so that a piece stays in the processor's cache
RECORDS = 1024  # records predicted at once, so that the layers' outputs stay small
HOLDS = "module"  # key of the description in the file's metadata
WEIGHTS = "module."  # beginning of the names of the weights in the file


@dataclass(frozen=True, kw_only=True)
class ModuleProduct:
    """A ``torch.nn.Module`` that answers queries about raw records.

    Parameters
    ----------
    encoder : Encoder
        Turns the columns into numbers.
    module : nn.Module
        Maps (n, inputs) to (n, classes) logits, in evaluation mode.
    centre, scale : array of float, shape (inputs,)
        The module sees ``(numbers - centre) / scale``, and 0 for a missing number.
    classes : tuple of str
        Names of the classes, in the order of the logits.
    warnings : tuple of str
        What users should know about the training.
    """

    encoder: Encoder
    module: "nn.Module"
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    classes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True

    @property
    def file_name(self) -> str:
        """Name of the file in a folder that the product is saved to."""
        return NETWORK_FILE

    @property
    def learned(self) -> tuple[str, ...]:
        """Empty: a module knows the names of its classes."""
        return ()

    @property
    def quantity(self) -> bool:
        """Whether the product predicts a quantity: no, it predicts a class."""
        return False

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        import torch

        matrix = self._matrix(features)
        parts = [np.empty((0, len(self.classes)), dtype=np.float32)]
        size = getattr(self.module, "at_once", RECORDS)
        with torch.no_grad():
            for at in range(0, len(matrix), PIECE):
                inputs = torch.from_numpy(self._scaled(matrix[at : at + PIECE]))
                parts += [
                    torch.softmax(self.module(batch), 1).numpy()
                    for batch in torch.split(inputs, size)
                ]
        answers = np.concatenate(parts)
        if not np.isfinite(answers).all():
            bad = int((~np.isfinite(answers)).any(axis=1).sum())
            raise InvalidPredictions(
                f"a network's answers for {bad} of {len(answers)} records are not finite, so its training diverged and no "
                "attack can be judged; lower the rate of its optimiser."
            )
        return answers.astype(np.float64)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities."""
        return self.predict_proba(features)

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return probabilities, which are the outputs as well."""
        outputs = self.outputs(features)
        return outputs, outputs

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records as numbers, and scaled."""
        matrix = self._matrix(features)
        return network_stages(matrix, (matrix - self.centre) / self.scale)

    def internals(self, features: pd.DataFrame, labels: NDArray[np.int64]) -> Internals:
        """Return what an attacker who opens the module sees at each record.

        Parameters
        ----------
        features : data frame
            The records.
        labels : array of int
            Their true classes, by position in ``classes``.
        """
        from reticent.product.module_internals import internals_of_module

        return internals_of_module(self.module, self.inputs(features), labels)

    def inputs(self, features: pd.DataFrame) -> "Tensor":
        """Return what the module sees of records, (n, inputs)."""
        import torch

        return torch.from_numpy(self._scaled(self._matrix(features)))

    def _matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        absent = [c for c in self.encoder.columns if c not in features]
        if absent:
            raise InvalidPredictions(
                f"the product was trained on the column {absent[0]!r}, which the table does not have; audit it on a table with "
                "the same columns."
            )
        return self.encoder.matrix(features)

    def _scaled(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(np.nan_to_num((matrix - self.centre) / self.scale))

    def with_classes(self, classes: tuple[str, ...]) -> "ModuleProduct":
        """Return the product with its answers in the order of a table's classes."""
        if sorted(classes) != sorted(self.classes):
            raise InvalidPredictions(
                f"the product knows the classes {', '.join(self.classes[:5])}, but the table has {', '.join(classes[:5])}; audit it "
                "on a table with the same target."
            )
        if classes == self.classes:
            return self
        from reticent.product.describe import described
        from reticent.product.graph import rebuilt, reordered

        sizes = {"inputs": self.encoder.width, "classes": len(classes)}
        order = [self.classes.index(name) for name in classes]
        description = reordered(described(self.module, **sizes), order)
        return replace(self, classes=classes, module=rebuilt(description, **sizes))

    def copied(self) -> "ModuleProduct":
        """Return the product as it would be loaded again: with copied weights, without hooks and without code.

        Raises
        ------
        OutputRefused
            If the module cannot be written down.
        """
        from reticent.product.describe import described
        from reticent.product.graph import Description, rebuilt

        sizes = {"inputs": self.encoder.width, "classes": len(self.classes)}
        original = described(self.module, **sizes)
        tensors = {name: t.detach().clone() for name, t in original.tensors.items()}
        copy = Description(words=original.words, tensors=tensors)
        return replace(self, module=rebuilt(copy, **sizes))

    def save(self, file: Path) -> None:
        """Write the weights and the description to a safetensors file.

        Raises
        ------
        OutputRefused
            If the module does something that is not on the list of operations that only calculate.
        """
        write_bytes(file, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the safetensors file."""
        import torch
        from safetensors.torch import save

        from reticent.product.describe import described

        description = described(
            self.module, inputs=self.encoder.width, classes=len(self.classes)
        )
        weights = {
            WEIGHTS + name: tensor.detach().cpu().contiguous().clone()
            for name, tensor in description.tensors.items()
        }
        scaling = {
            "centre": torch.from_numpy(np.ascontiguousarray(self.centre)),
            "scale": torch.from_numpy(np.ascontiguousarray(self.scale)),
        }
        words = {
            "numbers": self.encoder.numbers,
            "categories": self.encoder.categories,
            "classes": self.classes,
            "warnings": self.warnings,
            "module": description.words,
        }
        metadata = {HOLDS: json.dumps(words)}
        return bytes(save({**scaling, **weights}, metadata=metadata))

    @classmethod
    def load(cls, data: bytes, name: str = NETWORK_FILE) -> "ModuleProduct":
        """Read a module from the bytes of a file; only operations of a fixed list are carried out.

        Raises
        ------
        UnsafeProduct
            If the file holds no such module, or names anything that is not on the list.
        """
        try:
            import torch  # noqa: F401
            from safetensors import SafetensorError
            from safetensors.torch import load
        except ImportError as error:
            raise UnsafeProduct(
                "the product is a PyTorch module and cannot answer without PyTorch, which is not installed; install reticent[torch]."
            ) from error
        try:
            tensors = {key: tensor.clone() for key, tensor in load(data).items()}
            return cls._from_parts(json.loads(metadata_of(data)[HOLDS]), tensors)
        except (
            *(OSError, SafetensorError, KeyError, TypeError, ValueError),
            *(AttributeError, RecursionError),
        ) as error:
            raise UnsafeProduct(
                f"{name} cannot be read as a module of reticent ({error}); save it with --save-product."
            ) from error

    @classmethod
    def _from_parts(
        cls, words: Mapping[str, Any], tensors: Mapping[str, "Tensor"]
    ) -> "ModuleProduct":
        from reticent.product.graph import Description, rebuilt

        encoder = Encoder(
            numbers=tuple(map(str, words["numbers"])),
            categories=tuple(
                (str(name), tuple(map(str, known)))
                for name, known in words["categories"]
            ),
        )
        classes = tuple(map(str, words["classes"]))
        centre, scale = tensors["centre"].numpy(), tensors["scale"].numpy()
        if centre.shape != (encoder.width,) or scale.shape != (encoder.width,):
            raise ValueError("its scaling does not fit its columns")
        weights = {
            name.removeprefix(WEIGHTS): tensor
            for name, tensor in tensors.items()
            if name.startswith(WEIGHTS)
        }
        return cls(
            encoder=encoder,
            module=rebuilt(
                Description(words=words["module"], tensors=weights),
                inputs=encoder.width,
                classes=len(classes),
            ),
            centre=centre,
            scale=scale,
            classes=classes,
            warnings=tuple(map(str, words["warnings"])),
        )


def must_be_storable(module: "nn.Module", *, inputs: int, classes: int) -> None:
    """Refuse a module that cannot be saved, before time is spent on training it.

    Parameters
    ----------
    module : nn.Module
        The module, trained or not.
    inputs, classes : int
        Number of inputs that the module takes per record, and of logits that it gives.

    Raises
    ------
    OutputRefused
        If the module does something that cannot be written down without code.
    """
    from reticent.product.describe import described

    described(module, inputs=inputs, classes=classes)


def holds_module(data: bytes) -> bool:
    """Whether the bytes of a safetensors file say that it holds a module."""
    try:
        return HOLDS in metadata_of(data)
    except (ValueError, RecursionError):
        return False
