"""Groups: measures that hold together, crossed tests over models, tests over repeats, and every model as the target."""

import numpy as np
from scipy.special import ndtr, ndtri

from calibrate.rows import HIGH, LOW, MISSED, Case, alarm_case
from calibrate.settings import LEVEL, LONG, MEDIUM, SHORT
from calibrate.truths import normal
from reticent.evidence import (
    Correction,
    Joint,
    UnitGroups,
    UnitScores,
    adjust,
    anova,
    by_group,
    crossed,
    ltu_accuracy,
    measure_groups,
    measure_targets,
    pairwise,
)


def grouped(groups: int, each: int, shift: float) -> list[Case]:
    """Groups of equal size that are all equally exposed."""
    truth = normal(shift).auc
    group = np.arange(groups * each) % groups
    data = f"normal, apart by {shift:g}, {groups} groups of {each}"

    def made(rng: np.random.Generator):
        d, r = normal(shift).draw(rng, len(group), len(group))
        return by_group(
            lambda d, r, level: ltu_accuracy(d, r, level=level),
            d, r, group, group, level=LEVEL,
        )  # fmt: skip

    return [
        alarm_case(
            "accuracy of groups, all together (`by_group`)",
            data,
            lambda rng: any(
                not e.low <= truth <= e.high for e in made(rng).estimates
            ),
            nominal=1 - LEVEL,
            repeats=SHORT,
            error=MISSED,
        ),
        alarm_case(
            "equal groups called different (`ByGroup.difference`)",
            data,
            lambda rng: made(rng).difference().low > 0,
            nominal=1 - LEVEL,
            repeats=SHORT,
        ),
    ]  # fmt: skip


def group_privacy(groups: int, each: int) -> Case:
    """The required statement: some group's privacy is called below 1 although nothing leaks."""
    names = (np.arange(groups * each) % groups).astype(str)

    def alarm(rng: np.random.Generator) -> bool:
        d, r = rng.normal(size=(2, len(names)))
        made = measure_groups(
            UnitScores(members=d, nonmembers=r),
            UnitGroups(members=names, nonmembers=names),
            smallest=20,
            joint=Joint(level=LEVEL),
            rng=rng,
        )
        return any(g.privacy.high < 1 for g in made)

    return alarm_case(
        "privacy of the worst group (`measure_groups`)",
        f"no leak, {groups} groups of {each}",
        alarm,
        nominal=(1 - LEVEL) / 2,
        repeats=LONG // 8,  # each holds six worst cases with their permutations
    )


def decisions(
    rng: np.random.Generator, *, record: float, model: float, models: int, groups: int
):
    """Return decisions of complementary pairs of models; every group has the vulnerability 0.15.

    Records differ by up to ``record``, and each pair of models by up to ``model`` in each group.
    """
    n = 80 * groups
    group = np.arange(n) % groups
    half = rng.random((models // 2, n)) < 0.5
    masks = np.stack([half, ~half], axis=1).reshape(models, n)
    each = 0.15 + record * rng.uniform(-0.5, 0.5, n)
    effect = model * rng.uniform(-0.5, 0.5, (models // 2, groups))
    rate = 0.4 + np.where(masks, each + effect[:, group].repeat(2, axis=0), 0.0)
    return rng.random(masks.shape) < rate, masks, group, np.arange(models) // 2


def over_models(record: float, model: float, models: int, groups: int) -> Case:
    def once(rng: np.random.Generator) -> tuple[bool, ...]:
        called, masks, group, clusters = decisions(
            rng, record=record, model=model, models=models, groups=groups
        )
        made = crossed(called, masks, group, clusters=clusters, level=LEVEL)
        return (
            made.p_value < 0.05,
            min(p.adjusted for p in made.pairs) < 0.05,
            any(not e.low <= 0.15 <= e.high for e in made.vulnerability),
            any(not p.difference.low <= 0 <= p.difference.high for p in made.pairs),
        )

    return Case(
        statement="groups over models (`crossed`)",
        data=f"records differ by {record:g}, models by {model:g}; {models} models, {groups} groups",
        errors=(
            ("equal groups called different", 0.05),
            ("a pair called different", 0.05),
            ("vulnerability of a group missed", 0.05),
            ("difference of a pair missed", 0.05),
        ),
        once=once,
        repeats=MEDIUM,
    )


def over_repeats(overlap: float, repeats: int, groups: int) -> Case:
    """Each repeat judges a random part of one table of 600 people; what differs between groups is chance alone."""
    n = 600
    group = np.arange(n) % groups

    def once(rng: np.random.Generator) -> tuple[bool, bool, bool]:
        x = rng.normal(size=n)
        judged = np.argsort(rng.random((repeats, n)), axis=1)[:, : int(overlap * n)]
        values = np.array(
            [[x[i][group[i] == g].mean() for g in range(groups)] for i in judged]
        )
        pairs = pairwise(
            values, [str(g) for g in range(groups)], overlap=overlap, level=LEVEL
        )
        return (
            anova(values, overlap=overlap).p_value < 0.05,
            min(p.adjusted for p in pairs) < 0.05,
            any(not p.difference.low <= 0 <= p.difference.high for p in pairs),
        )

    return Case(
        statement="groups over repeats (`anova`, `pairwise`)",
        data=f"repeats share {100 * overlap:g} %; {repeats} repeats, {groups} groups",
        errors=(
            ("`anova` calls equal groups different", 0.05),
            ("`pairwise` calls a pair different", 0.05),
            ("difference of a pair missed", 0.05),
        ),
        once=once,
        repeats=MEDIUM,
    )


def adjusted(correction: Correction) -> Case:
    return alarm_case(
        "any of ten true hypotheses rejected (`adjust`)",
        str(correction.value),
        lambda rng: bool(adjust(rng.random(10), correction).min() < 0.05),
        nominal=0.05,
        repeats=SHORT,
    )


def every_target(models: int, n: int, hardness: float) -> Case:
    """Closed form: with a leak ~ N(1, s^2) of a model and scores of variance v the mean AUC is Phi(1 / sqrt(2 v + s^2))."""
    spread, v = 0.4, 1 + hardness**2
    auc = float(ndtr(1 / np.sqrt(2 * v + spread**2)))
    tpr = float(ndtr((1 - np.sqrt(v) * ndtri(0.9)) / np.sqrt(v + spread**2)))

    def once(rng: np.random.Generator) -> tuple[bool, ...]:
        half = rng.random((models // 2, n)) < 0.5
        masks = np.stack([half, ~half], axis=1).reshape(models, n)
        leak = rng.normal(1, spread, models // 2).repeat(2)
        noise = rng.normal(size=(models, n)) + hardness * rng.normal(size=n)
        made = measure_targets(
            "x", leak[:, None] * masks + noise, masks,
            clusters=np.arange(models) // 2, fpr=[0.1], level=LEVEL, rng=rng,
        )  # fmt: skip
        return (
            made.auc.low > auc,
            made.auc.high < auc,
            made.tpr[0].low > tpr,
            made.tpr[0].high < tpr,
        )

    miss = (1 - LEVEL) / 2
    return Case(
        statement="means over products of a trainer (`measure_targets`)",
        data=f"records differ by {hardness:g}; {models} models, {n} records",
        errors=(
            (f"accuracy: {LOW}", miss),
            (f"accuracy: {HIGH}", miss),
            (f"TPR at 10 %: {LOW}", miss),
            (f"TPR at 10 %: {HIGH}", miss),
        ),
        once=once,
        repeats=LONG,
    )


def cases() -> list[Case]:
    return [
        *grouped(8, 40, 0.0),
        *grouped(4, 30, 1.0),
        group_privacy(6, 60),
        over_models(0.4, 0.0, 16, 3),
        over_models(0.0, 0.4, 16, 3),
        over_models(0.4, 0.4, 32, 3),
        over_models(0.4, 0.2, 6, 2),
        over_models(0.4, 0.2, 8, 5),
        over_repeats(0.5, 30, 3),
        over_repeats(0.2, 10, 3),
        over_repeats(0.5, 5, 4),
        adjusted(Correction.HOLM),
        adjusted(Correction.BONFERRONI),
        adjusted(Correction.BENJAMINI_HOCHBERG),
        every_target(12, 200, 0.0),
        every_target(12, 200, 1.0),
        every_target(4, 100, 0.5),
    ]
