"""Run the peers for benchmarks/peers.py: read a target and attack it with other libraries.

    python benchmarks/peers_theirs.py target.npz out.json

It is run by an interpreter that has the peers (peers_requirements.txt) and does not need reticent. It
writes one score per record and attack, NaN where an attack gives none, and judges nothing.
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

FLOOR = 1e-6  # the same as reticent's, so that both sides take the same logits from the same pool

Answer = tuple[str, int, float, np.ndarray]
"""Attack, shadow models used, CPU seconds, a score per record."""


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def sacro(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """Attack with SACRO-ML, which trains its own shadow models, once for all of its attacks on this target.

    The folder is new for each target, so the shadow models in it belong to this target.
    Training is timed separately, and charged to each attack by the number of models it uses.
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
        by_record = np.empty(len(y))
        by_record[tags] = np.asarray(individual["member_prob"])[: tags.sum()]
        by_record[~tags] = np.asarray(individual["member_prob"])[tags.sum() :]
        return by_record

    most = max(sizes)
    plans = [
        *(("LiRA online, fixed variance", "online-carlini", True, k) for k in sizes),
        *(("LiRA offline, fixed variance", "offline", True, k) for k in sizes[-2:]),
        ("LiRA offline (its default)", "offline", False, most),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, mode, fixed, models in sorted(plans, key=lambda plan: -plan[3]):
            started, trained = cpu_seconds(), len(spent)
            by_record = scores(
                LIRAAttack(
                    n_shadow_models=models,
                    mode=mode,
                    fix_variance=fixed,
                    report_individual=True,
                    write_report=False,
                    output_dir=folder,
                )
            )
            attacking = cpu_seconds() - started - sum(spent[trained:])
            cpu = attacking + spent[0] * models / most
            yield f"SACRO-ML {name}", models, cpu, by_record
    with tempfile.TemporaryDirectory() as folder:
        started = cpu_seconds()
        attack = QMIAAttack(
            report_individual=True, write_report=False, output_dir=folder
        )
        by_record = scores(attack)
        yield "SACRO-ML quantile", 0, cpu_seconds() - started, by_record
    utils.train_shadow_models = train


def privacyguard(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """Attack with PrivacyGuard, which takes scores: it gets those of reticent's pool, and their cost is charged to it."""
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
        by_record = np.full(len(tags), np.nan)
        for frame in (attack.df_train_merge, attack.df_test_merge):
            by_record[frame["user_id"]] = frame["score"]
        return by_record

    for models in sizes:
        truth, masks = data["truth_of_pool"][:models], data["masks"][:models]
        phi = logit(truth)
        started = cpu_seconds()
        columns = {"user_id": np.arange(len(tags)), "score_orig": logit(data["truth"])}
        for side, chosen in (("in", masks), ("out", ~masks)):
            of_side = np.ma.masked_array(phi, ~chosen)
            columns[f"score_mean_{side}"] = of_side.mean(axis=0).filled(np.nan)
            columns[f"score_std_{side}"] = of_side.std(axis=0, ddof=1).filled(np.nan)
        frame = pd.DataFrame(columns)
        by_record = answer(
            LiraAttack(
                frame[tags].copy(),
                frame[~tags].copy(),
                AggregationType.NONE,
                use_fixed_variance=True,
                std_dev_type="mix",
                online_attack=True,
            )
        )
        cpu = cpu_seconds() - started + models * price
        yield (
            "PrivacyGuard LiRA online, fixed variance (our pool)",
            models,
            cpu,
            by_record,
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
        by_record = answer(
            RmiaAttack(
                frame[tags],
                frame[~tags],
                population,
                AggregationType.NONE,
                num_reference_models=models,
                online=True,
            )
        )
        cpu = cpu_seconds() - started + models * price
        yield "PrivacyGuard RMIA online (our pool)", models, cpu, by_record


def art(
    model: ClassifierMixin, data: dict[str, np.ndarray], sizes: list[int]
) -> Iterator[Answer]:
    """Attack with ART, which learns from one half of the members and non-members and scores the other half."""
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
    by_record = np.full(len(y), np.nan)
    by_record[~shown] = attack.infer(X[~shown], y[~shown], probabilities=True).ravel()
    yield "ART gradient boosting", 0, cpu_seconds() - started, by_record


def main(source: Path, goal: Path) -> None:
    """Attack one target with every peer; name each peer that fails, with the reason."""
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
            f"the answers of the released model trained here differ by up to {apart:.2g} from those of the original, "
            "so the targets differ; install the same scikit-learn on both sides."
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
