"""Kernels of tile operations written as micro programs: the cycles of the tile operation, or it is known why not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from a5_cases import A5, Shape
from function_times import flat, function_of, padded, timed
from function_works import function_of as function_of_work
from function_works import lanewise

from castsim.machines.vector_function.function_launches import FunctionLaunch, time_scope
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.launched_scope import issues
from castsim.targets.options import with_options
from castsim.targets.vector_function import VectorFunctionTarget

PAIRS = [(rule.src, rule.dst) for rule in A5.casts]
FLAT, PADDED = (1, 5, 10), ((1, 3), (3, 1), (3, 3), (3, 10), (10, 10))
PROFILED = {(each.src, each.dst) for each in A5.profiled_sequences if each.elements is not None}
"""Casts whose published cycles are those of other trips than the kernel text's."""


def both(function: VectorFunction, target: VectorFunctionTarget = A5) -> tuple[int, int]:
    """Cycles of the tile operation and of its instructions one by one."""
    execution = timed(function, target=target).executions[0]
    return execution.end - execution.start, time_scope(FunctionLaunch(function, target).scope, target).cycles


def head(source_bytes: int) -> Decimal:
    """What an unpacking load waits before it starts: 12.5 cycles twice, once from 512 bytes on, unless it need not."""
    waits = 2 - source_bytes // 512
    return Decimal("12.5") * max(0, waits) if source_bytes % 256 and not source_bytes & 256 else Decimal(0)


def of_pair(src: str, dst: str, trips: int, rows: int = 0) -> VectorFunction:
    elements = A5.elements_per_trip(src, dst, contiguous=not rows)
    assert elements is not None
    shape: Shape = padded(rows, trips * elements) if rows else flat(trips * elements)
    return function_of(src, dst, shape)


@pytest.mark.parametrize(("src", "dst"), PAIRS)
@pytest.mark.parametrize("trips", FLAT)
def test_casts_of_whole_tiles(src: str, dst: str, trips: int) -> None:
    tile, micro = both(of_pair(src, dst, trips))
    if (src, dst) in PROFILED:  # the head goes by the bytes of the trips that were profiled, in the kernel by its loads
        function = of_pair(src, dst, trips)
        nest, scope = function.timed[-1], FunctionLaunch(function, A5).scope
        loaded = sum(each.instruction.size for each in issues(scope.body) if each.instruction.unpacks)
        assert abs(micro - tile - (head(loaded) - head(nest.count * nest.source_trip // nest.elements))) < 1
    else:
        assert tile == micro


@pytest.mark.parametrize(("src", "dst"), PAIRS)
@pytest.mark.parametrize(("rows", "trips"), PADDED)
def test_casts_of_padded_tiles(src: str, dst: str, rows: int, trips: int) -> None:
    tile, micro = both(of_pair(src, dst, trips, rows))
    if dst in ("e1m2", "e2m1") and trips > 1:  # up to half a cycle a row, from its select on
        assert 0 <= micro - tile <= rows / 2
    else:
        assert tile == micro


@pytest.mark.parametrize(
    "mnemonic", ["tadd", "tmul", "tmax", "tdiv", "tneg", "tmins", "trelu", "tabs", "texp", "tsqrt"]
)
@pytest.mark.parametrize("fmt", ["f32", "f16"])
@pytest.mark.parametrize(("rows", "trips"), [(1, 1), (1, 5), (1, 20), (3, 1), (3, 3), (3, 10), (10, 3), (2, 20)])
def test_elementwise_operations(mnemonic: str, fmt: str, rows: int, trips: int) -> None:
    elements = 64 if fmt == "f32" else 128
    tile, micro = both(function_of_work(lanewise(mnemonic, fmt, rows, trips * elements, (rows > 1) * elements // 2)))
    # Where two loads and a store share bank groups for long, one cycle hangs on which of them asks first.
    assert abs(tile - micro) <= (mnemonic in ("tmul", "tmax") and trips >= 10)


@pytest.mark.parametrize("fmt", ["i16", "i32", "f16", "f32"])
def test_divisions_that_are_timed_as_a_whole(fmt: str) -> None:
    target = with_options(A5, {"division_algorithm": "high_precision"})
    tile, micro = both(function_of_work(lanewise("tdiv", fmt, 4, 320), target), target)
    assert tile == micro
