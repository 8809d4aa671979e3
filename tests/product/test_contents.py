"""Everything in a file is found, nothing in it is run, and nothing in it can raise a foreign exception."""

import base64
import gzip
import io
import json
import struct
import zipfile
import zlib
from hashlib import sha256

import numpy as np
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from reticent.errors import InvalidInput
from reticent.product import (
    FittedProduct,
    Provenance,
    contents_of,
    read_contents,
    save_product,
)
from reticent.product.contents import Contents, Tree, place_of
from reticent.product.contents._binary import floats_in, ubjson_value

RNG = np.random.default_rng(42)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
ROWS = RNG.normal(size=(50, 3))


def at(contents: Contents, place: str) -> list[np.ndarray]:
    return [a.values for a in contents.arrays if a.place == place]


def holds(contents: Contents, values: np.ndarray) -> bool:
    """Whether all numbers stand together in one array, in any order and precision."""
    wanted = np.sort(values.ravel().astype(np.float32))
    return any(
        a.values.size >= wanted.size
        and np.isin(wanted, a.values.ravel().astype(np.float32)).all()
        for a in contents.arrays
        if a.values.dtype.kind in "iuf"
    )


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=values.dtype.hasobject)
    return buffer.getvalue()


def archive(members: dict[str, bytes], **about) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", about.get("compression", 0)) as file:
        for name, data in members.items():
            file.writestr(name, data)
        file.comment = about.get("comment", b"")
    return buffer.getvalue()


def test_a_folder_is_read_with_its_product_and_its_provenance(tmp_path):
    model = KNeighborsClassifier().fit(X, Y)
    product = FittedProduct(estimator=model, classes=("no", "yes"))
    # A hash looks like packed bytes and is none, which is no finding.
    notes = Provenance(recipe="the nearest", data_fingerprint=sha256(b"x").hexdigest())
    folder = save_product(tmp_path, product, notes)
    contents = read_contents(folder)
    assert np.array_equal(at(contents, "product.skops:_fit_X")[0], X)
    assert np.array_equal(at(contents, "product.skops:_y")[0], Y)
    assert any("the nearest" in texts.values for texts in contents.texts)
    assert contents.size == sum(f.stat().st_size for f in folder.iterdir())
    assert not contents.unread
    alone = contents_of(product)
    assert np.array_equal(at(alone, "product.skops:_fit_X")[0], X)
    assert {"product.skops:_y", "product.skops:_fit_X"} <= {*alone.with_axis(120)}


def test_as_many_nodes_as_members_are_a_coincidence():
    """One forest in a hundred has a column that as many nodes compare as there are members; that is no array with an entry for each."""
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    contents = read_contents(skops.io.dumps(forest))
    lengths = {length for array in contents.arrays for length in array.shape}
    nodes = {tree.tree_.node_count for tree in forest.estimators_}
    by_column = {len(a.values) for a in contents.arrays if ".thresholds#" in a.path}
    assert nodes | by_column <= lengths
    for length in (nodes | by_column) - {len(forest.estimators_), 1, 2}:
        assert contents.with_axis(length) == ()
    # The twin: a model that keeps something of each member is still noticed.
    bagged = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X, Y)
    kept = read_contents(skops.io.dumps(bagged)).with_axis(len(X))
    assert any("oob_decision_function_" in place for place in kept)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=4),
        RandomForestClassifier(3, max_depth=3, random_state=0),
        DecisionTreeRegressor(max_depth=4),
        GradientBoostingRegressor(n_estimators=3),
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_of_scikit_learn_are_those_that_were_trained(model):
    model.fit(X, Y)
    contents = read_contents(skops.io.dumps(model))
    if isinstance(model, HistGradientBoostingClassifier):
        nodes = [stage[0].nodes for stage in model._predictors]
        for tree, node in zip(contents.trees, nodes, strict=True):
            assert np.array_equal(tree.counts, node["count"])
            internal = tree.features >= 0
            assert np.array_equal(tree.thresholds[internal], node["num_threshold"][internal])  # fmt: skip
        return
    trees = [e.tree_ for e in np.ravel(getattr(model, "estimators_", [model]))]
    for tree, trained in zip(contents.trees, trees, strict=True):
        leaf = trained.children_left < 0
        assert np.array_equal(tree.thresholds[~leaf], trained.threshold[~leaf])
        assert np.array_equal(tree.features[~leaf], trained.feature[~leaf])
        assert np.array_equal(tree.left, trained.children_left)
        assert np.array_equal(tree.counts, trained.weighted_n_node_samples)
        assert np.allclose(tree.values, trained.value.reshape(len(leaf), -1))
        assert tree.shares == hasattr(model, "classes_")


def test_boosters_are_read_in_both_forms():
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3).fit(X, X[:, 1])
    booster = model.get_booster()
    frame = booster.trees_to_dataframe()
    for data in (
        skops.io.dumps(model),
        bytes(booster.save_raw("json")),
        bytes(booster.save_raw("ubj")),
    ):
        contents = read_contents(data)
        assert len(contents.trees) == 4
        assert not contents.unread
        split = frame[frame["Feature"] != "Leaf"]["Split"].to_numpy()
        read = np.concatenate([t.thresholds[t.features >= 0] for t in contents.trees])
        assert np.allclose(np.sort(read), np.sort(split), rtol=1e-5)
        assert contents.trees[0].counts[0] == len(X)
        assert all(tree.strict for tree in contents.trees)


def test_categories_and_tokens_are_texts_and_stand_in_no_place():
    towns = np.array([["Ulm"], ["Bonn"], ["Ulm"], [None]], dtype=object)
    contents = read_contents(skops.io.dumps(OneHotEncoder().fit(towns)))
    assert {"Ulm", "Bonn"} <= {t for texts in contents.texts for t in texts.values}
    words = TfidfVectorizer().fit(["smith was ill", "jones was well"])
    contents = read_contents(skops.io.dumps(words))
    vocabulary = next(t for t in contents.texts if t.place == ":vocabulary_.keys")
    assert set(vocabulary.values) == {"smith", "was", "ill", "jones", "well"}
    places = [thing.place for thing in (*contents.arrays, *contents.texts)]
    assert not any("smith" in place for place in places)
    assert place_of("a{smith}[7].b") == "a{}[].b"


def hidden_places() -> dict[str, bytes]:
    schema = json.dumps({"__loader__": "JsonNode", "content": "1"}).encode()
    packed = base64.b64encode(ROWS.astype("<f4").tobytes()).decode()
    text = " ".join(f"{value!r}" for value in ROWS.ravel().tolist())
    beside = bytearray(npy(ROWS)) + npy(ROWS)
    noted = io.BytesIO()
    with zipfile.ZipFile(noted, "w") as file:
        info = zipfile.ZipInfo("schema.json")
        info.comment = ROWS.tobytes()
        file.writestr(info, schema)
    return {
        "the name of a class": archive({"schema.json": json.dumps({"__loader__": "JsonNode", "content": "1", "__class__": text}).encode()}),
        "a type of a key": archive({"schema.json": json.dumps({"__loader__": "DictNode", "content": {}, "key_types": {"content": ROWS.tolist()}}).encode()}),
        "an unknown entry": archive({"schema.json": json.dumps({"__loader__": "JsonNode", "content": "1", "more": ROWS.tolist()}).encode()}),
        "an array": npy(ROWS),
        "an array by columns": npy(np.asfortranarray(ROWS)),
        "after an array": bytes(beside),
        "half precision": npy(ROWS.astype(np.float16).astype(np.float32)),
        "a structured array": npy(
            np.rec.fromarrays([ROWS.ravel(), np.arange(150)], names="x,n")
        ),
        "raw doubles": b"\x01\x02\x03" + ROWS.tobytes(),
        "raw singles": b"\xff" + ROWS.astype("<f4").tobytes(),
        "base64 in JSON": json.dumps({"note": packed}).encode(),
        "hexadecimal": json.dumps([ROWS.tobytes().hex()]).encode(),
        "numbers as a text": json.dumps({"a": [text]}).encode(),
        "numbers as texts": json.dumps([f"{v!r}" for v in ROWS.ravel().tolist()]).encode(),
        "rows of JSON": json.dumps({"a": {"b": ROWS.tolist()}}).encode(),
        "an unnamed member": archive({"schema.json": schema, "x.bin": ROWS.tobytes()}),
        "a member twice": archive({"schema.json": schema, "SCHEMA.json": npy(ROWS)}),
        "the comment": archive({"schema.json": schema}, comment=npy(ROWS)),
        "a member's comment": noted.getvalue(),
        "before the archive": ROWS.tobytes() + archive({"schema.json": schema}),
        "a zip in a zip": archive({"a": archive({"b": npy(ROWS)}, compression=8)}),
        "gzip": gzip.compress(npy(ROWS)),
        "zlib in base64": json.dumps([base64.b64encode(zlib.compress(npy(ROWS))).decode()]).encode(),
        "a pickle": b"\x80\x04\x95" + ROWS.tobytes() + b".",
        "safetensors": safetensors({"w": ROWS.astype("<f4")}),
        "safetensors' metadata": safetensors({"w": np.zeros(1, "<f4")}, note=packed),
        "after the tensors": safetensors({"w": np.zeros(9, "<f4")}) + ROWS.tobytes(),
    }  # fmt: skip


def safetensors(tensors: dict[str, np.ndarray], **metadata: str) -> bytes:
    header, body = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        data = values.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": values.shape,
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    words = json.dumps(header).encode()
    return struct.pack("<Q", len(words)) + words + body


@pytest.mark.parametrize("place", hidden_places())
def test_rows_are_found_wherever_they_are_hidden(place):
    rows = ROWS.astype(np.float16) if place == "half precision" else ROWS
    assert holds(read_contents(hidden_places()[place]), rows)


def test_floats_are_not_seen_in_random_bytes_or_in_text():
    assert not list(floats_in(RNG.bytes(50_000)))
    assert not list(floats_in(b"it was a dark and stormy night " * 100))
    assert not list(floats_in(bytes(10_000)))


def bomb(size: int) -> bytes:
    return archive({"a.npy": bytes(size)}, compression=zipfile.ZIP_DEFLATED)


def hostile() -> dict[str, tuple[bytes, str]]:
    claims = npy(np.zeros(3)).replace(b"(3,)", b"(3,)".replace(b"3", b"9" * 9))
    huge = np.lib.format.magic(1, 0) + struct.pack("<H", 70)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,)}"
    huge += header.ljust(69) + b"\n"
    schema = {"__loader__": "NdArrayNode", "type": "numpy", "file": "absent.npy"}
    encrypted = bytearray(archive({"a": b"x" * 50}))
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    return {
        "a bomb": (bomb(2**22), "unpacks to more than"),
        "a claim of size": (huge, "bytes follow"),
        "a damaged array": (claims, ""),
        "objects": (npy(np.array([{}, []], dtype=object)), "only pickle"),
        "no archive": (b"PK\x03\x04" + RNG.bytes(200), "BadZipFile"),
        "a damaged schema": (archive({"schema.json": b"{"}), "its schema"),
        "an absent member": (archive({"schema.json": json.dumps(schema).encode()}), "absent"),
        "an encrypted member": (bytes(encrypted), "encrypted"),
        "deep JSON": (b"[" * 5000 + b"]" * 5000, "JSON"),
        "UBJSON that ends": (b"{L" + b"\x00" * 7 + b"\x05ab", "too early"),
        "UBJSON without end": (b"{U\x01a[$Z#L" + b"\x7f" + b"\xff" * 7, "take no bytes"),
        "safetensors that end": (struct.pack("<Q", 12) + b"{'a'        " + b"x", "JSONDecodeError"),
        "a pickle": (b"\x80\x04\x8c\x05posix" + RNG.bytes(300), "a pickle"),
        "random bytes": (b"\xfe" + RNG.bytes(3000), "no known form"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", hostile())
def test_damaged_and_hostile_files_are_noted_and_never_raise(kind):
    data, why = hostile()[kind]
    contents = read_contents(data, most_bytes=2**20)
    if why:
        assert any(why in unread.why for unread in contents.unread), contents.unread


def test_layers_without_end_are_given_up():
    data = npy(ROWS)
    for _ in range(8):
        data = gzip.compress(data)
    assert "packed more than" in read_contents(data).unread[0].why


def test_a_tree_whose_nodes_go_round_is_unread():
    model = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    data = skops.io.dumps(model)
    nodes = model.tree_.__getstate__()["nodes"]
    circle = nodes.copy()
    circle["left_child"][0] = 0
    contents = read_contents(data.replace(nodes.tobytes(), circle.tobytes()))
    # The archive's checksum would catch it as well; a stranger writes a fitting one.
    assert not contents.trees
    assert contents.unread
    with pytest.raises(InvalidInput, match="do not form a tree"):
        Tree(
            path="",
            features=np.array([0, -1]),
            thresholds=np.zeros(2),
            left=np.array([1, -1]),
            right=np.array([1, -1]),
            missing_left=np.zeros(2, dtype=bool),
            counts=np.ones(2),
            values=np.ones((2, 1)),
        )


WHOLE = skops.io.dumps(RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y))


@given(st.binary(max_size=400))
def test_no_bytes_raise(data):
    read_contents(data)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(st.data())
def test_no_damage_raises(data):
    damaged = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 20))):
        damaged[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(
            st.integers(0, 255)
        )
    read_contents(bytes(damaged[: data.draw(st.integers(1, len(WHOLE)))]))


def naive_ubjson(value) -> bytes:
    """A second implementation, of the other direction."""
    match value:
        case None | bool():
            return {None: b"Z", True: b"T", False: b"F"}[value]
        case int():
            return b"L" + struct.pack(">q", value)
        case float():
            return b"D" + struct.pack(">d", value)
        case str():
            return b"S" + naive_ubjson(len(value.encode())) + value.encode()
        case list():
            return b"[" + b"".join(map(naive_ubjson, value)) + b"]"
        case _:
            pairs = (naive_ubjson(k)[1:] + naive_ubjson(v) for k, v in value.items())
            return b"{" + b"".join(pairs) + b"}"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_ubjson_is_what_was_written(value):
    assert ubjson_value(naive_ubjson(value) + b"rest") == (value, b"rest")


def test_ubjson_of_typed_lists_is_an_array():
    data = b"[$d#i\x02" + struct.pack(">2f", 0.5, -2.0)
    assert ubjson_value(data)[0].tolist() == [0.5, -2.0]


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_contents(tmp_path / "absent")


def test_links_are_not_followed(tmp_path):
    (tmp_path / "product").mkdir()
    (tmp_path / "secret.npy").write_bytes(npy(ROWS))
    (tmp_path / "product" / "link.npy").symlink_to(tmp_path / "secret.npy")
    with pytest.raises(InvalidInput, match="a link that leads out of the product"):
        read_contents(tmp_path / "product")
