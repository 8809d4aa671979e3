"""Audit a model in memory and save the report."""

from pathlib import Path
from tempfile import mkdtemp

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import reticent

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
dossier = reticent.audit(RandomForestClassifier(50), X, y, rounds=4, pool=4, seed=1)
print(dossier)
for reason in dossier.reasons:
    print("-", reason)
folder = dossier.save(Path(mkdtemp()) / "audit")
print("report:", folder / "report.html")
