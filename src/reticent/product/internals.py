r"""What an attacker who opens a product sees at a record: loss, gradients, activations.

With :math:`z` the logits and :math:`p` their softmax, the gradient of the cross-entropy with respect to the logits is
:math:`\delta = p - e_y`. All other gradients follow from it by the chain rule and are linear in it. So it is formed without
cancellation and propagated back at length 1: even the gradient of a record that is predicted almost with certainty keeps
all its digits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from reticent.errors import InvalidInput, InvalidPredictions

__all__ = [
    "MOST_UNITS",
    "Internals",
    "joined",
    "loss_and_delta",
    "units_shown",
]

# Activations kept per record: enough to describe a layer to an attack, and wide layers do not fill the memory.
MOST_UNITS = 256


@dataclass(frozen=True, kw_only=True)
class Internals:
    r"""What a white-box attacker sees of a product at each record, besides its answers.

    The gradient of a linear last layer is :math:`(p - e_y)\, a^\top` with :math:`a` the activations below it, so it is
    fully known from the activations, the answers and the labels. Of the other layers, only the length is stored.

    Parameters
    ----------
    losses : array of float, shape (n,)
        Cross-entropy of each record.
    gradient_norms : array of float, shape (n, layers)
        Length of its gradient with respect to the parameters of each layer, weights and biases together.
    layers : tuple of str
        Names of the layers, from the first to the last.
    activations : array of float, shape (n, k)
        Inputs of the last layer; if there are more than 256, then 256 of them at even distances.

    Raises
    ------
    InvalidPredictions
        If shapes do not fit, numbers are not finite, or losses or lengths are negative.
    """

    losses: NDArray[np.float64]
    gradient_norms: NDArray[np.float64]
    layers: tuple[str, ...]
    activations: NDArray[np.float32]

    def __post_init__(self) -> None:
        n = len(self.losses)
        if self.losses.ndim != 1 or self.gradient_norms.shape != (n, len(self.layers)):
            raise InvalidPredictions(
                f"gradient lengths of shape {self.gradient_norms.shape} do not fit {self.losses.shape} losses and "
                f"{len(self.layers)} layers; pass one row per record and one column per layer."
            )
        if self.activations.ndim != 2 or len(self.activations) != n:
            raise InvalidPredictions(
                f"activations of shape {self.activations.shape} do not fit {n} records; pass one row per record."
            )
        if not self.layers or len(set(self.layers)) < len(self.layers):
            raise InvalidPredictions(
                f"the layers are called {self.layers}, so they cannot be told apart by name; give every layer one name."
            )
        for what, values in (
            ("losses", self.losses),
            ("gradient lengths", self.gradient_norms),
        ):
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InvalidPredictions(
                    f"the {what} must be finite and at least 0, but span [{values.min():.3g}, {values.max():.3g}], so the "
                    "product's training diverged or its gradients are wrong; repair the product."
                )
        if not np.isfinite(self.activations).all():
            raise InvalidPredictions(
                "activations are NaN or infinite, so the product's training diverged; lower the rate of its optimiser."
            )

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, rows: NDArray[np.int64]) -> "Internals":
        """Return the internals at some of the records."""
        return Internals(
            losses=self.losses[rows],
            gradient_norms=self.gradient_norms[rows],
            layers=self.layers,
            activations=self.activations[rows],
        )

    def lengths(self) -> NDArray[np.float64]:
        """Return the length of each record's whole gradient.

        Examples
        --------
        >>> internals = Internals(
        ...     losses=np.array([0.1]), gradient_norms=np.array([[3.0, 4.0]]), layers=("hidden", "output"),
        ...     activations=np.zeros((1, 2), dtype=np.float32),
        ... )
        >>> internals.lengths().tolist()
        [5.0]
        """
        longest = self.gradient_norms.max(axis=1, initial=0.0)
        # Divided by the largest part first, because the square of a length below 1e-154 underflows.
        scaled = self.gradient_norms / np.where(longest > 0, longest, 1.0)[:, None]
        return np.asarray(longest * np.sqrt((scaled**2).sum(axis=1)))


def loss_and_delta(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cross-entropy of each record and its gradient with respect to the logits.

    Neither is formed as a difference from 1, so that a probability close to 1 is not rounded to 1.

    Raises
    ------
    InvalidInput
        If a label is not one of the classes.

    Examples
    --------
    >>> loss, delta = loss_and_delta(np.array([[0.0, 50.0]]), np.array([1]))
    >>> f"{loss[0]:.3e}", f"{delta[0, 1]:.3e}"
    ('1.929e-22', '-1.929e-22')
    """
    n, classes = logits.shape
    if labels.shape != (n,) or (n and not 0 <= labels.min() <= labels.max() < classes):
        raise InvalidInput(
            f"the labels are not one class number from 0 to {classes - 1} for each of {n} records, so the loss is not "
            "defined; number the classes in the product's order."
        )
    rows = np.arange(n)
    delta = np.asarray(softmax(logits, axis=1))
    delta[rows, labels] = 0.0
    # The gradient sums to 0, so p_y - 1 is minus the sum of the others, without cancellation.
    delta[rows, labels] = -delta.sum(axis=1)
    others = logits - logits[rows, labels][:, None]
    others[rows, labels] = -np.inf
    return np.logaddexp(0.0, np.logaddexp.reduce(others, axis=1)), delta


def units_shown(activations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return all units of a layer, or ``MOST_UNITS`` of them at even distances if there are more."""
    units = activations.shape[1]
    if units <= MOST_UNITS:
        return activations
    return activations[:, np.linspace(0, units - 1, MOST_UNITS).astype(np.int64)]


def joined(parts: list[Internals]) -> Internals:
    """Return the internals at the records of all parts, one part after another."""
    return Internals(
        losses=np.concatenate([part.losses for part in parts]),
        gradient_norms=np.concatenate([part.gradient_norms for part in parts]),
        layers=parts[0].layers,
        activations=np.concatenate([part.activations for part in parts]),
    )
