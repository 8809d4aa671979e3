"""Compare defences of one table: what each gains and what each gives away, on the same splits and the same people.

Every defence trains one model on each of the same halves of the records. A model is attacked with the other models of *its own* defence as
shadows, so the attacker runs the defence as well. Models and people are crossed: every model answers on every person. Both are resampled
together, with the same draws for every defence, so that a difference between two defences is paired.

References
----------
.. [1] Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1, 2007.
.. [2] Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from reticent._check import in_open_unit
from reticent.errors import InvalidInput
from reticent.evidence._estimate import Estimate, split_level
from reticent.evidence.disparity import Correction, adjust
from reticent.evidence.targets import rates_of_draws

__all__ = [
    "MOST_EXPOSED",
    "Comparison",
    "DefenceEvidence",
    "Defended",
    "Difference",
    "Ellipse",
    "compare_defences",
]

REPLICATES = 200  # give a standard error to 5 %, 1/sqrt(2 * 200)
# Of more people, this many are drawn at random: the rest add time and little else.
MOST_PEOPLE = 20_000
MOST_EXPOSED = 0.05  # share of people whose own risk is shown apart
# Independent splits below which nobody can be called most exposed: half of them choose, the others judge.
FEWEST_SPLITS_FOR_PEOPLE = 4
FEWEST_SPLITS = 2


@dataclass(frozen=True, kw_only=True)
class Defended:
    """What the models of one defence did.

    Parameters
    ----------
    name : str
        The defence, as its recipe.
    scores : mapping of str to array of float, shape (models, people)
        Scores of each attack, larger meaning more like a member of that model.
    errors : array of float, shape (models, people)
        Error of each model on each person: 0 or 1 for a class, squared for a quantity.
    baseline : array of float, shape (models, people)
        The same for a constant answer learned from the model's members.
    """

    name: str
    scores: Mapping[str, NDArray[np.float64]]
    errors: NDArray[np.float64]
    baseline: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ellipse:
    """Standard errors of gain and privacy, and their correlation: the shape of the joint uncertainty of both."""

    gain: float
    privacy: float
    correlation: float


@dataclass(frozen=True, kw_only=True)
class DefenceEvidence:
    """What one defence gains and what it gives away; intervals hold jointly over all defences and cover the trainer.

    Parameters
    ----------
    name : str
        The defence, as its recipe.
    gain : Estimate
        Share of the errors of a constant answer that its models save, on people who did not train them.
    privacy : Estimate
        ``min(2 (1 - A), 1)`` for the accuracy A of the strongest attack, mean over models.
    auc : Estimate
        That accuracy.
    tpr : tuple of Estimate
        Mean true-positive rate of the strongest attack at each rate.
    exposed : Estimate or None
        Advantage against the most exposed people, see :func:`compare_defences`; None with fewer than four splits.
    attack : str
        The attack with the largest accuracy.
    ellipse : Ellipse
        Joint uncertainty of gain and privacy.
    """

    name: str
    gain: Estimate
    privacy: Estimate
    auc: Estimate
    tpr: tuple[Estimate, ...]
    exposed: Estimate | None
    attack: str
    ellipse: Ellipse


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One defence against the first, on the same splits and people; positive means more than the first.

    Parameters
    ----------
    name : str
        The defence.
    gain, privacy : Estimate
        Differences; intervals hold jointly over all defences and both quantities.
    tpr : tuple of Estimate
        Differences of true-positive rates.
    exposed : Estimate or None
        Difference in the advantage against the most exposed people.
    gain_p, privacy_p : float
        P-values of "no difference", adjusted over all defences and both quantities by Holm's method.
    """

    name: str
    gain: Estimate
    privacy: Estimate
    tpr: tuple[Estimate, ...]
    exposed: Estimate | None
    gain_p: float
    privacy_p: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Several defences of one table, under the same attacks.

    Parameters
    ----------
    defences : tuple of DefenceEvidence
        In the order in which they were named; the first is what the others are compared with.
    differences : tuple of Difference
        Every other defence against the first.
    dominated : tuple of str
        Defences that another one beats: shown to be better in gain or privacy, and not shown to be worse in the other.
    fpr : tuple of float
        False-positive rates of the true-positive rates.
    splits, models, people : int
        Independent splits, models of each defence, and people.
    level : float
        Confidence of all intervals of one kind together.
    """

    defences: tuple[DefenceEvidence, ...]
    differences: tuple[Difference, ...]
    dominated: tuple[str, ...]
    fpr: tuple[float, ...]
    splits: int
    models: int
    people: int
    level: float


def compare_defences(
    defended: Sequence[Defended],
    masks: NDArray[np.bool_],
    *,
    splits: NDArray[np.int64],
    fpr: Sequence[float] = (0.01, 0.001),
    level: float = 0.95,
    rng: np.random.Generator,
) -> Comparison:
    r"""Compare defences that were trained on the same halves of the same people.

    The pigeonhole bootstrap [1]_ draws splits and, independently, people with replacement; each draw is the same for all defences. With g
    splits the interval of a mean or of a difference is :math:`\bar x \pm t_\nu\, s \sqrt{g/(g-1)}`. The degrees of freedom :math:`\nu` are
    Satterthwaite's [2]_ for the two parts of the variance: between splits (g - 1) and the rest (people). Intervals hold jointly over the
    defences.

    *Most exposed people.* In each split a person is in one of two models. The difference between the shares of non-members that the
    person outranks in the model that holds it and in the one that does not is the attack's advantage against that person. Half of the splits
    choose the 5 % of people with the largest mean, the other half judges them, and the reverse; without the exchange
    chance alone would make the worst people look exposed.

    Parameters
    ----------
    defended : sequence of Defended
        At least one defence; the others are compared with the first.
    masks : array of bool, shape (models, people)
        Which people trained which model; the same for every defence.
    splits : array of int, shape (models,)
        Models of complementary halves share a number.
    fpr : sequence of float
        False-positive rates.
    level : float
        Confidence, in (0, 1).
    rng : numpy.random.Generator
        For the resampling, and to break ties.

    Examples
    --------
    >>> from reticent.pool import balanced_masks
    >>> rng = np.random.default_rng(0)
    >>> masks = balanced_masks(16, np.arange(600), rng=rng)
    >>> def defence(name, shift):
    ...     wrong = rng.random(masks.shape) < 0.1
    ...     return Defended(name=name, scores={"x": rng.normal(shift * masks, 1.0)}, errors=wrong, baseline=np.full(masks.shape, 0.5))
    >>> both = [defence("none", 1.0), defence("some", 0.0)]
    >>> result = compare_defences(both, masks, splits=np.arange(16) // 2, rng=rng)
    >>> result.differences[0].privacy.low > 0.3, result.dominated
    (True, ('none',))
    """
    names, split = np.unique(splits, return_inverse=True)
    if len(names) < FEWEST_SPLITS or len(split) != len(masks):
        raise InvalidInput(
            f"{len(names)} splits for {len(masks)} models cannot be compared; train each defence on at least {FEWEST_SPLITS} splits that do not "
            "depend on each other."
        )
    for each in defended:
        shapes = {s.shape for s in (*each.scores.values(), each.errors, each.baseline)}
        if shapes != {masks.shape}:
            raise InvalidInput(
                f"the defence {each.name!r} has scores and errors of the shapes {sorted(shapes)}, but the masks are {masks.shape}; pass one row "
                "per model and one column per person."
            )
    for rate in fpr:
        in_open_unit(rate, "fpr")
    people = _some_people(masks.shape[1], rng)
    draws = _Draws.of(split, len(people), rng=rng)
    masks = masks[:, people]
    drawn = [_drawn(each, masks, people, draws, fpr) for each in defended]
    in_open_unit(level, "level")
    evidence = tuple(
        _evidence(each, values, draws, level=level, defences=len(defended))
        for each, values in zip(defended, drawn, strict=True)
    )
    return Comparison(
        defences=evidence,
        differences=_differences(defended, drawn, draws, level=level),
        dominated=_dominated(defended, drawn, draws, level=level),
        fpr=tuple(fpr),
        splits=draws.splits,
        models=len(masks),
        people=len(people),
        level=level,
    )


def _some_people(total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if total <= MOST_PEOPLE:
        return np.arange(total)
    return np.sort(rng.choice(total, MOST_PEOPLE, replace=False))


@dataclass(frozen=True, kw_only=True)
class _Draws:
    """The draws that all defences share.

    Parameters
    ----------
    split : array of int, shape (models,)
        Split of each model.
    people : array of float, shape (1 + replicates, people)
        How often each person is drawn; the first row is the data itself.
    chosen : array of float, shape (1 + replicates, splits)
        How often each split is drawn; the first row is the data itself.
    ties : array of float, shape (models, people)
        The random order of people with equal scores.
    """

    split: NDArray[np.int64]
    people: NDArray[np.float64]
    chosen: NDArray[np.float64]
    ties: NDArray[np.float64]

    @classmethod
    def of(
        cls, split: NDArray[np.int64], people: int, *, rng: np.random.Generator
    ) -> "_Draws":
        splits = int(split.max()) + 1
        weights = rng.multinomial(people, np.full(people, 1 / people), size=REPLICATES)
        chosen = rng.multinomial(splits, np.full(splits, 1 / splits), size=REPLICATES)
        return cls(
            split=split,
            people=np.vstack([np.ones(people), weights]),
            chosen=np.vstack([np.ones(splits), chosen]).astype(np.float64),
            ties=rng.random((len(split), people)),
        )

    @property
    def splits(self) -> int:
        return int(self.chosen.shape[1])

    def per_split(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return means over the models of each split, from values per model in the first axis."""
        total = np.zeros((self.splits, *values.shape[1:]))
        np.add.at(total, self.split, values)
        count = np.bincount(self.split, minlength=self.splits)
        return total / count.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Every quantity of one defence per split, for the data and for each draw of the people: arrays of shape (splits, 1 + replicates).

    Parameters
    ----------
    attack : str
        The attack with the largest mean accuracy, from which the quantities below are.
    """

    attack: str
    gain: NDArray[np.float64]
    auc: NDArray[np.float64]
    tpr: tuple[NDArray[np.float64], ...]
    exposed: NDArray[np.float64] | None

    @property
    def privacy(self) -> NDArray[np.float64]:
        """The privacy score before it is cut off at 1, so that differences are not."""
        return 2 * (1 - self.auc)


def _drawn(
    defended: Defended,
    masks: NDArray[np.bool_],
    people: NDArray[np.int64],
    draws: _Draws,
    fpr: Sequence[float],
) -> _Drawn:
    rates = {}
    for name, scores in defended.scores.items():
        per_model = np.empty((len(masks), len(draws.people), 1 + len(fpr)))
        for k, (row, mask) in enumerate(zip(scores[:, people], masks, strict=True)):
            order = np.lexsort((draws.ties[k], -row))
            weights = draws.people[:, order]
            per_model[k] = rates_of_draws(weights, mask[order], fpr)
        rates[name] = draws.per_split(per_model)
    attack = max(rates, key=lambda name: float(rates[name][:, 0, 0].mean()))
    chosen = rates[attack]
    return _Drawn(
        attack=attack,
        gain=_gain(defended, masks, people, draws),
        auc=chosen[:, :, 0],
        tpr=tuple(chosen[:, :, 1 + k] for k in range(len(fpr))),
        exposed=_exposed(defended.scores[attack][:, people], masks, draws),
    )


def _gain(
    defended: Defended,
    masks: NDArray[np.bool_],
    people: NDArray[np.int64],
    draws: _Draws,
) -> NDArray[np.float64]:
    """Return the share of a constant answer's errors that is saved on people outside of each model, per split and draw."""
    errors, baseline = (
        draws.per_split(np.where(masks, 0.0, values[:, people]) @ draws.people.T)
        for values in (defended.errors, defended.baseline)
    )
    # A constant answer that is never wrong leaves nothing to gain.
    return np.asarray(1 - errors / np.maximum(baseline, 1e-12))


def _exposed(
    scores: NDArray[np.float64], masks: NDArray[np.bool_], draws: _Draws
) -> NDArray[np.float64] | None:
    """Return the advantage against the most exposed people; None if too few splits could choose and judge them."""
    if draws.splits < FEWEST_SPLITS_FOR_PEOPLE:
        return None
    outranked = np.array(
        [_outranked(row, mask) for row, mask in zip(scores, masks, strict=True)]
    )
    # Complementary models: in each split a person is inside one model and outside the other.
    signed = np.where(masks, outranked, -outranked)
    advantage = np.zeros((draws.splits, scores.shape[1]))
    np.add.at(advantage, draws.split, signed)
    count = max(1, round(MOST_EXPOSED * scores.shape[1]))
    even = np.arange(draws.splits) % 2 == 0
    value = np.empty((draws.splits, len(draws.people)))
    for choosing in (even, ~even):
        worst = np.argsort(-advantage[choosing].mean(axis=0), kind="stable")[:count]
        weights = draws.people[:, worst]
        total = np.maximum(weights.sum(axis=1), 1e-12)
        value[~choosing] = (advantage[~choosing][:, worst] @ weights.T) / total
    return value


def _outranked(
    scores: NDArray[np.float64], mask: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the share of non-members that each person outranks, ties counted half."""
    others = np.sort(scores[~mask])
    below = np.searchsorted(others, scores, side="left")
    upto = np.searchsorted(others, scores, side="right")
    return np.asarray((below + upto) / (2 * len(others)))


@dataclass(frozen=True, kw_only=True)
class _Spread:
    """A mean, its standard error and the degrees of freedom of that error."""

    mean: float
    error: float
    freedom: float

    def estimate(
        self, draws: _Draws, *, level: float, within: tuple[float, float]
    ) -> Estimate:
        """Return the mean with its interval, which does not leave the range of the quantity."""
        reach = float(stdtrit(self.freedom, 1 - (1 - level) / 2)) * self.error
        low, high = within
        return Estimate(
            value=min(max(self.mean, low), high),
            low=min(max(self.mean - reach, low), high),
            high=min(max(self.mean + reach, low), high),
            level=level,
            method=f"pigeonhole bootstrap over {draws.splits} splits and {draws.people.shape[1]} people",
            covers="trainer",
        )

    @property
    def p_value(self) -> float:
        """Two-sided p-value of "the mean is 0"."""
        if self.error == 0:
            return 1.0 if self.mean == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))


def _spread(values: NDArray[np.float64], draws: _Draws) -> _Spread:
    """Return the mean over splits with its standard error, from values of shape (splits, 1 + replicates)."""
    g = draws.splits
    weights = draws.chosen / draws.chosen.sum(axis=1, keepdims=True)
    means = np.einsum("bs,sb->b", weights, values)
    # Drawing g splits with replacement understates their variance by this factor.
    total = float(means[1:].var(ddof=1)) * g / (g - 1)
    between = min(float(values[:, 0].var(ddof=1)) / g, total)
    rest, persons = total - between, draws.people.shape[1]
    freedom = float(g - 1)
    if total > 0:
        freedom = total**2 / (between**2 / (g - 1) + rest**2 / (persons - 1))
    return _Spread(mean=float(means[0]), error=total**0.5, freedom=freedom)


UNIT, SIGNED, ANY_GAIN = (0.0, 1.0), (-1.0, 1.0), (-np.inf, 1.0)


def _evidence(
    defended: Defended, drawn: _Drawn, draws: _Draws, *, level: float, defences: int
) -> DefenceEvidence:
    # The strongest of several attacks is shown, so the error is divided among them.
    each = split_level(level, defences * len(defended.scores))
    why = f"joint over {defences} defences"

    def state(
        values: NDArray[np.float64], within: tuple[float, float] = UNIT
    ) -> Estimate:
        estimate = _spread(values, draws).estimate(draws, level=each, within=within)
        return estimate.stated(level=level, why=why)

    return DefenceEvidence(
        name=defended.name,
        gain=state(drawn.gain, ANY_GAIN),
        privacy=state(drawn.privacy),
        auc=state(drawn.auc),
        tpr=tuple(state(values) for values in drawn.tpr),
        exposed=None if drawn.exposed is None else state(drawn.exposed, SIGNED),
        attack=drawn.attack,
        ellipse=_ellipse(drawn, draws),
    )


def _ellipse(drawn: _Drawn, draws: _Draws) -> Ellipse:
    weights = draws.chosen / draws.chosen.sum(axis=1, keepdims=True)
    gain, privacy = (
        np.einsum("bs,sb->b", weights, values)[1:]
        for values in (drawn.gain, drawn.privacy)
    )
    spreads = _spread(drawn.gain, draws).error, _spread(drawn.privacy, draws).error
    # Without any spread there is no direction either.
    moving = gain.std() > 0 and privacy.std() > 0
    correlation = float(np.corrcoef(gain, privacy)[0, 1]) if moving else 0.0
    return Ellipse(gain=spreads[0], privacy=spreads[1], correlation=correlation)


def _differences(
    defended: Sequence[Defended],
    drawn: Sequence[_Drawn],
    draws: _Draws,
    *,
    level: float,
) -> tuple[Difference, ...]:
    first, others = drawn[0], drawn[1:]
    if not others:
        return ()
    # Two quantities are tested for each defence: gain and privacy.
    each, why = (
        split_level(level, 2 * len(others)),
        f"joint over {len(others)} defences",
    )

    def state(values: NDArray[np.float64]) -> Estimate:
        everything = (-np.inf, np.inf)
        estimate = _spread(values, draws).estimate(draws, level=each, within=everything)
        return estimate.stated(level=level, why=why)

    p_values = [
        _spread(values, draws).p_value
        for other in others
        for values in (other.gain - first.gain, other.privacy - first.privacy)
    ]
    holm = adjust(p_values, Correction.HOLM)
    return tuple(
        Difference(
            name=its.name,
            gain=state(other.gain - first.gain),
            privacy=state(other.privacy - first.privacy),
            tpr=tuple(state(a - b) for a, b in zip(other.tpr, first.tpr, strict=True)),
            exposed=None
            if other.exposed is None or first.exposed is None
            else state(other.exposed - first.exposed),
            gain_p=float(holm[2 * k]),
            privacy_p=float(holm[2 * k + 1]),
        )
        for k, (its, other) in enumerate(zip(defended[1:], others, strict=True))
    )


def _dominated(
    defended: Sequence[Defended],
    drawn: Sequence[_Drawn],
    draws: _Draws,
    *,
    level: float,
) -> tuple[str, ...]:
    """Return the defences that another one beats: shown to be better in one quantity, and not shown to be worse in the other."""
    pairs = max(1, len(drawn) * (len(drawn) - 1))
    each = split_level(level, 2 * pairs)

    def beats(a: _Drawn, b: _Drawn) -> bool:
        both = (
            _spread(a.gain - b.gain, draws),
            _spread(a.privacy - b.privacy, draws),
        )
        shown = [spread.mean for spread in both if spread.p_value < 1 - each]
        return bool(shown) and min(shown) > 0

    return tuple(
        its.name
        for its, one in zip(defended, drawn, strict=True)
        if any(beats(other, one) for other in drawn if other is not one)
    )
