"""Modules of the user on tables: the trainer, its pools and their memory, and its description."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from reticent.data import table_from_frame
from reticent.errors import (
    InvalidInput,
    InvalidPredictions,
    InvalidSpec,
    TrainerFailed,
)
from reticent.pool import balanced_masks
from reticent.testing import check_trainer
from reticent.train import (
    SGD,
    Adam,
    ModuleTrainer,
    Network,
    NetworkTrainer,
    Training,
    parse_trainer,
    train_many,
)
from reticent.train.memory import fitting_size


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def people(n=200, seed=0):
    import pandas as pd

    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 10, n)),
            "city": rng.choice(["Oslo", "Bergen", "Voss"], n),
            "smokes": rng.random(n) < 0.3,
        }
    )
    ill = (frame["age"].fillna(50) + 10 * frame["smokes"] + rng.normal(0, 5, n)) > 55
    return table_from_frame(frame.assign(ill=np.where(ill, "yes", "no")), target="ill")


def small(inputs, classes):
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, classes)
    )


def small_normed(inputs, classes):
    return nn.Sequential(
        nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, classes)
    )


def trainer_of(make, **options):
    training = Training(
        **{"epochs": 5, "batch": 32, "optimiser": Adam(rate=0.01)} | options
    )
    return ModuleTrainer(make=make, training=training, recipe="test")


@pytest.mark.parametrize("make", [small, small_normed])
def test_the_contract_of_trainers(make):
    check_trainer(trainer_of(make, epochs=20), people())


@pytest.mark.parametrize("make", [small, small_normed])
def test_a_pool_equals_single_trainings(make):
    table, trainer = people(), trainer_of(make)
    masks = balanced_masks(4, table.units, rng=np.random.default_rng(0))
    seeds = np.arange(4)
    pooled = train_many(trainer, table, masks, seeds, workers=1)
    tight = train_many(trainer, table, masks, seeds, workers=1, memory=4e-5)
    assert pooled == pytest.approx(tight, abs=1e-5)
    parallel = train_many(trainer, table, masks, seeds, workers=2)
    assert pooled == pytest.approx(parallel, abs=1e-5)
    for k in range(4):
        alone = trainer.train(table.take(np.flatnonzero(masks[k])), seed=k)
        assert alone.predict_proba(table.features) == pytest.approx(pooled[k], abs=1e-5)


def test_a_product_says_that_it_cannot_be_stacked():
    assert trainer_of(small).train(people(), seed=0).warnings == ()
    (warning,) = trainer_of(small_normed).train(people(), seed=0).warnings
    assert warning.startswith("models are trained one by one: the layer '1' is a Batch")


def test_what_the_users_module_raises_is_told():
    def broken(inputs, classes):
        return nn.Sequential(nn.Linear(inputs + 1, classes))

    with pytest.raises(TrainerFailed, match="test raised RuntimeError: mat1 and mat2"):
        trainer_of(broken).train(people(), seed=0)
    masks = np.ones((2, 200), dtype=bool)
    with pytest.raises(TrainerFailed, match="test raised RuntimeError: mat1 and mat2"):
        train_many(trainer_of(broken), people(), masks, np.arange(2), workers=1)


def test_training_that_diverged_is_told():
    wild = trainer_of(small, optimiser=SGD(rate=1e30))
    with pytest.raises(InvalidPredictions, match=r"diverged.*lower the rate"):
        wild.train(people(), seed=0).predict_proba(people().features)


def test_memory_bounds_the_groups():
    table = people()
    masks = np.ones((2, 200), dtype=bool)
    for trainer in (
        trainer_of(small),
        NetworkTrainer(network=Network(epochs=1), recipe="test"),
    ):
        with pytest.raises(
            InvalidInput, match=r"one model takes .* GB, which does not fit"
        ):
            train_many(trainer, table, masks, np.arange(2), workers=1, memory=1e-6)
        with pytest.raises(InvalidInput, match="into which no model fits"):
            train_many(trainer, table, masks, np.arange(2), workers=1, memory=0.0)
    assert fitting_size(25, memory=2.0, each=10**8) == 20
    assert fitting_size(25, memory=20.0, each=10**8) == 25
    assert fitting_size(3, memory=20.0, each=1) == 3
    with pytest.raises(InvalidInput, match=r"allow 0\.1 GB per worker"):
        fitting_size(25, memory=0.05, each=10**8)


@given(each=st.integers(1, 10**12), memory=st.floats(1e-6, 1e4))
def test_groups_stay_within_the_memory_and_the_advice_suffices(each, memory):
    try:
        size = fitting_size(25, each=each, memory=memory)
    except InvalidInput as error:
        memory = float(str(error).partition("allow ")[2].partition(" GB")[0])
        size = fitting_size(25, each=each, memory=memory)
    assert size >= 1
    assert size * each <= memory * 1e9 * (1 + 1e-9)


def test_two_processes_both_have_work_in_a_pool_of_16():
    network = NetworkTrainer(network=Network(), recipe="test")
    assert 16 / network.chunk == 16 / trainer_of(small).chunk == 2


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Return a function that writes a module of the user, importable in this test alone."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(extra=""):
        (tmp_path / "nets_for_a_test.py").write_text(
            "from torch import nn\n"
            "def make(inputs, classes):\n"
            "    return nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Linear(4, classes))\n"
            + extra
        )
        importlib.invalidate_caches()
        sys.modules.pop("nets_for_a_test", None)

    yield write
    sys.modules.pop("nets_for_a_test", None)


def test_a_module_is_described_in_one_line(own_module):
    own_module()
    text = (
        "reticent.Module('nets_for_a_test:make', epochs=20, batch=32, "
        "optimiser=reticent.Adam(rate=0.01), l2=0.001)"
    )
    trainer = parse_trainer(text)
    assert isinstance(trainer, ModuleTrainer)
    assert trainer.recipe == text
    assert trainer.training.batch == 32
    assert trainer.training.optimiser == Adam(rate=0.01)
    check_trainer(trainer, people())
    before = trainer.content()
    assert before.parts
    assert parse_trainer(text).content() == before
    own_module("# changed\n")
    assert parse_trainer(text).content() != before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reticent.Module('no_such_module_here:make')", "cannot be imported"),
        ("reticent.Module('nets_for_a_test:mak')", "nearest match is 'make'"),
        ("reticent.Module('make')", "write it as 'module:function'"),
        ("reticent.Module()", "does not take these arguments"),
        ("reticent.Module('nets_for_a_test:make', hidden=3)", "does not take these"),
        ("reticent.Module('nets_for_a_test:make', epochs=0)", "at least 1"),
    ],
)
def test_bad_descriptions_are_refused(own_module, text, message):
    own_module()
    with pytest.raises(InvalidSpec, match=message):
        parse_trainer(text)


def test_the_package_is_read_without_torch():
    code = (
        "import sys, reticent.train, reticent.cli; "
        "reticent.train.parse_trainer('reticent.Network()'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
