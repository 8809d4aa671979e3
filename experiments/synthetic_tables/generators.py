"""Generators whose faults are known, and two kinds of null: fresh people, and a generator of other people."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tables import People, numeric

Generator = Callable[[People, np.random.Generator], pd.DataFrame]


def fresh_people(people: People, rng: np.random.Generator) -> pd.DataFrame:
    return people.fresh.iloc[rng.permutation(len(people.fresh))].reset_index(drop=True)


def copies(share: float) -> Generator:
    """Members as they are among fresh people."""

    def make(people: People, rng: np.random.Generator) -> pd.DataFrame:
        n = len(people.train)
        count = round(share * n)
        members = people.train.iloc[rng.permutation(n)[:count]]
        others = people.fresh.iloc[rng.permutation(len(people.fresh))[: n - count]]
        both = pd.concat([members, others])
        return both.iloc[rng.permutation(n)].reset_index(drop=True)

    return make


def verbatim(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """All members, in the order of the real table."""
    return people.train.copy()


def jitter(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """A bootstrap of the members with 2 % of the range as noise and 5 % of the categories redrawn."""
    train, n = people.train, len(people.train)
    made = train.iloc[rng.integers(n, size=n)].reset_index(drop=True)
    for column in made:
        if column in numeric(train):
            width = people.table[column].max() - people.table[column].min()
            noisy = made[column] + rng.normal(0, 0.02 * width, n)
            made[column] = rounded(noisy.to_numpy(), train[column])
        else:
            changed = rng.random(n) < 0.05
            drawn = train[column].to_numpy()[rng.integers(n, size=n)]
            made[column] = np.where(changed, drawn, made[column])
    return made


def independent(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """Every column drawn by itself from the members' values."""
    train, n = people.train, len(people.train)
    return pd.DataFrame(
        {c: train[c].to_numpy()[rng.integers(n, size=n)] for c in train}
    )


def copula(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """A Gaussian copula whose values are those of the members."""
    train, n = people.train, len(people.train)
    ordered = {c: np.sort(train[c].to_numpy()) for c in train}
    scores = np.column_stack(
        [
            norm.ppf(
                (np.lexsort((rng.random(n), train[c].to_numpy())).argsort() + 0.5) / n
            )
            for c in train
        ]
    )
    correlation = np.corrcoef(scores.T)
    drawn = rng.multivariate_normal(
        np.zeros(len(correlation)), correlation, n, check_valid="ignore"
    )
    places = np.minimum((norm.cdf(drawn) * n).astype(int), n - 1)
    return pd.DataFrame({c: ordered[c][places[:, j]] for j, c in enumerate(train)})


def smote(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """Points between a member and one of its five nearest members."""
    train, n = people.train, len(people.train)
    near = _neighbours(people)
    first = rng.integers(n, size=n)
    second = near[first, rng.integers(near.shape[1], size=n)]
    share = rng.random(n)
    made = {}
    for column in train:
        a, b = train[column].to_numpy()[first], train[column].to_numpy()[second]
        if column in numeric(train):
            made[column] = rounded(a + share * (b - a), train[column])
        else:
            made[column] = np.where(share < 0.5, a, b)
    return pd.DataFrame(made)


def cart(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """Column by column, each from a tree on those before it, with values of the leaf's members (synthpop's default)."""
    return _cart(people.train, rng)


def cart_of_others(people: People, rng: np.random.Generator) -> pd.DataFrame:
    """The same generator, trained on people who are neither members nor non-members."""
    return _cart(people.fresh, rng)


def tree(epsilon: float | None) -> Generator:
    """A tree of pairwise marginals over bins; with epsilon, Gaussian noise on the counts (delta 1e-5, one row added or removed).

    The tree itself is learned from the fresh people, as if it were public, so that noise on the counts is all that a guarantee needs.
    """

    def make(people: People, rng: np.random.Generator) -> pd.DataFrame:
        return _tree(people, epsilon, rng)

    return make


GENERATORS: dict[str, Generator] = {
    "fresh people": fresh_people,
    "CART of other people": cart_of_others,
    "copies, 1 %": copies(0.01),
    "copies, 10 %": copies(0.1),
    "copies, all": copies(1.0),
    "copies, all, in order": verbatim,
    "jitter": jitter,
    "independent marginals": independent,
    "Gaussian copula": copula,
    "SMOTE": smote,
    "CART": cart,
    "tree, no noise": tree(None),
    "tree, epsilon 1": tree(1.0),
}
NULLS = ("fresh people", "CART of other people")
DEEP = ("CTGAN", "TVAE")  # made by deep.py in an environment of their own


def rounded(values: np.ndarray, like: pd.Series) -> np.ndarray:
    """Return values with as many decimals as the column has, inside its range."""
    decimals = next((d for d in range(4) if np.allclose(like, like.round(d))), 4)
    kept = np.clip(values, like.min(), like.max()).round(decimals)
    return kept.astype(like.dtype)


def _neighbours(people: People) -> np.ndarray:
    train = people.train
    total = np.zeros((len(train), len(train)))
    for column in train:
        values = train[column].to_numpy()
        if column in numeric(train):
            width = people.table[column].max() - people.table[column].min()
            total += np.abs(values[:, None] - values) / width
        else:
            total += values[:, None] != values
    np.fill_diagonal(total, np.inf)
    return np.argpartition(total, 5, axis=1)[:, :5]


def _cart(train: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    n = len(train)
    made: dict[str, np.ndarray] = {}
    numbers = numeric(train)
    for column in train:
        values = train[column].to_numpy()
        before = list(made)
        if not before:
            made[column] = values[rng.integers(n, size=n)]
            continue
        seen = pd.get_dummies(train[before]).astype(float)
        drawn = pd.get_dummies(pd.DataFrame(made)).astype(float)
        drawn = drawn.reindex(columns=seen.columns, fill_value=0.0)
        kind = DecisionTreeRegressor if column in numbers else DecisionTreeClassifier
        fitted = kind(min_samples_leaf=5, random_state=0).fit(seen.to_numpy(), values)
        leaf, asked = fitted.apply(seen.to_numpy()), fitted.apply(drawn.to_numpy())
        made[column] = np.array(
            [values[rng.choice(np.flatnonzero(leaf == place))] for place in asked]
        )
    return pd.DataFrame(made)[list(train)]


def _tree(
    people: People, epsilon: float | None, rng: np.random.Generator
) -> pd.DataFrame:
    names = list(people.table)
    numbers = numeric(people.table)
    edges = {
        c: np.linspace(people.table[c].min(), people.table[c].max(), 21)
        for c in numbers
    }
    levels = {c: sorted(people.table[c].unique()) for c in names if c not in numbers}
    sizes = [20 if c in numbers else len(levels[c]) for c in names]

    def cells(frame: pd.DataFrame) -> np.ndarray:
        return np.column_stack(
            [
                np.clip(np.searchsorted(edges[c], frame[c], side="right") - 1, 0, 19)
                if c in numbers
                else frame[c].map({v: i for i, v in enumerate(levels[c])})
                for c in names
            ]
        ).astype(int)

    parents = _chow_liu(cells(people.fresh), sizes)
    members = cells(people.train)
    n = len(members)
    # Each row is in one cell of each of the tables, so the root of their number is the sensitivity; rho of zCDP from epsilon and delta.
    tables = len(names)
    scale = 0.0
    if epsilon is not None:
        wide = np.sqrt(np.log(1e5))
        rho = (np.sqrt(wide**2 + epsilon) - wide) ** 2
        scale = np.sqrt(tables / (2 * rho))
    made = np.zeros((n, len(names)), dtype=int)
    for child, parent in parents:
        if parent is None:
            counts = np.bincount(members[:, child], minlength=sizes[child]).astype(
                float
            )
            chance = _shares(counts + rng.normal(0, scale, counts.shape))
            made[:, child] = rng.choice(sizes[child], n, p=chance)
            continue
        counts = np.zeros((sizes[parent], sizes[child]))
        np.add.at(counts, (members[:, parent], members[:, child]), 1)
        noisy = counts + rng.normal(0, scale, counts.shape)
        for value in range(sizes[parent]):
            here = made[:, parent] == value
            made[here, child] = rng.choice(
                sizes[child], here.sum(), p=_shares(noisy[value])
            )
    result = {}
    for j, c in enumerate(names):
        if c in numbers:
            low, high = edges[c][made[:, j]], edges[c][made[:, j] + 1]
            result[c] = rounded(rng.uniform(low, high), people.table[c])
        else:
            result[c] = np.array(levels[c])[made[:, j]]
    return pd.DataFrame(result)


def _shares(counts: np.ndarray) -> np.ndarray:
    kept = np.maximum(counts, 0)
    total = kept.sum()
    return kept / total if total > 0 else np.full(len(kept), 1 / len(kept))


def _chow_liu(cells: np.ndarray, sizes: list[int]) -> list[tuple[int, int | None]]:
    """Return children with their parents, parents first: the tree with the most mutual information."""
    width = len(sizes)
    information = np.zeros((width, width))
    for i in range(width):
        for j in range(i):
            joint = np.zeros((sizes[i], sizes[j]))
            np.add.at(joint, (cells[:, i], cells[:, j]), 1 / len(cells))
            apart = joint.sum(1, keepdims=True) * joint.sum(0)
            inside = joint > 0
            information[i, j] = (
                joint[inside] * np.log(joint[inside] / apart[inside])
            ).sum()
            information[j, i] = information[i, j]
    order: list[tuple[int, int | None]] = [(0, None)]
    while len(order) < width:
        inside = [child for child, _ in order]
        outside = [j for j in range(width) if j not in inside]
        parent, child = max(
            ((i, j) for i in inside for j in outside),
            key=lambda pair: information[pair],
        )
        order.append((child, parent))
    return order
