"""Networks on tables: encoding, the trainer's contract, pools that equal single trainings."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

import reticent
from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidSpec
from reticent.pool import balanced_masks
from reticent.product import Encoder
from reticent.testing import check_trainer
from reticent.train import Network, NetworkTrainer, parse_trainer, train_many

RECIPE = "reticent.Network(hidden=[8], epochs=15, optimiser=reticent.SGD(rate=0.1), batch=32)"


def people(n=300, seed=0):
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


def test_the_contract_of_trainers():
    check_trainer(parse_trainer(RECIPE), people())


def test_the_recipe_is_read_and_others_are_refused():
    trainer = parse_trainer(RECIPE)
    assert isinstance(trainer, NetworkTrainer)
    assert trainer.network.hidden in ([8], (8,))
    assert trainer.network.optimiser.rate == 0.1
    with pytest.raises(InvalidSpec, match="does not take these arguments"):
        parse_trainer("reticent.Network(layers=3)")
    with pytest.raises(InvalidInput, match="at least 1"):
        parse_trainer("reticent.Network(epochs=0)")


def test_a_pool_equals_single_trainings():
    """The same members and seed give the same answers, alone or in a pool of any grouping."""
    table = people()
    trainer = NetworkTrainer(network=Network(epochs=5, batch=32), recipe="test")
    masks = balanced_masks(4, table.units, rng=np.random.default_rng(0))
    seeds = np.arange(4)
    pooled = train_many(trainer, table, masks, seeds, workers=1)
    parallel = train_many(trainer, table, masks, seeds, workers=2)
    assert pooled == pytest.approx(parallel, abs=1e-6)
    for k in range(4):
        alone = trainer.train(table.take(np.flatnonzero(masks[k])), seed=k)
        assert alone.predict_proba(table.features) == pytest.approx(pooled[k], abs=1e-5)


def test_other_trainers_make_pools_too():
    table = people()
    trainer = parse_trainer("sklearn.tree.DecisionTreeClassifier(max_depth=3)")
    masks = balanced_masks(4, table.units, rng=np.random.default_rng(0))
    pooled = train_many(trainer, table, masks, np.arange(4), workers=1)
    assert pooled.shape == (4, 300, 2)
    alone = trainer.train(table.take(np.flatnonzero(masks[2])), seed=2)
    assert alone.predict_proba(table.features) == pytest.approx(pooled[2], abs=1e-6)
    with pytest.raises(InvalidInput, match="do not fit"):
        train_many(trainer, table, masks[:, :-1], np.arange(4), workers=1)


def test_a_category_nobody_had_counts_for_nothing():
    table = people()
    known = table.take(np.flatnonzero(table.features["city"] != "Voss"))
    trainer = NetworkTrainer(network=Network(epochs=5), recipe="test")
    product = trainer.train(known, seed=0)
    stranger = table.features.iloc[:5].assign(city="Elsewhere")
    voss = table.features.iloc[:5].assign(city="Voss")
    assert product.predict_proba(stranger) == pytest.approx(product.predict_proba(voss))


def test_what_a_network_sees_of_a_record_lies_in_one_piece():
    """A frame of floats alone is kept by column; gathering its rows would take ten times longer."""
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=list("abc"))
    table = table_from_frame(frame, target=np.array([0, 1, 0, 1]))
    encoder = Encoder.of(table)
    matrix = encoder.matrix(table.features)
    assert matrix.flags.c_contiguous
    assert np.array_equal(matrix, frame.to_numpy())
    assert encoder.width == 3


def test_memory_changes_no_answer():
    table = people()
    trainer = NetworkTrainer(
        network=Network(epochs=5, batch=32, dropout=0.2), recipe="test"
    )
    masks = np.random.default_rng(0).random((4, 300)) < 0.5  # of unequal sizes
    wide, tight = (
        train_many(trainer, table, masks, np.arange(4), workers=1, memory=memory)
        for memory in (2.0, 3e-5)
    )
    assert wide == pytest.approx(tight, abs=1e-5)


def test_without_torch_the_package_is_read_and_says_what_is_missing():
    code = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
import numpy as np
import reticent.cli
from reticent.data import builtin_table
from reticent.errors import InvalidSpec
from reticent.train import parse_trainer, train_many
table, trainer = builtin_table(), parse_trainer("reticent.Network()")
for train in (
    lambda: trainer.train(table, seed=0),
    lambda: train_many(trainer, table, np.ones((1, len(table)), bool), np.arange(1), workers=1),
):
    try:
        train()
    except InvalidSpec as error:
        assert "install reticent[torch]" in str(error)
    else:
        raise AssertionError
"""
    made = subprocess.run([sys.executable, "-c", code], check=False)
    assert made.returncode == 0


@pytest.mark.usefixtures("few_trees")
@pytest.mark.slow
def test_a_network_is_audited_with_a_pool():
    table = people(400)
    trainer = NetworkTrainer(
        network=Network(
            hidden=(64,),
            epochs=150,
            batch=16,
            optimiser=parse_trainer(RECIPE).network.optimiser,
        ),
        recipe="test",
    )
    dossier = reticent.audit(
        trainer,
        table.features,
        np.array(table.classes)[table.target],
        pool=8,
        rounds=1,
        workers=1,
    )
    assert {"rmia", "lira"} <= {attack.name for attack in dossier.evidence.attacks}
    assert all(control.behaved for control in dossier.controls)
