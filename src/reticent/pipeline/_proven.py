"""Work out again what a training guarantees, from what is said of it: numbers in a file are claims."""

import math
from dataclasses import dataclass, replace

from reticent.account import Guarantee, PrivateTraining, Relation, Terms, trade_off
from reticent.errors import InvalidInput
from reticent.pipeline._case import Case
from reticent.pipeline._train import KEPT_ASIDE, largest_unit
from reticent.product import Procedure, Watchable
from reticent.train import guarantee_of

__all__ = ["Proven", "prove_again"]

# Beyond, the privacy loss distribution takes minutes, and a file could keep an audit busy for days.
MOST_STEPS = 1_000_000
UNKNOWN = "the recipe of the training is not known to this audit"


@dataclass(frozen=True, kw_only=True)
class Proven:
    """What a training as it is described guarantees, worked out by this process.

    Parameters
    ----------
    epsilon : float or None
        At the delta and under the relation of the claim; None if nothing follows.
    by : str
        How it was worked out, or why nothing follows.
    guarantee : Guarantee or None
        The equivalent statements; None if nothing could be worked out.
    """

    epsilon: float | None = None
    by: str = UNKNOWN
    guarantee: Guarantee | None = None


def prove_again(stated: Guarantee, case: Case) -> Proven:
    """Return what follows from the recipe, or else from the noise, sampling and steps that are stated.

    Parameters
    ----------
    stated : Guarantee
        What is said. Of its numbers only those that describe the training are used.
    case : Case
        What is audited: the recipe, if there is one, and the number of members.
    """
    trainer = case.plan.trainer
    watchable = None if trainer is None else trainer.watching()
    members = len(case.split.defender)
    try:
        _must_be_known(stated.relation)
        of_table = None
        if trainer is not None:
            of_table = trainer.table_guarantee(case.split.defender, _terms(stated))
        if of_table is not None:
            # What a synthetic table guarantees depends on its columns.
            return _proven(
                _voided(of_table, stated),
                "privacy loss distribution of all parts of the recipe, worked out again for these columns",
            )
        if not case.kind.has_steps:
            return Proven()
        if trainer is not None and watchable is not None:
            if trainer.repeatable:
                return Proven(
                    by="the noise is drawn from a seed: whoever knows the seed can subtract it",
                    guarantee=_from_recipe(stated, watchable, case),
                )
            stated_rows = watchable.private.rows
            if stated_rows is not None and stated_rows != members:
                return _other_rows(stated_rows, members)
            return _proven(
                _from_recipe(stated, watchable, case),
                "privacy loss distribution of the recipe, worked out again",
            )
        procedure = None if trainer is None else trainer.procedure()
        if procedure is not None:
            # Several trainings, which one noise, one sampling rate and one number of steps do not describe.
            return _of_procedure(stated, procedure, case)
        return _proven(
            _from_numbers(stated),
            "privacy loss distribution of the noise, sampling and steps that are stated with it",
        )
    except InvalidInput as error:
        return Proven(by=f"it cannot be worked out: {str(error).rstrip('.')}")


def _of_procedure(stated: Guarantee, procedure: Procedure, case: Case) -> Proven:
    """Return what several trainings together guarantee, in the terms that are stated."""
    members = len(case.split.defender)
    for rows in procedure.stated_rows:
        if rows != members:
            return _other_rows(rows, members)
    _must_be_few(stated.steps)
    again = procedure.guarantee_on(
        members, _terms(stated), largest_unit=largest_unit(case.split.defender)
    )
    if again is None:
        return Proven(by="the recipe adds no noise, or chooses its targets without it")
    again = _voided(replace(again, public=(*again.public, KEPT_ASIDE)), stated)
    return _proven(
        again, "privacy loss distribution of the whole procedure, worked out again"
    )


def _other_rows(stated: int, members: int) -> Proven:
    return Proven(
        by=f"the recipe is for a table of {stated:,} rows, but {members:,} rows trained the product: it is not "
        "known to this audit how"
    )


def _terms(stated: Guarantee) -> Terms:
    return Terms(
        delta=stated.delta,
        relation=Relation(stated.relation),
        prior=stated.prior,
        fpr=stated.fpr,
    )


def _proven(again: Guarantee, by: str) -> Proven:
    if not again.holds:
        why = f"void: {'; '.join(again.caveats)}. Without that it would be {again.epsilon:.2f}"
        return Proven(by=why, guarantee=again)
    epsilon = again.epsilon if math.isfinite(again.epsilon) else None
    return Proven(epsilon=epsilon, by=by, guarantee=again)


def _from_recipe(stated: Guarantee, watchable: Watchable, case: Case) -> Guarantee:
    """Return what a recipe guarantees; it is void if the recipe or whoever trained the product says so."""
    rows = len(case.split.defender)
    _must_be_few(watchable.private.course(rows).steps)
    again = guarantee_of(
        watchable.private,
        rows=rows,
        terms=_terms(stated),
        largest_unit=largest_unit(case.split.defender),
    )
    return _voided(replace(again, public=(*again.public, KEPT_ASIDE)), stated)


def _voided(again: Guarantee, stated: Guarantee) -> Guarantee:
    """Return a guarantee that was worked out; it is void if whoever made the product says so."""
    if stated.holds:
        return again
    caveats = tuple(dict.fromkeys([*again.caveats, *stated.caveats]))
    return replace(again, holds=False, caveats=caveats)


def _from_numbers(stated: Guarantee) -> Guarantee:
    """Return what noise, sampling and steps guarantee, whatever is said of them beside."""
    _must_be_few(stated.steps)
    curve = trade_off(
        PrivateTraining(
            noise_multiplier=stated.noise_multiplier,
            sampling_rate=stated.sampling_rate,
            steps=stated.steps,
            relation=Relation(stated.relation),
        )
    )
    return replace(
        stated,
        epsilon=curve.epsilon(stated.delta),
        advantage=curve.advantage,
        belief=curve.belief(stated.delta, prior=stated.prior),
        tpr=curve.tpr(stated.fpr),
    )


def _must_be_known(relation: str) -> None:
    if relation not in list(Relation):
        raise InvalidInput(
            f"the relation {relation!r} is not known; use one of {', '.join(Relation)}."
        )


def _must_be_few(steps: int) -> None:
    if steps > MOST_STEPS:
        raise InvalidInput(
            f"{steps:,} steps are stated, and more than {MOST_STEPS:,} are not composed on a stranger's word."
        )
