"""May this model be released? Attack it as the strongest adversary would, and decide."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.data import read_table
    from reticent.pipeline import audit, audit_outputs
    from reticent.policy import read_policy
    from reticent.report import Dossier
    from reticent.train import PrivateNetworkClassifier

__all__ = [
    "Dossier",
    "PrivateNetworkClassifier",
    "__version__",
    "audit",
    "audit_outputs",
    "read_policy",
    "read_table",
]

_HOMES = {
    "Dossier": "reticent.report",
    "PrivateNetworkClassifier": "reticent.train",
    "audit": "reticent.pipeline",
    "audit_outputs": "reticent.pipeline",
    "read_policy": "reticent.policy",
    "read_table": "reticent.data",
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import reticent`` is instant."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("reticent")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")
