"""Functions of the user, named as ``module:function`` and imported when they are needed."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidSpec, TrainerFailed
from reticent.run import Content, code_of
from reticent.train.models import first_line

__all__ = ["OwnCode"]


@dataclass(frozen=True)
class OwnCode:
    """A function of the user, imported when it is needed (also in worker processes)."""

    name: str

    def function(self) -> Callable[..., Any]:
        """Return the function."""
        module_name, _, attribute = self.name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except Exception as error:  # the user's module may raise anything
            raise InvalidSpec(
                f"the module {module_name!r} of the trainer {self.name!r} cannot be imported "
                f"({type(error).__name__}: {first_line(error)}); run reticent from its folder or install it."
            ) from error
        function: Callable[..., Any] | None = getattr(module, attribute, None)
        if not callable(function):
            raise InvalidSpec(
                f"the module {module_name!r} has no function {attribute!r}; "
                f"{nearest(attribute, [n for n in dir(module) if not n.startswith('_')])}."
            )
        return function

    def __call__(self, *arguments: int) -> Any:
        function = self.function()
        try:
            return function(*arguments)
        except Exception as error:
            raise TrainerFailed(
                f"the trainer {self.name} could not be built: {type(error).__name__}: {first_line(error)}; "
                "try it outside reticent first."
            ) from error

    def content(self) -> Content:
        """Return the content of the code that defines the function."""
        return code_of(self.name)
