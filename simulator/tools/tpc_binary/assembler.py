"""Conversion of programs to binaries and back: addresses, labels, directives, object files.

`.byte 0x.., ..` represents bytes that are not a bundle. `.compressed FIRST SECOND` stores the next two bundles in half
the space each, in the layouts it names. `.encoded HEX` stores the next bundle as these bytes, which must mean it: so
text keeps a choice that it cannot express, such as a long immediate where a short one is possible. Other directives
have no effect here; those that would put data into the program are refused. Source of addresses: docs/reference/tpc.md
section 7.1.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.reading import ELF_MAGIC
from castsim.isa.tpc.parser import print_bundle
from castsim.isa.tpc.program import (
    BYTE,
    COMPRESSED,
    WORD_MASK,
    Bundle,
    Directive,
    Immediate,
    Item,
    LabelDefinition,
    LabelUse,
    Slot,
    TpcInstruction,
    TpcProgram,
)
from castsim.tools.tpc_binary.bundle_encoding import Decoded, UnknownBundle, assumed_items, decode_bundle, encode_bundle
from castsim.tools.tpc_binary.encoding_tables import LOOP, CompressedLayout, Encoding

ENCODED = ".encoded"
_DATA = re.compile(
    r"\.(word|short|long|quad|int|hword|octa|[248]byte|ascii|asciz|string|space|zero|fill|skip|org|(b|p2)?align|float"
    r"|double|incbin)"
)
_METADATA = re.compile(r"d[bhwdq]")
_SECTIONS = (".text", ".data", ".section")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]{1,2}|\d{1,3}")
_LARGEST_BYTE = 255


@dataclass(frozen=True, slots=True)
class PlacedBundle:
    """A bundle at its address in bytes; `half` if it is compressed; `fixed` are bytes that the text prescribes."""

    address: int
    bundle: Bundle
    half: CompressedLayout | None
    fixed: bytes | None = None


@dataclass(frozen=True, slots=True)
class AssembledBinary:
    """A binary; `bundles` is their number, `assumed` names the items at positions that no source states."""

    code: bytes
    bundles: int
    assumed: tuple[str, ...]


def assemble(program: TpcProgram, encoding: Encoding) -> AssembledBinary:
    """Encode a whole program, first bundle at address 0.

    Raises:
        ReadError: a directive is malformed or misplaced.
        IllegalError: an instruction, bundle or distance has no encoding.
    """
    placer = _Placer(encoding)
    for item in program.items:
        placer.take(item)
    placer.finish()
    code = bytearray(placer.address)
    assumed: dict[str, None] = {}
    for address, data in placer.raw:
        code[address : address + len(data)] = data
    for placed in placer.bundles:
        bundle = resolved(placed, placer.labels, encoding)
        try:
            data = encode_bundle(bundle, encoding, placed.half)
            if placed.fixed is not None:
                data = _prescribed(placed.fixed, bundle, placed, encoding)
        except CastsimError as error:
            raise error.at(placed.bundle.span) from None
        code[placed.address : placed.address + len(data)] = data
        assumed.update(dict.fromkeys(assumed_items(bundle, encoding)))
    return AssembledBinary(bytes(code), len(placer.bundles), tuple(assumed))


class _Placer:
    """Gives every item of a program its address."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.address = 0
        self.labels: dict[str, int] = {}
        self.bundles: list[PlacedBundle] = []
        self.raw: list[tuple[int, bytes]] = []
        self._halves: list[CompressedLayout] = []
        self._compressed: Directive | None = None
        self._in_metadata = False
        self._encoded: Directive | None = None

    def take(self, item: Item) -> None:
        """Place the next item."""
        if isinstance(item, Bundle):
            self._bundle(item)
        elif isinstance(item, LabelDefinition):
            self._between(item, "a label")
            self.labels[item.name] = self.address
        else:
            self._directive(item)

    def finish(self) -> None:
        """Reject a directive that no bundle follows."""
        pending = self._encoded or (self._compressed if self._halves else None)
        if pending is not None:
            raise ReadError("no bundles follow this directive", span=pending.span)
        self._aligned(None)

    def _bundle(self, bundle: Bundle) -> None:
        if not self._halves:
            self._aligned(bundle)
        half = self._halves.pop(0) if self._halves else None
        fixed = None if self._encoded is None else _hexadecimal(self._encoded)
        self._encoded = None
        self.bundles.append(PlacedBundle(self.address, bundle, half, fixed))
        self.address += (self.encoding.bundle if half is None else half.layout).size_bytes

    def _directive(self, item: Directive) -> None:
        name, _, rest = item.text.partition(" ")
        name = name.lower()
        if name == BYTE:
            self._between(item, name)
            data = _bytes(item, rest)
            self.raw.append((self.address, data))
            self.address += len(data)
        elif name == COMPRESSED:
            self._between(item, name)
            self._aligned(item)
            self._halves = list(_halves(item, rest, self.encoding))
            self._compressed = item
        elif name == ENCODED:
            if self._encoded is not None:
                raise ReadError("this bundle has two .encoded directives", span=item.span)
            self._encoded = item
        elif name in _SECTIONS:
            self._in_metadata = name == _SECTIONS[-1] and bool(rest) and not rest.lstrip().startswith(".text")
        elif _METADATA.fullmatch(name) and not self._in_metadata:
            message = f"{name} outside of a metadata section would put data into the program"
            raise ReadError(message, span=item.span, legal=(".section .tpc_metadata before it", BYTE))
        elif _DATA.fullmatch(name):
            message = f"{name} would put data into the program; castsim writes bundles and .byte"
            raise ReadError(message, span=item.span, legal=(BYTE,))

    def _between(self, item: Item, what: str) -> None:
        if self._halves:
            message = f"{what} is not allowed inside a compressed pair: addresses refer to pairs"
            raise ReadError(message, span=item.span)
        if self._encoded is not None:
            raise ReadError(f"{what} is not allowed between .encoded and its bundle", span=item.span)

    def _aligned(self, item: Item | None) -> None:
        size = self.encoding.unit_bytes
        if self.address % size:
            message = f"the bytes before this end at {self.address:#x}; bundles lie at multiples of {size}"
            raise ReadError(message, span=item.span if item is not None else None)


def _bytes(item: Directive, text: str) -> bytes:
    words = [word.strip() for word in text.split(",")]
    numbers = [int(word, 16 if "x" in word.lower() else 10) if _NUMBER.fullmatch(word) else -1 for word in words]
    if not all(0 <= number <= _LARGEST_BYTE for number in numbers):
        raise ReadError(".byte takes 8-bit numbers separated by commas", span=item.span, legal=("0 .. 255",))
    return bytes(numbers)


def _halves(item: Directive, text: str, encoding: Encoding) -> Iterator[CompressedLayout]:
    legal = {half.name: half for half in encoding.halves}
    if not legal:
        raise IllegalError(f"{encoding.dialect.name} has no compressed bundles", span=item.span)
    names = text.lower().split()
    count = encoding.unit_bytes // encoding.halves[0].layout.size_bytes
    if len(names) != count or not set(names) <= set(legal):
        raise ReadError(f".compressed takes {count} layouts, found '{text[:40]}'", span=item.span, legal=legal)
    yield from (legal[name] for name in names)


def _hexadecimal(item: Directive) -> bytes:
    _, _, text = item.text.partition(" ")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise ReadError("write the bytes of the bundle after .encoded as hexadecimal digits", span=item.span) from None


def _prescribed(data: bytes, bundle: Bundle, placed: PlacedBundle, encoding: Encoding) -> bytes:
    """Return the bytes that the text prescribes, if they mean its bundle."""
    try:
        decoded = decode_bundle(data, encoding)
    except UnknownBundle as reason:
        raise ReadError(f".encoded: {reason}", span=placed.bundle.span) from None
    if decoded.half is not placed.half:
        raise ReadError(".encoded: the layout of these bytes differs from that of the bundle", span=placed.bundle.span)
    # Compared by their encoding: pairs and quads may be named by their first register.
    if encode_bundle(decoded.bundle, encoding, decoded.half) != encode_bundle(bundle, encoding, placed.half):
        raise ReadError(".encoded: these bytes encode a different bundle", span=placed.bundle.span)
    return data


# ---------------------------------------------------------------------------------------------------------- labels


def resolved(placed: PlacedBundle, labels: dict[str, int], encoding: Encoding) -> Bundle:
    """Return the bundle with its labels replaced by numbers.

    Raises:
        IllegalError: a loop ends too near or too far.
    """
    spu = placed.bundle.spu
    if spu is None or not any(isinstance(operand, LabelUse) for operand in spu.operands):
        return placed.bundle
    operands = tuple(
        Immediate(_distance(spu, placed.address, labels[operand.name], encoding) & WORD_MASK)
        if isinstance(operand, LabelUse)
        else operand
        for operand in spu.operands
    )
    return replace(placed.bundle, spu=replace(spu, operands=operands))


def _distance(instruction: TpcInstruction, here: int, there: int, encoding: Encoding) -> int:
    if instruction.mnemonic == "jmpa":
        return there
    if instruction.mnemonic != LOOP:
        return there - here
    last = there - here - encoding.unit_bytes
    bits = sum(part.bits for part in encoding.loop.parts(Slot.SPU, "end_offset"))
    if last < encoding.unit_bytes or last >> bits:
        legal = f"{2 * encoding.unit_bytes} .. {((1 << bits) // encoding.unit_bytes) * encoding.unit_bytes}"
        message = f"the end of the loop is {there - here} bytes after it, out of range"
        raise IllegalError(message, span=instruction.span, legal=(legal,))
    return last


# Binaries to programs and listings: every byte comes back when the text is assembled.
#
# Jump targets and loop ends that lie at a bundle become labels, others stay numbers. Bytes that are not a bundle of
# the generation stand as `.byte`; bits without a meaning in a bundle, and choices that text cannot spell, as
# `.encoded` before it.


@dataclass(frozen=True, slots=True)
class ListedLine:
    """One bundle, or a stretch of bytes that is not a bundle (`text` is then a `.byte` directive).

    `labels` and `directives` precede it. `unread` is the reason why bytes are not a bundle, `leftover` the fields of a
    bundle that castsim would encode differently.
    """

    address: int
    code: bytes
    text: str
    labels: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    unread: str | None = None
    leftover: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether it is a bundle."""
        return self.unread is None

    @property
    def remark(self) -> str | None:
        """A remark about unknown parts; None if there are none."""
        if self.unread is not None:
            return f"unknown: {self.unread}"
        return f"unexpected encoding of {', '.join(self.leftover)}" if self.leftover else None


@dataclass(frozen=True, slots=True)
class Disassembly:
    """A binary as text; `end_labels` come after the last line."""

    lines: tuple[ListedLine, ...]
    end_labels: tuple[str, ...]

    def text(self) -> str:
        """Return the text that assembles to the same bytes."""
        texts: list[str] = []
        for line in self.lines:
            texts += [f"{label}:" for label in line.labels]
            texts += line.directives
            texts.append(line.text if line.remark is None else f"{line.text}  // {line.remark}")
        texts += [f"{label}:" for label in self.end_labels]
        return "".join(f"{entry}\n" for entry in texts)


@dataclass(frozen=True, slots=True)
class _AddressUnit:
    """The content at one step of program addresses: bundles, or bytes with the reason why they are not bundles."""

    address: int
    code: bytes
    bundles: tuple[Decoded, ...]
    reason: str | None


def disassemble(code: bytes, encoding: Encoding, file: str = "<binary>") -> Disassembly:
    """Decode a binary whose first bundle is at address 0.

    Raises:
        ReadError: its size is not a multiple of a bundle's.
    """
    size = encoding.unit_bytes
    if len(code) % size:
        whole = len(code) // size * size
        message = (
            f"{file}: {len(code)} bytes are not a whole number of bundles of {size} bytes; "
            f"{len(code) - whole} are left at {whole:#x}: the file is truncated, or does not start with a program"
        )
        raise ReadError(message, legal=(f"{whole} bytes", f"{whole + size} bytes"))
    units = [_unit(address, code[address : address + size], encoding) for address in range(0, len(code), size)]
    labels = {address: f"L_{address:x}" for address in sorted(_targets(units, len(code), encoding))}
    lines = [line for unit in units for line in _lines(unit, labels, encoding)]
    return Disassembly(tuple(lines), _labels_at(len(code), labels))


def _unit(address: int, code: bytes, encoding: Encoding) -> _AddressUnit:
    try:
        return _AddressUnit(address, code, tuple(_decoded(code, encoding)), None)
    except UnknownBundle as reason:
        return _AddressUnit(address, code, (), str(reason))


def _decoded(code: bytes, encoding: Encoding) -> list[Decoded]:
    if not encoding.halves:
        return [decode_bundle(code, encoding)]
    size = encoding.halves[0].layout.size_bytes
    parts = [code[start : start + size] for start in range(0, len(code), size)]
    compressed = [part[0] & 1 for part in parts]
    if not compressed[0]:
        return [decode_bundle(code, encoding)]
    if not all(compressed):
        raise UnknownBundle("a compressed bundle needs the second bundle of its pair")
    return [decode_bundle(part, encoding) for part in parts]


# ---------------------------------------------------------------------------------------------------------- labels


def _places(unit: _AddressUnit) -> list[tuple[int, Decoded]]:
    """Return the bundles of a unit with their addresses."""
    placed, address = [], unit.address
    for decoded in unit.bundles:
        placed.append((address, decoded))
        address += len(unit.code) // len(unit.bundles)
    return placed


def _targets(units: list[_AddressUnit], size: int, encoding: Encoding) -> set[int]:
    """Return the addresses that need a label."""
    targets = set()
    for unit in units:
        for address, decoded in _places(unit):
            target = _target(decoded.bundle.spu, address, encoding)
            if target is not None and 0 <= target <= size and target % encoding.unit_bytes == 0:
                targets.add(target)
    return targets


def _target(instruction: TpcInstruction | None, address: int, encoding: Encoding) -> int | None:
    """Return the target of a jump or loop end; None if a register gives it or there is none."""
    role = {LOOP: "end", "jmpr": "src_a", "jmpa": "src_a"}.get(instruction.mnemonic if instruction else "")
    if instruction is None or role is None:
        return None
    operand = instruction.operand(role)
    if not isinstance(operand, Immediate):
        return None
    if instruction.mnemonic == "jmpa":
        return operand.value
    if instruction.mnemonic == "jmpr":
        return address + operand.signed
    if operand.value < encoding.unit_bytes:
        return None  # a label so near would be refused
    return address + operand.value + encoding.unit_bytes


def _labels_at(address: int, labels: dict[int, str]) -> tuple[str, ...]:
    return (labels[address],) if address in labels else ()


def _with_labels(bundle: Bundle, address: int, labels: dict[int, str], encoding: Encoding) -> Bundle:
    target = _target(bundle.spu, address, encoding)
    if bundle.spu is None or target not in labels:
        return bundle
    role = "end" if bundle.spu.mnemonic == LOOP else "src_a"
    operands = tuple(
        LabelUse(labels[target]) if spec.role == role else operand
        for spec, operand in zip(bundle.spu.form.operands, bundle.spu.operands, strict=True)
    )
    return replace(bundle, spu=replace(bundle.spu, operands=operands))


# ----------------------------------------------------------------------------------------------------------- lines


def _lines(unit: _AddressUnit, labels: dict[int, str], encoding: Encoding) -> list[ListedLine]:
    here = _labels_at(unit.address, labels)
    if unit.reason is not None:
        text = f"{BYTE} {', '.join(f'{byte:#04x}' for byte in unit.code)}"
        return [ListedLine(unit.address, unit.code, text, here, unread=unit.reason)]
    lines = []
    names = [decoded.half.name for decoded in unit.bundles if decoded.half is not None]
    pair = (f"{COMPRESSED} {' '.join(names)}",) if names else ()
    for number, (address, decoded) in enumerate(_places(unit)):
        size = len(unit.code) // len(unit.bundles)
        code = unit.code[number * size : (number + 1) * size]
        directives = (*(pair if number == 0 else ()), *((f"{ENCODED} {code.hex()}",) if decoded.leftover else ()))
        text = print_bundle(_with_labels(decoded.bundle, address, labels, encoding))
        labels_here = here if number == 0 else ()
        lines.append(ListedLine(address, code, text, labels_here, directives, leftover=tuple(decoded.leftover)))
    return lines


# Object files: the `.text` section of an ELF file, or the file itself if it is not an ELF file.
#
# Only what is needed is read: header, section headers, section names; 32 and 64 bits, little endian. Source: System V
# ABI, chapters on object files.

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
    """Return the bytes of a program: those of `.text` if the file is ELF, otherwise all.

    `machines` are the machine numbers to accept.

    Raises:
        ReadError: an ELF file is damaged, big-endian, for another machine, or lacks `.text`.
    """
    if not data.startswith(ELF_MAGIC):
        return data
    try:
        return _text_section(data, machines, file)
    except struct.error:
        raise ReadError(f"{file}: the ELF file is truncated: a header is outside its {len(data)} bytes") from None


def _text_section(data: bytes, machines: tuple[int, ...], file: str) -> bytes:
    if len(data) < 6 or data[4] not in _SHAPES:
        raise ReadError(f"{file}: unknown ELF class", legal=("1 (32 bits)", "2 (64 bits)"))
    if data[5] != _LITTLE_ENDIAN:
        raise ReadError(f"{file}: the ELF file is big-endian; TPC programs are little-endian")
    shape = _SHAPES[data[4]]
    fields = struct.unpack_from(shape.header, data)
    machine, table, (size, count, names) = fields[1], fields[5], fields[10:]
    if machine not in machines:
        message = f"{file}: ELF machine {machine} is not a TPC; --machine accepts another number"
        raise ReadError(message, legal=map(str, machines))
    if count == 0 or names >= count:
        raise ReadError(f"{file}: the ELF file has no section {_SECTION}: it has no section names")
    if size < struct.calcsize(shape.section) or table + size * count > len(data):
        raise ReadError(f"{file}: the ELF file is truncated: its section headers are outside its {len(data)} bytes")
    sections = [struct.unpack_from(shape.section, data, table + number * size) for number in range(count)]
    strings = _content(sections[names], data, file)
    matches = [section for section in sections if _name(strings, section[0]) == _SECTION]
    if not matches:
        shown = [_name(strings, section[0])[:40] for section in sections]
        raise ReadError(f"{file}: the ELF file has no section {_SECTION}", legal=[name for name in shown if name])
    return _content(matches[0], data, file)


def _content(section: tuple[int, ...], data: bytes, file: str) -> bytes:
    kind, offset, size = section[1], section[4], section[5]
    if kind == _NO_BITS:
        return b""
    if offset + size > len(data):
        raise ReadError(f"{file}: the ELF file is truncated: a section ends at {offset + size} of {len(data)} bytes")
    return data[offset : offset + size]


def _name(strings: bytes, start: int) -> str:
    return strings[start : strings.find(b"\0", start)].decode("utf-8", "replace")
