"""The schema of the instruction table: spelling, operands, switches and availability of one row.

A `Feature` that a row needs or lacks describes the differences between generations; a `Dialect` is one generation's
text. A row (`Form`) is one way to write an instruction: operand order, register classes, switches in canonical order,
and the features a generation must have. The parser matches text against rows, the printer writes by them, executor and
encoder find operands by role. The rows themselves are in `castsim.isa.tpc.instructions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Any

from castsim.isa.dataclass import dataclass, replace

# The differences between the instruction set generations that show in the text of a program.
#
# A dialect is made from a target description (`castsim.targets.vliw.VliwTarget.dialect`); nothing here knows which
# generation has what. Sources of the distinctions: docs/reference/tpc.md sections 1 and 7.1 (processor definitions of
# HabanaAI/tpc_llvm).


class Feature(StrEnum):
    """An ability that some generations have and others lack."""

    TWO_PART_ADDRESS = "two_part_address"
    """Vector accesses of local memory name two address parts instead of one address."""
    VECTOR_PREDICATED_LOAD = "vector_predicated_load"
    """LD_TNSR under a VP predicate."""
    MASKED_STORE = "masked_store"
    """Vector stores under a VP predicate."""
    PACKED_STORE = "packed_store"
    """ST_TNSR with `pack`."""
    TYPED_PACK = "typed_pack"
    """ST_TNSR names the widths of its packing by a word; without this feature it packs 32 to 16 bits."""
    UNPACKED_LOAD = "unpacked_load"
    """LD_TNSR with `unpack` and `l0cs`."""
    PARTIAL_HALF_ACCESS = "partial_half_access"
    """LD_TNSR_LOW and LD_TNSR_HIGH of a range of lanes."""
    DIRECT_ACCESS = "direct_access"
    """LD_TNSR and ST_TNSR at a plain 64-bit address."""
    LOAD_IN_STORE_SLOT = "load_in_store_slot"
    """LD_TNSR in the STORE slot."""
    INDEXED_GLOBAL_LOAD = "indexed_global_load"
    """LD_G into an index register."""
    ADDRESS_ELEMENT_TYPE = "address_element_type"
    """GEN_ADDR with a separate element type."""
    HARDWARE_REGISTERS = "hardware_registers"
    """Registers for tensor number, lane range, carry, zero point and dimension mask, and moves to and from them."""
    MASK_MOVES = "mask_moves"
    """MOV between V and VP."""
    ADDRESS_MOVES = "address_moves"
    """MOV between AD registers and pairs of S."""
    PAIR_MOVES = "pair_moves"
    """MOV of a register pair."""
    PROGRAM_COUNTER_MOVE = "program_counter_move"
    """MOV from PC."""
    SCALAR_RESEED = "scalar_reseed"
    """MOV to S_LFSR."""
    INDEX_SHIFT_IMMEDIATE = "index_shift_immediate"
    """Shifts of index registers by an immediate."""
    INDEX_COMPARE = "index_compare"
    """Compares of index registers."""
    MASKED_COMPARE = "masked_compare"
    """`mask_eq_zero` on CMP_EQ and SEL_EQ."""
    INVERTED_AND = "inverted_and"
    """`andn` on AND."""
    PRODUCT_ROUNDING = "product_rounding"
    """`keep_rs` on MUL and `rhaz_rs` on ASH."""
    BYTE_PRODUCT = "byte_product"
    """Signed 8-bit MUL in the vector unit."""
    FLUSH_SWITCH = "flush_switch"
    """`fp16_ftz_in` on MUL, ADD and SUB."""
    LANE_CHOICE = "lane_choice"
    """`single_lane` and `all_lanes` on CONVERT_INT*."""
    NIBBLE_CONVERT = "nibble_convert"
    """CONVERT_INT8 and CONVERT_UINT8."""
    MULTI_REGISTER_CONVERT = "multi_register_convert"
    """`x2` and `x4` on CONVERT."""
    CLIP_FLOAT = "clip_float"
    """`clip_fp` on CONVERT."""
    CONVERTING_NEARBYINT = "converting_nearbyint"
    """`cnvrt` on NEARBYINT."""
    UNPACK_LANE = "unpack_lane"
    """`unpack_lane` on UNPACK."""
    MOV_DG_ALL = "mov_dg_all"
    """MOV_DG of all dual groups."""
    MOV_DG_PACK = "mov_dg_pack"
    """MOV_DG that packs."""
    MOV_DG_UNPACK = "mov_dg_unpack"
    """MOV_DG that unpacks."""
    WIDE_ACCUMULATOR = "wide_accumulator"
    """`acc_fp32` on MAC."""
    MULTIPLY_ADD = "multiply_add"
    """MADD, and on integer products `x2`, `zp` and accumulators other than the plain one."""
    PAIR_ARITHMETIC = "pair_arithmetic"
    """`x2` on f32 MAC, MADD, MUL, ADD and SUB."""
    SHIFTED_PRODUCT = "shifted_product"
    """MSAC."""
    TYPED_LOOKUP = "typed_lookup"
    """Look-ups named 1C and 2C with types by width; without the feature C0 and C1C2, with types by part."""
    LOOKUP_POINTER = "lookup_pointer"
    """`lut_ptr` on look-ups, and tables of bytes."""
    LOOKUP_PAIRS = "lookup_pairs"
    """`x2` and `sbcd` on look-ups."""
    ENTRY_OPTIONS = "entry_options"
    """`opt` and `exp0` on GET_LUT_ENTRY_AND_INTERVAL_START."""
    CLASSES = "classes"
    """FCLASS and CALC_FP_SPECIAL."""
    CLASS_LIMIT = "class_limit"
    """`limit` on FCLASS."""
    BIASED_EXPONENT = "biased_exponent"
    """EXTRACT_EXP has the switch `biased`; without this feature `subtract_bias`."""
    SPECIAL_EXPONENT = "special_exponent"
    """`special_func` on FORM_FP_NUM."""
    TRACE_EVENTS = "trace_events"
    """EVENT."""
    PREFETCH = "prefetch"
    """PREFETCH, and `dec` on ASO."""
    SQUEEZED_STORE = "squeezed_store"
    """ST_TNSR_SQZ, ST_TNSR_S and the counters of lanes, `high` on SET_INDX, words of CACHE_INVALIDATE."""
    DIVISION_STEP = "division_step"
    """UDIV_STEP."""
    FOUR_DIVISION_STEPS = "four_division_steps"
    """UDIV_4STEP."""
    WHOLE_DIVISION = "whole_division"
    """UDIV."""
    COMPRESSED_BUNDLES = "compressed_bundles"
    """Encoding: 128-bit bundles."""
    SHORT_IMMEDIATES = "short_immediates"
    """Encoding: small immediates inside an operand field, in addition to the 32-bit one."""


_SIGNED = ("i64", "i32", "i16", "i8", "i4")


@dataclass(frozen=True, slots=True)
class ShortImmediates:
    """The operand codes of the immediates 0, 1, ..; for a signed type only the first `signed` of them."""

    codes: tuple[int, ...] = ()
    signed: int = 0

    def count(self, kind: str | None) -> int:
        """Return their number in an instruction of a type."""
        return self.signed if kind in _SIGNED else len(self.codes)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One generation's text.

    `registers` maps a register file (V, S, I, AD, SP, VP) to its number of registers; `roundings` maps `convert` and
    `convert_int` to the rounding words each accepts; `tensor_registers` maps the roles `load_number`, `store_number`,
    `load_range`, `store_range` and `store_merge` to the generation's register for it, if there is one.
    """

    name: str
    features: frozenset[Feature]
    registers: Mapping[str, int]
    roundings: Mapping[str, tuple[str, ...]]
    tensor_registers: Mapping[str, str]


Value = int | str
"""The possible values of a switch."""

ROUNDING = "rounding"
"""The name of the switch that selects a rounding mode."""

TYPES = ("f32", "bf16", "f16", "f8_143", "f8_152", "i32", "u32", "i16", "u16", "i8", "u8", "i4", "u4", "i64", "b")
"""Type suffixes by format name; `b` is the one-bit type of predicates."""

TARGET_SPELLINGS = {
    "f32": "fp32",
    "bf16": "bf16",
    "f16": "f16",
    "f8_143": "f8_143",
    "f8_152": "f8_152",
    "i32": "int32",
    "u32": "uint32",
    "i16": "int16",
    "u16": "uint16",
    "i8": "int8",
    "u8": "uint8",
    "i4": "int4",
    "u4": "uint4",
}
"""Destination types of CONVERT: format name and its spelling as a switch value.

Source: docs/reference/tpc.md section 2.1.
"""

TYPE_ALIASES = {spelling: name for name, spelling in TARGET_SPELLINGS.items()} | {"fp16": "f16", "int64": "i64"}
"""Other spellings of type suffixes."""


class Style(Enum):
    """The spelling of a switch in canonical text."""

    DECIMAL = "name=3"
    HEX = "name=0x3"
    BINARY = "name=0b11"
    NAMED = "name=word"
    WORD = "word"
    """The value itself, such as `rhne`."""
    FLAG = "name"
    """The name alone means 1."""


class Show(Enum):
    """The condition on which a switch is written in canonical text."""

    ALWAYS = "always"
    CHANGED = "if not the default"
    NEVER = "never"
    """The operands already state the switch."""


_MOST_LISTED = 8
"""Maximum number of values that an error lists one by one."""


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch of a form.

    `numbers` are the legal numbers, or `words` the legal words (value, spelling); a default of None makes the
    switch required. `aliases` are bare words of the old spelling, `keys` synonyms left of the equals sign.
    `rounding` names the list of the dialect that limits the words. `only_if` is the switch and value that
    this one requires. `random` are the values for which the instruction draws random numbers. `leading`
    also accepts a bare number before the operands.
    """

    name: str
    style: Style
    default: Value | None
    show: Show = Show.CHANGED
    numbers: tuple[int, ...] = (0, 1)
    words: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, Value], ...] = ()
    keys: tuple[str, ...] = ()
    rounding: str | None = None
    needs: Feature | None = None
    only_if: tuple[str, Value] | None = None
    random: tuple[Value, ...] = ()
    leading: bool = False

    def bare(self) -> dict[str, Value]:
        """Return the bare words that set this switch, in lower case."""
        values: dict[str, Value] = dict(self.aliases)
        if self.style is Style.FLAG:
            values[self.name] = 1
        for value, spelling in self.words:
            values[spelling.lower()] = value
        return values

    def named(self) -> dict[str, Value]:
        """Return the legal words after the equals sign, in lower case.

        They include format names such as `i8`; as bare words these would be registers.
        """
        return {value.lower(): value for value, _ in self.words} | self.bare()

    def choices(self, dialect: Dialect) -> str:
        """Return the spelling of the switch with its values in a generation: `lane_sel=0|1|2|3`."""
        if self.style is Style.FLAG:
            return self.name
        if not self.words:
            first, *_, last = (self.numbers[0], *self.numbers)
            dense = len(self.numbers) > _MOST_LISTED and last - first == len(self.numbers) - 1
            return f"{self.name}=" + (f"{first}..{last}" if dense else "|".join(map(str, self.numbers)))
        legal = dialect.roundings[self.rounding] if self.rounding is not None else tuple(dict(self.words))
        words = "|".join(spelling for value, spelling in self.words if value in legal)
        return f"{self.name}={words}" if self.style is Style.NAMED else words

    def print(self, value: Value) -> str:
        """Write the switch set to a value."""
        if self.style is Style.FLAG:
            return self.name if value == 1 else f"{self.name}={value}"
        if self.style is Style.HEX:
            return f"{self.name}={value:#x}"
        if self.style is Style.BINARY:
            return f"{self.name}={value:#b}"
        if self.style is Style.DECIMAL:
            return f"{self.name}={value}"
        spelling = dict(self.words)[str(value)]
        return f"{self.name}={spelling}" if self.style is Style.NAMED else spelling


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One operand position.

    `accepts` lists register files (`V`), names of special registers (`LFSR`), `imm`, `mask`, `label`, `compare`, or
    only `@role` for the dialect's register of a role, which `dialect_role` names. `decimal` prints an immediate as a
    signed decimal. `by_first` also accepts the first V register of a pair or quad; the text then names the pair, and
    must state properties that operands otherwise imply.
    """

    role: str
    accepts: tuple[str, ...]
    limit: int | None = None
    decimal: bool = False
    dialect_role: str | None = None
    by_first: bool = False


class MemoryOperation(Enum):
    """The operation of an instruction on memory: a load, a store or the computation of an address."""

    SCALAR_LOAD = "ld_l"
    SCALAR_STORE = "st_l"
    VECTOR_LOAD = "ld_l_v"
    VECTOR_STORE = "st_l_v"
    ADDRESS = "gen_addr"
    ELEMENT_LOAD = "ld_g"
    ELEMENT_STORE = "st_g"
    TENSOR_LOAD = "ld_tnsr"
    TENSOR_STORE = "st_tnsr"
    CACHE = "cache"
    """A cache flush or invalidation, without an access."""


LOADS = frozenset(
    {
        MemoryOperation.SCALAR_LOAD,
        MemoryOperation.VECTOR_LOAD,
        MemoryOperation.ELEMENT_LOAD,
        MemoryOperation.TENSOR_LOAD,
    }
)
"""The operations that load a result from memory."""
STORES = frozenset(
    {
        MemoryOperation.SCALAR_STORE,
        MemoryOperation.VECTOR_STORE,
        MemoryOperation.ELEMENT_STORE,
        MemoryOperation.TENSOR_STORE,
    }
)
"""The operations that write to memory."""
LOCAL = frozenset(
    {
        MemoryOperation.SCALAR_LOAD,
        MemoryOperation.SCALAR_STORE,
        MemoryOperation.VECTOR_LOAD,
        MemoryOperation.VECTOR_STORE,
    }
)
"""Accesses of scalar and vector local memory; with a switch, also of the configuration space."""
LOCAL_VECTORS = frozenset({MemoryOperation.VECTOR_LOAD, MemoryOperation.VECTOR_STORE})
"""Accesses of vector local memory."""
TENSORS = frozenset({MemoryOperation.TENSOR_LOAD, MemoryOperation.TENSOR_STORE})
"""Accesses of tensors by coordinates."""


class Half(Enum):
    """The half of a vector register that an access moves."""

    LOW = "low"
    HIGH = "high"


class Family(Enum):
    """Instructions of several mnemonics that rules treat alike."""

    CONVERSION = "convert and its integer forms"
    ROUNDING = "nearbyint"
    COMPARISON = "cmp_*"
    SELECTION = "sel_*"
    PAIR_SELECTION = "sel2_*"
    """Selections into a pair of registers."""
    LANE_MOVE = "pack, unpack, mov_dg, mov_g"


class Predication(Enum):
    """The predicates that an instruction takes."""

    NONE = "none"
    SCALAR = "SP"
    VECTOR = "SP or VP"


@dataclass(frozen=True, slots=True)
class Form:
    """One row of the instruction table.

    `slots` are positions in the bundle (0 LOAD, 1 SPU, 2 VPU, 3 STORE). `types` are the legal type suffixes (empty:
    none; with `drops_type` any is accepted and dropped). `implied` are switches that the form's operands
    set. `vector_predicate` is the feature that adds VP predicates. `memory` is its kind of access (None: no memory
    access), `half` its half of a vector (None: all), `family` its family. `accumulator` is the role in which it
    reads the old value of its destination as a separate operand (None: it does not); the stage tables list that
    operand, the text does not repeat the register.
    """

    mnemonic: str
    slots: tuple[int, ...]
    operands: tuple[OperandSpec, ...]
    switches: tuple[Switch, ...] = ()
    types: tuple[str, ...] = ()
    drops_type: bool = False
    predication: Predication = Predication.SCALAR
    vector_predicate: Feature | None = None
    needs: tuple[Feature, ...] = ()
    lacks: tuple[Feature, ...] = ()
    implied: tuple[tuple[str, Value], ...] = ()
    memory: MemoryOperation | None = None
    half: Half | None = None
    family: Family | None = None
    accumulator: str | None = None

    def pattern(self) -> str:
        """Return the operands of this form, for messages: `convert V|D|A, V|D|A`."""
        operands = ", ".join("|".join(spec.accepts) for spec in self.operands)
        return f"{self.mnemonic}{'.TYPE' if self.types else ''} {operands}".rstrip()


_BY_DIALECT = "@"
_ROLES = {letter: f"src_{letter}" for letter in "abcd"}
_SLOTS = ("LOAD", "SPU", "VPU", "STORE")
_GROUPS = {"data": TYPES[:-2], "floats": TYPES[:5], "integers": TYPES[5:-2]}
"""Types that rows name together: `data` are those that fill vector lanes."""
_OPERAND = re.compile(r"(\w+):([^<#*]+)(?:<=(\d+))?(#?)(\*?)")
_BASES = {operation.value: operation for operation in MemoryOperation}
_HALVES = {f"_{half.value}": half for half in Half}


def form_of(mnemonic: str, row: str, switches: Mapping[str, Switch]) -> Form:
    """Read a row of the instruction table.

    A row consists of words, those of one kind in assembly order: slots (`LOAD`), operands (`a:V|S|imm` is a
    role and its accepted kinds, a to d mean src_a to src_d; `<=15` is the largest immediate, `#` a signed decimal,
    `*` a group named by its first register), types (`.f32,bf16`, `.floats`), features that are needed and lacked
    (`+prefetch`, `-prefetch`), implied switches (`partial=1`), the role of an accumulator (`+=src_c`), switches
    (`andn?inverted_and` is a flag with its feature, `acc_fp32!` one that the text must state; those in `switches` have
    their own descriptions). `untyped` drops any type; `vp` allows vector predicates outside the VPU, with a feature
    (`vp?masked_store`), `unpredicated` allows none.
    """
    words = row.split()
    listed: dict[str, list[Any]] = {name: [] for name in ("slots", "operands", "types", "needs", "lacks", "implied")}
    chosen: list[Switch] = []
    facts: dict[str, Any] = {"predication": Predication.VECTOR if "VPU" in words else Predication.SCALAR}
    for word in words:
        name, _, rest = word.partition("=")
        if ":" in word:
            listed["operands"].append(_operand(word))
        elif word in _SLOTS:
            listed["slots"].append(_SLOTS.index(word))
        elif word.startswith("."):
            listed["types"] += [kind for part in word[1:].split(",") for kind in _GROUPS.get(part, (part,))]
        elif word.startswith("+="):
            facts["accumulator"] = rest
        elif word.startswith(("+", "-")):
            listed["needs" if word[0] == "+" else "lacks"].append(Feature(word[1:]))
        elif rest:
            listed["implied"].append((name, int(rest)))
        elif word in ("vp", "unpredicated"):
            facts["predication"] = Predication.VECTOR if word == "vp" else Predication.NONE
        elif word.startswith("vp?"):
            facts["vector_predicate"] = Feature(word.removeprefix("vp?"))
        elif word == "untyped":
            facts["drops_type"] = True
        else:
            chosen.append(switches.get(word) or _flag_of(word))
    half = next((half for ending, half in _HALVES.items() if mnemonic.endswith(ending)), None)
    base = mnemonic if half is None else mnemonic.removesuffix(f"_{half.value}")
    memory = _BASES.get("cache" if mnemonic.startswith("cache_") else base)
    facts |= {name: tuple(values) for name, values in listed.items()}
    return Form(mnemonic, switches=tuple(chosen), memory=memory, half=half, family=_family(mnemonic), **facts)


@lru_cache(maxsize=256)
def _operand(word: str) -> OperandSpec:
    match = _OPERAND.fullmatch(word)
    assert match is not None
    role, accepts, limit, decimal, by_first = match.groups()
    words = tuple(accepts.split("|"))
    named = next((word.removeprefix(_BY_DIALECT) for word in words if word.startswith(_BY_DIALECT)), None)
    largest = None if limit is None else int(limit)
    return OperandSpec(_ROLES.get(role, role), words, largest, bool(decimal), named, bool(by_first))


@lru_cache(maxsize=128)
def _flag_of(word: str) -> Switch:
    """Return the flag of a row's word without a description in the table of switches."""
    if word.endswith("!"):
        return Switch(word[:-1], Style.FLAG, None, numbers=(1,))
    name, _, feature = word.partition("?")
    return flag(name, Feature(feature) if feature else None)


@lru_cache(maxsize=128)
def _family(mnemonic: str) -> Family | None:
    return next((family for start, family in _FAMILIES if mnemonic.startswith(start)), None)


_FAMILIES = (
    *((start, Family.LANE_MOVE) for start in ("pack", "unpack", "mov_dg", "mov_g")),
    ("convert", Family.CONVERSION),
    ("nearbyint", Family.ROUNDING),
    ("cmp_", Family.COMPARISON),
    ("sel_", Family.SELECTION),
    ("sel2_", Family.PAIR_SELECTION),
)


SELECTORS = ("mask", "section", "dimension", "zp", "steps")
"""Roles of leading operands that no comma follows."""


def flag(name: str, needs: Feature | None = None, *, aliases: tuple[str, ...] = (), default: int = 0) -> Switch:
    """Return a switch whose presence is its value."""
    return Switch(name, Style.FLAG, default, aliases=tuple((alias, 1) for alias in aliases), needs=needs)


def always(switch: Switch) -> Switch:
    """Return the switch, written even at its default."""
    return replace(switch, show=Show.ALWAYS)
