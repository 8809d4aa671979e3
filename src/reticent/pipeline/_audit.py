"""The one pipeline: table, split, product, attacks, evidence, decision, dossier."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent._random import seed_for, stream
from reticent.attack import (
    Attack,
    Challenge,
    CombinedPool,
    Confidence,
    Entropy,
    Knowledge,
    LearnedOutputs,
    LikelihoodRatio,
    LikelihoodRatioOffline,
    Loss,
    ModifiedEntropy,
    Pool,
    RelativeRatio,
    RetrainingRounds,
    SealedTags,
    ShadowModels,
)
from reticent.data import (
    BlindBaseline,
    Finding,
    Severity,
    Split,
    Table,
    blind_baseline,
    check_split,
)
from reticent.errors import InvalidInput
from reticent.evidence import (
    Calibration,
    Evidence,
    GroupEvidence,
    InsiderEvidence,
    best_of,
    calibration,
    epsilon_ceiling,
    individual_histogram,
    individual_privacy,
    measure_attack,
    measure_groups,
    pair_wins,
    privacy_from_accuracy,
    score_histogram,
    smallest_visible_leak,
    split_level,
    strongest,
    theorem_1,
    theorem_2,
    utility,
)
from reticent.pipeline._controls import memorised_answers, memorising, unrelated
from reticent.pipeline._insider import play_insider
from reticent.pipeline._pool import train_pool
from reticent.pipeline._stages import Arrays, Stages
from reticent.policy import Control, Policy, decide, read_policy
from reticent.product import FittedProduct, Predictor, Provenance, Trainer, versions
from reticent.report import Dossier
from reticent.report.words import insider_warning, summarise

__all__ = [
    "DEFAULT_ATTACKS",
    "POOL_ATTACKS",
    "AuditPlan",
    "AuditResult",
    "PerRecord",
    "run_audit",
]

DEFAULT_ATTACKS: tuple[Attack, ...] = (
    Loss(),
    Confidence(),
    Entropy(),
    ModifiedEntropy(),
    LearnedOutputs(),
)
POOL_ATTACKS: tuple[Attack, ...] = (
    LikelihoodRatio(),
    LikelihoodRatioOffline(),
    RelativeRatio(),
    ShadowModels(),
    CombinedPool(),
)
BLIND_FALSE_ALARM = 0.01
_NULL_HALVES = "One half of the non-members, set against the other,"

Progress = Callable[[str, int, int], None]


def _silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What to audit, by which rules, with how much effort.

    Parameters
    ----------
    trainer : Trainer or None
        The recipe of the product; None if only the product is at hand.
    product : FittedProduct or None
        A product made elsewhere; None to train one on the defender's part.
    answers_only : bool
        Whether there is neither, but only answers saved before.
    policy : Policy
        The rules of release.
    seed : int
        Seed of split, training and attacks.
    attacks : tuple of Attack
        The outsider's attacks.
    minutes : float
        About how long the audit may take; the retraining insider uses what the rest leaves.
    rounds : int
        Largest number of retraining rounds per regime.
    pool : int
        Number of models trained on random halves of the records, for the attacks that
        compare with them; 0 for none, else even and at least 4.
    workers : int
        Processes for retraining.
    claimed_epsilon : float or None
        What whoever trained the product claims.
    provenance : Provenance
        What is known of a product made elsewhere.
    product_content : str
        Hash of that product's file, by which kept stages know it.
    subject : mapping of str to str
        Names for the report.
    repeat : str
        How to run it again.
    """

    trainer: Trainer | None
    product: FittedProduct | None = None
    answers_only: bool = False
    policy: Policy = field(default_factory=lambda: read_policy("default"))
    seed: int = 0
    attacks: tuple[Attack, ...] = DEFAULT_ATTACKS
    minutes: float = 2.0
    rounds: int = 100
    pool: int = 0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    claimed_epsilon: float | None = None
    provenance: Provenance = field(default_factory=Provenance)
    product_content: str = ""
    subject: Mapping[str, str] = field(default_factory=dict)
    repeat: str = ""

    def __post_init__(self) -> None:
        if self.trainer is None and self.product is None and not self.answers_only:
            raise InvalidInput(
                "there is neither a trainer nor a product, so there is nothing to audit; pass one of them."
            )
        if self.minutes <= 0 or self.rounds < 1 or self.workers < 1:
            raise InvalidInput(
                f"minutes ({self.minutes}), rounds ({self.rounds}) and workers ({self.workers}) must be "
                "positive; correct them."
            )
        if self.pool < 0 or self.pool % 2 or self.pool == 2:
            raise InvalidInput(
                f"the pool has {self.pool} models, but every record must be in half of them and out of the other "
                "half, at least twice; use 0 or an even number from 4."
            )
        if self.pool and self.trainer is None:
            raise InvalidInput(
                "a pool is asked for but there is no trainer to make it; pass the trainer as well."
            )
        if self.seed < 0:
            raise InvalidInput(f"the seed is {self.seed}, but must be at least 0.")


@dataclass(frozen=True, kw_only=True)
class PerRecord:
    """Individual risk, one entry per unit. SENSITIVE: it names who was in the table.

    Parameters
    ----------
    row : array of int
        Row number of the unit's first record in the table that was read.
    member : array of bool
        Whether the unit trained the product.
    score : array of float
        Score of the strongest attack.
    privacy : array of float
        Individual privacy score.
    """

    row: NDArray[np.int64]
    member: NDArray[np.bool_]
    score: NDArray[np.float64]
    privacy: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The dossier, and what never enters it."""

    dossier: Dossier
    per_record: PerRecord
    product: FittedProduct | None


@dataclass(frozen=True, kw_only=True)
class _Answers:
    """The product's answers on members, then non-members."""

    probabilities: NDArray[np.float64]
    outputs: NDArray[np.float64]
    warnings: tuple[str, ...]
    exact: bool


class _Sides:
    """Members, then non-members: their tags and units, and scores summed up per unit."""

    def __init__(
        self,
        tags: NDArray[np.bool_],
        units: NDArray[np.int64],
        pool: Pool | None = None,
    ) -> None:
        self.tags, self.units, self.pool = tags, units, pool
        self.names, self.first, self.unit_of_row = np.unique(
            units, return_index=True, return_inverse=True
        )
        self.unit_tags = tags[self.first]

    def knowledge(self) -> Knowledge:
        return Knowledge(tags=SealedTags(self.tags, self.units), pool=self.pool)

    def by_unit(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean score of each unit: the question is about people, not rows."""
        counts = np.bincount(self.unit_of_row)
        return np.bincount(self.unit_of_row, weights=scores) / counts

    def divide(
        self, scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the scores of member units and of non-member units."""
        per_unit = self.by_unit(scores)
        return per_unit[self.unit_tags], per_unit[~self.unit_tags]


def run_audit(
    table: Table,
    plan: AuditPlan,
    *,
    split: Split | None = None,
    stages: Stages | None = None,
    progress: Progress = _silent,
) -> AuditResult:
    """Audit a product: from a table to a dossier.

    Parameters
    ----------
    table : Table
        The records.
    plan : AuditPlan
        What to audit and by which rules.
    split : Split, optional
        Parts; by default the table's own, or a random split by unit.
    stages : Stages, optional
        Where finished stages are kept; by default nowhere.
    progress : callable
        Called with a stage's name, what is done and what there is to do.
    """
    started = time.perf_counter()
    stages = stages or Stages(folder=None)
    if split is None:
        split = divide(table, seed=plan.seed)
    content = _content(split, plan)

    progress("checking the data", 0, 1)
    findings = check_split(split, smallest_group=plan.policy.smallest_group)
    blind = stages.get("blind", content[:2], lambda: _blind(split, plan.seed))
    baseline = BlindBaseline(
        accuracy=float(blind["accuracy"]), p_value=float(blind["p_value"])
    )
    findings.append(baseline.finding(false_alarm=BLIND_FALSE_ALARM))
    progress("checking the data", 1, 1)

    progress("training the product", 0, 2)
    product: FittedProduct | None = plan.product
    made: list[FittedProduct] = []
    answers = _answers(
        stages.get("answers", content, lambda: _train(split, plan, made))
    )
    product = product or (made[0] if made else None)
    findings += _training_findings(answers)
    progress("training the product", 1, 2)
    null_probabilities, null_what, null_rows = _null_answers(
        split, plan, answers, content, stages
    )
    progress("training the product", 2, 2)

    both = split.defender.join(split.reserved)
    pool = None
    if plan.pool and plan.trainer is not None:
        pool = train_pool(
            plan.trainer,
            both,
            models=plan.pool,
            seed=plan.seed,
            content=content,
            stages=stages,
            workers=plan.workers,
            progress=progress,
        )
        plan = replace(plan, attacks=(*plan.attacks, *POOL_ATTACKS))
    sides = _Sides(
        np.repeat([True, False], [len(split.defender), len(split.reserved)]),
        both.units,
        pool,
    )
    challenge = Challenge(probabilities=answers.probabilities, labels=both.target)
    known = np.isin(both.row_hashes, split.defender.row_hashes)
    core = _attack_and_measure(
        challenge,
        sides,
        plan,
        content,
        stages,
        progress,
        memorised=memorised_answers(both.target, known, len(both.classes)),
        null=(null_probabilities, null_what, null_rows),
        groups=both.groups,
    )
    insider = None
    if plan.trainer is not None:
        left = 60 * plan.minutes - (time.perf_counter() - started)
        insider = play_insider(
            RetrainingRounds(
                trainer=plan.trainer,
                defender=split.defender,
                reserved=split.reserved,
                answers=answers.outputs,
                train_seed=train_seed(_product_seed(plan)),
                seed=plan.seed,
            ),
            content=content,
            stages=stages,
            limit=_insider_limit(plan.policy),
            level=plan.policy.confidence,
            statements=plan.policy.statements
            if "insider" in plan.policy.decides_on
            else 1,
            most_rounds=plan.rounds,
            # Planned from the budget, not from the clock, but for what was already used.
            seconds=max(0.8 * left, 0.25 * 60 * plan.minutes),
            workers=plan.workers,
            progress=progress,
        )
    provenance = replace(
        plan.provenance,
        recipe=plan.trainer.recipe if plan.trainer else plan.provenance.recipe,
        data_fingerprint=table.fingerprint,
        seed=plan.seed if plan.product is None else plan.provenance.seed,
        classes=table.classes,
        versions=versions(),
        claimed_epsilon=plan.claimed_epsilon
        if plan.claimed_epsilon is not None
        else plan.provenance.claimed_epsilon,
    )
    records = {
        "defender": len(split.defender),
        "reserved": len(split.reserved),
        "auxiliary": len(split.auxiliary) if split.auxiliary is not None else 0,
        "member_units": core.members,
        "nonmember_units": core.nonmembers,
    }
    dossier = _dossier(core, insider, findings, provenance, records, plan)
    return AuditResult(
        dossier=dossier,
        per_record=_per_record(core, sides, both.ids),
        product=product,
    )


def outputs_dossier(
    challenge: Challenge,
    *,
    tags: NDArray[np.bool_],
    findings: Sequence[Finding],
    policy: Policy,
    seed: int,
    provenance: Provenance,
    subject: Mapping[str, str],
    repeat: str,
) -> Dossier:
    """Audit answers without a model: the outsider's attacks, controls and decision alone."""
    plan = AuditPlan(
        trainer=None,
        product=None,
        answers_only=True,
        policy=policy,
        seed=seed,
        subject=subject,
        repeat=repeat,
    )
    sides = _Sides(tags, np.arange(len(tags)))
    rows = np.flatnonzero(~tags)
    classes = challenge.probabilities.shape[1]
    core = _attack_and_measure(
        challenge,
        sides,
        plan,
        (),
        Stages(folder=None),
        _silent,
        memorised=memorised_answers(challenge.labels, tags, classes),
        null=(challenge.probabilities[rows], _NULL_HALVES, rows),
        groups=None,
    )
    records = {
        "defender": int(tags.sum()),
        "reserved": int((~tags).sum()),
        "auxiliary": 0,
        "member_units": core.members,
        "nonmember_units": core.nonmembers,
    }
    return _dossier(core, None, findings, provenance, records, plan)


def divide(table: Table, *, seed: int) -> Split:
    """Return the table's own parts, or divide it by unit with the run's seed."""
    if table.parts is not None:
        return Split.by_part(table)
    return Split.by_unit(table, rng=stream(seed, "split"))


def _product_seed(plan: AuditPlan) -> int:
    """Return the seed of the run that trained the product, as far as it is known."""
    if plan.product is not None and plan.provenance.seed is not None:
        return plan.provenance.seed
    return plan.seed


def train_seed(seed: int) -> int:
    """Return the seed the product is trained with."""
    return seed_for(seed, "train")


@dataclass(frozen=True, kw_only=True)
class _Core:
    """What follows from answers alone, before the insider is heard."""

    evidence: Evidence
    controls: tuple[Control, ...]
    best_scores: NDArray[np.float64]

    @property
    def members(self) -> int:
        return self.evidence.members

    @property
    def nonmembers(self) -> int:
        return self.evidence.nonmembers


def _content(split: Split, plan: AuditPlan) -> tuple[str, ...]:
    """Return what every stage depends on."""
    auxiliary = split.auxiliary.fingerprint if split.auxiliary is not None else "none"
    recipe = "" if plan.trainer is None else _recipe_content(plan.trainer)
    return (
        f"{split.defender.fingerprint}/{split.reserved.fingerprint}/{auxiliary}",
        str(plan.seed),
        recipe,
        plan.product_content,
    )


def _recipe_content(trainer: Trainer) -> str:
    """Return the recipe and, if it is the user's own code, that code's content."""
    source, prepared = (
        getattr(trainer, "source", ""),
        getattr(trainer, "preprocess", ""),
    )
    return f"{trainer.recipe} {source} {prepared}"


def _blind(split: Split, seed: int) -> Arrays:
    found = blind_baseline(split, rng=stream(seed, "blind"))
    return {"accuracy": np.array(found.accuracy), "p_value": np.array(found.p_value)}


def _train(split: Split, plan: AuditPlan, made: list[FittedProduct]) -> Arrays:
    """Train the product, or take the one that was brought, and query it on every record."""
    product: Predictor
    if plan.product is not None:
        product = plan.product
    else:
        assert plan.trainer is not None
        product = plan.trainer.train(split.defender, seed=train_seed(plan.seed))
    if isinstance(product, FittedProduct):
        made.append(product)
    features = split.defender.join(split.reserved).features
    return {
        "outputs": product.outputs(features),
        "probabilities": product.predict_proba(features),
        "warnings": np.array(getattr(product, "warnings", ()), dtype=str),
        "exact": np.array(getattr(product, "has_probabilities", True)),
    }


def _answers(arrays: Arrays) -> _Answers:
    return _Answers(
        probabilities=np.asarray(arrays["probabilities"], dtype=np.float64),
        outputs=np.asarray(arrays["outputs"], dtype=np.float64),
        warnings=tuple(str(w) for w in arrays["warnings"]),
        exact=bool(arrays["exact"]),
    )


def _training_findings(answers: _Answers) -> list[Finding]:
    made = [
        Finding(
            name="trainer_warning",
            severity=Severity.NOTE,
            text=f"the trainer gave a {warning}; run it outside reticent to read it.",
        )
        for warning in answers.warnings[:3]
    ]
    if not answers.exact:
        made.append(
            Finding(
                name="decision_values",
                severity=Severity.NOTE,
                text="the product gives decision values, no probabilities; they were turned into probabilities "
                "by the logistic function, which keeps their order.",
            )
        )
    return made


def _null_answers(
    split: Split,
    plan: AuditPlan,
    answers: _Answers,
    content: tuple[str, ...],
    stages: Stages,
) -> tuple[NDArray[np.float64], str, NDArray[np.int64] | None]:
    """Return answers that cannot depend on membership, and on which records.

    With a trainer and auxiliary records: those of a product trained on the latter. Else the
    product's own answers on the reserved part, of which one half is called members.
    """
    auxiliary = split.auxiliary
    if plan.trainer is not None and auxiliary is not None and _all_classes(auxiliary):
        trainer = plan.trainer

        def make() -> Arrays:
            product = trainer.train(auxiliary, seed=seed_for(plan.seed, "control"))
            features = split.defender.join(split.reserved).features
            return {"probabilities": product.predict_proba(features)}

        arrays = stages.get("control", content, make)
        probabilities = np.asarray(arrays["probabilities"], dtype=np.float64)
        return probabilities, "A product trained on unrelated records", None
    rows = np.arange(len(split.defender), len(split.defender) + len(split.reserved))
    return (
        answers.probabilities[rows],
        _NULL_HALVES,
        rows,
    )


def _all_classes(table: Table) -> bool:
    return len(np.unique(table.target)) == len(table.classes)


def score_all(
    challenge: Challenge,
    attacks: Sequence[Attack],
    sides: _Sides,
    *,
    seed: int,
    name: str,
    probabilities: dict[str, NDArray[np.float64]] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Return the scores of every attack, one per record."""
    made = {}
    for attack in attacks:
        scores = attack.score(
            challenge,
            knowledge=sides.knowledge(),
            rng=stream(seed, f"attack/{name}/{attack.name}"),
        )
        made[attack.name] = scores.values
        if probabilities is not None and scores.probabilities is not None:
            probabilities[attack.name] = scores.probabilities
    return made


def _attack_and_measure(
    challenge: Challenge,
    sides: _Sides,
    plan: AuditPlan,
    content: tuple[str, ...],
    stages: Stages,
    progress: Progress,
    *,
    memorised: NDArray[np.float64],
    null: tuple[NDArray[np.float64], str, NDArray[np.int64] | None],
    groups: NDArray[np.object_] | None,
) -> _Core:
    """Run the outsider's attacks on product and controls; turn scores into evidence."""
    policy = plan.policy
    total = len(plan.attacks) + 2
    scores: dict[str, NDArray[np.float64]] = {}
    predicted: dict[str, NDArray[np.float64]] = {}
    for number, attack in enumerate(plan.attacks):
        progress("attacking", number, total)

        def make(attack: Attack = attack) -> Arrays:
            own: dict[str, NDArray[np.float64]] = {}
            values = score_all(
                challenge,
                [attack],
                sides,
                seed=plan.seed,
                name="product",
                probabilities=own,
            )
            made: Arrays = {"values": values[attack.name]}
            if attack.name in own:
                made["probabilities"] = own[attack.name]
            return made

        arrays = stages.get(
            f"scores/{attack.name}", (*content, attack, plan.pool), make
        )
        scores[attack.name] = np.asarray(arrays["values"], dtype=np.float64)
        if "probabilities" in arrays:
            predicted[attack.name] = np.asarray(
                arrays["probabilities"], dtype=np.float64
            )
    progress("attacking", total - 2, total)
    controls = _controls(challenge, sides, plan, memorised, null)
    progress("attacking", total, total)

    statements = policy.statements * len(plan.attacks)
    measured = []
    for name, values in scores.items():
        members, nonmembers = sides.divide(values)
        measured.append(
            measure_attack(
                name,
                members,
                nonmembers,
                fpr=policy.limits.tpr_at_fpr,
                exposed_below=policy.limits.exposed_below,
                level=policy.confidence,
                statements=statements,
                rng=stream(plan.seed, f"guesses/{name}"),
            )
        )
    best = strongest(measured)
    members, nonmembers = sides.divide(scores[best.name])
    nonmember_rows = ~sides.tags
    right = challenge.probabilities.argmax(axis=1) == challenge.labels
    classes = challenge.probabilities.shape[1]
    frequencies = np.bincount(challenge.labels[nonmember_rows], minlength=classes)
    loss = 1 - challenge.true_class_probability()
    evidence = Evidence(
        utility=utility(
            int(right[nonmember_rows].sum()),
            int(nonmember_rows.sum()),
            classes=classes,
            level=split_level(policy.confidence, policy.statements),
            independent=len(nonmembers),
        ).stated(
            level=policy.confidence, why=f"joint over {policy.statements} statements"
        ),
        guessing_utility=float(
            (classes * frequencies.max() / frequencies.sum() - 1) / (classes - 1)
        ),
        privacy=privacy_from_accuracy(
            best_of([a.auc for a in measured], level=policy.confidence)
        ),
        tpr_at_fpr=best_of([a.tpr_at_fpr for a in measured], level=policy.confidence),
        exposed=best_of([a.exposed for a in measured], level=policy.confidence),
        attacks=tuple(measured),
        epsilon=best_of([a.epsilon for a in measured], level=policy.confidence),
        epsilon_ceiling=epsilon_ceiling(
            len(members),
            len(nonmembers),
            level=split_level(policy.confidence, statements),
        ),
        smallest_leak=smallest_visible_leak(
            len(members),
            len(nonmembers),
            level=split_level(policy.confidence, statements),
        ),
        members=len(members),
        nonmembers=len(nonmembers),
        groups=_groups(scores[best.name], sides, groups, policy, len(plan.attacks)),
        insider=None,
        scores=score_histogram(members, nonmembers),
        individual=individual_histogram(members, nonmembers),
        calibration=_calibration(predicted, sides, policy),
        theorems=_theorems(loss, right, sides),
    )
    return _Core(evidence=evidence, controls=controls, best_scores=scores[best.name])


def _controls(
    challenge: Challenge,
    sides: _Sides,
    plan: AuditPlan,
    memorised: NDArray[np.float64],
    null: tuple[NDArray[np.float64], str, NDArray[np.int64] | None],
) -> tuple[Control, ...]:
    def scorer(
        sides: _Sides,
    ) -> Callable[..., Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]]:
        def score(
            asked: Challenge, attacks: Sequence[Attack], name: str
        ) -> Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
            made = score_all(asked, attacks, sides, seed=plan.seed, name=name)
            return {key: sides.divide(values) for key, values in made.items()}

        return score

    caught = memorising(
        memorised,
        challenge.labels,
        plan.attacks,
        scorer(sides),
        limit=plan.policy.limits.privacy_at_least or 0.9,
        level=plan.policy.confidence,
    )
    probabilities, what, rows = null
    labels, null_sides = challenge.labels, sides
    if rows is not None:
        labels = labels[rows]
        null_sides = _halves(sides, rows, seed=plan.seed)
    quiet = unrelated(
        probabilities, labels, plan.attacks, scorer(null_sides), what=what
    )
    return caught, quiet


def _halves(sides: _Sides, rows: NDArray[np.int64], *, seed: int) -> _Sides:
    """Call a random half of the units of some rows members."""
    names, unit_of_row = np.unique(sides.units[rows], return_inverse=True)
    chosen = stream(seed, "control/halves").permutation(len(names)) % 2 == 0
    pool = None if sides.pool is None else sides.pool.take(rows)
    return _Sides(chosen[unit_of_row], sides.units[rows], pool)


def _groups(
    scores: NDArray[np.float64],
    sides: _Sides,
    groups: NDArray[np.object_] | None,
    policy: Policy,
    attacks: int,
) -> tuple[GroupEvidence, ...]:
    if groups is None:
        return ()
    per_unit = sides.by_unit(scores)
    unit_groups = groups[sides.first]
    found = {}
    for name in sorted(set(unit_groups)):
        its = unit_groups == name
        members = per_unit[its & sides.unit_tags]
        nonmembers = per_unit[its & ~sides.unit_tags]
        if min(len(members), len(nonmembers)) >= policy.smallest_group:
            found[str(name)] = (members, nonmembers)
    # The attack was chosen on the same records, so its choice is paid for here too.
    statements = attacks * (
        policy.statements if policy.limits.group_privacy_at_least is not None else 1
    )
    return measure_groups(found, level=policy.confidence, statements=statements)


def _calibration(
    predicted: Mapping[str, NDArray[np.float64]], sides: _Sides, policy: Policy
) -> Calibration | None:
    for probabilities in predicted.values():
        per_unit = sides.by_unit(probabilities)
        # At least 20 people a bin: fewer would say too much of each.
        bins = max(2, min(10, len(per_unit) // 20))
        return calibration(
            per_unit, sides.unit_tags, level=policy.confidence, bins=bins
        )
    return None


def _theorems(
    loss: NDArray[np.float64], right: NDArray[np.bool_], sides: _Sides
) -> dict[str, float]:
    """Return what Theorems 1 and 2 guarantee an attacker, by 1 - p(true class) and 0-1 loss."""
    members, nonmembers = loss[sides.tags], loss[~sides.tags]
    p_r, p_d, first = theorem_1(members, nonmembers)
    e_r, e_d, second = theorem_2(members, nonmembers)
    wrong = (~right).astype(float)
    error_r, error_d, third = theorem_2(wrong[sides.tags], wrong[~sides.tags])
    return {
        "p_reserved": p_r,
        "p_defender": p_d,
        "theorem_1": first,
        "e_reserved": e_r,
        "e_defender": e_d,
        "theorem_2": second,
        "error_reserved": error_r,
        "error_defender": error_d,
        "theorem_2_zero_one": third,
    }


def _insider_limit(policy: Policy) -> float:
    limits = policy.limits
    return limits.insider_privacy_at_least or limits.privacy_at_least or 0.9


def _dossier(
    core: _Core,
    insider: InsiderEvidence | None,
    findings: Sequence[Finding],
    provenance: Provenance,
    records: Mapping[str, int],
    plan: AuditPlan,
) -> Dossier:
    evidence = replace(core.evidence, insider=insider)
    decision = decide(
        plan.policy,
        evidence,
        controls=core.controls,
        stops=[f.text for f in findings if f.severity == Severity.STOP],
        claimed_epsilon=provenance.claimed_epsilon,
        people_repeat=records["defender"] > records["member_units"],
    )
    warnings = []
    if "insider" not in plan.policy.decides_on:
        warnings.append(insider_warning(insider))
    return Dossier(
        decision=decision,
        summary=summarise(decision, evidence, plan.policy),
        warnings=tuple(warnings),
        evidence=evidence,
        controls=core.controls,
        findings=tuple(findings),
        policy=plan.policy,
        provenance=provenance,
        seed=plan.seed,
        records=records,
        subject=plan.subject,
        repeat=plan.repeat,
    )


def _per_record(core: _Core, sides: _Sides, ids: NDArray[np.int64]) -> PerRecord:
    scores = sides.by_unit(core.best_scores)
    wins = pair_wins(scores[sides.unit_tags], scores[~sides.unit_tags])
    privacy = np.empty(len(scores))
    privacy[sides.unit_tags] = individual_privacy(wins)
    privacy[~sides.unit_tags] = np.minimum(2 * (1 - wins.nonmembers), 1.0)
    return PerRecord(
        row=ids[sides.first], member=sides.unit_tags, score=scores, privacy=privacy
    )


def results_folder(out: Path) -> Path:
    """Return the folder in which an unfinished audit keeps its stages."""
    return out / ".unfinished"
