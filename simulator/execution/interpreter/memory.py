"""Memory as the scalar unit reads it during the walk of a program.

The value of an element comes from the inputs, or from earlier instructions of the run, which are computed up to the
read. A walk without values replaces unknown elements by 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from castsim.execution.input_data import ArgumentUse, check_elements
from castsim.execution.interpreter.arguments import ArgumentPointer, TileHandle
from castsim.execution.interpreter.lowerer import Label, LoweredInstruction, Lowerer
from castsim.execution.interpreter.rerolling import DependentScalar, LoopDependence
from castsim.execution.interpreter.scalar_values import bits_of, from_bits
from castsim.execution.run_limits import MAX_ELEMENTS
from castsim.execution.tree import Access, GlobalSpace, Node, ScalarElement, Tile
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError, Span, TileError, WarningKind, WarningText
from castsim.isa.pto import program as pto

Bytes = NDArray[np.uint8]

Settle = Callable[[list[Node], Bytes, Mapping[str, Bytes]], None]
"""A function that applies instructions to the buffer and global memory, in place."""

Given = Callable[[str], Bytes | None]
"""Function that returns the input of an argument as bytes, None if there is none, or not yet."""


class Origin(StrEnum):
    """The origin of a read element."""

    GIVEN = "input"
    ARGUMENT = "argument"
    COMPUTED = "computed"
    DEFAULT = "default"
    OPAQUE = "opaque"


def _no_input(name: str) -> Bytes | None:
    del name
    return None


@dataclass(slots=True)
class Memory:
    """The contents of arguments and buffer during one walk.

    Without `settle` no values are computed. `elements` are given single elements (`--arg NAME[i]=VALUE`),
    `whole` the arguments whose inputs have a size, `expected` those whose inputs are created once their size is known:
    until then they count as 0. `capacity` is that of the buffer in bytes, `most` the maximum number of elements of an
    argument, because a computed index may be any number.
    """

    given: Given = _no_input
    elements: Mapping[str, Mapping[int, int | float]] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    expected: frozenset[str] = frozenset()
    settle: Settle | None = None
    unknown: Callable[[str, int, int], str | None] = lambda *_: None
    """Function that returns the opaque operation that makes bytes (address space, start, count) unknown, None if known.
    """
    capacity: int = 0
    most: int = MAX_ELEMENTS
    pending: list[Node] = field(default_factory=list)
    """The nodes walked since the buffer and the arguments were last computed."""
    _unsettled: set[str] = field(default_factory=set)
    """The address spaces with pending writes."""
    _written: set[str] = field(default_factory=set)
    """Arguments that the run has written."""
    _arguments: dict[str, Bytes] = field(default_factory=dict)
    _stored: dict[tuple[str, int], int] = field(default_factory=dict)
    """Codes of elements that the scalar unit has stored since anything else wrote their argument, if none are computed.
    """
    _buffer: Bytes | None = None

    def note(self, accesses: tuple[Access, ...]) -> None:
        """Record the bytes that an instruction writes."""
        for access in accesses:
            if access.write and self.settle is not None:
                self._unsettled.add(access.space)
            elif access.write and isinstance(access.space, GlobalSpace):
                self.overwrite(access.space.argument)

    def load(self, name: str, use: ArgumentUse, index: int, uses: Mapping[str, ArgumentUse]) -> tuple[int, Origin]:
        """Return the code of an element of an argument.

        Raises:
            ReadError: its value is needed and has no input.
            TileError: the element is outside the argument.
        """
        self.check(name, use, index)
        if self.settle is None:
            return self._guess(name, use, index)
        is_known = name in self.elements or name in self.expected or self._is_written(name)
        if not is_known and self.given(name) is None:
            raise ReadError(
                f"the program reads %{name} before storing to it; no input was given",
                legal=(f"--in {name}=FILE.npy|random:SEED|zeros", f"--arg {name}[{index}]=VALUE"),
            )
        self._settle(GlobalSpace.of(name), uses)
        memory, size = self._bytes(name, use), use.format.storage_bits // 8
        self._refuse_unknown(GlobalSpace.of(name), index * size, size, f"element {index} of %{name}")
        origin = Origin.COMPUTED if name in self._written else Origin.GIVEN
        if name not in self._written and index in self.elements.get(name, {}):
            origin = Origin.ARGUMENT
        return int.from_bytes(memory[index * size : (index + 1) * size].tobytes(), "little"), origin

    def tile(self, space: str, address: int, size: int, uses: Mapping[str, ArgumentUse]) -> tuple[int, Origin]:
        """Return the code of an element of the buffer."""
        if self.settle is None:
            return 0, Origin.DEFAULT
        self._settle(space, uses)
        self._refuse_unknown(space, address, size, "the element")
        return int.from_bytes(self._bytes_of_buffer()[address : address + size].tobytes(), "little"), Origin.COMPUTED

    def store(self, name: str, use: ArgumentUse, index: int, code: int | None) -> None:
        """Apply a store of the scalar unit; without `code`, a store of no single element."""
        self.check(name, use, index)
        if self.settle is None:
            if code is None:
                self.overwrite(name)
            else:
                self._stored[name, index] = code

    def overwrite(self, name: str) -> None:
        """Record a write to an argument whose values are not computed."""
        self._written.add(name)
        self._stored = {key: code for key, code in self._stored.items() if key[0] != name}

    def check(self, name: str, use: ArgumentUse, index: int) -> None:
        """Reject an element outside an argument of known size.

        Raises:
            TileError: the element is outside.
        """
        size = None
        if name in self.whole:
            content = self.given(name)
            size = None if content is None else content.size * 8 // use.format.storage_bits
        if index < 0 or (size is not None and index >= size):
            has = "" if size is None else f", which has {size}"
            raise TileError(f"element {index} of %{name}{has}: outside the tensor")

    def widen(self, uses: Mapping[str, ArgumentUse]) -> None:
        """Extend partially used arguments to the length of their inputs."""
        for name, use in uses.items():
            if name in self.whole and use.is_open:
                content = self.given(name)
                if content is not None:
                    use.elements = max(use.elements, content.size * 8 // use.format.storage_bits)

    def _refuse_unknown(self, space: str, start: int, size: int, what: str) -> None:
        """Refuse an element that is not computed.

        Raises:
            IllegalError: it rests on an opaque operation.
        """
        by = self.unknown(space, start, size)
        if by is not None:
            raise IllegalError(f"{what} is unknown: it depends on pto.{by}, which is opaque", legal=("--timing-only",))

    def _is_written(self, name: str) -> bool:
        return name in self._written or GlobalSpace.of(name) in self._unsettled

    def _guess(self, name: str, use: ArgumentUse, index: int) -> tuple[int, Origin]:
        """Return the description of an element without computing it."""
        stored = self._stored.get((name, index))
        if stored is not None:
            return stored, Origin.COMPUTED
        if name in self._written:
            return 0, Origin.DEFAULT
        element = self.elements.get(name, {}).get(index)
        if element is not None:
            return bits_of(element, use.format.name), Origin.ARGUMENT
        content, size = self.given(name), use.format.storage_bits // 8
        if content is None:
            return 0, Origin.DEFAULT
        return int.from_bytes(content[index * size : (index + 1) * size].tobytes(), "little"), Origin.GIVEN

    def _settle(self, space: str, uses: Mapping[str, ArgumentUse]) -> None:
        """Compute the pending nodes if any of them may have written the element."""
        if space not in self._unsettled or self.settle is None:
            return
        for name, use in uses.items():
            self._bytes(name, use)
        self.settle(self.pending, self._bytes_of_buffer(), self._arguments)
        self._written |= {name for name in uses if GlobalSpace.of(name) in self._unsettled}
        self.pending = []
        self._unsettled.clear()

    def _bytes_of_buffer(self) -> Bytes:
        if self._buffer is None:
            self._buffer = np.zeros(self.capacity, np.uint8)
        return self._buffer

    def _bytes(self, name: str, use: ArgumentUse) -> Bytes:
        """Return the bytes of an argument, at least as many as it is known to use."""
        memory = self._arguments.get(name)
        if memory is None:
            content = self.given(name)
            memory = np.zeros(0, np.uint8) if content is None else content.copy()
        need = -(-use.elements * (use.format.bits if use.format.bits < 8 else use.format.storage_bits) // 8)
        fresh = name not in self._arguments
        if memory.size < need:
            check_elements({name: use}, self.most)
            memory = np.concatenate([memory, np.zeros(need - memory.size, np.uint8)])
            fresh = fresh or bool(self.elements.get(name))
        if fresh:
            self._arguments[name] = memory
            if name not in self._written:
                put_elements(memory, use, self.elements.get(name, {}))
        self._arguments[name] = memory
        return memory


def put_elements(memory: Bytes, use: ArgumentUse, elements: Mapping[int, int | float]) -> None:
    """Write single elements into the bytes of an argument; elements beyond its end are ignored."""
    size = use.format.storage_bits // 8
    for index, value in elements.items():
        code = bits_of(value, use.format.name).to_bytes(size, "little")
        if (index + 1) * size <= memory.size:
            memory[index * size : (index + 1) * size] = np.frombuffer(code, np.uint8)


# The scalar unit's accesses to memory, as the walk meets them: what is read decides paths and addresses.

_SHOWN = 4
"""Elements that a warning lists."""


@dataclass(frozen=True, slots=True)
class ReadElement:
    """An element that a program has read: its report label, origin and value."""

    text: str
    name: str
    span: Span
    origin: Origin
    value: int | float


@dataclass(slots=True)
class Accesses:
    """All accesses of one walk. `active` tells whether the program reads elements; `reads` are in program order."""

    lowerer: Lowerer
    loops: LoopDependence
    memory: Memory
    arguments: Mapping[str, ArgumentUse]
    active: bool
    reads: list[ReadElement] = field(default_factory=list)
    decided: dict[int, None] = field(default_factory=dict)
    """Numbers of the reads that decide the path, an address or an extent."""
    _sampling: int = 0

    def emitted(self, lowered: Node, accesses: tuple[Access, ...], *, by_scalar_unit: bool) -> None:
        """Process an instruction of the walk."""
        if not self.active:
            return
        if self.memory.settle is not None or not by_scalar_unit:
            self.memory.note(accesses)
        if not self._sampling and self.memory.settle is not None:
            self.memory.pending.append(lowered)

    def sampled(self, walk: Callable[[], list[Node]]) -> list[Node]:
        """Walk a loop of which only some trips are walked; such a loop reads no elements."""
        self._sampling += 1
        try:
            nodes = walk()
        finally:
            self._sampling -= 1
        if self.active and not self._sampling and self.memory.settle is not None:
            self.memory.pending += nodes
        return nodes

    def unknown(self, node: pto.ForeignOperation, name: str) -> DependentScalar:
        """Return a scalar result of an opaque operation, which counts as 0."""
        number = len(self.reads)
        self.reads.append(ReadElement(f"%{name} of {node.mnemonic}", name, node.span, Origin.OPAQUE, 0))
        return DependentScalar(0, reads=frozenset((number,)))

    def decide(self, scalar: DependentScalar) -> None:
        """Record that a value decides the path, an address or an extent."""
        if scalar.reads:
            self.decided |= dict.fromkeys(sorted(scalar.reads))

    def constant(self, scalar: DependentScalar) -> int | float:
        """Return a value that must not depend on a loop of which only some trips are walked."""
        if not scalar.constant:
            raise self.loops.refusal(scalar)
        return scalar.value

    def pointer(self, node: pto.AddPointer, base: ArgumentPointer, offset: DependentScalar) -> ArgumentPointer:
        """Return a pointer advanced by some elements."""
        self.decide(offset)
        return replace(base, offset=base.offset + int(self.constant(offset)))

    def access(
        self,
        node: pto.ScalarAccess,
        base: ArgumentPointer | TileHandle,
        index: DependentScalar,
        value: DependentScalar | None,
    ) -> tuple[Label, LoweredInstruction, DependentScalar | None]:
        """Return the report label of an access, its instructions, and the value of a read.

        Raises:
            ReadError: a value that the path needs has no source.
            TileError: an element is outside its tensor, tile or buffer.
            IllegalError: a pointer points into the buffer.
        """
        self.decide(index)
        if index.periods is not None or (node.reads and not index.constant):
            raise self.loops.refusal(index)
        label = Label(f"{node.mnemonic} {node.type.name}", node.mnemonic)
        if isinstance(node.base_type, pto.PointerType) and node.base_type.space == "ub":
            raise IllegalError(
                f"pto.{node.mnemonic} accesses global memory in a tile program; use tgetval and tsetval on tiles",
                span=node.span, legal=("!pto.ptr<..., gm>", "a function of vector instructions"),
            )  # fmt: skip
        if isinstance(base, ArgumentPointer):
            element = self._of_argument(node, base, index, value)
        else:
            element = self._of_tile(node, base.tile, int(index.value), value)
        lowered = self.lowerer.element(element)
        return label, lowered, self._read(node, element) if node.reads else None

    def closing_warnings(self) -> list[WarningText]:
        """Return a warning for each position where undefined elements decided something."""
        reads: dict[Span, list[str]] = {}
        for number in self.decided:
            read = self.reads[number]
            if read.origin in (Origin.DEFAULT, Origin.OPAQUE):
                reads.setdefault(read.span, []).append(read.text)
        return [WarningText(WarningKind.DEFAULT_READ, _taken_for_zero(texts), span) for span, texts in reads.items()]

    def check_views(self) -> None:
        """Reject elements beyond the end of their argument's views, unless its input is longer.

        Raises:
            TileError: an element is.
        """
        for name, use in self.arguments.items():
            if name not in self.memory.whole and use.touched > use.viewed > 0:
                raise TileError(
                    f"element {use.touched - 1} of %{name}, whose views have {use.viewed}: outside the tensor",
                    span=use.touched_at,
                    legal=(f"--in {name}=FILE.npy of more elements",),
                )

    def _of_argument(
        self, node: pto.ScalarAccess, base: ArgumentPointer, index: DependentScalar, value: DependentScalar | None
    ) -> ScalarElement:
        position, size = base.offset + int(index.value), base.format.storage_bits // 8
        use = self.arguments[base.name]
        self.memory.check(base.name, use, position)
        use.see_element(position, node.span)
        code = b""
        if value is not None:
            bits = bits_of(self.constant(value), node.type.name)
            self.memory.store(base.name, use, position, None if self.loops else bits)
            use.stored = True
            code = bits.to_bytes(size, "little")
        elif not use.stored and base.name not in self.memory.elements:
            use.needs_input = True
        return ScalarElement(node.mnemonic, base.name, position * size, size, code, node.span)

    def _of_tile(self, node: pto.ScalarAccess, tile: Tile, index: int, value: DependentScalar | None) -> ScalarElement:
        size = tile.element_bits // 8
        code = b"" if value is None else bits_of(self.constant(value), node.type.name).to_bytes(size, "little")
        return ScalarElement(node.mnemonic, tile, tile.address + index * size, size, code, node.span)

    def _read(self, node: pto.ScalarAccess, element: ScalarElement) -> DependentScalar:
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
        return DependentScalar(value, reads=frozenset((number,)))


def _taken_for_zero(texts: list[str]) -> str:
    """Return a note about elements without a value; of many, the first."""
    names = list(dict.fromkeys(texts))
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{shown}: taken as 0, because no input sets it; the path depends on it"


def deciding(accesses: Accesses) -> tuple[ReadElement, ...]:
    """Return the reads that decide the path, an address or an extent, in program order."""
    return tuple(accesses.reads[number] for number in sorted(accesses.decided))
