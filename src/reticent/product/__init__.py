"""What may be released, seen from outside; saved and loaded without running foreign code."""

from reticent.product._encode import Encoder
from reticent.product._fitted import FittedProduct
from reticent.product._network import NetworkProduct
from reticent.product._protocols import Predictor, Trainer
from reticent.product._store import Provenance, load_product, save_product, versions

__all__ = [
    "Encoder",
    "FittedProduct",
    "NetworkProduct",
    "Predictor",
    "Provenance",
    "Trainer",
    "load_product",
    "save_product",
    "versions",
]
