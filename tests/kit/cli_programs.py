"""Small `.pto` programs for the tests of the command line, written out, and changed piece by piece."""

from __future__ import annotations

from pathlib import Path

WIDE = "!pto.tile_buf<vec, 4x64xf32>"
SLIM = "!pto.tile_buf<vec, 4x64xf16>"

NARROW = f"""module attributes {{pto.target_arch = "a3"}} {{
  func.func @narrow(%x: !pto.ptr<f32>, %y: !pto.ptr<f16>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = arith.constant 4 : index
    %cols = arith.constant 64 : index
    %a_wide = arith.constant 0 : i64
    %a_slim = arith.constant 1024 : i64
    %vx = pto.make_tensor_view %x, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<4x64xf32>
    %vy = pto.make_tensor_view %y, shape = [%rows, %cols], strides = [%cols, %c1] : !pto.tensor_view<4x64xf16>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%rows, %cols] \
: !pto.tensor_view<4x64xf32> -> !pto.partition_tensor_view<4x64xf32>
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%rows, %cols] \
: !pto.tensor_view<4x64xf16> -> !pto.partition_tensor_view<4x64xf16>
    %wide = pto.alloc_tile addr = %a_wide : {WIDE}
    %slim = pto.alloc_tile addr = %a_slim : {SLIM}
    pto.tload ins(%px : !pto.partition_tensor_view<4x64xf32>) outs(%wide : {WIDE})
    pto.tcvt ins(%wide {{rmode = #pto<round_mode RINT>}} : {WIDE}) outs(%slim : {SLIM})
    pto.tstore ins(%slim : {SLIM}) outs(%py : !pto.partition_tensor_view<4x64xf16>)
    return
  }}
}}
"""
"""f32 -> f16 on one 4 x 64 tile at fixed addresses: tload on line 15, tcvt on 16, tstore on 17."""

TLOAD, TCVT, TSTORE = 15, 16, 17

LOOP = NARROW.replace(
    f"    pto.tload ins(%px : !pto.partition_tensor_view<4x64xf32>) outs(%wide : {WIDE})",
    "    scf.for %i = %c0 to %rows step %c1 {\n"
    f"    %j = arith.addi %i, %c1 : index\n"
    f"    pto.tload ins(%px : !pto.partition_tensor_view<4x64xf32>) outs(%wide : {WIDE})",
).replace("    pto.tstore", "    }\n    pto.tstore")
"""The same with load and cast four times over, and index arithmetic in the loop."""


def changed(old: str, new: str, text: str = NARROW) -> str:
    """The program with one piece replaced everywhere; the piece must be there."""
    assert old in text, old
    return text.replace(old, new)


def before(line: str, new: str, text: str = NARROW) -> str:
    """The program with a statement put before the first line that contains `line`."""
    lines = text.splitlines(keepends=True)
    place = next(number for number, found in enumerate(lines) if line in found)
    return "".join([*lines[:place], f"    {new}\n", *lines[place:]])


def written(folder: Path, text: str = NARROW, name: str = "kernel.pto") -> str:
    """Write a program and return its path."""
    path = folder / name
    path.write_text(text)
    return str(path)
