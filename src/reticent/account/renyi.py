"""Rényi accounting, for comparison with what users of other libraries see."""

from reticent.account._library import DP
from reticent.account.mechanisms import PrivateTraining
from reticent.errors import InvalidInput

__all__ = ["renyi_epsilon"]

# Integer orders only: fractional ones need a series that does not converge for a high sampling rate and little noise.
ORDERS = [*range(2, 65), 80, 96, 128, 256, 512]


def renyi_epsilon(training: PrivateTraining, delta: float) -> float:
    """Return the epsilon of Rényi accounting, which is never below the exact one.

    Parameters
    ----------
    training : PrivateTraining
        A training under ``add/remove``.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> from reticent.account import trade_off
    >>> run = PrivateTraining(noise_multiplier=2.0, sampling_rate=0.01, steps=100)
    >>> renyi_epsilon(run, 1e-5) > trade_off(run).epsilon(1e-5)
    True
    """
    if training.relation != "add/remove":
        raise InvalidInput(
            f"Rényi accounting of sampled steps is available for add/remove only, got {training.relation}; describe the training "
            "under add/remove."
        )
    accountant = DP.rdp.RdpAccountant(orders=ORDERS)
    gaussian = DP.events.GaussianDpEvent(training.noise_multiplier)
    step = gaussian
    if training.sampling_rate < 1:
        step = DP.events.PoissonSampledDpEvent(training.sampling_rate, gaussian)
    accountant.compose(step, training.steps)
    return float(accountant.get_epsilon(delta))
