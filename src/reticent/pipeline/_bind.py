"""Tie a dossier to files."""

import hashlib
from dataclasses import replace
from pathlib import Path

from reticent.errors import InvalidInput
from reticent.product import ProductFiles, product_digest
from reticent.report import Dossier
from reticent.run import keyed

__all__ = ["bound_to_product", "must_be_unchanged", "table_file_digest"]


def table_file_digest(path: Path | str) -> str:
    """Return the digest of a table's file, keyed with the owner's secret: a plain hash would let others try values.

    Raises
    ------
    InvalidInput
        If the file cannot be read.
    """
    try:
        with Path(path).open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(
            f"the table {path} cannot be read ({error.strerror or error}); name a file that you may read."
        ) from error
    return keyed(digest, about="table file")


def bound_to_product(dossier: Dossier, files: ProductFiles) -> Dossier:
    """Return a dossier that says it is about these files."""
    assert dossier.binding is not None, "an audit binds its dossier"
    binding = replace(dossier.binding, product=files.digest)
    return replace(dossier, binding=binding)


def must_be_unchanged(path: Path | str, digest: str) -> None:
    """Refuse a verdict on a product that was changed while it was audited.

    Raises
    ------
    InvalidInput
        If its files are not those that were read.
    """
    if product_digest(path) != digest:
        raise InvalidInput(
            f"the files of the product {path} were changed while it was audited, so a verdict would be about neither the old nor the new ones; "
            "write results into another folder and audit again."
        )
