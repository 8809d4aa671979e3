"""What a training says about itself, and answers that cannot depend on membership."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.audits import Answers
from reticent.data import Finding, Severity
from reticent.pipeline._begin import Begun
from reticent.pipeline._case import Case
from reticent.product import Product
from reticent.run import Run

__all__ = ["Null", "ask_null", "training_findings"]

# Warnings of a trainer that the report repeats, which is no log.
MOST_WARNINGS = 3
FRESH = "A table of people who are neither members nor non-members"
NULL_HALVES = "One half of the non-members, set against the other,"


@dataclass(frozen=True, kw_only=True)
class Null:
    """Answers that cannot depend on membership.

    Parameters
    ----------
    answers : Answers
        The answers.
    what : str
        What gave them, for the report.
    rows : array of int or None
        The records that were asked about; None for all.
    product : Product or None
        What gave them, if it is another product that was trained just now.
    """

    answers: Answers
    what: str
    rows: NDArray[np.int64] | None
    product: Product | None = None


def training_findings(answers: Answers, *, is_released: bool) -> tuple[Finding, ...]:
    """Return the warnings of the training, what could not be cleaned, and a note if probabilities had to be made from decision values."""
    findings = [
        Finding(
            name="trainer_warning",
            severity=Severity.NOTE,
            text=f"{warning}."
            if " " in warning
            else f"the trainer gave a {warning}; run it outside reticent to read it.",
        )
        # A bare class name is all that is known of a foreign warning: its message could quote cells of the table.
        for warning in answers.warnings[:MOST_WARNINGS]
    ]
    if answers.kept:
        findings.append(
            Finding(
                name="not_cleaned",
                # Where only answers are released, nobody gets the file.
                severity=Severity.OPEN if is_released else Severity.WARNING,
                text=f"the product holds something of single people that could not be taken out: {'; '.join(answers.kept)}. Train a recipe that keeps "
                "nothing of the kind.",
            )
        )
    if not answers.exact:
        findings.append(
            Finding(
                name="decision_values",
                severity=Severity.NOTE,
                text="the product gives decision values, no probabilities; they were turned into probabilities "
                "by the logistic function, which keeps their order.",
            )
        )
    return tuple(findings)


def ask_null(case: Case, begun: Begun, run: Run) -> Null:
    """Return answers that cannot depend on membership.

    With a trainer and auxiliary records, these are the answers of a product trained on the latter. Otherwise, or if the product
    can be opened and that one cannot or has other layers, they are the product's answers on the reserved part, of which one half
    is called members.
    """
    answers, auxiliary = begun.answers, case.split.auxiliary
    if begun.unrelated is not None:
        unrelated = _with_strangers_critic(begun.unrelated, answers, run)
        control, product = unrelated.internals, answers.internals
        # An attack on layers that the control lacks could not be run on it, and so would go unchecked.
        if product is None or (
            control is not None and control.layers == product.layers
        ):
            return Null(
                answers=unrelated
                if product is not None
                else replace(unrelated, internals=None),
                what="A product trained on unrelated records",
                rows=None,
                product=begun.control,
            )
    fresh = None
    if auxiliary is not None:
        fresh = case.kind.unrelated(case.split, rng=run.rng("control/fresh"))
    if fresh is not None:
        unrelated = run.keep(
            "control/fresh",
            Answers,
            lambda: case.kind.ask(fresh, case.both),
            depends=case.content,
        )
        unrelated = _with_strangers_critic(unrelated, answers, run)
        return Null(answers=unrelated, what=FRESH, rows=None, product=fresh)
    # Neither half was trained on, so whatever tells them apart is not membership.
    rows = np.flatnonzero(~case.sides.tags)
    return Null(answers=answers.take(rows), what=NULL_HALVES, rows=rows)


def _with_strangers_critic(unrelated: Answers, answers: Answers, run: Run) -> Answers:
    """Return the control's answers with a critic that says of each record what the product's critic says of another."""
    if answers.critic is None:
        return unrelated
    dealt = run.rng("control/critic").permutation(answers.critic)
    return replace(unrelated, critic=dealt)
