"""The contract of mechanisms: be a description, and claim no privacy that cannot be true."""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from reticent.account import Composition, Mechanism, Relation, TradeOff, trade_off

__all__ = ["check_mechanism"]

# Where trade-off curves are compared: from no privacy loss to more than most guarantees allow.
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def check_mechanism(mechanism: Mechanism, *, grid: float = 1e-3) -> None:
    """Assert that a mechanism is a description, and that what it says about its privacy can be true.

    It must be a frozen dataclass with a relation. Its privacy loss must be the same at each call and belong to two
    distributions, and delta must fall with epsilon, in both directions. A finer grid must not guarantee less, and a coarser
    one not more. Several uses must protect neither more than one use nor less than composition allows.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism to check.
    grid : float
        Coarsest step of the privacy loss at which it is checked.

    Raises
    ------
    AssertionError
        If the mechanism breaks the contract.

    Examples
    --------
    >>> from reticent.account import Gaussian
    >>> check_mechanism(Gaussian(noise_multiplier=1.5))
    """
    parameters = getattr(type(mechanism), "__dataclass_params__", None)
    assert dataclasses.is_dataclass(mechanism) and parameters.frozen, (  # noqa: PT018
        "a mechanism is a frozen dataclass: what was accounted must not change afterwards"
    )
    assert isinstance(getattr(mechanism, "relation", None), Relation), (
        "a mechanism says under which relation its epsilon holds"
    )
    curve = trade_off(mechanism, grid=grid)
    again = trade_off(mechanism, grid=grid)
    deltas = _deltas(curve)
    assert np.array_equal(deltas, _deltas(again)), "a description draws nothing"
    _check_distributions(curve)
    assert ((deltas >= 0) & (deltas <= 1)).all(), f"delta is a probability: {deltas}"
    assert (np.diff(deltas) <= 1e-12).all(), f"delta falls with epsilon: {deltas}"
    _check_directions(curve)

    fine = trade_off(mechanism, grid=grid / 4)
    assert (_deltas(fine) <= deltas + 1e-9).all(), (
        f"a coarse grid must lean to the safe side, but guaranteed more than a fine one: {deltas} and {_deltas(fine)}"
    )
    for delta in (1e-2, 1e-5):
        assert fine.epsilon(delta) <= curve.epsilon(delta) + 1e-6, (
            f"a finer grid gave a larger epsilon at delta {delta}"
        )

    double = trade_off(Composition(parts=((mechanism, 2),)), grid=grid)
    # The tolerance covers the rounding and the cut tail of the convolution that composes.
    assert (_deltas(double) >= deltas - 1e-9).all(), "two uses protected more than one"
    at_most = [2 * curve.delta(e) for e in EPSILONS]
    of_two = [double.delta(2 * e) for e in EPSILONS]
    assert all(d <= most + 1e-9 for d, most in zip(of_two, at_most, strict=True)), (
        f"two uses cost more than twice the epsilon and the delta of one: {of_two} above {at_most}"
    )


def _deltas(curve: TradeOff) -> NDArray[np.float64]:
    return np.array([curve.delta(epsilon) for epsilon in EPSILONS])


def _check_distributions(curve: TradeOff) -> None:
    for side in curve.sides:
        first = float(side.first.sum()) + side.certain
        assert abs(first - 1) < 1e-6, f"probabilities of the loss add up to {first}"
        # Losses below -5 are capped: there, e to the minus loss is large and multiplies rounding errors.
        second = float(side.first @ np.exp(np.minimum(-side.losses, 5.0)))
        assert second < 1 + 1e-4, (
            f"e to the minus loss has the mean {second}, above 1: it is no log-likelihood ratio, has the wrong sign or was rounded down"
        )


def _check_directions(curve: TradeOff) -> None:
    for side in curve.sides:
        alone = dataclasses.replace(curve, sides=(side,))
        for epsilon in EPSILONS:
            # The same two distributions, with the other one first.
            turned = 1 - np.exp(epsilon) * (1 - alone.delta(-epsilon))
            # Losses were rounded up by at most one cell, which may count twice when the two change places.
            slack = np.expm1(2 * curve.grid) * np.exp(epsilon)
            assert turned <= curve.delta(epsilon) + slack, (
                f"at epsilon {epsilon} delta is {curve.delta(epsilon):.4g}, but {turned:.4g} in the other direction; give the loss of both"
            )
