"""Start the process in which a product is asked, before this one has imported what it needs itself."""

import subprocess
import sys

__all__ = ["start_spare", "take_spare"]

_CODE = "import sys; sys.path[:] = sys.argv[1:]; from reticent.product._cell import main; main()"
_SPARE: list["subprocess.Popen[bytes]"] = []  # at most one, that nobody has taken


def start_spare() -> None:
    """Start a process for whoever takes it; its imports then run beside those of this process."""
    if not _SPARE:
        _SPARE.append(_started())


def take_spare() -> "subprocess.Popen[bytes]":
    """Return a process that waits on its standard input for a product: the spare one, or a new one."""
    return _SPARE.pop() if _SPARE else _started()


def _started() -> "subprocess.Popen[bytes]":
    # A fresh interpreter, because threads of OpenMP and BLAS in this one would hang a fork; -P keeps the current folder out of its path.
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE, *filter(None, sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
