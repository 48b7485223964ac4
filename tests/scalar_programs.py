"""Programs that read and write elements: what they begin with, and how they are run in tests."""

from __future__ import annotations

from pathlib import Path

from execution_programs import kernel

from castsim import run
from castsim.running import Result

ROW = "!pto.tile_buf<vec, 1x16xi32>"
PART = "!pto.partition_tensor_view<1x16xi32>"


def ran(tmp_path: Path, text: str, **options: object) -> Result:
    """Run a program by both engines, which have to agree, and return what the default one found."""
    path = tmp_path / "k.pto"
    path.write_text(text)
    fast = run(path, **options)  # type: ignore[arg-type]
    slow = run(path, **options, engine="event")  # type: ignore[arg-type]
    assert fast.cycles == slow.cycles
    assert {name: pipe.causes for name, pipe in fast.pipes.items()} == {
        name: pipe.causes for name, pipe in slow.pipes.items()
    }
    return fast


HEAD = f"""
%k0 = arith.constant 0 : i32
%k3 = arith.constant 3 : i32
%k7 = arith.constant 7 : i32
%k15 = arith.constant 15 : i32
%w = pto.make_tensor_view %t, shape = [%c1, %c16], strides = [%c16, %c1] : !pto.tensor_view<?x?xi32>
%p = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c1, %c16] : !pto.tensor_view<?x?xi32> -> {PART}
%a = pto.alloc_tile : {ROW}
pto.tload ins(%p : {PART}) outs(%a : {ROW})
"""

LOAD = "%r = pto.load_scalar %n[%c0] : !pto.ptr<i32> -> i32\n%e = arith.index_cast %r : i32 to index"
STEP = f"pto.tload ins(%p : {PART}) outs(%a : {ROW})"
LENGTH = kernel(
    HEAD + LOAD + f"\nscf.for %i = %c0 to %e step %c1 {{\n{STEP}\n}}", "%t: !pto.ptr<i32>, %n: !pto.ptr<i32>"
)
