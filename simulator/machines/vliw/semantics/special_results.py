"""Values of CALC_FP_SPECIAL: results of functions where the class of the operand decides them.

Source: docs/reference/tpc.md section 5.4; the results are those of IEEE 754 by class, which is inferred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

import numpy as np
from numpy.typing import NDArray

from castsim.isa.formats import FORMATS, FloatFormat
from castsim.isa.tpc.program import File, Register, TpcInstruction
from castsim.machines.vliw.semantics.configuration import check_element
from castsim.machines.vliw.semantics.interface import Effects, OperandValues, State
from castsim.machines.vliw.semantics.lanes import broadcast, elements, given, lanes_of, merged, vector_of
from castsim.machines.vliw.semantics.policies import nan_code
from castsim.machines.vliw.semantics.registers import destination_file, plain_registers
from castsim.machines.vliw.semantics.scalars import narrow_result
from castsim.machines.vliw.semantics.unstated import UnstatedError
from castsim.numerics import code_dtype
from castsim.targets.vliw import VliwTarget

_FLOATS = ("f32", "bf16", "f16")
_FLUSHED = ("f32", "bf16")


class _Kind(StrEnum):
    NAN = "nan"
    INFINITE = "infinite"
    FINITE = "finite"
    TINY = "tiny"
    """Subnormal: below one, and no integer."""
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class _Class:
    kind: _Kind
    negative: bool = False


class _Result(StrEnum):
    """A result of magnitude 0, 1 or infinity, or NaN; the sign is kept beside."""

    NAN = "nan"
    INFINITE = "infinite"
    ONE = "one"
    ZERO = "zero"


_Answer = tuple[_Result, bool] | None
"""A result and whether it is negative; None: the class does not decide it."""

_NUMBERS = (_Kind.FINITE, _Kind.TINY)
_CLASSES = 10
_NAN, _INFINITE, _ZERO = (_Result.NAN, False), _Result.INFINITE, _Result.ZERO


def _recip(x: _Class, y: _Class) -> _Answer:
    del y
    return {_Kind.ZERO: (_INFINITE, x.negative), _Kind.INFINITE: (_ZERO, x.negative)}.get(x.kind)


def _rsqrt(x: _Class, y: _Class) -> _Answer:
    del y
    if x.kind is _Kind.ZERO:
        return _INFINITE, x.negative
    if x.negative:
        return _NAN
    return (_ZERO, False) if x.kind is _Kind.INFINITE else None


def _sqrt(x: _Class, y: _Class) -> _Answer:
    del y
    if x.kind is _Kind.ZERO:
        return _ZERO, x.negative
    if x.negative:
        return _NAN
    return (_INFINITE, False) if x.kind is _Kind.INFINITE else None


def _log(x: _Class, y: _Class) -> _Answer:
    del y
    if x.kind is _Kind.ZERO:
        return _INFINITE, True
    if x.negative:
        return _NAN
    return (_INFINITE, False) if x.kind is _Kind.INFINITE else None


def _exp(x: _Class, y: _Class) -> _Answer:
    del y
    if x.kind is _Kind.INFINITE:
        return (_ZERO if x.negative else _INFINITE), False
    return (_Result.ONE, False) if x.kind is _Kind.ZERO else None


def _tanh(x: _Class, y: _Class) -> _Answer:
    del y
    if x.kind is _Kind.INFINITE:
        return _Result.ONE, x.negative
    return (_ZERO, x.negative) if x.kind is _Kind.ZERO else None


def _div(x: _Class, y: _Class) -> _Answer:
    negative = x.negative != y.negative
    if x.kind is y.kind and x.kind not in _NUMBERS:
        return _NAN
    if x.kind is _Kind.INFINITE or y.kind is _Kind.ZERO:
        return _INFINITE, negative
    return (_ZERO, negative) if x.kind is _Kind.ZERO or y.kind is _Kind.INFINITE else None


def _pow(x: _Class, y: _Class) -> _Answer:
    """Return what classes decide: whether y is an odd integer, and whether |x| is above 1, they may not tell."""
    if y.kind is _Kind.ZERO:
        return _Result.ONE, False
    if y.kind is _Kind.NAN:
        return None if x.kind is _Kind.FINITE and not x.negative else _NAN  # x may be 1
    known = y.kind is not _Kind.FINITE or not x.negative
    if x.kind in (_Kind.ZERO, _Kind.INFINITE) and known:
        grows = (x.kind is _Kind.INFINITE) != y.negative
        return (_INFINITE if grows else _ZERO), False
    if x.kind is _Kind.TINY and y.kind is _Kind.INFINITE:
        return (_INFINITE if y.negative else _ZERO), False
    return _NAN if x.negative and x.kind in _NUMBERS and y.kind is _Kind.TINY else None


_RULES: Mapping[str, Callable[[_Class, _Class], _Answer]] = {
    "recip": _recip,
    "rsqrt": _rsqrt,
    "sqrt": _sqrt,
    "log": _log,
    "exp": _exp,
    "tanh": _tanh,
    "div": _div,
    "pow": _pow,
}
_BINARY = ("div", "pow")


def _class_at(place: int, *, flushed: bool) -> _Class:
    """Return the class whose bit FCLASS sets; a subnormal that is flushed is zero."""
    if place >= 8:
        return _Class(_Kind.NAN)
    negative = place < 4
    distance = place if negative else 7 - place
    kinds = (_Kind.INFINITE, _Kind.FINITE, _Kind.ZERO if flushed else _Kind.TINY, _Kind.ZERO)
    return _Class(kinds[distance], negative)


def _answer(function: str, x: _Class, y: _Class) -> _Answer:
    one = function == "pow" and y.kind is _Kind.ZERO
    if not one and (x.kind is _Kind.NAN or (function == "div" and y.kind is _Kind.NAN)):
        return _NAN
    return _RULES[function](x, y)


@dataclass(frozen=True, slots=True)
class SpecialResult:
    """The instruction ready to run: result and whether there is one, by the numbers of both classes."""

    instruction: TpcInstruction
    target: VliwTarget
    fmt: FloatFormat
    codes: NDArray[np.int64]
    decided: NDArray[np.bool_]

    def __call__(self, operands: OperandValues, state: State) -> Effects:
        """Return the special results, income where the classes decide none."""
        fmt, dtype = self.fmt, code_dtype(self.fmt)
        single = destination_file(self.instruction) is File.S
        lanes = 1 if single else lanes_of(fmt, self.target.registers.vector_bytes)
        x, y = (
            _places(broadcast(given(self.instruction, operands, role), fmt, lanes).astype(np.int64))
            for role in ("src_a", "src_b")
        )
        codes, decided = self.codes[x, y].astype(dtype), self.decided[x, y]
        if single:
            if not decided[0]:
                return Effects(operands.income)
            return Effects(merged(narrow_result(int(codes[0]), fmt, operands, self.target), operands))
        assert isinstance(operands.income, np.ndarray)
        kept = elements(operands.income, fmt)
        return Effects(merged(vector_of(np.where(decided, codes, kept).astype(dtype), fmt), operands))

    def registers(self) -> Mapping[str, tuple[Register, ...]]:
        """Return the registers that the operands stand for."""
        return plain_registers(self.instruction, self.target)


def _places(masks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the lowest class bit of each mask, and one past all classes where none is set."""
    found = np.bitwise_count((masks & -masks) - 1).astype(np.int64)
    return np.where(found < _CLASSES, found, _CLASSES)


def prepare_special(instruction: TpcInstruction, target: VliwTarget) -> SpecialResult:
    """Check the instruction.

    Raises:
        IllegalError: the generation lacks the type.
        UnstatedError: option special_results refuses.
    """
    name = check_element(instruction, target, instruction.type, _FLOATS)
    if target.option("special_results") == "refuse":
        message = f"no source tabulates the results of {instruction.mnemonic} (option special_results)"
        raise UnstatedError(message, legal=("castsim lint", "castsim run --timing-only"))
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    flushed = name in _FLUSHED and target.option("arithmetic_subnormals") == "flush"
    function = str(instruction.switch("func"))
    codes = np.zeros((_CLASSES + 1, _CLASSES + 1), np.int64)
    decided = np.zeros(codes.shape, np.bool_)
    for first, second in product(range(_CLASSES), range(_CLASSES + 1)):
        if second == _CLASSES and function in _BINARY:
            continue
        y = _class_at(min(second, _CLASSES - 1), flushed=flushed)
        answer = _answer(function, _class_at(first, flushed=flushed), y)
        if answer is not None:
            codes[first, second], decided[first, second] = _code(answer, fmt), True
    return SpecialResult(instruction, target, fmt, codes, decided)


def _code(answer: tuple[_Result, bool], fmt: FloatFormat) -> int:
    result, negative = answer
    if result is _Result.NAN:
        return nan_code(fmt)
    infinite = fmt.exponent_mask << fmt.fraction_bits
    magnitude = {_Result.INFINITE: infinite, _Result.ONE: fmt.bias << fmt.fraction_bits, _Result.ZERO: 0}[result]
    return magnitude | negative << (fmt.bits - 1)
