"""Undo what bytes were packed by, and read what a pickle would build without building it."""

import base64
import binascii
import bz2
import io
import lzma
import pickletools
import re
import zlib
from collections.abc import Iterator
from typing import Any

__all__ = ["bytes_in_text", "header_of_gzip", "is_packed", "pickled_values", "unpacked"]

_GZIP, _ZLIB = b"\x1f\x8b", (b"\x78\x01", b"\x78\x9c", b"\x78\xda")
_BZ2, _XZ, _LZMA = b"BZh", b"\xfd7zXZ\x00", b"\x5d\x00\x00"
# Forms that pyarrow can unpack, and by which bytes they are recognised.
_ARROW = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
_PACKED = (_GZIP, *_ZLIB, _BZ2, _XZ, _LZMA, *_ARROW)
MOST_LZMA = 2**28  # bytes of a dictionary; a longer one is asked for to fill the memory
# Optional fields in the header of a gzip file, in their order (RFC 1952): extra bytes, name, comment, checksum.
_EXTRA, _NAME, _COMMENT, _CHECKSUM = 4, 8, 16, 2
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_BASE32 = re.compile(r"[A-Z2-7]+={0,6}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")
_ASCII85 = re.compile(r"(?:<~)?[!-uz]+(?:~>)?")
_BASE85 = re.compile(r"[0-9A-Za-z!#$%&()*+\-;<=>?@^_`{|}~]+")
# What an opcode of a pickle says of its own memory, and not of the data.
_BOOKKEEPING = ("GET", "PUT", "PROTO", "FRAME", "MEMOIZE", "EXT", "PERSID")


def is_packed(data: bytes) -> bool:
    """Return whether bytes begin like those of a compressed file."""
    return data.startswith(_PACKED)


def unpacked(data: bytes, most: int) -> tuple[bytes, bytes]:
    """Return what compressed bytes unpack to, and the bytes behind them; a ValueError if that is more than ``most``."""
    if data.startswith((_GZIP, *_ZLIB)):
        inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        content, left = inflater.decompress(data, most + 1), inflater.unused_data
    elif data.startswith(_BZ2):
        from_bz2 = bz2.BZ2Decompressor()
        content = from_bz2.decompress(data, most + 1)
        left = from_bz2.unused_data
    elif data.startswith((_XZ, _LZMA)):
        from_lzma = lzma.LZMADecompressor(memlimit=MOST_LZMA)
        content = from_lzma.decompress(data, most + 1)
        left = from_lzma.unused_data
    else:
        import pyarrow as pa

        form = next(form for head, form in _ARROW.items() if data.startswith(head))
        with pa.input_stream(pa.BufferReader(data), compression=form) as stream:
            content, left = stream.read(most + 1), b""
    if len(content) > most:
        raise ValueError("it unpacks to more bytes than are allowed")
    return content, left


def header_of_gzip(data: bytes) -> Iterator[bytes]:
    """Yield the fields of a gzip header that a name, a comment or anything else can be hidden in."""
    if not data.startswith(_GZIP) or len(data) < 10:
        return
    flags, at = data[3], 10
    yield data[4:8]  # the time, which may be any four bytes
    if flags & _EXTRA:
        length = int.from_bytes(data[at : at + 2], "little")
        yield data[at + 2 : at + 2 + length]
        at += 2 + length
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = data.find(b"\0", at)
            end = len(data) if end < 0 else end
            yield data[at:end]
            at = end + 1


def bytes_in_text(text: str) -> list[bytes]:
    """Return the bytes that a long text may stand for: in hexadecimal digits, or in base 32, 64 or 85."""
    packed = "".join(text.split())
    if _HEX.fullmatch(packed):
        return [bytes.fromhex(packed)]
    found: list[bytes] = []

    def attempt(decode: Any, form: re.Pattern[str], padded: int = 0) -> None:
        if not form.fullmatch(packed):
            return
        plain = packed.rstrip("=") if padded else packed
        try:
            found.append(decode(plain + "=" * (-len(plain) % padded if padded else 0)))
        except (ValueError, binascii.Error):
            return

    attempt(base64.b32decode, _BASE32, 8)
    safe = "-" in packed or "_" in packed
    attempt(base64.urlsafe_b64decode if safe else base64.b64decode, _BASE64, 4)
    if not found:
        attempt(base64.b85decode, _BASE85)
        attempt(lambda p: base64.a85decode(p, adobe=p.startswith("<~")), _ASCII85)
    return found


def pickled_values(
    data: bytes,
) -> tuple[list[float], list[str], list[bytes], bytes]:
    """Return the numbers, texts and bytes among the operations of a pickle, none of which is carried out, and the bytes behind it."""
    numbers: list[float] = []
    texts: list[str] = []
    blobs: list[bytes] = []
    end = len(data)
    for operation, value, place in pickletools.genops(io.BytesIO(data)):
        name = operation.name
        if name == "STOP":
            end = (place or 0) + 1
        elif name in ("NEWTRUE", "NEWFALSE"):
            numbers.append(float(name == "NEWTRUE"))
        elif any(word in name for word in _BOOKKEEPING):
            continue
        elif isinstance(value, int | float):
            numbers.append(value)
        elif isinstance(value, str):
            texts.append(value)
        elif isinstance(value, bytes | bytearray):
            blobs.append(bytes(value))
    return numbers, texts, blobs, data[end:]
