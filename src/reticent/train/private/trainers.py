"""Train private networks and modules on tables: what they see of the columns is declared, or learned with noise."""

import functools
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Encoder, NetworkProduct
from reticent.train._groups import one_torch_thread
from reticent.train.networks import (
    ModuleTrainer,
    NetworkTrainer,
    Seen,
    Stackable,
    need_torch,
    network_product,
    one_hot,
    told_in_its_own_words,
)
from reticent.train.private.domain import Domain, learn_domain, read_domain
from reticent.train.private.noise import secure_generator
from reticent.train.recipes import Private, PrivateModule, PrivateNetwork

if TYPE_CHECKING:
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
        Shape, training, treatment and noise.
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
        Training, treatment and noise.
    """

    training: PrivateModule

    @property
    def private(self) -> PrivateModule:
        """The recipe."""
        return self.training

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

        with told_in_its_own_words(self.recipe):
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
