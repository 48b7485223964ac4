"""TOSA text against the golden results of the reference model, and what 'castsim graph' says of a node."""

from __future__ import annotations

import os
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.command_output import answer_of, file_of, out_of
from kit.golden import VECTORS, as_codes
from kit.paths import PROGRAMS
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tools.graphs.graph_models import model, quantise_half

from castsim.__main__ import main
from castsim.isa.formats import format_named
from castsim.targets.loader import load_target
from castsim.tools.graphs import graph_execution
from castsim.tools.graphs.graph_execution import GraphRun, make_tensors, read_graph, run_graph
from castsim.tools.graphs.kernel_runner import NodeVerdict
from castsim.tools.graphs.model import GraphTensor

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
    ],
)
def test_illegal_rescales_are_refused_with_the_reason(tmp_path: Path, changes: dict[str, int], said: str) -> None:
    text = one_rescale(**changes).replace("1073741824", "16384" if changes.get("scale32") == 0 else "1073741824")
    codes = np.zeros((4, 1), f"u{changes.get('in_bits', 32) // 8}")
    found = ran(tmp_path, text, "a5", codes)
    assert not found.agrees
    assert said in str(found.nodes[0].refusal)


def test_a_shift_that_no_rescale_has(tmp_path: Path) -> None:
    found = ran(tmp_path, one_rescale(shift=63), "a5", np.zeros((4, 1), np.uint32))
    assert "shift 63 is outside 2 to 62" in str(found.nodes[0].refusal)


def test_casts_that_tosa_does_not_have(tmp_path: Path) -> None:
    found = ran(tmp_path, cast_text("bf16", "fp16", 4), "a5", np.zeros(4, np.uint16))
    assert found.nodes[0].refusal is not None
    assert "tosa 1.1 has no cast bf16 -> f16" in found.nodes[0].refusal


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


def test_arithmetic_on_f32_is_only_as_sure_as_its_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    node = helper.make_node("Mul", ["x", "c"], ["y"], name="gain")
    made = model([node], {"x": (F32, [64])}, {"y": (F32, [64])}, {"c": np.array(0.75, np.float32)})
    code, document = graph(capsys, saved(tmp_path, made), "a5")
    assert (code, document["conforms"], document["agrees"]) == (1, False, True)
    assert (document["nodes"][0]["verdict"], document["nodes"][0]["trial"]) == ("no mismatch on this input", [])
    assert document["schema_version"] == 3


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
