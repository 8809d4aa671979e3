"""How much noise each bound on a critic's gradient asks for, beside what is needed.

    python experiments/health/bounds.py

Writes bounds.json, from which page.py makes a table and a figure: the largest gradients that a search finds, and every bound, for the critic of the thesis at its initial weights
and after steps on data, and for the critic that is 1-Lipschitz by construction. Sensitivities are for adding or removing a record. The last
rows are norms of the noise of one step: at noise multiplier 1 for every way to share it out, of drawing another batch, and of the thesis's levels. Takes some seconds.
"""

import json
import math
from pathlib import Path

import numpy as np
from settings import LEVELS

from reticent.run import write_text
from reticent.train.wgan import (
    LeakyReLU,
    LipschitzMode,
    MaxMin,
    Region,
    allot,
    blocks_of,
    bounds_of,
    critic_of,
    penalty_factors,
    printed_bounds,
    spectral_penalty_bounds,
    values_and_factors,
)

DIMENSION = 12  # of the thesis's first table
POINTS = 4_000  # of the search, half of them corners
STEPS = 300  # of plain ascent, so that weights are no longer random
RATE = 0.02
STRENGTH = 10.0
BATCH = 200  # rows, about a tenth of the thesis's tables
BATCHES = 50  # over which the sum of a batch is seen to vary
SEED = 0
FILE = Path(__file__).parent / "bounds.json"


def search(region, rng):
    shares = rng.random((POINTS, DIMENSION))
    shares[: POINTS // 2] = np.rint(shares[: POINTS // 2])
    return region.low + shares * (region.high - region.low)


def skewed(region, rng):
    """Return a batch of rows that are not uniform, in place of records."""
    return region.low + rng.random((BATCH, DIMENSION)) ** 3 * (region.high - region.low)


def batch_noise(critic, region, rng):
    """Return the norm of the deviations, component by component, of the sum over a batch of gradients of value and penalty, from batch to batch."""
    fakes = region.low + rng.random((BATCH, DIMENSION)) * (region.high - region.low)
    sums = []
    for _ in range(BATCHES):
        rows = skewed(region, rng)
        total = values_and_factors(critic, rows)[1].total()[: len(critic.weights)]
        pulls = penalty_factors(critic, (rows + fakes) / 2, STRENGTH).total()
        sums.append(np.concatenate([(t - p).ravel() for t, p in zip(total, pulls, strict=False)]))  # fmt: skip
    return math.sqrt(float(np.var(sums, axis=0, ddof=1).sum()))


def trained(critic, region, rng):
    """Return the critic after steps that tell skewed rows from uniform ones, with its penalty or its projection."""
    mode = LipschitzMode()
    for _ in range(STEPS):
        width = region.high - region.low
        real = skewed(region, rng)
        fake = region.low + rng.random((BATCH, DIMENSION)) * width
        ups = values_and_factors(critic, real)[1].total()
        downs = values_and_factors(critic, fake)[1].total()
        moved = [p + RATE * (u - d) / BATCH for p, u, d in zip(critic.parameters, ups, downs, strict=True)]  # fmt: skip
        if critic.activation.keeps_norms:
            critic = mode.settled(critic.with_parameters(moved))
            continue
        pulls = penalty_factors(critic, (real + fake) / 2, STRENGTH).total()
        for layer in range(len(critic.weights)):
            moved[layer] = moved[layer] - RATE * pulls[layer] / BATCH
        critic = critic.with_parameters(moved)
    return critic


def column(critic, region, rng):
    """Return the rows of the table for one critic."""
    points = search(region, rng)
    factors = values_and_factors(critic, points)[1]
    reached = math.sqrt(float(sum(factors.squared_norms()).max()))
    pulled = penalty_factors(critic, points, STRENGTH)
    layers = len(critic.weights)
    pulls = math.sqrt(float(sum(pulled.squared_norms()[:layers]).max()))
    bounds = bounds_of(critic, region)
    blocks = blocks_of(bounds)
    printed = printed_bounds(critic, region, strength=STRENGTH)
    centres = allot(blocks, "layers", 1.0).centres
    squares = sum(factors.squared_norms()) - 2 * sum(factors.products(centres))
    squares = squares + sum(float(np.square(c).sum()) for c in centres)
    rows = {
        "largest gradient of the value found": reached,
        "Xie et al. (3.1)": printed.xie,
        "  without the fakes": printed.without_fakes,
        "  in L2": printed.in_l2,
        "  of the weights (Theorem 3.1.1), range": printed.of_weights,
        "intervals and norms together, half range": math.hypot(*(min(b.radius, float(np.linalg.norm(b.half))) for b in blocks)),
        "  largest distance from the same centres found": math.sqrt(float(squares.max())),
        "largest gradient of the penalty found": pulls,
        "penalty as printed (Theorem 3.1.3)": printed.penalty,
        "penalty by spectral norms": math.hypot(*spectral_penalty_bounds(bounds, STRENGTH)),
        "line 7 of Algorithm 1 (quadrature)": printed.algorithm,
        "  added up, as it must be": printed.linear,
    }  # fmt: skip
    for shape in ("spherical", "thesis", "layers", "best"):
        rows[f"norm of noise, {shape}"] = math.sqrt(allot(blocks, shape, 1.0).variance)
    rows["norm of the deviation from batch to batch"] = batch_noise(critic, region, rng)
    size = sum(weight.size for weight in critic.weights)
    for level in LEVELS[1:]:
        rows[f"norm of the thesis's noise, level {level:g}"] = 2 * level * math.sqrt(size)  # fmt: skip
    return rows


def main():
    rng = np.random.default_rng(SEED)
    cube = Region.cube(DIMENSION)
    centred = Region(low=cube.low - 0.5, high=cube.high - 0.5, centre=0 * cube.centre, radius=cube.radius)  # fmt: skip
    free = critic_of((DIMENSION, 64, 128, 256, 1), LeakyReLU(0.2), rng)
    tight = critic_of((DIMENSION, 64, 32, 1), MaxMin(), rng)
    columns = {
        "thesis, initial": column(free, cube, rng),
        f"thesis, {STEPS} steps": column(trained(free, cube, rng), cube, rng),
        "1-Lipschitz, initial": column(tight, centred, rng),
        f"1-Lipschitz, {STEPS} steps": column(trained(tight, centred, rng), centred, rng),
    }  # fmt: skip
    write_text(FILE, json.dumps(columns, indent=1) + "\n")


if __name__ == "__main__":
    main()
