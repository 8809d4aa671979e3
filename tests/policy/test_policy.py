"""Policies are read strictly, and decide by whole intervals."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.errors import InvalidPolicy
from reticent.evidence import (
    AttackEvidence,
    Estimate,
    Evidence,
    GroupEvidence,
    Histogram,
    InsiderEvidence,
    RegimeEvidence,
)
from reticent.policy import Control, Limits, Outcome, Verdict, decide, read_policy


def estimate(low, value, high):
    return Estimate(value=value, low=low, high=high, level=0.95, method="test")


GOOD, ZERO = estimate(0.95, 0.98, 1.0), estimate(0.0, 0.0, 0.001)
EMPTY = Histogram(edges=(0.0, 1.0), members=(1.0,), nonmembers=(1.0,))


def evidence(**changes):
    names = ["loss", "confidence", "entropy", "modified_entropy", "learned_outputs"]
    attacks = tuple(
        AttackEvidence(
            name=name, threat="outsider", auc=estimate(0.49, 0.5, 0.52), privacy=GOOD,
            tpr_at_fpr=ZERO, fpr=0.001, exposed=estimate(0.04, 0.05, 0.06),
            vulnerability=estimate(-0.1, 0.0, 0.1), epsilon=estimate(0.0, 0.0, np.inf), roc=(),
        )
        for name in names
    )  # fmt: skip
    base = Evidence(
        utility=estimate(0.6, 0.7, 0.8), guessing_utility=0.2, privacy=GOOD, tpr_at_fpr=ZERO,
        exposed=estimate(0.04, 0.05, 0.06), attacks=attacks, epsilon=estimate(0.5, 0.5, np.inf),
        epsilon_ceiling=5.0, smallest_leak=0.52, members=5000, nonmembers=5000, groups=(),
        insider=None, scores=EMPTY, individual=EMPTY, calibration=None, theorems={}, worst_case=(),
        subgroup_aware=None, vulnerability_bound=None, pool=None,
    )  # fmt: skip
    return replace(base, **changes)


CONTROLS = [
    Control(name="memorising", privacy=ZERO, behaved=True, text="caught"),
    Control(name="unrelated", privacy=GOOD, behaved=True, text="spared"),
]
DEFAULT = read_policy("default")


def verdict(changes=None, *, policy=DEFAULT, controls=CONTROLS, **more):
    return decide(policy, evidence(**(changes or {})), controls=controls, **more)


def test_release_when_every_limit_is_kept_with_confidence():
    decision = verdict()
    assert decision.verdict == Verdict.RELEASE
    assert decision.exit_status == 0
    assert all(check.outcome == Outcome.KEPT for check in decision.limits)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"privacy": estimate(0.6, 0.7, 0.89)}, "privacy"),
        ({"tpr_at_fpr": estimate(0.02, 0.03, 0.05)}, "tpr_at_fpr"),
        ({"exposed": estimate(0.11, 0.2, 0.3)}, "exposed"),
        ({"utility": estimate(0.0, 0.05, 0.09)}, "utility"),
    ],
)
def test_refuse_when_a_whole_interval_is_on_the_wrong_side(changes, name):
    decision = verdict(changes)
    assert decision.verdict == Verdict.REFUSE
    assert decision.exit_status == 1
    assert [c.name for c in decision.limits if c.outcome == Outcome.BROKEN] == [name]
    assert "breaks the limit" in decision.reasons[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy": estimate(0.8, 0.85, 0.95)},  # a point below the limit is not enough
        {"privacy": estimate(0.85, 0.95, 1.0)},
        {"tpr_at_fpr": estimate(0.0, 0.0, 0.05)},
        {"exposed": estimate(0.05, 0.12, 0.2)},
        {"utility": estimate(0.05, 0.2, 0.3)},
    ],
)
def test_inconclusive_when_an_interval_straddles_its_limit(changes):
    decision = verdict(changes)
    assert decision.verdict == Verdict.INCONCLUSIVE
    assert decision.exit_status == 3
    assert decision.next_steps


def test_inconclusive_says_how_many_records_would_settle_it():
    steps = verdict({"privacy": estimate(0.85, 0.95, 1.0)}).next_steps
    assert steps == (
        "About 20,000 members and as many non-members (now 5,000) would settle the privacy score.",
    )
    steps = verdict(
        {"tpr_at_fpr": estimate(0.0, 0.001, 0.05), "members": 300, "nonmembers": 300}
    ).next_steps
    assert "would settle the share of members pointed out" in steps[0]
    near = verdict({"privacy": estimate(0.85, 0.9, 0.95)}).next_steps
    assert "too near its limit" in near[0]


def test_a_stop_makes_a_broken_privacy_limit_inconclusive_but_not_a_broken_utility():
    shifted = verdict({"privacy": estimate(0.5, 0.6, 0.7)}, stops=["they differ"])
    assert shifted.verdict == Verdict.INCONCLUSIVE
    assert "they differ" in shifted.reasons
    useless = verdict({"utility": estimate(0.0, 0.01, 0.02)}, stops=["they differ"])
    assert useless.verdict == Verdict.REFUSE


@pytest.mark.parametrize("which", [0, 1])
def test_a_misbehaving_control_forbids_a_release(which):
    controls = list(CONTROLS)
    controls[which] = replace(controls[which], behaved=False)
    assert verdict(controls=controls).verdict == Verdict.INCONCLUSIVE


def test_a_caught_unrelated_product_forbids_a_refusal_too():
    controls = [CONTROLS[0], replace(CONTROLS[1], behaved=False)]
    broken = {"privacy": estimate(0.5, 0.6, 0.7)}
    assert verdict(broken, controls=controls).verdict == Verdict.INCONCLUSIVE
    assert verdict(broken).verdict == Verdict.REFUSE


def test_a_missing_attack_is_inconclusive():
    fewer = evidence().attacks[:-1]
    decision = verdict({"attacks": fewer})
    assert decision.verdict == Verdict.INCONCLUSIVE
    assert "'learned_outputs', which was not run" in decision.reasons[0]


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
    assert any("--minutes" in step for step in verdict(policy=strict).next_steps)
    kept = {"insider": insider(0.92, 0.97, 1.0)}
    assert verdict(kept, policy=strict).verdict == Verdict.RELEASE


def with_limits(**changes):
    return replace(DEFAULT, limits=replace(DEFAULT.limits, **changes))


def test_claims_of_epsilon():
    assert verdict(claimed_epsilon=3.0).verdict == Verdict.RELEASE
    refuted = verdict(claimed_epsilon=0.3)
    assert refuted.verdict == Verdict.REFUSE
    assert "refutes the claimed 0.3" in refuted.reasons[0]
    # What the attacks show (0.5) is no refutation of a claim that allows it through its delta.
    allowed = verdict(
        claimed_epsilon=0.3, claimed_delta=0.5, claimed_relation="add/remove"
    )
    assert allowed.verdict == Verdict.RELEASE
    assert any("0.3 (delta 0.5, add/remove)" in reason for reason in allowed.reasons)
    tiny = verdict(claimed_epsilon=0.3, claimed_delta=1e-9)
    assert tiny.verdict == Verdict.REFUSE
    capped = with_limits(claimed_epsilon_at_most=2.0)
    assert verdict(policy=capped).verdict == Verdict.INCONCLUSIVE
    assert verdict(policy=capped, claimed_epsilon=1.0).verdict == Verdict.RELEASE
    assert verdict(policy=capped, claimed_epsilon=8.0).verdict == Verdict.REFUSE


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
    asked = with_limits(group_privacy_at_least=0.9)
    assert verdict({"groups": groups}).verdict == Verdict.RELEASE
    decision = verdict({"groups": groups}, policy=asked)
    assert decision.verdict == Verdict.REFUSE
    assert "worst group (b)" in decision.reasons[0]
    assert verdict(policy=asked).verdict == Verdict.INCONCLUSIVE


def test_shipped_policies_are_complete_and_documented():
    strict = read_policy("strict")
    assert strict.decides_on == ("outsider", "insider")
    assert "retraining" in strict.required_attacks
    assert DEFAULT.statements == 5
    assert strict.statements == 6


GOOD_TOML = """
name = "own"
decides_on = ["outsider"]
confidence = 0.9
smallest_group = 10
required_attacks = ["loss"]
[limits]
privacy_at_least = 0.8
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("confidence", "confidense", "unknown key 'confidense'.*'confidence'"),
        (
            "privacy_at_least",
            "privacy_at_lest",
            "unknown limit 'privacy_at_lest'.*'privacy_at_least'",
        ),
        ("0.8", "1.8", "outside"),
        ("0.8", '"much"', "not a number"),
        ("0.9", "95", "must lie inside"),
        ('["loss"]', '["los"]', "'los'.*'loss'"),
        ('["outsider"]', '["insider"]', "leaves out the outsider"),
        ('["outsider"]', '["outsider", "insider"]', "insider_privacy_at_least"),
        ("smallest_group = 10", "smallest_group = 1", "single people"),
        ("smallest_group = 10", "", "lacks 'smallest_group'"),
        ("name =", "name", "not TOML"),
        ("[limits]\nprivacy_at_least = 0.8", "limits = 3", "not a table"),
        ("privacy_at_least = 0.8", "", "would release anything"),
        ('["loss"]', "[]", "would release anything"),
    ],
)
def test_a_faulty_policy_is_refused(tmp_path, old, new, message):
    file = tmp_path / "policy.toml"
    file.write_text(GOOD_TOML)
    assert read_policy(file).limits == Limits(privacy_at_least=0.8)
    file.write_text(GOOD_TOML.replace(old, new, 1))
    with pytest.raises(InvalidPolicy, match=message):
        read_policy(file)


def test_a_policy_that_is_not_there():
    with pytest.raises(InvalidPolicy, match="no policy file"):
        read_policy("nowhere.toml")
