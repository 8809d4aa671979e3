"""The test of the design: an attack, a trainer, a measure and a section from outside, each one file, found in verdict and report."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import reticent
from made_tables import people, resampled
from reticent.errors import InvalidInput, InvalidPolicy
from reticent.policy import Limit, Verdict
from reticent.report import render_html, render_text
from reticent.testing import check_attack

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "cli"))
import in_process
from toy_attack import Broken, Margin, Needy
from toy_measure import Loudness
from toy_section import Contact
from toy_table_attack import Oldest
from toy_trainer import Nearest

QUICK = {"rounds": 1, "workers": 1, "pool": 0}


@pytest.fixture(scope="module")
def data():
    return make_classification(600, n_features=6, flip_y=0.3, random_state=0)


@pytest.fixture(scope="module")
def dossier(data):
    return reticent.audit(
        Nearest(),
        *data,
        policy=HERE / "policy.toml",
        attacks=[Margin()],
        measures=[Loudness()],
        sections=[Contact()],
        **QUICK,
    )


def test_all_four_are_found_in_the_verdict(dossier):
    assert dossier.verdict == Verdict.REFUSE
    assert "margin" in {attack.name for attack in dossier.evidence.attacks}
    (check,) = [c for c in dossier.decision.limits if c.measure == "loudness"]
    assert check.outcome == "broken"
    assert any("The loudness is" in reason for reason in dossier.reasons)
    assert dossier.provenance.recipe == "the nearest record's class"


def test_all_four_are_found_in_the_report(dossier):
    page, text = render_html(dossier), render_text(dossier, width=120)
    for report in (page, text):
        assert "margin" in report
        assert "loudness of members" in report
        assert "the nearest record" in report
        assert "Whom to ask" in report
        assert "The steward of 600 records." in report
    # The page escapes what a section of one's own has not marked as HTML.
    assert "<p>The steward" in page


def test_they_survive_the_dossier_but_for_the_section(dossier):
    again = reticent.Dossier.from_json(dossier.to_json())
    assert again == dossier
    assert again.statement("loudness") == dossier.statement("loudness")
    assert "Whom to ask" not in render_html(again)


def test_without_the_measure_the_limit_on_it_is_refused(data):
    with pytest.raises(InvalidPolicy, match="unknown limit 'loudness'"):
        reticent.audit(
            Nearest(),
            *data,
            policy=HERE / "policy.toml",
            attacks=[Margin()],
            **QUICK,
        )


def test_two_attacks_of_one_name_are_refused(data):
    with pytest.raises(InvalidInput, match="two attacks are called 'loss'"):
        reticent.audit(Nearest(), *data, attacks=[Margin(name="loss")], **QUICK)
    with pytest.raises(InvalidInput, match="two attacks are called 'retraining'"):
        reticent.audit(Nearest(), *data, attacks=[Margin(name="retraining")], **QUICK)


def test_an_attack_that_raises_makes_the_audit_inconclusive_and_does_not_end_it():
    """A depth-one tree leaks nothing: released by a policy that so few records can satisfy, if no attack fails."""
    X, y = make_classification(1200, n_features=6, flip_y=0.2, random_state=0)
    tree = DecisionTreeClassifier(max_depth=1)
    lenient = (Limit(measure="privacy", at_least=0.6),)
    policy = replace(reticent.read_policy("default"), limits=lenient)
    plan = QUICK | {"pool": 8, "policy": policy}
    calm = reticent.audit(tree, X, y, **plan)
    assert calm.verdict == Verdict.RELEASE
    failed = reticent.audit(tree, X, y, attacks=[Broken()], **plan)
    assert failed.verdict == Verdict.INCONCLUSIVE
    (failure,) = failed.evidence.failed
    assert (failure.name, failure.why) == ("broken", "KeyError")
    assert "'broken' failed" in failed.reasons[0]
    everything = failed.to_json() + render_html(failed) + render_text(failed)
    assert "Jane Doe" not in everything
    # What an attack lacks is said as well, and counts.
    needy = reticent.audit(tree, X, y, attacks=[Needy()], **plan | {"pool": 0})
    assert needy.verdict == Verdict.INCONCLUSIVE
    assert "synthetic" in needy.evidence.skipped[0].why


def test_an_attack_that_fails_does_not_hide_what_others_found(data):
    dossier = reticent.audit(Nearest(), *data, attacks=[Broken()], **QUICK)
    assert dossier.verdict == Verdict.REFUSE
    assert any("'broken' failed" in reason for reason in dossier.reasons)


def test_the_attack_passes_the_contract():
    check_attack(Margin())


def test_the_command_line_takes_them_by_name(data, tmp_path):
    X, y = data
    frame = pd.DataFrame(np.round(X, 3)).add_prefix("x").assign(outcome=y)
    frame.to_csv(tmp_path / "people.csv", index=False)
    for file in HERE.glob("toy_*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    command = [
        *(sys.executable, "-m", "reticent", "audit", "people.csv"),
        *("--target", "outcome", "--policy", str(HERE / "policy.toml")),
        *("--trainer", "sklearn.tree.DecisionTreeClassifier()"),
        *("--attack", "toy_attack:Margin", "--measure", "toy_measure:Loudness"),
        *("--section", "toy_section:Contact", "--out", "o"),
        *("--rounds", "1", "--workers", "1", "--pool", "0", "--json"),
    ]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    content = json.loads(done.stdout)
    assert "margin" in {attack["name"] for attack in content["attacks"]}
    assert "loudness" in {limit["measure"] for limit in content["limits"]}
    assert "Whom to ask" in (tmp_path / "o" / "report.html").read_text()
    wrong = [w if w != "toy_attack:Margin" else "toy_attack:Margn" for w in command]
    done = in_process.run(*wrong[3:], folder=tmp_path)
    assert done.returncode == 2
    assert "no class 'Margn'; the nearest match is 'Margin'" in done.stderr


def test_an_attack_on_synthetic_tables_is_one_file():
    rng = np.random.default_rng(0)
    real, holdout = people(300, rng), people(600, rng)
    dossier = reticent.audit(
        synthetic=resampled(real, rng),
        real=real,
        holdout=holdout,
        attacks=[Oldest()],
        workers=1,
    )
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    # Ages in days are re-emitted: those of members stand in the table far more often.
    assert by_name["oldest"].auc.low > 0.6
    assert by_name["oldest"].family == "compares rows"
    assert "oldest" in render_text(dossier, width=120)
