"""Ask a model about people with every value in the place of a hidden one."""

from reticent.errors import ReticentError
from reticent.evidence import GuessedAttribute
from reticent.pipeline._case import Case, train_seed
from reticent.product import Product, as_product
from reticent.run import Run, content_of

__all__ = ["guess_attributes"]


def guess_attributes(
    case: Case, product: Product | None, run: Run
) -> tuple[GuessedAttribute, ...]:
    """Return how well hidden values of people are guessed; nothing if the product cannot be asked about changed records.

    Parameters
    ----------
    case : Case
        What is audited.
    product : Product or None
        The product; None if only its answers were kept by an interrupted run.
    run : Run
        Seed, store, time.
    """

    def guess() -> tuple[GuessedAttribute, ...]:
        if not case.kind.guesses_attributes or not run.effort.allows(0):
            return ()
        asked = product or _trained_again(case, run)
        if asked is None:
            return ()
        try:
            return case.kind.guess_attributes(
                asked,
                case.both,
                case.sides,
                level=case.plan.policy.confidence,
                rng=run.rng("attributes"),
            )
        except ReticentError:
            # It answers about the records that it was given, and about no others.
            return ()

    return run.keep(
        "attributes",
        tuple[GuessedAttribute, ...],
        guess,
        depends=case.content + content_of("attributes"),
    )


def _trained_again(case: Case, run: Run) -> Product | None:
    """Return the product whose answers were kept, trained once more; None if it would be another one."""
    trainer = case.plan.trainer
    if trainer is None or case.plan.cleaned or not trainer.repeatable:
        return None
    return as_product(trainer.train(case.split.defender, seed=train_seed(run.seed)))
