"""Binaries to programs and listings: every byte comes back when the text is assembled.

Jump targets and loop ends that lie at a bundle become labels, others stay numbers. Bytes that are not a bundle of the
generation stand as `.byte`; bits without a meaning in a bundle, and choices that text cannot spell, as `.encoded`
before it (directives: `castsim.isa.tpc.encoding.assembler`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.isa.errors import ReadError
from castsim.isa.tpc.encoding.assembler import BYTE, COMPRESSED, ENCODED
from castsim.isa.tpc.encoding.reader import Decoded, UnknownBundle, decode_bundle
from castsim.isa.tpc.encoding.tables import LOOP, Encoding
from castsim.isa.tpc.printer import print_bundle
from castsim.isa.tpc.program import Bundle, Immediate, LabelUse, TpcInstruction


@dataclass(frozen=True, slots=True)
class Line:
    """One bundle, or a stretch of bytes that is not a bundle (`text` is then a `.byte` directive).

    `labels` stand before it; `directives` too. `unread` says why bytes are not a bundle, `leftover` which fields of a
    bundle are encoded otherwise than this project would.
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
        """A remark on what is unknown about it, None if nothing is."""
        if self.unread is not None:
            return f"unknown: {self.unread}"
        return f"encoded otherwise than expected in {', '.join(self.leftover)}" if self.leftover else None


@dataclass(frozen=True, slots=True)
class Disassembly:
    """A binary as text; `end_labels` stand behind the last line."""

    lines: tuple[Line, ...]
    end_labels: tuple[str, ...]

    def text(self) -> str:
        """Return the text that assembles to the same bytes."""
        found: list[str] = []
        for line in self.lines:
            found += [f"{label}:" for label in line.labels]
            found += line.directives
            found.append(line.text if line.remark is None else f"{line.text}  // {line.remark}")
        found += [f"{label}:" for label in self.end_labels]
        return "".join(f"{one}\n" for one in found)


@dataclass(frozen=True, slots=True)
class _Unit:
    """The content at one step of program addresses: bundles, or bytes with the reason why they are none."""

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
            f"{len(code) - whole} are left at {whole:#x}: cut off, or not the beginning of a program"
        )
        raise ReadError(message, legal=(f"{whole} bytes", f"{whole + size} bytes"))
    units = [_unit(address, code[address : address + size], encoding) for address in range(0, len(code), size)]
    labels = {address: f"L_{address:x}" for address in sorted(_targets(units, len(code), encoding))}
    lines = [line for unit in units for line in _lines(unit, labels, encoding)]
    return Disassembly(tuple(lines), _labels_at(len(code), labels))


def _unit(address: int, code: bytes, encoding: Encoding) -> _Unit:
    try:
        return _Unit(address, code, tuple(_decoded(code, encoding)), None)
    except UnknownBundle as reason:
        return _Unit(address, code, (), str(reason))


def _decoded(code: bytes, encoding: Encoding) -> list[Decoded]:
    if not encoding.halves:
        return [decode_bundle(code, encoding)]
    size = encoding.halves[0].layout.size_bytes
    parts = [code[start : start + size] for start in range(0, len(code), size)]
    compressed = [part[0] & 1 for part in parts]
    if not compressed[0]:
        return [decode_bundle(code, encoding)]
    if not all(compressed):
        raise UnknownBundle("a compressed bundle without the other one of its pair")
    return [decode_bundle(part, encoding) for part in parts]


# ---------------------------------------------------------------------------------------------------------- labels


def _places(unit: _Unit) -> list[tuple[int, Decoded]]:
    """Return the bundles of a unit with their addresses."""
    found, address = [], unit.address
    for decoded in unit.bundles:
        found.append((address, decoded))
        address += len(unit.code) // len(unit.bundles)
    return found


def _targets(units: list[_Unit], size: int, encoding: Encoding) -> set[int]:
    """Return the addresses that deserve a label."""
    found = set()
    for unit in units:
        for address, decoded in _places(unit):
            target = _target(decoded.bundle.spu, address, encoding)
            if target is not None and 0 <= target <= size and target % encoding.unit_bytes == 0:
                found.add(target)
    return found


def _target(instruction: TpcInstruction | None, address: int, encoding: Encoding) -> int | None:
    """Return the target of a jump or loop end, None if a register says so or there is none."""
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


def _lines(unit: _Unit, labels: dict[int, str], encoding: Encoding) -> list[Line]:
    here = _labels_at(unit.address, labels)
    if unit.reason is not None:
        text = f"{BYTE} {', '.join(f'{byte:#04x}' for byte in unit.code)}"
        return [Line(unit.address, unit.code, text, here, unread=unit.reason)]
    found = []
    names = [decoded.half.name for decoded in unit.bundles if decoded.half is not None]
    pair = (f"{COMPRESSED} {' '.join(names)}",) if names else ()
    for number, (address, decoded) in enumerate(_places(unit)):
        size = len(unit.code) // len(unit.bundles)
        code = unit.code[number * size : (number + 1) * size]
        directives = (*(pair if number == 0 else ()), *((f"{ENCODED} {code.hex()}",) if decoded.leftover else ()))
        text = print_bundle(_with_labels(decoded.bundle, address, labels, encoding))
        labels_here = here if number == 0 else ()
        found.append(Line(address, code, text, labels_here, directives, leftover=tuple(decoded.leftover)))
    return found
