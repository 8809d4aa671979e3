"""Import skops without what it does not need.

On import, skops walks through all packages of scikit-learn to learn which estimators there are. Among them are adapters for other array
libraries, and importing those loads PyTorch or Dask wherever they are installed: seconds that every audit would wait, because every audit
reads the product's file. The adapters hold no estimator, so they are hidden while skops looks.
"""

import sys
from types import ModuleType

__all__ = ["skops_io"]

ADAPTERS = tuple(
    f"sklearn.externals.array_api_compat.{library}"
    for library in ("cupy", "dask", "jax", "torch")
)


def skops_io() -> ModuleType:
    """Return ``skops.io``."""
    hidden = [name for name in ADAPTERS if name not in sys.modules]
    if "skops.io" not in sys.modules:
        # None makes an import fail, and a walk through packages passes over what cannot be imported.
        sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        import skops.io
    finally:
        for name in hidden:
            if sys.modules.get(name, ...) is None:
                del sys.modules[name]
    return skops.io  # type: ignore[no-any-return]
