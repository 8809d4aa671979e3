"""Train with differential privacy and release with noise: what bounds a record's share, what hides it, and what it costs."""

from reticent.train.private.clipping import (
    PSAC,
    Automatic,
    Clip,
    Clipping,
    ClipThenTanh,
    PerLayer,
    Sigmoid,
    Tanh,
    TanhThenClip,
    sensitivity,
)

__all__ = [
    "PSAC",
    "Automatic",
    "Clip",
    "ClipThenTanh",
    "Clipping",
    "PerLayer",
    "Sigmoid",
    "Tanh",
    "TanhThenClip",
    "sensitivity",
]
