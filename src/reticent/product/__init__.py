"""What may be released, seen from outside; it is saved and loaded without running foreign code."""

from reticent.product._closed import ClosedProduct, answers_of, as_product
from reticent.product._encode import Encoder
from reticent.product._files import ProductFiles, product_digest
from reticent.product._fitted import FittedProduct
from reticent.product._foreign import ForeignProduct
from reticent.product._module import ModuleProduct, must_be_storable
from reticent.product._network import NetworkProduct
from reticent.product._probabilities import ProbabilityRegressor
from reticent.product._protocols import (
    Departure,
    Predictor,
    Procedure,
    Product,
    Regressor,
    Student,
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
from reticent.product._rare import (
    MISSING_CATEGORY,
    SMALLEST_GROUP,
    frequent_categories,
    people_with,
    rare_in,
)
from reticent.product._regressor import (
    FittedRegressor,
    declares_class,
    declares_quantity,
)
from reticent.product._store import (
    PRODUCT_FILES,
    SavedProduct,
    files_of,
    load_product,
    must_hold_nothing_else,
    save_product,
    write_files,
)
from reticent.product._synthetic import (
    SYNTHETIC_FILE,
    SyntheticTable,
    clean_table,
    is_table_file,
    load_synthetic,
    write_synthetic,
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
    "MISSING_CATEGORY",
    "PRODUCT_FILES",
    "SMALLEST_GROUP",
    "SYNTHETIC_FILE",
    "AnswerChange",
    "Cleaned",
    "ClosedProduct",
    "Contents",
    "Departure",
    "Encoder",
    "FittedProduct",
    "FittedRegressor",
    "ForeignProduct",
    "Internals",
    "ModuleProduct",
    "NetworkProduct",
    "OpenedFile",
    "Predictor",
    "ProbabilityRegressor",
    "Procedure",
    "Product",
    "ProductFiles",
    "Provenance",
    "Regressor",
    "SavedProduct",
    "Stage",
    "Staged",
    "Stages",
    "Student",
    "SyntheticTable",
    "Trainer",
    "Watchable",
    "Words",
    "answer_change",
    "answers_of",
    "as_product",
    "clean_product",
    "clean_table",
    "contents_of",
    "declares_class",
    "declares_quantity",
    "files_of",
    "frequent_categories",
    "holds_plain_hash",
    "is_table_file",
    "is_trained_on",
    "load_product",
    "load_synthetic",
    "must_be_storable",
    "must_hold_nothing_else",
    "open_file",
    "people_with",
    "product_digest",
    "rare_in",
    "read_contents",
    "read_provenance",
    "save_product",
    "table_digest",
    "versions",
    "write_files",
    "write_synthetic",
]
