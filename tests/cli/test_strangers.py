"""Every command, given what a stranger wrote: it is parsed, never run and never believed.

A marker file tells whether any of it was run. Each case ends with status 2 and one sentence, or with an honest verdict.
"""

import functools
import io
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from in_process import run
from sklearn.linear_model import LogisticRegression

from reticent.cli._main import app
from reticent.product import (
    FittedProduct,
    Provenance,
    save_product,
    table_digest,
    versions,
)

# What is asked here is what is said, written and refused.

TABLE = ["people.csv", "--target", "ill"]
QUICK = ["--rounds", "1", "--minutes", "0.05", "--workers", "1", "--pool", "0"]
EVIL = "import pathlib\npathlib.Path(r'{marker}').touch()\ndef make(*_):\n    raise SystemExit(0)\nMake = make\n"
# Modules that reticent imports when it needs them, or that users may lack.
SHADOWED = ("xgboost", "torch", "safetensors", "skops", "numba", "evil", "cryptography")
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\u2066"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with a table and a product, which every test gets a copy of."""
    made = tmp_path_factory.mktemp("good")
    rng = np.random.default_rng(0)
    age = rng.normal(45, 12, 300).round()
    ill = np.where(rng.random(300) < 1 / (1 + np.exp(-(age - 45) / 6)), "yes", "no")
    frame = pd.DataFrame({"age": age, "ill": ill})
    frame.to_csv(made / "people.csv", index=False)
    model = LogisticRegression().fit(frame[["age"]], frame["ill"])
    product = FittedProduct(estimator=model, classes=("no", "yes"))
    from reticent.data import read_table

    table = read_table(made / "people.csv", target="ill")
    provenance = Provenance(
        recipe="reticent.PrivateNetwork(hidden=(4,))",
        data_fingerprint=table_digest(table, seed=0),
        seed=0,
        classes=("no", "yes"),
        versions=versions(),
    )
    save_product(made / "product", product, provenance)
    return made


@pytest.fixture
def folder(good, tmp_path):
    """A working folder with a table, a good product, and modules that leave a marker when they are imported."""
    shutil.copytree(good, tmp_path, dirs_exist_ok=True)
    marker = tmp_path / "marker"
    for place in (tmp_path, tmp_path / "product"):
        for name in SHADOWED:
            (place / f"{name}.py").write_text(EVIL.format(marker=marker))
    return tmp_path


def edited(folder, **changes):
    """Change what the product's folder says of itself."""
    file = folder / "product" / "provenance.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def check(done, folder, *, words=None, statuses=(2,)):
    """Nothing was run, no terminal was steered, and what is wrong is one sentence."""
    assert not (folder / "marker").exists(), "a stranger's code was run"
    assert done.returncode in statuses, done.stdout + done.stderr
    for stream in (done.stdout, done.stderr):
        assert all(c.isprintable() or c in "\n\t" for c in stream)
    for page in (*folder.rglob("*.html"), *folder.rglob("report.txt")):
        assert all(c.isprintable() or c in "\n\t\u00a0" for c in page.read_text())
    if done.returncode == 2:
        # What was read stands before it, one line per stage or finding.
        *before, error = done.stderr.strip().splitlines()
        assert not [line for line in before if line.startswith("error")]
        assert error.startswith("error: ")
        assert words is None or words in error


AUDIT = ["audit", *TABLE, "--product", "product", *QUICK]
CLEAN = ["clean", "product", "--table", *TABLE]
IDENTIFY = ["identify", *TABLE, "--product", "product", "--runs", "2", "--workers", "1"]


RECIPES = [
    "evil:make",
    "evil",
    'reticent.Module("evil:make")',
    'reticent.PrivateModule("evil:make")',
    'reticent.PrivateModule("evil:make", loss="evil:make")',
    'reticent.AdaptedModule("evil:make", source="people.csv")',
    'reticent.PrivateNetwork(hidden=[reticent.Module("evil:make")])',
    "reticent.PrivateNetwork(hidden=(xgboost.XGBClassifier(),))",
    "xgboost.XGBClassifier()",
    "sklearn.svm.SVC(kernel=__import__('evil').make)",
    'reticent.PrivateNetwork(domain="/dev/zero")',
    'reticent.PrivateNetwork(optimiser="evil:make")',
    "reticent.PrivateNetwork(epochs=2.5)",
    "reticent.PrivateNetwork(hidden=(10000000000,))",
    "reticent.PrivateNetwork(epochs=1000000000)",
    "reticent.PrivateNetwork(noise_multiplier=1e300)",
    "(" * 5000,
    "reticent.PrivateNetwork(" + ESCAPES,
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text[:60])
def test_a_recipe_in_a_folder_is_not_run(folder, recipe):
    edited(folder, recipe=recipe)
    done = run(*IDENTIFY, folder=folder)
    check(done, folder, words="because a file says so")
    assert "--trainer" in done.stderr


def test_an_audit_leaves_out_what_a_folder_names(folder):
    """The recipe is not needed for an audit: it is left out, and the verdict is that of the other attacks."""
    guarantee = GUARANTEE | {"mechanism": ESCAPES, "caveats": [ESCAPES]}
    edited(folder, recipe='reticent.PrivateModule("evil:make")', guarantee=guarantee)
    check(run(*AUDIT, folder=folder), folder, statuses=(1, 3))
    (page,) = folder.rglob("report.html")
    assert "\ufffdevil\ufffd" in page.read_text()


GUARANTEE = {
    "mechanism": "DP-SGD",
    "holds": True,
    "relation": "add/remove",
    "epsilon": 3.0,
    "delta": 1e-3,
    "noise_multiplier": 1.0,
    "sampling_rate": 0.1,
    "steps": 50,
    "advantage": 0.5,
    "belief": 0.9,
    "prior": 0.5,
    "tpr": 0.1,
    "fpr": 0.001,
    "caveats": [],
    "public": [],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": "zero"}, "seed: 'zero' is not a whole number"),
        ({"classes": "yes"}, "classes: 'yes' is not a list"),
        ({"versions": [1]}, "versions: [1] is not an object"),
        ({"seed": 10**30}, "seed"),
        ({"guarantee": 3}, "guarantee: 3 is not an object"),
        ({"guarantee": GUARANTEE | {"epsilon": None}}, "guarantee/epsilon"),
        ({"guarantee": GUARANTEE | {"witnessed": True}}, "witnessed"),
        ({"guarantee": GUARANTEE | {"delta": 7.0}}, "delta of a guarantee"),
        ({"claimed_epsilon": 10**400}, "claimed_epsilon"),
        ({"recipe": {}}, "recipe: {} is not a text"),
        ({ESCAPES: 1}, "is not known there"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_provenance_of_wrong_types_is_one_sentence(folder, change, words):
    edited(folder, **change)
    for command in (AUDIT, IDENTIFY):
        done = run(*command, folder=folder)
        check(done, folder, words="delete it to audit the product")
        assert words in done.stderr


@pytest.mark.parametrize(
    "text",
    ["[]", "{", "NaN", "[" * 100_000, '{"seed": 1, "seed": 2}', "\x00", "1" * 5000],
    ids=lambda text: text[:20],
)
def test_a_provenance_that_is_no_object_is_one_sentence(folder, text):
    (folder / "product" / "provenance.json").write_text(text)
    for command in (AUDIT, IDENTIFY):
        check(run(*command, folder=folder), folder)


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 10**12},
        pytest.param({"steps": -1}, marks=pytest.mark.slow),
        pytest.param({"noise_multiplier": -1.0}, marks=pytest.mark.slow),
        pytest.param({"sampling_rate": 5.0}, marks=pytest.mark.slow),
        {"relation": ESCAPES},
    ],
    ids=str,
)
def test_a_guarantee_that_cannot_be_is_shown_as_none(folder, change):
    edited(folder, recipe="somebody's", guarantee=GUARANTEE | change)
    done = run(*AUDIT, "--json", folder=folder)
    check(done, folder, statuses=(1, 3))
    dossier = json.loads(done.stdout)
    assert dossier["provenance"]["guarantee"] is None
    assert dossier["epsilons"]["proven"] is None


def test_a_plain_hash_in_an_older_folder_is_told_of(folder):
    """Version 0.2 wrote one; the product is still recognised, and the owner learns what the folder tells."""
    from reticent.data import read_table

    table = read_table(folder / "people.csv", target="ill")
    edited(folder, data_fingerprint=table.fingerprint)
    done = run(*AUDIT, "--json", folder=folder)
    check(done, folder, statuses=(1, 3))
    assert "plain_hash" in [f["name"] for f in json.loads(done.stdout)["findings"]]
    assert table.fingerprint not in done.stdout


@pytest.mark.parametrize("seed", [1, None])
def test_an_edited_seed_makes_nobody_a_member(folder, seed):
    """With another seed the table is divided otherwise: members would pass for non-members, and no attack would find them."""
    edited(folder, seed=seed)
    for command in (AUDIT, CLEAN):
        check(run(*command, folder=folder), folder, words="it is not known which rows")


def test_a_report_is_not_written_into_what_it_judges(folder):
    done = run(*AUDIT, "--out", "product/audit", folder=folder)
    check(done, folder, words="become part of what it judges")
    assert not (folder / "product" / "audit").exists()


def test_a_dossier_is_about_the_files_that_were_audited(folder):
    edited(folder, recipe="somebody's")
    done = run(*AUDIT, "--out", "audit", "--by", "Ada", folder=folder)
    check(done, folder, statuses=(1, 3))
    asked = ["verify", "audit", "product", "--policy", "default", "--table", "people.csv"]  # fmt: skip
    done = run(*asked, folder=folder)
    check(done, folder, statuses=(0,))
    assert done.stdout.startswith("YES: ")
    (folder / "people.csv").write_text("age,ill\n1,yes\n")
    done = run(*asked, folder=folder)
    check(done, folder, statuses=(1,))
    assert "another table" in done.stdout
    edited(folder, seed=1)
    done = run(*asked[:3], folder=folder)
    check(done, folder, statuses=(1,))
    assert "the dossier is about the product" in done.stdout


class Harm:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return os.system, (f"touch {os.environ['RETICENT_TEST_MARKER']}",)


def zipped(**entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tensors(words, **arrays):
    """A safetensors file with a header of our own."""
    header = {"__metadata__": words}
    body = b""
    for name, array in arrays.items():
        content = array.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(body), len(body) + len(content)],
        }
        body += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@functools.cache
def bomb():
    """A megabyte that unpacks to more than a gigabyte."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("schema.json", "w", force_zip64=True) as entry,
    ):
        for _ in range(1100):
            entry.write(b" " * 2**20)
    return buffer.getvalue()


NETWORK = {
    "numbers": ["age"],
    "categories": [],
    "activation": "tanh",
    "classes": ["no", "yes"],
    "warnings": [],
}
GOOD = {
    "centre": np.zeros(1, "f4"),
    "scale": np.ones(1, "f4"),
    "weights.0": np.ones((2, 1), "f4"),
    "biases.0": np.zeros(2, "f4"),
}


def hostile_files(marker):
    """Yield a name and the bytes of files that a product's folder might hold."""
    os.environ["RETICENT_TEST_MARKER"] = str(marker)
    pickled = pickle.dumps(Harm())
    model = skops.io.dumps(LogisticRegression())
    harmless = {
        name: zipfile.ZipFile(io.BytesIO(model)).read(name)
        for name in zipfile.ZipFile(io.BytesIO(model)).namelist()
    }
    node = {"__class__": "make", "__module__": "evil", "__loader__": "TypeNode"}
    kept = {"__id__": 1, "protocol": 2, "_skops_version": "0.14"}
    yield "product.skops", pickled
    yield "product.skops", b""
    yield "product.skops", b"PK\x03\x04" + b"\0" * 50
    yield "product.skops", zipped(**{"../../marker": b"x", "schema.json": b"{}"})
    yield "product.skops", zipped(**{"schema.json": json.dumps(node | kept)})
    yield "product.skops", zipped(**{"schema.json": b"[" * 200_000})
    yield "product.skops", zipped(**{"schema.json": b"\xff\xfe"})
    yield "product.skops", zipped(**harmless)[:-40]
    yield "product.skops", bomb()
    yield "product.safetensors", pickled
    yield "product.safetensors", struct.pack("<Q", 2**62) + b"{}"
    yield "product.safetensors", tensors({}, **GOOD)
    for words in (
        "[]",
        "{",
        json.dumps(NETWORK | {"classes": 3}),
        json.dumps(NETWORK | {"activation": "evil:make"}),
        json.dumps(NETWORK | {"categories": [["a"]]}),
        json.dumps(NETWORK | {"target": [1, 2, 3]}),
    ):
        yield "product.safetensors", tensors({"network": words}, **GOOD)
    for change in (
        {"centre": np.zeros(7, "f4")},
        {"scale": np.zeros((0, 3), "f4")},
        {"weights.0": np.ones((3, 3), "f4")},
        {"weights.0": np.full((2, 1), np.nan, "f4")},
    ):
        yield "product.safetensors", tensors({"network": json.dumps(NETWORK)}, **GOOD | change)  # fmt: skip
    module = NETWORK | {"module": {"nodes": [{"op": "evil:make"}]}}
    yield "product.safetensors", tensors({"module": json.dumps(module)}, **GOOD)


@pytest.mark.parametrize("number", range(23))
def test_a_hostile_file_is_refused_by_an_audit(folder, number):
    files = list(hostile_files(folder / "marker"))
    assert len(files) == 23
    name, content = files[number]
    (folder / "product" / "product.skops").unlink()
    (folder / "product" / name).write_bytes(content)
    check(run(*AUDIT, folder=folder), folder)


@pytest.mark.parametrize("number", range(0, 23, 3))
def test_a_hostile_file_is_refused_by_cleaning(folder, number):
    name, content = list(hostile_files(folder / "marker"))[number]
    (folder / "product" / "product.skops").unlink()
    (folder / "product" / name).write_bytes(content)
    check(run(*CLEAN, folder=folder), folder)
    assert not (folder / "reticent-cleaned").exists()


def test_a_pipe_in_a_folder_is_not_waited_for(folder):
    os.mkfifo(folder / "product" / "endless")
    check(run(*AUDIT, folder=folder), folder, words="is no file")


def test_an_identification_in_a_folder_can_only_speak_against_the_product(folder):
    (folder / "product" / "identification.json").write_text('{"schema": "x"}')
    check(run(*AUDIT, folder=folder), folder, words="the schema is 'x'")
    (folder / "product" / "identification.json").write_bytes(b"\xff\xfe\x00")
    check(run(*AUDIT, folder=folder), folder, words="not UTF-8")


@pytest.fixture(scope="module")
def dossier(tmp_path_factory):
    """An audit of a forest on the built-in table, which is refused."""
    place = tmp_path_factory.mktemp("judged")
    done = run(
        "audit", "--trainer", "sklearn.tree.DecisionTreeClassifier()", *QUICK, "--save-product", "product",
        "--out", "audit", folder=place,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return place


def spoiled(place, folder, edit):
    """Write a dossier that somebody changed."""
    content = json.loads((place / "audit" / "dossier.json").read_text())
    edit(content)
    (folder / "dossier.json").write_text(json.dumps(content))


def test_an_edited_verdict_is_not_believed(dossier, folder):
    def edit(content):
        content |= {"verdict": "RELEASE", "reasons": ["All is well."], "summary": []}
        for limit in content["limits"]:
            limit["outcome"] = "kept"

    spoiled(dossier, folder, edit)
    done = run("report", "dossier.json", folder=folder)
    check(done, folder, statuses=(1,))
    assert done.stdout.strip().startswith("REFUSE")
    assert "The file says RELEASE" in done.stdout
    assert "All is well" not in done.stdout
    verified = run("verify", "dossier.json", str(dossier / "product"), folder=folder)
    check(verified, folder, statuses=(1,))
    assert "contradicts itself" in verified.stdout


def test_an_edited_statement_is_not_believed(dossier, folder):
    def edit(content):
        good = {"value": 1.0, "low": 0.99, "high": 1.0}
        content["privacy"] |= good
        for statement in content["statements"]:
            if statement["measure"] == "privacy":
                statement["estimate"] |= good

    spoiled(dossier, folder, edit)
    done = run("report", "dossier.json", folder=folder)
    check(done, folder, statuses=(1,))
    assert "but by its own evidence it is" in done.stdout


def test_a_control_that_was_taken_out_is_missed(dossier, folder):
    spoiled(dossier, folder, lambda content: content.update(controls=[]))
    done = run("report", "dossier.json", folder=folder)
    check(done, folder, statuses=(1, 3))
    assert "The control 'memorising' is not in the file" in done.stdout


def put(content, value, *path):
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("attacks",), []),
        (("records",), {}),
        (("kind",), "evil:make"),
        (("verdict",), "PERHAPS"),
        (("seed",), "zero"),
        (("seed",), 10**400),
        (("evidence", "epsilon_ceiling"), 10**400),
        (("evidence", "members"), 1e999),
        (("controls",), "none"),
        (("policy", "limits"), []),
        (("policy", "confidence"), 2.0),
        (("binding", "access"), ["everything"]),
        (("binding", "made"), 5),
        (("evidence", "scores"), None),
        (("schema",), ESCAPES),
        ((ESCAPES,), 1),
    ],
    ids=str,
)
def test_a_dossier_that_cannot_be_is_one_sentence(dossier, folder, path, value):
    spoiled(dossier, folder, lambda content: put(content, value, *path))
    product = str(dossier / "product")
    for command in (["report", "dossier.json"], ["report", "dossier.json", "--out", "x"]):  # fmt: skip
        check(run(*command, folder=folder), folder)
    check(run("verify", "dossier.json", product, folder=folder), folder)


def test_a_figure_that_cannot_be_drawn_is_one_sentence(dossier, folder):
    spoiled(dossier, folder, lambda c: put(c, [], "evidence", "scores", "edges"))
    check(run("report", "dossier.json", folder=folder), folder, statuses=(1,))
    done = run("report", "dossier.json", "--out", "x", folder=folder)
    check(done, folder, words="cannot be shown")


def test_names_in_a_dossier_steer_nothing(dossier, folder):
    def edit(content):
        content["subject"] = dict.fromkeys(content["subject"], ESCAPES)
        content["policy"]["name"] = content["repeat"] = ESCAPES
        content["binding"]["by"] = content["binding"]["made"] = ESCAPES + "\nYES: all"

    spoiled(dossier, folder, edit)
    check(run("report", "dossier.json", folder=folder), folder, statuses=(1,))
    done = run("verify", "dossier.json", str(dossier / "product"), folder=folder)
    check(done, folder, statuses=(0, 1))
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"", b"[]", b"{", b"[" * 100_000, b'"x"', b'{"schema": 1}'],
    ids=lambda b: repr(b[:12]),
)
def test_what_is_no_dossier_is_one_sentence(folder, content):
    (folder / "dossier.json").write_bytes(content)
    (folder / "key").write_bytes(content)
    for command in (
        ["report", "dossier.json"],
        ["verify", "dossier.json", "product"],
        ["sign", "dossier.json", "--key", "key"],
        ["policy", "dossier.json"],
        ["audit", *TABLE, "--policy", "dossier.json"],
    ):
        check(run(*command, folder=folder), folder)


def test_a_policy_is_text(folder):
    done = run("policy", "default", folder=folder)
    text = done.stdout.replace(
        "# The policy", f"# {chr(0x9B)}31m{chr(0x202E)} The policy"
    )
    (folder / "policy.toml").write_text(text)
    check(run("policy", "policy.toml", folder=folder), folder, statuses=(0,))
    (folder / "policy.toml").write_text(text.replace("0.95", "1e999"))
    check(run("policy", "policy.toml", folder=folder), folder)
    (folder / "policy.toml").write_text(text.replace("decides_on = [", "decides_on = [7, "))  # fmt: skip
    check(run("policy", "policy.toml", folder=folder), folder)


TREES = [
    word
    for depth in (1, 2)
    for word in ("--trainer", f"sklearn.tree.DecisionTreeClassifier(max_depth={depth})")
]


def test_commands_that_read_no_product_import_nothing_of_the_folder(folder):
    """`train`, `plan` and `compare` read a table and a domain; the folder they are typed in may hold anything."""
    (folder / "domain.toml").write_text("evil = 'evil:make'\n")
    for command, statuses in (
        (["plan", "--rows", "1000", "--batch", "50", "--epochs", "2", "--belief", "0.9"], (0,)),
        (["train", *TABLE, "--belief", "0.9", "--domain", "domain.toml"], (2,)),
        (["key", "key"], (0, 2)),
        (["compare", *TABLE, "--models", "4", "--workers", "1", *TREES], (0, 1, 3)),
    ):  # fmt: skip
        check(run(*command, folder=folder), folder, statuses=statuses)


HOSTILE_TABLES = {
    "NUL": b"age,ill\n1\0,yes\n2,no\n",
    "ragged": b"age,ill\n1,yes,3\n2,no\n",
    "copied": b"age,ill,ill\n1,yes,no\n2,no,no\n",
    "steers": f"age,{ESCAPES}\n1,yes\n2,no\n".encode(),
    "no text": bytes(range(128, 256)) * 9,
    "empty": b"",
    "no rows": b"age,ill\n",
    "infinite": b"age,ill\n" + b"inf,yes\n1,no\n" * 60,
    "a quotation mark": b'age,ill\n"1,yes\n2,no\n',
}


@pytest.mark.parametrize("content", HOSTILE_TABLES.values(), ids=HOSTILE_TABLES)
def test_a_hostile_table_is_one_sentence_in_every_command_that_reads_one(
    folder, content
):
    (folder / "people.csv").write_bytes(content)
    for command in (
        AUDIT,
        CLEAN,
        IDENTIFY,
        ["audit", *TABLE, *TREES[:2], *QUICK],
        ["train", *TABLE, "--belief", "0.9"],
        ["synthesize", *TABLE, "--epsilon", "3"],
        ["compare", *TABLE, "--models", "4", "--workers", "1", *TREES],
    ):
        check(run(*command, folder=folder), folder)


def test_a_hostile_table_is_not_the_one_that_was_judged(dossier, folder):
    asked = ["verify", str(dossier / "audit"), str(dossier / "product"), "--table"]
    for content in HOSTILE_TABLES.values():
        (folder / "people.csv").write_bytes(content)
        done = run(*asked, "people.csv", folder=folder)
        check(done, folder, statuses=(1, 2))
        assert "YES" not in done.stdout


def test_every_command_was_walked():
    """A command that is added must be given hostile files here as well."""
    walked = {"audit", "plan", "train", "identify", "report", "policy", "verify", "key", "sign", "clean", "compare", "synthesize"}  # fmt: skip
    assert {command.name for command in app.registered_commands} == walked


@pytest.mark.parametrize("how", [["-m", "reticent"], ["-m", "reticent.cli"]])
def test_the_current_folder_is_not_imported_from(folder, how):
    """Python itself puts the folder in front of everything for `-m`: a file called like a library would be run."""
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, *how, "identify", *TABLE, "--product", "product", "--runs", "2"],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(source)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not (folder / "marker").exists(), done.stderr


def test_what_the_user_names_is_run(folder):
    """The twin: the marker does appear if the user names the module."""
    done = run("audit", *TABLE, "--trainer", "evil:make", folder=folder)
    assert (folder / "marker").exists()
    assert done.returncode in (0, 2)
