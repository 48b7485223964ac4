"""What an operation on logical registers asks of its types and words (docs/reference/micro.md section 9.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS, IntFormat
from castsim.isa.pto.micro.conversions import Conversion, check_truncation, undocumented_rounding
from castsim.isa.pto.micro.matching import kind_of
from castsim.isa.pto.micro.types import lane_bits
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import (
    BLOCK_BITS,
    LogicalMaskType,
    LogicalVectorType,
    PointerType,
    ScalarType,
    Type,
)
from castsim.isa.pto.vmi.conversions import HELD, Route, check_conversion, route
from castsim.isa.pto.vmi.forms import LEGACY, ROWS
from castsim.isa.pto.vmi.nodes import VmiOperation
from castsim.isa.warning_text import WarningKind

_FLOATS, _INTEGERS = "floats", "integers"
_LEGACY_KINDS = {
    **dict.fromkeys(("extf", "truncf"), (_FLOATS, _FLOATS)),
    **dict.fromkeys(("extsi", "extui", "trunci"), (_INTEGERS, _INTEGERS)),
    **dict.fromkeys(("fptosi", "fptoui"), (_FLOATS, _INTEGERS)),
    **dict.fromkeys(("sitofp", "uitofp"), (_INTEGERS, _FLOATS)),
}
_SIGNS = {"extsi": ("i", "i"), "extui": ("u", "u"), "sitofp": ("i", ""), "uitofp": ("u", ""), "fptosi": ("", "i"),
          "fptoui": ("", "u")}  # fmt: skip
"""How older names read the integers of their source and destination, whatever their types say."""


def check(reader: PtoReader, node: VmiOperation, where: Mapping[str, int]) -> None:
    """Reject types and words that the operation does not take; `where` are the tokens of words.

    Raises:
        IllegalError: as said; carries its place and what would be legal.
    """
    elements = ROWS[node.mnemonic].elements
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


def group_of(node: VmiOperation) -> int:
    """Return the number of groups of a reduction or broadcast: 1 where the text has none."""
    return node.count("group") or 1


def _is_vector(kind: Type) -> bool:
    return isinstance(kind, LogicalVectorType)


def _refuse(node: VmiOperation, text: str, legal: tuple[str, ...] = ()) -> NoReturn:
    raise IllegalError(f"pto.vmi.{node.mnemonic} {text}", span=node.span, legal=legal)


def _check_masks(node: VmiOperation, lanes: int) -> None:
    for kind in (*node.operand_types, *node.result_types):
        if isinstance(kind, LogicalMaskType) and kind.lanes != lanes:
            _refuse(node, f"has {lanes} lanes and a mask of {kind.lanes}", (f"!pto.vmi.mask<{lanes}xpred>",))


def _check_scalar(node: VmiOperation, kind: ScalarType, element: str) -> None:
    same = kind.name == element or (kind.name[0] in "iu" and element[0] in "iu" and kind.name[1:] == element[1:])
    if not same:
        _refuse(node, f"has a scalar of {kind.name} beside elements of {element}", (element,))


def _check_lanewise(node: VmiOperation) -> None:
    """Reject registers of different types, masks of other lanes, scalars of another element."""
    kinds = vectors((*node.operand_types, *node.result_types))
    shifts = node.mnemonic in ("vshl", "vshr")
    for number, kind in enumerate(kinds):
        amounts = shifts and number == 1 and kind.element[1:] == kinds[0].element[1:] and kind.lanes == kinds[0].lanes
        if kind != kinds[0] and not amounts:
            given = f"registers of one operation have one type: {format_type(kinds[0])} and {format_type(kind)}"
            _refuse(node, f"takes equal types; {given}", (format_type(kinds[0]),))
    masks = [kind for kind in node.operand_types if isinstance(kind, LogicalMaskType)]
    _check_masks(node, kinds[0].lanes if kinds else masks[0].lanes)
    for scalar in node.operand_types:
        if isinstance(scalar, ScalarType) and node.mnemonic not in ("vshls", "vshrs"):
            _check_scalar(node, scalar, kinds[0].element)
        elif isinstance(scalar, ScalarType) and not kind_of("N", scalar):
            _refuse(node, f"shifts by a whole number, not {scalar.name}", ("i16",))


def _check_truncation(node: VmiOperation) -> None:
    """Reject a rounding to whole numbers that no instruction has."""
    _check_lanewise(node)
    letter = node.word("rounding")
    assert letter is not None
    check_truncation(vectors(node.operand_types)[0].element, letter)


def conversion_formats(node: VmiOperation) -> tuple[str, str]:
    """Return source and destination of a conversion as its name reads them: extui takes integers as unsigned."""
    source, result = (kind.element for kind in vectors((*node.operand_types[:1], *node.result_types)))
    one, other = _SIGNS.get(node.mnemonic, ("", ""))
    return (one + source[1:] if one else source), (other + result[1:] if other else result)


def conversion_words(node: VmiOperation) -> dict[str, str]:
    """Return the attributes of a conversion; its older names saturate where the text is silent."""
    words = dict(node.attributes)
    if node.mnemonic in LEGACY and "saturate" not in words and route(*conversion_formats(node)).saturations:
        words["saturate"] = "SAT"
    return words


def route_of(node: VmiOperation) -> Route:
    """Return the steps of a conversion.

    Raises:
        IllegalError: there are none, or its attributes are not those of the pair.
    """
    source, result = conversion_formats(node)
    return check_conversion(source, result, conversion_words(node))


def _check_conversion(node: VmiOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    if source.lanes != result.lanes:
        _refuse(node, f"keeps the number of lanes: {source.lanes} and {result.lanes}", (f"{source.lanes}",))
    _check_masks(node, source.lanes)
    for kind, wanted in zip((source, result), _LEGACY_KINDS.get(node.mnemonic, ()), strict=False):
        integer = isinstance(FORMATS.get(kind.element), IntFormat)
        if integer != (wanted == _INTEGERS):
            _refuse(node, f"is of {wanted}, not of {kind.element}", ("vcvt",))
    route_of(node)


def _note_rounding(reader: PtoReader, node: VmiOperation) -> None:
    """Warn of a rounding without effect, and of one that no text gives a meaning for the pair."""
    written = node.word("rounding")
    if written is None:
        return
    found = route_of(node)
    if not found.roundings:
        source, result = conversion_formats(node)
        text = f"vcvt {source} -> {result} is exact: rounding = {written} has no effect"
        reader.warn(WarningKind.ROUNDING, text, node.span)
        return
    last = next(step for step in reversed(found.steps) if step.roundings)
    reason = undocumented_rounding(Conversion(last.src, last.dst, (), (), ()), written)
    if reason:
        reader.warn(WarningKind.ROUNDING, f"vcvt {last.src} -> {last.dst}: {reason}", node.span)


def _check_reinterpretation(node: VmiOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    bits = source.lanes * lane_bits(source.element)
    if bits != result.lanes * lane_bits(result.element):
        wanted = f"!pto.vmi.vreg<{bits // lane_bits(result.element)}x{result.spelling or result.element}>"
        _refuse(node, f"keeps its {bits} bits; {format_type(result)} has others", (wanted,))


def _check_mask(node: VmiOperation) -> None:
    count, mask = node.operand_types[0], node.result_types[0]
    assert isinstance(mask, LogicalMaskType)
    if not kind_of("I", count):
        _refuse(node, f"counts lanes by an index, not by {format_type(count)}", ("index",))
    if node.mnemonic == "create_mask":
        return
    groups, size = node.count("num_groups"), node.count("group_size")
    if groups is None or size is None:
        _refuse(node, "needs num_groups and group_size", ("{num_groups = C, group_size = S}",))
    if groups * size != mask.lanes:
        _refuse(node, f"makes {groups} groups of {size} lanes, a mask of {mask.lanes}", (f"{groups * size}xpred",))


def leading_lanes(node: VmiOperation, lanes: int) -> int:
    """Return how many lanes from the first on a pattern of a logical mask names."""
    pattern = node.word("pattern") or ""
    return int(pattern[6:]) if "VL" in pattern else lanes * (pattern == "PAT_ALL")


def _check_pattern(node: VmiOperation) -> None:
    """Reject patterns of which no text says whether they count the lanes of the mask or of a register."""
    pattern = node.word("pattern") or ""
    if pattern not in ("PAT_ALL", "PAT_ALLF") and "VL" not in pattern:
        _refuse(node, f"with {pattern} is known, not modelled: no text says whether it counts the lanes of the mask or "
                "of a register", ("PAT_ALL", "PAT_ALLF", "PAT_VL8"))  # fmt: skip


def _check_broadcast(node: VmiOperation) -> None:
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


def _check_groups(node: VmiOperation, whole: LogicalVectorType, slots: LogicalVectorType, groups: int) -> None:
    """Reject groups that do not share the lanes evenly, and other than one slot for each."""
    if whole.lanes % groups:
        _refuse(node, f"cannot share {whole.lanes} lanes among group = {groups}", ("a divisor of the lanes",))
    if slots.lanes != groups:
        _refuse(node, f"has group = {groups} and {slots.lanes} slots for them", (f"group = {slots.lanes}",))
    if slots.element != whole.element:
        _refuse(node, f"keeps the element: {whole.element} and {slots.element}", (whole.element,))


def _check_reduction(node: VmiOperation) -> None:
    source, result = vectors((*node.operand_types, *node.result_types))
    _check_groups(node, source, result, group_of(node))
    _check_masks(node, source.lanes)


def _check_access(node: VmiOperation) -> None:
    (kind,) = vectors((*node.operand_types, *node.result_types))
    pointer = next(each for each in node.operand_types if isinstance(each, PointerType))
    _check_pointer(node, pointer)
    _check_masks(node, kind.lanes)
    scalars = [each for each in node.operand_types if isinstance(each, ScalarType)]
    groups, mode = node.count("group"), node.word("dist_mode") or "continuous"
    if not all(kind_of("I", each) for each in scalars):
        _refuse(node, "counts elements by whole numbers", ("index",))
    if groups is not None and kind.lanes % groups:
        _refuse(node, f"cannot share {kind.lanes} lanes among group = {groups}", ("a divisor of the lanes",))
    if groups is None and len(scalars) > 1:
        if kind.lanes * lane_bits(kind.element) % BLOCK_BITS or scalars[1].name not in ("i16", "u16"):
            legal = ("{group = C} for rows of elements", "a stride of i16 for blocks of 32 bytes")
            _refuse(node, f"of {format_type(kind)} has a stride of {scalars[1].name} and no group", legal)
        if mode != "continuous":
            _refuse(node, f"of blocks has no dist_mode = {mode}", ("continuous",))
    if node.mnemonic == "vstore" and mode != "continuous":
        _refuse(node, f"has no dist_mode = {mode}", ("continuous",))
    _check_widths(node, kind, pointer, mode)


def _check_pointer(node: VmiOperation, pointer: PointerType) -> None:
    if pointer.space != "ub":
        _refuse(node, f"takes a UB pointer, not {format_type(pointer)}", ("!pto.ptr<T, ub>",))


def _check_widths(node: VmiOperation, kind: LogicalVectorType, pointer: PointerType, mode: str) -> None:
    """Reject elements of memory and register that differ in width, but for unpacking loads and pairs.

    A store of wider integers writes their low bits.
    """
    near, far = lane_bits(kind.element), lane_bits(pointer.element)
    held = HELD.get(kind.element)
    if near == far or (held is not None and held == pointer.element):
        return
    if mode == "unpack" and near in (2 * far, 4 * far) and near <= 32 and far < 32:
        return
    integers = {kind.element[0], pointer.element[0]} <= {"i", "u"}
    if node.mnemonic == "vstore" and near in (2 * far, 4 * far) and near <= 32 and integers:
        return
    legal = (f"a pointer to elements of {near} bits", 'dist_mode = "unpack"') if far < near else ()
    _refuse(node, f"of elements of {near} bits has a pointer to elements of {far}", legal)


def _check_gather(node: VmiOperation) -> None:
    index, result = vectors((*node.operand_types, *node.result_types))
    pointer = next(each for each in node.operand_types if isinstance(each, PointerType))
    _check_pointer(node, pointer)
    if index.lanes != result.lanes or index.element not in ("u16", "i16", "u32", "i32"):
        _refuse(node, f"takes indices of 16 or 32 bits, {result.lanes} of them", (f"{result.lanes}xui32",))
    _check_masks(node, result.lanes)
    if lane_bits(pointer.element) != lane_bits(result.element) or lane_bits(result.element) == 64:
        _refuse(node, f"of {result.element} has a pointer to {pointer.element}", (result.element,))


_RULES: Mapping[str, Callable[[VmiOperation], None]] = {
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

__all__ = ["check", "conversion_words", "group_of", "leading_lanes", "route_of", "vectors"]
