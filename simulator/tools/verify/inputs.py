"""The codes on which a cast is tried: all of them, the structured set, or samples.

A set is a sequence of codes in a fixed order; any stretch of it can be generated at any time, so work can be split
among processes and resumed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import (
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    TaperedFormat,
    code_bits,
    format_named,
)
from castsim.numerics.blocks import code_dtype
from castsim.numerics.policy import Policy, abstract_policy
from castsim.numerics.tiers import Tier

# One part of a verification: a cast, the two implementations of it, and the codes it is tried on.

DEFAULT_TIER = "default"
"""The tier that `convert_codes` chooses by default."""

ORACLE = "oracle"
"""The independent oracle in place of a second tier."""

EXHAUSTIVE = "exhaustive"
STRUCTURED = "structured"
SAMPLES = "samples"
INPUTS = (EXHAUSTIVE, STRUCTURED, SAMPLES)


@dataclass(frozen=True, slots=True)
class VerificationPart:
    """The abstract cast `src` to `dst` under one rounding and overflow: `tier` against `against` on a set of codes.

    Formats are names. `against` is a tier or `ORACLE`. `count` and `seed` are those of samples, else 0; the seed also
    makes the random words of stochastic rounding.
    """

    src: str
    dst: str
    rounding: Rounding
    overflow: Overflow
    tier: str
    against: str
    inputs: str
    count: int = 0
    seed: int = 0

    @property
    def source(self) -> Format:
        """The source format."""
        return format_named(self.src)

    @property
    def destination(self) -> Format:
        """The destination format."""
        return format_named(self.dst)

    @property
    def policy(self) -> Policy:
        """The abstract cast's policy under the part's modes.

        Raises:
            IllegalError: a mode is not defined for the pair.
        """
        return abstract_policy(self.source, self.destination, self.rounding, self.overflow)

    def check(self) -> None:
        """Reject an inconsistent part.

        Raises:
            ReadError: a format, tier or kind of input set is unknown, or a tier is compared with itself.
            IllegalError: a mode is not defined for the pair.
        """
        _ = self.policy
        tier_named(self.tier)
        if self.against != ORACLE:
            tier_named(self.against, also=(ORACLE,))
        if self.tier == self.against:
            raise ReadError(f"tier '{self.tier}' against itself proves nothing")
        if self.inputs not in INPUTS:
            raise ReadError(f"unknown kind of input set '{self.inputs}'", legal=INPUTS)
        if self.inputs == SAMPLES and self.count < 1:
            raise ReadError(f"{self.count} samples: not a positive number")
        if self.inputs == STRUCTURED and self.rounding in (Rounding.HYBRID, Rounding.STOCHASTIC):
            raise IllegalError(
                f"rounding '{self.rounding}' sees more than kept bits, half and sticky: a structured set does not"
                " decide it",
                legal=(f"--{EXHAUSTIVE}", f"--{SAMPLES} N"),
            )

    def __str__(self) -> str:
        return (
            f"{self.src} -> {self.dst} {self.rounding} {self.overflow}: {self.tier} against {self.against},"
            f" {self.inputs}"
        )


def tier_named(name: str, also: tuple[str, ...] = ()) -> Tier | None:
    """Return a tier; None for the default one.

    Raises:
        ReadError: the tier does not exist; the message lists the legal names.
    """
    if name == DEFAULT_TIER:
        return None
    try:
        return Tier(name)
    except ValueError:
        legal = (DEFAULT_TIER, *(str(tier) for tier in Tier), *also)
        raise ReadError(f"unknown tier '{name}'", legal=legal) from None


# The structured input set: few codes that stand for all codes of a wide source.
#
# A deterministic rounding sees the bits that stay, the first dropped bit, whether any later one is set, and the sign.
# So it is enough to try, for every sign and every place of the leading one, every pattern of the bits that can stay,
# each with a handful of patterns below that realise all cases of half and sticky.

LARGEST = 1 << 34
"""Maximum number of codes of a set: about an hour at the speed of the reference."""

NARROW = 16
"""Sources of up to this many bits are tried on all their codes instead."""


@dataclass(frozen=True, slots=True)
class MagnitudeSegment:
    """The magnitudes `first` to `first + 2**width - 1`: one leading one, `width` bits below, of which `kept` stay."""

    first: int
    width: int
    kept: int

    @property
    def endings(self) -> tuple[int, ...]:
        """The patterns of the dropped bits: 0, 1, half - 1, half, half + 1, all ones, without duplicates."""
        dropped = self.width - self.kept
        half, end = (1 << dropped) >> 1, 1 << dropped
        wanted = (0, 1, half - 1, half, half + 1, end - 1)
        return tuple(sorted({pattern for pattern in wanted if 0 <= pattern < end}))

    @property
    def size(self) -> int:
        """Number of codes of the segment that are tried."""
        return len(self.endings) << self.kept


def kept_bits(dst: Format, overflow: Overflow, exponent: int, width: int) -> int:
    """Return how many of the `width` bits below a leading one of weight 2**exponent can be kept.

    No bits of an integer that is clamped are kept, nor of one whose bits all lie above those that wrapping takes.
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


def segments(src: FloatFormat | IntFormat, dst: Format, overflow: Overflow) -> tuple[MagnitudeSegment, ...]:
    """Return segments that hold every magnitude of the source exactly once.

    For a float these are its exponents (that of infinity and NaN included) and the places of a subnormal's leading
    one; for an integer the places of the leading one. Zero is a segment of its own.
    """

    def segment(first: int, width: int, exponent: int) -> MagnitudeSegment:
        return MagnitudeSegment(first, width, kept_bits(dst, overflow, exponent, width))

    if isinstance(src, IntFormat):
        magnitudes = [segment(1 << bit, bit, bit) for bit in range(src.bits - src.signed)]
        extreme = [MagnitudeSegment(-src.minimum, 0, 0)] if src.signed else []
        return (MagnitudeSegment(0, 0, 0), *magnitudes, *extreme)
    lowest = src.min_exponent - src.fraction_bits
    tiny = [segment(1 << bit, bit, lowest + bit) for bit in range(src.fraction_bits)]
    below = [MagnitudeSegment(0, 0, 0), *tiny] if src.has_zero else [segment(0, src.fraction_bits, -src.bias)]
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
        IllegalError: the source is tried on all codes anyway, or the set is too large to try.
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
        """The reason why the set suffices."""
        return (
            "Every sign and exponent (for subnormals and integers: every place of the leading one) with every pattern"
            " of the bits that can stay in the result, each followed by dropped bits 0, 1, half-1, half, half+1 and"
            " all ones. That decides all codes, because a deterministic mode sees only the kept bits, the half bit,"
            " the sticky bit and the sign, and every combination of them is in the set. Nothing counts as kept of"
            " values that are clamped, or that lie above all bits that wrapping takes."
        )

    @cached_property
    def segments(self) -> tuple[MagnitudeSegment, ...]:
        """All segments of magnitudes."""
        assert not isinstance(self.src, TaperedFormat)
        return segments(self.src, self.dst, self.overflow)

    @cached_property
    def _runs(self) -> tuple[list[tuple[int, int, int]], list[int]]:
        """Return the runs of codes that share an ending, as (lowest magnitude, kept, dropped bits), and their ends."""
        runs, ends, total = [], [], 0
        for segment in self.segments:
            for ending in segment.endings:
                runs.append((segment.first + ending, segment.kept, segment.width - segment.kept))
                total += 1 << segment.kept
                ends.append(total)
        return runs, ends

    @property
    def size(self) -> int:
        """Number of codes, including the duplicates of an integer's zero and extreme."""
        return self._runs[1][-1] << self.src.signed

    def codes(self, start: int, stop: int) -> Codes:
        """Return the codes at positions `start` to `stop - 1`."""
        half = self._runs[1][-1]
        result = np.empty(stop - start, code_dtype(self.src))
        middle = min(max(half, start), stop) - start
        self._fill(result[:middle], start, negative=False)
        self._fill(result[middle:], max(start, half) - half, negative=True)
        return result

    def _fill(self, result: Codes, start: int, *, negative: bool) -> None:
        """Write the codes of one sign, starting at position `start` among them."""
        runs, ends = self._runs
        number, done = bisect_right(ends, start), 0
        while done < len(result):
            lowest, kept, dropped = runs[number]
            inside = start + done - (ends[number] - (1 << kept))
            stretch = result[done : done + (1 << kept) - inside]
            _fill_run(stretch, lowest + (inside << dropped), dropped)
            done += len(stretch)
            number += 1
        _give_sign(result, self.src, negative=negative)


def _fill_run(result: Codes, first: int, dropped: int) -> None:
    """Write `first` and the following values in steps of 2**dropped."""
    dtype = result.dtype.type
    result[...] = ramp(1 << (len(result) - 1).bit_length(), result.dtype)[: len(result)]
    result <<= dtype(dropped)
    result += dtype(first)


@lru_cache(maxsize=64)
def ramp(count: int, dtype: np.dtype[Any]) -> Codes:
    """Return 0 to `count - 1`, read-only and cached, because few lengths occur repeatedly."""
    return np.arange(count, dtype=dtype)


def _give_sign(magnitudes: Codes, src: Format, *, negative: bool) -> None:
    """Turn magnitudes into codes: sign bit of floats, two's complement of integers; an extreme is always negative."""
    dtype = magnitudes.dtype.type
    if isinstance(src, IntFormat):
        if negative:
            np.subtract(dtype(0), magnitudes, out=magnitudes)
        elif src.signed and code_bits(src) > src.bits:
            extreme = dtype(-src.minimum)
            magnitudes[magnitudes == extreme] = dtype((1 << code_bits(src)) + src.minimum)
    elif negative:
        magnitudes |= dtype(src.sign_bit)


GRAIN = 1 << 12
"""Samples are drawn in stretches of this length, each from its own generator."""


class InputSet(Protocol):
    """A sequence of source codes."""

    @property
    def size(self) -> int:
        """Number of codes."""
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
        IllegalError: the source lacks the set, or the set is too large to try.
    """
    if part.inputs == EXHAUSTIVE:
        return Exhaustive(part.source)
    if part.inputs == STRUCTURED:
        return Structured(part.source, part.destination, part.overflow)
    return Samples(part.source, part.destination, part.overflow, part.count, part.seed)


def random_words(part: VerificationPart, start: int, stop: int) -> NDArray[np.uint32]:
    """Return the random words for the codes at positions `start` to `stop - 1`."""
    return _sample_range(start, stop, lambda rng: rng.integers(0, 1 << 32, GRAIN, dtype=np.uint32), (part.seed, 1))


@dataclass(frozen=True)
class Exhaustive:
    """All codes of a format, in rising order; position and code are the same.

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
        """Number of codes; a boolean may be any byte."""
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

    The former have a random sign, a random position of the leading one and random bits that the result keeps, above
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
