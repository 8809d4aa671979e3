r"""From the answers of teachers to the targets of a student: pure arithmetic on arrays.

For each record only teachers that did not train on it count. Their logits are centred to mean 0 over classes, each teacher's by itself,
before mean and standard deviation are taken: a constant that is added to all logits of one teacher changes no probability, and would
only widen the spread.

References
----------
.. [1] Pedersen, doctoral thesis, chapter 5: targets (5.14) and (5.15).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, softmax

from reticent.errors import InvalidInput

__all__ = [
    "LeaveOut",
    "leave_out",
    "mixed_targets",
    "repaired_targets",
    "shift_alphas",
    "shifted_targets",
]

Array = NDArray[np.float64]
BLOCK = (
    2**14
)  # records at once, so that double precision does not need twice the memory of all answers
FEWEST = 2  # answers without a record that its standard deviation needs
# Starts of the search for temperature and share of wrong labels: sharp and flat answers, few and many wrong labels.
STARTS = ((0.0, -4.0), (0.0, -1.5), (1.0, -4.0), (1.0, -1.5))
LARGEST_LOG_TEMPERATURE = 5.0  # answers at e^5 times the temperature are all equal


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """What teachers that did not train on a record say of it.

    Parameters
    ----------
    mean, deviation : array, shape (n, c), or (n, 1) for a quantity
        Mean and standard deviation (with Bessel's correction) of the centred logits, or of the predicted quantity.
    probability : array, shape (n, c), or (n, 1) for a quantity
        Mean probability; the mean prediction of a quantity.
    shift : array, shape (n,)
        How far teachers that did train on the record are towards its label, in standard deviations of those that did not.
    labels : array of int or float, shape (n,)
        Given classes or quantities.
    """

    mean: Array
    deviation: Array
    probability: Array
    shift: Array
    labels: NDArray[Any]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_quantity(self) -> bool:
        """Whether a quantity is learned; it is a single column."""
        return bool(self.mean.shape[1] == 1)

    def signs(self) -> Array:
        """Return +1 at the labelled class and -1 elsewhere, (n, c)."""
        signs = np.full(self.mean.shape, -1.0)
        signs[np.arange(len(self)), self.labels] = 1.0
        return signs

    def one_hot(self) -> Array:
        """Return the hard labels as probabilities, (n, c)."""
        return (self.signs() + 1) / 2


def leave_out(
    answers: NDArray[np.floating[Any]],
    taught: NDArray[np.bool_],
    labels: NDArray[Any],
    *,
    floor: float,
) -> LeaveOut:
    """Return mean and spread of the answers of teachers that did not train on each record.

    Parameters
    ----------
    answers : array of float, shape (T, n, c), or (T, n, 1) for a quantity
        What each teacher answers for each record.
    taught : array of bool, shape (T, n)
        Which records each teacher trained on.
    labels : array, shape (n,)
        Given classes or quantities.
    floor : float
        Smallest probability told apart from 0.

    Raises
    ------
    InvalidInput
        If a record has fewer than two teachers that did not train on it.

    Examples
    --------
    >>> answers = np.array([[[0.9, 0.1]], [[0.2, 0.8]], [[0.8, 0.2]]])
    >>> taught = np.array([[True], [False], [False]])
    >>> leave_out(answers, taught, np.array([0]), floor=1e-6).mean.round(3)
    array([[0., 0.]])
    """
    counts = (~taught).sum(axis=0)
    if counts.min(initial=FEWEST) < FEWEST:
        raise InvalidInput(
            f"a record has {int(counts.min())} teachers that did not train on it, but its spread needs {FEWEST}; use more repeats."
        )
    blocks = [
        _leave_out(
            answers[:, at : at + BLOCK].astype(np.float64),
            taught[:, at : at + BLOCK],
            labels[at : at + BLOCK],
            floor,
        )
        for at in range(0, max(len(labels), 1), BLOCK)
    ]
    return LeaveOut(
        **{
            name: np.concatenate([getattr(block, name) for block in blocks])
            for name in ("mean", "deviation", "probability", "shift", "labels")
        }
    )


def _leave_out(
    answers: Array, taught: NDArray[np.bool_], labels: NDArray[Any], floor: float
) -> LeaveOut:
    quantity = answers.shape[2] == 1
    values = answers
    if not quantity:
        values = np.log(answers.clip(floor, 1.0))
        values -= values.mean(axis=2, keepdims=True)
    out, inside = (~taught)[..., None], taught[..., None]
    mean = _mean(values, out)
    square = _mean((values - mean) ** 2, out)
    count = out.sum(axis=0)
    deviation = np.sqrt(square * count / (count - 1))
    gap = _mean(values, inside) - mean
    if quantity:
        towards, spread = gap[:, 0] * np.sign(labels - mean[:, 0]), deviation[:, 0]
    else:
        rows = np.arange(len(labels))
        towards, spread = gap[rows, labels], deviation[rows, labels]
    # Teachers that agree to the last digit are moved infinitely far by anything, and not at all by nothing.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shift = towards / spread
    return LeaveOut(
        mean=mean,
        deviation=deviation,
        probability=mean if quantity else _mean(answers, out),
        shift=np.nan_to_num(shift, nan=0.0, posinf=np.inf, neginf=-np.inf),
        labels=labels,
    )


def _mean(values: Array, chosen: NDArray[np.bool_]) -> Array:
    """Return the mean over the chosen teachers, (n, c); 0 if there is none."""
    total = np.where(chosen, values, 0.0).sum(axis=0)
    return np.asarray(total / np.maximum(chosen.sum(axis=0), 1))


def shifted_targets(answers: LeaveOut, alpha: float | Array) -> Array:
    r"""Return the targets (5.15): :math:`\mathrm{softmax}(\mu + \alpha \sigma^*)`, or a quantity moved towards its value.

    Parameters
    ----------
    answers : LeaveOut
        What teachers say.
    alpha : float or array, shape (n,)
        Standard deviations by which targets move towards the labels.

    Returns
    -------
    array, shape (n, c), or (n, 1) for a quantity
        Class probabilities; or the mean moved towards the value by at most alpha standard deviations, and never beyond it.
    """
    reach = _column(alpha, answers) * answers.deviation
    if answers.is_quantity:
        gap = answers.labels[:, None] - answers.mean
        return np.asarray(answers.mean + np.clip(gap, -reach, reach))
    return np.asarray(softmax(answers.mean + reach * answers.signs(), axis=1))


def mixed_targets(answers: LeaveOut, alpha: float | Array) -> Array:
    """Return the targets (5.14): alpha times the label plus (1 - alpha) times the teachers' mean.

    Parameters
    ----------
    answers : LeaveOut
        What teachers say.
    alpha : float or array, shape (n,)
        Weight of the label, in [0, 1].
    """
    share = _column(alpha, answers)
    label = answers.labels[:, None] if answers.is_quantity else answers.one_hot()
    return np.asarray(share * label + (1 - share) * answers.probability)


def shift_alphas(
    answers: LeaveOut, *, most: float, tau: float, reference: float | None = None
) -> Array:
    r"""Return the alpha of each record by the shift rule: :math:`\min(\mathrm{most}, \tau \, \mathrm{median}(d) / d_i)`.

    A record that training on it moves away from its label (:math:`d_i \le 0`) has nothing to hide and keeps the largest alpha, and so
    does every record if the median is not positive: teachers then notice nobody.

    Parameters
    ----------
    answers : LeaveOut
        What teachers say.
    most, tau : float
        Largest alpha, and share of the median shift that a record may be moved by.
    reference : float, optional
        A number in place of the median.

    Examples
    --------
    >>> zeros = np.zeros((3, 2))
    >>> said = LeaveOut(mean=zeros, deviation=zeros, probability=zeros, shift=np.array([-1.0, 1.0, 4.0]), labels=np.zeros(3, int))
    >>> shift_alphas(said, most=1.0, tau=0.5)
    array([1.   , 0.5  , 0.125])
    """
    middle = float(np.median(answers.shift)) if reference is None else reference
    alphas = np.full(len(answers), most)
    if middle > 0:
        noticed = answers.shift > 0
        with np.errstate(over="ignore", invalid="ignore"):
            allowed = tau * middle / answers.shift[noticed]
        # Where both are infinite nothing follows, and the spread that alpha multiplies is 0.
        alphas[noticed] = np.fmin(most, allowed)
    return alphas


def repaired_targets(answers: LeaveOut) -> tuple[Array, float, float]:
    r"""Return the posterior of each record's true class, the temperature, and the share of wrong labels that explain the labels best.

    A label is the true class with probability 1 - e and each other class with probability e / (K - 1); the true class has the
    probabilities :math:`p_T = \mathrm{softmax}(\mu / T)` of teachers that did not see the record.

    Parameters
    ----------
    answers : LeaveOut
        What teachers say of classes.

    Returns
    -------
    targets : array, shape (n, c)
        Posterior probabilities.
    temperature, noise : float
        Maximum-likelihood estimates.
    """
    classes = answers.mean.shape[1]
    most = 1 - 1 / classes  # beyond, a label would speak against its own class
    wrong = answers.one_hot() == 0

    def joint(parameters: Array) -> Array:
        """Return the log-probabilities of true class and given label, (n, c)."""
        temperature = np.exp(np.clip(parameters[0], -5, LARGEST_LOG_TEMPERATURE))
        noise = np.clip(most * expit(parameters[1]), 1e-12, None)
        channel = np.where(wrong, np.log(noise / (classes - 1)), np.log1p(-noise))
        return np.asarray(log_softmax(answers.mean / temperature, axis=1) + channel)

    def cost(parameters: Array) -> float:
        return -float(logsumexp(joint(parameters), axis=1).mean())

    found = [minimize(cost, start, method="Nelder-Mead") for start in STARTS]
    best = np.asarray(min(found, key=lambda result: float(result.fun)).x)
    temperature = float(np.exp(np.clip(best[0], -5, LARGEST_LOG_TEMPERATURE)))
    noise = float(most * expit(best[1]))
    return np.asarray(softmax(joint(best), axis=1)), temperature, noise


def _column(alpha: float | Array, answers: LeaveOut) -> Array:
    return np.broadcast_to(
        np.asarray(alpha, dtype=np.float64).reshape(-1, 1), (len(answers), 1)
    )
