"""A regression model that learned class probabilities, as the classifier that it then is."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from reticent.errors import InvalidInput

__all__ = ["ProbabilityRegressor"]


class ProbabilityRegressor(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Answer class probabilities by a regression on class probabilities.

    It is fitted to one probability per class and record instead of a class. Of two classes only the second is learned. Predictions
    outside [0, 1] are clipped, and those of more than two classes divided by their sum.

    Parameters
    ----------
    regressor : object
        An unfitted regression model; for more than two classes one that predicts several quantities at once.

    Attributes
    ----------
    regressor_ : object
        The fitted regression model.
    classes_ : array of int
        The numbers of the classes.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> soft = ProbabilityRegressor(DecisionTreeRegressor())
    >>> soft.fit([[0], [1]], [[0.9, 0.1], [0.25, 0.75]]).predict_proba([[1]])
    array([[0.25, 0.75]])
    """

    def __init__(self, regressor: Any = None) -> None:
        self.regressor = regressor

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the regression model to class probabilities of shape (n, c).

        Raises
        ------
        InvalidInput
            If there are not at least two columns of probabilities.
        """
        targets = np.asarray(y, dtype=np.float64)
        if targets.ndim != 2 or targets.shape[1] < 2 or abs(targets - 0.5).max() > 0.5:
            raise InvalidInput(
                f"a ProbabilityRegressor learns one probability per class and record, got targets of shape {targets.shape}; pass an "
                "array of probabilities with one column per class."
            )
        self.classes_ = np.arange(targets.shape[1])
        learned = targets[:, 1] if targets.shape[1] == 2 else targets
        self.regressor_ = clone(self.regressor).fit(X, learned)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        check_is_fitted(self)
        raw = np.asarray(self.regressor_.predict(X), dtype=np.float64).clip(0.0, 1.0)
        if len(self.classes_) == 2:
            return np.column_stack([1 - raw, raw])
        total = raw.sum(axis=1, keepdims=True)
        equal = np.full_like(raw, 1 / raw.shape[1])
        return np.where(total > 0, raw / np.maximum(total, 1e-300), equal)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most probable class of each record."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
