"""Train a module on labelled records of others and on unlabelled records of the defender: domain adaptation.

The defence of Table 2 of the LTU paper [1]_: a deep subdomain adaptation network (DSAN, [2]_). Classes are learned from
a public or synthetic source; the defender's records, the target, only pull the features of both sides together, class
by class. Their labels are not an argument, so the product cannot have memorised a label. The records themselves do
reach the weights, as weighted means over a batch: that blurs membership but bounds nothing. This is not
differential privacy: what an attack achieves against a product must be measured. For a guarantee use
:func:`reticent.train.private.modules.train_modules_privately`.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278.
.. [2] Zhu et al., "Deep subdomain adaptation network for image classification", IEEE Transactions on Neural Networks
   and Learning Systems 32 (2021), arXiv:2106.09388.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from reticent.errors import InvalidInput, TrainerFailed
from reticent.train._trial import made_with
from reticent.train.modules import Modules, laid_out, optimiser_of, wants_channels_last
from reticent.train.recipes import Adaptation, check_kernels

__all__ = ["Adaptation", "local_mmd", "ramp", "train_adapted"]


def ramp(progress: float, steepness: float = 10.0) -> float:
    r"""Return the share of its full weight that the discrepancy has at a point of the training.

    :math:`\lambda_p = 2 / (1 + e^{-\gamma p}) - 1`, from 0 to nearly 1 (Zhu et al. [1]_): early predictions of the target's
    classes are noise, and features should not follow them.

    Parameters
    ----------
    progress : float
        Completed share p of the adaptation, in [0, 1].
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
        One number, from 0 to 2 K. C counts the classes that are the most likely class of a record on both sides: for other
        classes a batch does not show where their mean is. The number is 0 if there is no such class.

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
    check_kernels(kernels, ratio)
    _check_features(source, target, source_classes, target_classes)
    kernel = _kernel(torch.cat([source, target]), kernels, ratio)
    # The equation sums over all classes. Like the authors' code, this leaves out classes that one side of the batch
    # lacks: a mean of small stray probabilities would pull features to where the class is not.
    columns = torch.arange(source_classes.shape[1])
    in_source, in_target = (
        torch.isin(columns, classes.argmax(1))
        for classes in (source_classes, target_classes)
    )
    common = in_source & in_target
    of_source, of_target = (
        classes.detach()[:, common] for classes in (source_classes, target_classes)
    )
    signed = torch.cat([of_source / of_source.sum(0), -of_target / of_target.sum(0)])
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
    and :func:`local_mmd` between the features of that batch and of as many target records. Features are the inputs of
    the module's last linear layer.

    The target records are the defender's. Their labels are not an argument: the product depends on a label only through
    what the record itself reveals about it, so no attack can find a label that the records do not betray. Membership is
    protected only in part: a record acts on the weights as one term of a weighted mean, next to source records that
    outvote it, but nothing bounds how far. There is no guarantee.

    Parameters
    ----------
    make : callable
        Returns a new module from records to logits, with a linear layer at its end; what it draws from PyTorch's global
        generator depends on the seed.
    source_inputs : Tensor of float, shape (n, ...)
        Records of the source. They should be public or synthetic: nothing protects them.
    source_targets : Tensor of float, shape (n, c)
        Class probabilities of the source records, one-hot for hard labels.
    target_inputs : Tensor of float, shape (m, ...)
        The defender's records.
    recipe : Adaptation
        Epochs, batches, optimiser, weight of the discrepancy.
    seed : int
        Seed of the initialisation and the batch orders. With ``weight=0`` the module is the one that
        :func:`reticent.train.modules.train_modules` trains on the source.

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
        # Layers that draw at random use another stream than the batch orders.
        torch.manual_seed(generator.initial_seed() + 1)
        data = (source_inputs, source_targets, target_inputs)
        _adapt(module.train(), head, data, recipe, generator)
    if not all(bool(p.isfinite().all()) for p in module.parameters()):
        raise TrainerFailed(
            "the training diverged, so the weights are not finite and the module cannot answer; lower the rate or the weight."
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
    # A separate stream, so that the order of the source is the same with and without a target.
    target_generator = torch.Generator().manual_seed(generator.initial_seed() + 2)
    features: list[Tensor] = []

    def take(_: nn.Module, given: tuple[Tensor, ...]) -> None:
        features.append(given[0].flatten(1))

    hook = head.register_forward_pre_hook(take)
    n = len(source_inputs)
    wanted, done = (recipe.epochs - recipe.warm_up) * n, -recipe.warm_up * n
    try:
        for _ in range(recipe.epochs):
            order = torch.randperm(n, generator=generator)
            partners = _round_robin(len(target_inputs), n, target_generator)
            for index, partner in zip(
                torch.split(order, recipe.batch),
                torch.split(partners, recipe.batch),
                strict=True,
            ):
                share = recipe.weight * ramp(max(done, 0) / wanted, recipe.steepness)
                done += len(index)
                if len(index) == 1:
                    continue  # batch norms and kernels both need the spread of at least two records
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
    """Return ``wanted`` rows in which no record occurs more than once more often than another."""
    rounds = -(-wanted // records)
    orders = [torch.randperm(records, generator=generator) for _ in range(rounds)]
    return torch.cat(orders)[:wanted]


def _kernel(features: Tensor, kernels: int, ratio: float) -> Tensor:
    """Return the sum of Gaussian kernels of every pair of records."""
    n = len(features)
    lengths = features.square().sum(1)
    apart = lengths[:, None] + lengths[None] - 2 * features @ features.T
    # Rounding makes some distances negative, and the distance of a record to itself not quite 0.
    apart = apart.clamp_min(0) * (1 - torch.eye(n, dtype=features.dtype))
    width = float(apart.detach().sum()) / (n * n - n) or 1.0
    total = torch.zeros_like(apart)
    for k in range(kernels):
        total = total + torch.exp(-apart / (width * ratio ** (k - kernels // 2)))
    return total


def _last_linear(module: nn.Module, example: Tensor, classes: int) -> nn.Linear:
    """Return the linear layer that is called last."""
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
            f"the module {type(module).__name__} calls no torch.nn.Linear, and the inputs of the last one are the features that are "
            "adapted; end it with a torch.nn.Linear."
        )
    if logits.shape != (1, classes):
        raise InvalidInput(
            f"the module {type(module).__name__} gives an output of shape {tuple(logits.shape)} for 1 record, where (1, {classes}) was "
            "expected; return one row per record and one logit per class."
        )
    return called[-1]


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
            "one row per record on each side, equally many features on both, and one column per class."
        )


def _check_records(inputs: Tensor, targets: Tensor, others: Tensor) -> None:
    if targets.ndim != 2 or len(targets) != len(inputs) or len(inputs) < 2:
        raise InvalidInput(
            f"source targets of shape {tuple(targets.shape)} do not fit {len(inputs)} source records; pass class probabilities of shape "
            "(records, classes) for at least 2 records."
        )
    if len(others) == 0 or others.shape[1:] != inputs.shape[1:]:
        raise InvalidInput(
            f"target records of shape {tuple(others.shape)} do not fit source records of shape {tuple(inputs.shape)}, and one module must "
            "take both; pass at least one target record of the same shape."
        )
