"""The pool: many models on the records in question, who was in which, and what they answered."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.errors import InvalidInput

__all__ = ["Pool", "balanced_masks", "logit_of_probability", "logit_of_truth"]

FLOOR = 1e-6  # probabilities nearer to 0 or 1 are not told apart: logits stay within 14


def logit_of_truth(
    probabilities: NDArray[np.floating], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the logit of the true class's probability, per record (and model).

    The logit is nearly normal over models where the probability is not: phi of Carlini et al.,
    "Membership inference attacks from first principles", arXiv:2112.03570, Section IV-C.

    Parameters
    ----------
    probabilities : array, shape (..., n, c)
        Answers.
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
    """Return log(p / (1 - p)), p kept away from 0 and 1."""
    clipped = probability.clip(FLOOR, 1 - FLOOR)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


def balanced_masks(
    models: int, units: NDArray[np.int64], *, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return membership masks in which every unit is in exactly half of the models.

    Models come in pairs, each trained on the half of the units that the other was not.

    Parameters
    ----------
    models : int
        Number of models, even and at least 2.
    units : array of int, shape (n,)
        Unit of each record; its records go together.
    rng : numpy.random.Generator
        The stream of the masks.

    Examples
    --------
    >>> masks = balanced_masks(4, np.arange(6), rng=np.random.default_rng(0))
    >>> masks.sum(axis=0)
    array([2, 2, 2, 2, 2, 2])
    """
    if models < 2 or models % 2:
        raise InvalidInput(
            f"a pool of {models} models cannot hold every record in half of them; use an even number."
        )
    names, unit_of_row = np.unique(units, return_inverse=True)
    masks = np.empty((models, len(units)), dtype=bool)
    for pair in range(models // 2):
        chosen = rng.permutation(len(names)) % 2 == 0
        masks[2 * pair] = chosen[unit_of_row]
        masks[2 * pair + 1] = ~masks[2 * pair]
    return masks


@dataclass(frozen=True, kw_only=True)
class Pool:
    """M models, each trained on a known part of n records.

    Parameters
    ----------
    masks : array of bool, shape (M, n)
        Which records trained which model.
    probabilities : array of float, shape (M, n, c)
        Each model's answers on all records.
    labels : array of int, shape (n,)
        True classes.
    """

    masks: NDArray[np.bool_]
    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        m, n = self.masks.shape
        if self.probabilities.shape[:2] != (m, n) or self.labels.shape != (n,):
            raise InvalidInput(
                f"masks {self.masks.shape}, answers {self.probabilities.shape} and labels {self.labels.shape} "
                "do not fit together; pass one row a model and one column a record."
            )
        inside = self.masks.sum(axis=0)
        if m < 2 or (n and (inside.min() < 1 or inside.max() > m - 1)):
            raise InvalidInput(
                "some record is in all models of the pool or in none, so nothing can be compared; use balanced_masks."
            )

    def __len__(self) -> int:
        return len(self.masks)

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

    def mean(self, values: NDArray[np.float64], *, inside: bool) -> NDArray[np.float64]:
        """Return the mean of values (M, n) over the models with, or without, each record."""
        chosen = self.masks if inside else ~self.masks
        total: NDArray[np.float64] = np.where(chosen, values, 0.0).sum(axis=0)
        return np.asarray(total / chosen.sum(axis=0))

    def take(self, rows: NDArray[np.int64]) -> "Pool":
        """Return the pool on some of the records."""
        return Pool(
            masks=self.masks[:, rows],
            probabilities=self.probabilities[:, rows],
            labels=self.labels[rows],
        )

    def first(self, models: int) -> "Pool":
        """Return the pool of the first models, an even number."""
        return self._some(np.arange(len(self)) < models)

    def games(self, *, most: int | None = None) -> Iterator[tuple[int, "Pool"]]:
        """Yield each model as a target, at most so many, and the pool of its shadows.

        The target's complement leaves with it: else a record of the target would be in one
        shadow less than others, and that count would give its tag away.
        """
        for model in range(min(len(self), most or len(self))):
            rest = np.arange(len(self)) != model
            rest &= ~(self.masks == ~self.masks[model]).all(axis=1)
            if rest.sum() >= 2:
                yield model, self._some(rest)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """A number for each model; a model and its complement share one."""
        first: dict[bytes, int] = {}
        return np.array(
            [
                first.setdefault(min(mask.tobytes(), (~mask).tobytes()), len(first))
                for mask in self.masks
            ]
        )

    def _some(self, chosen: NDArray[np.bool_]) -> "Pool":
        """Return the pool of some models; what was computed for all is not computed again."""
        part = Pool(
            masks=self.masks[chosen],
            probabilities=self.probabilities[chosen],
            labels=self.labels,
        )
        vars(part).update(logits=self.logits[chosen], truth=self.truth[chosen])
        return part
