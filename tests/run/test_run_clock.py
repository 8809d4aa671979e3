"""The time that is written down is the clock's, unless it is fixed."""

import re

import pytest

from reticent.run import now


def test_the_time_is_that_of_the_clock(monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert re.fullmatch(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", now())
    assert now() > "2026-01-01"


def test_a_fixed_time_can_be_repeated(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert now() == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize("text", ["", "-1", "soon", "9" * 400, "²"])
def test_what_is_no_time_is_ignored(monkeypatch, text):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    assert now() > "2026-01-01"
