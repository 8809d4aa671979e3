"""From noisy counts to a distribution: graphs, messages and the fit, each beside the whole joint distribution."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from reticent.run import stream
from reticent.train.marginals import graphs, junction, messages, plausible
from reticent.train.marginals.messages import Messages


def swept(model, theta):
    """Return the beliefs of all cliques, the probabilities of the factors' cells, and the logarithm of the sum of all weights."""
    sweeps = Messages(model, list(theta))
    shares, log_sum = sweeps.sweep(np.concatenate([t.ravel() for t in theta.values()]))
    return sweeps.beliefs(), shares, log_sum


def whole_joint(sizes, theta):
    """Return the weight of every state of all columns, one by one."""
    logs = np.zeros(sizes)
    for factor, part in theta.items():
        logs += part.reshape([k if c in factor else 1 for c, k in enumerate(sizes)])
    return np.exp(logs)


SMALL_GRAPH = (2, 3, 2, 4, 3), [(0, 1), (1, 2), (0, 2), (2, 3)]
# Two cliques of four columns that share two, and one of three that shares two others with the second.
BOXES = (2, 3, 2, 4, 3, 2, 2), [*combinations(range(4), 2), *combinations(range(2, 6), 2), (3, 6), (4, 6)]  # fmt: skip
# Four columns, of which each three are shared with another clique: however they are divided into three blocks, some three lie in all of them.
UNDIVIDED = (2, 3, 2, 3, 2, 2, 2, 2), [*combinations(range(4), 2), *((c, 4 + k) for k in range(4) for c in range(4) if c != k)]  # fmt: skip


@pytest.mark.parametrize(
    ("graph", "small", "blocks"),
    [
        (SMALL_GRAPH, 512, [1]),  # all joined
        (SMALL_GRAPH, 12, [1, 1, 1]),
        (SMALL_GRAPH, 1, [1, 1, 3]),
        (BOXES, 512, [1, 1]),
        (BOXES, 24, [1, 3, 3]),
        (BOXES, 1, [3, 3, 3]),
        (UNDIVIDED, 512, [1, 1]),
        (UNDIVIDED, 1, [3, 1, 3, 3, 3]),
    ],
)
def test_beliefs_are_those_of_the_whole_joint_distribution(
    graph, small, blocks, seed, monkeypatch
):
    monkeypatch.setattr(junction, "SMALL", small)
    rng = stream(seed, "junction")
    sizes, pairs = graph
    theta = {pair: rng.normal(size=[sizes[c] for c in pair]) for pair in pairs}
    theta |= {(c,): rng.normal(size=k) for c, k in enumerate(sizes)}
    model = junction.Junction.of(sizes, pairs)
    assert [len(each) for each in model.blocks] == blocks
    # Without potentials every state of all columns has the weight 1.
    _, _, of_nothing = swept(model, {f: np.zeros_like(t) for f, t in theta.items()})
    assert of_nothing == pytest.approx(np.log(math.prod(sizes)), abs=1e-12)
    beliefs, shares, log_sum = swept(model, theta)
    whole = whole_joint(sizes, theta)
    assert log_sum == pytest.approx(np.log(whole.sum()), abs=1e-12)
    whole /= whole.sum()
    ends = np.cumsum([part.size for part in theta.values()])[:-1]
    for factor, share in zip(theta, np.split(shares, ends), strict=True):
        others = tuple(c for c in range(len(sizes)) if c not in factor)
        true = whole.sum(axis=others)
        assert model.marginal(beliefs, factor) == pytest.approx(true, abs=1e-12)
        assert share == pytest.approx(true.ravel(), abs=1e-12)
    for clique, cells in zip(model.cliques, beliefs, strict=True):
        others = tuple(c for c in range(len(sizes)) if c not in clique)
        true = whole.sum(axis=others).transpose(np.argsort(np.argsort(clique)))
        assert cells == pytest.approx(true.ravel(), abs=1e-12)
    rows = model.sample(beliefs, 2_000, rng)
    assert all(m < 1 + 1e-9 for m in misses(model, beliefs, rows))
    # The twin: rows drawn by plain chance miss by more.
    chosen = rng.choice(whole.size, 2_000, p=whole.ravel())
    by_chance = np.stack(np.unravel_index(chosen, sizes), axis=1)
    assert max(misses(model, beliefs, by_chance)) > 2


def misses(model, beliefs, rows):
    """Return by how many rows a state of each clique lies beside its share of the rows that have the same states of the columns before: systematic sampling keeps it below one."""
    for k, clique in enumerate(model.cliques):
        shape = [model.sizes[c] for c in clique]
        places = np.ravel_multi_index([rows[:, c] for c in clique], shape)
        counts = np.bincount(places, minlength=math.prod(shape))
        before = math.prod(model.sizes[c] for c in model.common(k))
        counts, shares = counts.reshape(-1, before), beliefs[k].reshape(-1, before)
        expected = counts.sum(axis=0) * shares / shares.sum(axis=0)
        yield float(np.abs(counts - expected).max())


@pytest.mark.parametrize("strength", [200.0, 900.0])
def test_potentials_that_contradict_each_other_end_in_probabilities(
    strength, monkeypatch
):
    """Each of two cliques all but rules out the states that the other one allows: exponentials of 900 alone would be 0 in all cells."""
    monkeypatch.setattr(junction, "SMALL", 1)
    far = np.array([0.0, strength])
    theta = {
        (0, 1): np.tile(far[::-1], (2, 1)),
        (1, 2): np.tile(far[:, None], 2) + np.log([1.0, 3.0]),
    }
    model = junction.Junction.of((2, 2, 2), [(0, 1), (1, 2)])
    beliefs, _, _ = swept(model, theta)
    first, second = (cells.reshape(2, 2) for cells in beliefs)
    assert np.isfinite(beliefs).all()
    assert (first.sum(), second.sum()) == pytest.approx((1.0, 1.0), abs=1e-12)
    assert model.cliques == ((0, 1), (2, 1))
    # Both say the same of the column that they share, which comes last in both.
    assert first.sum(axis=0) == pytest.approx(second.sum(axis=0), abs=1e-12)
    if strength < -messages.LEAST:
        assert first.sum(axis=0) == pytest.approx([0.5, 0.5], abs=1e-12)
        assert second.sum(axis=1) == pytest.approx([0.25, 0.75], abs=1e-12)


@pytest.mark.parametrize("strength", [60.0, 900.0])
def test_faces_of_a_box_that_contradict_each_other_end_in_probabilities(
    strength, monkeypatch
):
    """Three faces, each of which all but rules out what the next one asks for, and a child that asks for something else again."""
    monkeypatch.setattr(junction, "SMALL", 1)
    sizes, pairs = (2, 2, 2, 2), [(0, 1), (1, 2), (0, 2), (2, 3)]
    agree, differ = strength * np.eye(2), strength * (1 - np.eye(2))
    theta = {(0, 1): agree, (1, 2): agree, (0, 2): differ, (2, 3): agree, (3,): np.array([strength, 0.0])}  # fmt: skip
    model = junction.Junction.of(sizes, pairs)
    assert sorted(len(blocks) for blocks in model.blocks) == [1, 3]
    beliefs, shares, log_sum = swept(model, theta)
    assert all(np.isfinite(cells).all() for cells in beliefs)
    assert [cells.sum() for cells in beliefs] == pytest.approx([1.0, 1.0], abs=1e-12)
    if 3 * strength < -messages.LEAST:
        whole = whole_joint(sizes, theta)
        assert log_sum == pytest.approx(np.log(whole.sum()), rel=1e-12)
        assert shares[:4] == pytest.approx((whole.sum(axis=(2, 3)) / whole.sum()).ravel(), abs=1e-12)  # fmt: skip


def test_a_large_clique_of_many_columns_is_divided_too(seed):
    """Of nine columns not every division is tried."""
    sizes, pairs = (3,) * 9, list(combinations(range(9), 2))
    model = junction.Junction.of(sizes, pairs)
    assert [len(blocks) for blocks in model.blocks] == [3]
    rng = stream(seed, "nine columns")
    theta = {pair: rng.normal(size=(3, 3)) for pair in pairs}
    _, shares, log_sum = swept(model, theta)
    whole = whole_joint(sizes, theta)
    assert log_sum == pytest.approx(np.log(whole.sum()), abs=1e-11)
    assert shares[:9] == pytest.approx((whole.sum(axis=tuple(range(2, 9))) / whole.sum()).ravel(), abs=1e-12)  # fmt: skip


def test_a_factor_measured_twice_counts_by_its_precision():
    counts = [np.array([300.0, 700.0]), np.array([700.0, 300.0])]
    model = junction.Junction.of((2,), [])

    def first(variances):
        measured = [plausible.Measured((0,), c, v) for c, v in zip(counts, variances, strict=True)]  # fmt: skip
        _, beliefs = plausible.fitted(
            model, measured, {}, total=1_000.0, precision=1e-6
        )
        share = model.marginal(beliefs, (0,))[0]
        variance = 1 / sum(1 / v for v in variances)
        # Entropy pulls both counts together, by its weight times the variance times the potential, which is half of the log odds.
        return 1_000 * share + plausible.ENTROPY * variance * np.log(share / (1 - share)) / 2  # fmt: skip

    assert first((1.0, 3.0)) == pytest.approx(400.0, abs=1e-3)
    assert first((100.0, 300.0)) == pytest.approx(400.0, abs=1e-3)
    # The twin: with equal variances it is the plain mean.
    assert first((100.0, 100.0)) == pytest.approx(500.0, abs=1e-3)


def test_pairs_are_affordable_if_the_tree_has_room_for_their_cells(seed):
    rng = stream(seed, "graphs")
    sizes = tuple(int(k) for k in rng.integers(2, 9, 7))
    every = [(i, j) for i in range(7) for j in range(i + 1, 7)]

    def cells(pairs):
        return sum(graphs.cells_of(sizes, c) for c in graphs.cliques_of(sizes, pairs))

    for edges in (0, 3, 6, 12, 20):
        known = [every[k] for k in rng.permutation(21)[:edges]]
        each = {pair: cells([*known, pair]) for pair in every}
        most = sorted(each.values())[10]
        found = graphs.affordable(sizes, known, every, most=most)
        assert found == [p for p in every if p in known or each[p] <= most]
    # The twin: with less room there are fewer, and what is known stays.
    assert graphs.affordable(sizes, known, every, most=1) == sorted(known)


def noisy_pairs(rng, deviation):
    """Return a tree of three columns, noisy counts of two pairs of 1,000 records, and the counts without noise."""
    joint = rng.random((3, 4, 2))
    joint *= 1_000 / joint.sum()
    true = {(0, 1): joint.sum(axis=2), (1, 2): joint.sum(axis=0)}
    measured = [
        plausible.Measured(f, c + deviation * rng.normal(size=c.shape), deviation**2)
        for f, c in true.items()
    ]
    return junction.Junction.of((3, 4, 2), list(true)), measured, true


def test_the_fit_reaches_what_was_measured(seed):
    model, measured, true = noisy_pairs(stream(seed, "fit"), 1e-3)
    theta, beliefs = plausible.fitted(
        model, measured, {}, total=1_000.0, precision=0.01
    )
    assert np.concatenate(beliefs) == pytest.approx(np.concatenate(swept(model, theta)[0]), abs=1e-12)  # fmt: skip
    for factor, counts in true.items():
        # Counts are taken to be no more exact than one person, and entropy may use that.
        assert 1_000 * model.marginal(beliefs, factor) == pytest.approx(counts, abs=0.5)  # fmt: skip


def test_counts_that_add_up_to_another_total_are_fitted_as_if_they_did_not(seed):
    model, measured, _ = noisy_pairs(stream(seed, "fit"), 20.0)
    more = [replace(m, counts=m.counts + 7.0) for m in measured]

    def fit(counts):
        return np.concatenate(plausible.fitted(model, counts, {}, total=1_000.0, precision=1e-7)[1])  # fmt: skip

    assert fit(more) == pytest.approx(fit(measured), abs=1e-7)
    # The twin: more in one cell alone is something else.
    more[0].counts[0, 0] += 7.0
    assert fit(more) != pytest.approx(fit(measured), abs=1e-4)


def test_the_fit_is_the_maximum_that_a_search_over_all_cells_finds(seed):
    """The whole joint distribution, cell by cell, by another method: the same marginals. The twin: with another weight of entropy they are others."""
    model, measured, _ = noisy_pairs(stream(seed, "fit"), 20.0)
    _, beliefs = plausible.fitted(model, measured, {}, total=1_000.0, precision=1e-7)

    def searched(entropy):
        def loss(logits):
            log = log_softmax(logits)
            joint = np.exp(log).reshape(3, 4, 2)
            # Counts of the pairs (0, 1) and (1, 2).
            counts = (1_000 * joint.sum(axis=2), 1_000 * joint.sum(axis=0))
            squares = sum(((c - m.counts) ** 2).sum() / m.variances for c, m in zip(counts, measured, strict=True))  # fmt: skip
            return float(entropy * 1_000 * (np.exp(log) @ log) + squares / 2)

        best = minimize(loss, np.zeros(24), method="BFGS", options={"gtol": 1e-7})
        return np.exp(log_softmax(best.x)).reshape(3, 4, 2)

    for entropy, agrees in ((plausible.ENTROPY, True), (3 * plausible.ENTROPY, False)):
        joint = searched(entropy)
        pairs = (joint.sum(axis=2), joint.sum(axis=0))
        near = [model.marginal(beliefs, m.factor) == pytest.approx(p, abs=1e-5) for m, p in zip(measured, pairs, strict=True)]  # fmt: skip
        assert all(near) is agrees


def test_a_fit_goes_on_from_where_another_ended(seed):
    """Rounding ends the search where no step helps any more; what it began with does not matter."""
    model, measured, _ = noisy_pairs(stream(seed, "fit"), 5.0)
    theta, _ = plausible.fitted(model, measured, {}, total=1_000.0, precision=0.0)
    again, _ = plausible.fitted(model, measured, theta, total=1_000.0, precision=0.0)
    far = {f: t + stream(seed, "far").normal(size=t.shape) for f, t in theta.items()}
    back, _ = plausible.fitted(model, measured, far, total=1_000.0, precision=0.0)
    for factor in theta:
        assert again[factor] == pytest.approx(theta[factor], abs=1e-6)
        assert back[factor] == pytest.approx(theta[factor], abs=1e-4)
