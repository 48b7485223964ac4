"""Reader of all micro operations, driven by their rows.

Source: docs/reference/micro.md section 1.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol

from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, Span, WarningKind
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.micro_forms import BURSTS, COPIES, GROUPS, ROWS
from castsim.isa.pto.micro_words import (
    CONVERSIONS,
    INTERFACE_CONVERSIONS,
    LEGAL,
    NUMBERS,
    OF_OPERATION,
    PARITIES,
    WRITTEN,
    MicroForm,
    check_attributes,
    check_mask,
    check_truncation,
    conversion,
    forms_of,
    mismatch,
    short,
    undocumented_rounding,
)
from castsim.isa.pto.program import Operation
from castsim.isa.pto.statement_forms import Attributes, bare_word, read_attributes, unknown_key
from castsim.isa.pto.statement_reader import NamedOperation, PtoReader, Use
from castsim.isa.pto.types import UNSIZED_MASK, format_type, lane_bits
from castsim.isa.pto.types import element_spelling as _spelled
from castsim.isa.pto.value_types import (
    REGISTER_BITS,
    MaskType,
    MicroOperation,
    PointerType,
    ScalarType,
    Type,
    VectorType,
)

# What the verifier asks of a micro operation beyond its operands: elements, distribution modes, types of results.
#
# Source: docs/reference/micro.md sections 2 and 4.

_PAIRED = ("vldsx2", "vstsx2")
Where = Mapping[str, int]
"""The tokens of words by kind, and of types by `operand 0`, `result 0` and so on."""


class _PartError(IllegalError):
    """An error about one part of an operation, by its name in `Where`."""

    def __init__(self, message: str, legal: tuple[str, ...], part: str) -> None:
        super().__init__(message, legal=legal)
        self.part = part


class Notes(Protocol):
    """What the checks tell: warnings, and places of tokens."""

    def warn(self, kind: WarningKind, message: str, span: Span) -> None:
        """Record a warning."""
        ...

    def span(self, index: int) -> Span:
        """Return the place of a token."""
        ...


def check_made(node: MicroOperation, notes: Notes) -> None:
    """Reject an operation that no text was read for, as if its text had been.

    Raises:
        IllegalError: it has no such form, lacks a word, or the vector unit lacks it.
    """
    forms = forms_of(node.mnemonic)
    problems = [mismatch(node.mnemonic, form, node.operand_types, node.result_types) for form in forms]
    if None not in problems:
        near = min((problem for problem in problems if problem is not None), key=lambda problem: -problem.depth)
        legal = near.legal or tuple(form.spelling(node.mnemonic) for form in forms)
        raise IllegalError(f"pto.{node.mnemonic}: {near.text}", span=node.span, legal=legal)
    form = forms[problems.index(None)]
    for kind in (*form.words, *form.keys):
        word = node.word(kind)
        legal = tuple(OF_OPERATION[node.mnemonic]) if kind == "dist" else LEGAL[kind]
        if (word not in legal) if word is not None else kind not in form.free:
            text = f"needs its {kind}" if word is None else f"has no {kind} {word}"
            raise IllegalError(f"pto.{node.mnemonic} {text}", span=node.span, legal=legal)
    check(notes, node, form, {})


def check(reader: Notes, node: MicroOperation, form: MicroForm, where: Where) -> None:
    """Reject operations that the vector unit lacks.

    Raises:
        IllegalError: the operation does not support an element, mode or result.
    """
    try:
        _check_elements(node)
        if "dist" in form.words or "dist" in form.keys:
            _check_distribution(reader, node, where)
        rule = _RULES.get(node.mnemonic)
        if rule is not None:
            rule(node)
    except IllegalError as error:
        part = error.part if isinstance(error, _PartError) else _wrong_word(node, where)
        span = error.span or (reader.span(where[part]) if part in where else node.span)
        raise IllegalError(error.message, span=span, legal=error.legal) from None
    if node.mnemonic == "vcvt":
        _note_rounding(reader, node)


def _check_elements(node: MicroOperation) -> None:
    register, elements = _register(node), ROWS[node.mnemonic].elements
    if elements and register is not None and register.element not in elements:
        part = _part_of(node, VectorType)
        _refuse(node, f"does not take elements of {_spelled(register.element)}", tuple(map(_spelled, elements)), part)


def _part_of(node: MicroOperation, kind: type[VectorType | MaskType]) -> str:
    """Return the index of the first operand, or else result, of a kind."""
    for what, kinds in (("operand", node.operand_types), ("result", node.result_types)):
        for number, operand_type in enumerate(kinds):
            if isinstance(operand_type, kind):
                return f"{what} {number}"
    return ""


def _register(node: MicroOperation) -> VectorType | None:
    kinds = (*node.operand_types, *node.result_types)
    return next((kind for kind in kinds if isinstance(kind, VectorType)), None)


def _refuse(node: MicroOperation, text: str, legal: tuple[str, ...], part: str) -> NoReturn:
    raise _PartError(f"pto.{node.mnemonic} {text}", legal, part)


def _check_distribution(reader: Notes, node: MicroOperation, where: Where) -> None:
    """Reject a mode whose width neither value nor pointer has, and a mask of another width than the mode's."""
    modes = OF_OPERATION[node.mnemonic]
    name = node.word("dist") or "NORM"
    mode = modes[name]
    span = reader.span(where["dist"]) if "dist" in where else node.span
    if not mode.supported:
        legal = tuple(word for word, distribution in modes.items() if distribution.supported)
        raise IllegalError(f"{name} is not supported by the vector unit of the A5", span=span, legal=legal)
    register = _register(node)
    if register is None:
        return
    pointer = next(kind for kind in node.operand_types if isinstance(kind, PointerType))
    widths = {lane_bits(register.element), lane_bits(pointer.element)}
    if mode.lanes and not widths & set(mode.lanes):
        legal = tuple(
            word for word, distribution in modes.items() if distribution.supported and widths & set(distribution.lanes)
        )
        shown = f"{name} is for elements of {' or '.join(map(str, mode.lanes))} bits"
        if node.mnemonic in _PAIRED and max(mode.lanes) < min(widths):
            # A kernel case is named for such a pair; the verifier looks at the mode's name alone.
            message = f"{shown}; here it parts those of {lane_bits(register.element)}"
            reader.warn(WarningKind.DISTRIBUTION, message, span)
            return
        raise IllegalError(
            f"{shown}; {format_type(register)} has {lane_bits(register.element)}", span=span, legal=legal
        )
    if node.mnemonic == "vsts" and name == "NORM" and lane_bits(register.element) == 64:
        raise IllegalError("elements of 64 bits have no default mode", span=span, legal=('{dist = "NORM_B32"}',))
    if node.mnemonic == "vsts" and mode.masked:
        _check_mask(node, mode.mask or lane_bits(register.element), name)


def _check_mask(node: MicroOperation, bits: int, name: str) -> None:
    mask = next(kind for kind in node.operand_types if isinstance(kind, MaskType))
    if mask.bits != bits:
        _refuse(
            node,
            f"with {name} takes a mask of b{bits}, not of b{mask.bits}",
            (f"!pto.mask<b{bits}>",),
            _part_of(node, MaskType),
        )


def _check_castptr(node: MicroOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    for kind, part in ((source, "operand 0"), (result, "result 0")):
        if isinstance(kind, ScalarType) and kind.name != "i64":
            _refuse(node, f"takes addresses of i64, not of {kind.name}", ("i64",), part)
    if isinstance(source, ScalarType) and isinstance(result, PointerType) and result.space != "ub":
        message = "makes UB pointers from addresses; reach global memory through arguments"
        _refuse(node, message, (f"!pto.ptr<{_spelled(result.element)}, ub>",), "result 0")
    spaces = {kind.space == "ub" for kind in (source, result) if isinstance(kind, PointerType)}
    if len(spaces) > 1:
        assert isinstance(source, PointerType) and isinstance(result, PointerType)
        legal = format_type(replace(result, space=source.space))
        _refuse(node, "cannot change the memory that a pointer points to", (legal,), "result 0")


_PACKED = {"i32": "u16", "u32": "u16", "i16": "u8", "u16": "u8"}
_UNPACKED = {"i8": ("i16", "u16"), "i16": ("i32", "u32"), "u8": ("u16", "i16"), "u16": ("u32", "i32")}
_SUMS = {"i8": "i16", "u8": "u16", "i16": "i32", "u16": "u32"}


def _check_pack(node: MicroOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    assert isinstance(source, VectorType) and isinstance(result, VectorType)
    if result.element != _PACKED[source.element]:
        wide = 2 * source.lanes
        legal = (f"{wide}x{_spelled(_PACKED[source.element])}",)
        _refuse(node, f"packs {_spelled(source.element)} to {_spelled(_PACKED[source.element])}", legal, "result 0")


def _check_unpack(node: MicroOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    assert isinstance(source, VectorType) and isinstance(result, VectorType)
    legal = _UNPACKED[source.element]
    if result == source:
        return  # printed with one type: the register's, whose lanes hold half as many elements of twice the width
    if result.element not in legal:
        shown = tuple(f"{source.lanes // 2}x{_spelled(element)}" for element in legal)
        _refuse(node, f"needs a result with lanes twice as wide as {_spelled(source.element)}", shown, "result 0")


def _check_reduction(node: MicroOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    assert isinstance(source, VectorType) and isinstance(result, VectorType)
    wider = (_SUMS[source.element],) if node.mnemonic == "vcadd" and source.element in _SUMS else ()
    if result.element not in (source.element, *wider):
        legal = tuple(_spelled(element) for element in (source.element, *wider))
        message = f"of {_spelled(source.element)} does not yield {_spelled(result.element)}"
        _refuse(node, message, legal, "result 0")


def _check_difference(node: MicroOperation) -> None:
    result, part = node.result_types[0], node.word("part")
    assert isinstance(result, VectorType)
    if result.element != "f32":
        _refuse(node, f"yields f32, not {_spelled(result.element)}", ("!pto.vreg<64xf32>",), "result 0")
    if part not in PARITIES:
        _refuse(node, f"has no part {part}", PARITIES, "part")


def _check_same_width(node: MicroOperation) -> None:
    first, other = (kind for kind in node.operand_types[:2] if isinstance(kind, VectorType))
    if first.lanes != other.lanes or other.element[0] not in "iu":
        bits = lane_bits(first.element)
        legal = tuple(f"!pto.vreg<{first.lanes}x{sign}{bits}>" for sign in ("i", "ui"))
        _refuse(node, f"takes integers of {bits} bits beside {format_type(first)}", legal, "operand 1")


def _check_offsets(node: MicroOperation) -> None:
    """Reject offsets that are no whole numbers, and elements in memory that do not fit the lanes."""
    scatters = node.mnemonic == "vscatter"
    value, pointer, offsets = node.operand_types[:3] if scatters else (*node.result_types, *node.operand_types[:2])
    assert isinstance(value, VectorType) and isinstance(pointer, PointerType) and isinstance(offsets, VectorType)
    lanes = 64 if node.mnemonic == "vgatherb" else value.lanes
    if offsets.element[0] not in "iu" or offsets.lanes != lanes:
        bits = REGISTER_BITS // lanes
        message = f"takes integers of {bits} bits as offsets, not {format_type(offsets)}"
        _refuse(node, message, (f"!pto.vreg<{lanes}xui{bits}>",), "operand 2" if scatters else "operand 1")
    wide, narrow = lane_bits(value.element), lane_bits(pointer.element)
    fits = narrow == wide or (node.mnemonic in ("vgather2", "vgather2_bc") and narrow < wide)
    if not fits:
        legal = (format_type(replace(pointer, element=value.element)),)
        _refuse(
            node,
            f"moves elements of {narrow} bits, the register has {wide}",
            legal,
            "operand 1" if scatters else "operand 0",
        )


def _check_half_mask(node: MicroOperation) -> None:
    source, result = node.operand_types[0], node.result_types[0]
    assert isinstance(source, MaskType) and isinstance(result, MaskType)
    wanted = source.bits // 2 if node.mnemonic == "ppack" else source.bits * 2
    if result.bits not in (wanted, source.bits):
        _refuse(node, f"of b{source.bits} gives b{wanted}, not b{result.bits}", (f"!pto.mask<b{wanted}>",), "result 0")


def _check_conversion(node: MicroOperation) -> None:
    source, mask = node.operand_types
    result = node.result_types[0]
    assert isinstance(source, VectorType) and isinstance(result, VectorType) and isinstance(mask, MaskType)
    pair = conversion(source.element, result.element)
    check_attributes(pair, dict(node.attributes))
    check_mask(pair, mask.bits)


def _check_scaled_conversion(node: MicroOperation) -> None:
    result, words = node.result_types[0], conversion("f32", "f16").words
    assert isinstance(result, VectorType)
    if result.element != "f16":
        _refuse(node, f"yields f16, not {_spelled(result.element)}", ("!pto.vreg<128xf16>",), "result 0")
    for key, legal in words.items():
        word = node.word(key)
        documented = tuple(mode for mode in legal if mode != "H")
        if word not in documented and (word is not None or key == "part"):
            _refuse(node, f"has no {key} {word}" if word else f"needs {key}", documented, key)


def _wrong_word(node: MicroOperation, where: Where) -> str:
    """Return the error of a conversion: its pair, or its first illegal word."""
    if node.mnemonic != "vcvt":
        return "rnd" if node.mnemonic == "vtrc" else ""
    kinds = (node.operand_types[0], node.result_types[0])
    source, result = (kind.element for kind in kinds if isinstance(kind, VectorType))
    pair = CONVERSIONS.get((source, result)) or INTERFACE_CONVERSIONS.get((source, result))
    if pair is None:
        return "result 0"
    return next((key for key, legal in pair.words.items() if key in where and node.word(key) not in legal), "")


def _note_rounding(reader: Notes, node: MicroOperation) -> None:
    """Warn of a rounding that the verifier lets through and no text gives a meaning for the pair."""
    source, result, rounding = node.operand_types[0], node.result_types[0], node.word("rnd")
    assert isinstance(source, VectorType) and isinstance(result, VectorType)
    reason = rounding and undocumented_rounding(conversion(source.element, result.element), rounding)
    if reason:
        reader.warn(WarningKind.ROUNDING, f"vcvt {source.element} -> {result.element}: {reason}", node.span)


def _check_truncation(node: MicroOperation) -> None:
    source, rounding = node.operand_types[0], node.word("rnd")
    assert isinstance(source, VectorType) and rounding is not None
    check_truncation(source.element, rounding)


def _check_transfer(node: MicroOperation) -> None:
    """Reject a transfer between elements of different widths, and groups that it lacks or has twice."""
    source, destination = node.operand_types[:2]
    assert isinstance(source, PointerType) and isinstance(destination, PointerType)
    if lane_bits(source.element) != lane_bits(destination.element):
        legal = (format_type(replace(destination, element=source.element)),)
        _refuse(node, "needs source and destination elements of the same width", legal, "operand 1")
    names = [name for name, _ in node.groups]
    if node.mnemonic in BURSTS and names.count("nburst") != 1:
        _refuse(node, "needs exactly one nburst", ("nburst(%count, %source_stride, %destination_stride)",), "")
    if names.count("pad") > 1:
        _refuse(node, "takes padding only once", ("pad(%value)",), "")


_RULES: Mapping[str, Callable[[MicroOperation], None]] = {
    "castptr": _check_castptr,
    "vcvt": _check_conversion,
    "vtrc": _check_truncation,
    **dict.fromkeys((*BURSTS, *COPIES), _check_transfer),
    "vpack": _check_pack,
    "vsunpack": _check_unpack,
    "vzunpack": _check_unpack,
    **dict.fromkeys(("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin"), _check_reduction),
    "vexpdif": _check_difference,
    "vmulscvt": _check_scaled_conversion,
    "vselr": _check_same_width,
    "vshl": _check_same_width,
    "vshr": _check_same_width,
    **dict.fromkeys(("vgather2", "vgather2_bc", "vgatherb", "vscatter"), _check_offsets),
    "ppack": _check_half_mask,
    "punpack": _check_half_mask,
}


_INDEX = ScalarType("index")
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
"""Attributes of the generic form that count operands and results."""


@dataclass(slots=True)
class _Text:
    """An operation as written: uses of values, those of them in brackets, words and their tokens, groups."""

    uses: list[Use] = field(default_factory=list)
    offsets: set[int] = field(default_factory=set)
    words: list[tuple[str, int]] = field(default_factory=list)
    groups: list[tuple[str, int]] = field(default_factory=list)
    keyed: dict[str, tuple[str, int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    """Tokens of the keys of the dictionary."""
    types: list[tuple[Type, int]] = field(default_factory=list)
    results: list[tuple[Type, int]] = field(default_factory=list)


def read_micro(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read one micro operation.

    Raises:
        ReadError: operands, words, types or results do not fit any form.
        IllegalError: the operation is well-formed, but the unit lacks it.
    """
    text = _read_text(reader, statement.operation, has_results=bool(statement.results))
    return _checked(reader, statement, text)


def read_generic(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read one micro operation in the form `"pto.NAME"(%a, %b) <{..}> {..} : (T0, T1) -> T2`, words in dictionaries.

    Raises:
        ReadError, IllegalError: see `read_micro`; groups of operands have no such form.
    """
    plain = replace(statement, name=statement.name.strip('"'))
    if any(form.groups for form in forms_of(plain.operation)):
        legal = tuple(form.spelling(plain.operation) for form in forms_of(plain.operation))
        raise reader.error(f"{plain.name} cannot be read in its generic form", statement.index, legal)
    text = _Text()
    reader.expect("(")
    text.uses = reader.listed(reader.operand, ")")
    attributes: Attributes = {}
    if reader.take("<"):
        read_attributes(reader, attributes)
        reader.expect(">")
    read_attributes(reader, attributes)
    for key in _SEGMENTS:
        attributes.pop(key, None)
    _keep_words(text, attributes)
    reader.expect(":")
    reader.expect("(")
    text.types = [] if reader.at(")") else reader.types()
    reader.expect(")")
    reader.expect("->")
    text.results = _several(reader)
    return _checked(reader, plain, text)


def _checked(reader: PtoReader, statement: NamedOperation, text: _Text) -> MicroOperation:
    """Return the operation of a text that fits one of its forms and exists in the unit."""
    name = statement.operation
    operands, typed = _typed_operands(reader, statement, text)
    width = _mask_width(name, operands)
    text.results = [(MaskType(width) if kind is UNSIZED_MASK and width else kind, at) for kind, at in text.results]
    results = tuple(kind for kind, _ in text.results)
    form = _chosen(reader, statement, text, operands, typed)
    words = _words(reader, statement, form, text)
    names = statement.define(reader, results)
    operation = MicroOperation(
        name,
        tuple(use[0] for use in text.uses),
        operands,
        names,
        results,
        tuple(sorted((key, word) for key, (word, _) in words.items())),
        tuple(text.groups),
        span=statement.span,
    )
    where = {key: index for key, (_, index) in words.items()}
    where |= {f"operand {number}": index for number, index in enumerate(typed)}
    where |= {f"result {number}": index for number, (_, index) in enumerate(text.results)}
    check(reader, operation, form, where)
    return operation


def _mask_width(name: str, operands: tuple[Type, ...]) -> int:
    """Return the width of a result mask that the text omits; 0 if nothing else determines it."""
    masks = [kind.bits for kind in operands if isinstance(kind, MaskType)]
    if not masks or name == "pbitcast":
        return ROWS[name].width or 0
    return ROWS[name].width or {"ppack": masks[0] // 2, "punpack": masks[0] * 2}.get(name, masks[0])


def _read_text(reader: PtoReader, name: str, *, has_results: bool) -> _Text:
    text = _Text()
    bracketed = reader.take("[")
    while _begins_item(reader):
        _read_item(reader, text)
        if not reader.take(","):
            break
    if bracketed:
        reader.expect("]")
    groups = {group for form in forms_of(name) for group in form.groups}
    while reader.texts[reader.position] in groups and reader.kinds[reader.position] is TokenKind.WORD:
        _read_group(reader, text)
    _keep_words(text, read_attributes(reader))
    if reader.take(":"):
        _read_types(reader, text, has_results=has_results)
    return text


def _keep_words(text: _Text, attributes: Attributes) -> None:
    """Record the words of a dictionary; enumerations lose their frame."""
    for key, attribute in attributes.items():
        text.keyed[key] = bare_word(attribute.text), attribute.value_index
        text.keys[key] = attribute.key_index


def _begins_item(reader: PtoReader) -> bool:
    """Return whether an operand or a word is next, instead of the next operation or its results."""
    index = reader.position
    kind = reader.kinds[index]
    if kind is TokenKind.VALUE:
        return reader.equals_behind(index) is None and ":" not in reader.texts[index]
    return kind in (TokenKind.STRING, TokenKind.ATTRIBUTE, TokenKind.NUMBER)


def _read_item(reader: PtoReader, text: _Text) -> None:
    index = reader.position
    kind, written = reader.kinds[index], reader.texts[index]
    if kind is not TokenKind.VALUE:
        reader.position += 1
        if kind is TokenKind.ATTRIBUTE:
            start = written.rfind("<")
            written = written[start + 1 :].rstrip(">").split()[-1] if start >= 0 else written
        text.words.append((written.strip('"'), index))
        return
    text.uses.append(reader.operand())
    if reader.take("["):
        text.offsets.add(len(text.uses))
        text.uses.append(reader.operand())
        reader.expect("]")


def _read_group(reader: PtoReader, text: _Text) -> None:
    index = reader.position
    name = reader.texts[index]
    reader.position += 1
    reader.expect("(")
    uses = reader.listed(reader.operand, ")")
    if len(uses) not in GROUPS[name]:
        counts = " or ".join(map(str, GROUPS[name]))
        legal = tuple(
            f"{name}({', '.join(f'%{chr(97 + number)}' for number in range(count))})" for count in GROUPS[name]
        )
        raise reader.error(f"{name} has {counts} operands, not {len(uses)}", index, legal)
    text.groups.append((name, len(uses)))
    text.uses += uses


def _read_types(reader: PtoReader, text: _Text, *, has_results: bool) -> None:
    """Read `types [-> types]`; without operands the types are those of the results, if there are any."""
    if not text.uses:
        reader.take("->")
        types = _several(reader)
        text.results = types if has_results else []
        return
    while True:
        if reader.texts[reader.position] in GROUPS:
            reader.position += 1
        index = reader.position
        text.types.append((reader.type(), index))
        if not reader.take(","):
            break
    if reader.take("->"):
        text.results = _several(reader)


def _several(reader: PtoReader) -> list[tuple[Type, int]]:
    if not reader.take("("):
        return reader.types()
    if reader.take(")"):
        return []
    types = reader.types()
    reader.expect(")")
    return types


def _typed_operands(reader: PtoReader, statement: NamedOperation, text: _Text) -> tuple[tuple[Type, ...], list[int]]:
    """Return the types of all operands, and their tokens.

    Types of offsets in brackets may be left out of the text; the token is then that of the offset.
    """
    written = iter(text.types)
    short_list = len(text.types) == len(text.uses) - len(text.offsets)
    if not short_list and len(text.types) != len(text.uses):
        index = text.types[-1][1] if text.types else statement.index
        legal = tuple(form.spelling(statement.operation) for form in forms_of(statement.operation))
        raise reader.error(f"{len(text.uses)} operands, but {len(text.types)} types", index, legal)
    types: list[Type] = []
    tokens: list[int] = []
    for number, use in enumerate(text.uses):
        if short_list and number in text.offsets:
            types.append(use[2].type)
            tokens.append(use[1])
            continue
        kind, index = next(written)
        reader.check_use(use, kind, index)
        types.append(use[2].type)
        tokens.append(index)
    return tuple(types), tokens


def _chosen(
    reader: PtoReader, statement: NamedOperation, text: _Text, operands: tuple[Type, ...], typed: list[int]
) -> MicroForm:
    """Return the form that the operands and results fit."""
    forms = forms_of(statement.operation)
    plain = operands[: len(operands) - sum(count for _, count in text.groups)]
    results = tuple(kind for kind, _ in text.results)
    problems = [mismatch(statement.operation, form, plain, results) for form in forms]
    if None in problems:
        return forms[problems.index(None)]
    legal = tuple(form.spelling(statement.operation) for form in forms)
    near = min((problem for problem in problems if problem is not None), key=lambda problem: -problem.depth)
    index = statement.index
    if near.operand is not None:
        index = typed[near.operand]
    elif near.result is not None and text.results:
        index = text.results[near.result][1]
    raise reader.error(f"{statement.name}: {near.text}", index, near.legal or legal)


def _words(reader: PtoReader, statement: NamedOperation, form: MicroForm, text: _Text) -> dict[str, tuple[str, int]]:
    """Return the words by their kinds, with their tokens."""
    name = statement.operation
    kinds = (*form.words, *form.keys)
    if len(text.words) > len(kinds):
        raise reader.error(f"{statement.name} takes no word here", text.words[len(kinds)][1], (form.spelling(name),))
    words = dict(zip(kinds, text.words, strict=False))
    keys = {WRITTEN.get(kind, kind): kind for kind in kinds} | {kind: kind for kind in kinds}
    for key, (word, index) in text.keyed.items():
        if key not in keys:
            unknown_key(reader, statement.name, key, text.keys[key], keys)
            continue
        if keys[key] in words:
            raise reader.error(f"{key} is given twice", index)
        words[keys[key]] = word, index
    for kind in kinds:
        if kind not in words and kind not in form.free:
            raise reader.error(f"{statement.name} needs its {kind}", statement.index, (form.spelling(name),))
    return {kind: _known(reader, name, kind, *given) for kind, given in words.items()}


def _known(reader: PtoReader, name: str, kind: str, word: str, index: int) -> tuple[str, int]:
    """Return a word under its short name, if it is of its kind."""
    word = short(kind, word)
    if kind in NUMBERS:
        if not word.isdecimal():
            raise reader.error(f"expected a number for {kind} of pto.{name}, found '{word[:40]}'", index, ("0",))
        return word, index
    legal = tuple(OF_OPERATION[name]) if kind == "dist" else LEGAL[kind]
    if word not in legal:
        what = "distribution mode" if kind == "dist" else kind
        raise reader.error(f"unknown {what} '{word[:40]}' of pto.{name}", index, legal)
    return word, index
