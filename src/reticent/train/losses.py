"""What a training minimises: one number per record, from its logits and class probabilities."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train._own_code import OwnCode
from reticent.train.recipes import CROSS_ENTROPY, Private, Training

__all__ = ["Loss", "cross_entropy", "loss_of"]

Loss = Callable[[Tensor, Tensor], Tensor]
RECORDS = 3  # records on which a user's loss is tried: enough to tell one record from all others


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each record, (batch,).

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([0.6931])
    """
    return -(targets * torch.log_softmax(logits, 1)).sum(1)


def loss_of(recipe: Training | Private, classes: int) -> Loss:
    """Return the loss of a recipe, tried on a few artificial records if the user wrote it.

    Parameters
    ----------
    recipe : Training or Private
        The recipe that states the loss and the label smoothing.
    classes : int
        Number of logits per record.

    Raises
    ------
    InvalidInput
        If the user's function does not return one loss per record that depends on that record alone.
    """
    name, share = recipe.objective()
    loss: Loss = cross_entropy
    if name != CROSS_ENTROPY:
        loss = OwnCode(name).function()
        _must_judge_alone(loss, name, classes)
    if share == 0:
        return loss

    def smoothed(logits: Tensor, targets: Tensor) -> Tensor:
        return loss(logits, (1 - share) * targets + share / classes)

    return smoothed


def _must_judge_alone(loss: Callable[..., Any], name: str, classes: int) -> None:
    """Refuse a loss that is not one number per record, or in which one record changes the loss of another."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(RECORDS, classes, generator=generator).requires_grad_()
    targets = torch.eye(classes)[torch.arange(RECORDS) % classes]
    together = loss(logits, targets)
    if not isinstance(together, Tensor) or together.shape != (RECORDS,):
        shape = tuple(together.shape) if isinstance(together, Tensor) else together
        raise InvalidInput(
            f"the loss {name} returns {shape!r} for {RECORDS} records, where one number for each was expected; return a tensor of shape "
            "(batch,), without a mean or sum over records."
        )
    if not together.requires_grad:
        raise InvalidInput(
            f"the loss {name} has no gradient with respect to the logits, so nothing can be learned from it; write it in PyTorch, without detach."
        )
    alone = [loss(logits[k : k + 1], targets[k : k + 1]) for k in range(RECORDS)]
    # The tolerance leaves room for single precision; a loss that mixes records differs by far more.
    if not torch.allclose(
        together, torch.cat(alone), rtol=1e-3, atol=1e-5, equal_nan=True
    ):
        raise InvalidInput(
            f"the loss {name} of three records together differs from that of each alone, so one record changes what is learned from another; "
            "compute the loss of every record from that record alone, without random numbers."
        )
