"""All cast builtins: values of the emitted assembly, counts, orders, latencies; what the command prints and refuses."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.command_output import Capture, document_of, ended, err_of, out_of, refusal
from kit.tpc_semantics_cases import samples
from kit.tpc_text import GENERATIONS, table, target
from numpy.typing import NDArray
from tools.builtins import builtin_oracle

from castsim import builtin, run
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.parser import parse
from castsim.numerics.codec import array_from_codes, codes_from_array
from castsim.targets.description import with_options
from castsim.targets.tpc_compiler import all_builtins, builtins_of, special_functions
from castsim.tools.tpc_binary.assembler import assemble, disassemble
from castsim.tools.tpc_binary.encoding_tables import encoding_of
from castsim.tools.tpc_compiler.builtin_calls import Builtin, BuiltinResult, call, emitted
from castsim.tools.tpc_compiler.builtin_sequences import read_signature
from castsim.tools.tpc_lint.lint_checking import lint

PUBLISHED = table("tpc_builtin_casts.csv")
SIGNATURES = table("tpc_builtin_signatures.csv")
ROWS = [(row["device"], row["builtin"]) for row in PUBLISHED]
DEFINED = [(row["device"], row["builtin"]) for row in PUBLISHED if not row["result_order"].startswith("undefined")]
MOVES = ("pack", "unpack", "mov_dg", "mov_g")
STEP = re.compile(r"(?:(\d+)x )?\b((?:CONVERT|MUL|MAX|MIN|ASH|AND|SHL|ADD|SUB|OR|CMP_EQ)[\w.]*)")
"""An instruction in the column of value steps, and how often it is done."""
SHIFTS = (0, -1, -5, -16)
SCALES = (0x3F800000, 0x43AA2000, 0xBE800000)
"""1.0, 340.25, -0.25."""


def published(generation: str, name: str) -> dict[str, str]:
    return next(row for row in PUBLISHED if (row["device"], row["builtin"]) == (generation, name))


def order_of(generation: str, name: str) -> str:
    """Return the order that the published table states in words."""
    words = published(generation, name)["result_order"]
    if "even/odd" in words:
        return "split"
    return "interleaved" if "interleaved" in words else words.split()[0].rstrip(",")


@lru_cache(maxsize=128)
def emission(generation: str, name: str, rounding: str | None = None) -> Builtin:
    return emitted(name, generation, rounding=rounding)


def scalars(found: Builtin, bits: int) -> dict[str, int | float]:
    """Return the scalar argument that a builtin takes, from its bits."""
    scalar = found.built.signature.scalar
    if scalar is None:
        return {}
    return {scalar[0]: bits if scalar[1] == "i32" else float(np.array([bits], "<u4").view(np.float32)[0])}


def called(found: Builtin, codes: NDArray[np.unsignedinteger], scalar: int = 0) -> BuiltinResult:
    """Call with source codes, filled up to whole calls."""
    source = found.built.signature.source
    filled = np.resize(codes, -(-codes.size // source.elements) * source.elements)
    fmt = FORMATS[source.format]
    return call(found, array_from_codes(filled.astype(f"<u{fmt.bits // 8}"), fmt), scalars(found, scalar))


def check(generation: str, name: str, codes: NDArray[np.unsignedinteger], scalar: int = 0, mode: str = "RHNE") -> None:
    """Compare calls with the oracle, element by element; nothing stale, operations as published."""
    found = emission(generation, name, None if mode == "RHNE" else mode.lower())
    result = called(found, codes, scalar)
    source, target_ = found.built.signature.source, found.built.signature.result
    given = np.resize(codes, result.calls * source.elements).reshape(result.calls, -1)
    made = np.resize(builtin_oracle.results(name, generation, scalar, mode, codes), given.shape)
    expected = builtin_oracle.ordered(made, order_of(generation, name), source.registers, target_.registers)
    got = codes_from_array(result.outputs["y"], FORMATS[target_.format]).reshape(result.calls, -1)
    wrong = np.argwhere(got != expected)
    assert wrong.size == 0, f"{len(wrong)} wrong, first {wrong[0]}: source {given[wrong[0][0]][wrong[0][1]]:#x}"
    assert result.stale_reads == ()
    assert result.warnings == ()
    assert result.vector_operations == int(published(generation, name)["vpu_ops"])


def sources(name: str) -> NDArray[np.unsignedinteger]:
    """Return every code of 8 and 16 bits, boundaries of 32 bits."""
    short = name.removeprefix("__builtin_cast_").removeprefix("lin_")
    src = short.split("_")[0]
    bits = 16 if name.endswith("f16_to_f32") else int(src.lstrip("iufb"))
    if bits <= 16:
        return np.arange(1 << bits, dtype=np.uint32)
    if src == "i32":
        return np.array(samples("i32"), np.uint32)
    bounds = [np.float32(base + step) for base in (0, 127, 128, 255, 256, 32767, 65535) for step in (-0.5, 0, 0.5)]
    near = np.array(bounds, np.float32).view(np.uint32).astype(np.int64)[:, None] + [-1, 0, 1]
    return np.concatenate([np.array(samples("f32"), np.uint32), near.ravel().astype(np.uint32)])


# ----------------------------------------------------------------------------------------------------------- tables


def test_the_rows_are_the_published_ones() -> None:
    casts = {(row["device"], row["builtin"]): row["signature"] for row in SIGNATURES if row["device"]}
    assert len(ROWS) == len(casts) == 72
    assert {(row.generation, row.builtin): row.signature for row in all_builtins()} == casts
    special = {row["builtin"]: row["signature"] for row in SIGNATURES if not row["device"]}
    assert len(special) == 23
    assert {row.builtin: row.signature for row in special_functions()} == special
    for generation in GENERATIONS:
        assert [row.builtin for row in builtins_of(target(generation))] == [b for g, b in ROWS if g == generation]


@pytest.mark.parametrize(("generation", "name"), ROWS)
def test_signature_registers_order_and_operations(generation: str, name: str) -> None:
    """Counted while one call is issued; the emitted text alone gives the same."""
    row, found = published(generation, name), emission(generation, name)
    signature = found.built.signature
    assert (signature.source.registers, signature.result.registers) == (int(row["in_vrfs"]), int(row["out_vrfs"]))
    assert str(found.row.result_order) == order_of(generation, name)
    assert found.vector_operations == found.row.vector_operations == int(row["vpu_ops"])
    heads = [text.split()[0].split(".")[0] for text in found.kernel.vector_instructions]
    assert len([head for head in heads if head not in ("mov", "halt")]) == int(row["vpu_ops"])
    assert any(head in MOVES for head in heads) is (row["lane_reorder"] == "yes")


@pytest.mark.parametrize(("generation", "name"), ROWS)
def test_value_steps_are_the_published_ones(generation: str, name: str) -> None:
    row, found = published(generation, name), emission(generation, name)
    counts: dict[str, int] = {}
    for group in re.sub(r"\([^)]*\)", "", row["value_steps"]).split(";"):
        each = int(row["in_vrfs"]) if group.strip().startswith("per source:") else 1
        for times, head in STEP.findall(group):
            counts[head.lower()] = counts.get(head.lower(), 0) + (int(times) if times else each)
    got: dict[str, int] = {}
    for text in found.kernel.vector_instructions:
        head = text.split()[0]
        if head.split(".")[0] not in (*MOVES, "mov", "halt"):
            got[head] = got.get(head, 0) + 1
    assert got == counts


# ----------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(("generation", "name"), DEFINED)
def test_values_of_every_source_code_or_boundary(generation: str, name: str) -> None:
    scalar = emission(generation, name).built.signature.scalar
    first = {"shift": 0, "scale": 0x3F800000}.get(scalar[0], 0) if scalar else 0
    check(generation, name, sources(name), first)


WITH_SCALAR = [
    (row.generation, row.builtin)
    for row in all_builtins()
    if (row.generation, row.builtin) in DEFINED and read_signature(row, target(row.generation)).scalar is not None
]


@pytest.mark.parametrize(("generation", "name"), WITH_SCALAR)
def test_scalar_arguments(generation: str, name: str) -> None:
    scalar = emission(generation, name).built.signature.scalar
    assert scalar is not None
    short = FORMATS[emission(generation, name).built.signature.source.format].bits < 32
    some = sources(name)[:: 131 if short else 1]
    rights = name.endswith(("i32_to_i16_lin_order", "i32_to_i16_swizzle_order"))
    shifts = SHIFTS if rights else (*SHIFTS, 3, 31, -40)
    for bits in SCALES[1:] if scalar[0] == "scale" else shifts[1:]:
        check(generation, name, some, bits)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("mode", ["RZ", "RU", "RD"])
def test_rounding_by_build_option_or_register(generation: str, mode: str) -> None:
    """On goya and gaudi the option changes the instructions, elsewhere the register is set first."""
    check(generation, "__builtin_cast_f32_to_u8_lin_order", sources("__builtin_cast_f32_to_u8_lin_order"), mode=mode)
    text = emission(generation, "f32_to_u8_lin_order", mode.lower()).text()
    assert ("st_l mmio" in text) is (generation not in ("goya", "gaudi"))
    assert (f" {mode.lower()} V" in text) is (generation in ("goya", "gaudi"))


# -------------------------------------------------------------------------------------------------------- programs


@pytest.mark.parametrize(("generation", "name"), ROWS)
def test_programs_are_clean_and_have_an_encoding(generation: str, name: str) -> None:
    """One call and a loop of calls: no finding of the linter; assembled, disassembled and assembled again."""
    chip = target(generation)
    permitted = with_options(chip, {"unpacked_lane_order": "every_second"}) if generation == "gaudib" else chip
    found = emission(generation, name)
    for calls in (1, 7):
        program = parse(found.text(calls), chip.dialect)
        assert [found for found in lint(program, permitted) if found.certain] == []  # arguments arrive in registers
        code = assemble(program, encoding_of(chip)).code
        again = parse(disassemble(code, encoding_of(chip)).text(), chip.dialect)
        assert assemble(again, encoding_of(chip)).code == code


def test_the_undocumented_builtin() -> None:
    """Emitted in the published order of operations; under the option its two moves take every second element."""
    found = emission("gaudib", "i16_to_32bits")
    heads = [text.split()[0] for text in found.kernel.vector_instructions]
    assert heads == ["unpack.bf16", "unpack.bf16", "mov_dg.unpack", "mov_dg.unpack"]
    first, second = found.kernel.vector_instructions[2:]
    assert "sdg0=0 sdg1=0 sdg2=1 sdg3=1" in first
    assert first.endswith("0x33333333")
    assert "sdg0=2 sdg1=2 sdg2=3 sdg3=3" in second
    assert second.endswith("0xcccccccc")
    permitted = emitted("i16_to_32bits", with_options(target("gaudib"), {"unpacked_lane_order": "every_second"}))
    result = call(permitted, np.arange(128, dtype=np.uint16), {})
    assert len(result.warnings) == 2
    assert result.vector_operations == 4


NARROW = "__builtin_cast_i32_to_i16_lin_order"
X = np.random.default_rng(3).integers(-(1 << 31), 1 << 31, 128).astype(np.int32)


def shown(capsys: Capture, *argv: str) -> str:
    code, out, err = ended(capsys, "builtin", *argv)
    assert (code, err) == (0, "")
    return out


def answer(capsys: Capture, *argv: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(capsys, *argv, "--json", "-", "--quiet"))
    return found


def expected(shift: int) -> np.ndarray:
    codes = builtin_oracle.results(NARROW, "goya", shift, "RHNE", X.view(np.uint32))
    return codes.astype(np.uint16).view(np.int16)


# ------------------------------------------------------------------------------------------------------------ python


def test_the_function() -> None:
    found = builtin(NARROW, "goya", X, args={"shift": -9})
    np.testing.assert_array_equal(found.outputs["y"], expected(-9))
    assert (found.calls, found.stale_reads, found.warnings) == (1, (), ())
    twice = builtin("i32_to_i16_lin_order", target("goya"), np.stack([X, X]), args={"shift": -9})
    np.testing.assert_array_equal(twice.outputs["y"], [expected(-9)] * 2)
    assert twice.cycles > found.cycles


def test_bad_arguments_of_the_function() -> None:
    for x, args, words in (
        (X[:100], {"shift": 0}, "x has 100 elements, but a call of __builtin_cast_i32_to_i16_lin_order takes 128"),
        (X[:0], {"shift": 0}, "x has 0 elements"),
        (X.astype(np.float64), {"shift": 0}, "float64"),
        (X, {}, "no value for shift"),
        (X, {"scale": 1.0}, "no scalar 'scale'"),
        (X, {"shift": 1.5}, "not an integer of 32 bits|is not an integer"),
        (X, {"shift": 1 << 40}, "is not an integer"),
    ):
        with pytest.raises(ReadError, match=words):
            builtin(NARROW, "gaudi", x, args=args)


# -------------------------------------------------------------------------------------------------------------- text


def test_the_report(capsys: Capture) -> None:
    text = shown(capsys, "i32_to_i16_lin_order", "--target", "goya")
    for words in (
        "signature: short128 (int64, int64, int)", "result order: linear", "// S0 holds shift (i32)",
        "VPU operations: 13 counted in the run, 13 documented", "values: not computed",
        "  nop; nop; pack.i16 source_group=0 element_stride=2 V4, V1; nop\n",
    ):  # fmt: skip
        assert words in text


def test_values_and_files(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", X)
    options = [NARROW, "--target", "gaudi2", f"--in=x={tmp_path / 'x.npy'}", "--out", str(tmp_path / "out")]
    for scalar in (["--arg", "shift=-9"], ["--in", "shift=-9"]):
        text = shown(capsys, *options, *scalar)
        assert "stale reads: none" in text
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), expected(-9))
    document = answer(capsys, *options, "--arg", "shift=-9")
    assert document["vpu_operations"] == {"counted": 10, "documented": 10}
    assert (document["result_order"], document["calls"], document["stale_reads"]) == ("linear", 1, [])
    written = {"name": "y", "file": str(tmp_path / "out" / "y.npy"), "format": "i16", "shape": [128], "sha256": ""}
    assert document["outputs"][0] | {"sha256": ""} == written


def test_the_assembly_runs_by_itself_and_as_a_binary(tmp_path: Path, capsys: Capture) -> None:
    for generation in ("goya", "gaudi"):
        text = shown(capsys, NARROW, "--target", generation, "--emit")
        source, binary = tmp_path / "narrow.tpc", tmp_path / "narrow.bin"
        source.write_text(text)
        chip = target(generation)
        binary.write_bytes(assemble(parse(text, chip.dialect), encoding_of(chip)).code)
        for path, keywords in ((source, {}), (binary, {"declare": source})):
            found = run(path, inputs={"x": X}, args={"S0": -9}, **keywords)  # type: ignore[arg-type]
            np.testing.assert_array_equal(found.outputs["y"], [expected(-9)])
            assert found.stale_reads == ()


def test_the_list(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")  # else signatures are folded
    rows = table("tpc_builtin_signatures.csv")
    every = shown(capsys)
    for row in rows:
        assert f"{row['builtin']} " in every
        assert row["signature"] in every
    document = answer(capsys, "--target", "greco")
    (greco,) = document["targets"]
    assert [each["name"] for each in greco["builtins"]] == [r["builtin"] for r in rows if r["device"] == "greco"]


@pytest.mark.parametrize(
    ("name", "least", "most"), [("frobnicate", 0, 0), ("f32_to_i8_order", 1, 5), ("i16_i32", 1, 5), ("x" * 40, 0, 0)]
)
def test_an_unknown_name_lists_near_names_five_at_most(name: str, least: int, most: int, capsys: Capture) -> None:
    err = err_of(capsys, ["builtin", name, "--target", "gaudi2"])
    assert f"error: unknown builtin '{name}'" in err
    assert least <= err.count("__builtin_") <= most


@pytest.mark.parametrize("generation", GENERATIONS)
def test_targets_lists_special_functions_with_signatures(generation: str, capsys: Capture) -> None:
    text = out_of(capsys, ["targets", generation])
    special = [row for row in table("tpc_builtin_signatures.csv") if not row["device"]]
    for row in special:
        first, *rest = re.escape(row["signature"]).split("\\ ")
        wrapped = "".join(rf"(?: |.*\n +){word}" for word in rest)
        assert re.search(rf"{row['builtin']} +{first}{wrapped}", text), row["builtin"]
    found = document_of(capsys, "targets", generation, "--quiet")["special_functions"]
    assert [(each["name"], each["signature"]) for each in found] == [(r["builtin"], r["signature"]) for r in special]
    assert {each["name"] for each in found if not each["modelled"]} == {
        f"__builtin_v_{name}" for name in ("recip_i16", "tanh_i16", "sigmoid_i16", "exp_i8", "exp_i16")
    }
    assert [sum(each["kind"] == kind for each in found) for kind in ("sequence", "table", "descriptor")] == [1, 7, 10]


def test_special_functions_say_whose_values_they_are(tmp_path: Path, capsys: Capture) -> None:
    x = np.linspace(0.5, 4, 70, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    options = ["--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path)]
    text = shown(capsys, "cos", "--target", "gaudi", *options)
    assert "values: correctly rounded, not claimed to be the chip's" in text
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.cos(x.astype(np.float64)).astype(np.float32))
    document = answer(capsys, "cos", "--target", "gaudi", *options)
    assert (document["claimed"], document["values"], document["calls"]) == (False, "correctly rounded", 2)
    assert document["tables"] == [{"name": "sin_cos", "function": 130, "entries": 128, "public": False}]
    assert "not claimed" in json.dumps(document["warnings"])
    np.save(tmp_path / "rcp.npy", np.zeros((128, 3), np.float32) + np.float32([1, 0, 0]))
    given = ["reciprocal", "--target", "gaudi", *options, "--in", f"rcp={tmp_path / 'rcp.npy'}"]
    document = answer(capsys, *given)
    assert (document["claimed"], document["values"], document["warnings"]) == (True, "instructions", [])
    powers = 2.0 ** -np.floor(np.log2(x))
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), powers.astype(np.float32))
    document = answer(capsys, "log", "--target", "gaudi2")
    assert (document["claimed"], document["operations"]) == (None, {"counted": 35, "documented": 35})


def test_a_function_runs_as_its_assembly(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "log.tpc"
    source.write_text(shown(capsys, "log", "--target", "gaudi", "--emit"))
    x = np.linspace(0.5, 40, 64, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    shown(capsys, "log", "--target", "gaudi", "--in", f"x={tmp_path / 'x.npy'}", "--out", str(tmp_path))
    found = run(source, inputs={"x": x})
    np.testing.assert_array_equal(found.outputs["y"].reshape(-1), np.load(tmp_path / "y.npy"))
    text = shown(capsys, "get_pad_value_char", "--target", "gaudi", "--arg", "tensor=1", "--arg", "word=0x80")
    assert "configuration word 0x440: read" in text
    assert "result: -128" in text


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["i32_to_i16_lin_ordre", "--target", "gaudi"], 2, f"legal: {NARROW}"),
        (["__builtin_v_sin_f33", "--target", "goya"], 2, "legal: __builtin_v_sin_f32"),
        (["cast_f32_to_q", "--target", "gaudi2"], 2, "legal: __builtin_cast_f16_to_f32, "),
        (["f16_to_f32", "--target", "greco"], 1, "help: --target gaudi, --target gaudi2"),
        (["__builtin_v_tanh_i16", "--target", "goya"], 1, "is not modelled: its instructions and number formats"),
        (["get_dim_stride", "--target", "goya"], 2, "takes tensor, dimension"),
        (["get_pad_value", "--target", "goya"], 2, "several builtins are called 'get_pad_value'"),
        (["coz", "--target", "goya"], 2, "__builtin_v_cos_f32"),
        (["v_f32_add_b", "--target", "gaudi2"], 2, "legal: __builtin_cast_f32_to_i16_lin_order, "),
        (["v_f32_add_b", "--target", "gaudi2"], 2, "is an intrinsic of TPC-C, which kernels call"),
        (["frobnicate", "--target", "goya"], 2, "'frobnicate'\n  help: castsim builtin --target goya"),
        (["cos", "--target", "goya", "--rounding", "rz"], 2, "--rounding applies only to casts"),
        (["pow", "--target", "goya", "--in", "x=zeros"], 2, "also needs y"),
        (["cos", "--target", "goya", "--in", "sin_cos=zeros"], 2, "no operands to compute with"),
        ([NARROW, "--target", "a5"], 1, "a5 has no builtins"),
        ([NARROW, "--target", "gaudi7"], 2, "unknown target"),
        ([NARROW], 2, "choose the generation\n  help: --target gaudi, --target gaudi2, "),
        ([NARROW, "--target", "gaudi", "--in", "x=zeros"], 2, "no value for shift"),
        ([NARROW, "--target", "gaudi", "--in", "z=zeros"], 2, "no tensor argument 'z'"),
        ([NARROW, "--target", "gaudi", "--in", "x=nothing.npy", "--arg", "shift=0"], 2, "does not exist"),
        ([NARROW, "--target", "gaudi", "--arg", "shift=x"], 2, "not a number"),
        ([NARROW, "--target", "gaudi", "--arg", "scale=1"], 2, "no scalar 'scale'"),
        ([NARROW, "--target", "gaudi", "--out", "y"], 2, "--out has nothing to write"),
        ([NARROW, "--target", "goya", "--rounding", "rhaz"], 1, "legal: rhne, rd, ru, rz"),
        ([NARROW, "--target", "gaudib", "--rounding", "up"], 1, "has no rounding mode 'up'"),
        ([NARROW, "--target", "gaudib", "--option", "lanes=1"], 2, "has no option 'lanes'"),
        (["i16_to_32bits", "--target", "gaudib", "--in", "x=zeros"], 1, "option unpacked_lane_order=every_second"),
    ],
)
def test_refusals(argv: list[str], code: int, words: str, capsys: Capture) -> None:
    found, message = refusal(capsys, "builtin", *argv)
    assert found == code
    assert words in message


def test_halves_in_wide_lanes_say_what_their_upper_bits_must_be(tmp_path: Path, capsys: Capture) -> None:
    command = ["f16_to_f32", "--target", "gaudi2"]
    assert "elements of x: u32 with the code of f16 in the lower 16 bits, 0 above" in shown(capsys, *command)
    codes = np.arange(64, dtype=np.uint32) * 1024
    np.save(tmp_path / "x.npy", codes)
    command += ["--in", f"x={tmp_path / 'x.npy'}"]
    assert "warning" not in shown(capsys, *command)
    codes[[7, 9]] += np.array([0x10000, 0x80000000], np.uint32)
    np.save(tmp_path / "x.npy", codes)
    text = " ".join(shown(capsys, *command).split())
    assert "warning: x: 2 of 64 elements have bits above the 16 of f16, the first element 7, 0x11c00;" in text
    assert "elements of x" not in shown(capsys, NARROW, "--target", "gaudi2")
    (warning,) = answer(capsys, *command)["warnings"]
    assert "2 of 64 elements" in warning
