"""Sections of the page beyond the attacks: the worst case, people, groups, other models of the recipe."""

import math

from reticent.evidence import Evidence, PoolEvidence, strongest
from reticent.report import figures, figures_pool
from reticent.report._dossier import Dossier
from reticent.report._markup import card, key, lead, table, text
from reticent.report.words import percent, plain
from reticent.report.words_pool import (
    bound_words,
    calibration_words,
    disparity_words,
    named_spreads,
    pairs_that_differ,
    pool_words,
    predicting_attack,
)

__all__ = ["groups_section", "people_section", "pool_section", "worst_case_section"]

_SIDES = (("member", "members"), ("other", "non-members"))


def worst_case_section(dossier: Dossier) -> str:
    """Return what the best adversary could reach beside what attacks reached."""
    evidence = dossier.evidence
    if not evidence.worst_case:
        return ""
    biases = [case.bias for case in evidence.worst_case]
    entries = [("other", "worst case"), ("member", "reached by attacks that were run")]
    if evidence.vulnerability_bound is not None:
        entries.append(("bad", "most that the claimed epsilon allows"))
    return (
        "<h2>What the best attack could find out</h2>"
        + lead(
            "An adversary who sees certain things of an answer, and makes the best of them, reaches the worst case; 0 is good, 1 is worst. "
            "Attacks that compare with other models know more than one answer tells: for them the rows with their score count.",
            _bound_verdict(dossier),
        )
        + card(figures_pool.worst_case(dossier), key(entries))
        + '<p class="small">'
        + text(
            f"Two samples of one source never look quite alike, so a plain estimate leans upwards. With tags shuffled it shows {min(biases):.3f} to "
            f"{max(biases):.3f} here; that part was taken away. Point at a row for the plain estimate and the p-value of the shuffling."
        )
        + "</p>"
    )


def people_section(dossier: Dossier) -> str:
    """Return how scores, predictions and losses are distributed over people."""
    evidence = dossier.evidence
    below = dossier.policy.limits.exposed_below
    parts = [
        "<h2>Who is exposed</h2>",
        lead(
            "If nothing leaked, members and non-members would score alike, and individual privacy would follow the dashed line.",
            f"{percent(evidence.exposed.value)} of members have an individual privacy below {below:g}; without a leak it would be "
            f"{percent(below / 2)}. No record stands in this report; bins with fewer than five people are left empty.",
        ),
        '<div class="two">',
        card(figures.scores(dossier), key(_SIDES)),
        card(
            figures.individual(dossier),
            key(
                [
                    ("member", "members"),
                    ("soft", "if nothing leaked"),
                    ("bad", "exposed below"),
                ]
            ),
        ),
        "</div>",
    ]
    if evidence.calibration:
        drawn = figures_pool.posterior(dossier)
        parts += [
            "<h3>Predicted membership</h3>",
            lead(
                f"The attack '{predicting_attack(evidence)}' gives each person a probability of membership; one half is not knowing.",
                calibration_words(evidence),
            ),
            '<div class="two">',
            card(drawn, key(_SIDES)) if drawn else "",
            card(
                figures.calibration(dossier),
                key(
                    [
                        ("other", "what came true, intervals jointly"),
                        ("soft", "diagonal"),
                    ]
                ),
            ),
            "</div>",
        ]
    if evidence.pool and evidence.pool.losses:
        parts.append(_losses(dossier, evidence.pool))
    return "".join(parts)


def groups_section(dossier: Dossier) -> str:
    """Return privacy and vulnerability by group, and which groups differ over models."""
    evidence = dossier.evidence
    if not evidence.groups:
        return ""
    rows = [
        (
            text(group.name),
            f"{group.members:,}",
            text(group.privacy),
            text(group.vulnerability),
            text(group.worst_case),
        )
        for group in sorted(evidence.groups, key=lambda g: g.privacy.value)
    ]
    return (
        "<h2>Privacy by group</h2>"
        + lead(
            f"Groups of at least {dossier.policy.smallest_group} members and non-members; intervals hold together over groups."
        )
        + card(figures.groups(dossier))
        + "<h3>Vulnerability by group</h3>"
        + _vulnerability(dossier)
        + "<p class='small'>For this product and its strongest attack:</p>"
        + table(
            (
                "group",
                "members",
                "privacy (1 is best)",
                "vulnerability (0 is best)",
                "worst case (0 is best)",
            ),
            rows,
        )
    )


def pool_section(dossier: Dossier) -> str:
    """Return what attacks reach on other models of the recipe, and with how many."""
    pool = dossier.evidence.pool
    if pool is None:
        return ""
    parts = ["<h2>Other models of the same recipe</h2>"]
    if pool.targets:
        rates = pool.targets[0].fpr
        rows = [
            (
                text(plain(found.name)),
                str(found.targets),
                text(found.auc),
                f"{found.lowest:.3f} to {found.highest:.3f}",
                *(text(tpr) for tpr in found.tpr),
            )
            for found in pool.targets
        ]
        parts += [
            lead(
                pool_words(pool),
                "Here each of them was attacked in the product's place. The intervals on attacks elsewhere in this report are for this very "
                "product; those in this table are for the average over models and cover other runs of the trainer, too. The range shows the single models.",
            ),
            table(
                (
                    "attack",
                    "models",
                    "LTU accuracy (0.5 is a coin)",
                    "range",
                    *(f"TPR at FPR {percent(rate)}" for rate in rates),
                ),
                rows,
            ),
        ]
    else:
        parts.append(
            lead(
                pool_words(pool),
                "They are too few to stand in for the product one by one.",
            )
        )
    drawn = figures_pool.convergence(dossier)
    if drawn:
        names = list(dict.fromkeys(each.attack for each in pool.convergence))
        parts += [
            "<h3>Would more models find more?</h3>",
            lead(
                "LTU accuracy against this product with a part of the pool and with all of it. A curve that still climbs at its right end would climb further "
                "with more models; one that is flat has seen enough."
            ),
            card(
                drawn,
                key(zip(("member", "other"), (plain(n) for n in names), strict=False)),
            ),
        ]
    return "".join(parts)


def _losses(dossier: Dossier, pool: PoolEvidence) -> str:
    epsilon = dossier.provenance.claimed_epsilon
    rows = [
        (
            "half of the people" if q.share == 0.5 else percent(q.share) + " of people",
            f"below {text(q.loss)}",
            f"at most {_certainty(q.loss.value)}",
        )
        for q in pool.losses
    ]
    claim = (
        ""
        if epsilon is None
        else f"The claimed epsilon of {epsilon:g} would keep every loss below {epsilon:g} and every certainty below {_certainty(epsilon)}."
    )
    return (
        "<h3>Effective privacy loss</h3>"
        + lead(
            "The loss of a person is the log-odds of membership (or of non-membership) that the attack reaches for them; 0 is good. Epsilon-differential "
            "privacy bounds it by epsilon for everybody: nobody's membership could be told with more certainty than 1/(1 + exp(-epsilon)).",
            claim,
            "Beyond the outermost points of the calibration figure it is the attack's own extrapolation.",
        )
        + table(("who", "effective privacy loss", "certainty of the attack"), rows)
    )


def _certainty(loss: float) -> str:
    """Return the posterior that goes with log-odds, never rounded to certainty."""
    share = 1 / (1 + math.exp(-loss))
    return (
        "99.99 % or more"
        if share >= 0.9999
        else f"{100 * share:.3g} %"
        if share < 0.99
        else f"{100 * share:.2f} %"
    )


def _vulnerability(dossier: Dossier) -> str:
    evidence = dossier.evidence
    entries = [("other", "reached by the strongest attack"), ("third", "worst case")]
    words = [
        "What the strongest attack reached inside each group, and what the best adversary who sees its score could reach; 0 is good, 1 is worst.",
        bound_words(dossier),
    ]
    if named_spreads(evidence) and evidence.pool and evidence.pool.disparity:
        found = evidence.pool.disparity
        words = [
            f"How well '{plain(found.attack)}' tells members from non-members inside each group, over {evidence.pool.targets[0].targets if evidence.pool.targets else evidence.pool.models} "
            "models of the same recipe; 0 is good, 1 is worst.",
            "The box holds half of the models, its line all of them; the point below it is the mean, with an interval that covers other runs "
            "of the trainer.",
            disparity_words(evidence, most=3),
            _marks(evidence),
            bound_words(dossier),
        ]
        entries = [("third", "spread over models"), ("other", "mean with interval")]
    if evidence.vulnerability_bound is not None:
        entries.append(("bad", "most that the claimed epsilon allows"))
    return lead(*words) + card(figures_pool.vulnerability(dossier), key(entries))


def _marks(evidence: Evidence) -> str:
    """Return how to read the brackets."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return ""
    pairs = len(pairs_that_differ(evidence))
    if not pairs:
        return ""
    shown = (
        f"The {figures_pool.MOST_PAIRS} surest of {pairs} such pairs are joined"
        if pairs > figures_pool.MOST_PAIRS
        else "Such pairs are joined"
    )
    return f"{shown} by brackets: * p < 0.05, ** p < 0.01, *** p < 0.001, adjusted by {evidence.pool.disparity.correction}."


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
            + f" The attack {plain(best.name)} reached more, so the claim is not true of this product (with delta 0, if it names none)."
        )
    return bound_words(dossier)
