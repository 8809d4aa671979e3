"""Attacks that open the product: LTU attacker (4), and one learned from losses, gradients and activations.

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2 (4).
.. [2] Nasr, Shokri & Houmansadr, "Comprehensive privacy analysis of deep learning", arXiv:1812.00910, Section II.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from reticent.attack._base import Challenge, Knowledge, Need, Scores
from reticent.attack.learned import cross_fitted_log_odds, outputs_seen
from reticent.errors import InvalidInput
from reticent.pool import Pool
from reticent.product import Internals
from reticent.run import one_thread

__all__ = ["GradientNorm", "LearnedWhiteBox", "internals_seen"]

FLOOR = 1e-300  # shorter gradients count as this long, so that logarithms stay finite
FAINT = 1e-30  # smallest loss or length that a classifier is shown: below, only rounding differs
# The numbers of columns trade what a classifier can learn against the noise that each column adds.
MOST_LAYERS = 32  # evenly spaced over deeper networks
MOST_CLASSES = 10  # principal components of p - e_y
UNITS = 16  # principal components of the last layer's inputs, to describe its gradient
DIRECTIONS = 16  # principal components of the direction of that gradient
SHOWN_UNITS = (
    8  # of the last layer's inputs, the components that the classifier sees themselves
)


@dataclass(frozen=True, kw_only=True)
class GradientNorm:
    """Guess that a record was trained on if the gradient of its loss is short [1]_.

    Training follows the gradients of its records until they are short; those of other records are not shortened. The
    score is minus the logarithm of the length, which orders records by their length.

    Parameters
    ----------
    layer : str or None
        Name of the layer whose gradient is looked at; None for the gradient of all parameters. The layer must be chosen
        before the records are attacked: the best of several, picked by its result, is not as good as it looks.
    """

    layer: str | None = None
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.INTERNALS})

    @property
    def name(self) -> str:
        """Short name, which includes the layer if there is one."""
        if self.layer is None:
            return "gradient_norm"
        return f"gradient_norm_{self.layer.replace(' ', '_')}"

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return minus the logarithm of the length of each record's gradient."""
        internals = challenge.need_internals(self.name)
        if self.layer is None:
            lengths = internals.lengths()
        elif self.layer in internals.layers:
            place = internals.layers.index(self.layer)
            lengths = internals.gradient_norms[:, place]
        else:
            raise InvalidInput(
                f"the product has no layer {self.layer!r}, so there is no gradient of it; choose one of its layers "
                f"{', '.join(map(repr, internals.layers[:10]))}."
            )
        return Scores(values=-np.log(lengths.clip(FLOOR)))


@dataclass(frozen=True, kw_only=True)
class LearnedWhiteBox:
    """Learn from tagged records what losses, gradients and activations of members look like [2]_.

    The attack model sees each record's answer, its loss, the length of its gradient in every layer, and the leading
    principal components of the last layer's inputs and of the direction of its gradient. Nasr et al. train a
    neural network on whole gradients of several layers; here boosted trees learn from this digest. Principal components
    are computed without tags. The rest is cross-fitted by unit: no record's tag reaches the model that scores it.

    Parameters
    ----------
    folds : int
        Number of folds.
    most_rows : int
        Largest number of records to learn from.
    """

    name: str = "learned_white_box"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.INTERNALS})
    folds: int = 5
    most_rows: int = 40_000

    def score(
        self,
        challenge: Challenge,
        *,
        knowledge: Knowledge[Pool],
        rng: np.random.Generator,
    ) -> Scores:
        """Return the log-odds of membership of each record, cross-fitted."""
        inputs = internals_seen(challenge, challenge.need_internals(self.name))
        odds = cross_fitted_log_odds(
            inputs, knowledge.tags, folds=self.folds, most_rows=self.most_rows, rng=rng
        )
        return Scores(values=odds, probabilities=expit(odds))


def internals_seen(challenge: Challenge, internals: Internals) -> NDArray[np.float64]:
    r"""Return the inputs of an attack model for each record of an opened product.

    The gradient of a linear last layer is :math:`\delta (a, 1)^\top` with :math:`\delta = p - e_y`. Its length is a separate
    column, so its direction is taken from :math:`\delta` scaled to length 1.
    """
    loss = np.log(internals.losses.clip(FAINT))[:, None]
    whole = np.log(internals.lengths().clip(FAINT))[:, None]
    depth = len(internals.layers)
    layers = np.linspace(0, depth - 1, min(MOST_LAYERS, depth)).astype(np.int64)
    each = np.log(internals.gradient_norms[:, layers].clip(FAINT))
    usual = np.linalg.norm(internals.activations, axis=1).mean() or 1.0
    below = internals.activations / usual
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
    """Return p - e_y at length 1.

    The true class's entry is minus the sum of the others, which keeps its digits where p_y - 1 would be rounded to 0.
    """
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
