"""Train networks on tables: encoding, one model, or a whole pool in few passes."""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import (
    InvalidPredictions,
    InvalidSpec,
    ReticentError,
    TrainerFailed,
)
from reticent.product import (
    Encoder,
    ModuleProduct,
    NetworkProduct,
    must_be_storable,
)
from reticent.train._groups import answer_groups, fitting_size, one_torch_thread
from reticent.train.models import first_line
from reticent.train.recipes import (
    SGD,
    Adam,
    Network,
    Training,
)

if TYPE_CHECKING:
    from torch import nn

    from reticent.train.engine import Networks
    from reticent.train.modules import Modules

__all__ = [
    "ModuleTrainer",
    "NetworkTrainer",
    "Seen",
    "Stackable",
    "as_trainer_failure",
    "need_torch",
    "network_product",
    "one_hot",
]

# Models per pass: more leave the processor's cache, and how many that are depends on how
# many numbers a layer makes of a batch (benchmarks/engine.py).
FEW, MANY, SMALL = 25, 50, 4096
PIECE = 4096  # records asked about at once, so that what a model sees of them stays in cache


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What models see of records: the numbers, and each model's centre and scale of them."""

    encoder: Encoder
    matrix: NDArray[np.float32]
    centres: NDArray[np.float32]
    scales: NDArray[np.float32]
    warnings: tuple[str, ...] = ()


class Stackable(ABC):
    """What trainers of networks share: one model, or groups of them, one group a process."""

    recipe: str

    @property
    def together(self) -> int:
        """How many models are best trained in one pass."""
        return FEW

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        workers: int,
        memory: float = 2.0,
    ) -> NDArray[np.float32]:
        """Return the answers of one model per mask on all records, shape (M, n, c).

        Groups of models are trained in one pass each, or one by one if they cannot be stacked, one group a
        process, as large as the memory (in gigabytes, for all processes) allows.
        """
        size = fitting_size(
            self.together,
            each=self._bytes(table, masks, seeds),
            models=len(masks),
            workers=workers,
            memory=memory,
        )
        answer = functools.partial(self._answer_group, table)
        return answer_groups(answer, masks, seeds, size=size, workers=workers)

    def _answer_group(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return the answers of one group of models, (M, n, c)."""
        need_torch()
        seen = self._see(table, masks, seeds)
        answers = np.empty(
            (len(masks), len(table), len(table.classes)), dtype=np.float32
        )
        with one_torch_thread():
            made = self._fit(seen, table, masks, [int(seed) for seed in seeds])
            for k in range(len(masks)):
                answers[k] = _answers(
                    made.of(k), seen.matrix, seen.centres[k], seen.scales[k]
                )
        return answers

    def _trained(self, table: Table, seed: int) -> "tuple[Seen, Networks | Modules]":
        """Return what one model on all records sees, and the model."""
        need_torch()
        everyone = np.ones((1, len(table)), dtype=bool)
        seen = self._see(table, everyone, np.array([seed]))
        with one_torch_thread():
            return seen, self._fit(seen, table, everyone, [seed])

    def _see(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> Seen:
        encoder = Encoder.of(table)
        matrix = encoder.matrix(table.features)
        centres, scales = encoder.standardisation(matrix, masks)
        return Seen(encoder=encoder, matrix=matrix, centres=centres, scales=scales)

    @abstractmethod
    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        """Return what one more model adds to a pass."""

    @abstractmethod
    def _fit(
        self, seen: Seen, table: Table, masks: NDArray[np.bool_], seeds: list[int]
    ) -> "Networks | Modules":
        """Return trained models, one per mask."""


@dataclass(frozen=True, kw_only=True)
class NetworkTrainer(Stackable):
    """Train multilayer perceptrons on a table; needs the extra ``torch``.

    Parameters
    ----------
    network : Network
        Shape and training.
    recipe : str
        Description from which the trainer can be made again.
    """

    network: Network
    recipe: str

    @property
    def together(self) -> int:
        """How many models are best trained in one pass."""
        return MANY if sum(self.network.hidden) * self.network.batch <= SMALL else FEW

    def train(self, table: Table, *, seed: int) -> NetworkProduct:
        """Return a network trained on all records of a table."""
        seen, made = self._trained(table, seed)
        return network_product(seen, made, table)

    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        inputs, classes = Encoder.of(table).width, len(table.classes)
        sizes = [inputs, *self.network.hidden, classes]
        parameters = sum(
            (below + 1) * above for below, above in itertools.pairwise(sizes)
        )
        kept = sum(self.network.hidden) * len(table) if self.network.dropout else 0
        return 4 * (
            # Parameters and gradients; activations and deltas; the batch as it is and as
            # the model sees it.
            (2 + _memories(self.network.optimiser)) * parameters
            + 2 * self.network.batch * sum(sizes)
            + 2 * self.network.batch * inputs
            + kept
            + len(table) * classes
        )

    def _fit(
        self, seen: Seen, table: Table, masks: NDArray[np.bool_], seeds: list[int]
    ) -> "Networks | Modules":
        import torch

        from reticent.train.engine import train_networks

        return train_networks(
            torch.from_numpy(seen.matrix),
            torch.from_numpy(one_hot(table)),
            masks,
            seeds,
            self.network,
            centres=torch.from_numpy(seen.centres),
            scales=torch.from_numpy(seen.scales),
        )


@dataclass(frozen=True, kw_only=True)
class ModuleTrainer(Stackable):
    """Train modules of the user on a table; needs the extra ``torch``.

    Parameters
    ----------
    make : callable
        Called with the number of inputs and the number of classes, returns a fresh
        ``torch.nn.Module`` from (batch, inputs) to (batch, classes) logits.
    training : Training
        How it is trained.
    recipe : str
        Description from which the trainer can be made again.
    source : str
        Hash of the user's own code behind ``make``, if it is known.
    """

    make: Callable[[int, int], "nn.Module"]
    training: Training
    recipe: str
    source: str = ""

    def train(self, table: Table, *, seed: int) -> ModuleProduct:
        """Return a module trained on all records of a table.

        If modules of this kind cannot be stacked, the product's warnings say so and why: a
        pool of them takes longer.
        """
        from reticent.train.modules import Modules

        seen, made = self._trained(table, seed)
        assert isinstance(made, Modules)
        return ModuleProduct(
            encoder=seen.encoder,
            module=made.modules[0],
            centre=seen.centres[0],
            scale=seen.scales[0],
            classes=table.classes,
            warnings=(*made.warnings, *seen.warnings),
        )

    def must_be_storable(self, table: Table) -> None:
        """Refuse a module that cannot be saved, before it is trained for long.

        Raises
        ------
        OutputRefused
            If it does something that cannot be written down without code.
        """
        need_torch()
        import torch

        from reticent.train._trial import made_with

        inputs, classes = Encoder.of(table).width, len(table.classes)
        with as_trainer_failure(self.recipe), one_torch_thread():
            make = functools.partial(self.make, inputs, classes)
            module, _ = made_with(make, 0, torch.zeros(1, inputs))
            must_be_storable(module, inputs=inputs, classes=classes)

    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        """Return what one more model adds to a pass, from a trial with a few members."""
        need_torch()
        import torch

        from reticent.train._stack import View
        from reticent.train.modules import trial_of

        encoder, few = Encoder.of(table), np.flatnonzero(masks[0])[:3]
        matrix = encoder.matrix(table.features.iloc[few])
        view = View(
            inputs=torch.from_numpy(np.nan_to_num(matrix)),
            targets=torch.from_numpy(one_hot(table)[few]),
        )
        make = functools.partial(self.make, encoder.width, len(table.classes))
        with as_trainer_failure(self.recipe):
            trial = trial_of(
                make, view, torch.arange(len(few)), int(seeds[0]), self.training
            )
        return 4 * (
            # Parameters in the module, stacked, and as gradients; layers' outputs and
            # their gradients; the batch as it is and as the model sees it.
            (3 + _memories(self.training.optimiser)) * trial.parameters
            + 2 * self.training.batch * (trial.activations + encoder.width)
            + len(table) * len(table.classes)
        )

    def _fit(
        self, seen: Seen, table: Table, masks: NDArray[np.bool_], seeds: list[int]
    ) -> "Networks | Modules":
        import torch

        from reticent.train.modules import train_modules

        with as_trainer_failure(self.recipe):
            return train_modules(
                functools.partial(self.make, seen.matrix.shape[1], len(table.classes)),
                torch.from_numpy(seen.matrix),
                torch.from_numpy(one_hot(table)),
                masks,
                seeds,
                self.training,
                centres=torch.from_numpy(seen.centres),
                scales=torch.from_numpy(seen.scales),
            )


def network_product(
    seen: Seen, made: "Networks | Modules", table: Table
) -> NetworkProduct:
    """Return the first of trained networks as a product."""
    from reticent.train.engine import Networks

    assert isinstance(made, Networks)
    return NetworkProduct(
        encoder=seen.encoder,
        centre=seen.centres[0],
        scale=seen.scales[0],
        weights=tuple(w[0].numpy() for w in made.weights),
        biases=tuple(b[0, :, 0].numpy() for b in made.biases),
        activation=made.activation,
        classes=table.classes,
        warnings=(*made.warnings, *seen.warnings),
    )


def _answers(
    made: "Networks | Modules",
    matrix: NDArray[np.float32],
    centre: NDArray[np.float32],
    scale: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the probabilities of one model, (n, c)."""
    import torch

    pieces = []
    for start in range(0, len(matrix), PIECE):
        seen = (matrix[start : start + PIECE] - centre) / scale
        np.nan_to_num(seen, copy=False)
        pieces.append(made.probabilities(torch.from_numpy(seen))[0])
    answers: NDArray[np.float32] = np.concatenate(pieces)
    if not np.isfinite(answers).all():
        bad = int((~np.isfinite(answers)).any(axis=1).sum())
        raise InvalidPredictions(
            f"a network's answers for {bad} of {len(answers)} records are not finite, so its training diverged and no "
            "attack can be judged; lower the rate of its optimiser."
        )
    return answers


def one_hot(table: Table) -> NDArray[np.float32]:
    """Return the classes of records as probabilities."""
    return np.eye(len(table.classes), dtype=np.float32)[table.target]


def _memories(optimiser: SGD | Adam) -> int:
    """Return how many numbers an optimiser remembers of a parameter."""
    if isinstance(optimiser, Adam):
        return 2
    return int(optimiser.momentum > 0)


def need_torch() -> None:
    """Say what is missing if PyTorch is."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InvalidSpec(
            "networks are trained with PyTorch, which is not installed; install reticent[torch]."
        ) from error


@contextmanager
def as_trainer_failure(recipe: str) -> Iterator[None]:
    """Let what the user's module raises end as a failure of the trainer."""
    try:
        yield
    except ReticentError:
        raise
    except Exception as error:
        raise TrainerFailed(
            f"the trainer {recipe} raised {type(error).__name__}: {first_line(error)}; "
            "try it on this table outside reticent first."
        ) from error
