"""What an adversary that watches every step of a training shows about its epsilon, at least.

Two tables differ by one record more or less: a copy of a picture with a wrong class. A few trainings, each on one of the two by
the toss of a coin, are watched by :func:`reticent.pipeline.run_identification`. They are shorter than those of the curves; more steps
give away no less, so that a lower bound holds for the longer training too.
"""

import math
import time
from pathlib import Path

import numpy as np
import pandas as pd
from settings import BATCH, DELTA, ROWS, Setting, convolutional
from torch import nn

import data
from reticent.account import Course, trade_off
from reticent.data import ColumnKind, Schema, Table
from reticent.pipeline import Mislabelled, WatchPlan, run_identification
from reticent.run import Run, write_text
from reticent.train import SGD, PrivateModule, PrivateModuleTrainer

__all__ = ["EPOCHS", "RUNS", "audited"]

EPOCHS = {"mnist": 1, "cifar10": 3}
RUNS = 4
SEED = 0


def audited(setting: Setting, pictures: data.Pictures, folder: Path) -> dict:
    """Watch a setting; return the three epsilons of what was watched.

    Parameters
    ----------
    setting : Setting
        The training, of which some epochs are watched.
    pictures : data.Pictures
        Its training records.
    folder : Path
        Where the declared domain is written.
    """
    started = time.process_time()
    table = _table(pictures)
    recipe = PrivateModule(
        "settings:convolutional",
        epochs=EPOCHS[setting.data],
        batch=BATCH,
        optimiser=SGD(rate=setting.rate),
        clipping=setting.clipping,
        noise_multiplier=setting.noise_multiplier,
        rows=ROWS[setting.data],
        noise="seeded",
        domain=str(_domain(table, folder)),
    )
    shape = tuple(pictures.x_train.shape[1:])

    def make(inputs: int, classes: int) -> nn.Module:
        return nn.Sequential(nn.Unflatten(1, shape), convolutional(*shape[:2]))

    course = Course.of_epochs(
        rows=ROWS[setting.data], batch=BATCH, epochs=EPOCHS[setting.data]
    )
    claimed = trade_off(setting.training(setting.noise, course.steps)).epsilon(DELTA)
    found = run_identification(
        table,
        WatchPlan(
            trainer=PrivateModuleTrainer(
                make=make, training=recipe, recipe=f"tanh/{setting.key}"
            ),
            neighbour=Mislabelled(),
            runs=RUNS,
            claimed=claimed,
            claimed_by="the sensitivity that is assumed",
            delta=DELTA,
        ),
        run=Run(seed=SEED),
    )
    epsilons, evidence = found.epsilons, found.evidence
    distances = [point.middle for point in evidence.sensitivity_path]
    return {
        "runs": RUNS,
        "steps": course.steps,
        "claimed": epsilons.claimed,
        "proven": epsilons.proven if epsilons.proven is not None else math.inf,
        "low": epsilons.audited.low,
        "level": epsilons.audited.level,
        "ceiling": epsilons.ceiling,
        "refuted": epsilons.refuted,
        "advantage": evidence.advantage.value,
        "distances": distances,
        "warnings": list(found.warnings),
        "minutes": (time.process_time() - started) / 60,
    }


def _table(pictures: data.Pictures) -> Table:
    pixels = pictures.x_train.flatten(1).numpy()
    names = [f"p{k}" for k in range(pixels.shape[1])]
    rows = np.arange(len(pixels))
    return Table(
        features=pd.DataFrame(pixels, columns=names),
        target=pictures.y_train.numpy(),
        classes=tuple("0123456789"),
        units=rows,
        ids=rows,
        schema=Schema(columns=dict.fromkeys(names, ColumnKind.NUMERIC)),
    )


def _domain(table: Table, folder: Path) -> Path:
    """Declare pixels such that they pass as they are: a range is centred, and divided by a quarter of its width."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"domain-{table.features.shape[1]}.toml"
    lines = (f"{name} = [-2, 2]" for name in table.features)
    write_text(path, "\n".join(["[numbers]", *lines]) + "\n")
    return path
