"""Generators of synthetic tables as trainers: what is trained on records and samples rows."""

import ast
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from reticent.account import Budget, Guarantee, Relation, Target, Terms
from reticent.data import Table, as_frame, in_columns_of
from reticent.errors import InvalidInput, InvalidSpec, ReticentError, TrainerFailed
from reticent.product import SyntheticTable
from reticent.run import Content, code_of, content_of, named_by_user
from reticent.train._plain import PlainTrainer
from reticent.train.marginals import MarginalGenerator, PrivateTable, size_class
from reticent.train.wgan import WassersteinGenerator

__all__ = [
    "Generator",
    "RecipeGenerator",
    "generator_of",
    "parse_claimed_generator",
    "parse_generator",
]

# Recipes of reticent's own that make synthetic tables: one line each.
RECIPES: dict[str, type[PrivateTable]] = {
    "reticent.MarginalGenerator": MarginalGenerator,
    "reticent.WassersteinGenerator": WassersteinGenerator,
}
# What a description that nobody vouches for may set: numbers and words, no file.
CLAIMABLE = frozenset(
    {
        *("target", "noise_multiplier", "failure", "rows", "rows_per_person"),
        *("constraints", "method"),
        *("mode", "steps", "sampling_rate", "trainings", "fall", "matched"),
        "with_critic",  # whether it is at hand beside the table; the table is the same
    }
)
LONGEST_SHOWN = 200  # characters of a recipe in an error


@dataclass(frozen=True)
class Generator(PlainTrainer):
    """A function of the user that fits a generator on a frame and samples rows from it.

    Many libraries draw from global streams of random numbers. Those of NumPy, of Python and, if it is loaded, of PyTorch are therefore seeded while the
    function runs, so that it repeats itself, and put back to where they were afterwards.

    Parameters
    ----------
    recipe : str
        Its name, ``module:function``. It is called with a data frame of records, the number of rows to sample and a seed, and returns a frame with
        the same columns. Numbers and truth values are floats in the frame, categories texts, and missing values NaN.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.
    """

    recipe: str
    rows_per_record: float = 1.0

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return the rows that the function makes of the records of a table.

        Raises
        ------
        TrainerFailed
            If the function fails, or returns no table of the same columns.
        """
        function = named_by_user(self.recipe, role="generator", what="function")
        rows = max(1, round(self.rows_per_record * len(table)))
        # A copy: what the user's function does to it must not reach the records.
        records = table.features.copy()
        try:
            with _global_streams(seed):
                frame = as_frame(function(records, rows, seed), name=self.recipe)
        except ReticentError:
            raise
        except Exception as error:
            # The kind only: a message could quote cells of the table.
            raise TrainerFailed(
                f"the generator {self.recipe} failed with {type(error).__name__}; try it outside reticent first, as function(frame, rows, seed)."
            ) from error
        return _as_synthetic(frame, table, self.recipe)

    def content(self) -> Content:
        """Return the name, the number of rows, and the code of the function."""
        return content_of(self.recipe, self.rows_per_record) + code_of(self.recipe)

    def sampling(self, rows_per_record: float) -> "Generator":
        """Return the same generator with another number of rows for each record."""
        return replace(self, rows_per_record=rows_per_record)


@dataclass(frozen=True, kw_only=True)
class RecipeGenerator(PlainTrainer):
    """A recipe of reticent's own as the generator of an audit: its tables are never released, so their noise is seeded.

    Parameters
    ----------
    made_by : PrivateTable
        The recipe of the table that is audited.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.
    lenient : bool
        Whether what the noise hides of a table is guessed in place of being refused: whoever released a table had more people, or luck. Where the recipe itself is judged, it
        must do what it does, and a refusal is a result.
    """

    made_by: PrivateTable
    rows_per_record: float = 1.0
    lenient: bool = True

    @property
    def recipe(self) -> str:  # type: ignore[override]
        """The call that makes the recipe again."""
        return self.made_by.recipe

    def content(self) -> Content:
        """Return the parameters of the recipe, and the number of rows."""
        rows = content_of("generator", self.rows_per_record)
        return self.made_by.as_shadow().content() + rows

    def train(self, table: Table, *, seed: int) -> SyntheticTable:
        """Return rows that the recipe makes of the records of a table, with seeded noise.

        Raises
        ------
        InvalidInput
            If the recipe cannot be used on the table.
        """
        rows = max(20, round(self.rows_per_record * len(table)))
        shadow = replace(self.made_by.as_shadow(), rows=rows, lenient=self.lenient)
        records = _first_rows(table, self.made_by.rows_per_person)
        # Its columns are coded as those of the table already.
        return shadow.train(records, seed=seed)

    def table_guarantee(self, table: Table, terms: Terms) -> Guarantee | None:
        """Return what a table guarantees that was made with the recipe's own noise."""
        return self.made_by.guarantee_on(table, terms)

    def sampling(self, rows_per_record: float) -> "RecipeGenerator":
        """Return the same generator with another number of rows for each record, to be judged itself."""
        return replace(self, rows_per_record=rows_per_record, lenient=False)


def parse_generator(
    text: str, *, rows_per_record: float, members: Table
) -> Generator | RecipeGenerator:
    """Return the generator that a user names.

    Parameters
    ----------
    text : str
        ``module:function``, which is imported; or a recipe of reticent's own such as ``reticent.MarginalGenerator(epsilon=1)``, whose arguments are
        read as literals. Instead of a noise multiplier it may state ``epsilon``, and ``delta``: the noise is then calibrated to the members.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.
    members : Table
        The records that the audited table was made from.

    Raises
    ------
    InvalidSpec
        If there is no such function or recipe.
    InvalidInput
        If the recipe cannot have made a table of these records.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> text = "MarginalGenerator(noise_multiplier=2.0)"
    >>> parse_generator(text, rows_per_record=1, members=builtin_table()).recipe
    "reticent.MarginalGenerator(method='tree', noise_multiplier=2.0)"
    """
    text = text.strip()
    if "(" not in text and ":" in text:
        named_by_user(text, role="generator", what="function")
        return Generator(text, rows_per_record)
    name, arguments = _call(text if "(" in text else f"{text}()")
    epsilon, delta = arguments.pop("epsilon", None), arguments.pop("delta", None)
    if epsilon is not None and "noise_multiplier" in arguments:
        raise InvalidSpec(
            f"the generator {_shown(text)} states both epsilon and noise_multiplier, of which one follows from the other; write one of them."
        )
    if epsilon is None and delta is not None:
        raise InvalidSpec(
            f"the generator {_shown(text)} states delta but no epsilon, so there is nothing to calibrate; write epsilon as well, or leave delta out."
        )
    recipe = _made(name, arguments)
    if epsilon is not None:
        recipe = _calibrated(recipe, members, epsilon, delta)
    return generator_of(recipe, rows_per_record=rows_per_record, members=members)


def parse_claimed_generator(
    text: str, *, rows_per_record: float, members: Table
) -> RecipeGenerator:
    """Return the generator that a file beside a synthetic table describes: a stranger's text, which can start nothing.

    Only recipes of reticent's own are made of it, by literal arguments, and no file is read.

    Parameters
    ----------
    text, rows_per_record, members
        As in :func:`parse_generator`.

    Raises
    ------
    InvalidSpec
        If the text describes anything else.
    InvalidInput
        If the recipe cannot have made a table of these records.

    Examples
    --------
    >>> from reticent.data import builtin_table
    >>> parse_claimed_generator("os:abort", rows_per_record=1, members=builtin_table())
    Traceback (most recent call last):
    ...
    reticent.errors.InvalidSpec: the generator 'os:abort' cannot be read...
    """
    name, arguments = _call(text)
    unknown = sorted(set(arguments) - CLAIMABLE)
    if unknown:
        raise InvalidSpec(
            f"the recipe {_shown(text)} comes with the table and sets {unknown[0]!r}, which is not done because a file says so; if you know what it "
            "does, name it yourself with --generator."
        )
    return generator_of(
        _made(name, arguments), rows_per_record=rows_per_record, members=members
    )


def generator_of(
    recipe: Any, *, rows_per_record: float, members: Table
) -> RecipeGenerator:
    """Return a recipe of reticent's own as the generator of an audit.

    Parameters
    ----------
    recipe : PrivateTable
        The recipe of the table that is audited.
    rows_per_record : float
        Rows to sample for each record that it is fitted on.
    members : Table
        The records that the audited table was made from; by their number the method is chosen, once for all tables.

    Raises
    ------
    InvalidInput
        If the recipe cannot have made a table of these records.
    """
    if not isinstance(recipe, PrivateTable):
        raise InvalidSpec(
            f"a {type(recipe).__name__} is no generator; pass a recipe such as reticent.MarginalGenerator(...), or the name of a function as "
            "'module:function'."
        )
    first = _first_rows(members, recipe.rows_per_person)
    # Refused here, and not by the first of many shadow tables.
    recipe.must_be_declared(first)
    return RecipeGenerator(
        made_by=recipe.settled(first), rows_per_record=rows_per_record
    )


def _made(name: str, arguments: dict[str, Any]) -> PrivateTable:
    try:
        return RECIPES[name](**arguments)
    except TypeError:
        raise InvalidSpec(
            f"{name} does not take the arguments {', '.join(arguments)}; check their names."
        ) from None


def _calibrated(
    recipe: PrivateTable, members: Table, epsilon: Any, delta: Any
) -> PrivateTable:
    """Return a recipe with the least noise that keeps epsilon on the members."""
    if delta is None:
        delta = 1 / (10 * size_class(len(members)))  # as reticent synthesize takes it
    try:
        target: Target = Budget(epsilon=float(epsilon), delta=float(delta))
    except (TypeError, ValueError) as error:
        if isinstance(error, ReticentError):
            raise
        raise InvalidSpec(
            f"epsilon and delta of the generator must be numbers, got {epsilon!r} and {delta!r}."
        ) from None
    first = _first_rows(members, recipe.rows_per_person)
    return recipe.keeping(
        target, first, delta=float(delta), relation=Relation.ADD_REMOVE
    )


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the full name of the recipe that a call names, and its arguments, which must be literals."""
    problem = InvalidSpec(
        f"the generator {_shown(text)} cannot be read; write it as module:function, or as a recipe such as "
        '"reticent.MarginalGenerator(epsilon=1)", with numbers, texts, True, False or None as its arguments.'
    )
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise problem from None
    if not isinstance(node, ast.Call) or node.args:
        raise problem
    name = ast.unparse(node.func)
    full = name if name in RECIPES else f"reticent.{name}"
    if full not in RECIPES:
        raise InvalidSpec(
            f"{_shown(name)} is no recipe of a synthetic table; write {', '.join(RECIPES)}, or a function of your own as module:function."
        )
    try:
        arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise problem from None
    if "None" in arguments:  # ** hides its arguments
        raise problem
    return full, arguments


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…")


def _first_rows(table: Table, most: int) -> Table:
    """Return at most so many rows of each person, as `reticent synthesize` takes them; people with more are refused if one row each is stated."""
    number = pd.Series(table.units).groupby(table.units).cumcount().to_numpy()
    if most == 1 and number.max(initial=0) > 0:
        raise InvalidInput(
            "some people have several rows, but the recipe of the generator covers one row of each; write rows_per_person= into it, as it was when the table "
            "was made."
        )
    return table.take(np.flatnonzero(number < most))


@contextmanager
def _global_streams(seed: int) -> Iterator[None]:
    """Seed the global streams of random numbers, and put them back to where they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    # Not imported for this: a function that uses it has loaded it.
    torch = sys.modules.get("torch")
    torch_state = None if torch is None else torch.get_rng_state()
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        if torch is not None:
            torch.set_rng_state(torch_state)


def _as_synthetic(frame: Any, table: Table, recipe: str) -> SyntheticTable:
    made: pd.DataFrame = frame.rename(columns=str)
    absent = [c for c in table.features.columns if c not in made.columns]
    if absent:
        raise TrainerFailed(
            f"the generator {recipe} returned a table without the column {absent[0]!r}, so it cannot be compared; let it return all columns that it is given."
        )
    columns = list(table.features.columns)
    alike = in_columns_of(made[columns], table.features, table.schema)
    return SyntheticTable(alike.frame)
