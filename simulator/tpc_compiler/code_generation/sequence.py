"""Straight-line sequences of TPC instructions on registers that have no numbers yet.

A sequence is what a lowering says: which instructions in which order, on which values. Where the values live, in which
bundle an instruction stands and how data gets in and out is decided later (`allocation`, `scheduling`, `kernel`).
"""

from __future__ import annotations

from dataclasses import dataclass

from castsim.isa.errors import IllegalError
from castsim.isa.tpc.program import VECTOR_GROUPS, File, Slot


@dataclass(frozen=True, slots=True)
class Value:
    """A register of a sequence, or an aligned pair or quad of vector registers.

    `number` identifies the groups of a sequence; `part` is the place within the group, None for all of it.
    """

    number: int
    file: File
    size: int = 1
    part: int | None = None

    def __getitem__(self, part: int) -> Value:
        """Return one register of a pair or quad.

        Raises:
            IllegalError: it has no such register.
        """
        if self.part is not None or not 0 <= part < self.size:
            raise IllegalError(f"a group of {self.size} registers has no register {part}")
        return Value(self.number, File.V, self.size, part)

    @property
    def parts(self) -> tuple[Value, ...]:
        """Its registers, one by one."""
        return (self,) if self.size == 1 or self.part is not None else tuple(self[k] for k in range(self.size))


Operand = Value | int
"""A register, or a 32-bit immediate as an unsigned or signed number."""


@dataclass(frozen=True, slots=True)
class EmittedInstruction:
    """One instruction: `head` is mnemonic, type and switches (`convert.f32 target_type=int16 rhne`).

    `operands` stand in the order of the assembly, destination first. `where` is the predicate, `inverted` its `!`.
    """

    slot: Slot
    head: str
    operands: tuple[Operand, ...]
    where: Value | None = None
    inverted: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        """The registers that it mentions."""
        found = tuple(operand for operand in self.operands if isinstance(operand, Value))
        return found if self.where is None else (*found, self.where)


@dataclass(frozen=True, slots=True)
class SequencePort:
    """A named input or output: its registers one after the other; `format` is a name of `castsim.isa.formats`."""

    name: str
    format: str
    values: tuple[Value, ...]

    @property
    def registers(self) -> tuple[Value, ...]:
        """The single registers, in order."""
        return tuple(part for value in self.values for part in value.parts)


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number that a caller gives, held in an S register; `format` is f32 or a 32-bit integer."""

    name: str
    format: str
    value: Value


class Sequence:
    """Instructions in program order, with their inputs and outputs. No control flow.

    A result that only replaces part of its destination (PACK, CONVERT to one lane, predicates) keeps what was there.
    """

    def __init__(self) -> None:
        self.steps: list[EmittedInstruction] = []
        self.inputs: list[SequencePort] = []
        self.outputs: list[SequencePort] = []
        self.scalars: list[ScalarArgument] = []
        self._count = 0

    # --------------------------------------------------------------------------------------------------- registers

    def vector(self, size: int = 1) -> Value:
        """Return a new vector register; with `size` 2 or 4 a pair or quad, spelled D or A.

        Raises:
            IllegalError: another size.
        """
        if size not in VECTOR_GROUPS:
            raise IllegalError(f"no group of {size} vector registers", legal=map(str, VECTOR_GROUPS))
        return self._new(VECTOR_GROUPS[size], size)

    def mask(self) -> Value:
        """Return a new vector predicate."""
        return self._new(File.VP)

    def register(self) -> Value:
        """Return a new scalar register."""
        return self._new(File.S)

    def _new(self, file: File, size: int = 1) -> Value:
        self._count += 1
        return Value(self._count - 1, file, size)

    # -------------------------------------------------------------------------------------------------------- ports

    def input(self, name: str, fmt: str, registers: int = 1, group: int = 1) -> tuple[Value, ...]:
        """Return the registers that hold an input, `registers` of them, in groups of `group` registers."""
        values = tuple(self.vector(group) for _ in range(registers // group))
        self.inputs.append(SequencePort(name, fmt, values))
        return values

    def output(self, name: str, fmt: str, *values: Value) -> None:
        """Name a result; its registers are stored one after the other."""
        self.outputs.append(SequencePort(name, fmt, values))

    def scalar(self, name: str, fmt: str) -> Value:
        """Return the S register of a number that the caller gives."""
        found = self.register()
        self.scalars.append(ScalarArgument(name, fmt, found))
        return found

    # ------------------------------------------------------------------------------------------------- instructions

    def add(
        self, slot: Slot, head: str, *operands: Operand, where: Value | None = None, inverted: bool = False
    ) -> None:
        """Append an instruction; see `EmittedInstruction`."""
        self.steps.append(EmittedInstruction(slot, head, operands, where, inverted))

    def vpu(self, head: str, *operands: Operand, where: Value | None = None, inverted: bool = False) -> None:
        """Append an instruction of the vector slot."""
        self.add(Slot.VPU, head, *operands, where=where, inverted=inverted)

    def spu(self, head: str, *operands: Operand, where: Value | None = None, inverted: bool = False) -> None:
        """Append an instruction of the scalar slot."""
        self.add(Slot.SPU, head, *operands, where=where, inverted=inverted)

    def broadcast(self, number: int, element: str = "i32") -> Value:
        """Return a vector with a number in every element of a type, by a MOV in the LOAD slot; no VPU operation."""
        found = self.vector()
        self.add(Slot.LOAD, f"mov.{element}", found, number)
        return found

    def zeroed(self) -> Value:
        """Return a vector of zeros; no VPU operation."""
        return self.broadcast(0)

    def copy(self, source: Value) -> Value:
        """Return a copy of a vector register, by a MOV in the LOAD slot; no VPU operation."""
        found = self.vector()
        self.add(Slot.LOAD, "mov", found, source)
        return found
