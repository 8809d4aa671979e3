"""Take a zip archive apart: its members, its comments, and the bytes that belong to neither."""

import io
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Archive", "Member"]

HEADER = 30  # bytes of a local header before the name
# Members that were written to a stream are followed by a checksum and sizes. They take 12 to 24 bytes, which are no gap.
DESCRIPTOR = 24


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
        """Yield the comments of the archive and of its members, and the extra fields of the members."""
        notes = [self._zip.comment]
        for member in self.members:
            notes += [member.info.comment, member.info.extra]
        yield from (note for note in notes if note)

    def gaps(self) -> Iterator[bytes]:
        """Yield the bytes that belong to no member and not to the list of members."""
        at = 0
        spans = [self._span(member.info) for member in self.members]
        for start, end in sorted(spans):
            if start - at > DESCRIPTOR:
                yield self._data[at:start]
            at = max(at, end)
        if self._zip.start_dir - at > DESCRIPTOR:
            yield self._data[at : self._zip.start_dir]

    def _span(self, info: zipfile.ZipInfo) -> tuple[int, int]:
        start = info.header_offset
        header = self._data[start : start + HEADER]
        name, extra = struct.unpack("<HH", header[26:30])
        return start, start + HEADER + name + extra + info.compress_size
