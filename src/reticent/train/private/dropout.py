"""Dropout in private training: masks that depend on the model's key, the step and the record, and on nothing else.

What is switched off for a record must not depend on what any record holds, nor on who else takes part in the step: then a record's
share of a step is a function of that record and of numbers drawn beforehand, its clipped gradient still bounds its influence, and
the guarantee is that of the same training without dropout. Masks are therefore computed, not drawn in the order of the batch: a
64-bit hash of key, step, record and unit decides. The same record has the same mask in the same step whoever is in the batch, whichever
models are trained together, and however the batch is cut into pieces.

References
----------
.. [1] Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, whose finaliser mixes the bits.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from reticent.errors import InvalidInput
from reticent.train._vector import ChosenDropout
from reticent.train.engine import Kept
from reticent.train.private.noise import secure_generator
from reticent.train.private.randomness import mixed_seed
from reticent.train.recipes import Network

__all__ = ["Chosen", "KeyedDropout", "dropout_keys", "kept_units"]

# Dropout layers of a module, each with what it keeps in each of its calls.
Chosen = list[tuple[ChosenDropout, list[Tensor]]]
# The odd constants of SplitMix64, as signed numbers of 64 bits.
_STEP = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64
_BITS = 24  # of the hash that are compared with the share: as fine as single precision
_STREAM = 4  # of a model's seed; others give batches, noise and the domain


def dropout_keys(seeds: Sequence[int], *, secret: bool) -> Tensor:
    """Return one key per model, from its seed, or from system entropy if the training is secret, shape (M,).

    A key need not be secret for the guarantee as long as records keep their places in the table; a secret one holds for tables whose
    records move up when one is removed as well.

    Parameters
    ----------
    seeds : sequence of int
        Seed of each model.
    secret : bool
        Whether nobody may be able to compute the masks again.
    """
    if secret:
        return torch.from_numpy(secure_generator().integers(2**62, size=len(seeds)))
    return torch.tensor([mixed_seed(seed, _STREAM) for seed in seeds])


def kept_units(recipe: Network, keys: Tensor, step: int, index: Tensor) -> Kept | None:
    """Return what dropout keeps of each hidden layer in one step, (M, width, k), scaled by 1 / keep; None if it keeps everything.

    Parameters
    ----------
    recipe : Network
        Widths of the hidden layers, and the share of each that is switched off.
    keys : Tensor of int, shape (M,)
        Key of each model.
    step : int
        Number of the step, from 0.
    index : Tensor of int, shape (M, k)
        Records of each model's batch, as places among its members.
    """
    if not any(recipe.dropouts):
        return None
    of_record = _of_records(keys, step, index)
    kept: list[Tensor | None] = []
    first = 1
    for width, share in zip(recipe.hidden, recipe.dropouts, strict=True):
        units = _STEP * torch.arange(first, first + width)
        first += width
        if share == 0:
            kept.append(None)
            continue
        kept.append(_chosen(of_record[:, None] + units[None, :, None], 1 - share))
    return kept


class KeyedDropout:
    """What the dropout layers of one module keep, by the same hash; it lasts as long as the module is trained.

    Parameters
    ----------
    module : nn.Module
        The module, in training mode.
    layers : sequence of ChosenDropout
        What stands in place of its dropout layers.
    record : Tensor, (1, ...)
        One record, to find out what the layers are asked.
    key : Tensor of int, shape (1,)
        Key of the model.
    """

    def __init__(
        self,
        module: nn.Module,
        layers: Sequence[ChosenDropout],
        record: Tensor,
        key: Tensor,
    ) -> None:
        self._layers, self._key = list(layers), key
        for layer in self._layers:
            layer.seen.clear()
        if self._layers:
            with torch.no_grad():
                module(record)
        self._shapes = [[shape[1:] for shape in layer.seen] for layer in self._layers]
        if any(shape[0] != 1 for layer in self._layers for shape in layer.seen):
            raise InvalidInput(
                "a dropout layer is not asked about one row per record, so that what it switches off for one record could depend on "
                "others; let the first dimension be the records, or leave the layer out."
            )

    def chosen(self, step: int, places: Tensor) -> Chosen:
        """Return the layers, each with what it keeps of the records, (k, ...), in each of its calls.

        Parameters
        ----------
        step : int
            Number of the step, from 0.
        places : Tensor of int, shape (k,)
            Records, as places among the members.
        """
        of_record = _of_records(self._key, step, places[None])[0]
        first, chosen = 1, []
        for layer, shapes in zip(self._layers, self._shapes, strict=True):
            calls = []
            for shape in shapes:
                units = _STEP * torch.arange(first, first + shape.numel())
                first += shape.numel()
                kept = _chosen(of_record[:, None] + units, layer.keep)
                calls.append(kept.view(len(places), *shape))
            chosen.append((layer, calls))
        return chosen


def _of_records(keys: Tensor, step: int, index: Tensor) -> Tensor:
    """Return a hash of key, step and record, (M, k)."""
    of_step = _mixed(keys + _STEP * torch.tensor(step + 1))
    return _mixed(of_step[:, None] + _STEP * (index + 1))


def _chosen(numbers: Tensor, keep: float) -> Tensor:
    """Return 1 / keep for the share of the numbers whose hash is small, and 0 for the others."""
    bits = _shifted(_mixed(numbers), 64 - _BITS)
    kept = torch.lt(bits, round(keep * 2**_BITS)).float()
    return kept.div_(keep or 1.0)


def _mixed(numbers: Tensor) -> Tensor:
    """Return a hash of each number, in which every bit depends on every bit."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shifted(numbers, 27)) * _SECOND
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """Return numbers shifted to the right as if they were unsigned."""
    return torch.bitwise_and(numbers >> places, 2 ** (64 - places) - 1)
