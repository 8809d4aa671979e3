"""From a target to the noise of a private recipe, and from the recipe to the guarantee of its product."""

import math
from dataclasses import replace
from typing import TypeVar

from reticent.account import (
    Composition,
    Failure,
    Gaussian,
    Group,
    Guarantee,
    Mechanism,
    PrivateTraining,
    Relation,
    Target,
    Terms,
    TradeOff,
    calibrate,
    trade_off,
)
from reticent.account.plan import rounded_up
from reticent.train.recipes import Private

__all__ = [
    "caveat_for_person",
    "guarantee_from",
    "guarantee_of",
    "parts_for_person",
    "proven_epsilon",
    "spent",
    "with_noise_for",
]

# Share of the whole budget, in units of 1 / noise, that learning the domain takes. Squares of these units add up, so the
# training loses only about a hundredth of its share.
DOMAIN_SHARE = 0.15
# Step of the privacy-loss grid for numbers that are shown while training or in a caveat: coarse, and rounded up.
GLANCE = 1e-3

Recipe = TypeVar("Recipe", bound=Private)


def with_noise_for(
    recipe: Recipe, target: Target, *, rows: int, delta: float, relation: Relation
) -> Recipe:
    """Return a recipe with the least noise that meets a target on a table with this number of rows.

    Parameters
    ----------
    recipe : Private
        The recipe, whose noise is replaced.
    target : Target
        What must hold.
    rows : int
        The public number of records, which the returned recipe states.
    delta : float
        The delta of the target; a hundredth of it is reserved for what the learned domain may betray.
    relation : Relation
        When tables are neighbours.
    """
    recipe = replace(recipe, rows=rows)
    if recipe.domain is None:
        whole = calibrate(
            target, lambda z: Gaussian(noise_multiplier=z, relation=relation)
        )
        recipe = replace(
            recipe,
            domain_noise=rounded_up(whole / DOMAIN_SHARE),
            domain_failure=float(f"{delta / 100:.3g}"),
        )

    def mechanism(noise: float) -> Mechanism:
        return replace(recipe, noise_multiplier=noise).mechanism(rows, relation)

    return replace(recipe, noise_multiplier=rounded_up(calibrate(target, mechanism)))


def guarantee_of(
    recipe: Private,
    *,
    rows: int,
    terms: Terms,
    largest_unit: int = 1,
) -> Guarantee:
    """Return what a private recipe guarantees about a product trained on this number of rows.

    Parameters
    ----------
    recipe : Private
        The training.
    rows : int
        Number of records that the product was trained on.
    terms : Terms
        Delta, relation, prior and false-positive rate at which it is stated.
    largest_unit : int
        Largest number of rows that one person has.
    """
    curve = trade_off(recipe.mechanism(rows, terms.relation))
    caveats = list(recipe.caveats())
    if largest_unit > 1:
        parts = parts_for_person(recipe, rows, terms.relation, largest_unit)
        caveats.append(caveat_for_person(parts, terms.delta, largest_unit))
    guarantee = guarantee_from(curve, recipe, rows=rows, terms=terms)
    public = guarantee.public
    if largest_unit > 1:
        public = (*public, "the largest number of rows that one person has")
    return replace(guarantee, caveats=tuple(caveats), public=public)


def guarantee_from(
    curve: TradeOff, recipe: Private, *, rows: int, terms: Terms
) -> Guarantee:
    """Return the guarantee of a recipe whose trade-off is known already.

    Parameters
    ----------
    curve : TradeOff
        What the mechanism guarantees.
    recipe : Private
        The training.
    rows : int
        Number of records that the product was trained on.
    terms : Terms
        Delta, relation, prior and false-positive rate at which it is stated.
    """
    delta, course = terms.delta, recipe.course(rows)
    public = [
        f"the number of rows ({recipe.rows or rows:,})",
        "names and kinds of the columns",
        "names of the classes",
        "the settings of the training, as long as they were not chosen by looking at these records",
        "the seed of the split and the versions of the libraries",
        "a keyed digest of the table, which says nothing without the owner's key",
    ]
    if recipe.domain is not None:
        public.append("the declared values of the columns")
    return Guarantee(
        mechanism=_words(recipe, course.steps),
        holds=recipe.noise == "secret",
        relation=terms.relation.value,
        epsilon=curve.epsilon(delta),
        delta=delta,
        noise_multiplier=recipe.noise_multiplier,
        sampling_rate=course.sampling_rate,
        steps=course.steps,
        advantage=curve.advantage,
        belief=curve.belief(delta, prior=terms.prior),
        prior=terms.prior,
        tpr=curve.tpr(terms.fpr),
        fpr=terms.fpr,
        caveats=recipe.caveats(),
        public=tuple(public),
    )


def proven_epsilon(
    recipe: Private,
    *,
    rows: int,
    delta: float,
    relation: Relation,
    local: bool = False,
    shuffled: bool = False,
) -> tuple[float | None, str]:
    """Return the epsilon that the steps of a recipe guarantee, or None if they guarantee nothing, and where it comes from.

    Parameters
    ----------
    recipe : Private
        The training.
    rows, delta, relation
        As in :func:`with_noise_for`.
    local : bool
        Whether the noise is scaled to the records themselves.
    shuffled : bool
        Whether batches are cut from a shuffled table.
    """
    if local:
        return None, (
            "noise scaled to the local sensitivity depends on the records, and its scale betrays them: empirical, not DP"
        )
    if shuffled:
        whole = PrivateTraining(
            noise_multiplier=recipe.noise_multiplier,
            sampling_rate=1.0,
            steps=recipe.epochs,
            relation=relation,
        )
        return trade_off(whole).epsilon(delta), (
            "a record takes part in one step of every epoch, and whoever knows the places of the other records knows in which: shuffling hides "
            "nothing from such an adversary"
        )
    epsilon = trade_off(recipe.steps(rows, relation)).epsilon(delta)
    clipping = recipe.clipping
    return epsilon, (
        f"privacy loss distribution of the steps; the bound on a record's share is that of {type(clipping).__name__}"
    )


def spent(
    recipe: Private, *, rows: int, delta: float, relation: Relation, steps: int
) -> float:
    """Return the epsilon that a training has spent after a number of steps, slightly rounded up."""
    return trade_off(
        recipe.mechanism(rows, relation, steps=steps), grid=GLANCE
    ).epsilon(delta)


def parts_for_person(
    recipe: Private, rows: int, relation: Relation, size: int
) -> tuple[tuple[Mechanism, int], ...]:
    """Return the mechanisms of a training for a person with several rows; nothing if only add/remove could account for it."""
    if relation != Relation.ADD_REMOVE:
        return ()
    parts: list[tuple[Mechanism, int]] = [
        (Group(mechanism=recipe.steps(rows, relation), size=size), 1)
    ]
    if recipe.domain is None:
        learned = Gaussian(noise_multiplier=recipe.domain_noise / size)
        alone = Failure(probability=min(size * recipe.domain_failure, 0.5))
        parts += [(learned, 1), (alone, 1)]
    return tuple(parts)


def caveat_for_person(
    parts: tuple[tuple[Mechanism, int], ...], delta: float, size: int
) -> str:
    """Return a sentence on what a guarantee means for a person with several rows, given the mechanisms for such a person."""
    start = f"the guarantee is about one row, and a person has up to {size}"
    if not parts:
        return f"{start}: such a person is protected less"
    epsilon = trade_off(Composition(parts=parts), grid=GLANCE).epsilon(delta)
    stated = f"{epsilon:.2f}" if math.isfinite(epsilon) else "infinite"
    return f"{start}: for such a person epsilon is {stated} at the same delta"


def _words(recipe: Private, steps: int) -> str:
    clipping = type(recipe.clipping).__name__
    words = (
        f"DP-SGD: {steps:,} steps on Poisson samples of {recipe.batch:,} records on average, gradients clipped by {clipping}, normal "
        f"noise of {recipe.noise_multiplier:g} times their bound"
    )
    if recipe.domain is None:
        words += f"; values of the columns learned with noise of {recipe.domain_noise:g} times the sensitivity"
    return words
