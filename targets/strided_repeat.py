"""Schema of chips with memory-to-memory strided-repeat vector instructions (mechanism `strided-repeat`).

Facts: docs/reference/a2a3.md section 2 (repeat configuration), 3 (saturation control, scratch sequences), 5 (memories),
6 (timing), 8 (banks).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from castsim.isa.errors import IllegalError
from castsim.isa.modes import Rounding
from castsim.isa.pto.vector_operations import Kind
from castsim.targets.dataflow import Banks, BlockBytes, DataflowTarget, DataflowTiming, VectorBytes
from castsim.targets.schema import Count, Cycles, Fact, Table
from castsim.targets.tile_operations import LANEWISE, MANY, StructureOf, TileOperationFacts, check_kernel
from castsim.targets.transfers import Rate


class RepeatInstruction(Fact):
    """The strided-repeat instruction word.

    Strides count blocks; a field of n bits keeps the low n bits of what is written to it.
    """

    block_bytes: BlockBytes
    repeat_bytes: VectorBytes
    max_repeats: Count
    max_repeat_stride: Count
    """Blocks from repeat to repeat beyond which the library takes a tile line by line (not for casts)."""
    mask_lanes: Count
    repeat_stride_field_bits: Count
    row_stride_operand_bits: Count
    """Width to which a tile's row stride, in elements, is cut before it becomes a repeat stride."""


class NarrowStrideField(Fact):
    """Instructions whose repeat stride field is narrower than the rule."""

    mnemonics: tuple[str, ...]
    repeat_stride_field_bits: Count


class StridedControlBits(Fact):
    """Bits of the CTRL register that conversions read, and their state when a kernel starts."""

    integer_saturation_off: Count
    """Results of integer formats: 0 clamps, 1 keeps the low bits."""
    float_saturation_off: Count
    """Results of `float_formats`: 0 clamps infinities and overflow and turns NaN into 0, 1 keeps them."""
    float_formats: tuple[str, ...]
    mask_is_count: Count
    """Bit that makes the mask register hold a number of elements, which instructions then cover in one go."""


class ByteStorage(Fact):
    """Packed 4-bit formats whose tiles nevertheless count one byte per element in pitch and pointer arithmetic."""

    formats: tuple[str, ...]


class DequantisationScale(Fact):
    """The scale register that the integer to f16 conversion multiplies by, as TCVT writes it before each call."""

    code: Annotated[int, Field(ge=0, lt=65536)]


class BufferRead(Fact):
    """The scalar unit reading an element of the buffer, for instructions that take a scalar operand."""

    cycles: Cycles


class VectorTiming(Fact):
    """One class of vector instructions.

    An idle pipe fills for `head_cycles` before the first repeat; a repeat starts every `repeat_cycles`; its results
    are in the buffer `tail_cycles` after its interval ends, and until then the pipe is not idle. `validated` says that
    published cycles of some operation that issues the instruction were compared with the simulation.
    """

    head_cycles: Cycles
    repeat_cycles: Count
    tail_cycles: Cycles
    validated: bool
    results_at_once: Annotated[bool, Field(repr=False)] = False
    """The results are in the buffer when the interval ends; the pipe is idle `tail_cycles` later all the same.

    No chip is known to do so: lifting the drain alone needs it, as a pipe without a tail would also idle, and hence
    fill, more often.
    """


class StridedTiming(DataflowTiming):
    """All timing facts."""

    buffer_read: BufferRead
    vector: dict[str, VectorTiming]

    def scalar_work(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarWork` and the path of the fact that says so."""
        return (self.buffer_read.cycles, "timing.buffer_read") if kind == "read" else super().scalar_work(kind)


class MeasuredConvention(Fact):
    """The content of published cycles. Where they leave out fill and drain, every instruction has the same instead.

    Where their loads are not those of programs, `load_startup_cycles` and `load_bytes_per_cycle` say which they are.
    """

    meaning: str
    head_cycles: Cycles | None = None
    """Cycles of every instruction before its first repeat, whether the pipe is idle or not."""
    tail_cycles: Cycles | None = None
    load_startup_cycles: Cycles | None = None
    load_bytes_per_cycle: Rate | None = None


class ScratchSequence(Fact):
    """A cast that, without saturation and given a scratch tile, runs as several instructions through it.

    `steps` names the sequence (docs/reference/a2a3.md section 3.4): `via_i32` converts whole calls to int32 and
    narrows; `chunked` does so in sub-chunks of `chunk_lanes`; `chunked_masked` also passes through int16 and f16 to
    reach 8 bits.
    """

    src: str
    dst: str
    steps: Literal["via_i32", "chunked", "chunked_masked"]
    chunk_lanes: Count | None = None

    @model_validator(mode="after")
    def _chunked_needs_lanes(self) -> ScratchSequence:
        if (self.steps == "via_i32") == (self.chunk_lanes is not None):
            raise ValueError(f"steps '{self.steps}' and chunk_lanes {self.chunk_lanes} contradict each other")
        return self


class StridedCast(Table):
    """One legal type pair.

    `suffixes` maps the modes the pair honours to the mnemonic suffix (empty: one instruction, mode ignored);
    `fallback` is the mode that every other request runs as (None: nothing to round); `plain` is True where the
    mode NONE has an unsuffixed instruction of its own, numerically the fallback.
    """

    src: str
    dst: str
    stem: str
    action: Literal["convert", "integral", "scaled"]
    suffixes: dict[Rounding, str]
    fallback: Rounding | None
    plain: bool
    saturation_off_by_default: bool
    lanes: Count
    dst_repeat_stride: Count
    src_repeat_stride: Count
    note: str


class StridedOperation(TileOperationFacts):
    """One vector operation with its kernel.

    `structure` names how the instructions follow each other; `castsim.machines.strided.kernels` has a function for
    each. Those of an `elementwise` one run one behind the other, all but the first on the destination. `lines` says
    which adjacent lines of elements one call takes together: `never` any, `whole_repeats` those that are whole repeats,
    `always` all.
    """

    structure: Literal[
        "elementwise",
        "division",
        "reciprocal_root",
        "compare",
        "select",
        "select_scalar",
        "move",
        "fill",
        "row_reduction",
        "row_expansion",
        "row_broadcast",
        "column_reduction",
        "column_argument",
        "row_argument",
        "column_expansion",
        "column_broadcast",
        "part",
        "ramp",
        "gather",
        "merge",
        "compare_gather",
        "sort",
        "pattern_gather",
        "transposition",
        "concatenation",
        "counted_concatenation",
    ]
    lines: Literal["never", "whole_repeats", "always"] = "never"


STRUCTURES = {
    "elementwise": StructureOf(LANEWISE, 1, MANY),
    "division": StructureOf((Kind.ELEMENTWISE,), 2, 2),
    "reciprocal_root": StructureOf((Kind.ELEMENTWISE,), 3, 3),
    "compare": StructureOf((Kind.COMPARE,), 1, 1),
    "select": StructureOf((Kind.SELECT,), 1, 1),
    "select_scalar": StructureOf((Kind.SELECT,), 1, 1),
    "move": StructureOf((Kind.MOVE,)),
    "fill": StructureOf((Kind.FILL,)),
    "row_reduction": StructureOf((Kind.ROW_REDUCE,), 1, 2),
    "row_expansion": StructureOf((Kind.ROW_EXPAND,)),
    "row_broadcast": StructureOf((Kind.ROW_BROADCAST,), 1, MANY),
    "column_reduction": StructureOf((Kind.COLUMN_REDUCE,), 1, 1),
    "row_argument": StructureOf((Kind.ROW_ARGUMENT,), 2, 2),
    "column_argument": StructureOf((Kind.COLUMN_ARGUMENT,), 2, 2),
    "column_expansion": StructureOf((Kind.COLUMN_EXPAND,)),
    "column_broadcast": StructureOf((Kind.COLUMN_BROADCAST,), 1, MANY),
    "part": StructureOf((Kind.PART,), 2, 2),
    "ramp": StructureOf((Kind.RAMP,), 7, 7),
    "gather": StructureOf((Kind.GATHER,), 2, 2),
    "pattern_gather": StructureOf((Kind.PATTERN_GATHER,), 1, 1),
    "compare_gather": StructureOf((Kind.COMPARE_GATHER,), 2, 2),
    "sort": StructureOf((Kind.SORT,), 1, 1),
    "merge": StructureOf((Kind.MERGE,), 1, 1),
    "transposition": StructureOf((Kind.TRANSPOSE,), 2, 2),
    "concatenation": StructureOf((Kind.CONCATENATE,)),
    "counted_concatenation": StructureOf((Kind.COUNTED_CONCATENATE,)),
}
"""The purposes of the structures of kernels."""


class StridedBufferPorts(Banks):
    """Banking of the buffer, the banks of a group one behind the other; which accesses exclude each other in a cycle.

    Accesses that do not exclude each other pass together, however many they are.
    """

    exclusive_ports: bool
    """Whether a group has one port for reads and one for writes: two reads of it exclude each other, and two writes."""
    exclusive_banks: bool
    """Whether a bank is either read or written: a read and a write of it exclude each other."""


class StridedRepeatTarget(DataflowTarget):
    """A chip of this mechanism."""

    mechanism: Literal["strided-repeat"]
    casts_use_scratch: ClassVar[Literal[True]] = True
    banks: StridedBufferPorts
    repeat: RepeatInstruction
    narrow_strides: tuple[NarrowStrideField, ...]
    control: StridedControlBits
    byte_storage: ByteStorage
    dequantisation_scale: DequantisationScale
    timing: StridedTiming
    casts_fact: Fact
    casts: tuple[StridedCast, ...]
    scratch_sequences: tuple[ScratchSequence, ...]
    measured_conventions: dict[str, MeasuredConvention] = Field(default_factory=dict)
    tile_operations: tuple[StridedOperation, ...]

    def tile_operation(self, mnemonic: str) -> StridedOperation | None:
        """Return the rule of a vector operation, None if the chip has no such operation."""
        return next((rule for rule in self.tile_operations if rule.mnemonic == mnemonic), None)

    def meaning_of(self, convention: str) -> str:
        """Return the description of a measuring convention for published cycles, '' if there is none."""
        found = self.measured_conventions.get(convention)
        return "" if found is None else found.meaning

    def measured_as(self, convention: str) -> Self:
        """Return the target such that its simulated cycles count what published ones of a convention count.

        Raises:
            IllegalError: no such convention; the legal ones are listed.
        """
        found = self.measured_conventions.get(convention)
        if found is None:
            raise IllegalError(
                f"{self.name} has no convention of measurement '{convention}'", legal=self.measured_conventions
            )
        loads = {"startup_cycles": found.load_startup_cycles, "bytes_per_cycle": found.load_bytes_per_cycle}
        loads = {name: value for name, value in loads.items() if value is not None}
        if loads:
            timing = self.timing.model_copy(update={"load": self.timing.load.model_copy(update=loads)})
            return self.model_copy(update={"timing": timing})
        if found.head_cycles is None or found.tail_cycles is None:
            return self
        change = {"head_cycles": found.head_cycles, "tail_cycles": found.tail_cycles}
        rows = {name: row.model_copy(update=change) for name, row in self.timing.vector.items()}
        head = self.options["vector_head"].model_copy(update={"value": "always"})
        update = {
            "timing": self.timing.model_copy(update={"vector": rows}),
            "options": {**self.options, "vector_head": head},
        }
        return self.model_copy(update=update)

    @property
    def block_bytes(self) -> int:
        """Bytes of one buffer access."""
        return self.repeat.block_bytes

    def cast(self, src: str, dst: str) -> StridedCast | None:
        """Return the rule of a type pair, None if the chip has no such cast."""
        return next((rule for rule in self.casts if (rule.src, rule.dst) == (src, dst)), None)

    def scratch_sequence(self, src: str, dst: str) -> ScratchSequence | None:
        """Return the scratch-backed sequence of a type pair, None if it has none."""
        return next((rule for rule in self.scratch_sequences if (rule.src, rule.dst) == (src, dst)), None)

    def uses_scratch(self, src: str, dst: str) -> bool:
        """Whether a cast runs through a tmp tile if it is given one."""
        return self.scratch_sequence(src, dst) is not None

    @model_validator(mode="after")
    def _consistent(self) -> StridedRepeatTarget:
        pairs = [(rule.src, rule.dst) for rule in self.casts]
        twice = {pair for pair in pairs if pairs.count(pair) > 1}
        if twice:
            raise ValueError(f"casts listed twice: {sorted(twice)}")
        for rule in self.casts:
            if rule.suffixes and rule.fallback not in rule.suffixes and not rule.plain:
                raise ValueError(f"cast {rule.src} -> {rule.dst}: fallback {rule.fallback} has no suffix")
        for sequence in self.scratch_sequences:
            if (sequence.src, sequence.dst) not in pairs:
                raise ValueError(f"scratch sequence for {sequence.src} -> {sequence.dst}, which is not a legal cast")
        for operation in self.tile_operations:
            check_kernel(operation, operation.structure, STRUCTURES[operation.structure])
            missing = [name for name in operation.instructions if name not in self.timing.vector]
            if missing:
                raise ValueError(f"tile_operations: {operation.mnemonic}: no timing.vector.{missing[0]}")
        return self
