"""Power of the attacks on a pool, on the random forest the peers were measured on.

The peers' figures (20 shadows, same recipe, measured on another split of the same data) stand in
the last lines: SACRO-ML 2.0 and Privacy Meter are not installed here.
"""

import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from reticent._random import stream
from reticent.attack import (
    Challenge,
    CombinedPool,
    Knowledge,
    LikelihoodRatio,
    LikelihoodRatioOffline,
    Loss,
    Pool,
    RelativeRatio,
    SealedTags,
    ShadowModels,
    balanced_masks,
)
from reticent.evidence import ltu_accuracy, tpr_at_fpr

ATTACKS = (
    RelativeRatio(),
    CombinedPool(),
    LikelihoodRatio(),
    LikelihoodRatioOffline(),
    ShadowModels(),
    Loss(),
)
PEERS = (
    "| SACRO-ML, LiRA online, fixed variance | 20 | .971 | .629 | .352 | 35 |",
    "| SACRO-ML, LiRA offline (its default) | 20 | .950 | .414 | .191 | 26 |",
    "| Privacy Meter, RMIA offline | 20 | .884 | .275 | 0 | 20 |",
)


def run() -> list[str]:
    """Return lines of a table."""
    X, y = make_classification(
        8000, n_features=20, n_informative=10, n_redundant=4, n_classes=3, flip_y=0.15,
        class_sep=0.8, random_state=0,
    )  # fmt: skip
    _, X, _, y = train_test_split(X, y, test_size=0.75, stratify=y, random_state=0)
    a, b, ya, yb = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    X, y = np.concatenate([a, b]), np.concatenate([ya, yb])
    n = len(y)
    tags = np.arange(n) < n // 2

    def answers(rows: np.ndarray, seed: int) -> np.ndarray:
        model = RandomForestClassifier(100, min_samples_leaf=5, random_state=seed)
        return model.fit(X[rows], y[rows]).predict_proba(X)

    challenge = Challenge(probabilities=answers(tags, 0), labels=y)
    masks = balanced_masks(20, np.arange(n), rng=stream(0, "bench"))
    started = time.process_time()
    p = np.stack([answers(mask, k + 1) for k, mask in enumerate(masks)]).astype(
        np.float32
    )
    training = (time.process_time() - started) / len(masks)
    lines = []
    for models in (4, 20):
        pool = Pool(masks=masks[:models], probabilities=p[:models], labels=y)
        knowledge = Knowledge(tags=SealedTags(tags, np.arange(n)), pool=pool)
        for attack in ATTACKS:
            started = time.process_time()
            s = attack.score(challenge, knowledge=knowledge, rng=stream(0, "x")).values
            cpu = models * training + time.process_time() - started
            rates = [
                tpr_at_fpr(s[tags], s[~tags], fpr=fpr, level=0.95).value
                for fpr in (0.01, 0.001)
            ]
            auc = ltu_accuracy(s[tags], s[~tags], level=0.95).value
            lines.append(
                f"| reticent, {attack.name} | {models} | {auc:.3f} | {rates[0]:.3f} | {rates[1]:.3f} | {cpu:.0f} |"
            )
    return [*lines, *PEERS]


if __name__ == "__main__":
    print(
        "| attack | models | AUC | TPR at 1 % | TPR at 0.1 % | CPU s |\n|---|---|---|---|---|---|"
    )
    print("\n".join(run()))
