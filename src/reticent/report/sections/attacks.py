"""The outsider's attacks: ROC curves, a table, and what could not be run."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import AttackEvidence, Estimate, Evidence, strongest
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, key, lead, listed, table, template
from reticent.report._terminal import grid, paragraph, stack
from reticent.report.summary import outsider_does
from reticent.report.svg import Axis, Plot
from reticent.report.words import percent, plain, whole

__all__ = ["AttacksSection", "coverage_words", "not_run_words", "roc"]

LOWEST = 1e-4  # rate at which the logarithmic axes begin: one in ten thousand
_TICKS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Family of attacks -> its class in the style sheet, its colour, and what the key says.
_FAMILIES = {
    "trains others": ("pool", "third", "other attacks that train models"),
    "looks inside": ("inside", "fourth", "other attacks that look inside"),
    "reads the file": ("file", "fifth", "other attacks that read the file"),
    "compares rows": ("query", "other", "other attacks that compare rows"),
    "queries": ("query", "other", "other attacks that only query"),
}
_BEST = template("{{ name }}{% if best %} <b>(best)</b>{% endif %}")


class AttacksSection:
    """What somebody finds out who holds the product and knows no tag."""

    title = "What a stranger can find out"

    def html(self, dossier: Dossier) -> Markup:
        """Return curves and a table, the strongest attack first."""
        evidence = dossier.evidence
        best = strongest(evidence.attacks)
        over_models = _over_models(evidence)
        rows = (
            (
                _BEST(name=plain(attack.name), best=attack is best),
                attack.auc,
                *([over_models.get(attack.name, "–")] if over_models else []),
                attack.privacy,
                attack.tpr_at_fpr,
                f"{attack.epsilon.low:.2f}",
            )
            for attack in _ordered(evidence)
        )
        missing = not_run_words(evidence)
        return block(
            lead(
                f"The outsider {outsider_does(evidence)}. Above the dashed line an attack is better than chance; the band is the "
                "interval of the best attack, point by point; the diamond is the policy's limit. Point at a curve for its name.",
                coverage_words(evidence),
            ),
            card(roc(dossier), key(_key(evidence, best))),
            table(
                (
                    "attack",
                    "LTU accuracy (AUC)",
                    *(["mean of the recipe"] if over_models else []),
                    "privacy",
                    f"TPR at FPR {percent(best.fpr)}",
                    "epsilon ≥",
                ),
                rows,
            ),
            listed(missing) if missing else None,
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the table for a terminal."""
        evidence = dossier.evidence
        best = strongest(evidence.attacks)
        heads = ("attack", "LTU accuracy (AUC)", f"TPR at FPR {percent(best.fpr)}")
        rows = grid(
            heads,
            (
                (
                    plain(attack.name) + (" (best)" if attack is best else ""),
                    attack.auc,
                    attack.tpr_at_fpr,
                )
                for attack in _ordered(evidence)
            ),
        )
        return stack(
            rows,
            paragraph(coverage_words(evidence), _recipe_words(evidence), style="dim"),
            paragraph(*not_run_words(evidence), style="yellow"),
        )


def coverage_words(evidence: Evidence) -> str:
    """Return which products the intervals on attacks speak of."""
    words = "Intervals on attacks are for this very product: another product of the same recipe may leak more or less than they say."
    if _over_models(evidence):
        return f"{words} The mean of the recipe has an interval that covers other runs, too."
    return (
        f"{words} Only a pool of at least four models gives one that covers other runs."
    )


def _recipe_words(evidence: Evidence) -> str:
    """Return the means over the models of the pool, for a terminal; empty without a pool."""
    means = _over_models(evidence)
    if not means:
        return ""
    each = (f"{plain(name)} {whole(mean)}" for name, mean in means.items())
    return f"Mean LTU accuracy of the recipe: {', '.join(each)}."


def _over_models(evidence: Evidence) -> dict[str, Estimate]:
    """Return the mean LTU accuracy over the models of the pool, of attacks that were played against each of them."""
    pool = evidence.pool
    return {} if pool is None else {t.name: t.auc for t in pool.targets}


def not_run_words(evidence: Evidence) -> list[str]:
    """Return which attacks failed or were not begun, and why."""
    return [
        *(
            f"The attack '{plain(attack.name)}' failed, so what it would have found is not known: {attack.why.rstrip('.')}."
            for attack in evidence.failed
        ),
        *(
            f"The attack '{plain(attack.name)}' was not begun: {attack.why.rstrip('.')}."
            for attack in evidence.skipped
        ),
    ]


def roc(dossier: Dossier) -> Markup:
    """Draw the ROC curves on logarithmic axes, with the band of the best attack."""
    plot = Plot(
        x=_rates("false-positive rate: share of non-members wronged"),
        y=_rates("true-positive rate: share of members found"),
        title="ROC curves on logarithmic axes",
        height=470,
    )
    attacks = dossier.evidence.attacks
    best = strongest(attacks)
    # Rates below one over the number of non-members, where nobody can be counted.
    unresolved = [p.fpr for p in best.roc if not p.resolved]
    if unresolved:
        edge = min(1.0, 1 / dossier.evidence.nonmembers)
        corners = [(LOWEST, LOWEST), (edge, LOWEST), (edge, 1.0), (LOWEST, 1.0)]
        plot.area(corners, "unseen")
    plot.axes()
    if unresolved:
        plot.note(1.15 * LOWEST, 0.62, "too few non-members to see", css="note")
    # Clipped at the lower end of the axis, because a rate of 0 has no logarithm.
    band = [(p.fpr, max(p.tpr.high, LOWEST)) for p in best.roc]
    band += [(p.fpr, max(p.tpr.low, LOWEST)) for p in reversed(best.roc)]
    plot.area(band, "band")
    plot.line([(LOWEST, LOWEST), (1.0, 1.0)], "chance")
    others = [attack for attack in attacks if attack is not best]
    for number, attack in enumerate(others):
        css, _, _ = _FAMILIES[_family(attack)]
        # The style sheet has four patterns of dashes.
        plot.line(_curve(attack), f"other {css} other-{number % 4}")
    for attack in others:
        # A wide line that nobody sees catches the mouse; the nearest to the best lies on top.
        tip = f"{plain(attack.name)}: LTU accuracy {attack.auc}, TPR {attack.tpr_at_fpr} at FPR {percent(attack.fpr)}"
        plot.line(_curve(attack), "catch", tip)
    plot.line(_curve(best), "curve")
    limit = dossier.policy.limit("tpr")
    if limit is not None and limit.judges:
        fpr = limit.at.get("fpr", best.fpr)
        tip = f"limit: at FPR {percent(fpr)} a TPR of at most {percent(limit.value)}"
        plot.diamond(fpr, max(limit.value, LOWEST), "limit-mark", tip)
    for point in best.roc:
        tip = f"{plain(best.name)}: at FPR {percent(point.fpr)} TPR {point.tpr.percent}"
        if not point.resolved:
            tip += "; too few non-members to see this rate"
        plot.dot(point.fpr, max(point.tpr.value, LOWEST), "hit", tip, radius=7)
    return plot.svg("plot-roc")


def _ordered(evidence: Evidence) -> list[AttackEvidence]:
    return sorted(evidence.attacks, key=lambda attack: -attack.auc.value)


def _key(evidence: Evidence, best: AttackEvidence) -> list[tuple[str, str]]:
    families = {_family(attack) for attack in evidence.attacks if attack is not best}
    entries = [("member", f"best attack: {plain(best.name)}")]
    entries += [
        (colour, words)
        for family, (_, colour, words) in _FAMILIES.items()
        if family in families
    ]
    return [*entries, ("bad", "limit")]


def _family(attack: AttackEvidence) -> str:
    """Return the family of an attack; one that is not known is drawn like those that only query."""
    return attack.family if attack.family in _FAMILIES else "queries"


def _rates(label: str) -> Axis:
    return Axis(low=LOWEST, high=1.0, ticks=_TICKS, label=label, log=True, percent=True)


def _curve(attack: AttackEvidence) -> list[tuple[float, float]]:
    return [(p.fpr, max(p.tpr.value, LOWEST)) for p in attack.roc]
