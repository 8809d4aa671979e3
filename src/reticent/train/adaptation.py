"""Train a module on labelled records of others and on unlabelled records of the defender: domain adaptation.

The defence of Table 2 of the LTU paper [1]_: a deep subdomain adaptation network (DSAN, [2]_). Classes are learned from
a public or synthetic source; the defender's records, the target, only pull the features of both sides together, class
by class. Their labels are not an argument, so the product cannot have memorised a label. The records themselves do
reach the weights, as weighted means over a batch: that blurs membership and bounds nothing. This is no
differential privacy; what an attack finds in a product must be measured, and
:func:`reticent.train.private.modules.train_modules_privately` is there for a guarantee.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278.
.. [2] Zhu et al., "Deep subdomain adaptation network for image classification", IEEE Transactions on Neural Networks
   and Learning Systems 32 (2021), arXiv:2106.09388.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from reticent.errors import InvalidInput, TrainerFailed
from reticent.train._trial import made_with
from reticent.train.modules import Modules, laid_out, optimiser_of, wants_channels_last
from reticent.train.recipes import Training

__all__ = ["Adaptation", "local_mmd", "ramp", "train_adapted"]


@dataclass(frozen=True, kw_only=True)
class Adaptation(Training):
    """The recipe of a training that adapts from labelled source records to unlabelled target records.

    Parameters
    ----------
    epochs, batch : int
        Passes over the source records, and source records per step, at least 2; as many target records go with them.
    optimiser : SGD or Adam
        How parameters follow gradients, at a constant rate.
    l2 : float
        Weight decay, as in :class:`reticent.train.Training`.
    weight : float
        What the discrepancy counts beside the cross-entropy at the end of the ramp; 0 trains on the source alone. If it is
        too large, all features fall together and all answers become one class, sooner without batch norms than with.
    warm_up : int
        Of the epochs, the first so many are on the source alone. A module that starts from random weights needs some: while
        it cannot tell classes apart, the discrepancy is least for features that do not either. DSAN starts from a
        pretrained network and has none.
    steepness : float
        How fast the discrepancy comes to count after that, see :func:`ramp`.
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
                f"the batch is {self.batch}, and the features of single records show no discrepancy of domains; take at least 2."
            )
        if not 0 <= self.weight < math.inf or not 0 < self.steepness < math.inf:
            raise InvalidInput(
                f"the weight is {self.weight} and the steepness {self.steepness}; the weight must be 0 or more, the steepness "
                "positive, and both finite."
            )
        if not 0 <= self.warm_up < self.epochs:
            raise InvalidInput(
                f"the first {self.warm_up} of {self.epochs} epochs are on the source alone, which leaves none to adapt in; let warm_up "
                "be at least 0 and less than epochs."
            )
        _check_kernels(self.kernels, self.ratio)


def ramp(progress: float, steepness: float = 10.0) -> float:
    r"""Return the share of its weight that the discrepancy has at some point of the training.

    :math:`\lambda_p = 2 / (1 + e^{-\gamma p}) - 1`, from 0 to nearly 1 (Zhu et al. [1]_): early predictions of the target's
    classes are noise, and features should not follow them.

    Parameters
    ----------
    progress : float
        Share p of the adaptation that is done, in [0, 1].
    steepness : float
        The paper's :math:`\gamma`.

    References
    ----------
    .. [1] Zhu et al., "Deep subdomain adaptation network for image classification", arXiv:2106.09388.

    Examples
    --------
    >>> [round(ramp(p), 3) for p in (0.0, 0.1, 1.0)]
    [0.0, 0.462, 1.0]
    """
    return math.tanh(steepness * progress / 2)


def local_mmd(
    source: Tensor,
    target: Tensor,
    source_classes: Tensor,
    target_classes: Tensor,
    *,
    kernels: int = 5,
    ratio: float = 2.0,
) -> Tensor:
    r"""Return the local maximum mean discrepancy (LMMD) of two sets of features.

    The squared distance of the class means of both sides in the kernel's space, averaged over classes (Zhu et al. [1]_):

    .. math::

        d = \frac{1}{C} \sum_c \Bigl\| \sum_i w_i^{sc} \phi(x_i^s) - \sum_j w_j^{tc} \phi(x_j^t) \Bigr\|^2,
        \qquad w_i^c = \frac{y_{ic}}{\sum_j y_{jc}},

    with :math:`\langle \phi(a), \phi(b) \rangle = \sum_{k=0}^{K-1} \exp(-\|a - b\|^2 / (h r^{k - \lfloor K/2 \rfloor}))`
    and :math:`h` the mean squared distance of two different records of both sides together. No gradient goes through
    :math:`h` and the weights. The sums include each record with itself, so that the value is a squared length, hence at
    least 0, but above 0 for two samples of one distribution.

    Parameters
    ----------
    source, target : Tensor of float, shapes (n, d) and (m, d)
        Features.
    source_classes : Tensor of float, shape (n, c)
        Class probabilities of the source: its labels, one-hot.
    target_classes : Tensor of float, shape (m, c)
        Class probabilities of the target: what the module predicts, since labels are not known.
    kernels : int
        The number K of kernels.
    ratio : float
        The ratio r of neighbouring widths, above 1.

    Returns
    -------
    Tensor
        One number, from 0 to 2 K. C counts the classes that are the likeliest one of a record on both sides: of the others
        a batch does not show where their mean is. 0 if there is none.

    Raises
    ------
    InvalidInput
        If shapes do not fit.

    References
    ----------
    .. [1] Zhu et al., "Deep subdomain adaptation network for image classification", arXiv:2106.09388.

    Examples
    --------
    >>> import torch
    >>> features, classes = torch.tensor([[0.0], [1.0]]), torch.eye(2)
    >>> local_mmd(features, features, classes, classes).item()
    0.0
    >>> round(local_mmd(features, features + 2, classes, classes).item(), 3)
    6.62
    """
    _check_kernels(kernels, ratio)
    _check_features(source, target, source_classes, target_classes)
    kernel = _kernel(torch.cat([source, target]), kernels, ratio)
    # The equation sums over all classes. Like the authors' code, this leaves out classes that one side of the batch
    # lacks: a mean made of stray probabilities only would pull features to where the class is not.
    columns = torch.arange(source_classes.shape[1])
    here, there = (
        torch.isin(columns, classes.argmax(1))
        for classes in (source_classes, target_classes)
    )
    common = here & there
    ours, theirs = (
        classes.detach()[:, common] for classes in (source_classes, target_classes)
    )
    signed = torch.cat([ours / ours.sum(0), -theirs / theirs.sum(0)])
    return (signed * (kernel @ signed)).sum() / max(int(common.sum()), 1)


def train_adapted(
    make: Callable[[], nn.Module],
    source_inputs: Tensor,
    source_targets: Tensor,
    target_inputs: Tensor,
    recipe: Adaptation,
    seed: int,
) -> Modules:
    r"""Train one module on labelled source records and on unlabelled target records.

    Each step lowers :math:`L_s + \lambda_p w D` (Zhu et al. [1]_): the mean cross-entropy on a batch of the source,
    and :func:`local_mmd` between the features of that batch and of as many target records. Features are what goes into
    the module's last linear layer.

    The target records are the defender's. Their labels are no argument: the product depends on them through nothing but
    what the records themselves tell, and no attack can find a label in it that the records do not betray. Membership is protected
    in part only: a record acts on the weights as one of a weighted mean, next to source records that
    outvote it, but nothing bounds how far. There is no guarantee.

    Parameters
    ----------
    make : callable
        Returns a fresh module from records to logits, with a linear layer at its end; what it draws from PyTorch's common
        generator follows the seed.
    source_inputs : Tensor of float, shape (n, ...)
        Records of the source. They should be public or synthetic: nothing protects them.
    source_targets : Tensor of float, shape (n, c)
        Their class probabilities, one-hot for hard labels.
    target_inputs : Tensor of float, shape (m, ...)
        The defender's records.
    recipe : Adaptation
        Epochs, batches, optimiser, weight of the discrepancy.
    seed : int
        Of initialisation and orders. With ``weight=0`` the module is the one that
        :func:`reticent.train.modules.train_modules` makes of the source.

    Returns
    -------
    Modules
        One module, in evaluation mode.

    Raises
    ------
    InvalidInput
        If shapes do not fit, or the module has no linear layer.
    TrainerFailed
        If the training diverged.

    References
    ----------
    .. [1] Zhu et al., "Deep subdomain adaptation network for image classification", arXiv:2106.09388.
    """
    _check_records(source_inputs, source_targets, target_inputs)
    module, generator = made_with(make, int(seed), source_inputs[:1])
    head = _last_linear(module, source_inputs[:1], source_targets.shape[1])
    with torch.random.fork_rng(devices=[]):
        # For layers that draw for themselves: another stream than that of the orders.
        torch.manual_seed(generator.initial_seed() + 1)
        data = (source_inputs, source_targets, target_inputs)
        _adapt(module.train(), head, data, recipe, generator)
    if not all(bool(p.isfinite().all()) for p in module.parameters()):
        raise TrainerFailed(
            "the training diverged, so that weights are not finite and answer nothing; lower the rate or the weight."
        )
    return Modules(
        modules=(module.eval(),),
        together=False,
        stackable=True,
        why="adapted modules are trained one by one",
    )


def _adapt(
    module: nn.Module,
    head: nn.Linear,
    data: tuple[Tensor, Tensor, Tensor],
    recipe: Adaptation,
    generator: torch.Generator,
) -> None:
    source_inputs, source_targets, target_inputs = data
    if wants_channels_last(source_inputs, module):
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = optimiser_of(module, recipe)
    # A stream of its own: the order of the source is the same with and without a target.
    other = torch.Generator().manual_seed(generator.initial_seed() + 2)
    features: list[Tensor] = []

    def take(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        features.append(given[0].flatten(1))

    hook = head.register_forward_pre_hook(take)
    n = len(source_inputs)
    wanted, done = (recipe.epochs - recipe.warm_up) * n, -recipe.warm_up * n
    try:
        for _ in range(recipe.epochs):
            order = torch.randperm(n, generator=generator)
            partners = _round_robin(len(target_inputs), n, other)
            for index, partner in zip(
                torch.split(order, recipe.batch),
                torch.split(partners, recipe.batch),
                strict=True,
            ):
                share = recipe.weight * ramp(max(done, 0) / wanted, recipe.steepness)
                done += len(index)
                if len(index) == 1:
                    continue  # one record has no spread, for batch norms and kernels alike
                features.clear()
                classes = source_targets[index]
                logits = module(laid_out(source_inputs[index], module))
                loss = nn.functional.cross_entropy(logits, classes)
                if share > 0:
                    guesses = module(laid_out(target_inputs[partner], module))
                    discrepancy = local_mmd(
                        features[0],
                        features[1],
                        classes,
                        torch.softmax(guesses.detach(), 1),
                        kernels=recipe.kernels,
                        ratio=recipe.ratio,
                    )
                    loss = loss + share * discrepancy
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    finally:
        hook.remove()
    module.zero_grad(set_to_none=True)


def _round_robin(records: int, wanted: int, generator: torch.Generator) -> Tensor:
    """Return so many rows, each record as often as any other, give or take one."""
    rounds = -(-wanted // records)
    orders = [torch.randperm(records, generator=generator) for _ in range(rounds)]
    return torch.cat(orders)[:wanted]


def _kernel(features: Tensor, kernels: int, ratio: float) -> Tensor:
    """Return the sum of Gaussian kernels of every pair of records."""
    n = len(features)
    lengths = features.square().sum(1)
    apart = lengths[:, None] + lengths[None] - 2 * features @ features.T
    # Round-off makes some distances negative, and those of records to themselves not quite 0.
    apart = apart.clamp_min(0) * (1 - torch.eye(n, dtype=features.dtype))
    width = float(apart.detach().sum()) / (n * n - n) or 1.0
    total = torch.zeros_like(apart)
    for k in range(kernels):
        total = total + torch.exp(-apart / (width * ratio ** (k - kernels // 2)))
    return total


def _last_linear(module: nn.Module, example: Tensor, classes: int) -> nn.Linear:
    """Return the linear layer that a record goes through last."""
    called: list[nn.Linear] = []
    hooks = [
        layer.register_forward_pre_hook(lambda layer, _: called.append(layer))
        for layer in module.modules()
        if isinstance(layer, nn.Linear)
    ]
    try:
        with torch.no_grad():
            logits = module.eval()(example)
    finally:
        for hook in hooks:
            hook.remove()
    if not called:
        raise InvalidInput(
            f"the module {type(module).__name__} calls no torch.nn.Linear, and what goes into the last one are the features that are "
            "adapted; end it with one."
        )
    if logits.shape != (1, classes):
        raise InvalidInput(
            f"the module {type(module).__name__} gives an output of shape {tuple(logits.shape)} for 1 record, where (1, {classes}) was "
            "expected; return one row a record and one logit a class."
        )
    return called[-1]


def _check_kernels(kernels: int, ratio: float) -> None:
    if kernels < 1 or not 1 < ratio < math.inf:
        raise InvalidInput(
            f"there are {kernels} kernels with widths in the ratio {ratio}; take at least 1 kernel and a ratio above 1."
        )


def _check_features(
    source: Tensor, target: Tensor, source_classes: Tensor, target_classes: Tensor
) -> None:
    shapes = [tuple(t.shape) for t in (source, target, source_classes, target_classes)]
    fits = (
        all(len(shape) == 2 and min(shape) > 0 for shape in shapes)
        and shapes[0][1] == shapes[1][1]
        and shapes[2] == (shapes[0][0], shapes[2][1])
        and shapes[3] == (shapes[1][0], shapes[2][1])
    )
    if not fits:
        raise InvalidInput(
            f"features of shapes {shapes[0]} and {shapes[1]} do not fit class probabilities of shapes {shapes[2]} and {shapes[3]}; pass "
            "one row a record on each side, as many features on both, and one column a class."
        )


def _check_records(inputs: Tensor, targets: Tensor, others: Tensor) -> None:
    if targets.ndim != 2 or len(targets) != len(inputs) or len(inputs) < 2:
        raise InvalidInput(
            f"source targets of shape {tuple(targets.shape)} do not fit {len(inputs)} source records; pass class probabilities of shape "
            "(records, classes) for at least 2 records."
        )
    if len(others) == 0 or others.shape[1:] != inputs.shape[1:]:
        raise InvalidInput(
            f"target records of shape {tuple(others.shape)} do not go with source records of shape {tuple(inputs.shape)}; both go through "
            "one module, so pass at least one record of the same shape."
        )
