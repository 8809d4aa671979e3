"""What may be released, seen from outside; saved and loaded without running foreign code."""

from reticent.product._fitted import FittedProduct
from reticent.product._protocols import Predictor, Trainer
from reticent.product._store import Provenance, load_product, save_product, versions

__all__ = [
    "FittedProduct",
    "Predictor",
    "Provenance",
    "Trainer",
    "load_product",
    "save_product",
    "versions",
]
