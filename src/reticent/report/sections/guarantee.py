"""The guarantee of a product, beside what attacks have shown, never mixed with it."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.account import Guarantee
from reticent.evidence import strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, listed, table
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.words import capital, percent, plain

__all__ = [
    "ClaimSection",
    "GuaranteeSection",
    "beside_evidence",
    "guarantee_rows",
    "guarantee_sentence",
]

APART = (
    "A guarantee speaks of every attack there is, the rest of this report only of the attacks that were run. Neither proves the other: attacks can "
    "refute a guarantee but not confirm it."
)
UNSEEN = (
    "Whoever made the product says how it was trained; this audit has not seen it. The numbers below were worked out again from what is said of the "
    "training, and are worth as much as that."
)


class GuaranteeSection:
    """What holds against every attack: of a product that this very audit has trained."""

    title = "What is guaranteed"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return the guarantee; None if there is none, or if it is a claim."""
        guarantee = dossier.provenance.guarantee
        if guarantee is None or not guarantee.witnessed:
            return None
        guaranteed = "guaranteed" if guarantee.holds else "not guaranteed, see below"
        return _block(dossier, guarantee, guaranteed, guarantee_sentence(guarantee))

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal, in short."""
        guarantee = dossier.provenance.guarantee
        if guarantee is None or not guarantee.witnessed:
            return None
        guaranteed = "guaranteed" if guarantee.holds else "would be"
        return _text(dossier, guarantee, guaranteed, guarantee_sentence(guarantee))


class ClaimSection:
    """What a file says of the training, worked out again: never called a guarantee."""

    title = "What the training would guarantee, if it was as stated"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return what follows from the claim; None if nothing is claimed, or if this audit has trained the product."""
        guarantee = dossier.provenance.guarantee
        if guarantee is None or guarantee.witnessed:
            return None
        return _block(dossier, guarantee, "would be", claim_sentence(guarantee), UNSEEN)

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal, in short."""
        guarantee = dossier.provenance.guarantee
        if guarantee is None or guarantee.witnessed:
            return None
        return _text(dossier, guarantee, "would be", claim_sentence(guarantee), UNSEEN)


def _block(
    dossier: Dossier, guarantee: Guarantee, head: str, *sentences: str
) -> Markup:
    notes = [f"{capital(caveat)}." for caveat in guarantee.caveats]
    notes += [
        f"How: {guarantee.mechanism}.",
        f"Treated as public, so protected by nothing: {'; '.join(guarantee.public)}.",
    ]
    return block(
        lead(*sentences, APART),
        table(
            ("statement", head, "shown by the attacks that were run"),
            beside_evidence(dossier),
        ),
        listed(notes),
    )


def _text(
    dossier: Dossier, guarantee: Guarantee, head: str, *sentences: str
) -> RenderableType:
    return stack(
        paragraph(*sentences, *(f"Note: {caveat}." for caveat in guarantee.caveats)),
        grid(("statement", head, "shown by attacks"), beside_evidence(dossier)),
    )


def claim_sentence(guarantee: Guarantee) -> str:
    """Return what a stated training would guarantee in one sentence."""
    if not guarantee.holds:
        return "Nothing would be guaranteed, even if the training was as stated."
    sentence = guarantee_sentence(guarantee)
    return f"If the training was as stated: {sentence[:1].lower()}{sentence[1:]}"


def guarantee_sentence(guarantee: Guarantee) -> str:
    """Return the guarantee in one sentence, or that there is none."""
    if not guarantee.holds:
        return "This product carries no guarantee."
    return (
        f"Whatever anybody knows or tries, nobody who believed with {percent(guarantee.prior)} that a row was used comes to believe it with more than "
        f"{percent(guarantee.belief)}, except with probability {guarantee.delta:.2g}."
    )


def guarantee_rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return the equivalent statements of a guarantee."""
    return [
        (
            f"epsilon at delta {guarantee.delta:.2g}, {guarantee.relation}",
            f"{guarantee.epsilon:.3f}",
        ),
        (
            f"highest belief from {percent(guarantee.prior)}, except with probability {guarantee.delta:.2g}",
            percent(guarantee.belief),
        ),
        ("largest advantage (TPR - FPR) of any attack", f"{guarantee.advantage:.3f}"),
        (f"largest TPR at FPR {percent(guarantee.fpr)}", percent(guarantee.tpr)),
    ]


def beside_evidence(dossier: Dossier) -> list[tuple[str, str, str]]:
    """Return what is guaranteed and what the attacks that were run have shown."""
    guarantee = dossier.provenance.guarantee
    if guarantee is None:
        return []
    evidence = dossier.evidence
    best = strongest(evidence.attacks)
    epsilon = f"at least {max(evidence.epsilon.low, 0.0):.2f} (could have shown {evidence.epsilon_ceiling:.2f})"
    rate = ""
    # Rates at different false-positive rates cannot be compared.
    if best.fpr == guarantee.fpr:
        tpr = best.tpr_at_fpr
        rate = f"{plain(best.name)}: {tpr.percent}"
    # No attack on a finished product shows a belief, so that cell stays empty.
    shown = [epsilon, "", f"{plain(best.name)}: {best.vulnerability}", rate]
    return [
        (*row, what) for row, what in zip(guarantee_rows(guarantee), shown, strict=True)
    ]
