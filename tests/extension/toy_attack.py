"""An attack of somebody else's: one file, nothing of reticent is changed."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent.attack import Need, Scores


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A record whose true class leads by far was trained on."""

    name: str = "margin"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(self, challenge, *, knowledge, rng):
        others = challenge.probabilities.copy()
        others[np.arange(len(challenge)), challenge.labels] = -np.inf
        return Scores(values=challenge.true_class_probability() - others.max(axis=1))


@dataclass(frozen=True, kw_only=True)
class Broken:
    """An attack that raises, with a record's content in its message."""

    name: str = "broken"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS})

    def score(self, challenge, *, knowledge, rng):
        raise KeyError("Jane Doe, born 1970")


@dataclass(frozen=True, kw_only=True)
class Needy:
    """An attack that needs what this audit does not have."""

    name: str = "needy"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWERS, Need.SYNTHETIC})

    def score(self, challenge, *, knowledge, rng):
        raise AssertionError("it must not be called")
