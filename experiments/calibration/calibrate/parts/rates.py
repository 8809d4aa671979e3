"""True-positive rates at low false-positive rates, decisions, and what follows from them."""

import numpy as np

from calibrate.parts.accuracy import BINARY, TIES
from calibrate.rows import Case, alarm_case, interval_case
from calibrate.settings import AUDIT_LEVEL, INSTANT, LEVEL, QUICK, RARE, SHORT, SLOW
from calibrate.truths import Scores, exponential, few_exposed, heavy, normal
from reticent.evidence import (
    FoundInFile,
    exposed_share,
    found_beyond_chance,
    guesses,
    name_members,
    predictive_value,
    roc_points,
    tpr_at_fpr,
    vulnerability,
)


def rate(scores: Scores, f: float, m: int, n: int, level: float = LEVEL) -> Case:
    return interval_case(
        "TPR at a fixed FPR (`tpr_at_fpr`)",
        f"{scores.name}, FPR {100 * f:g} %; {m} against {n}"
        + ("" if level == LEVEL else ", audit level"),
        lambda rng: tpr_at_fpr(*scores.draw(rng, m, n), fpr=f, level=level),
        truth=scores.tpr(f),
        repeats=QUICK if level == LEVEL else RARE // 4,
        level=level,
    )


def exposed(scores: Scores, n: int) -> Case:
    return interval_case(
        "share of exposed members (`exposed_share`)",
        f"{scores.name}; {n} against {n}",
        lambda rng: exposed_share(*scores.draw(rng, n, n), below=0.1, level=LEVEL),
        truth=scores.tpr(0.05),
        repeats=QUICK,
    )


def predicted(scores: Scores, n: int) -> Case:
    f, members, population = 0.01, 1_000, 20_000
    tpr = scores.tpr(f)

    def estimate(rng: np.random.Generator) -> object:
        found = tpr_at_fpr(*scores.draw(rng, n, n), fpr=f, level=LEVEL)
        return predictive_value(found, fpr=f, members=members, population=population)

    right, wrong = members * tpr, (population - members) * f
    return interval_case(
        "predictive value (`predictive_value`)",
        f"{scores.name}, FPR 1 %, 1,000 members of 20,000; {n} against {n}",
        estimate,
        truth=right / (right + wrong),
        repeats=QUICK,
    )


def decisions(p: float, q: float, m: int, n: int) -> Case:
    return interval_case(
        "vulnerability of decisions (`vulnerability`)",
        f"rates {p:g} and {q:g}; {m} against {n}",
        lambda rng: vulnerability(rng.random(m) < p, rng.random(n) < q, level=LEVEL),
        truth=p - q,
        repeats=INSTANT,
    )


def learned_threshold(shift: float, n: int) -> Case:
    """Decisions by a threshold learned on the other half; without a leak every threshold has vulnerability 0."""

    def estimate(rng: np.random.Generator) -> object:
        called = guesses(rng.normal(shift, 1, n), rng.normal(size=n), rng=rng)
        return vulnerability(*called, level=LEVEL)

    return interval_case(
        "vulnerability at a learned threshold (`guesses`)",
        f"no leak; {n} against {n}",
        estimate,
        truth=0.0,
        repeats=INSTANT,
    )


def in_file(share: float, chance: float, m: int, n: int) -> Case:
    def estimate(rng: np.random.Generator) -> object:
        found = FoundInFile(
            place="x",
            stage="records",
            members=int(rng.binomial(m, share)),
            nonmembers=int(rng.binomial(n, chance)),
        )
        return found_beyond_chance(found, members=m, nonmembers=n, level=LEVEL)

    return interval_case(
        "members readable in the file (`found_beyond_chance`)",
        f"shares {share:g} and {chance:g}; {m} against {n}",
        estimate,
        truth=m * (share - chance),
        repeats=INSTANT,
    )


def roc_band(n: int) -> Case:
    """Each point of the curve holds by itself: here the point at 10 %."""
    scores = normal(1.0)
    return interval_case(
        "a point of the ROC curve (`roc_points`)",
        f"{scores.name}, FPR 10 %; {n} against {n}",
        lambda rng: (
            roc_points(*scores.draw(rng, n, n), fprs=(0.01, 0.1, 0.5), level=LEVEL)[
                1
            ].tpr
        ),
        truth=scores.tpr(0.1),
        repeats=QUICK,
    )


def names(shift: float, n: int, *, others: int, truth: float) -> Case:
    """The truth is what an attacker with the same number of people names on average, by a large sample."""
    return interval_case(
        "share of members that can be named (`name_members`)",
        f"normal, apart by {shift:g}, {others} others; {n} against {n}",
        lambda rng: name_members(
            rng.normal(shift, 1, n),
            rng.normal(size=n),
            others=others,
            level=LEVEL,
            rng=rng,
        ),
        truth=truth,
        repeats=SLOW,
    )


def names_by_chance(n: int) -> Case:
    """Without a leak a name occurs in at most a tenth of the tables, for each of the two roles of the halves."""

    def alarm(rng: np.random.Generator) -> bool:
        share = name_members(
            *rng.normal(size=(2, n)), others=n, level=LEVEL, rng=rng, replicates=1
        )
        return share.value > 0

    return alarm_case(
        "anybody named without a leak (`name_members`)",
        f"normal; {n} against {n}",
        alarm,
        nominal=0.2,
        repeats=SHORT,
    )


def named_on_average(shift: float, n: int, *, others: int, tables: int) -> float:
    """Return the mean share of named members over many tables: conformal p-values and Benjamini-Hochberg, by hand."""
    rng = np.random.default_rng([7, n, others])
    shares = []
    for _ in range(tables):
        members, outside = rng.normal(shift, 1, n), rng.normal(size=n)
        for known, sought in (
            (outside[: n // 2], outside[n // 2 :]),
            (outside[n // 2 :], outside[: n // 2]),
        ):
            cuts = np.sort(np.concatenate([members, outside]))
            above = n - np.searchsorted(np.sort(members), cuts)
            p = (1 + len(known) - np.searchsorted(np.sort(known), cuts)) / (
                1 + len(known)
            )
            rest = 1 - np.searchsorted(np.sort(sought), cuts) / len(sought)
            is_kept = (n + others) * p <= 0.1 * (above + rest * others)
            shares.append(above[is_kept].max() / n if is_kept.any() else 0.0)
    return float(np.mean(shares))


def cases() -> list[Case]:
    return [
        rate(normal(0.0), 0.001, 3_000, 3_000),
        rate(normal(1.0), 0.01, 400, 400),
        rate(normal(1.0), 0.001, 200, 200),
        rate(normal(2.0), 0.05, 30, 600),
        rate(normal(2.0), 0.05, 600, 30),
        rate(exponential(3.0), 0.02, 200, 200),
        rate(heavy(2.0), 0.01, 300, 300),
        rate(few_exposed(0.01), 0.001, 2_000, 2_000),
        rate(TIES, 0.05, 300, 300),
        rate(BINARY, 0.05, 300, 300),
        rate(normal(0.0), 0.01, 1_000, 1_000, AUDIT_LEVEL),
        exposed(normal(0.0), 200),
        exposed(few_exposed(0.05), 400),
        exposed(TIES, 300),
        predicted(normal(1.0), 400),
        roc_band(200),
        decisions(0.6, 0.4, 60, 60),
        decisions(0.02, 0.01, 200, 200),
        decisions(0.05, 0.05, 30, 600),
        decisions(0.99, 0.01, 100, 100),
        learned_threshold(0.0, 100),
        in_file(0.05, 0.05, 300, 300),
        in_file(0.2, 0.05, 300, 300),
        in_file(0.01, 0.0, 300, 100),
        names(
            2.5,
            400,
            others=400,
            truth=named_on_average(2.5, 400, others=400, tables=4_000),
        ),
        names(
            3.5,
            150,
            others=150,
            truth=named_on_average(3.5, 150, others=150, tables=4_000),
        ),
        names_by_chance(100),
    ]
