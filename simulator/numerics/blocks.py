"""Arrays of codes: their dtypes, their checks, and processing them in blocks.

A code is an unsigned integer of its format's storage width: the bit pattern in the low bits below zeros, but i48 is
sign-extended (stored in int64). Any layout is allowed: strided, 0-d, empty, read-only, unaligned, either byte order.
Work proceeds in blocks, so extra memory does not grow with the array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from castsim.isa.errors import ReadError
from castsim.isa.formats import Codes, Format, IntFormat, code_bits
from castsim.numerics.rounding import U64

BLOCK = 1 << 13
"""Number of elements converted at a time: the dozen 64-bit temporaries of a block stay in a second-level cache."""


def code_dtype(fmt: Format) -> np.dtype[Any]:
    """Return the unsigned dtype, in native byte order, for one code of the format."""
    return np.dtype(f"u{fmt.storage_bits // 8}")


def check_codes(codes: Codes, fmt: Format) -> Codes:
    """Return `codes` as an array after checking dtype and range.

    Raises:
        ReadError: the array is not of unsigned integers of the storage width, or a code exceeds the format. A `bool`
            code may be any value: all except 0 are true.
    """
    array = np.asarray(codes)
    if array.dtype.kind != "u" or array.dtype.itemsize * 8 != fmt.storage_bits:
        raise ReadError(
            f"codes of {fmt.name} come as {code_dtype(fmt)}, not {array.dtype}", legal=(str(code_dtype(fmt)),)
        )
    if fmt.bits < fmt.storage_bits and array.size and not (isinstance(fmt, IntFormat) and fmt.boolean):
        _check_range(array, fmt)
    return array


def _check_range(array: Codes, fmt: Format) -> None:
    if code_bits(fmt) == fmt.bits:
        largest = int(array.max())
        if largest >> fmt.bits:
            raise ReadError(f"{largest:#x} is not a code of {fmt.name}", legal=(f"0 to {(1 << fmt.bits) - 1:#x}",))
    elif isinstance(fmt, IntFormat):
        check_values(array.view(np.dtype(f"i{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)), fmt)


def check_values(values: Codes, fmt: IntFormat) -> None:
    """Reject an array, at least one element long, with a value outside an integer format.

    Raises:
        ReadError: a value is outside the format.
    """
    for extreme in (int(values.min()), int(values.max())):
        if not fmt.minimum <= extreme <= fmt.maximum:
            raise ReadError(f"{extreme} is not a value of {fmt.name}", legal=(f"{fmt.minimum} to {fmt.maximum}",))


def check_out(out: Codes | None, like: Codes, dst: Format, *further: Codes) -> Codes:
    """Return `out`, or a new array shaped `like` another, for codes of `dst`.

    Raises:
        ReadError: `out` has another shape, the wrong dtype, is read-only, or shares memory with `like` or another
            source. It may be `like` itself: the same elements at the same addresses.
    """
    if out is None:
        return np.empty_like(like, dtype=code_dtype(dst), subok=False)
    if (
        not isinstance(out, np.ndarray)
        or out.dtype.kind != "u"
        or out.dtype.itemsize * 8 != dst.storage_bits
        or not out.flags.writeable
    ):
        need = str(code_dtype(dst))
        shown = getattr(out, "dtype", type(out).__name__)
        raise ReadError(f"out must be a writable array of {need}, not {shown}", legal=(need,))
    if out.shape != like.shape:
        raise ReadError(f"out has shape {out.shape}, the codes have {like.shape}")
    for source in (like, *further):
        if np.may_share_memory(out, source) and not _same_elements(out, source) and _overlap(out, source):
            raise ReadError(
                "out overlaps an input", legal=("memory of its own", "the very array of codes, of equal width")
            )
    return out


def _same_elements(first: Codes, second: Codes) -> bool:
    """Return whether two arrays of one shape have every element at the same address in the same form."""
    same = first.strides == second.strides and first.dtype == second.dtype
    return same and first.__array_interface__["data"][0] == second.__array_interface__["data"][0]


def _overlap(first: Codes, second: Codes) -> bool:
    """Return whether the arrays share any byte; if that is expensive to decide, True."""
    try:
        return np.shares_memory(first, second, max_work=1 << 20)  # type: ignore[arg-type]  # any count is legal
    except np.exceptions.TooHardError:
        return True


def walk(function: Callable[..., None], out: Codes, *sources: Codes, size: int = BLOCK) -> None:
    """Call `function(out block, *source blocks)` over all elements; blocks are 1-d, contiguous and native.

    A block is written after it was read: `out` may be one of the sources, but not partly overlap one (`check_out`).
    """
    if all(
        array.ndim == 1 and array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative
        for array in (out, *sources)
    ):
        for start in range(0, out.size, size):
            function(out[start : start + size], *(source[start : start + size] for source in sources))
        return
    operands = [out, *sources]
    flags: list[list[Any]] = [["writeonly", "contig", "aligned"], *([["readonly", "contig", "aligned"]] * len(sources))]
    with np.nditer(
        operands,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=flags,
        op_dtypes=[operand.dtype.newbyteorder("=") for operand in operands],
        casting="equiv",
        buffersize=size,
    ) as blocks:
        for block in blocks:
            function(*block)


def convert_blocks(
    codes: Codes,
    dst: Format,
    convert: Callable[..., U64],
    random: Codes | None,
    out: Codes | None,
    shifts: Codes | None = None,
) -> Codes:
    """Apply `convert(codes, random words or None[, shifts])` to every block and return codes of `dst`.

    `convert` sees and returns uint64 arrays; shifts are int64 bits.

    Raises:
        ReadError: see `check_out`.
    """
    extra = [array for array in (random, shifts) if array is not None]
    out = check_out(out, codes, dst, *extra)

    def fill(result: Codes, block: Codes, *further: Codes) -> None:
        following = iter(further)
        words = None if random is None else next(following).astype(np.uint64)
        signed = [array.astype(np.int64).view(np.uint64) for array in following]
        result[...] = convert(block.astype(np.uint64), words, *signed)

    walk(fill, out, codes, *extra)
    return out
