"""Small ONNX models for the tests, and the sample models in programs/, which `python tests graph_models` writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from kit.paths import PROGRAMS
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[int | str]]],
    outputs: dict[str, tuple[int, Sequence[int | str]]],
    constants: dict[str, NDArray[np.generic]] | None = None,
    opset: int = 21,
) -> onnx.ModelProto:
    """Return a model; inputs and outputs are element type and shape by name."""
    graph = helper.make_graph(
        nodes,
        "sample",
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info(name, *what) for name, what in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def quantise_block() -> onnx.ModelProto:
    """Scale, clip, quantise to int8, and back, and to f16: what a quantised layer does with its activations."""
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["scaled"], name="gain"),
        helper.make_node("Add", ["scaled", "bias"], ["biased"], name="bias"),
        helper.make_node("Clip", ["biased", "low", "high"], ["bounded"], name="bound"),
        helper.make_node("QuantizeLinear", ["bounded", "scale", "zero"], ["q"], name="quantise"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], name="dequantise"),
        helper.make_node("Cast", ["q"], ["half"], name="widen", to=TensorProto.FLOAT16),
    ]
    constants = {
        "gain": np.float32(0.75), "bias": np.linspace(-1, 1, 64, dtype=np.float32), "low": np.float32(-60),
        "high": np.float32(60), "scale": np.float32(0.5), "zero": np.int8(3),
    }  # fmt: skip
    shape = ["rows", 64]
    return model(
        nodes,
        {"x": (TensorProto.FLOAT, shape)},
        {"q": (TensorProto.INT8, shape), "y": (TensorProto.FLOAT, shape), "half": (TensorProto.FLOAT16, shape)},
        constants,
    )


def quantise_half() -> onnx.ModelProto:
    """Clip and quantise f16 to int8, and back, and to f32: every node reads few codes, so all are tried."""
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["bounded"], name="bound"),
        helper.make_node("QuantizeLinear", ["bounded", "scale", "zero"], ["q"], name="quantise"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["half"], name="dequantise"),
        helper.make_node("Cast", ["half"], ["y"], name="widen", to=TensorProto.FLOAT),
    ]
    constants = {"low": np.float16(-60), "high": np.float16(60), "scale": np.float16(0.5), "zero": np.int8(3)}
    shape = ["rows", 64]
    return model(
        nodes,
        {"x": (TensorProto.FLOAT16, shape)},
        {"q": (TensorProto.INT8, shape), "y": (TensorProto.FLOAT, shape)},
        constants,
    )


def dynamic_quantise() -> onnx.ModelProto:
    """Quantise by the range of the data itself."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["flat"], name="flatten"),
        helper.make_node("DynamicQuantizeLinear", ["flat"], ["q", "scale", "zero"], name="quantise"),
        helper.make_node("Identity", ["q"], ["y"], name="pass"),
    ]
    return model(
        nodes,
        {"x": (TensorProto.FLOAT, [8, 96])},
        {"y": (TensorProto.UINT8, [768]), "scale": (TensorProto.FLOAT, []), "zero": (TensorProto.UINT8, [])},
        {"shape": np.array([-1], np.int64)},
    )


def eight_casts() -> onnx.ModelProto:
    """Eight nodes: casts of every kind of width, and two pairs of quantising and going back, on 2,048 numbers."""
    casts = {
        "half": ("x", TensorProto.FLOAT16), "brain": ("x", TensorProto.BFLOAT16), "integer": ("x", TensorProto.INT32),
        "back": ("half", TensorProto.FLOAT),
    }  # fmt: skip
    nodes = [helper.make_node("Cast", [source], [name], name=name, to=to) for name, (source, to) in casts.items()]
    for name, source, zero in (("q", "x", "signed"), ("u", "back", "unsigned")):
        nodes.append(helper.make_node("QuantizeLinear", [source, "scale", zero], [name], name=f"quantise_{name}"))
        nodes.append(helper.make_node("DequantizeLinear", [name, "scale", zero], [f"{name}_x"], name=f"widen_{name}"))
    constants = {"scale": np.float32(0.0625), "signed": np.int8(3), "unsigned": np.uint8(128)}
    shape = [32, 64]
    kinds = {"brain": TensorProto.BFLOAT16, "integer": TensorProto.INT32, "q_x": TensorProto.FLOAT}
    outputs = {name: (kind, shape) for name, kind in {**kinds, "u_x": TensorProto.FLOAT}.items()}
    return model(nodes, {"x": (TensorProto.FLOAT, shape)}, outputs, constants)


SAMPLES = {
    "eight_casts.onnx": eight_casts,
    "quantise_block.onnx": quantise_block,
    "quantise_half.onnx": quantise_half,
    "dynamic_quantise.onnx": dynamic_quantise,
}


if __name__ == "__main__":
    for name, make in SAMPLES.items():
        onnx.save(make(), PROGRAMS / name)
