"""From one tile load or store to DMA instructions: one per leading index of the view, one burst per row.

Source: docs/reference/pto.md section 3.5 (views and their five dimensions), section 10.2 (padding on load),
docs/reference/a2a3.md section 6.3 (one transfer instruction per leading index).
"""

from __future__ import annotations

from castsim.execution.dataflow.checks import check_transfer
from castsim.execution.dataflow.operations import Transfer
from castsim.execution.tiles import TileTransfer
from castsim.execution.tree import Block, Node, loop_of
from castsim.isa.errors import TileError
from castsim.isa.formats import FloatFormat, Format, IntFormat
from castsim.isa.warning_text import Warnings
from castsim.targets.dataflow import DataflowTarget

ZERO, MAXIMUM, MINIMUM = 1, 2, 3
"""Values of the tile field `pad`; 0 leaves the bytes behind a row as they are."""


def lower_transfer(target: DataflowTarget, transfer: TileTransfer) -> tuple[Block, Warnings]:
    """Split a load or store into DMA instructions; return them with warnings.

    Raises:
        TileError: what `check_transfer` refuses; elements of a row (column for `dn`) that are not adjacent.
    """
    warnings = check_transfer(target, transfer)
    part = transfer.part
    if not part.rows or not part.cols:
        return Block(()), warnings
    by_column = part.layout == "dn" and transfer.tile.type.block_layout == "col_major"
    inner = 3 if by_column else 4
    if part.sizes[inner] > 1 and part.strides[inner] != 1:
        raise TileError(
            f"{'tload' if transfer.load else 'tstore'}: layout {part.layout} needs adjacent elements, "
            f"the view's stride is {part.strides[inner]}",
            span=transfer.span,
        )
    first, second, third = part.sizes[:3]

    def instruction(index: tuple[int, int, int]) -> Transfer:
        return _instruction(target, transfer, index, by_column=by_column)

    def along_third(i: int, j: int) -> tuple[Node, ...]:
        return tuple(loop_of(third, lambda k: Block((instruction((i, j, k)),))))

    def along_second(i: int) -> tuple[Node, ...]:
        return tuple(loop_of(second, lambda j: Block(along_third(i, j))))

    return Block(tuple(loop_of(first, lambda i: Block(along_second(i))))), warnings


def pad_code(fmt: Format, pad: int) -> int:
    """Return the code that a load writes behind each row (docs/reference/pto.md section 7.2).

    Largest and smallest value of an integer, plus and minus infinity of a float; 0 for floats of eight bits or fewer.
    """
    if pad == ZERO:
        return 0
    if isinstance(fmt, IntFormat):
        return (fmt.maximum if pad == MAXIMUM else fmt.minimum) & ((1 << fmt.bits) - 1)
    if isinstance(fmt, FloatFormat) and fmt.bits > 8 and fmt.infinity_code is not None:
        return fmt.infinity_code | (fmt.sign_bit if pad == MINIMUM else 0)
    return 0


def _instruction(
    target: DataflowTarget, transfer: TileTransfer, index: tuple[int, int, int], *, by_column: bool
) -> Transfer:
    part, tile = transfer.part, transfer.tile
    bits = part.format.bits if part.format.bits == 4 else part.format.storage_bits
    offset = part.offset + sum(i * stride for i, stride in zip(index, part.strides[:3], strict=True))
    row = ((index[0] * part.sizes[1] + index[1]) * part.sizes[2] + index[2]) * part.sizes[3]
    bursts, length, pitch = part.sizes[3], part.sizes[4], part.strides[3]
    place, ub_pitch = row * tile.row_pitch, tile.row_pitch
    if tile.type.block_layout == "col_major":
        element, column = tile.element_bits // 8, tile.rows * tile.element_bits // 8
        place, ub_pitch = row * element, column
        if by_column:
            bursts, length, pitch = part.sizes[4], part.sizes[3], part.strides[4]
        elif tile.valid_cols == 1:  # one line against its layout: an element per burst
            ub_pitch = element
        else:
            bursts, length, pitch = part.sizes[4], 1, part.strides[4]
    pads = transfer.load and tile.type.pad in (ZERO, MAXIMUM, MINIMUM)
    code = pad_code(part.format, tile.type.pad)
    if part.format.bits == 4:
        code |= code << 4
    pattern = code.to_bytes(part.format.storage_bits // 8, "little") if pads else b""
    return Transfer(
        pipe=target.pipes.load if transfer.load else target.pipes.store,
        load=transfer.load,
        argument=part.argument,
        gm_address=offset * bits // 8,
        gm_pitch=pitch * bits // 8,
        ub_address=tile.address + place,
        ub_pitch=ub_pitch,
        bursts=bursts,
        burst_bytes=(length * bits + 7) // 8,
        pad_pattern=pattern,
    )
