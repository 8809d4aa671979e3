"""Dossiers and identifications of version 0.1 are still read, with every number they had."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import made

from reticent.errors import InvalidInput
from reticent.evidence import Outcome
from reticent.report import Dossier, read_identification, render_html, render_text


@pytest.fixture(scope="module")
def old() -> dict:
    return json.loads(made.VERSION_2.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def dossier() -> Dossier:
    return made.full()


def null_is_infinite(estimate: dict) -> dict:
    return {k: "Infinity" if v is None else v for k, v in estimate.items()}


def test_numbers_are_those_of_the_file(old, dossier):
    written = json.loads(dossier.to_json())
    assert dossier.kind == "classifier"
    for key in ("privacy", "utility"):
        assert written[key] == old[key]
    # What version 0.1 wrote beside the attacks follows from them.
    for key in ("exposed", "tpr_at_fpr", "epsilon"):
        stored, estimate = old["evidence"][key], getattr(dossier.evidence, key)
        assert estimate.value == stored["value"]
        assert estimate.low == stored["low"]
    assert [a.name for a in dossier.evidence.attacks] == [
        a["name"] for a in old["attacks"]
    ]
    for attack, stored in zip(written["attacks"], old["attacks"], strict=True):  # fmt: skip
        assert attack["auc"] == stored["auc"]
        assert attack["epsilon"] == null_is_infinite(stored["epsilon"])
    assert dossier.evidence.utility.baseline == old["evidence"]["guessing_utility"]
    assert dossier.epsilons.proven == old["epsilons"]["honest"]
    assert dossier.epsilons.proven_by == old["epsilons"]["honest_says"]
    assert dossier.watched.epsilons == dossier.epsilons
    assert dossier.provenance.guarantee.epsilon == old["provenance"]["promise"]["epsilon"]  # fmt: skip


def test_families_are_guessed_from_the_old_names(dossier):
    families = {attack.name: attack.family for attack in dossier.evidence.attacks}
    assert families["loss"] == families["quantile"] == "queries"
    assert families["lira"] == families["shadow"] == "trains others"
    assert families["gradient_norm"] == families["learned_white_box"] == "looks inside"
    assert dossier.evidence.predicted_by == "combined_pool"


def test_limits_and_statements_are_rebuilt_from_the_checks(old, dossier):
    for check, written in zip(dossier.decision.limits, old["limits"], strict=True):
        side = check.limit.at_least if written["at_least"] else check.limit.at_most
        assert side == written["limit"]
        assert check.outcome == written["outcome"]
        assert check.text == written["text"]
        statement = dossier.statement(check.measure)
        assert statement.estimate == check.estimate
        assert statement.sentences == {written["outcome"]: written["text"]}
    tpr = dossier.policy.limit("tpr")
    assert (tpr.at_most, tpr.at) == (0.01, {"fpr": 0.001})
    assert dossier.policy.limit("claimed_epsilon") is None
    assert "loss" in dossier.policy.required("classifier")
    claim = dossier.statement("claim_refuted")
    assert claim.own_outcome == Outcome.BROKEN
    assert claim.own_limit.at_most == pytest.approx(dossier.epsilons.claimed)


def test_a_converted_dossier_is_written_as_version_3_and_says_the_same(dossier):
    again = Dossier.from_json(dossier.to_json())
    assert again == dossier
    assert json.loads(dossier.to_json())["schema"] == "reticent-dossier-4"
    assert render_html(again) == render_html(dossier)
    assert render_text(again) == render_text(dossier)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda c: c.pop("evidence"),
        lambda c: c.update(attacks=3),
        lambda c: c["limits"][0].update(name="unheard_of"),
        lambda c: c["policy"]["limits"].update(unheard_of=1.0),
        lambda c: c["evidence"].pop("exposed"),
        lambda c: c["privacy"].pop("level"),
        lambda c: c.update(verdict="MAYBE"),
    ],
)
def test_a_spoiled_file_of_version_2_is_refused_in_one_sentence(old, spoil):
    content = json.loads(json.dumps(old))
    spoil(content)
    with pytest.raises(InvalidInput, match="does not obey its schema") as refused:
        Dossier.from_json(json.dumps(content))
    assert len(str(refused.value)) < 300


def test_an_identification_of_version_1_is_read(old):
    content = {"schema": "reticent-identification-1", **old["watched"]}
    assert read_identification(json.dumps(content)) == made.full().watched


def test_the_file_names_no_path_of_a_machine():
    text = Path(made.VERSION_2).read_text(encoding="utf-8")
    assert "/tmp" not in text
    assert "/home" not in text
