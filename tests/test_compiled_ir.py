"""LLVM IR casts: the language's definition, computed here with fractions, beside what the compiler makes of them."""

from __future__ import annotations

from fractions import Fraction
from math import trunc

import compiled_cases as cases
import numpy as np
import oracle_compiled as oracle
import pytest
from oracle_formats import INTS, Value, decode, fmt
from oracle_scalar import encode

from castsim.__main__ import main
from castsim.tpc_compiler.cast_comparison import compare, defined, inputs_of, opcodes
from castsim.tpc_compiler.compiled_casts import compile_cast

OPCODES = {
    ("f32", "bf16"): ["fptrunc"],
    ("bf16", "f32"): ["fpext"],
    ("f16", "bf16"): ["fpext", "fptrunc"],
    ("i32", "f32"): ["sitofp"],
    ("u16", "bf16"): ["uitofp"],
    ("f32", "i8"): ["fptosi"],
    ("f16", "u32"): ["fptoui"],
    ("u32", "i8"): ["trunc"],
    ("i8", "u16"): ["sext"],
    ("u8", "i32"): ["zext"],
    ("i32", "u32"): [],
}


def number(value: Value) -> Fraction:
    return -value.magnitude if value.negative else value.magnitude


def by_definition(code: int, src: str, dst: str) -> int | None:
    """Return the code that the language reference gives, None for poison; -1 for any NaN."""
    value, row = decode(code, src), fmt(dst)
    if dst in INTS:
        if src in INTS:
            return int(number(value)) % (1 << row.bits)
        if value.kind != "finite" or not row.low <= trunc(number(value)) <= row.high:
            return None
        return trunc(number(value)) % (1 << row.bits)
    if value.kind == "nan":
        return -1
    if value.kind == "inf":
        return row.inf | (row.sign_code if value.negative else 0)
    return encode(value, row, "rint", "special")


@pytest.mark.parametrize(("src", "dst"), sorted(OPCODES))
def test_instructions_by_types(src: str, dst: str) -> None:
    assert [each.value for each in opcodes(src, dst)] == OPCODES[src, dst]


@pytest.mark.parametrize(("src", "dst"), [pair for pair in cases.pairs("gaudib") if opcodes(*pair)])
def test_the_definition_is_the_languages(src: str, dst: str) -> None:
    codes = cases.sample(src, dst, points=8, random=20)
    found, poison = defined(codes, src, dst)
    for code, result, free in zip(codes.tolist(), found.tolist(), poison.tolist(), strict=True):
        wanted = by_definition(code, src, dst)
        assert free is (wanted is None), hex(code)
        if wanted == -1:
            assert decode(result, dst).kind == "nan"
        elif wanted is not None:
            assert result == wanted, hex(code)


@pytest.mark.parametrize("generation", ["gaudi"])
def test_a_witness_is_shown_exactly_where_the_compiler_differs(generation: str) -> None:
    for src, dst in cases.pairs(generation):
        if not opcodes(src, dst) or (fmt(src).bits == 16 and dst not in ("u8", "bf16")):
            continue
        found = compare(compile_cast(src, dst, generation, form="ir"), [])
        codes = inputs_of(src)[:: 1 if fmt(src).bits <= 8 else 197]
        made = oracle.expected(codes, src, dst, generation)
        differing = [
            code
            for code, ours in zip(codes.tolist(), made.tolist(), strict=True)
            if by_definition(code, src, dst) not in (None, -1, ours)
        ]
        assert bool(found.differences) or not differing, (src, dst, differing[:3])
        for difference in found.differences:
            witness = difference.witness
            assert witness.other == by_definition(witness.code, src, dst) != witness.ours
            ours = oracle.expected(np.array([witness.code], cases.storage(src)), src, dst, generation)
            assert witness.ours == ours[0]


@pytest.mark.parametrize(
    ("src", "dst", "code", "ours", "defined_code"),
    [
        ("f32", "i32", 0x3F400000, 1, 0),  # 0.75: fptosi rounds to nearest even
        ("i32", "i16", 40000, 0x7FFF, 40000),  # trunc saturates
        ("u32", "f32", 2**31 + 129, 0x4F000000, 0x4F000001),  # halving rounds twice
        ("i8", "u16", 0xFF, 0, 0xFFFF),  # the table's sext to an unsigned type converts the number
    ],
)
def test_known_differences_on_gaudi(src: str, dst: str, code: int, ours: int, defined_code: int) -> None:
    found = compare(compile_cast(src, dst, "gaudi", form="ir"), [code])
    assert [column.codes[0, 0] for column in found.columns] == [ours, defined_code]
    assert found.differences


def test_exact_casts_agree_for_every_input() -> None:
    for src, dst in (("bf16", "f32"), ("i16", "i32"), ("u8", "u32"), ("i16", "f32")):
        found = compare(compile_cast(src, dst, "gaudi", form="ir"), [])
        assert found.differences == ()


def test_extensions_of_integers_leave_the_mode_to_the_register() -> None:
    text = compile_cast("i16", "i32", "gaudi", form="ir").kernel.vector_instructions
    assert any(each.startswith("convert.i16 target_type=int32 V") or " csr " in each for each in text)
    text = compile_cast("f32", "i32", "gaudi", form="ir").kernel.vector_instructions
    assert all(" rhne " in each for each in text)


def test_the_command_shows_poison_and_the_witness(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compiled", "f32", "i32", "0.75", "nan", "--target", "gaudi", "--form", "ir"]) == 0
    out = capsys.readouterr().out
    assert "LLVM IR fptosi" in out
    assert "1 (0x00000001)  0 (0x00000000)  differs" in out
    assert "poison" in out
    assert "differs from LLVM IR: 0.625" in out
