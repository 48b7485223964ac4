"""A micro program walked from its entry: arguments bound, walked, and what they are used for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from castsim.execution.interpreter.arguments import bind_arguments
from castsim.execution.interpreter.budget import Budget
from castsim.execution.interpreter.places import ArgumentUse
from castsim.execution.interpreter.places import Pointer as GlobalPointer
from castsim.execution.micro.elements import Elements
from castsim.execution.micro.interpreter import MicroInterpreter
from castsim.execution.micro.memory import MicroMemory
from castsim.execution.micro.pointers import Pointer
from castsim.execution.micro.unit import VectorUnit
from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, Format
from castsim.isa.pto import program as pto
from castsim.isa.pto.packed import PairFormat, element_format
from castsim.isa.warning_text import Warnings


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk leaves: the uses of arguments, and warnings."""

    arguments: Mapping[str, ArgumentUse]
    warnings: Warnings


def argument_format(kind: pto.PointerType) -> Format:
    """Return the format of an argument's arrays: elements that are pairs are as many bytes as they take."""
    found = element_format(kind.element)
    return FORMATS[f"u{found.storage_bits}"] if isinstance(found, PairFormat) else found


def walk_function(
    function: pto.Function,
    scalars: Mapping[str, int | float],
    unit: VectorUnit,
    capacity: int,
    max_walk: int,
    control: int = 0,
    memory: MicroMemory | None = None,
    elements: Elements | None = None,
) -> Walked:
    """Walk a function of vector instructions.

    Args:
        function: the entry.
        scalars: values of scalar arguments by name.
        unit: what executes vector instructions.
        capacity: bytes of the buffer.
        max_walk: trips and statements inside loops that are walked.
        control: the CTRL register at the start.
        memory: what transfers move; None: nothing is computed.
        elements: takes in what the scalar unit reads, and knows it where nothing is computed.

    Raises:
        ReadError: an argument without a value, a step that never ends a loop.
        IllegalError, TileError: whatever an instruction is refused for; each carries its place.
        LimitError: the walk is longer than it may be. EngineError: a wait for a flag that nothing sets.
    """
    walker = MicroInterpreter(unit, capacity, Budget(max_walk), control, memory, elements=elements or Elements())
    for name, value in bind_arguments(function, scalars).items():
        if not isinstance(value, GlobalPointer):
            walker.environment[name] = value
            continue
        kind = next(each for each in function.arguments if each.name == name)
        assert isinstance(kind.type, pto.PointerType)
        if kind.type.space == "ub":
            raise IllegalError(f"argument %{name} points into the buffer of a core", span=kind.span, legal=("gm",))
        walker.environment[name] = Pointer(name, 0, kind.type.element)
        use = ArgumentUse(argument_format(kind.type))
        use.follows_reads = True  # pointers have no extent: arrays may be longer than what is used of them
        walker.arguments[name] = use
    walker.walk(function.body or ())
    walker.check_flags()
    return Walked(walker.arguments, tuple(walker.warnings))
