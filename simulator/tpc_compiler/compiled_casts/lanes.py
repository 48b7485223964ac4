"""Elements between registers in linear order and the lanes that conversions of one lane work on.

`spread` puts the elements of a register, in order, into lane 0 of the wide slots of two or four registers; `gather` is
the way back. The lane moves are those of the builtin casts; which of them depends on MOV_DG of all dual groups.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

from castsim.isa.tpc.dialect import Feature
from castsim.targets.vliw import VliwTarget
from castsim.tpc_compiler.builtins.sequences import (
    pack_four,
    pack_two_all,
    pack_two_printed,
    pack_two_single,
    unpack_four_all,
    unpack_four_single,
    unpack_two_printed,
    unpack_two_single,
    unpack_two_swapped,
)
from castsim.tpc_compiler.code_generation import Sequence, Value

_PAIR = 2


def spread(
    sequence: Sequence, source: Value, bits: int, ratio: int, target: VliwTarget, *, printed: str | None = None
) -> tuple[Value, ...]:
    """Return `ratio` registers with the elements, of `bits` bits, in lane 0 of slots of zeroes `ratio` times wider.

    `printed`: by the moves that the compiler prints for casts of LLVM IR, with this integer type.
    """
    if ratio == 1:
        return (source,)
    at_once = target.features.has[Feature.MOV_DG_ALL]
    if ratio == _PAIR:
        moves = unpack_two_single if not at_once else unpack_two_printed if printed else unpack_two_swapped
    else:
        moves = unpack_four_all if at_once else unpack_four_single
    return moves(sequence, printed or f"i{bits}", (source,))


def gather(sequence: Sequence, sources: Items[Value], bits: int, target: VliwTarget, *, printed: bool = False) -> Value:
    """Return one register with the elements, of `bits` bits, in lane 0 of the slots of one, two or four registers."""
    if len(sources) == 1:
        return sources[0]
    moves = pack_four
    if len(sources) == _PAIR:
        at_once = target.features.has[Feature.MOV_DG_ALL]
        moves = pack_two_single if not at_once else pack_two_printed if printed else pack_two_all
    return moves(sequence, f"i{bits}", tuple(sources))[0]
