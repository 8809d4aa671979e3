"""The attack of whoever holds the product's file: every record is looked for in it, as the product itself sees it."""

from reticent.attack.reader._attack import Reader

__all__ = ["Reader"]
