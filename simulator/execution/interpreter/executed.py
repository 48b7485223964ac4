"""A program walked from its entry: arguments bound, walked, and what came out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from castsim.execution.choices import Choice
from castsim.execution.interpreter.arguments import argument_use, bind_arguments
from castsim.execution.interpreter.budget import Budget
from castsim.execution.interpreter.interpreter import Interpreter
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.interpreter.memory import Memory
from castsim.execution.interpreter.opaque import Cycles, check_named
from castsim.execution.interpreter.places import ArgumentUse, use_in_values
from castsim.execution.interpreter.scalar_access import ReadElement, deciding
from castsim.execution.interpreter.structure import synchronises
from castsim.execution.limits import MAX_WALK
from castsim.execution.tree import Block, Node, Tree
from castsim.isa.errors import Span
from castsim.isa.pto import program as pto
from castsim.isa.warning_text import Warnings


@dataclass(frozen=True, slots=True)
class Executed:
    """A walked program: what the machine issues, what its arguments must hold, the reads that decided its path."""

    tree: Tree
    arguments: Mapping[str, ArgumentUse]
    warnings: Warnings
    decided_by: tuple[ReadElement, ...] = ()
    numbers: Mapping[int, int] = field(default_factory=dict)
    """Those of the instructions of the tree, by the identity of the operation that each comes from."""
    choices: tuple[tuple[Choice, Span], ...] = ()
    """Options that decide what the program computes, as its text leaves that open, each with a place."""


def execute(
    program: pto.Program,
    function: pto.Function,
    lowerer: Lowerer,
    scalars: Mapping[str, int | float],
    *,
    cycles: Cycles | None = None,
    max_walk: int = MAX_WALK,
    memory: Memory | None = None,
) -> Executed:
    """Walk one function of a program and lower what it does.

    Args:
        program: supplies the warnings found while reading.
        function: the entry function.
        lowerer: the target's mechanism.
        scalars: values of the scalar arguments by name.
        cycles: what opaque operations are taken for; those that are not named, for nothing.
        max_walk: trips, and statements inside loops, that are walked.
        memory: what the scalar unit finds in memory; None: nothing is given, and no values are computed.

    Raises:
        ReadError: an argument without a value, mixed placement levels, a step that never ends a loop, an element that
            is read and not given.
        IllegalError, TileError, ScratchError: whatever an instruction is refused for; each carries its place.
        LimitError: the walk is longer than it may be; the place is that of the loop.
    """
    memory = memory or Memory()
    check_named(function.body or (), cycles or {})
    walker = Interpreter(function, lowerer, Budget(max_walk), cycles or {}, memory=memory)
    for name, value in bind_arguments(function, scalars).items():
        walker.environment[name] = value
        use = argument_use(value)
        if use is not None:
            walker.arguments[name] = use
    with_body = function.body or ()
    nodes: list[Node] = []
    walker.walk(with_body, nodes)
    walker.accesses.check_views()
    for use in walker.arguments.values():
        use.follows_reads |= walker.accesses.active and not use.shapes
    memory.widen(walker.arguments)
    tree = Tree(Block(tuple(nodes)), tuple(walker.instructions), interlocked=not synchronises(with_body))
    own = (*walker.warnings, *walker.accesses.closing_warnings())
    warnings = (*program.warnings, *own, *lowerer.closing_warnings())
    uses = {name: use_in_values(use) for name, use in walker.arguments.items()}
    return Executed(tree, uses, warnings, deciding(walker.accesses), walker.numbers, tuple(walker.choices))
