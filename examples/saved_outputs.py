"""Audit a model that you do not have: its answers on members and non-members are enough."""

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import reticent

X, y = make_classification(2_000, n_informative=6, flip_y=0.2, random_state=0)
members, others, y_members, y_others = train_test_split(
    X, y, test_size=0.5, random_state=0
)
tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(
    members, y_members
)

dossier = reticent.audit_outputs(
    (tree.predict_proba(members), y_members), (tree.predict_proba(others), y_others)
)
print(dossier)
assert dossier.verdict == "REFUSE"
