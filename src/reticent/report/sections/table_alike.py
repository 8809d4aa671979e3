"""How alike a synthetic and the real table are: columns side by side, pairs, correlations, rare categories, what is missing."""

from markupsafe import Markup
from rich.console import RenderableType

from reticent.evidence import ColumnShape, DescribedTable
from reticent.report._dossier import Dossier
from reticent.report._markup import block, card, key, lead, listed, template
from reticent.report._terminal import paragraph
from reticent.report.words import percent, whole

__all__ = ["TableAlikeSection"]

MOST_SHAPES = (
    24  # columns drawn; more would make the page long, and the means speak of all
)
WIDTH, HEIGHT = 200, 84  # of one small figure, in its own units
_SHAPES = template(
    """\
<div style="display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px">
{% for shape in shapes %}<figure style="margin:0"><svg viewBox="0 0 {{ width }} {{ height }}" role="img" aria-label="{{ shape.label }}" style="width:100%;height:auto">
<title>{{ shape.label }}</title>
{% for bar in shape.bars %}<rect x="{{ bar.x }}" y="{{ bar.y }}" width="{{ bar.width }}" height="{{ bar.height }}" style="fill:var(--{{ bar.colour }});opacity:.75"></rect>
{% endfor %}</svg><figcaption style="font-size:.85em;overflow-wrap:anywhere">{{ shape.name }}</figcaption></figure>
{% endfor %}</div>"""
)


class TableAlikeSection:
    """Whether the synthetic table looks like the real one."""

    title = "How alike the tables are"

    def html(self, dossier: Dossier) -> Markup | None:
        """Return small multiples of the columns, and what they do not show; None for a model."""
        synthetic = dossier.evidence.synthetic
        if synthetic is None or not synthetic.shapes:
            return None
        words = _words(dossier)
        drawn = [_drawn(shape) for shape in synthetic.shapes[:MOST_SHAPES]]
        return block(
            lead(
                "Each figure is one column: the share of people and of synthetic rows in each bin. Bins of few people are joined with a neighbour."
            ),
            card(
                _SHAPES(shapes=drawn, width=WIDTH, height=HEIGHT),
                key([("member", "real people"), ("other", "synthetic rows")]),
            ),
            listed(words) if words else None,
        )

    def text(self, dossier: Dossier) -> RenderableType | None:
        """Return the sentences for a terminal."""
        words = _words(dossier)
        return paragraph(*(f"- {sentence}" for sentence in words)) if words else None


def _drawn(shape: ColumnShape) -> dict[str, object]:
    """Return the bars of one small figure."""
    top = max((*shape.real, *shape.synthetic), default=1.0) or 1.0
    step = WIDTH / max(len(shape.real), 1)
    bars = []
    for place, pair in enumerate(zip(shape.real, shape.synthetic, strict=True)):
        for side, share in enumerate(pair):
            height = round(HEIGHT * share / top, 1)
            bars.append(
                {
                    "x": round(place * step + (0.05 + 0.45 * side) * step, 1),
                    "y": round(HEIGHT - height, 1),
                    "width": round(0.42 * step, 1),
                    "height": height,
                    "colour": ("member", "other")[side],
                }
            )
    apart = sum(abs(a - b) for a, b in zip(shape.real, shape.synthetic, strict=True))
    label = f"{shape.name}: {percent(apart / 2)} of the synthetic rows would have to change bins"
    return {"name": shape.name, "label": label, "bars": bars}


def _words(dossier: Dossier) -> list[str]:
    synthetic = dossier.evidence.synthetic
    table = None if synthetic is None else synthetic.described
    if table is None:
        return []
    marginals = table.marginals
    words = [
        f"Total variation between synthetic rows and non-members, mean over columns: {whole(marginals.mean_one)}; sampling alone gives "
        f"{marginals.mean_one_by_chance:.3f}.",
    ]
    if marginals.mean_two is not None:
        words.append(
            f"The same over pairs of columns: {whole(marginals.mean_two)}; sampling alone gives {marginals.mean_two_by_chance:.3f}."
        )
    words += _correlations(table)
    words.append(
        f"Share of non-members without a synthetic row nearby, beyond that without another person nearby: {whole(table.coverage.lost)}; a generator that "
        "forgets kinds of people leaves many."
    )
    rare = table.rare
    if rare.rare:
        noun = "category" if rare.rare == 1 else "categories"
        words.append(
            f"Of {rare.rare} rare {noun} that enough people have, the synthetic table lacks {rare.missing}; a sample of its size would lack "
            f"{rare.missing_by_chance:.1f}."
        )
    return words


def _correlations(table: DescribedTable) -> list[str]:
    found = table.correlations
    if found is None:
        return []
    first, second = (table.names[place] for place in found.pair)
    return [
        f"Rank correlations differ by {found.mean:.3f} on average ({found.mean_by_chance:.3f} by sampling alone), most between '{first}' and '{second}': "
        f"{whole(found.largest)}."
    ]
