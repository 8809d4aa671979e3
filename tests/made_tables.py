"""Tables of made-up people, and generators whose leak is known."""

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import norm, rankdata


def people(count, rng):
    """Return people with exact ages in days, laboratory values, categories and a missing value here and there."""
    age = rng.integers(18 * 365, 90 * 365, count)
    weight = rng.normal(60 + age / 2_500, 12, count).round(1)
    pressure = rng.normal(100 + age / 1_000, 12, count).round()
    sex = rng.choice(["f", "m"], count)
    town = rng.choice([f"town {k}" for k in range(12)], count, p=_falling(12))
    smoker = rng.random(count) < 0.25
    risk = (age / 365 - 50) / 10 + (weight - 70) / 15 + smoker
    ill = np.where(rng.random(count) < 1 / (1 + np.exp(-1.5 * risk)), "yes", "no")
    frame = pd.DataFrame(
        {
            "age": age,
            "weight": weight,
            "pressure": pressure,
            "sex": sex,
            "town": town,
            "smoker": smoker,
            "ill": ill,
        }
    )
    frame.loc[rng.random(count) < 0.05, "pressure"] = np.nan
    return frame


def copied(real, rng):
    """Every row, in another order."""
    return real.iloc[rng.permutation(len(real))].reset_index(drop=True)


def copied_among(real, fresh, share, rng):
    """A share of the rows among those of fresh people."""
    count = round(share * len(real))
    rows = pd.concat([real.iloc[:count], fresh.iloc[count:]], ignore_index=True)
    return rows.iloc[rng.permutation(len(rows))].reset_index(drop=True)


def resampled(real, rng):
    """A Gaussian copula that re-emits observed values: no row is near anybody's, every value is somebody's."""
    codes = pd.DataFrame({c: _codes(real[c]) for c in real})
    scores = np.column_stack(
        [norm.ppf((rankdata(codes[c]) - 0.5) / len(real)) for c in real]
    )
    drawn = norm.cdf(rng.multivariate_normal(np.zeros(real.shape[1]), np.corrcoef(scores.T), len(real)))  # fmt: skip
    made = {}
    for j, c in enumerate(real):
        order = np.argsort(codes[c].to_numpy(), kind="stable")
        place = (drawn[:, j] * len(real)).astype(int).clip(0, len(real) - 1)
        made[c] = real[c].to_numpy()[order][place]
    return pd.DataFrame(made)


def mixed(real, rng):
    """SMOTE: points between a row and one of its five nearest rows; categories are taken from one of the two."""
    numbers = ["age", "weight", "pressure"]
    filled = real[numbers].fillna(real[numbers].median()).to_numpy(float)
    scaled = filled / filled.std(axis=0)
    codes = np.column_stack([_codes(real[c]) for c in ("sex", "town", "smoker", "ill")])
    _, near = cKDTree(np.hstack([scaled, codes])).query(np.hstack([scaled, codes]), 6)
    first = rng.integers(len(real), size=len(real))
    second = near[first, rng.integers(1, 6, len(real))]
    between = rng.random((len(real), 1))
    made = real.iloc[first].reset_index(drop=True)
    made[numbers] = filled[first] + between * (filled[second] - filled[first])
    return made


def _codes(column):
    return pd.factorize(column, sort=True, use_na_sentinel=True)[0].astype(float)


def _falling(count):
    weights = 1 / np.arange(1, count + 1)
    return weights / weights.sum()
