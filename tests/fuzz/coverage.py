"""Lines and edges of the readers' modules that inputs reach; traced on a share of the inputs, since tracing is slow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

from fuzz.seeds import ROOT

Line = tuple[str, int]
Edge = tuple[str, int, int]


class Coverage:
    """What has been reached in the modules of a reader; file names are relative to the project."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.files = {str(path): str(path.relative_to(ROOT)) for path in _paths(patterns)}
        self.lines: set[Line] = set()
        self.edges: set[Edge] = set()

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Note the lines and edges that the block reaches."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def totals(self) -> dict[str, int]:
        """Return the lines reached and those that there are inside functions, and the edges reached."""
        known = {(name, line) for path, name in self.files.items() for line in function_lines(path)}
        return {"lines_reached": len(self.lines & known), "lines_in_all": len(known), "edges_reached": len(self.edges)}

    def _called(self, frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
        name = self.files.get(frame.f_code.co_filename)
        if name is None:
            return None
        last = 0

        def stepped(frame: FrameType, event: str, _: object) -> Callable[..., object]:
            nonlocal last
            if event == "line":
                self.lines.add((name, frame.f_lineno))
                self.edges.add((name, last, frame.f_lineno))
                last = frame.f_lineno
            return stepped

        return stepped


def _paths(patterns: tuple[str, ...]) -> list[Path]:
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert found, patterns
    return sorted(found)


@cache
def function_lines(path: str) -> frozenset[int]:
    """Return the lines of a module that stand in functions: others run when it is imported."""
    code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    found: set[int] = set()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        if one is not code and one.co_flags & CO_OPTIMIZED:  # a function, not the body of a class
            found |= {line for _, _, line in one.co_lines() if line is not None and line != one.co_firstlineno}
        waiting += [each for each in one.co_consts if isinstance(each, CodeType)]
    return frozenset(found)
