"""Soft labels in an audit from end to end: a network that is refused leaks less with them, on the same split and seed."""

import pandas as pd
import pytest
from scipy.stats import norm

import reticent
from reticent.policy import Verdict
from reticent.run import stream

FALSE_ALARM = 1e-6


@pytest.mark.usefixtures("few_trees")
def test_an_audit_sees_that_soft_labels_leak_less(seed):
    """The strongest attack on each, by models that were trained in the same way.

    200 members and 200 others: the standard error of an AUC is at most 0.5 / sqrt(200). A network that knows its members by heart
    has an AUC near 1, so the difference is beyond what chance does once in a million even if all errors go one way.
    """
    pytest.importorskip("torch", reason="the extra `torch` is not installed")
    rng = stream(seed, "soft/audit")
    X = rng.normal(size=(500, 30))
    y = (X[:, 0] + X[:, 1] > 0) ^ (rng.random(500) < 0.4)
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(30)])
    network = reticent.Network(
        hidden=[64], epochs=100, batch=50, optimiser=reticent.Adam(rate=0.005)
    )
    plan = {"rounds": 1, "workers": 1, "pool": 4, "minutes": 0.05, "seed": seed}
    hard, soft = (
        reticent.audit(trainer, frame, y.astype(int), **plan)
        for trainer in (network, reticent.SoftLabels(network, alpha=0.0, repeats=2))
    )
    strongest = [
        max(attack.auc.value for attack in dossier.evidence.attacks)
        for dossier in (hard, soft)
    ]
    tolerance = norm.isf(FALSE_ALARM) * 2**0.5 * 0.5 / 200**0.5
    assert strongest[0] - strongest[1] > tolerance
    assert hard.verdict == Verdict.REFUSE
    assert soft.verdict != Verdict.RELEASE  # too few records to say so
    assert soft.provenance.recipe.startswith("reticent.SoftLabels(")
    assert soft.provenance.guarantee is None
