"""A pool of regression models: many models on the same records, and what they predicted."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.pool._models import ModelPool

__all__ = ["PredictionPool"]

# An error below a millionth of the target's spread is rounding, so the unit of residuals is never smaller than that.
LEAST_ERROR = 1e-6


@dataclass(frozen=True, kw_only=True)
class PredictionPool(ModelPool):
    """M regression models, each trained on a known part of n records.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Which records trained which model.
    predictions : array of float, shape (M, n)
        What each model predicts for every record, in the precision in which it was given.
    targets : array of float, shape (n,)
        The true quantity of each record.
    """

    predictions: NDArray[np.floating[Any]]
    targets: NDArray[np.float64]

    def __post_init__(self) -> None:
        shape = self.masks.shape
        if self.predictions.shape != shape or self.targets.shape != shape[1:]:
            raise InvalidInput(
                f"masks {shape}, predictions {self.predictions.shape} and targets {self.targets.shape} do not fit "
                "together; pass one row per model and one column per record."
            )
        for name, values in (
            ("predictions", self.predictions),
            ("targets", self.targets),
        ):
            wrong = int((~np.isfinite(values)).sum())
            if wrong:
                raise InvalidInput(
                    f"{wrong} {name} of the pool are NaN or infinite, so nothing can be compared; repair the trainer "
                    "or impute missing values."
                )
        super().__post_init__()

    @cached_property
    def residuals(self) -> NDArray[np.float64]:
        """True quantity minus prediction, shape (M, n)."""
        # Subtracted in double precision: near a large mean, single precision has no digits left.
        return self.targets - self.predictions.astype(np.float64)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the targets, or 1 if they do not vary: a unit that depends on no model."""
        deviation = float(self.targets.std()) if len(self.targets) else 0.0
        return deviation if deviation > 0 else 1.0

    @cached_property
    def typical_error(self) -> float:
        """Median absolute error of the models on records they were not trained on: the unit of residuals.

        It is the mean error if the models predict more than half of these records exactly, and never less than a
        millionth of the targets' spread.
        """
        outside = np.abs(self.residuals)[~self.masks]
        floor = LEAST_ERROR * self.spread
        if not outside.size:
            return floor
        middle = float(np.median(outside))
        return middle if middle > floor else max(float(outside.mean()), floor)

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes, including the residuals that attacks derive from it."""
        return self.masks.nbytes * (1 + 8) + self.predictions.nbytes

    def take(self, rows: NDArray[np.int64] | slice) -> "PredictionPool":
        """Return the pool on some of the records; spread and typical error are then those of these records."""
        return PredictionPool(
            masks=self.masks[:, rows],
            predictions=self.predictions[:, rows],
            targets=self.targets[rows],
        )

    def of_models(self, chosen: NDArray[np.bool_]) -> "PredictionPool":
        part = PredictionPool(
            masks=self.masks[chosen],
            predictions=self.predictions[chosen],
            targets=self.targets,
        )
        vars(part).update(residuals=self.residuals[chosen], spread=self.spread)
        return part

    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each model's squared error, and that of its members' mean, shape (M, n)."""
        means = np.array([self.targets[mask].mean() for mask in self.masks])
        return self.residuals**2, (self.targets - means[:, None]) ** 2
