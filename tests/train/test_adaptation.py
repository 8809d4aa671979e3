"""Domain adaptation: the local discrepancy, its ramp, and what training with it does and does not use."""

import inspect
import math
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import one_hot

from reticent.errors import InvalidInput, TrainerFailed
from reticent.run import seed_for, stream
from reticent.train import SGD, Adam, Training
from reticent.train.adaptation import (
    Adaptation,
    local_mmd,
    ramp,
    train_adapted,
)
from reticent.train.modules import train_modules
from reticent.train.stacking import Cohort

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def naive_mmd(source, target, ys, yt, kernels, ratio):
    """The definition, one pair of records and one class at a time, in plain Python."""
    both = [*source.tolist(), *target.tolist()]

    def apart(a, b):
        return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))

    pairs = [
        apart(a, b) for i, a in enumerate(both) for j, b in enumerate(both) if i != j
    ]
    width = sum(pairs) / len(pairs) or 1.0

    def kernel(a, b):
        widths = [width * ratio ** (k - kernels // 2) for k in range(kernels)]
        return sum(math.exp(-apart(a, b) / w) for w in widths)

    ys, yt = ys.tolist(), yt.tolist()
    likeliest = [{row.index(max(row)) for row in side} for side in (ys, yt)]
    common = sorted(likeliest[0] & likeliest[1])
    total = 0.0
    for c in common:
        mass_s, mass_t = sum(row[c] for row in ys), sum(row[c] for row in yt)
        weights = [row[c] / mass_s for row in ys] + [-row[c] / mass_t for row in yt]
        for wa, a in zip(weights, both, strict=True):
            for wb, b in zip(weights, both, strict=True):
                total += wa * wb * kernel(a, b)
    return total / max(len(common), 1)


def sample(seed, n=7, m=5, width=3, classes=4):
    rng = np.random.default_rng(seed)
    made = (
        rng.normal(size=(n, width)),
        rng.normal(0.5, 2.0, size=(m, width)),
        np.eye(classes)[rng.integers(classes, size=n)],
        rng.dirichlet(np.ones(classes), size=m),
    )
    return [torch.from_numpy(part) for part in made]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("kernels", "ratio"), [(1, 2.0), (4, 3.0), (5, 2.0)])
def test_the_discrepancy_is_its_definition(seed, kernels, ratio):
    parts = sample(seed)
    found = local_mmd(*parts, kernels=kernels, ratio=ratio)
    assert found.item() == pytest.approx(naive_mmd(*parts, kernels, ratio), rel=1e-9)


def test_the_discrepancy_where_nothing_can_be_compared():
    features = torch.zeros(3, 2)
    first, second = torch.eye(2)[[0, 0, 0]], torch.eye(2)[[1, 1, 1]]
    assert local_mmd(features, features, first, first).item() == 0  # no spread
    assert local_mmd(features, features + 1, first, second).item() == 0  # no class
    assert local_mmd(features, features + 1, first, first).item() > 1


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 8),
    m=st.integers(1, 8),
    scale=st.floats(1e-3, 1e3),
)
def test_the_discrepancy_is_a_symmetric_squared_length(seed, n, m, scale):
    s, t, ys, yt = sample(seed, n, m)
    found = local_mmd(s, t, ys, yt).item()
    assert -1e-9 <= found <= 2 * 5 + 1e-9
    assert found == pytest.approx(local_mmd(t, s, yt, ys).item(), abs=1e-9)
    # The widths follow the features, so that units do not matter.
    assert found == pytest.approx(
        local_mmd(s * scale, t * scale, ys, yt).item(), abs=1e-8
    )


def largest_of_permuted(shift, rng, n=40, others=99):
    """Whether the discrepancy is above all those with sides exchanged at random within classes."""
    labels = np.repeat([0, 1], n)
    classes = one_hot(torch.from_numpy(labels)).double()
    sides = rng.normal(size=(2, 2 * n, 3)) + labels[:, None]
    sides[1] += shift
    values = []
    for k in range(others + 1):
        mixed = sides.copy()
        for c in (0, 1) if k else ():
            rows = np.flatnonzero(labels == c)
            pooled = rng.permutation(np.concatenate(mixed[:, rows]))
            mixed[:, rows] = pooled.reshape(2, n, 3)
        s, t = torch.from_numpy(mixed)
        values.append(local_mmd(s, t, classes, classes).item())
    return values[0] > max(values[1:])


def test_equal_distributions_have_no_more_discrepancy_than_exchanged_sides(seed):
    # Among 100 exchangeable values the first is the largest once in 100: three times in a row is one false alarm in 1e6.
    rng = stream(seed, "adaptation/equal")
    assert not all(largest_of_permuted(0.0, rng) for _ in range(3))


def test_shifted_distributions_have_more_discrepancy_than_exchanged_sides(seed):
    rng = stream(seed, "adaptation/shifted")
    assert all(largest_of_permuted(1.0, rng) for _ in range(3))


def test_gradients_flow_to_features_and_not_to_classes():
    parts = sample(0)
    for part in parts:
        part.requires_grad_()
    s, t, ys, yt = parts
    local_mmd(s, t, ys, yt).backward()
    assert ys.grad is None
    assert yt.grad is None
    # A small step down lowers the discrepancy, on either side.
    before = local_mmd(s, t, ys, yt).item()
    with torch.no_grad():
        assert local_mmd(s - 0.1 * s.grad, t, ys, yt).item() < before
        assert local_mmd(s, t - 0.1 * t.grad, ys, yt).item() < before


def test_the_gradient_is_that_of_a_fixed_width():
    s, t, ys, yt = sample(1)
    h = 1e-5

    def value(x):  # the width of these features, not of those that are moved
        features = torch.cat([x, t])
        apart = torch.cdist(features, features).square()
        start = torch.cat([s, t])
        width = torch.cdist(start, start).square().sum() / (12 * 11)
        kernel = sum(torch.exp(-apart / (width * 2.0 ** (k - 2))) for k in range(5))
        keep = [c for c in range(4) if c in ys.argmax(1) and c in yt.argmax(1)]
        ours, theirs = ys[:, keep], yt[:, keep]
        signed = torch.cat([ours / ours.sum(0), -theirs / theirs.sum(0)])
        return (torch.trace(signed.T @ kernel @ signed) / len(keep)).item()

    moving = s.clone().requires_grad_()
    local_mmd(moving, t, ys, yt).backward()
    step = torch.zeros_like(s)
    step[2, 1] = h
    slope = (value(s + step) - value(s - step)) / (2 * h)
    assert slope != 0
    assert moving.grad[2, 1].item() == pytest.approx(slope, rel=1e-5)


def test_the_ramp_is_that_of_the_paper():
    for p in (0.0, 0.05, 0.3, 1.0):
        assert ramp(p) == pytest.approx(2 / (1 + math.exp(-10 * p)) - 1, abs=1e-12)
    assert ramp(0.5, steepness=2.0) == pytest.approx(2 / (1 + math.exp(-1)) - 1)


def digits(seed):
    """Digits as they are, labelled; others, faint and noisy; these as they are; and what they are."""
    x, y = load_digits(return_X_y=True)
    rng = stream(seed, "adaptation/digits")
    order = rng.permutation(len(y))
    x = x[order].reshape(-1, 1, 8, 8).astype(np.float32) / 16
    faint = 0.2 + 0.5 * x + 0.3 * rng.random(x.shape, dtype=np.float32)
    x, faint, y = (torch.from_numpy(part) for part in (x, faint, y[order]))
    return x[:700], y[:700], faint[700:], x[700:], y[700:]


def small():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.LayerNorm(32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def small_normed():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def beats(first, second):
    """Whether the first is right more often (McNemar): of records that only one gets right, a coin would give each half."""
    won, lost = int((first & ~second).sum()), int((second & ~first).sum())
    return won > binom.ppf(1 - FALSE_ALARM, won + lost, 0.5)


def test_adaptation_beats_the_source_alone(seed):
    x, y, faint, clear, truth = digits(seed)
    common = {"epochs": 12, "batch": 32, "optimiser": Adam(rate=3e-3), "warm_up": 3}

    def right(partners, weight):
        modules = train_adapted(
            small_normed,
            x,
            one_hot(y, 10).float(),
            partners[:600],
            Adaptation(**common, weight=weight),
            seed_for(seed, "adapted"),
        )
        return modules.probabilities(faint[600:])[0].argmax(1) == truth[600:].numpy()

    adapted, alone = right(faint, 0.5), right(faint, 0.0)
    assert beats(adapted, alone)
    assert not beats(alone, adapted)
    # The twin: with partners that are not faint the loss is the same, and it does not do.
    assert beats(adapted, right(clear, 0.5))


def test_without_weight_it_is_training_on_the_source():
    x, y, others, _, _ = digits(0)
    classes = one_hot(y, 10).float()
    common = {"epochs": 2, "batch": 100, "optimiser": SGD(rate=0.1, momentum=0.9)}
    adapted = train_adapted(
        small, x, classes, others, Adaptation(**common, weight=0.0), 3
    )
    plain = train_modules(
        small,
        Cohort(
            inputs=x, targets=classes, masks=np.ones((1, len(x)), dtype=bool), seeds=[3]
        ),
        Training(**common),
    )
    assert adapted.probabilities(others) == pytest.approx(
        plain.probabilities(others), abs=1e-6
    )
    again = train_adapted(small, x, classes, others, Adaptation(**common), 3)
    assert not np.allclose(
        adapted.probabilities(others), again.probabilities(others), atol=1e-3
    )


def test_labels_of_the_target_are_no_argument():
    names = set(inspect.signature(train_adapted).parameters)
    assert names == {
        "make",
        "source_inputs",
        "source_targets",
        "target_inputs",
        "recipe",
        "seed",
    }


def test_a_training_can_be_repeated_and_leaves_the_common_generator_alone():
    x, y, others, _, _ = digits(1)

    def noisy():
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, 16),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(16, 10),
        )

    classes = one_hot(y, 10).float()
    recipe = Adaptation(epochs=2, batch=100)
    # 101 records leave a batch of one, which a batch norm could not take; 37 partners go round.
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first, second, third = (
        train_adapted(noisy, x[:101], classes[:101], others[:37], recipe, seed)
        for seed in (5, 5, 6)
    )
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(first.probabilities(x), second.probabilities(x))
    assert not np.allclose(first.probabilities(x), third.probabilities(x), atol=1e-3)
    assert not first.modules[0].training
    assert not any(layer._forward_pre_hooks for layer in first.modules[0].modules())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch": 1}, "batch must be at least 2, got 1: the features of a single"),
        ({"weight": -0.1}, r"weight must be at least 0, .* got -0\.1 and"),
        ({"weight": math.inf}, "got inf and"),
        ({"steepness": 0.0}, r"got .* and 0\.0"),
        ({"epochs": 5, "warm_up": 5}, "first 5 of 5 epochs train on the source alone"),
        ({"kernels": 0}, "kernels must be at least 1"),
        ({"ratio": 1.0}, r"ratio of their widths above 1, got 5 and 1\.0"),
        ({"epochs": 0}, r"epochs \(0\)"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(options, match):
    with pytest.raises(InvalidInput, match=match):
        Adaptation(**options)


def test_features_that_do_not_fit_are_refused():
    s, t, ys, yt = sample(0)
    for parts in ((s, t[:, :2], ys, yt), (s, t, ys[1:], yt), (s, t, ys, yt[:, :3])):
        with pytest.raises(InvalidInput, match="do not fit class probabilities"):
            local_mmd(*parts)
    with pytest.raises(InvalidInput, match="kernels must be at least 1"):
        local_mmd(s, t, ys, yt, kernels=0)


def test_trainings_that_cannot_be_are_refused():
    x, y, others, _, _ = digits(2)
    classes, recipe = one_hot(y, 10).float(), Adaptation(epochs=1)
    with pytest.raises(InvalidInput, match="do not fit 700 source records"):
        train_adapted(small, x, classes[:-1], others, recipe, 0)
    with pytest.raises(InvalidInput, match="do not fit source records"):
        train_adapted(small, x, classes, others[..., :4], recipe, 0)
    with pytest.raises(InvalidInput, match="do not fit source records"):
        train_adapted(small, x, classes, others[:0], recipe, 0)
    with pytest.raises(InvalidInput, match=r"\(1, 10\) for 1 record, where \(1, 9\)"):
        train_adapted(small, x, classes[:, :9], others, recipe, 0)

    def no_linear():
        return nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())

    with pytest.raises(InvalidInput, match=r"Sequential calls no torch\.nn\.Linear"):
        train_adapted(no_linear, x, classes, others, recipe, 0)
    wild = Adaptation(epochs=1, optimiser=SGD(rate=1e30))
    with pytest.raises(TrainerFailed, match=r"diverged.*lower the rate"):
        train_adapted(small, x, classes, others, wild, 0)


def test_the_command_line_does_not_load_pytorch():
    code = (
        "import sys, reticent.cli, reticent.train; "
        "assert not {'torch', 'reticent.train.adaptation'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
