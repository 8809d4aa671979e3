"""Save and load products without ever executing a stranger's code."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from reticent.account import Guarantee
from reticent.errors import (
    InvalidInput,
    InvalidPredictions,
    OutputRefused,
    UnsafeProduct,
)
from reticent.product._fitted import MODEL_FILE, FittedProduct
from reticent.product._module import ModuleProduct, holds_module
from reticent.product._network import NETWORK_FILE, NetworkProduct
from reticent.product._protocols import Product
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.run import Content, content_of, write_text

__all__ = [
    "PRODUCT_FILES",
    "Provenance",
    "load_product",
    "predicts_quantity",
    "product_content",
    "read_provenance",
    "save_product",
    "versions",
]

# Names of the file of a product in its folder.
PRODUCT_FILES = (NETWORK_FILE, MODEL_FILE)
PROVENANCE_FILE = "provenance.json"
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".sav", ".pt", ".pth")
# Types that skops does not trust by default but that common models consist of: they only hold
# parameters, trees and distances; a few pure functions are among them. They are exact names, never
# whole packages: numpy.testing alone has functions that execute text. skops leaves out Tree and
# TreePredictor because a crafted one can crash the process; without them no forest could be audited.
_TRUSTED = frozenset(
    [
        "numpy.dtype",
        "reticent.train.private.classifier.PrivateNetworkClassifier",
        "sklearn._loss.loss.HalfTweedieLoss",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._mutual_info.mutual_info_classif",
        "sklearn.feature_selection._mutual_info.mutual_info_regression",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.impute._iterative.IterativeImputer",
        "sklearn.impute._iterative._ImputerTriplet",
        "sklearn.metrics._classification.accuracy_score",
        "sklearn.metrics._classification.balanced_accuracy_score",
        "sklearn.metrics._regression.mean_absolute_error",
        "sklearn.metrics._regression.mean_squared_error",
        "sklearn.metrics._regression.median_absolute_error",
        "sklearn.metrics._regression.r2_score",
        "sklearn.metrics._regression.root_mean_squared_error",
        "sklearn.metrics._scorer._CurveScorer",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.model_selection._split.KFold",
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
        "xgboost.sklearn.XGBRFRegressor",
        "xgboost.sklearn.XGBRegressor",
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
        Hash of the table that the product was trained on; empty if unknown.
    seed : int or None
        Seed of the run.
    classes : tuple of str
        Names of the classes; empty if unknown, or if the product predicts a quantity.
    versions : mapping of str to str
        Versions of the Python packages that were used.
    split : mapping of str to str
        How the table was divided, in enough detail to divide it again.
    claimed_epsilon : float or None
        Epsilon that whoever trained the product claims; None if nothing is claimed.
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
    """Return the versions of the packages that a result depends on."""
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
    installed = {}
    for name in names:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return installed


def save_product(folder: Path | str, product: Product, provenance: Provenance) -> Path:
    """Write a product and its provenance into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written or the product cannot be stored without pickle or code.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        product.save(folder / product.file_name)
    except OutputRefused:
        raise
    except OSError as error:
        raise OutputRefused(
            f"the product cannot be written to {folder} ({error.strerror or error}); choose another folder."
        ) from error
    # A folder holds one product: an older file of another kind must not be loaded in its place.
    for name in PRODUCT_FILES:
        if name != product.file_name:
            (folder / name).unlink(missing_ok=True)
    content = {
        **asdict(provenance),
        "quantity": product.quantity,
        "learned": product.learned,
    }
    write_text(folder / PROVENANCE_FILE, json.dumps(content, indent=2) + "\n")
    return folder


def load_product(
    path: Path | str, *, classes: tuple[str, ...], trust: tuple[str, ...] = ()
) -> tuple[Product, Provenance]:
    """Load a network, a module, or a skops file after checking every type in it.

    Parameters
    ----------
    path : path
        A folder written by :func:`save_product`, or a ``.skops`` file from elsewhere.
    classes : tuple of str
        Names of the classes of the table that it will be audited on; empty if the table's target is a quantity.
    trust : tuple of str
        Further types that the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If the file is a pickle, or holds a type or an operation that is not known to be harmless.
    InvalidPredictions
        If the product predicts a class and the table's target is a quantity, or the reverse.
    """
    file = _file_of(path)
    if file.suffix == ".safetensors":
        kind = ModuleProduct if holds_module(file) else NetworkProduct
        network = kind.load(file).with_classes(classes)
        return network, _read_notes(file.parent / PROVENANCE_FILE).provenance
    estimator = _load_estimator(file, trust)
    notes = _read_notes(file.parent / PROVENANCE_FILE)
    other_kind = declares_quantity if classes else declares_class
    if other_kind(estimator):
        raise InvalidPredictions(
            f"the product is a {'regression model' if classes else 'classifier'}, but the table's target is a "
            f"{'class' if classes else 'quantity'}; audit it on a table with the target it was trained for."
        )
    if not classes:
        return FittedRegressor(estimator=estimator), notes.provenance
    product = FittedProduct(estimator=estimator, classes=classes, learned=notes.learned)
    return product, notes.provenance


def predicts_quantity(path: Path | str, *, trust: tuple[str, ...] = ()) -> bool:
    """Return whether a saved product is a regression model, which tells how its table must be read.

    The answer comes from the product itself, not from its provenance, which anybody can write. Only for an estimator that
    does not say what it is, the provenance decides.

    Parameters
    ----------
    path : path
        A folder written by :func:`save_product`, or a ``.skops`` file from elsewhere.
    trust : tuple of str
        Further types that the caller vouches for, by full name.

    Raises
    ------
    UnsafeProduct
        If loading the product could run foreign code.
    """
    file = _file_of(path)
    if file.suffix == ".safetensors":
        return not holds_module(file) and NetworkProduct.load(file).quantity
    estimator = _load_estimator(file, trust)
    if declares_quantity(estimator) or declares_class(estimator):
        return declares_quantity(estimator)
    return _read_notes(file.parent / PROVENANCE_FILE).quantity


def _file_of(path: Path | str) -> Path:
    """Return the file of a product, given the file itself or its folder."""
    path = Path(path)
    file = path
    if path.is_dir():
        files = [path / name for name in PRODUCT_FILES]
        file = next((file for file in files if file.is_file()), files[-1])
    if not file.is_file():
        raise InvalidInput(
            f"there is no product at {path}; pass a folder with {MODEL_FILE} or {NETWORK_FILE}, or a .skops file."
        )
    return file


def _load_estimator(file: Path, trust: tuple[str, ...]) -> Any:
    """Return the estimator in a skops file after checking every type in it."""
    import skops.io

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
    return skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file))


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
            f"there is no {PROVENANCE_FILE} beside {path}, so nothing is known about its training; pass the folder of a product that "
            "`reticent train` or --save-product wrote."
        )
    return _read_notes(folder / PROVENANCE_FILE).provenance


@dataclass(frozen=True, kw_only=True)
class _Notes:
    """What the file beside a saved product says about it.

    Parameters
    ----------
    provenance : Provenance
        Where the product comes from.
    learned : tuple of str
        Names of the class numbers that it was trained on.
    quantity : bool
        Whether it is said to predict a quantity.
    """

    provenance: Provenance
    learned: tuple[str, ...] = ()
    quantity: bool = False


def _read_notes(file: Path) -> _Notes:
    """Return the provenance, and what else is needed to load the product."""
    if not file.is_file():
        return _Notes(provenance=Provenance())
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        content["classes"] = tuple(content.get("classes", ()))
        learned = tuple(content.pop("learned", ()))
        quantity = bool(content.pop("quantity", False))
        if "promise" in content:  # the key of version 0.1
            content["guarantee"] = content.pop("promise")
        if content.get("guarantee") is not None:
            guarantee = content["guarantee"]
            for name in ("caveats", "public"):
                guarantee[name] = tuple(guarantee.get(name, ()))
            content["guarantee"] = Guarantee(**guarantee)
        return _Notes(
            provenance=Provenance(**content), learned=learned, quantity=quantity
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"the provenance {file} cannot be read ({error}); delete it to audit the product as one of unknown origin."
        ) from error


def product_content(path: Path | str, product: Product) -> Content:
    """Return the hash of the file of a saved product.

    Parameters
    ----------
    path : path
        The product's folder, or its file.
    product : Product
        The product that was loaded from there.
    """
    path = Path(path)
    file = path / product.file_name if path.is_dir() else path
    return content_of(file.read_bytes())
