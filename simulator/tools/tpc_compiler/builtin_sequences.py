"""Builtins of TPC-C by name; cast builtins as sequences of instructions: signatures, lane movements, value steps.

`short128 (int64, int64, int)` is one register of i16 from two of i32 and a number.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from pathlib import Path
from typing import TYPE_CHECKING

from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import CastsimError, IllegalError, ReadError, TargetDataError
from castsim.isa.formats import FORMATS, format_named
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.program import Slot
from castsim.machines.vliw import targets_running, tpc_target
from castsim.targets.loader import Target, load_target
from castsim.targets.tpc_compiler import (
    BuiltinRow,
    Recipe,
    SpecialFunction,
    StepText,
    all_builtins,
    builtin_rounding,
    builtins_of,
    library_functions,
)
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.tools.tpc_compiler.code_generation import EmittedInstruction, Sequence, SequenceRegister

    Values = tuple[SequenceRegister, ...]

_SIGNATURE = re.compile(r"(?P<result>\w+) \((?P<arguments>[^)]*)\)")
_VECTOR = re.compile(r"[a-z]+(?P<elements>\d+)(?P<pair>_pair_t)?")
_BYTE_BITS = 8
_SCALARS = {"int": ("shift", "i32"), "float": ("scale", "f32")}
"""The purpose of a cast builtin's scalar argument, and its format, by its type."""
_HELD = {Recipe.HALF_IN_WIDE_LANES: "f16"}


@dataclass(frozen=True, slots=True)
class Vectors:
    """Registers with elements of one format."""

    format: str
    registers: int
    lanes: int
    """Elements of one register."""
    held: str | None = None
    """A narrower format whose codes are in the low bits of the elements, with zeros above; None: the elements fill
    their lanes."""

    @property
    def elements(self) -> int:
        """Total number of elements."""
        return self.registers * self.lanes


@dataclass(frozen=True, slots=True)
class CastSignature:
    """The arguments and result of a cast builtin; `scalar` is name and format of its number, if it takes one.

    All sources have one format, so they form one array: all elements of the first register, then those of the next.
    """

    text: str
    source: Vectors
    result: Vectors
    scalar: tuple[str, str] | None


def read_signature(row: BuiltinRow, target: VliwTarget) -> CastSignature:
    """Read the signature of a cast builtin.

    Raises:
        TargetDataError: the text is not a signature.
    """
    match = _SIGNATURE.fullmatch(row.signature)
    arguments = [] if match is None else [argument.strip() for argument in match["arguments"].split(",")]
    scalars = [_SCALARS[argument] for argument in arguments if argument in _SCALARS]
    vectors = [argument for argument in arguments if argument not in _SCALARS]
    if match is None or not vectors or len(scalars) > 1:
        raise TargetDataError(f"{row.builtin}: '{row.signature}' is not a signature of a cast")
    return CastSignature(
        text=row.signature,
        source=replace(_vectors(row, vectors, row.source, target), held=_HELD.get(row.recipe)),
        result=_vectors(row, [match["result"]], row.result, target),
        scalar=scalars[0] if scalars else None,
    )


def _vectors(row: BuiltinRow, types: list[str], fmt: str, target: VliwTarget) -> Vectors:
    elements = 0
    for name in types:
        match = _VECTOR.fullmatch(name)
        if match is None:
            raise TargetDataError(f"{row.builtin}: '{name}' is not a vector type")
        elements += int(match["elements"]) * (2 if match["pair"] else 1)
    lanes = target.registers.vector_bytes * _BYTE_BITS // format_named(fmt).bits
    return Vectors(fmt, elements // lanes, lanes)


# Moving elements between registers of different widths, in exactly as many VPU operations as the vendor's helpers.
#
# A register is four dual groups (DG) of two groups (docs/reference/tpc.md section 2.5). PACK leaves in every DG the
# kept elements of that DG, repeated; UNPACK spreads a part of every DG over it. What remains is to bring dual groups,
# their groups, or quarters of them to their places with MOV_DG, of one dual group (`single`) or of all at once
# (`all`).

_EVERY_BYTE = 0xFFFFFFFF
_LOWER, _UPPER, _BOTH = 1, 2, 3
"""Write enables of the groups of a dual group."""
_LOWER_HALF, _UPPER_HALF = 0x0000FFFF, 0xFFFF0000
"""Masks of the bytes of a group."""
_DUAL_GROUPS, _GROUPS = range(4), 2
"""The switches of MOV_DG name four dual groups, those of PACK and UNPACK the two groups of each."""


def move_one(
    sequence: Sequence,
    result: SequenceRegister,
    source: SequenceRegister,
    dual_groups: tuple[int, int],
    enabled: int,
    mask: int,
) -> None:
    """Return the MOV_DG of one dual group: `dual_groups` are source and destination, `enabled` the groups to write."""
    src, dst = dual_groups
    switches = f"src={src} dst={dst} wr_lg={enabled & 1:#x} wr_ug={enabled >> 1:#x}"
    sequence.vpu(f"mov_dg {switches}", result, source, mask)


def move_all(
    sequence: Sequence,
    result: SequenceRegister,
    source: SequenceRegister,
    moves: Mapping[int, tuple[int, int]],
    unused: Mapping[int, int] | None = None,
) -> None:
    """Return a MOV_DG of all dual groups: `moves` maps destinations to source and enabled groups; others are unchanged.

    `unused` are the sources in the text for those others, 0 if the text has none.
    """
    chosen = [moves.get(dual, ((unused or {}).get(dual, 0), 0)) for dual in _DUAL_GROUPS]
    switches = [f"sdg{dual}={source_dual}" for dual, (source_dual, _) in enumerate(chosen)]
    switches += [f"weg{dual}={enabled}" for dual, (_, enabled) in enumerate(chosen)]
    sequence.vpu(f"mov_dg.all {' '.join(switches)}", result, source, _EVERY_BYTE)


def _packed(sequence: Sequence, element: str, source: SequenceRegister, stride: int) -> SequenceRegister:
    """Keep every stride-th element: each DG has its kept elements in order, once per 64 / stride bytes."""
    result = sequence.vector()
    for group in (0, 1):
        sequence.vpu(f"pack.{element} source_group={group} element_stride={stride}", result, source)
    return result


def _unpacked(
    sequence: Sequence, element: str, source: SequenceRegister, stride: int, part: int, zeroes: str | None = None
) -> SequenceRegister:
    """Spread part `part` of each DG, 64 / stride bytes, over the DG, with zeros of type `zeroes` between elements."""
    result = sequence.broadcast(0, zeroes) if zeroes else sequence.zeroed()
    group, half = (part, 0) if stride == _GROUPS else divmod(part, stride // _GROUPS)
    switches = f"source_group={group} element_stride={stride} group_half={half}"
    sequence.vpu(f"unpack.{element} {switches}", result, source)
    return result


# ------------------------------------------------------------------------------------------------------------- pack


def pack_two_single(sequence: Sequence, element: str, sources: Values) -> Values:
    """Group g of the result is the kept part of DG g of all sources; group 0 is already correct in a copy."""
    packed = [_packed(sequence, element, source, 2) for source in sources]
    result = sequence.copy(packed[0])
    for group in range(1, 2 * len(_DUAL_GROUPS)):
        register, dual = divmod(group, len(_DUAL_GROUPS))
        ends, enabled = (dual, group // 2), _UPPER if group % 2 else _LOWER
        move_one(sequence, result, packed[register], ends, enabled, _EVERY_BYTE)
    return (result,)


def pack_two_all(sequence: Sequence, element: str, sources: Values) -> Values:
    """Even DGs of a packed register go to the lower groups of two DGs of the result, odd ones to the upper."""
    result = sequence.vector()
    for register, source in enumerate(sources):
        packed = _packed(sequence, element, source, 2)
        for odd, enabled in ((0, _LOWER), (1, _UPPER)):
            move_all(sequence, result, packed, {2 * register + k: (2 * k + odd, enabled) for k in (0, 1)})
    return (result,)


def pack_two_printed(sequence: Sequence, element: str, sources: Values) -> Values:
    """Variant of `pack_two_all` with the compiler's printed moves: group 0 of the first register is already correct."""
    first, second = (_packed(sequence, element, source, 2) for source in sources)
    result = sequence.copy(first)
    move_all(sequence, result, first, {0: (1, _UPPER), 1: (2, _LOWER)}, {2: 3, 3: 0})
    move_one(sequence, result, first, (3, 1), _UPPER, _EVERY_BYTE)
    move_all(sequence, result, second, {2: (0, _LOWER), 3: (2, _LOWER)}, {0: 1, 1: 3})
    move_all(sequence, result, second, {2: (1, _UPPER), 3: (3, _UPPER)}, {0: 0, 1: 2})
    return (result,)


def pack_four(sequence: Sequence, element: str, sources: Values) -> Values:
    """DG k of the result is source k: its four packed DGs, a quarter of the DG each; the first is correct in a copy."""
    packed = [_packed(sequence, element, source, 4) for source in sources]
    result = sequence.copy(packed[0])
    for register, source in enumerate(packed):
        for dual in _DUAL_GROUPS:
            if (register, dual) != (0, 0):
                enabled = _UPPER if dual // 2 else _LOWER
                mask = _UPPER_HALF if dual % 2 else _LOWER_HALF
                move_one(sequence, result, source, (dual, register), enabled, mask)
    return (result,)


# ----------------------------------------------------------------------------------------------------------- unpack


def unpack_two_single(sequence: Sequence, element: str, sources: Values) -> Values:
    """Group g of the source is DG g % 4 of result g / 4, and unpacked it is DG g / 2 of spread register g % 2."""
    spread = [_unpacked(sequence, element, sources[0], 2, group) for group in (0, 1)]
    results = tuple(map(sequence.copy, spread))
    for group in range(2 * len(_DUAL_GROUPS)):
        number, dual = divmod(group, len(_DUAL_GROUPS))
        if (group // 2, group % 2) != (dual, number):  # else the copy has it there
            move_one(sequence, results[number], spread[group % 2], (group // 2, dual), _BOTH, _EVERY_BYTE)
    return results


def unpack_two_all(sequence: Sequence, element: str, sources: Values) -> Values:
    """Variant of `unpack_two_single`: a result has even DGs from one spread register and odd ones from the other."""
    spread = [_unpacked(sequence, element, sources[0], 2, group) for group in (0, 1)]
    results = (sequence.vector(), sequence.vector())
    for number, result in enumerate(results):
        for odd in (0, 1):
            move_all(sequence, result, spread[odd], {2 * k + odd: (2 * number + k, _BOTH) for k in (0, 1)})
    return results


def unpack_two_swapped(sequence: Sequence, element: str, sources: Values) -> Values:
    """Put the groups of DG d of either result into DG d, those of the first result lower; only UNPACK remains then.

    The groups in the wrong half of their DG come from a copy with the halves swapped (MOV_G).
    """
    (source,) = sources
    swapped, arranged = sequence.vector(), sequence.vector()
    sequence.vpu("mov_g g_en=0b11 dg_en=0b1111", swapped, source, _EVERY_BYTE)
    move_all(sequence, arranged, source, {0: (0, _LOWER), 2: (1, _LOWER), 1: (2, _UPPER), 3: (3, _UPPER)})
    move_all(sequence, arranged, swapped, {1: (0, _LOWER), 3: (1, _LOWER), 0: (2, _UPPER), 2: (3, _UPPER)})
    return tuple(_unpacked(sequence, element, arranged, 2, group) for group in (0, 1))


def unpack_two_printed(sequence: Sequence, element: str, sources: Values) -> Values:
    """Variant of `unpack_two_swapped` with the compiler's printed moves: the first moves whole dual groups."""
    (source,) = sources
    swapped, arranged = sequence.vector(), sequence.vector()
    sequence.vpu("mov_g g_en=0b11 dg_en=0b1111", swapped, source, _EVERY_BYTE)
    move_all(sequence, arranged, source, {0: (0, _BOTH), 1: (2, _UPPER), 2: (1, _LOWER), 3: (3, _BOTH)})
    move_all(sequence, arranged, swapped, {0: (2, _UPPER), 1: (0, _LOWER), 2: (3, _UPPER), 3: (1, _LOWER)})
    signed = element.replace("u", "i")
    return tuple(_unpacked(sequence, element, arranged, 2, group, zeroes=signed) for group in (0, 1))


def unpack_four_single(sequence: Sequence, element: str, sources: Values) -> Values:
    """DG d of result k is DG k of spread register d; the first result starts as a copy."""
    spread = [_unpacked(sequence, element, sources[0], 4, part) for part in range(4)]
    results = (sequence.copy(spread[0]), *(sequence.vector() for _ in range(3)))
    for number, result in enumerate(results):
        for dual in _DUAL_GROUPS:
            if (number, dual) != (0, 0):
                move_one(sequence, result, spread[dual], (number, dual), _BOTH, _EVERY_BYTE)
    return results


def unpack_four_all(sequence: Sequence, element: str, sources: Values) -> Values:
    """Transpose the dual groups of the spread registers like a 4 x 4 matrix, in two rounds of exchanges."""
    registers = [_unpacked(sequence, element, sources[0], 4, part) for part in range(4)]
    for step in (1, 2):
        for first in (number for number in range(4) if not number & step):
            lower, upper = registers[first], registers[first + step]
            kept = sequence.copy(lower)
            move_all(sequence, lower, upper, {dual: (dual - step, _BOTH) for dual in _DUAL_GROUPS if dual & step})
            move_all(sequence, upper, kept, {dual: (dual + step, _BOTH) for dual in _DUAL_GROUPS if not dual & step})
    return tuple(registers)


def unpack_lanes(sequence: Sequence, element: str, sources: Values) -> Values:
    """UNPACK both groups to the lanes of one register, then unpack its even and its odd lanes by MOV_DG."""
    (source,) = sources
    spread, result = sequence.zeroed(), sequence.zeroed()
    for group in (0, 1):
        switches = f"source_group={group} element_stride=2 group_half=0 unpack_lane={group}"
        sequence.vpu(f"unpack.{element} {switches}", spread, source)
    for kind, duals, mask in ((0, (0, 0, 1, 1), 0x33333333), (1, (2, 2, 3, 3), 0xCCCCCCCC)):
        places = " ".join(f"sdg{k}={dual}" for k, dual in enumerate(duals))
        enabled = " ".join(f"weg{k}={_BOTH}" for k in _DUAL_GROUPS)
        sequence.vpu(f"mov_dg.unpack unpack_type={kind} {places} {enabled}", result, spread, mask)
    return (result,)


_RECIPES: Mapping[Recipe, Callable[[Sequence, str, Values], Values]] = {
    Recipe.PACK_TWO_SINGLE: pack_two_single,
    Recipe.PACK_TWO_ALL: pack_two_all,
    Recipe.PACK_FOUR: pack_four,
    Recipe.UNPACK_TWO_SINGLE: unpack_two_single,
    Recipe.UNPACK_TWO_ALL: unpack_two_all,
    Recipe.UNPACK_TWO_SWAPPED: unpack_two_swapped,
    Recipe.UNPACK_FOUR_SINGLE: unpack_four_single,
    Recipe.UNPACK_FOUR_ALL: unpack_four_all,
    Recipe.UNPACK_LANES: unpack_lanes,
}


def reorder(sequence: Sequence, recipe: Recipe, element: str, sources: Values) -> Values:
    """Append a recipe; `element` is the narrower type.

    Raises:
        TargetDataError: the recipe is more than a reordering.
    """
    if recipe not in _RECIPES:
        raise TargetDataError(f"{recipe} is not a reordering", legal=_RECIPES)
    return _RECIPES[recipe](sequence, element, sources)


INPUT, OUTPUT = "x", "y"
"""Names of the arrays of a builtin."""

_MODE = "MODE"
_FROM_REGISTER = "csr"
_SIGN, _EXPONENT, _SHIFT = 0x8000, 0x0F800000, 13
"""f16 in the low half of a 32-bit lane: its sign, its exponent moved to the position of f32's, and the distance."""
_REBIAS = (127 - 15) << 23
_ONE_EXPONENT, _SMALLEST_NORMAL, _WIDE_SIGN = 1 << 23, (127 - 14) << 23, 1 << 31


@dataclass(frozen=True, slots=True)
class Built:
    """A builtin as a sequence; `setup` first writes the rounding register, if a mode was requested."""

    row: BuiltinRow
    signature: CastSignature
    sequence: Sequence
    setup: tuple[EmittedInstruction, ...]
    rounding: str


def build(row: BuiltinRow, target: VliwTarget, rounding: str | None = None) -> Built:
    """Return the sequence of a builtin.

    `rounding` is the build option of the helpers where they have one, else the value of the rounding register; None
    leaves both unchanged.

    Raises:
        IllegalError: the builtins of the target do not have this mode.
    """
    from castsim.tools.tpc_compiler.code_generation import Sequence  # noqa: PLC0415 - a list of builtins makes no sequence

    signature = read_signature(row, target)
    sequence = Sequence()
    fact = builtin_rounding(target)
    if fact is None:
        raise TargetDataError(f"{row.builtin}: the builtins of {row.generation} have no rounding")
    mode = fact.mode
    setup: tuple[EmittedInstruction, ...] = ()
    if rounding is not None and fact.mode == _FROM_REGISTER:
        setup = _rounding_register(sequence, target, rounding)
    elif rounding is not None:
        if rounding not in (fact.mode, *fact.build_options):
            message = f"the builtins of {target.name} cannot be built for {rounding}"
            raise IllegalError(message, legal=(fact.mode, *fact.build_options))
        mode = rounding
    group = signature.source.registers if row.recipe is Recipe.ALL_LANES and signature.source.registers > 1 else 1
    sources = sequence.input(INPUT, signature.source.format, signature.source.registers, group)
    if signature.scalar is not None:
        sequence.scalar(*signature.scalar)
    word = "" if mode == target.convert_rounding.default else mode
    results = _BuiltinWriter(row, signature, sequence, word).results(sources)
    sequence.output(OUTPUT, signature.result.format, *results)
    return Built(row, signature, sequence, setup, mode if rounding is None else rounding)


def _rounding_register(sequence: Sequence, target: VliwTarget, rounding: str) -> tuple[EmittedInstruction, ...]:
    """Return the instructions that write a mode to the rounding register of CONVERT."""
    from castsim.tools.tpc_compiler.code_generation import EmittedInstruction  # noqa: PLC0415 - as in `build`

    modes = {name: row for name, row in target.convert_rounding.modes.items() if row.rounding is not None}
    if rounding not in modes:
        raise IllegalError(f"{target.name} has no rounding mode '{rounding}'", legal=modes)
    name = "convert_round" if "convert_round" in target.configuration else "round"
    address = target.configuration[name].address
    if address is None:
        raise IllegalError(f"{target.name}: no source documents the address of its rounding register")
    code = sequence.register()
    return (
        EmittedInstruction(Slot.SPU, "mov.i32", (code, modes[rounding].code)),
        EmittedInstruction(Slot.STORE, "st_l mmio", (address, code)),
    )


@dataclass(frozen=True, slots=True)
class _BuiltinWriter:
    """Appends the instructions of one builtin; `mode` is the rounding word, empty where it is not written."""

    row: BuiltinRow
    signature: CastSignature
    sequence: Sequence
    mode: str

    def results(self, sources: tuple[SequenceRegister, ...]) -> tuple[SequenceRegister, ...]:
        """Append everything; return the result registers."""
        row = self.row
        if row.recipe is Recipe.HALF_IN_WIDE_LANES:
            return (widened_half(self.sequence, sources[0]),)
        if row.recipe is Recipe.ALL_LANES:
            return self._all_lanes(sources)
        ready = tuple(self._steps(row.before, source) for source in sources)
        formats = (self.signature.source.format, self.signature.result.format)
        narrow = min(formats, key=lambda name: FORMATS[name].bits)
        moved = reorder(self.sequence, row.recipe, narrow, ready)
        return tuple(self._steps(row.after, register) for register in moved)

    def _all_lanes(self, sources: tuple[SequenceRegister, ...]) -> tuple[SequenceRegister, ...]:
        """Append one conversion of all lanes, from or to a pair or quad."""
        source = sources[0]
        if self.row.before:
            prepared = self.sequence.vector(self.signature.source.registers)
            for part, prepared_part in zip(source.parts, prepared.parts, strict=True):
                self._steps(self.row.before, part, prepared_part)
            source = prepared
        result = self.sequence.vector(self.signature.result.registers)
        (step,) = self.row.joint
        self._step(step, result, source)
        if not self.row.after:
            return (result,)
        return tuple(self._steps(self.row.after, part) for part in result.parts)

    def _steps(
        self, steps: tuple[StepText, ...], source: SequenceRegister, last: SequenceRegister | None = None
    ) -> SequenceRegister:
        """Append steps on a register; the last result goes to `last` if given."""
        for number, step in enumerate(steps, start=1):
            result = last if last is not None and number == len(steps) else self.sequence.vector()
            self._step(step, result, source)
            source = result
        return source

    def _step(self, step: StepText, result: SequenceRegister, source: SequenceRegister) -> None:
        head = " ".join(filter(None, (self.mode if word == _MODE else word for word in step.head.split())))
        self.sequence.vpu(head, result, source, *(() if step.operand is None else (self._operand(step.operand),)))

    def _operand(self, text: str) -> SequenceRegister | int:
        named = {scalar.name: scalar.value for scalar in self.sequence.scalars}
        if text in named:
            return named[text]
        try:
            return int(text, 0)
        except ValueError:
            raise TargetDataError(f"{self.row.builtin}: '{text}' is not an operand", legal=named or ("0x0",)) from None


def widened_half(sequence: Sequence, source: SequenceRegister) -> SequenceRegister:
    """Append f16 to f32 for halves in 32-bit lanes: exact, NaN payloads and signs kept.

    An addition changes the exponent bias, and a second one infinity and NaN; a subnormal gets the exponent of the
    smallest normal number and an implicit one, and a subtraction removes that again.
    """

    def unary(head: str, value: SequenceRegister, operand: int) -> SequenceRegister:
        result = sequence.vector()
        sequence.vpu(head, result, value, operand)
        return result

    def equal(value: SequenceRegister, number: int) -> SequenceRegister:
        mask = sequence.mask()
        sequence.vpu("cmp_eq.u32", mask, value, number)
        return mask

    sign = unary("and.u32", source, _SIGN)
    magnitude = unary("and.u32", source, ~_SIGN)
    moved = unary("shl.u32", magnitude, _SHIFT)
    exponent = unary("and.u32", moved, _EXPONENT)
    result = unary("add.u32", moved, _REBIAS)
    special = equal(exponent, _EXPONENT)
    sequence.vpu("add.u32", result, result, _REBIAS, where=special)
    subnormal = equal(exponent, 0)
    sequence.vpu("add.u32", result, result, _ONE_EXPONENT, where=subnormal)
    sequence.vpu("sub.f32", result, result, _SMALLEST_NORMAL, where=subnormal)
    negative = equal(sign, _SIGN)
    sequence.vpu("or.u32", result, result, _WIDE_SIGN, where=negative)
    return result


# Elements between registers in linear order and the lanes that conversions of one lane work on.
#
# `spread` puts the elements of a register, in order, into lane 0 of the wide slots of two or four registers; `gather`
# is the way back. The lane moves are those of the builtin casts; which of them depends on MOV_DG of all dual groups.

_PAIR = 2


def spread(
    sequence: Sequence,
    source: SequenceRegister,
    bits: int,
    ratio: int,
    target: VliwTarget,
    *,
    printed: str | None = None,
) -> tuple[SequenceRegister, ...]:
    """Return `ratio` registers with the elements, of `bits` bits, in lane 0 of slots of zeros `ratio` times wider.

    `printed` is whether to use the compiler's printed moves for casts of LLVM IR, with this integer type.
    """
    if ratio == 1:
        return (source,)
    at_once = target.features.has[Feature.MOV_DG_ALL]
    if ratio == _PAIR:
        moves = unpack_two_single if not at_once else unpack_two_printed if printed else unpack_two_swapped
    else:
        moves = unpack_four_all if at_once else unpack_four_single
    return moves(sequence, printed or f"i{bits}", (source,))


def gather(
    sequence: Sequence, sources: Items[SequenceRegister], bits: int, target: VliwTarget, *, printed: bool = False
) -> SequenceRegister:
    """Return one register with the elements, of `bits` bits, in lane 0 of the slots of one, two or four registers."""
    if len(sources) == 1:
        return sources[0]
    moves = pack_four
    if len(sources) == _PAIR:
        at_once = target.features.has[Feature.MOV_DG_ALL]
        moves = pack_two_single if not at_once else pack_two_printed if printed else pack_two_all
    return moves(sequence, f"i{bits}", tuple(sources))[0]


# The builtins by name: casts and special functions; nothing here computes.

_PREFIXES = ("", "__builtin_", "__builtin_cast_")
"""The beginnings of names that may be left out."""
_NEAR, _SIMILARITY = 5, 0.5


def find_builtin(name: str, target: VliwTarget) -> BuiltinRow:
    """Return a cast builtin of a target; `__builtin_cast_` or `__builtin_` may be omitted from its name.

    Raises:
        ReadError: no generation has it; the message lists the nearest names.
        IllegalError: only other generations have it, or it is a special function.
    """
    spellings = [prefix + name for prefix in _PREFIXES]
    for row in builtins_of(target):
        if row.builtin in spellings:
            return row
    for special in library_functions():
        if special.builtin in spellings:
            what = f"{special.builtin}, {special.signature}"
            raise IllegalError(f"{what}, not a cast", legal=(f"castsim builtin {special.builtin}",))
    raise _missing(name, spellings, target)


def is_cast(name: str, target: VliwTarget) -> bool:
    """Return whether a name is that of a cast builtin of a target."""
    spellings = [prefix + name for prefix in _PREFIXES]
    return any(row.builtin in spellings for row in builtins_of(target))


def builtin_target(target: str | Path | Target) -> VliwTarget:
    """Return a target that has builtins.

    Raises:
        ReadError, TargetDataError: see `castsim.targets.loader.load_target`.
        IllegalError: the target has no builtins.
    """
    loaded = load_target(target) if isinstance(target, str | Path) else target
    return tpc_target(loaded, f"{loaded.name} has no builtins: they belong to TPC-C")


def generations() -> Iterator[str]:
    """Yield the names of the shipped targets that have builtins."""
    yield from targets_running("tpc")


def _missing(name: str, spellings: list[str], target: VliwTarget) -> CastsimError:
    having = [f"--target {row.generation}" for row in all_builtins() if row.builtin in spellings]
    if having:
        return IllegalError(f"{target.name} has no builtin '{name}'; these targets have it", legal=having)
    every = dict.fromkeys(row.builtin for row in (*builtins_of(target), *all_builtins()))
    every |= dict.fromkeys(special.builtin for special in library_functions())
    shortest = {_bare(spelling): spelling for spelling in every}
    bare = _bare(name)
    near = difflib.get_close_matches(bare, shortest, _NEAR, _SIMILARITY) or _alike(bare, shortest)
    legal = [*(shortest[spelling] for spelling in near), f"castsim builtin --target {target.name}"]
    from castsim.tools.tpc_compiler.c_language import call_named  # noqa: PLC0415 - only an unknown name needs it

    intrinsic = "; it is an intrinsic of TPC-C, which kernels call" if call_named(name) else ""
    return ReadError(f"unknown builtin '{name}'{intrinsic}", legal=legal)


def _alike(name: str, others: Iterable[str]) -> list[str]:
    """Return the names that share most words with a name, such as a type; none if no name shares one."""
    parts = set(name.split("_"))
    shared = {other: len(parts.intersection(other.split("_"))) for other in others}
    return sorted((other for other, count in shared.items() if count), key=lambda other: -shared[other])[:_NEAR]


def _bare(name: str) -> str:
    """Return a name without its optional parts."""
    bare = name.removeprefix("__builtin_").removeprefix("cast_")
    return bare.removeprefix("v_").removeprefix("s_").removesuffix("_f32")


_UNITS, _TYPE = ("v_", "s_"), "_f32"


def find_function(name: str, target: VliwTarget) -> SpecialFunction | None:
    """Return a special function; `__builtin_`, the unit and the end of a name may be omitted if the name stays unique.

    None: no function has this name.

    Raises:
        ReadError: several functions have names that begin with the text.
        IllegalError: only other generations have it.
    """
    rows = library_functions()
    matches = [row for row in rows if name in _spellings(row)]
    matches = matches or [row for row in rows if _without_unit(row).startswith(f"{name}_")]
    if not matches:
        return None
    here = [row for row in matches if any(architecture in row.generations for architecture in target.architectures)]
    if not here:
        having = dict.fromkeys(f"--target {generation}" for row in matches for generation in row.generations)
        raise IllegalError(f"{target.name} has no builtin '{name}'; these targets have it", legal=having)
    if name in (spelling for row in here for spelling in _spellings(row)):  # one of the table of builtins, not its twin
        here = [row for row in here if row.published] or here
    if len(here) > 1:
        raise ReadError(f"several builtins are called '{name}'", legal=[row.builtin for row in here])
    return here[0]


def _without_unit(row: SpecialFunction) -> str:
    return row.name[2:] if row.name.startswith(_UNITS) else row.name


def _spellings(row: SpecialFunction) -> tuple[str, ...]:
    return row.builtin, row.name, _without_unit(row), _without_unit(row).removesuffix(_TYPE)
