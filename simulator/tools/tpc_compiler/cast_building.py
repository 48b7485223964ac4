"""A path as a complete sequence of instructions, from the registers of the source vector to those of the result."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from castsim.isa.errors import IllegalError
from castsim.isa.formats import FORMATS
from castsim.isa.tpc.forms import TARGET_SPELLINGS, Feature
from castsim.isa.tpc.program import File
from castsim.numerics.codec import encode_value
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget
from castsim.tools.tpc_compiler.builtin_sequences import gather, spread
from castsim.tools.tpc_compiler.c_table import (
    ElementVector,
    HopMethod,
    Path,
    PathHop,
    bits_of,
    is_float,
    registers_of,
)
from castsim.tools.tpc_compiler.code_generation import Sequence, SequenceRegister

# One hop of a path as instructions: on a register whose elements stand in lane 0 of wide slots, or lane by lane.

_ALL = "all_lanes"
_FROM_REGISTER = "csr"
_TOP = 1 << 31
_HOPS_GROUPS = {2: File.D, 4: File.A}


def largest(element: str) -> int:
    """Return the largest number of a signed integer type."""
    return (1 << (bits_of(element) - 1)) - 1


def convert(src: str, dst: str, mode: str, words: str = "") -> str:
    """Return CONVERT between two types, with words after its type; the mode of the register is not printed."""
    return f"convert.{src}{words} target_type={TARGET_SPELLINGS[dst]}{'' if mode == _FROM_REGISTER else f' {mode}'}"


def convert_integer(hop: PathHop, words: str = "") -> str:
    """Return the CONVERT_INT of a hop, with words after its mnemonic."""
    assert isinstance(hop.row, IntegerConvertRow)
    width = f" to_{bits_of(hop.dst)}" if bits_of(hop.src) == max(map(bits_of, ("i32", "u32"))) else ""
    return f"{hop.row.mnemonic}{words} {hop.integer_rounding}{width}"


def in_lane(
    sequence: Sequence,
    hop: PathHop,
    source: SequenceRegister,
    mode: str,
    *,
    zeroed: bool,
    into: SequenceRegister | None,
) -> SequenceRegister:
    """Append a hop that reads and writes lane 0 of its slots, or every lane where the widths are equal.

    `zeroed` is whether a slot holds zeros besides the source element. `into` is the register of the result, if given.
    """
    if hop.means is HopMethod.KEEP or (hop.means is HopMethod.EXTEND and zeroed and into is None):
        return source
    if hop.means is HopMethod.CONVERT and bits_of(hop.dst) > bits_of(hop.src) and not _single(hop):
        return whole(sequence, hop, (source,), mode)[0]
    result = sequence.vector() if into is None else into
    if hop.means in (HopMethod.CONVERT, HopMethod.NARROW):
        _convert(sequence, hop, result, source, mode, lane=0)
    elif hop.means is HopMethod.AND:
        sequence.vpu(f"and.u{bits_of(hop.dst)}", result, source, hop.mask)
    elif hop.means is HopMethod.EXTEND:
        sequence.vpu(f"and.u{bits_of(hop.dst)}", result, source, (1 << bits_of(hop.src)) - 1)
    elif hop.means is HopMethod.CLAMP:
        _clamp(sequence, hop, result, source)
    elif hop.means is HopMethod.OFFSET:
        _offset(sequence, hop, result, source, mode)
    else:
        _halve(sequence, hop, result, source, mode)
    return result


def whole(
    sequence: Sequence, hop: PathHop, sources: tuple[SequenceRegister, ...], mode: str
) -> tuple[SequenceRegister, ...]:
    """Append one all_lanes instruction and return the registers of its result.

    For narrower results the sources are one group of registers (or its parts in order), for wider ones one
    register; dst[r*i + k] = src_k[i] and dst_k[i] = src[r*i + k].
    """
    ratio = max(bits_of(hop.src), bits_of(hop.dst)) // min(bits_of(hop.src), bits_of(hop.dst))
    up = bits_of(hop.dst) > bits_of(hop.src)
    result = sequence.vector(ratio) if up else sequence.vector()
    source = sources[0] if up else grouped(sources)
    _convert(sequence, hop, result, source, mode, lane=None)
    return result.parts if up else (result,)


def grouped(parts: tuple[SequenceRegister, ...]) -> SequenceRegister:
    """Return the group that consists of all these registers in order."""
    return SequenceRegister(parts[0].number, _HOPS_GROUPS[len(parts)], len(parts))


def is_whole_group(parts: tuple[SequenceRegister, ...]) -> bool:
    """Return whether the registers are all those of one group, in order."""
    size = len(parts)
    return all(part.number == parts[0].number and part.size == size and part.part == k for k, part in enumerate(parts))


def on_group(
    sequence: Sequence, hop: PathHop, source: SequenceRegister, mode: str, word: str = _ALL
) -> SequenceRegister:
    """Append one instruction that converts all registers of a group to elements of the same width.

    The word is x2 or x4; from Greco on the compiler prints all_lanes, without effect (docs/reference/tpc.md 2.7).
    """
    result = sequence.vector(source.size)
    sequence.vpu(convert(hop.src, hop.dst, mode, f" {word}"), result, source)
    return result


def lanes(sequence: Sequence, hop: PathHop, sources: tuple[SequenceRegister, ...], mode: str) -> SequenceRegister:
    """Append conversions of one lane each into one register: element r*i + k from element i of source k."""
    result = sequence.vector()
    for lane, source in enumerate(sources):
        _convert(sequence, hop, result, source, mode, lane=lane)
    return result


def shifted(sequence: Sequence, source: SequenceRegister, bits: int, wide: int) -> SequenceRegister:
    """Append a shift that moves higher lanes of wide slots down by `bits`, filling with zeros."""
    if bits == 0:
        return source
    result = sequence.vector()
    sequence.vpu(f"shr.u{wide}", result, source, bits)
    return result


def has_all_lanes(hop: PathHop) -> bool:
    """Return whether the instruction of a hop has a form that converts all lanes."""
    return hop.row is not None and _ALL in hop.row.lanes


def has_lane(hop: PathHop, lane: int) -> bool:
    """Return whether the instruction of a hop can write a lane of a wide slot."""
    return _single(hop) and hop.row is not None and lane <= (hop.row.lane_sel_max or 0)


def prefers_all_lanes(hop: PathHop, target: VliwTarget) -> bool:
    """Return whether all_lanes is the preferred form.

    Generations without the choice of lanes on every conversion have it as an exception, on one of them with a hardware
    fault (note on f32 -> bf16 in the table); there it is used only where no other form exists.
    """
    if not has_all_lanes(hop):
        return False
    ratio = bits_of(hop.src) // bits_of(hop.dst)
    return target.features.has[Feature.LANE_CHOICE] or not has_lane(hop, ratio - 1)


def _single(hop: PathHop) -> bool:
    row = hop.row
    return isinstance(row, ConvertRow | IntegerConvertRow) and (not row.lanes or "single_lane" in row.lanes)


def _convert(
    sequence: Sequence, hop: PathHop, result: SequenceRegister, source: SequenceRegister, mode: str, lane: int | None
) -> None:
    """Append CONVERT or CONVERT_INT; `lane` None is all_lanes."""
    same = bits_of(hop.src) == bits_of(hop.dst)
    chosen = "" if same else f" {_ALL}" if lane is None else f" lane_sel={lane}" if lane else ""
    if hop.means is HopMethod.CONVERT:
        sequence.vpu(convert(hop.src, hop.dst, mode, chosen), result, source)
    else:
        sequence.vpu(convert_integer(hop, chosen), result, source, hop.shift)


def _clamp(sequence: Sequence, hop: PathHop, result: SequenceRegister, source: SequenceRegister) -> None:
    """Compare with the largest signed number and move it where the source is larger."""
    mask = sequence.mask()
    sequence.vpu(f"cmp_grt.{hop.src}", mask, source, largest(hop.dst))
    sequence.vpu("mov", result, source)
    sequence.vpu(f"mov.{hop.dst}", result, largest(hop.dst), where=mask)


def _offset(sequence: Sequence, hop: PathHop, result: SequenceRegister, source: SequenceRegister, mode: str) -> None:
    """Float to u32 through i32: from 2^31 on with 2^31 subtracted before and added, saturating, after."""
    assert hop.through is not None
    power = _float_code(_TOP, hop.src)
    mask, lowered, signed = sequence.mask(), sequence.copy(source), sequence.vector()
    sequence.vpu(f"cmp_geq.{hop.src}", mask, source, power)
    sequence.vpu(f"sub.{hop.src}", lowered, source, power, where=mask)
    sequence.vpu(convert(hop.src, hop.through, mode), signed, lowered)
    sequence.vpu(convert(hop.through, hop.dst, mode), result, signed)
    sequence.vpu(f"add.{hop.dst} st", result, result, _TOP, where=mask)


def _halve(sequence: Sequence, hop: PathHop, result: SequenceRegister, source: SequenceRegister, mode: str) -> None:
    """u32 to float through i32: beyond the signed range shifted right by 1 before and doubled after."""
    assert hop.through is not None and is_float(hop.dst)
    mask, halved = sequence.mask(), sequence.copy(source)
    sequence.vpu(f"cmp_grt.{hop.src}", mask, source, largest(hop.through))
    sequence.vpu(f"shr.{hop.src}", halved, source, 1, where=mask)
    sequence.vpu(convert(hop.through, hop.dst, mode), result, halved)
    sequence.vpu(f"mul.{hop.dst}", result, result, _float_code(2, hop.dst), where=mask)


def _float_code(number: int, element: str) -> int:
    return encode_value(number, FORMATS[element]).code


SOURCE, RESULT = "x", "y"
"""Names of the input and the output."""

_MULTIPLES = (4, 2)
_GROUPS = (2, 4)

ModeOf = Callable[[PathHop], str]
"""Gives the rounding word of a hop."""


class Order(StrEnum):
    """The order of the elements of the result."""

    LINEAR = "linear"
    """Element i of the result is that of the source."""
    SWIZZLE = "swizzle"
    """The order of all_lanes: with r the ratio of the widths, dst[r*i + k] = src_k[i], and dst_k[i] = src[r*i + k]."""
    LANE = "lane"
    """One register to one register: lane 0 of every wide slot, dst[r*i] = src[i] or dst[i] = src[r*i]."""
    SCALAR = "scalar"
    """One element, in scalar registers; the program leaves it in every element of a vector."""


def build(
    path: Path,
    src: ElementVector,
    dst: ElementVector,
    order: Order,
    mode: ModeOf,
    target: VliwTarget,
    *,
    printed: bool = False,
) -> Sequence:
    """Return the instructions of a cast; `printed`: in the forms that the compiler prints for casts of LLVM IR.

    Raises:
        IllegalError: a vector does not fill whole registers, or the path cannot give this order.
    """
    counts = registers_of(src, target), registers_of(dst, target)
    sequence = Sequence()
    if order is Order.LANE:
        outputs = _lane(sequence, path, counts, mode, target)
    elif printed and _is_widthwise(path, counts[0], target):
        outputs = _in_group(sequence, path, counts[0], mode)
    elif order is Order.SWIZZLE:
        outputs = _swizzled(sequence, path, counts, mode, target)
    else:
        outputs = _linear(sequence, path, counts, mode, target, printed=printed)
    sequence.output(RESULT, path.dst, *outputs)
    return sequence


def build_bool(dst: str, count: int) -> Sequence:
    """Return the cast of a predicate: 1 or 0 under a mask, the result of comparing the input with zero.

    `count` is the number of registers of the result.
    """
    sequence = Sequence()
    outputs: list[SequenceRegister] = []
    for given in sequence.input(SOURCE, f"u{bits_of(dst)}", count):
        mask, result = sequence.mask(), sequence.zeroed()
        sequence.vpu(f"cmp_neq.u{bits_of(dst)}", mask, given, 0)
        sequence.vpu(f"mov.{dst}", result, one_of(dst), where=mask)
        outputs.append(result)
    sequence.output(RESULT, dst, *outputs)
    return sequence


def one_of(element: str) -> int:
    """Return the code of 1."""
    return encode_value(1, FORMATS[element]).code if is_float(element) else 1


def build_kept(src: ElementVector, dst: ElementVector, target: VliwTarget) -> Sequence:
    """Return a cast without instructions: the source registers, as many as the result has, with its type.

    Raises:
        IllegalError: a vector does not fill whole registers.
    """
    sequence = Sequence()
    registers = sequence.input(SOURCE, src.element, registers_of(src, target))
    sequence.output(RESULT, dst.element, *registers[: registers_of(dst, target)])
    return sequence


def _is_widthwise(path: Path, count: int, target: VliwTarget) -> bool:
    """Return whether every hop is a CONVERT between types of one width, and the vector's registers form one group."""
    if _multiple(path, count):
        return False
    one_width = all(hop.means is HopMethod.CONVERT and bits_of(hop.src) == bits_of(hop.dst) for hop in path.hops)
    return one_width and count in (1, *_GROUPS) and target.features.has[Feature.LANE_CHOICE]


def _in_group(sequence: Sequence, path: Path, count: int, mode: ModeOf) -> tuple[SequenceRegister, ...]:
    """Convert all registers of a vector at once."""
    (value,) = sequence.input(SOURCE, path.src, count, count)
    for hop in path.hops:
        value = on_group(sequence, hop, value, mode(hop))
    return value.parts


def _linear(
    sequence: Sequence,
    path: Path,
    counts: tuple[int, int],
    mode: ModeOf,
    target: VliwTarget,
    *,
    printed: bool,
) -> tuple[SequenceRegister, ...]:
    """Spread into wide slots, convert in them, gather."""
    multiple = _multiple(path, counts[0])
    if multiple:
        groups = sequence.input(SOURCE, path.src, counts[0], multiple)
        hop = path.hops[0]
        return tuple(on_group(sequence, hop, group, mode(hop), f"x{group.size}") for group in groups)
    up, down = (path.widest // bits_of(element) for element in (path.src, path.dst))
    element = None if not printed else f"i{bits_of(path.src)}" if is_float(path.src) else path.src
    slots: list[SequenceRegister] = []
    outputs: list[SequenceRegister] = []
    for register in sequence.input(SOURCE, path.src, counts[0]):
        for slot in spread(sequence, register, bits_of(path.src), up, target, printed=element):
            value, zeroed = slot, up > 1
            for hop in path.hops:
                if printed and bits_of(hop.src) < bits_of(hop.dst) and prefers_all_lanes(hop, target):
                    value = whole(sequence, hop, (value,), mode(hop))[0]
                else:
                    value = in_lane(sequence, hop, value, mode(hop), zeroed=zeroed, into=None)
                zeroed = zeroed and hop.means in (HopMethod.KEEP, HopMethod.EXTEND)
            slots.append(value)
            if len(slots) == down:
                outputs.append(gather(sequence, slots, bits_of(path.dst), target, printed=printed))
                slots = []
    return tuple(outputs)


def _multiple(path: Path, count: int) -> int | None:
    """Return the number of registers that one instruction with x2 or x4 converts here, None if there is none."""
    if len(path.hops) != 1 or path.hops[0].means is not HopMethod.CONVERT:
        return None
    switches = getattr(path.hops[0].row, "switches", ())
    return next((number for number in _MULTIPLES if f"x{number}" in switches and count % number == 0), None)


def _lane(
    sequence: Sequence, path: Path, counts: tuple[int, int], mode: ModeOf, target: VliwTarget
) -> tuple[SequenceRegister, ...]:
    """Convert lane 0 of every slot of one register; the slots are spread if an intermediate type is wider."""
    if counts != (1, 1):
        raise IllegalError(
            f"lane order converts one register to one, not {counts[0]} to {counts[1]}", legal=("linear", "swizzle")
        )
    (source,) = sequence.input(SOURCE, path.src)
    slot = max(bits_of(path.src), bits_of(path.dst))
    values = list(spread(sequence, source, slot, path.widest // slot, target))
    for hop in path.hops:
        values = [in_lane(sequence, hop, value, mode(hop), zeroed=False, into=None) for value in values]
    return (gather(sequence, values, slot, target),)


def _swizzled(
    sequence: Sequence, path: Path, counts: tuple[int, int], mode: ModeOf, target: VliwTarget
) -> tuple[SequenceRegister, ...]:
    """Convert all lanes without putting them in order; registers in between are numbered by the lane they hold."""
    shared = min(counts)
    group = counts[0] // shared
    first = path.hops[0] if path.hops else None
    joined = first is not None and group in _GROUPS and takes_group(first, group, target)
    inputs = sequence.input(SOURCE, path.src, counts[0], group if joined else 1)
    singles = [part for value in inputs for part in value.parts]
    outputs: list[SequenceRegister] = []
    for start in range(0, counts[0], group):
        values = singles[start : start + group]
        for index, hop in enumerate(path.hops):
            following = path.hops[index + 1] if index + 1 < len(path.hops) else None
            values = hop_in_swizzle(sequence, hop, values, mode(hop), following, target)
        outputs += values
    return tuple(outputs)


def takes_group(hop: PathHop, count: int, target: VliwTarget) -> bool:
    """Return whether a hop reads that many registers as one group."""
    return bits_of(hop.src) == count * bits_of(hop.dst) and prefers_all_lanes(hop, target)


def hop_in_swizzle(
    sequence: Sequence,
    hop: PathHop,
    values: list[SequenceRegister],
    mode: str,
    following: PathHop | None,
    target: VliwTarget,
) -> list[SequenceRegister]:
    """Append a hop on registers numbered by lane; its results are numbered the same way.

    With r registers, element e of a vector is element e // r of register e % r. A result that `following` reads as a
    group of registers is a group.
    """
    wide, narrow = bits_of(hop.dst), bits_of(hop.src)
    if wide == narrow:
        into: tuple[SequenceRegister | None, ...] = (None,) * len(values)
        if following is not None and len(values) in _GROUPS and takes_group(following, len(values), target):
            into = sequence.vector(len(values)).parts
        pairs = zip(values, into, strict=True)
        return [in_lane(sequence, hop, value, mode, zeroed=False, into=part) for value, part in pairs]
    if wide < narrow:
        return _down_in_swizzle(sequence, hop, values, mode, target)
    groups = [_up_in_swizzle(sequence, hop, value, mode) for value in values]
    return [widened[lane] for lane in range(wide // narrow) for widened in groups]


def _up_in_swizzle(sequence: Sequence, hop: PathHop, value: SequenceRegister, mode: str) -> list[SequenceRegister]:
    """Append the conversion of all lanes; shifts bring them to lane 0 where the instruction reads no other."""
    if has_all_lanes(hop):
        return list(whole(sequence, hop, (value,), mode))
    wide, narrow = bits_of(hop.dst), bits_of(hop.src)
    last = wide // narrow - 1
    results = []
    for lane in range(last + 1):
        moved = shifted(sequence, value, lane * narrow, wide)
        # The shift leaves the last lane among zeroes.
        results.append(in_lane(sequence, hop, moved, mode, zeroed=lane == last, into=None))
    return results


def _down_in_swizzle(
    sequence: Sequence, hop: PathHop, values: list[SequenceRegister], mode: str, target: VliwTarget
) -> list[SequenceRegister]:
    ratio = bits_of(hop.src) // bits_of(hop.dst)
    count = len(values) // ratio
    results: list[SequenceRegister] = []
    for number in range(count):
        sources = tuple(values[number::count])
        if prefers_all_lanes(hop, target) and is_whole_group(sources):
            results += whole(sequence, hop, sources, mode)
        elif has_lane(hop, ratio - 1):
            results.append(lanes(sequence, hop, sources, mode))
        else:
            raise IllegalError(f"{hop} cannot fill all lanes, so its result cannot be swizzled", legal=("linear",))
    return results
