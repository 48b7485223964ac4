"""Elements that the scalar unit of a program of vector instructions reads and writes: values, path, order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from castsim import run
from castsim.isa.errors import IllegalError, RaceError, ReadError, TileError, WarningKind, of_kind

TEXT = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f32, gm>, %s: !pto.ptr<i32, gm>, %f: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>,
               %z: !pto.ptr<i32, gm>) attributes {pto.kernel} {
    %o = arith.constant 0 : i64
    %p = arith.constant 65536 : i64
    %one = arith.constant 1 : i64
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %step = arith.constant 64 : index
    %rows = pto.load_scalar %s[%c0] : !pto.ptr<i32, gm> -> i32
    %scale = pto.load_scalar %f[%c1] : !pto.ptr<f32, gm> -> f32
    %n = arith.index_cast %rows : i32 to index
    %w = arith.constant 256 : i64
    %r64 = arith.extsi %rows : i32 to i64
    %length = arith.muli %r64, %w : i64
    %in = pto.castptr %o : i64 -> !pto.ptr<f32, ub>
    %out = pto.castptr %p : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %x, %in, %o, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.vecscope {
      %m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
      scf.for %i = %c0 to %n step %c1 {
        %at = arith.muli %i, %step : index
        %v = pto.vlds %in[%at] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
        %q = pto.vmuls %v, %scale, %m : !pto.vreg<64xf32>, f32, !pto.mask<b32> -> !pto.vreg<64xf32>
        pto.vsts %q, %out[%at], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>
      }
    }
    pto.set_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_S", "EVENT_ID0"]
    %first = pto.load_scalar %out[%c1] : !pto.ptr<f32, ub> -> f32
    pto.store_scalar %first, %out[%c0] : !pto.ptr<f32, ub>, f32
    pto.store_scalar %rows, %z[%c1] : !pto.ptr<i32, gm>, i32
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.set_flag["PIPE_S", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_S", "PIPE_MTE3", "EVENT_ID0"]
    pto.mte_ub_gm %out, %y, %length nburst(%one, %length, %length)
      : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    return
  }
}
"""
"""As many rows as %s[0] says, times %f[1]; the second element then also stands for the first, and %s[0] in %z[1]."""

X = np.arange(192, dtype=np.float32)
INPUTS = {"x": X, "s": np.array([3], np.int32), "f": np.array([9, 2.5], np.float32)}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "k.pto"
    file.write_text(TEXT)
    return file


@pytest.mark.parametrize("engine", ["fast", "event"])
def test_elements_decide_sizes_and_values(program: Path, engine: str) -> None:
    result = run(program, inputs=INPUTS, engine=engine)
    expected = X * np.float32(2.5)
    expected[0] = expected[1]
    assert np.array_equal(result.outputs["y"], expected)
    assert result.outputs["z"].tolist() == [0, 3]
    assert not result.warnings
    launch = next(each for each in result.timing.operations if each.name == "vecscope")
    assert launch.end - launch.start == 22 + 2 + 6 + (8 - 3) + 9 + 12 + 2  # three trips; vmuls: VfSim's latency


def test_the_number_of_random_elements_follows_from_what_is_read(program: Path) -> None:
    result = run(program, inputs={**INPUTS, "x": "random:0"})
    assert result.outputs["y"].size == 192
    assert run(program, inputs=INPUTS, timing_only=True).cycles == result.cycles


def test_without_inputs_elements_are_taken_for_0_and_that_is_said(program: Path) -> None:
    result = run(program, timing_only=True)
    assert [each.text.split()[3] for each in of_kind(result.warnings, WarningKind.DEFAULT_READ)] == ["%s:", "%f:"]
    with pytest.raises(ReadError, match="no input given"):
        run(program)


def test_elements_may_be_given_alone(program: Path) -> None:
    given = run(program, args={"s[0]": 3}, timing_only=True)
    assert given.cycles == run(program, inputs=INPUTS, timing_only=True).cycles
    outputs = run(program, inputs={"x": X}, args={"s[0]": 3, "f[1]": 2.5}).outputs
    assert np.array_equal(outputs["y"][1:], X[1:] * np.float32(2.5))


def test_a_function_of_tiles_has_no_pointers_into_the_buffer(tmp_path: Path) -> None:
    file = tmp_path / "k.pto"
    file.write_text(
        """func.func @k(%x: !pto.ptr<f32, ub>) {
        %c0 = arith.constant 0 : index
        %v = pto.load_scalar %x[%c0] : !pto.ptr<f32, ub> -> f32
        return
        }"""
    )
    with pytest.raises(IllegalError, match="tgetval") as error:
        run(file, "a5", timing_only=True)
    assert error.value.span is not None
    assert error.value.span.line == 3


@pytest.mark.parametrize(("one", "other"), [("V", "S"), ("S", "MTE3")])
def test_elements_race_without_flags(program: Path, one: str, other: str) -> None:
    flag = f'_flag["PIPE_{one}", "PIPE_{other}", "EVENT_ID0"]'
    program.write_text("\n".join(line for line in TEXT.splitlines() if flag not in line))
    with pytest.raises(RaceError, match="_scalar"):
        run(program, inputs=INPUTS)


@pytest.mark.parametrize(
    ("old", "new", "kind", "said"),
    [
        ("%z[%c1] :", "%z[%before] :", TileError, "4 bytes before %z"),
        ("%out[%c1] :", "%out[%far] :", TileError, "outside the buffer"),
        (
            "pto.vecscope {",
            "pto.vecscope { %no = pto.load_scalar %f[%c0] : !pto.ptr<f32, gm> -> f32",
            IllegalError,
            "inside",
        ),
    ],
)
def test_refusals(program: Path, old: str, new: str, kind: type[Exception], said: str) -> None:
    constants = "%before = arith.constant -1 : index\n%far = arith.constant 65536 : index\n%rows ="
    program.write_text(TEXT.replace("%rows =", constants, 1).replace(old, new))
    with pytest.raises(kind, match=said):
        run(program, inputs=INPUTS)


def test_elements_of_the_buffer_inside_a_vecscope(program: Path) -> None:
    """Each costs a scalar branch, and the report says that this is assumed."""
    program.write_text(TEXT)
    before = run(program, inputs=INPUTS)
    load = "%e = pto.load_scalar %in[%at] : !pto.ptr<f32, ub> -> f32\n%q = pto.vmuls %v, %e,"
    program.write_text(TEXT.replace("%q = pto.vmuls %v, %scale,", load))
    found = run(program, inputs=INPUTS)
    assert found.cycles > before.cycles
    assert any("inside a vecscope: its cycles are assumed" in str(each) for each in found.loaded.executed.warnings)
    x = INPUTS["x"].view(np.float32).reshape(-1, 64)
    y = found.outputs["y"].view(np.float32).reshape(-1, 64)
    assert np.array_equal(y[:, 1:], (x * x[:, :1])[: len(y), 1:])
