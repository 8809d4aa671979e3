"""What attacks reach on other models of the same recipe, and whether more models would find more."""

import math
from collections.abc import Sequence

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import Convergence, Evidence, LongStatistic, PoolEvidence
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, heading, key, lead, table
from reticent.report._terminal import Fitting, grid, on_two_lines, paragraph, stack
from reticent.report.plots import round_ticks
from reticent.report.svg import Axis, Plot
from reticent.report.words import percent, plain

__all__ = ["PoolSection", "pool_words"]


class PoolSection:
    """How much depends on the run of the training."""

    title = "Other models of the same recipe"
    noun = "models"
    column = "models"  # head of the column that counts them
    placed = "in the product's place"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return a table and a figure; None without a pool."""
        pool = dossier.evidence.pool
        if pool is None:
            return None
        return block(
            self._targets(dossier.evidence, pool), _convergence(pool, self.noun)
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the table for a terminal."""
        pool = dossier.evidence.pool
        if pool is None:
            return None

        def make(*, narrow: bool) -> RenderableType:
            between = "\n" if narrow else " "
            return grid(
                self._heads(pool, "TPR at"),
                (
                    (
                        plain(target.name),
                        target.targets,
                        on_two_lines(target.auc, narrow),
                        f"{target.lowest:.3f}{between}to {target.highest:.3f}",
                        *(on_two_lines(tpr, narrow) for tpr in target.tpr),
                    )
                    for target in pool.targets
                ),
                narrow=narrow,
            )

        words = paragraph(
            pool_words(pool, self.noun),
            f"Each was attacked {self.placed}; these intervals cover other runs of the trainer, too."
            if pool.targets
            else "",
        )
        return stack(words, Fitting(make) if pool.targets else None)

    def _heads(self, pool: PoolEvidence, rate: str) -> tuple[str, ...]:
        rates = pool.targets[0].fpr if pool.targets else ()
        return (
            "attack",
            self.column,
            "LTU accuracy",
            "range",
            *(f"{rate} {percent(fpr)}" for fpr in rates),
        )

    def _targets(self, evidence: Evidence, pool: PoolEvidence) -> Markup:
        if not pool.targets:
            skipped = evidence.skipped_statistic(LongStatistic.OTHER_MODELS)
            return lead(
                pool_words(pool, self.noun),
                "They are too few to stand in for the product one by one."
                if skipped is None
                else f"They were not attacked {self.placed}: {skipped.why}.",
            )
        rows = (
            (
                plain(target.name),
                target.targets,
                target.auc,
                f"{target.lowest:.3f} to {target.highest:.3f}",
                *target.tpr,
            )
            for target in pool.targets
        )
        return block(
            lead(
                pool_words(pool, self.noun),
                f"Here each of them was attacked {self.placed}. The intervals on attacks elsewhere in this report are for this very "
                f"product; those in this table are for the average over {self.noun} and cover other runs of the trainer, too. The range shows the single {self.noun}; "
                "an LTU accuracy of 0.5 is a coin.",
            ),
            table(self._heads(pool, "TPR at FPR"), rows),
        )


def pool_words(pool: PoolEvidence, noun: str = "models") -> str:
    """Return how many models were trained and who chose their number."""
    why = (
        "as many as the time allowed; the number was set before any result was seen"
        if pool.chosen == "by time"
        else "as many as were asked for"
    )
    return f"{pool.models} {noun} were trained by the product's recipe on random halves of the records ({why})."


def _convergence(pool: PoolEvidence, noun: str) -> Markup | None:
    if not pool.convergence:
        return None
    names = list(dict.fromkeys(each.attack for each in pool.convergence))
    return block(
        heading(f"Would more {noun} find more?"),
        lead(
            "LTU accuracy against this product with a part of the pool and with all of it. A curve that still climbs at its right end would climb further "
            f"with more {noun}; one that is flat has seen enough."
        ),
        card(
            _drawing(pool.convergence, noun),
            key(zip(("member", "other"), map(plain, names), strict=False)),
        ),
    )


def _drawing(convergence: Sequence[Convergence], noun: str) -> Markup:
    """Draw what attacks reach with parts of the pool."""
    sizes = sorted({each.models for each in convergence})
    # Ends at multiples of 0.05 with room around the intervals.
    low = math.floor(20 * min(each.auc.low for each in convergence) - 1e-9) / 20
    high = math.ceil(20 * max(each.auc.high for each in convergence) + 1e-9) / 20
    plot = Plot(
        x=Axis(
            # On a logarithmic axis a factor is a margin.
            low=sizes[0] / 1.25,
            high=sizes[-1] * 1.25,
            ticks=_spaced(sizes),
            label=f"{noun} in the pool (each step doubles them)",
            log=True,
        ),
        y=Axis(
            low=low,
            high=high,
            ticks=round_ticks(low, high),
            label="LTU accuracy (0.5 is a coin)",
        ),
        title=f"LTU accuracy against the number of {noun}",
        height=300,
    )
    plot.axes()
    if low <= 0.5 <= high:
        plot.line([(plot.x.low, 0.5), (plot.x.high, 0.5)], "chance")
    for number, attack in enumerate(dict.fromkeys(each.attack for each in convergence)):
        _course(
            plot, [each for each in convergence if each.attack == attack], number, noun
        )
    return plot.svg("plot-convergence")


def _course(plot: Plot, points: Sequence[Convergence], number: int, noun: str) -> None:
    css = ("reached", "")[number % 2]
    # A hair to the side, so that intervals of two attacks do not lie on each other.
    aside = 1 + 0.012 * (1 - 2 * (number % 2))
    plot.line(
        [(p.models * aside, p.auc.value) for p in points], f"course {css}".strip()
    )
    for p in points:
        tip = f"{plain(p.attack)} with {p.models} {noun}: LTU accuracy {p.auc} at {percent(p.auc.level)} confidence"
        at = p.models * aside
        plot.rise(at, p.auc.low, p.auc.high, f"whisker thin {css}".strip(), tip)
        plot.dot(at, p.auc.value, f"point {css}".strip(), tip)


def _spaced(sizes: Sequence[int]) -> list[float]:
    """Return the sizes to write at the axis: all but those too near to the last."""
    last = sizes[-1]
    # The full size is always written; one nearer than a factor of 1.5 would overlap it.
    return [float(size) for size in sizes if size == last or size * 1.5 < last]
