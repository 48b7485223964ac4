"""Schema of chips that issue one bundle per cycle into an exposed pipeline (mechanism `vliw`).

Facts: docs/reference/tpc.md section 1 (machine), 2 (conversions, rounding codes), 5 (values), 6 (timing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cache, cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from castsim.isa.formats import FORMATS, Rounding
from castsim.isa.tpc.forms import Dialect, Feature
from castsim.isa.tpc.forms import ShortImmediates as ShortCodes
from castsim.isa.tpc.program import INDEX_DIMENSIONS, File
from castsim.targets.description import (
    LIST_SEPARATOR,
    Cores,
    Count,
    Cycles,
    Fact,
    Listed,
    Status,
    Table,
    TargetHeader,
    built_for,
)
from castsim.targets.validated import BeforeValidator, Field, ValidationInfo, model_validator
from castsim.targets.vliw_latency import (
    WHOLE_SLOT,
    EntryPort,
    Latencies,
    LatencyRules,
    SlotName,
    StageRow,
    refuse_bad_rows,
    refuse_unknown_instructions,
)

# Schema of the smallest distances between instructions that the stages of the pipeline do not tell.
#
# Some are single facts; a row of the table is a rule on a pair of instructions, whatever registers they name. Facts:
# docs/reference/tpc.md section 6.2.


def _distances(cell: Any) -> Any:
    """Return the distances in a cell; a single one may already be a number."""
    if isinstance(cell, str):
        return tuple(int(word) for word in cell.split(LIST_SEPARATOR) if word)
    return () if cell is None else (cell,) if isinstance(cell, int) else cell


Settings = Annotated[dict[str, str], BeforeValidator(lambda cell: {} if cell is None or cell == "" else cell)]
Distances = Annotated[tuple[int, ...], BeforeValidator(_distances)]


class SpecialDistances(Fact):
    """Distances in bundles that the stages do not give."""

    tied_income: Cycles
    """A writer of V, then an instruction that keeps part of that V."""
    disjoint_parts: Annotated[Cycles, built_for(0, "writers of different parts do not wait for each other")]
    """As for `tied_income`, if both write different lanes, groups or dual groups of V."""
    predicate_load_then_write: Cycles
    """A load into SP or VP, then another unit's write of the same register."""
    rounding_register: Cycles
    """A store to a rounding register, then an instruction that takes its mode from it."""
    random_register: Cycles
    """A store to a register of the random generator, then a use of it."""
    reseed: Cycles
    """A MOV to LFSR, then an instruction that draws from it."""
    tensor_register: Cycles
    """A write of a register that tensor accesses read implicitly, then such an access."""


class BundleDistance(Table):
    """One rule: `distance` from an instruction of `first` to a later one of `second`, and none of `excluded`.

    Instructions are named like `spu.add`, `load.*` is any of the slot. Empty lists of types, switches and operands
    (roles of operands, or names of registers) do not restrict. `same_destination` restricts to instructions that
    write a common register; `needs` and `lacks` name features of generations. `linted` names the rule of the linter
    that checks it, empty: its rule on issue distances.
    """

    first: Listed
    first_types: Listed
    first_switches: Settings
    first_reads: Listed
    second: Listed
    second_types: Listed
    second_switches: Settings
    second_reads: Listed
    distance: int
    excluded: Distances
    same_destination: bool
    needs: Listed
    lacks: Listed
    linted: Listed
    rule: str

    def holds(self, features: Set[Feature]) -> bool:
        """Return whether the rule applies to a generation with these features."""
        return features >= set(map(Feature, self.needs)) and features.isdisjoint(map(Feature, self.lacks))


def names(listed: tuple[str, ...], slot: str, mnemonic: str) -> bool:
    """Return whether a list of instructions includes that of a slot."""
    return f"{slot}.{mnemonic}" in listed or f"{slot}.{WHOLE_SLOT}" in listed


def smallest(rules: tuple[BundleDistance, ...]) -> int | None:
    """Return the smallest distance in bundles that satisfies all of the rules, None if there is none."""
    if not rules:
        return None
    candidate = max(rule.distance for rule in rules)
    forbidden = {distance for rule in rules for distance in rule.excluded}
    while candidate in forbidden:
        candidate += 1
    return candidate


# Schema of binary encodings of bundles: codes, layouts, placements. Opcodes: `castsim.isa.tpc.instructions`.
#
# Facts: docs/reference/tpc.md section 8.

Number = Annotated[int, Field(ge=0, strict=True)]


def _numbers(cell: Any) -> Any:
    """Turn the numbers of a `value=number;..` cell into integers; a name of a code table stays."""
    if isinstance(cell, Mapping):
        return {str(key): int(value) if str(value).isdecimal() else value for key, value in cell.items()}
    return cell


class ImmediateCodes(Table):
    """Operand codes of the immediates 0, 1, ..: `count` from the first, `further` after them.

    `signed` is their number if the type is signed.
    """

    first: Number
    count: Count
    further: tuple[Number, ...] = ()
    signed: Count


class HalfLayout(Table):
    """A compressed layout and its name in assembly; the index in the list is its compression type."""

    name: str
    layout: str


class EncodingCodes(Fact):
    """The numbers of operands, and the layouts that the generation uses.

    `variants` enable rows of the tables that only some generations have.
    """

    bundle_bytes: Count
    bundle: str
    loop: str
    halves: tuple[HalfLayout, ...]
    variants: tuple[str, ...]
    immediate: Number
    short_immediates: ImmediateCodes | None = None
    vector_files: dict[File, Number]
    scalar_files: dict[File, Number]
    specials: dict[str, Annotated[str, Field(pattern=r"^[A-Z]+\d+$")]]
    """Named registers and their register numbers."""
    hardware_registers: dict[str, Number]
    types: dict[str, Number]
    comparisons: dict[str, Number]

    @property
    def short(self) -> ShortCodes:
        """The operand codes of small immediates; empty if the generation has none."""
        given = self.short_immediates
        if given is None:
            return ShortCodes()
        return ShortCodes((*range(given.first, given.first + given.count), *given.further), given.signed)


class ObjectFiles(Fact):
    """ELF files with programs."""

    machines: tuple[Number, ...]


class FieldRow(Table):
    """The position of a field, or of the bits of it in brackets, in a layout."""

    layout: str
    slot: str
    field: str
    start_bit: Number
    size_bits: Count
    variant: str | None


class PlacementRow(Table):
    """The position of an operand or switch: bits of a field; `codes` is a code table by name, or values and numbers."""

    slots: Listed
    mnemonics: Listed
    item: str
    field: str
    low: Number
    bits: Count
    codes: Annotated[str | dict[str, int] | None, BeforeValidator(_numbers)]
    variant: str | None
    status: Status


class EncodedHeader(TargetHeader):
    """The additional properties of a target with a binary encoding."""

    encoding: EncodingCodes
    object_files: ObjectFiles
    encoding_fields_fact: Fact
    encoding_fields: tuple[FieldRow, ...]
    placements_fact: Fact
    placements: tuple[PlacementRow, ...]


# Schema of the issue rules: what the instructions of a bundle, and those of bundles near each other, may not do.
#
# Facts: docs/reference/tpc.md section 1 (bundle conflicts) and 6.2 (issue), docs/reference/tpc.md section 6.2
# (distances).


class FieldOverlay(Table):
    """Two operand fields that share bits of the bundle, so only one of them may be used."""

    first: str
    second: str


class BundleRules(Fact):
    """Combinations that a bundle must not have."""

    immediates: Count
    """Maximum number of different 32-bit immediates per bundle."""
    shared_predicate: tuple[SlotName, ...]
    """Slots with a common predicate field."""
    overlays: tuple[FieldOverlay, ...]
    vector_scalar_excludes_load: bool
    """A VPU instruction with an S operand excludes LD_L_V and MOV from S to V or VP in the LOAD slot."""
    minifloat_excludes_tensor_store: bool
    """A VPU operation on f8_143 excludes ST_TNSR."""


class IssueRules(Fact):
    """Minimum distances in bundles between instructions other than data dependences; 0 means no rule."""

    product_write_distance: Cycles
    """Distance from a result of the multiplier pipe, such as a float MUL, to the next write of its register."""
    multiplier_products: tuple[str, ...]
    """Mnemonics of float products of that pipe."""
    multiplier_sums: tuple[str, ...]
    """Formats whose ADD and SUB run in that pipe too."""
    forbidden_after_tensor_store: Cycles
    """Distance from ST_TNSR at which LD_TNSR and ST_TNSR are forbidden."""
    tensor_half_distance: Cycles
    """Distance from LD_TNSR_LOW to LD_TNSR_HIGH or LD_TNSR, and from LD_TNSR_HIGH to LD_TNSR_LOW."""
    random_distance: Cycles
    """Distance between two uses of the random generator."""
    mapped_store_to_rounding: Cycles
    """Distance from ST_L with mmio to float arithmetic, and to conversions that take their mode from the register."""
    mapped_store_to_access: Cycles
    """From ST_L with mmio to another access of that space, of tensors or of a generator, and to stochastic rounding."""


class JumpRules(Fact):
    """Rules on jumps."""

    delay_bundles: Count
    """Number of bundles after a jump that run whether or not it is taken."""
    delay_slots: tuple[SlotName, ...]
    """Slots that may be used in them."""
    scalar_convert_distance: Cycles
    """Number of bundles before the delay bundle of a jump or loop that, like it, must not contain an SPU CONVERT."""
    scalar_convert_after: Cycles
    """Distance from a jump to an SPU CONVERT."""
    halt_distance: Cycles
    """Distance from a jump to HALT."""


class LoopRules(Fact):
    """Rules on hardware loops; numbers count bundles."""

    delay_bundles: Count
    body_bundles: Count
    """Minimum length of a body."""
    register_distance: Cycles
    """Distance from a write of start, bound or step to LOOP."""
    iterator_before: Cycles
    """Number of bundles before LOOP in which the VPU must not read the iterator."""
    iterator_before_access: Cycles
    """Number of bundles before LOOP in which LD_L_V, ST_L_V and MOV of the LOAD slot must not read it."""
    iterator_at_end: Cycles
    """Number of bundles at the end of the body in which the VPU must not read it."""
    target_before_end: Cycles
    """Minimum distance of a jump target from the end of the body."""
    jump_before_end: Cycles
    """Minimum distance of a jump from the end of the body."""


class EndRules(Fact):
    """Rules on the end of a program."""

    halt_slots: tuple[SlotName, ...]
    """Slots that must all contain HALT."""
    empty_after_store: Cycles
    """Number of empty bundles that must follow the last store; those after HALT count."""


Address = Annotated[int, Field(ge=0, lt=1 << 32, strict=True)]
Code = Annotated[int, Field(ge=0, le=7, strict=True)]
_Row = TypeVar("_Row")

TENSOR_ROLES = ("load_number", "store_number", "load_range", "store_range", "store_merge")


class RegisterCounts(Fact):
    """Numbers of registers. SP0 and VP0 are constantly true; D, A and Z are groups of V and S."""

    V: Count
    S: Count
    I: Count  # noqa: E741  the vendor's name
    AD: Count
    SP: Count
    VP: Count
    vector_bytes: Annotated[Count, built_for(256, "lanes and masks are laid out for registers of one size")]
    """Number of bytes of a V register; a VP has one bit per byte of it."""
    dual_group_bytes: Annotated[Count, built_for(64, "dual groups have one size in bytes")]
    group_bytes: Annotated[Count, built_for(32, "groups have one size in bytes")]
    index_dimensions: Annotated[Count, built_for(INDEX_DIMENSIONS, "tensors and coordinates have one rank")]
    """Number of coordinates of an I register."""
    loop_iterators: Count
    """The last S registers, one per nesting depth of hardware loops."""


class Features(Fact):
    """The features of the generation; every feature in the instruction table is named."""

    has: dict[Feature, bool]

    @model_validator(mode="after")
    def _complete(self) -> Features:
        missing = [feature.value for feature in Feature if feature not in self.has]
        if missing:
            raise ValueError(f"features not mentioned: {missing}")
        return self


class ElementFormats(Fact):
    """Formats of the arithmetic and conversions of the generation."""

    formats: tuple[str, ...]

    @model_validator(mode="after")
    def _known(self) -> ElementFormats:
        unknown = [name for name in self.formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"unknown formats {unknown}")
        return self


class TensorRegisters(Fact):
    """Registers that tensor accesses read implicitly; a missing role is a feature the chip lacks."""

    load_number: str | None = None
    store_number: str | None = None
    load_range: str | None = None
    store_range: str | None = None
    store_merge: str | None = None


class Tensors(Fact):
    """Tensors of global memory that a program can name."""

    limit: Count


class SmallVectorMemory(Fact):
    """Size of the vector local memory for programs with table look-ups."""

    capacity_bytes: Count


class RoundingMode(Table):
    """One mode of an instruction family: its code and effect.

    `rounding` None takes the mode from the configuration register. `subnormal_rounding` applies to subnormal results.
    """

    code: Code
    rounding: Rounding | None = None
    subnormal_rounding: Rounding | None = None


class RoundingModes(Fact):
    """The rounding modes of an instruction family by assembly word, and the default."""

    default: str
    modes: dict[str, RoundingMode]

    @model_validator(mode="after")
    def _consistent(self) -> RoundingModes:
        if self.default not in self.modes:
            raise ValueError(f"default '{self.default}' is not among the modes {list(self.modes)}")
        codes = [mode.code for mode in self.modes.values()]
        if len(set(codes)) != len(codes):
            raise ValueError(f"two modes share a code: {codes}")
        return self


class IntegerShift(Fact):
    """The meaning of CONVERT_INT*'s shift: the number of low bits that count, None for the whole element."""

    scalar_bits: Count | None = None
    vector_bits: Count | None = None


class SpecialValues(Fact):
    """Formats whose values are treated unlike those of others.

    NaN results have every bit except the sign set, but the conversions of `payload_kept` preserve sign and payload.
    Conversions between floats narrower than `intermediate` round as if they passed through it.
    """

    payload_kept: tuple[tuple[str, str], ...]
    intermediate: str
    flushed: tuple[str, ...]
    """Formats whose subnormals ADD, SUB and MUL replace (option arithmetic_subnormals)."""
    flushed_on_request: tuple[str, ...]
    """Formats whose subnormal operands they replace with the switch `fp16_ftz_in` or the register f16_flush_inputs."""

    @model_validator(mode="after")
    def _known(self) -> SpecialValues:
        pairs = (name for pair in self.payload_kept for name in pair)
        unknown = [
            name for name in (*pairs, self.intermediate, *self.flushed, *self.flushed_on_request) if name not in FORMATS
        ]
        if unknown:
            raise ValueError(f"unknown formats {unknown}")
        return self


class ConfigurationRegister(Fact):
    """A memory-mapped register: byte address in the configuration space (None: not published) and reset value."""

    address: Address | None = None
    reset: Address


class ConvertRow(Table):
    """One legal pair of CONVERT in one unit.

    `lane_sel_max` is the largest `lane_sel` of the single_lane form (None: no lane operand); `lanes` are the legal
    values of `num_lanes`; `switches` other valid switches (x2, x4, clip_fp); `masks` the element counts of VP masks.
    """

    unit: Literal["vpu", "spu"]
    src: str
    dst: str
    lane_sel_max: int | None
    lanes: Listed
    switches: Listed
    masks: Listed
    note: str | None

    @model_validator(mode="after")
    def _lanes_are_single(self) -> ConvertRow:
        _refuse_lanes_without_form(self.lane_sel_max, self.lanes)
        return self


class IntegerConvertRow(Table):
    """One legal pair of CONVERT_INT* in one unit; `shifts` are the formats of a vector shift operand, or i32."""

    mnemonic: str
    unit: Literal["vpu", "spu"]
    src: str
    dst: str
    lane_sel_max: int | None
    lanes: Listed
    shifts: Listed
    note: str | None

    @model_validator(mode="after")
    def _lanes_are_single(self) -> IntegerConvertRow:
        _refuse_lanes_without_form(self.lane_sel_max, self.lanes)
        return self


def _refuse_lanes_without_form(lane_sel_max: int | None, lanes: tuple[str, ...]) -> None:
    if lane_sel_max is not None and lanes and "single_lane" not in lanes:
        raise ValueError(f"lane_sel_max {lane_sel_max} is of the single_lane form, which the pair does not have")


class GlobalMemoryRate(Fact):
    """Sustained rate of tensor accesses: one of `access_bytes` per `cycles_per_access`, on average."""

    access_bytes: Count
    cycles_per_access: Count


class ElementLoads(Fact):
    """Timing of LD_G: its data arrives `latency_cycles` after the access begins, and the next LD_G begins no sooner.

    With 0, data arrives when the access has crossed the port, as for a tensor.
    """

    latency_cycles: Cycles


class SharedGlobalMemory(Fact):
    """Bytes per cycle, loads and stores together, that all cores of the chip share."""

    bytes_per_cycle: Count


class VliwTarget(EncodedHeader):
    """A chip of this mechanism."""

    mechanism: Literal["vliw"]
    has_tiles: ClassVar[Literal[False]] = False
    casts_use_scratch: ClassVar[Literal[False]] = False
    has_builtins: ClassVar[Literal[True]] = True
    time_tables: ClassVar[tuple[str, ...]] = ("global_memory", "element_loads", "shared_memory")
    kernel_launch: ClassVar[None] = None
    registers: RegisterCounts
    features: Features
    elements: ElementFormats
    tensor_registers: TensorRegisters
    tensors: Tensors
    small_vector_memory: SmallVectorMemory
    convert_rounding: RoundingModes
    integer_rounding: RoundingModes
    integer_shift: IntegerShift
    special_values: SpecialValues
    configuration: dict[str, ConfigurationRegister]
    converts_fact: Fact
    converts: tuple[ConvertRow, ...]
    compiler_converts_fact: Fact
    compiler_converts: tuple[ConvertRow, ...]
    integer_converts_fact: Fact
    integer_converts: tuple[IntegerConvertRow, ...]
    stages_fact: Fact
    stages: tuple[StageRow, ...]
    entry_ports_fact: Fact
    entry_ports: tuple[EntryPort, ...]
    bundle_distances_fact: Fact
    bundle_distances: tuple[BundleDistance, ...]
    latency_rules: LatencyRules
    distances: SpecialDistances
    bundle_rules: BundleRules
    issue_rules: IssueRules
    jump_rules: JumpRules
    loop_rules: LoopRules
    end_rules: EndRules
    global_memory: GlobalMemoryRate
    element_loads: ElementLoads
    shared_memory: SharedGlobalMemory | None = None
    """Memory shared by the cores; None if no source states it."""
    cores: Cores | None = None

    @property
    def casts(self) -> tuple[ConvertRow, ...]:
        """The pairs of the vector unit's CONVERT, one instruction each."""
        return tuple(row for row in self.converts if row.unit == "vpu")

    @cached_property
    def dialect(self) -> Dialect:
        """The assembly text of this generation."""
        files = ("V", "S", "I", "AD", "SP", "VP")
        roles = {role: getattr(self.tensor_registers, role) for role in TENSOR_ROLES}
        return Dialect(
            name=self.name,
            features=frozenset(feature for feature, has in self.features.has.items() if has),
            registers={file: getattr(self.registers, file) for file in files},
            roundings={
                "convert": tuple(self.convert_rounding.modes),
                "convert_int": tuple(self.integer_rounding.modes),
            },
            tensor_registers={role: register for role, register in roles.items() if register is not None},
        )

    def convert(self, src: str, dst: str, unit: str = "vpu") -> ConvertRow | None:
        """Return the row of a CONVERT pair, None if the unit lacks it."""
        return _first(self.converts, lambda row: (row.unit, row.src, row.dst) == (unit, src, dst))

    def integer_convert(self, mnemonic: str, dst: str, unit: str = "vpu") -> IntegerConvertRow | None:
        """Return the row of a CONVERT_INT* instruction (`convert_int32`) and destination, None if there is none."""
        return _first(self.integer_converts, lambda row: (row.unit, row.mnemonic, row.dst) == (unit, mnemonic, dst))

    @cached_property
    def latencies(self) -> Latencies:
        """The distances between dependent instructions."""

        def unmarked() -> bool:
            return self.option("unlisted_operand") == "unmarked"

        reseed = self.distances.reseed
        rows = self.stages, self.entry_ports, self.latency_rules
        return Latencies(*rows, _opcodes(), reseed=reseed, unmarked=unmarked)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, without values derived from the old facts."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop("latencies", None)
        return copy

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> VliwTarget:
        _refuse_doubles("converts", [(row.unit, row.src, row.dst) for row in self.converts])
        _refuse_doubles("compiler_converts", [(row.unit, row.src, row.dst) for row in self.compiler_converts])
        _refuse_doubles("integer_converts", [(r.unit, r.mnemonic, r.src, r.dst) for r in self.integer_converts])
        converts = (*self.converts, *self.compiler_converts)
        refuse_bad_rows(self.stages, self.entry_ports)
        if not (info.context or {}).get("shipped"):  # those of the shipped ones are tested
            refuse_unknown_instructions(self.latency_rules, _opcodes().keys())
        pairs = [*((row.src, row.dst) for row in converts), *((r.src, r.dst) for r in self.integer_converts)]
        for src, dst in pairs:
            unknown = [name for name in (src, dst) if name not in self.elements.formats]
            if unknown:
                raise ValueError(f"cast {src} -> {dst}: the generation has no {unknown[0]}")
        for memory in ("vlm", "slm"):
            if memory not in self.memories:
                raise ValueError(f"memories.{memory} is missing")
            space = self.memories[memory]
            if space.allocatable_bytes != space.capacity_bytes:
                raise ValueError(
                    f"memories.{memory}: allocatable_bytes {space.allocatable_bytes} is not simulated: programs place "
                    f"their data anywhere in capacity_bytes, {space.capacity_bytes}"
                )
        if self.small_vector_memory.capacity_bytes > self.memories["vlm"].capacity_bytes:
            raise ValueError("small_vector_memory is larger than memories.vlm")
        if self.registers.vector_bytes % self.registers.dual_group_bytes:
            raise ValueError("registers.vector_bytes is not a multiple of dual_group_bytes")
        return self


@cache
def _opcodes() -> dict[tuple[str, str], int]:
    """Return the opcodes of the instruction table by slot, as rows of stages and rules spell it, and mnemonic."""
    from castsim.isa.tpc.instructions import opcodes  # noqa: PLC0415 - who only reads a shipped description needs none

    return {(slot.name.lower(), mnemonic): opcode for (slot, mnemonic), opcode in opcodes().items()}


def _first(rows: tuple[_Row, ...], fits: Callable[[_Row], bool]) -> _Row | None:
    return next((row for row in rows if fits(row)), None)


def _refuse_doubles(table: str, keys: list[tuple[str, ...]]) -> None:
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ValueError(f"{table} lists twice: {twice}")
