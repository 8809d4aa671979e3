"""Detached signatures of dossiers: Ed25519 over the very bytes of the file."""

import base64
import binascii
from pathlib import Path
from typing import Any

from reticent.errors import InvalidInput, OutputRefused
from reticent.run import read_text, write_text

__all__ = ["SIGNATURE_ENDING", "is_signed_by", "make_keys", "sign"]

SIGNATURE_ENDING, PUBLIC_ENDING = ".sig", ".pub"
SIGNATURE_BYTES = 64
MOST_BYTES = 100_000  # of a key or a signature, which have about a hundred


def make_keys(file: Path | str) -> tuple[Path, Path]:
    """Write a new pair of keys in PEM: the private one, which its owner alone may read, and beside it the public one, ending in ``.pub``.

    Parameters
    ----------
    file : path
        The private key.

    Returns
    -------
    tuple of Path
        The private and the public key.

    Raises
    ------
    OutputRefused
        If one of the files exists: whoever replaces a key can no longer show that older signatures are theirs.
    """
    ed25519, serialization = _library()
    private = Path(file)
    public = private.with_name(private.name + PUBLIC_ENDING)
    for path in (private, public):
        if path.exists():
            raise OutputRefused(
                f"{path} exists, and a key is never replaced; choose another name."
            )
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    known = key.public_key().public_bytes(
        pem, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    write_text(private, secret.decode("ascii"), mode=0o600)
    write_text(public, known.decode("ascii"))
    return private, public


def sign(file: Path | str, *, key: Path | str) -> Path:
    """Write the signature of a file beside it, in Base64, ending in ``.sig``; return the signature's path.

    Parameters
    ----------
    file : path
        What is signed, a ``dossier.json``.
    key : path
        The private key.
    """
    file = Path(file)
    signature = _private_key(Path(key)).sign(_content(file))
    target = file.with_name(file.name + SIGNATURE_ENDING)
    write_text(target, base64.b64encode(signature).decode("ascii") + "\n")
    return target


def is_signed_by(
    file: Path | str, *, signature: Path | str, public_key: Path | str
) -> bool:
    """Return whether a signature is that of a file by the owner of a public key.

    Raises
    ------
    InvalidInput
        If one of the files is not what it should be.
    """
    key = _public_key(Path(public_key))
    from cryptography.exceptions import InvalidSignature

    text = read_text(Path(signature), what="signature", most=MOST_BYTES)
    try:
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(
            f"the signature {signature} is not Base64; pass what `reticent sign` wrote."
        ) from error
    if len(content) != SIGNATURE_BYTES:
        raise InvalidInput(
            f"the signature {signature} has {len(content)} bytes and not {SIGNATURE_BYTES}; pass what `reticent sign` wrote."
        )
    try:
        key.verify(content, _content(Path(file)))
    except InvalidSignature:
        return False
    return True


def _content(file: Path) -> bytes:
    return read_text(file, what="dossier").encode("utf-8")


def _private_key(path: Path) -> Any:
    ed25519, serialization = _library()
    text = read_text(path, what="private key", most=MOST_BYTES)
    try:
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{path} is no private key without a password ({type(error).__name__}); make one with `reticent key`."
        ) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InvalidInput(f"{path} is no Ed25519 key; make one with `reticent key`.")
    return key


def _public_key(path: Path) -> Any:
    ed25519, serialization = _library()
    text = read_text(path, what="public key", most=MOST_BYTES)
    try:
        key = serialization.load_pem_public_key(text.encode())
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{path} is no public key ({type(error).__name__}); pass the file ending in {PUBLIC_ENDING} that `reticent key` wrote."
        ) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidInput(f"{path} is no Ed25519 key; make one with `reticent key`.")
    return key


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise InvalidInput(
            "signatures need the library cryptography, which is not installed; install reticent[sign]."
        ) from error
    return ed25519, serialization
