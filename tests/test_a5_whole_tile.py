"""The proof that a tile may be converted in one call: it holds for every kernel, and fails for every broken one."""

from __future__ import annotations

from dataclasses import replace

import oracle_a5
import pytest
from a5_cases import Shape, lowerer, make_cast

from castsim.execution.tree import elements
from castsim.isa.modes import Rounding
from castsim.machines.vector_function.function_operations import (
    Computing,
    ConvertLanes,
    CountDown,
    Load,
    Nest,
    StoreLanes,
    VectorFunction,
    mnemonic,
    of_every_trip,
    profile,
)
from castsim.machines.vector_function.values import whole_tile

PADDED = Shape(3, 320, 3, 290)
FULL = Shape(3, 320, 3, 320)


def function_of(src: str, dst: str, shape: Shape, **options: int | str) -> VectorFunction:
    body = lowerer(**options).cast(make_cast(src, dst, shape)).body
    return next(item for item in elements(body) if isinstance(item, VectorFunction))


def proven(src: str, dst: str, shape: Shape, function: VectorFunction) -> bool:
    cast = make_cast(src, dst, shape)
    return whole_tile(function, cast.src, cast.dst) is not None


def with_main(function: VectorFunction, **change: object) -> VectorFunction:
    return replace(function, nests=(*function.nests[:-1], replace(function.nests[-1], **change)))


def with_trip(function: VectorFunction, kind: type, **change: object) -> VectorFunction:
    """Change the first operation of a kind in the trip."""
    trip = list(function.nests[-1].trip)
    index = next(index for index, operation in enumerate(trip) if isinstance(operation, kind))
    trip[index] = replace(trip[index], **change)
    return with_main(function, trip=tuple(trip))


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL)
def test_what_breaks_a_function_breaks_its_proof(src: str, dst: str) -> None:
    for shape in (FULL, PADDED):
        function = function_of(src, dst, shape)
        main: Nest = function.nests[-1]
        assert proven(src, dst, shape, function)
        if main.count % main.elements:  # whole trips have no room for more
            counters = {name: value + 2 for name, value in main.counters.items()}
            assert not proven(src, dst, shape, with_main(function, counters=counters)), "a tail too long"
        counters = {name: max(value - 2, 0) for name, value in main.counters.items()}
        assert not proven(src, dst, shape, with_main(function, counters=counters)), "a tail too short"
        assert not proven(src, dst, shape, with_main(function, trips=main.trips - 1))
        assert not proven(src, dst, shape, with_main(function, trips=main.trips + 1))
        assert not proven(src, dst, shape, with_main(function, destination_trip=main.destination_trip + 32))
        assert not proven(src, dst, shape, with_main(function, source_trip=main.source_trip * 2))
        assert not proven(src, dst, shape, replace(function, source=function.source + 32))
        assert not proven(src, dst, shape, with_trip(function, StoreLanes, offset=32))
        load = next(item for item in main.trip if isinstance(item, Load))
        if len(load.results) == 2:
            assert not proven(src, dst, shape, with_trip(function, Load, results=load.results[::-1])), "swapped halves"
        else:
            other = "UNPK_B16" if load.distribution == "NORM" else "NORM"
            assert not proven(src, dst, shape, with_trip(function, Load, distribution=other))


def test_rows_must_move_by_the_pitch_of_the_tiles() -> None:
    function = function_of("f32", "f16", PADDED)
    for change in ({"source_row": 1248}, {"destination_row": 672}, {"rows": 2}, {"row_loop": False}):
        assert not proven("f32", "f16", PADDED, with_main(function, **change))


def test_both_halves_must_go_through_the_same_steps() -> None:
    function = function_of("f32", "f16", PADDED)
    first = next(item for item in function.nests[-1].trip if isinstance(item, ConvertLanes))
    other = replace(first.policy, rounding=Rounding.FLOOR)
    assert not proven("f32", "f16", PADDED, with_trip(function, ConvertLanes, policy=other))
    assert not proven("f32", "f16", PADDED, with_trip(function, ConvertLanes, part="PART_EVEN"))


def test_a_zero_fill_must_be_one() -> None:
    function = function_of("bf16", "e2m1", PADDED)
    fill, main = function.nests
    assert proven("bf16", "e2m1", PADDED, function)
    assert not proven("bf16", "e2m1", PADDED, replace(function, nests=(replace(fill, trips=fill.trips - 1), main)))
    noise = replace(fill, trip=(StoreLanes("index", "every", "NORM_B8"),))
    assert not proven("bf16", "e2m1", PADDED, replace(function, nests=(noise, main)))


def test_a_take_of_the_wrong_size_is_found() -> None:
    function = function_of("f32", "e4m3fn", FULL)
    trip = tuple(
        replace(item, take=256) if isinstance(item, CountDown) and item.take == 64 and item.width == 8 else item
        for item in function.nests[-1].trip
    )
    assert not proven("f32", "e4m3fn", FULL, with_main(function, trip=trip))


# ------------------------------------------------------------------------------------------- what engines read

PORT = ("vcvt", "vtrc", "vintlv", "punpack")


def port_cycles(src: str, dst: str, shape: Shape) -> int:
    function = function_of(src, dst, shape)
    return sum(mnemonic(item) in PORT for item in of_every_trip(function.timed[-1]))


def computed(nest: Nest) -> tuple[str, ...]:
    """The mnemonics of what computes in a trip."""
    return tuple(mnemonic(item) for item in nest.trip if isinstance(item, Computing))


def test_port_operations_per_trip_are_the_published_slopes() -> None:
    """Rule 3 of the sheet's section 6.2."""
    one_trip = Shape(3, 128, 3, 64)
    for src, dst, shape, cycles in (
        ("bf16", "f16", FULL, 1), ("f16", "f32", FULL, 1), ("f32", "f16", FULL, 1), ("f32", "f16", PADDED, 2),
        ("e2m1", "bf16", FULL, 3), ("e2m1", "bf16", PADDED, 3), ("e4m3fn", "f32", FULL, 5), ("hif8", "f32", PADDED, 5),
        ("e4m3fn", "f32", one_trip, 3), ("f16", "hif8", PADDED, 1),
    ):  # fmt: skip
        assert port_cycles(src, dst, shape) == cycles, (src, dst)


def test_profiles_of_the_kernels() -> None:
    def of(src: str, dst: str, shape: Shape) -> object:
        function = function_of(src, dst, shape)
        return profile(function, function.timed[-1])

    dual = of("f32", "f16", PADDED)
    assert (dual.rows, dual.trips, dual.row_loop, dual.loads, dual.stores) == (3, 3, True, 1, 1)
    assert computed(function_of("f32", "f16", PADDED).timed[-1]) == ("vcvt", "vcvt", "vor")
    narrow = of("f32", "e5m2", PADDED)
    assert (narrow.barrier, narrow.branch) == (True, True)
    assert computed(function_of("f32", "e5m2", PADDED).timed[-1]) == ("vcvt", "vselr")
    assert not of("f32", "e5m2", Shape(3, 128, 3, 64)).branch  # with one inner trip the select folds away
    assert not of("f32", "e5m2", FULL).branch
    wide = of("e4m3fn", "f32", FULL)
    assert (wide.stores, wide.unpacks) == (2, True)
    assert computed(function_of("e4m3fn", "f32", FULL).timed[-1]) == ("vintlv", "vcvt", "vcvt", "punpack", "punpack")
    assert wide.source_bytes == 960 // 2  # as profiled: trips of 64 elements, where the text has 128
    assert of("bf16", "e2m1", PADDED).half_bytes
    assert of("e2m1", "bf16", Shape(1, 64, 1, 33)).source_bytes == 17
    assert of("f16", "f32", FULL).source_bytes == 2 * 960
    profiled = function_of("f16", "hif8", PADDED)
    assert computed(profiled.timed[-1]) == ("vcvt",)
    assert computed(profiled.nests[-1]) == ("vcvt", "vcvt", "vor")
