"""The functions that vector operations apply per element, and their reductions of rows and columns, on codes.

Sums, products, quotients and roots are rounded once, to nearest, ties to even, and keep subnormals; exponential and
logarithm are rounded from the double-precision library function. No source states either for the chips
(docs/reference/pto.md section 7.1): assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from castsim.execution.outcomes import Judge, tell_change
from castsim.execution.vector_operations.shapes import Numbers, encoded, numbers
from castsim.execution.vector_operations.target_rules import Behaviour
from castsim.isa.dataclass import replace
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Rounding, format_named
from castsim.isa.pto.vector_operations import COMPOSITIONS

# Functions of integers as strings of bits.

_BITWISE: dict[str, Callable[..., Codes]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
}


def bitwise(function: str, operands: Sequence[Codes], _fmt: Format, _behaviour: Behaviour) -> Codes:
    """Return both operands combined bit by bit, or the inverse of one."""
    codes: Codes = _BITWISE[function](*operands)
    return codes


def shifted(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Shift by the second operand: `shr` keeps the sign of signed integers.

    No source states the effect of an amount outside 0 .. width - 1: option `shift_beyond_width`.
    """
    assert isinstance(fmt, IntFormat)
    first, second = np.broadcast_arrays(*operands)
    amounts = numbers(second, fmt).astype(np.int64)
    if behaviour.choice("shift_beyond_width") == "modulo":
        amounts = amounts % fmt.bits
    beyond = (amounts < 0) | (amounts >= fmt.bits)
    values = numbers(first, fmt).astype(np.int64)
    steps = np.where(beyond, fmt.bits, amounts)
    result = np.left_shift(values, steps) if function == "shl" else np.right_shift(values, steps)
    codes: Codes = result.astype(f"<u{fmt.bits // 8}")
    return codes


# Remainders, by the steps of the kernels: quotient, rounding, product, difference, each rounded in f32.
#
# Source: docs/reference/pto.md section 7.3.


def remainder(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return a - b * floor(a / b) for `rem`, a - b * trunc(a / b) for `fmod`; all formats go through f32.

    Option `remainder_by_zero` sets an integer remainder by zero, which no source states.
    """
    a, b = np.broadcast_arrays(*(numbers(codes, fmt).astype(np.float32) for codes in operands))
    whole = (np.floor if function == "rem" else np.trunc)(a / b)
    rest = a - whole * b
    if function == "rem":
        rest = np.where(rest * b < 0, rest + b, rest)
    if not isinstance(fmt, IntFormat):
        exact = rest if fmt.storage_bits == 32 else rest.astype(np.float64)
        return encoded(exact, fmt, saturates=behaviour.saturates)
    by_zero = a if behaviour.choice("remainder_by_zero") == "dividend" else np.zeros_like(a)
    wide = np.where(b == 0, by_zero, rest).astype(np.float64)
    codes: Codes = np.clip(wide, fmt.minimum, fmt.maximum).astype(np.int64).astype(f"<u{fmt.bits // 8}")
    return codes


_ARITHMETIC: dict[str, Callable[..., Numbers]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "exp": lambda a: np.exp(a.astype(np.float64)),
    "log": lambda a: np.log(a.astype(np.float64)),
    "pow": lambda a, b: np.power(a.astype(np.float64), b.astype(np.float64)),
    "estimate": lambda a: 1.0 / np.sqrt(a.astype(np.float64)),
}
"""Functions whose result is rounded to the element type."""


def apply(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the codes of a function of one or two operands of one format.

    Args:
        function: `add`, `max`, `exp`, ... as in `VectorOperation.function`; the parts of a composition apply in
            sequence.
        operands: code arrays of shapes that broadcast.
        fmt: their format and that of the result.
        behaviour: the target's additions.
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
    """Return the code of a small integer as an array of one element."""
    if isinstance(fmt, IntFormat):
        return np.array([value & ((1 << fmt.bits) - 1)], f"<u{fmt.bits // 8}")
    return encoded(np.array([value], np.float32 if fmt.storage_bits == 32 else np.float64), fmt)


def _computed(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    values = [numbers(codes, fmt) for codes in operands]
    if isinstance(fmt, IntFormat) and function == "div":
        return _quotient(values[0], values[1], fmt, behaviour)
    if isinstance(fmt, IntFormat) and function == "pow":
        return _integer_power(values[0], values[1], fmt)
    if isinstance(fmt, IntFormat) and behaviour.saturates:
        exact = np.ascontiguousarray(_ARITHMETIC[function](*(operand.astype(np.int64) for operand in values)))
        codes = encoded(np.clip(exact, fmt.minimum, fmt.maximum).astype(values[0].dtype), fmt)
        tell_change(
            Judge(format_named("i64"), fmt, Rounding.RINT, wraps=False), exact.view("<u8"), codes, converts=False
        )
        return codes
    return encoded(_ARITHMETIC[function](*values), fmt, saturates=behaviour.saturates)


def _quotient(dividend: Numbers, divisor: Numbers, fmt: IntFormat, behaviour: Behaviour) -> Codes:
    """Divide integers, truncating toward zero; the only overflow, the smallest number by -1, wraps."""
    a, b = np.broadcast_arrays(dividend.astype(np.int64), divisor.astype(np.int64))
    zero = b == 0
    magnitude = np.abs(a) // np.where(zero, 1, np.abs(b))
    quotient = np.where((a < 0) == (b < 0), magnitude, -magnitude)
    quotient[zero] = -1 if zero.any() and behaviour.choice("integer_division_by_zero") == "all_ones" else 0
    codes: Codes = quotient.astype(f"<i{fmt.bits // 8}").view(f"<u{fmt.bits // 8}")
    return codes


def _integer_power(base: Numbers, exponent: Numbers, fmt: IntFormat) -> Codes:
    """Multiply again and again, low bits kept; a negative exponent gives the quotient of 1, truncated: assumed."""
    square, steps = np.broadcast_arrays(base.astype(np.int64), exponent.astype(np.int64))
    result = np.ones_like(square)
    for bit in range(fmt.bits):
        result = np.where(np.abs(steps) >> bit & 1 == 1, result * square, result)
        square = square * square
    codes: Codes = np.where((steps < 0) & (np.abs(base.astype(np.int64)) != 1), 0, result).astype(f"<u{fmt.bits // 8}")
    return codes


def _extreme(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the larger or smaller operand, its bits kept."""
    first, second = np.broadcast_arrays(*operands)
    a, b = numbers(first, fmt), numbers(second, fmt)
    beyond = b > a if function == "max" else b < a
    if not isinstance(fmt, FloatFormat):
        return np.where(beyond, second, first)
    choice = behaviour.choice("maximum_of_nan")
    if choice == "first":
        return clamped(np.where(beyond, second, first), fmt, behaviour)
    negative = (first & fmt.sign_bit) != 0
    beyond |= (a == b) & (negative if function == "max" else ~negative)  # zeros of either sign
    result = np.where(beyond, second, first)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if choice == "number":
        result = np.where(nan_a, second, np.where(nan_b, first, result))
        nan_a &= nan_b
    else:
        nan_a |= nan_b
    return clamped(np.where(nan_a, result.dtype.type(fmt.nan_code), result), fmt, behaviour)


def clamped(codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Return results that preserve the bits of an operand: clamped, and 0 for NaN, if the target saturates."""
    if not (behaviour.saturates and isinstance(fmt, FloatFormat)):
        return codes
    return encoded(numbers(codes, fmt), fmt, saturates=True)


def _keeping(function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the absolute value or the positive part, which preserve bits or clear them."""
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
    """Multiply values with a sign bit, -0 included, by the second operand; keep all others."""
    first, second = np.broadcast_arrays(*operands)
    assert isinstance(fmt, FloatFormat)
    values, negative = numbers(first, fmt), (first & fmt.sign_bit) != 0
    return encoded(np.where(negative, values * numbers(second, fmt), values), fmt, saturates=behaviour.saturates)


def _accumulated(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Add the product of the first two operands to the third, rounded once or twice: option `axpy_rounding`."""
    a, factor, before = (numbers(codes, fmt) for codes in operands)
    if behaviour.choice("axpy_rounding") == "twice":
        product = numbers(encoded(a * factor, fmt), fmt)
        return encoded(before + product, fmt, saturates=behaviour.saturates)
    exact = _odd_sum(before.astype(np.float64), a.astype(np.float64) * factor.astype(np.float64))
    result = exact.astype(np.float32) if fmt.storage_bits == 32 else exact
    return encoded(result, fmt, saturates=behaviour.saturates)


def _product_with_result(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Multiply the first operand with the last and add the second."""
    factor, addend, before = operands
    return _accumulated("axpy", (factor, before, addend), fmt, behaviour)


def _sum_of_three(_function: str, operands: Sequence[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Add the first two operands, then the third, each sum rounded."""
    return apply("add", (apply("add", operands[:2], fmt, behaviour), operands[2]), fmt, behaviour)


def _odd_sum(left: Numbers, right: Numbers) -> Numbers:
    """Return sums rounded to odd: a later rounding to fewer bits then equals a single rounding."""
    total = left + right
    back = total - left
    lost = (left - (total - back)) + (right - back)
    inexact = np.isfinite(total) & np.isfinite(lost) & (lost != 0) & (total.view("<u8") & 1 == 0)
    towards = np.where(lost > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, towards), total)


_FUNCTIONS: dict[str, Callable[[str, Sequence[Codes], Format, Behaviour], Codes]] = {
    "max": _extreme,
    "min": _extreme,
    "move": lambda _function, operands, _fmt, _behaviour: operands[0],
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
    "madd": _product_with_result,
}
"""Functions that are more than a result rounded to the element type."""


# Sums, products and extremes of rows and columns, in the order in which the kernels take them.
#
# Source: docs/reference/pto.md sections 7.4 and 7.5. The order within one instruction is not stated: option
# `lane_order`.


def reduce_rows(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Reduce every row of shape (rows, columns) to one element; return codes of shape (rows,)."""
    lanes = behaviour.facts.piece_bytes * 8 // fmt.storage_bits
    pieces = [codes[:, start : start + lanes] for start in range(0, codes.shape[1], lanes)]
    if behaviour.facts.row_pieces == "tree":
        return reduce_lanes(function, _joined(function, pieces, fmt, behaviour), fmt, behaviour)
    neutral = neutral_code(function, fmt)
    if function == "mul":  # no instruction multiplies lanes: ones take the pieces, then lanes are joined
        products = np.full((codes.shape[0], lanes), neutral, codes.dtype)
        for piece in pieces:
            width = piece.shape[1]
            products[:, :width] = apply(function, (products[:, :width], piece), fmt, behaviour)
        return reduce_lanes(function, products, fmt, behaviour)
    total = np.full(codes.shape[0], neutral, codes.dtype)
    for piece in pieces:
        total = apply(function, (total, reduce_lanes(function, piece, fmt, behaviour)), fmt, behaviour)
    return total


def reduce_columns(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Reduce columns in row order; return codes of shape (columns,)."""
    total: Codes = codes[0]
    for row in codes[1:]:
        total = apply(function, (total, row), fmt, behaviour)
    return total


def reduce_columns_by_pairs(function: str, codes: Codes, fmt: Format, behaviour: Behaviour, scratch: Codes) -> Codes:
    """Reduce columns by neighbouring rows, repeatedly, through `scratch`; an odd last row joins the first sum.

    `scratch` has half the rows, rounded up, and keeps the last values written to it.
    """
    rows = codes
    while len(rows) > 1:
        half = len(rows) // 2
        sums = apply(function, (rows[0 : 2 * half : 2], rows[1 : 2 * half : 2]), fmt, behaviour)
        if len(rows) % 2:
            sums[0] = apply(function, (sums[0], rows[-1]), fmt, behaviour)
        scratch[:half] = sums
        rows = sums
    total: Codes = rows[0]
    return total


def places_of_extremes(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Return the column of the first greatest or least element of every row, int64 of shape (rows,).

    Zeros of either sign are equal; option `maximum_of_nan` decides on NaN.
    """
    values = numbers(codes, fmt)
    indices: Codes
    if isinstance(fmt, IntFormat):
        indices = values.argmax(axis=1) if function == "max" else values.argmin(axis=1)
        return indices
    if function == "min":
        values = -values
    missing, choice = np.isnan(values), behaviour.choice("maximum_of_nan")
    ranks = np.where(missing, values.dtype.type(-np.inf), values)
    indices = ranks.argmax(axis=1)
    if choice == "number":  # a NaN is worth less than minus infinity
        extremes = (ranks == ranks.max(axis=1, keepdims=True)) & ~missing
        indices = np.where(missing.all(axis=1), 0, extremes.argmax(axis=1))
    elif choice == "nan":
        indices = np.where(missing.any(axis=1), missing.argmax(axis=1), indices)
    else:  # nothing is found beyond a NaN in the first column
        indices = np.where(missing[:, 0], 0, indices)
    return indices


def neutral_code(function: str, fmt: Format) -> int:
    """Return the code with which a reduction starts: 0, 1, or the least or greatest value."""
    if function in ("add", "mul"):
        return int(constant_codes(int(function == "mul"), fmt)[0])
    if isinstance(fmt, IntFormat):
        return (fmt.minimum if function == "max" else fmt.maximum) & ((1 << fmt.bits) - 1)
    assert isinstance(fmt, FloatFormat) and fmt.infinity_code is not None
    return fmt.infinity_code | (fmt.sign_bit if function == "max" else 0)


def _joined(function: str, pieces: list[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Join neighbouring whole pieces lane by lane until only one remains, like the kernel's instructions.

    An odd last piece joins the first result of its round; a shorter piece joins the first lanes of the first round's.
    """
    lanes = pieces[0].shape[1]
    rest = [piece for piece in pieces[1:] if piece.shape[1] < lanes]
    pieces = pieces[: len(pieces) - len(rest)]
    while len(pieces) > 1 or rest:
        pairs = zip(pieces[0::2], pieces[1::2], strict=False)
        joined = [apply(function, pair, fmt, behaviour) for pair in pairs] or pieces
        late = [*([pieces[-1]] if len(pieces) % 2 and len(pieces) > 1 else []), *rest]
        for piece in late:
            width = piece.shape[1]
            head = apply(function, (joined[0][:, :width], piece), fmt, behaviour)
            joined[0] = np.concatenate((head, joined[0][:, width:]), axis=1)
        pieces, rest = joined, []
    return pieces[0]


def reduce_lanes(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Reduce the lanes of one instruction; a lane without a partner passes on to the next round.

    If results clamp, every sum does; for extremes only the last one, so NaN and infinity win until then.
    """
    inside = replace(behaviour, saturates=False) if function in ("max", "min") else behaviour
    return clamped(_in_order(function, codes, fmt, inside), fmt, behaviour)


def _in_order(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    if not isinstance(fmt, IntFormat) and behaviour.choice("lane_order") == "sequential":
        return reduce_columns(function, codes.T, fmt, behaviour)
    while codes.shape[1] > 1:
        count = codes.shape[1] // 2
        pairs = apply(function, (codes[:, 0 : 2 * count : 2], codes[:, 1 : 2 * count : 2]), fmt, behaviour)
        codes = np.concatenate((pairs, codes[:, 2 * count :]), axis=1)
    total: Codes = codes[:, 0]
    return total
