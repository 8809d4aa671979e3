"""Tables of plans: one exactly calibrated plan for every stop of the sliders of the interactive page."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np
from numpy.typing import NDArray

from reticent.account.plan import Course, Plan, Terms, plan_and_guarantee
from reticent.account.targets import Target
from reticent.account.tradeoff import TradeOff
from reticent.errors import InvalidInput

__all__ = ["Curves", "PlanTable", "Stops", "curves_of", "plan_table"]

# The page holds these for every stop of the sliders: enough points for a smooth curve, few enough for a small file.
# False-positive rates are spaced evenly on the logarithmic axis; beliefs are closer near 1, where they matter most.
FALSE_RATES = tuple(float(f"{x:.3g}") for x in np.geomspace(1e-4, 1, 25))
BELIEFS = (*(round(0.5 + 0.02 * k, 2) for k in range(25)), 0.99, 0.995, 0.999)
BARS = 81  # of the histogram of losses


@dataclass(frozen=True, kw_only=True)
class Curves:
    """The curves that the page draws for one plan.

    Parameters
    ----------
    true_rates : tuple of float
        Largest true-positive rate at each of ``FALSE_RATES``.
    chances : tuple of float
        Probability of a belief above each of ``BELIEFS``.
    losses, used, unused : tuple of float
        Log-likelihood ratio of the release, and its density if the record was used and if it was not.
    """

    true_rates: tuple[float, ...]
    chances: tuple[float, ...]
    losses: tuple[float, ...]
    used: tuple[float, ...]
    unused: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Stops:
    """The stops of each slider."""

    risks: Sequence[float]
    rows: Sequence[int]
    batches: Sequence[int]
    epochs: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class PlanTable:
    """Plans for every combination of stops.

    Parameters
    ----------
    stops : Stops
        The stops of each slider.
    plans : tuple of Plan or None
        Plans in the order of the stops, where the last slider varies fastest; None where a batch exceeds the rows.
    curves : tuple of Curves or None
        Curves of each plan.
    """

    stops: Stops
    plans: tuple[Plan | None, ...]
    curves: tuple[Curves | None, ...]


def plan_table(
    target: Callable[[float], Target], stops: Stops, terms: Terms, *, workers: int = 1
) -> PlanTable:
    """Return an exact plan for every combination of stops.

    Parameters
    ----------
    target : callable
        Maps a risk to the target.
    stops : Stops
        The stops of each slider.
    terms : Terms
        As in :func:`make_plan`.
    workers : int
        Number of processes.
    """
    places = list(
        itertools.product(stops.risks, stops.rows, stops.batches, stops.epochs)
    )
    if not places:
        raise InvalidInput(
            "every slider needs at least one stop: pass at least one risk, row count, batch and number of epochs."
        )
    # A training is determined by steps and rate, so many combinations share one plan.
    courses = [
        None if b > n else Course.of_epochs(rows=n, batch=b, epochs=e)
        for _, n, b, e in places
    ]
    wanted = sorted(
        {
            (risk, c.steps, c.sampling_rate)
            for (risk, *_), c in zip(places, courses, strict=True)
            if c
        }
    )
    results = joblib.Parallel(n_jobs=workers)(
        joblib.delayed(_planned)(
            target(risk), Course(steps=steps, sampling_rate=rate), terms
        )
        for risk, steps, rate in wanted
    )
    plans = dict(zip(wanted, results, strict=True))
    entries = [
        plans[risk, c.steps, c.sampling_rate] if c else (None, None)
        for (risk, *_), c in zip(places, courses, strict=True)
    ]
    return PlanTable(
        stops=stops,
        plans=tuple(plan for plan, _ in entries),
        curves=tuple(curves for _, curves in entries),
    )


def curves_of(found: TradeOff, *, prior: float) -> Curves:
    """Return the curves of a guarantee."""
    side = found.sides[0]
    # The drawn range leaves out a thousandth at each end, which would squeeze the rest.
    total = np.cumsum(side.first)
    low = side.losses[np.searchsorted(np.cumsum(side.second), 0.001)]
    high = side.losses[min(int(np.searchsorted(total, 0.999)), len(total) - 1)]
    edges = np.linspace(low, high, BARS + 1)
    width = edges[1] - edges[0]

    def density(weights: NDArray[np.float64]) -> tuple[float, ...]:
        counts = np.histogram(side.losses, edges, weights=weights)[0]
        return tuple(round(float(c), 5) for c in counts / width)

    return Curves(
        true_rates=tuple(round(float(t), 6) for t in found.tprs(FALSE_RATES)),
        chances=tuple(
            float(f"{found.probability_of_belief(b, prior=prior):.4g}") for b in BELIEFS
        ),
        losses=tuple(round(float(x), 4) for x in (edges[:-1] + edges[1:]) / 2),
        used=density(side.first),
        unused=density(side.second),
    )


def _planned(target: Target, course: Course, terms: Terms) -> tuple[Plan, Curves]:
    plan, guarantee = plan_and_guarantee(target, course, terms)
    return plan, curves_of(guarantee, prior=terms.prior)
