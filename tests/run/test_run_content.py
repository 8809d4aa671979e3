"""What a result depends on: values, the user's own code, and the environment."""

import enum
import functools
import importlib
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reticent.errors import InvalidInput
from reticent.run import (
    Content,
    code_of,
    content_of,
    content_of_fields,
    environment,
)
from reticent.run._content import hash_of_folder


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass(frozen=True)
class Recipe:
    rate: float
    layers: tuple[int, ...] = (3, 2)
    weights: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True)
class SpeaksForItself:
    name: str
    noise: object

    def content(self):
        return content_of(self.name)


@dataclass(frozen=True)
class ByFields:
    rate: float

    def content(self):
        return content_of_fields(self)


def plain(x):
    return x


def adder(n, step=1):
    def add(x, step=step):
        return x + n + step

    return add


def test_values_that_differ_have_contents_that_differ():
    values = [
        None, True, 1, 1.0, "1", b"1", -0.0, 0.0, float("nan"), float("inf"), 1j,
        "None", "", (), [], {}, set(), (1,), [1], ((1,),), (1, 2), (2, 1), {1, 2},
        {"a": 1}, {"a": 2}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, frozenset({1, 2}),
        Counter({"a": 1}), Path("a"), "a", Colour.RED, Colour.BLUE, np.dtype("f4"),
        np.zeros(2), np.zeros((2, 1)), np.zeros(2, "f4"), np.ones(2), np.float32(1),
        np.zeros(0), np.zeros((0, 2)), np.array(["a"]), np.array(["a", None], object),
        np.array(["2020-01-01"], "M8[D]"), np.zeros(2, [("a", "i4")]), "x" * 300,
        "x" * 301, Recipe(0.1), Recipe(0.2), Recipe(0.1, (3,)), ByFields(0.1),
        Recipe(0.1, weights=np.ones(2)), SpeaksForItself("a", object()), ByFields(0.2),
        plain, adder, adder(1), adder(2), adder(1, step=2), Recipe, ByFields, len, max,
        np.add, np.mean, functools.partial(plain, 1), functools.partial(plain, 2),
        functools.partial(plain, x=1), ByFields(1.0).content, ByFields(2.0).content,
        LogisticRegression(), LogisticRegression(C=2.0), LogisticRegression,
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), LogisticRegression(C=2.0)),
        LogisticRegression().fit([[0.0], [1.0]], [0, 1]),
        LogisticRegression().fit([[0.0], [2.0]], [0, 1]),
    ]  # fmt: skip
    contents = [content_of(value) for value in values]
    assert [c.opaque for c in contents] == [()] * len(values)
    counts = Counter(c.digest for c in contents)
    twice = [v for v, c in zip(values, contents, strict=True) if counts[c.digest] > 1]
    assert twice == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(), inner, max_size=3)
            | st.sets(st.integers())
        ),
        max_leaves=10,
    )
)
def test_a_copy_has_the_same_content(value):
    import copy

    assert content_of(value) == content_of(copy.deepcopy(value))
    assert content_of(value).digest != content_of([value]).digest


def test_contents_add_in_order():
    a, b = content_of(1), content_of("a")
    assert (a + b).parts == content_of(1, "a").parts == (*a.parts, *b.parts)
    assert (a + b).digest != (b + a).digest
    opaque = Content((), ("why",)) + Content(("x",), ("why",))
    assert opaque == Content(("x",), ("why",))
    assert not opaque.hashable


def test_a_value_that_contains_itself_can_be_hashed():
    value = [1]
    value.append(value)
    assert content_of(value).hashable


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "a value of the type builtins.object cannot be hashed"),
        ([{"a": object()}], "builtins.object"),
        (Recipe(object()), "builtins.object"),
        (lambda: 1, "a lambda in test_run_content has no name"),
        (functools.partial(lambda x: x, 1), "a lambda"),
        (adder(object()), "builtins.object"),
        (np.random.default_rng(0), "numpy.random._generator.Generator"),
        (np.ma.masked_array([1], [True]), "MaskedArray"),
        (
            RandomForestClassifier(1).fit([[0], [1]], [0, 1]),
            "sklearn.tree._tree.Tree",
        ),
    ],
)
def test_what_cannot_be_hashed_says_why(value, reason):
    content = content_of(value)
    assert not content.hashable
    assert any(reason in sentence for sentence in content.opaque)


def test_an_estimator_that_is_fitted_is_not_the_recipe_it_was():
    recipe = RandomForestClassifier(1)
    assert content_of(recipe).hashable
    assert not content_of(recipe.fit([[0], [1]], [0, 1])).hashable


def test_content_must_return_a_content():
    class Wrong:
        def content(self):
            return "hash"

    assert "not a Content" in content_of(Wrong()).opaque[0]


def test_functions_of_a_session_without_files_are_opaque():
    code = """
    from reticent.run import content_of
    def f(): pass
    class C: pass
    exec(compile("def g(): pass", "<stdin>", "exec"))
    for value in (f, C, g, C()):
        print(content_of(value).hashable)
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout.split() == ["False"] * 4


# --- the user's own code -------------------------------------------------------------------

FILES = {
    "mine.py": """
        import json, numpy as np
        import helper
        from inside import deep
        from inside.near import name
        def trainer():
            import lazily.loaded
            import importlib
            importlib.import_module("by_name")
            return helper.f()
        def other():
            return 1
        class Attack:
            pass
    """,
    "helper.py": "import transitive\ndef f(): return transitive.g()",
    "transitive.py": "from starred import *\ndef g(): return 1",
    "starred/__init__.py": "__all__ = ['listed']",
    "starred/listed.py": "x = 1",
    "starred/unlisted.py": "x = 1",
    "inside/__init__.py": "from . import relative",
    "inside/relative.py": "from .sub.deeper import y",
    "inside/sub/__init__.py": "",
    "inside/sub/deeper.py": "from ..near import name\ny = 1",
    "inside/near.py": "name = 1",
    "inside/deep.py": "z = 1",
    "inside/unused.py": "z = 1",
    "lazily/loaded.py": "z = 1",
    "by_name.py": "z = 1",
    "unrelated.py": "z = 1",
}
REACHED = sorted(
    set(FILES) - {"mine.py", "unrelated.py", "inside/unused.py", "starred/unlisted.py"}
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder of the user's own modules, and nothing of it loaded afterwards."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))


@pytest.mark.parametrize("name", REACHED)
def test_a_change_of_a_module_that_is_reached_changes_the_content(project, name):
    before = code_of("mine:trainer")
    assert before.hashable
    write(project / name, (project / name).read_text() + "\nchanged = True\n")
    after = code_of("mine:trainer")
    assert after.hashable
    assert after.digest != before.digest


@pytest.mark.parametrize(
    "name", ["unrelated.py", "inside/unused.py", "starred/unlisted.py", "new.py"]
)
def test_a_change_of_an_unrelated_file_does_not(project, name):
    before = code_of("mine:trainer")
    write(project / name, "changed = True\n")
    assert code_of("mine:trainer") == before


def test_a_loaded_function_and_class_reach_the_same_files(project):
    mine = importlib.import_module("mine")
    assert code_of(mine.trainer) == code_of(mine.Attack) == code_of("mine")
    assert code_of("mine").hashable
    names = {part.partition(":")[0] for part in code_of(mine).parts}
    assert names == {
        "mine", "helper", "transitive", "starred", "starred.listed", "inside",
        "inside.relative", "inside.sub", "inside.sub.deeper", "inside.near",
        "inside.deep", "lazily.loaded", "by_name",
    }  # fmt: skip
    assert content_of(mine.trainer).digest != content_of(mine.other).digest


def test_a_file_that_changed_after_its_import_makes_the_code_opaque(project):
    mine = importlib.import_module("mine")
    before = content_of(mine.trainer)
    write(project / "helper.py", "def f(): return 2")
    after = content_of(mine.trainer)
    assert after.digest != before.digest
    assert any("helper.py was changed after" in reason for reason in after.opaque)
    importlib.invalidate_caches()
    importlib.reload(sys.modules["helper"])
    reloaded = content_of(mine.trainer)
    assert reloaded.hashable
    assert reloaded.digest != before.digest


def test_what_stands_in_the_namespace_is_followed(project):
    write(project / "registry.py", "functions = {}\nchosen = None")
    write(project / "late.py", "import registry\ndef use(): return registry.chosen()")
    importlib.import_module("late")
    before = code_of("late")
    registry = sys.modules["registry"]
    registry.chosen = importlib.import_module("helper").f
    names = {part.partition(":")[0] for part in code_of("late").parts}
    assert {"helper", "transitive"} <= names
    assert code_of("late").digest != before.digest


def test_a_module_that_appears_changes_the_content(project):
    text = "try:\n    import optional\nexcept ImportError:\n    optional = None\n"
    write(project / "mine.py", text)
    before = code_of("mine")
    assert before.hashable
    write(project / "optional.py", "x = 1")
    assert code_of("mine").digest != before.digest


def test_the_base_class_in_another_file_counts(project):
    write(project / "base.py", "class Base:\n    pass")
    write(project / "derived.py", "import base\nclass Derived(base.Base):\n    pass")
    kind = importlib.import_module("derived").Derived
    names = {part.partition(":")[0] for part in code_of(kind).parts}
    assert names == {"base", "derived"}


def test_a_decorated_function_counts_with_both_files(project):
    write(
        project / "decorator.py",
        """
        import functools
        def twice(f):
            @functools.wraps(f)
            def wrapper(*a):
                return 2 * f(*a)
            return wrapper
        """,
    )
    write(
        project / "decorated.py",
        "from decorator import twice\n@twice\ndef f(): return 1",
    )
    function = importlib.import_module("decorated").f
    content = content_of(function)
    assert content.hashable
    names = {part.partition(":")[0] for part in code_of(function).parts}
    assert names == {"decorated", "decorator"}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("importlib.import_module(name)", "importlib.import_module(name)"),
        ("from importlib import import_module as im; im(name)", "im(name)"),
        ("__import__(name)", "__import__(name)"),
        ("f = __import__", "__import__"),
        ("exec(name)", "exec"),
        ("list(map(eval, [name]))", "eval"),
        ("import builtins as b; b.exec(name)", "builtins.exec"),
        ("import runpy; runpy.run_path(name)", "runpy.run_path"),
        ("from runpy import run_module; run_module(name)", "runpy.run_module"),
        (
            "import importlib.util as u; u.spec_from_file_location(name, name)",
            "importlib.util.spec_from_file_location",
        ),
    ],
)
def test_code_that_cannot_be_followed_is_named(project, line, named):
    write(project / "helper.py", f"import importlib\ndef f(name):\n    {line}\n")
    content = code_of("mine")
    assert not content.hashable
    assert f"helper.py, line 3, uses {named}" in content.opaque[0]


@pytest.mark.parametrize(
    "line",
    [
        "model.eval()",
        "frame.eval('a + b')",
        "importlib.import_module('by_name')",
        "importlib.import_module(name='by_name')",
        "__import__('by_name')",
    ],
)
def test_code_that_only_looks_so_is_followed(project, line):
    text = f"import importlib\ndef f(model, frame):\n    {line}\n"
    write(project / "mine.py", text)
    content = code_of("mine")
    assert content.hashable
    names = {part.partition(":")[0] for part in content.parts}
    assert ("by_name" in names) == ("by_name" in line)


def test_relative_imports_by_name_are_followed(project):
    text = "import importlib\nimportlib.import_module('.unused', __package__)\n"
    write(project / "inside/__init__.py", text)
    names = {part.partition(":")[0] for part in code_of("inside").parts}
    assert names == {"inside", "inside.unused"}


def test_files_that_cannot_be_read_or_parsed_are_opaque(project):
    write(project / "helper.py", "def (")
    assert "helper.py is not readable Python" in code_of("mine").opaque[0]
    (project / "helper.py").unlink()
    mine = project / "mine.py"
    write(mine, "import helper")
    write(project / "helper.py", "")
    importlib.import_module("mine")
    (project / "helper.py").unlink()
    assert any("cannot be read" in reason for reason in code_of("mine").opaque)


def test_libraries_and_reticent_add_nothing():
    for name in ("json", "os.path", "numpy.linalg", "sklearn", "reticent.run"):
        assert code_of(name) == Content(())
    assert code_of(LogisticRegression) == Content(())
    assert code_of(InvalidInput) == Content(())


def test_a_file_put_beside_installed_libraries_by_hand_has_no_version(
    tmp_path, monkeypatch
):
    site = tmp_path / "site-packages"
    site.mkdir()
    write(site / "by_hand.py", "x = 1")
    write(site / "installed.py", "x = 1")
    information = site / "installed-1.0.dist-info"
    information.mkdir()
    write(
        information / "METADATA", "Metadata-Version: 2.1\nName: installed\nVersion: 1.0"
    )
    write(information / "RECORD", "installed.py,,\ninstalled-1.0.dist-info/RECORD,,\n")
    script = f"""
    import sys
    sys.path.insert(0, {str(site)!r})
    from reticent.run import code_of
    print(len(code_of("by_hand").parts), len(code_of("installed").parts))
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert finished.stdout.split() == ["1", "0"]


# --- the environment -----------------------------------------------------------------------


def test_the_environment_names_versions_and_source():
    content = environment()
    assert content.hashable
    assert f"numpy=={np.__version__}" in content.parts
    assert content is environment()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("run/_store.py", True),
        ("policy/default.toml", True),
        ("report/page.css", True),
        ("report/page.js", True),
        ("report/new.html", True),
        ("run/notes.txt", False),
        ("run/__pycache__/_store.cpython-311.pyc", False),
    ],
)
def test_a_change_of_the_package_changes_its_hash(tmp_path, name, changes):
    source = Path(sys.modules["reticent.run"].__file__).parents[1]
    copy = tmp_path / "reticent"
    shutil.copytree(source, copy)
    before = hash_of_folder(copy)
    assert before == hash_of_folder(source)
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    with (copy / name).open("a") as file:
        file.write(" ")
    assert (hash_of_folder(copy) != before) == changes


def test_a_file_under_another_name_changes_the_hash(tmp_path):
    (tmp_path / "a.py").write_text("x")
    before = hash_of_folder(tmp_path)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert hash_of_folder(tmp_path) != before
