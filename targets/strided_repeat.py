"""Schema of chips with memory-to-memory strided-repeat vector instructions (mechanism `strided-repeat`).

Facts: docs/reference/a2a3.md section 2 (repeat configuration), 3 (saturation control, scratch sequences), 5 (memories),
6 (timing), 8 (banks).
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Rounding
from castsim.targets.dataflow import (
    PLACEMENT,
    Banks,
    BlockBytes,
    DataflowTarget,
    DataflowTiming,
    TileOperationFacts,
    VectorBytes,
    check_kernel,
    structures_of,
)
from castsim.targets.description import Count, Cycles, Fact, Listed, Rate, Table, with_options
from castsim.targets.validated import Field, model_validator


class RepeatInstruction(Fact):
    """The strided-repeat instruction word.

    Strides count blocks; a field of n bits keeps the low n bits of a written value.
    """

    block_bytes: BlockBytes
    repeat_bytes: VectorBytes
    max_repeats: Count
    max_repeat_stride: Count
    """Maximum number of blocks between repeats; beyond it the library processes a tile line by line (not for casts)."""
    mask_lanes: Count
    repeat_stride_field_bits: Count
    row_stride_operand_bits: Count
    """Bit width to which a tile's row stride, in elements, is cut before it becomes a repeat stride."""


class NarrowStrideField(Fact):
    """Instructions whose repeat stride field is narrower than usual."""

    mnemonics: tuple[str, ...]
    repeat_stride_field_bits: Count


class StridedControlBits(Fact):
    """Bits of the CTRL register that conversions read, and their initial state in a kernel."""

    integer_saturation_off: Count
    """Results of integer formats: 0 clamps, 1 keeps the low bits."""
    float_saturation_off: Count
    """Results of `float_formats`: 0 clamps infinities and overflow and turns NaN into 0, 1 keeps them."""
    float_formats: tuple[str, ...]
    mask_is_count: Count
    """Bit that turns the mask register into a number of elements, which instructions then cover at once."""


class ByteStorage(Fact):
    """Packed 4-bit formats whose tiles nevertheless count one byte per element in pitch and pointer arithmetic."""

    formats: tuple[str, ...]


class DequantisationScale(Fact):
    """The scale register that the integer to f16 conversion multiplies by; TCVT writes it before each call."""

    code: Annotated[int, Field(ge=0, lt=65536)]


class BufferRead(Fact):
    """The scalar unit's read of a buffer element, for instructions with a scalar operand."""

    cycles: Cycles


class VectorTiming(Fact):
    """One vector instruction, for the element types of its destination (of the source of a cast); empty: for all.

    Alone it takes `startup_cycles` + `repeat_cycles` x repeats + `fill_cycles` x exp(-repeats / `decay_repeats`), plus
    its pipe's time; repeats in this sum count up to `most_repeats`. An idle pipe fills for the startup before the
    first repeat (with `fills_always` any pipe does), or for `read_cycles` of it: the rest is then between reads and
    results, which a change of the mask waits for. Repeats follow each other in whole cycles, their fractions after
    the last; results are in the buffer `tail_cycles` later (None: those of the pipe), adjusted by the rounding of
    the sum, and until then the pipe is not idle. Each repeat that a bank conflict delays loses
    `conflict_cycles` more, all after the last. The row applies while `option`, if it names one, has the value
    `option_value`. `validated` tells that published cycles of an operation with the instruction were compared
    with the simulation.
    """

    instruction: str
    types: Listed = ()
    startup_cycles: Decimal
    repeat_cycles: Annotated[Decimal, Field(gt=0, decimal_places=3)]
    conflict_cycles: Annotated[Decimal, Field(ge=0, decimal_places=3)] = Decimal(0)
    fill_cycles: Annotated[Decimal, Field(ge=0)] = Decimal(0)
    decay_repeats: Annotated[Decimal, Field(gt=0)] = Decimal(1)
    most_repeats: Count | None = None
    tail_cycles: Cycles | None = None
    read_cycles: Cycles | None = None
    fills_always: bool = False
    option: str = ""
    option_value: int | str = ""
    validated: bool
    starts_at_once: Annotated[bool, Field(repr=False)] = False
    """An idle pipe does not fill. No known chip does so, as for the next option."""
    results_at_once: Annotated[bool, Field(repr=False)] = False
    """The results are in the buffer when the interval ends; the pipe is idle a tail later anyway.

    Lifting the drain alone needs it, because a pipe without a tail would also idle, and so fill, more often.
    """

    @property
    def head(self) -> int:
        """Number of cycles in which an idle pipe fills."""
        return 0 if self.starts_at_once else self._nominal_head

    @property
    def interval(self) -> int:
        """Whole cycles between repeats; the pipe starts at most one repeat per cycle."""
        return max(1, int(self.repeat_cycles))

    def rest(self, repeats: int) -> int:
        """Return the sum of the fractions of a number of intervals, in cycles."""
        return max(0, int(repeats * self.repeat_cycles) - repeats * self.interval)

    def lost(self, delayed: int) -> int:
        """Return the cycles that a number of delayed repeats lose."""
        return int(delayed * self.conflict_cycles)

    @property
    def _nominal_head(self) -> int:
        """The startup; where the pipe's tail follows, the first repeat begins in its last cycle."""
        return self._startup - self.late

    @property
    def late(self) -> int:
        """Cycles of the startup after the first repeat's reads."""
        return 0 if self.read_cycles is None else max(0, self._startup - self.read_cycles)

    @property
    def _startup(self) -> int:
        startup = int(Decimal(self.startup_cycles).to_integral_value(ROUND_HALF_UP))
        return max(0, startup - (1 if self.tail_cycles is None else 0))

    def tail(self, repeats: int, of_pipe: int) -> int:
        """Return the cycles from the end of the last interval until the results of a number of repeats are complete."""
        counted = min(repeats, self.most_repeats or repeats)
        total = Decimal(self.startup_cycles) + self.repeat_cycles * counted
        if self.fill_cycles:
            total += self.fill_cycles * (-counted / Decimal(self.decay_repeats)).exp()
        shown = self._nominal_head + repeats * self.interval + self.rest(repeats)
        tail = of_pipe if self.tail_cycles is None else self.tail_cycles
        return max(0, int(total.to_integral_value(ROUND_HALF_UP)) - shown + tail)


class VectorPipe(Fact):
    """The vector pipe itself, independent of the instruction.

    Results are in the buffer `tail_cycles` after the last repeat. A change of lane mask, count mode or compare mask
    takes effect `mask_change_cycles` after the earlier repeats, whose results are waited for.
    """

    tail_cycles: Cycles
    mask_change_cycles: Cycles


class StridedTiming(DataflowTiming):
    """All timing facts; `vector` are rows by name."""

    buffer_read: BufferRead
    vector_pipe: VectorPipe
    vector: dict[str, VectorTiming]

    def scalar_work(self, kind: str) -> tuple[int, str]:
        """Return the cycles of one `ScalarWork` and the path of their fact."""
        return (self.buffer_read.cycles, "timing.buffer_read") if kind == "read" else super().scalar_work(kind)


class MeasuredConvention(Fact):
    """Meaning of published cycles: additional cycles beyond the machine's, and other differences.

    `added_cycles` represent the surroundings of an operation, `added_cycles_of` those of single operations. The others
    replace facts of the pipe, the banks and loads; `options` are set.
    """

    meaning: str
    added_cycles: Annotated[int, Field(strict=True)] = 0
    added_cycles_of: dict[str, int] = Field(default_factory=dict)
    tail_cycles: Cycles | None = None
    mask_change_cycles: Cycles | None = None
    exclusive_banks: bool | None = None
    options: dict[str, int | str] = Field(default_factory=dict)
    apart: tuple[str, ...] = ()
    load_startup_cycles: Cycles | None = None
    load_bytes_per_cycle: Rate | None = None


def _stated(convention: MeasuredConvention, *names: str) -> dict[str, object]:
    """Return those attributes of a convention that it states."""
    return {name: value for name in names if (value := getattr(convention, name)) is not None}


class ScratchInstructions(Fact):
    """A cast that, without saturation and given a scratch tile, runs as several instructions through it.

    `steps` names the sequence (docs/reference/a2a3.md section 3.4): `via_i32` converts whole calls to int32 and
    narrows; `chunked` does so in sub-chunks of `chunk_lanes`; `chunked_masked` also passes through int16 and f16 to
    reach 8 bits. A pair without an instruction runs through the tile at any saturation: `through_f16`.
    """

    src: str
    dst: str
    steps: Literal["via_i32", "chunked", "chunked_masked", "through_f16"]
    chunk_lanes: Count | None = None

    @model_validator(mode="after")
    def _chunked_needs_lanes(self) -> ScratchInstructions:
        if (self.steps == "via_i32") == (self.chunk_lanes is not None):
            raise ValueError(f"steps '{self.steps}' and chunk_lanes {self.chunk_lanes} contradict each other")
        return self


class StridedCast(Table):
    """One legal type pair.

    `suffixes` maps the modes the pair honours to the mnemonic suffix (empty: one instruction, mode ignored);
    `fallback` is the mode used for every other request (None: nothing to round); `plain` is True if the
    mode NONE has its own unsuffixed instruction, numerically equal to the fallback.
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


STRUCTURES = structures_of("strided-repeat")
"""The structures of kernels by name."""

if TYPE_CHECKING:
    StructureName = str
else:
    StructureName = Literal[tuple(STRUCTURES)]


class StridedOperation(TileOperationFacts):
    """One vector operation with its kernel.

    `structure` names the order of the instructions; `strided.kernel_lowering` has a function for
    each. Those of an `elementwise` one run in sequence, all but the first on the destination. `lines` says
    which adjacent lines of elements one call combines: `never` any, `whole_repeats` those that are whole repeats,
    `up_to_repeat` also those that are shorter than one, `always` all. Longer partial lines are combined
    in count mode, unless it is `never`.
    """

    structure: StructureName
    lines: Literal["never", "whole_repeats", "up_to_repeat", "always"] = "never"


class StridedBufferPorts(Banks):
    """Banking of the buffer, the banks of a group being adjacent; accesses that exclude each other in a cycle.

    Accesses that do not exclude each other pass together, without limit.
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
    scratch_sequences: tuple[ScratchInstructions, ...]
    measured_conventions: dict[str, MeasuredConvention] = Field(default_factory=dict)
    tile_operations: tuple[StridedOperation, ...]

    def tile_operation(self, mnemonic: str) -> StridedOperation | None:
        """Return the rule of a vector operation, None if the chip lacks it."""
        return next((rule for rule in self.tile_operations if rule.mnemonic == mnemonic), None)

    def meaning_of(self, convention: str) -> str:
        """Return the description of a measuring convention for published cycles, '' if there is none."""
        measured = self.measured_conventions.get(convention)
        return "" if measured is None else measured.meaning

    def measured_as(self, convention: str, operation: str = "") -> Self:
        """Return the target with its simulated cycles counted as in published ones of a convention.

        Raises:
            IllegalError: the convention does not exist; the message lists the legal ones.
        """
        measured = self.measured_conventions.get(convention)
        if measured is None:
            raise IllegalError(f"{self.name} has no convention '{convention}'", legal=self.measured_conventions)
        pipe = self.timing.vector_pipe.model_copy(update=_stated(measured, "tail_cycles", "mask_change_cycles"))
        loads = {
            name.removeprefix("load_"): value
            for name, value in _stated(measured, "load_startup_cycles", "load_bytes_per_cycle").items()
        }
        load = self.timing.load.model_copy(update=loads)
        timing = self.timing.model_copy(update={"vector_pipe": pipe, "load": load})
        banks = self.banks.model_copy(update=_stated(measured, "exclusive_banks"))
        options = {
            name: value
            for name, value in measured.options.items()
            if name != PLACEMENT or operation not in measured.apart
        }
        return with_options(self.model_copy(update={"timing": timing, "banks": banks}), options)

    def times_programs(self, convention: str | None) -> bool:
        """Return whether cycles of a convention measure how long programs take: not if it has its own loads."""
        measured = self.measured_conventions.get(convention or "")
        return measured is None or not _stated(measured, "load_startup_cycles", "load_bytes_per_cycle")

    def cycles_around(self, convention: str, operation: str) -> int:
        """Return the cycles by which the published figures of a convention exceed those simulated `measured_as` it."""
        measured = self.measured_conventions[convention]
        return measured.added_cycles_of.get(operation, measured.added_cycles)

    def timing_row(self, instruction: str, element: str) -> str | None:
        """Return the name of the timing row of an instruction on elements of a type, None if there is none.

        A row that an option selects takes precedence, and one for the type precedes one for all.
        """
        row_name, best = None, (False, False)
        for name, row in self.timing.vector.items():
            if row.instruction != instruction or (row.types and element not in row.types):
                continue
            rank = (len(row.option) > 0, len(row.types) > 0)
            if (row_name is None or rank > best) and (
                not row.option or str(self.option(row.option)) == str(row.option_value)
            ):
                row_name, best = name, rank
        return row_name

    @property
    def block_bytes(self) -> int:
        """Number of bytes of one buffer access."""
        return self.repeat.block_bytes

    def cast(self, src: str, dst: str) -> StridedCast | None:
        """Return the rule of a type pair, None if the chip lacks the cast; some casts need an option."""
        listed = next((rule for rule in self.casts if (rule.src, rule.dst) == (src, dst)), None)
        like = self.interface_cast(src, dst)
        if listed is not None or like is None or self.option("interface_casts") != "accept":
            return listed
        rule = self.cast(like.like_src, like.like_dst)
        none = {"stem": "", "suffixes": dict[Rounding, str](), "fallback": None, "note": like.source}
        return None if rule is None else rule.model_copy(update={"src": src, "dst": dst, **none})

    @property
    def sequences_in_force(self) -> tuple[ScratchInstructions, ...]:
        """The sequences of pairs that the chip casts with its current options."""
        return tuple(rule for rule in self.scratch_sequences if self.cast(rule.src, rule.dst) is not None)

    def scratch_sequence(self, src: str, dst: str) -> ScratchInstructions | None:
        """Return the scratch-backed sequence of a type pair, None if it has none."""
        return next((rule for rule in self.scratch_sequences if (rule.src, rule.dst) == (src, dst)), None)

    def uses_scratch(self, src: str, dst: str) -> bool:
        """Return whether a cast runs through a tmp tile if it has one."""
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
            if (sequence.src, sequence.dst) not in pairs and not self.interface_cast(sequence.src, sequence.dst):
                raise ValueError(f"scratch sequence for {sequence.src} -> {sequence.dst}, which is not a legal cast")
        timed = {row.instruction for row in self.timing.vector.values()}
        for operation in self.tile_operations:
            check_kernel(operation, operation.structure, STRUCTURES[operation.structure])
            missing = [name for name in operation.instructions if name not in timed]
            if missing:
                raise ValueError(f"tile_operations: {operation.mnemonic}: no timing.vector.{missing[0]}")
        for name, row in self.timing.vector.items():
            if row.option and row.option not in self.options:
                raise ValueError(f"timing.vector.{name}: there is no option {row.option}")
        return self
