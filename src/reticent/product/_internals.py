r"""What somebody who opens a product sees of it at a record: loss, gradients, activations.

With :math:`z` the logits and :math:`p` their softmax, the gradient of the cross-entropy with respect to the logits is
:math:`\delta = p - e_y`. Everything else follows from it by the chain rule, and is linear in it. So it is formed without
cancellation and sent back at length 1: the gradient of a record that is all but certain keeps its digits.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from reticent.errors import InvalidInput, InvalidPredictions

__all__ = [
    "MOST_UNITS",
    "Internals",
    "Openable",
    "joined",
    "loss_and_delta",
    "units_shown",
]

MOST_UNITS = 256  # activations that are kept of a record


@dataclass(frozen=True, kw_only=True)
class Internals:
    r"""What a white-box attacker sees of a product at each record, beside its answers.

    The gradient of a linear last layer is :math:`(p - e_y)\, a^\top` with :math:`a` the activations below it, so
    it is known in full from these, the answers and the labels; of the other layers the length is kept.

    Parameters
    ----------
    losses : array of float, shape (n,)
        Cross-entropy of each record.
    gradient_norms : array of float, shape (n, layers)
        Length of its gradient with respect to the parameters of each layer, weights and biases together.
    layers : tuple of str
        Names of the layers, from the first to the last.
    activations : array of float, shape (n, k)
        What goes into the last layer; of more than 256 units, 256 at even distances.

    Raises
    ------
    InvalidPredictions
        If shapes do not fit, or numbers are not finite or below zero.
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
                f"the layers are called {self.layers}, so that none can be asked for by its name; name each once."
            )
        for what, values in (
            ("losses", self.losses),
            ("gradient lengths", self.gradient_norms),
        ):
            if not (np.isfinite(values) & (values >= 0)).all():
                raise InvalidPredictions(
                    f"the {what} span [{values.min():.3g}, {values.max():.3g}], but must be finite and at least 0, so the "
                    "product's training diverged or its gradients were not made; repair it."
                )
        if not np.isfinite(self.activations).all():
            raise InvalidPredictions(
                "activations are NaN or infinite, so the product's training diverged; lower the rate of its optimiser."
            )

    def __len__(self) -> int:
        return len(self.losses)

    def take(self, rows: NDArray[np.int64]) -> "Internals":
        """Return what is seen at some of the records."""
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
        >>> seen = Internals(
        ...     losses=np.array([0.1]), gradient_norms=np.array([[3.0, 4.0]]), layers=("hidden", "output"),
        ...     activations=np.zeros((1, 2), dtype=np.float32),
        ... )
        >>> seen.lengths().tolist()
        [5.0]
        """
        longest = self.gradient_norms.max(axis=1, initial=0.0)
        # Divided by the longest part first: the square of a length below 1e-154 would be 0.
        scaled = self.gradient_norms / np.where(longest > 0, longest, 1.0)[:, None]
        return np.asarray(longest * np.sqrt((scaled**2).sum(axis=1)))


@runtime_checkable
class Openable(Protocol):
    """A product that can be opened: whoever holds its file sees more than its answers."""

    def internals(self, features: pd.DataFrame, labels: NDArray[np.int64]) -> Internals:
        """Return losses, gradients and activations at records with these classes."""
        ...


def loss_and_delta(
    logits: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the cross-entropy of each record and its gradient with respect to the logits.

    Neither is formed as a difference from 1, so that what is nearly certain is not rounded to certain.

    Raises
    ------
    InvalidInput
        If a label is none of the classes.

    Examples
    --------
    >>> loss, delta = loss_and_delta(np.array([[0.0, 50.0]]), np.array([1]))
    >>> f"{loss[0]:.3e}", f"{delta[0, 1]:.3e}"
    ('1.929e-22', '-1.929e-22')
    """
    n, classes = logits.shape
    if labels.shape != (n,) or (n and not 0 <= labels.min() <= labels.max() < classes):
        raise InvalidInput(
            f"the labels are not one class number from 0 to {classes - 1} for each of {n} records, so no loss has a "
            "gradient; number the classes in the product's order."
        )
    rows = np.arange(n)
    delta = np.asarray(softmax(logits, axis=1))
    delta[rows, labels] = 0.0
    delta[rows, labels] = -delta.sum(axis=1)
    others = logits - logits[rows, labels][:, None]
    others[rows, labels] = -np.inf
    return np.logaddexp(0.0, np.logaddexp.reduce(others, axis=1)), delta


def units_shown(activations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return all units of a layer if there are few, else some at even distances."""
    units = activations.shape[1]
    if units <= MOST_UNITS:
        return activations
    return activations[:, np.linspace(0, units - 1, MOST_UNITS).astype(np.int64)]


def joined(parts: list[Internals]) -> Internals:
    """Return what is seen at the records of all parts, one after another."""
    return Internals(
        losses=np.concatenate([part.losses for part in parts]),
        gradient_norms=np.concatenate([part.gradient_norms for part in parts]),
        layers=parts[0].layers,
        activations=np.concatenate([part.activations for part in parts]),
    )
