"""The smallest difference between members and non-members that the blind baseline would have seen."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from reticent.attack.blind._people import People
from reticent.attack.blind._permute import TESTS, Differences
from reticent.attack.blind._properties import Properties

__all__ = ["Visible", "visible"]

POWER = 0.8  # the usual one, that of the smallest leak as well


@dataclass(frozen=True, kw_only=True)
class Visible:
    r"""The smallest differences that are noticed with a probability of at least ``power``.

    A difference is noticed if it exceeds its critical value c, in standard errors. The estimate scatters around the true difference with one standard
    error, so a true difference of :math:`c + \Phi^{-1}(0.8)` of them is noticed in four of five cases; more often, because other
    tests may notice it too.

    Parameters
    ----------
    power : float
        The probability.
    shift : float
        Difference of the means of one property, in its standard deviations.
    accuracy : float
        LTU accuracy that such a shift of a normal property gives, :math:`\Phi(\text{shift}/\sqrt 2)`.
    learned_accuracy : float
        LTU accuracy of a classifier on records that it has not learned from.
    wrong_classes : float or None
        Share of the classes on one side that are replaced by others at random; None if no share would be noticed by the fit of the class alone, or for a
        quantity.
    target_shift : float or None
        Shift of the target on one side for the same record, in standard deviations of the target; None for a class.
    """

    power: float
    shift: float
    accuracy: float
    learned_accuracy: float
    wrong_classes: float | None
    target_shift: float | None

    @property
    def sizes(self) -> dict[str, float]:
        """All sizes by name; what would not have been noticed at any size is left out."""
        sizes = {
            "shift": self.shift,
            "accuracy": self.accuracy,
            "learned_accuracy": self.learned_accuracy,
            "wrong_classes": self.wrong_classes,
            "target_shift": self.target_shift,
        }
        return {name: size for name, size in sizes.items() if size is not None}


def visible(
    people: People,
    properties: Properties,
    tests: tuple[Differences, ...],
    *,
    false_alarm: float,
) -> Visible:
    """Return the smallest differences that would have been noticed in this table.

    Parameters
    ----------
    people : People
        Who was looked at.
    properties : Properties
        What was looked at.
    tests : tuple of Differences
        Their tests, whose permutations give the critical values.
    false_alarm : float
        Probability of an alarm if the two sides are alike, shared by the tests.
    """
    more = float(ndtri(POWER))
    sizes = [
        (test.critical(false_alarm / TESTS) + more) * float(test.errors.max())
        for test in tests
    ]
    shift = sizes[0]
    # The fit is the last property, and its error its own.
    fit = shift / float(tests[0].errors.max()) * float(tests[0].errors[-1])
    members = float(people.tags.mean())
    wrong = None
    if properties.wrong is not None:
        shares = [properties.wrong.share(fit, side) for side in (members, 1 - members)]
        known = [share for share in shares if share is not None]
        wrong = max(known) if len(known) == len(shares) else None
    is_class = properties.wrong is not None
    return Visible(
        power=POWER,
        shift=shift,
        accuracy=float(ndtr(shift / np.sqrt(2))),
        learned_accuracy=min(0.5 + max(sizes[1:]), 1.0),
        wrong_classes=wrong,
        target_shift=None if is_class else fit * properties.unexplained,
    )
