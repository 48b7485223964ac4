"""Arithmetic with a constant at the speed of machine code, for trying billions of codes.

Up to 16 bits a table holds what the machine model gives for every code, so nothing is left to prove. For 32 bits a
NumPy function stands in for the instruction: one that gives the very codes of the machine model on the edges of the
format and on thousands of random codes. That is a guess until all codes were tried: `castsim verify --substitutions`
does so, and the record that is shipped says for which instructions, constants and facts of a target it has been done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from castsim.isa.codes import Codes
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.lowering.samples import telling_codes
from castsim.lowering.steps import ConstantArithmetic
from castsim.numerics import code_dtype

Function = Callable[[Codes], Codes]

RECORD = Path(__file__).parent / "records" / "substitutions.json"
"""The shipped record of substitutions that were tried on all codes."""

_TRIED = 1 << 12
_NARROW = 16
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a substitution that a proof is about.

    `name` holds the target and the instruction with its operands, `facts` is the digest of what its values rest on,
    `shape` names the function that stands in for it.
    """

    name: str
    format: str
    constant: int | None
    facts: str
    shape: str


@dataclass(frozen=True, slots=True)
class Substitute:
    """A function that stands in for an instruction.

    `samples` are the codes on which it was found to agree; `proven` tells that it agrees on all.
    """

    primitive: ConstantArithmetic
    shape: str
    run: Function
    samples: int
    proven: bool

    @property
    def identity(self) -> Identity:
        """The identity that a proof of it must have."""
        return identity_of(self.primitive, self.shape)


def identity_of(primitive: ConstantArithmetic, shape: str) -> Identity:
    """Return the identity of a proof that a shape gives what a primitive gives."""
    return Identity(primitive.name, primitive.src.name, primitive.constant, primitive.facts, shape)


def substitute_of(primitive: ConstantArithmetic) -> Substitute | None:
    """Return a fast function that agrees with a primitive on the codes of its format, None if none is known."""
    fmt = primitive.src
    if fmt.storage_bits <= _NARROW:
        everything = np.arange(1 << fmt.storage_bits, dtype=code_dtype(fmt))
        return Substitute(primitive, "table", primitive.run(everything).take, everything.size, proven=True)
    if primitive.constant is None or fmt.storage_bits != 32:
        return None
    codes = telling_codes(fmt, (), _TRIED)
    expected = primitive.run(codes)
    for shape, run in shapes(primitive.constant, fmt):
        if np.array_equal(run(codes), expected):
            proven = identity_of(primitive, shape) in recorded()
            return Substitute(primitive, shape, run, codes.size, proven)
    return None


def disagreeing(substitute: Substitute, start: int, stop: int) -> Codes:
    """Return the codes of 32 bits from `start` to `stop - 1` for which a substitute gives what its primitive does not.

    Results are compared bit by bit.
    """
    found = [np.zeros(0, np.uint32)]
    for first in range(start, stop, _BLOCK):
        codes = np.arange(first, min(first + _BLOCK, stop), dtype=np.uint32)
        results, expected = substitute.run(codes), substitute.primitive.run(codes)
        if not np.array_equal(results, expected):
            found.append(codes[results != expected])
    return np.concatenate(found)


@cache
def recorded() -> frozenset[Identity]:
    """Return the substitutions that the shipped record has without a mismatch on all codes."""
    if not RECORD.is_file():
        return frozenset()
    parts = json.loads(RECORD.read_text(encoding="utf-8"))["parts"]
    return frozenset(
        Identity(part["name"], part["format"], part["constant"], part["facts"], part["shape"])
        for part in parts
        if part["tried"] == part["codes"] and not part["mismatches"]
    )


def shapes(constant: int, fmt: Format) -> Iterator[tuple[str, Function]]:
    """Yield what an instruction with a constant may do to codes of 32 bits, by name."""
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
    yield "constant unless zero", lambda codes: np.where(codes.view(native) != 0, code, raw.type(0))
    yield "constant unless a zero, kept", lambda codes: np.where(codes.view(native) == 0, codes, code)
    yield "sum modulo 2**32", lambda codes: codes + code
    yield "and", lambda codes: codes & code
    amount = constant & 0xFF
    if 0 < amount < fmt.storage_bits:
        yield "shift left", lambda codes: codes << raw.type(amount)
        yield "shift right", lambda codes: codes >> raw.type(amount)
    back = -constant & 0xFF
    if 0 < back < fmt.storage_bits:
        yield "shift right of the number", lambda codes: (codes.view(native) >> native.type(back)).view(raw)


def _extremes(compare: Callable[..., Any], number: Codes, code: Codes, fmt: Format) -> Iterator[tuple[str, Function]]:
    """Yield the choice of the operand for which a comparison holds, and the same with NaN made canonical."""
    native, name = number.dtype, compare.__name__.replace("_", " ")
    yield f"kept where {name}", lambda codes: np.where(compare(codes.view(native), number), codes, code)
    if not isinstance(fmt, FloatFormat) or fmt.nan_code is None:
        return
    nan = np.array(fmt.nan_code, code.dtype)

    def with_nan(codes: Codes) -> Codes:
        values = codes.view(native)
        return np.where(values != values, nan, np.where(compare(values, number), codes, code))  # noqa: PLR0124

    yield f"kept where {name}, canonical NaN", with_nan


def _sums(number: Codes, code: Codes, fmt: FloatFormat) -> Iterator[tuple[str, Function]]:
    """Yield the sum rounded to nearest, ties to even, and the same with NaN as the canonical one or all ones."""
    raw, native = code.dtype, number.dtype

    def rounded(codes: Codes) -> Codes:
        with np.errstate(all="ignore"):
            found: Codes = (codes.view(native) + number).view(raw)
        return found

    def with_nan(nan: int) -> Function:
        def replaced(codes: Codes) -> Codes:
            values = codes.view(native)
            return np.where(values != values, raw.type(nan), rounded(codes))  # noqa: PLR0124

        return replaced

    yield "sum", rounded
    if fmt.nan_code is not None:
        yield "sum, canonical NaN", with_nan(fmt.nan_code)
        yield "sum, NaN of all ones", with_nan(fmt.sign_bit - 1)
