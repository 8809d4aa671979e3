"""Read a trainer from one line of text, without evaluating it as code."""

import ast
from dataclasses import dataclass, fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from reticent.errors import InvalidSpec
from reticent.product import Trainer
from reticent.run import content_of
from reticent.train import private
from reticent.train._estimators import full_name, is_fitted, look_up
from reticent.train._own_code import OwnCode
from reticent.train._plain import WrappedTrainer
from reticent.train.adapted import AdaptedModuleTrainer
from reticent.train.adversarial import (
    AdversarialNetwork,
    AdversarialNetworkTrainer,
)
from reticent.train.models import (
    EstimatorTrainer,
    describe,
    first_line,
    wants_raw_columns,
)
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
    AdaptedModule,
    Module,
    Network,
    PrivateModule,
    PrivateNetwork,
)
from reticent.train.retaught import (
    Distillation,
    LabelSmoothing,
    Retaught,
    RetaughtTrainer,
)
from reticent.train.soft.recipes import (
    PerRecord,
    RepairedLabels,
    SoftLabels,
    Taught,
    Validated,
)
from reticent.train.soft.trainer import SoftLabelTrainer

__all__ = [
    "parse_claimed",
    "parse_clipping",
    "parse_trainer",
    "private_trainer_of",
    "spell",
    "trainer_of",
]

# What a trainer states besides recipe and train.
_CAPABILITIES = (
    "chunk",
    "repeatable",
    "content",
    "train_many",
    "guarantee",
    "must_be_storable",
    "watching",
    "parameters",
    "prepares",
    "student",
)


def parse_trainer(text: str, *, preprocess: bool = True) -> Trainer:
    """Return the trainer that a line of text describes.

    ``reticent.Network(hidden=[64], epochs=50)`` is a multilayer perceptron (extra ``torch``);
    ``reticent.Module("nets:make", epochs=20)`` is the ``torch.nn.Module`` that the user's
    function returns for a number of inputs and of classes, and ``loss="losses:focal"`` names a loss
    of the user for it. Any other text is either a call with literal arguments, such as
    ``sklearn.ensemble.RandomForestClassifier(n_estimators=200)``, possibly with other such
    calls as arguments (``sklearn.pipeline.make_pipeline(...)``); or ``module:callable``, a
    function of the user that returns an unfitted estimator. A call is parsed, its class looked
    up in scikit-learn, XGBoost, LightGBM or CatBoost, by its full name or by the name of the class alone, and its
    arguments read as literals: no expression is
    evaluated. A ``module:callable`` is imported and called, like the code of any program.

    Parameters
    ----------
    text : str
        The description.
    preprocess : bool
        Whether imputation, one-hot coding and scaling precede the model; a pipeline that begins
        with a ``ColumnTransformer`` preprocesses the raw columns itself.

    Raises
    ------
    InvalidSpec
        If the text is not of this form or names nothing that exists.

    Examples
    --------
    >>> parse_trainer("sklearn.tree.DecisionTreeClassifier(max_depth=3)").recipe
    'sklearn.tree.DecisionTreeClassifier(max_depth=3)'
    >>> parse_trainer("DecisionTreeClassifier(max_depth=3)").recipe
    'sklearn.tree.DecisionTreeClassifier(max_depth=3)'
    >>> parse_trainer("sklearn.tree.DecisionTreeClassifier(max_depth=open('x'))")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    reticent.errors.InvalidSpec: ...not a class of sklearn...
    """
    text = text.strip()
    is_call = "(" in text
    named = ":" in text and not is_call
    make: OwnCode | _FromCall
    if named:
        make = OwnCode(text)
    else:
        text = _with_full_names(text) if is_call else full_name(text, _RECIPES)
        make = _FromCall(text if is_call else text + "()")
    thing = make()
    of_recipe = _trainer_of_recipe(thing, text, preprocess=preprocess)
    if of_recipe is not None:
        return of_recipe
    if not hasattr(thing, "fit"):
        raise InvalidSpec(
            f"{text!r} gives a {type(thing).__name__} without a fit method, so it cannot be trained; "
            "name a classifier or a regression model."
        )
    _must_be_unfitted(thing, text)
    return EstimatorTrainer(
        make=make,
        recipe=text,
        preprocess=preprocess and not wants_raw_columns(thing),
        code=OwnCode(text).content() if named else content_of(),
    )


def parse_claimed(text: str) -> Trainer:
    """Return the trainer that a file beside a product describes: a stranger's text, which can start nothing.

    Only private networks of reticent's own, alone or with soft labels, are made of it, by literal arguments: no module is imported, no class of a library is
    looked up, no file is read, and nothing is so large that it would fill the memory or the day. Whoever wants more names it
    themselves, for :func:`parse_trainer`.

    Parameters
    ----------
    text : str
        The description.

    Raises
    ------
    InvalidSpec
        If the text describes anything else.

    Examples
    --------
    >>> parse_claimed("reticent.PrivateNetwork(hidden=(16,))").recipe
    'reticent.PrivateNetwork(hidden=(16,))'
    >>> parse_claimed('reticent.PrivateModule("nets:make")')
    Traceback (most recent call last):
    ...
    reticent.errors.InvalidSpec: the recipe ... is not run because a file says so...
    """
    recipes = _claimed_recipes(text)
    if not recipes:
        shown = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
        raise InvalidSpec(
            f"the recipe {shown!r} comes with the product and is not run because a file says so; {_NAME_IT}"
        )
    for recipe, _ in recipes:
        if recipe.domain is not None:
            raise InvalidSpec(
                f"the recipe that comes with the product reads the file {recipe.domain!r}, which is not done because a file says so; "
                f"{_NAME_IT}"
            )
    steps = sum(
        times * recipe.epochs * max(1, (recipe.rows or 1) // recipe.batch)
        for recipe, times in recipes
    )
    units = sum(times * sum(recipe.hidden) for recipe, times in recipes)
    if steps > MOST_CLAIMED_STEPS or units > MOST_CLAIMED_UNITS:
        raise InvalidSpec(
            f"the recipe that comes with the product asks for {steps:,} steps and {units:,} hidden units, which is not done because a file "
            f"says so; {_NAME_IT}"
        )
    trainer = _trainer_of_recipe(_FromCall(text.strip())(), text.strip())
    assert trainer is not None
    return trainer


def _claimed_recipes(text: str) -> list[tuple[PrivateNetwork, int]]:
    """Return the private networks that a stranger's text describes, each with how often it is trained; nothing for anything else."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        names = {_dotted(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        if not names <= _CLAIMABLE:
            return []
        recipe = _build(tree.body)
        recipes = [(recipe, 1)]
        if isinstance(recipe, SoftLabels):
            if not _is_typed(recipe, but=("trainer", "teacher")):
                return []
            teacher = recipe.trainer if recipe.teacher is None else recipe.teacher
            recipes = [(recipe.trainer, 1), (teacher, recipe.teachers * recipe.passes)]
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return []
    claimed = all(
        isinstance(one, PrivateNetwork) and _is_typed(one) for one, _ in recipes
    )
    return recipes if claimed else []


def _is_typed(recipe: Any, *, but: tuple[str, ...] = ()) -> bool:
    """Return whether every parameter of a recipe, but those named, is of its type, which Python itself does not check."""
    hints = get_type_hints(type(recipe))
    return all(
        _is_a(getattr(recipe, field.name), hints[field.name])
        for field in fields(recipe)
        if field.name not in but
    )


def _is_a(value: Any, hint: Any) -> bool:
    if get_origin(hint) in (UnionType, Union):
        return any(_is_a(value, one) for one in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(
            _is_a(item, get_args(hint)[0]) for item in value
        )
    if hint in (int, float):
        number = (int,) if hint is int else (int, float)
        return type(value) in number and abs(value) < LARGEST_CLAIMED
    if is_dataclass(value):
        return isinstance(value, hint) and _is_typed(value)
    return isinstance(value, hint)


def trainer_of(thing: object, *, preprocess: bool = True) -> Trainer:
    """Return the trainer that an object describes.

    Parameters
    ----------
    thing : object
        A line of text (:func:`parse_trainer`); a recipe such as :class:`Network` or :class:`PrivateModule`; a
        scikit-learn-like classifier, which is cloned for each training; a trainer; or any object with ``recipe`` and
        ``train``, which gets the other capabilities of a :class:`PlainTrainer`.
    preprocess : bool
        Whether imputation, one-hot coding and scaling precede a classifier.

    Raises
    ------
    InvalidSpec
        If the object is none of these.

    Examples
    --------
    >>> trainer_of(Network(hidden=[16])).recipe
    'reticent.Network(hidden=(16,))'
    >>> trainer_of(3)
    Traceback (most recent call last):
    ...
    reticent.errors.InvalidSpec: an int cannot be trained; pass ...
    """
    if isinstance(thing, str):
        return parse_trainer(thing, preprocess=preprocess)
    of_recipe = _trainer_of_recipe(thing, None, preprocess=preprocess)
    if of_recipe is not None:
        return of_recipe
    if isinstance(thing, type):
        raise InvalidSpec(
            f"{thing.__name__} is a class, but a trainer is built from one of its objects; pass {thing.__name__}(...)."
        )
    if isinstance(thing, Trainer):
        return thing
    if hasattr(thing, "train") and hasattr(thing, "recipe"):
        stated = [name for name in _CAPABILITIES if hasattr(thing, name)]
        if stated:
            missing = [name for name in _CAPABILITIES if name not in stated]
            raise InvalidSpec(
                f"the trainer {type(thing).__name__} states {', '.join(stated)} but not {', '.join(missing)}, so reticent cannot know "
                "what it is capable of; derive it from reticent.train.PlainTrainer, which has a default for each."
            )
        return WrappedTrainer(thing)
    if hasattr(thing, "fit"):
        _must_be_unfitted(thing, type(thing).__name__)
        return EstimatorTrainer.of(thing, preprocess=preprocess)
    article = "an" if type(thing).__name__[0] in "aeiou" else "a"
    raise InvalidSpec(
        f"{article} {type(thing).__name__} cannot be trained; pass a classifier with a fit method, a recipe such as "
        "reticent.Network(), a line of text, or an object with recipe and train."
    )


def _must_be_unfitted(estimator: object, called: str) -> None:
    """Refuse a fitted estimator: it would be trained anew on other records, and the audit would speak of another model."""
    if is_fitted(estimator):
        raise InvalidSpec(
            f"{called} is fitted already, but a trainer is trained anew, so the audit would not be about this model; audit it as it is with "
            "reticent.audit(product=model, members=(X, y), nonmembers=(X, y)), or pass sklearn.base.clone(model) to audit its recipe."
        )


def private_trainer_of(
    recipe: PrivateNetwork | PrivateModule,
) -> PrivateNetworkTrainer | PrivateModuleTrainer:
    """Return the trainer of a private recipe, which can report its progress.

    Raises
    ------
    InvalidSpec
        If the recipe is not private.
    """
    trainer = _trainer_of_recipe(recipe, None)
    if isinstance(trainer, PrivateNetworkTrainer | PrivateModuleTrainer):
        return trainer
    raise InvalidSpec(
        f"{spell(recipe)} adds no noise, so nothing can be guaranteed about it; pass a reticent.PrivateNetwork(...) or a "
        "reticent.PrivateModule(...)."
    )


def _trainer_of_recipe(
    recipe: object, text: str | None, *, preprocess: bool = True
) -> Trainer | None:
    """Return the trainer of a recipe of this package, or None for anything else."""
    if isinstance(recipe, Taught):
        inner = trainer_of(recipe.trainer, preprocess=preprocess)
        teacher = inner
        if recipe.teacher is not None:
            teacher = trainer_of(recipe.teacher, preprocess=preprocess)
        return SoftLabelTrainer(
            soft=recipe, inner=inner, teacher=teacher, recipe=text or spell(recipe)
        )
    if isinstance(recipe, Retaught):
        inner = trainer_of(recipe.trainer, preprocess=preprocess)
        return RetaughtTrainer(how=recipe, inner=inner, recipe=text or spell(recipe))
    if isinstance(recipe, PrivateNetwork):
        return PrivateNetworkTrainer(network=recipe, recipe=text or spell(recipe))
    if isinstance(recipe, AdversarialNetwork):
        return AdversarialNetworkTrainer(network=recipe, recipe=text or spell(recipe))
    if isinstance(recipe, Network):
        return NetworkTrainer(network=recipe, recipe=text or spell(recipe))
    if not isinstance(recipe, Module):
        return None
    make = OwnCode(recipe.make)
    make.function()  # so that a name that does not exist is refused before the audit begins
    if recipe.loss != CROSS_ENTROPY:
        OwnCode(recipe.loss).function()
    text, code = text or spell(recipe), make.content()
    if isinstance(recipe, PrivateModule):
        return PrivateModuleTrainer(make=make, training=recipe, recipe=text, code=code)
    if isinstance(recipe, AdaptedModule):
        return AdaptedModuleTrainer(make=make, training=recipe, recipe=text, code=code)
    return ModuleTrainer(make=make, training=recipe, recipe=text, code=code)


@dataclass(frozen=True)
class _FromCall:
    """A call with literal arguments, which is read again for each training."""

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
    """Return the estimator that a call describes, or the value of a literal."""
    if isinstance(node, ast.Call):
        maker = look_up(_dotted(node.func), _RECIPES)
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


def _with_full_names(text: str) -> str:
    """Return the text with the full name of each class that stands alone in it, so that every spelling is one recipe."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return text  # whoever builds it says what is wrong
    alone = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    lines = text.encode().split(b"\n")  # places in a tree are counted in bytes
    for name in sorted(alone, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        assert name.end_col_offset is not None
        line = lines[name.lineno - 1]
        lines[name.lineno - 1] = (
            line[: name.col_offset]
            + full_name(name.id, _RECIPES).encode()
            + line[name.end_col_offset :]
        )
    return b"\n".join(lines).decode()


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
# Arguments that version 0.1 wrote into provenances under another name.
_RENAMED = {"treatment": "clipping"}
_RECIPES = {
    f"reticent.{recipe.__name__}": recipe
    for recipe in (
        *(Network, Module, PrivateNetwork, PrivateModule, AdaptedModule, SGD, Adam),
        *(SoftLabels, RepairedLabels, PerRecord, Validated),
        *(LabelSmoothing, Distillation, AdversarialNetwork),
        *(getattr(private, name) for name in _CLIPPINGS),
    )
}


# What a description may name that nobody vouches for: these classes hold numbers and words.
_CLAIMABLE = {
    f"reticent.{name}"
    for name in (
        "PrivateNetwork",
        "SoftLabels",
        "PerRecord",
        "SGD",
        "Adam",
        *_CLIPPINGS,
    )
}
_NAME_IT = "if you know what it does, name it yourself with --trainer."
LONGEST_SHOWN = 200  # characters of a stranger's recipe in an error
# About a hundred times what a table ever needs; beyond, a training would be a way to keep a machine busy.
MOST_CLAIMED_STEPS, MOST_CLAIMED_UNITS = 1_000_000, 100_000
LARGEST_CLAIMED = 1e12  # of any number in it


def spell(recipe: object) -> str:
    """Return the text from which :func:`parse_trainer` builds a recipe of this package again.

    Examples
    --------
    >>> spell(PrivateNetwork(hidden=(16,), noise_multiplier=1.5, optimiser=SGD(rate=2.0)))
    'reticent.PrivateNetwork(hidden=(16,), optimiser=reticent.SGD(rate=2.0), noise_multiplier=1.5)'
    """
    if isinstance(recipe, Trainer):
        return recipe.recipe if "(" in recipe.recipe else repr(recipe.recipe)
    if hasattr(recipe, "get_params") and not isinstance(recipe, type):
        return describe(recipe)
    if not is_dataclass(recipe) or isinstance(recipe, type):
        return repr(recipe)
    changed = [
        f"{field.name}={spell(getattr(recipe, field.name))}"
        for field in fields(recipe)
        if getattr(recipe, field.name) != field.default
    ]
    return f"reticent.{type(recipe).__name__}({', '.join(changed)})"


def parse_clipping(text: str) -> Clipping:
    """Return the clipping of gradients that a line of text describes.

    Examples
    --------
    >>> parse_clipping("reticent.Clip(norm=0.5)")
    Clip(norm=0.5)
    """
    clipping = _FromCall(_with_full_names(text if "(" in text else text + "()"))()
    if not isinstance(clipping, Clipping):
        raise InvalidSpec(
            f"{text!r} gives a {type(clipping).__name__}, which bounds no gradient; write, for example, reticent.Clip(norm=1.0)."
        )
    return clipping
