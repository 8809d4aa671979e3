"""Recipes of networks: plain descriptions, which can be written and read without PyTorch."""

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reticent.errors import InvalidInput
from reticent.train.private.clipping import Clip, Clipping

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from torch.optim import Optimizer

    from reticent.account import Course, Mechanism, PrivateTraining, Relation

    # Changes the memory m of this number to ``keep m + share value``, and returns it.
    Remember = Callable[[int, float, Tensor, float], Tensor]

__all__ = [
    "CROSS_ENTROPY",
    "SGD",
    "Adam",
    "Adaptation",
    "AdaptedModule",
    "Module",
    "Network",
    "Private",
    "PrivateModule",
    "PrivateNetwork",
    "Training",
    "check_kernels",
    "fitting_batch",
]

# A batch of a twentieth of the records: larger ones drown the noise of a private step better, smaller ones leave more steps.
STEPS_PER_EPOCH = 20
SMALLEST_BATCH = 16  # a smaller sum would be mostly noise
LARGEST_BATCH = 8192  # a larger one takes longer and gains little
CROSS_ENTROPY = "cross_entropy"


@dataclass(frozen=True, kw_only=True)
class SGD:
    """Stochastic gradient descent, with momentum as in PyTorch: v = momentum v + g, W -= rate v.

    Parameters
    ----------
    rate : float
        Learning rate.
    momentum : float
        Share of the last step's direction that is kept; 0 for none.
    """

    rate: float = 0.01
    momentum: float = 0.0

    @property
    def memories(self) -> int:
        """Count of numbers that are remembered per parameter."""
        return int(self.momentum > 0)

    @property
    def is_plain(self) -> bool:
        """Whether a step is just the rate times the gradient."""
        return self.momentum == 0

    @property
    def turns_with_gradients(self) -> bool:
        """Whether a rotation of the gradients rotates the steps in the same way."""
        return True

    def step(
        self, gradient: "Tensor", remember: "Remember", steps: "Tensor"
    ) -> "Tensor":
        """Return the direction of a step of stacked models, to be multiplied by the rate.

        Parameters
        ----------
        gradient : Tensor, shape (M, ...)
            Gradient of one parameter.
        remember : callable
            Changes the memory m of a number to ``keep m + share value``, and returns it.
        steps : Tensor, shape (M,)
            Number of steps of each model, this one included.
        """
        if self.momentum == 0:
            return gradient
        return remember(0, self.momentum, gradient, 1.0)

    def of_torch(self, groups: list[dict[str, Any]]) -> "Optimizer":
        """Return PyTorch's optimiser with these settings for groups of parameters."""
        from torch.optim import SGD

        return SGD(groups, lr=self.rate, momentum=self.momentum)


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma & Ba, arXiv:1412.6980), with bias correction.

    Parameters
    ----------
    rate : float
        Learning rate.
    beta_1, beta_2 : float
        Decay of the running mean and of the running mean square of gradients.
    epsilon : float
        Added to the root of the mean square, so that nothing is divided by zero.
    """

    rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8

    @property
    def memories(self) -> int:
        """Count of numbers that are remembered per parameter: a mean and a mean square."""
        return 2

    @property
    def is_plain(self) -> bool:
        """Whether a step is just the rate times the gradient: no."""
        return False

    @property
    def turns_with_gradients(self) -> bool:
        """Whether a rotation of the gradients rotates the steps: no, because each element is scaled separately."""
        return False

    def step(
        self, gradient: "Tensor", remember: "Remember", steps: "Tensor"
    ) -> "Tensor":
        """Return the direction of a step of stacked models, to be multiplied by the rate.

        Parameters
        ----------
        gradient : Tensor, shape (M, ...)
            Gradient of one parameter.
        remember : callable
            Changes the memory m of a number to ``keep m + share value``, and returns it.
        steps : Tensor, shape (M,)
            Number of steps of each model, this one included.
        """
        first = remember(0, self.beta_1, gradient, 1 - self.beta_1)
        second = remember(1, self.beta_2, gradient**2, 1 - self.beta_2)
        # A model that has not begun yet does not move, and must not divide by zero.
        count = steps.clamp_min(1).view(-1, *[1] * (gradient.ndim - 1))
        spread = (second / (1 - self.beta_2**count)).sqrt_().add_(self.epsilon)
        return (first / (1 - self.beta_1**count)).div_(spread)

    def of_torch(self, groups: list[dict[str, Any]]) -> "Optimizer":
        """Return PyTorch's optimiser with these settings for groups of parameters."""
        from torch.optim import Adam

        betas = (self.beta_1, self.beta_2)
        return Adam(groups, lr=self.rate, betas=betas, eps=self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Network:
    r"""The recipe of a multilayer perceptron, trained on cross-entropy, or on squared error for a quantity.

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
    dropout : float or tuple of float
        Share of hidden units switched off per step, in [0, 1): one for all hidden layers, or one for each.
    activation : str
        Activation function of the hidden units: ``"relu"`` or ``"tanh"``.
    quantity : bool
        Whether the network predicts a quantity: it then has one output, trained on half the squared
        error of the target, which is standardised over each model's members.
    initial : str
        How weights are drawn: ``"pytorch"``, weights and biases uniform in :math:`\pm 1/\sqrt{n}` for n inputs of a layer, or
        ``"glorot"``, weights uniform in :math:`\pm\sqrt{6/(n + m)}` for m outputs and biases zero, as Keras draws them.
    """

    hidden: tuple[int, ...] = (8,)
    epochs: int = 200
    batch: int = 128
    optimiser: SGD | Adam = SGD()
    l2: float = 0.0
    dropout: float | tuple[float, ...] = 0.0
    activation: str = "relu"
    quantity: bool = False
    initial: str = "pytorch"

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))  # a list is fine too
        if self.epochs < 1 or self.batch < 1 or any(width < 1 for width in self.hidden):
            raise InvalidInput(
                f"epochs ({self.epochs}), batch ({self.batch}) and widths {self.hidden} must be at least 1."
            )
        if isinstance(self.dropout, list | tuple):
            object.__setattr__(self, "dropout", tuple(self.dropout))
        if len(self.dropouts) != len(self.hidden):
            raise InvalidInput(
                f"dropout has {len(self.dropouts)} shares for {len(self.hidden)} hidden layers; give one share, or one per hidden layer."
            )
        if not all(0 <= share < 1 for share in self.dropouts) or self.l2 < 0:
            raise InvalidInput(
                f"dropout must be in [0, 1) and l2 at least 0, got {self.dropout} and {self.l2}."
            )
        if self.activation not in ("relu", "tanh"):
            raise InvalidInput(
                f"the activation {self.activation!r} is not known; use 'relu' or 'tanh'."
            )
        if self.initial not in ("pytorch", "glorot"):
            raise InvalidInput(
                f"initial weights cannot be drawn in the manner of {self.initial!r}; use 'pytorch' or 'glorot'."
            )

    @property
    def dropouts(self) -> tuple[float, ...]:
        """Share of units that are switched off in each hidden layer."""
        if isinstance(self.dropout, tuple):
            return self.dropout
        return (self.dropout,) * len(self.hidden)


def fitting_batch(rows: int) -> int:
    """Return a batch size for a number of records: about a twentieth, a power of two from 16 to 8192.

    It depends only on the number of records, which is public, so it betrays nothing.

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

    Each record independently takes part in a step with probability batch / rows. Its gradient is clipped, so that its
    length is bounded. The sum over the batch gets normal noise and is divided by the constant ``batch``.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise divided by the clipping's bound.
    clipping : Clipping
        What bounds a record's gradient.
    rows : int, optional
        The public number of records; by default the number of members, which is then treated as
        public.
    noise : str
        ``"secret"``, from system entropy, for products that may be released; ``"seeded"`` for experiments,
        which carry no guarantee.
    domain : str, optional
        File that declares the values of a table's columns. Without it they are learned with noise.
    domain_noise : float
        Noise multiplier for learning the domain.
    domain_failure : float
        Probability that the learned domain betrays a category that only one record has.
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
        """Refuse settings that would void the guarantee."""
        if not (self.noise_multiplier > 0 and math.isfinite(self.noise_multiplier)):
            raise InvalidInput(
                f"the noise multiplier must be positive and finite, got {self.noise_multiplier}, which protects nothing."
            )
        if self.noise not in ("secret", "seeded"):
            raise InvalidInput(
                f"the noise {self.noise!r} is not known; use 'secret' for products that may be released or 'seeded' for experiments."
            )
        # The failure probability is part of delta, which must stay far below one over the number of records.
        if self.domain_noise <= 0 or not 0 < self.domain_failure < 1e-3:
            raise InvalidInput(
                f"domain_noise must be positive and domain_failure a probability far below 0.001, got {self.domain_noise} and "
                f"{self.domain_failure}."
            )

    def objective(self) -> tuple[str, float]:
        """Return the name of the loss, and the share of each target that is spread evenly over the classes."""
        return CROSS_ENTROPY, 0.0

    def caveats(self) -> tuple[str, ...]:
        """Return the assumptions on which the guarantee of such a training rests."""
        if self.noise == "secret":
            return ()
        return (
            "the noise was drawn from a seed, so whoever knows the seed can subtract it: this product carries no guarantee; train it "
            "again with noise from system entropy",
        )

    def course(self, members: int) -> "Course":
        """Return the number of steps and the sampling rate for a number of members."""
        from reticent.account import Course

        rows = self.rows or members
        return Course.of_epochs(rows=rows, batch=self.batch, epochs=self.epochs)

    def steps(self, members: int, relation: "Relation") -> "PrivateTraining":
        """Return the mechanism of the steps."""
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
        """Return the mechanism of everything that is released about a table's records: the domain, if it is learned, and the steps.

        Parameters
        ----------
        members : int
            Number of records of the table.
        relation : Relation
            When tables are neighbours.
        steps : int, optional
            Number of steps to count; by default all.
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
    """The recipe of a multilayer perceptron trained with differential privacy.

    Dropout is allowed: what is switched off for a record depends on the seed, the step and the record's place in the table, never on
    what a record holds or on who else takes part, so that the clipped gradient of one record still bounds its influence.
    """

    epochs: int = 20
    batch: int = 256
    optimiser: SGD | Adam = SGD(rate=0.5)
    l2: float = 0.0

    def __post_init__(self) -> None:
        Network.__post_init__(self)
        self.check()
        if self.quantity:
            raise InvalidInput(
                "quantity is True, but private networks can only predict classes; divide the target into classes, or train a "
                "Network, which has no guarantee."
            )

    def sizes(self, inputs: int, classes: int) -> tuple[int, ...]:
        """Return the number of parameters of each layer."""
        widths = [inputs, *self.hidden, classes]
        return tuple((a + 1) * b for a, b in itertools.pairwise(widths))


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a module of the user is trained: with a loss, in batches, by one optimiser.

    Parameters
    ----------
    epochs, batch : int
        Passes over the members, and members per step; the last batch may be smaller.
    optimiser : SGD or Adam
        How parameters follow gradients.
    l2 : float
        Weight decay: ``l2 W`` is added to the gradient of parameters with two or more
        dimensions, so not to that of biases and of the scales of normalisation layers.
    loss : str
        ``"cross_entropy"``, or a function of the user as ``module:function``. It takes logits (batch, c) and class
        probabilities (batch, c), and returns one loss per record (batch,), which depends on that record alone.
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
                f"l2 must be at least 0, got {self.l2}, which would let weights grow."
            )
        named = isinstance(self.loss, str) and ":" in self.loss
        if self.loss != CROSS_ENTROPY and not named:
            raise InvalidInput(
                f"the loss {self.loss!r} is not known; write {CROSS_ENTROPY!r}, or name your function as 'module:function'."
            )
        if not 0 <= self.label_smoothing < 1:
            raise InvalidInput(
                f"label_smoothing must be in [0, 1), got {self.label_smoothing}: it is a share of each target."
            )

    def objective(self) -> tuple[str, float]:
        """Return the name of the loss, and the share of each target that is spread evenly over the classes."""
        return self.loss, self.label_smoothing


@dataclass(frozen=True)
class Module(Training):
    """The recipe of a module that a function of the user returns, and of its training.

    Parameters
    ----------
    make : str
        The function, as ``module:function``. Called with the numbers of inputs and classes,
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
                f"{self.make!r} does not name a function that returns a module; write it as 'module:function'."
            )


@dataclass(frozen=True, kw_only=True)
class Adaptation(Training):
    """The recipe of a training that adapts from labelled source records to unlabelled target records.

    Parameters
    ----------
    epochs, batch : int
        Passes over the source records, and source records per step, at least 2; each step takes as many target records.
    optimiser : SGD or Adam
        How parameters follow gradients, at a constant rate.
    l2 : float
        Weight decay, as in :class:`reticent.train.Training`.
    weight : float
        Weight of the discrepancy next to the cross-entropy at the end of the ramp; 0 trains on the source alone. If it is
        too large, all features collapse and all answers become one class, sooner without batch norms than with them.
    warm_up : int
        Number of first epochs that train on the source alone. A module that starts from random weights needs some: while
        it cannot tell classes apart, the discrepancy is smallest for features that do not either. DSAN starts from a
        pretrained network and has none.
    steepness : float
        How fast the weight of the discrepancy rises after that, see :func:`reticent.train.adaptation.ramp`.
    kernels : int
        Number of Gaussian kernels that are summed.
    ratio : float
        Ratio of the widths of two neighbouring kernels, above 1.

    Examples
    --------
    >>> Adaptation(epochs=5).weight
    0.5
    """

    weight: float = 0.5
    warm_up: int = 0
    steepness: float = 10.0
    kernels: int = 5
    ratio: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch < 2:
            raise InvalidInput(
                f"batch must be at least 2, got {self.batch}: the features of a single record show no discrepancy of domains."
            )
        if not 0 <= self.weight < math.inf or not 0 < self.steepness < math.inf:
            raise InvalidInput(
                f"the weight must be at least 0, the steepness positive, and both finite, got {self.weight} and {self.steepness}."
            )
        if not 0 <= self.warm_up < self.epochs:
            raise InvalidInput(
                f"the first {self.warm_up} of {self.epochs} epochs train on the source alone, which leaves none for the adaptation; let "
                "warm_up be at least 0 and less than epochs."
            )
        if self.objective() != (CROSS_ENTROPY, 0.0):
            raise InvalidInput(
                f"the loss is {self.loss!r} and label_smoothing {self.label_smoothing}, but an adapted module learns its classes by plain "
                "cross-entropy; leave both at their defaults."
            )
        check_kernels(self.kernels, self.ratio)


@dataclass(frozen=True)
class AdaptedModule(Adaptation, Module):
    """The recipe of a module that learns its classes from a public table, and from the defender's table only what records look like.

    The labels of the defender's records are not used at all, so the product cannot have memorised one. This is a defence whose effect
    must be measured, not a guarantee; see :mod:`reticent.train.adaptation`.

    Parameters
    ----------
    source : str
        File of the labelled source, with the same columns and classes as the defender's table. It should be public or
        synthetic, because nothing protects it.
    target : str, optional
        Column of the source that holds the classes; by default the only one that is not a feature of the defender's table.

    Examples
    --------
    >>> AdaptedModule("nets:make", source="public.csv", epochs=5).weight
    0.5
    """

    source: str = field(kw_only=True)
    target: str | None = field(default=None, kw_only=True)


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

    def objective(self) -> tuple[str, float]:
        """Return the name of the loss, and the share of each target that is spread evenly over the classes."""
        return Module.objective(self)

    def caveats(self) -> tuple[str, ...]:
        """Return the assumptions on which the guarantee rests: that code of the user treats every record independently."""
        assumptions = [
            *super().caveats(),
            "the module is code of the user: it treated a few records independently of each other when it was tried, and is assumed to do so "
            "always",
        ]
        if self.loss != CROSS_ENTROPY:
            assumptions.append(
                f"its loss, {self.loss}, is code of the user as well, and must not have been derived from these records"
            )
        return tuple(assumptions)


def check_kernels(kernels: int, ratio: float) -> None:
    """Refuse less than one kernel, and kernels that all have the same width."""
    if kernels < 1 or not 1 < ratio < math.inf:
        raise InvalidInput(
            f"kernels must be at least 1 and the ratio of their widths above 1, got {kernels} and {ratio}."
        )
