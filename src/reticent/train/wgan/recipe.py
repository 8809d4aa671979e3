"""The recipe of a generator that is trained against a private critic, as a trainer whose product is a synthetic table."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reticent.account import (
    Guarantee,
    Relation,
    Target,
    Terms,
    calibrate,
    trade_off,
)
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Provenance, SyntheticTable, versions
from reticent.run import Content, content_of, stream
from reticent.train._plain import PlainTrainer
from reticent.train.marginals.columns import Column
from reticent.train.marginals.domain import (
    Look,
    declared_columns,
    learned_columns,
    looks,
)
from reticent.train.marginals.histograms import noisy_histograms
from reticent.train.marginals.noise import Noise
from reticent.train.marginals.recipe import size_class
from reticent.train.marginals.sampling import decoded
from reticent.train.wgan.budget import CriticBudget
from reticent.train.wgan.coding import Coding, coding_of
from reticent.train.wgan.critics import values_and_factors
from reticent.train.wgan.modes import (
    ClipMode,
    LipschitzMode,
    Mode,
    TanhMode,
    ThesisMode,
)
from reticent.train.wgan.noise import Source
from reticent.train.wgan.training import (
    Settings,
    Trained,
    private_asks,
    train_critic_and_generator,
)

__all__ = ["MODES", "WassersteinGenerator"]

Array = NDArray[np.float64]
ModeName = Literal["lipschitz", "thesis", "clip", "tanh"]
MODES: dict[str, Mode] = {
    "lipschitz": LipschitzMode(),
    "thesis": ThesisMode(),
    "clip": ClipMode(),
    "tanh": TanhMode(),
}
FEWEST_ROWS = 100  # below, no budget that protects anybody leaves anything
MOST_ROWS = 10**9
# Tables of up to this size class are sampled at the full rate; larger ones at less, so that a step stays as long.
USUAL_SIZE = 100_000
USUAL_RATE = 0.05
JUDGED = 2_000  # rows of a generator by which trainings are compared and lost modes are noticed
# A column that is further than this from its histogram, in total variation, is named as a lost mode.
LOST = 0.25


@dataclass(frozen=True, kw_only=True)
class WassersteinGenerator(PlainTrainer):
    """Make a synthetic table with a generator that is trained against a private critic.

    It is the method of Pedersen's thesis with a guarantee that holds. On every table that was measured the marginal methods kept more at the same
    epsilon: take this one to compare.

    Parameters
    ----------
    mode : str
        How a record's part in a step is bounded: ``"lipschitz"`` (the one to take), ``"thesis"``, ``"clip"`` or ``"tanh"``, or a mode with parameters of its own.
    target : str, optional
        The column that models will predict: of several trainings, the one is kept whose rate of it is nearest to the noisy one.
    noise_multiplier : float
        Scale of all noise; :meth:`keeping` finds it for a target.
    steps : int
        Steps of the critic in each training. Twice as many were no better on Adult at epsilon 3, because each then carries more noise.
    sampling_rate : float, optional
        Probability that a record takes part in a step; by default 5 %, less for more than 100,000 rows.
    trainings : int
        Number of trainings, of which one is kept; all of them are paid for.
    fall : float
        Noise of the first steps over that of the last ones.
    matched : bool
        Whether columns are matched to their noisy histograms, which are paid for in any case.
    failure : float
        Probability that a category which a single person has is listed; it is part of the guarantee. Not used with a declared domain.
    domain : str, optional
        File that declares the values of the columns; by default they are learned with a tenth of the budget.
    rows : int, optional
        Rows to make; by default the noisy number of records.
    rows_per_person : int
        The most rows that one person has in the table; larger persons are refused.
    with_critic : bool
        Whether the product carries the critic, for an audit to attack. It is covered by the guarantee, and is never written to a file.
    noise : str
        ``"secret"`` for a table that may be released; ``"seeded"`` for experiments, which carries no guarantee.

    References
    ----------
    .. [1] Pedersen, "Privacy-preserving synthetic data", chapter 3.
    .. [2] Gulrajani et al., "Improved training of Wasserstein GANs", arXiv:1704.00028.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> generator = WassersteinGenerator(noise_multiplier=0.1, steps=20, noise="seeded")
    >>> made = generator.train(builtin_table(), seed=0)
    >>> list(made.frame.columns) == list(builtin_table().features.columns)
    True
    """

    mode: ModeName | Mode = "lipschitz"
    target: str | None = None
    noise_multiplier: float = 1.0
    steps: int = 1_000
    sampling_rate: float | None = None
    trainings: int = 1
    fall: float = 1.0
    matched: bool = True
    failure: float = 1e-8
    domain: str | None = None
    rows: int | None = None
    rows_per_person: int = 1
    with_critic: bool = False
    noise: Literal["secret", "seeded"] = "secret"

    def __post_init__(self) -> None:
        if isinstance(self.mode, str) and self.mode not in MODES:
            raise InvalidInput(
                f"the mode {self.mode!r} of the critic is not known; use {', '.join(MODES)}."
            )
        if self.noise not in ("secret", "seeded"):
            raise InvalidInput(
                f"the noise {self.noise!r} is not known; use secret for a table that may be released, or seeded."
            )
        if not (self.noise_multiplier > 0 and math.isfinite(self.noise_multiplier)):
            raise InvalidInput(
                f"noise_multiplier must be positive and finite, got {self.noise_multiplier}; without noise there is no guarantee."
            )
        if not 0 < self.failure < 1:
            raise InvalidInput(f"failure must lie inside (0, 1), got {self.failure}.")
        if self.sampling_rate is not None and not 0 < self.sampling_rate < 1:
            raise InvalidInput(
                f"sampling_rate must lie inside (0, 1), got {self.sampling_rate}: it is the probability that a record takes part in a step."
            )
        for name in ("steps", "trainings", "rows_per_person"):
            if getattr(self, name) < 1:
                raise InvalidInput(
                    f"{name} must be at least 1, got {getattr(self, name)}."
                )
        if not 1 <= self.fall <= 100:
            raise InvalidInput(
                f"fall must lie in [1, 100], got {self.fall}: it is the noise of the first steps over that of the last ones."
            )
        if self.rows is not None and not 20 <= self.rows <= MOST_ROWS:
            raise InvalidInput(
                f"rows must be between 20 and {MOST_ROWS:,}, got {self.rows}."
            )

    @property
    def bounding(self) -> Mode:
        """The mode itself."""
        return MODES[self.mode] if isinstance(self.mode, str) else self.mode

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The call that makes this recipe again."""
        usual = type(self)()
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in vars(self).items()
            if value != getattr(usual, name)
        )
        return f"reticent.WassersteinGenerator({given})"

    @property
    def repeatable(self) -> bool:
        """Whether the same table and seed give the same product again: not with secret noise."""
        return self.noise == "seeded"

    def content(self) -> Content:
        """Return all parameters, and what the declared domain says."""
        parts = [str(value) for pair in sorted(vars(self).items()) for value in pair]
        if self.domain is not None:
            parts.append(Path(self.domain).read_text(encoding="utf-8"))
        return content_of("generator with a critic", *parts)

    def as_shadow(self) -> "WassersteinGenerator":
        """Return the same recipe with seeded noise, for tables that are never released."""
        return replace(self, noise="seeded")

    def budget(self, table: Table) -> CriticBudget:
        """Return the noise of every part for a table; of its records only the power of ten of their number is used."""
        rate = self.sampling_rate
        if rate is None:
            rate = USUAL_RATE * min(1.0, USUAL_SIZE / size_class(len(table)))
        return CriticBudget(
            noise_multiplier=self.noise_multiplier,
            columns=len(table.schema.columns),
            looks=0 if self.domain is not None else looks(table),
            failure=self.failure,
            steps=self.steps,
            sampling_rate=rate,
            trainings=self.trainings,
            fall=self.fall,
            rows_per_person=self.rows_per_person,
        )

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> "WassersteinGenerator":
        """Return the recipe with the least noise that meets a target.

        Parameters
        ----------
        target : Target
            What must hold for every person.
        table : Table
            The table, of which columns and the power of ten of the rows are used.
        delta : float
            A hundredth of it is the probability that a category of a single person is listed.
        relation : Relation
            When two tables are neighbours.
        """
        recipe = replace(self, failure=delta / 100)

        def mechanism(noise: float) -> Any:
            return replace(recipe, noise_multiplier=noise).budget(table).mechanism(relation)  # fmt: skip

        if self.rows_per_person > 1 and relation == Relation.REPLACE:
            raise InvalidInput(
                "several rows per person are accounted for under add/remove only when records are sampled; leave --relation out, or use --method tree."
            )
        try:
            noise = calibrate(target, mechanism)
        except InvalidInput as error:
            raise InvalidInput(
                f"{target.words} leaves nothing of the table but noise; ask for less protection, or use --method tree."
            ) from error
        return replace(recipe, noise_multiplier=noise)

    def guarantee_on(self, table: Table, terms: Terms) -> Guarantee:
        """Return what holds for every person of a table, in the given terms."""
        budget = self.budget(table)
        curve = trade_off(budget.mechanism(terms.relation))
        caveats: tuple[str, ...] = (
            "which columns hold only 0 and 1, whole numbers or dates was read off the records and is visible in the table: the guarantee takes it as "
            "publicly known",
        )
        if self.noise == "seeded":
            caveats += (
                "the noise came from a seed, so whoever knows the seed can subtract it",
            )
        return Guarantee(
            mechanism=self._words(budget),
            holds=self.noise == "secret",
            relation=terms.relation.value,
            epsilon=curve.epsilon(terms.delta),
            delta=terms.delta,
            noise_multiplier=self.noise_multiplier,
            sampling_rate=budget.sampling_rate,
            steps=self.steps * self.trainings,
            advantage=curve.advantage,
            belief=curve.belief(terms.delta, prior=terms.prior),
            prior=terms.prior,
            tpr=curve.tpr(terms.fpr),
            fpr=terms.fpr,
            caveats=caveats,
            public=tuple(self._public(table)),
        )

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return a synthetic table with the columns of the features.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        seed : int
            Of initial weights and of the sample, and of the noise only if the recipe says so.

        Raises
        ------
        InvalidInput
            If there are too few records, or the noise hides them.
        """
        self._must_fit(table)
        secret = self.noise == "secret"
        noise = Noise.secret() if secret else Noise.seeded(seed)
        source = Source.secret() if secret else Source.seeded(seed)
        budget = self.budget(table)
        columns = self._columns(table, budget, noise)
        cells = np.stack([c.code(table.features[c.name]) for c in columns], axis=1)
        single = noisy_histograms(cells, columns, budget.histogram_deviation, noise)
        coding = coding_of(columns, single)
        coded = coding.code(cells)
        expected = single.total * budget.sampling_rate
        judge = stream(seed, "judged rows of a generator")
        target = None if self.target is None else list(table.features.columns).index(self.target)  # fmt: skip
        best: tuple[float, Trained, list[float]] | None = None
        for number in range(self.trainings):
            rng = stream(seed, f"weights and fakes of training {number}")
            mode = self.bounding
            asks = private_asks(
                coded, coding.region, mode, source, _schedule(budget, expected)
            )
            trained = train_critic_and_generator(coding, mode, Settings(), asks, rng)
            # Judged by the noisy histograms, which are paid for: choosing costs nothing more, and no record is looked at.
            far = coding.distances(trained.rows(JUDGED, judge))
            score = float(np.mean(far)) if target is None else far[target]
            if best is None or score < best[0]:
                best = score, trained, far
        assert best is not None
        _, trained, far = best
        rng = stream(seed, "rows of a generator")
        rows = round(single.total) if self.rows is None else self.rows
        made = coding.decode(trained.rows(rows, rng), self.matched, rng)
        names = [column.name for column in columns]
        return SyntheticTable(
            pd.DataFrame(decoded(made, columns, rng))[names],
            provenance=Provenance(recipe=self.recipe, versions=versions()),
            warnings=_warnings(names, far, self.matched),
            critic=_critic(columns, coding, trained) if self.with_critic else None,
        )

    def _must_fit(self, table: Table) -> None:
        if len(table) < FEWEST_ROWS:
            raise InvalidInput(
                f"the table has fewer than {FEWEST_ROWS} rows, of which no synthetic table can be made that protects them; bring more."
            )
        if self.target is not None and self.target not in table.features.columns:
            raise InvalidInput(
                f"there is no column {self.target!r} to use as target; the columns are {', '.join(list(table.features.columns)[:10])}."
            )
        _, counts = np.unique(table.units, return_counts=True)
        if counts.max() > self.rows_per_person:
            raise InvalidInput(
                f"some people have more than {self.rows_per_person} rows, so that the noise would not protect them; say with --rows-per-person how many "
                "rows of each are used at most, which the noise then covers."
            )

    def _columns(
        self, table: Table, budget: CriticBudget, noise: Noise
    ) -> tuple[Column, ...]:
        if self.domain is not None:
            return declared_columns(self.domain, table)
        if not budget.looks:  # truth values alone
            return learned_columns(table, Look(deviation=1.0, failure=0.5), noise)
        look = Look(
            deviation=budget.learning_deviation,
            failure=self.failure,
            rows_per_person=self.rows_per_person,
        )
        return learned_columns(table, look, noise)

    def _words(self, budget: CriticBudget) -> str:
        levels = " then ".join(f"{noise:.3g}" for noise, _ in budget.phases)
        words = (
            f"Gaussian mechanism on {budget.columns} histograms (deviation {budget.histogram_deviation:.3g}) and on {self.steps * self.trainings} sums of "
            f"gradients over Poisson samples (rate {budget.sampling_rate:g}, noise {levels} times the bound of each step): {self.bounding.words}"
        )
        if self.trainings > 1:
            words += (
                f"; {self.trainings} trainings, one kept by the noisy histograms alone"
            )
        if budget.looks:
            words += f"; values of the columns learned (deviation {budget.learning_deviation:.3g})"
        if budget.rows_per_person > 1:
            words += f"; for people with up to {budget.rows_per_person} rows"
        return words

    def _public(self, table: Table) -> Iterator[str]:
        yield f"that the table has at most {size_class(len(table)):,} rows and more than a tenth of that"
        yield "names and kinds of the columns, and which hold only 0 and 1, whole numbers or dates"
        yield "the settings, as long as they were not chosen by looking at these records"
        yield "the versions of the libraries"
        yield "a keyed digest of the table, which says nothing without the owner's key"
        if self.domain is not None:
            yield "the declared values of the columns"
        if self.rows is not None:
            yield "the number of rows that were asked for"
        if self.rows_per_person > 1:
            yield f"that no person has more than {self.rows_per_person} rows, or that further rows were left out"


def _schedule(
    budget: CriticBudget, expected: float
) -> Iterator[tuple[float, float, float]]:
    """Yield noise multiplier, sampling rate and expected size of the sample of each step."""
    for noise, steps in budget.phases:
        for _ in range(steps):
            yield noise, budget.sampling_rate, expected


def _warnings(names: list[str], far: list[float], matched: bool) -> tuple[str, ...]:
    """Say which columns the generator did not get right by itself: lost modes, measured against noisy histograms alone."""
    lost = [name for name, d in zip(names, far, strict=True) if d > LOST]
    if not lost:
        return ()
    words = f"the generator by itself misses the distribution of {', '.join(map(repr, lost[:5]))} by up to {100 * max(far):.0f} % of the rows (lost modes)"
    after = (
        "; single columns were matched to noisy histograms afterwards, but what goes with what may be lost"
        if matched
        else ""
    )
    return (f"{words}{after}; more rows, a larger epsilon or --method tree help.",)


def _critic(
    columns: tuple[Column, ...], coding: Coding, trained: Trained
) -> Callable[[pd.DataFrame], Array]:
    def criticise(features: pd.DataFrame) -> Array:
        cells = np.stack([c.code(features[c.name]) for c in columns], axis=1)
        return values_and_factors(trained.critic, coding.code(cells))[0]

    return criticise
