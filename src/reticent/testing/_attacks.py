"""The contract of attacks: catch a product that memorises, spare one that cannot know."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Attack, Challenge, Knowledge, Scores, SealedTags
from reticent.attack.regression import (
    RegressionChallenge,
    RegressionKnowledge,
)
from reticent.evidence import ltu_accuracy
from reticent.pool import Pool, PredictionPool, balanced_masks
from reticent.product import Contents, Internals, OpenedFile, Stage
from reticent.run import stream

__all__ = ["FALSE_ALARM", "PinnedTags", "check_attack", "check_regression_attack"]

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical check

# An attack on one made-up product, given sealed tags and a stream.
_Play = Callable[[SealedTags, np.random.Generator], Scores]


def check_attack(attack: Attack, *, seed: int = 42) -> None:
    """Assert that an attack catches a product that memorises and spares one that cannot know.

    It must also give larger scores to members, give one finite score per record, repeat its scores if it
    gets the same stream, and score a record without its tag.

    Parameters
    ----------
    attack : Attack
        The attack to check.
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
    memory, other = _made_up_files(features, labels.astype(np.float64), classes, tags)
    leaky, quiet = (
        Challenge(
            probabilities=probabilities,
            labels=labels,
            features=features,
            internals=_made_up_internals(probabilities, labels, seed),
            file=file,
        )
        for probabilities, file in (
            (np.where(tags[:, None], sure, vague), memory),
            (vague, other),
        )
    )
    pool = _made_up_pool(labels, classes, rng)

    def play(challenge: Challenge) -> _Play:
        return lambda sealed, rng: attack.score(
            challenge, knowledge=Knowledge(tags=sealed, pool=pool), rng=rng
        )

    _assert_contract(play(leaky), play(quiet), tags, seed=seed)


def check_regression_attack(attack: Attack, *, seed: int = 42) -> None:
    """Assert that an attack on regression models keeps the contract of :func:`check_attack`.

    The quantity has an awkward origin and scale, some of its values are tied, and some errors
    are exactly 0, so that a floor that fits only other numbers is noticed.

    Parameters
    ----------
    attack : Attack
        The attack to check.
    seed : int
        Seed of the made-up products.

    Raises
    ------
    AssertionError
        If the attack breaks the contract.
    """
    rng = stream(seed, f"check_regression_attack/{attack.name}")
    n = 400
    tags = np.arange(2 * n) < n
    features = rng.normal(size=(2 * n, 4))
    # Rounding makes ties, and thousandths around a million make the unit matter.
    level = np.round(features[:, 0] + rng.normal(size=2 * n), 1)
    targets = 1e6 + 1e-3 * level
    pool = _made_up_predictions(targets, level, rng)
    vague = 1e6 + 1e-3 * (features[:, 0] + 0.3 * rng.normal(size=2 * n))
    sure = targets + 0.05 * (vague - targets)
    sure[::7] = targets[::7]

    memory, other = _made_up_files(features, targets, 0, tags)

    def play(predictions: NDArray[np.float64], file: OpenedFile) -> _Play:
        challenge = RegressionChallenge(
            predictions=predictions, targets=targets, features=features, file=file
        )
        return lambda sealed, rng: attack.score(
            challenge, knowledge=RegressionKnowledge(tags=sealed, pool=pool), rng=rng
        )

    leaky = play(np.where(tags, sure, vague), memory)
    _assert_contract(leaky, play(vague, other), tags, seed=seed)


def _assert_contract(
    leaky: _Play, quiet: _Play, tags: NDArray[np.bool_], *, seed: int
) -> None:
    """Assert that a leaky product is caught and a quiet one is spared, for products of any kind."""
    n = len(tags)

    def scored(play: _Play) -> Scores:
        sealed = SealedTags(tags, np.arange(n))
        return play(sealed, stream(seed, "check_attack/score"))

    scores = scored(leaky)
    assert scores.values.shape == (n,), "an attack gives one score per record"
    assert np.isfinite(scores.values).all(), "scores are finite"
    caught = ltu_accuracy(
        scores.values[tags], scores.values[~tags], level=1 - FALSE_ALARM
    )
    assert caught.low > 0.5, (
        f"a memorising product was not caught (or the direction of scores is wrong): {caught}"
    )
    assert np.array_equal(scores.values, scored(leaky).values), (
        "the same stream must give the same scores"
    )

    spared = scored(quiet)
    null = ltu_accuracy(
        spared.values[tags], spared.values[~tags], level=1 - FALSE_ALARM
    )
    assert null.low <= 0.5 <= null.high, (
        f"a product that knows nothing was caught: {null}"
    )
    # Flipping the tags of one unit must not change the scores of its records.
    units = np.arange(n)
    units[-1] = (
        0  # two records of one unit are sealed together, in one fold, in both runs
    )
    same = tags.copy()
    same[-1] = same[0]
    flipped = same.copy()
    flipped[[0, -1]] = ~same[0]
    first, second = (
        quiet(PinnedTags(version, units), stream(seed, "check_attack/tag"))
        for version in (same, flipped)
    )
    assert np.array_equal(first.values[[0, -1]], second.values[[0, -1]]), (
        "a record's own tag reached the attack that scored it"
    )


class PinnedTags(SealedTags):
    """Tags whose folds depend only on the unit of a record, so that two versions of the tags can be compared.

    An attack that is cross-fitted gives a record the same score whatever its own tag is.

    Parameters
    ----------
    tags : array of bool, shape (n,)
        Whether each record is a member.
    units : array of int, shape (n,)
        The person of each record.
    """

    def __init__(self, tags: NDArray[np.bool_], units: NDArray[np.int64]) -> None:
        super().__init__(tags, units)
        self._pinned, self._units = tags, units

    def folds(self, count, *, rng):  # type: ignore[no-untyped-def]
        """Yield records to learn from, their tags, and records to judge."""
        rng.random()  # so that the stream of the attack moves on, as with real folds
        fold = self._units % count
        for k in range(count):
            learn = np.flatnonzero(fold != k)
            yield learn, self._pinned[learn], np.flatnonzero(fold == k)


def _made_up_pool(
    labels: NDArray[np.int64], classes: int, rng: np.random.Generator
) -> Pool:
    """Return models, each of which is sure of its members and vague about other records."""
    masks = balanced_masks(16, np.arange(len(labels)), rng=rng)
    vague = rng.dirichlet(np.full(classes, 2.0), size=masks.shape)
    sure = 0.05 * vague + 0.95 * np.eye(classes)[labels]
    return Pool(
        masks=masks,
        probabilities=np.where(masks[..., None], sure, vague).astype(np.float32),
        labels=labels,
    )


def _made_up_predictions(
    targets: NDArray[np.float64], level: NDArray[np.float64], rng: np.random.Generator
) -> PredictionPool:
    """Return models, each of which predicts its members well, some exactly, and other records poorly."""
    masks = balanced_masks(8, np.arange(len(targets)), rng=rng)
    vague = targets + 1e-3 * (0.5 * rng.normal(size=masks.shape) - 0.5 * level)
    sure = targets + 0.05 * (vague - targets)
    sure[:, ::7] = targets[::7]
    return PredictionPool(
        masks=masks, predictions=np.where(masks, sure, vague), targets=targets
    )


def _made_up_files(
    features: NDArray[np.float64],
    target: NDArray[np.float64],
    classes: int,
    tags: NDArray[np.bool_],
) -> tuple[OpenedFile, OpenedFile]:
    """Return a file that keeps all members, and one that keeps every other record, member or not."""
    n = len(features)
    file = OpenedFile(
        contents=Contents(),
        stages=(Stage(name="records", matrix=features),),
        words=(),
        target=target,
        classes=classes,
        people=np.arange(n),
    )
    return file.memorised(tags), file.memorised(np.arange(n) % 2 == 0)


def _made_up_internals(
    probabilities: NDArray[np.float64], labels: NDArray[np.int64], seed: int
) -> Internals:
    """Return internals that fit these answers: gradients of two layers, and activations that know nothing."""
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
