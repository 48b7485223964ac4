"""Kernels that load a tile, convert it and store it, in the spellings of newer assemblers; run on every path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
from kit.pto_text import module, moved

from castsim import run
from castsim.execution.input_data import filled_memory
from castsim.machines.mechanisms import compute_of
from castsim.running.program_runs import Result
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target

FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
INTEGERS = {"i8": np.int8, "ui8": np.uint8, "i16": np.int16, "ui16": np.uint16, "i32": np.int32, "ui32": np.uint32, "i64": np.int64}  # fmt: skip  # noqa: E501
OFF, ON = "sat_mode = #pto<saturation_mode OFF>", "satmode = #pto<saturation_mode ON>"


def chip(name: str, **options: int | str) -> Target:
    return with_options(load_target(name), options)


def kernel(
    types: tuple[str, str], shapes: tuple[tuple[int, int], tuple[int, int]], words: str = "", *,
    valid: tuple[tuple[int, int], tuple[int, int]] | None = None, level3: bool = False, arch: str = "a5",
) -> str:  # fmt: skip
    """`%x` is loaded into a tile, converted by `words` (the attributes of tcvt) and stored to `%y`.

    `shapes` are those of the tiles, `valid` their valid regions, given at run time if stated; all in elements as the
    types spell them.
    """
    lines, moves, tiles = [], [], []
    for name, element, shape, region in zip("xy", types, shapes, valid or (None, None), strict=True):
        rows, cols = region or shape
        tiles.append(f"!pto.tile_buf<vec, {shape[0]}x{shape[1]}x{element}{', valid=?x?' if region else ''}>")
        operands = f" addr = %{name}a" if level3 else ""
        operands += f" valid_row = %n{name} valid_col = %m{name}" if region else ""
        *constants, view, part, move = moved(name, (f"%{name}t", tiles[-1]), element, rows, cols, load=name == "x")
        alloc = f"%{name}t = pto.alloc_tile{operands} : {tiles[-1]}"
        lines += [f"%{name}a = arith.constant {0 if name == 'x' else 65536} : i64", *constants, view, part, alloc]
        moves.append(move)
    cast = f"pto.tcvt ins(%xt{f' {{{words}}}' if words else ''} : {tiles[0]}) outs(%yt : {tiles[1]})"
    arguments = [f"%{name}: !pto.ptr<{kind}>" for name, kind in zip("xy", types, strict=True)]
    return module(arch, arguments, [*lines, moves[0], cast, moves[1]])


def outputs(
    file: Path, target: Target, inputs: Mapping[str, np.ndarray], *, races: str = "stop"
) -> tuple[Result, dict[str, np.ndarray]]:
    """Run a program by both engines and by both ways of computing values, which must agree; return the outputs."""
    found = run(file, target, inputs=inputs, races=races)
    event = run(file, target, inputs=inputs, races=races, engine="event")
    assert found.timing == event.timing
    loaded = found.loaded
    memory = filled_memory(loaded.arguments, inputs)
    buffer = np.zeros(target.memories["ub"].capacity_bytes, np.uint8)
    compute_of(target)(loaded.tree, buffer, memory, shortcuts=False)
    again = filled_memory(loaded.arguments, inputs)
    compute_of(target)(loaded.tree, np.zeros_like(buffer), again)
    for name, stored in memory.items():
        assert np.array_equal(stored, again[name]), name
    for name, array in found.outputs.items():
        assert array.tobytes() == event.outputs[name].tobytes()
    return found, {name: codes(array) for name, array in found.outputs.items()}


def codes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def given(src: str, shape: tuple[int, int], seed: int = 3) -> np.ndarray:
    """Numbers within and out of range for every integer format."""
    generator = np.random.default_rng(seed)
    if src in INTEGERS:
        ends = np.iinfo(INTEGERS[src])
        return generator.integers(ends.min, ends.max, shape, INTEGERS[src], endpoint=True)
    top = {"f32": 2.0**60, "bf16": 2.0**60, "f16": 65504.0}[src]
    found = generator.uniform(-1, 1, shape) * top ** generator.uniform(0, 1, shape)
    return found.astype(np.float32).astype(FLOATS[src])


def integer_result(x: np.ndarray, dst: str, *, wraps: bool) -> np.ndarray:
    ends, bits = np.iinfo(INTEGERS[dst]), np.iinfo(INTEGERS[dst]).bits
    exact = [int(value) for value in (x if x.dtype.kind in "iu" else np.trunc(x.astype(np.float64))).flat]
    mask = (1 << bits) - 1
    found = [value & mask if wraps else min(max(value, ends.min), ends.max) & mask for value in exact]
    return np.array(found, f"u{bits // 8}").reshape(x.shape)
