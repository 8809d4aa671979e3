"""Nothing that a stranger wrote steers a terminal, and one place sees to it."""

import io
import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from reticent._visible import visible, visible_json
from reticent.report import Screen

SOURCE = Path(__file__).parents[1] / "src" / "reticent"


def is_harmless(text):
    return all(c.isprintable() or c in "\n\t" for c in text)


@given(st.text())
def test_every_text_is_made_harmless(text):
    assert is_harmless(visible(text))
    assert visible(visible(text)) == visible(text)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_json_keeps_its_meaning(text):
    written = visible_json(json.dumps({"key": text}, ensure_ascii=False))
    assert is_harmless(written.replace("\u00a0", " "))
    assert json.loads(written) == {"key": text}


def test_the_screen_replaces_what_a_section_forgets():
    out = io.StringIO()
    screen = Screen(file=out, force_terminal=False, width=80)
    table = Table("\x1b[31mhead")
    table.add_row(Text("cell \x9b31m \u202e"))
    screen.print(table)
    screen.print("plain \x1b]0;title\x07", markup=False)
    assert is_harmless(out.getvalue())
    assert "cell �31m" in out.getvalue()


def test_nothing_prints_by_another_console():
    """Twin: a module that makes a console of its own would print what it is given."""
    makers = [
        file.name
        for file in SOURCE.rglob("*.py")
        if re.search(r"(?<![\w.])Console\(", file.read_text(encoding="utf-8"))
    ]
    assert makers == []  # they make a Screen


def test_names_become_code_in_one_place():
    """Modules that import by a name which is not written in them: what is added here must not take names from files."""
    by_name = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"import_module\((?!\")", file.read_text(encoding="utf-8"))
    }
    assert (
        by_name
        == {
            "__init__.py",  # its own packages
            "_verb.py",  # its own packages
            "cli/_main.py",  # its own commands
            "product/_cell.py",  # in a process of its own: libraries of trusted types, and what the user vouches for
            "run/_own.py",  # what the user names
            "train/_estimators.py",  # classes of known libraries, for what the user names
        }
    )
