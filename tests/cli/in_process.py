"""Run a command in this process: loading everything anew would take most of the time."""

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

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
        # A module of the user's in this folder must not be found by a test in another folder.
        before = set(sys.modules)
        with pytest.raises(SystemExit) as ended:
            main()
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder):
                del sys.modules[name]
    return Done(ended.value.code, out.getvalue(), err.getvalue())
