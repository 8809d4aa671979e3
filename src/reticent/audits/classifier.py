"""The audit of a classifier."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, xlogy

from reticent.attack import (
    Challenge,
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
    Reader,
    RelativeRatio,
    ShadowModels,
)
from reticent.audits._attributes import guessed_attributes
from reticent.audits._kind import Answers, Kind, View, Views
from reticent.audits._measures import MEASURES
from reticent.audits._sides import Sides
from reticent.data import Table
from reticent.evidence import (
    GuessedAttribute,
    Joint,
    Utility,
    share_saved,
    theorem_1,
    theorem_2,
    utility,
)
from reticent.pool import Pool
from reticent.product import Internals

__all__ = ["CLASSIFIER", "ClassifierKind"]

# Logits of probabilities nearer to 0 or 1 are not told apart: rounding of the answers decides there.
CLIP = 1e-6
# Decimals of a person's share of errors: people with several records have many different shares, and a discrete
# distribution can be estimated only if values repeat.
ERROR_DIGITS = 2


class ClassifierKind(Kind):
    """Products that answer with a probability per class."""

    name = "classifier"
    attacks = (
        Gap(),
        Loss(),
        Confidence(),
        Entropy(),
        ModifiedEntropy(),
        Population(),
        LearnedOutputs(),
        QuantileRegression(),
        LikelihoodRatio(),
        LikelihoodRatioOffline(),
        RelativeRatio(),
        ShadowModels(),
        CombinedPool(),
        GradientNorm(),
        LearnedWhiteBox(),
        Reader(),
    )
    quick_attacks = (RelativeRatio(), LikelihoodRatio())
    ratio_attack = "lira"
    posterior_attacks = ("combined_pool", "learned_outputs")
    measures = MEASURES
    guesses_attributes = True

    def ask(self, product: Any, table: Table, *, looks_inside: bool = True) -> Answers:
        """Return probabilities, outputs, and losses, gradients and activations if the product can be opened."""
        features = table.features
        # Answers first: they are checked, and what gives none that are numbers is not opened.
        values, outputs = product.asked(features)
        internals = None
        if looks_inside:
            internals = product.internals(features, table.target)
        return Answers(
            values=values,
            outputs=outputs,
            warnings=product.warnings,
            exact=product.has_probabilities,
            internals=internals,
        )

    def guess_attributes(
        self,
        product: Any,
        table: Table,
        sides: Sides,
        *,
        level: float,
        rng: np.random.Generator,
    ) -> tuple[GuessedAttribute, ...]:
        """Return how well a few columns are guessed from the probability of the known class."""
        return guessed_attributes(product, table, sides, level=level, rng=rng)

    def can_learn_from(self, table: Table) -> bool:
        """Return whether every class has a record."""
        return len(np.unique(table.target)) == len(table.classes)

    def challenge(
        self, answers: Answers, table: Table, features: NDArray[np.float64] | None
    ) -> Challenge:
        """Return probabilities and true classes."""
        return Challenge(
            probabilities=answers.values,
            labels=table.target,
            features=features,
            internals=answers.internals,
        )

    def memorised(self, challenge: Challenge, known: NDArray[np.bool_]) -> Challenge:
        """Return answers that are certain of every known record and have the classes' frequencies for all others."""
        labels, classes = challenge.labels, challenge.probabilities.shape[1]
        # The best guess about a record that is not in the look-up table.
        frequencies = np.bincount(labels, minlength=classes) / len(labels)
        answers = np.tile(frequencies, (len(labels), 1))
        answers[known] = np.eye(classes)[labels[known]]
        internals = None
        if challenge.internals is not None:
            internals = _memorised_internals(
                answers, labels, layers=challenge.internals.layers
            )
        return Challenge(
            probabilities=answers,
            labels=labels,
            features=challenge.features,
            internals=internals,
            file=None if challenge.file is None else challenge.file.memorised(known),
        )

    def pool(
        self, masks: NDArray[np.bool_], answers: NDArray[np.float32], table: Table
    ) -> Pool:
        """Return probabilities of many models."""
        return Pool(masks=masks, probabilities=answers, labels=table.target)

    def model_challenge(self, pool: Pool, model: int) -> Challenge:
        """Return the answers of one model of the pool."""
        return Challenge(
            probabilities=pool.probabilities[model].astype(np.float64),
            labels=pool.labels,
        )

    def utility(
        self,
        challenge: Challenge,
        sides: Sides,
        *,
        members: Table | None,
        joint: Joint,
    ) -> Utility:
        """Return (c accuracy - 1)/(c - 1) on non-members."""
        outside = ~sides.tags
        is_right = challenge.probabilities.argmax(axis=1) == challenge.labels
        classes = challenge.probabilities.shape[1]
        frequencies = np.bincount(challenge.labels[outside], minlength=classes)
        # The constant is known before the judged records are seen: the most frequent class of the members.
        constant = np.bincount(challenge.labels[sides.tags], minlength=classes).argmax()
        misses = challenge.labels[outside] != constant
        gain = None
        if misses.any():
            gain = joint.state(
                share_saved(
                    ~is_right[outside],
                    misses,
                    units=sides.units[outside],
                    level=joint.each,
                )
            )
        score = utility(
            int(is_right[outside].sum()),
            int(outside.sum()),
            classes=classes,
            level=joint.each,
            # Records of one person are not independent, so the interval is as wide as if each person counted once.
            independent=int((~sides.unit_tags).sum()),
        )
        return Utility(
            score=joint.state(score),
            definition="(c accuracy - 1)/(c - 1) for c classes: 0 is a uniform guess, 1 is never wrong",
            baseline=float(
                (classes * frequencies[constant] / frequencies.sum() - 1)
                / (classes - 1)
            ),
            baseline_words="always answering the most frequent class",
            gain=gain,
            beside={},
        )

    def theorems(
        self, challenge: Challenge, sides: Sides, *, pool: Pool | None
    ) -> Mapping[str, float]:
        """Return them by 1 - p(true class), and Theorem 2 by the 0-1 loss as well."""
        loss = 1 - challenge.true_class_probability()
        wrong = (challenge.probabilities.argmax(axis=1) != challenge.labels).astype(
            float
        )
        members, nonmembers = loss[sides.tags], loss[~sides.tags]
        p_reserved, p_defender, first = theorem_1(members, nonmembers)
        e_reserved, e_defender, second = theorem_2(members, nonmembers)
        error_reserved, error_defender, third = theorem_2(
            wrong[sides.tags], wrong[~sides.tags]
        )
        return {
            "p_reserved": p_reserved,
            "p_defender": p_defender,
            "theorem_1": first,
            "e_reserved": e_reserved,
            "e_defender": e_defender,
            "theorem_2": second,
            "error_reserved": error_reserved,
            "error_defender": error_defender,
            "theorem_2_zero_one": third,
        }

    def views(self, challenge: Challenge, sides: Sides) -> Views:
        """Return the 0-1 loss, the loss, and the answer with its class."""
        p = challenge.probabilities.clip(0.0, 1.0)
        wrong = (p.argmax(axis=1) != challenge.labels).astype(np.float64)
        phi = logit(challenge.true_class_probability().clip(CLIP, 1 - CLIP))
        # Logit of the true class, negative entropy and class: what the metric attacks are functions of.
        columns = (phi, xlogy(p, p).sum(axis=1), challenge.labels.astype(np.float64))
        return Views(
            discrete=(
                View(
                    feature="0-1 loss",
                    stream="worst/0-1",
                    values=np.round(sides.by_unit(wrong), ERROR_DIGITS),
                ),
            ),
            density=(
                View(feature="loss", stream="worst/loss", values=sides.by_unit(phi)),
            ),
            vectors=(
                View(
                    feature="answer and class",
                    stream="worst/answer",
                    values=np.column_stack([sides.by_unit(c) for c in columns]),
                ),
            ),
        )


def _memorised_internals(
    answers: NDArray[np.float64], labels: NDArray[np.int64], *, layers: tuple[str, ...]
) -> Internals:
    """Return what is seen inside a product that looks records up.

    Each of its layers is a table with a row of logits for each record, and their sum is answered by: the gradient of a
    record's loss is p - e_y in each. The layers have the product's names, so that whoever attacks one of them finds it.
    """
    rows = np.arange(len(labels))
    delta = answers.copy()
    delta[rows, labels] -= 1.0
    return Internals(
        losses=-np.log(answers[rows, labels]),
        gradient_norms=np.tile(np.linalg.norm(delta, axis=1)[:, None], len(layers)),
        layers=layers,
        activations=np.ones((len(labels), 1), dtype=np.float32),
    )


CLASSIFIER = ClassifierKind()
