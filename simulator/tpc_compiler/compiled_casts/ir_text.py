"""Casts in text of LLVM IR: cast instructions on vectors and scalars, and the vendor's calls `llvm.tpc.*.swch`.

Sources: the language reference of LLVM (conversion operations); the vendor's document `tpc_builtin_support` (names of
the calls, whose last argument holds the rounding mode); docs/reference/tpc.md section 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from castsim.isa.errors import CastsimError, IllegalError, ReadError
from castsim.isa.spans import SourceText, Span
from castsim.targets.tpc_compiler import ChainReading
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.compiled_casts.building import Order
from castsim.tpc_compiler.compiled_casts.c_table import VectorType, matched
from castsim.tpc_compiler.compiled_casts.comparing import Opcode, opcodes
from castsim.tpc_compiler.compiled_casts.compiling import CompiledCast, SourceForm, prepared, word_of

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
"""The switch that asks for linear order, in which results stand anyhow."""


@dataclass(frozen=True, slots=True)
class IrCast:
    """A cast of a text: its place, the instruction as written, and what the compiler makes of it."""

    span: Span
    written: str
    cast: CompiledCast


def casts_of_text(text: str, file: str, target: VliwTarget, order: Order | str = Order.LINEAR) -> tuple[IrCast, ...]:
    """Return all casts of a text in its order; `order` is that of the elements of vectors. Other lines are passed over.

    Raises:
        ReadError: a cast that cannot be read, or none; no such order.
        IllegalError: an instruction between types that it does not lead between; what `compile_cast` refuses.
    """
    found = tuple(_Reader(SourceText(file, text), target, word_of("order", Order, order)).casts())
    if not found:
        legal = ("%y = fptrunc <128 x float> %x to <128 x bfloat>", f"calls @llvm.tpc.{Opcode.FPTRUNC}.swch")
        raise ReadError(f"{file} holds no cast of LLVM IR", legal=legal)
    return found


class _Reader:
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
        place = self._span(offset + named.start(), len(named[0]))
        legal = [f"@llvm.tpc.{each}.swch" for each in _CALLED]
        if named["opcode"] not in _CALLED:
            raise ReadError(f"there is no @llvm.tpc.{named['opcode']}.swch", span=place, legal=legal)
        match = _CALL.match(line)
        if match is None:
            example = f"%y = call <128 x bfloat> {legal[1]}(<128 x float> %x, i32 65536)"
            raise ReadError(f"the call of {named[0]} cannot be read", span=place, legal=(example,))
        text = match["switches"]
        span = self._span(offset + match.start("switches"), len(text))
        if not text.isdecimal() or len(text) > 10:
            raise ReadError(f"switches {text} are no constant", span=span, legal=("a number: 65536 is SW_RZ",))
        rest = int(text) & ~_LINEAR
        if rest & ~(_ROUNDING_MODES - 1 << _ROUNDING_BIT):
            legal = [f"{code << _ROUNDING_BIT}" for code in range(_ROUNDING_MODES)]
            raise IllegalError(f"switches {text} hold more than a rounding mode", span=span, legal=legal)
        modes = self._target.convert_rounding.modes
        code = rest >> _ROUNDING_BIT
        word = next((word for word, mode in modes.items() if mode.code == code), None)
        if word is None:
            known = [f"{mode.code << _ROUNDING_BIT} ({each})" for each, mode in modes.items()]
            raise IllegalError(f"{self._target.name} has no rounding mode {code}", span=span, legal=known)
        return self._cast(match, offset, word)

    def _cast(self, match: re.Match[str], offset: int, rounding: str | None) -> IrCast:
        opcode = Opcode(match["opcode"])
        from_unsigned = opcode is Opcode.TRUNC and match["operand"] in self._unsigned
        sides = (("src", opcode in _UNSIGNED_SOURCE), ("dst", opcode in _UNSIGNED_RESULT))
        (source, lanes), (result, others) = (
            self._type(match, side, offset, unsigned=unsigned or from_unsigned) for side, unsigned in sides
        )
        if lanes == 0:
            raise ReadError("a vector of no elements", span=self._span(offset + match.start("src"), len(match["src"])))
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
            kinds = VectorType(source, lanes or 1), VectorType(result, lanes or 1)
            one, two = kinds if lanes is None else matched(*kinds, self._target)
            cast = prepared(
                one, two, self._target, form=form, rounding=rounding, reading=ChainReading.COMPILER, order=order
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
        known = (*_FLOATS, *_INTEGERS)
        if name not in known or (vector is not None and len(vector[1]) > 6):
            span = self._span(offset + match.start(side), len(text))
            raise ReadError(f"type {text} is not one that TPC converts", span=span, legal=(*known, "<128 x float>"))
        found = _FLOATS.get(name, name)
        if name in _INTEGERS and unsigned and name != "i1":
            found = f"u{name[1:]}"
        return found, None if vector is None else int(vector[1])

    def _span(self, offset: int, length: int) -> Span:
        return Span.within(self._source, offset, length)
