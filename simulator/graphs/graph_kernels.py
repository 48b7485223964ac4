"""Elementwise kernels, before they become text: instructions on values that have a format and no place yet.

kernel = Kernel()
x = kernel.input("x", "f32")
kernel.output("y", kernel.convert(kernel.combine("mul", x, constant), chain))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from castsim.isa.formats import Format, format_named
from castsim.machines.registry import Parts
from castsim.planning.steps import Chain, LoweringStep, RereadForm
from castsim.targets import Target


@dataclass(frozen=True, slots=True)
class KernelValue:
    """The result of an instruction, or an input: every element of a tile."""

    number: int
    format: Format


@dataclass(frozen=True, slots=True)
class KernelPort:
    """A named input or output; `format` is that by which the program declares it, of the tensor's width."""

    name: str
    format: Format
    value: KernelValue


@dataclass(frozen=True, slots=True)
class Converted:
    """A step of a planned chain: a cast, an operation with a constant, or a reread."""

    result: KernelValue
    source: KernelValue
    step: LoweringStep


@dataclass(frozen=True, slots=True)
class Combined:
    """`add`, `sub`, `mul`, `div`, `max`, `min` of two values of one format, or `shl` of integers.

    The second is a value, or the code of a constant; `shl` has the number of bits for a constant. With `backwards` the
    constant is the first operand.
    """

    result: KernelValue
    function: str
    first: KernelValue
    second: KernelValue | int
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """`bounded` where `tested` is a number, `origin` where it is NaN: a comparison with itself, and a selection.

    The selection takes elements for those of the format `view`.
    """

    result: KernelValue
    bounded: KernelValue
    origin: KernelValue
    tested: KernelValue
    view: Format


Instruction = Converted | Combined | Kept


class NodeKernel:
    """Instructions in order, with their inputs and outputs. `title` heads the program."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.inputs: list[KernelPort] = []
        self.outputs: list[KernelPort] = []
        self.instructions: list[Instruction] = []
        self._count = 0

    def input(self, name: str, fmt: Format | str) -> KernelValue:
        """Return the value of a new input."""
        value = self._new(format_named(fmt) if isinstance(fmt, str) else fmt)
        self.inputs.append(KernelPort(name, value.format, value))
        return value

    def output(self, name: str, value: KernelValue) -> None:
        """Name a result. Rereads that lead to it are left out: its declaration does what they do."""
        while self.instructions and self._only_rereads_to(value):
            last = self.instructions.pop()
            assert isinstance(last, Converted)
            value = last.source
        self.outputs.append(KernelPort(name, value.format, value))

    def convert(self, value: KernelValue, chain: Chain) -> KernelValue:
        """Take a value through a chain. Rereads of an input become its declaration."""
        steps = list(chain)
        while steps and isinstance(steps[0].forms[0], RereadForm) and self._is_untouched_input(value):
            value = self._redeclared(value, steps.pop(0).dst)
        for step in steps:
            result = self._new(step.dst)
            self.instructions.append(Converted(result, value, step))
            value = result
        return value

    def combine(
        self, function: str, first: KernelValue, second: KernelValue | int, *, backwards: bool = False
    ) -> KernelValue:
        """Apply a function of two operands; see `Combined`."""
        result = self._new(first.format)
        self.instructions.append(Combined(result, function, first, second, backwards))
        return result

    def keep_nan(self, bounded: KernelValue, origin: KernelValue, tested: KernelValue, view: Format) -> KernelValue:
        """Give NaN of `origin` back to what was made from it; see `Kept`."""
        result = self._new(origin.format)
        self.instructions.append(Kept(result, bounded, origin, tested, view))
        return result

    @property
    def chain(self) -> Chain | None:
        """The steps, if the kernel is one chain from its one input to its one output; None otherwise."""
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            return None
        steps, at = [], self.inputs[0].value
        for instruction in self.instructions:
            if not isinstance(instruction, Converted) or instruction.source != at:
                return None
            steps.append(instruction.step)
            at = instruction.result
        return tuple(steps) if at == self.outputs[0].value else None

    def formats(self) -> Iterable[Format]:
        """Yield the formats of all values."""
        yield from (port.value.format for port in self.inputs)
        yield from (instruction.result.format for instruction in self.instructions)

    def last_uses(self) -> dict[int, int]:
        """Return the place of the last instruction that reads each value; outputs live to the end."""
        found = {port.value.number: -1 for port in self.inputs}
        for place, instruction in enumerate(self.instructions):
            found[instruction.result.number] = place
            for operand in operands(instruction):
                found[operand.number] = place
        for port in self.outputs:
            found[port.value.number] = len(self.instructions)
        return found

    def _new(self, fmt: Format) -> KernelValue:
        self._count += 1
        return KernelValue(self._count - 1, fmt)

    def _is_untouched_input(self, value: KernelValue) -> bool:
        read = any(value in operands(instruction) for instruction in self.instructions)
        return not read and any(port.value == value for port in self.inputs)

    def _redeclared(self, value: KernelValue, fmt: Format) -> KernelValue:
        found = replace(value, format=fmt)
        self.inputs = [replace(port, format=fmt, value=found) if port.value == value else port for port in self.inputs]
        return found

    def _only_rereads_to(self, value: KernelValue) -> bool:
        last = self.instructions[-1]
        return last.result == value and isinstance(last, Converted) and isinstance(last.step.forms[0], RereadForm)


def operands(instruction: Instruction) -> tuple[KernelValue, ...]:
    """Return the values that an instruction reads."""
    if isinstance(instruction, Converted):
        return (instruction.source,)
    if isinstance(instruction, Kept):
        return instruction.bounded, instruction.origin, instruction.tested
    second = instruction.second
    return (instruction.first, second) if isinstance(second, KernelValue) else (instruction.first,)


# The text of a kernel for a target, and what its arguments are; who writes it, by mechanism.


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """A kernel as text for a target.

    Arguments are named as the kernel's ports, their formats by name in `inputs` and `outputs`. `elements` is the size
    of each, whole tiles; `tiles` how many the loop takes.
    """

    target: Target
    text: str
    suffix: str
    inputs: Mapping[str, Format]
    outputs: Mapping[str, Format]
    elements: int
    tiles: int


class Writing(Protocol):
    """What kernels may hold on the targets of a mechanism, and how they are written; `target` is of the mechanism."""

    NIBBLES_AS_BYTES: bool
    """Whether integers of 4 bits are taken to bytes before anything is computed of them."""

    def has(self, target: Target, function: str, fmt: Format, *, constant: bool) -> bool:
        """See `castsim.graphs.chip.Chip.has`."""
        ...

    def clamps(self, target: Target, functions: tuple[str, ...], fmt: Format) -> bool:
        """Whether one of the functions clamps its results in a format, and makes 0 of NaN."""
        ...

    def program(self, kernel: NodeKernel, target: Target, elements: int) -> NodeProgram:
        """Return the program of a kernel for at least `elements` elements.

        Raises:
            IllegalError, TileError: the target has no program for it.
        """
        ...


WRITING: Parts[Writing] = Parts(
    "program of graphs",
    {
        "strided-repeat": "castsim.graphs.tile_program",
        "vector-function": "castsim.graphs.tile_program",
        "vliw": "castsim.graphs.vector_program",
    },
)
