"""The fourteen casts that TileLang's authors ran on a device through logical registers (`pto.vmi`), as programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_tilelang import CASES

import castsim

ELEMENTS = {
    "float32": ("f32", 4), "float16": ("f16", 2), "bfloat16": ("bf16", 2), "float8_e4m3fn": ("f8E4M3FN", 1),
    "int32": ("i32", 4), "int16": ("i16", 2), "int8": ("i8", 1), "uint8": ("ui8", 1),
}  # fmt: skip
TEXT = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @cast(%x: !pto.ptr<{a}, gm>, %y: !pto.ptr<{b}, gm>) attributes {{pto.kernel}} {{
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %behind = arith.constant 4096 : i64
    %from = arith.constant {read} : i64
    %to = arith.constant {written} : i64
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %in = pto.castptr %c0_i64 : i64 -> !pto.ptr<{a}, ub>
    %out = pto.castptr %behind : i64 -> !pto.ptr<{b}, ub>
    pto.mte_gm_ub %x, %in, %c0_i64, %from nburst(%c1_i64, %from, %from)
      : !pto.ptr<{a}, gm>, !pto.ptr<{a}, ub>, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.vecscope {{
      %m = pto.vmi.create_mask %c64 : index -> !pto.vmi.mask<64xpred>
      scf.for %i = %c0 to %c128 step %c64 {{
        %v = pto.vmi.vload %in[%i] : !pto.ptr<{a}, ub> -> !pto.vmi.vreg<64x{a}>
        %r = pto.vmi.vcvt %v, %m {{rounding = "R"{saturate}}}
          : !pto.vmi.vreg<64x{a}>, !pto.vmi.mask<64xpred> -> !pto.vmi.vreg<64x{b}>
        pto.vmi.vstore %r, %out[%i], %m : !pto.vmi.vreg<64x{b}>, !pto.ptr<{b}, ub>, !pto.vmi.mask<64xpred>
      }}
    }}
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %out, %y, %to nburst(%c1_i64, %to, %to)
      : !pto.ptr<{b}, ub>, !pto.ptr<{b}, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }}
}}
"""
EXACT = ("e4m3 f32", "f16 f32", "i32 f32", "i16 i32", "i8 i16")
"""Casts that cannot leave the range of what they make, in any of their steps."""


@pytest.mark.parametrize("name", CASES)
def test_casts_through_logical_registers_are_those_of_numpy(name: str, tmp_path: Path) -> None:
    path, _, _, given, source, result = CASES[name]
    (a, wide), (b, narrow) = ELEMENTS[path[0]], ELEMENTS[path[-1]]
    saturate = "" if name in EXACT else ', saturate = "SAT"'
    (tmp_path / "cast.pto").write_text(
        TEXT.format(a=a, b=b, read=128 * wide, written=128 * narrow, saturate=saturate), encoding="utf-8"
    )
    x = given(128, source)
    found = castsim.run(tmp_path / "cast.pto", inputs={"x": x}).outputs["y"]
    assert found.tobytes() == x.astype(np.float32).astype(result).tobytes()
