"""What an attacker of a regression model is shown, and what it may know."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.attack._base import Knowledge
from reticent.attack._searched import Searched
from reticent.errors import InvalidInput, InvalidPredictions
from reticent.pool import PredictionPool
from reticent.product import OpenedFile

__all__ = ["RegressionChallenge", "RegressionKnowledge"]


@dataclass(frozen=True, kw_only=True)
class RegressionChallenge:
    """The product's prediction for every record in question, and the records' true quantities.

    There is no tag in it: which records are members is what the attacker must say.

    Parameters
    ----------
    predictions : array of float, shape (n,)
        The product's prediction for each record.
    targets : array of float, shape (n,)
        The true quantity of each record.
    features : array of float, shape (n, d), or None
        The records themselves as numbers, without the target, for attacks that look at them; missing
        values are NaN.
    file : OpenedFile or None
        The product's file laid beside the records, for attackers who hold it.
    searched : Searched or None
        What was found of the records in that file, if it was searched before.
    """

    predictions: NDArray[np.float64]
    targets: NDArray[np.float64]
    features: NDArray[np.float64] | None = None
    file: OpenedFile | None = None
    searched: Searched | None = None

    def __post_init__(self) -> None:
        f, y = self.predictions, self.targets
        if f.ndim != 1 or y.shape != f.shape:
            raise InvalidPredictions(
                f"predictions of shape {f.shape} do not fit targets of shape {y.shape}; pass one number of each per record."
            )
        for name, values in (("predictions", f), ("targets", y)):
            wrong = int((~np.isfinite(values)).sum())
            if wrong:
                raise InvalidPredictions(
                    f"{wrong} of {len(values)} {name} are NaN or infinite, so no attack can be judged; repair the model "
                    "or impute missing values."
                )
        if self.features is not None and (
            self.features.ndim != 2 or len(self.features) != len(f)
        ):
            raise InvalidPredictions(
                f"features of shape {self.features.shape} do not fit {len(f)} predictions; pass one row per record."
            )

        if self.file is not None and len(self.file) != len(f):
            raise InvalidPredictions(
                f"the file was laid beside {len(self.file)} records but there are {len(f)} predictions; pass one of each per record."
            )

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def residuals(self) -> NDArray[np.float64]:
        """True quantity minus prediction of each record, y - f."""
        return np.asarray(self.targets - self.predictions, dtype=np.float64)

    def need_features(self, attack: str) -> NDArray[np.float64]:
        """Return the records as numbers, or refuse because an attack cannot do without them."""
        if self.features is None:
            raise InvalidInput(
                f"the attack {attack!r} learns from the records, but only the predictions were passed; pass the features as well."
            )
        return self.features

    @property
    def nbytes(self) -> int:
        """Bytes that a copy of it takes."""
        size = self.predictions.nbytes + self.targets.nbytes
        size += 0 if self.file is None else self.file.nbytes
        size += 0 if self.searched is None else self.searched.nbytes
        return size + (0 if self.features is None else self.features.nbytes)

    def take(self, rows: NDArray[np.int64]) -> "RegressionChallenge":
        """Return the same challenge with only some of the records."""
        return RegressionChallenge(
            predictions=self.predictions[rows],
            targets=self.targets[rows],
            features=None if self.features is None else self.features[rows],
            file=None if self.file is None else self.file.take(rows),
            searched=None if self.searched is None else self.searched.take(rows),
        )


# What an attacker of a regression model has besides the predictions: tags of other records, and perhaps a pool.
RegressionKnowledge = Knowledge[PredictionPool]
