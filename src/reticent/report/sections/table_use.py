"""What models learn from a synthetic table, beside what they learn from the real one."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import UseEvidence
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, table
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.words import whole

__all__ = ["TableUseSection"]

HEADS = ("model", "measure", "trained on real", "trained on synthetic", "lost")


class TableUseSection:
    """Train on synthetic, test on real."""

    title = "What can be learned from it"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return what each model reaches; None for a model, or without a target of few classes."""
        use = _use(dossier)
        return None if use is None else block(lead(*_words(use)), table(HEADS, _rows(use)))  # fmt: skip

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        use = _use(dossier)
        return None if use is None else stack(paragraph(*_words(use)), grid(HEADS, _rows(use)))  # fmt: skip


def _use(dossier: Dossier) -> UseEvidence | None:
    synthetic = dossier.evidence.synthetic
    return None if synthetic is None else synthetic.use


def _words(use: UseEvidence) -> list[str]:
    rates = use.positive
    return [
        f"Models learned to tell '{use.target}' from the other columns, from the members or from the synthetic rows, and ranked people whom nobody used. Intervals are "
        "over these people, each by itself, for this one table; the verdict does not rest on them.",
        f"The rarest class that enough people have is {whole(rates.real)} of the real and {whole(rates.synthetic)} of the synthetic table.",
        "The table was judged on this one question. It must not be used for others (subgroups, rare events, effects of single columns) before they were "
        "tried in the same way.",
    ]


def _rows(use: UseEvidence) -> Iterator[tuple[str, str, str, str, str]]:
    for each in use.judges:
        found = each.transfer
        yield (each.judge, "AUC", str(found.auc_real), str(found.auc_synthetic), str(found.auc_loss))  # fmt: skip
        yield ("", "average precision", str(found.ap_real), str(found.ap_synthetic), str(found.ap_loss))  # fmt: skip
