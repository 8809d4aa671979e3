"""Products with people planted in their files, and clean ones of the same makers: what the sweep of the reader goes through."""

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    RANSACRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from reticent.attack import search_file
from reticent.data import Table, table_from_frame
from reticent.evidence import FileEvidence, FileRecords, Limit, Outcome
from reticent.pipeline._gather import file_evidence
from reticent.product import (
    FittedProduct,
    FittedRegressor,
    Product,
    Provenance,
    open_file,
    read_contents,
    save_product,
)
from reticent.run import stream

MEMBERS = 600
NUMBERS = ["age", "income", "dose", "pulse", "score"]
TOWNS = [f"town {k}" for k in range(300)]


def people(seed: int, name: str, n: int, *, quantity: bool = False) -> Table:
    """Return people with five measurements, a town, and an outcome."""
    rng = stream(seed, name)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": np.round(rng.lognormal(10, 0.8, n)),
            "dose": rng.normal(50, 12, n),
            "pulse": np.round(rng.normal(70, 9, n), 1),
            "score": rng.gamma(2.0, 3.0, n),
            "town": rng.choice(TOWNS, n),
        }
    )
    signal = (frame["age"] - 50) / 20 + (frame["dose"] - 50) / 12
    noise = rng.normal(size=n)
    if quantity:
        return table_from_frame(frame, target=3 * signal + noise, quantity=True)
    return table_from_frame(frame, target=(signal + noise > 0).astype(int))


def fitted(estimator: Any, table: Table) -> Product:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(table.features, table.target)
    if table.is_quantity:
        return FittedRegressor(estimator=estimator)
    return FittedProduct(estimator=estimator, classes=table.classes)


def plain() -> Any:
    """Return a model whose file holds nobody: what people are planted beside."""
    numbers = ColumnTransformer([("numbers", StandardScaler(), NUMBERS)])
    return make_pipeline(numbers, LogisticRegression())


def of_numbers(*steps: Any) -> Any:
    return make_pipeline(ColumnTransformer([("numbers", StandardScaler(), NUMBERS)]), *steps)  # fmt: skip


def of_towns(encoder: Any, model: Any) -> Any:
    return make_pipeline(ColumnTransformer([("towns", encoder, ["town"])]), model)


# Makers whose files hold people: what they keep stands beside each name.
MAKERS: dict[str, Callable[[], Any]] = {
    "bagging with answers out of the bag": lambda: of_numbers(BaggingClassifier(LogisticRegression(), n_estimators=30, oob_score=True, random_state=0)),
    "isotonic calibration": lambda: CalibratedClassifierCV(plain(), method="isotonic", cv=3),
    "categorical naive Bayes": lambda: of_towns(OrdinalEncoder(categories=[TOWNS]), CategoricalNB(min_categories=len(TOWNS))),
    "Bernoulli naive Bayes on declared categories": lambda: of_towns(OneHotEncoder(categories=[TOWNS]), BernoulliNB()),
    "logistic regression on declared categories": lambda: of_towns(OneHotEncoder(categories=[TOWNS]), LogisticRegression()),
    "multinomial naive Bayes on bins": lambda: make_pipeline(ColumnTransformer([("bins", KBinsDiscretizer(400, strategy="uniform", encode="onehot"), NUMBERS[2:])]), MultinomialNB()),
    "declared categories, scaled": lambda: make_pipeline(ColumnTransformer([("towns", OneHotEncoder(categories=[TOWNS], sparse_output=False), ["town"])]), StandardScaler(), LogisticRegression()),
    "Nystroem map of twelve": lambda: of_numbers(Nystroem(n_components=12, random_state=0), LogisticRegression()),
    "clusters of one": lambda: of_numbers(KMeans(200, n_init=1, random_state=0), LogisticRegression()),
    "labels of clusters": lambda: of_numbers(KMeans(5, n_init=1, random_state=0), LogisticRegression()),
    "kernel components": lambda: of_numbers(KernelPCA(4), LogisticRegression()),
    "Gaussian process": lambda: of_numbers(GaussianProcessClassifier()),
    "support vectors": lambda: of_numbers(SVC()),
    "nearest neighbours": lambda: of_numbers(KNeighborsClassifier()),
    "imputer by neighbours": lambda: make_pipeline(ColumnTransformer([("fill", KNNImputer(), NUMBERS)]), LogisticRegression()),
    "spread labels": lambda: of_numbers(LabelSpreading()),
    "quantiles": lambda: make_pipeline(ColumnTransformer([("ranks", QuantileTransformer(n_quantiles=600), NUMBERS)]), LogisticRegression()),
    "names of towns": lambda: of_towns(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
    "towns by their target": lambda: of_towns(TargetEncoder(), LogisticRegression()),
    "borders of bins": lambda: of_numbers(HistGradientBoostingClassifier(max_iter=5)),
}  # fmt: skip
REGRESSORS: dict[str, Callable[[], Any]] = {
    "partial least squares": lambda: of_numbers(PLSRegression(2)),
    "mask of inliers": lambda: of_numbers(RANSACRegressor(random_state=0)),
    "mask of outliers": lambda: of_numbers(HuberRegressor()),
    "residuals of every fold": lambda: of_numbers(RidgeCV(store_cv_results=True)),
    "kernel ridge": lambda: of_numbers(KernelRidge(kernel="rbf")),
    "quantiles of the target": lambda: TransformedTargetRegressor(of_numbers(Ridge()), transformer=QuantileTransformer(n_quantiles=600)),
}  # fmt: skip


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def whole(table: Table) -> np.ndarray:
    """Return the numbers of each person with the target behind them."""
    return np.column_stack([table.features[NUMBERS].to_numpy(), table.target.astype(float)])  # fmt: skip


def lines(table: Table, separator: str = ",") -> bytes:
    frame = pd.DataFrame(table.features).assign(outcome=table.target)
    return frame.to_csv(index=False, sep=separator).encode()


def text(data: bytes) -> bytes:
    return json.dumps({"note": data.decode("latin-1")}).encode()


def in_steps(table: Table, steps: int) -> np.ndarray:
    """Return numbers rounded to so many steps between the smallest and the largest of their column."""
    rows = whole(table)[:, :5]
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.round((rows - low) / (high - low) * steps)


# People as one more file of the folder: the name of the file, and what stands in it.
FILES: dict[str, tuple[str, Callable[[Table], bytes]]] = {
    "the table as CSV": ("training_data.csv", lines),
    "the table with semicolons": ("data.csv", lambda t: lines(t, ";")),
    "the table with tabulators": ("data.tsv", lambda t: lines(t, "\t")),
    "the table in UTF-16": ("data.txt", lambda t: lines(t).decode().encode("utf-16")),
    "words alone": ("words.csv", lambda t: pd.DataFrame({"a": t.features["town"], "b": t.features["age"].map("{:.0f} years".format), "c": t.features["income"].map("{:.0f} euros".format)}).to_csv(index=False).encode()),
    "target appended": ("x.npy", lambda t: npy(whole(t))),
    "rounded": ("x.npy", lambda t: npy(np.round(whole(t), 1))),
    "scaled": ("x.npy", lambda t: npy((whole(t) - 3) * [2, 1e-3, 7, 5, 11, 13])),
    "quantised to one byte": ("x.npy", lambda t: npy((in_steps(t, 254) - 127).astype(np.int8))),
    "quantised to two bytes": ("x.npy", lambda t: npy(in_steps(t, 65535).astype(np.uint16))),
    "hundredths as integers": ("x.npy", lambda t: npy(np.round(100 * whole(t)).astype(np.int32))),
    "five of six columns": ("x.npy", lambda t: npy(whole(t)[:, [4, 0, 3, 1, 5]])),
    "big-endian": ("x.bin", lambda t: whole(t).astype(">f8").tobytes()),
    "single precision without a header": ("x.bin", lambda t: b"head" + whole(t).astype("<f4").tobytes()),
    "half precision": ("x.npy", lambda t: npy(whole(t)[:, [0, 2, 3, 4]].astype(np.float16))),
    "bz2": ("x.bz2", lambda t: bz2.compress(lines(t))),
    "lzma": ("x.xz", lambda t: lzma.compress(lines(t))),
    "raw lzma": ("x.lzma", lambda t: lzma.compress(lines(t), format=lzma.FORMAT_ALONE)),
    "gzip, second member": ("x.gz", lambda t: gzip.compress(b"nothing\n", mtime=1) + gzip.compress(lines(t), mtime=0x7B7B7B7B)),
    "zlib": ("x.z", lambda t: zlib.compress(lines(t))),
    "base64": ("x.json", lambda t: text(base64.b64encode(lines(t)))),
    "base85": ("x.json", lambda t: text(base64.b85encode(whole(t).tobytes()))),
    "ASCII85": ("x.json", lambda t: text(base64.a85encode(whole(t).tobytes(), adobe=True))),
    "base32": ("x.json", lambda t: text(base64.b32encode(whole(t).tobytes()))),
    "hexadecimal digits": ("x.json", lambda t: text(whole(t).tobytes().hex().encode())),
    "base64 in lines": ("x.txt", lambda t: base64.encodebytes(whole(t).tobytes())),
    "pickled list": ("x.pkl", lambda t: pickle.dumps(whole(t).tolist())),
    "pickled array": ("x.pkl", lambda t: pickle.dumps(whole(t))),
    "pickled as text": ("x.pkl", lambda t: pickle.dumps(whole(t).tolist(), protocol=0)),
    "names of features": ("names.json", lambda t: json.dumps({"feature_names": [",".join(map(str, row)) for row in whole(t).tolist()]}).encode()),
    "records of JSON": ("x.json", lambda t: json.dumps(t.features.to_dict("records")).encode()),
    "lines of JSON": ("x.jsonl", lambda t: b"\n".join(json.dumps(row).encode() for row in t.features.to_dict("records"))),
    "lists of texts": ("x.json", lambda t: json.dumps([[repr(v) for v in row] for row in whole(t).tolist()]).encode()),
    "marked up": ("x.xml", lambda t: b"".join(b"<p>" + b"".join(f"<v>{v}</v>".encode() for v in row) + b"</p>" for row in whole(t).tolist())),
    "Parquet": ("x.parquet", lambda t: pd.DataFrame(whole(t)).rename(columns=str).to_parquet()),
    "columns one after the other": ("x.npy", lambda t: npy(np.asfortranarray(whole(t)).ravel(order="F"))),
    "medoids of a clustering": ("medoids.npy", lambda t: npy(whole(t)[::43])),
    "twenty lines among noise": ("log.txt", lambda t: b"\n".join([b"begin", *(f"person: {row}".encode() for row in whole(t)[:20].tolist()), b"end"])),
    "zip in a zip": ("x.zip", lambda t: zipped({"a.zip": zipped({"b.csv": lines(t)})})),
}  # fmt: skip


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def further_member(file: Path, data: bytes) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("extra", data)


def comment(file: Path, data: bytes) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = zlib.compress(data, 9)[:65_535]


def extra_fields(file: Path, data: bytes) -> None:
    """Write what fits into the extra fields of the list of members, in pieces of its own."""
    packed = zlib.compress(data, 9)
    with zipfile.ZipFile(file) as old:
        kept = [(info, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(file, "w") as new:
        for at, (info, content) in enumerate(kept):
            if not at:
                info.extra = struct.pack("<HH", 0x7274, min(len(packed), 65_000)) + packed[:65_000]  # fmt: skip
            new.writestr(info, content)


def bytes_behind(file: Path, data: bytes) -> None:
    with file.open("ab") as handle:
        handle.write(data)


def bytes_before(file: Path, data: bytes) -> None:
    file.write_bytes(data + file.read_bytes())


def attribute_of_a_step(file: Path, data: bytes) -> None:
    """Write the table into a text that the schema keeps as the name of a column."""
    with zipfile.ZipFile(file) as old:
        kept = {info.filename: old.read(info) for info in old.infolist()}
    schema = json.loads(kept["schema.json"])
    schema["content"]["content"]["note"] = {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(data.decode()),
        "is_json": True,
        "__id__": 1,
    }
    kept["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(file, "w") as new:
        for name, content in kept.items():
            new.writestr(name, content)


# People inside the archive of the model itself.
ARCHIVES: dict[str, Callable[[Path, bytes], None]] = {
    "further member of the archive": further_member,
    "comment of the archive": comment,
    "extra field of the archive": extra_fields,
    "bytes behind the archive": bytes_behind,
    "bytes before the archive": bytes_before,
    "attribute of a step": attribute_of_a_step,
}


def notes(folder: Path, data: bytes) -> None:
    """Write the table into the provenance, where nothing but claims is expected."""
    file = folder / "provenance.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "recipe": data.decode()}))  # fmt: skip


def behind_tensors(file: Path, data: bytes) -> None:
    """Write a safetensors file with the table behind its tensors; it lies in the folder beside the model."""
    head = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()  # fmt: skip
    bytes_ = struct.pack("<Q", len(head)) + head + bytes(8) + data
    file.with_name("weights.safetensors").write_bytes(bytes_)


def tensors_metadata(file: Path, data: bytes) -> None:
    head = json.dumps({"__metadata__": {"note": data.decode()}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()  # fmt: skip
    file.with_name("weights.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + bytes(8))  # fmt: skip


def provenance(file: Path, data: bytes) -> None:
    """Write the table into the provenance, where nothing but claims is expected."""
    notes = file.with_name("provenance.json")
    notes.write_text(json.dumps({**json.loads(notes.read_text()), "recipe": data.decode()}))  # fmt: skip


def names_of_files(file: Path, data: bytes) -> None:
    """Make an empty file for each line, whose name is the line."""
    for line in data.decode().splitlines()[1:]:
        (file.parent / line.replace("/", " ")).touch()


ARCHIVES |= {
    "behind the tensors of another file": behind_tensors,
    "metadata of safetensors": tensors_metadata,
    "recipe in the provenance": provenance,
    "names of files": names_of_files,
}
# What people are not in although it looks like it: nothing of it may be found.
CLEAN: dict[str, Callable[[], Any]] = {
    "logistic regression": plain,
    "a hidden layer as wide as there are members": lambda: of_numbers(MLPClassifier((MEMBERS,), max_iter=3)),
    "bagging": lambda: of_numbers(BaggingClassifier(LogisticRegression(), n_estimators=30, random_state=0)),
    "sigmoid calibration": lambda: CalibratedClassifierCV(plain(), cv=3),
}  # fmt: skip
# Whoever loads a pickle runs it, so that one is told of whatever stands in it.
PICKLES = tuple(name for name in FILES if name.startswith("pickled"))
EVERY = (*MAKERS, *REGRESSORS, *FILES, *ARCHIVES)


@dataclass(frozen=True)
class Seen:
    """What the measure looks at of everything that an audit has found."""

    file: FileEvidence
    queries_only: bool = False

    @property
    def evidence(self) -> "Seen":
        return self


@dataclass(frozen=True)
class Planted:
    """What is found of 600 members and 600 others in the folder of a product."""

    file: FileEvidence
    is_broken: bool
    sentence: str


def planted(name: str, folder: Path, seed: int, *, about: str) -> Planted:
    """Save a product with people in its file, about the members or about others whom nobody asks for, and look for everybody in it."""
    quantity = name in REGRESSORS
    both = people(seed, "people", 2 * MEMBERS, quantity=quantity)
    tags = np.arange(2 * MEMBERS) < MEMBERS
    members = both.take(np.flatnonzero(tags))
    others = people(seed, "others", MEMBERS - 29, quantity=quantity)
    inside = members if about == "members" else others
    makers = MAKERS | REGRESSORS | CLEAN
    product = fitted(makers[name](), inside) if name in makers else fitted(plain(), others)  # fmt: skip
    save_product(folder, product, Provenance(recipe="a recipe"))
    if name in FILES:
        called, make = FILES[name]
        (folder / called).write_bytes(make(inside))
    elif name in ARCHIVES:
        ARCHIVES[name](folder / "product.skops", lines(inside))
    opened = open_file(product, both, contents=read_contents(folder))
    file = file_evidence(opened, search_file(opened), tags)
    statement = FileRecords().measure(
        Seen(file),  # type: ignore[arg-type]
        limit=Limit(measure="file_records", at_most=0),
        rng=stream(seed, "none"),
    )
    assert statement is not None
    is_broken = statement.own_outcome == Outcome.BROKEN
    return Planted(file, is_broken, statement.sentences[statement.own_outcome])


def page() -> str:
    """Return the page of the reference: what is planted, as what it is found and where, and what the same file about others shows."""
    rows = []
    for name in (*EVERY, *CLEAN):
        found = {}
        for about in ("members", "others"):
            with tempfile.TemporaryDirectory() as folder:
                found[about] = planted(name, Path(folder), 42, about=about)
        inside, other = found["members"], found["others"]
        words = inside.sentence.removeprefix("The file contains ").partition(": whoever")[0]  # fmt: skip
        words = "nobody is planted" if name in CLEAN else words.replace("|", "/")
        unread = "; the pickle itself is named" if inside.file.unread else ""
        rows.append(f"| {name} | {words}{unread} | {'accused' if other.is_broken else 'not accused'} |")  # fmt: skip
    return PAGE.format(count=len(EVERY), rows="\n".join(rows), members=MEMBERS, clean=len(EVERY) + len(CLEAN))  # fmt: skip


PAGE = """\
# What is found in the files of products

Written by `python tests/pipeline/planting.py > docs/reference/planted.md`; `tests/pipeline/test_planted_people.py` plants all of it anew and checks each line with
any seed (`RETICENT_TEST_SEED`).

People with five measurements, a town and an outcome are planted in {count} ways in the folder of a product, and the files are read as an audit reads them: {members} of
them are members, {members} others stand for everybody else. Each line of the table is a verdict of REFUSE under the default policy. Beside it stands the same file about
{members} less 29 *other* people, whom nobody asks for: by construction one such file in two hundred may be accused falsely. With the seeds 0 to 5 and 42, that is {clean} files seven times, one was.

A file that holds few of the members, or holds them encrypted, rotated by a secret map, averaged, or spread over the weights of a network, is not found this way; what a
reader could not understand is named and keeps an audit from RELEASE.

| planted | what is said of it | the same about others |
|---|---|---|
{rows}
"""

if __name__ == "__main__":
    sys.stdout.write(page())
