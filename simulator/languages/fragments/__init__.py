"""Fragments of tile programs from a command line, completed to whole programs.

A statement is `tcvt SRC -> DST ROWSxCOLS [MODE] [sat|nosat] [tmp]`, or `OPERATION TYPE ROWSxCOLS [NUMBER]` for an
elementwise operation; `;` or a new line separates statements. A statement takes the result of the previous one,
if that has its type and shape. All its other operands are inputs, loaded first; the last result, and every
unused result, is stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import IllegalError, ReadError, SourceText, Span, closest
from castsim.isa.formats import FORMATS, FloatFormat, Format, format_named
from castsim.isa.pto.program import PartitionType, PointerType, ScalarType, TileType, ViewType
from castsim.isa.pto.statement_forms import ROUND_MODES
from castsim.isa.pto.types import format_type
from castsim.isa.pto.value_types import BLOCK_BITS
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.isa.reading import Language, Source
from castsim.machines.mechanisms import tile_target
from castsim.running.languages import FRAGMENT_NAME, Fragment
from castsim.targets.loader import Target, TileTarget

_BYTE = 8

_STATEMENT = re.compile(r"[^;\n]+")
_WORD = re.compile(r"->|[^\s:,]+")
_SHAPE = re.compile(r"(\d{1,9})x(\d{1,9})")
_SATURATION = {"sat": "ON", "nosat": "OFF"}
_CAST = "tcvt"
_CAST_FORM = "tcvt SRC -> DST ROWSxCOLS [MODE] [sat|nosat] [tmp]"
_FORM = "OPERATION TYPE ROWSxCOLS [NUMBER]"

OPERATIONS = tuple(
    name
    for name, row in VECTOR_OPERATIONS.items()
    if row.kind is Kind.ELEMENTWISE and row.forms and set(row.forms[0]) <= {Role.SOURCE, Role.SCALAR}
)
"""Elementwise operations that a fragment may name, in addition to `tcvt`."""


def whole(text: str, target: Target) -> Fragment:
    """Return a fragment completed for a target; assembly bundles already form a program.

    Raises:
        ReadError: it is empty or malformed; the error has its position.
        IllegalError: it has a tmp tile, and the target's casts have none.
    """
    if not target.has_tiles:
        return Fragment(Source(FRAGMENT_NAME, Language.ASSEMBLY, text))
    source = SourceText(FRAGMENT_NAME, text)
    statements = [
        [
            _Word(word_match[0], Span.within(source, word_match.start(), len(word_match[0])))
            for word_match in _words(text, match)
        ]
        for match in _STATEMENT.finditer(text)
    ]
    named = {word.text.lower() for words in statements for word in words}
    narrowest = min((fmt.bits for name, fmt in FORMATS.items() if name in named), default=_BYTE)
    writer = _FragmentWriter(tile_target(target), BLOCK_BITS // max(narrowest, 1))
    for words in filter(None, statements):
        writer.statement(words)
    if not writer.results:
        raise ReadError("the fragment is empty", legal=(_CAST_FORM, _FORM))
    return writer.fragment()


def _words(text: str, match: re.Match[str]) -> Iterator[re.Match[str]]:
    return _WORD.finditer(text, match.start(), match.end())


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    span: Span

    def error(self, message: str, *legal: str) -> ReadError:
        """Return (do not raise) the error about the word."""
        return ReadError(message, span=self.span, legal=legal)


@dataclass(frozen=True, slots=True)
class _Value:
    """A tile that a statement reads or produces."""

    name: str
    format: Format
    rows: int
    cols: int
    statement: Span


@dataclass
class _FragmentWriter:
    target: TileTarget
    step: int
    """Step of the tiles' columns: whole blocks of 32 bytes of the narrowest type, because casts keep the shape."""
    inputs: list[_Value] = field(default_factory=list)
    results: list[_Value] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    declared: list[tuple[str, Span]] = field(default_factory=list)
    body: list[tuple[str, Span]] = field(default_factory=list)

    # ------------------------------------------------------------------------------------------------ statements

    def statement(self, words: list[_Word]) -> None:
        """Read one statement."""
        first = words[0]
        name = first.text.removeprefix("pto.").lower()
        if name == _CAST:
            self._cast(first, words[1:])
        elif name in OPERATIONS:
            self._operation(name, first, words[1:])
        else:
            near = closest(name, (_CAST, *OPERATIONS), everything_up_to=0)
            raise first.error(
                f"'{first.text}' is neither {_CAST} nor an element-wise operation", *(near or (_CAST_FORM, _FORM))
            )

    def _cast(self, first: _Word, words: list[_Word]) -> None:
        if len(words) < 4 or words[1].text != "->":
            raise (words[1] if len(words) > 1 else first).error("expected a cast", _CAST_FORM)
        src, dst, (rows, cols) = _format(words[0]), _format(words[2]), _shape(words[3])
        attributes: dict[str, str] = {}
        tmp = False
        for word in words[4:]:
            mode = word.text.upper().removeprefix("CAST_")
            if mode in ROUND_MODES and "rmode" not in attributes:
                attributes["rmode"] = f"rmode = #pto<round_mode {mode}>"
            elif word.text.lower() in _SATURATION and "sat" not in attributes:
                attributes["sat"] = f"sat_mode = #pto<saturation_mode {_SATURATION[word.text.lower()]}>"
            elif word.text.lower() == "tmp" and not tmp:
                tmp = True
            else:
                raise word.error(
                    f"'{word.text}' cannot be used here", *map(str.lower, ROUND_MODES), *_SATURATION, "tmp"
                )
        source, result = self._source(src, rows, cols, first), self._result(dst, rows, cols, first)
        names, kinds = f"%{source.name}", self._kind(source)
        if tmp:
            name, kind = self._tmp(source, result, first)
            names, kinds = f"{names}, {name}", f"{kinds}, {kind}"
        listed = f" {{{', '.join(attributes.values())}}}" if attributes else ""
        self._add(f"pto.tcvt ins({names}{listed} : {kinds}) outs(%{result.name} : {self._kind(result)})", first.span)

    def _operation(self, name: str, first: _Word, words: list[_Word]) -> None:
        roles = VECTOR_OPERATIONS[name].forms[0]
        numbers = sum(role is Role.SCALAR for role in roles)
        if len(words) != 2 + numbers:
            form = f"{name} TYPE ROWSxCOLS{' NUMBER' * numbers}"
            raise (words[2 + numbers] if len(words) > 2 + numbers else first).error(f"expected {name}", form)
        fmt, (rows, cols) = _format(words[0]), _shape(words[1])
        operands: list[str] = []
        kinds: list[str] = []
        for role in roles:
            if role is Role.SCALAR:
                operand, kind = self._number(words[2], fmt)
            else:
                source = self._source(fmt, rows, cols, first, fresh=bool(operands))
                operand, kind = f"%{source.name}", self._kind(source)
            operands.append(operand)
            kinds.append(kind)
        result = self._result(fmt, rows, cols, first)
        self._add(
            f"pto.{name} ins({', '.join(operands)} : {', '.join(kinds)}) outs(%{result.name} : {self._kind(result)})",
            first.span,
        )

    def _number(self, word: _Word, fmt: Format) -> tuple[str, str]:
        try:
            float(word.text)
        except ValueError:
            raise word.error(f"'{word.text}' is not a number", "2", "0.5") from None
        name, kind = f"%k{len(self.declared)}", format_type(ScalarType(fmt.name))
        point = ".0" if isinstance(fmt, FloatFormat) and word.text.lstrip("+-").isdecimal() else ""
        self.declared.append((f"{name} = arith.constant {word.text}{point} : {kind}", word.span))
        return name, kind

    def _tmp(self, source: _Value, result: _Value, first: _Word) -> tuple[str, str]:
        """Declare a tmp tile of the size that the cast needs if the target's casts use one."""
        if not self.target.casts_use_scratch:
            raise IllegalError(f"casts on {self.target.name} use no tmp tile", span=first.span)
        from castsim.machines.strided.plan import packed_need  # noqa: PLC0415 - few fragments have one

        size = packed_need(self.target, (source.format, result.format), (None, None), source.rows, source.cols).total
        block = self.target.block_bytes
        cols = max(block, -(-size // block) * block) // 4
        name, kind = f"%tmp{len(self.declared)}", format_type(TileType("vec", "i32", 1, cols, 1, cols))
        self.declared.append((f"{name} = pto.alloc_tile : {kind}", first.span))
        return name, kind

    def _source(self, fmt: Format, rows: int, cols: int, first: _Word, *, fresh: bool = False) -> _Value:
        """Return the operand of a statement: the previous result, or an input."""
        last = self.results[-1] if self.results and not fresh else None
        if last is not None and (last.format, last.rows, last.cols) == (fmt, rows, cols):
            self.taken.add(last.name)
            return last
        self.inputs.append(_Value(f"in{len(self.inputs)}", fmt, rows, cols, first.span))
        return self.inputs[-1]

    def _result(self, fmt: Format, rows: int, cols: int, first: _Word) -> _Value:
        self.results.append(_Value(f"out{len(self.results)}", fmt, rows, cols, first.span))
        return self.results[-1]

    def _kind(self, value: _Value) -> str:
        cols = -(-value.cols // self.step) * self.step
        return format_type(TileType("vec", value.format.name, value.rows, cols, value.rows, value.cols))

    def _add(self, line: str, span: Span) -> None:
        self.body.append((line, span))

    # -------------------------------------------------------------------------------------------------- the whole

    def fragment(self) -> Fragment:
        """Return the whole program."""
        stored = [stored_value for stored_value in self.results if stored_value.name not in self.taken]
        named = [*_named("src", self.inputs), *_named("dst", stored)]
        arguments = ", ".join(f"%{name}: {format_type(PointerType(value.format.name))}" for name, value in named)
        start = named[0][1].statement
        lines = [
            (f'module attributes {{pto.target_arch = "{self.target.architectures[0]}"}} {{', start),
            (f"func.func @fragment({arguments}) attributes {{pto.entry}} {{", start),
            ("%c0 = arith.constant 0 : index", start),
            ("%c1 = arith.constant 1 : index", start),
        ]
        for extent in sorted({extent for _, value in named for extent in (value.rows, value.cols)}):
            lines.append((f"%n{extent} = arith.constant {extent} : index", start))
        lines += self.declared
        lines += [line for name, value in named for line in _part(name, value)]
        for value in (*self.inputs, *self.results):
            lines.append((f"%{value.name} = pto.alloc_tile : {self._kind(value)}", value.statement))
        for name, value in _named("src", self.inputs):
            line = f"pto.tload ins(%p_{name} : {_part_type(value)}) outs(%{value.name} : {self._kind(value)})"
            lines.append((line, value.statement))
        lines += self.body
        for name, value in _named("dst", stored):
            line = f"pto.tstore ins(%{value.name} : {self._kind(value)}) outs(%p_{name} : {_part_type(value)})"
            lines.append((line, value.statement))
        lines += [("return", start), ("}", start), ("}", start)]
        text = "".join(f"{line}\n" for line, _ in lines)
        places = {number: span for number, (_, span) in enumerate(lines, 1)}
        return Fragment(Source(FRAGMENT_NAME, Language.TILES, text), places)


def _named(word: str, values: list[_Value]) -> list[tuple[str, _Value]]:
    """Return the arguments for values: `src` for a single one, otherwise `src0` and so on."""
    return [(word if len(values) == 1 else f"{word}{number}", value) for number, value in enumerate(values)]


def _part(name: str, value: _Value) -> list[tuple[str, Span]]:
    view, extents = format_type(ViewType((None, None), value.format.name)), f"[%n{value.rows}, %n{value.cols}]"
    return [
        (
            f"%v_{name} = pto.make_tensor_view %{name}, shape = {extents}, strides = [%n{value.cols}, %c1] : {view}",
            value.statement,
        ),
        (
            f"%p_{name} = pto.partition_view %v_{name}, offsets = [%c0, %c0], sizes = {extents} : {view} -> "
            f"{_part_type(value)}",
            value.statement,
        ),
    ]


def _part_type(value: _Value) -> str:
    return format_type(PartitionType((value.rows, value.cols), value.format.name))


def _format(word: _Word) -> Format:
    try:
        return format_named(word.text)
    except ReadError as error:
        raise error.at(word.span) from None


def _shape(word: _Word) -> tuple[int, int]:
    match = _SHAPE.fullmatch(word.text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise word.error(f"'{word.text}' is not a shape", "ROWSxCOLS, such as 16x512")
    return int(match[1]), int(match[2])
