"""Import skops without what it does not need, and without losing an interruption.

On import, skops walks through all packages of scikit-learn to learn which estimators there are. Among them are adapters for other array
libraries, and importing those loads PyTorch or Dask wherever they are installed: seconds that every audit would wait, because every audit
reads the product's file. The adapters hold no estimator, so they are hidden while skops looks.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType

__all__ = ["skops_io"]

ADAPTERS = tuple(
    f"sklearn.externals.array_api_compat.{library}"
    for library in ("cupy", "dask", "jax", "torch")
)


def skops_io() -> ModuleType:
    """Return ``skops.io``."""
    if "skops.io" in sys.modules:
        return sys.modules["skops.io"]
    hidden = [name for name in ADAPTERS if name not in sys.modules]
    with _interrupted_afterwards():
        # None makes an import fail, and a walk through packages passes over what cannot be imported.
        sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
        try:
            import skops.io
        finally:
            for name in hidden:
                if sys.modules.get(name, ...) is None:
                    del sys.modules[name]
    return skops.io  # type: ignore[no-any-return]


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Let Ctrl-C wait for an import: among hundreds of modules some would swallow it, or end the process without a word."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is None:
        yield  # nobody is interrupted in Python here
        return
    waiting: list[tuple[int, FrameType | None]] = []
    usual = signal.signal(signal.SIGINT, lambda *call: waiting.append(call))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if waiting and callable(usual):
        usual(*waiting[0])
