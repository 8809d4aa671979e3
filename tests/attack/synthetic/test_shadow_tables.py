"""The attack with shadow generators: what centring gains, and that it leans nowhere where nothing leaks."""

import numpy as np
import pytest
from scipy.stats import norm

from reticent.attack import Knowledge, SealedTags
from reticent.attack.synthetic import ShadowTable, SyntheticChallenge
from reticent.errors import InvalidInput
from reticent.evidence import pair_wins
from reticent.pool import TablePool, balanced_masks
from reticent.run import stream

FALSE_ALARM = 1e-6
RECORDS, COLUMNS = 400, 4


def world(rng, *, tables, gain, used=True):
    """Return a pool and a target whose comparisons are a record's own level, its gain if it is used, and noise."""
    level = 3 * rng.normal(size=(RECORDS, COLUMNS))
    own = gain * rng.exponential(size=(RECORDS, 1))
    masks = balanced_masks(tables, np.arange(RECORDS), rng=rng)

    def made(mask):
        noise = rng.normal(size=(RECORDS, COLUMNS))
        return level + own * mask[:, None] + noise

    pool = TablePool(
        masks=masks, comparisons=np.stack([made(m) for m in masks]).astype(np.float32)
    )
    tags = rng.permutation(RECORDS) % 2 == 0
    challenge = SyntheticChallenge(
        comparisons=made(tags & used), columns=tuple("abcd"), tables=None
    )
    return pool, challenge, tags


def accuracy(pool, challenge, tags, rng):
    knowledge = Knowledge(tags=SealedTags(tags, np.arange(RECORDS)), pool=pool)
    scores = ShadowTable().score(challenge, knowledge=knowledge, rng=rng).values
    return pair_wins(scores[tags], scores[~tags]).accuracy


def test_a_record_is_compared_with_itself(seed):
    """Levels differ three times as much as noise, so that a comparison by itself says little, and its centred form much."""
    rng = stream(seed, "test/shadow tables")
    pool, challenge, tags = world(rng, tables=8, gain=1.0)
    alone = pair_wins(
        challenge.comparisons[tags, 0], challenge.comparisons[~tags, 0]
    ).accuracy
    together = accuracy(pool, challenge, tags, rng)
    # Over 20 seeds .81 to .89 against .54 to .63; the standard error of each is at most .03.
    assert together > 0.7
    assert together > alone + 0.05


@pytest.mark.parametrize("tables", [2, 4, 8])
def test_it_leans_nowhere_where_nothing_leaks(seed, tables):
    """Tags have no part in the score, so its accuracy is one half on average, whatever the shadows learned."""
    rng = stream(seed, f"test/shadow null {tables}")
    runs = 60
    found = []
    for _ in range(runs):
        pool, challenge, _ = world(rng, tables=tables, gain=0.5, used=False)
        # A table that none of them was used for, and people who are called members at random.
        tags = rng.permutation(RECORDS) % 2 == 0
        found.append(accuracy(pool, challenge, tags, rng))
    # The standard deviation of one accuracy of 200 against 200 is .029.
    deviation = np.sqrt((RECORDS + 1) / (12 * (RECORDS / 2) ** 2) / runs)
    assert abs(np.mean(found) - 0.5) < norm.isf(FALSE_ALARM / 2) * deviation


def test_shadows_that_shared_the_targets_count_would_lean(seed):
    """The twin: if the target's complement stayed among its shadows, the number of tables a record is in would give it away."""
    rng = stream(seed, "test/shadow twin")
    pool, _, _ = world(rng, tables=8, gain=1.0)
    rest = np.arange(8) != 0
    inside = pool.masks[rest].sum(axis=0)
    tags = pool.masks[0]
    assert inside[tags].mean() == inside[~tags].mean() - 1
    _, shadows = next(iter(pool.games()))
    kept = shadows.masks.sum(axis=0)
    assert (kept == kept[0]).all()


def test_pools_that_do_not_fit_are_refused():
    masks = balanced_masks(4, np.arange(10), rng=np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="do not fit together"):
        TablePool(masks=masks, comparisons=np.zeros((4, 9, 2), dtype=np.float32))
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        TablePool(masks=masks, comparisons=np.full((4, 10, 2), np.nan, np.float32))
    pool = TablePool(masks=masks, comparisons=np.zeros((4, 10, 2), dtype=np.float32))
    with pytest.raises(InvalidInput, match="answers no question"):
        pool.errors()
