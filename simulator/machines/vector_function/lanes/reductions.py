"""Reductions of a register to one lane, and of its 32-byte blocks or neighbouring pairs to one lane each.

Source: docs/reference/micro.md section 3.10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from castsim.execution.vector_operations.elements import numbers
from castsim.execution.vector_operations.reductions import neutral_code, reduce_lanes
from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.machines.vector_function.lanes.arithmetic import behaviour
from castsim.machines.vector_function.lanes.operands import Operands, Value
from castsim.machines.vector_function.lanes.registers import REGISTER_BYTES, Bits, every_of_row, register_of
from castsim.targets.dataflow import BLOCK_BYTES


def reduced(function: str, parts: int | None) -> Callable[[Operands], tuple[Value, ...]]:
    """A reduction (`add`, `max`, `min`) of equal parts of a register to as many leading lanes; the rest is 0.

    None parts: one for every two lanes.
    Inactive lanes take no part. Sums are rounded step by step in the result's format, in the order of option
    `lane_order`.
    """

    def run(operands: Operands) -> tuple[Value, ...]:
        (source,), (mask,), bits = operands.registers, operands.masks, operands.bits
        fmt = operands.result
        codes = _widened(source.lanes(bits), operands)
        active = mask.lanes(bits)
        groups = len(codes) // 2 if parts is None else parts
        rows = _without(function, fmt, codes.reshape(groups, -1), active.reshape(groups, -1))
        names = ("maximum_of_nan", "lane_order") if function != "add" else ("lane_order",)
        totals = reduce_lanes(function, rows, fmt, behaviour(function, fmt, operands, *names))
        lanes = REGISTER_BYTES // codes.dtype.itemsize
        result, defined = np.zeros(lanes, codes.dtype), np.ones(lanes, np.bool_)
        result[:groups] = totals
        known = (source.defined_lanes(bits) | ~active) & mask.defined_lanes(bits)
        defined[:groups] = every_of_row(known.reshape(groups, -1))
        return (register_of(result, defined),)

    return run


def _without(function: str, fmt: Format, codes: Codes, active: Bits) -> Codes:
    """Return rows of lanes with those that take no part made neutral: beside others a zero of a sum is -0."""
    neutral = np.full((len(codes), 1), neutral_code(function, fmt), codes.dtype)
    if isinstance(fmt, FloatFormat) and function == "add":
        neutral[active.any(axis=1)] = fmt.sign_bit
    return np.where(active, codes, neutral)


def _widened(codes: Codes, operands: Operands) -> Codes:
    """Return lanes as codes of the result's format, which may be a wider integer."""
    fmt = operands.result
    if not isinstance(operands.element, IntFormat) or fmt.bits == operands.element.bits:
        return codes
    wide: Codes = numbers(codes, operands.element).astype(np.int64).astype(f"<u{fmt.bits // 8}")
    return wide


BLOCKS = REGISTER_BYTES // BLOCK_BYTES
