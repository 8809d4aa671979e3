"""The most that any adversary could reach by what it sees, beside what attacks did reach."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import AttackEvidence, Estimate, Evidence, strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, key, lead, note
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.plots import MARK, interval, reach, row_name, rows_plot, upright
from reticent.report.sections.bound import BOUND_KEY, bound_words, bounds, draw_bound
from reticent.report.words import p_words, plain

__all__ = ["WorstCaseSection", "worst_case"]

# Features whose name in the evidence is a term; every other name stands as it is.
_VIEWS = {"0-1 loss": "right or wrong", "loss": "the loss"}
# Family of attacks -> what its attacks do.
_FAMILIES = {
    "queries": "only queries",
    "looks inside": "looks inside",
    "reads the file": "reads the file",
    "trains others": "trains other models",
}
Row = tuple[str, Estimate, str, str]  # name, estimate, class, what the tip adds


class WorstCaseSection:
    """How much there is to be found, whatever the attack."""

    title = "What the best attack could find out"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return a figure; None if no worst case was estimated."""
        evidence = dossier.evidence
        if not evidence.worst_case:
            return None
        biases = [case.bias for case in evidence.worst_case]
        entries = [
            ("other", "worst case"),
            ("member", "reached by attacks that were run"),
        ]
        if evidence.vulnerability_bound is not None:
            entries.append(BOUND_KEY)
        return block(
            lead(
                "An adversary who sees certain things of an answer, and makes the best of them, reaches the worst case; 0 is good, 1 is worst. "
                "Attacks that compare with other models know more than one answer tells: for them the rows with their score count. "
                "Of the attacks that were run, the best of each family is shown: those that only query, look inside, read the file, or train other models.",
                _bound_verdict(dossier),
            ),
            card(worst_case(dossier), key(entries)),
            note(
                f"Two samples of one source never look quite alike, so a plain estimate leans upwards. With shuffled tags it shows {min(biases):.3f} to "
                f"{max(biases):.3f} here, and that part was taken away. Point at a row for the plain estimate and the p-value of the shuffling."
            ),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        if not dossier.evidence.worst_case:
            return None
        rows = grid(
            ("adversary", "vulnerability (0 is best, 1 is worst)"),
            ((name, estimate) for name, estimate, _, _ in _rows(dossier.evidence)),
        )
        return stack(rows, paragraph(_bound_verdict(dossier)))


def worst_case(dossier: Dossier) -> Markup:
    """Draw the most that any adversary could reach, by what it sees, and what attacks did reach."""
    evidence = dossier.evidence
    rows = _rows(evidence)
    plot = rows_plot(
        len(rows),
        "vulnerability (0 is good, 1 is worst)",
        "Worst case against what attacks reached",
        ends=reach(
            [row[1].low for row in rows]
            + [row[1].high for row in rows]
            + bounds(dossier)
        ),
    )
    best = strongest(evidence.attacks)
    # Across all rows, so that the distance between what was reached and what could be is seen at once.
    upright(plot, best.vulnerability.value, len(rows), "reached-line")
    draw_bound(plot, dossier, len(rows))
    for place, (name, estimate, css, more) in enumerate(reversed(rows)):
        row_name(plot, place, name, str(estimate))
        interval(plot, place + MARK, name, estimate, css, more)
    return plot.svg("plot-worst-case")


def _rows(evidence: Evidence) -> list[Row]:
    rows: list[Row] = [
        (
            f"sees: {_VIEWS.get(case.feature, plain(case.feature))}",
            case.estimate,
            "",
            f"plain estimate {case.plug_in:.3f}; chance alone shows {case.bias:.3f}, which is taken away; "
            f"{p_words(case.p_value)} by permutation",
        )
        for case in evidence.worst_case
    ]
    if evidence.subgroup_aware:
        rows.append(("sees: that score and the group", evidence.subgroup_aware, "", ""))
    best = strongest(evidence.attacks)
    rows.append(
        (f"reached: {plain(best.name)} (best)", best.vulnerability, "reached", "")
    )
    for attack in _best_of_other_families(evidence, best):
        more = f"the best attack that {_FAMILIES.get(attack.family, attack.family)}"
        rows.append(
            (f"reached: {plain(attack.name)}", attack.vulnerability, "reached", more)
        )
    return rows


def _best_of_other_families(
    evidence: Evidence, best: AttackEvidence
) -> list[AttackEvidence]:
    """Return the strongest attack of every family but that of the best."""
    families = dict.fromkeys(attack.family for attack in evidence.attacks)
    return [
        strongest([attack for attack in evidence.attacks if attack.family == family])
        for family in families
        if family != best.family
    ]


def _bound_verdict(dossier: Dossier) -> str:
    """Return the bound of a claim, and whether the best attack went beyond it."""
    bound = dossier.evidence.vulnerability_bound
    if bound is None:
        return ""
    best = strongest(dossier.evidence.attacks)
    # A claim is about one record; where people have several, attacks on people cannot refute it.
    one_each = dossier.records["defender"] == dossier.records["member_units"]
    if one_each and best.vulnerability.low > bound:
        return (
            bound_words(dossier)
            + f" The attack '{plain(best.name)}' reached more, so the claim is not true of this product (with delta 0, if it names none)."
        )
    return bound_words(dossier)
