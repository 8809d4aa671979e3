"""What to audit, by which rules, with how much effort; and what comes of it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.attack import (
    Attack,
    CombinedPool,
    Confidence,
    Entropy,
    Gap,
    GradientNorm,
    LearnedOutputs,
    LearnedWhiteBox,
    LikelihoodRatio,
    LikelihoodRatioOffline,
    Loss,
    ModifiedEntropy,
    Population,
    QuantileRegression,
    RelativeRatio,
    ShadowModels,
)
from reticent.errors import InvalidInput
from reticent.evidence import Identification
from reticent.policy import Policy, read_policy
from reticent.product import Product, Provenance, Trainer
from reticent.report import Dossier

__all__ = [
    "DEFAULT_ATTACKS",
    "OUTPUT_ATTACKS",
    "POOL_ATTACKS",
    "WHITE_BOX_ATTACKS",
    "AuditPlan",
    "AuditResult",
    "PerRecord",
    "Progress",
    "silent",
]


# What needs the answers alone.
OUTPUT_ATTACKS: tuple[Attack, ...] = (
    Gap(),
    Loss(),
    Confidence(),
    Entropy(),
    ModifiedEntropy(),
    Population(),
    LearnedOutputs(),
)
DEFAULT_ATTACKS: tuple[Attack, ...] = (*OUTPUT_ATTACKS, QuantileRegression())

POOL_ATTACKS: tuple[Attack, ...] = (
    LikelihoodRatio(),
    LikelihoodRatioOffline(),
    RelativeRatio(),
    ShadowModels(),
    CombinedPool(),
)

# What is run as well where the product can be opened, as a network can.
WHITE_BOX_ATTACKS: tuple[Attack, ...] = (GradientNorm(), LearnedWhiteBox())

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Report progress to nobody."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What to audit, by which rules, with how much effort.

    Parameters
    ----------
    trainer : Trainer or None
        The recipe of the product; None if only the product is at hand.
    product : FittedProduct, NetworkProduct, ModuleProduct or None
        A product made elsewhere; None to train one on the defender's part.
    answers_only : bool
        Whether there is neither, but only answers saved before.
    policy : Policy
        The rules of release.
    seed : int
        Seed of split, training and attacks.
    attacks : tuple of Attack
        The outsider's attacks.
    minutes : float
        About how long the audit may take; the retraining insider uses what the rest leaves.
    rounds : int
        Largest number of retraining rounds per regime.
    pool : int or None
        Number of models trained on random halves of the records, for the attacks that
        compare with them; 0 for none, else even and at least 4. By default as many as a part of ``minutes``
        allows, up to 64.
    memory : float
        Gigabytes that the pool may take.
    workers : int
        Processes for retraining.
    claimed_epsilon : float or None
        What whoever trained the product claims.
    watch : int or None
        Trainings that an adversary watches step by step, if the trainer is private; by default as many as the time
        allows, up to 50.
    watched : Identification or None
        What came of watching before, if it is known.
    provenance : Provenance
        What is known of a product made elsewhere.
    product_content : str
        Hash of that product's file, by which kept stages know it.
    subject : mapping of str to str
        Names for the report.
    repeat : str
        How to run it again.
    """

    trainer: Trainer | None
    product: Product | None = None
    answers_only: bool = False
    policy: Policy = field(default_factory=lambda: read_policy("default"))
    seed: int = 0
    attacks: tuple[Attack, ...] = DEFAULT_ATTACKS
    minutes: float = 2.0
    rounds: int = 100
    pool: int | None = None
    memory: float = 2.0
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    claimed_epsilon: float | None = None
    watch: int | None = None
    watched: Identification | None = None
    provenance: Provenance = field(default_factory=Provenance)
    product_content: str = ""
    subject: Mapping[str, str] = field(default_factory=dict)
    repeat: str = ""

    def __post_init__(self) -> None:
        if self.trainer is None and self.product is None and not self.answers_only:
            raise InvalidInput(
                "there is neither a trainer nor a product, so there is nothing to audit; pass one of them."
            )
        if min(self.minutes, self.rounds, self.workers, self.memory) <= 0:
            raise InvalidInput(
                f"minutes ({self.minutes}), rounds ({self.rounds}), workers ({self.workers}) and memory "
                f"({self.memory}) must be positive; correct them."
            )
        if self.pool is not None and (self.pool < 0 or self.pool % 2 or self.pool == 2):
            raise InvalidInput(
                f"the pool has {self.pool} models, but every record must be in half of them and out of the other "
                "half, at least twice; use 0 or an even number from 4."
            )
        if self.pool and self.trainer is None:
            raise InvalidInput(
                "a pool is asked for but there is no trainer to make it; pass the trainer as well."
            )
        if self.seed < 0:
            raise InvalidInput(f"the seed is {self.seed}, but must be at least 0.")


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
