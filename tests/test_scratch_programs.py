"""Scratch of whole programs: the smallest tmp tiles, and what happens when a chip is given a smaller one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from castsim.__main__ import main
from castsim.isa.errors import ScratchError, TileError
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.running import load_program

SHAPE = "4x256"
VALID = "valid=4x200"


def program(tmp_address: int, tmp_cols: int = 64) -> str:
    """f32 -> i16 through a tmp tile at a given place; a victim tile of 1 x 64 i32 lies at byte 8192."""
    tile = f"!pto.tile_buf<vec, 1x{tmp_cols}xi32>"
    return f"""
func.func @k(%x: !pto.ptr<f32>, %v: !pto.ptr<i32>, %y: !pto.ptr<i16>, %w: !pto.ptr<i32>) attributes {{pto.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c200 = arith.constant 200 : index
  %a0 = arith.constant 0 : i64
  %a1 = arith.constant 4096 : i64
  %a2 = arith.constant {tmp_address} : i64
  %a3 = arith.constant 8192 : i64
  %vx = pto.make_tensor_view %x, shape = [%c4, %c200], strides = [%c200, %c1] : !pto.tensor_view<4x200xf32>
  %vv = pto.make_tensor_view %v, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64xi32>
  %vy = pto.make_tensor_view %y, shape = [%c4, %c200], strides = [%c200, %c1] : !pto.tensor_view<4x200xi16>
  %vw = pto.make_tensor_view %w, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<1x64xi32>
  %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c4, %c200] : !pto.tensor_view<4x200xf32> -> !pto.partition_tensor_view<4x200xf32>
  %pv = pto.partition_view %vv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<1x64xi32> -> !pto.partition_tensor_view<1x64xi32>
  %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c4, %c200] : !pto.tensor_view<4x200xi16> -> !pto.partition_tensor_view<4x200xi16>
  %pw = pto.partition_view %vw, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<1x64xi32> -> !pto.partition_tensor_view<1x64xi32>
  %wide = pto.alloc_tile addr = %a0 : !pto.tile_buf<vec, {SHAPE}xf32, {VALID}>
  %slim = pto.alloc_tile addr = %a1 : !pto.tile_buf<vec, {SHAPE}xi16, {VALID}>
  %tmp = pto.alloc_tile addr = %a2 : {tile}
  %victim = pto.alloc_tile addr = %a3 : !pto.tile_buf<vec, 1x64xi32>
  pto.tload ins(%px : !pto.partition_tensor_view<4x200xf32>) outs(%wide : !pto.tile_buf<vec, {SHAPE}xf32, {VALID}>)
  pto.tload ins(%pv : !pto.partition_tensor_view<1x64xi32>) outs(%victim : !pto.tile_buf<vec, 1x64xi32>)
  pto.tcvt ins(%wide, %tmp {{rmode = #pto<round_mode TRUNC>, sat_mode = #pto<saturation_mode OFF>}} : !pto.tile_buf<vec, {SHAPE}xf32, {VALID}>, {tile}) outs(%slim : !pto.tile_buf<vec, {SHAPE}xi16, {VALID}>)
  pto.tstore ins(%slim : !pto.tile_buf<vec, {SHAPE}xi16, {VALID}>) outs(%py : !pto.partition_tensor_view<4x200xi16>)
  pto.tstore ins(%victim : !pto.tile_buf<vec, 1x64xi32>) outs(%pw : !pto.partition_tensor_view<1x64xi32>)
  return
}}
"""  # noqa: E501 - as a program is written


def loaded(path: Path, *, unsafe: bool):
    return load_program(path, "a2a3", None, {}, make_lowerer=lambda target: lowerer_of(target, unsafe_scratch=unsafe))


def computed(program_, arrays):
    """Run the operations on bytes: argument name -> array in, arrays out."""
    memory = {name: array.copy().view(np.uint8).reshape(-1) for name, array in arrays.items()}
    buffer = np.zeros(program_.target.memories["ub"].capacity_bytes, np.uint8)
    compute_of(program_.target)(program_.tree, buffer, memory)
    return {name: memory[name].view(arrays[name].dtype) for name in arrays}


@pytest.fixture
def arrays():
    x = np.linspace(-40000, 40000, 800, dtype=np.float32)
    return {
        "x": x,
        "v": np.arange(1000, 1064, dtype=np.int32),
        "y": np.zeros(800, np.int16),
        "w": np.zeros(64, np.int32),
    }


def test_a_small_tmp_tile_is_refused_and_the_missing_bytes_named(tmp_path):
    path = tmp_path / "k.pto"
    path.write_text(program(6400))
    with pytest.raises(ScratchError) as error:
        loaded(path, unsafe=False)
    # Tail: 3 rows at the source pitch of 1024 bytes and one block; the tmp tile has 64 words.
    assert f"{3 * 1024 + 32 - 256} bytes missing" in error.value.message
    assert error.value.span is not None and error.value.span.line == 26


def test_unsafe_scratch_with_a_hole_over_the_neighbour(tmp_path, arrays):
    path = tmp_path / "k.pto"
    path.write_text(program(6400))
    run = loaded(path, unsafe=True)
    # Head calls write 768 bytes from 6400 on; the tail's rows 32 bytes each at 6400, 7424, 8448 and 9472: beside the
    # victim at 8192 .. 8447, whose bytes lie in a hole.
    assert any("bytes short" in warning and "no tile owns" in warning for warning in run.executed.warnings)
    out = computed(run, arrays)
    assert np.array_equal(out["y"], np.trunc(arrays["x"]).astype(np.int64).astype(np.int16))
    assert np.array_equal(out["w"], arrays["v"])


def test_unsafe_scratch_really_overwrites(tmp_path, arrays):
    path = tmp_path / "k.pto"
    path.write_text(program(7168))  # 7168 + 1024: the tail's second row falls on the victim's first words
    run = loaded(path, unsafe=True)
    assert any("into %victim (bytes 8192 .. 8223)" in warning for warning in run.executed.warnings)
    out = computed(run, arrays)
    spoiled = np.trunc(arrays["x"].reshape(4, 200)[1, 192:]).astype(np.int32)
    assert np.array_equal(out["w"][:8], spoiled)
    assert np.array_equal(out["w"][8:], arrays["v"][8:])


def test_beyond_the_buffer_is_refused_even_so(tmp_path):
    path = tmp_path / "k.pto"
    path.write_text(program(196608 - 256))
    with pytest.raises(TileError, match="past the end of the buffer"):
        loaded(path, unsafe=True)


def test_report_on_a_program(tmp_path, capsys):
    path = tmp_path / "k.pto"
    path.write_text(program(6400))
    assert main(["scratch", str(path), "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["casts"][0]["given_bytes"] == 256 and found["casts"][0]["needed_bytes"] == 3104
    assert not found["suffices"] and found["fits"]
    # wide 4096 + slim 2048 + victim 256, and the tmp tile at its smallest
    assert found["minimal_bytes"] == 4096 + 2048 + 256 + 3104
    assert main(["scratch", "programs/f32_to_i16_partial.pto"]) == 0
    assert "0 to spare" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", ["scratch f32", "scratch f32 i16 i8 --rows 1 --cols 1", "scratch f32 i16", "scratch x.pto"]
)
def test_wrong_input(line, capsys):
    assert main(line.split()) == 2
    assert capsys.readouterr().err.startswith("error: ")
