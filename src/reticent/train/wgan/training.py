"""The two-player training: the critic asks the data for one noisy sum per step, the generator only asks the critic."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.train.wgan.coding import Coding
from reticent.train.wgan.critics import Critic, Sums, critic_of, values_and_factors
from reticent.train.wgan.generators import (
    Adam,
    GeneratorNetwork,
    Moments,
    generator_of,
)
from reticent.train.wgan.modes import Mode, Step
from reticent.train.wgan.noise import Source
from reticent.train.wgan.penalty import penalty_of
from reticent.train.wgan.regions import Region

__all__ = [
    "Ask",
    "Game",
    "Players",
    "Records",
    "Settings",
    "Trained",
    "private_asks",
]

Array = NDArray[np.float64]
# Rows that a generator makes at once, so that its layers take some megabytes. Always the same number, because products of matrices of other sizes are rounded otherwise.
AT_ONCE = 10_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes and rates of a training; none of them depends on the records.

    Parameters
    ----------
    critic, generator : tuple of int
        Units of the hidden layers.
    latent : int
        Random numbers that make a row.
    normal : bool
        Whether they are normal; else uniform on [0, 1] as in the source.
    fakes : int
        Rows of the generator in each step.
    critic_rate, generator_rate : float
        Learning rates of Adam.
    momentum : float
        Decay of the mean of gradients in Adam.
    critic_steps : int
        Steps of the critic for each step of the generator.
    averaging : float
        Decay of the mean of the generator's weights that rows are made with; 0 for the last weights.
    single : bool
        Whether the networks have single precision, which takes half the time. Not with a guarantee: bounds and releases count on double precision.
    """

    critic: tuple[int, ...] = (64, 32)
    generator: tuple[int, ...] = (64, 64)
    latent: int = 32
    normal: bool = True
    fakes: int = 256
    critic_rate: float = 2e-3
    generator_rate: float = 1e-3
    momentum: float = 0.5
    critic_steps: int = 2
    averaging: float = 0.99
    single: bool = False

    def draws(self, rows: int, rng: np.random.Generator) -> Array:
        """Return random numbers for so many rows."""
        shape = (rows, self.latent)
        drawn = rng.standard_normal(shape) if self.normal else rng.random(shape)
        return self.held(drawn)

    def held(self, numbers: Array) -> Array:
        """Return numbers in the precision of the networks."""
        return numbers.astype(np.float32 if self.single else np.float64, copy=False)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training leaves: both networks, and how rows are made.

    Parameters
    ----------
    generator : GeneratorNetwork
        Its weights, averaged over the last steps.
    critic : Critic
        The critic; it carries the same guarantee, and is not released unless asked for.
    settings : Settings
        How random numbers are drawn.
    """

    generator: GeneratorNetwork
    critic: Critic
    settings: Settings

    def rows(self, count: int, rng: np.random.Generator) -> Array:
        """Return rows of coordinates between 0 and 1."""
        made = np.empty((count, sum(self.generator.groups)))
        for start in range(0, count, AT_ONCE):
            latent = self.settings.draws(min(AT_ONCE, count - start), rng)
            made[start : start + AT_ONCE] = self.generator.rows(latent)[0]
        return made


# From the critic, its fakes and their mean gradient to an estimate of the mean gradient at the data.
Ask = Callable[[Critic, Array, Sums], Sums]


@dataclass(frozen=True, kw_only=True)
class Players:
    """Both networks after some steps, and all else that the next step begins with, in plain arrays that can be kept.

    Parameters
    ----------
    step : int
        Steps of the critic that were made.
    critic, generator : tuple of array
        Their parameters.
    averaged : tuple of array
        Mean of the generator's parameters over the last steps.
    critic_moments, generator_moments : Moments
        What their optimisers remember.
    """

    step: int
    critic: tuple[Array, ...]
    generator: tuple[Array, ...]
    averaged: tuple[Array, ...]
    critic_moments: Moments
    generator_moments: Moments


@dataclass(frozen=True, kw_only=True)
class Game:
    """The rules by which a critic and a generator are trained against each other.

    Parameters
    ----------
    coding : Coding
        The coordinates.
    mode : Mode
        The critic's activation, penalty and projection.
    settings : Settings
        Sizes and rates.
    """

    coding: Coding
    mode: Mode
    settings: Settings

    def opening(self, rng: np.random.Generator) -> Players:
        """Return networks with random weights."""
        width = len(self.coding.middle)
        settings = self.settings
        critic = critic_of((width, *settings.critic, 1), self.mode.activation, rng)
        widths = (settings.latent, *settings.generator, width)
        generator = generator_of(widths, self.coding.groups, rng)
        weights = tuple(settings.held(p) for p in generator.parameters)
        return Players(
            step=0,
            critic=tuple(settings.held(p) for p in critic.parameters),
            generator=weights,
            averaged=weights,
            critic_moments=Moments(),
            generator_moments=Moments(),
        )

    def played(
        self, players: Players, asks: Iterable[Ask], rng: np.random.Generator
    ) -> Players:
        """Return the networks after further steps.

        Parameters
        ----------
        players : Players
            The networks before them.
        asks : iterable of callable
            One per step of the critic: how the data are asked. All that this function learns of them goes through these calls.
        rng : numpy.random.Generator
            Of fakes and penalties, which protect nobody.

        Raises
        ------
        InvalidInput
            If the weights grow beyond all bounds.
        """
        settings, mode = self.settings, self.mode
        critic, generator = self._critic(players.critic), self._generator(players.generator)  # fmt: skip
        averaged = players.averaged
        critic_adam = Adam(settings.critic_rate, settings.momentum, moments=players.critic_moments)  # fmt: skip
        generator_adam = Adam(settings.generator_rate, settings.momentum, moments=players.generator_moments)  # fmt: skip
        number = players.step
        for number, ask in enumerate(asks, start=players.step + 1):
            ascent = self._ascent(critic, generator, ask, rng)
            moved = critic_adam.moved(critic.parameters, ascent)
            critic = mode.settled(critic.with_parameters(moved))
            if not all(np.isfinite(p).all() for p in critic.parameters):
                raise InvalidInput(
                    "the weights of the critic grew beyond all bounds, so nothing was learned; use a smaller critic_rate, or the Lipschitz mode."
                )
            if number % settings.critic_steps == 0:
                generator = _improved(generator, critic, generator_adam, self, rng)
                # The mean begins with the weights themselves, and gets longer.
                keep = min(
                    settings.averaging, 1 - 1 / (number // settings.critic_steps)
                )
                averaged = tuple(
                    keep * mean + (1 - keep) * parameter
                    for mean, parameter in zip(
                        averaged, generator.parameters, strict=True
                    )
                )
        return Players(
            step=number,
            critic=critic.parameters,
            generator=generator.parameters,
            averaged=averaged,
            critic_moments=critic_adam.moments,
            generator_moments=generator_adam.moments,
        )

    def trained(self, players: Players) -> Trained:
        """Return what a training leaves that ends here."""
        return Trained(
            generator=self._generator(players.averaged),
            critic=self._critic(players.critic),
            settings=self.settings,
        )

    def _critic(self, parameters: tuple[Array, ...]) -> Critic:
        layers = len(self.settings.critic) + 1
        return Critic(
            weights=parameters[:layers],
            biases=parameters[layers:],
            activation=self.mode.activation,
        )

    def _generator(self, parameters: tuple[Array, ...]) -> GeneratorNetwork:
        layers = len(self.settings.generator) + 1
        return GeneratorNetwork(
            weights=parameters[:layers],
            biases=parameters[layers:],
            groups=self.coding.groups,
        )

    def _ascent(
        self,
        critic: Critic,
        generator: GeneratorNetwork,
        ask: Ask,
        rng: np.random.Generator,
    ) -> list[Array]:
        """Return the direction of the critic's next step: real against fake, minus the penalty."""
        settings = self.settings
        latent = settings.draws(settings.fakes, rng)
        fakes = generator.rows(latent)[0] - settings.held(self.coding.middle)
        _, at_fakes = values_and_factors(critic, fakes)
        fake_mean = tuple(part / len(fakes) for part in at_fakes.total())
        ascent = [
            real - fake
            for real, fake in zip(ask(critic, fakes, fake_mean), fake_mean, strict=True)
        ]
        if self.mode.penalty:
            points = _between(fakes, self.coding.region, rng)
            pulls = penalty_of(critic, points, self.mode.penalty)
            ascent = [slope - pull for slope, pull in zip(ascent, pulls, strict=True)]
        return ascent


class Records(Protocol):
    """Coordinates of all records, which need not be in memory at the same time."""

    def __len__(self) -> int:
        """Return the number of records."""
        ...

    def __getitem__(self, rows: NDArray[np.int64], /) -> Array:
        """Return the coordinates of some of them."""
        ...


def private_asks(
    records: Records,
    region: Region,
    mode: Mode,
    source: Source,
    schedule: Iterator[tuple[float, float, float]],
) -> Iterator[Ask]:
    """Yield how the data are asked in each step: one sum over a Poisson sample, released with noise.

    Parameters
    ----------
    records : Records
        Coordinates of all records.
    region : Region
        Where they lie, whoever they belong to.
    mode : Mode
        How a record's part is bounded.
    source : Source
        Of samples and noise.
    schedule : iterator of tuple
        Noise multiplier, sampling rate and expected size of the sample of each step; the size is that of a noisy count.
    """
    for noise, rate, expected in schedule:

        def ask(
            critic: Critic,
            fakes: Array,
            fake_mean: Sums,
            noise: float = noise,
            rate: float = rate,
            expected: float = expected,
        ) -> Sums:
            taking_part = source.sample(len(records), rate)
            step = Step(
                critic=critic,
                region=region,
                fakes=fakes,
                fake_mean=fake_mean,
                noise=noise,
                source=source,
            )
            query = mode.query(step, records[taking_part])
            released = source.release(query.sums, query.allotment)
            return tuple(
                part / expected + centre
                for part, centre in zip(released, query.allotment.centres, strict=True)
            )

        yield ask


def _between(fakes: Array, region: Region, rng: np.random.Generator) -> Array:
    """Return points between fakes and random points of the region: no record is in them."""
    anywhere = region.low + rng.random(fakes.shape) * (region.high - region.low)
    shares = rng.random((len(fakes), 1))
    return shares * fakes + (1 - shares) * anywhere


def _improved(
    generator: GeneratorNetwork,
    critic: Critic,
    adam: Adam,
    game: Game,
    rng: np.random.Generator,
) -> GeneratorNetwork:
    """Return the generator after a step towards rows that the critic takes for real."""
    settings = game.settings
    rows, layers = generator.rows(settings.draws(settings.fakes, rng))
    middle = settings.held(game.coding.middle)
    _, factors = values_and_factors(critic, rows - middle)
    slope = factors.gradients[0] @ critic.weights[0]
    gradient = generator.gradient(rows, layers, slope)
    return generator.with_parameters(adam.moved(generator.parameters, gradient))
