"""Moving elements between registers of different widths, in exactly as many VPU operations as the vendor's helpers.

A register is four dual groups (DG) of two groups (docs/reference/tpc.md section 2.5). PACK leaves in every DG the kept
elements of that DG, repeated; UNPACK spreads a part of every DG over it. What remains is to bring dual groups, their
groups, or quarters of them to their places with MOV_DG, of one dual group (`single`) or of all at once (`all`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.isa.errors import TargetDataError
from castsim.targets.tpc_builtins import Recipe
from castsim.tpc_compiler.code_generation import Sequence, Value

_EVERY_BYTE = 0xFFFFFFFF
_LOWER, _UPPER, _BOTH = 1, 2, 3
"""Write enables of the groups of a dual group."""
_LOWER_HALF, _UPPER_HALF = 0x0000FFFF, 0xFFFF0000
"""Masks of the bytes of a group."""
_DUAL_GROUPS, _GROUPS = range(4), 2
"""The switches of MOV_DG name four dual groups, those of PACK and UNPACK the two groups of each."""

Values = tuple[Value, ...]


def move_one(sequence: Sequence, result: Value, source: Value, place: tuple[int, int], enabled: int, mask: int) -> None:
    """MOV_DG of one dual group: `place` is source and destination, `enabled` which groups are written."""
    src, dst = place
    switches = f"src={src} dst={dst} wr_lg={enabled & 1:#x} wr_ug={enabled >> 1:#x}"
    sequence.vpu(f"mov_dg {switches}", result, source, mask)


def move_all(
    sequence: Sequence,
    result: Value,
    source: Value,
    moves: Mapping[int, tuple[int, int]],
    unused: Mapping[int, int] | None = None,
) -> None:
    """MOV_DG of all dual groups: `moves` maps destinations to source and enabled groups; others keep what they hold.

    `unused` are the sources that the text names for those others, 0 if it says nothing.
    """
    chosen = [moves.get(dual, ((unused or {}).get(dual, 0), 0)) for dual in _DUAL_GROUPS]
    switches = [f"sdg{dual}={source_dual}" for dual, (source_dual, _) in enumerate(chosen)]
    switches += [f"weg{dual}={enabled}" for dual, (_, enabled) in enumerate(chosen)]
    sequence.vpu(f"mov_dg.all {' '.join(switches)}", result, source, _EVERY_BYTE)


def _packed(sequence: Sequence, element: str, source: Value, stride: int) -> Value:
    """Keep every stride-th element: each DG has its kept elements in order, once per 64 / stride bytes."""
    found = sequence.vector()
    for group in (0, 1):
        sequence.vpu(f"pack.{element} source_group={group} element_stride={stride}", found, source)
    return found


def _unpacked(
    sequence: Sequence, element: str, source: Value, stride: int, part: int, zeroes: str | None = None
) -> Value:
    """Spread part `part` of each DG, 64 / stride bytes, over the DG; zeroes between the elements, of type `zeroes`."""
    found = sequence.broadcast(0, zeroes) if zeroes else sequence.zeroed()
    group, half = (part, 0) if stride == _GROUPS else divmod(part, stride // _GROUPS)
    switches = f"source_group={group} element_stride={stride} group_half={half}"
    sequence.vpu(f"unpack.{element} {switches}", found, source)
    return found


# ------------------------------------------------------------------------------------------------------------- pack


def pack_two_single(sequence: Sequence, element: str, sources: Values) -> Values:
    """Group g of the result is what is kept of DG g of all sources; group 0 already lies right in a copy."""
    packed = [_packed(sequence, element, source, 2) for source in sources]
    result = sequence.copy(packed[0])
    for group in range(1, 2 * len(_DUAL_GROUPS)):
        register, dual = divmod(group, len(_DUAL_GROUPS))
        place, enabled = (dual, group // 2), _UPPER if group % 2 else _LOWER
        move_one(sequence, result, packed[register], place, enabled, _EVERY_BYTE)
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
    """As `pack_two_all`, with the moves that the compiler prints: group 0 of the first register already lies right."""
    first, second = (_packed(sequence, element, source, 2) for source in sources)
    result = sequence.copy(first)
    move_all(sequence, result, first, {0: (1, _UPPER), 1: (2, _LOWER)}, {2: 3, 3: 0})
    move_one(sequence, result, first, (3, 1), _UPPER, _EVERY_BYTE)
    move_all(sequence, result, second, {2: (0, _LOWER), 3: (2, _LOWER)}, {0: 1, 1: 3})
    move_all(sequence, result, second, {2: (1, _UPPER), 3: (3, _UPPER)}, {0: 0, 1: 2})
    return (result,)


def pack_four(sequence: Sequence, element: str, sources: Values) -> Values:
    """DG k of the result is source k: its four packed DGs, a quarter of the DG each; the first lies right in a copy."""
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
    """As `unpack_two_single`; a result takes its even DGs from one spread register, its odd ones from the other."""
    spread = [_unpacked(sequence, element, sources[0], 2, group) for group in (0, 1)]
    results = (sequence.vector(), sequence.vector())
    for number, result in enumerate(results):
        for odd in (0, 1):
            move_all(sequence, result, spread[odd], {2 * k + odd: (2 * number + k, _BOTH) for k in (0, 1)})
    return results


def unpack_two_swapped(sequence: Sequence, element: str, sources: Values) -> Values:
    """Put the groups that make DG d of either result into DG d, the first result's below; then UNPACK is all.

    The groups that lie in the wrong half of their DG come from a copy with the halves swapped (MOV_G).
    """
    (source,) = sources
    swapped, arranged = sequence.vector(), sequence.vector()
    sequence.vpu("mov_g g_en=0b11 dg_en=0b1111", swapped, source, _EVERY_BYTE)
    move_all(sequence, arranged, source, {0: (0, _LOWER), 2: (1, _LOWER), 1: (2, _UPPER), 3: (3, _UPPER)})
    move_all(sequence, arranged, swapped, {1: (0, _LOWER), 3: (1, _LOWER), 0: (2, _UPPER), 2: (3, _UPPER)})
    return tuple(_unpacked(sequence, element, arranged, 2, group) for group in (0, 1))


def unpack_two_printed(sequence: Sequence, element: str, sources: Values) -> Values:
    """As `unpack_two_swapped`, with the moves that the compiler prints: the first brings whole dual groups."""
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
    """UNPACK of both groups to the lanes of one register, then MOV_DG unpack of its even and of its odd lanes."""
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
        TargetDataError: the recipe is not a mere reordering.
    """
    if recipe not in _RECIPES:
        raise TargetDataError(f"{recipe} is not a reordering", legal=_RECIPES)
    return _RECIPES[recipe](sequence, element, sources)
