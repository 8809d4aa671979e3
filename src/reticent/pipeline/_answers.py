"""The product's answers on every record, and answers that cannot depend on membership."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent._random import seed_for
from reticent.data import (
    Finding,
    Severity,
    Split,
    Table,
)
from reticent.pipeline._plan import AuditPlan
from reticent.pipeline._stages import Arrays, Stages
from reticent.product import FittedProduct, NetworkProduct, Predictor

__all__ = [
    "NULL_HALVES",
    "Answers",
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


def product_answers(
    split: Split, plan: AuditPlan, made: list[FittedProduct | NetworkProduct]
) -> Arrays:
    """Train the product, or take the one that was brought, and query it on every record."""
    product: Predictor
    started = time.perf_counter()
    if plan.product is not None:
        product = plan.product
    else:
        assert plan.trainer is not None
        product = plan.trainer.train(split.defender, seed=train_seed(plan.seed))
    seconds = time.perf_counter() - started if plan.product is None else 0.0
    if isinstance(product, FittedProduct | NetworkProduct):
        made.append(product)
    features = split.defender.join(split.reserved).features
    return {
        "outputs": product.outputs(features),
        "probabilities": product.predict_proba(features),
        "warnings": np.array(getattr(product, "warnings", ()), dtype=str),
        "exact": np.array(getattr(product, "has_probabilities", True)),
        "seconds": np.array(seconds),
    }


def answers_of(arrays: Arrays) -> Answers:
    return Answers(
        probabilities=np.asarray(arrays["probabilities"], dtype=np.float64),
        outputs=np.asarray(arrays["outputs"], dtype=np.float64),
        warnings=tuple(str(w) for w in arrays["warnings"]),
        exact=bool(arrays["exact"]),
        seconds=float(arrays["seconds"]),
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
) -> tuple[NDArray[np.float64], str, NDArray[np.int64] | None]:
    """Return answers that cannot depend on membership, and on which records.

    With a trainer and auxiliary records: those of a product trained on the latter. Else the
    product's own answers on the reserved part, of which one half is called members.
    """
    auxiliary = split.auxiliary
    if plan.trainer is not None and auxiliary is not None and _all_classes(auxiliary):
        trainer = plan.trainer

        def make() -> Arrays:
            product = trainer.train(auxiliary, seed=seed_for(plan.seed, "control"))
            features = split.defender.join(split.reserved).features
            return {"probabilities": product.predict_proba(features)}

        arrays = stages.get("control", content, make)
        probabilities = np.asarray(arrays["probabilities"], dtype=np.float64)
        return probabilities, "A product trained on unrelated records", None
    rows = np.arange(len(split.defender), len(split.defender) + len(split.reserved))
    return (
        answers.probabilities[rows],
        NULL_HALVES,
        rows,
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
