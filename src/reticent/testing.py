"""Contracts that every trainer, attack and mechanism must pass; public, so that others can run them.

Statistical checks state their false-alarm rate: correct code fails them once in a million.
"""

import dataclasses

import numpy as np
from numpy.typing import NDArray

from reticent.account import Composition, Mechanism, Relation, TradeOff, trade_off
from reticent.attack import Attack, Challenge, Knowledge, Scores, SealedTags
from reticent.data import Table
from reticent.evidence import ltu_accuracy
from reticent.pool import Pool, balanced_masks
from reticent.product import Internals, Trainer
from reticent.run import stream

__all__ = ["FALSE_ALARM", "check_attack", "check_mechanism", "check_trainer"]

FALSE_ALARM = 1e-6
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def check_attack(attack: Attack, *, seed: int = 42) -> None:
    """Assert that an attack catches a product that memorises and spares one that cannot know.

    Also: larger scores mean members, one finite score a record, the same stream gives the
    same scores, and a record's own tag does not reach its score.

    Parameters
    ----------
    attack : Attack
        What to check.
    seed : int
        Seed of the made-up products.

    Raises
    ------
    AssertionError
        If the attack breaks the contract.
    """
    rng = stream(seed, f"check_attack/{attack.name}")
    n, classes = 400, 3
    tags = np.arange(2 * n) < n
    labels = rng.integers(classes, size=2 * n)
    vague = rng.dirichlet(np.full(classes, 2.0), size=2 * n)
    sure = 0.05 * vague + 0.95 * np.eye(classes)[labels]
    features = rng.normal(size=(2 * n, 4))
    leaky, quiet = (
        Challenge(
            probabilities=probabilities,
            labels=labels,
            features=features,
            internals=_made_up_internals(probabilities, labels, seed),
        )
        for probabilities in (np.where(tags[:, None], sure, vague), vague)
    )
    pool = _made_up_pool(labels, classes, rng)

    scores = _score(attack, leaky, tags, pool, seed)
    assert scores.values.shape == (2 * n,), "an attack gives one score per record"
    assert np.isfinite(scores.values).all(), "scores are finite"
    caught = ltu_accuracy(
        scores.values[tags], scores.values[~tags], level=1 - FALSE_ALARM
    )
    assert caught.low > 0.5, (
        f"a memorising product was not caught (or the direction of scores is wrong): {caught}"
    )
    again = _score(attack, leaky, tags, pool, seed)
    assert np.array_equal(scores.values, again.values), (
        "the same stream, the same scores"
    )

    spared = _score(attack, quiet, tags, pool, seed)
    null = ltu_accuracy(
        spared.values[tags], spared.values[~tags], level=1 - FALSE_ALARM
    )
    assert null.low <= 0.5 <= null.high, (
        f"a product that knows nothing was caught: {null}"
    )
    # Turning one record's tag round must leave its own score as it is.
    units = np.arange(2 * n)
    units[-1] = 0  # the two are one unit: sealed together, in one fold, in both runs
    same = tags.copy()
    same[-1] = same[0]
    flipped = same.copy()
    flipped[[0, -1]] = ~same[0]
    first = attack.score(
        quiet,
        knowledge=Knowledge(tags=_PinnedTags(same, units), pool=pool),
        rng=stream(seed, "check_attack/tag"),
    )
    second = attack.score(
        quiet,
        knowledge=Knowledge(tags=_PinnedTags(flipped, units), pool=pool),
        rng=stream(seed, "check_attack/tag"),
    )
    assert np.array_equal(first.values[[0, -1]], second.values[[0, -1]]), (
        "a record's own tag reached the attack that scored it"
    )


def check_trainer(trainer: Trainer, table: Table, *, seed: int = 42) -> None:
    """Assert that a trainer gives probabilities, repeats itself, and leaves its table alone.

    Parameters
    ----------
    trainer : Trainer
        What to check.
    table : Table
        Records it can learn from.
    seed : int
        Training seed.

    Raises
    ------
    AssertionError
        If the trainer breaks the contract.
    """
    before = table.features.copy(deep=True)
    first = trainer.train(table, seed=seed)
    second = trainer.train(table, seed=seed)
    assert before.equals(table.features), "a trainer must not change its table"
    p = first.predict_proba(table.features)
    assert p.shape == (len(table), len(table.classes)), "one column a class"
    assert np.isfinite(p).all(), "probabilities are finite"
    assert ((p >= 0) & (p <= 1)).all(), "probabilities lie between 0 and 1"
    assert np.allclose(p, second.predict_proba(table.features)), (
        "the same table and seed must give the same product"
    )
    accuracy = float(np.mean(p.argmax(axis=1) == table.target))
    majority = float(np.bincount(table.target).max() / len(table))
    assert accuracy > majority, "a trainer must learn something from its own records"
    assert trainer.recipe, "a trainer says how it can be made again"


def check_mechanism(mechanism: Mechanism, *, grid: float = 1e-3) -> None:
    """Assert that a mechanism is a description, and that what it says of its privacy can be true.

    It must be a frozen dataclass with a relation; its loss must be the same at each call and be one of two
    distributions, with delta falling in epsilon, in both directions; a finer grid may not guarantee less, nor a coarser
    one more; and several uses may neither protect more than one nor less than composition allows.

    Parameters
    ----------
    mechanism : Mechanism
        What to check.
    grid : float
        Coarsest step of the privacy loss at which it is looked at.

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
    found = trade_off(mechanism, grid=grid)
    again = trade_off(mechanism, grid=grid)
    deltas = _deltas(found)
    assert np.array_equal(deltas, _deltas(again)), "a description draws nothing"
    _check_distributions(found)
    assert ((deltas >= 0) & (deltas <= 1)).all(), f"delta is a probability: {deltas}"
    assert (np.diff(deltas) <= 1e-12).all(), f"delta falls in epsilon: {deltas}"
    _check_directions(found)

    fine = trade_off(mechanism, grid=grid / 4)
    assert (_deltas(fine) <= deltas + 1e-9).all(), (
        f"a coarse grid must lean to the safe side, but guaranteed more than a fine one: {deltas} and {_deltas(fine)}"
    )
    for delta in (1e-2, 1e-5):
        assert fine.epsilon(delta) <= found.epsilon(delta) + 1e-6, (
            f"a finer grid gave a larger epsilon at delta {delta}"
        )

    double = trade_off(Composition(parts=((mechanism, 2),)), grid=grid)
    # Composed by convolution, with an error of rounding and a cut tail.
    assert (_deltas(double) >= deltas - 1e-9).all(), "two uses protected more than one"
    at_most = [2 * found.delta(e) for e in EPSILONS]
    apart = [double.delta(2 * e) for e in EPSILONS]
    assert all(d <= most + 1e-9 for d, most in zip(apart, at_most, strict=True)), (
        f"two uses cost more than twice the epsilon and the delta of one: {apart} above {at_most}"
    )


class _PinnedTags(SealedTags):
    """Folds that depend on the position of a record alone, so that tags can be compared."""

    def __init__(self, tags: NDArray[np.bool_], units: NDArray[np.int64]) -> None:
        super().__init__(tags, units)
        self._pinned, self._units = tags, units

    def folds(self, count, *, rng):  # type: ignore[no-untyped-def]
        rng.random()
        fold = self._units % count
        for k in range(count):
            learn = np.flatnonzero(fold != k)
            yield learn, self._pinned[learn], np.flatnonzero(fold == k)


def _made_up_pool(
    labels: NDArray[np.int64], classes: int, rng: np.random.Generator
) -> Pool:
    """Return models of which each is sure of its own members and vague about others."""
    masks = balanced_masks(16, np.arange(len(labels)), rng=rng)
    vague = rng.dirichlet(np.full(classes, 2.0), size=masks.shape)
    sure = 0.05 * vague + 0.95 * np.eye(classes)[labels]
    return Pool(
        masks=masks,
        probabilities=np.where(masks[..., None], sure, vague).astype(np.float32),
        labels=labels,
    )


def _made_up_internals(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], seed: int
) -> Internals:
    """Return what is inside products that answer so: two layers, and activations that know nothing."""
    rng = stream(seed, "check_attack/internals")
    rows = np.arange(len(labels))
    delta = probabilities.copy()
    delta[rows, labels] -= 1.0
    activations = rng.normal(size=(len(labels), 6)).astype(np.float32)
    lengths = np.linalg.norm(delta, axis=1)[:, None] * np.column_stack(
        [rng.lognormal(0, 0.2, len(labels)), np.linalg.norm(activations, axis=1)]
    )
    return Internals(
        losses=-np.log(probabilities[rows, labels]),
        gradient_norms=lengths,
        layers=("hidden 1", "output"),
        activations=activations,
    )


def _score(
    attack: Attack,
    challenge: Challenge,
    tags: NDArray[np.bool_],
    pool: Pool,
    seed: int,
) -> Scores:
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(len(tags))), pool=pool)
    return attack.score(
        challenge, knowledge=knowledge, rng=stream(seed, "check_attack/score")
    )


def _deltas(found: TradeOff) -> NDArray[np.float64]:
    return np.array([found.delta(epsilon) for epsilon in EPSILONS])


def _check_distributions(found: TradeOff) -> None:
    for side in found.sides:
        first = float(side.first.sum()) + side.certain
        assert abs(first - 1) < 1e-6, f"probabilities of the loss add up to {first}"
        # Very negative losses are left out: there, e to their minus is large and blows up rounding.
        second = float(side.first @ np.exp(np.minimum(-side.losses, 5.0)))
        assert second < 1 + 1e-4, (
            f"e to the minus loss has the mean {second}, above 1: it is no log-likelihood ratio, has the wrong sign or was rounded down"
        )


def _check_directions(found: TradeOff) -> None:
    for side in found.sides:
        alone = dataclasses.replace(found, sides=(side,))
        for epsilon in EPSILONS:
            # The same two distributions, with the other one first.
            turned = 1 - np.exp(epsilon) * (1 - alone.delta(-epsilon))
            # Losses were rounded up by at most a cell, which the turn may count again.
            slack = np.expm1(2 * found.grid) * np.exp(epsilon)
            assert turned <= found.delta(epsilon) + slack, (
                f"at epsilon {epsilon} delta is {found.delta(epsilon):.4g}, but {turned:.4g} in the other direction; give the loss of both"
            )
