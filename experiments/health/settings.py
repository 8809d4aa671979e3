"""What is run: tables in place of MIMIC-III, generators with their noise, models per setting. Fixed before the first run."""

import math
from dataclasses import dataclass, replace

__all__ = [
    "BUDGETS",
    "CURVE",
    "DELTA",
    "GAINS",
    "GROWN",
    "LEVELS",
    "LONGER",
    "MODELS",
    "PRIVATE_MODELS",
    "RATE",
    "REPEATED",
    "SETTLING",
    "SPREADS",
    "STEPS",
    "TABLES",
    "Cell",
    "cells",
    "models_needed",
]

DELTA = 1e-5
# Of Table 3.3: no noise, and the deviations that Algorithm 1 adds whatever the sensitivity is.
LEVELS = (0.0, 1e-7, 1e-6, 1e-5, 1e-4)
BUDGETS = (1.0, 3.0, 10.0)
# Steps of the generator in place of 200,000: 16 s of CPU time for a model. The source states no rate of Adam; with ten times that of its authors' code,
# steps count about tenfold. One pilot training on another division of framingham (draw 1, seed 1000) had areas under the curve of 0.31, 0.43 and 0.63 after 100, 200
# and 400 steps at this rate; at four times this rate it was no quicker, 0.34 and 0.50 after 100 and 200.
RATE = 1e-3
STEPS = 400
# The first model without noise is also looked at on the way.
CURVE = (50, 100, 200, 400)
TABLES = ("framingham", "cardio", "stroke")
# Of the thesis, best level of noise against none, on its table of 23 % positives: rate of positives 17.8 and 20.2 %, area under the curve 0.614 and 0.657.
GAINS = {"positives": 0.024, "auc": 0.043}
# Standard deviations over trainings on framingham, from nine trainings of 1,500 steps before this experiment (rates of positives of three at each of three levels: 0.122,
# 0.093, 0.113; 0.064, 0.090, 0.104; 0.066, 0.147, 0.157). For areas under the curve the same was taken, for want of anything better.
SPREADS = {"positives": 0.0323, "auc": 0.0323}


def models_needed(gain: float, spread: float) -> int:
    """Return how many models per level show a gain with a probability of 80 %, at a two-sided level of 5 %: no noise against four levels together.

    The difference of both means has the variance spread^2 (1 + 1/4) / models.
    """
    reach = 1.960 + 0.842  # quantiles of the normal distribution
    return math.ceil((reach * spread / gain) ** 2 * (1 + 1 / (len(LEVELS) - 1)))


MODELS = max(models_needed(GAINS[name], SPREADS[name]) for name in GAINS)  # 18
# Asked after all of these were there, and fixed before the first of the following was trained. On framingham 18 models had more positives with noise than without, by 3.8 points (95 %: 0.4 to
# 7.1), one of 15 differences that were looked at: 18 pairs with other seeds are asked that one question, at the largest level. And on cardio and stroke no model had any positives:
# one training of each table is ten times as long, to see whether they come later.
REPEATED = ("framingham", (0.0, 1e-4), range(MODELS, 2 * MODELS))
# Asked when these were there too, and again fixed before the first of the following was trained. Differences of the 36 pairs spread by so much that 63 pairs show a gain of 2.4 points, four times
# in five: 63 further pairs are judged by themselves. And the longer training goes on to 20,000 steps on every table: at ten times the rate of its authors' code, Adam moves weights
# as far in them as in the 200,000 of the thesis.
SETTLING = range(2 * MODELS, 2 * MODELS + 63)
LONGER = (1_000, 2_000, 4_000, 8_000, 20_000)
# Asked when the first of the longer trainings, on framingham, was there: areas under the curve and resemblance change little from 4,000 steps on. Before any other was trained, 8 pairs
# of so many steps were fixed, for the question of area under the curve and of positives at a generator that has grown up; in the order of their numbers, as far as time allows.
GROWN = (4_000, range(2 * MODELS + 63, 2 * MODELS + 71))
PRIVATE_MODELS = 3  # per budget: their epsilon is proven, and their order is not close


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One model to train and judge."""

    table: str
    generator: str  # healthgan, wgan, tree
    noise: float  # level of the thesis, or epsilon
    steps: int
    model: int

    @property
    def name(self) -> str:
        """What its result is kept under."""
        return f"{self.table} {self.generator} {self.noise:g} {self.steps} {self.model}"

    @property
    def marks(self) -> tuple[int, ...]:
        """Numbers of steps after which it is looked at."""
        if self.steps == LONGER[-1]:
            return LONGER
        if self.steps == GROWN[0]:
            return (self.steps,)
        return CURVE if self.steps and not (self.model or self.noise) else (self.steps,)

    @property
    def along(self) -> tuple["Cell", ...]:
        """What is judged of it."""
        return tuple(replace(self, steps=mark) for mark in self.marks)


def cells(table: str) -> list[Cell]:
    """Return all models of a table, the first model of every setting first, so that whatever is finished is balanced.

    Models of one number share initial weights, batches and fakes at all levels: they differ in the noise alone.
    """
    found = []
    for model in range(MODELS):
        settings = [("healthgan", level) for level in LEVELS]
        if model < PRIVATE_MODELS:
            settings = [
                *(("tree", epsilon) for epsilon in BUDGETS),
                *settings,
                *(("wgan", epsilon) for epsilon in BUDGETS),
            ]
        found += [
            Cell(
                table=table,
                generator=generator,
                noise=noise,
                steps=STEPS if generator == "healthgan" else 0,
                model=model,
            )
            for generator, noise in settings
        ]
    first = Cell(table=table, generator="healthgan", noise=0.0, steps=STEPS, model=0)
    again, levels, numbers = REPEATED
    pairs = [
        replace(first, noise=level, model=number)
        for number in (*numbers, *SETTLING)
        for level in levels
        if table == again
    ]
    steps, grown = GROWN
    pairs += [
        replace(first, steps=steps, noise=level, model=number)
        for number in grown
        for level in levels
        if table == again
    ]
    return [*found, replace(first, steps=LONGER[-1]), *pairs]
