"""Ask many modules of one kind at once: stacked parameters, dropout chosen from outside."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from reticent.errors import InvalidInput
from reticent.train.losses import Loss

__all__ = [
    "ChosenDropout",
    "Gradients",
    "Kept",
    "chosen_dropout",
    "gradients_of",
    "stacked",
]

# What dropout keeps, scaled: a tensor for each call of each dropout layer.
Kept = list[list[Tensor]]
Gradients = Callable[
    [dict[str, Tensor], dict[str, Tensor], Kept, Tensor, Tensor, Tensor],
    tuple[dict[str, Tensor], Tensor],
]


class ChosenDropout(nn.Module):
    """Dropout that keeps what it is told to keep, so that each model has a choice of its own.

    Parameters
    ----------
    share : float
        Share of units switched off.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.keep = 1 - share
        self.seen: list[torch.Size] = []
        self._chosen: Iterator[Tensor] | None = None

    def choose(self, chosen: Sequence[Tensor]) -> None:
        """Take what the next forward pass keeps, a tensor a call."""
        self._chosen = iter(chosen)

    def forward(self, values: Tensor) -> Tensor:
        """Return the values times what is kept of them; if nothing was chosen, note their shape."""
        if not self.training:
            return values
        if self._chosen is None:
            self.seen.append(values.shape)
            return values
        chosen = next(self._chosen, None)
        if chosen is None:
            raise InvalidInput(
                "a dropout layer is called more often in one forward pass than in another, so what it keeps cannot "
                "be drawn beforehand; call it equally often in each."
            )
        return values * chosen

    def draw(
        self, records: int, shape: Sequence[int], generator: torch.Generator
    ) -> Tensor:
        """Return what one call keeps of some records of a model, scaled by 1 / keep."""
        drawn = torch.rand(records, *shape, generator=generator)
        return (drawn < self.keep).float().div_(self.keep or 1.0)


@contextmanager
def chosen_dropout(
    module: nn.Module, wanted: bool = True
) -> Iterator[list[ChosenDropout]]:
    """Put a :class:`ChosenDropout` in the place of each ``nn.Dropout`` of a module, for a while.

    Parameters
    ----------
    module : nn.Module
        Changed, and changed back.
    wanted : bool
        If not, the module stays as it is.
    """
    places = [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent._modules.items()
        if wanted and type(child) is nn.Dropout
    ]
    # A layer that stands in two places is one layer, called twice.
    layers = {id(child): ChosenDropout(child.p) for _, _, child in places}
    try:
        for parent, name, child in places:
            layer = layers[id(child)].train(child.training)
            parent._modules[name] = layer
        yield list(layers.values())
    finally:
        for parent, name, child in places:
            parent._modules[name] = child.train(layers[id(child)].training)


def stacked(
    modules: Sequence[nn.Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return what training moves and what it leaves, each stacked to (M, ...), by name.

    Raises
    ------
    InvalidInput
        If the modules have not the same parameters.
    """
    tensors = [
        {**dict(module.named_parameters()), **dict(module.named_buffers())}
        for module in modules
    ]
    shapes = [{name: t.shape for name, t in own.items()} for own in tensors]
    if any(own != shapes[0] for own in shapes):
        raise InvalidInput(
            "the modules made for one pool differ in their parameters, so they cannot be stacked; make the same layers "
            "each time, or pass together=False."
        )
    moving, fixed = {}, {}
    for name, tensor in tensors[0].items():
        stack = torch.stack([own[name].detach() for own in tensors])
        if isinstance(tensor, nn.Parameter) and tensor.requires_grad:
            moving[name] = stack
        else:
            fixed[name] = stack
    return moving, fixed


def gradients_of(
    frame: nn.Module, layers: Sequence[ChosenDropout], judge: Loss
) -> Gradients:
    """Return the function from stacked models and their batches to gradients and logits.

    Its arguments are what moves, what is fixed, what dropout keeps, inputs (M, k, ...), targets
    (M, k, c) and the weights (M, k) of the records in each model's loss.
    """

    def loss(
        moving: dict[str, Tensor],
        fixed: dict[str, Tensor],
        kept: Kept,
        inputs: Tensor,
        targets: Tensor,
        weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        for layer, chosen in zip(layers, kept, strict=True):
            layer.choose(chosen)
        logits: Tensor = functional_call(frame, {**moving, **fixed}, (inputs,))
        return (judge(logits, targets) * weights).sum(), logits

    made: Gradients = vmap(grad(loss, has_aux=True))
    return made
