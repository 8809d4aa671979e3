"""Call many modules of one kind at once: stacked parameters, dropout chosen from outside."""

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
    "replaced_dropout",
    "stacked",
]

# What dropout keeps, scaled by 1 / keep: a tensor for each call of each dropout layer.
Kept = list[list[Tensor]]
Gradients = Callable[
    [dict[str, Tensor], dict[str, Tensor], Kept, Tensor, Tensor, Tensor],
    tuple[dict[str, Tensor], Tensor],
]


class ChosenDropout(nn.Module):
    """Dropout that keeps the units chosen from outside, so that each model can have a different choice.

    Parameters
    ----------
    share : float
        Share of units that are switched off.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.keep = 1 - share
        self.seen: list[torch.Size] = []
        self._chosen: Iterator[Tensor] | None = None

    def choose(self, chosen: Sequence[Tensor]) -> None:
        """Set what the next forward pass keeps, one tensor per call."""
        self._chosen = iter(chosen)

    def forward(self, values: Tensor) -> Tensor:
        """Return the values times the chosen tensor; if nothing was chosen, record their shape."""
        if not self.training:
            return values
        if self._chosen is None:
            self.seen.append(values.shape)
            return values
        chosen = next(self._chosen, None)
        if chosen is None:
            raise InvalidInput(
                "a dropout layer is called more often in one forward pass than in another, so what it keeps cannot "
                "be drawn in advance; call it equally often in each."
            )
        return values * chosen

    def draw(
        self, records: int, shape: Sequence[int], generator: torch.Generator
    ) -> Tensor:
        """Return what one call keeps of the records of a model, scaled by 1 / keep."""
        drawn = torch.rand(records, *shape, generator=generator)
        return (drawn < self.keep).float().div_(self.keep or 1.0)


@contextmanager
def chosen_dropout(
    module: nn.Module, wanted: bool = True
) -> Iterator[list[ChosenDropout]]:
    """Replace each ``nn.Dropout`` of a module by a :class:`ChosenDropout`, and restore it afterwards.

    Parameters
    ----------
    module : nn.Module
        The module, which is changed and restored.
    wanted : bool
        Whether to replace the layers; if not, the module stays unchanged.
    """
    places = _dropouts(module) if wanted else []
    layers = _put(places)
    try:
        yield list(layers.values())
    finally:
        for parent, name, child in places:
            parent._modules[name] = child.train(layers[id(child)].training)


def replaced_dropout(module: nn.Module) -> list[ChosenDropout]:
    """Replace each ``nn.Dropout`` of a module by a :class:`ChosenDropout` for good, and return these."""
    return list(_put(_dropouts(module)).values())


def _dropouts(module: nn.Module) -> list[tuple[nn.Module, str, nn.Dropout]]:
    """Return the dropout layers of a module, each with the layer that holds it and its name there."""
    return [
        (parent, name, child)
        for parent in module.modules()
        for name, child in parent._modules.items()
        if child is not None and type(child) is nn.Dropout
    ]


def _put(places: list[tuple[nn.Module, str, nn.Dropout]]) -> dict[int, ChosenDropout]:
    """Replace dropout layers, and return what stands in their places by the identity of the layer."""
    # A layer that is used in two places is one layer, called twice.
    layers = {id(child): ChosenDropout(child.p) for _, _, child in places}
    for parent, name, child in places:
        parent._modules[name] = layers[id(child)].train(child.training)
    return layers


def stacked(
    modules: Sequence[nn.Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the tensors that training moves and those that it leaves, each stacked to (M, ...), by name.

    Raises
    ------
    InvalidInput
        If the modules do not have the same parameters.
    """
    tensors = [
        {**dict(module.named_parameters()), **dict(module.named_buffers())}
        for module in modules
    ]
    shapes = [{name: t.shape for name, t in named.items()} for named in tensors]
    if any(shape != shapes[0] for shape in shapes):
        raise InvalidInput(
            "the modules built for one pool differ in their parameters, so they cannot be stacked; build the same layers "
            "each time, or pass together=False."
        )
    moving, fixed = {}, {}
    for name, tensor in tensors[0].items():
        stack = torch.stack([named[name].detach() for named in tensors])
        if isinstance(tensor, nn.Parameter) and tensor.requires_grad:
            moving[name] = stack
        else:
            fixed[name] = stack
    return moving, fixed


def gradients_of(
    frame: nn.Module, layers: Sequence[ChosenDropout], judge: Loss
) -> Gradients:
    """Return a function from stacked models and their batches to gradients and logits.

    Its arguments are the tensors that move, those that are fixed, what dropout keeps, inputs (M, k, ...), targets
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

    gradients: Gradients = vmap(grad(loss, has_aux=True))
    return gradients
