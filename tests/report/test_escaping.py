"""Names are text: whatever a table, a group, an attack or a stranger's dossier calls itself, the page shows it and runs nothing."""

import io
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markupsafe import Markup
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))
import made

from reticent.evidence import Limit
from reticent.policy import Policy
from reticent.report import Dossier, print_identification, render_html, render_text
from reticent.report.html import render_fragment
from reticent.report.identification import render_identification

HOSTILE = """</script></style>"'><script>alert(1)</script>&lt;b&amp;{{ 1337 * 7 }}{% raw %}[/][red]\x1b[31mtxt.\u202eexe\u2066\u200f\u200b\x9b\x07"""
# What a reader sees of it: what steers a reading direction or a terminal is replaced.
SHOWN = "".join(c if c.isprintable() else "\ufffd" for c in HOSTILE)
# Names by which values are looked up: another name there is another dossier.
LOOKED_UP = ("measure", "better", "family", "threat")


def spoil(value):
    """Return the same value with something hostile at the end of every text in it."""
    if isinstance(value, Policy | Limit):
        return replace(value, **({"name": spoil(value.name)} if isinstance(value, Policy) else {}))  # fmt: skip
    if is_dataclass(value):
        parts = {
            f.name: spoil(getattr(value, f.name))
            for f in fields(value)
            if f.name not in LOOKED_UP
        }
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {key: spoil(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(spoil, value))
    return value + HOSTILE if type(value) is str else value


def with_hostile_keys(dossier: Dossier) -> Dossier:
    provenance, utility = dossier.provenance, dossier.evidence.utility
    return replace(
        dossier,
        provenance=replace(provenance, versions={HOSTILE: HOSTILE}),
        evidence=replace(
            dossier.evidence,
            utility=replace(utility, beside={HOSTILE: utility.score}),
        ),
    )


class Page(HTMLParser):
    """Tags with the names of their attributes, and what is text or value."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter = Counter()
        self.values: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag, tuple(name for name, _ in attrs)] += 1
        self.values += [(name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.words.append(data)


def structure(page: Page) -> Counter:
    """Return the tags; lines of a long label below an axis are several."""
    return Counter({key: n for key, n in page.tags.items() if key[0] != "text"})


@pytest.fixture(scope="module")
def clean() -> Dossier:
    return made.with_gaps(made.full())


@pytest.fixture(scope="module")
def hostile(clean) -> Dossier:
    return with_hostile_keys(spoil(clean))


def assert_nothing_ran(dirty: str, clean: str) -> None:
    page, before = Page(dirty), Page(clean)
    assert structure(page) == structure(before)
    assert set(page.tags) == set(before.tags)
    for name, value in page.values:
        if HOSTILE[:20] in value:
            assert name in ("data-tip", "srcdoc")
    words = "".join(page.words)
    assert SHOWN in words
    assert all(c.isprintable() or c in "\n\t\u00a0" for c in dirty)
    assert "9359" not in dirty  # 1337 * 7


def test_a_hostile_dossier_makes_the_same_page_with_other_words(clean, hostile):
    known = with_hostile_keys(clean)
    plain = replace(known, provenance=replace(clean.provenance, versions={"a": "b"}))
    assert_nothing_ran(render_html(hostile), render_html(plain))


def test_families_that_nobody_knows_break_nothing(clean):
    attacks = tuple(replace(a, family=HOSTILE) for a in clean.evidence.attacks)
    strange = replace(clean, evidence=replace(clean.evidence, attacks=attacks))
    assert "<script>alert" not in render_html(strange)


def test_tips_show_names_as_they_are(hostile):
    tips = [value for name, value in Page(render_html(hostile)).values if name == "data-tip"]  # fmt: skip
    assert any(tip.startswith("rmia" + SHOWN) for tip in tips)
    group = hostile.evidence.groups[0].name.replace(HOSTILE, SHOWN)
    assert any(tip.startswith(group) for tip in tips)


def test_the_frame_of_a_notebook_holds_the_page_and_nothing_else(hostile):
    frame = Page(render_fragment(hostile))
    assert list(frame.tags) == [("iframe", ("srcdoc", "style"))]
    assert dict(frame.values)["srcdoc"] == render_html(hostile)


def test_the_page_of_an_identification_is_escaped_too(clean, hostile):
    assert_nothing_ran(
        render_identification(hostile.watched), render_identification(clean.watched)
    )


def test_twin_a_page_that_escapes_nothing_is_noticed(hostile, clean):
    page = render_html(hostile)
    group = hostile.evidence.groups[0].name
    naive = page.replace("<h2>Controls</h2>", f"<h2>{group}</h2>")
    with pytest.raises(AssertionError):
        assert_nothing_ran(naive, render_html(clean))


def test_text_shows_names_and_steers_no_terminal(hostile):
    text = render_text(hostile, width=400)
    assert all(c.isprintable() or c in "\n\t" for c in text)
    assert SHOWN in text
    console = Console(width=200, file=io.StringIO())
    print_identification(hostile.watched, console)
    assert "[/][red]" in console.file.getvalue()


def test_the_hostile_dossier_comes_back_from_json(hostile):
    assert Dossier.from_json(hostile.to_json()) == hostile
    assert all(c.isprintable() or c == "\n" for c in hostile.to_json())
    assert render_html(Dossier.from_json(hostile.to_json())) == render_html(hostile)


def test_every_text_of_the_fixture_was_spoiled(hostile):
    assert HOSTILE in hostile.policy.name
    assert HOSTILE in hostile.watched.neighbour
    assert HOSTILE in hostile.evidence.pool.disparity.pairs[0].first
    assert not isinstance(hostile.verdict, str) or isinstance(hostile.verdict, StrEnum)


class OwnSection:
    """A section from outside, which writes markup of its own and forgets nobody's name."""

    title = "Own \u202esection"

    def html(self, dossier):
        return Markup("<p id='own'>\u2067{}</p>").format(HOSTILE)

    def text(self, dossier):
        return None


def test_markup_of_a_section_from_outside_turns_no_direction_around(clean):
    """Whoever wrote a part of the page, it leaves through one door."""
    page = render_html(replace(clean, own_sections=(OwnSection(),)))
    assert "Own \ufffdsection" in page
    assert "<p id='own'>\ufffd" in page
    assert all(c.isprintable() or c in "\n\t\u00a0" for c in page)


def test_spaces_that_hold_a_number_and_its_interval_together_stay(clean):
    assert "\u00a0" in render_html(clean)
