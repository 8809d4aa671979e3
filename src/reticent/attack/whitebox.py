"""Attacks of somebody who opens the product: LTU attacker (4), and one learned from what is inside.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2 (4).
.. [2] Nasr, Shokri & Houmansadr, "Comprehensive privacy analysis of deep learning", arXiv:1812.00910, Section II.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.attack._base import Challenge, Knowledge, Scores
from reticent.attack._boost import calibrated_log_odds
from reticent.attack.learned import SMALL, outputs_seen
from reticent.errors import InvalidInput
from reticent.product import Internals
from reticent.run import one_thread

__all__ = ["GradientNorm", "LearnedWhiteBox", "internals_seen"]

FLOOR = 1e-300  # smallest length told apart from zero
FAINT = 1e-30  # smallest loss or length that a classifier is shown
MOST_LAYERS, MOST_CLASSES = 32, 10
UNITS, DIRECTIONS, SHOWN_UNITS = 16, 16, 8


@dataclass(frozen=True, kw_only=True)
class GradientNorm:
    """A record whose loss has a short gradient was trained on [1]_.

    Training follows the gradients of its records until they are short; those of other records stay as they are. The
    score is minus the logarithm of the length, which orders records as the length does.

    Parameters
    ----------
    layer : str or None
        Look at the gradient of the parameters of one layer, by its name; None for all of them. The layer must be chosen
        before the records are attacked: the best of several, picked by its result, is not as good as it looks.
    """

    layer: str | None = None

    @property
    def name(self) -> str:
        """Short name; with a layer, its name is in it."""
        if self.layer is None:
            return "gradient_norm"
        return f"gradient_norm_{self.layer.replace(' ', '_')}"

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return minus the logarithm of the length of each record's gradient."""
        seen = challenge.need_internals(self.name)
        if self.layer is None:
            lengths = seen.lengths()
        elif self.layer in seen.layers:
            lengths = seen.gradient_norms[:, seen.layers.index(self.layer)]
        else:
            raise InvalidInput(
                f"the product has no layer {self.layer!r} whose gradient could be looked at; its layers are "
                f"{', '.join(map(repr, seen.layers[:10]))}."
            )
        return Scores(values=-np.log(lengths.clip(FLOOR)))


@dataclass(frozen=True, kw_only=True)
class LearnedWhiteBox:
    """Learn from tagged records what losses, gradients and activations of members look like [2]_.

    The attack model sees each record's answer, its loss, the length of its gradient in every layer, and the leading
    principal components of what goes into the last layer and of the direction of that layer's gradient. Nasr et al. train a
    neural network on whole gradients of several layers; here boosted trees learn from this digest. Principal components
    know no tag. The rest is cross-fitted by unit: the tag of no record reaches the model that scores it.

    Parameters
    ----------
    folds : int
        Number of folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "learned_white_box"
    folds: int = 5
    most_rows: int = 40_000

    def score(
        self, challenge: Challenge, *, knowledge: Knowledge, rng: np.random.Generator
    ) -> Scores:
        """Return the log-odds of membership of each record, cross-fitted."""
        inputs = internals_seen(challenge, challenge.need_internals(self.name))
        odds = np.zeros(len(challenge))
        for learn, tags, judge in knowledge.tags.folds(self.folds, rng=rng):
            if len(learn) > self.most_rows:
                chosen = rng.choice(len(learn), self.most_rows, replace=False)
                learn, tags = learn[chosen], tags[chosen]  # noqa: PLW2901
            # Trees alone: where nothing leaks, a cross-fitted linear classifier does worse than a coin, for what
            # chance gave to the records it learned from it took from those it judges.
            odds[judge] = calibrated_log_odds(
                SMALL, inputs[learn], tags, inputs[judge], rng=rng
            )
        return Scores(values=odds, probabilities=expit(odds))


def internals_seen(challenge: Challenge, seen: Internals) -> NDArray[np.float64]:
    r"""Return what an attack model is shown of an opened product at each record.

    The gradient of a linear last layer is :math:`\delta (a, 1)^\top` with :math:`\delta = p - e_y`; its length is a column of
    its own, so its direction is taken from :math:`\delta` at length 1.
    """
    loss = np.log(seen.losses.clip(FAINT))[:, None]
    whole = np.log(seen.lengths().clip(FAINT))[:, None]
    layers = np.linspace(
        0, len(seen.layers) - 1, min(MOST_LAYERS, len(seen.layers))
    ).astype(np.int64)
    each = np.log(seen.gradient_norms[:, layers].clip(FAINT))
    below = seen.activations / (np.linalg.norm(seen.activations, axis=1).mean() or 1.0)
    units = _components(below, UNITS)
    length = np.linalg.norm(below, axis=1)[:, None]
    above = _components(_unit_delta(challenge), MOST_CLASSES)
    around = np.column_stack([units, length, np.ones(len(units))])
    outer = (above[:, :, None] * around[:, None, :]).reshape(len(units), -1)
    return np.column_stack(
        [
            outputs_seen(challenge),
            loss,
            whole,
            each,
            each - loss,
            units[:, :SHOWN_UNITS],
            _components(outer, DIRECTIONS),
        ]
    )


def _unit_delta(challenge: Challenge) -> NDArray[np.float64]:
    """Return p - e_y at length 1, not as a difference from 1."""
    rows = np.arange(len(challenge))
    delta = challenge.probabilities.clip(0.0, 1.0)
    delta[rows, challenge.labels] = 0.0
    delta[rows, challenge.labels] = -delta.sum(axis=1)
    lengths = np.linalg.norm(delta, axis=1)
    return np.asarray(delta / np.where(lengths > 0, lengths, 1.0)[:, None])


def _components(matrix: NDArray[np.floating], most: int) -> NDArray[np.float64]:
    """Return the leading principal components of the rows of a matrix."""
    with one_thread():
        centred = matrix.astype(np.float64) - matrix.mean(axis=0, dtype=np.float64)
        _, directions = np.linalg.eigh(centred.T @ centred)
        return np.asarray(centred @ directions[:, ::-1][:, :most])
