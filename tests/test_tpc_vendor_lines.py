"""Lines as the vendor's assembler files and compiler tests write them: read, printed canonically, run where stated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from tpc_semantics_cases import instruction, vector
from tpc_text import dialect, plain, table, target

from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.tpc import canonical_text
from castsim.machines.vliw.plans import prepare
from castsim.machines.vliw.semantics import OperandValues, State

CANONICAL = [
    # bit counts: the bit stands in front of the operands
    ("goya", "POPCNT.F32 1 S1, S2", "popcnt.f32 set=1 S1, S2"),
    ("gaudi", "popcnt.i16 0, V1, V2, VP3", "popcnt.i16 set=0 V1, V2, VP3"),
    ("gaudi2", "find_first.bf16 0x1 start_msb V1, V2, !SP3", "find_first.bf16 set=1 start_msb V1, V2, !SP3"),
    ("greco", "FIND_FIRST.U8 0 START_LSB S1, 1", "find_first.u8 set=0 start_lsb S1, 0x1"),
    # wide results named by their first register
    ("goya", "MAC.I16 V0, V1, V2", "mac.i16 D0, V1, V2"),
    ("gaudi", "mac.bf16 acc_fp32 V2, V1, V2, SP1", "mac.bf16 acc_fp32 D2, V1, V2, SP1"),
    ("gaudi", "mac.bf16 V2, V1, V2", "mac.bf16 V2, V1, V2"),
    ("greco", "mac.i8 st V4, V1, V2, VP3", "mac.i8 st A4, V1, V2, VP3"),
    ("greco", "mac.i8 acc_i16 V6, V1, V2", "mac.i8 acc_i16 D6, V1, V2"),
    ("gaudi2", "madd.f32 x2 V0, V2, V4, 0x3f800000, V5", "madd.f32 x2 D0, D2, V4, 0x3f800000, V5"),
    ("goya", "MUL.I32 V4, V5, V6", "mul.i32 D4, V5, V6"),
    ("goya", "MUL.I32 V5, V5, V6, DOUBLE_AND_ROUND32", "mul.i32 double_and_round32 V5, V5, V6"),
    ("gaudi2", "mul.f8_152 acc_fp32 V4, V5, S6, VP1", "mul.f8_152 acc_fp32 A4, V5, S6, VP1"),
    ("gaudi2", "ADD.F8_143 A4, A8, A12, VP1", "add.f8_143 A4, A8, A12, VP1"),
    ("gaudi2", "sub.f8_152 neg A4, A8, 0x3c", "sub.f8_152 neg A4, A8, 0x3c"),
    ("gaudi", "mul.bf16 acc_fp32 S1, S2, 0x3f80", "mul.bf16 acc_fp32 S1, S2, 0x3f80"),
    ("greco", "mul.u32 keep_rs_for_add D2, V1, S3", "mul.u32 keep_rs_for_add D2, V1, S3"),
    # hardware registers by name or number
    ("greco", "mov.to_hw_reg 9, S1", "mov ST_TNSR_ID_REG, S1"),
    ("greco", "MOV.FROM_HW_REG S1, LD_PARTIAL_REG", "mov S1, LD_PARTIAL_REG"),
    ("gaudi2", "mov from_hw_reg S1, 16", "mov S1, SQZ_CNTR0_LO"),
    ("gaudi2", "mov to_hw_reg, 31, S1, SP2", "mov SQZ_CNTR7_HI, S1, SP2"),
    ("gaudi2", "nop; mov.to_hw_reg 1, S1", "nop; mov DIV_STEP, S1"),
    ("greco", "mov.to_hw_reg 2, SP1", "mov S_CARRY, SP1"),
    # stores whose range or merge register the generation provides
    ("gaudi", "ST_TNSR 0, I3, V4, PARTIAL", "st_tnsr partial 0x0, I3, V4, S31"),
    ("gaudi", "st_tnsr rmw_sel 0x0, I3, V4, SP2", "st_tnsr rmw_sel 0x0, I3, V4, S29, SP2"),
    ("gaudib", "st_tnsr partial rmw_sel 0x0, I3, V4", "st_tnsr partial rmw_sel 0x0, I3, V4, S29, S31"),
    ("greco", "st_tnsr_low rmw_sel 0x0, I3, V4", "st_tnsr_low rmw_sel 0x0, I3, V4, ST_RMW_REG"),
    ("gaudi", "ld_tnsr partial V4, 0x0, I3", "ld_tnsr V4, 0x0, I3, S30"),
    ("gaudi2", "st_tnsr_s rmw_sel ST_TNSR_ID_REG, I2, 0x2, ST_RMW_REG, SP1",
     "st_tnsr_s rmw_sel ST_TNSR_ID_REG, I2, 0x2, ST_RMW_REG, SP1"),
    ("gaudi2", "st_tnsr_sqz 0x1, 0x7, I2, V3, VP1", "st_tnsr_sqz 0x1, 0x7, I2, V3, VP1"),
    # words of other instructions
    ("greco", "ld_g inc_4 S1, AD1", "ld_g inc_4 S1, AD1"),
    ("gaudi2", "st_g inc_8 bv64 AD1, S2", "st_g inc_8 bv64 AD1, S2"),
    ("gaudi", "aso dec vpu SP1", "aso dec vpu SP1"),
    ("gaudi2", "cache_invalidate rst_d_pref SP1", "cache_invalidate rst_d_pref SP1"),
    ("gaudi", "udiv_4step.u8 0x1 Z4, S5, SP1", "udiv_4step.u8 0x1 Z4, S5, SP1"),
    ("greco", "mul.i32 M1 I1, 0x7b, I2", "mul.i32 M1 I1, 0x7b, I2"),
    ("gaudi2", "set_indx high I1, b00001, S2", "set_indx high I1, b00001, S2"),
    ("gaudi", "GET_LUT_ENTRY_AND_INTERVAL_START.F32 V4, V1, 12, TANH",
     "get_lut_entry_and_interval_start.f32 tanh D4, V1, 0xc"),
]  # fmt: skip


@pytest.mark.parametrize(("generation", "text", "canonical"), CANONICAL, ids=lambda each: each)
def test_a_line_prints_canonically_and_is_its_own_canonical_text(generation: str, text: str, canonical: str) -> None:
    printed = canonical_text(text, dialect(generation))
    slots = [slot for slot in printed.split("; ") if slot != "nop"]
    assert slots == [canonical.removeprefix("nop; ")]
    assert canonical_text(printed, dialect(generation)) == printed


@pytest.mark.parametrize(
    ("generation", "text", "message"),
    [
        ("greco", "mov.to_hw_reg 44, S1", "there is no hardware register 44"),
        ("goya", "mul.i32 V5, V5, V6", "mul needs double_and_round32"),
        ("gaudi", "mac.bf16 acc_fp32 V3, V1, V2", "acc_fp32 does not go with these operands"),
        ("gaudi2", "popcnt.i32 2 V1, V2", "set cannot be 2"),
    ],
)
def test_what_is_no_line_is_refused(generation: str, text: str, message: str) -> None:
    with pytest.raises(ReadError, match=message):
        canonical_text(text, dialect(generation))


# ------------------------------------------------------------------------------------------ what the compiler prints

NUMBERS = {"V": 4, "D": 8, "A": 16, "S": 5, "I": 3, "VP": 2, "SP": 2, "AD": 1, "M": 1, "Z": 4}
UNKNOWN = ("V4", "S5", "D8", "VP2", "SP2", "A16", "I3", "AD1")


def completed(text: str) -> Iterator[str]:
    """The printed line with numbers for its registers, and every register for what the test hides."""
    numbered = re.sub(
        r"(?<![\w.])(VP|SP|AD|V|D|A|S|I|M|Z)n?(?=[ ,]|$)", lambda found: f"{found[1]}{NUMBERS[found[1]]}", text
    )
    pieces = re.split(r"(?<![\w.])_(?=[ ,]|$)", numbered)
    for choice in product(UNKNOWN, repeat=len(pieces) - 1):
        yield "".join(piece + register for piece, register in zip(pieces, (*choice, ""), strict=True))


def assembles(text: str, generation: str) -> bool:
    for line in completed(text):
        try:
            printed = canonical_text(line, dialect(generation))
        except CastsimError:
            continue
        if plain(line) in (plain(slot) for slot in printed.split("; ")):
            return True
    return False


def test_printed_lines_assemble_and_print_as_they_are() -> None:
    """Lines of the vendor's tests of C functions, per generation: at least 98 %."""
    lines = {
        (row["expected_instruction"], generation)
        for row in table("tpc_c_lowering.csv")
        for generation in row["generations"].split()
    }
    refused = sorted(each for each in lines if not assembles(*each))
    assert len(lines) > 3000
    assert len(refused) <= 0.02 * len(lines), refused


# ------------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize(("name", "kind"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_wide_products_are_exact_and_in_the_order_of_lanes_of_a_sum(name: str, kind: type) -> None:
    """Products of two narrow floats fit f32; lane 2i of the sources goes to lane i of the first register."""
    a, b = (np.random.default_rng(seed).standard_normal(128).astype(kind) for seed in (1, 2))
    expected = a.astype(np.float32) * b.astype(np.float32)
    sources = {"src_a": vector(a.view(np.uint16), 16), "src_b": vector(b.view(np.uint16), 16)}
    read = prepare(instruction(f"mul.{name} acc_fp32 D4, V1, V2"), target("gaudi2"))
    zero = np.zeros(256, np.uint8)
    found = read(OperandValues(sources, (zero, zero), True), State({}, np.ones(64, np.uint32), 1)).result
    first, second = (each.view(np.float32) for each in found)
    np.testing.assert_array_equal(first, expected[0::2])
    np.testing.assert_array_equal(second, expected[1::2])
    scalar = prepare(instruction(f"mul.{name} acc_fp32 neg S1, S2, S3", slot="spu"), target("gaudi2"))
    codes = {role: int(each.view(np.uint16)[0]) for role, each in (("src_a", a), ("src_b", b))}
    result = scalar(OperandValues(codes, 0, True), State({}, np.ones(64, np.uint32), 1)).result
    assert np.uint32(result).view(np.float32) == -expected[0]


@pytest.mark.parametrize(
    ("text", "slot"),
    [("mul.i32 keep_rs_for_add D2, V1, V3", "vpu"), ("set_indx high I1, b00001, S2", "load"),
     ("udiv_4step.u32 0x1 Z4, S5", "spu"), ("add.f8_143 A4, A8, A12", "vpu"), ("sub.f8_152 A4, A8, S1", "vpu")],
)  # fmt: skip
def test_what_no_source_states_is_refused_when_it_runs(text: str, slot: str) -> None:
    generation = "greco" if "udiv" in text else "gaudi2"
    read = prepare(instruction(text, generation, slot), target(generation))
    with pytest.raises(CastsimError, match="no source states"):
        read(OperandValues({}, None, True), State({}, np.ones(64, np.uint32), 1))
