"""What `reticent policy` does once its options are parsed."""

import sys
from importlib import resources
from pathlib import Path

from reticent._visible import visible
from reticent.cli._options import PolicyOptions
from reticent.policy import SHIPPED, read_policy

__all__ = ["run"]


def run(options: PolicyOptions) -> int:
    """Print a policy, if it can be read as one; return the exit status."""
    # Parsed first: a file that is no policy should not be printed as one.
    read_policy(options.name)
    if options.name in SHIPPED:
        file = resources.files("reticent.policy").joinpath(f"{options.name}.toml")
        text = file.read_text(encoding="utf-8")
    else:
        text = Path(options.name).read_text(encoding="utf-8")
    sys.stdout.write(visible(text))
    return 0
