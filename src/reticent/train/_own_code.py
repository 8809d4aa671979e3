"""Functions of the user, named as ``module:function`` and imported when they are needed."""

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidSpec, TrainerFailed
from reticent.train.models import first_line

__all__ = ["OwnCode"]


@dataclass(frozen=True)
class OwnCode:
    """A function of the user, imported when it is needed (also in worker processes)."""

    name: str

    def found(self) -> Callable[..., Any]:
        """Return the function."""
        module_name, _, attribute = self.name.partition(":")
        try:
            module = importlib.import_module(module_name)
        except Exception as error:  # the user's module may raise anything
            raise InvalidSpec(
                f"the module {module_name!r} of the trainer {self.name!r} cannot be imported "
                f"({type(error).__name__}: {first_line(error)}); run reticent from its folder or install it."
            ) from error
        function = getattr(module, attribute, None)
        if not callable(function):
            raise InvalidSpec(
                f"the module {module_name!r} has no function {attribute!r}; "
                f"{nearest(attribute, [n for n in dir(module) if not n.startswith('_')])}."
            )
        made: Callable[..., Any] = function
        return made

    def __call__(self, *arguments: int) -> Any:
        function = self.found()
        try:
            return function(*arguments)
        except Exception as error:
            raise TrainerFailed(
                f"the trainer {self.name} could not be made: {type(error).__name__}: {first_line(error)}; "
                "try it outside reticent first."
            ) from error

    def source(self) -> str:
        """Return a hash of the file the function stands in."""
        module = importlib.import_module(self.name.partition(":")[0])
        file = getattr(module, "__file__", None)
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
