"""Navigation through a recorded run, from stop to stop, forwards and backwards.

The program can stop before every step of a run: everything before the step in program order has been executed
completely, the step and what follows has not. The cycle of the stop is the one in which the step starts; pipes work
in parallel, so these cycles do not always rise from step to step.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from castsim.engines import ENGINES, observe
from castsim.execution.interpreter.vector_unit import BytePointer
from castsim.execution.pipe_operations import NO_VALUES, Idle
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.timing import Cause, IgnoresBlocks
from castsim.execution.tree import GlobalSpace, Instruction, Lowered, Tile, Tree, instances
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import LimitError, ReadError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.pto.value_types import MaskType, MicroOperation, VectorType, element_format, held_element
from castsim.isa.tpc.program import File, TensorDeclaration, VlmDeclaration
from castsim.reports.launches import sent_cycles
from castsim.running.loaded import Inputs, LoadedProgram
from castsim.running.program_runs import Result, RunConfig, run_loaded
from castsim.targets.loader import Target
from castsim.tools.debugger.step_recording import (
    BUFFER,
    Bytes,
    ElementPlace,
    StepRecording,
    argument_place,
    dense,
    global_space,
    part_place,
    tile_place,
)
from castsim.tools.debugger.stops import (
    Breakpoint,
    Breakpoints,
    ScalarVisits,
    SelectedElements,
    Selection,
    StopCondition,
    Symbols,
    parse_condition,
    regions_of,
    selected,
)

# A recorded run: its operations with their cycles, the memories at its start, and what each operation changes.

MOST_STEPS = 5_000_000
"""Maximum number of operations of a run that can be stepped through."""


class TraceStep(NamedTuple):
    """One executed operation: an index into `Trace.instructions`, its cycles, its change in the journal (-1: none)."""

    instruction: int
    start: int
    end: int
    change: int


@dataclass(slots=True)
class Trace:
    """A recorded run. `memories` and `registers` are initially those of its start, and change as it is played."""

    result: Result
    recording: StepRecording
    instructions: list[Instruction]
    steps: list[TraceStep] = field(default_factory=list)
    symbols: Symbols = field(default_factory=Symbols)
    regions: Mapping[int, int] = field(default_factory=dict)
    """The last line of the body, by the first line of a loop or section."""

    @property
    def file(self) -> str:
        """The name of the program's file, as given."""
        return self.result.loaded.file

    @property
    def memories(self) -> dict[str, Bytes]:
        """Bytes by the names of memories."""
        return self.recording.initial

    @property
    def registers(self) -> dict[str, object]:
        """Values by the names of registers."""
        return self.recording.registers

    @property
    def timed(self) -> bool:
        """Whether the program's cycles are modelled."""
        return not self.result.untimed

    def apply(self, step: int, *, back: bool) -> None:
        """Apply the changes of an operation, or revert them."""
        change = self.steps[step].change
        if change >= 0:
            self.recording.journal.apply(change, self.memories, self.registers, back=back)

    def line(self, step: int) -> int:
        """Return the line of an operation; after the last one, that of the last."""
        if not self.steps:
            return 1
        return self.instructions[self.steps[min(step, len(self.steps) - 1)].instruction].span.line

    def cycle(self, step: int) -> int:
        """Return the cycle in which an operation starts; after the last one, the cycles of the run."""
        return self.steps[step].start if step < len(self.steps) else self.result.timing.total


def record(
    loaded: LoadedProgram, inputs: Inputs, *, engine: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Trace:
    """Run a program once, recording everything needed to step through it in both directions.

    Raises:
        CastsimError, EngineError: see `castsim.running.program_runs.run_loaded`.
        LimitError: it is too long to step through.
    """
    recording = StepRecording()
    result = run_loaded(loaded, inputs, engine=engine, limits=limits, watch=recording)
    trace = Trace(result, recording, list(result.loaded.tree.instructions))
    if recording.core is not None:
        _assembly(trace)
    elif recording.seen:
        _micro(trace)
    else:
        _tiles(trace)
    trace.regions = regions_of(result.loaded, recording.core)
    return trace


def _add(trace: Trace, instruction: int, start: int, end: int, change: int) -> None:
    if len(trace.steps) == MOST_STEPS:
        raise LimitError(f"more than {MOST_STEPS} operations are too many to step through", legal=("a smaller run",))
    trace.steps.append(TraceStep(instruction, start, end, change))


# -------------------------------------------------------------------------------------------------------------- tiles


def _tiles(trace: Trace) -> None:
    tree, executions = trace.result.loaded.tree, iter(trace.result.timing.executions)
    idle, change = Idle(NO_VALUES), 0
    _name_arguments(trace)
    mentions: dict[int, list[_Mention]] = {}
    for lowered, deltas in instances(tree):
        execution = next(executions)
        own = -1
        if not idle(lowered):
            own, change = change, change + 1
        if tree.instructions[lowered.instruction].inserted:
            continue
        if id(lowered) not in mentions:
            mentions[id(lowered)] = _mentions(lowered)
        for name, kind, location, access in mentions[id(lowered)]:
            delta = 0 if deltas is None or access is None else deltas[0][access]
            trace.symbols.mention(name, kind, len(trace.steps), location.moved(delta))
        _add(trace, lowered.instruction, execution.start, execution.end, own)
    assert change == len(trace.recording.journal)


def _name_arguments(trace: Trace) -> None:
    symbols, memories = trace.symbols, trace.memories
    for name, use in trace.result.loaded.arguments.items():
        memory = memories.get(global_space(name))
        if memory is not None:
            symbols.fixed[name] = argument_place(name, use, memory)
    symbols.raw[BUFFER] = dense(BUFFER, 0, (memories[BUFFER].size,), FORMATS["u8"])


class _Mention(NamedTuple):
    """An operand of an instruction: its position, and the access that moves with it."""

    name: str
    kind: str
    place: ElementPlace
    access: int | None


def _mentions(lowered: Lowered) -> list[_Mention]:
    """Return the positions of an instruction's operands before any loop has moved them."""
    mentions = []
    for name, operand in lowered.operands:
        if isinstance(operand, Tile):
            kind, location, space, start, end = "tile", tile_place(operand), BUFFER, operand.address, operand.end
        else:
            kind, location = "tensor", part_place(operand)
            space, start, end = GlobalSpace.of(operand.argument), 0, sys.maxsize
        moving = (
            n for n, access in enumerate(lowered.accesses) if access.space == space and start <= access.start < end
        )
        mentions.append(_Mention(name, kind, location, next(moving, None)))
    return mentions


# -------------------------------------------------------------------------------------------------------------- micro


def _micro(trace: Trace) -> None:
    """Join the operations of the value walk to the timed ones outside vector functions."""
    numbers: dict[int, int] = {}
    issued = iter(_issued(trace))
    following = next(issued, None)
    inside: Iterator[int] = iter(())
    latest = 0
    _name_arguments(trace)
    for change, seen in enumerate(trace.recording.seen):
        node = seen.node
        number = numbers.get(id(node))
        if number is None:
            number = numbers[id(node)] = len(trace.instructions)
            name = getattr(node, "mnemonic", type(node).__name__.lower())
            trace.instructions.append(Instruction(name, "V", node.span, mnemonic=name))
        start = end = latest
        if seen.inside:
            start = end = next(inside, latest)
        elif following is not None and following.span == node.span.line:
            start, end, inside = following.start, following.end, iter(following.inside)
            trace.instructions[number] = following.instruction
            following = next(issued, None)
        latest = start
        _mention_registers(trace, node, seen.pointers)
        _add(trace, number, start, end, change)


class _Issued(NamedTuple):
    instruction: Instruction
    span: int
    start: int
    end: int
    inside: list[int]


def _issued(trace: Trace) -> Iterator[_Issued]:
    """Yield the timed operations, with the cycles in which the front end sends the instructions of vector functions."""
    loaded, executions = trace.result.loaded, trace.result.timing.executions
    for number, (lowered, _) in enumerate(instances(loaded.tree)):
        instruction = loaded.tree.instructions[lowered.instruction]
        timed = executions[number] if trace.timed else None
        start, end = (0, 0) if timed is None else (timed.start, timed.end)
        inside = [start + cycle for cycle in sent_cycles(lowered, loaded.target)] if trace.timed else []
        yield _Issued(instruction, instruction.span.line, start, end, inside)


def _mention_registers(trace: Trace, node: object, pointers: tuple[tuple[str, BytePointer], ...]) -> None:
    symbols, step = trace.symbols, len(trace.steps)
    for name, pointer in pointers:
        fmt = format_named(held_element(pointer.element)) if pointer.element else FORMATS["u8"]
        space = BUFFER if pointer.argument is None else global_space(pointer.argument)
        if pointer.argument == name:
            continue
        left = (trace.memories[space].size - pointer.address) * 8 // dense(space, 0, (1,), fmt).strides[0]
        symbols.mention(name, "pointer", step, dense(space, pointer.address, (max(left, 0),), fmt))
    if isinstance(node, MicroOperation):
        for name, kind in zip(node.results, node.result_types, strict=True):
            if isinstance(kind, VectorType):
                fmt = element_format(kind.element)
                symbols.formats[name] = FORMATS.get(held_element(kind.element)) or FORMATS[f"u{fmt.storage_bits}"]
            elif isinstance(kind, MaskType):
                symbols.formats[name] = FORMATS[f"u{kind.bits}"]


# ------------------------------------------------------------------------------------------------------------ bundles

_DEFAULTS = {File.V: "i32", File.S: "i32", File.I: "i32", File.AD: "u64", File.SP: "bool", File.VP: "bool"}
"""Default formats for showing assembly registers."""


def _assembly(trace: Trace) -> None:
    core = trace.recording.core
    assert core is not None
    uses, symbols = trace.result.loaded.arguments, trace.symbols
    for declaration in core.program.declarations:
        if isinstance(declaration, TensorDeclaration | VlmDeclaration):
            fmt, shape = format_named(declaration.format), uses[declaration.name].shape
            if isinstance(declaration, VlmDeclaration):
                symbols.fixed[declaration.name] = dense("vlm", declaration.address, shape, fmt)
            else:
                symbols.fixed[declaration.name] = dense(global_space(declaration.name), 0, shape, fmt, fmt.storage_bits)
    for name, file in trace.recording.files.items():
        plain = "bool" if isinstance(trace.registers[name], bool) else "i32"
        symbols.formats[name] = FORMATS[plain if file is None else _DEFAULTS.get(file, plain)]
    for name in ("vlm", "slm"):
        symbols.raw[name] = dense(name, 0, (trace.memories[name].size,), FORMATS["u8"])
    for change, (index, execution) in enumerate(
        zip(trace.recording.bundles, trace.result.timing.executions, strict=True)
    ):
        assert execution.instruction == index
        _add(trace, index, execution.start, execution.end, change)


# What the pipes do in a cycle, asked of an engine when somebody wants to know.


class PipeStates(IgnoresBlocks):
    """Causes of every pipe's cycles; an observer of one run."""

    def __init__(self, tree: Tree, target: Target) -> None:
        self._segments: dict[str, list[tuple[int, int, Cause]]] = {}
        self.until: int | None = None
        """Infinite, because the whole run is recorded."""
        observe(tree, target, self)
        for segments in self._segments.values():
            segments.sort(key=lambda segment: segment[:2])
        self._starts = {pipe: [start for start, _, _ in spans] for pipe, spans in self._segments.items()}

    def progress(self, cycle: int, operations: int) -> None:
        """Ignore the progress."""

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Store a segment."""
        del operation
        self._segments.setdefault(pipe, []).append((start, end, cause))

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Ignore a block."""

    def at(self, pipe: str, cycle: int) -> Cause:
        """Return the cause of a pipe's cycle; outside the run the pipe has nothing to do."""
        index = bisect_right(self._starts.get(pipe, []), cycle) - 1
        if index < 0:
            return Cause.EMPTY
        _, end, cause = self._segments[pipe][index]
        return cause if cycle < end else Cause.EMPTY

    def all(self, cycle: int) -> Mapping[str, Cause]:
        """Return the cause of every pipe's cycle."""
        return {pipe: self.at(pipe, cycle) for pipe in self._segments}


@dataclass(slots=True)
class Stepper:
    """A recorded run, stopped before step `position`; after its last step it has ended."""

    trace: Trace
    position: int = 0
    breakpoints: Breakpoints = field(init=False)
    lines: list[int] = field(init=False)
    args: Mapping[str, int | float] = field(default_factory=dict)
    """Values of scalar arguments."""
    _positions: dict[int, list[int]] = field(init=False)
    _pipes: PipeStates | None = None
    _scalars: ScalarVisits | None = None

    def __post_init__(self) -> None:
        self.lines = [self.trace.instructions[step.instruction].span.line for step in self.trace.steps]
        self._positions = {}
        for position, line in enumerate(self.lines):
            self._positions.setdefault(line, []).append(position)
        self.breakpoints = Breakpoints(self.lines)

    # ------------------------------------------------------------------------------------------------------- the stop

    @property
    def ended(self) -> bool:
        """Whether every operation has been executed."""
        return self.position == len(self.lines)

    @property
    def line(self) -> int:
        """The line of the next operation; at the end, that of the last one."""
        return self.trace.line(self.position)

    @property
    def cycle(self) -> int:
        """The cycle in which the next operation starts; at the end, the cycles of the run."""
        return self.trace.cycle(self.position)

    def elements(self, selection: Selection) -> SelectedElements:
        """Return the current elements of a selection. Raises the errors of `symbols.selected`."""
        trace = self.trace
        return selected(selection, trace.symbols, self.position, trace.memories, trace.registers)

    @property
    def pipes(self) -> PipeStates:
        """Activity of the pipes, cycle by cycle.

        Raises:
            ReadError: the cycles of the program are not modelled.
        """
        if self._pipes is None:
            self.check_timed()
            loaded = self.trace.result.loaded
            self._pipes = PipeStates(loaded.tree, loaded.target)
        return self._pipes

    def scalars(self) -> Mapping[str, int | float]:
        """Return the known scalars before the next operation; empty at the end."""
        if self.ended or self.trace.recording.core is not None:
            return {}
        if self._scalars is None:
            self._scalars = ScalarVisits(self.trace.result.loaded, self.args)
        places = self._positions[self.line]
        return self._scalars.at(self.line, bisect_left(places, self.position), len(places))

    def bytes_of(self, name: str, offset: int, count: int) -> tuple[int, bytes]:
        """Return the position of a name in its memory, and bytes from there.

        Raises:
            ReadError: no memory has this name, or it begins within a byte.
        """
        location = self.trace.symbols.at(name, self.position)
        if location is None or location.offset % 8:
            raise ReadError(f"'{name}' is not in memory", legal=self.trace.symbols.names())
        start = location.offset // 8
        return start, self.trace.memories[location.space][max(0, start + offset) :][:count].tobytes()

    def pipe(self, name: str) -> str:
        """Return the cause of a pipe's cycle at the stop."""
        return self.pipes.at(name, self.cycle).value

    def check_timed(self) -> None:
        """Reject a request for cycles of a program that has none.

        Raises:
            ReadError: the program has no cycles.
        """
        if not self.trace.timed:
            raise ReadError(f"the program has no cycles: {self.trace.result.untimed}")

    # ---------------------------------------------------------------------------------------------------------- moves

    def go_to(self, position: int) -> None:
        """Execute or revert operations until a step is the next."""
        position = max(0, min(position, len(self.lines)))
        while self.position < position:
            self.trace.apply(self.position, back=False)
            self.position += 1
        while self.position > position:
            self.position -= 1
            self.trace.apply(self.position, back=True)

    def step(self) -> None:
        """Execute one operation."""
        self.go_to(self.position + 1)

    def reverse_step(self) -> None:
        """Revert one operation."""
        self.go_to(self.position - 1)

    def next(self) -> None:
        """Execute the rest of a line with all its trips, for a loop or section its body; breakpoints are ignored."""
        if not self.ended:
            self.go_to(self._last_of_line() + 1)

    def step_over(self) -> None:
        """Execute the operations of a line in one trip, up to the next line, or the next trip of a one-line loop."""
        if self.ended:
            return
        line, last, position = self.line, self.trace.steps[self.position].instruction, self.position + 1
        while position < len(self.lines) and self.lines[position] == line:
            instruction = self.trace.steps[position].instruction
            if instruction <= last:
                break
            last, position = instruction, position + 1
        self.go_to(position)

    def step_out(self) -> Breakpoint | None:
        """Execute the rest of the innermost loop or section, or of the function, or up to a breakpoint; return that."""
        around = [(head, last) for head, last in self.trace.regions.items() if head < self.line <= last]
        head, last = max(around, default=(0, max(self.lines, default=0)))
        position = self.position
        while position < len(self.lines) and head <= self.lines[position] <= last:
            position += 1
        return self._run(1, position)

    def reverse_next(self) -> None:
        """Revert the line of the previous operation with all its trips: continue to where it was first executed."""
        if self.position:
            line = self.lines[self.position - 1]
            self.go_to(self._positions[line][0])

    def _last_of_line(self) -> int:
        """Return the last execution of the next operation's line, or of a line in its body."""
        line = self.line
        last = self.trace.regions.get(line, line)
        return max(self._positions[line_number][-1] for line_number in self._positions if line <= line_number <= last)

    def run(self) -> Breakpoint | None:
        """Execute up to the next breakpoint, or to the end; return the breakpoint."""
        return self._run(1)

    def reverse_run(self) -> Breakpoint | None:
        """Revert to the previous breakpoint, or to the start; return the breakpoint."""
        return self._run(-1)

    def _run(self, way: int, end: int | None = None) -> Breakpoint | None:
        """Continue to the next breakpoint in one direction, forwards at most to step `end`; return the breakpoint."""
        end = len(self.lines) if end is None else end
        if self.breakpoints.watches:
            return self._watch(way, end)
        while True:
            nearest = self._nearest(way)
            if nearest is None or nearest[0] > end:
                self.go_to(end if way > 0 else 0)
                return None
            self.go_to(nearest[0])
            hit = self._hit(nearest[1])
            if hit is not None:
                return hit

    def _nearest(self, way: int) -> tuple[int, list[Breakpoint]] | None:
        """Return the nearest step with breakpoints at a line or step in one direction."""
        best: int | None = None
        where: dict[int, list[Breakpoint]] = {}
        for stop in self.breakpoints:
            places = [stop.step] if stop.step is not None else self._positions.get(stop.line or 0, [])
            number = bisect_left(places, self.position + (way > 0)) - (way < 0)
            if 0 <= number < len(places):
                where.setdefault(places[number], []).append(stop)
        if where:
            best = min(where) if way > 0 else max(where)
        return None if best is None else (best, where[best])

    def _hit(self, candidates: list[Breakpoint]) -> Breakpoint | None:
        for stop in candidates:
            if stop.condition is None or stop.condition.holds(self):
                stop.hits += 1
                return stop
        return None

    def _watch(self, way: int, end: int) -> Breakpoint | None:
        """Move operation by operation and test the conditions; a stop is the same from either side."""
        alone = [stop for stop in self.breakpoints if stop.line is None and stop.condition is not None]
        others = [stop for stop in self.breakpoints if stop not in alone]

        def state() -> list[bool]:
            return [stop.condition is not None and stop.condition.holds(self) for stop in alone]

        def at_place() -> list[Breakpoint]:
            here = None if self.ended else self.lines[self.position]
            return [e for e in others if e.step == self.position or (e.line is not None and e.line == here)]

        return self._forwards(alone, state, at_place, end) if way > 0 else self._backwards(alone, state, at_place)

    def _forwards(
        self,
        alone: list[Breakpoint],
        state: Callable[[], list[bool]],
        at_place: Callable[[], list[Breakpoint]],
        end: int,
    ) -> Breakpoint | None:
        before = state()
        while self.position < end:
            self.step()
            now = state()
            new = [stop for stop, was, holds in zip(alone, before, now, strict=True) if holds and not was]
            before = now
            hit = new[0] if new else self._hit(at_place())
            if hit is not None:
                hit.hits += bool(new)
                return hit
        return None

    def _backwards(
        self, alone: list[Breakpoint], state: Callable[[], list[bool]], at_place: Callable[[], list[Breakpoint]]
    ) -> Breakpoint | None:
        if not self.position:
            return None
        self.reverse_step()
        now = state()
        while self.position:
            hit = self._hit(at_place())
            self.reverse_step()
            before = state()
            new = [stop for stop, was, holds in zip(alone, before, now, strict=True) if holds and not was]
            if hit is not None or new:
                self.step()
                if hit is None:
                    hit = new[0]
                    hit.hits += 1
                return hit
            now = before
        return None

    # ---------------------------------------------------------------------------------------------------- breakpoints

    def break_at_line(self, line: int, condition: str | None = None) -> Breakpoint:
        """Stop before operations of a line; if it has none, before those of the next line that has some.

        Raises:
            ReadError: no line from there on has any, or the condition cannot be read.
        """
        line_condition = None if condition is None else self.condition(condition)
        stop_line = self.line_of(line)
        return self.breakpoints.add(
            f"line {stop_line}" + (f" if {condition}" if condition else ""), line=stop_line, condition=line_condition
        )

    def line_of(self, line: int) -> int:
        """Return the first line from `line` on that has operations.

        Raises:
            ReadError: there is no such line.
        """
        places = sorted(self._positions)
        number = bisect_left(places, line)
        if line < 1 or number == len(places):
            raise ReadError(
                f"no operation at or after line {line}",
                legal=(f"{places[0]} .. {places[-1]}",) if places else (),
            )
        return places[number]

    def break_at_cycle(self, cycle: int) -> Breakpoint:
        """Stop before the first operation, in program order, that starts in a cycle or later.

        Raises:
            ReadError: no operation does, or there are no cycles.
        """
        self.check_timed()
        step = next((p for p, step_record in enumerate(self.trace.steps) if step_record.start >= cycle), None)
        if step is None:
            latest = max((step_record.start for step_record in self.trace.steps), default=0)
            raise ReadError(f"no operation starts in cycle {cycle} or later", legal=(f"0 .. {latest}",))
        return self.breakpoints.add(f"cycle {cycle}", step=step)

    def break_if(self, text: str) -> Breakpoint:
        """Stop when a condition becomes true.

        Raises:
            ReadError: it cannot be read, or refers to something that the program lacks.
        """
        return self.breakpoints.add(f"if {text}", condition=self.condition(text))

    def condition(self, text: str) -> StopCondition:
        """Read a condition, and check its names.

        Raises:
            ReadError: it cannot be read, or refers to something that the program lacks.
        """
        parsed = parse_condition(text, tuple(self.trace.result.timing.pipes))
        selection = getattr(parsed, "selection", None)
        if isinstance(selection, Selection):
            names = self.trace.symbols.names()
            if selection.name not in names:
                raise ReadError(f"unknown name '{selection.name}'", legal=names)
            if self.trace.registers.get(selection.name) is not None or selection.name not in self.trace.symbols.formats:
                self.elements(selection)
        else:
            self.check_timed()
            parsed.holds(self)
        return parsed


# What is to be stepped through, as it was asked for.


def stepper_of(config: RunConfig) -> Stepper:
    """Run a program and stop before its first operation.

    Raises:
        CastsimError, EngineError: see `castsim.run`.
    """
    if config.engine is not None and config.engine not in ENGINES:
        raise ReadError(f"engine '{config.engine}' is not available", legal=ENGINES)
    recorded = record(config.load(), config.inputs, engine=config.engine, limits=config.limits)
    return Stepper(recorded, args=config.args)
