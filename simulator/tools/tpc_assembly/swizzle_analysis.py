"""The values stored by a block of bundles, as terms of the loaded values.

Bundles are processed in order: a block with early reads has another meaning and is not accepted here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass, field
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.tpc.forms import Family
from castsim.isa.tpc.parser import print_head, print_item
from castsim.isa.tpc.program import (
    ENDS_OF_BLOCKS,
    GROUPED,
    JUMPS,
    VECTOR_FILES,
    Bundle,
    File,
    Immediate,
    Item,
    Operand,
    Register,
    Slot,
    TensorDeclaration,
    TpcInstruction,
    TpcProgram,
)
from castsim.machines.vliw.plans import InstructionPlan, keeps_income, planned
from castsim.machines.vliw.semantics import prepare
from castsim.machines.vliw.semantics.convert import ConvertInteger, ElementPlacement, NearbyInt, PreparedConversion
from castsim.machines.vliw.semantics.elementwise import KINDS
from castsim.machines.vliw.semantics.moves import NOTHING, Rearrange
from castsim.machines.vliw.storage import RegisterCell, Registers
from castsim.targets.vliw import VliwTarget

# Symbols for what vector registers hold, byte by byte: which loaded element, after which operations.
#
# A term stands for one element. Terms are numbered, so that equal ones have equal numbers, and a register is an array
# of byte numbers (term and place within it). Lane moves permute the array; conversions and element-wise operations
# make new terms. Two elements went through the same work exactly if their terms differ in the loaded elements alone:
# then they have one `shape`.

Bytes = NDArray[np.int64]
"""One register: a byte number per byte."""

_PLACES = 8
"""Byte numbers are eight times the term's number plus the place within the element."""


@dataclass(frozen=True, slots=True)
class Term:
    """An element: its origin, and its width in bytes.

    kind is `load` (key: number of the load, element), `constant` (key: the bits), `immediate` and `scalar` (an operand
    of an instruction that is equal for all lanes; key: number, register), `operation` (key: the instruction without its
    operands; parts: terms), `comparison` (an operation whose results are masks), `select` (parts: mask, new, old) or
    `joined` (parts: byte numbers).
    """

    kind: str
    width: int
    key: tuple[Any, ...] = ()
    parts: tuple[int, ...] = ()


@dataclass(slots=True)
class Terms:
    """All terms of a piece of program."""

    known: dict[Term, int] = field(default_factory=dict)
    listed: list[Term] = field(default_factory=list)

    def number(self, term: Term) -> int:
        """Return the number of a term."""
        if term not in self.known:
            self.known[term] = len(self.listed)
            self.listed.append(term)
        return self.known[term]

    def constant(self, bits: int, width: int) -> int:
        """Return the number of a constant."""
        return self.number(Term("constant", width, (bits & ((1 << 8 * width) - 1),)))

    def bytes_of(self, term: int) -> tuple[int, ...]:
        """Return the byte numbers of an element; those of constants are constants of one byte."""
        entry = self.listed[term]
        if entry.kind == "constant" and entry.width > 1:
            return tuple(self.constant(entry.key[0] >> 8 * k, 1) * _PLACES for k in range(entry.width))
        return tuple(term * _PLACES + k for k in range(entry.width))

    def element(self, numbers: tuple[int, ...]) -> int:
        """Return the element that some bytes form."""
        first, width = self.listed[numbers[0] // _PLACES], len(numbers)
        if first.width == width and numbers == self.bytes_of(numbers[0] // _PLACES):
            return numbers[0] // _PLACES
        parts = [self.listed[number // _PLACES] for number in numbers]
        if all(part.kind == "constant" for part in parts):
            return self.constant(sum(part.key[0] << 8 * k for k, part in enumerate(parts)), width)
        return self.number(Term("joined", width, (), numbers))

    def elements(self, register: Bytes, width: int) -> list[int]:
        """Return the terms of a register's elements."""
        return [self.element(tuple(group)) for group in register.reshape(-1, width).tolist()]

    def register(self, elements: list[int]) -> Bytes:
        """Return the register that holds elements."""
        return np.array([number for term in elements for number in self.bytes_of(term)], np.int64)

    def term_of(self, number: int) -> Term:
        """Return the term that a byte number belongs to."""
        return self.listed[number // _PLACES]

    def children(self, term: Term) -> tuple[int, ...]:
        """Return the terms from which a term is made."""
        return tuple(part // _PLACES for part in term.parts) if term.kind == "joined" else term.parts

    def joined_parts(self, term: Term) -> tuple[tuple[int, int], ...]:
        """Return the bytes of a `joined` term as term and place."""
        return tuple(divmod(part, _PLACES) for part in term.parts)


class TermShapes:
    """Terms without the loaded element: its number is removed if all leaves of a term have the same one."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.made = Terms()
        self._found: dict[int, tuple[int, int | None] | None] = {}

    def of(self, term: int) -> tuple[int, int | None] | None:
        """Return the shape of a term and the one element of its loads, if it has any; None if there are several."""
        if term not in self._found:
            self._found[term] = self._of(term)
        return self._found[term]

    def _of(self, number: int) -> tuple[int, int | None] | None:
        term = self.terms.listed[number]
        if term.kind == "load":
            load, element = term.key
            return self.made.number(Term("load", term.width, (load,))), element
        if not term.parts:
            return self.made.number(term), None
        shapes = [self.of(child) for child in self.terms.children(term)]
        if any(child_shape is None for child_shape in shapes):
            return None
        pairs = [child_shape for child_shape in shapes if child_shape is not None]
        elements = {element for _, element in pairs if element is not None}
        if len(elements) > 1:
            return None
        parts = tuple(shape for shape, _ in pairs)
        if term.kind == "joined":
            places = (offset for _, offset in self.terms.joined_parts(term))
            parts = tuple(shape * _PLACES + offset for shape, offset in zip(parts, places, strict=True))
        return self.made.number(Term(term.kind, term.width, term.key, parts)), next(iter(elements), None)


_BYTE_BITS = 8


class Unsuited(Exception):  # noqa: N818 - it is an answer, not a fault
    """A block that the pass leaves unchanged; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class VectorAccess:
    """A load or store of a vector: instruction, position among those of the block, width of an element in bytes."""

    instruction: TpcInstruction
    slot: Slot
    place: int
    width: int
    value: Bytes


@dataclass(slots=True)
class Analysis:
    """The effects of a block.

    `others` are the instructions without vectors, with their positions; `work` the instructions of the vector slot
    that are not lane moves; `moves` the lane moves. `registers` and `masks` are the known values at the end.
    """

    terms: Terms = field(default_factory=Terms)
    loads: list[VectorAccess] = field(default_factory=list)
    stores: list[VectorAccess] = field(default_factory=list)
    others: list[tuple[int, Slot, TpcInstruction]] = field(default_factory=list)
    moves: list[TpcInstruction] = field(default_factory=list)
    registers: dict[int, Bytes] = field(default_factory=dict)
    masks: dict[int, Bytes] = field(default_factory=dict)
    scalars: set[Register] = field(default_factory=set)


def analysed(
    bundles: Iterable[Bundle],
    constants: dict[int, tuple[int, int]],
    tensors: dict[int, TensorDeclaration],
    target: VliwTarget,
) -> Analysis:
    """Run a block on terms.

    `constants` are vector registers with one number in every element from before the block: bits and width.

    Raises:
        Unsuited: a part of the block has no meaning lane by lane, or is unknown.
    """
    analysis = Analysis()
    reader = _InstructionReader(analysis, tensors, target)
    for register, (bits, width) in constants.items():
        analysis.registers[register] = reader.filled(analysis.terms.constant(bits, width))
    index = 0
    for bundle in bundles:
        results: list[Callable[[], None]] = []
        for slot, instruction in bundle.occupied:
            results.append(reader.result(instruction, slot, index))
            index += 1
        for commit in results:
            commit()
    written = {instruction.operand("dest") for _, _, instruction in analysis.others}
    both = sorted(str(scalar) for scalar in written & analysis.scalars)
    if both:
        raise Unsuited(f"{both[0]} is written beside the vector work that reads it")
    return analysis


def is_vector(operand: Operand | None) -> bool:
    """Return whether an operand is a vector, a group of them or a vector predicate."""
    return isinstance(operand, Register) and operand.file in VECTOR_FILES


class _InstructionReader:
    """Processes instructions one at a time; the effect of each is committed when the whole bundle has read."""

    def __init__(self, analysis: Analysis, tensors: dict[int, TensorDeclaration], target: VliwTarget) -> None:
        self.found = analysis
        self.terms = analysis.terms
        self.tensors = tensors
        self.target = target
        self.size = target.registers.vector_bytes

    def result(self, instruction: TpcInstruction, slot: Slot, index: int) -> Callable[[], None]:
        """Return the function that commits the effect of an instruction."""
        mnemonic, family = instruction.mnemonic, instruction.form.family
        if mnemonic in ("ld_tnsr", "st_tnsr"):
            return self._access(instruction, slot, index)
        if instruction.switch("mmio") == 1:
            raise self._unsuited(instruction, "may change how the vector work rounds")
        if not any(map(is_vector, instruction.operands)):
            self.found.others.append((index, slot, instruction))
            return lambda: None
        if mnemonic == "mov":
            return self._into(instruction, self._moved(instruction))
        if mnemonic in KINDS or family in (Family.COMPARISON, Family.SELECTION):
            return self._into(instruction, self._lanewise(instruction))
        if family not in (Family.CONVERSION, Family.ROUNDING, Family.LANE_MOVE):
            raise self._unsuited(instruction, "is not element-wise work")
        unit = prepare(instruction, self.target).unit
        if isinstance(unit, Rearrange):
            return self._into(instruction, self._rearranged(instruction, unit))
        if isinstance(unit, NearbyInt):
            if unit.integer is not None:
                raise self._unsuited(instruction, "makes two results of one")
            return self._into(instruction, self._lanewise(instruction))
        assert isinstance(unit, PreparedConversion | ConvertInteger)
        return self._converted(instruction, unit)

    def filled(self, term: int) -> Bytes:
        """Return a register with one element everywhere."""
        return self.terms.register([term] * (self.size // self.terms.listed[term].width))

    def _unsuited(self, instruction: TpcInstruction, why: str) -> Unsuited:
        return Unsuited(f"line {instruction.span.line}: {instruction.mnemonic} {why}")

    # --------------------------------------------------------------------------------------------------- registers

    def _register(self, instruction: TpcInstruction, operand: Operand | None) -> Bytes:
        assert isinstance(operand, Register)
        bank = self.found.masks if operand.file is File.VP else self.found.registers
        if operand.file in GROUPED:
            raise self._unsuited(instruction, "works on a group of registers")
        if operand.index not in bank:
            raise self._unsuited(instruction, f"reads {operand}, which comes from before the block")
        return bank[operand.index]

    def _income(self, register: Register) -> Bytes:
        """Return the old content of a destination; if it is unwritten, every byte is its own term."""
        bank = self.found.masks if register.file is File.VP else self.found.registers
        if register.index in bank:
            return bank[register.index]
        unknown = [self.terms.number(Term("load", 1, (str(register), byte))) for byte in range(self.size)]
        return self.terms.register(unknown)

    def _into(self, instruction: TpcInstruction, value: Bytes) -> Callable[[], None]:
        """Return the function that writes a result to its one register, under the predicate."""
        dest = instruction.operand("dest")
        assert isinstance(dest, Register)
        if dest.file in GROUPED:
            raise self._unsuited(instruction, "works on a group of registers")
        bank = self.found.masks if dest.file is File.VP else self.found.registers
        if instruction.predicate is not None:
            value = self._selected(instruction, value, self._income(dest))

        def commit() -> None:
            bank[dest.index] = value

        return commit

    def _selected(self, instruction: TpcInstruction, new: Bytes, old: Bytes) -> Bytes:
        """Return the choice between new and old elements under a vector predicate, as wide as its own lanes."""
        predicate = instruction.predicate
        assert predicate is not None
        if predicate.register.file is not File.VP:
            raise self._unsuited(instruction, "is under a scalar predicate")
        mask = self._register(instruction, predicate.register)
        width = self.terms.term_of(int(mask[0])).width if instruction.type is None else self._width(instruction)
        key = ("!" if predicate.inverted else "",)
        triples = zip(*(self.terms.elements(vector, width) for vector in (mask, new, old)), strict=True)
        return self.terms.register([self.terms.number(Term("select", width, key, triple)) for triple in triples])

    def _width(self, instruction: TpcInstruction) -> int:
        if instruction.type not in FORMATS:
            raise self._unsuited(instruction, "works on single bits")
        return FORMATS[str(instruction.type)].bits // _BYTE_BITS

    # -------------------------------------------------------------------------------------------------------- kinds

    def _access(self, instruction: TpcInstruction, slot: Slot, index: int) -> Callable[[], None]:
        """Process a load or store of a whole vector."""
        number = next((operand for operand in instruction.operands if isinstance(operand, Immediate)), None)
        if number is None or number.value not in self.tensors or instruction.predicate is not None:
            raise self._unsuited(instruction, "names its tensor by a register, or has a predicate")
        if print_head(instruction) != instruction.mnemonic:
            raise self._unsuited(instruction, "accesses part of a vector")
        tensor = self.tensors[number.value]
        bits = format_named(tensor.format).bits
        if bits < _BYTE_BITS or tensor.direction == "inout":
            raise self._unsuited(instruction, f"accesses {tensor.name}, whose elements cannot be followed")
        width = bits // _BYTE_BITS
        if instruction.mnemonic == "st_tnsr":
            value = self._register(instruction, instruction.operand("src_c"))
            self.found.stores.append(VectorAccess(instruction, slot, index, width, value))
            return lambda: None
        load = len(self.found.loads)
        leaves = [self.terms.number(Term("load", width, (load, e))) for e in range(self.size // width)]
        value = self.terms.register(leaves)
        self.found.loads.append(VectorAccess(instruction, slot, index, width, value))
        return self._into(instruction, value)

    def _moved(self, instruction: TpcInstruction) -> Bytes:
        source = instruction.operand("src_a")
        if is_vector(source):
            return self._register(instruction, source)
        if instruction.type is None or not isinstance(source, Immediate):
            raise self._unsuited(instruction, "moves something else than a vector or a number")
        return self.filled(self.terms.constant(source.value, self._width(instruction)))

    def _rearranged(self, instruction: TpcInstruction, unit: Rearrange) -> Bytes:
        dest = instruction.operand("dest")
        assert isinstance(dest, Register)
        source = self._register(instruction, instruction.operand("src_a"))
        self.found.moves.append(instruction)
        kept = unit.source_of == NOTHING
        return np.where(kept, self._income(dest), source[np.where(kept, 0, unit.source_of)])

    def _bytewise(self, instruction: TpcInstruction, width: int) -> Bytes | None:
        """Return the result of an AND or shift that only drops and moves whole bytes, None of any other instruction."""
        source, amount = instruction.operand("src_a"), instruction.operand("src_b")
        if not isinstance(amount, Immediate) or instruction.switch("andn") == 1:
            return None
        bits = amount.value & ((1 << width * _BYTE_BITS) - 1)
        if instruction.mnemonic == "and":
            mask = bits.to_bytes(width, "little")
            if set(mask) - {0, 0xFF}:
                return None
            taken = [offset if byte else None for offset, byte in enumerate(mask)]
        elif instruction.mnemonic in ("shr", "shl") and amount.value % _BYTE_BITS == 0:
            step = amount.value // _BYTE_BITS * (1 if instruction.mnemonic == "shr" else -1)
            taken = [offset + step if 0 <= offset + step < width else None for offset in range(width)]
        else:
            return None
        (zero,) = self.terms.bytes_of(self.terms.constant(0, 1))
        rows = self._register(instruction, source).reshape(-1, width)
        columns = [np.full(len(rows), zero) if offset is None else rows[:, offset] for offset in taken]
        return np.stack(columns, axis=1).reshape(-1)

    def _lanewise(self, instruction: TpcInstruction) -> Bytes:
        width, columns = self._width(instruction), []
        moved = self._bytewise(instruction, width)
        if moved is not None:
            return moved
        for spec, operand in instruction.specified:
            if spec.role != "dest":
                columns.append(self._column(instruction, operand, width))
        head = (print_head(instruction),)
        rows = zip(*columns, strict=True)
        kind = "comparison" if instruction.form.family is Family.COMPARISON else "operation"
        return self.terms.register([self.terms.number(Term(kind, width, head, row)) for row in rows])

    def _column(self, instruction: TpcInstruction, operand: Operand, width: int) -> list[int]:
        """Return the elements of an operand in all lanes."""
        count = self.size // width
        if isinstance(operand, Immediate):
            return [self.terms.number(Term("immediate", width, (operand.value,)))] * count
        if isinstance(operand, Register) and operand.file is File.S:
            self.found.scalars.add(operand)
            return [self.terms.number(Term("scalar", width, (operand.index,)))] * count
        if not is_vector(operand):
            raise self._unsuited(instruction, f"reads {operand}")
        return self.terms.elements(self._register(instruction, operand), width)

    def _converted(self, instruction: TpcInstruction, unit: PreparedConversion | ConvertInteger) -> Callable[[], None]:
        """Process a conversion of element types, of one lane or all."""
        placement = unit.placement
        if placement is None or instruction.predicate is not None or instruction.switch("clip_fp") == 1:
            raise self._unsuited(instruction, "has a predicate or a switch that the pass does not follow")
        if instruction.draws:
            raise self._unsuited(instruction, "draws random numbers, which differ by lane")
        src, dst, shift = self._kinds(instruction, unit)
        given = self._group(instruction, "src_a", placement.sources)
        elements = [term for vector in given for term in self.terms.elements(vector, FORMATS[src].bits // _BYTE_BITS)]
        key = (instruction.mnemonic, src, dst, str(instruction.switch("rounding")), shift)
        width = FORMATS[dst].bits // _BYTE_BITS
        results = [
            self.terms.number(Term("operation", width, key, (elements[int(source)],))) for source in placement.gather
        ]
        return self._scatter(instruction, placement, results, width)

    def _kinds(self, instruction: TpcInstruction, unit: PreparedConversion | ConvertInteger) -> tuple[str, str, int]:
        """Return source and destination type and the shift."""
        if isinstance(unit, PreparedConversion):
            return unit.src, unit.dst, 0
        shift = instruction.operand("src_b")
        if not isinstance(shift, Immediate):
            raise self._unsuited(instruction, "shifts by a register")
        return unit.src.name, unit.dst.name, shift.signed

    def _group(self, instruction: TpcInstruction, role: str, count: int) -> list[Bytes]:
        """Return the registers of an operand."""
        operand = instruction.operand(role)
        assert isinstance(operand, Register)
        return [self._register(instruction, Register(File.V, operand.index + k)) for k in range(count)]

    def _scatter(
        self, instruction: TpcInstruction, placement: ElementPlacement, terms: list[int], width: int
    ) -> Callable[[], None]:
        dest = instruction.operand("dest")
        assert isinstance(dest, Register)
        registers = [Register(File.V, dest.index + k) for k in range(placement.destinations)]
        lanes = self.size // width
        incomes = [self.terms.elements(self._income(register), width) for register in registers]
        for where, term in zip(placement.scatter.tolist(), terms, strict=True):
            incomes[where // lanes][where % lanes] = term

        def commit() -> None:
            for register, elements in zip(registers, incomes, strict=True):
                self.found.registers[register.index] = self.terms.register(elements)

        return commit


# A program as blocks without control flow, and what stands between them.


@dataclass(frozen=True, slots=True)
class ProgramPiece:
    """Consecutive items of a program; `straight` if they are bundles without control flow, entered only at the top."""

    items: tuple[Item, ...]
    straight: bool

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """Its bundles."""
        return tuple(item for item in self.items if isinstance(item, Bundle))

    @property
    def trailing(self) -> int:
        """Empty bundles at its end."""
        count = 0
        for bundle in reversed(self.bundles):
            if any(bundle.slots):
                break
            count += 1
        return count

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line of the source."""
        return self.items[0].span.line, self.items[-1].span.line


def pieces(program: TpcProgram, target: VliwTarget) -> tuple[ProgramPiece, ...]:
    """Cut a program at labels, directives, jumps, loops, their delay bundles and HALT."""
    parts: list[ProgramPiece] = []
    straight: list[Item] = []
    delay = 0

    def flush() -> None:
        if straight:
            parts.append(ProgramPiece(tuple(straight), straight=True))
            straight.clear()

    for item in program.items:
        jumps = isinstance(item, Bundle) and not _mnemonics(item).isdisjoint(ENDS_OF_BLOCKS)
        if isinstance(item, Bundle) and not jumps and delay == 0:
            straight.append(item)
            continue
        flush()
        parts.append(ProgramPiece((item,), straight=False))
        if isinstance(item, Bundle):
            delay = max(delay - 1, 0)
            delay = max(delay, _delay(item, target))
    flush()
    return tuple(parts)


def _delay(bundle: Bundle, target: VliwTarget) -> int:
    mnemonics = _mnemonics(bundle)
    if "loop" in mnemonics:
        return target.loop_rules.delay_bundles
    return 0 if mnemonics.isdisjoint(JUMPS) else target.jump_rules.delay_bundles


def _mnemonics(bundle: Bundle) -> set[str]:
    return {instruction.mnemonic for instruction in bundle.slots if instruction is not None}


def constants(program: TpcProgram, target: VliwTarget) -> dict[int, tuple[int, int, TpcInstruction]]:
    """Return vector registers written only by one MOV of a number: bits, width in bytes, the MOV."""
    writers: dict[str, list[TpcInstruction]] = {}
    for plan in plans_of(program.bundles, target):
        for name in _vectors(plan.results):
            writers.setdefault(name, []).append(plan.instruction)
    values = {}
    for name, (first, *others) in writers.items():
        source = first.operand("src_a")
        plain = first.mnemonic == "mov" and first.predicate is None and first.type in FORMATS
        if not others and plain and isinstance(source, Immediate):
            values[int(name[1:])] = (source.value, FORMATS[str(first.type)].bits // _BYTE_BITS, first)
    return values


def plans_of(bundles: tuple[Bundle, ...], target: VliwTarget) -> list[InstructionPlan]:
    """Return the instructions of bundles with the registers that they read and write."""
    return [plan for own in planned(TpcProgram((), bundles), Registers(target), target) for plan in own]


def entering(piece: ProgramPiece, target: VliwTarget, elsewhere: frozenset[str]) -> frozenset[str]:
    """Return the vector registers and predicates whose values from before the piece matter in it.

    The old part after a partial write counts if other pieces, which write the registers `elsewhere`, wrote it.
    """
    written: set[str] = set()
    registers: set[str] = set()
    for plan in plans_of(piece.bundles, target):
        read = _vectors(cell for operand in plan.operands for cell in operand.cells)
        own = _vectors(plan.results)
        if keeps_income(plan.instruction):
            read |= own & elsewhere
        registers |= read - written
        written |= own
    return frozenset(registers)


def registers_written(piece: ProgramPiece, target: VliwTarget) -> frozenset[str]:
    """Return the vector registers and predicates that a piece writes."""
    return frozenset(_vectors(cell for plan in plans_of(piece.bundles, target) for cell in plan.results))


def _vectors(cells: Iterable[RegisterCell]) -> set[str]:
    """Return the names of the vector registers and predicates among cells."""
    return {cell.name for cell in cells if cell.file in (File.V, File.VP)}


def piece_text(piece: ProgramPiece) -> list[str]:
    """Return the items of a piece as canonical text, a line each."""
    return [print_item(item) for item in piece.items]
