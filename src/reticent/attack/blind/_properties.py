"""Properties of records, described without their tags: columns, classes, pairs, and the class given the rest.

Whatever is computed here never sees who is a member. So a difference of any property between the two sides can be
tested on all records at once, by permuting the tags.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from reticent.attack.blind._people import FOLDS, People
from reticent.data import number_of_people

__all__ = ["Properties", "Wrong", "describe", "ridge"]

Array = NDArray[np.float32]

FEWEST_PEOPLE = 20  # who have a category, or have it not: with fewer, no difference could be significant among hundreds of properties
MOST_PROPERTIES = 1_000  # beside the columns themselves; twice as many would raise the critical value by 4 %
# Rows times columns, and rows times further properties, that are held in single precision: 160 and 64 MB.
MOST_CELLS, MOST_FURTHER_CELLS = 40_000_000, 16_000_000
MOST_CLASSES = (
    50  # whose probabilities are predicted; rarer classes count as the last one
)
MOST_PREDICTORS = 400  # properties from which the target is predicted: a second of time at 40,000 records
FIT = "how the target fits the other columns"
STEPS = 40  # of the bisection for the share of wrong classes: twelve digits


@dataclass(frozen=True, kw_only=True)
class Wrong:
    """How the fit of a target to the rest of its record changes if the target is wrong.

    Parameters
    ----------
    right, wrong : tuple of float
        Mean and mean square of the fit, for the given class and for a wrong one drawn at random.
    """

    right: tuple[float, float]
    wrong: tuple[float, float]

    def share(self, shift: float, side: float) -> float | None:
        """Return the share of wrong classes on one side that shifts the fit by some standard deviations.

        Parameters
        ----------
        shift : float
            Difference of the sides' means in standard deviations of all records.
        side : float
            Share of records on the side with the wrong classes.

        Returns
        -------
        float or None
            None if even classes that are all wrong shift it by less.
        """
        lost = self.right[0] - self.wrong[0]

        def shifts(share: float) -> float:
            mean = self.right[0] - side * share * lost
            square = self.right[1] + side * share * (self.wrong[1] - self.right[1])
            return float(share * lost / np.sqrt(max(square - mean**2, 1e-12)))

        if shifts(1.0) < shift:
            return None
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            low, high = (low, middle) if shifts(middle) >= shift else (middle, high)
        return high


@dataclass(frozen=True, kw_only=True)
class Properties:
    """Properties of all records, each with mean 0 and variance 1.

    Parameters
    ----------
    values : array of float32, shape (n, m)
        One column per property.
    names : tuple of str
        What each is, for a sentence.
    fit : array of float32, shape (n,)
        How well the target fits the rest of the record: the predicted probability of the given class, or the target less its prediction. It is
        one of the properties, the last column.
    wrong : Wrong or None
        What wrong classes would do to the fit; None for a quantity.
    unexplained : float
        Standard deviation of a quantity less its prediction, as a share of its own; 0 for a class.
    """

    values: Array
    names: tuple[str, ...]
    fit: Array
    wrong: Wrong | None
    unexplained: float


def describe(people: People, *, rng: np.random.Generator) -> Properties:
    """Return the properties of records by which members and non-members could differ.

    Numbers become normal scores of their ranks, so that no outlier rules; categories that enough people have become indicators. Added are squares (another
    spread), products with the target and with its fit (another class or value for the same record), and products of two columns (another dependence), as many
    as :data:`MOST_PROPERTIES` and the memory allow.

    Parameters
    ----------
    people : People
        The records; their tags are not read.
    rng : numpy.random.Generator
        Stream of the choice among products of columns.
    """
    target = len(people.names) - 1
    atoms, owners = _atoms(people)
    of_target = owners == target
    room = max(MOST_FURTHER_CELLS // len(people) - atoms.shape[1] - 1, 0)
    room = min(room, MOST_PROPERTIES)
    features, feature_owners = atoms[:, ~of_target], owners[~of_target]
    curved, curved_owners = _squares(features[:, :room], feature_owners[:room])
    pairs, pair_owners = _products(features, feature_owners, rng, room // 2)
    fit, wrong, unexplained = _fit(people, np.hstack([features, curved, pairs]))
    own, own_owners = _squares(atoms[:, of_target], owners[of_target])
    further = _Further(people=people, room=room)
    further.add(curved, [f"the spread of {people.names[j]}" for j in curved_owners])
    further.add(own, [f"the spread of {people.names[j]}" for j in own_owners])
    if wrong is None:
        further.add(fit[:, None] ** 2, ["the spread of the target, given the rest"])
    further.add_products(features, feature_owners, fit, FIT)
    for column in atoms[:, of_target].T:
        further.add_products(features, feature_owners, column, "the target")
    further.add(
        pairs,
        [f"{people.names[i]} and {people.names[j]} together" for i, j in pair_owners],
    )
    return Properties(
        values=np.hstack([atoms, *further.blocks, fit[:, None]]),
        names=(*(people.names[j] for j in owners), *further.names, FIT),
        fit=fit,
        wrong=wrong,
        unexplained=unexplained,
    )


class _Further:
    """Properties beside the columns, as many as there is room for."""

    def __init__(self, *, people: People, room: int) -> None:
        self.people, self.room = people, room
        self.blocks: list[Array] = []
        self.names: list[str] = []

    def add(self, values: Array, names: list[str]) -> None:
        """Add properties until the room is used up."""
        standardised, kept = _standardised(values[:, : self.room])
        self.blocks.append(standardised)
        self.names += [names[j] for j in np.flatnonzero(kept)]
        self.room -= standardised.shape[1]

    def add_products(
        self, features: Array, owners: NDArray[np.int64], column: Array, words: str
    ) -> None:
        """Add products of columns with something of the target."""
        few = features[:, : self.room]
        names = [f"{words} and {self.people.names[j]} together" for j in owners]
        self.add(few * column[:, None], names)


def ridge(inputs: Array, answers: Array, asked: Array, *, penalty: float) -> Array:
    """Return the predictions of a linear ridge regression, one column per answer.

    Parameters
    ----------
    inputs, answers : array of float32
        What is learned from, and what is learned.
    asked : array of float32
        Records to predict.
    penalty : float
        Added to the sum of squares of every input.
    """
    middle, centre = inputs.mean(axis=0), answers.mean(axis=0)
    inputs = inputs - middle
    gram = (inputs.T @ inputs).astype(np.float64)
    gram[np.diag_indices_from(gram)] += penalty
    moments = (inputs.T @ (answers - centre)).astype(np.float64)
    weights = np.linalg.solve(gram, moments).astype(np.float32)
    predicted: Array = (asked - middle) @ weights + centre
    return predicted


def _atoms(people: People) -> tuple[Array, NDArray[np.int64]]:
    """Return numbers and indicators, standardised, and the column that each belongs to."""
    atoms: list[Array] = []
    owners: list[int] = []
    single = people.units.max() + 1 == len(people)
    for j, is_category in enumerate(people.categorical):
        values = people.matrix[:, j]
        missing = np.isnan(values)
        if is_category:
            indicators = [values == code for code in np.unique(values)]
            # Of two categories one tells all.
            indicators = indicators[1:] if len(indicators) == 2 else indicators
        else:
            atoms.append(_normal_scores(values, missing))
            owners.append(j)
            indicators = [missing]
        for has in indicators:
            if _people_with(has, people.units, single=single) >= FEWEST_PEOPLE:
                atoms.append(has.astype(np.float32))
                owners.append(j)
    whole = np.column_stack(atoms) if atoms else np.empty((len(people), 0), np.float32)
    most = max(MOST_CELLS // len(people) - 1, 1)
    standardised, kept = _standardised(whole[:, -most:])
    return standardised, np.array(owners, dtype=np.int64)[-most:][kept]


def _people_with(
    has: NDArray[np.bool_], units: NDArray[np.int64], *, single: bool
) -> int:
    """Return how many people have a property, or how many have it not, whichever is less."""
    if single:
        return int(min(has.sum(), (~has).sum()))
    return min(number_of_people(units[has]), number_of_people(units[~has]))


def _normal_scores(values: NDArray[np.float64], missing: NDArray[np.bool_]) -> Array:
    scores = np.zeros(len(values), dtype=np.float32)
    known = ~missing
    ranks = rankdata(values[known])
    scores[known] = ndtri((ranks - 0.5) / max(len(ranks), 1))
    return scores


def _standardised(values: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return columns with mean 0 and variance 1, and which of the columns were not constant."""
    values = values - values.mean(axis=0)
    spread = np.sqrt((values**2).mean(axis=0))
    # Single precision: what is left of a constant column is rounding.
    kept = spread > 1e-4
    return values[:, kept] / spread[kept], kept


def _squares(
    atoms: Array, owners: NDArray[np.int64]
) -> tuple[Array, NDArray[np.int64]]:
    """Return squares, standardised; those of indicators are linear in them and are left out."""
    values, kept = _standardised(atoms**2)
    correlation = np.abs((values * atoms[:, kept]).mean(axis=0))
    # The square of a standardised indicator is a linear function of it.
    is_new = correlation < 0.999
    return values[:, is_new], owners[kept][is_new]


def _products(
    atoms: Array, owners: NDArray[np.int64], rng: np.random.Generator, most: int
) -> tuple[Array, NDArray[np.int64]]:
    """Return products of two columns, standardised: all, or as many at random."""
    count = atoms.shape[1]
    if count**2 <= 8 * MOST_PROPERTIES**2:
        first, second = np.triu_indices(count, 1)
    else:
        # More pairs than could be listed cheaply: draw some.
        first, second = rng.integers(count, size=(2, 2 * MOST_PROPERTIES))
    apart = owners[first] != owners[second]
    first, second = first[apart], second[apart]
    if len(first) > most:
        chosen = np.sort(rng.choice(len(first), most, replace=False))
        first, second = first[chosen], second[chosen]
    values, kept = _standardised(atoms[:, first] * atoms[:, second])
    return values, np.column_stack([owners[first], owners[second]])[kept]


def _fit(people: People, predictors: Array) -> tuple[Array, Wrong | None, float]:
    """Return how well each target fits the rest of its record, predicted from the other half and without tags."""
    target = people.matrix[:, -1]
    if people.categorical[-1]:
        # Classes are numbered; the rarest are lumped together.
        codes = np.minimum(target, MOST_CLASSES - 1).astype(np.int64)
        answers = np.eye(codes.max() + 1, dtype=np.float32)[codes]
    else:
        answers = ((target - target.mean()) / (target.std() or 1.0)).astype(np.float32)
        answers = answers[:, None]
    predicted = np.empty_like(answers)
    for k in range(FOLDS):
        learn, asked = people.fold != k, people.fold == k
        columns = _most_telling(predictors[learn], answers[learn])
        # Coefficients of a target with variance 1 that is spread over all inputs have a variance of one by their number.
        predicted[asked] = ridge(
            predictors[np.ix_(learn, columns)],
            answers[learn],
            predictors[np.ix_(asked, columns)],
            penalty=max(len(columns), 1),
        )
    if not people.categorical[-1]:
        rest = answers[:, 0] - predicted[:, 0]
        scores = _normal_scores(rest.astype(np.float64), np.zeros(len(rest), bool))
        return _unit(scores), None, float(rest.std())
    given = np.clip(predicted[np.arange(len(codes)), codes], 0, 1)
    others = max(answers.shape[1] - 1, 1)
    wrong = (np.clip(predicted, 0, 1).sum(axis=1) - given) / others
    squares = ((np.clip(predicted, 0, 1) ** 2).sum(axis=1) - given**2) / others
    moments = Wrong(
        right=(float(given.mean()), float((given**2).mean())),
        wrong=(float(wrong.mean()), float(squares.mean())),
    )
    return _unit(given), moments, 0.0


def _most_telling(inputs: Array, answers: Array) -> NDArray[np.int64]:
    """Return the columns that correlate most with an answer, as many as are learned from."""
    strength = np.abs(inputs.T @ (answers - answers.mean(axis=0))).max(axis=1)
    return np.sort(np.argsort(-strength, kind="stable")[:MOST_PREDICTORS])


def _unit(values: Array) -> Array:
    centred: Array = values - values.mean()
    centred /= max(float(np.sqrt((centred**2).mean())), 1e-6)
    return centred
