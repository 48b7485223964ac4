"""From one vector operation on tiles to the strided-repeat instructions that the chip's library issues for it.

Source: pto_assembly.md section 10 (operations, operands, scratch), a2a3.md section 6 (what published cycles tell of
the instructions); where neither says, the modules that lower a group of operations say what is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from isa.errors import IllegalError
from simulator.strided.work_columns import lower_column_expansion, lower_column_reduction
from simulator.strided.work_elementwise import lower_elementwise
from simulator.strided.work_movement import lower_movement
from simulator.strided.work_rows import lower_row_expansion, lower_row_reduction
from simulator.strided.work_selection import lower_selection
from simulator.strided.work_sequence import WorkSequence
from simulator.tiles import TileWork
from simulator.tree import Block
from targets.strided_repeat import StridedRepeatTarget

_Lowering = Callable[[WorkSequence, TileWork], None]

_ELEMENTWISE = (
    "tadd", "tsub", "tmul", "tdiv", "tmax", "tmin", "tadds", "tsubs", "tmuls", "tdivs", "tmaxs", "tmins", "texpands",
    "texp", "tlog", "tsqrt", "trsqrt", "trecip", "tabs", "tneg", "trelu",
)  # fmt: skip
_JOINED = ("add", "sub", "mul", "div", "max", "min", "expdif")

LOWERINGS: Mapping[str, _Lowering] = {
    **dict.fromkeys(_ELEMENTWISE, lower_elementwise),
    **dict.fromkeys(("tcmp", "tcmps", "tsel", "tsels"), lower_selection),
    **dict.fromkeys(("tmov", "tfillpad", "tfillpad_expand", "tfillpad_inplace"), lower_movement),
    **dict.fromkeys(("trowsum", "trowmax", "trowmin", "trowprod"), lower_row_reduction),
    **dict.fromkeys(("tcolsum", "tcolmax", "tcolmin", "tcolprod"), lower_column_reduction),
    **dict.fromkeys(("trowexpand", *(f"trowexpand{name}" for name in _JOINED)), lower_row_expansion),
    **dict.fromkeys(("tcolexpand", *(f"tcolexpand{name}" for name in _JOINED)), lower_column_expansion),
}
"""What lowers each operation."""


def lower_work(target: StridedRepeatTarget, work: TileWork) -> Block:
    """Return the instructions of one vector operation with a valid region that is not empty.

    Raises:
        IllegalError: no such operation; masks are counts when the kernel starts.
    """
    lowering = LOWERINGS.get(work.mnemonic)
    if lowering is None:
        raise IllegalError(f"pto.{work.mnemonic} is not modelled on {target.name}", span=work.span, legal=LOWERINGS)
    if target.option("count_mask_at_start"):
        raise IllegalError(
            f"count mode is on (option count_mask_at_start): the lane masks of {work.mnemonic} would be read as counts",
            span=work.span,
            legal=("count_mask_at_start = 0",),
        )
    sequence = WorkSequence(target)
    lowering(sequence, work)
    return sequence.close()
