"""What the words of the report mean."""

from markupsafe import Markup

from reticent.report._dossier import Dossier
from reticent.report._markup import template
from reticent.report.words import capital

__all__ = ["GLOSSARY", "GlossarySection"]

GLOSSARY = {
    "member": "a record that the product was trained on (the defender's part). A non-member is a reserved record of the same source.",
    "LTU accuracy": "how often an attacker picks the member out of a pair of one member and one non-member; 0.5 is a coin, 1 is always right. Over all pairs it equals the area under the ROC curve (AUC).",
    "privacy score": "min(2 (1 - LTU accuracy), 1): at 1 an attacker does no better than a coin, at 0 it is always right. Higher is better.",
    "utility score": "what the product is good for: 0 is a guess, 1 is never wrong. Higher is better.",
    "individual privacy": "the privacy score of one person: how often an attacker who compares that person with all non-members is misled.",
    "TPR at FPR": "the share of members that an attack points out (true positives) when it may wrong a given share of non-members (false positives).",
    "interval": "the range in brackets holds the truth with the stated confidence; all intervals that the verdict rests on hold together.",
    "outsider": "somebody who can query the product and holds records, but does not know which of them trained it; if it is a network, the outsider also opens it and sees gradients and activations; with a pool, the outsider also knows the recipe and trains other models.",
    "insider": "the Leave-Two-Unlabeled attacker, who knows the recipe and every record's tag but two, and trains again.",
    "control": "a product whose answer is known: one that memorises must be caught, one trained on other records must not.",
    "blind baseline": "tests and classifiers that never see the product; if they can tell members from non-members, no attack can be judged.",
    "epsilon": "the parameter of differential privacy; attacks can only bound it from below.",
    "vulnerability": "true-positive rate minus false-positive rate of the attack's yes-or-no decisions; 0 is good, 1 is worst.",
    "worst case": "the vulnerability to the best adversary there can be who sees only certain things of an answer: how far apart members and non-members lie in them (total variation distance). 0 is good, 1 is worst. An adversary who sees more can do more.",
    "pool": "models trained by the product's recipe on random halves of the records, so that it is known for each which records trained it. Attacks learn from them how a member's answer looks; and as each can stand in for the product, they tell how much depends on the run.",
    "posterior": "the probability of membership that an attack gives one person; one half is not knowing.",
    "effective privacy loss": "how far the attack gets from not knowing about one person, as log-odds of membership, whichever way; 0 is good. Epsilon-differential privacy keeps it below epsilon for everybody.",
    "disparity": "a difference in vulnerability between groups; 0 is good. A p-value below 0.05, corrected for the number of pairs, marks a difference that chance hardly makes.",
    "box": "in a plot over models: half of the models lie inside the box, all of them on its line, and the bar in it is the median.",
}
_LIST = template(
    "<dl>{% for word, meaning in entries %}<dt>{{ word }}</dt><dd>{{ meaning }}</dd>{% endfor %}</dl>"
)


class GlossarySection:
    """Words that a reader may not know."""

    title = "Glossary"

    def html(self, dossier: Dossier) -> Markup:
        """Return the glossary; what utility means depends on the product."""
        definition = capital(dossier.evidence.utility.definition.rstrip("."))
        entries = GLOSSARY | {
            "utility score": f"{GLOSSARY['utility score']} {definition}."
        }
        return _LIST(entries=entries.items())

    def text(self, dossier: Dossier) -> None:
        """Return nothing: the page explains words."""
