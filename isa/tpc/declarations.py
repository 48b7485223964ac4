"""The `// castsim:` comments, which declare what assembly text cannot: target, tensors, start values.

Grammar: design of castsim, section 5. The vendor's assembler takes them for comments.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from castsim.isa.errors import ErrorList, ReadError, Span
from castsim.isa.formats import format_named
from castsim.isa.tpc import values
from castsim.isa.tpc.dialect import Dialect
from castsim.isa.tpc.program import (
    ADDRESS_BITS,
    INDEX_DIMENSIONS,
    Declaration,
    File,
    Register,
    RegisterDeclaration,
    TableDeclaration,
    TargetDeclaration,
    TensorDeclaration,
    VlmDeclaration,
)
from castsim.isa.tpc.table_declarations import TABLE, TABLE_FORM, check_table
from castsim.isa.tpc.text import AssemblySource, Comment

_DIRECTIONS = ("in", "out", "inout")
_NUMBER = r"(?P<number>0[xX][0-9A-Fa-f]{1,16}|\d{1,20})"
_DATA = r"(?P<name>[A-Za-z_]\w*)(?:\s+(?P<direction>in|out|inout))?\s+(?P<format>[\w@]+)\s*\[(?P<shape>[^\]]*)\]"
_TARGET = re.compile(r"(?P<name>[\w./\\-]+)")
_TENSOR = re.compile(rf"{_NUMBER}\s+{_DATA}")
_VLM = re.compile(rf"{_NUMBER}\s+{_DATA}")
_REG = re.compile(r"(?P<register>%?\w+)\s*=\s*(?P<values>\[[^\]]*\]|[-+]?\w+)")
_LARGEST_SIZE = 1 << 31  # coordinates are signed integers of 32 bits

_SHAPES = {
    "target": "target NAME",
    "tensor": "tensor NUMBER NAME in|out|inout FORMAT [SIZE, ..]",
    "reg": "reg REGISTER = VALUE",
    "vlm": "vlm ADDRESS NAME FORMAT [SIZE, ..]",
    "table": TABLE_FORM,
}


def declared_target(source: AssemblySource) -> TargetDeclaration | None:
    """Return the declaration of the target in a text, before anything else of it is read."""
    for comment in source.comments:
        word, _, rest = comment.text.strip().partition(" ")
        if word == "target" and (match := _TARGET.fullmatch(rest.strip())):
            return TargetDeclaration(match["name"], span=_place(source, comment))
    return None


def read_declarations(
    source: AssemblySource, dialect: Dialect, errors: ErrorList | None = None
) -> tuple[Declaration, ...]:
    """Read all declarations of a text.

    Errors are taken note of, without a list raised: unknown or malformed declaration, unknown format or register,
    anything declared twice.
    """
    errors = ErrorList(most=1) if errors is None else errors
    found: list[Declaration] = []
    seen: dict[object, Span] = {}
    for comment in source.comments:
        try:
            declaration = _read(source, comment, dialect)
        except ReadError as error:
            errors.take(error)
            continue
        for key in _keys(declaration):
            if key in seen:
                what = " ".join(str(part) for part in key)
                message = f"{what} is declared twice, first in line {seen[key].line}"
                errors.take(ReadError(message, span=declaration.span))
            seen.setdefault(key, declaration.span)
        found.append(declaration)
    return tuple(found)


def _keys(declaration: Declaration) -> tuple[tuple[object, ...], ...]:
    """Return the parts that a declaration must not share with another."""
    if isinstance(declaration, TargetDeclaration):
        return (("the target",),)
    if isinstance(declaration, RegisterDeclaration):
        return (("register", declaration.register),)
    if isinstance(declaration, TensorDeclaration):
        return (("tensor", declaration.number), ("name", declaration.name))
    if isinstance(declaration, TableDeclaration):
        which = "table of lut_ptr" if declaration.by_pointer else "table"
        return ((which, declaration.function), ("name", declaration.name))
    return (("vlm address", declaration.address), ("name", declaration.name))


def _read(source: AssemblySource, comment: Comment, dialect: Dialect) -> Declaration:
    text = comment.text.strip()
    span = _place(source, comment)
    word, _, rest = text.partition(" ")
    patterns = {"target": _TARGET, "tensor": _TENSOR, "reg": _REG, "vlm": _VLM, "table": TABLE}
    if word not in patterns:
        raise ReadError(f"unknown declaration '{word[:40]}'", span=span, legal=_SHAPES.values())
    match = patterns[word].fullmatch(rest.strip())
    if not match:
        raise ReadError(f"malformed declaration of {word}", span=span, legal=(_SHAPES[word],))
    readers: dict[str, Callable[[re.Match[str], Dialect, Span], Declaration]] = {
        "target": _target,
        "tensor": _tensor,
        "reg": _register,
        "vlm": _vlm,
        "table": _table,
    }
    return readers[word](match, dialect, span)


def _place(source: AssemblySource, comment: Comment) -> Span:
    """Return the place of a declaration, white space around it left out."""
    text = comment.text.strip()
    indent = len(comment.text) - len(comment.text.lstrip())
    return source.span(comment.line, comment.column + indent, max(1, len(text)))


def _target(match: re.Match[str], _dialect: Dialect, span: Span) -> Declaration:
    return TargetDeclaration(match["name"], span=span)


def _tensor(match: re.Match[str], _dialect: Dialect, span: Span) -> Declaration:
    if not match["direction"]:
        raise ReadError("a tensor needs a direction", span=span, legal=_DIRECTIONS)
    number, shape = int(match["number"], 0), _shape(match["shape"], span)
    return TensorDeclaration(number, match["name"], match["direction"], _format(match, span), shape, span=span)


def _vlm(match: re.Match[str], _dialect: Dialect, span: Span) -> Declaration:
    address, shape = int(match["number"], 0), _shape(match["shape"], span)
    return VlmDeclaration(address, match["name"], match["direction"] or "in", _format(match, span), shape, span=span)


def _table(match: re.Match[str], dialect: Dialect, span: Span) -> Declaration:
    function, shape, content = int(match["number"], 0), _shape(match["shape"], span), match["content"]
    pointer = match["pointer"] is not None
    table = TableDeclaration(match["name"], pointer, function, _format(match, span), shape, content, span=span)
    check_table(table, dialect)
    return table


def _format(match: re.Match[str], span: Span) -> str:
    try:
        return format_named(match["format"]).name
    except ReadError as error:
        raise error.at(span) from None


def _shape(text: str, span: Span) -> tuple[int, ...]:
    sizes = [size.strip() for size in text.split(",")]
    for size in sizes:
        if not (size.isascii() and size.isdecimal() and 0 < int(size) <= _LARGEST_SIZE):
            raise ReadError(
                f"a shape is a list of positive sizes, found '{size[:40]}' in [{text[:40]}]",
                span=span,
                legal=(f"sizes of 1 to {_LARGEST_SIZE}, such as [64, 1024]",),
            )
    if len(sizes) > INDEX_DIMENSIONS:
        raise ReadError(f"a shape has at most {INDEX_DIMENSIONS} dimensions, found {len(sizes)}", span=span)
    return tuple(map(int, sizes))


def _register(match: re.Match[str], dialect: Dialect, span: Span) -> Declaration:
    try:
        register = values.read_register(match["register"], dialect)
    except ValueError as error:
        raise ReadError(str(error), span=span) from None
    legal = ("S", "SP", "I", "AD")
    if not isinstance(register, Register) or register.file not in legal:
        raise ReadError(f"{match['register']} cannot be given a start value", span=span, legal=legal)
    count = INDEX_DIMENSIONS if register.file is File.I else 1
    texts = match["values"].strip("[]").split(",")
    if len(texts) != count or (match["values"][0] == "[") != (count > 1):
        wanted = "[c0, c1, c2, c3, c4]" if count > 1 else "one number"
        raise ReadError(f"{register} takes {wanted}", span=span, legal=(f"reg {register} = {wanted}",))
    return RegisterDeclaration(register, tuple(_number(text.strip(), register, span) for text in texts), span=span)


def _number(text: str, register: Register, span: Span) -> int:
    if register.file is File.AD:
        if re.fullmatch(r"0[xX][0-9A-Fa-f]{1,16}|\d{1,20}", text) and int(text, 0) < 1 << ADDRESS_BITS:
            return int(text, 0)
        raise ReadError(f"'{text[:40]}' is not an address of {ADDRESS_BITS} bits", span=span)
    try:
        immediate = values.read_immediate(text)
    except ValueError as error:
        raise ReadError(str(error), span=span) from None
    if immediate is None or (register.file is File.SP and immediate.value > 1):
        raise ReadError(f"'{text[:40]}' is not a value for {register}", span=span)
    return immediate.signed if register.file is File.I else immediate.value
