"""Nodes of old opsets: values by the text of their own schema, whatever the reference evaluator makes of them."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from graph_models import model
from numpy.typing import NDArray
from onnx import TensorProto, helper, save

from castsim.__main__ import main
from castsim.graphs import onnx_nodes
from castsim.graphs.graph_execution import GraphRun, make_tensors, read_graph, run_graph
from castsim.isa.errors import IllegalError, ReadError
from castsim.targets import Target, load_target
from castsim.targets.options import with_options

F32, F16, I8, I32, U8 = (
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.INT32, TensorProto.UINT8,
)  # fmt: skip
Array = NDArray[np.generic]


def ran(
    tmp_path: Path,
    op: str,
    opset: int,
    inputs: dict[str, Array],
    out: tuple[int, list[int]],
    target: Target | None = None,
    **attributes: object,
) -> GraphRun:
    """Run a model of one node, on A5 unless a target is given; every input is one of the graph."""
    node = helper.make_node(op, list(inputs), ["y"], name="node", **attributes)
    kinds = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in inputs.items()}
    path = tmp_path / "model.onnx"
    save(model([node], kinds, {"y": out}, None, opset), path)
    graph = read_graph(path)
    return run_graph(graph, target or load_target("a5"), make_tensors(graph, inputs, {}))


def whole(*shape: int) -> NDArray[np.float32]:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("op", ["Add", "Mul"])
@pytest.mark.parametrize(
    ("shape", "axis", "seen"),
    [
        ((), None, (1, 1, 1, 1)),
        ((1, 1), None, (1, 1, 1, 1)),
        ((5,), None, (1, 1, 1, 5)),
        ((4, 5), None, (1, 1, 4, 5)),
        ((3, 4), 1, (1, 3, 4, 1)),
        ((2,), 0, (2, 1, 1, 1)),
        ((2, 3, 4, 5), None, (2, 3, 4, 5)),
    ],
)
def test_limited_broadcasting_of_its_own_examples(
    tmp_path: Path, op: str, shape: tuple[int, ...], axis: int | None, seen: tuple[int, ...]
) -> None:
    """The shapes that the text of Add-6 lists."""
    a, b = whole(2, 3, 4, 5), whole(*shape) * np.float32(1000)
    given = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
    found = ran(tmp_path, op, 6, {"a": a, "b": b}, (F32, [2, 3, 4, 5]), **given)
    expected = np.add if op == "Add" else np.multiply
    assert found.agrees
    assert (found.outputs["y"].array == expected(a, b.reshape(seen))).all()
    assert [comparison.wrong for comparison in found.comparisons] == [0]


@pytest.mark.parametrize(("opset", "further"), [(6, {}), (1, {"consumed_inputs": [0, 0]})])
def test_the_axis_of_a_square_is_not_the_last_one(tmp_path: Path, opset: int, further: dict[str, object]) -> None:
    """NumPy's rule gives another result of the same shape here, and so does onnx's reference evaluator."""
    a, b = whole(3, 3), np.array([100, 200, 300], np.float32)
    found = ran(tmp_path, "Add", opset, {"a": a, "b": b}, (F32, [3, 3]), broadcast=1, axis=0, **further)
    assert found.agrees
    assert (found.outputs["y"].array == a + b[:, None]).all()
    assert (found.outputs["y"].array != a + b).any()
    assert any("judged as Add of opset 7" in remark for remark in found.nodes[0].remarks)


@pytest.mark.parametrize(
    ("first", "second", "attributes", "said"),
    [
        ((2, 3), (3,), {}, "only with broadcast=1"),
        ((2, 3), (3,), {"broadcast": 1, "axis": 0}, "axis=0 shape [3] is not part of [2, 3]"),
        ((2, 3), (2,), {"broadcast": 1}, "axis=1 shape [2] is not part"),
        ((2, 3), (3,), {"broadcast": 1, "axis": -1}, "axis=-1"),
        ((2, 3), (2, 1), {"broadcast": 1}, "axis=0 shape [2, 1] is not part"),
        ((2, 3), (2, 3, 1), {"broadcast": 1}, "is not part"),
        ((2, 3), (3,), {"broadcast": 2}, "broadcast=2"),
    ],
)
def test_what_limited_broadcasting_does_not_take(
    tmp_path: Path, first: tuple[int, ...], second: tuple[int, ...], attributes: dict[str, int], said: str
) -> None:
    found = ran(tmp_path, "Mul", 6, {"a": whole(*first), "b": whole(*second)}, (F32, list(first)), **attributes)
    assert not found.agrees
    assert said in str(found.nodes[0].refusal)


@pytest.mark.parametrize("opset", [10, 13])
def test_dequantisation_before_the_versions_of_the_evaluator(tmp_path: Path, opset: int) -> None:
    x = np.array([[0, 1, 127], [128, 200, 255]], np.uint8)
    scale = np.array([0.5, 0.25, 2], np.float32) if opset == 13 else np.array(0.5, np.float32)
    zero = np.array([1, 0, 128], np.uint8) if opset == 13 else np.array(128, np.uint8)
    found = ran(tmp_path, "DequantizeLinear", opset, {"x": x, "s": scale, "z": zero}, (F32, [2, 3]))
    assert found.agrees
    assert (found.outputs["y"].array == (x.astype(np.float32) - zero) * scale).all()
    assert found.nodes[0].comparisons[0].elements == 6
    assert any("judged as DequantizeLinear of opset 19" in remark for remark in found.nodes[0].remarks)
    assert [comparison.wrong for comparison in found.comparisons] == [0]


def test_a_scale_per_axis_is_none_of_opset_10(tmp_path: Path) -> None:
    inputs = {"x": np.ones((2, 3), np.uint8), "s": np.ones(3, np.float32)}
    found = ran(tmp_path, "DequantizeLinear", 10, inputs, (F32, [2, 3]))
    assert "one scale" in str(found.nodes[0].refusal)


def test_a_dynamically_quantised_tensor_and_back_in_opset_13(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="there"),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="back"),
    ]
    path, x = tmp_path / "model.onnx", np.linspace(-1, 3, 64, dtype=np.float32)
    save(model(nodes, {"x": (F32, [64])}, {"y": (F32, [64])}, None, 13), path)
    graph = read_graph(path)
    found = run_graph(graph, load_target("a5"), make_tensors(graph, {"x": x}, {}))
    scale = np.float32(4) / np.float32(255)
    assert found.agrees
    assert np.abs(found.outputs["y"].array - x).max() <= scale  # half a step for each of the two roundings
    np.save(tmp_path / "x.npy", x)
    arguments = ["graph", str(path), "--target", "a5", "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path)]
    assert main([*arguments, "--quiet"]) == 1  # arithmetic on f32 is judged by this run alone
    assert (np.load(tmp_path / "y.npy") == found.outputs["y"].array).all()


def test_cast_of_opset_1_names_its_type(tmp_path: Path) -> None:
    x = np.array([1.75, -1.75, 100, 0], np.float16)
    found = ran(tmp_path, "Cast", 1, {"x": x}, (I32, [4]), to="INT32")
    assert found.agrees
    assert found.outputs["y"].array.tolist() == [1, -1, 100, 0]
    assert len(found.nodes[0].comparisons) == 2
    with pytest.raises(ReadError, match="element type int32"):
        ran(tmp_path, "Cast", 1, {"x": x}, (I32, [4]), to="int32")
    with pytest.raises(IllegalError, match="STRING is not supported"):
        ran(tmp_path, "Cast", 1, {"x": x}, (TensorProto.STRING, [4]), to="STRING")


def test_reshape_of_opset_1_has_its_shape_as_an_attribute(tmp_path: Path) -> None:
    x = whole(2, 6)
    found = ran(tmp_path, "Reshape", 1, {"x": x}, (F32, [2, 3, 2]), shape=[0, -1, 2], consumed_inputs=[0])
    assert found.agrees
    assert (found.outputs["y"].array == x.reshape(2, 3, 2)).all()


@pytest.mark.parametrize(("opset", "attributes"), [(6, {}), (6, {"max": 5.0}), (1, {"min": -5.0}), (1, {})])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_bounds_of_clip_as_attributes(
    tmp_path: Path, opset: int, attributes: dict[str, float], dtype: type[np.floating]
) -> None:
    """Clip-6 has the largest f32 as default bounds, Clip-1 has none."""
    x = np.array([np.inf, -np.inf, 1, 100, -100, np.nan], dtype)
    out = (helper.np_dtype_to_tensor_dtype(x.dtype), [6])
    keeping = with_options(load_target("a5"), {"ctrl_48_at_start": 1})
    found = ran(tmp_path, "Clip", opset, {"x": x}, out, keeping, **attributes)
    largest = float(np.finfo(np.float32).max) if opset == 6 and dtype is np.float32 else np.inf
    low, high = attributes.get("min", -largest), attributes.get("max", largest)
    expected = np.clip(x.astype(np.float64), low, high)
    assert np.array_equal(found.outputs["y"].array.astype(np.float64), expected, equal_nan=True)
    assert found.agrees
    clamps = ran(tmp_path, "Clip", opset, {"x": x}, out, **attributes)  # as after a reset: every f16 result clamps
    bounded = opset == 6 or bool(attributes)  # without bounds nothing computes
    same = dtype is np.float32 or not bounded or bool(np.isfinite(expected[:2]).all())
    assert clamps.agrees == same
    most = np.finfo(dtype).max
    assert same or clamps.outputs["y"].array[:2].tolist() == np.clip(expected[:2], -most, most).tolist()


def test_what_the_evaluator_refuses_is_delivered_and_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuses(*_: object) -> None:
        raise IllegalError("not today")

    monkeypatch.setattr(onnx_nodes, "_evaluated", refuses)
    found = ran(tmp_path, "Add", 14, {"a": whole(4), "b": whole(4)}, (F32, [4]))
    assert (found.outputs["y"].array == whole(4) * 2).all()
    assert (found.nodes[0].refusal, found.nodes[0].unjudged, found.unjudged) == (None, "not today", "not today")
    assert not found.agrees
    arguments = ["graph", str(tmp_path / "model.onnx"), "--target", "a5", "--in", "a=zeros", "--in", "b=random:1"]
    assert main([*arguments, "--json", "-", "--out", str(tmp_path)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["nodes"][0]["verdict"], document["nodes"][0]["unjudged"]) == ("not judged", "not today")
    assert document["whole_graph_unjudged"] == "not today"
    assert (tmp_path / "y.npy").exists()
    casted = ran(tmp_path, "Cast", 13, {"x": whole(4)}, (I8, [4]), to=I8)
    assert casted.agrees  # judged by the sets of the specification


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_a_zero_point_of_fp8_other_than_zero_is_not_supported(tmp_path: Path, op: str) -> None:
    fp8 = ml_dtypes.float8_e4m3fn
    x = whole(4) if op == "QuantizeLinear" else whole(4).astype(fp8)
    out = TensorProto.FLOAT8E4M3FN if op == "QuantizeLinear" else F32
    inputs = {"x": x, "s": np.array(1, np.float32), "z": np.array(3, fp8)}
    found = ran(tmp_path, op, 21, inputs, (out, [4]))
    assert "zero point of e4m3fn other than 0" in str(found.nodes[0].refusal)
