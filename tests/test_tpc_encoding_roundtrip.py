"""assemble(disassemble(x)) == x: over random valid bundles, over their damaged neighbours, over any bytes at all.

A few thousand bundles per generation by default; CASTSIM_BUNDLES=100000 sets another number.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tpc_bundles import UNIT, encoding, packed, some_unit
from tpc_text import GENERATIONS, dialect

from castsim.isa.errors import IllegalError
from castsim.isa.tpc import Bundle, Slot, parse
from castsim.isa.tpc.encoding import assemble, disassemble

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
    """Both encodings of a small immediate mean the same; the one that is not written by itself is kept as .encoded."""
    tables = encoding("greco")
    short = packed("gen34_256", spu__opcode=8, spu__src_a=0x73, spu__dest=1, spu__op_type=2)
    found = disassemble(short, tables)
    text = f".encoded {short.hex()}\nnop; mov.i32 S1, 0x3; nop; nop"
    assert found.text().startswith(text)
    assert "spu.src_a" in str(found.lines[0].remark)
    assert assemble(parse(text, tables.dialect), tables).code == short
    assert assemble(parse("nop; mov.i32 S1, 3; nop; nop", tables.dialect), tables).code != short


FIRST_SHORT, FIFTEEN = 0x70, 0x6F
SHORT = [
    ("ld_l_v V1, 0x100; add.u32 S1, S2, {}; nop; nop", 15, {"spu__opcode": 2, "spu__dest": 1, "spu__src_a": 2,
     "spu__op_type": 3}, "spu__src_b", {"load__opcode": 0x0E, "load__dest": 1, "load__src_a": 127}),
    ("ld_l_v V1, 0x100; nop; add.i32 V1, V2, {}; nop", 7, {"vpu__opcode": 2, "vpu__dest": 1, "vpu__src_a": 2,
     "vpu__op_type": 2}, "vpu__src_b", {"load__opcode": 0x0E, "load__dest": 1, "load__src_a": 127}),
    ("ld_l_v V1, {}; add.i32 S1, S2, 0x100; nop; nop", 15, {"spu__opcode": 2, "spu__dest": 1, "spu__src_a": 2,
     "spu__op_type": 2, "spu__src_b": 127}, "load__src_a", {"load__opcode": 0x0E, "load__dest": 1}),
    ("nop; add.i32 S1, S2, 0x100; nop; st_l_v {}, V1", 15, {"spu__opcode": 2, "spu__dest": 1, "spu__src_a": 2,
     "spu__op_type": 2, "spu__src_b": 127}, "store__src_a", {"store__opcode": 7, "store__src_c": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "most", "one", "field", "other"), SHORT)
@pytest.mark.parametrize("generation", ["greco", "gaudi2"])
def test_a_short_immediate_makes_room_for_a_long_one(
    generation: str, line: str, most: int, one: dict[str, int], field: str, other: dict[str, int]
) -> None:
    """docs/reference/tpc.md 8: 0x70 + n in every slot, 0x6f is 15; signed types 0 .. 7, others 0 .. 15."""
    tables = encoding(generation)
    for number in range(most + 1):
        text = line.format(hex(number))
        operand = {field: FIRST_SHORT + number if number < 15 else FIFTEEN}
        code = packed("gen34_256", all__immediate=0x100, **one, **other, **operand)
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


def test_a_jump_into_nowhere_keeps_its_number() -> None:
    text = "nop; jmpr 0x7b; nop; nop\nnop; jmpr 0xffffff80; nop; nop\nnop; jmpa 0x1000, SP1; nop; nop\n"
    code = assemble(parse(text, dialect("goya")), encoding("goya")).code
    assert disassemble(code, encoding("goya")).text() == text


def test_nothing_disassembles_to_nothing() -> None:
    assert disassemble(b"", encoding("goya")).text() == ""


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
