"""A fitted estimator seen from outside, with classes in the table's order and checked outputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax

from reticent.errors import InvalidPredictions, OutputRefused
from reticent.product._skops import skops_io
from reticent.product.internals import Internals
from reticent.product.stages import Stages, estimator_stages
from reticent.run import write_bytes

__all__ = ["MODEL_FILE", "FittedProduct", "estimator_bytes"]

MODEL_FILE = "product.skops"


@dataclass(frozen=True, kw_only=True)
class FittedProduct:
    """A classifier with ``predict_proba`` or ``decision_function``, as a :class:`Predictor`.

    Decision values become probabilities by the logistic function or softmax. These rank records
    as the decision values do, but they are not calibrated.

    Parameters
    ----------
    estimator : object
        Any fitted estimator.
    classes : tuple of str
        Names of the classes, in the table's order.
    warnings : tuple of str
        Kinds of warnings that the estimator gave while it was trained.
    learned : tuple of str
        Names of the class numbers 0, 1, ... if the estimator was trained on numbers, as by
        reticent's trainers; empty if it was trained on names, or if that is not known.
    """

    estimator: Any
    classes: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()

    @property
    def file_name(self) -> str:
        """Name of the file in a folder that the product is saved to."""
        return MODEL_FILE

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

    @property
    def quantity(self) -> bool:
        """Whether the product predicts a quantity: no, it predicts a class."""
        return False

    @property
    def has_probabilities(self) -> bool:
        """Whether the estimator itself gives probabilities."""
        return hasattr(self.estimator, "predict_proba")

    def predict_proba(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return a probability per record and class."""
        return self.asked(features)[0]

    def asked(
        self, features: pd.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return probabilities and outputs, of one query."""
        values = self.outputs(features)
        if self.has_probabilities:
            return values, values
        if len(self.classes) == 2:
            return np.column_stack([expit(values[:, 0]), expit(values[:, 1])]), values
        return np.asarray(softmax(values, axis=1)), values

    def internals(
        self, features: pd.DataFrame, labels: NDArray[np.int64]
    ) -> Internals | None:
        """Return None: attacks do not open estimators."""
        return None

    def stages(self, features: pd.DataFrame) -> Stages:
        """Return the records after every step of preparation inside the estimator."""
        return estimator_stages(self.estimator, features)

    def outputs(self, features: pd.DataFrame) -> NDArray[np.float64]:
        """Return probabilities if the estimator gives them, else decision values, one column per class."""
        if self.has_probabilities:
            raw = self._ask("predict_proba", features)
        elif hasattr(self.estimator, "decision_function"):
            if self._compares_pairs():
                raise InvalidPredictions(
                    "the product's decision values compare pairs of classes (decision_function_shape='ovo'), so "
                    "none belongs to a class; train it with decision_function_shape='ovr'."
                )
            raw = self._ask("decision_function", features)
            if raw.ndim == 1:
                raw = np.column_stack([-raw, raw])
        else:
            raise InvalidPredictions(
                f"{type(self.estimator).__name__} has neither predict_proba nor decision_function, so "
                "there is nothing to compare records by; use a classifier that gives probabilities."
            )
        aligned = self._aligned(raw, len(features))
        if not np.isfinite(aligned).all():
            bad = int((~np.isfinite(aligned)).any(axis=1).sum())
            raise InvalidPredictions(
                f"the product's outputs for {bad} of {len(features)} records are NaN or infinite, so no "
                "attack can be judged; repair the model or impute missing values."
            )
        if self.has_probabilities and (abs(aligned - 0.5) > 0.5 + 1e-6).any():
            raise InvalidPredictions(
                f"predict_proba gives values from {aligned.min():.3g} to {aligned.max():.3g}, which are no "
                "probabilities; return values between 0 and 1, or call the method decision_function."
            )
        return aligned

    def _ask(self, method: str, features: pd.DataFrame) -> NDArray[np.float64]:
        try:
            answers = getattr(self.estimator, method)(features)
            return np.asarray(answers, dtype=np.float64)
        except Exception as error:
            reason = " ".join(str(error).split())[:200] or "(no message)"
            raise InvalidPredictions(
                f"the product raised {type(error).__name__} when asked about {len(features)} records: {reason}; "
                f"try its {method} on this table outside reticent first."
            ) from error

    def _compares_pairs(self) -> bool:
        """Whether decision values compare pairs of classes; the shape does not tell, as three classes have three pairs."""
        if len(self.classes) == 2 or not hasattr(self.estimator, "get_params"):
            return False
        return any(
            name.endswith("decision_function_shape") and value == "ovo"
            for name, value in self.estimator.get_params(deep=True).items()
        )

    def _aligned(self, raw: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
        """Return outputs with one column per class of the table, in the table's order."""
        known = getattr(self.estimator, "classes_", None)
        if known is not None:
            numbers = self._class_numbers(known)
        elif self.learned:
            numbers = self._class_numbers(range(len(self.learned)))
        else:
            numbers = list(range(len(self.classes)))
        if raw.ndim != 2 or raw.shape != (rows, len(numbers)):
            raise InvalidPredictions(
                f"the product's outputs have the shape {raw.shape} where ({rows}, {len(numbers)}) was expected: "
                "one row per record and one column per class; check its predict_proba."
            )
        if numbers == list(range(len(self.classes))):
            return raw
        # A class the product never learned has probability 0, or the lowest decision value.
        missing = 0.0 if self.has_probabilities else float(raw.min(initial=0.0)) - 1.0
        out = np.full((rows, len(self.classes)), missing)
        out[:, numbers] = raw
        return out

    def _class_numbers(self, known: Sequence[object]) -> list[int]:
        """Return the table's number of each class that the estimator knows."""
        by_name = {name: k for k, name in enumerate(self.classes)}
        texts = [
            str(int(c))
            if isinstance(c, float | np.floating) and float(c).is_integer()
            else str(c)
            for c in known
        ]
        if self.learned and _are_numbers(texts, below=len(self.learned)):
            # Otherwise the class number 2 could be mistaken for a class of the table called "2".
            texts = [self.learned[int(text)] for text in texts]
        if all(text in by_name for text in texts):
            return [by_name[text] for text in texts]
        if not self.learned and _are_numbers(texts, below=len(self.classes)):
            return [int(text) for text in texts]
        raise InvalidPredictions(
            f"the product knows the classes {', '.join(texts[:6])} but the table has "
            f"{', '.join(self.classes[:6])}; audit it on the target it was trained for."
        )


def estimator_bytes(estimator: object) -> bytes:
    """Return the skops file of an estimator.

    Raises
    ------
    OutputRefused
        If it holds something that cannot be stored without pickle.
    """
    skops = skops_io()

    try:
        return bytes(skops.dumps(estimator))
    except Exception as error:
        raise OutputRefused(
            f"{type(estimator).__name__} cannot be stored without pickle ({error}); "
            "use a model of scikit-learn, XGBoost, LightGBM or CatBoost."
        ) from error


def _are_numbers(texts: Sequence[str], *, below: int) -> bool:
    return all(text.isdigit() and int(text) < below for text in texts)
