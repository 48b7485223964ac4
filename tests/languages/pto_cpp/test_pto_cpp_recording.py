"""What a recording says: flags of events, what transfers move, places, text that is read back to the same run."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest
from kit.paths import VECTORS
from kit.pto_cpp_runs import KERNELS, needs_compiler, ran, recorded, same_bits, written

import castsim
from castsim.isa.errors import CastsimError, ReadError, WarningKind
from castsim.isa.pto import program as pto
from castsim.languages.pto_cpp import Request, record, record_all, run

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


# ----------------------------------------------------------------------------- names of the library's public headers

NAMES = VECTORS / "pto_cpp_names.csv"
OF_TILES = {
    "Loc": "TileType::Vec", "Rows": "16", "Cols": "64", "RowStride": "64", "ColStride": "1", "ValidRow": "16",
    "ValidCol": "64", "BFractal": "BLayout::RowMajor", "SFractal": "SLayout::NoneBox", "Numel": "1024",
    "SFractalSize": "512", "PadVal": "PadValue::Null", "C0Size": "8", "InnerRows": "1", "InnerCols": "1",
    "InnerNumel": "1", "Compact": "CompactMode::Null",
}  # fmt: skip
"""Members of a tile of 16 x 64 numbers of 32 bits, whose values in the table are expressions of its parameters."""
OF_TEMPLATES = (
    "BlockNumRow", "BlockNumCol", "FractalNZSize", "Shape", "Stride", "RawDType", "Parent", "ShapeType", "HalfUnion",
    "TransType", "UIntegerType",
)  # fmt: skip
"""Members of templates, whose values the table gives by their parameters."""


def checks_of_names() -> list[str]:
    """Return a static assertion for each constant, enumerator and macro with a value, and an object of each type."""
    checks = [f"static_assert(T::{name} == {value});" for name, value in OF_TILES.items()]
    with NAMES.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        kind, name, value = row["kind"], row["name"], row["value"]
        if kind == "enum":
            for word in value.split():
                enumerator, _, number = word.partition("=")
                number = number if number[0].isdigit() else f"(int){name}::{number}"
                checks.append(f"static_assert((unsigned long long){name}::{enumerator} == {number});")
        elif kind.startswith("constant") and name not in (*OF_TILES, *OF_TEMPLATES):
            assert re.fullmatch(r"-?[\d *]+|\w+ / \d", value), row
            checks.append(f"static_assert({name} == {value});")
        elif kind == "macro" and name not in ("AICORE", "TINSERT_MODE_DEFINED"):
            checks.append(f"static_assert({name} == {value});")
        elif kind == "type" and name not in OF_TEMPLATES:
            checks.append(f"{{ {name} object; (void)object; }}")
    return checks


@needs_compiler
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_names_of_the_library_have_its_values(tmp_path, target):
    """Constants, enumerations, macros and types, by the table of the library's public headers."""
    checks = checks_of_names()
    assert len(checks) > 400
    head = "#include <pto/pto-inst.hpp>\nusing namespace pto;\n#ifndef TINSERT_MODE_DEFINED\n#error\n#endif\n"
    more = (
        "static_assert(PTO_CEIL(33, 16) == 48 && PTO_CEIL(32, 16) == 32);\n"
        "static_assert(CastsimPipeOf(Op::TLOAD) == PIPE_MTE2 && CastsimPipeOf(Op::TSTORE_VEC) == PIPE_MTE3);\n"
        "static_assert(CastsimPipeOf(Op::TCI) == PIPE_S && CastsimPipeOf(Op::TPARTARGMIN) == PIPE_V);\n"
        "static_assert(CastsimPipeOf(Op::TEXTRACT_V2M) == PIPE_FIX && CastsimPipeOf(Op::TIMG2COL) == PIPE_MTE1);\n"
        "static_assert(TileShape2D<half, 64, 32, Layout::NZ>::FractalNZSize == 256);\n"
        "static_assert(TileShape2D<half, 64, 32, Layout::NZ>::staticShape[1] == 2);\n"
        "preload(x, 1); st_dev(1.0f, x, 0);\n"
    )
    body = f"AICORE void k(__gm__ float *x) {{\nusing T = Tile<TileType::Vec, float, 16, 64>;\n{more}"
    path = written(tmp_path, body + "\n".join(checks) + "\n}", head)
    (found,) = record(Request(path, target=target))
    assert [warning.place.line for warning in found.program.warnings] == [14, 14]


# --------------------------------------------------------------- arrays of arguments, as simpler hands them to kernels

UNPACKED = """
#include <pto/pto-inst.hpp>
#include "tensor.h"
using namespace pto;
template <typename T> AICORE void body(__gm__ T *from, __gm__ T *to, float add, int times) {
    using G = GlobalTensor<T, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
    Tile<TileType::Vec, T, 16, 64> t;
    TASSIGN(t, 0);
    G src(from), dst(to);
    TLOAD(t, src);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    for (int time = 0; time < times; ++time) { TADDS(t, t, (T)add); pipe_barrier(PIPE_V); }
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(dst, t);
}
template <typename T> AICORE __gm__ T *at(__gm__ int64_t *args, int place) {
    __gm__ Tensor *tensor = reinterpret_cast<__gm__ Tensor *>(args[place]);
    return reinterpret_cast<__gm__ T *>(tensor->buffer.addr) + tensor->start_offset;
}
inline float as_float(uint64_t word) { return __builtin_bit_cast(float, (uint32_t)word); }
constexpr int SCALE = 2;
"""
ENTRIES = {
    "own structure": """struct Pair { uint64_t addr, size; };
struct Piece { Pair buffer; uint64_t start_offset; uint32_t shapes[5]; };
extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ Piece *x = reinterpret_cast<__gm__ Piece *>(args[0]), *y = (__gm__ Piece *)args[1];
    body((__gm__ float *)x->buffer.addr + x->start_offset, (__gm__ float *)y->buffer.addr, as_float(args[2]),
         args[3]); }""",
    "by a helper": """extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    body(at<float>(args, 0), at<float>(args, 1), as_float(args[SCALE]), static_cast<int>(args[3])); }""",
    "addresses": """extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    body(reinterpret_cast<__gm__ float *>(args[0]), (__gm__ float *)args[1], as_float(args[2]), (int)args[3]); }""",
    "shapes": """extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {
    __gm__ ChipTensor *x = reinterpret_cast<__gm__ ChipTensor *>(args[0]);
    auto y = reinterpret_cast<__gm__ ChipTensor *>(args[1]);
    body((__gm__ float *)x->buffer.addr, (__gm__ float *)y->buffer.addr, as_float(args[2]),
         args[3] * (x->shapes[0] == 16 && x->shapes[1] == 64 && x->ndims == 2 && y->buffer.size == 4096)); }""",
}  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_array_of_arguments_is_unpacked(tmp_path, entry):
    """Places hold descriptors of tensors, addresses of elements and numbers: of a file, or each by itself."""
    x = np.arange(1024, dtype=np.float32).reshape(16, 64)
    path = written(tmp_path, UNPACKED + ENTRIES[entry], "")
    np.savez(tmp_path / "args.npz", x, np.zeros_like(x), np.float32(1.5).view(np.uint32), np.int64(2))
    outputs = run(path, inputs={"args": str(tmp_path / "args.npz")}).outputs
    assert list(outputs) == ["args1"] and same_bits(outputs["args1"], x + 3)
    alone = run(path, inputs={"args0": x, "args1": np.zeros_like(x)}, args={"args2": 1.5, "args3": 2})
    assert same_bits(alone.outputs["args1"], x + 3)


@pytest.mark.parametrize("entry", [name for name in ENTRIES if name != "shapes"])
def test_an_array_of_arguments_takes_drawn_tensors(tmp_path, entry):
    path = written(tmp_path, UNPACKED + ENTRIES[entry], "")
    outputs = run(path, inputs={"args": "random:1"}, args={"args2": 0.5, "args3": 0}).outputs
    assert same_bits(
        outputs["args1"], run(path, inputs={"args0": "random:1"}, args={"args2": 1, "args3": 0}).outputs["args1"]
    )
    recordings, arrays = record_all(Request(path, inputs={"args": "zeros"}))
    assert {name: array.size for name, array in arrays.items()} == {"args0": 1024, "args1": 1024}
    assert recordings[0].elements == {"args0": "f32", "args1": "f32"}


def test_what_an_array_of_arguments_lacks_is_named(tmp_path):
    path = written(tmp_path, UNPACKED + ENTRIES["shapes"], "")
    with pytest.raises(
        ReadError, match=r"`args\[0\]` is a descriptor that nothing fills: pass it with `--in args=FILE`"
    ) as caught:
        run(path, inputs={"args": "zeros"})
    assert "x->shapes" in caught.value.span.text
    with pytest.raises(ReadError, match="scalar argument args2 of kernel_entry needs a value"):
        run(path, inputs={"args": "random:1"})
    with pytest.raises(ReadError, match="17 arrays, but the kernel unpacks 16"):
        run(path, inputs={"args": [np.zeros(1)] * 17})
    (tmp_path / "words.npz").write_text("no archive")
    with pytest.raises(ReadError, match="cannot be read"):
        run(path, inputs={"args": str(tmp_path / "words.npz")})
    text = (
        'extern "C" __aicore__ void kernel_entry(__gm__ int64_t *args) {\n at<float>((int64_t *)args[0], 0)[0] = 1; }'
    )
    with pytest.raises(CastsimError, match="if `args` holds a descriptor"):
        run(written(tmp_path, UNPACKED + text, ""), inputs={"args": "zeros"})


def test_a_byte_order_mark_before_a_kernel_is_skipped(tmp_path):
    body = 'extern "C" __global__ AICORE void k(__gm__ float *x)\n{\n    pipe_barrier(PIPE_ALL);\n}\n'
    path = written(tmp_path, body)
    (plain,) = record(Request(path))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (marked,) = record(Request(path))
    assert marked.pto_text() == plain.pto_text()
