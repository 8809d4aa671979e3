"""The commands, and what happens when something goes wrong."""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from reticent._garbage import leave_at_exit, no_search
from reticent._spare import start_spare
from reticent._visible import visible
from reticent.cli._options import (
    AuditOptions,
    CleanOptions,
    CompareOptions,
    IdentifyOptions,
    KeyOptions,
    PlanOptions,
    PolicyOptions,
    ReportOptions,
    SignOptions,
    SynthesizeOptions,
    TrainOptions,
    VerifyOptions,
)

__all__ = ["app", "main", "without_current_folder"]

# 70 is EX_SOFTWARE of sysexits.h; 130 is what shells report for Ctrl-C, 128 plus the number of SIGINT.
INTERNAL_ERROR, INTERRUPTED = 70, 130

app = typer.Typer(
    name="reticent",
    help="May this model be released? Attack it, measure with intervals, decide by a policy.",
    no_args_is_help=True,
    add_completion=False,
    # Rich's tracebacks may show local variables, and these may hold records.
    pretty_exceptions_enable=False,
    # Brackets in help texts are brackets, not markup.
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"reticent {version('reticent')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """May this model be released? Attack it, measure with intervals, decide by a policy."""


def _command(name: str, options: type[Any], verb: str, *, asks: bool = False) -> None:
    """Add a command whose options are the fields of a dataclass; its verb is imported only when the command is called.

    Parameters
    ----------
    name : str
        The name as it is typed.
    options : type
        A dataclass; its docstring is the command's help. Fields that are dataclasses themselves are flattened.
    verb : str
        ``module:function`` from the options to an exit status.
    asks : bool
        Whether it asks a product that is named, whose process then starts beside the imports of this one.
    """

    def run(**typed: Any) -> None:
        with _interruptible():
            if asks and typed.get("product") is not None:
                start_spare()
            module, _, function = verb.partition(":")
            with no_search():
                command = getattr(importlib.import_module(module), function)
            status = command(_assembled(options, typed))
        raise typer.Exit(status)

    parameters = list(_parameters(options))
    # typer reads names, types and help from the signature, so the fields become its parameters.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = options.__doc__
    app.command(name)(run)


def _parameters(options: type[Any]) -> Iterator[inspect.Parameter]:
    """Yield one parameter per option, groups flattened."""
    hints = get_type_hints(options)
    for field in dataclasses.fields(options):
        kind = hints[field.name]
        if dataclasses.is_dataclass(kind):
            yield from _parameters(kind)  # type: ignore[arg-type]
            continue
        default = field.default
        if default is dataclasses.MISSING:
            default = inspect.Parameter.empty
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[kind, field.metadata["option"]],
        )


def _assembled(options: type[Any], typed: dict[str, Any]) -> Any:
    """Return the options as one value, groups as values inside it."""
    hints = get_type_hints(options)
    return options(
        **{
            field.name: _assembled(hints[field.name], typed)
            if dataclasses.is_dataclass(hints[field.name])
            else typed[field.name]
            for field in dataclasses.fields(options)
        }
    )


_command("audit", AuditOptions, "reticent.cli._audit:run", asks=True)
_command("plan", PlanOptions, "reticent.cli._plan:run")
_command("train", TrainOptions, "reticent.cli._train:run")
_command("synthesize", SynthesizeOptions, "reticent.cli._synthesize:run")
_command("identify", IdentifyOptions, "reticent.cli._identify:run")
_command("compare", CompareOptions, "reticent.cli._compare:run")
_command("clean", CleanOptions, "reticent.cli._clean:run", asks=True)
_command("report", ReportOptions, "reticent.cli._report:run")
_command("policy", PolicyOptions, "reticent.cli._policy:run")
_command("verify", VerifyOptions, "reticent.cli._verify:run")
_command("key", KeyOptions, "reticent.cli._sign:make_key")
_command("sign", SignOptions, "reticent.cli._sign:run")


def main() -> None:
    """Run the command line; every failure is one sentence and an exit status of its own.

    An unexpected error must not look like a refusal (1), so it exits with 70.
    """
    # Imported here: `reticent --help` must not wait for the libraries.
    from reticent.errors import ReticentError

    leave_at_exit()
    try:
        app()
    except ReticentError as error:
        # A name or a cause quoted in it may have several lines.
        sentence = " ".join(str(error).split())
        typer.echo(f"error: {visible(sentence)}", err=True)
        sys.exit(2)
    except Exception as error:
        import traceback

        typer.echo(visible(traceback.format_exc()), err=True)
        typer.echo(
            f"error: reticent itself failed ({type(error).__name__}: {visible(error)}); nothing was decided. "
            "Please report this with the lines above.",
            err=True,
        )
        sys.exit(INTERNAL_ERROR)


def without_current_folder() -> None:
    """Undo what ``python -m`` does: a stranger's file in the current folder could be imported in place of a library."""
    here = str(Path.cwd())
    if sys.path and sys.path[0] in ("", here):
        del sys.path[0]


@contextmanager
def _interruptible() -> Iterator[None]:
    """End an interrupted command with a status of its own; the framework's 1 means "refuse"."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            "interrupted: what was finished is kept; run the same command to go on.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
