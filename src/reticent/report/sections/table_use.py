"""What models learn from a synthetic table, beside what they learn from the real one."""

from collections.abc import Iterator

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import (
    Estimate,
    RecipeUse,
    SyntheticEvidence,
    Transfer,
    UseEvidence,
)
from reticent.report._dossier import Dossier
from reticent.report._markup import block, lead, table
from reticent.report._terminal import Fitting, grid, on_two_lines, paragraph, stack
from reticent.report.words import whole

__all__ = ["TableUseSection"]

HEADS = (
    "model",
    "measure",
    "from real rows",
    "from this table",
    "lost by this table",
)
RECIPE = "lost by the recipe"


class TableUseSection:
    """Train on synthetic, test on real."""

    title = "What can be learned from it"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return what each model reaches; None for a model. Of a target with many values only what tables of the recipe save on average."""
        synthetic = dossier.evidence.synthetic
        if synthetic is None or synthetic.use is None:
            words = _of_recipe_alone(synthetic)
            return lead(words) if words else None
        use, recipe = synthetic.use, synthetic.recipe
        rows = ([str(cell) for cell in row] for row in _rows(use, recipe))
        return block(
            lead(*_words(use)),
            lead(_coverage(recipe)),
            table(_heads(recipe), rows),
            lead(*_limits(use)),
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the same for a terminal."""
        synthetic = dossier.evidence.synthetic
        if synthetic is None or synthetic.use is None:
            words = _of_recipe_alone(synthetic)
            return paragraph(words) if words else None
        use, recipe = synthetic.use, synthetic.recipe

        def make(*, narrow: bool) -> RenderableType:
            # Model and measure share a column, or five columns would not fit.
            _, _, *heads = _heads(recipe)
            return grid(
                ("model", *heads),
                (
                    (
                        _label(model, measure, narrow=narrow),
                        *(on_two_lines(each, narrow) for each in estimates),
                    )
                    for model, measure, estimates in _by_measure(use, recipe)
                ),
                narrow=narrow,
            )

        before = paragraph(*_words(use), _coverage(recipe))
        return stack(before, Fitting(make), paragraph(*_limits(use)))


def _label(model: str, measure: str, *, narrow: bool) -> str:
    """Return what a row is about; one word per line where it is narrow, or else numbers would be cut."""
    words = f"{measure}, {model}" if model else measure
    return words.replace(" ", "\n") if narrow else words


def _heads(recipe: RecipeUse | None) -> tuple[str, ...]:
    return HEADS if recipe is None or not recipe.judges else (*HEADS, RECIPE)


def _words(use: UseEvidence) -> list[str]:
    return [
        f"Models learned to tell '{use.target}' from the other columns, from the members or from the synthetic rows, and ranked people whom nobody used. "
        "The verdict does not rest on it, and each interval holds by itself."
    ]


def _limits(use: UseEvidence) -> list[str]:
    """Return how large the rarest class is, and what the table was not judged on."""
    rates = use.positive
    return [
        f"The rarest class that enough people have is {whole(rates.real)} of the real and {whole(rates.synthetic)} of the synthetic table.",
        "The table was judged on this one question. It must not be used for others (subgroups, rare events, effects of single columns) before they were "
        "tried in the same way.",
    ]


def _coverage(recipe: RecipeUse | None) -> str:
    """Return what the intervals speak of: this table, or tables of the recipe as well."""
    if recipe is None:
        return (
            "All intervals are over these people and speak of this table alone, not of its recipe: its generator was not run again, and another table that it "
            "makes may be worth more or less than they say."
        )
    return (
        "Intervals on this table are over these people and speak of this table alone. The last column is the mean of the tables that the same generator "
        f"made again; its intervals cover these people and such tables. {_saved(recipe)}"
    )


def _saved(recipe: RecipeUse) -> str:
    words = f"{recipe.tables} tables were made again of the same members"
    if recipe.saved is None:
        return f"{words}."
    return (
        f"{words}; on average, a model that learned from one of them saves {whole(recipe.saved)} of the errors of a constant answer, with an interval over people and "
        "such tables."
    )


def _of_recipe_alone(synthetic: SyntheticEvidence | None) -> str:
    """Return what is known of the recipe where no classes can be ranked; empty without a recipe."""
    if synthetic is None or synthetic.recipe is None:
        return ""
    return f"The utility speaks of this table alone. {_saved(synthetic.recipe)}"


def _by_measure(
    use: UseEvidence, recipe: RecipeUse | None
) -> Iterator[tuple[str, str, tuple[Estimate, ...]]]:
    """Yield the model, the measure and its estimates."""
    of_recipe: dict[str, Transfer] = {}
    if recipe is not None:
        of_recipe = {each.judge: each.transfer for each in recipe.judges}
    for each in use.judges:
        this, others = each.transfer, of_recipe.get(each.judge)
        auc: tuple[Estimate, ...] = (this.auc_real, this.auc_synthetic, this.auc_loss)
        precision: tuple[Estimate, ...] = (this.ap_real, this.ap_synthetic, this.ap_loss)  # fmt: skip
        if others is not None:
            auc, precision = (*auc, others.auc_loss), (*precision, others.ap_loss)
        yield each.judge, "AUC", auc
        yield "", "average precision", precision


def _rows(use: UseEvidence, recipe: RecipeUse | None) -> Iterator[tuple[object, ...]]:
    for name, measure, estimates in _by_measure(use, recipe):
        yield name, measure, *estimates
