"""A plan: one training, one amount of noise, and everything that is equivalent to it."""

import math
from dataclasses import dataclass

from reticent.account.calibrate import least_noise
from reticent.account.mechanisms import PrivateTraining, Relation
from reticent.account.renyi import renyi_epsilon
from reticent.account.source import advantage_of_source, belief_of_source
from reticent.account.targets import Target
from reticent.account.tradeoff import TradeOff, trade_off
from reticent.errors import InvalidInput

__all__ = ["Course", "Plan", "SourceFormulas", "make_plan"]


@dataclass(frozen=True, kw_only=True)
class Course:
    """How long a training is and how many records take part in a step.

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
            raise InvalidInput(
                f"there are {self.steps} steps, but training takes at least one."
            )
        if not 0 < self.sampling_rate <= 1:
            raise InvalidInput(
                f"the sampling rate is {self.sampling_rate:g}, but a record takes part with a probability in (0, 1]; correct --rate."
            )

    @classmethod
    def of_epochs(cls, *, rows: int, batch: int, epochs: float) -> "Course":
        """Return the course of a training in epochs.

        Examples
        --------
        >>> Course.of_epochs(rows=60_000, batch=256, epochs=60)
        Course(steps=14063, sampling_rate=0.004266666666666667)
        """
        if rows < 1 or batch < 1 or epochs <= 0:
            raise InvalidInput(
                f"rows ({rows}), batch ({batch}) and epochs ({epochs}) must be positive; correct them."
            )
        if batch > rows:
            raise InvalidInput(
                f"the batch of {batch:,} is larger than the table of {rows:,} rows, so no record could be left out; use at most "
                f"{rows:,}."
            )
        # A part of a step is a step: the plan must not guarantee more than the training keeps.
        steps = math.ceil(epochs * rows / batch - 1e-9)
        return cls(steps=steps, sampling_rate=batch / rows)


@dataclass(frozen=True, kw_only=True)
class SourceFormulas:
    """What the formulas of D5.3 and Rényi accounting say of the same training, for comparison only."""

    advantage: float
    belief: float
    renyi_epsilon: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A private training and what it guarantees, in equivalent statements.

    Parameters
    ----------
    target : str
        What was asked for, in words.
    relation : str
        When two tables are neighbours; every epsilon is under it.
    noise_multiplier : float
        Standard deviation of the noise over the clipping norm.
    epsilon, delta : float
        Differential privacy.
    epsilon_other : float
        Epsilon of the same noise at the same delta under the other relation.
    advantage : float
        Largest TPR - FPR of any membership attack.
    belief : float
        Highest posterior belief, but with probability ``delta``.
    prior : float
        Belief before the release.
    tpr, fpr : float
        Largest true-positive rate at a false-positive rate.
    accuracy : float
        How often the best attacker guesses membership right, at the prior.
    steps, sampling_rate
        The training.
    comparison : SourceFormulas
        Other people's formulas.
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


def make_plan(
    target: Target,
    course: Course,
    *,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
    prior: float = 0.5,
    fpr: float = 0.001,
    grid: float | None = None,
) -> Plan:
    """Return the training with the least noise that meets a target, and all that follows.

    Parameters
    ----------
    target : Target
        What must hold.
    course : Course
        Steps and sampling.
    delta : float
        At which epsilon and the belief are stated, in (0, 1).
    relation : Relation
        When tables are neighbours.
    prior : float
        Belief before the release.
    fpr : float
        Rate at which the true-positive rate is stated.
    grid : float, optional
        Of the privacy loss; as fine as the training needs if not given.
    """
    return plan_and_guarantee(
        target,
        course,
        delta=delta,
        relation=relation,
        prior=prior,
        fpr=fpr,
        grid=grid,
    )[0]


def plan_and_guarantee(
    target: Target,
    course: Course,
    *,
    delta: float,
    relation: Relation,
    prior: float,
    fpr: float,
    grid: float | None = None,
) -> tuple[Plan, TradeOff]:
    """Return the plan of :func:`make_plan` and the curve it was read off."""

    def training(noise: float, under: Relation = relation) -> PrivateTraining:
        return PrivateTraining(
            noise_multiplier=noise,
            sampling_rate=course.sampling_rate,
            steps=course.steps,
            relation=under,
        )

    # What is tried is what will be printed, so what is printed was tried.
    found_at, found = least_noise(
        target, lambda noise: training(rounded_up(noise)), grid=grid
    )
    noise = rounded_up(found_at)
    other = next(r for r in Relation if r != relation)
    plan = describe(
        target.words,
        training(noise),
        found,
        epsilon_other=trade_off(training(noise, other), grid=grid).epsilon(delta),
        delta=delta,
        prior=prior,
        fpr=fpr,
    )
    return plan, found


def describe(
    target: str,
    training: PrivateTraining,
    found: TradeOff,
    *,
    epsilon_other: float,
    delta: float,
    prior: float,
    fpr: float,
) -> Plan:
    """Return every statement about a training from its guarantee."""
    epsilon = found.epsilon(delta)
    plain = training.relation == Relation.ADD_REMOVE
    return Plan(
        target=target,
        relation=training.relation.value,
        noise_multiplier=training.noise_multiplier,
        epsilon=epsilon,
        delta=delta,
        epsilon_other=epsilon_other,
        advantage=found.advantage,
        belief=found.belief(delta, prior=prior),
        prior=prior,
        tpr=found.tpr(fpr),
        fpr=fpr,
        accuracy=found.accuracy(prior=prior),
        steps=training.steps,
        sampling_rate=training.sampling_rate,
        comparison=SourceFormulas(
            advantage=advantage_of_source(epsilon, delta),
            belief=belief_of_source(epsilon),
            renyi_epsilon=renyi_epsilon(training, delta) if plain else None,
        ),
    )


def rounded_up(noise: float) -> float:
    """Return the noise with five leading digits, never less: what is printed is what holds.

    Examples
    --------
    >>> rounded_up(1.23456789)
    1.2346
    """
    scale = 10 ** (4 - math.floor(math.log10(noise)))
    return float(math.ceil(noise * scale) / scale)
