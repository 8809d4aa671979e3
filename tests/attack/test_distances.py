"""Distances between records: each against a double loop, with what is missing, constant, equal or refused."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import nan_euclidean_distances

from reticent.attack import Dissimilarity, Euclidean, Gower, StructuralSimilarity
from reticent.data import builtin_table, table_from_frame
from reticent.errors import InvalidInput, InvalidTable
from reticent.run import stream

SMALL = StructuralSimilarity(shape=(13, 12), dynamic_range=255)


def mixed(rows, rng, *, missing=0.2):
    """Return numbers, whole numbers, categories and truth values, some of them missing; one is always known."""
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 20, size=rows),
            "children": rng.integers(4, size=rows).astype(float),
            "town": rng.choice(np.array(["a", "b", "c"], dtype=object), size=rows),
            "ill": rng.choice(np.array([True, False], dtype=object), size=rows),
            "same": np.full(rows, 0.1),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < missing)
    return frame.assign(sure=rng.integers(100, size=rows))


def known_pairs(x, y):
    """Return the pairs of values that are known of both records."""
    return [
        (name, x[name], y[name])
        for name in x.index
        if not (pd.isna(x[name]) or pd.isna(y[name]))
    ]


def loop(first, second, of_pair):
    """Return the matrix of a function of two records, one pair after the other."""
    both = pd.concat([first, second])
    return np.array(
        [
            [of_pair(x, y, both) for _, y in second.iterrows()]
            for _, x in first.iterrows()
        ]
    )


def naive_gower(x, y, both):
    parts = []
    for name, a, b in known_pairs(x, y):
        if isinstance(a, str | bool):
            parts.append(float(a != b))
        else:
            spread = both[name].max() - both[name].min()
            parts.append(abs(a - b) / spread if spread else 0.0)
    return math.fsum(parts) / len(parts)


def naive_euclidean(x, y, both):
    parts = []
    for name, a, b in known_pairs(x, y):
        if isinstance(a, str | bool):
            values = [v for v in both[name].unique() if not pd.isna(v)]
            parts.append(sum(((a == v) - (b == v)) ** 2 for v in values))
        else:
            known = both[name].dropna()
            is_constant = known.nunique() == 1
            parts.append(0.0 if is_constant else (a - b) ** 2 / known.var(ddof=0))
    return math.sqrt(math.fsum(parts) * len(x) / len(parts))


@pytest.mark.parametrize(
    ("distance", "of_pair"), [(Gower(), naive_gower), (Euclidean(), naive_euclidean)]
)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_mixed_columns_agree_with_a_double_loop(distance, of_pair, missing):
    rng = stream(0, "mixed")
    first, second = mixed(9, rng, missing=missing), mixed(14, rng, missing=missing)
    np.testing.assert_allclose(
        distance.between(first, second), loop(first, second, of_pair), rtol=1e-12
    )


def test_gower_by_hand():
    # Ages span 40 years and the towns differ, one weight is unknown: (20/40 + 1)/2 and (0 + 0 + 3/3)/3.
    first = pd.DataFrame({"age": [30.0], "town": ["a"], "weight": [60.0]})
    second = pd.DataFrame(
        {
            "age": [50.0, 30.0, 70.0],
            "town": ["b", "a", None],
            "weight": [None, 63.0, 60.0],
        }
    )
    found = Gower().between(first, second)
    np.testing.assert_allclose(found, [[0.75, 1 / 3, 0.5]], rtol=1e-15)


def test_euclidean_agrees_with_partial_distances():
    rng = stream(0, "numbers")
    matrix = rng.normal(size=(30, 6)) * 10.0 ** np.arange(6)
    matrix[rng.random(matrix.shape) < 0.25] = np.nan
    matrix[:, 0] = rng.normal(size=30)
    first, second = matrix[:12], matrix[12:]
    deviation = np.nanstd(matrix, axis=0)
    expected = nan_euclidean_distances(first / deviation, second / deviation)
    np.testing.assert_allclose(Euclidean().between(first, second), expected, rtol=1e-9)


@pytest.mark.parametrize("distance", [Gower(), Euclidean()])
def test_class_is_part_of_a_record_of_a_table(distance):
    frame = pd.DataFrame({"x": [1.0, 1.0, 2.0], "b": [True, True, False]})
    table = table_from_frame(frame, target=["ill", "well", "ill"])
    assert distance.between(table, table)[0, 1] > 0
    assert distance.between(table.features, table.features)[0, 1] == 0
    # Classes are compared by name: here the same ones have other numbers.
    turned = table_from_frame(frame, target=["ill", "new", "ill"])
    assert turned.target[0] == table.target[0]
    other = table_from_frame(frame, target=["well", "also", "well"])
    assert distance.between(table, turned)[0, 0] == 0
    assert distance.between(table, other)[0, 0] > 0
    assert distance.between(table, other)[1, 0] == 0


def test_order_of_columns_does_not_matter():
    rng = stream(0, "order")
    first, second = mixed(5, rng), mixed(6, rng)
    expected = Gower().between(first, second)
    assert (Gower().between(first, second[second.columns[::-1]]) == expected).all()


@pytest.mark.parametrize("distance", [Gower(), Euclidean()])
def test_columns_constant_missing_and_huge(distance):
    frame = pd.DataFrame(
        {
            "constant": [0.1, 0.1, 0.1],
            "missing": [np.nan] * 3,
            "none": np.array([None] * 3, dtype=object),
            "huge": [-1.7e308, 1.7e308, 1.7e308],
        }
    )
    found = distance.between(frame, frame)
    assert np.isfinite(found).all()
    assert found[0, 1] > 0
    assert found[1, 2] == 0


def test_every_type_of_column_that_pandas_has():
    first = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "text": pd.array(["a", "b", None], dtype="string"),
            "level": pd.Categorical(["low", "high", "low"]),
            "yes": [True, False, True],
        }
    )
    second = first.astype({"whole": "float64", "text": object, "level": object})
    found = Gower().between(first, second)
    np.testing.assert_allclose(np.diag(found), 0)
    assert found[0, 2] == pytest.approx(1 / 3)  # 1 against 3, text unknown
    assert found[0, 1] == 1


cells = st.one_of(st.none(), st.floats(-1e6, 1e6), st.integers(-3, 3).map(float))
records = st.lists(
    st.tuples(cells, st.sampled_from(["a", "b", None]), st.sampled_from([0.0, 1.0])),
    min_size=1,
    max_size=7,
)


@settings(deadline=None, max_examples=40)
@given(first=records, second=records)
@pytest.mark.parametrize("distance", [Gower(), Euclidean()])
def test_distances_are_symmetric_and_nothing_for_copies(distance, first, second):
    names = ["number", "text", "sure"]
    x, y = (
        pd.DataFrame(
            {
                name: pd.Series(v, dtype=object)
                for name, v in zip(names, zip(*rows, strict=True), strict=True)
            }
        ).astype({"number": float, "sure": float})
        for rows in (first, second)
    )
    found = distance.between(x, y)
    assert found.shape == (len(x), len(y))
    assert (found >= 0).all()
    np.testing.assert_allclose(found, distance.between(y, x).T, rtol=1e-12, atol=1e-12)
    assert (np.diag(distance.between(x, x)) == 0).all()
    if isinstance(distance, Gower):
        assert (found <= 1 + 1e-15).all()


def naive_ssim(x, y, distance):
    """Return the mean structural similarity of two images, window after window, as the paper writes it."""
    half, L = distance.window // 2, distance.dynamic_range
    c1, c2 = (distance.k1 * L) ** 2, (distance.k2 * L) ** 2
    offsets = range(-half, half + 1)
    weight = {
        (i, j): math.exp(-(i * i + j * j) / (2 * distance.sigma**2))
        for i, j in itertools.product(offsets, offsets)
    }
    total = math.fsum(weight.values())
    weight = {place: w / total for place, w in weight.items()}
    found = []
    for r in range(half, x.shape[0] - half):
        for c in range(half, x.shape[1] - half):

            def mean(image, r=r, c=c):
                return math.fsum(
                    w * image[r + i, c + j] for (i, j), w in weight.items()
                )

            mx, my = mean(x), mean(y)
            vx, vy = mean((x - mx) ** 2), mean((y - my) ** 2)
            cov = mean((x - mx) * (y - my))
            found.append(
                (2 * mx * my + c1)
                * (2 * cov + c2)
                / ((mx**2 + my**2 + c1) * (vx + vy + c2))
            )
    return math.fsum(found) / len(found)


def images(count, rng, shape=(13, 12)):
    """Return a black image, a noisy one and ever smoother ones, from 0 to 255."""
    made = rng.integers(256, size=(count, *shape)).astype(float)
    for k in range(2, count):
        for axis in (0, 1):
            made[k] = sum(np.roll(made[k], s, axis=axis) for s in range(k)) / k
    made[0] = 0
    return made


@pytest.mark.parametrize(
    "distance",
    [
        SMALL,
        StructuralSimilarity(
            shape=(13, 12), dynamic_range=300, window=5, sigma=1.0, k1=0.05, k2=0.1
        ),
    ],
)
def test_structural_similarity_agrees_with_a_loop_over_windows(distance):
    rng = stream(0, "images")
    x, y = images(4, rng), images(5, rng)
    expected = [[1 - naive_ssim(a, b, distance) for b in y] for a in x]
    np.testing.assert_allclose(distance.between(x, y), expected, atol=1e-12)


def test_structural_similarity_of_images_that_can_be_solved():
    # Flat images have no variance: only the luminance term is left. A chequered image and its negative have
    # means of 1/2 but for the Gaussian weights' surplus, and opposite covariances.
    flat = np.array([0.0, 40.0, 200.0])[:, None, None] * np.ones((1, 13, 12))
    c1 = (0.01 * 255) ** 2
    a, b = np.meshgrid([0.0, 40.0, 200.0], [0.0, 40.0, 200.0])
    expected = 1 - (2 * a * b + c1) / (a**2 + b**2 + c1)
    np.testing.assert_allclose(SMALL.between(flat, flat), expected, atol=1e-12)
    board = 255.0 * (np.add.outer(np.arange(13), np.arange(12)) % 2)[None]
    c2 = (0.03 * 255) ** 2
    variance = 255**2 / 4
    opposite = 1 - (c2 - 2 * variance) / (c2 + 2 * variance)
    found = SMALL.between(board, 255 - board)
    np.testing.assert_allclose(found, [[opposite]], rtol=1e-3)


def test_images_as_rows_columns_and_tables_are_the_same(monkeypatch):
    rng = stream(0, "flat")
    x = images(6, rng)
    expected = SMALL.between(x, x)
    flat = x.reshape(6, -1)
    frame = pd.DataFrame(flat).rename(columns=str)
    table = table_from_frame(frame, target=[0, 1] * 3)
    for other in (flat, frame, table):
        np.testing.assert_array_equal(SMALL.between(other, x), expected)
    monkeypatch.setattr("reticent.attack.distances.BLOCK", 7)  # a row at a time
    np.testing.assert_allclose(SMALL.between(x, x), expected, atol=1e-13)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), top=st.sampled_from([1, 2, 255]))
def test_structural_similarity_is_symmetric_and_bounded(seed, top):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(top + 1, size=(3, 13, 12)) for _ in range(2))
    found = SMALL.between(x, y)
    assert ((found >= 0) & (found <= 2)).all()
    np.testing.assert_allclose(found, SMALL.between(y, x).T, atol=1e-12)
    assert (np.diag(SMALL.between(x, x)) == 0).all()
    assert (found > 0).all() or top < 255


def test_all_distances_are_dissimilarities():
    assert all(isinstance(d, Dissimilarity) for d in (Gower(), Euclidean(), SMALL))
    table = builtin_table()
    assert Gower().between(table, table).max() <= 1


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "differ in 'a', 'b'"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": ["1"]}), "differ in 'a'"),
        (np.array([[np.inf]]), np.array([[1.0]]), "column 0 holds infinite values"),
        (np.array([[np.nan, 1]]), np.array([[1, np.nan]]), "1 of 1 pairs of records"),
        (np.ones((1, 2)), np.ones((0, 2)), "0 records and 2 columns"),
        (np.ones((1, 0)), np.ones((1, 0)), "1 records and 0 columns"),
        (np.ones(3), np.ones(3), r"shape \(3,\)"),
        (
            pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}),
            pd.DataFrame({"d": pd.to_datetime(["2020-01-01"])}),
            "column 'd' is of the type datetime64",
        ),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            pd.DataFrame({"a": [1]}),
            "two columns are called 'a'",
        ),
    ],
)
@pytest.mark.parametrize("distance", [Gower(), Euclidean()])
def test_tables_that_cannot_be_compared_are_refused(distance, first, second, words):
    with pytest.raises(InvalidTable, match=words):
        distance.between(first, second)


def test_a_table_and_a_frame_differ_in_the_class():
    table = table_from_frame(pd.DataFrame({"x": [1.0, 2.0]}), target=[0, 1])
    with pytest.raises(InvalidTable, match="differ in the target"):
        Gower().between(table, table.features)


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (np.ones((2, 12, 13)), r"shape \(2, 12, 13\), not \(records, 13, 12\)"),
        (np.ones((2, 155)), r"shape \(2, 155\)"),
        (np.ones((0, 156)), "at least one record"),
        (np.full((1, 156), np.nan), "156 pixels are missing"),
        (np.full((1, 156), 256.0), "between 256 and 256, outside 0 to 255"),
        (np.full((1, 156), -1.0), "between -1 and -1"),
        (np.full((1, 156), "black"), "pixels are not numbers"),
    ],
)
def test_images_that_cannot_be_compared_are_refused(pixels, words):
    for pair in ((pixels, np.ones((1, 156))), (np.ones((1, 156)), pixels)):
        with pytest.raises(InvalidTable, match=words):
            SMALL.between(*pair)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"shape": (28, 28, 3)},
            r"height and width of a grey image, got \(28, 28, 3\)",
        ),
        ({"shape": (8, 28)}, "the images are 8 x 28"),
        ({"window": 4}, "the window is 4 pixels"),
        ({"window": 1}, "an odd number from 3"),
        ({"dynamic_range": 0}, "dynamic_range must be .* got 0"),
        ({"sigma": math.nan}, "sigma must be .* got nan"),
        ({"k2": 0.0}, "k2 must be .* got 0.0"),
    ],
)
def test_impossible_windows_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        StructuralSimilarity(**{"shape": (28, 28), "dynamic_range": 255, **changes})
