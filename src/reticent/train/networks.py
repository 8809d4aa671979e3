"""Train networks on tables: the encoding, one model, or a whole pool in few passes."""

import functools
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

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
    Student,
    must_be_storable,
)
from reticent.run import Content, code_of, content_of
from reticent.train._plain import PlainTrainer, must_fit
from reticent.train.memory import fitting_size, one_torch_thread
from reticent.train.models import first_line
from reticent.train.recipes import CROSS_ENTROPY, Network, Training

if TYPE_CHECKING:
    from torch import Tensor, nn

    from reticent.train.engine import Networks
    from reticent.train.modules import Modules
    from reticent.train.stacking import Cohort, View

__all__ = [
    "Encoded",
    "Lesson",
    "ModuleTrainer",
    "NetworkTrainer",
    "Stackable",
    "as_trainer_failure",
    "module_product",
    "need_torch",
    "network_product",
    "one_hot",
]

# Eight, because two processes must both have work in a pool of 16. Per model-step that takes 1.3 times as long as 50 at
# once for networks with 8 hidden units, 1.1 times with 32 or 64, and less time from 256 on, where more models leave the
# processor's cache; for small modules 1.9 times (`_together` and `_modules` of benchmarks/engine.py with 4 to 50 models).
MODELS_PER_PASS = 8
PIECE = 4096  # records predicted at once, so that a piece of the inputs stays in the processor's cache

Models = TypeVar("Models", "Networks", "Modules")


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Records as models see them: the encoded numbers, and the centre and scale of each model."""

    encoder: Encoder
    matrix: NDArray[np.float32]
    centres: NDArray[np.float32]
    scales: NDArray[np.float32]
    warnings: tuple[str, ...] = ()

    def view(self, targets: NDArray[np.float32]) -> "View":
        """Return the records with these targets, for models without members of their own."""
        from reticent.train.stacking import View

        return View(**self._tensors(targets))

    def cohort(self, targets: NDArray[np.float32], lesson: "Lesson") -> "Cohort":
        """Return the models to be trained on the records with these targets, one per mask."""
        from reticent.train.stacking import Cohort

        seeds = [int(seed) for seed in lesson.seeds]
        return Cohort(**self._tensors(targets), masks=lesson.masks, seeds=seeds)

    def _tensors(self, targets: NDArray[np.float32]) -> "dict[str, Tensor]":
        import torch

        return {
            "inputs": torch.from_numpy(self.matrix),
            "targets": torch.from_numpy(targets),
            "centres": torch.from_numpy(self.centres),
            "scales": torch.from_numpy(self.scales),
        }


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What the models of one pass learn from.

    Parameters
    ----------
    table : Table
        All n records.
    masks : array of bool, shape (M, n)
        Members of each model.
    seeds : array of int, shape (M,)
        Seed of each model.
    targets : array of float, shape (n, c) or (M, n, c), optional
        Class probabilities, or quantities in a single column, that are learned in place of the table's target.
    """

    table: Table
    masks: NDArray[np.bool_]
    seeds: NDArray[np.int64]
    targets: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        return len(self.masks)

    def part(self, models: slice) -> "Lesson":
        """Return the lesson of some of the models."""
        targets = self.targets
        if targets is not None and targets.ndim == 3:
            targets = targets[models]
        return replace(
            self, masks=self.masks[models], seeds=self.seeds[models], targets=targets
        )

    @classmethod
    def of_one(
        cls, table: Table, seed: int, targets: NDArray[np.floating[Any]] | None = None
    ) -> "Lesson":
        """Return the lesson of a single model that is trained on all records."""
        everyone = np.ones((1, len(table)), dtype=bool)
        return cls(table=table, masks=everyone, seeds=np.array([seed]), targets=targets)

    def probabilities(self) -> NDArray[np.float32]:
        """Return the class probabilities that are learned: the targets, or one-hot classes of the table."""
        if self.targets is None:
            return one_hot(self.table)
        return np.asarray(self.targets, dtype=np.float32)

    def scales(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean and standard deviation of a quantity over each model's members, both of shape (M,).

        If all members have the same value, the deviation is 1.
        """
        values = self._quantities()
        members = [own[mask] for own, mask in zip(values, self.masks, strict=True)]
        scales = np.array([own.std() for own in members])
        centres = np.array([own.mean() for own in members])
        return centres, np.where(scales > 0, scales, 1.0)

    def standardised(self) -> NDArray[np.float32]:
        """Return a quantity as each model learns it, with mean 0 and variance 1 over its members, (M, n, 1)."""
        centres, scales = self.scales()
        values = (self._quantities() - centres[:, None]) / scales[:, None]
        return values[..., None].astype(np.float32)

    def _quantities(self) -> NDArray[np.float64]:
        """Return the quantity that each model learns, (M, n)."""
        values = self.table.target if self.targets is None else self.targets[..., 0]
        return np.broadcast_to(np.asarray(values, dtype=np.float64), self.masks.shape)


class Stackable(PlainTrainer, Generic[Models]):
    """What trainers of networks share: they train one model, or several in one pass, on labels or on soft targets."""

    def train_many(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float = 2.0,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records, shape (M, n, c).

        The models are trained in one pass, or in several if they do not fit into the memory (in gigabytes), or one
        by one if they cannot be stacked.
        """
        return self._train_lesson(Lesson(table=table, masks=masks, seeds=seeds), memory)

    def student(self) -> Student:
        """Return the trainer itself: cross-entropy takes any class probabilities, and squared error any quantity."""
        return self

    def train_many_on(
        self,
        table: Table,
        masks: NDArray[np.bool_],
        targets: NDArray[np.floating[Any]],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask, trained on targets in place of labels; see :class:`reticent.product.Student`."""
        lesson = Lesson(table=table, masks=masks, seeds=seeds, targets=targets)
        return self._train_lesson(lesson, memory)

    @abstractmethod
    def train_on(
        self, table: Table, targets: NDArray[np.floating[Any]], *, seed: int
    ) -> Any:
        """Return a product trained on targets in place of labels; see :class:`reticent.product.Student`."""

    def _train_lesson(self, lesson: Lesson, memory: float) -> NDArray[Any]:
        """Return the answers of all models of a lesson, in as many passes as the memory asks for."""
        table, masks, seeds = lesson.table, lesson.masks, lesson.seeds
        must_fit(table, masks, seeds)
        self._must_predict_target_of(table)
        need_torch()
        each = self._bytes(table, masks, seeds)
        size = fitting_size(len(masks), each=each, memory=memory)
        return np.concatenate(
            [
                self._answer(lesson.part(slice(start, start + size)))
                for start in range(0, len(masks), size)
            ]
        )

    def _answer(self, lesson: Lesson) -> NDArray[Any]:
        """Return the answers of the models of one pass, (M, n, c)."""
        table = lesson.table
        encoded = self._encode(table, lesson.masks, lesson.seeds)
        answers = np.empty(
            (len(lesson), len(table), len(table.classes)), dtype=np.float32
        )
        with one_torch_thread():
            models = self._fit(encoded, lesson)
            for k in range(len(lesson)):
                answers[k] = _answers(
                    models.of(k).probabilities,
                    encoded.matrix,
                    encoded.centres[k],
                    encoded.scales[k],
                )
        return answers

    def _must_predict_target_of(self, table: Table) -> None:
        if self.quantity != table.is_quantity:
            raise InvalidPredictions(
                f"the trainer {self.recipe} predicts a {'quantity' if self.quantity else 'class'}, but the table's target is a "
                f"{'quantity' if table.is_quantity else 'class'}; choose a trainer for this target, such as "
                f"reticent.Network(quantity={table.is_quantity})."
            )

    def _trained(self, lesson: Lesson) -> tuple[Encoded, Models]:
        """Return the model of a lesson of one model, after what it sees of the records."""
        need_torch()
        self._must_predict_target_of(lesson.table)
        encoded = self._encode(lesson.table, lesson.masks, lesson.seeds)
        with one_torch_thread():
            return encoded, self._fit(encoded, lesson)

    def _encode(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> Encoded:
        encoder = self._encoder(table)
        matrix = encoder.matrix(table.features)
        centres, scales = encoder.standardisation(matrix, masks)
        return Encoded(encoder=encoder, matrix=matrix, centres=centres, scales=scales)

    def _encoder(self, table: Table) -> Encoder:
        """Return the encoder that turns the columns of a table into numbers."""
        return Encoder.learned(table)

    @abstractmethod
    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        """Return the bytes that one more model adds to a pass."""

    @abstractmethod
    def _fit(self, encoded: Encoded, lesson: Lesson) -> Models:
        """Return trained models, one per mask."""


@dataclass(frozen=True, kw_only=True)
class NetworkTrainer(Stackable["Networks"]):
    """Train multilayer perceptrons on a table; needs the extra ``torch``.

    Parameters
    ----------
    network : Network
        Shape and training.
    recipe : str
        Description from which the trainer can be built again.
    chunk : int
        Number of networks that are trained in one pass. An experiment with hundreds of small networks may use more.
    """

    network: Network
    recipe: str
    chunk: int = MODELS_PER_PASS

    def content(self) -> Content:
        """Return the shape and training of the network."""
        return content_of(repr(self.network))

    @property
    def quantity(self) -> bool:
        """Whether products predict a quantity."""
        return self.network.quantity

    @property
    def prepares(self) -> bool:
        """Whether columns are encoded by what enough people have."""
        return True

    def parameters(self) -> Mapping[str, Any]:
        """Return the shape and the training of the network."""
        network = self.network
        return {field.name: getattr(network, field.name) for field in fields(network)}

    def train(self, table: Table, *, seed: int) -> NetworkProduct:
        """Return a network trained on all records of a table."""
        return self._product_of(Lesson.of_one(table, seed))

    def train_on(
        self, table: Table, targets: NDArray[np.floating[Any]], *, seed: int
    ) -> NetworkProduct:
        """Return a network trained on targets in place of labels."""
        return self._product_of(Lesson.of_one(table, seed, targets))

    def _product_of(self, lesson: Lesson) -> NetworkProduct:
        encoded, networks = self._trained(lesson)
        product = network_product(encoded, networks, lesson.table)
        if not self.quantity:
            return product
        centre, scale = lesson.scales()
        return replace(
            product, target_centre=float(centre[0]), target_scale=float(scale[0])
        )

    def _answer(self, lesson: Lesson) -> NDArray[Any]:
        """Return the answers of the models of one pass, (M, n, c), or (M, n, 1) for a quantity."""
        if not self.quantity:
            return super()._answer(lesson)
        encoded = self._encode(lesson.table, lesson.masks, lesson.seeds)
        centres, scales = lesson.scales()
        answers = np.empty((len(lesson), len(lesson.table), 1))
        with one_torch_thread():
            models = self._fit(encoded, lesson)
            for k in range(len(lesson)):
                values = _answers(
                    models.of(k).values,
                    encoded.matrix,
                    encoded.centres[k],
                    encoded.scales[k],
                )
                answers[k] = centres[k] + scales[k] * values.astype(np.float64)
        return answers

    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        inputs, classes = Encoder.learned(table).width, len(table.classes) or 1
        sizes = [inputs, *self.network.hidden, classes]
        parameters = sum(
            (below + 1) * above for below, above in itertools.pairwise(sizes)
        )
        dropped = len(table) * sum(
            width
            for width, share in zip(
                self.network.hidden, self.network.dropouts, strict=True
            )
            if share
        )
        return 4 * (
            # Parameters, gradients and the optimiser's memories; activations and deltas; the batch before
            # and after it is standardised; what dropout keeps; the answers.
            (2 + self.network.optimiser.memories) * parameters
            + 2 * self.network.batch * sum(sizes)
            + 2 * self.network.batch * inputs
            + dropped
            + len(table) * classes
        )

    def _fit(self, encoded: Encoded, lesson: Lesson) -> "Networks":
        from reticent.train.engine import train_networks

        targets = lesson.standardised() if self.quantity else lesson.probabilities()
        return train_networks(encoded.cohort(targets, lesson), self.network)


@dataclass(frozen=True, kw_only=True)
class ModuleTrainer(Stackable["Modules"]):
    """Train modules of the user on a table; needs the extra ``torch``.

    Parameters
    ----------
    make : callable
        Called with the number of inputs and the number of classes; returns a new
        ``torch.nn.Module`` from (batch, inputs) to (batch, classes) logits.
    training : Training
        How the module is trained.
    recipe : str
        Description from which the trainer can be built again.
    chunk : int
        Number of modules that are trained in one pass, if they can be stacked.
    code : Content, optional
        The user's code behind ``make``; by default the code of the callable itself.
    """

    make: Callable[[int, int], "nn.Module"]
    training: Training
    recipe: str
    chunk: int = MODELS_PER_PASS
    code: Content | None = None

    def content(self) -> Content:
        """Return the training, and the code of the module and of its loss."""
        content = content_of(repr(self.training))
        content += code_of(self.make) if self.code is None else self.code
        loss = self.training.loss
        return content if loss == CROSS_ENTROPY else content + code_of(loss)

    @property
    def prepares(self) -> bool:
        """Whether columns are encoded by what enough people have."""
        return True

    def parameters(self) -> Mapping[str, Any]:
        """Return the training of the module."""
        training = self.training
        return {field.name: getattr(training, field.name) for field in fields(training)}

    def train(self, table: Table, *, seed: int) -> ModuleProduct:
        """Return a module trained on all records of a table.

        If modules of this kind cannot be stacked, the product's warnings say so and why, because
        a pool of them takes longer.
        """
        encoded, modules = self._trained(Lesson.of_one(table, seed))
        return module_product(encoded, modules, table)

    def train_on(
        self, table: Table, targets: NDArray[np.floating[Any]], *, seed: int
    ) -> ModuleProduct:
        """Return a module trained on targets in place of labels."""
        encoded, modules = self._trained(Lesson.of_one(table, seed, targets))
        return module_product(encoded, modules, table)

    def must_be_storable(self, table: Table) -> None:
        """Refuse a module that cannot be saved, before time is spent on training it.

        Raises
        ------
        OutputRefused
            If the module does something that cannot be written down without code.
        """
        need_torch()
        import torch

        from reticent.train._trial import made_with

        inputs, classes = self._encoder(table).width, len(table.classes)
        with as_trainer_failure(self.recipe), one_torch_thread():
            make = functools.partial(self.make, inputs, classes)
            module, _ = made_with(make, 0, torch.zeros(1, inputs))
            must_be_storable(module, inputs=inputs, classes=classes)

    def _bytes(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> int:
        """Return the bytes that one more model adds to a pass, from a trial with a few members."""
        need_torch()
        import torch

        from reticent.train.modules import trial_of
        from reticent.train.stacking import View

        encoder, few = self._encoder(table), np.flatnonzero(masks[0])[:3]
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
            # Parameters in the module, stacked, and as gradients, and the optimiser's memories; layers'
            # outputs and their gradients; the batch before and after it is standardised; the answers.
            (3 + self.training.optimiser.memories) * trial.parameters
            + 2 * self.training.batch * (trial.activations + encoder.width)
            + len(table) * len(table.classes)
        )

    def _fit(self, encoded: Encoded, lesson: Lesson) -> "Modules":
        from reticent.train.modules import train_modules

        cohort = encoded.cohort(lesson.probabilities(), lesson)
        with as_trainer_failure(self.recipe):
            return train_modules(self._maker(cohort), cohort, self.training)

    def _maker(self, view: "View") -> "Callable[[], nn.Module]":
        """Return what makes a new module for these records."""
        inputs, classes = view.inputs.shape[1], view.targets.shape[-1]
        return functools.partial(self.make, inputs, classes)


def network_product(
    encoded: Encoded, networks: "Networks", table: Table
) -> NetworkProduct:
    """Return the first of the trained networks as a product."""
    return NetworkProduct(
        encoder=encoded.encoder,
        centre=encoded.centres[0],
        scale=encoded.scales[0],
        weights=tuple(w[0].numpy() for w in networks.weights),
        biases=tuple(b[0, :, 0].numpy() for b in networks.biases),
        activation=networks.activation,
        classes=table.classes,
        warnings=(*networks.warnings, *encoded.warnings),
    )


def module_product(encoded: Encoded, modules: "Modules", table: Table) -> ModuleProduct:
    """Return the first of the trained modules as a product."""
    return ModuleProduct(
        encoder=encoded.encoder,
        module=modules.modules[0],
        centre=encoded.centres[0],
        scale=encoded.scales[0],
        classes=table.classes,
        warnings=(*modules.warnings, *encoded.warnings),
    )


def _answers(
    ask: "Callable[[Tensor], NDArray[np.float32]]",
    matrix: NDArray[np.float32],
    centre: NDArray[np.float32],
    scale: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return what one model answers for all records, (n, outputs)."""
    import torch

    pieces = []
    for start in range(0, len(matrix), PIECE):
        inputs = (matrix[start : start + PIECE] - centre) / scale
        np.nan_to_num(inputs, copy=False)
        pieces.append(ask(torch.from_numpy(inputs))[0])
    answers: NDArray[np.float32] = np.concatenate(pieces)
    if not np.isfinite(answers).all():
        bad = int((~np.isfinite(answers)).any(axis=1).sum())
        raise InvalidPredictions(
            f"a network's answers for {bad} of {len(answers)} records are not finite, so its training diverged and no "
            "attack can be judged; lower the rate of its optimiser."
        )
    return answers


def one_hot(table: Table) -> NDArray[np.float32]:
    """Return the classes of records as one-hot probabilities."""
    identity = np.eye(len(table.classes), dtype=np.float32)
    return np.asarray(identity[table.target], dtype=np.float32)


def need_torch() -> None:
    """Refuse to go on if PyTorch is not installed, and say how to install it."""
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InvalidSpec(
            "networks are trained with PyTorch, which is not installed; install reticent[torch]."
        ) from error


@contextmanager
def as_trainer_failure(recipe: str) -> Iterator[None]:
    """Turn what the user's module raises into a failure of the trainer."""
    try:
        yield
    except ReticentError:
        raise
    except Exception as error:
        raise TrainerFailed(
            f"the trainer {recipe} raised {type(error).__name__}: {first_line(error)}; "
            "try it on this table outside reticent first."
        ) from error
