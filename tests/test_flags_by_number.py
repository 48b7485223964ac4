"""set_flag_dyn and wait_flag_dyn: ids from values (docs/reference/pto.md section 5.8)."""

# A `.pto` statement stays on one line.

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.isa.errors import CastsimError
from castsim.isa.pto.pto_parser import parse
from castsim.isa.pto.pto_printer import print_program

VIEW, PART, TILE = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<1x64xf32>", "!pto.tile_buf<vec, 1x64xf32>"
LOOP = f"""func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) attributes {{pto.entry}} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c64 = arith.constant 64 : index
%two = arith.constant 2.0 : f32
%vx = pto.make_tensor_view %x, shape = [%n, %c64], strides = [%c64, %c1] : {VIEW}
%vy = pto.make_tensor_view %y, shape = [%n, %c64], strides = [%c64, %c1] : {VIEW}
%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 1x64xf32, count=2>
scf.for %s = %c0 to %c2 step %c1 {{
  pto.set_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
scf.for %i = %c0 to %n step %c1 {{
  %s = arith.remsi %i, %c2 : index
  %t = pto.multi_tile_get %m[%s] : !pto.multi_tile_buf<vec, 1x64xf32, count=2> -> {TILE}
  %px = pto.partition_view %vx, offsets = [%i, %c0], sizes = [%c1, %c64] : {VIEW} -> {PART}
  %py = pto.partition_view %vy, offsets = [%i, %c0], sizes = [%c1, %c64] : {VIEW} -> {PART}
  pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
  pto.tload ins(%px : {PART}) outs(%t : {TILE})
  pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
  pto.tmuls ins(%t, %two : {TILE}, f32) outs(%t : {TILE})
  pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
  pto.tstore ins(%t : {TILE}) outs(%py : {PART})
  pto.set_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
scf.for %s = %c0 to %c2 step %c1 {{
  pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]
}}
pto.barrier <PIPE_ALL>
return
}}
"""


@pytest.mark.parametrize("name", ["a2a3", "a5"])
@pytest.mark.parametrize("trips", [1, 2, 7])
def test_two_slots_take_turns(name: str, trips: int, tmp_path: Path) -> None:
    """In order on both engines, and faster than with one id, which lets a load wait for the store before it."""
    path = tmp_path / "k.pto"
    path.write_text(LOOP)
    x = np.random.default_rng(trips).standard_normal((trips, 64)).astype("<f4")
    made = run(path, name, inputs={"x": x}, args={"n": trips})
    assert np.array_equal(made.outputs["y"].view("<f4").reshape(trips, 64), 2 * x)
    assert not made.races
    assert made.cycles == run(path, name, inputs={"x": x}, args={"n": trips}, engine="event").cycles
    path.write_text(LOOP.replace("%i, %c2 : index", "%i, %c1 : index").replace("%c0 to %c2", "%c0 to %c1"))
    one = run(path, name, inputs={"x": x}, args={"n": trips})
    assert (one.cycles > made.cycles) is (trips > 1)


def test_a_missing_flag_is_found(tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text("\n".join(line for line in LOOP.splitlines() if "_dyn" not in line))
    assert run(path, "a5", timing_only=True, args={"n": 5}, races="report").races


def test_they_are_printed_as_they_are_read() -> None:
    parsed = parse(LOOP, "k.pto")
    assert parse(print_program(parsed), "k.pto") == parsed


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("%s = arith.remsi %i, %c2 : index", "%s = arith.addi %c64, %i : index", "event"),
        (
            "pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]",
            "pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, <EVENT_ID0>]",
            "expected a value",
        ),
        (
            "pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %s]",
            "pto.wait_flag_dyn[<PIPE_MTE3>, <PIPE_MTE2>, %two]",
            "used as index",
        ),
    ],
)
def test_refusals(before: str, after: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "k.pto"
    path.write_text(
        LOOP.replace(before, after).replace("%t = pto.multi_tile_get %m[%s]", "%t = pto.multi_tile_get %m[%c0]")
    )
    with pytest.raises(CastsimError, match=message) as caught:
        run(path, "a5", timing_only=True, args={"n": 3})
    assert caught.value.span is not None
