"""May this model be released? Attack it as the strongest adversary would, and decide."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reticent.data import read_table
    from reticent.pipeline import (
        Synthesizer,
        audit,
        audit_in_one_run,
        audit_outputs,
        clean,
        compare,
        identify,
        plan,
        synthesize,
        train,
        verify,
    )
    from reticent.policy import read_policy
    from reticent.report import Dossier
    from reticent.train import (
        SGD,
        Adam,
        AdaptedModule,
        AdversarialNetwork,
        Distillation,
        HealthGAN,
        LabelSmoothing,
        MarginalGenerator,
        Module,
        Network,
        PerRecord,
        PrivateModule,
        PrivateNetwork,
        PrivateNetworkClassifier,
        RepairedLabels,
        SoftLabels,
        Validated,
        WassersteinGenerator,
        release_answers,
        release_choice,
        release_coordinates,
        release_numbers,
    )
    from reticent.train.private import (
        PSAC,
        Automatic,
        Clip,
        ClipThenTanh,
        PerLayer,
        Sigmoid,
        Tanh,
        TanhThenClip,
    )

__all__ = [
    "PSAC",
    "SGD",
    "Adam",
    "AdaptedModule",
    "AdversarialNetwork",
    "Automatic",
    "Clip",
    "ClipThenTanh",
    "Distillation",
    "Dossier",
    "HealthGAN",
    "LabelSmoothing",
    "MarginalGenerator",
    "Module",
    "Network",
    "PerLayer",
    "PerRecord",
    "PrivateModule",
    "PrivateNetwork",
    "PrivateNetworkClassifier",
    "RepairedLabels",
    "Sigmoid",
    "SoftLabels",
    "Synthesizer",
    "Tanh",
    "TanhThenClip",
    "Validated",
    "WassersteinGenerator",
    "__version__",
    "audit",
    "audit_in_one_run",
    "audit_outputs",
    "clean",
    "compare",
    "identify",
    "plan",
    "read_policy",
    "read_table",
    "release_answers",
    "release_choice",
    "release_coordinates",
    "release_numbers",
    "synthesize",
    "train",
    "verify",
]

_HOMES = {
    "reticent.data": ("read_table",),
    "reticent.pipeline": (
        "Synthesizer",
        "audit",
        "audit_in_one_run",
        "audit_outputs",
        "clean",
        "compare",
        "identify",
        "plan",
        "synthesize",
        "verify",
    ),
    "reticent.policy": ("read_policy",),
    "reticent.report": ("Dossier",),
    "reticent.train": (
        "SGD",
        "Adam",
        "AdaptedModule",
        "AdversarialNetwork",
        "Distillation",
        "HealthGAN",
        "LabelSmoothing",
        "MarginalGenerator",
        "Module",
        "Network",
        "PerRecord",
        "PrivateModule",
        "PrivateNetwork",
        "PrivateNetworkClassifier",
        "RepairedLabels",
        "SoftLabels",
        "Validated",
        "WassersteinGenerator",
        "release_answers",
        "release_choice",
        "release_coordinates",
        "release_numbers",
    ),
    "reticent.train.private": (
        "PSAC",
        "Automatic",
        "Clip",
        "ClipThenTanh",
        "PerLayer",
        "Sigmoid",
        "Tanh",
        "TanhThenClip",
    ),
}


def __getattr__(name: str) -> Any:
    """Import public names when they are first used, so that ``import reticent`` is instant."""
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("reticent")
    if name == "train":  # a package that is also a verb
        return importlib.import_module("reticent.train")
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(home), name)
    raise AttributeError(f"module 'reticent' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted(__all__)
