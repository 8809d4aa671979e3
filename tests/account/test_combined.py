"""Every mechanism under every combinator, asked every question, against the enumeration of its outputs."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom, norm

from reticent.account import (
    Composition,
    Exponential,
    Failure,
    Gaussian,
    Group,
    Laplace,
    NonSphericalGaussian,
    PrivateTraining,
    RandomisedResponse,
    Relation,
    SubsampledGaussian,
    TradeOff,
    trade_off,
)
from reticent.account.tradeoff import fitting
from reticent.errors import InvalidInput

GRID = 2e-3  # coarse: a group under sampling takes seconds on a fine one
PRIOR = 0.3


def atoms(p, q):
    return np.array(p, dtype=float), np.array(q, dtype=float)


def product(*pairs):
    """Return the pair of several independent outputs: every combination, with its two probabilities."""
    p, q = pairs[0]
    for a, b in pairs[1:]:
        p, q = np.multiply.outer(p, a).ravel(), np.multiply.outer(q, b).ravel()
    return p, q


def flipped(pair):
    return pair[1], pair[0]


def cut(cdf, other, edges):
    """Return the probabilities of the cells of a real output; merging outputs never makes an attack better."""
    return atoms(np.diff(cdf(edges), prepend=0, append=1), np.diff(other(edges), prepend=0, append=1))  # fmt: skip


def laplace(epsilon):
    def cdf(x):
        return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)  # fmt: skip

    edges = np.linspace(0, epsilon, 400)
    return cut(lambda x: cdf(x - epsilon), cdf, edges)


def mixture(mu, weights, cells=500):
    """Return the pair of a normal output whose mean is k mu with the weight of k, and one whose mean is 0."""
    edges = np.linspace(-4, 4 + mu * (len(weights) - 1), cells)

    def cdf(x):
        return sum(w * norm.cdf(x - mu * k) for k, w in enumerate(weights))

    return cut(cdf, norm.cdf, edges)


def coins(truth, answers):
    false = (1 - truth) / answers
    p = np.full(answers, false)
    q = p.copy()
    p[0] += truth
    q[1] += truth
    return p, q


def told(epsilon):
    share = 1 / (1 + math.exp(-epsilon))
    return atoms([share, 1 - share], [1 - share, share])


def failing(probability):
    return atoms([probability, 0, 1 - probability], [0, probability, 1 - probability])


def sampled(size, cells=500):
    weights = binom.pmf(range(size + 1), size, 0.2)
    return mixture(1 / 1.5, weights, cells)


def two_steps(size):
    """Return the pair of two sampled steps, in few cells, because two uses of it have their product."""
    step = sampled(size, 30)
    return product(step, step)


@dataclass(frozen=True)
class Case:
    """A mechanism, and its pair of output distributions for one record and for a group."""

    mechanism: object
    pair: object  # of a group of the given size
    pure: float = math.inf


REPLACE = {"relation": Relation.REPLACE}
CASES = {
    "randomised response": Case(RandomisedResponse(truth=0.4, answers=3), lambda k: product(*[coins(0.4, 3)] * k), math.log(3)),
    "laplace": Case(Laplace(noise_multiplier=2.5), lambda k: laplace(k / 2.5), 0.4),
    "laplace, replace-one": Case(Laplace(noise_multiplier=5.0, **REPLACE), lambda k: laplace(k / 2.5), 0.4),
    "exponential": Case(Exponential(epsilon=0.5), lambda k: told(0.5 * k), 0.5),
    "gaussian": Case(Gaussian(noise_multiplier=2.0), lambda k: mixture(k / 2, [0, 1])),
    "gaussian, replace-one": Case(Gaussian(noise_multiplier=4.0, **REPLACE), lambda k: mixture(k / 2, [0, 1])),
    "by coordinate": Case(NonSphericalGaussian(deviations=(5.0, 5.0), ranges=(1.5, 2.0)), lambda k: mixture(k / 2, [0, 1])),
    "sampled": Case(SubsampledGaussian(noise_multiplier=1.5, sampling_rate=0.2), sampled),
    "training": Case(PrivateTraining(noise_multiplier=1.5, sampling_rate=0.2, steps=2), two_steps),
    "training, full batch": Case(PrivateTraining(noise_multiplier=2.0, sampling_rate=1.0, steps=1), lambda k: mixture(k / 2, [0, 1])),
    "failure": Case(Failure(probability=0.03), lambda k: failing(0.03 * k)),
}  # fmt: skip
COMBINED = ("alone", "twice", "with another", "group", "group of twice", "group of group")  # fmt: skip


def combined(case, how):
    """Return the mechanism, its pair of output distributions and its pure epsilon."""
    m, alone, pure = case.mechanism, case.pair(1), case.pure
    other = Laplace(noise_multiplier=2.0 if m.relation == Relation.REPLACE else 1.0)
    other = Laplace(noise_multiplier=other.noise_multiplier, relation=m.relation)
    twice = Composition(parts=((m, 2),))
    return {
        "alone": (m, alone, pure),
        "twice": (twice, product(alone, alone), 2 * pure),
        "with another": (Composition(parts=((m, 1), (other, 1))), product(alone, laplace(1.0)), pure + 1),
        "group": (Group(mechanism=m, size=2), case.pair(2), 2 * pure),
        "group of twice": (Group(mechanism=twice, size=2), product(case.pair(2), case.pair(2)), 4 * pure),
        "group of group": (Group(mechanism=Group(mechanism=m, size=2), size=2), case.pair(4), 4 * pure),
    }[how]  # fmt: skip


@dataclass(frozen=True)
class Enumerated:
    """The same questions, answered from the probabilities of all outputs under both tables."""

    p: np.ndarray
    q: np.ndarray

    @property
    def order(self):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.argsort(-np.nan_to_num(np.log(self.p / self.q), nan=0.0), kind="stable")  # fmt: skip

    @property
    def loss(self):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.p > 0, np.log(self.p / self.q), -np.inf)

    def delta(self, epsilon):
        return np.maximum(self.p - math.exp(epsilon) * self.q, 0).sum()

    def epsilon(self, delta):
        low, high = 0.0, 60.0
        if self.delta(high) > delta:
            return math.inf
        if self.delta(low) <= delta:
            return 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def tpr(self, fpr):
        p, q = self.p[self.order], self.q[self.order]
        return float(np.interp(fpr, np.r_[0, np.cumsum(q)], np.r_[0, np.cumsum(p)]))

    def probability_of_belief(self, belief, prior):
        least = math.log(belief / (1 - belief)) - math.log(prior / (1 - prior))
        return self.p[self.loss > least + 1e-9].sum()

    def accuracy(self, prior):
        return np.maximum(prior * self.p, (1 - prior) * self.q).sum()


def ask(curve, worst):
    """Return what is asked of a trade-off curve, and of the worse direction of the enumeration, by name."""

    def over(question):
        return question(curve), max(question(side) for side in worst)

    def accuracy(curve):
        return curve.accuracy(prior=PRIOR) if isinstance(curve, TradeOff) else curve.accuracy(PRIOR)  # fmt: skip

    return {
        "advantage": over(lambda c: c.delta(0.0)),
        "delta": over(lambda c: c.delta(0.3)),
        "epsilon": over(lambda c: c.epsilon(0.05)),
        "small delta": over(lambda c: c.epsilon(1e-3)),
        "tpr": over(lambda c: c.tpr(0.05)),
        "small fpr": over(lambda c: c.tpr(0.002)),
        "accuracy": over(accuracy),
    }


# Groups of groups under sampling, and four steps, take long to account or to enumerate, and are made of the same parts.
LONG = {(name, "group of group") for name in ("sampled", "training")}
LONG |= {("training", how) for how in ("twice", "group of twice")}


@pytest.mark.parametrize(
    ("name", "how"), [c for c in itertools.product(CASES, COMBINED) if c not in LONG]
)
def test_every_question_has_the_answer_of_the_enumeration(name, how):
    mechanism, pair, pure = combined(CASES[name], how)
    curve = trade_off(mechanism, grid=GRID)
    worst = Enumerated(*pair), Enumerated(*flipped(pair))
    for question, (ours, truth) in ask(curve, worst).items():
        # Cells of outputs lean down, cells of losses lean up: never less than the enumeration, and never much more.
        assert ours >= truth - 1e-9, question
        assert ours <= truth + 0.02 * max(truth, 0.05) + 4 * GRID, question
    steps = name in ("randomised response", "exponential", "failure")
    for belief in (0.35, 0.5, 0.7):
        ours = curve.probability_of_belief(belief, prior=PRIOR)
        # Merged outputs have a mean loss, so a little more of them may lie beyond a limit: a hundredth of belief either way.
        more, less = (max(s.probability_of_belief(belief + d, PRIOR) for s in worst) for d in (0.01, -0.01))  # fmt: skip
        assert more - 1e-9 <= ours <= less + 0.01
    for failure in (0.05, 0.2):
        ours = curve.belief(failure, prior=PRIOR)
        certain = max(s.p[s.q == 0].sum() for s in worst)
        assert (ours == 1) == (certain > failure)
        beyond, before = (max(s.probability_of_belief(min(ours + d, 1 - 1e-9), PRIOR) for s in worst) for d in (0.01, -0.02))  # fmt: skip
        assert beyond <= failure + 1e-9 or ours == 1
        # The losses of some mechanisms lie so far apart that no belief has exactly this probability.
        assert before > failure * 0.9 or steps
    # Pure epsilons add up exactly: over uses, and over the records of a group.
    assert curve.epsilon(0.0) == pytest.approx(pure)
    if math.isfinite(pure):
        assert curve.delta(pure) == 0
        assert curve.tpr(0.0) == 0
        highest = 1 / (1 + math.exp(-pure) * (1 - PRIOR) / PRIOR)
        assert curve.belief(1e-300, prior=PRIOR) == pytest.approx(highest)
        assert curve.probability_of_belief(highest + 1e-9, prior=PRIOR) == 0


@pytest.mark.parametrize("uses", [2, 50, 2000])
def test_pure_epsilons_add_up_over_many_uses(uses):
    once = Laplace(noise_multiplier=100.0)
    both = trade_off(Composition(parts=((once, uses), (Exponential(epsilon=0.25), 3))))
    assert both.epsilon(0.0) == pytest.approx(uses / 100 + 0.75)
    # Twin: without the bound, the tails that a composition cuts off count as a certain loss.
    unbounded = TradeOff(relation=both.relation, grid=both.grid, sides=both.sides)
    assert unbounded.epsilon(0.0) > both.epsilon(0.0)
    if uses == 2000:
        assert math.isinf(unbounded.epsilon(0.0))
    # Advanced composition needs a delta, and with one it is far below the sum.
    assert both.epsilon(1e-5) <= both.epsilon(0.0)
    if uses == 2000:
        assert both.epsilon(1e-5) < 4


def test_a_part_without_a_pure_epsilon_leaves_none():
    parts = ((Laplace(noise_multiplier=1.0), 1), (Gaussian(noise_multiplier=5.0), 1))
    assert math.isinf(trade_off(Composition(parts=parts), grid=GRID).epsilon(0.0))


def test_a_group_of_one_is_the_record_itself_under_either_relation():
    """Under replace-one the loss of a group of one was that of add/remove, which is smaller."""
    for mechanism in (
        SubsampledGaussian(noise_multiplier=1.5, sampling_rate=0.2, **REPLACE),
        PrivateTraining(noise_multiplier=1.5, sampling_rate=0.2, steps=3, **REPLACE),
        PrivateTraining(noise_multiplier=4.0, sampling_rate=1.0, steps=3, **REPLACE),
    ):
        alone = trade_off(mechanism, grid=GRID)
        one = trade_off(Group(mechanism=mechanism, size=1), grid=GRID)
        assert one.epsilon(1e-3) == pytest.approx(alone.epsilon(1e-3))


@dataclass(frozen=True, kw_only=True)
class Own:
    """A mechanism of somebody else's, which says nothing about groups."""

    relation: Relation = Relation.ADD_REMOVE

    def loss(self, grid):
        return pld.from_laplace_mechanism(1.0, value_discretization_interval=grid)


def test_groups_that_cannot_be_accounted_are_refused_in_a_sentence():
    with pytest.raises(InvalidInput, match="Own does not say how it protects a group"):
        Group(mechanism=Own(), size=2)
    step = SubsampledGaussian(noise_multiplier=1.5, sampling_rate=0.2, **REPLACE)
    with pytest.raises(InvalidInput, match="a group under sampling"):
        trade_off(Group(mechanism=step, size=2))
    assert trade_off(Group(mechanism=Failure(probability=0.4), size=3)).advantage == 1
    assert trade_off(Composition(parts=((Own(), 2),)), grid=GRID).epsilon(1e-3) > 1


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("noise", [0.5, 1.0])
@pytest.mark.parametrize("uses", [1, 40])
def test_the_grid_of_a_composition_is_ample(uses, noise, relation):
    """Cells grow with the Gaussian noise's loss, and shrink with the number of uses; against the usual grid epsilon moves by less than a ten-thousandth, and up."""
    parts = ((Gaussian(noise_multiplier=noise, relation=relation), 1), (Laplace(noise_multiplier=60 * noise, relation=relation), uses))  # fmt: skip
    mechanism = Composition(parts=parts)
    coarse, fine = (trade_off(mechanism, grid=g) for g in (None, 1e-4))
    assert coarse.grid > fine.grid
    off = coarse.epsilon(1e-6) / fine.epsilon(1e-6) - 1
    assert -1e-9 <= off < 1e-4
    # The twin: a grid 64 times as coarse is seen.
    assert trade_off(mechanism, grid=64 * coarse.grid).epsilon(1e-6) / fine.epsilon(1e-6) - 1 > 1e-4  # fmt: skip


@pytest.mark.parametrize("group", [False, True])
def test_steps_of_a_training_are_many_uses(group):
    """A composition with a part that is sampled keeps the usual grid, however large the loss of its Gaussian part; without that part it does not."""
    training = PrivateTraining(noise_multiplier=1.0, sampling_rate=0.01, steps=1_000)
    sampled = Group(mechanism=training, size=2) if group else training
    gaussian = Gaussian(noise_multiplier=0.5)
    assert fitting(Composition(parts=((gaussian, 1), (sampled, 1)))) == 1e-4
    assert fitting(Composition(parts=((gaussian, 2),))) > 1e-4
