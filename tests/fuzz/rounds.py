"""Rounds of inputs to a reader: from its seeds, its grammar, mutations of both, and of what reached new lines.

Lines and edges of the readers' modules are traced on a share of the inputs, since tracing is slow."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from random import Random
from time import perf_counter
from types import CodeType, FrameType

from fuzz.judging import SECONDS, DefectError, judge
from fuzz.mutation import Mutator
from fuzz.readers import Reader
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


TRACED = 16
"""One input of so many is traced."""

MOST_KEPT = 400
"""Inputs that are kept for having reached new lines."""


@dataclass(slots=True)
class Found:
    """An input that a reader did not bear."""

    kind: str
    detail: str
    data: bytes

    @property
    def name(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:12]


@dataclass(slots=True)
class Tally:
    """What a round came to."""

    inputs: int = 0
    read: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    found: list[Found] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)


class Round:
    """A round of inputs, the same for the same seed and the same inputs kept."""

    def __init__(self, reader: Reader, seed: str, coverage: Coverage, kept: list[bytes] | None = None) -> None:
        self.reader = reader
        self.rng = Random(seed)
        self.coverage = coverage
        self.seeds = list(reader.seeds())
        self.kept = list(kept or ())
        self.mutator = Mutator(self.rng, self.seeds, text=reader.text)

    def one(self) -> bytes:
        rng, grammar = self.rng, self.reader.grammar
        kind = rng.randrange(8)
        if grammar is not None and kind < 3:
            return grammar(rng) if kind < 2 else self.mutator.mutated(grammar(rng))
        if kind < 5 and self.kept:
            return self.mutator.mutated(rng.choice(self.kept))
        return self.mutator.mutated(rng.choice(self.seeds))

    def run(self, inputs: int, seconds: float, *, limit: float = SECONDS) -> Tally:
        """Try inputs until there have been so many, or for so long.

        Args:
            inputs: how many at most.
            seconds: after which no further one is tried.
            limit: time of the processor of one input.
        """
        tally, begun = Tally(), perf_counter()
        while tally.inputs < inputs and perf_counter() - begun < seconds:
            self._try(self.one(), tally, limit)
        tally.seconds = perf_counter() - begun
        return tally

    def _try(self, data: bytes, tally: Tally, limit: float) -> None:
        traced, before = tally.inputs % TRACED == 0, len(self.coverage.lines)
        tally.inputs += 1
        try:
            if traced:
                with self.coverage.traced():
                    verdict = judge(self.reader.read, data, placed=self.reader.placed, seconds=3 * limit)
            else:
                verdict = judge(self.reader.read, data, placed=self.reader.placed, seconds=limit)
                tally.longest = max(tally.longest, verdict.seconds)
        except DefectError as defect:
            if all((one.kind, one.detail) != (defect.kind, defect.detail) for one in tally.found):
                tally.found.append(Found(defect.kind, defect.detail, data))
            return
        tally.read += verdict.was_read
        if len(self.coverage.lines) > before and len(self.kept) < MOST_KEPT:
            self.kept.append(data)
            tally.kept.append(data)
