"""Doubtful points of A5: each value of each option against the oracle, and worked numbers of the sheet."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import oracle_a5
import pytest
from a5_cases import A5, Shape, check, lowerer, make_cast, source_codes

from castsim.casting import cast
from castsim.execution.dataflow.pipe_operations import ControlWrite
from castsim.execution.tree import Loop, Lowered, elements
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.targets.options import with_options

FULL = Shape(2, 256, 2, 256)
PADDED = Shape(2, 320, 2, 256)
START = {bit: f"ctrl_{bit}_at_start" for bit in (48, 50, 59, 60)}
AFFECTED = [
    ("f32", "f16"), ("f32", "bf16"), ("bf16", "f16"), ("f32", "e4m3fn"), ("f32", "e5m2"), ("f32", "hif8"),
    ("f16", "hif8"), ("bf16", "e2m1"), ("f32", "i32"), ("f32", "f32"), ("i16", "u32"), ("i32", "i16"), ("i16", "f16"),
    ("f16", "i8"),
]  # fmt: skip


@pytest.mark.parametrize(("src", "dst"), AFFECTED)
def test_ctrl_at_start_and_suppressed_writes(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    for states in product((0, 1), repeat=len(START)):
        options = dict(zip(START.values(), states, strict=True))
        bits = frozenset(bit for bit, state in zip(START, states, strict=True) if state)
        for saturation in ("on", "off"):
            make = make_cast(src, dst, FULL, None, saturation)
            check(make, codes, oracle_a5.Doubt(bits=bits), paths=(True,), **options)
            suppressed = oracle_a5.Doubt(bits=bits, writes=False)
            check(make, codes, suppressed, paths=(True,), **options, control_writes="suppressed")


@pytest.mark.parametrize("value", ["zero", "maximum", "minimum"])
@pytest.mark.parametrize(("src", "dst"), [(s, d) for s, d in oracle_a5.LEGAL if s in ("f32", "f16") and d[0] in "iu"])
def test_nan_to_integer(src: str, dst: str, value: str) -> None:
    for saturation, shape in product(("on", "off"), (FULL, PADDED)):
        doubt = oracle_a5.Doubt(nan_int=value)
        check(make_cast(src, dst, shape, None, saturation), source_codes(src, dst), doubt, nan_to_integer=value)


@pytest.mark.parametrize("native", ["extreme", "exact", "int64"])
@pytest.mark.parametrize("inner", ["clamp_infinity", "clamp", "low_bits"])
def test_low_bits_of_what(native: str, inner: str) -> None:
    doubt = oracle_a5.Doubt(
        off=native,
        first_step={"clamp_infinity": "infinity", "clamp": "all", "low_bits": "none"}[inner],
    )
    for src, dst in (*oracle_a5.MULTI_STEP, ("f16", "u8"), ("f32", "i32"), ("f32", "i64")):
        for shape in (FULL, PADDED):
            check(
                make_cast(src, dst, shape, "trunc", "off"),
                source_codes(src, dst),
                doubt,
                native_off_intermediate=native,
                multi_step_intermediate=inner,
            )


@pytest.mark.parametrize("value", ["ctrl", "special", "saturate"])
@pytest.mark.parametrize("global_bit", [0, 1])
def test_overflow_of_8_bit_floats(value: str, global_bit: int) -> None:
    doubt = oracle_a5.Doubt(bits=frozenset({60} if global_bit else ()), fp8=value)
    for src, dst in (("f32", "e4m3fn"), ("f32", "e5m2"), ("f32", "hif8"), ("f16", "hif8")):
        options = {"eight_bit_float_overflow": value, "ctrl_60_at_start": global_bit}
        check(make_cast(src, dst, FULL), source_codes(src, dst), doubt, **options)


@pytest.mark.parametrize("value", ["full", "limited"])
def test_the_end_of_the_zero_fill(value: str) -> None:
    doubt = oracle_a5.Doubt(full_fill=value == "full")
    for dst, shape in product(("e2m1", "e1m2"), (Shape(3, 64, 3, 64), Shape(3, 64, 2, 33), Shape(1, 64, 1, 5))):
        lowered = check(make_cast("bf16", dst, shape), source_codes("bf16", dst), doubt, zero_fill_last_store=value)
        assert any("zero fill" in text for text in lowered.warnings) == (value == "full")


def functions(src: str, dst: str, shape: Shape, **options: int | str) -> VectorFunction:
    lowered = lowerer(**options).cast(make_cast(src, dst, shape))
    found = [item for item in elements(lowered.body) if isinstance(item, VectorFunction)]
    assert len(found) == 1
    return found[0]


def test_profiled_sequence_times_other_instructions_than_it_computes() -> None:
    profiled = functions("f16", "hif8", PADDED)
    assert profiled.timed != profiled.nests
    assert profiled.timed == (replace(profiled.nests[0], trip=profiled.timed[0].trip),)
    assert len(profiled.timed[0].trip) == 4
    assert functions("f16", "hif8", PADDED, profiled_sequences="text").timed == profiled.nests
    assert functions("f16", "i8", PADDED).timed == functions("f16", "i8", PADDED).nests


@pytest.mark.parametrize("kind", range(5))
def test_implementation_kinds_choose_the_documented_variant(kind: int) -> None:
    for shape in (FULL, PADDED, Shape(1, 256, 1, 3), Shape(2, 256, 2, 256, dynamic=True)):
        function = functions("f32", "f16", shape, implementation_kind=kind)
        assert function.name.endswith(oracle_a5.kernel(kind, full=shape.full))


def test_loops_stay_loops() -> None:
    """Trips as in section 2 of the sheet: ceil(rows * cols / E) in 1D, ceil(cols / E) per row in 2D."""
    flat = functions("f32", "f16", Shape(7, 256, 7, 256)).nests
    assert [(nest.rows, nest.trips, nest.row_loop) for nest in flat] == [(1, 28, False)]
    rows = functions("f32", "f16", Shape(7, 320, 7, 257)).nests
    assert [(nest.rows, nest.trips, nest.row_loop) for nest in rows] == [(7, 3, True)]
    fill, main = functions("bf16", "e2m1", Shape(7, 320, 7, 257)).nests
    assert (fill.rows, fill.trips) == (1, 5)
    assert (main.rows, main.trips) == (7, 3)
    lowered = lowerer().cast(make_cast("f32", "f16", FULL))
    assert not any(isinstance(item, Loop | Lowered) for item in lowered.body.items)


def test_one_control_write_per_bit_before_and_after() -> None:
    def writes(src: str, dst: str, saturation: str, **options: int | str) -> list[int]:
        body = lowerer(**options).cast(make_cast(src, dst, FULL, None, saturation)).body
        return [item.value for item in body.items if isinstance(item, ControlWrite)]

    clear = {"ctrl_60_at_start": 0}
    assert writes("f32", "i32", "off", **clear) == [1 << 60, 1 << 60 | 1 << 59, 1 << 59, 0]
    assert writes("f32", "i32", "on", **clear) == [1 << 60, 1 << 60, 0, 0]
    assert writes("f32", "i32", "on") == [1 << 60] * 4
    assert writes("bf16", "f16", "off", ctrl_59_at_start=1, **clear) == [1 << 48 | 1 << 59, 1 << 59]
    assert writes("bf16", "f16", "on", ctrl="hivm") == [0, 1 << 48]
    assert writes("f32", "e4m3fn", "off") == []
    assert writes("f32", "i32", "off", control_writes="suppressed") == []


def single(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def test_worked_numbers_of_the_sheet() -> None:
    """Section 4.1, table of consequences, and section 5."""
    clear = with_options(A5, {"ctrl": "hivm"})
    numbers = single([464, 480, np.inf, np.nan])
    assert cast(numbers.view(np.uint32), "f32", "e4m3fn", target=A5).tolist() == [0x7E, 0x7E, 0x7E, 0]
    e4m3 = cast(numbers.view(np.uint32), "f32", "e4m3fn", target=clear)
    assert e4m3.tolist() == [0x7E, 0x7F, 0x7F, 0x7F]
    e5m2 = cast(single([61440, 57344, 480, 512, np.nan]).view(np.uint32), "f32", "e5m2", target=clear)
    assert e5m2.tolist()[:4] == [0x7C, 0x7B, 0x60, 0x60]
    assert e5m2[4] & 0x7F > 0x7C
    hif8 = cast(single([40960, 32768, -0.0, np.nan]).view(np.uint32), "f32", "hif8", target=clear)
    assert hif8.tolist() == [0x6F, 0x6E, 0x00, 0x80]
    for saturation in ("on", "off"):
        half = cast(single([1e6, -np.inf, np.nan]).view(np.uint32), "f32", "f16", target=A5, saturation=saturation)
        assert half.tolist() == [0x7BFF, 0xFBFF, 0]
        wide = np.array([0x7F7F, 0x7FC0], np.uint16)
        assert cast(wide, "bf16", "f16", target=clear, saturation=saturation).tolist()[0] == 0x7C00
        default = cast(wide, "bf16", "f16", target=A5, saturation=saturation).tolist()[0]
        assert default == (0x7BFF if saturation == "on" else 0x7C00)
    fp4 = cast(np.array([0x7F80, 0xFF80, 0x7FC0, 0x8000, 0xBD00], np.uint16), "bf16", "e2m1", target=A5)
    assert fp4.tolist() == [7, 15, 0, 8, 8]
    low = cast(np.array([40000, 200, np.inf, -np.inf, np.nan], np.float16), "f16", "i16", target=A5, saturation="off")
    assert low.tolist() == [-25536, 200, -1, 0, 0]
    byte = cast(np.array([200, np.inf, -np.inf], np.float16), "f16", "i8", target=A5, saturation="off")
    assert byte.tolist() == [-56, -1, 0]
    assert cast(np.array([-5, 7], np.int16), "i16", "u32", target=A5).tolist() == [0, 7]
