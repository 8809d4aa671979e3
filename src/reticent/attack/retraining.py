"""Black-box retraining in LTU rounds: attacker (3) of the LTU paper.

A round hides the tags of one member d and one non-member r, and shows the two as u1 and u2. The attacker trains
one model on (D - d) + u1 and one on (D - d) + u2, and says that the record whose model answers more
like the product belongs to D. Theorem 3: if the trainer is deterministic and does not depend on the order of
records, and different records give different products, the attacker is always right.

The number of wins is binomial only if rounds are independent given the product. So rounds share nothing that was
drawn at random: each draws its pair and trains both of its models. One exception saves half of the trainings. Where training again
with the product's seed and order gives the product itself, that model is the same in every round, and is trained once. Whether it
is, is looked at and not assumed: :meth:`RetrainingRounds.train_again` (decision 0037).

References
----------
.. [1] Pedersen et al., "LTU attacker for membership inference", arXiv:2202.02278, Figure 2,
   Theorem 3 and Table 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.data import Table
from reticent.product import Trainer
from reticent.run import Workers, stream

__all__ = ["Regime", "Retrained", "RetrainingRounds", "Round", "play_round"]

ROUNDING = 1e-12  # of the length of all answers: thousands of double-precision operations err by less


class Regime(StrEnum):
    """What the attacker knows about the training besides the records and the recipe."""

    ORIGINAL_SEEDED = "original order, seeded"
    SHUFFLED_SEEDED = "shuffled, seeded"
    SHUFFLED_UNSEEDED = "shuffled, unseeded"


class Retrained(StrEnum):
    """What training again gives, on the same records with the same order and seed."""

    PRODUCT = "the product"
    VARIES = "another product each time"
    OTHER = "always the same product, and not this one"


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round.

    Parameters
    ----------
    win : float
        1 if the attacker was right, 0 if wrong, 1/2 for a tie.
    repeats : bool
        Whether the model that was trained on D gave the answers of the product as it was trained, wherever it was asked in this round.
    """

    win: float
    repeats: bool


@dataclass(frozen=True, kw_only=True)
class RetrainingRounds:
    """Rounds of the retraining attacker against one product.

    The answers of both models are compared on both records in question, where Figure 2 of [1]_ asks each model about its own record
    only, which sees less (``docs/experiments/ltu_table_1.md``). If that is a tie (the answers of a nearest-neighbour
    product may not change there), they are compared on a number of other records.

    Parameters
    ----------
    trainer : Trainer
        The trainer of the product.
    defender, reserved : Table
        Members, in the order of training, and non-members.
    answers : array of float
        The product's outputs on all of ``defender``, then all of ``reserved``.
    train_seed : int
        Seed that the product was trained with; the attacker knows it in the seeded regimes.
    seed : int
        Seed of the rounds (pairs, orders, fresh training seeds).
    probes : int
        Number of other records on which a tie is decided.
    as_trained : array of float, optional
        Outputs of the product as its training left it, if it was changed since: training again is compared with these.
    """

    trainer: Trainer
    defender: Table
    reserved: Table
    answers: NDArray[np.float64]
    train_seed: int
    seed: int
    probes: int = 400
    as_trained: NDArray[np.float64] | None = None

    def replica(self) -> NDArray[np.float64]:
        """Train on D once more, with the same order and seed, and return the answers in the order of ``answers``."""
        product = self.trainer.train(self.defender, seed=self.train_seed)
        everybody = self.defender.join(self.reserved).features
        return np.asarray(product.outputs(everybody), dtype=np.float64)

    def train_again(self, replica: NDArray[np.float64]) -> Retrained:
        """Say what training again gives; train once more if one replica does not tell.

        A replica that differs from the product is trained a second time. If the second differs from the first, the seed does not fix
        the training, and rounds that train their own models are independent. If it is the first, the seed fixes the training, but the
        product has another seed or was trained elsewhere. The attacker's model would then be the same wrong one in every round, near
        the product or far from it by luck, and the rounds would share that luck: the regimes that know the seed cannot be played.

        Parameters
        ----------
        replica : array of float
            What :meth:`replica` has returned.
        """
        if _agree(replica, self._original):
            return Retrained.PRODUCT
        if _agree(replica, self.replica()):
            return Retrained.OTHER
        return Retrained.VARIES

    @property
    def _original(self) -> NDArray[np.float64]:
        return self.answers if self.as_trained is None else self.as_trained

    def play_many(
        self,
        regime: Regime,
        numbers: Sequence[int],
        *,
        replica: NDArray[np.float64] | None,
        workers: Workers,
    ) -> NDArray[np.float64]:
        """Play several rounds and return their wins, which do not depend on the workers; see :meth:`play`."""
        items = [(regime, number) for number in numbers]
        rounds = workers.map(play_round, items, shared=(self, {regime: replica}))
        return np.array([one.win for one in rounds])

    def play(
        self, regime: Regime, number: int, *, replica: NDArray[np.float64] | None
    ) -> Round:
        """Play one round.

        As far as the trainer keeps to its seed, the result depends only on the regime and the round's number, so
        rounds can be played in any order and in any process.

        Parameters
        ----------
        regime : Regime
            What the attacker knows.
        number : int
            Number of the round.
        replica : array of float or None
            Answers of the attacker's model for the right record, in the regime :attr:`Regime.ORIGINAL_SEEDED`, if training again is
            known to give the product. None: the round trains its own, which is always right.
        """
        rng = stream(self.seed, f"retraining/{regime}/{number}")
        members = len(self.defender)
        person = _rows_of_one(self.defender, rng)
        guest = _rows_of_one(self.reserved, rng)
        everyone = members + len(self.reserved)
        # Other records are asked about as well, because both models may answer alike on the pair itself.
        probes = rng.choice(everyone, min(self.probes, everyone), replace=False)
        rows = np.concatenate([person, members + guest, probes])
        pair = len(person) + len(guest)
        asked = self._take(rows).features
        if regime == Regime.ORIGINAL_SEEDED and replica is not None:
            # The product itself, trained again: without a shuffle it is the same in every round.
            with_member = replica[rows]
        else:
            with_member = self._retrain(regime, person, None, rng).outputs(asked)
        with_guest = self._retrain(regime, person, guest, rng).outputs(asked)
        return Round(
            win=_nearer(with_member, with_guest, self.answers[rows], pair),
            repeats=_agree(with_member, self._original[rows]),
        )

    def _take(self, rows: NDArray[np.int64]) -> Table:
        """Return rows of both tables, the reserved ones numbered after the defender's, without joining the two."""
        members = len(self.defender)
        inside = rows < members
        order = np.empty(len(rows), dtype=np.int64)
        order[np.flatnonzero(inside)] = np.arange(inside.sum())
        order[np.flatnonzero(~inside)] = np.arange(inside.sum(), len(rows))
        picked = self.defender.take(rows[inside])
        return picked.join(self.reserved.take(rows[~inside] - members)).take(order)

    def _retrain(
        self,
        regime: Regime,
        person: NDArray[np.int64],
        guest: NDArray[np.int64] | None,
        rng: np.random.Generator,
    ) -> Any:
        """Train on D; with a guest, one person's records are replaced by the guest's."""
        table = self.defender
        if guest is not None:
            rows = np.arange(len(table), dtype=np.int64)
            arrived = len(table) + np.arange(len(guest))
            # The guest takes the person's place: in the original order nothing else may change.
            rows = np.insert(np.delete(rows, person), person[0], arrived)
            table = table.join(self.reserved.take(guest)).take(rows)
        if regime != Regime.ORIGINAL_SEEDED:
            table = table.take(rng.permutation(len(table)))
        seed = self.train_seed
        if regime == Regime.SHUFFLED_UNSEEDED:
            seed = int(rng.integers(2**31 - 1))
        return self.trainer.train(table, seed=seed)


def play_round(
    shared: tuple[RetrainingRounds, Mapping[Regime, NDArray[np.float64] | None]],
    item: tuple[Regime, int],
) -> Round:
    """Play one round; this is a job for workers.

    Parameters
    ----------
    shared : tuple
        The rounds, and the answers that those of a regime share; see :meth:`RetrainingRounds.play`.
    item : tuple
        Regime and number of the round.
    """
    rounds, replicas = shared
    regime, number = item
    return rounds.play(regime, number, replica=replicas[regime])


def _rows_of_one(table: Table, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of a random unit, of which most tables have one."""
    units = np.unique(table.units)
    return np.flatnonzero(table.units == units[rng.integers(len(units))])


def _agree(some: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether two products give the same answers, but for the rounding of their last digits."""
    return _distance(some, others) <= _rounding(others)


def _distance(some: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(some - others))


def _rounding(answers: NDArray[np.float64]) -> float:
    """Return the distance that can be due to rounding alone."""
    return ROUNDING * float(np.linalg.norm(answers) + 1)


def _nearer(
    with_member: NDArray[np.float64],
    with_guest: NDArray[np.float64],
    truth: NDArray[np.float64],
    pair: int,
) -> float:
    """Return 1 if the model with the member answers more like the product, first on the pair, then on the probes."""
    # Smaller differences can be due to rounding alone, and count as ties.
    noise = _rounding(truth)
    for asked in (slice(0, pair), slice(pair, None)):
        right = _distance(with_member[asked], truth[asked])
        wrong = _distance(with_guest[asked], truth[asked])
        if abs(right - wrong) > noise:
            return float(right < wrong)
    return 0.5
