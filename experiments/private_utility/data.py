"""The records of the experiment, as features that are public functions of one record each.

No mean, variance, quantile or list of categories is taken from a data set: a statistic of the private records
would have to be paid for. Scattering features are normalised within each record; numbers of Adult are
scaled by fixed ranges, its categories are those of the codebook.
"""

import gzip
import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scattering import Scattering, group_normalised

__all__ = ["Parts", "adult", "fashion_mnist", "mnist"]

FASHION = Path("/usr/share/datasets/fashion-mnist")

# The codebook of UCI Adult (adult.names), in its order; "?" is its mark for a missing value.
CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, Never-worked, ?",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, Masters, "
    "1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, Handlers-cleaners, "
    "Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, Protective-serv, Armed-Forces, ?",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, Outlying-US(Guam-USVI-etc), India, Japan, "
    "Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, "
    "France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia, Hungary, Guatemala, Nicaragua, Scotland, Thailand, "
    "Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, Hong, Holand-Netherlands, ?",
}
# From a number to [0, 1], by ranges anyone would state without a look at the records.
SCALES = {
    "age": lambda years: years / 100,
    "hours-per-week": lambda hours: hours / 100,
    "capital-gain": lambda dollars: np.log1p(dollars) / math.log(1e5),
    "capital-loss": lambda dollars: np.log1p(dollars) / math.log(1e5),
}
BINS = 20  # equal parts of [0, 1]: a linear classifier may bend


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Features and labels of the training and the test records.

    Parameters
    ----------
    x_train, x_test : ndarray of float32
        One row per record.
    y_train, y_test : ndarray of int64
        Class of each record, from 0.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


def mnist(data: Path, *, groups: int, kept: Path | None = None) -> Parts:
    """Return scattering features of MNIST, normalised in so many groups of channels.

    Parameters
    ----------
    data : Path
        The folder of data sets.
    groups : int
        Of :func:`scattering.group_normalised`.
    kept : Path, optional
        A folder where coefficients are kept from one run to the next.
    """
    with np.load(data / "mnist/mnist.npz") as z:
        x, y = (z["x_train"], z["x_test"]), (z["y_train"], z["y_test"])
    return _scattered(x, y, groups, kept)


def fashion_mnist(
    folder: Path = FASHION, *, groups: int, kept: Path | None = None
) -> Parts:
    """Return scattering features of Fashion-MNIST (Xiao et al., arXiv:1708.07747).

    Parameters
    ----------
    folder : Path
        Where the four files lie.
    groups, kept
        As for :func:`mnist`.
    """
    if not (folder / "train-images-idx3-ubyte.gz").exists():
        raise FileNotFoundError(
            f"Fashion-MNIST is not in {folder}; install the Debian package with 'apt-get install dataset-fashion-mnist', or put the "
            "four idx files of github.com/zalandoresearch/fashion-mnist there."
        )
    x = [_idx(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    y = [_idx(folder / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k")]
    return _scattered((x[0], x[1]), (y[0], y[1]), groups, kept)


def adult(data: Path) -> Parts:
    """Return Adult with public encodings; the survey weight is left out, the split is the original one.

    A value that the codebook does not have is all zeros.
    """
    frame = pd.read_csv(data / "adult/adult.csv.gz")
    columns = []
    for name, scale in SCALES.items():
        scaled = np.clip(scale(frame[name].to_numpy(float)), 0, 1)
        part = np.minimum(BINS * scaled, BINS - 1).astype(int)
        columns += [scaled[:, None], np.eye(BINS)[part]]
    for name, listed in CATEGORIES.items():
        values = np.array(listed.split(", "))
        columns.append(frame[name].to_numpy(str)[:, None] == values)
    x = np.concatenate(columns, axis=1).astype(np.float32)
    y = (frame["income"] == ">50K").to_numpy(np.int64)
    train = (frame["split"] == "train").to_numpy()
    return Parts(x_train=x[train], y_train=y[train], x_test=x[~train], y_test=y[~train])


def _scattered(
    images: tuple[np.ndarray, np.ndarray],
    labels: tuple[np.ndarray, np.ndarray],
    groups: int,
    kept: Path | None,
) -> Parts:
    made = [
        group_normalised(torch.from_numpy(_coefficients(x, kept)), groups).numpy()
        for x in images
    ]
    y = [label.astype(np.int64) for label in labels]
    return Parts(x_train=made[0], y_train=y[0], x_test=made[1], y_test=y[1])


def _coefficients(images: np.ndarray, kept: Path | None) -> np.ndarray:
    scattering = Scattering(side=images.shape[1])
    if kept is None:
        return scattering.transform(images).numpy()
    # The name says what was transformed, by what code and with what parameters: nothing stale can be found under it.
    code = (Path(__file__).parent / "scattering.py").read_bytes()
    told = repr((scattering, images.shape, str(images.dtype))).encode()
    key = hashlib.sha256(told + code + np.ascontiguousarray(images).tobytes())
    path = kept / f"scattering-{key.hexdigest()[:16]}.npy"
    if path.exists():
        return np.load(path)
    made = scattering.transform(images).numpy()
    kept.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npy")
    np.save(part, made)
    part.replace(path)
    return made


def _idx(path: Path) -> np.ndarray:
    """Return the array of bytes in a gzipped idx file."""
    raw = gzip.decompress(path.read_bytes())
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is no idx file of bytes; it begins with {raw[:3]!r}.")
    shape = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape).copy()
