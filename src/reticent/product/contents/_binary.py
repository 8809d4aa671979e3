"""Decode the binary forms that products consist of: NumPy arrays, safetensors, UBJSON. Nothing is trusted, and nothing is executed."""

import io
import json
import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["floats_in", "npy_array", "safetensors_parts", "ubjson_value"]

# A record without a field, or text without a letter, takes no bytes, so any number of them fits into an empty file.
LEAST_ITEM = 1
# Nested containers of a booster are fewer than ten; Python's own limit is near 1,000.
DEEPEST = 100
# Numbers of this size are what people and models write. Random bytes, read as floats, are rarely among them: 3 % of doubles and
# 20 % of singles. Neither are letters, which are near 1e20.
SMALLEST, LARGEST = 1e-6, 1e9
# Values that are judged together; enough to tell floats from other bytes without doubt, few enough to find a short run.
RUN = 64
MOSTLY, LEAST_NONZERO = 0.98, 0.25  # of the values of an array that is nothing else
LEAST_PLAUSIBLE = 0.9  # a few zeros, NaN or extremes among real numbers are usual
_DTYPES = {
    **{"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "BOOL": "?"},
    **{"I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"},
    **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"},
}
_UBJSON = {
    **{"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8"},
    **{"d": ">f4", "D": ">f8"},
}


def npy_array(data: bytes) -> tuple[NDArray[Any], bytes]:
    """Return the array of a ``.npy`` file, and the bytes that follow it.

    The size that the header claims is compared with the bytes that are there before anything is allocated.

    Raises
    ------
    ValueError
        If the file is damaged, or holds objects, which only pickle could read.
    """
    handle = io.BytesIO(data)
    version = np.lib.format.read_magic(handle)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(handle)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(handle)
    else:
        raise ValueError(f"version {version} of the array format is not known")
    if dtype.hasobject:
        raise ValueError("the array holds objects, which only pickle could read")
    count = math.prod(shape)
    start, size = handle.tell(), count * dtype.itemsize
    if dtype.itemsize < LEAST_ITEM or size > len(data) - start:
        raise ValueError(
            f"the array claims {count:,} values, but {len(data) - start:,} bytes follow"
        )
    flat = np.frombuffer(data, dtype=dtype, count=count, offset=start)
    order = "F" if by_column else "C"
    return flat.reshape(shape, order=order), data[start + size :]  # type: ignore[call-overload]


def safetensors_parts(
    data: bytes,
) -> tuple[Any, list[tuple[str, NDArray[Any]]], list[bytes]]:
    """Return the metadata, the named tensors and the bytes of no tensor of a safetensors file.

    Raises
    ------
    ValueError
        If the header is damaged or points outside the file.
    """
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ValueError("the header is longer than the file")
    header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError("the header names no tensors")
    body = data[8 + length :]
    metadata = header.pop("__metadata__", {})
    tensors, spans = [], []
    for name, entry in header.items():
        start, end = (int(at) for at in entry["data_offsets"])
        shape = tuple(int(length) for length in entry["shape"])
        dtype = np.dtype(_DTYPES.get(entry["dtype"], "u1"))
        if entry["dtype"] not in _DTYPES:
            shape = (end - start,)
        if not 0 <= start <= end <= len(body) or min(shape, default=0) < 0:
            raise ValueError("a tensor lies outside the file")
        if math.prod(shape) * dtype.itemsize != end - start:
            raise ValueError("the shape of a tensor does not fit its bytes")
        values = np.frombuffer(body[start:end], dtype=dtype).reshape(shape)
        if entry["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        tensors.append((str(name), values))
        spans.append((start, end))
    return metadata, tensors, list(_uncovered(body, spans))


def _uncovered(data: bytes, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    at = 0
    for start, end in sorted(spans):
        if start > at:
            yield data[at:start]
        at = max(at, end)
    if at < len(data):
        yield data[at:]


def ubjson_value(data: bytes) -> tuple[Any, bytes]:
    r"""Return the value of a UBJSON document, and the bytes that follow it.

    This is the form in which XGBoost keeps boosters. Typed lists of numbers become arrays.

    Raises
    ------
    ValueError
        If the document is damaged, or nests too deeply.

    References
    ----------
    .. [1] Universal Binary JSON Specification, draft 12, https://ubjson.org.

    Examples
    --------
    >>> ubjson_value(b"{U\x03agei\x2aU\x04nameSU\x03Ida}")
    ({'age': 42, 'name': 'Ida'}, b'')
    """
    decoder = _Ubjson(data)
    value = decoder.value(decoder.marker(), 0)
    return value, data[decoder.at :]


class _Ubjson:
    """A place in a UBJSON document, and the verbs to read on from it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise ValueError("the document ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def marker(self) -> str:
        mark = "N"
        while mark == "N":  # means nothing, and may stand anywhere
            mark = self.take(1).decode("latin-1")
        return mark

    def number(self, mark: str) -> Any:
        dtype = np.dtype(_UBJSON[mark])
        return np.frombuffer(self.take(dtype.itemsize), dtype=dtype)[0].item()

    def length(self) -> int:
        mark = self.marker()
        if mark not in "iUIlL":
            raise ValueError("a length is no integer")
        return int(self.number(mark))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, mark: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError(f"containers are nested more than {DEEPEST} deep")
        if mark in _UBJSON:
            return self.number(mark)
        if mark == "[":
            return self.list(depth)
        if mark == "{":
            return self.mapping(depth)
        if mark in "SH":
            return self.text()
        if mark == "C":
            return self.take(1).decode("latin-1")
        if mark in "ZTF":
            return {"Z": None, "T": True, "F": False}[mark]
        raise ValueError(f"{mark!r} begins no value")

    def optimised(self) -> tuple[str | None, int | None]:
        """Return the type and the number of the values of a container, where it says them in advance."""
        mark, count, upcoming = None, None, self.marker()
        if upcoming == "$":
            mark, upcoming = self.take(1).decode("latin-1"), self.marker()
            if upcoming != "#":
                raise ValueError("a container says the type of its values but not their number")  # fmt: skip
        if upcoming == "#":
            count = self.length()
        else:
            self.at -= 1
        return mark, count

    def list(self, depth: int) -> Any:
        mark, count = self.optimised()
        if mark is not None and mark in _UBJSON and count is not None:
            dtype = np.dtype(_UBJSON[mark])
            return np.frombuffer(self.take(count * dtype.itemsize), dtype=dtype)
        values: list[Any] = []
        while count is None or len(values) < count:
            upcoming = mark or self.marker()
            if count is None and upcoming == "]":
                break
            if mark is not None and mark in "ZTF":
                raise ValueError("a list of values that take no bytes has any length")
            values.append(self.value(upcoming, depth + 1))
        return values

    def mapping(self, depth: int) -> dict[str, Any]:
        mark, count = self.optimised()
        values: dict[str, Any] = {}
        read = 0
        while count is None or read < count:
            if count is None:
                if self.marker() == "}":
                    break
                self.at -= 1
            name = self.text()
            values[name] = self.value(mark or self.marker(), depth + 1)
            read += 1
        return values


def floats_in(data: bytes) -> Iterator[NDArray[Any]]:
    """Yield runs of floats in bytes of unknown form, in double and in single precision, at every offset, in either order of bytes.

    A run is taken for floats if nine in ten of its values have a usual size, and all of the bytes if nearly all have.
    """
    for dtype in map(np.dtype, ("<f8", "<f4", ">f8", ">f4")):
        for offset in range(dtype.itemsize):
            count = (len(data) - offset) // dtype.itemsize
            if count < 1:
                continue
            values = np.frombuffer(data, dtype=dtype, count=count, offset=offset)
            with np.errstate(invalid="ignore"):  # signalling NaN among random bytes
                size = np.abs(values)
                plausible = ((size > SMALLEST) & (size < LARGEST)) | (size == 0)
            if plausible.mean() > MOSTLY and (size != 0).mean() > LEAST_NONZERO:
                yield values  # all of one array, with its zeros in their places
                continue
            # Zeros prove nothing: a file padded with them holds no numbers.
            runs = np.add.reduceat(plausible, np.arange(0, count, RUN))
            nonzero = np.add.reduceat(size != 0, np.arange(0, count, RUN))
            lengths = np.minimum(RUN, count - RUN * np.arange(len(runs)))
            kept = (runs >= LEAST_PLAUSIBLE * lengths) & (2 * nonzero >= lengths)
            if kept.any():
                yield values[np.repeat(kept, lengths)]
