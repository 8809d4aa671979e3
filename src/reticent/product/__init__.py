"""What may be released, seen from outside; it is saved and loaded without running foreign code."""

from reticent.product._closed import ClosedProduct, answers_of, as_product
from reticent.product._encode import Encoder
from reticent.product._fitted import FittedProduct
from reticent.product._module import ModuleProduct, must_be_storable
from reticent.product._network import NetworkProduct
from reticent.product._protocols import (
    Predictor,
    Product,
    Regressor,
    Trainer,
    Watchable,
)
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.product._store import (
    PRODUCT_FILES,
    Provenance,
    load_product,
    predicts_quantity,
    product_content,
    read_provenance,
    save_product,
    versions,
)
from reticent.product.clean import (
    AnswerChange,
    Cleaned,
    answer_change,
    clean_product,
)
from reticent.product.contents import Contents, contents_of, read_contents
from reticent.product.internals import Internals
from reticent.product.opened import OpenedFile, Words, open_file
from reticent.product.stages import Stage, Staged, Stages

__all__ = [
    "PRODUCT_FILES",
    "AnswerChange",
    "Cleaned",
    "ClosedProduct",
    "Contents",
    "Encoder",
    "FittedProduct",
    "FittedRegressor",
    "Internals",
    "ModuleProduct",
    "NetworkProduct",
    "OpenedFile",
    "Predictor",
    "Product",
    "Provenance",
    "Regressor",
    "Stage",
    "Staged",
    "Stages",
    "Trainer",
    "Watchable",
    "Words",
    "answer_change",
    "answers_of",
    "as_product",
    "clean_product",
    "contents_of",
    "declares_class",
    "declares_quantity",
    "load_product",
    "must_be_storable",
    "open_file",
    "predicts_quantity",
    "product_content",
    "read_contents",
    "read_provenance",
    "save_product",
    "versions",
]
