"""A comparison of defences as a file: JSON for machines, one page and text for people."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from markupsafe import Markup
from rich.console import Console, RenderableType
from rich.text import Text

from reticent._codec import decode, encode
from reticent._json import read_json, write_json
from reticent.errors import InvalidInput, OutputRefused
from reticent.evidence import (
    MOST_EXPOSED,
    Comparison,
    DefenceEvidence,
    Difference,
    Outcome,
)
from reticent.report._markup import (
    block,
    card,
    heading,
    key,
    lead,
    listed,
    marked,
    note,
    page,
    table,
    template,
    wrapped,
)
from reticent.report._terminal import (
    Fitting,
    grid,
    on_two_lines,
    paragraph,
    stack,
    visible,
)
from reticent.report.svg import Axis, Plot
from reticent.run import write_text

__all__ = [
    "COMPARISON_FILE",
    "COMPARISON_NAME",
    "ComparedDefence",
    "ComparisonReport",
    "comparison_json",
    "print_comparison",
    "read_comparison",
    "render_comparison",
]

COMPARISON_NAME = "reticent-comparison-1"
COMPARISON_FILE = "comparison.json"
# Colours of families in the picture, from the palette of the page: as many as a comparison without trainers has families at most. More begin again.
COLOURS = ("member", "other", "third", "fourth", "good", "open", "bad", "fifth", "sixth", "seventh", "eighth", "ink")  # fmt: skip
# Half-axes of an ellipse, in standard errors, that holds two normal quantities with 95 %: the root of chi-squared with 2 degrees.
REACH = math.sqrt(5.991)
_WORDS = {0: ("TAKE THIS", "RELEASE"), 1: ("NONE WILL DO", "REFUSE"), 3: ("NOT SETTLED", "INCONCLUSIVE")}  # fmt: skip
LIMITS_OF_IT = (
    "Only what a comparison measures was held against the policy. What the file holds, groups, and an insider who trains again are for the audit "
    "of the defence that is taken.",
    "The limits were looked at on the same people for all defences; intervals hold jointly over them, so that the choice is paid for. The audit of "
    "what is taken should still be made on people who took no part in the choice (reticent audit --repair does).",
    "A privacy score speaks of the attacks that were run. Only a guarantee speaks of all.",
)


@dataclass(frozen=True, kw_only=True)
class ComparedDefence:
    """What the page says about a defence besides its evidence.

    Parameters
    ----------
    family, change : str
        The defence, and its strength in words.
    recipe : str
        The trainer.
    epsilon, delta : float or None
        What is guaranteed about every product of it; None without a guarantee.
    outcome : Outcome
        How it fares against the policy's limits.
    """

    family: str
    change: str
    recipe: str
    epsilon: float | None
    delta: float | None
    outcome: Outcome

    @property
    def words(self) -> str:
        """The family with its strength."""
        return f"{self.family}, {self.change}" if self.change else self.family


@dataclass(frozen=True, kw_only=True)
class ComparisonReport:
    """Several defences of one table, and which one to take.

    Parameters
    ----------
    comparison : Comparison
        The evidence.
    defences : tuple of ComparedDefence
        The defences, in the same order.
    taken : str
        Recipe of the defence to take; empty if none can be recommended.
    advice : str
        Which to take, in one sentence.
    status : int
        Exit status: 0 if a defence keeps the limits, 1 if every one breaks a limit, 3 if that cannot be told.
    command : str
        How to train and audit what is taken.
    kind : str
        The kind of product.
    policy : str
        Name of the policy.
    limits : tuple of str
        Its limits that were looked at.
    subject : mapping of str to str
        Names for the page.
    seed : int
        Seed of the run.
    repeat : str
        How to run it again.
    """

    comparison: Comparison
    defences: tuple[ComparedDefence, ...]
    taken: str
    advice: str
    status: int
    command: str = ""
    kind: str = "classifier"
    policy: str = ""
    limits: tuple[str, ...] = ()
    subject: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    repeat: str = ""

    def __str__(self) -> str:
        rows = [
            f"  {d.words}: gain {e.gain}, privacy {e.privacy}" + _epsilon_words(d)
            for d, e in self.pairs()
        ]
        return "\n".join([self.advice, *rows])

    def pairs(self) -> Iterator[tuple[ComparedDefence, DefenceEvidence]]:
        """Yield each defence with its evidence."""
        yield from zip(self.defences, self.comparison.defences, strict=True)

    def save(self, folder: Path | str) -> Path:
        """Write ``comparison.json`` and ``comparison.html``; return the folder.

        Raises
        ------
        OutputRefused
            If the folder cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputRefused(
                f"the folder {folder} cannot be made ({error.strerror or error}); choose another."
            ) from error
        write_text(folder / COMPARISON_FILE, comparison_json(self))
        write_text(folder / "comparison.html", render_comparison(self))
        return folder


def comparison_json(report: ComparisonReport) -> str:
    """Return a comparison as JSON text."""
    return write_json({"schema": COMPARISON_NAME, **encode(report)})


def read_comparison(text: str) -> ComparisonReport:
    """Return what :func:`comparison_json` wrote.

    Raises
    ------
    InvalidInput
        If the text is not a comparison.
    """
    content = read_json(text, "JSON that `reticent compare --json` printed")
    schema = content.pop("schema", None)
    if schema != COMPARISON_NAME:
        raise InvalidInput(
            f"the schema is {schema!r}, but {COMPARISON_NAME!r} is read here; compare again with this version."
        )
    report: ComparisonReport = decode(ComparisonReport, content)
    return report


_BANNER = template(
    """\
<h1>Which defence should I take? {{ what }}</h1>
<div class="verdict {{ css }}"><strong>{{ word }}</strong><p>{{ sentence }}</p></div>
{% if command %}<p>Train and audit it:</p><pre>{{ command }}</pre>{% endif %}"""
)
_HOW = template("<pre>{{ repeat }}</pre><p>Seed {{ seed }}.</p>")


def render_comparison(report: ComparisonReport) -> str:
    """Return the comparison as one self-contained page."""
    word, css = _WORDS[report.status]
    what = " · ".join(report.subject.values())
    comparison = report.comparison
    body = block(
        _BANNER(
            what=what,
            css=css,
            word=word,
            sentence=report.advice,
            command=report.command,
        ),
        heading("What each gains, and what it gives away", 2),
        lead(_how_measured(report)),
        card(_picture(report), key(_colours(report))),
        _table_of_defences(report),
        heading(f"Differences from {report.defences[0].words}", 2),
        lead(
            "On the same halves and the same people. Positive gain is better, positive privacy is better; p-values are Holm's over all defences "
            "and both quantities."
        ),
        _table_of_differences(report) if comparison.differences else None,
        heading("What this does not say", 2),
        listed(LIMITS_OF_IT),
        heading("How to repeat it", 2),
        _HOW(repeat=report.repeat, seed=report.seed),
    )
    return page(f"{word}: {what}", body)


def _how_measured(report: ComparisonReport) -> str:
    c = report.comparison
    return (
        f"Every defence trained {c.models} models on the same {c.splits} halvings of {c.people:,} people. Each model was attacked with the other models of "
        f"its own defence, so that the attacker runs the defence too. Intervals cover other halves and other people, at {100 * c.level:g} % jointly over all "
        "defences."
    )


def _table_of_defences(report: ComparisonReport) -> Markup:
    summary, rates = [], []
    for its, evidence in report.pairs():
        beaten = " (dominated)" if its.recipe in report.comparison.dominated else ""
        name = wrapped(f"{its.words}{beaten}")
        summary.append([name, marked(its.outcome.value), evidence.gain, evidence.privacy, _guarantee(its)])  # fmt: skip
        rates.append([wrapped(its.words), *evidence.tpr, _or_dash(evidence.exposed)])
    return block(
        table(["defence", "limits", "gain", "privacy", "guarantee"], summary),
        note(
            f"Limits of the policy {report.policy!r} that a comparison can answer: {'; '.join(report.limits)}. Gain: share of the errors of a constant answer that "
            "is saved, on people who did not train the model. Privacy: min(2 (1 - A), 1) against the strongest attack. Dominated: another defence is shown to be "
            "better in one of the two and not shown to be worse in the other."
        ),
        heading(
            "For an attacker who must rarely be wrong, and for the most exposed people"
        ),
        table(["defence", *_rate_heads(report), _exposed_head()], rates),
        note(
            f"Advantage: against the {100 * MOST_EXPOSED:g} % of people whom half of the models found most exposed, judged by the other half; 0 is none, and an attacker "
            "who is always right has 0.5 on average."
        ),
        heading("The recipes"),
        table(
            ["defence", "recipe"],
            [[wrapped(d.words), wrapped(d.recipe)] for d in report.defences],
        ),
    )


def _table_of_differences(report: ComparisonReport) -> Markup:
    names = {d.recipe: d.words for d in report.defences}
    first = table(
        ["defence", "gain", "p", "privacy", "p"],
        [[wrapped(row[0]), *row[1:]] for row in _difference_rows(report)],
    )
    second = table(
        ["defence", *_rate_heads(report), _exposed_head()],
        [
            [
                wrapped(names[d.name]),
                *(rate.signed for rate in d.tpr),
                _or_dash(None if d.exposed is None else d.exposed.signed),
            ]
            for d in report.comparison.differences
        ],
    )
    return block(first, second)


def _or_dash(value: object) -> object:
    return "–" if value is None else value


def _rate_heads(report: ComparisonReport) -> list[str]:
    return [f"TPR at {100 * rate:g} %" for rate in report.comparison.fpr]


def _exposed_head() -> str:
    return f"advantage, worst {100 * MOST_EXPOSED:g} %"


def _guarantee(defence: ComparedDefence) -> str:
    if defence.epsilon is None:
        return "none"
    return f"epsilon {defence.epsilon:.2f}, delta {defence.delta:.1g}"


def _epsilon_words(defence: ComparedDefence) -> str:
    return "" if defence.epsilon is None else f", epsilon {defence.epsilon:.2f}"


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else "< 0.001"


def _families(report: ComparisonReport) -> dict[str, str]:
    names = dict.fromkeys(d.family for d in report.defences)
    return {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(names)}


def _colours(report: ComparisonReport) -> list[tuple[str, str]]:
    return [(colour, name) for name, colour in _families(report).items()]


def _picture(report: ComparisonReport) -> Markup:
    """Return gain against privacy: the frontier, ellipses of 95 %, dominated defences in grey."""
    points = list(report.pairs())
    gains = [e.gain.value for _, e in points]
    low = min(0.0, *(max(-1.0, e.gain.value - 3 * e.ellipse.gain) for _, e in points))
    step = 0.2 if max(gains) - low > 0.5 else 0.1
    ticks = [round(step * k, 2) for k in range(math.floor(low / step), round(1 / step) + 1)]  # fmt: skip
    top = min(1.0, max(gains) + 0.15)
    shown = [t for t in ticks if low <= t <= top]
    plot = Plot(
        x=Axis(
            low=0.0,
            high=1.0,
            ticks=(0, 0.2, 0.4, 0.6, 0.8, 1),
            label="privacy: 1 is as good as a coin for the attacker, 0 is never wrong",
        ),
        y=Axis(
            low=low, high=top, ticks=shown, label="gain over a constant answer (up)"
        ),
        title="Gain and privacy of every defence",
        height=420,
    )
    plot.axes()
    colours = _families(report)
    for family in colours:
        line = [
            (e.privacy.value, e.gain.value) for d, e in points if d.family == family
        ]
        if len(line) > 1:
            plot.line(sorted(line), f"frontier {colours[family]}")
    for its, evidence in points:
        grey = its.recipe in report.comparison.dominated
        css = "beaten" if grey else colours[its.family]
        plot.area(_ellipse(evidence), f"ellipse {css}")
        plot.dot(
            evidence.privacy.value,
            evidence.gain.value,
            f"defence {css}",
            tip=f"{its.words}: gain {evidence.gain}, privacy {evidence.privacy}, guarantee {_guarantee(its)}",
            radius=8 if its.recipe == report.taken else 5,
        )
    return plot.svg("frontier")


def _ellipse(evidence: DefenceEvidence) -> Sequence[tuple[float, float]]:
    """Return points of the ellipse that holds both quantities with 95 %, if they are normal."""
    shape, corner = evidence.ellipse, []
    rest = math.sqrt(max(0.0, 1 - shape.correlation**2))
    for k in range(36):
        angle = 2 * math.pi * k / 36
        u, v = math.cos(angle), math.sin(angle)
        privacy = evidence.privacy.value + REACH * shape.privacy * u
        gain = evidence.gain.value + REACH * shape.gain * (
            shape.correlation * u + rest * v
        )
        corner.append((privacy, gain))
    return corner


def print_comparison(report: ComparisonReport, console: Console) -> None:
    """Print the advice, then every defence, then the differences."""
    word, css = _WORDS[report.status]
    colour = {"RELEASE": "green", "REFUSE": "red", "INCONCLUSIVE": "yellow"}[css]
    head = Text(word, style=f"bold {colour}")
    head.append(f"  {visible(' · '.join(report.subject.values()))}", style="not bold dim")  # fmt: skip
    first = report.defences[0].words
    console.print()
    console.print(
        stack(
            head,
            paragraph(report.advice),
            paragraph(
                f"Train and audit it: {report.command}" if report.command else ""
            ),
            paragraph(_how_measured(report)),
            Fitting(partial(_defence_grid, report)),
            Text(f"Differences from {first}", style="bold"),
            Fitting(partial(_difference_grid, report)),
            paragraph(*LIMITS_OF_IT),
        )
    )


def _defence_grid(report: ComparisonReport, *, narrow: bool) -> RenderableType:
    """Return every defence, its interval under each value if it is narrow."""
    head, word = ("epsilon", "") if narrow else ("guarantee", "eps ")
    rows = [
        [
            its.words,
            its.outcome.value.upper()
            if its.outcome == Outcome.BROKEN
            else its.outcome.value,
            on_two_lines(evidence.gain, narrow),
            on_two_lines(evidence.privacy, narrow),
            on_two_lines(evidence.tpr[0], narrow) if evidence.tpr else "",
            "none" if its.epsilon is None else f"{word}{its.epsilon:.2f}",
        ]
        for its, evidence in report.pairs()
    ]
    rates = _rate_heads(report)[:1]
    heads = ["defence", "limits", "gain", "privacy", *rates, head]
    return grid(heads, rows, narrow=narrow)


def _difference_grid(report: ComparisonReport, *, narrow: bool) -> RenderableType:
    """Return the differences from the first defence, its interval under each value if it is narrow."""
    rows = [
        [name, on_two_lines(gain, narrow), p, on_two_lines(privacy, narrow), q]
        for name, gain, p, privacy, q in _difference_rows(report)
    ]
    return grid(["defence", "gain", "p", "privacy", "p"], rows, narrow=narrow)


def _difference_rows(report: ComparisonReport) -> list[list[str]]:
    names = {d.recipe: d.words for d in report.defences}

    def row(d: Difference) -> list[str]:
        return [
            names[d.name],
            d.gain.signed,
            _p(d.gain_p),
            d.privacy.signed,
            _p(d.privacy_p),
        ]

    return [row(d) for d in report.comparison.differences]
