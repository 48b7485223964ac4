"""The notation of statements: one row of text for each, used for both reading and printing.

A row is a statement as the printer writes it, with items for the variable parts:

    %value = pto.load_scalar %base[%offset:index] : $base_type:pointer=base -> $type:element

`%f` is a value, `%f:index` one of that type, `%f*2` two with a comma between, `%f*` any number up to the bracket
after it; left of `=` it is the result. `$f:kind` is a type of a kind (`_TYPES`); `$f:kind=g` is also that of the values
`g`, with errors reported at the type, and `$f:kind@g` one with errors reported at the value. `{f:kind}` is a word
of a kind (`WORDS`, or those of the row), which is optional together with the blank before it. `f` is the field of
the node, none for constant text; NAME is one of several names. All other text is literal.

Grammar: docs/reference/pto.md section 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import WarningKind, closest
from castsim.isa.formats import Saturation
from castsim.isa.pto.lexer import TokenKind
from castsim.isa.pto.program import (
    MultiTileType,
    Operation,
    Pipe,
    PointerType,
    RoundMode,
    ScalarType,
    TileType,
    Type,
    ViewType,
)
from castsim.isa.pto.statement_reader import Handler, NamedOperation, PtoReader, Use
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import element_format
from castsim.isa.pto.vector_operations import CHOOSING, DIRECTIONS, VECTOR_OPERATIONS, Kind, Role, VectorOperation

# Attribute dictionaries, and the enumerations that stand in them.
#
# An attribute value is kept as canonical text: single blanks, `#pto<round_mode RINT>` for both spellings of a dialect
# attribute. Source: docs/reference/pto.md sections 1.1, 3 and 3.1.

ROUND_MODES: dict[str, RoundMode] = {mode.name: mode for mode in RoundMode}
SATURATIONS: dict[str, Saturation] = {mode.name: mode for mode in Saturation}
PIPES: dict[str, Pipe] = {pipe.value: pipe for pipe in Pipe}
EVENTS: dict[str, int] = {f"EVENT_ID{number}": number for number in range(8)}
LAYOUTS = ("nd", "dn", "nz")
ENDPOINTS: dict[str, Pipe] = {
    "TLOAD": Pipe.MTE2,
    "TSTORE_VEC": Pipe.MTE3,
    "TSTORE_ACC": Pipe.FIX,
    "TMOV_M2L": Pipe.MTE1,
    "TMOV_M2B": Pipe.MTE1,
    "TVEC": Pipe.V,
    "TVECWAIT_EVENT": Pipe.V,
    "TMATMUL": Pipe.M,
    "TMOV_M2V": Pipe.V,
    "TMOV_M2S": Pipe.FIX,
    "TMOV_V2M": Pipe.FIX,
}
"""Pipe of each event endpoint (docs/reference/pto.md section 3.4)."""

_MODE_NAMES = ("round_mode", "saturation_mode")
# The front end prints these three with a blank, all others with a dot.
_BLANK_FORM = ("round_mode", "saturation_mode", "cmp", "quant_type", "quant_scale_alg", "mx_group_axis")
_DIALECT = re.compile(r"#pto(?:\.([A-Za-z_]\w*)\s*<\s*(\S*)\s*>|\s*<\s*([A-Za-z_]\w*)\s+(\S+)\s*>)")
_BARE_KEY = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+)")


@dataclass(slots=True)
class Attribute:
    """One entry: its canonical value text (empty for a unit attribute) and the tokens of key and value."""

    text: str
    key_index: int
    value_index: int


Attributes = dict[str, Attribute]


def read_attributes(reader: PtoReader, into: Attributes | None = None) -> Attributes:
    """Read `{key = value, ...}`, if present, into `into`.

    Raises:
        ReadError: a value is malformed, or a key is given twice.
    """
    attributes: Attributes = {} if into is None else into
    if reader.take("{"):
        reader.nest()
        if not reader.take("}"):
            _read_entry(reader, attributes)
            while reader.take(","):
                _read_entry(reader, attributes)
            if not reader.take("}"):
                reader.unexpected("',' or '}'", (",", "}"))
        reader.unnest()
    return attributes


def sorted_texts(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """Return the pairs of key and value text, by key."""
    return tuple(sorted((key, attribute.text) for key, attribute in attributes.items()))


def format_attributes(pairs: tuple[tuple[str, str], ...]) -> str:
    """Return `{key = value, ...}` as the parser reads it, empty for no attributes."""
    if not pairs:
        return ""
    entries = []
    for key, text in pairs:
        name = key if _BARE_KEY.fullmatch(key) else f'"{key}"'
        entries.append(f"{name} = {text}" if text else name)
    return f"{{{', '.join(entries)}}}"


def enum_word(reader: PtoReader, attribute: Attribute, name: str, legal: Collection[str]) -> str:
    """Return VALUE of `#pto<NAME VALUE>`, which must be one of `legal`; that of a mode may have the prefix CAST_.

    Raises:
        ReadError: it is another kind of attribute (the message has the spellings), or the value is unknown.
    """
    match = _DIALECT.fullmatch(attribute.text)
    if match is None or (match.group(1) or match.group(3)) != name:
        spellings = tuple(f"#pto<{name} {word}>" if name in _BLANK_FORM else f"#pto.{name}<{word}>" for word in legal)
        actual = f"found {attribute.text}" if attribute.text else "no value is given"
        raise reader.error(f"expected a value of {name}, {actual}", attribute.value_index, spellings)
    word = enum_value(attribute.text)
    bare = word.removeprefix("CAST_") if name in _MODE_NAMES else word
    if bare in legal:
        return bare
    raise reader.error(f"unknown {name} '{word}'", attribute.value_index, legal)


@lru_cache(1024)
def enum_value(text: str) -> str:
    """Return VALUE of the text `#pto<NAME VALUE>` of a parsed attribute."""
    match = _DIALECT.fullmatch(text)
    assert match is not None
    value: str = match.group(2) if match.group(1) else match.group(4)
    return value


def bare_word(text: str) -> str:
    """Return the word of an attribute's text, without quotes or enumeration frame."""
    return enum_value(text) if text.startswith("#pto") and "<" in text else text.strip('"')


def check_keys(reader: PtoReader, attributes: Attributes, legal: tuple[str, ...], owner: str) -> None:
    """Reject unknown keys; a key of another dialect (with a dot) only brings a warning, as it has no effect here."""
    for key, attribute in attributes.items():
        if key not in legal:
            unknown_key(reader, owner, key, attribute.key_index, legal)


def unknown_key(
    reader: PtoReader, owner: str, key: str, index: int, legal: Iterable[str], everything_up_to: int = 12
) -> None:
    """Reject a key that an operation lacks; warn of one of another dialect."""
    if "." not in key:
        near = closest(key, legal, everything_up_to=everything_up_to)
        raise reader.error(f"{owner} has no attribute '{key}'", index, near)
    message = f"unknown attribute {key} of {owner} is ignored"
    reader.warn(WarningKind.ATTRIBUTE, message, reader.span(index))


def _read_entry(reader: PtoReader, attributes: Attributes) -> None:
    key_index = reader.position
    if reader.kinds[key_index] not in (TokenKind.WORD, TokenKind.STRING):
        reader.unexpected("an attribute name")
    reader.position += 1
    key = reader.texts[key_index]
    if reader.kinds[key_index] is TokenKind.STRING:
        key = key[1:-1]
    if not key:
        raise reader.error("an attribute name is empty", key_index)
    if key in attributes:
        raise reader.error(f"attribute '{key}' is given twice", key_index)
    if reader.take("="):
        value_index = reader.position
        attributes[key] = Attribute(read_value(reader), key_index, value_index)
    else:
        attributes[key] = Attribute("", key_index, key_index)


def read_value(reader: PtoReader) -> str:
    """Read an attribute value and return it as canonical text."""
    index = reader.position
    kind, text = reader.kinds[index], reader.texts[index]
    if text in ("[", "{"):
        return _read_nested(reader)
    if text == "(" or kind in (TokenKind.PUNCTUATION, TokenKind.VALUE, TokenKind.BLOCK, TokenKind.END):
        reader.unexpected("an attribute value")
    reader.position += 1
    if kind is TokenKind.ATTRIBUTE:
        return _canonical(text)
    if kind is TokenKind.NUMBER and reader.take(":"):
        return f"{text} : {reader.next_of(TokenKind.WORD, 'a type')}"
    if kind is TokenKind.WORD and reader.at("<"):
        raise reader.error(f"attribute value '{text}<...>' is not supported", index)
    return " ".join(text.split()) if kind is TokenKind.TYPE else text


def _read_nested(reader: PtoReader) -> str:
    reader.nest()
    if reader.take("["):
        text = f"[{', '.join(reader.listed(lambda: read_value(reader), ']'))}]"
    else:
        text = format_attributes(sorted_texts(read_attributes(reader))) or "{}"
    reader.unnest()
    return text


@lru_cache(1024)
def _canonical(text: str) -> str:
    """Convert both spellings of a dialect attribute to one."""
    match = _DIALECT.fullmatch(text)
    if match is None:
        return " ".join(text.split())
    name, word = (match.group(1), match.group(2)) if match.group(1) else (match.group(3), match.group(4))
    return f"#pto<{name} {word}>" if name in _BLANK_FORM else f"#pto.{name}<{word}>"


SCALAR_BITS = {"index": 64, "i1": 1, "bf16": 16} | {f"{k}{n}": n for k in "iuf" for n in (8, 16, 32, 64)}
"""Width of every scalar type; `index` has 64 bits."""
FLOATS = ("f16", "bf16", "f32", "f64")
"""Scalar types that are floats."""
SIGNLESS = ("index", "i1", "i8", "i16", "i32", "i64")
"""Scalar types of `arith` that are integers."""
INDEX = ScalarType("index")

_ITEM = re.compile(
    r"%(?P<value>\w+)(?P<count>\*\d*)?(?::(?P<of>\w+))?"
    r"|\$(?P<type>\w*):(?P<kind>\w+)(?:(?P<at>[=@])(?P<typed>\w+))?"
    r"|(?P<blank> ?)\{(?P<word>\w*):(?P<spelling>\w+)\}"
    r"|(?P<sign>->|\w+|\S)"
)
_ROW = re.compile(r"(?:%(?P<result>\w+) = )?(?P<name>[\w.]+)(?P<rest>.*)")


class StatementReading:
    """A partly read statement: fields of its node, uses of values by field, tokens of types by field.

    `known` and `extents` are the properties of the result that are constant in the text, `result` its type if it is not
    a field.
    """

    known: int | None = None
    extents: tuple[int | None, ...] | None = None
    result: Type | None = None

    def __init__(self, reader: PtoReader, statement: NamedOperation, fixed: Mapping[str, object]) -> None:
        self.reader = reader
        self.statement = statement
        self.values: dict[str, Any] = {**fixed}
        self.uses: dict[str, Sequence[Use]] = {}
        self.tokens: dict[str, int] = {}

    @property
    def element(self) -> str:
        """The element type of the pointer or tile of an access; empty for other statements."""
        return getattr(self.values.get("base_type"), "element", "")

    def keep_uses(self, field: str, uses: Sequence[Use], kind: Type | None = None) -> None:
        """Store the values of a field, which must have the given type, if any."""
        self.uses[field], self.values[field] = uses, tuple([use[0] for use in uses])
        if kind is not None:
            self.check_uses(field, kind)

    def constants(self, field: str) -> tuple[int | None, ...]:
        """Return the numbers of the values of a field, None for those that are not constant."""
        return tuple([use[2].constant for use in self.uses[field]])

    def check_uses(self, field: str, kind: Type, index: int | None = None) -> None:
        """Reject a field's values of another type; the error is at the token, or at the value."""
        for use in self.uses[field]:
            if use[2].type is not kind:
                self.reader.check_use(use, kind, index)


_Step = Callable[[StatementReading], None]


class FormWord(NamedTuple):
    """A kind of word: its reader into a field, and its writer from a node's field."""

    read: Callable[[StatementReading, str], object]
    text: Callable[[Any, str], str]


class StatementForm:
    """A row: its text, its node, its names if there are several, and additional checks (`finish`).

    `fixed` are fields of the node that are equal in all statements of the row: they identify it for the printer. `name`
    returns the name of a node; without it, the first one.
    """

    def __init__(
        self,
        text: str,
        node: Callable[..., Operation],
        names: Iterable[str] = (),
        finish: Callable[[StatementReading], None] | None = None,
        *,
        name: Callable[[Any], str] | None = None,
        words: Mapping[str, FormWord] | None = None,
        **fixed: object,
    ) -> None:
        match = _ROW.fullmatch(text)
        assert match is not None
        self.node = node
        self.names = tuple(names) or (match["name"],)
        self._result, self._rest = match["result"], match["rest"]
        self._finish = finish
        self._name = name or (lambda _: self.names[0])
        self._words = {**WORDS, **(words or {})}
        self._fixed = fixed

    @property
    def handlers(self) -> dict[str, Handler]:
        """The reader of each name."""
        return dict.fromkeys(self.names, self.read)

    # ---------------------------------------------------------------------------------------------------- reading

    def read(self, reader: PtoReader, statement: NamedOperation) -> Operation:
        """Read the text after the name.

        Raises:
            ReadError: the row lacks a token, or a value or type is of another kind.
        """
        if self._result is None:
            statement.no_result(reader)
        reading = StatementReading(reader, statement, self._fixed)
        texts = reader.texts
        for sign, step in self._steps:
            if step is not None:
                step(reading)
            elif texts[reader.position] == sign:
                reader.position += 1
            else:
                reader.unexpected(f"'{sign}'", (sign,))
        if self._finish is not None:
            self._finish(reading)
        values = reading.values
        if self._result is not None:
            name = statement.define_one(reader, reading.result or values["type"], reading.known)
            if reading.extents is not None:
                reader.scope.note_extents(name, reading.extents)
            values[self._result] = name
        return self.node(**values, span=statement.span)

    @cached_property
    def _steps(self) -> list[tuple[str, _Step | None]]:
        steps: list[tuple[str, _Step | None]] = []
        items = [match.groupdict() for match in _ITEM.finditer(self._rest)]
        for number, item in enumerate(items):
            if item["value"] is not None:
                closing = items[number + 1]["sign"] if item["count"] == "*" else None
                steps.append(("", _value_step(item["value"], item["count"], item["of"], closing)))
            elif item["kind"] is not None:
                steps.append(("", _type_step(item["type"], item["kind"], item["at"], item["typed"])))
            elif item["spelling"] is not None:
                steps.append(("", _word_step(item["word"], self._words[item["spelling"]])))
            elif number == 0 or items[number - 1]["count"] != "*":  # else it has been read with the list
                steps.append((item["sign"], None))
        return steps

    # --------------------------------------------------------------------------------------------------- printing

    def prints(self, node: Operation) -> bool:
        """Return whether the row writes a node of its class."""
        return not self._fixed or all(getattr(node, field) == value for field, value in self._fixed.items())

    def text(self, node: Operation) -> str:
        """Return a statement of the row, with its result and name."""
        head = "" if self._result is None else f"%{getattr(node, self._result)} = "
        template, items = self._template
        return f"{head}{self._name(node)}{template % tuple([item(node) for item in items])}"

    @cached_property
    def _template(self) -> tuple[str, list[Callable[[Any], str]]]:
        """The text after the name, `%s` for each item, and the writers of the items."""
        items: list[Callable[[Any], str]] = []
        text, end = "", 0
        for match in _ITEM.finditer(self._rest):
            if match["sign"] is None:
                text += self._rest[end : match.start()].replace("%", "%%") + "%s"
                items.append(self._writer(match))
                end = match.end()
        return text + self._rest[end:].replace("%", "%%"), items

    def _writer(self, match: re.Match[str]) -> Callable[[Any], str]:
        """Return the writer of one item."""
        value, kind, word = match["value"], match["type"], match["word"]
        if value is not None:
            return lambda node: values_text(getattr(node, value))
        if kind is not None:
            return (lambda node: format_type(getattr(node, kind))) if kind else (lambda _: str(match["kind"]))
        write, blank = self._words[match["spelling"]].text, match["blank"]
        return lambda node: f"{blank}{written}" if (written := write(node, word)) else ""


def values_text(names: str | Iterable[str]) -> str:
    """Return a value, or values, as operands."""
    return f"%{names}" if isinstance(names, str) else ", ".join(f"%{name}" for name in names)


def handlers_of(forms: Iterable[StatementForm]) -> dict[str, Handler]:
    """Return the reader of every name of some rows."""
    return {name: handler for form in forms for name, handler in form.handlers.items()}


def _value_step(field: str, count: str | None, of: str | None, closing: str | None) -> _Step:
    kind = None if of is None else ScalarType(of)
    number = int(count[1:]) if count and closing is None else 0

    def single_step(reading: StatementReading) -> None:
        use = reading.reader.operand()
        if kind is not None:
            reading.reader.check_use(use, kind)
        reading.uses[field], reading.values[field] = (use,), use[0]

    def several(reading: StatementReading) -> None:
        reader = reading.reader
        if closing is not None:
            uses = reader.listed(reader.operand, closing)
        else:
            uses = [reader.operand()]
            for _ in range(number - 1):
                reader.expect(",")
                uses.append(reader.operand())
        reading.keep_uses(field, uses, kind)

    return several if count else single_step


def _type_step(field: str, kind: str, at: str | None, typed: str | None) -> _Step:
    rules = _TYPES[kind]

    def step(reading: StatementReading) -> None:
        reader = reading.reader
        index = reader.position
        given = reader.type()
        for fits, message, legal in rules:
            if not fits(given, reading):
                message_text = message.format(
                    owner=reading.statement.name, text=reader.texts[index], kind=given, found=reading
                )
                raise reader.error(message_text, index, [template.format(found=reading) for template in legal])
        if field:
            reading.values[field], reading.tokens[field] = given, index
        if typed is not None:
            reading.check_uses(typed, given, index if at == "=" else None)

    return step


def _word_step(field: str, word: FormWord) -> _Step:
    read = word.read

    def step(reading: StatementReading) -> None:
        value = read(reading, field)
        if field:
            reading.values[field] = value

    return step


# What a type may have to be: each rule with its refusal, and what would be legal.

_Rule = tuple[Callable[[Any, StatementReading], bool], str, Iterable[str]]


def _is(kind: type, message: str, legal: Iterable[str]) -> _Rule:
    return (lambda given, _: isinstance(given, kind)), message, legal


_SCALAR = _is(ScalarType, "expected a scalar type", SCALAR_BITS)
_POINTER = _is(PointerType, "{owner} works on pointers, not on {text}", ("!pto.ptr<...>",))
_TYPES: Mapping[str, tuple[_Rule, ...]] = {
    "any": (),
    "scalar": (_SCALAR,),
    "integer": (
        _SCALAR,
        (lambda given, _: given.name in SIGNLESS, "{owner} needs signless integers, not {text}", SIGNLESS),
    ),
    "float": (_SCALAR, (lambda given, _: given.name in FLOATS, "{owner} needs floats, not {text}", FLOATS)),
    "index": ((lambda given, _: given == INDEX, "{owner}: the offset must have type index, not {text}", ("index",)),),
    "element": (
        (
            lambda given, found: isinstance(given, ScalarType) and given.name == found.element,
            "{owner}: the value must have the element type {found.element}, not {text}",
            ("{found.element}",),
        ),
    ),
    "pointer": (_POINTER,),
    "same": (
        _POINTER,
        (lambda given, found: given == found.values["type"], "{owner} cannot change the type of its pointer", ()),
    ),
    "tile": (_is(TileType, "{owner} takes tiles, not {text}", ("!pto.tile_buf<...>",)),),
    "vec_tile": (
        _is(TileType, "{owner} takes tiles, not {text}", ("!pto.tile_buf<vec, ...>",)),
        (lambda given, _: given.location == "vec", "{owner} accesses only vec tiles, not {kind.location}", ("vec",)),
    ),
    "tiles": (_is(MultiTileType, "{text} is not several tiles", ("!pto.multi_tile_buf<...>",)),),
    "view": (_is(ViewType, "expected a view type, found {text}", ("!pto.tensor_view<...>",)),),
}


# Words that statements of several kinds have.


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


_ENDPOINT_NAMES = ("pipe_event_type", "sync_op_type")


def _read_endpoint(reading: StatementReading, _: str) -> Pipe:
    reader = reading.reader
    text = reader.texts[reader.position]
    name = next((name for name in _ENDPOINT_NAMES if name in text), _ENDPOINT_NAMES[0])
    return ENDPOINTS[_read_word(reader, name, ENDPOINTS, quoted=False)]


def skip_flags(reader: PtoReader) -> None:
    """Skip `fastmath<...>` and `overflow<...>`, which permit a compiler optimisations that castsim does not perform."""
    while reader.at("fastmath") or reader.at("overflow"):
        reader.position += 1
        reader.expect("<")
        reader.listed(lambda: reader.next_of(TokenKind.WORD, "a flag"), ">")


def _no_keys(reading: StatementReading, _: str) -> None:
    """Read a dictionary that may be there and has no keys of this dialect."""
    check_keys(reading.reader, read_attributes(reading.reader), (), reading.statement.name)


def _read_typed(reading: StatementReading, _: str) -> tuple[str, ...]:
    """Read `%a, %b : T, U`, or nothing; the types are stored in `types`."""
    names, reading.values["types"] = reading.reader.typed_values()
    return names


def _typed_text(node: Any, _: str) -> str:
    return f"{values_text(node.values)} : {', '.join(map(format_type, node.types))}" if node.values else ""


def _pipe_text(node: Any, field: str) -> str:
    return f"<{getattr(node, field).value}>"


def nothing(*_: object) -> str:
    """Write nothing."""
    return ""


WORDS: Mapping[str, FormWord] = {
    "pipe": FormWord(lambda found, _: PIPES[_read_word(found.reader, "pipe", PIPES)], _pipe_text),
    "event": FormWord(
        lambda found, _: EVENTS[_read_word(found.reader, "event", EVENTS)], lambda node, _: f"<EVENT_ID{node.event}>"
    ),
    "endpoint": FormWord(_read_endpoint, _pipe_text),
    "flags": FormWord(lambda found, _: skip_flags(found.reader), nothing),
    "no_keys": FormWord(_no_keys, nothing),
    "typed": FormWord(_read_typed, _typed_text),
    "comma": FormWord(lambda found, _: found.reader.take(","), lambda *_: ","),
}
"""The kinds of words: pipes, events, an endpoint's pipe, compiler flags, a dictionary of other dialects, values with
their types, a comma that older printers omit."""


# Forms of operations that share a name: gathers and moves (docs/reference/pto.md sections 7.7 and 7.12).

_WHOLE = re.compile(r"-?\d{1,10}")

DIRECTION = "direction"
"""The attribute key for the direction of a gather by pattern, which has no key in the text."""


OFFSET = "offset"
"""The attribute of a gather by comparison that is added to the indices."""


def variant_of(mnemonic: str, attributes: Attributes, inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the mnemonic of an operation's form: gathers and moves have three."""
    if "maskPattern" in attributes:
        return f"{mnemonic}.mask"
    if mnemonic == "tgather" and (len(outputs) > 1 or any(isinstance(kind, ScalarType) for kind in inputs)):
        return f"{mnemonic}.compare"
    return f"{mnemonic}{_boxes(inputs, outputs)}" if mnemonic == "tmov" else mnemonic


def _boxes(inputs: Sequence[Type], outputs: Sequence[Type]) -> str:
    """Return the mnemonic suffix of a move of bytes into boxes of the vector unit's buffer: empty for other moves.

    With scratch it moves shared exponents (ZZ), otherwise codes (NZ).
    """
    if not inputs or any(not isinstance(kind, TileType) or kind.foreign for kind in inputs) or len(outputs) != 1:
        return ""
    (dst,) = outputs
    bits = element_format(dst.element).storage_bits if isinstance(dst, TileType) else 0
    if not isinstance(dst, TileType) or dst.location != "vec" or dst.scatter_layout != "row_major" or bits != 8:
        return ""
    boxed = {("row_major", 2): ".zz", ("col_major", 1): ".nz"}
    return boxed.get((dst.block_layout, len(inputs)), "")


def check_comparison(reader: PtoReader, attributes: Attributes) -> None:
    """Reject attributes that a gather by comparison cannot have: another comparison, or an offset other than an i32."""
    mode, offset = attributes.get("cmpMode"), attributes.get(OFFSET)
    if mode is not None:
        enum_word(reader, mode, "cmp", CHOOSING)
    if offset is not None and offset_of(offset.text) is None:
        raise reader.error(f"{OFFSET} must be an i32 number, not {offset.text}", offset.value_index, ("0 : i32",))


def offset_of(text: str) -> int | None:
    """Return the number of `5 : i32` or `5`, otherwise None."""
    number, _, kind = text.partition(" : ")
    return int(number) if kind in ("", "i32") and _WHOLE.fullmatch(number) and abs(int(number)) < 1 << 31 else None


def types_by_pattern(reader: PtoReader, attributes: Attributes) -> list[tuple[Type, int]]:
    """Read `type [, "row"]`, the text after the colon of a gather by pattern."""
    index = reader.position
    types = [(reader.type(), index)]
    if reader.take(","):
        index = reader.position
        text = reader.next_of(TokenKind.STRING, "a direction", DIRECTIONS)
        if text not in DIRECTIONS:
            raise reader.error(f"unknown direction {text}", index, DIRECTIONS)
        attributes[DIRECTION] = Attribute(text, index, index)
    return types


# Forms of vector operations without the tmp tile that older assemblers want.
#
# Newer ones give the operation a tile of its own (docs/reference/pto.md section 1.3).

_SPARED = (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT, Kind.SELECT)
"""Kinds whose older forms all have a tmp tile."""

Form = tuple[Role, ...]


def legal_forms(operation: VectorOperation) -> tuple[Form, ...]:
    """Return the operand lists that any assembler accepts."""
    if operation.kind not in _SPARED:
        return operation.forms
    return operation.forms + tuple(_without(form) for form in operation.forms if Role.TMP in form)


def form_of(operation: VectorOperation, types: Sequence[Type]) -> Form | None:
    """Return the form for operands of these types; None if there is none."""
    scalar = [isinstance(kind, ScalarType) for kind in types]
    return next((form for form in legal_forms(operation) if [role is Role.SCALAR for role in form] == scalar), None)


def scratch_of(mnemonic: str, names: Sequence[str], types: Sequence[Type]) -> tuple[str, ...]:
    """Return the scratch tiles among the operands of an operation."""
    operation = VECTOR_OPERATIONS.get(mnemonic)
    form = () if operation is None else form_of(operation, types) or ()
    return tuple(name for role, name in zip(form, names, strict=False) if role is Role.TMP)


def form_with_tmp(operation: VectorOperation, form: Form) -> Form | None:
    """Return the form with a tmp tile in addition to these operands; None if there is none or they include one."""
    return next(
        (candidate for candidate in operation.forms if Role.TMP in candidate and _without(candidate) == form), None
    )


def is_older(operation: VectorOperation, form: Form, *, binary: bool) -> bool:
    """Return whether older assemblers support a form too; `binary` tells whether it has that attribute."""
    return form in operation.forms and not (binary and Role.TMP not in form)


def _without(form: Form) -> Form:
    return tuple(role for role in form if role is not Role.TMP)
