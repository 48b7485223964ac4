"""The token cursor of all statement readers, which also resolves values and types in their scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn, Protocol, TypeVar

from castsim.isa.dataclass import dataclass, field, fields
from castsim.isa.errors import (
    MAX_STATEMENTS,
    CastsimError,
    ReadError,
    Span,
    WarningKind,
    Warnings,
    WarningText,
    closest,
    too_many_statements,
)
from castsim.isa.pto.lexer import PtoSource, TokenKind, filled, scan
from castsim.isa.pto.program import Operation, Tcvt, TileOperation, Type
from castsim.isa.pto.types import AFTER_LOWERING, LOWERED_DIALECTS, UNSIZED_MASK, format_type, read_type
from castsim.isa.pto.value_types import MaskType

# The visible values, their types, and those of them that are known numbers.
#
# Names in a region may not repeat a name visible around it, and are forgotten at its end; a name belongs to one value
# (docs/reference/pto.md section 4).


class FollowUpError(ReadError):
    """A use of a value whose definition could not be read: an error only because of that one."""


class Definition(NamedTuple):
    """A value: its type and the position of its name; its number, or a view's extents, if constant in the text."""

    type: Type
    start: int
    constant: int | None = None
    extents: tuple[int | None, ...] | None = None


Use = tuple[str, int, Definition]
"""A use of a value: its name, its token and its role."""


@dataclass(slots=True)
class NameScope:
    """The values of one function that are visible at the current position."""

    source: PtoSource
    _visible: dict[str, Definition] = field(default_factory=dict)
    _groups: dict[str, int] = field(default_factory=dict)
    _regions: list[list[str]] = field(default_factory=lambda: [[]])
    _forgotten: set[str] = field(default_factory=set)
    """Names that statements should have defined that could not be read."""
    _around: list[tuple[int, dict[str, Definition], dict[str, int]]] = field(default_factory=list)
    """The names visible around each isolated region, with the number of regions inside."""

    def enter(self) -> None:
        """Begin a region."""
        self._regions.append([])

    def leave(self) -> None:
        """End the innermost region and remove its values."""
        if self._around and self._around[-1][0] == len(self._regions):
            _, self._visible, self._groups = self._around.pop()
            self._regions.pop()
            return
        for name in self._regions.pop():
            self._visible.pop(name, None)
            self._groups.pop(name, None)

    @property
    def regions(self) -> int:
        """The number of regions around the current position."""
        return len(self._regions)

    def leave_to(self, regions: int) -> None:
        """Leave regions until `regions` remain."""
        while len(self._regions) > regions:
            self.leave()

    def forget(self, name: str, since: int) -> None:
        """Treat a name as unreadably defined, unless it was visible before the character `since`."""
        names = [f"{name}#{number}" for number in range(self._groups[name])] if name in self._groups else [name]
        if names[0] in self._visible:
            if self._visible[names[0]].start < since:
                return
            for value_name in names:
                del self._visible[value_name]
            self._groups.pop(name, None)
            self._regions[-1] = [value for value in self._regions[-1] if value not in {name, *names}]
        self._forgotten.add(name)

    def enter_isolated(self) -> None:
        """Begin a region that sees no outer values."""
        self._regions.append([])
        self._around.append((len(self._regions), self._visible, self._groups))
        self._visible, self._groups = {}, {}

    def define(self, name: str, kind: Type, start: int, constant: int | None = None) -> None:
        """Make a value visible.

        Raises:
            ReadError: the name is taken; the message has the position of its first definition.
        """
        earlier = self._visible.get(name)
        if kind is UNSIZED_MASK:
            legal = tuple(f"!pto.mask<b{bits}>" for bits in (8, 16, 32))
            raise self.source.error(f"cannot determine the width of mask %{name}", start, len(name) + 1, legal)
        if earlier is not None or name in self._groups:
            where = f", defined at line {self.source.span(earlier.start).line}" if earlier else ""
            raise self.source.error(f"redefinition of %{name}{where}", start, len(name) + 1)
        self._visible[name] = Definition(kind, start, constant)
        self._regions[-1].append(name)

    def note_extents(self, name: str, extents: tuple[int | None, ...]) -> None:
        """Record the known extents of a view."""
        self._visible[name] = self._visible[name]._replace(extents=extents)

    def define_group(self, base: str, kinds: tuple[Type, ...], start: int) -> tuple[str, ...]:
        """Make the results `%base:N` visible and return their names, `base#0` and so on."""
        if base in self._visible or base in self._groups:
            raise self.source.error(f"redefinition of %{base}", start, len(base) + 1)
        names = tuple(f"{base}#{number}" for number in range(len(kinds)))
        for name, kind in zip(names, kinds, strict=True):
            self.define(name, kind, start)
        self._groups[base] = len(kinds)
        self._regions[-1].append(base)
        return names

    def defined(self, token: str) -> Definition | None:
        """Return the definition of the visible value that a token names directly, None otherwise."""
        return self._visible.get(token[1:]) if token[:1] == "%" else None

    def types_of(self, tokens: Sequence[str]) -> tuple[Type, ...] | None:
        """Return the types of the visible values that tokens name directly, None if one does not."""
        types = []
        for token in tokens:
            defined = self._visible.get(token[1:])
            if defined is None or token[0] != "%":
                return None
            types.append(defined.type)
        return tuple(types)

    def are(self, tokens: Sequence[str], kinds: Sequence[Type]) -> bool:
        """Return whether tokens directly name visible values of these types, in this order."""
        for token, kind in zip(tokens, kinds, strict=True):
            defined = self._visible.get(token[1:])
            if defined is None or token[0] != "%" or (defined.type is not kind and defined.type != kind):
                return False
        return True

    def resolve(self, written: str) -> str:
        """Return the name that a use means: `%r#0` is `%r` for a single value, `%r` is `%r#0` for a group."""
        base, sign, number = written.partition("#")
        if sign:
            return base if base in self._visible and int(number[:9]) == 0 else written
        return f"{base}#0" if base in self._groups else written

    def find(self, name: str, start: int) -> Definition:
        """Return the definition of a name.

        Raises:
            FollowUpError: its definition could not be read, or it was already reported.
            ReadError: nothing visible has this name; the message lists the nearest names.
        """
        definition = self._visible.get(name)
        if definition is None:
            if name.partition("#")[0] in self._forgotten:
                raise FollowUpError(f"the definition of %{name} cannot be read", span=self.source.span(start))
            self._forgotten.add(name)  # one error for each name
            near = closest(name, self._visible, everything_up_to=4)
            legal = (f"%{candidate}" for candidate in near)
            raise self.source.error(f"%{name} is not defined here", start, len(name) + 1, legal)
        return definition


# Statements in a form met before: the same tokens but for the values, which have the same types.
#
# What is checked of `pto.NAME ins(...) outs(...)` rests on its tokens and on the types of its operands alone, not on
# which values these are. So a statement whose form has passed once needs only its operands looked up; every other, and
# every one that is wrong, is read token by token.

KEPT = (TileOperation, Tcvt)
"""Nodes of statements whose forms are cached."""
_MOST = 4096
"""Forms that are kept of a text; real programs have some hundreds."""

Shape = tuple[int, tuple[int, ...]]
"""Tokens of a statement from its name on, with marks for values."""


@dataclass(frozen=True, slots=True)
class _Form:
    """The common properties of statements of one form: types of the values, and the node without them."""

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
    """The cached forms of a text, by tokens."""

    __slots__ = ("_kinds", "_known", "_shapes", "_texts")

    def __init__(self, kinds: list[TokenKind], texts: list[str]) -> None:
        self._kinds = kinds
        self._texts = texts
        self._shapes: dict[str, list[Shape]] = {}
        self._known: dict[tuple[str, ...], _Form] = {}

    def read(self, start: int, scope: NameScope, span: Callable[[int], Span]) -> tuple[Operation, int] | None:
        """Return the statement that begins with a token, and the token after it, if its form is known."""
        texts = self._texts
        for length, places in self._shapes.get(texts[start], ()):
            if start + length >= len(texts) or texts[start + length] == "{":
                continue
            tokens = texts[start : start + length]
            values = [tokens[index] for index in places]
            for index in places:
                tokens[index] = ""
            form = self._known.get(tuple(tokens))
            if form is not None and scope.are(values, form.kinds):
                return form.statement([value[1:] for value in values], span(start)), start + length
        return None

    def note(self, start: int, end: int, scope: NameScope, node: TileOperation | Tcvt) -> None:
        """Store the form of a statement that has been read from token `start` to `end`."""
        if len(self._known) >= _MOST:
            return
        tokens = self._texts[start:end]
        if tokens[1] != "ins" or "outs" not in tokens:
            return
        places = tuple(index for index in range(end - start) if self._kinds[start + index] is TokenKind.VALUE)
        types = scope.types_of([tokens[index] for index in places])
        if types is None:
            return
        for index in places:
            tokens[index] = ""
        inputs = len(node.inputs) if isinstance(node, TileOperation) else 1 + (node.tmp is not None)
        rest = {attribute.name: getattr(node, attribute.name) for attribute in fields(node)}
        self._known[tuple(tokens)] = _Form(types, type(node), inputs, rest)
        shapes = self._shapes.setdefault(tokens[0], [])
        if (len(tokens), places) not in shapes:
            shapes.append((len(tokens), places))


CLOSING = {"(": ")", "[": "]", "{": "}"}
"""Closing bracket of each opening one."""
_MARKS = frozenset(("func.func", "", *CLOSING, *CLOSING.values()))
_T = TypeVar("_T")
_DEEPEST = 64  # nested regions or attribute values; far beyond real programs, well inside Python's own stack


class Resumption(Protocol):
    """The point at which reading resumes after an unreadable statement; see `castsim.isa.pto.pto_parser`."""

    def fail(self, start: int, before: int, regions: int, depth: int, error: CastsimError) -> None:
        """Record the error of the statement that begins at token `start`, and continue at the next one."""
        ...


class PtoReader:
    """A position in the tokens of one file, the scope of the current function, and the warnings so far.

    Readers of statements consume tokens through it. `position` is the index of the next token; positions are token
    indices. `depth` counts the regions around it, `failures` the unreadable statements, after which `recovery`
    continues; `hopeless` tells that the text is not worth continuing. `recorded`: the function was recorded from C++,
    whose library compares less than the assembler.
    """

    __slots__ = (
        "_left", "_limit", "_marks", "_types", "_warnings", "depth", "failures", "forms", "hopeless", "kinds",
        "position", "recorded", "recovery", "scope", "source", "starts", "texts", "unknown",
    )  # fmt: skip

    def __init__(self, source: PtoSource, max_statements: int = MAX_STATEMENTS) -> None:
        given = filled(source)
        tokens = scan(source if given is None else given.source, max_statements)
        self.source = source
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts if given is None else list(map(given.origin, tokens.starts))
        self.unknown = tokens.unknown
        self.forms = Forms(tokens.kinds, tokens.texts)
        self.position = 0
        self.scope = NameScope(source)
        self.depth = 0
        self.failures = 0
        self.recovery: Resumption | None = None
        self.hopeless = False
        self.recorded = False
        self._limit = self._left = max_statements
        self._types: dict[str, Type] = {}
        self._warnings: dict[str, WarningText] = {}
        self._marks: list[int] = []

    # ------------------------------------------------------------------------------------------------- refusing

    def span(self, index: int) -> Span:
        """Return the position of a token."""
        return Span.within(self.source, self.starts[index], len(self.texts[index]))

    def error(self, message: str, index: int | None = None, legal: Iterable[str] = ()) -> ReadError:
        """Return (do not raise) an error about a token, by default the next one."""
        return ReadError(message, span=self.span(self.position if index is None else index), legal=legal)

    def unexpected(self, expected: str, legal: Iterable[str] = ()) -> NoReturn:
        """Reject the next token because another one was expected."""
        text = self.texts[self.position]
        shown = "the end of the file" if self.kinds[self.position] is TokenKind.END else f"'{text[:40]}'"
        placed = "; attributes {...} come after all operands" if text == "{" else ""
        raise self.error(f"expected {expected}, found {shown}{placed}", legal=legal)

    def warn(self, kind: WarningKind, message: str, span: Span) -> None:
        """Record a warning; of equal ones, the first position is kept."""
        self._warnings.setdefault(message, WarningText(kind, message, span))

    @property
    def warnings(self) -> Warnings:
        """All warnings in text order."""
        return tuple(self._warnings.values())

    # --------------------------------------------------------------------------------------------------- tokens

    @property
    def marks(self) -> list[int]:
        """The tokens that show where functions end: brackets, `func.func` and the end of the file."""
        if not self._marks:
            self._marks = [index for index, text in enumerate(self.texts) if text in _MARKS]
        return self._marks

    def at(self, text: str) -> bool:
        """Return whether the next token is this word or sign."""
        return self.texts[self.position] == text

    def take(self, text: str) -> bool:
        """Skip the next token if it is this word or sign."""
        if self.texts[self.position] == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> int:
        """Consume this word or sign and return its index, or reject the token instead."""
        index = self.position
        if self.texts[index] != text:
            self.unexpected(f"'{text}'", (text,))
        self.position = index + 1
        return index

    def next_of(self, kind: TokenKind, expected: str, legal: Iterable[str] = ()) -> str:
        """Consume a token of a kind and return its text, or reject the token instead."""
        index = self.position
        if self.kinds[index] is not kind:
            self.unexpected(expected, legal)
        self.position = index + 1
        return self.texts[index]

    def listed(self, read: Callable[[], _T], closing: str) -> list[_T]:
        """Read items separated by commas up to and including the closing sign; there may be none."""
        items: list[_T] = []
        if self.take(closing):
            return items
        while True:
            items.append(read())
            if not self.take(","):
                break
        if not self.take(closing):
            self.unexpected(f"',' or '{closing}'", (",", closing))
        return items

    def nest(self) -> None:
        """Enter a nesting level; reject nesting that no real program has."""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.hopeless = True
            raise self.error(f"nested more than {_DEEPEST} levels deep")

    def count_statement(self) -> None:
        """Count a statement here; reject the first one beyond the limit."""
        self._left -= 1
        if self._left < 0:
            raise too_many_statements(self._limit, self.span(self.position))

    def unnest(self) -> None:
        """Leave a nesting level."""
        self.depth -= 1

    # --------------------------------------------------------------------------------------------------- values

    def equals_behind(self, index: int) -> int | None:
        """Return the sign after the results `%a, %b =` that begin at a token; None if there are none."""
        while self.kinds[index] is TokenKind.VALUE and self.texts[index + 1] == ",":
            index += 2
        return index + 1 if self.kinds[index] is TokenKind.VALUE and self.texts[index + 1] == "=" else None

    def new_name(self) -> tuple[str, int]:
        """Consume the name of one value about to be defined; return it without '%', and its index."""
        index = self.position
        text = self.next_of(TokenKind.VALUE, "a value name such as %x")
        if ":" in text or "#" in text:
            raise self.error(f"'{text}' selects one of several results, but only one is defined", index)
        return text[1:], index

    def operand(self) -> Use:
        """Consume the use of a value, which must be defined."""
        index = self.position
        token = self.texts[index]
        definition = self.scope.defined(token)
        if definition is not None:
            self.position = index + 1
            return token[1:], index, definition
        text = self.next_of(TokenKind.VALUE, "a value such as %x")
        if ":" in text:
            raise self.error(f"'{text}': write a result count only where the results are defined", index)
        name = self.scope.resolve(text[1:])
        return name, index, self.scope.find(name, self.starts[index])

    def define(self, name: str, kind: Type, index: int, constant: int | None = None) -> None:
        """Make a value visible from here on; `index` is the token that names it."""
        self.scope.define(name, kind, self.starts[index], constant)

    def check_use(self, use: Use, kind: Type, type_index: int | None = None) -> None:
        """Reject a use with another type than the definition's; the error shows the type's token if there is one."""
        defined = use[2].type
        if defined is not kind and defined != kind and not (kind is UNSIZED_MASK and isinstance(defined, MaskType)):
            index = use[1] if type_index is None else type_index
            raise self.error(
                f"%{use[0]} is defined as {format_type(defined)} but used as {format_type(kind)}",
                index,
                (format_type(defined),),
            )

    def check_uses(
        self, uses: Sequence[Use], types: Sequence[tuple[Type, int]], what: str = "operands", index: int | None = None
    ) -> None:
        """Reject uses with other types, or in another number, than the definitions; the error is at `index`."""
        if len(types) != len(uses):
            raise self.error(f"{len(uses)} {what}, but {len(types)} types", types[-1][1] if index is None else index)
        for use, (kind, type_index) in zip(uses, types, strict=True):
            self.check_use(use, kind, type_index)

    # ---------------------------------------------------------------------------------------------------- types

    def type(self) -> Type:
        """Consume a type."""
        index = self.position
        text = self.texts[index]
        if text == "<":
            return self._bare_pointer()
        token_type = self._types.get(text)
        if token_type is None:
            if self.kinds[index] not in (TokenKind.TYPE, TokenKind.WORD):
                self.unexpected("a type")
            if self.texts[index + 1] == "<":
                if self.kinds[index] is TokenKind.TYPE:
                    raise self.error(f"missing '>' after the parameters of type '{text}'", index)
                reason = f": {AFTER_LOWERING}" if text in LOWERED_DIALECTS else ""
                raise self.error(f"type '{text}<...>' is not supported{reason}", index)
            token_type = read_type(self.source, self.starts[index], text, self.warn)
            self._types[text] = token_type
        self.position = index + 1
        return token_type

    def _bare_pointer(self) -> Type:
        """Consume `<f32, gm>`: a pointer type as printed by operations that take nothing else."""
        index = self.position
        end = next(
            (position for position in range(index, min(index + 5, len(self.texts))) if self.texts[position] == ">"),
            None,
        )
        if end is None:
            self.unexpected("a type")
        parameters = self.source.text[self.starts[index] : self.starts[end]]
        pointer = read_type(self.source, self.starts[index] - len("!pto.ptr"), f"!pto.ptr{parameters}>", self.warn)
        self.position = end + 1
        return pointer

    def types(self) -> list[tuple[Type, int]]:
        """Consume types separated by commas, each with its index."""
        index = self.position
        typed = [(self.type(), index)]
        while self.texts[self.position] == ",":
            self.position += 1
            index = self.position
            typed.append((self.type(), index))
        return typed

    def typed_values(self) -> tuple[tuple[str, ...], tuple[Type, ...]]:
        """Read `%a, %b : T0, T1`, or nothing; return names and types, which must equal those of the definitions.

        Raises:
            ReadError: values and types differ in number, or a type differs from the definition's.
        """
        if self.kinds[self.position] is not TokenKind.VALUE:
            return (), ()
        uses = [self.operand()]
        while self.take(","):
            uses.append(self.operand())
        self.expect(":")
        types = self.types()
        self.check_uses(uses, types, "values")
        return tuple(use[0] for use in uses), tuple(use[2].type for use in uses)

    def type_list(self) -> tuple[Type, ...]:
        """Consume the types of results: one, or any number in parentheses."""
        if self.take("("):
            return tuple(self.listed(self.type, ")"))
        return (self.type(),)


# The head of an operation: its results, its name and its place.


class ResultItem(NamedTuple):
    """One item left of the equals sign: `%r`, or `%r:3` for three results."""

    base: str
    size: int
    token: int


@dataclass(slots=True)
class NamedOperation:
    """An operation whose name has been read: `index` is the token of the name."""

    name: str
    index: int
    span: Span
    results: tuple[ResultItem, ...]

    @property
    def operation(self) -> str:
        """The name without its dialect: `tadd` of `pto.tadd`."""
        return self.name.partition(".")[2]

    def no_result(self, reader: PtoReader) -> None:
        """Reject results."""
        if self.results:
            raise reader.error(f"{self.name} has no result", self.results[0].token)

    def define_one(self, reader: PtoReader, kind: Type, constant: int | None = None) -> str:
        """Make the single result visible and return its name; reject any other number of results."""
        if len(self.results) == 1 and self.results[0].size == 1:
            name, _, index = self.results[0]
            reader.scope.define(name, kind, reader.starts[index], constant)
            return name
        return self.define(reader, (kind,), constant)[0]

    def define(self, reader: PtoReader, kinds: tuple[Type, ...], constant: int | None = None) -> tuple[str, ...]:
        """Make the results visible and return their names; reject a number that differs from that of the types."""
        if kinds and not self.results and self.name.startswith("scf."):
            # The values of a region may go unused; a node names them all the same.
            return tuple(self._unused(reader, kind, number) for number, kind in enumerate(kinds))
        count = sum(result.size for result in self.results)
        if count != len(kinds):
            index = self.results[0].token if self.results else self.index
            raise reader.error(f"{self.name} has {len(kinds)} result{'s' * (len(kinds) != 1)}, {count} named", index)
        names: list[str] = []
        for result in self.results:
            part = kinds[len(names) : len(names) + result.size]
            if result.size == 1:
                reader.define(result.base, part[0], result.token, constant)
                names.append(result.base)
            else:
                names.extend(reader.scope.define_group(result.base, part, reader.starts[result.token]))
        return tuple(names)

    def _unused(self, reader: PtoReader, kind: Type, number: int) -> str:
        name = f"_unused_{self.index}_{number}"
        reader.define(name, kind, self.index)
        return name


Handler = Callable[[PtoReader, NamedOperation], Operation]


def read_results(reader: PtoReader) -> tuple[ResultItem, ...]:
    """Read `%a, %b:2 =`, if present."""
    index = reader.position
    if reader.kinds[index] is not TokenKind.VALUE:
        return ()
    text = reader.texts[index]
    if reader.texts[index + 1] == "=" and ":" not in text and "#" not in text:
        reader.position = index + 2
        return (ResultItem(text[1:], 1, index),)
    results = []
    while True:
        index = reader.position
        base, colon, count = reader.next_of(TokenKind.VALUE, "a result such as %x")[1:].partition(":")
        if "#" in base:
            raise reader.error(f"define a result as %name or %name:COUNT, not '{reader.texts[index]}'", index)
        if colon and not (count.isdecimal() and len(count) < 4 and int(count) > 0):
            raise reader.error(f"a result count must be 1 to 999, not '{count[:20]}'", index)
        results.append(ResultItem(base, int(count) if colon else 1, index))
        if not reader.take(","):
            break
    reader.expect("=")
    return tuple(results)
