"""Reading `scf.while` and the `scf.condition` that ends its first region (docs/reference/pto.md section 7.10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Condition, Operation, ScalarType, Type, While, Yield
from castsim.isa.pto.reader import PtoReader
from castsim.isa.pto.statement import Statement

_I1 = ScalarType("i1")

Region = Callable[[PtoReader, type[Yield] | type[Condition]], tuple[Operation, ...]]
"""What reads a region that ends with this operation; its opening brace and the names of its own have been read."""

_Use = tuple[str, int]


def read_while(reader: PtoReader, statement: Statement, region: Region) -> Operation:
    """Read `(%x = %a) : (T) -> (U) { ... scf.condition(%c) %v : U } do { ^bb0(%y: U): ... scf.yield %w : T }`.

    Raises:
        ReadError: values, types and regions that do not fit each other.
    """
    pairs: list[tuple[_Use, _Use]] = []
    if reader.take("("):
        pairs = reader.listed(lambda: _carried(reader), ")")
    reader.expect(":")
    index = reader.expect("(")
    kinds = tuple(reader.listed(reader.type, ")"))
    if len(kinds) != len(pairs):
        raise reader.error(f"{len(pairs)} values carried with {len(kinds)} types", index)
    for (_, first), kind in zip(pairs, kinds, strict=True):
        reader.check_use(first, kind)
    reader.expect("->")
    passed = reader.type_list()
    reader.scope.enter()
    for ((name, place), _), kind in zip(pairs, kinds, strict=True):
        reader.define(name, kind, place)
    reader.expect("{")
    before = region(reader, Condition)
    last = before[-1] if before else None
    _check_handed(reader, statement, last.types if isinstance(last, Condition) else None, passed, "scf.condition")
    reader.scope.leave()
    reader.expect("do")
    reader.scope.enter()
    reader.expect("{")
    names = _arguments(reader, passed)
    after = region(reader, Yield)
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


def read_condition(reader: PtoReader, statement: Statement) -> Operation:
    """Read `scf.condition(%c) %a, %b : T, U`."""
    statement.no_result(reader)
    reader.expect("(")
    condition = reader.operand()
    reader.check_use(condition, _I1)
    reader.expect(")")
    names, kinds = reader.typed_values()
    return Condition(condition[0], names, kinds, span=statement.span)


def _carried(reader: PtoReader) -> tuple[_Use, _Use]:
    own = reader.new_name()
    reader.expect("=")
    return own, reader.operand()


def _arguments(reader: PtoReader, kinds: Sequence[Type]) -> tuple[str, ...]:
    """Read `^bb0(%y: T, ...):`, which may be left out where nothing is handed on."""
    if reader.kinds[reader.position] is not TokenKind.BLOCK:
        if kinds:
            reader.unexpected(f"the {len(kinds)} values that scf.condition passes on, as in ^bb0(%x: T):", ("^bb0(",))
        return ()
    index = reader.position
    reader.position += 1
    found = reader.listed(lambda: _argument(reader), ")") if reader.take("(") else []
    reader.expect(":")
    if tuple(kind for _, kind in found) != tuple(kinds):
        raise reader.error("the values of this region are not of the types that scf.condition passes on", index)
    for (name, place), kind in found:
        reader.define(name, kind, place)
    return tuple(name for (name, _), _ in found)


def _argument(reader: PtoReader) -> tuple[_Use, Type]:
    own = reader.new_name()
    reader.expect(":")
    return own, reader.type()


def _check_handed(
    reader: PtoReader, statement: Statement, given: Sequence[Type] | None, wanted: Sequence[Type], by: str
) -> None:
    """Reject a region that does not end with what hands on values of these types."""
    index = reader.position - 1  # the closing brace
    if given is None:
        raise reader.error(f"the first region of {statement.name} ends with {by}", index, (f"{by}(%condition)",))
    if tuple(given) != tuple(wanted):
        raise reader.error(f"{statement.name} passes on {len(wanted)} values of other types than its {by}", index)
