"""'castsim graph', 'castsim run' of graphs: reports, files, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.command_output import answer_of, ended, file_of
from onnx import TensorProto, helper
from tools.graphs.graph_models import PROGRAMS, model, quantise_block

from castsim import run
from castsim.targets.loader import load_target
from castsim.tools.check.checking import check
from castsim.tools.graphs.graph_execution import make_tensors, read_graph, run_graph

BLOCK = str(PROGRAMS / "quantise_block.onnx")
CASTS = str(PROGRAMS / "casts_and_rescales.mlir")


def test_the_report_names_nodes_chains_cycles_and_comparisons(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ended(capsys, "graph", BLOCK, "--target", "a2a3", "--in", "x=random:1", "--arg", "rows=4")
    assert code == 1  # products of f32 are only as sure as this run
    for said in ("no mismatch on this input", "quantise", "QuantizeLinear", "i8 -> f16", "loads and",
                 "all 256 elements agree", "whole graph"):  # fmt: skip
        assert said in out


def test_programs_written_give_the_reported_cycles_and_values(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each program is run by itself, from its file, on what the program before it gave."""
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
    code, document = answer_of(capsys, "run", CASTS, *given)
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


def test_a_node_that_differs_gives_exit_code_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (
        "func.func @f(%x: tensor<3xf16>) -> tensor<3xf16> {\n  %y = tosa.cast %x : (tensor<3xf16>) -> tensor<3xf16>\n"
    )
    path = file_of(tmp_path / "same.mlir", text + "  return %y : tensor<3xf16>\n}\n")
    code, out, _ = ended(capsys, "graph", str(path), "--target", "a5", "--in", "x=zeros")
    assert code == 1
    assert "not run: tosa 1.1 has no cast f16 -> f16" in out
    assert "same.mlir:2:8" in out


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
    """Which freed buffer is taken next decides cycles; processes order sets of objects differently."""
    words = ["graph", str(PROGRAMS / "requantise.mlir"), "--target", "a2a3", "--in", "arg0=random:1"]
    command = [sys.executable, "-m", "castsim", *words, "--in", "arg1=random:2", "--json", "-"]
    first, second = (
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=False).stdout
        for seed in ("1", "3")
    )
    assert json.loads(first) == json.loads(second)
