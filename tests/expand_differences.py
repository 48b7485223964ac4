"""Why the vector instructions of a tile cast may take other cycles than the cast: every reason by name, with its bounds.

The reasons stand in docs/reference/micro.md section 7.2 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from a5_cases import A5

from castsim.execution.tree import Tree, instances, operations
from castsim.machines.vector_function.operations import Ascend, Duplicate, Load, Nest, Spread, VectorFunction

Bounds = tuple[float, float]
PROFILED = {(each.src, each.dst) for each in A5.profiled_sequences}
"""Casts whose published cycles are those of other instructions than the kernel's: compared under `OWN_SEQUENCES`."""
OWN_SEQUENCES = "// castsim: option profiled_sequences=text\n"


def function_in(tree: Tree) -> VectorFunction:
    """The one vector function that a program issues."""
    (found,) = (
        each
        for lowered, deltas in instances(tree)
        for each in operations(lowered, deltas)
        if isinstance(each, VectorFunction)
    )
    return found


@dataclass(frozen=True)
class Difference:
    """A reason, and the bounds of what the instructions take more (less, if negative); None: it does not apply."""

    name: str
    reason: str
    bounds: Callable[[VectorFunction, Nest], Bounds | None]


def _head(function: VectorFunction, main: Nest) -> Bounds | None:
    del function
    unpacks = any(isinstance(each, Load) and each.distribution.startswith("UNPK") for each in main.trip)
    return (-26, 26) if unpacks and not main.row_loop and main.count % main.elements else None


def _setup(function: VectorFunction, main: Nest) -> Bounds | None:
    constants = any(isinstance(each, Duplicate | Ascend) for each in function.setup)
    return (0, 2) if constants and main.trips <= 2 else None


def _predicates(function: VectorFunction, main: Nest) -> Bounds | None:
    del function
    spreads = any(isinstance(each, Spread) for each in main.trip)
    return (0, 2 * main.rows) if spreads and main.row_loop and main.trips == 1 else None


def _halves(function: VectorFunction, main: Nest) -> Bounds | None:
    halves = 4 in (function.source_format.bits, function.destination_format.bits)
    return (-2.5 * (main.rows - 1) - 1, 0) if halves and main.row_loop and main.trips > 1 else None


def _fill(function: VectorFunction, main: Nest) -> Bounds | None:
    del main
    trips = sum(each.trips for each in function.nests[:-1])
    return (0, 1 + trips / 4) if trips else None


DIFFERENCES = (
    Difference("head", "the head of an unpacking load goes by the bytes of the row, in instructions by whole loads", _head),
    Difference("setup", "constants ahead of the loops are ready when wanted; as instructions, 2 cycles later", _setup),
    Difference("predicates", "a predicate that is the same in every row is made once; as an instruction, per row", _predicates),
    Difference("halves", "rows of 4-bit elements have their addresses halved; the instructions have them halved", _halves),
    Difference("fill", "stores of the zero fill and of the cast behind it meet one port, a cycle apart", _fill),
)  # fmt: skip


def bounds_of(function: VectorFunction, *, without: str = "") -> Bounds:
    """What the instructions may take more than the cast, over all reasons but one."""
    main = function.nests[-1]
    found = [each.bounds(function, main) for each in DIFFERENCES if each.name != without]
    return sum(each[0] for each in found if each), sum(each[1] for each in found if each)
