"""TOSA's TABLE on vector processors: programs that look integers up in tables of their own.

Bytes are one look-up of 256 entries. 513 entries of 16 bits become two tables of 256 pairs, an entry times 128 and the
step to the next one, for negative values and others: both are looked up, and one is taken. All of it is below 2^24, so
multiplication and addition in f32 are exact. Source: docs/reference/semantics.md section 2,
docs/reference/tpc.md section 5.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from castsim.isa.tpc.forms import Feature
from castsim.machines.vliw import tpc_target
from castsim.running.program_loading import load_text
from castsim.running.program_runs import run_loaded
from castsim.targets import Target

_LANES, _HALF = 64, 256
_APART = 12
"""Bundles from one instruction to the next: more than any latency."""


@dataclass(frozen=True, slots=True)
class TableRun:
    """What a program of look-ups gives, how long it takes, and its text."""

    results: NDArray[np.int32]
    cycles: int
    program: str


def table_on(values: NDArray[np.integer], entries: NDArray[np.integer], target: Target) -> TableRun:
    """Return TABLE of integers as a vector processor computes it; its input and output are tensors of i32.

    Args:
        values: i8 or i16, any shape.
        entries: 256 of i8, or 513 of i16, as `tosa_operators.table` has checked them.
        target: the processor.

    Raises:
        IllegalError: a target of tiles.
    """
    processor = tpc_target(target, f"{target.name} has no look-ups")
    count = -(-values.size // _LANES)
    given = np.zeros(count * _LANES, np.int32)
    given[: values.size] = values.reshape(-1)
    typed = Feature.TYPED_LOOKUP in processor.dialect.features
    program = table_program(entries, target.name, count, typed=typed)
    found = run_loaded(load_text(program, "table.tpc", target), {"x": given.reshape(count, _LANES)})
    results = np.asarray(found.outputs["y"]).reshape(-1).view(np.int32)[: values.size]
    return TableRun(results.reshape(values.shape), found.cycles, program)


def table_program(entries: NDArray[np.integer], target: str, vectors: int, *, typed: bool) -> str:
    """Return the program for so many vectors of 64 values; `typed`: look-ups say how many values they take."""
    if entries.size == _HALF:
        tables = [_declared("bytes", 1, "i32", entries.tolist(), _HALF)]
        body = [
            _vector("add.i32 V1, V0, 0x80"),
            f"{'lookup_1c' if typed else 'lookup'} BV32 V12, V1, 0x1; nop; nop; nop",
        ]
    else:
        wide = entries.astype(np.int64)
        pairs = np.stack((wide[:-1] * 128, np.diff(wide)), axis=1)
        tables = [
            _declared(name, number, "f32", [float(each) for each in half.reshape(-1)], _HALF, 2)
            for name, number, half in (("below", 1, pairs[:_HALF]), ("above", 2, pairs[_HALF:]))
        ]
        both = "lookup_2c" if typed else "lookup_c1c2"
        body = [
            _vector("add.i32 V1, V0, 0x8000"),
            _vector("shr.i32 V2, V1, 0x7"),
            _vector("and.i32 V3, V2, 0xff"),
            _vector("and.i32 V4, V1, 0x7f"),
            _vector("convert.i32 target_type=fp32 rhne V5, V4"),
            f"{both} BV32 D6, V3, 0x1; nop; nop; nop",
            f"{both} BV32 D8, V3, 0x2; nop; nop; nop",
            _vector("sel_less.i32 V10, V0, 0x0, V6, V8"),
            _vector("sel_less.i32 V11, V0, 0x0, V7, V9"),
            _vector("mac.f32 V10, V11, V5"),
            _vector("convert.f32 target_type=int32 rhne V12, V10"),
        ]
    head = [
        f"// castsim: target {target}",
        f"// castsim: tensor 0 x in i32 [{_LANES}, {vectors}]",
        f"// castsim: tensor 1 y out i32 [{_LANES}, {vectors}]",
        *tables,
        "// castsim: reg I0 = [0, 0, 0, 0, 0]",
        "// castsim: reg I1 = [0, 0, 0, 0, 0]",
    ]
    inner = ("ld_tnsr V0, 0x0, I0; nop; nop; nop", "nop; add.i32 b00010 I0, 0x1, I0; nop; nop", *body,
             "nop; nop; nop; st_tnsr 0x1, I1, V12", "nop; add.i32 b00010 I1, 0x1, I1; nop; nop")  # fmt: skip
    lines = [f"nop; loop 0, {vectors}, 1, <, End; nop; nop", _NOTHING, *_spread(inner)]
    return "\n".join((*head, *lines, "End:", "nop; halt; halt; nop", ""))


_NOTHING = "nop; nop; nop; nop"


def _vector(instruction: str) -> str:
    return f"nop; nop; {instruction}; nop"


def _spread(bundles: Iterable[str]) -> list[str]:
    return [line for bundle in bundles for line in (bundle, *[_NOTHING] * _APART)]


def _declared(
    name: str, number: int, element: str, values: list[int] | list[float], entries: int, each: int = 1
) -> str:
    shape = f"{each}, {entries}" if each > 1 else f"{entries}"
    return f"// castsim: table {name} {number} {element} [{shape}] = {', '.join(map(str, values))}"
