"""What has no encoding is refused where it stands, and damaged files are refused as files."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from kit.tpc_bundles import encoding, packed
from kit.tpc_text import dialect

from castsim.isa.errors import CastsimError, IllegalError, ReadError, TargetDataError
from castsim.isa.tpc.parser import parse
from castsim.targets.loader import load_target
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_binary.assembler import assemble, disassemble, program_bytes
from castsim.tools.tpc_binary.tpc_encoding import encoding_of

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


def test_refusals_say_what_would_be_legal() -> None:
    assert refused("goya", "nop; add.i32 S1, S2, 3; add.i32 V1, V2, 4; nop").legal == ("two bundles",)
    assert "0 .. 7" in refused("greco", "nop; add.i32 S1, S2, 15; add.i32 V1, V2, 8; nop").legal
    assert refused("goya", "nop; loop 0, S1, 1, <, E; nop; nop\nE:").legal == ("64 .. 65536",)


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


def test_bits_without_a_meaning_are_named() -> None:
    code = bytearray(assemble(parse("nop; halt; halt; nop", dialect("goya")), encoding("goya")).code)
    code[31] |= 0x80  # bit 255, which no field has
    code[1] |= 1  # src_a of SPU
    (line,) = disassemble(bytes(code), encoding("goya")).lines
    assert line.text == "nop; halt; halt; nop"
    assert line.remark == "unexpected encoding of spu.src_a, unused bits"


@pytest.mark.parametrize("size", [1, 16, 31, 33, 100])
def test_truncated_binaries(size: int) -> None:
    with pytest.raises(ReadError, match=f"k.bin: {size} bytes are not a whole number of bundles of 32 bytes"):
        disassemble(bytes(size), encoding("gaudi2"), "k.bin")


# ----------------------------------------------------------------------------------------------------- object files

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
def test_text_of_object_files(bits: int) -> None:
    code = bytes(range(64))
    assert program_bytes(elf(code, bits=bits), (0,)) == code
    assert program_bytes(elf(code, bits=bits, machine=4660), (0, 4660)) == code
    assert program_bytes(code, (0,)) == code


@pytest.mark.parametrize("bits", [32, 64])
def test_damaged_object_files(bits: int) -> None:
    whole = elf(bytes(64), bits=bits)
    with pytest.raises(ReadError, match=r"ELF machine 62 is not a TPC.*\n.*legal: 0"):
        program_bytes(elf(bytes(64), bits=bits, machine=62), (0,))
    with pytest.raises(ReadError, match="big-endian"):
        program_bytes(elf(bytes(64), bits=bits, order=2), (0,))
    with pytest.raises(ReadError, match=r"has no section \.text\n.*\.shstrtab"):
        program_bytes(elf(bytes(64), bits=bits, name=0), (0,))
    with pytest.raises(ReadError, match="unknown ELF class"):
        program_bytes(whole[:4] + b"\x07" + whole[5:], (0,))
    for size in range(4, len(whole)):
        with pytest.raises(ReadError):
            program_bytes(whole[:size], (0,))


# ------------------------------------------------------------------------------------------------------ target data


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


def test_loads_of_a_switch_nobody_places(tmp_path: Path) -> None:
    tables = encoding_of(mine(tmp_path, "", "goya", "spu,*,type,op_type,0,4,types,-,documented"))
    with pytest.raises(IllegalError, match="no source shows where st is encoded"):
        assemble(parse("nop; ash.i32 S1, S2, S3; nop; nop", tables.dialect), tables)
