"""The owner's key: made once, closed to others, and needed for every keyed digest."""

import stat

import pytest

from reticent.errors import InvalidInput, OutputRefused
from reticent.run import has_owner_key, keyed, owner_folder


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("RETICENT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_asking_for_a_key_makes_none(home):
    assert not has_owner_key()
    assert not home.exists()
    keyed("x", about="test")
    assert has_owner_key()


def test_a_key_is_made_once_and_closed_to_others(home):
    first = keyed("x", about="test")
    key = home / "key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert [file.name for file in home.iterdir()] == ["key"]
    assert keyed("x", about="test") == first
    key.unlink()
    assert keyed("x", about="test") != first


def test_digests_of_different_things_never_agree(home):
    digests = {keyed("x", about="a"), keyed("x", about="b"), keyed("y", about="a")}
    assert len(digests) == 3


def test_a_key_that_others_can_read_is_refused(home):
    keyed("x", about="test")
    (home / "key").chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        keyed("x", about="test")


def test_a_damaged_key_is_refused(home):
    keyed("x", about="test")
    (home / "key").write_bytes(b"short")
    with pytest.raises(InvalidInput, match="5 bytes and not 32"):
        keyed("x", about="test")


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RETICENT_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(OutputRefused, match="set RETICENT_HOME"):
        keyed("x", about="test")


def test_the_folder_for_settings_is_the_default(tmp_path, monkeypatch):
    monkeypatch.delenv("RETICENT_HOME")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert owner_folder() == tmp_path / "reticent"
