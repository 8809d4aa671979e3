"""Plant every flaw into an Opacus training, watch it, and count how often it stops the audit; count false alarms of correct trainings, too.

python experiments/planted_flaws/run.py: about ten minutes; results.json, then page.py writes the page. `--part 0 --parts 2` and `--part 1 --parts 2` share the
work between two processes. The number of audits is fixed here, before any of them.
"""

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from flaws import FLAWS
from page import write_page
from training import EPOCHS, watch

from reticent.data import builtin_table
from reticent.pipeline import (  # fmt: skip
    WatchPlan,
    check_observed,
    divide,
    report_observed,
    run_identification,
)
from reticent.run import Run, write_text
from reticent.train import SGD, PrivateNetwork, PrivateNetworkTrainer
from reticent.train.private import Clip, PerLayer

HERE = Path(__file__).parent
PIECES = HERE / "pieces"  # finished ones; not part of the repository
AUDITS, CORRECT = 15, 100  # audits of each flaw, and of correct trainings
# One of the correct trainings was stopped; these were added for that reason, with their number fixed before them.
CORRECT_AGAIN = 200
TRAININGS = 2  # of an audit by Opacus: one with the record, one without it
OWN_AUDITS, OWN_TRAININGS, NORM = 5, 4, 0.1


def by_opacus(plant, audits, first):
    """Return how many audits are stopped, by which checks, and what the bound on epsilon of the first one says."""
    stopped, names, epsilons = 0, Counter(), None
    for audit in range(audits):
        start = first + TRAININGS * audit
        observers, claim = watch(plant, range(start, start + TRAININGS))
        false = [c for c in check_observed(observers, claim) if not c.passed]
        stopped += bool(false)
        names.update(check.name for check in false)
        if audit == 0:
            found = report_observed(observers, claim)
            epsilons = {
                "claimed": found.epsilons.claimed,
                "audited": found.epsilons.audited.low,
                "refuted": found.epsilons.refuted,
                "trusted": list(found.evidence.trusted),
                "warnings": list(found.warnings),
            }
    return {
        "audits": audits,
        "stopped": stopped,
        "by": dict(names.most_common()),
        "epsilons": epsilons,
    }


@dataclass(frozen=True, kw_only=True)
class NoClip(Clip):
    """States a bound and keeps none."""

    def factor(self, norm):
        return torch.ones_like(norm)


@dataclass(frozen=True, kw_only=True)
class HalfClip(Clip):
    """Leaves the first half of a batch as it is."""

    def factor(self, norm):
        factor = super().factor(norm).clone()
        factor[:, : factor.shape[1] // 2] = 1.0
        return factor


@dataclass(frozen=True, kw_only=True)
class ClipTwice(Clip):
    """Counts every gradient twice."""

    def factor(self, norm):
        return 2 * super().factor(norm)


@dataclass(frozen=True, kw_only=True)
class ClipByMean(Clip):
    """Shortens the whole batch until its mean keeps the bound, or would if all gradients were alike."""

    def factor(self, norm):
        return (self.norm / norm.mean(1, keepdim=True)).clip(max=1.0).expand_as(norm)


@dataclass(frozen=True, kw_only=True)
class ByLayerAsOne(PerLayer):
    """Clips every layer to the bound, and states that bound for all of them together."""

    def bound(self, sizes):
        return self.norms[0]


OWN = {
    "no clip at all": NoClip(norm=NORM),
    "a clip of the batch's mean length": ClipByMean(norm=NORM),
    "half a batch unclipped": HalfClip(norm=NORM),
    "a clip of each layer, accounted as one": ByLayerAsOne(norms=(NORM,)),
    "every gradient counted twice": ClipTwice(norm=NORM),
}


def by_reticent(clipping, members, audits):
    """Return how many audits of our own private training are stopped, by which checks."""
    rows = len(members) + 1  # with the canary
    network = PrivateNetwork(
        hidden=(4,),
        epochs=5,
        batch=rows // 4,
        rows=rows,
        optimiser=SGD(rate=0.1),
        clipping=clipping,
        noise_multiplier=2.0,
        noise="seeded",
    )
    stopped, names, epsilons = 0, Counter(), None
    for audit in range(audits):
        found = run_identification(
            members,
            WatchPlan(
                trainer=PrivateNetworkTrainer(network=network, recipe="planted"),
                runs=OWN_TRAININGS,
                delta=1e-4,
                # The epsilon that is claimed changes nothing in the checks; a fixed one saves its accounting.
                claimed=1.0,
            ),
            run=Run(seed=5_000 + audit),
        )
        stopped += bool(found.departures)
        names.update(check.name for check in found.departures)
        if audit == 0:
            epsilons = {"audited": found.epsilons.audited.low}
    return {
        "audits": audits,
        "stopped": stopped,
        "by": dict(names.most_common()),
        "epsilons": epsilons,
    }


def pieces(members):
    """Return what there is to run: kind, name and how."""
    for number, flaw in enumerate(FLAWS):
        first = 1_000 * (number + 1)
        yield "flaws", flaw.name, partial(by_opacus, flaw.plant, AUDITS, first)
    yield "correct", "correct", partial(by_opacus, None, CORRECT, 100_000)
    yield "correct", "again", partial(by_opacus, None, CORRECT_AGAIN, 200_000)
    for name, clipping in {"correct": Clip(norm=NORM), **OWN}.items():
        yield "own", name, partial(by_reticent, clipping, members, OWN_AUDITS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    every = list(pieces(divide(builtin_table(), seed=0).defender))
    PIECES.mkdir(exist_ok=True)

    def file(kind, name):
        return PIECES / f"{kind} {name}.json"

    for kind, name, make in every[options.part :: options.parts]:
        if file(kind, name).exists():
            continue  # an interrupted experiment goes on where it was
        started = time.process_time()
        found = make()
        found["seconds"] = time.process_time() - started
        write_text(file(kind, name), json.dumps(found))
        print(kind, name, found["stopped"], found["by"], round(found["seconds"]), flush=True)  # fmt: skip
    if not all(file(kind, name).exists() for kind, name, _ in every):
        return  # another part is not ready yet
    results = {
        "trainings": TRAININGS,
        "steps": 5 * EPOCHS,
        "own_trainings": OWN_TRAININGS,
    }
    for kind, name, _ in every:
        found = json.loads(file(kind, name).read_text())
        results.setdefault(kind, {})[name] = found
    write_text(HERE / "results.json", json.dumps(results, indent=1) + "\n")
    write_page(results)


if __name__ == "__main__":
    main()
