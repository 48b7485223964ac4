"""The values of conversions: policies, the forms that a text asks for, and a chip's cast of loose elements.

Source: docs/reference/tpc.md section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from castsim.isa.codes import Codes
from castsim.isa.errors import IllegalError, ReadError
from castsim.isa.formats import FORMATS, FloatFormat, Format, IntFormat
from castsim.isa.modes import Overflow, Rounding, Saturation
from castsim.isa.tpc.program import GROUPED, Register, TpcInstruction
from castsim.isa.warning_text import WarningKind, WarningText
from castsim.machines.mechanisms import CastAsked, TargetCast, saturation_in_force
from castsim.machines.vliw.semantics.configuration import Words
from castsim.numerics import NanToFloat, NanToInteger, Policy, convert_codes
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, RoundingMode, VliwTarget


def nan_code(fmt: FloatFormat) -> int:
    """Return the NaN that conversions and arithmetic produce: every bit but the sign."""
    return (1 << (fmt.bits - 1)) - 1


def policy_of(src: Format, dst: Format, mode: RoundingMode, clip: bool, target: VliwTarget) -> Policy:
    """Return the policy of a conversion where the formats leave it open: rounding, range, NaN.

    Conversions between integers and from float to integer are those of CONVERT; `clip` is the switch clip_fp.
    """
    if isinstance(dst, IntFormat):
        kind = "integer" if isinstance(src, IntFormat) else "float"
        wrap = target.option(f"{kind}_to_integer_overflow") == "wrap"
        return integer_policy(mode, wrap, NanToInteger(str(target.option("nan_to_integer"))))
    assert isinstance(dst, FloatFormat)
    values = target.special_values
    payload = (src.name, dst.name) in values.payload_kept
    from_float = isinstance(src, FloatFormat)
    narrowing = from_float and dst.bits < FORMATS[values.intermediate].bits
    guard = not narrowing or target.option("stochastic_exact") == "keep"
    return _float_policy(dst, mode, clip, payload, from_float, guard)


@lru_cache(maxsize=1024)
def integer_policy(mode: RoundingMode, wrap: bool = False, nan: NanToInteger = NanToInteger.ZERO) -> Policy:
    """Return the policy of a conversion to an integer: saturating, or to the low bits."""
    assert mode.rounding is not None
    overflow = Overflow.WRAP if wrap else Overflow.SATURATE
    return Policy(rounding=mode.rounding, overflow=overflow, nan_to_integer=nan)


@lru_cache(maxsize=1024)
def _float_policy(
    dst: FloatFormat, mode: RoundingMode, clip: bool, payload: bool, from_float: bool, guard: bool
) -> Policy:
    assert mode.rounding is not None
    return Policy(
        rounding=mode.rounding,
        overflow=Overflow.SATURATE if clip else Overflow.SPECIAL,
        nan_to_float=NanToFloat.PAYLOAD if payload else NanToFloat.FIXED,
        nan_code=nan_code(dst),
        subnormal_rounding=mode.subnormal_rounding,
        stochastic_guard=guard,
        stochastic_far_zero=from_float,
    )


@lru_cache(maxsize=64)
def integral_policy(fmt: FloatFormat, mode: RoundingMode) -> Policy:
    """Return the policy of rounding to an integral value: infinities stay, NaN is the format's."""
    assert mode.rounding is not None
    return Policy(mode.rounding, Overflow.SPECIAL, nan_to_float=NanToFloat.FIXED, nan_code=nan_code(fmt))


_EXACT = Policy(Rounding.TRUNC, Overflow.SPECIAL)


def converted(codes: Codes, src: Format, dst: Format, policy: Policy, random: Words | None, through: str) -> Codes:
    """Convert elements by a policy.

    A float narrower than the format `through` becomes that first, exactly, on its way to another narrow float. This
    matters for random rounding alone: what counts as below the smallest subnormal is judged there.
    """
    middle = FORMATS[through]
    floats = isinstance(src, FloatFormat) and isinstance(dst, FloatFormat)
    if random is not None and floats and max(src.bits, dst.bits) < middle.bits:
        codes, src = convert_codes(codes, src, middle, _EXACT), middle
    return convert_codes(codes, src, dst, policy, random=random)


# Which form of a conversion a text asks for, and what is to be said of forms that the intrinsic header lacks.
#
# The compiler prints forms that no intrinsic has: pairs of types of its own, all_lanes on types of one width, lane
# numbers beyond the pair. They are taken, each with a notice. Source: docs/reference/tpc.md sections 2.2 and 2.7.

_SINGLE, _ALL = "single_lane", "all_lanes"
_PAIR = 2


class NoticeKind(StrEnum):
    """Why a form is worth a notice."""

    COMPILER_FORM = "compiler form"
    """Only the compiler's output shows it; the intrinsic header lacks it."""
    LANE_BEYOND_PAIR = "lane beyond the pair"
    """`lane_sel` 2 or 3 where a wide element holds two narrow ones."""


@dataclass(frozen=True, slots=True)
class FormNotice:
    """A notice on a form that runs, though the intrinsic header does not have it."""

    kind: NoticeKind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class ConversionForm:
    """A form of a pair: its row, the lane of single_lane (None: all lanes), and the notices it deserves."""

    row: ConvertRow | IntegerConvertRow
    lane: int | None
    notices: tuple[FormNotice, ...]


def convert_form(instruction: TpcInstruction, src: str, dst: str, unit: str, target: VliwTarget) -> ConversionForm:
    """Return the form of a CONVERT: one of the intrinsic header, else one that the compiler prints.

    Raises:
        IllegalError: the unit has no such pair, or the pair no such lanes; those it has are listed.
    """
    header = target.convert(src, dst, unit)
    shown = next((row for row in target.compiler_converts if (row.unit, row.src, row.dst) == (unit, src, dst)), None)
    row = header
    if header is None or (shown is not None and not _has_form(header, instruction) and _has_word(shown, instruction)):
        row = shown
    if row is None:
        raise _no_pair(instruction, src, dst, unit, target)
    found = ConversionForm(row, None, ()) if unit == "spu" else lane_form(instruction, row, target)
    if row is header:
        return found
    lacks = "this pair" if header is None else "this form of the pair"
    text = f"the intrinsic header lacks {lacks}, {src} -> {dst}; the compiler prints it ({row.note})"
    return ConversionForm(row, found.lane, (FormNotice(NoticeKind.COMPILER_FORM, text), *found.notices))


def lane_form(instruction: TpcInstruction, row: ConvertRow | IntegerConvertRow, target: VliwTarget) -> ConversionForm:
    """Return the lanes that a conversion of the vector unit names, by the row of its pair.

    Raises:
        IllegalError: the pair lacks the form or the lane; those it has are listed.
    """
    pair = f"{row.src} -> {row.dst}"
    word, lane = _asked(instruction)
    if word == _ALL and _ratio(row) == 1 and not row.lanes and lane == 0:
        text = f"all_lanes on {pair}, types of one width: it has no effect, the conversion is lane by lane"
        return ConversionForm(row, None, (FormNotice(NoticeKind.COMPILER_FORM, text),))
    if word not in (row.lanes or (_SINGLE,)):
        legal = row.lanes or ("no lane switch: the widths are equal",)
        raise IllegalError(f"the conversion {pair} has no {word} here", span=instruction.span, legal=legal)
    last = 0 if word == _ALL else row.lane_sel_max or 0
    if lane <= last:
        return ConversionForm(row, None if word == _ALL else lane, ())
    if last == _PAIR - 1 and _ratio(row) == _PAIR and target.option("lane_beyond_pair") == "modulo":
        text = f"lane_sel={lane} of {pair}, which has two lanes: taken as lane_sel={lane % _PAIR}, no source states it"
        return ConversionForm(row, lane % _PAIR, (FormNotice(NoticeKind.LANE_BEYOND_PAIR, text),))
    legal = tuple(f"lane_sel={number}" for number in range(last + 1))
    raise IllegalError(f"the conversion {pair} with {word} has no lane_sel={lane}", span=instruction.span, legal=legal)


def registers_named(instruction: TpcInstruction) -> int:
    """Return how many registers destination and source name, the larger number: two as D, four as A."""
    operands = [operand for operand in map(instruction.operand, ("dest", "src_a")) if isinstance(operand, Register)]
    return max(GROUPED.get(operand.file, (operand.file, 1))[1] for operand in operands)


def is_lane_by_lane(row: ConvertRow | IntegerConvertRow) -> bool:
    """Whether both types of a pair have one width."""
    return _ratio(row) == 1


def _asked(instruction: TpcInstruction) -> tuple[str, int]:
    lane = instruction.switch("lane_sel") or 0
    assert isinstance(lane, int)
    return str(instruction.switch("num_lanes") or _SINGLE), lane


def _has_word(row: ConvertRow, instruction: TpcInstruction) -> bool:
    return _asked(instruction)[0] in (row.lanes or (_SINGLE,))


def _has_form(row: ConvertRow, instruction: TpcInstruction) -> bool:
    word, lane = _asked(instruction)
    return _has_word(row, instruction) and lane <= (0 if word == _ALL else row.lane_sel_max or 0)


def _ratio(row: ConvertRow | IntegerConvertRow) -> int:
    widths = FORMATS[row.src].bits, FORMATS[row.dst].bits
    return max(widths) // min(widths)


def _no_pair(instruction: TpcInstruction, src: str, dst: str, unit: str, target: VliwTarget) -> IllegalError:
    legal = [other.dst for other in target.converts if (other.unit, other.src) == (unit, src)]
    legal = legal or [f"from {name}" for name in dict.fromkeys(o.src for o in target.converts if o.unit == unit)]
    kind = "scalar" if unit == "spu" else "vector"
    message = f"{target.name} has no {kind} conversion {src} -> {dst}"
    return IllegalError(message, span=instruction.span, legal=legal)


# A chip's cast of loose elements: what one CONVERT, or one narrowing with shift 0, makes of them. Rounding modes go by
# the chip's own words (`rhne`, `rz`) or by the abstract ones (`rint`, `trunc`).


def cast_elements(target: VliwTarget, codes: Codes, asked: CastAsked) -> TargetCast:
    """Convert codes of any shape as the vector unit does.

    Raises:
        ReadError: a word that is not a rounding mode.
        IllegalError: no single instruction makes this pair, or a mode that it does not have or that needs random words.
    """
    src, dst = asked.src, asked.dst
    _check_loose_pair(target, src, dst)
    word, mode = _loose_mode(target, asked.rounding)
    policy = policy_of(src, dst, mode, False, target)
    result = converted(codes, src, dst, policy, None, target.special_values.intermediate)
    clamps = Saturation.ON if policy.overflow is Overflow.SATURATE else Saturation.OFF
    warnings = []
    if asked.saturation not in (None, clamps):
        text = f"saturation {asked.saturation} is ignored: CONVERT {src.name} -> {dst.name} has no such switch"
        warnings.append(WarningText(WarningKind.SATURATION, text))
    if asked.scratch:
        warnings.append(WarningText(WarningKind.SCRATCH, "the tmp tile is ignored: CONVERT works on registers"))
    saturation = saturation_in_force(src, dst, policy.overflow, None)
    return TargetCast(result, word, saturation, policy.overflow, tuple(warnings))


def _check_loose_pair(target: VliwTarget, src: Format, dst: Format) -> None:
    source, destination = (fmt.name.partition("@")[0] for fmt in (src, dst))
    pairs = {(row.src, row.dst) for row in target.converts if row.unit == "vpu"}
    pairs |= {(row.src, row.dst) for row in target.integer_converts if row.unit == "vpu"}
    if (source, destination) not in pairs:
        legal = sorted(to for other, to in pairs if other == source)
        has = f"from {source} it converts to: {', '.join(legal)}" if legal else f"it converts nothing from {source}"
        raise IllegalError(
            f"{target.name} has no instruction {source} -> {destination}; {has}",
            legal=[f"{source} -> {other}" for other in legal],
        )


def _loose_mode(target: VliwTarget, asked: str | None) -> tuple[str, RoundingMode]:
    """Return the mode in force: the register's reset value where the instruction leaves it open."""
    modes = target.convert_rounding.modes
    fixed = {word: mode for word, mode in modes.items() if mode.rounding is not None}
    if asked is None or asked.lower() in (target.convert_rounding.default, "none"):
        register = target.configuration.get("convert_round", target.configuration.get("round"))
        reset = register.reset if register is not None else 0
        return next((word, mode) for word, mode in fixed.items() if mode.code == reset)
    wanted = asked.lower()
    for word, mode in fixed.items():
        if wanted in (word, mode.rounding if mode.subnormal_rounding is None else word):
            if mode.rounding is Rounding.STOCHASTIC:
                raise IllegalError(
                    f"rounding {word} draws from the chip's random generator; run a program",
                    legal=[name for name, other in fixed.items() if other.rounding is not Rounding.STOCHASTIC],
                )
            return word, mode
    if wanted in {mode.value for mode in Rounding}:
        raise IllegalError(f"{target.name} has no rounding mode {asked}", legal=fixed)
    raise ReadError(f"unknown rounding mode '{asked}'", legal=fixed)
