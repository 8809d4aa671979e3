"""The line of Python that repeats an audit."""

__all__ = ["Name", "call", "shown"]


class Name(str):
    """A variable of the caller, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def call(name: str, *positional: str, **named: object) -> str:
    """Return the call that would run the audit again."""
    arguments = [
        *positional,
        *(f"{k}={v!r}" for k, v in named.items() if v is not None),
    ]
    return f"reticent.{name}({', '.join(arguments)})"


def shown(value: object, name: str) -> object:
    """Return how an argument is shown in the line that repeats the audit."""
    return value if value is None or isinstance(value, str) else Name(name)
