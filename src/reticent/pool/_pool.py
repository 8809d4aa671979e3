"""A pool of classifiers: many models on the same records, and the class probabilities they gave."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput
from reticent.pool._models import ModelPool

__all__ = ["Pool", "logit_of_probability", "logit_of_truth"]

# Probabilities nearer to 0 or 1 are not told apart, so that logits stay within 14: single precision, in which answers
# are stored, resolves 1 - p only to about 1e-7.
FLOOR = 1e-6


def logit_of_truth(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the logit of the true class's probability, per record (and model).

    The logit is nearly normal over models where the probability is not: phi of Carlini et al.,
    "Membership inference attacks from first principles", arXiv:2112.03570, Section IV-C.

    Parameters
    ----------
    probabilities : array, shape (..., n, c)
        Class probabilities that the models gave.
    labels : array of int, shape (n,)
        True classes.

    Examples
    --------
    >>> logit_of_truth(np.array([[0.5, 0.5]]), np.array([0]))
    array([0.])
    """
    truth = np.take_along_axis(
        probabilities,
        np.broadcast_to(labels[:, None], (*probabilities.shape[:-1], 1)),
        -1,
    )[..., 0].astype(np.float64)
    return logit_of_probability(truth)


def logit_of_probability(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(p / (1 - p)), with p kept at least ``FLOOR`` away from 0 and 1."""
    clipped = probability.clip(FLOOR, 1 - FLOOR)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


@dataclass(frozen=True, kw_only=True)
class Pool(ModelPool):
    """M classifiers, each trained on a known part of n records.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Which records trained which model.
    probabilities : array of float, shape (M, n, c)
        Class probabilities that each model gave for all records.
    labels : array of int, shape (n,)
        True classes.
    """

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        m, n = self.masks.shape
        if self.probabilities.shape[:2] != (m, n) or self.labels.shape != (n,):
            raise InvalidInput(
                f"masks {self.masks.shape}, answers {self.probabilities.shape} and labels {self.labels.shape} "
                "do not fit together; pass one row per model and one column per record."
            )
        super().__post_init__()

    @property
    def nbytes(self) -> int:
        """Bytes that a copy takes, including the logits and probabilities of the true class that attacks derive from it."""
        return self.masks.nbytes * (1 + 2 * 8) + self.probabilities.nbytes

    @cached_property
    def logits(self) -> NDArray[np.float64]:
        """Logit of the true class, shape (M, n)."""
        return logit_of_truth(self.probabilities, self.labels)

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """Probability of the true class, shape (M, n)."""
        wanted = np.broadcast_to(self.labels[:, None], (*self.masks.shape, 1))
        picked = np.take_along_axis(self.probabilities, wanted, -1)[..., 0]
        return picked.astype(np.float64)

    def take(self, rows: NDArray[np.int64] | slice) -> "Pool":
        """Return the pool on some of the records; what was computed for all records is not computed again."""
        part = Pool(
            masks=self.masks[:, rows],
            probabilities=self.probabilities[:, rows],
            labels=self.labels[rows],
        )
        vars(part).update(logits=self.logits[:, rows], truth=self.truth[:, rows])
        return part

    def of_models(self, chosen: NDArray[np.bool_]) -> "Pool":
        part = Pool(
            masks=self.masks[chosen],
            probabilities=self.probabilities[chosen],
            labels=self.labels,
        )
        vars(part).update(logits=self.logits[chosen], truth=self.truth[chosen])
        return part

    def errors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where each model is wrong, and where its members' most frequent class is: 1 or 0, shape (M, n)."""
        answers = self.probabilities.argmax(axis=2)
        classes = self.probabilities.shape[2]
        frequent = np.array(
            [
                np.bincount(self.labels[mask], minlength=classes).argmax()
                for mask in self.masks
            ]
        )
        wrong, constant = answers != self.labels, frequent[:, None] != self.labels
        return wrong.astype(np.float64), constant.astype(np.float64)
