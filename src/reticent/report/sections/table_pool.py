"""What attacks reach on tables of the same generator, and whether more shadow generators would find more."""

from reticent.report.sections.pool import PoolSection

__all__ = ["TablePoolSection"]


class TablePoolSection(PoolSection):
    """How much depends on the run of the generator."""

    title = "Other tables of the same generator"
    noun = "shadow generators"
    column = "tables"
    placed = "through the table that it made, as the audited one was"
