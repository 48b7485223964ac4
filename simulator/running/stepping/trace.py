"""A recorded run: its operations with their cycles, the memories at its start, and what each operation changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from castsim.execution.dataflow.idle import NO_VALUES, Idle
from castsim.execution.limits import DEFAULT_LIMITS, Limits
from castsim.execution.micro.pointers import Pointer
from castsim.execution.tiles import Tile
from castsim.execution.tree import GlobalSpace, Instruction, Lowered, instances
from castsim.isa.errors import LimitError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.packed import element_format, held_element
from castsim.isa.pto.value_types import MaskType, VectorType
from castsim.isa.tpc import TensorDeclaration, VlmDeclaration
from castsim.isa.tpc.program import File
from castsim.machines.mechanisms import machine_of
from castsim.running.loaded import Inputs, LoadedProgram
from castsim.running.runs import Result, run_loaded
from castsim.running.stepping.journal import Bytes
from castsim.running.stepping.places import BUFFER, Place, argument_place, dense, global_space, part_place, tile_place
from castsim.running.stepping.recording import Recording
from castsim.running.stepping.regions import regions_of
from castsim.running.stepping.symbols import Symbols

MOST_STEPS = 5_000_000
"""Operations of a run that can be stepped through."""


class Step(NamedTuple):
    """One executed operation: an index into `Trace.instructions`, its cycles, its change in the journal (-1: none)."""

    instruction: int
    start: int
    end: int
    change: int


@dataclass(slots=True)
class Trace:
    """A recorded run. `memories` and `registers` are those of its start, and change with whoever plays it."""

    result: Result
    recording: Recording
    instructions: list[Instruction]
    steps: list[Step] = field(default_factory=list)
    symbols: Symbols = field(default_factory=Symbols)
    regions: Mapping[int, int] = field(default_factory=dict)
    """By the line that a loop or section begins in, the last line of its body."""

    @property
    def file(self) -> str:
        """The name of the program's file, as it was given."""
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
        """Whether its cycles are modelled."""
        return not self.result.untimed

    def apply(self, step: int, *, back: bool) -> None:
        """Make what an operation changes, or take it back."""
        change = self.steps[step].change
        if change >= 0:
            self.recording.journal.apply(change, self.memories, self.registers, back=back)

    def line(self, step: int) -> int:
        """Return the line of an operation; behind the last that of the last."""
        if not self.steps:
            return 1
        return self.instructions[self.steps[min(step, len(self.steps) - 1)].instruction].span.line

    def cycle(self, step: int) -> int:
        """Return the cycle in which an operation starts; behind the last the cycles of the run."""
        return self.steps[step].start if step < len(self.steps) else self.result.timing.total


def record(
    loaded: LoadedProgram, inputs: Inputs, *, engine: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> Trace:
    """Run a program once, with everything that is needed to step through it either way.

    Raises:
        CastsimError, EngineError: as `castsim.running.run_loaded`. LimitError: it is too long to step through.
    """
    recording = Recording()
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
    trace.steps.append(Step(instruction, start, end, change))


# -------------------------------------------------------------------------------------------------------------- tiles


def _tiles(trace: Trace) -> None:
    tree, executions = trace.result.loaded.tree, iter(trace.result.timing.executions)
    idle, change = Idle(NO_VALUES), 0
    _name_arguments(trace)
    known: dict[int, list[_Mention]] = {}
    for lowered, deltas in instances(tree):
        execution = next(executions)
        own = -1
        if not idle(lowered):
            own, change = change, change + 1
        if tree.instructions[lowered.instruction].inserted:
            continue
        if id(lowered) not in known:
            known[id(lowered)] = _mentions(lowered)
        for name, kind, place, access in known[id(lowered)]:
            delta = 0 if deltas is None or access is None else deltas[0][access]
            trace.symbols.mention(name, kind, len(trace.steps), place.moved(delta))
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
    """An operand of an instruction: where it lies, and which of the instruction's accesses moves as it does."""

    name: str
    kind: str
    place: Place
    access: int | None


def _mentions(lowered: Lowered) -> list[_Mention]:
    """Return where the operands of an instruction lie as long as no loop has moved it."""
    found = []
    for name, operand in lowered.operands:
        if isinstance(operand, Tile):
            kind, place, space, start, end = "tile", tile_place(operand), BUFFER, operand.address, operand.end
        else:
            kind, place = "tensor", part_place(operand)
            space, start, end = GlobalSpace.of(operand.argument), 0, sys.maxsize
        moving = (n for n, each in enumerate(lowered.accesses) if each.space == space and start <= each.start < end)
        found.append(_Mention(name, kind, place, next(moving, None)))
    return found


# -------------------------------------------------------------------------------------------------------------- micro


def _micro(trace: Trace) -> None:
    """Join the operations of the values' walk to those that were timed: what stands outside of vector functions."""
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
    """Yield what was timed, with the cycles in which the front end sends the instructions of vector functions."""
    loaded, executions = trace.result.loaded, trace.result.timing.executions
    launches = machine_of(loaded.target).launches
    for number, (lowered, _) in enumerate(instances(loaded.tree)):
        instruction = loaded.tree.instructions[lowered.instruction]
        timed = executions[number] if trace.timed else None
        start, end = (0, 0) if timed is None else (timed.start, timed.end)
        inside = [start + cycle for cycle in launches.sent(lowered, loaded.target)] if launches and trace.timed else []
        yield _Issued(instruction, instruction.span.line, start, end, inside)


def _mention_registers(trace: Trace, node: object, pointers: tuple[tuple[str, Pointer], ...]) -> None:
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
"""Formats in which registers of assembly are shown unless another is asked for."""


def _assembly(trace: Trace) -> None:
    core = trace.recording.core
    assert core is not None
    uses, symbols = trace.result.loaded.arguments, trace.symbols
    for each in core.program.declarations:
        if isinstance(each, TensorDeclaration | VlmDeclaration):
            fmt, shape = format_named(each.format), uses[each.name].shape
            if isinstance(each, VlmDeclaration):
                symbols.fixed[each.name] = dense("vlm", each.address, shape, fmt)
            else:
                symbols.fixed[each.name] = dense(global_space(each.name), 0, shape, fmt, fmt.storage_bits)
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
