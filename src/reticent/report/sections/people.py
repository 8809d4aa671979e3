"""How scores, predictions and losses are distributed over people; no record stands in it."""

import math

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import (
    Evidence,
    Exposed,
    LongStatistic,
    PoolEvidence,
    strongest,
)
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, heading, key, lead, table, two
from reticent.report._terminal import paragraph
from reticent.report.plots import UNIT_TICKS, fill_histogram, histogram_plot
from reticent.report.svg import Axis, Plot
from reticent.report.words import p_words, percent, plain, whole

__all__ = [
    "PeopleSection",
    "calibration_words",
    "exposed_words",
    "loss_words",
    "naming_words",
    "posterior_words",
]

_SIDES = (("member", "members"), ("other", "non-members"))
# p-value below which the report says that predictions depart from what came true; five in a hundred correct audits
# would be too many for a sentence that casts doubt on the attack.
_DEPARTS = 0.01


class PeopleSection:
    """Whether single people stand out."""

    title = "Who is exposed"

    def html(self, dossier: Dossier) -> Markup:
        """Return distributions of scores, of individual privacy, of predictions and of losses."""
        return block(
            lead(
                "If nothing leaked, members and non-members would score alike, and individual privacy would follow the dashed line.",
                exposed_words(dossier),
                *naming_words(dossier.evidence),
                "No record stands in this report; bins with fewer than five people are left empty.",
            ),
            two(
                card(_scores(dossier), key(_SIDES)),
                card(
                    _individual(dossier),
                    key(
                        [
                            ("member", "members"),
                            ("soft", "if nothing leaked"),
                            ("bad", "exposed below"),
                        ]
                    ),
                ),
            ),
            _predictions(dossier.evidence),
            _losses(dossier),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same in sentences."""
        evidence = dossier.evidence
        return paragraph(
            exposed_words(dossier),
            *naming_words(dossier.evidence),
            loss_words(evidence.pool) if evidence.pool else "",
        )


def exposed_words(dossier: Dossier) -> str:
    """Return how many members have little individual privacy, and how many would without a leak."""
    below = _exposed_below(dossier)
    return (
        f"{percent(dossier.evidence.exposed.value)} of members have an individual privacy below {below:g}; without a leak it would be "
        f"{percent(below / 2)}."
    )


def naming_words(evidence: Evidence) -> list[str]:
    """Return how many members could be named, and how often a name would be right."""
    naming = evidence.naming
    if naming is None:
        return []
    named, among = naming.named, f"among {naming.people:,} people"
    why = f"{evidence.nonmembers:,} non-members are too few to tell"
    if skipped := evidence.skipped_statistic(LongStatistic.NAMED):
        why = skipped.why
    words = [
        f"How many members could be named {among} with at most {percent(naming.false_names)} false names is not known: "
        f"{why}."
        if named is None
        else f"With at most {percent(naming.false_names)} false names, the strongest attack could name {named.percent} "
        f"of the {evidence.members:,} members {among}."
    ]
    if naming.population is not None and naming.predictive_value is not None:
        one_in = naming.population / evidence.members
        words.append(
            f"If one in {one_in:,.3g} people is in the table, a person pointed out at {percent(naming.fpr)} false alarms is a member with "
            f"probability {whole(naming.predictive_value)}."
        )
    return words


def calibration_words(evidence: Evidence) -> str:
    """Return whether predicted probabilities of membership came true; empty without any."""
    curve = evidence.calibration
    if curve is None:
        return ""
    inside = sum(b.observed.low <= b.predicted <= b.observed.high for b in curve.bins)
    total = len(curve.bins)
    where = f"all {total}" if inside == total else f"{inside} of {total}"
    agrees = curve.p_value > _DEPARTS
    verdict = "agrees" if agrees else "sees a departure"
    joined = "and" if (inside == total) == agrees else "but"
    return (
        f"The diagonal, where predictions come true, lies inside the band in {where} bins, {joined} Spiegelhalter's test over all people "
        f"{verdict} ({p_words(curve.p_value)})."
    )


def posterior_words(evidence: Evidence) -> str:
    """Return what probabilities of membership are worth, to stand beside them wherever they are written."""
    attack = plain(evidence.predicted_by)
    if not attack:
        return "posterior: no attack of this audit predicts a probability of membership, so none is written."
    if evidence.calibration is None:
        return (
            f"What the attack '{attack}' predicts of single people cannot be told from chance, so no probability of membership is stated. That "
            "does not mean that nothing leaks: see the other attacks."
        )
    p_value = evidence.calibration.p_value
    result = "agrees" if p_value > _DEPARTS else "sees a departure: do not rely on them"
    return (
        f"posterior: probability of membership at even prior odds, by the attack '{attack}', calibrated on other people; "
        f"Spiegelhalter's test of whether such probabilities come true {result} ({p_words(p_value)})."
    )


def loss_words(pool: PoolEvidence) -> str:
    """Return the effective privacy loss of people in a sentence; empty if it is not known."""
    if not pool.losses:
        return ""
    parts = [
        f"{'half of the people' if q.share == 0.5 else percent(q.share)} "
        f"{'have a loss ' if k == 0 else ''}below {q.loss}"
        for k, q in enumerate(pool.losses)
    ]
    return f"Effective privacy loss (0 is good): {', '.join(parts)}."


def _exposed_below(dossier: Dossier) -> float:
    return Exposed().parameter("below", dossier.policy.limit(Exposed.name))


def _predictions(evidence: Evidence) -> Markup | None:
    """Return the probabilities of membership that an attack predicts; None if none does."""
    if evidence.calibration is None:
        if not evidence.predicted_by:
            return None
        return block(heading("Predicted membership"), lead(posterior_words(evidence)))
    posterior = _posterior(evidence.pool)
    return block(
        heading("Predicted membership"),
        lead(
            f"The attack '{plain(evidence.predicted_by)}' gives each person a probability of membership; one half is not knowing. It was "
            "calibrated on other people.",
            calibration_words(evidence),
        ),
        two(
            card(posterior, key(_SIDES)) if posterior else None,
            card(
                _calibration(evidence),
                key(
                    [
                        ("other", "what came true, with joint intervals"),
                        ("soft", "diagonal"),
                    ]
                ),
            ),
        ),
    )


def _losses(dossier: Dossier) -> Markup | None:
    """Return quantiles of the effective privacy loss; None if it is not known."""
    pool = dossier.evidence.pool
    if pool is None or not pool.losses:
        return None
    epsilon = dossier.provenance.claimed_epsilon
    rows = (
        (
            "half of the people" if q.share == 0.5 else percent(q.share) + " of people",
            f"below {q.loss}",
            f"at most {_certainty(q.loss.value)}",
        )
        for q in pool.losses
    )
    claim = (
        ""
        if epsilon is None
        else f"The claimed epsilon of {epsilon:g} would keep every loss below {epsilon:g} and every certainty below {_certainty(epsilon)}."
    )
    return block(
        heading("Effective privacy loss"),
        lead(
            "The loss of a person is the log-odds of membership (or of non-membership) that the attack reaches for them; 0 is good. Epsilon-differential "
            "privacy bounds it by epsilon for everybody: nobody's membership could be told with more certainty than 1/(1 + exp(-epsilon)).",
            claim,
            "Beyond the outermost points of the calibration figure it is the attack's own extrapolation.",
        ),
        table(("who", "effective privacy loss", "certainty of the attack"), rows),
    )


def _certainty(loss: float) -> str:
    """Return the posterior that goes with log-odds, never rounded to certainty."""
    share = 1 / (1 + math.exp(-loss))
    return (
        # Log-odds of 40 would be printed as 100 %, and no attack is certain.
        "99.99 % or more"
        if share >= 0.9999
        else f"{100 * share:.3g} %"
        if share < 0.99
        else f"{100 * share:.2f} %"
    )


def _scores(dossier: Dossier) -> Markup:
    """Draw the scores of members and non-members side by side."""
    histogram = dossier.evidence.scores
    best = plain(strongest(dossier.evidence.attacks).name)
    plot = histogram_plot(
        histogram,
        f"score of the attack '{best}' (right: like a member)",
        "Scores of members and non-members",
        (histogram.edges[0], histogram.edges[-1]),
    )
    fill_histogram(plot, histogram, "score", ".3g")
    return plot.svg("plot-scores")


def _individual(dossier: Dossier) -> Markup:
    """Draw how individual privacy is distributed over members, against no leak."""
    histogram = dossier.evidence.individual
    edges, bins = histogram.edges, len(histogram.members)
    plot = histogram_plot(
        histogram,
        "individual privacy score (left: exposed)",
        "Individual privacy of members",
        (0.0, 1.0),
    )
    for left, right, share in zip(edges, edges[1:], histogram.members, strict=False):
        plot.bar(
            left,
            right,
            share,
            "member",
            f"{percent(share)} of members have individual privacy {left:.2f} to {right:.2f}",
        )
    # Without a leak the wins of a member are uniform: half of the members reach a score of 1.
    flat = 0.5 / bins
    plot.line(
        [(0.0, flat), (edges[-2], flat), (edges[-2], 0.5 + flat), (1.0, 0.5 + flat)],
        "chance",
    )
    below = _exposed_below(dossier)
    tip = f"individual privacy below {below:g} counts as exposed"
    plot.rise(below, 0.0, plot.y.high, "limit", tip)
    return plot.svg("plot-individual")


def _posterior(pool: PoolEvidence | None) -> Markup | None:
    """Draw the predicted probabilities of membership of members and non-members."""
    if pool is None or pool.posterior is None:
        return None
    plot = histogram_plot(
        pool.posterior,
        "predicted probability of membership",
        "Predicted membership of members and non-members",
        (0.0, 1.0),
    )
    fill_histogram(plot, pool.posterior, "are given a probability of", ".2f")
    return plot.svg("plot-posterior")


def _calibration(evidence: Evidence) -> Markup:
    """Draw predicted against observed membership, with the band of the bins' joint intervals."""
    plot = Plot(
        x=Axis(
            low=0.0,
            high=1.0,
            ticks=UNIT_TICKS,
            label="predicted probability of membership",
        ),
        y=Axis(low=0.0, high=1.0, ticks=UNIT_TICKS, label="share that were members"),
        title="Calibration of predicted membership",
        width=440,
        height=330,
        left=60,
    )
    plot.axes()
    bins = evidence.calibration.bins if evidence.calibration else ()
    plot.area(
        [(b.predicted, b.observed.high) for b in bins]
        + [(b.predicted, b.observed.low) for b in reversed(bins)],
        "band-other",
    )
    plot.line([(0.0, 0.0), (1.0, 1.0)], "chance")
    for each in bins:
        observed = each.observed
        tip = f"predicted {each.predicted:.2f}, observed {observed} of {each.records:,} people"
        plot.rise(each.predicted, observed.low, observed.high, "whisker thin")
        plot.dot(each.predicted, observed.value, "point", tip, radius=4)
    return plot.svg("plot-calibration")
