"""Mechanisms made of mechanisms: several releases about one table, and groups of records that are protected together."""

import math
from dataclasses import dataclass

from reticent.account.mechanisms import (
    Bounded,
    Grouped,
    Loss,
    Mechanism,
    Relation,
    repeated,
)
from reticent.errors import InvalidInput

__all__ = ["Composition", "Group", "largest_loss"]


def largest_loss(mechanism: Mechanism) -> float:
    """Return the largest privacy loss of a mechanism, its pure epsilon, or infinity.

    Examples
    --------
    >>> from reticent.account import Gaussian, Laplace
    >>> largest_loss(Composition(parts=((Laplace(noise_multiplier=2.0), 3),)))
    1.5
    >>> largest_loss(Gaussian(noise_multiplier=2.0))
    inf
    """
    return mechanism.largest_loss if isinstance(mechanism, Bounded) else math.inf


@dataclass(frozen=True, kw_only=True)
class Composition:
    """Several releases about the same table, one after another; each may depend on the results of those before it.

    Parameters
    ----------
    parts : tuple of (Mechanism, int)
        Mechanisms, each with the number of times that it is used.
    """

    parts: tuple[tuple[Mechanism, int], ...]

    def __post_init__(self) -> None:
        if not self.parts or any(times < 1 for _, times in self.parts):
            raise InvalidInput(
                "a composition needs at least one mechanism, each used at least once."
            )
        relations = {mechanism.relation for mechanism, _ in self.parts}
        if len(relations) > 1:
            raise InvalidInput(
                f"the mechanisms have the relations {', '.join(sorted(relations))}, whose epsilons cannot be added; describe all "
                "of them under one relation."
            )

    @property
    def relation(self) -> Relation:
        """The relation of all parts."""
        return self.parts[0][0].relation

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution of all parts together."""
        whole: Loss | None = None
        for mechanism, times in self.parts:
            part = repeated(mechanism, times, grid)
            whole = part if whole is None else whole.compose(part)
        assert whole is not None
        return whole

    @property
    def largest_loss(self) -> float:
        """The largest privacy losses of all parts, added up: pure epsilons compose."""
        return math.fsum(times * largest_loss(part) for part, times in self.parts)

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution of all parts together for a group of records."""
        parts = tuple(
            (Group(mechanism=part, size=size), times) for part, times in self.parts
        )
        return Composition(parts=parts).loss(grid)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The protection that a mechanism gives to a group of records that change together.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that protects one record. It may itself be a composition or a group.
    size : int
        Number of records in the group.
    """

    mechanism: Mechanism
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidInput(
                f"the size of a group must be at least 1, got {self.size}."
            )
        if not isinstance(self.mechanism, Grouped):
            raise InvalidInput(
                f"{type(self.mechanism).__name__} does not say how it protects a group of records; give it a method "
                "group_loss(size, grid)."
            )

    @property
    def relation(self) -> Relation:
        """The relation of the mechanism, with groups in place of records."""
        return self.mechanism.relation

    def loss(self, grid: float) -> Loss:
        """Return the privacy loss distribution for the whole group."""
        return self.group_loss(1, grid)

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss of one record, once for each record of the group."""
        return self.size * largest_loss(self.mechanism)

    def group_loss(self, size: int, grid: float) -> Loss:
        """Return the privacy loss distribution for a group of such groups."""
        assert isinstance(self.mechanism, Grouped)
        return self.mechanism.group_loss(size * self.size, grid)
