"""What a folder that may be released says beside its weights is the same for neighbouring tables."""

import json
import stat
import struct

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="the extra `torch` is not installed")

import reticent
from reticent.data import read_table
from reticent.pipeline import Risk, TrainPlan, run_training
from reticent.product import is_trained_on, read_provenance

DOMAIN = """
[numbers]
age = [0, 100]
"""


@pytest.fixture
def tables(tmp_path):
    """Two tables that differ in the label of one record, which is trained on."""
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, 200).clip(1, 99).round()
    parts = np.where(np.arange(200) % 2, "defender", "reserved")
    ill = np.where(age > 45, "yes", "no")
    made = []
    for name, label in (("one", "yes"), ("other", "no")):
        ill[1] = label
        frame = pd.DataFrame({"age": age, "ill": ill, "part": parts})
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        made.append(read_table(tmp_path / f"{name}.csv", target="ill", part="part"))
    return made


def beside_weights(folder):
    """Everything in a folder but the numbers of its tensors, and the digest that only the owner can compute."""
    content = {}
    for file in sorted(folder.rglob("*")):
        blob = file.read_bytes()
        if file.suffix == ".safetensors":
            (length,) = struct.unpack("<Q", blob[:8])
            content[file.name] = blob[: 8 + length]
        elif file.name == "provenance.json":
            words = json.loads(blob)
            assert words.pop("data_fingerprint").startswith("hmac-sha256:")
            content[file.name] = words
        else:
            content[file.name] = blob
    return content


def test_a_folder_says_of_neighbours_the_same_outside_of_its_weights(tables, tmp_path):
    (tmp_path / "domain.toml").write_text(DOMAIN)
    recipe = reticent.PrivateNetwork(
        hidden=(4,), epochs=2, batch=20, domain=str(tmp_path / "domain.toml")
    )
    said = []
    for number, table in enumerate(tables):
        plan = TrainPlan(risk=Risk(epsilon=1.0), recipe=recipe)
        run_training(table, plan, out=tmp_path / f"product{number}")
        said.append(beside_weights(tmp_path / f"product{number}"))
    assert said[0] == said[1]
    assert set(said[0]) == {"product.safetensors", "provenance.json"}


def test_the_digest_of_a_table_needs_the_owners_key(tables, tmp_path, monkeypatch):
    recipe = reticent.PrivateNetwork(hidden=(), epochs=1, batch=20)
    plan = TrainPlan(risk=Risk(epsilon=1.0), recipe=recipe)
    trained = run_training(tables[0], plan, out=tmp_path / "product")
    one, other = tables
    provenance = read_provenance(tmp_path / "product")
    text = (tmp_path / "product" / "provenance.json").read_text()
    assert one.fingerprint not in text
    assert is_trained_on(provenance, one)
    assert not is_trained_on(provenance, other)
    # Whoever knows every record, but not the key, can try both labels and learns nothing.
    monkeypatch.setenv("RETICENT_HOME", str(tmp_path / "stranger"))
    assert not is_trained_on(provenance, one)
    assert not is_trained_on(provenance, other)
    assert trained.provenance == provenance


def test_product_files_are_closed_to_others(tables, tmp_path):
    recipe = reticent.PrivateNetwork(hidden=(), epochs=1, batch=20)
    plan = TrainPlan(risk=Risk(epsilon=1.0), recipe=recipe)
    folder = tmp_path / "deep" / "product"
    run_training(tables[0], plan, out=folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert len(files) == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_what_epsilon_does_not_cover_is_listed(tables, tmp_path):
    """Every key of the provenance is either covered, or named among what is public."""
    recipe = reticent.PrivateNetwork(hidden=(), epochs=1, batch=20)
    plan = TrainPlan(risk=Risk(epsilon=1.0), recipe=recipe)
    trained = run_training(tables[0], plan, out=tmp_path / "product")
    public = " ".join(trained.guarantee.public)
    for words in (
        "number of rows",
        "names of the classes",
        "names and kinds of the columns",
        "settings of the training",
        "seed",
        "versions",
        "which rows were kept aside",
        "keyed digest",
    ):
        assert words in public
