"""What to do next: commands that can be run, and nothing promised that was not tried."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
import made

from reticent.evidence import FileEvidence, FoundInFile, privacy_from_accuracy
from reticent.pipeline import AuditPlan
from reticent.pipeline._advice import (
    advantage_that_keeps,
    gap_of_missing,
    remedies,
)
from reticent.train import parse_trainer, remedies_of_parameters

FOREST = "sklearn.ensemble.RandomForestClassifier(n_estimators=30)"
TYPED = (
    "audit", "people.csv", "--target", "ill", "--trainer", FOREST,
    "--pool", "0", "--unit=person",
)  # fmt: skip


def plan(trainer=FOREST, *, arguments=TYPED, **changes):
    return AuditPlan(
        trainer=parse_trainer(trainer),
        repeat=shlex.join(["reticent", *arguments]),
        arguments=arguments,
        **changes,
    )


def remedies_of(trainer):
    trainer = parse_trainer(trainer)
    return remedies_of_parameters(trainer.parameters(), trainer.recipe)


@pytest.mark.parametrize(
    ("trainer", "says", "recipe"),
    [
        (FOREST, "larger leaves", "RandomForestClassifier(n_estimators=30, min_samples_leaf=20)"),
        ("sklearn.linear_model.LogisticRegression(C=5.0)", "stronger regularisation", "LogisticRegression(C=0.5)"),
        ("sklearn.linear_model.RidgeClassifier", "stronger regularisation", "RidgeClassifier(alpha=10.0)"),
        ("sklearn.ensemble.HistGradientBoostingClassifier(min_samples_leaf=30)", "larger leaves", "min_samples_leaf=120"),
        ("reticent.Network(hidden=[8], epochs=40)", "fewer epochs", "epochs=20"),
    ],
)  # fmt: skip
def test_a_remedy_is_the_same_recipe_with_one_change_and_can_be_parsed(
    trainer, says, recipe
):
    first = remedies_of(trainer)[0]
    assert first.words == says
    assert recipe in first.recipe
    assert parse_trainer(first.recipe).recipe == first.recipe


def test_a_recipe_without_known_parameters_gets_no_remedy():
    assert remedies_of("sklearn.naive_bayes.GaussianNB()") == ()


def test_the_command_of_a_remedy_is_the_audit_with_another_trainer():
    step = remedies(plan())[0]
    assert step.startswith("Possible, not tried: larger leaves: ")
    command = shlex.split(step.partition("leaves: ")[2])
    assert command[:4] == ["reticent", "audit", "people.csv", "--target"]
    assert command.count("--trainer") == 1
    assert "min_samples_leaf=20" in command[-1]
    assert "--unit=person" in command


def test_private_training_is_stated_with_the_advantage_that_keeps_the_limit():
    step = remedies(plan())[-2]
    assert "utility not tried" in step
    train = shlex.split(step.partition(": ")[2].partition(" and then ")[0])
    assert train[:3] == ["reticent", "train", "people.csv"]
    assert "--trainer" not in train
    advantage = float(train[train.index("--advantage") + 1])
    # By the trade-off curve of a Gaussian mechanism, no attack then has a larger area than the limit allows.
    mu = 2 * norm.ppf((1 + advantage) / 2)
    rates = np.linspace(0, 1, 20_001)
    area = np.trapezoid(norm.cdf(norm.ppf(rates) + mu), rates)
    assert 2 * (1 - area) >= 0.9
    # Its twin: an advantage of 0.1 looks as if it kept a privacy of 0.9, and does not.
    careless = np.trapezoid(
        norm.cdf(norm.ppf(rates) + 2 * norm.ppf((1 + 0.1) / 2)), rates
    )
    assert 2 * (1 - careless) < 0.87
    assert advantage_that_keeps(0.9) >= advantage


def test_the_last_step_compares_the_defences_around_this_model():
    step = remedies(plan())[-1]
    command = shlex.split(step.rpartition(": ")[2])
    assert command[:3] == ["reticent", "compare", "people.csv"]
    assert command[command.index("--around") + 1] == FOREST
    assert "--unit=person" in command


def test_a_missing_comparison_ends_in_the_command_that_runs_it():
    gap = gap_of_missing(plan(), "lira")
    command = shlex.split(gap.to_settle.partition(": ")[2])
    assert command[-2:] == ["--pool", "8"]
    assert command.count("--pool") == 1
    without = AuditPlan(trainer=None, answers_only=True)
    assert "--trainer" in gap_of_missing(without, "lira").to_settle


def test_in_python_the_step_is_a_call():
    call = f"reticent.audit({FOREST}, X, y, pool=0)"
    asked = plan(arguments=())
    asked = AuditPlan(trainer=asked.trainer, repeat=call)
    assert gap_of_missing(asked, "rmia").to_settle.endswith(
        f"reticent.audit({FOREST}, X, y, pool=8)"
    )
    assert (
        "reticent.audit(sklearn.ensemble.RandomForestClassifier("
        in (remedies(asked)[0])
    )
    assert len(remedies(asked)) == 1  # no command of the command line


def found(*attacks):
    """Return the evidence of a dossier, with attacks of these families and accuracies in place of its own."""
    evidence = made.full().evidence
    model = evidence.attacks[0]

    def attack(name, family, auc):
        accuracy = replace(model.auc, value=auc, low=auc, high=auc)
        return replace(
            model,
            name=name,
            family=family,
            auc=accuracy,
            privacy=privacy_from_accuracy(accuracy),
        )

    return replace(evidence, attacks=tuple(attack(*each) for each in attacks))


READ = ("reader", "reads the file", 0.95)
QUERIED = ("combined_pool", "trains others", 0.52)


def test_what_is_done_about_a_file_comes_first_if_nothing_shows_more():
    clean, queries, *others = remedies(plan(), found(READ, QUERIED))
    command = shlex.split(clean.partition("is left: ")[2])
    assert command[:2] == ["reticent", "audit"]
    assert command[-2:] == ["--save-product", "cleaned-product"]
    # A product that was kept as it was trained is cleaned by leaving that wish out.
    kept_as_is = plan(arguments=(*TYPED, "--as-is"))
    assert remedies(kept_as_is, found(READ, QUERIED))[0] == clean
    assert "(combined pool) has a privacy score of 0.960" in queries
    assert tuple(others) == remedies(plan())
    # Answers that break the limit of 0.9 as well are no way out.
    leaking = ("combined_pool", "trains others", 0.8)
    assert remedies(plan(), found(READ, leaking)) == (clean, *others)


def test_a_file_that_was_cleaned_or_shows_less_than_answers_is_not_cleaned_again():
    steps = remedies(plan(cleaned=True), found(READ, QUERIED))
    assert "--save-product" not in str(steps)
    assert "queries only" in steps[0]
    louder = ("lira", "trains others", 0.99)
    assert remedies(plan(), found(READ, louder)) == remedies(plan())


def test_a_model_that_stores_its_records_is_replaced_not_cleaned():
    neighbours = "sklearn.neighbors.KNeighborsClassifier(n_neighbors=400)"
    asked = plan(neighbours, cleaned=True)
    rows = FoundInFile(place="_fit_X", stage="records", members=600, nonmembers=0)
    file = FileEvidence(
        members=600,
        nonmembers=600,
        rows=rows,
        values=None,
        trees=None,
        rare_values=0,
        smallest_group=20,
        long_axes=("_fit_X",),
        parameters=5_000,
        size=40_000,
        unread=(),
    )
    evidence = replace(found(READ, QUERIED), file=file)
    first, *others = remedies(asked, evidence)
    assert "a kind of model that stores no records" in first
    command = shlex.split(first.partition("of its file: ")[2])
    recipe = command[command.index("--trainer") + 1]
    assert parse_trainer(recipe).recipe != neighbours
    assert command.count("--trainer") == 1
    # What lies beside the model is no reason for another one.
    for place in ("training_data.csv.table", "product.skops:(comment).table", "x.npy"):
        beside = replace(file, rows=replace(rows, place=place))
        first, *_ = remedies(asked, replace(evidence, file=beside))
        assert (
            first
            == f"Take out of the product what is no part of the model: {place}. Then audit what is left."
        )
    # Coincidences are no records that are stored, and without any the other steps stand alone.
    chance = replace(file, rows=replace(rows, members=30, nonmembers=30))
    assert list(remedies(asked, replace(evidence, file=chance))) == others
