"""Utility, gain over a constant answer, R squared and the skill of the absolute error."""

from functools import cache

import numpy as np

from calibrate.rows import Case, interval_case
from calibrate.settings import INSTANT, LEVEL, TRUTH
from reticent.evidence import (
    absolute_skill,
    estimate_share,
    r_squared,
    share_saved,
    utility,
)


def right_answers(accuracy: float, n: int, classes: int) -> Case:
    return interval_case(
        "utility score (`utility`)",
        f"{classes} classes, accuracy {accuracy:g}; {n} people",
        lambda rng: utility(
            int(rng.binomial(n, accuracy)), n, classes=classes, level=LEVEL
        ),
        truth=(classes * accuracy - 1) / (classes - 1),
        repeats=INSTANT,
    )


def right_answers_of_people(people: int, rows: int) -> Case:
    """Each person has several records, and people differ in how hard they are: accuracy is beta(2, 1) by person."""

    def estimate(rng: np.random.Generator) -> object:
        right = rng.binomial(rows, rng.beta(2, 1, people)).sum()
        return utility(
            int(right), people * rows, classes=2, level=LEVEL, independent=people
        )

    return interval_case(
        "utility score (`utility`)",
        f"2 classes, {rows} records each; {people} people",
        estimate,
        truth=2 * 2 / 3 - 1,
        repeats=INSTANT,
    )


def gain(rare: float, miss: float, false: float, n: int, rows: int = 1) -> Case:
    """A rare class that the constant always gets wrong; the product misses some of it, and some of the rest.

    With several records each, a person is all of one class, and all answers about it are right or wrong together.
    """
    truth = 1 - (rare * miss + (1 - rare) * false) / rare

    def estimate(rng: np.random.Generator) -> object:
        is_rare = rng.random(n) < rare
        is_rare[0] |= not is_rare.any()  # a table of one class is refused
        wrong = rng.random(n) < np.where(is_rare, miss, false)
        return share_saved(
            np.repeat(wrong, rows),
            np.repeat(is_rare, rows),
            units=np.repeat(np.arange(n), rows),
            level=LEVEL,
        )

    each = f", {rows} records each" if rows > 1 else ""
    return interval_case(
        "gain over a constant answer (`share_saved`)",
        f"constant wrong {100 * rare:g} %, product {100 * (rare * miss + (1 - rare) * false):.3g} %{each}; {n} people",
        estimate,
        truth=truth,
        repeats=INSTANT,
    )


def normal_quantity(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x, noise = rng.normal(size=(2, n))
    return x, x + noise


def incomes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal: the logarithm has variance 1, of which 0.64 is explained."""
    x, noise = rng.normal(size=(2, n))
    return np.exp(0.8 * x + 0.18), np.exp(0.8 * x + 0.6 * noise)


@cache
def skill_by_sample(name: str) -> float:
    draw, middle = {"normal": (normal_quantity, 0.0), "log-normal": (incomes, 1.0)}[
        name
    ]
    rng = np.random.default_rng([11, len(name)])
    lost = by_constant = 0.0
    for _ in range(8):
        f, y = draw(rng, TRUTH)
        lost += np.abs(y - f).sum()
        by_constant += np.abs(y - middle).sum()
    return 1 - lost / by_constant


def squared(name: str, n: int, rows: int = 1) -> Case:
    """R squared; by integration, with e^(s^2/2) the mean of a log-normal number and e^(2 s^2) its mean square."""
    error = np.exp(2.0) - 2 * np.exp(0.18 + 2 * 0.64 + 0.18) + np.exp(0.36 + 2 * 0.64)
    draw, mean, truth = {
        "normal": (normal_quantity, 0.0, 0.5),
        "log-normal": (
            incomes,
            float(np.exp(0.5)),
            float(1 - error / (np.exp(2.0) - np.exp(1.0))),
        ),
    }[name]

    def estimate(rng: np.random.Generator) -> object:
        f, y = draw(rng, n)
        units = np.repeat(np.arange(n), rows)
        return r_squared(
            np.repeat(f, rows), np.repeat(y, rows), mean=mean, units=units, level=LEVEL
        )

    each = f", {rows} copies each" if rows > 1 else ""
    return interval_case(
        "R² (`r_squared`)",
        f"{name}{each}; {n} people",
        estimate,
        truth=truth,
        repeats=INSTANT,
    )


def absolute(name: str, n: int) -> Case:
    draw, middle = {"normal": (normal_quantity, 0.0), "log-normal": (incomes, 1.0)}[
        name
    ]
    return interval_case(
        "skill of the absolute error (`absolute_skill`)",
        f"{name}; {n} people",
        lambda rng: absolute_skill(
            *draw(rng, n), median=middle, units=np.arange(n), level=LEVEL
        ),
        truth=skill_by_sample(name),
        repeats=INSTANT,
    )


def randomised_answers(truth: float, share: float, n: int) -> Case:
    from reticent.account import RandomisedResponse

    mechanism = RandomisedResponse(truth=truth)

    def estimate(rng: np.random.Generator) -> object:
        told = rng.random(n) < truth
        answers = np.where(told, rng.random(n) < share, rng.random(n) < 0.5)
        return estimate_share(mechanism, answers.astype(int), level=LEVEL)

    return interval_case(
        "share behind randomised answers (`estimate_share`)",
        f"truth told {truth:g}, share {share:g}; {n} people",
        estimate,
        truth=share,
        repeats=INSTANT,
    )


def cases() -> list[Case]:
    return [
        right_answers(0.7, 100, 2),
        right_answers(0.98, 60, 5),
        right_answers_of_people(50, 6),
        gain(0.4, 0.3, 0.1, 200),
        gain(0.4, 0.9, 0.05, 100),
        gain(0.1, 0.1, 0.0, 100),
        gain(0.1, 0.3, 0.01, 100),
        gain(0.5, 0.02, 0.02, 60),
        gain(0.05, 0.5, 0.02, 300),
        gain(0.4, 0.3, 0.1, 60, rows=5),
        gain(0.83, 0.9, 0.0, 60),
        squared("normal", 100),
        squared("normal", 30),
        squared("normal", 50, rows=4),
        squared("log-normal", 60),
        squared("log-normal", 500),
        absolute("normal", 60),
        absolute("log-normal", 60),
        randomised_answers(0.5, 0.1, 200),
    ]
