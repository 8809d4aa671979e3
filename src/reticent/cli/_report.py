"""What `reticent report` does once its options are parsed."""

from reticent.cli._options import ReportOptions
from reticent.errors import InvalidInput
from reticent.pipeline import derive_again, dossier_file
from reticent.report import Dossier, Screen, print_report
from reticent.run import read_text

__all__ = ["run"]


def run(options: ReportOptions) -> int:
    """Decide again by the evidence of a dossier, and print its report; return the exit status of that decision."""
    file = dossier_file(options.dossier)
    if not file.is_file():
        raise InvalidInput(
            f"there is no dossier at {options.dossier}; pass the folder of an audit."
        )
    dossier = derive_again(Dossier.from_json(read_text(file, what="dossier"))).dossier
    try:
        if options.out is not None:
            dossier.save(options.out)
        print_report(dossier, Screen())
    except (
        ArithmeticError,
        AssertionError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, InvalidInput):
            raise
        # Sections draw what audits write. A file may hold numbers that no audit has.
        raise InvalidInput(
            f"the numbers in the dossier cannot be shown ({type(error).__name__}: {error}); it was changed, so audit again."
        ) from error
    return dossier.decision.exit_status
