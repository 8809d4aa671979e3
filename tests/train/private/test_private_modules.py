"""Gradients of single records from taps, from vmap and from Opacus are the same; mixing layers are refused."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")
from per_record import TREATMENTS, close, treated
from torch import nn

from reticent.account import Relation
from reticent.errors import InvalidInput
from reticent.train.private import modules as private_modules
from reticent.train.private.clipping import Clip, sensitivity
from reticent.train.private.modules import (
    gradients_of_records,
    train_modules_privately,
    trained_layers,
)
from reticent.train.private.sums import Outer, clipped_sums
from reticent.train.recipes import SGD, Private, PrivateModule
from reticent.train.stacking import Cohort


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def mlp():
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.GroupNorm(2, 4),
        nn.ReLU(),
        nn.Conv2d(4, 3, 2, dilation=2, bias=False),
        nn.Flatten(),
        nn.Linear(12, 7),
        nn.LayerNorm(7),
        nn.Linear(7, 3),
    )


class Shared(nn.Module):
    """A layer that is used twice: taps cannot tell its gradients apart."""

    def __init__(self):
        super().__init__()
        self.first, self.inner, self.last = (
            nn.Linear(6, 5),
            nn.Linear(5, 5),
            nn.Linear(5, 3),
        )

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.inner(torch.tanh(self.inner(x)))))


class Sequence(nn.Module):
    """A linear layer over positions, and an embedding-like parameter of the module's own."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.Linear(3, 4), nn.Linear(8, 3)
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.last(
            self.norm(torch.tanh(self.inner(x.view(len(x), 2, 3)))).flatten(1)
        )


MAKERS = {
    "mlp": (mlp, (6,)),
    "convolutional": (convolutional, (2, 8, 8)),
    "shared": (Shared, (6,)),
    "sequence": (Sequence, (6,)),
    "in place": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)),
        (6,),
    ),
    "grouped": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, groups=2), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)
        ),
        (2, 8, 8),
    ),
}


def made(name, seed, records=11):
    make, shape = MAKERS[name]
    torch.manual_seed(seed)
    x = torch.randn(records, *shape)
    y = nn.functional.one_hot(torch.randint(3, (records,)), 3).float()
    return make(), x, y


def one_by_one(module, x, y):
    """Return the gradients of each record by autograd, by layer, flat."""
    found = []
    for record, target in zip(x, y, strict=True):
        loss = nn.functional.cross_entropy(module(record[None]), target[None])
        layers = trained_layers(module)
        slopes = torch.autograd.grad(loss, [p for _, own in layers for p in own])
        it = iter(slopes)
        found.append(
            [torch.cat([next(it).flatten() for _ in own]) for _, own in layers]
        )
    return found


@pytest.mark.parametrize("clipping", ["clip", "per layer", "tanh then clip", "sigmoid"])
@pytest.mark.parametrize("name", MAKERS)
def test_sum_equals_one_gradient_a_record(name, clipping, seed):
    module, x, y = made(name, seed)
    pieces = gradients_of_records(module, x, y)
    present = torch.ones(1, len(x), dtype=torch.bool)
    sums = clipped_sums(TREATMENTS[clipping], pieces, present, margin=0.0)
    found = torch.cat([s.formed().flatten() for layer in sums for s in layer])
    wanted = sum(treated(TREATMENTS[clipping], g) for g in one_by_one(module, x, y))
    assert close(found.double(), wanted)
    assert all(p.requires_grad for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "taps"),
    [
        ("mlp", True),
        ("convolutional", True),
        ("shared", False),
        ("in place", False),
        ("grouped", False),
    ],
)
def test_taps_are_used_where_they_can_be(name, taps, seed, monkeypatch):
    used = []
    real = private_modules._by_vmap
    monkeypatch.setattr(
        private_modules, "_by_vmap", lambda *a: used.append(1) or real(*a)
    )
    module, x, y = made(name, seed)
    pieces = gradients_of_records(module, x, y)
    assert bool(used) is not taps
    if name == "mlp":
        assert isinstance(pieces[0][0], Outer)  # no gradient of a record was made


def opacus_sum(module, x, y, norm):
    """Return the sum of clipped gradients that Opacus forms, without noise."""
    opacus = pytest.importorskip("opacus")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrapped = opacus.GradSampleModule(module, loss_reduction="sum")
        optimiser = opacus.optimizers.DPOptimizer(
            torch.optim.SGD(wrapped.parameters(), lr=0.0),
            noise_multiplier=0.0,
            max_grad_norm=norm,
            expected_batch_size=None,
            loss_reduction="sum",
        )
        optimiser.zero_grad()
        nn.functional.cross_entropy(wrapped(x), y, reduction="sum").backward()
        optimiser.clip_and_accumulate()
    return {
        n.removeprefix("_module."): p.summed_grad for n, p in wrapped.named_parameters()
    }


@pytest.mark.parametrize("norm", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("name", ["mlp", "convolutional", "sequence"])
def test_clipped_sum_equals_that_of_opacus(name, norm, seed):
    module, x, y = made(name, seed)
    pieces = gradients_of_records(module, x, y)
    present = torch.ones(1, len(x), dtype=torch.bool)
    sums = clipped_sums(Clip(norm=norm), pieces, present, margin=0.0)
    names = {id(p): n for n, p in module.named_parameters()}
    ours = {
        names[id(p)]: s.formed().flatten()
        for (_, own), layer in zip(trained_layers(module), sums, strict=True)
        for p, s in zip(own, layer, strict=True)
    }
    theirs = opacus_sum(module, x, y, norm)
    assert ours.keys() == theirs.keys()
    for parameter, sum_ in ours.items():
        assert torch.allclose(
            sum_, theirs[parameter].flatten(), atol=1e-5 * max(norm, 1)
        )


def recipe_with(**changes):
    return PrivateModule(
        "nets:make",
        epochs=3,
        batch=10,
        optimiser=SGD(rate=0.2),
        **{"noise": "seeded", **changes},
    )


def test_training_learns_and_repeats(seed):
    torch.manual_seed(seed)
    x = torch.randn(400, 6)
    y = nn.functional.one_hot((x[:, 0] > 0).long() + (x[:, 0] > 1).long(), 3).float()
    masks = np.ones((2, 400), dtype=bool)
    recipe = recipe_with(noise_multiplier=0.5)
    one = train_modules_privately(
        mlp, Cohort(inputs=x, targets=y, masks=masks, seeds=[1, 2]), recipe
    )
    two = train_modules_privately(
        mlp, Cohort(inputs=x, targets=y, masks=masks[1:], seeds=[2]), recipe
    )
    assert np.array_equal(one.probabilities(x)[1], two.probabilities(x)[0])
    right = one.probabilities(x).argmax(2) == y.argmax(1).numpy()
    assert right.mean() > 0.6


def test_chunks_do_not_matter(seed, monkeypatch):
    _module, x, y = made("convolutional", seed, records=30)
    masks = np.ones((1, 30), dtype=bool)
    whole = train_modules_privately(
        MAKERS["convolutional"][0],
        Cohort(inputs=x, targets=y, masks=masks, seeds=[1]),
        recipe_with(),
    )
    monkeypatch.setattr(private_modules, "CHUNK", 3)
    parts = train_modules_privately(
        MAKERS["convolutional"][0],
        Cohort(inputs=x, targets=y, masks=masks, seeds=[1]),
        recipe_with(),
    )
    assert np.allclose(whole.probabilities(x), parts.probabilities(x), atol=1e-5)


@pytest.mark.parametrize("name", TREATMENTS)
def test_one_record_moves_the_sum_by_the_sensitivity_at_most(name, seed):
    module, x, y = made("convolutional", seed)
    x[-1] *= 1e6
    clipping = TREATMENTS[name]
    sizes = [sum(p.numel() for p in own) for _, own in trained_layers(module)]
    queries = []
    for records in (len(x), len(x) - 1):
        pieces = gradients_of_records(module, x[:records], y[:records])
        present = torch.ones(1, records, dtype=torch.bool)
        sums = clipped_sums(clipping, pieces, present, margin=1e-4)
        queries.append(
            torch.cat([s.formed().flatten() for layer in sums for s in layer])
        )
    moved = float((queries[0] - queries[1]).double().norm())
    assert moved <= sensitivity(clipping, sizes, Relation.ADD_REMOVE)


@pytest.mark.parametrize(
    ("layer", "word"),
    [
        (nn.BatchNorm1d(5), "GroupNorm"),
        (nn.AlphaDropout(0.2), "use nn.Dropout"),
        (nn.InstanceNorm1d(5, track_running_stats=True), "track_running_stats"),
    ],
)
def test_layers_that_mix_records_are_refused(layer, word):
    def make():
        return nn.Sequential(nn.Linear(6, 5), layer, nn.Linear(5, 3))

    x, y = torch.randn(20, 6), torch.eye(3)[torch.zeros(20, dtype=torch.int64)]
    with pytest.raises(InvalidInput, match=word) as caught:
        train_modules_privately(
            make,
            Cohort(inputs=x, targets=y, masks=np.ones((1, 20), bool), seeds=[0]),
            recipe_with(),
        )
    assert "the layer 1 is" in str(caught.value)
    assert isinstance(recipe_with(), Private)


class Meaning(nn.Module):
    """No layer of it mixes records, but its forward does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x - x.mean(0))


class Drawing(Meaning):
    """Draws for itself, where no layer shows it."""

    def forward(self, x):
        return self.layer(nn.functional.dropout(x, 0.5, self.training))


@pytest.mark.parametrize("make", [Meaning, Drawing])
def test_a_forward_that_does_not_treat_records_alone_is_refused(make):
    torch.manual_seed(0)
    x, y = torch.randn(20, 6), torch.eye(3)[torch.zeros(20, dtype=torch.int64)]
    with pytest.raises(InvalidInput, match="together than for each alone"):
        train_modules_privately(
            make,
            Cohort(inputs=x, targets=y, masks=np.ones((1, 20), bool), seeds=[0]),
            recipe_with(),
        )
