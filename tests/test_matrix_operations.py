"""Programs that also use the matrix unit: its operations are taken for nothing, and compute nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from castsim import run

VEC, MAT, ACC = (f"!pto.tile_buf<{place}, 64x64xf32>" for place in ("vec", "mat", "acc"))
PART = "!pto.partition_tensor_view<64x64xf32>"
VIEW = "!pto.tensor_view<?x?xf32>"


def program(matrix: bool) -> str:
    extra = f"""
    %m = pto.alloc_tile : {MAT}
    %a = pto.alloc_tile : {ACC}
    pto.tload ins(%p : {PART}) outs(%m : {MAT})
    pto.tmatmul ins(%m, %m : {MAT}, {MAT}) outs(%a : {ACC})
    pto.tmov ins(%a : {ACC}) outs(%m : {MAT})
"""
    return f"""
module attributes {{pto.target_arch = "a3"}} {{
  func.func @k(%x: !pto.ptr<f32>) attributes {{pto.entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %v = pto.make_tensor_view %x, shape = [%c64, %c64], strides = [%c64, %c1] : {VIEW}
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c64, %c64] : {VIEW} -> {PART}
    %t = pto.alloc_tile : {VEC}
    pto.tload ins(%p : {PART}) outs(%t : {VEC}){extra if matrix else ""}
    pto.texp ins(%t : {VEC}) outs(%t : {VEC})
    pto.tstore ins(%t : {VEC}) outs(%p : {PART})
    return
  }}
}}
"""


def written(folder: Path, *, matrix: bool) -> Path:
    path = folder / f"{matrix}.pto"
    path.write_text(program(matrix))
    return path


def test_values_beside_them_are_computed(tmp_path: Path) -> None:
    found, plain = (run(written(tmp_path, matrix=matrix), inputs={"x": "random:3"}) for matrix in (True, False))
    assert not found.partial
    assert found.outputs["x"].tobytes() == plain.outputs["x"].tobytes()


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_time_takes_them_for_nothing_and_says_so(target: str, tmp_path: Path) -> None:
    whole = run(written(tmp_path, matrix=True), target, timing_only=True)
    plain = run(written(tmp_path, matrix=False), target, timing_only=True)
    assert whole.cycles == plain.cycles
    named = [warning for warning in whole.warnings if "no cycles are counted" in warning]
    assert [next(op for op in ("tload", "tmatmul", "tmov") if f"pto.{op} " in warning) for warning in named] == [
        "tload",
        "tmatmul",
        "tmov",
    ]
    assert not plain.warnings
