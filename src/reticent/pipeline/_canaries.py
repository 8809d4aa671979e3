"""An audit of a trainer in one run: canaries put in by coins, one training, and what can be guessed from its answers."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reticent._check import in_open_unit
from reticent.data import SMALLEST_PART, Table
from reticent.errors import InvalidInput
from reticent.evidence import (
    Estimate,
    GuessCount,
    epsilon_ceiling,
    epsilon_lower_bound,
    guess_counts,
    one_run_ceiling,
    one_run_lower_bound,
)
from reticent.product import Predictor, Trainer
from reticent.run import seed_for, stream

__all__ = ["OneRunAudit", "audit_in_one_run"]

# Smallest probability told apart from zero: only the order of the scores counts, so nearly all of a double's range is used.
FLOOR = 1e-300


@dataclass(frozen=True, kw_only=True)
class OneRunAudit:
    """What one training with canaries shows about a trainer's epsilon.

    The two bounds rest on the same guesses. Each holds with the confidence by itself, not both together: choose one before
    looking.

    Parameters
    ----------
    recipe : str
        The trainer.
    rows : int
        Records of the training, canaries among them.
    canaries, included : int
        Number of canaries, and how many of them the coins included.
    guesses : tuple of GuessCount
        Number of guesses, and how many were right, in each look of :func:`reticent.evidence.one_run_lower_bound`.
    gaussian : Estimate
        Lower bound on epsilon in the form of Gaussian differential privacy (:func:`reticent.evidence.one_run_lower_bound`).
    gaussian_ceiling : float
        The largest bound that was possible: the one with every guess right.
    any_form : Estimate
        Lower bound on epsilon without an assumption about the mechanism (:func:`reticent.evidence.epsilon_lower_bound`).
    any_form_ceiling : float
        The largest bound that was possible, for a delta of 0.
    level, delta : float
        Confidence of each bound, and the delta of both.
    seed : int
        Seed of canaries, coins and training.
    """

    recipe: str
    rows: int
    canaries: int
    included: int
    guesses: tuple[GuessCount, ...]
    gaussian: Estimate
    gaussian_ceiling: float
    any_form: Estimate
    any_form_ceiling: float
    level: float
    delta: float
    seed: int

    def refutes(self, claimed: float) -> bool:
        """Return whether a claimed epsilon, at the same delta, is below the bound that assumes nothing about the mechanism."""
        return self.any_form.low > claimed

    def __str__(self) -> str:
        first = self.guesses[0]
        return (
            f"{self.recipe} was trained once on {self.rows:,} records, among them {self.included:,} of {self.canaries:,} canaries, chosen by coins. "
            f"Judged by its answers alone, epsilon is at least {self.any_form.low:.2f}, and {self.gaussian.low:.2f} if the training is a "
            f"Gaussian mechanism (delta {self.delta:g}, confidence {self.level:g} each). {first.right:,} of {first.made:,} guesses were right; "
            f"if all had been, the bounds would be {self.any_form_ceiling:.2f} and {self.gaussian_ceiling:.2f}. Better attacks may show more."
        )


def audit_in_one_run(
    table: Table,
    trainer: Trainer,
    *,
    canaries: int,
    seed: int,
    level: float = 0.95,
    delta: float = 1e-5,
) -> OneRunAudit:
    """Train once with canaries in the table, guess which ones, and return what that shows about epsilon.

    Canaries are records drawn from the table, taken out of it, and given a wrong class at random: a product is hardly ever
    sure of such a class unless it has learned the record. A fair coin decides whether each one is put back. One product is trained
    on the rest of the table and the included canaries. A canary's score is the log-odds of its wrong class in the product's answers.

    What is audited is the trainer on such a table, under add-or-remove of one record, by an outsider who sees answers. A product
    that is released was trained without the canaries; an adversary who sees steps or weights, or crafts better canaries, may show
    more. The canaries share one training and interfere with each other, so a bound far below a claim does not prove the claim.

    Parameters
    ----------
    table : Table
        Records to train on and to make canaries of.
    trainer : Trainer
        The trainer that is audited. Its noise must not depend on ``seed`` in a way that the guesses could use; they use answers only.
    canaries : int
        Number of canaries, at least 20; at least 20 other records must be left. More canaries can show a larger epsilon
        (:func:`reticent.evidence.one_run_ceiling`).
    seed : int
        Seed of canaries, coins and training.
    level : float
        Confidence of each bound, in (0, 1).
    delta : float
        The delta at which epsilon is stated, in (0, 1).

    Raises
    ------
    InvalidInput
        If there are too few records, or only one class.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from reticent.data import builtin_table
    >>> from reticent.train import EstimatorTrainer
    >>> tree = EstimatorTrainer.of(DecisionTreeClassifier(), preprocess=False)
    >>> audit = audit_in_one_run(builtin_table(), tree, canaries=200, seed=0)
    >>> audit.any_form.low > 1, audit.refutes(1.0)
    (True, True)
    """
    in_open_unit(level, "level")
    in_open_unit(delta, "delta")
    planted, rest = _planted(table, canaries, stream(seed, "canaries"))
    coins = stream(seed, "canaries/coins").random(canaries) < 0.5
    # One order for all records; those whose coin says no are left out of it, so neighbours differ in one record.
    whole = rest.join(planted)
    takes_part = np.concatenate([np.ones(len(rest), dtype=bool), coins])
    order = stream(seed, "canaries/order").permutation(len(whole))
    training = whole.take(order[takes_part[order]])
    # A stream of its own: a trainer that shares the coins' stream could leak them through its weights.
    product = trainer.train(training, seed=seed_for(seed, "canaries/train"))
    # Ranks: tied scores stand in the order of the canaries, which was drawn without the coins.
    scores = _ranks(_log_odds(product, planted))
    inside, outside = scores[coins], scores[~coins]
    return OneRunAudit(
        recipe=trainer.recipe,
        rows=len(training),
        canaries=canaries,
        included=len(inside),
        guesses=guess_counts(scores, coins),
        gaussian=one_run_lower_bound(scores, coins, level=level, delta=delta),
        gaussian_ceiling=one_run_ceiling(canaries, level=level, delta=delta),
        any_form=replace(
            # The prior is that of the fair coins.
            epsilon_lower_bound(
                inside,
                outside,
                level=level,
                rng=stream(seed, "canaries/ties"),
                delta=delta,
                prior=0.5,
            ),
            covers="trainer",
        ),
        any_form_ceiling=epsilon_ceiling(len(inside), len(outside), level=level),
        level=level,
        delta=delta,
        seed=seed,
    )


def _planted(
    table: Table, canaries: int, rng: np.random.Generator
) -> tuple[Table, Table]:
    """Return canaries, drawn from a table and given a wrong class, and the rest of the table."""
    if canaries < SMALLEST_PART or len(table) - canaries < SMALLEST_PART:
        raise InvalidInput(
            f"{canaries} canaries of a table of {len(table)} records leave {len(table) - canaries}, but an audit needs at least "
            f"{SMALLEST_PART} of each; ask for fewer canaries, or bring a larger table."
        )
    classes = len(table.classes)
    if classes < 2:
        raise InvalidInput(
            "the table has one class only, so no record can have a wrong one; audit a trainer on a table with two classes or more."
        )
    drawn = rng.permutation(len(table))
    originals = table.take(drawn[:canaries])
    # In the table's own order, so that the rest does not depend on how the canaries were drawn.
    rest = table.take(np.sort(drawn[canaries:]))
    absent = set(range(classes)) - set(rest.target.tolist())
    if absent:
        raise InvalidInput(
            f"no record of the class {table.classes[min(absent)]!r} is left beside {canaries} canaries, so no trainer can learn it; ask "
            "for fewer canaries."
        )
    # A shift of 1 to c - 1 reaches every class but the true one, each with the same probability.
    wrong = (originals.target + rng.integers(1, classes, size=canaries)) % classes
    # Each canary counts as a new person, because its coin is tossed independently of the original's other rows.
    units = table.units.max() + 1 + np.arange(canaries, dtype=np.int64)
    return replace(originals, target=wrong.astype(np.int64), units=units), rest


def _log_odds(product: Predictor, planted: Table) -> NDArray[np.float64]:
    """Return the log-odds of each canary's class."""
    p = np.asarray(product.predict_proba(planted.features), dtype=np.float64)
    at = np.arange(len(planted))
    stated = p[at, planted.target]
    # The other classes are summed: 1 - p would lose all digits where p is near 1.
    others = p.copy()
    others[at, planted.target] = 0.0
    against = others.sum(axis=1)
    return np.asarray(np.log(stated.clip(FLOOR)) - np.log(against.clip(FLOOR)))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return ranks
