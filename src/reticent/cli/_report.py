"""What `reticent report` does once its options are parsed."""

from reticent.cli._options import ReportOptions
from reticent.errors import InvalidInput
from reticent.report import Dossier, Screen, print_report

__all__ = ["run"]


def run(options: ReportOptions) -> int:
    """Print the report of a saved dossier; return the audit's exit status."""
    path = options.dossier
    file = path / "dossier.json" if path.is_dir() else path
    if not file.is_file():
        raise InvalidInput(
            f"there is no dossier at {path}; pass the folder of an audit."
        )
    dossier = Dossier.from_json(file.read_text(encoding="utf-8"))
    if options.out is not None:
        dossier.save(options.out)
    print_report(dossier, Screen())
    return dossier.decision.exit_status
