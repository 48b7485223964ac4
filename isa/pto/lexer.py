"""Tokens of a `.pto` text with parameters filled in, and the file position of an offset.

A whole type (`!pto.tile_buf<vec, 4x256xf32>`) and a whole dialect attribute (`#pto<round_mode ROUND>`) are single
tokens: neither nests angle brackets, and a single token keeps `4x256xf32` and the blank inside the attribute out of the
grammar. Comments run from `//` to the end of the line; white space is free. Source: docs/reference/pto.md section 3.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import accumulate, compress, islice, repeat
from operator import sub

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import ReadError, SourceText, Span, too_many_statements
from castsim.isa.value_expressions import Expression, Value, read_value, read_values


class TokenKind(Enum):
    """The kind of a token; its text distinguishes words and punctuation further."""

    VALUE = "value name"
    TYPE = "type"
    ATTRIBUTE = "attribute"
    STRING = "string"
    SYMBOL = "symbol name"
    NUMBER = "number"
    WORD = "word"
    BLOCK = "block label"
    PUNCTUATION = "punctuation"
    UNKNOWN = "unknown character"
    END = "end of file"


# '-' belongs to a name, except where it begins the arrow '->'. Possessive, as what may be given back has to be kept: a
# hundred bytes for every character of a long word.
_NAME = r"(?:[\w.$]++|-(?!>))++"

_PATTERNS: tuple[tuple[TokenKind, str], ...] = (
    (TokenKind.VALUE, rf"%{_NAME}(?:[#:]\d+)?"),
    (TokenKind.PUNCTUATION, r"->|[{}()\[\]<>=:,]"),
    (TokenKind.WORD, rf"[A-Za-z_](?:{_NAME})?"),
    (TokenKind.TYPE, r"![A-Za-z_][\w.$]*(?:\s*+<[^<>]*+>)?"),
    (TokenKind.NUMBER, r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"),
    (TokenKind.ATTRIBUTE, rf"\#[A-Za-z_](?:{_NAME})?(?:\s*+<[^<>]*+>)?"),
    (TokenKind.STRING, r'"(?:[^"\\\n]++|\\[^\n])*+"'),
    (TokenKind.SYMBOL, rf"@{_NAME}"),
    (TokenKind.BLOCK, rf"\^{_NAME}"),
    (TokenKind.END, r"\Z"),
    (TokenKind.UNKNOWN, r"."),
)
# Possessive, so that a file that ends in white space or a comment is not scanned again from every character of it.
_SKIP = r"(?:\s++|//[^\n]*+)*+"
_SKIPPED = re.compile(_SKIP, re.ASCII)
_TOKEN = re.compile("|".join(f"({pattern})" for _, pattern in _PATTERNS), re.ASCII)
_PIECE = re.compile(f"{_SKIP}(?:{'|'.join(pattern for _, pattern in _PATTERNS)})", re.ASCII)
"""A token and the skipped text before it: the pieces of a text cover all of it."""
_BLANKS = " \t\n\r\f\v"
_PER_STATEMENT = 40  # a cast has about 20 tokens, a partition of a view of five dimensions 50
_AROUND = 100_000  # arguments and attributes of functions
_KINDS = tuple(kind for kind, _ in _PATTERNS)


class PtoSource(SourceText):
    """A text under its file name, which locates any offset in it and creates errors there."""

    __slots__ = ()

    def span(self, start: int, length: int = 1) -> Span:
        """Return the position of `length` characters from offset `start`, cut at the end of the line."""
        return Span.within(self, start, length)

    def error(self, message: str, start: int, length: int = 1, legal: Iterable[str] = ()) -> ReadError:
        """Return (do not raise) an error about the text at offset `start`."""
        return ReadError(message, span=self.span(start, length), legal=legal)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one file in three parallel lists; the last token is the end of the file (empty text).

    `unknown` are the indices of tokens with an invalid first character.
    """

    kinds: list[TokenKind]
    texts: list[str]
    starts: list[int]
    unknown: list[int]


def tokenize(source: PtoSource) -> Tokens:
    """Split a text into tokens.

    Raises:
        ReadError: a character begins no token, or a string does not end on its line.
    """
    tokens = scan(source)
    for index in tokens.unknown:
        raise unknown_character(source, tokens.starts[index])
    return tokens


def scan(source: PtoSource, most_statements: int | None = None) -> Tokens:
    """Split a text into tokens, including invalid ones, which readers refuse.

    Raises:
        LimitError: there are more tokens than the maximum of statements can have.
    """
    most = None if most_statements is None else _PER_STATEMENT * most_statements + _AROUND
    pieces = _pieces(source.text, most)
    bare = list(map(str.lstrip, pieces, repeat(_BLANKS)))
    # Most tokens of a program are there many times: what differs is looked at once, and equal texts become one object.
    texts_of = {text: _without_comments(text) for text in set(bare)}
    texts = list(map(texts_of.__getitem__, bare))
    starts = list(map(sub, accumulate(map(len, pieces)), map(len, texts)))
    if "" not in texts_of.values():
        raise too_many_statements(most_statements or 0, source.span(starts[-1]), "statements' words and signs")
    count = texts.index("") + 1  # behind a text that ends in blanks the end is found twice
    del texts[count:], starts[count:]
    kind_of = {text: _kind(text) for text in set(texts_of.values())}
    if "loc" in kind_of:
        texts, starts = _without_locations(texts, starts)
    kinds = list(map(kind_of.__getitem__, texts))
    unknown: list[int] = []
    if TokenKind.UNKNOWN in kind_of.values():
        unknown = [index for index, kind in enumerate(kinds) if kind is TokenKind.UNKNOWN]
    return Tokens(kinds, texts, starts, unknown)


def _without_locations(texts: list[str], starts: list[int]) -> tuple[list[str], list[int]]:
    """Skip `loc(...)` after statements and the aliases `#loc1 = loc(...)`, which name the original source.

    A location with unbalanced parentheses stays and is refused at its position.
    """
    kept = [True] * len(texts)
    index = 0
    while index < len(texts):
        end = _end_of_location(texts, index) if texts[index] == "loc" else index
        if end > index:
            is_alias = texts[index - 1] == "=" and texts[index - 2].startswith("#")
            first = index - 2 if is_alias else index
            kept[first:end] = [False] * (end - first)
        index = max(end, index + 1)
    return list(compress(texts, kept)), list(compress(starts, kept))


def _end_of_location(texts: list[str], start: int) -> int:
    """Return the token after the location that begins at `start`; `start` if there is none."""
    depth = 0
    for index in range(start + 1, len(texts)):
        depth += (texts[index] == "(") - (texts[index] == ")")
        if depth <= 0:
            return index + 1 if texts[index] == ")" else start
    return start


def _pieces(text: str, most: int | None) -> list[str]:
    """Return all pieces of a text, the end among them, or `most` if there are more."""
    if most is None or len(text) < most:
        return _PIECE.findall(text)
    return [match[0] for match in islice(_PIECE.finditer(text), most)]


def _without_comments(text: str) -> str:
    skipped = _SKIPPED.match(text) if text.startswith("//") else None
    return text[skipped.end() :] if skipped else text


def _kind(text: str) -> TokenKind:
    match = _TOKEN.match(text)
    assert match is not None and match.lastindex is not None  # one alternative always matches
    return _KINDS[match.lastindex - 1]


def unknown_character(source: PtoSource, start: int) -> ReadError:
    """Return (do not raise) the error about a character that begins no token."""
    character = source.text[start]
    if character == '"':
        return source.error("this string is not closed on its line", start)
    if character == "/":
        return source.error("unexpected '/'; a comment starts with '//'", start, legal=("//",))
    if character in "%!#@^":
        return source.error(f"missing name after '{character}'", start)
    return source.error(f"unexpected character {character!r}", start)


# Parameters of a tile program: comments `// castsim: parameter R = 16`, and `${R}` where the value stands.
#
# `${...}` holds a name or an integer expression (`${R*2}`). A text with the defaults filled in is an ordinary
# program, so everything that reads `.pto` reads one with parameters; places are those of the text as it was written.
# Words in strings and comments stay as they are. Source: docs/reference/pto.md section 3.6 (this simulator's own; no
# vendor has it).

FORM = "// castsim: parameter NAME = VALUE"
"""The form of a parameter's declaration."""
RANGED = "// castsim: parameter NAME = VALUE in VALUES"
"""The form of a declaration with the values to try."""

_HEAD = re.compile(r"\s*castsim:\s*parameter\b")
_DECLARATION = re.compile(r"\s+([A-Za-z_]\w*)\s*=\s*([^\s,]+)(?:\s+in\s+(\S[^\n]*?))?\s*", re.ASCII)
_PARTS = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|//([^\n]*+)|\$\{([^{}\n]*)(\}?)')


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default, the values that its text proposes (empty if none), and their positions."""

    name: str
    default: Value
    values: tuple[Value, ...]
    span: Span
    default_at: tuple[int, int]
    """Offsets of the default in the text."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with the values filled in."""

    source: PtoSource
    starts: tuple[int, ...]
    """The offsets at which its stretches begin: inserted values and unchanged text."""
    origins: tuple[int, ...]
    """The offset of each stretch in the original text."""
    kept: tuple[bool, ...]
    """Whether each stretch is unchanged text."""

    def origin(self, offset: int) -> int:
        """Return the offset in the original text; for inserted text, that of its `${`."""
        piece = bisect_right(self.starts, offset) - 1
        return self.origins[piece] + (offset - self.starts[piece] if self.kept[piece] else 0)


def parameters(source: PtoSource) -> dict[str, Parameter]:
    """Return the parameters that a text declares, by name.

    Raises:
        ReadError: a declaration is invalid, or two have one name.
    """
    declared: dict[str, Parameter] = {}
    if "castsim:" not in source.text:
        return declared
    for part in _PARTS.finditer(source.text):
        head = None if part[1] is None else _HEAD.match(source.text, part.start(1), part.end(1))
        if head is None:
            continue
        parameter = _declared(source, head.end(), part.end(1))
        if parameter.name in declared:
            raise ReadError(
                f"parameter {parameter.name} is declared again, after line {declared[parameter.name].span.line}",
                span=parameter.span,
            )
        declared[parameter.name] = parameter
    return declared


def _declared(source: PtoSource, start: int, end: int) -> Parameter:
    given = _DECLARATION.fullmatch(source.text, start, end)
    if given is None:
        raise source.error("declare a parameter as NAME = VALUE", start, max(1, end - start), (FORM, RANGED))
    value = read_value(given[2], source.span(given.start(2), len(given[2])))
    values = () if given[3] is None else read_values(source, *given.span(3))
    return Parameter(given[1], value, values, source.span(given.start(1), len(given[1])), given.span(2))


def filled(source: PtoSource) -> Filled | None:
    """Return a text with the defaults of its parameters filled in; None if it has none.

    Raises:
        ReadError: see `parameters`; also a `${...}` that is not closed, not an expression, or uses an undeclared name.
    """
    if "${" not in source.text:
        return None
    values = {name: parameter.default for name, parameter in parameters(source).items()}
    pieces: list[str] = []
    starts, origins, kept = [0], [0], [True]
    length = before = 0
    for part in _PARTS.finditer(source.text):
        if part[2] is None:
            continue
        value = _value(source, part, values)
        pieces += (source.text[before : part.start()], value)
        for piece, origin, stays in ((pieces[-2], part.start(), False), (value, part.end(), True)):
            length += len(piece)
            starts.append(length)
            origins.append(origin)
            kept.append(stays)
        before = part.end()
    pieces.append(source.text[before:])
    return Filled(PtoSource(source.file, "".join(pieces)), tuple(starts), tuple(origins), tuple(kept))


def _value(source: PtoSource, part: re.Match[str], values: Mapping[str, Value]) -> str:
    """Return the text that replaces one `${...}`."""
    span = source.span(part.start(), part.end() - part.start())
    if not part[3]:
        raise ReadError("'${' is not closed on its line", span=span, legal=("${NAME}", "${NAME*2}"))
    expression = Expression(part[2], span)
    unknown = next((name for name in expression.names if name not in values), None)
    if unknown is not None:
        raise ReadError(
            f"parameter {unknown} is not declared", span=span,
            legal=(*values, f"// castsim: parameter {unknown} = VALUE"),
        )  # fmt: skip
    return str(expression.value(values))


def with_values(text: str, file: str, values: Mapping[str, Value]) -> str:
    """Return a text with other defaults of its parameters, otherwise unchanged.

    Raises:
        ReadError: see `parameters`; also a parameter that the text does not declare.
    """
    declared = parameters(PtoSource(file, text))
    for name in values:
        if name not in declared:
            raise unknown_parameter(name, declared, file)
    places = sorted((declared[name].default_at, str(value)) for name, value in values.items())
    for (start, end), value in reversed(places):
        text = text[:start] + value + text[end:]
    return text


def unknown_parameter(name: str, declared: Mapping[str, Parameter], file: str, span: Span | None = None) -> ReadError:
    """Return (do not raise) the error about a parameter that a program lacks."""
    legal = tuple(declared) or (f"// castsim: parameter {name} = VALUE in the program, ${{{name}}} where it is used",)
    return ReadError(f"'{name}' is not a parameter of {file}", span=span, legal=legal)


# Options of the target that a program names itself: comments `// castsim: option NAME=VALUE`.
#
# Source: docs/reference/micro.md section 1.8.

_COMMENT = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+"|//([^\n]*+)')
_OPTION = re.compile(r"\s*castsim:\s*option\b\s*")
_ASSIGNMENT = re.compile(r"([\w-]+)=(\S+)\s*")


@dataclass(frozen=True, slots=True)
class NamedOption:
    """An option that a program names, and its position."""

    name: str
    value: str
    span: Span


def options_named(text: str, file: str) -> tuple[NamedOption, ...]:
    """Return the options that a text names, in order.

    Raises:
        ReadError: a line is not of the form NAME=VALUE, or an option is given twice.
    """
    if "castsim:" not in text:
        return ()
    options: dict[str, NamedOption] = {}
    for option in _options(PtoSource(file, text)):
        if option.name in options:
            raise ReadError(
                f"option {option.name} is given again, after line {options[option.name].span.line}", span=option.span
            )
        options[option.name] = option
    return tuple(options.values())


def _options(source: PtoSource) -> Iterator[NamedOption]:
    for comment in _COMMENT.finditer(source.text):
        head = None if comment[1] is None else _OPTION.match(source.text, comment.start(1), comment.end())
        if head is None:
            continue
        given = _ASSIGNMENT.fullmatch(source.text, head.end(), comment.end())
        if given is None:
            raise source.error(
                "set an option as NAME=VALUE", head.end(), max(1, comment.end() - head.end()),
                ("// castsim: option NAME=VALUE",),
            )  # fmt: skip
        yield NamedOption(given[1], given[2], source.span(given.start(1), given.end(2) - given.start(1)))
