"""The guarantee of a product, in words and rows: beside what attacks found, never mixed with it."""

from reticent.account import Promise
from reticent.evidence import strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import lead, listed, table, text
from reticent.report.words import percent, plain

__all__ = ["beside_evidence", "promise_rows", "promise_section", "promise_sentence"]

APART = (
    "So says whoever trained the product; this audit has not seen the training. A guarantee speaks of every attack there is, the rest of this report only of the attacks that were run. Neither "
    "proves the other: attacks can refute a guarantee, not confirm it."
)


def promise_sentence(promise: Promise) -> str:
    """Return the promise in one sentence, or that there is none."""
    if not promise.holds:
        return "This product carries no guarantee."
    return (
        f"Whatever anybody knows or tries: from a belief of {percent(promise.prior)} that a row was used nobody comes to more than "
        f"{percent(promise.belief)}, but with probability {promise.delta:.2g}."
    )


def promise_rows(promise: Promise) -> list[tuple[str, str]]:
    """Return the equivalent statements of a promise."""
    return [
        (
            f"epsilon at delta {promise.delta:.2g}, {promise.relation}",
            f"{promise.epsilon:.3f}",
        ),
        (
            f"highest belief from {percent(promise.prior)}, but with probability {promise.delta:.2g}",
            percent(promise.belief),
        ),
        ("largest advantage (TPR - FPR) of any attack", f"{promise.advantage:.3f}"),
        (f"largest TPR at FPR {percent(promise.fpr)}", percent(promise.tpr)),
    ]


def beside_evidence(dossier: Dossier) -> list[tuple[str, str, str]]:
    """Return what is promised and what the attacks that were run have shown."""
    promise = dossier.provenance.promise
    if promise is None:
        return []
    evidence = dossier.evidence
    best = strongest(evidence.attacks)
    shown = f"at least {max(evidence.epsilon.low, 0.0):.2f} (could have shown {evidence.epsilon_ceiling:.2f})"
    rates = ""
    if best.fpr == promise.fpr:
        found = best.tpr_at_fpr
        low, high = percent(found.low), percent(found.high)
        rates = f"{plain(best.name)}: {percent(found.value)} [{low}, {high}]"
    attacks = [shown, "", f"{plain(best.name)}: {best.vulnerability}", rates]
    return [
        (*row, what) for row, what in zip(promise_rows(promise), attacks, strict=True)
    ]


def promise_section(dossier: Dossier) -> str:
    """Return the section of the page; empty if nothing is promised."""
    promise = dossier.provenance.promise
    if promise is None:
        return ""
    told = [f"{caveat[0].upper()}{caveat[1:]}." for caveat in promise.caveats]
    told += [
        f"How: {promise.mechanism}.",
        f"Treated as public, so protected by nothing: {'; '.join(promise.public)}.",
    ]
    promised = "promised" if promise.holds else "not promised, see below"
    return (
        "<h2>What is guaranteed</h2>"
        + lead(promise_sentence(promise), APART)
        + table(
            ("statement", promised, "shown by the attacks that were run"),
            [tuple(text(cell) for cell in row) for row in beside_evidence(dossier)],
        )
        + listed(told)
    )
