"""Why the vector instructions of a tile operation may take other cycles than it: every reason by name, with bounds.

The reasons stand in docs/reference/micro.md section 7.2 too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kit.a5_cases import A5

from castsim.execution.tree import Tree, instances, operations
from castsim.machines.vector_function.function_operations import Nest, VectorFunction, is_load, mnemonic

Bounds = tuple[float, float]
PROFILED = {(each.src, each.dst) for each in A5.profiled_sequences}
"""Casts whose published cycles are those of other instructions than the kernel's: compared under `OWN_SEQUENCES`."""
KERNELS_TIMES = "// castsim: option instruction_families=none\n"
"""A text of a kernel is timed as the kernel: compared under this."""
OWN_SEQUENCES = "// castsim: option profiled_sequences=text\n"


def function_in(tree: Tree) -> VectorFunction:
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
    unpacks = any(is_load(each) and each.word("dist").startswith("UNPK") for each in main.trip)
    return (-25, 25) if unpacks and not main.row_loop and main.count % main.elements else None


def _setup(function: VectorFunction, main: Nest) -> Bounds | None:
    constants = any(mnemonic(each) in ("vdup", "vci") for each in function.setup)
    return (0, 2) if constants and main.trips <= 2 else None


def _predicates(function: VectorFunction, main: Nest) -> Bounds | None:
    del function
    spreads = any(mnemonic(each) == "punpack" for each in main.trip)
    return (0, 2 * main.rows) if spreads and main.row_loop and main.trips == 1 else None


def _halves(function: VectorFunction, main: Nest) -> Bounds | None:
    halves = 4 in (function.source_format.bits, function.destination_format.bits)
    return (-2 * main.rows, 0) if halves and (main.trips > 1 or main.row_loop) else None


DIFFERENCES = (
    Difference("head", "an unpacking load's head goes by the bytes of the row, in instructions by whole loads", _head),
    Difference("setup", "constants ahead of the loops are ready when wanted; as instructions, 2 cycles later", _setup),
    Difference("predicates", "a predicate equal in every row is made once; as an instruction, per row", _predicates),
    Difference("halves", "rows of 4-bit elements have their addresses halved; in instructions they are", _halves),
)


def bounds_of(function: VectorFunction) -> Bounds:
    """What the instructions may take more than the cast, over all reasons."""
    main = function.nests[-1]
    found = [each.bounds(function, main) for each in DIFFERENCES]
    return sum(each[0] for each in found if each), sum(each[1] for each in found if each)


@dataclass(frozen=True)
class Spread:
    """Bounds of a reason for an operation other than a cast: at all, for each row and each trip."""

    name: str
    reason: str
    whole: Bounds
    row: Bounds = (0, 0)
    trip: Bounds = (0, 0)

    def bounds(self, rows: int, trips: int) -> Bounds:
        """Bounds for so many rows and trips in all of them."""
        least, most = (self.whole[end] + rows * self.row[end] + trips * self.trip[end] for end in (0, 1))
        return least, most


_PORTS = Spread("ports", "two loads and a store in the same banks: which of them asks first; constants ahead", (-3, 2))
_STRUCTURES = {
    "compare": Spread(
        "comparisons", "predicates are stored by 128 bits: 32-bit lanes by pairs of registers, ragged rows apart; "
        "whole tiles have the published cycles of one row, the text turns at each row of the result",
        (-15, 5), row=(0, 5), trip=(-1, 0),
    ),
    "select": Spread(
        "masks", "a mask split over two predicates holds up the next trip; instructions on predicates take no time",
        (-10, 2), trip=(-13, 0.5),
    ),
    "row_reduction": Spread("sums", "an accumulation waits for its reduction", (-2, 2), trip=(0, 0.5)),
    "row_product": Spread("fold", "ones fill up a row, and both halves of a fold come from one instruction", (-5, 5),
                          row=(-1, 8), trip=(0, 1)),
    "column_reduction": Spread("first", "neutral values and predicates of the columns are instructions", (-12, 20),
                               row=(-1, 8)),
    "row_broadcast": Spread("narrow rows", "an element is loaded and spread in every trip of a row", (-6, 13)),
    "fill": Spread(
        "unaligned", "published cycles of unaligned stores and their flush; as instructions they are stores as others",
        (0, 1), row=(0, 1), trip=(-11, 0),
    ),
    "part": Spread("barrier", "a load behind the copy's stores waits for them: mem_bar", (-3, 14)),
}  # fmt: skip
_MNEMONICS = {
    "tcolexpand": Spread(
        "columns", "published cycles load a vector once for all rows; the text walks row by row and turns at each",
        (-3, 2), row=(0, 5), trip=(-1, 0),
    ),
    "taxpy": Spread(
        "destination",
        "published trips wait for the store before; the text does not, nor do others that load what "
        "they store (docs/reference/a5.md section 9)",
        (0, 2),
        trip=(-50, 5),
    ),
    "trsqrt": Spread("special functions", "two of them in a row share a port in turn", (-16, 4), trip=(-4, 1)),
}  # fmt: skip


def spread_of(structure: str, mnemonic: str) -> Spread:
    """The reason for which an operation's instructions may take other cycles."""
    return _MNEMONICS.get(mnemonic) or _STRUCTURES.get(structure) or _PORTS
