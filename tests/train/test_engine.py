"""The engine equals one model after another, step by step."""

import numpy as np
import pytest

from reticent.errors import InvalidInput

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from scipy import stats

from reticent.train import engine
from reticent.train.engine import initial_parameters, train_networks
from reticent.train.recipes import SGD, Adam, Network
from reticent.train.stacking import Cohort, batch_order

N, D, C = 90, 7, 3


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(N, D, generator=generator)
    y = torch.randint(C, (N,), generator=generator)
    return X, torch.nn.functional.one_hot(y, C).float()


def masks_of(models, rng, sizes=None):
    masks = np.zeros((models, N), dtype=bool)
    for k, mask in enumerate(masks):
        mask[rng.permutation(N)[: (sizes[k] if sizes else N // 2)]] = True
    return masks


def loop(X, targets, mask, seed, recipe):
    """Train one model with autograd and PyTorch's optimisers: the naive second implementation."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [D, *recipe.hidden, C]
    weights, biases = initial_parameters(sizes, generator)
    weights = [w.clone().requires_grad_() for w in weights]
    biases = [b[:, 0].clone().requires_grad_() for b in biases]
    groups = [
        {"params": weights, "weight_decay": recipe.l2},
        {"params": biases, "weight_decay": 0.0},
    ]
    o = recipe.optimiser
    if isinstance(o, SGD):
        optimiser = torch.optim.SGD(groups, lr=o.rate, momentum=o.momentum)
    else:
        optimiser = torch.optim.Adam(
            groups, lr=o.rate, betas=(o.beta_1, o.beta_2), eps=o.epsilon
        )
    members = torch.from_numpy(np.flatnonzero(mask))
    for _ in range(recipe.epochs):
        order = batch_order(members, generator)
        kept = [
            (torch.rand(width, len(order), generator=generator) < 1 - share).float()
            / (1 - share)
            if share
            else torch.ones(width, len(order))
            for width, share in zip(recipe.hidden, recipe.dropouts, strict=True)
        ]
        for start in range(0, len(order), recipe.batch):
            index = order[start : start + recipe.batch]
            a = X[index]
            for layer, (w, b) in enumerate(zip(weights, biases, strict=True)):
                a = a @ w.T + b
                if layer < len(weights) - 1:
                    a = torch.relu(a)
                    if kept:
                        a = a * kept[layer][:, start : start + recipe.batch].T
            loss = -(targets[index] * torch.log_softmax(a, 1)).sum(1).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return [w.detach() for w in weights], [b.detach() for b in biases]


RECIPES = {
    "plain": Network(hidden=(8,), epochs=3, batch=16, optimiser=SGD(rate=0.1)),
    "deep": Network(hidden=(6, 5), epochs=3, batch=16, optimiser=SGD(rate=0.1)),
    "linear": Network(hidden=(), epochs=3, batch=16, optimiser=SGD(rate=0.1)),
    "momentum": Network(epochs=3, batch=16, optimiser=SGD(rate=0.05, momentum=0.9)),
    "adam": Network(epochs=3, batch=16, optimiser=Adam(rate=0.01)),
    "decay": Network(epochs=3, batch=16, optimiser=SGD(rate=0.1), l2=0.1),
    "momentum and decay": Network(
        epochs=3, batch=16, optimiser=SGD(momentum=0.9), l2=0.1
    ),
    "adam and decay": Network(epochs=3, batch=16, optimiser=Adam(rate=0.01), l2=0.1),
    "dropout": Network(
        hidden=(8, 6), epochs=3, batch=16, optimiser=SGD(rate=0.1), dropout=0.4
    ),
    "dropout of one layer": Network(
        hidden=(8, 6), epochs=3, batch=16, optimiser=SGD(rate=0.1), dropout=(0.0, 0.4)
    ),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", RECIPES)
def test_equals_one_model_after_another(name, large, monkeypatch):
    """Stored by feature as small networks are, and by record as large ones are."""
    if large:
        monkeypatch.setattr(engine, "LARGE", 0)
    recipe = RECIPES[name]
    X, targets = data()
    masks = masks_of(4, np.random.default_rng(0))
    made = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(4)), recipe
    )
    for k in range(4):
        weights, biases = loop(X, targets, masks[k], k, recipe)
        for layer, (w, b) in enumerate(zip(weights, biases, strict=True)):
            assert torch.allclose(made.weights[layer][k], w, atol=2e-6)
            assert torch.allclose(made.biases[layer][k][:, 0], b, atol=2e-6)


@pytest.mark.parametrize("name", ["plain", "momentum", "adam and decay"])
def test_models_with_different_numbers_of_members(name):
    recipe = RECIPES[name]
    X, targets = data()
    masks = masks_of(3, np.random.default_rng(0), sizes=[20, 33, 70])
    made = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(3)), recipe
    )
    for k in range(3):
        weights, _ = loop(X, targets, masks[k], k, recipe)
        for layer, w in enumerate(weights):
            assert torch.allclose(made.weights[layer][k], w, atol=2e-6)


def test_a_basis_of_the_records_changes_no_answer():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(12, 40, generator=generator)
    targets = torch.nn.functional.one_hot(torch.arange(12) % C, C).float()
    recipe = Network(
        hidden=(8,), epochs=5, batch=4, l2=0.1, dropout=0.2, activation="tanh"
    )
    masks = np.arange(12)[None] % 3 != np.arange(2)[:, None]
    cohort = Cohort(inputs=X, targets=targets, masks=masks, seeds=[1, 2])
    plain, rotated = (
        train_networks(cohort, recipe, rotate=rotate) for rotate in (False, True)
    )
    assert rotated.weights[0].shape == (2, 8, 12)
    assert np.allclose(plain.probabilities(X), rotated.probabilities(X), atol=1e-5)
    # The twin: other records have answers that the basis does not hold.
    others = torch.randn(12, 40, generator=generator)
    assert not np.allclose(
        plain.probabilities(others), rotated.probabilities(others), atol=1e-2
    )


def test_adam_cannot_be_rotated():
    X, targets = data()
    cohort = Cohort(
        inputs=X, targets=targets, masks=np.ones((1, N), dtype=bool), seeds=[1]
    )
    with pytest.raises(InvalidInput, match="Adam works on single elements"):
        train_networks(cohort, RECIPES["adam"], rotate=True)


def test_initial_weights_in_the_manner_of_keras(seed):
    """Uniform with the bounds of Glorot and Bengio; a KS test with a false-alarm rate of 1e-6 per layer."""
    sizes = (300, 100, 40)
    for manner, bounds in (
        ("glorot", (np.sqrt(6 / 400), np.sqrt(6 / 140))),
        ("pytorch", (1 / np.sqrt(300), 1 / np.sqrt(100))),
    ):
        generator = torch.Generator().manual_seed(seed)
        weights, biases = initial_parameters(sizes, generator, manner)
        for weight, bias, bound in zip(weights, biases, bounds, strict=True):
            values = weight.numpy().ravel().astype(float)
            assert stats.kstest(values, "uniform", (-bound, 2 * bound)).pvalue > 1e-6
            # The twin: bounds that are a tenth wider.
            wider = stats.kstest(values, "uniform", (-1.1 * bound, 2.2 * bound))
            assert wider.pvalue < 1e-6
            assert bool((bias == 0).all()) == (manner == "glorot")
    with pytest.raises(InvalidInput, match="'pytorch' or 'glorot'"):
        Network(initial="zeros")


def test_twin_another_seed_or_another_member_is_another_model():
    X, targets = data()
    masks = masks_of(2, np.random.default_rng(0))
    one = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks[:1], seeds=[5]), RECIPES["plain"]
    ).weights[0][0]
    other_seed = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks[:1], seeds=[6]), RECIPES["plain"]
    ).weights[0][0]
    other_mask = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks[1:], seeds=[5]), RECIPES["plain"]
    ).weights[0][0]
    assert not torch.allclose(one, other_seed, atol=1e-3)
    assert not torch.allclose(one, other_mask, atol=1e-3)


def test_the_company_a_model_is_trained_in_does_not_matter():
    X, targets = data()
    masks = masks_of(5, np.random.default_rng(0))
    together = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(5)),
        RECIPES["dropout"],
    )
    alone = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks[3:4], seeds=[3]),
        RECIPES["dropout"],
    )
    assert torch.allclose(together.weights[0][3], alone.weights[0][0], atol=1e-6)


def test_company_with_more_members_does_not_matter_either():
    """Dropout draws as often as a model has members, not as often as the longest has."""
    X, targets = data()
    masks = masks_of(3, np.random.default_rng(0), sizes=[20, 33, 70])
    for name in ("dropout", "adam and decay"):
        together = train_networks(
            Cohort(inputs=X, targets=targets, masks=masks, seeds=range(3)),
            RECIPES[name],
        )
        for k in range(3):
            weights, _ = loop(X, targets, masks[k], k, RECIPES[name])
            assert torch.allclose(together.weights[0][k], weights[0], atol=2e-6)


def test_a_stranger_who_cannot_be_reckoned_with_does_no_harm():
    """Places behind a model's members are filled with its own records, not with record 0."""
    X, targets = data()
    X[0] = torch.inf
    masks = masks_of(2, np.random.default_rng(0), sizes=[20, 33])
    masks[:, 0] = False
    made = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(2)), RECIPES["plain"]
    )
    assert all(torch.isfinite(w).all() for w in made.weights)


def test_targets_may_be_soft_and_each_models_own():
    X, _ = data()
    own = torch.softmax(
        torch.randn(2, N, C, generator=torch.Generator().manual_seed(1)), -1
    )
    masks = masks_of(2, np.random.default_rng(0))
    made = train_networks(
        Cohort(inputs=X, targets=own, masks=masks, seeds=range(2)), RECIPES["plain"]
    )
    for k in range(2):
        weights, _ = loop(X, own[k], masks[k], k, RECIPES["plain"])
        assert torch.allclose(made.weights[0][k], weights[0], atol=2e-6)


def test_each_model_sees_its_own_standardisation():
    X, targets = data()
    masks = masks_of(2, np.random.default_rng(0))
    centres = torch.stack([X[mask].mean(0) for mask in masks])
    scales = torch.stack([X[mask].std(0) for mask in masks])
    made = train_networks(
        Cohort(
            inputs=X,
            targets=targets,
            masks=masks,
            seeds=range(2),
            centres=centres,
            scales=scales,
        ),
        RECIPES["plain"],
    )
    for k in range(2):
        seen = (X - centres[k]) / scales[k]
        weights, _ = loop(seen, targets, masks[k], k, RECIPES["plain"])
        assert torch.allclose(made.weights[0][k], weights[0], atol=2e-6)


def test_it_learns_and_its_answers_are_probabilities():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N, D, generator=generator)
    targets = torch.nn.functional.one_hot((X[:, 0] > 0).long(), 2).float()
    masks = masks_of(3, np.random.default_rng(0))
    recipe = Network(hidden=(16,), epochs=60, batch=16, optimiser=Adam(rate=0.01))
    p = train_networks(
        Cohort(inputs=X, targets=targets, masks=masks, seeds=range(3)), recipe
    ).probabilities(X)
    assert p.shape == (3, N, 2)
    assert p.sum(axis=2) == pytest.approx(np.ones((3, N)), abs=1e-5)
    right = p.argmax(axis=2) == targets.argmax(1).numpy()
    assert right.mean() > 0.85


def test_bad_recipes_and_masks_are_refused():
    X, targets = data()
    with pytest.raises(InvalidInput, match="must be at least 1"):
        Network(epochs=0)
    with pytest.raises(InvalidInput, match="dropout"):
        Network(dropout=1.0)
    with pytest.raises(InvalidInput, match="do not fit"):
        train_networks(
            Cohort(inputs=X, targets=targets, masks=np.ones((2, N), bool), seeds=[1]),
            Network(),
        )
    with pytest.raises(InvalidInput, match="no member"):
        train_networks(
            Cohort(inputs=X, targets=targets, masks=np.zeros((1, N), bool), seeds=[1]),
            Network(),
        )
    with pytest.raises(InvalidInput, match=r"targets of shape \(45, 3\) do not fit"):
        train_networks(
            Cohort(
                inputs=X, targets=targets[:45], masks=np.ones((1, N), bool), seeds=[1]
            ),
            Network(),
        )
