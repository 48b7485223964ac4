"""A5 casts: every pair, mode and variant, the golden scripts of the PTO library, and every value of each option."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import oracle
import oracle_a5
import pytest
from kit.a5_cases import A5, Shape, check, fill, lowerer, make_cast, run, source_codes
from kit.golden import assert_same
from kit.golden_pto import DATA, arrays, unpack

from castsim.machines.casting import cast
from castsim.machines.vector_function.function_operations import (
    VectorFunction,
    is_load,
    mnemonic,
    number_of,
    with_words,
)
from castsim.machines.vector_function.lowering import lower_cast
from castsim.machines.vector_function.values import WholeTile, trace_nest
from castsim.targets.description import with_options

MODES = (None, "none", "rint", "round", "floor", "ceil", "trunc", "odd")
SATURATIONS = (None, "on", "off")
IDS = [f"{src}-{dst}" for src, dst in oracle_a5.LEGAL]


def granule(src: str, dst: str) -> int:
    """Columns in which both tiles have whole blocks per row."""
    return 256 // min(oracle_a5.size(src), oracle_a5.size(dst))


def full_shape(src: str, dst: str, elements: int) -> Shape:
    """Two full rows of at least `elements` together."""
    unit = granule(src, dst)
    cols = -(-elements // 2 // unit) * unit
    return Shape(2, cols, 2, cols)


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL, ids=IDS)
def test_every_mode_and_saturation_in_both_default_variants(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    full = full_shape(src, dst, codes.size)
    padded = Shape(2, full.cols + granule(src, dst), 2, full.cols - 1)
    for mode in MODES:
        for saturation in SATURATIONS:
            for shape in (full, padded):
                # The register path converts the same lanes by the same policies: once per shape and saturation.
                paths = (False, True) if mode in (None, "floor") else (True,)
                check(make_cast(src, dst, shape, mode, saturation), codes, paths=paths)
            check(make_cast(src, dst, padded, mode, saturation), codes[::-1], kind=2, paths=(True,))


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL, ids=IDS)
def test_odd_and_ragged_shapes_in_every_variant(src: str, dst: str) -> None:
    codes = source_codes(src, dst)
    unit = granule(src, dst)
    wide = -(-520 // unit) * unit
    shapes = [
        Shape(1, unit, 1, 1), Shape(1, wide, 1, 513), Shape(3, unit, 3, unit), Shape(3, unit, 2, unit - 1),
        Shape(3, wide, 3, 257), Shape(5, wide, 2, 65), Shape(2, wide, 2, wide, dynamic=True), Shape(4, unit, 4, 0),
        Shape(4, unit, 0, unit),
    ]  # fmt: skip
    for shape in shapes:
        for kind in range(5):
            for saturation in ("on", "off"):
                lowered = check(make_cast(src, dst, shape, "rint", saturation), codes, kind=kind)
                odd_nibbles = dst in oracle_a5.FP4 and shape.valid_cols % 2
                empty = not shape.valid_rows or not shape.valid_cols
                assert isinstance(lowered.shortcut, WholeTile) == (not odd_nibbles and not empty)


def planted(wrong: str) -> VectorFunction:
    """The function of a narrowing cast by parts, right but for one instruction."""
    cast = make_cast("f32", "i16", Shape(2, 1056, 2, 1055), "rint", "on")
    function = lower_cast(A5, cast).function
    (nest,) = function.nests
    trip = list(nest.trip)
    convert = next(place for place, each in enumerate(trip) if each.mnemonic == "vcvt")
    store = next(place for place, each in enumerate(trip) if each.mnemonic == "vsts")
    left = next(place for place, each in enumerate(trip) if mnemonic(each) == "plt")
    one, last, count = trip[convert], trip[store], trip[left]
    match wrong:
        case "the other part":
            trip[convert] = with_words(one, part="ODD" if one.word("part") == "EVEN" else "EVEN")
        case "the other source":
            loads = next(each.results for each in trip if is_load(each))
            trip[convert] = replace(
                one, operands=(next(name for name in loads if name != one.operands[0]), one.operands[1])
            )
        case "another rounding in one register":
            trip[convert] = with_words(one, rnd="F")
        case "one lane later":
            trip[store] = with_words(last, offset=2)
        case "one element more":
            nest = replace(nest, counters={name: start + 1 for name, start in nest.counters.items()})
        case "one element less":
            nest = replace(nest, counters={name: start - 1 for name, start in nest.counters.items()})
        case "a lane less in full trips":
            trip[left] = with_words(count, take=number_of(count, "take") - 1)
        case "no store":
            del trip[store]
    return replace(function, nests=(replace(nest, trip=tuple(trip)),))


def test_a_wrong_kernel_is_not_taken_for_its_conversions() -> None:
    right = planted("")
    assert trace_nest(right, right.nests[0])
    for wrong in ("the other part", "the other source", "another rounding in one register", "one lane later",
                  "one element more", "one element less", "a lane less in full trips", "no store"):  # fmt: skip
        function = planted(wrong)
        assert function != right, wrong
        assert trace_nest(function, function.nests[0]) is None, wrong


def test_the_pairs_of_the_descriptor_are_those_of_the_sheet() -> None:
    assert sorted((rule.src, rule.dst) for rule in A5.casts) == sorted(oracle_a5.LEGAL)
    assert len(oracle_a5.LEGAL) == 45


OPTIONS: dict[str, int | str] = {"ctrl_60_at_start": 0, "native_off_intermediate": "exact"}
KEYS = [key for key in DATA if key.startswith("a5__") and "__out" in key]
NATIVE = {"f32": np.float32, "f16": np.float16, "i64": np.int64}


def numbers(source: np.ndarray, src: str) -> np.ndarray:
    if src == "bf16":
        return (source.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return source.view(NATIVE[src]).astype(np.float64) if src in NATIVE else np.zeros(source.shape)


def artefacts(src: str, dst: str, mode: str, source: np.ndarray) -> np.ndarray:
    """Return the elements on which the script does what a correct model must not (tests/vectors/README.md)."""
    values = numbers(source, src)
    bad = np.zeros(source.shape, dtype=bool)
    if dst == "f32":
        infinite = [src in oracle.FLOATS and oracle.decode(code, src).kind == "inf" for code in source.tolist()]
        bad |= np.array(infinite)  # clamped to the largest finite number
    if dst == "f16":
        bad |= np.isnan(values)  # kept, although CTRL[48] clamps
    if mode == "round":
        bad |= np.abs(values) % 1 == 0.5  # the script rounds ties to even
    if (src, dst) == ("i64", "f32"):
        bad |= np.abs(values) > 2.0**53  # passes through float64 and rounds twice
    if dst in oracle_a5.FP4:
        bad |= (values == 0) & np.signbit(values)
        bad |= np.abs(values) > 1e8
        bad |= np.isnan(values)  # "NaN input: not defined"
    return bad


@pytest.mark.parametrize("key", KEYS)
def test_product(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    mode = mode.lower()
    keep = ~undefined & ~artefacts(src, dst, mode, source)
    cols = -(-source.size // 64) * 64
    even = source.size - source.size % 2
    for shape in (Shape(1, cols, 1, even), Shape(2, cols + 64, 2, even)):
        for shortcuts in (False, True):
            cast = make_cast(src, dst, shape, mode)
            buffer, _ = fill(cast, source[:even].astype(np.uint64))
            run(lowerer(**OPTIONS).cast(cast), buffer, shortcuts=shortcuts)
            start = cast.dst.address + (shape.valid_rows - 1) * cast.dst.row_pitch
            raw = buffer[start : start + even * oracle_a5.size(dst) // 8]
            got = unpack(raw) if oracle_a5.size(dst) == 4 else raw.view(expected.dtype)
            assert_same(expected[:even][keep[:even]], got[keep[:even]], source[:even][keep[:even]], src, dst)


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


def test_profiled_sequence_times_other_instructions_than_it_computes() -> None:
    def function(dst: str, **options: str) -> VectorFunction:
        return lower_cast(with_options(A5, options), make_cast("f16", dst, PADDED)).function

    profiled = function("hif8")
    assert profiled.timed != profiled.nests
    assert profiled.timed == (replace(profiled.nests[0], trip=profiled.timed[0].trip),)
    assert len(profiled.timed[0].trip) == 4
    assert function("hif8", profiled_sequences="text").timed == profiled.nests
    assert function("i8").timed == function("i8").nests
