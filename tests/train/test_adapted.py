"""Domain adaptation as a recipe: a public source teaches the classes, and the defender's labels reach nothing."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.product import Provenance, load_product, save_product
from reticent.testing import check_trainer
from reticent.train import AdaptedModule, parse_trainer, spell, train_many, trainer_of

NETS = (
    "from torch import nn\n"
    "def make(inputs, classes):\n"
    "    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, classes))\n"
)


def people(seed, n, shift=0.0):
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 12, n)
    city = rng.choice(["Bergen", "Oslo"], n)
    ill = age + 6 * (city == "Oslo") + rng.normal(0, 3, n) > 48
    return pd.DataFrame(
        {"age": age + shift, "city": city, "ill": np.where(ill, "yes", "no")}
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets_of_adaptation.py").write_text(NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nets_of_adaptation", raising=False)
    monkeypatch.chdir(tmp_path)
    people(0, 300).to_csv("public.csv", index=False)
    return tmp_path


def recipe(**changes):
    given = {"source": "public.csv", "epochs": 4, "batch": 32, "warm_up": 2}
    return AdaptedModule("nets_of_adaptation:make", **{**given, **changes})


TABLE = table_from_frame(people(1, 200, shift=1.0), target="ill")


def weights(product):
    return [p.detach().numpy() for p in product.module.parameters()]


def test_the_contract_of_trainers(folder):
    trainer = parse_trainer(spell(recipe(epochs=10)))
    check_trainer(trainer, TABLE)
    assert trainer.guarantee(200) is None
    assert trainer.watching() is None
    assert trainer.chunk == 1
    trainer.must_be_storable(TABLE)


def test_labels_of_the_defender_do_not_reach_the_product(folder):
    """Two tables that differ in labels only give the same product, down to the last bit."""
    turned = replace(TABLE, target=1 - TABLE.target)
    one, two = (trainer_of(recipe()).train(t, seed=3) for t in (TABLE, turned))
    for a, b in zip(weights(one), weights(two), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(one.centre, two.centre)
    assert one.classes == two.classes


def test_twin_labels_reach_a_module_that_is_not_adapted_and_records_reach_one_that_is(
    folder,
):
    turned = replace(TABLE, target=1 - TABLE.target)
    plain = parse_trainer('reticent.Module("nets_of_adaptation:make", epochs=4)')
    one, two = (plain.train(t, seed=3) for t in (TABLE, turned))
    assert not np.array_equal(weights(one)[0], weights(two)[0])
    fewer = TABLE.take(np.arange(100))
    one, two = (trainer_of(recipe()).train(t, seed=3) for t in (TABLE, fewer))
    assert not np.array_equal(weights(one)[0], weights(two)[0])


def test_it_is_saved_like_other_modules(folder):
    product = trainer_of(recipe()).train(TABLE, seed=0)
    save_product(folder / "kept", product, Provenance(recipe=spell(recipe())))
    loaded, origin = load_product(folder / "kept", classes=TABLE.classes)
    assert origin.recipe == spell(recipe())
    assert loaded.predict_proba(TABLE.features) == pytest.approx(
        product.predict_proba(TABLE.features), abs=1e-6
    )


def test_a_pool_equals_single_trainings(folder):
    trainer = trainer_of(recipe())
    masks = np.random.default_rng(0).random((3, len(TABLE))) < 0.5
    pooled = train_many(trainer, TABLE, masks, np.arange(3), workers=1)
    for k in range(3):
        alone = trainer.train(TABLE.take(np.flatnonzero(masks[k])), seed=k)
        assert alone.predict_proba(TABLE.features) == pytest.approx(pooled[k], abs=1e-5)


def test_the_source_is_part_of_the_content(folder):
    before = trainer_of(recipe()).content()
    assert trainer_of(recipe()).content() == before
    people(5, 300).to_csv("public.csv", index=False)
    assert trainer_of(recipe()).content() != before


def test_classes_in_another_order_are_the_same_classes(folder):
    frame = people(0, 300)
    frame[["ill", "city", "age"]].to_csv("turned.csv", index=False)
    one, two = (
        trainer_of(recipe(source=source)).train(TABLE, seed=0)
        for source in ("public.csv", "turned.csv")
    )
    assert np.array_equal(weights(one)[0], weights(two)[0])


def with_ages(frame):
    return frame.assign(weight=1.0)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f, {"source": "nowhere.csv"}, "there is no file nowhere.csv"),
        (lambda f: f.drop(columns="ill"), {}, r"but has 0 \(none\)"),
        (with_ages, {}, r"but has 2 \(ill, weight\); name that column with target="),
        (with_ages, {"target": "ill"}, "does not fit the defender's table"),
        (lambda f: f.drop(columns="age"), {}, "does not fit the defender's table"),
        (
            lambda f: f.assign(ill=f["ill"] + "!"),
            {},
            "has the classes no!, yes! but the defender's table has no, yes",
        ),
    ],
)
def test_a_source_that_does_not_fit_is_refused(folder, change, options, message):
    change(people(0, 300)).to_csv("public.csv", index=False)
    trainer = trainer_of(recipe(**options))
    for ask in (
        lambda: trainer.train(TABLE, seed=0),
        lambda: trainer.must_be_storable(TABLE),
    ):
        with pytest.raises(InvalidInput, match=message):
            ask()


def test_another_loss_is_refused():
    with pytest.raises(InvalidInput, match="plain cross-entropy"):
        recipe(label_smoothing=0.1)
