"""The language TPC-C: types, names of intrinsics and switches."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from typing import ClassVar

from castsim.isa.dataclass import dataclass
from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.instructions import forms_of
from castsim.targets.description import Status
from castsim.targets.tpc_compiler import CsvTable, Number, csv_rows

# The types of TPC-C: scalars, vectors of each generation, predicates, coordinates, aggregates, pointers, arrays.
#
# Source: the vendor's clang (Sema), by the facts page `docs/reference/tpc.md`; sizes are those of the registers.

VECTOR_BITS = 2048
"""Bits of a V register."""
GENERATIONS = ("goya", "gaudi", "gaudib", "greco", "gaudi2")
"""From the oldest to the newest."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in an S register, or a truth value in an SP register (`bool`)."""

    name: str

    def __str__(self) -> str:
        return _SCALAR_NAMES[self.name]

    @property
    def bits(self) -> int:
        """Number of bits of a value; a truth value has one."""
        return 1 if self.name == "bool" else FORMATS[self.name].bits

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return "f" in self.name

    @property
    def signed(self) -> bool:
        """Whether it is a signed integer."""
        return self.name.startswith("i")


@dataclass(frozen=True, slots=True)
class Vector:
    """A V register of elements."""

    element: Scalar

    def __str__(self) -> str:
        return _VECTOR_NAMES[self.element.name]

    @property
    def lanes(self) -> int:
        """Number of elements that it holds."""
        return VECTOR_BITS // self.element.bits


@dataclass(frozen=True, slots=True)
class Group:
    """An aggregate of two or four vectors with members v1 .. v4 (registers D and A), or of two numbers (Z)."""

    members: tuple[Vector | Scalar, ...]

    def __str__(self) -> str:
        first = self.members[0]
        if isinstance(first, Scalar):
            return f"{_WIDTHS[first.name]}_pair_t"
        if len(set(self.members)) > 1:
            return "_".join(map(str, self.members)) + "_pair_t"
        return f"{_STEMS[first.element.name]}{first.lanes * len(self.members)}"


@dataclass(frozen=True, slots=True)
class Mask:
    """A VP register as a predicate with a number of lanes."""

    lanes: int

    def __str__(self) -> str:
        return f"bool{self.lanes}"


@dataclass(frozen=True, slots=True)
class Index:
    """Five coordinates in an I register."""

    def __str__(self) -> str:
        return "int5"


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor: a number that is known at compile time."""

    def __str__(self) -> str:
        return "tensor"


@dataclass(frozen=True, slots=True)
class Void:
    """No value."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class Pointer:
    """An address: of global memory (an AD register) or of local memory (an S register)."""

    to: CType
    space: str

    def __str__(self) -> str:
        words = {"global": " __global__", "local": " __local__"}
        return f"{self.to}{words.get(self.space, '')} *"


@dataclass(frozen=True, slots=True)
class Array:
    """A number of values of one type."""

    of: CType
    count: int

    def __str__(self) -> str:
        return f"{self.of}[{self.count}]"


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure type of the kernel: names and types of its members, each of which is a separate variable."""

    name: str
    members: tuple[tuple[str, CType], ...]

    def __str__(self) -> str:
        return self.name


CType = Scalar | Vector | Group | Mask | Index | TensorType | Void | Pointer | Array | Struct

VOID, INDEX, TENSOR = Void(), Index(), TensorType()
BOOL, INT, UNSIGNED, FLOAT = Scalar("bool"), Scalar("i32"), Scalar("u32"), Scalar("f32")

_SCALAR_NAMES = {
    "i32": "int", "u32": "unsigned int", "i16": "short", "u16": "unsigned short", "i8": "char", "u8": "unsigned char",
    "f32": "float", "bf16": "bf16", "f16": "half", "f8_143": "minifloat", "f8_152": "minihalf", "bool": "bool",
    "i4": "int4", "u4": "uint4",
}  # fmt: skip
_STEMS = {
    "f32": "float", "i32": "int", "u32": "uint", "i16": "short", "u16": "ushort", "i8": "char", "u8": "uchar",
    "bf16": "bfloat", "f16": "half", "f8_143": "minifloat", "f8_152": "minihalf", "i4": "nibble", "u4": "unibble",
}  # fmt: skip
_VECTOR_NAMES = {name: f"{stem}{VECTOR_BITS // FORMATS[name].bits}" for name, stem in _STEMS.items()}

SCALARS = {
    "int": "i32", "long": "i32", "short": "i16", "char": "i8", "float": "f32", "bool": "bool", "_Bool": "bool",
    "int32_t": "i32", "uint32_t": "u32", "int16_t": "i16", "uint16_t": "u16", "int8_t": "i8", "uint8_t": "u8",
    "bf16": "bf16", "bfloat": "bf16", "half": "f16", "minifloat": "f8_143", "minihalf": "f8_152", "f8": "f8_143",
    "h8": "f8_152", "uint": "u32", "ushort": "u16", "uchar": "u8", "size_t": "u32",
}  # fmt: skip
"""Names of scalar types that are one word."""
SHORT = {
    "f32": "f32", "bf16": "bf16", "f16": "f16", "f8": "f8_143", "h8": "f8_152", "i32": "i32", "u32": "u32",
    "i16": "i16", "u16": "u16", "i8": "i8", "u8": "u8", "i4": "i4", "u4": "u4",
}  # fmt: skip
"""Types as they appear in names of intrinsics."""
FIRST = {"bf16": "gaudi", "f16": "gaudib", "f8_143": "gaudi2", "f8_152": "gaudi2", "i4": "greco", "u4": "greco"}
"""The first generation with an element; elements not listed are in all."""


def vector_of(name: str) -> Vector:
    """Return the vector type of an element, `f32`."""
    return Vector(Scalar(name))


def group_of(name: str, count: int) -> Vector | Group:
    """Return the type of a number of vectors of an element: one vector, a pair, a quad."""
    return vector_of(name) if count == 1 else Group((vector_of(name),) * count)


def _named() -> dict[str, CType]:
    types: dict[str, CType] = {"void": VOID, "int5": INDEX, "tensor": TENSOR}
    types |= {name: Scalar(element) for name, element in SCALARS.items()}
    types |= {f"bool{lanes}": Mask(lanes) for lanes in (64, 128, 256)}
    for element, name in _VECTOR_NAMES.items():
        vector = vector_of("i8" if element == "i4" else "u8" if element == "u4" else element)
        types[name] = vector
        for count in (2, 4):
            types[f"{_STEMS[element]}{VECTOR_BITS // FORMATS[element].bits * count}"] = Group((vector,) * count)
        types[f"{name}_pair_t"] = Group((vector,) * 2)
    return types


_NAMED = _named()
_WIDTHS = {"u32": "uint32_t", "u16": "uint16_t", "u8": "uint8_t"}
_NAMED |= {f"{name}_pair_t": Group((Scalar(element),) * 2) for element, name in _WIDTHS.items()}
_MIXED = re.compile(rf"({'|'.join(_VECTOR_NAMES.values())})_({'|'.join(_VECTOR_NAMES.values())})(_pair_t)?")


def type_named(name: str) -> CType | None:
    """Return the type of a name that is one word, None if it is not a type."""
    kind = _NAMED.get(name)
    if kind is None and (match := _MIXED.fullmatch(name)) is not None:
        first, second = _NAMED[match[1]], _NAMED[match[2]]
        assert isinstance(first, Vector) and isinstance(second, Vector)
        return Group((first, second))
    return kind


def type_names() -> list[str]:
    """Return the names of types that are one word."""
    return [*_NAMED]


def names_in(text: str) -> Iterator[str]:
    """Yield the names of types in a text that C itself lacks."""
    for word in sorted(set(re.findall(r"[A-Za-z_]\w*", text))):
        if word not in ("int", "long", "short", "char", "float", "_Bool", "void") and type_named(word) is not None:
            yield word


def first_generation(kind: CType) -> str:
    """Return the first generation with values of a type."""
    elements = {Vector: lambda k: [k.element], Group: lambda k: [getattr(m, "element", m) for m in k.members]}
    scalars = elements[type(kind)](kind) if type(kind) in elements else [kind] if isinstance(kind, Scalar) else []
    return max((FIRST.get(scalar.name, "goya") for scalar in scalars), key=GENERATIONS.index, default="goya")


def promoted(kind: Scalar) -> Scalar:
    """Return the type in which C computes with a scalar."""
    return INT if not kind.is_float and kind.bits < 32 else kind


def common(first: Scalar, second: Scalar) -> Scalar:
    """Return the type of the result of an operator on two scalars: C's usual conversions."""
    first, second = promoted(first), promoted(second)
    order = [INT, UNSIGNED, *(Scalar(n) for n in ("f8_152", "f8_143", "f16", "bf16", "f32"))]
    return max(first, second, key=order.index)


# The intrinsics by their rows, and the rule by which a name says unit, types and operation.
#
# `UNIT_TYPE_OPERATION[_S]`: unit v, s or i; type of the operation; its words; b or vb for a predicate of one bit or
# of lanes. `v_convert_A_to_B..` are conversions. Source: the rows of `targets/tpc_c_intrinsics.csv`.

_TYPES = "|".join(sorted((*SHORT, "f8_143", "f8_152", "i1"), key=len, reverse=True))
_NAME = re.compile(rf"([vsi])_({_TYPES})_(\w+)")
_SELECT = re.compile(rf"(sel2?_[a-z]+)_({_TYPES})")
_CONVERT = re.compile(rf"([vs])_convert_(u?int(?:8|16|32)|{_TYPES})_to_({_TYPES})(_all|_single|_x2|_x4)?(?:_(b|vb))?")
_PRODUCTS = ("product", "pairs", "accumulate", "add_product")
"""Shapes of calls whose words are switches of the instruction."""
_SUFFIXES = ("_partial", "_rmw", "_direct")


class Intrinsic(CsvTable):
    """An operation of the header: its instruction, the form of its call, words that it always has.

    `switches` are the constants that a call may pass, some of them for a kind of element only: `int:SAT`.
    """

    csv_file: ClassVar[str] = "tpc_c_intrinsics.csv"

    operation: str
    units: str
    mnemonic: str
    shape: str
    words: str
    switches: str
    generation: str
    status: Status
    source: str


@cache
def intrinsics() -> dict[str, Intrinsic]:
    """Return the rows by operation."""
    return {row.operation: row for row in csv_rows(Intrinsic)}


@dataclass(frozen=True, slots=True)
class IntrinsicCall:
    """A parsed name. `element` is the type of the operation, `result` that of a selection's lanes."""

    row: Intrinsic
    unit: str
    element: str
    result: str
    lanewise: bool
    extras: frozenset[str]


@dataclass(frozen=True, slots=True)
class IntrinsicConversion:
    """The parsed name of a conversion: `integer` is the source of CONVERT_INT, else empty; `form` as written."""

    unit: str
    source: str
    target: str
    form: str
    lanewise: bool
    integer: str


def _format(word: str) -> str:
    return SHORT.get(word, word)


def call_named(name: str) -> IntrinsicCall | IntrinsicConversion | None:
    """Return the parsed name of a function, None if the rule gives it no meaning."""
    parts = _CONVERT.fullmatch(name)
    if parts is not None:
        integer = parts[2] if "int" in parts[2] else ""
        source = integer.replace("uint", "u").replace("int", "i") if integer else _format(parts[2])
        return IntrinsicConversion(parts[1], source, _format(parts[3]), (parts[4] or "")[1:], parts[5] == "vb", integer)
    parts = _NAME.fullmatch(name)
    if parts is None:
        return None
    unit, element, rest = parts[1], _format(parts[2]), parts[3]
    lanewise = rest.endswith("_vb")
    rest = re.sub(r"_v?b$", "", rest)
    extras = set()
    if re.match(r"(?:ld|st)_tnsr", rest):
        while (suffix := next((candidate for candidate in _SUFFIXES if rest.endswith(candidate)), None)) is not None:
            extras.add(suffix[1:])
            rest = rest.removesuffix(suffix)
    result, select = element, _SELECT.fullmatch(rest)
    if select is not None:
        rest, element = select[1], _format(select[2])
    if unit == "v" and ((element == "i1" and rest.startswith("mov_")) or rest == "mov_i1"):
        rest = "mov"
    row = intrinsics().get(rest)
    if row is None or unit not in row.units or not _has_product(row, element):
        return None
    return IntrinsicCall(row, unit, element, result, lanewise, frozenset(extras))


def _has_product(row: Intrinsic, element: str) -> bool:
    """Whether the instruction has the words of a product for a type: i8 has no wider accumulator than its own."""
    if row.shape not in _PRODUCTS or not row.words:
        return True
    wide = "acc_fp32" if isinstance(FORMATS.get(element), FloatFormat) else "acc_i32"
    wanted = {wide if word == "acc_32" else word for word in row.words.split()}
    return any(
        element in form.types and wanted.issubset(switch.name for switch in form.switches)
        for form in forms_of(row.mnemonic)
    )


def near(name: str, names: list[str]) -> list[str]:
    """Return names similar to an unknown one."""
    parts = _NAME.fullmatch(name)
    if parts is not None:
        rest = re.sub(r"_v?b$", "", parts[3])
        element = _format(parts[2])
        options = [
            intrinsic for intrinsic, row in intrinsics().items() if parts[1] in row.units and _has_product(row, element)
        ]
        suffix = "_b" if parts[1] == "v" else ""
        return [
            f"{parts[1]}_{parts[2]}_{intrinsic}{suffix}" for intrinsic in difflib.get_close_matches(rest, options, 3)
        ]
    return difflib.get_close_matches(name, names, 4)


# The switches of intrinsics: constants of the vendor's header, and the words of instructions that they stand for.
#
# Source: `tpc-defs.h` of the vendor's compiler, by the facts page `docs/reference/tpc.md`.

SAT, NEG, NEG_ZP, CLIP_FP, LINEAR, LUT_POINTER = 1, 2, 1 << 6, 1 << 20, 1 << 24, 1 << 3
ROUNDING = ("rhne", "rz", "ru", "rd", "sr", "", "rhaz", "sr_rne")
"""Words of rounding modes by number; the mode of the register has none."""


class HeaderConstant(CsvTable):
    """A constant of the vendor's header: a bit or a field of switches, or the number of a table or an operation."""

    csv_file: ClassVar[str] = "tpc_c_constants.csv"

    name: str
    number: Number
    status: Status
    source: str


@cache
def constants() -> dict[str, int]:
    """Return the numbers of the header's constants by name."""
    return {row.name: row.number for row in csv_rows(HeaderConstant)}


MACROS = {
    "MkWr(l, u)": "(((l) << 12) | ((u) << 13))",
    "MkWrA(a, b, c, d)": "(((a) << 16) | ((b) << 18) | ((c) << 20) | ((d) << 22))",
    "VERSION2DEC(a, b, c)": "(((((a) * 100) + (b)) * 100) + (c))", "__TPC_DROP_VERSION": "VERSION2DEC(1, 16, 0)",
}  # fmt: skip
"""The macros of the header with their texts."""


def rounding(switches: int) -> str:
    """Return the word of the rounding mode, empty for that of the register."""
    return ROUNDING[switches >> 16 & 7]


def words(*named: tuple[bool | int, str]) -> list[str]:
    """Return the words whose condition is true."""
    return [word for holds, word in named if holds and word]


_PLAIN: dict[str, tuple[tuple[int, str], ...]] = {
    "add": ((2, "neg"),),
    "sub": ((2, "neg"),),
    "and": ((2, "andn"),),
    "mac": ((NEG, "neg"), (NEG_ZP, "neg_zp")),
    "madd": ((NEG, "neg"), (NEG_ZP, "neg_zp")),
    "mul": ((NEG, "neg"), (8, "keep_rs"), (16, "keep_rs_for_add")),
    "ash": ((1, "st"), (2, "rhu"), (8, "rhaz_rs")),
    "cmp_eq": ((1, "mask_eq_zero"),),
    "sel_eq": ((1, "mask_eq_zero"),),
    "extract_exp": ((1, "biased"),),
    "fclass": ((1, "limit"),),
    "form_fp_num": (
        (1 << 8, "exp_add_bias"), (2 << 8, "force_sign0"), (4 << 8, "force_sign1"), (8 << 8, "exp_is_num"),
        (16 << 8, "sign_lsb"),
    ),
}  # fmt: skip
"""Words by the bits that ask for them."""
_ON_INTEGERS = {"add": (1, "st"), "sub": (1, "st"), "mac": (1, "st"), "madd": (1, "st"), "mul": (4, "upper32")}


def words_of(mnemonic: str, element: str, switches: int) -> list[str]:
    """Return the words of an instruction for its switches, except those of conversions and accesses."""
    bit, word = _ON_INTEGERS.get(mnemonic, (0, ""))
    if "f" in element and word:
        word = "fp16_ftz_in" if mnemonic in ("mac", "madd") else ""
    parts = words((switches & bit, word)) + words(*((switches & flag, name) for flag, name in _PLAIN.get(mnemonic, ())))
    if mnemonic == "msac":
        parts = words((switches & 2, "rhu"), (True, "normalize_c" if switches & 4 else "normalize_ab"))
    elif mnemonic in ("popcnt", "find_first"):
        start = [] if mnemonic == "popcnt" else ["start_msb" if switches & 2 else "start_lsb"]
        parts = [f"set={switches & 1}", *start]
    elif mnemonic == "nearbyint":
        parts = words((True, rounding(switches)))
    elif mnemonic in ("pack", "unpack"):
        half = [f"group_half={switches >> 10 & 1}"] if mnemonic == "unpack" else []
        parts = [f"source_group={switches >> 8 & 1}", f"element_stride={4 if switches & 1 << 9 else 2}", *half]
    return parts
