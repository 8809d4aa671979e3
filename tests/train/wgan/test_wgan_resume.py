"""An interrupted training goes on: finished chunks are found again, the others are made once, and nothing that is kept could be subtracted."""

import json
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from reticent.data import table_from_frame
from reticent.run import Run, Store, unpack
from reticent.train import WassersteinGenerator
from reticent.train.marginals.noise import Noise
from reticent.train.wgan import checkpoints
from reticent.train.wgan.checkpoints import Checkpoint, steps_per_chunk
from reticent.train.wgan.noise import Source

STEPS, CHUNK = 25, 10  # chunks of 10, 10 and 5 steps
QUICK = WassersteinGenerator(steps=STEPS, noise_multiplier=0.5, rows=100)
SEEDED = replace(QUICK, noise="seeded")


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr(checkpoints, "FEWEST_STEPS", CHUNK)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 400).astype(float)
    ill = (rng.random(400) < age / 120).astype(float)
    city = rng.choice(["Bonn", "Ulm"], 400)
    return table_from_frame(pd.DataFrame({"age": age, "ill": ill, "city": city}), target=None)  # fmt: skip


class Mortal:
    """Counts the noisy sums of a training, and ends the process's work at one of them."""

    def __init__(self, patch, dies_at=None):
        self.released = []
        honest = Source.release

        def release(source, sums, allotment):
            if len(self.released) == dies_at:
                raise KeyboardInterrupt
            self.released.append(sums)
            return honest(source, sums, allotment)

        patch.setattr(Source, "release", release)


def fitted(recipe, table, run, *, dies_at=None):
    """Return the rows of a fit, or None if it died, and how many noisy sums were drawn."""
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch, dies_at)
        if dies_at is None:
            rows = recipe.fit(table, run=run).sample(seed=1)[0]
        else:
            rows = None
            with pytest.raises(KeyboardInterrupt):
                recipe.fit(table, run=run)
    return rows, len(mortal.released)


def kept_in(folder):
    return Run(seed=3, store=Store(folder=folder))


@pytest.mark.parametrize("trainings", [1, 2])
@pytest.mark.parametrize("mode", ["lipschitz", "thesis"])
def test_a_resumed_training_ends_where_an_uninterrupted_one_ends(
    mode, trainings, table, tmp_path
):
    """To the last digit, wherever it is interrupted: in the first chunk, inside one, between two, in the last one."""
    recipe = replace(SEEDED, mode=mode, trainings=trainings)
    steps = STEPS * trainings
    whole, released = fitted(recipe, table, Run(seed=3))
    assert released == steps
    # Chunks begin at steps 0, 10 and 20 of each training.
    starts = [STEPS * k + start for k in range(trainings) for start in (0, 10, 20)]
    for dies_at in (3, 10, 17, steps - 1):
        run = kept_in(tmp_path / str(dies_at))
        assert fitted(recipe, table, run, dies_at=dies_at)[1] == dies_at
        resumed, released = fitted(recipe, table, run)
        assert released == steps - max(start for start in starts if start <= dies_at)
        pd.testing.assert_frame_equal(resumed, whole)


def test_progress_may_interrupt_it_and_goes_on_from_there(table, tmp_path):
    """The way a user does it: an interruption that arrives anywhere."""
    told = []

    def impatient(stage, done, total):
        told.append((stage, done))
        if stage == "training the generator" and done == 13:
            raise KeyboardInterrupt

    run = kept_in(tmp_path / "kept")
    with pytest.raises(KeyboardInterrupt):
        SEEDED.fit(table, run=replace(run, tell=impatient))
    assert told[-1] == ("training the generator", 13)
    resumed, released = fitted(SEEDED, table, run)
    assert released == STEPS - 10
    pd.testing.assert_frame_equal(resumed, fitted(SEEDED, table, Run(seed=3))[0])


def test_a_fit_that_dies_while_it_counts_repeats_seeded_noise(
    table, tmp_path, monkeypatch
):
    """Noise of a seed that went on from the beginning of its stream would be that of other questions."""
    whole, _ = fitted(SEEDED, table, Run(seed=3))
    honest, asked = Noise.on_counts, []

    def dying(noise, counts, deviation):
        if type(noise) is Noise:
            if len(asked) == 2:
                raise KeyboardInterrupt
            asked.append(counts)
        return honest(noise, counts, deviation)

    run = kept_in(tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(Noise, "on_counts", dying)
        with pytest.raises(KeyboardInterrupt):
            SEEDED.fit(table, run=run)
    pd.testing.assert_frame_equal(fitted(SEEDED, table, run)[0], whole)


def test_no_step_is_drawn_twice_that_anything_comes_from(table, tmp_path):
    """Secret noise: of the steps before the interruption only those of finished chunks count, and these are not made again."""
    run = kept_in(tmp_path / "kept")
    fitted(QUICK, table, run, dies_at=17)
    made, released = fitted(QUICK, table, run)
    assert released == STEPS - 10
    # Killed after the training, while the table is audited: nothing is drawn, and the same rows come out.
    again, released = fitted(QUICK, table, run)
    assert released == 0
    pd.testing.assert_frame_equal(again, made)
    # Rows and constraints ask the records nothing.
    other, released = fitted(replace(QUICK, rows=60, constraints=("age >= 30",)), table, run)  # fmt: skip
    assert released == 0
    assert len(other) == 60
    # The twin: without a store all steps are made, with noise of their own.
    fresh, released = fitted(QUICK, table, Run(seed=3))
    assert released == STEPS
    assert not fresh.equals(made)


def test_chunks_of_other_fits_are_not_continued(table, tmp_path):
    """Other records, other noise, another seed; and a chunk that another process has replaced."""
    run = kept_in(tmp_path / "kept")
    fitted(QUICK, table, run)
    louder = replace(QUICK, noise_multiplier=0.7)
    fewer = table.take(np.arange(399))
    other_seed = replace(run, seed=4)
    for recipe, records, where in ((louder, table, run), (QUICK, fewer, run), (QUICK, table, other_seed)):  # fmt: skip
        assert fitted(recipe, records, where)[1] == STEPS
    alone = kept_in(tmp_path / "alone")
    fitted(QUICK, table, alone)
    # Two looks at age and three histograms come before the first chunk.
    (first,) = alone.store.folder.glob("noisy_answers-5-*.stage")
    first.unlink()
    assert fitted(QUICK, table, alone)[1] == STEPS


def test_what_is_kept_is_for_the_owner_and_holds_no_state_of_secret_noise(
    table, tmp_path, monkeypatch
):
    folder = tmp_path / "kept"
    with monkeypatch.context() as patch:
        mortal = Mortal(patch)
        QUICK.fit(table, run=kept_in(folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.glob("*.stage"))
    assert len(files) == 5 + 3
    exact = [part.tobytes() for sums in mortal.released for part in sums if part.size > 1]  # fmt: skip
    chunks = []
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        content = file.read_bytes()
        assert not any(pattern in content for pattern in exact)
        if b"Checkpoint" in content:
            chunks.append(unpack(Checkpoint, content[32:]))
    assert sorted(chunk.players.step for chunk in chunks) == [10, 20, 25]
    assert {chunk.noise for chunk in chunks} == {""}
    # The state that is kept is that of the fakes alone.
    assert all(json.loads(c.fakes)["bit_generator"] == "PCG64" for c in chunks)


def test_chunks_are_neither_long_nor_many(monkeypatch):
    monkeypatch.undo()
    assert steps_per_chunk(10) == 50
    for steps in (1_000, 33_333, 1_000_000):
        assert steps / steps_per_chunk(steps) <= 100
