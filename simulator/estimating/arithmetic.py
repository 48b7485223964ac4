"""One source for formulas on single integers and on arrays of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from castsim.timing import Cause

Number = Any
"""An int, or an array of int64; conditions are bools, or arrays of them."""


@dataclass(frozen=True, slots=True)
class NumberFunctions:
    """Functions that Python and NumPy spell differently.

    The larger and the smaller of two, a choice by a condition, an entry of a table by its place.
    """

    larger: Callable[[Number, Number], Number]
    smaller: Callable[[Number, Number], Number]
    choose: Callable[[Number, Number, Number], Number]
    look_up: Callable[[tuple[int, ...], Number], Number]


def _choose(condition: bool, yes: int, no: int) -> int:
    return yes if condition else no


SCALAR = NumberFunctions(max, min, _choose, operator.getitem)


def _look_up(table: tuple[int, ...], places: Number) -> Number:
    return np.asarray(table, np.int64)[places]


def of_arrays() -> NumberFunctions:
    """Return the arithmetic of NumPy arrays."""
    return NumberFunctions(np.maximum, np.minimum, np.where, _look_up)


class Shape(NamedTuple):
    """The shape on which the cycles of a cast depend: extents in elements, strides from row to row of both tiles.

    Every field is an int, or an array of int64; all arrays have one length.
    """

    rows: Number
    src_stride: Number
    dst_stride: Number
    valid_rows: Number
    valid_cols: Number
    cols: Number


class CastCycles(NamedTuple):
    """Cycles of a cast alone, those of the pipe that converts by cause, busy ones of the scalar unit.

    `converting` is in the order of `Cause`, without the empty cycles. All three count the cycles of the cast and none
    that its convention leaves out.
    """

    cycles: Number
    converting: tuple[tuple[Cause, Number], ...]
    scalar: Number


def up(number: Number, step: int) -> Number:
    """Return the next multiple of `step`."""
    return -(-number // step) * step
