r"""Adversarial regularisation: a network that is trained against an attacker who is trained beside it.

A second network h reads the classifier's answer and the class of a record and says whether the record was trained on. It is trained to be right
on batches of members and of a *reference* part of the training records, which the classifier does not learn from. The classifier minimises its
loss plus :math:`\lambda` times the attacker's gain (Eq. 7 of [1]_):

.. math:: \min_f \max_h \; L(f) + \lambda \left( \tfrac12 \mathrm{E}_D \log h(f(x), y) + \tfrac12 \mathrm{E}_{D'} \log(1 - h(f(x), y)) \right).

It makes this one attacker weaker and guarantees nothing: a stronger one may find more, which is for an audit to show.

References
----------
.. [1] Nasr, Shokri and Houmansadr, "Machine learning with membership privacy using adversarial regularization", arXiv:1807.05852.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reticent.errors import InvalidInput, InvalidSpec
from reticent.product import Student
from reticent.run import Content, content_of
from reticent.train.networks import Encoded, Lesson, NetworkTrainer
from reticent.train.recipes import Network

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from reticent.train.engine import Networks
    from reticent.train.stacking import Cohort

__all__ = ["AdversarialNetwork", "AdversarialNetworkTrainer"]

ATTACKER_HIDDEN = 64  # units of the attacker's one hidden layer: enough for a function of an answer and a class
ATTACKER_RATE = 1e-3  # Adam's default, as in the source
ATTACKER_STEPS = 5  # of the attacker for each step of the classifier, so that the gain it is taught to lower is a real one


@dataclass(frozen=True, kw_only=True)
class AdversarialNetwork(Network):
    """The recipe of a multilayer perceptron that is trained against an attacker beside it.

    Parameters
    ----------
    strength : float
        Weight of the attacker's gain, the lambda of the source; 0 is plain training on the part that is not reference.
    reference : float
        Share of the training records that the classifier does not learn from, and that stand for non-members, in (0, 0.9].
    """

    strength: float = 1.0
    reference: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quantity:
            raise InvalidInput(
                "an adversarial network predicts classes, because its attacker reads class probabilities; leave quantity out."
            )
        if not self.strength >= 0:
            raise InvalidInput(f"strength must be at least 0, got {self.strength!r}.")
        if not 0 < self.reference <= 0.9:
            raise InvalidInput(
                f"reference must lie in (0, 0.9], got {self.reference!r}: it is the share of the records that stand for non-members."
            )
        if any(self.dropouts):
            raise InvalidInput(
                "an adversarial network is trained without dropout here, but dropout is set; leave it out."
            )


@dataclass(frozen=True, kw_only=True)
class AdversarialNetworkTrainer(NetworkTrainer):
    """Train networks against an attacker, one after another; needs the extra ``torch``.

    Parameters
    ----------
    network : AdversarialNetwork
        Shape and training.
    """

    network: AdversarialNetwork

    def content(self) -> Content:
        """Return the shape and training of the network, and of its attacker."""
        return content_of(
            repr(self.network), ATTACKER_HIDDEN, ATTACKER_RATE, ATTACKER_STEPS
        )

    def student(self) -> Student:
        """Refuse: the attacker reads hard labels.

        Raises
        ------
        InvalidSpec
            Always.
        """
        raise InvalidSpec(
            f"the trainer {self.recipe} takes hard labels only, because its attacker reads them; use a reticent.Network(...)."
        )

    def _fit(self, encoded: Encoded, lesson: Lesson) -> "Networks":
        return train_against_attacker(
            encoded.cohort(lesson.probabilities(), lesson), self.network
        )


def train_against_attacker(cohort: "Cohort", recipe: AdversarialNetwork) -> "Networks":
    """Train one network per mask, each against an attacker of its own.

    Parameters
    ----------
    cohort : Cohort
        Records, members and seeds; a seed gives the reference part, the initialisation and batch orders.
    recipe : AdversarialNetwork
        Shape and training.
    """
    import torch

    from reticent.train.engine import Networks, initial_parameters

    sizes = [cohort.inputs.shape[1], *recipe.hidden, cohort.targets.shape[-1]]
    layers = []
    for model, members in enumerate(cohort.members()):
        generator = torch.Generator().manual_seed(int(cohort.seeds[model]))
        weights, biases = initial_parameters(sizes, generator)
        game = _Game(weights=weights, biases=biases, recipe=recipe, generator=generator)
        inputs, targets = (
            values[0].clone() for values in cohort.of(model).batch(members[None])
        )
        game.play(inputs, targets)
        layers.append((weights, biases))
    depth = range(len(sizes) - 1)
    return Networks(
        weights=tuple(torch.stack([w[k].detach() for w, _ in layers]) for k in depth),
        biases=tuple(torch.stack([b[k].detach() for _, b in layers]) for k in depth),
        activation=recipe.activation,
    )


class _Game:
    """The classifier and its attacker, and how they are trained in turn."""

    def __init__(
        self,
        *,
        weights: "list[Tensor]",
        biases: "list[Tensor]",
        recipe: AdversarialNetwork,
        generator: "torch.Generator",
    ) -> None:
        self.weights, self.biases = weights, biases
        self.recipe, self.generator = recipe, generator
        parameters = [*weights, *biases]
        for parameter in parameters:
            parameter.requires_grad_(True)
        groups: list[dict[str, Any]] = [
            {"params": weights, "weight_decay": recipe.l2},
            {"params": biases, "weight_decay": 0.0},
        ]
        self.descent = recipe.optimiser.of_torch(groups)

    def play(self, inputs: "Tensor", targets: "Tensor") -> None:
        """Train on a model's members, of which a random part is the reference."""
        import torch

        rows = torch.randperm(len(inputs), generator=self.generator)
        held = max(1, round(self.recipe.reference * len(inputs)))
        reference, learned = rows[:held], rows[held:]
        if not len(learned):
            raise InvalidInput(
                f"of {len(inputs)} records none is left to learn from beside the reference; bring more records."
            )
        attacker = self._attacker(targets.shape[1])
        ascent = torch.optim.Adam(attacker.parameters(), lr=ATTACKER_RATE)
        batch = self.recipe.batch
        for _ in range(self.recipe.epochs):
            order = learned[torch.randperm(len(learned), generator=self.generator)]
            for start in range(0, len(order), batch):
                members = order[start : start + batch]
                for _ in range(ATTACKER_STEPS if self.recipe.strength else 0):
                    drawn = torch.randint(held, (len(members),), generator=self.generator)  # fmt: skip
                    others = reference[drawn]
                    with torch.no_grad():
                        seen = [self._seen(inputs[r], targets[r]) for r in (members, others)]  # fmt: skip
                    ascent.zero_grad()
                    (-_gain(attacker, *seen)).backward()  # type: ignore[no-untyped-call]
                    ascent.step()
                self._step(inputs[members], targets[members], attacker)

    def _step(self, inputs: "Tensor", targets: "Tensor", attacker: "nn.Module") -> None:
        """Take one step of the classifier: its loss, and what its answers tell the attacker."""
        import torch
        from torch.nn.functional import logsigmoid

        logits = self._logits(inputs)
        loss = -(targets * torch.log_softmax(logits, 1)).sum(1).mean()
        if self.recipe.strength:
            seen = torch.cat([torch.softmax(logits, 1), targets], 1)
            # Of the gain, only the members' half depends on this batch.
            loss = loss + self.recipe.strength * logsigmoid(attacker(seen)).mean() / 2
        self.descent.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.descent.step()

    def _seen(self, inputs: "Tensor", targets: "Tensor") -> "Tensor":
        """Return what the attacker reads: the answer and the class."""
        import torch

        return torch.cat([torch.softmax(self._logits(inputs), 1), targets], 1)

    def _logits(self, inputs: "Tensor") -> "Tensor":
        import torch

        activation = {"relu": torch.relu, "tanh": torch.tanh}[self.recipe.activation]
        values = inputs.T
        last = len(self.weights) - 1
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = weight @ values + bias
            values = values if k == last else activation(values)
        return values.T

    def _attacker(self, classes: int) -> "nn.Module":
        """Return a fresh attacker, drawn from the model's own stream."""
        import torch
        from torch import nn

        net = nn.Sequential(
            nn.Linear(2 * classes, ATTACKER_HIDDEN), nn.ReLU(), nn.Linear(ATTACKER_HIDDEN, 1)
        )  # fmt: skip
        with torch.no_grad():
            for parameter in net.parameters():
                bound = parameter.shape[-1] ** -0.5
                drawn = torch.rand(parameter.shape, generator=self.generator)
                parameter.copy_((2 * drawn - 1) * bound)
        return net


def _gain(attacker: "nn.Module", members: "Tensor", others: "Tensor") -> "Tensor":
    """Return the attacker's mean log-likelihood over a batch of members and one of others."""
    from torch.nn.functional import logsigmoid

    inside = logsigmoid(attacker(members)).mean()
    outside = logsigmoid(-attacker(others)).mean()
    return (inside + outside) / 2
