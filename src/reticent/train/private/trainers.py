"""Train private networks and modules on tables: what they see of the columns is declared, or learned with noise."""

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import joblib
import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.pool import Trace, Truth
from reticent.product import Encoder, NetworkProduct
from reticent.train._groups import one_torch_thread
from reticent.train.networks import (
    ModuleTrainer,
    NetworkTrainer,
    Seen,
    Stackable,
    as_trainer_failure,
    need_torch,
    network_product,
    one_hot,
)
from reticent.train.private.domain import Domain, learn_domain, read_domain
from reticent.train.private.noise import secure_generator
from reticent.train.recipes import Private, PrivateModule, PrivateNetwork

if TYPE_CHECKING:
    from torch import nn

    from reticent.train.engine import Networks
    from reticent.train.modules import Modules

__all__ = ["PrivateModuleTrainer", "PrivateNetworkTrainer"]

ROTATED = 0.7  # records per column below which a basis of them is worth its making
Told = Callable[[int], None]


class _Private(Stackable):
    """What private trainers share: what a model sees of the columns is declared, or learned with noise."""

    @property
    @abstractmethod
    def private(self) -> Private:
        """The recipe."""

    def _trained(
        self, table: Table, seed: int, told: Told | None = None
    ) -> "tuple[Seen, Networks | Modules]":
        need_torch()
        secret = self.private.noise == "secret"
        domain = self._domain(table, secure_generator() if secret else _seeded(seed))
        encoder = domain.encoder
        if encoder.width == 0:
            raise InvalidInput(
                f"no column could be learned through the noise from {len(table)} records; declare the columns' values with a "
                "domain, or bring more records."
            )
        centre, scale = domain.standardisation()
        seen = Seen(
            encoder=encoder,
            matrix=encoder.matrix(table.features),
            centres=centre[None],
            scales=scale[None],
            warnings=tuple(
                f"the values of {name} were too few to be learned through the noise"
                for name in domain.unheard
            ),
        )
        everyone = np.ones((1, len(table)), dtype=bool)
        with one_torch_thread():
            made = self._fit_with(
                self.private, seen, table, everyone, [seed], told=told
            )
        return seen, made

    def watch(
        self,
        table: Table,
        *,
        own: int,
        other: int | None = None,
        seeds: Sequence[int],
        local: Literal["pair", "own"] | None = None,
        shuffled: bool = False,
        workers: int = 1,
        told: Told | None = None,
    ) -> tuple[Trace, Truth]:
        """Train on one of two neighbouring tables per seed, and return what an observer of every step could use.

        What is watched is the steps: the domain, if it is learned, is learned once for these seeds from the records of both tables,
        and what its noise may betray is not watched.

        Parameters
        ----------
        table : Table
            The records of both tables.
        own, other : int
            Row that only the first table holds, and row that only the second one holds, if there is one.
        seeds : sequence of int
            One per run.
        local, shuffled
            As in :func:`reticent.train.private.watched.watch_networks`.
        workers : int
            Processes.
        told : callable, optional
            Called with the number of runs done.
        """
        need_torch()
        common = np.setdiff1d(
            np.arange(len(table)), [own] if other is None else [own, other]
        )
        seen = self._seen_alike(table, int(seeds[0]))
        watch = functools.partial(
            self._watch,
            seen,
            one_hot(table),
            (common, own, other),
            local=local,
            shuffled=shuffled,
        )
        # Small groups, so that progress is told and processes end together.
        size = max(1, min(50, -(-len(seeds) // (2 * workers))))
        groups = [seeds[at : at + size] for at in range(0, len(seeds), size)]
        made = []
        some = 1 if workers == 1 else 2 * workers
        for at in range(0, len(groups), some):
            now = groups[at : at + some]
            if workers == 1:
                made += [watch(group) for group in now]
            else:
                made += joblib.Parallel(n_jobs=workers)(
                    joblib.delayed(watch)(group) for group in now
                )
            if told is not None:
                told(sum(len(group) for group in groups[: at + some]))
        return Trace.join([t for t, _ in made]), Truth.join([a for _, a in made])

    def gradients_at_start(
        self, table: Table, rows: Sequence[int], *, seed: int
    ) -> NDArray[np.float32]:
        """Return the clipped gradients of some records at initial weights, one row a record.

        Parameters
        ----------
        table : Table
            The records.
        rows : sequence of int
            Which of them.
        seed : int
            Of the initialisation.
        """
        need_torch()
        import torch

        from reticent.train.private.watched import shares_at_start

        seen = self._seen_alike(table, seed)
        with one_torch_thread():
            found = shares_at_start(
                torch.from_numpy(seen.matrix),
                torch.from_numpy(one_hot(table)),
                rows,
                self.private,
                seed=seed,
                make=self._make(seen, len(table.classes)),
                centre=torch.from_numpy(seen.centres[0]),
                scale=torch.from_numpy(seen.scales[0]),
            )
        return np.asarray(found.numpy())

    def _seen_alike(self, table: Table, seed: int) -> Seen:
        """Return what all models of a watched training see."""
        domain = self._domain(table, _seeded(seed))
        encoder = domain.encoder
        centre, scale = domain.standardisation()
        return Seen(
            encoder=encoder,
            matrix=encoder.matrix(table.features),
            centres=centre[None],
            scales=scale[None],
        )

    def _watch(
        self,
        seen: Seen,
        targets: NDArray[np.float32],
        rows: tuple[NDArray[np.int64], int, int | None],
        seeds: Sequence[int],
        *,
        local: Literal["pair", "own"] | None,
        shuffled: bool,
    ) -> tuple[Trace, Truth]:
        import torch

        from reticent.train.private.watched import (
            Neighbours,
            watch_modules,
            watch_networks,
        )

        common, own, other = rows
        neighbours = Neighbours(common=common, own=own, other=other)
        make = self._make(seen, targets.shape[1])
        recipe = self.private
        inputs = torch.from_numpy(seen.matrix)
        centre, scale = (
            torch.from_numpy(seen.centres[0]),
            torch.from_numpy(seen.scales[0]),
        )
        with one_torch_thread():
            if make is None:
                assert isinstance(recipe, PrivateNetwork)
                return watch_networks(
                    inputs,
                    torch.from_numpy(targets),
                    neighbours,
                    recipe,
                    seeds,
                    centre=centre,
                    scale=scale,
                    local=local,
                    shuffled=shuffled,
                )
            return watch_modules(
                make,
                inputs,
                torch.from_numpy(targets),
                neighbours,
                recipe,
                seeds,
                centre=centre,
                scale=scale,
                local=local,
                shuffled=shuffled,
            )

    def _make(self, seen: Seen, classes: int) -> "Callable[[], nn.Module] | None":
        """Return what makes a module of the user; None for networks of ours."""
        return None

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

    def _see(
        self, table: Table, masks: NDArray[np.bool_], seeds: NDArray[np.int64]
    ) -> Seen:
        encoder = Encoder.of(table)
        pairs = [
            self._domain(
                table.take(np.flatnonzero(mask)), _seeded(int(seed))
            ).standardisation(encoder)
            for mask, seed in zip(masks, seeds, strict=True)
        ]
        return Seen(
            encoder=encoder,
            matrix=encoder.matrix(table.features),
            centres=np.stack([centre for centre, _ in pairs]),
            scales=np.stack([scale for _, scale in pairs]),
        )

    def _fit(
        self, seen: Seen, table: Table, masks: NDArray[np.bool_], seeds: list[int]
    ) -> "Networks | Modules":
        pooled = replace(self.private, noise="seeded")  # a pool is never released
        return self._fit_with(pooled, seen, table, masks, seeds, pooled=True)

    @abstractmethod
    def _fit_with(
        self,
        recipe: Private,
        seen: Seen,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: list[int],
        *,
        told: Told | None = None,
        pooled: bool = False,
    ) -> "Networks | Modules":
        """Return trained models by a recipe, one per mask."""


@dataclass(frozen=True, kw_only=True)
class PrivateNetworkTrainer(_Private, NetworkTrainer):
    """Train multilayer perceptrons with differential privacy; needs the extra ``torch``.

    What a network sees of the columns comes from a domain that was declared, or learned with noise, never from the
    records as they are. Models of a pool are never released: their noise is seeded.

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

    def train(
        self, table: Table, *, seed: int, told: Told | None = None
    ) -> NetworkProduct:
        """Return a private network trained on all records of a table.

        Parameters
        ----------
        table : Table
            The records.
        seed : int
            Of the initialisation; and of all noise if the recipe says so.
        told : callable, optional
            Called with the number of steps done.
        """
        seen, made = self._trained(table, seed, told)
        return network_product(seen, made, table)

    def _fit_with(
        self,
        recipe: Private,
        seen: Seen,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: list[int],
        *,
        told: Told | None = None,
        pooled: bool = False,
    ) -> "Networks":
        import torch

        from reticent.train.private.networks import can_rotate, train_privately

        assert isinstance(recipe, PrivateNetwork)
        rows, width = seen.matrix.shape
        # Only in pools, whose models are never asked about other records, and in one scale.
        rotate = pooled and recipe.domain is not None and rows < ROTATED * width
        return train_privately(
            torch.from_numpy(seen.matrix),
            torch.from_numpy(one_hot(table)),
            masks,
            seeds,
            recipe,
            centres=torch.from_numpy(seen.centres),
            scales=torch.from_numpy(seen.scales),
            rotate=rotate and can_rotate(recipe),
            told=told,
        )


@dataclass(frozen=True, kw_only=True)
class PrivateModuleTrainer(_Private, ModuleTrainer):
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

    def _make(self, seen: Seen, classes: int) -> "Callable[[], nn.Module] | None":
        return functools.partial(self.make, seen.matrix.shape[1], classes)

    def _fit_with(
        self,
        recipe: Private,
        seen: Seen,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: list[int],
        *,
        told: Told | None = None,
        pooled: bool = False,
    ) -> "Modules":
        import torch

        from reticent.train.private.modules import train_modules_privately

        with as_trainer_failure(self.recipe):
            return train_modules_privately(
                functools.partial(self.make, seen.matrix.shape[1], len(table.classes)),
                torch.from_numpy(seen.matrix),
                torch.from_numpy(one_hot(table)),
                masks,
                seeds,
                recipe,
                centres=torch.from_numpy(seen.centres),
                scales=torch.from_numpy(seen.scales),
                told=told,
            )


def _seeded(seed: int) -> np.random.Generator:
    """Return the generator of a domain that carries no guarantee."""
    return np.random.default_rng([seed, 3])
