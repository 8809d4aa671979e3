"""Classes of estimators by name, and what the libraries they come from need to be told."""

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from reticent._check import nearest
from reticent.errors import InvalidSpec

__all__ = ["PACKAGES", "full_name", "is_fitted", "look_up", "well_behaved"]

PACKAGES = ("sklearn", "xgboost", "lightgbm", "catboost")
_MAKERS = ("make_pipeline", "make_union", "make_column_transformer")
# How the classes of the other packages begin, none of which scikit-learn has.
_PREFIXES = {"XGB": "xgboost", "LGBM": "lightgbm", "CatBoost": "catboost"}
# Where scikit-learn keeps its estimators and what one may want to put before them; the first that has a name is taken.
_MODULES = tuple(
    f"sklearn.{name}"
    for name in (
        *("linear_model", "ensemble", "tree", "svm", "neighbors", "naive_bayes"),
        *("neural_network", "discriminant_analysis", "gaussian_process", "dummy"),
        *("calibration", "semi_supervised", "multiclass", "multioutput", "isotonic"),
        *("kernel_ridge", "cross_decomposition", "model_selection", "pipeline"),
        *("compose", "preprocessing", "impute", "decomposition", "cluster"),
        *("feature_selection", "feature_extraction", "kernel_approximation"),
        *("random_projection", "manifold", "mixture", "covariance", "frozen"),
    )
)


def full_name(name: str, recipes: Mapping[str, Any]) -> str:
    """Return the full name of a class that is named by itself; any other name as it is.

    Parameters
    ----------
    name : str
        A name as it was typed.
    recipes : mapping of str to class
        Recipes of this package, by their full names.

    Examples
    --------
    >>> full_name("LogisticRegression", {})
    'sklearn.linear_model.LogisticRegression'
    >>> full_name("LGBMClassifier", {})
    'lightgbm.LGBMClassifier'
    """
    if "." in name:
        return name
    if f"reticent.{name}" in recipes:
        return f"reticent.{name}"
    for prefix, package in _PREFIXES.items():
        if name.startswith(prefix):
            return f"{package}.{name}"
    for module in _MODULES:
        if name in getattr(importlib.import_module(module), "__all__", ()):
            return f"{module}.{name}"
    return name


def _names() -> list[str]:
    """Return the names of scikit-learn that can stand alone."""
    modules = [importlib.import_module(module) for module in _MODULES]
    return [name for module in modules for name in getattr(module, "__all__", ())]


def look_up(name: str, recipes: Mapping[str, Any]) -> Any:
    """Return the recipe, estimator class or pipeline function with a full name.

    Parameters
    ----------
    name : str
        The full name.
    recipes : mapping of str to class
        Recipes of this package, by their full names.

    Raises
    ------
    InvalidSpec
        If there is no such class, or it may not be named.
    """
    if name in recipes:
        return recipes[name]
    module_name, _, attribute = name.rpartition(".")
    if module_name.split(".")[0] not in PACKAGES or attribute.startswith("_"):
        packages = f"{', '.join(PACKAGES[:-1])} or {PACKAGES[-1]}"
        near = difflib.get_close_matches(name, _names() if not module_name else [], n=1)
        hint = (
            f"the nearest match is {near[0]!r}, or" if near else "name such a class, or"
        )
        raise InvalidSpec(
            f"{name!r} in the trainer is not a class of {packages}; "
            f"{hint} pass your own function as module:function."
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        package = module_name.split(".")[0]
        hint = (
            "check its name" if package == "sklearn" else f"install reticent[{package}]"
        )
        raise InvalidSpec(
            f"the module {module_name!r} of the trainer cannot be imported ({error}); {hint}."
        ) from error
    named = getattr(module, attribute, None)
    if attribute in _MAKERS and named is not None:
        return named
    if not _is_estimator(named):
        known = [n for n in dir(module) if _is_estimator(getattr(module, n, None))]
        elsewhere = full_name(attribute, recipes)
        hint = nearest(attribute, known)
        if elsewhere not in (name, attribute):
            hint = f"write {attribute}, which is {elsewhere}"
        raise InvalidSpec(f"{module_name} has no estimator {attribute!r}; {hint}.")
    return named


def _is_estimator(named: object) -> bool:
    """Whether a name stands for a class of estimators; CatBoost's derive from no class of scikit-learn."""
    return (
        isinstance(named, type)
        and hasattr(named, "get_params")
        and hasattr(named, "fit")
    )


def is_fitted(estimator: object) -> bool:
    """Return whether an estimator has learned from records already, as far as it says so.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> is_fitted(DummyClassifier()), is_fitted(DummyClassifier().fit([[0]], [0]))
    (False, True)
    """
    try:
        if not estimator.__sklearn_tags__().requires_fit:  # type: ignore[attr-defined]
            return False  # it learns nothing, so nothing is lost if it is trained anew
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):
        # Not made as scikit-learn makes estimators, so only the names of its attributes tell.
        return any(
            name.endswith("_") and not name.startswith("_")
            for name in getattr(estimator, "__dict__", {})
        )
    return True


def well_behaved(estimator: Any, seed: int) -> Any:
    """Return an estimator that prints nothing, writes no file, and gives the same answers on every number of cores.

    LightGBM and CatBoost print to the standard output, on which the dossier may be expected; CatBoost writes a folder and has a seed that
    ``get_params`` does not list. What the user has set is left as it is. Estimators inside a pipeline are looked at as well.

    Parameters
    ----------
    estimator : object
        An unfitted estimator; its parameters are changed.
    seed : int
        Seed for estimators that have one but do not list it.
    """
    inside = [estimator]
    if hasattr(estimator, "get_params"):
        inside += [
            v for v in estimator.get_params(deep=True).values() if _can_be_set(v)
        ]
    for one in inside:
        package = type(one).__module__.split(".")[0]
        given = one.get_params(deep=False) if _can_be_set(one) else {}
        if package == "lightgbm":
            settings: dict[str, object] = {
                "deterministic": True,
                "force_row_wise": True,
            }
            if not {"verbose", "verbosity"} & set(given):
                settings["verbosity"] = -1
        elif package == "catboost":
            settings = {"allow_writing_files": False}
            if not {"verbose", "logging_level", "silent", "verbose_eval"} & set(given):
                settings["logging_level"] = "Silent"
            if not {"random_state", "random_seed"} & set(given):
                settings["random_seed"] = seed
        else:
            continue
        one.set_params(**{k: v for k, v in settings.items() if k not in given})
    return estimator


def _can_be_set(thing: object) -> bool:
    return (
        hasattr(thing, "get_params")
        and hasattr(thing, "set_params")
        and not isinstance(thing, type)
    )
