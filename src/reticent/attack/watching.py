r"""The adversary that watches every step: turn what it sees into what it believes.

It weighs two tables against each other. Under a table, a release is normal around the common sum, plus the share
of the record in question if that record takes part. With Poisson sampling it takes part with probability q, so the
likelihood of a step is a mixture:

.. math:: \log\big((1-q) + q\,e^{\ell}\big), \qquad \ell = \frac{2\langle y, v\rangle - |v|^2}{2\sigma^2},

with y the release minus the common sum and v the share. In a shuffled table every record takes part once per epoch; the
adversary, who knows the places of the others, knows which place is left, and only that step is informative. Where the
scale of the release itself depends on the table, the scale is informative as well. Everything is added up in logarithms.

References
----------
.. [1] D5.3, MOSAICrOWN, 2020, Algorithm 1: full batches and one scale.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from reticent._check import in_open_unit
from reticent.pool import Side, Trace

__all__ = ["log_odds"]


def log_odds(trace: Trace, *, prior: float = 0.5) -> NDArray[np.float64]:
    """Return the adversary's log-odds of the first table after every step, shape (R, T).

    Parameters
    ----------
    trace : Trace
        What the adversary saw.
    prior : float
        Its belief in the first table before the training, in (0, 1).
    """
    scale = _of_scale(trace)
    gained = scale + _gained(trace.first, trace) - _gained(trace.second, trace)
    return logit(in_open_unit(prior, "prior")) + gained


def _of_scale(trace: Trace) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of the scale of the releases, added up over steps; 0 where it is the same."""
    first, second = trace.first, trace.second
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = trace.size * np.log(second.deviation / first.deviation)
        ratio += second.residual / (2 * second.deviation**2)
        ratio -= first.residual / (2 * first.deviation**2)
    same = first.deviation == second.deviation
    ratio = np.where(same & (first.residual == second.residual), 0.0, ratio)
    return np.asarray(np.cumsum(ratio, axis=1))


def _gained(side: Side, trace: Trace) -> NDArray[np.float64]:
    """Return the log-likelihood ratio, after every step, of a record that takes part as sampled against one that never does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        each = (2 * side.inner - side.square) / (2 * side.deviation**2)
    each = np.where(side.square == 0, 0.0, each)
    if trace.place is not None:
        each = np.where(trace.place, each, 0.0)
    elif trace.rate < 1:
        each = np.logaddexp(np.log1p(-trace.rate), np.log(trace.rate) + each)
    return np.cumsum(each, axis=1)
