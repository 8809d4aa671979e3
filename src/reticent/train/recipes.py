"""Recipes of networks: plain descriptions, which need no PyTorch."""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reticent.errors import InvalidInput
from reticent.train.private.clipping import Clip, Clipping

STEPS_PER_EPOCH = 20  # a batch of a twentieth of the records, up to the largest
SMALLEST_BATCH, LARGEST_BATCH = 16, 8192
CROSS_ENTROPY = "cross_entropy"

if TYPE_CHECKING:
    from reticent.account import Course, Mechanism, PrivateTraining, Relation

__all__ = [
    "CROSS_ENTROPY",
    "SGD",
    "Adam",
    "Module",
    "Network",
    "Private",
    "PrivateModule",
    "PrivateNetwork",
    "Training",
    "fitting_batch",
]


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
    """The recipe of a multilayer perceptron, trained on cross-entropy.

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
    activation : str
        What hidden units do: ``"relu"`` or ``"tanh"``.
    """

    hidden: tuple[int, ...] = (8,)
    epochs: int = 200
    batch: int = 128
    optimiser: SGD | Adam = SGD()
    l2: float = 0.0
    dropout: float = 0.0
    activation: str = "relu"

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
        if self.activation not in ("relu", "tanh"):
            raise InvalidInput(
                f"the activation {self.activation!r} is not known; use 'relu' or 'tanh'."
            )


def fitting_batch(rows: int) -> int:
    """Return a batch for so many records: about a twentieth, a power of two, from 16 to 8192.

    It follows from the public number of records alone, so that it betrays nothing.

    Examples
    --------
    >>> fitting_batch(4_000), fitting_batch(10), fitting_batch(10**7)
    (256, 10, 8192)
    """
    fitting: int = 2 ** round(math.log2(max(rows / STEPS_PER_EPOCH, 1)))
    return min(max(fitting, SMALLEST_BATCH), LARGEST_BATCH, rows)


@dataclass(frozen=True, kw_only=True)
class Private:
    """What makes a training differentially private (DP-SGD).

    Each record takes part in a step with probability batch / rows, by itself; its gradient is treated, so that its
    length is bounded; the sum over the batch gets normal noise and is divided by the constant ``batch``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the clipping's bound.
    clipping : Clipping
        What bounds a record's gradient.
    rows : int, optional
        The public number of records. If it is not given, the number of members is taken, and
        treated as public.
    noise : str
        ``"secret"``, from system entropy, for what may be released; ``"seeded"`` for experiments, which
        carry no guarantee.
    domain : str, optional
        File that declares the values of a table's columns. Without it they are learned, with noise.
    domain_noise : float
        Noise multiplier of what is learned of the domain.
    domain_failure : float
        Probability that what is learned of the domain betrays a record that stands alone.
    """

    epochs: int
    batch: int
    optimiser: SGD | Adam
    l2: float
    noise_multiplier: float = 1.0
    clipping: Clipping = Clip(norm=1.0)  # noqa: RUF009 (it is frozen)
    rows: int | None = None
    noise: str = "secret"
    domain: str | None = None
    domain_noise: float = 20.0
    domain_failure: float = 1e-8

    def check(self) -> None:
        """Refuse what would void the guarantee."""
        if not (self.noise_multiplier > 0 and math.isfinite(self.noise_multiplier)):
            raise InvalidInput(
                f"the noise multiplier is {self.noise_multiplier}, but noise that protects is a positive number."
            )
        if self.noise not in ("secret", "seeded"):
            raise InvalidInput(
                f"the noise {self.noise!r} is not known; use 'secret' for what may be released or 'seeded' for experiments."
            )
        if self.domain_noise <= 0 or not 0 < self.domain_failure < 1e-3:
            raise InvalidInput(
                f"domain_noise is {self.domain_noise} and domain_failure {self.domain_failure}; the first must be positive and the second a "
                "probability far below 0.001."
            )

    def course(self, members: int) -> "Course":
        """Return the number of steps and the sampling rate for so many members."""
        from reticent.account import Course

        rows = self.rows or members
        return Course.of_epochs(rows=rows, batch=self.batch, epochs=self.epochs)

    def steps(self, members: int, relation: "Relation") -> "PrivateTraining":
        """Return what the steps release about the records."""
        from reticent.account import PrivateTraining

        course = self.course(members)
        return PrivateTraining(
            noise_multiplier=self.noise_multiplier,
            sampling_rate=course.sampling_rate,
            steps=course.steps,
            relation=relation,
        )

    def mechanism(
        self, members: int, relation: "Relation", *, steps: int | None = None
    ) -> "Mechanism":
        """Return all that is released about a table's records: the domain, if it is learned, and the steps.

        Parameters
        ----------
        members : int
            Records of the table.
        relation : Relation
            When tables are neighbours.
        steps : int, optional
            Only so many of the steps.
        """
        from reticent.account import Composition, Failure, Gaussian

        training = self.steps(members, relation)
        if steps is not None:
            training = replace(training, steps=steps)
        if self.domain is not None:
            return training
        learned = Gaussian(noise_multiplier=self.domain_noise, relation=relation)
        alone = Failure(probability=self.domain_failure, relation=relation)
        return Composition(parts=((training, 1), (learned, 1), (alone, 1)))


@dataclass(frozen=True, kw_only=True)
class PrivateNetwork(Private, Network):
    """The recipe of a multilayer perceptron trained with differential privacy."""

    epochs: int = 20
    batch: int = 256
    optimiser: SGD | Adam = SGD(rate=0.5)
    l2: float = 0.0

    def __post_init__(self) -> None:
        Network.__post_init__(self)
        self.check()
        if self.dropout:
            raise InvalidInput(
                f"dropout is {self.dropout}, but in a private training one record would change what is dropped for others, "
                "and the noise regularises already; leave it 0."
            )

    def sizes(self, inputs: int, classes: int) -> tuple[int, ...]:
        """Return the number of parameters of each layer."""
        widths = [inputs, *self.hidden, classes]
        return tuple((a + 1) * b for a, b in itertools.pairwise(widths))


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a module of the user is trained: a loss, in batches, one optimiser.

    Parameters
    ----------
    epochs, batch : int
        Passes over the members, and members per step; the last batch may be smaller.
    optimiser : SGD or Adam
        How parameters follow gradients.
    l2 : float
        Weight decay: ``l2 W`` is added to the gradient of parameters with two or more
        dimensions, so not to that of biases and scales of norms.
    loss : str
        ``"cross_entropy"``, or a function of the user as ``module:function``. It takes logits (batch, c) and class
        probabilities (batch, c), and returns one loss per record (batch,), each of that record alone.
    label_smoothing : float
        Share of each target that is spread evenly over the classes, in [0, 1).
    """

    epochs: int = 20
    batch: int = 64
    optimiser: SGD | Adam = Adam()
    l2: float = 0.0
    loss: str = CROSS_ENTROPY
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise InvalidInput(
                f"epochs ({self.epochs}) and batch ({self.batch}) must be at least 1."
            )
        if self.l2 < 0:
            raise InvalidInput(
                f"l2 is {self.l2}, which would let weights grow; pass 0 or more."
            )
        named = isinstance(self.loss, str) and ":" in self.loss
        if self.loss != CROSS_ENTROPY and not named:
            raise InvalidInput(
                f"the loss {self.loss!r} is not known; write {CROSS_ENTROPY!r}, or a function of your own as 'module:function'."
            )
        if not 0 <= self.label_smoothing < 1:
            raise InvalidInput(
                f"label_smoothing is {self.label_smoothing}, but is a share of each target; it must lie in [0, 1)."
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


@dataclass(frozen=True)
class PrivateModule(Private, Module):
    """The recipe of a module of the user, trained with differential privacy."""

    epochs: int = field(default=20, kw_only=True)
    batch: int = field(default=256, kw_only=True)
    optimiser: SGD | Adam = field(default=SGD(rate=0.5), kw_only=True)
    l2: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        Module.__post_init__(self)
        self.check()
