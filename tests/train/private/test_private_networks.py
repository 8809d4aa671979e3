"""Private training keeps what its guarantee rests on: who takes part, what is bounded, what is noised."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from per_record import TREATMENTS, close, treated

import reticent.train.private.networks as networks_module
from reticent.account import Relation
from reticent.errors import InvalidInput
from reticent.train.engine import initial_parameters
from reticent.train.private.clipping import Clip, Tanh, sensitivity
from reticent.train.private.networks import train_privately
from reticent.train.private.randomness import (
    Batch,
    SecretRandomness,
    SeededRandomness,
    margin,
)
from reticent.train.private.sums import Sum
from reticent.train.recipes import SGD, Adam, PrivateNetwork
from reticent.train.stacking import Cohort, Descent

N, D, C, HIDDEN = 40, 6, 3, (5,)
ALARM = 1e-6  # false alarms of each statistical test


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def data(seed, records=N):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(records, D, generator=generator)
    y = torch.randint(C, (records,), generator=generator)
    return X, torch.nn.functional.one_hot(y, C).float()


def everyone(records=N, models=1):
    return np.ones((models, records), dtype=bool)


def recipe_with(**changes):
    given = {"hidden": HIDDEN, "epochs": 4, "batch": 10, "noise": "seeded"}
    return PrivateNetwork(**{**given, **changes})


class Told:
    """Randomness under the test's control: coins of records, and what is released."""

    secret = False

    def __init__(self, coins, outputs=None, noise=0.0):
        self.coins, self.outputs, self.noise = coins, outputs, noise
        self.queries, self.released = [], []

    def batches(self, members, rates, *, steps, expected):
        for coin in self.coins[:steps]:
            rows = members[0][torch.from_numpy(coin[members[0].numpy()])]
            index = torch.cat([rows, members[0][:1]])[None]
            yield Batch(
                index=index, present=(torch.arange(len(rows) + 1) < len(rows))[None]
            )

    def add_to(self, parameters, keeps, *, deviation):
        return False

    def release(self, sums, *, bound, noise_multiplier):
        query = [s.formed().clone() for s in sums]
        self.queries.append(torch.cat([q.flatten() for q in query]).double())
        if self.outputs is not None:
            out = [o.clone() for o in self.outputs[len(self.released)]]
        else:
            generator = torch.Generator().manual_seed(len(self.released))
            spread = self.noise * bound * noise_multiplier
            out = [
                q + spread * torch.randn(q.shape, generator=generator) for q in query
            ]
        self.released.append([o.clone() for o in out])
        return out


class Nobody(SeededRandomness):
    """Steps in which nobody takes part."""

    def batches(self, members, rates, *, steps, expected):
        for _ in range(steps):
            index = torch.stack([own[:1] for own in members])
            yield Batch(index=index, present=torch.zeros_like(index, dtype=torch.bool))


def replayed(clipping, X, y, neighbours, seed, steps=6):
    """Return the queries of D and of its neighbour while both see the same releases."""
    rng = np.random.default_rng(seed)
    coins = rng.random((steps, len(X))) < 0.5
    coins[:, -1] = True  # the record that differs takes part whenever it can
    recipe = recipe_with(clipping=clipping, rows=N, batch=20, epochs=steps // 2)
    first = Told(coins, noise=1.0)
    mask, other = neighbours
    train_privately(
        Cohort(inputs=X, targets=y, masks=mask[None], seeds=[1]),
        recipe,
        randomness=first,
    )
    X_other, y_other, mask_other = other
    second = Told(coins, outputs=first.released)
    train_privately(
        Cohort(inputs=X_other, targets=y_other, masks=mask_other[None], seeds=[1]),
        recipe,
        randomness=second,
    )
    assert len(first.queries) == len(second.queries) == steps
    return first.queries, second.queries


CRAFTED = {
    "ordinary": lambda x: x,
    "long": lambda x: x * 1e4,
    "enormous": lambda x: x * 1e20,
    "nowhere": lambda x: x * math.nan,
    "infinite": lambda x: x * math.inf,
    "zero": lambda x: x * 0,
}


@pytest.mark.parametrize("crafted", CRAFTED)
@pytest.mark.parametrize("name", TREATMENTS)
def test_replay_of_neighbours_differs_by_the_sensitivity_at_most(name, crafted, seed):
    clipping = TREATMENTS[name]
    X, y = data(seed)
    X[-1] = CRAFTED[crafted](torch.ones(D))
    sizes = recipe_with().sizes(D, C)
    present, absent = everyone()[0], everyone()[0]
    absent[-1] = False
    for relation, other in (
        (Relation.ADD_REMOVE, (X, y, absent)),
        (Relation.REPLACE, (*_replaced(X, y), present)),
    ):
        first, second = replayed(clipping, X, y, (present, other), seed)
        declared = sensitivity(clipping, sizes, relation)
        for one, two in zip(first, second, strict=True):
            assert torch.isfinite(one).all()
            assert float((one - two).norm()) <= declared


def _replaced(X, y):
    X_other, y_other = X.clone(), y.roll(1, 1)
    X_other[-1] = -7.0
    y_other[:-1] = y[:-1]
    return X_other, y_other


def test_replay_finds_a_sensitivity_that_is_declared_too_small(seed):
    """The twin: the tanh filter accounted as in its source, as if a record moved the sum by c."""
    X, y = data(seed)
    X[-1] = 5.0
    present, absent = everyone()[0], everyone()[0]
    absent[-1] = False
    clipping = Tanh(scale=0.3, width=0.2)
    moved = []
    for label in range(C):  # one of them the network does not expect
        y[-1] = torch.eye(C)[label]
        first, second = replayed(clipping, X, y, (present, (X, y, absent)), seed)
        moved += [
            float((one - two).norm()) for one, two in zip(first, second, strict=True)
        ]
    assert max(moved) > 2 * clipping.scale


@pytest.fixture(params=["by feature", "by record"])
def layout(request, monkeypatch):
    """Both ways in which activations are stored: that of small networks, and that of large ones."""
    if request.param == "by record":
        monkeypatch.setattr(networks_module, "LARGE", 0)
        monkeypatch.setattr(networks_module, "FEW_RECORDS", 10**9)


@pytest.mark.usefixtures("layout")
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("name", TREATMENTS)
def test_step_equals_one_gradient_a_record(name, activation, seed):
    X, y = data(seed)
    recipe = recipe_with(
        clipping=TREATMENTS[name], batch=N, epochs=1, activation=activation
    )
    told = Told(np.ones((1, N), dtype=bool))
    train_privately(
        Cohort(inputs=X, targets=y, masks=everyone(), seeds=[3]),
        recipe,
        randomness=told,
    )
    weights, biases = initial_parameters(
        [D, *HIDDEN, C], torch.Generator().manual_seed(3)
    )
    parameters = [p.clone().requires_grad_() for p in (*weights, *biases)]
    bend = torch.relu if activation == "relu" else torch.tanh
    total = 0.0
    for record, target in zip(X, y, strict=True):
        hidden = bend(parameters[0] @ record[:, None] + parameters[2])
        logits = (parameters[1] @ hidden + parameters[3]).T
        loss = torch.nn.functional.cross_entropy(logits, target[None])
        w0, w1, b0, b1 = torch.autograd.grad(loss, parameters)
        layers = [torch.cat([w0.flatten(), b0.flatten()])]
        layers.append(torch.cat([w1.flatten(), b1.flatten()]))
        total = total + treated(TREATMENTS[name], layers)
    assert close(told.queries[0] / (1 - margin(N)), total)


@pytest.mark.parametrize(
    "optimiser", [SGD(rate=0.3), SGD(rate=0.1, momentum=0.9), Adam(rate=0.01)]
)
def test_what_is_released_is_followed_over_a_constant(optimiser, seed):
    """Whatever the size of the batch, the denominator is the public one."""
    X, y = data(seed)
    recipe = recipe_with(optimiser=optimiser, l2=0.1, rows=N)
    coins = np.random.default_rng(seed).random((16, N)) < 0.25
    told = Told(coins, noise=0.3)
    made = train_privately(
        Cohort(inputs=X, targets=y, masks=everyone(), seeds=[3]),
        recipe,
        randomness=told,
    )
    weights, biases = initial_parameters(
        [D, *HIDDEN, C], torch.Generator().manual_seed(3)
    )
    parameters = [
        p[None].clone() for pair in zip(weights, biases, strict=True) for p in pair
    ]
    descent = Descent(parameters, optimiser)
    for released in told.released:
        descent.begin(None)
        for slot, total in enumerate(released):
            gradient = total / 10
            if slot % 2 == 0:
                gradient = gradient + 0.1 * parameters[slot]
            descent.follow(slot, gradient, None)
    for layer in range(2):
        assert torch.allclose(made.weights[layer], parameters[2 * layer], atol=1e-5)
        assert torch.allclose(made.biases[layer], parameters[2 * layer + 1], atol=1e-5)


def test_an_empty_batch_is_a_step_with_noise():
    X, y = data(0)
    coins = np.zeros((4, N), dtype=bool)
    told = Told(coins, noise=1.0)
    recipe = recipe_with(epochs=1)
    made = train_privately(
        Cohort(inputs=X, targets=y, masks=everyone(), seeds=[3]),
        recipe,
        randomness=told,
    )
    assert len(told.queries) == 4
    assert all(float(query.abs().max()) == 0 for query in told.queries)
    start, _ = initial_parameters([D, *HIDDEN, C], torch.Generator().manual_seed(3))
    assert float((made.weights[0][0] - start[0]).abs().max()) > 0


@pytest.mark.usefixtures("layout")
def test_a_model_does_not_depend_on_those_trained_beside_it(seed):
    X, y = data(seed)
    rng = np.random.default_rng(seed)
    masks = rng.random((4, N)) < 0.6
    recipe = recipe_with(batch=8)
    together = train_privately(
        Cohort(inputs=X, targets=y, masks=masks, seeds=[1, 2, 3, 4]), recipe
    )
    for k in range(4):
        alone = train_privately(
            Cohort(inputs=X, targets=y, masks=masks[k : k + 1], seeds=[k + 1]), recipe
        )
        assert torch.allclose(together.of(k).weights[0], alone.weights[0], atol=1e-5)
    again = train_privately(
        Cohort(inputs=X, targets=y, masks=masks, seeds=[1, 2, 3, 4]), recipe
    )
    assert torch.equal(together.weights[0], again.weights[0])


class Released(SeededRandomness):
    """The same noise, added to sums that are released before parameters follow them."""

    def add_to(self, parameters, keeps, *, deviation):
        return False


@pytest.mark.parametrize("rotate", [False, True])
def test_noise_added_to_parameters_is_the_noise_of_a_release(rotate, seed):
    """A network that is large enough for it, with decay and dropout."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(40, 400, generator=generator)
    y = torch.nn.functional.one_hot(torch.arange(40) % C, C).float()
    recipe = recipe_with(
        hidden=(1600, 20) if rotate else (200, 20),
        l2=0.1,
        dropout=(0.0, 0.3),
        epochs=2,
        noise_multiplier=2.0,
    )
    assert sum(recipe.sizes(40 if rotate else 400, C)) > networks_module.LARGE
    masks = np.random.default_rng(seed).random((2, 40)) < 0.7
    cohort = Cohort(inputs=X, targets=y, masks=masks, seeds=[5, 6])
    fused = train_privately(cohort, recipe, rotate=rotate)
    for k in range(2):
        alone = Cohort(inputs=X, targets=y, masks=masks[k : k + 1], seeds=[5 + k])
        released = train_privately(
            alone, recipe, rotate=rotate, randomness=Released([5 + k])
        )
        silent = train_privately(
            alone, replace(recipe, noise_multiplier=1e-6), rotate=rotate
        )
        for layer in range(3):
            there = fused.weights[layer][k]
            assert torch.allclose(there, released.weights[layer][0], atol=2e-5)
            # The twin: without the noise the weights are others.
            assert not torch.allclose(there, silent.weights[layer][0], atol=1e-2)


def test_secret_noise_is_never_the_same():
    X, y = data(0)
    recipe = recipe_with(noise="secret")
    one, other = (
        train_privately(
            Cohort(inputs=X, targets=y, masks=everyone(), seeds=[3]), recipe
        )
        for _ in range(2)
    )
    assert float((one.weights[0] - other.weights[0]).abs().max()) > 1e-3


# --- Rotation


def test_a_basis_of_the_records_changes_no_answer(seed):
    """Without noise the very answers, with and without a public scale."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(12, 30, generator=generator)
    y = torch.nn.functional.one_hot(torch.arange(12) % C, C).float()
    recipe = recipe_with(batch=6, epochs=4, rows=12, activation="tanh", l2=0.01)
    coins = np.random.default_rng(seed).random((8, 12)) < 0.5
    views = {}, {"centres": torch.ones(1, 30), "scales": torch.full((1, 30), 2.0)}
    for view in views:
        made = [
            train_privately(
                Cohort(inputs=X, targets=y, masks=everyone(12), seeds=[3], **view),
                recipe,
                rotate=r,
                randomness=Told(coins),
            )
            for r in (False, True)
        ]
        seen = (X - 1) / 2 if view else X
        plain, rotated = (networks.probabilities(seen) for networks in made)
        assert made[1].weights[0].shape == (1, *HIDDEN, 12)
        assert rotated == pytest.approx(plain, abs=1e-4)


@pytest.mark.slow
def test_a_basis_of_the_records_changes_no_noise(seed):
    """Steps on empty batches: what a unit answers about a record has the record's length as its deviation."""
    X = torch.randn(5, 20, generator=torch.Generator().manual_seed(seed))
    y = torch.nn.functional.one_hot(torch.arange(5) % C, C).float()
    recipe = recipe_with(hidden=(), rows=5, batch=5, epochs=1, noise_multiplier=0.2)
    models = 3000
    for rotate in (False, True):
        made, start = (
            train_privately(
                Cohort(
                    inputs=X,
                    targets=y,
                    masks=everyone(5, models),
                    seeds=list(range(models)),
                ),
                recipe if noisy else replace(recipe, noise_multiplier=1e-12),
                rotate=rotate,
                randomness=Nobody(range(models)),
            )
            for noisy in (True, False)
        )
        seen = X if made.basis is None else X @ made.basis
        moved = torch.einsum("moi,ni->mno", made.weights[0] - start.weights[0], seen)
        lengths = 0.5 * 0.2 / 5 * X.norm(dim=1)  # rate, noise and batch
        whitened = (moved / lengths[None, :, None])[:, 0].flatten().double().numpy()
        assert spread_alarm(whitened) > ALARM
        assert spread_alarm(1.1 * whitened) < ALARM


def test_rotation_is_refused_where_elements_count():
    X, y = data(0)
    for changes in ({"clipping": Tanh()}, {"optimiser": Adam()}):
        with pytest.raises(InvalidInput, match="rotated"):
            train_privately(
                Cohort(inputs=X, targets=y, masks=everyone(), seeds=[0]),
                recipe_with(**changes),
                rotate=True,
            )
    own = {"centres": torch.rand(2, D), "scales": torch.ones(2, D)}
    with pytest.raises(InvalidInput, match="its own scale"):
        train_privately(
            Cohort(inputs=X, targets=y, masks=everyone(models=2), seeds=[0, 1], **own),
            recipe_with(),
            rotate=True,
        )


# --- Who takes part


def taken(randomness, records, rate, steps):
    """Return who took part, (steps, records)."""
    coins = np.zeros((steps, records), dtype=bool)
    members = [torch.arange(records)]
    for step, batch in enumerate(
        randomness.batches(
            members, [rate], steps=steps, expected=max(1, round(rate * records))
        )
    ):
        rows = batch.index[0][batch.present[0]].numpy()
        assert len(set(rows)) == len(rows)
        coins[step, rows] = True
    return coins


def sampling_alarms(coins, rate):
    """Return p-values of being independent coins: the total, the batches, pairs of neighbours."""
    steps, records = coins.shape
    total = stats.binomtest(int(coins.sum()), coins.size, rate).pvalue
    sizes = coins.sum(axis=1)
    spread = ((sizes - rate * records) ** 2).sum() / (records * rate * (1 - rate))
    sizes_p = 2 * min(stats.chi2.cdf(spread, steps), stats.chi2.sf(spread, steps))
    both = int((coins[:, 1:] & coins[:, :-1]).sum())
    pairs = stats.norm.sf(
        abs(both - coins[:, 1:].size * rate**2)
        / math.sqrt(coins[:, 1:].size * rate**2 * (1 - rate**2) * 1.5)
    )
    return min(total, sizes_p, 2 * pairs)


@pytest.mark.parametrize("rate", [0.003, 0.05, 0.4])
@pytest.mark.parametrize(
    "make", [lambda s: SeededRandomness([s]), lambda s: SecretRandomness()]
)
def test_records_take_part_by_independent_coins(make, rate, seed):
    coins = taken(make(seed), 500, rate, 400)
    assert sampling_alarms(coins, rate) > ALARM / 3
    per_record = coins.sum(axis=0)
    assert (
        stats.kstest(
            stats.binom.cdf(per_record, 400, rate)
            - np.random.default_rng(seed).random(500)
            * stats.binom.pmf(per_record, 400, rate),
            "uniform",
        ).pvalue
        > ALARM
    )


def test_batches_of_a_fixed_size_are_found_out(seed):
    """The twin: shuffled batches of 25, as most loaders draw them, are no coins."""
    rng = np.random.default_rng(seed)
    coins = np.zeros((400, 500), dtype=bool)
    for coin in coins:
        coin[rng.permutation(500)[:25]] = True
    assert sampling_alarms(coins, 0.05) < ALARM / 3


def test_everyone_takes_part_at_rate_one():
    assert taken(SeededRandomness([0]), 30, 1.0, 3).all()


# --- The noise


@pytest.mark.parametrize(
    "make", [lambda s: SeededRandomness([s]), lambda s: SecretRandomness()]
)
def test_noise_has_the_declared_deviation(make, seed):
    randomness = make(seed)
    query = [Sum(whole=torch.full((1, 100, 90), 2.0)), Sum(whole=torch.zeros(1, 7))]
    drawn = np.concatenate(
        [
            np.concatenate(
                [
                    (out - q.whole).flatten().numpy()
                    for out, q in zip(
                        randomness.release(query, bound=0.5, noise_multiplier=1.5),
                        query,
                        strict=True,
                    )
                ]
            )
            for _ in range(5)
        ]
    )
    drawn = drawn.astype(np.float64) / 0.75
    assert stats.kstest(drawn, "norm").pvalue > ALARM / 2
    assert spread_alarm(drawn) > ALARM / 2
    # The twin: noise that is a twentieth too small.
    assert spread_alarm(0.95 * drawn) < ALARM / 2
    # Draws of different steps are different.
    assert len(np.unique(drawn)) > 0.9 * len(drawn)


def spread_alarm(drawn):
    """Return the p-value of having variance 1."""
    total = float((drawn**2).sum())
    law = stats.chi2(len(drawn))
    return 2 * min(law.cdf(total), law.sf(total))


def test_secret_releases_lie_on_a_public_grid(seed):
    """No bit of the released numbers depends on how the sum was rounded."""
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(1, 4000, generator=generator)
    out = SecretRandomness().release(
        [Sum(whole=query)], bound=1.0, noise_multiplier=2.0
    )[0]
    grid = 2.0 ** math.floor(math.log2(1e-5 / math.sqrt(4000)))
    steps = out.double() / grid
    small = steps.abs() < 2**24  # what single precision holds exactly
    assert int(small.sum()) > 100
    assert float((steps[small] - steps[small].round()).abs().max()) == 0


def test_rounding_stays_within_the_margin(seed):
    """The sum of a large batch in single precision, with and without one record."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(4000, D, generator=generator) + 3  # all gradients point the same way
    y = torch.nn.functional.one_hot(torch.zeros(4000, dtype=torch.int64), C).float()
    recipe = recipe_with(clipping=Clip(norm=0.05), rows=4000, batch=4000, epochs=1)
    absent = everyone(4000)
    absent[0, 1234] = False
    with_all, without = Told(np.ones((1, 4000), bool)), Told(np.ones((1, 4000), bool))
    train_privately(
        Cohort(inputs=X, targets=y, masks=everyone(4000), seeds=[1]),
        recipe,
        randomness=with_all,
    )
    train_privately(
        Cohort(inputs=X, targets=y, masks=absent, seeds=[1]), recipe, randomness=without
    )
    moved = float((with_all.queries[0] - without.queries[0]).norm())
    assert moved <= 0.05
    assert moved >= 0.05 * (1 - 2 * margin(4000))


# --- Bad input


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"noise_multiplier": 0.0}, "noise"),
        ({"noise_multiplier": math.nan}, "noise"),
        ({"noise": "weak"}, "secret"),
        ({"dropout": 1.0}, "dropout"),
        ({"activation": "sin"}, "activation"),
    ],
)
def test_recipes_that_void_the_guarantee_are_refused(changes, word):
    with pytest.raises(InvalidInput, match=word):
        recipe_with(**changes)


def test_a_batch_larger_than_the_table_is_refused():
    X, y = data(0)
    with pytest.raises(InvalidInput, match="larger than the table"):
        train_privately(
            Cohort(inputs=X, targets=y, masks=everyone(), seeds=[0]),
            recipe_with(batch=N + 1),
        )
