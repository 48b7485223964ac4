"""Schema of chips whose vector unit runs hardware loop nests over registers (mechanism `vector-function`).

Facts: docs/reference/a5.md section 1 (machine, distribution modes), 2 (kernels and their choice), 3 (pairs), 4
(rounding, CTRL), 8 (banks); for timing see `castsim.targets.vector_function_operations`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, Format, IntFormat, Rounding
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    MaskType,
    MicroOperation,
    Type,
    VectorType,
    element_format,
    vector,
)
from castsim.targets.dataflow import Banks, BlockBytes, DataflowTarget, Level, VectorBytes, check_kernel
from castsim.targets.description import Count, Cycles, Fact, Table
from castsim.targets.validated import BeforeValidator, InstanceOf, model_validator
from castsim.targets.vector_function_operations import (
    STRUCTURES,
    ComputeInstruction,
    KernelVariants,
    VectorFunctionOperation,
    VectorFunctionTiming,
    by_column,
)

# The text of vector-function kernels: one register instruction per line, checked when a target is loaded.
#
#     v0, v1 = vlds DINTLV_B32          two registers, even and odd elements
#     v2 = vcvt v0 p0 PART_EVEN         from source to destination format of the cast
#     v2 = vcvt v0 p0 PART_EVEN f16 i32 between named formats, in kernels of several steps
#     p1 = plt_b16 n                    leading lanes from counter n, which loses as many
#     p1 = plt_b8 n take 64             at most 64 lanes, and n loses 64
#     s = select 64 tail                64, on the last trip of a row the counter `tail`
#     vsts NORM_B32 v3 p1 +256          store 256 bytes beyond the trip's own place
#
# Meaning of the instructions: docs/reference/a5.md sections 1.1 and 1.2.

_LINE = re.compile(r"(?:([a-z]\w*(?:, *[a-z]\w*)*) *= *)?([a-z_]+?)(?:_b(8|16|32|64))?((?: +\S+)*)")
_NAME = r"([a-z]\w*)"
_PARTS = "EVEN|ODD|P0|P1|P2|P3"


class DistributionMode(StrEnum):
    """The distribution of an access's bytes over the lanes of a register."""

    NORM = "NORM"
    """Adjacent elements in adjacent lanes."""
    UNPK = "UNPK"
    """Each element in the lower half of a lane twice as wide."""
    UNPK4 = "UNPK4"
    """Each element in the lowest quarter of a lane four times as wide."""
    PK = "PK"
    """The lower half of each lane."""
    PK4 = "PK4"
    """The lowest quarter of each lane."""
    DINTLV = "DINTLV"
    """Even elements in one register, odd ones in another."""
    BRC = "BRC"
    """One element into all lanes."""
    ONEPT = "ONEPT"
    """The element of the first lane."""
    BLK = "BLK"
    """One block into every block of the register."""
    MASK = "MASK"
    """A predicate: one bit per lane."""


@dataclass(frozen=True, slots=True)
class NamedDistribution:
    """A distribution as named in instructions: its mode, and the bits of a lane or element if it has any."""

    mode: DistributionMode
    bits: int | None


@lru_cache(maxsize=64)
def distribution_of(text: str) -> NamedDistribution:
    """Return the distribution `NORM`, `DINTLV_B32` or another with its name.

    Raises:
        ValueError: the mode does not exist.
    """
    mode, _, bits = text.partition("_B")
    return NamedDistribution(DistributionMode(mode), int(bits) if bits else None)


_FORMS: dict[str, tuple[str, str, bool]] = {
    "vlds": ("v", r"(?P<dist>NORM|(?:UNPK|DINTLV)_B(?:8|16|32))", False),
    "vsts": ("", rf"(?P<dist>NORM_B(?:8|16|32)|PK_B(?:16|32|64)) {_NAME} {_NAME}(?: \+(?P<offset>\d+))?", False),
    "vcvt": ("v", rf"{_NAME} {_NAME}(?: PART_(?P<part>{_PARTS}))?(?: (?P<src>\w+) (?P<dst>\w+))?", False),
    "vtrc": ("v", rf"{_NAME} {_NAME}", False),
    "vor": ("v", rf"{_NAME} {_NAME} {_NAME}", False),
    "vand": ("v", rf"{_NAME} {_NAME} {_NAME}", False),
    "vdup": ("v", rf"(?P<number>\d+)(?: {_NAME})?", True),
    "vci": ("v", r"(?P<number>\d+)", True),
    "vmuls": ("v", rf"{_NAME} (?P<number>\d+)", True),
    "vintlv": ("vv", rf"{_NAME} {_NAME}", True),
    "vselr": ("v", rf"{_NAME} {_NAME}", False),
    "pset": ("p", "", True),
    "plt": ("p", rf"{_NAME}(?: take (?P<take>\d+))?|(?P<lanes>\d+)", True),
    "punpack": ("p", _NAME, False),
    "select": ("s", rf"(?P<full>\d+) {_NAME}", False),
    "mem_bar": ("", r"(?P<barrier>VST_VST)", False),
}
"""Mnemonic: kinds of its results (v register, p predicate, s scalar), its operands, whether it has a width."""

SOURCE, DESTINATION = "0", "-1"
"""The pointers of a kernel's loads and stores, to its source and its destination."""


def parse_instruction(text: str) -> MicroOperation:
    """Return one line as an operation of the micro level, with the words of the line.

    It has only the types of results: lanes of a width, which for a conversion are those between named formats.

    Raises:
        ValueError: the mnemonic or mode is unknown, or the number of results or operands is wrong.
    """
    match = _LINE.fullmatch(text.strip())
    mnemonic = match.group(2) if match else ""
    if match is None or mnemonic not in _FORMS:
        raise ValueError(f"'{text}': not a register instruction")
    results = tuple(re.split(r", *", match.group(1))) if match.group(1) else ()
    kinds, form, wide = _FORMS[mnemonic]
    operands = re.fullmatch(form, " ".join(match.group(4).split()))
    words = {} if operands is None else {key: word for key, word in operands.groupdict().items() if word is not None}
    if operands is None or not FORMATS.keys() >= {words.get(side, "f32") for side in ("src", "dst")}:
        raise ValueError(f"'{text}': operands of {mnemonic} are not understood")
    dual = words.get("dist", "").startswith(DistributionMode.DINTLV)
    if len(results) != len(kinds) + dual or wide != (match.group(3) is not None):
        raise ValueError(f"'{text}': {mnemonic} has {len(kinds) + dual} results and {'a' if wide else 'no'} lane width")
    of_words = operands.re.groupindex.values()
    named = [name for index, name in enumerate(operands.groups(), 1) if name is not None and index not in of_words]
    return _operation(mnemonic, int(match.group(3) or 0), results, named, words)


def _operation(
    mnemonic: str, width: int, results: tuple[str, ...], operands: Sequence[str], words: dict[str, str]
) -> MicroOperation:
    """Return the operation of a line."""
    before: tuple[Type, ...] = ()
    kinds: tuple[Type, ...] = ()
    match mnemonic:
        case "vlds":
            mnemonic, operands = "vldsx2" if len(results) > 1 else "vlds", (SOURCE,)
        case "vsts":
            operands = (operands[0], DESTINATION, operands[1])
        case "vcvt" if "src" in words:
            before, kinds = ((vector(words.pop(side)),) for side in ("src", "dst"))
        case "pset" | "plt":
            mnemonic, kinds = f"{mnemonic}_b{width}", (MaskType(width),)
            lanes = words.pop("lanes", str(REGISTER_BITS // width))
            words = {"pattern": "PAT_ALL"} if mnemonic.startswith("pset") else {"take": words.get("take", lanes)}
        case "punpack":
            words = {"half": "LOWER"}
        case _ if width:
            kinds = (vector(f"i{width}"),) * len(results)
    return MicroOperation(mnemonic, tuple(operands), before, results, kinds, tuple(words.items()))


def instruction_text(instruction: MicroOperation) -> str:
    """Return the line that `parse_instruction` converts to an operation."""
    words, mnemonic, operands = dict(instruction.attributes), instruction.mnemonic, list(instruction.operands)
    types = [*instruction.operand_types, *instruction.result_types]
    match mnemonic:
        case "vlds" | "vldsx2":
            mnemonic, operands = "vlds", [words["dist"]]
        case "vsts":
            operands = [
                words["dist"],
                operands[0],
                operands[2],
                *(f"+{words[key]}" for key in words if key == "offset"),
            ]
        case "vcvt":
            operands += [f"PART_{words[key]}" for key in words if key == "part"]
            operands += [kind.element for kind in types if isinstance(kind, VectorType)]
        case "select":
            operands.insert(0, words["full"])
        case "mem_bar":
            operands = [words["barrier"]]
        case _ if mnemonic.startswith("plt_b"):
            is_whole = types == [MaskType(REGISTER_BITS // int(words["take"]))]
            operands += [words["take"]] if not operands else [] if is_whole else ["take", words["take"]]
        case _ if types and isinstance(types[0], VectorType):
            mnemonic += f"_b{element_format(types[0].element).bits}"
            if "number" in words:
                operands.insert(mnemonic.startswith("vmuls"), words["number"])
    text = " ".join([mnemonic, *operands])
    return f"{', '.join(instruction.results)} = {text}" if instruction.results else text


def check_registers(instructions: Iterable[MicroOperation], counters: Iterable[str]) -> None:
    """Reject a register that is read before it is written.

    Raises:
        ValueError: there is one; the message names register and instruction.
    """
    registers = {*counters, SOURCE, DESTINATION}
    for instruction in instructions:
        for operand in instruction.operands:
            if operand not in registers:
                raise ValueError(f"{instruction.mnemonic} reads '{operand}', which nothing has written")
        registers.update(instruction.results)


VariantName = Literal["1D", "2D_default", "2D_no_post_update"]


def _instruction(text: object) -> object:
    return parse_instruction(text) if isinstance(text, str) else text


Line = Annotated[MicroOperation, InstanceOf(), BeforeValidator(_instruction)]


class VectorRegisters(Fact):
    """The register file. A predicate has one bit per byte of a register."""

    register_bytes: VectorBytes
    block_bytes: BlockBytes


class FunctionBufferPorts(Banks):
    """Banking of the buffer; the bits above the group select the bank, those above the bank its row."""

    reads_per_group: Count
    """Number of reads of one group in a cycle without a write."""
    reads_beside_write: Cycles
    """Number of reads of one group in a cycle with a write."""
    writes_per_group: Count
    """Number of writes of one group in a cycle."""
    reads_per_bank: Count
    """Number of reads of one bank of a group in a cycle, for launches that are placed instruction by instruction."""


BY_SET, BY_LEVEL = "set", "program"
"""Values of a bit's option, and of option `ctrl`, that leave the choice to that option, or to the program's level."""


class ControlSet(Fact):
    """Values of the CTRL register as its bits that are 1."""

    ones: tuple[Count, ...]


class FunctionControlBits(Fact):
    """Bits of the CTRL register that conversions and arithmetic read, and its initial state in a kernel.

    While `saturation_global` is 0 every conversion follows its own operand, which the kernels set to not saturating;
    while it is 1 the other bits apply to all.
    """

    saturation_global: Count
    integer_saturation_off: Count
    """Results of integer formats: 0 clamps, 1 keeps the low bits."""
    float_saturation_off: Count
    """Results of `float_formats`: 0 clamps infinities and overflow and turns NaN into 0, 1 keeps them."""
    float_formats: tuple[str, ...]
    nan_kept: Count
    """1 keeps NaN in `nan_kept_formats` although clamping is on."""
    nan_kept_formats: tuple[str, ...]
    clamped_formats: tuple[str, ...]
    """Formats whose conversion has no saturation operand and always clamps."""
    integer_arithmetic_saturates: Count
    """Sums, differences and products of integers: 0 keeps the low bits, 1 clamps."""
    starts: dict[Level, str]
    """The set of initial values, one of `sets`, for a kernel of each level, unless option `ctrl` names one."""
    sets: dict[str, ControlSet]

    @property
    def bits(self) -> tuple[int, ...]:
        """Every bit that is read."""
        return (
            *(self.float_saturation_off, self.nan_kept, self.integer_arithmetic_saturates),
            *(self.integer_saturation_off, self.saturation_global),
        )

    @property
    def options(self) -> dict[str, int]:
        """The option for each bit's initial value."""
        return {f"ctrl_{bit}_at_start": bit for bit in self.bits}


class ControlWriteRule(Table):
    """One bit that the tile instruction writes before a cast and restores after it."""

    bit: Count
    value: Literal["zero", "one", "saturation_off"]


class ControlClass(Fact):
    """The bits that one class of pairs writes, in order."""

    writes: tuple[ControlWriteRule, ...]


class VariantChoice(Fact):
    """The code variant that runs: indexed by implementation kind, for contiguous and for padded tiles."""

    contiguous: tuple[VariantName, ...]
    padded: tuple[VariantName, ...]


class Counter(Table):
    """Start value of a scalar counter at the beginning of a row: `max(count * times // over - minus, 0)`.

    `count` is the number of valid elements of the row (1D: of the tile); for a `last` counter, of the last trip.
    """

    times: Count = 1
    over: Count = 1
    minus: Cycles = 0
    last: bool = False


class KernelText(Table):
    """The loop nest of one kernel: `setup` runs once, `row` at the start of every row, `trip` in the inner loop.

    `fill`, if given, is the trip of a loop over the whole destination before the nest. A trip converts `elements`.
    """

    elements: Count
    counters: dict[str, Counter]
    setup: tuple[Line, ...] = ()
    row: tuple[Line, ...] = ()
    trip: tuple[Line, ...]
    fill: tuple[Line, ...] = ()

    @model_validator(mode="after")
    def _reads_what_is_written(self) -> KernelText:
        check_registers((*self.setup, *self.fill, *self.row, *self.trip), self.counters)
        return self


class Kernels(Fact):
    """Kernel texts by name."""

    texts: dict[str, KernelText]


class ProfiledSequence(Fact):
    """A variant whose published cycles differ from its kernel text.

    They are those of kernel `timed_as`, whose trips, if `elements` is given, convert that many elements each.
    """

    src: str
    dst: str
    kernel: str
    timed_as: str
    elements: Count | None = None


class VectorVariant(Table):
    """Code variant of a pair; `when` restricts it to one saturation mode."""

    src: str
    dst: str
    variant: VariantName
    when: Literal["always", "saturation_on", "saturation_off"]
    kernel: str


class VectorCast(Table):
    """One legal type pair.

    `rounding`: `user` honours the modes of `suffixes` (mode: letter of the instruction), others become `fallback`;
    `fixed` always rounds by `fallback`; `exact` and `integer` have nothing to round. `control` names the class of
    CTRL bits written.
    """

    src: str
    dst: str
    rounding: Literal["user", "fixed", "exact", "integer"]
    suffixes: dict[Rounding, str]
    fallback: Rounding | None
    control: str
    saturation_off_by_default: bool


class InstructionSaturation(Fact):
    """Casts from one of `sources` to one of `formats` that saturate by an operand of their instruction.

    This is the case in the micro back end, where they round by any of `roundings`.
    """

    sources: tuple[str, ...]
    formats: tuple[str, ...]
    roundings: tuple[Rounding, ...]


class VectorFunctionTarget(DataflowTarget):
    """A chip of this mechanism."""

    mechanism: Literal["vector-function"]
    casts_use_scratch: ClassVar[Literal[False]] = False
    registers: VectorRegisters
    banks: FunctionBufferPorts
    control: FunctionControlBits
    control_classes: dict[str, ControlClass]
    instruction_saturation: InstructionSaturation | None = None
    variant_choice: VariantChoice
    kernels: Kernels
    profiled_sequences: tuple[ProfiledSequence, ...]
    timing: VectorFunctionTiming
    casts_fact: Fact
    casts: tuple[VectorCast, ...]
    variants_fact: Fact
    variants: tuple[VectorVariant, ...]
    tile_operations: tuple[VectorFunctionOperation, ...]
    kernel_variants: dict[str, KernelVariants]
    arithmetic_fact: Fact
    arithmetic: Annotated[dict[str, ComputeInstruction], by_column("mnemonic")]

    @property
    def block_bytes(self) -> int:
        """Number of bytes of one buffer access."""
        return self.registers.block_bytes

    def option(self, name: str) -> int | str:
        """Return the value of a named option; for a bit of CTRL, its initial value in a tile kernel.

        Raises:
            KeyError: the option does not exist.
        """
        bit = self.control.options.get(name)
        return super().option(name) if bit is None else self.control_at_start(bit, "tile")

    def control_at_start(self, bit: int, level: Level) -> int:
        """Return the initial value of a CTRL bit in a kernel of the level: by its own option, else by option `ctrl`."""
        own = self.options[f"ctrl_{bit}_at_start"].value
        if own != BY_SET:
            return int(own)
        named = self.options["ctrl"].value
        control = self.control.sets[self.control.starts[level] if named == BY_LEVEL else str(named)]
        return int(bit in control.ones)

    def cast(self, src: str, dst: str) -> VectorCast | None:
        """Return the rule of a type pair, None if the chip lacks the cast; some casts need an option."""
        listed = next((rule for rule in self.casts if (rule.src, rule.dst) == (src, dst)), None)
        like = self.interface_cast(src, dst)
        if listed is not None or like is None or self.option("interface_casts") != "accept":
            return listed
        rule = self.cast(like.like_src, like.like_dst)
        return None if rule is None else rule.model_copy(update={"src": src, "dst": dst})

    def tile_operation(self, mnemonic: str) -> VectorFunctionOperation | None:
        """Return the rule of a vector operation, None if the chip lacks it."""
        return next((rule for rule in self.tile_operations if rule.mnemonic == mnemonic), None)

    def variant(self, src: str, dst: str, name: str, *, saturation_off: bool) -> VectorVariant:
        """Return the code variant `name` of a legal pair; KeyError if there is none."""
        whens = ("always", "saturation_off" if saturation_off else "saturation_on")
        for row in self.variants:
            if (row.src, row.dst, row.variant) == (src, dst, name) and row.when in whens:
                return row
        like = self.interface_cast(src, dst)
        if like is not None:
            base = self.variant(like.like_src, like.like_dst, name, saturation_off=saturation_off)
            return base.model_copy(update={"src": src, "dst": dst})
        raise KeyError(f"{src} -> {dst} {name}")

    def code_variants(self, mnemonic: str, *, contiguous: bool) -> tuple[str, ...]:
        """Return the names of an operation's code variants in the order of `implementation_kind`, () if it has none."""
        rule = self.tile_operation(mnemonic)
        if rule is None:
            return ()
        choice = self.kernel_variants[rule.choice]
        return choice.contiguous if contiguous else choice.padded

    def elements_per_trip(self, src: str, dst: str, *, contiguous: bool) -> int | None:
        """Return the elements that one trip of a cast's loop converts; None if the chip lacks the cast."""
        rule = self.cast(src, dst)
        if rule is None:
            return None
        kinds = self.variant_choice.contiguous if contiguous else self.variant_choice.padded
        kind = int(self.option("implementation_kind"))
        variant = self.variant(src, dst, kinds[kind], saturation_off=rule.saturation_off_by_default)
        return self.kernels.texts[variant.kernel].elements

    def follows_families(self, *, kernel: bool) -> bool:
        """Whether instructions of a tile operation's `kernel`, or of a text, have latencies that kernels contradict."""
        return self.option("instruction_families") in (("all",) if kernel else ("all", "texts"))

    def latency(self, mnemonic: str, width: int, *, integers: bool = False, kernel: bool = True) -> Decimal | None:
        """Return the latency in cycles of a compute instruction on lanes of `width` bits; None if there is none."""
        disputed = self.timing.families.cycles.get(mnemonic)
        if disputed is not None and self.follows_families(kernel=kernel):
            return disputed
        row = self.arithmetic.get(mnemonic)
        if row is not None:
            return row.latency(width, integers=integers)
        return self.timing.chain.latency_cycles.get(mnemonic)

    def conversion_row(self, src: Format, dst: Format, *, kernel: bool = False) -> str:
        """Return the row of `arithmetic` for a `vcvt`; '' if all have one latency (`follows_families`)."""
        if not self.follows_families(kernel=kernel):
            return ""
        if isinstance(src, IntFormat) and isinstance(dst, IntFormat):
            return "vcvt_integer"
        return "vcvt_short" if {src.name, dst.name} in ({"f16", "f32"}, {"bf16", "f32"}) else "vcvt_float"

    @model_validator(mode="after")
    def _consistent(self) -> VectorFunctionTarget:
        pairs = [(rule.src, rule.dst) for rule in self.casts]
        if len(set(pairs)) < len(pairs):
            raise ValueError(f"casts listed twice: {sorted({pair for pair in pairs if pairs.count(pair) > 1})}")
        for rule in self.casts:
            what = f"cast {rule.src} -> {rule.dst}"
            if rule.control not in self.control_classes:
                raise ValueError(f"{what}: no control class '{rule.control}'")
            if (rule.rounding == "user") != bool(rule.suffixes) or (rule.rounding in ("exact", "integer")) != (
                rule.fallback is None
            ):
                raise ValueError(f"{what}: rounding '{rule.rounding}' contradicts its modes or fallback")
        self._check_variants(pairs)
        if len(self.variant_choice.contiguous) != len(self.variant_choice.padded):
            raise ValueError("variant_choice: contiguous and padded list different numbers of kinds")
        for name in ("ctrl", *self.control.options):
            if name not in self.options:
                raise ValueError(f"options.{name} is missing: conversions read CTRL")
        if unknown := sorted(
            {*self.options["ctrl"].legal, *self.control.starts.values()} - {BY_LEVEL, *self.control.sets}
        ):
            raise ValueError(f"control.sets: no set named {', '.join(map(str, unknown))}")
        self._check_operations()
        return self

    def _check_operations(self) -> None:
        kinds = len(self.variant_choice.contiguous)
        for name, choice in self.kernel_variants.items():
            if len(choice.contiguous) != kinds or len(choice.padded) != kinds:
                raise ValueError(f"kernel_variants.{name}: not {kinds} kinds, as variant_choice has")
        for rule in self.tile_operations:
            check_kernel(rule, rule.structure, STRUCTURES[rule.structure])
            what = f"tile_operations: {rule.mnemonic}"
            if rule.choice not in self.kernel_variants:
                raise ValueError(f"{what}: no kernel_variants '{rule.choice}'")
            if rule.control is not None and rule.control not in self.control_classes:
                raise ValueError(f"{what}: no control class '{rule.control}'")
            for mnemonic in (*rule.instructions, *filter(None, (rule.scalar_integers,))):
                if self.latency(mnemonic, 32) is None:
                    raise ValueError(f"{what}: no latency of '{mnemonic}'")

    def _check_variants(self, pairs: list[tuple[str, str]]) -> None:
        kernels = self.kernels.texts
        rows: tuple[VectorVariant | ProfiledSequence, ...] = (*self.variants, *self.profiled_sequences)
        for row in rows:
            if (row.src, row.dst) not in pairs:
                raise ValueError(f"a variant for {row.src} -> {row.dst}, which is not a legal cast")
            if row.kernel not in kernels:
                raise ValueError(f"{row.src} -> {row.dst}: no kernel '{row.kernel}'")
        for profiled in self.profiled_sequences:
            if profiled.timed_as not in kernels:
                raise ValueError(f"profiled_sequences: no kernel '{profiled.timed_as}'")
        names = {*self.variant_choice.contiguous, *self.variant_choice.padded}
        for src, dst in pairs:
            for name in sorted(names):
                for off in ("saturation_on", "saturation_off"):
                    variants = [
                        variant
                        for variant in self.variants
                        if (variant.src, variant.dst, variant.variant) == (src, dst, name)
                        and variant.when in ("always", off)
                    ]
                    if len(variants) != 1:
                        raise ValueError(f"{src} -> {dst}: {len(variants)} variants {name} for {off}")
