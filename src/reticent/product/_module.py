"""A trained module as a product: weights and a description of its operations, no code."""

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
from reticent.product._internals import Internals

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["ModuleProduct", "holds_module", "must_be_storable"]

PIECE = 4096  # records prepared at once: what a module sees of them stays in cache
RECORDS = 1024  # records asked about at once: the layers' outputs stay small
HOLDS, WEIGHTS = "module", "module."


@dataclass(frozen=True, kw_only=True)
class ModuleProduct:
    """A ``torch.nn.Module`` that answers queries about raw records.

    Parameters
    ----------
    encoder : Encoder
        From columns to numbers.
    module : nn.Module
        From (n, inputs) to (n, classes) logits, in evaluation mode.
    centre, scale : array of float, shape (inputs,)
        What the module sees is ``(numbers - centre) / scale``, and 0 for a missing one.
    classes : tuple of str
        Names of the classes, in the order of the logits.
    warnings : tuple of str
        What users should know of the training.
    """

    encoder: Encoder
    module: "nn.Module"
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    classes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        import torch

        matrix = self._matrix(features)
        parts = [np.empty((0, len(self.classes)), dtype=np.float32)]
        size = getattr(self.module, "at_once", RECORDS)
        with torch.no_grad():
            for at in range(0, len(matrix), PIECE):
                seen = torch.from_numpy(self._seen(matrix[at : at + PIECE]))
                parts += [
                    torch.softmax(self.module(some), 1).numpy()
                    for some in torch.split(seen, size)
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

    def internals(self, features: pd.DataFrame, labels: NDArray[np.int64]) -> Internals:
        """Return what somebody sees at each record who opens the module.

        Parameters
        ----------
        features : data frame
            The records.
        labels : array of int
            Their true classes, by position in ``classes``.
        """
        from reticent.product._module_internals import internals_of_module

        return internals_of_module(self.module, self.inputs(features), labels)

    def inputs(self, features: pd.DataFrame) -> "Tensor":
        """Return what the module sees of records, (n, inputs)."""
        import torch

        return torch.from_numpy(self._seen(self._matrix(features)))

    def _matrix(self, features: pd.DataFrame) -> NDArray[np.float32]:
        absent = [c for c in self.encoder.columns if c not in features]
        if absent:
            raise InvalidPredictions(
                f"the product was trained on the column {absent[0]!r}, which the table does not have; audit it on a table with "
                "the same columns."
            )
        return self.encoder.matrix(features)

    def _seen(self, matrix: NDArray[np.float32]) -> NDArray[np.float32]:
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
        from reticent.product._describe import described
        from reticent.product._graph import rebuilt, reordered

        sizes = {"inputs": self.encoder.width, "classes": len(classes)}
        order = [self.classes.index(name) for name in classes]
        turned = reordered(described(self.module, **sizes), order)
        return replace(self, classes=classes, module=rebuilt(turned, **sizes))

    def copied(self) -> "ModuleProduct":
        """Return the product as it would be loaded again: numbers of its own, without hooks and without code.

        Raises
        ------
        OutputRefused
            If the module cannot be written down.
        """
        from reticent.product._describe import described
        from reticent.product._graph import Description, rebuilt

        sizes = {"inputs": self.encoder.width, "classes": len(self.classes)}
        made = described(self.module, **sizes)
        tensors = {name: t.detach().clone() for name, t in made.tensors.items()}
        copy = Description(words=made.words, tensors=tensors)
        return replace(self, module=rebuilt(copy, **sizes))

    def save(self, file: Path) -> None:
        """Write weights and description to a safetensors file.

        Raises
        ------
        OutputRefused
            If the module does something that is not on the list of operations known to calculate only.
        """
        import torch
        from safetensors.torch import save

        from reticent.product._describe import described

        made = described(
            self.module, inputs=self.encoder.width, classes=len(self.classes)
        )
        weights = {
            WEIGHTS + name: tensor.detach().cpu().contiguous().clone()
            for name, tensor in made.tensors.items()
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
            "module": made.words,
        }
        part = file.with_name(file.name + ".part")
        part.write_bytes(
            save({**scaling, **weights}, metadata={HOLDS: json.dumps(words)})
        )
        part.replace(file)

    @classmethod
    def load(cls, file: Path) -> "ModuleProduct":
        """Read a module back; nothing in the file is executed but operations of a list.

        Raises
        ------
        UnsafeProduct
            If the file is not such a module, or names anything else.
        """
        try:
            import torch  # noqa: F401
            from safetensors import SafetensorError, safe_open
        except ImportError as error:
            raise UnsafeProduct(
                "the product is a module, and PyTorch, which it needs to answer, is not installed; install reticent[torch]."
            ) from error
        try:
            with safe_open(file, framework="pt") as content:
                words = json.loads((content.metadata() or {})[HOLDS])
                tensors = {
                    name: content.get_tensor(name).clone()
                    for name in content.keys()  # noqa: SIM118 (no mapping)
                }
            return cls._made(words, tensors)
        except (
            *(OSError, SafetensorError, KeyError, TypeError, ValueError),
            *(AttributeError, RecursionError),
        ) as error:
            raise UnsafeProduct(
                f"{file.name} cannot be read as a module of reticent ({error}); save it with --save-product."
            ) from error

    @classmethod
    def _made(
        cls, words: Mapping[str, Any], tensors: Mapping[str, "Tensor"]
    ) -> "ModuleProduct":
        from reticent.product._graph import Description, rebuilt

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
    """Refuse a module that cannot be saved, before it is trained for long.

    Parameters
    ----------
    module : nn.Module
        Trained or not.
    inputs, classes : int
        Numbers that it sees of a record, and logits that it gives.

    Raises
    ------
    OutputRefused
        If it does something that cannot be written down without code.
    """
    from reticent.product._describe import described

    described(module, inputs=inputs, classes=classes)


def holds_module(file: Path) -> bool:
    """Whether a safetensors file says that it holds a module."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        return False
    try:
        with safe_open(file, framework="numpy") as content:
            return HOLDS in (content.metadata() or {})
    except (OSError, SafetensorError):
        return False
