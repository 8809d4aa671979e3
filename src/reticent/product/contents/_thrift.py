"""Read the compact protocol of Thrift, in which Parquet writes its footer and its page headers, into plain values."""

import struct
from typing import Any

from reticent.errors import InvalidInput

__all__ = ["read_struct"]

DEEPEST = 32  # nesting; the footer of Parquet has fewer than 10
MOST_VALUES = 20_000_000  # of one structure; the footer of a thousand columns in a thousand row groups has as many
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)  # fmt: skip


def read_struct(data: bytes | memoryview, at: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a structure by their numbers, known or not, and where it ends.

    Integers are ``int``, texts and bytes ``bytes``, lists and sets ``list``, maps lists of pairs, structures dictionaries.

    Raises
    ------
    InvalidInput
        If it is damaged, nested too deep, or claims more than the data hold.
    """
    reader = _Reader(data, at)
    try:
        return reader.struct(0), reader.at
    except (IndexError, struct.error) as error:
        raise InvalidInput(
            "a structure ends in the middle of a value, so the file is damaged; write it again."
        ) from error


class _Reader:
    """A place in the data, which moves forward."""

    def __init__(self, data: bytes | memoryview, at: int) -> None:
        self.data, self.at, self.left = data, at, MOST_VALUES

    def struct(self, depth: int) -> dict[int, Any]:
        """Return fields up to the stop, later ones of the same number in a list beside it under its negative."""
        fields: dict[int, Any] = {}
        last = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            last = last + delta if delta else self._integer()
            value = kind == TRUE if kind in (TRUE, FALSE) else self.value(kind, depth)
            if last in fields:
                fields.setdefault(-abs(last) - 1, []).append(value)
            else:
                fields[last] = value
        return fields

    def value(self, kind: int, depth: int) -> Any:
        """Return a value of some type."""
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            raise InvalidInput(
                "a structure is nested too deep or holds too many values, so the file is damaged; write it again."
            )
        if kind in (TRUE, FALSE, BYTE):
            return self._byte()
        if kind in (I16, I32, I64):
            return self._integer()
        if kind == DOUBLE:
            return struct.unpack("<d", self._bytes(8))[0]
        if kind in (BINARY, UUID):
            return self._bytes(16 if kind == UUID else self._size())
        if kind in (LIST, SET):
            head = self._byte()
            count = head >> 4 if head >> 4 != 15 else self._size()
            return [self.value(head & 15, depth + 1) for _ in range(count)]
        if kind == MAP:
            count = self._size()
            types = self._byte() if count else 0
            return [
                (self.value(types >> 4, depth + 1), self.value(types & 15, depth + 1))
                for _ in range(count)
            ]
        if kind == STRUCT:
            return self.struct(depth + 1)
        raise InvalidInput(
            f"a structure has a value of the unknown type {kind}, so the file is damaged; write it again."
        )

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise IndexError
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def _size(self) -> int:
        """Return a number of things, each of which takes a byte at least."""
        count = self._unsigned()
        if count > len(self.data) - self.at:
            raise IndexError
        return count

    def _unsigned(self) -> int:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                return number
        raise IndexError

    def _integer(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)
