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
from torch import Tensor

from reticent.train.engine import Kept
from reticent.train.private.noise import secure_generator
from reticent.train.private.randomness import mixed_seed
from reticent.train.recipes import Network

__all__ = ["dropout_keys", "kept_units"]

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
    of_step = _mixed(keys + _STEP * torch.tensor(step + 1))
    of_record = _mixed(of_step[:, None] + _STEP * (index + 1))
    kept: list[Tensor | None] = []
    first = 1
    for width, share in zip(recipe.hidden, recipe.dropouts, strict=True):
        units = _STEP * torch.arange(first, first + width)
        first += width
        if share == 0:
            kept.append(None)
            continue
        bits = _mixed(of_record[:, None] + units[None, :, None])
        keep = 1 - share
        chosen = _shifted(bits, 64 - _BITS) < round(keep * 2**_BITS)
        kept.append(chosen.float().div_(keep))
    return kept


def _mixed(numbers: Tensor) -> Tensor:
    """Return a hash of each number, in which every bit depends on every bit."""
    numbers = (numbers ^ _shifted(numbers, 30)) * _FIRST
    numbers = (numbers ^ _shifted(numbers, 27)) * _SECOND
    return numbers ^ _shifted(numbers, 31)


def _shifted(numbers: Tensor, places: int) -> Tensor:
    """Return numbers shifted to the right as if they were unsigned."""
    return torch.bitwise_and(numbers >> places, 2 ** (64 - places) - 1)
