"""The parts of the reader, against naive versions of themselves, and records in every disguise."""

import base64
import io
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reading import FALSE_ALARM, Judged, judged, people, score, trained
from scipy.stats import binom, chi2_contingency, norm
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from reticent.attack import (
    Challenge,
    Knowledge,
    Need,
    Reader,
    SealedTags,
    count_file,
    search_file,
)
from reticent.attack.reader._cells import log_ratio, p_value
from reticent.attack.reader._columns import (
    HALF,
    SINGLE,
    Columns,
    coarseness,
    contained,
    people_sharing,
    row_hashes,
)
from reticent.attack.reader._trees import Distances, Seen, walk
from reticent.audits import lone_row, seen_in_rows
from reticent.data import table_from_frame
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.product import Contents, OpenedFile, Stage, Words, open_file
from reticent.product.contents import NamedArray, NamedTexts, Unread, read_contents
from reticent.run import stream
from reticent.testing import PinnedTags, check_attack, check_regression_attack

N = 150


def test_the_contract(seed):
    check_attack(Reader(), seed=seed)
    check_regression_attack(Reader(), seed=seed)


def test_it_asks_for_the_file_and_for_nothing_else():
    assert Reader().needs == {Need.FILE}
    challenge = Challenge(probabilities=np.full((2, 2), 0.5), labels=np.array([0, 1]))
    tags = SealedTags(np.array([True, False]), np.arange(2))
    with pytest.raises(InvalidInput, match="reads the product's file, but there is"):
        Reader().score(challenge, knowledge=Knowledge(tags=tags), rng=stream(0, "r"))


def beside(rows: np.ndarray, contents: Contents, target: np.ndarray) -> OpenedFile:
    return OpenedFile(
        contents=contents,
        stages=(Stage(name="records", matrix=rows),),
        words=(),
        target=target,
        classes=2,
        people=np.arange(len(rows)),
    )


def npy(values: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


DISGUISES = {
    "as they are": lambda x, rng: npy(x),
    "single precision": lambda x, rng: npy(x.astype(np.float32)),
    "half precision": lambda x, rng: npy(x.astype(np.float16)),
    "rows in another order": lambda x, rng: npy(rng.permutation(x)),
    "columns in another order": lambda x, rng: npy(x[:, [3, 0, 4, 1, 2]]),
    "some columns": lambda x, rng: npy(x[:, [4, 1, 2]]),
    "two columns": lambda x, rng: npy(x[:, [0, 3]]),
    "with foreign columns": lambda x, rng: npy(np.column_stack([rng.random(len(x)), x])),
    "transposed": lambda x, rng: npy(x.T),
    "flattened": lambda x, rng: npy(x.ravel()),
    "flattened by column": lambda x, rng: npy(x.T.ravel()),
    "in blocks": lambda x, rng: npy(x.reshape(5, -1, 5)),
    "bytes": lambda x, rng: b"\x07" + x.tobytes(),
    "base64": lambda x, rng: json.dumps({"k": base64.b64encode(x.tobytes()).decode()}).encode(),
    "texts": lambda x, rng: json.dumps([[repr(v) for v in row] for row in x.tolist()]).encode(),
    "scaled": lambda x, rng: npy(x * [3, 1e-3, 700, 2, 5] + [1, 2, 3, 4, 5]),
    "mirrored": lambda x, rng: npy(-2 * x + 1),
    "among others": lambda x, rng: npy(np.concatenate([x, rng.normal(size=(5, 5))])),
}  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISES)
def test_records_are_recognised_in_disguise(disguise, seed):
    rng = stream(seed, disguise)
    rows = rng.normal(size=(2 * N, 5))
    data = DISGUISES[disguise](rows[:N], rng)
    file = beside(rows, read_contents(data), rng.integers(2, size=2 * N).astype(float))
    result = score(file, np.arange(2 * N) < N, seed)
    assert result.auc > 0.99
    assert result.tpr() > 0.97


@pytest.mark.parametrize(
    ("disguise", "least"),
    [
        (lambda x, rng: x + 0.1 * rng.normal(size=x.shape), 0.95),
        (lambda x, rng: np.round(x, 1), 0.99),
        (lambda x, rng: x[: N // 3], 0.6),
    ],
    ids=["noise", "rounded", "a third of them"],
)
def test_near_rows_and_parts_are_recognised(disguise, least, seed):
    rng = stream(seed, "near")
    rows = rng.normal(size=(2 * N, 5))
    kept = NamedArray(path="kept", values=disguise(rows[:N], rng))
    file = beside(rows, Contents(arrays=(kept,)), np.zeros(2 * N))
    assert score(file, np.arange(2 * N) < N, seed).auc > least


def test_missing_values_and_classes_belong_to_a_row(seed):
    rng = stream(seed, "missing")
    rows = rng.integers(0, 4, size=(2 * N, 6)).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    target = rng.integers(2, size=2 * N).astype(float)
    kept = [
        NamedArray(path="a:model._fit_X", values=rows[:N]),
        NamedArray(path="a:model._y", values=target[:N].astype(np.int64)),
    ]
    tags = np.arange(2 * N) < N
    both = score(beside(rows, Contents(arrays=tuple(kept)), target), tags, seed)
    assert both.auc > 0.9
    found = count_file(both.file, search_file(both.file), tags).rows
    alike = Counter(map(repr, np.column_stack([rows, target]).tolist()))
    stored = set(map(repr, np.column_stack([rows, target])[:N].tolist()))
    expected = sum(repr(row) in stored for row in np.column_stack([rows, target])[N:].tolist())  # fmt: skip
    assert found is not None
    assert (found.members, found.nonmembers) == (N, expected)
    assert len(alike) > N


def naive_pairs(tree, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Node by node and pair by pair, as the definition says."""
    x = matrix.astype(np.float32).astype(float)
    gains, gaps = np.zeros(len(x)), np.zeros(len(x))
    stack = [(0, np.arange(len(x)))]
    while stack:
        node, rows = stack.pop()
        if tree.left[node] < 0:
            continue
        j, t = tree.features[node], tree.thresholds[node]
        values = x[rows, j]
        near = 1e-9 * np.abs(x[:, j]).max()
        lower, upper = np.unique(values[values <= t]), np.unique(values[values > t])
        # Sums are compared on a grid, whose points may be one apart: rounded numbers differ in the last place of singles.
        pairs = [(a, b) for a in lower for b in upper if abs(np.round((2 * t - a) / near) - np.round(b / near)) <= 1]  # fmt: skip
        for pair in pairs:
            for value in pair:
                same = rows[values == value]
                gains[same] += 1 / (len(same) * len(pairs))
        if pairs:
            inside = (values > max(a for a, _ in pairs)) & (values < min(b for _, b in pairs))  # fmt: skip
            gaps[rows[inside]] += 1
        stack += [(tree.left[node], rows[values <= t]), (tree.right[node], rows[values > t])]  # fmt: skip
    return gains, gaps


@pytest.mark.parametrize("kind", ["continuous", "binary", "rounded"])
def test_pairs_are_those_of_the_definition(kind, seed):
    rng = stream(seed, kind)
    table = people("binary" if kind == "binary" else "continuous", 30, rng)
    matrix = table.features.to_numpy()
    if kind == "rounded":
        matrix = np.round(matrix, 1)
    model = RandomForestClassifier(5, random_state=0).fit(matrix[:30], table.target[:30])  # fmt: skip
    import skops.io

    for tree in read_contents(skops.io.dumps(model)).trees:
        walked = walk([tree], Seen.of(matrix, single=True, strict=False))
        expected, between = naive_pairs(tree, matrix)
        assert np.allclose(walked.gains, expected)
        assert np.array_equal(walked.gaps[0], between)
        assert (tree.left[walked.node] < 0).all()


def test_trees_that_are_walked_at_once_are_walked_alike(seed, monkeypatch):
    """By themselves, together, and where node, rank and position do not fit into one number; with values that are missing or infinite."""
    import skops.io

    table = people("continuous", 200, stream(seed, "at once"))
    matrix = np.round(table.features.to_numpy(), 1)
    model = RandomForestClassifier(5, random_state=0).fit(matrix, table.target)
    trees = read_contents(skops.io.dumps(model)).trees
    strange = matrix.copy()
    strange[::9, 0], strange[::7, 1], strange[::5, 1] = np.nan, np.inf, -np.inf
    for records in (matrix, strange):
        seen = Seen.of(records, single=True, strict=False)
        distances, singly = Distances(len(records)), Distances(len(records))
        together = walk(trees, seen, distances)
        for k, tree in enumerate(trees):
            alone = walk([tree], seen, singly)
            assert (alone.gains[0] == together.gains[k]).all()
            assert (alone.gaps[0] == together.gaps[k]).all()
            assert (alone.node[0] == together.node[k]).all()
        assert together.gains.any()
        assert together.gaps.any()
        assert np.allclose(distances.summary(), singly.summary())
        monkeypatch.setattr("reticent.attack.reader._levels.WIDTH", 8)
        wide = walk(trees, seen)
        assert (wide.gains == together.gains).all()
        assert (wide.gaps == together.gaps).all()
        monkeypatch.undo()


def test_records_end_in_the_leaves_that_scikit_learn_says(seed):
    import skops.io

    table = people("continuous", 100, stream(seed, "leaves"))
    matrix = table.features.to_numpy().copy()
    matrix[::9, 0] = np.nan
    model = DecisionTreeClassifier(random_state=0).fit(matrix, table.target)
    (tree,) = read_contents(skops.io.dumps(model)).trees
    (node,) = walk([tree], Seen.of(matrix, single=True, strict=False)).node
    assert np.array_equal(node, model.apply(matrix))


def test_a_bag_is_known_from_pairs_leaves_and_gaps(seed):
    # Who is beside a threshold was in it, whoever else was not: the first column of the inputs never names a non-member of a
    # continuous table, and a gap never a member of a tree without bags.
    table = people("continuous", 300, stream(seed, "bag"))
    product = trained(DecisionTreeClassifier(random_state=0), table.take(np.arange(300)))  # fmt: skip
    (trees,) = search_file(open_file(product, table), smallest_group=20).trees
    largest, gap, room = trees.inputs[:, 1], trees.inputs[:, 2], trees.inputs[:, 4]
    tags = np.arange(600) < 300
    assert (largest[tags] > 0).mean() > 5 * (largest[~tags] > 0).mean()
    assert not gap[tags].any()
    assert gap[~tags].any()
    assert room[tags].min() > 0


@pytest.mark.parametrize(
    ("model", "share"),
    [(DecisionTreeRegressor(random_state=0), 1.0), (RandomForestRegressor(10, random_state=0), 0.9)],
    ids=["tree", "forest"],
)  # fmt: skip
def test_leaves_of_one_record_are_targets(model, share, seed):
    table = people("continuous", N, stream(seed, "targets"), quantity=True)
    result = judged(model, table, seed)
    found = count_file(result.file, search_file(result.file), result.tags).trees
    assert found is not None
    assert found.members >= share * N
    assert found.nonmembers == 0


FINITE = st.floats(-1e6, 1e6, allow_nan=False, width=32)


@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=FINITE
    )
)
def test_equal_rows_have_equal_hashes_and_order_does_not_matter(matrix):  # fmt: skip
    tolerance = np.full(matrix.shape[1], 1e-3)
    hashes = row_hashes(matrix, tolerance, 1 / 3)
    assert np.array_equal(row_hashes(matrix[::-1], tolerance, 1 / 3), hashes[::-1])
    cells = [tuple(row) for row in np.floor(matrix / tolerance + 1 / 3)]
    assert len(set(cells)) == len(np.unique(hashes))


def test_a_million_rows_do_not_collide(seed):
    rows = stream(seed, "collide").integers(0, 1000, size=(300_000, 3)).astype(float)
    hashes = row_hashes(rows, np.ones(3), 0.0)
    assert len(np.unique(hashes)) == len(np.unique(rows, axis=0))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1))
def test_people_that_share_a_value_are_counted_once(pairs):
    codes, persons = (np.array(side) for side in zip(*pairs, strict=True))
    expected = [len({p for c, p in pairs if c == code}) for code in codes]
    assert people_sharing(codes, persons).tolist() == expected


def test_precision_is_that_of_the_numbers_and_not_of_their_type():
    x = np.random.default_rng(0).normal(size=100)
    assert coarseness(x.astype(np.float16).astype(float)) == HALF
    assert coarseness(x.astype(np.float32).astype(float)) == SINGLE
    assert coarseness(x) == coarseness(np.arange(5.0)) == 2.0**-52
    columns = Columns(x[:, None], np.arange(100))
    assert columns.tolerance(HALF, rows=False)[0] > columns.tolerance(SINGLE, rows=False)[0]  # fmt: skip
    assert not contained(x, np.empty(0), 1.0).any()


def test_the_test_of_a_cell_is_pearsons(seed):
    rng = stream(seed, "cells")
    categories, tags = rng.integers(0, 4, 300), rng.random(300) < 0.4
    table = [np.bincount(categories[tags == tag], minlength=4) for tag in (True, False)]
    expected = chi2_contingency(table, correction=False).pvalue
    assert p_value(categories, tags) == pytest.approx(expected, rel=1e-9)
    assert p_value(np.zeros(9, dtype=np.int64), np.arange(9) < 4) == 1.0
    ratios = log_ratio(categories, tags, np.array([2]))
    inside, outside = (row + 0.5 for row in table)
    expected = np.log(inside[2] / inside.sum() * outside.sum() / outside[2])
    assert abs(ratios[0] - expected) <= 0.125
    assert ratios[0] % 0.25 == 0


def test_cells_do_not_depend_on_the_order_of_the_records(seed):
    # The order of a challenge may be that of membership, so nothing may depend on it.
    table = people("mixed", 100, stream(seed, "order"))
    rng = stream(seed, "permutation")
    product = trained(
        make_pipeline(QuantileTransformer(n_quantiles=100), RandomForestClassifier(3)),
        replace(table, features=table.features[["age", "income"]]).take(np.arange(100)),
    )
    file = open_file(
        product, replace(table, features=table.features[["age", "income"]])
    )
    order = rng.permutation(len(file))
    cells = search_file(file, smallest_group=20).cells
    moved = search_file(file.take(order), smallest_group=20).cells
    assert len(cells) == len(moved) > 0
    for one, other in zip(cells, moved, strict=True):
        assert (one.kind, one.place, one.stage) == (other.kind, other.place, other.stage)  # fmt: skip
        assert np.array_equal(one.categories[order], other.categories)


@pytest.mark.parametrize("kind", ["rows", "trees"])
def test_no_tag_reaches_the_record_that_it_belongs_to(kind, seed):
    table = people("continuous", N, stream(seed, "sealed"))
    model = KNeighborsClassifier() if kind == "rows" else RandomForestClassifier(5)
    file = open_file(trained(model, table.take(np.arange(N))), table)
    challenge = Challenge(
        probabilities=np.full((2 * N, 2), 0.5), labels=table.target, file=file
    )
    units = np.arange(2 * N)
    tags = units < N
    flipped = tags.copy()
    flipped[0] = False
    first, second = (
        Reader().score(
            challenge,
            knowledge=Knowledge(tags=PinnedTags(version, units)),
            rng=stream(seed, "tag"),
        )
        for version in (tags, flipped)
    )
    assert first.values[0] == second.values[0]
    assert first.values.any()


def test_permuted_tags_are_not_found(seed):
    table = people("continuous", 100, stream(seed, "permuted"))
    product = trained(scaled_quantiles(), table.take(np.arange(100)))
    file = open_file(product, table)
    evidence = search_file(file, smallest_group=20)
    assert len(evidence.cells) > 5
    rng, alarms, runs = stream(seed, "permutations"), 0, 300
    for _ in range(runs):
        tags = rng.permutation(200) < 100
        odds = Reader()._odds(evidence, SealedTags(tags, file.people), rng)
        result = Judged(scores=odds, tags=tags, file=file)
        error = result.tolerance / norm.isf(FALSE_ALARM / 2)
        alarms += abs(result.auc - 0.5) > norm.isf(0.005) * error
    # In each of five folds a place is chosen by chance once in a hundred times; only then can there be an alarm.
    assert alarms <= binom.isf(FALSE_ALARM, runs, 0.05)


def scaled_quantiles():
    return make_pipeline(StandardScaler(), QuantileTransformer(n_quantiles=100), LogisticRegression())  # fmt: skip


def test_records_beside_the_nodes_of_a_tree_are_found(seed):
    rows = stream(seed, "beside").normal(size=(2 * N, 3))
    tree = {
        "left_children": [1, -1, -1],
        "right_children": [2, -1, -1],
        "split_indices": [0, 0, 0],
        "split_conditions": [0.5, 0.1, 0.2],
        "more": rows[:N].tolist(),
    }
    contents = read_contents(json.dumps(tree).encode())
    assert len(contents.trees) == 1
    file = beside(rows, contents, np.zeros(2 * N))
    assert score(file, np.arange(2 * N) < N, seed).auc > 0.99


def test_people_with_many_records_are_judged_as_people(seed):
    rng = stream(seed, "visits")
    rows = np.repeat(rng.normal(size=(100, 4)), 4, axis=0)
    persons = np.repeat(np.arange(100), 4)
    rows[:, 3] += rng.normal(size=400)
    tags = persons < 50
    kept = NamedArray(path="kept", values=rows[tags])
    file = replace(
        beside(rows, Contents(arrays=(kept,)), np.zeros(400)), people=persons
    )
    assert score(file, tags, seed).auc > 0.99
    assert (
        count_file(file, search_file(file), tags).rare_values == 0
    )  # rows say more, so values are not looked for


def test_counts_say_what_is_in_the_file(seed):
    rng = stream(seed, "counts")
    rows = rng.normal(size=(2 * N, 3))
    towns = Words(
        name="town",
        values=tuple(f"town {k}" for k in range(2 * N)),
        codes=np.arange(2 * N),
    )
    contents = Contents(
        arrays=(
            NamedArray(path="f:first", values=rows[:40, 0].copy()),
            NamedArray(path="f:weights", values=np.zeros((7, 2))),
            NamedArray(path="f:numbers[3]", values=rng.permutation(N)),
            NamedArray(path="f:counter", values=np.arange(N)),
        ),
        texts=(NamedTexts(path="f:towns", values=towns.values[:30]),),
        unread=(Unread(path="f:x{smith}", why="it is damaged"),),
        size=999,
    )
    file = replace(beside(rows, contents, np.zeros(2 * N)), words=(towns,))
    tags = np.arange(2 * N) < N
    counts = count_file(file, search_file(file), tags)
    assert counts.rows is None
    assert counts.trees is None
    assert counts.values is not None
    assert (counts.values.place, counts.values.stage) == ("f:first", "records, column 1")  # fmt: skip
    assert (counts.values.members, counts.values.nonmembers) == (40, 0)
    assert counts.rare_values == 70
    assert counts.long_axes == ("f:numbers[]",)
    assert counts.parameters == 54
    assert counts.records_per_parameter == pytest.approx(N / 54)
    assert counts.unread == ("f:x{}: it is damaged",)
    assert counts.size == 999
    empty = replace(file, contents=Contents())
    assert count_file(empty, search_file(empty), tags).records_per_parameter == np.inf  # fmt: skip
    with pytest.raises(InvalidInput, match="tags for 300 records"):
        count_file(file, search_file(file), tags[:3])


def test_coincidences_are_not_counted(seed):
    rows = stream(seed, "coarse").integers(0, 3, size=(2 * N, 2)).astype(float)
    kept = NamedArray(path="weights", values=rows[[*range(20), *range(N, N + 20)]])
    file = beside(rows, Contents(arrays=(kept,)), np.zeros(2 * N))
    cells = search_file(file, smallest_group=20).cells
    assert any(cell.kind == "rows" and cell.found.sum() > N for cell in cells)
    assert count_file(file, search_file(file), np.arange(2 * N) < N).rows is None


def test_values_that_many_share_are_nobodys(seed):
    rng = stream(seed, "shared")
    ages = rng.integers(20, 24, size=(2 * N, 1)).astype(float)
    kept = NamedArray(path="ages", values=np.array([20.0, 21.0, 22.0]))
    file = beside(ages, Contents(arrays=(kept,)), np.zeros(2 * N))
    assert not search_file(file, smallest_group=20).cells
    assert search_file(file, smallest_group=2 * N).cells


def test_a_file_beside_other_records_is_refused():
    file = beside(np.zeros((3, 2)), Contents(), np.zeros(3))
    with pytest.raises(InvalidPredictions, match="laid beside 3 records"):
        Challenge(probabilities=np.full((2, 2), 0.5), labels=np.zeros(2, dtype=int), file=file)  # fmt: skip
    with pytest.raises(InvalidInput, match="one row of each"):
        replace(file, people=np.arange(2))
    assert len(file.take(np.array([2, 0]))) == 2
    assert file.nbytes == 48
    memory = file.memorised(np.array([True, False, True]))
    assert memory.contents.arrays[0].shape == (2, 3)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.integers(1, 4)),
        elements=st.floats(width=64),
    ),
)
def test_no_numbers_of_a_stranger_raise(values):  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(30, 3))
    contents = Contents(arrays=tuple(NamedArray(path="a", values=v) for v in (values, values.ravel())))  # fmt: skip
    search_file(beside(rows, contents, np.zeros(30)), smallest_group=20)


def test_empty_and_strange_files_say_nothing(seed):
    rows = stream(seed, "empty").normal(size=(40, 2))
    tags = np.arange(40) < 20
    strange = [
        NamedArray(path="a", values=np.full((30, 2), np.nan)),
        NamedArray(path="b", values=np.full((30, 2), np.inf)),
        NamedArray(path="c", values=np.array(3.0)),
        NamedArray(path="d", values=np.ones((2, 0))),
        NamedArray(path="e", values=np.full((50, 2), 1e300)),
        NamedArray(path="f", values=np.array([True, False] * 20)),
    ]
    for contents in (Contents(), Contents(arrays=tuple(strange))):
        assert not score(beside(rows, contents, np.zeros(40)), tags, seed).scores.any()
    without = beside(np.empty((40, 0)), Contents(arrays=tuple(strange)), np.zeros(40))
    assert not score(without, tags, seed).scores.any()


def test_a_search_is_used_again_if_it_asked_the_same_question(monkeypatch):
    rows = np.arange(120.0).reshape(60, 2)
    contents = Contents(arrays=(NamedArray(path="kept", values=rows[:30]),), size=480)
    file = beside(rows, contents, np.zeros(60))
    knowledge = Knowledge(tags=SealedTags(np.arange(60) < 30, np.arange(60)))
    plain = Challenge(
        probabilities=np.full((60, 2), 0.5), labels=np.zeros(60, dtype=int), file=file
    )
    asked = []

    def search(file, *, smallest_group):
        asked.append(smallest_group)
        return search_file(file, smallest_group=smallest_group)

    monkeypatch.setattr("reticent.attack.reader._attack.search_file", search)

    def scores(challenge):
        rng = np.random.default_rng(0)
        return Reader().score(challenge, knowledge=knowledge, rng=rng).values

    fresh = scores(plain)
    assert fresh.std() > 0
    assert asked == [20]
    searched = search_file(file, smallest_group=20)
    assert (scores(replace(plain, searched=searched)) == fresh).all()
    assert asked == [20]
    # Nor are some of the records looked for again: an attack that is timed on a part takes no longer than on the whole.
    part = replace(plain, searched=searched).take(np.arange(0, 60, 3))
    assert part.searched is not None
    assert part.searched.records == len(part) == 20
    for cell, whole in zip(part.searched.cells, searched.cells, strict=True):
        assert (cell.categories == whole.categories[::3]).all()
        assert (cell.found == whole.found[::3]).all()
    tags = SealedTags(np.arange(20) < 10, np.arange(20))
    Reader().score(part, knowledge=Knowledge(tags=tags), rng=np.random.default_rng(0))
    assert asked == [20]
    # One that asked another question is of no use.
    scores(replace(plain, searched=search_file(file, smallest_group=5)))
    assert asked == [20, 20]


@pytest.mark.parametrize(
    ("stranger", "expected"), [(0, False), (40, True), (150, True)]
)
def test_held_out_people_in_the_file_of_a_model_are_seen(stranger, expected, seed):
    """A model of neighbours keeps its records: those of non-members can only be there because it was trained on them."""
    for kind in ("continuous", "mixed"):
        table = people(kind, N, stream(seed, "held out"))
        numeric = table.features.select_dtypes("number")
        table = table_from_frame(numeric, target=np.asarray(table.target))
        model = trained(KNeighborsClassifier(), table.take(np.arange(N + stranger)))
        file = open_file(model, table)
        counts = count_file(file, search_file(file), np.arange(2 * N) < N)
        seen = seen_in_rows(counts, smallest=20)
        assert seen is not None
        assert seen.seen == expected
        assert (seen.found >= 20) == expected


def test_held_out_people_who_coincide_with_members_are_not_called_seen(seed):
    """Coarse records: most non-members are found, because members have the same; the twin holds them all."""
    rows = stream(seed, "coincide").integers(0, 5, size=(600, 5)).astype(float)
    tags = np.arange(600) < 300
    for kept, expected in ((rows[:300], False), (rows, True)):
        stored = NamedArray(path="kept", values=kept)
        file = beside(rows, Contents(arrays=(stored,)), np.zeros(600))
        counts = count_file(file, search_file(file), tags)
        assert any(cell.kind == "rows" and cell.found[~tags].sum() > 10 for cell in search_file(file).cells)  # fmt: skip
        assert seen_in_rows(counts, smallest=20).seen == expected


def test_people_are_counted_and_not_their_records(seed):
    rows = np.repeat(stream(seed, "ten each").normal(size=(80, 4)), 10, axis=0)
    persons = np.repeat(np.arange(80), 10)
    tags = persons < 40
    stored = NamedArray(path="kept", values=rows[:100])
    file = replace(
        beside(rows, Contents(arrays=(stored,)), np.zeros(800)), people=persons
    )
    counts = count_file(file, search_file(file), tags)
    assert (counts.members, counts.nonmembers) == (40, 40)
    assert (counts.rows.members, counts.rows.nonmembers) == (10, 0)


def test_a_member_whom_nobody_resembles_is_named_by_place_alone(seed):
    rows = stream(seed, "alone").integers(0, 1_000, size=(900, 6)).astype(float)
    rows[1] = rows[0]
    tags = np.arange(900) < 300
    strange = rows[899] + 0.5
    for kept, expected in (((5, 0), "kept"), ((0,), None), ((5, 700), None)):
        stored = np.vstack([np.tile(strange, (0, 1)), *(np.tile(rows[k], (5, 1)) for k in kept)])  # fmt: skip
        contents = Contents(arrays=(NamedArray(path="kept", values=stored),))
        file = beside(rows, contents, np.zeros(900))
        lone = lone_row(count_file(file, search_file(file), tags))
        assert (lone and lone.place) == expected
