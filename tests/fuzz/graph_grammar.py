"""Random ONNX models."""

from __future__ import annotations

from random import Random

_OPERATORS = (
    "Cast", "QuantizeLinear", "DequantizeLinear", "Add", "Mul", "Clip", "CastLike", "DynamicQuantizeLinear", "Sub",
    "Div", "Relu", "Identity", "Reshape", "Constant", "Max", "Min", "Abs", "Neg", "Round", "Floor", "Ceil", "Softmax",
    "If",
)  # fmt: skip
_INPUTS = {"CastLike": 2, "QuantizeLinear": 2, "DequantizeLinear": 2, "Add": 2, "Sub": 2, "Mul": 2, "Div": 2}


def onnx(rng: Random) -> bytes:
    """A model of a few nodes over values that mostly exist."""
    from onnx import helper  # noqa: PLC0415 - only for models

    shape = [rng.choice((1, 2, 4, 64)) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    known, nodes = ["x", "s"], []
    for number in range(rng.randint(1, 4)):
        name = rng.choice(_OPERATORS[:6] if rng.random() < 0.9 else _OPERATORS)
        given = [
            rng.choice([*known, "", "nowhere"] if rng.random() < 0.1 else known)
            for _ in range(_INPUTS.get(name, 1) if rng.random() < 0.95 else 3)
        ]
        more: dict[str, object] = {}
        if name == "Cast" or rng.random() < 0.1:
            more["to" if name == "Cast" else "axis"] = rng.choice(
                (1, 2, 3, 6, 10, 16, 17) if name == "Cast" else (0, 1, -1, 99)
            )
        if rng.random() < 0.05:
            more[rng.choice(("saturate", "block_size", "alpha", "odd"))] = rng.choice((0, 1, -1, 2.5, "text", [1, 2]))
        nodes.append(helper.make_node(name, given, [f"y{number}"], name=rng.choice(("", f"n{number}")), **more))
        known.append(f"y{number}")
    value = helper.make_tensor_value_info
    kinds = (1,) * 30 + (2, 3, 6, 10, 16, 17, 0, 200)
    constant = helper.make_tensor("s", 1, [], [rng.choice((0.5, 0.0, -1.0, float("inf"), 1e30))])
    graph = helper.make_graph(
        nodes, "g", [value("x", rng.choice(kinds), shape)], [value(known[-1], rng.choice(kinds), shape)], [constant]
    )
    opset = helper.make_opsetid(
        rng.choice(("",) * 15 + ("ai.onnx.ml",)), rng.choice((21,) * 9 + (13, 19, 23, 24, 25, 1, 6, 999))
    )
    return bytes(
        helper.make_model(graph, opset_imports=[opset], ir_version=rng.choice((10,) * 20 + (3, 99))).SerializeToString()
    )
