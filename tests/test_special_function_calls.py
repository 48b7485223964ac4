"""Special functions of TPC-C as they are called: names, wrong operands, words of descriptors."""

from __future__ import annotations

import numpy as np
import pytest
from tpc_text import target

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc import parse
from castsim.machines.vliw.lint_checking import lint
from castsim.targets.tpc_compiler import FunctionKind, SpecialFunction, library_functions, special_functions
from castsim.tpc_compiler.builtin_names import find_function
from castsim.tpc_compiler.special_function_calls import call_function, descriptor_call, function_program

ROWS = {row.name: row for row in library_functions()}
TABLE = np.zeros((128, 3), np.float32)
"""As large as the table of reciprocals."""

# ------------------------------------------------------------------------------------------------ names, bad operands


def found_name(name: str, generation: str) -> str:
    row = find_function(name, target(generation))
    assert isinstance(row, SpecialFunction)
    return row.builtin


def test_names_long_and_short() -> None:
    assert found_name("cos", "gaudi") == "__builtin_v_cos_f32"
    for name in ("div_fast", "s_div_fast_f32"):
        assert found_name(name, "goya") == "__builtin_s_div_fast_f32"
    assert [found_name(each, "goya") for each in ("div", "exp", "rsqrt")] == ["v_div_f32", "v_exp_f32", "v_rsqrt_f32"]
    assert found_name("log2", "gaudi2") == "v_log2_f32"
    assert found_name("acos", "greco") == "__builtin_v_acos_cephes_f32"
    assert found_name("tanh", "gaudi") == "v_tanh_f32"
    for row in special_functions():
        for generation in row.generations:
            assert found_name(row.builtin, generation) == row.builtin
    with pytest.raises(ReadError, match="several builtins are called 'get_pad_value'"):
        find_function("get_pad_value", target("goya"))
    with pytest.raises(IllegalError, match="gaudi has no builtin 'exp_i8'") as refusal:
        find_function("exp_i8", target("gaudi"))
    assert refusal.value.legal == ("goya",)
    assert find_function("cosine", target("gaudi")) is None


def test_the_five_of_goya_are_refused_by_name() -> None:
    unpublished = [row for row in special_functions() if row.kind is FunctionKind.UNPUBLISHED]
    assert len(unpublished) == 5
    for row in unpublished:
        with pytest.raises(IllegalError, match="its instructions and number formats are not public"):
            function_program(row, target("goya"))


def test_bad_operands_and_tables() -> None:
    x = np.ones(3, np.float32)
    cases: list[tuple[str, dict[str, np.ndarray], dict[str, np.ndarray], str]] = [
        ("v_cos_f32", {}, {}, "takes x too: not given"),
        ("v_cos_f32", {"x": x, "z": x}, {}, "has no operand 'z'"),
        ("v_cos_f32", {"x": x.astype(np.float64)}, {}, "x: "),
        ("v_cos_f32", {"x": x[:0]}, {}, "x is empty"),
        ("v_pow_f32", {"x": x, "y": x[:2]}, {}, "operands of several shapes"),
        ("v_cos_f32", {"x": x}, {"rcp": TABLE}, "reads no table 'rcp'"),
        ("v_cos_f32", {"x": x}, {"sin_cos": TABLE[:64]}, "input 'sin_cos' has shape"),
    ]
    for name, given, tables, message in cases:
        with pytest.raises(CastsimError) as refusal:
            call_function(function_program(ROWS[name], target("gaudi2")), given, tables)
        assert message in refusal.value.message


# ------------------------------------------------------------------------------------------------------- descriptors


@pytest.mark.parametrize(
    ("name", "generation", "given", "address", "stored"),
    [
        ("set_pad_value_int", "goya", {"tensor": 0, "value": -5}, 0x408, 0xFFFFFFFB),
        ("get_dim_stride", "goya", {"tensor": 1, "dimension": 0}, 0x460, None),
        ("get_dim_stride", "gaudi2", {"tensor": 2, "dimension": 0}, 0xB4, None),
        ("set_dim_stride", "greco", {"tensor": 1, "dimension": 4, "value": 7}, 0x38 + 0x10 + 32 + 4, 7),
        ("set_pad_value_short", "gaudi", {"tensor": 3, "value": -2}, 0x400 + 3 * 0x38 + 8, 0xFFFEFFFE),
        ("set_pad_value_float", "gaudib", {"tensor": 0, "value": 1.5}, 0x408, 0x3FC00000),
    ],
)
def test_words_of_descriptors(
    name: str, generation: str, given: dict[str, int], address: int, stored: int | None
) -> None:
    found = descriptor_call(ROWS[name], target(generation), given)
    assert (found.address, found.stored) == (address, stored)
    assert f"{address:#x}" in found.text()
    rules = {each.rule for each in lint(parse(found.text(), target(generation).dialect), target(generation))}
    assert rules <= {"unread result"}


def test_results_of_descriptors_by_their_types() -> None:
    word = 0xFFFE8180
    expected = {
        "float": np.uint32(word).view(np.float32),
        "short": -32384,
        "ushort": 0x8180,
        "char": -128,
        "uchar": 0x80,
    }
    for kind, value in expected.items():
        found = descriptor_call(ROWS[f"get_pad_value_{kind}"], target("gaudi"), {"tensor": 0, "word": word})
        assert found.result == value or (kind == "float" and np.isnan(value))
    for given, message in (
        ({}, "takes tensor"),
        ({"tensor": 99}, "tensor=99"),
        ({"tensor": 0, "size": 1}, "has no argument 'size'"),
        ({"tensor": 0, "value": 40000}, "not of the type"),
    ):
        row = ROWS["set_pad_value_short"]
        with pytest.raises(ReadError, match=message):
            descriptor_call(row, target("gaudi"), {"value": 1, **given} if "value" not in given else given)
