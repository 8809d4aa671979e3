"""Train private networks and modules on tables, whose columns' values are declared or learned with noise."""

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from reticent.account import Guarantee, Terms
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.pool import Trace, Truth
from reticent.product import (
    Departure,
    Encoder,
    ModuleProduct,
    NetworkProduct,
    Watchable,
)
from reticent.run import Content, Serial, Workers, code_of, content_of
from reticent.train.memory import one_torch_thread
from reticent.train.networks import (
    Encoded,
    Lesson,
    Models,
    ModuleTrainer,
    NetworkTrainer,
    Stackable,
    as_trainer_failure,
    module_product,
    need_torch,
    network_product,
    one_hot,
)
from reticent.train.private.budget import guarantee_of
from reticent.train.private.clipping import Clip
from reticent.train.private.domain import Domain, learn_domain, read_domain
from reticent.train.private.noise import secure_generator
from reticent.train.recipes import Private, PrivateModule, PrivateNetwork

if TYPE_CHECKING:
    import torch

    from reticent.train.engine import Networks
    from reticent.train.modules import Modules
    from reticent.train.private.watched import Neighbours
    from reticent.train.stacking import View

__all__ = ["PrivateModuleTrainer", "PrivateNetworkTrainer"]

ROTATED = 0.7  # records per column below which training in a basis of the records saves more than computing it costs
RUNS_PER_GROUP = 50  # runs watched at once; more do not fit into the processor's cache
UNCLIPPED = Clip(norm=1e9)  # longer than any gradient, so that none is shortened
Tell = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class _Watched:
    """What a group of watched runs has in common.

    Parameters
    ----------
    encoded : Encoded
        The records as every model sees them.
    targets : array of float, shape (n, c)
        One-hot classes of the records.
    neighbours : Neighbours
        The two tables.
    departure : Departure
        How the training departs from DP-SGD.
    """

    encoded: Encoded
    targets: NDArray[np.float32]
    neighbours: "Neighbours"
    departure: Departure

    def view(self) -> "View":
        """Return the records as every model sees them."""
        return self.encoded.view(self.targets)


class _Private(Stackable[Models]):
    """What private trainers share: the values of columns are declared or learned with noise."""

    @property
    def prepares(self) -> bool:
        """Whether columns are encoded by what enough people have: no, by a domain that was declared or learned with noise."""
        return False

    @property
    @abstractmethod
    def private(self) -> Private:
        """The recipe."""

    @abstractmethod
    def unclipped(self) -> Self:
        """Return the same training without clipping: gradients of any length are left unchanged."""

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again: not with secret noise."""
        return self.private.noise != "secret"

    def guarantee(self, rows: int) -> Guarantee | None:
        """Return what the recipe guarantees about a product trained on ``rows`` rows, at delta 1 / (10 rows) under add/remove."""
        return guarantee_of(self.private, rows=rows, terms=Terms(delta=1 / (10 * rows)))

    def watching(self) -> Watchable | None:
        """Return the trainer itself: every step of its training can be watched."""
        return self

    def content(self) -> Content:
        """Return the training, the code of its clipping, and the content of its domain's file."""
        domain = self.private.domain
        digest = ""
        if domain is not None and Path(domain).is_file():
            digest = hashlib.sha256(Path(domain).read_bytes()).hexdigest()
        clipping = code_of(type(self.private.clipping))
        return super().content() + clipping + content_of(digest)

    def for_rows(self, rows: int) -> Self:
        """Return the same training with a public number of rows, from which sampling rate and steps follow."""
        return self._with(replace(self.private, rows=rows))

    @abstractmethod
    def _with(self, private: Any) -> Self:
        """Return the trainer of another recipe of the same kind."""

    def _trained(
        self, lesson: Lesson, tell: Tell | None = None
    ) -> tuple[Encoded, Models]:
        need_torch()
        table, seed = lesson.table, int(lesson.seeds[0])
        secret = self.private.noise == "secret"
        domain = self._domain(table, secure_generator() if secret else _seeded(seed))
        if domain.encoder.width == 0:
            raise InvalidInput(
                f"no column could be learned through the noise from {len(table)} records; declare the columns' values with a "
                "domain, or use more records."
            )
        encoded = replace(
            _encoded_by(domain, table),
            warnings=tuple(
                f"the values of {name} were too few to be learned through the noise"
                for name in domain.unheard
            ),
        )
        with one_torch_thread():
            return encoded, self._fit_with(encoded, lesson, tell=tell)

    def watch(
        self,
        table: Table,
        *,
        own: int,
        other: int | None = None,
        seeds: Sequence[int],
        columns_seed: int,
        departure: Departure,
        workers: Workers | None = None,
    ) -> tuple[Trace, Truth]:
        """Train on one of two neighbouring tables per seed, and return what an observer of every step could use.

        Only the steps are watched: the domain, if it is learned, is learned once from the records of both tables, and what its noise may
        betray is not part of the trace.

        Parameters
        ----------
        table : Table
            The records of both tables.
        own, other : int
            Row that only the first table holds, and row that only the second table holds, if there is one.
        seeds : sequence of int
            Seed of each run.
        columns_seed : int
            Seed of the noise by which the domain is learned: one for all runs that are judged together.
        departure : Departure
            How the training departs from DP-SGD.
        workers : Workers, optional
            The workers that carry out the runs; by default this process.
        """
        need_torch()
        from reticent.train.private.watched import Neighbours

        common = np.setdiff1d(
            np.arange(len(table)), [own] if other is None else [own, other]
        )
        watched = _Watched(
            encoded=self._encoded_for_all(table, columns_seed),
            targets=one_hot(table),
            neighbours=Neighbours(common=common, own=own, other=other),
            departure=departure,
        )
        workers = workers or Serial()
        # Small groups, so that all processes end at about the same time.
        size = max(1, min(RUNS_PER_GROUP, -(-len(seeds) // (2 * workers.count))))
        groups = [seeds[at : at + size] for at in range(0, len(seeds), size)]
        watchings = workers.map(_watch_group, groups, shared=(self, watched))
        traces, truths = zip(*watchings, strict=True)
        return Trace.join(list(traces)), Truth.join(list(truths))

    def gradients_at_start(
        self, table: Table, rows: Sequence[int], *, seed: int
    ) -> NDArray[np.float32]:
        """Return the clipped gradients of the given records at the initial weights, one row per record.

        Parameters
        ----------
        table : Table
            The table.
        rows : sequence of int
            Rows of the records.
        seed : int
            Seed of the initialisation.
        """
        need_torch()
        view = self._encoded_for_all(table, seed).view(one_hot(table))
        with one_torch_thread():
            shares = self._shares_at_start(view, rows, seed)
        return np.asarray(shares.numpy())

    def _encoded_for_all(self, table: Table, seed: int) -> Encoded:
        """Return the records as all models of a watched training see them."""
        return _encoded_by(self._domain(table, _seeded(seed)), table)

    @abstractmethod
    def _watch(self, watched: _Watched, seeds: Sequence[int]) -> tuple[Trace, Truth]:
        """Return what an observer sees of one run per seed, and the truth."""

    @abstractmethod
    def _shares_at_start(
        self, view: "View", rows: Sequence[int], seed: int
    ) -> "torch.Tensor":
        """Return the clipped gradients of the given records at the initial weights."""

    def _domain(self, table: Table, generator: np.random.Generator) -> Domain:
        recipe = self.private
        if recipe.domain is not None:
            return read_domain(recipe.domain, table)
        return learn_domain(
            table,
            noise_multiplier=recipe.domain_noise,
            failure=recipe.domain_failure,
            generator=generator,
        )

    def _encode(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> Encoded:
        encoder = Encoder.of(table)
        pairs = [
            self._domain(
                table.take(np.flatnonzero(mask)), _seeded(int(seed))
            ).standardisation(encoder)
            for mask, seed in zip(masks, seeds, strict=True)
        ]
        return Encoded(
            encoder=encoder,
            matrix=encoder.matrix(table.features),
            centres=np.stack([centre for centre, _ in pairs]),
            scales=np.stack([scale for _, scale in pairs]),
        )

    def _fit(self, encoded: Encoded, lesson: Lesson) -> Models:
        return self._fit_with(encoded, lesson, pooled=True)

    @abstractmethod
    def _fit_with(
        self,
        encoded: Encoded,
        lesson: Lesson,
        *,
        tell: Tell | None = None,
        pooled: bool = False,
    ) -> Models:
        """Return trained models, one per mask; models of a pool are never released, so their noise is seeded."""


@dataclass(frozen=True, kw_only=True)
class PrivateNetworkTrainer(_Private["Networks"], NetworkTrainer):
    """Train multilayer perceptrons with differential privacy; needs the extra ``torch``.

    Columns are encoded and scaled by a domain that was declared, or learned with noise, never by the records
    themselves. Models of a pool are never released, so their noise is seeded.

    Parameters
    ----------
    network : PrivateNetwork
        Shape, training, clipping and noise.
    """

    network: PrivateNetwork

    @property
    def private(self) -> PrivateNetwork:
        """The recipe."""
        return self.network

    def unclipped(self) -> Self:
        """Return the same training without clipping: gradients of any length are left unchanged."""
        return self._with(replace(self.network, clipping=UNCLIPPED))

    def _with(self, private: PrivateNetwork) -> Self:
        return replace(self, network=private)

    def train(
        self, table: Table, *, seed: int, tell: Tell | None = None
    ) -> NetworkProduct:
        """Return a private network trained on all records of a table.

        Parameters
        ----------
        table : Table
            The records.
        seed : int
            Seed of the initialisation; and of all noise if the recipe says so.
        tell : callable, optional
            Called with the number of completed steps.
        """
        encoded, networks = self._trained(Lesson.of_one(table, seed), tell)
        return network_product(encoded, networks, table)

    def _fit_with(
        self,
        encoded: Encoded,
        lesson: Lesson,
        *,
        tell: Tell | None = None,
        pooled: bool = False,
    ) -> "Networks":
        from reticent.train.private.networks import can_rotate, train_privately

        recipe = replace(self.network, noise="seeded") if pooled else self.network
        rows, width = encoded.matrix.shape
        # Only in pools, whose models never answer for other records, and only if all models see the same scale.
        rotate = pooled and recipe.domain is not None and rows < ROTATED * width
        return train_privately(
            encoded.cohort(lesson.probabilities(), lesson),
            recipe,
            rotate=rotate and can_rotate(recipe),
            tell=tell,
        )

    def _watch(self, watched: _Watched, seeds: Sequence[int]) -> tuple[Trace, Truth]:
        from reticent.train.private.watched import watch_networks

        return watch_networks(
            watched.view(),
            watched.neighbours,
            self.network,
            seeds,
            departure=watched.departure,
        )

    def _shares_at_start(
        self, view: "View", rows: Sequence[int], seed: int
    ) -> "torch.Tensor":
        from reticent.train.private.watched import network_shares_at_start

        return network_shares_at_start(view, rows, self.network, seed=seed)


@dataclass(frozen=True, kw_only=True)
class PrivateModuleTrainer(_Private["Modules"], ModuleTrainer):
    """Train modules of the user with differential privacy; needs the extra ``torch``.

    Parameters
    ----------
    training : PrivateModule
        Training, clipping and noise.
    """

    training: PrivateModule

    @property
    def private(self) -> PrivateModule:
        """The recipe."""
        return self.training

    def train(
        self, table: Table, *, seed: int, tell: Tell | None = None
    ) -> ModuleProduct:
        """Return a private module trained on all records of a table.

        Parameters
        ----------
        table : Table
            The records.
        seed : int
            Seed of the initialisation; and of all noise if the recipe says so.
        tell : callable, optional
            Called with the number of completed steps.
        """
        encoded, modules = self._trained(Lesson.of_one(table, seed), tell)
        return module_product(encoded, modules, table)

    def unclipped(self) -> Self:
        """Return the same training without clipping: gradients of any length are left unchanged."""
        return self._with(replace(self.training, clipping=UNCLIPPED))

    def _with(self, private: PrivateModule) -> Self:
        return replace(self, training=private)

    def _fit_with(
        self,
        encoded: Encoded,
        lesson: Lesson,
        *,
        tell: Tell | None = None,
        pooled: bool = False,
    ) -> "Modules":
        from reticent.train.private.modules import train_modules_privately

        recipe = replace(self.training, noise="seeded") if pooled else self.training
        cohort = encoded.cohort(lesson.probabilities(), lesson)
        with as_trainer_failure(self.recipe):
            return train_modules_privately(
                self._maker(cohort), cohort, recipe, tell=tell
            )

    def _watch(self, watched: _Watched, seeds: Sequence[int]) -> tuple[Trace, Truth]:
        from reticent.train.private.watched import watch_modules

        view = watched.view()
        return watch_modules(
            self._maker(view),
            view,
            watched.neighbours,
            self.training,
            seeds,
            departure=watched.departure,
        )

    def _shares_at_start(
        self, view: "View", rows: Sequence[int], seed: int
    ) -> "torch.Tensor":
        from reticent.train.private.watched import module_shares_at_start

        return module_shares_at_start(
            self._maker(view), view, rows, self.training, seed=seed
        )


def _watch_group(
    shared: "tuple[_Private[Any], _Watched]", seeds: Sequence[int]
) -> tuple[Trace, Truth]:
    """Return what an observer sees of one run per seed, and the truth."""
    trainer, watched = shared
    with one_torch_thread():
        return trainer._watch(watched, seeds)


def _encoded_by(domain: Domain, table: Table) -> Encoded:
    """Return the records as a single model sees them, encoded and scaled by a domain."""
    centre, scale = domain.standardisation()
    return Encoded(
        encoder=domain.encoder,
        matrix=domain.encoder.matrix(table.features),
        centres=centre[None],
        scales=scale[None],
    )


def _seeded(seed: int) -> np.random.Generator:
    """Return the seeded generator of a domain's noise, which carries no guarantee."""
    return np.random.default_rng([seed, 3])
