"""TPC assembly text: layouts, spellings, operands, declarations; what is printed is read back, garbage is refused."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.tpc_random_instructions import some_instruction
from kit.tpc_text import GENERATIONS, dialect, phrases, program, table

from castsim.isa.errors import CastsimError, ReadError
from castsim.isa.tpc.instructions import FORMS, available, mnemonics
from castsim.isa.tpc.parser import canonical_text, parse, print_instruction, print_program
from castsim.isa.tpc.program import (
    Bundle,
    File,
    Immediate,
    LabelDefinition,
    LabelUse,
    Register,
    Slot,
    Special,
    TpcInstruction,
    TpcProgram,
)


def one(text: str, name: str = "gaudi2") -> TpcInstruction:
    """The only instruction of a text."""
    found = [slot for bundle in program(text, name).bundles for slot in bundle.slots if slot is not None]
    assert len(found) == 1
    return found[0]


def canonical(text: str, name: str = "gaudi2") -> str:
    return print_instruction(one(text, name))


# ---------------------------------------------------------------------------------------------------------- layouts


def test_layouts_say_the_same() -> None:
    line = "ld_l_v V1, 0x100; nop; convert.f32 target_type=int32 V4, V5; st_l_v 0x200, V6"
    braces = "{\n  ld_l_v %V1, 0x100\n  convert.f32 target_type=int32 %V4, %V5\n  st_l_v 0x200, %V6\n}"
    joined = "convert.f32 target_type=int32 V4, V5 || st_l_v 0x200, V6 || ld_l_v V1, 0x100"
    one_line = "{ ld_l_v V1, 0x100 || convert.f32 V4, V5, INT32 || st_l_v 0x200, V6 }"
    assert program(line) == program(braces) == program(joined) == program(one_line)
    assert canonical_text(joined, dialect("gaudi2")) == line


def test_missing_trailing_slots_are_empty() -> None:
    assert (
        program("ld_l_v V1, 0x100") == program("ld_l_v V1, 0x100; nop") == program("ld_l_v V1, 0x100; nop; nop; nop;")
    )
    assert program("NOP").bundles == (Bundle(),)
    assert program("nop;nop;nop;nop").bundles == (Bundle(),)


def test_equal_instructions_share_the_slots_that_have_them() -> None:
    bundle = program("{ cache_invalidate || mov.i16 V8, 0x0 || mov.i16 V9, 0x0 }").bundles[0]
    assert bundle.load is not None
    assert bundle.vpu is not None
    assert bundle.load.operand("dest") == Register(File.V, 8)
    assert bundle.vpu.operand("dest") == Register(File.V, 9)
    halts = program("{ halt || halt }").bundles[0]
    assert halts.spu is not None
    assert halts.vpu is not None
    scalars = program("{ mov.i32 S1, S2 || ld_l S3, 0x4 }").bundles[0]
    assert scalars.spu is not None  # LD_L needs the LOAD slot, MOV gives way
    assert scalars.spu.mnemonic == "mov"


def test_the_published_schedules_are_read() -> None:
    """Every bundle of the compiled kernels, in the layout without slots, back and forth."""
    rows = table("tpc_kernel_schedules_dev.csv")
    assert len(rows) == 66
    for row in rows:
        text = row["instructions_with_registers"].replace(" | ", " || ")
        found = program(text, row["gen"])
        assert len(found.bundles) == 1
        assert program(print_program(found), row["gen"]) == found
        written = [part for part in text.split(" || ") if part.lower() != "nop"]
        assert sum(slot is not None for slot in found.bundles[0].slots) == len(written)


def test_labels_directives_and_comments() -> None:
    text = """.globl main
main:   // the entry
  nop; nop; nop; nop  /* nothing
  here */
again: last: ld_l_v V0, 0x0
  jmpr again, !SP1
.size main, 3
end:
"""
    found = program(text)
    assert found.labels == {"main": 0, "again": 1, "last": 1, "end": 3}
    assert len(found.bundles) == 3
    assert found.bundles[2].spu is not None
    assert found.bundles[2].spu.operand("src_a") == LabelUse("again")
    assert program(print_program(found)) == found
    assert (
        canonical_text(text, dialect("gaudi2"))
        == """.globl main
main:
nop; nop; nop; nop

again: last: ld_l_v V0, 0x0; nop; nop; nop
nop; jmpr again, !SP1; nop; nop
.size main, 3
end:
"""
    )


def test_places() -> None:
    found = program("nop\n  nop; nop; convert.f32 V0, V1, INT32", "gaudi")
    vpu = found.bundles[1].vpu
    assert vpu is not None
    assert (vpu.span.line, vpu.span.column) == (2, 13)
    assert isinstance(program("a: nop").items[0], LabelDefinition)
    assert program("nop") == program("\n\n nop ; ")  # places take no part in equality


# -------------------------------------------------------------------------------------------------------- spellings

SPECIMENS = {  # of docs/reference/tpc.md section 7.1, which are canonical
    "gaudi": """
        ld_l S1, 0x7b; st_l mmio 0x8fc, S2; ld_l mmio S1, 0x8fc; ld_l_v V1, 0x100; ld_l_v_low V1, S3;
        st_l_v 0x700, V3; gen_addr AD1, 0x2, I3; ld_tnsr V4, 0x0, I3, S30; ld_tnsr V4, S27, I3;
        st_tnsr rmw_sel 0x0, I3, V4, S29; mov S4, PC; shr.i32 b00101 I1, I1, 0x3; cmp_eq.i32 mask_eq_zero SP1, S2, 0x8
    """,
    "goya": """
        ld_l_v V1, S2, 0x0; ld_l_v V1, 0x0, S2; st_l_v S0, 0x0, V3; ld_g S3, AD1; st_g AD1, S1; ld_tnsr V4, 0x0, I3;
        st_tnsr 0x0, I3, V4; set_indx I2, b00010, S3; prmt_indx I3, I4, S5; mov_irf_dim 0x2 S2, I3; mov V4, V5;
        mov.i8 V4, 0x7b; mov.f32 V4, S6; mov VP4, SP5; mov VP4, S0; mov 0x0 VP4, S0; mov.i32 S1, 0x7b; mov SP1, S2;
        mov SP1, SP2; mov b11111 I1, 0x7b; mov V4, LFSR; mov V4, V_LANE_ID_16; mov LFSR, V4; mov.i32 S1, S_LFSR;
        mul.f32 V3, V2, S1; mul.i32 D2, V2, S1; mul.i8 A4, V2, V3; mul.i32 double_and_round32 V3, V2, V1;
        mul.i32 upper32 S3, S2, S1; sub.i32 S5, S1, 0x70; add.i8 st V1, V2, V3; add.i32 b11011 I5, S5, I2;
        add.i32 b11011 I5, I2, 0x1; ash.i32 rhu V3, V2, S1; shr.i32 b00101 I1, I1, S3; and.b VP1, VP2, VP3;
        not.i32 S1, S2; cmp_grt.f32 VP1, V2, V3; sel_grt.i32 V4, V5, V6, V7, V8;
        sel_leq.f32 V4, V5, V6, V7, 0x3f800000; sel2_less.i32 D4, V6, V7, V8, V9;
        pack.i16 source_group=0 element_stride=2 V1, V2; mov_dg src=1 dst=0 wr_lg=0x1 wr_ug=0x0 V1, V2, 0xffffffff;
        convert_int16 lane_sel=0 rhne V1, V2, S3; halt; cache_flush; jmpr S20, SP1; jmpa S20, SP1
    """,
    "gaudi2": """
        st_l_v 0x700, V3, !VP2; ld_tnsr direct V4, S2, S3;
        st_tnsr_low rmw_sel pack direct S2, S3, V4, ST_RMW_REG, SP1; convert.i32 target_type=fp32 x4 clip_fp A0, A4
    """,
    "greco": """
        gen_addr dt=int8 AD1, 0x2, I3; ld_g b00110 I3, AD1; ld_tnsr partial V4, 0x0, I3, LD_PARTIAL_REG;
        ld_tnsr V4, LD_TNSR_ID_REG, I3, VP2; mov x2 D4, D6; mov VP14, V10; mov M2 I1, S3; mov AD3, AD4; mov AD3, Z4;
        mov LD_PARTIAL_REG, S1; mov S_CARRY, SP3; mov ZP_REG, V3; mov S_LFSR, S1; and.i32 andn V1, V2, V3;
        cmp_less.i32 b00001 SP1, I2, 0x40; mov_dg.pack pack_type=1 V1, V2; convert_int16 all_lanes rhne V1, D2, V3;
        convert.i32 x2 target_type=fp32 D2, D4
    """,
    "gaudib": """
        unpack.i16 source_group=1 element_stride=2 group_half=0 unpack_lane=1 V1, V2
    """,
}


@pytest.mark.parametrize(
    ("text", "generation", "expected"),
    [
        # the table of docs/reference/tpc.md section 7
        ("CONVERT.F32 V0, V1, INT8, LANE_SEL=3, RNE", "goya", "convert.f32 lane_sel=3 target_type=int8 rhne V0, V1"),
        ("CONVERT.F32 V0, V1, INT32, RZ, SP1", "goya", "convert.f32 target_type=int32 rz V0, V1, SP1"),
        ("CONVERT_INT32 V9, V26, V1, LANE_SEL=2, RNE", "goya", "convert_int32 lane_sel=2 rhne to_8 V9, V26, V1"),
        ("NOP; CONVERT_UINT32 S6, S12, 123, TO_8, RD, SP1", "goya", "convert_uint32 rd to_8 S6, S12, 0x7b, SP1"),
        ("NEARBYINT.F32 V20, V23, RD, !SP3", "goya", "nearbyint.f32 rd V20, V23, !SP3"),
        *((text, generation, text) for generation, texts in SPECIMENS.items() for text in phrases(texts)),
        # old spelling
        ("PACK.I16 V1, V2, GROUP_1, STRIDE_4", "goya", "pack.i16 source_group=1 element_stride=4 V1, V2"),
        ("pack.i16 group_source=1, stride=4, V1, V2", "goya", "pack.i16 source_group=1 element_stride=4 V1, V2"),
        ("ADD.I8.SAT V1, V2, V3", "goya", "add.i8 st V1, V2, V3"),
        (
            "mov_dual_group all sdg3=2, V1, V2, 1",
            "gaudi",
            "mov_dg.all sdg0=0 sdg1=0 sdg2=0 sdg3=2 weg0=0 weg1=0 weg2=0 weg3=0 V1, V2, 0x1",
        ),
        ("LD_TNSR.PARTIAL V4, 0, I3, S30", "gaudi", "ld_tnsr V4, 0x0, I3, S30"),
        ("ld_tnsr V4, 0, I3, LD_PARTIAL_REG", "greco", "ld_tnsr partial V4, 0x0, I3, LD_PARTIAL_REG"),
        ("mov.f32 V4, V5", "goya", "mov V4, V5"),
        ("mov D4, D6, x2", "greco", "mov x2 D4, D6"),
        ("add.i32 S1, S2, 1, SP0", "goya", "add.i32 S1, S2, 0x1"),
        ("add.i32 S1, S2, 1, !SP0", "goya", "add.i32 S1, S2, 0x1, !SP0"),
        ("mov V1, V2, VP0", "goya", "mov V1, V2, VP0"),
        ("convert.i32 V0, V1, target_type=i8, default", "goya", "convert.i32 target_type=int8 V0, V1"),
        ("convert_int32 num_lanes=all_lanes V1, D2, S3", "greco", "convert_int32 all_lanes rhne to_8 V1, D2, S3"),
        ("convert_int8 all_lanes V1, D2, S3", "greco", "convert_int8 rhne V1, D2, S3"),
        ("convert.f32 V0, V1, BF16, SR_RHNE", "gaudi2", "convert.f32 target_type=bf16 sr_rne V0, V1"),
        ("mov_g V1, V2, g_en=0b11, dg_en=0xF, -1", "goya", "mov_g g_en=0b11 dg_en=0b1111 V1, V2, 0xffffffff"),
    ],
)
def test_spellings(text: str, generation: str, expected: str) -> None:
    assert canonical(text, generation) == expected
    assert one(expected, generation) == one(text, generation)


def test_the_loop_specimen() -> None:
    text = "nop; loop S1, 123, S3, <=, End3; nop; nop\nnop\nnop\nEnd3:\n"
    empty = "nop; nop; nop; nop\n"
    assert canonical_text(text, dialect("goya")) == text.split("\n", maxsplit=1)[0] + f"\n{empty}{empty}End3:\n"
    found = program(text, "goya").bundles[0].spu
    assert found is not None
    assert found.operand("bound") == Immediate(123)
    assert print_instruction(found) == "loop S1, 123, S3, <=, End3"
    assert canonical("loop 0, -2, -1, !=, e, 0, !SP2\ne: ", "goya") == "loop 0, -2, -1, !=, e, 0, !SP2"


IMMEDIATES = """
    123 = 123; 0x7B = 123; 0b11 = 3; -1 = 0xffffffff; -0x1 = 0xffffffff; 4294967295 = 0xffffffff;
    -2147483648 = 0x80000000; i32_-5 = 0xfffffffb; i16_-1 = 0xffffffff; i16_65535 = 0xffff; i8_-128 = 0xffffff80;
    I8_0x7f = 127; 1.5 = 0x3fc00000; -0.5f = 0xbf000000; 1e3 = 0x447a0000; 0.1 = 0x3dcccccd;
    3.4028234e38 = 0x7f7fffff; 0e-99999 = 0;
    0X7b = 123; 0b101 = 5; 010 = 8; +123 = 123; - 5 = 0xfffffffb; 45876u = 0xb334; 1U = 1; i32_122 = 122;
    u32_112 = 112; i16_-122 = 0xffffff86; u16_122 = 122; i8_-122 = 0xffffff86; u8_123 = 123; i32_x12C = 0x12c;
    i16_x12C = 0x12c; 10.1 = 0x4121999a; .1 = 0x3dcccccd; 10. = 0x41200000; 1E+5 = 0x47c35000; 1.e5 = 0x47c35000;
    f32_1.25 = 0x3fa00000; bf16_1.0 = 0x3f80; 1.0bf = 0x3f80; 1.0BF = 0x3f80; 1.0h = 0x3c00; 1.0H = 0x3c00; 0.0 = 0;
    -0.0 = 0x80000000; 1.0F = 0x3f800000
"""
"""Text and bits; from 0X7b on docs/reference/tpc.md section 7.2, the vendor's tests of literals."""
TIES = """
    1.000000059604644775390625000000000000000000000000001 = 0x3f800001; 1.000000059604644775390625 = 0x3f800000;
    1.000000178813934326171874999999999999999999999999999 = 0x3f800001
"""
"""A tie of f32 plus less than a double can hold: rounding twice would give 0x3f800000."""


@pytest.mark.parametrize(("text", "bits"), [each.split(" = ") for each in phrases(IMMEDIATES) + phrases(TIES)])
def test_immediates(text: str, bits: str) -> None:
    assert one(f"add.i32 S1, S2, {text}").operand("src_b") == Immediate(int(bits, 0))
    if "." in text and len(text) < 20 and text[-1] not in "hHF" and "b" not in text.lower() and "_" not in text:
        assert struct.pack("<I", int(bits, 0)) == np.float32(text.rstrip("f")).tobytes()


UNFIT = """
    4294967296; -2147483649; i16_65536; i8_-129; i8_256; 3.5e38; 1e99999; -458u; 08; 1e40; 1e-40; 1e+30h; 1e-30h;
    1e-46; 1e-99999; 65520.0h; u8_-1
"""


@pytest.mark.parametrize("text", [*phrases(UNFIT), "9" * 5000])
def test_immediates_that_do_not_fit(text: str) -> None:
    with pytest.raises(ReadError):
        program(f"add.i32 S1, S2, {text}")


# --------------------------------------------------------------------------------------------------------- switches


def test_switches_are_filled_in() -> None:
    found = one("convert.f32 V0, V1, INT8", "gaudi2")
    single = {"lane_sel": 0, "num_lanes": "single_lane", "x2": 0, "x4": 0}
    assert dict(found.switches) == {**single, "target_type": "i8", "rounding": "csr", "clip_fp": 0}
    assert found.type == "f32"
    assert found.switch("width") is None
    assert one("convert_int32 V0, D2, S1, all_lanes", "greco").switch("lane_sel") is None
    assert one("ld_tnsr V4, 0, I3, S30", "gaudi").switch("partial") == 1
    assert one("mov V1, LFSR", "goya").operand("src_a") == Special("LFSR")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_row_of_the_table_in_every_slot(generation: str) -> None:
    language, source = dialect(generation), random.Random(20)
    rows = [form for form in FORMS if available(form, language)]
    for form in rows:
        for slot in map(Slot, form.slots):
            for _ in range(6):
                bundle = Bundle(**{slot.name.lower(): some_instruction(form, language, source)})
                before = TpcProgram((), (bundle, LabelDefinition("end")))
                text = print_program(before)
                assert parse(text, language) == before, text
                assert canonical_text(text, language) == text


@pytest.mark.parametrize("generation", GENERATIONS)
def test_full_bundles(generation: str) -> None:
    language, source = dialect(generation), random.Random(21)
    rows = [form for form in FORMS if available(form, language)]
    choices = {slot: [form for form in rows if slot in form.slots] for slot in Slot}
    for _ in range(300):
        slots = {
            slot.name.lower(): some_instruction(source.choice(choices[slot]), language, source)
            for slot in Slot
            if source.random() < 0.8
        }
        before = TpcProgram((), (Bundle(**slots), LabelDefinition("end")))
        assert parse(print_program(before), language) == before


@pytest.mark.parametrize("generation", GENERATIONS)
def test_mnemonics_of_the_published_opcode_table(generation: str) -> None:
    """The instructions of docs/reference/tpc.md section 7.1 that not every generation has."""
    language = dialect(generation)
    found = {form.mnemonic for form in FORMS if available(form, language)}
    missing = set(mnemonics()) - found
    classes = {"fclass", "calc_fp_special"}
    typed, parts = {"lookup_1c", "lookup_2c"}, {"lookup_c0", "lookup_c1c2"}
    from_gaudi2 = {"event", "st_tnsr_sqz", "st_tnsr_s", "udiv"}
    bytes_only = {"convert_int8", "convert_uint8"}
    expected = {
        "goya": {"mov_dg.all", "mov_dg.pack", "mov_dg.unpack", "madd", "prefetch", "udiv_4step"}
        | bytes_only | classes | typed | from_gaudi2,
        "gaudi": {"mov_dg.pack", "mov_dg.unpack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "gaudib": {"mov_dg.pack", "madd", "msac", "udiv_step"} | bytes_only | parts | from_gaudi2,
        "greco": {"mov_dg.unpack", "udiv_step"} | parts | from_gaudi2,
        "gaudi2": {"udiv_step", "udiv_4step"} | parts,
    }  # fmt: skip
    assert missing == expected[generation]


PIECES = (
    *("convert.f32", "mov_dg", "all", "add.i32", "mov", "mov.i32", "ld_tnsr", "jmpr", "loop", "halt", "nop", "end"),
    *("V0", "D2", "%S3", "I1", "SP0", "!VP3", "S30", "LFSR", ",", ";", "||", "|", "{", "}", ":", "=", "!", "<=", "%"),
    *("0x7b", "-1", "1.5", "i16_5", "99999999999", "b00010", "lane_sel=3", "rhne", "target_type=int8", "partial"),
    *("//", "/*", "*/", "castsim:", "tensor", "[64]", ".", ".text", "..", "\n", "\t", "\x00", "ünï"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.sampled_from(GENERATIONS))
def test_garbage_is_refused_or_read(pieces: list[str], generation: str) -> None:
    text = " ".join(pieces)
    try:
        found = parse(text, dialect(generation))
    except CastsimError as error:
        assert error.span is not None
        assert error.render()
    else:
        assert parse(print_program(found), dialect(generation)) == found


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_refused_or_read(text: str) -> None:
    try:
        parse(text, dialect("gaudi2"))
    except CastsimError as error:
        assert error.span is not None


def test_long_texts_take_linear_time() -> None:
    line = "ld_l_v V1, 0x100; nop; convert.f32 target_type=int32 V4, V5; nop  // castsim is quick /* */\n"
    assert len(parse(line * 3000, dialect("gaudi2")).bundles) == 3000
    assert parse("/* */ " * 20000 + " " * 20000, dialect("gaudi2")).items == ()


_SPECIAL = r"S?_?LFSR\w*|V_LANE_ID_\d+|PC|M\d|\w+_REG|[SV]_CARRY|DIV_STEP|SQZ_CNTR\w+"
_OPERAND = re.compile(rf"(!?(V|D|A|S|I|Z|AD|SP|VP)\d+|-?0x[0-9a-f]+|-?\d+|b[01]{{5}}|{_SPECIAL}|end)")
TRIES = 4


def spellings(text: str, predicated: bool) -> Iterator[str]:
    """Other texts of an instruction that is given in canonical text."""
    mnemonic, *words = text.replace(",", " , ").split()
    end = next((place for place, word in enumerate(words) if _OPERAND.fullmatch(word)), len(words))
    switches = words[:end]
    operands = [each.strip() for each in " ".join(words[end:]).split(" , ")] if words[end:] else []
    predicate = [operands.pop()] if predicated else []
    flags, settings = [w for w in switches if "=" not in w], [w for w in switches if "=" in w]
    old = f"{mnemonic} {', '.join([*operands, *switches, *predicate])}"
    if "end" not in operands:
        yield text.upper()
        yield old.upper()
    yield old
    yield f"{mnemonic} {', '.join([*operands, *predicate, *switches])}"
    yield f"{mnemonic} {', '.join([*switches, *operands, *predicate])}"
    yield f"{'.'.join([mnemonic, *flags])} {' '.join(settings)} {', '.join([*operands, *predicate])}"
    yield f"{mnemonic} {' '.join(reversed(switches))} {', '.join([*operands, *predicate])}"
    yield re.sub(r"(?<![%\w])((?:V|D|A|S|I|Z|AD|SP|VP)\d+)\b", r"%\1", text.replace("mov_dg.", "mov_dg "))
    yield re.sub(r"\b0x(f[0-9a-f]{7})\b", lambda found: f"-{(1 << 32) - int(found[1], 16):#x}", text)
    yield re.sub(r"\b0x[0-9a-f]+\b", lambda found: f"{int(found[0], 16)}u", text)
    yield text.replace(" ", "\t ").replace(",", " ,")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_spelling_is_the_same_instruction(generation: str) -> None:
    language, source = dialect(generation), random.Random(44)
    for form in FORMS:
        if not available(form, language) or form.mnemonic == "loop":  # whose operators are words too
            continue
        for slot in map(Slot, form.slots):
            for _ in range(TRIES):
                bundle = Bundle(**{slot.name.lower(): some_instruction(form, language, source)})
                before = TpcProgram((), (bundle, LabelDefinition("end")))
                line = next(line for line in print_program(before).splitlines() if ";" in line)
                slots = line.split("; ")
                for other in spellings(slots[slot], bundle.slots[slot].predicate is not None):  # type: ignore[union-attr]
                    text = "; ".join(other if place == slot else "nop" for place in range(len(Slot)))
                    assert parse(f"{text}\nend:\n", language) == before, text


MASK = "src=0 dst=1 wr_lg=0x1 wr_ug=0x0 V1, V2, 0xff"
WRITTEN = [
    # docs/reference/tpc.md sections 5.5, 7 and 7.2: input, what is printed.
    ("gaudi2", 2, "MOV_DUAL_GROUP SRC_DUAL_GROUP=0, DST_DUAL_GROUP=1, WR_LOWER_GROUP=1, V1, V2, 255", f"mov_dg {MASK}"),
    ("goya", 2, "MOV_DUAL_GROUP V1, V2, 0xff, DST_DUAL_GROUP=1, WR_LOWER_GROUP=1, WR_UPPER_GROUP=0", f"mov_dg {MASK}"),
    ("greco", 2, "MOV_DUAL_GROUP.PACK PACK_TYPE=0 V1, V2", "mov_dg.pack pack_type=0 V1, V2"),
    ("gaudi2", 2, "mov_dual_group V1, V2, pack, PACK_TYPE=1, !VP3", "mov_dg.pack pack_type=1 V1, V2, !VP3"),
    ("gaudi", 2, "MOV_GROUP GROUP_EN=3, DUAL_GROUP_EN=0xf V1, V2, 32", "mov_g g_en=0b11 dg_en=0b1111 V1, V2, 0x20"),
    ("goya", 2, "PACK.I8 V1, V2, GROUP_1, STRIDE_4", "pack.i8 source_group=1 element_stride=4 V1, V2"),
    ("greco", 2, "PACK.I8 GROUP=GROUP_1 STRIDE=STRIDE_4 V1, V2", "pack.i8 source_group=1 element_stride=4 V1, V2"),
    (
        "gaudi2",
        2,
        "UNPACK.I8 V1, V2, GROUP_1, STRIDE_4, GROUP_HALF_1, LANE_1",
        "unpack.i8 source_group=1 element_stride=4 group_half=1 unpack_lane=1 V1, V2",
    ),
    (
        "gaudi2",
        2,
        "UNPACK.U16 V1, V2, SOURCE_GROUP=GROUP_0, GROUP_HALF=GROUP_HALF_1, UNPACK_LANE=LANE_1",
        "unpack.u16 source_group=0 element_stride=2 group_half=1 unpack_lane=1 V1, V2",
    ),
    ("goya", 0, "LOOKUP_C1C2 V4, V6, I16_HIGH, 3", "lookup_c1c2 BV16_HIGH D4, V6, 0x3"),
    ("goya", 0, "LOOKUP_C0 V4, V6, 3, BV8_ELEMENT_2, SP1", "lookup_c0 BV8_2 V4, V6, 0x3, SP1"),
    ("gaudi", 0, "LOOKUP_1C V3, V4, BV16, 3", "lookup_1c BV16 V3, V4, 0x3"),
    ("gaudi2", 0, "lookup_2c BV16 D18, V16, S27", "lookup_2c BV16 lut_ptr D18, V16, S27"),
    ("gaudi2", 2, "MAC.BF16.NEG V1, V2, V3", "mac.bf16 neg V1, V2, V3"),
    ("gaudi2", 2, "MAC.I16.SAT D2, V2, V3", "mac.i16 st D2, V2, V3"),
    ("gaudi2", 2, "NEARBYINT.F32 D4, V5, CNVRT, INT32, RNE", "nearbyint.f32 cnvrt target_type=int32 rhne D4, V5"),
    ("gaudi2", 0, "LD_TNSR.UNPACK V16, 0, I5, UNPCK_8_TO_16", "ld_tnsr UNPCK_8_TO_16 unpack V16, 0x0, I5"),
    ("greco", 3, "ST_TNSR.PACK PCK_32_TO_16 0x1, I0, V2", "st_tnsr pack 0x1, I0, V2"),
    ("gaudi2", 3, "EVENT SPU S2, !SP1", "event spu S2, !SP1"),
]  # fmt: skip


@pytest.mark.parametrize(("generation", "slot", "given", "shown"), WRITTEN)
def test_words_of_the_assembler(generation: str, slot: int, given: str, shown: str) -> None:
    line, wanted = ("; ".join(text if place == slot else "nop" for place in range(4)) for text in (given, shown))
    assert canonical_text(line, dialect(generation)).strip() == wanted


@pytest.mark.parametrize(
    ("generation", "line"),
    [
        ("goya", "LOOKUP_C1C2 V5, V6, BV32, 3"),  # no pair begins at an odd register
        ("gaudi", "LOOKUP_2C V4, V6, BV32, 3"),  # later generations name the pair
    ],
)
def test_what_the_assembler_refuses(generation: str, line: str) -> None:
    with pytest.raises(CastsimError) as caught:
        parse(f"{line}; nop; nop; nop\n", dialect(generation))
    assert caught.value.span is not None
