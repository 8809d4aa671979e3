"""Modules of the user: stacked or one by one, they equal the plain PyTorch loop."""

import functools
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from reticent.errors import (
    InvalidInput,
)
from reticent.train import (
    SGD,
    Adam,
    Training,
)
from reticent.train.modules import train_modules
from reticent.train.stacking import Cohort, batch_order

N, D, C = 60, 7, 3
EXACT = 5e-6  # sums of float32 in another order


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def data(shape=(D,), seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(N, *shape, generator=generator)
    y = torch.randint(C, (N,), generator=generator)
    return X, nn.functional.one_hot(y, C).float()


def masks_of(sizes, seed=0):
    rng = np.random.default_rng(seed)
    masks = np.zeros((len(sizes), N), dtype=bool)
    for mask, size in zip(masks, sizes, strict=True):
        mask[rng.permutation(N)[:size]] = True
    return masks


def tabular():
    return nn.Sequential(nn.Linear(D, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, C))


def dropping():
    return nn.Sequential(
        nn.Linear(D, 8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, C), nn.Dropout(0.1)
    )


class Reusing(nn.Module):
    """One dropout layer called twice, and a parameter that stays as it is."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(D, 8), nn.Linear(8, 6), nn.Linear(6, C)
        self.drop = nn.Dropout(0.3)
        self.b.weight.requires_grad_(False)

    def forward(self, x):
        x = self.drop(torch.relu(self.a(x)))
        return self.c(self.drop(torch.tanh(self.b(x))))


def convolving():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 9, C),
    )


def normed():
    return nn.Sequential(nn.Linear(D, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, C))


def naive(make, X, targets, mask, seed, recipe, *, decay_all=False):
    """Train one module with autograd and PyTorch's optimisers: the second implementation.

    Dropout is hooked: what a layer gives is its input times masks drawn, before each step, from
    the model's generator, layer by layer and call by call.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = make()
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
    groups = [[], []]
    for p in module.parameters():
        if p.requires_grad:
            groups[p.ndim < 2 and not decay_all].append(p)
    o = recipe.optimiser
    made = [
        {"params": group, "weight_decay": l2}
        for group, l2 in zip(groups, (recipe.l2, 0.0), strict=True)
    ]
    if isinstance(o, SGD):
        optimiser = torch.optim.SGD(made, lr=o.rate, momentum=o.momentum)
    else:
        optimiser = torch.optim.Adam(
            made, lr=o.rate, betas=(o.beta_1, o.beta_2), eps=o.epsilon
        )
    drops = [m for m in module.modules() if isinstance(m, nn.Dropout)]
    shapes = {id(m): [] for m in drops}
    hooks = [
        m.register_forward_hook(lambda m, i, o: shapes[id(m)].append(i[0].shape[1:]))
        for m in drops
    ]
    if drops:
        module(X[:2])
    for hook in hooks:
        hook.remove()
    waiting = {}
    for m in drops:
        m.register_forward_hook(lambda m, i, o: i[0] * waiting[id(m)].pop(0))
    members = torch.from_numpy(np.flatnonzero(mask))
    for _ in range(recipe.epochs):
        order = batch_order(members, generator)
        for start in range(0, len(order), recipe.batch):
            index = order[start : start + recipe.batch]
            for m in drops:
                waiting[id(m)] = [
                    (torch.rand(len(index), *s, generator=generator) < 1 - m.p).float()
                    / (1 - m.p)
                    for s in shapes[id(m)]
                ]
            logits = module(X[index])
            loss = -(targets[index] * torch.log_softmax(logits, 1)).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return [p.detach() for p in module.parameters()]


def parameters(modules, k):
    return [p.detach() for p in modules.modules[k].parameters()]


def differ(first, second):
    return max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))


RECIPES = {
    "plain": Training(epochs=3, batch=16, optimiser=SGD(rate=0.1)),
    "momentum": Training(epochs=3, batch=16, optimiser=SGD(rate=0.05, momentum=0.9)),
    "adam": Training(epochs=3, batch=16, optimiser=Adam(rate=0.01)),
    "decay": Training(epochs=3, batch=16, optimiser=SGD(rate=0.1), l2=0.1),
    "momentum and decay": Training(
        epochs=3, batch=16, optimiser=SGD(rate=0.05, momentum=0.9), l2=0.1
    ),
    "adam and decay": Training(epochs=3, batch=16, optimiser=Adam(rate=0.01), l2=0.1),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("make", [tabular, dropping, Reusing, convolving])
@pytest.mark.parametrize("name", RECIPES)
def test_equals_the_plain_loop(name, make, together):
    X, targets = data((2, 6, 6) if make is convolving else (D,))
    masks, recipe = masks_of([20, 33, 50]), RECIPES[name]
    made = train_modules(
        make,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(3)),
        recipe,
        together=together,
    )
    assert made.together is together
    for k in range(3):
        expected = naive(make, X, targets, masks[k], k, recipe)
        assert differ(parameters(made, k), expected) < EXACT


@pytest.mark.parametrize("together", [True, False])
def test_twin_decay_of_every_parameter_is_another_model(together):
    X, targets = data()
    masks, recipe = masks_of([30]), RECIPES["decay"]
    made = train_modules(
        tabular,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=[0]),
        recipe,
        together=together,
    )
    wrong = naive(tabular, X, targets, masks[0], 0, recipe, decay_all=True)
    assert differ(parameters(made, 0), wrong) > 100 * EXACT


@pytest.mark.parametrize("together", [True, False])
def test_twin_models_share_nothing_but_their_seed(together):
    """Equal seeds and members give equal models; another seed is another order and dropout."""
    X, targets = data()
    masks, recipe = np.repeat(masks_of([30]), 3, axis=0), RECIPES["plain"]
    made = train_modules(
        dropping,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=[5, 5, 6]),
        recipe,
        together=together,
    )
    same, again, other = (parameters(made, k) for k in range(3))
    assert differ(same, again) < EXACT
    assert differ(same, other) > 100 * EXACT


def constant_start():
    module = dropping()
    for p in module.parameters():
        nn.init.constant_(p, 0.1)
    nn.init.eye_(module[3].weight)
    return module


def test_dropout_is_each_models_own():
    """Equal starts and one full batch, so that the order plays no part: dropout alone differs."""
    X, targets = data()
    masks = np.ones((2, N), dtype=bool)
    recipe = Training(epochs=1, batch=N, optimiser=SGD(rate=0.1))
    made = train_modules(
        constant_start,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=[1, 2]),
        recipe,
        together=True,
    )
    assert differ(parameters(made, 0), parameters(made, 1)) > 100 * EXACT


@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(1, N), min_size=1, max_size=4),
    batch=st.integers(1, N),
    name=st.sampled_from(sorted(RECIPES)),
)
def test_company_does_not_matter(sizes, batch, name):
    """Trained together, in any company, or alone and one by one: the same model."""
    X, targets = data()
    o = RECIPES[name]
    recipe = Training(epochs=2, batch=batch, optimiser=o.optimiser, l2=o.l2)
    masks = masks_of(sizes)
    seeds = range(len(sizes))
    all_of_them = train_modules(
        dropping,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=seeds),
        recipe,
        together=True,
    )
    for k in seeds:
        for together in (True, False):
            alone = train_modules(
                dropping,
                Cohort(inputs=X, targets=targets, masks=masks[k : k + 1], seeds=[k]),
                recipe,
                together=together,
            )
            assert differ(parameters(all_of_them, k), parameters(alone, 0)) < 1e-4


@pytest.mark.parametrize("together", [True, False])
def test_targets_may_be_soft_and_each_models_own(together):
    X, _ = data()
    own = torch.softmax(
        torch.randn(2, N, C, generator=torch.Generator().manual_seed(1)), -1
    )
    masks, recipe = masks_of([25, 40]), RECIPES["plain"]
    made = train_modules(
        tabular,
        Cohort(inputs=X, targets=own, masks=masks, seeds=range(2)),
        recipe,
        together=together,
    )
    for k in range(2):
        expected = naive(tabular, X, own[k], masks[k], k, recipe)
        assert differ(parameters(made, k), expected) < EXACT
    swapped = naive(tabular, X, own[1], masks[0], 0, recipe)
    assert differ(parameters(made, 0), swapped) > 100 * EXACT


@pytest.mark.parametrize("together", [True, False])
def test_each_model_sees_its_own_standardisation(together):
    X, targets = data()
    masks, recipe = masks_of([25, 40]), RECIPES["plain"]
    centres = torch.stack([X[mask].mean(0) for mask in masks])
    scales = torch.stack([X[mask].std(0) for mask in masks])
    made = train_modules(
        tabular,
        Cohort(
            inputs=X,
            targets=targets,
            masks=masks,
            seeds=range(2),
            centres=centres,
            scales=scales,
        ),
        recipe,
        together=together,
    )
    for k in range(2):
        seen = (X - centres[k]) / scales[k]
        expected = naive(tabular, seen, targets, masks[k], k, recipe)
        assert differ(parameters(made, k), expected) < EXACT


def test_batch_norm_is_trained_one_by_one_and_answers_with_its_averages():
    X, targets = data()
    masks, recipe = masks_of([32, 33]), RECIPES["plain"]  # 33: a last batch of one
    made = train_modules(
        normed, Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)), recipe
    )
    assert not made.together
    assert not made.stackable
    assert "'1' is a BatchNorm1d, which mixes" in made.why
    expected = naive(normed, X, targets, masks[0], 0, recipe)
    assert differ(parameters(made, 0), expected) < EXACT
    # Answers do not depend on which other records are asked about.
    assert made.probabilities(X)[:, :5] == pytest.approx(
        made.probabilities(X[:5]), abs=1e-6
    )


def test_convolutions_and_large_layers_are_faster_one_by_one():
    X, targets = data((2, 6, 6))
    recipe = Training(epochs=1)
    made = train_modules(
        convolving,
        Cohort(inputs=X, targets=targets, masks=masks_of([9]), seeds=[0]),
        recipe,
    )
    assert (made.together, made.stackable) == (False, True)
    assert "convolutions" in made.why
    X, targets = data()

    def wide():
        return nn.Sequential(nn.Linear(D, 20_000), nn.Linear(20_000, C))

    made = train_modules(
        wide, Cohort(inputs=X, targets=targets, masks=masks_of([9]), seeds=[0]), recipe
    )
    assert (made.together, made.stackable) == (False, True)
    assert "million operations" in made.why


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(D, C)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(D, C)

    def forward(self, x):
        return self.layer(nn.functional.dropout(x, 0.5, self.training))


class Mixing(Noisy):
    def forward(self, x):
        return self.layer(x - x.mean(0))


class Branching(Noisy):
    def forward(self, x):
        x = self.layer(x)
        return x if x.sum() > 0 else -x


class Hiding(Noisy):
    """A random tensor that is neither parameter nor buffer."""

    def __init__(self):
        super().__init__()
        self.hidden = torch.randn(D)

    def forward(self, x):
        return self.layer(x * self.hidden)


class Turning(Noisy):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.layer(x).T).T


class Recurring(nn.Module):
    def __init__(self, kind=nn.LSTM, **options):
        super().__init__()
        self.inside = kind(1, 4, batch_first=True, **options)
        self.layer = nn.Linear(4, C)

    def forward(self, x):
        return self.layer(self.inside(x[..., None])[0][:, -1])


OBSTACLES = {
    "batch norm": (
        normed,
        "'1' is a BatchNorm1d, which mixes .*GroupNorm or LayerNorm",
    ),
    "instance norm": (
        lambda: nn.Sequential(
            nn.Unflatten(1, (1, D)),
            nn.InstanceNorm1d(1, track_running_stats=True),
            nn.Flatten(),
            nn.Linear(D, C),
        ),
        "InstanceNorm1d that keeps running averages.*track_running_stats=False",
    ),
    "alpha dropout": (
        lambda: nn.Sequential(nn.Linear(D, C), nn.AlphaDropout(0.2)),
        "'1' is a AlphaDropout, whose",
    ),
    "rrelu": (
        lambda: nn.Sequential(nn.Linear(D, C), nn.RReLU()),
        "'1' is a RReLU, whose random choices",
    ),
    "recurrent dropout": (
        functools.partial(Recurring, nn.GRU, num_layers=2, dropout=0.5),
        "'inside' is a GRU, whose random choices",
    ),
    "buffer": (Counting, "Counting changes its buffer 'calls'"),
    "own randomness": (Noisy, "Noisy draws random numbers.*use nn.Dropout"),
    "mixing": (Mixing, "Mixing mixes the records"),
    "branching": (Branching, "cannot stack the module Branching"),
    "hidden tensor": (Hiding, "give other answers than each alone.*register_buffer"),
    "turned dropout": (Turning, "does not have the records as its first dimension"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_cannot_be_stacked_is_refused_or_trained_one_by_one(name):
    make, message = OBSTACLES[name]
    X, targets = data()
    masks, recipe = masks_of([20, 33]), RECIPES["plain"]
    with pytest.raises(InvalidInput, match=f"{message}.*together=False"):
        train_modules(
            make,
            Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)),
            recipe,
            together=True,
        )
    state = torch.get_rng_state()
    made = train_modules(
        make, Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)), recipe
    )
    assert torch.equal(state, torch.get_rng_state())  # others draw what they would have
    assert (made.together, made.stackable) == (False, False)
    again = train_modules(
        make,
        Cohort(inputs=X, targets=targets, masks=masks[1:], seeds=[1]),
        recipe,
        together=False,
    )
    assert again.why == made.why
    assert differ(parameters(made, 1), parameters(again, 0)) == 0
    assert made.probabilities(X).shape == (2, N, C)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers_can_be_stacked(kind):
    X, targets = data()
    make = functools.partial(Recurring, kind)
    masks, recipe = masks_of([20, 33]), RECIPES["adam"]
    made = train_modules(
        make,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)),
        recipe,
        together=True,
    )
    for k in range(2):
        expected = naive(make, X, targets, masks[k], k, recipe)
        assert differ(parameters(made, k), expected) < 1e-4
    if kind is nn.LSTM:
        chosen = train_modules(
            make, Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)), recipe
        )
        assert not chosen.together
        assert "loops over the models" in chosen.why


def test_lazy_and_tied_layers_are_initialised_from_the_seed():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(D, D), nn.Linear(D, D)
            self.b.weight = self.a.weight
            self.c = nn.LazyLinear(C)

        def forward(self, x):
            return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))

    X, targets = data()
    masks, recipe = masks_of([20, 33]), RECIPES["momentum"]
    stacked = train_modules(
        Tied,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)),
        recipe,
        together=True,
    )
    single = train_modules(
        Tied,
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)),
        recipe,
        together=False,
    )
    for k in range(2):
        assert differ(parameters(stacked, k), parameters(single, k)) < EXACT
        module = stacked.modules[k]
        assert module.a.weight is module.b.weight


def test_modules_come_back_as_they_were_made_and_learn():
    X, _ = data()
    targets = nn.functional.one_hot((X[:, 0] > 0).long(), C).float()
    masks = masks_of([40, 40])
    recipe = Training(epochs=60, batch=16, optimiser=Adam(rate=0.01))
    made = train_modules(
        dropping, Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)), recipe
    )
    assert made.together
    assert len(made) == 2
    assert [type(layer).__name__ for layer in made.modules[0]] == [
        "Linear",
        "ReLU",
        "Dropout",
        "Linear",
        "Dropout",
    ]
    assert not any(layer.training for m in made.modules for layer in m.modules())
    p = made.probabilities(X)
    assert p.dtype == np.float32
    assert p.sum(axis=2) == pytest.approx(np.ones((2, N)), abs=1e-5)
    assert np.mean(p.argmax(axis=2) == targets.argmax(1).numpy()) > 0.85
    assert made.of(1).probabilities(X)[0] == pytest.approx(p[1])


def test_bad_modules_recipes_and_shapes_are_refused():
    X, targets = data()
    cohort = Cohort(inputs=X, targets=targets, masks=masks_of([9]), seeds=[0])
    train = functools.partial(train_modules, recipe=Training(epochs=1))
    with pytest.raises(InvalidInput, match="make returns a dict"):
        train(dict, cohort)
    with pytest.raises(InvalidInput, match=r"shape \(3, 8\).*where \(3, 3\) was"):
        train(lambda: nn.Linear(D, 8), cohort)
    with pytest.raises(InvalidInput, match="no parameter that is trained"):
        train(nn.Flatten, cohort)
    with pytest.raises(InvalidInput, match="targets of shape"):
        train(tabular, replace(cohort, targets=targets[:5]))
    with pytest.raises(InvalidInput, match="do not fit 2 seeds"):
        train(tabular, replace(cohort, seeds=[0, 1]))
    with pytest.raises(InvalidInput, match="must be at least 1"):
        Training(batch=0)
    with pytest.raises(InvalidInput, match="l2 must be at least 0, got -1"):
        Training(l2=-1)
    widths = iter(range(2, 50))
    with pytest.raises(InvalidInput, match="differ in their parameters"):
        train(
            lambda: nn.Sequential(nn.Linear(D, w := next(widths)), nn.Linear(w, C)),
            cohort,
            together=True,
        )
