"""Products that were made to do harm: each ends in one sentence and status 2, and opens nothing outside itself.

All are audited as by hand, one after another in one process. An audit hook that is there before reticent is tells what this process and those of the
products open, list, connect to, start and make.
"""

import json
import os
import socket
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

N = 400
AUDIT = ["audit", "people.csv", "--target", "ill", "--part", "part", "--rounds", "1", "--workers", "1", "--pool", "0", "--out", "out"]  # fmt: skip

# Told before anything else of a process is imported. A pipe has no size, which the lock limits.
WATCH = """
import os, sys
log = os.open(os.environ["HOSTILE_LOG"], os.O_WRONLY)
def tell(event, arguments):
    if event.partition(".")[0] in ("os", "socket", "subprocess", "shutil", "tempfile", "glob", "hostile") or event in ("open", "sys.addaudithook"):
        what = arguments[0] if arguments else ""
        # A number is a file that is open already.
        if event not in ("os.putenv", "os.unsetenv") and not isinstance(what, int):
            what = os.fsdecode(what) if isinstance(what, (bytes, str)) else repr(what)
            os.write(log, f"{os.getpid()}\\t{event}\\t{what[:300]}\\n".encode(errors="replace"))
sys.addaudithook(tell)
"""
DRIVER = """
import contextlib, io, json, os, sys, time
from reticent.cli import main
cases = json.loads(sys.argv[1])
for name, arguments in cases.items():
    sys.audit("hostile.case", name)
    sys.argv[:] = ["reticent", *arguments]
    out, err, started = io.StringIO(), io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            status = end.code
    print(json.dumps([name, status, err.getvalue()]), flush=True)
sys.audit("hostile.case", "unlocked")
import skops.io
file = os.path.join("filename", "product.skops")
model = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
import pandas
model.predict_proba(pandas.DataFrame({"a": [float("nan")], "b": [0.0]}, dtype=object))
"""
# Types that somebody vouches for; what they try is what no trusted type should be able to.
VOUCHED = """
import ctypes, os, socket, subprocess, sys, time
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
class Model(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self
    def predict_proba(self, X):
        self.harm()
        return np.full((len(X), 2), 0.5)
    def harm(self):
        pass
class Opens(Model):
    def harm(self): open("secret.txt").read()
class Hides(Model):
    def harm(self):
        try:
            open("secret.txt").read()
        except Exception:
            pass
class Writes(Model):
    def harm(self): open("marker", "w").write("x")
class Removes(Model):
    def harm(self): os.remove("secret.txt")
class Lists(Model):
    def harm(self): os.listdir(".")
class Connects(Model):
    def harm(self): socket.create_connection(("127.0.0.1", 9), timeout=1)
class Forks(Model):
    def harm(self): os.fork()
class Executes(Model):
    def harm(self): subprocess.run(["touch", "marker"])
class Shells(Model):
    def harm(self): os.system("touch marker")
class Calls(Model):
    def harm(self): ctypes.CDLL(None).system(b"touch marker")
class Loads(Model):
    def harm(self): __import__("pickle").loads(b"cos\\nsystem\\n(S'touch marker'\\ntR.")
class Leaves(Model):
    def harm(self): os._exit(0)
class Exits(Model):
    def harm(self): sys.exit(0)
class Fills(Model):
    def harm(self): self.all = np.ones(2**31)
class Talks(Model):
    def harm(self): print("x" * 10**6)
class Wide(Model):
    def predict_proba(self, X): return np.full((len(X), 7), 0.5)
class Long(Model):
    def predict_proba(self, X): return np.full((10**6, 2), 0.5)
class Objects(Model):
    def predict_proba(self, X): return np.full((len(X), 2), {}, dtype=object)
"""
OUTSIDE = "tried to reach outside itself"
OF_VOUCHED = {
    **dict.fromkeys(["Opens", "Hides", "Writes", "Removes", "Lists"], OUTSIDE),
    **dict.fromkeys(["Connects", "Forks", "Executes", "Shells", "Calls"], OUTSIDE),
    "Loads": OUTSIDE,
    "Leaves": "crashed the process in which it was asked (status 0)",
    "Exits": "raised SystemExit",
    "Fills": "raised MemoryError",
    "Wide": "have the shape (400, 7) where (400, 2) was expected",
    "Long": "have the shape (1000000, 2) where (400, 2)",
    "Objects": "raised TypeError",
}


def records():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 2)).round(3), columns=["a", "b"])
    return X, np.where(X["a"] > 0, "yes", "no")


def reading(vectorizer, path):
    """A pipeline of trusted types that fills gaps with a path and then reads the files that are named."""
    X, y = records()
    texts = X.astype(object).assign(a="some words")
    imputer = SimpleImputer(strategy="constant", fill_value=str(path))
    columns = ColumnTransformer([("v", vectorizer, "a")])
    model = Pipeline([("i", imputer.set_output(transform="pandas")), ("c", columns), ("l", LogisticRegression())])  # fmt: skip
    return model.fit(texts, y), vectorizer


def of_vectorizer(vectorizer, **changes):
    def make(folder):
        model, _ = reading(vectorizer, folder.parent / "secret.txt")
        model[1].transformers_[0][1].set_params(**changes)
        skops.io.dump(model, folder / "product.skops")

    return make


def of_model(make):
    def write(folder):
        skops.io.dump(make(), folder / "product.skops")

    return write


def fitted(model):
    return model.fit(*records())


def with_memory():
    model = fitted(make_pipeline(LogisticRegression()))
    return model.set_params(memory="cache")


def with_jobs():
    from sklearn.ensemble import RandomForestClassifier

    return fitted(RandomForestClassifier(3)).set_params(n_jobs=100_000)


def with_function():
    return fitted(make_pipeline(FunctionTransformer(np.abs), LogisticRegression())).set_params(functiontransformer__func=os.system)  # fmt: skip


def with_callbacks():
    X, y = records()
    model = XGBClassifier(n_estimators=2).fit(X, y == "yes")
    return model.set_params(callbacks=["cache"])


def with_many_powers():
    model = fitted(make_pipeline(PolynomialFeatures(2), LogisticRegression()))
    powers = model[0]
    powers.set_params(degree=100_000)
    powers._max_degree, powers.n_output_features_ = 100_000, 5_000_150_001
    powers._n_out_full = powers.n_output_features_
    return model


def of_tree(left):
    """A tree whose first node leads to another, far outside of it or back to itself."""

    def make():
        model = fitted(DecisionTreeClassifier(max_depth=3))
        model.tree_.children_left[0] = model.tree_.children_right[0] = left
        return model

    return make


def edited(change):
    """A good product whose schema is changed."""

    def write(folder):
        file = folder / "product.skops"
        skops.io.dump(fitted(make_pipeline(LogisticRegression())), file)
        with zipfile.ZipFile(file) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        parts["schema.json"] = change(parts["schema.json"])
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in parts.items():
                archive.writestr(name, data)

    return write


def deep(schema):
    return b'{"a":' * 100_000 + schema + b"}" * 100_000


def of_itself(schema):
    """The last step of the pipeline is the pipeline."""
    content = json.loads(schema)
    steps = content["content"]["content"]["steps"]["content"]
    content["__id__"] = 7
    steps[0]["content"][1] = {key: content[key] for key in ("__class__", "__module__", "__loader__", "__id__")}  # fmt: skip
    return json.dumps(content).encode()


def claiming(folder):
    """An archive that says that it unpacks to gigabytes, and does."""
    with zipfile.ZipFile(folder / "product.skops", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("schema.json", "w", force_zip64=True) as part:  # fmt: skip
        for _ in range(1200):
            part.write(bytes(2**20))


def lying(folder):
    """An archive of gigabytes that says that it unpacks to a few bytes."""
    claiming(folder)
    file = folder / "product.skops"
    data = bytearray(file.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (100).to_bytes(4, "little")
    file.write_bytes(data)


def nested(folder):
    data = b"0" * 10**6
    for _ in range(30):
        inner = folder / "inner"
        with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("schema.json", data)
        data = inner.read_bytes()
        inner.unlink()
    (folder / "product.skops").write_bytes(data)


def good(folder):
    skops.io.dump(fitted(LogisticRegression()), folder / "product.skops")


def beside(name, make):
    """A good product beside which something else lies."""

    def write(folder):
        good(folder)
        make(folder / name)

    return write


def socket_at(path):
    here = os.open(path.parent, os.O_RDONLY)
    try:  # a name of a socket must be short
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def booster(folder):
    X, y = records()
    file = folder / "product.skops"
    skops.io.dump(XGBClassifier(n_estimators=2).fit(X, y == "yes"), file)
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(n for n, data in parts.items() if b"learner" in data and n != "schema.json")  # fmt: skip
    parts[name] = parts[name].replace(b"learner", b"earnerl")[: len(parts[name]) // 2]
    with zipfile.ZipFile(file, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)


def bomb(name, content):
    return beside(name, lambda path: path.write_text(content))


# What is written, and words of the sentence in which it ends.
HOSTILE = {
    "filename": (of_vectorizer(CountVectorizer(), input="filename"), "input='filename', which makes it read files"),
    "file": (of_vectorizer(CountVectorizer(), input="file"), "input='file'"),
    "hashed": (of_vectorizer(HashingVectorizer(n_features=8), input="filename"), "HashingVectorizer in the product has input='filename'"),
    "memory": (of_model(with_memory), "memory='cache', which makes it keep files"),
    "jobs": (of_model(with_jobs), "n_jobs=100000"),
    "function": (of_model(with_function), "posix.system"),
    "callbacks": (of_model(with_callbacks), "callbacks"),
    "pipe": (lambda folder: os.mkfifo(folder / "product.skops"), "is no file"),
    "pipe as provenance": (beside("provenance.json", os.mkfifo), "is no file"),
    "pipe elsewhere": (beside("notes", os.mkfifo), "is no file"),
    "pipe deeper": (beside("more", lambda path: (path.mkdir(), os.mkfifo(path / "x"))), "is no file"),
    "endless": (lambda folder: (folder / "product.skops").symlink_to("/dev/zero"), "is no file"),
    "link": (beside("people", lambda path: path.symlink_to("/etc/passwd")), "leads out of the product"),
    "link to a folder": (beside("people", lambda path: path.symlink_to("/etc")), "is no file"),
    "socket": (beside("socket", socket_at), "is no file"),
    "deep": (edited(deep), "cannot be read as a skops file"),
    "of itself": (edited(of_itself), "product.skops cannot be"),
    "bomb": (claiming, "would fill the memory"),
    "lying bomb": (lying, "cannot be read as a skops file"),
    "nested": (nested, "cannot be read as a skops file"),
    "keys": (bomb("provenance.json", "{" + ",".join(f'"{k}":0' for k in range(200_000)) + ',"199999":0}'), "stands there twice"),
    "deep claims": (bomb("provenance.json", '{"a":' * 100_000 + "0" + "}" * 100_000), "provenance.json of"),
    "long claims": (bomb("provenance.json", '{"a": "' + "x" * 5_000_000 + '"}'), "has more than"),
    "header": (lambda folder: (folder / "product.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}"), "cannot be read as a network"),
    "outside": (of_model(of_tree(2**40)), "crashed the process in which it was asked (SIG"),
    "circle": (of_model(of_tree(0)), "took more than 10 s of computing to be asked about 8 records"),
    "powers": (of_model(with_many_powers), "raised"),
    "booster": (booster, "product.skops cannot be put together again"),
}  # fmt: skip


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Audit every product; return status and words of each, and what was done meanwhile by which process."""
    folder = tmp_path_factory.mktemp("hostile")
    X, y = records()
    part = np.repeat(["defender", "reserved"], N // 2)
    X.assign(ill=y, part=part).to_csv(folder / "people.csv", index=False)
    (folder / "secret.txt").write_text("some words")
    own = folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(WATCH)
    (own / "vouched.py").write_text(VOUCHED)
    cases = {}
    for name, (write, _) in HOSTILE.items():
        (folder / name).mkdir()
        write(folder / name)
        cases[name] = [*AUDIT, "--product", name]
    # A single file is named, and a pipe lies beside it.
    (folder / "single").mkdir()
    good(folder / "single")
    os.mkfifo(folder / "single" / "provenance.json")
    cases["single"] = [*AUDIT, "--product", "single/product.skops"]
    cases["cleaned"] = ["clean", "circle", "--table", *AUDIT[1:6], "--out", "new"]
    sys.path.insert(0, str(own))
    try:
        import vouched

        for name in OF_VOUCHED:
            (folder / name).mkdir()
            model = fitted(getattr(vouched, name)())
            skops.io.dump(model, folder / name / "product.skops")
            cases[name] = [*AUDIT, "--product", name, "--trust", f"vouched.{name}"]
    finally:
        sys.path.remove(str(own))
    log = folder / "log"
    os.mkfifo(log)
    lines = []
    keep = os.open(log, os.O_RDWR)  # so that the pipe has a reader and a writer
    reader = os.fdopen(os.open(log, os.O_RDONLY), "rb")

    def read():
        for line in reader:
            if line == b"end\n":
                return
            lines.append(line.decode(errors="replace").rstrip("\n"))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    path = os.pathsep.join([str(own), str(Path(__file__).parents[2] / "src")])
    environment = os.environ | {
        **{"PYTHONPATH": path, "HOSTILE_LOG": str(log), "COLUMNS": "200"},
        "RETICENT_HOME": str(folder / "home"),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", DRIVER, json.dumps(cases)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=300,
        check=False,
    )
    os.write(keep, b"end\n")
    thread.join()
    reader.close()
    os.close(keep)
    results = {name: (status, words) for name, status, words in map(json.loads, done.stdout.splitlines())}  # fmt: skip
    assert set(results) == set(cases), done.stderr
    events = defaultdict(list)
    case = "start"
    for line in lines:
        process, event, what = line.split("\t", 2)
        if event == "hostile.case":
            case = what
        events[case].append((int(process), event, what))
    return folder, results, events


SENTENCES = {
    **{name: words for name, (_, words) in HOSTILE.items()},
    **OF_VOUCHED,
    "single": "is no regular file",
    "cleaned": "took more than",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_it_ends_in_one_sentence(watched, name):
    _, results, _ = watched
    status, words = results[name]
    # What was found about the table stands before it, one line per finding.
    *before, sentence = words.strip().splitlines()
    assert not [line for line in before if line.startswith("error")]
    assert sentence.startswith("error: ")
    # What XGBoost does with damaged bytes depends on what lies behind them in memory.
    crashed = name == "booster" and "crashed the process" in sentence
    assert crashed or SENTENCES[name] in sentence
    assert status == 2


def is_allowed(folder, case, what):
    """Whether a process of reticent itself may open something, as long as no product is loaded in it."""
    path = (folder / what).absolute()
    libraries = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    libraries |= {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2] / "src")}
    libraries |= {str(Path(os.path.realpath(sys.executable)).parents[1])}
    libraries |= {place for place in sys.path if Path(place).name == "src"}
    product = folder / ("circle" if case == "cleaned" else case)
    own = {folder / name for name in ("people.csv", "own", "home", "new", "out")}  # fmt: skip
    places = [*map(Path, libraries), product, *own, Path("/proc"), Path("/sys"), Path("/dev/null"), Path("/usr/share/zoneinfo")]  # fmt: skip
    return any(path.is_relative_to(place) for place in places)


@pytest.mark.parametrize("name", SENTENCES)
def test_nothing_outside_is_opened(watched, name):
    """Not by the auditor's process, and not by that of the product before it is locked; what it tries afterwards is refused and told."""
    folder, results, events = watched
    locked, refused, opened = set(), [], []
    for process, event, what in events[name]:
        if event == "sys.addaudithook":
            locked.add(process)
        elif event in ("open", "os.listdir", "os.scandir", "os.mkdir"):
            if is_allowed(folder, name, what):
                continue
            (refused if process in locked else opened).append((event, what))
        elif process in locked:
            refused.append((event, what))
        elif event in ("os.system", "os.fork", "os.exec", "socket.connect"):
            opened.append((event, what))
    assert opened == []
    assert not refused or OUTSIDE in results[name][1]
    assert bool(refused) == (OUTSIDE in results[name][1]) or name in ("Calls", "Loads")
    assert not (folder / "marker").exists()
    assert (folder / "secret.txt").exists()
    kinds = {event for _, event, what in events[name] if what.endswith("secret.txt")}
    assert kinds <= {"open", "os.remove"}
    assert not kinds or name in ("Opens", "Hides", "Removes")


def test_without_the_lock_it_would_have_been_read(watched):
    """The twin: the same pipeline of trusted types, loaded as anybody would, opens the auditor's file."""
    folder, _, events = watched
    assert any(what == str(folder / "secret.txt") and event == "open" for _, event, what in events["unlocked"])  # fmt: skip
