"""ONNX models on simulated targets against NumPy, golden node tests, the reference evaluator, texts of old opsets."""

from __future__ import annotations

import json
import os
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kit.command_output import out_of
from kit.golden import VECTORS
from kit.paths import PROGRAMS
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save
from onnx.backend.test.case.node import collect_testcases
from tools.graphs.graph_models import SAMPLES, model

from castsim import lower
from castsim.isa.errors import IllegalError, ReadError
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.description import with_options
from castsim.targets.loader import Target, load_target
from castsim.tools.graphs import onnx_nodes
from castsim.tools.graphs.graph_execution import GraphRun, make_tensors, read_graph, run_graph

F32, F16, I8, U8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8
I64 = TensorProto.INT64
GOLDEN = np.load(VECTORS / "golden_onnx_node.npz", allow_pickle=False)


def ran(
    tmp_path: Path, made: object, target: str | Target, options: dict[str, int] | None = None, **inputs: object
) -> GraphRun:
    path = tmp_path / "model.onnx"
    save(made, path)
    graph = read_graph(path)
    chip = load_target(target) if isinstance(target, str) else target
    return run_graph(graph, chip, make_tensors(graph, inputs, {}), options=options)


def one(op: str, types: dict[str, int], out: int, shape: list[int], constants=None, opset=21, **attributes: object):
    """Return a model of one node."""
    names = [*types, *(constants or {})]
    node = helper.make_node(op, names, ["y"], name="node", **attributes)
    return model([node], {name: (kind, shape) for name, kind in types.items()}, {"y": (out, shape)}, constants, opset)


def whole(*shape: int) -> NDArray[np.float32]:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def numbers(size: int, spread: float, seed: int = 7) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)


@pytest.mark.parametrize("target", ["a2a3", "a5", "greco"])
def test_the_quantised_block_gives_what_numpy_gives(target: str) -> None:
    graph = read_graph(PROGRAMS / "quantise_block.onnx")
    x = numbers(20 * 64, 40).reshape(20, 64)
    found = run_graph(graph, load_target(target), make_tensors(graph, {"x": x}, {}))
    bounded = np.clip(x * np.float32(0.75) + np.linspace(-1, 1, 64, dtype=np.float32), -60, 60)
    q = np.clip(np.rint(bounded / np.float32(0.5)) + 3, -128, 127)
    assert found.agrees
    assert (found.outputs["q"].array == q).all()
    assert (found.outputs["y"].array == (q - 3) * 0.5).all()
    assert (found.outputs["half"].array == q).all()
    assert all(node.cycles > 0 for node in found.nodes)
    assert found.cycles == sum(node.cycles for node in found.nodes)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_models_are_what_the_script_writes(name: str) -> None:
    path = PROGRAMS / name
    assert path.read_bytes() == SAMPLES[name]().SerializeToString()


@pytest.mark.parametrize("target", ["a2a3", "gaudi2"])
@pytest.mark.parametrize("odd", [768, 37, 1])
def test_dynamic_quantisation_finds_range_scale_and_zero_point(tmp_path: Path, target: str, odd: int) -> None:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    made = model([node], {"x": (F32, [odd])}, {"y": (U8, [odd]), "s": (F32, []), "z": (U8, [])})
    x = numbers(odd, 3) + np.float32(1)
    found = ran(tmp_path, made, target, x=x)
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    assert found.outputs["s"].array == scale
    assert found.outputs["z"].array == np.rint(-low / scale)
    wanted = np.clip(np.rint(x / scale) + np.rint(-low / scale), 0, 255)
    off = np.abs(found.outputs["y"].array.astype(int) - wanted)
    # Without division a target may miss by one where the quotient is next to a half; the comparison counts those.
    assert off.max() <= 1
    assert found.nodes[0].comparisons[0].wrong == (off > 0).sum()
    assert off.any() == (not found.agrees)


def test_a_reciprocal_that_misses_is_found_and_shown(tmp_path: Path) -> None:
    scale = np.float32(0.3)
    x = (np.arange(-120, 120, dtype=np.float32) + np.float32(0.5)) * scale
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    exact, reciprocal = np.rint(x / scale), np.rint(x * (np.float32(1) / scale))
    assert (exact != reciprocal).any()
    made = one("QuantizeLinear", {"x": F32}, I8, [x.size], {"s": np.array(scale), "z": np.array(0, np.int8)})
    found = ran(tmp_path, made, "gaudi", x=x)
    comparison = found.nodes[0].comparisons[0]
    assert not found.agrees
    assert comparison.wrong == (exact != reciprocal).sum()
    assert comparison.witness.index == (int(np.argmax(exact != reciprocal)),)
    assert any("reciprocal" in remark for remark in found.nodes[0].remarks)
    assert ran(tmp_path, made, "a5", x=x).agrees  # which divides


@pytest.mark.parametrize(("target", "kind"), [("a2a3", "f16"), ("a5", "bf16"), ("gaudi2", "u16"), ("goya", "u8")])
def test_arithmetic_in_every_way_there_is(tmp_path: Path, target: str, kind: str) -> None:
    dtype, element = {
        "f16": (np.float16, F16),
        "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16),
        "u16": (np.uint16, TensorProto.UINT16),
        "u8": (np.uint8, U8),
    }[kind]
    a, b = numbers(300, 30), numbers(300, 5, 8)
    if kind.startswith("u"):
        a, b = np.abs(a * 8) % 256, np.abs(b * 40) % 256
    a, b = a.astype(dtype), b.astype(dtype)
    low, high = np.array(3, dtype), np.array(20, dtype)
    for op, expected in (("Add", a + b), ("Mul", a * b), ("Clip", np.minimum(np.maximum(a, low), high))):
        if op == "Mul" and kind == "u16":
            continue  # no products of 16 bits in one register
        types = {"x": element} if op == "Clip" else {"x": element, "w": element}
        constants = {"low": low, "high": high} if op == "Clip" else None
        found = ran(
            tmp_path, one(op, types, element, [300], constants), target, **dict(zip(types, (a, b), strict=False))
        )
        assert found.agrees, op
        assert (found.outputs["y"].array == expected).all(), op


@pytest.mark.parametrize("target", ["a2a3", "gaudi2"])
def test_scales_per_axis_and_per_block(tmp_path: Path, target: str) -> None:
    x = numbers(4 * 6, 20).reshape(4, 6)
    scale = np.array([0.5, 2, 0.5, 0.25], np.float32)
    zero = np.array([0, 5, 0, -7], np.int8)
    made = one("QuantizeLinear", {"x": F32}, I8, [4, 6], {"s": scale, "z": zero}, axis=0)
    found = ran(tmp_path, made, target, x=x)
    wanted = np.clip(np.rint(x / scale[:, None]) + zero[:, None], -128, 127)
    assert (found.outputs["y"].array == wanted).all()
    assert len(found.nodes[0].stages) == 3  # two channels are alike
    blocks = np.array([[0.5, 2], [4, 1], [0.25, 0.5], [1, 1]], np.float32)
    made = one("DequantizeLinear", {"x": I8}, F32, [4, 6], {"s": blocks}, axis=1, block_size=3)
    found = ran(tmp_path, made, target, x=wanted.astype(np.int8))
    assert found.agrees
    assert (found.outputs["y"].array == wanted * np.repeat(blocks, 3, 1)).all()


def test_many_tiles_do_not_disturb_each_other(tmp_path: Path) -> None:
    x = numbers(200_001, 40)
    constants = {"s": np.array(0.75, np.float32), "z": np.array(9, np.uint8)}
    found = ran(tmp_path, one("QuantizeLinear", {"x": F32}, U8, [x.size], constants), "a2a3", x=x)
    program = found.nodes[0].stages[0].program
    assert program.tiles > 3
    assert (found.outputs["y"].array == np.clip(np.rint(x / np.float32(0.75)) + 9, 0, 255)).all()


@pytest.mark.parametrize("target", ["a2a3", "a5", "greco", "gaudi2"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_clip_keeps_nan(tmp_path: Path, target: str, dtype: type) -> None:
    """NumPy's clip keeps NaN, and so does onnx's; bounds on both sides, whole and broken rows, several tiles."""
    element = {np.float32: F32, np.float16: F16}.get(dtype, TensorProto.BFLOAT16)
    x = (numbers(777, 30)).astype(dtype)
    x[::13], x[1::50], x[2::50] = np.nan, np.inf, -np.inf
    bounds = {"low": np.array(-20, dtype), "high": np.array(30, dtype)}
    found = ran(tmp_path, one("Clip", {"x": element}, element, [x.size], bounds), target, x=x)
    wide = x.astype(np.float64)
    wanted = np.where(np.isnan(wide), np.nan, np.minimum(np.maximum(wide, -20), 30))
    assert found.agrees
    assert np.array_equal(found.outputs["y"].array.astype(np.float64), wanted, equal_nan=True)


def without_selections() -> Target:
    full = with_options(load_target("a5"), {"maximum_of_nan": "number"})
    assert isinstance(full, DataflowTarget)
    rest = tuple(rule for rule in full.tile_operations if rule.mnemonic != "tsel")
    return full.model_copy(update={"tile_operations": rest})


def test_a_nan_that_a_bound_replaces_is_told(tmp_path: Path) -> None:
    x = np.array([1, np.nan, -4, 100], np.float32)
    lost = ran(tmp_path, one("Clip", {"x": F32}, F32, [4], {"low": np.array(0, np.float32)}), without_selections(), x=x)
    assert lost.nodes[0].comparisons[0].wrong == 1
    assert lost.nodes[0].comparisons[0].witness.index == (1,)  # type: ignore[union-attr]
    assert any("no comparison and selection of f32" in remark for remark in lost.nodes[0].remarks)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2"])
def test_fp8_of_nan_infinity_and_overflow_is_judged(tmp_path: Path, kind: str, saturate: int) -> None:
    """The table of Cast (docs/reference/semantics.md section 3) defines all three, so that nothing is left open."""
    dtype, element = DTYPES[kind][0], getattr(TensorProto, DTYPES[kind][1])
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1, -46.5, 0.05, 0.0, -0.0, 3.3e38], np.float32)
    quotient = x / np.float32(0.1)
    bound = float(ml_dtypes.finfo(dtype).max)
    wanted = (np.clip(quotient, -bound, bound) if saturate else quotient).astype(dtype).astype(np.float64)
    constants = {"s": np.array(0.1, np.float32), "z": np.array(0, dtype)}
    made = one("QuantizeLinear", {"x": F32}, element, [x.size], constants, saturate=saturate)
    found = ran(tmp_path, made, "a5", x=x)
    got = found.outputs["y"].array.astype(np.float64)
    right = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    assert found.nodes[0].comparisons[0].undefined == 0
    assert found.nodes[0].comparisons[0].wrong == (~right).sum()
    assert right.all()
    assert found.agrees


def test_a_wrong_fp8_of_nan_is_found(tmp_path: Path) -> None:
    """Without selections the bounds replace NaN by the lower one; with the options of the cast no bounds are needed."""
    constants = {"s": np.array(0.1, np.float32), "z": np.array(0, ml_dtypes.float8_e4m3fn)}
    made = one("QuantizeLinear", {"x": F32}, TensorProto.FLOAT8E4M3FN, [2], constants, saturate=1)
    lacking, x = without_selections(), np.array([np.nan, 1], np.float32)
    free = ran(tmp_path, made, lacking, x=x)
    assert free.outputs["y"].codes[0] in (0x7F, 0xFF)  # the codes of NaN
    assert free.agrees
    assert [bool(stage.settings) for stage in free.nodes[0].stages] == [False, True]
    held = {name: 0 for name in lacking.options if name.startswith("ctrl_")}
    found = ran(tmp_path, made, lacking, held, x=x)
    assert found.outputs["y"].codes[0] not in (0x7F, 0xFF)
    assert found.nodes[0].comparisons[0].wrong == 1
    assert not found.agrees


def test_a_whole_graph_that_contradicts_its_nodes_does_not_conform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([np.nan, 1, 2, 3], np.float32)
    made = one("QuantizeLinear", {"x": F32}, I8, [4], {"s": np.array(0.5, np.float32), "z": np.array(-3, np.int8)})
    excused = ran(tmp_path, made, "a5", x=x)
    assert excused.agrees
    assert [(found.wrong, found.undefined) for found in excused.comparisons] == [(0, 1)]  # NaN, which is left open
    kept = ran(tmp_path, made, "a5", x=np.ones(4, np.float32))
    assert kept.agrees
    wrong = {made.graph.output[0].name: np.array([-1, -1, -1, 5], np.int8)}
    monkeypatch.setattr("castsim.tools.graphs.graph_execution.reference_run", lambda *_: wrong)
    contradicted = ran(tmp_path, made, "a5", x=np.ones(4, np.float32))
    assert all(node.agrees for node in contradicted.nodes)
    assert contradicted.comparisons[0].wrong == 1
    assert not contradicted.agrees


@pytest.mark.parametrize("shape", [[0, 4], [], [1]])
def test_tensors_of_no_element_and_of_one(tmp_path: Path, shape: list[int]) -> None:
    x = np.full(shape, 7.5, np.float32)
    found = ran(tmp_path, one("Clip", {"x": F32}, F32, shape, {"low": np.array(8, np.float32)}), "gaudi", x=x)
    assert found.agrees
    assert found.outputs["y"].array.shape == tuple(shape)
    assert (found.outputs["y"].array == 8).all()


@pytest.mark.parametrize(
    ("made", "inputs", "said"),
    [
        (one("Reshape", {"x": F32}, F32, [7], {"to": np.array([5, -1])}), {"x": np.ones(7, np.float32)}, "reshaped to"),
        (one("QuantizeLinear", {"x": F32}, U8, [2, 3], {"s": whole(2)}), {"x": whole(2, 3)}, "for axis 1"),
        (one("Add", {"x": I64, "w": I64}, I64, [2]), {"x": np.ones(2, np.int64), "w": np.ones(2, np.int64)},
         "no target computes with i64"),
        (one("DynamicQuantizeLinear", {"x": F32}, U8, [2]), {"x": np.array([1, np.nan], np.float32)}, "no NaN"),
    ],
)  # fmt: skip
def test_nodes_that_cannot_be_run_say_why(
    tmp_path: Path, made: object, inputs: dict[str, NDArray[np.generic]], said: str
) -> None:
    if said == "no NaN":
        made.graph.node[0].output.extend(["s", "z"])  # type: ignore[attr-defined]
    if said == "reshaped to":
        made.graph.ClearField("output")  # type: ignore[attr-defined]
        made.graph.output.append(helper.make_tensor_value_info("y", F32, [5, None]))  # type: ignore[attr-defined]
        made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"  # type: ignore[attr-defined]
    found = ran(tmp_path, made, "a5", **inputs)
    assert not found.agrees
    assert said in str(found.nodes[0].refusal)
    assert not found.outputs


NODES = {
    "test_cast_BFLOAT16_to_FLOAT": "a5", "test_cast_FLOAT8E4M3FN_to_FLOAT": "a5",
    "test_cast_FLOAT8E5M2_to_FLOAT16": "gaudi2", "test_cast_INT4_to_FLOAT": "greco", "test_cast_INT4_to_INT8": "a2a3",
    "test_cast_UINT4_to_FLOAT": "gaudi2", "test_cast_UINT4_to_UINT8": "greco", "test_cast_FLOAT4E2M1_to_FLOAT": "a5",
}  # fmt: skip
"""Golden tests of small sources, and a target with a chain that satisfies the specification."""

DTYPES = {
    "fp32": (np.float32, "FLOAT"), "fp16": (np.float16, "FLOAT16"), "bf16": (ml_dtypes.bfloat16, "BFLOAT16"),
    "e4m3fn": (ml_dtypes.float8_e4m3fn, "FLOAT8E4M3FN"), "e5m2": (ml_dtypes.float8_e5m2, "FLOAT8E5M2"),
    "e2m1": (ml_dtypes.float4_e2m1fn, "FLOAT4E2M1"), "int4": (ml_dtypes.int4, "INT4"),
    "uint4": (ml_dtypes.uint4, "UINT4"), "int8": (np.int8, "INT8"), "uint8": (np.uint8, "UINT8"),
}  # fmt: skip


def as_numbers(bits: NDArray[np.generic], kind: str) -> NDArray[np.generic]:
    if kind == "int4":
        return ((bits.astype(np.int64) ^ 8) - 8).astype(ml_dtypes.int4)
    return bits.astype(ml_dtypes.uint4) if kind == "uint4" else bits.view(DTYPES[kind][0])


@pytest.mark.parametrize(("name", "target"), NODES.items())
def test_golden_node_tests_of_onnx(tmp_path: Path, name: str, target: str) -> None:
    src, dst, *_ = (str(text) for text in GOLDEN[f"{name}__info"])
    bits, wanted = GOLDEN[f"{name}__in"], GOLDEN[f"{name}__out"]
    kinds = [getattr(TensorProto, DTYPES[kind][1]) for kind in (src, dst)]
    made = one("Cast", {"x": kinds[0]}, kinds[1], [bits.size], None, 23, to=kinds[1])
    found = ran(tmp_path, made, target, x=as_numbers(bits, src))
    result, expected = (array.astype(np.float64) for array in (found.outputs["y"].array, as_numbers(wanted, dst)))
    assert found.agrees
    assert ((result == expected) | (np.isnan(result) & np.isnan(expected))).all()


I32 = TensorProto.INT32
Array = NDArray[np.generic]


def ran_alone(
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
    return ran(tmp_path, model([node], kinds, {"y": out}, None, opset), target or "a5", None, **inputs)


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
    found = ran_alone(tmp_path, op, 6, {"a": a, "b": b}, (F32, [2, 3, 4, 5]), **given)
    expected = np.add if op == "Add" else np.multiply
    assert found.agrees
    assert (found.outputs["y"].array == expected(a, b.reshape(seen))).all()
    assert [comparison.wrong for comparison in found.comparisons] == [0]


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
    found = ran_alone(tmp_path, "Mul", 6, {"a": whole(*first), "b": whole(*second)}, (F32, list(first)), **attributes)
    assert not found.agrees
    assert said in str(found.nodes[0].refusal)


@pytest.mark.parametrize("opset", [10, 13])
def test_dequantisation_before_the_versions_of_the_evaluator(tmp_path: Path, opset: int) -> None:
    x = np.array([[0, 1, 127], [128, 200, 255]], np.uint8)
    scale = np.array([0.5, 0.25, 2], np.float32) if opset == 13 else np.array(0.5, np.float32)
    zero = np.array([1, 0, 128], np.uint8) if opset == 13 else np.array(128, np.uint8)
    found = ran_alone(tmp_path, "DequantizeLinear", opset, {"x": x, "s": scale, "z": zero}, (F32, [2, 3]))
    assert found.agrees
    assert (found.outputs["y"].array == (x.astype(np.float32) - zero) * scale).all()
    assert found.nodes[0].comparisons[0].elements == 6
    assert any("judged as DequantizeLinear of opset 19" in remark for remark in found.nodes[0].remarks)
    assert [comparison.wrong for comparison in found.comparisons] == [0]


def test_a_scale_per_axis_is_none_of_opset_10(tmp_path: Path) -> None:
    inputs = {"x": np.ones((2, 3), np.uint8), "s": np.ones(3, np.float32)}
    found = ran_alone(tmp_path, "DequantizeLinear", 10, inputs, (F32, [2, 3]))
    assert "one scale" in str(found.nodes[0].refusal)


def test_cast_of_opset_1_names_its_type(tmp_path: Path) -> None:
    x = np.array([1.75, -1.75, 100, 0], np.float16)
    found = ran_alone(tmp_path, "Cast", 1, {"x": x}, (I32, [4]), to="INT32")
    assert found.agrees
    assert found.outputs["y"].array.tolist() == [1, -1, 100, 0]
    assert len(found.nodes[0].comparisons) == 2
    with pytest.raises(ReadError, match="element type int32"):
        ran_alone(tmp_path, "Cast", 1, {"x": x}, (I32, [4]), to="int32")
    with pytest.raises(IllegalError, match="STRING is not supported"):
        ran_alone(tmp_path, "Cast", 1, {"x": x}, (TensorProto.STRING, [4]), to="STRING")


def test_reshape_of_opset_1_has_its_shape_as_an_attribute(tmp_path: Path) -> None:
    x = whole(2, 6)
    found = ran_alone(tmp_path, "Reshape", 1, {"x": x}, (F32, [2, 3, 2]), shape=[0, -1, 2], consumed_inputs=[0])
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
    found = ran_alone(tmp_path, "Clip", opset, {"x": x}, out, keeping, **attributes)
    largest = float(np.finfo(np.float32).max) if opset == 6 and dtype is np.float32 else np.inf
    low, high = attributes.get("min", -largest), attributes.get("max", largest)
    expected = np.clip(x.astype(np.float64), low, high)
    assert np.array_equal(found.outputs["y"].array.astype(np.float64), expected, equal_nan=True)
    assert found.agrees
    clamps = ran_alone(tmp_path, "Clip", opset, {"x": x}, out, **attributes)  # as after a reset: every f16 clamps
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
    found = ran_alone(tmp_path, "Add", 14, {"a": whole(4), "b": whole(4)}, (F32, [4]))
    assert (found.outputs["y"].array == whole(4) * 2).all()
    assert (found.nodes[0].refusal, found.nodes[0].unjudged, found.unjudged) == (None, "not today", "not today")
    assert not found.agrees
    arguments = ["graph", str(tmp_path / "model.onnx"), "--target", "a5", "--in", "a=zeros", "--in", "b=random:1"]
    document = json.loads(out_of(capsys, [*arguments, "--json", "-", "--out", str(tmp_path)], 1))
    assert (document["nodes"][0]["verdict"], document["nodes"][0]["unjudged"]) == ("not judged", "not today")
    assert document["whole_graph_unjudged"] == "not today"
    assert (tmp_path / "y.npy").exists()
    casted = ran_alone(tmp_path, "Cast", 13, {"x": whole(4)}, (I8, [4]), to=I8)
    assert casted.agrees  # judged by the sets of the specification


@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_a_zero_point_of_fp8_other_than_zero_is_not_supported(tmp_path: Path, op: str) -> None:
    fp8 = ml_dtypes.float8_e4m3fn
    x = whole(4) if op == "QuantizeLinear" else whole(4).astype(fp8)
    out = TensorProto.FLOAT8E4M3FN if op == "QuantizeLinear" else F32
    inputs = {"x": x, "s": np.array(1, np.float32), "z": np.array(3, fp8)}
    found = ran_alone(tmp_path, op, 21, inputs, (out, [4]))
    assert "zero point of e4m3fn other than 0" in str(found.nodes[0].refusal)


def to_array(data: object) -> NDArray[np.generic]:
    return numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)


@cache
def backend_cases() -> tuple[Any, ...]:
    operators = ("cast", "castlike", "quantizelinear", "dequantizelinear", "dynamicquantizelinear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what other operators compute for their cases
        return tuple(case for case in collect_testcases() if case.name.split("_")[1] in operators)


@pytest.mark.parametrize("target", ["a2a3", "a5", "gaudi2"])
def test_backend_cases_run_or_are_refused_for_a_type_that_the_chip_lacks(tmp_path: Path, target: str) -> None:
    """ONNX's own node tests of the casting operators; `lower` has no chain where a cast is refused."""
    thorough = "CASTSIM_THOROUGH" in os.environ
    assert len(backend_cases()) == 205
    equal = 0
    for case in backend_cases()[:: 1 if thorough else 9]:
        inputs, outputs = (
            [data if isinstance(data, np.ndarray) else to_array(data) for data in side] for side in case.data_sets[0]
        )
        names = [port.name for port in case.model.graph.input]
        found = ran(tmp_path, case.model, target, **dict(zip(names, inputs, strict=True)))
        refusals = [node.refusal for node in found.nodes if node.refusal]
        if refusals:
            assert re.search("no (instruction for )?elements of", refusals[0]), case.name
            if found.nodes[0].node.op in ("Cast", "CastLike"):
                (src, dst) = (inputs[0].dtype, outputs[0].dtype)
                spec = f"onnx@{case.model.opset_import[0].version}"
                assert lower(src, dst, target=target, spec=spec).kind.fails, case.name
            continue
        wanted = dict(zip((port.name for port in case.model.graph.output), outputs, strict=True))
        same = [
            np.array_equal(found.outputs[name].array.astype(float), array.astype(float), equal_nan=True)
            for name, array in wanted.items()
        ]
        equal += all(same)
        undivided = target == "gaudi2" and "dynamic" in case.name  # which multiplies by a rounded reciprocal
        assert all(same) or undivided or any(node.comparisons[-1].undefined for node in found.nodes), case.name
    if thorough and target == "a5":
        assert equal >= 110


@pytest.mark.parametrize(
    ("target", "src", "dst", "values"),
    [
        ("a2a3", np.int32, I8, [300, -200, 127, -128]),
        ("a2a3", np.uint16, F16, [0, 40000, 65535, 7]),
        ("a2a3", np.uint16, TensorProto.BFLOAT16, [0, 40000, 65535, 7]),
        ("a5", ml_dtypes.float8_e4m3fn, TensorProto.BOOL, [0, 0.5, np.nan, -448]),
        ("a2a3", ml_dtypes.uint4, F32, [0, 7, 8, 15]),
    ],
)
def test_a_cast_runs_the_chain_that_lower_proves(
    tmp_path: Path, target: str, src: type, dst: int, values: list[float]
) -> None:
    x = np.array(values).astype(src)
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    found = ran(tmp_path, one("Cast", {"x": element}, dst, [4], to=dst), target, x=x)
    dtype = helper.tensor_dtype_to_np_dtype(dst)
    planned = lower(x.dtype, dtype, target=target, spec="onnx@21")
    assert found.nodes[0].plan.chain == planned.plan.chain
    if src in (np.uint16, ml_dtypes.float8_e4m3fn):
        assert sum(step.is_instruction for step in planned.plan.chain) == 4
    assert found.conforms
    assert (found.outputs["y"].array == x.astype(dtype)).all()


@pytest.mark.parametrize(
    ("target", "kind", "size"),
    [("a2a3", "uint4", 130), ("a2a3", "uint2", 130), ("a5", "int4", 130), ("gaudi2", "int2", 130),
     ("a2a3", "int4", 3000), ("gaudi2", "int4", 3000)],
)  # fmt: skip
def test_quantised_to_less_than_a_byte(tmp_path: Path, target: str, kind: str, size: int) -> None:
    """In NumPy; a chip without elements of the width holds one in a byte."""
    dtype = getattr(ml_dtypes, kind)
    x = numbers(size, 4)
    constants = {"s": np.array(0.5, np.float32), "z": np.array(1, dtype)}
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
    q = np.clip(np.rint(x / np.float32(0.5)) + 1, low, high)
    found = ran(tmp_path, one("QuantizeLinear", {"x": F32}, element, [size], constants, opset=25), target, x=x)
    assert (found.outputs["y"].array.astype(int) == q).all()
    back = one("DequantizeLinear", {"x": element}, F32, [size], constants, opset=25)
    found = ran(tmp_path, back, target, x=q.astype(dtype))
    assert found.agrees
    assert (found.outputs["y"].array == (q - 1) * 0.5).all()


def test_without_an_exact_chain_the_route_with_the_fewest_wrong_elements_runs(tmp_path: Path) -> None:
    """f32 to e2m1 on the A5, by hand: ties of the format, exact in bf16, go to the even code (float4.md)."""
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -2.5], np.float32)
    zero = np.array(0, ml_dtypes.float4_e2m1fn)
    e2m1 = TensorProto.FLOAT4E2M1
    for made, x in (
        (one("Cast", {"x": F32}, e2m1, [8], to=e2m1, opset=23), ties),
        (one("QuantizeLinear", {"x": F32}, e2m1, [8], {"s": np.array(2, np.float32), "z": zero}, opset=23), ties * 2),
    ):
        found = ran(tmp_path, made, "a5", x=x)
        assert found.outputs["y"].array.astype(float).tolist() == [0, 1, 1, 2, 2, 4, 4, -2]
        assert found.agrees
        assert any("fewest wrong results on this input" in remark for remark in found.nodes[0].remarks)


@pytest.mark.parametrize("target", ["a2a3", "a5", "gaudi2"])
@pytest.mark.parametrize("scale", [0.0, np.inf, -np.inf])
def test_scales_of_zero_and_infinity(tmp_path: Path, target: str, scale: float) -> None:
    """x / inf is 0, and so the zero point; x / 0 has no integer; 0 * inf is NaN, as IEEE 754 has them."""
    x = np.array([1.5, -3, 0, 1e30], np.float32)
    constants = {"s": np.array(scale, np.float32), "z": np.array(3, np.int8)}
    found = ran(tmp_path, one("QuantizeLinear", {"x": F32}, I8, [4], constants), target, x=x)
    assert found.agrees
    assert not found.refuted
    if np.isinf(scale):
        assert (found.outputs["y"].array == 3).all()
        assert found.comparisons[0].undefined == 0
    else:
        assert found.comparisons[0].undefined == 4
    q = np.array([3, 4, -100, 127], np.int8)
    found = ran(tmp_path, one("DequantizeLinear", {"x": I8}, F32, [4], constants), target, x=q)
    with np.errstate(invalid="ignore"):
        wanted = (q.astype(np.float32) - 3) * np.float32(scale)
    assert np.array_equal(found.outputs["y"].array, wanted, equal_nan=True)


@pytest.mark.parametrize("target", ["a2a3", "a5", "gaudi2"])
def test_extremes_differences_quotients_and_rounding(tmp_path: Path, target: str) -> None:
    """Against NumPy; the A5 and A2/A3 divide by tensors, gaudi2 does not."""
    x, w = numbers(105, 20), numbers(105, 3, 8)
    for op, wanted in (("Sub", x - w), ("Min", np.minimum(x, w)), ("Max", np.maximum(x, w)), ("Div", x / w)):
        found = ran(tmp_path, one(op, {"x": F32, "w": F32}, F32, [105]), target, x=x, w=w)
        if op == "Div" and target == "gaudi2":
            assert "no div of f32" in str(found.nodes[0].refusal)
            continue
        assert (found.outputs["y"].array == wanted).all(), op
    first = helper.make_node("Sub", ["c", "x"], ["y"], name="node")
    made = model([first], {"x": (F32, [105])}, {"y": (F32, [105])}, {"c": np.array(4, np.float32)})
    assert (ran(tmp_path, made, target, x=x).outputs["y"].array == 4 - x).all()
    assert (ran(tmp_path, one("Round", {"x": F32}, F32, [105]), target, x=x).outputs["y"].array == np.rint(x)).all()
    cube = x.reshape(3, 5, 7)
    for op, reduce in (("ReduceMin", np.min), ("ReduceMax", np.max)):
        for axes, kept in (([1], 1), ([0, -1], 0), ([-2, 2], 1), (None, 0)):
            attributes = {"keepdims": kept} | ({} if axes is None else {"axes": axes})
            wanted = reduce(cube, axis=None if axes is None else tuple(axes), keepdims=bool(kept))
            node = helper.make_node(op, ["x"], ["y"], name="node", **attributes)
            made = model([node], {"x": (F32, [3, 5, 7])}, {"y": (F32, wanted.shape)}, opset=13)
            found = ran(tmp_path, made, target, x=cube)
            assert np.array_equal(found.outputs["y"].array, wanted), (op, axes)
