"""Write an attack of your own, check its contract, and let it take part in an audit."""

from dataclasses import dataclass, replace

import numpy as np

from reticent.attack import Challenge, Knowledge, Scores
from reticent.data import builtin_table
from reticent.pipeline import DEFAULT_ATTACKS, AuditPlan, run_audit
from reticent.testing import check_attack
from reticent.train import parse_trainer


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A record whose true class leads by far was trained on."""

    name: str = "margin"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the lead of the true class over the best other one."""
        others = challenge.probabilities.copy()
        others[np.arange(len(challenge)), challenge.labels] = -np.inf
        return Scores(values=challenge.true_class_probability() - others.max(axis=1))


check_attack(Margin())
plan = AuditPlan(
    trainer=parse_trainer("sklearn.tree.DecisionTreeClassifier()"), rounds=1
)
plan = replace(plan, attacks=(*DEFAULT_ATTACKS, Margin()))
dossier = run_audit(builtin_table(), plan).dossier
for attack in dossier.evidence.attacks:
    print(f"{attack.name:20} {attack.auc}")
