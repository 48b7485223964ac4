"""Graphs from elsewhere: constants and counts of any size, outputs and attributes that mean nothing."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from castsim.__main__ import main
from castsim.graphs.graph_execution import make_tensors, read_graph, run_graph
from castsim.graphs.model import Graph
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.targets import load_target

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


def test_a_count_that_wraps_is_no_count(tmp_path: Path) -> None:
    """2^64 elements are not none: of that many, none is given."""
    with pytest.raises(ReadError, match="18446744073709551616"):
        tosa(tmp_path, "dense<[]>", "tensor<4294967296x4294967296xi8>")


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
    assert main([*argv, "--max-elements", "99999"]) == 1
    assert "--max-elements 100000" in capsys.readouterr().err
    assert main([*argv, "--max-elements", "100000"]) == 0


# --------------------------------------------------------------------------------------------------------------- ONNX


def saved(tmp_path: Path, nodes: list[onnx.NodeProto], outputs: list[str]) -> Path:
    path = tmp_path / "m.onnx"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", F32, [2, 3])],
        [helper.make_tensor_value_info(name, F16, [2, 3]) for name in outputs],
    )  # fmt: skip
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())
    return path


def test_an_output_may_be_listed_twice(tmp_path: Path) -> None:
    graph = read_graph(saved(tmp_path, [helper.make_node("Cast", ["x"], ["y"], to=F16)], ["y", "y"]))
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
    names = ["a/b", "a_b", "A_B", "..", "CON"]
    kinds = [F16, F16, F16, F16, F16]
    nodes = [helper.make_node("Cast", ["x"], [name], to=kind) for name, kind in zip(names, kinds, strict=True)]
    folder = tmp_path / "out"
    argv = ["graph", str(saved(tmp_path, nodes, names)), "--target", "a5", "--in", "x=random:0", "--quiet"]
    main([*argv, "--out", str(folder)])
    files = sorted(file.name for file in folder.iterdir())
    assert len({name.casefold() for name in files}) == len(names)
    assert [file for file in tmp_path.iterdir() if file.suffix == ".npy"] == []


def test_broadcasting_beyond_the_limit_is_refused_at_the_node(tmp_path: Path) -> None:
    many = helper.make_tensor("c", F32, [60_000, 1, 1], np.ones(60_000, np.float32).tobytes(), raw=True)
    nodes = [helper.make_node("Add", ["x", "c"], ["z"], name="sum"), helper.make_node("Cast", ["z"], ["y"], to=F16)]
    path = tmp_path / "m.onnx"
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", F32, [1, 1000, 1000])],
        [helper.make_tensor_value_info("y", F16, [60_000, 1000, 1000])], [many],
    )  # fmt: skip
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString())
    read = read_graph(path)
    with pytest.raises(IllegalError, match="node 'sum' has 60000000000 elements"):
        run_graph(read, load_target("a5"), make_tensors(read, {"x": "zeros"}, {}))
