"""Train with differential privacy, and release with noise: what bounds a record's share, what hides it, what it costs."""

from reticent.train.private.treatments import (
    PSAC,
    Automatic,
    Clip,
    ClipThenTanh,
    PerLayer,
    Sigmoid,
    Tanh,
    TanhThenClip,
    Treatment,
    sensitivity,
)

__all__ = [
    "PSAC",
    "Automatic",
    "Clip",
    "ClipThenTanh",
    "PerLayer",
    "Sigmoid",
    "Tanh",
    "TanhThenClip",
    "Treatment",
    "sensitivity",
]
