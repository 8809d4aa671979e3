"""The epsilon of soft labels is that of teachers and student together, never the student's."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.account import Composition, PrivateTraining, Relation, Terms, trade_off
from reticent.data import builtin_table
from reticent.train import (
    SGD,
    PerRecord,
    PrivateNetwork,
    RepairedLabels,
    SoftLabels,
    Validated,
    trainer_of,
)
from reticent.train.soft.procedure import guarantee_of_procedure

# The setting of Pedersen's thesis: 400 records, noise 0.5, batches of 20, teachers of 12 epochs, a student of 6. The domain is declared.
TEACHER = PrivateNetwork(hidden=(512, 256, 128), epochs=12, batch=20, noise_multiplier=0.5, domain="declared.toml")  # fmt: skip
STUDENT = replace(TEACHER, epochs=6)
TERMS = Terms(delta=1e-5)


def epsilon(folds, repeats, student=STUDENT, **others):
    soft = SoftLabels(student, teacher=TEACHER, folds=folds, repeats=repeats, **others)
    return guarantee_of_procedure(soft, student, TEACHER, rows=400, terms=TERMS).epsilon


@pytest.mark.parametrize(
    ("folds", "repeats", "expected"), [(2, 25, 290.6), (2, 5, 92.7), (5, 4, 167.9)]
)
def test_epsilon_of_the_procedure_is_that_of_the_composition(folds, repeats, expected):
    """Computed beforehand with the privacy loss distribution, add/remove, delta 1e-5; the student alone has 19.6."""
    stated = epsilon(folds, repeats)
    assert stated == pytest.approx(expected, abs=0.3)
    rows = 400 * (folds - 1) // folds
    teachers = PrivateTraining(noise_multiplier=0.5, sampling_rate=20 / rows, steps=12 * rows // 20)  # fmt: skip
    student = PrivateTraining(noise_multiplier=0.5, sampling_rate=0.05, steps=120)
    both = Composition(parts=((teachers, (folds - 1) * repeats), (student, 1)))
    assert stated == pytest.approx(trade_off(both, grid=1e-3).epsilon(1e-5))
    # The twin: the student alone, which has seen every record once more.
    assert stated > 4 * trade_off(student, grid=1e-3).epsilon(1e-5)


def test_rounds_cost_more():
    assert epsilon(2, 2, rounds=2) == pytest.approx(epsilon(2, 4))


def test_the_trainer_states_it_and_its_numbers_promise_no_more():
    soft = SoftLabels(STUDENT, teacher=TEACHER, folds=2, repeats=5)
    guarantee = trainer_of(soft).guarantee(400)
    assert guarantee.holds
    assert guarantee.delta == 1 / 4000
    assert "10 teachers, 5 of which train on any one record" in guarantee.mechanism
    stated = PrivateTraining(
        noise_multiplier=guarantee.noise_multiplier,
        sampling_rate=guarantee.sampling_rate,
        steps=guarantee.steps,
        relation=Relation.ADD_REMOVE,
    )
    assert trade_off(stated, grid=1e-3).epsilon(guarantee.delta) >= guarantee.epsilon
    assert guarantee.epsilon > 3 * trainer_of(STUDENT).guarantee(400).epsilon


@pytest.mark.parametrize(
    "soft",
    [
        SoftLabels(STUDENT, alpha=PerRecord()),
        SoftLabels(STUDENT, alpha=Validated()),
        RepairedLabels(STUDENT),
        SoftLabels(STUDENT, teacher="sklearn.linear_model.LogisticRegression()"),
    ],
    ids=["median", "validated", "repaired", "teachers without noise"],
)
def test_what_reads_all_records_without_noise_guarantees_nothing(soft):
    assert trainer_of(soft).guarantee(400) is None


def test_a_number_in_place_of_the_median_keeps_the_guarantee():
    soft = SoftLabels(STUDENT, alpha=PerRecord(reference=2.0), folds=2, repeats=2)
    assert trainer_of(soft).guarantee(400).holds


def test_seeded_noise_anywhere_voids_it():
    for student, teacher in ((STUDENT, TEACHER), (TEACHER, STUDENT)):
        soft = SoftLabels(
            student, teacher=replace(teacher, noise="seeded"), folds=2, repeats=2
        )
        trainer = trainer_of(soft)
        guarantee = trainer.guarantee(400)
        assert not guarantee.holds
        assert "seed" in guarantee.caveats[0]


def test_a_person_with_several_rows_is_told():
    recipe = replace(STUDENT, noise_multiplier=4.0, epochs=1)
    soft = SoftLabels(recipe, folds=2, repeats=2)
    one, several = (
        guarantee_of_procedure(soft, recipe, recipe, rows=400, terms=TERMS, largest_unit=size)
        for size in (1, 3)
    )  # fmt: skip
    assert one.epsilon == several.epsilon
    assert not one.caveats
    assert "a person has up to 3" in several.caveats[0]


def test_secret_teachers_and_secret_parts(monkeypatch):
    """A product is trained with secret noise in its teachers, and so never twice the same; pools repeat themselves."""
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    table = builtin_table()
    recipe = PrivateNetwork(hidden=(4,), epochs=1, batch=64, optimiser=SGD(rate=0.5))
    trainer = trainer_of(SoftLabels(recipe, folds=2, repeats=2))
    assert not trainer.repeatable
    asked = []
    original = type(trainer.teacher).train
    monkeypatch.setattr(
        type(trainer.teacher),
        "train",
        lambda self, part, *, seed: asked.append((self.private.noise, self.private.rows, len(part)))
        or original(self, part, seed=seed),
    )  # fmt: skip
    one, two = (trainer.train(table, seed=1) for _ in range(2))
    assert asked == [("secret", 221, 221)] * 8
    assert not np.allclose(one.weights[0], two.weights[0])
    masks = np.ones((1, len(table)), dtype=bool)
    pools = [
        trainer.train_many(table, masks, np.array([3]), memory=1.0) for _ in range(2)
    ]
    assert np.array_equal(*pools)
