"""What `reticent verify` does once its options are parsed."""

import sys

from reticent._visible import visible
from reticent.cli._options import VerifyOptions
from reticent.pipeline import verify

__all__ = ["run"]


def run(options: VerifyOptions) -> int:
    """Print one line; return 0 if the verdict is about the files at hand, else 1."""
    answer = verify(
        options.dossier,
        options.product,
        policy=options.policy,
        table=options.table,
        signature=options.signature,
        public_key=options.public_key,
        verdict=options.verdict,
    )
    # On one line, whatever names are in it.
    sys.stdout.write(visible(" ".join(answer.sentence.split())) + "\n")
    return 0 if answer.holds else 1
