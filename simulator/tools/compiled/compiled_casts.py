"""Casts of C and of LLVM IR, compiled like the vendor's TPC compiler does: rules, then a program that runs.

cast = compile_cast("float128", "ushort128", "gaudi")    # as_ushort128(x)
cast.path                                                # f32 -> i32 -> u32 -> u16
cast.values(codes)                                       # the values that its assembly computes
cast.kernel.text()                                       # the assembly

Rules: docs/reference/tpc.md section 4 and the vendor's document `tpc_builtin_support` (as_T, implicit and explicit
conversion, reinterpret_cast). Values are those of the emitted assembly in the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cached_property
from pathlib import Path as File
from typing import TypeVar

import numpy as np

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS, Codes
from castsim.isa.tpc.program import Slot
from castsim.machines import vliw as assembly
from castsim.numerics.blocks import code_dtype
from castsim.targets.description import Status
from castsim.targets.loader import load_target
from castsim.targets.tpc_compiler import ChainReading, IrCastRow, IrStep, LoweringKind, ir_casts, lowering_matrix
from castsim.targets.vliw import ConvertRow, VliwTarget
from castsim.tools.tpc_compiler.builtin_calls import KernelResult, execute
from castsim.tools.tpc_compiler.c_table import (
    ElementVector,
    HopMethod,
    Path,
    PathHop,
    bits_of,
    is_float,
    matched,
    one_register,
    path_of,
    promotes,
    promotions_of,
    registers_of,
    vector_type,
)
from castsim.tools.tpc_compiler.cast_building import (
    RESULT,
    SOURCE,
    Order,
    build,
    build_bool,
    build_kept,
    convert,
    convert_integer,
    largest,
)
from castsim.tools.tpc_compiler.code_generation import ScheduledKernel, Sequence, SequenceRegister, schedule

# The way of a cast of LLVM IR as the compiler prints it: the types between, and the rounding word of every CONVERT.
#
# A scalar takes its mode from the register wherever it rounds, an integer step rounds to nearest even; a vector takes
# the register's between integers of different widths and rounds to nearest even elsewhere. `targets/tpc_ir_casts.csv`
# has the casts that go otherwise. Source: docs/reference/tpc.md section 4.

_SCALAR, _VECTOR = "scalar", "vector"
_UNITS = {_SCALAR: "spu", _VECTOR: "vpu"}
_NEAREST, _IR_PATHS_FROM_REGISTER = "rhne", "csr"


def ir_path(src: ElementVector, dst: ElementVector, target: VliwTarget) -> Path:
    """Return the path of a cast of LLVM IR between scalars (one element) or vectors.

    Raises:
        IllegalError: the generation lacks a type, or no path exists for the pair.
    """
    unit = _SCALAR if src.elements == 1 else _VECTOR
    row = _row(unit, src, dst, target)
    if row is None:
        reading = ChainReading.SCALAR if unit == _SCALAR else ChainReading.COMPILER
        element_path = path_of(src.element, dst.element, target, reading)
        return replace(
            element_path, hops=tuple(replace(hop, word=_ir_paths_word(hop, unit)) for hop in element_path.hops)
        )
    types = (src.element, *(step.dst for step in row.steps))
    missing = next((element for element in types if element not in target.elements.formats), None)
    if missing is not None:
        raise _text_only(row, missing, target)
    hops = tuple(_ir_paths_hop(before, step, unit, target) for before, step in zip(types, row.steps, strict=False))
    return Path(src.element, dst.element, hops, row.status, (row.source,))


def _text_only(row: IrCastRow, missing: str, target: VliwTarget) -> IllegalError:
    steps = ", ".join(f"AND {step.mask:#x}" if step.mask else f"CONVERT to {step.dst}" for step in row.steps)
    return IllegalError(
        f"{target.name} has no elements of {missing}; the vendor's compiler prints {row.src} -> {row.dst} for it all "
        f"the same ({steps}; {row.source}), and nothing executes it",
        legal=target.elements.formats,
    )


def _row(unit: str, src: ElementVector, dst: ElementVector, target: VliwTarget) -> IrCastRow | None:
    pair = unit, src.element, dst.element
    for row in ir_casts():
        sizes = row.elements or (src.elements,)
        if (row.unit, row.src, row.dst) == pair and target.name in row.generations and src.elements in sizes:
            return row
    return None


def _ir_paths_hop(src: str, step: IrStep, unit: str, target: VliwTarget) -> PathHop:
    if step.mask:
        return PathHop(HopMethod.AND, src, step.dst, mask=step.mask)
    row = convert_row(src, step.dst, _UNITS[unit], target)
    if row is None:
        raise TargetDataError(f"tpc_ir_casts.csv: {target.name} has no {unit} CONVERT {src} -> {step.dst}")
    return PathHop(HopMethod.CONVERT, src, step.dst, row, word=step.word)


def convert_row(src: str, dst: str, unit: str, target: VliwTarget) -> ConvertRow | None:
    """Return the CONVERT of a pair: that of the instruction set, else one that only the compiler prints, else None."""
    shown = (row for row in target.compiler_converts if (row.unit, row.src, row.dst) == (unit, src, dst))
    return target.convert(src, dst, unit) or next(shown, None)


def _ir_paths_word(hop: PathHop, unit: str) -> str:
    integers = not is_float(hop.src) and not is_float(hop.dst)
    if unit == _SCALAR:
        return _NEAREST if integers else _IR_PATHS_FROM_REGISTER
    return _IR_PATHS_FROM_REGISTER if integers and bits_of(hop.src) != bits_of(hop.dst) else _NEAREST


# A path in the scalar unit: one element in S registers, brought to a vector at the end so that it can be stored.

_WIDTH = 32


def build_scalar(path: Path, mode: Callable[[PathHop], str]) -> Sequence:
    """Return the instructions of a scalar cast; `mode` gives the rounding word of a hop.

    Raises:
        IllegalError: a step exists only for vectors.
    """
    sequence = Sequence()
    value = sequence.scalar(SOURCE, f"u{_WIDTH}")
    for hop in path.hops:
        value = _hop(sequence, hop, value, mode(hop))
    result = sequence.vector()
    sequence.add(Slot.LOAD, f"mov.i{bits_of(path.dst)}", result, value)
    sequence.output(RESULT, path.dst, result)
    return sequence


def _hop(sequence: Sequence, hop: PathHop, source: SequenceRegister, mode: str) -> SequenceRegister:
    if hop.means is HopMethod.KEEP:
        return source
    result = sequence.register()
    if hop.means is HopMethod.CONVERT:
        sequence.spu(convert(hop.src, hop.dst, mode), result, source)
    elif hop.means is HopMethod.NARROW:
        sequence.spu(convert_integer(hop), result, source, hop.shift)
    elif hop.means is HopMethod.EXTEND:
        sequence.spu("and.i32", result, source, (1 << bits_of(hop.src)) - 1)
    elif hop.means is HopMethod.AND:
        sequence.spu("and.i32", result, source, hop.mask)
    elif hop.means is HopMethod.CLAMP:
        sequence.spu(f"min.{hop.src}", result, source, largest(hop.dst))
    else:
        raise IllegalError(f"{hop} has no documented scalar form", legal=("a vector order",))
    return result


_Word = TypeVar("_Word", bound=StrEnum)

_DEFAULT_MODE = "rhne"
_FROM_REGISTER = "csr"
_ALIASES = {"rne": "rhne", "default": "csr", "sr_rhne": "sr_rne"}
_WORDS = ("rhne", "rz", "ru", "rd", "sr", "csr", "rhaz", "sr_rne")
_PREFIX = "sw_"


class SourceForm(StrEnum):
    """The form of a cast in the source program."""

    AS = "as"
    """`as_T(x)` and `as_T(x, mode)`."""
    IMPLICIT = "implicit"
    """An assignment to another type, without a cast: promotions only."""
    EXPLICIT = "explicit"
    """`(T)x`."""
    REINTERPRET = "reinterpret"
    """`reinterpret_cast<T>(x)`: the same bits."""
    CONVERT_TO = "convert_to"
    """`convert_T_to_U(x, mode)`: the one instruction of a pair, without a change of the order of lanes."""
    IR = "ir"
    """A cast instruction of LLVM IR."""


@dataclass(frozen=True)
class CompiledCast:
    """A compiled cast: its path and the program for one vector, or for any number of them.

    `mode` is the rounding word of its conversions, None if nothing rounds. `kind` is the name of the lowering in the
    compiler's own table; None if the table lacks the vectors.
    """

    target: VliwTarget
    src: ElementVector
    dst: ElementVector
    form: SourceForm
    reading: ChainReading
    order: Order
    path: Path
    mode: str | None
    kind: LoweringKind | None

    @cached_property
    def kernel(self) -> ScheduledKernel:
        """The instructions with registers and bundles; `kernel.text(n)` is assembly for n vectors."""
        if self.path.hops and self.path.hops[0].means is HopMethod.KEEP:
            sequence = build_kept(self.src, self.dst, self.target)
        elif self.order is Order.SCALAR:
            sequence = build_scalar(self.path, self._mode_of)
        elif self.src.element == "i1":
            sequence = build_bool(self.dst.element, registers_of(self.dst, self.target))
        else:
            printed = self.form in (SourceForm.IR, SourceForm.CONVERT_TO)
            sequence = build(self.path, self.src, self.dst, self.order, self._mode_of, self.target, printed=printed)
        return schedule(sequence, self.target)

    def run(self, codes: Codes, *, checked: bool = True) -> KernelResult:
        """Run the program on codes of the source type (for a predicate, integers of the result's width).

        A scalar program takes one code.
        """
        if self.order is Order.SCALAR:
            (code,) = np.asarray(codes).reshape(-1)
            return execute(self.kernel, {}, {SOURCE: int(code)}, checked=checked)
        return execute(self.kernel, {SOURCE: codes}, checked=checked)

    def values(self, codes: Codes) -> Codes:
        """Return the result's codes for codes of the source, one for each, in linear order.

        Raises:
            IllegalError: the result is in another order.
        """
        if self.order is Order.SCALAR:
            results = [self.run(code, checked=False).outputs[RESULT][0, 0] for code in np.ravel(codes)]
            return np.array(results, code_dtype(FORMATS[self.dst.element]))
        if self.order is not Order.LINEAR:
            raise IllegalError(f"the result is in {self.order} order", legal=(Order.LINEAR,))
        count = np.size(codes)
        if self.form is SourceForm.REINTERPRET:
            count = count * bits_of(self.src.element) // bits_of(self.dst.element)
        return self.run(codes, checked=False).outputs[RESULT].reshape(-1)[:count]

    def _mode_of(self, hop: PathHop) -> str:
        return hop.word or self.mode or _DEFAULT_MODE


def compile_cast(
    src: str,
    dst: str,
    target: VliwTarget | str | File,
    *,
    form: SourceForm | str = SourceForm.AS,
    rounding: str | None = None,
    reading: ChainReading | str = ChainReading.COMPILER,
    order: Order | str = Order.LINEAR,
) -> CompiledCast:
    """Return a cast between vector types (`float128`, `short128`) or element formats (`f32`, `i16`).

    Args:
        src: type of the argument; without a number of elements, one register of the narrower side.
        dst: type of the result; `reinterpret` alone changes the number of elements.
        target: a generation of TPC.
        form: the form of the cast in the program; see `SourceForm`.
        rounding: mode of `as_T(x, mode)`, such as `SW_RZ` or `rz`; None: to nearest even.
        reading: the account of a chain to follow where the vendor's compiler and document differ; see `ChainReading`.
        order: order of the elements in the result; see `Order`. `convert_to` keeps that of its instruction.

    Raises:
        ReadError: a type, form, mode, reading or order is unknown.
        IllegalError: numbers of elements differ, there is no promotion, or the path lacks the pair or mode.
    """
    chosen = tpc_target(target)
    wanted, account = word_of("form", SourceForm, form), word_of("reading", ChainReading, reading)
    arrangement = word_of("order", Order, order)
    if wanted is SourceForm.CONVERT_TO and arrangement is Order.LINEAR:
        arrangement = Order.SWIZZLE
    _check_reading(account, arrangement)
    source, result = vector_type(src), vector_type(dst)
    if wanted is SourceForm.REINTERPRET:
        if arrangement is not Order.LINEAR:
            message = f"reinterpret_cast does not move elements, so its order cannot be {arrangement}"
            raise IllegalError(message, legal=(f"--order {Order.LINEAR}",))
        return _reinterpreted(source, result, chosen, rounding)
    if arrangement is Order.SCALAR:
        source, result = (ElementVector(kind.element, 1) for kind in (source, result))
    elif arrangement is Order.LANE:
        source, result = one_register(source, result, chosen)
    else:
        source, result = matched(source, result, chosen)
    return prepared(source, result, chosen, form=wanted, rounding=rounding, reading=account, order=arrangement)


def prepared(
    src: ElementVector,
    dst: ElementVector,
    target: VliwTarget,
    *,
    form: SourceForm,
    rounding: str | None,
    reading: ChainReading,
    order: Order,
) -> CompiledCast:
    """Return a cast between types with known numbers of elements; arguments and errors: see `compile_cast`."""
    if form is SourceForm.IMPLICIT and not promotes(src.element, dst.element):
        raise _no_promotion(src, dst)
    if form is SourceForm.IR:
        check_ir(src.element, dst.element)
    if src.element == "i1":
        path = _bool_path(dst.element, target)
        if order is Order.SCALAR:
            raise IllegalError("no source documents how a scalar predicate is cast", legal=("a vector order",))
        registers_of(dst, target)
    else:
        path = _path(src, dst, target, form, reading, rounding, order)
        for kind in (src, dst) if order is not Order.SCALAR else ():
            registers_of(kind, target)
    mode = _mode(path, form, rounding, target)
    return CompiledCast(target, src, dst, form, reading, order, path, mode, lowering_kind(src, dst, target))


def _path(
    src: ElementVector,
    dst: ElementVector,
    target: VliwTarget,
    form: SourceForm,
    reading: ChainReading,
    rounding: str | None,
    order: Order,
) -> Path:
    """Return the path of a cast; scalars follow LLVM IR in every form, and a given mode overrides words.

    Raises:
        IllegalError: see `ir_path` and `path_of`; `convert_to` has no instruction for the pair.
    """
    if form is SourceForm.CONVERT_TO:
        element_path = path_of(src.element, dst.element, target, reading)
        if len(element_path.hops) != 1 or element_path.hops[0].means not in (HopMethod.CONVERT, HopMethod.NARROW):
            raise IllegalError(
                f"{target.name} has no instruction {src.element} -> {dst.element}, which convert_to needs",
                legal=("--form as", "ir"),
            )
        return element_path
    if form is not SourceForm.IR and order is not Order.SCALAR:
        return path_of(src.element, dst.element, target, reading)
    element_path = ir_path(src, dst, target)
    return (
        element_path
        if rounding is None
        else replace(element_path, hops=tuple(replace(hop, word=None) for hop in element_path.hops))
    )


def kept(src: ElementVector, dst: ElementVector, target: VliwTarget, form: SourceForm) -> CompiledCast:
    """Return the cast that keeps the bits of the first registers."""
    hop = (PathHop(HopMethod.KEEP, src.element, dst.element),)
    path = Path(src.element, dst.element, hop, Status.DOCUMENTED, ("tpc_builtin_support: interpreted cast",))
    kind = lowering_kind(src, dst, target)
    return CompiledCast(target, src, dst, form, ChainReading.COMPILER, Order.LINEAR, path, None, kind)


def lowering_kind(src: ElementVector, dst: ElementVector, target: VliwTarget) -> LoweringKind | None:
    """Return the compiler table's kind of lowering between two vector types, None if it has none."""
    for row in lowering_matrix(target.name):
        if (row.src, row.dst) == (src.element, dst.element) and (src.elements, dst.elements) in row.counts:
            return row.kind
    return None


def check_ir(src: str, dst: str) -> None:
    """Reject pairs that are one type in LLVM IR, whose integers have no sign.

    Raises:
        IllegalError: the types are one type.
    """
    if src != "i1" and not is_float(src) and not is_float(dst) and bits_of(src) == bits_of(dst):
        raise IllegalError(
            f"{src} and {dst} are the same type in LLVM IR, so there is no cast between them",
            legal=("--form as", "explicit"),
        )


def tpc_target(target: VliwTarget | str | File) -> VliwTarget:
    """Return a TPC generation from its name, the path of its description, or a loaded target.

    Raises:
        ReadError: there is no such target. IllegalError: it is another kind of chip.
    """
    loaded = load_target(target) if isinstance(target, str | File) else target
    return assembly.tpc_target(loaded, f"{loaded.name} is not a TPC: its compiler's casts are not known")


def word_of(name: str, kind: type[_Word], text: _Word | str) -> _Word:
    """Return a word as a member of its enumeration.

    Raises:
        ReadError: the enumeration lacks it.
    """
    try:
        return kind(text)
    except ValueError:
        raise ReadError(f"unknown {name} '{text}'", legal=[member.value for member in kind]) from None


def _check_reading(reading: ChainReading, order: Order) -> None:
    """Reject the document's chains for scalars, which it does not describe, and the scalar ones for vectors.

    Raises:
        IllegalError: the reading does not cover the types.
    """
    if reading is not ChainReading.COMPILER and (reading is ChainReading.SCALAR) is not (order is Order.SCALAR):
        raise IllegalError(
            f"reading {reading} and order {order} cannot be combined: the document describes vectors, and scalar "
            "chains need order scalar",
            legal=("--order scalar", "--reading compiler"),
        )


def _reinterpreted(src: ElementVector, dst: ElementVector, target: VliwTarget, rounding: str | None) -> CompiledCast:
    """Give a reinterpretation its numbers of elements and check that both types have equally many bits."""
    if rounding is not None:
        raise IllegalError("reinterpret_cast keeps the bits and takes no rounding mode", legal=("no mode",))
    for kind in (src, dst):
        if kind.element not in target.elements.formats:
            raise IllegalError(f"{target.name} has no elements of {kind.element}", legal=target.elements.formats)
    if src.elements is None:
        total = dst.elements * dst.bits if dst.elements else target.registers.vector_bytes * 8
        src = ElementVector(src.element, total // src.bits)
    assert src.elements is not None
    if dst.elements is None:
        dst = ElementVector(dst.element, src.elements * src.bits // dst.bits)
    assert dst.elements is not None
    if src.elements * src.bits != dst.elements * dst.bits:
        raise IllegalError(
            f"reinterpret_cast keeps the bits: {src.name} has {src.elements * src.bits}, {dst.name} "
            f"{dst.elements * dst.bits}",
            legal=(ElementVector(dst.element, src.elements * src.bits // dst.bits).name,),
        )
    return kept(src, dst, target, SourceForm.REINTERPRET)


def _no_promotion(src: ElementVector, dst: ElementVector) -> IllegalError:
    legal = ", ".join(row.name for row in promotions_of(src.element))
    return IllegalError(
        f"C converts {src.name} to {dst.name} only with an explicit cast; it promotes {src.name} implicitly "
        f"to {legal or 'no other type'}",
        legal=("--form explicit", "--form as"),
    )


def _bool_path(dst: str, target: VliwTarget) -> Path:
    rows = [row.dst for row in lowering_matrix(target.name) if row.kind is LoweringKind.BOOL_TO]
    if dst not in rows:
        raise IllegalError(f"{target.name} selects no {dst} by a predicate", legal=[f"i1 -> {name}" for name in rows])
    return Path("i1", dst, (), Status.DOCUMENTED, ("LL lowering: select 1 or 0 under a predicate",))


def _mode(path: Path, form: SourceForm, asked: str | None, target: VliwTarget) -> str | None:
    """Return the effective rounding mode, None if no step of the path takes one.

    Raises:
        ReadError: the word is not a mode. IllegalError: the path, or the form, lacks it.
    """
    modes = path.modes(target)
    if asked is None:
        words = {hop.word or _DEFAULT_MODE for hop in path.hops if hop.takes_mode}
        return None if not modes else _FROM_REGISTER if _FROM_REGISTER in words else _DEFAULT_MODE
    word = asked.strip().lower().removeprefix(_PREFIX)
    word = _ALIASES.get(word, word)
    if word not in _WORDS:
        raise ReadError(f"unknown rounding mode '{asked}'", legal=_spelled(_WORDS))
    if form not in (SourceForm.AS, SourceForm.CONVERT_TO):
        raise IllegalError(
            f"{form} conversions round to nearest even; use as_T(x, mode) or convert_to for another mode",
            legal=("--form as", SourceForm.CONVERT_TO.value),
        )
    if not modes:
        raise IllegalError(
            f"the path {path} on {target.name} has no rounding modes: integer steps take none",
            legal=("no mode",),
        )
    if word not in modes:
        raise IllegalError(f"the path {path} on {target.name} has no rounding mode {word}", legal=_spelled(modes))
    return word


def _spelled(words: Iterable[str]) -> list[str]:
    """Return rounding words as C has them."""
    return [f"{_PREFIX}{word}".upper() for word in words]


# The compiler's lowering matrix (docs/reference/tpc.md section 4).


@dataclass(frozen=True, slots=True)
class MatrixEntry:
    """One entry: two vector types and the kind of lowering between them."""

    src: ElementVector
    dst: ElementVector
    kind: LoweringKind

    def __str__(self) -> str:
        return f"{self.src.element} x {self.src.elements} -> {self.dst.element} x {self.dst.elements} ({self.kind})"


def entries(target: VliwTarget, src: str | None = None, dst: str | None = None) -> tuple[MatrixEntry, ...]:
    """Return the entries of a generation, or those of a pair of element types."""
    return tuple(
        MatrixEntry(ElementVector(row.src, before), ElementVector(row.dst, after), row.kind)
        for row in lowering_matrix(target.name)
        if src in (None, row.src) and dst in (None, row.dst)
        for before, after in row.counts
    )
