"""Rounds of inputs to a reader: from its seeds, its grammar, mutations of both, and of what reached new lines."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from fuzz.coverage import Coverage
from fuzz.judging import SECONDS, DefectError, judge
from fuzz.mutation import Mutator
from fuzz.readers import Reader

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
        """A name for its file."""
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
        """Return the next input."""
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
