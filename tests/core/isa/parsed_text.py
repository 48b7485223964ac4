"""Bodies of `.pto` functions, read or refused."""

import pytest
from kit.pto_text import compact, function

from castsim.isa.errors import ReadError
from castsim.isa.pto.program import Operation, ScalarType, TileType
from castsim.isa.pto.pto_parser import parse

INDEX, I1, I32, F32 = (ScalarType(name) for name in ("index", "i1", "i32", "f32"))
TILE = TileType("vec", "f32", 16, 64, 16, 64)
T = compact("f32", 16, 64)


def body_of(body: str, arguments: str = "") -> tuple[Operation, ...]:
    return parse(function(body, arguments)).functions[0].body[:-1]


def last_of(body: str, arguments: str = "") -> Operation:
    return body_of(body, arguments)[-1]


def refusal(body: str, arguments: str = "") -> ReadError:
    with pytest.raises(ReadError) as caught:
        parse(function(body, arguments))
    assert caught.value.span.line >= 1  # every refusal of a text names its place
    return caught.value
