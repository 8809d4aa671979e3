"""The recipe of a generator that is trained against a private critic, as a trainer whose product is a synthetic table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from reticent.account import Relation, Target
from reticent.data import Table
from reticent.errors import InvalidInput
from reticent.product import Provenance, SyntheticTable, versions
from reticent.run import Run, stream
from reticent.train.marginals.domain import lists, looks
from reticent.train.marginals.histograms import noisy_histograms
from reticent.train.marginals.private_table import PrivateTable, size_class
from reticent.train.wgan.budget import CriticBudget
from reticent.train.wgan.checkpoints import trained_in_chunks
from reticent.train.wgan.coding import coding_of
from reticent.train.wgan.fitted import FittedGenerator
from reticent.train.wgan.modes import (
    ClipMode,
    LipschitzMode,
    Mode,
    TanhMode,
    ThesisMode,
)
from reticent.train.wgan.noise import Source
from reticent.train.wgan.records import CodedRecords, WorkingSet
from reticent.train.wgan.training import Game, Settings, Trained, private_asks

__all__ = ["MODES", "WassersteinGenerator"]

ModeName = Literal["lipschitz", "thesis", "clip", "tanh"]
MODES: dict[str, Mode] = {
    "lipschitz": LipschitzMode(),
    "thesis": ThesisMode(),
    "clip": ClipMode(),
    "tanh": TanhMode(),
}
# Tables of up to this size class are sampled at the full rate; larger ones at less, so that a step stays as long.
USUAL_SIZE = 100_000
USUAL_RATE = 0.05
JUDGED = 2_000  # rows of a generator by which trainings are compared and lost modes are noticed


@dataclass(frozen=True, kw_only=True)
class WassersteinGenerator(PrivateTable):
    """Make a synthetic table with a generator that is trained against a private critic.

    It is the method of Pedersen's thesis with a guarantee that holds. On Adult and on a table of strokes the marginal methods kept more at the same
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
        File that declares the values of the columns; by default they are learned with a part of the budget.
    rows : int, optional
        Rows to make; by default the noisy number of records.
    rows_per_person : int
        The most rows that one person has in the table; larger persons are refused.
    constraints : tuple of str
        What every row keeps; as for :class:`reticent.MarginalGenerator`.
    with_critic : bool
        Whether the product carries the critic, for an audit to attack. The guarantee covers table and critic together, in every mode; the file of the table does not hold it.
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
    steps: int = 1_000
    sampling_rate: float | None = None
    trainings: int = 1
    fall: float = 1.0
    matched: bool = True
    with_critic: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.mode, str) and self.mode not in MODES:
            raise InvalidInput(
                f"the mode {self.mode!r} of the critic is not known; use {', '.join(MODES)}."
            )
        if not callable(getattr(self.bounding, "query", None)):
            raise InvalidInput(
                f"the mode of the critic is a {type(self.mode).__name__}; use {', '.join(MODES)}."
            )
        if self.sampling_rate is not None and not 0 < self.sampling_rate < 1:
            raise InvalidInput(
                f"sampling_rate must lie inside (0, 1), got {self.sampling_rate}: it is the probability that a record takes part in a step."
            )
        for name in ("steps", "trainings"):
            if getattr(self, name) < 1:
                raise InvalidInput(
                    f"{name} must be at least 1, got {getattr(self, name)}."
                )
        if not 1 <= self.fall <= 100:
            raise InvalidInput(
                f"fall must lie in [1, 100], got {self.fall}: it is the noise of the first steps over that of the last ones."
            )
        super().__post_init__()

    @property
    def bounding(self) -> Mode:
        """The mode itself."""
        return MODES[self.mode] if isinstance(self.mode, str) else self.mode

    def settled(self, table: Table) -> Self:
        """Return the same recipe with the sampling rate that it takes for a table."""
        return replace(self, sampling_rate=self.budget(table).sampling_rate)

    def budget(self, table: Table) -> CriticBudget:
        """Return the noise of every part for a table; of its records only the power of ten of their number is used."""
        rate = self.sampling_rate
        if rate is None:
            rate = USUAL_RATE * min(1.0, USUAL_SIZE / size_class(len(table)))
        return CriticBudget(
            noise_multiplier=self.noise_multiplier,
            columns=len(table.schema.columns),
            looks=0 if self.domain is not None else looks(table),
            lists=0 if self.domain is not None else lists(table),
            failure=self.failure,
            steps=self.steps,
            sampling_rate=rate,
            trainings=self.trainings,
            fall=self.fall,
            rows_per_person=self.rows_per_person,
        )

    def keeping(
        self, target: Target, table: Table, *, delta: float, relation: Relation
    ) -> Self:
        """Return the recipe with the least noise that meets a target; see :meth:`PrivateTable.keeping`.

        Raises
        ------
        InvalidInput
            If people have several rows and one is replaced: samples of groups are accounted for under add/remove only.
        """
        if self.rows_per_person > 1 and relation == Relation.REPLACE:
            raise InvalidInput(
                "several rows per person are accounted for under add/remove only when records are sampled; leave --relation out, or use --method tree."
            )
        return super().keeping(target, table, delta=delta, relation=relation)

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return a synthetic table with the columns of the features, and the critic if the recipe says so; see :meth:`PrivateTable.train`."""
        model = self.fit(table, run=Run(seed=seed))
        frame, warnings = model.sample(seed=seed)
        return SyntheticTable(
            frame,
            provenance=Provenance(recipe=self.recipe, versions=versions()),
            warnings=warnings,
            critic=model.critic if self.with_critic else None,
        )

    def fit(self, table: Table, *, run: Run) -> FittedGenerator:
        """Spend the whole budget on a table; return a model from which any number of rows may be drawn.

        A fit that is interrupted goes on: histograms and finished chunks of steps are kept and not asked for again. The chunk under way is lost; nobody has
        seen what it learned, so that its noise is not paid for.

        Parameters
        ----------
        table : Table
            The records; only their features are used.
        run : Run
            Where noisy histograms and chunks are kept, and who is told of progress; its seed is that of weights and fakes, and of the noise only if the
            recipe says so.

        Raises
        ------
        InvalidInput
            If there are too few records, the noise hides them, or a constraint cannot be kept.
        """
        self.must_fit(table)
        self.must_be_in_memory(table, memory=run.effort.memory)
        constraints = self.parsed_constraints(table)
        source = Source.secret() if self.noise == "secret" else Source.seeded(run.seed)
        budget = self.budget(table)
        noise = self.noise_of(table, run)
        cells = self.cells_of(table, noise)
        columns = cells.columns
        codes = np.empty((len(table), len(columns)), dtype=np.int32)
        for j, column in enumerate(columns):
            codes[:, j] = column.code(table.features[column.name])
        single = noisy_histograms(
            codes,
            cells,
            budget.histogram_deviation,
            noise,
            lenient=self.lenient,
        )
        coding = coding_of(columns, single)
        records = CodedRecords(codes, coding)
        expected = single.total * budget.sampling_rate
        judge = stream(run.seed, "judged rows of a generator")
        names = [column.name for column in columns]
        target = None if self.target is None else names.index(self.target)
        best: tuple[float, Trained, list[float]] | None = None
        for number in range(self.trainings):
            rng = stream(run.seed, f"weights and fakes of training {number}")
            mode = self.bounding
            schedule = _told(_schedule(budget, expected), self.steps, run)
            trained = trained_in_chunks(
                Game(coding=coding, mode=mode, settings=Settings()),
                private_asks(records, coding.region, mode, source, schedule),
                self.steps,
                rng=rng,
                source=source,
                journal=noise,
            )
            # Judged by the noisy histograms, which are paid for: choosing costs nothing more, and no record is looked at.
            far = coding.distances(trained.rows(JUDGED, judge))
            score = float(np.mean(far)) if target is None else far[target]
            if best is None or score < best[0]:
                best = score, trained, far
        assert best is not None
        _, trained, far = best
        return FittedGenerator(
            columns=columns,
            coding=coding,
            trained=trained,
            matched=self.matched,
            constraints=constraints,
            rows=round(single.total) if self.rows is None else self.rows,
            far=tuple(far),
        )

    def must_be_in_memory(self, table: Table, *, memory: float) -> None:
        """Refuse a table, or a number of rows, that does not fit; see :meth:`PrivateTable.must_be_in_memory`."""
        rate = self.budget(table).sampling_rate
        made = len(table) if self.rows is None else self.rows
        needed = WorkingSet.of(table, rows=made, sampling_rate=rate)
        if needed.training > memory:
            raise InvalidInput(
                f"training on {len(table):,} rows takes up to {needed.training:.2f} GB beside the table, more than the {memory:g} GB allowed; use more --memory, or leave "
                "columns out with --drop."
            )
        if needed.sampling > memory:
            raise InvalidInput(
                f"making {made:,} rows takes up to {needed.sampling:.2f} GB beside the table, more than the {memory:g} GB allowed; use more --memory, fewer --rows, or leave "
                "columns out with --drop."
            )

    def mechanism_words(self, table: Table) -> str:
        """Return what is released and with which noise."""
        budget = self.budget(table)
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
            words += f"; ranges of numbers learned (deviation {budget.learning_deviation:.3g})"
        if budget.lists:
            words += "; categories listed where their count exceeds a threshold"
        if budget.rows_per_person > 1:
            words += f"; for people with up to {budget.rows_per_person} rows"
        return words


def _schedule(
    budget: CriticBudget, expected: float
) -> Iterator[tuple[float, float, float]]:
    """Yield noise multiplier, sampling rate and expected size of the sample of each step."""
    for noise, steps in budget.phases:
        for _ in range(steps):
            yield noise, budget.sampling_rate, expected


def _told(
    schedule: Iterator[tuple[float, float, float]], steps: int, run: Run
) -> Iterator[tuple[float, float, float]]:
    """Tell of progress a hundred times in a training."""
    every = max(1, steps // 100)
    for number, step in enumerate(schedule):
        if number % every == 0:
            run.tell("training the generator", number, steps)
        yield step
    run.tell("training the generator", steps, steps)
