"""Judges: ordinary models whose ranking of real test records says what a table is good for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.run import one_thread

__all__ = ["JUDGES", "CodedRows", "judge_scores"]

JUDGES = ("logistic regression", "gradient boosting", "random forest")
TREES = 100  # of gradient boosting and of the forest, the usual number of both
MOST_INDICATORS = 50  # categories of a column that get an indicator each; the rest share one, so that no identifier fills the memory


@dataclass(frozen=True, kw_only=True, eq=False)
class CodedRows:
    """Rows of a table without the target, coded.

    Parameters
    ----------
    numbers : array of float, shape (n, p)
        Numeric columns; NaN where missing.
    codes : array of int, shape (n, q)
        Categorical columns, coded alike in all tables.
    """

    numbers: NDArray[np.float64]
    codes: NDArray[np.int64]


def judge_scores(
    rows: CodedRows,
    target: NDArray[np.int64],
    asked: CodedRows,
    *,
    classes: int,
    seed: int,
) -> dict[str, NDArray[np.float64]]:
    """Train every judge on a table and return its class probabilities of other records.

    A class that the table lacks gets probability 0; a table of one class only gives the same answer to everybody.

    Parameters
    ----------
    rows : CodedRows
        The table to train on.
    target : array of int, shape (n,)
        Class of each row, from 0.
    asked : CodedRows
        Records to be ranked, coded alike.
    classes : int
        Number of classes.
    seed : int
        Of the judges that draw at random.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = CodedRows(numbers=rng.normal(size=(200, 2)), codes=np.empty((200, 0), int))
    >>> target = (rows.numbers[:, 0] > 0).astype(int)
    >>> scores = judge_scores(rows, target, rows, classes=2, seed=0)
    >>> all(np.mean(s.argmax(axis=1) == target) > 0.95 for s in scores.values())
    True
    """
    y = np.asarray(target)
    if (
        len(y) != len(rows.numbers)
        or len(y) == 0
        or not np.isin(y, range(classes)).all()
    ):
        raise InvalidInput(
            f"{len(y)} targets do not fit {len(rows.numbers)} rows and {classes} classes; pass the class of each row, from 0."
        )
    known = np.unique(y)
    scores = {}
    train, test = _features(rows, rows), _features(rows, asked)
    for name in JUDGES:
        answers = np.zeros((len(test), classes))
        if len(known) == 1:
            answers[:, known] = 1.0
        else:
            with one_thread():
                judge = _judge(name, seed).fit(train, y)
                answers[:, known] = judge.predict_proba(test)
        scores[name] = answers
    return scores


def _judge(name: str, seed: int):  # type: ignore[no-untyped-def]
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == "logistic regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    if name == "gradient boosting":
        return HistGradientBoostingClassifier(max_iter=TREES, random_state=seed)
    # Leaves of five rows: single rows rank worse and take several times longer.
    return RandomForestClassifier(TREES, min_samples_leaf=5, random_state=seed)


def _features(rows: CodedRows, shown: CodedRows) -> NDArray[np.float64]:
    """Return numbers without gaps, where they were missing, and an indicator for each frequent category of the training table."""
    parts = []
    for ours, theirs in zip(rows.numbers.T, shown.numbers.T, strict=True):
        gaps = np.isnan(ours)
        fill = float(np.median(ours[~gaps])) if not gaps.all() else 0.0
        parts.append(np.where(np.isnan(theirs), fill, theirs)[:, None])
        if gaps.any():
            parts.append(np.isnan(theirs)[:, None].astype(np.float64))
    for ours, theirs in zip(rows.codes.T, shown.codes.T, strict=True):
        values, counts = np.unique(ours, return_counts=True)
        frequent = values[np.argsort(-counts, kind="stable")[:MOST_INDICATORS]]
        parts.append((theirs[:, None] == frequent).astype(np.float64))
    return np.hstack(parts)
