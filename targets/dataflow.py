"""Schema common to chips whose pipes pass tiles through one buffer: pipes, transfers, banks, the scalar unit.

A mechanism adds its vector unit. Facts: docs/reference/a2a3.md sections 5, 6, 8; docs/reference/a5.md sections 1, 8;
docs/reference/pto.md section 3.5.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS
from castsim.isa.pto.value_types import BLOCK_BITS
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.isa.reading import table_rows
from castsim.targets.csv_tables import SHIPPED
from castsim.targets.description import (
    LIST_SEPARATOR,
    Cores,
    Count,
    Cycles,
    Fact,
    GlobalMemory,
    KernelLaunch,
    LaunchInterval,
    Listed,
    SharedCache,
    Table,
    TargetHeader,
    TransferPair,
    TransferTiming,
    Words,
    built_for,
)
from castsim.targets.validated import Field, model_validator

# Schema of the vector operations on tiles: which a chip has, for which elements, and where libraries differ.
#
# Facts: docs/reference/pto.md section 7. What an operation computes is the same on every chip except for what stands
# here.


class TileOperationFacts(Fact):
    """One vector operation on one chip: its types and its kernel, to which source, status and note refer.

    `types` are its element formats; for comparisons those of the compared elements. `library_types` are additional
    ones that the C++ library has and the text form refuses. `tmp` is the use of a scratch tile in the text;
    `approximate` is the reason why values may not be bit-exact (None: they are). `instructions` form this
    kernel by its structure, which a mechanism names; in the order of use.
    """

    mnemonic: str
    types: Listed
    library_types: Listed = ()
    tmp: Literal["none", "used", "ignored", "refused"]
    validated: Listed = ()
    """Formats for which published cycles of the operation are compared with the simulation."""
    approximate: str | None = None
    instructions: Words = ()

    @model_validator(mode="before")
    @classmethod
    def _without_empty_cells(cls, row: Any) -> Any:
        return {key: cell for key, cell in row.items() if cell is not None} if isinstance(row, dict) else row


@dataclass(frozen=True, slots=True)
class StructureOf:
    """The purpose of a structure of kernels: the kinds of operations, and the range of the number of instructions."""

    kinds: tuple[Kind, ...]
    least: int = 0
    most: int = 0


def structures_of(mechanism: str) -> Mapping[str, StructureOf]:
    """Return the structures of a mechanism's kernels by name."""
    return {
        row["structure"]: StructureOf(
            tuple(map(Kind, row["kinds"].split(LIST_SEPARATOR))), int(row["least"]), int(row["most"])
        )
        for row in table_rows(SHIPPED / "kernel_structures.csv")
        if row["mechanism"] == mechanism
    }


def check_kernel(operation: TileOperationFacts, name: str, structure: StructureOf) -> None:
    """Reject a kernel whose structure, named `name`, does not fit the operation's kind or number of instructions.

    Raises:
        ValueError: it does not fit; the message names the operation, its kernel and the legal ones.
    """
    what, count = f"tile_operations: {operation.mnemonic}", len(operation.instructions)
    vector_operation = VECTOR_OPERATIONS.get(operation.mnemonic)
    if vector_operation is not None and vector_operation.kind not in structure.kinds:
        kinds = ", ".join(structure.kinds)
        raise ValueError(f"{what}: structure '{name}' is for operations of kind {kinds}, not {vector_operation.kind}")
    if not structure.least <= count <= structure.most:
        legal = str(structure.least) if structure.least == structure.most else f"{structure.least} to {structure.most}"
        raise ValueError(f"{what}: {count} instructions, but structure '{name}' takes {legal}")


class ScratchWindow(Fact):
    """Bytes of the buffer that some operations overwrite although they are not reserved."""

    start: Annotated[int, Field(ge=0)]
    end: Count


class BroadcastScratch(Fact):
    """Scratch of a row broadcast of a column vector: `bytes` for each `rows` rows, `most` from `limit` rows on."""

    rows: Count
    bytes: Count
    limit: Count
    most: Count


class RampScratch(Fact):
    """Bytes of scratch of a ramp of 32-bit and of 16-bit numbers, in a tile with elements of `element_bits`."""

    element_bits: Count
    bytes_32: Count
    bytes_16: Count


class ArithmeticSaturation(Fact):
    """Results that clamp to the largest and smallest number, with NaN becoming 0.

    This applies to `functions` on elements of `formats` while all options of `holds_while` have the values there.
    """

    formats: tuple[str, ...]
    functions: tuple[str, ...]
    holds_while: tuple[tuple[str, int | str], ...]


class TileArithmetic(Fact):
    """The differences between the vector operations of chips in their results or touched bytes."""

    saturation: tuple[ArithmeticSaturation, ...]
    """Clamping results; a function of a format is in at most one of these rules."""
    equality_only: tuple[str, ...] = ()
    """Formats whose every comparison acts as `eq`."""
    compare_bytes: Count | None = None
    """Number of bytes of a row that are compared at once, valid or not; None: only the valid elements."""
    inverts_whole_mask: bool = False
    """`ne` is `eq` followed by an inversion of all bytes of the destination tile."""
    mask_has_source_shape: bool = False
    move_bytes: Count | None = None
    """Unit in which a move copies the end of a row, beyond the valid columns; None: only the elements."""
    move_needs_one_shape: bool = False
    equal_pad_keeps_source: bool = False
    """Filling between tiles of one pad value copies the rest of a row's last block from the source."""
    in_place_reciprocal: tuple[str, ...] = ()
    """Formats whose division by a scalar in place multiplies by the rounded reciprocal."""
    divides_through: tuple[tuple[str, str], ...] = ()
    """Integer format, and the float format into which a division by a scalar converts its source, in place."""
    scalar_dividend_in_place: bool = True
    reciprocal_root: Literal["estimate", "divide"] = "divide"
    """Reciprocal square root without scratch: one hardware estimate, or a root and a division."""
    piece_bytes: Count
    """Number of bytes that one instruction of a row reduction processes."""
    row_pieces: Literal["tree", "accumulator"]
    """Order of joining the pieces of a row: neighbours in pairs, or in sequence onto a neutral start value."""
    debug_regions: tuple[str, ...] = ()
    """Operations whose valid regions are compared only in debug builds of the library."""
    columns_only: tuple[str, ...] = ()
    """Operations that compare only the valid columns of their tiles."""
    ramp_negates_sum: bool = False
    """A descending ramp by scratch is the negated ascending one, which is correct only for a start of 0."""
    gather_numbers: tuple[str, ...] = ()
    """Formats of the indices of a gather."""
    gather_scales_in_tmp: bool = False
    """A gather converts indices into byte offsets in its tmp tile, which it needs."""
    concatenation_fills: bool = False
    """The columns of both parts must add up to the valid columns of the result."""
    sort_pads_in_tmp: bool = False
    """A sort of rows that are not whole groups pads them in its tmp tile, which it then needs."""
    dequantises_whole_registers: bool = False
    """A dequantisation stores whole registers if a row has more than one."""
    spread_rows_limit: Count = 256
    spread_rows_most: Count = 240
    """Number of rows above which a quantisation spreads its parameters that many rows at a time."""
    sums_in_steps: bool = False
    """A sum of three adds the first two into its destination, then the third."""
    transposes_through_tmp: bool = False
    """A transposition in blocks copies its source to tmp before it writes, then whole blocks of its result."""


BLOCK_BYTES = BLOCK_BITS // 8
"""Number of bytes of one buffer access, the unit of strides, tile rows and bank models."""
VECTOR_BYTES = 256
"""Number of bytes of a repeat, and of a register of vector functions, for which the vendor's kernels are written."""

_SHARING = "transfer_sharing"
"""The option that chooses among the facts of transfers."""
MEMORY_OPTIONS = _MEMORY, _WORKING_SET = "global_memory", "working_set"
"""Options that choose a total of global memory, and whether the shared cache contains a launch's data."""

BlockBytes = Annotated[Count, built_for(BLOCK_BYTES, "strides, rows and banks count blocks of one size")]
VectorBytes = Annotated[Count, built_for(VECTOR_BYTES, "kernels and lanes are laid out for vectors of one size")]


class Pipes(Fact):
    """The pipes and their work; the names are those of flags and barriers without the prefix PIPE_."""

    scalar: str
    vector: str
    load: str
    store: str
    others: tuple[str, ...]
    """Pipes that flags may name although no operation of a cast program runs on them."""
    event_ids: Count
    """Number of event ids per ordered pair of pipes."""


class Hazard(StrEnum):
    """A dependence between the bytes of two instructions: the access of the second after that of the first."""

    READ_AFTER_WRITE = "read after write"
    WRITE_AFTER_READ = "write after read"
    WRITE_AFTER_WRITE = "write after write"


class SynchronisationFacts(Fact):
    """The mechanisms besides flags that keep instructions in order.

    Between two instructions of the vector pipe with a hazard in `required_barriers`, a program needs a barrier of that
    pipe; the vendor's tool inserts one, in a program without flags, between those with one in `inserted_barriers`.
    """

    required_barriers: tuple[Hazard, ...]
    inserted_barriers: tuple[Hazard, ...]
    unordered_bytes: Count | None = None
    """Minimum number of bytes, without gaps, of which a vector instruction may read what an earlier one wrote without a
    barrier in between, if it reads exactly those; None: a barrier is always needed.
    """
    scalar_event_ids: Count
    """Event ids that the tool uses between the scalar and the vector pipe, in either direction."""
    captured_control: tuple[str, ...]
    """Control state that a vector instruction captures at issue; other state must not change during it."""

    @model_validator(mode="after")
    def _inserted_are_enough(self) -> SynchronisationFacts:
        missing = [hazard for hazard in self.required_barriers if hazard not in self.inserted_barriers]
        if missing:
            raise ValueError(f"required_barriers has '{missing[0]}', inserted_barriers does not")
        return self


class TransferLimits(Fact):
    """Limits of one transfer instruction."""

    max_bursts: Count | None = None
    """Maximum number of bursts (rows) of a transfer instruction, and of rows of a transferred tile; None: unknown."""
    zero_pad_only: tuple[str, ...] = ()
    """Formats that a load pads only with zero, or not at all."""
    refused_formats: tuple[str, ...] = ()
    """Elements that no load or store supports unless some cast has them; pairs of values have their names in
    programs.
    """
    skewed_lines: bool = False
    """Whether, if a part has longer lines than the tile, the library begins the next line where the tile's ends."""


class Banks(Fact):
    """Buffer banking: block b of `block_bytes` lies in group b mod `groups`.

    `bank_bytes` is the size of one bank; `banks_per_group` of them form a group. A mechanism adds which accesses
    exclude each other.
    """

    groups: Count
    banks_per_group: Count
    bank_bytes: Count


class TilePlacement(Fact):
    """Placement of tiles without addresses that keeps the operands of one operation in different banks.

    Banks repeat after `period_bytes`. Two sources of one operation begin `sources_bytes` apart, modulo that period; a
    source and a result begin in different regions of `region_bytes`, or `results_bytes` apart modulo the period. Tiles
    of an operation alone that are consecutive begin at multiples of `alignment_bytes`.
    """

    alignment_bytes: Count
    period_bytes: Count
    sources_bytes: Cycles = 0
    results_bytes: Cycles = 0
    region_bytes: Cycles = 0


PLACEMENT = "tile_placement"
"""The option that selects the placement of tiles without addresses."""

APART, PARTLY_APART, CONSECUTIVE = "apart", "partly apart", "consecutive"
"""Values of the placement option; partly: some tiles share banks because the buffer has no room to avoid it."""


class ScalarTiming(Fact):
    """Cycles of the scalar unit per instruction it executes or issues."""

    issue_cycles: Cycles
    """Cycles for issuing one vector or transfer instruction."""
    control_write_cycles: Cycles
    """Cycles for set_ctrl, a mask write, set_deqscale."""
    synchronisation_cycles: Cycles
    """Cycles for set_flag, wait_flag, pipe_barrier."""
    arithmetic_cycles: Cycles
    """Cycles for one index computation of the program."""
    loop_turnaround_cycles: Cycles
    """Cycles for one trip of a software loop: increment, compare, branch."""


class ScalarAccessTiming(Fact):
    """Cycles of the scalar unit for one element, in addition to those of the instruction."""

    load_cycles: Cycles
    """Cycles for load_scalar, from global memory."""
    store_cycles: Cycles
    """Cycles for store_scalar."""
    tile_read_cycles: Cycles
    """Cycles for tgetval."""
    tile_write_cycles: Cycles
    """Cycles for tsetval."""


class DataflowTiming(Table):
    """Timing facts outside the vector unit."""

    scalar: ScalarTiming
    scalar_access: ScalarAccessTiming
    load: TransferTiming
    store: TransferTiming
    sharing: dict[str, TransferPair] = Field(default_factory=dict)
    """Transfers under values of option `transfer_sharing` other than that of `load` and `store`."""

    def scalar_work(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarWork` and the path of their fact.

        Kinds that a mechanism does not distinguish count as arithmetic.
        """
        scalar = self.scalar
        return scalar.loop_turnaround_cycles if kind == "loop" else scalar.arithmetic_cycles, "timing.scalar"

    def cycles_of_access(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarAccess` and the path of their fact."""
        access = self.scalar_access
        beyond = {
            "load_scalar": access.load_cycles,
            "store_scalar": access.store_cycles,
            "tgetval": access.tile_read_cycles,
            "tsetval": access.tile_write_cycles,
        }
        return self.scalar.arithmetic_cycles + beyond.get(kind, 0), "timing.scalar_access"


Level = Literal["tile", "micro"]
"""The level of a kernel: operations of the tile library (also called from C++), or vector instructions."""


class InterfaceCast(Fact):
    """A type pair that a vendor text converts, but the tile library, or the verifier of `vcvt`, rejects.

    A tile cast follows the pair `like_src`, `like_dst` of the same widths: its code on the A5, its lanes and
    strides on the A2/A3. A cast that is only an instruction has no such pair.
    """

    src: str
    dst: str
    like_src: str = ""
    like_dst: str = ""
    level: Level = "tile"


class DataflowTarget(TargetHeader):
    """A chip whose pipes pass tiles through the buffer `ub`, in blocks of `block_bytes`."""

    has_tiles: ClassVar[Literal[True]] = True
    has_builtins: ClassVar[Literal[False]] = False
    time_tables: ClassVar[tuple[str, ...]] = ("timing",)
    pipes: Pipes
    banks: Banks
    synchronisation: SynchronisationFacts
    transfer_limits: TransferLimits
    timing: DataflowTiming
    tile_operations_fact: Fact
    tile_operations: tuple[TileOperationFacts, ...]
    tile_arithmetic: TileArithmetic
    unreserved_scratch: ScratchWindow | None = None
    broadcast_scratch: BroadcastScratch | None = None
    ramp_scratch: RampScratch | None = None
    tile_placement: TilePlacement | None = None
    cores: Cores | None = None
    kernel_launch: KernelLaunch | None = None
    launch_interval: LaunchInterval | None = None
    global_memory: dict[str, GlobalMemory] = Field(default_factory=dict)
    """The totals of global memory by the values of option `global_memory`."""
    shared_cache: SharedCache | None = None
    interface_casts: tuple[InterfaceCast, ...] = ()

    def interface_cast(self, src: str, dst: str, level: Level = "tile") -> InterfaceCast | None:
        """Return the cast of a pair that an option adds to the tile library or verifier; None if there is none."""
        wanted = (src, dst, level)
        return next((cast for cast in self.interface_casts if (cast.src, cast.dst, cast.level) == wanted), None)

    @property
    def cores_at_work(self) -> int:
        """Number of cores that transfer at once."""
        return 1 if self.cores is None else self.cores.at_work

    @property
    def transfer_options(self) -> tuple[str, ...]:
        """Paths of the options that affect the time of transfers."""
        return tuple(f"options.{name}" for name in (_SHARING,) if name in self.options)

    def transfer_timing(self, *, load: bool) -> tuple[TransferTiming, str]:
        """Return the timing of one direction of transfers, and the path of its fact."""
        way = "load" if load else "store"
        chosen = str(self.options[_SHARING].value) if _SHARING in self.options else ""
        timing: DataflowTiming | TransferPair = self.timing.sharing.get(chosen, self.timing)
        path = f"timing.{way}" if timing is self.timing else f"timing.sharing.{chosen}.{way}"
        return timing.load if load else timing.store, path

    def memory_total(self) -> tuple[GlobalMemory, tuple[str, ...]] | None:
        """Return the global-memory bandwidth of all cores, and the paths behind it; None if no source states it."""
        if _MEMORY not in self.options:
            return None
        chosen = str(self.options[_MEMORY].value)
        return self.global_memory[chosen], (f"{_MEMORY}.{chosen}", f"options.{_MEMORY}")

    @property
    def warm_cache(self) -> tuple[SharedCache, tuple[str, ...]] | None:
        """The shared cache if it contains data of earlier launches, and the paths behind it; otherwise None."""
        if self.shared_cache is None or self.options[_WORKING_SET].value != "resident":
            return None
        return self.shared_cache, ("shared_cache", f"options.{_WORKING_SET}")

    def tile_operation(self, mnemonic: str) -> TileOperationFacts | None:
        """Return the rule of a vector operation, None if the chip lacks it."""
        return next((rule for rule in self.tile_operations if rule.mnemonic == mnemonic), None)

    @property
    def scalar_pipe(self) -> str:
        """The pipe that issues for all others."""
        return self.pipes.scalar

    @property
    def estimated_alignment(self) -> int:
        """Number of bytes to which consecutive tiles of an estimate are aligned."""
        placed = self.tile_placement
        return self.memories["ub"].alignment_bytes if placed is None else placed.alignment_bytes

    @property
    def consecutive(self) -> bool:
        """Whether the option makes tiles without addresses adjacent."""
        return PLACEMENT in self.options and self.options[PLACEMENT].value == CONSECUTIVE

    @property
    def apart(self) -> TilePlacement | None:
        """The placement that keeps tiles without addresses from sharing banks; None if they are adjacent."""
        return None if self.consecutive else self.tile_placement

    @property
    def group_bytes(self) -> int:
        """Number of bytes of the buffer after which other banks begin."""
        return self.banks.groups * self.banks.bank_bytes

    @property
    @abstractmethod
    def block_bytes(self) -> int:
        """Number of bytes of one buffer access; tile rows are whole blocks."""

    @model_validator(mode="after")
    def _operations_are_consistent(self) -> DataflowTarget:
        names = [rule.mnemonic for rule in self.tile_operations]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"tile_operations: listed twice: {', '.join(twice)}")
        unknown = sorted(
            {name for rule in self.tile_operations for name in (*rule.types, *rule.library_types)} - {*FORMATS}
        )
        if unknown:
            raise ValueError(f"tile_operations: unknown formats: {', '.join(unknown)}")
        used_options = {name for rule in self.tile_arithmetic.saturation for name, _ in rule.holds_while}
        missing = sorted(used_options - {*self.options})
        if missing:
            raise ValueError(f"tile_arithmetic.saturation: unknown options: {', '.join(missing)}")
        window = self.unreserved_scratch
        if window is not None and not window.start < window.end:
            raise ValueError(f"unreserved_scratch: bytes {window.start} .. {window.end} do not exist")
        return self

    @model_validator(mode="after")
    def _sharing_is_chosen(self) -> DataflowTarget:
        legal = self.options[_SHARING].legal if _SHARING in self.options else ()
        if len(legal) != (len(self.timing.sharing) + 1 if legal else 0) or {*self.timing.sharing} - {*legal}:
            raise ValueError(f"timing.sharing holds all but one of the values of options.{_SHARING}")
        totals = self.options[_MEMORY].legal if _MEMORY in self.options else ()
        if {*totals} != {*self.global_memory}:
            raise ValueError(f"global_memory holds the values of options.{_MEMORY}")
        if self.shared_cache is not None and _WORKING_SET not in self.options:
            raise ValueError(f"shared_cache needs options.{_WORKING_SET}")
        return self

    @model_validator(mode="after")
    def _buffer_is_banked(self) -> DataflowTarget:
        if "ub" not in self.memories:
            raise ValueError("memories.ub is missing: the vector unit works on it")
        size = self.banks.groups * self.banks.banks_per_group * self.banks.bank_bytes
        if size != self.memories["ub"].capacity_bytes:
            raise ValueError(f"banks hold {size} bytes, memory ub {self.memories['ub'].capacity_bytes}")
        return self
