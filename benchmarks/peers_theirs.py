"""The peers' side of benchmarks/peers.py: read a target, attack it with other libraries.

    python benchmarks/peers_theirs.py target.npz out.json

Run by an interpreter that has the peers (peers_requirements.txt) and needs no reticent. It says
one score per record and attack, NaN where an attack scores none; it judges nothing.
"""

import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

RECIPES: dict[str, Callable[[int], ClassifierMixin]] = {
    "forest": lambda seed: RandomForestClassifier(
        100, min_samples_leaf=5, random_state=seed
    ),
    "adult": lambda seed: RandomForestClassifier(100, random_state=seed),
    "location": lambda seed: MLPClassifier((64,), max_iter=40, random_state=seed),
    "cifar10": lambda seed: MLPClassifier((128,), max_iter=20, random_state=seed),
}
"""How the released model and every shadow model of a target are trained."""

FLOOR = 1e-6  # as reticent's: both sides take the same logits from the same pool

Answer = tuple[str, int, float, np.ndarray]
"""Attack, shadow models used, CPU seconds, a score per record."""


def cpu_seconds() -> float:
    """Return CPU time of this process and of the children it has waited for."""
    return sum(os.times()[:4])


def sacro(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """SACRO-ML: it trains its own shadows, once for all of its attacks on this target.

    The folder is new for each target; within one target the shadows in it are the right ones.
    Training is timed apart and charged to each attack for the number of models it uses.
    """
    from sacroml.attacks import utils
    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.qmia_attack import QMIAAttack
    from sacroml.attacks.target import Target

    X, y, tags = data["X"], data["y"], data["tags"]
    spent: list[float] = []
    train = utils.train_shadow_models

    def timed(**settings: Any) -> None:
        started = cpu_seconds()
        train(**settings)
        spent.append(cpu_seconds() - started)

    utils.train_shadow_models = timed

    def scores(attack: Any) -> np.ndarray:
        attack.attack(
            Target(
                model=model,
                dataset_name="target",
                X_train=X[tags],
                y_train=y[tags],
                X_test=X[~tags],
                y_test=y[~tags],
            )
        )
        individual = attack.attack_metrics[0]["individual"]
        found = np.empty(len(y))
        found[tags] = np.asarray(individual["member_prob"])[: tags.sum()]
        found[~tags] = np.asarray(individual["member_prob"])[tags.sum() :]
        return found

    most = max(sizes)
    plans = [
        *(("LiRA online, fixed variance", "online-carlini", True, k) for k in sizes),
        *(("LiRA offline, fixed variance", "offline", True, k) for k in sizes[-2:]),
        ("LiRA offline (its default)", "offline", False, most),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, mode, fixed, models in sorted(plans, key=lambda plan: -plan[3]):
            started, trained = cpu_seconds(), len(spent)
            found = scores(
                LIRAAttack(
                    n_shadow_models=models,
                    mode=mode,
                    fix_variance=fixed,
                    report_individual=True,
                    write_report=False,
                    output_dir=folder,
                )
            )
            own = cpu_seconds() - started - sum(spent[trained:])
            yield f"SACRO-ML {name}", models, own + spent[0] * models / most, found
    with tempfile.TemporaryDirectory() as folder:
        started = cpu_seconds()
        attack = QMIAAttack(
            report_individual=True, write_report=False, output_dir=folder
        )
        found = scores(attack)
        yield "SACRO-ML quantile", 0, cpu_seconds() - started, found
    utils.train_shadow_models = train


def privacyguard(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """PrivacyGuard: it takes scores, so it gets those of reticent's own pool, and pays for them."""
    import pandas as pd
    from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
    from privacy_guard.attacks.lira_attack import LiraAttack
    from privacy_guard.attacks.rmia_attack import RmiaAttack

    tags = data["tags"]
    z = data["truth_of_population"]
    price = float(data["seconds_per_model"])

    def logit(p: np.ndarray) -> np.ndarray:
        p = p.clip(FLOOR, 1 - FLOOR)
        return np.log(p) - np.log1p(-p)

    def answer(attack: Any) -> np.ndarray:
        attack.run_attack()
        found = np.full(len(tags), np.nan)
        for frame in (attack.df_train_merge, attack.df_test_merge):
            found[frame["user_id"]] = frame["score"]
        return found

    for models in sizes:
        truth, masks = data["truth_of_pool"][:models], data["masks"][:models]
        phi = logit(truth)
        started = cpu_seconds()
        columns = {"user_id": np.arange(len(tags)), "score_orig": logit(data["truth"])}
        for side, chosen in (("in", masks), ("out", ~masks)):
            its = np.ma.masked_array(phi, ~chosen)
            columns[f"score_mean_{side}"] = its.mean(axis=0).filled(np.nan)
            columns[f"score_std_{side}"] = its.std(axis=0, ddof=1).filled(np.nan)
        frame = pd.DataFrame(columns)
        found = answer(
            LiraAttack(
                frame[tags].copy(),
                frame[~tags].copy(),
                AggregationType.NONE,
                use_fixed_variance=True,
                std_dev_type="mix",
                online_attack=True,
            )
        )
        own = cpu_seconds() - started
        yield (
            "PrivacyGuard LiRA online, fixed variance (our pool)",
            models,
            own + models * price,
            found,
        )

        started = cpu_seconds()
        records = {"user_id": np.arange(len(tags)), "score_orig": data["truth"]}
        others = {"user_id": np.arange(z.shape[1]), "score_orig": z[0]}
        for k in range(models):
            records[f"score_ref_{k}"], others[f"score_ref_{k}"] = truth[k], z[k + 1]
            records[f"member_ref_{k}"] = masks[k]
            others[f"member_ref_{k}"] = np.zeros(z.shape[1], dtype=bool)
        frame, population = (
            pd.DataFrame(part).clip(lower=FLOOR) for part in (records, others)
        )
        frame["user_id"] = np.arange(len(tags))
        found = answer(
            RmiaAttack(
                frame[tags],
                frame[~tags],
                population,
                AggregationType.NONE,
                num_reference_models=models,
                online=True,
            )
        )
        own = cpu_seconds() - started
        yield "PrivacyGuard RMIA online (our pool)", models, own + models * price, found


def art(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """ART: learns from one half of members and non-members, scores the other half."""
    from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
    from art.estimators.classification.scikitlearn import SklearnClassifier

    X, y, tags = data["X"], data["y"], data["tags"]
    started = cpu_seconds()
    shown = np.zeros(len(y), dtype=bool)
    for tag in (False, True):
        shown[np.flatnonzero(tags == tag)[::2]] = True
    attack = MembershipInferenceBlackBox(
        SklearnClassifier(model), attack_model_type="gb"
    )
    inside, outside = shown & tags, shown & ~tags
    attack.fit(X[inside], y[inside], X[outside], y[outside])
    found = np.full(len(y), np.nan)
    found[~shown] = attack.infer(X[~shown], y[~shown], probabilities=True).ravel()
    yield "ART gradient boosting", 0, cpu_seconds() - started, found


def main(source: Path, goal: Path) -> None:
    """Attack one target with every peer; a peer that fails is named with its reason."""
    with np.load(source) as stored:
        data = {name: stored[name] for name in stored.files}
    tags = data["tags"]
    sizes = data["sizes"].tolist()
    model = RECIPES[str(data["recipe"])](int(data["seed"]))
    model.fit(data["X"][tags], data["y"][tags])
    truth = model.predict_proba(data["X"])[np.arange(len(tags)), data["y"]]
    apart = float(abs(truth - data["truth"]).max())
    if apart > 1e-6:
        sys.exit(
            f"the released model trained here answers up to {apart:.2g} otherwise than the one "
            "it should be, so the targets differ; install the same scikit-learn on both sides."
        )
    answers, failures = [], []
    for peer in (sacro, privacyguard, art):
        try:
            for name, models, cpu, scores in peer(model, data, sizes):
                answers.append(
                    {
                        "attack": name,
                        "models": models,
                        "cpu": cpu,
                        "scores": scores.tolist(),
                    }
                )
        except Exception as error:
            failures.append(f"{peer.__name__}: {type(error).__name__}: {error}")
    goal.write_text(json.dumps({"answers": answers, "failures": failures}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
