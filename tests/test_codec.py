"""JSON by types: what is written, what is accepted and what is published agree."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent._codec import NOT_WRITTEN, decode, encode, schema_of
from reticent.errors import InvalidInput


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    share: float
    maybe: float | None = None

    def __post_init__(self):
        if self.share < 0:
            raise InvalidInput(f"the share is {self.share}; pass 0 or more.")


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    count: int
    good: bool
    colour: Colour
    inner: tuple[Inner, ...]
    by_name: Mapping[str, float]
    own: tuple[object, ...] = field(default=(), compare=False, metadata=NOT_WRITTEN)


WHOLE = Outer(
    name="x",
    count=3,
    good=True,
    colour=Colour.BLUE,
    inner=(Inner(share=0.5), Inner(share=math.inf, maybe=-math.inf)),
    by_name={"a": 1.5},
)


def schema() -> dict:
    definitions: dict = {}
    return {**schema_of(Outer, definitions), "$defs": definitions}


def test_what_was_written_is_read_back():
    written = encode(WHOLE)
    assert decode(Outer, json.loads(json.dumps(written, allow_nan=False))) == WHOLE
    jsonschema.validate(written, schema())
    assert written["inner"][1] == {"share": "Infinity", "maybe": "-Infinity"}
    assert "own" not in written


def test_none_and_infinity_are_told_apart():
    for value in (None, math.inf, -math.inf, 0.0):
        again = decode(Inner, encode(Inner(share=1.0, maybe=value)))
        assert again.maybe == value


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_float_survives(value):
    text = json.dumps(encode({"a": value}), allow_nan=False)
    again = decode(Mapping[str, float], json.loads(text))["a"]
    assert again == value or (math.isnan(again) and math.isnan(value))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda c: c.update(count=1.5), r"at count: 1\.5 is not a whole number"),
        (lambda c: c.update(count=True), "at count: True is not a whole number"),
        (lambda c: c.update(good=1), "at good: 1 is not true or false"),
        (lambda c: c.update(name=None), "at name: None is not a text"),
        (lambda c: c.update(colour="green"), "at colour: 'green' is not one of red, blue"),
        (lambda c: c.update(inner={}), "at inner: {} is not a list"),
        (lambda c: c["inner"][1].update(share="many"), "at inner/1/share: 'many' is not a number"),
        (lambda c: c["inner"][1].update(share=None), "at inner/1/share: None is not a number"),
        (lambda c: c["inner"][0].pop("share"), "at inner/0: the key 'share' is missing there"),
        (lambda c: c["inner"][0].update(own=1), "at inner/0: the key 'own' is not known there"),
        (lambda c: c.update(by_name=[]), r"at by_name: \[\] is not an object"),
        (lambda c: c.update(own=[]), "at the top: the key 'own' is not known there"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_by_the_schema_too(spoil, why):
    content = encode(WHOLE)
    spoil(content)
    with pytest.raises(
        InvalidInput, match=f"does not obey its schema {why}; it was changed"
    ):
        decode(Outer, content)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, schema())


def test_a_value_that_makes_no_sense_is_refused_with_its_place():
    content = encode(replace(WHOLE, by_name={}))
    content["inner"][1]["share"] = -1
    with pytest.raises(InvalidInput, match=r"at inner/1: the share is -1\.0; pass 0"):
        decode(Outer, content)


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(schema())
