"""Read a trainer from one line of text, without evaluating it as code."""

import ast
import hashlib
import importlib
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidSpec
from reticent.train import private
from reticent.train._own_code import OwnCode
from reticent.train.models import EstimatorTrainer, first_line, wants_raw_columns
from reticent.train.networks import (
    ModuleTrainer,
    NetworkTrainer,
)
from reticent.train.private.clipping import Clipping
from reticent.train.private.trainers import PrivateModuleTrainer, PrivateNetworkTrainer
from reticent.train.recipes import (
    CROSS_ENTROPY,
    SGD,
    Adam,
    Module,
    Network,
    PrivateModule,
    PrivateNetwork,
)

__all__ = ["parse_clipping", "parse_trainer", "spell"]

_PACKAGES = ("sklearn", "xgboost")
_MAKERS = ("make_pipeline", "make_union", "make_column_transformer")


def parse_trainer(
    text: str, *, preprocess: bool = True
) -> EstimatorTrainer | NetworkTrainer | ModuleTrainer:
    """Return the trainer that a line of text describes.

    ``reticent.Network(hidden=[64], epochs=50)`` is a multilayer perceptron (extra ``torch``);
    ``reticent.Module("nets:make", epochs=20)`` is the ``torch.nn.Module`` that the user's
    function returns for a number of inputs and of classes, and ``loss="losses:focal"`` names a loss
    of the user for it. Otherwise either a call with literal arguments, such as
    ``sklearn.ensemble.RandomForestClassifier(n_estimators=200)``, possibly with other such
    calls as arguments (``sklearn.pipeline.make_pipeline(...)``); or ``module:callable``, a
    function of the user that returns an unfitted estimator. A call is parsed, its class looked
    up in scikit-learn or XGBoost, and its arguments read as literals: no expression is
    evaluated. A ``module:callable`` is imported and called, as any program's own code.

    Parameters
    ----------
    text : str
        The description.
    preprocess : bool
        Whether imputation, one-hot coding and scaling go before it; a pipeline that begins
        with a ``ColumnTransformer`` treats the raw columns itself.

    Raises
    ------
    InvalidSpec
        If the text is not of this form or names nothing that exists.

    Examples
    --------
    >>> parse_trainer("sklearn.tree.DecisionTreeClassifier(max_depth=3)").recipe
    'sklearn.tree.DecisionTreeClassifier(max_depth=3)'
    >>> parse_trainer("sklearn.tree.DecisionTreeClassifier(max_depth=open('x'))")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    reticent.errors.InvalidSpec: ...not a class of sklearn or xgboost...
    """
    text = text.strip()
    is_call = "(" in text
    if ":" in text and not is_call:
        make: OwnCode | _FromCall = OwnCode(text)
    else:
        make = _FromCall(text if is_call else text + "()")
    estimator = make()
    if isinstance(estimator, PrivateNetwork):
        return PrivateNetworkTrainer(network=estimator, recipe=text)
    if isinstance(estimator, Network):
        return NetworkTrainer(network=estimator, recipe=text)
    if isinstance(estimator, Module):
        function = OwnCode(estimator.make)
        function.found()  # a name that does not exist is told before the audit begins
        source = function.source()
        if estimator.loss != CROSS_ENTROPY:
            loss = OwnCode(estimator.loss)
            loss.found()
            both = f"{source} {loss.source()}"
            source = hashlib.sha256(both.encode()).hexdigest()
        if isinstance(estimator, PrivateModule):
            return PrivateModuleTrainer(
                make=function, training=estimator, recipe=text, source=source
            )
        return ModuleTrainer(
            make=function, training=estimator, recipe=text, source=source
        )
    if not hasattr(estimator, "fit"):
        raise InvalidSpec(
            f"{text!r} gives a {type(estimator).__name__} without a fit method, so it cannot be trained; "
            "name a classifier."
        )
    return EstimatorTrainer(
        make=make,
        recipe=text,
        preprocess=preprocess and not wants_raw_columns(estimator),
        source=make.source() if isinstance(make, OwnCode) else "",
    )


@dataclass(frozen=True)
class _FromCall:
    """A call with literal arguments, read again for each training."""

    text: str

    def __call__(self) -> Any:
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            raise InvalidSpec(
                f"the trainer {self.text!r} cannot be read ({error.msg}); write it as "
                '"package.Class(name=value)" or "module:function".'
            ) from error
        return _build(tree.body)


def _build(node: ast.expr) -> Any:
    """Return the estimator a call describes, or the literal that any other node is."""
    if isinstance(node, ast.Call):
        maker = _look_up(_dotted(node.func))
        if any(keyword.arg is None for keyword in node.keywords):
            raise InvalidSpec(
                "'**' in the trainer hides its arguments; write them out as name=value."
            )
        positional = [_build(argument) for argument in node.args]
        named = {
            _RENAMED.get(str(keyword.arg), str(keyword.arg)): _build(keyword.value)
            for keyword in node.keywords
        }
        try:
            return maker(*positional, **named)
        except (TypeError, ValueError) as error:
            raise InvalidSpec(
                f"{_dotted(node.func)} does not take these arguments ({first_line(error)}); check their names."
            ) from error
    if isinstance(node, ast.List | ast.Tuple):
        items = [_build(item) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise InvalidSpec(
            f"{ast.unparse(node)!r} in the trainer is not a literal, and nothing else is evaluated; "
            "write numbers, text, True, False, None, or lists of them."
        ) from error


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise InvalidSpec(
        f"{ast.unparse(node)!r} in the trainer is not a name; write package.Class(name=value)."
    )


_CLIPPINGS = (
    "Clip",
    "Automatic",
    "PSAC",
    "PerLayer",
    "Tanh",
    "TanhThenClip",
    "ClipThenTanh",
    "Sigmoid",
)
# Names of arguments in recipes that version 0.1 wrote into provenances.
_RENAMED = {"treatment": "clipping"}
_OWN = {
    f"reticent.{recipe.__name__}": recipe
    for recipe in (
        *(Network, Module, PrivateNetwork, PrivateModule, SGD, Adam),
        *(getattr(private, name) for name in _CLIPPINGS),
    )
}


def spell(recipe: object) -> str:
    """Return the text from which :func:`parse_trainer` makes a recipe of this package again.

    Examples
    --------
    >>> spell(PrivateNetwork(hidden=(16,), noise_multiplier=1.5, optimiser=SGD(rate=2.0)))
    'reticent.PrivateNetwork(hidden=(16,), optimiser=reticent.SGD(rate=2.0), noise_multiplier=1.5)'
    """
    if not is_dataclass(recipe) or isinstance(recipe, type):
        return repr(recipe)
    changed = [
        f"{field.name}={spell(getattr(recipe, field.name))}"
        for field in fields(recipe)
        if getattr(recipe, field.name) != field.default
    ]
    return f"reticent.{type(recipe).__name__}({', '.join(changed)})"


def parse_clipping(text: str) -> Clipping:
    """Make a clipping of gradients from its description.

    Examples
    --------
    >>> parse_clipping("reticent.Clip(norm=0.5)")
    Clip(norm=0.5)
    """
    made = _FromCall(text if "(" in text else text + "()")()
    if not isinstance(made, Clipping):
        raise InvalidSpec(
            f"{text!r} gives a {type(made).__name__}, which bounds no gradient; write, for example, reticent.Clip(norm=1.0)."
        )
    return made


def _look_up(name: str) -> Any:
    if name in _OWN:
        return _OWN[name]
    module_name, _, attribute = name.rpartition(".")
    if module_name.split(".")[0] not in _PACKAGES or attribute.startswith("_"):
        raise InvalidSpec(
            f"{name!r} in the trainer is not a class of {' or '.join(_PACKAGES)} by its full name; "
            "name such a class, or pass your own function as module:function."
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        hint = (
            "install reticent[xgboost]"
            if name.startswith("xgboost")
            else "check its name"
        )
        raise InvalidSpec(
            f"the module {module_name!r} of the trainer cannot be imported ({error}); {hint}."
        ) from error
    found = getattr(module, attribute, None)
    from sklearn.base import BaseEstimator

    if attribute in _MAKERS and found is not None:
        return found
    if not (isinstance(found, type) and issubclass(found, BaseEstimator)):
        known = [
            n
            for n in dir(module)
            if isinstance(getattr(module, n), type)
            and issubclass(getattr(module, n), BaseEstimator)
        ]
        raise InvalidSpec(
            f"{module_name} has no estimator {attribute!r}; {nearest(attribute, known)}."
        )
    return found
