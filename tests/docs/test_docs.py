"""The pages say what the code does: made pages are fresh, links lead somewhere, examples run."""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PITFALLS = sorted((DOCS / "pitfalls").glob("*.md"))
DECISIONS = sorted((DOCS / "decisions").glob("*.md"))
LINKED_FROM = [*PAGES, *sorted(ROOT.glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The only addresses that may stand in a page: standards that are cited.
CITED = ("keepachangelog.com", "semver.org", "json-schema.org")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [code for kind, code in FENCE.findall(text) if kind == language]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def headings(page: Path) -> set[str]:
    """Return the anchors of a page, as renderers of Markdown make them."""
    lines = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def run(code: str, page: Path, names: dict[str, object]) -> str:
    """Run the code of a page and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), threadpool_limits(limits=1):
        exec(compile(code, name_of(page), "exec"), names)
    return printed.getvalue()


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location(
        "make_reference", DOCS / "make_reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_page_is_up_to_date(reference):
    kept = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert kept == reference.make_page(), "run `make docs` and commit docs/reference"


def test_the_api_page_knows_every_package(reference):
    source = ROOT / "src" / "reticent"
    packages = {
        "reticent." + ".".join(f.parent.relative_to(source).parts)
        for f in source.glob("*/**/__init__.py")
    }
    modules = {f"reticent.{f.stem}" for f in source.glob("[!_]*.py")}
    assert packages | modules | {"reticent"} == {*reference.MODULES, "reticent.cli"}


@pytest.mark.parametrize("page", LINKED_FROM, ids=name_of)
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}, which is not there"
        if anchor:
            assert anchor in headings(file), f"{name_of(page)}: no heading for {target}"


def test_every_page_is_reached_from_an_index():
    reached, waiting = set(), [ROOT / "README.md", DOCS / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue  # a link that leads nowhere fails the test above
        reached.add(page)
        for target in re.findall(r"\]\(([^)#\s:]+)[^)]*\)", prose(page)):
            waiting.append((page.parent / target).resolve())
    assert set(PAGES) - reached == set()


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "guide.md"
    names: dict[str, object] = {"__name__": "guide"}
    codes = blocks(page, "python")
    assert len(codes) >= 3
    for code in codes:
        run(code, page, names)


@pytest.mark.parametrize("page", PITFALLS, ids=name_of)
def test_a_pitfall_prints_what_its_page_shows(page):
    (code,), (shown,) = blocks(page, "python"), blocks(page, "text")
    assert run(code, page, {"__name__": "pitfall"}).rstrip() == shown.rstrip()


@pytest.mark.parametrize("page", PITFALLS, ids=name_of)
def test_a_pitfall_has_its_four_sections(page):
    sections = re.findall(r"^## (.+)$", prose(page), re.MULTILINE)
    wanted = ["What it is", "Why it is bad", "Example", "What to do instead"]
    assert sections == wanted


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_has_its_three_sections(page):
    sections = re.findall(r"^## (.+)$", prose(page), re.MULTILINE)
    assert sections == ["Context", "Decision", "Consequences"]
    assert re.match(r"\d{4}-[a-z0-9-]+\.md$", page.name)


def test_decisions_are_numbered_without_gaps():
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("page", LINKED_FROM, ids=name_of)
def test_pages_name_no_address_but_cited_standards(page):
    hosts = re.findall(r"https?://([^/\s)\"']+)", page.read_text(encoding="utf-8"))
    assert [host for host in hosts if host.removeprefix("www.") not in CITED] == []


def test_the_policy_page_lists_every_key_and_every_measure():
    from dataclasses import fields

    from reticent.audits import CLASSIFIER, REGRESSOR
    from reticent.policy import Policy

    text = (DOCS / "reference" / "policy.md").read_text(encoding="utf-8")
    keys = [field.name for field in fields(Policy)]
    assert [key for key in keys if f"| `{key}` |" not in text] == []
    for kind in (CLASSIFIER, REGRESSOR):
        attacks = [attack.name for attack in kind.attacks]
        assert [name for name in attacks if f"`{name}`" not in text] == []
        for measure in kind.measures:
            (row,) = re.findall(rf"^\| `{measure.name}` \|.*$", text, re.MULTILINE)
            side = "at_least" if measure.better == "higher" else "at_most"
            assert f"`{side}`" in row or "its own" in row
            for parameter, usual in measure.parameters.items():
                assert f"| `{parameter}` | `{measure.name}` |" in text
                assert f"| {usual:g} |" in text


@pytest.mark.parametrize("name", ["default", "strict"])
def test_the_policy_page_shows_the_limits_of_the_policies_that_ship(name):
    from reticent.policy import read_policy

    text = (DOCS / "reference" / "policy.md").read_text(encoding="utf-8")
    limits = {limit.measure: limit for limit in read_policy(name).limits}
    column = {"default": -3, "strict": -2}[name]
    table = text[text.index("| measure |") : text.index("| parameter |")]
    for row in re.findall(r"^\| `\w+` \|.*$", table, re.MULTILINE):
        cells = [cell.strip() for cell in row.split("|")]
        limit = limits.pop(cells[1].strip("`"), None)
        shown = cells[column]
        assert (float(shown) if shown not in ("–", "") else None) == (
            None if limit is None else limit.value
        )
    assert limits == {}


def test_the_dossier_page_lists_every_key_of_the_schema():
    from reticent.report import dossier_schema

    def keys(node: object) -> set[str]:
        if isinstance(node, list):
            return set().union(*map(keys, node)) if node else set()
        if not isinstance(node, dict):
            return set()
        own = set(node.get("properties", {}))
        return own.union(*(keys(value) for value in node.values()))

    text = (DOCS / "reference" / "dossier.md").read_text(encoding="utf-8")
    assert sorted(key for key in keys(dossier_schema()) if f"`{key}`" not in text) == []


def test_the_guide_names_every_option_of_every_command():
    import inspect

    from reticent.cli import app

    text = (DOCS / "guide.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        names = [
            name.replace("_", "-")
            for name in inspect.signature(command.callback).parameters
        ]
        assert f"reticent {command.name}" in text
        options = [n for n in names if n not in ("table", "dossier", "file", "name")]
        assert [option for option in options if f"--{option}" not in text] == []
