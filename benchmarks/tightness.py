"""Show how much of a known epsilon each lower bound finds, in audits of the Gaussian mechanism by a perfect adversary.

Every figure is a median over audits, at delta 1e-5 and confidence 0.95. The truth is known, so the share of audits whose bound exceeds
it is counted as well; it should be at most 5 %, up to chance.

python benchmarks/tightness.py
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent.account import analytic_noise, gaussian_epsilon
from reticent.evidence import (
    epsilon_ceiling,
    epsilon_lower_bound,
    guess_counts,
    mu_ceiling,
    mu_lower_bound,
    one_run_ceiling,
    one_run_lower_bound,
)
from reticent.evidence.epsilon import epsilon_from_guesses
from reticent.evidence.proportion import upper_limit
from reticent.run import stream

DELTA = 1e-5
LEVEL = 0.95
AUDITS = 100  # per line; more would steady the medians, and cost time in proportion
ONE_RUN_AUDITS = 40  # per line; fewer, because each audit takes longer
Array = NDArray[np.float64]
Bound = Callable[[Array, Array], float]


def run() -> list[str]:
    """Return two tables."""
    return [*_many_runs(), "", *_one_run()]


def _many_runs() -> list[str]:
    forms: dict[str, Bound] = {
        "(epsilon, delta), split": lambda a, b: _split(a, b, _pair),
        "Gaussian form, split": lambda a, b: _epsilon(_split(a, b, _gaussian)),
        "`mu_lower_bound`": lambda a, b: _epsilon(
            mu_lower_bound(a, b, level=LEVEL).low
        ),
        "scores known to be normal": lambda a, b: _epsilon(_normal(a, b)),
    }
    lines = [
        f"| runs, half on each table | epsilon | {' | '.join(forms)} | above the truth | `mu_ceiling` |",
        f"|{'---|' * (len(forms) + 4)}",
    ]
    for runs in (200, 1000, 5000, 20_000):
        for epsilon in (1, 3, 8, 10):
            mu, half = 1 / analytic_noise(epsilon, DELTA), runs // 2
            rng = stream(0, f"tightness/{runs}/{epsilon}")
            audits = [
                (rng.normal(mu, 1.0, half), rng.normal(0.0, 1.0, half))
                for _ in range(AUDITS)
            ]
            bounds = {
                name: np.array([form(*audit) for audit in audits])
                for name, form in forms.items()
            }
            ours = bounds["`mu_lower_bound`"]
            ceiling = _epsilon(mu_ceiling(half, half, level=LEVEL, truth=mu))
            lines.append(
                f"| {runs:,} | {epsilon} | {_medians(bounds)} | {_above(ours, epsilon)} | {ceiling:.2f} |"
            )
    return lines


def _one_run() -> list[str]:
    lines = [
        "| canaries | epsilon | Theorem 5.2, `epsilon_lower_bound` | Theorem 5.2, same guesses as f-DP | f-DP, `one_run_lower_bound` | above the truth | `one_run_ceiling` of a perfect guesser | never wrong: Theorem 5.2 | f-DP |",
        f"|{'---|' * 9}",
    ]
    for canaries in (1000, 5000):
        for epsilon in (1, 2, 3, 4, 8):
            mu = 1 / analytic_noise(epsilon, DELTA)
            rng = stream(0, f"tightness/one/{canaries}/{epsilon}")
            bounds: dict[str, list[float]] = {"5.2": [], "same": [], "f-DP": []}
            for _ in range(ONE_RUN_AUDITS):
                coins = rng.random(canaries) < 0.5
                scores = rng.normal(mu * coins, 1.0)
                plain = epsilon_lower_bound(
                    scores[coins],
                    scores[~coins],
                    level=LEVEL,
                    delta=DELTA,
                    prior=0.5,
                    rng=rng,
                )
                form = one_run_lower_bound(scores, coins, level=LEVEL, delta=DELTA)
                bounds["5.2"].append(plain.low)
                bounds["same"].append(_same_guesses(scores, coins))
                bounds["f-DP"].append(form.low)
            typical = one_run_ceiling(canaries, level=LEVEL, delta=DELTA, truth=mu)
            never_wrong = one_run_ceiling(canaries, level=LEVEL, delta=DELTA)
            plainly = epsilon_ceiling(canaries // 2, canaries // 2, level=LEVEL)
            lines.append(
                f"| {canaries:,} | {epsilon} | {_medians(bounds)} | {_above(bounds['f-DP'], epsilon)} | "
                f"{typical:.2f} | {plainly:.2f} | {never_wrong:.2f} |"
            )
    return lines


def _same_guesses(scores: Array, coins: NDArray[np.bool_]) -> float:
    """Return the bound of Theorem 5.2 for the guesses of the other form, at the same price for the choice."""
    return max(
        epsilon_from_guesses(
            c.right, c.made, len(scores), 0.5, (1 - LEVEL) * c.error, DELTA
        )
        for c in guess_counts(scores, coins)
    )


def _split(a: Array, b: Array, form: Callable[[Array, Array], Array]) -> float:
    """Return the bound of the usual audit: a threshold chosen on half of the runs, limits on both error rates from the other half."""
    half = len(a) // 2
    levels = np.arange(1, 200) / 200
    thresholds = np.quantile(np.concatenate([a[:half], b[:half]]), levels)

    def bounds(first: Array, second: Array, at: Array) -> Array:
        miss = (1 - LEVEL) / 2
        missed = np.searchsorted(np.sort(first), at, side="right")
        false = len(second) - np.searchsorted(np.sort(second), at, side="right")
        return form(
            upper_limit(false.astype(np.float64), len(second), miss),
            upper_limit(missed.astype(np.float64), len(first), miss),
        )

    best = int(np.argmax(bounds(a[:half], b[:half], thresholds)))
    return float(bounds(a[half:], b[half:], thresholds[[best]])[0])


def _pair(false: Array, missed: Array) -> Array:
    """Return epsilon from error rates, by the definition of (epsilon, delta)-differential privacy."""
    with np.errstate(divide="ignore", invalid="ignore"):
        either = np.log([(1 - DELTA - missed) / false, (1 - DELTA - false) / missed])
    return np.nan_to_num(either, nan=0.0, neginf=0.0).max(axis=0).clip(0.0)


def _gaussian(false: Array, missed: Array) -> Array:
    """Return mu from error rates, by the trade-off curve of the Gaussian mechanism."""
    return np.nan_to_num(ndtri(1 - false) - ndtri(missed), neginf=0.0)


def _normal(a: Array, b: Array) -> float:
    """Return the bound of an auditor who knows that scores are normal with deviation 1; no valid bound can be better."""
    return float(a.mean() - b.mean() - ndtri(LEVEL) * np.sqrt(1 / len(a) + 1 / len(b)))


def _epsilon(mu: float) -> float:
    return gaussian_epsilon(max(mu, 0.0), DELTA)


def _medians(bounds: dict[str, Array] | dict[str, list[float]]) -> str:
    return " | ".join(f"{np.median(values):.2f}" for values in bounds.values())


def _above(bounds: Array | list[float], truth: float) -> str:
    return f"{100 * np.mean(np.asarray(bounds) > truth):.0f} %"


if __name__ == "__main__":
    started = time.perf_counter()
    print("\n".join(run()))
    print(
        f"\n{AUDITS} and {ONE_RUN_AUDITS} audits per line, {time.perf_counter() - started:.0f} s"
    )
