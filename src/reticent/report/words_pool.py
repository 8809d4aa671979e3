"""Sentences on worst cases, and on what many models tell of groups, people and the trainer."""

from reticent.evidence import Evidence, GroupSpread, PairDifference, PoolEvidence
from reticent.report._dossier import Dossier
from reticent.report.words import p_words, percent, plain

__all__ = [
    "ALARM",
    "bound_words",
    "calibration_words",
    "disparity_words",
    "loss_words",
    "named_spreads",
    "pairs_that_differ",
    "pool_words",
    "predicting_attack",
]

ALARM = 0.05  # adjusted p-values below this are marked


def pool_words(pool: PoolEvidence) -> str:
    """Return how many models were trained and who chose their number."""
    why = (
        "as many as the time allowed; the number was set before any result was seen"
        if pool.chosen == "by time"
        else "as many as were asked for"
    )
    return f"{pool.models} models were trained by the product's recipe on random halves of the records ({why})."


def bound_words(dossier: Dossier) -> str:
    """Return what the claimed epsilon allows, with its formula; empty without a claim."""
    epsilon, bound = (
        dossier.provenance.claimed_epsilon,
        dossier.evidence.vulnerability_bound,
    )
    if epsilon is None or bound is None:
        return ""
    guarantee = dossier.provenance.guarantee
    if guarantee is not None and guarantee.holds:
        return f"What is guaranteed allows a vulnerability, and a difference between groups, of at most {bound:.3f}."
    return (
        f"The claimed epsilon of {epsilon:g} allows a vulnerability, and a difference between groups, of at most "
        f"(e^epsilon - 1 + 2 delta)/(e^epsilon + 1) = {bound:.3f} (delta 0)."
    )


def predicting_attack(evidence: Evidence) -> str:
    """Return the name of the attack whose probabilities of membership are shown."""
    names = [attack.name for attack in evidence.attacks]
    return plain("combined_pool" if "combined_pool" in names else "learned_outputs")


def calibration_words(evidence: Evidence) -> str:
    """Return whether predicted probabilities of membership came true; empty without any."""
    curve = evidence.calibration
    if curve is None:
        return ""
    inside = sum(b.observed.low <= b.predicted <= b.observed.high for b in curve.bins)
    total = len(curve.bins)
    where = f"all {total}" if inside == total else f"{inside} of {total}"
    agrees = curve.p_value > 0.01
    found = "agrees" if agrees else "sees a departure"
    joined = "and" if (inside == total) == agrees else "but"
    return (
        f"The diagonal, where predictions come true, lies inside the band in {where} bins, {joined} Spiegelhalter's test over all people "
        f"{found} ({p_words(curve.p_value)})."
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


def named_spreads(evidence: Evidence) -> tuple[GroupSpread, ...]:
    """Return the groups over models, of those that are large enough to be named for the product."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return ()
    names = {group.name for group in evidence.groups}
    return tuple(g for g in evidence.pool.disparity.groups if g.name in names)


def pairs_that_differ(evidence: Evidence) -> list[PairDifference]:
    """Return pairs of named groups with an adjusted p-value below 0.05, the surest first."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return []
    names = {spread.name for spread in named_spreads(evidence)}
    return sorted(
        (
            pair
            for pair in evidence.pool.disparity.pairs
            if pair.adjusted < ALARM and {pair.first, pair.second} <= names
        ),
        key=lambda pair: (pair.adjusted, -abs(pair.difference.value)),
    )


def disparity_words(evidence: Evidence, *, most: int) -> str:
    """Return whether groups differ over models, and which, naming some pairs; empty if they were not compared."""
    if evidence.pool is None or evidence.pool.disparity is None:
        return ""
    found = evidence.pool.disparity
    pairs = pairs_that_differ(evidence)
    seen = "differ" if found.p_value < ALARM else "do not clearly differ"
    weak = "; weak with few models" if pairs and found.p_value >= ALARM else ""
    whole = f"Over models the groups {seen} ({p_words(found.p_value)}, all groups at once{weak})."
    rule = (
        "without a correction"
        if found.correction == "none"
        else f"after {found.correction}'s correction"
    )
    if not pairs:
        return f"{whole} No pair differs {rule}."
    named = [
        f"{high} above {low} by {abs(pair.difference.value):.2f} ({p_words(pair.adjusted)})"
        for pair in pairs[:most]
        for high, low in [_ordered(pair)]
    ]
    more = f"; and {len(pairs) - most} more" if len(pairs) > most else ""
    return f"{whole} Pairs that differ {rule}: {'; '.join(named)}{more}."


def _ordered(pair: PairDifference) -> tuple[str, str]:
    if pair.difference.value >= 0:
        return pair.first, pair.second
    return pair.second, pair.first
