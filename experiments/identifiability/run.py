"""What an adversary that watches every step comes to believe: Table 5.1 and Figures 5.1 to 5.3 of D5.3, run again.

    python experiments/identifiability/run.py --data ../shared/data

How many runs each cell has stands in settings.py and was fixed before the first. What is finished is kept in the folder results, file by file, so
that a run that was stopped goes on; a cell is summed up in results.json once it is complete, and not before. With ``--minutes`` nothing is begun
after so long (0: nothing at all). The page docs/experiments/identifiability.md and its pictures are made from results.json once all of it is
complete; page.py alone writes them anew.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import torch
from kept import CHUNK, FOLDER, keep_trained, keep_watched, watched
from neighbours import Choice, Digits, choose, read_digits
from page import PAGE, RESULTS, write_page
from settings import (
    CELLS,
    RECORDS,
    RUNS,
    TRAININGS,
    Cell,
    Training,
    network,
    noise_for,
    recipe_of,
)
from summary import cell_summary, pooled_summary, training_summary

from reticent.account import Relation
from reticent.pool import Trace, Truth
from reticent.product import Departure
from reticent.run import seed_for, write_text
from reticent.train.tensors import (
    Cohort,
    View,
    train_modules_privately,
    watch_modules,
)

# Names the seeds. Earlier runs, whose number had been set after a look at them, had other seeds; none is used again.
SERIES = "identifiability/second series"


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

    def do(self, digits: Digits, choice: Choice) -> None:
        """Watch the runs unless that was done before."""
        keep_watched(self.cell, self.at, lambda: self._watch(digits, choice))

    def _watch(self, digits: Digits, choice: Choice) -> tuple[Trace, Truth, float]:
        started, cell = time.process_time(), self.cell
        recipe = recipe_of(RECORDS, cell.multiplier, plain=cell.plain)
        rows, neighbours = choice.rows(
            cell.neighbour, bounded=cell.relation == Relation.REPLACE
        )
        runs = range(self.at, min(self.at + CHUNK, cell.runs))
        x, y = digits.tensors(rows)
        trace, truth = watch_modules(
            network,
            View(inputs=x, targets=y),
            neighbours,
            recipe,
            [seed_for(0, f"{SERIES}/{cell.seeds}/{run}") for run in runs],
            departure=Departure(local="pair" if cell.local else None),
        )
        return trace, truth, time.process_time() - started


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

    def do(self, digits: Digits, choice: Choice) -> None:
        """Train and count right answers, unless that was done before."""
        keep_trained(self.training, self.seed, lambda: self._train(digits, choice))

    def _train(self, digits: Digits, choice: Choice) -> dict[str, float]:
        started, training = time.process_time(), self.training
        noise = training.reach * noise_for(training.noise)
        # The table that is watched comes first; larger ones hold it.
        more = np.setdiff1d(np.arange(len(digits.x_train)), choice.table)
        rows = np.concatenate([choice.table, more])[: training.rows]
        x, y = digits.tensors(rows)
        seed = seed_for(0, f"{SERIES}/accuracy/{self.seed}")
        everyone = np.ones((1, len(x)), dtype=bool)
        made = train_modules_privately(
            network,
            Cohort(inputs=x, targets=y, masks=everyone, seeds=[seed]),
            recipe_of(training.rows, noise, plain=training.plain),
        )
        answers = []
        with torch.no_grad():
            for part in torch.from_numpy(digits.x_test).split(1000):
                answers.append(made.modules[0](part.float() / 255).argmax(1))
        right = int((torch.cat(answers).numpy() == digits.y_test).sum())
        return {"correct": right, "seconds": time.process_time() - started}


def plan() -> list[Watched | Trained]:
    """Return all work in the order in which it is done."""
    cells = [Watched(cell=c, at=at) for c in CELLS for at in range(0, c.runs, CHUNK)]
    trained = [Trained(training=t, seed=s) for t in TRAININGS for s in range(t.seeds)]
    main = [job for job in cells if job.cell.runs == RUNS]
    return [*main, *trained, *(job for job in cells if job.cell.runs != RUNS)]


def work(job: Watched | Trained, data: Path, choice: Choice, until: float) -> None:
    """Do one job in a process of its own, unless it is too late to begin."""
    torch.set_num_threads(1)  # the order of additions, hence the figures, depends on it
    if time.monotonic() < until:
        job.do(read_digits(data), choice)


def summed_up(choice: Choice) -> dict:
    """Return the results of all cells and trainings that are complete, and how far the others are."""
    cells, trainings, fresh, progress = {}, {}, [], {}
    seconds = {"watched": 0.0, "trained": 0.0}
    for cell in CELLS:
        runs, complete, spent = watched(cell)
        seconds["watched"] += spent
        progress[cell.name] = [runs, cell.runs]
        if complete is not None:
            cells[cell.name] = cell_summary(cell, *complete)
            if cell.seeds == cell.name:  # the others repeat the seeds of another cell
                fresh.append(complete)
    for training in TRAININGS:
        found = {
            seed: json.loads(path.read_text(encoding="utf-8"))
            for seed in range(training.seeds)
            if (path := FOLDER / f"trained/{training.name}-{seed}.json").exists()
        }
        progress[training.name] = [len(found), training.seeds]
        seconds["trained"] += sum(one["seconds"] for one in found.values())
        if len(found) == training.seeds:
            trainings[training.name] = training_summary(
                training, {seed: int(one["correct"]) for seed, one in found.items()}
            )
    return {
        "noise": {how: noise_for(how) for how in ("renyi", "exact", "belief")},
        "neighbours": choice.told,
        "progress": progress,
        "cells": cells,
        "pooled": pooled_summary(fresh) if fresh else None,
        "trainings": trainings,
        "minutes": {kind: spent / 60 for kind, spent in seconds.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=24 * 60.0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    chosen = choose(read_digits(arguments.data))
    until = time.monotonic() + 60 * arguments.minutes
    joblib.Parallel(n_jobs=arguments.processes, batch_size=1)(
        joblib.delayed(work)(job, arguments.data, chosen, until) for job in plan()
    )
    results = summed_up(chosen)
    write_text(RESULTS, json.dumps(results, indent=1) + "\n")
    missing = [name for name, (n, of) in results["progress"].items() if n < of]
    if missing:
        print(f"not complete yet: {', '.join(missing)}; the same command goes on")
    else:
        write_page(results, PAGE)
