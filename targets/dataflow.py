"""Schema of what chips share on which pipes pass tiles through one buffer: pipes, transfers, banks, the scalar unit.

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
    """One vector operation on one chip: what it takes, and its kernel, of which source, status and note speak.

    `types` are the element formats it takes; for comparisons those of what is compared. `library_types` are further
    ones that the C++ library has and the text form refuses. `tmp` says what becomes of a scratch tile in the text;
    `approximate` why values are not claimed to be bit-exact (None: they are). `instructions` are those that make this
    kernel out of its structure, which a mechanism names; in the order of use.
    """

    mnemonic: str
    types: Listed
    library_types: Listed = ()
    tmp: Literal["none", "used", "ignored", "refused"]
    validated: Listed = ()
    """Formats for which published cycles of the operation exist and are compared with the simulation."""
    approximate: str | None = None
    instructions: Words = ()

    @model_validator(mode="before")
    @classmethod
    def _without_empty_cells(cls, row: Any) -> Any:
        return {key: cell for key, cell in row.items() if cell is not None} if isinstance(row, dict) else row


@dataclass(frozen=True, slots=True)
class StructureOf:
    """The purpose of a structure of kernels: kinds of operations, and its least and greatest number of instructions."""

    kinds: tuple[Kind, ...]
    least: int = 0
    most: int = 0


def structures_of(mechanism: str) -> Mapping[str, StructureOf]:
    """Return the structures of a mechanism's kernels by their names."""
    return {
        row["structure"]: StructureOf(
            tuple(map(Kind, row["kinds"].split(LIST_SEPARATOR))), int(row["least"]), int(row["most"])
        )
        for row in table_rows(SHIPPED / "kernel_structures.csv")
        if row["mechanism"] == mechanism
    }


def check_kernel(operation: TileOperationFacts, name: str, structure: StructureOf) -> None:
    """Reject a kernel whose structure, called `name`, is not one of its operation's kind, or has other instructions.

    Raises:
        ValueError: names the operation, what it has and what it may have.
    """
    what, count = f"tile_operations: {operation.mnemonic}", len(operation.instructions)
    known = VECTOR_OPERATIONS.get(operation.mnemonic)
    if known is not None and known.kind not in structure.kinds:
        kinds = ", ".join(structure.kinds)
        raise ValueError(f"{what}: structure '{name}' is for operations of kind {kinds}, not {known.kind}")
    if not structure.least <= count <= structure.most:
        legal = str(structure.least) if structure.least == structure.most else f"{structure.least} to {structure.most}"
        raise ValueError(f"{what}: {count} instructions, but structure '{name}' takes {legal}")


class ScratchWindow(Fact):
    """Bytes of the buffer that some operations overwrite although nothing reserves them."""

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
    """Results that clamp to the largest and smallest number; NaN becomes 0.

    `functions` on elements of `formats` do so while all options of `holds_while` have the values there.
    """

    formats: tuple[str, ...]
    functions: tuple[str, ...]
    holds_while: tuple[tuple[str, int | str], ...]


class TileArithmetic(Fact):
    """The differences between the vector operations of chips in what they compute or touch."""

    saturation: tuple[ArithmeticSaturation, ...]
    """The results that clamp; a function of a format is in one of these rules or in none."""
    equality_only: tuple[str, ...] = ()
    """Formats whose every comparison acts as `eq`."""
    compare_bytes: Count | None = None
    """Bytes of a row that are compared at once, valid or not; None: the valid elements only."""
    inverts_whole_mask: bool = False
    """`ne` is `eq` followed by an inversion of all bytes of the destination tile."""
    mask_has_source_shape: bool = False
    move_bytes: Count | None = None
    """Unit in which a move copies the end of a row, beyond the valid columns; None: the elements only."""
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
    """Bytes that one instruction of a row reduction takes."""
    row_pieces: Literal["tree", "accumulator"]
    """The joining of the pieces of a row: neighbours in pairs, or one after the other onto a neutral start value."""
    debug_regions: tuple[str, ...] = ()
    """Operations whose valid regions are compared in debug builds of the library only."""
    columns_only: tuple[str, ...] = ()
    """Operations that compare only the valid columns of their tiles."""
    ramp_negates_sum: bool = False
    """A descending ramp by scratch is the negated ascending one, which is right for a start of 0 only."""
    gather_numbers: tuple[str, ...] = ()
    """Formats of the numbers by which a gather takes elements."""
    gather_scales_in_tmp: bool = False
    """A gather turns numbers into byte offsets in its tmp tile, which it needs."""
    concatenation_fills: bool = False
    """The columns of both parts must be as many as are valid in the result."""
    sort_pads_in_tmp: bool = False
    """A sort of rows that are no whole groups pads them in its tmp tile, which it then needs."""
    dequantises_whole_registers: bool = False
    """A dequantisation stores whole registers where a row has more than one."""
    spread_rows_limit: Count = 256
    spread_rows_most: Count = 240
    """From so many rows on, a quantisation spreads its parameters so many rows at a time."""
    sums_in_steps: bool = False
    """A sum of three adds the first two into its destination, then the third."""
    transposes_through_tmp: bool = False
    """A transposition in blocks copies its source to tmp before it writes, and then whole blocks of its result."""


BLOCK_BYTES = BLOCK_BITS // 8
"""Bytes of one buffer access: strides of the instruction set count them, and so do tile rows and bank models."""
VECTOR_BYTES = 256
"""Bytes of a repeat, and of a register of vector functions: the vendor's kernels are written for them."""

_SHARING = "transfer_sharing"
"""The option that chooses among the facts of transfers."""
MEMORY_OPTIONS = _MEMORY, _WORKING_SET = "global_memory", "working_set"
"""The options that choose among totals of global memory, and tell whether the shared cache holds a launch's data."""

BlockBytes = Annotated[Count, built_for(BLOCK_BYTES, "strides, rows and banks count blocks of one size")]
VectorBytes = Annotated[Count, built_for(VECTOR_BYTES, "kernels and lanes are laid out for vectors of one size")]


class Pipes(Fact):
    """The pipes and the work that each executes; the names are those of flags and barriers without the prefix PIPE_."""

    scalar: str
    vector: str
    load: str
    store: str
    others: tuple[str, ...]
    """Pipes that flags may name although no operation of a cast program runs there."""
    event_ids: Count
    """Event ids per ordered pair of pipes."""


class Hazard(StrEnum):
    """A dependence between the bytes of two instructions: the access of the second after that of the first."""

    READ_AFTER_WRITE = "read after write"
    WRITE_AFTER_READ = "write after read"
    WRITE_AFTER_WRITE = "write after write"


class SynchronisationFacts(Fact):
    """The mechanisms that keep instructions in order, beside flags.

    Between two instructions of the vector pipe with a hazard in `required_barriers`, a program needs a barrier of that
    pipe; the vendor's tool puts one, where a program has no flags, between those with one in `inserted_barriers`.
    """

    required_barriers: tuple[Hazard, ...]
    inserted_barriers: tuple[Hazard, ...]
    unordered_bytes: Count | None = None
    """From so many bytes on, without gaps, a vector instruction may read what an earlier one wrote without a barrier in
    between, if it reads exactly that; None: never where one is needed at all.
    """
    scalar_event_ids: Count
    """Event ids that the tool uses between the scalar and the vector pipe, either way."""
    captured_control: tuple[str, ...]
    """Control state that a vector instruction captures when it is issued; other state may not change under it."""

    @model_validator(mode="after")
    def _inserted_are_enough(self) -> SynchronisationFacts:
        missing = [hazard for hazard in self.required_barriers if hazard not in self.inserted_barriers]
        if missing:
            raise ValueError(f"required_barriers has '{missing[0]}', inserted_barriers does not")
        return self


class TransferLimits(Fact):
    """Limits of one transfer instruction."""

    max_bursts: Count | None = None
    """Bursts (rows) per transfer instruction, and rows of a tile that is transferred; None: no limit is known."""
    zero_pad_only: tuple[str, ...] = ()
    """Formats that a load pads with zero or not at all."""
    refused_formats: tuple[str, ...] = ()
    """Elements that no load or store moves unless some cast has them; those that hold two values by the name that
    programs have for them.
    """
    skewed_lines: bool = False
    """Whether the library, where a part has longer lines than the tile, begins the next line where the tile's ends."""


class Banks(Fact):
    """Buffer banking: block b of `block_bytes` lies in group b mod `groups`.

    `bank_bytes` is the size of one bank; `banks_per_group` of them make a group. A mechanism adds which accesses
    exclude each other.
    """

    groups: Count
    banks_per_group: Count
    bank_bytes: Count


class TilePlacement(Fact):
    """Where tiles without addresses lie so that the operands of one operation share no bank.

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
"""The option that says where tiles without addresses lie."""

APART, PARTLY_APART, CONSECUTIVE = "apart", "partly apart", "consecutive"
"""Its values."""


class ScalarTiming(Fact):
    """Cycles of the scalar unit per instruction it executes or issues."""

    issue_cycles: Cycles
    """To issue one vector or transfer instruction."""
    control_write_cycles: Cycles
    """For set_ctrl, a mask write, set_deqscale."""
    synchronisation_cycles: Cycles
    """For set_flag, wait_flag, pipe_barrier."""
    arithmetic_cycles: Cycles
    """For one index computation of the program."""
    loop_turnaround_cycles: Cycles
    """For one trip of a software loop: increment, compare, branch."""


class ScalarAccessTiming(Fact):
    """Cycles that one element costs the scalar unit beyond those of an instruction of its own."""

    load_cycles: Cycles
    """For load_scalar, from global memory."""
    store_cycles: Cycles
    """For store_scalar."""
    tile_read_cycles: Cycles
    """For tgetval."""
    tile_write_cycles: Cycles
    """For tsetval."""


class DataflowTiming(Table):
    """Timing facts of everything but the vector unit."""

    scalar: ScalarTiming
    scalar_access: ScalarAccessTiming
    load: TransferTiming
    store: TransferTiming
    sharing: dict[str, TransferPair] = Field(default_factory=dict)
    """Transfers under values of option `transfer_sharing` other than that for which `load` and `store` stand."""

    def scalar_work(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarWork` and the path of the fact that says so.

        Kinds that a mechanism does not tell apart are arithmetic.
        """
        scalar = self.scalar
        return scalar.loop_turnaround_cycles if kind == "loop" else scalar.arithmetic_cycles, "timing.scalar"

    def cycles_of_access(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarAccess` and the path of the fact that says so."""
        access = self.scalar_access
        beyond = {
            "load_scalar": access.load_cycles,
            "store_scalar": access.store_cycles,
            "tgetval": access.tile_read_cycles,
            "tsetval": access.tile_write_cycles,
        }
        return self.scalar.arithmetic_cycles + beyond.get(kind, 0), "timing.scalar_access"


Level = Literal["tile", "micro"]
"""What a kernel is written in: operations of the tile library (also called from C++), or vector instructions."""


class InterfaceCast(Fact):
    """A type pair that a text of the vendor converts and the tile library, or the verifier of `vcvt`, does not take.

    A tile cast takes after the pair `like_src`, `like_dst` of the same widths: its code on the A5, its lanes and
    strides on the A2/A3. One that is an instruction alone has no such pair.
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
    """The totals of global memory, by the values of option `global_memory`."""
    shared_cache: SharedCache | None = None
    interface_casts: tuple[InterfaceCast, ...] = ()

    def interface_cast(self, src: str, dst: str, level: Level = "tile") -> InterfaceCast | None:
        """Return what an option lets the chip cast beyond its tile library or verifier; None if not this pair."""
        wanted = (src, dst, level)
        return next((one for one in self.interface_casts if (one.src, one.dst, one.level) == wanted), None)

    @property
    def cores_at_work(self) -> int:
        """How many cores transfer at once."""
        return 1 if self.cores is None else self.cores.at_work

    @property
    def transfer_options(self) -> tuple[str, ...]:
        """The paths of the options that say how long transfers take."""
        return tuple(f"options.{name}" for name in (_SHARING,) if name in self.options)

    def transfer_timing(self, *, load: bool) -> tuple[TransferTiming, str]:
        """Return the timing of one direction of transfers, and the path of the fact that says so."""
        way = "load" if load else "store"
        chosen = str(self.options[_SHARING].value) if _SHARING in self.options else ""
        held: DataflowTiming | TransferPair = self.timing.sharing.get(chosen, self.timing)
        found = f"timing.{way}" if held is self.timing else f"timing.sharing.{chosen}.{way}"
        return held.load if load else held.store, found

    def memory_total(self) -> tuple[GlobalMemory, tuple[str, ...]] | None:
        """Return what global memory moves for all cores, and the paths behind it; None if no source says."""
        if _MEMORY not in self.options:
            return None
        chosen = str(self.options[_MEMORY].value)
        return self.global_memory[chosen], (f"{_MEMORY}.{chosen}", f"options.{_MEMORY}")

    @property
    def warm_cache(self) -> tuple[SharedCache, tuple[str, ...]] | None:
        """The shared cache if it holds data of earlier launches, and the paths behind it; None if not."""
        if self.shared_cache is None or self.options[_WORKING_SET].value != "resident":
            return None
        return self.shared_cache, ("shared_cache", f"options.{_WORKING_SET}")

    def tile_operation(self, mnemonic: str) -> TileOperationFacts | None:
        """Return the rule of a vector operation, None if the chip has no such operation."""
        return next((rule for rule in self.tile_operations if rule.mnemonic == mnemonic), None)

    @property
    def scalar_pipe(self) -> str:
        """The pipe that issues for all others."""
        return self.pipes.scalar

    @property
    def estimated_alignment(self) -> int:
        """Bytes of whose multiples consecutive tiles of an estimate begin at."""
        placed = self.tile_placement
        return self.memories["ub"].alignment_bytes if placed is None else placed.alignment_bytes

    @property
    def consecutive(self) -> bool:
        """Whether tiles without addresses lie one behind the other, by choice of the option."""
        return PLACEMENT in self.options and self.options[PLACEMENT].value == CONSECUTIVE

    @property
    def apart(self) -> TilePlacement | None:
        """How tiles without addresses are kept from sharing banks; None where they lie one behind the other."""
        return None if self.consecutive else self.tile_placement

    @property
    def group_bytes(self) -> int:
        """Bytes of the buffer after which other banks begin."""
        return self.banks.groups * self.banks.bank_bytes

    @property
    @abstractmethod
    def block_bytes(self) -> int:
        """Bytes of one buffer access; tile rows are whole blocks."""

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
        held = {name for rule in self.tile_arithmetic.saturation for name, _ in rule.holds_while}
        missing = sorted(held - {*self.options})
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
