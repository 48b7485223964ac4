"""A program as blocks without control flow, and what stands between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from castsim.isa.formats import FORMATS
from castsim.isa.tpc import Bundle, Immediate, LabelDefinition, Slot, TpcInstruction, TpcProgram, print_bundle
from castsim.isa.tpc.program import ENDS_OF_BLOCKS, JUMPS, File, Item
from castsim.machines.vliw.lint_checking import keeps_income
from castsim.machines.vliw.plans import InstructionPlan, prepared
from castsim.machines.vliw.registers import RegisterCell, Registers
from castsim.targets.vliw import VliwTarget

_BYTE_BITS = 8


@dataclass(frozen=True, slots=True)
class ProgramPiece:
    """Consecutive items of a program; `straight` if they are bundles without control flow, entered at the top only."""

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
    found: list[ProgramPiece] = []
    straight: list[Item] = []
    delay = 0

    def flush() -> None:
        if straight:
            found.append(ProgramPiece(tuple(straight), straight=True))
            straight.clear()

    for item in program.items:
        jumps = isinstance(item, Bundle) and not _mnemonics(item).isdisjoint(ENDS_OF_BLOCKS)
        if isinstance(item, Bundle) and not jumps and delay == 0:
            straight.append(item)
            continue
        flush()
        found.append(ProgramPiece((item,), straight=False))
        if isinstance(item, Bundle):
            delay = max(delay - 1, 0)
            delay = max(delay, _delay(item, target))
    flush()
    return tuple(found)


def _delay(bundle: Bundle, target: VliwTarget) -> int:
    mnemonics = _mnemonics(bundle)
    if "loop" in mnemonics:
        return target.loop_rules.delay_bundles
    return 0 if mnemonics.isdisjoint(JUMPS) else target.jump_rules.delay_bundles


def _mnemonics(bundle: Bundle) -> set[str]:
    return {each.mnemonic for each in bundle.slots if each is not None}


def constants(program: TpcProgram, target: VliwTarget) -> dict[int, tuple[int, int, TpcInstruction]]:
    """Return vector registers that one MOV of a number writes and nothing else: bits, width in bytes, the MOV."""
    writers: dict[str, list[TpcInstruction]] = {}
    for plan in plans_of(program.bundles, target):
        for name in _vectors(plan.results):
            writers.setdefault(name, []).append(plan.instruction)
    found = {}
    for name, (first, *others) in writers.items():
        source = first.operand("src_a")
        plain = first.mnemonic == "mov" and first.predicate is None and first.type in FORMATS
        if not others and plain and isinstance(source, Immediate):
            found[int(name[1:])] = (source.value, FORMATS[str(first.type)].bits // _BYTE_BITS, first)
    return found


def plans_of(bundles: tuple[Bundle, ...], target: VliwTarget) -> list[InstructionPlan]:
    """Return the instructions of bundles with the registers that they read and write."""
    registers = Registers(target)
    return [
        prepared(instruction, index, slot, registers, target)
        for index, bundle in enumerate(bundles)
        for slot, instruction in zip(Slot, bundle.slots, strict=True)
        if instruction is not None
    ]


def entering(piece: ProgramPiece, target: VliwTarget, elsewhere: frozenset[str]) -> frozenset[str]:
    """Return the vector registers and predicates whose values from before the piece matter in it.

    What a partial write leaves of a register counts if other pieces, which write the registers `elsewhere`, wrote it.
    """
    known: set[str] = set()
    found: set[str] = set()
    for plan in plans_of(piece.bundles, target):
        operands = [*plan.sources, *([plan.predicate] if plan.predicate is not None else [])]
        read = _vectors(cell for operand in operands for cell in operand.cells)
        own = _vectors(plan.results)
        if keeps_income(plan.instruction):
            read |= own & elsewhere
        found |= read - known
        known |= own
    return frozenset(found)


def written(piece: ProgramPiece, target: VliwTarget) -> frozenset[str]:
    """Return the vector registers and predicates that a piece writes."""
    return frozenset(_vectors(cell for plan in plans_of(piece.bundles, target) for cell in plan.results))


def _vectors(cells: Iterable[RegisterCell]) -> set[str]:
    """Return the names of the vector registers and predicates among cells."""
    return {cell.name for cell in cells if cell.file in (File.V, File.VP)}


def text_of(piece: ProgramPiece) -> list[str]:
    """Return the items of a piece as canonical text, a line each."""
    return [_item(item) for item in piece.items]


def _item(item: Item) -> str:
    if isinstance(item, Bundle):
        return print_bundle(item)
    return f"{item.name}:" if isinstance(item, LabelDefinition) else item.text
