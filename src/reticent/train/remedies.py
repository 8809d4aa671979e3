"""What could make a trainer's products remember less: its own recipe with one parameter changed.

The parameters are those that the field's studies of overfitting and membership name: fewer and larger leaves, stronger penalties, fewer
passes over the records. Whether a change helps on a table, and what it costs, is for the next audit to say.
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Remedy", "gentler_call", "remedies_of_parameters"]

LARGE_LEAF = 20  # records; the smallest group that a policy shows by itself has as many
FACTOR = 10.0  # a penalty is changed by this: smaller steps rarely show in an audit


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """Something that could make a product remember less; whether it does is for an audit to say.

    Parameters
    ----------
    words : str
        What is changed: ``"larger leaves"``.
    recipe : str
        The trainer with that change; empty if it cannot be written down.
    """

    words: str
    recipe: str = ""


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """A parameter, in which direction it protects, and how to say it."""

    parameter: str
    words: str
    gentler: Callable[[Any], Any]


def _larger_leaf(value: Any) -> int | None:
    # A share of the records (a float below 1) cannot be compared with a count.
    known = value if isinstance(value, int) else 1
    return max(LARGE_LEAF, 4 * known)


def _stronger(value: Any) -> float | None:
    return FACTOR * value if isinstance(value, int | float) and value > 0 else 1.0


def _smaller(value: Any) -> float | None:
    return value / FACTOR if isinstance(value, int | float) and value > 0 else None


def _half(value: Any) -> int | None:
    return value // 2 if isinstance(value, int) and value > 1 else None


RULES = (
    _Rule(
        parameter="min_samples_leaf", words="larger leaves", gentler=_larger_leaf
    ),  # scikit-learn's trees, forests and boosting
    _Rule(
        parameter="min_child_weight", words="larger leaves", gentler=_larger_leaf
    ),  # XGBoost
    _Rule(
        parameter="min_child_samples", words="larger leaves", gentler=_larger_leaf
    ),  # LightGBM
    _Rule(
        parameter="min_data_in_leaf", words="larger leaves", gentler=_larger_leaf
    ),  # CatBoost
    _Rule(parameter="C", words="stronger regularisation", gentler=_smaller),
    _Rule(parameter="alpha", words="stronger regularisation", gentler=_stronger),
    _Rule(parameter="reg_lambda", words="stronger regularisation", gentler=_stronger),
    _Rule(
        parameter="l2_regularization",
        words="stronger regularisation",
        gentler=_stronger,
    ),
    _Rule(parameter="epochs", words="fewer epochs", gentler=_half),
)


def remedies_of_parameters(
    parameters: Mapping[str, Any], recipe: str
) -> tuple[Remedy, ...]:
    """Return what the known rules say about these parameters, with the recipe that would be trained instead.

    Parameters
    ----------
    parameters : mapping of str to object
        Parameters of an estimator or a network, with their values.
    recipe : str
        The call that made it; anything else, such as ``module:function``, gets words without a recipe.

    Examples
    --------
    >>> for remedy in remedies_of_parameters({"min_samples_leaf": 1, "n_jobs": None}, "Forest(n_estimators=30)"):
    ...     print(remedy.words, "|", remedy.recipe)
    larger leaves | Forest(n_estimators=30, min_samples_leaf=20)
    """
    remedies, said = [], set()
    for rule in RULES:
        if rule.parameter not in parameters or rule.words in said:
            continue
        value = rule.gentler(parameters[rule.parameter])
        if value is not None and value != parameters[rule.parameter]:
            said.add(rule.words)
            remedies.append(
                Remedy(
                    words=rule.words,
                    recipe=gentler_call(recipe, rule.parameter, value),
                )
            )
    return tuple(remedies)


def gentler_call(recipe: str, parameter: str, value: object) -> str:
    """Return a call with one argument set; an empty text if the recipe is not a call.

    Examples
    --------
    >>> gentler_call("sklearn.tree.DecisionTreeClassifier(max_depth=3)", "max_depth", 2)
    'sklearn.tree.DecisionTreeClassifier(max_depth=2)'
    >>> gentler_call("mine:make", "C", 0.1)
    ''
    """
    text = recipe if "(" in recipe or ":" in recipe else f"{recipe}()"
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        return ""
    if not isinstance(call, ast.Call):
        return ""
    argument = ast.keyword(
        arg=parameter, value=ast.parse(repr(value), mode="eval").body
    )
    names = [keyword.arg for keyword in call.keywords]
    if parameter in names:
        call.keywords[names.index(parameter)] = argument
    else:
        call.keywords.append(argument)
    return ast.unparse(call)
