"""Save and load products without ever executing a stranger's code."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from reticent.account import Guarantee
from reticent.errors import InvalidInput, OutputRefused, UnsafeProduct
from reticent.product._fitted import FittedProduct
from reticent.product._module import ModuleProduct, holds_module
from reticent.product._network import NETWORK_FILE, NetworkProduct
from reticent.run import write_text

__all__ = [
    "Product",
    "Provenance",
    "load_product",
    "read_provenance",
    "save_product",
    "versions",
]

Product = FittedProduct | NetworkProduct | ModuleProduct

MODEL_FILE, PROVENANCE_FILE = "product.skops", "provenance.json"
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".sav", ".pt", ".pth")
# What skops does not trust by itself but common classifiers are made of: types that only hold
# parameters, trees and distances, and a few pure functions. Exact names, never whole packages:
# numpy.testing alone has functions that execute text. skops leaves out Tree and TreePredictor
# because a crafted one can crash the process; without them no forest could be audited.
_TRUSTED = frozenset(
    [
        "numpy.dtype",
        "reticent.train.private.classifier.PrivateNetworkClassifier",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.impute._iterative.IterativeImputer",
        "sklearn.impute._iterative._ImputerTriplet",
        "sklearn.metrics._classification.accuracy_score",
        "sklearn.metrics._classification.balanced_accuracy_score",
        "sklearn.metrics._scorer._CurveScorer",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.model_selection._split.StratifiedKFold",
        "sklearn.multiclass._ConstantPredictor",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRFClassifier",
        *(
            f"reticent.train.private.clipping.{clipping}"
            for clipping in (
                "Automatic",
                "Clip",
                "ClipThenTanh",
                "PSAC",
                "PerLayer",
                "Sigmoid",
                "Tanh",
                "TanhThenClip",
            )
        ),
        *(
            f"sklearn.gaussian_process.kernels.{kernel}"
            for kernel in (
                "ConstantKernel",
                "DotProduct",
                "ExpSineSquared",
                "Exponentiation",
                "Matern",
                "Product",
                "RBF",
                "RationalQuadratic",
                "Sum",
                "WhiteKernel",
            )
        ),
        *(
            f"sklearn.metrics._dist_metrics.{metric}Distance{bits}"
            for metric in (
                "BrayCurtis",
                "Canberra",
                "Chebyshev",
                "Euclidean",
                "Hamming",
                "Haversine",
                "Manhattan",
                "Minkowski",
            )
            for bits in (32, 64)
        ),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a product comes from.

    Parameters
    ----------
    recipe : str
        The trainer's description; empty if unknown.
    data_fingerprint : str
        Hash of the table the product was made from; empty if unknown.
    seed : int or None
        The run's seed.
    classes : tuple of str
        Names of the classes.
    versions : mapping of str to str
        Versions of Python packages at work.
    split : mapping of str to str
        How the table was divided: enough to divide it again.
    claimed_epsilon : float or None
        Privacy that whoever trained the product claims; None if nothing is claimed.
    guarantee : Guarantee or None
        The guarantee of the training, if it has one.
    """

    recipe: str = ""
    data_fingerprint: str = ""
    seed: int | None = None
    classes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    split: Mapping[str, str] = field(default_factory=dict)
    claimed_epsilon: float | None = None
    guarantee: Guarantee | None = None


def versions() -> dict[str, str]:
    """Return the versions of the packages a result depends on."""
    names = (
        "reticent",
        "numpy",
        "scipy",
        "scikit-learn",
        "pandas",
        "xgboost-cpu",
        "xgboost",
        "torch",
        "numba",
    )
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def save_product(folder: Path | str, product: Product, provenance: Provenance) -> Path:
    """Write a product and its provenance into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written or the product cannot be stored without pickle or code.
    """
    folder = Path(folder)
    learned: tuple[str, ...] = ()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(product, NetworkProduct | ModuleProduct):
            product.save(folder / NETWORK_FILE)
        else:
            part = folder / (MODEL_FILE + ".part")
            part.write_bytes(_as_skops(product))
            part.replace(folder / MODEL_FILE)
            learned = product.learned
    except OutputRefused:
        raise
    except OSError as error:
        raise OutputRefused(
            f"the product cannot be written to {folder} ({error.strerror or error}); choose another folder."
        ) from error
    # One folder holds one product: what was there before must not be loaded in its place.
    other = NETWORK_FILE if isinstance(product, FittedProduct) else MODEL_FILE
    (folder / other).unlink(missing_ok=True)
    content = {**asdict(provenance), "learned": learned}
    write_text(folder / PROVENANCE_FILE, json.dumps(content, indent=2) + "\n")
    return folder


def _as_skops(product: FittedProduct) -> bytes:
    import skops.io

    try:
        return bytes(skops.io.dumps(product.estimator))
    except Exception as error:
        raise OutputRefused(
            f"{type(product.estimator).__name__} cannot be stored without pickle ({error}); "
            "use a scikit-learn or XGBoost model."
        ) from error


def load_product(
    path: Path | str, *, classes: tuple[str, ...], trust: tuple[str, ...] = ()
) -> tuple[Product, Provenance]:
    """Load a network or module, or a product saved with skops after checking every type in it.

    Parameters
    ----------
    path : path
        A folder made by :func:`save_product`, or a ``.skops`` file made elsewhere.
    classes : tuple of str
        Names of the classes of the table it will be audited on.
    trust : tuple of str
        Further types the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If it is a pickle, or holds a type or an operation that is not known to be harmless.
    """
    import skops.io

    path = Path(path)
    file = path
    if path.is_dir():
        network = path / NETWORK_FILE
        file = network if network.is_file() else path / MODEL_FILE
    if not file.is_file():
        raise InvalidInput(
            f"there is no product at {path}; pass a folder with {MODEL_FILE} or {NETWORK_FILE}, or a .skops file."
        )
    if file.suffix == ".safetensors":
        kind = ModuleProduct if holds_module(file) else NetworkProduct
        made = kind.load(file).with_classes(classes)
        return made, _read_provenance(file.parent / PROVENANCE_FILE)[0]
    with file.open("rb") as handle:
        head = handle.read(4)
    if file.suffix.lower() in _PICKLE_ENDINGS or not head.startswith(b"PK"):
        raise UnsafeProduct(
            f"{file.name} is not a skops file{' but a pickle' if head[:1] == bytes([0x80]) or file.suffix.lower() in _PICKLE_ENDINGS else ''}: "
            "loading a pickle can execute any code, so it is refused; save the model with skops.io.dump."
        )
    try:
        unknown = [
            name
            for name in skops.io.get_untrusted_types(file=file)
            if name not in _TRUSTED and name not in trust
        ]
    except Exception as error:
        raise UnsafeProduct(
            f"{file.name} cannot be read as a skops file ({error}); save the model with skops.io.dump."
        ) from error
    if unknown:
        raise UnsafeProduct(
            f"{file.name} holds the type(s) {', '.join(sorted(unknown)[:5])}, whose loading could execute "
            "foreign code; read that code, then name each type with --trust."
        )
    estimator = skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))
    provenance, learned = _read_provenance(file.parent / PROVENANCE_FILE)
    product = FittedProduct(estimator=estimator, classes=classes, learned=learned)
    return product, provenance


def read_provenance(path: Path | str) -> Provenance:
    """Return where a saved product comes from, without loading the product.

    Parameters
    ----------
    path : path
        The product's folder, or a file in it.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    if not (folder / PROVENANCE_FILE).is_file():
        raise InvalidInput(
            f"there is no {PROVENANCE_FILE} beside {path}, so nothing is known of its training; pass the folder of a product that "
            "`reticent train` or --save-product wrote."
        )
    return _read_provenance(folder / PROVENANCE_FILE)[0]


def _read_provenance(file: Path) -> tuple[Provenance, tuple[str, ...]]:
    """Return the provenance, and the classes behind the numbers the product was trained on."""
    if not file.is_file():
        return Provenance(), ()
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        content["classes"] = tuple(content.get("classes", ()))
        learned = tuple(content.pop("learned", ()))
        if "promise" in content:  # as version 0.1 called it
            content["guarantee"] = content.pop("promise")
        if content.get("guarantee") is not None:
            guarantee = content["guarantee"]
            for name in ("caveats", "public"):
                guarantee[name] = tuple(guarantee.get(name, ()))
            content["guarantee"] = Guarantee(**guarantee)
        return Provenance(**content), learned
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"the provenance {file} cannot be read ({error}); delete it to audit the product as one of unknown origin."
        ) from error
