"""Steps between numbers, against the sorted numbers of the oracle."""

from __future__ import annotations

import oracle
import pytest

from castsim.isa.formats import format_named
from castsim.running.value_casts import ordinal, ulp_distance

NARROW = [name for name in (*oracle.FLOATS, *oracle.INTS) if oracle.fmt(name).bits <= 8 and "@" not in name]


@pytest.mark.parametrize("name", [*NARROW, "f16", "bf16"])
def test_places_are_those_in_the_sorted_list(name: str) -> None:
    row = format_named(name)
    values = {code: oracle.decode(code, name) for code in oracle.codes(name)}
    numbers = {code: -value.magnitude if value.negative else value.magnitude
               for code, value in values.items() if value.kind == "finite"}  # fmt: skip
    place = {number: index for index, number in enumerate(sorted(set(numbers.values())))}
    origin = place.get(0, 0)
    for code, number in numbers.items():
        assert ordinal(code, row) == place[number] - origin, hex(code)
    for code, value in values.items():
        if value.kind == "inf":
            edge = min(place.values()) - 1 if value.negative else max(place.values()) + 1
            assert ordinal(code, row) == edge - origin
        elif value.kind == "nan":
            assert ordinal(code, row) is None


def test_wide_formats() -> None:
    f32, f64, i64 = map(format_named, ("f32", "f64", "i64"))
    assert ulp_distance(0x3F800000, 0x3F800001, f32) == 1
    assert ulp_distance(0x00000001, 0x80000001, f32) == -2
    assert ulp_distance(0x80000000, 0x00000000, f32) == 0
    assert ulp_distance(0x7F7FFFFF, 0x7F800000, f32) == 1
    assert ulp_distance(0x3FF0 << 48, 0x4000 << 48, f64) == 1 << 52
    assert ulp_distance((1 << 64) - 1, 1, i64) == 2  # from -1 to 1


def test_nan() -> None:
    f16 = format_named("f16")
    assert ulp_distance(0x7E00, 0xFE01, f16) == 0
    assert ulp_distance(0x7E00, 0x3C00, f16) is None
    assert ulp_distance(0x7C00, 0x7E00, f16) is None
