"""JSON derived from dataclasses: what each kind of value becomes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import Path

import numpy as np
import pytest

from castsim.isa.formats import format_named
from castsim.reports.documents import document, json_of, key


class Colour(Enum):
    RED = 3


class Word(StrEnum):
    LONG = "a long one"


@dataclass(frozen=True, slots=True)
class Inner:
    start: int = field(metadata=key("first_byte"))
    causes: dict[Word, int]


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    parts: tuple[Inner, ...]
    missing: None = None

    @property
    def count(self) -> int:
        return len(self.parts)


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


def test_fields_keep_their_order_and_take_the_names_given():
    assert json.dumps(document(OUTER)) == (
        '{"name": "x", "parts": [{"first_byte": 4, "causes": {"a long one": 7}}], "missing": null}'
    )
    assert json.dumps(document(OUTER, "count", "name", name="title")) == '{"count": 1, "title": "x"}'
    assert list(document(OUTER, name="title")) == ["title", "parts", "missing"]


@pytest.mark.parametrize(("only", "named"), [(("nmae",), {}), ((), {"nmae": "title"}), (("name",), {"count": "n"})])
def test_a_name_that_is_not_shown_is_refused(only, named):
    with pytest.raises(TypeError, match="shows nothing named"):
        document(OUTER, *only, **named)


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form of a set"):
        json_of({1, 2})
