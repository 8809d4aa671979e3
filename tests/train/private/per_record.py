"""The naive second implementation: one gradient per record, treated one by one, in double precision."""

import math

import torch

from reticent.train.private.clipping import (
    PSAC,
    Automatic,
    Clip,
    ClipThenTanh,
    PerLayer,
    Sigmoid,
    Tanh,
    TanhThenClip,
)

TREATMENTS = {
    "clip": Clip(norm=0.7),
    "automatic": Automatic(norm=0.7),
    "psac": PSAC(norm=0.7),
    "per layer": PerLayer(norms=(0.5,)),
    "tanh": Tanh(scale=0.3, width=0.2),
    "tanh then clip": TanhThenClip(scale=0.3, width=0.2, norm=0.7),
    "clip then tanh": ClipThenTanh(scale=0.3, width=0.2, norm=0.7),
    "sigmoid": Sigmoid(scale=0.3, width=0.2),
}


def treated(clipping, layers):
    """Return the clipped gradient of one record, given its gradient by layer, each a flat tensor."""
    layers = [layer.double() for layer in layers]
    whole = torch.cat(layers)
    if not torch.isfinite(whole).all():
        return torch.zeros_like(whole)
    if isinstance(clipping, PerLayer):
        norms = clipping.of_layers(len(layers))
        return torch.cat(
            [
                layer * min(1, norm / max(float(layer.norm()), 1e-300))
                for layer, norm in zip(layers, norms, strict=True)
            ]
        )
    length = float(whole.norm())
    if isinstance(clipping, Clip):
        return whole * min(1, clipping.norm / max(length, 1e-300))
    if isinstance(clipping, Automatic):
        return clipping.norm * whole / (length + clipping.stability)
    if isinstance(clipping, PSAC):
        r = clipping.stability
        return clipping.norm * whole / (length + r / (length + r))
    c, k = clipping.scale, clipping.width
    if isinstance(clipping, Sigmoid):
        return c / (1 + torch.exp(-whole / k))
    if isinstance(clipping, ClipThenTanh):
        return c * torch.tanh(whole * min(1, clipping.norm / max(length, 1e-300)) / k)
    bent = c * torch.tanh(whole / k)
    if isinstance(clipping, TanhThenClip):
        return bent * min(1, clipping.norm / max(float(bent.norm()), 1e-300))
    assert isinstance(clipping, Tanh)
    return bent


def close(first, second, tolerance=1e-5):
    """Whether two vectors differ by a small share of the longer."""
    scale = max(float(first.norm()), float(second.norm()), 1e-12)
    return math.isfinite(scale) and float((first - second).norm()) <= tolerance * scale
