"""The files that state versions agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS = PROJECT["optional-dependencies"]
CORE = [Requirement(line) for line in PROJECT["dependencies"]]
RUNTIME = CORE + [
    Requirement(line)
    for name in ("catboost", "compiled", "lightgbm", "sign", "torch", "xgboost")
    for line in EXTRAS[name]
]
DEV = [Requirement(line) for line in EXTRAS["dev"]]


def pins(name: str) -> dict[str, Version]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    stated = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {one.name: Version(str(one.specifier).removeprefix("==")) for one in stated}


def lowest(requirement: Requirement) -> Version:
    (bound,) = [s for s in requirement.specifier if s.operator == ">="]
    return Version(bound.version)


TESTED, LOWEST = pins("constraints.txt"), pins("constraints-lowest.txt")
# A CPU build of an older torch is not where pip looks by default.
NOT_THE_LOWEST = {"torch"}


@pytest.mark.parametrize("requirement", RUNTIME, ids=lambda r: r.name)
def test_the_lowest_version_is_the_one_that_is_stated(requirement):
    pinned = LOWEST[requirement.name]
    assert pinned in requirement.specifier
    if requirement.name not in NOT_THE_LOWEST:
        assert pinned == lowest(requirement)


@pytest.mark.parametrize("requirement", [*RUNTIME, *DEV], ids=lambda r: r.name)
def test_every_dependency_has_a_tested_version(requirement):
    assert TESTED[requirement.name] in requirement.specifier


def test_tools_are_the_same_in_both_files():
    tools = {r.name for r in DEV} - {r.name for r in RUNTIME}
    assert {n: LOWEST[n] for n in tools & set(LOWEST)} == {
        n: TESTED[n] for n in tools & set(LOWEST)
    }


def test_the_changelog_and_the_citation_know_the_version():
    cited = re.search(
        r"^version: (.+)$",
        (ROOT / "CITATION.cff").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['version']}]" in changes
    # The next release is announced before it is made.
    assert Version(cited.group(1)) >= Version(PROJECT["version"])


def test_the_page_on_installing_offline_names_the_tested_torch():
    page = (ROOT / "docs/how-to/offline.md").read_text(encoding="utf-8")
    assert f'"torch=={TESTED["torch"]}+cpu"' in page
