"""Walk through bytes and values of any form, and collect every number and every text in them."""

import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.errors import ReticentError
from reticent.product.contents._archive import Archive, Member
from reticent.product.contents._binary import (
    floats_in,
    npy_array,
    safetensors_parts,
    ubjson_value,
)
from reticent.product.contents._lightgbm import is_lightgbm, lightgbm_parts
from reticent.product.contents._packed import (
    bytes_in_text,
    header_of_gzip,
    is_packed,
    pickled_values,
    unpacked,
)
from reticent.product.contents._schema import walk_schema
from reticent.product.contents._tabular import (
    Columns,
    columns_of_lines,
    columns_of_lists,
    columns_of_records,
    numbers_in,
)
from reticent.product.contents._trees import (
    BOOSTER_TREE,
    by_column,
    tree_of_booster,
    tree_of_nodes,
    with_own_columns,
)
from reticent.product.contents._values import (
    Contents,
    NamedArray,
    NamedTexts,
    Tree,
    Unread,
    attribute,
    key,
    position,
)

__all__ = ["Walk", "plain"]

SCHEMA = "schema.json"  # the member of a skops archive that says how the others belong together
DEEPEST = 200  # nesting of values; the deepest real product, stacked pipelines, has fewer than 60
# Archives in texts in archives; a person hides things one or two layers deep.
MOST_LAYERS = 4
LONG = 64  # characters from which a text may hold a document or encoded bytes; shorter ones are words
# Numbers in one text that are a list, and not the size and weight of something.
SHORTEST_LIST = 4
# Of a sparse matrix that is written out; 160 megabytes as doubles.
MOST_CELLS = 20_000_000
# Bytes in which the list of members must end: a record of 22 and the longest comment.
LAST_OF_ARCHIVE = 2**16 + 22
_SEPARATORS = re.compile(r"[\s,;|:\[\](){}]+")
_SPARSE = frozenset({"data.npy", "indices.npy", "indptr.npy", "shape.npy"})
_END = b"PK\x05\x06"
_DOCUMENT = ("{", "[", '"')
_PARQUET = b"PAR1"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# Characters from which a text without a space that cannot be understood is told; a digest has 64 to 128.
OPAQUE = 512
# Bytes of a pickle whose operations are read: a second for every ten million.
MOST_PICKLED = 2**26
_PICKLE = re.compile(rb"\x80[\x02-\x05]|[(\]}ciFIlLVSUX].*\.\s*\Z", re.DOTALL)


class Walk:
    """What has been found so far, and how many more bytes may be unpacked.

    Parameters
    ----------
    most_bytes : int
        Bytes that archives and encoded texts may unpack to, all together.
    """

    def __init__(self, *, most_bytes: int) -> None:
        self._left = most_bytes
        self._arrays: list[NamedArray] = []
        self._texts: list[NamedTexts] = []
        self._trees: list[Tree] = []
        self._unread: list[Unread] = []
        self._nodes: dict[str, NDArray[Any]] = {}

    def contents(self, *, size: int) -> Contents:
        """Return all that was found in files of ``size`` bytes."""
        plain = {array.path: array.values for array in self._arrays}
        trees, arrays = list(self._trees), list(self._arrays)
        for path, nodes in self._nodes.items():
            owner = path.removesuffix("nodes")
            answers = plain.get(owner + "values")
            sets = plain.get(owner + "raw_left_cat_bitsets")
            try:
                tree = tree_of_nodes(path, nodes, answers, sets)
            except (ReticentError, ValueError) as error:
                self.unread(path, str(error))
                tree = None
            if tree is not None:
                trees.append(tree)
            thresholds = (
                {"threshold", "num_threshold"} if tree is not None else frozenset()
            )
            arrays += [
                NamedArray(path=attribute(path, name), values=nodes[name])
                for name in nodes.dtype.names or ()
                if name not in thresholds
            ]
        trees, lost = with_own_columns(trees, plain)
        for path in lost:
            self.unread(
                path, "a tree of a bag that sees some columns, after a step in between"
            )
        self._note_sets(trees)
        return Contents(
            arrays=(*arrays, *by_column(trees)),
            texts=tuple(self._texts),
            trees=tuple(trees),
            unread=tuple(self._unread),
            size=size,
        )

    def _note_sets(self, trees: list[Tree]) -> None:
        """Note nodes that compare sets of categories in a form that is not known, once per place."""
        nodes: dict[str, int] = {}
        for tree in trees:
            if tree.not_followed:
                nodes[tree.place] = nodes.get(tree.place, 0) + tree.not_followed
        for place, count in nodes.items():
            self.unread(
                place,
                f"{count:,} nodes of trees compare sets of categories; what stands below them was not followed",
            )

    def unread(self, path: str, why: str) -> None:
        """Note that something could not be read."""
        self._unread.append(Unread(path=path, why=why))

    def array(self, path: str, values: NDArray[Any], *, layer: int = 0) -> None:
        """Keep an array, or what its fields hold."""
        kind = values.dtype.kind
        if values.size == 0:
            return
        if kind == "V" and values.dtype.names:
            flat = values.reshape(-1)
            self.texts(f"{path}.fields", values.dtype.names, layer=layer)
            nested = [n for n in values.dtype.names if flat[n].dtype.kind not in "biuf"]
            if not nested:
                self._nodes[path] = flat
                return
            for name in values.dtype.names:
                self.array(attribute(path, name), flat[name], layer=layer)
        elif kind in "biuf":
            self._arrays.append(NamedArray(path=path, values=values))
        elif kind == "c":
            for part, numbers in (("real", values.real), ("imag", values.imag)):
                self._arrays.append(NamedArray(path=f"{path}.{part}", values=numbers))
        elif kind in "mM":
            self._arrays.append(NamedArray(path=path, values=values.view(np.int64)))
        elif kind == "U":
            self.texts(path, values.reshape(-1).tolist(), layer=layer)
        else:
            self.blob(path, values.tobytes(), layer=layer + 1)

    def texts(self, path: str, values: Iterable[str], *, layer: int = 0) -> None:
        """Keep texts, and look into those that hold numbers, documents or encoded bytes."""
        texts = tuple(values)
        if not texts:
            return
        self._texts.append(NamedTexts(path=path, values=texts))
        columns = _rows_in(texts)
        if columns is not None:
            self._table(path, columns, layer)
            return
        numbers = [number for text in texts for number in _numbers(text)]
        if numbers:
            self.array(f"{path}.numbers", np.array(numbers))
        for at, text in enumerate(texts):
            if len(text) >= LONG:
                where = position(path, at) if len(texts) > 1 else path
                self._long_text(where, text, layer)

    def _table(self, path: str, columns: Columns, layer: int) -> None:
        """Keep the columns of a table that was written as text."""
        # Also without a column of numbers: its length tells how many rows there are.
        self._arrays.append(NamedArray(path=f"{path}.table", values=columns.numbers))
        if columns.names:
            self._texts.append(NamedTexts(path=f"{path}.names", values=columns.names))
        for at, column in enumerate(columns.texts):
            where = position(f"{path}.table.column", at)
            self._texts.append(NamedTexts(path=where, values=column))
            for text in column:
                if len(text) >= LONG:
                    self._long_text(where, text, layer)

    def _long_text(self, path: str, text: str, layer: int) -> None:
        if is_lightgbm(text):
            self._lightgbm(path, text)
            return
        if text.lstrip()[:1] in _DOCUMENT:
            try:
                self.value(path, json.loads(text), layer=layer)
                return
            except (ValueError, RecursionError):
                pass  # it begins like a document, and is none
        understood = self._lines(path, text, layer)
        for data in bytes_in_text(text):
            understood |= self.blob(path, data, layer=layer + 1, encoded=True)
        if not understood and len(text) >= OPAQUE and len(text.split()) == 1:
            self.unread(path, f"a text of {len(text):,} characters without a space")

    def _lines(self, path: str, text: str, layer: int) -> bool:
        """Keep the lines of a text as a table if they are one, or else every number in it; return whether there are any."""
        columns = columns_of_lines(text.splitlines())
        if columns is not None:
            self._table(path, columns, layer)
            return True
        numbers = numbers_in(text)
        if len(numbers) >= SHORTEST_LIST:
            self.array(f"{path}.numbers", numbers)
        return len(numbers) >= SHORTEST_LIST

    def _lightgbm(self, path: str, text: str) -> None:
        try:
            parts = list(lightgbm_parts(path, text))
        except (ReticentError, ValueError, KeyError, OverflowError) as error:
            self.unread(path, f"a model of LightGBM: {_one_line(error)}")
            return
        for part in parts:
            if isinstance(part, Tree):
                self._trees.append(part)
                for name, numbers in (("count", part.counts), ("value", part.values)):
                    self.array(attribute(part.path, name), numbers)
            else:
                self._arrays.append(part)

    def value(self, path: str, value: Any, *, depth: int = 0, layer: int = 0) -> None:
        """Keep the numbers and texts in a value that JSON or UBJSON can hold."""
        if depth > DEEPEST:
            self.unread(path, f"values are nested more than {DEEPEST} deep")
        elif isinstance(value, np.ndarray):
            self.array(path, value, layer=layer)
        elif isinstance(value, Mapping):
            if value.keys() >= BOOSTER_TREE:
                try:
                    self._trees.append(tree_of_booster(path, value))
                    value = {k: v for k, v in value.items() if k not in BOOSTER_TREE}
                except (ReticentError, ValueError, TypeError) as error:
                    self.unread(path, str(error))
                for name, entries in value.items():
                    self.value(
                        attribute(path, name), entries, depth=depth + 1, layer=layer
                    )
                return
            self.texts(f"{path}.keys", map(str, value), layer=layer)
            columns = columns_of_lists(value)
            if columns is not None:
                self._table(path, columns, layer)
            items = [(key(path, name), item) for name, item in value.items()]
            self._items(key(path, "*"), items, depth, layer)
        elif isinstance(value, list | tuple | set | frozenset):
            matrix = _matrix(value)
            if matrix is not None:
                self.array(path, matrix, layer=layer)
                return
            columns = columns_of_records(list(value))
            if columns is not None:
                self._table(path, columns, layer)
            items = [(position(path, at), item) for at, item in enumerate(value)]
            self._items(path, items, depth, layer)
        else:
            self._items(path, [(path, value)], depth, layer)

    def _items(
        self, path: str, items: list[tuple[str, Any]], depth: int, layer: int
    ) -> None:
        """Keep numbers as one array and texts as one list, and walk into what is neither."""
        values = [item for _, item in items]
        numbers = [_number(v) for v in values if isinstance(v, int | float)]
        if numbers:
            self.array(path, np.array(numbers))
        self.texts(path, [v for v in values if isinstance(v, str)], layer=layer)
        for where, item in items:
            if not isinstance(item, int | float | str) and item is not None:
                self.value(where, item, depth=depth + 1, layer=layer)

    def blob(
        self, path: str, data: bytes, *, layer: int = 0, encoded: bool = False
    ) -> bool:
        """Read bytes in the form that they begin like; return whether they were understood.

        Parameters
        ----------
        path : str
            Where they stand.
        data : bytes
            The bytes.
        layer : int
            How many times they were packed.
        encoded : bool
            Whether they were decoded from a text that may be no code at all, so that not understanding them is no finding.
        """
        if not data:
            return True
        if layer > MOST_LAYERS:
            self.unread(path, f"it is packed more than {MOST_LAYERS} times")
            return False
        self._left -= len(data) if layer else 0
        if self._left < 0:
            self.unread(path, "the file unpacks to more bytes than are allowed")
            return False
        try:
            understood = self._known_form(path, data, layer, quiet=encoded)
        except Exception as error:
            # A stranger's bytes can make any decoder raise anything; whatever it is, they were not read.
            if not encoded:
                self.unread(path, f"{type(error).__name__}: {_one_line(error)}")
            understood, encoded = False, True
        return understood or self._unknown_form(path, data, layer, quiet=encoded)

    def _known_form(self, path: str, data: bytes, layer: int, *, quiet: bool) -> bool:
        if data.startswith(b"PK\x03\x04") or _END in data[-LAST_OF_ARCHIVE:]:
            self._archive(path, data, layer)
        elif data.startswith(b"\x93NUMPY"):
            values, rest = npy_array(data)
            self.array(path, values, layer=layer)
            self.blob(path + ".rest", rest, layer=layer + 1)
        elif is_packed(data):
            content, rest = unpacked(data, max(self._left, 1))
            for field in header_of_gzip(data):
                self.blob(f"{path}:(header)", field, layer=layer + 1, encoded=True)
            self.blob(path, content, layer=layer + 1)
            self.blob(f"{path}:(behind)", rest, layer=layer + 1)
        elif data.startswith(_PARQUET) and data.endswith(_PARQUET):
            self._parquet(path, data, layer)
        elif _PICKLE.match(data) and len(data) <= MOST_PICKLED:
            return self._pickle(path, data, layer, quiet=quiet)
        elif data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data):
            self._safetensors(path, data, layer)
        elif data[:1] == b"{" and data[1:2] in (b"L", b"i", b"U", b"I", b"l", b"$", b"#"):  # fmt: skip
            value, rest = ubjson_value(data)
            self.value(path, value, layer=layer)
            self.blob(path + ".rest", rest, layer=layer + 1)
        else:
            return False
        return True

    def _unknown_form(self, path: str, data: bytes, layer: int, *, quiet: bool) -> bool:
        text = _as_text(data)
        if text is not None:
            self._plain_text(path, text, layer, quiet=quiet)
            return True
        longest = 0
        for values in floats_in(data):
            self._arrays.append(NamedArray(path=f"{path}.floats", values=values))
            longest = max(longest, values.nbytes)
        if longest >= len(data) // 2:
            return True
        if not quiet:
            self.unread(path, f"bytes of no known form, {len(data):,} bytes")
        return False

    def _plain_text(self, path: str, text: str, layer: int, *, quiet: bool) -> None:
        lines = text.splitlines() or [text]
        if text.lstrip()[:1] in _DOCUMENT:
            try:
                self.value(path, json.loads(text), layer=layer)
                return
            except (ValueError, RecursionError) as error:
                why = f"it begins like JSON: {_one_line(error)}"
            try:
                # One document per line is as usual as one per file.
                self.value(path, [json.loads(line) for line in lines if line.strip()], layer=layer)  # fmt: skip
                return
            except (ValueError, RecursionError):
                # What was decoded from a text, or is a field of four bytes, may begin like anything.
                if not quiet:
                    self.unread(path, why)
        columns = columns_of_lines(lines)
        if columns is not None:
            self._table(path, columns, layer)
            return
        self.texts(path, lines, layer=layer)
        # Encoded bytes may be broken into lines, and numbers may stand among marks.
        if len(lines) > 1:
            self._long_text(path, text, layer)

    def _pickle(self, path: str, data: bytes, layer: int, *, quiet: bool) -> bool:
        """Keep what stands among the operations of a pickle; none of them is carried out, so what they would make is not known."""
        try:
            numbers, texts, blobs, rest = pickled_values(data)
        except Exception as error:  # a stranger's bytes, which only begin like a pickle
            if data[:1] == b"\x80" and not quiet:
                self.unread(path, f"a pickle that is damaged: {_one_line(error)}")
            return False
        if numbers:
            self.array(path, np.array([_number(number) for number in numbers]))
        self.texts(path, texts, layer=layer)
        for at, part in enumerate(blobs):
            self.blob(position(path, at), part, layer=layer + 1, encoded=True)
        self.blob(f"{path}:(behind)", rest, layer=layer + 1)
        self.unread(path, f"a pickle, {len(data):,} bytes: whoever loads it runs what stands in it")  # fmt: skip
        return True

    def _parquet(self, path: str, data: bytes, layer: int) -> None:
        """Keep the cells of a Parquet file, and everything else that it holds."""
        import pandas as pd

        # They need this class.
        from reticent.product.contents._parquet import parquet_parts

        def part(place: str, content: bytes) -> None:
            self.blob(f"{path}:({place})", content, layer=layer + 1)

        def rows(place: str, frame: pd.DataFrame) -> None:
            cells = frame.astype(object).where(frame.notna(), None).map(plain)
            self.value(f"{path}:({place})", cells.to_dict("records"), layer=layer)

        # First of all what it claims is compared with what it has, so that nothing fills the memory.
        parquet_parts(Path(path), data, part, rows, self, most=max(self._left, 1))
        rows("cells", pd.read_parquet(io.BytesIO(data)))

    def _safetensors(self, path: str, data: bytes, layer: int) -> None:
        metadata, tensors, loose = safetensors_parts(data)
        self.value(f"{path}:metadata", metadata, layer=layer)
        self.texts(f"{path}:names", [name for name, _ in tensors], layer=layer)
        for name, values in tensors:
            where = f"{path}:"
            for part in name.split("."):  # as the layers of a module are called
                if part.isdecimal():
                    where = position(where, int(part))
                else:
                    where = attribute(where, part)
            self.array(where, values, layer=layer)
        for rest in loose:
            self.blob(f"{path}:(between tensors)", rest, layer=layer + 1)

    def _archive(self, path: str, data: bytes, layer: int) -> None:
        archive = Archive(data)
        for note in archive.comments():
            self.blob(f"{path}:(comment)", note, layer=layer + 1)
        for gap in archive.gaps():
            self.blob(f"{path}:(between members)", gap, layer=layer + 1)
        by_name = {member.name: member for member in archive.members}
        if by_name.keys() >= _SPARSE and self._sparse(path, archive, by_name):
            return
        named: set[str] = set()
        if SCHEMA in by_name:
            schema = self._member(path, archive, by_name[SCHEMA])
            if schema is not None:

                def file(where: str, name: str) -> None:
                    if name in named:
                        return  # an array that two objects share is stored once
                    named.add(name)
                    if name not in by_name:
                        self.unread(where, "the member that the schema names is absent")
                        return
                    content = self._member(where, archive, by_name[name])
                    self.blob(where, content or b"", layer=layer + 1)

                try:
                    walk_schema(self, f"{path}:", json.loads(schema), file)
                    named.add(SCHEMA)
                except (ValueError, RecursionError) as error:
                    self.unread(path, f"its schema: {_one_line(error)}")
        others = [
            m for m in archive.members if not (m.name in named and by_name[m.name] is m)
        ]
        self.texts(f"{path}:(members)", [m.name for m in archive.members], layer=layer)
        for at, member in enumerate(others):
            where = position(f"{path}:(member)", at)
            content = self._member(where, archive, member)
            self.blob(where, content or b"", layer=layer + 1)

    def _member(self, path: str, archive: Archive, member: Member) -> bytes | None:
        try:
            return archive.read(member, most=max(self._left, 0))
        except Exception as error:
            # Damage, encryption, an unknown compression, a bomb: each has its own exception.
            self.unread(path, f"{type(error).__name__}: {_one_line(error)}")
            return None

    def _sparse(
        self, path: str, archive: Archive, members: Mapping[str, Member]
    ) -> bool:
        """Keep a sparse matrix as one array with its zeros; return whether it could be written out."""
        from scipy.sparse import csr_matrix

        parts = {}
        for name in sorted(_SPARSE):
            content = self._member(path, archive, members[name])
            if content is None:
                return False
            parts[name] = npy_array(content)[0]
        rows, columns = (int(length) for length in parts["shape.npy"])
        pointers, transposed = parts["indptr.npy"], False
        if len(pointers) != rows + 1:
            rows, columns, transposed = columns, rows, True
        if len(pointers) != rows + 1 or rows * columns > MOST_CELLS:
            return False
        matrix = csr_matrix(
            (parts["data.npy"], parts["indices.npy"], pointers), shape=(rows, columns)
        )
        matrix.check_format(full_check=True)
        dense = matrix.toarray()
        self.array(path, dense.T if transposed else dense)
        return True


def plain(cell: Any) -> Any:
    """Return a cell as a document holds it: a number, a text, nothing, or the words of anything else."""
    return cell if isinstance(cell, str | int | float | type(None)) else str(cell)


def _number(value: float) -> float:
    """Return an integer of any size as one that fits into an array."""
    if isinstance(value, int) and abs(value) >= 2**63:
        try:
            return float(value)
        except OverflowError:
            return np.inf
    return value


def _matrix(value: Iterable[Any]) -> NDArray[Any] | None:
    """Return rows of numbers, all of one length, as a matrix; None if they are something else."""
    rows = list(value)
    if not rows or not all(isinstance(row, list | tuple) for row in rows):
        return None
    width = len(rows[0])
    if not width or not all(len(row) == width for row in rows):
        return None
    if not all(isinstance(cell, int | float) for row in rows for cell in row):
        return None
    return np.array([[_number(cell) for cell in row] for row in rows])


def _rows_in(texts: tuple[str, ...]) -> Columns | None:
    """Return the columns of texts that are lines of a table; None for words and names."""
    if not all(sum(map(text.count, ",;\t|")) >= SHORTEST_LIST - 1 for text in texts):
        return None
    return columns_of_lines(texts)


def _numbers(text: str) -> list[float]:
    """Return the numbers in a text that is a number, or a list of numbers."""
    words = [word for word in _SEPARATORS.split(text) if word]
    if not (len(words) == 1 or len(words) >= SHORTEST_LIST):
        return []
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _as_text(data: bytes) -> str | None:
    for form in ("utf-16",) if data[:2] in _UTF_16 else ("utf-8", "cp1252"):
        try:
            text = data.decode(form)
        except UnicodeDecodeError:
            continue
        # Small integers are valid text too; only a file without control characters is taken for one.
        if not re.search(r"[\x00-\x08\x0e-\x1f]", text):
            return text
    return None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
