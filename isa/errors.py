"""Errors and warnings with their places in a text; errors have an exit code and legal alternatives."""

from __future__ import annotations

import inspect
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache, wraps
from importlib.util import find_spec
from itertools import chain
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import ClassVar, ParamSpec, Self, TypeVar

from castsim.isa.dataclass import dataclass, field

# Places in a source text: offsets into the one text, from which line and column are made on demand.

SHOWN = 200
"""Maximum number of characters of a source line in a listing or a message: a line may be as long as the file."""


class SourceText:
    """A text under its file name, which locates any offset in it; its first line may have any number."""

    __slots__ = ("_first_line", "_starts", "file", "text")

    def __init__(self, file: str, text: str, first_line: int = 1) -> None:
        self.file = file
        self.text = text
        self._first_line = first_line
        self._starts: list[int] = []

    def place(self, offset: int) -> tuple[int, int]:
        """Return the number of the line that contains an offset, and the offset at which that line begins."""
        index = bisect_right(self._line_starts(), offset) - 1
        return self._first_line + index, self._starts[index]

    def line_end(self, offset: int) -> int:
        """Return the offset of the end of the line that contains an offset."""
        starts = self._line_starts()
        index = bisect_right(starts, offset)
        end = starts[index] - 1 if index < len(starts) else len(self.text)
        begin = starts[index - 1]
        while end > begin and self.text[end - 1] == "\r":
            end -= 1
        return end

    def _line_starts(self) -> list[int]:
        if not self._starts:
            self._starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        return self._starts


class Span:
    """A position in a source text.

    `line` and `column` count from 1; `length` is the number of characters to underline, cut at the end of the line;
    `text` is the whole source line, so a message can be printed after the file is gone. A span refers to the text it
    is in and stores two numbers: a program of one long line needs that line once, however many spans it has.
    """

    __slots__ = ("_length", "_offset", "_source")

    def __init__(self, file: str, line: int, column: int, text: str = "", length: int = 1) -> None:
        self._source = SourceText(file, text, line)
        self._offset = column - 1
        self._length = length

    @classmethod
    def within(cls, source: SourceText, offset: int, length: int = 1) -> Self:
        """Return the position of `length` characters from an offset of a text."""
        span = cls.__new__(cls)
        span._source = source
        span._offset = offset
        span._length = length
        return span

    @property
    def file(self) -> str:
        """Name of the file."""
        return self._source.file

    @property
    def line(self) -> int:
        """Number of the line."""
        return self._source.place(self._offset)[0]

    @property
    def column(self) -> int:
        """Number of the first character in its line."""
        return self._offset - self._source.place(self._offset)[1] + 1

    @property
    def length(self) -> int:
        """Number of characters, at least 1, none of them beyond the end of the line if the line is known."""
        if not self._source.text:
            return self._length
        return max(1, min(self._length, self._source.line_end(self._offset) - self._offset))

    @property
    def text(self) -> str:
        """The source line."""
        return self._source.text[self._source.place(self._offset)[1] : self._source.line_end(self._offset)]

    def excerpt(self, most: int = SHOWN) -> str:
        """Return the source line without surrounding blanks; for a long one, `most` characters from here on."""
        begin, end = self._source.place(self._offset)[1], self._source.line_end(self._offset)
        if end - begin > most:
            begin, end = self._offset, min(end, self._offset + most)
        return self._source.text[begin:end].strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self.file!r}, {self.line}, {self.column}, {self.excerpt()!r}, {self.length})"

    def _key(self) -> tuple[str, int, int, int]:
        return self.file, self.line, self.column, self.length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._key() == other._key() and self.text == other.text

    def __hash__(self) -> int:
        return hash(self._key())


# The base of all parts of a program that have a place in its source.

NOWHERE = Span("<none>", 1, 1)
"""The position of a part without a source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Anything with a position in the source."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# Text from files and names made safe to show: no character in it steers the terminal that prints it.
#
# A file may name a function `\x1b[2J`; shown raw, the terminal would obey. Sources of the sets: ECMA-48 (C0, DEL, C1),
# Unicode Standard Annex 9 (explicit directional formatting characters). Unicode's own line and paragraph separators
# are escaped as well, since some terminals and pagers end a line at them.

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 without tab and newline, DEL, C1, bidirectional controls, line and paragraph separator."""


def escaped(text: str) -> str:
    """Return text with every control character for terminals written as `\\xNN` or `\\uNNNN`.

    Tab and newline stay. A second call changes nothing.
    """
    return _STEERING.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


_CUT = "..."

_CURE = re.compile(r"--|-I |// castsim:|castsim |pip install ")
"""The beginnings of alternatives that are remedies, such as options and lines to add, instead of legal values."""


MOST_SUGGESTED = 5
"""Maximum number of values that a message suggests."""

_CLOSE = 0.5
"""Minimum similarity of a value that is a probable correction."""


def legal_text(values: Sequence[str], message: str, span: Span | None = None) -> str:
    """Return legal values in one line: all if there are few, otherwise close ones, first ones, and their number.

    Close values resemble the first word that the message quotes, or without quotes the source text at the caret.
    """
    if len(values) <= MOST_SUGGESTED:
        return ", ".join(values)
    quoted = re.search(r"'([^']+)'", message)
    marked = span.text[span.column - 1 :][: span.length] if span else ""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only a refusal needs it

    matcher = SequenceMatcher(b=(quoted[1] if quoted else marked)[:64].lower())
    likeness = {}
    for value in values:
        matcher.set_seq1(value.lower())
        likeness[value] = ratio if (ratio := matcher.ratio()) >= _CLOSE else 0
    nearest = sorted(likeness, key=lambda value: -likeness[value])[:MOST_SUGGESTED]
    return f"{', '.join(nearest)}, ... ({len(values)} in all)"


def pointed_at(span: Span, most: int = SHOWN) -> tuple[str, str]:
    """Return the source line of a position, at most `most` characters of it, and the line with the caret below it."""
    start = span.column - 1
    first = max(0, min(start - most // 2, len(span.text) - most))
    last = min(len(span.text), first + most)
    prefix = (_CUT if first else "") + escaped(span.text[first:start])
    behind = escaped(span.text[start:last]) + (_CUT if last < len(span.text) else "")
    # A tab before the caret must stay a tab, or the caret is misplaced on the reader's terminal.
    before = "".join("\t" if char == "\t" else " " for char in prefix)
    marked = len(escaped(span.text[start : min(last, start + span.length)]))
    return prefix + behind, f"{before}{'^' * max(1, marked)}"


_NOT_THE_READERS = ("castsim", "IPython")
"""Packages whose frames a notebook leaves out of a traceback."""


def notebook_traceback(error: CastsimError | EngineError) -> list[str]:
    """Return IPython's view of an error: the frames of the reader's own code, and the message as in `render`."""
    import traceback  # noqa: PLC0415 - only a failing cell needs it

    frames = [
        (frame, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _NOT_THE_READERS
    ]
    return [*traceback.StackSummary.extract(iter(frames)).format(), f"{type(error).__name__}: {error.render()}"]


class CastsimError(ValueError):
    """Base class of all refusals.

    `kind` names the class of the refusal in reports, `exit_code` is the exit code of the command line, `span` the place
    in the input (None: not in a file), `legal` lists the legal alternatives. `further` are the other errors of the
    same reading of a text, in its order.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, span: Span | None = None, legal: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.legal = tuple(legal)
        self.further: tuple[CastsimError, ...] = ()

    def at(self, span: Span) -> CastsimError:
        """Set the error's position if it has none yet, and return the error."""
        if self.span is None:
            self.span = span
        return self

    def render(self) -> str:
        """Return the message as `file:line:col: message`, the source line, a caret, and the legal alternatives.

        A message that already names the position, in brackets, for separate use, does not repeat it here. A long source
        line is cut around the caret, and terminal control characters are escaped.
        """
        head = f"{self.span}: {self.message.replace(f' ({self.span})', '')}" if self.span else self.message
        lines = [escaped(head)]
        if self.span and self.span.text:
            lines += (f"  {line}" for line in pointed_at(self.span))
        if self.values:
            lines.append(f"  legal: {escaped(legal_text(self.values, self.message, self.span))}")
        if self.cures:
            lines.append(f"  help: {escaped(', '.join(self.cures))}")
        return "\n".join(lines)

    @property
    def values(self) -> tuple[str, ...]:
        """The entries of `legal` that are values."""
        return tuple(choice for choice in self.legal if _CURE.match(choice) is None)

    @property
    def cures(self) -> tuple[str, ...]:
        """The entries of `legal` that are remedies: options, lines to add, commands."""
        return tuple(choice for choice in self.legal if _CURE.match(choice))

    def __str__(self) -> str:
        return self.render()

    _render_traceback_ = notebook_traceback


class ReadError(CastsimError):
    """Something typed or a file's form is unreadable: syntax, unknown name, undefined value, a bad `.npy`."""

    kind = "cannot be read"
    exit_code = 2


class IllegalError(CastsimError):
    """The target lacks a well-formed type pair, mode or operation."""

    kind = "not legal on this target"
    exit_code = 1


class TileError(CastsimError):
    """A tile, view or transfer has a shape, alignment or position that the target cannot use."""

    kind = "tile does not fit"
    exit_code = 1


class ScratchError(CastsimError):
    """The scratch (tmp) tile is smaller than the lowering needs."""

    kind = "scratch too small"
    exit_code = 1


class RaceError(CastsimError):
    """Nothing keeps instructions in the order that the result needs, or flags do not match."""

    kind = "race"
    exit_code = 1


class StaleReadError(CastsimError):
    """An instruction reads a register inside the latency window of a write, and stale reads stop the run."""

    kind = "stale read"
    exit_code = 1


class LimitError(CastsimError):
    """A limit that an option can raise is exceeded: statements of a text, work of a walk."""

    kind = "over a limit"
    exit_code = 1


class TargetDataError(CastsimError):
    """A target description is malformed, incomplete or contradicts itself."""

    kind = "target data wrong"
    exit_code = 2


class ErrorList:
    """The errors collected in one reading of a text."""

    MOST = 200
    """The number of errors after which reading stops, because the text is probably of another kind."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: list[CastsimError] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, error: CastsimError) -> bool:
        """Add an error and its further errors; return whether reading should continue."""
        further, error.further = error.further, ()
        self._found += (error, *further)
        return len(self._found) < self._most

    def take(self, error: CastsimError) -> None:
        """Add an error; raise all if reading should not continue.

        Raises:
            CastsimError: this was one too many, or a limit.
        """
        if not self.add(error) or isinstance(error, LimitError):
            self.raise_found()

    def raise_found(self) -> None:
        """Raise the collected errors, if any.

        Raises:
            CastsimError: the first error, with the others.
        """
        error = self.as_one()
        if error is not None:
            raise error

    def as_one(self) -> CastsimError | None:
        """Return the first error in text order, with the others as its `further`; None if there are none."""
        if not self._found:
            return None
        # Errors without a place are about the whole.
        first, *others = sorted(
            self._found, key=lambda error: (error.span.line, error.span.column) if error.span else (0, 0)
        )
        first.further = tuple(others)
        return first


class EngineError(RuntimeError):
    """The simulation cannot continue: a deadlock or the cycle limit. Not a `ValueError`: the program was legal."""

    kind: ClassVar[str] = "engine cannot go on"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def render(self) -> str:
        """Return the message as `file:line:col: message` with the source line and a caret."""
        return CastsimError(self.message, span=self.span).render()

    _render_traceback_ = notebook_traceback


# What a refusal offers instead: words near to a misspelt one, an option that raises a limit.


# Packages that castsim does without: each belongs to an extra, which pip installs by the name of castsim.


def installed(package: str) -> bool:
    """Return whether a package can be imported; nothing is loaded."""
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # something else was put in its place
        return False


def extra_command(extra: str) -> str:
    """Return the command that installs an extra: from the current folder, if that is a checkout of castsim."""
    try:
        is_checkout = '\nname = "castsim"\n' in Path("pyproject.toml").read_text(encoding="utf-8")
    except (OSError, ValueError):
        is_checkout = False
    return f"pip install '{'.' if is_checkout else 'castsim'}[{extra}]'"


def missing_package(what: str, package: str, extra: str) -> ReadError:
    """Return the error about the missing package for `what`, with the command that installs its extra."""
    return ReadError(f"{what} needs the package {package}, which is not installed", legal=(extra_command(extra),))


# Arguments of the functions that users call: their annotations say what they may be.

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")

_KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "Path": (PathLike,),
    "None": (type(None),),
    "int": (Integral,),
    "float": (Real,),
    "bool": (bool,),
    "Mapping": (Mapping,),
    "Sequence": (Iterable,),
}
"""Types by their names in annotations."""

_NAMED = {
    "Target": "TargetHeader",
    **{name: name for name in ("Limits", "Policy", "Quantised", "Result", "Specification")},
}
"""Classes of castsim by their names in annotations: the named class, or one derived from it."""

_BRACKETS = re.compile(r"\[[^\[\]]*\]")
"""The content of the innermost brackets of an annotation."""


def arguments_checked(function: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """Return a function that rejects arguments of other types than its annotations.

    Annotations with any other type accept every value.

    Raises:
        ReadError: the returned function got an argument of another type.
    """
    signature = inspect.signature(function)
    kinds = {name: _alternatives(str(parameter.annotation)) for name, parameter in signature.parameters.items()}
    accepted: set[tuple[str, type]] = set()

    @wraps(function)
    def checked(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        for name, value in chain(zip(kinds, args, strict=False), kwargs.items()):
            if (name, type(value)) in accepted:
                continue
            words = kinds.get(name, ())
            if not words or any(_is_a(value, word) for word in words):
                if not isinstance(value, float | Mapping):  # of these the value decides
                    accepted.add((name, type(value)))
            else:
                kind = type(value).__name__
                message = f"{function.__name__}: {name} has type {kind}{' with keys other than str' * (kind == 'dict')}"
                raise ReadError(message, legal=[word for word in words if word != "None"])
        return function(*args, **kwargs)

    return checked


def _alternatives(annotation: str) -> tuple[str, ...]:
    """Return the names of the types of an annotation, without brackets; () if one of them is unknown."""
    while (plain := _BRACKETS.sub("", annotation)) != annotation:
        annotation = plain
    words = tuple(word.strip() for word in annotation.split("|"))
    return words if all(word in _KINDS or word in _NAMED for word in words) else ()


def _is_a(value: object, word: str) -> bool:
    if word in _NAMED:
        return any(kind.__name__ == _NAMED[word] for kind in type(value).__mro__)
    if word == "int" and isinstance(value, float):
        return value.is_integer()
    if word == "Mapping" and isinstance(value, Mapping):
        return all(isinstance(key, str) for key in value)
    listed = word == "Sequence" and (isinstance(value, str | bytes) or hasattr(value, "dtype"))
    return isinstance(value, _KINDS[word]) and not listed


def closest(word: str, legal: Iterable[str], *, everything_up_to: int = 12) -> tuple[str, ...]:
    """Return the legal words nearest to `word`, best first.

    If none is near, the result is the whole list, if it has at most `everything_up_to` words.
    """
    words = tuple(dict.fromkeys(legal))
    folded = word.lower()
    near = [candidate for candidate in words if candidate.lower() == folded]
    # Long garbage is near to nothing, and comparing it would cost time for every word.
    if len(word) <= 64:
        from difflib import get_close_matches  # noqa: PLC0415 - as above

        near.extend(get_close_matches(word, words, n=3, cutoff=0.6))
    if near:
        return tuple(dict.fromkeys(near))
    return words if len(words) <= everything_up_to else ()


MAX_STATEMENTS = 200_000
"""Default maximum number of statements of a program; in assembly, of bundles."""


def too_many_statements(limit: int, span: Span, what: str = "statements") -> LimitError:
    """Return (do not raise) the error about a text at the first statement beyond the limit."""
    return LimitError(
        f"the program has more than {limit} {what}, the limit of --max-statements",
        span=span,
        legal=("--max-statements N with a larger N",),
    )


# Warnings: what is accepted but deserves a look, as text with a kind and a place.


class Severity(StrEnum):
    """Severity of a finding."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class WarningKind(StrEnum):
    """The subject of a warning."""

    ATTRIBUTE = "attribute"
    """An unknown attribute without effect."""
    ELEMENT_TYPE = "element type"
    """An element type that is read as another one, or that only castsim supports."""
    LEFT_OUT = "left out"
    """A function that cannot be read and was not requested."""
    SHARED_BYTES = "shared bytes"
    """Tiles that are never in use together share bytes; otherwise the program would not fit."""
    UNTIMED = "untimed"
    """An operation without cycles, because its unit is not modelled."""
    ROUNDING = "rounding"
    """A requested rounding mode without effect."""
    SATURATION = "saturation"
    """A requested saturation without effect."""
    DISTRIBUTION = "distribution"
    """A mode of pairs of registers for narrower elements than the registers have."""
    SCRATCH = "scratch"
    """A tmp tile that is ignored, too small, or missing while other tiles' bytes are used."""
    IN_PLACE = "in place"
    """A result that overlaps its own source."""
    REGION = "region"
    """A load or store between a part of a view and a valid region of another size."""
    STRIDE = "stride"
    """Rows or repeats that start elsewhere than the text says."""
    BEYOND = "beyond"
    """A write beyond its tile."""
    COLUMN = "column"
    """A column that is lost."""
    DEFAULT_READ = "default read"
    """An element without a value that counts as 0 and affects the path."""
    SCALAR = "scalar"
    """A scalar of undefined value: a float beyond its integer type."""
    OPERATION = "operation"
    """A vector operation whose effect differs from its text."""
    UNDOCUMENTED = "undocumented"
    """A use of an instruction that no source documents."""
    FORM = "form"
    """A form of an instruction that only a compiler's output shows."""
    SHORT_BUNDLE = "short bundle"
    """A line that omits some slots."""
    NO_HALT = "no halt"
    """A program that ends after its last bundle, without HALT."""
    ENCODING = "encoding"
    """A bundle with an unexpected encoding."""
    OVERTAKING = "overtaking"
    """A load in a vector function that may overtake an earlier store of the same bytes."""
    UNDEFINED = "undefined"
    """Output bytes that derive from undefined values."""
    WIDE_INPUT = "wide input"
    """Codes with bits above their width."""


class WarningText(str):
    """A warning of the form `PLACE: TEXT`, or TEXT if no position is known.

    `place` is a position in a source text, or names the target or the file that the warning is about.
    """

    __slots__ = ("kind", "place", "text")

    kind: WarningKind
    text: str
    place: Span | str | None

    def __new__(cls, kind: WarningKind, text: str, location: Span | str | None = None) -> WarningText:
        """Create a warning of a kind."""
        warning = super().__new__(cls, text if location is None else f"{location}: {text}")
        warning.kind, warning.text, warning.place = kind, text, location
        return warning

    def __getnewargs__(self) -> tuple[WarningKind, str, Span | str | None]:  # type: ignore[override]
        """Return the constructor arguments for a copy."""
        return self.kind, self.text, self.place

    def at(self, location: Span | str) -> WarningText:
        """Return the same warning with a position before its own."""
        return WarningText(self.kind, str(self), location)


Warnings = tuple[WarningText, ...]


def of_kind(warnings: Iterable[WarningText], *kinds: WarningKind) -> Warnings:
    """Return the warnings of these kinds in order."""
    return tuple(warning for warning in warnings if warning.kind in kinds)


# Telling once what would make casts faster.


@cache
def hint(message: str) -> None:
    """Issue a warning once per message."""
    warnings.warn(f"castsim: {message}", RuntimeWarning, stacklevel=2)
