"""Basic blocks of a text, its loops, and which block may follow which."""

from __future__ import annotations

from dataclasses import dataclass, field

from castsim.isa.errors import IllegalError
from castsim.isa.tpc import LabelUse, Register, TpcInstruction
from castsim.isa.tpc.program import JUMPS, File
from castsim.machines.vliw.registers import is_constant
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.scheduling.operations import Operation


@dataclass(eq=False, slots=True)
class Block:
    """Instructions that are executed one after the other; `end` is the one that decides what follows, if any."""

    labels: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    end: Operation | None = None

    @property
    def all(self) -> list[Operation]:
        """The instructions with the last one."""
        return [*self.operations, *([self.end] if self.end else [])]


@dataclass(frozen=True, slots=True)
class BlockLoop:
    """A hardware loop: the block that LOOP ends, the first block of the body, the first behind it, the depth."""

    head: int
    start: int
    end: int
    depth: int

    def holds(self, block: int) -> bool:
        """Whether a block belongs to the body."""
        return self.start <= block < self.end


@dataclass(frozen=True, slots=True)
class Step:
    """A step from one block to another; `back` if it begins another trip of a hardware loop."""

    first: int
    second: int
    back: bool = False


class Shape:
    """The blocks of a text with their loops and steps.

    Raises:
        IllegalError: loops that cross or are nested too deep; a jump into or out of a loop body.
    """

    def __init__(self, blocks: list[Block], target: VliwTarget) -> None:
        self.blocks = blocks
        self._target = target
        self._at = {label: number for number, block in enumerate(blocks) for label in block.labels}
        self.loops = self._loops()
        self._check_jumps()
        self.steps = tuple(step for number in range(len(blocks)) for step in self._behind(number))
        self.into: tuple[tuple[Step, ...], ...] = tuple(
            tuple(step for step in self.steps if step.second == number) for number in range(len(blocks))
        )

    def iterator(self, loop: BlockLoop) -> str:
        """Return the register that counts a loop."""
        sizes = self._target.registers
        return str(Register(File.S, sizes.S - sizes.loop_iterators + loop.depth))

    def goal(self, jump: Operation) -> int:
        """Return the block that a jump goes to."""
        return self._at[_goal(jump.instruction, "src_a")]

    def _loops(self) -> tuple[BlockLoop, ...]:
        ranges = []
        for number, block in enumerate(self.blocks):
            if block.end is not None and block.end.mnemonic == "loop":
                ranges.append((number, number + 1, self._at[_goal(block.end.instruction, "end")]))
        found = []
        for head, start, end in ranges:
            outside = [(s, e) for _, s, e in ranges if s <= head < e]
            operation = self.blocks[head].end
            assert operation is not None
            limit = self._target.registers.loop_iterators
            if len(outside) >= limit:
                message = f"loops are nested {len(outside) + 1} deep; there are {limit} iterators"
                raise IllegalError(message, span=operation.span, legal=(f"up to {limit} loops inside each other",))
            if any(end > e for _, e in outside):
                legal = ("an end before that of the loop around it, or the same",)
                raise IllegalError("the loop ends after the loop around it", span=operation.span, legal=legal)
            found.append(BlockLoop(head, start, end, len(outside)))
        return tuple(found)

    def _check_jumps(self) -> None:
        """Reject jumps into and out of loop bodies."""
        for number, block in enumerate(self.blocks):
            if block.end is None or not is_jump(block.end):
                continue
            name, goal = _goal(block.end.instruction, "src_a"), self.goal(block.end)
            if self._bodies(number) != self._bodies(goal):
                message = f"the jump to '{name}' crosses the border of a loop body; the label at its end is outside"
                inside = [label for label, place in self._at.items() if self._bodies(place) == self._bodies(number)]
                legal = (", ".join(inside) or "a label between the same loops as the jump",)
                raise IllegalError(message, span=block.end.span, legal=legal)

    def _bodies(self, block: int) -> list[BlockLoop]:
        """Return the loops to whose bodies a block belongs."""
        return [loop for loop in self.loops if loop.holds(block)]

    def _behind(self, number: int) -> list[Step]:
        end = self.blocks[number].end
        found: list[Step] = []
        if end is None:
            return self._arrivals(number, number + 1)
        if end.mnemonic == "halt":
            return []
        if end.mnemonic == "loop":
            loop = next(each for each in self.loops if each.head == number)
            return [Step(number, loop.start), *self._arrivals(number, loop.end)]
        found = self._arrivals(number, self._at[_goal(end.instruction, "src_a")])
        predicate = end.instruction.predicate
        sure = predicate is None or (is_constant(predicate.register) and not predicate.inverted)
        return found if sure else [*found, *self._arrivals(number, number + 1)]

    def _arrivals(self, number: int, following: int) -> list[Step]:
        """Return where a step leads: the end of a body leads to its start and on to what follows."""
        ending = sorted((each for each in self.loops if each.end == following), key=lambda each: -each.depth)
        found = [Step(number, loop.start, back=True) for loop in ending if loop.holds(number)]
        return [*found, *([Step(number, following)] if following < len(self.blocks) else [])]


def blocks_of(operations: list[Operation], labels: dict[int, list[str]]) -> list[Block]:
    """Cut a text at labels (by the number of the instruction that they stand before) and behind ends of blocks.

    The last block is empty or ends the program; behind LOOP, a jump and HALT always begins a block.
    """
    found = [Block()]
    ends = {_goal(each.instruction, "end"): n for n, each in enumerate(operations) if each.mnemonic == "loop"}

    def begin(number: int) -> None:
        here, names = labels.get(number, []), list[str]()
        inner_first = sorted((name for name in here if name in ends), key=ends.__getitem__, reverse=True)
        if inner_first != [name for name in here if name in ends]:  # labels of one place, the outer loop's first
            here = [*inner_first, *(name for name in here if name not in ends)]
        for name in here:
            if name in ends and names:  # inside the body until here: a jump over what ends it stays inside
                found.append(Block(names))
                names = []
            names = [*names, name]
        if names:
            found.append(Block(names))

    for number, operation in enumerate(operations):
        begin(number)
        if operation.ends_block:
            found[-1].end = operation
            found.append(Block())
        else:
            found[-1].operations.append(operation)
    begin(len(operations))
    return found


def _goal(instruction: TpcInstruction, role: str) -> str:
    label = instruction.operand(role)
    assert isinstance(label, LabelUse)
    return label.name


def is_jump(operation: Operation) -> bool:
    """Whether an instruction is a jump."""
    return operation.mnemonic in JUMPS
