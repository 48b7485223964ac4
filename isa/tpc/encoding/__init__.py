"""The binary encoding of Habana TPC programs: assembler, disassembler, object files. Source: tpc.md section 8."""

from __future__ import annotations

from isa.tpc.encoding.assembler import Assembled, assemble
from isa.tpc.encoding.disassembler import Disassembly, Line, disassemble
from isa.tpc.encoding.object_file import program_bytes
from isa.tpc.encoding.reader import Decoded, UnknownBundle, decode_bundle
from isa.tpc.encoding.tables import Encoding, Half, Layout, Part, Placement
from isa.tpc.encoding.writer import encode_bundle

__all__ = [
    "Assembled",
    "Decoded",
    "Disassembly",
    "Encoding",
    "Half",
    "Layout",
    "Line",
    "Part",
    "Placement",
    "UnknownBundle",
    "assemble",
    "decode_bundle",
    "disassemble",
    "encode_bundle",
    "program_bytes",
]
