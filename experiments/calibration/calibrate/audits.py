"""Whole audits through the public verbs: of products that leak nothing, and of products whose leak is known.

Where nothing leaks the limits of the policy stand exactly on the truth (a privacy of 1, a true-positive rate equal to the false-positive
rate), so that every claim of a leak is a false alarm, and any is enough to refuse. Where a leak is known, a release is a miss.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import reticent
from calibrate import settings
from calibrate.rows import Row
from reticent.evidence import Limit, Outcome
from reticent.policy import Policy, Verdict

FPR, BELOW = 0.05, 0.1
# What an audit without a leak shows of this many people would still release; fixed before any audit was run.
LENIENT = {"privacy": 0.6, "tpr": 0.35, "exposed": 0.35}
OUTPUT_ATTACKS = ("loss", "confidence", "entropy", "modified_entropy")
POOL, PEOPLE, MINUTES = 4, 200, 30.0
ROUNDS = 32  # of the retraining insider, where it is asked


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A kind of audit whose right answer is known.

    ``run`` makes one audit from a generator and a seed. ``truth`` has what the statements are about, where it is known; ``leaks`` says
    whether a release would be wrong. ``at_limit``: the truth stands on the limits, so that both firm answers are wrong.
    """

    name: str
    run: Callable[[np.random.Generator, int], reticent.Dossier]
    truth: Mapping[str, float] = field(default_factory=dict)
    leaks: bool = False
    at_limit: bool = False
    audits: int = settings.AUDITS


def policy(limits: Mapping[str, float], *, gain: float | None, **changes) -> Policy:
    """Return a policy with these limits on what an attacker may reach, at rates that small tables can show."""
    made = [
        Limit(measure="privacy", at_least=limits["privacy"]),
        Limit(measure="tpr", at_most=limits["tpr"], at={"fpr": FPR}),
        Limit(measure="exposed", at_most=limits["exposed"], at={"below": BELOW}),
    ]
    if gain is not None:
        made.append(Limit(measure="gain", at_least=gain))
    if "group_privacy" in limits:
        made.append(Limit(measure="group_privacy", at_least=limits["group_privacy"]))
    if "insider_privacy" in limits:
        made.append(
            Limit(measure="insider_privacy", at_least=limits["insider_privacy"])
        )
        changes["decides_on"] = ("outsider", "insider")
    if not changes.get("release"):
        made.append(Limit(measure="file_records", at_most=0))
    return replace(
        reticent.read_policy("default"), name="calibration", limits=tuple(made), **changes
    )  # fmt: skip


EDGE = {"privacy": 1.0, "tpr": FPR, "exposed": BELOW / 2}
NOTHING = dict(EDGE)  # the truth where nothing leaks


def _quiet(**given) -> reticent.Dossier:
    return reticent.audit(
        **{"pool": POOL, "rounds": 1, "workers": 1, "minutes": MINUTES, **given},
        progress=False,
    )


def _numbers(rng: np.random.Generator, n: int, *, heavy: bool = False):
    X = rng.standard_cauchy((n, 4)) if heavy else rng.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


def _binary(rng: np.random.Generator, n: int):
    X = rng.integers(2, size=(n, 8)).astype(float)
    return X, (X[:, :3].sum(axis=1) + rng.normal(scale=0.7, size=n) > 1.5).astype(int)


def others(estimator, draw, *, members: int, nonmembers: int, groups: bool = False):
    """Return an audit of a product that was trained on other people, with the recipe beside it."""

    def run(rng: np.random.Generator, seed: int) -> reticent.Dossier:
        product = estimator().fit(*draw(rng, 400))
        limits = {**EDGE, "group_privacy": 1.0} if groups else EDGE
        total = members + nonmembers
        return _quiet(
            estimator=estimator(),
            product=product,
            members=draw(rng, members),
            nonmembers=draw(rng, nonmembers),
            groups=rng.integers(3, size=total).astype(str) if groups else None,
            policy=policy(limits, gain=0.05),
            claimed_epsilon=1e-3,
            seed=seed,
        )

    return run


def people_with_rows(rng: np.random.Generator, seed: int) -> reticent.Dossier:
    """Three rows per person, all nearly alike; the product was trained on other people."""

    def draw(people: int):
        own, y = _numbers(rng, people)
        X = np.repeat(own, 3, axis=0)
        return X + 0.1 * rng.normal(size=X.shape), np.repeat(y, 3)

    product = GaussianNB().fit(*draw(200))
    return _quiet(
        estimator=GaussianNB(),
        product=product,
        members=draw(100),
        nonmembers=draw(100),
        units=np.repeat(np.arange(200), 3),
        policy=policy(EDGE, gain=0.05),
        seed=seed,
    )


def cannot_memorise(rng: np.random.Generator, seed: int) -> reticent.Dossier:
    """Random classes, and a product that answers everybody alike."""
    X, y = rng.normal(size=(2 * PEOPLE, 3)), rng.integers(2, size=2 * PEOPLE)
    return _quiet(
        estimator=DummyClassifier(strategy="prior"),
        X=X,
        y=y,
        policy=policy(EDGE, gain=None),
        seed=seed,
    )


def _quantity(rng: np.random.Generator, n: int):
    X = rng.normal(size=(n, 4))
    return X, X[:, 0] - X[:, 1] + rng.standard_t(5, size=n)


class RandomAnswers(ClassifierMixin, BaseEstimator):
    """Random weights that no record and no seed of the audit decides."""

    draws = np.random.default_rng(0)

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.weights_ = type(self).draws.normal(size=X.shape[1])
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-(X @ self.weights_)))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def insider(rng: np.random.Generator, seed: int) -> reticent.Dossier:
    """Products that are random whatever the records are: the insider can only guess."""
    RandomAnswers.draws = np.random.default_rng(rng.integers(2**32))
    X, y = rng.normal(size=(2 * PEOPLE, 3)), rng.integers(2, size=2 * PEOPLE)
    return _quiet(
        estimator=RandomAnswers(),
        X=X,
        y=y,
        policy=policy({**EDGE, "insider_privacy": 1.0}, gain=None),
        rounds=ROUNDS,
        seed=seed,
    )


def memorising(estimator, draw, *, rows: int = 2 * PEOPLE):
    """Return an audit of a recipe that is known to memorise, by limits that a product without a leak keeps."""

    def run(rng: np.random.Generator, seed: int) -> reticent.Dossier:
        X, y = draw(rng, rows)
        return _quiet(
            estimator=estimator(), X=X, y=y, policy=policy(LENIENT, gain=None), seed=seed
        )  # fmt: skip

    return run


def _answers(rng: np.random.Generator, logit: np.ndarray):
    """Return answers with these log-odds of the true class."""
    y = rng.integers(2, size=len(logit))
    p = 1 / (1 + np.exp(-logit))
    return np.where((y == 1)[:, None], np.column_stack([1 - p, p]), np.column_stack([p, 1 - p])), y  # fmt: skip


def planted_truth(shift: float) -> dict[str, float]:
    tpr = float(ndtr(ndtri(FPR) + shift))
    return {
        "privacy": float(2 * (1 - ndtr(shift / np.sqrt(2)))),
        "tpr": tpr,
        "exposed": tpr,
        # Non-members are right if their log-odds, N(1, 1), are positive; a constant is wrong in one case of two.
        "gain": float(1 - ndtr(-1.0) / 0.5),
    }


def planted(shift: float, n: int, limits: Mapping[str, float]):
    """Return an audit of answers whose log-odds are N(1 + shift, 1) for members and N(1, 1) for others: no attack does better than the loss."""

    def run(rng: np.random.Generator, seed: int) -> reticent.Dossier:
        sides = [_answers(rng, rng.normal(1 + s, 1, n)) for s in (shift, 0.0)]
        rules = policy(
            limits,
            gain=limits.get("gain"),
            release="queries",
            required_attacks={"any": OUTPUT_ATTACKS},
        )
        return reticent.audit_outputs(*sides, policy=rules, seed=seed)

    return run


def exposed_few(share: float, n: int):
    """Return an audit of answers in which a share of the members is answered with certainty, at the rates of the default policy."""

    def run(rng: np.random.Generator, seed: int) -> reticent.Dossier:
        inside = rng.normal(1, 1, n)
        inside[rng.random(n) < share] += 30.0
        sides = [_answers(rng, inside), _answers(rng, rng.normal(1, 1, n))]
        default = reticent.read_policy("default")
        rules = replace(
            default,
            release="queries",
            limits=tuple(x for x in default.limits if x.measure != "file_records"),
            required_attacks={"any": OUTPUT_ATTACKS},
        )
        return reticent.audit_outputs(*sides, policy=rules, seed=seed)

    return run


def deep_tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(random_state=0)


PARTS: dict[str, list[Scenario]] = {
    "audits_null_1": [
        Scenario(
            name="trained on other people, numbers, three groups (naive Bayes)",
            run=others(GaussianNB, _numbers, members=PEOPLE, nonmembers=PEOPLE, groups=True),
            truth={**NOTHING, "group_privacy": 1.0},
        ),
        Scenario(
            name="trained on other people, binary features (logistic regression)",
            run=others(LogisticRegression, _binary, members=PEOPLE, nonmembers=PEOPLE),
            truth=NOTHING,
        ),
        Scenario(
            name="trained on other people, 60 members, heavy tails (deep tree)",
            run=others(
                deep_tree, lambda rng, n: _numbers(rng, n, heavy=True), members=60, nonmembers=400
            ),
            truth=NOTHING,
        ),
    ],
    "audits_null_2": [
        Scenario(
            name="trained on other people, three rows per person (naive Bayes)",
            run=people_with_rows,
            truth=NOTHING,
        ),
        Scenario(
            name="random classes, everybody answered alike",
            run=cannot_memorise,
            truth=NOTHING,
        ),
        Scenario(
            name="trained on other people, a quantity (ridge regression)",
            run=others(Ridge, _quantity, members=PEOPLE, nonmembers=PEOPLE),
            truth=NOTHING,
        ),
        Scenario(
            name="random products that no seed fixes, insider asked",
            run=insider,
            truth={**NOTHING, "insider_privacy": 1.0},
        ),
    ],
    "audits_leak": [
        Scenario(
            name="one nearest neighbour",
            run=memorising(lambda: KNeighborsClassifier(1), _numbers),
            leaks=True,
            audits=settings.AUDITS // 2,
        ),
        Scenario(
            name="deep tree",
            run=memorising(deep_tree, _numbers),
            leaks=True,
            audits=settings.AUDITS // 2,
        ),
        Scenario(
            name="forest of 20 trees",
            run=memorising(lambda: RandomForestClassifier(20, random_state=0), _numbers),
            leaks=True,
            audits=settings.AUDITS // 2,
        ),
        Scenario(
            name="deep tree of a quantity",
            run=memorising(lambda: DecisionTreeRegressor(random_state=0), _quantity),
            leaks=True,
            audits=settings.AUDITS // 2,
        ),
    ],
    "audits_outputs": [
        Scenario(
            name="answers without a leak",
            run=planted(0.0, 200, EDGE),
            truth=NOTHING,
            audits=settings.OUTPUT_AUDITS,
        ),
        Scenario(
            name="planted leak of accuracy 0.64, limits on the truth",
            run=planted(0.5, 400, planted_truth(0.5)),
            truth=planted_truth(0.5),
            at_limit=True,
            audits=settings.OUTPUT_AUDITS,
        ),
        Scenario(
            name="planted leak of accuracy 0.76, limits for 0.64",
            run=planted(1.0, 200, planted_truth(0.5)),
            truth=planted_truth(1.0),
            leaks=True,
            audits=settings.OUTPUT_AUDITS // 2,
        ),
        Scenario(
            name="2 % of members exposed, limits of the default policy",
            run=exposed_few(0.02, 3_000),
            truth={},
            leaks=True,
            audits=settings.AUDITS,
        ),
    ],
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What one audit said."""

    verdict: Verdict
    outcomes: dict[str, Outcome]
    missed: dict[str, bool]
    stopped: bool
    controls: dict[str, bool]
    lenient: bool


def audited(scenario: Scenario, rng: np.random.Generator, seed: int) -> Audited:
    dossier = scenario.run(rng, seed)
    estimates = {s.measure: s.estimate for s in dossier.statements}
    lenient = {
        "privacy": Limit(measure="privacy", at_least=LENIENT["privacy"]),
        "tpr": Limit(measure="tpr", at_most=LENIENT["tpr"]),
        "exposed": Limit(measure="exposed", at_most=LENIENT["exposed"]),
    }
    return Audited(
        verdict=dossier.verdict,
        outcomes={c.measure: c.outcome for c in dossier.decision.limits},
        missed={
            name: not estimates[name].low - 1e-9 <= truth <= estimates[name].high + 1e-9
            for name, truth in scenario.truth.items()
            if estimates.get(name) is not None
        },
        stopped=any(f.severity == "stop" for f in dossier.findings),
        controls={c.name: c.behaved for c in dossier.controls},
        lenient=all(x.outcome(estimates[k]) == Outcome.KEPT for k, x in lenient.items()),
    )  # fmt: skip


def measure(part: str, *, seed: int = settings.SEED, scale: float = 1.0) -> dict:
    """Return the rows and the verdicts of a part of the audits."""
    rows, verdicts = [], []
    for scenario in PARTS[part]:
        key = zlib.crc32(scenario.name.encode())
        rng = np.random.default_rng([seed, key])
        count = max(1, round(scale * scenario.audits))
        results = [audited(scenario, rng, seed + k) for k in range(count)]
        rows += _rows(scenario, results)
        verdicts.append(
            {
                "scenario": scenario.name,
                "right": "RELEASE or INCONCLUSIVE" if not scenario.leaks else "REFUSE or INCONCLUSIVE",
                **{str(v): sum(r.verdict == v for r in results) for v in Verdict},
                "lenient": sum(r.lenient for r in results),
                "audits": count,
            }
        )  # fmt: skip
        if scenario.at_limit:
            verdicts[-1]["right"] = "INCONCLUSIVE"
    return {"rows": [row.to_json() for row in rows], "verdicts": verdicts}


def _rows(scenario: Scenario, results: list[Audited]) -> list[Row]:
    """Return the error rates of one kind of audit; the joint error of all statements is 0.05."""
    total = 1 - settings.LEVEL

    def row(
        statement: str, error: str, nominal: float, errors: list[bool]
    ) -> Row | None:
        return Row(
            statement=statement,
            data=scenario.name,
            error=error,
            nominal=nominal,
            misses=sum(errors),
            repeats=len(errors),
        )

    made = []
    if not scenario.leaks:
        made.append(row("verdict of an audit", "REFUSE", total, [r.verdict == Verdict.REFUSE for r in results]))  # fmt: skip
        measures = sorted({m for r in results for m in r.outcomes})
        share = total / (1 + sum(m not in ("file_records", "claim_refuted") for m in measures))  # fmt: skip
        for name in measures:
            # The claim has a statement's share; the file is judged at one in ten thousand, apart from the rest.
            nominal = 1e-4 if name == "file_records" else share
            made.append(row(f"`{name}` of an audit", "limit called broken", nominal, [r.outcomes.get(name) == Outcome.BROKEN for r in results]))  # fmt: skip
        if any(r.controls for r in results) and "answers" not in scenario.name:
            made.append(row("stop by the data of an audit", "stopped", 0.01, [r.stopped for r in results]))  # fmt: skip
        made += [
            row(f"control of an audit: {name}", "misbehaved", nominal, [not r.controls.get(name, True) for r in results])
            for name, nominal in (("unrelated", 5e-4), ("memorising", total))
        ]  # fmt: skip
    if scenario.leaks or scenario.at_limit:
        made.append(row("verdict of an audit", "RELEASE", total, [r.verdict == Verdict.RELEASE for r in results]))  # fmt: skip
    if scenario.truth:
        made.append(row("all statements of an audit together", "truth outside", total, [any(r.missed.values()) for r in results]))  # fmt: skip
    return [r for r in made if r is not None]
