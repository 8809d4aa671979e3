"""A fitted regression model seen from outside, with checked predictions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from reticent.errors import InvalidPredictions
from reticent.product._fitted import MODEL_FILE, estimator_bytes
from reticent.product.internals import Internals
from reticent.product.stages import Stages, estimator_stages
from reticent.run import write_bytes

__all__ = ["FittedRegressor", "declares_class", "declares_quantity"]


def declares_quantity(estimator: object) -> bool:
    """Whether an estimator says that it is a regression model."""
    return _tagged(estimator) and bool(is_regressor(estimator))


def declares_class(estimator: object) -> bool:
    """Whether an estimator says that it is a classifier."""
    return _tagged(estimator) and bool(is_classifier(estimator))


def _tagged(estimator: object) -> bool:
    # Estimators that do not derive from scikit-learn's classes have no tags, and scikit-learn raises when asked about them.
    return hasattr(estimator, "__sklearn_tags__")


@dataclass(frozen=True, kw_only=True)
class FittedRegressor:
    """A fitted estimator whose ``predict`` gives a quantity, as a :class:`Regressor`.

    Parameters
    ----------
    estimator : object
        Any fitted estimator with ``predict``.
    warnings : tuple of str
        Kinds of warnings that the estimator gave while it was trained.
    """

    estimator: Any
    warnings: tuple[str, ...] = ()

    @property
    def quantity(self) -> bool:
        """Whether the product predicts a quantity: yes."""
        return True

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes: empty, because a quantity has none."""
        return ()

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the class numbers: empty, because a quantity has none."""
        return ()

    @property
    def has_probabilities(self) -> bool:
        """Whether the product itself gives its answers: yes, predictions."""
        return True

    @property
    def file_name(self) -> str:
        """Name of the file in a folder that the product is saved to."""
        return MODEL_FILE

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return None: attacks do not open estimators."""
        return None

    def save(self, file: Path) -> None:
        """Write the estimator to a skops file.

        Raises
        ------
        OutputRefused
            If it holds something that cannot be stored without pickle.
        """
        write_bytes(file, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the skops file."""
        return estimator_bytes(self.estimator)

    def predict(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the predicted quantity of each record, shape (n,).

        Raises
        ------
        InvalidPredictions
            If the estimator raises, or its predictions are not one finite number per record.
        """
        if not hasattr(self.estimator, "predict"):
            raise InvalidPredictions(
                f"{type(self.estimator).__name__} has no predict, so there is nothing to compare records by; use a "
                "regression model."
            )
        try:
            raw = np.asarray(self.estimator.predict(features), dtype=np.float64)
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or "(no message)"
            raise InvalidPredictions(
                f"the product raised {type(error).__name__} when asked about {len(features)} records: {reason}; "
                "try its predict on this table outside reticent first."
            ) from error
        if raw.shape == (len(features), 1):
            raw = raw[:, 0]
        if raw.shape != (len(features),):
            raise InvalidPredictions(
                f"the product's predictions have the shape {raw.shape} where ({len(features)},) was expected: one "
                "quantity per record; audit each quantity separately."
            )
        wrong = int((~np.isfinite(raw)).sum())
        if wrong:
            raise InvalidPredictions(
                f"the product's predictions for {wrong} of {len(raw)} records are NaN or infinite, so no attack can be "
                "judged; repair the model or impute missing values."
            )
        return raw

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records after every step of preparation inside the estimator."""
        return estimator_stages(self.estimator, features)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return the predictions as one column, shape (n, 1)."""
        return self.predict(features)[:, None]

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return predictions, which are the outputs as well."""
        outputs = self.outputs(features)
        return outputs, outputs

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Refuse: a regression model gives no probabilities."""
        raise InvalidPredictions(
            f"{type(self.estimator).__name__} predicts a quantity and gives no probabilities of classes; ask for predict."
        )
