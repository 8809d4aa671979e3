"""Trainers of soft labels: leave-out is leave-out, pools are flattened, and what is taught is what is leaked."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from reticent.data import builtin_table, table_from_frame
from reticent.errors import InvalidSpec
from reticent.pool import balanced_masks, logit_of_truth
from reticent.product import FittedProduct, Trainer, load_product, save_product
from reticent.run import stream
from reticent.testing import check_trainer
from reticent.train import (
    SGD,
    Adam,
    Network,
    PerRecord,
    PlainTrainer,
    RepairedLabels,
    SoftLabels,
    Validated,
    parse_trainer,
    trainer_of,
)
from reticent.train.soft import leave_out, shifted_targets
from reticent.train.soft.folds import folds_of

FALSE_ALARM = 1e-6
TABLE = builtin_table()


class Memory:
    """A classifier that knows the records it has seen by heart, and nothing else."""

    def __init__(self, table):
        keys = map(tuple, table.features.to_numpy())
        self.seen = dict(zip(keys, table.target, strict=True))
        self.classes_ = np.arange(len(table.classes))

    def predict_proba(self, features):
        known = np.full((len(features), len(self.classes_)), 1 / len(self.classes_))
        for i, row in enumerate(map(tuple, features.to_numpy())):
            if row in self.seen:
                known[i] = np.eye(len(self.classes_))[self.seen[row]]
        return known


@dataclass(frozen=True)
class Memoriser(PlainTrainer):
    """A trainer of such classifiers, which counts what it is asked for."""

    recipe: str = "by heart"
    calls: list = field(default_factory=list)

    def train(self, table, *, seed):
        return FittedProduct(estimator=Memory(table), classes=table.classes)

    def train_many(self, table, masks, seeds, *, memory):
        self.calls.append(len(masks))
        return super().train_many(table, masks, seeds, memory=memory)

    def student(self):
        return self


def everyone(table, models=1):
    return np.ones((models, len(table)), dtype=bool)


def test_the_label_of_a_record_never_reaches_what_is_said_of_it():
    """Teachers know their records by heart, so any answer but a shrug comes from the record's own label."""
    trainer = trainer_of(SoftLabels(Memoriser(), alpha=0.0, repeats=3))
    targets = trainer._targets(TABLE, everyone(TABLE), np.array([1]), memory=1.0)
    assert targets[0] == pytest.approx(0.5)


def test_records_of_one_person_are_left_out_together():
    twice = TABLE.take(np.repeat(np.arange(60), 2))
    trainer = trainer_of(SoftLabels(Memoriser(), alpha=0.0, repeats=3))
    targets = trainer._targets(twice, everyone(twice), np.array([1]), memory=1.0)
    assert targets[0] == pytest.approx(0.5)
    # The twin: rows taken for people, so that a teacher has seen the other row of the same person.
    rows = replace(twice, units=np.arange(120))
    targets = trainer._targets(rows, everyone(rows), np.array([1]), memory=1.0)
    leaked = targets[0][np.arange(120), rows.target]
    assert np.mean(leaked > 0.9) > 0.5


def test_all_teachers_of_all_models_are_trained_in_one_call():
    inner = Memoriser()
    trainer = trainer_of(SoftLabels(inner, folds=2, repeats=3))
    masks = balanced_masks(4, TABLE.units, rng=stream(0, "masks"))
    seeds = np.arange(4)
    whole = trainer._targets(TABLE, masks, seeds, memory=1.0)
    assert inner.calls == [4 * 6]
    each = [
        trainer._targets(TABLE, masks[k : k + 1], seeds[k : k + 1], memory=1.0)[0]
        for k in range(4)
    ]
    assert np.array_equal(whole, each)
    assert not whole[
        ~masks
    ].any()  # nothing is said of records that a model does not see


NETWORK = Network(hidden=(8,), epochs=20, batch=32, optimiser=SGD(rate=0.1))


def test_the_procedure_equals_its_steps_one_by_one(seed):
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    trainer = trainer_of(SoftLabels(NETWORK, alpha=0.5, folds=3, repeats=2))
    product = trainer.train(TABLE, seed=seed)
    inner = trainer_of(NETWORK)
    rng = stream(seed, "soft_labels/folds/0")
    seeds = stream(seed, "soft_labels/teachers/0").integers(2**31 - 1, size=6)
    answers, taught = [], []
    for repeat in range(2):
        parts = folds_of(TABLE, 3, rng=rng, stratified=True)
        for part in range(3):
            rows = np.flatnonzero(parts != part)
            teacher = inner.train(TABLE.take(rows), seed=int(seeds[3 * repeat + part]))
            answers.append(teacher.predict_proba(TABLE.features))
            taught.append(parts != part)
    said = leave_out(np.array(answers), np.array(taught), TABLE.target, floor=1e-3)
    targets = shifted_targets(said, 0.5)
    student = inner.train_on(TABLE, targets, seed=seed)
    apart = product.predict_proba(TABLE.features) - student.predict_proba(
        TABLE.features
    )
    assert abs(apart).max() < 1e-4
    hard = inner.train(TABLE, seed=seed).predict_proba(TABLE.features)
    assert abs(product.predict_proba(TABLE.features) - hard).max() > 0.01


def test_a_network_with_soft_labels_keeps_the_contract():
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    trainer = trainer_of(SoftLabels(NETWORK, repeats=2))
    others = [
        SoftLabels(NETWORK, repeats=3),
        SoftLabels(NETWORK, repeats=2, folds=4),
        SoftLabels(NETWORK, repeats=2, alpha=0.25),
        SoftLabels(NETWORK, repeats=2, alpha=PerRecord()),
        SoftLabels(NETWORK, repeats=2, mixture=True),
        SoftLabels(NETWORK, repeats=2, rounds=2),
        SoftLabels(NETWORK, repeats=2, floor=1e-4),
        SoftLabels(NETWORK, repeats=2, teacher=replace(NETWORK, epochs=10)),
        SoftLabels(replace(NETWORK, epochs=10), repeats=2),
        RepairedLabels(NETWORK, repeats=2),
    ]
    check_trainer(trainer, TABLE, others=[trainer_of(other) for other in others])
    assert trainer.guarantee(400) is None
    assert trainer.watching() is None


def test_alpha_is_validated_anew_for_each_model(seed):
    """Against the same choice made by hand: the whole procedure without each fold, for each alpha."""
    rule = Validated(alphas=(1.0, 0.0), folds=2)
    tree = DecisionTreeClassifier(max_depth=4)
    trainer = trainer_of(SoftLabels(tree, alpha=rule, folds=2, repeats=2))
    masks = balanced_masks(2, TABLE.units, rng=stream(seed, "masks"))
    models = trainer.train_many(TABLE, masks, np.array([5, 6]), memory=1.0)
    for k in range(2):
        rows = np.flatnonzero(masks[k])
        part = TABLE.take(rows)
        fold = folds_of(
            part, 2, rng=stream(5 + k, "soft_labels/validation"), stratified=True
        )
        errors = {}
        for alpha in (0.0, 1.0):
            fixed = trainer_of(SoftLabels(tree, alpha=alpha, folds=2, repeats=2))
            wrong = []
            for out in range(2):
                name = f"soft_labels/validation/{out}"
                drawn = int(stream(5 + k, name).integers(2**31 - 1))
                product = fixed.train(
                    part.take(np.flatnonzero(fold != out)), seed=drawn
                )
                left = part.take(np.flatnonzero(fold == out))
                answers = product.predict_proba(left.features).argmax(axis=1)
                wrong.append(answers != left.target)
            errors[alpha] = np.concatenate(wrong).mean()
        chosen = min(errors, key=lambda alpha: (errors[alpha], alpha))
        fixed = trainer_of(SoftLabels(tree, alpha=chosen, folds=2, repeats=2))
        again = fixed.train(part, seed=5 + k).predict_proba(TABLE.features)
        assert np.allclose(models[k], again)


def test_a_second_round_teaches_what_the_first_one_said():
    tree = DecisionTreeClassifier(max_depth=4)
    one, two = (
        trainer_of(SoftLabels(tree, folds=2, repeats=2, rounds=rounds))
        for rounds in (1, 2)
    )
    first = one._targets(TABLE, everyone(TABLE), np.array([1]), memory=1.0)
    second = two._targets(TABLE, everyone(TABLE), np.array([1]), memory=1.0)
    assert abs(first - second).max() > 0.05
    check = two.train_many(TABLE, everyone(TABLE), np.array([1]), memory=1.0)
    alone = two.train(TABLE, seed=1).predict_proba(TABLE.features)
    assert np.allclose(check[0], alone)


def test_a_quantity_is_taught_as_others_see_it():
    table = builtin_table()
    X = table.features.assign(y=np.arange(len(table)) % 7 + table.features["bmi"])
    people = table_from_frame(X, target="y", quantity=True)
    check_trainer(
        trainer_of(SoftLabels("sklearn.linear_model.Ridge()", folds=2, repeats=2)),
        people,
    )
    with pytest.raises(InvalidSpec, match="only labels of classes can be repaired"):
        trainer_of(RepairedLabels("sklearn.linear_model.Ridge()"))


def test_recipes_are_read_again_from_their_text():
    for recipe in (
        SoftLabels(NETWORK, alpha=PerRecord(tau=0.25), teacher=Network(epochs=40)),
        SoftLabels(LogisticRegression(C=0.5), alpha=Validated(alphas=[0, 1])),
        RepairedLabels("sklearn.tree.DecisionTreeClassifier(max_depth=3)"),
    ):
        trainer = trainer_of(recipe)
        again = parse_trainer(trainer.recipe)
        assert isinstance(again, Trainer)
        assert again.content() == parse_trainer(again.recipe).content()
        assert type(again.soft) is type(recipe)
        assert again.soft.folds == recipe.folds
    trainer = trainer_of(SoftLabels(NETWORK, alpha=0.25))
    assert parse_trainer(trainer.recipe).content() == trainer.content()


def test_a_saved_forest_of_soft_labels_answers_as_before(tmp_path):
    from reticent.product import Provenance

    text = "SoftLabels(RandomForestClassifier(n_estimators=5), alpha=0.5, repeats=2)"
    trainer = parse_trainer(text)
    product = trainer.train(TABLE, seed=1)
    save_product(tmp_path, product, Provenance(recipe=trainer.recipe))
    loaded, provenance = load_product(tmp_path, classes=TABLE.classes)
    assert np.array_equal(
        loaded.predict_proba(TABLE.features), product.predict_proba(TABLE.features)
    )
    assert provenance.recipe.startswith("reticent.SoftLabels(sklearn.ensemble.Random")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KNeighborsClassifier()", "takes hard labels only"),
        ("sklearn.calibration.CalibratedClassifierCV()", "cv"),
        ("RandomForestClassifier(class_weight='balanced')", "class_weight"),
    ],
)
def test_what_takes_hard_labels_only_is_refused_in_one_sentence(text, message):
    with pytest.raises(InvalidSpec, match=message) as caught:
        parse_trainer(f"reticent.SoftLabels({text})")
    assert "\n" not in str(caught.value)


def test_a_trainer_of_ones_own_says_how_to_allow_soft_labels():
    @dataclass(frozen=True)
    class Own(PlainTrainer):
        recipe: str = "mine"

        def train(self, table, *, seed):
            return FittedProduct(estimator=Memory(table), classes=table.classes)

    with pytest.raises(InvalidSpec, match=r"mine takes hard labels only.*student"):
        trainer_of(SoftLabels(Own()))


# --- What it is for


def noisy(seed, records=240, columns=30, wrong=0.4):
    """Return a table of which 40 % of labels are wrong, which a wide network learns by heart."""
    rng = stream(seed, "soft/noisy")
    X = rng.normal(size=(records, columns))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(records) < wrong)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(columns)])
    return table_from_frame(frame.assign(y=y.astype(int)), target="y")


def attack_auc(trainer, table, seed, models=12):
    """Return the AUC of a likelihood attack on each model of a pool, by what the other models say of each record."""
    masks = balanced_masks(models, table.units, rng=stream(seed, "soft/masks"))
    answers = trainer.train_many(table, masks, np.arange(models), memory=1.0)
    logits = logit_of_truth(answers, table.target)
    aucs = []
    for m in range(models):
        others = np.arange(models) // 2 != m // 2  # a model and its complement apart
        out = ~masks[others]
        usual = (logits[others] * out).sum(axis=0) / out.sum(axis=0)
        ranks = rankdata(logits[m] - usual)
        inside = masks[m]
        k, n = inside.sum(), len(inside)
        aucs.append((ranks[inside].sum() - k * (k + 1) / 2) / (k * (n - k)))
    return np.array(aucs)


def test_soft_labels_hide_what_hard_labels_and_knowing_teachers_show(seed, monkeypatch):
    """The attack's AUC falls; distilled from teachers that saw the record it does not.

    The standard error of an AUC of 120 members and 120 others is below 0.037, and that of a mean over models is not larger, however
    they depend on each other; 0.26 is five of them for a difference of two.
    """
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    table = noisy(seed)
    network = Network(hidden=(64,), epochs=80, batch=40, optimiser=Adam(rate=0.005))
    tolerance = norm.isf(FALSE_ALARM) * 0.037 * 2**0.5
    hard = attack_auc(trainer_of(network), table, seed).mean()
    defended = trainer_of(SoftLabels(network, alpha=0.0, repeats=2))
    soft = attack_auc(defended, table, seed).mean()
    assert hard - soft > tolerance
    monkeypatch.setattr(
        "reticent.train.soft.trainer.leave_out",
        lambda answers, taught, labels, floor: leave_out(
            answers, ~taught, labels, floor=floor
        ),
    )
    distilled = attack_auc(defended, table, seed).mean()
    assert distilled - soft > tolerance
    assert hard - distilled < tolerance / 2
