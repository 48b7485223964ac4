"""What `castsim graph` says of a node: the proof of its cast, a trial of all codes, or only what the run met."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_models import model, quantise_half
from onnx import TensorProto, helper

from castsim.__main__ import main
from castsim.graphs.graph_execution import GraphRun, make_tensors, read_graph, run_graph
from castsim.graphs.verdict import NodeVerdict
from castsim.targets import load_target

F32, F16, I8, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT64


def saved(folder: Path, made: onnx.ModelProto) -> Path:
    path = folder / "model.onnx"
    onnx.save(made, path)
    return path


def cast(src: int, dst: int, size: int = 64) -> onnx.ModelProto:
    node = helper.make_node("Cast", ["x"], ["y"], name="cast", to=dst)
    return model([node], {"x": (src, [size])}, {"y": (dst, [size])})


def graph(capsys: pytest.CaptureFixture[str], path: Path, target: str, *more: str) -> tuple[int, dict]:
    code = main(["graph", str(path), "--target", target, "--in", "x=random:1", "--json", "-", "--quiet", *more])
    return code, json.loads(capsys.readouterr().out)


def ran(folder: Path, made: onnx.ModelProto, target: str, **inputs: object) -> GraphRun:
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
    assert main(["graph", str(path), "--target", "a5", "--in", "x=zeros", "--option", "ctrl_48_at_start=0"]) == 1
    out = capsys.readouterr().out
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
    clamping, keeping = (ran(tmp_path, made, target, x=x) for target in ("a5", "gaudi2"))
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
    found = ran(tmp_path, made, "gaudi2", **dict.fromkeys(inputs, "random:3"))
    assert (found.nodes[0].verdict, found.nodes[0].trial[0].elements) == (NodeVerdict.TRIED, elements)


def test_every_scale_of_an_axis_is_tried(tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], name="node", axis=1)
    made = model([node], {"x": (I8, [4, 3])}, {"y": (F32, [4, 3])}, {"s": np.array([0.5, 0.1, 3], np.float32)})
    found = ran(tmp_path, made, "a5", x="random:2")
    assert (found.nodes[0].verdict, found.nodes[0].trial[0].elements) == (NodeVerdict.TRIED, 3 << 8)


def test_a_scale_that_is_computed_is_not_tried(tmp_path: Path) -> None:
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], name="node")
    made = model([node], {"x": (I8, [4, 3]), "s": (F32, [])}, {"y": (F32, [4, 3])})
    found = ran(tmp_path, made, "a5", x="random:2", s=np.array(0.5, np.float32))
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
    found = ran(tmp_path, made, "a5", x=x)
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
    found = ran(tmp_path, made, "a5", x=x)
    assert [run.node.name for run in found.nodes] == ["lost", "behind", "beside"]
    assert [run.verdict is NodeVerdict.NOT_RUN for run in found.nodes] == [True, True, False]
    assert "reads lost of lost, not run" in str(found.nodes[1].refusal)
    assert (found.outputs["beside"].array == x.astype(np.float16)).all()
    assert not found.conforms
