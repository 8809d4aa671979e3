"""Save and load products without ever executing a stranger's code."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

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
from reticent.product._provenance import (
    PROVENANCE_FILE,
    Notes,
    Provenance,
    read_notes,
    write_notes,
)
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.product._skops import skops_io
from reticent.product._synthetic import SYNTHETIC_FILE
from reticent.run import Content, content_of, open_folder

__all__ = [
    "PRODUCT_FILES",
    "load_product",
    "predicts_quantity",
    "product_content",
    "save_product",
]

# Names of the file of a product in its folder.
PRODUCT_FILES = (NETWORK_FILE, MODEL_FILE, SYNTHETIC_FILE)
# A skops file is an archive: what it unpacks to must stay in proportion to the file, or be of moderate size at all.
MOST_UNPACKED, MOST_EXPANSION = 1024**3, 20
_PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib", ".sav", ".pt", ".pth")
# Types that skops does not trust by default but that common models consist of: they only hold
# parameters, trees and distances; a few pure functions are among them. They are exact names, never
# whole packages: numpy.testing alone has functions that execute text. skops leaves out Tree and
# TreePredictor because a crafted one can crash the process; without them no forest could be audited.
_TRUSTED = frozenset(
    [
        "catboost.core.CatBoostClassifier",
        "catboost.core.CatBoostRegressor",
        "collections.OrderedDict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "numpy.dtype",
        "reticent.product._probabilities.ProbabilityRegressor",
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


def save_product(folder: Path | str, product: Product, provenance: Provenance) -> Path:
    """Write a product and its provenance into a folder; return the folder.

    Raises
    ------
    OutputRefused
        If the folder cannot be written or the product cannot be stored without pickle or code.
    """
    folder = Path(folder)
    try:
        open_folder(folder)
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
    write_notes(
        folder,
        Notes(
            provenance=provenance, quantity=product.quantity, learned=product.learned
        ),
    )
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
        return network, read_notes(file.parent / PROVENANCE_FILE).provenance
    estimator = _load_estimator(file, trust)
    notes = read_notes(file.parent / PROVENANCE_FILE)
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
    return read_notes(file.parent / PROVENANCE_FILE).quantity


def _file_of(path: Path | str) -> Path:
    """Return the file of a product, given the file itself or its folder."""
    path = Path(path)
    file = path
    if path.is_dir():
        files = [path / name for name in (NETWORK_FILE, MODEL_FILE)]
        file = next((file for file in files if file.is_file()), files[-1])
        if not file.is_file() and (path / SYNTHETIC_FILE).is_file():
            raise InvalidInput(
                f"{path} holds a synthetic table and no model; audit it with --synthetic in place of --product."
            )
    if not file.is_file():
        raise InvalidInput(
            f"there is no product at {path}; pass a folder with {MODEL_FILE} or {NETWORK_FILE}, or a .skops file."
        )
    return file


def _load_estimator(file: Path, trust: tuple[str, ...]) -> Any:
    """Return the estimator in a skops file after checking every type in it."""
    skops = skops_io()

    with file.open("rb") as handle:
        head = handle.read(4)
    # A skops file is a ZIP archive, which begins with these two letters; a pickle of protocol 2 or later begins with
    # 0x80.
    if file.suffix.lower() in _PICKLE_ENDINGS or not head.startswith(b"PK"):
        raise UnsafeProduct(
            f"{file.name} is not a skops file{' but a pickle' if head[:1] == bytes([0x80]) or file.suffix.lower() in _PICKLE_ENDINGS else ''}: "
            "loading a pickle can execute any code, so it is refused; save the model with skops.io.dump."
        )
    _must_unpack_to_moderate_size(file)
    try:
        types = skops.get_untrusted_types(file=file)
    except Exception as error:
        raise UnsafeProduct(
            f"{file.name} cannot be read as a skops file ({_short(error)}); save the model with skops.io.dump."
        ) from error
    unknown = [name for name in types if name not in _TRUSTED and name not in trust]
    if unknown:
        raise UnsafeProduct(
            f"{file.name} holds the type(s) {', '.join(sorted(unknown)[:5])}, whose loading could execute "
            "foreign code; read that code, then name each type with --trust."
        )
    try:
        return skops.load(file, trusted=types)
    except Exception as error:  # its parts do not fit each other: whoever wrote it may have put anything there
        raise UnsafeProduct(
            f"{file.name} cannot be put together again ({type(error).__name__}: {_short(error)}), so it is damaged or was made to do harm; "
            "save the model anew with skops.io.dump."
        ) from error


def _must_unpack_to_moderate_size(file: Path) -> None:
    """Refuse an archive that would fill the memory; nothing is unpacked to find out."""
    try:
        with ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnsafeProduct(
            f"{file.name} cannot be read as a skops file ({_short(error)}); save the model with skops.io.dump."
        ) from error
    if size > max(MOST_UNPACKED, MOST_EXPANSION * file.stat().st_size):
        raise UnsafeProduct(
            f"{file.name} has {file.stat().st_size:,} bytes and says that it unpacks to {size:,}, which would fill the memory and is no "
            "model; save the model with skops.io.dump."
        )


def _short(error: BaseException) -> str:
    """Return the message of somebody else's exception on one line of moderate length."""
    return " ".join(str(error).split())[:200]


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
    # All of its bytes: the same folder may hold another product tomorrow.
    return content_of(file.read_bytes())
