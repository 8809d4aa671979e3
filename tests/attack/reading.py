"""Tables, products and judgements that the tests of the reader share."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata

from reticent.attack import Challenge, Knowledge, Reader, SealedTags
from reticent.attack.regression import RegressionChallenge
from reticent.data import Table, table_from_frame
from reticent.product import FittedProduct, FittedRegressor, OpenedFile, open_file
from reticent.run import stream

FALSE_ALARM = 1e-6  # chance that correct code fails one statistical test


def people(kind: str, n: int, rng: np.random.Generator, *, quantity: bool = False):
    """Return a table of 2 n people, of whom any half may be members."""
    n = 2 * n
    if kind == "continuous":
        frame = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
        signal = frame["a"] + frame["b"] ** 2 - 1
    elif kind == "binary":
        shares = rng.uniform(0.2, 0.5, 14)
        frame = pd.DataFrame((rng.random((n, 14)) < shares).astype(float))
        frame.columns = [f"b{j}" for j in range(14)]
        signal = frame["b0"] + frame["b1"] - 1
    else:
        frame = pd.DataFrame(
            {
                "age": rng.integers(18, 90, n).astype(float),
                "income": np.round(rng.lognormal(10, 0.8, n)),
                "sex": rng.choice(["f", "m"], n),
                "town": [f"town {k}" for k in rng.zipf(1.4, n) % 1000],
                "note": [" ".join(f"word{k}" for k in rng.zipf(1.3, 8) % 3000) for _ in range(n)],
            }
        )  # fmt: skip
        signal = (frame["age"] - 50) / 20
    noise = rng.normal(size=n)
    if quantity:
        return table_from_frame(frame, target=3 * signal + noise, quantity=True)
    return table_from_frame(frame, target=(signal + noise > 0).astype(int))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Scores beside the truth."""

    scores: np.ndarray
    tags: np.ndarray
    file: OpenedFile

    @property
    def auc(self) -> float:
        ranks = rankdata(self.scores)[self.tags]
        m, u = self.tags.sum(), (~self.tags).sum()
        return float((ranks.sum() - m * (m + 1) / 2) / (m * u))

    def tpr(self, fpr: float = 0.01) -> float:
        outside = np.sort(self.scores[~self.tags])[::-1]
        return float((self.scores[self.tags] > outside[int(fpr * len(outside))]).mean())

    @property
    def tolerance(self) -> float:
        """How far the AUC of scores that know nothing may lie from 1/2, at one false alarm in a million."""
        m, u = self.tags.sum(), (~self.tags).sum()
        error = np.sqrt((m + u + 1) / (12 * m * u))
        return float(norm.isf(FALSE_ALARM / 2) * error)


def trained(estimator: Any, table: Table) -> FittedProduct | FittedRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(table.features, table.target)
    if table.is_quantity:
        return FittedRegressor(estimator=estimator)
    return FittedProduct(estimator=estimator, classes=table.classes)


def judged(
    estimator: Any, table: Table, seed: int, *, others: Table | None = None
) -> Judged:
    """Train on the first half of a table, or on other people, and let the reader score all of it in a random order."""
    half = len(table) // 2
    learned = table.take(np.arange(half)) if others is None else others
    product = trained(estimator, learned)
    order = stream(seed, "order").permutation(len(table))
    return score(open_file(product, table.take(order)), order < half, seed)


def score(file: OpenedFile, tags: np.ndarray, seed: int, **parameters: Any) -> Judged:
    n = len(tags)
    if file.classes:
        answers = np.full((n, file.classes), 1 / file.classes)
        challenge = Challenge(
            probabilities=answers, labels=file.target.astype(np.int64), file=file
        )
    else:
        challenge = RegressionChallenge(
            predictions=np.zeros(n), targets=file.target, file=file
        )
    knowledge = Knowledge(tags=SealedTags(tags, file.people))
    scores = Reader(**parameters).score(
        challenge, knowledge=knowledge, rng=stream(seed, "reader")
    )
    return Judged(scores=scores.values, tags=tags, file=file)
