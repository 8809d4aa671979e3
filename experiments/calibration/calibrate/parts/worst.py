"""The worst case: the best adversary that sees a feature, by counts, densities and neighbours."""

import numpy as np

from calibrate.parts.accuracy import BINARY, TIES
from calibrate.rows import MISSED, Case, interval_case
from calibrate.settings import LEVEL, MEDIUM, SHORT, SLOW
from calibrate.truths import (
    Scores,
    comb,
    discrete,
    exponential,
    few_exposed,
    heavy,
    normal,
)
from reticent.evidence import (
    subgroup_aware,
    worst_case_density,
    worst_case_discrete,
    worst_case_vectors,
)

ASKED = {"feature": "x", "level": LEVEL}


def worst(name: str, ask, scores: Scores, m: int, n: int, repeats: int) -> Case:
    """The interval as a whole, because its ends are folded at 0; and the permutation p-value where nothing differs."""
    truth = scores.variation
    is_null = truth == 0

    def once(rng: np.random.Generator) -> tuple[bool, ...]:
        made = ask(*scores.draw(rng, m, n), **ASKED, rng=rng)
        missed = not (made.estimate.low - 1e-9 <= truth <= made.estimate.high + 1e-9)
        return (missed, made.p_value <= 0.05) if is_null else (missed,)

    errors = [(MISSED, 1 - LEVEL)]
    if is_null:
        errors.append(("permutation p-value at most 0.05", 0.05))
    return Case(
        statement=f"worst case (`{name}`)",
        data=f"{scores.name}; {m} against {n}",
        errors=tuple(errors),
        once=once,
        repeats=repeats,
    )


def by_counts(scores: Scores, m: int, n: int) -> Case:
    return worst("worst_case_discrete", worst_case_discrete, scores, m, n, SHORT)


def by_density(scores: Scores, m: int, n: int) -> Case:
    return worst("worst_case_density", worst_case_density, scores, m, n, SLOW)


def by_neighbours(shift: float, dimensions: int, n: int) -> Case:
    scores = Scores(
        name=f"normal in {dimensions} dimensions, apart by {shift:g} in each",
        draw=lambda rng, m, n: (
            rng.normal(shift, 1, (m, dimensions)),
            rng.normal(0, 1, (n, dimensions)),
        ),
        auc=float("nan"),
        tpr=lambda f: float("nan"),
        variation=normal(shift * np.sqrt(dimensions)).variation,
    )
    return worst("worst_case_vectors", worst_case_vectors, scores, n, n, SLOW)


def with_groups(n: int) -> Case:
    """Two groups whose gaps point in opposite directions: 0.4 for whoever knows the group."""
    first, second = discrete((0.3, 0.7), (0.7, 0.3)), discrete((0.7, 0.3), (0.3, 0.7))

    def estimate(rng: np.random.Generator) -> object:
        each = [
            (
                1.0,
                worst_case_discrete(
                    *scores.draw(rng, n, n), feature="x", level=0.975, rng=rng
                ).estimate,
            )
            for scores in (first, second)
        ]
        return subgroup_aware(each, level=LEVEL)

    return interval_case(
        "worst case, group known (`subgroup_aware`)",
        f"two values, opposite gaps of 0.4; {n} against {n} in each of two groups",
        estimate,
        truth=0.4,
        repeats=MEDIUM,
    )


def cases() -> list[Case]:
    alike = discrete((0.3, 0.3, 0.2, 0.1, 0.1), (0.3, 0.3, 0.2, 0.1, 0.1))
    even = discrete((0.5, 0.5), (0.5, 0.5))
    return [
        by_counts(even, 100, 100),
        by_counts(BINARY, 100, 100),
        by_counts(discrete((0.02, 0.98), (0.06, 0.94)), 30, 600),
        by_counts(alike, 100, 100),
        by_counts(TIES, 100, 100),
        by_counts(comb(5), 60, 60),
        by_counts(comb(40), 60, 60),
        by_counts(comb(40, 0.5), 60, 60),
        by_density(normal(0.0), 300, 300),
        by_density(normal(0.3), 300, 300),
        by_density(normal(1.0), 300, 300),
        by_density(normal(1.0), 30, 600),
        by_density(exponential(3.0), 200, 200),
        by_density(heavy(2.0), 200, 200),
        by_density(few_exposed(0.05), 300, 300),
        by_density(comb(3), 200, 200),
        by_density(comb(40), 200, 200),
        by_neighbours(0.0, 2, 150),
        by_neighbours(1.0, 2, 150),
        by_neighbours(0.5, 10, 150),
        with_groups(100),
    ]
