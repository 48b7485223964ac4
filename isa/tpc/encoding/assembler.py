"""Programs to binaries: addresses, labels, and the directives that the disassembler writes.

`.byte 0x.., ..` stands for bytes that are not a bundle. `.compressed FIRST SECOND` stores the next two bundles in half
the room each, in the layouts it names. `.encoded HEX` stores the next bundle as these bytes, which must mean it: so
text keeps a choice that it cannot spell, such as a long immediate where a short one would do. Other directives have
no meaning here; those that would put data into the program are refused. Source of addresses: docs/reference/tpc.md
section 7.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.tpc.encoding.reader import UnknownBundle, decode_bundle
from castsim.isa.tpc.encoding.tables import LOOP, CompressedLayout, Encoding
from castsim.isa.tpc.encoding.writer import assumed_items, encode_bundle
from castsim.isa.tpc.program import (
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

BYTE, COMPRESSED, ENCODED = ".byte", ".compressed", ".encoded"
_DATA = re.compile(
    r"\.(word|short|long|quad|int|hword|octa|[248]byte|ascii|asciz|string|space|zero|fill|skip|org|(b|p2)?align|float"
    r"|double|incbin)"
)
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
    """A binary; `bundles` counts those in it, `assumed` names what stands at positions that no source states."""

    code: bytes
    bundles: int
    assumed: tuple[str, ...]


def assemble(program: TpcProgram, encoding: Encoding) -> AssembledBinary:
    """Encode a whole program, first bundle at address 0.

    Raises:
        ReadError: a malformed or misplaced directive.
        IllegalError: an instruction, bundle or distance that has no encoding.
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
            raise ReadError("the bundles that this directive speaks of are missing", span=pending.span)
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
                raise ReadError("two .encoded directives for one bundle", span=item.span)
            self._encoded = item
        elif _DATA.fullmatch(name):
            message = f"{name} would put data into the program; castsim writes bundles and .byte"
            raise ReadError(message, span=item.span, legal=(BYTE,))

    def _between(self, item: Item, what: str) -> None:
        if self._halves:
            message = f"{what} is not allowed inside a compressed pair: addresses are those of pairs"
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
        raise ReadError(".byte takes numbers of 8 bits, separated by commas", span=item.span, legal=("0 .. 255",))
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
        raise ReadError(".encoded takes the bytes of the bundle as hexadecimal digits", span=item.span) from None


def _prescribed(data: bytes, bundle: Bundle, placed: PlacedBundle, encoding: Encoding) -> bytes:
    """Return the bytes that the text prescribes, if they mean its bundle."""
    try:
        found = decode_bundle(data, encoding)
    except UnknownBundle as reason:
        raise ReadError(f".encoded: {reason}", span=placed.bundle.span) from None
    if found.half is not placed.half:
        raise ReadError(".encoded: the bytes have another layout than the bundle", span=placed.bundle.span)
    # Compared by their encoding: pairs and quads may be named by their first register.
    if encode_bundle(found.bundle, encoding, found.half) != encode_bundle(bundle, encoding, placed.half):
        raise ReadError(".encoded: the bytes mean another bundle", span=placed.bundle.span)
    return data


# ---------------------------------------------------------------------------------------------------------- labels


def resolved(placed: PlacedBundle, labels: dict[str, int], encoding: Encoding) -> Bundle:
    """Return the bundle with numbers for its labels.

    Raises:
        IllegalError: a loop that ends too near or too far.
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
