"""Sequences of TPC instructions compiled to programs: registers, latencies, loads and stores.

sequence = Sequence()
(x,) = sequence.input("x", "f32")
y = sequence.vector()
sequence.vpu("convert.f32 target_type=int32 rhne", y, x)
sequence.output("y", "i32", y)
kernel = schedule(sequence, target)      # kernel.text(4) is assembly for four tiles
found = execute(kernel, {"x": codes})    # of `builtin_calls`: outputs["y"], vector_operations, stale_reads

A sequence is the output of a lowering: instructions in order, on values. Registers, bundles, and the loads and stores
of the data are decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from struct import pack, unpack

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import GROUPED, VECTOR_GROUPS, WORD_BITS, File, Register, Slot
from castsim.machines.vliw.stage_latency import horizon
from castsim.targets.vliw import VliwTarget
from castsim.tools.tpc_compiler.placing import BasicBlock, PlacementPolicy, Placer
from castsim.tools.tpc_compiler.scheduled_operations import Distances, OperationLookup, ScheduledOperation
from castsim.tools.tpc_compiler.virtual_registers import Names, free_registers


@dataclass(frozen=True, slots=True)
class SequenceRegister:
    """A register of a sequence, or an aligned pair or quad of vector registers.

    `number` identifies the groups of a sequence; `part` is the position within the group, None for all of it.
    """

    number: int
    file: File
    size: int = 1
    part: int | None = None

    def __getitem__(self, part: int) -> SequenceRegister:
        """Return one register of a pair or quad.

        Raises:
            IllegalError: the group has no such register.
        """
        if self.part is not None or not 0 <= part < self.size:
            raise IllegalError(f"a group of {self.size} registers has no register {part}")
        return SequenceRegister(self.number, File.V, self.size, part)

    @property
    def parts(self) -> tuple[SequenceRegister, ...]:
        """Its registers, one by one."""
        return (self,) if self.size == 1 or self.part is not None else tuple(self[k] for k in range(self.size))


Operand = SequenceRegister | int
"""A register, or a 32-bit immediate as an unsigned or signed number."""


@dataclass(frozen=True, slots=True)
class EmittedInstruction:
    """One instruction: `head` is mnemonic, type and switches (`convert.f32 target_type=int16 rhne`).

    `operands` are in the order of the assembly, destination first. `where` is the predicate, `inverted` its `!`.
    """

    slot: Slot
    head: str
    operands: tuple[Operand, ...]
    where: SequenceRegister | None = None
    inverted: bool = False

    @property
    def values(self) -> tuple[SequenceRegister, ...]:
        """The registers in it."""
        registers = tuple(operand for operand in self.operands if isinstance(operand, SequenceRegister))
        return registers if self.where is None else (*registers, self.where)


@dataclass(frozen=True, slots=True)
class SequencePort:
    """A named input or output: its registers in order; `format` is a name of `castsim.isa.formats`."""

    name: str
    format: str
    values: tuple[SequenceRegister, ...]

    @property
    def registers(self) -> tuple[SequenceRegister, ...]:
        """The single registers, in order."""
        return tuple(part for value in self.values for part in value.parts)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number from the caller, held in an S register; `format` is f32 or a 32-bit integer."""

    name: str
    format: str
    value: SequenceRegister


class Sequence:
    """Instructions in program order, with their inputs and outputs. No control flow.

    A result that replaces only part of its destination (PACK, CONVERT to one lane, predicates) keeps the other part.
    """

    def __init__(self) -> None:
        self.steps: list[EmittedInstruction] = []
        self.inputs: list[SequencePort] = []
        self.outputs: list[SequencePort] = []
        self.scalars: list[ScalarArgument] = []
        self._count = 0

    # --------------------------------------------------------------------------------------------------- registers

    def vector(self, size: int = 1) -> SequenceRegister:
        """Return a new vector register; with `size` 2 or 4 a pair or quad, spelled D or A.

        Raises:
            IllegalError: the size is another one.
        """
        if size not in VECTOR_GROUPS:
            raise IllegalError(f"no group of {size} vector registers", legal=map(str, VECTOR_GROUPS))
        return self._new(VECTOR_GROUPS[size], size)

    def mask(self) -> SequenceRegister:
        """Return a new vector predicate."""
        return self._new(File.VP)

    def register(self) -> SequenceRegister:
        """Return a new scalar register."""
        return self._new(File.S)

    def _new(self, file: File, size: int = 1) -> SequenceRegister:
        self._count += 1
        return SequenceRegister(self._count - 1, file, size)

    # -------------------------------------------------------------------------------------------------------- ports

    def input(self, name: str, fmt: str, registers: int = 1, group: int = 1) -> tuple[SequenceRegister, ...]:
        """Return the registers that hold an input, `registers` of them, in groups of `group` registers."""
        values = tuple(self.vector(group) for _ in range(registers // group))
        self.inputs.append(SequencePort(name, fmt, values))
        return values

    def output(self, name: str, fmt: str, *values: SequenceRegister) -> None:
        """Name a result; its registers are stored in order."""
        self.outputs.append(SequencePort(name, fmt, values))

    def scalar(self, name: str, fmt: str) -> SequenceRegister:
        """Return the S register of a number from the caller."""
        argument = self.register()
        self.scalars.append(ScalarArgument(name, fmt, argument))
        return argument

    # ------------------------------------------------------------------------------------------------- instructions

    def add(
        self, slot: Slot, head: str, *operands: Operand, where: SequenceRegister | None = None, inverted: bool = False
    ) -> None:
        """Append an instruction; see `EmittedInstruction`."""
        self.steps.append(EmittedInstruction(slot, head, operands, where, inverted))

    def vpu(self, head: str, *operands: Operand, where: SequenceRegister | None = None, inverted: bool = False) -> None:
        """Append an instruction of the vector slot."""
        self.add(Slot.VPU, head, *operands, where=where, inverted=inverted)

    def spu(self, head: str, *operands: Operand, where: SequenceRegister | None = None, inverted: bool = False) -> None:
        """Append an instruction of the scalar slot."""
        self.add(Slot.SPU, head, *operands, where=where, inverted=inverted)

    def broadcast(self, number: int, element: str = "i32") -> SequenceRegister:
        """Return a vector with a number in every element of a type, by a MOV in the LOAD slot; no VPU operation."""
        result = self.vector()
        self.add(Slot.LOAD, f"mov.{element}", result, number)
        return result

    def zeroed(self) -> SequenceRegister:
        """Return a vector of zeros; no VPU operation."""
        return self.broadcast(0)

    def copy(self, source: SequenceRegister) -> SequenceRegister:
        """Return a copy of a vector register, by a MOV in the LOAD slot; no VPU operation."""
        result = self.vector()
        self.add(Slot.LOAD, "mov", result, source)
        return result


# Loads of the inputs of a sequence, stores of its outputs: one tensor per port, one index register per register.
#
# A tile is what the registers of a port hold together. Tensors have the elements of a tile in dimension 0 and the
# tiles in dimension 1, so that an index register advances to the next tile by one in dimension 1.

_BYTE_BITS = 8
_TILE_DIMENSION = "b00010"


@dataclass(frozen=True, slots=True)
class PlacedPort:
    """A port with its tensor number; `indices` are the index registers of its registers, `elements` those of a tile."""

    port: SequencePort
    tensor: int
    direction: str
    indices: tuple[SequenceRegister, ...]
    elements: int

    @property
    def lanes(self) -> int:
        """Elements of one register."""
        return self.elements // len(self.indices)


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """The ports of a sequence and all its instructions; those from `advances` on advance to the next tile."""

    ports: tuple[PlacedPort, ...]
    steps: tuple[EmittedInstruction, ...]
    advances: int


def planned(sequence: Sequence, target: VliwTarget) -> AccessPlan:
    """Return the sequence with a load before the first use of every input and a store after the last of every output.

    Raises:
        IllegalError: there are more ports than tensors, or more registers than index registers.
    """
    ports = tuple(_ports(sequence, target))
    if len(ports) > target.tensors.limit:
        raise IllegalError(f"{len(ports)} inputs and outputs; {target.name} has {target.tensors.limit} tensors")
    if sum(len(placed.indices) for placed in ports) > target.registers.I:
        raise IllegalError(f"the inputs and outputs have more registers than the {target.registers.I} index registers")
    before: dict[int, list[EmittedInstruction]] = {}
    after: dict[int, list[EmittedInstruction]] = {}
    count = len(sequence.steps)
    for placed in ports:
        for register, index in zip(placed.port.registers, placed.indices, strict=True):
            mentions = [position for position, step in enumerate(sequence.steps) if _mentions(step, register)]
            if placed.direction == "in":
                step = EmittedInstruction(Slot.LOAD, "ld_tnsr", (register, placed.tensor, index))
                before.setdefault(min(mentions, default=0), []).append(step)
            else:
                step = EmittedInstruction(Slot.STORE, "st_tnsr", (placed.tensor, index, register))
                after.setdefault(max(mentions, default=count - 1), []).append(step)
    steps = before.get(0, []) if not count else []
    for position, step in enumerate(sequence.steps):
        steps += [*before.get(position, ()), step, *after.get(position, ())]
    steps += after.get(-1, []) if not count else []
    advances = [
        EmittedInstruction(Slot.SPU, f"add.i32 {_TILE_DIMENSION}", (index, 1, index))
        for placed in ports
        for index in placed.indices
    ]
    return AccessPlan(ports, (*steps, *advances), len(steps))


def _ports(sequence: Sequence, target: VliwTarget) -> Iterator[PlacedPort]:
    directed = [*((port, "in") for port in sequence.inputs), *((port, "out") for port in sequence.outputs)]
    number = 0
    for tensor, (port, direction) in enumerate(directed):
        registers = port.registers
        lanes = target.registers.vector_bytes * _BYTE_BITS // format_named(port.format).bits
        # Values of the sequence count from 0 upwards.
        indices = tuple(SequenceRegister(-1 - number - index, File.I) for index in range(len(registers)))
        number += len(registers)
        yield PlacedPort(port, tensor, direction, indices, lanes * len(registers))


def _mentions(step: EmittedInstruction, register: SequenceRegister) -> bool:
    """Return whether a step mentions a register itself or the group that it belongs to."""
    return any(
        value.number == register.number and (value.part is None or value.part == register.part or register.part is None)
        for value in step.values
    )


Line = tuple[str | None, ...]
"""A bundle as text, slot by slot in the order of the assembly; None is NOP."""

NOTHING: Line = (None,) * len(Slot)
_END = "End"
_FLOAT = "f32"


@dataclass(frozen=True, slots=True)
class ScheduledKernel:
    """A sequence with registers, bundles, tensors and index registers.

    `setup` runs once. `body` computes one tile: it loads every input register, computes, stores every output register.
    The SPU slots of the bundles in `advances` advance to the next tile; a single pass omits them. `scalars` gives
    the S register of each number from the caller, `index_registers` the name of each index register. `name` is the
    kernel's name in messages.
    """

    target: VliwTarget
    setup: tuple[Line, ...]
    body: tuple[Line, ...]
    advances: frozenset[int]
    ports: tuple[PlacedPort, ...]
    scalars: tuple[tuple[ScalarArgument, str], ...]
    index_registers: Mapping[int, str]
    name: str = "kernel"

    def text(self, tiles: int = 1, scalars: Mapping[str, int | float] | None = None) -> str:
        """Return the program for a number of tiles, in sequence.

        `scalars` are the numbers by name; None leaves them to the program's caller, and comments name the registers.

        Raises:
            ReadError: there is less than one tile, or a scalar is unknown, missing or not representable in its format.
        """
        if tiles < 1:
            raise ReadError(f"a program for {tiles} tiles", legal=("1 or more",))
        lines = [*self._declarations(tiles), *self._scalars(scalars), *map(printed, self.setup)]
        empty = printed(NOTHING)
        if tiles == 1:
            once: list[Line] = [
                tuple(None if slot is Slot.SPU and index in self.advances else line[slot] for slot in Slot)
                for index, line in enumerate(self.body)
            ]
            while once and once[-1] == NOTHING:
                once.pop()
            lines += map(printed, once)
        else:
            lines.append(f"nop; loop 0, {tiles}, 1, <, {_END}; nop; nop")
            lines += [empty] * self.target.loop_rules.delay_bundles
            # Empty bundles keep the loads of the next tile away from the stores of this one.
            least = self.target.loop_rules.body_bundles - len(self.body)
            pause = max(self.target.issue_rules.forbidden_after_tensor_store, least)
            lines += [*map(printed, self.body), *[empty] * pause, f"{_END}:"]
        lines += [empty] * self.target.end_rules.empty_after_store
        halts = self.target.end_rules.halt_slots
        lines.append(printed(tuple("halt" if slot.name.lower() in halts else None for slot in Slot)))
        return "".join(f"{line}\n" for line in lines)

    @property
    def vector_instructions(self) -> tuple[str, ...]:
        """The instructions of the vector slot, in order of issue."""
        return tuple(line[Slot.VPU] or "" for line in self.body if line[Slot.VPU] is not None)

    def _declarations(self, tiles: int) -> list[str]:
        lines = [f"// castsim: target {self.target.name}"]
        for placed in self.ports:
            what = f"{placed.port.name} {placed.direction} {placed.port.format} [{placed.elements}, {tiles}]"
            lines.append(f"// castsim: tensor {placed.tensor} {what}")
        for placed in self.ports:
            for position, index in enumerate(placed.indices):
                name, start = self.index_registers[index.number], position * placed.lanes
                lines.append(f"// castsim: reg {name} = [{start}, 0, 0, 0, 0]")
        return lines

    def _scalars(self, numbers: Mapping[str, int | float] | None) -> list[str]:
        if numbers is None:
            return [f"// {register} holds {scalar.name} ({scalar.format})" for scalar, register in self.scalars]
        names = [scalar.name for scalar, _ in self.scalars]
        for name in numbers:
            if name not in names:
                raise ReadError(f"there is no scalar '{name}'", legal=names or ("none",))
        missing = [name for name in names if name not in numbers]
        if missing:
            raise ReadError(f"no value for {', '.join(missing)}", legal=[f"{name}=NUMBER" for name in missing])
        words = ((register, scalar_word(scalar, numbers[scalar.name])) for scalar, register in self.scalars)
        return [f"// castsim: reg {register} = {word:#x}" for register, word in words]


def printed(line: Line) -> str:
    """Return a bundle as assembly."""
    return "; ".join(text or "nop" for text in line)


def scalar_word(scalar: ScalarArgument, number: int | float) -> int:
    """Return the 32 bits of a scalar; a float is rounded to f32.

    Raises:
        ReadError: its format does not hold the number.
    """
    if format_named(scalar.format).name == _FLOAT:
        try:
            return int(unpack("<I", pack("<f", float(number)))[0])
        except OverflowError:
            raise ReadError(f"{scalar.name}={number}: out of range for {_FLOAT}") from None
    legal = f"an integer of {WORD_BITS} bits"
    if not isinstance(number, int) or not -(1 << (WORD_BITS - 1)) <= number < 1 << WORD_BITS:
        raise ReadError(f"{scalar.name}={number} is not {legal}", legal=(legal,))
    return number & ((1 << WORD_BITS) - 1)


# Register numbers for the values of a sequence: those that have been free for longest first.


def allocate(steps: Items[EmittedInstruction], kept: Items[SequenceRegister], target: VliwTarget) -> dict[int, int]:
    """Return the first register of each value, by its number.

    A value is live from its first to its last use; those in `kept` are live throughout.

    Raises:
        IllegalError: more registers of a file are needed at once than there are.
    """
    implicit = (
        name for name in target.dialect.tensor_registers.values() if name[:1] == File.S and name[1:].isdecimal()
    )
    free = free_registers(target, (Register(File.S, int(name[1:])) for name in implicit))
    registers = {value.number: _take(free[_file(value)], value) for value in kept}
    last = {value.number: index for index, step in enumerate(steps) for value in step.values}
    for index, step in enumerate(steps):
        for value in step.values:
            if value.number not in registers:
                registers[value.number] = _take(free[_file(value)], value)
        # Only now, so that a result never lands where an operand of its own instruction is.
        for value in {value.number: value for value in step.values}.values():
            if last[value.number] == index and all(value.number != other.number for other in kept):
                free[_file(value)] += range(registers[value.number], registers[value.number] + value.size)
    return registers


def _file(value: SequenceRegister) -> File:
    return GROUPED.get(value.file, (value.file, 1))[0]


def _take(free: list[int], value: SequenceRegister) -> int:
    """Take aligned registers; the oldest first, so that few instructions have to wait for earlier readers."""
    for index in free:
        group = range(index, index + value.size)
        if index % value.size == 0 and all(member in free for member in group):
            for member in group:
                free.remove(member)
            return index
    raise IllegalError(f"the sequence needs more {_file(value)} registers at once than there are")


def spelled(operand: Operand, numbers: Mapping[int, int]) -> str:
    """Return an operand as assembly."""
    if isinstance(operand, int):
        return f"{operand & 0xFFFFFFFF:#x}"
    return f"{operand.file}{numbers[operand.number] + (operand.part or 0)}"


def text_of(step: EmittedInstruction, numbers: Mapping[int, int]) -> str:
    """Return an instruction as assembly."""
    operands = [spelled(operand, numbers) for operand in step.operands]
    if step.where is not None:
        operands.append(f"{'!' if step.inverted else ''}{spelled(step.where, numbers)}")
    return f"{step.head} {', '.join(operands)}"


# Bundles for a sequence: every instruction, in its order, as early as latencies, slots and bundle rules let it stand.

_FILE = "<sequence>"
_EARLY = PlacementPolicy(one=True, apart=None)


def schedule(
    sequence: Sequence, target: VliwTarget, setup: Items[EmittedInstruction] = (), name: str = "kernel"
) -> ScheduledKernel:
    """Give a sequence registers, bundles and tensors.

    `setup` runs once, before everything else: each of its instructions is visible to all later ones. It uses only
    scalars and immediates (a store to a rounding register, for example). `name` is the kernel's name in messages.

    Raises:
        ReadError: an instruction is malformed.
        IllegalError: the target lacks an instruction, or has too few registers or tensors.
    """
    plan = planned(sequence, target)
    kept = [scalar.value for scalar in sequence.scalars]
    kept += [index for placed in plan.ports for index in placed.indices]
    numbers = allocate((*setup, *plan.steps), kept, target)
    body, places = arranged([(step.slot, text_of(step, numbers)) for step in plan.steps], target)
    before: list[Line] = []
    for step in setup:
        text = text_of(step, numbers)
        before += [tuple(text if slot is step.slot else None for slot in Slot), *[NOTHING] * (horizon(target) - 1)]
    return ScheduledKernel(
        target=target,
        setup=tuple(before),
        body=body,
        advances=frozenset(places[plan.advances :]),
        ports=plan.ports,
        scalars=tuple((scalar, spelled(scalar.value, numbers)) for scalar in sequence.scalars),
        index_registers={index.number: spelled(index, numbers) for placed in plan.ports for index in placed.indices},
        name=name,
    )


def arranged(instructions: Items[tuple[Slot, str]], target: VliwTarget) -> tuple[tuple[Line, ...], list[int]]:
    """Return bundles for instructions in program order, given as slot and text, and the bundle of each.

    Memory is not a dependence: loads and stores of one address must not depend on their order.

    Raises:
        ReadError, IllegalError: an instruction is malformed, or the target lacks it.
    """
    lines = [tuple(text if slot is own else None for slot in Slot) for own, text in instructions]
    program = parse("".join(f"{printed(line)}\n" for line in lines), target.dialect, _FILE)
    operations = [ScheduledOperation(dict(bundle.occupied), bundle.span) for bundle in program.bundles]
    lookup = OperationLookup(target, Names())
    placer = Placer(lookup, Distances(lookup, {}, in_memory=False, reuse=1))
    placed = placer.place(BasicBlock([], operations), (), _EARLY).places
    places = [placed[operation][0] for operation in operations]
    body: list[list[str | None]] = [list(NOTHING) for _ in range(max(places, default=-1) + 1)]
    for row, (slot, text) in zip(places, instructions, strict=True):
        body[row][slot] = text
    return tuple(tuple(line) for line in body), places
