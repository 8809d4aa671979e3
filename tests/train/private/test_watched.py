"""What is kept of a watched training is what the adversary of Algorithm 1 needs, no more and no less."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from reticent.attack import log_odds
from reticent.errors import InvalidInput
from reticent.product import Departure
from reticent.train.engine import stacked_parameters
from reticent.train.private.clipping import Clip, Tanh
from reticent.train.private.randomness import normal_filler
from reticent.train.private.watched import (
    Neighbours,
    network_shares_at_start,
    watch_modules,
    watch_networks,
)
from reticent.train.recipes import SGD, PrivateModule, PrivateNetwork
from reticent.train.stacking import View

ALARM = 1e-6  # false alarms of each statistical test
N, D, C = 30, 5, 3


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def data(seed=0, records=N):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(records, D, generator=generator)
    X[-2:] *= 8  # far from the others: always clipped
    y = torch.randint(C, (records,), generator=generator)
    return X, torch.nn.functional.one_hot(y, C).float()


def recipe(**changes):
    given = {
        "hidden": (),
        "epochs": 6,
        "batch": N - 1,
        "noise": "seeded",
        "noise_multiplier": 3.0,
        "clipping": Clip(norm=0.2),
        "optimiser": SGD(rate=0.1),
        "rows": N - 1,
    }
    return PrivateNetwork(**{**given, **changes})


REMOVE = Neighbours(common=np.arange(N - 2), own=N - 2)
REPLACE = Neighbours(common=np.arange(N - 2), own=N - 2, other=N - 1)


@pytest.mark.parametrize("pair", [REMOVE, REPLACE], ids=["remove", "replace"])
def test_beliefs_follow_algorithm_1_written_out_naively(pair):
    """Gradients one by one, log-densities of whole normal vectors, no algebra in between."""
    X, Y = data()
    made, seed = recipe(), 7
    trace, truth = watch_networks(View(inputs=X, targets=Y), pair, made, [seed])
    (weights,), (biases,) = stacked_parameters(
        [D, C], [torch.Generator().manual_seed(seed)]
    )
    W, b = weights[0].double(), biases[0, :, 0].double()
    fill, odds, found = normal_filler(seed), 0.0, []
    deviation = 3.0 * 0.2
    for _ in range(trace.steps):

        def clipped(row, W=W, b=b):
            delta = torch.softmax(W @ X[row].double() + b, 0) - Y[row].double()
            g = torch.cat([torch.outer(delta, X[row].double()).flatten(), delta])
            return g * min(1.0, 0.2 / float(g.norm()))

        common = sum(clipped(row) for row in pair.common)
        one = common + clipped(pair.own)
        two = common + (clipped(pair.other) if pair.other is not None else 0)
        noise = torch.empty(one.numel(), dtype=torch.float32)
        fill(noise)
        shown = (one if truth.first[0] else two) + deviation * noise.double()
        odds += stats.norm.logpdf(shown.numpy(), one.numpy(), deviation).sum()
        odds -= stats.norm.logpdf(shown.numpy(), two.numpy(), deviation).sum()
        found.append(odds)
        step = shown / (N - 1) * 0.1
        W, b = W - step[: D * C].view(C, D), b - step[D * C :]
    np.testing.assert_allclose(log_odds(trace)[0], found, atol=2e-3)


def test_the_two_tables_lie_no_farther_apart_than_the_bound():
    X, Y = data()
    trace, _ = watch_networks(View(inputs=X, targets=Y), REMOVE, recipe(), range(5))
    assert trace.distance.max() <= 0.2
    trace, _ = watch_networks(View(inputs=X, targets=Y), REPLACE, recipe(), range(5))
    assert 0.2 < trace.distance.max() <= 0.4


def test_a_run_does_not_depend_on_the_runs_beside_it():
    X, Y = data()
    together, _ = watch_networks(
        View(inputs=X, targets=Y), REMOVE, recipe(batch=10), range(4)
    )
    alone, _ = watch_networks(View(inputs=X, targets=Y), REMOVE, recipe(batch=10), [2])
    np.testing.assert_allclose(
        together.first.inner[2], alone.first.inner[0], rtol=1e-4, atol=1e-6
    )


def test_the_record_takes_part_as_stated(seed):
    X, Y = data()
    sampled = recipe(batch=10, epochs=20)
    trace, truth = watch_networks(
        View(inputs=X, targets=Y), REMOVE, sampled, range(seed, seed + 100)
    )
    low, high = stats.binom.ppf([ALARM / 2, 1 - ALARM / 2], truth.taken.size, 10 / 29)
    assert low <= truth.taken.sum() <= high
    assert trace.rate == pytest.approx(10 / 29)
    _, shuffled = watch_networks(
        View(inputs=X, targets=Y),
        REMOVE,
        sampled,
        range(20),
        departure=Departure(shuffled=True),
    )
    epoch = math.ceil(29 / 10)
    whole = shuffled.taken[:, : shuffled.taken.shape[1] // epoch * epoch]
    assert (whole.reshape(20, -1, epoch).sum(axis=2) == 1).all()


@pytest.mark.parametrize("batch", [N - 1, 10], ids=["full batch", "Poisson"])
def test_final_beliefs_come_true_as_often_as_they_say(batch, seed):
    """Among final beliefs near .8 about 80 % are right; false alarm 1e-6."""
    X, Y = data()
    made = recipe(batch=batch, noise_multiplier=2.0 if batch > 20 else 1.2)
    runs = range(10_000 * seed, 10_000 * seed + 4_000)
    trace, truth = watch_networks(View(inputs=X, targets=Y), REMOVE, made, runs)
    final = log_odds(trace)[:, -1]
    assert misses(final, truth.first) <= 1
    # The twin: an adversary that takes the noise for smaller than it is is too sure of itself.
    assert misses(3 * final, truth.first) > 1


def misses(final, first):
    """Return how far the share of true beliefs near .8 lies outside what chance allows, 1 at its edge."""
    belief = expit(np.where(final > 0, final, -final))
    right = (final > 0) == first
    near = abs(belief - 0.8) < 0.05
    assert near.sum() > 100
    expected, spread = (
        belief[near].sum(),
        math.sqrt((belief[near] * (1 - belief[near])).sum()),
    )
    return abs(right[near].sum() - expected) / (spread * stats.norm.isf(ALARM / 2) + 1)


@pytest.mark.parametrize("noise", [2.0, 5.0])
def test_the_advantage_is_the_exact_one(noise, seed):
    """For a record that is always clipped: 2 Phi(sqrt(k) / (2 z)) - 1; false alarm 1e-6."""
    X, Y = data()
    made = recipe(noise_multiplier=noise)
    runs = range(10_000 * seed, 10_000 * seed + 2_000)
    trace, truth = watch_networks(View(inputs=X, targets=Y), REMOVE, made, runs)
    right = int(((log_odds(trace)[:, -1] > 0) == truth.first).sum())

    def plausible(mu):
        ends = stats.binom.ppf(
            [ALARM / 2, 1 - ALARM / 2], 2_000, stats.norm.cdf(mu / 2)
        )
        return ends[0] <= right <= ends[1]

    mu = math.sqrt(trace.steps) / noise
    assert plausible(mu)
    assert not plausible(2 * mu)  # the twin: the sensitivity of replace-one


def test_modules_are_watched_like_networks():
    """The same linear model as a module: the same tables, the same numbers."""
    X, Y = data()

    def make():
        return torch.nn.Linear(D, C)

    private = PrivateModule(
        "nets:make",
        epochs=6,
        batch=N - 1,
        noise="seeded",
        noise_multiplier=3.0,
        clipping=Clip(norm=0.2),
        optimiser=SGD(rate=0.0),
        rows=N - 1,
    )
    trace, truth = watch_modules(
        make, View(inputs=X, targets=Y), REMOVE, private, range(100)
    )
    assert trace.size == (D + 1) * C
    assert trace.distance.max() <= 0.2
    # At rate 0 nothing moves: every step has the same share, and noise is all that differs.
    assert np.ptp(trace.distance, axis=1).max() < 1e-6
    noise = truth.noise(trace)
    assert stats.kstest(noise.ravel(), "norm").pvalue > ALARM
    assert stats.kstest(0.5 * noise.ravel(), "norm").pvalue < ALARM


def test_local_noise_follows_the_distance_or_the_longest_share():
    X, Y = data()
    trace, _ = watch_networks(
        View(inputs=X, targets=Y),
        REPLACE,
        recipe(),
        range(4),
        departure=Departure(local="pair"),
    )
    np.testing.assert_allclose(trace.first.deviation, 3.0 * trace.distance, rtol=1e-5)
    np.testing.assert_allclose(trace.second.deviation, trace.first.deviation)
    free = recipe(clipping=Clip(norm=100.0))
    trace, _ = watch_networks(
        View(inputs=X, targets=Y),
        REMOVE,
        free,
        range(4),
        departure=Departure(local="own"),
    )
    # Without the record that lies far from the others the longest gradient is shorter.
    assert (trace.second.deviation < 0.9 * trace.first.deviation).any()
    with pytest.raises(InvalidInput, match="Tanh is not known"):
        watch_networks(
            View(inputs=X, targets=Y),
            REMOVE,
            recipe(clipping=Tanh()),
            [0],
            departure=Departure(local="own"),
        )
    with pytest.raises(InvalidInput, match="'pair' or 'own'"):
        watch_networks(
            View(inputs=X, targets=Y),
            REMOVE,
            recipe(),
            [0],
            departure=Departure(local=True),
        )


def test_shares_at_the_start_are_the_treated_gradients():
    X, Y = data()
    shares = network_shares_at_start(
        View(inputs=X, targets=Y), [3, N - 2], recipe(), seed=0
    )
    assert shares.shape == (2, (D + 1) * C)
    assert float(shares[1].norm()) == pytest.approx(0.2, rel=1e-3)


def test_tables_that_do_not_differ_in_one_record_are_refused():
    with pytest.raises(InvalidInput, match="one of them is in both"):
        Neighbours(common=np.arange(5), own=3)
    with pytest.raises(InvalidInput, match="one of them is in both"):
        Neighbours(common=np.arange(5), own=7, other=7)
    with pytest.raises(InvalidInput, match="share no record"):
        Neighbours(common=np.arange(0), own=3)
