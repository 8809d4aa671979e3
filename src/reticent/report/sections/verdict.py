"""The verdict, why, what would settle it, and what the reader must know beside it."""

import re

from markupsafe import Markup
from rich.console import RenderableType
from rich.text import Text

from reticent.policy import Verdict
from reticent.report._dossier import Dossier
from reticent.report._markup import block, heading, listed, note, template, warning
from reticent.report._terminal import paragraph, stack, visible
from reticent.report.binding import Access
from reticent.report.summary import noun_of

__all__ = ["VerdictSection"]

_BANNER = template(
    """\
<h1>{{ question }} {{ what }}</h1>
<div class="verdict {{ verdict }}"><strong>{{ verdict }}</strong>
{%- for sentence in summary %}<p>{{ sentence }}</p>{% endfor %}</div>"""
)
# A command of reticent's, which ends where another begins or the sentence does.
_COMMAND = re.compile(
    r"reticent (?:audit|clean|compare|train) .*?(?= and then reticent |$)", re.DOTALL
)
_STEP = template(
    "{% for words, is_command in parts %}{% if is_command %}<code>{{ words }}</code>{% else %}{{ words }}{% endif %}{% endfor %}"
)
_STYLE = {
    Verdict.RELEASE: "bold green",
    Verdict.REFUSE: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
}


class VerdictSection:
    """The answer first."""

    title = ""

    def html(self, dossier: Dossier) -> Markup:
        """Return the banner, the reasons, the next steps and the warnings."""
        names = (dossier.subject.get(key) for key in ("table", "target", "product"))
        banner = _BANNER(
            question=f"May this {noun_of(dossier.kind)} be released?",
            what=" · ".join(name for name in names if name),
            verdict=dossier.verdict,
            summary=dossier.summary,
        )
        steps = next_steps(dossier)
        return block(
            banner,
            heading("Why", 2),
            listed(dossier.reasons),
            block(heading(_steps_title(dossier), 2), listed(map(_step, steps)))
            if steps
            else None,
            note(access_words(dossier)),
            *(warning(words) for words in dossier.warnings),
        )

    def text(self, dossier: Dossier) -> RenderableType:
        """Return the same for a terminal."""
        subject = dossier.subject
        headline = Text(dossier.verdict, style=_STYLE[dossier.verdict])
        headline.append(
            visible(
                f"  {subject.get('product', 'product')} on {subject.get('table', 'the table')}, "
                f"policy '{dossier.policy.name}'"
            ),
            style="not bold dim",
        )
        parts = [
            paragraph(" ".join(dossier.summary)),
            paragraph(
                *(f"- {reason}" for reason in dossier.reasons),
            ),
            paragraph(*(f"> {step}" for step in next_steps(dossier)), style="bold"),
            paragraph(access_words(dossier), style="dim"),
            paragraph(
                *(f"warning: {words}" for words in dossier.warnings), style="yellow"
            ),
        ]
        return stack(headline, *parts)


def access_words(dossier: Dossier) -> str:
    """Return for which attackers the verdict speaks, and for whom it does not."""
    if dossier.binding is None:
        return ""
    reached = [str(access) for access in dossier.binding.access]
    others = [str(access) for access in Access if str(access) not in reached]
    words = f"The verdict speaks for attackers who reach: {', '.join(reached)}."
    return words + (f" It does not for: {', '.join(others)}." if others else "")


def _step(words: str) -> Markup:
    """Return a step in which commands look like commands."""
    parts, at = [], 0
    for found in _COMMAND.finditer(words):
        parts += [(words[at : found.start()], False), (found[0], True)]
        at = found.end()
    return _STEP(parts=[*parts, (words[at:], False)])


def _steps_title(dossier: Dossier) -> str:
    refused = dossier.verdict == Verdict.REFUSE
    return "What could help" if refused else "What would settle it"


def next_steps(dossier: Dossier) -> list[str]:
    """Return what would settle an open question, or could help a product that was refused."""
    # How small a leak the audit could see matters only while a question is open.
    if dossier.verdict != Verdict.INCONCLUSIVE:
        return list(dossier.decision.next_steps)
    leak = dossier.evidence.smallest_leak
    return [
        *dossier.decision.next_steps,
        f"The smallest leak that this audit sees with 80 % power is an LTU accuracy of {leak:.3f} (privacy score "
        f"{2 * (1 - leak):.2f}).",
    ]
