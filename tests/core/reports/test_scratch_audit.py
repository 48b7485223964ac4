"""The scratch auditor against published deviations of the sizing formulas; scratch of whole programs, given less."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from kit.command_output import document_of, err_of, file_of, out_of

from castsim.__main__ import main
from castsim.execution.tree import Lowered, operations
from castsim.isa.errors import IllegalError, ScratchError, TileError
from castsim.machines.mechanisms import compute_of, lowerer_of
from castsim.machines.strided import audit as audit_module
from castsim.machines.strided import plan as plan_module
from castsim.machines.strided.audit import UNEXPLAINED, ScratchAuditor
from castsim.machines.strided.kernel_sequence import KernelSequence
from castsim.reports import scratch
from castsim.reports.scratch import shape_count, shapes, sweep
from castsim.running.program_loading import load_program
from castsim.targets.loader import load_target

A2A3 = load_target("a2a3")


def blocks(size):
    return 32 * math.ceil(size / 32)


def published(pair, rows, cols, stride):
    """The formulas of the instruction page, typed anew."""
    if cols == 0:
        return 0
    lanes = min(cols, 64)
    if pair == ("f16", "i16"):
        return blocks(4 * lanes)
    if pair == ("f16", "i8"):
        return max(blocks(4 * lanes), 128 + blocks(2 * lanes))
    head = 4 * 64 * min(cols // 64, 255)
    tail = 32 * ((min(rows, 255) - 1) * stride // 8 + math.ceil(cols % 64 / 8)) if cols % 64 else 0
    return max(head, tail)


def touched(pair, rows, cols, stride):
    """Bytes behind the start of tmp that the sequences of docs/reference/a2a3.md section 3.4 touch, from its tables."""
    if not rows or not cols:
        return 0
    lanes = min(cols, 64)
    if pair == ("f16", "i16"):
        return 4 * lanes
    if pair == ("f16", "i8"):
        return max(4 * lanes, 128 + 2 * lanes)
    head = 256 * min(cols // 64, 255)
    tail = 32 * (stride % 65536 // 8) * (min(rows, 255) - 1) + 4 * (cols % 64) if cols % 64 else 0
    return max(head, tail)


PAIRS = [("f32", "i16"), ("f16", "i16"), ("f16", "i8")]


@pytest.mark.parametrize("pair", PAIRS, ids="->".join)
def test_audit_over_many_shapes(pair):
    auditor = ScratchAuditor(A2A3, *pair)
    step = 8 if pair[0] == "f32" else 16
    for rows in (0, 1, 2, 254, 255, 256, 600):
        for stride in (step, 64, 128, 256, 1024, 16384, 49152, 65536, 65536 + 64):
            for cols in {1, step - 1, step, 33, 63, 64, 65, 127, 128, 129, 200, 255 * 64, 255 * 64 + 1, 32640}:
                if cols > stride:
                    continue
                audit = auditor.audit(rows, cols, stride)
                assert audit.exact == touched(pair, rows, cols, stride), (rows, cols, stride)
                assert audit.in_blocks == blocks(audit.exact)
                assert audit.need.total == published(pair, rows, cols, stride), (rows, cols, stride)
                assert audit.explained
                assert audit.agrees == (audit.need.total == audit.in_blocks)


@pytest.mark.parametrize(
    ("pair", "shape", "formula", "exact", "reason"),
    [
        # The deviations of docs/reference/a2a3.md section 3.5, one by one.
        (("f32", "i16"), (1, 1, 8), 32, 4, "the last block is partly used"),
        (("f32", "i16"), (0, 64, 64), 256, 0, "no rows: nothing is issued"),
        (("f32", "i16"), (2, 1, 65536), 262176, 4, "the row stride is cut to 0 elements"),
        (("f16", "i16"), (0, 1, 16), 32, 0, "no rows: nothing is issued"),
        (("f16", "i16"), (3, 1, 16), 32, 4, "the last block is partly used"),
        (("f16", "i8"), (3, 1, 16), 160, 130, "the last block is partly used"),
        (("f16", "i8"), (0, 1, 16), 160, 0, "no rows: nothing is issued"),
    ],
)
def test_published_deviations(pair, shape, formula, exact, reason):
    audit = ScratchAuditor(A2A3, *pair).audit(*shape)
    assert (audit.need.total, audit.exact, audit.reasons) == (formula, exact, (reason,))


def test_sweep_counts_and_explains():
    found = sweep(ScratchAuditor(A2A3, "f32", "i16"), range(0, 301, 50), range(0, 129), range(8, 129, 8))
    assert found.shapes == 7 * sum(stride + 1 for stride in range(8, 129, 8))
    assert found.explained and found.formula_smaller == 0
    reasons = {difference.reason: difference.shapes for difference in found.differences}
    assert set(reasons) == {"the last block is partly used", "no rows: nothing is issued"}
    assert found.equal_to_the_byte + sum(reasons.values()) == found.shapes


@pytest.mark.parametrize("strides", [None, range(8, 65, 4), range(9, 10)])
def test_shapes_are_counted_without_being_made(strides):
    auditor = ScratchAuditor(A2A3, "f16", "i8")
    ranges = (range(0, 20, 3), range(0, 70, 7), strides)
    assert shape_count(auditor, *ranges) == len(list(shapes(auditor, *ranges)))


def test_a_large_sweep_says_how_large_it_is(monkeypatch, capsys):
    monkeypatch.setattr(scratch, "_MANY", 12)
    command = ["scratch", "f32", "i16", "--rows", "1:4", "--sweep", "--cols"]
    for cols, extra, expected in (("1:2", [], ""), ("1:3", [], "12 shapes to audit\n"), ("1:3", ["--quiet"], "")):
        assert err_of(capsys, [*command, cols, *extra], 0) == expected


def test_a_wrong_lowering_makes_the_audit_fail(monkeypatch, capsys):
    def wrong(sequence, plan, extent, dst, src, scratch):
        right = KernelSequence(sequence.target)
        plan_module.append_call(right, plan, extent, dst, src, scratch)
        for operation in operations(Lowered(0, right.close()), None):
            if operation.__class__.__name__ == "StridedInstruction" and operation.destination.address == scratch:
                wide = dataclasses.replace(operation.destination, repeat_stride=operation.destination.repeat_stride + 1)
                sequence.add((dataclasses.replace(operation, destination=wide),))
            else:
                sequence.add((operation,))

    monkeypatch.setattr(audit_module, "append_call", wrong)
    audit = ScratchAuditor(A2A3, "f32", "i16").audit(4, 200, 256)
    assert audit.reasons == (UNEXPLAINED,) and not audit.explained
    assert main(["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256", "--audit"]) == 1
    assert "disagree" in capsys.readouterr().out
    assert main(["scratch", "f32", "i16", "--rows", "4", "--cols", "200", "--row-stride", "256"]) == 0
    assert main(["scratch", "f32", "i16", "--rows", "1:4", "--cols", "100:200", "--row-stride", "256", "--sweep"]) == 1


def test_pairs_without_scratch_are_refused_with_those_that_use_it():
    with pytest.raises(IllegalError) as error:
        ScratchAuditor(A2A3, "f32", "i32")
    assert error.value.legal == ("f32 -> i16", "f16 -> i16", "f16 -> i8")


def test_json(capsys):
    found = document_of(capsys, "scratch", "f16", "i8", "--rows", "3", "--cols", "1", "--audit")
    assert (found["formula_bytes"], found["touched_bytes"], found["touched_bytes_in_blocks"]) == (160, 130, 160)
    assert [term["bytes"] for term in found["terms"]] == [32, 160]


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("scratch f32 i16 --rows x --cols 1", 2, "--rows x: neither a number nor a range"),
        ("scratch f32 i16 --rows 5:1 --cols 1 --sweep", 2, "the range is empty"),
        ("scratch f32 i16 --rows 1:5 --cols 1", 2, "a range needs --sweep"),
        ("scratch f32 i16 --rows 99999999999999 --cols 1", 2, "larger than any tile"),
        ("scratch f32 i16 --rows 1 --cols 9 --row-stride 8", 2, "--row-stride 8 is less than --cols 9"),
        ("scratch f32 i99 --rows 1 --cols 1", 2, "unknown format 'i99'"),
        ("scratch f32 i16 --rows 1 --cols 1 --rounding up", 2, "unknown rounding mode 'up'"),
        ("scratch f32 i8 --rows 1 --cols 1", 1, "no cast f32 -> i8"),
        ("scratch f32 i32 --rows 1 --cols 1", 1, "uses no scratch"),
        ("scratch f32 i16 --rows 1 --cols 1 --target a5", 1, "use no scratch tile\n  help: --target a2a3"),
        ("scratch f32 i16 --rows 1:100000 --cols 1:100000 --sweep", 1, "10000000000 shapes: 100000 rows, 100000 col"),
        ("scratch f32 i16 --rows 1:1000001:1 --cols 1 --sweep", 2, "--rows 1:1000001:1: larger than any tile"),
        ("scratch f32 i16 --rows 1 --cols 0:999999 --row-stride 8:1000000 --sweep", 1, "up to 1000000 shapes"),
    ],
)
def test_wrong_input(line, code, words, capsys):
    assert main(line.split()) == code
    assert words in capsys.readouterr().err


# -------------------------------------------------------------------------------------------- scratch of whole programs


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


def loaded(folder: Path, tmp_address: int, *, unsafe: bool):
    path = file_of(folder / "k.pto", program(tmp_address))
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
    v = np.arange(1000, 1064, dtype=np.int32)
    return {"x": x, "v": v, "y": np.zeros(800, np.int16), "w": np.zeros(64, np.int32)}


def test_a_small_tmp_tile_is_refused_and_the_missing_bytes_named(tmp_path):
    with pytest.raises(ScratchError) as error:
        loaded(tmp_path, 6400, unsafe=False)
    # Tail: 3 rows at the source pitch of 1024 bytes and one block; the tmp tile has 64 words.
    assert f"{3 * 1024 + 32 - 256} bytes too few" in error.value.message
    assert error.value.span is not None and error.value.span.line == 26


def test_unsafe_scratch_with_a_hole_over_the_neighbour(tmp_path, arrays):
    run = loaded(tmp_path, 6400, unsafe=True)
    # Head calls write 768 bytes from 6400 on; the tail's rows 32 bytes each at 6400, 7424, 8448 and 9472: beside the
    # victim at 8192 .. 8447, whose bytes lie in a hole.
    assert any("bytes short" in warning and "bytes outside all tiles" in warning for warning in run.executed.warnings)
    out = computed(run, arrays)
    assert np.array_equal(out["y"], np.trunc(arrays["x"]).astype(np.int64).astype(np.int16))
    assert np.array_equal(out["w"], arrays["v"])


def test_unsafe_scratch_really_overwrites(tmp_path, arrays):
    run = loaded(tmp_path, 7168, unsafe=True)  # 7168 + 1024: the tail's second row falls on the victim's first words
    assert any("into %victim (bytes 8192 .. 8223)" in warning for warning in run.executed.warnings)
    out = computed(run, arrays)
    spoiled = np.trunc(arrays["x"].reshape(4, 200)[1, 192:]).astype(np.int32)
    assert np.array_equal(out["w"][:8], spoiled)
    assert np.array_equal(out["w"][8:], arrays["v"][8:])


def test_beyond_the_buffer_is_refused_even_so(tmp_path):
    with pytest.raises(TileError, match="past the end of the buffer"):
        loaded(tmp_path, 196608 - 256, unsafe=True)


def test_report_on_a_program(tmp_path, capsys):
    path = file_of(tmp_path / "k.pto", program(6400))
    found = document_of(capsys, "scratch", str(path), code=1)
    assert found["casts"][0]["given_bytes"] == 256 and found["casts"][0]["needed_bytes"] == 3104
    assert not found["suffices"] and found["fits"]
    # wide 4096 + slim 2048 + victim 256, and the tmp tile at its smallest
    assert found["minimal_bytes"] == 4096 + 2048 + 256 + 3104
    assert out_of(capsys, ["scratch", "programs/f32_to_i16_partial.pto"]).startswith("Every tmp tile of ")
    assert "1 cast of k.pto is given too small a tmp tile." in out_of(capsys, ["scratch", str(path)], 1)
