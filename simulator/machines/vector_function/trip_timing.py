"""The accesses of the trips of a loop nest, and the times around them that are facts about kernels."""

from __future__ import annotations

from collections.abc import Iterable

from castsim.execution.transfer_timing import TICKS, ticks
from castsim.isa.pto.value_types import MicroOperation
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Nest,
    VectorFunction,
    computes,
    distribution_in,
    formats_of,
    is_load,
    width_of,
)
from castsim.machines.vector_function.function_timing import (
    head_penalty,
    path_through,
)
from castsim.targets.vector_function import DistributionMode, VectorFunctionTarget

# What a trip of a loop nest asks of the machine.

_PARTS = {DistributionMode.UNPK: 2, DistributionMode.UNPK4: 4, DistributionMode.PK: 2, DistributionMode.PK4: 4}
"""Number of parts of a register of which an access with this distribution touches one, by its definition."""

_ONE_ELEMENT = (DistributionMode.BRC, DistributionMode.ONEPT)
"""Distributions that load one element to all lanes, or store one."""


def touched_bytes(node: MicroOperation, target: VectorFunctionTarget) -> int:
    """Return the bytes that a load or a store touches when all lanes are active."""
    read, register_bytes = distribution_in(node), target.registers.register_bytes
    mode, bits = read.mode, read.bits or 0
    if mode is DistributionMode.BLK:
        return target.registers.block_bytes
    if mode is DistributionMode.DINTLV:
        return register_bytes * 2
    if mode is DistributionMode.MASK:
        return max(1, register_bytes // bits)
    if mode in _ONE_ELEMENT:
        return bits // 8
    return register_bytes // _PARTS.get(mode, 1)


def issue_ticks(loads: int, lines: int, stores: int, target: VectorFunctionTarget) -> int:
    """Return the ticks for which a trip's accesses occupy the front end; the queue limits trips that only store.

    A cycle issues two loads, or a load and a store (docs/reference/a5.md section 1). `lines` of the loads fill a
    register each; every two of them take as long as those of a kernel with two, whose trips wait in the memory path
    (timing.memory_floor).
    """
    timing = target.timing
    per_cycle = timing.loads.per_cycle
    if not loads:
        return 0
    alone = max(-(-loads // per_cycle) * TICKS, stores * ticks(timing.port.store_cycles))
    if loads <= 2 or not stores:
        return alone
    together = (loads + stores) * TICKS // per_cycle
    pairs = lines // 2 if lines > 2 else 0
    return max(alone, together, pairs * ticks(timing.memory_floor["two_loads"].trip_cycles))


def division_ticks(mnemonic: str, width: int, target: VectorFunctionTarget) -> tuple[int, int] | None:
    """Return how late the results of a division that is timed as a whole are, and how long it occupies the serial port.

    The long body of the high-precision division, and that of integers, occupies the front end for a whole trip; its end
    overlaps with later work (docs/reference/a5.md section 6.3). None for other instructions.
    """
    if mnemonic not in (LONG_DIVISION, INTEGER_DIVISION):
        return None
    bits = 32 if width >= 32 else 16
    division = target.timing.division
    held = division.trip_cycles[f"{'f' if mnemonic == LONG_DIVISION else 'i'}{bits}"]
    return ticks(held - division.overlap_cycles), ticks(held)


def conversion_row(node: MicroOperation, target: VectorFunctionTarget) -> str:
    """Return the row of the table of instructions with the latency of a conversion; '' for other instructions."""
    pair = formats_of(node)
    return "" if pair is None or node.mnemonic == "vtrc" else target.conversion_row(*pair, kernel=True)


def exclusive_ticks(operations: Iterable[MicroOperation], target: VectorFunctionTarget) -> int:
    """Return the ticks for which trips that split a mask over two predicates delay the next one; otherwise 0.

    They run from the load to the end of the instruction that reads the predicates.
    """
    split: set[str] = set()
    held = 0
    for item in operations:
        if computes(item):
            row = target.arithmetic.get(item.mnemonic)
            if row is not None and row.port == "exclusive":
                split.update(item.results)
            elif not split.isdisjoint(item.operands) and len(item.operands) > 2:  # chooses between two loaded vectors
                latency = target.latency(item.mnemonic, width_of(item)) or 0
                held = max(held, ticks(target.timing.access.load_cycles + latency))
    return held if held and target.option("predicate_interleave") == "exclusive" else 0


# What a loop nest costs beside its trips' own work: the numbers that every engine takes from the facts, in ticks.


def row_address(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> int:
    """Return the ticks for the address of each row of a nest, including the first one: it counts half bytes.

    Source: docs/reference/a5.md section 6.2, rule 10.
    """
    half_bytes = 4 in (function.source_format.bits, function.destination_format.bits)
    if not half_bytes or not any(is_load(item) for item in nest.trip):
        return 0
    ordered = any(item.mnemonic == "mem_bar" for item in nest.trip)
    if nest.trips == 1 and (ordered or not nest.row_loop):  # a barrier in each row takes longer and hides it
        return 0
    loops = target.timing.loops
    return ticks(loops.half_byte_row_cycles if nest.trips > 1 else loops.half_byte_trip_row_cycles)


HEAD_FACTS = ("timing.unpack_head", "timing.store_barrier")
"""The facts behind the start of a kernel with an unpacking load."""


def head_of(target: VectorFunctionTarget, source_bytes: int) -> int:
    """Return the ticks by which an unpacking load delays the start of a 1D kernel, by source bytes; also for arrays.

    Source: docs/reference/a5.md section 6.2, rule 9.
    """
    facts, wait = target.timing.unpack_head, ticks(target.timing.store_barrier.cycles)
    return head_penalty(source_bytes, facts.waits, wait, facts.line_bytes, facts.step_bytes, facts.bank_bit)


class MemoryPath:
    """The memory path of a function's lines between load and store, nest by nest."""

    def __init__(self) -> None:
        self._free = 0

    def take(self, arrival: int, hold: int, opened: int | None) -> int:
        """Pass a line that arrives at tick `arrival` and return when it has passed, `hold` ticks each (0: at once).

        A nest may have `opened` the path at some tick (`timing.path_through`).
        """
        if not hold:
            return arrival
        self._free = path_through(max(self._free, opened or 0), arrival, hold, opened is not None)
        return self._free
