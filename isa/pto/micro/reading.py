"""Reading micro operations: one reader for all, as their rows tell what each has.

Source: docs/reference/micro.md section 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from castsim.isa.pto.attributes import Attributes, enum_value, read_attributes
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.micro.distributions import OF_OPERATION
from castsim.isa.pto.micro.form import Form, forms_of
from castsim.isa.pto.micro.forms import GROUPS
from castsim.isa.pto.micro.matching import kind_of, mismatch
from castsim.isa.pto.micro.nodes import MicroOperation
from castsim.isa.pto.micro.rules import check
from castsim.isa.pto.micro.words import LEGAL, NUMBERS, WRITTEN, short
from castsim.isa.pto.program import Operation
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.spelling import closest
from castsim.isa.pto.statement import Statement
from castsim.isa.pto.value_types import ScalarType, Type
from castsim.isa.warning_text import WarningKind

_INDEX = ScalarType("index")
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes")
"""Attributes of the generic form that count operands and results."""
Use = tuple[str, int]


@dataclass(slots=True)
class _Text:
    """An operation as it is written: uses of values, those of them in brackets, words and their tokens, groups."""

    uses: list[Use] = field(default_factory=list)
    offsets: set[int] = field(default_factory=set)
    words: list[tuple[str, int]] = field(default_factory=list)
    groups: list[tuple[str, int]] = field(default_factory=list)
    keyed: dict[str, tuple[str, int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    """Tokens of the keys of the dictionary."""
    types: list[tuple[Type, int]] = field(default_factory=list)
    results: list[tuple[Type, int]] = field(default_factory=list)


def read_micro(reader: PtoReader, statement: Statement) -> Operation:
    """Read one micro operation.

    Raises:
        ReadError: operands, words, types or results that it is not written with.
        IllegalError: well-formed, and the unit does not have it.
    """
    text = _read_text(reader, statement.operation, has_results=bool(statement.results))
    return _checked(reader, statement, text)


def read_generic(reader: PtoReader, statement: Statement) -> Operation:
    """Read one micro operation in the form `"pto.NAME"(%a, %b) <{..}> {..} : (T0, T1) -> T2`, words in dictionaries.

    Raises:
        ReadError, IllegalError: as `read_micro`; groups of operands have no such form here.
    """
    plain = replace(statement, name=statement.name.strip('"'))
    if any(form.groups for form in forms_of(plain.operation)):
        legal = tuple(form.spelling(plain.operation) for form in forms_of(plain.operation))
        raise reader.error(f"{plain.name} is not read in its generic form", statement.index, legal)
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


def _checked(reader: PtoReader, statement: Statement, text: _Text) -> MicroOperation:
    """Return the operation of a text that fits one of its forms and that the unit has."""
    name = statement.operation
    operands, typed = _typed_operands(reader, statement, text)
    results = tuple(kind for kind, _ in text.results)
    form = _chosen(reader, statement, text, operands, typed)
    words = _words(reader, statement, form, text)
    names = statement.define(reader, results)
    found = MicroOperation(
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
    check(reader, found, form, where)
    return found


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
    """Keep what a dictionary says, enumerations without their frame."""
    for key, attribute in attributes.items():
        word = attribute.text.strip('"')
        if attribute.text.startswith("#pto") and "<" in attribute.text:
            word = enum_value(attribute.text)
        text.keyed[key], text.keys[key] = (word, attribute.value_index), attribute.key_index


def _begins_item(reader: PtoReader) -> bool:
    """Whether an operand or a word stands here, and not the next operation or its results."""
    index = reader.position
    kind = reader.kinds[index]
    if kind is TokenKind.VALUE:
        behind = index + 1
        while reader.texts[behind] == "," and reader.kinds[behind + 1] is TokenKind.VALUE:
            behind += 2
        return reader.texts[behind] != "=" and ":" not in reader.texts[index]
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
        legal = tuple(f"{name}({', '.join(f'%{chr(97 + each)}' for each in range(count))})" for count in GROUPS[name])
        raise reader.error(f"{name} has {counts} operands, not {len(uses)}", index, legal)
    text.groups.append((name, len(uses)))
    text.uses += uses


def _read_types(reader: PtoReader, text: _Text, *, has_results: bool) -> None:
    """Read `types [-> types]`; without operands the types are those of the results, if there are any."""
    if not text.uses:
        reader.take("->")
        found = _several(reader)
        text.results = found if has_results else []
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
    found = reader.types()
    reader.expect(")")
    return found


def _typed_operands(reader: PtoReader, statement: Statement, text: _Text) -> tuple[tuple[Type, ...], list[int]]:
    """Return the types of all operands, and their tokens.

    Types of offsets in brackets may be left out of the text; the token is then that of the offset.
    """
    written = iter(text.types)
    short_list = len(text.types) == len(text.uses) - len(text.offsets)
    if not short_list and len(text.types) != len(text.uses):
        index = text.types[-1][1] if text.types else statement.index
        legal = tuple(form.spelling(statement.operation) for form in forms_of(statement.operation))
        raise reader.error(f"{len(text.uses)} operands with {len(text.types)} types", index, legal)
    found: list[Type] = []
    tokens: list[int] = []
    for number, use in enumerate(text.uses):
        if short_list and number in text.offsets:
            found.append(reader.definition(use).type)
            tokens.append(use[1])
            continue
        kind, index = next(written)
        reader.check_use(use, kind, index)
        found.append(kind)
        tokens.append(index)
    return tuple(found), tokens


def _chosen(reader: PtoReader, statement: Statement, text: _Text, operands: tuple[Type, ...], typed: list[int]) -> Form:
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


def _words(reader: PtoReader, statement: Statement, form: Form, text: _Text) -> dict[str, tuple[str, int]]:
    """Return the words by their kinds, with their tokens."""
    name = statement.operation
    kinds = (*form.words, *form.keys)
    if len(text.words) > len(kinds):
        raise reader.error(f"{statement.name} has no word here", text.words[len(kinds)][1], (form.spelling(name),))
    found = dict(zip(kinds, text.words, strict=False))
    keys = {WRITTEN.get(kind, kind): kind for kind in kinds} | {kind: kind for kind in kinds}
    for key, (word, index) in text.keyed.items():
        if key not in keys and "." in key:
            message = f"attribute {key} of {statement.name} is not known and has no effect"
            reader.warn(WarningKind.ATTRIBUTE, message, reader.span(text.keys[key]))
            continue
        if key not in keys:
            raise reader.error(f"{statement.name} has no attribute '{key}'", text.keys[key], closest(key, keys))
        if keys[key] in found:
            raise reader.error(f"{key} is given twice", index)
        found[keys[key]] = word, index
    for kind in kinds:
        if kind not in found and kind not in form.free:
            raise reader.error(f"{statement.name} needs its {kind}", statement.index, (form.spelling(name),))
    return {kind: _known(reader, name, kind, *given) for kind, given in found.items()}


def _known(reader: PtoReader, name: str, kind: str, word: str, index: int) -> tuple[str, int]:
    """Return a word under its short name, if it is one of its kind."""
    word = short(kind, word)
    if kind in NUMBERS:
        if not word.isdecimal():
            raise reader.error(f"expected a number as {kind} of pto.{name}, found '{word[:40]}'", index, ("0",))
        return word, index
    legal = tuple(OF_OPERATION[name]) if kind == "dist" else LEGAL[kind]
    if word not in legal:
        what = "distribution mode" if kind == "dist" else kind
        raise reader.error(f"unknown {what} '{word[:40]}' of pto.{name}", index, legal)
    return word, index


__all__ = ["kind_of", "read_generic", "read_micro"]
