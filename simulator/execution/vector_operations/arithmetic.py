"""The functions that vector operations apply per element, on codes.

Sums, products, quotients and roots are rounded once, to nearest, ties to even, and keep subnormals; exponential and
logarithm are rounded from the double-precision library function. No source states either for the chips
(docs/reference/pto.md section 7.1): assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.bitwise import bitwise, shifted
from castsim.execution.vector_operations.elements import Numbers, encoded, numbers
from castsim.execution.vector_operations.remainders import remainder
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.pto.vector_operations import COMPOSITIONS

_ARITHMETIC: dict[str, Callable[..., Numbers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "exp": lambda a: np.exp(a.astype(np.float64)),
    "log": lambda a: np.log(a.astype(np.float64)),
    "estimate": lambda a: 1.0 / np.sqrt(a.astype(np.float64)),
}
"""Functions whose result is rounded to the element type."""


def apply(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the codes of a function of one or two operands of one format.

    Args:
        function: `add`, `max`, `exp`, ... as `VectorOperation.function` names it; a composition applies its parts one
            after the other.
        operands: code arrays of shapes that broadcast.
        fmt: their format and that of the result.
        behaviour: what the target adds.
    """
    with np.errstate(all="ignore"):
        for part in COMPOSITIONS.get(function, ()):
            if part.constant is not None:
                constant = constant_codes(part.constant, fmt)
                operands = (constant, *operands) if part.constant_first else (*operands, constant)
            operands = (apply(part.function, operands, fmt, behaviour),)
        if function in COMPOSITIONS:
            return operands[0]
        return _FUNCTIONS.get(function, _computed)(function, operands, fmt, behaviour)


def constant_codes(value: int, fmt: Format) -> Codes:
    """Return the code of a small whole number as an array of one element."""
    if isinstance(fmt, IntFormat):
        return np.array([value & ((1 << fmt.bits) - 1)], f"<u{fmt.bits // 8}")
    return encoded(np.array([value], np.float32 if fmt.storage_bits == 32 else np.float64), fmt)


def _computed(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    values = [numbers(codes, fmt) for codes in operands]
    if isinstance(fmt, IntFormat) and function == "div":
        return _quotient(values[0], values[1], fmt, behaviour)
    if isinstance(fmt, IntFormat) and behaviour.saturates:
        exact = _ARITHMETIC[function](*(each.astype(np.int64) for each in values))
        return encoded(np.clip(exact, fmt.minimum, fmt.maximum).astype(values[0].dtype), fmt)
    return encoded(_ARITHMETIC[function](*values), fmt, saturates=behaviour.saturates)


def _quotient(dividend: Numbers, divisor: Numbers, fmt: IntFormat, behaviour: Behaviour) -> Codes:
    """Divide integers, truncating toward zero; the one overflow, the smallest number by -1, wraps."""
    a, b = np.broadcast_arrays(dividend.astype(np.int64), divisor.astype(np.int64))
    zero = b == 0
    magnitude = np.abs(a) // np.where(zero, 1, np.abs(b))
    quotient = np.where((a < 0) == (b < 0), magnitude, -magnitude)
    quotient[zero] = -1 if zero.any() and behaviour.choice("integer_division_by_zero") == "all_ones" else 0
    codes: Codes = quotient.astype(f"<i{fmt.bits // 8}").view(f"<u{fmt.bits // 8}")
    return codes


def _extreme(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the larger or smaller operand, its bits kept."""
    one, two = np.broadcast_arrays(*operands)
    a, b = numbers(one, fmt), numbers(two, fmt)
    beyond = b > a if function == "max" else b < a
    if not isinstance(fmt, FloatFormat):
        return np.where(beyond, two, one)
    choice = behaviour.choice("maximum_of_nan")
    if choice == "first":
        return clamped(np.where(beyond, two, one), fmt, behaviour)
    negative = (one & fmt.sign_bit) != 0
    beyond |= (a == b) & (negative if function == "max" else ~negative)  # zeros of either sign
    result = np.where(beyond, two, one)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if choice == "number":
        result = np.where(nan_a, two, np.where(nan_b, one, result))
        nan_a &= nan_b
    else:
        nan_a |= nan_b
    return clamped(np.where(nan_a, result.dtype.type(fmt.nan_code), result), fmt, behaviour)


def clamped(codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Return results that kept the bits of an operand: clamped, and 0 for NaN, where the target saturates."""
    if not (behaviour.saturates and isinstance(fmt, FloatFormat)):
        return codes
    return encoded(numbers(codes, fmt), fmt, saturates=True)


def _moved(_function: str, operands: Sequence[Codes], _fmt: Format, _behaviour: Behaviour) -> Codes:
    return operands[0]


def _keeping(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return absolute value or the positive part, of which both leave bits as they are or clear them."""
    (codes,) = operands
    values = numbers(codes, fmt)
    if function == "abs":
        if isinstance(fmt, IntFormat):
            return encoded(np.abs(values), fmt)
        return clamped(codes & _positive_mask(fmt, codes), fmt, behaviour)
    result = np.where(values > 0, codes, codes.dtype.type(0))
    if isinstance(fmt, FloatFormat) and behaviour.choice("relu_of_nan") == "nan":
        result = np.where(np.isnan(values), codes.dtype.type(fmt.nan_code), result)
    return clamped(result, fmt, behaviour)


def _positive_mask(fmt: Format, codes: Codes) -> Codes:
    assert isinstance(fmt, FloatFormat)
    return np.array(fmt.sign_bit - 1, codes.dtype)


def _reciprocal_root(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    if behaviour.facts.reciprocal_root == "estimate" and not behaviour.uses_tmp:
        return _computed("estimate", operands, fmt, behaviour)
    root = _computed("sqrt", operands, fmt, behaviour)
    return _computed("div", (constant_codes(1, fmt), root), fmt, behaviour)


def _leaky(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Multiply what has a sign bit by the second operand, -0 included; keep everything else."""
    one, two = np.broadcast_arrays(*operands)
    assert isinstance(fmt, FloatFormat)
    values, negative = numbers(one, fmt), (one & fmt.sign_bit) != 0
    return encoded(np.where(negative, values * numbers(two, fmt), values), fmt, saturates=behaviour.saturates)


def _accumulated(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Add the product of the first two operands to the third, rounded once or twice: option `axpy_rounding`."""
    a, factor, before = (numbers(codes, fmt) for codes in operands)
    if behaviour.choice("axpy_rounding") == "twice":
        product = numbers(encoded(a * factor, fmt), fmt)
        return encoded(before + product, fmt, saturates=behaviour.saturates)
    exact = _odd_sum(before.astype(np.float64), a.astype(np.float64) * factor.astype(np.float64))
    result = exact.astype(np.float32) if fmt.storage_bits == 32 else exact
    return encoded(result, fmt, saturates=behaviour.saturates)


def _sum_of_three(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Add the first two operands, then the third, each sum rounded."""
    return apply("add", (apply("add", operands[:2], fmt, behaviour), operands[2]), fmt, behaviour)


def _odd_sum(one: Numbers, two: Numbers) -> Numbers:
    """Return sums rounded to odd: a narrower rounding of them is the only one that shows."""
    total = one + two
    back = total - one
    lost = (one - (total - back)) + (two - back)
    inexact = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & (total.view("<u8") & 1 == 0)
    towards = np.where(lost > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, towards), total)


_FUNCTIONS: dict[str, Callable[[str, Sequence[Codes], Format, Behaviour], Codes]] = {
    "max": _extreme,
    "min": _extreme,
    "move": _moved,
    "abs": _keeping,
    "relu": _keeping,
    "rsqrt": _reciprocal_root,
    "and": bitwise,
    "or": bitwise,
    "xor": bitwise,
    "not": bitwise,
    "shl": shifted,
    "shr": shifted,
    "rem": remainder,
    "fmod": remainder,
    "prelu": _leaky,
    "axpy": _accumulated,
    "addc": _sum_of_three,
}
"""Functions that are more than a result rounded to the element type."""
