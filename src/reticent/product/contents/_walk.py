"""Walk through bytes and values of any form, and collect every number and every text in them."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Mapping
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
from reticent.product.contents._schema import walk_schema
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

__all__ = ["Walk"]

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
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]+={0,2}\s*")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_SEPARATORS = re.compile(r"[\s,;|:\[\](){}]+")
_SPARSE = frozenset({"data.npy", "indices.npy", "indptr.npy", "shape.npy"})
_END = b"PK\x05\x06"
_GZIP, _ZLIB = b"\x1f\x8b", (b"\x78\x01", b"\x78\x9c", b"\x78\xda")


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
        numbers = [number for text in texts for number in _numbers(text)]
        if numbers:
            self.array(f"{path}.numbers", np.array(numbers))
        for at, text in enumerate(texts):
            if len(text) >= LONG:
                where = position(path, at) if len(texts) > 1 else path
                self._long_text(where, text, layer)

    def _long_text(self, path: str, text: str, layer: int) -> None:
        if is_lightgbm(text):
            self._lightgbm(path, text)
        elif text.lstrip()[:1] in ("{", "["):
            try:
                self.value(path, json.loads(text), layer=layer)
            except (ValueError, RecursionError):
                return  # it begins like a document, and is none; as a text it is kept already
        elif _HEX.fullmatch(text):
            self.blob(path, bytes.fromhex(text), layer=layer + 1, encoded=True)
        elif _BASE64.fullmatch(text):
            packed = "".join(text.split()).rstrip("=")
            packed += "=" * (-len(packed) % 4)
            try:
                data = base64.b64decode(packed, altchars=_altchars(packed))
            except (ValueError, binascii.Error):
                return
            self.blob(path, data, layer=layer + 1, encoded=True)

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
            items = [(key(path, name), item) for name, item in value.items()]
            self._items(key(path, "*"), items, depth, layer)
        elif isinstance(value, list | tuple | set | frozenset):
            matrix = _matrix(value)
            if matrix is not None:
                self.array(path, matrix, layer=layer)
                return
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
    ) -> None:
        """Read bytes in the form that they begin like.

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
            return
        if layer > MOST_LAYERS:
            self.unread(path, f"it is packed more than {MOST_LAYERS} times")
            return
        self._left -= len(data) if layer else 0
        if self._left < 0:
            self.unread(path, "the file unpacks to more bytes than are allowed")
            return
        try:
            understood = self._known_form(path, data, layer)
        except Exception as error:
            # A stranger's bytes can make any decoder raise anything; whatever it is, they were not read.
            if not encoded:
                self.unread(path, f"{type(error).__name__}: {_one_line(error)}")
            understood, encoded = False, True
        if not understood:
            self._unknown_form(path, data, layer, quiet=encoded)

    def _known_form(self, path: str, data: bytes, layer: int) -> bool:
        if data.startswith(b"PK\x03\x04") or _END in data[-LAST_OF_ARCHIVE:]:
            self._archive(path, data, layer)
        elif data.startswith(b"\x93NUMPY"):
            values, rest = npy_array(data)
            self.array(path, values, layer=layer)
            self.blob(path + ".rest", rest, layer=layer + 1)
        elif data.startswith(_GZIP) or data.startswith(_ZLIB):
            self.blob(path, self._inflated(data), layer=layer + 1)
        elif data[8:9] == b"{" and int.from_bytes(data[:8], "little") <= len(data):
            self._safetensors(path, data, layer)
        elif data[:1] == b"{" and data[1:2] in (b"L", b"i", b"U", b"I", b"l", b"$", b"#"):  # fmt: skip
            value, rest = ubjson_value(data)
            self.value(path, value, layer=layer)
            self.blob(path + ".rest", rest, layer=layer + 1)
        else:
            return False
        return True

    def _unknown_form(self, path: str, data: bytes, layer: int, *, quiet: bool) -> None:
        text = _as_text(data)
        if text is not None:
            if text.lstrip()[:1] in ("{", "["):
                try:
                    self.value(path, json.loads(text), layer=layer)
                    return
                except (ValueError, RecursionError) as error:
                    self.unread(path, f"it begins like JSON: {_one_line(error)}")
            self.texts(path, text.splitlines() or [text], layer=layer)
            return
        longest = 0
        for values in floats_in(data):
            self._arrays.append(NamedArray(path=f"{path}.floats", values=values))
            longest = max(longest, values.nbytes)
        if longest < len(data) // 2 and not quiet:
            form = "a pickle" if data[:1] == b"\x80" else "bytes of no known form"
            self.unread(path, f"{form}, {len(data):,} bytes")

    def _inflated(self, data: bytes) -> bytes:
        inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
        unpacked = inflater.decompress(data, max(self._left, 1))
        if inflater.unconsumed_tail:
            raise ValueError("it unpacks to more bytes than are allowed")
        return unpacked + inflater.unused_data

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
        self.texts(f"{path}:(members)", [m.name for m in others], layer=layer)
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
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # Small integers are valid text too; only a file without control characters is taken for one.
    return None if re.search(r"[\x00-\x08\x0e-\x1f]", text) else text


def _altchars(packed: str) -> bytes | None:
    return b"-_" if "-" in packed or "_" in packed else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
