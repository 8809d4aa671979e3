"""What is inside a product at a record equals what PyTorch's autograd finds, record by record."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_softmax, softmax

from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import Encoder, Internals, NetworkProduct, Product
from reticent.product.internals import loss_and_delta

torch = pytest.importorskip("torch")
from torch import nn

from reticent.product import module_internals
from reticent.product.module_internals import internals_of_module

CLASSES = ("a", "b", "c")


def table(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "weight": rng.normal(70, 10, n),
            "city": rng.choice(["Oslo", "Bergen"], n),
        }
    )
    return table_from_frame(frame, target=np.array(CLASSES)[np.arange(n) % 3])


def network(hidden=(5, 7), activation="tanh"):
    rng = np.random.default_rng(1)
    encoder = Encoder.of(table())
    sizes = [encoder.width, *hidden, len(CLASSES)]
    return NetworkProduct(
        encoder=encoder,
        centre=np.array([40, 70, 0, 0], dtype=np.float32),
        scale=np.array([10, 10, 1, 1], dtype=np.float32),
        weights=tuple(
            rng.normal(size=(b, a)).astype(np.float32)
            for a, b in itertools.pairwise(sizes)
        ),
        biases=tuple(rng.normal(size=b).astype(np.float32) for b in sizes[1:]),
        activation=activation,
        classes=CLASSES,
    )


def as_module(product):
    """Return a network as the PyTorch module it is."""
    layers = []
    for weight, bias in zip(product.weights, product.biases, strict=True):
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight.data, linear.bias.data = map(torch.from_numpy, (weight, bias))
        layers += [linear, nn.ReLU() if product.activation == "relu" else nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def by_autograd(module, inputs, labels):
    """Return the length of each record's gradient by layer, one record after another."""
    layers = {}
    for name, parameter in module.named_parameters():
        layers.setdefault(name.rpartition(".")[0], []).append(parameter)
    rows = []
    for x, y in zip(inputs, torch.as_tensor(labels), strict=True):
        loss = nn.functional.cross_entropy(module.eval()(x[None]), y[None])
        slopes = torch.autograd.grad(
            loss, list(module.parameters()), allow_unused=True, materialize_grads=True
        )
        of = dict(zip(map(id, module.parameters()), slopes, strict=True))
        rows.append(
            [
                torch.cat([of[id(p)].flatten() for p in own]).double().norm().item()
                for own in layers.values()
            ]
        )
    return np.array(rows)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (5,), (5, 7)], ids=str)
def test_gradients_of_a_network_are_those_of_autograd(hidden, activation):
    product, data = network(hidden, activation), table()
    seen = product.internals(data.features, data.target)
    inputs = np.nan_to_num(
        (product.encoder.matrix(data.features) - product.centre) / product.scale
    )
    module = as_module(product)
    expected = by_autograd(module, torch.from_numpy(inputs), data.target)
    assert seen.gradient_norms == pytest.approx(expected, rel=1e-5)
    assert seen.lengths() == pytest.approx(np.linalg.norm(expected, axis=1), rel=1e-5)
    assert seen.layers == (*(f"hidden {k + 1}" for k in range(len(hidden))), "output")
    p = product.predict_proba(data.features)
    own = p[np.arange(len(data)), data.target]
    assert seen.losses == pytest.approx(-np.log(own), rel=1e-6)
    below = module[:-1](torch.from_numpy(inputs)).detach().numpy()
    assert seen.activations == pytest.approx(below, abs=1e-5)
    # The gradient of the last layer follows from activations, answers and labels.
    delta = p - np.eye(3)[data.target]
    last = np.linalg.norm(delta, axis=1) * np.sqrt((below**2).sum(axis=1) + 1)
    assert seen.gradient_norms[:, -1] == pytest.approx(last, rel=1e-5)
    # Twin: a length without the bias is another one.
    bare = np.linalg.norm(delta, axis=1) * np.linalg.norm(below, axis=1)
    assert abs(bare / expected[:, -1] - 1).max() > 0.01


def test_a_module_is_opened_like_the_network_it_is():
    product, data = network((300,), "relu"), table()
    own = product.internals(data.features, data.target)
    inputs = np.nan_to_num(
        (product.encoder.matrix(data.features) - product.centre) / product.scale
    )
    seen = internals_of_module(
        as_module(product), torch.from_numpy(inputs), data.target
    )
    # Sums of 300 products in single precision, in another order on every processor.
    assert seen.gradient_norms == pytest.approx(own.gradient_norms, rel=1e-4)
    assert seen.losses == pytest.approx(own.losses, rel=1e-4)
    assert seen.activations.shape == (40, 256)  # of 300 units
    assert seen.activations == pytest.approx(own.activations, abs=1e-5)


class Shared(nn.Module):
    """A layer that is called twice, weights that are used behind its back, and a parameter of no layer."""

    def __init__(self):
        super().__init__()
        self.twice, self.out = nn.Linear(6, 6), nn.Linear(6, 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        y = torch.relu(self.twice(torch.relu(self.twice(x))))
        return self.out(y) * self.scale + nn.functional.linear(x, self.out.weight)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.GRU(2, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.out(self.cells(x.view(len(x), 3, 2))[0][:, -1])


class Choosy(nn.Module):
    """A module whose way depends on the numbers, which cannot be vectorised."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 3)
        self.scale = nn.Parameter(torch.full((3,), 2.0))

    def forward(self, x):
        rows = [self.out(r) * (self.scale if r[0].item() > 0 else 1.0) for r in x]
        return torch.stack(rows)


class Experts(nn.Module):
    """Records go different ways, as in a mixture of experts; one layer is asked in vain."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)
        self.vain = nn.Linear(6, 3)

    def forward(self, x):
        self.vain(x)
        made, goes = x.new_zeros(len(x), 3), x[:, 0] > 0
        for expert, its in ((self.left, goes), (self.right, ~goes)):
            made = made.index_put((its.nonzero()[:, 0],), expert(x[its]))
        return made


class Cut(nn.Module):
    """A module whose answers do not depend on its parameters as far as autograd knows."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(x).detach()


MODULES = {
    "layer norm": lambda: nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(inplace=True), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 3, bias=False)
    ),
    "convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(8, 3)
    ),
    "no linear layer": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 3), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    ),
    "shared": Shared,
    "recurrent": Recurrent,
    "choosy": Choosy,
    "experts": Experts,
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_gradients_of_modules_are_those_of_autograd(name, monkeypatch):
    torch.manual_seed(3)
    module, inputs = MODULES[name](), torch.randn(17, 6)
    labels = np.arange(17) % 3
    expected = by_autograd(module, inputs, labels)
    module.train()
    module.get_parameter(next(n for n, _ in module.named_parameters())).requires_grad_(
        False
    )
    wanted = [p.requires_grad for p in module.parameters()]
    monkeypatch.setattr(module_internals, "CHUNK", 5)
    seen = internals_of_module(module, inputs, labels)
    assert seen.gradient_norms == pytest.approx(expected, rel=1e-5, abs=1e-7)
    with torch.no_grad():
        logits = module.eval()(inputs).double().numpy()
    own = log_softmax(logits, axis=1)[np.arange(17), labels]
    assert seen.losses == pytest.approx(-own, rel=1e-5)
    assert [p.requires_grad for p in module.parameters()] == wanted
    assert all(p.grad is None for p in module.parameters())
    assert not any(layer._forward_hooks for layer in module.modules())


def test_a_module_is_left_in_the_mode_it_was_in():
    module = MODULES["layer norm"]().train()
    module[2].eval()
    internals_of_module(module, torch.randn(4, 6), np.zeros(4, int))
    assert [layer.training for layer in module] == [True, True, False, True, True]


def test_what_is_nearly_certain_is_not_rounded_to_certain():
    """At a margin of 60 the probability is 1 in double precision, and the gradient is still told from none."""
    module = nn.Linear(1, 2, bias=False)
    module.weight.data = torch.tensor([[30.0], [-30.0]])
    inputs = torch.tensor([[1.0], [2.0]])
    seen = internals_of_module(module, inputs, np.zeros(2, int))
    expected = np.sqrt(2) * np.exp([-60.0, -120.0]) * [1, 2]
    assert seen.gradient_norms[:, 0] == pytest.approx(expected, rel=1e-5)
    # Twin: autograd in single precision loses the true class's share, or all of it.
    rounded = by_autograd(module, inputs, np.zeros(2, int))[:, 0]
    assert (rounded < 0.8 * expected).all()


LOGITS = arrays(np.float64, (4, 3), elements=st.floats(-30, 30))


@given(LOGITS, arrays(np.int64, 4, elements=st.integers(0, 2)))
def test_loss_and_delta_agree_with_their_formulas(logits, labels):
    loss, delta = loss_and_delta(logits, labels)
    rows = np.arange(4)
    assert loss == pytest.approx(-log_softmax(logits, axis=1)[rows, labels], abs=1e-12)
    naive = softmax(logits, axis=1) - np.eye(3)[labels]
    assert delta == pytest.approx(naive, abs=1e-12)
    assert (loss > 0).all()
    assert (delta[rows, labels] < 0).all()


@given(st.floats(-600, 600))
def test_two_classes_have_a_closed_form_however_certain(margin):
    loss, delta = loss_and_delta(np.array([[margin, 0.0]]), np.array([0]))
    assert loss[0] == pytest.approx(np.logaddexp(0.0, -margin), rel=1e-12)
    assert delta[0] == pytest.approx([-expit(-margin), expit(-margin)], rel=1e-12)


def test_products_of_trainers_can_be_opened(tmp_path):
    from reticent.product import Provenance, load_product, save_product
    from reticent.train import ModuleTrainer, Training

    trainer = ModuleTrainer(make=_small, training=Training(epochs=2), recipe="test")
    product = trainer.train(table(), seed=0)
    assert isinstance(product, Product)
    assert isinstance(network(), Product)
    data = table()
    seen = product.internals(data.features, data.target)
    own = product.predict_proba(data.features)[np.arange(40), data.target]
    assert np.exp(-seen.losses) == pytest.approx(own, abs=1e-5)
    save_product(tmp_path, product, Provenance())
    turned = (*CLASSES[1:], CLASSES[0])
    loaded, _ = load_product(tmp_path, classes=turned)
    again = loaded.internals(data.features, (data.target - 1) % 3)
    assert again.lengths() == pytest.approx(seen.lengths(), rel=1e-4)


def _small(inputs, classes):
    return nn.Sequential(nn.Linear(inputs, 4), nn.ReLU(), nn.Linear(4, classes))


def test_classes_in_another_order_have_the_same_gradients():
    product, data = network(), table()
    turned = product.with_classes((*CLASSES[1:], CLASSES[0]))
    seen = product.internals(data.features, data.target)
    again = turned.internals(data.features, (data.target - 1) % 3)
    assert again.gradient_norms == pytest.approx(seen.gradient_norms, rel=1e-5)
    assert np.array_equal(again.take(np.array([3])).losses, again.losses[[3]])


def test_no_records_have_no_internals():
    data = table()
    seen = network().internals(data.features.iloc[:0], data.target[:0])
    assert len(seen) == 0
    assert seen.gradient_norms.shape == (0, 3)


def inside(**changed):
    made = {
        "losses": np.ones(2),
        "gradient_norms": np.ones((2, 2)),
        "layers": ("hidden 1", "output"),
        "activations": np.ones((2, 3), dtype=np.float32),
    }
    return Internals(**(made | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gradient_norms": np.ones((3, 2))}, r"lengths of shape \(3, 2\) do not fit"),
        ({"activations": np.ones((1, 3))}, r"activations of shape \(1, 3\) do not fit"),
        ({"layers": ("a", "a")}, "give every layer one name"),
        ({"losses": np.array([1.0, np.nan])}, "losses must be finite .* span"),
        (
            {"gradient_norms": np.full((2, 2), -1.0)},
            "gradient lengths must be finite .* span",
        ),
        ({"activations": np.full((2, 3), np.inf)}, "activations are NaN or infinite"),
    ],
)
def test_internals_that_cannot_be_are_refused(changed, message):
    with pytest.raises(InvalidPredictions, match=message):
        inside(**changed)


def test_labels_and_modules_that_do_not_fit_are_refused():
    product, data = network(), table()
    with pytest.raises(InvalidInput, match="one class number from 0 to 2"):
        product.internals(data.features, data.target + 1)
    with pytest.raises(InvalidPredictions, match="39 labels for 40 records"):
        product.internals(data.features, data.target[1:])
    with pytest.raises(InvalidPredictions, match="column 'age'"):
        product.internals(data.features.drop(columns="age"), data.target)
    with pytest.raises(InvalidInput, match="has no parameter"):
        internals_of_module(nn.ReLU(), torch.zeros(2, 3), np.zeros(2, int))
    with pytest.raises(InvalidInput, match="Cut cannot be differentiated"):
        internals_of_module(Cut(), torch.zeros(2, 3), np.zeros(2, int))
    with pytest.raises(InvalidInput, match="0 records and 0 labels"):
        internals_of_module(nn.Linear(3, 2), torch.zeros(0, 3), np.zeros(0, int))
    with pytest.raises(InvalidPredictions, match="one row per record"):
        internals_of_module(
            nn.Sequential(nn.Linear(3, 2), nn.Flatten(0)),
            torch.zeros(2, 3),
            np.zeros(2, int),
        )
