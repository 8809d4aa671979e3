"""What may be released, seen from outside; saved and loaded without running foreign code."""

from reticent.product._encode import Encoder
from reticent.product._fitted import FittedProduct
from reticent.product._internals import Internals, Openable
from reticent.product._module import ModuleProduct, must_be_storable
from reticent.product._network import NetworkProduct
from reticent.product._protocols import Predictor, Trainer
from reticent.product._store import (
    Product,
    Provenance,
    load_product,
    read_provenance,
    save_product,
    versions,
)

__all__ = [
    "Encoder",
    "FittedProduct",
    "Internals",
    "ModuleProduct",
    "NetworkProduct",
    "Openable",
    "Predictor",
    "Product",
    "Provenance",
    "Trainer",
    "load_product",
    "must_be_storable",
    "read_provenance",
    "save_product",
    "versions",
]
