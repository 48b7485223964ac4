"""NEARBYINT with `cnvrt`: both results, against exact arithmetic and against the oracle; text and encoding.

Source of the rule: docs/reference/tpc.md section 5.2. A pair of registers: the rounded value in the source type, then
the same value as an integer of its width, saturated, 0 for NaN (option nan_to_integer).
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from core.machines.vliw.test_tpc_semantics_convert import INCOME, MASK, WORDS
from kit.tpc_bundles import encoding
from kit.tpc_machine import END, nops, ran
from kit.tpc_semantics_cases import POLYNOMIAL, instruction, run, samples, state, vector
from kit.tpc_text import target
from oracle_tpc import convert, nearby, stepped

from castsim.isa.tpc.parser import parse, print_program
from castsim.machines.vliw.semantics import prepare
from castsim.machines.vliw.semantics.operands import OperandValues
from castsim.targets.description import with_options
from castsim.tools.tpc_binary.bundle_encoding import decode_bundle, encode_bundle

BOTH = ("greco", "gaudi2")
WIDE = (("f32", "i32", np.float32), ("bf16", "i16", ml_dtypes.bfloat16), ("f16", "i16", np.float16))
NARROW = (("f8_143", "i8"), ("f8_152", "i8"))
MODES = ("rhne", "rz", "ru", "rd", "rhaz")


def rounded(values: np.ndarray, mode: str) -> np.ndarray:
    """Round float64, which holds all sources exactly; zeros keep the sign of what they come from."""
    with np.errstate(invalid="ignore"):
        match mode:
            case "rhne":
                return np.rint(values)
            case "rhaz":  # a half is added where it cannot round: nothing from 2^52 on has a fraction
                away = np.where(np.abs(values) < 2.0**51, np.floor(np.abs(values) + 0.5), np.abs(values))
                return np.copysign(away, values)
            case _:
                found = {"rz": np.trunc, "ru": np.ceil, "rd": np.floor}[mode](values)
                return np.copysign(found, values)


def codes_for(name: str, bits: int) -> np.ndarray:
    """All codes of 16 bits; of 32 bits random ones, halves, neighbours of integers and of the ends of the range."""
    if bits == 16:
        return np.arange(1 << 16, dtype=np.uint16)
    source = np.random.default_rng(5)
    halves = np.arange(-3000, 3000) / 2
    ends = np.array([2.0**k + d for k in (22, 23, 24, 30, 31, 32, 63) for d in (-1, -0.5, 0, 0.5, 1)])
    exact = np.concatenate([halves, ends, -ends]).astype(np.float32)
    near = np.concatenate([exact, np.nextafter(exact, np.float32(9e9)), np.nextafter(exact, np.float32(-9e9))])
    special = np.array(
        [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 1, 0x80000001], np.uint32
    )
    anything = source.integers(0, 1 << 32, 20000, dtype=np.uint32)
    small = source.uniform(-70000, 70000, 20000).astype(np.float32).view(np.uint32)
    found = np.concatenate([special, anything, small, near.view(np.uint32)])
    return np.resize(found, -(-found.size // 64) * 64)


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "integer", "kind"), WIDE)
def test_both_results_against_exact_arithmetic(generation: str, mode: str, name: str, integer: str, kind: type) -> None:
    bits = int(integer[1:])
    codes = codes_for(name, bits)
    with np.errstate(invalid="ignore"):
        meant = rounded(codes.view(kind).astype(np.float64), mode)
        nan = np.isnan(meant)
        floats = meant.astype(kind).view(codes.dtype)
        limits = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1)
        numbers = np.where(nan, 0, np.clip(meant, *limits)).astype(np.int64).astype(f"i{bits // 8}")
    floats = np.where(nan, codes.dtype.type((1 << (bits - 1)) - 1), floats)
    line = f"nearbyint.{name} cnvrt target_type=int{bits} {mode} D4, V2"
    lanes = 2048 // bits
    for start in range(0, codes.size, lanes):
        part = slice(start, start + lanes)
        read = vector(codes[part].tolist(), bits)
        first, second = run(line, generation, income=(INCOME[0], INCOME[1]), src_a=read).result
        assert np.array_equal(first.view(codes.dtype), floats[part]), (line, start)
        assert np.array_equal(second.view(numbers.dtype), numbers[part]), (line, start)


@pytest.mark.parametrize(("name", "integer"), [*NARROW, *((name, integer) for name, integer, _ in WIDE)])
def test_every_mode_against_the_oracle(name: str, integer: str) -> None:
    """Also random rounding: both results come from one draw. And predicates: false lanes keep both registers."""
    chip, bits = target("gaudi2"), int(integer[1:])
    lanes = 2048 // bits
    for word, mode in chip.convert_rounding.modes.items():
        meant = "RHNE" if mode.rounding is None else word.upper()
        random = meant in ("SR", "SR_RNE")
        taken = range(256) if bits == 8 else np.resize(samples(name), lanes).tolist()
        found = run(f"nearbyint.{name} cnvrt target_type=int{bits} {word} D4, V2", income=(INCOME[0], INCOME[1]),
                    src_a=vector(list(taken), bits), machine=state(words=WORDS), predicate=MASK)  # fmt: skip
        draws = [WORDS[lane % 64] if random else None for lane in range(lanes)]
        floats = [nearby(code, name, meant, draw) for code, draw in zip(taken, draws, strict=True)]
        numbers = [convert(code, name, integer, meant, draw) for code, draw in zip(taken, draws, strict=True)]
        kept = np.repeat(MASK[:: bits // 8], bits // 8)
        for got, codes, income in zip(found.result, (floats, numbers), INCOME, strict=False):
            assert np.array_equal(got, np.where(kept, vector(codes, bits), income)), (name, word)
        if random:
            assert found.vector_lfsr.tolist() == stepped(WORDS, POLYNOMIAL)


@pytest.mark.parametrize(("option", "expected"), [("zero", 0), ("maximum", 0x7FFFFFFF)])
def test_what_becomes_of_a_nan_is_an_option(option: str, expected: int) -> None:
    """docs/reference/tpc.md section 5 leaves NaN to integer open: a switch."""
    chip = with_options(target("gaudi2"), {"nan_to_integer": option})
    found = prepare(instruction("nearbyint.f32 cnvrt target_type=int32 rz D4, V2"), chip)
    operands = OperandValues({"src_a": vector([0x7FC00000] * 64, 32)}, (INCOME[0], INCOME[1]))
    first, second = found(operands, state()).result
    assert set(first.view(np.uint32).tolist()) == {0x7FFFFFFF}
    assert set(second.view(np.uint32).tolist()) == {expected}


@pytest.mark.parametrize("generation", BOTH)
def test_a_pair_is_written(generation: str) -> None:
    text = "// castsim: tensor 0 x in f32 [64]\n// castsim: tensor 1 y out f32 [64]\n"
    text += "// castsim: tensor 2 z out i32 [64]\n// castsim: reg I0 = [0, 0, 0, 0, 0]\n"
    text += f"ld_tnsr V0, 0x0, I0; nop; nop; nop\n{nops(3)}"
    text += "nop; nop; nearbyint.f32 cnvrt target_type=int32 ru D2, V0; nop\n" + nops(5)
    text += f"nop; nop; nop; st_tnsr 0x1, I0, V2\n{nops(5)}nop; nop; nop; st_tnsr 0x2, I0, V3\n{END}"
    x = np.linspace(-9, 9, 64).astype(np.float32)
    found = ran(text, generation, {"x": x})
    np.testing.assert_array_equal(found.outputs["y"], np.ceil(x))
    np.testing.assert_array_equal(found.outputs["z"], np.ceil(x).astype(np.int32))
    assert found.stale_reads == ()


@pytest.mark.parametrize("generation", BOTH)
@pytest.mark.parametrize("predicate", ["", ", VP3", ", !SP2"])
def test_text_and_encoding(generation: str, predicate: str) -> None:
    """Switch bit 4 is `cnvrt`; the target's code stands in the low bits of src_b, with and without it."""
    for line, switches, code in (
        ("nearbyint.f32 cnvrt target_type=int32 ru D4, V5", 0b10010, 2),
        ("nearbyint.bf16 cnvrt target_type=int16 rz D4, V5", 0b10001, 7),
        ("nearbyint.f32 target_type=int32 rhne V4, V5", 0, 2),  # as the compiler prints the plain form
        ("nearbyint.f32 rd V4, V5", 0b00011, 0),
    ):
        coded = encoding(generation)
        program = parse(f"nop; nop; {line}{predicate}; nop", coded.dialect)
        assert print_program(program).strip() == f"nop; nop; {line}{predicate}; nop"
        (bundle,) = program.bundles
        data = encode_bundle(bundle, coded)
        number = int.from_bytes(data, "little")
        # tpc_encoding_fields.csv, gen34_256: switches[2:0] from bit 85, [6:3] from 88, src_b from 59.
        assert (number >> 85 & 0b111 | (number >> 88 & 0b1111) << 3, number >> 59 & 0xFF) == (switches, code), line
        assert decode_bundle(data, coded).bundle == bundle
