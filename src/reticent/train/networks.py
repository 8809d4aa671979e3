"""Train networks on tables: encoding, one model, or a whole pool in few passes."""

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import (
    InvalidPredictions,
    InvalidSpec,
    ReticentError,
    TrainerFailed,
)
from reticent.train._encode import Encoder
from reticent.train._groups import answer_groups, fitting_size, one_torch_thread
from reticent.train.models import first_line
from reticent.train.recipes import SGD, Adam, Network, Training

if TYPE_CHECKING:
    from torch import nn

    from reticent.train.engine import Networks
    from reticent.train.modules import Modules

__all__ = ["ModuleTrainer", "NetworkProduct", "NetworkTrainer"]

# Models per pass: more leave the processor's cache, and how many that are depends on how
# many numbers a layer makes of a batch (benchmarks/engine.py).
FEW, MANY, SMALL = 25, 50, 4096
PIECE = 4096  # records asked about at once, so that what a model sees of them stays in cache


@dataclass(frozen=True, kw_only=True)
class NetworkProduct:
    """A trained network or module that answers queries about raw records."""

    encoder: Encoder
    networks: "Networks | Modules"
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    warnings: tuple[str, ...] = ()
    has_probabilities: bool = True

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        answers = _answers(
            self.networks, self.encoder.matrix(features), self.centre, self.scale
        )
        return answers.astype(np.float64)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities."""
        return self.predict_proba(features)


@dataclass(frozen=True, kw_only=True)
class NetworkTrainer:
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
        return _product(self._fit, table, seed)

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        workers: int,
        memory: float = 2.0,
    ) -> NDArray[np.float32]:
        """Return the answers of one network per mask on all records, shape (M, n, c).

        Groups of models are trained in one pass each, one group a process, as large as the
        memory (in gigabytes, for all processes) allows.
        """
        size = fitting_size(
            self.together,
            each=self._bytes(table),
            models=len(masks),
            workers=workers,
            memory=memory,
        )
        answer = functools.partial(_answer_group, self._fit, table)
        return answer_groups(answer, masks, seeds, size=size, workers=workers)

    def _bytes(self, table: Table) -> int:
        """Return what one more model adds to a pass."""
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
        self,
        matrix: NDArray[np.float32],
        table: Table,
        masks: NDArray[np.bool_],
        seeds: list[int],
        centres: NDArray[np.float32],
        scales: NDArray[np.float32],
    ) -> "Networks":
        import torch

        from reticent.train.engine import train_networks

        return train_networks(
            torch.from_numpy(matrix),
            torch.from_numpy(_one_hot(table)),
            masks,
            seeds,
            self.network,
            centres=torch.from_numpy(centres),
            scales=torch.from_numpy(scales),
        )


@dataclass(frozen=True, kw_only=True)
class ModuleTrainer:
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

    @property
    def together(self) -> int:
        """How many models are best trained in one pass."""
        return FEW

    def train(self, table: Table, *, seed: int) -> NetworkProduct:
        """Return a module trained on all records of a table.

        If modules of this kind cannot be stacked, the product's warnings say so and why: a
        pool of them takes longer.
        """
        return _product(self._fit, table, seed)

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        workers: int,
        memory: float = 2.0,
    ) -> NDArray[np.float32]:
        """Return the answers of one module per mask on all records, shape (M, n, c).

        Groups of models are trained in one pass each, or one by one if they cannot be
        stacked, one group a process, as large as the memory (in gigabytes, for all processes)
        allows.
        """
        size = fitting_size(
            self.together,
            each=self._bytes(table, masks, seeds),
            models=len(masks),
            workers=workers,
            memory=memory,
        )
        answer = functools.partial(_answer_group, self._fit, table)
        return answer_groups(answer, masks, seeds, size=size, workers=workers)

    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        """Return what one more model adds to a pass, from a trial with a few members."""
        _need_torch()
        import torch

        from reticent.train._stack import View
        from reticent.train.modules import trial_of

        encoder, few = Encoder.of(table), np.flatnonzero(masks[0])[:3]
        matrix = encoder.matrix(table.features.iloc[few])
        view = View(
            inputs=torch.from_numpy(np.nan_to_num(matrix)),
            targets=torch.from_numpy(_one_hot(table)[few]),
        )
        make = functools.partial(self.make, encoder.width, len(table.classes))
        with _told_in_its_own_words(self.recipe):
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
        self,
        matrix: NDArray[np.float32],
        table: Table,
        masks: NDArray[np.bool_],
        seeds: list[int],
        centres: NDArray[np.float32],
        scales: NDArray[np.float32],
    ) -> "Modules":
        import torch

        from reticent.train.modules import train_modules

        with _told_in_its_own_words(self.recipe):
            return train_modules(
                functools.partial(self.make, matrix.shape[1], len(table.classes)),
                torch.from_numpy(matrix),
                torch.from_numpy(_one_hot(table)),
                masks,
                seeds,
                self.training,
                centres=torch.from_numpy(centres),
                scales=torch.from_numpy(scales),
            )


# Matrix, table, masks, seeds, centres and scales to trained models.
_Fit = Callable[
    [
        NDArray[np.float32],
        Table,
        NDArray[np.bool_],
        list[int],
        NDArray[np.float32],
        NDArray[np.float32],
    ],
    "Networks | Modules",
]


def _product(fit: _Fit, table: Table, seed: int) -> NetworkProduct:
    _need_torch()
    encoder = Encoder.of(table)
    matrix = encoder.matrix(table.features)
    everyone = np.ones((1, len(table)), dtype=bool)
    centres, scales = encoder.standardisation(matrix, everyone)
    with one_torch_thread():
        made = fit(matrix, table, everyone, [seed], centres, scales)
    return NetworkProduct(
        encoder=encoder,
        networks=made,
        centre=centres[0],
        scale=scales[0],
        warnings=made.warnings,
    )


def _answer_group(
    fit: _Fit, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the answers of one group of models, (M, n, c)."""
    _need_torch()
    encoder = Encoder.of(table)
    matrix = encoder.matrix(table.features)
    centres, scales = encoder.standardisation(matrix, masks)
    answers = np.empty((len(masks), len(table), len(table.classes)), dtype=np.float32)
    with one_torch_thread():
        made = fit(matrix, table, masks, [int(s) for s in seeds], centres, scales)
        for k in range(len(masks)):
            answers[k] = _answers(made.of(k), matrix, centres[k], scales[k])
    return answers


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


def _one_hot(table: Table) -> NDArray[np.float32]:
    return np.eye(len(table.classes), dtype=np.float32)[table.target]


def _memories(optimiser: SGD | Adam) -> int:
    """Return how many numbers an optimiser remembers of a parameter."""
    if isinstance(optimiser, Adam):
        return 2
    return int(optimiser.momentum > 0)


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InvalidSpec(
            "networks are trained with PyTorch, which is not installed; install reticent[torch]."
        ) from error


@contextmanager
def _told_in_its_own_words(recipe: str) -> Iterator[None]:
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
