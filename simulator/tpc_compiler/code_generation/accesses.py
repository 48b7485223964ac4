"""Loads of the inputs of a sequence, stores of its outputs: one tensor per port, one index register per register.

A tile is what the registers of a port hold together. Tensors have the elements of a tile in dimension 0 and the tiles
in dimension 1, so that an index register advances to the next tile by one in dimension 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.formats import format_named
from castsim.isa.tpc.program import File, Slot
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.code_generation.sequence import EmittedInstruction, Sequence, SequencePort, Value

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
