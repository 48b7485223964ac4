"""JSON of classes of keys: what each kind of value becomes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from castsim.isa.formats import format_named
from castsim.reports.documents import ABSENT, Keys, json_of, says


class Colour(Enum):
    RED = 3


class Word(StrEnum):
    LONG = "a long one"


@dataclass(frozen=True, slots=True)
class Inner:
    start: int
    causes: dict[Word, int]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    parts: tuple[Inner, ...]
    missing: None = None

    @property
    def count(self) -> int:
        return len(self.parts)


class InnerKeys(Keys):
    first_byte: int = says("Where it starts.", "start")
    causes: dict[str, int] = says("Cycles by cause.")


class OuterKeys(Keys):
    title: str = says("Its name.", "name")
    parts: list[InnerKeys] = says("What it has.")
    note: int = says("What nothing says.", lambda _: ABSENT, optional=True)
    count: int = says("How many parts.")


OUTER = Outer("x", (Inner(4, {Word.LONG: 7}),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "true"),
        (Colour.RED, "3"),
        (Word.LONG, '"a long one"'),
        (Decimal("16.36"), "16.36"),
        (Decimal("128.0"), "128"),
        (b"\x01\xff", '"01ff"'),
        (Path("a") / "b", '"a/b"'),
        (format_named("f16"), '"f16"'),
        ((1, (2, None)), "[1, [2, null]]"),
        ({1: Word.LONG}, '{"1": "a long one"}'),
    ],
)
def test_values(value, text):
    assert json.dumps(json_of(value)) == text


def test_keys_keep_their_order_and_take_their_values_where_they_say():
    assert json.dumps(OuterKeys.of(OUTER)) == (
        '{"title": "x", "parts": [{"first_byte": 4, "causes": {"a long one": 7}}], "count": 1}'
    )
    assert OuterKeys.of(OUTER, note=3, count=2) == {**OuterKeys.of(OUTER), "count": 2, "note": 3}


@pytest.mark.parametrize("given", [{"nmae": "x"}, {"name": "x"}])
def test_a_key_that_a_document_does_not_have_is_refused(given):
    with pytest.raises(TypeError, match="OuterKeys has no key named"):
        OuterKeys.of(OUTER, **given)


def test_a_key_without_a_value_is_refused():
    with pytest.raises(TypeError, match="no value for 'parts' of OuterKeys in a SimpleNamespace"):
        OuterKeys.of(SimpleNamespace(name="x"))


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form of a set"):
        json_of({1, 2})
