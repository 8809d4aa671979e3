"""Results that are kept: found again by content, and made again when damaged."""

import os
import stat
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reticent.errors import OutputRefused
from reticent.run import Content, Store, content_of, pack


@dataclass(frozen=True)
class Result:
    scores: NDArray[np.float64]
    name: str


@dataclass(frozen=True)
class OtherResult:
    scores: NDArray[np.float64]
    name: str


DEPENDS = content_of("table", 3)


class Maker:
    """Makes results and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return Result(np.arange(20.0), "made")


def ask(folder: Path, warn=None):
    maker = Maker()
    sentences: list[str] = []
    store = Store(folder=folder, warn=warn or sentences.append)
    result = store.keep("stage/one of", Result, maker, depends=DEPENDS)
    assert np.array_equal(result.scores, np.arange(20.0))
    assert result.name == "made"
    return maker.calls, sentences


def only_file(folder: Path) -> Path:
    (path,) = folder.glob("*.stage")
    return path


def test_a_result_is_made_once_and_found_again(tmp_path):
    folder = tmp_path / "deep" / "stages"
    assert ask(folder) == (1, [])
    assert ask(folder) == (0, [])
    name = only_file(folder).name
    assert name.startswith("stage-one_of-")
    assert len(name.removeprefix("stage-one_of-").removesuffix(".stage")) == 24


def test_only_the_owner_can_read_it(tmp_path):
    folder = tmp_path / "stages"
    ask(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600
    assert (folder / "README").read_text().startswith("SENSITIVE")
    assert sorted(p.suffix for p in folder.iterdir()) == ["", ".stage"]


def test_other_content_or_another_name_is_another_result(tmp_path):
    store = Store(folder=tmp_path)
    values = {
        ("a", content_of(1)): 1,
        ("a", content_of(2)): 2,
        ("b", content_of(1)): 3,
        ("a/b", content_of(1)): 4,
        ("a-b", content_of(1)): 5,
        ("x" * 400, content_of(1)): 6,
        ("x" * 399 + "y", content_of(1)): 7,
        ("../escape\0é", content_of(1)): 8,
    }
    for (name, depends), value in values.items():
        assert (
            store.keep(name, int, lambda value=value: value, depends=depends) == value
        )
    for (name, depends), value in values.items():
        assert store.find(name, int, depends=depends) == value
    assert len(list(tmp_path.glob("*.stage"))) == len(values)


def test_what_is_opaque_is_neither_written_nor_read(tmp_path):
    store = Store(folder=tmp_path / "stages")
    opaque = content_of(1) + Content((), ("a lambda.",))
    for _ in range(2):
        maker = Maker()
        store.keep("a", Result, maker, depends=opaque)
        assert maker.calls == 1
    store.save("a", 1, depends=opaque)
    assert store.find("a", int, depends=opaque) is None
    assert not (tmp_path / "stages").exists()


def test_no_folder_keeps_nothing():
    store = Store(folder=None)
    store.save("a", 1, depends=DEPENDS)
    assert store.find("a", int, depends=DEPENDS) is None
    assert store.keep("a", int, lambda: 2, depends=DEPENDS) == 2
    store.clear()


def test_none_can_be_kept(tmp_path):
    store = Store(folder=tmp_path)
    calls = []
    for _ in range(2):
        store.keep("a", type(None), lambda: calls.append(1), depends=DEPENDS)
    assert calls == [1]


def test_clear_removes_its_own_folder_and_nothing_of_others(tmp_path):
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "README").write_text("My notes.")
    (foreign / "thesis.txt").write_text("years of work")
    for folder in (own, foreign):
        ask(folder)
        (folder / "left.part").touch()
        Store(folder=folder).clear()
        Store(folder=folder).clear()
    assert not own.exists()
    assert sorted(p.name for p in foreign.iterdir()) == ["README", "thesis.txt"]


# --- damage --------------------------------------------------------------------------------


def truncate(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").touch()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def store_another_type(path: Path) -> None:
    other = path.parent / "other"
    store = Store(folder=other)
    store.save("x", OtherResult(np.zeros(2), "x"), depends=DEPENDS)
    only_file(other).replace(path)


def pickle_something(path: Path) -> None:
    import hashlib
    import pickle

    payload = pickle.dumps(Result(np.zeros(2), "evil"))
    path.write_bytes(hashlib.sha256(payload).digest() + payload)


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "first bytes": lambda path: truncate(path, 0.02),
    "head": lambda path: truncate(path, 0.1),
    "half": lambda path: truncate(path, 0.5),
    "almost all": lambda path: truncate(path, 0.99),
    "more": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "folder": make_folder,
    "unreadable": make_loop,
    "another type": store_another_type,
    "pickle": pickle_something,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_told_of_made_again_and_repaired(tmp_path, damage):
    folder = tmp_path / "stages"
    ask(folder)
    path = only_file(folder)
    damage(path)
    calls, sentences = ask(folder)
    assert calls == 1
    assert len(sentences) == 1
    assert str(path) in sentences[0]
    assert ask(folder) == (0, [])
    assert not list(folder.glob("*.part"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_made_again(tmp_path):
    folder = tmp_path / "stages"
    ask(folder)
    only_file(folder).chmod(0)
    calls, sentences = ask(folder)
    assert (calls, len(sentences)) == (1, 1)
    assert ask(folder) == (0, [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_flipped_bit_anywhere_is_noticed(tmp_path, data):
    folder = tmp_path / "stages"
    ask(folder)
    path = only_file(folder)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    calls, sentences = ask(folder)
    assert (calls, len(sentences)) == (1, 1)
    assert ask(folder) == (0, [])


def test_the_warning_is_a_runtime_warning_where_keep_was_called(tmp_path):
    store = Store(folder=tmp_path)
    store.save("a", "text", depends=DEPENDS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert store.keep("a", int, lambda: 1, depends=DEPENDS) == 1
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert warning.filename == __file__
    assert "should be of the type int, but text was stored" in str(warning.message)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    for folder in (blocked, blocked / "inside"):
        store = Store(folder=folder, warn=lambda sentence: None)
        with pytest.raises(OutputRefused, match=r"cannot be written to .*--out"):
            store.keep("a", int, lambda: 1, depends=DEPENDS)


def test_a_value_that_cannot_be_packed_leaves_nothing_behind(tmp_path):
    store = Store(folder=tmp_path)
    with pytest.raises(TypeError, match="cannot be stored"):
        store.save("a", object(), depends=DEPENDS)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_a_hash_and_what_pack_returns(tmp_path):
    import hashlib

    Store(folder=tmp_path).save("a", (1, 2), depends=DEPENDS)
    payload = pack((1, 2))
    expected = hashlib.sha256(payload).digest() + payload
    assert only_file(tmp_path).read_bytes() == expected
