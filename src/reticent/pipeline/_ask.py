"""Train the product, or take it as given, and record its answers; do the same for a product that cannot know the members."""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent.audits import Answers
from reticent.data import Finding, Severity, Table
from reticent.pipeline._case import Case, train_seed
from reticent.pipeline._clean import secret
from reticent.product import Product, as_product, clean_product
from reticent.run import Run

__all__ = ["Null", "ask_null", "ask_product", "training_findings"]

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


def ask_product(case: Case, run: Run) -> tuple[Answers, Product | None]:
    """Return the product's answers on members, then non-members, and the product.

    The product is None if its answers were kept by an earlier run that was interrupted.
    """
    plan = case.plan
    trained: list[Product] = []
    run.tell("training the product", 0, 2)

    def train_and_ask() -> Answers:
        if plan.product is not None:
            return case.kind.ask(plan.product, case.both)
        assert plan.trainer is not None
        started = time.perf_counter()
        product = as_product(
            plan.trainer.train(case.split.defender, seed=train_seed(run.seed))
        )
        # Only the training is timed, not the queries: pool and insider plan their trainings by it.
        seconds = time.perf_counter() - started
        notes: tuple[str, ...] = ()
        as_trained = None
        if plan.cleaned:
            # What the insider's training again is compared with; it is not cleaned.
            as_trained = case.kind.ask(product, case.both, looks_inside=False).outputs
            product, note = _cleaned(product, case.split.defender)
            notes = (note,)
        trained.append(product)
        answers = case.kind.ask(product, case.both)
        return replace(
            answers,
            seconds=seconds,
            warnings=(*notes, *answers.warnings),
            as_trained=as_trained,
        )

    answers = run.keep("answers", Answers, train_and_ask, depends=case.content)
    run.tell("training the product", 1, 2)
    return answers, plan.product or (trained[0] if trained else None)


def _cleaned(product: Product, members: Table) -> tuple[Product, str]:
    """Return the product without what its file need not tell, and what was done in one sentence."""
    cleaned = clean_product(product, members, rng=secret())
    done = "; ".join(str(entry) for entry in cleaned.done) or "nothing"
    kept = "; ".join(str(entry) for entry in cleaned.kept)
    note = f"the product was cleaned before it was attacked ({done}), and {cleaned.changed}"
    return cleaned.product, note + (f"; could not be cleaned: {kept}" if kept else "")


def training_findings(answers: Answers) -> tuple[Finding, ...]:
    """Return the warnings of the training, and a note if probabilities had to be made from decision values."""
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


def ask_null(case: Case, answers: Answers, run: Run) -> Null:
    """Return answers that cannot depend on membership.

    With a trainer and auxiliary records, these are the answers of a product trained on the latter. Otherwise, or if the product
    can be opened and that one cannot or has other layers, they are the product's answers on the reserved part, of which one half
    is called members.
    """
    trainer, auxiliary = case.plan.trainer, case.split.auxiliary
    if (
        trainer is not None
        and auxiliary is not None
        and case.kind.can_learn_from(auxiliary)
    ):
        trained: list[Product] = []

        def train_and_ask() -> Answers:
            seed = run.seed_for("control")
            trained.append(as_product(trainer.train(auxiliary, seed=seed)))
            looks_inside = answers.internals is not None
            return case.kind.ask(trained[0], case.both, looks_inside=looks_inside)

        unrelated = run.keep("control", Answers, train_and_ask, depends=case.content)
        unrelated = _with_strangers_critic(unrelated, answers, run)
        run.tell("training the product", 2, 2)
        control, product = unrelated.internals, answers.internals
        # An attack on layers that the control lacks could not be run on it, and so would go unchecked.
        if product is None or (
            control is not None and control.layers == product.layers
        ):
            return Null(
                answers=unrelated,
                what="A product trained on unrelated records",
                rows=None,
                product=trained[0] if trained else None,
            )
    run.tell("training the product", 2, 2)
    fresh = None
    if auxiliary is not None:
        fresh = case.kind.unrelated(case.split, rng=run.rng("control/fresh"))
    if fresh is not None:
        unrelated = run.keep(
            "control",
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
