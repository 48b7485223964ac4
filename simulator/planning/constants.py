"""Constants that fix-up arithmetic around a cast may need: they follow from the two formats of the request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from castsim.isa.formats import FloatFormat, Format, IntFormat, TaperedFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.numerics import Policy, code_dtype, convert_codes
from castsim.numerics.unpack import code_bits


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants for chains from `src` to `dst`, as codes of whatever format the arithmetic works in."""

    src: Format
    dst: Format

    def once(self) -> tuple[None, ...]:
        """Return one absent constant, for operations that take none."""
        return (None,)

    def bounds(self, fmt: Format) -> tuple[int, ...]:
        """Return the ends of the destination's range, rounded inwards."""
        found = []
        for code, mode in ((_lowest(self.dst), Rounding.CEIL), (_highest(self.dst), Rounding.FLOOR)):
            codes = np.array([code], code_dtype(self.dst))
            overflow = Overflow.SATURATE
            end = int(convert_codes(codes, self.dst, fmt, Policy(_fitting(fmt, mode), overflow))[0])
            found.append(end)
        return tuple(dict.fromkeys(found))

    def offsets(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the powers of two that move between signed and unsigned ranges."""
        widths = {row.bits for row in (self.src, self.dst, fmt) if isinstance(row, IntFormat) and row.bits <= fmt.bits}
        mask = (1 << fmt.bits) - 1
        powers = sorted(1 << (bits - 1) for bits in widths if bits > 1)
        return tuple(dict.fromkeys(code & mask for power in powers for code in (power, -power)))

    def offsets_of_floats(self, fmt: FloatFormat) -> tuple[int, ...]:
        """Return the codes of a floating format that undo or prepare a move between signed and unsigned ranges.

        Half the range of the request's integers and the whole of it, of either sign; powers of two are exact in every
        format that reaches so far.
        """
        widths = {row.bits for row in (self.src, self.dst) if isinstance(row, IntFormat) and row.bits > 1}
        exponents = sorted({power for bits in widths for power in (bits - 1, bits)})
        top_exponent = (fmt.max_finite_code >> fmt.fraction_bits) - fmt.bias
        codes = [(power + fmt.bias) << fmt.fraction_bits for power in exponents if power <= top_exponent]
        return tuple(code | sign for code in codes for sign in (0, fmt.sign_bit))

    def masks(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the masks of the widths of the request that are narrower."""
        return tuple((1 << bits) - 1 for bits in self._widths() if bits < fmt.bits)

    def signs(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the sign bits of the widths of the request."""
        return tuple(1 << (bits - 1) for bits in self._widths() if 1 < bits <= fmt.bits)

    def shifts(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return by how much the widths of the request differ from that of the arithmetic."""
        return tuple(sorted(fmt.bits - bits for bits in self._widths() if bits < fmt.bits))

    def _widths(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(row.bits for row in (self.dst, self.src)))


def _fitting(fmt: Format, mode: Rounding) -> Rounding:
    return Rounding.TRUNC if isinstance(fmt, TaperedFormat) else mode


def _highest(fmt: Format) -> int:
    return fmt.maximum if isinstance(fmt, IntFormat) else fmt.max_finite_code


def _lowest(fmt: Format) -> int:
    if isinstance(fmt, IntFormat):
        return fmt.minimum & ((1 << code_bits(fmt)) - 1)
    if isinstance(fmt, FloatFormat) and not fmt.signed:
        return 0
    return fmt.max_finite_code | fmt.sign_bit
