"""Claimed, proven and audited epsilon of synthetic tables: honest and lying generators."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import reticent
from made_tables import people
from reticent.account import Relation
from reticent.audits import SyntheticTableKind
from reticent.data import table_from_frame
from reticent.pipeline import AuditPlan, GivenTables, derive_again
from reticent.pipeline._case import Case
from reticent.pipeline._claims import stated_claims
from reticent.pipeline._reruns import Claimed, run_again
from reticent.policy import Verdict
from reticent.product import SyntheticTable, load_synthetic
from reticent.report import Dossier, render_text
from reticent.run import Run, stream
from reticent.train import MarginalGenerator, generator_of, parse_generator

COUNTING = '''
import numpy as np
import pandas as pd

NOISE = {"honest": 2.0, "lying": 0.02}


def _noisy(frame, rows, seed, deviation):
    """Counts of answers with Laplace noise: epsilon is 1 / deviation for one column."""
    rng = np.random.default_rng(seed)
    yes = (frame["ill"] == "yes").sum() + rng.laplace(0, deviation)
    no = (frame["ill"] != "yes").sum() + rng.laplace(0, deviation)
    share = np.clip(yes, 0, None) / max(np.clip(yes, 0, None) + np.clip(no, 0, None), 1)
    return pd.DataFrame({"ill": np.where(rng.random(rows) < share, "yes", "no")})


def honest(frame, rows, seed):
    return _noisy(frame, rows, seed, NOISE["honest"])


def lying(frame, rows, seed):
    return _noisy(frame, rows, seed, NOISE["lying"])


def nobody_alike(frame, rows, seed):
    if frame.nunique().max() < 3:
        raise ValueError("everybody is alike")
    return frame.sample(rows, replace=True, random_state=seed).reset_index(drop=True)
'''


@pytest.fixture
def counting(tmp_path, monkeypatch):
    (tmp_path / "counting.py").write_text(COUNTING)
    monkeypatch.syspath_prepend(str(tmp_path))


@dataclass(frozen=True, kw_only=True)
class Lying(MarginalGenerator):
    """A recipe that adds a fiftieth of the noise that it states."""

    def train(self, table, *, seed):
        less = {**vars(self), "noise_multiplier": self.noise_multiplier / 50}
        return MarginalGenerator(**less).train(table, seed=seed)


def case_of(columns, generator, *, members=150):
    frame = people(3 * members, stream(0, "test/claims"))[columns]
    parts = np.repeat(["defender", "reserved", "auxiliary"], members)
    table = table_from_frame(frame.assign(part=parts), target=None, part="part")
    of_members = table.take(np.arange(members))
    plan = AuditPlan(
        trainer=generator(of_members),
        product=SyntheticTable(frame),
        of_kind=SyntheticTableKind(),
    )
    return Case.of(table, plan, None, Run())


def shown(case, *, delta, runs=30, relation=Relation.ADD_REMOVE):
    claimed = Claimed(delta=delta, relation=relation)
    return run_again(case, claimed, runs=runs, seconds=None, run=Run())


def named(name):
    return lambda members: parse_generator(
        f"counting:{name}", rows_per_record=1.0, members=members
    )


@pytest.mark.slow
def test_a_function_that_adds_less_noise_than_it_claims_is_refuted(counting):
    """Both claim epsilon 1/2 of pure differential privacy; the second one's is 50."""
    assert shown(case_of(["ill"], named("honest")), delta=0.0).audited.low < 0.5
    lying = shown(case_of(["ill"], named("lying")), delta=0.0)
    assert lying.audited.low > 0.5
    assert lying.audited.low <= lying.ceiling + 1e-9
    assert "without an assumption" in lying.method


@pytest.mark.parametrize(
    "relation",
    [Relation.ADD_REMOVE, pytest.param(Relation.REPLACE, marks=pytest.mark.slow)],
)
def test_a_recipe_that_adds_less_noise_than_it_states_is_refuted(relation):
    columns = ["sex", "smoker", "ill"]

    def recipe(kind):
        return lambda members: generator_of(
            kind(noise_multiplier=3.0), rows_per_record=1.0, members=members
        )

    honest = case_of(columns, recipe(MarginalGenerator))
    terms = reticent.account.Terms(delta=1e-4, relation=relation)
    claim = honest.plan.trainer.table_guarantee(honest.split.defender, terms).epsilon
    settings = {"delta": 1e-4, "runs": 30, "relation": relation}
    assert shown(honest, **settings).audited.low < claim
    lying = shown(case_of(columns, recipe(Lying)), **settings)
    assert lying.audited.low > claim
    assert "Gaussian" in lying.method


def test_a_generator_that_fails_where_all_are_alike_is_run_on_members(counting):
    """It re-emits everybody, so that the person is seen among the members."""
    found = shown(case_of(["age", "ill"], named("nobody_alike")), delta=0.0, runs=20)
    assert "2 neighbouring tables" in found.method


def test_runs_are_left_out_where_there_is_no_time(counting):
    case = case_of(["ill"], named("honest"))
    claimed = Claimed(delta=0.0, relation=Relation.ADD_REMOVE)
    assert run_again(case, claimed, runs=None, seconds=1e-6, run=Run()) is None


def test_a_refuted_claim_is_a_reason_to_refuse_and_is_derived_again(counting):
    rng = stream(0, "test/claimed table")
    made = pd.DataFrame({"ill": rng.choice(["yes", "no"], 150)})
    settings = {
        "synthetic": made,
        "real": people(150, rng)[["ill"]],
        "holdout": people(300, rng)[["ill"]],
        "generator": "counting:lying",
        "claimed_epsilon": 0.5,
        "watch": 30,
        "pool": 0,
        "workers": 1,
    }
    dossier = reticent.audit(**settings)
    assert dossier.verdict == Verdict.REFUSE
    assert any("Running the generator again" in reason for reason in dossier.reasons)
    assert dossier.epsilons.refuted
    assert "tables made of each of 4 neighbouring tables" in render_text(dossier, width=400)  # fmt: skip
    read = Dossier.from_json(dossier.to_json())
    assert not derive_again(read).disagreements
    # Whoever takes the statement out of the file finds it again.
    fewer = tuple(s for s in read.statements if s.measure != "training_refuted")
    assert derive_again(replace(read, statements=fewer)).dossier.verdict == "REFUSE"


def test_the_proof_of_a_synthesized_table_is_worked_out_again_from_its_file(tmp_path):
    """A smaller noise in the file proves a larger epsilon than is claimed there; a recipe that is not known proves nothing."""
    rng = stream(0, "test/own claim")
    real, others = people(400, rng), people(800, rng)
    file = tmp_path / "made.csv"
    made = reticent.synthesize(real, epsilon=2.0, audit=False, out=file)
    side = tmp_path / "made.csv.provenance.json"

    def claims():
        given = GivenTables(synthetic=load_synthetic(file), real=real, holdout=others)
        prepared = given.prepared(seed=0)
        plan = AuditPlan(
            trainer=prepared.generator(None),
            product=prepared.synthetic,
            provenance=prepared.synthetic.provenance,
            of_kind=SyntheticTableKind(),
        )
        case = Case.of(prepared.table, plan, None, Run())
        return stated_claims(case, prepared.table)

    honest = claims()
    assert honest.proven.epsilon == pytest.approx(made.guarantee.epsilon, rel=1e-6)
    assert honest.claim.epsilon == pytest.approx(made.guarantee.epsilon)
    less = re.sub(r"noise_multiplier=[0-9.e-]+", "noise_multiplier=0.3", side.read_text())  # fmt: skip
    side.write_text(less)
    boasting = claims()
    assert boasting.proven.epsilon > 5 * boasting.claim.epsilon
    side.write_text(less.replace("reticent.MarginalGenerator", "other.Generator"))
    unknown = claims()
    assert unknown.proven.epsilon is None
    assert "not known" in unknown.proven.by
