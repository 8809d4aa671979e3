"""Whether a watched training did what is stated of it: checks that stop an audit, each with its share of the error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, chdtrc, gammainc, gammaincc

from reticent._check import in_open_unit
from reticent.evidence.noise_checks import NOISE_CHECKS, Found
from reticent.pool import Noise

__all__ = ["Check", "Sampling", "check_training", "stated_fact"]

# A record may move a sum by this much more than the bound: sums in single precision are rounded.
TOLERANCE = 1e-3
# Further room for each record of a batch, whose sum is rounded so often.
TOLERANCE_PER_RECORD = 4 * 2.0**-23
LEAST_P_VALUE = 1e-300  # keeps the logarithm of a p-value of 0 finite


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that is stated of a training, put to the test.

    Parameters
    ----------
    name : str
        Short name: ``"noise by tensor"``.
    asked : str
        What is stated, as a sentence without its full stop.
    found : str
        What was found.
    p_value : float
        Largest probability of so large a departure if what is stated is true; 0 if that is impossible.
    alarm : float
        The check's share of the error: a p-value below it stops the audit. 0 for a check that cannot err.
    """

    name: str
    asked: str
    found: str
    p_value: float
    alarm: float

    @property
    def passed(self) -> bool:
        """Whether what is stated was not found to be false."""
        return self.p_value > 0 and self.p_value >= self.alarm


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How records are stated to take part.

    Parameters
    ----------
    rate : float
        Probability that a record takes part in a step, independently of all others.
    taken : array of bool, (R, T)
        Whether the record in question took part, in runs on the table that holds it.
    """

    rate: float
    taken: NDArray[np.bool_]


def stated_fact(name: str, asked: str, found: str, *, true: bool) -> Check:
    """Return the check of something that needs no statistics.

    Examples
    --------
    >>> stated_fact("steps", "every step was accounted for", "9 of 10", true=False).passed
    False
    """
    return Check(
        name=name, asked=asked, found=found, p_value=1.0 if true else 0.0, alarm=0.0
    )


def check_training(
    parts: Sequence[Noise], *, sampling: Sampling | None, error: float
) -> tuple[Check, ...]:
    """Return every check of a watched training: the record's share, its noise, and who takes part.

    Noise is tested among runs whose tensors have the same sizes, and the p-values of several such parts are combined: twice the smaller
    of Bonferroni's, which sees a departure in one part, and Fisher's, which sees one in all of them. Parts are independent.

    Parameters
    ----------
    parts : sequence of Noise
        What was seen of the noise, as :meth:`~reticent.pool.Noise.join` returns it.
    sampling : Sampling or None
        How records are stated to take part; None if that is not by Poisson sampling.
    error : float
        Chance that any check stops a training that is as stated, in (0, 1); shared equally.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.standard_normal((1, 20, 50), dtype=np.float32)
    >>> made = Noise(
    ...     names=("weights",), sizes=np.array([50]), squares=(z**2).sum(2)[..., None].astype(float), kept=z,
    ...     tensor=np.zeros(50, int), place=np.arange(50), rounding=np.full(1, 1e-7),
    ...     along_sum=z[..., 0].astype(float), along_record=z[..., 1].astype(float), reach=np.ones((1, 20)),
    ...     records=np.full((1, 20), 8), taken=np.ones((1, 20), bool), rows=np.array([80]))
    >>> found = check_training([made], sampling=None, error=1e-3)
    >>> all(check.passed for check in found), len(found)
    (True, 16)
    """
    in_open_unit(error, "error")
    tests = [
        (name, asked, _combined([test(noise) for noise in parts], parts))
        for name, asked, test in NOISE_CHECKS
    ]
    if sampling is not None and 0 < sampling.rate < 1:
        tests.append(
            (
                "sampling",
                f"every record takes part in a step with probability {sampling.rate:.3g}, independently of all others",
                sampling_found(parts, sampling),
            )
        )
    each = error / len(tests)
    return (
        _share(parts),
        *(
            Check(
                name=name,
                asked=asked,
                found=found.words,
                p_value=min(1.0, found.p_value),
                alarm=each,
            )
            for name, asked, found in tests
        ),
    )


def _combined(found: Sequence[Found], parts: Sequence[Noise]) -> Found:
    """Return what a test finds in all parts; its words are those of the part with the smallest p-value."""
    if len(found) == 1:
        return found[0]
    p_values = np.clip([each.p_value for each in found], LEAST_P_VALUE, 1.0)
    at = int(p_values.argmin())
    fisher = float(chdtrc(2 * len(found), -2 * float(np.log(p_values).sum())))
    return Found(
        p_value=2 * min(len(found) * float(p_values[at]), fisher),
        words=f"{found[at].words}, in runs that release {parts[at].size:,} numbers",
    )


def _share(parts: Sequence[Noise]) -> Check:
    """Check that no record, and no longer one, moved a sum by more than the stated bound."""
    reach = np.concatenate([noise.reach for noise in parts])
    run, step = np.unravel_index(int(reach.argmax()), reach.shape)
    farthest = float(reach[run, step])
    most = max(float(noise.records.max()) for noise in parts)
    room = TOLERANCE + TOLERANCE_PER_RECORD * most
    return stated_fact(
        "share",
        "one record moves the sum by at most the stated bound, whatever its gradient",
        f"at most {farthest:.3g} times the bound (step {step + 1})",
        true=farthest <= 1 + room,
    )


def sampling_found(parts: Sequence[Noise], sampling: Sampling) -> Found:
    """Return how well the sizes of batches and the record's own steps agree with Poisson sampling.

    Sizes of batches are binomial: their squared distances from the mean are compared with a gamma distribution of the same two moments, and
    widened by half a record where they could be too small. The record's own steps are binomial, and so is the number of epochs in which
    it takes part exactly once, which is every epoch of a shuffled table.
    """
    rate = sampling.rate
    rows = np.concatenate([noise.rows for noise in parts])
    records = np.concatenate([noise.records for noise in parts])
    mean = rows[:, None] * rate
    variance = np.maximum(mean * (1 - rate), 1e-12)
    # Widened by half a record, because counts are whole numbers.
    apart = np.abs(records - mean)
    kurtosis = float(np.mean((1 - 6 * rate * (1 - rate)) / variance))
    n = apart.size
    shape = n / (2 + max(kurtosis, -1.0))
    low = float(((apart + 0.5) ** 2 / variance).sum()) / n * shape
    high = float((np.maximum(apart - 0.5, 0) ** 2 / variance).sum()) / n * shape
    sizes = 2 * min(float(gammainc(shape, low)), float(gammaincc(shape, high)))
    taken = sampling.taken
    times, steps = int(taken.sum()), taken.size
    often = 2 * min(_at_most(times, steps, rate), _at_least(times, steps, rate))
    epoch = max(2, round(1 / rate))
    epochs = taken[:, : taken.shape[1] // epoch * epoch].reshape(-1, epoch)
    once = int((epochs.sum(1) == 1).sum())
    chance = epoch * rate * (1 - rate) ** (epoch - 1)
    always = _at_least(once, len(epochs), chance)
    spread = float(records.std())
    words = (
        f"batches of {records.mean():.3g} +/- {spread:.2g} records (stated: {mean.mean():.3g} +/- {variance.mean() ** 0.5:.2g}); "
        f"the record took part in {times} of {steps} steps, and exactly once in {once} of {len(epochs)} epochs"
    )
    return Found(p_value=3 * min(sizes, often, always), words=words)


def _at_most(count: int, of: int, chance: float) -> float:
    return float(bdtr(count, of, chance)) if of else 1.0


def _at_least(count: int, of: int, chance: float) -> float:
    return float(bdtrc(count - 1, of, chance)) if of and count else 1.0


def failed(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return the checks that stop an audit."""
    return tuple(check for check in checks if not check.passed)
