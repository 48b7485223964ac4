"""Statements in a form met before: the same tokens but for the values, which have the same types.

What is checked of `pto.NAME ins(...) outs(...)` rests on its tokens and on the types of its operands alone, not on
which values these are. So a statement whose form has passed once needs only its operands looked up; every other, and
every one that is wrong, is read token by token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from castsim.isa.errors import Span
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import Operation, Tcvt, TileOperation, Type
from castsim.isa.pto.scope import Scope

_MOST = 4096
"""Forms that are kept of a text; real programs have some hundreds."""

Shape = tuple[int, tuple[int, ...]]
"""Tokens of a statement from its name on, and which of them are values."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What a statement has in common with those of its form: types of the values, and the node without these."""

    kinds: tuple[Type, ...]
    node: type[TileOperation] | type[Tcvt]
    inputs: int
    rest: dict[str, object]

    def statement(self, names: list[str], span: Span) -> Operation:
        """Return the statement of this form on values of these names."""
        values = self.rest.copy()
        values["span"] = span
        if self.node is Tcvt:
            values["src"], values["dst"] = names[0], names[-1]
            values["tmp"] = names[1] if self.inputs == 2 else None
        else:
            values["inputs"], values["outputs"] = tuple(names[: self.inputs]), tuple(names[self.inputs :])
        return self.node(**values)  # type: ignore[arg-type]  # fields of a node of the class


class Forms:
    """The forms that one text has shown so far, by its tokens."""

    __slots__ = ("_kinds", "_known", "_shapes", "_texts")

    def __init__(self, kinds: list[TokenKind], texts: list[str]) -> None:
        self._kinds = kinds
        self._texts = texts
        self._shapes: dict[str, list[Shape]] = {}
        self._known: dict[tuple[str, ...], _Form] = {}

    def read(self, start: int, scope: Scope, span: Callable[[int], Span]) -> tuple[Operation, int] | None:
        """Return the statement that begins with a token, and the token behind it, if its form is known."""
        texts = self._texts
        for length, places in self._shapes.get(texts[start], ()):
            if start + length >= len(texts) or texts[start + length] == "{":
                continue
            tokens = texts[start : start + length]
            values = [tokens[place] for place in places]
            for place in places:
                tokens[place] = ""
            form = self._known.get(tuple(tokens))
            if form is not None and scope.are(values, form.kinds):
                return form.statement([value[1:] for value in values], span(start)), start + length
        return None

    def note(self, start: int, end: int, scope: Scope, node: Operation) -> None:
        """Keep the form of a statement that has been read from token `start` to `end`."""
        if not isinstance(node, TileOperation | Tcvt) or len(self._known) >= _MOST:
            return
        tokens = self._texts[start:end]
        if tokens[1] != "ins":
            return
        places = tuple(place for place in range(end - start) if self._kinds[start + place] is TokenKind.VALUE)
        types = scope.types_of([tokens[place] for place in places])
        if types is None:
            return
        for place in places:
            tokens[place] = ""
        inputs = tokens[: tokens.index("outs")].count("")
        rest = {each.name: getattr(node, each.name) for each in fields(node)}
        self._known[tuple(tokens)] = _Form(types, type(node), inputs, rest)
        shapes = self._shapes.setdefault(tokens[0], [])
        if (len(tokens), places) not in shapes:
            shapes.append((len(tokens), places))
