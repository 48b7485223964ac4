"""Schema of chips that issue one bundle per cycle into an exposed pipeline (mechanism `vliw`).

Facts: tpc.md sections 1 (machine), 2 (conversions, rounding codes), 5 (values), 6 (timing).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from isa.formats import FORMATS
from isa.modes import Rounding
from isa.tpc.dialect import Dialect, Feature
from targets.schema import Count, Cycles, Fact, Table
from targets.vliw_encoding import EncodedHeader
from targets.vliw_pipeline import CommitStage, Listed, ReadStage, SlotName, SpecialDistances, fitting

Address = Annotated[int, Field(ge=0, lt=1 << 32, strict=True)]
Code = Annotated[int, Field(ge=0, le=7, strict=True)]
_Row = TypeVar("_Row")

TENSOR_ROLES = ("load_number", "store_number", "load_range", "store_range", "store_merge")


class Registers(Fact):
    """Numbers of registers. SP0 and VP0 are constant true; D, A and Z are groups of V and S."""

    V: Count
    S: Count
    I: Count  # noqa: E741  the vendor's name
    AD: Count
    SP: Count
    VP: Count
    vector_bytes: Count
    """Size of one V; a VP has one bit per byte of it."""
    dual_group_bytes: Count
    group_bytes: Count
    index_dimensions: Count
    """Coordinates in one I."""
    loop_iterators: Count
    """The last S registers, one per nesting depth of hardware loops."""


class Features(Fact):
    """Which abilities the generation has; every ability that the instruction table knows is named."""

    has: dict[Feature, bool]

    @model_validator(mode="after")
    def _complete(self) -> Features:
        missing = [feature.value for feature in Feature if feature not in self.has]
        if missing:
            raise ValueError(f"features not mentioned: {missing}")
        return self


class ElementFormats(Fact):
    """Formats that the arithmetic and conversions of the generation know."""

    formats: tuple[str, ...]

    @model_validator(mode="after")
    def _known(self) -> ElementFormats:
        unknown = [name for name in self.formats if name not in FORMATS]
        if unknown:
            raise ValueError(f"unknown formats {unknown}")
        return self


class TensorRegisters(Fact):
    """Registers that tensor accesses read without naming them; a missing role is an ability the chip lacks."""

    load_number: str | None = None
    store_number: str | None = None
    load_range: str | None = None
    store_range: str | None = None
    store_merge: str | None = None


class Tensors(Fact):
    """Tensors of global memory that a program can name."""

    limit: Count


class SmallVectorMemory(Fact):
    """Size of the vector local memory for programs that look up tables."""

    capacity_bytes: Count


class RoundingMode(Table):
    """One mode of an instruction family: its code, and what it does.

    `rounding` None takes the mode from the configuration register. `subnormal_rounding` holds for subnormal results.
    """

    code: Code
    rounding: Rounding | None = None
    subnormal_rounding: Rounding | None = None


class RoundingModes(Fact):
    """The rounding modes of an instruction family by the words of the assembly, and what omission means."""

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
    """How CONVERT_INT* reads its shift: the low bits that count, None for the whole element."""

    scalar_bits: Count | None = None
    vector_bits: Count | None = None


class SpecialValues(Fact):
    """Where the values of some formats are treated unlike those of others.

    NaN results have every bit but the sign set, save in the conversions of `payload_kept`, which keep sign and payload.
    Conversions between floats narrower than `intermediate` round as if they passed through it.
    """

    payload_kept: tuple[tuple[str, str], ...]
    intermediate: str
    flushed: tuple[str, ...]
    """Formats whose subnormals ADD, SUB and MUL replace (option arithmetic_subnormals)."""
    flushed_on_request: tuple[str, ...]
    """Formats whose subnormal operands they replace under the switch `fp16_ftz_in` or the register f16_flush_inputs."""

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
    values of `num_lanes`; `switches` what else may be set (x2, x4, clip_fp); `masks` the element counts of VP masks.
    """

    unit: Literal["vpu", "spu"]
    src: str
    dst: str
    lane_sel_max: int | None
    lanes: Listed
    switches: Listed
    masks: Listed
    note: str | None


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


class Overlay(Table):
    """Two operand fields that share bits of the bundle, so that only one of them may be used."""

    first: str
    second: str


class BundleRules(Fact):
    """What the instructions of one bundle may not do together."""

    immediates: Count
    """Different 32-bit immediates per bundle."""
    shared_predicate: tuple[SlotName, ...]
    """Slots with one common predicate field."""
    overlays: tuple[Overlay, ...]
    vector_scalar_excludes_load: bool
    """A VPU instruction with an S operand excludes LD_L_V and MOV from S to V or VP in the LOAD slot."""
    minifloat_excludes_tensor_store: bool
    """A VPU operation on f8_143 excludes ST_TNSR."""


class IssueRules(Fact):
    """Distances in bundles between instructions, as far as they are not data dependences; 0 means no rule."""

    product_write_distance: Cycles
    """From a float MUL to the next write of its destination."""
    forbidden_after_tensor_store: Cycles
    """Distance from ST_TNSR at which no LD_TNSR or ST_TNSR may stand."""
    tensor_half_distance: Cycles
    """Between LD_TNSR_LOW and LD_TNSR_HIGH accesses."""
    random_distance: Cycles
    """Between two uses of the random generator."""


class JumpRules(Fact):
    """Jumps."""

    delay_bundles: Count
    """Bundles behind a jump that run whether or not it is taken."""
    delay_slots: tuple[SlotName, ...]
    """Slots that may be used in them."""
    scalar_convert_distance: Cycles
    """No SPU CONVERT in the delay bundle of a jump or loop, nor in so many bundles before it."""


class LoopRules(Fact):
    """Hardware loops; numbers count bundles."""

    delay_bundles: Count
    body_bundles: Count
    """Smallest body."""
    register_distance: Cycles
    """From a write of start, bound or step to LOOP."""
    iterator_before: Cycles
    """Bundles before LOOP in which the VPU may not read the iterator."""
    iterator_at_end: Cycles
    """Bundles at the end of the body in which it may not either."""
    target_before_end: Cycles
    """Smallest distance of a jump target from the end of the body."""
    jump_before_end: Cycles
    """Smallest distance of a jump from the end of the body."""


class EndRules(Fact):
    """The end of a program."""

    halt_slots: tuple[SlotName, ...]
    """Slots in which HALT stands together."""
    empty_after_store: Cycles
    """Empty bundles that must follow the last store; those behind HALT count."""


class GlobalMemory(Fact):
    """Sustained rate of tensor accesses: one of `access_bytes` per `cycles_per_access`, on average."""

    access_bytes: Count
    cycles_per_access: Count


class VliwTarget(EncodedHeader):
    """A chip of this mechanism."""

    mechanism: Literal["vliw"]
    registers: Registers
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
    integer_converts_fact: Fact
    integer_converts: tuple[IntegerConvertRow, ...]
    commit_stages_fact: Fact
    commit_stages: tuple[CommitStage, ...]
    read_stages_fact: Fact
    read_stages: tuple[ReadStage, ...]
    distances: SpecialDistances
    bundle_rules: BundleRules
    issue_rules: IssueRules
    jump_rules: JumpRules
    loop_rules: LoopRules
    end_rules: EndRules
    global_memory: GlobalMemory

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
        """Return the row of a CONVERT pair, None if the unit has no such pair."""
        return _first(self.converts, lambda row: (row.unit, row.src, row.dst) == (unit, src, dst))

    def integer_convert(self, mnemonic: str, dst: str, unit: str = "vpu") -> IntegerConvertRow | None:
        """Return the row of a CONVERT_INT* instruction (`convert_int32`) and destination, None if there is none."""
        return _first(self.integer_converts, lambda row: (row.unit, row.mnemonic, row.dst) == (unit, mnemonic, dst))

    def commit_stage(self, slot: str, mnemonic: str, element: str | None, file: str) -> int:
        """Return the stage in which a result becomes visible.

        `element` is the type suffix as a format name or None; `file` the destination's register file or name.
        KeyError if no row covers it.
        """
        kind = "float" if element is not None and not _is_integer(element) else "integer"
        found = _first(
            self.commit_stages,
            lambda row: (
                row.slot == slot
                and fitting(row.mnemonics, mnemonic)
                and row.elements in ("*", kind)
                and fitting(row.files, file)
            ),
        )
        if found is None:
            raise KeyError(f"no commit stage for {mnemonic} of the {slot} slot into {file}")
        return found.stage

    def read_stage(self, slot: str, mnemonic: str, role: str, file: str) -> ReadStage:
        """Return when an operand is read; `role` as in the instruction table or `predicate`. KeyError: no row."""
        found = _first(
            self.read_stages,
            lambda row: (
                row.slot == slot
                and fitting(row.mnemonics, mnemonic)
                and fitting(row.roles, role)
                and fitting(row.files, file)
            ),
        )
        if found is None:
            raise KeyError(f"no read stage for {role} in {file} of {mnemonic} of the {slot} slot")
        return found

    @model_validator(mode="after")
    def _consistent(self) -> VliwTarget:
        _refuse_doubles("converts", [(row.unit, row.src, row.dst) for row in self.converts])
        _refuse_doubles("integer_converts", [(r.unit, r.mnemonic, r.src, r.dst) for r in self.integer_converts])
        pairs = [*((row.src, row.dst) for row in self.converts), *((r.src, r.dst) for r in self.integer_converts)]
        for src, dst in pairs:
            unknown = [name for name in (src, dst) if name not in self.elements.formats]
            if unknown:
                raise ValueError(f"cast {src} -> {dst}: the generation has no {unknown[0]}")
        for memory in ("vlm", "slm"):
            if memory not in self.memories:
                raise ValueError(f"memories.{memory} is missing")
        if self.small_vector_memory.capacity_bytes > self.memories["vlm"].capacity_bytes:
            raise ValueError("small_vector_memory is larger than memories.vlm")
        if self.registers.vector_bytes % self.registers.dual_group_bytes:
            raise ValueError("registers.vector_bytes is no multiple of dual_group_bytes")
        return self


def _is_integer(element: str) -> bool:
    return (element[0] in "iub" and element[1:].isdigit()) or element == "b"


def _first(rows: tuple[_Row, ...], fits: Callable[[_Row], bool]) -> _Row | None:
    return next((row for row in rows if fits(row)), None)


def _refuse_doubles(table: str, keys: list[tuple[str, ...]]) -> None:
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ValueError(f"{table} lists twice: {twice}")
