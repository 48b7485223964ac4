"""TOSA text against golden results and its definition of TABLE, and what 'castsim graph' says of a graph."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.command_output import answer_of, ended, err_of, file_of, out_of
from kit.golden import VECTORS, as_codes
from kit.paths import PROGRAMS
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tools.graphs.graph_models import model, quantise_block, quantise_half

import castsim
from castsim import run
from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.targets.loader import load_target
from castsim.tools.check.checking import check
from castsim.tools.graphs import graph_execution
from castsim.tools.graphs.graph_execution import GraphRun, make_tensors, read_graph, run_graph
from castsim.tools.graphs.kernel_runner import NodeVerdict
from castsim.tools.graphs.model import GraphTensor
from castsim.tools.graphs.vector_program import table_on

THOROUGH = "CASTSIM_THOROUGH" in os.environ
CASTS = np.load(VECTORS / "golden_tosa_cast.npz", allow_pickle=False)
RESCALES = np.load(VECTORS / "golden_tosa_rescale.npz", allow_pickle=False)
COLUMNS = [str(name) for name in RESCALES["meta_cols"]]
MODES = {1: "SINGLE_ROUND", 2: "INEXACT_ROUND", 3: "DOUBLE_ROUND"}

SPELLING = {"fp16": "f16", "fp32": "f32", "bf16": "bf16", "e4m3fn": "f8E4M3FN", "e5m2": "f8E5M2", "bool": "i1"}
SPELLING |= {f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)}


def ran(tmp_path: Path, text: str, target: str, *codes: NDArray[np.generic]) -> GraphRun:
    path = file_of(tmp_path / "graph.mlir", text)
    graph = read_graph(path)
    inputs = {port.name: GraphTensor(port.format, array) for port, array in zip(graph.inputs, codes, strict=True)}
    return run_graph(graph, load_target(target), inputs)


def cast_text(src: str, dst: str, size: int) -> str:
    before, after = f"tensor<{size}x{SPELLING[src]}>", f"tensor<{size}x{SPELLING[dst]}>"
    return (
        f"func.func @main(%x: {before}) -> {after} {{\n"
        f"  %y = tosa.cast %x : ({before}) -> {after}\n"
        f"  return %y : {after}\n}}\n"
    )


@pytest.mark.parametrize(
    ("src", "dst", "target"),
    [
        ("bf16", "int8", "gaudi2"),
        ("fp16", "int16", "a5"),
        ("fp16", "int8", "a2a3"),
        ("fp16", "fp32", "a2a3"),
        ("e4m3fn", "fp32", "a5"),
        ("e5m2", "fp32", "gaudi2"),
        ("int8", "int32", "a5"),
        ("int16", "fp32", "goya"),
        ("int16", "int8", "gaudi"),
    ],
)
def test_golden_casts_of_the_reference_model(tmp_path: Path, src: str, dst: str, target: str) -> None:
    given, wanted = CASTS[f"{src}__{dst}__in"], CASTS[f"{src}__{dst}__out"]
    given, wanted = given[:: max(1, given.size // 4096)], wanted[:: max(1, wanted.size // 4096)]
    codes = as_codes(given, SPELLING.get(src, src)) if src.startswith("int") else given
    found = ran(tmp_path, cast_text(src, dst, given.size), target, codes.view(f"u{codes.dtype.itemsize}"))
    result = found.outputs["y"]
    assert found.agrees
    assert found.nodes[0].plan is not None
    source, expected, got = (
        GraphTensor(format_named(name), array.view(f"u{array.dtype.itemsize}")).array.astype(np.float64)
        for name, array in ((src, given), (dst, wanted), (dst, result.codes))
    )
    nan = np.isnan(source) if not dst.startswith("int") else np.zeros(source.shape, bool)
    free = np.isnan(source) & dst.startswith("int")
    assert ((got == expected) | (nan & np.isnan(got)) | free).all()


def rescale_text(case: dict[str, int], multiplier: list[int], shift: list[int]) -> str:
    src, dst = f"i{case['in_bits']}", f"i{case['out_bits']}"
    wide = "i32" if case["scale32"] else "i16"
    shape = f"{case['rows']}x{case['channels']}"
    length = len(multiplier)
    keys = {"scale32": "scale32", "per_channel": "per_channel"}
    keys |= {f"{end}put_unsigned": f"{end}_unsigned" for end in ("in", "out")}
    flags = ", ".join(f"{name} = {str(bool(case[key])).lower()}" for name, key in keys.items())
    types = f"tensor<{shape}x{src}>, tensor<{length}x{wide}>, tensor<{length}xi8>, tensor<1x{src}>, tensor<1x{dst}>"

    def constant(name: str, values: object, kind: str) -> str:
        return f'  %{name} = "tosa.const"() <{{values = dense<{values}> : {kind}}}> : () -> {kind}\n'

    return (
        f"func.func @main(%x: tensor<{shape}x{src}>) -> tensor<{shape}x{dst}> {{\n"
        + constant("m", multiplier, f"tensor<{length}x{wide}>")
        + constant("s", shift, f"tensor<{length}xi8>")
        + constant("a", case["input_zp"], f"tensor<1x{src}>")
        + constant("b", case["output_zp"], f"tensor<1x{dst}>")
        + f"  %y = tosa.rescale %x, %m, %s, %a, %b {{rounding_mode = {MODES[case['rounding_mode']]}, {flags}}} : "
        f"({types}) -> tensor<{shape}x{dst}>\n"
        f"  return %y : tensor<{shape}x{dst}>\n}}\n"
    )


def rescale_cases(count: int, seed: int) -> list[int]:
    rows = RESCALES["meta"]
    able = np.flatnonzero(rows[:, COLUMNS.index("in_bits")] != 48)  # no chip holds 48 bits
    return sorted(np.random.default_rng(seed).choice(able, count, replace=False).tolist())


@pytest.mark.parametrize(("target", "number"), [("a2a3", 24), ("a5", 8), ("gaudi2", 6)])
def test_golden_rescales_of_the_reference_model(
    tmp_path: Path, target: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not THOROUGH:  # the nodes are not tried on every code besides, but for some of 8 bits
        monkeypatch.setattr(graph_execution, "LARGEST", 1 << 10)
    inexact = 0
    for row in rescale_cases(number, 2025 + number):
        case = dict(zip(COLUMNS, RESCALES["meta"][row].tolist(), strict=True))
        at, channels, rows = case["io_offset"], case["channels"], case["rows"]
        operands = slice(case["mult_offset"], case["mult_offset"] + (channels if case["per_channel"] else 1))
        multiplier, shift = (RESCALES[name][operands].tolist() for name in ("mult", "shift"))
        given, wanted = (RESCALES[name][at : at + rows * channels].reshape(rows, channels) for name in ("inp", "out"))
        codes = given.astype(np.int64).astype(f"u{case['in_bits'] // 8}")
        found = ran(tmp_path, rescale_text(case, multiplier, shift), target, codes)
        result = found.outputs["y"].codes
        kind = "u" if case["out_unsigned"] else "i"
        got = result.view(f"{kind}{case['out_bits'] // 8}").astype(np.int64)
        assert found.agrees, case
        if case["rounding_mode"] != 2:
            assert (got == wanted).all(), case
            continue
        inexact += 1
        low, high = np.iinfo(f"{kind}{case['out_bits'] // 8}").min, np.iinfo(f"{kind}{case['out_bits'] // 8}").max
        for (place, channel), value in np.ndenumerate(got):
            m, s = (operand[channel if case["per_channel"] else 0] for operand in (multiplier, shift))
            exact = Fraction((int(given[place, channel]) - case["input_zp"]) * m, 1 << s)
            error = Fraction(1, 2) + 3 * abs(exact) / (1 << 24)
            least, most = (min(max(exact + sign * error + case["output_zp"], low), high) for sign in (-1, 1))
            assert least <= int(value) <= most, (case, exact)
    assert inexact < number


def one_rescale(**changes: object) -> str:
    case = {"in_bits": 32, "out_bits": 8, "in_unsigned": 0, "out_unsigned": 0, "scale32": 1, "rounding_mode": 1}
    case |= {"per_channel": 0, "channels": 1, "rows": 4, "input_zp": 0, "output_zp": 0, **changes}
    return rescale_text(case, [1 << 30], [int(changes.get("shift", 31))])


def test_random_input_of_48_bits_is_whole_range_and_refused_by_chips(tmp_path: Path) -> None:
    text = one_rescale(in_bits=48, out_bits=32, scale32=0, rows=2000).replace("1073741824", "16384")
    path = file_of(tmp_path / "graph.mlir", text)
    graph = read_graph(path)
    tensors = make_tensors(graph, {"x": "random:1"}, {})
    values = tensors["x"].codes.view(np.int64)
    assert values.min() < -(1 << 46)
    assert values.max() > 1 << 46
    assert ((values >= -(1 << 47)) & (values < 1 << 47)).all()
    found = run_graph(graph, load_target("a2a3"), tensors)
    assert found.nodes[0].refusal == "no target supports 48-bit elements"


def test_a_value_beyond_the_shift_is_unpredictable_and_said_so(tmp_path: Path) -> None:
    """Shift 31 with -2**31: docs/reference/semantics.md section 2.2."""
    codes = np.array([[1], [3], [1 << 31], [5]], np.uint32)
    found = ran(tmp_path, one_rescale(), "a2a3", codes)
    assert found.agrees
    assert any("unpredictable" in remark for remark in found.nodes[0].remarks)
    assert found.nodes[0].comparisons[0].undefined == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"input_zp": 1}, "input_zp 1 with i32"),
        ({"in_bits": 16, "out_bits": 8, "input_zp": 7}, "input_zp 7 with i16"),
        ({"scale32": 0, "rounding_mode": 3, "in_bits": 16}, "DOUBLE_ROUND without scale32"),
        ({"in_bits": 8, "in_unsigned": 1, "out_unsigned": 1}, "together"),
        ({"shift": 63}, "shift 63 is outside 2 to 62"),
    ],
)
def test_illegal_rescales_are_refused_with_the_reason(tmp_path: Path, changes: dict[str, int], said: str) -> None:
    text = one_rescale(**changes).replace("1073741824", "16384" if changes.get("scale32") == 0 else "1073741824")
    codes = np.zeros((4, 1), f"u{changes.get('in_bits', 32) // 8}")
    found = ran(tmp_path, text, "a5", codes)
    assert not found.agrees
    assert said in str(found.nodes[0].refusal)


def test_the_sample_text_with_rescale_per_channel_in_exact_arithmetic() -> None:
    graph = read_graph(PROGRAMS / "casts_and_rescales.mlir")
    rng = np.random.default_rng(5)
    sums = rng.integers(-(1 << 31), 1 << 31, (16, 4), dtype=np.int64)
    branch = (rng.standard_normal((16, 4)) * 90).astype(np.float32)
    inputs = {"arg0": sums.astype(np.uint32), "arg1": branch.view(np.uint32)}
    tensors = {port.name: GraphTensor(port.format, inputs[port.name]) for port in graph.inputs}
    found = run_graph(graph, load_target("a2a3"), tensors)
    assert found.agrees
    multiplier, shift = [1073741824, 1717986918, 1374389535, 2147483647], [37, 38, 40, 33]
    scaled = [
        ((v * multiplier[c] + (1 << (shift[c] - 1)) + (1 << 30 if v >= 0 else -(1 << 30))) >> shift[c]) - 5
        for row in sums.tolist()
        for c, v in enumerate(row)
    ]
    flat, narrow, wide = (found.outputs[name].array for name in graph.outputs)
    assert flat.tolist() == [min(max(each, -128), 127) for each in scaled]
    assert (narrow == np.clip(np.rint(branch), -128, 127)).all()
    assert (wide == narrow).all()


F32, F16, I8, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT64


def saved(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(made, path)
    return path


def cast(src: int, dst: int, size: int = 64) -> onnx.ModelProto:
    node = helper.make_node("Cast", ["x"], ["y"], name="cast", to=dst)
    return model([node], {"x": (src, [size])}, {"y": (dst, [size])})


def graph(capsys: pytest.CaptureFixture[str], path: Path, target: str, *more: str) -> tuple[int, dict]:
    return answer_of(capsys, "graph", str(path), "--target", target, "--in", "x=random:1", "--quiet", *more)


def told(folder: Path, made: onnx.ModelProto, target: str, **inputs: object) -> GraphRun:
    found = read_graph(saved(folder, made))
    return run_graph(found, load_target(target), make_tensors(found, inputs, {}))


def test_a_cast_runs_with_the_option_that_lower_finds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # A5 clamps f16 unless CTRL[48] is set (docs/reference/a5.md section 4.1); ONNX wants infinity.
    path = saved(tmp_path, cast(F32, F16, 5))
    code, document = graph(capsys, path, "a5", "--emit", str(tmp_path / "programs"))
    (node,) = document["nodes"]
    assert (code, document["conforms"], node["verdict"]) == (0, True, "proven")
    assert node["options"] == {"ctrl_48_at_start": 1}
    assert node["options_chosen"] == ["ctrl_48_at_start"]
    assert node["plan"]["without_options"]["counterexample"] is not None
    (program,) = node["programs"]
    # The command that is shown runs the program that was written, and gives what NumPy gives.
    x = np.zeros(program["elements_with_filling"], np.float32)
    x[:5] = [65520, -np.inf, np.nan, 1e9, 0.1]
    np.save(tmp_path / "x.npy", x)
    command = shlex.split(program["run"].replace("random:0", str(tmp_path / "x.npy")))
    assert command[:2] == ["castsim", "run"]
    assert main([*command[1:], "--out", str(tmp_path), "--quiet"]) == 0
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(np.load(tmp_path / "dst.npy").reshape(-1)[:5], x[:5].astype(np.float16))


def test_a_refuted_cast_differs_though_the_run_met_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = saved(tmp_path, cast(F32, F16))
    code, document = graph(capsys, path, "a5", "--option", "ctrl_48_at_start=0")
    (node,) = document["nodes"]
    assert (code, document["conforms"], document["agrees"]) == (1, False, True)
    assert (node["verdict"], node["options"]) == ("differs", {"ctrl_48_at_start": 0})
    assert node["plan"]["counterexample"]["values"][0]["value"] == 65520  # 65504 and half a place: rounds to infinity
    out = out_of(capsys, ["graph", str(path), "--target", "a5", "--in", "x=zeros", "--option", "ctrl_48_at_start=0"], 1)
    assert "not every node conforms" in out
    assert "65520" in out
    assert "every node is" not in out


def test_what_was_only_sampled_is_no_mismatch(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, document = graph(capsys, saved(tmp_path, cast(I64, F32)), "a5")
    (node,) = document["nodes"]
    assert (code, document["conforms"], document["agrees"]) == (1, False, True)
    assert node["verdict"] == "no mismatch on this input"
    assert not node["plan"]["evidence"]["proves"]


def test_few_codes_are_all_tried_and_may_refute_what_the_run_did_not(tmp_path: Path) -> None:
    # A5 clamps the f16 product of infinity after a reset; -90 to 90 do not get there.
    node = helper.make_node("Mul", ["x", "c"], ["y"], name="gain")
    made = model([node], {"x": (F16, [64])}, {"y": (F16, [64])}, {"c": np.array(0.75, np.float16)})
    x = np.linspace(-90, 90, 64).astype(np.float16)
    clamping, keeping = (told(tmp_path, made, target, x=x) for target in ("a5", "gaudi2"))
    assert clamping.agrees and keeping.agrees
    (found,) = clamping.nodes
    assert found.verdict is NodeVerdict.DIFFERS
    (comparison,) = found.trial
    assert comparison.elements == 1 << 16
    witness = comparison.witness
    assert witness is not None
    with np.errstate(over="ignore"):
        source = np.array([witness.sources[0][1]], np.uint16).view(np.float16)
        assert np.array([witness.expected], np.uint16).view(np.float16)[0] == (source * np.float16(0.75))[0]
    assert keeping.nodes[0].verdict is NodeVerdict.TRIED
    assert keeping.conforms


@pytest.mark.parametrize(("constant", "elements"), [(None, 1 << 16), (np.arange(3, dtype=np.int8), 3 << 8)])
def test_pairs_of_bytes_are_all_tried(tmp_path: Path, constant: np.ndarray | None, elements: int) -> None:
    node = helper.make_node("Add", ["x", "z"], ["y"], name="sum")
    inputs = {"x": (I8, [8, 3])} | ({"z": (I8, [8, 3])} if constant is None else {})
    made = model([node], inputs, {"y": (I8, [8, 3])}, {} if constant is None else {"z": constant})
    found = told(tmp_path, made, "gaudi2", **dict.fromkeys(inputs, "random:3"))
    assert (found.nodes[0].verdict, found.nodes[0].trial[0].elements) == (NodeVerdict.TRIED, elements)


def test_every_scale_of_an_axis_is_tried(tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], name="node", axis=1)
    made = model([node], {"x": (I8, [4, 3])}, {"y": (F32, [4, 3])}, {"s": np.array([0.5, 0.1, 3], np.float32)})
    found = told(tmp_path, made, "a5", x="random:2")
    assert (found.nodes[0].verdict, found.nodes[0].trial[0].elements) == (NodeVerdict.TRIED, 3 << 8)


def test_a_scale_that_is_computed_is_not_tried(tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], name="node")
    made = model([node], {"x": (I8, [4, 3]), "s": (F32, [])}, {"y": (F32, [4, 3])})
    found = told(tmp_path, made, "a5", x="random:2", s=np.array(0.5, np.float32))
    assert found.nodes[0].verdict is NodeVerdict.NO_MISMATCH


def test_the_sample_is_known_node_by_node(tmp_path: Path) -> None:
    found = read_graph(saved(tmp_path, quantise_half()))
    for target in ("a2a3", "gaudi2"):
        run = run_graph(found, load_target(target), make_tensors(found, {"x": "random:1"}, {"rows": 2}))
        assert run.conforms
        assert {node.verdict for node in run.nodes} == {NodeVerdict.TRIED}


def test_a_tensor_of_half_a_buffer_runs_on_a5(tmp_path: Path) -> None:
    # Input and result of 128 KiB each are the whole buffer, of which 8 KiB are not for programs.
    node = helper.make_node("Clip", ["x", "low"], ["y"], name="node")
    made = model([node], {"x": (F16, [1 << 16])}, {"y": (F16, [1 << 16])}, {"low": np.array(-1, np.float16)})
    x = np.linspace(-90, 90, 1 << 16).astype(np.float16)
    found = told(tmp_path, made, "a5", x=x)
    assert found.nodes[0].refusal is None
    assert (found.outputs["y"].array == np.maximum(x, np.float16(-1))).all()


def test_nodes_that_do_not_need_the_refused_one_run_and_the_others_are_listed(tmp_path: Path) -> None:
    """A5 has no e4m3fnuz; what reads it cannot run, what stands beside it can: NumPy's f16 of the same input."""
    nodes = [
        helper.make_node("Cast", ["x"], ["lost"], name="lost", to=TensorProto.FLOAT8E4M3FNUZ),
        helper.make_node("Cast", ["lost"], ["behind"], name="behind", to=F32),
        helper.make_node("Cast", ["x"], ["beside"], name="beside", to=F16),
    ]
    made = model(nodes, {"x": (F32, [64])}, {"behind": (F32, [64]), "beside": (F16, [64])})
    x = np.linspace(-100, 100, 64, dtype=np.float32)
    found = told(tmp_path, made, "a5", x=x)
    assert [run.node.name for run in found.nodes] == ["lost", "behind", "beside"]
    assert [run.verdict is NodeVerdict.NOT_RUN for run in found.nodes] == [True, True, False]
    assert "reads lost of lost, not run" in str(found.nodes[1].refusal)
    assert (found.outputs["beside"].array == x.astype(np.float16)).all()
    assert not found.conforms


PROCESSORS = ("goya", "gaudi", "gaudi2", "greco", "gaudib")


def interpolated(entries: list[int], value: int) -> int:
    """Nine bits of index, seven of interpolation."""
    index, fraction = divmod(value + 32768, 128)
    return entries[index] * 128 + (entries[index + 1] - entries[index]) * fraction


@pytest.mark.parametrize("chip", PROCESSORS)
def test_tables_on_every_processor(chip: str, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    target = load_target(chip)
    entries = generator.integers(-128, 128, 256).astype(np.int8)
    values = np.arange(-128, 128, dtype=np.int8)
    assert table_on(values, entries, target).results.tolist() == entries.tolist()
    wide = generator.integers(-16384, 16384, 513).astype(np.int16)
    wide[::64] = generator.choice((-16383, 16383), 9)
    edges = [-32768, -32767, -129, -128, -127, -1, 0, 1, 127, 128, 32640, 32766, 32767]
    values = np.array([*edges, *generator.integers(-32768, 32768, 200)], np.int16)
    found = table_on(values, wide, target)
    assert found.results.tolist() == [interpolated(wide.tolist(), int(value)) for value in values]
    path = tmp_path / "t.tpc"
    path.write_text(found.program)
    given = np.resize(values.astype(np.int32), (-(-values.size // 64), 64))
    again = castsim.run(path, chip, inputs={"x": given})
    assert again.cycles == found.cycles


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = tmp_path / "e.npy"
    np.save(entries, np.arange(-128, 128, dtype=np.int8)[::-1])
    told = out_of(capsys, ["tosa", "TABLE", "-128", "5", "--table", str(entries), "--target", "gaudi2"])
    assert "TABLE(-128) = 127" in told
    assert "TABLE(5) = -6" in told
    assert "by look-ups of gaudi2:" in told
    assert "--target applies only to TABLE" in err_of(capsys, ["tosa", "reciprocal_scale", "3", "--target", "gaudi2"])
    for chip in ("a5", "a2a3"):
        error = err_of(capsys, ["tosa", "TABLE", "1", "--table", str(entries), "--target", chip], 1)
        assert "has no look-ups" in error


BLOCK = str(PROGRAMS / "quantise_block.onnx")
CASTS_TEXT = str(PROGRAMS / "casts_and_rescales.mlir")


def test_the_report_names_nodes_chains_cycles_and_comparisons(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "graph", BLOCK, "--target", "a2a3", "--in", "x=random:1", "--arg", "rows=4")
    assert code == 1  # products of f32 are only as sure as this run
    for said in ("no mismatch on this input", "quantise", "QuantizeLinear", "i8 -> f16", "loads and",
                 "all 256 elements agree", "whole graph"):  # fmt: skip
        assert said in out


def test_programs_written_give_the_reported_cycles_and_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    x = np.linspace(-90, 90, 5 * 64, dtype=np.float32).reshape(5, 64)
    np.save(tmp_path / "x.npy", x)
    for target in ("a5", "gaudi2"):
        given = [BLOCK, "--target", target, "--in", f"x={tmp_path / 'x.npy'}"]
        code, reported = answer_of(capsys, "run", *given, "--out", str(tmp_path / f"{target}_out"))
        assert code == 1
        _, document = answer_of(capsys, "graph", *given, "--emit", str(tmp_path / target))
        assert document["total_cycles"] == reported["total_cycles"]
        value, bias = x.reshape(-1), np.tile(np.linspace(-1, 1, 64, dtype=np.float32), 5)
        by_name = {node["name"]: node["programs"][0] for node in document["nodes"]}
        assert set(by_name) == {"gain", "bias", "bound", "quantise", "dequantise", "widen"}
        for name in ("gain", "bias", "bound", "quantise"):
            program = by_name[name]
            whole = np.zeros(program["elements_with_filling"], np.float32)
            inputs = {"src": whole.copy()}
            inputs["src"][: value.size] = value
            if name == "bias":
                inputs["other"] = whole.copy()
                inputs["other"][: bias.size] = bias
            again = run(program["file"], target, inputs=inputs)
            assert again.cycles == program["cycles"]
            value = again.outputs["dst"].reshape(-1)[: value.size]
        written = np.load(tmp_path / f"{target}_out" / "q.npy")
        assert (written.reshape(-1) == value).all()


def test_tosa_text_by_run(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--target", "gaudi", "--in", "arg0=random:1", "--in", "arg1=random:2"]
    code, document = answer_of(capsys, "run", CASTS_TEXT, *given)
    assert code == 1
    assert document["agrees"]
    assert not document["conforms"]
    assert [node["verdict"] for node in document["nodes"]] == [
        "no mismatch on this input", "no data changes", "proven", "no data changes", "exhaustively tried",
    ]  # fmt: skip
    assert [node["operator"] for node in document["nodes"]] == [
        "tosa.rescale", "tosa.reshape", "tosa.cast", "tosa.identity", "tosa.cast",
    ]  # fmt: skip
    assert document["nodes"][0]["comparisons"][0]["elements"] == 64
    assert document["nodes"][2]["plan"]["verdict"] == "exact"


def test_an_unsupported_node_ends_with_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = quantise_block()
    made.graph.node[2].op_type = "Mod"
    path = tmp_path / "mod.onnx"
    path.write_bytes(made.SerializeToString())
    code, _, err = ended(capsys, "run", str(path), "--target", "a5", "--in", "x=zeros")
    assert code == 1
    assert "node 'bound': operator Mod is not supported" in err


def test_elements_without_a_specified_result_are_told_alike_and_samples_are_accepted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """NaN and infinity have no integer: of 12 elements 9 are specified, in the node and the whole graph.

    The names of the input and of its extent hold `=`.
    """
    nodes = [
        helper.make_node("QuantizeLinear", ["a=b", "s"], ["q"], name="quantise"),
        helper.make_node("Reshape", ["q", "shape"], ["r"], name="reshape"),
        helper.make_node("DequantizeLinear", ["r", "s"], ["y"], name="dequantise"),
    ]
    constants = {"s": np.array(0.3, np.float32), "shape": np.array([3, -1])}
    ports = {"a=b": (TensorProto.FLOAT, ["n=1"])}, {"y": (TensorProto.FLOAT, [3, "m"])}
    path = tmp_path / "open.onnx"
    onnx.save(model(nodes, *ports, constants), path)
    x = np.linspace(0, 50, 12, dtype=np.float32)
    x[[1, 4, 10]] = np.nan, np.inf, -np.inf
    np.save(tmp_path / "x.npy", x)
    given = ["graph", str(path), "--target", "a5", "--in", f"a=b={tmp_path / 'x.npy'}"]
    code, out, _ = ended(capsys, *given)
    assert code == 1
    assert "all 9 specified elements agree; 3 inputs have no specified result" in " ".join(out.splitlines()[:2])
    assert " ".join(out.split()).count("all 9 specified elements agree with the reference evaluator") == 2
    assert "differ" not in out
    assert ended(capsys, *given, "--accept-samples")[0] == 0
    assert ended(capsys, *given[:-1], "a=b=zeros", "--arg", "n=1=12", "--accept-samples")[0] == 0
    code, document = answer_of(capsys, *given, "--accept-samples")
    assert (code, document["agrees"], document["conforms"]) == (0, True, False)
    assert document["whole_graph"][0]["undefined"] == 3
    code, _, err = ended(capsys, *given[:-1], "a=zeros")
    assert code == 2
    assert "the graph has no input 'a'" in err


def test_samples_are_not_accepted_where_something_is_refuted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = quantise_block()
    made.graph.node[5].attribute[0].i = TensorProto.FLOAT8E4M3FNUZ  # which the A5 lacks
    made.graph.output[2].type.tensor_type.elem_type = TensorProto.FLOAT8E4M3FNUZ
    onnx.save(made, tmp_path / "lacking.onnx")
    given = ["graph", str(tmp_path / "lacking.onnx"), "--target", "a5", "--in", "x=random:1", "--arg", "rows=2"]
    code, document = answer_of(capsys, *given, "--accept-samples")
    assert (code, document["agrees"]) == (1, False)


@pytest.mark.parametrize(
    ("unsigned", "types", "said"),
    [
        ("output", ("i32", "i8"), "output_unsigned with i32 input"),
        ("input", ("i32", "i8"), "input_unsigned with i32 input"),
        ("output", ("i8", "i32"), "output_unsigned with i32 output"),
    ],
)
def test_a_check_without_a_target_finds_what_no_target_runs(
    unsigned: str, types: tuple[str, str], said: str, tmp_path: Path
) -> None:
    """RESCALE.tosac of the TOSA specification: no unsigned side beside 32 bits (docs/reference/semantics.md 2.1)."""
    src, dst = types
    flags = {name: str(name == unsigned).lower() for name in ("input", "output")}
    lines = [
        f"func.func @main(%a: tensor<2x4x{src}>) -> tensor<2x4x{dst}> {{",
        '  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>',
        '  %s = "tosa.const"() <{values = dense<30> : tensor<1xi8>}> : () -> tensor<1xi8>',
        f'  %i = "tosa.const"() <{{values = dense<0> : tensor<1x{src}>}}> : () -> tensor<1x{src}>',
        f'  %o = "tosa.const"() <{{values = dense<0> : tensor<1x{dst}>}}> : () -> tensor<1x{dst}>',
        f"  %r = tosa.rescale %a, %m, %s, %i, %o {{input_unsigned = {flags['input']}, output_unsigned = "
        f"{flags['output']}, per_channel = false, rounding_mode = SINGLE_ROUND, scale32 = true}} : (tensor<2x4x{src}>, "
        f"tensor<1xi32>, tensor<1xi8>, tensor<1x{src}>, tensor<1x{dst}>) -> tensor<2x4x{dst}>",
        f"  return %r : tensor<2x4x{dst}>",
        "}",
    ]
    (found,) = check(file_of(tmp_path / "rescale.mlir", "\n".join(lines) + "\n"))
    assert said in found.message
    assert (found.line, found.exit_code) == (6, 1)
    lines = [
        "func.func @main(%x: tensor<4xbf16>) -> tensor<4xf16> {",
        "  %a = tosa.cast %x : (tensor<4xbf16>) -> tensor<4xf16>",
        "  return %a : tensor<4xf16>",
        "}",
    ]
    (found,) = check(file_of(tmp_path / "cast.mlir", "\n".join(lines) + "\n"))
    assert "has no cast bf16 -> f16" in found.message


def test_of_a_long_graph_the_first_nodes_and_those_that_are_not_run_are_told_in_detail(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    elements = [TensorProto.FLOAT16, TensorProto.FLOAT]
    casts = [helper.make_node("Cast", [f"v{n}"], [f"v{n + 1}"], name=f"cast{n}", to=elements[n % 2]) for n in range(70)]
    path = tmp_path / "long.onnx"
    onnx.save(model(casts, {"v0": (TensorProto.FLOAT, (4,))}, {"v70": (TensorProto.FLOAT, (4,))}), path)
    _, out, _ = ended(capsys, "graph", str(path), "--target", "a5", "--in", "v0=random:1")
    assert "cast63 (Cast)" in out
    assert "cast64 (Cast)" not in out
    assert "and 6 more nodes, none of which differs; --json has them all" in out
    casts.append(helper.make_node("Cast", ["v70"], ["v71"], name="last", to=TensorProto.FLOAT8E4M3FNUZ))
    onnx.save(model(casts, {"v0": (TensorProto.FLOAT, (4,))}, {"v71": (TensorProto.FLOAT8E4M3FNUZ, (4,))}), path)
    _, out, _ = ended(capsys, "graph", str(path), "--target", "a5", "--in", "v0=random:1")
    assert "last (Cast)\n  not run:" in out


@pytest.mark.parametrize("suffix", ["onnx", "mlir"])
@pytest.mark.parametrize("target", ["a2a3", "a5", "goya"])
def test_a_check_finds_the_nodes_that_a_run_does_not_run(suffix: str, target: str, tmp_path: Path) -> None:
    """By the run itself: nodes that it refuses, and not those behind them or independent ones."""
    path = tmp_path / f"graph.{suffix}"
    if suffix == "onnx":
        nodes = [
            helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE, name="widen"),
            helper.make_node("Cast", ["wide"], ["behind"], to=TensorProto.FLOAT16, name="behind"),
            helper.make_node("Cast", ["x"], ["small"], to=TensorProto.BFLOAT16, name="small"),
        ]
        outputs = {"behind": (TensorProto.FLOAT16, [4]), "small": (TensorProto.BFLOAT16, [4])}
        onnx.save(model(nodes, {"x": (TensorProto.FLOAT, [4])}, outputs), path)
    else:
        path.write_text(
            "func.func @main(%x: tensor<4xf32>) -> (tensor<4xf8E5M2>, tensor<4xi32>) {\n"
            "  %a = tosa.cast %x : (tensor<4xf32>) -> tensor<4xf8E5M2>\n"
            "  %b = tosa.cast %x : (tensor<4xf32>) -> tensor<4xi32>\n"
            "  return %a, %b : tensor<4xf8E5M2>, tensor<4xi32>\n}\n"
        )
    graph = read_graph(path)
    inputs = make_tensors(graph, {graph.inputs[0].name: np.ones(4, np.float32)}, {})
    run = run_graph(graph, load_target(target), inputs)
    refused = [one.refusal for one in run.nodes if one.refusal is not None and "not run" not in one.refusal]
    found = check(path, target=target)
    assert len(found) == len(refused)
    assert all(why.split(": ", 1)[1].split(":")[0] in one.message for why, one in zip(refused, found, strict=True))
    assert check(path) == ()


def test_cycles_do_not_hang_on_the_order_of_sets() -> None:
    words = ["graph", str(PROGRAMS / "requantise.mlir"), "--target", "a2a3", "--in", "arg0=random:1"]
    command = [sys.executable, "-m", "castsim", *words, "--in", "arg1=random:2", "--json", "-"]
    first, second = (
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=False).stdout
        for seed in ("1", "3")
    )
    assert json.loads(first) == json.loads(second)
