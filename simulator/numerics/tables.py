"""The table tier: casts by look-up, in tables that the reference fills.

A source of up to 16 bits has one entry per code. A wider float source is first narrowed: only the relevant bits of its
fraction stay, and the last of them is set if any dropped bit was. Every deterministic rounding decides alike
on such a substitute, because it sees the same kept bits, the same half bit and the same sticky bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.errors import IllegalError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, TaperedFormat, code_bits
from castsim.numerics.blocks import check_codes, check_out, code_dtype, walk
from castsim.numerics.cast import cast_codes
from castsim.numerics.policy import E8M0Rule, NanToFloat, Policy, check_policy, is_power_format

LARGEST_INDEX_BITS = 21
"""The widest useful index: f32 -> f16 still beats the reference tenfold from a table of this size."""

BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class LookupTable:
    """`entries[index]` is the result for the code `index << dropped_bits` of the source."""

    entries: Codes
    dropped_bits: int


def dropped_bits(src: Format, dst: Format, policy: Policy) -> int | None:
    """Return the number of low bits that a table may drop from a code of `src`, None if the pair has no table."""
    if policy.rounding is Rounding.STOCHASTIC or (policy.rounding is Rounding.HYBRID and code_bits(src) > 16):
        return None
    if code_bits(src) <= 16:
        return 0
    kept = _kept_fraction_bits(dst, policy)
    if not isinstance(src, FloatFormat) or kept is None or policy.nan_to_float is NanToFloat.PAYLOAD:
        return None
    if isinstance(dst, FloatFormat):
        # Subnormal sources that the destination holds as normal numbers have their leading bit further down.
        kept += max(src.min_exponent - dst.min_exponent, 0)
    dropped = src.fraction_bits - (kept + 2)
    return dropped if dropped > 0 and src.bits - dropped <= LARGEST_INDEX_BITS else None


def table_size(src: Format, dst: Format, policy: Policy) -> int | None:
    """Return the number of entries of a cast's table; None for a cast without one."""
    dropped = dropped_bits(src, dst, policy)
    if dropped is None:
        return None
    is_boolean = isinstance(src, IntFormat) and src.boolean
    return 1 << (src.storage_bits if is_boolean else code_bits(src) - dropped)  # a bool code may be any byte


def _kept_fraction_bits(dst: Format, policy: Policy) -> int | None:
    """Return the number of fraction bits of a wide float that can stay in a result, None without a useful bound."""
    if isinstance(dst, IntFormat):
        if dst.boolean:
            return 0
        # From the first power of two beyond its range on, the result is the clamped extreme.
        if policy.overflow is Overflow.WRAP:
            return None if policy.wrap_bits is None else max(policy.wrap_bits - 2, 0)
        return dst.maximum.bit_length() - 1
    if isinstance(dst, TaperedFormat):
        return max(binade.fraction_bits for binade in dst.binades)
    if is_power_format(dst) and policy.e8m0_rule is E8M0Rule.ASL:
        return None  # compares with the square root of two, all of whose bits count
    return dst.fraction_bits


@lru_cache(maxsize=32)
def table_of(src: Format, dst: Format, policy: Policy) -> LookupTable | None:
    """Return the table of a cast, filled on first use; None if it has none (`dropped_bits`).

    Raises:
        IllegalError: the policy does not apply to the pair.
    """
    check_policy(src, dst, policy)
    dropped, size = dropped_bits(src, dst, policy), table_size(src, dst, policy)
    if dropped is None or size is None:
        return None
    codes = np.arange(size, dtype=np.uint64) << np.uint64(dropped)
    entries = cast_codes(codes.astype(code_dtype(src)), src, dst, policy)
    entries.flags.writeable = False
    return LookupTable(entries, dropped)


def cast_by_table(codes: Codes, src: Format, dst: Format, policy: Policy, *, out: Codes | None = None) -> Codes:
    """Convert codes like `cast_codes`, bit for bit, by look-up.

    Raises:
        IllegalError: the cast has no table; see also `cast_codes`.
        ReadError: see `cast_codes`.
    """
    table = table_of(src, dst, policy)
    if table is None:
        raise IllegalError(
            f"{src.name} -> {dst.name} by '{policy.rounding}' has no table", legal=("the reference tier",)
        )
    return look_up(table, codes, src, dst, out=out)


def look_up(table: LookupTable, codes: Codes, src: Format, dst: Format, *, out: Codes | None = None) -> Codes:
    """Convert codes by the table that `table_of` returned for the cast.

    Raises:
        ReadError: see `cast_codes`.
    """
    codes = check_codes(codes, src)
    out = check_out(out, codes, dst)
    index = np.empty(min(BLOCK, codes.size), np.intp)

    def fill(result: Codes, block: Codes) -> None:
        where = index[: block.size]
        if table.dropped_bits:
            _shorten(block, table.dropped_bits, where)
        else:
            where[...] = block
        # Every index is inside the table; "wrap" only spares take its buffered bounds check.
        table.entries.take(where, out=result, mode="wrap")

    walk(fill, out, codes, size=BLOCK)
    return out


def _shorten(block: Codes, dropped: int, index: NDArray[np.intp]) -> None:
    """Write code >> dropped with the last bit set if a dropped one was: adding the mask carries into it."""
    mask = block.dtype.type((1 << dropped) - 1)
    carried = block & mask
    carried += mask
    carried |= block
    np.right_shift(carried, block.dtype.type(dropped), out=index, casting="unsafe")
