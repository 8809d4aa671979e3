"""Test whether groups differ, over repeated audits that resample the same records.

The repeats of an experiment draw their parts from one table, so they are not independent: a plain
t-test or analysis of variance over repeats mistakes the peculiarities of that table for a difference between
groups and rejects far too often. The corrections here widen the error according to the overlap of the
repeats.

References
----------
.. [1] Nadeau & Bengio, "Inference for the generalization error", Machine Learning 52, 2003, Eq. 9.
.. [2] Greenhouse & Geisser, "On methods in the analysis of profile data", Psychometrika 24, 1959.
.. [3] Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979.
.. [4] Benjamini & Hochberg, "Controlling the false discovery rate", J. R. Stat. Soc. B 57, 1995.
.. [5] O'Dell, thesis on disparate vulnerability, section on repeated measures.
.. [6] Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007, Section 3, for the variance of a
   mean over crossed rows and columns.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc, stdtr, stdtrit

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate, split_level

__all__ = [
    "Anova",
    "Correction",
    "Crossed",
    "PairDifference",
    "adjust",
    "anova",
    "crossed",
    "pairwise",
    "vulnerability_bound",
]


class Correction(StrEnum):
    """How the p-values of several tests are adjusted."""

    HOLM = "Holm"
    BONFERRONI = "Bonferroni"
    BENJAMINI_HOCHBERG = "Benjamini-Hochberg"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Anova:
    """A repeated-measures analysis of variance: repeats are subjects, groups are conditions.

    Parameters
    ----------
    f : float
        The ratio of variances, corrected for the overlap of repeats.
    freedom : tuple of float
        Degrees of freedom of F, multiplied by ``epsilon``.
    epsilon : float
        Greenhouse and Geisser's measure of sphericity [2]_, 1/(groups - 1) to 1.
    p_value : float
        Probability of an F this large if no group differs.
    eta_squared : float
        Partial effect size: share of the variance due to groups, without that between subjects.
    """

    f: float
    freedom: tuple[float, float]
    epsilon: float
    p_value: float
    eta_squared: float


@dataclass(frozen=True, kw_only=True)
class PairDifference:
    """The difference between two groups.

    Parameters
    ----------
    first, second : str
        The groups.
    difference : Estimate
        Mean of first minus second; the intervals of all pairs hold together.
    effect : float
        The mean difference over its standard deviation between repeats (Cohen's d).
    p_value, adjusted : float
        P-value of "no difference", alone and adjusted for the number of pairs.
    """

    first: str
    second: str
    difference: Estimate
    effect: float
    p_value: float
    adjusted: float


def anova(values: ArrayLike, *, overlap: float) -> Anova:
    r"""Test whether groups differ over repeats that share records.

    With r repeats that have a share :math:`\rho` of records in common, the variance of a mean
    over repeats is not :math:`\sigma^2/r` but, in terms of the observed variance between
    repeats, :math:`(1/r + \rho/(1-\rho))\,s^2` (Eq. 9 of [1]_, where
    :math:`\rho/(1-\rho) = n_{test}/n_{train}`). F is divided by
    :math:`1 + r\rho/(1-\rho)` accordingly. ``overlap=0`` is the ordinary test.

    Parameters
    ----------
    values : array-like, shape (repeats, groups)
        A measure for each group in each repeat.
    overlap : float
        Expected share of the records judged in one repeat that are also judged in another,
        in [0, 1).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = anova(rng.normal([0, 0, 1], 1, (30, 3)), overlap=0.0)
    >>> result.p_value < 0.01, result.epsilon <= 1
    (True, True)
    """
    v = _table(values)
    r, g = v.shape
    grand = v.mean()
    between = r * float(((v.mean(axis=0) - grand) ** 2).sum())
    subjects = g * float(((v.mean(axis=1) - grand) ** 2).sum())
    error = float(((v - grand) ** 2).sum()) - between - subjects
    freedom = (g - 1.0, (g - 1.0) * (r - 1.0))
    # An error this small is nothing but rounding.
    if error <= 1e-15 * max(1.0, between):
        raise InvalidInput(
            "the repeats do not differ at all, so there is no error to compare the groups with; check that each "
            "repeat draws a new sample."
        )
    widened = 1 + r * _widening(overlap)
    f = between / freedom[0] / (error / freedom[1]) / widened
    epsilon = _sphericity(v)
    scaled = (epsilon * freedom[0], epsilon * freedom[1])
    return Anova(
        f=f,
        freedom=scaled,
        epsilon=epsilon,
        p_value=float(fdtrc(*scaled, f)),
        eta_squared=between / (between + error),
    )


def pairwise(
    values: ArrayLike,
    names: Sequence[str],
    *,
    overlap: float,
    level: float,
    correction: Correction = Correction.HOLM,
) -> list[PairDifference]:
    """Compare every pair of groups by the corrected resampled t-test (Eq. 9 of [1]_).

    Parameters
    ----------
    values : array-like, shape (repeats, groups)
        A measure for each group in each repeat.
    names : sequence of str
        The groups.
    overlap : float
        As in :func:`anova`.
    level : float
        Confidence of all intervals together (Bonferroni), in (0, 1).
    correction : Correction
        How p-values are adjusted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> pairs = pairwise(rng.normal([0, 2], 1, (30, 2)), ["a", "b"], overlap=0.0, level=0.95)
    >>> pairs[0].adjusted < 0.001
    True
    """
    v = _table(values)
    if len(names) != v.shape[1]:
        raise InvalidInput(
            f"there are {v.shape[1]} groups but {len(names)} names; pass one name per column."
        )
    r = len(v)
    pairs = list(itertools.combinations(range(len(names)), 2))
    each = split_level(level, len(pairs))
    reach = float(stdtrit(r - 1, 1 - (1 - each) / 2))
    rows = []
    for a, b in pairs:
        d = v[:, a] - v[:, b]
        spread = float(d.std(ddof=1))
        error = spread * float(np.sqrt(1 / r + _widening(overlap)))
        mean = float(d.mean())
        p = (
            float(2 * stdtr(r - 1, -abs(mean) / error))
            if error > 0
            else float(mean == 0)
        )
        rows.append((a, b, mean, reach * error, mean / spread if spread else 0.0, p))
    return _differences(names, rows, level, correction, "corrected resampled t")


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """Vulnerability by group when many models answer on the same records.

    Parameters
    ----------
    names : tuple of str
        The groups.
    vulnerability : tuple of Estimate
        Mean vulnerability of each group over the models; intervals hold together.
    by_model : tuple of tuple of float
        Vulnerability of each group for each model, one row per model.
    chi_square, p_value : float
        Wald's test that no group differs from another.
    pairs : tuple of PairDifference
        Every pair of groups.
    """

    names: tuple[str, ...]
    vulnerability: tuple[Estimate, ...]
    by_model: tuple[tuple[float, ...], ...]
    chi_square: float
    p_value: float
    pairs: tuple[PairDifference, ...]


def crossed(
    called: NDArray[np.bool_],
    masks: NDArray[np.bool_],
    groups: ArrayLike,
    *,
    judged: NDArray[np.bool_] | None = None,
    clusters: NDArray[np.int64] | None = None,
    level: float,
    correction: Correction = Correction.HOLM,
) -> Crossed:
    r"""Test whether groups differ in vulnerability over models that judge the same records.

    A record j has the value :math:`a_j`: how often it is called a member by models that were trained on it,
    minus how often by models that were not. The vulnerability of a group is about the mean over its records. Records
    are independent people, models are independent trainings, and every model judges many records. The
    variance of a mean over such a crossed table is the variance between records plus the
    variance between models, minus the noise of single answers, which both contain (Section 3 of [6]_).
    Unlike a test over repeats alone, this one does not mistake the peculiarities of one table for a difference between
    groups; unlike the correction of :func:`anova` by the overlap, it does not give up nearly all power.

    Parameters
    ----------
    called : array of bool, shape (models, records)
        Whether the attack on a model calls a record a member.
    masks : array of bool, shape (models, records)
        Whether the record is a member of the model.
    groups : array-like, shape (records,)
        Group of each record.
    judged : array of bool, shape (models, records), optional
        Which answers count; all of them by default.
    clusters : array of int, shape (models,), optional
        Models that depend on each other, such as those trained on complementary halves, have the same number;
        by default all models are independent.
    level : float
        Confidence of the intervals of the groups together, and of those of the pairs together.
    correction : Correction
        How p-values of pairs are adjusted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> masks = rng.random((40, 300)) < 0.5
    >>> group = np.arange(300) % 2
    >>> called = rng.random((40, 300)) < np.where(masks, 0.5 + 0.2 * group, 0.5)
    >>> result = crossed(called, masks, group, level=0.95)
    >>> result.p_value < 0.001, [round(v.value, 1) + 0.0 for v in result.vulnerability]
    (True, [0.0, 0.2])
    """
    group = np.asarray(groups).astype(str)
    judged = np.ones_like(masks) if judged is None else judged
    cluster = np.arange(len(masks)) if clusters is None else clusters
    shape = (len(cluster), len(group))
    if not called.shape == masks.shape == judged.shape == shape:
        raise InvalidInput(
            f"decisions {called.shape}, masks {masks.shape}, {len(cluster)} clusters and {len(group)} groups do not fit "
            "together; pass one row per model and one column per record."
        )
    found = len(set(group))
    if found < 2 or len(np.unique(cluster)) < 3:
        raise InvalidInput(
            f"{found} groups and {len(masks)} models are too few to compare; pass at least two groups, and three models that "
            "do not depend on each other."
        )
    moments = _moments(called, (masks & judged, ~masks & judged), group, cluster)
    chi_square, p_value = moments.wald()
    reach = moments.reach(level, len(moments.names))
    return Crossed(
        names=moments.names,
        vulnerability=tuple(
            Estimate(
                value=float(mean),
                low=float(mean - reach * error),
                high=float(mean + reach * error),
                level=level,
                method=f"crossed records and models, joint over {len(moments.names)} groups",
                covers="trainer",
            )
            for mean, error in zip(
                moments.means, np.sqrt(np.diag(moments.covariance)), strict=True
            )
        ),
        by_model=tuple(tuple(float(v) for v in row) for row in moments.by_model),
        chi_square=chi_square,
        p_value=p_value,
        pairs=_crossed_pairs(moments, level, correction),
    )


@dataclass(frozen=True, kw_only=True)
class _Moments:
    """What is known of the vulnerability of all groups.

    Parameters
    ----------
    names : tuple of str
        The groups.
    by_model : array of float, shape (models, groups)
        Vulnerability of each group for each model.
    covariance : array of float, shape (groups, groups)
        Of the means over models.
    independent : int
        Models, or clusters of them, that do not depend on each other.
    """

    names: tuple[str, ...]
    by_model: NDArray[np.float64]
    covariance: NDArray[np.float64]
    independent: int

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean of each group over the models."""
        return np.array([column.mean() for column in self.by_model.T])

    def reach(self, level: float, statements: int) -> float:
        """Return half the length of an interval, in standard errors, if several hold together."""
        each = split_level(level, statements)
        return float(stdtrit(self.independent - 1, 1 - (1 - each) / 2))

    def wald(self) -> tuple[float, float]:
        """Return chi-square and p-value of the test that all groups are alike."""
        number, r = len(self.names), self.independent
        # Differences of successive groups: they are all 0 exactly if all groups are alike.
        contrast = np.eye(number)[:-1] - np.eye(number)[1:]
        gaps = contrast @ self.means
        q = number - 1
        # The small diagonal keeps the matrix invertible for an attack that is always right, which has no spread.
        spread = contrast @ self.covariance @ contrast.T + 1e-12 * np.eye(q)
        chi_square = float(gaps @ np.linalg.solve(spread, gaps))
        # Hotelling's scale, because the covariance between models is estimated from only r of them.
        scaled = chi_square * max(r - q, 1) / (q * max(r - 1, 1))
        return chi_square, float(fdtrc(q, max(r - q, 1), scaled))


def _moments(
    called: NDArray[np.bool_],
    sides: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    group: NDArray[np.str_],
    cluster: NDArray[np.int64],
) -> _Moments:
    """Return the vulnerability of each group for each model, and the covariance of the means over crossed records and models.

    Parameters
    ----------
    called : array of bool, shape (models, records)
        Whether the attack on a model calls a record a member.
    sides : tuple of array of bool, shape (models, records)
        Which answers count, of members and of non-members.
    group : array of str, shape (records,)
        Group of each record.
    cluster : array of int, shape (models,)
        Models that depend on each other have the same number.
    """
    inside, outside = sides
    # A variance over models needs two of them on either side.
    usable = (inside.sum(axis=0) >= 2) & (outside.sum(axis=0) >= 2)
    names = tuple(sorted({str(g) for g in group}))
    by_model = np.empty((len(called), len(names)))
    records, answers = np.empty(len(names)), np.empty(len(names))
    for k, name in enumerate(names):
        in_group = (group == name) & usable
        n = int(in_group.sum())
        if n < 2:
            raise InvalidInput(
                f"the group {name!r} has {n} records that at least two models were trained on and two were not; at least 2 are "
                "needed, so leave the group out or train more models."
            )
        rate_in, rate_out = (_rate(called, side, in_group) for side in sides)
        by_model[:, k] = rate_in - rate_out
        # A model whose attack calls nearly everybody a member says nothing about a single record, so the rate of each
        # model is subtracted before records are compared.
        centred = called[:, in_group] - ((rate_in + rate_out) / 2)[:, None]
        mean_in, noise_in = _mean_and_error(centred, inside[:, in_group])
        mean_out, noise_out = _mean_and_error(centred, outside[:, in_group])
        records[k] = (mean_in - mean_out).var(ddof=1) / n
        answers[k] = (noise_in + noise_out).mean() / n
    tied = np.array([by_model[cluster == c].mean(axis=0) for c in np.unique(cluster)])
    # The noise of single answers is in both variances, so it is taken off once; chance must not make a variance
    # negative.
    covariance = np.diag(np.maximum(records - answers, 0.0))
    covariance += np.atleast_2d(np.cov(tied, rowvar=False)) / len(tied)
    return _Moments(
        names=names, by_model=by_model, covariance=covariance, independent=len(tied)
    )


def _rate(
    called: NDArray[np.bool_], side: NDArray[np.bool_], in_group: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return how often each model's attack says "member" of the records of a group on one side."""
    hits: NDArray[np.int64] = (called & side)[:, in_group].sum(axis=1)
    return np.asarray(hits / np.maximum(side[:, in_group].sum(axis=1), 1))


def _mean_and_error(
    values: NDArray[np.float64], side: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean of each record over the models of one side, and the variance of that mean."""
    count = side.sum(axis=0)
    mean = np.where(side, values, 0.0).sum(axis=0) / count
    squares = np.where(side, (values - mean) ** 2, 0.0).sum(axis=0)
    return mean, np.asarray(squares / (count - 1) / count)


def _crossed_pairs(
    moments: _Moments, level: float, correction: Correction
) -> tuple[PairDifference, ...]:
    names, means, covariance = moments.names, moments.means, moments.covariance
    pairs = list(itertools.combinations(range(len(names)), 2))
    reach = moments.reach(level, len(pairs))
    rows = []
    for a, b in pairs:
        error = float(
            np.sqrt(covariance[a, a] + covariance[b, b] - 2 * covariance[a, b])
        )
        gap = float(means[a] - means[b])
        spread = float((moments.by_model[:, a] - moments.by_model[:, b]).std(ddof=1))
        # An attack that is always right has no error; its gap is then 0 or certain.
        p = float(2 * stdtr(moments.independent - 1, -abs(gap) / max(error, 1e-12)))
        rows.append((a, b, gap, reach * error, gap / spread if spread else 0.0, p))
    return tuple(
        _differences(names, rows, level, correction, "crossed records and models")
    )


def _differences(
    names: Sequence[str],
    rows: Sequence[tuple[int, int, float, float, float, float]],
    level: float,
    correction: Correction,
    method: str,
) -> list[PairDifference]:
    """Return the pairs, given as rows of two groups, their gap, half its interval, the effect and the p-value."""
    adjusted = adjust([row[-1] for row in rows], correction)
    return [
        PairDifference(
            first=names[a],
            second=names[b],
            difference=Estimate(
                value=gap,
                low=gap - half,
                high=gap + half,
                level=level,
                method=f"{method}, joint over {len(rows)} pairs",
                covers="trainer",
            ),
            effect=effect,
            p_value=p,
            adjusted=float(q),
        )
        for (a, b, gap, half, effect, p), q in zip(rows, adjusted, strict=True)
    ]


def adjust(p_values: Sequence[float], correction: Correction) -> NDArray[np.float64]:
    """Return p-values adjusted for the number of tests.

    Holm [3]_ and Bonferroni bound the probability of any false alarm; Benjamini and Hochberg [4]_ bound
    the expected share of false alarms among the alarms, which is a weaker protection.

    Examples
    --------
    >>> adjust([0.01, 0.04, 0.03], Correction.HOLM)
    array([0.03, 0.06, 0.06])
    >>> adjust([0.01, 0.04, 0.03], Correction.BENJAMINI_HOCHBERG)
    array([0.03, 0.04, 0.04])
    """
    p = np.asarray(p_values, dtype=np.float64)
    m = len(p)
    if correction == Correction.NONE:
        return p
    if correction == Correction.BONFERRONI:
        return np.minimum(m * p, 1.0)
    order = np.argsort(p)
    out = np.empty(m)
    if correction == Correction.HOLM:
        # Running maximum: no adjusted p-value may be below that of a surer pair.
        steps = np.maximum.accumulate((m - np.arange(m)) * p[order])
    else:
        ranked = p[order] * m / np.arange(1, m + 1)
        steps = np.minimum.accumulate(ranked[::-1])[::-1]
    out[order] = np.minimum(steps, 1.0)
    return out


def vulnerability_bound(epsilon: float, delta: float = 0.0) -> float:
    r"""Return the largest vulnerability, or disparity, that (epsilon, delta)-privacy allows.

    This is the tight bound :math:`(e^\varepsilon - 1 + 2\delta)/(e^\varepsilon + 1)`. (The source [5]_ gives
    :math:`e^\varepsilon - 1`, which exceeds 1 for an epsilon above 0.69.)

    Examples
    --------
    >>> round(vulnerability_bound(1.0), 4)
    0.4621
    """
    if epsilon < 0 or not 0 <= delta < 1:
        raise InvalidInput(
            f"epsilon must be at least 0 and delta must lie in [0, 1), got {epsilon} and {delta}."
        )
    # (e^x - 1)/(e^x + 1) is tanh(x/2), without a quotient of two huge numbers.
    return min(1.0, float(np.tanh(epsilon / 2) + 2 * delta / (np.exp(epsilon) + 1)))


def _table(values: ArrayLike) -> NDArray[np.float64]:
    v = np.asarray(values, dtype=np.float64)
    if v.ndim != 2 or v.shape[0] < 3 or v.shape[1] < 2 or not np.isfinite(v).all():
        raise InvalidInput(
            f"values must be finite, with one row per repeat (at least 3) and one column per group (at least 2), got shape "
            f"{v.shape}; pass such a table."
        )
    return v


def _widening(overlap: float) -> float:
    if overlap == 0:
        return 0.0
    return in_open_unit(overlap, "overlap") / (1 - overlap)


def _sphericity(v: NDArray[np.float64]) -> float:
    """Return the epsilon of Greenhouse and Geisser [2]_, from the doubly centred covariance."""
    covariance = np.cov(v, rowvar=False)
    centred = (
        covariance
        - covariance.mean(axis=0)
        - covariance.mean(axis=1)[:, None]
        + covariance.mean()
    )
    g = v.shape[1]
    squares = float((centred**2).sum())
    if squares == 0:
        return 1.0
    ratio = float(np.trace(centred)) ** 2 / ((g - 1) * squares)
    # Its range in theory; rounding may leave it.
    return float(np.clip(ratio, 1 / (g - 1), 1.0))
