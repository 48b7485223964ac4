"""A5 casts: every pair, mode and variant, the golden scripts of the PTO library, and every value of each option."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import oracle_a5
import pytest
from kit.a5_cases import A5, UB, Shape, check, fill, lowerer, make_cast, run, source_codes
from kit.golden import assert_same
from kit.golden_pto import DATA, arrays, unpack
from kit.pto_text import VECTORS, asked, cast_program, compact, key_value

from castsim.execution.input_data import empty_memory, from_memory, to_memory
from castsim.execution.pipe_operations import ControlWrite
from castsim.execution.tree import elements
from castsim.machines.casting import cast
from castsim.machines.mechanisms import compute_of
from castsim.machines.vector_function import function_operations as ops
from castsim.machines.vector_function.function_operations import (
    VectorFunction,
    is_load,
    mnemonic,
    number_of,
    with_words,
)
from castsim.machines.vector_function.function_timing import bytes_of_row
from castsim.machines.vector_function.lowering import lower_cast
from castsim.machines.vector_function.values import WholeTile, trace_nest, whole_tile
from castsim.running.loaded import Loaded
from castsim.running.program_loading import load_program
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


# A `.pto` statement stays on one line.


SPELT = {
    "si8": "i8", "ui8": "u8", "si16": "i16", "ui16": "u16", "si32": "i32", "ui32": "u32", "si64": "i64",
    "f8E4M3FN": "e4m3fn", "f8E5M2": "e5m2", "f4E2M1x2": "e2m1", "f4E1M2x2": "e1m2",
}  # fmt: skip
"""Element types as `.pto` texts spell them, and the format names of the oracle."""


def instances() -> list[dict[str, str]]:
    """The published instances that are legal on A5, whichever architecture their file names."""
    with (VECTORS / "pto_tcvt_instances_dev.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    for row in found:
        row["src"], row["dst"] = (SPELT.get(row[key], row[key]) for key in ("src_dtype", "dst_dtype"))
    return [row for row in found if (row["src"], row["dst"]) in oracle_a5.LEGAL]


ROWS = instances()
program = partial(cast_program, "a5")


def compute(loaded: Loaded, arrays: dict[str, np.ndarray], *, shortcuts: bool = True) -> dict[str, np.ndarray]:
    """The values of a program, which need no engine."""
    memory = {
        name: to_memory(arrays[name], name, use) if name in arrays else empty_memory(use)
        for name, use in loaded.arguments.items()
    }
    compute_of(loaded.target)(loaded.tree, np.zeros(UB, np.uint8), memory, shortcuts=shortcuts)
    return {name: from_memory(memory[name], use) for name, use in loaded.arguments.items() if use.stored}


def load(path: Path, text: str, args: dict[str, int] | None = None) -> Loaded:
    path.write_text(text, encoding="utf-8")
    return load_program(path, None, None, args or {})


def native(codes: np.ndarray, name: str) -> np.ndarray:
    stored = codes.astype(oracle.storage(name))
    return stored.view(name.replace("i", "int").replace("u", "uint")) if name in oracle.INTS else stored


def codes_of(array: np.ndarray, name: str) -> np.ndarray:
    return np.ascontiguousarray(array).view(oracle.storage(name)).astype(np.uint64)


@pytest.mark.parametrize("spelling", [key_value, compact])
@pytest.mark.parametrize("number", range(len(ROWS)))
def test_published_instance(number: int, spelling: Any, tmp_path: Path) -> None:
    row = ROWS[number]
    src, dst = row["src"], row["dst"]
    rows, cols, valid_rows, valid_cols = (int(row[key]) for key in ("rows", "cols", "valid_rows", "valid_cols"))
    mode, saturation = (None if row[key] == "default" else row[key].lower() for key in ("round_mode", "sat"))
    types = [row["src_dtype"], row["dst_dtype"]]
    tiles = [spelling(kind, rows, cols, valid_rows, valid_cols) for kind in types]
    words = asked(row["round_mode"], row["sat"])
    loaded = load(tmp_path / "cast.pto", program(types, tiles, (valid_rows, valid_cols), [words]))
    assert loaded.target.name == "a5"
    codes = np.random.default_rng(number).choice(source_codes(src, dst), (valid_rows, valid_cols))
    wanted = oracle_a5.lanes(src, dst, codes, mode, saturation, multi_step=cols == valid_cols or rows == 1)
    for shortcuts in (False, True):
        outputs = compute(loaded, {"x": native(codes, src)}, shortcuts=shortcuts)
        assert np.array_equal(codes_of(outputs["y"], dst), wanted)


def test_specimen_with_own_flags(tmp_path: Path) -> None:
    """bf16 -> f32 in eight trips: every row with 16 zero bits appended (docs/reference/pto.md section 8)."""
    codes = np.arange(512 * 256, dtype=np.uint32).astype(np.uint16).reshape(512, 256)  # every bf16 code, twice
    loaded = load(tmp_path / "b.pto", (VECTORS / "pto_specimens" / "widen_rows.pto").read_text(encoding="utf-8"))
    assert loaded.target.name == "a5"
    got = codes_of(compute(loaded, {"in": codes})["out"], "f32")
    nan = (codes & 0x7FFF) > 0x7F80
    assert np.array_equal(got[~nan], codes[~nan].astype(np.uint64) << np.uint64(16))
    assert ((got[nan] & 0x7FFFFFFF) > 0x7F800000).all()  # no source says what becomes of a NaN's payload


@pytest.mark.parametrize(
    ("types", "extent"),
    [
        (["bf16", "f4E2M1x2"], (3, 64)), (["bf16", "f4E1M2x2"], (3, 33)), (["f4E2M1x2", "bf16"], (2, 65)),
        (["f32", "hif8"], (2, 40)), (["hif8", "f32"], (2, 40)), (["f32", "f8E4M3FN"], (3, 50)),
        (["f8E5M2", "f32"], (3, 50)),
    ],
)  # fmt: skip
def test_narrow_elements_in_global_memory(types: list[str], extent: tuple[int, int], tmp_path: Path) -> None:
    """4-bit rows are packed and start at whole bytes; one element per byte in Python."""
    rows, cols = extent
    wide = -(-cols // 64) * 64
    tiles = [compact(kind, rows, wide, rows, cols) for kind in types]
    loaded = load(tmp_path / "p.pto", program(types, tiles, extent, [""], even=True))
    src, dst = (SPELT.get(kind, kind) for kind in types)
    codes = np.resize(source_codes(src, dst), extent)
    padded = np.zeros((rows, cols + cols % 2), np.uint64)
    padded[:, :cols] = codes
    wanted = oracle_a5.lanes(src, dst, codes, None, None, multi_step=False)
    if dst in oracle_a5.FP4:
        wanted[:, cols - cols % 2 :] = 0
    given = padded.reshape(-1)[: rows * padded.shape[1] - cols % 2].astype(oracle.storage(src))
    got = codes_of(compute(loaded, {"x": given})["y"], dst)
    flat = np.zeros(padded.size, np.uint64)
    flat[: got.size] = got.reshape(-1)
    assert np.array_equal(flat.reshape(padded.shape)[:, :cols], wanted)


THREE_PADDED = Shape(3, 320, 3, 290)
THREE_FULL = Shape(3, 320, 3, 320)


def function_of(src: str, dst: str, shape: Shape, **options: int | str) -> ops.VectorFunction:
    body = lowerer(**options).cast(make_cast(src, dst, shape)).body
    return next(item for item in elements(body) if isinstance(item, ops.VectorFunction))


def proven(src: str, dst: str, shape: Shape, function: ops.VectorFunction) -> bool:
    cast = make_cast(src, dst, shape)
    return whole_tile(function, cast.src, cast.dst) is not None


def with_main(function: ops.VectorFunction, **change: object) -> ops.VectorFunction:
    return replace(function, nests=(*function.nests[:-1], replace(function.nests[-1], **change)))


def with_trip(function: ops.VectorFunction, *names: str, results: tuple[str, ...] = (), **words: object):
    """The function with other words, or results, of the first instruction of one of the names."""
    trip = list(function.nests[-1].trip)
    index = next(index for index, node in enumerate(trip) if node.mnemonic in names)
    trip[index] = replace(ops.with_words(trip[index], **words), results=results or trip[index].results)
    return with_main(function, trip=tuple(trip))


@pytest.mark.parametrize(("src", "dst"), oracle_a5.LEGAL)
def test_what_breaks_a_function_breaks_its_proof(src: str, dst: str) -> None:
    for shape in (THREE_FULL, THREE_PADDED):
        function = function_of(src, dst, shape)
        main: ops.Nest = function.nests[-1]
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
        assert not proven(src, dst, shape, with_trip(function, "vsts", offset=32))
        load = next(item for item in main.trip if ops.is_load(item))
        if len(load.results) == 2:
            swapped = with_trip(function, "vldsx2", results=load.results[::-1])
            assert not proven(src, dst, shape, swapped), "swapped halves"
        else:
            other = "UNPK_B16" if load.word("dist") == "NORM" else "NORM"
            assert not proven(src, dst, shape, with_trip(function, "vlds", dist=other))


def computed(nest: ops.Nest) -> tuple[str, ...]:
    return tuple(ops.mnemonic(item) for item in nest.trip if ops.computes(item))


def test_trips_of_the_kernels() -> None:
    def of(src: str, dst: str, shape: Shape) -> ops.Nest:
        return function_of(src, dst, shape).timed[-1]

    def counts(nest: ops.Nest, *names: str) -> int:
        return sum(item.mnemonic in names for item in ops.of_every_trip(nest))

    def row_bytes(nest: ops.Nest) -> int:
        return bytes_of_row(nest.count, nest.source_trip, nest.elements)

    dual = of("f32", "f16", THREE_PADDED)
    assert (dual.rows, dual.trips, dual.row_loop) == (3, 3, True)
    assert (counts(dual, "vldsx2"), counts(dual, "vsts")) == (1, 1)
    assert computed(dual) == ("vcvt", "vcvt", "vor")
    narrow = of("f32", "e5m2", THREE_PADDED)
    assert (counts(narrow, "mem_bar"), counts(narrow, "select")) == (1, 1)
    assert computed(narrow) == ("vcvt", "vselr")
    assert not counts(of("f32", "e5m2", Shape(3, 128, 3, 64)), "select")  # with one inner trip the select folds away
    assert not counts(of("f32", "e5m2", THREE_FULL), "select")
    wide = of("e4m3fn", "f32", THREE_FULL)
    assert counts(wide, "vsts") == 2
    assert [item.word("dist") for item in wide.trip if ops.is_load(item)] == ["UNPK_B8"]
    assert computed(wide) == ("vintlv", "vcvt", "vcvt", "punpack", "punpack")
    assert row_bytes(wide) == 960 // 2  # as profiled: trips of 64 elements, where the text has 128
    assert row_bytes(of("e2m1", "bf16", Shape(1, 64, 1, 33))) == 17
    assert row_bytes(of("f16", "f32", THREE_FULL)) == 2 * 960
    profiled = function_of("f16", "hif8", THREE_PADDED)
    assert computed(profiled.timed[-1]) == ("vcvt",)
    assert computed(profiled.nests[-1]) == ("vcvt", "vcvt", "vor")


def test_one_and_two_dimensional_kernels_side_by_side(tmp_path: Path) -> None:
    """f32 -> i16 with saturation OFF: only the 1D kernel goes through i32, which infinity shows."""
    values = np.array([[3e9, np.inf, -np.inf, np.nan, -40000.0, 7.5, 65535.5, -1.0]], np.float32)
    seen = {}
    for name, rows, cols in (("1D", 1, 16), ("2D_default", 2, 16)):
        tiles = [compact(kind, rows, cols, 1, 8) for kind in ("f32", "i16")]
        attributes = [asked("TRUNC", "OFF")]
        loaded = load(tmp_path / f"{name}.pto", program(["f32", "i16"], tiles, (1, 8), attributes))
        seen[name] = compute(loaded, {"x": values})["y"].tolist()[0]
    assert seen["1D"] == [24064, -1, 0, 0, 25536, 7, -1, -1]
    assert seen["2D_default"] == [24064, 32767, -32768, 0, 25536, 7, -1, -1]


PORT = ("vcvt", "vtrc", "vintlv", "punpack")


def port_cycles(src: str, dst: str, shape: Shape) -> int:
    function = function_of(src, dst, shape)
    return sum(ops.mnemonic(item) in PORT for item in ops.of_every_trip(function.timed[-1]))


def test_port_operations_per_trip_are_the_published_slopes() -> None:
    """Rule 3 of the sheet's section 6.2."""
    one_trip = Shape(3, 128, 3, 64)
    for src, dst, shape, cycles in (
        ("bf16", "f16", FULL, 1), ("f16", "f32", FULL, 1), ("f32", "f16", FULL, 1), ("f32", "f16", PADDED, 2),
        ("e2m1", "bf16", FULL, 3), ("e2m1", "bf16", PADDED, 3), ("e4m3fn", "f32", FULL, 5), ("hif8", "f32", PADDED, 5),
        ("e4m3fn", "f32", one_trip, 3), ("f16", "hif8", PADDED, 1),
    ):  # fmt: skip
        assert port_cycles(src, dst, shape) == cycles, (src, dst)


AS_THE_SCRIPTS = oracle_a5.Doubt(bits=frozenset(), off="exact")
"""What the scripts expect where the chip's defaults differ: fp8 does not clamp, infinity with OFF gives 0."""


@pytest.mark.parametrize("key", KEYS)
def test_oracle(key: str) -> None:
    src, dst, mode, source, expected, undefined = arrays(key)
    mode = mode.lower()
    keep = ~undefined & ~artefacts(src, dst, mode, source)
    assert keep.sum() >= 14
    for multi_step in (False, True):
        got = oracle_a5.lanes(src, dst, source[keep], mode, None, multi_step=multi_step, doubt=AS_THE_SCRIPTS)
        got = got.astype(expected.dtype)
        assert_same(expected[keep], got, source[keep], src, dst)


def functions(src: str, dst: str, shape: Shape, **options: int | str) -> VectorFunction:
    lowered = lowerer(**options).cast(make_cast(src, dst, shape))
    launches = [item for item in elements(lowered.body) if isinstance(item, VectorFunction)]
    assert len(launches) == 1
    return launches[0]


@pytest.mark.parametrize("kind", range(5))
def test_implementation_kinds_choose_the_documented_variant(kind: int) -> None:
    for shape in (FULL, PADDED, Shape(1, 256, 1, 3), Shape(2, 256, 2, 256, dynamic=True)):
        function = functions("f32", "f16", shape, implementation_kind=kind)
        assert function.name.endswith(oracle_a5.kernel(kind, full=shape.full))


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
