"""Values through a compiled cast, beside those of the other account of its chain and of LLVM IR's own definition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from castsim.isa.codes import Codes
from castsim.isa.errors import ReadError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding
from castsim.isa.tpc.conversion_forms import RANDOM_ROUNDINGS
from castsim.numerics import Policy, code_dtype, convert_codes, decode_to_float64, encode_value, value_of
from castsim.targets.tpc_compiler import ChainReading
from castsim.tpc_compiler.compiled_casts.building import RESULT, Order
from castsim.tpc_compiler.compiled_casts.c_table import bits_of, is_float, is_signed
from castsim.tpc_compiler.compiled_casts.compiling import CompiledCast, SourceForm, prepared

# The casts of LLVM IR as its language reference defines them, to stand beside what the TPC compiler makes of them.
#
# fptosi and fptoui round towards zero, and are poison where the result does not fit or there is none; trunc drops the
# upper bits; sext, zext and fpext are exact; sitofp, uitofp and fptrunc round to nearest even and overflow to
# infinity.
# Source: LLVM Language Reference Manual, section Conversion Operations; rounding by its default floating-point
# environment.

Mask = NDArray[np.bool_]

_EXHAUSTIVE_BITS = 16
_LOWEST_POWER = -30


class Opcode(StrEnum):
    """Cast instructions of LLVM IR."""

    FPTRUNC = "fptrunc"
    FPEXT = "fpext"
    SITOFP = "sitofp"
    UITOFP = "uitofp"
    FPTOSI = "fptosi"
    FPTOUI = "fptoui"
    TRUNC = "trunc"
    SEXT = "sext"
    ZEXT = "zext"


def opcodes(src: str, dst: str) -> tuple[Opcode, ...]:
    """Return the instructions that lead from one element type to another, in order; i8 and u8 are one type there.

    Floats of one width (f16, bf16) need two; integers of one width none.
    """
    if is_float(src) and is_float(dst):
        if bits_of(src) == bits_of(dst):
            return (Opcode.FPEXT, Opcode.FPTRUNC)
        return (Opcode.FPEXT if bits_of(src) < bits_of(dst) else Opcode.FPTRUNC,)
    if is_float(src):
        return (Opcode.FPTOSI if is_signed(dst) else Opcode.FPTOUI,)
    if is_float(dst):
        return (Opcode.SITOFP if is_signed(src) else Opcode.UITOFP,)
    if bits_of(src) == bits_of(dst):
        return ()
    if bits_of(src) > bits_of(dst):
        return (Opcode.TRUNC,)
    return (Opcode.SEXT if is_signed(src) else Opcode.ZEXT,)


def defined(codes: Codes, src: str, dst: str) -> tuple[Codes, Mask]:
    """Return the result of LLVM IR for codes, and a mask of those that are poison (any value will do).

    Codes of `i1` are numbers of any width, each of which stands for whether it is other than zero.
    """
    if src == "i1":
        codes, src = (codes != 0).astype(np.uint8), "u8"
    source, result = _format(src), FORMATS[dst]
    poison = np.zeros(codes.shape, np.bool_)
    if isinstance(result, IntFormat):
        if isinstance(source, IntFormat):
            return convert_codes(codes, source, result, Policy(Rounding.TRUNC, Overflow.WRAP)), poison
        numbers = np.trunc(decode_to_float64(codes, source))
        low, high = -(1 << (result.bits - 1)) if result.signed else 0, (1 << (result.bits - result.signed)) - 1
        poison = ~((numbers >= low) & (numbers <= high))
        return convert_codes(codes, source, result, Policy(Rounding.TRUNC, Overflow.SATURATE)), poison
    return convert_codes(codes, source, result, Policy(Rounding.RINT, Overflow.SPECIAL)), poison


def differs(ours: Codes, defined_codes: Codes, poison: Mask, dst: str) -> Mask:
    """Return a mask of the results that LLVM IR does not allow; any NaN stands for any other."""
    fmt = FORMATS[dst]
    different: Mask = (ours != defined_codes) & ~poison
    if isinstance(fmt, FloatFormat):
        different &= ~(np.isnan(decode_to_float64(ours, fmt)) & np.isnan(decode_to_float64(defined_codes, fmt)))
    return different


@dataclass(frozen=True, slots=True)
class DifferingInput:
    """An input on which two casts differ, with both results as codes."""

    code: int
    ours: int
    other: int


def witness_of(inputs: Codes, ours: Codes, other: Codes, different: Mask, src: str) -> DifferingInput | None:
    """Return the difference at the number easiest to look at (positive, few digits, small); None: there is none."""
    fmt = _format(src)
    found = [int(place) for place in np.flatnonzero(different)]
    if not found:
        return None

    def ease(place: int) -> tuple[int, int, Fraction]:
        number = value_of(int(inputs[place]), fmt)
        if not isinstance(number, Fraction):
            return 2, 0, Fraction(0)
        digits = len(str(number.numerator).rstrip("0")) + len(str(number.denominator))
        return int(number < 0), digits, abs(number)

    best = min(found, key=ease)
    return DifferingInput(int(inputs[best]), int(ours[best]), int(other[best]))


@lru_cache(maxsize=16)
def inputs_of(src: str) -> Codes:
    """Return the inputs to look for differences in: every code of up to 16 bits, else the neighbourhood of sums of
    two powers of two, and the special values.
    """
    fmt = _format(src)
    if fmt.bits <= _EXHAUSTIVE_BITS:
        return np.arange(1 << fmt.bits, dtype=code_dtype(fmt))
    if isinstance(fmt, IntFormat):
        powers = [0, *(1 << place for place in range(fmt.bits))]
        sums = {one + other + step for one in powers for other in powers for step in (-1, 0, 1)}
        return np.array(sorted({number & (1 << fmt.bits) - 1 for number in sums}), code_dtype(fmt))
    assert isinstance(fmt, FloatFormat)
    fractions = [Fraction(2) ** place for place in range(_LOWEST_POWER, 2 * fmt.bits)]
    near = [
        encode_value(one + other, fmt).code
        for place, one in enumerate(fractions)
        for other in (Fraction(0), *fractions[max(0, place - fmt.fraction_bits) : place])
    ]
    top = 1 << (fmt.bits - 1)
    magnitudes = {code + step for code in near for step in (-1, 0, 1)} | {0, 1, top - 1, (top - 1) & ~((1 << 16) - 1)}
    magnitudes |= {encode_value(text, fmt).code for text in ("inf", "nan")}
    return np.array(sorted({code | sign for code in magnitudes for sign in (0, top)}), code_dtype(fmt))


def _format(name: str) -> Format:
    return FORMATS[name]


LANGUAGE = "LLVM IR"
_SCALAR_TRIALS = 400


@dataclass(frozen=True, slots=True)
class Column:
    """Results of one account: for every input a row of codes (one, save in reinterpretations).

    `poison` marks inputs for which the account allows any result.
    """

    label: str
    codes: Codes
    poison: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Difference:
    """That an account gives other values than the cast: the input that shows it best, and both results."""

    label: str
    witness: DifferingInput


@dataclass(frozen=True, slots=True)
class ResultComparison:
    """A cast with the results for some inputs, per account, and where accounts differ at all.

    `other` is the cast by the other reading, if its path differs. `vector_operations` and `bundles` are those of one
    vector. `instructions` are the casts of LLVM IR that the form `ir` stands for.
    """

    cast: CompiledCast
    other: CompiledCast | None
    columns: tuple[Column, ...]
    differences: tuple[Difference, ...]
    vector_operations: int
    bundles: int
    instructions: tuple[Opcode, ...]


def source_format(cast: CompiledCast) -> Format:
    """Return the format of the program's input: of a predicate, unsigned integers of the result's width."""
    element = cast.src.element
    return FORMATS[f"u{bits_of(cast.dst.element)}" if element == "i1" else element]


def compare(cast: CompiledCast, codes: Sequence[int]) -> ResultComparison:
    """Run a cast on codes and set the other accounts beside it.

    Raises:
        ReadError: too few narrow elements for a reinterpretation as wide ones.
        IllegalError: the target refuses an instruction.
    """
    fmt = source_format(cast)
    given = np.array(codes, code_dtype(fmt))
    other = _other(cast)
    casts = [cast] if other is None else [cast, other]
    columns = [Column(each.reading.value, _results(each, given), _nowhere(given)) for each in casts if given.size]
    instructions = opcodes(cast.src.element, cast.dst.element) if cast.form is SourceForm.IR else ()
    if instructions and given.size:
        found, poison = defined(given, cast.src.element, cast.dst.element)
        columns.append(Column(LANGUAGE, found.reshape(-1, 1), poison))
    some = given if given.size else np.zeros(1, code_dtype(fmt))
    counted = cast.run(some[:1] if cast.order is Order.SCALAR else some, checked=False)
    return ResultComparison(
        cast=cast,
        other=other,
        columns=tuple(columns),
        differences=tuple(_differences(cast, other, bool(instructions))),
        vector_operations=counted.vector_operations,
        bundles=len(cast.kernel.body),
        instructions=instructions,
    )


def _nowhere(codes: Codes) -> NDArray[np.bool_]:
    return np.zeros(codes.shape, np.bool_)


def _other(cast: CompiledCast) -> CompiledCast | None:
    """Return the cast by the other reading where that goes another way."""
    if cast.form in (SourceForm.REINTERPRET, SourceForm.IR) or cast.order is Order.SCALAR or cast.src.element == "i1":
        return None
    reading = ChainReading.DOCUMENT if cast.reading is ChainReading.COMPILER else ChainReading.COMPILER
    rounding = cast.mode if cast.form is SourceForm.AS else None
    found = prepared(
        cast.src, cast.dst, cast.target, form=cast.form, rounding=rounding, reading=reading, order=cast.order
    )
    return None if found.path.hops == cast.path.hops else found


def _results(cast: CompiledCast, codes: Codes) -> Codes:
    """Return a row of result codes per input; lanes of other orders are brought back to the inputs."""
    before, after = bits_of(source_format(cast).name), bits_of(cast.dst.element)
    if cast.form is SourceForm.REINTERPRET:
        if codes.size * before % after:
            raise ReadError(
                f"{codes.size} elements of {cast.src.element} are not a whole number of {cast.dst.element}",
                legal=(f"a multiple of {after // before} values",),
            )
        return cast.values(codes).reshape(-1, max(1, before // after))
    if cast.order is Order.LINEAR:
        return cast.values(codes).reshape(-1, 1)
    every = np.concatenate([cast.run(codes_at, checked=False).outputs[RESULT] for codes_at in _tiles(cast, codes)])
    return every[:, 0].reshape(-1, 1)


def _tiles(cast: CompiledCast, codes: Codes) -> Iterator[Codes]:
    """Yield vectors with one input in element 0, whose result stands in element 0 in every order."""
    count = cast.src.elements or 1
    for code in codes:
        yield np.full(count, code, codes.dtype)


def _differences(cast: CompiledCast, other: CompiledCast | None, in_ir: bool) -> Iterator[Difference]:
    """Look for inputs on which the accounts differ; random rounding differs from itself and is left out."""
    if cast.order not in (Order.LINEAR, Order.SCALAR) or cast.mode in RANDOM_ROUNDINGS or not (in_ir or other):
        return
    typed = source_format(cast).name
    inputs = inputs_of(typed)
    if cast.order is Order.SCALAR:  # a program for each
        inputs = inputs[:: -(-inputs.size // _SCALAR_TRIALS)]
    ours = cast.values(inputs)
    if in_ir:
        found, poison = defined(inputs, cast.src.element, cast.dst.element)
        different = differs(ours, found, poison, cast.dst.element)
        witness = witness_of(inputs, ours, found, different, typed)
        if witness is not None:
            yield Difference(LANGUAGE, witness)
    if other is not None:
        theirs = other.values(inputs)
        witness = witness_of(inputs, ours, theirs, ours != theirs, typed)
        if witness is not None:
            yield Difference(other.reading.value, witness)
