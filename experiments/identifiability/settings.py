"""The network, the three amounts of noise, and every cell of the experiment, frozen."""

import math
from dataclasses import dataclass

from scipy.optimize import brentq
from torch import nn

from reticent.account import (
    Course,
    MaxPosterior,
    Relation,
    Terms,
    analytic_noise,
    make_plan,
    renyi_of_source,
)
from reticent.train import SGD, Adam, PrivateModule
from reticent.train.private import Clip

__all__ = [
    "BELIEF",
    "CELLS",
    "CLIP",
    "DELTA",
    "EPSILON",
    "RECORDS",
    "RUNS",
    "STEPS",
    "TRAININGS",
    "Cell",
    "Training",
    "network",
    "noise_for",
    "recipe_of",
]

RECORDS = 100  # of the tables that are told apart
STEPS = 30  # full batches
CLIP = 3.0
RATE = 0.005
DELTA = 0.01
BELIEF = 0.9
EPSILON = math.log(BELIEF / (1 - BELIEF))
CHANNELS = 16
GROUPS = 4  # of channels that a group norm takes together


def network() -> nn.Module:
    """Return two repetitions of convolution, norm and pooling, and the output layer; 6,554 parameters.

    The norm is a group norm: the batch norm of the source mixes records. The order of the layers and the number of channels
    are those of the code that its authors published later.
    """
    layers: list[nn.Module] = [nn.Unflatten(1, (1, 28, 28))]
    for seen in (1, CHANNELS):
        layers += [
            nn.Conv2d(seen, CHANNELS, 3),
            nn.ReLU(),
            nn.GroupNorm(GROUPS, CHANNELS),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(25 * CHANNELS, 10))


def noise_for(how: str, *, belief: float = BELIEF) -> float:
    """Return the deviation of the noise over the sensitivity.

    Parameters
    ----------
    how : str
        ``"renyi"``: what the source uses for (epsilon, delta), Rényi composition with the first conversion.
        ``"exact"``: the least with which (epsilon, delta) holds. ``"belief"``: the least with which the belief itself is exceeded
        with probability delta at most. ``"none"``: as good as none.
    belief : float
        The belief in question; epsilon is its logit.
    """
    epsilon = math.log(belief / (1 - belief))
    if how == "renyi":
        # Its mu is below its epsilon, since the conversion adds mu times more than 1.
        mu = brentq(lambda m: renyi_of_source(m, DELTA) - epsilon, 1e-9, epsilon)
        return math.sqrt(STEPS) / mu
    if how == "exact":
        return math.sqrt(STEPS) * analytic_noise(epsilon, DELTA)
    if how == "belief":
        target = MaxPosterior(belief=belief, failure=DELTA)
        course = Course(steps=STEPS, sampling_rate=1.0)
        return make_plan(target, course, Terms(delta=DELTA)).noise_multiplier
    return 1e-6


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Trainings that are watched.

    Parameters
    ----------
    name : str
        By which results are kept.
    relation : Relation
        Whether the second table lacks the record (unbounded) or holds another in its place (bounded).
    local : bool
        Whether noise is scaled to the distance of the two shares at hand: empirical, not DP.
    noise : str
        As in :func:`noise_for`.
    neighbour : str
        Which record or pair tells the tables apart, as :mod:`neighbours` calls it.
    runs : int
        Trainings, fixed before the first was begun. A cell with fewer is not summed up.
    plain : bool
        Whether plain gradient descent takes the place of Adam.
    seeds : str
        Cells with the same word have the same seeds: coins, initial weights, noise.
    """

    name: str
    relation: Relation
    local: bool
    noise: str
    neighbour: str = "ssim"
    runs: int = 300
    plain: bool = False
    seeds: str = ""

    @property
    def multiplier(self) -> float:
        """Deviation of the noise over the clipping norm; over the distance at hand if that is what it is scaled to."""
        reach = 2.0 if self.relation == Relation.REPLACE and not self.local else 1.0
        return reach * noise_for(self.noise)


def _cell(
    bounded: bool, local: bool, noise: str, runs: int, seeds: str = "", **more: object
) -> Cell:
    relation = Relation.REPLACE if bounded else Relation.ADD_REMOVE
    words = ["bounded" if bounded else "unbounded", "local" if local else "global"]
    words += [noise, *(str(word) for word in more.values() if word is not True)]
    name = "-".join([*words, "plain"] if more.get("plain") else words)
    return Cell(
        name=name,
        relation=relation,
        local=local,
        noise=noise,
        runs=runs,
        seeds=seeds or name,
        **more,  # type: ignore[arg-type]
    )


RUNS = 1000  # of each cell of Table 5.1, as many as the source has

# In the order in which they are run: a cell is finished before the next begins, so that whatever time there is ends in complete cells.
CELLS = (
    *(
        _cell(bounded, local, noise, RUNS)
        for noise in ("renyi", "exact")
        for bounded, local in ((True, True), (True, False), (False, False))
    ),
    # The gradient of the record is clipped in all steps, so that both noises are the same; with equal seeds so are the runs.
    _cell(False, True, "renyi", 100, seeds="unbounded-global-renyi"),
    _cell(False, True, "exact", 100, seeds="unbounded-global-exact"),
    *(
        _cell(True, False, "exact", 100, neighbour=name)
        for name in ("ssim-2", "ssim-3", "alike-3", "alike-2", "alike-1", "gradient")
    ),
    _cell(True, False, "exact", 100, plain=True),
)


@dataclass(frozen=True, kw_only=True)
class Training:
    """Trainings whose accuracy is measured.

    Parameters
    ----------
    rows : int
        Training records.
    noise : str
        As in :func:`noise_for`.
    reach : float
        Sensitivity over the clipping norm: 1 unbounded, 2 bounded.
    seeds : int
        Trainings: 0, 1, ..., fixed beforehand. The same seed begins with the same weights and draws the same noise,
        scaled.
    plain : bool
        Whether plain gradient descent takes the place of Adam.
    """

    rows: int
    noise: str
    reach: float
    seeds: int
    plain: bool = False

    @property
    def name(self) -> str:
        """By which results are kept."""
        words = [str(self.rows), self.noise, f"{self.reach:g}"]
        return "-".join([*words, "plain"] if self.plain else words)


LOCAL = 1.44  # distance of the bounded pair over the clipping norm, mean of three initial weights

# Seeds per row of Figure 5.2: the differences between noises are taken seed by seed, so that few suffice where records are many.
SEEDS = {100: 24, 1000: 8, 10_000: 4}

TRAININGS = (
    *(
        Training(rows=rows, noise=noise, reach=reach, seeds=seeds)
        for rows, seeds in SEEDS.items()
        for reach in (1.0, LOCAL, 2.0)
        for noise in ("renyi", "exact")
    ),
    *(
        Training(rows=1000, noise="belief", reach=reach, seeds=SEEDS[1000])
        for reach in (1.0, 2.0)
    ),
    *(
        Training(rows=1000, noise=noise, reach=1.0, seeds=4, plain=True)
        for noise in ("renyi", "exact")
    ),
    *(
        Training(rows=rows, noise="none", reach=1.0, seeds=4)
        for rows in (100, 1000, 10_000)
    ),
)


def recipe_of(rows: int, multiplier: float, *, plain: bool) -> PrivateModule:
    """Return the recipe of a training with full batches; its noise is seeded, so it carries no guarantee."""
    return PrivateModule(
        "settings:network",
        epochs=STEPS,
        batch=rows,
        optimiser=SGD(rate=RATE) if plain else Adam(rate=RATE),
        clipping=Clip(norm=CLIP),
        noise_multiplier=multiplier,
        noise="seeded",
    )
