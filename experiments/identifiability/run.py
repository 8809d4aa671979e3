"""What an adversary that watches every step comes to believe: Table 5.1 and Figures 5.1 to 5.3 of D5.3, run again.

    python experiments/identifiability/run.py --data ../shared/data

Chunks of runs are kept in build/identifiability, so that a killed run goes on; all cells grow together. With
``--minutes`` no chunk is begun after so long (0: none at all), and what there is is summed up in results.json. The page
docs/experiments/identifiability.md and its pictures are made from that file; page.py alone writes them anew.
"""

import argparse
import json
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from neighbours import Choice, Digits, choose, read_digits
from numpy.typing import NDArray
from page import PAGE, RESULTS, write_page
from settings import (
    CELLS,
    RECORDS,
    TRAININGS,
    Cell,
    Training,
    network,
    noise_for,
    recipe_of,
)
from summary import cell_summary, pooled_summary, training_summary

from reticent.account import Relation
from reticent.pool import Side, Trace, Truth
from reticent.product import Departure
from reticent.run import Store, content_of, seed_for, write_text
from reticent.train.private.modules import train_modules_privately
from reticent.train.private.watched import watch_modules
from reticent.train.stacking import Cohort, View

STORE = Store(folder=Path("build/identifiability"))
ARRAYS = dict[str, NDArray[Any]]
CHUNK = 25  # runs that are kept together
SIDES, PARTS = ("first", "second"), tuple(field.name for field in fields(Side))


class TooLate(Exception):
    """The time for new work is over."""


def in_time(until: float) -> None:
    """Refuse to begin after a moment of the monotonic clock."""
    if time.monotonic() > until:
        raise TooLate


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Some runs of a cell, from ``at`` on.

    Parameters
    ----------
    cell : Cell
        The trainings.
    at : int
        The first run.
    """

    cell: Cell
    at: int

    @property
    def urgency(self) -> float:
        """What is begun first: all cells grow together."""
        return self.at / 1000

    def arrays(self, digits: Digits, choice: Choice, until: float) -> dict:
        """Return what was seen, made now or kept."""
        cell = self.cell
        recipe = recipe_of(RECORDS, cell.multiplier, plain=cell.plain)
        rows, neighbours = choice.rows(
            cell.neighbour, bounded=cell.relation == Relation.REPLACE
        )
        runs = range(self.at, min(self.at + CHUNK, cell.runs))
        seeds = [seed_for(0, f"identifiability/{cell.seeds}/{run}") for run in runs]
        content = content_of(recipe, network, rows, neighbours.own, cell.local, seeds)

        def make() -> dict:
            in_time(until)
            started = time.process_time()
            x, y = digits.tensors(rows)
            trace, truth = watch_modules(
                network,
                View(inputs=x, targets=y),
                neighbours,
                recipe,
                seeds,
                departure=Departure(local="pair" if cell.local else None),
            )
            made = {
                f"{s}_{p}": getattr(getattr(trace, s), p) for s in SIDES for p in PARTS
            }
            made |= {"distance": trace.distance, "size": np.array(trace.size)}
            made |= {"used_first": truth.first, "taken": truth.taken}
            return made | {"seconds": np.array(time.process_time() - started)}

        return STORE.keep(
            f"watched-{cell.name}-{self.at}", ARRAYS, make, depends=content
        )


@dataclass(frozen=True, kw_only=True)
class Trained:
    """One training whose accuracy is measured.

    Parameters
    ----------
    training : Training
        How.
    seed : int
        Of weights and noise.
    """

    training: Training
    seed: int

    @property
    def urgency(self) -> float:
        """What is begun first."""
        return self.seed / self.training.seeds

    def arrays(self, digits: Digits, choice: Choice, until: float) -> dict:
        """Return the number of right answers, made now or kept."""
        training = self.training
        noise = training.reach * noise_for(training.noise)
        recipe = recipe_of(training.rows, noise, plain=training.plain)
        # The table that is watched comes first; larger ones hold it.
        more = np.setdiff1d(np.arange(len(digits.x_train)), choice.table)
        rows = np.concatenate([choice.table, more])[: training.rows]
        content = content_of(recipe, network, rows, self.seed)

        def make() -> dict:
            in_time(until)
            started = time.process_time()
            x, y = digits.tensors(rows)
            everyone = np.ones((1, len(x)), dtype=bool)
            seed = seed_for(0, f"identifiability/accuracy/{self.seed}")
            made = train_modules_privately(
                network,
                Cohort(inputs=x, targets=y, masks=everyone, seeds=[seed]),
                recipe,
            )
            answers = []
            with torch.no_grad():
                for part in torch.from_numpy(digits.x_test).split(1000):
                    answers.append(made.modules[0](part.float() / 255).argmax(1))
            right = (torch.cat(answers).numpy() == digits.y_test).sum()
            seconds = time.process_time() - started
            return {"correct": np.array(right), "seconds": np.array(seconds)}

        name = f"trained-{training.name}-{self.seed}"
        return STORE.keep(name, ARRAYS, make, depends=content)


def work(
    job: Watched | Trained, data: Path, choice: Choice, until: float
) -> dict | None:
    """Find or do one job, in a process of its own; None if it is not there and too late to begin."""
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    try:
        return job.arrays(read_digits(data), choice, until)
    except TooLate:
        return None


def joined(found: list[dict]) -> tuple[Trace, Truth]:
    """Return all runs of a cell."""

    def whole(name: str) -> np.ndarray:
        return np.concatenate([arrays[name] for arrays in found])

    sides = (
        Side(**{part: whole(f"{side}_{part}") for part in PARTS}) for side in SIDES
    )
    first, second = sides
    trace = Trace(
        first=first,
        second=second,
        distance=whole("distance"),
        size=int(found[0]["size"]),
        rate=1.0,
    )
    return trace, Truth(first=whole("used_first"), taken=whole("taken"))


def summed_up(jobs: list, done: list, choice: Choice) -> dict:
    """Return the results of all that is done."""
    cells, trainings, fresh = {}, {}, []
    for cell in CELLS:
        mine = [
            a for j, a in zip(jobs, done, strict=True) if getattr(j, "cell", 0) == cell
        ]
        # Runs are taken in order, up to the first chunk that is missing.
        upto = next((k for k, a in enumerate(mine) if a is None), len(mine))
        if upto:
            watched = joined(mine[:upto])
            cells[cell.name] = cell_summary(cell, *watched)
            if cell.seeds == cell.name:  # the others repeat the seeds of another cell
                fresh.append(watched)
    for training in TRAININGS:
        mine = [
            (j.seed, int(a["correct"]))
            for j, a in zip(jobs, done, strict=True)
            if getattr(j, "training", 0) == training and a is not None
        ]
        if mine:
            trainings[training.name] = training_summary(training, dict(mine))
    minutes = {
        kind.__name__.lower(): sum(
            float(a["seconds"])
            for j, a in zip(jobs, done, strict=True)
            if isinstance(j, kind) and a is not None
        )
        / 60
        for kind in (Watched, Trained)
    }
    return {
        "noise": {how: noise_for(how) for how in ("renyi", "exact", "belief")},
        "neighbours": choice.told,
        "cells": cells,
        "pooled": pooled_summary(fresh),
        "trainings": trainings,
        "minutes": minutes,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=24 * 60.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = choose(read_digits(arguments.data), STORE)
    plan: list[Watched | Trained] = [
        *(Watched(cell=c, at=at) for c in CELLS for at in range(0, c.runs, CHUNK)),
        *(Trained(training=t, seed=seed) for t in TRAININGS for seed in range(t.seeds)),
    ]
    plan.sort(key=lambda job: job.urgency)
    until = time.monotonic() + 60 * arguments.minutes
    done = joblib.Parallel(n_jobs=arguments.processes, batch_size=1)(
        joblib.delayed(work)(job, arguments.data, chosen, until) for job in plan
    )
    results = summed_up(plan, done, chosen)
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")
    write_page(results, PAGE)
