"""`castsim expand` of programs that decide at run time: conditions, loops, extents and scalars stay in the text."""

# A `.pto` statement stays on one line.
# ruff: noqa: E501

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from kit.paths import PROGRAMS
from tools.expand.expand_differences import KERNELS_TIMES
from tools.expand.micro_line_checks import check

from castsim.isa.errors import IllegalError
from castsim.running.loaded import LoadRequest
from castsim.running.program_runs import run
from castsim.tools.expand.expansion import expand

KERNELS = PROGRAMS / "kernels"
F32 = "!pto.tile_buf<vec, 16x256xf32, valid=?x?>"
F16 = "!pto.tile_buf<vec, 16x256xf16, valid=?x?>"
COLUMN = "!pto.tile_buf<vec, 16x1xf32, valid=?x1, blayout=col_major>"
BODIES = {
    "if": f"""
%seven = arith.constant 7 : i32
%big = arith.cmpi sgt, %k, %seven : i32
scf.if %big {{
  pto.tmuls ins(%t, %s : {F32}, f32) outs(%t : {F32})
}} else {{
  pto.tadds ins(%t, %s : {F32}, f32) outs(%t : {F32})
}}""",
    "for": f"""
%n = arith.index_cast %k : i32 to index
scf.for %i = %c0 to %n step %c2 {{
  pto.tsubs ins(%t, %s : {F32}, f32) outs(%t : {F32})
}}""",
    "for carrying": f"""
%n = arith.index_cast %k : i32 to index
%last = scf.for %i = %c0 to %n step %c3 iter_args(%f = %s) -> (f32) {{
  pto.tmuls ins(%t, %f : {F32}, f32) outs(%t : {F32})
  %g = arith.addf %f, %s : f32
  scf.yield %g : f32
}}
pto.tmaxs ins(%t, %last : {F32}, f32) outs(%t : {F32})""",
    "while": f"""
%zero = arith.constant 0 : i32
%three = arith.constant 3 : i32
%last = scf.while (%a = %k) : (i32) -> (i32) {{
  %go = arith.cmpi sgt, %a, %zero : i32
  scf.condition(%go) %a : i32
}} do {{
^bb0(%b: i32):
  pto.tdivs ins(%t, %s : {F32}, f32) outs(%t : {F32})
  %less = arith.subi %b, %three : i32
  scf.yield %less : i32
}}""",
    "set_validshape": f"""
%half = arith.ceildivsi %rows, %c2 : index
pto.set_validshape %t, %half, %cols : {F32}
pto.tmuls ins(%t, %s : {F32}, f32) outs(%t : {F32})
pto.set_validshape %t, %rows, %cols : {F32}""",
    "rows": f"""
%sums = pto.alloc_tile valid_row = %rows : {COLUMN}
%w = pto.alloc_tile valid_row = %rows valid_col = %cols : {F32}
pto.trowmax ins(%t, %w : {F32}, {F32}) outs(%sums : {COLUMN})
pto.trowexpandsub ins(%t, %sums : {F32}, {COLUMN}) outs(%w : {F32})
pto.texp ins(%w : {F32}) outs(%t : {F32})""",
}


def program(body: str) -> str:
    """Load, the body, a cast, a store, with extents that arguments decide."""
    return f"""module attributes {{pto.target_arch = "a5"}} {{ func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f16>, %rows: index, %cols: index, %k: i32, %s: f32) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c3 = arith.constant 3 : index
%c16 = arith.constant 16 : index
%c256 = arith.constant 256 : index
%t = pto.alloc_tile valid_row = %rows valid_col = %cols : {F32}
%h = pto.alloc_tile valid_row = %rows valid_col = %cols : {F16}
%vx = pto.make_tensor_view %x, shape = [%c16, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf32>
%vy = pto.make_tensor_view %y, shape = [%c16, %c256], strides = [%c256, %c1] : !pto.tensor_view<?x?xf16>
%px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x?xf32>
%py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf16> -> !pto.partition_tensor_view<?x?xf16>
pto.tload ins(%px : !pto.partition_tensor_view<?x?xf32>) outs(%t : {F32})
{body}
pto.tcvt ins(%t : {F32}) outs(%h : {F16})
pto.tstore ins(%h : {F16}) outs(%py : !pto.partition_tensor_view<?x?xf16>)
return
}} }}
"""


def same_bytes(tiles: Path, micro: Path, inputs: dict[str, str], args: dict[str, int | float]) -> tuple[int, int]:
    """Compare what both store; return their cycles."""
    whole, again = (run(path, inputs=inputs, args=args) for path in (tiles, micro))
    for name, value in whole.outputs.items():
        stored = again.outputs[name].reshape(-1)
        assert value.reshape(-1)[: stored.size].tobytes() == stored.tobytes()
        assert not np.any(value.reshape(-1)[stored.size :].view(np.uint8))
    return whole.cycles, again.cycles


@pytest.mark.parametrize("name", BODIES)
def test_what_arguments_decide_stays_in_the_text(name: str, tmp_path: Path) -> None:
    tiles, micro = tmp_path / "tiles.pto", tmp_path / "micro.pto"
    tiles.write_text(program(BODIES[name]))
    text = expand(tiles, LoadRequest())
    check(text)
    micro.write_text(KERNELS_TIMES + text)
    for rows, cols, k, s in ((16, 256, 9, 1.5), (7, 100, 3, -2.0), (2, 1, 0, 0.5), (15, 65, 20, 1.1)):
        whole, again = same_bytes(tiles, micro, {"x": "random:4"}, {"rows": rows, "cols": cols, "k": k, "s": s})
        if name != "rows":  # reductions: see test_expand
            # The text spreads the divisor once, not in every row; casts of one vector a row have published cycles
            # without a turn of the loop, whose trips only the run knows here.
            spreads = rows * max(0, -(-k // 3)) if name == "while" else 0
            turns = 4 * rows if cols <= 128 else 2
            assert -5 - spreads <= again - whole <= turns - spreads
    assert {"for carrying": "scf.for", "rows": "", "set_validshape": ""}.get(name, f"scf.{name}") in text
    for kept in ("%rows: index", "%cols: index", "%k: i32", "%s: f32"):
        assert kept in text


def test_settled_arguments_need_not_be_given_again(tmp_path: Path) -> None:
    """With --arg for all, what they decide is decided; both texts give the same bytes."""
    tiles = tmp_path / "tiles.pto"
    tiles.write_text(program(BODIES["for"]))
    args: dict[str, int | float] = {"rows": 5, "cols": 70, "k": 4, "s": 0.25}
    texts = [expand(tiles, LoadRequest(args=given)) for given in ({}, args)]
    assert "= %c0 to %rows" in texts[0] or "to %rows" in texts[0]
    assert "to %rows" not in texts[1]
    found = []
    for number, text in enumerate(texts):
        micro = tmp_path / f"{number}.pto"
        micro.write_text(text)
        found.append(run(micro, inputs={"x": "random:4"}, args=args).outputs["y"].tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("name", "settings", "inputs"),
    [
        ("softmax_prepare", [{"scale": 0.25}, {"scale": -1.5}], ("scores",)),
        ("rms_norm", [{"eps": 1e-6}], ("src", "gamma")),
        ("serving/norm_quantise", [{"rows": rows, "eps": 1e-6, "top": 448.0} for rows in (1, 16, 20)],
         ("x", "residual", "gamma")),
    ],
)  # fmt: skip
def test_kernels_give_their_bytes_for_every_argument(name, settings, inputs, tmp_path) -> None:
    tiles, micro = KERNELS / f"{name}_a5.pto", tmp_path / "micro.pto"
    micro.write_text(expand(tiles, LoadRequest()))
    given = {each: f"random:{number}" for number, each in enumerate(inputs)}
    for args in settings:
        whole, again = same_bytes(tiles, micro, given, args)
        assert abs(again - whole) <= 0.02 * whole  # launches of the text meet no transfer at the ports of the buffer


def test_rotary_cache_writes_where_its_position_says(tmp_path: Path) -> None:
    tiles, micro = KERNELS / "rotary_cache_a5.pto", tmp_path / "micro.pto"
    micro.write_text(expand(tiles, LoadRequest()))
    given = {"k": "random:1", "cos": "random:2", "sin": "random:3"}
    found = []
    for position in (0, 2):
        whole = run(tiles, inputs=given, args={"position": position}).outputs["cache"].reshape(-1)
        again = run(micro, inputs=given, args={"position": position}).outputs["cache"].reshape(-1)
        assert whole[: again.size].tobytes() == again.tobytes()
        found.append(again.tobytes())
    assert all(one != two for one, two in pairwise(found))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (f"pto.tcmps ins(%t, %s : {F32}, f32) outs(%m : {{M}})", "its loops follow %rows and %cols"),
        ("%v = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32", "functions of vector instructions do not support it"),
    ],
)
def test_what_needs_settled_arguments_says_so_where_it_stands(body: str, said: str, tmp_path: Path) -> None:
    mask = "!pto.tile_buf<vec, 16x256xi8, valid=?x?>"
    head = f"%m = pto.alloc_tile valid_row = %rows valid_col = %cols : {mask}\n" if "%m" in body else ""
    path = tmp_path / "x.pto"
    path.write_text(program(head + body.replace("{M}", mask)))
    with pytest.raises(IllegalError) as caught:
        expand(path, LoadRequest())
    assert said in str(caught.value)
    assert caught.value.span is not None
    word = body.partition("pto.")[2].split()[0]
    assert f"pto.{word}" in path.read_text().splitlines()[caught.value.span.line - 1]
