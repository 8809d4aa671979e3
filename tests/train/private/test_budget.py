"""The noise of a recipe meets its target, and the guarantee says what the whole recipe guarantees."""

from dataclasses import replace

import pytest

from reticent.account import (
    Budget,
    MaxAdvantage,
    MaxPosterior,
    Relation,
    Terms,
    trade_off,
)
from reticent.train import (
    PrivateModule,
    PrivateNetwork,
    guarantee_of,
    parse_clipping,
    parse_trainer,
    spell,
    spent,
    with_noise_for,
)
from reticent.train.private.clipping import TanhThenClip
from reticent.train.recipes import SGD

ROWS, DELTA = 5000, 1e-5


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize(
    "target",
    [
        Budget(epsilon=2.0, delta=DELTA),
        MaxPosterior(belief=0.9, failure=DELTA),
        MaxAdvantage(advantage=0.2),
    ],
)
@pytest.mark.parametrize("domain", [None, "domain.toml"])
def test_noise_meets_the_target_and_a_little_less_does_not(target, relation, domain):
    recipe = PrivateNetwork(batch=256, epochs=10, domain=domain)
    made = with_noise_for(recipe, target, rows=ROWS, delta=DELTA, relation=relation)
    assert target.excess(trade_off(made.mechanism(ROWS, relation))) <= 0
    less = replace(made, noise_multiplier=0.99 * made.noise_multiplier)
    assert target.excess(trade_off(less.mechanism(ROWS, relation))) > 0
    assert made.rows == ROWS


def test_learning_the_domain_is_paid_for_and_costs_little():
    recipe = PrivateNetwork(batch=256, epochs=10)
    target = Budget(epsilon=2.0, delta=DELTA)
    both = [
        with_noise_for(r, target, rows=ROWS, delta=DELTA, relation=Relation.ADD_REMOVE)
        for r in (recipe, replace(recipe, domain="domain.toml"))
    ]
    ratio = both[0].noise_multiplier / both[1].noise_multiplier
    assert 1.005 < ratio < 1.05


def test_promise_counts_everything_that_was_released():
    recipe = PrivateNetwork(batch=256, epochs=10, noise_multiplier=1.5)
    given = {"rows": ROWS, "terms": Terms(delta=DELTA)}
    whole = guarantee_of(recipe, **given)
    steps = trade_off(recipe.steps(ROWS, Relation.ADD_REMOVE)).epsilon(DELTA)
    assert whole.holds
    assert whole.epsilon > steps
    declared = guarantee_of(replace(recipe, domain="domain.toml"), **given)
    assert declared.epsilon == pytest.approx(steps)
    assert any("declared" in words for words in declared.public)
    noisier = guarantee_of(replace(recipe, noise_multiplier=3.0), **given)
    assert noisier.epsilon < whole.epsilon
    assert noisier.belief < whole.belief
    assert noisier.advantage < whole.advantage


def test_seeded_noise_promises_nothing():
    recipe = PrivateNetwork(noise="seeded")
    guarantee = guarantee_of(recipe, rows=ROWS, terms=Terms(delta=DELTA))
    assert not guarantee.holds
    assert "no guarantee" in guarantee.caveats[0]


def test_a_person_with_several_rows_is_told_their_own_epsilon():
    recipe = PrivateNetwork(batch=256, epochs=10, noise_multiplier=2.0)
    given = {"rows": ROWS, "terms": Terms(delta=DELTA)}
    one = guarantee_of(recipe, **given)
    three = guarantee_of(recipe, **given, largest_unit=3)
    assert not one.caveats
    assert three.epsilon == one.epsilon
    theirs = float(three.caveats[0].split("epsilon is ")[1].split()[0])
    assert theirs > 2 * one.epsilon


def test_what_was_spent_grows_to_the_whole():
    recipe = PrivateNetwork(batch=256, epochs=10, noise_multiplier=1.5)
    given = {"rows": ROWS, "delta": DELTA, "relation": Relation.ADD_REMOVE}
    steps = recipe.course(ROWS).steps
    so_far = [spent(recipe, **given, steps=k) for k in (1, steps // 2, steps)]
    assert so_far == sorted(so_far)
    whole = guarantee_of(recipe, rows=ROWS, terms=Terms(delta=DELTA))
    assert so_far[-1] == pytest.approx(whole.epsilon, rel=0.02)


def test_a_spelled_recipe_is_read_back():
    recipe = PrivateNetwork(
        hidden=(16, 8),
        optimiser=SGD(rate=2.0),
        clipping=TanhThenClip(width=0.5, norm=2.0),
        noise_multiplier=1.5,
        rows=100,
    )
    assert parse_trainer(spell(recipe)).network == recipe


def test_only_treatments_are_treatments():
    assert parse_clipping("reticent.TanhThenClip(norm=2.0)") == TanhThenClip(norm=2.0)
    with pytest.raises(ValueError, match="bounds no gradient"):
        parse_clipping("reticent.SGD()")


def test_a_module_of_the_user_is_taken_at_its_word_and_that_is_said():
    recipe = PrivateModule("nets:make", batch=256)
    guarantee = guarantee_of(recipe, rows=ROWS, terms=Terms(delta=DELTA))
    assert guarantee.holds
    assert "code of the user" in guarantee.caveats[0]
