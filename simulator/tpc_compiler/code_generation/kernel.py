"""A scheduled sequence as assembly text: declarations of its tensors, one pass over them or a hardware loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import pack, unpack

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import format_named
from castsim.isa.tpc.program import WORD_BITS, File, Slot
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.code_generation.sequence import (
    EmittedInstruction,
    ScalarArgument,
    Sequence,
    SequencePort,
    Value,
)

# Loads of the inputs of a sequence, stores of its outputs: one tensor per port, one index register per register.
#
# A tile is what the registers of a port hold together. Tensors have the elements of a tile in dimension 0 and the
# tiles
# in dimension 1, so that an index register advances to the next tile by one in dimension 1.

_BYTE_BITS = 8
_TILE_DIMENSION = "b00010"


@dataclass(frozen=True, slots=True)
class PlacedPort:
    """A port with its tensor number; `indices` are the index registers of its registers, `elements` those of a tile."""

    port: SequencePort
    tensor: int
    direction: str
    indices: tuple[Value, ...]
    elements: int

    @property
    def lanes(self) -> int:
        """Elements of one register."""
        return self.elements // len(self.indices)


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """The ports of a sequence and all its instructions; those from `advances` on step to the next tile."""

    ports: tuple[PlacedPort, ...]
    steps: tuple[EmittedInstruction, ...]
    advances: int


def planned(sequence: Sequence, target: VliwTarget) -> AccessPlan:
    """Return the sequence with a load before the first mention of every input, a store behind the last of every output.

    Raises:
        IllegalError: more ports than tensors, or registers than index registers.
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
            mentions = [place for place, step in enumerate(sequence.steps) if _mentions(step, register)]
            if placed.direction == "in":
                step = EmittedInstruction(Slot.LOAD, "ld_tnsr", (register, placed.tensor, index))
                before.setdefault(min(mentions, default=0), []).append(step)
            else:
                step = EmittedInstruction(Slot.STORE, "st_tnsr", (placed.tensor, index, register))
                after.setdefault(max(mentions, default=count - 1), []).append(step)
    steps = before.get(0, []) if not count else []
    for place, step in enumerate(sequence.steps):
        steps += [*before.get(place, ()), step, *after.get(place, ())]
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
        indices = tuple(Value(-1 - number - place, File.I) for place in range(len(registers)))
        number += len(registers)
        yield PlacedPort(port, tensor, direction, indices, lanes * len(registers))


def _mentions(step: EmittedInstruction, register: Value) -> bool:
    """Whether a step mentions a register itself or the group that it belongs to."""
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
    The SPU slots of the bundles in `advances` step to the next tile, which a single pass leaves out. `scalars` gives
    the S register of each number that the caller provides, `index_registers` the name of each index register. `name` is
    what messages call it.
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
        """Return the program for a number of tiles, one after the other.

        `scalars` are the numbers by name; None leaves them to the caller of the program, and says where they go.

        Raises:
            ReadError: fewer than one tile, an unknown or missing scalar, or a number that its format does not hold.
        """
        if tiles < 1:
            raise ReadError(f"a program for {tiles} tiles", legal=("1 or more",))
        lines = [*self._declarations(tiles), *self._scalars(scalars), *map(_printed, self.setup)]
        empty = _printed(NOTHING)
        if tiles == 1:
            once = [self._without_advance(place, line) for place, line in enumerate(self.body)]
            while once and once[-1] == NOTHING:
                once.pop()
            lines += map(_printed, once)
        else:
            lines.append(f"nop; loop 0, {tiles}, 1, <, {_END}; nop; nop")
            lines += [empty] * self.target.loop_rules.delay_bundles
            lines += [*map(_printed, self.body), *[empty] * self._pause(), f"{_END}:"]
        lines += [empty] * self.target.end_rules.empty_after_store
        lines.append(_printed(tuple("halt" if self._halts(slot) else None for slot in Slot)))
        return "".join(f"{line}\n" for line in lines)

    @property
    def vector_instructions(self) -> tuple[str, ...]:
        """The instructions of the vector slot, in order of issue."""
        return tuple(line[Slot.VPU] or "" for line in self.body if line[Slot.VPU] is not None)

    def _without_advance(self, place: int, line: Line) -> Line:
        if place not in self.advances:
            return line
        return tuple(None if slot is Slot.SPU else text for slot, text in zip(Slot, line, strict=True))

    def _halts(self, slot: Slot) -> bool:
        return slot.name.lower() in self.target.end_rules.halt_slots

    def _pause(self) -> int:
        """Return the empty bundles at the end of the loop body.

        They keep the loads of the next tile away from the stores of this one.
        """
        return max(
            self.target.issue_rules.forbidden_after_tensor_store, self.target.loop_rules.body_bundles - len(self.body)
        )

    def _declarations(self, tiles: int) -> list[str]:
        found = [f"// castsim: target {self.target.name}"]
        for placed in self.ports:
            what = f"{placed.port.name} {placed.direction} {placed.port.format} [{placed.elements}, {tiles}]"
            found.append(f"// castsim: tensor {placed.tensor} {what}")
        for placed in self.ports:
            for place, index in enumerate(placed.indices):
                name, start = self.index_registers[index.number], place * placed.lanes
                found.append(f"// castsim: reg {name} = [{start}, 0, 0, 0, 0]")
        return found

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


def _printed(line: Line) -> str:
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
            raise ReadError(f"{scalar.name}={number}: beyond the range of {_FLOAT}") from None
    legal = f"an integer of {WORD_BITS} bits"
    if not isinstance(number, int) or not -(1 << (WORD_BITS - 1)) <= number < 1 << WORD_BITS:
        raise ReadError(f"{scalar.name}={number} is not {legal}", legal=(legal,))
    return number & ((1 << WORD_BITS) - 1)
