"""Sentences for people: what the numbers mean for those in the table."""

from reticent.evidence import Estimate, Evidence, InsiderEvidence
from reticent.policy import Decision, Policy, Verdict

__all__ = [
    "GLOSSARY",
    "LIMIT_WORDS",
    "POOL_NAMES",
    "insider_warning",
    "looks_inside",
    "outsider_does",
    "p_words",
    "percent",
    "plain",
    "summarise",
]

POOL_NAMES = ("lira", "lira_offline", "rmia", "shadow", "combined_pool")
LIMIT_WORDS = {
    "privacy": "privacy, outsider",
    "tpr_at_fpr": "members pointed out",
    "exposed": "exposed members",
    "group_privacy": "privacy, worst group",
    "insider_privacy": "privacy, insider",
    "utility": "utility",
    "claimed_epsilon": "claimed epsilon",
    "claim_refuted": "epsilon shown, against the claim",
    "training_refuted": "epsilon shown by watching, against the claim",
}


def percent(share: float) -> str:
    """Return a share as text: 0.001 is '0.1 %'.

    Examples
    --------
    >>> percent(0.001), percent(0.5), percent(0.9986)
    ('0.1 %', '50 %', '99.9 %')
    """
    number = 100 * share
    if number == 0 or abs(number) >= 99.95 or abs(number - round(number)) < 1e-9:
        return f"{number:.0f} %"
    return f"{number:.2g} %" if abs(number) < 1 else f"{number:.1f} %"


def p_words(p_value: float) -> str:
    """Return a p-value as text.

    Examples
    --------
    >>> p_words(0.0000123), p_words(0.0312), p_words(0.5)
    ('p < 0.001', 'p = 0.031', 'p = 0.5')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def plain(name: str) -> str:
    """Return an attack's name as words: 'combined_pool' is 'combined pool'."""
    return name.replace("_", " ")


def summarise(
    decision: Decision, evidence: Evidence, policy: Policy, *, people: str = "people"
) -> tuple[str, str]:
    """Return two sentences on what the verdict means for the people in the table."""
    accuracy = _accuracy(evidence)
    cases = f"{100 * accuracy.value:.0f} of 100 cases ({100 * accuracy.low:.0f} to {100 * accuracy.high:.0f})"
    shown = (
        "Shown one person whose record trained this model and one whose record did not, a stranger who "
        f"{outsider_does(evidence)} picks the right one in {cases}, where a coin gives 50."
    )
    if decision.verdict == Verdict.REFUSE:
        broken = [c.name for c in decision.limits if c.outcome == "broken"]
        outsider_broken = {"privacy", "tpr_at_fpr", "exposed", "group_privacy"} & set(
            broken
        )
        if outsider_broken:
            return shown, (
                f"That is more than the policy '{policy.name}' allows: releasing this model would tell strangers "
                f"who of the {people} in the table was in it, so it should stay where it is."
            )
        if "insider_privacy" in broken:
            return shown, (
                "But somebody on the inside who knows the recipe and all other records can tell by training again who "
                f"was in the table, and the policy '{policy.name}' protects the {people} in it against such insiders too."
            )
        return shown, (
            f"The policy '{policy.name}' refuses it for another reason: {_uncapital(decision.reasons[0])}"
        )
    if decision.verdict == Verdict.RELEASE:
        return shown, (
            f"No attack that was run tells strangers more about the {people} in the table than the policy "
            f"'{policy.name}' allows; attacks that were not run might, and only a mechanism's guarantee speaks of all."
        )
    return shown, (
        f"That is not enough to decide by the policy '{policy.name}': nobody can yet guarantee the {people} in the "
        "table that they are safe, nor say that they are not."
    )


def outsider_does(evidence: Evidence) -> str:
    """Return what the outsider of this audit did, in words."""
    names = [attack.name for attack in evidence.attacks]
    also = []
    if any(looks_inside(name) for name in names):
        also.append("looks inside it")
    if any(name in POOL_NAMES for name in names):
        also.append("trains others like it")
    if not also:
        return "only queries the model"
    return " and ".join([", ".join(["queries the model", *also[:-1]]), also[-1]])


def looks_inside(name: str) -> bool:
    """Whether an attack is one of somebody who opens the product.

    Examples
    --------
    >>> looks_inside("learned_white_box"), looks_inside("gradient_norm_output"), looks_inside("loss")
    (True, True, False)
    """
    return name == "learned_white_box" or name.startswith("gradient_norm")


def insider_warning(insider: InsiderEvidence | None) -> str:
    """Return what an insider could do, in words."""
    if insider is None:
        return (
            "The retraining insider was not played: nothing is known about somebody who has the recipe and all "
            "other records."
        )
    worst = min(insider.regimes, key=lambda regime: regime.privacy.value)
    right = f"{worst.wins:g} of {worst.rounds} rounds ({worst.name})"
    if worst.wins == worst.rounds:
        return (
            f"An insider who knows the recipe and every record but two tags told the member in {right}: retraining "
            "gives the product away, as for every deterministic trainer (Theorem 3 of the LTU paper); only "
            "randomness that nobody knows, such as privacy noise, protects against such a person."
        )
    return (
        f"An insider who knows the recipe and every record but two tags told the member in {right}: privacy score "
        f"{insider.privacy}."
    )


def _accuracy(evidence: Evidence) -> Estimate:
    """Return the accuracy of the best attack; never worse than a coin, as privacy is capped."""
    privacy = evidence.privacy
    return Estimate(
        value=1 - privacy.value / 2,
        low=1 - privacy.high / 2,
        high=1 - privacy.low / 2,
        level=privacy.level,
        method=privacy.method,
    )


def _uncapital(text: str) -> str:
    return text[0].lower() + text[1:]


GLOSSARY = {
    "member": "a record the product was trained on (the defender's part). A non-member is a reserved record of the same source.",
    "LTU accuracy": "how often an attacker picks the member out of a pair of one member and one non-member; 0.5 is a coin, 1 is always right. Over all pairs it equals the area under the ROC curve (AUC).",
    "privacy score": "min(2 (1 - LTU accuracy), 1): 1 is as good as a coin, 0 is none. Higher is better.",
    "utility score": "(c accuracy - 1)/(c - 1) for c classes: 0 is a uniform guess, 1 is never wrong. Higher is better.",
    "individual privacy": "the privacy score of one person: how often an attacker who compares that person with all non-members is misled.",
    "TPR at FPR": "the share of members an attack points out (true positives) when it may wrong that share of non-members (false positives).",
    "interval": "the range in brackets holds the truth with the stated confidence; all intervals the verdict rests on hold together.",
    "outsider": "somebody who can query the product and holds records, but does not know who of them trained it; if it is a network, also opens it and sees gradients and activations; with a pool, also knows the recipe and trains models of their own.",
    "insider": "the Leave-Two-Unlabeled attacker: knows the recipe and every record's tag but two, and trains again.",
    "control": "a product whose answer is known: one that memorises must be caught, one trained on other records must not.",
    "blind baseline": "a classifier that never sees the product; if it can tell members from non-members, no attack can be judged.",
    "epsilon": "the parameter of differential privacy; attacks can only bound it from below.",
    "vulnerability": "true-positive rate minus false-positive rate of the attack's yes-or-no decisions; 0 is good, 1 is worst.",
    "worst case": "the vulnerability to the best adversary there can be who sees only certain things of an answer: how far apart members and non-members lie in them (total variation distance). 0 is good, 1 is worst. An adversary who sees more can do more.",
    "pool": "models trained by the product's recipe on random halves of the records, so that it is known of each whom it was trained on. Attacks learn from them how a member's answer looks; and as each can stand in for the product, they tell how much depends on the run.",
    "posterior": "the probability of membership that an attack gives one person; one half is not knowing.",
    "effective privacy loss": "how far the attack gets from not knowing about one person, as log-odds of membership, whichever way; 0 is good. Epsilon-differential privacy keeps it below epsilon for everybody.",
    "disparity": "a difference in vulnerability between groups; 0 is good. A p-value below 0.05, corrected for the number of pairs, is a difference that chance hardly makes.",
    "box": "in a plot over models: half of the models lie inside the box, all of them on its line, and the bar in it is the median.",
}
