"""Steps of a chain, each a legal instruction of a target, with its values and spellings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np

from castsim.isa.dataclass import dataclass, field
from castsim.isa.formats import (
    Codes,
    FloatFormat,
    Format,
    IntFormat,
    Overflow,
    Rounding,
    Saturation,
    TaperedFormat,
    code_bits,
)
from castsim.isa.pto.program import RoundMode
from castsim.numerics.blocks import code_dtype
from castsim.numerics.cast import Scale, round_to_integral_codes, scaled_cast_codes
from castsim.numerics.policy import Policy
from castsim.running.acceptance import converted
from castsim.targets.description import Table

_PROSE = frozenset({"source", "status", "informational", "note"})
"""Keys of a table about the origin of its facts; no result depends on them."""


def digest_of_facts(document: Mapping[str, object]) -> str:
    """Return the SHA-256 of a target's facts and tables, without their origin."""
    text = json.dumps(_without_prose(document), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_prose(value: object) -> object:
    if isinstance(value, Table):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _without_prose(item) for key, item in value.items() if key not in _PROSE}
    if isinstance(value, list | tuple):
        return [_without_prose(item) for item in value]
    return str(value) if isinstance(value, Decimal) else value


# What a step does to an element, as the machine models do it, and whether it keeps the order of numbers.


@dataclass(frozen=True, slots=True)
class FormatCast:
    """A cast between formats."""

    src: Format
    dst: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class Integral:
    """Rounding to an integral value of the same format."""

    src: Format
    policy: Policy


@dataclass(frozen=True, slots=True)
class Scaled:
    """An integer times an exact factor, rounded once."""

    src: IntFormat
    dst: Format
    scale: Scale
    policy: Policy


@dataclass(frozen=True, slots=True)
class And:
    """Bitwise AND with a constant."""

    mask: int


@dataclass(frozen=True, slots=True)
class Reread:
    """The same bits, read in another format of the same width."""

    src: Format
    dst: Format


@dataclass(frozen=True, slots=True)
class ConstantArithmetic:
    """An operation with constants, executed by the machine model's own function.

    `name` identifies it; `monotone` tells that larger operands never give smaller results. `constant` is its single
    constant, as a code or an amount. `facts` is the digest of everything that decides its values: the target's facts
    and the relevant options. Without it, two targets with the same name would be confused.
    """

    name: str
    src: Format
    run: Callable[[Codes], Codes] = field(compare=False, repr=False)
    monotone: bool = False
    constant: int | None = None
    facts: str = ""


Primitive = FormatCast | Integral | Scaled | And | Reread | ConstantArithmetic


def apply(primitive: Primitive, codes: Codes) -> Codes:
    """Return codes of any shape after one primitive."""
    match primitive:
        case FormatCast(src, dst, policy):
            return converted(codes, src, dst, policy)
        case Integral(src, policy):
            return round_to_integral_codes(codes, src, policy)
        case Scaled(src, dst, scale, policy):
            return scaled_cast_codes(codes, src, dst, scale, policy)
        case And(mask):
            masked: Codes = codes & codes.dtype.type(mask)
            return masked
        case Reread():
            return codes
        case ConstantArithmetic():
            return primitive.run(codes)


def keeps_order(primitive: Primitive) -> bool:
    """Return whether numbers in rising order give results in rising order, by the construction of the primitive.

    Every deterministic rounding, clamping and overflow to infinity is monotone; NaN from overflow counts as
    beyond the largest number.
    """
    match primitive:
        case FormatCast(src, dst, policy) | Scaled(src, dst, _, policy):
            return _settles_in_order(src, dst, policy)
        case Integral(src, policy):
            return _settles_in_order(src, src, policy)
        case ConstantArithmetic():
            return primitive.monotone
        case And() | Reread():
            return False


def _settles_in_order(src: Format, dst: Format, policy: Policy) -> bool:
    ordered = all(isinstance(fmt, IntFormat) or (fmt.signed and fmt.has_zero) for fmt in (src, dst))
    draws = policy.rounding in (Rounding.STOCHASTIC, Rounding.HYBRID)
    if not ordered or draws or policy.subnormal_rounding is not None:
        return False
    boolean = any(isinstance(fmt, IntFormat) and fmt.boolean for fmt in (src, dst))
    if boolean or (policy.overflow is Overflow.WRAP and not _fits(src, dst)):
        return False
    return not (policy.infinity_to_max or policy.keep_infinity)


def _fits(src: Format, dst: Format) -> bool:
    """Return whether the destination contains every integer of the source, so wrapping changes nothing."""
    if not isinstance(src, IntFormat) or not isinstance(dst, IntFormat):
        return False
    return dst.minimum <= src.minimum and src.maximum <= dst.maximum


@dataclass(frozen=True, slots=True)
class TileCastForm:
    """A tile cast in the text; None leaves a choice to the chip's default."""

    rounding: RoundMode | None
    saturation: Saturation | None
    scratch: bool

    @property
    def options(self) -> tuple[str, ...]:
        """The required modes."""
        words = [] if self.rounding is None else [f"rounding {self.rounding.name}"]
        words += [] if self.saturation is None else [f"saturation {self.saturation.name}"]
        return (*words, *(["tmp"] if self.scratch else []))


@dataclass(frozen=True, slots=True)
class TileOperationForm:
    """A tile operation with a constant: the mnemonic without `pto.`, the constant's code, additional attributes."""

    mnemonic: str
    constant: int | None = None
    attributes: tuple[str, ...] = ()
    scratch: bool = False
    """Whether it needs a tmp tile as large as its operand."""

    @property
    def options(self) -> tuple[str, ...]:
        """The required modes."""
        return self.attributes


@dataclass(frozen=True, slots=True)
class TileChoiceForm:
    """A comparison with a scalar and a selection: elements for which it is true stay, others become another scalar.

    `mode` is the mode of the comparison; scalars are codes.
    """

    mode: str
    bound: int
    other: int

    @property
    def mnemonic(self) -> str:
        """The instructions."""
        return "tcmps+tsels"

    @property
    def options(self) -> tuple[str, ...]:
        """Empty: it requires no modes."""
        return ()


@dataclass(frozen=True, slots=True)
class BuiltinForm:
    """A cast builtin of a vector unit, by its name; a sequence of instructions that the compiler inserts."""

    mnemonic: str

    @property
    def options(self) -> tuple[str, ...]:
        """Empty: it requires no modes."""
        return ()


@dataclass(frozen=True, slots=True)
class VectorForm:
    """An instruction of the vector unit: mnemonic with its type, switches, operands after the first source.

    Among the operands, `@` is the first source, `=CODE` a vector with that code in every element.

    `lanes` describes the spellings of a conversion that changes the width of elements: the largest `lane_sel` (None:
    no lane operand), and whether it has the all_lanes form.
    `lanes_chosen` tells whether all lanes must be requested, `default_rounding` whether `rounding` is the
    default.
    """

    mnemonic: str
    switches: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    lane_sel_max: int | None = None
    all_lanes: bool = False
    rounding: str | None = None
    lanes_chosen: bool = True
    default_rounding: bool = True

    @property
    def options(self) -> tuple[str, ...]:
        """The required modes, without a default rounding."""
        words = [] if self.rounding is None or self.default_rounding else [f"rounding {self.rounding}"]
        return (*words, *(word for word in self.switches if not word.startswith(("target_type", "to_"))))


@dataclass(frozen=True, slots=True)
class RereadForm:
    """No instruction, because registers contain bits."""

    @property
    def options(self) -> tuple[str, ...]:
        """Empty: it requires no modes."""
        return ()


Form = TileCastForm | TileOperationForm | TileChoiceForm | VectorForm | BuiltinForm | RereadForm


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """One instruction from `src` to `dst`.

    `forms` are the spellings that give the same values, the plainest first; `name` describes the instruction.
    """

    src: Format
    dst: Format
    primitives: tuple[Primitive, ...]
    forms: tuple[Form, ...]
    name: str

    def run(self, codes: Codes) -> Codes:
        """Return the codes of `dst` for codes of `src`."""
        for primitive in self.primitives:
            codes = apply(primitive, codes)
        return codes

    @property
    def is_instruction(self) -> bool:
        """Whether it issues anything."""
        return not isinstance(self.forms[0], RereadForm)

    @property
    def label(self) -> str:
        """Name and the options of the plainest form."""
        options = ", ".join(self.forms[0].options)
        return f"{self.name} ({options})" if options else self.name


Chain = tuple[LoweringStep, ...]


def run_chain(chain: Sequence[LoweringStep], codes: Codes) -> Codes:
    """Return the results of a chain for codes."""
    for step in chain:
        codes = step.run(codes)
    return codes


def intermediates(chain: Sequence[LoweringStep], codes: Codes) -> list[tuple[Format, Codes]]:
    """Return format and codes after every step."""
    stages = []
    for step in chain:
        codes = step.run(codes)
        stages.append((step.dst, codes))
    return stages


def primitives_of(chain: Iterable[LoweringStep]) -> tuple[Primitive, ...]:
    """Return all primitives of a chain."""
    return tuple(primitive for step in chain for primitive in step.primitives)


def path_of(chain: Sequence[LoweringStep]) -> tuple[str, ...]:
    """Return the names of the formats along a chain."""
    names = [chain[0].src.name, *(step.dst.name for step in chain)] if chain else []
    return tuple(name for index, name in enumerate(names) if index == 0 or name != names[index - 1])


# Constants that fix-up arithmetic around a cast may need: they follow from the two formats of the request.


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants for chains from `src` to `dst`, as codes of the format of the arithmetic."""

    src: Format
    dst: Format

    def once(self) -> tuple[None, ...]:
        """Return one absent constant, for operations that take none."""
        return (None,)

    def bounds(self, fmt: Format) -> tuple[int, ...]:
        """Return the ends of the destination's range, rounded inwards."""
        ends = []
        for code, mode in ((_lowest(self.dst), Rounding.CEIL), (_highest(self.dst), Rounding.FLOOR)):
            codes = np.array([code], code_dtype(self.dst))
            overflow = Overflow.SATURATE
            end = int(converted(codes, self.dst, fmt, Policy(_fitting(fmt, mode), overflow))[0])
            ends.append(end)
        return tuple(dict.fromkeys(ends))

    def offsets(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the powers of two that convert between signed and unsigned ranges."""
        widths = {row.bits for row in (self.src, self.dst, fmt) if isinstance(row, IntFormat) and row.bits <= fmt.bits}
        mask = (1 << fmt.bits) - 1
        powers = sorted(1 << (bits - 1) for bits in widths if bits > 1)
        return tuple(dict.fromkeys(code & mask for power in powers for code in (power, -power)))

    def offsets_of_floats(self, fmt: FloatFormat) -> tuple[int, ...]:
        """Return the codes of a floating format that undo or prepare a conversion between signed and unsigned ranges.

        These are half the range of the request's integers and the whole range, of either sign; powers of two are exact
        in every format with that range.
        """
        widths = {row.bits for row in (self.src, self.dst) if isinstance(row, IntFormat) and row.bits > 1}
        exponents = sorted({power for bits in widths for power in (bits - 1, bits)})
        top_exponent = (fmt.max_finite_code >> fmt.fraction_bits) - fmt.bias
        codes = [(power + fmt.bias) << fmt.fraction_bits for power in exponents if power <= top_exponent]
        return tuple(code | sign for code in codes for sign in (0, fmt.sign_bit))

    def masks(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the masks of the widths of the request that are narrower."""
        return tuple((1 << bits) - 1 for bits in self._widths() if bits < fmt.bits)

    def signs(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the sign bits of the widths of the request."""
        return tuple(1 << (bits - 1) for bits in self._widths() if 1 < bits <= fmt.bits)

    def shifts(self, fmt: IntFormat) -> tuple[int, ...]:
        """Return the differences between the widths of the request and that of the arithmetic."""
        return tuple(sorted(fmt.bits - bits for bits in self._widths() if bits < fmt.bits))

    def _widths(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(row.bits for row in (self.dst, self.src)))


def _fitting(fmt: Format, mode: Rounding) -> Rounding:
    return Rounding.TRUNC if isinstance(fmt, TaperedFormat) else mode


def _highest(fmt: Format) -> int:
    return fmt.maximum if isinstance(fmt, IntFormat) else fmt.max_finite_code


def _lowest(fmt: Format) -> int:
    if isinstance(fmt, IntFormat):
        return fmt.minimum & ((1 << code_bits(fmt)) - 1)
    if isinstance(fmt, FloatFormat) and not fmt.signed:
        return 0
    return fmt.max_finite_code | fmt.sign_bit
