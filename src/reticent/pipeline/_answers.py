"""The product's answers on every record, and answers that cannot depend on membership."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.data import (
    Finding,
    Severity,
    Split,
    Table,
)
from reticent.pipeline._plan import AuditPlan
from reticent.pipeline._stages import Arrays, Stages
from reticent.product import (
    Internals,
    Openable,
    Predictor,
    Product,
)
from reticent.run import seed_for

__all__ = [
    "NULL_HALVES",
    "Answers",
    "Null",
    "answers_of",
    "null_answers",
    "product_answers",
    "product_seed",
    "train_seed",
    "training_findings",
]


NULL_HALVES = "One half of the non-members, set against the other,"


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The product's answers on members, then non-members, and how long it took to train it."""

    probabilities: NDArray[np.float64]
    outputs: NDArray[np.float64]
    warnings: tuple[str, ...]
    exact: bool
    seconds: float
    internals: Internals | None


@dataclass(frozen=True, kw_only=True)
class Null:
    """Answers that cannot depend on membership.

    Parameters
    ----------
    probabilities : array of float, shape (n, c)
        The answers.
    internals : Internals or None
        What is inside the product that gave them, if it can be opened.
    what : str
        What it is, for the report.
    rows : array of int or None
        The records; None for all.
    """

    probabilities: NDArray[np.float64]
    internals: Internals | None = None
    what: str
    rows: NDArray[np.int64] | None


def product_answers(split: Split, plan: AuditPlan, made: list[Product]) -> Arrays:
    """Train the product, or take the one that was brought, and query it on every record."""
    product: Predictor
    started = time.perf_counter()
    if plan.product is not None:
        product = plan.product
    else:
        assert plan.trainer is not None
        product = plan.trainer.train(split.defender, seed=train_seed(plan.seed))
    seconds = time.perf_counter() - started if plan.product is None else 0.0
    if isinstance(product, Product):
        made.append(product)
    both = split.defender.join(split.reserved)
    features = both.features
    return {
        "outputs": product.outputs(features),
        "probabilities": product.predict_proba(features),
        "warnings": np.array(getattr(product, "warnings", ()), dtype=str),
        "exact": np.array(getattr(product, "has_probabilities", True)),
        "seconds": np.array(seconds),
        **_internals(product, both),
    }


def answers_of(arrays: Arrays) -> Answers:
    return Answers(
        probabilities=np.asarray(arrays["probabilities"], dtype=np.float64),
        outputs=np.asarray(arrays["outputs"], dtype=np.float64),
        warnings=tuple(str(w) for w in arrays["warnings"]),
        exact=bool(arrays["exact"]),
        seconds=float(arrays["seconds"]),
        internals=_opened(arrays),
    )


def _internals(product: Predictor, table: Table) -> Arrays:
    """Return what is inside a product at the records of a table, if it can be opened."""
    if not isinstance(product, Openable):
        return {}
    seen = product.internals(table.features, table.target)
    return {
        "losses": seen.losses,
        "gradient_norms": seen.gradient_norms,
        "layers": np.array(seen.layers, dtype=str),
        "activations": seen.activations,
    }


def _opened(arrays: Arrays) -> Internals | None:
    if "losses" not in arrays:
        return None
    return Internals(
        losses=np.asarray(arrays["losses"], dtype=np.float64),
        gradient_norms=np.asarray(arrays["gradient_norms"], dtype=np.float64),
        layers=tuple(str(name) for name in arrays["layers"]),
        activations=np.asarray(arrays["activations"], dtype=np.float32),
    )


def training_findings(answers: Answers) -> list[Finding]:
    made = [
        Finding(
            name="trainer_warning",
            severity=Severity.NOTE,
            text=f"{warning}."
            if " " in warning
            else f"the trainer gave a {warning}; run it outside reticent to read it.",
        )
        for warning in answers.warnings[:3]
    ]
    if not answers.exact:
        made.append(
            Finding(
                name="decision_values",
                severity=Severity.NOTE,
                text="the product gives decision values, no probabilities; they were turned into probabilities "
                "by the logistic function, which keeps their order.",
            )
        )
    return made


def null_answers(
    split: Split,
    plan: AuditPlan,
    answers: Answers,
    content: tuple[str, ...],
    stages: Stages,
) -> Null:
    """Return answers that cannot depend on membership, and on which records.

    With a trainer and auxiliary records: those of a product trained on the latter. Else, or if the product can be opened and
    that one cannot or has other layers, the product's own answers on the reserved part, of which one half is called members.
    """
    auxiliary = split.auxiliary
    if plan.trainer is not None and auxiliary is not None and _all_classes(auxiliary):
        trainer = plan.trainer

        def make() -> Arrays:
            product = trainer.train(auxiliary, seed=seed_for(plan.seed, "control"))
            both = split.defender.join(split.reserved)
            opened = {} if answers.internals is None else _internals(product, both)
            return {**opened, "probabilities": product.predict_proba(both.features)}

        arrays = stages.get("control", content, make)
        opened, own = _opened(arrays), answers.internals
        if own is None or (opened is not None and opened.layers == own.layers):
            return Null(
                probabilities=np.asarray(arrays["probabilities"], dtype=np.float64),
                internals=opened,
                what="A product trained on unrelated records",
                rows=None,
            )
    rows = np.arange(len(split.defender), len(split.defender) + len(split.reserved))
    return Null(
        probabilities=answers.probabilities[rows],
        internals=None if answers.internals is None else answers.internals.take(rows),
        what=NULL_HALVES,
        rows=rows,
    )


def _all_classes(table: Table) -> bool:
    return len(np.unique(table.target)) == len(table.classes)


def train_seed(seed: int) -> int:
    """Return the seed the product is trained with."""
    return seed_for(seed, "train")


def product_seed(plan: AuditPlan) -> int:
    """Return the seed of the run that trained the product, as far as it is known."""
    if plan.product is not None and plan.provenance.seed is not None:
        return plan.provenance.seed
    return plan.seed
