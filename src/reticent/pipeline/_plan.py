"""What to audit and by which rules, and the result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reticent.attack import Attack
from reticent.audits import Kind, kind_of
from reticent.errors import InvalidInput
from reticent.evidence import Identification, Measure
from reticent.policy import Policy, read_policy
from reticent.product import Product, ProductFiles, Provenance, Trainer
from reticent.report import Dossier, Section
from reticent.run import Content

__all__ = ["AuditPlan", "AuditResult", "PerRecord", "policy_of"]

# Every record is then in two models and out of two, the fewest from which a spread can be estimated.
FEWEST_MODELS = 4
INSIDER_ATTACK = "retraining"  # how policies name the retraining insider


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What to audit, and by which rules. How it is carried out is a :class:`reticent.run.Run`.

    Parameters
    ----------
    trainer : Trainer or None
        The recipe of the product; None if only the product is at hand.
    product : Product or None
        A product made elsewhere; None to train one on the defender's part.
    of_kind : Kind or None
        What is audited, if it is no model; None to ask the product or its recipe.
    product_content : Content
        Content of that product, which is part of the key of every stored stage.
    product_files : ProductFiles or None
        Its files, if it was saved: what is read of the product, and what its digest is about.
    keeps_files : bool
        Whether the files of the product that is trained are kept to be written: those that were read, and no others.
    cleaned : bool
        Whether the product that is trained is cleaned by :func:`reticent.product.clean_product` before it is asked and attacked, so that what
        is audited is what would be released.
    answers_only : bool
        Whether there is neither, but only answers saved before.
    policy : Policy
        The rules of release.
    attacks : tuple of Attack or None
        The outsider's attacks; by default all that the kind of product has.
    own_attacks : tuple of Attack
        Further attacks.
    own_measures : tuple of Measure
        Further measures, which the policy may limit.
    own_sections : tuple of Section
        Further sections of the report.
    rounds : int
        Largest number of retraining rounds per regime.
    pool : int or None
        Number of models trained on random halves of the records, for the attacks that
        compare with them; 0 for none, else even and at least 4. By default as many as a part of the time
        allows, up to 64.
    watch : int or None
        Trainings that an adversary watches step by step, if the trainer is private; by default as many as the time
        allows, up to 50.
    watched : Identification or None
        Result of an earlier identification, if there is one.
    claimed_epsilon : float or None
        The epsilon that whoever trained the product claims.
    population : int or None
        People among whom an attacker would look for members, members included; None if nobody stated it.
    provenance : Provenance
        What is known of a product made elsewhere.
    by : str
        Who runs the audit, for the dossier; empty if they do not say.
    product_digest : str
        SHA-256 of the stored product (:func:`reticent.product.product_digest`); empty if it is not stored.
    table_digest : str
        Keyed digest of the table's file; by default one of its content.
    subject : mapping of str to str
        Names for the report.
    repeat : str
        How to run it again.
    arguments : tuple of str
        What was typed, if the audit came from the command line; next steps are commands then.
    """

    trainer: Trainer | None
    product: Product | None = None
    of_kind: Kind | None = None
    product_content: Content = Content(())  # noqa: RUF009 (it is frozen)
    product_files: ProductFiles | None = None
    keeps_files: bool = False
    cleaned: bool = False
    answers_only: bool = False
    policy: Policy = field(default_factory=lambda: read_policy("default"))
    attacks: tuple[Attack, ...] | None = None
    own_attacks: tuple[Attack, ...] = ()
    own_measures: tuple[Measure, ...] = ()
    own_sections: tuple[Section, ...] = ()
    rounds: int = 100
    pool: int | None = None
    watch: int | None = None
    watched: Identification | None = None
    claimed_epsilon: float | None = None
    population: int | None = None
    provenance: Provenance = field(default_factory=Provenance)
    by: str = ""
    product_digest: str = ""
    table_digest: str = ""
    subject: Mapping[str, str] = field(default_factory=dict)
    repeat: str = ""
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.trainer is None and self.product is None and not self.answers_only:
            raise InvalidInput(
                "there is neither a trainer nor a product, so there is nothing to audit; pass one of them."
            )
        if self.cleaned and self.product is not None:
            raise InvalidInput(
                "a product made elsewhere cannot be cleaned by its audit, because the file that is released would be another one; clean it "
                "with reticent.clean first, and audit what comes of it."
            )
        if self.rounds < 1:
            raise InvalidInput(f"rounds must be at least 1, got {self.rounds}.")
        if self.pool is not None and (
            self.pool < 0 or self.pool % 2 or 0 < self.pool < FEWEST_MODELS
        ):
            raise InvalidInput(
                f"the pool has {self.pool} models, but every record must be in half of them and out of the other "
                "half, at least twice; use 0 or an even number from 4."
            )
        if self.pool and self.trainer is None:
            raise InvalidInput(
                "a pool is asked for but there is no trainer and no generator to make it; pass the trainer of a model, or the generator of a synthetic table, as well."
            )
        names = [attack.name for attack in self.known_attacks]
        for name in names:
            # Scores, failures and limits are stored by name.
            if names.count(name) > 1 or name == INSIDER_ATTACK:
                raise InvalidInput(
                    f"two attacks are called {name!r}, so that nobody could tell their results apart; give yours another name."
                )
        measured = [measure.name for measure in self.measures]
        for name in measured:
            if measured.count(name) > 1:
                raise InvalidInput(
                    f"two measures are called {name!r}, so that a limit could mean either; give yours another name."
                )
        self.policy.check(
            self.measures, attacks=[*names, INSIDER_ATTACK], kind=self.kind.name
        )

    @property
    def kind(self) -> Kind:
        """The kind of product that is audited."""
        return self.of_kind or kind_of(self.trainer, self.product)

    @property
    def known_attacks(self) -> tuple[Attack, ...]:
        """All attacks that are run if what they need is there."""
        attacks = self.kind.attacks if self.attacks is None else self.attacks
        return (*attacks, *self.own_attacks)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Everything that is measured."""
        return (*self.kind.measures, *self.own_measures)


@dataclass(frozen=True, kw_only=True)
class PerRecord:
    """Individual risk, one entry per unit. SENSITIVE: it names who was in the table.

    Parameters
    ----------
    row : array of int
        Row number of the unit's first record in the table that was read.
    member : array of bool
        Whether the unit trained the product.
    score : array of float
        Score of the strongest attack.
    privacy : array of float
        Individual privacy score.
    posterior : array of float
        Probability of membership at even prior odds, by the attack that predicts one; NaN if none does.
        Its log-odds are the effective privacy loss of the unit.
    """

    row: NDArray[np.int64]
    member: NDArray[np.bool_]
    score: NDArray[np.float64]
    privacy: NDArray[np.float64]
    posterior: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """The dossier, and what never enters it."""

    dossier: Dossier
    per_record: PerRecord
    product: Product | None
    files: ProductFiles | None = None  # that were read, if the plan keeps them


def policy_of(policy: Policy | Path | str | None) -> Policy:
    """Return a policy, given itself, its file or its name; the default one if none is given."""
    if isinstance(policy, Policy):
        return policy
    return read_policy("default" if policy is None else policy)
