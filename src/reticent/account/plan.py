"""Plans: one private training, its noise, and all statements that are equivalent to it."""

import math
from dataclasses import dataclass

from reticent.account.calibrate import least_noise
from reticent.account.mechanisms import PrivateTraining, Relation
from reticent.account.renyi import renyi_epsilon
from reticent.account.source import advantage_of_source, belief_of_source
from reticent.account.targets import Target
from reticent.account.tradeoff import TradeOff, trade_off
from reticent.errors import InvalidInput

__all__ = ["Course", "Plan", "SourceFormulas", "Terms", "make_plan"]


@dataclass(frozen=True, kw_only=True)
class Course:
    """The length of a training and the share of the records that take part in each step.

    Parameters
    ----------
    steps : int
        Number of steps.
    sampling_rate : float
        Probability that a record takes part in a step, in (0, 1].
    """

    steps: int
    sampling_rate: float

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InvalidInput(f"steps must be at least 1, got {self.steps}.")
        if not 0 < self.sampling_rate <= 1:
            raise InvalidInput(
                f"the sampling rate must lie in (0, 1], got {self.sampling_rate:g}: it is the probability that a record takes part in "
                "a step; correct --rate."
            )

    @classmethod
    def of_epochs(cls, *, rows: int, batch: int, epochs: float) -> "Course":
        """Return the course of a training that is given in epochs.

        Examples
        --------
        >>> Course.of_epochs(rows=60_000, batch=256, epochs=60)
        Course(steps=14063, sampling_rate=0.004266666666666667)
        """
        if rows < 1 or batch < 1 or epochs <= 0:
            raise InvalidInput(
                f"rows, batch and epochs must be positive, got {rows}, {batch} and {epochs}."
            )
        if batch > rows:
            raise InvalidInput(
                f"the batch of {batch:,} is larger than the table of {rows:,} rows, so no record could be left out; use at most "
                f"{rows:,}."
            )
        # Part of a step counts as a whole step, so that the plan does not guarantee more than the training does; the
        # small term keeps a whole number of steps from being rounded up because of floating-point error.
        steps = math.ceil(epochs * rows / batch - 1e-9)
        return cls(steps=steps, sampling_rate=batch / rows)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms in which a guarantee is stated.

    Parameters
    ----------
    delta : float
        The delta at which epsilon and the belief are stated, in (0, 1).
    relation : Relation
        When two tables are neighbours.
    prior : float
        Belief before the release.
    fpr : float
        False-positive rate at which the true-positive rate is stated.
    """

    delta: float
    relation: Relation = Relation.ADD_REMOVE
    prior: float = 0.5
    fpr: float = 0.001


@dataclass(frozen=True, kw_only=True)
class SourceFormulas:
    """What the formulas of D5.3 and Rényi accounting say about the same training, for comparison only."""

    advantage: float
    belief: float
    renyi_epsilon: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A private training and what it guarantees, in equivalent statements.

    Parameters
    ----------
    target : str
        The requested limit, in words.
    relation : str
        When two tables are neighbours; every epsilon holds under this relation.
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    epsilon, delta : float
        Differential privacy.
    epsilon_other : float
        Epsilon of the same noise at the same delta under the other relation.
    advantage : float
        Largest TPR - FPR of any membership attack.
    belief : float
        Highest posterior belief, except with probability ``delta``.
    prior : float
        Belief before the release.
    tpr, fpr : float
        Largest true-positive rate at a false-positive rate.
    accuracy : float
        Share of correct guesses of the best membership attacker, at the prior.
    steps, sampling_rate
        The course of the training.
    comparison : SourceFormulas
        The same training in the formulas of others.
    """

    target: str
    relation: str
    noise_multiplier: float
    epsilon: float
    delta: float
    epsilon_other: float
    advantage: float
    belief: float
    prior: float
    tpr: float
    fpr: float
    accuracy: float
    steps: int
    sampling_rate: float
    comparison: SourceFormulas


def make_plan(target: Target, course: Course, terms: Terms) -> Plan:
    """Return the training with the least noise that meets a target, and everything it guarantees.

    Parameters
    ----------
    target : Target
        The limit to meet.
    course : Course
        Steps and sampling rate.
    terms : Terms
        Delta, relation, prior and false-positive rate at which guarantees are stated.
    """
    return plan_and_guarantee(target, course, terms)[0]


def plan_and_guarantee(
    target: Target, course: Course, terms: Terms
) -> tuple[Plan, TradeOff]:
    """Return the plan of :func:`make_plan` and the trade-off curve that it was read from."""

    def training(noise: float, under: Relation = terms.relation) -> PrivateTraining:
        return PrivateTraining(
            noise_multiplier=noise,
            sampling_rate=course.sampling_rate,
            steps=course.steps,
            relation=under,
        )

    # The search rounds as the plan does, so that the printed noise is one that was evaluated.
    unrounded, guarantee = least_noise(
        target, lambda noise: training(rounded_up(noise))
    )
    noise = rounded_up(unrounded)
    other = next(r for r in Relation if r != terms.relation)
    epsilon_other = trade_off(training(noise, other)).epsilon(terms.delta)
    plan = _described(target.words, training(noise), guarantee, epsilon_other, terms)
    return plan, guarantee


def _described(
    target: str,
    training: PrivateTraining,
    guarantee: TradeOff,
    epsilon_other: float,
    terms: Terms,
) -> Plan:
    """Return the plan of a training, with every statement read from its guarantee."""
    delta, prior, fpr = terms.delta, terms.prior, terms.fpr
    epsilon = guarantee.epsilon(delta)
    plain = training.relation == Relation.ADD_REMOVE
    return Plan(
        target=target,
        relation=training.relation.value,
        noise_multiplier=training.noise_multiplier,
        epsilon=epsilon,
        delta=delta,
        epsilon_other=epsilon_other,
        advantage=guarantee.advantage,
        belief=guarantee.belief(delta, prior=prior),
        prior=prior,
        tpr=guarantee.tpr(fpr),
        fpr=fpr,
        accuracy=guarantee.accuracy(prior=prior),
        steps=training.steps,
        sampling_rate=training.sampling_rate,
        comparison=SourceFormulas(
            advantage=advantage_of_source(epsilon, delta),
            belief=belief_of_source(epsilon),
            renyi_epsilon=renyi_epsilon(training, delta) if plain else None,
        ),
    )


def rounded_up(noise: float) -> float:
    """Return the noise rounded up to five significant digits, so that what is printed is what was evaluated.

    Examples
    --------
    >>> rounded_up(1.23456789)
    1.2346
    """
    scale = 10 ** (4 - math.floor(math.log10(noise)))
    return float(math.ceil(noise * scale) / scale)
