"""Reading flags, events and barriers. Events are flags between the pipes of their endpoints.

Source: docs/reference/pto.md sections 3, 3.1 and 3.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from castsim.isa.pto.attributes import ENDPOINTS, EVENTS, PIPES, Attribute, enum_word
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Barrier, Operation, Pipe, ScalarType, SetFlag, WaitFlag
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Handler, Statement

_ENDPOINT_NAMES = ("pipe_event_type", "sync_op_type")


def _read_word(reader: PtoReader, name: str, legal: Collection[str], *, quoted: bool = True) -> str:
    """Read `<WORD>`, `#pto.NAME<WORD>` or (the older form) `"WORD"`."""
    index = reader.position
    kind = reader.kinds[index]
    if kind is TokenKind.ATTRIBUTE:
        reader.position += 1
        text = reader.texts[index]
        return enum_word(reader, Attribute(text, index, index), name, legal)
    if kind is TokenKind.STRING and quoted:
        reader.position += 1
        word = reader.texts[index].strip('"')
    elif reader.take("<"):
        index = reader.position
        word = reader.next_of(TokenKind.WORD, f"a value of {name}", legal)
        reader.expect(">")
    else:
        first = next(iter(legal))
        reader.unexpected(f"a value of {name}", (f"<{first}>", f"#pto.{name}<{first}>"))
    if word not in legal:
        raise reader.error(f"unknown {name} '{word}'", index, legal)
    return word


def _read_pipe(reader: PtoReader) -> Pipe:
    return PIPES[_read_word(reader, "pipe", PIPES)]


def _read_event(reader: PtoReader) -> int:
    return EVENTS[_read_word(reader, "event", EVENTS)]


def _read_endpoint(reader: PtoReader) -> Pipe:
    text = reader.texts[reader.position]
    name = next((name for name in _ENDPOINT_NAMES if name in text), _ENDPOINT_NAMES[0])
    return ENDPOINTS[_read_word(reader, name, ENDPOINTS, quoted=False)]


def _read_flag(
    node: type[SetFlag | WaitFlag], end: Callable[[PtoReader], Pipe], reader: PtoReader, statement: Statement
) -> Operation:
    """Read `[SOURCE, DESTINATION, EVENT]`, the ends by `end`."""
    statement.no_result(reader)
    reader.expect("[")
    src = end(reader)
    reader.expect(",")
    dst = end(reader)
    reader.expect(",")
    event = _read_event(reader)
    reader.expect("]")
    return node(src, dst, event, span=statement.span)


def _read_numbered(node: type[SetFlag | WaitFlag], reader: PtoReader, statement: Statement) -> Operation:
    """Read `[SOURCE, DESTINATION, %number]`."""
    statement.no_result(reader)
    reader.expect("[")
    src = _read_pipe(reader)
    reader.expect(",")
    dst = _read_pipe(reader)
    reader.expect(",")
    number = reader.operand()
    reader.check_use(number, ScalarType("index"))
    reader.expect("]")
    return node(src, dst, -1, number[0], span=statement.span)


def _read_barrier(reader: PtoReader, statement: Statement) -> Operation:
    statement.no_result(reader)
    return Barrier(_read_pipe(reader), span=statement.span)


def _read_barrier_sync(reader: PtoReader, statement: Statement) -> Operation:
    statement.no_result(reader)
    reader.expect("[")
    pipe = _read_endpoint(reader)
    reader.expect("]")
    return Barrier(pipe, span=statement.span)


SYNCHRONISATION_READERS: dict[str, Handler] = {
    "pto.set_flag": partial(_read_flag, SetFlag, _read_pipe),
    "pto.wait_flag": partial(_read_flag, WaitFlag, _read_pipe),
    "pto.set_flag_dyn": partial(_read_numbered, SetFlag),
    "pto.wait_flag_dyn": partial(_read_numbered, WaitFlag),
    "pto.record_event": partial(_read_flag, SetFlag, _read_endpoint),
    "pto.wait_event": partial(_read_flag, WaitFlag, _read_endpoint),
    "pto.barrier": _read_barrier,
    "pto.pipe_barrier": _read_barrier,
    "pto.barrier_sync": _read_barrier_sync,
}
"""Reader of every synchronisation."""
