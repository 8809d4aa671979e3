r"""The formulas of D5.3, for comparison only: with a tight accountant they guarantee too much.

They hold for the classical Gaussian mechanism. A tight accountant uses less noise for the
same epsilon and delta, and then the true advantage is up to a third above :func:`advantage_of_source` and the
belief exceeds :func:`belief_of_source` with several times the probability delta.

References
----------
.. [1] Bernau et al., "D5.3: Final report on privacy metrics, risks, and utility", MOSAICrOWN, 2020, Section 4,
   with its errata: the inverse of Theorem 3 lacks a factor 2.
.. [2] Dwork & Roth, "The algorithmic foundations of differential privacy", 2014, Theorem A.1.
"""

import math

from scipy.special import ndtr, ndtri

from reticent._check import in_open_unit
from reticent.errors import InvalidInput

__all__ = [
    "advantage_of_source",
    "belief_of_source",
    "classical_noise",
    "epsilon_of_source",
    "renyi_of_source",
]


def classical_noise(epsilon: float, delta: float) -> float:
    r"""Return :math:`\sqrt{2 \ln(1.25/\delta)}/\varepsilon`, the noise multiplier of [2]_, proved for an epsilon below 1.

    Examples
    --------
    >>> round(classical_noise(0.5, 1e-5), 3)
    9.69
    """
    if epsilon <= 0:
        raise InvalidInput(f"epsilon must be positive, got {epsilon}.")
    return math.sqrt(2 * math.log(1.25 / in_open_unit(delta, "delta"))) / epsilon


def belief_of_source(epsilon: float) -> float:
    r"""Return the bound on the posterior belief, :math:`\rho_\beta = 1/(1 + e^{-\varepsilon})`.

    Examples
    --------
    >>> round(belief_of_source(2.1972), 4)
    0.9
    """
    return 1 / (1 + math.exp(-epsilon))


def advantage_of_source(epsilon: float, delta: float) -> float:
    r"""Return the advantage :math:`\rho_\alpha = 2\Phi(\varepsilon / (2\sqrt{2\ln(1.25/\delta)})) - 1` (Theorem 3 of [1]_).

    Examples
    --------
    >>> round(advantage_of_source(2.382, 1e-5), 3)
    0.194
    """
    return float(2 * ndtr(1 / (2 * classical_noise(epsilon, delta))) - 1)


def epsilon_of_source(advantage: float, delta: float) -> float:
    r"""Return the epsilon of an advantage: the inverse of Theorem 3, with the factor 2 that its printed form lacks.

    Examples
    --------
    >>> round(epsilon_of_source(advantage_of_source(2.0, 1e-5), 1e-5), 6)
    2.0
    """
    half = (in_open_unit(advantage, "advantage") + 1) / 2
    return (
        2
        * math.sqrt(2 * math.log(1.25 / in_open_unit(delta, "delta")))
        * float(ndtri(half))
    )


def renyi_of_source(mu: float, delta: float) -> float:
    r"""Return :math:`\mu^2/2 + \mu\sqrt{2\ln(1/\delta)}`: Rényi composition with the first conversion to epsilon.

    For k full-batch steps :math:`\mu = \sqrt{k}\,\Delta/\sigma`. Newer conversions, which
    :func:`reticent.account.renyi_epsilon` uses, give less; the exact epsilon is smaller still.

    Examples
    --------
    >>> round(renyi_of_source(0.6536, 0.01), 3)
    2.197
    """
    return mu**2 / 2 + mu * math.sqrt(2 * math.log(1 / in_open_unit(delta, "delta")))
