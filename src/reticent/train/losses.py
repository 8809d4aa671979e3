"""What a training makes small: one number per record, from its logits and class probabilities."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from reticent.errors import InvalidInput
from reticent.train._own_code import OwnCode
from reticent.train.recipes import CROSS_ENTROPY, Training

__all__ = ["Loss", "cross_entropy", "loss_of"]

Loss = Callable[[Tensor, Tensor], Tensor]
RECORDS = 3


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of each record, (batch,).

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([0.6931])
    """
    return -(targets * torch.log_softmax(logits, 1)).sum(1)


def loss_of(recipe: object, classes: int) -> Loss:
    """Return the loss of a recipe, tried on a few made-up records if it is the user's own.

    Parameters
    ----------
    recipe : Training
        Its ``loss`` and ``label_smoothing``; of any other recipe the loss is the cross-entropy.
    classes : int
        Logits of a record.

    Raises
    ------
    InvalidInput
        If the user's function does not return one loss per record, each of that record alone.
    """
    if not isinstance(recipe, Training):
        return cross_entropy
    loss: Loss = cross_entropy
    if recipe.loss != CROSS_ENTROPY:
        loss = OwnCode(recipe.loss).found()
        _must_judge_alone(loss, recipe.loss, classes)
    share = recipe.label_smoothing
    if share == 0:
        return loss

    def smoothed(logits: Tensor, targets: Tensor) -> Tensor:
        return loss(logits, (1 - share) * targets + share / classes)

    return smoothed


def _must_judge_alone(loss: Callable[..., Any], name: str, classes: int) -> None:
    """Refuse a loss that is not one number a record, or in which one record changes another one's."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(RECORDS, classes, generator=generator).requires_grad_()
    targets = torch.eye(classes)[torch.arange(RECORDS) % classes]
    together = loss(logits, targets)
    if not isinstance(together, Tensor) or together.shape != (RECORDS,):
        shape = tuple(together.shape) if isinstance(together, Tensor) else together
        raise InvalidInput(
            f"the loss {name} gives {shape!r} for {RECORDS} records, where one number for each was expected; return a tensor of shape "
            "(batch,), without a mean or sum over records."
        )
    if not together.requires_grad:
        raise InvalidInput(
            f"the loss {name} does not lead back to the logits, so nothing can be learned from it; write it in PyTorch, without detach."
        )
    alone = [loss(logits[k : k + 1], targets[k : k + 1]) for k in range(RECORDS)]
    if not torch.allclose(
        together, torch.cat(alone), rtol=1e-3, atol=1e-5, equal_nan=True
    ):
        raise InvalidInput(
            f"the loss {name} judges three records together otherwise than each alone, so that one record changes what another one teaches; "
            "let it treat every record by itself, without draws of its own."
        )
