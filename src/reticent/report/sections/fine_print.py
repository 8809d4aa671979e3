"""What the numbers rest on, and what they do not say."""

from markupsafe import Markup

from reticent.policy import Outcome
from reticent.report._dossier import Dossier
from reticent.report._markup import listed
from reticent.report.sections.bound import bound_words
from reticent.report.words import percent

__all__ = ["FinePrintSection"]


class FinePrintSection:
    """The small letters of the page."""

    title = "What to keep in mind"

    def html(self, dossier: Dossier) -> Markup:
        """Return a list of sentences."""
        evidence, records = dossier.evidence, dossier.records
        limits = dossier.decision.limits
        kept_limits = sum(check.outcome == Outcome.KEPT for check in limits)
        return listed(
            [
                f"{records['defender']:,} records trained the product, {records['reserved']:,} were reserved, {records['auxiliary']:,} are auxiliary; "
                f"statistics count people ({evidence.members:,} and {evidence.nonmembers:,}), not rows.",
                f"{kept_limits} of {len(limits)} limits are kept with confidence. Intervals cover the draw of records for this very product, not re-runs of "
                f"its training{_exceptions_to_coverage(dossier)}.",
                f"The attacks show an epsilon of at least {evidence.epsilon.low:.2f}; on so many records no attack could have shown more than "
                f"{evidence.epsilon_ceiling:.2f}.",
                *_theorems(dossier),
                *_dependence(dossier),
                _claim(dossier),
            ]
        )

    def text(self, dossier: Dossier) -> None:
        """Return nothing: a terminal has the numbers, the page has the small letters."""


def _exceptions_to_coverage(dossier: Dossier) -> str:
    """Return which intervals do cover re-runs."""
    pool = dossier.evidence.pool
    if pool is None or not (pool.targets or pool.disparity):
        return ""
    places = ["the table of other models"] if pool.targets else []
    places += ["groups over models"] if pool.disparity else []
    return f"; those of {' and '.join(places)} cover the trainer, re-runs included"


def _theorems(dossier: Dossier) -> list[str]:
    """Return what the gap between members and non-members gives any attacker; nothing where it was not measured."""
    values = dossier.evidence.theorems
    by_loss = (
        f", and the loss gives {values['theorem_1']:.3f} (Theorem 1)"
        if "theorem_1" in values
        else ""
    )
    # Errors are easier to read than a loss, so they are preferred where there are classes.
    if {"error_defender", "error_reserved", "theorem_2_zero_one"} <= set(values):
        return [
            f"The product errs on {percent(values['error_defender'])} of members and {percent(values['error_reserved'])} of non-members; by Theorem 2 of "
            f"the LTU paper this gap alone gives an attacker an accuracy of {values['theorem_2_zero_one']:.3f}{by_loss}."
        ]
    if {"e_defender", "e_reserved", "theorem_2"} <= set(values):
        return [
            f"The mean loss of the product, scaled to at most 1, is {values['e_defender']:.3f} on members and {values['e_reserved']:.3f} on non-members; "
            f"by Theorem 2 of the LTU paper this gap alone gives an attacker an accuracy of {values['theorem_2']:.3f}{by_loss}."
        ]
    return []


def _dependence(dossier: Dossier) -> list[str]:
    """Return what intervals take for granted where attacks compare a record with others."""
    if all(attack.family != "trains others" for attack in dossier.evidence.attacks):
        return []
    return [
        "Attacks that train models may also look at answers on similar records, so their scores are not quite independent; their intervals treat "
        "them as if they were. The unrelated control, attacked in the same way, watches over them."
    ]


def _claim(dossier: Dossier) -> str:
    epsilon = dossier.provenance.claimed_epsilon
    if epsilon is None:
        return (
            "Attack results speak only of the attacks that were run. Only a mechanism's guarantee, such as differential privacy, speaks of all; "
            "none is claimed here."
        )
    return (
        f"An epsilon of {epsilon:g} is claimed by whoever trained the product; this audit can refute it but not prove it. "
        + bound_words(dossier)
    )
