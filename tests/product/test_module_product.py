"""A module is saved as weights and a list of operations, and answers the same afterwards; a crafted file runs nothing."""

import copy
import itertools
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra `torch` is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from reticent.data import table_from_frame
from reticent.errors import (
    InvalidPredictions,
    OutputRefused,
    UnsafeProduct,
)
from reticent.product import (
    Encoder,
    ModuleProduct,
    Provenance,
    load_product,
    must_be_storable,
    save_product,
)
from reticent.product.describe import described
from reticent.product.graph import Description, Graph, rebuilt

D, C = 36, 3
SAME = 1e-6


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Residual(nn.Module):
    """Convolutions with group norm, a residual sum in place, functions where layers could stand."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.block = nn.Sequential(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.GroupNorm(2, 4)),
            nn.ReLU(inplace=True),
        )
        self.last = nn.Linear(4 * 9, C)

    def forward(self, x):
        x = functional.relu(self.first(x.view(x.size(0), 1, 6, 6)))
        x += self.block(x)
        x = functional.max_pool2d(x, 2)
        return self.last(torch.flatten(x, 1))


class Shared(nn.Module):
    """One layer asked twice, one weight in two layers, parameters and buffers of its own, an argument with a default."""

    def __init__(self):
        super().__init__()
        self.again = nn.Linear(D, D)
        self.tied = nn.Linear(D, D, bias=False)
        self.tied.weight = self.again.weight
        self.scale = nn.Parameter(torch.randn(D))
        self.register_buffer("shift", torch.randn(D))
        self.out = nn.Linear(2 * D, C)

    def forward(self, x, mask=None):
        if mask is not None:
            x = x * mask
        h = torch.tanh(self.again(self.again(x))) * self.scale - self.shift
        h = torch.cat([h, self.tied(x).softmax(-1)], dim=1)
        h = functional.dropout(h, 0.5, self.training)
        return self.out(functional.layer_norm(h, h.shape[1:]))


class Attending(nn.Module):
    """Tokens, attention and a recurrent layer, shapes worked out on the way."""

    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(6, 2, batch_first=True)
        self.walk = nn.LSTM(6, 5, batch_first=True)
        self.out = nn.Linear(11, C)

    def forward(self, x):
        n = x.shape[0]
        tokens = x.reshape(n, -1, 6)
        seen, _ = self.attend(tokens, tokens, tokens, need_weights=False)
        walked, (last, _) = self.walk(tokens + seen)
        h = torch.cat((seen.mean(dim=1), last[-1]), 1)
        where = torch.where(h > 0, h, 0.1 * h)
        return self.out(where) + walked[:, -1, :C] ** 2


class Embedding(nn.Module):
    """Whole numbers looked up."""

    def __init__(self):
        super().__init__()
        self.known = nn.Embedding(2, 4)
        self.out = nn.Linear(4 * D, C)

    def forward(self, x):
        return self.out(self.known((x > 0).long()).flatten(1))


class Stronger(nn.Linear):
    """Derived from a layer of the list, and not the same."""

    def forward(self, x):
        return 2 * functional.linear(x, self.weight, self.bias)


def normed():
    module = nn.Sequential(
        nn.Linear(D, 8),
        nn.BatchNorm1d(8),
        nn.Dropout(0.5),
        nn.PReLU(),
        nn.LayerNorm(8),
        nn.Hardtanh(-float("inf"), 1.0),
        nn.Unflatten(1, (2, 4)),
        nn.Conv1d(2, 3, 3, padding="same"),
        nn.AvgPool1d(2),
        nn.Flatten(),
        nn.Linear(6, C),
    )
    module.train()
    for _ in range(3):  # running statistics that are not those of a fresh layer
        module(2 + 3 * torch.randn(16, D))
    return module


MAKERS = {
    "residual": Residual,
    "shared": Shared,
    "attending": Attending,
    "embedding": Embedding,
    "derived": lambda: Stronger(D, C),
    "alone": lambda: nn.Linear(D, C),
    "normed": normed,
}


def table(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(5, 2, (n, D)), columns=[f"x{k}" for k in range(D)])
    frame.iloc[3, 0] = np.nan
    return table_from_frame(frame, target=np.array(["a", "b", "c"])[rng.integers(0, C, n)])  # fmt: skip


def product(module):
    centre, scale = np.full(D, 5, dtype=np.float32), np.full(D, 2, dtype=np.float32)
    return ModuleProduct(
        encoder=Encoder.of(table()),
        module=module.eval(),
        centre=centre,
        scale=scale,
        classes=("a", "b", "c"),
        warnings=("one by one",),
    )


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_saved_and_loaded_it_answers_the_same(make, tmp_path):
    torch.manual_seed(1)
    made, features = product(make()), table().features
    save_product(tmp_path, made, Provenance(recipe="mine"))
    loaded, known = load_product(tmp_path, classes=("a", "b", "c"))
    file = (tmp_path / "product.safetensors").read_bytes()
    inside = ModuleProduct.load(file).module
    assert isinstance(inside, Graph)
    assert known.recipe == "mine"
    assert loaded.warnings == ("one by one",)
    assert loaded.predict_proba(features) == pytest.approx(
        made.predict_proba(features), abs=SAME
    )
    x = torch.randn(50, D)
    with torch.no_grad():
        assert torch.allclose(inside(x), made.module(x), atol=SAME, rtol=SAME)
    # Again from what was loaded, with the classes in another order.
    turned, _ = load_product(tmp_path, classes=("c", "a", "b"))
    save_product(tmp_path / "again", turned, Provenance())
    again, _ = load_product(tmp_path / "again", classes=("a", "b", "c"))
    expected = made.predict_proba(features)
    assert turned.predict_proba(features) == pytest.approx(
        expected[:, [2, 0, 1]], abs=SAME
    )
    assert again.predict_proba(features) == pytest.approx(expected, abs=SAME)


def test_answers_are_those_of_the_formula():
    torch.manual_seed(2)
    module, features = nn.Linear(D, C), table().features
    made = product(module)
    seen = np.nan_to_num((features.to_numpy() - 5) / 2)
    logits = seen @ module.weight.detach().numpy().T + module.bias.detach().numpy()
    odds = np.exp(logits)
    assert made.predict_proba(features) == pytest.approx(
        odds / odds.sum(1, keepdims=True), abs=1e-5
    )
    assert made.inputs(features).numpy() == pytest.approx(seen, abs=1e-5)
    assert made.predict_proba(features[:0]).shape == (0, C)
    with pytest.raises(InvalidPredictions, match="'x7'"):
        made.predict_proba(features.drop(columns="x7"))


def test_a_module_is_described_as_it_answers_and_left_as_it_was():
    torch.manual_seed(3)
    module = normed().train()
    again = rebuilt(described(module, inputs=D, classes=C), inputs=D, classes=C)
    assert module.training
    assert all(layer.training for layer in module.modules())
    x = torch.randn(9, D)
    with torch.no_grad():
        assert not torch.allclose(module(x), again(x), atol=1e-2)  # dropout, batch
        assert torch.allclose(module.eval()(x), again(x), atol=SAME)
    assert torch.equal(again(x), again(x))


def test_a_weight_in_two_layers_is_one_parameter_again():
    module = Shared()
    again = rebuilt(described(module, inputs=D, classes=C), inputs=D, classes=C)
    count = sum(p.numel() for p in module.parameters())
    assert sum(p.numel() for p in again.parameters()) == count
    x = torch.randn(4, D)
    for made in (module.eval(), again):
        made(x).square().sum().backward()
    assert torch.allclose(module.again.weight.grad, again.layers[0].weight.grad, atol=1e-4)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(
    widths=st.lists(st.integers(1, 6), min_size=0, max_size=3),
    functions=st.lists(st.sampled_from(["relu", "tanh", "sigmoid", "exp"]), max_size=3),
    seed=st.integers(0, 99),
)
def test_any_stack_of_layers_and_functions(widths, functions, seed):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [D, *widths, C]
            self.parts = nn.ModuleList(
                nn.Linear(a, b) for a, b in itertools.pairwise(sizes)
            )

        def forward(self, x):
            for k, part in enumerate(self.parts):
                x = part(x)
                if k < len(functions):
                    x = getattr(torch, functions[k])(x) / 2
            return x

    torch.manual_seed(seed)
    module, x = Stack().eval(), torch.randn(5, D)
    again = rebuilt(described(module, inputs=D, classes=C), inputs=D, classes=C)
    assert torch.allclose(module(x), again(x), atol=SAME, rtol=SAME)


class Branching(nn.Linear):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else super().forward(-x)


class Sorting(nn.Linear):
    def forward(self, x):
        return super().forward(torch.sort(x)[0])


class Method(nn.Linear):
    def forward(self, x):
        return super().forward(x.cummax(1)[0])


class Data(nn.Linear):
    def forward(self, x):
        return super().forward(x.data)


class Drawing(nn.Linear):
    def forward(self, x):
        return super().forward(functional.dropout(x, 0.5, training=True))


class Noisy(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.randn(C)


class Pair(nn.Linear):
    def forward(self, x):
        return super().forward(x), x


class Overwriting(nn.Linear):
    """What comes first is changed before it is used again."""

    def forward(self, x):
        y = x * 1.0
        functional.relu(y, inplace=True)
        return super().forward(y)


def hooked():
    module = nn.Linear(D, C)
    module.register_forward_hook(lambda _layer, _given, made: made + 1)
    return module


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Branching(D, C), "not a fixed sequence of operations.*torch.where"),
        (lambda: Sorting(D, C), "calls sort|it calls .*sort"),
        (lambda: Method(D, C), "the method cummax of a tensor"),
        (lambda: Data(D, C), "the attribute data of a tensor"),
        (lambda: Drawing(D, C), "it calls .*dropout"),
        (lambda: Noisy(D, C), "gives other answers"),
        (lambda: Pair(D, C), "it returns a tuple"),
        (lambda: Overwriting(D, C), "gives other answers"),
        (hooked, "gives other answers.*hooks"),
        (lambda: nn.Linear(D, C + 1), r"answer of shape \(2, 4\)"),
        (
            lambda: nn.Sequential(nn.TransformerEncoderLayer(D, 2), nn.Linear(D, C)),
            "the layer 0 is a TransformerEncoderLayer, which is not on the list",
        ),
        (
            lambda: nn.Sequential(nn.Embedding(3, C, max_norm=1.0)),
            "the layer 0 is a Embedding, and its max_norm is 1.0",
        ),
    ],
)
def test_what_cannot_be_written_down_is_told_in_one_sentence(make, why, tmp_path):
    module = make()
    with pytest.raises(OutputRefused, match=why) as caught:
        must_be_storable(module, inputs=D, classes=C)
    assert "or do not save it" in str(caught.value)
    with pytest.raises(OutputRefused, match=why):
        save_product(tmp_path, product(module), Provenance())
    assert not (tmp_path / "product.safetensors").exists()


def good():
    torch.manual_seed(4)
    module = nn.Sequential(nn.Linear(D, 5), nn.ReLU(), nn.Linear(5, C))
    made = described(module, inputs=D, classes=C)
    return copy.deepcopy(dict(made.words)), dict(made.tensors)


def call(name, *arguments, kind="function", **named):
    return {"kind": kind, "name": name, "arguments": list(arguments), "named": named}


X = {"value": 0}


def then(*steps):
    """Return a way to put steps before the answer of a good description."""

    def change(words, tensors):
        words["steps"] = [*steps, *words["steps"]]
        for step in words["steps"][len(steps) :]:
            for argument in step["arguments"]:
                argument["value"] += len(steps) if argument["value"] else 0
        words["output"] += len(steps)

    return change


def layer(key="0", **changed):
    def change(words, tensors):
        words["layers"][key].update(changed)

    return change


def setting(**changed):
    def change(words, tensors):
        words["layers"]["0"]["settings"].update(changed)

    return change


def put(**changed):
    return lambda words, tensors: words.update(changed)


def bigger(words, tensors):
    tensors["0"] = torch.zeros(6, D)


def doubles(words, tensors):
    tensors["0"] = tensors["0"].double()


def missing(words, tensors):
    del tensors["3"]


def forward_reference(words, tensors):
    words["steps"][0]["arguments"] = [{"value": 2}]


def own_weights_changed(words, tensors):
    words["tensors"] = {"w": {"tensor": "1", "parameter": True}}
    then(
        {"kind": "tensor", "name": "w"},
        call("functional.relu", {"value": 1}, True),
    )(words, tensors)


def doubling(words, tensors):
    steps = [call("torch.cat", {"tuple": [X, X]}, 1)]
    steps += [call("torch.cat", {"tuple": [{"value": k}] * 2}, 1) for k in range(1, 40)]
    then(*steps)(words, tensors)


DEEP = {"tuple": []}
for _ in range(50):
    DEEP = {"tuple": [DEEP]}

CRAFTED = {
    "a foreign layer": (layer(layer="os.system"), "is a 'os.system'.*not on the list"),
    "a hidden layer": (layer(layer="__class__"), "not on the list"),
    "no layer at all": (layer(layer=["Linear"]), "not on the list"),
    "a container": (layer(layer="Sequential"), "not on the list"),
    "a foreign setting": (setting(device="cuda"), "the setting 'device'"),
    "a huge layer": (setting(in_features=2**30), "should have the shape .*1073741824"),
    "a setting beyond numbers": (setting(in_features=10**30), "too large"),
    "a setting of the wrong kind": (setting(in_features="x"), "cannot be built"),
    "other tensors": (layer(tensors={"weight": "0"}), "other tensors than a Linear"),
    "tensors by attribute": (
        layer(tensors={"weight": "0", "__class__": "1"}),
        "other tensors than a Linear",
    ),
    "wrong shapes": (bigger, r"should have the shape \(5, 36\), and has the shape \(6, 36\)"),
    "wrong numbers": (doubles, "should have the shape"),
    "a tensor that is not there": (missing, "not there"),
    "a foreign function": (then(call("builtins.eval", "1")), "'builtins.eval'"),
    "a function of torch": (then(call("torch.load", "x")), "'torch.load'"),
    "a hidden method": (then(call("__reduce__", X, kind="method")), "'__reduce__'"),
    "a method in place": (then(call("zero_", X, kind="method")), "'zero_'"),
    "a hidden attribute": (
        then(call("__class__", X, kind="attribute")),
        "attribute '__class__'",
    ),
    "a foreign kind": (then(call("x", X, kind="exec")), "no operation"),
    "a kind that is a list": (then(call("x", X, kind=["exec"])), "no operation"),
    "a layer that is not there": (then(call("9", X, kind="layer")), "not there"),
    "a tensor path": (
        then({"kind": "tensor", "name": "description.words"}),
        "not there",
    ),
    "a later value": (forward_reference, "value 2, which does not exist before it"),
    "a value of its own": (then(call("torch.relu", {"value": 1})), "does not exist before"),
    "a value below": (then(call("torch.relu", {"value": -1})), "does not exist before"),
    "a value that is a truth": (then(call("torch.relu", {"value": True})), "does not exist"),
    "no such answer": (put(output=99), "which no step gives"),
    "the input as answer": (put(output=0), r"answer of shape \(2, 36\)"),
    "no steps": (put(steps="x"), "its steps cannot be read"),
    "layers in a list": (put(layers=[]), "its layers cannot be read"),
    "too many steps": (
        then(*[call("torch.relu", X) for _ in range(10_001)]),
        "exceeds 10,000 steps",
    ),
    "words for devices": (then(call("to", X, "cuda", kind="method")), "passes a string"),
    "a result written elsewhere": (then(call("torch.relu", X, out=X)), "argument out"),
    "in place": (then(call("functional.relu", X, inplace=True)), "argument inplace"),
    "weights of its own changed": (own_weights_changed, "changes its own weights"),
    "shapes that do not fit": (then(call("torch.matmul", X, X)), "do not fit"),
    "shapes from values": (
        then(call("operator.gt", X, 0), call("torch.where", {"value": 1})),
        "do not fit",
    ),
    "huge results": (
        then(call("repeat", X, 1, 2**30, kind="method")),
        "gives .* numbers for 2 records",
    ),
    "pieces without end": (
        then(
            call("repeat", X, 1, 2**10, kind="method"),
            *[call("split", {"value": 1}, 1, 1, kind="method") for _ in range(40)],
        ),
        "gives .* numbers for 2 records",
    ),
    "much that is kept": (
        then(
            *[call("repeat", X, 1, 2**18, kind="method") for _ in range(9)],
            call("torch.cat", {"tuple": [{"value": k} for k in range(1, 10)]}, 1),
        ),
        "gives .* numbers for 2 records",
    ),
    "results that grow": (doubling, "gives .* numbers for 2 records"),
    "a huge tuple": (
        then(
            call("shape", X, kind="attribute"),
            call("operator.mul", {"value": 1}, 2**30),
        ),
        "applied to no tensors",
    ),
    "a huge power": (
        then(call("size", X, 1, kind="method"), call("operator.pow", {"value": 1}, 2**30)),
        "applied to no tensors",
    ),
    "too many pieces": (
        then(
            call("repeat", X, 1, 2**12, kind="method"),
            call("split", {"value": 1}, 1, 1, kind="method"),
        ),
        "too many pieces",
    ),
    "a method of no tensor": (
        then(
            call("shape", X, kind="attribute"),
            call("view", {"value": 1}, kind="method"),
        ),
        "applied to a Size",
    ),
    "tuples without end": (then(call("torch.cat", DEEP)), "more than 8 tuples"),
    "an argument of two kinds": (
        then(call("torch.relu", {"value": 0, "tuple": []})),
        "cannot be read",
    ),
    "a foreign type": (
        then(call("to", X, {"dtype": "__class__"}, kind="method")),
        "cannot be read",
    ),
}  # fmt: skip


def crafted_file(file, words, tensors):
    from safetensors.torch import save

    content = {
        "numbers": [f"x{k}" for k in range(D)],
        "categories": [],
        "classes": ["a", "b", "c"],
        "warnings": [],
        "module": words,
    }
    arrays = {"centre": torch.zeros(D), "scale": torch.ones(D)}
    arrays |= {f"module.{name}": t.detach().clone() for name, t in tensors.items()}
    file.write_bytes(save(arrays, metadata={"module": json.dumps(content)}))


def test_the_untouched_file_is_loaded(tmp_path):
    crafted_file(tmp_path / "product.safetensors", *good())
    loaded, _ = load_product(tmp_path, classes=("a", "b", "c"))
    assert loaded.predict_proba(table().features).shape == (60, C)


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused_and_runs_nothing(name, tmp_path, monkeypatch):
    change, why = CRAFTED[name]
    words, tensors = good()
    change(words, tensors)
    crafted_file(tmp_path / "product.safetensors", words, tensors)
    asked = []
    monkeypatch.setattr(Graph, "forward", lambda *_: asked.append(1))
    with pytest.raises(UnsafeProduct, match=f"cannot be read as a module.*({why})"):
        ModuleProduct.load((tmp_path / "product.safetensors").read_bytes())
    assert not asked


@pytest.mark.parametrize("damage", ["cut", "no json", "deep json", "scaling", "words"])
def test_a_damaged_file_is_refused(damage, tmp_path):
    from safetensors.torch import save

    file = tmp_path / "product.safetensors"
    crafted_file(file, *good())
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-9])
    elif damage == "no json":
        file.write_bytes(save({"a": torch.zeros(1)}, metadata={"module": "{"}))
    elif damage == "deep json":
        deep = "[" * 100_000 + "]" * 100_000
        file.write_bytes(save({"a": torch.zeros(1)}, metadata={"module": deep}))
    elif damage == "words":
        file.write_bytes(save({"a": torch.zeros(1)}, metadata={"module": "[]"}))
    else:
        words = {"numbers": ["a"], "categories": [], "classes": ["a"], "warnings": []}
        arrays = {"centre": torch.zeros(2), "scale": torch.zeros(1)}
        file.write_bytes(save(arrays, metadata={"module": json.dumps(words)}))
    with pytest.raises(UnsafeProduct, match="cannot be read as a module"):
        ModuleProduct.load(file.read_bytes())


def test_memory_follows_what_a_module_makes_of_a_record():
    class Wide(nn.Linear):
        def forward(self, x):
            return super().forward(x.repeat(1, 2**14).view(x.size(0), -1, D).mean(1))

    again = rebuilt(described(Wide(D, C), inputs=D, classes=C), inputs=D, classes=C)
    # The input, what it is repeated to, and the same in another shape: at most so many at once.
    assert D * 2**14 <= again.largest <= 2 * D * (2**14 + 1)
    assert again.at_once == 2**26 // again.largest < 1024
    small = rebuilt(
        Description(words=good()[0], tensors=good()[1]), inputs=D, classes=C
    )
    assert small.at_once == 1024


def test_records_that_a_stored_module_cannot_answer_about_are_told():
    class Looking(nn.Module):
        def __init__(self):
            super().__init__()
            self.known = nn.Embedding(3, C)

        def forward(self, x):
            return self.known(x[:, 0].abs().long())

    made = described(Looking(), inputs=D, classes=C)
    again = rebuilt(made, inputs=D, classes=C)
    with pytest.raises(InvalidPredictions, match="cannot be carried out on these"):
        again(torch.full((2, D), 7.0))


def test_loading_needs_no_code_of_the_user(tmp_path):
    """In a fresh process, which has never seen the classes of this file."""
    made = product(Residual())
    save_product(tmp_path, made, Provenance())
    table().features.to_pickle(tmp_path / "features")
    code = (
        "import sys, pandas as pd, torch; torch.set_num_threads(1)\n"
        "from reticent.product import load_product\n"
        "product, _ = load_product(sys.argv[1], classes=('a', 'b', 'c'))\n"
        "print(product.predict_proba(pd.read_pickle(sys.argv[1] + '/features'))[:3].tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    expected = made.predict_proba(table().features)[:3]
    assert np.array(json.loads(done.stdout)) == pytest.approx(expected, abs=SAME)
