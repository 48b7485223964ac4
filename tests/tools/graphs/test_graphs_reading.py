"""Graphs that cannot be read or are not supported, or come from elsewhere: class of the error, place, words."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from kit.command_output import err_of
from kit.paths import PROGRAMS
from onnx import TensorProto, helper
from tools.graphs.graph_models import model, quantise_block

from castsim.__main__ import main
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.targets.loader import load_target
from castsim.tools.graphs.graph_execution import make_tensors, read_graph, run_graph
from castsim.tools.graphs.model import Graph

SAMPLE = PROGRAMS / "casts_and_rescales.mlir"
CAST = """func.func @main(%arg0: tensor<2x3xf32>) -> tensor<2x3xi8> {
  %0 = tosa.cast %arg0 : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %0 : tensor<2x3xi8>
}
"""


def read(tmp_path: Path, content: str | bytes, suffix: str = ".mlir") -> Graph:
    path = tmp_path / f"graph{suffix}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_graph(path)


def test_the_forms_of_tosa_text_that_say_the_same(tmp_path: Path) -> None:
    plain = read(tmp_path, CAST)
    generic = CAST.replace("tosa.cast %arg0 :", '"tosa.cast"(%arg0) :')
    wrapped = f"module attributes {{a.b = 1 : i32}} {{\n{CAST}}}\n"
    commented = CAST.replace("return", "// the result\n  func.return")
    for text in (generic, wrapped, commented, CAST.replace("func.func @main", "func.func private @main")):
        other = read(tmp_path, text)
        assert (other.inputs, other.outputs) == (plain.inputs, plain.outputs)
        assert [node.op for node in other.nodes] == ["tosa.cast"]


def test_operands_of_rescale_as_attributes(tmp_path: Path) -> None:
    text = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi8> {
  %y = tosa.rescale %x {double_round = false, input_zp = 3 : i32, multiplier = array<i32: 1073741824>,
    output_zp = -2 : i32,
    per_channel = false, scale32 = true, shift = array<i8: 31>} : (tensor<4xi8>) -> tensor<4xi8>
  return %y : tensor<4xi8>
}
"""
    from castsim.tools.graphs.tosa_nodes import rescale_of  # noqa: PLC0415

    graph = read(tmp_path, text)
    found = rescale_of(graph, graph.nodes[0])
    assert (found.multiplier, found.shift, found.input_zp, found.output_zp) == ((1 << 30,), (31,), 3, -2)


@pytest.mark.parametrize(
    ("before", "after", "place", "said"),
    [
        ("%arg0 : (", "%arg1 : (", (2, 18), "%arg1 is not defined"),
        ("tosa.cast", "tosa.exp", (2, 8), "operator tosa.exp is not supported"),
        ("-> tensor<2x3xi8>\n  return", "-> tensor<2x4xi8>\n  return", (2, 8), "different shapes"),
        ("(tensor<2x3xf32>) ->", "(tensor<2x3xf16>) ->", (2, 26), "has a different type"),
        ("tensor<2x3xf32>) -> tensor<2x3xi8> {", "tensor<2x3xui8>) -> tensor<2x3xi8> {", (1, 24), "element type 'ui8'"),
        ("tensor<2x3xf32>) -> tensor<2x3xi8> {", "tensor<*xf32>) -> tensor<2x3xi8> {", (1, 24), "element type"),
        ("  return", "  %0 = tosa.identity %0 : (tensor<2x3xi8>) -> tensor<2x3xi8>\nreturn", (3, 3), "defined already"),
        ("return %0 : tensor<2x3xi8>\n}\n", "return %0 : tensor<2x3xi8>", (3, 29), "'}', found the end of the file"),
        ("return %0 : tensor<2x3xi8>\n}", "return\n}", (3, 3), "0 results returned, but 1 declared"),
        ("@main", "main", (1, 11), "expected the name of the function"),
        ("func.func", "func", (1, 1), "expected 'func.func'"),
        ("return", "&", (3, 3), "unexpected character '&'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_text_and_where(
    tmp_path: Path, before: str, after: str, place: tuple[int, int], said: str
) -> None:
    assert before in CAST
    with pytest.raises(CastsimError, match=said.replace("(", r"\(")) as caught:
        read(tmp_path, CAST.replace(before, after, 1))
    assert (caught.value.span.line, caught.value.span.column) == place


RESCALE = """func.func @main(%x: tensor<4xi8>) -> tensor<4xi16> {
  %m = "tosa.const"() <{values = dense<1073741824> : tensor<1xi32>}> : () -> tensor<1xi32>
  %n = "tosa.const"() <{values = dense<16384> : tensor<1xi16>}> : () -> tensor<1xi16>
  %s = "tosa.const"() <{values = dense<31> : tensor<1xi8>}> : () -> tensor<1xi8>
  %a = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %b = "tosa.const"() <{values = dense<0> : tensor<1xi16>}> : () -> tensor<1xi16>
  %y = tosa.rescale %x, %m, %s, %a, %b {input_unsigned = false, output_unsigned = false, per_channel = false,
    rounding_mode = SINGLE_ROUND, scale32 = true} : (tensor<4xi8>, tensor<1xi32>, tensor<1xi8>, tensor<1xi8>,
    tensor<1xi16>) -> tensor<4xi16>
  return %y : tensor<4xi16>
}
"""


@pytest.mark.parametrize(
    ("before", "after", "place", "said", "legal"),
    [
        ("input_unsigned =", "input_unsigend =", (7, 41), "no attribute 'input_unsigend'", "input_unsigned"),
        ("scale32 = true", "scale32 = true, foo = 1", (8, 51), "no attribute 'foo'", "scale32"),
        (", scale32 = true", "", (7, 8), "needs attribute 'scale32'", "scale32 = false"),
        (" per_channel = false,", "", (7, 8), "needs attribute 'per_channel'", "per_channel = true"),
        ("rounding_mode = SINGLE_ROUND, ", "", (7, 8), "needs attribute 'rounding", "rounding_mode = SINGLE_ROUND"),
        ("output_unsigned = false, ", "", (7, 8), "needs attribute 'output_unsigned'", "output_unsigned = true"),
        ("scale32 = true", "scale32 = 1", (8, 35), "'1' is not a value of scale32", "scale32 = true"),
        ("SINGLE_ROUND", "UP", (8, 5), "'UP' is not a value of rounding_mode", "rounding_mode = SINGLE_ROUND"),
        ("scale32 = true", "scale32 = true, shift = array<i8: 3>", (8, 51), "'shift' with 5 operands", "scale32"),
        ("scale32 = true", "scale32 = false", (7, 25), "multiplier of i32 with scale32 = false", "i16"),
        ("%x, %m, %s, %a, %b {", "%x, %n, %s, %a, %b {", (7, 25), "multiplier of i16 with scale32 = true", "i32"),
        ("%s, %a, %b {", "%b, %a, %b {", (7, 29), "shift of i16", "i8"),
        ("%a, %b {", "%b, %b {", (7, 33), "input_zp of i16", "i8"),
        ("%a, %b {", "%a, %a {", (7, 37), "output_zp of i8", "i16"),
        (', %b {', ' {', (7, 8), "needs attribute 'output_zp'", "output_zp = 0 : i32"),
        ("<{values = dense<31>", "<{valeus = dense<31>", (4, 25), "no attribute 'valeus'", "values"),
    ],
)  # fmt: skip
def test_attributes_and_operands_of_rescale_are_those_of_tosa(
    tmp_path: Path, before: str, after: str, place: tuple[int, int], said: str, legal: str
) -> None:
    """TOSA 1.0 has five attributes without defaults; the multiplier is i32 if scale32, else i16 (section 2.1)."""
    assert read(tmp_path, RESCALE).nodes[0].op == "tosa.rescale"
    assert before in RESCALE
    text = RESCALE.replace(before, after, 1)
    if after in ("%x, %n, %s, %a, %b {", "%b, %a, %b {", "%b, %b {", "%a, %a {", " {"):
        kinds = {"x": "4xi8", "m": "1xi32", "n": "1xi16", "s": "1xi8", "a": "1xi8", "b": "1xi16"}
        line = text[text.index("tosa.rescale") :]
        names = [name.strip(" %") for name in line[len("tosa.rescale") : line.index("{")].split(",")]
        types = ", ".join(f"tensor<{kinds[name]}>" for name in names)
        start = text.index("(", text.index("tosa.rescale"))
        text = f"{text[:start]}({types}){text[text.index(')', start) + 1 :]}"
    with pytest.raises(ReadError) as caught:
        read(tmp_path, text)
    assert said in caught.value.message
    assert legal in caught.value.legal
    assert (caught.value.span.line, caught.value.span.column) == place
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("tosa.cast %arg0", "tosa.cast %arg0 {input_unsinged = true}", "no attribute 'input_unsinged'"),
        ("tosa.cast %arg0", "tosa.cast %arg0 {saturate}", "no attribute 'saturate'"),
        ("tosa.cast %arg0", "tosa.cast %arg0 {input_unsigned = 2}", "'2' is not a value of input_unsigned"),
        ("tosa.cast %arg0", '"tosa.cast"(%arg0) <{a = 1}> {a = 2}', "'a' is given twice"),
    ],
)
def test_attributes_of_other_operators(tmp_path: Path, before: str, after: str, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        read(tmp_path, CAST.replace(before, after))
    assert read(tmp_path, CAST.replace(before, 'tosa.cast %arg0 {my.note = "kept"}')).nodes[0].attributes == {}


@pytest.mark.parametrize(("text", "code"), [("-1", 0xFFFFFFFFFFFFFFFF), ("140737488355328", 0xFFFF800000000000)])
def test_constants_of_48_bits_have_their_sign_in_all_of_64(tmp_path: Path, text: str, code: int) -> None:
    kind = "tensor<1xi48>"
    made = f"func.func @main() -> {kind} {{\n  %c = tosa.const {{values = dense<{text}> : {kind}}} : {kind}\n"
    graph = read(tmp_path, f"{made}  return %c : {kind}\n}}\n")
    assert graph.constants["c"].codes.tolist() == [code]
    assert graph.constants["c"].array.view(np.int64).tolist() == [code - (1 << 64)]


def test_texts_with_anything_in_them_are_read_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    text = SAMPLE.read_text(encoding="utf-8")
    pieces = [
        "<", ">", "{", "}", "(", ")", ",", ":", "=", '"', "%", "@", "#", "x", "-", "9" * 30, "tensor<", "dense<", "\n",
        "é",
    ]  # fmt: skip
    refused = 0
    for _ in range(400):
        at = int(rng.integers(len(text)))
        end = at + int(rng.integers(0, 12))
        changed = text[:at] + str(rng.choice(pieces)) * int(rng.integers(0, 2)) + text[end:]
        try:
            read(tmp_path, changed)
        except CastsimError as error:
            refused += 1
            assert error.message
    assert refused > 200


def test_models_with_anything_in_them_are_read_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    data = quantise_block().SerializeToString()
    refused = 0
    for _ in range(150):
        changed = bytearray(data[: int(rng.integers(1, len(data) + 1))])
        for _ in range(int(rng.integers(0, 4))):
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
        try:
            read(tmp_path, bytes(changed), ".onnx")
        except CastsimError as error:
            refused += 1
            assert error.message
    assert refused > 75


def test_files_that_are_no_models(tmp_path: Path) -> None:
    for content in (b"", b"no model at all", SAMPLE.read_bytes()):
        with pytest.raises(ReadError, match="is not an ONNX model"):
            read(tmp_path, content, ".onnx")
    with pytest.raises(ReadError, match="No such file"):
        read_graph(tmp_path / "missing.onnx")
    with pytest.raises(ReadError, match="No such file"):
        read_graph(tmp_path / "missing.mlir")
    with pytest.raises(ReadError, match="not UTF-8"):
        read(tmp_path, b"\xff\xfe", ".mlir")


@pytest.mark.parametrize("version", [0, 99])
def test_an_opset_that_does_not_exist(tmp_path: Path, version: int) -> None:
    made = quantise_block()
    made.opset_import[0].version = version
    with pytest.raises(ReadError, match=f"unknown opset of ai.onnx: {version}") as caught:
        read(tmp_path, made.SerializeToString(), ".onnx")
    assert caught.value.legal == (f"1 to {onnx.defs.onnx_opset_version()}",)


def test_a_node_that_is_not_supported_is_named(tmp_path: Path) -> None:
    made = quantise_block()
    made.graph.node[1].op_type = "Mod"
    with pytest.raises(IllegalError, match="node 'bias': operator Mod is not supported") as caught:
        read(tmp_path, made.SerializeToString(), ".onnx")
    assert "QuantizeLinear" in caught.value.legal
    made.graph.node[1].op_type, made.graph.node[1].domain = "Add", "my.domain"
    with pytest.raises(IllegalError, match=r"my\.domain\.Add is not supported"):
        read(tmp_path, made.SerializeToString(), ".onnx")


TEXTS = np.array([["3.14", "1e-5"], ["-INF", "NaN"]])


@pytest.mark.parametrize("opset", [9, 13, 21])
@pytest.mark.parametrize("kind", ["input", "initializer", "constant"])
def test_texts_become_numbers_and_numbers_texts(tmp_path: Path, opset: int, kind: str) -> None:
    """Cast of texts on the host, a program behind it; f32 and f64 of NumPy are the numbers that they spell."""
    nodes = [helper.make_node("Cast", ["t"], ["x"], name="from_text", to=TensorProto.FLOAT)]
    nodes += [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Cast", ["y"], ["z"], to=TensorProto.STRING)]
    held = helper.make_tensor("t", TensorProto.STRING, [2, 2], [text.encode() for text in TEXTS.reshape(-1)])
    if kind == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["t"], value=held))
    ports = [helper.make_tensor_value_info("t", TensorProto.STRING, [2, 2])] if kind == "input" else []
    outs = [
        helper.make_tensor_value_info(*port, [2, 2]) for port in (("y", TensorProto.FLOAT), ("z", TensorProto.STRING))
    ]
    graph = helper.make_graph(nodes, "g", ports, outs, [held] if kind == "initializer" else [])
    made = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])
    path = tmp_path / "texts.onnx"
    path.write_bytes(made.SerializeToString())
    for given in (TEXTS, TEXTS.astype(object), np.char.encode(TEXTS)) if kind == "input" else (None,):
        read_in = read_graph(path)
        inputs = make_tensors(read_in, {} if given is None else {"t": given}, {})
        found = run_graph(read_in, load_target("a5"), inputs)
        expected = TEXTS.astype(np.float32) * 2
        assert found.agrees, found.nodes
        assert np.array_equal(found.outputs["y"].array, expected, equal_nan=True)
        assert found.outputs["z"].array.tolist() == [["6.28", "0.00002"], ["-INF", "NaN"]]
        document = tmp_path / "found.json"
        np.save(tmp_path / "t.npy", TEXTS)
        told = ["--in", f"t={tmp_path / 't.npy'}"] if kind == "input" else []
        told += ["--out", str(tmp_path), "--json", str(document), "--html", str(tmp_path / "page.html"), "--quiet"]
        assert main(["run", str(path), "--target", "a5", *told]) == 1  # no cast of texts is proven
        assert np.load(tmp_path / "z.npy").tolist() == found.outputs["z"].array.tolist()
        assert "string" in document.read_text()
        assert [run.verdict.name for run in found.nodes if run.node.op == "Cast"] == ["NO_MISMATCH"] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("random:1", "holds strings"),
        (np.zeros((2, 2)), "not float64"),
        (np.array([["1", "x"], ["2", "3"]]), "not a number"),
    ],
)
def test_wrong_texts(tmp_path: Path, given: object, message: str) -> None:
    node = helper.make_node("Cast", ["t"], ["x"], name="from_text", to=F32)
    made = model([node], {"t": (TensorProto.STRING, [2, 2])}, {"x": (F32, [2, 2])})
    graph = read(tmp_path, made.SerializeToString(), ".onnx")
    with pytest.raises(ReadError, match=message):
        run_graph(graph, load_target("a5"), make_tensors(graph, {"t": given}, {}))


def test_wrong_models(tmp_path: Path) -> None:
    text = quantise_block()
    text.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING  # which Mul does not take
    with pytest.raises(ReadError):
        read(tmp_path, text.SerializeToString(), ".onnx")
    with pytest.raises(ReadError):
        node = helper.make_node("Cast", ["x"], ["y"], to=99)
        read(tmp_path, model([node], {"x": (F32, [2])}, {"y": (99, [2])}).SerializeToString(), ".onnx")
    unknown = quantise_block()
    unknown.graph.node[0].input[0] = "nothing"
    with pytest.raises(ReadError, match="nothing"):
        read(tmp_path, unknown.SerializeToString(), ".onnx")


def test_inputs_that_do_not_fit(tmp_path: Path) -> None:
    graph = read(tmp_path, quantise_block().SerializeToString(), ".onnx")
    good = np.zeros((3, 64), np.float32)
    assert make_tensors(graph, {"x": good}, {})["x"].shape == (3, 64)
    assert make_tensors(graph, {"x": "random:1"}, {"rows": 2})["x"].shape == (2, 64)
    for given, sizes, said in (
        ({}, {}, "no input given for x"),
        ({"z": good}, {}, "no input 'z'"),
        ({"x": good[:, :5]}, {}, "the graph needs \\?x64"),
        ({"x": good.reshape(-1)}, {}, "shape"),
        ({"x": good}, {"rows": 4}, "4x64"),
        ({"x": good.astype(np.float64)}, {}, "input 'x'"),
        ({"x": "random:1"}, {}, "extent 'rows' is dynamic"),
        ({"x": "random:1"}, {"rows": 2.5}, "extent 'rows'"),
        ({"x": "random:zero"}, {"rows": 1}, "seed"),
        ({"x": good}, {"cols": 4}, "no dynamic extent 'cols'"),
        ({"x": str(tmp_path / "none.npy")}, {}, "does not exist"),
    ):
        with pytest.raises(ReadError, match=said):
            make_tensors(graph, given, sizes)


F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16


def tosa(tmp_path: Path, constant: str, kind: str) -> Graph:
    path = tmp_path / "g.mlir"
    path.write_text(f"""func.func @f(%a: tensor<4xf32>) -> tensor<4xf16> {{
  %c = "tosa.const"() <{{values = {constant} : {kind}}}> : () -> {kind}
  %0 = tosa.cast %a : (tensor<4xf32>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}}
""")
    return read_graph(path)


@pytest.mark.parametrize("element", ["i8", "f32", "i48", "bf16", "i4"])
def test_a_splat_takes_the_memory_of_one_element(element: str, tmp_path: Path) -> None:
    value = "1.5" if element in ("f32", "bf16") else "3"
    found = tosa(tmp_path, f"dense<{value}>", f"tensor<1000x1000000x{element}>").constants["c"]
    assert found.shape == (1000, 1_000_000)
    assert found.codes.strides == (0, 0)
    assert found.codes.base is None or found.codes.base.size == 1
    assert float(found.array[999, 999_999]) == float(value)


@pytest.mark.parametrize(
    "kind",
    [
        "tensor<4294967296x4294967296xi8>", "tensor<9223372036854775808xi8>", "tensor<" + "9" * 5000 + "xi8>",
        "tensor<" + "2x" * 64 + "i8>", "tensor<" + "1x" * 33 + "i8>", "!tosa.shape<" + "9" * 5000 + ">",
        "tensor<4611686018427387904xi32>",
    ],
)  # fmt: skip
def test_sizes_that_no_tensor_has(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ReadError) as caught:
        tosa(tmp_path, "dense<0>", kind)
    assert caught.value.span is not None
    assert len(caught.value.render()) < 1000


def test_many_numbers_are_rounded_as_each_alone(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(0, 1e3, 500)
    text = ", ".join(repr(float(value)) for value in values)
    found = tosa(tmp_path, f"dense<[{text}]>", "tensor<500xf16>").constants["c"]
    assert (found.array == values.astype(np.float16)).all()
    mixed = tosa(tmp_path, "dense<[1.5, 0x3C00, -2.0]>", "tensor<3xf16>").constants["c"]
    assert mixed.array.tolist() == [1.5, 1.0, -2.0]


def test_types_that_do_not_end_well_take_linear_time(tmp_path: Path) -> None:
    start = time.thread_time()
    with pytest.raises(ReadError, match="not a ranked tensor type"):
        tosa(tmp_path, "dense<0>", "tensor<" + "4x" * 200_000 + "f32, enc>")
    assert time.thread_time() - start < 60  # processor time: linear takes a fraction of a second, else hours


def test_tensors_over_the_limit_are_refused_with_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.mlir"
    path.write_text("func.func @f(%a: tensor<100000xf32>) -> tensor<100000xf16> {\n"
                    "  %0 = tosa.cast %a : (tensor<100000xf32>) -> tensor<100000xf16>\n"
                    "  return %0 : tensor<100000xf16>\n}\n")  # fmt: skip
    argv = ["graph", str(path), "--target", "a5", "--in", "a=random:0", "--quiet"]
    assert "--max-elements 100000" in err_of(capsys, [*argv, "--max-elements", "99999"], 1)
    assert main([*argv, "--max-elements", "100000"]) == 0


# --------------------------------------------------------------------------------------------------------------- ONNX


def saved(tmp_path: Path, nodes: list[onnx.NodeProto], outputs: list[str]) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(model(nodes, {"x": (F32, [2, 3])}, {name: (F16, [2, 3]) for name in outputs}), path)
    return path


def test_an_output_may_be_listed_twice(tmp_path: Path) -> None:
    made = model([helper.make_node("Cast", ["x"], ["y"], to=F16)], {"x": (F32, [2, 3])}, {"y": (F16, [2, 3])})
    made.graph.output.append(made.graph.output[0])
    graph = read(tmp_path, made.SerializeToString(), ".onnx")
    x = np.array([[1, 2.5, -3], [0.1, 7e4, 0]], np.float32)
    found = run_graph(graph, load_target("a5"), make_tensors(graph, {"x": x}, {}))
    assert list(found.outputs) == ["y"]
    assert len(found.comparisons) == 1


def test_an_attribute_of_a_function_is_refused_by_name(tmp_path: Path) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=F16)
    node.attribute[0].ref_attr_name = "kind"
    with pytest.raises(CastsimError, match="'to' refers to attribute 'kind'"):
        read_graph(saved(tmp_path, [node], ["y"]))


def test_outputs_of_like_names_have_files_of_their_own(tmp_path: Path) -> None:
    names, folder = ["a/b", "a_b", "A_B", "..", "CON"], tmp_path / "out"
    path = saved(tmp_path, [helper.make_node("Cast", ["x"], [name], to=F16) for name in names], names)
    main(["graph", str(path), "--target", "a5", "--in", "x=random:0", "--quiet", "--out", str(folder)])
    assert len({file.name.casefold() for file in folder.iterdir()}) == len(names)
    assert [file for file in tmp_path.iterdir() if file.suffix == ".npy"] == []


def test_broadcasting_beyond_the_limit_is_refused_at_the_node(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "c"], ["z"], name="sum"), helper.make_node("Cast", ["z"], ["y"], to=F16)]
    shapes = {"x": (F32, [1, 1000, 1000])}, {"y": (F16, [60_000, 1000, 1000])}
    made = model(nodes, *shapes, {"c": np.ones((60_000, 1, 1), np.float32)})
    graph = read(tmp_path, made.SerializeToString(), ".onnx")
    with pytest.raises(IllegalError, match="node 'sum' has 60000000000 elements"):
        run_graph(graph, load_target("a5"), make_tensors(graph, {"x": "zeros"}, {}))
