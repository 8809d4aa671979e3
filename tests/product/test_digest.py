"""A product is all of its bytes: any file that is added, removed, renamed or changed gives another digest."""

import hashlib
import os

import pytest

from reticent.errors import InvalidInput
from reticent.product import product_digest


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "product"
    (made / "more").mkdir(parents=True)
    (made / "a").write_bytes(b"1")
    (made / "b").write_bytes(b"2")
    (made / "more" / "c").write_bytes(b"3")
    return made


def test_the_digest_is_the_documented_one(folder):
    naive = hashlib.sha256(b"reticent product 1\0")
    for name, content in ((b"a", b"1"), (b"b", b"2"), (b"more/c", b"3")):
        naive.update(len(name).to_bytes(8, "big") + name)
        naive.update(hashlib.sha256(content).digest())
    assert product_digest(folder) == naive.hexdigest()


def test_every_change_is_seen(folder):
    seen = {product_digest(folder)}
    changes = [
        lambda: (folder / "d").write_bytes(b""),
        lambda: (folder / "d").rename(folder / "e"),
        lambda: (folder / "e").unlink() or (folder / "a").write_bytes(b"x"),
        (folder / "a").unlink,
        lambda: (folder / "more" / "c").rename(folder / "c"),
        lambda: (folder / ".hidden").write_bytes(b"1"),
        # The same bytes, cut otherwise between name and content.
        lambda: (folder / "c").rename(folder / "c3"),
    ]
    for number, change in enumerate(changes):
        change()
        seen.add(product_digest(folder))
        assert len(seen) == number + 2


def test_what_does_not_matter_changes_nothing(folder):
    before = product_digest(folder)
    os.utime(folder / "a", (0, 0))
    (folder / "a").chmod(0o600)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to(folder / "a")
    linked = product_digest(folder)
    assert linked != before
    (folder / "link").unlink()
    assert product_digest(folder) == before
    assert product_digest(folder / "a") != before


@pytest.mark.parametrize("kind", ["pipe", "dangling", "loop", "absent"])
def test_what_is_no_file_is_refused(folder, kind):
    if kind == "pipe":
        os.mkfifo(folder / "x")
    elif kind == "dangling":
        (folder / "x").symlink_to("nowhere")
    elif kind == "loop":
        (folder / "x").symlink_to(folder, target_is_directory=True)
    else:
        folder = folder / "x"
    with pytest.raises(InvalidInput, match=r"is no file|cannot be read"):
        product_digest(folder)
