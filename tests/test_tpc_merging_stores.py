"""Stores that merge with memory: sums, differences, extremes, in the types that the word names."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from castsim.isa.errors import IllegalError
from castsim.machines.vliw.assembled import assemble, execute
from castsim.targets import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling import schedule

# tpc-defs.h by the facts page: type | op << 4 | location << 7 | rmw << 8 (gaudi2) or << 6 (before).
TYPES = {"i8": 0, "i16": 1, "i32": 2, "u8": 3, "u16": 4, "u32": 5, "bf16": 6, "f32": 7}
NUMPY = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
         "bf16": ml_dtypes.bfloat16, "f32": np.float32}  # fmt: skip
OPERATIONS = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}
FLAG = {"gaudi": 6, "gaudi2": 8}


def stored(target_name: str, kind: str, word: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    target = load_target(target_name)
    assert isinstance(target, VliwTarget)
    where = "S29" if target_name == "gaudi" else "ST_RMW_REG"
    move = f"mov.i32 S29, {hex(word)}" if target_name == "gaudi" else f"mov.i32 %s.w, {hex(word)}\nmov {where}, %s.w"
    lanes = len(x)
    text = f"""// castsim: target {target_name}
// castsim: tensor 0 x in {kind} [{lanes}]
// castsim: tensor 1 y inout {kind} [{lanes}]
// castsim: reg %i.c = [0, 0, 0, 0, 0]
{move}
ld_tnsr %v.x, 0x0, %i.c
st_tnsr rmw_sel 0x1, %i.c, %v.x, {where}
st_tnsr rmw_sel 0x1, %i.c, %v.x, {where}
halt
"""
    program = assemble(schedule(text, "t.tpc", target).text, "t.tpc", target, {})
    ran = execute(program, {"x": x, "y": y}, values=True, checked=True, max_bundles=1000)
    assert not ran.stale_reads
    return np.asarray(ran.outputs["y"])


@pytest.mark.parametrize("target", FLAG)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_memory_becomes_memory_and_value_joined_twice(target: str, operation: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    lanes = 256 // np.dtype(NUMPY[kind]).itemsize - 3
    x, y = ((rng.integers(-90, 90, lanes) / (1 if kind[0] in "iu" else 4)).astype(NUMPY[kind]) for _ in range(2))
    word = TYPES[kind] | list(OPERATIONS).index(operation) << 4 | 1 << FLAG[target]
    with np.errstate(over="ignore"):
        once = OPERATIONS[operation](y, x)
        want = OPERATIONS[operation](once, x)
    found = stored(target, kind, word, x, y)
    assert np.array_equal(found.view(np.uint8), want.astype(NUMPY[kind]).view(np.uint8))


def test_another_type_and_an_unknown_operation_are_refused() -> None:
    x = np.zeros(8, np.float32)
    with pytest.raises(IllegalError, match="a merging store of i8 to a tensor of f32"):
        stored("gaudi2", "f32", 1 << 8, x, x)
    with pytest.raises(IllegalError, match="operation 4"):
        stored("gaudi2", "f32", 7 | 4 << 4 | 1 << 8, x, x)
