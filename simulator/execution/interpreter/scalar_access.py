"""The scalar unit's accesses to memory, as the walk meets them: what is read decides paths and addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from castsim.execution.interpreter.dependence import Loops, Scalar
from castsim.execution.interpreter.labels import Label
from castsim.execution.interpreter.lowerer import LoweredInstruction, Lowerer
from castsim.execution.interpreter.memory import Memory, Origin
from castsim.execution.interpreter.places import ArgumentUse, Pointer, TileHandle
from castsim.execution.interpreter.scalar_floats import bits_of, from_bits
from castsim.execution.tiles import Element, Tile
from castsim.execution.tree import Access, Node
from castsim.isa.errors import IllegalError, Span, TileError
from castsim.isa.pto import program as pto
from castsim.isa.warning_text import WarningKind, WarningText

_SHOWN = 4
"""Elements that a warning lists."""


@dataclass(frozen=True, slots=True)
class ReadElement:
    """An element that a program has read: what reports call it, where it came from, its value."""

    text: str
    name: str
    span: Span
    origin: Origin
    value: int | float


@dataclass(slots=True)
class Accesses:
    """All accesses of one walk. `active` tells that the program reads elements at all; `reads` are in program order."""

    lowerer: Lowerer
    loops: Loops
    memory: Memory
    arguments: Mapping[str, ArgumentUse]
    active: bool
    reads: list[ReadElement] = field(default_factory=list)
    decided: dict[int, None] = field(default_factory=dict)
    """Numbers of the reads on which the path, an address or an extent rests."""
    _sampling: int = 0

    def emitted(self, lowered: Node, accesses: tuple[Access, ...], *, by_scalar_unit: bool) -> None:
        """Take in an instruction of the walk."""
        if not self.active:
            return
        if self.memory.settle is not None or not by_scalar_unit:
            self.memory.note(accesses)
        if not self._sampling and self.memory.settle is not None:
            self.memory.pending.append(lowered)

    def sampled(self, walk: Callable[[], list[Node]]) -> list[Node]:
        """Walk a loop of which only some trips are walked; it reads nothing."""
        self._sampling += 1
        try:
            nodes = walk()
        finally:
            self._sampling -= 1
        if self.active and not self._sampling and self.memory.settle is not None:
            self.memory.pending += nodes
        return nodes

    def unknown(self, node: pto.ForeignOperation, name: str) -> Scalar:
        """Return a scalar that an opaque operation gives: it is taken for 0."""
        number = len(self.reads)
        self.reads.append(ReadElement(f"%{name} of {node.mnemonic}", name, node.span, Origin.OPAQUE, 0))
        return Scalar(0, reads=frozenset((number,)))

    def decide(self, scalar: Scalar) -> None:
        """Note that the path, an address or an extent rests on a value."""
        if scalar.reads:
            self.decided |= dict.fromkeys(sorted(scalar.reads))

    def constant(self, scalar: Scalar) -> int | float:
        """Return a value that no loop of which only some trips are walked may change."""
        if not scalar.constant:
            raise self.loops.refusal(scalar)
        return scalar.value

    def pointer(self, node: pto.AddPointer, base: Pointer, offset: Scalar) -> Pointer:
        """Return a pointer some elements further on."""
        self.decide(offset)
        return replace(base, offset=base.offset + int(self.constant(offset)))

    def access(
        self, node: pto.ScalarAccess, base: Pointer | TileHandle, index: Scalar, value: Scalar | None
    ) -> tuple[Label, LoweredInstruction, Scalar | None]:
        """Return what reports call an access, what it issues, and the value of a read.

        Raises:
            ReadError: a value that the path needs and that nothing gives.
            TileError: an element outside of its tensor, of the tile or of the buffer.
            IllegalError: a pointer into the buffer.
        """
        self.decide(index)
        if index.periods is not None or (node.reads and not index.constant):
            raise self.loops.refusal(index)
        label = Label(f"{node.mnemonic} {node.type.name}", node.mnemonic)
        if isinstance(node.base_type, pto.PointerType) and node.base_type.space == "ub":
            raise IllegalError(
                f"pto.{node.mnemonic} reaches global memory beside tiles, whose elements are for tgetval and tsetval",
                span=node.span, legal=("!pto.ptr<..., gm>", "a function of vector instructions"),
            )  # fmt: skip
        if isinstance(base, Pointer):
            element = self._of_argument(node, base, index, value)
        else:
            element = self._of_tile(node, base.tile, int(index.value), value)
        lowered = self.lowerer.element(element)
        return label, lowered, self._read(node, element) if node.reads else None

    def closing_warnings(self) -> list[WarningText]:
        """Return a warning per place where elements had no value and decided something."""
        found: dict[Span, list[str]] = {}
        for number in self.decided:
            read = self.reads[number]
            if read.origin in (Origin.DEFAULT, Origin.OPAQUE):
                found.setdefault(read.span, []).append(read.text)
        return [WarningText(WarningKind.DEFAULT_READ, _taken_for_zero(texts), span) for span, texts in found.items()]

    def check_views(self) -> None:
        """Refuse elements behind the end of the views of their argument, unless its input is longer.

        Raises:
            TileError: one is.
        """
        for name, use in self.arguments.items():
            if name not in self.memory.whole and use.touched > use.viewed > 0:
                raise TileError(
                    f"element {use.touched - 1} of %{name}, whose views have {use.viewed}: outside the tensor",
                    span=use.touched_at,
                    legal=(f"--in {name}=FILE.npy of more elements",),
                )

    def _of_argument(self, node: pto.ScalarAccess, base: Pointer, index: Scalar, value: Scalar | None) -> Element:
        place, size = base.offset + int(index.value), base.format.storage_bits // 8
        use = self.arguments[base.name]
        self.memory.check(base.name, use, place)
        use.see_element(place, node.span)
        code = b""
        if value is not None:
            bits = bits_of(self.constant(value), node.type.name)
            self.memory.store(base.name, use, place, None if self.loops else bits)
            use.stored = True
            code = bits.to_bytes(size, "little")
        elif not use.stored and base.name not in self.memory.elements:
            use.needs_input = True
        return Element(node.mnemonic, base.name, place * size, size, code, node.span)

    def _of_tile(self, node: pto.ScalarAccess, tile: Tile, index: int, value: Scalar | None) -> Element:
        size = tile.element_bits // 8
        code = b"" if value is None else bits_of(self.constant(value), node.type.name).to_bytes(size, "little")
        return Element(node.mnemonic, tile, tile.address + index * size, size, code, node.span)

    def _read(self, node: pto.ScalarAccess, element: Element) -> Scalar:
        """Read an element and remember it."""
        if isinstance(element.place, str):
            name, index = element.place, element.address // element.size
            use = self.arguments[name]
            code, origin = self.memory.load(name, use, index, self.arguments)
        else:
            name, index = element.place.name, (element.address - element.place.address) // element.size
            code, origin = self.memory.tile(self.lowerer.buffer()[0], element.address, element.size, self.arguments)
        value = from_bits(code, node.type.name)
        number = len(self.reads)
        self.reads.append(ReadElement(f"{node.mnemonic} %{name}[{index}]", name, node.span, origin, value))
        return Scalar(value, reads=frozenset((number,)))


def _taken_for_zero(texts: list[str]) -> str:
    """Say which elements nothing gives; of many, the first."""
    names = list(dict.fromkeys(texts))
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{shown}: taken for 0, as nothing gives a value; the path depends on it"


def deciding(accesses: Accesses) -> tuple[ReadElement, ...]:
    """Return the reads on which the path, an address or an extent rests, in program order."""
    return tuple(accesses.reads[number] for number in sorted(accesses.decided))
