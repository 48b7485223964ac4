"""Logical registers in a program: their types, and the operations on them, their forms, reading, checks and writing.

Source: docs/reference/micro.md sections 9.1 to 9.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, WarningKind
from castsim.isa.formats import FORMATS, IntFormat
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.micro_forms import ROWS
from castsim.isa.pto.micro_words import (
    LEGAL,
    Conversion,
    check_truncation,
    is_of_element,
    kind_of,
    short,
    undocumented_rounding,
)
from castsim.isa.pto.program import Operation, nodes
from castsim.isa.pto.statement_forms import bare_word, read_attributes, unknown_key
from castsim.isa.pto.statement_reader import NamedOperation, PtoReader, Use
from castsim.isa.pto.types import FieldText, ReadType, element_spelling, format_type, lane_bits, of_dialect, read_lanes
from castsim.isa.pto.value_types import (
    BLOCK_BITS,
    LOGICAL,
    DialectOperation,
    DialectType,
    PointerType,
    ScalarType,
    Type,
)
from castsim.languages.vmi.conversions import HELD, ConversionRoute, check_conversion, route

# The types of registers and masks.


@dataclass(frozen=True, slots=True)
class LogicalVectorType(DialectType):
    """`!pto.vmi.vreg<256xf32>`: any number of lanes; elements as in `VectorType`, and pairs of bf16 and hif8."""

    lanes: int
    element: str
    spelling: str = field(default="", compare=False, repr=False)
    """Spelling of the element type, as in a pointer type."""

    @property
    def text(self) -> str:
        """The type as in a program."""
        element = of_dialect(self.spelling) if self.spelling else element_spelling(self.element)
        return f"!pto.vmi.vreg<{self.lanes}x{element}>"


@dataclass(frozen=True, slots=True)
class LogicalMaskType(DialectType):
    """`!pto.vmi.mask<256xpred>`: one bit per lane; `granularity` is the text after the `x`."""

    lanes: int
    granularity: str = field(default="", compare=False, repr=False)

    @property
    def text(self) -> str:
        """The type as in a program."""
        return f"!pto.vmi.mask<{self.lanes}{f'x{self.granularity}' if self.granularity else ''}>"


_MASK = re.compile(r"(\d{1,9})(?:x(pred|b8|b16|b32))?")
MOST_LANES = 65536
"""Maximum number of lanes of a logical register: 256 KiB of bytes fill the buffer four times over."""


def _read_vector(
    fields: list[FieldText], read_element: Callable[[FieldText], str], spelling: Callable[[FieldText, str], str]
) -> LogicalVectorType:
    """Read the parameters of `!pto.vmi.vreg<256xf32>`.

    Raises:
        ReadError: the type is malformed, has an unknown element, or an implausible number of lanes.
    """
    examples = ("256xf32", "128xf16")
    lanes, element_field, element = read_lanes(
        fields, read_element, "a logical register", examples, ("i4", "f64", "e8m0")
    )
    _check_lanes(fields[0], lanes)
    return LogicalVectorType(lanes, element, spelling(element_field, element))


def _read_mask(fields: list[FieldText], *_: object) -> LogicalMaskType:
    """Read the parameter of `!pto.vmi.mask<256xpred>`.

    Raises:
        ReadError: the mask does not exist.
    """
    match = _MASK.fullmatch(fields[0].text)
    if len(fields) > 1 or match is None:
        raise fields[-1].error(f"'{fields[-1].text[:40]}' is not LANES or LANESxpred", ("256xpred", "256"))
    _check_lanes(fields[0], int(match.group(1)))
    return LogicalMaskType(int(match.group(1)), match.group(2) or "")


def _check_lanes(field: FieldText, lanes: int) -> None:
    if not 1 <= lanes <= MOST_LANES:
        raise field.error(f"{lanes} lanes", (f"1 to {MOST_LANES}",))


READERS: Mapping[str, ReadType] = {"pto.vmi.vreg": _read_vector, "pto.vmi.mask": _read_mask}
"""Readers of the parameters, by the name of the type."""

TYPES = tuple(f"!{name}" for name in READERS)


# How every operation is written: one row each.


@dataclass(frozen=True, slots=True)
class VmiRow:
    """An operation: its operands as a pattern of letters (V register, K mask, P pointer, S scalar), its result (V, K or
    none), the keys of its dictionary, the kind of its word in quotes, an example.

    `elements` are those of its registers (empty: any).
    """

    operands: str
    result: str
    example: str
    keys: tuple[str, ...] = ()
    word: str = ""
    elements: tuple[str, ...] = ()

    def fits(self, letters: str) -> bool:
        """Return whether operands of these letters are legal."""
        return re.fullmatch(self.operands, letters) is not None


def letter_of(kind: Type) -> str:
    """Return the letter of a type; `?` for a type that no operation takes."""
    match kind:
        case LogicalVectorType():
            return "V"
        case LogicalMaskType():
            return "K"
        case PointerType():
            return "P"
        case ScalarType():
            return "S"
    return "?"


def _same(names: str, operands: str, result: str, example: str, keys: tuple[str, ...] = (), word: str = "") -> dict[
    str, VmiRow
]:  # fmt: skip
    """Return rows of operations that support the elements of the instructions with the same name."""
    return {
        name: VmiRow(operands, result, example.replace("NAME", name), keys, word, ROWS[name].elements)
        for name in names.split()
    }


_V, _K, _P = "!pto.vmi.vreg<LxT>", "!pto.vmi.mask<Lxpred>", "!pto.ptr<T, ub>"
_CONVERT = VmiRow("VK?", "V", f'%r = pto.vmi.vcvt %a {{rounding = "R", saturate = "SAT"}} : {_V} -> !pto.vmi.vreg<LxU>',
               ("rounding", "saturate"))  # fmt: skip

LEGACY = ("extf", "truncf", "extsi", "extui", "trunci", "fptosi", "fptoui", "sitofp", "uitofp")
"""Older names of `vcvt`."""

SYNONYMOUS: Mapping[str, str] = {"load": "vload", "store": "vstore"}
"""Older names of other operations, with their current names (assumed: no text describes them)."""

VMI_ROWS: Mapping[str, VmiRow] = {
    "vload": VmiRow("PS{1,2}K?", "V", f"%r = pto.vmi.vload %p[%i] : {_P} -> {_V}", ("dist_mode", "group")),
    "vstore": VmiRow("VPS{1,2}K?", "", f"pto.vmi.vstore %v, %p[%i], %m : {_V}, {_P}, {_K}", ("dist_mode", "group")),
    "vgather": VmiRow("PS?VK?", "V",
                      f"%r = pto.vmi.vgather %p[%i], %n, %m : {_P}, !pto.vmi.vreg<Lxui32>, {_K} -> {_V}"),
    "vcvt": _CONVERT,
    **dict.fromkeys(LEGACY, _CONVERT),
    "vinterpret_cast": VmiRow("V", "V", f"%r = pto.vmi.vinterpret_cast %a : {_V} -> !pto.vmi.vreg<MxU>"),
    "create_mask": VmiRow("S", "K", f"%m = pto.vmi.create_mask %n : index -> {_K}"),
    "pset": VmiRow("", "K", f'%m = pto.vmi.pset "PAT_VL8" : {_K}', ("pattern",), "pattern"),
    "create_group_mask": VmiRow(
        "S", "K", f"%m = pto.vmi.create_group_mask %n {{num_groups = C, group_size = S}} : index -> {_K}",
        ("num_groups", "group_size"),
    ),
    "vbrc": VmiRow("S|V", "V", f"%r = pto.vmi.vbrc %x : T -> {_V}", ("group",)),
    "vci": VmiRow("S", "V", f"%r = pto.vmi.vci %x : T -> {_V}", ("order",), elements=ROWS["vci"].elements),
    **_same("vadd vsub vmul vdiv vmax vmin vand vor vxor vshl vshr", "VVK?", "V",
            f"%r = pto.vmi.NAME %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vaddrelu vsubrelu vprelu", "VVK?", "V", f"%r = pto.vmi.NAME %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vmula", "VVVK?", "V", f"%r = pto.vmi.NAME %c, %a, %b, %m : {_V}, {_V}, {_V}, {_K} -> {_V}"),
    **_same("vaxpy", "VVSK?", "V", f"%r = pto.vmi.NAME %a, %b, %x, %m : {_V}, {_V}, T, {_K} -> {_V}"),
    **_same("vtrc", "VK?", "V", f'%r = pto.vmi.NAME %a, %m, "F" : {_V}, {_K} -> {_V}', ("rounding",), "rounding"),
    **_same("vadds vmuls vmaxs vmins vshls vshrs vlrelu", "VSK?", "V",
            f"%r = pto.vmi.NAME %a, %x, %m : {_V}, T, {_K} -> {_V}"),
    **_same("vabs vneg vrelu vnot vexp vln vsqrt vrec vrsqrt", "VK?", "V",
            f"%r = pto.vmi.NAME %a, %m : {_V}, {_K} -> {_V}"),
    **_same("vcmp", "VVK?", "K", f'%k = pto.vmi.NAME %a, %b, %m, "lt" : {_V}, {_V}, {_K} -> {_K}', ("cmp_mode",),
            "cmp_mode"),
    **_same("vcmps", "VSK?", "K", f'%k = pto.vmi.NAME %a, %x, %m, "lt" : {_V}, T, {_K} -> {_K}', ("cmp_mode",),
            "cmp_mode"),
    "vsel": VmiRow("VVK|KVV|VKV", "V", f"%r = pto.vmi.vsel %a, %b, %m : {_V}, {_V}, {_K} -> {_V}"),
    **_same("vcadd vcmax vcmin", "VK?", "V",
            f"%r = pto.vmi.NAME %a, %m {{group = C}} : {_V}, {_K} -> !pto.vmi.vreg<CxT>", ("group", "reassoc")),
    **{
        name: VmiRow("KKK?", "K", f"%k = pto.vmi.{name} %a, %b : {_K}, {_K} -> {_K}")
        for name in ("pand", "por", "pxor")
    },
    "pnot": VmiRow("KK?", "K", f"%k = pto.vmi.pnot %a : {_K} -> {_K}"),
}  # fmt: skip
"""Every operation by its name."""

SYNONYMS: Mapping[str, str] = {"num_groups": "group", "cmp": "cmp_mode"}
"""Synonyms of keys, for operations that have the key."""

COUNTS = ("group", "num_groups", "group_size")
"""Keys whose values are numbers."""
DISTRIBUTIONS = ("continuous", "unpack", "brc")

NAMES = frozenset(f"pto.{LOGICAL}.{name}" for name in (*VMI_ROWS, *SYNONYMOUS))
"""Every operation by its name in the text."""


def logical_operations(body: Sequence[Operation]) -> Iterator[DialectOperation]:
    """Yield the operations on logical registers of a region and of the regions in it."""
    yield from (node for node in nodes(body) if isinstance(node, DialectOperation) and node.dialect == LOGICAL)


# The checks of types and words.

_FLOATS, _INTEGERS = "floats", "integers"
_LEGACY_KINDS = {
    **dict.fromkeys(("extf", "truncf"), (_FLOATS, _FLOATS)),
    **dict.fromkeys(("extsi", "extui", "trunci"), (_INTEGERS, _INTEGERS)),
    **dict.fromkeys(("fptosi", "fptoui"), (_FLOATS, _INTEGERS)),
    **dict.fromkeys(("sitofp", "uitofp"), (_INTEGERS, _FLOATS)),
}
_SIGNS = {"extsi": ("i", "i"), "extui": ("u", "u"), "sitofp": ("i", ""), "uitofp": ("u", ""), "fptosi": ("", "i"),
          "fptoui": ("", "u")}  # fmt: skip
"""The signs of source and destination integers under older names, independent of their types."""


def check(reader: PtoReader, node: DialectOperation, where: Mapping[str, int]) -> None:
    """Reject types and words that the operation does not support; `where` are the tokens of words.

    Raises:
        IllegalError: there is one; the error has its position and the legal alternatives.
    """
    elements = VMI_ROWS[node.mnemonic].elements
    first = next((kind for kind in (*node.operand_types, *node.result_types) if _is_vector(kind)), None)
    if elements and isinstance(first, LogicalVectorType) and first.element not in elements:
        _refuse(node, f"does not take elements of {first.element}", elements)
    rule = _RULES.get(node.mnemonic, _check_lanewise)
    try:
        rule(node)
    except IllegalError as error:
        wrong = next(
            (where[key] for key in where if f"{key} = " in str(error) or f"takes no {key}" in str(error)), None
        )
        raise error.at(node.span if wrong is None else reader.span(wrong)) from None
    if node.mnemonic == "vcvt" or node.mnemonic in LEGACY:
        _note_rounding(reader, node)


def vectors(kinds: tuple[Type, ...]) -> list[LogicalVectorType]:
    """Return the logical registers among types."""
    return [kind for kind in kinds if isinstance(kind, LogicalVectorType)]


def group_of(node: DialectOperation) -> int:
    """Return the number of groups of a reduction or broadcast: 1 if the text states none."""
    return node.count("group") or 1


def _is_vector(kind: Type) -> bool:
    return isinstance(kind, LogicalVectorType)


def _refuse(node: DialectOperation, text: str, legal: tuple[str, ...] = ()) -> NoReturn:
    raise IllegalError(f"pto.{node.name} {text}", span=node.span, legal=legal)


def _check_masks(node: DialectOperation, lanes: int) -> None:
    for kind in (*node.operand_types, *node.result_types):
        if isinstance(kind, LogicalMaskType) and kind.lanes != lanes:
            _refuse(node, f"has {lanes} lanes and a mask of {kind.lanes}", (f"!pto.vmi.mask<{lanes}xpred>",))


def _check_scalar(node: DialectOperation, kind: ScalarType, element: str) -> None:
    if not is_of_element(kind.name, element):
        _refuse(node, f"has a scalar of {kind.name} beside elements of {element}", (element,))


def _check_lanewise(node: DialectOperation) -> None:
    """Reject registers of different types, masks of other lanes, scalars of another element."""
    kinds = vectors((*node.operand_types, *node.result_types))
    shifts = node.mnemonic in ("vshl", "vshr")
    for number, kind in enumerate(kinds):
        amounts = shifts and number == 1 and kind.element[1:] == kinds[0].element[1:] and kind.lanes == kinds[0].lanes
        if kind != kinds[0] and not amounts:
            given = f"registers of one operation must have one type: {format_type(kinds[0])} and {format_type(kind)}"
            _refuse(node, f"takes equal types; {given}", (format_type(kinds[0]),))
    masks = [kind for kind in node.operand_types if isinstance(kind, LogicalMaskType)]
    _check_masks(node, kinds[0].lanes if kinds else masks[0].lanes)
    for scalar in node.operand_types:
        if isinstance(scalar, ScalarType) and node.mnemonic not in ("vshls", "vshrs"):
            _check_scalar(node, scalar, kinds[0].element)
        elif isinstance(scalar, ScalarType) and not kind_of("N", scalar):
            _refuse(node, f"shifts by an integer, not {scalar.name}", ("i16",))


def _check_truncation(node: DialectOperation) -> None:
    """Reject a rounding to whole numbers that no instruction has."""
    _check_lanewise(node)
    letter = node.word("rounding")
    assert letter is not None
    check_truncation(vectors(node.operand_types)[0].element, letter)


def conversion_formats(node: DialectOperation) -> tuple[str, str]:
    """Return source and destination of a conversion as implied by its name: extui reads integers as unsigned."""
    source, result = (kind.element for kind in vectors((*node.operand_types[:1], *node.result_types)))
    first, other = _SIGNS.get(node.mnemonic, ("", ""))
    return (first + source[1:] if first else source), (other + result[1:] if other else result)


def conversion_words(node: DialectOperation) -> dict[str, str]:
    """Return the attributes of a conversion; its older names saturate if the text omits the attribute."""
    words = dict(node.attributes)
    if node.mnemonic in LEGACY and "saturate" not in words and route(*conversion_formats(node)).saturations:
        words["saturate"] = "SAT"
    return words


def route_of(node: DialectOperation) -> ConversionRoute:
    """Return the steps of a conversion.

    Raises:
        IllegalError: the conversion does not exist, or its attributes are not those of the pair.
    """
    source, result = conversion_formats(node)
    return check_conversion(source, result, conversion_words(node))


def _check_conversion(node: DialectOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    if source.lanes != result.lanes:
        _refuse(node, f"cannot change the number of lanes from {source.lanes} to {result.lanes}", (f"{source.lanes}",))
    _check_masks(node, source.lanes)
    for kind, wanted in zip((source, result), _LEGACY_KINDS.get(node.mnemonic, ()), strict=False):
        integer = isinstance(FORMATS.get(kind.element), IntFormat)
        if integer != (wanted == _INTEGERS):
            _refuse(node, f"needs {wanted}, not {kind.element}", ("vcvt",))
    route_of(node)


def _note_rounding(reader: PtoReader, node: DialectOperation) -> None:
    """Warn of a rounding without effect, and of one without documented meaning for the pair."""
    written = node.word("rounding")
    if written is None:
        return
    path = route_of(node)
    if not path.roundings:
        source, result = conversion_formats(node)
        text = f"vcvt {source} -> {result} is exact: rounding = {written} has no effect"
        reader.warn(WarningKind.ROUNDING, text, node.span)
        return
    last = next(step for step in reversed(path.steps) if step.roundings)
    reason = undocumented_rounding(Conversion(last.src, last.dst, (), (), ()), written)
    if reason:
        reader.warn(WarningKind.ROUNDING, f"vcvt {last.src} -> {last.dst}: {reason}", node.span)


def _check_reinterpretation(node: DialectOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    bits = source.lanes * lane_bits(source.element)
    if bits != result.lanes * lane_bits(result.element):
        wanted = f"!pto.vmi.vreg<{bits // lane_bits(result.element)}x{result.spelling or result.element}>"
        _refuse(node, f"keeps its {bits} bits; {format_type(result)} has others", (wanted,))


def _check_mask(node: DialectOperation) -> None:
    count, mask = node.operand_types[0], node.result_types[0]
    assert isinstance(mask, LogicalMaskType)
    if not kind_of("I", count):
        _refuse(node, f"counts lanes with an index, not with {format_type(count)}", ("index",))
    if node.mnemonic == "create_mask":
        return
    groups, size = node.count("num_groups"), node.count("group_size")
    if groups is None or size is None:
        _refuse(node, "needs num_groups and group_size", ("{num_groups = C, group_size = S}",))
    if groups * size != mask.lanes:
        _refuse(node, f"makes {groups} groups of {size} lanes, the mask has {mask.lanes}", (f"{groups * size}xpred",))


def leading_lanes(node: DialectOperation, lanes: int) -> int:
    """Return how many lanes, from the first on, a pattern of a logical mask selects."""
    pattern = node.word("pattern") or ""
    return int(pattern[6:]) if "VL" in pattern else lanes * (pattern == "PAT_ALL")


def _check_pattern(node: DialectOperation) -> None:
    """Reject patterns that no text defines as counting the lanes of the mask or of a register."""
    pattern = node.word("pattern") or ""
    if pattern not in ("PAT_ALL", "PAT_ALLF") and "VL" not in pattern:
        _refuse(node, f"with {pattern} is not modelled: no source documents whether it counts the lanes of the mask "
                "or of a register", ("PAT_ALL", "PAT_ALLF", "PAT_VL8"))  # fmt: skip


def _check_broadcast(node: DialectOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    assert isinstance(result, LogicalVectorType)
    if isinstance(source, ScalarType):
        if "group" in dict(node.attributes):
            _refuse(node, "of a scalar has no groups", ("no attributes",))
        _check_scalar(node, source, result.element)
        return
    assert isinstance(source, LogicalVectorType)
    groups = group_of(node)
    _check_groups(node, result, source, groups)


def _check_groups(node: DialectOperation, whole: LogicalVectorType, slots: LogicalVectorType, groups: int) -> None:
    """Reject groups that do not divide the lanes evenly, or have more than one slot each."""
    if whole.lanes % groups:
        _refuse(node, f"cannot share {whole.lanes} lanes among group = {groups}", ("a divisor of the lanes",))
    if slots.lanes != groups:
        _refuse(node, f"has group = {groups} and {slots.lanes} slots for them", (f"group = {slots.lanes}",))
    if slots.element != whole.element:
        _refuse(node, f"cannot change the element type from {whole.element} to {slots.element}", (whole.element,))


def _check_reduction(node: DialectOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    _check_groups(node, source, result, group_of(node))
    _check_masks(node, source.lanes)


def _check_access(node: DialectOperation) -> None:
    (kind,) = vectors((*node.operand_types, *node.result_types))
    pointer = next(operand_type for operand_type in node.operand_types if isinstance(operand_type, PointerType))
    _check_pointer(node, pointer)
    _check_masks(node, kind.lanes)
    scalars = [operand_type for operand_type in node.operand_types if isinstance(operand_type, ScalarType)]
    groups, mode = node.count("group"), node.word("dist_mode") or "continuous"
    if not all(kind_of("I", scalar) for scalar in scalars):
        _refuse(node, "counts elements with integers", ("index",))
    if groups is not None and kind.lanes % groups:
        _refuse(node, f"cannot share {kind.lanes} lanes among group = {groups}", ("a divisor of the lanes",))
    if groups is None and len(scalars) > 1:
        if kind.lanes * lane_bits(kind.element) % BLOCK_BITS or scalars[1].name not in ("i16", "u16"):
            legal = ("{group = C} for rows of elements", "a stride of i16 for blocks of 32 bytes")
            _refuse(node, f"of {format_type(kind)} has the stride {scalars[1].name} but no group", legal)
        if mode != "continuous":
            _refuse(node, f"of blocks has no dist_mode = {mode}", ("continuous",))
    if node.mnemonic == "vstore" and mode != "continuous":
        _refuse(node, f"has no dist_mode = {mode}", ("continuous",))
    _check_widths(node, kind, pointer, mode)


def _check_pointer(node: DialectOperation, pointer: PointerType) -> None:
    if pointer.space != "ub":
        _refuse(node, f"takes a UB pointer, not {format_type(pointer)}", ("!pto.ptr<T, ub>",))


def _check_widths(node: DialectOperation, kind: LogicalVectorType, pointer: PointerType, mode: str) -> None:
    """Reject elements of memory and register with different widths, except for unpacking loads and pairs.

    A store of wider integers writes their low bits.
    """
    near, far = lane_bits(kind.element), lane_bits(pointer.element)
    storage = HELD.get(kind.element)
    if near == far or (storage is not None and storage == pointer.element):
        return
    if mode == "unpack" and near in (2 * far, 4 * far) and near <= 32 and far < 32:
        return
    integers = {kind.element[0], pointer.element[0]} <= {"i", "u"}
    if node.mnemonic == "vstore" and near in (2 * far, 4 * far) and near <= 32 and integers:
        return
    legal = (f"a pointer to elements of {near} bits", 'dist_mode = "unpack"') if far < near else ()
    _refuse(node, f"of elements of {near} bits has a pointer to elements of {far}", legal)


def _check_gather(node: DialectOperation) -> None:
    index, result = vectors((*node.operand_types, *node.result_types))
    pointer = next(operand_type for operand_type in node.operand_types if isinstance(operand_type, PointerType))
    _check_pointer(node, pointer)
    if index.lanes != result.lanes or index.element not in ("u16", "i16", "u32", "i32"):
        _refuse(node, f"takes {result.lanes} indices of 16 or 32 bits", (f"{result.lanes}xui32",))
    _check_masks(node, result.lanes)
    if lane_bits(pointer.element) != lane_bits(result.element) or lane_bits(result.element) == 64:
        _refuse(node, f"of {result.element} has a pointer to {pointer.element}", (result.element,))


_RULES: Mapping[str, Callable[[DialectOperation], None]] = {
    **dict.fromkeys(("vcvt", *LEGACY), _check_conversion),
    "vtrc": _check_truncation,
    "vinterpret_cast": _check_reinterpretation,
    "pset": _check_pattern,
    **dict.fromkeys(("create_mask", "create_group_mask"), _check_mask),
    "vbrc": _check_broadcast,
    **dict.fromkeys(("vcadd", "vcmax", "vcmin"), _check_reduction),
    **dict.fromkeys(("vload", "vstore"), _check_access),
    "vgather": _check_gather,
}


# Reading operations on logical registers: one reader for all (docs/reference/micro.md section 9.2).

_NUMBER = re.compile(r"(\d{1,9})(?: : \w+)?")
_WORDS = {
    "rounding": LEGAL["rnd"], "saturate": LEGAL["sat"], "cmp_mode": LEGAL["cmp"], "order": LEGAL["order"],
    "dist_mode": DISTRIBUTIONS, "pattern": LEGAL["pattern"],
}  # fmt: skip
_KINDS = {"rounding": "rnd", "saturate": "sat", "cmp_mode": "cmp"}
_NAMES = {"V": "a logical register", "K": "a logical mask", "P": "a pointer", "S": "a scalar"}


@dataclass(slots=True)
class _VmiText:
    """A written operation: uses of values, the index of the one in brackets, words with their tokens, types."""

    uses: list[Use] = field(default_factory=list)
    offset_at: int | None = None
    words: dict[str, tuple[str, int]] = field(default_factory=dict)
    types: list[tuple[Type, int]] = field(default_factory=list)
    results: list[tuple[Type, int]] = field(default_factory=list)


def read_operation(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read one operation on logical registers.

    Raises:
        ReadError: operands, words, types or results are illegal.
        IllegalError: it is well-formed, but the conversion, element or shape does not exist.
    """
    mnemonic = statement.operation.removeprefix(f"{LOGICAL}.")
    mnemonic = SYNONYMOUS.get(mnemonic, mnemonic)
    row = VMI_ROWS[mnemonic]
    text = _read_text(reader, statement, row)
    operands = _typed_operands(reader, statement, text)
    _check_operands(reader, statement, row, text, operands)
    results = tuple(kind for kind, _ in text.results)
    if "".join(map(letter_of, results)) != row.result:
        index = text.results[0][1] if text.results else statement.index
        wanted = _NAMES[row.result] if row.result else "nothing"
        raise reader.error(f"{statement.name} gives {wanted}", index, (row.example,))
    node = DialectOperation(
        mnemonic,
        tuple(name for name, *_ in text.uses),
        operands,
        statement.define(reader, results),
        results,
        tuple(sorted((key, word) for key, (word, _) in text.words.items())),
        text.offset_at,
        LOGICAL,
        span=statement.span,
    )
    check(reader, node, {key: index for key, (_, index) in text.words.items()})
    return node


def _read_text(reader: PtoReader, statement: NamedOperation, row: VmiRow) -> _VmiText:
    text = _VmiText()
    while reader.kinds[reader.position] in (TokenKind.VALUE, TokenKind.STRING, TokenKind.ATTRIBUTE):
        index = reader.position
        if reader.kinds[index] is TokenKind.VALUE:
            text.uses.append(reader.operand())
            if reader.take("["):
                text.offset_at = len(text.uses)
                text.uses.append(reader.operand())
                reader.expect("]")
        else:
            _word(reader, statement, row, text, row.word, reader.texts[index], index)
            reader.position += 1
        if not reader.take(","):
            break
    for key, attribute in read_attributes(reader).items():
        plain = SYNONYMS.get(key, key) if key not in row.keys else key
        if plain not in row.keys:
            unknown_key(reader, statement.name, key, attribute.key_index, row.keys, everything_up_to=8)
            continue
        _word(reader, statement, row, text, plain, attribute.text, attribute.value_index)
    if row.word and row.word not in text.words:
        raise reader.error(f"{statement.name} needs its {row.word}", statement.index, (row.example,))
    reader.expect(":")
    if reader.kinds[reader.position] in (TokenKind.TYPE, TokenKind.WORD):
        text.types = reader.types()
    if reader.take("->"):
        text.results = reader.types()
    elif not text.uses:
        text.types, text.results = [], text.types
    return text


def _word(
    reader: PtoReader, statement: NamedOperation, row: VmiRow, text: _VmiText, key: str, written: str, index: int
) -> None:  # fmt: skip
    """Store a word or number under its short name."""
    if not key:
        raise reader.error(f"{statement.name} takes no word here", index, (row.example,))
    if key in text.words:
        raise reader.error(f"{key} is given twice", index)
    if key in COUNTS:
        match = _NUMBER.fullmatch(written)
        if match is None or int(match.group(1)) == 0:
            raise reader.error(f"{key} of {statement.name} must be positive, not {written[:40]}", index, ("8",))
        text.words[key] = match.group(1), index
        return
    if key == "reassoc":
        text.words[key] = "", index
        return
    plain = short(_KINDS.get(key, key), bare_word(written))
    if plain not in _WORDS[key]:
        raise reader.error(f"unknown {key} '{plain[:40]}' of {statement.name}", index, _WORDS[key])
    text.words[key] = plain, index


def _typed_operands(reader: PtoReader, statement: NamedOperation, text: _VmiText) -> tuple[Type, ...]:
    """Return the types of all operands; those of the offset, and of all scalars of an access, are optional."""
    defined = [use[2].type for use in text.uses]
    scalars = {position for position, kind in enumerate(defined) if isinstance(kind, ScalarType)}
    offsets = set() if text.offset_at is None else {text.offset_at}
    if not any(isinstance(kind, PointerType) for kind in defined):
        scalars = set()
    for free in (set[int](), offsets, scalars):
        shown = [position for position in range(len(defined)) if position not in free]
        if len(shown) == len(text.types):
            for position, (kind, index) in zip(shown, text.types, strict=True):
                reader.check_use(text.uses[position], kind, index)
            written = {operand_index: kind for operand_index, (kind, _) in zip(shown, text.types, strict=True)}
            return tuple(written.get(operand_index, kind) for operand_index, kind in enumerate(defined))
    index = text.types[-1][1] if text.types else statement.index
    raise reader.error(f"{len(text.uses)} operands, but {len(text.types)} types", index)


def _check_operands(
    reader: PtoReader, statement: NamedOperation, row: VmiRow, text: _VmiText, operands: tuple[Type, ...]
) -> None:  # fmt: skip
    """Reject operands of other kinds than the operation has."""
    if row.fits("".join(map(letter_of, operands))):
        return
    given = ", ".join(format_type(kind) for kind in operands)
    index = text.types[0][1] if text.types else statement.index
    raise reader.error(f"{statement.name} does not take ({given})", index, (row.example,))


# Writing operations on logical registers, in one canonical form each (docs/reference/micro.md section 9.2).


def operation_text(node: DialectOperation) -> str:
    """Return the text of an operation, without its results."""
    row, items = VMI_ROWS[node.mnemonic], list[str]()
    for index, name in enumerate(node.operands):
        if index == node.offset_at:
            items[-1] += f"[%{name}]"
        else:
            items.append(f"%{name}")
    if row.word:
        items.append(f'"{node.word(row.word)}"')
    entries = [_entry(key, word) for key, word in node.attributes if key != row.word]
    kinds = [format_type(kind) for position, kind in enumerate(node.operand_types) if position != node.offset_at]
    text = f"pto.{node.name} {', '.join(items)}"
    text += f" {{{', '.join(entries)}}}" if entries else ""
    arrow = " -> " if node.results and kinds else ""
    return f"{text} : {', '.join(kinds)}{arrow}{', '.join(map(format_type, node.result_types))}"


def _entry(key: str, word: str) -> str:
    if not word:
        return key
    return f"{key} = {word}" if key in COUNTS else f'{key} = "{word}"'
