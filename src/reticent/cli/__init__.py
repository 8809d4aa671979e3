"""The command line: parse, call one function, print, exit."""

from reticent.cli._main import app, main

__all__ = ["app", "main"]
