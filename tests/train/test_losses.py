"""Losses of the user: trained with them, a module equals the plain PyTorch loop; what mixes records is refused."""

import functools
import importlib
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from reticent.account import Terms
from reticent.errors import InvalidInput, InvalidSpec
from reticent.train import (
    SGD,
    Adam,
    Module,
    PrivateModule,
    Training,
    guarantee_of,
    parse_trainer,
    spell,
)
from reticent.train.losses import cross_entropy, loss_of
from reticent.train.modules import train_modules
from reticent.train.private.modules import (
    gradients_of_records,
    train_modules_privately,
)
from reticent.train.stacking import Cohort, batch_order

N, D, C = 60, 7, 3
EXACT = 5e-6  # sums of float32 in another order
CODE = """
import torch
from torch import nn

def make(inputs, classes):
    return nn.Linear(inputs, classes)

def focal(logits, targets, gamma=2.0):
    log = torch.log_softmax(logits, 1)
    return -(targets * (1 - log.exp()) ** gamma * log).sum(1)

def branching(logits, targets):
    if logits.abs().sum() > 1e9:
        logits = 0 * logits
    return focal(logits, targets)

def mean(logits, targets):
    return focal(logits, targets).mean()

def centred(logits, targets):
    losses = focal(logits, targets)
    return losses - losses.mean()

def drawn(logits, targets):
    return focal(logits, targets) * torch.rand(len(logits))

def cut(logits, targets):
    return focal(logits.detach(), targets)
"""


@pytest.fixture(autouse=True)
def own_code(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    (tmp_path / "losses_for_a_test.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    sys.modules.pop("losses_for_a_test", None)
    yield tmp_path / "losses_for_a_test.py"
    sys.modules.pop("losses_for_a_test", None)


def focal(logits, targets):
    shares = torch.softmax(logits, 1)
    right = (shares * targets).sum(1)  # of hard labels, written another way
    return -((1 - right) ** 2) * torch.log(right)


def data(seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(N, D, generator=generator)
    y = torch.randint(C, (N,), generator=generator)
    return X, nn.functional.one_hot(y, C).float()


def small():
    return nn.Sequential(nn.Linear(D, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, C))


def by_hand(judge, X, targets, mask, seed, recipe):
    """Train one module with autograd and PyTorch's optimiser."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = small()
        generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
    how = recipe.optimiser
    optimiser = torch.optim.SGD(module.parameters(), lr=how.rate, momentum=how.momentum)
    members = torch.from_numpy(np.flatnonzero(mask))
    for _ in range(recipe.epochs):
        for index in torch.split(batch_order(members, generator), recipe.batch):
            optimiser.zero_grad()
            judge(module(X[index]), targets[index]).mean().backward()
            optimiser.step()
    with torch.no_grad():
        return torch.softmax(module(X), 1).numpy()


JUDGES = {
    "focal": ({"loss": "losses_for_a_test:focal"}, focal),
    "branching": ({"loss": "losses_for_a_test:branching"}, focal),
    "smoothed": (
        {"label_smoothing": 0.2},
        nn.CrossEntropyLoss(label_smoothing=0.2, reduction="none"),
    ),
    "both": (
        {"loss": "losses_for_a_test:focal", "label_smoothing": 0.2},
        lambda logits, targets: sum(
            share * focal(logits, one)
            for share, one in (
                (0.8, targets),
                *((0.2 / C, torch.eye(C)[[k] * len(logits)]) for k in range(C)),
            )
        ),
    ),
    "plain": ({}, nn.CrossEntropyLoss(reduction="none")),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", JUDGES)
def test_training_equals_the_loop_by_hand(name, together):
    options, judge = JUDGES[name]
    X, targets = data()
    recipe = Training(epochs=4, batch=16, optimiser=SGD(rate=0.2, momentum=0.5), **options)  # fmt: skip
    masks = np.random.default_rng(0).random((2, N)) < 0.5
    cohort = Cohort(inputs=X, targets=targets, masks=masks, seeds=[3, 4])
    fit = functools.partial(train_modules, small, cohort, recipe)
    if name == "branching" and together:
        with pytest.raises(InvalidInput, match=r"cannot stack .* and its loss"):
            fit(together=True)
        return
    answers = fit(together=together).probabilities(X)
    for k in range(2):
        expected = by_hand(judge, X, targets, masks[k], 3 + k, recipe)
        assert answers[k] == pytest.approx(expected, abs=EXACT)
    if options:
        other = by_hand(JUDGES["plain"][1], X, targets, masks[0], 3, recipe)
        assert np.abs(answers[0] - other).max() > 100 * EXACT


class Scaled(nn.Module):
    """A parameter of its own: no tap, so that records are differentiated one by one."""

    def __init__(self):
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(D)), nn.Linear(D, C)

    def forward(self, x):
        return self.inner(self.scale * x)


@pytest.mark.parametrize("name", ["focal", "smoothed", "both"])
@pytest.mark.parametrize("make", [small, Scaled])
def test_gradients_of_records_are_those_of_the_loss(name, make):
    options, judge = JUDGES[name]
    torch.manual_seed(0)
    module = make()
    X, targets = data()
    loss = loss_of(Module("a:b", **options), C)
    layers = gradients_of_records(module, X[:5], targets[:5], loss)
    pieces = [piece for layer in layers for piece in layer]
    for k in range(5):
        module.zero_grad()
        judge(module(X[k : k + 1]), targets[k : k + 1])[0].backward()
        for piece, parameter in zip(pieces, module.parameters(), strict=True):
            found = _of_record(piece, k).reshape(parameter.shape)
            assert torch.allclose(found, parameter.grad, atol=1e-5)


def _of_record(piece, k):
    """Return one record's gradient from a piece of any kind."""
    if hasattr(piece, "gradients"):
        return piece.gradients[0, k]
    if hasattr(piece, "below"):
        return torch.outer(piece.above[0, :, k], piece.below[0, :, k])
    return piece.above[0, :, k]


def test_private_training_follows_the_loss():
    X, targets = data()
    options = {
        "epochs": 2,
        "batch": 20,
        "noise": "seeded",
        "noise_multiplier": 1e-6,
        "optimiser": SGD(rate=0.5),
    }
    masks = np.ones((1, N), dtype=bool)

    def answers(**more):
        recipe = PrivateModule("a:b", **options, **more)
        made = train_modules_privately(
            small, Cohort(inputs=X, targets=targets, masks=masks, seeds=[5]), recipe
        )
        return made.probabilities(X)[0]

    plain, other = answers(), answers(loss="losses_for_a_test:focal")
    assert np.abs(plain - other).max() > 1e-3
    assert answers(loss="losses_for_a_test:focal") == pytest.approx(other, abs=1e-6)
    with pytest.raises(InvalidInput, match="together differs from that of each alone"):
        answers(loss="losses_for_a_test:centred")


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("mean", r"returns \(\) for 3 records.*\(batch,\)"),
        ("centred", "three records together differs from that of each alone"),
        ("drawn", "three records together differs from that of each alone"),
        ("cut", "has no gradient with respect to the logits"),
    ],
)
def test_a_loss_that_is_not_of_each_record_alone_is_refused(loss, why):
    X, targets = data()
    masks = np.ones((1, N), dtype=bool)
    recipe = Training(epochs=1, loss=f"losses_for_a_test:{loss}")
    with pytest.raises(InvalidInput, match=why):
        train_modules(
            small, Cohort(inputs=X, targets=targets, masks=masks, seeds=[0]), recipe
        )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"loss": "hinge"}, "write 'cross_entropy', or name your function"),
        ({"loss": 3}, "write 'cross_entropy', or name your function"),
        ({"label_smoothing": 1.0}, r"must be in \[0, 1\)"),
        ({"label_smoothing": -0.1}, r"must be in \[0, 1\)"),
    ],
)
def test_unknown_losses_are_refused(options, why):
    for recipe in (Training, functools.partial(Module, "a:b"), functools.partial(PrivateModule, "a:b")):  # fmt: skip
        with pytest.raises(InvalidInput, match=why):
            recipe(**options)


@given(
    logits=st.lists(st.floats(-20, 20), min_size=C, max_size=C),
    label=st.integers(0, C - 1),
    share=st.floats(0, 0.99),
)
def test_smoothing_is_that_of_pytorch(logits, label, share):
    x, y = torch.tensor([logits]), torch.eye(C)[[label]]
    found = loss_of(Training(label_smoothing=share), C)(x, y)
    expected = nn.functional.cross_entropy(x, y, label_smoothing=share)
    assert float(found) == pytest.approx(float(expected), rel=1e-4, abs=1e-4)
    assert float(cross_entropy(x, y)) == pytest.approx(
        float(nn.functional.cross_entropy(x, y)), rel=1e-4, abs=1e-4
    )


@pytest.mark.parametrize("kind", [Module, PrivateModule])
def test_the_text_of_a_recipe_names_its_loss(kind, own_code):
    recipe = kind(
        "losses_for_a_test:make",
        loss="losses_for_a_test:focal",
        label_smoothing=0.1,
        optimiser=Adam(rate=0.01),
    )
    text = spell(recipe)
    trainer = parse_trainer(text)
    assert trainer.training == recipe
    assert spell(trainer.training) == text
    plain = parse_trainer(spell(kind("losses_for_a_test:make")))
    assert "loss=" not in spell(plain.training)
    assert plain.content() != trainer.content()
    with pytest.raises(InvalidSpec, match="nearest match is 'focal'"):
        parse_trainer(text.replace(":focal", ":focals"))
    with pytest.raises(InvalidSpec, match="write 'cross_entropy'"):
        parse_trainer(f"reticent.{kind.__name__}('losses_for_a_test:make', loss='l')")
    other = own_code.with_name("other_losses_for_a_test.py")
    other.write_text(CODE)
    importlib.invalidate_caches()
    sys.modules.pop("other_losses_for_a_test", None)
    moved = text.replace("losses_for_a_test:focal", "other_losses_for_a_test:focal")
    before = parse_trainer(moved).content()
    other.write_text(CODE + "# changed\n")
    assert parse_trainer(moved).content() != before  # a pool of another loss is another


def test_a_promise_tells_of_the_loss():
    options = {"rows": 100, "terms": Terms(delta=1e-4)}
    recipe = PrivateModule("a:b", batch=10, epochs=1)
    plain = guarantee_of(recipe, **options)
    own = guarantee_of(PrivateModule("a:b", batch=10, epochs=1, loss="c:d"), **options)
    assert own.caveats[0] == plain.caveats[0]
    assert "c:d" in own.caveats[1]
    assert own.epsilon == plain.epsilon
