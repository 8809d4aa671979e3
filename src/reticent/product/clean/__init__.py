"""Make a product whose file holds less about its members, and which answers them as before."""

from reticent.product.clean._clean import clean_product
from reticent.product.clean._values import (
    SMALLEST_GROUP,
    AnswerChange,
    Cleaned,
    Done,
    Kept,
    answer_change,
)

__all__ = [
    "SMALLEST_GROUP",
    "AnswerChange",
    "Cleaned",
    "Done",
    "Kept",
    "answer_change",
    "clean_product",
]
