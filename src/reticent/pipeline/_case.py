"""What is audited: the divided table, the recipe or the product, and what every stage depends on."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reticent.audits import Kind, Sides
from reticent.data import Split, Table, as_numbers
from reticent.pipeline._plan import AuditPlan
from reticent.run import Content, Run, content_of, seed_for, stream

__all__ = ["Case", "divide", "train_seed"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A plan on a divided table.

    Parameters
    ----------
    plan : AuditPlan
        What to audit and by which rules.
    split : Split
        Members, non-members, and perhaps others.
    seed : int
        Seed of the run.
    """

    plan: AuditPlan
    split: Split
    seed: int

    @classmethod
    def of(cls, table: Table, plan: AuditPlan, split: Split | None, run: Run) -> "Case":
        """Return the case of a table, divided by the run's seed if it is not divided yet."""
        parts = divide(table, seed=run.seed) if split is None else split
        return cls(plan=plan, split=parts, seed=run.seed)

    @cached_property
    def kind(self) -> Kind:
        """The kind of product, as it asks about the people of this case."""
        return self.plan.kind.beside(self.split)

    @cached_property
    def both(self) -> Table:
        """Members, then non-members."""
        return self.split.defender.join(self.split.reserved)

    @cached_property
    def sides(self) -> Sides:
        """Who is a member."""
        tags = np.repeat(
            [True, False], [len(self.split.defender), len(self.split.reserved)]
        )
        return Sides(tags, self.both.units)

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """The records as numbers, without the target."""
        # The target stands last; attackers are shown it apart from the features.
        return as_numbers(self.both)[0][:, :-1]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """The records that a look-up table of the members would find: members, and non-members identical to one."""
        return np.isin(self.both.row_hashes, self.split.defender.row_hashes)

    @property
    def data_content(self) -> Content:
        """What the stages that look at the records alone depend on."""
        parts = (self.split.defender, self.split.reserved, self.split.auxiliary)
        # The parts and not the table: the same table divided differently is another audit.
        fingerprints = ["none" if p is None else p.fingerprint for p in parts]
        return content_of(*fingerprints, self.seed)

    @cached_property
    def content(self) -> Content:
        """What every other stage depends on."""
        trainer = self.plan.trainer
        recipe = Content(()) if trainer is None else trainer.content()
        cleaned = content_of("cleaned") if self.plan.cleaned else Content(())
        return self.data_content + recipe + self.plan.product_content + cleaned

    @property
    def product_seed(self) -> int:
        """The seed of the run that trained the product, as far as it is known."""
        recorded = self.plan.provenance.seed
        # An insider who retrains a saved product must start from its seed, not from the seed of this audit.
        if self.plan.product is not None and recorded is not None:
            return recorded
        return self.seed


def divide(table: Table, *, seed: int) -> Split:
    """Return the table's own parts, or divide it by unit with the run's seed."""
    if table.parts is not None:
        return Split.by_part(table)
    return Split.by_unit(table, rng=stream(seed, "split"))


def train_seed(seed: int) -> int:
    """Return the seed the product is trained with."""
    return seed_for(seed, "train")
