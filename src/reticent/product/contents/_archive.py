"""Take a zip archive apart: its members, its comments, and the bytes that belong to neither."""

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Archive", "Member"]

HEADER = 30  # bytes of a local header before the name
# Members that were written to a stream, as a flag says, are followed by a checksum and sizes. They take 12 to 24 bytes, which are no gap.
DESCRIPTOR, STREAMED = 24, 8
END, LAST = (
    b"PK\x05\x06",
    22,
)  # what the last record begins with, and its bytes without the comment
FAR = b"PK\x06\x06"  # what stands before it in a very large archive


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member of an archive.

    Parameters
    ----------
    name : str
        Its name, which need not be unique.
    info : zipfile.ZipInfo
        What the archive says about it.
    """

    name: str
    info: zipfile.ZipInfo


class Archive:
    """A zip archive in memory.

    Parameters
    ----------
    data : bytes
        All bytes of the archive.

    Raises
    ------
    zipfile.BadZipFile
        If it is no archive.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self.members = tuple(
            Member(name=info.filename, info=info) for info in self._zip.infolist()
        )

    def read(self, member: Member, *, most: int) -> bytes:
        """Return the bytes of a member.

        Raises
        ------
        ValueError
            If they are more than ``most``, whatever the archive says about their number.
        """
        with self._zip.open(member.info) as handle:
            data = handle.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
        return data

    def comments(self) -> Iterator[bytes]:
        """Yield the comments of the archive and of its members, and every extra field of the members."""
        yield self._zip.comment
        for member in self.members:
            start, body = self._body(member.info)
            yield member.info.comment
            yield from _fields(member.info.extra)
            name = len(member.info.filename.encode("utf-8", "surrogateescape"))
            yield from _fields(self._data[start + HEADER + name : body])

    def gaps(self) -> Iterator[bytes]:
        """Yield the bytes that belong to no member and not to the list of members, also those behind it."""
        at, room = 0, 0
        for info in sorted((m.info for m in self.members), key=_offset):
            start, body = self._body(info)
            if start - at > room:
                yield self._data[at:start]
            at = max(at, body + info.compress_size)
            room = DESCRIPTOR if info.flag_bits & STREAMED else 0
        if self._zip.start_dir - at > room:
            yield self._data[at : self._zip.start_dir]
        last = self._data.rfind(END)
        listed, comment = struct.unpack("<L4xH", self._data[last + 12 : last + LAST])
        between = self._data[self._zip.start_dir + listed : last]
        if not between.startswith(FAR):
            yield between
        yield self._data[last + LAST + comment :]

    def _body(self, info: zipfile.ZipInfo) -> tuple[int, int]:
        """Return where a member's own header begins, and where its content does."""
        start = info.header_offset
        header = self._data[start : start + HEADER]
        name, extra = struct.unpack("<HH", header[26:30])
        return start, start + HEADER + name + extra


def _offset(info: zipfile.ZipInfo) -> int:
    return info.header_offset


def _fields(extra: bytes) -> Iterator[bytes]:
    """Yield what stands in extra fields, each behind a number and a length; what is no field is yielded as it is."""
    while len(extra) >= 4:
        length = int.from_bytes(extra[2:4], "little")
        if length > len(extra) - 4:
            break
        yield extra[4 : 4 + length]
        extra = extra[4 + length :]
    yield extra
