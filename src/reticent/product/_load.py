"""Load the model in the bytes of a product; this is done only where the product is locked in."""

import io
from typing import Any
from zipfile import BadZipFile, ZipFile

from reticent.errors import UnsafeProduct
from reticent.product._module import ModuleProduct, holds_module
from reticent.product._network import NetworkProduct
from reticent.product._parameters import refuse_parameters
from reticent.product._skops import skops_io

__all__ = ["load_estimator", "load_network"]

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


def load_network(name: str, data: bytes) -> NetworkProduct | ModuleProduct:
    """Return the network or module in the bytes of a safetensors file."""
    kind = ModuleProduct if holds_module(data) else NetworkProduct
    return kind.load(data, name)


def load_estimator(name: str, data: bytes, trust: tuple[str, ...]) -> Any:
    """Return the estimator in the bytes of a skops file, after checking every type in it and then its parameters."""
    # A skops file is a ZIP archive, which begins with these two letters; a pickle of protocol 2 or later begins with
    # 0x80.
    if name.lower().endswith(_PICKLE_ENDINGS) or not data.startswith(b"PK"):
        is_pickle = data[:1] == b"\x80" or name.lower().endswith(_PICKLE_ENDINGS)
        raise UnsafeProduct(
            f"{name} is not a skops file{' but a pickle' if is_pickle else ''}: "
            "loading a pickle can execute any code, so it is refused; save the model with skops.io.dump."
        )
    _must_unpack_to_moderate_size(name, data)
    skops = skops_io()
    try:
        types = skops.get_untrusted_types(data=data)
    except Exception as error:
        raise UnsafeProduct(
            f"{name} cannot be read as a skops file ({_short(error)}); save the model with skops.io.dump."
        ) from error
    unknown = [kind for kind in types if kind not in _TRUSTED and kind not in trust]
    if unknown:
        raise UnsafeProduct(
            f"{name} holds the type(s) {', '.join(sorted(unknown)[:5])}, whose loading could execute "
            "foreign code; read that code, then name each type with --trust."
        )
    try:
        estimator = skops.loads(data, trusted=types)
    except Exception as error:  # its parts do not fit each other: whoever wrote it may have put anything there
        raise UnsafeProduct(
            f"{name} cannot be put together again ({type(error).__name__}: {_short(error)}), so it is damaged or was made to do harm; "
            "save the model anew with skops.io.dump."
        ) from error
    refuse_parameters(estimator, trusted={*_TRUSTED, *trust})
    return estimator


def _must_unpack_to_moderate_size(name: str, data: bytes) -> None:
    """Refuse an archive that would fill the memory; nothing is unpacked to find out."""
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise UnsafeProduct(
            f"{name} cannot be read as a skops file ({_short(error)}); save the model with skops.io.dump."
        ) from error
    if size > max(MOST_UNPACKED, MOST_EXPANSION * len(data)):
        raise UnsafeProduct(
            f"{name} has {len(data):,} bytes and says that it unpacks to {size:,}, which would fill the memory and is no "
            "model; save the model with skops.io.dump."
        )


def _short(error: BaseException) -> str:
    """Return the message of somebody else's exception on one line of moderate length."""
    return " ".join(str(error).split())[:200]
