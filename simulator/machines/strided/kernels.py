"""From one vector operation on tiles to the strided-repeat instructions that the chip's library issues for it.

Source: docs/reference/pto.md section 7 (operations, operands, scratch), docs/reference/a2a3.md section 6 (what
published cycles tell of the instructions). Which kernel an operation has is data of the target; where neither source
says, its row and the module that lays out the structure say what is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from castsim.execution.tiles import ResolvedTileOp
from castsim.execution.tree import Block
from castsim.isa.errors import IllegalError
from castsim.machines.strided.kernel_sequence import KernelSequence
from castsim.machines.strided.kernels_arguments import lower_column_argument, lower_row_argument
from castsim.machines.strided.kernels_columns import (
    lower_column_broadcast,
    lower_column_expansion,
    lower_column_reduction,
)
from castsim.machines.strided.kernels_elementwise import (
    lower_division,
    lower_elementwise,
    lower_part,
    lower_reciprocal_root,
)
from castsim.machines.strided.kernels_movement import lower_fill, lower_move
from castsim.machines.strided.kernels_quantising import lower_dequantisation, lower_quantisation
from castsim.machines.strided.kernels_rearranging import (
    lower_concatenation,
    lower_counted_concatenation,
    lower_gather,
    lower_ramp,
    lower_transposition,
)
from castsim.machines.strided.kernels_rows import lower_row_broadcast, lower_row_expansion, lower_row_reduction
from castsim.machines.strided.kernels_selection import lower_comparison, lower_scalar_selection, lower_selection
from castsim.machines.strided.kernels_sorting import (
    lower_comparing_gather,
    lower_merge,
    lower_pattern_gather,
    lower_sort,
)
from castsim.targets.strided_repeat import StridedOperation, StridedRepeatTarget

_Lowering = Callable[[KernelSequence, ResolvedTileOp, StridedOperation], None]

_LOWERINGS: Mapping[str, _Lowering] = {
    "elementwise": lower_elementwise,
    "division": lower_division,
    "reciprocal_root": lower_reciprocal_root,
    "compare": lower_comparison,
    "select": lower_selection,
    "select_scalar": lower_scalar_selection,
    "move": lower_move,
    "fill": lower_fill,
    "row_reduction": lower_row_reduction,
    "row_expansion": lower_row_expansion,
    "row_broadcast": lower_row_broadcast,
    "column_reduction": lower_column_reduction,
    "row_argument": lower_row_argument,
    "column_argument": lower_column_argument,
    "column_expansion": lower_column_expansion,
    "column_broadcast": lower_column_broadcast,
    "part": lower_part,
    "ramp": lower_ramp,
    "gather": lower_gather,
    "pattern_gather": lower_pattern_gather,
    "compare_gather": lower_comparing_gather,
    "sort": lower_sort,
    "merge": lower_merge,
    "transposition": lower_transposition,
    "concatenation": lower_concatenation,
    "counted_concatenation": lower_counted_concatenation,
    "quantisation": lower_quantisation,
    "dequantisation": lower_dequantisation,
}
"""What lays out a kernel of each structure."""


def lower_work(target: StridedRepeatTarget, work: ResolvedTileOp) -> Block:
    """Return the instructions of one vector operation with a valid region that is not empty.

    Raises:
        IllegalError: no such operation; masks are counts when the kernel starts.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"pto.{work.mnemonic} is not modelled on {target.name}",
            span=work.span,
            legal=[rule.mnemonic for rule in target.tile_operations],
        )
    if target.option("count_mask_at_start"):
        raise IllegalError(
            f"count mode is on (option count_mask_at_start): the lane masks of {work.mnemonic} would be read as counts",
            span=work.span,
            legal=("count_mask_at_start = 0",),
        )
    sequence = KernelSequence(target)
    _LOWERINGS[kernel.structure](sequence, work, kernel)
    return sequence.close()
