"""Object files: the `.text` section of an ELF file, or the file itself if it is not an ELF file.

Only what is needed is read: header, section headers, section names; 32 and 64 bits, little endian. Source: System V
ABI, chapters on object files.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from castsim.isa.errors import ReadError
from castsim.isa.sources import ELF_MAGIC

_SECTION = ".text"
_LITTLE_ENDIAN = 1
_NO_BITS = 8  # a section type: it takes no room in the file


@dataclass(frozen=True, slots=True)
class _Shape:
    """The places of fields in files of one class: header, section header as struct formats."""

    header: str
    section: str


# After e_ident: type machine version entry phoff shoff flags ehsize phentsize phnum shentsize shnum shstrndx.
# A section header: name type flags addr offset size.
_SHAPES = {1: _Shape("<16xHHIIIIIHHHHHH", "<IIIIII"), 2: _Shape("<16xHHIQQQIHHHHHH", "<IIQQQQ")}


def program_bytes(data: bytes, machines: tuple[int, ...], file: str = "<binary>") -> bytes:
    """Return the bytes of a program: those of `.text` if the file is ELF, else all.

    `machines` are the machine numbers to accept.

    Raises:
        ReadError: an ELF file that is damaged, big-endian, of another machine, or without `.text`.
    """
    if not data.startswith(ELF_MAGIC):
        return data
    try:
        return _text_section(data, machines, file)
    except struct.error:
        raise ReadError(f"{file}: the ELF file is cut off: a header lies beyond its {len(data)} bytes") from None


def _text_section(data: bytes, machines: tuple[int, ...], file: str) -> bytes:
    if len(data) < 6 or data[4] not in _SHAPES:
        raise ReadError(f"{file}: unknown ELF class", legal=("1 (32 bits)", "2 (64 bits)"))
    if data[5] != _LITTLE_ENDIAN:
        raise ReadError(f"{file}: the ELF file is not little endian; TPC programs are")
    shape = _SHAPES[data[4]]
    fields = struct.unpack_from(shape.header, data)
    machine, table, (size, count, names) = fields[1], fields[5], fields[10:]
    if machine not in machines:
        message = f"{file}: ELF machine {machine} is not a TPC; --machine accepts another number"
        raise ReadError(message, legal=map(str, machines))
    if count == 0 or names >= count:
        raise ReadError(f"{file}: the ELF file has no section names, so no section {_SECTION}")
    if size < struct.calcsize(shape.section) or table + size * count > len(data):
        raise ReadError(f"{file}: the ELF file is cut off, or its section headers lie beyond its {len(data)} bytes")
    sections = [struct.unpack_from(shape.section, data, table + number * size) for number in range(count)]
    strings = _content(sections[names], data, file)
    found = [section for section in sections if _name(strings, section[0]) == _SECTION]
    if not found:
        shown = [_name(strings, section[0])[:40] for section in sections]
        raise ReadError(f"{file}: the ELF file has no section {_SECTION}", legal=[name for name in shown if name])
    return _content(found[0], data, file)


def _content(section: tuple[int, ...], data: bytes, file: str) -> bytes:
    kind, offset, size = section[1], section[4], section[5]
    if kind == _NO_BITS:
        return b""
    if offset + size > len(data):
        raise ReadError(f"{file}: the ELF file is cut off: a section ends at {offset + size}, it has {len(data)} bytes")
    return data[offset : offset + size]


def _name(strings: bytes, start: int) -> str:
    return strings[start : strings.find(b"\0", start)].decode("utf-8", "replace")
