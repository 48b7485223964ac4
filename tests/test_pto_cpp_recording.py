"""What a recording says: flags of events, what transfers move, places, text that is read back to the same run."""

from __future__ import annotations

import numpy as np
import pytest
from pto_cpp_runs import KERNELS, needs_compiler, ran, recorded, same_bits, written

import castsim
from castsim.isa.errors import WarningKind
from castsim.isa.pto import program as pto
from castsim.pto_cpp import Request, record, record_all, run

pytestmark = needs_compiler

TILES = """
using T = Tile<TileType::Vec, float, 4, 64>;
T a, b;
TASSIGN(a, 0);
TASSIGN(b, 0x1000);
"""


def orders(recording):
    found = []
    for node in recording.program.functions[0].body:
        if isinstance(node, pto.SetFlag | pto.WaitFlag):
            name = "set" if isinstance(node, pto.SetFlag) else "wait"
            found.append(f"{name} {node.src.name}>{node.dst.name} {node.event}")
        elif isinstance(node, pto.Barrier):
            found.append(f"barrier {node.pipe.name}")
    return found


def part(recording):
    body = recording.program.functions[0].body
    numbers = {node.result: node.value for node in body if isinstance(node, pto.Constant)}
    (view,) = [node for node in body if isinstance(node, pto.MakeView)]
    return [numbers[name] for name in view.shape], [numbers[name] for name in view.strides]


def test_events_take_numbers_per_pair_of_pipes_and_wrap_at_eight(tmp_path):
    body = f"""AICORE void k() {{ {TILES}
      for (int i = 0; i < 9; ++i) {{
        Event<Op::TADD, Op::TSTORE_VEC> done;
        done = TADD(b, a, a);
        done.Wait();
      }}
      Event<Op::TLOAD, Op::TADD> other;
      other.Record();
      TADD(b, a, a, other);
      Event<Op::TADD, Op::TSTORE_VEC, false, EVENT_ID5> fixed(TADD(b, a, a));
      TSYNC(fixed);
    }}"""
    flags = [f"{what} V>MTE3 {number % 8}" for number in range(9) for what in ("set", "wait")]
    flags += ["set MTE2>V 0", "wait MTE2>V 0", "set V>MTE3 5", "wait V>MTE3 5", "barrier ALL"]
    assert orders(recorded(tmp_path, body)) == flags


@pytest.mark.parametrize(("target", "found"), [("a2a3", ["barrier V", "barrier MTE2"]), ("a5", ["barrier MTE2"])])
def test_events_within_a_pipe_are_barriers(tmp_path, target, found):
    body = f"""AICORE void k() {{ {TILES}
      Event<Op::TADD, Op::TMUL> same;
      same = TADD(b, a, a);
      TMUL(b, b, b, same);
      Event<Op::TLOAD, Op::TLOAD> loads;
      loads.Record().Wait();
      TSYNC<Op::TLOAD>();
    }}"""
    # What A5 has no barrier for is waited for by its vector unit itself.
    assert orders(recorded(tmp_path, body, target=target)) == [*found, "barrier MTE2", "barrier ALL"]


def test_a_token_may_be_waited_for_directly(tmp_path):
    body = f"""AICORE void k(__gm__ float *x) {{ {TILES}
      GlobalTensor<float, Shape<1, 1, 1, 4, 64>, Stride<1, 1, 1, 64, 1>> g(x);
      RecordEvent loaded = TLOAD(a, g);
      TCVT(b, a, RoundMode::CAST_RINT, loaded);
    }}"""
    assert orders(recorded(tmp_path, body)) == ["set MTE2>V 7", "wait MTE2>V 7", "barrier ALL"]


TRANSFER = """AICORE void k(__gm__ float *x) {{
  Tile<TileType::Vec, float, {rows}, {cols}, BLayout::{layout}, {valid}> t;
  TASSIGN(t, 0);
  GlobalTensor<float, Shape<{shape}>, Stride<{stride}>, Layout::{order}> g(x);
  TLOAD(t, g);
}}"""


def transfer(**how):
    defaults = {"rows": 8, "cols": 64, "layout": "RowMajor", "valid": "8, 64", "order": "ND"}
    return TRANSFER.format(**{**defaults, **how})


@pytest.mark.parametrize(
    ("target", "how", "shape", "strides"),
    [
        ("a2a3", {"shape": "1, 1, 1, 8, 64", "stride": "1, 1, 1, 100, 1"}, [8, 64], [100, 1]),
        # A burst has the valid columns; on A2/A3 the gap behind it stays what the shape leaves of the stride.
        ("a2a3", {"shape": "1, 1, 1, 8, 60", "stride": "1, 1, 1, 100, 1"}, [8, 64], [104, 1]),
        ("a5", {"shape": "1, 1, 1, 8, 60", "stride": "1, 1, 1, 100, 1"}, [8, 64], [100, 1]),
        ("a2a3", {"shape": "1, 1, 1, 1, 4096", "stride": "1, 1, 1, 1, 1", "valid": "1, 40"}, [1, 40], [1, 1]),
        ("a2a3", {"shape": "1, 2, 2, 2, 64", "stride": "9, 1000, 200, 64, 1"}, [2, 2, 2, 64], [1000, 200, 64, 1]),
        (
            "a2a3",
            {"shape": "1, 1, 1, 6, 4", "stride": "1, 1, 1, 1, 20", "rows": 8, "cols": 4, "layout": "ColMajor",
             "valid": "8, 4", "order": "DN"},
            [8, 4], [1, 22],
        ),
    ],
)  # fmt: skip
def test_transfers_move_bursts_of_the_valid_extent(tmp_path, target, how, shape, strides):
    assert part(recorded(tmp_path, transfer(**how), target=target)) == (shape, strides)


def test_a_transfer_whose_extents_differ_is_warned_of(tmp_path):
    how = {"shape": "1, 1, 1, 8, 60", "stride": "1, 1, 1, 100, 1"}
    (warning,) = recorded(tmp_path, transfer(**how)).program.warnings
    assert warning.kind is WarningKind.REGION
    assert "104 elements apart" in str(warning)


def test_nothing_is_moved_of_no_rows_or_columns(tmp_path):
    body = transfer(shape="1, 1, 1, 8, 64", stride="1, 1, 1, 64, 1", valid="8, 0")
    nodes = recorded(tmp_path, body).program.functions[0].body
    assert not any(isinstance(node, pto.TileOperation) for node in nodes)


def test_casts_between_tiles_of_other_pitches(tmp_path):
    body = """AICORE void k(__gm__ half *x, __gm__ float *y) {
      Tile<TileType::Vec, half, 3, 64, BLayout::RowMajor, 3, 20> a;
      Tile<TileType::Vec, float, 4, 32, BLayout::RowMajor, 3, 20> b;
      TASSIGN(a, 0);
      TASSIGN(b, 0x1000);
      GlobalTensor<half, Shape<1, 1, 1, 3, 20>, Stride<1, 1, 1, 20, 1>> from(x);
      GlobalTensor<float, Shape<1, 1, 1, 3, 20>, Stride<1, 1, 1, 20, 1>> into(y);
      TLOAD(a, from);
      pipe_barrier(PIPE_ALL);
      TCVT(b, a, RoundMode::CAST_NONE);
      pipe_barrier(PIPE_ALL);
      TSTORE(into, b);
    }"""
    x = np.arange(60, dtype=np.float16)
    path = written(tmp_path, body)
    np.testing.assert_array_equal(run(path, inputs={"x": x}).outputs["y"].reshape(-1), x.astype(np.float32))
    (found,) = record(Request(path, inputs={"x": x}))
    text = tmp_path / "kernel.pto"
    text.write_text(found.pto_text())
    assert "kernel.cpp:10" in found.pto_text()
    again = castsim.run(text, inputs={"x": x}, sync="program")
    np.testing.assert_array_equal(again.outputs["y"].reshape(-1), x.astype(np.float32))


def test_4_bit_tiles_count_values(tmp_path):
    body = """AICORE void k(__gm__ half *x, __gm__ uint8_t *y) {
      Tile<TileType::Vec, half, 1, 128> a;
      Tile<TileType::Vec, int4b_t, 1, 128> b;
      Tile<TileType::Vec, uint8_t, 1, 64> bytes;
      TASSIGN(a, 0), TASSIGN(b, 0x1000), TASSIGN(bytes, 0x1000);
      GlobalTensor<half, Shape<1, 1, 1, 1, 128>, Stride<1, 1, 1, 1, 1>> from(x);
      GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 64>, Stride<1, 1, 1, 1, 1>> into(y);
      TLOAD(a, from);
      pipe_barrier(PIPE_ALL);
      TCVT(b, a, RoundMode::CAST_RINT);
      pipe_barrier(PIPE_ALL);
      TSTORE(into, bytes);
    }"""
    x = (np.arange(128) % 16 - 8).astype(np.float16)
    codes = x.astype(int) & 15
    out = run(written(tmp_path, body), inputs={"x": x}).outputs["y"].reshape(-1)
    np.testing.assert_array_equal(out, codes[0::2] | codes[1::2] << 4)


def test_a_record_does_what_the_kernel_does(tmp_path):
    name, entry, args = "rows_and_columns", "along_rows", {}
    given = {"x": "random:1", "row": "random:2"}
    mine = ran(name, entry=entry, inputs=given, args=args)
    (found,) = record(Request(KERNELS / f"{name}.cpp", entry, args, given))
    text = tmp_path / "kernel.pto"
    text.write_text(found.pto_text())
    again = castsim.run(text, inputs=given)
    assert again.cycles == mine.cycles
    assert same_bits(again.outputs["out"], mine.outputs["out"])


def test_a_missing_flag_is_a_race_in_its_line(tmp_path):
    text = (KERNELS / "f32_to_f16_pipelined.cpp").read_text()
    lines = text.splitlines()
    gone = [number for number, line in enumerate(lines) if "PIPE_MTE2, PIPE_V" in line]
    assert len(gone) == 2
    path = tmp_path / "kernel.cpp"
    path.write_text("\n".join("" if number in gone else line for number, line in enumerate(lines)))
    result = run(path, entry="f32_to_f16_pipelined", inputs={"src": "random:1"})
    cast = 1 + next(number for number, line in enumerate(lines) if "TCVT(" in line)
    assert any(cast == span.line and span.file == str(path) for race in result.races for span in race.spans)


def test_a_launcher_says_how_many_cores_there_are():
    args = {"cores": 2, "rows": 8, "cols": 40, "scale": 2.0}
    request = Request(KERNELS / "cores.cpp", "launch_scaled_rows", args, {"x": "random:1"})
    recordings, arrays = record_all(request)
    assert [each.blocks for each in recordings] == [4] * 4
    assert arrays["x"].size == 8 * 40
    loads = [sum(getattr(n, "mnemonic", "") == "tload" for n in r.program.functions[0].body) for r in recordings]
    assert loads == [2] * 4


def test_a_launch_may_be_of_a_template_in_a_template(tmp_path):
    body = f"""template <typename E, int N> __global__ AICORE void k(__gm__ E *x) {{ {TILES} TADD(b, a, a); }}
      template <int N> void launch(float *x, void *stream) {{
        if constexpr (N == 3) k<float, N><<<N, nullptr, stream>>>(x);
      }}"""
    assert recorded(tmp_path, body, entry="launch<3>", args={"stream": 0}).blocks == 3


def test_a_null_pointer_is_given_as_zero(tmp_path):
    body = f"""AICORE void k(__gm__ float *x, __gm__ float *y) {{ {TILES}
      if (y == nullptr) TADD(b, a, a); else TMUL(b, a, a);
    }}"""
    for args, wanted in (({"y": 0}, "tadd"), ({}, "tmul")):
        nodes = recorded(tmp_path, body, args=args).program.functions[0].body
        assert [node.mnemonic for node in nodes if isinstance(node, pto.TileOperation)] == [wanted]


def test_the_examples_of_documents_run_one_behind_the_other(tmp_path):
    path = tmp_path / "example.cpp"
    path.write_text("""#include <pto/pto-inst.hpp>

using namespace pto;

void example() {
  using SrcT = Tile<TileType::Vec, float, 8, 32>;
  using DstT = Tile<TileType::Vec, int16_t, 8, 32>;
  SrcT src;
  DstT dst;
  TCVT(dst, src, RoundMode::CAST_FLOOR);
}

using TmpT = Tile<TileType::Vec, int32_t, 8, 64>;
TmpT tmp;
TCVT(dst, src, tmp, RoundMode::CAST_TRUNC, SaturationMode::OFF);
""")
    (found,) = record(Request(path))
    casts = [node for node in found.program.functions[0].body if isinstance(node, pto.Tcvt)]
    assert [(cast.span.line, cast.tmp is None) for cast in casts] == [(10, True), (15, False)]
    assert run(path).cycles > 0
