"""Reader of regions and their owners: loops, conditions, sections, and the operations that end a region.

Source: docs/reference/pto.md sections 3 and 7.6.
"""

from __future__ import annotations

from collections.abc import Sequence

from castsim.isa.errors import NOWHERE, CastsimError, Span, closest
from castsim.isa.pto import pto_scalars, tile_forms, tile_operation_forms
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.micro_forms import ROWS as MICRO_ROWS
from castsim.isa.pto.program import (
    Call,
    Condition,
    For,
    ForeignOperation,
    If,
    Operation,
    Return,
    ScalarType,
    Section,
    TileOperation,
    TileType,
    Type,
    While,
    Yield,
)
from castsim.isa.pto.statement_forms import (
    Attributes,
    StatementForm,
    check_keys,
    handlers_of,
    read_attributes,
    sorted_texts,
)
from castsim.isa.pto.statement_reader import KEPT, Handler, NamedOperation, PtoReader, Use, read_results
from castsim.isa.pto.strided_statements import PREFIX as STRIDED_PREFIX
from castsim.isa.pto.strided_statements import STRIDED_ROWS, read_strided
from castsim.isa.pto.tile_operation_forms import read_operands
from castsim.isa.pto.types import AFTER_LOWERING, LOWERED_DIALECTS, UNSIZED_MASK, format_type
from castsim.isa.pto.value_types import MaskType, dialect_module, dialect_names, dialect_of
from castsim.isa.pto.vector_operations import PRINT, VECTOR_OPERATIONS

# Reading `pto.tprint`, which writes nothing (docs/reference/pto.md section 7.11).


def _read_print(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `pto.tprint ins(%t : T)`, which writes nothing."""
    statement.no_result(reader)
    reader.expect("ins")
    attributes: Attributes = {}
    inputs = read_operands(reader, attributes)
    read_attributes(reader, attributes)
    texts = sorted_texts(attributes)
    return TileOperation(PRINT, inputs.names, inputs.types, (), (), texts, span=statement.span)


PRINT_READERS: dict[str, Handler] = {f"pto.{PRINT}": _read_print}
"""Readers of the printing operation."""


# Readers of micro operations, by name; what reads them is loaded with the first of them.


def _read_micro(reader: PtoReader, statement: NamedOperation) -> Operation:
    from castsim.isa.pto.micro_reading import read_generic, read_micro  # noqa: PLC0415 - tiles start without it

    return (read_generic if statement.name[0] == '"' else read_micro)(reader, statement)


MICRO_READERS: dict[str, Handler] = {
    spelling: _read_micro for name in MICRO_ROWS for spelling in (f"pto.{name}", f'"pto.{name}"')
}
"""Readers of micro operations, by name."""


# Reading `scf.while` (docs/reference/pto.md section 7.10).


def _read_while(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `(%x = %a) : (T) -> (U) { ... scf.condition(%c) %v : U } do { ^bb0(%y: U): ... scf.yield %w : T }`.

    Raises:
        ReadError: values, types and regions do not fit together.
    """
    pairs: list[tuple[tuple[str, int], Use]] = []
    if reader.take("("):
        pairs = reader.listed(lambda: _carried(reader), ")")
    reader.expect(":")
    index = reader.expect("(")
    kinds = _check_carried(reader, pairs, tuple(reader.listed(reader.type, ")")), index)
    reader.expect("->")
    passed = reader.type_list()
    reader.scope.enter()
    for ((name, token), _), kind in zip(pairs, kinds, strict=True):
        reader.define(name, kind, token)
    reader.expect("{")
    before = _read_rest(reader, Condition)
    last = before[-1] if before else None
    _check_handed(reader, statement, last.types if isinstance(last, Condition) else None, passed, "scf.condition")
    reader.scope.leave()
    reader.expect("do")
    reader.scope.enter()
    reader.expect("{")
    names = _arguments(reader, passed)
    after = _read_rest(reader, Yield)
    last = after[-1] if after else None
    _check_handed(reader, statement, last.types if isinstance(last, Yield) else (), kinds, "scf.yield")
    reader.scope.leave()
    return While(
        tuple(own[0] for own, _ in pairs),
        tuple(first[0] for _, first in pairs),
        before,
        names,
        after,
        statement.define(reader, passed),
        kinds,
        passed,
        span=statement.span,
    )


def _carried(reader: PtoReader) -> tuple[tuple[str, int], Use]:
    own = reader.new_name()
    reader.expect("=")
    return own, reader.operand()


def _check_carried(
    reader: PtoReader, pairs: Sequence[tuple[tuple[str, int], Use]], kinds: Sequence[Type], index: int
) -> tuple[Type, ...]:
    """Return the types of the initial values; reject wrong ones, starting at a token."""
    if len(kinds) != len(pairs):
        raise reader.error(f"{len(pairs)} carried values, but {len(kinds)} types", index)
    for (_, first), kind in zip(pairs, kinds, strict=True):
        reader.check_use(first, kind)
    return tuple(first[2].type for _, first in pairs)


def _arguments(reader: PtoReader, kinds: Sequence[Type]) -> tuple[str, ...]:
    """Read `^bb0(%y: T, ...):`, which is optional if nothing is passed on."""
    if reader.kinds[reader.position] is not TokenKind.BLOCK:
        if kinds:
            reader.unexpected(f"the {len(kinds)} values that scf.condition passes on, as in ^bb0(%x: T):", ("^bb0(",))
        return ()
    index = reader.position
    reader.position += 1
    arguments = reader.listed(lambda: _argument(reader), ")") if reader.take("(") else []
    reader.expect(":")
    if tuple(kind for _, kind in arguments) != tuple(kinds):
        raise reader.error("the types of this region's arguments differ from those that scf.condition passes on", index)
    for (name, token), kind in arguments:
        reader.define(name, kind, token)
    return tuple(name for (name, _), _ in arguments)


def _argument(reader: PtoReader) -> tuple[tuple[str, int], Type]:
    own = reader.new_name()
    reader.expect(":")
    return own, reader.type()


def _check_handed(
    reader: PtoReader, statement: NamedOperation, given: Sequence[Type] | None, wanted: Sequence[Type], by: str
) -> None:
    """Reject a region whose end does not yield values of these types."""
    index = reader.position - 1  # the closing brace
    if given is None:
        raise reader.error(f"the first region of {statement.name} must end with {by}", index, (f"{by}(%condition)",))
    if tuple(given) != tuple(wanted):
        raise reader.error(f"{statement.name} passes {len(wanted)} values whose types differ from its {by}", index)


# Reading what belongs to several cores: queues between them, exchange between devices, the buffers that they share.
#
# Nothing is known of these but their names and values, and no sheet has their grammar: a statement is all tokens up to
# the end of its line, or of a bracket that is open there; printers also break it before its operands. A line that
# begins with a sign that begins no statement goes on with it, and so does one behind a sign that ends none.
#
# Source: docs/reference/pto.md section 8.

NAMES = (
    "pto.reserve_buffer",
    "pto.import_reserved_buffer",
    "pto.aic_initialize_pipe",
    "pto.aiv_initialize_pipe",
    "pto.initialize_l2g2l_pipe",
    "pto.initialize_l2l_pipe",
)
PREFIXES = ("pto.tpush", "pto.tpop", "pto.tfree", "pto.comm.")
"""Prefixes of the names of foreign operations."""

_OPENING, _CLOSING = "([{", ")]}"
_CONTINUING = ("(", "[", "{", ",", ":", "=", "->")
"""Signs that continue a line, or require another one."""


def is_foreign_name(name: str) -> bool:
    """Return whether a name is that of a foreign operation."""
    return name in NAMES or name.startswith(PREFIXES)


def read_foreign_operation(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read a foreign operation; its results are scalars and tiles, whose types come last, after `->` or `:`.

    Raises:
        ReadError: a value is undefined, or a result has no type or another type.
    """
    start, end = reader.position, _end(reader)
    operands: list[str] = []
    tokens: list[str] = []
    while reader.position < end:
        text = reader.texts[reader.position]
        if reader.kinds[reader.position] is TokenKind.VALUE:
            operands.append(reader.operand()[0])
            tokens.append("%")
        else:
            tokens.append(text)
            reader.position += 1
    types = _result_types(reader, statement, start, end) if statement.results else ()
    results = statement.define(reader, types) if types else ()
    return ForeignOperation(statement.operation, tuple(operands), tuple(tokens), results, types, span=statement.span)


def _end(reader: PtoReader) -> int:
    """Return the token after the statement."""
    depth, line = 0, reader.span(reader.position - 1).line
    for index in range(reader.position, len(reader.texts)):
        text, kind = reader.texts[index], reader.kinds[index]
        if kind is TokenKind.END or (not depth and text in _CLOSING):
            return index
        here = reader.span(index).line
        if not depth and here != line and text not in _CONTINUING and reader.texts[index - 1] not in _CONTINUING:
            return index
        line = here
        if kind is TokenKind.PUNCTUATION and text in _OPENING:
            depth += 1
        elif kind is TokenKind.PUNCTUATION and text in _CLOSING:
            depth -= 1
    return len(reader.texts)


def _result_types(reader: PtoReader, statement: NamedOperation, start: int, end: int) -> tuple[Type, ...]:
    signs = [index for index in range(start, end) if reader.texts[index] in ("->", ":")]
    arrows = [index for index in signs if reader.texts[index] == "->"]
    if not signs:
        raise reader.error(
            f"{statement.name}: the types of its results are missing", statement.index, (f"{statement.name} ... -> T",)
        )
    reader.position = (arrows or signs)[-1] + 1
    types = reader.type_list()
    for kind in types:
        if not isinstance(kind, ScalarType | TileType):
            raise reader.error(
                f"{statement.name} yields both scalars and tiles; castsim supports one kind at a time",
                reader.position - 1,
            )
    reader.position = end
    return types


_INDEX = ScalarType("index")
_I1 = ScalarType("i1")
_LOOP_TYPES = ("index", "i64", "i32", "i16", "i8")
SECTIONS = ("section.vector", "section.cube", "vecscope")

_REFUSED: dict[str, str] = {
    "pto.declare_local_array": "no source documents how an array of the scalar unit is read and written",
    **dict.fromkeys(
        ("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended"),
        "known, not modelled: it has two results; arith.extsi or arith.extui and arith.trunci do as much",
    ),
}
_REFUSED_PREFIXES = {f"{dialect}.": AFTER_LOWERING for dialect in LOWERED_DIALECTS}


_TILE_NAMES = tuple(f"pto.{name}" for name in ("tload", "tstore", *VECTOR_OPERATIONS))


def read_operation(reader: PtoReader) -> Operation:
    """Read one operation.

    Raises:
        ReadError: the operation is malformed, unknown or unsupported; values are undefined or redefined; types differ.
        TileError: shapes, valid regions or views do not fit together.
    """
    reader.count_statement()
    results = read_results(reader)
    reading = None if results else reader.forms.read(reader.position, reader.scope, reader.span)
    if reading is not None:
        reader.position = reading[1]
        return reading[0]
    index = reader.position
    name = reader.texts[index]
    handler = HANDLERS.get(name)
    if handler is None:
        handler = _generic_handler(reader)
    reader.position = index + 1
    operation = handler(reader, NamedOperation(name, index, reader.span(index), results))
    if isinstance(operation, KEPT):
        reader.forms.note(index, reader.position, reader.scope, operation)
    return operation


_End = type[Yield] | type[Return] | type[Condition]
_Terminator = _End | tuple[_End, ...] | None
_ENDS = (Yield, Return, Condition)


def read_region(reader: PtoReader, terminator: _Terminator) -> tuple[Operation, ...]:
    """Read `{ ... }`, which may contain only the given kind of terminator, only at its end.

    An empty `scf.yield` has no effect and is dropped. The caller opens and closes the scope, as it may define values
    there.
    """
    reader.expect("{")
    return _read_rest(reader, terminator)


def _read_rest(reader: PtoReader, terminator: _Terminator = None) -> tuple[Operation, ...]:
    """Read the rest of a region after its opening brace, including the closing one."""
    reader.nest()
    depth, regions = reader.depth, reader.scope.regions
    body: list[Operation] = []
    while not reader.take("}"):
        start, failures = reader.position, reader.failures
        if reader.kinds[start] is TokenKind.END:
            reader.unexpected("an operation or '}'", ("}",))
        try:
            operation = read_operation(reader)
            if isinstance(operation, _ENDS):
                _check_end(reader, start, operation, terminator)
                if isinstance(operation, Yield) and not operation.values:
                    continue
        except CastsimError as error:
            if reader.recovery is None:
                raise
            reader.recovery.fail(start, failures, regions, depth, error)
            continue
        body.append(operation)
    reader.unnest()
    return tuple(body)


def read_any_region(reader: PtoReader) -> tuple[Operation, ...]:
    """Read the rest of a region after its opening brace, with any terminator."""
    return _read_rest(reader, _ENDS)


def _check_end(reader: PtoReader, start: int, end: Yield | Return | Condition, terminator: _Terminator) -> None:
    """Reject an operation that may not end this region, or that is not at its end."""
    if terminator is None or not isinstance(end, terminator):
        raise reader.error(f"{reader.texts[start]} is not allowed in this region", start)
    if reader.kinds[reader.position] is TokenKind.END:
        reader.unexpected("'}'", ("}",))
    if not reader.at("}"):
        raise reader.error(f"nothing can follow {reader.texts[start]} in its region", legal=("}",))


def _generic_handler(reader: PtoReader) -> Handler:
    """Return the reader of `pto.NAME ins(...) outs(...)`, or reject the text here."""
    index = reader.position
    name, kind = reader.texts[index], reader.kinds[index]
    follows = reader.texts[index + 1] if index + 1 < len(reader.texts) else ""
    if kind is TokenKind.BLOCK:
        raise reader.error(f"block {name}: jumps between blocks are not supported; use scf.for and scf.if")
    if kind is TokenKind.STRING:
        raise reader.error(
            f"{name}: in generic form, castsim reads only tcvt and vector instructions",
            legal=('"pto.tcvt"', '"pto.vcvt"'),
        )
    if kind is not TokenKind.WORD:
        reader.unexpected("an operation")
    dialect = dialect_of(name)
    if dialect is not None and is_operation(name, reader.span(index)):
        reader_of_dialect: Handler = dialect_module(dialect, "operations").read_operation
        return reader_of_dialect
    if is_foreign_name(name):
        return read_foreign_operation
    reason = _REFUSED.get(name) or next(
        (reason for prefix, reason in _REFUSED_PREFIXES.items() if name.startswith(prefix)), None
    )
    if reason is not None:
        what = "" if reason == AFTER_LOWERING else " is not modelled"
        raise reader.error(f"{name}{what}: {reason}")
    if name.startswith("pto.") and follows in ("ins", "outs"):
        return tile_operation_forms.read_tile_operation
    if name in _TILE_NAMES:
        reader.position = index + 1
        reader.unexpected(f"'ins' or 'outs' behind {name}", ("ins", "outs"))
    near = closest(name, (*_PLAIN_NAMES, *dialect_names(), *_TILE_NAMES), everything_up_to=0)
    raise reader.error(f"unknown operation '{name}'", legal=near)


def _read_for(reader: PtoReader, statement: NamedOperation) -> Operation:
    variable, variable_index = reader.new_name()
    reader.expect("=")
    lower = reader.operand()
    reader.expect("to")
    upper = reader.operand()
    reader.expect("step")
    step = reader.operand()
    carried, initial, kinds = _read_carried(reader)
    loop_type = _read_loop_type(reader)
    for use in (lower, upper, step):
        reader.check_use(use, loop_type)
    constant = step[2].constant
    if constant is not None and constant <= 0:
        raise reader.error(f"the step of a loop must be positive, not {constant}", step[1])
    if not reader.at("{"):
        reader.unexpected("'{'" if carried else "'iter_args', ':' or '{'", ("{",))
    reader.scope.enter()
    reader.define(variable, loop_type, variable_index)
    for (name, index), kind in zip(carried, kinds, strict=True):
        reader.define(name, kind, index)
    body = read_region(reader, Yield)
    _check_yield(reader, body, kinds, statement)
    reader.scope.leave()
    _pass_attributes(reader, statement)
    return For(
        variable,
        lower[0],
        upper[0],
        step[0],
        body,
        tuple(name for name, _ in carried),
        tuple(use[0] for use in initial),
        statement.define(reader, kinds),
        kinds,
        loop_type,
        span=statement.span,
    )


def _pass_attributes(reader: PtoReader, statement: NamedOperation) -> None:
    """Skip `{dialect.name = value}` after a region; attributes of other dialects have no effect here."""
    check_keys(reader, read_attributes(reader), (), statement.name)


def _read_carried(reader: PtoReader) -> tuple[list[tuple[str, int]], list[Use], tuple[Type, ...]]:
    """Read `iter_args(%x = %init, ...) -> (types)`, if present: new names, initial values, types."""
    if not reader.take("iter_args"):
        return [], [], ()
    reader.expect("(")
    pairs = reader.listed(lambda: _carried(reader), ")")
    reader.expect("->")
    index = reader.position
    kinds = _check_carried(reader, pairs, reader.type_list(), index)
    return [own for own, _ in pairs], [first for _, first in pairs], kinds


def _read_loop_type(reader: PtoReader) -> ScalarType:
    if not reader.take(":"):
        return _INDEX
    index = reader.position
    kind = reader.type()
    if not isinstance(kind, ScalarType) or kind.name not in _LOOP_TYPES:
        raise reader.error(f"a loop counter must be an integer, not {reader.texts[index]}", index, _LOOP_TYPES)
    return kind


def _check_yield(
    reader: PtoReader, body: tuple[Operation, ...], kinds: tuple[Type, ...], statement: NamedOperation
) -> None:
    """Reject a region that does not hand on exactly the values its owner returns."""
    last = body[-1] if body else None
    given = last.types if isinstance(last, Yield) else ()
    if given == kinds:
        return
    # The closing brace has just been read.
    index = reader.position - 1
    if len(given) != len(kinds):
        raise reader.error(f"{statement.name} returns {len(kinds)} values, its region yields {len(given)}", index)
    raise reader.error(f"{statement.name} and its scf.yield have different types", index)


def _read_if(reader: PtoReader, statement: NamedOperation) -> Operation:
    condition = reader.operand()
    reader.check_use(condition, _I1)
    kinds = reader.type_list() if reader.take("->") else ()
    then_body, kinds = _read_branch(reader, kinds, statement)
    else_body: tuple[Operation, ...] = ()
    if reader.take("else"):
        else_body, _ = _read_branch(reader, kinds, statement)
    elif kinds:
        reader.unexpected("'else', as this scf.if has results,", ("else",))
    results = statement.define(reader, kinds)
    return If(condition[0], then_body, else_body, results, kinds, span=statement.span)


def _read_branch(
    reader: PtoReader, kinds: tuple[Type, ...], statement: NamedOperation
) -> tuple[tuple[Operation, ...], tuple[Type, ...]]:
    """Return a branch and its yielded types; its masks have the widths that the owner omits."""
    reader.scope.enter()
    body = read_region(reader, Yield)
    last = body[-1] if body else None
    if isinstance(last, Yield) and len(last.types) == len(kinds):
        kinds = tuple(
            own if kind is UNSIZED_MASK and isinstance(own, MaskType) else kind
            for kind, own in zip(kinds, last.types, strict=True)
        )
    _check_yield(reader, body, kinds, statement)
    reader.scope.leave()
    return body, kinds


def _read_section(reader: PtoReader, statement: NamedOperation) -> Operation:
    statement.no_result(reader)
    reader.scope.enter()
    body = read_region(reader, None)
    reader.scope.leave()
    _pass_attributes(reader, statement)
    return Section(statement.operation, body, span=statement.span)


def _read_strict_scope(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `(%a, %b) { ^bb0(%x: T, %y: U): ... } : (T, U) -> ()`; the body sees outer values only by these names."""
    statement.no_result(reader)
    reader.expect("(")
    outer = reader.listed(reader.operand, ")")
    given = [use[2].type for use in outer]
    reader.expect("{")
    reader.scope.enter_isolated()
    index = reader.position
    reader.next_of(TokenKind.BLOCK, "the head of the body", ("^bb0(%x: T):",))
    inner: list[tuple[str, Type]] = []
    if reader.take("("):
        inner = reader.listed(lambda: _read_own(reader), ")")
    reader.expect(":")
    if len(inner) != len(outer):
        heads = ", ".join(f"%{chr(97 + number)}: {format_type(kind)}" for number, kind in enumerate(given))
        message = f"{len(outer)} values for the body, but it has {len(inner)} names for them"
        raise reader.error(message, index, (f"^bb0({heads}):",))
    for use, kind, (_, own) in zip(outer, given, inner, strict=True):
        if kind != own:
            message = f"%{use[0]} is defined as {format_type(kind)} but used as {format_type(own)}"
            raise reader.error(message, use[1], (format_type(kind),))
    body = _read_rest(reader)
    reader.scope.leave()
    reader.expect(":")
    index = reader.position
    reader.expect("(")
    kinds = tuple(reader.listed(reader.type, ")"))
    if kinds != tuple(kind for _, kind in inner):
        raise reader.error(f"{statement.name} and its body have values of different types", index)
    reader.expect("->")
    reader.expect("(")
    reader.expect(")")
    names = tuple(name for name, _ in inner)
    return Section(statement.operation, body, names, tuple(use[0] for use in outer), kinds, span=statement.span)


def _read_own(reader: PtoReader) -> tuple[str, Type]:
    name, index = reader.new_name()
    reader.expect(":")
    kind = reader.type()
    reader.define(name, kind, index)
    return name, kind


def _read_call(reader: PtoReader, statement: NamedOperation) -> Operation:
    """Read `@callee(%a, %b) : (T0, T1) -> T2`; the callee is checked after the file has been read."""
    callee = reader.next_of(TokenKind.SYMBOL, "a function name such as @helper")[1:]
    reader.expect("(")
    uses = reader.listed(reader.operand, ")")
    check_keys(reader, read_attributes(reader), (), statement.name)
    reader.expect(":")
    reader.expect("(")
    types = () if reader.take(")") else tuple(reader.types())
    if types and not reader.take(")"):
        reader.unexpected("',' or ')'", (")",))
    reader.check_uses(uses, types, index=reader.position - 1)
    reader.expect("->")
    kinds = reader.type_list()
    results = statement.define(reader, kinds)
    operands = tuple(use[0] for use in uses)
    return Call(callee, operands, tuple(kind for kind, _ in types), results, kinds, span=statement.span)


FORMS = (
    StatementForm("scf.condition(%condition:i1) {values:typed}", Condition),
    StatementForm("scf.yield {values:typed}", Yield),
    StatementForm("NAME {values:typed}", Return, ("return", "func.return")),
)
"""Spellings of operations that end a region."""

HANDLERS: dict[str, Handler] = {
    **pto_scalars.HANDLERS,
    **tile_operation_forms.HANDLERS,
    **PRINT_READERS,
    **handlers_of(tile_forms.FORMS),
    **tile_forms.TCVT_READERS,
    **MICRO_READERS,
    **{f"pto.{STRIDED_PREFIX}{name}": read_strided for name in STRIDED_ROWS},
    "pto.strict_vecscope": _read_strict_scope,
    **{f"pto.{section}": _read_section for section in SECTIONS},
    "scf.for": _read_for,
    "scf.if": _read_if,
    "scf.while": _read_while,
    "func.call": _read_call,
    "call": _read_call,
    **handlers_of(FORMS),
}
"""The readers of operations with a special form, by the name in the text."""

_PLAIN_NAMES = tuple(name for name in HANDLERS if not name.startswith('"'))


def is_operation(name: str, span: Span = NOWHERE) -> bool:
    """Return whether an operation of this name has a reader here or in a dialect.

    Raises:
        ReadError: the dialect of the name is not installed.
    """
    dialect = dialect_of(name)
    if dialect is None:
        return name in HANDLERS
    return name in dialect_module(dialect, "operations", span).NAMES
