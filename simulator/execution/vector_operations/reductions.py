"""Sums, products and extremes of rows and columns, in the order in which the kernels take them.

Source: docs/reference/pto.md sections 7.4 and 7.5. The order within one instruction is not stated: option `lane_order`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from castsim.execution.vector_operations.arithmetic import apply, clamped, constant_codes
from castsim.execution.vector_operations.behaviour import Behaviour
from castsim.execution.vector_operations.elements import numbers
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat


def reduce_rows(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Reduce every row of shape (rows, columns) to one element; return codes of shape (rows,)."""
    lanes = behaviour.facts.piece_bytes * 8 // fmt.storage_bits
    pieces = [codes[:, start : start + lanes] for start in range(0, codes.shape[1], lanes)]
    if behaviour.facts.row_pieces == "tree":
        return reduce_lanes(function, _joined(function, pieces, fmt, behaviour), fmt, behaviour)
    neutral = neutral_code(function, fmt)
    if (
        function == "mul"
    ):  # no instruction multiplies lanes: a vector of ones takes the pieces, then its lanes are joined
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
    """Reduce columns by neighbouring rows, again and again, through `scratch`; an odd last row joins the first sum.

    `scratch` has half the rows, rounded up, and keeps what was written to it last.
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

    Zeros of either sign are equal; what NaN is worth option `maximum_of_nan` says.
    """
    values = numbers(codes, fmt)
    found: Codes
    if isinstance(fmt, IntFormat):
        found = values.argmax(axis=1) if function == "max" else values.argmin(axis=1)
        return found
    if function == "min":
        values = -values
    missing, choice = np.isnan(values), behaviour.choice("maximum_of_nan")
    ranks = np.where(missing, values.dtype.type(-np.inf), values)
    found = ranks.argmax(axis=1)
    if choice == "number":  # a NaN is worth less than minus infinity
        known = (ranks == ranks.max(axis=1, keepdims=True)) & ~missing
        found = np.where(missing.all(axis=1), 0, known.argmax(axis=1))
    elif choice == "nan":
        found = np.where(missing.any(axis=1), missing.argmax(axis=1), found)
    else:  # nothing is found beyond a NaN in the first column
        found = np.where(missing[:, 0], 0, found)
    return found


def neutral_code(function: str, fmt: Format) -> int:
    """Return the code that a reduction starts from: 0, 1, or the least or greatest value."""
    if function in ("add", "mul"):
        return int(constant_codes(int(function == "mul"), fmt)[0])
    if isinstance(fmt, IntFormat):
        return (fmt.minimum if function == "max" else fmt.maximum) & ((1 << fmt.bits) - 1)
    assert isinstance(fmt, FloatFormat) and fmt.infinity_code is not None
    return fmt.infinity_code | (fmt.sign_bit if function == "max" else 0)


def _joined(function: str, pieces: list[Codes], fmt: Format, behaviour: Behaviour) -> Codes:
    """Join neighbouring pieces lane by lane until one is left; a shorter piece meets the first lanes of its partner."""
    while len(pieces) > 1:
        joined = []
        for one, two in zip(pieces[0::2], pieces[1::2], strict=False):
            width = two.shape[1]
            head = apply(function, (one[:, :width], two), fmt, behaviour)
            joined.append(np.concatenate((head, one[:, width:]), axis=1))
        if len(pieces) % 2:
            joined.append(pieces[-1])
        pieces = joined
    return pieces[0]


def reduce_lanes(function: str, codes: Codes, fmt: Format, behaviour: Behaviour) -> Codes:
    """Reduce what one instruction takes; a lane without a partner passes on to the next round.

    Where results clamp, every sum does; of extremes only the last, so that NaN and infinity win until then.
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
