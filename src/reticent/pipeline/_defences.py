"""What could be done about a model that remembers its records: the usual defences around one recipe, each at several strengths.

A defence is a recipe. To add one to the usual set, add a function to ``FAMILIES`` that returns recipes as text; nothing else changes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from reticent.account import Budget, Relation
from reticent.errors import InvalidSpec
from reticent.pipeline._train import default_network
from reticent.product import Trainer
from reticent.train import (
    gentler_call,
    parse_trainer,
    spell,
    trainer_of,
    with_noise_for,
)

__all__ = ["DEFAULT_MODEL", "Candidate", "candidates_of", "defences_around"]

UNDEFENDED = "as it is"
DEFAULT_MODEL = "sklearn.ensemble.RandomForestClassifier()"
BUDGETS = (
    1.0,
    3.0,
    8.0,
)  # epsilons: strict, common in practice, and the loosest that studies call private


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A defence at one strength.

    Parameters
    ----------
    family : str
        The defence: ``"larger leaves"``. Candidates of one family are joined by a line.
    change : str
        Its strength, in words; empty if there is only one.
    trainer : Trainer
        What is trained.
    """

    family: str
    change: str = ""
    trainer: Trainer

    @property
    def words(self) -> str:
        """The family with its strength."""
        return f"{self.family}, {self.change}" if self.change else self.family


def candidates_of(trainers: Sequence[object]) -> tuple[Candidate, ...]:
    """Return the defences that somebody named, each a family of its own.

    Parameters
    ----------
    trainers : sequence of trainer, recipe, estimator or str
        The defences.
    """
    made = [trainer_of(thing) for thing in trainers]
    return tuple(
        Candidate(family=_short(trainer.recipe), trainer=trainer) for trainer in made
    )


def _short(recipe: str) -> str:
    """Return a recipe without the modules of its classes.

    Examples
    --------
    >>> _short("sklearn.tree.DecisionTreeClassifier(max_depth=3)")
    'DecisionTreeClassifier(max_depth=3)'
    """
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", recipe)


def defences_around(model: object = None, *, rows: int) -> tuple[Candidate, ...]:
    """Return the model as it is, and the usual defences for its kind.

    Parameters
    ----------
    model : trainer, recipe, estimator or str, optional
        The undefended model; by default a random forest.
    rows : int
        Records that each model is trained on, for the noise of private training.

    Examples
    --------
    >>> tree = defences_around("sklearn.tree.DecisionTreeClassifier(max_depth=9)", rows=500)
    >>> [each.change for each in tree if each.family == "larger leaves"]
    ['5 records', '20 records', '80 records']
    """
    trainer = trainer_of(DEFAULT_MODEL if model is None else model)
    recipe = _Recipe.of(trainer)
    candidates = [Candidate(family=UNDEFENDED, trainer=trainer)]
    known = {trainer.recipe}
    for family, make in FAMILIES:
        for change, text in make(recipe, rows):
            try:
                made = parse_trainer(text)
            except InvalidSpec:
                continue  # a model that takes hard labels only has no such defence
            # A change that the model has already is not a defence of it.
            if made.recipe not in known:
                known.add(made.recipe)
                candidates.append(Candidate(family=family, change=change, trainer=made))
    return tuple(candidates)


@dataclass(frozen=True, kw_only=True)
class _Recipe:
    """A recipe as text, and what may be changed about it."""

    text: str
    parameters: dict[str, object]
    quantity: bool

    @classmethod
    def of(cls, trainer: Trainer) -> "_Recipe":
        text = trainer.recipe if "(" in trainer.recipe else f"{trainer.recipe}()"
        parameters = dict(trainer.parameters())
        # What is not written as a call, such as module:function, cannot be written with another argument.
        if not gentler_call(text, "x", 0):
            parameters = {}
        return cls(text=text, parameters=parameters, quantity=trainer.quantity)

    def number(self, name: str) -> float | None:
        """Return a parameter that is a number; None if there is none of this name, or it is no number."""
        value = self.parameters.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value

    def with_(self, name: str, value: object) -> str:
        return gentler_call(self.text, name, value)


Changes = Iterator[tuple[str, str]]


def _larger_leaves(recipe: _Recipe, rows: int) -> Changes:
    """Trees whose leaves hold more records: each says less about one."""
    for name in ("min_samples_leaf", "min_child_samples", "min_data_in_leaf"):
        if name not in recipe.parameters:
            continue
        for leaf in (5, 20, 80):
            if leaf > (recipe.number(name) or 1) and 4 * leaf < rows:
                yield f"{leaf} records", recipe.with_(name, leaf)
        return


def _smaller_model(recipe: _Recipe, rows: int) -> Changes:
    """Fewer parameters: shallower trees, narrower layers."""
    if "max_depth" in recipe.parameters:
        for depth in (6, 3):
            if depth < (recipe.number("max_depth") or 99):
                yield f"depth {depth}", recipe.with_("max_depth", depth)
    hidden = recipe.parameters.get("hidden")
    if isinstance(hidden, tuple) and hidden and max(hidden) > 1:
        half = tuple(max(1, width // 4) for width in hidden)
        yield f"layers of {', '.join(map(str, half))}", recipe.with_("hidden", half)


def _regularisation(recipe: _Recipe, rows: int) -> Changes:
    """Stronger penalties on large weights."""
    strength = recipe.number("C")
    if strength is not None:
        for factor in (10, 100):
            yield f"C = {strength / factor:g}", recipe.with_("C", strength / factor)
        return
    for name in ("l2", "l2_regularization", "reg_lambda", "alpha"):
        value = recipe.number(name)
        if value is None:
            continue
        # Networks add `l2 W` to a gradient of order 1; boosting adds its penalty to a sum over the records of a leaf.
        for penalty in (0.001, 0.01) if name in ("l2", "alpha") else (10.0, 100.0):
            if penalty > value:
                yield f"{name} = {penalty:g}", recipe.with_(name, penalty)
        return


def _early_stopping(recipe: _Recipe, rows: int) -> Changes:
    """Fewer passes over the records, or fewer rounds of boosting."""
    names = ["epochs"]
    # Rounds of boosting fit what the rounds before left over; trees of a forest do not.
    if "learning_rate" in recipe.parameters:
        names += ["max_iter", "n_estimators", "iterations"]
    for name in names:
        value = recipe.number(name)
        if value is None and name in recipe.parameters and name == "n_estimators":
            value = 100  # XGBoost's default
        if value is None:
            continue
        for factor in (2, 4, 8):
            fewer = int(value // factor)
            if fewer >= 1:
                yield f"{name} = {fewer}", recipe.with_(name, fewer)
        return


def _soft_labels(recipe: _Recipe, rows: int) -> Changes:
    """Targets from teachers that never saw the record, moved towards its label."""
    for alpha in (1.0, 0.5, 0.0):
        yield f"alpha {alpha:g}", f"reticent.SoftLabels({recipe.text}, alpha={alpha})"


def _soft_per_record(recipe: _Recipe, rows: int) -> Changes:
    """Yield the same with an alpha for each record, by how much it would be remembered."""
    yield "", f"reticent.SoftLabels({recipe.text}, alpha=reticent.PerRecord())"


def _split_ensemble(recipe: _Recipe, rows: int) -> Changes:
    """Yield the mean answer of models that never saw the record, distilled, in the manner of SELENA (Tang et al., arXiv:2110.08324)."""
    yield "", f"reticent.SoftLabels({recipe.text}, alpha=0.0, mixture=True)"


def _smoothing(recipe: _Recipe, rows: int) -> Changes:
    """Ordinary label smoothing."""
    if not recipe.quantity:
        for share in (0.1, 0.3):
            yield (
                f"share {share:g}",
                f"reticent.LabelSmoothing({recipe.text}, share={share})",
            )


def _distillation(recipe: _Recipe, rows: int) -> Changes:
    """Yield a student of a teacher that saw the same records."""
    if not recipe.quantity:
        yield "", f"reticent.Distillation({recipe.text})"


def _adversarial(recipe: _Recipe, rows: int) -> Changes:
    """Yield the network trained against an attacker beside it."""
    if not recipe.text.startswith("reticent.Network(") or recipe.quantity:
        return
    if recipe.number("dropout"):
        return
    for strength in (1.0, 3.0):
        text = recipe.with_("strength", strength)
        yield (
            f"strength {strength:g}",
            text.replace("Network(", "AdversarialNetwork(", 1),
        )


def _private(recipe: _Recipe, rows: int) -> Changes:
    """DP-SGD: a network with a proven guarantee, whatever the model was."""
    if recipe.quantity:
        return
    for epsilon in BUDGETS:
        yield f"epsilon {epsilon:g}", _private_recipe(epsilon, rows)


def _private_soft(recipe: _Recipe, rows: int) -> Changes:
    """DP-SGD with soft labels; the guarantee is that of teachers and student together."""
    if not recipe.quantity:
        loosest = _private_recipe(BUDGETS[-1], rows)
        yield "", f"reticent.SoftLabels({loosest}, alpha=1.0, folds=5, repeats=2)"


@cache
def _private_recipe(epsilon: float, rows: int) -> str:
    """Return the network of `reticent train` with the noise that an epsilon needs; finding it takes seconds."""
    delta = 1 / (10 * rows)
    noisy = with_noise_for(
        default_network(rows),
        Budget(epsilon=epsilon, delta=delta),
        rows=rows,
        delta=delta,
        relation=Relation.ADD_REMOVE,
    )
    return spell(noisy)


FAMILIES: tuple[tuple[str, Callable[[_Recipe, int], Changes]], ...] = (
    ("larger leaves", _larger_leaves),
    ("smaller model", _smaller_model),
    ("regularisation", _regularisation),
    ("early stopping", _early_stopping),
    ("label smoothing", _smoothing),
    ("distillation", _distillation),
    ("adversarial regularisation", _adversarial),
    ("soft labels", _soft_labels),
    ("soft labels, alpha per record", _soft_per_record),
    ("split ensemble", _split_ensemble),
    ("private training", _private),
    ("private training, soft labels", _private_soft),
)
