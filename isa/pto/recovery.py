"""Going on behind a statement that cannot be read, so that all errors of a text are found in one pass.

A statement that fails is left at the next one: at a line, or behind a sign, where one begins. What it should have
defined is unknown from there on, and statements that use it are left out without a word, as whatever is wrong with
them may be its fault. The region of a loop or condition whose head fails is read all the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from castsim.isa.errors import CastsimError, ErrorList, LimitError
from castsim.isa.pto.lexer import TokenKind, unknown_character
from castsim.isa.pto.reader import CLOSING, PtoReader
from castsim.isa.pto.scope import FollowUpError

_DIALECTS = ("pto.", "scf.", "arith.", "func.", "memref.", "math.", "index.", "cf.", "llvm.", "vector.", "affine.")
_BARE_NAMES = ("return", "call")
_CONTINUING = frozenset(
    (
        "ins", "outs", "attributes", "iter_args", "to", "step", "else", "do", "offsets", "sizes", "shape", "strides",
        "layout", "addr", "valid_row", "valid_col", "nburst", "loop", "pad", "l2_cache_ctl", "loc", "rmode",
    )
)  # fmt: skip
"""Words that go on with a statement at the beginning of a line."""
_JOINS = ("else", "do")
"""Words between two regions of one statement."""


class Recovery:
    """The errors of one function, and the way on behind each."""

    def __init__(self, reader: PtoReader, read_region: Callable[[], object]) -> None:
        """`read_region` reads what follows an opening brace, whatever may end it."""
        self.errors = ErrorList()
        self._reader = reader
        self._read_region = read_region

    def fail(self, start: int, before: int, regions: int, depth: int, error: CastsimError) -> None:
        """Take note of the error of the statement that begins at token `start`, and go on at the next one.

        `before` is the number of failures before the statement: an error behind one inside its own region may follow
        from that, and is not told. `regions` and `depth` are those around the statement.

        Raises:
            CastsimError: there is no going on.
        """
        reader = self._reader
        failed_at = reader.position
        inside = reader.failures != before
        reader.failures += 1
        if isinstance(error, LimitError) or reader.hopeless:
            raise error
        reader.scope.leave_to(regions)
        reader.depth = depth
        resumed, brace = self._next(start, failed_at)
        end = resumed if brace is None else brace
        told = self._told(start, failed_at, end, error)
        if not inside and not all(map(self.errors.add, told)):
            reader.hopeless = True
            raise error
        self._forget(start, end, whole=brace is not None)
        reader.position = resumed
        if brace is not None:
            self._regions_from(brace)

    def _told(self, start: int, failed_at: int, end: int, error: CastsimError) -> list[CastsimError]:
        """Return what is said of a statement: its error, or the characters that begin no token."""
        unknown = self._reader.unknown
        found = unknown[bisect_left(unknown, start) : bisect_left(unknown, end)]
        characters: list[CastsimError] = [
            unknown_character(self._reader.source, self._reader.starts[index]) for index in found
        ]
        if isinstance(error, FollowUpError) or (found and found[0] <= failed_at):
            return characters
        return [error, *characters]

    def _forget(self, start: int, end: int, *, whole: bool) -> None:
        """Take what a statement defines for unknown: its results, or whatever a head names (`whole`)."""
        reader = self._reader
        for index in range(start, end):
            text = reader.texts[index]
            if text == "=" and not whole:
                return
            if reader.kinds[index] is TokenKind.VALUE:
                reader.scope.forget(text[1:].partition(":")[0].partition("#")[0])
            elif not whole and text != ",":
                return

    def _regions_from(self, brace: int) -> None:
        """Read the regions of a statement whose head failed, and what stands between and behind them."""
        reader = self._reader
        while True:
            reader.position = brace + 1
            if reader.kinds[reader.position] is TokenKind.BLOCK:
                label = reader.position
                while not self._is_fresh(reader.position + 1) and reader.kinds[reader.position] is not TokenKind.END:
                    reader.position += 1
                self._forget(label, reader.position, whole=True)
                reader.position += 1
            regions = reader.scope.regions
            reader.scope.enter()
            self._read_region()
            reader.scope.leave_to(regions)
            behind = reader.position
            if reader.texts[behind] in _JOINS and reader.texts[behind + 1] == "{":
                brace = behind + 1
                continue
            if not self._begins(behind):
                reader.position, _ = self._next(behind, behind, regions=False)
            return

    # ------------------------------------------------------------------------------------------- the next statement

    def _next(self, start: int, failed_at: int, *, regions: bool = True) -> tuple[int, int | None]:
        """Return the token at which reading goes on; and the brace of a region of the statement not yet read."""
        reader = self._reader
        texts, first = reader.texts, max(start + 1, failed_at)
        opened: list[str] = []
        for index in range(start, len(texts)):
            text = texts[index]
            if index >= first and self._ends_before(index, opened):
                return index, None
            if text in CLOSING:
                if regions and text == "{" and index >= failed_at and self._is_fresh(index + 1):
                    return index, index
                opened.append(CLOSING[text])
            elif text in opened:
                while opened.pop() != text:
                    pass
        return len(texts) - 1, None

    def _ends_before(self, index: int, opened: list[str]) -> bool:
        """Whether a statement with brackets still open cannot reach to a token."""
        reader = self._reader
        text = reader.texts[index]
        if text == "func.func" or reader.kinds[index] is TokenKind.END:
            return True
        if text == "}":
            return not opened or ("}" not in opened and self._is_fresh(index))
        return self._begins(index) and (not opened or self._is_fresh(index))

    def _begins(self, index: int) -> bool:
        """Whether a statement or the end of a region may stand at a token."""
        reader = self._reader
        kind, text = reader.kinds[index], reader.texts[index]
        if kind is TokenKind.VALUE:
            while reader.kinds[index] is TokenKind.VALUE and reader.texts[index + 1] == ",":
                index += 2
            named = reader.kinds[index] is TokenKind.VALUE and reader.texts[index + 1] == "="
            return named and reader.kinds[index + 2] in (TokenKind.WORD, TokenKind.STRING)
        if kind is TokenKind.STRING:
            return self._is_fresh(index) and reader.texts[index + 1] == "("
        if kind is TokenKind.WORD:
            if self._is_fresh(index):
                return text not in _CONTINUING
            behind = reader.texts[index - 1]
            return (text.startswith(_DIALECTS) or text in _BARE_NAMES) and behind not in ("=", ",", "[", "(")
        return kind is TokenKind.END or text == "}"

    def _is_fresh(self, index: int) -> bool:
        """Whether a token is the first one of its line."""
        reader = self._reader
        if not 0 < index < len(reader.starts):
            return True
        end = reader.starts[index - 1] + len(reader.texts[index - 1])
        return "\n" in reader.source.text[end : reader.starts[index]]
