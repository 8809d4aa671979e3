"""Watching a private training as an audit does: in chunks, with a deadline, columns learned with noise from tables with categories and skewed numbers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from calibrate.rows import Case
from calibrate.settings import LEVEL, SLOWEST
from reticent.data import Table, table_from_frame
from reticent.pipeline import WatchPlan, run_identification
from reticent.pipeline._claims import MOST_WATCHED
from reticent.run import Run
from reticent.train import PrivateNetwork, PrivateNetworkTrainer
from reticent.train.private import Clip

STOPPED = 0.001  # what the checks together get of an audit's error
WIDER = 0.05  # the same with a level that 200 audits can tell something about


def people(rng: np.random.Generator, rows: int) -> Table:
    """Return people of whom some categories are so rare that noise decides whether they are learned."""
    falling = 0.75 ** np.arange(14)
    town = rng.choice(14, rows, p=falling / falling.sum())
    job = rng.choice(9, rows, p=falling[:9] / falling[:9].sum())
    income = rng.lognormal(9, 1.2, rows)
    frame = pd.DataFrame(
        {
            "town": [f"town {k}" for k in town],
            "job": [f"job {k}" for k in job],
            "sex": rng.choice(["f", "m"], rows),
            "income": income,
            "visits": rng.geometric(0.4, rows),
        }
    )
    frame["ill"] = np.where(np.log(income) + rng.normal(size=rows) > 9, "yes", "no")
    return table_from_frame(frame, target="ill")


def audited(rows: int, *, seconds: float, watched: str) -> Case:
    """Return the case of a training that is as stated, watched as an audit with so many seconds watches it."""

    def once(rng: np.random.Generator) -> Sequence[bool]:
        table = people(rng, rows)
        network = PrivateNetwork(
            hidden=(6,),
            epochs=4,
            batch=40,
            rows=rows + 1,
            clipping=Clip(norm=1.0),
            noise_multiplier=1.0,
            domain_noise=2.0,
            noise="seeded",
        )
        trainer = PrivateNetworkTrainer(network=network, recipe="a private network")
        plan = WatchPlan(
            trainer=trainer, runs=MOST_WATCHED, seconds=seconds, level=LEVEL
        )
        seed = int(rng.integers(2**31))
        found = run_identification(table, plan, run=Run(seed=seed))
        checks = found.evidence.checks
        # Each check's share of the error is the same part of a wider one.
        wider = [c.p_value < c.alarm * WIDER / STOPPED for c in checks]
        claimed = found.epsilons.claimed
        return (
            not all(check.passed for check in checks),
            any(wider),
            found.epsilons.audited.low > claimed,
        )

    return Case(
        statement="a training as stated, watched by an audit (`run_identification`)",
        data=f"{rows} rows, categories and skewed numbers learned with noise; {watched}",
        errors=(
            ("a check stops it", STOPPED),
            ("a check would stop it at 50 times its share", WIDER),
            ("bound on epsilon above the steps' own", 1 - LEVEL),
        ),
        once=once,
        repeats=SLOWEST,
    )


def cases() -> list[Case]:
    return [
        audited(300, seconds=1e6, watched="50 runs in chunks of 10"),
        # At least one chunk is watched, however late it is.
        audited(300, seconds=0.0, watched="deadline after 10 runs"),
    ]
