"""Targets of soft labels against a second, naive implementation, record by record and teacher by teacher."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.data import builtin_table
from reticent.errors import InvalidInput
from reticent.run import stream
from reticent.train.soft import (
    PerRecord,
    RepairedLabels,
    SoftLabels,
    Validated,
    leave_out,
    mixed_targets,
    repaired_targets,
    shift_alphas,
    shifted_targets,
)
from reticent.train.soft.folds import folds_of, teaching_masks

FLOOR = 1e-3


def school(seed, records=30, classes=3, teachers=12):
    """Return answers of teachers, who was taught what, and labels."""
    rng = stream(seed, "soft/school")
    answers = rng.dirichlet(np.ones(classes), size=(teachers, records))
    taught = rng.random((teachers, records)) < 0.5
    taught[:2], taught[2:4] = False, True  # two of each at least
    return answers, taught, rng.integers(classes, size=records)


def naive_statistics(answers, taught, labels, i):
    """Mean, spread and shift of one record, in plain Python."""
    inside, out = [], []
    for t in range(len(answers)):
        logits = [math.log(max(p, FLOOR)) for p in answers[t, i]]
        centre = sum(logits) / len(logits)
        (inside if taught[t, i] else out).append([x - centre for x in logits])
    classes = range(answers.shape[2])
    mean = [sum(x[k] for x in out) / len(out) for k in classes]
    spread = [
        math.sqrt(sum((x[k] - mean[k]) ** 2 for x in out) / (len(out) - 1))
        for k in classes
    ]
    label = labels[i]
    moved = sum(x[label] for x in inside) / len(inside) - mean[label]
    return mean, spread, moved / spread[label]


def naive_target(mean, spread, label, alpha):
    raised = [
        math.exp(m + (alpha if k == label else -alpha) * s)
        for k, (m, s) in enumerate(zip(mean, spread, strict=True))
    ]
    return [r / sum(raised) for r in raised]


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0, 3.0])
def test_targets_equal_those_of_plain_loops(alpha, seed):
    answers, taught, labels = school(seed)
    said = leave_out(answers, taught, labels, floor=FLOOR)
    targets, mixtures = (
        shifted_targets(said, alpha),
        mixed_targets(said, min(alpha, 1)),
    )
    for i, label in enumerate(labels):
        mean, spread, shift = naive_statistics(answers, taught, labels, i)
        assert said.shift[i] == pytest.approx(shift)
        assert targets[i] == pytest.approx(naive_target(mean, spread, label, alpha))
        average = answers[~taught[:, i], i].mean(axis=0)
        hard = np.eye(3)[label]
        assert mixtures[i] == pytest.approx(
            min(alpha, 1) * hard + (1 - min(alpha, 1)) * average
        )
    assert np.allclose(targets.sum(axis=1), 1)
    # The twin: teachers that saw the record give another target.
    wrong = leave_out(answers, ~taught, labels, floor=FLOOR)
    assert abs(shifted_targets(wrong, alpha) - targets).max() > 0.05


def test_alpha_counts_standard_deviations_and_a_mixture_of_one_is_the_label(seed):
    said = leave_out(*school(seed), floor=FLOOR)
    rows = np.arange(len(said))
    labelled = [shifted_targets(said, a)[rows, said.labels] for a in (0, 0.5, 1, 5)]
    for low, high in itertools.pairwise(labelled):
        assert (high > low).all()
    assert (mixed_targets(said, 1.0) == said.one_hot()).all()
    assert (shifted_targets(said, 1.0)[rows, said.labels] < 0.999).any()


def test_a_constant_added_to_all_logits_of_a_teacher_changes_nothing(seed):
    """Without the centring its spread would enter every target."""
    rng = stream(seed, "soft/constant")
    logits = rng.normal(size=(6, 8, 3))
    moved = logits + rng.normal(scale=3.0, size=(6, 8, 1))
    taught = np.zeros((6, 8), dtype=bool)
    labels = rng.integers(3, size=8)
    plain, other = (
        # Unnormalised on purpose: scaled so that nothing reaches the floor or 1.
        leave_out(np.exp(z - 20), taught, labels, floor=1e-30)
        for z in (logits, moved)
    )
    assert np.allclose(plain.mean, other.mean)
    assert np.allclose(plain.deviation, other.deviation)


def test_blocks_of_records_change_nothing(seed, monkeypatch):
    answers, taught, labels = school(seed)
    whole = leave_out(answers, taught, labels, floor=FLOOR)
    monkeypatch.setattr("reticent.train.soft.targets.BLOCK", 7)
    parts = leave_out(answers, taught, labels, floor=FLOOR)
    assert np.array_equal(whole.mean, parts.mean)
    assert np.array_equal(whole.shift, parts.shift)


def test_a_quantity_moves_towards_its_value_and_never_beyond(seed):
    rng = stream(seed, "soft/quantity")
    answers = rng.normal(size=(8, 20, 1))
    taught = np.zeros((8, 20), dtype=bool)
    values = rng.normal(scale=3.0, size=20)
    said = leave_out(answers, taught, values, floor=FLOOR)
    for alpha in (0.0, 0.5, 100.0):
        for i, y in enumerate(values):
            column = answers[:, i, 0]
            mu, sd = column.mean(), column.std(ddof=1)
            expected = mu + math.copysign(min(abs(y - mu), alpha * sd), y - mu)
            assert shifted_targets(said, alpha)[i, 0] == pytest.approx(expected)
    assert np.allclose(mixed_targets(said, 0.25)[:, 0], 0.25 * values + 0.75 * said.mean[:, 0])  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(-5, 50), min_size=1, max_size=20),
    st.floats(0.1, 3),
    st.floats(0.1, 2),
)
def test_the_shift_rule(shifts, most, tau):
    answers, taught, labels = school(0, records=len(shifts))
    said = leave_out(answers, taught, labels, floor=FLOOR)
    object.__setattr__(said, "shift", np.array(shifts))
    alphas = shift_alphas(said, most=most, tau=tau)
    middle = float(np.median(shifts))
    for alpha, shift in zip(alphas, shifts, strict=True):
        expected = most
        if middle > 0 and shift > 0:
            expected = min(most, tau * middle / shift)
        assert alpha == pytest.approx(expected)
    fixed = shift_alphas(said, most=most, tau=tau, reference=2.0)
    for alpha, shift in zip(fixed, shifts, strict=True):
        assert alpha == pytest.approx(min(most, tau * 2 / shift) if shift > 0 else most)


def test_permuted_alphas_give_other_targets(seed):
    said = leave_out(*school(seed), floor=FLOOR)
    alphas = shift_alphas(said, most=1.0, tau=0.5, reference=1.0)
    assert alphas.min() < 0.5 < alphas.max()
    permuted = stream(seed, "soft/permuted").permutation(alphas)
    apart = abs(shifted_targets(said, alphas) - shifted_targets(said, permuted))
    assert apart.max() > 0.01
    rule = SoftLabels("LogisticRegression()", alpha=PerRecord(reference=1.0))
    assert np.array_equal(rule.targets(said), shifted_targets(said, alphas))


def test_repair_finds_the_share_of_wrong_labels(seed):
    """2000 labels, 20 % of them wrong: the estimate has a standard error of about 1.5 points, so 8 of it is one in a million and more."""
    rng = stream(seed, "soft/repair")
    truth = rng.integers(3, size=2000)
    sharp = np.eye(3)[truth] * 4 + rng.normal(scale=0.7, size=(2000, 3))
    answers = np.exp(sharp) / np.exp(sharp).sum(axis=1, keepdims=True)
    wrong = rng.random(2000) < 0.2
    labels = np.where(wrong, (truth + rng.integers(1, 3, size=2000)) % 3, truth)
    both = np.stack([answers, answers])
    taught = np.zeros((2, 2000), dtype=bool)
    said = leave_out(both, taught, labels, floor=FLOOR)
    targets, temperature, noise = repaired_targets(said)
    assert abs(noise - 0.2) < 0.12
    assert temperature > 0
    assert np.mean(targets.argmax(axis=1) == truth) > np.mean(labels == truth) + 0.1
    # Clean labels: the repair finds nothing wrong and teaches hard labels, so that it hides nothing.
    clean = leave_out(both, taught, truth, floor=FLOOR)
    targets, _, noise = repaired_targets(clean)
    assert noise < 0.02
    assert targets[np.arange(2000), truth].min() > 0.5


def test_parts_are_by_person_equal_and_stratified(seed):
    table = builtin_table()
    rng = stream(seed, "soft/folds")
    parts = folds_of(table, 5, rng=rng, stratified=True)
    for label in range(2):
        counts = np.bincount(parts[table.target == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(parts)) <= 1
    people = table.take(np.repeat(np.arange(len(table)), 3))
    parts = folds_of(people, 2, rng=rng, stratified=True)
    for person in np.unique(people.units):
        assert len(set(parts[people.units == person])) == 1
    masks = teaching_masks(table, 4, 3, rng=rng, stratified=True)
    assert masks.shape == (12, len(table))
    assert ((~masks).sum(axis=0) == 3).all()
    # The twin: parts that look at no label are not stratified in one of a few draws.
    spreads = []
    for _ in range(5):
        loose = folds_of(table, 5, rng=rng, stratified=False)
        spreads.append(np.ptp(np.bincount(loose[table.target == 0], minlength=5)))
    assert max(spreads) > 1


def test_parts_without_labels_do_not_depend_on_them():
    """Private training needs this: the part of a record must not depend on what others are."""
    table = builtin_table()
    flipped = table.take(np.arange(len(table)))
    object.__setattr__(flipped, "target", 1 - table.target)
    first, second = (
        folds_of(t, 5, rng=stream(0, "x"), stratified=False) for t in (table, flipped)
    )
    assert np.array_equal(first, second)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SoftLabels("x", alpha=-1), "alpha"),
        (lambda: SoftLabels("x", alpha=True), "alpha"),
        (lambda: SoftLabels("x", alpha="half"), "alpha"),
        (lambda: SoftLabels("x", alpha=2.0, mixture=True), "at most 1"),
        (lambda: SoftLabels("x", folds=1), "folds"),
        (lambda: SoftLabels("x", repeats=1), "repeats"),
        (lambda: SoftLabels("x", repeats=1000), "teachers"),
        (lambda: SoftLabels("x", floor=0.0), "floor"),
        (lambda: SoftLabels("x", rounds=0), "rounds"),
        (lambda: SoftLabels("x", rounds=2, alpha=Validated()), "one round"),
        (lambda: PerRecord(tau=0), "positive"),
        (lambda: Validated(alphas=(0.5,)), "two or more"),
        (lambda: Validated(folds=1), "folds"),
        (lambda: RepairedLabels("x", folds=0), "folds"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidInput, match=message):
        make()


def test_too_few_people_or_answers_are_refused():
    table = builtin_table().take(np.arange(3))
    with pytest.raises(InvalidInput, match="3 people cannot be divided into 5"):
        folds_of(table, 5, rng=stream(0, "x"), stratified=True)
    with pytest.raises(InvalidInput, match="1 teachers that did not train"):
        leave_out(
            np.full((2, 1, 2), 0.5), np.array([[True], [False]]), np.array([0]), floor=FLOOR
        )  # fmt: skip
