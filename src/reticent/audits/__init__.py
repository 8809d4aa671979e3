"""One module for each kind of product: what the auditor looks at, attacks, measures, controls, utility, sections."""

from reticent.audits._kind import Answers, Kind, View, Views
from reticent.audits._sides import Sides
from reticent.audits._table_again import Learned
from reticent.audits._table_contents import (
    contents_of_table,
    lone_row,
    seen_in_rows,
)
from reticent.audits._table_transfer import transfer_of
from reticent.audits.classifier import CLASSIFIER, ClassifierKind
from reticent.audits.regressor import REGRESSOR, RegressorKind
from reticent.audits.synthetic_table import SYNTHETIC_TABLE, SyntheticTableKind
from reticent.product import Product, Trainer

__all__ = [
    "CLASSIFIER",
    "KINDS",
    "REGRESSOR",
    "SYNTHETIC_TABLE",
    "Answers",
    "ClassifierKind",
    "Kind",
    "Learned",
    "RegressorKind",
    "Sides",
    "SyntheticTableKind",
    "View",
    "Views",
    "contents_of_table",
    "kind_of",
    "lone_row",
    "seen_in_rows",
    "transfer_of",
]

KINDS = {kind.name: kind for kind in (CLASSIFIER, REGRESSOR, SYNTHETIC_TABLE)}


def kind_of(trainer: Trainer | None, product: Product | None) -> Kind:
    """Return the kind of a product, from itself or from its recipe; without either, that of a classifier's saved answers."""
    thing = trainer if product is None else product
    return REGRESSOR if thing is not None and thing.quantity else CLASSIFIER
