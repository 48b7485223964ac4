"""One hop of a path as instructions: on a register whose elements stand in lane 0 of wide slots, or lane by lane."""

from __future__ import annotations

from castsim.isa.formats import FORMATS
from castsim.isa.tpc.dialect import Feature
from castsim.isa.tpc.forms import TARGET_SPELLINGS
from castsim.isa.tpc.program import File
from castsim.numerics import encode_value
from castsim.targets.vliw import ConvertRow, IntegerConvertRow, VliwTarget
from castsim.tpc_compiler.code_generation import Sequence, Value
from castsim.tpc_compiler.compiled_casts.paths import HopMethod, PathHop
from castsim.tpc_compiler.compiled_casts.vector_types import bits_of, is_float

_ALL = "all_lanes"
_FROM_REGISTER = "csr"
_TOP = 1 << 31
_GROUPS = {2: File.D, 4: File.A}


def largest(element: str) -> int:
    """Return the largest number of a signed integer type."""
    return (1 << (bits_of(element) - 1)) - 1


def rounded(mode: str) -> str:
    """Return the rounding word of CONVERT as it is printed: the mode of the register is none."""
    return "" if mode == _FROM_REGISTER else f" {mode}"


def in_lane(sequence: Sequence, hop: PathHop, source: Value, mode: str, *, zeroed: bool, into: Value | None) -> Value:
    """Append a hop that reads and writes lane 0 of its slots, or every lane where the widths agree.

    `zeroed` says that a slot holds zeroes besides the source element. The result goes `into` a register, if given.
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


def whole(sequence: Sequence, hop: PathHop, sources: tuple[Value, ...], mode: str) -> tuple[Value, ...]:
    """Append one all_lanes instruction and return the registers of its result.

    Towards narrower elements the sources are one group of registers (or its parts in order), towards wider ones one
    register; dst[r*i + k] = src_k[i] and dst_k[i] = src[r*i + k].
    """
    ratio = max(bits_of(hop.src), bits_of(hop.dst)) // min(bits_of(hop.src), bits_of(hop.dst))
    up = bits_of(hop.dst) > bits_of(hop.src)
    result = sequence.vector(ratio) if up else sequence.vector()
    source = sources[0] if up else grouped(sources)
    _convert(sequence, hop, result, source, mode, lane=None)
    return result.parts if up else (result,)


def grouped(parts: tuple[Value, ...]) -> Value:
    """Return the group of which these are all registers in order."""
    return Value(parts[0].number, _GROUPS[len(parts)], len(parts))


def is_whole_group(parts: tuple[Value, ...]) -> bool:
    """Whether registers are those of one group, all and in order."""
    size = len(parts)
    return all(part.number == parts[0].number and part.size == size and part.part == k for k, part in enumerate(parts))


def multiplied(sequence: Sequence, hop: PathHop, source: Value, mode: str) -> Value:
    """Append one instruction that converts a pair (x2) or quad (x4) of registers to elements of the same width."""
    result = sequence.vector(source.size)
    head = f"convert.{hop.src} x{source.size} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}"
    sequence.vpu(head, result, source)
    return result


def widthwise(sequence: Sequence, hop: PathHop, source: Value, mode: str) -> Value:
    """Append a hop between types of one width on all registers of a group, with the word all_lanes.

    The compiler prints so from Greco on; the word has no effect (docs/reference/tpc.md 2.7).
    """
    result = sequence.vector(source.size)
    head = f"convert.{hop.src} {_ALL} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}"
    sequence.vpu(head, result, source)
    return result


def lanes(sequence: Sequence, hop: PathHop, sources: tuple[Value, ...], mode: str) -> Value:
    """Append conversions of one lane each into one register: element r*i + k from element i of source k."""
    result = sequence.vector()
    for lane, source in enumerate(sources):
        _convert(sequence, hop, result, source, mode, lane=lane)
    return result


def shifted(sequence: Sequence, source: Value, bits: int, wide: int) -> Value:
    """Append a shift that brings higher lanes of wide slots down by `bits`, filling with zeroes."""
    if bits == 0:
        return source
    result = sequence.vector()
    sequence.vpu(f"shr.u{wide}", result, source, bits)
    return result


def has_all_lanes(hop: PathHop) -> bool:
    """Whether the instruction of a hop has a form that converts all lanes."""
    return hop.row is not None and _ALL in hop.row.lanes


def has_lane(hop: PathHop, lane: int) -> bool:
    """Whether the instruction of a hop can write a lane of a wide slot."""
    return _single(hop) and hop.row is not None and lane <= (hop.row.lane_sel_max or 0)


def prefers_all_lanes(hop: PathHop, target: VliwTarget) -> bool:
    """Whether all_lanes is the form to take.

    Generations without the choice of lanes on every conversion have it as an exception, on one of them with a fault
    in the hardware (note on f32 -> bf16 in the table); there it is taken only where nothing else does.
    """
    if not has_all_lanes(hop):
        return False
    ratio = bits_of(hop.src) // bits_of(hop.dst)
    return target.features.has[Feature.LANE_CHOICE] or not has_lane(hop, ratio - 1)


def _single(hop: PathHop) -> bool:
    row = hop.row
    return isinstance(row, ConvertRow | IntegerConvertRow) and (not row.lanes or "single_lane" in row.lanes)


def _convert(sequence: Sequence, hop: PathHop, result: Value, source: Value, mode: str, lane: int | None) -> None:
    """Append CONVERT or CONVERT_INT; `lane` None is all_lanes."""
    same = bits_of(hop.src) == bits_of(hop.dst)
    chosen = "" if same else f" {_ALL}" if lane is None else f" lane_sel={lane}" if lane else ""
    if hop.means is HopMethod.CONVERT:
        sequence.vpu(
            f"convert.{hop.src}{chosen} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}", result, source
        )
        return
    assert isinstance(hop.row, IntegerConvertRow)
    width = f" to_{bits_of(hop.dst)}" if bits_of(hop.src) == max(map(bits_of, ("i32", "u32"))) else ""
    sequence.vpu(f"{hop.row.mnemonic}{chosen} {hop.integer_rounding}{width}", result, source, hop.shift)


def _clamp(sequence: Sequence, hop: PathHop, result: Value, source: Value) -> None:
    """Compare with the largest signed number and move it where the source is larger."""
    mask = sequence.mask()
    sequence.vpu(f"cmp_grt.{hop.src}", mask, source, largest(hop.dst))
    sequence.vpu("mov", result, source)
    sequence.vpu(f"mov.{hop.dst}", result, largest(hop.dst), where=mask)


def _offset(sequence: Sequence, hop: PathHop, result: Value, source: Value, mode: str) -> None:
    """Float to u32 through i32: from 2^31 on with 2^31 subtracted before and added, saturating, after."""
    assert hop.through is not None
    power = _float_code(_TOP, hop.src)
    mask, lowered, signed = sequence.mask(), sequence.copy(source), sequence.vector()
    sequence.vpu(f"cmp_geq.{hop.src}", mask, source, power)
    sequence.vpu(f"sub.{hop.src}", lowered, source, power, where=mask)
    sequence.vpu(f"convert.{hop.src} target_type={TARGET_SPELLINGS[hop.through]}{rounded(mode)}", signed, lowered)
    sequence.vpu(f"convert.{hop.through} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}", result, signed)
    sequence.vpu(f"add.{hop.dst} st", result, result, _TOP, where=mask)


def _halve(sequence: Sequence, hop: PathHop, result: Value, source: Value, mode: str) -> None:
    """u32 to float through i32: beyond the signed range shifted right by 1 before and doubled after."""
    assert hop.through is not None and is_float(hop.dst)
    mask, halved = sequence.mask(), sequence.copy(source)
    sequence.vpu(f"cmp_grt.{hop.src}", mask, source, largest(hop.through))
    sequence.vpu(f"shr.{hop.src}", halved, source, 1, where=mask)
    sequence.vpu(f"convert.{hop.through} target_type={TARGET_SPELLINGS[hop.dst]}{rounded(mode)}", result, halved)
    sequence.vpu(f"mul.{hop.dst}", result, result, _float_code(2, hop.dst), where=mask)


def _float_code(number: int, element: str) -> int:
    return encode_value(number, FORMATS[element]).code
