"""What a file claims: guarantees are worked out again, for the whole procedure, nothing is trained because a file says so, and what it says against its product counts."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from reticent.audits import CLASSIFIER
from reticent.data import builtin_table
from reticent.errors import InvalidSpec
from reticent.pipeline import divide
from reticent.pipeline._claims import Claims
from reticent.pipeline._proven import prove_again
from reticent.product import Provenance
from reticent.train import PerRecord, PrivateNetwork, SoftLabels, parse_claimed, spell

RECIPE = PrivateNetwork(hidden=(4,), epochs=1, batch=64, noise_multiplier=2.0)
SPLIT = divide(builtin_table(), seed=0)
ROWS = len(SPLIT.defender)


@dataclass(frozen=True)
class Audited:
    """The parts of a case that are looked at."""

    plan: Any
    split: Any = SPLIT
    kind: Any = CLASSIFIER


def case_of(trainer):
    return Audited(plan=SimpleNamespace(trainer=trainer))


def test_the_epsilon_of_the_procedure_is_worked_out_again():
    trainer = parse_claimed(spell(SoftLabels(RECIPE, folds=2, repeats=2)))
    stated = trainer.guarantee(ROWS)
    proven = prove_again(stated, case_of(trainer))
    assert proven.epsilon == pytest.approx(stated.epsilon)
    assert "whole procedure" in proven.by
    # Whoever writes the student's numbers beside it is not believed.
    student = trainer.inner.guarantee(ROWS)
    assert student.epsilon < stated.epsilon / 1.5
    bold = prove_again(student, case_of(trainer))
    assert bold.epsilon == pytest.approx(stated.epsilon)
    # At another delta it is another number, and void stays void.
    later = prove_again(replace(stated, delta=1e-6), case_of(trainer))
    assert later.epsilon > proven.epsilon
    assert prove_again(replace(stated, holds=False), case_of(trainer)).epsilon is None


def test_numbers_without_a_recipe_prove_no_more_than_the_recipe():
    trainer = parse_claimed(spell(SoftLabels(RECIPE, folds=2, repeats=2)))
    stated = trainer.guarantee(ROWS)
    by_numbers = prove_again(stated, case_of(None))
    learned = replace(RECIPE, domain_noise=1e6)  # the domain is not in these numbers
    free = parse_claimed(spell(SoftLabels(learned, folds=2, repeats=2)))
    assert by_numbers.epsilon >= free.guarantee(ROWS).epsilon


def test_a_recipe_for_another_number_of_rows_proves_nothing():
    other = SoftLabels(replace(RECIPE, rows=ROWS + 1), folds=2, repeats=2)
    trainer = parse_claimed(spell(other))
    proven = prove_again(trainer.guarantee(ROWS), case_of(trainer))
    assert proven.epsilon is None
    assert "rows trained the product" in proven.by
    by_median = parse_claimed(spell(replace(other, alpha=PerRecord(), trainer=RECIPE)))
    stated = by_median.inner.guarantee(ROWS)
    assert prove_again(stated, case_of(by_median)).epsilon is None


@pytest.mark.parametrize(
    "text",
    [
        "reticent.SoftLabels(reticent.Network(hidden=(4,)))",
        "reticent.SoftLabels('mine:make')",
        "reticent.SoftLabels(sklearn.tree.DecisionTreeClassifier())",
        "reticent.SoftLabels(reticent.PrivateNetwork(), teacher='mine:make')",
        "reticent.SoftLabels(reticent.PrivateNetwork(), folds='5')",
        "reticent.SoftLabels(reticent.PrivateNetwork(domain='secrets.toml'))",
        "reticent.SoftLabels(reticent.PrivateNetwork(hidden=(9000,)), repeats=100)",
    ],
)
def test_what_a_file_names_beside_private_networks_is_not_made(text):
    with pytest.raises(InvalidSpec, match=r"not (run|done) because a file"):
        parse_claimed(text)


@pytest.mark.parametrize(
    ("contradicted", "here", "counts"),
    [(True, False, True), (False, False, False), (False, True, True)],
)
def test_a_file_about_the_training_can_only_speak_against_its_product(
    contradicted, here, counts
):
    """What this audit watched counts in any case; a file in the folder may be a stranger's."""
    watched = SimpleNamespace(contradicted=contradicted)
    claims = Claims(provenance=Provenance(), watched=watched, watched_here=here)
    assert claims.training_counts == counts
