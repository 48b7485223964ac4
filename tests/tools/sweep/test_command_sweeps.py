"""Commands on seeded combinations of their arguments: every cell is a result or a refusal with exit 1 or 2."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from kit.command_output import document_of
from kit.tpc_text import GENERATIONS, table

from castsim.commands import command_line
from castsim.isa.errors import CastsimError, EngineError
from castsim.reports.terminal import rendered

FORMATS = ("i1", "i8", "u8", "i16", "u16", "i32", "u32", "f8_143", "f8_152", "f16", "bf16", "f32", "i4", "u4", "i64")
ODD = ("f64", "e4m3fn", "hif8", "i48", "i2", "bool", "f8_143@11", "nothing", "float-1", "float0", "float00064", "")
C_NAMES = (
    "bool", "char", "uchar", "short", "ushort", "int", "uint", "minifloat", "minihalf", "half", "bfloat", "float",
)  # fmt: skip
COUNTS = ("1", "7", "64", "128", "192", "256", "512", "1024", "100000000")
FORMS = ("as", "implicit", "explicit", "reinterpret", "ir")
ORDERS = ("linear", "swizzle", "lane", "scalar")
VALUES = ("1", "2", "-1.5", "nan", "inf", "-inf", "0x0", "0x1", "1e40", "70000", "-129", "0xff", "0x80000000", " 5")
ROUNDINGS = ("SW_RZ", "rhne", "csr", "sr", "rhaz", "rd")


def outcome(arguments: Sequence[str]) -> int:
    """Run a command with its text and its document, and return the exit code; anything but a refusal is raised."""
    try:
        found = command_line.execute(*command_line.parse(arguments))
        rendered(found.text(100), io.StringIO())
        json.dumps(found.document, allow_nan=False)
    except (CastsimError, EngineError) as refusal:
        assert refusal.message
        assert refusal.render()
        return refusal.exit_code
    return found.code


def type_from(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(FORMATS)
    return rng.choice(ODD) if kind < 0.55 else rng.choice(C_NAMES) + rng.choice(COUNTS)


def compiled(rng: random.Random, generation: str) -> list[str]:
    arguments = ["compiled", type_from(rng), type_from(rng), "--target", generation]
    arguments += ["--form", rng.choice(FORMS), "--order", rng.choice(ORDERS)]
    if rng.random() < 0.15:
        arguments += ["--reading", rng.choice(("compiler", "document", "scalar"))]
    if rng.random() < 0.15:
        arguments += ["--rounding", rng.choice(ROUNDINGS)]
    return arguments


@pytest.mark.parametrize("generation", GENERATIONS)
def test_compiled_assembly(generation: str) -> None:
    rng = random.Random(f"emit {generation}")
    codes = [outcome([*compiled(rng, generation), "--emit"]) for _ in range(24)]
    assert {0, 1} <= set(codes) <= {0, 1, 2}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_compiled_values(generation: str) -> None:
    rng = random.Random(f"values {generation}")
    codes = [
        outcome([*compiled(rng, generation), *rng.choices(VALUES, k=rng.choice((0, 1, 2, 3, 5)))]) for _ in range(10)
    ]
    assert 1 in codes
    assert set(codes) <= {0, 1, 2}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_compiled_predicates(generation: str, order: str) -> None:
    """A predicate has no format of its own: with and without a number of elements, as source and result."""
    for form in ("explicit", "ir"):
        for src, dst in (("i1", "i1"), ("i1", "f32"), ("bool128", "float64"), ("f32", "i1")):
            cell = ["compiled", src, dst, "--target", generation, "--order", order, "--form", form]
            assert outcome([*cell, "1", "0", "7"]) in (0, 1, 2)
            assert outcome([*cell, "--emit"]) in (0, 1, 2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        *((f"i1 {dst} 0 1 100 --target greco --form ir", [0, 1, 1]) for dst in ("f32", "i32", "i16", "i8")),
        ("bool128 float128 3 0 --target gaudi", [1, 0]),
        *((f"f32 i32 1 2.5 -3 nan --target {generation} --order scalar", [1, 2, -3, 0]) for generation in GENERATIONS),
    ],
)
def test_compiled_values_of_predicates_and_scalars(
    words: str, expected: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    for result in document_of(capsys, "compiled", *words.split())["results"]:
        if result["account"] == "compiler" or "ir" in words:
            assert [row[0]["value"] for row in result["values"]] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("bool float --order scalar", "gaudi2 has no elements of bool"),
        ("i1 f32 --order scalar", "no source documents how a scalar predicate is cast"),
        ("bool64 half", "half64: 64 elements of f16 do not fill"),
        ("bool128 float64 --order lane", "bool128 is not one register"),
        ("float128 short64 --order lane", "float128 is not one register"),
        ("f32 i32 --form reinterpret --order lane", "its order cannot be lane"),
        ("f8_143@11 f32", "the exponent bias is in a register of the chip"),
        ("i1 i1 --form explicit --order swizzle --emit", "selects no i1 by a predicate"),
        ("u32 short100000 --form ir", "uint100000: the vector registers hold only 2560 elements"),
    ],
)
def test_compiled_refusals(arguments: str, message: str) -> None:
    name, options = command_line.parse(["compiled", *arguments.split(), "--target", "gaudi2"])
    with pytest.raises(CastsimError, match=message.replace("(", r"\(")) as refusal:
        command_line.execute(name, options)
    assert refusal.value.exit_code == 1
    assert refusal.value.legal


NAMES = sorted({row["builtin"].removeprefix("__builtin_cast_") for row in table("tpc_builtin_casts.csv")})
ARRAYS = (
    np.zeros(0, np.float32),
    np.zeros(128, np.float32),
    np.full(256, np.nan, np.float32),
    np.zeros((2, 64), np.float32),
    np.zeros(256, np.int8),
    np.zeros(63, np.int32),
    np.zeros(64, np.complex64),
    np.zeros(64, np.bool_),
    np.array(3.0, np.float32),
    np.array(["a"] * 64),
    np.zeros(64, np.dtype(">f4")),
)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_builtin(generation: str, tmp_path: Path) -> None:
    rng = random.Random(f"builtin {generation}")
    files = []
    for number, array in enumerate(ARRAYS):
        files.append(f"x={tmp_path / f'{number}.npy'}")
        np.save(tmp_path / f"{number}.npy", array)
    inputs = (
        "x=zeros",
        "x=random:1",
        "x=random:-1",
        "x=random:",
        "x=",
        "y=zeros",
        "x=none.npy",
        "x",
        "shift=3",
        *files,
    )
    numbers = (
        "shift=-4", "shift=5", "shift=99999999999", "shift=abc", "shift=1.5", "scale=2.5", "scale=nan", "scale=inf",
    )  # fmt: skip
    codes = set()
    for name in rng.sample(NAMES, 4):
        arguments = ["builtin", name, "--target", generation, "--in", rng.choice(inputs)]
        if rng.random() < 0.5:
            arguments += ["--arg", rng.choice(numbers)]
        if rng.random() < 0.3:
            arguments += ["--rounding", rng.choice((*ROUNDINGS, "nothing", ""))]
        codes.add(outcome([*arguments, *(["--emit"] if rng.random() < 0.3 else [])]))
    assert codes <= {0, 1, 2}


CASTS = (*FORMATS[1:], *ODD, "e5m2", "e8m0", "e2m1", "f8_143@0", "f8_143@16", "f32@3", "f8_143@", "f8_143@²", "FP32")
NUMBERS = (*VALUES, "0x", "0xg", "1e99999", "", "abc", "1e", "0x-1", "1/3", "0x1p3", "1e-5000", "²", "-0.0", "9" * 60)


def test_cast() -> None:
    rng = random.Random("cast")
    codes = set()
    for _ in range(40):
        arguments = ["cast", rng.choice(CASTS), rng.choice(CASTS), *rng.choices(NUMBERS, k=2)]
        if rng.random() < 0.6:
            arguments += ["--target", rng.choice((*GENERATIONS, "a5", "a2a3", "all", "abstract", "onnx", "nothing"))]
        if rng.random() < 0.3:
            arguments += ["--rounding", rng.choice(("rint", "trunc", "odd", "stochastic", "rhne", "sr", "nothing"))]
        codes.add(outcome(arguments))
    assert {0, 2} <= codes <= {0, 1, 2}


WORDS = (
    "all_lanes", "pack", "unpack", "PCK_8_TO_4", "UNPCK_8_TO_32", "lane_sel=3", "V0", "D1", "A39", "V40", "I31", "0x",
    "99999999999", "target_type=int4", "x2", "x4", "sr", "@", "{", "b00010", "LFSR", "%V1", "direct", "partial",
    "!SP0", ",", ";", ":", "loop", "jmpr", "i8_-999", "ZP_REG", "é", "=", ".byte 0x1", ".compressed spu_vpu ld_st",
)  # fmt: skip


def changed(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(words))
        way = rng.randrange(4)
        if way == 0:
            words[place] = rng.choice(WORDS)
        elif way == 1:
            words.insert(place, rng.choice(WORDS))
        elif way == 2:
            words[place] = words[place][: rng.randrange(len(words[place]) + 1)]
        else:
            other = rng.randrange(len(words))
            words[place], words[other] = words[other], words[place]
    return " ".join(words)


@pytest.mark.parametrize("command", ["asm", "lint", "unswizzle", "run"])
def test_changed_assembly(command: str, tmp_path: Path) -> None:
    rng, path = random.Random(command), tmp_path / "changed.tpc"
    rows = [row for row in table("tpc_asm_corpus_dev.csv") if row["input_asm"]]
    codes = set()
    for _ in range(30):
        row = rng.choice(rows)
        path.write_text(changed(row["input_asm"], rng), encoding="utf-8")
        more = ["--timing-only", "--max-cycles", "2000"] if command == "run" else []
        codes.add(outcome([command, str(path), "--target", row["gen"], *more]))
    assert codes <= {0, 1, 2}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_any_bytes_disassemble(generation: str, tmp_path: Path) -> None:
    rng, path = random.Random(f"bytes {generation}"), tmp_path / "any.bin"
    for _ in range(20):
        path.write_bytes(rng.randbytes(rng.choice((0, 1, 16, 31, 32, 33, 64, 96))))
        assert outcome(["disasm", str(path), "--target", generation]) in (0, 1, 2)
