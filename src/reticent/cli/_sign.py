"""What `reticent key` and `reticent sign` do once their options are parsed."""

import sys

from reticent._visible import visible
from reticent.cli._options import KeyOptions, SignOptions
from reticent.errors import InvalidInput
from reticent.pipeline import derive_again, dossier_file
from reticent.report import Dossier, make_keys, sign
from reticent.run import read_text

__all__ = ["make_key", "run"]


def make_key(options: KeyOptions) -> int:
    """Make a pair of keys; return the exit status."""
    private, public = make_keys(options.file)
    sys.stdout.write(
        visible(f"Keep {private} to yourself; give {public} to whoever verifies.\n")
    )
    return 0


def run(options: SignOptions) -> int:
    """Sign a dossier that is one; return the exit status."""
    file = dossier_file(options.dossier)
    # A signature stands for what was read: a file that is no dossier gets none.
    derived = derive_again(Dossier.from_json(read_text(file, what="dossier")))
    if derived.disagreements:
        raise InvalidInput(
            f"the dossier contradicts itself and is not signed: {derived.disagreements[0]}"
        )
    signature = sign(file, key=options.key)
    sys.stdout.write(visible(f"Signature: {signature}\n"))
    return 0
