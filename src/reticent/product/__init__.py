"""What may be released, seen from outside; it is saved and loaded without running foreign code."""

from reticent.product._closed import ClosedProduct, answers_of, as_product
from reticent.product._digest import product_digest
from reticent.product._encode import Encoder
from reticent.product._fitted import FittedProduct
from reticent.product._module import ModuleProduct, must_be_storable
from reticent.product._network import NetworkProduct
from reticent.product._protocols import (
    Departure,
    Predictor,
    Product,
    Regressor,
    Trainer,
    Watchable,
)
from reticent.product._provenance import (
    Provenance,
    holds_plain_hash,
    is_trained_on,
    read_provenance,
    table_digest,
    versions,
)
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.product._store import (
    load_product,
    predicts_quantity,
    product_content,
    save_product,
)
from reticent.product.internals import Internals

__all__ = [
    "ClosedProduct",
    "Departure",
    "Encoder",
    "FittedProduct",
    "FittedRegressor",
    "Internals",
    "ModuleProduct",
    "NetworkProduct",
    "Predictor",
    "Product",
    "Provenance",
    "Regressor",
    "Trainer",
    "Watchable",
    "answers_of",
    "as_product",
    "declares_class",
    "declares_quantity",
    "holds_plain_hash",
    "is_trained_on",
    "load_product",
    "must_be_storable",
    "predicts_quantity",
    "product_content",
    "product_digest",
    "read_provenance",
    "save_product",
    "table_digest",
    "versions",
]
