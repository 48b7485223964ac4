"""Registers and masks as values: bytes, predicate bits, and which of them a program has defined; `vcvt` and `vtrc`.

A register has 256 bytes; lane i of w bits is the bytes from i * w / 8 on, little endian. A mask has one bit per byte;
the bit of a lane's first byte governs the lane (docs/reference/micro.md sections 3 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from castsim.execution.buffer_values import Bytes, pack_nibbles, unpack_nibbles
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Codes, FloatFormat, Format, IntFormat, Overflow, Rounding, format_named
from castsim.isa.pto.micro_words import HALVES, ROUNDINGS, Conversion, check_truncation, plain_word
from castsim.isa.pto.value_types import REGISTER_BITS
from castsim.machines.vector_function.function_operations import ConvertMap, Index, convert_map
from castsim.machines.vector_function.plan import conversion_policy
from castsim.numerics.cast import round_to_integral_codes
from castsim.numerics.codec import decode_to_float64
from castsim.numerics.policy import E8M0Rule, InfinityWrap, Policy
from castsim.numerics.tiers import convert_codes
from castsim.targets.loader import load_target
from castsim.targets.vector_function import VectorFunctionTarget

REGISTER_BYTES = REGISTER_BITS // 8

Bits = NDArray[np.bool_]


def _kept(array: NDArray[np.generic], size: int) -> None:
    """Make an array of a value read-only; it must have one entry per byte of a register."""
    assert array.shape[-1] == size, array.shape
    array.flags.writeable = False


_ALL_DEFINED = np.ones(REGISTER_BYTES, np.bool_)
_ALL_DEFINED.flags.writeable = False


@dataclass(frozen=True, slots=True, eq=False)
class VectorRegister:
    """The 256 bytes of a vector register, and a mark for each with a defined value.

    A register takes over its arrays and makes them read-only. Undefined bytes read as in `data`: the chip's value
    is unknown. The data of several runs have a first axis, as in `MicroMemory`.
    """

    data: Bytes
    defined: Bits = field(default_factory=lambda: _ALL_DEFINED)

    def __post_init__(self) -> None:
        _kept(self.data, REGISTER_BYTES)
        _kept(self.defined, REGISTER_BYTES)

    def lanes(self, width: int) -> Codes:
        """Return the lanes of `width` bits as codes, read-only."""
        codes: Codes = self.data.view(f"<u{width // 8}")
        return codes

    def defined_lanes(self, width: int) -> Bits:
        """Return for each lane of `width` bits whether all of it is defined."""
        return whole_lanes(self.defined, width)


@dataclass(frozen=True, slots=True, eq=False)
class PredicateRegister:
    """The 256 bits of a predicate register, and a mark for each with a defined value."""

    bits: Bits
    defined: Bits = field(default_factory=lambda: _ALL_DEFINED)

    def __post_init__(self) -> None:
        _kept(self.bits, REGISTER_BYTES)
        _kept(self.defined, REGISTER_BYTES)

    def lanes(self, width: int) -> Bits:
        """Return the bit of each lane of `width` bits."""
        return self.bits[:: width // 8]

    def defined_lanes(self, width: int) -> Bits:
        """Return for each lane of `width` bits whether its bit is defined."""
        return self.defined[:: width // 8]

    @property
    def is_defined(self) -> bool:
        """Whether every bit has a value."""
        return self.defined is _ALL_DEFINED or bool(self.defined.all())


def whole_lanes(defined: Bits, width: int) -> Bits:
    """Return for each lane of `width` bits whether all its bytes are marked."""
    return defined if width == 8 else every_of_row(defined.reshape(-1, width // 8))


def every_of_row(marks: Bits) -> Bits:
    """Return for each row whether all its marks are set."""
    every: Bits = np.logical_and.reduce(marks, axis=1)
    return every


def register_of(codes: Codes, defined: Bits) -> VectorRegister:
    """Return the register with the codes of all lanes, and a mark for each defined lane."""
    size = codes.dtype.itemsize
    return VectorRegister(
        np.ascontiguousarray(codes).view(np.uint8).copy(), np.repeat(defined, size) if size > 1 else defined.copy()
    )


def masked(codes: Codes, defined: Bits, mask: PredicateRegister) -> VectorRegister:
    """Return the register of lanes that a masked operation yields: 0 where the mask's bit is 0.

    Source: docs/reference/micro.md section 3 (zeroing, never merging).
    """
    width = codes.dtype.itemsize * 8
    active = mask.lanes(width)
    marks = defined | ~active
    if not mask.is_defined:
        marks &= mask.defined_lanes(width)
    return register_of(np.where(active, codes, codes.dtype.type(0)), marks)


def mask_of(lanes: Bits, width: int, defined: Bits | None = None) -> PredicateRegister:
    """Return the mask with the given bits in lanes of `width` bits; the bits between are 0."""
    bits = np.zeros(REGISTER_BYTES, np.bool_)
    bits[:: width // 8] = lanes
    if defined is None:
        return PredicateRegister(bits)
    mask = np.ones(REGISTER_BYTES, np.bool_)
    mask[:: width // 8] = defined
    return PredicateRegister(bits, mask)


@lru_cache(maxsize=1 << 9)
def leading_lanes(count: int, width: int) -> PredicateRegister:
    """Return the mask of the first lanes of `width` bits."""
    return mask_of(np.arange(REGISTER_BYTES * 8 // width) < count, width)


def every_lane(width: int) -> PredicateRegister:
    """Return the mask of all lanes of `width` bits."""
    return leading_lanes(REGISTER_BYTES * 8 // width, width)


# What an instruction is given and yields: operands by kind, in the order of its text.

Value = VectorRegister | PredicateRegister | int
"""A result: a register, a mask, or a scalar number."""


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """The operands of one instruction, by kind.

    `scalars` are codes of the element format (for integers any number with these low bits), counts and strides plain
    numbers. `words` are the quoted words. `element` is the format of the first register operand, or of the result if
    there is none; `result` that of the first register result. `width` is the lane width of the instruction's masks,
    `ctrl` the CTRL register.
    """

    name: str
    element: Format
    result: Format
    width: int
    target: VectorFunctionTarget
    registers: tuple[VectorRegister, ...] = ()
    masks: tuple[PredicateRegister, ...] = ()
    scalars: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    ctrl: int = 0

    @property
    def bits(self) -> int:
        """Bits of a lane of the operands."""
        return self.element.storage_bits

    @property
    def lanes(self) -> tuple[Codes, ...]:
        """The codes in each register."""
        return tuple(register.lanes(self.bits) for register in self.registers)


_HALF_WORDS = {"LOWER": 0, "HIGHER": 1, "UPPER": 1}


def half_of(word: str) -> int:
    """Return 0 for the lower half, 1 for the higher.

    Raises:
        IllegalError: the word names neither.
    """
    if word not in _HALF_WORDS:
        raise IllegalError(f"no half {word}", legal=HALVES)
    return _HALF_WORDS[word]


def signed(value: int, bits: int) -> int:
    """Return the low bits of a number as a two's complement value."""
    low = low_bits(value, bits)
    return low - (1 << bits) if low >> (bits - 1) else low


def low_bits(value: int, bits: int) -> int:
    """Return the low bits of a number."""
    return value & ((1 << bits) - 1)


# `vcvt` and `vtrc` on registers (docs/reference/micro.md section 3).


@cache
def documented_target() -> VectorFunctionTarget:
    """Return the chip of the micro level's documentation, with its shipped options."""
    target = load_target("a5")
    assert isinstance(target, VectorFunctionTarget)
    return target


def convert(
    source: VectorRegister,
    pair: Conversion,
    part: str | None,
    mask: PredicateRegister,
    rounding: str | None,
    saturation: str | None,
    *,
    target: VectorFunctionTarget | None = None,
    ctrl: int = 0,
    seen: Callable[[Policy, Codes, Codes], None] | None = None,
) -> VectorRegister:
    """Convert the lanes of a register.

    Lanes without mask bit and, when narrowing, the lanes of other parts become 0.

    Args:
        source: lanes of `pair.src`.
        pair: the formats (from, to).
        part: `EVEN`, `ODD`, `P0` .. `P3`, None if the pair takes none; the next three arguments likewise.
        mask: enables source lanes.
        rounding: `R`, `A`, `F`, `C`, `Z`, `O`, `H`.
        saturation: `SAT`, `NOSAT`.
        target: the target whose options decide what the sources leave open; None: the shipped options.
        ctrl: the CTRL register, which applies to all conversions while its bit for that is set.
        seen: receives the policy and the codes before and after, for active lanes with known values.

    Raises:
        IllegalError: rounding H does not apply to the pair, with option `micro_hybrid_elsewhere = refuse`.
    """
    chip = documented_target() if target is None else target
    src, dst = format_named(pair.src), format_named(pair.dst)
    places = convert_map(src, dst, None if part is None else plain_word(part), REGISTER_BYTES)
    policy = policy_of(chip, pair, rounding, saturation, ctrl)
    recorded = _is_recorded(chip, pair, saturation) and not holds_for_all(chip, ctrl)

    def change(codes: Codes) -> Codes:
        result = convert_codes(codes, src, dst, policy)
        return _recorded_overflow(codes, result, src, dst, rounding) if recorded else result

    heard = None if seen is None else partial(seen, policy)
    return converted(source, (src, dst), places, _governors(chip, pair, places), mask, change, heard)


def converted(
    source: VectorRegister,
    formats: tuple[Format, Format],
    places: ConvertMap,
    governors: Index,
    mask: PredicateRegister,
    change: Callable[[Codes], Codes],
    heard: Callable[[Codes, Codes], None] | None = None,
) -> VectorRegister:
    """Return the result register of a conversion: elements without mask bit and those of other parts are 0.

    Args:
        source: the input elements.
        formats: the formats of the input and of the result.
        places: the positions read and written.
        governors: the mask bit of each.
        mask: enables elements.
        change: a function from codes to codes.
        heard: receives the codes before and after, for active elements with known values.
    """
    src, dst = formats
    before = np.take(_elements(source, src), places.source, axis=-1)
    after = change(before)
    active, valid = mask.bits[governors], mask.defined[governors]
    marks = _defined_elements(source, src)[places.source]
    if heard is not None:
        those = active & valid & marks
        heard(before[those], after[those])
    return _filled(np.where(active, after, after.dtype.type(0)), (marks | ~active) & valid, dst, places)


def _filled(converted: Codes, marks: Bits, dst: Format, places: ConvertMap) -> VectorRegister:
    """Return a register with elements at their positions, 0 elsewhere; `marks` tells which of them are defined."""
    target_codes = np.zeros((*converted.shape[:-1], REGISTER_BYTES * 8 // _lane_bits(dst)), converted.dtype)
    target_codes[..., places.destination] = converted
    defined = np.ones(target_codes.shape[-1], np.bool_)
    defined[places.destination] = marks
    if dst.bits == 4:
        return VectorRegister(pack_nibbles(target_codes[None])[0], every_of_row(defined.reshape(-1, 2)))
    return register_of(target_codes, defined)


def truncate(source: VectorRegister, element: str, mask: PredicateRegister, rounding: str) -> VectorRegister:
    """Round lanes of a float format to integral values of the same format (`vtrc`); zeros keep their sign.

    Raises:
        IllegalError: `vtrc` lacks the format or rounding.
    """
    check_truncation(element, rounding)
    fmt = format_named(element)
    policy = Policy(rounding=ROUNDINGS[plain_word(rounding)], overflow=Overflow.SPECIAL)
    rounded = round_to_integral_codes(source.lanes(fmt.bits), fmt, policy)
    return masked(rounded, source.defined_lanes(fmt.bits), mask)


def policy_of(
    target: VectorFunctionTarget, pair: Conversion, rounding: str | None, saturation: str | None, ctrl: int = 0
) -> Policy:
    """Return the policy of a conversion: rounding, overflow, special values.

    SAT has the effect of a CTRL that clamps all conversions, NOSAT that of a clear CTRL; a pair
    without the attribute clamps if clamping applies. While CTRL applies to all, it alone decides. Source:
    docs/reference/micro.md section 3.4.
    """
    src, dst = format_named(pair.src), format_named(pair.dst)
    mode = Rounding.RINT if rounding is None else ROUNDINGS[plain_word(rounding)]
    if mode is Rounding.HYBRID and pair.dst != "hif8":
        if target.option("micro_hybrid_elsewhere") == "refuse":
            legal = [letter for letter in pair.roundings if letter != "H"]
            raise IllegalError(f"rounding H has no documented meaning for {pair.src} -> {pair.dst}", legal=legal)
        mode = Rounding.TRUNC
    if _is_integer_to_float(src, dst) and target.option("micro_integer_to_float") == "nearest_even":
        mode = Rounding.RINT
    if _keeps_bits(src, dst) and target.option("micro_negative_to_unsigned") == "sign_extend":
        return Policy(rounding=mode, overflow=Overflow.WRAP)
    clamps = saturation is None or plain_word(saturation) == "SAT"
    if "e8m0" in (pair.src, pair.dst):  # NaN, zero and negative numbers give its NaN, saturating or not; it stays NaN
        overflow = Overflow.SATURATE if clamps and pair.dst == "e8m0" else Overflow.SPECIAL
        return Policy(rounding=mode, overflow=overflow, e8m0_rule=E8M0Rule.ASL)
    own = 1 << target.control.saturation_global if clamps else 0
    policy = conversion_policy(target, src, dst, mode, ctrl if holds_for_all(target, ctrl) else own)
    wraps = policy.overflow is Overflow.WRAP and not isinstance(src, IntFormat)
    if wraps and target.option("micro_infinity_to_integer") == "extreme":
        return replace(policy, infinity_wrap=InfinityWrap.EXTREME, wrap_bits=None)
    return policy


def holds_for_all(target: VectorFunctionTarget, ctrl: int) -> bool:
    """Return whether CTRL decides for all instructions, regardless of their own operand."""
    return bool(ctrl >> target.control.saturation_global & 1)


def _keeps_bits(src: Format, dst: Format) -> bool:
    """Return whether a pair widens signed integers to unsigned ones."""
    if not (isinstance(src, IntFormat) and isinstance(dst, IntFormat)):
        return False
    return src.signed and not dst.signed and src.bits < dst.bits


def _is_integer_to_float(src: Format, dst: Format) -> bool:
    return isinstance(src, IntFormat) and not isinstance(dst, IntFormat)


def _is_recorded(target: VectorFunctionTarget, pair: Conversion, saturation: str | None) -> bool:
    """Return whether overflow follows the vendor's case file of f32 to 8-bit floats."""
    if (pair.src, len(pair.parts)) != ("f32", 4) or not isinstance(format_named(pair.dst), FloatFormat):
        return False
    return plain_word(saturation or "") == "SAT" and target.option("micro_fp8_overflow") == "recorded"


_RECORDED = {
    ("e4m3fn", "A"): 0x78,
    ("e5m2", "A"): 0x7D,
    ("e5m2", "H"): 0x7C,
    ("e5m2", "Z"): 0x7C,
}
"""Code of positive overflow under SAT by destination and rounding; others clamp.

Source: docs/reference/micro.md section 3.4.
"""


def _recorded_overflow(codes: Codes, converted: Codes, src: Format, dst: Format, rounding: str | None) -> Codes:
    letter = plain_word(rounding or "")
    code = _RECORDED.get((dst.name, letter))
    if code is None:
        return converted
    assert isinstance(dst, FloatFormat)
    top = np.array([dst.max_finite_code, dst.max_finite_code - 1], np.uint8)
    largest, before = decode_to_float64(top, dst)
    limit = largest + (largest - before) * (0.5 if letter == "A" else 1.0)
    beyond = np.abs(decode_to_float64(codes, src)) >= limit
    signed = np.uint8(code) | (converted & np.uint8(dst.sign_bit))
    return np.where(beyond, signed, converted)


def _governors(target: VectorFunctionTarget, pair: Conversion, places: ConvertMap) -> Index:
    """Return the mask bit of each element (docs/reference/micro.md section 3.2)."""
    narrow, wide = (format_named(name) for name in (pair.src, pair.dst))
    widening = _lane_bits(wide) > _lane_bits(narrow)
    if not widening or wide.bits == 64 or target.option("micro_widening_mask") == "result_lane":
        return places.governor
    return places.source * _lane_bits(narrow) // 8


def _lane_bits(fmt: Format) -> int:
    """Bits of an element: 4-bit formats share bytes, all others fill whole ones."""
    return fmt.bits if fmt.bits == 4 else fmt.storage_bits


def _elements(register: VectorRegister, fmt: Format) -> Codes:
    if fmt.bits == 4:
        nibbles: Codes = unpack_nibbles(register.data[None])[0]
        return nibbles
    return register.lanes(fmt.storage_bits)


def _defined_elements(register: VectorRegister, fmt: Format) -> Bits:
    if fmt.bits == 4:
        return np.repeat(register.defined, 2)
    return register.defined_lanes(fmt.storage_bits)
