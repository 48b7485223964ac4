"""Facts of the vector operations other than casts on chips that run vector functions: kernels and arithmetic.

Facts: docs/reference/a5.md section 9 (structure of the kernels, latencies), section 6.2 (ports).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

from castsim.targets.dataflow import DataflowTiming, TileOperationFacts, structures_of
from castsim.targets.description import Count, Fact, Table, Words
from castsim.targets.validated import BeforeValidator, Field

# Timing facts of chips that run vector functions (docs/reference/a5.md sections 1, 6 and 7).
#
# Constants may have two decimals: they average over undocumented alternations.

Fitted = Annotated[Decimal, Field(ge=0, decimal_places=2)]


class LaunchTiming(Fact):
    """Timing of a vector function outside its trips."""

    startup_cycles: Fitted
    """Cycles from the launch to the first load."""
    drain_cycles: Fitted
    """Cycles from the end of the last store to the end of the function."""


class AccessTiming(Fact):
    """Cycles of vector loads and stores, issue to retire."""

    load_cycles: Fitted
    store_cycles: Fitted


class LoadTiming(Fact):
    """Cycles per load beyond the first of a trip, and of post-updated addresses."""

    per_cycle: Count
    """Number of loads that issue in one cycle."""
    second_load_cycles: Fitted
    post_update_cycles: Fitted


class LoopTiming(Fact):
    """Timing of hardware loops around the trip."""

    setup_cycles: Fitted
    """Cycles to set up loops, if any has more than one trip."""
    row_loop_cycles: Fitted
    """Additional cycles for a row loop."""
    turnaround_cycles: Fitted
    """Cycles from the end of an inner loop's last trip at the front end to the first trip of the next row."""
    turnaround_hidden_cycles: Fitted
    """Part of that done in each cycle for which the last trip occupies the serial port after its first."""
    half_byte_row_cycles: Fitted
    """Additional cycles before each row of several trips where its address is halved (4-bit tiles)."""
    half_byte_trip_row_cycles: Fitted
    """Additional cycles before each row of a single trip where its address is halved."""


class ChainTiming(Fact):
    """Latencies of compute instructions by mnemonic, and the saving by forwarding from producer to consumer."""

    latency_cycles: dict[str, Fitted]
    forwarding_cycles: Fitted


class FamiliesTiming(Fact):
    """Published latencies that profiled kernels contradict, by mnemonic: an option chooses them."""

    cycles: dict[str, Fitted]


class PortTiming(Fact):
    """Cycles for which each of these mnemonics occupies the serial port, and the distance of two stores."""

    occupancy_cycles: dict[str, Fitted]
    store_cycles: Fitted


class StoreBarrierTiming(Fact):
    """Cycles of a barrier between stores: from its turn, once earlier work has begun, to the next store."""

    cycles: Fitted


class BranchTiming(Fact):
    """Cycles of one serialising scalar branch inside a vector function."""

    cycles: Fitted


class MemoryPathTiming(Fact):
    """Cycles of a trip on the path between load and store, if rows of several trips follow each other."""

    trip_cycles: Fitted


class MemoryFloorTiming(Fact):
    """A memory-bound kernel takes at least `start_cycles` plus `trip_cycles` per trip, from launch to end."""

    start_cycles: Fitted
    trip_cycles: Fitted


class UnpackHeadTiming(Fact):
    """The head of 1D kernels with an unpacking load over S source bytes: accesses that wait like stores at a barrier.

    There are `waits` of them, one less for each whole `step_bytes` of S, if S is not a multiple of `line_bytes` and its
    bit `bank_bit` is 0; none elsewhere.
    """

    waits: Annotated[int, Field(ge=0, strict=True)]
    step_bytes: Count
    line_bytes: Count
    bank_bit: Count


class DivisionTiming(Fact):
    """Divisions other than vector instructions, high-precision and integer ones, whose trips do not overlap."""

    trip_cycles: dict[str, Fitted]
    overlap_cycles: Fitted


class PacedTiming(Fact):
    """Trips of one kind that follow each other at a distance in cycles, and the additional cycles of their rows.

    `rows_of_several_cycles` applies to rows of several trips; a row of one has a pace only if it has `row_cycles`.
    """

    trip_cycles: Fitted
    row_cycles: Fitted | None = None
    rows_of_several_cycles: Fitted = Decimal(0)

    def row(self, trips: int) -> Decimal:
        """Return the additional cycles of a row with a number of trips."""
        return self.rows_of_several_cycles if trips > 1 else self.row_cycles or Decimal(0)

    def trip(self, trips: int) -> Decimal:
        """Return the cycles between trips of a row with a number of trips."""
        return self.trip_cycles if trips > 1 or self.row_cycles is not None else Decimal(0)


class SpecialFunctionTiming(Fact):
    """Ports of the special functions, and the cycles for which an instruction occupies one, by format."""

    ports: Count
    port_cycles: dict[str, Fitted]


class UnrollingTiming(Fact):
    """Maximum number of trips of a micro program's loop that the device compiler unrolls."""

    most_trips: Count


class DispatchTiming(Fact):
    """Number of instructions of a micro program dispatched per cycle, and of slots where they wait to start."""

    per_cycle: Count
    queue: Count
    port_queue: Count
    """Number of slots of each execution port."""


class RegisterTiming(Fact):
    """Number of physical vector registers."""

    physical: Count


class ExecutionTiming(Fact):
    """Execution ports, and the instructions besides converts that only the first of them executes."""

    ports: Count
    first_port: tuple[str, ...]


class StorePortTiming(Fact):
    """Stores that also take a cycle of an execution port, and its return after a store's latency."""

    stores: tuple[str, ...]


class ForwardingTiming(Fact):
    """Cycles from the start of an instruction to that of one that computes with its result, by the first."""

    cycles: dict[str, Fitted]


class InterleavedStoreTiming(Fact):
    """Cycles of a store of two registers, issue to retire."""

    store_cycles: Fitted


class MemoryBarrierTiming(Fact):
    """Minimum cycles of a barrier for loads or of all kinds: from the previous access or barrier to the next."""

    cycles: Fitted


class SingleAccessTiming(Fact):
    """Loads and stores that occupy the port of their kind alone, and for how long, by instruction or distribution."""

    cycles: dict[str, Count]


class ReductionTiming(Fact):
    """Reductions of a whole register whose results no instruction has read yet."""

    in_flight: Count
    mnemonics: tuple[str, ...]


class ExpansionTiming(Fact):
    """Loops that only store values loaded in the enclosing loop.

    `turn_cycles` are added to the turnaround of such a loop, `computed_store_cycles` is the front end's time for the
    store of a register that an instruction computed from the load.
    """

    turn_cycles: Fitted
    computed_store_cycles: Fitted


class MicroTiming(Table):
    """Facts of micro programs in addition to those of every function (docs/reference/micro.md 6).

    `forwarding_to` are the pairs whose second instruction is named, which take precedence over `forwarding`.
    """

    unrolling: UnrollingTiming
    single_access: SingleAccessTiming
    dispatch: DispatchTiming
    registers: RegisterTiming
    execution: ExecutionTiming
    store_port: StorePortTiming
    forwarding: ForwardingTiming
    forwarding_to: dict[str, ForwardingTiming]
    interleaved_store: InterleavedStoreTiming
    reductions: ReductionTiming
    expansions: ExpansionTiming
    memory_barrier: MemoryBarrierTiming


class VectorFunctionTiming(DataflowTiming):
    """All timing facts."""

    launch: LaunchTiming
    access: AccessTiming
    loads: LoadTiming
    loops: LoopTiming
    chain: ChainTiming
    families: FamiliesTiming
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


KernelVariant = Literal["1D_POST_UPDATE", "1D_NO_POST_UPDATE", "2D_POST_UPDATE", "2D_NO_POST_UPDATE"]

FLAT: frozenset[KernelVariant] = frozenset(["1D_POST_UPDATE", "1D_NO_POST_UPDATE"])
"""Variants that process a tile as one row."""
POST_UPDATES: frozenset[KernelVariant] = frozenset(["1D_POST_UPDATE", "2D_POST_UPDATE"])
"""Variants whose loads update their addresses."""

STRUCTURES = structures_of("vector-function")
"""The structures of kernels by name; `castsim.machines.vector_function.function_lowering` lays them out."""

if TYPE_CHECKING:
    StructureName = str
else:
    StructureName = Literal[tuple(STRUCTURES)]


class ComputeInstruction(Fact):
    """One compute instruction.

    Latencies are those on lanes of 32 bits and more, and of 16 bits and less; in the vector instructions of a text,
    integer lanes may differ. `port`: `any` is never short, `serial`
    is the port of the converts, occupied for `held` cycles, `special` the ports of the special functions, `exclusive`
    means instructions whose trips do not overlap. Integer lanes occupy their port for `integers_held` cycles, in the
    vector instructions of a text; without it, and in tile operations, for one. `again` is the distance of two that
    accumulate into the same register; without it, the latency less forwarding.
    """

    latency_32: Fitted
    latency_16: Fitted
    latency_integers: Fitted | None = None
    port: Literal["any", "serial", "special", "exclusive"]
    held: Fitted | None = None
    integers_held: Fitted | None = None
    again: Fitted | None = None

    def latency(self, width: int, *, integers: bool = False) -> Fitted:
        """Return the latency on lanes of `width` bits."""
        if integers and self.latency_integers is not None:
            return self.latency_integers
        return self.latency_32 if width >= 32 else self.latency_16


class VectorFunctionOperation(TileOperationFacts):
    """One vector operation with its kernel.

    `structure` names its loops; `instructions` are between load and store, in order; `choice` names the table of
    variants. `broadcasts` are the scalars that each row of a loop over rows spreads first. `scalar_integers` names the
    instruction of a scalar element loop that integer types run instead.
    `control` is the class of CTRL bits written around it for the formats `controlled`.
    """

    structure: StructureName
    choice: str
    scalar_integers: str | None = None
    broadcasts: Count = 0
    control: str | None = None
    controlled: Words = ()


class KernelVariants(Fact):
    """The code variant that runs: indexed by implementation kind, for contiguous and for padded tiles."""

    contiguous: tuple[KernelVariant, ...]
    padded: tuple[KernelVariant, ...]


def by_column(name: str) -> BeforeValidator:
    """Return a validator that maps the rows of a table by one of their columns, whose values must be distinct."""

    def mapped(rows: Any) -> Any:
        if isinstance(rows, Mapping):
            return rows
        entries: dict[str, Any] = {}
        for row in rows:
            key = row.get(name)
            if not isinstance(key, str) or key in entries:
                raise ValueError(f"{name} {key!r} is listed twice" if key in entries else f"a row without {name}")
            entries[key] = {column: value for column, value in row.items() if column != name and value is not None}
        return entries

    return BeforeValidator(mapped)
