"""The second kind of product: regression models, with everything that classifiers have."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score

import reticent
from reticent.data import table_from_frame
from reticent.pipeline import AuditPlan, divide, run_audit
from reticent.policy import Verdict
from reticent.product import load_product, save_product
from reticent.report import Dossier, render_html, render_text
from reticent.train import trainer_of


def made(n, noise=1.0):
    return make_friedman1(n, noise=noise, random_state=0)


@pytest.fixture(scope="module")
def forest():
    X, y = made(900)
    frame = pd.DataFrame(X).add_prefix("x")
    frame["city"] = np.where(X[:, 5] > 0.5, "Oslo", "Bergen")
    table = table_from_frame(
        frame, target=y, quantity=True, group=frame["city"].to_numpy()
    )
    trainer = trainer_of(RandomForestRegressor(30), preprocess=True)
    return table, run_audit(table, AuditPlan(trainer=trainer, pool=8, rounds=8))


def test_a_forest_that_overfits_is_refused_by_the_pool_and_by_its_errors(forest):
    _, result = forest
    dossier = result.dossier
    assert (dossier.kind, dossier.verdict) == ("regressor", Verdict.REFUSE)
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    pooled = {"residual", "gap_t", "rmia_residual", "combined_residual"}
    assert set(by_name) == pooled | {"reader"}
    for attack in by_name.values():
        assert attack.auc.low > 0.5
    # What compares with other models finds more than the error alone.
    assert by_name["combined_residual"].auc.low > by_name["residual"].auc.value
    assert all(control.behaved for control in dossier.controls)


def test_utility_is_r_squared_on_records_the_model_has_not_seen(forest):
    table, result = forest
    utility = result.dossier.evidence.utility
    split = divide(table, seed=0)
    predicted = result.product.predict(split.reserved.features)
    # scikit-learn compares with the mean of the records judged, we with that of the members.
    naive = r2_score(split.reserved.target, predicted)
    assert utility.score.value == pytest.approx(naive, abs=0.01)
    assert utility.score.low < utility.score.value < utility.score.high <= 1
    (skill,) = utility.beside.values()
    assert 0 < skill.low < skill.high < 1
    assert utility.baseline == 0


def test_the_insider_groups_and_the_pool_speak_of_regression_too(forest):
    evidence = forest[1].dossier.evidence
    assert evidence.insider.regimes[0].wins == evidence.insider.regimes[0].rounds
    assert {group.name for group in evidence.groups} == {"Oslo", "Bergen"}
    assert {t.name for t in evidence.pool.targets} == {"rmia_residual", "gap_t"}
    assert evidence.pool.disparity.attack == "gap_t"
    assert evidence.predicted_by == "combined_residual"
    assert {case.feature for case in evidence.worst_case} >= {"absolute error"}
    assert evidence.theorems["theorem_1"] > 0.55


def test_the_report_reads_right_and_the_dossier_survives(forest):
    dossier = forest[1].dossier
    page, text = render_html(dossier), render_text(dossier)
    for report in (page, text):
        assert "always predicting the mean" in report.lower()
        assert "most frequent class" not in report
        assert "combined residual" in report
    assert Dossier.from_json(dossier.to_json()) == dossier
    assert json.loads(dossier.to_json())["kind"] == "regressor"


@pytest.mark.slow
def test_a_ridge_regression_on_many_records_is_released():
    X, y = made(14_000, noise=3.0)
    dossier = reticent.audit(Ridge(), X, y, pool=4, rounds=1, workers=1)
    assert dossier.verdict == Verdict.RELEASE
    assert dossier.privacy.low > 0.9


def test_networks_are_audited_alike():
    pytest.importorskip("torch")
    X, y = made(500)
    network = reticent.Network(hidden=[64], epochs=150, batch=16, quantity=True)
    dossier = reticent.audit(network, X, 1e4 + 1e3 * y, pool=4, rounds=1, workers=1)
    assert dossier.kind == "regressor"
    assert dossier.utility.low > 0
    assert dossier.privacy.high < 1


def test_without_a_pool_quantiles_stand_in():
    X, y = made(300)
    dossier = reticent.audit(Ridge(), X, y, pool=0, rounds=1, workers=1)
    names = [attack.name for attack in dossier.evidence.attacks]
    assert names == ["residual", "quantile_residual", "reader"]


def test_a_saved_regression_model_is_audited_with_the_same_result(forest, tmp_path):
    table, result = forest
    save_product(tmp_path / "p", result.product, result.dossier.provenance)
    product, provenance = load_product(tmp_path / "p", classes=())
    plan = AuditPlan(trainer=None, product=product, provenance=provenance, pool=0)
    again = run_audit(table, plan).dossier
    own = {a.name: a.auc.value for a in result.dossier.evidence.attacks}
    theirs = {a.name: a.auc.value for a in again.evidence.attacks}
    assert theirs["residual"] == own["residual"]
    assert again.utility == result.dossier.utility
