"""Run a command in this process: loading everything anew would take most of the time."""

import contextlib
import io
import sys
from dataclasses import dataclass

import pytest

from reticent.cli import main


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments, folder):
    """Run the command in this process: loading everything anew would take most of the time."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "argv", ["reticent", *arguments])
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as ended:
            main()
    return Done(ended.value.code, out.getvalue(), err.getvalue())
