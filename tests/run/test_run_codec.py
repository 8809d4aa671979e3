"""Typed values to bytes and back."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from reticent.run import pack, unpack


class Side(StrEnum):
    IN = "in"
    OUT = "out"


@dataclass(frozen=True)
class Inner:
    values: NDArray[np.float64]
    side: Side


@dataclass(frozen=True)
class Other:
    number: int


@dataclass(frozen=True, kw_only=True)
class Everything:
    whole: int
    real: float
    truth: bool
    text: str
    maybe: float | None
    either: int | str | None
    one_of: Inner | Other
    word: Literal["higher", "lower"]
    many: tuple[Inner, ...]
    pair: tuple[int, str]
    listed: list[float]
    sequence: Sequence[int]
    named: Mapping[str, NDArray[Any]]
    counts: dict[str, int]
    nested: dict[str, tuple[float | None, ...]]
    length: int = field(init=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "length", len(self.text))


def same(a: Any, b: Any) -> bool:
    """Compare to the last bit and the type, with NaN equal to NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (
            a.dtype == b.dtype and a.shape == b.shape and (a.tobytes() == b.tobytes())
        )
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (
            a == b and math.copysign(1, a) == math.copysign(1, b)
        )
    return bool(a == b)


arrays = hnp.arrays(
    dtype=st.one_of(
        hnp.floating_dtypes(),
        hnp.integer_dtypes(),
        hnp.boolean_dtypes(),
        hnp.unicode_string_dtypes(min_len=1),
        hnp.datetime64_dtypes(),
        hnp.complex_number_dtypes(),
    ),
    shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
floats = st.floats()
inners = st.builds(
    Inner,
    values=hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=2)),
    side=st.sampled_from(Side),
)
everything = st.builds(
    Everything,
    whole=st.integers(),
    real=floats,
    truth=st.booleans(),
    text=st.text(st.characters()),
    maybe=st.none() | floats,
    either=st.none() | st.integers() | st.text(),
    one_of=inners | st.builds(Other, st.integers()),
    word=st.sampled_from(["higher", "lower"]),
    many=st.lists(inners, max_size=2).map(tuple),
    pair=st.tuples(st.integers(), st.text()),
    listed=st.lists(floats, max_size=3),
    sequence=st.lists(st.integers(), max_size=3).map(tuple),
    named=st.dictionaries(st.text(), arrays, max_size=2),
    counts=st.dictionaries(st.text(), st.integers(), max_size=3),
    nested=st.dictionaries(
        st.text(), st.lists(st.none() | floats, max_size=3).map(tuple), max_size=2
    ),
)


@given(everything)
def test_everything_comes_back_as_it_was(value):
    assert same(unpack(Everything, pack(value)), value)


@given(arrays)
def test_arrays_come_back_as_they_were(array):
    assert same(unpack(NDArray[Any], pack(array)), array)
    assert same(unpack(dict[str, NDArray[Any]], pack({"a": array})), {"a": array})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (float, math.nan),
        (float, -math.inf),
        (tuple[float, ...], (0.1, math.inf, -0.0, 5e-324)),
        (int, 10**40),
        (type(None), None),
        (bool, True),
        (list[str], ["a", "\ud800"]),
        (tuple[int, str], (1, "a")),
        (int | None, None),
        (Side, Side.OUT),
        (NDArray[np.float64], np.array([math.nan, math.inf, -0.0])),
        (NDArray[np.int64], np.asfortranarray(np.arange(6).reshape(2, 3))),
        (tuple[tuple[int, ...], ...], ((1, 2), ())),
    ],
)
def test_values_of_plain_types_come_back(kind, value):
    assert same(unpack(kind, pack(value)), value)


def test_numbers_of_numpy_come_back_as_numbers():
    assert same(unpack(float, pack(np.float64(0.1))), 0.1)
    assert same(unpack(int, pack(np.int64(3))), 3)
    assert same(unpack(bool, pack(np.True_)), True)


def test_whole_numbers_serve_as_real_ones_but_not_the_other_way_round():
    assert same(unpack(float, pack(2)), 2.0)
    with pytest.raises(TypeError, match="type int, but number was stored"):
        unpack(int, pack(2.0))
    with pytest.raises(TypeError, match="type int, but truth value was stored"):
        unpack(int, pack(True))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (str, 1),
        (Other, Inner(np.zeros(1), Side.IN)),
        (Side, "sideways"),
        (tuple[int, int], (1, 2, 3)),
        (tuple[str, ...], (1,)),
        (dict[str, int], {"a": "b"}),
        (NDArray[np.int64], np.zeros(2)),
        (NDArray[np.floating[Any]], np.zeros(2, int)),
        (NDArray[np.float64], np.array(["a"])),
        (Literal["a"], "b"),
        (float, (1.0,)),
        (Protocol, 1),
    ],
)
def test_a_value_of_another_type_is_refused(kind, value):
    with pytest.raises(TypeError, match="should be of the type"):
        unpack(kind, pack(value))


@pytest.mark.parametrize("data", [b"", b"rubbish", pack(1)[:-1], pack(1)[:40]])
def test_what_was_not_packed_is_refused(data):
    with pytest.raises(ValueError, match="packed value"):
        unpack(int, data)


@pytest.mark.parametrize("cut", range(1, 200, 7))
def test_a_truncated_array_is_refused(cut):
    data = pack(np.arange(9.0))
    with pytest.raises(ValueError, match=r"packed value|parts"):
        unpack(NDArray[np.float64], data[:-cut])


class Speaks(Protocol):
    def speak(self) -> str: ...


@dataclass(frozen=True)
class HasProtocol:
    speaker: Speaks


@dataclass(frozen=True)
class HasAnything:
    thing: Any


@dataclass(frozen=True)
class HasObjects:
    things: NDArray[Any]


@dataclass(frozen=True)
class HasAmbiguity:
    thing: Side | str


@dataclass(frozen=True)
class HasFunctions:
    functions: tuple[Speaks, ...]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (HasProtocol(1), r"HasProtocol\.speaker is declared as .*Speaks, which does"),
        (HasAnything(1), r"HasAnything\.thing is declared as typing\.Any, which does"),
        (HasFunctions(()), r"HasFunctions\.functions is declared as .*Speaks"),
        (HasObjects(np.array([1, "a"], object)), "things is an array of objects"),
        (HasAmbiguity("a"), "cannot be told apart"),
        (Other("three"), r"Other\.number is declared as int but holds .* str"),
        (Inner(np.array(["a"]), Side.IN), r"Inner\.values is declared as"),
        ((1, {1, 2}), r"the value\[1\] is of the type set, which cannot be stored"),
        ({1: 2}, "keys are not all text"),
        (np.ma.masked_array([1], [True]), "MaskedArray"),
        (len, "cannot be stored"),
    ],
)
def test_what_could_not_be_read_again_is_not_packed(value, sentence):
    with pytest.raises(TypeError, match=sentence):
        pack(value)
