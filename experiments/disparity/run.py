"""O'Dell's study of disparate vulnerability (thesis, chapter 7), on Law School and Adult, over a grid of batch sizes and codings.

    python experiments/disparity/run.py --data ../shared/data

Each of 200 repeats divides the table anew into 40 % training, 40 % test and 20 % reference records, trains a
network with 8 hidden units for 200 epochs, and attacks it with five shadow models trained on halves of the
reference records. Networks are trained by the compiled loop of compiled.py; the first of every cell are trained by the library's engine as well, and what
differs is counted. (Law School and the first cell of Adult were run by the engine alone.) A finished cell is one file in the folder results; the parts of an unfinished one are kept under build/disparity.
A run that was stopped goes on. With ``--minutes`` no part is begun after so long. The page docs/experiments/disparity.md is written
from the finished cells at the end; page.py alone writes it anew.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from compiled import answers_of
from page import write_page
from settings import CELLS, REPEATS, SHADOWS, STUDIES, TOGETHER, Cell
from summary import summarise

from reticent.attack import LikelihoodRatio, XGBoosting, score_targets
from reticent.pool import Pool
from reticent.run import stream, write_text
from reticent.train import train_many

RESULTS = Path(__file__).parent / "results"
CHECKED = 10  # repeats in which XGBoost itself is asked as well
TWICE = 3  # networks of a cell that the library's engine trains as well
# The distance of 1 from the next number in single precision: initial weights that are larger by this share are rounded otherwise and the same for everything else.
NUDGE = 2.0**-23
PER_PASS = TOGETHER // SHADOWS  # repeats whose shadow models are trained together


class TooLate(Exception):
    """The time for new work is over."""


class Kept:
    """Arrays of one cell on disk, with the CPU seconds that they took.

    Parameters
    ----------
    folder : Path
        Where they are.
    until : float
        Moment of the monotonic clock after which nothing is begun.
    """

    def __init__(self, folder: Path, until: float) -> None:
        self.folder, self.until = folder, until
        self.seconds = 0.0
        folder.mkdir(parents=True, exist_ok=True)

    def array(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return an array, made now or before."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            if time.monotonic() > self.until:
                raise TooLate
            started = time.process_time()
            made = make()
            part = path.with_suffix(".part.npz")
            np.savez(part, made=made, seconds=time.process_time() - started)
            part.replace(path)
        with np.load(path) as found:
            self.seconds += float(found["seconds"])
            return found["made"]


def parts(n: int, repeat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return training, test and reference records of one repeat."""
    order = stream(0, f"disparity/{repeat}").permutation(n)
    cut = round(0.4 * n)
    return order[:cut], order[cut : 2 * cut], order[2 * cut :]


def shadow_masks(n: int, repeat: int) -> np.ndarray:
    """Return who trains each shadow model of a repeat: a random half of the reference records."""
    reference = parts(n, repeat)[2]
    rng = stream(0, f"disparity/shadows/{repeat}")
    masks = np.zeros((SHADOWS, n), dtype=bool)
    for mask in masks:
        mask[rng.permutation(reference)[: len(reference) // 2]] = True
    return masks


def learned_rule(
    wrong: np.ndarray, masks: np.ndarray, reference: np.ndarray
) -> tuple[bool, bool]:
    """Return whether the attack classifier calls records members that are predicted rightly, and those predicted wrongly.

    The 0-1 loss is one bit, so that boosted trees can only learn one answer for each value, the majority among the shadow models' reference
    records: a table of counts gives the decisions of XGBoost exactly. :func:`asked_xgboost` checks that.
    """
    seen, tags = wrong[:, reference], masks[:, reference]
    right_is, wrong_is = (
        2 * int(tags[seen == value].sum()) > int((seen == value).sum())
        for value in (False, True)
    )
    return right_is, wrong_is


def asked_xgboost(
    wrong: np.ndarray, masks: np.ndarray, reference: np.ndarray, repeat: int
) -> tuple[bool, bool]:
    """Return the same as :func:`learned_rule`, from XGBoost with 100 trees."""
    inputs = wrong[:, reference].reshape(-1, 1).astype(np.float64)
    rng = stream(0, f"disparity/attack/{repeat}")
    odds = XGBoosting().learn(inputs, masks[:, reference].ravel(), rng)
    right_is, wrong_is = odds(np.array([[0.0], [1.0]])) > 0
    return bool(right_is), bool(wrong_is)


def run(cell: Cell, data: Path, out: Path, until: float) -> None:
    """Finish a cell unless it is there."""
    result = RESULTS / f"{cell.name}.json"
    if result.exists():
        return
    table = STUDIES[cell.study].read(data, cell.coding)
    n, kept, trainer = len(table), Kept(out / cell.name, until), cell.trainer()
    masks = np.zeros((REPEATS, n), dtype=bool)
    judged = np.zeros((REPEATS, n), dtype=bool)
    for k in range(REPEATS):
        train, test, _ = parts(n, k)
        masks[k, train] = judged[k, train] = judged[k, test] = True
    seeds = np.arange(REPEATS)
    answers = kept.array(
        "targets", lambda: answers_of(table, masks, seeds, trainer.network)
    )
    some = (masks[:TWICE], seeds[:TWICE])
    again = kept.array(
        "again", lambda: train_many(trainer, table, *some, workers=1)[..., 1]
    )
    nudged = kept.array(
        "nudged", lambda: answers_of(table, *some, trainer.network, nudge=NUDGE)
    )
    wrong = (answers > 0.5) != table.target
    called, different = np.zeros((REPEATS, n), dtype=bool), 0
    for first in range(0, REPEATS, PER_PASS):
        these = range(first, min(first + PER_PASS, REPEATS))

        def make(these: range = these) -> np.ndarray:
            members = np.concatenate([shadow_masks(n, k) for k in these])
            seeds = np.arange(SHADOWS * these.start, SHADOWS * these.stop) + 10**6
            made = answers_of(table, members, seeds, trainer.network)
            return np.packbits((made > 0.5) != table.target, axis=1)

        packed = kept.array(f"shadows-{first}", make)
        shadows = np.unpackbits(packed, axis=1, count=n).astype(bool)
        for k in these:
            its = slice(SHADOWS * (k - first), SHADOWS * (k - first + 1))
            members, reference = shadow_masks(n, k), parts(n, k)[2]
            rule = learned_rule(shadows[its], members, reference)
            if k < CHECKED:
                different += rule != asked_xgboost(shadows[its], members, reference, k)
            called[k] = np.where(wrong[k], rule[1], rule[0])
    both = np.stack([1 - answers, answers], axis=-1).astype(np.float32)
    pool = Pool(masks=masks, probabilities=both, labels=table.target)
    ratio = kept.array(
        "ratio",
        lambda: np.packbits(
            score_targets(
                LikelihoodRatio(), pool, most=REPEATS, rng=np.random.default_rng(0)
            )[1]
            > 0,
            axis=1,
        ),
    )
    stronger = np.unpackbits(ratio, axis=1, count=n).astype(bool)
    summary = summarise(
        wrong, [called, stronger], masks, judged, table.groups.astype(str)
    )
    found = {
        "cell": {"study": cell.study, "batch": cell.batch, "coding": cell.coding},
        "inputs": int(table.features.shape[1]),
        "repeats": REPEATS,
        "engine": {
            "networks": TWICE,
            "decisions": int(again.size),
            **{
                name: int(np.count_nonzero((other > 0.5) != (answers[:TWICE] > 0.5)))
                for name, other in (("different", again), ("nudged", nudged))
            },
            "errors": np.mean((again > 0.5) != table.target, axis=1).tolist(),
            "compiled": np.mean(wrong[:TWICE], axis=1).tolist(),
        },
        "xgboost": {"asked": CHECKED, "different": different},
        "minutes": kept.seconds / 60,
        **summary,
    }
    RESULTS.mkdir(exist_ok=True)
    write_text(result, json.dumps(found) + "\n")
    print(f"{cell.name}: {kept.seconds / 60:.1f} minutes of CPU", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/disparity"))
    parser.add_argument("--minutes", type=float, default=7 * 24 * 60.0)
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    try:
        for one in CELLS:
            run(one, arguments.data, arguments.out, until)
    except TooLate:
        print("time is over; the same command goes on")
    write_page(RESULTS, Path("docs/experiments/disparity.md"))
