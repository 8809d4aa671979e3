"""The one place where a name that somebody wrote becomes code that runs.

Only the user who types a command, or calls a verb, may name code: an attack, a measure, a section, a function that makes a model. A name
in a file is a stranger's. Texts from files therefore never come here: a recipe in a product's folder is read by
:func:`reticent.train.parse_claimed`, which knows no name of code at all.
"""

import importlib
from typing import Any

from reticent._check import nearest
from reticent.errors import InvalidSpec

__all__ = ["named_by_user"]

LONGEST_REASON = 200  # characters of somebody else's message, which may be a page


def named_by_user(text: str, *, role: str, what: str) -> Any:
    """Import and return what the user names as ``module:attribute``. This runs the module.

    Parameters
    ----------
    text : str
        The name, as the user wrote it.
    role : str
        What it is for, in errors: ``"trainer"``.
    what : str
        What the attribute must be, in errors: ``"function"`` or ``"class"``.

    Raises
    ------
    InvalidSpec
        If there is no such thing, or it cannot be called.
    """
    module_name, colon, attribute = text.partition(":")
    if not colon or not module_name or not attribute:
        raise InvalidSpec(
            f"the {role} {text!r} does not name a {what}; write it as module:{'Class' if what == 'class' else what}."
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the user's module may raise anything
        reason = " ".join(str(error).split())[:LONGEST_REASON]
        raise InvalidSpec(
            f"the module {module_name!r} of the {role} {text!r} cannot be imported ({type(error).__name__}: {reason}); run reticent "
            "from its folder or install it."
        ) from error
    named = getattr(module, attribute, None)
    if not callable(named):
        known = [name for name in dir(module) if not name.startswith("_")]
        raise InvalidSpec(
            f"the module {module_name!r} has no {what} {attribute!r}; {nearest(attribute, known)}."
        )
    return named
