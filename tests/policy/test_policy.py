"""Policies are read strictly, and decide by whole intervals."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.audits import CLASSIFIER, REGRESSOR
from reticent.errors import InvalidPolicy
from reticent.evidence import (
    AttackEvidence,
    Claim,
    Epsilons,
    Estimate,
    Evidence,
    GroupEvidence,
    Histogram,
    InsiderEvidence,
    Measure,
    RegimeEvidence,
    Seen,
    Utility,
)
from reticent.policy import (
    SHIPPED,
    Control,
    Gap,
    Limit,
    Outcome,
    Verdict,
    decide,
    read_policy,
)

MEASURES = CLASSIFIER.measures


def estimate(low, value, high):
    return Estimate(value=value, low=low, high=high, level=0.95, method="test")


GOOD, ZERO = estimate(0.95, 0.98, 1.0), estimate(0.0, 0.0, 0.001)
FEW = estimate(0.04, 0.05, 0.06)
EMPTY = Histogram(edges=(0.0, 1.0), members=(1.0,), nonmembers=(1.0,))


def evidence(**changes):
    """Evidence of a harmless product; scores of attacks are changed by ``auc``, ``tpr`` and ``exposed``."""
    names = ["loss", "confidence", "entropy", "modified_entropy", "learned_outputs"]
    auc = changes.pop("auc", estimate(0.49, 0.5, 0.52))
    tpr, exposed = changes.pop("tpr", ZERO), changes.pop("exposed", FEW)
    attacks = tuple(
        AttackEvidence(
            name=name, family="queries", auc=auc, privacy=GOOD, tpr_at_fpr=tpr, fpr=0.001, exposed=exposed,
            vulnerability=estimate(-0.1, 0.0, 0.1), epsilon=estimate(0.5, 0.5, np.inf), roc=(),
        )
        for name in names
    )  # fmt: skip
    base = Evidence(
        attacks=attacks, utility=useful(0.6, 0.7, 0.8), epsilon_ceiling=5.0, smallest_leak=0.52, members=5000,
        nonmembers=5000, groups=(), insider=None, scores=EMPTY, individual=EMPTY, calibration=None, theorems={},
        worst_case=(), subgroup_aware=None, vulnerability_bound=None, pool=None,
    )  # fmt: skip
    return replace(base, **changes)


def useful(low, value, high):
    return Utility(
        score=estimate(low, value, high),
        definition="",
        baseline=0.2,
        baseline_words="",
        gain=estimate(low, value, high),
        beside={},
    )


def private(low, value, high):
    """Return the LTU accuracy that goes with a privacy score."""
    return {"auc": estimate(1 - high / 2, 1 - value / 2, 1 - low / 2)}


CONTROLS = [
    Control(name="memorising", privacy=ZERO, behaved=True, text="caught"),
    Control(name="unrelated", privacy=GOOD, behaved=True, text="spared", misleads=True),
]
DEFAULT = read_policy("default")


def verdict(changes=None, *, policy=DEFAULT, controls=CONTROLS, stops=(), **seen):
    """Measure made-up evidence, and decide."""
    shown = Seen(
        evidence=evidence(**(changes or {})),
        confidence=policy.confidence,
        statements=policy.statements(MEASURES),
        **seen,
    )
    statements = [
        statement
        for measure in MEASURES
        if (
            statement := measure.measure(
                shown,
                limit=policy.limit(measure.name),
                rng=np.random.default_rng(0),
            )
        )
    ]
    return decide(policy, statements, controls=controls, stops=stops)


def test_release_when_every_limit_is_kept_with_confidence():
    decision = verdict()
    assert decision.verdict == Verdict.RELEASE
    assert decision.exit_status == 0
    assert all(check.outcome == Outcome.KEPT for check in decision.limits)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        (private(0.6, 0.7, 0.89), "privacy"),
        ({"tpr": estimate(0.02, 0.03, 0.05)}, "tpr"),
        ({"exposed": estimate(0.11, 0.2, 0.3)}, "exposed"),
        ({"utility": useful(0.0, 0.05, 0.09)}, "gain"),
    ],
)
def test_refuse_when_a_whole_interval_is_on_the_wrong_side(changes, name):
    decision = verdict(changes)
    assert decision.verdict == Verdict.REFUSE
    assert decision.exit_status == 1
    assert [c.measure for c in decision.limits if c.outcome == Outcome.BROKEN] == [name]
    assert "breaks the limit" in decision.reasons[0]


@pytest.mark.parametrize(
    "changes",
    [
        private(0.8, 0.85, 0.95),  # a point below the limit is not enough
        private(0.85, 0.95, 1.0),
        {"tpr": estimate(0.0, 0.0, 0.05)},
        {"exposed": estimate(0.05, 0.12, 0.2)},
        {"utility": useful(0.05, 0.2, 0.3)},
    ],
)
def test_inconclusive_when_an_interval_straddles_its_limit(changes):
    decision = verdict(changes)
    assert decision.verdict == Verdict.INCONCLUSIVE
    assert decision.exit_status == 3
    assert decision.next_steps


def test_inconclusive_says_how_many_records_would_settle_it():
    steps = verdict(private(0.85, 0.95, 1.0)).next_steps
    assert steps == ("About 40,000 rows (now 10,000) would settle the privacy score.",)
    steps = verdict(
        {"tpr": estimate(0.0, 0.001, 0.05), "members": 300, "nonmembers": 300}
    ).next_steps
    assert "would settle the share of members pointed out" in steps[0]
    near = verdict(private(0.85, 0.9, 0.95)).next_steps
    assert "too near its limit" in near[0]


def test_a_stop_makes_a_broken_privacy_limit_inconclusive_but_not_a_broken_utility():
    shifted = verdict(private(0.5, 0.6, 0.7), stops=["they differ"])
    assert shifted.verdict == Verdict.INCONCLUSIVE
    assert "they differ" in shifted.reasons
    useless = verdict({"utility": useful(0.0, 0.01, 0.02)}, stops=["they differ"])
    assert useless.verdict == Verdict.REFUSE


@pytest.mark.parametrize("which", [0, 1])
def test_a_misbehaving_control_forbids_a_release(which):
    controls = list(CONTROLS)
    controls[which] = replace(controls[which], behaved=False)
    assert verdict(controls=controls).verdict == Verdict.INCONCLUSIVE


def test_a_caught_unrelated_product_forbids_a_refusal_too():
    controls = [CONTROLS[0], replace(CONTROLS[1], behaved=False)]
    broken = private(0.5, 0.6, 0.7)
    assert verdict(broken, controls=controls).verdict == Verdict.INCONCLUSIVE
    assert verdict(broken).verdict == Verdict.REFUSE


def test_a_gap_is_inconclusive_and_says_what_would_fill_it():
    gap = Gap(reason="the attack 'x' failed.", to_settle="Repair it.")
    decision = decide(DEFAULT, [], controls=CONTROLS, gaps=[gap])
    assert decision.verdict == Verdict.INCONCLUSIVE
    assert decision.reasons == ("the attack 'x' failed.",)
    assert decision.next_steps == ("Repair it.",)
    assert decide(DEFAULT, [], controls=CONTROLS).verdict == Verdict.RELEASE


def insider(low, value, high):
    privacy = estimate(low, value, high)
    regime = RegimeEvidence(
        name="original order, seeded", rounds=16, wins=16, privacy=privacy
    )
    return InsiderEvidence(regimes=(regime,), privacy=privacy)


def test_the_default_policy_shows_the_insider_and_the_strict_one_decides_on_it():
    lost = {"insider": insider(0.0, 0.0, 0.5)}
    strict = read_policy("strict")
    assert verdict(lost).verdict == Verdict.RELEASE
    assert verdict(lost, policy=strict).verdict == Verdict.REFUSE
    assert verdict(policy=strict).verdict == Verdict.INCONCLUSIVE
    kept = {"insider": insider(0.92, 0.97, 1.0)}
    assert verdict(kept, policy=strict).verdict == Verdict.RELEASE


def with_limit(measure, **changes):
    limit = Limit(measure=measure, **changes)
    others = tuple(each for each in DEFAULT.limits if each.measure != measure)
    return replace(DEFAULT, limits=(*others, limit))


def claim(epsilon, delta=0.0, relation=""):
    return {"claim": Claim(epsilon=epsilon, delta=delta, relation=relation)}


def proven(epsilon):
    """Return the epsilons of a training that nobody watched."""
    nothing = Estimate(
        value=0.0, low=0.0, high=float("inf"), level=0.95, method="not watched"
    )
    return {
        "epsilons": Epsilons(
            delta=1e-5, relation="add/remove", claimed=epsilon, claimed_by="its maker", proven=epsilon,
            proven_by="its recipe", audited=nothing, ceiling=5.0, method="none",
        )
    }  # fmt: skip


def test_claims_of_epsilon():
    assert verdict(**claim(3.0)).verdict == Verdict.RELEASE
    refuted = verdict(**claim(0.3))
    assert refuted.verdict == Verdict.REFUSE
    assert "refutes the claimed 0.3" in refuted.reasons[0]
    # What the attacks show (0.5) is no refutation of a claim that allows it through its delta.
    allowed = verdict(**claim(0.3, 0.5, "add/remove"))
    assert allowed.verdict == Verdict.RELEASE
    assert any("0.3 (delta 0.5, add/remove)" in reason for reason in allowed.reasons)
    tiny = verdict(**claim(0.3, 1e-9))
    assert tiny.verdict == Verdict.REFUSE
    capped = with_limit("claimed_epsilon", at_most=2.0)
    assert verdict(policy=capped).verdict == Verdict.INCONCLUSIVE
    # A claim alone keeps no limit; one that was worked out from the recipe does, and a larger proven one breaks it.
    said = verdict(policy=capped, **claim(1.0))
    assert said.verdict == Verdict.INCONCLUSIVE
    assert any("nothing here proves it" in reason for reason in said.reasons)
    assert (
        verdict(policy=capped, **claim(1.0), **proven(1.0)).verdict == Verdict.RELEASE
    )
    assert verdict(policy=capped, **claim(8.0)).verdict == Verdict.REFUSE


def test_the_worst_group_decides_when_asked():
    groups = tuple(
        GroupEvidence(
            name=name,
            members=100,
            nonmembers=100,
            privacy=privacy,
            vulnerability=estimate(0.0, 0.1, 0.2),
            worst_case=estimate(0.0, 0.1, 0.2),
        )
        for name, privacy in [("a", GOOD), ("b", estimate(0.3, 0.5, 0.7))]
    )
    asked = with_limit("group_privacy", at_least=0.9)
    assert verdict({"groups": groups}).verdict == Verdict.RELEASE
    decision = verdict({"groups": groups}, policy=asked)
    assert decision.verdict == Verdict.REFUSE
    assert "worst group (b)" in decision.reasons[0]
    assert verdict(policy=asked).verdict == Verdict.INCONCLUSIVE


NAMES = [attack.name for attack in CLASSIFIER.attacks]


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_policies_fit_every_kind(name):
    policy = read_policy(name)
    for kind in (CLASSIFIER, REGRESSOR):
        attacks = [*(a.name for a in kind.attacks), "retraining"]
        policy.check(kind.measures, attacks=attacks, kind=kind.name)
        assert policy.required(kind.name)


def test_statements_that_share_the_confidence_are_counted():
    strict = read_policy("strict")
    assert strict.decides_on == ("outsider", "insider")
    assert "retraining" in strict.required("classifier")
    assert DEFAULT.statements(MEASURES) == 5
    assert strict.statements(MEASURES) == 6
    # A limit on what is stated and not measured shares nothing.
    assert with_limit("claimed_epsilon", at_most=2.0).statements(MEASURES) == 5


def test_a_measure_of_ones_own_is_limited_and_decides():
    """The policy knows no measure: one that it never heard of is judged like its own."""

    class Luck(Measure):
        name, label, better = "luck", "luck", "lower"

        def measure(self, seen, *, limit, rng):
            return self.statement(
                "the luck", estimate(0.4, 0.5, 0.6), limit=limit, seen=seen
            )

    policy = with_limit("luck", at_most=0.3)
    policy.check([*MEASURES, Luck()], attacks=NAMES, kind="classifier")
    seen = Seen(evidence=evidence())
    said = Luck().measure(seen, limit=policy.limit("luck"), rng=None)
    decision = decide(policy, [said], controls=CONTROLS)
    assert decision.verdict == Verdict.REFUSE
    assert decision.reasons == (
        "The luck is 0.50 [0.40, 0.60] and breaks the limit of at most 0.3.",
    )
    allowed = with_limit("luck", at_most=0.7)
    assert decide(allowed, [said], controls=CONTROLS).verdict == Verdict.RELEASE


GOOD_TOML = """
name = "own"
decides_on = ["outsider"]
confidence = 0.9
smallest_group = 10
required_attacks = ["loss"]
[limits.privacy]
at_least = 0.8
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("confidence", "confidense", "unknown key 'confidense'.*'confidence'"),
        ("0.8", '"much"', "not a number"),
        ("0.8", "inf", "can decide nothing"),
        ("0.9", "95", "must lie inside"),
        ('["outsider"]', '["insider"]', "leaves out the outsider"),
        ("smallest_group = 10", "smallest_group = 1", "single people"),
        ("smallest_group = 10", "", "lacks 'smallest_group'"),
        ("name =", "name", "not TOML"),
        ("[limits.privacy]\nat_least = 0.8", "limits = 3", "not a table"),
        ("at_least = 0.8", "", "would release anything"),
        ("at_least = 0.8", "at_least = 0.8\nat_most = 0.9", "both at_least"),
        ('["loss"]', "[]", "would release anything"),
        ('["loss"]', '"loss"', "write a list"),
        (
            "[limits.privacy]\nat_least = 0.8",
            "[limits]\nprivacy_at_least = 0.8\ntpr_at_most = 0.01",
            r"version 0.1.*\[limits.privacy\] at_least = 0.8; \[limits.tpr\] at_most = 0.01",
        ),
    ],
)
def test_a_faulty_policy_is_refused(tmp_path, old, new, message):
    file = tmp_path / "policy.toml"
    file.write_text(GOOD_TOML)
    assert read_policy(file).limits == (Limit(measure="privacy", at_least=0.8),)
    file.write_text(GOOD_TOML.replace(old, new, 1))
    with pytest.raises(InvalidPolicy, match=message):
        read_policy(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limits.privacy", "limits.privcy", "unknown limit 'privcy'.*'privacy'"),
        ("0.8", "1.8", "outside"),
        ("at_least", "at_most", "wrong side"),
        ("at_least = 0.8", "at_least = 0.8\nfpr = 0.1", "'fpr'.*ignored"),
        ("limits.privacy]\nat_least", "limits.tpr]\nfpr = 2\nat_most", "is a share"),
        ('["loss"]', '["los"]', "'los'.*'loss'"),
        ('["outsider"]', '["outsider", "insider"]', r"\[limits.insider_privacy\]"),
    ],
)
def test_a_policy_that_does_not_fit_the_audit_is_refused(tmp_path, old, new, message):
    file = tmp_path / "policy.toml"
    file.write_text(GOOD_TOML)
    read_policy(file).check(MEASURES, attacks=NAMES, kind="classifier")
    file.write_text(GOOD_TOML.replace(old, new, 1))
    policy = read_policy(file)
    with pytest.raises(InvalidPolicy, match=message):
        policy.check(MEASURES, attacks=NAMES, kind="classifier")


def test_a_policy_that_is_not_there():
    with pytest.raises(InvalidPolicy, match="no policy file"):
        read_policy("nowhere.toml")


@pytest.mark.parametrize(
    "measure", ["claim_refuted", "training_refuted", "training_departs"]
)
def test_a_limit_on_what_the_product_claims_itself_is_refused(measure):
    policy = with_limit(measure, at_most=1.0)
    with pytest.raises(InvalidPolicy, match="limit claimed_epsilon instead"):
        policy.check(MEASURES, attacks=NAMES, kind="classifier")


def test_a_product_that_is_worth_no_more_than_a_constant_is_told_what_could_help():
    """Its attacks are no reason, so none of the remedies against them is named."""
    found = verdict({"utility": useful(0.0, 0.05, 0.09)})
    assert found.verdict == Verdict.REFUSE
    (step,) = found.next_steps
    assert "learns more from these columns" in step
