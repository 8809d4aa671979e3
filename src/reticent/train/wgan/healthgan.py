"""HealthGAN, the generator of the source without privacy, and the noise levels that the source added to it."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Provenance, SyntheticTable, versions
from reticent.run import one_thread, stream
from reticent.train._plain import PlainTrainer
from reticent.train.marginals.domain import Look, learned_columns
from reticent.train.marginals.histograms import noisy_histograms
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.sampling import decoded
from reticent.train.wgan.coding import coding_of, interval_coding_of
from reticent.train.wgan.critics import Critic, Sums, values_and_factors
from reticent.train.wgan.modes import ThesisMode
from reticent.train.wgan.penalty import penalty_factors
from reticent.train.wgan.released import ReleasedCritic
from reticent.train.wgan.training import Ask, Game, Settings

__all__ = ["HealthGAN"]

Array = NDArray[np.float64]
NO_NOISE = 1e-3  # deviation of counts that rounds to none
BATCHES = 10  # of the source: a batch is a tenth of the records
CRITIC_STEPS = 5  # of the source, for each step of the generator


@dataclass(frozen=True, kw_only=True)
class HealthGAN(PlainTrainer):
    """A WGAN-GP without privacy, as a baseline [1]_. It guarantees nothing.

    Critic of 64, 128 and 256 units with LeakyReLU, generator of 2 d and 1.5 d units on 100 uniform numbers, five steps of the critic for each of the
    generator, batches of a tenth of the records, penalty 10 at interpolates, single precision. The rates of Adam are not stated in the source; they are those of
    the authors' code.

    Parameters
    ----------
    steps : int
        Steps of the generator; the source has 200,000.
    level : float
        The noise that Pedersen's Algorithm 1 adds: a normal vector of deviation twice this number on the sum of a batch, which does not follow any sensitivity. The epsilon that it proves is astronomical.
    coding : str
        ``"intervals"`` as in the source, or ``"levels"``, one coordinate per category.
    rate : float
        Learning rate of both networks.
    rows : int, optional
        Rows to make; by default as many as there are records.
    with_critic : bool
        Whether the product carries the critic, for an audit to attack. Nothing covers it, as nothing covers the table.

    References
    ----------
    .. [1] Yale et al., "Generation and evaluation of privacy preserving synthetic health data", Neurocomputing 2020.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> made = HealthGAN(steps=4).train(builtin_table(), seed=0)
    >>> len(made) == len(builtin_table())
    True
    """

    steps: int = 5_000
    level: float = 0.0
    coding: Literal["intervals", "levels"] = "intervals"
    rate: float = 1e-4
    rows: int | None = None
    with_critic: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InvalidInput(f"steps must be at least 1, got {self.steps}.")
        if not (self.level >= 0 and math.isfinite(self.level)):
            raise InvalidInput(
                f"the noise level must be at least 0 and finite, got {self.level}."
            )
        if self.coding not in ("intervals", "levels"):
            raise InvalidInput(
                f"the coding {self.coding!r} is not known; use intervals or levels."
            )

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The call that makes this recipe again."""
        usual = type(self)()
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != getattr(usual, name)
        )
        return f"reticent.HealthGAN({given})"

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return a synthetic table with the columns of the features.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        seed : int
            Of everything.
        """
        return self.train_along(table, (self.steps,), seed=seed)[-1]

    def train_along(
        self, table: Table, marks: Sequence[int], *, seed: int
    ) -> list[SyntheticTable]:
        """Return the tables that one training makes after several numbers of steps, for a curve.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        marks : sequence of int
            Rising numbers of steps of the generator; the recipe's own number is not used.
        seed : int
            Of everything.

        Raises
        ------
        InvalidInput
            If the numbers do not rise.

        Examples
        --------
        >>> from reticent.data import builtin_table
        >>> early, late = HealthGAN().train_along(builtin_table(), (2, 4), seed=0)
        >>> late.frame.equals(HealthGAN(steps=4).train(builtin_table(), seed=0).frame)
        True
        """
        if not marks or any(a >= b for a, b in itertools.pairwise((0, *marks))):
            raise InvalidInput(
                f"the numbers of steps must be positive and rise, got {tuple(marks)}; one training passes them in this order."
            )
        exact = Noise.seeded(seed)  # whose noise rounds to none
        look = Look(deviation=NO_NOISE, of_categories=NO_NOISE, failure=0.5)
        cells = learned_columns(table, look, exact)
        columns = cells.columns
        codes = np.stack([c.code(table.features[c.name]) for c in columns], axis=1)
        single = noisy_histograms(codes, cells, NO_NOISE, exact)
        make = interval_coding_of if self.coding == "intervals" else coding_of
        coding = make(columns, single)
        width = len(coding.middle)
        settings = Settings(
            critic=(64, 128, 256),
            generator=(2 * width, int(1.5 * width)),
            latent=100,
            normal=False,
            fakes=max(1, len(table) // BATCHES),
            critic_rate=self.rate,
            generator_rate=self.rate,
            critic_steps=CRITIC_STEPS,
            averaging=0.0,
            single=True,
        )
        # Its penalty at data is part of what the data are asked below.
        mode = ThesisMode(penalty_at="data")
        rng = stream(seed, "training of a critic without noise")
        noise = stream(seed, "noise of the source")
        ask = self._ask(settings.held(coding.code(codes)), mode.strength, rng, noise)
        game = Game(coding=coding, mode=mode, settings=settings)
        players = game.opening(rng)
        rows = len(table) if self.rows is None else self.rows
        names = [column.name for column in columns]
        tables = []
        for mark in marks:
            steps = CRITIC_STEPS * mark - players.step
            with one_thread("blas"):
                players = game.played(players, itertools.repeat(ask, steps), rng)
            # A stream of its own, so that looking at a table on the way does not change the training.
            drawn = stream(seed, "rows of a generator without noise")
            trained = game.trained(players)
            generated = trained.rows(rows, drawn).astype(np.float64)
            made = coding.decode(generated, False, drawn)
            tables.append(
                SyntheticTable(
                    pd.DataFrame(decoded(made, columns, drawn))[names],
                    provenance=Provenance(recipe=self.recipe, versions=versions()),
                    warnings=("the generator was trained without any protection.",),
                    critic=ReleasedCritic.of(columns, coding, trained.critic)
                    if self.with_critic
                    else None,
                )
            )
        return tables

    def _ask(
        self,
        coded: Array,
        strength: float,
        rng: np.random.Generator,
        noise: np.random.Generator,
    ) -> Ask:
        """Return how the data are asked; noise has a stream of its own, so that trainings of one seed differ in nothing but their level."""
        batch = max(1, len(coded) // BATCHES)

        def ask(critic: Critic, fakes: Array, fake_mean: Sums) -> Sums:
            records = coded[rng.choice(len(coded), batch, replace=False)]
            _, factors = values_and_factors(critic, records)
            shares = rng.random((batch, 1)).astype(coded.dtype)
            mixed = shares * records + (1 - shares) * fakes[:batch]
            pulls = penalty_factors(critic, mixed, strength).total()
            layers = len(critic.weights)
            sums = [
                total - pulls[place] if place < layers else total
                for place, total in enumerate(factors.total())
            ]
            if self.level:
                sums = [
                    s + 2 * self.level * noise.standard_normal(s.shape) for s in sums
                ]
            # The noise is added in double precision, so that the smallest level is not lost before the mean is taken.
            return tuple((s / batch).astype(coded.dtype) for s in sums)

        return ask
