"""Products with people planted in their files, and clean ones of the same makers: what the sweep of the reader goes through."""

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
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

from reticent.data import Table, table_from_frame
from reticent.product import (
    FittedProduct,
    FittedRegressor,
    Product,
    Provenance,
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
    "gzip, second member": ("x.gz", lambda t: gzip.compress(b"nothing\n") + gzip.compress(lines(t))),
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


def saved(folder: Path, product: Product) -> Path:
    return save_product(folder, product, Provenance(recipe="a recipe"))


def with_file(folder: Path, kind: str, about: Table, learned: Table) -> Path:
    """Save a model whose file holds nobody, and people beside it."""
    saved(folder, fitted(plain(), learned))
    name, make = FILES[kind]
    (folder / name).write_bytes(make(about))
    return folder


def in_archive(folder: Path, kind: str, about: Table, learned: Table) -> Path:
    saved(folder, fitted(plain(), learned))
    ARCHIVES[kind](folder / "product.skops", lines(about))
    return folder


# What people are not in although it looks like it: nothing of it may be found.
CLEAN: dict[str, Callable[[], Any]] = {
    "logistic regression": plain,
    "a hidden layer as wide as there are members": lambda: of_numbers(MLPClassifier((MEMBERS,), max_iter=3)),
    "bagging": lambda: of_numbers(BaggingClassifier(LogisticRegression(), n_estimators=30, random_state=0)),
    "sigmoid calibration": lambda: CalibratedClassifierCV(plain(), cv=3),
}  # fmt: skip
