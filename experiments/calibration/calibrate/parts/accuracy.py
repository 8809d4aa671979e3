"""LTU accuracy, privacy scores, individual privacy, and the choice of the best attack."""

import numpy as np

from calibrate.rows import Case, alarm_case, interval_case
from calibrate.settings import AUDIT_LEVEL, INSTANT, LEVEL, QUICK, RARE, SHORT
from calibrate.truths import (
    Scores,
    discrete,
    exponential,
    few_exposed,
    heavy,
    normal,
)
from reticent.evidence import (
    Joint,
    Limit,
    Outcome,
    best_of,
    exposed_share,
    individual_privacy,
    ltu_accuracy,
    pair_wins,
    privacy_from_accuracy,
    split_level,
    tpr_at_fpr,
)

TIES = discrete((0.1, 0.2, 0.3, 0.4), (0.4, 0.3, 0.2, 0.1))
BINARY = discrete((0.4, 0.6), (0.6, 0.4))
ATTACKS = 13  # of a classifier with a pool


def accuracy(
    scores: Scores, m: int, n: int, repeats: int, level: float = LEVEL
) -> Case:
    return interval_case(
        "LTU accuracy (`ltu_accuracy`)",
        f"{scores.name}; {m} against {n}" + ("" if level == LEVEL else ", audit level"),
        lambda rng: ltu_accuracy(*scores.draw(rng, m, n), level=level),
        truth=scores.auc,
        repeats=repeats,
        level=level,
    )


def privacy(scores: Scores, m: int, n: int) -> Case:
    return interval_case(
        "privacy score (`privacy_from_accuracy`)",
        f"{scores.name}; {m} against {n}",
        lambda rng: privacy_from_accuracy(
            ltu_accuracy(*scores.draw(rng, m, n), level=LEVEL)
        ),
        truth=min(1.0, 2 * (1 - scores.auc)),
        repeats=INSTANT,
    )


def individual(n: int) -> Case:
    """Without a leak a share b/2 of members has a score below b: counted over tables, one member each."""

    def alarm(rng: np.random.Generator) -> bool:
        wins = pair_wins(rng.normal(size=1), rng.normal(size=n))
        return bool(individual_privacy(wins)[0] < 0.1)

    return alarm_case(
        "individual privacy below 0.1 without a leak (`individual_privacy`)",
        f"normal; one member against {n}",
        alarm,
        nominal=0.05,
        repeats=INSTANT,
        error="score below 0.1",
    )


def best_attack(n: int, pay: bool = True) -> Case:
    """The best of thirteen attacks that know nothing; independent ones are the worst case for a choice."""

    def alarm(rng: np.random.Generator) -> bool:
        level = split_level(LEVEL, ATTACKS) if pay else LEVEL
        estimates = [
            ltu_accuracy(rng.normal(size=n), rng.normal(size=n), level=level)
            for _ in range(ATTACKS)
        ]
        return best_of(estimates, level=LEVEL).low > 0.5

    return alarm_case(
        "accuracy of the best attack (`best_of`)",
        f"13 independent attacks without a leak; {n} against {n}",
        alarm,
        nominal=0.025,
        repeats=SHORT,
    )


def at_the_limit(n: int) -> list[Case]:
    """Each required statement of the default policy with its truth exactly on the limit: both decisions are then errors.

    The attacks are equally good and independent between attacks, which makes a wrong decision most likely. A limit has a fifth of the
    policy's 0.05, half of it on either side.
    """
    joint = Joint(level=LEVEL, statements=5).times(ATTACKS)
    each = 0.05 / 5 / 2

    def case(name: str, scores: Scores, limit: Limit, estimate, mapped) -> Case:
        def once(rng: np.random.Generator) -> tuple[bool, bool]:
            made = [
                estimate(*scores.draw(rng, n, n), joint.each) for _ in range(ATTACKS)
            ]
            outcome = limit.outcome(mapped(best_of(made, level=LEVEL)))
            return outcome == Outcome.BROKEN, outcome == Outcome.KEPT

        return Case(
            statement=f"`{name}` of the default policy, truth on its limit",
            data=f"{scores.name}, 13 attacks; {n} against {n}",
            errors=(
                ("limit called broken", each),
                ("limit called kept", each),
            ),
            once=once,
            repeats=SHORT,
        )

    return [
        case(
            "privacy",
            normal(0.17771),
            Limit(measure="privacy", at_least=2 * (1 - normal(0.17771).auc)),
            lambda d, r, level: ltu_accuracy(d, r, level=level),
            privacy_from_accuracy,
        ),
        case(
            "tpr",
            normal(0.76),
            Limit(measure="tpr", at_most=normal(0.76).tpr(0.001)),
            lambda d, r, level: tpr_at_fpr(d, r, fpr=0.001, level=level),
            lambda estimate: estimate,
        ),
        case(
            "exposed",
            normal(0.3633),
            Limit(measure="exposed", at_most=normal(0.3633).tpr(0.05)),
            lambda d, r, level: exposed_share(d, r, below=0.1, level=level),
            lambda estimate: estimate,
        ),
    ]


def cases() -> list[Case]:
    return [
        accuracy(normal(0.0), 60, 60, INSTANT),
        accuracy(normal(1.0), 60, 80, INSTANT),
        accuracy(normal(0.0), 20, 20, INSTANT),
        accuracy(normal(2.905), 30, 600, INSTANT),
        accuracy(normal(2.905), 600, 30, INSTANT),
        accuracy(exponential(2.0), 100, 100, INSTANT),
        accuracy(heavy(1.0), 100, 100, INSTANT),
        accuracy(few_exposed(0.01), 500, 500, QUICK),
        accuracy(TIES, 100, 100, INSTANT),
        accuracy(BINARY, 100, 100, INSTANT),
        accuracy(normal(0.0), 60, 60, RARE, AUDIT_LEVEL),
        accuracy(normal(0.0), 200, 200, RARE, AUDIT_LEVEL),
        accuracy(normal(0.5), 30, 600, RARE, AUDIT_LEVEL),
        accuracy(TIES, 60, 60, RARE, AUDIT_LEVEL),
        privacy(normal(0.0), 100, 100),
        privacy(normal(1.0), 100, 100),
        privacy(TIES, 100, 100),
        individual(200),
        best_attack(80),
        *at_the_limit(300),
    ]
