"""A kind of product: what the auditor looks at, which attacks, measures and sections it has."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.account import Relation
from reticent.attack import Attack, Need
from reticent.audits._sides import Sides
from reticent.audits._table_again import Learned
from reticent.data import Coded, Split, Table
from reticent.evidence import (
    Evidence,
    FileEvidence,
    GuessedAttribute,
    Joint,
    Measure,
    RecipeUse,
    SyntheticEvidence,
    Utility,
)
from reticent.product import Internals, OpenedFile, Product, Trainer
from reticent.report import SECTIONS, Section

__all__ = ["Answers", "Kind", "View", "Views"]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a product answers on every record that the auditor asks about.

    Parameters
    ----------
    values : array of float, shape (n, k)
        Its answers: a probability per class, or one prediction.
    outputs : array of float, shape (n, k)
        What two products are compared by.
    warnings : tuple of str
        Warnings that its training gave.
    exact : bool
        Whether the answers are the product's own, and not made from decision values.
    internals : Internals or None
        What is seen of each record inside the product, if it can be opened.
    seconds : float
        How long its training took; 0 if it came from elsewhere.
    as_trained : array of float or None
        The outputs before the product was cleaned; None if it was not.
    released : Coded or None
        The rows of a product that is a table; None for a model.
    critic : array of float or None
        What the critic of a table's generator says of each record; None if there is none.
    kept : tuple of str
        What of single people could not be cleaned out of the product, and no attack measures.
    """

    values: NDArray[np.float64]
    outputs: NDArray[np.float64]
    warnings: tuple[str, ...] = ()
    exact: bool = True
    internals: Internals | None = None
    seconds: float = 0.0
    as_trained: NDArray[np.float64] | None = None
    released: Coded | None = None
    critic: NDArray[np.float64] | None = None
    kept: tuple[str, ...] = ()

    def take(self, rows: NDArray[np.int64]) -> "Answers":
        """Return the answers on some of the records."""
        return replace(
            self,
            values=self.values[rows],
            outputs=self.outputs[rows],
            internals=None if self.internals is None else self.internals.take(rows),
            as_trained=None if self.as_trained is None else self.as_trained[rows],
            critic=None if self.critic is None else self.critic[rows],
        )


@dataclass(frozen=True, kw_only=True)
class View:
    """Something of an answer that an adversary may see, one value or vector per record.

    Parameters
    ----------
    feature : str
        What is seen, for the report.
    stream : str
        Name of its random stream.
    values : array of float
        The values.
    """

    feature: str
    stream: str
    values: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Views:
    """What adversaries may see of an answer, by how its distribution is estimated."""

    discrete: tuple[View, ...] = ()
    density: tuple[View, ...] = ()
    vectors: tuple[View, ...] = ()

    def __len__(self) -> int:
        return len(self.discrete) + len(self.density) + len(self.vectors)


class Kind(ABC):
    """One kind of product. Everything that differs between kinds is here; the pipeline asks nothing else.

    Attributes
    ----------
    name : str
        The name in policies and dossiers.
    attacks : tuple of Attack
        All attacks on this kind, in the order in which they are run; each says what it needs.
    quick_attacks : tuple of Attack
        Attacks on a pool that are cheap enough to be run against every model of it.
    ratio_attack : str
        Of these, the one whose score is a log-likelihood ratio, so that 0 is its natural threshold.
    posterior_attacks : tuple of str
        Attacks whose probabilities of membership are shown, the best informed first.
    measures : tuple of Measure
        What is measured and can be limited.
    sections : tuple of Section
        The sections of the report.
    noun : str
        What sentences call such a product.
    has_file : bool
        Whether the product has bytes that attackers read beside its answers.
    plays_insider : bool
        Whether somebody who trains again can be played against it.
    can_run_again : bool
        Whether its recipe can be run on neighbouring tables to put a claimed epsilon to the test, in place of watching steps.
    target : str or None
        The column that users of a synthetic table predict, as far as it is known; models have one of their own.
    guesses_attributes : bool
        Whether hidden values of people are guessed from its answers.
    has_steps : bool
        Whether its training is a series of noisy steps, so that a guarantee follows from their noise, their number and how they sample.
    memorising : str
        What the control that must be caught does.
    caught_below : float or None
        The privacy score below which that control must fall; None for the policy's limit. A score below 1 is more than chance.
    """

    name: str
    attacks: tuple[Attack, ...]
    quick_attacks: tuple[Attack, ...]
    ratio_attack: str
    posterior_attacks: tuple[str, ...]
    measures: tuple[Measure, ...]
    sections: tuple[Section, ...] = SECTIONS
    noun: str = "model"
    has_file: bool = True
    plays_insider: bool = True
    has_steps: bool = True
    can_run_again: bool = False
    target: str | None = None
    guesses_attributes: bool = False
    memorising: str = "A product that memorises its records"
    caught_below: float | None = None

    def beside(self, split: Split) -> "Kind":
        """Return the kind as it asks products about the people of one audit: itself, unless it needs to know them first."""
        return self

    def unrelated(self, split: Split, *, rng: np.random.Generator) -> Product | None:
        """Return a product that cannot know the members and takes no training; None if there is none."""
        return None

    def neighbours(self, split: Split, relation: Relation) -> Sequence[tuple[Any, ...]]:
        """Return pairs of neighbouring tables on which a recipe can be run again, the most telling first; nothing for models, whose steps are watched."""
        return ()

    def train_many(
        self,
        trainer: Trainer,
        table: Table,
        masks: NDArray[np.bool_],
        seeds: NDArray[np.int64],
        *,
        memory: float,
    ) -> NDArray[Any]:
        """Return the answers of one model per mask on all records; see :meth:`reticent.product.Trainer.train_many`."""
        return trainer.train_many(table, masks, seeds, memory=memory)

    def guess_attributes(
        self,
        product: Any,
        table: Table,
        sides: Sides,
        *,
        level: float,
        rng: np.random.Generator,
    ) -> tuple[GuessedAttribute, ...]:
        """Return how well hidden values of people are guessed from the answers to changed records; nothing unless the kind can."""
        return ()

    def contents(
        self,
        challenge: Any,
        sides: Sides,
        *,
        smallest_group: int,
        beside: OpenedFile | None = None,
        seed: int = 0,
    ) -> FileEvidence | None:
        """Return what stands in a product whose answers are its file, and in what that file holds besides; None for any other."""
        return None

    def remedies(self, evidence: Evidence) -> tuple[str, ...]:
        """Return what could help a product of this kind that was refused, by what was found about it; nothing for models, whose recipes say it."""
        return ()

    def further(
        self,
        challenge: Any,
        sides: Sides,
        scores: NDArray[np.float64],
        *,
        joint: Joint,
        choices: int,
        smallest: int,
        seed: int,
    ) -> SyntheticEvidence | None:
        """Return what is known beside the attacks; None for models.

        Parameters
        ----------
        challenge : challenge
            What attackers were shown.
        sides : Sides
            Who is a member.
        scores : array of float
            Those of the strongest attack.
        joint : Joint
            The confidence that the statements of the policy share.
        choices : int
            Attacks among which the strongest was chosen.
        smallest : int
            Number of people from which something may be said of them.
        seed : int
            Of the audit.
        """
        return None

    def settled(self) -> "Kind":
        """Return the same kind with every choice made that it would make on the people of an audit, so that no job makes it again."""
        return self

    def learned_again(
        self, trainer: Trainer | None, split: Split, *, seed: int
    ) -> Learned:
        """Return what models say of non-members after they learned from a product that a trainer makes again of the members, or from the members if there is none.

        Only kinds that can be run again have products to learn from.
        """
        raise AssertionError(
            f"a {self.name} is not made again; ask can_run_again first"
        )

    def use_of_recipe(
        self, learned: Sequence[Learned], sides: Sides, *, level: float, seed: int
    ) -> RecipeUse | None:
        """Return what products of the recipe are good for on average; None for models.

        Parameters
        ----------
        learned : sequence of Learned
            What :meth:`learned_again` returned for the members, and for each product that was made again.
        sides : Sides
            Who is a member.
        level : float
            Confidence of each interval by itself.
        seed : int
            Of the audit.
        """
        return None

    def available(self, has: frozenset[Need]) -> tuple[Attack, ...]:
        """Return the attacks whose needs are met."""
        return tuple(attack for attack in self.attacks if attack.needs <= has)

    @abstractmethod
    def ask(self, product: Any, table: Table, *, looks_inside: bool = True) -> Answers:
        """Return what a product answers on the records of a table, and what is inside it if it can be opened."""

    @abstractmethod
    def can_learn_from(self, table: Table) -> bool:
        """Return whether a product trained on a table would have the same form as one trained on the whole."""

    @abstractmethod
    def challenge(
        self, answers: Answers, table: Table, features: NDArray[np.float64] | None
    ) -> Any:
        """Return what attackers are shown: answers and records, no tags."""

    @abstractmethod
    def memorised(self, challenge: Any, known: NDArray[np.bool_]) -> Any:
        """Return the challenge of a product that looks up the records it knows and guesses all others."""

    @abstractmethod
    def pool(
        self, masks: NDArray[np.bool_], answers: NDArray[np.float32], table: Table
    ) -> Any:
        """Return many models' answers on the records of a table as a pool."""

    @abstractmethod
    def model_challenge(self, pool: Any, model: int) -> Any:
        """Return what attackers are shown if a model of the pool is the target."""

    @abstractmethod
    def utility(
        self, challenge: Any, sides: Sides, *, members: Table | None, joint: Joint
    ) -> Utility:
        """Return what the product is good for, on records that did not train it."""

    @abstractmethod
    def theorems(
        self, challenge: Any, sides: Sides, *, pool: Any
    ) -> Mapping[str, float]:
        """Return the accuracies that Theorems 1 and 2 of the LTU paper guarantee an attacker."""

    @abstractmethod
    def views(self, challenge: Any, sides: Sides) -> Views:
        """Return what adversaries may see of an answer, one value or vector per unit."""
