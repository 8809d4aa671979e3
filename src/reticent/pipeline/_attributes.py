"""Ask a model about people with every value in the place of a hidden one."""

from reticent.errors import ReticentError
from reticent.evidence import GuessedAttribute
from reticent.pipeline._case import Case
from reticent.product import Product
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
        if product is None or not run.effort.allows(0):
            return ()
        try:
            return case.kind.guess_attributes(
                product,
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
