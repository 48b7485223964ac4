"""Every way to write an instruction: case, order and separators of switches, dots, old words, both printers' forms."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from test_tpc_roundtrip import some_instruction
from tpc_text import GENERATIONS, dialect

from castsim.isa.errors import CastsimError
from castsim.isa.tpc import FORMS, Bundle, LabelDefinition, Slot, TpcProgram, available, canonical_text, parse
from castsim.isa.tpc import print_program as printed

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
                line = next(line for line in printed(before).splitlines() if ";" in line)
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
    *(
        ("greco", 1, f"MOV.I32 S1, {given}", f"mov.i32 S1, {shown}")
        for given, shown in (
            ("123", "0x7b"), ("0X7B", "0x7b"), ("0b101", "0x5"), ("010", "0x8"), ("- 1", "0xffffffff"), ("+5", "0x5"),
            ("45876U", "0xb334"), ("i32_122", "0x7a"), ("u32_112", "0x70"), ("i16_-122", "0xffffff86"),
            ("u16_122", "0x7a"), ("i8_-122", "0xffffff86"), ("u8_123", "0x7b"), ("i32_x12C", "0x12c"),
            ("i16_x12C", "0x12c"), ("10.1", "0x4121999a"), (".1", "0x3dcccccd"), ("10.", "0x41200000"),
            ("1e5", "0x47c35000"), ("1E+5", "0x47c35000"), ("1.e5", "0x47c35000"), ("1.0F", "0x3f800000"),
            ("f32_1.25", "0x3fa00000"), ("1.0BF", "0x3f80"), ("bf16_1.0", "0x3f80"), ("1.0H", "0x3c00"),
            ("0.0", "0x0"), ("-0.0", "0x80000000"),
        )
    ),
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
        ("greco", "MOV.I32 S1, -458u"),
        ("greco", "MOV.I32 S1, 4294967296"),
        ("greco", "MOV.F32 S1, 1e40"),
        ("greco", "MOV.F32 S1, 1e-40"),
        ("greco", "MOV.F16 S1, 1e+30h"),
        ("greco", "MOV.F16 S1, 1e-30h"),
    ],
)
def test_what_the_assembler_refuses(generation: str, line: str) -> None:
    with pytest.raises(CastsimError) as caught:
        parse(f"{line}; nop; nop; nop\n", dialect(generation))
    assert caught.value.span is not None
