"""The binary encoding of Habana TPC programs: assembler, disassembler, object files.

Source: docs/reference/tpc.md section 8.
"""

from __future__ import annotations

from castsim.isa.tpc.encoding.assembler import (
    AssembledBinary,
    Disassembly,
    ListedLine,
    assemble,
    disassemble,
    program_bytes,
)
from castsim.isa.tpc.encoding.bundle_encoding import Decoded, UnknownBundle, decode_bundle, encode_bundle
from castsim.isa.tpc.encoding.encoding_tables import CompressedLayout, Encoding, FieldBits, ItemPlacement, Layout

__all__ = [
    "AssembledBinary", "CompressedLayout", "Decoded", "Disassembly", "Encoding", "FieldBits", "ItemPlacement",
    "Layout", "ListedLine", "UnknownBundle", "assemble", "decode_bundle", "disassemble", "encode_bundle",
    "program_bytes",
]  # fmt: skip
