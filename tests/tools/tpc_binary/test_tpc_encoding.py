"""The binary encoding against published bytes and tables and bundles packed by hand, and its refusals."""

from __future__ import annotations

import os
import random
import re
import struct
from pathlib import Path

import pytest
from core.machines.vliw.test_tpc_corpus import ASSEMBLED
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kit.tpc_bundles import UNIT, encoding, packed, rows, some_unit
from kit.tpc_text import GENERATIONS, dialect, plain, table

from castsim.isa.errors import CastsimError, IllegalError, ReadError, TargetDataError
from castsim.isa.tpc.instructions import available, forms_of
from castsim.isa.tpc.parser import canonical_text, parse
from castsim.isa.tpc.program import Bundle, Slot
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_binary.assembler import assemble, disassemble, program_bytes
from castsim.tools.tpc_binary.encoding_tables import encoding_of

GOLDEN = {  # object dumps and annotations of the vendor's tests for Goya: docs/reference/tpc.md section 8, golden bytes
    "nop; nop; nop; nop": "3f 00 00 00 00 f8 01 00 00 00 00 00 00 00 80 0f 00 f0 01",
    "nop; halt; halt; nop": "20 00 00 00 00 00 01 00 00 00 00 00 00 00 80 0f 00 f0 01",
    "nop; nop; nop; cache_invalidate": "3f 00 00 00 00 f8 01 00 00 00 00 00 00 00 80 0f 00 50 01",
    "nop; mov.i32 S11, 0x7d; nop; nop": "c8 1f b0 10 00 f8 01 00 00 00 00 00 00 00 80 0f 00 f0 81 3e",
    "nop; mov.f32 S11, S20; nop; nop": "08 05 b0 00 00 f8 01 00 00 00 00 00 00 00 80 0f 00 f0 01",
    "nop; mov SP4, S20; nop; nop": "08 05 40 33 00 f8 01 00 00 00 00 00 00 00 80 0f 00 f0 01",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_bytes(text: str) -> None:
    code = bytes.fromhex(GOLDEN[text]).ljust(32, b"\0")
    assert assemble(parse(text, dialect("goya")), encoding("goya")).code == code
    assert disassemble(code, encoding("goya")).text() == f"{text}\n"


# Numbers by hand: opcodes from the published table, codes from docs/reference/tpc.md sections 2.3 and 8.
# V4 = 4, S2 = 66, imm = 127, I3 = 131, VP5 = 245 in VPU, LOAD, STORE; S2 = 2, SP1 = 49, I3 = 67 in SPU.
BY_HAND: list[tuple[str, str, bytes]] = [
    ("goya", "nop; nop; convert.f32 lane_sel=3 target_type=int8 rz V0, V1, !VP6; nop",
     packed("gen12_256", vpu__opcode=0x16, vpu__src_a=1, vpu__src_b=4 | 3 << 4 | 1 << 6, vpu__dest=0,
        vpu__switches=4, vpu__op_type=0, vpu__polarity=1, vpu__predicate=16 + 6)),
    ("goya", "ld_l_v V1, S2, 0x100; nop; convert_int32 lane_sel=2 ru to_16 V9, V26, S1; nop",
     packed("gen12_256", load__opcode=0x0E, load__dest=1, load__src_a=66, load__src_b=127, all__immediate=0x100,
        vpu__opcode=0x17, vpu__op_type=2 | 1 << 2, vpu__switches=2, vpu__dest=9, vpu__src_a=26, vpu__src_b=65)),
    ("goya", "nop; nop; nop; st_l_v_high S0, 0x80, V3, !SP7",
     packed("gen12_256", store__opcode=0x09, store__src_a=64, store__src_b=127, store__src_c=3, all__immediate=0x80,
        shared__polarity=1, shared__predicate=7)),
    ("gaudi", "nop; convert_uint32 rd to_8 S6, S12, 0x7b, SP1; mov_dg.all sdg0=0 sdg1=1 sdg2=2 sdg3=3 "
        "weg0=1 weg1=2 weg2=3 weg3=0 V2, V1, 0x7b; nop",
     packed("gen12_256", spu__opcode=0x18, spu__src_a=12, spu__src_b=127, spu__dest=6, spu__op_type=3,
        spu__predicate=1, all__immediate=0x7B, vpu__opcode=0x31, vpu__src_a=1, vpu__src_b=0b11100100,
        vpu__src_c=0b00111001, vpu__dest=2, vpu__switches=1)),
    ("gaudi", "mov b11111 I1, 0x7b; set_indx I2, b00010, S3; pack.i16 source_group=1 element_stride=4 V7, V8, SP2; nop",
     packed("gen12_256", load__opcode=0x05, load__dest=129, load__src_a=127, load__src_b=31 << 2,
        all__immediate=0x7B, spu__opcode=0x27, spu__dest=66, spu__src_a=3, spu__switches=2 << 2, vpu__opcode=0x2D,
        vpu__op_type=7, vpu__src_a=8, vpu__src_b=3, vpu__dest=7, vpu__predicate=2)),
    ("gaudib", "nop; mov_irf_dim 0x2 S2, I3; unpack.u8 source_group=1 element_stride=4 group_half=1 unpack_lane=3 "
        "V1, V2; st_tnsr 0x5, I3, V4, S31",
     packed("gen12_256", spu__opcode=0x26, spu__dest=2, spu__src_a=67, spu__switches=2, vpu__opcode=0x2E,
        vpu__op_type=5, vpu__dest=1, vpu__src_a=2, vpu__src_b=0b11111, store__opcode=0x0B, store__src_a=131,
        store__src_b=5, store__src_c=4, store__switches=1)),
    ("greco", "nop; add.i32 b11011 I5, S5, I2; convert.i32 all_lanes target_type=int8 sr V4, A8; nop",
     packed("gen34_256", spu__opcode=2, spu__dest=64 + 5, spu__src_a=5, spu__src_b=64 + 2, spu__op_type=2,
        spu__switches=0b11011 << 2, vpu__opcode=0x16, vpu__op_type=2, vpu__src_a=8, vpu__src_b=4, vpu__dest=4,
        vpu__switches=4)),
    ("greco", "ld_tnsr_low partial V4, LD_TNSR_ID_REG, I3, LD_PARTIAL_REG, SP3; mov LD_PARTIAL_REG, S1; "
        "mov_g g_en=0b11 dg_en=0b1010 V3, V2, 0xffff; st_l mmio 0xffff, S2, SP3",
     packed("gen34_256", load__opcode=0x12, load__dest=4, load__src_a=131, load__switches=1 | 1 << 3,
        shared__predicate=3, spu__opcode=8, spu__src_a=1, spu__src_b=1 << 6 | 11, spu__switches=1, vpu__opcode=0x32,
        vpu__src_a=2, vpu__src_b=0b101011, vpu__dest=3, all__immediate=0xFFFF, store__opcode=5, store__src_a=127,
        store__src_b=1, store__src_c=66)),
    ("greco", "nop; nop; sel2_less.u16 D4, V6, V7, V8, S9, VP2; nop",
     packed("gen34_256", vpu__opcode=0x28, vpu__op_type=8, vpu__dest=4, vpu__src_a=6, vpu__src_b=7, vpu__src_c=8,
        vpu__src_d=73, vpu__predicate=18)),
    ("gaudi2", "nop; ash.i32 rhu S1, S2, 0x3; convert.bf16 all_lanes target_type=f8_143 sr_rne clip_fp V3, D6; "
        "ld_tnsr direct V4, S2, S3, !VP9",
     packed("gen34_256", spu__opcode=0x15, spu__op_type=2, spu__dest=1, spu__src_a=2, spu__src_b=127,
        all__immediate=3, spu__switches=0b11, vpu__opcode=0x16, vpu__op_type=1, vpu__src_a=6, vpu__src_b=13,
        vpu__dest=3, vpu__switches=7 | 1 << 4, store__opcode=0x11, store__src_c=4, store__src_a=66, store__src_b=67,
        store__switches=1 << 6, shared__polarity=1, shared__predicate=16 + 9)),
    ("greco", ".compressed spu_vpu ld_st\n"
        "nop; mov.i32 S11, 0x7d; nearbyint.f32 rd V20, V23, !SP3; nop\n"
        "ld_tnsr V4, 0x2, I3; nop; nop; st_tnsr 0x1, I3, V4",
     packed("gen34_128_spu_vpu", all__compressed=1, spu__opcode=8, spu__src_a=127, spu__dest=11, spu__op_type=2,
        all__immediate=125, vpu__opcode=0x1B, vpu__op_type=0, vpu__src_a=23, vpu__dest=20, vpu__switches=3,
        vpu__polarity=1, vpu__predicate=3)
     + packed("gen34_128_ld_st", all__compressed=1, all__compression_type=1, load__opcode=0x11, load__dest=4,
        load__src_a=131, load__src_b=2, store__opcode=0x0B, store__src_a=131, store__src_b=1, store__src_c=4)),
    ("gaudi2", ".compressed ld_st spu_vpu\n"
        "ld_l_v VP7, 0x300, SP2; nop; nop; st_l_v 0x300, V9, SP2\n"
        "nop; halt; halt; nop",
     packed("gen34_128_ld_st", all__compressed=1, all__compression_type=1, load__opcode=0x0E, load__dest=247,
        load__src_a=127, all__immediate=0x300, shared__predicate=2, store__opcode=7, store__src_a=127,
        store__src_c=9)
     + packed("gen34_128_spu_vpu", all__compressed=1, spu__opcode=0x20, vpu__opcode=0x20)),
    ("gaudi2", ".compressed spu_vpu spu_vpu\n"
        "nop; cmp_grt.i32 SP4, S1, S2; convert.f32 x4 target_type=int32 rhaz A4, A8; nop\n"
        "nop; nop; convert_int16 single_lane lane_sel=1 rz V1, V2, V3; nop",
     packed("gen34_128_spu_vpu", all__compressed=1, spu__opcode=0x0D, spu__op_type=2, spu__dest=52, spu__src_a=1,
        spu__src_b=2, vpu__opcode=0x16, vpu__src_a=8, vpu__src_b=2 | 1 << 6, vpu__dest=4, vpu__switches=6 | 8)
     + packed("gen34_128_spu_vpu", all__compressed=1, vpu__opcode=0x04, vpu__op_type=1, vpu__src_a=2, vpu__src_b=3,
        vpu__dest=1, vpu__switches=0b101)),
    ("goya", "nop; loop S1, 123, S3, <=, 96, !SP2; nop; nop",
     packed("gen12_loop", spu__opcode=0x22, spu__start=1, spu__step=3, spu__bound_is_imm_sel=1, spu__bound_imm=123,
        spu__end_offset=96, spu__compare_mode=3, spu__polarity=1, spu__predicate=2)),
    ("gaudib", "nop; loop 7, S9, -1, !=, 64; nop; nop",
     packed("gen12_loop", spu__opcode=0x22, spu__start_is_imm_sel=1, spu__start_imm=7, spu__bound=9,
        spu__step_is_imm_sel=1, spu__step_imm=0xFFFFFFFF, spu__end_offset=64, spu__compare_mode=5)),
    ("gaudi2", "nop; loop 1, 1000, 2, >=, 65504, SP5; nop; nop",
     packed("gen34_loop", spu__opcode=0x22, spu__start_is_imm_sel=1, spu__start_imm=1, spu__bound_is_imm_sel=1,
        spu__bound_imm=1000, spu__step_is_imm_sel=1, spu__step_imm=2, spu__compare_mode=1, spu__end_offset=65504,
        spu__predicate=5)),
    ("greco", "nop; loop S35, S0, S20, ==, 32; nop; nop",
     packed("gen34_loop", spu__opcode=0x22, spu__start=35, spu__bound=0, spu__step=20, spu__compare_mode=4,
        spu__end_offset=32)),
    ("gaudi2", "mov VP4, SP5; nop; convert.i32 x2 target_type=fp32 rhne D4, D6; nop",
     packed("gen34_256", load__opcode=5, load__dest=244, load__src_a=229, load__src_b=8, vpu__opcode=0x16,
        vpu__op_type=2, vpu__src_a=6, vpu__src_b=0 | 1 << 6 | 1 << 7, vpu__dest=4)),
    ("greco", "nop; nop; mov 0x5 VP4, S0; nop",
     packed("gen34_256", vpu__opcode=8, vpu__op_type=6, vpu__dest=244, vpu__src_a=64, vpu__src_b=5)),
    ("greco", "nop; nop; mov_dg src=1 dst=2 wr_lg=0x1 wr_ug=0x0 V3, V4, 0xff, VP1; nop",
     packed("gen34_256", vpu__opcode=0x31, vpu__src_a=4, vpu__src_b=1 | 2 << 2 | 1 << 4, vpu__dest=3,
        vpu__predicate=17, all__immediate=0xFF)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("generation", "text", "code"), BY_HAND, ids=[f"{row[0]}-{n}" for n, row in enumerate(BY_HAND)]
)
def test_bundles_packed_by_hand(generation: str, text: str, code: bytes) -> None:
    assert assemble(parse(text, dialect(generation)), encoding(generation)).code == code
    shown = canonical_text(text, dialect(generation))
    again = disassemble(code, encoding(generation)).text()
    assert plain(re.sub(r"\s+", " ", again)) == plain(re.sub(r"\s+", " ", shown))


CASTSIMS_OWN = (Slot.VPU, "rounded")
"""An instruction of no chip, which has no code."""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_opcodes_are_the_published_ones(generation: str) -> None:
    order, tables = list(GENERATIONS), encoding(generation)
    published: dict[tuple[Slot, str], int] = {}
    for row in table("tpc_opcodes.csv"):
        suffix = "" if row["form"] in ("", "single") else f".{row['form']}"
        key = Slot[row["slot"].upper()], row["mnemonic"].lower() + suffix
        published[key] = int(row["opcode"], 16)
        forms = [form for form in forms_of(key[1]) if key[0] in form.slots]
        if forms:  # an instruction that castsim models: it is available where the table says
            since = row["from_gen"] != "none" and order.index(row["from_gen"]) <= order.index(generation)
            expected = since and generation not in row["not_in"].split(";")
            expected = expected and (row["mnemonic"], generation) != ("FCLASS", "goya")  # section 5.4: from Gaudi
            assert any(available(form, tables.dialect) for form in forms) == expected, row
    assert dict(tables.opcodes) == published
    for slot, forms in rows(generation).items():
        assert {(slot, form.mnemonic) for form in forms} - {CASTSIMS_OWN} <= set(published)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_fields_stand_where_the_published_table_says(generation: str) -> None:
    tables = encoding(generation)
    layouts = [tables.bundle, tables.loop, *(half.layout for half in tables.halves)]
    found = {
        (layout.name, {"shared": "load+store"}.get(owner, owner), field, part.low + bit): part.start + bit
        for layout in layouts
        for (owner, field), parts in layout.fields.items()
        for part in parts
        for bit in range(part.bits)
    }
    published = {}
    for row in table("tpc_encoding_fields.csv"):
        match = re.fullmatch(r"(\w+)(?:\[\d+:(\d+)\])?", row["field"])
        assert match
        size = int(row["size_bits"])
        if row["notes"] == "7 bits on gaudi2" and generation == "gaudi2":
            size = 7
        for bit in range(size):
            key = row["layout"], row["slot"], match[1], int(match[2] or 0) + bit
            published[key] = int(row["start_bit"]) + bit
    used = {layout.name for layout in layouts}
    assert found == {key: place for key, place in published.items() if key[0] in used}
    assert used == {name for name in {key[0] for key in published} if name.startswith(tables.bundle.name[:5])}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_vendors_assembler_tests_pass_through_the_binary(generation: str) -> None:
    """What the vendor's disassembler prints for its own assembler's output, ours prints for ours."""
    tables = encoding(generation)
    for row in ASSEMBLED:
        if row["gen"] == generation:
            code = assemble(parse(row["input_asm"], tables.dialect), tables).code
            printed = plain(disassemble(code, tables).text())
            assert printed == plain(row["expected_canonical_or_encoding"]), row


def test_no_code_is_invented_for_registers_without_one() -> None:
    for text in ("mov S1, PC; nop; nop; nop", "mov S_CARRY, SP1; nop; nop; nop", "nop; mov M1 I1, S2; nop; nop"):
        with pytest.raises(IllegalError, match="no source documents a code"):
            assemble(parse(text, dialect("greco")), encoding("greco"))


BUNDLES = int(os.environ.get("CASTSIM_BUNDLES", "2000"))
_CHUNK = 500  # bundles in one program


@pytest.mark.parametrize("generation", GENERATIONS)
def test_valid_bundles_come_back(generation: str) -> None:
    source, tables = random.Random(f"valid {generation}"), encoding(generation)
    for start in range(0, BUNDLES, _CHUNK):
        count = min(_CHUNK, BUNDLES - start)
        code = b"".join(some_unit(generation, source) for _ in range(count))
        found = disassemble(code, tables)
        assert all(line.known and line.remark is None for line in found.lines)
        text = found.text()
        assert assemble(parse(text, tables.dialect), tables).code == code


@pytest.mark.parametrize("generation", GENERATIONS)
def test_damaged_bundles_come_back(generation: str) -> None:
    """One to three bits of a valid bundle flipped: read, remarked on or unknown, never lost."""
    source, tables = random.Random(f"damaged {generation}"), encoding(generation)
    code = bytearray(b"".join(some_unit(generation, source) for _ in range(300)))
    for start in range(0, len(code), UNIT):
        for _ in range(source.randint(1, 3)):
            code[start + source.randrange(UNIT)] ^= 1 << source.randrange(8)
    found = disassemble(bytes(code), tables)
    assert {line.known for line in found.lines} == {True, False}
    assert any(line.remark and line.known for line in found.lines)
    assert assemble(parse(found.text(), tables.dialect), tables).code == bytes(code)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_random_bytes_come_back(generation: str) -> None:
    source, tables = random.Random(f"bytes {generation}"), encoding(generation)
    code = source.randbytes(UNIT * 2000)
    found = disassemble(code, tables)
    assert sum(not line.known for line in found.lines) > 1000
    assert all(line.remark for line in found.lines if not line.known)
    assert assemble(parse(found.text(), tables.dialect), tables).code == code


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(min_size=UNIT, max_size=UNIT), max_size=3), st.sampled_from(GENERATIONS))
@example([b"\x89" + bytes(15) + b"\x01" + bytes(15)], "greco")  # a loop in half a bundle
def test_any_bytes_come_back(units: list[bytes], generation: str) -> None:
    tables = encoding(generation)
    text = disassemble(b"".join(units), tables).text()
    assert assemble(parse(text, tables.dialect), tables).code == b"".join(units)


def test_a_long_immediate_where_a_short_one_would_do() -> None:
    tables = encoding("greco")
    short = packed("gen34_256", spu__opcode=8, spu__src_a=0x73, spu__dest=1, spu__op_type=2)
    found = disassemble(short, tables)
    text = f".encoded {short.hex()}\nnop; mov.i32 S1, 0x3; nop; nop"
    assert found.text().startswith(text)
    assert "spu.src_a" in str(found.lines[0].remark)
    assert assemble(parse(text, tables.dialect), tables).code == short
    assert assemble(parse("nop; mov.i32 S1, 3; nop; nop", tables.dialect), tables).code != short


FIRST_SHORT, FIFTEEN = 0x70, 0x6F
ADDED = {"spu__opcode": 2, "spu__dest": 1, "spu__src_a": 2}
LOADED = {"load__opcode": 0x0E, "load__dest": 1}
FAR = {**ADDED, "spu__op_type": 2, "spu__src_b": 127}
SHORT = [
    ("ld_l_v V1, 0x100; add.u32 S1, S2, {}; nop; nop", 15, "spu__src_b",
     {**ADDED, "spu__op_type": 3, **LOADED, "load__src_a": 127}),
    ("ld_l_v V1, 0x100; nop; add.i32 V1, V2, {}; nop", 7, "vpu__src_b",
     {"vpu__opcode": 2, "vpu__dest": 1, "vpu__src_a": 2, "vpu__op_type": 2, **LOADED, "load__src_a": 127}),
    ("ld_l_v V1, {}; add.i32 S1, S2, 0x100; nop; nop", 15, "load__src_a", {**FAR, **LOADED}),
    ("nop; add.i32 S1, S2, 0x100; nop; st_l_v {}, V1", 15, "store__src_a",
     {**FAR, "store__opcode": 7, "store__src_c": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "most", "field", "others"), SHORT)
@pytest.mark.parametrize("generation", ["greco", "gaudi2"])
def test_a_short_immediate_makes_room_for_a_long_one(
    generation: str, line: str, most: int, field: str, others: dict[str, int]
) -> None:
    """docs/reference/tpc.md 8: 0x70 + n in every slot, 0x6f is 15; signed types 0 .. 7, others 0 .. 15."""
    tables = encoding(generation)
    for number in range(most + 1):
        text = line.format(hex(number))
        operand = {field: FIRST_SHORT + number if number < 15 else FIFTEEN}
        code = packed("gen34_256", all__immediate=0x100, **others, **operand)
        assert assemble(parse(text, tables.dialect), tables).code == code, text
        assert disassemble(code, tables).text() == f"{text}\n"
    with pytest.raises(IllegalError, match="one 32-bit immediate"):
        assemble(parse(line.format(hex(most + 1)), tables.dialect), tables)


def test_two_equal_long_immediates_share_the_field_and_a_short_code_of_a_signed_type_ends_at_7() -> None:
    tables = encoding("gaudi2")
    assert assemble(parse("nop; add.i32 S1, S2, 0x100; add.i32 V1, V2, 0x100; nop", tables.dialect), tables).code
    beyond = packed("gen34_256", spu__opcode=2, spu__dest=1, spu__src_a=2, spu__src_b=0x78, spu__op_type=2)
    assert "src_b 0x78 is not one of" in str(disassemble(beyond, tables).lines[0].remark)


def test_labels_are_distances() -> None:
    """JMPR: bytes from the jump; JMPA: address; LOOP: label - LOOP - 32 (docs/reference/tpc.md section 7.1)."""
    tables = encoding("gaudi2")
    text = (
        "Start:\nnop; loop 0, S1, 1, <, End; nop; nop\nnop; nop; nop; nop\n.compressed ld_st spu_vpu\n"
        "nop; nop; nop; nop\nnop; jmpr Start; nop; nop\nEnd:\nnop; jmpa Out, SP1; nop; nop\nOut:\n"
    )
    code = assemble(parse(text, tables.dialect), tables).code
    assert len(code) == 4 * UNIT
    assert int.from_bytes(code[:32], "little") >> 70 & 0xFFFF == 96 - 32
    assert int.from_bytes(code[80:96], "little") >> 96 == -80 & 0xFFFFFFFF
    assert int.from_bytes(code[96:128], "little") >> 96 & 0xFFFFFFFF == 128
    again = text.replace("Start", "L_0").replace("End", "L_60").replace("Out", "L_80")
    assert disassemble(code, tables).text() == again


@pytest.mark.parametrize("generation", ["greco", "gaudi2"])
def test_halves_alone_or_mixed_are_unknown(generation: str) -> None:
    half = packed("gen34_128_spu_vpu", all__compressed=1)
    for code in (half + bytes(16), bytes([half[0] | 1]) + bytes(31)):
        found = disassemble(code, encoding(generation))
        assert not found.lines[0].known
    pair = disassemble(half + half, encoding(generation))
    assert [line.address for line in pair.lines] == [0, 16]
    assert parse(pair.text(), dialect(generation)).bundles == (Bundle(), Bundle())
    assert len(Slot) == len(Bundle().slots)


HALT = packed("gen12_256", spu__opcode=0x20, vpu__opcode=0x20)


def refused(generation: str, text: str) -> CastsimError:
    with pytest.raises(CastsimError) as caught:
        assemble(parse(text, dialect(generation)), encoding(generation))
    assert caught.value.span is not None
    return caught.value


@pytest.mark.parametrize(
    ("generation", "text", "message"),
    [
        # docs/reference/tpc.md section 1: overlays, one immediate, one predicate for LOAD and STORE
        ("gaudi", "nop; nop; mov_dg.all sdg0=0 V1, V2, 0xf; st_l_v S0, V3", "cannot share a bundle: both need"),
        ("goya", "ld_l_v V1, S1, S2; nop; sel_eq.i32 V1, V2, V3, V4, V5; nop", "both need vpu.src_d, load.src_b"),
        ("gaudib", "nop; nop; sel_eq.i32 V1, V2, V3, V4, V5; st_tnsr 0x0, I1, V2", "both need vpu.src_c, store.src_c"),
        ("goya", "nop; add.i32 S1, S2, 3; add.i32 V1, V2, 4; nop", "not both 0x4 and 0x3"),
        ("greco", "nop; add.i32 S1, S2, 15; add.i32 V1, V2, 8; nop", "a bundle can hold one 32-bit immediate"),
        ("greco", "ld_l_v V1, 0x100; nop; add.i32 V1, V2, 8; nop", "a bundle can hold one 32-bit immediate"),
        ("gaudi", "ld_l S1, S2, SP1; nop; nop; st_l S1, S2", "the same predicate; found SP1 and SP0"),
        # the published layout has no bits for these on the early generations: they pack 32 to 16 bits
        ("gaudi", "nop; nop; nop; st_tnsr pack PCK_32_TO_8 0x0, I1, V2", "gaudi has no switch pack_dt on st_tnsr"),
        ("gaudi", "gen_addr AD1, S27, I2; nop; nop; nop", "load.switches cannot hold"),
        # loops
        ("goya", "nop; loop 0, S1, 1, <, E; mov V1, V2; nop\nnop;nop;nop;nop\nE:", "mov cannot share a bundle"),
        ("goya", "nop; loop 0, S1, 1, <, E; nop; nop\nE:", "the end of the loop is 32 bytes after it"),
        ("goya", "E:\nnop; loop 0, S1, 1, <, E; nop; nop", "the end of the loop is 0 bytes after it"),
        ("goya", "nop; loop 0, S1, 1, <, 0x10000; nop; nop", "the end of the body, 65536 bytes away"),
        ("goya", "nop; loop 0, S1, 1, <, E; nop; nop\n" + "nop; nop; nop; nop\n" * 2048 + "E:", "out of range"),
        # compressed bundles
        ("goya", ".compressed spu_vpu ld_st\nnop;nop;nop;nop\nnop;nop;nop;nop", "goya has no compressed bundles"),
        ("greco", ".compressed spu_vpu\nnop;nop;nop;nop", ".compressed takes 2 layouts"),
        ("greco", ".compressed ld_st x\nnop;nop;nop;nop\nnop;nop;nop;nop", ".compressed takes 2 layouts"),
        ("greco", ".compressed ld_st ld_st\nnop;nop;nop;nop", "no bundles follow this directive"),
        ("greco", ".compressed ld_st ld_st\nnop;nop;nop;nop\nL:\nnop;nop;nop;nop", "inside a compressed pair"),
        ("greco", ".compressed ld_st ld_st\nnop;halt;halt;nop\nnop;nop;nop;nop", "has no SPU slot for halt"),
        ("greco", ".compressed spu_vpu ld_st\nnop; loop 0, S1, 1, <, 64; nop; nop\nnop;nop;nop;nop", "loop needs"),
        ("gaudi2", ".compressed spu_vpu ld_st\nnop;nop; sel_eq.i32 V1,V2,V3,V4,V5;nop\nnop;nop;nop;nop", "vpu.src_c"),
        # directives
        ("goya", ".byte 1, 2\nnop;nop;nop;nop", "the bytes before this end at 0x2"),
        ("goya", ".byte 1, 256", "takes 8-bit numbers"),
        ("goya", ".byte", "takes 8-bit numbers"),
        ("goya", ".word 5", ".word would put data into the program"),
        ("goya", ".encoded zz\nnop;nop;nop;nop", "as hexadecimal digits"),
        ("goya", ".encoded 00\nnop;nop;nop;nop", "1 bytes are not a bundle"),
        ("goya", ".encoded 00", "no bundles follow this directive"),
        ("goya", ".encoded 00\n.encoded 00\nnop;nop;nop;nop", "two .encoded directives"),
        ("goya", ".encoded 00\nL:\nnop;nop;nop;nop", "between .encoded and its bundle"),
        ("goya", f".encoded {HALT.hex()}\nnop;nop;nop;nop", "a different bundle"),
        ("greco", f".encoded {'fd' * 16}\nnop;nop;nop;nop", ".encoded: "),
        ("goya", f".encoded {'00' * 32}\nnop;nop;nop;nop", ".encoded: "),
    ],
)  # fmt: skip
def test_refusals(generation: str, text: str, message: str) -> None:
    assert message in refused(generation, text).message


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (packed("gen12_256", spu__opcode=0x0E), "SPU opcode 0x0e (cmp_geq): dest 0x0 is not one of SP"),
        (packed("gen12_256", load__opcode=0x19), "LOAD opcode 0x19 (ld_tnsr_cnvrt) is not mod"),
        (packed("gen12_256", vpu__opcode=0x21), "VPU opcode 0x21 is not an instruction of goya"),
        (packed("gen12_256", vpu__opcode=0x35), "VPU opcode 0x35 (convert_int8)"),  # from Greco only
        (packed("gen12_256", vpu__opcode=0x31, vpu__switches=1), "VPU opcode 0x31"),  # MOV_DG all: from Gaudi
        (packed("gen12_256", vpu__opcode=0x16, vpu__switches=7), "rounding 0x7 is unknown"),
        (packed("gen12_256", vpu__opcode=0x02, vpu__op_type=15), "type 0xf is unknown"),
        (packed("gen12_256", vpu__opcode=0x02, vpu__src_a=50), "src_a 0x32 is not one of V"),
        (packed("gen12_256", spu__opcode=0x26, spu__dest=1, spu__src_a=64, spu__switches=5), "dimension 5 is not"),
        (packed("gen12_256", load__opcode=0x0B, load__src_a=64, load__dest=64, shared__predicate=17), "VP1 is not"),
        (packed("gen12_256", load__opcode=0x0B, load__src_a=64, load__dest=64, load__src_b=64 << 2), ""),
        (packed("gen12_loop", spu__opcode=0x22, spu__compare_mode=6), "loop: compare mode 6 is unknown"),
        (packed("gen12_loop", spu__opcode=0x22, spu__repeat=2), "loop: repeat 2 is unknown"),
        (packed("gen12_loop", spu__opcode=0x22, spu__bound=36), "loop: bound 0x24 is not an S register"),
        (
            packed("gen12_256", vpu__opcode=0x22, vpu__src_d=1, load__opcode=0x0B, load__dest=64, load__src_a=64),
            "sel_eq and ld_l cannot share a bundle",
        ),
    ],
)  # fmt: skip
def test_unknown_bundles_say_why(code: bytes, reason: str) -> None:
    (line,) = disassemble(code, encoding("goya")).lines
    assert reason in str(line.remark)
    assert line.known == (reason == "")


NAMES = b"\0.text\0.shstrtab\0"


def elf(text: bytes, *, machine: int = 0, bits: int = 64, order: int = 1, name: int = 1) -> bytes:
    """A minimal ELF file: header, .text, names, three section headers (System V ABI)."""
    head, section = (64, 64) if bits == 64 else (52, 40)
    table = head + len(text) + len(NAMES)
    ident = b"\x7fELF" + bytes([2 if bits == 64 else 1, order, 1]) + bytes(9)
    sizes = (0, head, 0, 0, section, 3, 2)
    shape = "<HHIQQQIHHHHHH" if bits == 64 else "<HHIIIIIHHHHHH"
    header = ident + struct.pack(shape, 1, machine, 1, 0, 0, table, *sizes)

    def described(start: int, kind: int, offset: int, size: int) -> bytes:
        if bits == 64:
            return struct.pack("<IIQQQQIIQQ", start, kind, 0, 0, offset, size, 0, 0, 1, 0)
        return struct.pack("<IIIIIIIIII", start, kind, 0, 0, offset, size, 0, 0, 1, 0)

    sections = described(0, 0, 0, 0) + described(name, 1, head, len(text))
    return header + text + NAMES + sections + described(7, 3, head + len(text), len(NAMES))


@pytest.mark.parametrize("bits", [32, 64])
def test_object_files(bits: int) -> None:
    code, whole = bytes(range(64)), elf(bytes(64), bits=bits)
    assert program_bytes(elf(code, bits=bits, machine=4660), (0, 4660)) == code
    for damaged, message in (
        (elf(bytes(64), bits=bits, machine=62), r"ELF machine 62 is not a TPC.*\n.*legal: 0"),
        (elf(bytes(64), bits=bits, order=2), "big-endian"),
        (elf(bytes(64), bits=bits, name=0), r"has no section \.text\n.*\.shstrtab"),
        (whole[:4] + b"\x07" + whole[5:], "unknown ELF class"),
        *((whole[:size], ".") for size in range(4, len(whole))),
    ):
        with pytest.raises(ReadError, match=message):
            program_bytes(damaged, (0,))


HEAD = "slots,mnemonics,item,field,low,bits,codes,variant,status\n"


def mine(folder: Path, change: str, base: str = "greco", row: str = "") -> VliwTarget:
    """A description of one's own, with a table of placements of one row."""
    if row:
        (folder / "mine.csv").write_text(f"{HEAD}{row}\n")
        change += '[placements]\ntable = "mine.csv"\nsource = "x"\nstatus = "assumed"\n'
    (folder / "mine.toml").write_text(f'base = "{base}"\nname = "mine"\narchitectures = ["mine"]\n{change}')
    return load_target(folder / "mine.toml")


@pytest.mark.parametrize(
    ("change", "row", "message"),
    [
        ("[encoding]\nbundle = 'gen9'\nsource = 'x'\nstatus = 'assumed'\n", "", "layout 'gen9', which has no fields"),
        ("[encoding]\nshort_immediates = { count = 0 }\n", "", "mine.toml: encoding.short_immediates.count"),
        ("[encoding]\nbytes = 4\n", "", "mine.toml: encoding.bytes: unknown key"),
        ("[encoding]\nvector_files = { W = 4 }\n", "", "mine.toml: encoding.vector_files"),
        ("[encoding.specials]\nLFSR = 'forty'\n", "", "mine.toml: encoding.specials.LFSR"),
        ("[encoding]\nhalves = []\nsource = 'x'\nstatus = 'assumed'\n", "", "compressed_bundles"),
        ("[features.has]\nshort_immediates = false\n", "", "short_immediates"),
        ("", "side,mov,type,op_type,0,4,types,-,documented", "name a slot 'side'"),
        ("", "spu,mov,type,op_type,0,4,kinds,-,documented", "type names codes 'kinds'"),
    ],
)  # fmt: skip
def test_contradictions_in_a_description_or_table(change: str, row: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(TargetDataError, match=message):
        encoding_of(mine(tmp_path, change, row=row))
