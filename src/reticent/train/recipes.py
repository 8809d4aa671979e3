"""Recipes of networks: plain descriptions, which need no PyTorch."""

from dataclasses import dataclass

from reticent.errors import InvalidInput

__all__ = ["SGD", "Adam", "Module", "Network", "Training"]


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent, with momentum as in PyTorch: v = momentum v + g, W -= rate v."""

    rate: float = 0.01
    momentum: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma & Ba, arXiv:1412.6980), with bias correction."""

    rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8


@dataclass(frozen=True, kw_only=True)
class Network:
    """The recipe of a multilayer perceptron with ReLU units, trained on cross-entropy.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers.
    epochs, batch : int
        Passes over the members, and members per step; the last batch may be smaller.
    optimiser : SGD or Adam
        How weights follow gradients.
    l2 : float
        Weight decay: ``l2 W`` is added to the gradient of weights, not of biases.
    dropout : float
        Share of hidden units switched off per step, in [0, 1).
    """

    hidden: tuple[int, ...] = (8,)
    epochs: int = 200
    batch: int = 128
    optimiser: SGD | Adam = SGD()
    l2: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list is as good
        if self.epochs < 1 or self.batch < 1 or any(width < 1 for width in self.hidden):
            raise InvalidInput(
                f"epochs ({self.epochs}), batch ({self.batch}) and widths {self.hidden} must be at least 1."
            )
        if not 0 <= self.dropout < 1 or self.l2 < 0:
            raise InvalidInput(
                f"dropout is {self.dropout} and l2 is {self.l2}; dropout must lie in [0, 1) and l2 be at least 0."
            )


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a module of the user is trained: cross-entropy, in batches, one optimiser.

    Parameters
    ----------
    epochs, batch : int
        Passes over the members, and members per step; the last batch may be smaller.
    optimiser : SGD or Adam
        How parameters follow gradients.
    l2 : float
        Weight decay: ``l2 W`` is added to the gradient of parameters with two or more
        dimensions, so not to that of biases and scales of norms.
    """

    epochs: int = 20
    batch: int = 64
    optimiser: SGD | Adam = Adam()
    l2: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise InvalidInput(
                f"epochs ({self.epochs}) and batch ({self.batch}) must be at least 1."
            )
        if self.l2 < 0:
            raise InvalidInput(
                f"l2 is {self.l2}, which would let weights grow; pass 0 or more."
            )


@dataclass(frozen=True)
class Module(Training):
    """The recipe of a module that a function of the user makes, and of its training.

    Parameters
    ----------
    make : str
        The function, as ``module:function``; called with the number of inputs and of classes,
        it returns a ``torch.nn.Module`` from (batch, inputs) to (batch, classes) logits.

    Examples
    --------
    >>> Module("nets:make", epochs=5).batch
    64
    """

    make: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.make, str) or ":" not in self.make:
            raise InvalidInput(
                f"{self.make!r} names no function that makes a module; write it as 'module:function'."
            )
