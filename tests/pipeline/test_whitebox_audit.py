"""Audits of products that can be opened: white-box attacks beside the others, controls, kept stages."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from reticent.attack import Challenge, GradientNorm, LearnedWhiteBox, Loss
from reticent.audits import CLASSIFIER
from reticent.data import table_from_frame
from reticent.errors import InvalidInput
from reticent.pipeline import AuditPlan, divide, run_audit
from reticent.policy import read_policy
from reticent.product import Internals
from reticent.report import render_html, render_text
from reticent.run import Effort, Run, Store
from reticent.train import (
    Adam,
    EstimatorTrainer,
    Network,
    NetworkTrainer,
    trainer_of,
)

pytest.importorskip("torch")

INSIDE = (GradientNorm(), LearnedWhiteBox())
NAMES = {attack.name for attack in INSIDE}
QUICKLY = Run(effort=Effort(minutes=0.01))


@dataclass(frozen=True)
class Counted:
    """A trainer of overfitted networks that counts what it trains."""

    trained: list[int]
    recipe: str = "counted"

    def train(self, table, *, seed):
        self.trained.append(len(table))
        network = Network(hidden=(48,), epochs=40, batch=32, optimiser=Adam(rate=1e-2))
        return NetworkTrainer(network=network, recipe="x").train(table, seed=seed)


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(500, n_features=12, flip_y=0.3, random_state=0)
    return table_from_frame(pd.DataFrame(X).add_prefix("x"), target=y)


def plan_of(trainer, **changed):
    plan = {"attacks": (Loss(), *INSIDE), "rounds": 1, "pool": 0}
    names = [attack.name for attack in (plan | changed)["attacks"]]
    required = {"any": ("gradient_norm", *names)}
    policy = replace(read_policy("default"), required_attacks=required)
    return AuditPlan(trainer=trainer_of(trainer), policy=policy, **(plan | changed))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    store = Store(folder=tmp_path_factory.mktemp("audit") / "kept")
    return replace(QUICKLY, store=store)


@pytest.fixture(scope="module")
def audited(table, kept):
    return run_audit(table, plan_of(Counted([])), run=kept)


def test_a_network_is_also_attacked_from_inside(audited):
    dossier = audited.dossier
    by_name = {attack.name: attack for attack in dossier.evidence.attacks}
    assert set(by_name) == {"loss", *NAMES}
    for name in NAMES:
        assert by_name[name].auc.low > 0.5
    assert "which was not run" not in " ".join(dossier.reasons)


def test_controls_are_attacked_from_inside_too(audited):
    memorising, unrelated = audited.dossier.controls
    assert memorising.behaved
    assert "caught by 3 of 3 attacks" in memorising.text
    assert unrelated.behaved
    assert "trained on unrelated records" in unrelated.text


def test_a_product_that_looks_records_up_has_the_gradient_of_its_table():
    """The same by autograd: a row of logits a record, of which one is asked for."""
    import torch

    labels, known = np.array([0, 1, 2, 0]), np.array([True, True, False, False])
    vague = np.full((4, 3), 1 / 3)
    inside = Internals(
        losses=-np.log(vague[:, 0]),
        gradient_norms=np.ones((4, 2)),
        layers=("a", "b"),
        activations=np.ones((4, 1), dtype=np.float32),
    )
    asked = Challenge(probabilities=vague, labels=labels, internals=inside)
    memorised = CLASSIFIER.memorised(asked, known)
    answers, seen = memorised.probabilities, memorised.internals
    logits = torch.from_numpy(np.log(answers.clip(1e-30))).requires_grad_()
    loss = torch.nn.functional.cross_entropy(
        logits, torch.from_numpy(labels), reduction="none"
    )
    (slopes,) = torch.autograd.grad(loss.sum(), logits)
    assert seen.layers == ("a", "b")
    for layer in seen.gradient_norms.T:
        assert layer == pytest.approx(slopes.norm(dim=1).numpy())
    assert seen.losses == pytest.approx(loss.detach().numpy())


def test_an_interrupted_audit_goes_on_with_what_it_saw_inside(table, audited, kept):
    trainer = Counted([])
    again = run_audit(table, plan_of(trainer), run=kept).dossier
    assert again.to_json() == audited.dossier.to_json()
    assert trainer.trained == []


def test_without_other_records_the_control_is_one_half_of_the_non_members(table):
    parts = np.repeat(["defender", "reserved"], 250)
    apart = table_from_frame(table.features, target=table.target, part=parts)
    plan = plan_of(Counted([]), attacks=(*INSIDE, GradientNorm(layer="output")))
    dossier = run_audit(apart, plan, run=QUICKLY).dossier
    names = [attack.name for attack in dossier.evidence.attacks]
    assert names == ["gradient_norm", "learned_white_box", "gradient_norm_output"]
    assert "half of the non-members" in dossier.controls[1].text
    assert all(control.behaved for control in dossier.controls)


def test_a_control_that_cannot_be_opened_gives_way_to_one_that_can(table):
    """The product is a network, the trainer that came with it makes trees."""
    trainer = EstimatorTrainer.of(DecisionTreeClassifier(max_depth=3), preprocess=False)
    plan = plan_of(
        trainer, product=Counted([]).train(divide(table, seed=0).defender, seed=0)
    )
    dossier = run_audit(table, plan, run=QUICKLY).dossier
    assert "half of the non-members" in dossier.controls[1].text
    assert {attack.name for attack in dossier.evidence.attacks} > NAMES


def test_a_product_that_cannot_be_opened_is_attacked_from_outside_alone(table):
    trainer = EstimatorTrainer.of(DecisionTreeClassifier(max_depth=3), preprocess=False)
    dossier = run_audit(table, plan_of(trainer), run=QUICKLY).dossier
    assert {attack.name for attack in dossier.evidence.attacks} == {"loss"}
    assert "gradient_norm" in " ".join([*dossier.reasons, *dossier.decision.next_steps])
    with pytest.raises(InvalidInput, match="no attack could be run"):
        run_audit(table, plan_of(trainer, attacks=(GradientNorm(),)), run=QUICKLY)


def test_reports_say_that_the_attacker_looked_inside(audited):
    dossier = audited.dossier
    assert "queries the model and looks inside it" in dossier.summary[0]
    assert "learned white box" in render_text(dossier)
    page = render_html(dossier)
    assert "other attacks that look inside" in page
    assert "queries the model and looks inside it" in page
    outside = tuple(a for a in dossier.evidence.attacks if a.name not in NAMES)
    bare = replace(dossier, evidence=replace(dossier.evidence, attacks=outside))
    assert "other attacks that look inside" not in render_html(bare)
