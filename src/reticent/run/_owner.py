"""A secret of the owner's: what is keyed with it is recognised by the owner, and tells nobody else anything.

A plain hash of a private table is as good as the table to whoever knows all of it but one value: each candidate can be
hashed and compared. What leaves the house is therefore keyed with a random secret, which stays in the owner's own folder.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

from reticent.errors import InvalidInput, OutputRefused

__all__ = ["KEYED", "has_owner_key", "keyed", "owner_folder"]

HOME = "RETICENT_HOME"
KEY_FILE = "key"
KEY_BYTES = 32
KEYED = "hmac-sha256:"  # beginning of every keyed digest


def keyed(content: str, *, about: str) -> str:
    """Return a digest that only who holds the owner's key can compute, or compare with that of another content.

    Parameters
    ----------
    content : str
        What is keyed, for example a plain digest.
    about : str
        What the content is, so that digests of different things never agree.

    Raises
    ------
    OutputRefused
        If there is no key yet and none can be written.
    InvalidInput
        If the key can be read by others, or is none.
    """
    message = f"{about}\0{content}".encode()
    return KEYED + hmac.new(_owner_key(), message, hashlib.sha256).hexdigest()


def has_owner_key() -> bool:
    """Return whether there is a key already; a new one would recognise nothing."""
    return (owner_folder() / KEY_FILE).exists()


def owner_folder() -> Path:
    """Return the folder in which the owner's key lies: ``$RETICENT_HOME``, else ``reticent`` in the user's folder for settings."""
    own = os.environ.get(HOME)
    if own:
        return Path(own)
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "reticent"


def _owner_key() -> bytes:
    """Return the owner's key, which is made when it is first needed."""
    file = owner_folder() / KEY_FILE
    try:
        if not file.exists():
            _make_key(file)
        mode, key = file.stat().st_mode, file.read_bytes()
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        raise OutputRefused(
            f"the owner's key {file} can neither be read nor written ({error}), so tables could not be recognised again; set "
            f"{HOME} to a folder of your own."
        ) from error
    if stat.S_IMODE(mode) & 0o077:
        raise InvalidInput(
            f"the owner's key {file} can be read by others, so what is keyed with it would be no secret; run chmod 600 on it, or "
            "remove it to get a new one."
        )
    if len(key) != KEY_BYTES:
        raise InvalidInput(
            f"the owner's key {file} has {len(key)} bytes and not {KEY_BYTES}, so it was damaged; restore it, or remove it to get a "
            "new one."
        )
    return key


def _make_key(file: Path) -> None:
    """Write a new key, closed to others from its first byte; of several processes that do so at once, one wins."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="key-", dir=file.parent)  # of mode 600
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as content:
            content.write(secrets.token_bytes(KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            os.link(part, file)
    finally:
        part.unlink(missing_ok=True)
