"""The guarantee of a product, in words and rows: beside what attacks found, never mixed with it."""

from reticent.account import Guarantee
from reticent.evidence import strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import lead, listed, table, text
from reticent.report.words import percent, plain

__all__ = [
    "beside_evidence",
    "guarantee_rows",
    "guarantee_section",
    "guarantee_sentence",
]

APART = (
    "So says whoever trained the product; this audit has not seen the training. A guarantee speaks of every attack there is, the rest of this report only of the attacks that were run. Neither "
    "proves the other: attacks can refute a guarantee, not confirm it."
)


def guarantee_sentence(guarantee: Guarantee) -> str:
    """Return the guarantee in one sentence, or that there is none."""
    if not guarantee.holds:
        return "This product carries no guarantee."
    return (
        f"Whatever anybody knows or tries: from a belief of {percent(guarantee.prior)} that a row was used nobody comes to more than "
        f"{percent(guarantee.belief)}, but with probability {guarantee.delta:.2g}."
    )


def guarantee_rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return the equivalent statements of a guarantee."""
    return [
        (
            f"epsilon at delta {guarantee.delta:.2g}, {guarantee.relation}",
            f"{guarantee.epsilon:.3f}",
        ),
        (
            f"highest belief from {percent(guarantee.prior)}, but with probability {guarantee.delta:.2g}",
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
    shown = f"at least {max(evidence.epsilon.low, 0.0):.2f} (could have shown {evidence.epsilon_ceiling:.2f})"
    rates = ""
    if best.fpr == guarantee.fpr:
        found = best.tpr_at_fpr
        low, high = percent(found.low), percent(found.high)
        rates = f"{plain(best.name)}: {percent(found.value)} [{low}, {high}]"
    attacks = [shown, "", f"{plain(best.name)}: {best.vulnerability}", rates]
    return [
        (*row, what)
        for row, what in zip(guarantee_rows(guarantee), attacks, strict=True)
    ]


def guarantee_section(dossier: Dossier) -> str:
    """Return the section of the page; empty if nothing is guaranteed."""
    guarantee = dossier.provenance.guarantee
    if guarantee is None:
        return ""
    told = [f"{caveat[0].upper()}{caveat[1:]}." for caveat in guarantee.caveats]
    told += [
        f"How: {guarantee.mechanism}.",
        f"Treated as public, so protected by nothing: {'; '.join(guarantee.public)}.",
    ]
    guaranteed = "guaranteed" if guarantee.holds else "not guaranteed, see below"
    return (
        "<h2>What is guaranteed</h2>"
        + lead(guarantee_sentence(guarantee), APART)
        + table(
            ("statement", guaranteed, "shown by the attacks that were run"),
            [tuple(text(cell) for cell in row) for row in beside_evidence(dossier)],
        )
        + listed(told)
    )
