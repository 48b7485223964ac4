"""The text of a micro program while it is written: values and their types, constants, regions, places of statements."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

INDEX = "index"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of the text: its name with the percent sign, and its type as written there."""

    name: str
    kind: str

    @property
    def element(self) -> str:
        """Element type of a register or of a pointer."""
        inner = self.kind[self.kind.index("<") + 1 : -1]
        return inner.partition("x")[2] if self.kind.startswith("!pto.vreg") else inner.rpartition(", ")[0]

    @property
    def bits(self) -> int:
        """Width of a lane; of a mask the one that its type names."""
        if self.kind.startswith("!pto.mask"):
            return int(self.kind[len("!pto.mask<b") : -1])
        return bits_of(self.element)


Number = int | bool | Value
"""What a scalar expression comes to: a number that is known, or a value of type index, i1 or a float's."""

_WIDTHS = {"f32": 32, "f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "!pto.f4E2M1x2": 8}


def bits_of(element: str) -> int:
    """Return the width of an element type."""
    return _WIDTHS[element] if element in _WIDTHS else int(element.lstrip("ui"))


def register(element: str) -> str:
    """Return the type of a register of this element."""
    return f"!pto.vreg<{2048 // bits_of(element)}x{element}>"


def mask(bits: int) -> str:
    """Return the type of a mask."""
    return f"!pto.mask<b{min(bits, 32)}>"


def pointer(element: str, space: str) -> str:
    """Return the type of a pointer into `ub` or `gm`."""
    return f"!pto.ptr<{element}, {space}>"


Place = str | None
"""`FILE:LINE` of the Python source, where it is known."""


@dataclass(slots=True)
class Region:
    """Lines of a region, each with its place, and the values of pure operations that are known in it."""

    lines: list[tuple[str, Place]] = field(default_factory=list)
    known: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True)
class Text:
    """The body of a function: what is put goes into the innermost region; constants stand at its head."""

    place: Place = None
    near: Place = None
    regions: list[Region] = field(default_factory=lambda: [Region()])
    constants: dict[tuple[str, str], Value] = field(default_factory=dict)
    count: int = 0

    def at(self, place: object) -> None:
        """Go on at a place; what has none of its own is near the last that had one."""
        self.near, self.place = self.place or self.near, None if place is None else str(place)

    @property
    def where(self) -> Place:
        """The place, as messages say it."""
        return self.place or (self.near and f"near {self.near}")

    def name(self, letter: str = "v") -> str:
        """Return a name that is not in use."""
        self.count += 1
        return f"%{letter}{self.count}"

    def line(self, text: str) -> None:
        """Put a line."""
        self.regions[-1].lines.append((text, self.place))

    def put(self, text: str, *kinds: str) -> tuple[Value, ...]:
        """Put an operation with results of these types."""
        results = tuple(Value(self.name(), kind) for kind in kinds)
        self.line(f"{', '.join(each.name for each in results)} = {text}")
        return results

    def one(self, text: str, kind: str) -> Value:
        """Put an operation with one result."""
        return self.put(text, kind)[0]

    def once(self, text: str, kind: str) -> Value:
        """Return the result of a pure operation, which is put where none of the regions around has it."""
        for region in self.regions:
            if text in region.known:
                return region.known[text]
        self.regions[-1].known[text] = found = self.one(text, kind)
        return found

    def constant(self, value: float, kind: str) -> Value:
        """Return a constant; floats are written by their bits."""
        if kind == "f32":
            word = f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X}"
        elif kind in ("f16", "bf16"):
            whole = struct.pack("<e", value) if kind == "f16" else _bf16(value)
            word = f"0x{struct.unpack('<H', whole)[0]:04X}"
        else:
            word = str(value).lower() if kind == "i1" else str(int(value))
        name = f"%c{'m' if word[0] == '-' else ''}{word.lstrip('-')}_{kind}"
        return self.constants.setdefault((word, kind), Value(name, kind))

    def named(self, value: Number) -> Value:
        """Return a number as a value."""
        if isinstance(value, Value):
            return value
        return self.constant(value, "i1" if isinstance(value, bool) else INDEX)

    @contextmanager
    def region(self) -> Iterator[Region]:
        """Put what follows into a region of its own, which is handed back."""
        self.regions.append(Region())
        try:
            yield self.regions[-1]
        finally:
            self.regions.pop()

    def enclose(self, head: str, region: Region, end: str = "}") -> None:
        """Put a region between a head and an end."""
        self.line(head)
        self.regions[-1].lines += [(f"  {line}", place) for line, place in region.lines]
        self.line(end)

    def choose(self, head: str, yes: Region, no: Region) -> None:
        """Put two regions, of which the head chooses one; the second is left out if it is empty."""
        self.enclose(head, yes, "} else {" if no.lines else "}")
        if no.lines:
            self.regions[-1].lines.pop()
            self.enclose("} else {", no)

    def heads(self) -> list[str]:
        """Return the lines of the constants."""
        return [f"{value.name} = arith.constant {word} : {kind}" for (word, kind), value in self.constants.items()]


def _bf16(value: float) -> bytes:
    whole = struct.unpack("<I", struct.pack("<f", value))[0]
    return struct.pack("<H", (whole + 0x7FFF + (whole >> 16 & 1)) >> 16 & 0xFFFF)


def names(values: Sequence[Value]) -> str:
    """Return values as operands."""
    return ", ".join(each.name for each in values)


def kinds(values: Sequence[Value]) -> str:
    """Return the types of values."""
    return ", ".join(each.kind for each in values)
