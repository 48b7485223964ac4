"""The codes that a cast is tried on: all of them, the structured set, or samples.

A set is a sequence of codes in a fixed order; any stretch of it can be generated at any time, so that work can be split
among processes and taken up again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from castsim.evidence.verification.part import EXHAUSTIVE, STRUCTURED, VerificationPart
from castsim.evidence.verification.structured import NARROW, Structured, ramp, segments, with_sign
from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow
from castsim.numerics.blocks import code_dtype
from castsim.numerics.unpack import code_bits

GRAIN = 1 << 12
"""Samples are drawn in stretches of this length, each from a generator of its own."""


class InputSet(Protocol):
    """A sequence of source codes."""

    @property
    def size(self) -> int:
        """How many codes there are."""
        ...

    @property
    def argument(self) -> str:
        """The statement that trying them proves."""
        ...

    def codes(self, start: int, stop: int) -> Codes:
        """Return the codes at positions `start` to `stop - 1`."""
        ...


def input_set(part: VerificationPart) -> InputSet:
    """Return the codes that a part is tried on.

    Raises:
        IllegalError: a set that the source does not have, or that is too large to try.
    """
    if part.inputs == EXHAUSTIVE:
        return Exhaustive(part.source)
    if part.inputs == STRUCTURED:
        return Structured(part.source, part.destination, part.overflow)
    return Samples(part.source, part.destination, part.overflow, part.count, part.seed)


def random_words(part: VerificationPart, start: int, stop: int) -> NDArray[np.uint32]:
    """Return the random words that go with the codes at positions `start` to `stop - 1`."""
    return _sample_range(start, stop, lambda rng: rng.integers(0, 1 << 32, GRAIN, dtype=np.uint32), (part.seed, 1))


@dataclass(frozen=True)
class Exhaustive:
    """All codes of a format, by rising code; position and code are the same.

    Raises:
        IllegalError: more than 2**32 codes.
    """

    src: Format

    def __post_init__(self) -> None:
        if self.size > 1 << 32:
            raise IllegalError(
                f"{self.src.name} has too many codes to try them all", legal=("--structured", "--samples N")
            )

    @property
    def size(self) -> int:
        """How many codes there are; a boolean may be any byte."""
        is_boolean = isinstance(self.src, IntFormat) and self.src.boolean
        return 1 << (self.src.storage_bits if is_boolean else code_bits(self.src))

    @property
    def argument(self) -> str:
        """The statement that trying all codes proves."""
        return f"All {self.size} codes of {self.src.name}: nothing is left to argue."

    def codes(self, start: int, stop: int) -> Codes:
        """Return the codes at positions `start` to `stop - 1`."""
        dtype = code_dtype(self.src)
        codes: Codes = ramp(stop - start, dtype) + dtype.type(start)
        return codes


@dataclass(frozen=True)
class Samples:
    """Pseudo-random codes: for wide sources, every second one near a rounding boundary of the pair.

    Those have a random sign, a random place of the leading one and random bits where the result keeps them, above
    one of the endings of the structured set; the others are any code.
    """

    src: Format
    dst: Format
    overflow: Overflow
    size: int
    seed: int

    @property
    def argument(self) -> str:
        """The statement that the samples prove."""
        return (
            f"{self.size} pseudo-random codes of seed {self.seed}, of wide sources every second one near a rounding"
            " boundary: evidence, no proof."
        )

    def codes(self, start: int, stop: int) -> Codes:
        """Return the codes at positions `start` to `stop - 1`."""
        return _sample_range(start, stop, self._grain, (self.seed, 0))

    def _grain(self, rng: np.random.Generator) -> Codes:
        codes = self._anywhere(rng)
        if self._columns is not None:
            codes[1::2] = self._near_boundaries(rng, GRAIN // 2)
        return codes

    def _anywhere(self, rng: np.random.Generator) -> Codes:
        words = rng.integers(0, 1 << 64, GRAIN, dtype=np.uint64)
        if isinstance(self.src, IntFormat) and self.src.signed and code_bits(self.src) > self.src.bits:
            sign = np.uint64(-self.src.minimum)  # sign-extended, like every code of i48
            words = ((words & np.uint64((1 << self.src.bits) - 1)) ^ sign) - sign
        elif not (isinstance(self.src, IntFormat) and self.src.boolean):
            words &= np.uint64((1 << self.src.bits) - 1)
        return words.astype(code_dtype(self.src))

    @cached_property
    def _columns(self) -> NDArray[np.uint64] | None:
        """First magnitude, kept bits, dropped bits and six endings of every segment, one row each."""
        if isinstance(self.src, TaperedFormat) or self.src.bits <= NARROW:
            return None
        rows = []
        for segment in segments(self.src, self.dst, self.overflow):
            endings = [segment.endings[number % len(segment.endings)] for number in range(6)]
            rows.append([segment.first, segment.kept, segment.width - segment.kept, *endings])
        return np.array(rows, np.uint64)

    def _near_boundaries(self, rng: np.random.Generator, count: int) -> Codes:
        assert self._columns is not None and not isinstance(self.src, TaperedFormat)
        rows = self._columns[rng.integers(0, len(self._columns), count)]
        mask = (np.uint64(1) << rows[:, 1]) - np.uint64(1)
        kept = rng.integers(0, 1 << 64, count, dtype=np.uint64) & mask
        ending = rows[np.arange(count), 3 + rng.integers(0, 6, count)]
        negative = rng.integers(0, 1 + self.src.signed, count, dtype=np.uint64)
        return with_sign(rows[:, 0] + (kept << rows[:, 2]) + ending, negative, self.src)


def _sample_range(start: int, stop: int, draw: Callable[[np.random.Generator], Codes], seed: tuple[int, int]) -> Codes:
    """Return positions `start` to `stop - 1` of a sequence drawn grain by grain."""
    first, last = start // GRAIN, -(-stop // GRAIN)
    grains = [draw(np.random.default_rng([*seed, number])) for number in range(first, last)]
    return np.concatenate(grains)[start - first * GRAIN : stop - first * GRAIN]
