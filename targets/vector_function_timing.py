"""Timing facts of chips that run vector functions (docs/reference/a5.md sections 1, 6 and 7).

Constants may have two decimals: they average over undocumented alternations.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from castsim.targets.dataflow import DataflowTiming
from castsim.targets.schema import Count, Fact, Table

Fitted = Annotated[Decimal, Field(ge=0, decimal_places=2)]


class LaunchTiming(Fact):
    """A vector function around its trips."""

    startup_cycles: Fitted
    """From the launch to the first load."""
    drain_cycles: Fitted
    """From the end of the last store to the end of the function."""


class AccessTiming(Fact):
    """Vector loads and stores, issue to retire."""

    load_cycles: Fitted
    store_cycles: Fitted


class LoadTiming(Fact):
    """Vector loads beyond the first of a trip, and post-updated addresses: cycles per load."""

    per_cycle: Count
    """Loads that issue in one cycle."""
    second_load_cycles: Fitted
    post_update_cycles: Fitted


class LoopTiming(Fact):
    """Hardware loops around the trip."""

    setup_cycles: Fitted
    """To set up loops, if any has more than one trip."""
    row_loop_cycles: Fitted
    """More for a row loop."""
    turnaround_cycles: Fitted
    """From the end of an inner loop's last trip at the front end to the first trip of the next row."""
    turnaround_hidden_cycles: Fitted
    """Part of that done in each cycle for which the last trip holds the serial port after its first."""
    half_byte_row_cycles: Fitted
    """More before each row of several trips where its address is halved (4-bit tiles)."""
    half_byte_trip_row_cycles: Fitted
    """Likewise before each row of a single trip."""


class ChainTiming(Fact):
    """Latencies of compute instructions by mnemonic, and what forwarding saves from producer to consumer."""

    latency_cycles: dict[str, Fitted]
    forwarding_cycles: Fitted


class PortTiming(Fact):
    """The serial port: cycles that each of these mnemonics holds it; and the distance of two stores."""

    occupancy_cycles: dict[str, Fitted]
    store_cycles: Fitted


class StoreBarrierTiming(Fact):
    """A barrier between stores: from its turn, once what precedes it has begun, to the store behind it."""

    cycles: Fitted


class BranchTiming(Fact):
    """One serialising scalar branch inside a vector function."""

    cycles: Fitted


class MemoryPathTiming(Fact):
    """The time of a trip on the path between load and store, where rows of several trips follow each other."""

    trip_cycles: Fitted


class MemoryFloorTiming(Fact):
    """A memory-bound kernel takes at least `start_cycles` plus `trip_cycles` per trip, from launch to end."""

    start_cycles: Fitted
    trip_cycles: Fitted


class UnpackHeadTiming(Fact):
    """The head of 1D kernels with an unpacking load over S source bytes: accesses that wait as stores at a barrier do.

    There are `waits` of them, one less for each whole `step_bytes` of S, if S is not a multiple of `line_bytes` and its
    bit `bank_bit` is 0; none elsewhere.
    """

    waits: Annotated[int, Field(ge=0, strict=True)]
    step_bytes: Count
    line_bytes: Count
    bank_bit: Count


class DivisionTiming(Fact):
    """Divisions that are no vector instruction, high-precision ones and those of integers: trips do not overlap."""

    trip_cycles: dict[str, Fitted]
    overlap_cycles: Fitted


class PacedTiming(Fact):
    """Trips of one kind that follow each other so many cycles apart, and what each of their rows takes besides.

    `rows_of_several_cycles` holds for rows of several trips; a row of one has a pace only if it has `row_cycles`.
    """

    trip_cycles: Fitted
    row_cycles: Fitted | None = None
    rows_of_several_cycles: Fitted = Decimal(0)

    def row(self, trips: int) -> Decimal:
        """Return the cycles that a row of so many trips takes besides them."""
        return self.rows_of_several_cycles if trips > 1 else self.row_cycles or Decimal(0)

    def trip(self, trips: int) -> Decimal:
        """Return the cycles from trip to trip of a row of so many."""
        return self.trip_cycles if trips > 1 or self.row_cycles is not None else Decimal(0)


class SpecialFunctionTiming(Fact):
    """Ports of the special functions, and the cycles for which an instruction holds one, by format."""

    ports: Count
    port_cycles: dict[str, Fitted]


class UnrollingTiming(Fact):
    """Loops of a micro program that the device compiler writes out have up to so many trips."""

    most_trips: Count


class DispatchTiming(Fact):
    """Instructions of a micro program that are dispatched in one cycle, and the places where they wait to start."""

    per_cycle: Count
    queue: Count
    port_queue: Count
    """Of each execution port."""


class RegisterTiming(Fact):
    """Physical vector registers."""

    physical: Count


class ExecutionTiming(Fact):
    """Execution ports, and the instructions beside the converts that only the first of them executes."""

    ports: Count
    first_port: tuple[str, ...]


class ForwardingTiming(Fact):
    """Cycles from the start of an instruction to that of one that computes with its result, by the first."""

    cycles: dict[str, Fitted]


class InterleavedStoreTiming(Fact):
    """A store of two registers, issue to retire."""

    store_cycles: Fitted


class SingleAccessTiming(Fact):
    """Loads and stores that have the port of their kind alone, and for how long, by instruction or distribution."""

    cycles: dict[str, Count]


class MicroTiming(Table):
    """What micro programs rest on beside the facts of every function (docs/reference/micro.md 6).

    `forwarding_to` holds the pairs whose second instruction is named, which come before those of `forwarding`.
    """

    unrolling: UnrollingTiming
    single_access: SingleAccessTiming
    dispatch: DispatchTiming
    registers: RegisterTiming
    execution: ExecutionTiming
    forwarding: ForwardingTiming
    forwarding_to: dict[str, ForwardingTiming]
    interleaved_store: InterleavedStoreTiming


class VectorFunctionTiming(DataflowTiming):
    """All timing facts."""

    launch: LaunchTiming
    access: AccessTiming
    loads: LoadTiming
    loops: LoopTiming
    chain: ChainTiming
    port: PortTiming
    store_barrier: StoreBarrierTiming
    branch: BranchTiming
    memory_path: MemoryPathTiming
    memory_floor: dict[str, MemoryFloorTiming]
    unpack_head: UnpackHeadTiming
    division: DivisionTiming
    paced: dict[str, PacedTiming]
    special_function: SpecialFunctionTiming
    micro: MicroTiming
