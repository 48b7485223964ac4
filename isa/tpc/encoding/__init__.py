"""The binary encoding of Habana TPC programs: assembler, disassembler, object files.

Source: docs/reference/tpc.md section 8.
"""

from __future__ import annotations

from castsim.isa.tpc.encoding.assembler import AssembledBinary, assemble
from castsim.isa.tpc.encoding.disassembler import Disassembly, Line, disassemble
from castsim.isa.tpc.encoding.object_file import program_bytes
from castsim.isa.tpc.encoding.reader import Decoded, UnknownBundle, decode_bundle
from castsim.isa.tpc.encoding.tables import CompressedLayout, Encoding, FieldBits, ItemPlacement, Layout
from castsim.isa.tpc.encoding.writer import encode_bundle

__all__ = [
    "AssembledBinary",
    "CompressedLayout",
    "Decoded",
    "Disassembly",
    "Encoding",
    "FieldBits",
    "ItemPlacement",
    "Layout",
    "Line",
    "UnknownBundle",
    "assemble",
    "decode_bundle",
    "disassemble",
    "encode_bundle",
    "program_bytes",
]
