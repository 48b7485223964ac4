"""Arithmetic with a constant at the speed of machine code, for trying billions of codes.

Each shape here is only a guess at what an instruction does: it is used where it gives the very codes that the machine
model gives on the edges of the format and on thousands of random codes, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.formats import FloatFormat, Format, IntFormat
from simulator.planning.primitives import Arithmetic
from simulator.planning.samples import telling_codes

Codes = NDArray[Any]
Swift = Callable[[Codes], Codes]

_TRIED = 1 << 12


@lru_cache(maxsize=256)
def swift_of(primitive: Arithmetic, fmt: Format) -> Swift | None:
    """Return a fast function that agrees with the primitive on codes of `fmt`, None if none is known."""
    if primitive.constant is None or (isinstance(fmt, FloatFormat) and fmt.storage_bits != 32):
        return None
    codes = telling_codes(fmt, (), _TRIED)
    expected = primitive.run(codes)
    return next((shape for shape in _shapes(primitive.constant, fmt) if (shape(codes) == expected).all()), None)


def _shapes(constant: int, fmt: Format) -> Iterator[Swift]:
    raw = np.dtype(f"u{fmt.storage_bits // 8}")
    code = np.array(constant & ((1 << fmt.storage_bits) - 1), raw)
    native = raw
    if isinstance(fmt, FloatFormat):
        native = np.dtype(f"f{fmt.storage_bits // 8}")
    elif isinstance(fmt, IntFormat) and fmt.signed:
        native = np.dtype(f"i{fmt.storage_bits // 8}")
    number = code.view(native)
    for compare in (np.greater_equal, np.less_equal, np.greater, np.less):
        yield from _extremes(compare, number, code, fmt)
    if isinstance(fmt, FloatFormat):
        yield from _sums(number, code, fmt)
    yield lambda codes: np.where(codes.view(native) != 0, code, raw.type(0))
    yield lambda codes: np.where(codes.view(native) == 0, codes, code)
    yield lambda codes: codes + code
    yield lambda codes: codes & code
    amount = constant & 0xFF
    if 0 < amount < fmt.storage_bits:
        yield lambda codes: codes << raw.type(amount)
        yield lambda codes: codes >> raw.type(amount)
    back = -constant & 0xFF
    if 0 < back < fmt.storage_bits:
        yield lambda codes: (codes.view(native) >> native.type(back)).view(raw)


def _extremes(compare: Callable[..., Any], number: Codes, code: Codes, fmt: Format) -> Iterator[Swift]:
    """Yield the choice of the operand for which a comparison holds, and the same with NaN made canonical."""
    native = number.dtype
    yield lambda codes: np.where(compare(codes.view(native), number), codes, code)
    if not isinstance(fmt, FloatFormat) or fmt.nan_code is None:
        return
    nan = np.array(fmt.nan_code, code.dtype)

    def with_nan(codes: Codes) -> Codes:
        values = codes.view(native)
        return np.where(values != values, nan, np.where(compare(values, number), codes, code))  # noqa: PLR0124

    yield with_nan


def _sums(number: Codes, code: Codes, fmt: FloatFormat) -> Iterator[Swift]:
    """Yield the sum rounded to nearest, ties to even, and the same with NaN as the canonical one or all ones."""
    raw, native = code.dtype, number.dtype

    def rounded(codes: Codes) -> Codes:
        with np.errstate(all="ignore"):
            found: Codes = (codes.view(native) + number).view(raw)
        return found

    def with_nan(nan: int) -> Swift:
        def replaced(codes: Codes) -> Codes:
            values = codes.view(native)
            return np.where(values != values, raw.type(nan), rounded(codes))  # noqa: PLR0124

        return replaced

    yield rounded
    if fmt.nan_code is not None:
        yield with_nan(fmt.nan_code)
        yield with_nan(fmt.sign_bit - 1)
