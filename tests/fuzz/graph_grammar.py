"""Random ONNX models and TOSA texts."""

from __future__ import annotations

from random import Random

_OPERATORS = (
    "Cast", "QuantizeLinear", "DequantizeLinear", "Add", "Mul", "Clip", "CastLike", "DynamicQuantizeLinear", "Sub",
    "Div", "Relu", "Identity", "Reshape", "Constant", "Max", "Min", "Abs", "Neg", "Round", "Floor", "Ceil", "Softmax",
    "If",
)  # fmt: skip
_INPUTS = {"CastLike": 2, "QuantizeLinear": 2, "DequantizeLinear": 2, "Add": 2, "Sub": 2, "Mul": 2, "Div": 2}
_ELEMENTS = (
    "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "i1", "f8E4M3FN", "f8E5M2", "i48", "i4", "f64", "u8", "index",
)  # fmt: skip
_EXTENTS = ("1", "2", "4", "16", "64", "?", "0", "-1", "*", "99999999999")


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


def _type(rng: Random) -> str:
    few = rng.random() < 0.9
    extents = ["4", "16"] if few else [rng.choice(_EXTENTS) for _ in range(rng.choice((0, 1, 2, 2)))]
    return f"tensor<{'x'.join([*extents, rng.choice(_ELEMENTS[:6] if few else _ELEMENTS)])}>"


def tosa(rng: Random) -> bytes:
    """A function of casts, rescales and constants."""
    known, lines = [("%arg0", _type(rng))], []
    signature = known[0][1]
    for number in range(rng.randint(1, 5)):
        name, kind, (given, its) = f"%{number}", _type(rng), rng.choice(known)
        match rng.randrange(5):
            case 0:
                lines.append(f"{name} = tosa.cast {given} : ({its}) -> {kind}")
            case 1:
                lines.append(f'{name} = "tosa.cast"({given}) : ({its}) -> {kind}')
            case 2:
                number_ = rng.choice(("0", "-5", "1.5", "[1, 2, 3]", '"0xFF"', "true", "[[1], [2]]", "9" * 30))
                lines.append(f'{name} = "tosa.const"() <{{values = dense<{number_}> : {kind}}}> : () -> {kind}')
            case 3:
                flags = ", ".join(
                    f"{word} = {rng.choice(('true', 'false'))}"
                    for word in ("scale32", "per_channel", "input_unsigned", "output_unsigned")
                )
                values = [rng.choice(known) for _ in range(4)]
                mode = rng.choice(("SINGLE_ROUND", "DOUBLE_ROUND", "INEXACT_ROUND", "X"))
                lines.append(
                    f"{name} = tosa.rescale {given}, {', '.join(one for one, _ in values)} {{{flags}, "
                    f"rounding_mode = {mode}}} : ({', '.join([its, *(one for _, one in values)])}) -> {kind}"
                )
            case _:
                operator = rng.choice(("abs", "add", "reshape", "clamp", "exp", "x"))
                lines.append(f"{name} = tosa.{operator} {given} : ({its}) -> {kind}")
        known.append((name, kind))
    last, kind = known[-1]
    head = f"func.func @main(%arg0: {signature}) -> {kind} {{"
    return "\n".join([head, *lines, f"return {last} : {kind}", "}", ""]).encode()
