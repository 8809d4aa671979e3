"""A private network as a scikit-learn classifier: trained with PyTorch, answering with NumPy alone."""

import functools
import math
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from reticent.account import (
    Budget,
    Guarantee,
    PrivateTraining,
    Relation,
    calibrate,
    trade_off,
)
from reticent.account.plan import rounded_up
from reticent.errors import InvalidInput, InvalidPredictions, InvalidSpec
from reticent.train.memory import one_torch_thread
from reticent.train.private.clipping import Clip, Clipping
from reticent.train.recipes import SGD, PrivateNetwork, fitting_batch

__all__ = ["PrivateNetworkClassifier"]

# Belief before the release from which the guarantee states the belief after it.
PRIOR = 0.5
FPR = 0.001  # false-positive rate at which the guarantee states the true-positive rate


class PrivateNetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify with a multilayer perceptron trained with differential privacy (DP-SGD [1]_).

    Each record takes part in a step with probability batch / rows. Its gradient is clipped, so that its length is
    bounded. The sum gets normal noise of ``noise_multiplier`` times the bound. The noise is the least that keeps ``epsilon`` at
    ``delta`` for the number of steps [2]_. Training needs the extra ``torch``; answers need only NumPy.

    Parameters
    ----------
    epsilon : float
        Epsilon that one fit may spend, above 0. Not used if ``noise_multiplier`` is given.
    delta : float, optional
        Delta at which epsilon is kept, in (0, 1); by default 1 / (10 rows).
    noise_multiplier : float, optional
        Standard deviation of the noise divided by the clipping's bound, instead of the least that keeps ``epsilon``.
    relation : str
        When two tables are neighbours: ``"add/remove"`` (a record is there, or is not) or ``"replace-one"`` (a record
        has another content).
    hidden : tuple of int
        Widths of the hidden layers; empty for a linear model.
    activation : str
        Activation function of the hidden units: ``"tanh"`` or ``"relu"``.
    epochs : int
        Passes over the records, on average.
    batch : int, optional
        Records per step, on average; by default :func:`reticent.train.recipes.fitting_batch` of the rows.
    rate, momentum : float
        Learning rate, above 0, and momentum, in [0, 1), of stochastic gradient descent.
    l2 : float
        Weight decay, at least 0.
    clipping : Clipping, optional
        What bounds a record's gradient; by default ``Clip(norm=1.0)``.
    bounds : pair of float or of arrays, optional
        Public lowest and highest values, for all columns or for each: columns are clipped to them and scaled to [-1, 1].
    rows : int, optional
        The public number of records; by default the actual number, which is then treated as public.
    noise : str
        ``"secret"``, from system entropy, for classifiers that may be released; ``"seeded"``, from ``random_state``, for
        experiments, which carry no guarantee.
    random_state : int, RandomState or None
        Seed of the initialisation, which needs no secret; and of batches and noise, if they are seeded.

    Attributes
    ----------
    classes_ : array
        Labels, in the order of the answers.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if they have any.
    guarantee_ : Guarantee
        What the last fit guarantees; it is computed when it is asked for, from the settings of that fit.
    noise_multiplier_, delta_ : float
        The values that were used.
    n_iter_ : int
        Number of steps.
    weights_, biases_ : tuple of array
        Weights (out, in) and biases (out,) of each layer.
    rows_, batch_ : int
        The values that were used.
    relation_, noise_, clipping_, activation_ : str
        The values that were used.
    bounds_ : array of shape (2, n_features_in_), or None
        Lowest and highest value of each column.

    Notes
    -----
    The guarantee is about the steps of one fit, and rests on what happens before and around it:

    - Columns are used unchanged and must be numbers without gaps. A scaler, an imputer or a selection of columns that was fitted on these
      records voids the guarantee, even inside a pipeline. Use ``bounds`` that are known without looking at the records, or
      transformers that learn nothing, such as ``FunctionTransformer``.
    - Each fit spends its epsilon. A search over parameters with k candidates and f folds fits k f + 1 times on
      these records, and its choice depends on them: the epsilon of the best fit alone is then too small. Search on public
      data, or count every fit.
    - The labels in use and the number of records are treated as public. A label that only one record has betrays it.
    - One record is protected, not a person with many records. Sample weights are not supported, because they would change a
      record's bound.

    References
    ----------
    .. [1] Abadi et al., "Deep learning with differential privacy", arXiv:1607.00133.
    .. [2] Koskela, Jälkö & Honkela, "Computing tight differential privacy guarantees using FFT", arXiv:1906.03049.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(2_000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "above", "below")
    >>> model = PrivateNetworkClassifier(epsilon=2.0, bounds=(0, 10)).fit(X, y)
    >>> model.predict([[9, 1], [1, 9]])
    array(['above', 'below'], dtype='<U5')
    >>> model.guarantee_.holds, model.guarantee_.epsilon <= 2.0
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: float = 3.0,
        delta: float | None = None,
        noise_multiplier: float | None = None,
        relation: str = "add/remove",
        hidden: tuple[int, ...] = (32,),
        activation: str = "tanh",
        epochs: int = 30,
        batch: int | None = None,
        rate: float = 1.0,
        momentum: float = 0.0,
        l2: float = 0.0,
        clipping: Clipping | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        rows: int | None = None,
        noise: str = "secret",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.noise_multiplier = noise_multiplier
        self.relation = relation
        self.hidden = hidden
        self.activation = activation
        self.epochs = epochs
        self.batch = batch
        self.rate = rate
        self.momentum = momentum
        self.l2 = l2
        self.clipping = clipping
        self.bounds = bounds
        self.rows = rows
        self.noise = noise
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on records; each call spends the budget again.

        Parameters
        ----------
        X : array of shape (n, columns)
            Numbers, none missing.
        y : array of shape (n,)
            Labels.

        Raises
        ------
        InvalidInput
            If a parameter cannot be used.
        InvalidSpec
            If PyTorch is not installed.
        InvalidPredictions
            If the training diverged.
        """
        # Numbers that are too large are refused with a message instead of a warning.
        with np.errstate(over="ignore"):
            records, labels = validate_data(self, X, y, dtype=_precision(self.bounds))
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        bounds = _ranges(self.bounds, columns=records.shape[1])
        rows = len(records) if self.rows is None else _count(self.rows, "rows")
        delta, relation = _delta(self.delta, rows), _relation(self.relation)
        recipe = self._recipe(rows, delta, relation)
        weights, biases = _trained(
            # A copy, because the caller's array may be read-only, which PyTorch does not support.
            np.array(_scaled(records, bounds), dtype=np.float32),
            np.eye(len(classes), dtype=np.float32)[codes],
            recipe,
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
        )
        # Set together from the values that were used, so that a guarantee never mixes two fits or follows set_params.
        self.classes_, self.weights_, self.biases_ = classes, weights, biases
        self.activation_, self.bounds_ = recipe.activation, bounds
        self.noise_multiplier_, self.noise_ = recipe.noise_multiplier, recipe.noise
        self.rows_, self.batch_ = rows, recipe.batch
        self.n_iter_ = recipe.course(rows).steps
        self.delta_, self.relation_ = delta, relation.value
        self.clipping_ = type(recipe.clipping).__name__
        return self

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return a probability per record and class, in the order of ``classes_``.

        Parameters
        ----------
        X : array of shape (n, columns)
            Numbers, none missing.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore"):
            records = validate_data(
                self, X, reset=False, dtype=_precision(self.bounds_)
            )
        # In double precision, so that the other records of a query change an answer only by rounding, below 1e-12.
        values = np.asarray(_scaled(records, self.bounds_), dtype=np.float64)
        last = len(self.weights_) - 1
        for layer, (weight, bias) in enumerate(
            zip(self.weights_, self.biases_, strict=True)
        ):
            values = values @ weight.T.astype(np.float64) + bias
            if layer < last:
                relu = self.activation_ == "relu"
                values = np.maximum(values, 0) if relu else np.tanh(values)
        return np.asarray(softmax(values, axis=1))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable class of each record.

        Parameters
        ----------
        X : array of shape (n, columns)
            Numbers, none missing.
        """
        answers = self.predict_proba(X)
        return np.asarray(self.classes_[answers.argmax(axis=1)])

    @property
    def guarantee_(self) -> Guarantee:
        """What the last fit guarantees about its records."""
        check_is_fitted(self)
        training = PrivateTraining(
            noise_multiplier=self.noise_multiplier_,
            sampling_rate=self.batch_ / self.rows_,
            steps=self.n_iter_,
            relation=Relation(self.relation_),
        )
        epsilon, advantage, belief, tpr = _statements(training, self.delta_)
        secret = self.noise_ == "secret"
        caveat = (
            "the noise was drawn from a seed, so whoever knows the seed can subtract it: this classifier carries no guarantee; fit it "
            "again with noise='secret'"
        )
        public = [
            f"the number of rows ({self.rows_:,})",
            "names and number of the columns, and whatever was done to them before: if that was learned from these records, nothing "
            "is guaranteed",
            "names of the classes",
            "the settings of the training, as long as they were not chosen by looking at these records",
        ]
        if self.bounds_ is not None:
            public.append("the lowest and highest values of the columns")
        return Guarantee(
            mechanism=f"DP-SGD: {self.n_iter_:,} steps on Poisson samples of {self.batch_:,} records on average, gradients clipped by "
            f"{self.clipping_}, normal noise of {self.noise_multiplier_:g} times their bound",
            holds=secret,
            relation=self.relation_,
            epsilon=epsilon,
            delta=self.delta_,
            noise_multiplier=self.noise_multiplier_,
            sampling_rate=training.sampling_rate,
            steps=self.n_iter_,
            advantage=advantage,
            belief=belief,
            prior=PRIOR,
            tpr=tpr,
            fpr=FPR,
            caveats=() if secret else (caveat,),
            public=tuple(public),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise != "seeded"
        tags.classifier_tags.poor_score = True  # noise costs accuracy on few records
        return tags

    def _recipe(self, rows: int, delta: float, relation: Relation) -> PrivateNetwork:
        """Return the whole recipe, after checking every parameter."""
        rate, momentum = _finite(self.rate, "rate"), _finite(self.momentum, "momentum")
        if rate <= 0 or not 0 <= momentum < 1:
            raise InvalidInput(
                f"rate must be above 0 and momentum in [0, 1), got {rate:g} and {momentum:g}, with which the weights do not converge."
            )
        clipping = Clip(norm=1.0) if self.clipping is None else self.clipping
        if not isinstance(clipping, Clipping) or isinstance(clipping, type):
            raise InvalidInput(
                f"the clipping {clipping!r} bounds no gradient; pass, for example, Clip(norm=1.0) of reticent.train.private.clipping."
            )
        batch = (
            fitting_batch(rows) if self.batch is None else _count(self.batch, "batch")
        )
        recipe = PrivateNetwork(
            hidden=_widths(self.hidden),
            activation=self.activation,
            epochs=_count(self.epochs, "epochs"),
            batch=batch,
            optimiser=SGD(rate=rate, momentum=momentum),
            l2=_finite(self.l2, "l2"),
            clipping=clipping,
            rows=rows,
            noise=self.noise,
        )
        recipe.course(rows)  # refuses a batch that is larger than the table
        if self.noise_multiplier is not None:
            noise = _finite(self.noise_multiplier, "noise_multiplier")
            return replace(recipe, noise_multiplier=noise)
        target = Budget(epsilon=_finite(self.epsilon, "epsilon"), delta=delta)
        noise = _least_noise(target, recipe.steps(rows, relation))
        return replace(recipe, noise_multiplier=noise)


# Both results are cached by everything that they depend on, because folds and notebooks ask for the same again and again.
@functools.lru_cache
def _least_noise(target: Budget, training: PrivateTraining) -> float:
    """Return the least noise with which a training meets a target."""

    def tried(noise: float) -> PrivateTraining:
        # Rounded as the result will be, so that the target is checked for the noise that is used.
        return replace(training, noise_multiplier=rounded_up(noise))

    return rounded_up(calibrate(target, tried))


@functools.lru_cache
def _statements(
    training: PrivateTraining, delta: float
) -> tuple[float, float, float, float]:
    """Return epsilon, advantage, belief and true-positive rate of a training."""
    curve = trade_off(training)
    belief = curve.belief(delta, prior=PRIOR)
    return curve.epsilon(delta), curve.advantage, belief, curve.tpr(FPR)


def _trained(
    inputs: NDArray[np.float32],
    targets: NDArray[np.float32],
    recipe: PrivateNetwork,
    *,
    seed: int,
) -> tuple[tuple[NDArray[np.float32], ...], tuple[NDArray[np.float32], ...]]:
    """Return weights (out, in) and biases (out,) of every layer."""
    try:
        import torch
    except ImportError as error:
        raise InvalidSpec(
            "networks are trained with PyTorch, which is not installed; install reticent[torch]."
        ) from error
    from reticent.train.private.networks import train_privately
    from reticent.train.stacking import Cohort

    with one_torch_thread():
        cohort = Cohort(
            inputs=torch.from_numpy(inputs),
            targets=torch.from_numpy(targets),
            masks=np.ones((1, len(inputs)), dtype=bool),
            seeds=[seed],
        )
        networks = train_privately(cohort, recipe)
    weights = tuple(np.array(weight[0].numpy()) for weight in networks.weights)
    biases = tuple(np.array(bias[0, :, 0].numpy()) for bias in networks.biases)
    if not all(np.isfinite(part).all() for part in (*weights, *biases)):
        raise InvalidPredictions(
            "the training diverged, so the weights are not finite and the classifier cannot answer; lower rate, momentum or l2."
        )
    return weights, biases


def _precision(bounds: object) -> type[np.floating[Any]]:
    """Return the precision in which columns are read: that of a network, or double precision if they are clipped first."""
    return np.float32 if bounds is None else np.float64


def _ranges(
    bounds: tuple[ArrayLike, ArrayLike] | None, *, columns: int
) -> NDArray[np.float64] | None:
    """Return the lowest and the highest value of each column, (2, columns)."""
    if bounds is None:
        return None
    try:
        low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
        ranges = np.stack([np.broadcast_to(bound, columns) for bound in (low, high)])
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the bounds {bounds!r} do not fit {columns} columns; pass a pair (low, high), each one number or one per column."
        ) from None
    width = ranges[1] / 2 - ranges[0] / 2  # half the range, which cannot overflow
    wrong = np.flatnonzero(~(np.isfinite(ranges).all(axis=0) & (width > 0)))
    if len(wrong):
        at = int(wrong[0])
        raise InvalidInput(
            f"the bounds of column {at} are {ranges[0, at]:g} and {ranges[1, at]:g}, to which no value can be scaled; pass (low, high) "
            "with finite low below high."
        )
    return ranges


def _scaled(
    records: NDArray[np.floating[Any]], bounds: NDArray[np.float64] | None
) -> NDArray[np.floating[Any]]:
    """Return columns clipped to their bounds and scaled to [-1, 1]."""
    if bounds is None:
        return records
    low, high = bounds
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    return np.asarray((np.clip(records, low, high) - centre) / half)


def _delta(delta: float | None, rows: int) -> float:
    if delta is None:
        return 1 / (10 * rows)  # well below one over the number of records
    given = _finite(delta, "delta")
    if not 0 < given < 1:
        raise InvalidInput(
            f"delta must be in (0, 1), got {given:g}: it is the probability with which normal noise may fail to protect, and never 0; "
            "pass a number such as 1e-5."
        )
    return given


def _relation(relation: str) -> Relation:
    try:
        return Relation(relation)
    except ValueError:
        raise InvalidInput(
            f"the relation {relation!r} is not known; use 'add/remove' (a record is there, or is not) or 'replace-one' (a record has another "
            "content)."
        ) from None


def _widths(hidden: object) -> tuple[int, ...]:
    if not isinstance(hidden, Iterable):
        raise InvalidInput(
            f"hidden is {hidden!r}, but must be the widths of all hidden layers, such as (32,) or (64, 32)."
        )
    return tuple(_count(width, "a width in hidden") for width in hidden)


def _count(value: object, name: str) -> int:
    if not isinstance(value, Integral) or value < 1:
        raise InvalidInput(
            f"{name} must be a whole number of at least 1, got {value!r}."
        )
    return int(value)


def _finite(value: object, name: str) -> float:
    if not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number, got {value!r}.")
    return float(value)
