"""The state of a core: registers, global memory, tensors, and the memory-mapped configuration registers.

Coordinates count elements and are signed; dimension 0 is the fastest, along the lanes of a vector. Elements
outside the tensor read as the padding value 0 and are dropped by stores (docs/reference/tpc.md section 7.1, tensor
access).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, LimitError, ReadError, Span, TileError
from castsim.isa.formats import FORMATS, Format, format_named
from castsim.isa.tpc.instructions import packed_widths
from castsim.isa.tpc.program import (
    GROUPED,
    INDEX_DIMENSIONS,
    WORD_BITS,
    WORD_MASK,
    File,
    Register,
    Special,
    TensorDeclaration,
    TpcInstruction,
)
from castsim.machines.vliw.findings import Findings, InstructionSite, StaleReadKind
from castsim.machines.vliw.lookup_tables import NO_TABLES, DeclaredTables
from castsim.machines.vliw.semantics.operands import Coordinates, Mask, Value, Vector, elements, vector_of
from castsim.machines.vliw.stage_latency import STORED, Distances, constant
from castsim.numerics.blocks import code_dtype
from castsim.targets.tpc_compiler import Descriptors
from castsim.targets.vliw import VliwTarget
from castsim.targets.vliw_latency import Commit

# Registers whose writes become visible late: each keeps the writes that some reader may not see yet.
#
# Time counts issued bundles and the bubbles of taken jumps. A reader sees the newest write, in program order, that is
# old enough for it: results of one register land in program order (docs/reference/tpc.md section 6.1, tied income 1),
# with the one exception of loads into predicates, which a later write can overtake.

_Array = TypeVar("_Array", Vector, Mask)

Held = Value | None
"""The contents of a register; None: not computed, because the run computes no vectors."""

GENERATORS = ("LFSR", "S_LFSR")
"""The random generators of vectors and of scalars."""


@dataclass(frozen=True, slots=True)
class GeneratorRead:
    """A read of a random generator by name: the generator, and whether it steps."""

    generator: str
    steps: bool


RANDOM = {
    "LFSR": GeneratorRead("LFSR", steps=True),
    "LFSR_NO_CHANGE": GeneratorRead("LFSR", steps=False),
    "S_LFSR": GeneratorRead("S_LFSR", steps=True),
    "S_LFSR_NO_CHANGE": GeneratorRead("S_LFSR", steps=False),
}
"""Names of the random generators, which are not registers but advancing state."""
INCOME = "income"
"""The role under which an instruction reads the old value of its destination."""
CONSTANT = ("V_LANE_ID_32", "V_LANE_ID_16", "V_LANE_ID_8", "PC")
"""Names that can be read and are not stored anywhere."""


@dataclass(frozen=True, slots=True)
class Write:
    """A result in flight: issued in bundle number `time`, visible according to its commit stage."""

    time: int
    stage: Commit
    value: Held
    writer: InstructionSite


@dataclass(slots=True)
class RegisterCell:
    """One register: the value that all readers see, and newer ones in the order in which they become visible.

    `file` is its register file, None for a named register.
    """

    name: str
    settled: Held
    written: bool = False
    pending: list[Write] = field(default_factory=list)
    file: File | None = None

    def read(self, now: int, distances: Distances, role: str, reader: InstructionSite, findings: Findings) -> Held:
        """Return the value for a reader of bundle number `now`; report writes that it misses.

        The content of a destination before its first write is not meant to be read, and not reported.
        """
        pending = self.pending
        if not pending:
            if not self.written and role != INCOME:
                findings.add(StaleReadKind.UNWRITTEN, self.name, role, reader, now)
            return self.settled
        missed = False
        for write in reversed(pending):
            distance, needed = now - write.time, distances[write.stage]
            if distance >= needed:
                return write.value
            if distance == 0:
                findings.add(StaleReadKind.SAME_BUNDLE, self.name, role, reader, now, write.writer, distance, needed)
            elif not missed:
                findings.add(StaleReadKind.EARLY, self.name, role, reader, now, write.writer, distance, needed)
                missed = True
        return self.settled

    def write(self, write: Write, horizon: int) -> None:
        """Schedule a result."""
        self.settle(write.time, horizon)
        self.pending.append(write)

    def write_before(self, write: Write, position: int) -> None:
        """Schedule a result that lands before the pending one at `position`."""
        self.pending.insert(position, write)

    def settle(self, now: int, horizon: int) -> None:
        """Remove writes that all readers see."""
        pending = self.pending
        while pending and now - pending[0].time >= horizon:
            self.settled = pending.pop(0).value
            self.written = True

    def set(self, value: Held) -> None:
        """Set a value that is visible immediately."""
        self.settled = value
        self.written = True
        self.pending.clear()

    @property
    def newest(self) -> Held:
        """The final value after all pending writes."""
        return self.pending[-1].value if self.pending else self.settled


class Registers:
    """All registers of a core, each a `RegisterCell`; initially zero and unwritten, SP0 and VP0 constantly true."""

    def __init__(self, target: VliwTarget) -> None:
        sizes = target.registers
        self._vector_bytes = sizes.vector_bytes
        self._cells: dict[str, RegisterCell] = {}
        zeros: Mapping[File, Held] = {
            File.V: _frozen(np.zeros(sizes.vector_bytes, np.uint8)),
            File.S: 0,
            File.I: (0,) * sizes.index_dimensions,
            File.AD: 0,
            File.SP: False,
            File.VP: _frozen(np.zeros(sizes.vector_bytes, np.bool_)),
        }
        for file, zero in zeros.items():
            for index in range(getattr(sizes, file.value)):
                self._cells[f"{file}{index}"] = RegisterCell(f"{file}{index}", zero, file=file)
        self._cells["SP0"].set(True)
        self._cells["VP0"].set(_frozen(np.ones(sizes.vector_bytes, np.bool_)))
        self._named: Mapping[str, Held] = {
            "S_CARRY": False, "V_CARRY": zeros[File.VP], "ZP_REG": zeros[File.V],
        }  # fmt: skip

    def cells(self, register: Register | Special) -> tuple[RegisterCell, ...]:
        """Return the cells of a name: a single one, or those of a pair or quad."""
        if isinstance(register, Special):
            name = register.name
            if name not in self._cells:
                self._cells[name] = RegisterCell(name, self._named.get(name, 0))
            return (self._cells[name],)
        file, count = GROUPED.get(register.file, (register.file, 1))
        return tuple(self._cell(file, register.index + k) for k in range(count))

    def _cell(self, file: File, index: int) -> RegisterCell:
        return self._cells[f"{file}{index}"]


def vector(value: Held) -> Vector:
    """Return the bytes of a V register, which must have a value."""
    assert isinstance(value, np.ndarray) and value.dtype == np.uint8
    return value.view(np.uint8)


def parts_of(value: Held, count: int) -> tuple[Held, ...]:
    """Return the part of a result for each of several registers."""
    if count == 1 and not (isinstance(value, tuple) and isinstance(value[0], np.ndarray)):
        return (value,)
    if value is None:
        return (None,) * count
    if isinstance(value, int):
        return tuple(value >> (WORD_BITS * word_index) & WORD_MASK for word_index in range(count))
    assert isinstance(value, tuple) and len(value) == count
    return value


def _frozen(array: _Array) -> _Array:
    array.flags.writeable = False
    return array


Codes = NDArray[np.unsignedinteger]
"""Codes of any width."""
Bytes = NDArray[np.uint8]

_WINDOW_BITS = 32
"""The address bits of a tensor's window; an address therefore identifies its tensor."""
_TENSORS_BYTE = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A declared tensor and its elements: codes in C order, dimension 0 last; `shape` has dimension 0 first."""

    number: int
    name: str
    format: Format
    shape: tuple[int, ...]
    codes: Codes
    written: NDArray[np.bool_] | None = None
    """A mask of the elements that stores have written; None if it is not needed."""

    @property
    def base(self) -> int:
        """Byte address of the first element."""
        return (self.number + 1) << _WINDOW_BITS

    @property
    def size(self) -> int:
        """Number of bytes of the elements."""
        return -(-self.codes.size * self.format.bits // _TENSORS_BYTE)

    def position(self, coordinates: Coordinates) -> int:
        """Return the index of the element at some coordinates, which may be outside."""
        stride, position = 1, 0
        for extent, coordinate in zip(self.shape, coordinates, strict=False):
            position += coordinate * stride
            stride *= extent
        return position

    def row(self, coordinates: Coordinates) -> bool:
        """Return whether all coordinates except the first are inside; missing dimensions have size 1."""
        extents = (*self.shape, *(1,) * (len(coordinates) - len(self.shape)))
        return all(0 <= c < extent for c, extent in zip(coordinates[1:], extents[1:], strict=True))

    def holds_any(self, coordinates: Coordinates, count: int) -> bool:
        """Return whether any of some elements along dimension 0 is inside."""
        return self._overlap(coordinates, count)[0] > 0

    def read(self, coordinates: Coordinates, count: int) -> Codes:
        """Return elements along dimension 0, zero outside the tensor."""
        codes = np.zeros(count, self.codes.dtype)
        inside, start, offset = self._overlap(coordinates, count)
        if inside:
            codes[start : start + inside] = self.codes[offset : offset + inside]
        return codes

    def write(self, coordinates: Coordinates, codes: Codes, mask: NDArray[np.bool_]) -> None:
        """Write elements along dimension 0 where the mask is set and the tensor has them."""
        inside, start, offset = self._overlap(coordinates, codes.size)
        if inside:
            chosen = mask[start : start + inside]
            self.codes[offset : offset + inside][chosen] = codes[start : start + inside][chosen]
            if self.written is not None:
                self.written[offset : offset + inside] |= chosen

    def _overlap(self, coordinates: Coordinates, count: int) -> tuple[int, int, int]:
        """Return how many elements are inside, the first such lane, and its place among the codes."""
        first = coordinates[0]
        low, high = max(first, 0), min(first + count, self.shape[0])
        if low >= high or not self.row(coordinates):
            return 0, 0, 0
        return high - low, low - first, self.position((low, *coordinates[1:]))


def _zeros(declared: TensorDeclaration, fmt: Format) -> Codes:
    elements = prod(declared.shape)
    try:
        return np.zeros(elements, code_dtype(fmt))
    except (MemoryError, OverflowError, ValueError) as error:  # of sizes that no address can have, the latter two
        raise LimitError(f"memory cannot hold {elements:,} elements of {declared.name}", span=declared.span) from error


class GlobalMemory:
    """The tensors of a program, and its look-up tables.

    Raises:
        ReadError: the target lacks a tensor number.
        LimitError: a tensor exceeds the memory.
    """

    def __init__(
        self,
        declared: tuple[TensorDeclaration, ...],
        codes: Mapping[str, Codes],
        limit: int,
        tables: DeclaredTables = NO_TABLES,
    ) -> None:
        self._limit = limit
        self.declared = declared
        self.tables = replace(tables, memory=self.load_bytes)
        self.tensors: dict[int, Tensor] = {}
        for declaration in declared:
            if declaration.number >= limit:
                raise ReadError(
                    f"tensor {declaration.number} is declared; the target has {limit}",
                    span=declaration.span,
                    legal=self._numbers(),
                )
            fmt = format_named(declaration.format)
            tensor_codes = codes.get(declaration.name)
            if tensor_codes is None:
                tensor_codes = _zeros(declaration, fmt)
            marks = np.zeros(tensor_codes.size, np.bool_) if declaration.direction == "out" else None
            self.tensors[declaration.number] = Tensor(
                declaration.number, declaration.name, fmt, declaration.shape, tensor_codes, marks
            )

    def tensor(self, number: int, span: Span) -> Tensor:
        """Return a tensor by its number.

        Raises:
            TileError: the target lacks the number, or the program does not declare it.
        """
        if not 0 <= number < self._limit:
            raise TileError(f"tensor {number} does not exist", span=span, legal=self._numbers())
        if number not in self.tensors:
            raise TileError(
                f"tensor {number} is not declared",
                span=span,
                legal=(f"// castsim: tensor {number} NAME in|out|inout FORMAT [SIZE, ..]",),
            )
        return self.tensors[number]

    def at(self, address: int, size: int, span: Span) -> tuple[Tensor, int]:
        """Return the tensor that contains some bytes, and their offset in it.

        Raises:
            TileError: they are not inside a single tensor.
        """
        for tensor in self.tensors.values():
            if tensor.base <= address and address + size <= tensor.base + tensor.size:
                return tensor, address - tensor.base
        legal = [f"{t.name}: {t.base:#x} .. {t.base + t.size - 1:#x}" for t in self.tensors.values()]
        raise TileError(f"global address {address:#x}: the {size} bytes there are in no tensor", span=span, legal=legal)

    def beside(self, address: int) -> Tensor | None:
        """Return the tensor whose window contains an address before or after its elements."""
        half = 1 << (_WINDOW_BITS - 1)
        for tensor in self.tensors.values():
            if tensor.base - half <= address < tensor.base + half:
                return None if tensor.base <= address < tensor.base + tensor.size else tensor
        return None

    def load_bytes(self, address: int, size: int, span: Span) -> Bytes:
        """Return bytes at a plain address. For errors see `at`."""
        tensor, offset = self.at(address, size, span)
        return _byte_view(tensor, span)[offset : offset + size].copy()

    def store_bytes(self, address: int, data: Bytes, mask: NDArray[np.bool_], span: Span) -> None:
        """Store bytes under a mask at a plain address. For errors see `at`."""
        tensor, offset = self.at(address, data.size, span)
        _byte_view(tensor, span)[offset : offset + data.size][mask] = data[mask]
        if tensor.written is not None:
            tensor.written[(offset + np.flatnonzero(mask)) // (tensor.format.bits // _TENSORS_BYTE)] = True

    def element_at(self, address: int, span: Span) -> tuple[Tensor, int]:
        """Return the tensor and the position of the element at an address.

        Raises:
            TileError: there is no tensor, its elements are not whole bytes, or the address is inside an element.
        """
        tensor, offset = self.at(address, 1, span)
        _byte_view(tensor, span)
        width = tensor.format.bits // _TENSORS_BYTE
        if offset % width:
            raise TileError(
                f"global address {address:#x} is inside an element of {tensor.name} ({tensor.format.name})",
                span=span,
                legal=(f"multiples of {width} from {tensor.base:#x}",),
            )
        return tensor, offset // width

    def _numbers(self) -> tuple[str, ...]:
        return (f"0 .. {self._limit - 1}",)


def _byte_view(tensor: Tensor, span: Span) -> Bytes:
    if tensor.format.bits % _TENSORS_BYTE:
        raise TileError(
            f"tensor {tensor.name} holds {tensor.format.name}, whose elements are smaller than a byte: plain "
            "addresses cannot reach them",
            span=span,
            legal=("access by coordinates",),
        )
    return tensor.codes.view(np.uint8)


# Packed stores and unpacked loads: which lane of the register each element of memory comes from or goes to.
#
# With n narrow elements in a register, r = wide / narrow width and m = n / r, element m*k + i of memory is element
# r*i + k of the register (k < r, i < m). A mask counts where the element stands in the register, as for plain
# accesses.
# Source: docs/reference/tpc.md section 2.6 (index maps of the compiler); the place of the mask is assumed.

Lanes = NDArray[np.intp]
_BYTE = 8


def packed_lanes(instruction: TpcInstruction, vector_bytes: int) -> Lanes | None:
    """Return the register's lane of every element in memory order; None for a plain access.

    Raises:
        IllegalError: it is a half or a range of the register, or has a mask: their elements are not documented.
    """
    widths = packed_widths(instruction)
    if widths is None:
        return None
    wide, narrow = widths
    word = "pack" if instruction.switch("pack") else "unpack"
    half = instruction.form.half
    obstacle = f"_{half.value}" if half is not None else "partial" if instruction.switch("partial") else None
    value = instruction.operand("dest") or instruction.operand("src_c")
    if isinstance(value, Register) and value.file is File.VP:
        obstacle = "a VP"
    if obstacle is not None:
        message = f"{instruction.mnemonic}: which elements {word} moves with {obstacle} is not documented"
        legal = (f"{word} of a whole vector register", f"{instruction.mnemonic} without {word}")
        raise IllegalError(message, span=instruction.span, legal=legal)
    ratio = wide // narrow
    return np.arange(vector_bytes * _BYTE // narrow).reshape(-1, ratio).T.reshape(-1)


def check_packed_tensor(instruction: TpcInstruction, tensor: Tensor) -> None:
    """Reject a tensor whose elements are not narrow, as a packed access requires.

    Raises:
        IllegalError: the elements have another width.
    """
    widths = packed_widths(instruction)
    if widths is not None and tensor.format.bits != widths[1]:
        wide, narrow = widths
        way = f"packs {wide} to {narrow} bits" if instruction.switch("pack") else f"unpacks {narrow} to {wide} bits"
        message = f"{instruction.mnemonic} {way}; the elements of {tensor.name} are {tensor.format.name}"
        raise IllegalError(message, span=instruction.span, legal=(f"a tensor of {narrow}-bit elements",))


def as_in_register(instruction: TpcInstruction, data: Bytes) -> Bytes:
    """Return consecutive bytes of memory in register order. For errors see `packed_lanes`."""
    lanes = packed_lanes(instruction, data.size)
    if lanes is None:
        return data
    fmt = _narrow(instruction)
    codes = elements(data, fmt)
    filled = np.empty_like(codes)
    filled[lanes] = codes
    return vector_of(filled, fmt)


def as_in_memory(instruction: TpcInstruction, data: Bytes, mask: Mask) -> tuple[Bytes, Mask]:
    """Return the bytes of a register, and a mask of them, in memory order.

    Raises:
        IllegalError: see `packed_lanes`; also a mask that separates two elements of one byte.
    """
    lanes = packed_lanes(instruction, data.size)
    if lanes is None:
        return data, mask
    fmt = _narrow(instruction)
    if fmt.bits < _BYTE and not mask.all():
        message = f"{instruction.mnemonic}: a mask cannot part the two elements of a byte at a plain address"
        raise IllegalError(message, span=instruction.span, legal=("access by coordinates",))
    first_bytes = lanes * fmt.bits // _BYTE
    wanted = mask if mask.all() else np.repeat(mask[first_bytes], fmt.bits // _BYTE)
    return vector_of(elements(data, fmt)[lanes], fmt), wanted


def _narrow(instruction: TpcInstruction) -> Format:
    """Return the narrow elements of a packed access as numbers without a meaning of their own."""
    widths = packed_widths(instruction)
    assert widths is not None
    return FORMATS[f"u{widths[1]}"]


# The memory-mapped registers of a core: which address is which, and stores that become visible late.

_PAD, _FIRST_DIMENSION, _PREFETCH = 8, 0x10, 0x38
"""The byte positions in a descriptor of the pad value, the size of dimension 0, and the prefetch stride (0: none)."""
_RANDOM = ("vector_lfsr_polynomial", "scalar_lfsr_polynomial")


class TensorWords(Protocol):
    """The words of a tensor's descriptor."""

    @property
    def number(self) -> int:
        """The tensor's number."""
        ...

    @property
    def base(self) -> int:
        """The byte address of its first element."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's sizes, dimension 0 first."""
        ...


_READABLE = ("words of the descriptors of declared tensors", "registers of the target", "words already written")


class ConfigurationSpace:
    """Configuration registers by name (from the target description) and by address; an unnamed address is a plain word.

    Dependents see a store after a fixed number of bundles (docs/reference/tpc.md section 6.1, CSR).
    """

    def __init__(self, target: VliwTarget, horizon: int) -> None:
        self._horizon = horizon
        self._cells = {
            name: RegisterCell(name, register.reset, written=True) for name, register in target.configuration.items()
        }
        self._names = {r.address: name for name, r in target.configuration.items() if r.address is not None}
        rules = target.distances
        self._usual = constant(rules.rounding_register)
        self._random = constant(rules.random_register)
        self._visible: dict[str, int] = {}
        self._settled_at = 0
        self._found_at = 0

    def describe(self, tensors: Iterable[TensorWords], descriptors: Descriptors) -> None:
        """Write descriptors of tensors to the addresses where programs read them.

        Source: docs/reference/tpc.md section 3.1; dimensions that a tensor lacks have size 1 (inferred).
        """
        for tensor in tensors:
            start = descriptors.base + descriptors.descriptor_bytes * tensor.number
            words = {0: tensor.base, 4: tensor.base >> WORD_BITS, _PAD: 0, _PREFETCH: 0}
            stride = 1
            for dimension in range(INDEX_DIMENSIONS):
                size = tensor.shape[dimension] if dimension < len(tensor.shape) else 1
                at = _FIRST_DIMENSION + descriptors.dimension_bytes * dimension
                words |= {at: size, at + 4: stride}
                stride *= size
            for offset, word in words.items():
                if offset < descriptors.descriptor_bytes:
                    name = f"mmio {start + offset:#x}"
                    self._cells[name] = RegisterCell(name, word & WORD_MASK, written=True)

    def name_at(self, address: int) -> str | None:
        """Return the name of the register at a byte address; None for an unnamed one."""
        return self._names.get(address)

    def store(self, address: int, value: int | None, writer: InstructionSite, now: int) -> None:
        """Write the register at an address."""
        self._cell(address).write(Write(now, STORED, value, writer), self._horizon)
        self._settled_at = now + self._horizon

    def load(self, address: int, reader: InstructionSite, now: int, findings: Findings) -> int | None:
        """Return the value at an address for a load of bundle number `now`.

        Raises:
            IllegalError: the program has not written the word, whose initial content is unknown.
        """
        if address not in self._names and f"mmio {address:#x}" not in self._cells:
            message = f"the word at {address:#x} of the configuration space is not modelled"
            raise IllegalError(message, span=reader.span, legal=_READABLE)
        return self._read(self._cell(address), reader, now, findings)

    def depend(self, name: str, reader: InstructionSite, now: int, findings: Findings) -> None:
        """Report stores that a dependent instruction does not see."""
        cell = self._cells.get(name)
        if cell is not None and cell.pending:
            self._read(cell, reader, now, findings)

    def visible(self, now: int) -> Mapping[str, int]:
        """Return the content of all named registers for instructions of bundle number `now`."""
        if self._found_at <= self._settled_at or not self._visible:
            self._found_at = now
            self._visible = {
                name: value
                for name, cell in self._cells.items()
                if (value := _seen(cell, now, self.distances(name))) is not None
            }
        return self._visible

    def settled(self, now: int) -> bool:
        """Return whether all readers see the same from now on, as long as nothing is stored."""
        return now >= self._settled_at

    def _cell(self, address: int) -> RegisterCell:
        name = self._names.get(address, f"mmio {address:#x}")
        if name not in self._cells:
            self._cells[name] = RegisterCell(name, 0)
        return self._cells[name]

    def _read(self, cell: RegisterCell, reader: InstructionSite, now: int, findings: Findings) -> int | None:
        value = cell.read(now, self.distances(cell.name), "configuration", reader, findings)
        assert value is None or isinstance(value, int)
        return value

    def distances(self, name: str) -> Distances:
        """Return the distances from which dependents and loads see a store to a register."""
        return self._random if name in _RANDOM else self._usual


def _seen(cell: RegisterCell, now: int, distances: Distances) -> int | None:
    for write in reversed(cell.pending):
        if now - write.time >= distances[write.stage]:
            assert write.value is None or isinstance(write.value, int)
            return write.value
    assert cell.settled is None or isinstance(cell.settled, int)
    return cell.settled
