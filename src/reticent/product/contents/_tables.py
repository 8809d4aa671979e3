"""Read what the file of a table holds besides its cells: all bytes are cells, or what every writer needs, or are named."""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from reticent.errors import InvalidTable
from reticent.product.contents._parquet import parquet_parts
from reticent.product.contents._values import Contents
from reticent.product.contents._walk import Walk, plain

__all__ = ["BesideCells", "beside_cells", "with_files"]

MOST_BYTES = 2**31  # that a table, and all that is packed in it, may unpack to
# A packed text may not be this much longer than its packing, unless it is short: tables shrink to a tenth, to a hundredth if rows repeat.
MOST_EXPANSION, SHORT = 200, 2**27
LONGEST_NUMBER = 32  # characters; a double needs 24
_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_HEAD_CRC, _EXTRA, _NAME, _COMMENT, _RESERVED = 2, 4, 8, 16, 0xE0
_FILE_NAME = re.compile(rb"[\w.\- ]{1,64}")
_NUMBER = re.compile(rb"[\d.+\-eE]{%d,}" % (LONGEST_NUMBER + 1))
_DIGITS = bytes(ord("0") if chr(k) in "0123456789.+-eE" else 32 for k in range(256))
# One of these is in every text that holds what the next expression finds; to look for them is quick.
_SPACES = (b"  ", b"\t", b"\v", b"\f", b" ,", b" \n", b" \r", b"\n\n", b"\n\r\n")
# A blank behind a comma is usual. Inside a text, blanks are part of the cell.
_SPACE = re.compile(rb"(?<=[,\n])[ \t\v\f]{2,}|(?<=[\d.])[ \t\v\f]+(?=[,\r\n])|(?:\r?\n){3,}|(?:\r?\n){2,}\Z")  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class BesideCells:
    """What the file of a table, or its folder, holds besides the cells.

    Parameters
    ----------
    contents : Contents
        Its numbers and texts, to be laid beside people like the file of a model.
    parts : tuple of str
        What it is, one entry each, without quoting it.
    """

    contents: Contents = field(default_factory=Contents)
    parts: tuple[str, ...] = ()


class _Found:
    """What has been found so far."""

    def __init__(self) -> None:
        self.walk = Walk(most_bytes=MOST_BYTES)
        self._sizes: dict[str, list[int]] = {}
        self._frames: list[str] = []

    @property
    def parts(self) -> tuple[str, ...]:
        """What was found, one entry per place."""
        sizes = (
            f"{place}, {sum(lengths):,} bytes"
            + (f" at {len(lengths):,} places" if len(lengths) > 1 else "")
            for place, lengths in self._sizes.items()
        )
        return (*self._frames, *sizes)

    def part(self, place: str, data: bytes | str) -> None:
        """Name bytes that are no cells, and look for tables, numbers and texts in them."""
        packed = data.encode(errors="surrogatepass") if isinstance(data, str) else data
        if packed:
            self._sizes.setdefault(place, []).append(len(packed))
            self.walk.blob(place, packed)

    def frame(self, place: str, frame: pd.DataFrame) -> None:
        """Name columns that are no cells of the table, and keep their values."""
        self._frames.append(f"{place}, {len(frame):,} rows of {frame.shape[1]} columns")
        self.columns(place, frame)

    def columns(self, place: str, frame: pd.DataFrame) -> None:
        """Keep the cells of columns like those of any table in a text."""
        cells = frame.astype(object).where(frame.notna(), None).map(plain)
        self.walk.value(place, cells.rename(columns=str).to_dict("records"))


def beside_cells(path: Path) -> BesideCells:
    """Return what a table in CSV or Parquet, or the folder that it is in, holds besides its cells.

    Raises
    ------
    InvalidTable
        If it is no file, leads out of its folder, or unpacks to more than a table does.
    """
    found, size = _Found(), 0
    if not path.is_file():
        raise InvalidTable(
            f"there is no file {path}, so there is nothing to audit; check the path."
        )
    size += path.stat().st_size
    if size > MOST_BYTES:
        raise InvalidTable(
            f"the file {path} has {size:,} bytes, of which nobody can look at all; bring at most {MOST_BYTES:,}."
        )
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        try:
            parquet_parts(path, path.read_bytes(), found.part, found.frame, found.walk, most=MOST_BYTES)  # fmt: skip
        except InvalidTable:
            raise
        except Exception as error:
            # Whatever a damaged or hostile file does to a reader: it was not read.
            raise InvalidTable(
                f"the file {path} is not a table ({_one_line(error)}); write it again as Parquet."
            ) from error
    elif name.endswith(".gz"):
        _text_parts(_gzip_members(path, found.part), found.part)
    else:
        with path.open("rb") as file:
            _text_parts(iter(lambda: file.read(_BLOCK), b""), found.part)
    return BesideCells(contents=found.walk.contents(size=size), parts=found.parts)


def with_files(beside: BesideCells, files: dict[str, bytes], *, named: frozenset[str]) -> BesideCells:  # fmt: skip
    """Return the same with other files of the folder; those that are ``named`` are searched for people, and no finding by themselves."""
    found = _Found()
    for name, data in files.items():
        if name in named:
            found.walk.blob(name, data)
        else:
            found.part("a further file in the folder", data)
    more, first = found.walk.contents(size=0), beside.contents
    contents = Contents(
        arrays=(*first.arrays, *more.arrays),
        texts=(*first.texts, *more.texts),
        trees=(*first.trees, *more.trees),
        unread=(*first.unread, *more.unread),
        size=first.size + sum(map(len, files.values())),
    )
    return BesideCells(contents=contents, parts=(*beside.parts, *found.parts))


def _text_parts(blocks: Iterator[bytes], part: Callable[[str, bytes], None]) -> None:
    """Name what a reader of CSV skips: white space, and digits behind those that a number has."""
    spaces: list[bytes] = []
    digits: list[bytes] = []
    rest = b""
    for block in blocks:
        # Whole lines, none of which ends inside quotation marks, as long as there are any.
        lines, _, tail = (rest + block).rpartition(b"\n")
        if (not lines or lines.count(b'"') % 2) and len(rest) < 4 * _BLOCK:
            rest += block
            continue
        _note(lines + b"\n", spaces, digits)
        rest = tail
    _note(rest, spaces, digits)
    part("white space that no cell needs", b"".join(spaces))
    part("digits that no number needs", b"\n".join(digits))


def _note(text: bytes, spaces: list[bytes], digits: list[bytes]) -> None:
    if any(hint in text for hint in _SPACES):
        spaces += _SPACE.findall(re.sub(rb'"[^"]*"', b'""', text))
    if b"0" * (LONGEST_NUMBER + 1) in text.translate(_DIGITS):
        digits += _NUMBER.findall(text)


def _gzip_members(path: Path, part: Callable[[str, bytes], None]) -> Iterator[bytes]:
    """Yield what a compressed file unpacks to, and name what its heads hold besides; damage is left to the reader of cells to refuse."""
    packed = path.read_bytes()
    at = unpacked = 0
    while packed[at : at + 3] == _GZIP and len(packed) >= at + 10:
        rest: bytes | memoryview = memoryview(packed)[_gzip_head(packed, at, part) :]
        inflater = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        try:
            while not inflater.eof:
                block = inflater.decompress(rest, _BLOCK)
                rest = inflater.unconsumed_tail
                if not block and not rest:
                    return
                unpacked += len(block)
                if unpacked > MOST_BYTES or (
                    unpacked > SHORT and unpacked > MOST_EXPANSION * len(packed)
                ):
                    raise InvalidTable(
                        f"the file {path} unpacks to more than {unpacked:,} bytes, which no table of its size does; write it again, or bring it unpacked."
                    )
                yield block
        except zlib.error:
            return
        at = len(packed) - len(inflater.unused_data) + 8
    # Zeros at the end fill up a block of a tape, and tell nothing.
    part("bytes behind the last gzip member", packed[at:].rstrip(b"\0") if at else b"")


def _gzip_head(packed: bytes, at: int, part: Callable[[str, bytes], None]) -> int:
    """Return where the packed text of a member begins, and name what stands before it besides a usual file name."""
    flags, start = packed[at + 3], at + 10
    if flags & _RESERVED:
        part("flags of a gzip member", packed[at + 3 : at + 4])
    if flags & _EXTRA:
        length = int.from_bytes(packed[start : start + 2], "little")
        extra = packed[start + 2 : start + 2 + length]
        # bgzip writes the length of each of its blocks there.
        if not (length == 6 and extra[:4] == b"BC\x02\x00"):
            part("the extra field of a gzip member", extra)
        start += 2 + length
    for flag in (_NAME, _COMMENT):
        if flags & flag:
            end = packed.find(b"\0", start)
            end = len(packed) if end < 0 else end
            text = packed[start:end]
            if flag == _COMMENT:
                part("the comment of a gzip member", text)
            elif not _FILE_NAME.fullmatch(text):
                part("the file name in a gzip member", text)
            start = end + 1
    return start + (2 if flags & _HEAD_CRC else 0)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
