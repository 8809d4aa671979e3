"""Put six false claims and their true twins to the test, and count how often true claims are refuted.

python experiments/refuted/run.py [--audits 400]: a few minutes; results.json, then page.py writes the page.
"""

import argparse
import json
import math
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import opacus
import torch
from page import write_page
from torch import nn

from reticent.account import Gaussian, PrivateTraining, Relation, trade_off
from reticent.attack import Euclidean
from reticent.data import builtin_table
from reticent.pipeline import (
    Dissimilar,
    WatchPlan,
    divide,
    report_observed,
    run_identification,
)
from reticent.run import Run, write_text
from reticent.train import (
    SGD,
    PrivateNetwork,
    PrivateNetworkTrainer,
    claim_of_opacus,
    spell,
)
from reticent.train.private import Clip, Tanh
from reticent.train.tensors import OpacusObserver

HERE = Path(__file__).parent
DELTA, STEPS, EPSILON, NORM = 1e-5, 30, 2.0, 0.1
FULL = (
    math.sqrt(STEPS) * Gaussian.analytic(epsilon=EPSILON, delta=DELTA).noise_multiplier
)
SAMPLED = 2.0
RUNS = 20  # of an audit of a recipe whose claim is true


@dataclass(frozen=True, kw_only=True)
class NoClip(Clip):
    """States a bound and keeps none."""

    def factor(self, norm):
        return torch.ones_like(norm)


def recipe(rows, **changes):
    given = {
        "hidden": (),
        "epochs": STEPS,
        "batch": rows,
        "rows": rows,
        "optimiser": SGD(rate=0.1),
        "clipping": Clip(norm=NORM),
        "noise_multiplier": FULL,
        "noise": "seeded",
    }
    return PrivateNetwork(**{**given, **changes})


def trainer(network):
    try:
        words = spell(network)
    except Exception:  # a clipping of this experiment's own has no name
        words = "a clip that does nothing"
    return PrivateNetworkTrainer(network=network, recipe=words)


def faults(rows, inputs, classes):
    """Return name, false training, true twin, and how each is watched."""
    correct = recipe(rows)
    parameters = (inputs + 1) * classes
    tanh = Tanh(scale=NORM, width=0.001)
    poisson = recipe(
        rows, batch=math.ceil(rows / 4), epochs=10, noise_multiplier=SAMPLED
    )
    claim = trade_off(poisson.steps(rows, Relation.ADD_REMOVE)).epsilon(DELTA)
    full = {"claimed": EPSILON, "runs": 100}
    return [
        (
            "the tanh filter, accounted as in its source",
            replace(correct, clipping=tanh, noise_multiplier=FULL / parameters**0.5),
            replace(correct, clipping=tanh),
            full,
            {},
        ),
        (
            "noise scaled to local sensitivity",
            replace(correct, clipping=Clip(norm=1e6)),
            correct,
            {**full, "neighbour": Dissimilar(distance=Euclidean())},
            {"local": "own"},
        ),
        (
            "shuffling, accounted as Poisson sampling",
            poisson,
            poisson,
            {"claimed": claim, "runs": 100},
            {"shuffled": True},
        ),
        (
            "noise too small by 20 %",
            replace(correct, noise_multiplier=0.8 * FULL),
            correct,
            full,
            {},
        ),
        (
            "a clip that does nothing",
            replace(correct, clipping=NoClip(norm=NORM)),
            correct,
            full,
            {},
        ),
    ]


def with_outlier(members):
    """Return the table with one more record, whose measures are four times as large as another one's."""
    one = members.take(np.array([0]))
    return members.join(replace(one, features=4 * one.features))


def summary(found):
    e = found.epsilons
    return {
        "claimed": e.claimed,
        "proven": e.proven,
        "audited": e.audited.low,
        "ceiling": None if math.isinf(e.ceiling) else e.ceiling,
        "refuted": e.refuted,
        "runs": found.evidence.runs,
        "steps": found.evidence.steps,
        "advantage": [
            found.evidence.advantage.value,
            found.evidence.advantage.low,
            found.evidence.advantage.high,
        ],
        "advantage_bound": found.evidence.advantage_bound,
        "delta": e.delta,
        "says": e.proven_by,
    }


def watched_opacus(members, rows, batch, runs):
    """Return what is seen of an Opacus training, whose denominator may depend on the rows."""
    generator = torch.Generator().manual_seed(0)
    X = torch.from_numpy(members[0][:rows])
    y = torch.from_numpy(members[1][:rows])
    X = torch.nan_to_num((X - X.mean(0)) / X.std(0).clamp_min(1e-6))
    record = 5 * torch.randn(X.shape[1], generator=generator)
    observers, claim = [], None
    for run in range(runs):
        included = run % 2 == 0
        inputs = torch.cat([record[None], X[1:]]) if included else X[1:]
        labels = torch.cat([1 - y[:1], y[1:]]) if included else y[1:]
        torch.manual_seed(run)
        net = nn.Sequential(nn.Linear(X.shape[1], 500), nn.ReLU(), nn.Linear(500, 2))
        engine = opacus.PrivacyEngine(accountant="prv")
        module, optimiser, loader = engine.make_private(
            module=net,
            optimizer=torch.optim.SGD(net.parameters(), lr=0.05),
            data_loader=torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(inputs, labels), batch_size=batch
            ),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        with OpacusObserver(
            module,
            optimiser,
            loader,
            record=record,
            target=int(1 - y[0]),
            included=included,
        ) as observer:
            for _ in range(3):
                for x, t in loader:
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(module(x), t).backward()
                    optimiser.step()
        observers.append(observer)
        if included:
            claim = claim_of_opacus(
                engine, delta=DELTA, optimiser=optimiser, loader=loader, batch=batch
            )
    found = summary(report_observed(observers, claim))
    found["denominators"] = observers[0].denominators
    return found


def audits_of_true_claims(members, rows, most):
    """Return how often the bound for a recipe whose claim is true exceeds the truth, full batch and sampled."""
    made = []
    for name, network, audits in (
        ("full batches", recipe(rows), most),
        (
            "Poisson sampling",
            recipe(
                rows, batch=math.ceil(rows / 4), epochs=10, noise_multiplier=SAMPLED
            ),
            most // 5,  # accounting takes its time
        ),
    ):
        above, bounds = 0, []
        for audit in range(audits):
            found = run_identification(
                members,
                WatchPlan(
                    trainer=trainer(network),
                    runs=RUNS,
                    delta=DELTA,
                ),
                run=Run(seed=1_000 + audit),
            )
            above += found.epsilons.audited.low > found.epsilons.proven
            bounds.append(found.epsilons.audited.low)
        made.append(
            {
                "name": name,
                "audits": audits,
                "above": int(above),
                "truth": found.epsilons.proven,
                "median": float(np.median(bounds)),
                "runs": RUNS,
            }
        )
        print(made[-1], flush=True)
    return made


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--audits", type=int, default=300)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    started = time.process_time()
    members = divide(builtin_table(), seed=0).defender
    rows = len(members) + 1  # with the canary
    results = {"faults": [], "rows": rows, "claim": {"sampled": SAMPLED, "full": FULL}}
    inputs = members.features.shape[1]
    for name, false, true, how, fault in faults(rows, inputs, 2):
        plan = {"delta": DELTA, **how}
        # A canary is added by the library; else the record in question is one that stands far out.
        table = with_outlier(members) if "neighbour" in how else members
        found = run_identification(
            table, WatchPlan(trainer=trainer(false), **plan, **fault)
        )
        twin = run_identification(table, WatchPlan(trainer=trainer(true), **plan))
        entry = {"name": name, "false": summary(found), "true": summary(twin)}
        results["faults"].append(entry)
        print(name, entry["false"]["audited"], entry["true"]["audited"], flush=True)
    numbers = members.features.to_numpy(dtype=np.float32), members.target
    results["faults"].insert(
        2,
        {
            "name": "a denominator that depends on the data (Opacus)",
            "false": watched_opacus(numbers, 160, 40, 6),
            "true": watched_opacus(numbers, 162, 40, 6),
        },
    )
    results["proven"] = audits_of_true_claims(members, rows, options.audits)
    results["minutes"] = (time.process_time() - started) / 60
    results["exact"] = trade_off(
        PrivateTraining(noise_multiplier=FULL, sampling_rate=1.0, steps=STEPS)
    ).epsilon(DELTA)
    write_text(HERE / "results.json", json.dumps(results, indent=1) + "\n")
    write_page(results)


if __name__ == "__main__":
    main()
