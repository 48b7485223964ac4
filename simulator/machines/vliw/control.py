"""Control flow: its static structure, and the path with program counter, delay bundles and hardware loops.

Meaning of LOOP, JMPR, JMPA and HALT: docs/reference/tpc.md section 7.1, control.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import is_

from castsim.execution.interpreter.rerolling import address_steps
from castsim.execution.tree import Block, Deltas, Loop, Node
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import EngineError, IllegalError, Span
from castsim.isa.tpc.parser import print_instruction
from castsim.isa.tpc.program import (
    BYTE,
    COMPARISONS,
    COMPRESSED,
    JUMPS,
    WORD_BITS,
    WORD_MASK,
    Bundle,
    Directive,
    File,
    Immediate,
    LabelUse,
    LoopComparison,
    Register,
    TpcInstruction,
    TpcProgram,
)
from castsim.machines.vliw.storage import RegisterCell, Registers
from castsim.targets.vliw import VliwTarget

# The static shape of a program's control flow: hardware loops, their nesting, and where jumps may go.
#
# Meaning of LOOP and the jumps: docs/reference/tpc.md section 7.1, control.

_PAIR = 2
"""Program addresses count bytes; the two bundles of a compressed pair occupy the space of one.

Source: docs/reference/tpc.md section 8.
"""


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A hardware loop: the bundle of LOOP, the first bundle of the body, the first one after it, nesting depth."""

    number: int
    head: int
    start: int
    end: int
    depth: int

    def holds(self, bundle: int) -> bool:
        """Return whether a bundle belongs to the body."""
        return self.start <= bundle < self.end


def nested(
    bodies: Sequence[tuple[int, int, int]],
    spans: Sequence[Span],
    limit: int,
    legal: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> tuple[LoopShape, ...]:
    """Return the loops of some bodies (head, start, end); errors list `legal`.

    Raises:
        IllegalError: a loop is nested in more than `limit` - 1 others, or crosses another.
    """
    loops = []
    for number, ((head, start, end), span) in enumerate(zip(bodies, spans, strict=True)):
        around = [last for _, first, last in bodies if first <= head < last]
        if len(around) >= limit:
            message = f"loops are nested {len(around) + 1} deep; the target has {limit} iterators"
            raise IllegalError(message, span=span, legal=legal[0])
        if any(end > last for last in around):
            raise IllegalError("the loop ends after its enclosing loop", span=span, legal=legal[1])
        loops.append(LoopShape(number, head, start, end, len(around)))
    return tuple(loops)


def innermost(loops: Sequence[LoopShape], index: int) -> LoopShape | None:
    """Return the innermost loop whose body contains a bundle; None if there is none."""
    return max((loop for loop in loops if loop.holds(index)), key=lambda loop: loop.depth, default=None)


def iterator(target: VliwTarget, depth: int) -> Register:
    """Return the register that counts the loops of a nesting depth."""
    return Register(File.S, target.registers.S - target.registers.loop_iterators + depth)


Jump = tuple[int, TpcInstruction]
"""The bundle of a jump, and the jump."""


class Structure:
    """Loops and jumps of a program, checked.

    `addresses` has the byte address of every bundle.

    Raises:
        IllegalError: a loop has no body, exceeds the program, is nested too deeply or crosses another; a jump exits the
            program or enters or leaves a loop body; a body writes its loop's iterator; bytes are not a
            bundle.
    """

    def __init__(self, program: TpcProgram, target: VliwTarget) -> None:
        self.bundles = program.bundles
        self._bundle_bytes = target.encoding.bundle_bytes
        *self.addresses, self._size = _addresses(program, self._bundle_bytes)
        self._at = {address: index for index, address in enumerate((*self.addresses, self._size))}
        self._labels = program.labels
        self._target = target
        heads = self._deciding(("loop",))
        bodies = [(index, *self._range(index, loop)) for index, loop in heads]
        self.loops = nested(bodies, [loop.span for _, loop in heads], target.registers.loop_iterators)
        self.by_head = {loop.head: loop for loop in self.loops}
        self.enclosing = tuple(
            tuple(loop.number for loop in sorted(self.loops, key=lambda loop: loop.depth) if loop.holds(index))
            for index in range(len(self.bundles) + 1)
        )
        for loop in self.loops:
            self._check_counters(loop)
        self.jumps = tuple(self._deciding(JUMPS))
        for index, jump in self.jumps:
            target_index = self.static_target(index, jump)
            if target_index is not None:
                self.check_jump(index, target_index, jump.span)

    def _deciding(self, mnemonics: Collection[str]) -> list[Jump]:
        """Return the instructions of some mnemonics that decide the next bundle, with their bundles."""
        return [
            (index, bundle.spu)
            for index, bundle in enumerate(self.bundles)
            if bundle.spu is not None and bundle.spu.mnemonic in mnemonics
        ]

    def static_target(self, index: int, jump: TpcInstruction) -> int | None:
        """Return the target bundle of a jump; None if a register gives it. For errors see `target_of`."""
        operand = jump.operand("src_a")
        if isinstance(operand, LabelUse):
            return self._labels[operand.name]
        return self.target_of(index, jump, operand.signed) if isinstance(operand, Immediate) else None

    def target_of(self, index: int, jump: TpcInstruction, distance: int) -> int:
        """Return the bundle at a byte distance from a jump, or at a byte address of the program.

        Outside the program, bundles count as full size.

        Raises:
            IllegalError: no bundle begins there.
        """
        address = distance if jump.mnemonic == "jmpa" else self.addresses[index] + distance
        if address in self._at:
            return self._at[address]
        size = self._bundle_bytes
        if distance % size:
            raise IllegalError(
                f"{jump.mnemonic} to {distance}: not a multiple of the {size} bytes of a bundle", span=jump.span
            )
        if 0 <= address < self._size:
            raise IllegalError(f"{jump.mnemonic} to {distance}: no bundle begins at {address:#x}", span=jump.span)
        return address // size if address < 0 else len(self.bundles) + (address - self._size) // size

    def check_jump(self, index: int, target: int, span: Span) -> None:
        """Reject a jump out of the program or across the boundary of a loop body.

        Raises:
            IllegalError: there is such a jump; the message names the rule.
        """
        if not 0 <= target < len(self.bundles):
            raise IllegalError(
                f"the jump to bundle {target} leaves the program", span=span, legal=(f"0 .. {len(self.bundles) - 1}",)
            )
        if self.enclosing[index] != self.enclosing[target]:
            raise IllegalError(f"the jump to bundle {target} enters or leaves a loop body", span=span)

    def _range(self, index: int, loop: TpcInstruction) -> tuple[int, int]:
        """Return the body of a loop as a range of bundles."""
        start = index + 1 + self._target.loop_rules.delay_bundles
        operand = loop.operand("end")
        if isinstance(operand, LabelUse):
            end = self._labels[operand.name]
        else:  # the encoded form: bytes from LOOP to the last bundle of the body
            assert isinstance(operand, Immediate)
            end = self.target_of(index, loop, operand.signed + self._bundle_bytes)
        if end <= start:
            raise IllegalError(
                f"the body of the loop is empty: it starts at bundle {start} and ends before bundle {end}",
                span=loop.span,
            )
        if end > len(self.bundles):
            raise IllegalError(
                f"the body of the loop ends past the end of the program, in bundle {end - 1}",
                span=loop.span,
                legal=(f"up to {len(self.bundles) - 1}",),
            )
        return start, end

    def _check_counters(self, loop: LoopShape) -> None:
        """Reject a body that writes the iterator of its loop; LOOP has latched bound and step.

        Source: the vendor's compiler leaves such loops to the hardware (docs/reference/tpc.md section 7.1, control).
        """
        iterator = self.iterator(loop.depth)
        for bundle in self.bundles[loop.start : loop.end]:
            for inner in bundle.slots:
                written = None if inner is None else inner.operand("dest")
                if inner is not None and written == iterator:
                    raise IllegalError(f"the body of the loop writes its own counter, {written}", span=inner.span)

    def iterator(self, depth: int) -> Register:
        """Return the register that counts the loops of a nesting depth."""
        return iterator(self._target, depth)


def _addresses(program: TpcProgram, bundle_bytes: int) -> list[int]:
    """Return the byte address of every bundle, and of the end.

    Raises:
        IllegalError: a directive is for bytes that are not a bundle.
    """
    addresses, address, halves = [], 0, 0
    for item in program.items:
        if isinstance(item, Bundle):
            addresses.append(address)
            address += bundle_bytes // _PAIR if halves else bundle_bytes
            halves = max(0, halves - 1)
        elif isinstance(item, Directive):
            name = item.name.lower()
            if name == BYTE:
                message = f"the bytes at {address:#x} are not a bundle of this generation"
                raise IllegalError(message, span=item.span)
            halves = _PAIR if name == COMPRESSED else halves
    return [*addresses, address]


def holds(sign: LoopComparison, left: int, right: int) -> bool:
    """Evaluate the condition of a LOOP on signed numbers."""
    return COMPARISONS[sign.sign](left, right)


def signed(word: int) -> int:
    """Return 32 bits as a two's complement number."""
    return word - (1 << WORD_BITS) if word >> (WORD_BITS - 1) else word


def trips_of(loop: TpcInstruction, start: int, bound: int, step: int, most: int) -> int:
    """Return the trips of a LOOP with these words, or `most` if there are that many or more."""
    compare = loop.operand("compare")
    assert isinstance(compare, LoopComparison)
    value, trips = signed(start), 0
    while trips < most and holds(compare, value, signed(bound)):
        value, trips = signed((value + step) & WORD_MASK), trips + 1
    return trips


def begins_loop(bundle: Bundle) -> bool:
    """Return whether a bundle contains LOOP, which is alone in its bundle."""
    return bundle.spu is not None and bundle.spu.mnemonic == "loop"


def described(bundle: Bundle) -> str:
    """Return the content of a bundle, for tables: `ld_l_v|convert.f32`."""
    if bundle.spu is not None and begins_loop(bundle):
        return print_instruction(bundle.spu)
    return "|".join(name_of(instruction) for instruction in bundle.slots if instruction is not None) or "nop"


def name_of(instruction: TpcInstruction | None) -> str:
    """Return mnemonic and type of an instruction, empty for an empty slot."""
    if instruction is None:
        return ""
    return instruction.mnemonic if instruction.type is None else f"{instruction.mnemonic}.{instruction.type}"


# Building the operation tree while a program runs: loops stay loops where their trips issue the same.


@dataclass(slots=True)
class _Frame:
    """A running loop, or the program: nodes so far, and the run of equal trips at their end.

    Only the first and the last trip of a run are stored; `steps` is how addresses move from trip to trip, `still` that
    they do not.
    """

    done: list[Node] = field(default_factory=list)
    trip: list[Node] = field(default_factory=list)
    first: Block | None = None
    last: Block | None = None
    steps: tuple[Deltas, ...] | None = None
    still: bool = False
    count: int = 0

    def end_trip(self) -> None:
        """Close a trip: another one of the run, or the first of a new run."""
        items, last = self.trip, self.last
        self.trip = []
        if self.still and last is not None and len(items) == len(last.items) and all(map(is_, items, last.items)):
            self.count += 1
            return
        trip = Block(tuple(items))
        steps = None if last is None else address_steps(last, trip)
        if steps is not None and self.steps in (None, steps):
            if self.steps is None:
                self.still = not any(map(any, steps))
            self.steps, self.last, self.count = steps, trip, self.count + 1
            return
        self.flush()
        self.first = self.last = trip
        self.count = 1

    def flush(self) -> None:
        """Move the run of trips to the finished nodes."""
        if self.first is not None:
            if self.steps is not None:
                self.done.append(Loop(self.count, self.first, self.steps))
            else:
                self.done.extend(self.first.items)
        self.first, self.last, self.steps, self.still, self.count = None, None, None, False, 0


class IssueTrace:
    """Receiver of the machine's issued bundles, in order."""

    def __init__(self) -> None:
        self._frames = [_Frame()]

    def add(self, node: Node) -> None:
        """Record one issued bundle."""
        self._frames[-1].trip.append(node)

    def open_loop(self) -> None:
        """Process the beginning of the first trip of a hardware loop."""
        self._frames.append(_Frame())

    def end_trip(self) -> None:
        """Process the end of a trip of the innermost loop."""
        self._frames[-1].end_trip()

    @property
    def stands_still(self) -> bool:
        """Whether the last trip of the innermost loop repeated the previous one at the same addresses."""
        return self._frames[-1].still

    def repeat(self, times: int) -> None:
        """Record more trips of the innermost loop that repeat the last one."""
        self._frames[-1].count += times

    def close_loop(self) -> None:
        """Process the end of the innermost loop."""
        frame = self._frames.pop()
        frame.flush()
        self._frames[-1].trip.extend(frame.done)

    def finish(self) -> Block:
        """Return the trace; loops that the program left at its end are closed."""
        while len(self._frames) > 1:
            self._frames[-1].end_trip()
            self.close_loop()
        return Block(tuple(self._frames[0].trip))


@dataclass(frozen=True, slots=True)
class RunningLoop:
    """A running loop: bound and step as they were at LOOP."""

    shape: LoopShape
    iterator: RegisterCell
    bound: int
    step: int
    compare: LoopComparison


@dataclass(slots=True)
class _Pending:
    """A jump after its delay bundles: the target, and the loop that begins there."""

    bundles: int
    target: int
    turn: RunningLoop | None = None
    jump: bool = False


class Control:
    """The position in the program. `changed_at` is the time of the last change of a value that can decide the path."""

    def __init__(self, structure: Structure, registers: Registers, trace: IssueTrace, target: VliwTarget) -> None:
        self.pc = 0
        self.changed_at = 0
        self.halted = False
        self._structure = structure
        self._registers = registers
        self._trace = trace
        self._jump_delay = target.jump_rules.delay_bundles
        self._loop_delay = target.loop_rules.delay_bundles
        self._pending: _Pending | None = None
        self._turns: list[RunningLoop] = []
        self._inside: tuple[int, ...] = ()
        self._visits: dict[int, int] = {}

    @property
    def ended(self) -> bool:
        """Whether nothing is left to issue."""
        return self.halted or self.pc >= len(self._structure.bundles)

    def jump(self, instruction: TpcInstruction, source: int | None) -> None:
        """Take a jump; `source` is the content of its register.

        Raises:
            IllegalError: it leaves the program or its loop, or is in a delay bundle.
        """
        self._refuse_in_delay(instruction)
        target = self._structure.static_target(self.pc, instruction)
        if target is None:
            assert source is not None
            distance = signed(source) if instruction.mnemonic == "jmpr" else source
            target = self._structure.target_of(self.pc, instruction, distance)
        self._structure.check_jump(self.pc, target, instruction.span)
        self._pending = _Pending(self._jump_delay, target, jump=True)

    def loop(self, instruction: TpcInstruction, bounds: dict[str, int], *, active: bool) -> RunningLoop | None:
        """Begin a hardware loop and return it; None if it has no trips.

        `bounds` are start, bound and step, `active` tells whether its predicate is true.

        Raises:
            IllegalError: it is in a delay bundle, or requests at most one repetition.
        """
        self._refuse_in_delay(instruction)
        once = instruction.operand("once")
        if isinstance(once, Immediate) and once.value:
            raise IllegalError("the last operand of LOOP is not documented", span=instruction.span, legal=("0",))
        shape = self._structure.by_head[self.pc]
        compare = instruction.operand("compare")
        assert isinstance(compare, LoopComparison)
        if not active:
            self._pending = _Pending(self._loop_delay, shape.end)
            return None
        (iterator,) = self._registers.cells(self._structure.iterator(shape.depth))
        iterator.set(bounds["start"])
        turn = RunningLoop(shape, iterator, signed(bounds["bound"]), bounds["step"], compare)
        if holds(compare, signed(bounds["start"]), turn.bound):
            self._pending = _Pending(self._loop_delay, shape.start, turn)
            return turn
        self._pending = _Pending(self._loop_delay, shape.end)
        return None

    @property
    def jumping(self) -> bool:
        """Whether the current bundle is the last delay bundle of a taken jump."""
        return self._pending is not None and self._pending.bundles == 0 and self._pending.jump

    def advance(self, now: int, horizon: int) -> RunningLoop | None:
        """Advance to the next bundle, past ends of loop bodies; return the loop of which another trip begins, if any.

        Raises:
            EngineError: the program was here before, and no value that can decide the path has changed since.
            IllegalError: the program enters the body of a loop that it has not begun.
        """
        before = self.pc
        self.pc += 1
        pending = self._pending
        if pending is not None:
            if pending.bundles == 0:
                self.pc, self._pending = pending.target, None
                if pending.turn is not None:
                    self._turns.append(pending.turn)
                    self._inside = (*self._inside, pending.turn.shape.number)
                    self._trace.open_loop()
            else:
                pending.bundles -= 1
        turn = self._turn_around(now) if self._pending is None else None
        if self.pc <= before:
            self._notice_endless(now, horizon)
        self._check_place()
        return turn

    def pass_time(self, since: int, cycles: int) -> None:
        """Record that the events since a time repeat until `cycles` later."""
        self._visits.update({pc: time + cycles for pc, time in self._visits.items() if time >= since})
        if self.changed_at >= since:
            self.changed_at += cycles

    def _turn_around(self, now: int) -> RunningLoop | None:
        """At the end of a loop body: begin its next trip or leave it; loops may end together."""
        while self._turns and self.pc == self._turns[-1].shape.end:
            turn = self._turns[-1]
            value = turn.iterator.newest
            assert isinstance(value, int)
            following = (value + turn.step) & WORD_MASK
            turn.iterator.set(following)
            if turn.step & WORD_MASK:
                self.changed_at = now
            self._trace.end_trip()
            if holds(turn.compare, signed(following), turn.bound):
                self.pc = turn.shape.start
                return turn
            self._turns.pop()
            self._inside = self._inside[:-1]
            self._trace.close_loop()
        return None

    def _notice_endless(self, now: int, horizon: int) -> None:
        """Detect a return to an earlier position without a change that could lead elsewhere."""
        visited = self._visits.get(self.pc)
        if visited is not None and self.changed_at + horizon < visited:
            span = self._structure.bundles[self.pc].span
            raise EngineError(
                f"the program never ends: it is back at bundle {self.pc} in the same state",
                span=span,
            )
        self._visits[self.pc] = now

    def _check_place(self) -> None:
        if self.pc < len(self._structure.bundles) and self._structure.enclosing[self.pc] != self._inside:
            bundle = self._structure.bundles[self.pc]
            raise IllegalError(f"the program enters or leaves a loop body at bundle {self.pc}", span=bundle.span)

    def _refuse_in_delay(self, instruction: TpcInstruction) -> None:
        if self._pending is not None:
            raise IllegalError(
                f"{instruction.mnemonic} is in the delay bundle of a jump or loop", span=instruction.span
            )
