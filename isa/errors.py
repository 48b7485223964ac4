"""The ways in which castsim refuses input, each with its exit code, its place and what would be legal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source text.

    `line` and `column` count from 1; `length` is the number of characters to underline; `text` is the whole
    source line, kept so that a message can be printed after the file is gone.
    """

    file: str
    line: int
    column: int
    text: str = ""
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class CastsimError(ValueError):
    """Root of all refusals.

    `kind` names the class of the refusal in reports, `exit_code` is what the command line returns for it,
    `span` says where in the input it is (None: nowhere in a file), `legal` lists what would be accepted.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, span: Span | None = None, legal: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.legal = tuple(legal)

    def at(self, span: Span) -> CastsimError:
        """Give the error a place if it has none yet, and return it."""
        if self.span is None:
            self.span = span
        return self

    def render(self) -> str:
        """Return the message as `file:line:col: message`, the source line, a caret, and the legal alternatives.

        A message that names the place itself, in brackets, for those who read it alone, does not repeat it here.
        """
        head = f"{self.span}: {self.message.replace(f' ({self.span})', '')}" if self.span else self.message
        lines = [head]
        if self.span and self.span.text:
            lines.append(f"  {self.span.text}")
            # A tab before the caret must stay a tab, or the caret is misplaced on the reader's terminal.
            before = "".join("\t" if char == "\t" else " " for char in self.span.text[: self.span.column - 1])
            lines.append(f"  {before}{'^' * max(1, self.span.length)}")
        if self.legal:
            lines.append(f"  legal: {', '.join(self.legal)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()


class ReadError(CastsimError):
    """Something typed or a file's form cannot be read: syntax, unknown name, undefined value, a bad `.npy`."""

    kind = "cannot be read"
    exit_code = 2


class IllegalError(CastsimError):
    """Well-formed, but the target does not have it: a type pair, a mode, an operation."""

    kind = "not legal on this target"
    exit_code = 1


class TileError(CastsimError):
    """A tile, view or transfer has a shape, alignment or place that the target cannot use."""

    kind = "tile does not fit"
    exit_code = 1


class ScratchError(CastsimError):
    """The scratch (tmp) tile is smaller than the lowering needs."""

    kind = "scratch too small"
    exit_code = 1


class RaceError(CastsimError):
    """Nothing keeps instructions of a program in the order that its result needs, or its flags do not match."""

    kind = "race"
    exit_code = 1


class TargetDataError(CastsimError):
    """A target description is malformed, incomplete or contradicts itself."""

    kind = "target data wrong"
    exit_code = 2


class EngineError(RuntimeError):
    """The simulation cannot go on: a deadlock or the cycle limit. Not a `ValueError`: the program was legal."""

    kind: ClassVar[str] = "engine cannot go on"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, span: Span | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span

    def render(self) -> str:
        """Return the message as `file:line:col: message` with the source line and a caret."""
        return CastsimError(self.message, span=self.span).render()
