"""Defences compared from end to end: which are tried, which is taken, and who judges it."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import reticent
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.evidence import Outcome
from reticent.pipeline import (
    AuditPlan,
    ComparePlan,
    _defences,
    candidates_of,
    defences_around,
    run_comparison,
    run_repair,
)
from reticent.pipeline._choose import choose, mildest
from reticent.policy import read_policy
from reticent.report import (
    comparison,
    print_comparison,
    read_comparison,
    render_comparison,
)
from reticent.report.comparison import comparison_json
from reticent.run import Effort, Run, Store
from reticent.train import parse_trainer

TREE = "sklearn.tree.DecisionTreeClassifier({})"
PAIR = (TREE.format("max_depth=12"), TREE.format("max_depth=2, min_samples_leaf=40"))


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(
        1200, 8, n_informative=4, flip_y=0.4, class_sep=1.5, random_state=0
    )
    return table_from_frame(X, target=y, name="X")


@pytest.fixture(scope="module")
def report(table):
    plan = ComparePlan(candidates=candidates_of(PAIR), models=8)
    return run_comparison(table, plan, run=Run(seed=0))


def test_a_deep_tree_leaks_more_than_a_shallow_one_and_is_not_taken(report):
    deep, shallow = report.defences
    assert deep.outcome == Outcome.BROKEN
    difference = report.comparison.differences[0]
    # Far beyond chance: the p-value is Holm's, of a paired difference.
    assert difference.privacy.low > 0.1
    assert difference.privacy_p < 1e-2
    assert report.taken in ("", shallow.recipe)
    assert report.status in (0, 3)


def test_the_attacker_runs_the_defence_itself(table):
    """The same defence twice under two names would have the same figures; another seed of the trainer would not."""
    twice = candidates_of([PAIR[0], TREE.format("max_depth=12, ccp_alpha=0.0")])
    plan = ComparePlan(candidates=twice, models=4)
    result = run_comparison(table, plan, run=Run(seed=1))
    a, b = result.comparison.defences
    assert a.auc == b.auc
    assert a.gain == b.gain
    assert result.comparison.differences[0].privacy.value == 0


def test_it_can_be_written_and_read_again_and_shows_no_foreign_markup(report):
    assert read_comparison(comparison_json(report)) == report
    hostile = replace(report, subject={"table": "<script>alert(1)</script>"})
    page = render_comparison(hostile)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    with pytest.raises(InvalidInput, match="compare again"):
        read_comparison(json.dumps({"schema": "other"}))


@pytest.mark.parametrize("width", [80, 130])
def test_intervals_are_printed_whole_on_a_narrow_terminal(report, width):
    console = Console(width=width, file=io.StringIO())
    print_comparison(report, console)
    printed = console.file.getvalue()
    assert "…" not in printed
    for _, evidence in report.pairs():
        for estimate in (evidence.gain, evidence.privacy):
            interval = str(estimate).partition(" ")[2]
            assert interval in printed


def test_defences_in_the_advice_stand_between_quotes(report):
    words = {d.name: "private training, soft labels" for d in report.comparison.defences}  # fmt: skip
    sentence = choose(read_policy("default"), report.comparison, words=words).sentence
    assert "'private training, soft labels'" in sentence


def test_every_family_of_the_usual_set_has_a_colour_of_its_own():
    network = "reticent.Network(hidden=[32], epochs=40)"
    families = {d.family for d in defences_around(network, rows=2000)}
    assert 10 <= len(families) <= len(comparison.COLOURS)
    assert len(set(comparison.COLOURS)) == len(comparison.COLOURS)


def test_finished_models_are_found_again(table, tmp_path, monkeypatch):
    plan = ComparePlan(candidates=candidates_of(PAIR), models=4)
    first = run_comparison(table, plan, run=Run(seed=0, store=Store(folder=tmp_path)))

    def fit(*_, **__):
        raise AssertionError("a model was trained again")

    monkeypatch.setattr(DecisionTreeClassifier, "fit", fit)
    run = Run(seed=0, store=Store(folder=tmp_path))
    assert run_comparison(table, plan, run=run) == first


def test_the_usual_set_has_every_family_that_fits_the_model():
    families = {d.family for d in defences_around(rows=2000)}
    assert {
        "as it is",
        "larger leaves",
        "smaller model",
        "private training",
    } <= families
    boosting = "sklearn.ensemble.HistGradientBoostingClassifier(max_iter=80)"
    changes = {(d.family, d.change) for d in defences_around(boosting, rows=2000)}
    assert ("early stopping", "max_iter = 20") in changes
    linear = defences_around("sklearn.linear_model.LogisticRegression()", rows=2000)
    assert any("C=0.01" in d.trainer.recipe for d in linear)
    network = defences_around("reticent.Network(hidden=[32], epochs=40)", rows=2000)
    recipes = [d.trainer.recipe for d in network]
    assert any("hidden=(8,)" in r for r in recipes)
    assert any("epochs=5" in r for r in recipes)
    assert any("l2=0.01" in r for r in recipes)
    # Three budgets, each with a guarantee that a product of so many rows has.
    private = [d for d in network if d.family == "private training"]
    epsilons = [d.trainer.guarantee(2000).epsilon for d in private]
    assert len(epsilons) == 3
    assert epsilons == sorted(epsilons)
    assert np.allclose(epsilons, [1, 3, 8], rtol=0.02)


@pytest.mark.parametrize(
    ("trainers", "models", "says"),
    [
        (PAIR[:1], 8, "at least two"),
        ((PAIR[0], PAIR[0]), 8, "named twice"),
        (PAIR, 5, "even number"),
        ((PAIR[0], "sklearn.linear_model.LinearRegression()"), 8, "one kind"),
    ],
)
def test_plans_that_make_no_sense_are_refused(trainers, models, says):
    with pytest.raises(InvalidInput, match=says):
        ComparePlan(candidates=candidates_of(trainers), models=models)


def test_limits_decide_what_is_taken(report):
    comparison = report.comparison
    lenient = replace(
        read_policy("default"),
        limits=tuple(
            replace(limit, at_least=0.1)
            for limit in read_policy("default").limits
            if limit.measure == "privacy"
        ),
    )
    choice = choose(lenient, comparison)
    best = max(comparison.defences, key=lambda d: d.gain.value)
    assert choice.name == best.name
    assert choice.exit_status == 0
    impossible = replace(
        lenient,
        limits=(replace(lenient.limits[0], measure="gain", at_least=0.999),),
    )
    refused = choose(impossible, comparison)
    assert (refused.name, refused.exit_status) == ("", 1)
    assert mildest(impossible, comparison) == ""
    assert mildest(lenient, comparison) == best.name


def test_a_repair_is_judged_by_people_who_did_not_choose_it(table, monkeypatch):
    plan = AuditPlan(
        trainer=parse_trainer(PAIR[0]),
        pool=4,
        rounds=1,
        watch=0,
        # One limit, so that a defence is sure to be found.
        policy=replace(
            read_policy("default"),
            limits=(replace(read_policy("default").limit("privacy"), at_least=0.6),),
        ),
    )
    # Without the private trainings, whose noise takes seconds to find.
    monkeypatch.setattr(_defences, "FAMILIES", _defences.FAMILIES[:1])
    run = Run(seed=0, effort=Effort(minutes=0.02))
    repaired = run_repair(table, plan, run=run)
    chose = repaired.comparison.comparison.people
    assert 590 < chose < 610  # one half of the people
    dossier = repaired.result.dossier
    records = dossier.records
    judged = records["defender"] + records["reserved"] + records["auxiliary"]
    assert chose + judged == 1200
    assert repaired.taken != PAIR[0]
    assert any(f.name == "repair" for f in dossier.findings)


def test_a_product_or_a_divided_table_cannot_be_repaired(table):
    plan = AuditPlan(trainer=parse_trainer(PAIR[0]))
    divided = replace(table, parts=np.repeat(["defender", "reserved"], 600))
    with pytest.raises(InvalidInput, match="leave --part out"):
        run_repair(divided, plan, run=Run())


def test_from_python_and_regression():
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = X @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=400)
    both = reticent.compare(
        X, y, [DecisionTreeRegressor(), Ridge()], models=4, workers=1
    )
    tree, ridge = both.comparison.defences
    assert both.kind == "regressor"
    assert ridge.gain.value > tree.gain.value
    assert ridge.privacy.value > tree.privacy.value
    assert "Ridge" in str(both)
