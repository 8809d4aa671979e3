"""Let a package be called by the name of its verb: ``reticent.train(...)`` beside ``reticent.train.Network``."""

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(package: str, *, home: str, verb: str) -> None:
    """Let a call of a package call a function that stands above it.

    The function is imported by name when it is called, so the package itself depends on nothing above it.

    Parameters
    ----------
    package : str
        Full name of the package, which is being imported.
    home : str
        Module of the function.
    verb : str
        Name of the function.
    """

    class CallablePackage(ModuleType):
        """A package that is also the verb of its name."""

        def __call__(self, *arguments: Any, **named: Any) -> Any:
            """Call the verb."""
            return getattr(importlib.import_module(home), verb)(*arguments, **named)

    sys.modules[package].__class__ = CallablePackage
