"""The tree with its flags and barriers put in, and where each of them stands in the source."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from castsim.execution.dataflow.operations import Barrier, SetFlag, WaitFlag
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Node, Operation, Tree, elements, width
from castsim.isa.errors import Span
from castsim.synchronisation.flags.events import assign_events
from castsim.synchronisation.flags.planning import BackEdge, BlockPlan, LoopPlan, PlannedFlag, plan_program
from castsim.targets.dataflow import DataflowTarget

_ALL = "ALL"


class Place(StrEnum):
    """The place of an inserted instruction, seen from the source line that it belongs to."""

    BEFORE = "before"
    AFTER = "after"
    AFTER_LOOP = "after loop"
    TOP = "top of each trip"
    AT_END = "end"


@dataclass(frozen=True, slots=True)
class Note:
    """An inserted instruction: its number in the tree, where it stands, and how often it is executed."""

    instruction: int
    place: Place
    span: Span
    times: int


@dataclass(frozen=True, slots=True)
class Synchronised:
    """A tree with synchronisation, and what was inserted, in program order."""

    tree: Tree
    notes: tuple[Note, ...]


def insert(tree: Tree, target: DataflowTarget) -> Synchronised:
    """Insert flags and barriers into a program without any; see the package for the rules.

    The instructions of the new tree are those of the old one with the inserted ones behind them.
    """
    root = _flat(tree.root)
    plan = plan_program(root, tree.instructions, target)
    assign_events(plan, target.pipes.event_ids)
    builder = _Builder(list(tree.instructions), target)
    items, _ = builder.block(root, LoopPlan(plan), 1)
    last = builder.last_span(root)
    if last is not None:
        items.append(builder.emit(Barrier(_ALL), Place.AT_END, last, 1))
    notes = tuple(Note(number, place, span, times) for (number, place, span), times in builder.notes.items())
    return Synchronised(Tree(Block(tuple(items)), tuple(builder.instructions), False), notes)


def _flat(block: Block) -> Block:
    """Return the block without blocks directly inside, so that all that follow each other stand in one."""
    items: list[Node] = []
    for item in block.items:
        if isinstance(item, Block):
            items += _flat(item).items
        else:
            items.append(Loop(item.trips, _flat(item.body), item.steps) if isinstance(item, Loop) else item)
    return Block(tuple(items))


@dataclass(slots=True)
class _Builder:
    instructions: list[Instruction]
    target: DataflowTarget
    notes: dict[tuple[int, Place, Span], int] = field(default_factory=dict)
    """The number of executions of each inserted instruction at each place."""
    numbers: dict[tuple[Operation, Span], Lowered] = field(default_factory=dict)
    """The instructions emitted for each operation at each line: walked loops repeat both."""

    def block(self, block: Block, plan: LoopPlan, times: int) -> tuple[list[Node], list[int | None]]:
        """Return the items of a block with what is planned for it, and for each new element the old one's number.

        `plan` is that of the loop whose body the block is; `times` says how often it is executed.
        """
        made = _Made(self, times, plan)
        start = 0
        for number, item in enumerate(block.items):
            if number == 0:
                made.top(self.span_of(item))
            made.before(number, item)
            if isinstance(item, Loop):
                loop, origins = self._loop(item, plan.body.loops[number], times)
                made.add(loop, [None if origin is None else start + origin for origin in origins])
            else:
                made.add(item, list(range(start, start + width(item))))
            made.after(number, item)
            start += width(item)
        return made.items, made.origins

    def _loop(self, loop: Loop, plan: LoopPlan, times: int) -> tuple[Loop, list[int | None]]:
        items, origins = self.block(loop.body, plan, times * loop.trips)
        steps = tuple(() if origin is None else loop.steps[origin] for origin in origins)
        return Loop(loop.trips, Block(tuple(items)), steps), origins

    def emit(self, operation: SetFlag | WaitFlag | Barrier, place: Place, span: Span, times: int) -> Lowered:
        """Return an instruction at a line of the source, the same one as before if it has been there."""
        lowered = self.numbers.get((operation, span))
        if lowered is None:
            mnemonic, text, spelling = _named(operation)
            pipe = _pipe(operation, self.target)
            instruction = Instruction(text, pipe, span, inserted=True, mnemonic=mnemonic, spelling=spelling)
            lowered = self.numbers[operation, span] = Lowered(len(self.instructions), Block((operation,)))
            self.instructions.append(instruction)
        key = (lowered.instruction, place, span)
        self.notes[key] = self.notes.get(key, 0) + times
        return lowered

    def span_of(self, item: Node) -> Span:
        """Return the place of the first instruction of an item; of a loop that is its head."""
        first = next(element for element in elements(item) if isinstance(element, Lowered))
        return self.instructions[first.instruction].span

    def last_span(self, root: Block) -> Span | None:
        """Return the place of the last instruction in the source, None for an empty program."""
        spans = [self.instructions[e.instruction].span for e in elements(root) if isinstance(e, Lowered)]
        return max(spans, key=lambda span: (span.line, span.column), default=None)


@dataclass(slots=True)
class _Made:
    """A block under construction."""

    builder: _Builder
    times: int
    plan: LoopPlan
    items: list[Node] = field(default_factory=list)
    origins: list[int | None] = field(default_factory=list)
    waited: dict[int, list[PlannedFlag]] = field(default_factory=dict)
    signalled: dict[int, list[PlannedFlag | BackEdge]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for flag in self.plan.body.flags:
            self.waited.setdefault(flag.before, []).append(flag)
            self.signalled.setdefault(flag.after, []).append(flag)
        for edge in self.plan.back_edges:
            self.signalled.setdefault(edge.after, []).append(edge)

    def add(self, item: Node, origins: list[int | None] | list[int]) -> None:
        """Append an item of the old block."""
        self.items.append(item)
        self.origins += origins

    def top(self, span: Span) -> None:
        """Append what stands at the top of each trip."""
        for edge in self.plan.back_edges:
            self._put(_wait(edge), Place.TOP, span)
        if self.plan.drain_at_top:
            self._put(Barrier(_ALL), Place.TOP, span)

    def before(self, number: int, item: Node) -> None:
        """Append what stands before an item: waits first, then barriers, then the first signals of a loop."""
        body = self.plan.body
        found: list[SetFlag | WaitFlag | Barrier] = [_wait(flag) for flag in self.waited.get(number, ())]
        found += [Barrier(_ALL)] if number in body.drains else []
        found += [Barrier(self.builder.target.pipes.vector)] if number in body.barriers else []
        found += [_set(edge) for edge in _edges(body, number)]
        for operation in found:
            self._put(operation, Place.BEFORE, self.builder.span_of(item))

    def after(self, number: int, item: Node) -> None:
        """Append what stands behind an item: the last signals of a loop are consumed, then others are set."""
        found: list[SetFlag | WaitFlag] = [_wait(edge) for edge in _edges(self.plan.body, number)]
        found += [_set(flag) for flag in self.signalled.get(number, ())]
        for operation in found:
            place = Place.AFTER_LOOP if isinstance(item, Loop) else Place.AFTER
            self._put(operation, place, self.builder.span_of(item))

    def _put(self, operation: SetFlag | WaitFlag | Barrier, place: Place, span: Span) -> None:
        self.items.append(self.builder.emit(operation, place, span, self.times))
        self.origins += _NEW


_NEW = (None, None)
"""An inserted instruction and its one operation are new elements; neither has addresses."""


def _edges(plan: BlockPlan, number: int) -> list[BackEdge]:
    return plan.loops[number].back_edges if number in plan.loops else []


def _set(flag: PlannedFlag | BackEdge) -> SetFlag:
    signaller, waiter = flag.pair
    return SetFlag(signaller, waiter, flag.event)


def _wait(flag: PlannedFlag | BackEdge) -> WaitFlag:
    signaller, waiter = flag.pair
    return WaitFlag(waiter, signaller, flag.event)


def _named(operation: SetFlag | WaitFlag | Barrier) -> tuple[str, str, str]:
    """Return the mnemonic of an instruction, its text as that of one in the source, and how a program spells it."""
    match operation:
        case SetFlag(signaller, waiter, event):
            name = "set_flag"
        case WaitFlag(waiter, signaller, event):
            name = "wait_flag"
        case _:
            return "barrier", f"barrier {operation.pipe}", f"pto.barrier <PIPE_{operation.pipe}>"
    spelling = f"pto.{name}[<PIPE_{signaller}>, <PIPE_{waiter}>, <EVENT_ID{event}>]"
    return name, f"{name} {signaller} -> {waiter} id {event}", spelling


def _pipe(operation: SetFlag | WaitFlag | Barrier, target: DataflowTarget) -> str:
    return target.pipes.scalar if operation.pipe == _ALL else operation.pipe
