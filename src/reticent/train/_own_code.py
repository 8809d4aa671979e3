"""Functions of the user, named as ``module:function`` and imported when they are needed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reticent.errors import TrainerFailed
from reticent.run import Content, code_of, named_by_user
from reticent.train.models import first_line

__all__ = ["OwnCode"]


@dataclass(frozen=True)
class OwnCode:
    """A function of the user, imported when it is needed (also in worker processes)."""

    name: str

    def function(self) -> Callable[..., Any]:
        """Return the function."""
        function: Callable[..., Any] = named_by_user(
            self.name, role="trainer", what="function"
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
