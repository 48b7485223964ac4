"""Values of a compiled cast, compared with the other account of its chain and with LLVM IR's own definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from castsim.isa.dataclass import dataclass
from castsim.isa.errors import CastsimError, IllegalError, ReadError, SourceText, Span
from castsim.isa.formats import FORMATS, Codes, FloatFormat, Format, IntFormat, Overflow, Rounding
from castsim.isa.tpc.instructions import RANDOM_ROUNDINGS
from castsim.numerics.blocks import code_dtype
from castsim.numerics.codec import decode_to_float64, encode_value, value_of
from castsim.numerics.policy import Policy
from castsim.numerics.tiers import convert_codes
from castsim.reports.documents import Document, Keys, apart, derived, record, says
from castsim.reports.numbers import bits_text, json_value, number_document
from castsim.reports.schemas.keys import Bits, Bundles, Number, Value
from castsim.reports.value_casts import SourceValue
from castsim.targets.tpc_compiler import ChainReading
from castsim.targets.vliw import VliwTarget
from castsim.tools.compiled.compiled_casts import CompiledCast, SourceForm, prepared, word_of
from castsim.tools.tpc_compiler.c_table import ElementVector, bits_of, is_float, is_signed, matched
from castsim.tools.tpc_compiler.cast_building import RESULT, Order

# The casts of LLVM IR as its language reference defines them, to stand beside what the TPC compiler makes of them.
#
# fptosi and fptoui round towards zero, and are poison where the result does not fit or there is none; trunc drops the
# upper bits; sext, zext and fpext are exact; sitofp, uitofp and fptrunc round to nearest even and overflow to
# infinity. Source: LLVM Language Reference Manual, section Conversion Operations; rounding by its default floating-
# point environment.

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
    """Return the instructions from one element type to another, in order; i8 and u8 are one type there.

    Floats of the same width (f16, bf16) need two; integers of the same width none.
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
    """Return the result of LLVM IR for codes, and a mask of poison results (any value is allowed).

    Codes of `i1` are numbers of any width, each of which represents whether it is nonzero.
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
    """Return a mask of the results that LLVM IR does not allow; all NaNs are equivalent."""
    fmt = FORMATS[dst]
    different: Mask = (ours != defined_codes) & ~poison
    if isinstance(fmt, FloatFormat):
        different &= ~(np.isnan(decode_to_float64(ours, fmt)) & np.isnan(decode_to_float64(defined_codes, fmt)))
    return different


@dataclass(frozen=True, slots=True)
class DifferingInput:
    """An input for which two casts differ, with both results as codes."""

    code: int
    ours: int
    other: int


def witness_of(inputs: Codes, ours: Codes, other: Codes, different: Mask, src: str) -> DifferingInput | None:
    """Return the difference at the simplest number (positive, few digits, small); None: there is none."""
    fmt = _format(src)
    indices = [int(index) for index in np.flatnonzero(different)]
    if not indices:
        return None

    def ease(index: int) -> tuple[int, int, Fraction]:
        number = value_of(int(inputs[index]), fmt)
        if not isinstance(number, Fraction):
            return 2, 0, Fraction(0)
        digits = len(str(number.numerator).rstrip("0")) + len(str(number.denominator))
        return int(number < 0), digits, abs(number)

    best = min(indices, key=ease)
    return DifferingInput(int(inputs[best]), int(ours[best]), int(other[best]))


@lru_cache(maxsize=16)
def inputs_of(src: str) -> Codes:
    """Return the inputs for a search for differences: every code of up to 16 bits, else the neighbourhood of sums of
    two powers of two, and the special values.
    """
    fmt = _format(src)
    if fmt.bits <= _EXHAUSTIVE_BITS:
        return np.arange(1 << fmt.bits, dtype=code_dtype(fmt))
    if isinstance(fmt, IntFormat):
        powers = [0, *(1 << exponent for exponent in range(fmt.bits))]
        sums = {power + other + step for power in powers for other in powers for step in (-1, 0, 1)}
        return np.array(sorted({number & (1 << fmt.bits) - 1 for number in sums}), code_dtype(fmt))
    assert isinstance(fmt, FloatFormat)
    fractions = [Fraction(2) ** exponent for exponent in range(_LOWEST_POWER, 2 * fmt.bits)]
    near = [
        encode_value(fraction + other, fmt).code
        for index, fraction in enumerate(fractions)
        for other in (Fraction(0), *fractions[max(0, index - fmt.fraction_bits) : index])
    ]
    top = 1 << (fmt.bits - 1)
    magnitudes = {code + step for code in near for step in (-1, 0, 1)} | {0, 1, top - 1, (top - 1) & ~((1 << 16) - 1)}
    magnitudes |= {encode_value(text, fmt).code for text in ("inf", "nan")}
    return np.array(sorted({code | sign for code in magnitudes for sign in (0, top)}), code_dtype(fmt))


def _format(name: str) -> Format:
    return FORMATS[name]


LANGUAGE = "LLVM IR"
_SCALAR_TRIALS = 400


def _values(account: Account) -> list[list[Document]]:
    fmt = account.format
    return [[number_document(code, value_of(code, fmt), fmt) for code in row] for row in account.codes.tolist()]


@record
class Account(Keys):
    """Results according to one account."""

    account: str = says("Name of the account.")
    path: str | None = says("The path in words; null if there is none.")
    format: Format = apart()
    codes: NDArray[Any] = apart()
    """A row for every input: one code, except in reinterpretations."""
    values: list[list[Number]] = derived("The results of each input.", _values)
    poison: list[bool] = says("Whether each input gives poison, for which any result is valid.")


@record
class AccountDifference(Keys):
    """A value for which accounts differ."""

    account: str = says("The other account.")
    src: Format = apart()
    dst: Format = apart()
    witness: DifferingInput = apart()
    """The simplest input that shows it."""
    input_bits: Bits = derived(
        "The code of the input.", lambda difference: bits_text(difference.witness.code, difference.src)
    )
    input: Value = derived(
        "The number of the input.", lambda difference: _number(difference.witness.code, difference.src)
    )
    value: Value = derived("The result.", lambda difference: _number(difference.witness.ours, difference.dst))
    other_value: Value = derived(
        "The result by the other account.", lambda difference: _number(difference.witness.other, difference.dst)
    )


def _number(code: int, fmt: Format) -> int | float | str:
    """Return the number of a code as in JSON."""
    return json_value(value_of(code, fmt), fmt)


class CompiledInput(Number):
    """A value that was cast."""

    text: str = says("The input as given.")


def _inputs(results: CompiledResults) -> list[Document]:
    src = source_format(results.cast)
    return [CompiledInput.of(source, **number_document(source.code, source.value, src)) for source in results.sources]


@record
class CompiledResults(Keys):
    """A cast with the results for some inputs, by account, and the differences between the accounts."""

    cast: CompiledCast = apart()
    other: CompiledCast | None = apart()
    """The cast by the other reading, if its path differs."""
    sources: Sequence[SourceValue] = apart()
    vector_operations: int = says("Vector operations of one vector.")
    bundles: Bundles = says("Bundles of one vector.")
    ir: tuple[str, ...] = says("The instructions of LLVM IR.")
    """Those that the form `ir` represents."""
    inputs: list[CompiledInput] = derived("The values.", _inputs)
    columns: tuple[Account, ...] = says("The results by account.", key="results")
    differences: tuple[AccountDifference, ...] = says("The differences between the accounts.")


def source_format(cast: CompiledCast) -> Format:
    """Return the format of the program's input; for a predicate, unsigned integers of the result's width."""
    element = cast.src.element
    return FORMATS[f"u{bits_of(cast.dst.element)}" if element == "i1" else element]


def compare(cast: CompiledCast, sources: Sequence[SourceValue]) -> CompiledResults:
    """Run a cast on values and compare it with the other accounts.

    Raises:
        ReadError: there are too few narrow elements for a reinterpretation as wide ones.
        IllegalError: the target rejects an instruction.
    """
    fmt, result = source_format(cast), FORMATS[cast.dst.element]
    given = np.array([source.code for source in sources], code_dtype(fmt))
    other = _other(cast)
    casts = [cast] if other is None else [cast, other]
    columns = [
        Account(account.reading.value, str(account.path), result, _results(account, given), [False] * given.size)
        for account in casts
        if given.size
    ]
    instructions = opcodes(cast.src.element, cast.dst.element) if cast.form is SourceForm.IR else ()
    if instructions and given.size:
        expected, poison = defined(given, cast.src.element, cast.dst.element)
        columns.append(Account(LANGUAGE, None, result, expected.reshape(-1, 1), poison.tolist()))
    some = given if given.size else np.zeros(1, code_dtype(fmt))
    counted = cast.run(some[:1] if cast.order is Order.SCALAR else some, checked=False)
    return CompiledResults(
        cast=cast,
        other=other,
        sources=sources,
        vector_operations=counted.vector_operations,
        bundles=len(cast.kernel.body),
        ir=instructions,
        columns=tuple(columns),
        differences=tuple(_differences(cast, other, bool(instructions))),
    )


def _other(cast: CompiledCast) -> CompiledCast | None:
    """Return the cast by the other reading where that goes another way."""
    if cast.form in (SourceForm.REINTERPRET, SourceForm.IR) or cast.order is Order.SCALAR or cast.src.element == "i1":
        return None
    reading = ChainReading.DOCUMENT if cast.reading is ChainReading.COMPILER else ChainReading.COMPILER
    rounding = cast.mode if cast.form is SourceForm.AS else None
    alternative = prepared(
        cast.src, cast.dst, cast.target, form=cast.form, rounding=rounding, reading=reading, order=cast.order
    )
    return None if alternative.path.hops == cast.path.hops else alternative


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
    # Vectors with one input in element 0, whose result stands in element 0 in every order.
    vectors = (np.full(cast.src.elements or 1, code, codes.dtype) for code in codes)
    every = np.concatenate([cast.run(vector, checked=False).outputs[RESULT] for vector in vectors])
    return every[:, 0].reshape(-1, 1)


def _differences(cast: CompiledCast, other: CompiledCast | None, in_ir: bool) -> Iterator[AccountDifference]:
    """Return inputs for which the accounts differ; stochastic rounding differs from itself and is excluded."""
    if cast.order not in (Order.LINEAR, Order.SCALAR) or cast.mode in RANDOM_ROUNDINGS or not (in_ir or other):
        return
    src, dst = source_format(cast), FORMATS[cast.dst.element]
    typed = src.name
    inputs = inputs_of(typed)
    if cast.order is Order.SCALAR:  # a program for each
        inputs = inputs[:: -(-inputs.size // _SCALAR_TRIALS)]
    ours = cast.values(inputs)
    if in_ir:
        expected, poison = defined(inputs, cast.src.element, cast.dst.element)
        different = differs(ours, expected, poison, cast.dst.element)
        witness = witness_of(inputs, ours, expected, different, typed)
        if witness is not None:
            yield AccountDifference(LANGUAGE, src, dst, witness)
    if other is not None:
        theirs = other.values(inputs)
        witness = witness_of(inputs, ours, theirs, ours != theirs, typed)
        if witness is not None:
            yield AccountDifference(other.reading.value, src, dst, witness)


# Casts in text of LLVM IR: cast instructions on vectors and scalars, and the vendor's calls `llvm.tpc.*.swch`.
#
# Sources: the language reference of LLVM (conversion operations); the vendor's document `tpc_builtin_support` (names
# of the calls, whose last argument holds the rounding mode); docs/reference/tpc.md section 4.

_TYPE = r"<\s*(?:vscale\s+x\s+)?\d+\s*x\s*[\w.%]+\s*>|[\w.%]+"
_RESULT = r"^\s*(?P<result>%[\w.$-]+|%\"[^\"]*\")\s*=\s*"
_CAST = re.compile(
    rf"{_RESULT}(?P<opcode>{'|'.join(Opcode)})\b(?:\s+(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|nuw|nsw|nneg)\b)*"
    rf"\s*(?P<src>{_TYPE})\s+(?P<operand>.*?)\s+to\s+(?P<dst>{_TYPE})\s*(?:,.*)?$"
)
_ANY = re.compile(rf"{_RESULT}(?P<opcode>{'|'.join(Opcode)})\b")
_NAMED = re.compile(r"@llvm\.tpc\.(?P<opcode>\w+)\.swch(?P<overload>[\w.]*)")
_CALL = re.compile(
    rf"{_RESULT}(?:(?:tail|musttail|notail)\s+)?call\s+(?:\w+\s+)*?(?P<dst>{_TYPE})\s+{_NAMED.pattern}\s*"
    rf"\(\s*(?P<src>{_TYPE})\s+(?P<operand>[^,]+?)\s*,\s*i32\s+(?P<switches>[^,)]+?)\s*\)"
)
_VECTOR = re.compile(r"<\s*(\d+)\s*x\s*([\w.]+)\s*>")
_FLOATS = {
    "float": "f32", "bfloat": "bf16", "bfloat16": "bf16", "half": "f16", "f8_143": "f8_143", "f8_152": "f8_152",
}  # fmt: skip
_INTEGERS = ("i32", "i16", "i8", "i4", "i1")
_CALLED = (Opcode.FPEXT, Opcode.FPTRUNC, Opcode.SITOFP, Opcode.UITOFP, Opcode.FPTOSI, Opcode.FPTOUI)
_UNSIGNED_RESULT, _UNSIGNED_SOURCE = (Opcode.FPTOUI, Opcode.ZEXT), (Opcode.UITOFP, Opcode.ZEXT)
_ROUNDING_BIT, _ROUNDING_MODES = 16, 8
_LINEAR = 1 << 24
"""The switch that requests linear order, which results have anyway."""


@dataclass(frozen=True, slots=True)
class IrCast:
    """A cast in a text: its place, the instruction as written, and the compiled cast."""

    span: Span
    written: str
    cast: CompiledCast


def casts_of_text(text: str, file: str, target: VliwTarget, order: Order | str = Order.LINEAR) -> tuple[IrCast, ...]:
    """Return all casts of a text in order; `order` is that of the elements of vectors. Other lines are ignored.

    Raises:
        ReadError: a cast is malformed, there is none, or the order is unknown.
        IllegalError: an instruction does not convert between its types; see also `compile_cast`.
    """
    casts = tuple(_IrReader(SourceText(file, text), target, word_of("order", Order, order)).casts())
    if not casts:
        legal = ("%y = fptrunc <128 x float> %x to <128 x bfloat>", f"calls @llvm.tpc.{Opcode.FPTRUNC}.swch")
        raise ReadError(f"{file} contains no LLVM IR cast", legal=legal)
    return casts


class _IrReader:
    """Reads the casts of one text; `unsigned` are the registers of a function that hold unsigned integers."""

    def __init__(self, source: SourceText, target: VliwTarget, order: Order) -> None:
        self._source, self._target, self._order = source, target, order
        self._unsigned: set[str] = set()

    def casts(self) -> Iterator[IrCast]:
        offset = 0
        for raw in self._source.text.split("\n"):
            line = re.sub(r'("[^"]*")|;.*', lambda match: match[1] or "", raw).rstrip()
            if line.lstrip().startswith("define"):
                self._unsigned = set()
            named = None if line.lstrip().startswith("declare") else _NAMED.search(line)
            if named is not None:
                yield self._call(line, offset, named)
            elif (begun := _ANY.match(line)) is not None:
                match = _CAST.match(line)
                if match is None:
                    legal = (f"{begun['result']} = {begun['opcode']} <128 x float> %x to <128 x bfloat>",)
                    span = self._span(offset + begun.start("opcode"), len(begun["opcode"]))
                    raise ReadError(f"{begun['opcode']} cannot be read", span=span, legal=legal)
                yield self._cast(match, offset, None)
            offset += len(raw) + 1

    def _call(self, line: str, offset: int, named: re.Match[str]) -> IrCast:
        call_span = self._span(offset + named.start(), len(named[0]))
        legal = [f"@llvm.tpc.{opcode}.swch" for opcode in _CALLED]
        if named["opcode"] not in _CALLED:
            raise ReadError(f"unknown intrinsic @llvm.tpc.{named['opcode']}.swch", span=call_span, legal=legal)
        match = _CALL.match(line)
        if match is None:
            example = f"%y = call <128 x bfloat> {legal[1]}(<128 x float> %x, i32 65536)"
            raise ReadError(f"the call of {named[0]} cannot be read", span=call_span, legal=(example,))
        text = match["switches"]
        span = self._span(offset + match.start("switches"), len(text))
        if not text.isdecimal() or len(text) > 10:
            raise ReadError(f"switches {text} are not a constant", span=span, legal=("a number: 65536 is SW_RZ",))
        rest = int(text) & ~_LINEAR
        if rest & ~(_ROUNDING_MODES - 1 << _ROUNDING_BIT):
            legal = [f"{code << _ROUNDING_BIT}" for code in range(_ROUNDING_MODES)]
            raise IllegalError(f"switches {text} set more than a rounding mode", span=span, legal=legal)
        modes = self._target.convert_rounding.modes
        code = rest >> _ROUNDING_BIT
        word = next((word for word, mode in modes.items() if mode.code == code), None)
        if word is None:
            mode_texts = [f"{mode.code << _ROUNDING_BIT} ({mode_name})" for mode_name, mode in modes.items()]
            raise IllegalError(f"{self._target.name} has no rounding mode {code}", span=span, legal=mode_texts)
        return self._cast(match, offset, word)

    def _cast(self, match: re.Match[str], offset: int, rounding: str | None) -> IrCast:
        opcode = Opcode(match["opcode"])
        from_unsigned = opcode is Opcode.TRUNC and match["operand"] in self._unsigned
        sides = (("src", opcode in _UNSIGNED_SOURCE), ("dst", opcode in _UNSIGNED_RESULT))
        (source, lanes), (result, others) = (
            self._type(match, side, offset, unsigned=unsigned or from_unsigned) for side, unsigned in sides
        )
        if lanes == 0:
            raise ReadError(
                "a vector needs at least one element", span=self._span(offset + match.start("src"), len(match["src"]))
            )
        span = self._span(offset + match.start("opcode"), len(opcode))
        if lanes != others:
            message = f"{opcode} from {match['src']} to {match['dst']}: different numbers of elements"
            raise IllegalError(message, span=span, legal=("as many elements on both sides",))
        if opcodes(source, result) != (opcode,):
            message = f"{opcode} does not lead from {match['src']} to {match['dst']}"
            raise IllegalError(message, span=span, legal=opcodes(source, result) or ("bitcast, or no instruction",))
        if opcode in _UNSIGNED_RESULT or from_unsigned:
            self._unsigned.add(match["result"])
        order = Order.SCALAR if lanes is None else self._order
        count = "" if lanes is None else f"{lanes} x "
        form = SourceForm.IR if rounding is None else SourceForm.AS
        try:
            kinds = ElementVector(source, lanes or 1), ElementVector(result, lanes or 1)
            source_type, result_type = kinds if lanes is None else matched(*kinds, self._target)
            cast = prepared(
                source_type,
                result_type,
                self._target,
                form=form,
                rounding=rounding,
                reading=ChainReading.COMPILER,
                order=order,
            )
        except CastsimError as error:
            raise error.at(span) from None
        written = f"{opcode}{'' if rounding is None else f'.swch {rounding}'} {count}{source}"
        return IrCast(span, f"{written} to {result}", cast)

    def _type(self, match: re.Match[str], side: str, offset: int, *, unsigned: bool) -> tuple[str, int | None]:
        """Return the format of a type and its number of elements, None for a scalar."""
        text = match[side]
        vector = _VECTOR.fullmatch(text)
        name = vector[2] if vector is not None else text
        known_types = (*_FLOATS, *_INTEGERS)
        if name not in known_types or (vector is not None and len(vector[1]) > 6):
            span = self._span(offset + match.start(side), len(text))
            raise ReadError(
                f"type {text} is not one that TPC converts", span=span, legal=(*known_types, "<128 x float>")
            )
        element = _FLOATS.get(name, name)
        if name in _INTEGERS and unsigned and name != "i1":
            element = f"u{name[1:]}"
        return element, None if vector is None else int(vector[1])

    def _span(self, offset: int, length: int) -> Span:
        return Span.within(self._source, offset, length)
