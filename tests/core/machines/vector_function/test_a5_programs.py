"""Programs on A5, bytes against the oracle; the proof that a tile may be converted in one call."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import oracle_a5
import pytest
from kit.a5_cases import UB, Shape, lowerer, make_cast, source_codes
from kit.pto_text import VECTORS, asked, cast_program, compact, key_value

from castsim.execution.input_data import empty_memory, from_memory, to_memory
from castsim.execution.tree import elements
from castsim.machines.mechanisms import compute_of
from castsim.machines.vector_function import function_operations as ops
from castsim.machines.vector_function.function_timing import bytes_of_row
from castsim.machines.vector_function.values import whole_tile
from castsim.running.loaded import Loaded
from castsim.running.program_loading import load_program

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


PADDED = Shape(3, 320, 3, 290)
FULL = Shape(3, 320, 3, 320)


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
    for shape in (FULL, PADDED):
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

    dual = of("f32", "f16", PADDED)
    assert (dual.rows, dual.trips, dual.row_loop) == (3, 3, True)
    assert (counts(dual, "vldsx2"), counts(dual, "vsts")) == (1, 1)
    assert computed(dual) == ("vcvt", "vcvt", "vor")
    narrow = of("f32", "e5m2", PADDED)
    assert (counts(narrow, "mem_bar"), counts(narrow, "select")) == (1, 1)
    assert computed(narrow) == ("vcvt", "vselr")
    assert not counts(of("f32", "e5m2", Shape(3, 128, 3, 64)), "select")  # with one inner trip the select folds away
    assert not counts(of("f32", "e5m2", FULL), "select")
    wide = of("e4m3fn", "f32", FULL)
    assert counts(wide, "vsts") == 2
    assert [item.word("dist") for item in wide.trip if ops.is_load(item)] == ["UNPK_B8"]
    assert computed(wide) == ("vintlv", "vcvt", "vcvt", "punpack", "punpack")
    assert row_bytes(wide) == 960 // 2  # as profiled: trips of 64 elements, where the text has 128
    assert row_bytes(of("e2m1", "bf16", Shape(1, 64, 1, 33))) == 17
    assert row_bytes(of("f16", "f32", FULL)) == 2 * 960
    profiled = function_of("f16", "hif8", PADDED)
    assert computed(profiled.timed[-1]) == ("vcvt",)
    assert computed(profiled.nests[-1]) == ("vcvt", "vcvt", "vor")
