"""The structured input set: few codes that stand for all codes of a wide source.

A deterministic rounding sees the bits that stay, the first dropped bit, whether any later one is set, and the sign.
So it is enough to try, for every sign and every place of the leading one, every pattern of the bits that can stay,
each with a handful of patterns below that realise all cases of half and sticky.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isa.errors import IllegalError
from isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from isa.modes import Overflow
from simulator.numerics.blocks import Codes, code_dtype
from simulator.numerics.unpack import code_bits

LARGEST = 1 << 34
"""Codes of the largest set that is worth trying: an hour or so at the speed of the reference."""

NARROW = 16
"""Sources of up to this many bits are tried on all their codes instead."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The magnitudes `first` to `first + 2**width - 1`: one leading one, `width` bits below, of which `kept` stay."""

    first: int
    width: int
    kept: int

    @property
    def endings(self) -> tuple[int, ...]:
        """The patterns of the bits that do not stay: 0, 1, half - 1, half, half + 1, all ones, each once."""
        dropped = self.width - self.kept
        half, end = (1 << dropped) >> 1, 1 << dropped
        wanted = (0, 1, half - 1, half, half + 1, end - 1)
        return tuple(sorted({pattern for pattern in wanted if 0 <= pattern < end}))

    @property
    def size(self) -> int:
        """How many codes of the segment are tried."""
        return len(self.endings) << self.kept


def kept_bits(dst: Format, overflow: Overflow, exponent: int, width: int) -> int:
    """Return how many of the `width` bits below a leading one of weight 2**exponent can stay in the result.

    Nothing stays of an integer that is clamped, nor of one whose bits all lie above those that wrapping takes.
    """
    if isinstance(dst, IntFormat):
        beyond = dst.bits + (width if overflow is Overflow.WRAP else 0)
        kept = exponent if exponent < beyond and not dst.boolean else 0
    elif isinstance(dst, TaperedFormat):
        by_exponent = {binade.exponent: binade.fraction_bits for binade in dst.binades}
        lowest, highest = min(by_exponent), max(by_exponent)
        kept = by_exponent[min(max(exponent, lowest), highest)] - max(lowest - exponent, 0)
    else:
        kept = dst.fraction_bits - max(dst.min_exponent - exponent, 0)
    return min(max(kept, 0), width)


def segments(src: FloatFormat | IntFormat, dst: Format, overflow: Overflow) -> tuple[Segment, ...]:
    """Return segments that hold every magnitude of the source exactly once.

    For a float these are its exponents (that of infinity and NaN included) and the places of a subnormal's leading
    one; for an integer the places of the leading one. Zero is a segment of its own.
    """

    def segment(first: int, width: int, exponent: int) -> Segment:
        return Segment(first, width, kept_bits(dst, overflow, exponent, width))

    if isinstance(src, IntFormat):
        magnitudes = [segment(1 << place, place, place) for place in range(src.bits - src.signed)]
        extreme = [Segment(-src.minimum, 0, 0)] if src.signed else []
        return (Segment(0, 0, 0), *magnitudes, *extreme)
    lowest = src.min_exponent - src.fraction_bits
    tiny = [segment(1 << place, place, lowest + place) for place in range(src.fraction_bits)]
    below = [Segment(0, 0, 0), *tiny] if src.has_zero else [segment(0, src.fraction_bits, -src.bias)]
    normal = [
        segment(field << src.fraction_bits, src.fraction_bits, field - src.bias)
        for field in range(1, src.exponent_mask + 1)
    ]
    return (*below, *normal)


def with_sign(magnitudes: NDArray[np.uint64], negative: NDArray[np.uint64], src: FloatFormat | IntFormat) -> Codes:
    """Return codes of `src`: sign and magnitude for floats, two's complement for integers. `negative` is 0 or 1.

    The extreme of a signed integer has no positive counterpart and is negative either way.
    """
    if isinstance(src, FloatFormat):
        codes = magnitudes | negative * np.uint64(src.sign_bit)
    else:
        negative = negative | (magnitudes >> np.uint64(src.bits - 1) & np.uint64(src.signed))
        codes = ((magnitudes ^ (np.uint64(0) - negative)) + negative) & np.uint64((1 << code_bits(src)) - 1)
    return codes.astype(code_dtype(src))


@dataclass(frozen=True)
class Structured:
    """The structured set of a pair, in a fixed order: positive codes, then negative ones.

    Raises:
        IllegalError: a source that is tried on all codes anyway, or a set too large to try.
    """

    src: Format
    dst: Format
    overflow: Overflow

    def __post_init__(self) -> None:
        if isinstance(self.src, TaperedFormat) or self.src.bits <= NARROW:
            raise IllegalError(
                f"a structured set stands for the codes of a wide source; those of {self.src.name} are few",
                legal=("--exhaustive",),
            )
        if self.size > LARGEST:
            raise IllegalError(
                f"the structured set of {self.src.name} -> {self.dst.name} under '{self.overflow}' has"
                f" {self.size:.1e} codes, the limit is {LARGEST:.1e}",
                legal=("--samples N",),
            )

    @property
    def argument(self) -> str:
        """Why the set suffices."""
        return (
            "Every sign and exponent (for subnormals and integers: every place of the leading one) with every pattern"
            " of the bits that can stay in the result, each followed by dropped bits 0, 1, half-1, half, half+1 and"
            " all ones. That decides all codes, because a deterministic mode sees only the kept bits, the half bit,"
            " the sticky bit and the sign, and every combination of them is in the set. Nothing counts as kept of"
            " values that are clamped, or that lie above all bits that wrapping takes."
        )

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """All segments of magnitudes."""
        assert not isinstance(self.src, TaperedFormat)
        return segments(self.src, self.dst, self.overflow)

    @cached_property
    def _ends(self) -> list[int]:
        ends, total = [], 0
        for segment in self.segments:
            total += segment.size
            ends.append(total)
        return ends

    @property
    def size(self) -> int:
        """How many codes there are, the doubles of an integer's zero and extreme included."""
        return self._ends[-1] << self.src.signed

    def codes(self, start: int, stop: int) -> Codes:
        """Return the codes at positions `start` to `stop - 1`."""
        assert not isinstance(self.src, TaperedFormat)
        half = self._ends[-1]
        pieces = []
        for negative, first in ((0, 0), (1, half)):
            low, high = max(start - first, 0), min(stop - first, half)
            if low < high:
                magnitudes = self._magnitudes(low, high)
                pieces.append(with_sign(magnitudes, np.full(high - low, negative, np.uint64), self.src))
        return np.concatenate(pieces) if pieces else np.empty(0, code_dtype(self.src))

    def _magnitudes(self, start: int, stop: int) -> NDArray[np.uint64]:
        result = np.empty(stop - start, np.uint64)
        number = int(np.searchsorted(self._ends, start, side="right"))
        position = start
        while position < stop:
            segment, end = self.segments[number], self._ends[number]
            first = end - segment.size
            until = min(end, stop)
            inside = np.arange(position - first, until - first, dtype=np.uint64)
            result[position - start : until - start] = _magnitudes_in(segment, inside)
            position, number = until, number + 1
        return result


def _magnitudes_in(segment: Segment, inside: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return magnitudes by their number in the segment: the low bits of the number are the pattern that stays."""
    kept = inside & np.uint64((1 << segment.kept) - 1)
    magnitudes: NDArray[np.uint64] = np.array(segment.endings, np.uint64)[inside >> np.uint64(segment.kept)]
    magnitudes += kept << np.uint64(segment.width - segment.kept)
    magnitudes += np.uint64(segment.first)
    return magnitudes
