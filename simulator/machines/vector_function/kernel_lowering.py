"""From one vector operation other than a cast to control writes and one vector function.

The kernel of each operation is data of the target (table of kernels, choice of variants); its loops are laid out by
`kernel_nests` and `kernel_axes`. Values are no matter here: see `castsim.execution.vector_operations`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from castsim.execution.dataflow.operations import ControlWrite
from castsim.execution.tiles import ResolvedTileOp, Tile
from castsim.execution.tree import Block, Node
from castsim.isa.errors import IllegalError
from castsim.isa.formats import Format, IntFormat, format_named
from castsim.isa.modes import Saturation
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS
from castsim.machines.vector_function.kernel_axes import (
    column_argument,
    column_broadcast,
    column_expansion,
    column_halving,
    column_reduction,
    fill,
    row_argument,
    row_broadcast,
    row_product,
    row_reduction,
)
from castsim.machines.vector_function.kernel_nests import (
    Operands,
    Region,
    compare,
    compare_in_pairs,
    elementwise,
    move,
    region_of,
    scalar_elements,
    select,
)
from castsim.machines.vector_function.kernel_quantising import QUANTISING, quantising_nests
from castsim.machines.vector_function.kernel_rearranging import ramps_by_vectors, rearranging_nests, scalar_ramp
from castsim.machines.vector_function.operations import INTEGER_DIVISION, LONG_DIVISION, Nest, VectorFunction
from castsim.machines.vector_function.plan import control_writes, start_ctrl
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import FLAT, KernelVariant, VectorFunctionOperation

EXTREMES = ("vmax", "vmin")

DIVISION = ("vdiv",)
"""The instructions of kernels that exist in two precisions."""

_ONE_LOOP = ("compare", "part", "fill")
"""Structures whose rows of one vector follow each other without a turn of the loop also where the valid region is known
at run time only: 64 x 64 of f32 take 160 cycles in the vendor's simulator (tpartadd), 32 x 32 of f16 62 (tcmp);
docs/reference/a5.md section 9."""


def lower_work(target: VectorFunctionTarget, work: ResolvedTileOp) -> Block:
    """Choose the kernel of one vector operation and lay out its loops.

    Raises:
        IllegalError: the target has no kernel of this operation.
    """
    kernel = kernel_of(target, work)
    if kernel.structure == "ramp" and not ramps_by_vectors(target, work):
        return scalar_ramp(target.pipes.scalar, work)
    variant = kernel_variant(target, work)
    operands = Operands()
    context = _Context(target, work, kernel, variant, operands)
    nests = _nests(context)
    timed = _timed(context) or nests
    first, *others = operands.addresses or [work.dst.address]
    if kernel.structure not in _ONE_LOOP and any(tile.type.valid_cols is None for tile in (work.dst, *work.sources)):
        timed = tuple(replace(nest, runtime_trips=True) for nest in timed)
    function = VectorFunction(
        name=f"{work.mnemonic} {work.dst.format.name} {variant}",
        source=first,
        destination=work.dst.address,
        source_format=_whole_bytes(work.sources[0].format if work.sources else work.dst.format),
        destination_format=_whole_bytes(work.dst.format),
        register_bytes=target.registers.register_bytes,
        setup=(),
        nests=nests,
        timed=timed,
        pipe=target.pipes.vector,
        operands=tuple(others),
    )
    writes, restores = _control(target, work, kernel)
    body: list[Node] = [ControlWrite("ctrl", value, pipe=target.pipes.scalar) for value in writes]
    body.append(function)
    body += [ControlWrite("ctrl", value, pipe=target.pipes.scalar) for value in restores]
    return Block(tuple(body))


def kernel_of(target: VectorFunctionTarget, work: ResolvedTileOp) -> VectorFunctionOperation:
    """Return the kernel of an operation.

    Raises:
        IllegalError: there is none; names the operations there are.
    """
    kernel = target.tile_operation(work.mnemonic)
    if kernel is None:
        raise IllegalError(
            f"target '{target.name}' has no kernel of pto.{work.mnemonic}",
            span=work.span,
            legal=[rule.mnemonic for rule in target.tile_operations],
        )
    return kernel


def kernel_variant(target: VectorFunctionTarget, work: ResolvedTileOp) -> KernelVariant:
    """Return the code variant that runs: by the tiles and the implementation kind in force."""
    choice = target.kernel_variants[kernel_of(target, work).choice]
    variants = choice.contiguous if _are_contiguous(work.dst, *work.sources) else choice.padded
    return variants[int(target.option("implementation_kind"))]


@dataclass(frozen=True, slots=True)
class _Context:
    """What a layout is made from."""

    target: VectorFunctionTarget
    work: ResolvedTileOp
    kernel: VectorFunctionOperation
    variant: KernelVariant
    operands: Operands

    @property
    def compute(self) -> tuple[str, ...]:
        """The instructions between load and store."""
        divides = self.kernel.instructions == DIVISION and not isinstance(self.work.dst.format, IntFormat)
        if divides and self.target.option("division_algorithm") == "high_precision":
            return (LONG_DIVISION,)
        return self.kernel.instructions

    @property
    def divides_integers(self) -> bool:
        """Whether it divides integers, for which there is no vector instruction."""
        return self.kernel.instructions == DIVISION and isinstance(self.work.dst.format, IntFormat)

    @property
    def branches(self) -> bool:
        """Whether scalar selects of expansions and padding serialise."""
        return self.target.option("expansion_select") == "serialising"

    def region(self, tile: Tile, rows: int, cols: int) -> Region:
        """Return elements of a tile, a register per trip."""
        flat = self.variant in FLAT
        return region_of(tile, rows, cols, self.target.registers.register_bytes, flat=flat)


def _nests(context: _Context) -> tuple[Nest, ...]:
    work = context.work
    match context.kernel.structure:
        case "elementwise" | "compare" | "select":
            return _lane_by_lane(context)
        case "row_argument" | "column_argument":
            (source,) = work.sources
            region = context.region(source, source.valid_rows, source.valid_cols)
            laid_out = row_argument if context.kernel.structure == "row_argument" else column_argument
            return (laid_out(context.operands, region, source, work.dst, context.kernel.instructions),)
        case "row_reduction" | "row_product" | "column_reduction":
            return _reductions(context)
        case "row_expansion" | "row_broadcast":
            return (_expansion(context, down_columns=False),)
        case "column_expansion" | "column_broadcast":
            return (_expansion(context, down_columns=True),)
        case "move":
            (source,) = work.sources
            rows = min(source.valid_rows, work.dst.valid_rows)
            cols = min(source.valid_cols, work.dst.valid_cols)
            return (move(context.operands, context.region(work.dst, rows, cols), source, work.dst),)
        case "fill":
            (source,) = work.sources
            region = context.region(work.dst, source.valid_rows, source.valid_cols)
            copies = not VECTOR_OPERATIONS[work.mnemonic].in_place
            return fill(context.operands, region, source, work.dst, copies=copies, branches=context.branches)
        case "part":
            return _in_part(context)
        case structure if structure in QUANTISING:
            return quantising_nests(context.operands, work, context.kernel, context.target)
        case _:
            return rearranging_nests(context.operands, work, context.kernel, context.target)


def _lane_by_lane(context: _Context) -> tuple[Nest, ...]:
    work, kernel, operands = context.work, context.kernel, context.operands
    dst, sources = work.dst, work.sources or (work.dst,)  # texpands loads what it overwrites
    shape = sources[0] if kernel.structure == "compare" else dst
    region = context.region(shape, shape.valid_rows, shape.valid_cols)
    if kernel.structure == "compare":
        if dst.row_pitch * 8 != region.cols:  # each row stands at its row of the result
            region = replace(region, flat=False)
        return (compare(operands, region, sources, dst, kernel.instructions[0]),)
    if kernel.structure == "select":
        if work.mask is None:
            raise IllegalError(f"pto.{work.mnemonic} without a mask", span=work.span)
        return select(operands, region, work.mask, sources, dst, kernel.instructions[0])
    if kernel.scalar_integers is not None and isinstance(dst.format, IntFormat):
        rows = region_of(dst, dst.valid_rows, dst.valid_cols, region.trip_bytes)
        return (scalar_elements(operands, rows, sources[0], dst, kernel.scalar_integers),)
    peeled = context.variant == "2D_POST_UPDATE"
    nest = elementwise(operands, region, sources, dst, context.compute, context.variant, peeled=peeled)
    whole = all(tile.type.valid_cols == tile.cols for tile in (dst, *sources))  # single rows came with the newer text
    scalar = len(sources) == 1 and kernel.choice == "tile"
    if scalar and not whole and context.target.option("scalar_tail") == "selected":
        nest = replace(nest, paced="scalar_select")
    return (nest,)


def _timed(context: _Context) -> tuple[Nest, ...]:
    """Return the nests that take the time where published cycles are those of others than the values go by; or none.

    Source: vendor's simulator, a5_benchmark.csv of the pto-isa mirror (docs/reference/a5.md section 9).
    """
    work, kernel, operands = context.work, context.kernel, context.operands
    dst = work.dst
    region = context.region(dst, dst.valid_rows, dst.valid_cols)
    match kernel.structure:
        case "elementwise" if context.divides_integers and kernel.scalar_integers is None:
            divided = elementwise(
                operands, region, work.sources, dst, (INTEGER_DIVISION,), context.variant, peeled=False
            )
            return (divided,)
        case "elementwise" if kernel.broadcasts:
            reloads = VECTOR_OPERATIONS[work.mnemonic].accumulates
            sources = (*work.sources, dst) if reloads else work.sources
            if context.divides_integers:
                return ()
            spread = elementwise(operands, region, sources, dst, context.compute, context.variant, peeled=False)
            return (replace(spread, broadcasts=kernel.broadcasts, paced="reload" if reloads else None),)
        case "column_expansion":
            return (column_expansion(operands, region, work.sources[0], dst),)
        case "compare":
            source = work.sources[0]
            compared = context.region(source, source.valid_rows, source.valid_cols)
            laid_out = compare_in_pairs if compared.width == 32 else compare
            return (laid_out(operands, compared, work.sources, dst, kernel.instructions[0]),)
        case "part" if kernel.instructions[0] not in EXTREMES:
            return _joined_and_copied(context)
        case "part":
            # One pass for each source, which loads the destination too: 2.06 cycles a vector each.
            return tuple(
                elementwise(
                    operands, context.region(dst, source.valid_rows, source.valid_cols), (dst, source), dst,
                    context.compute, context.variant, peeled=False,
                )
                for source in work.sources
                if source.valid_rows and source.valid_cols
            )  # fmt: skip
        case _:
            return ()


def _joined_and_copied(context: _Context) -> tuple[Nest, ...]:
    """What both sources cover is joined, the rows below that only one covers are copied; or none if columns differ.

    Source: pto-isa include/pto/npu/a5 for the two loops; 8 and 64 rows of a vector take 120 cycles in the vendor's
    simulator.
    """
    work, operands, dst = context.work, context.operands, context.work.dst
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    rows, below = smaller.valid_rows, dst.valid_rows - smaller.valid_rows
    if smaller.valid_cols < dst.valid_cols or below <= 0:
        return ()
    both = context.region(dst, rows, dst.valid_cols)
    joined = elementwise(operands, both, work.sources, dst, context.compute, context.variant, peeled=False)
    rest = replace(larger, address=larger.address + rows * larger.row_pitch)
    copied = move(operands, context.region(dst, below, dst.valid_cols), rest, dst)
    return joined, replace(copied, writes=operands.add(dst.address + rows * dst.row_pitch))


def _in_part(context: _Context) -> tuple[Nest, ...]:
    """A tile with a tile that covers as much, or a copy of the larger one joined with the smaller: assumed."""
    work, operands = context.work, context.operands
    dst = work.dst
    smaller, larger = sorted(work.sources, key=lambda one: one.valid_rows * one.valid_cols)
    rows, cols = smaller.valid_rows, smaller.valid_cols
    joined = context.region(dst, rows, cols)
    if (rows, cols) == (dst.valid_rows, dst.valid_cols):
        return (elementwise(operands, joined, work.sources, dst, context.compute, context.variant, peeled=False),)
    nests = [move(operands, context.region(dst, dst.valid_rows, dst.valid_cols), larger, dst)]
    if rows and cols:
        nests.append(elementwise(operands, joined, (dst, smaller), dst, context.compute, context.variant, peeled=False))
    return tuple(nests)


def _reductions(context: _Context) -> tuple[Nest, ...]:
    work, operands, compute = context.work, context.operands, context.kernel.instructions
    (source,) = work.sources
    region = context.region(source, source.valid_rows, source.valid_cols)
    match context.kernel.structure:
        case "row_reduction":
            return (row_reduction(operands, region, source, work.dst, compute, context.variant),)
        case "row_product":
            return (row_product(operands, region, source, work.dst, compute[0], context.variant),)
        case _ if work.binary and work.tmp is not None:
            return column_halving(operands, region, source, work.dst, work.tmp, compute[0])
        case _:
            return (column_reduction(operands, region, source, work.dst, compute[0]),)


def _expansion(context: _Context, *, down_columns: bool) -> Nest:
    work, operands, compute = context.work, context.operands, context.kernel.instructions
    dst = work.dst
    region = context.region(dst, dst.valid_rows, dst.valid_cols)
    full, vector = _full_and_vector(work)
    if down_columns:
        branches = context.variant == "2D_POST_UPDATE" and context.branches
        return column_broadcast(operands, region, full, vector, dst, compute, context.variant, branches=branches)
    narrow = full is not None and dst.cols < region.elements and _are_contiguous(dst, full)
    return row_broadcast(operands, region, full, vector, dst, compute, per_row=not narrow)


def _full_and_vector(work: ResolvedTileOp) -> tuple[Tile | None, Tile]:
    """Return the operand with the shape of the result, None if there is none, and the one that is spread."""
    if len(work.sources) == 1:
        return None, work.sources[0]
    one, other = work.sources
    shape = (work.dst.valid_rows, work.dst.valid_cols)
    fits = (one.valid_rows, one.valid_cols) == shape and one.type.block_layout == work.dst.type.block_layout
    return (one, other) if fits else (other, one)


def _are_contiguous(*tiles: Tile) -> bool:
    """Whether the tile condition of the 1D kernels holds: full rows by their types, or single rows."""
    return all(tile.type.valid_cols == tile.cols for tile in tiles) or all(tile.rows == 1 for tile in tiles)


def left_ctrl(target: VectorFunctionTarget) -> int:
    """Return CTRL as a quantisation of blocks leaves it: NaN are kept, all else is 0, or as it was."""
    return 1 << target.control.nan_kept if target.option("tquant_mx_ctrl") == "written" else start_ctrl(target)


def _control(
    target: VectorFunctionTarget, work: ResolvedTileOp, kernel: VectorFunctionOperation
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the values of CTRL around an operation that narrows integers, keeping low bits, or quantises blocks."""
    if kernel.structure == "block_quantisation":
        written = 1 << target.control.nan_kept
        return (written,), () if left_ctrl(target) == written else (left_ctrl(target),)
    if kernel.control is None or work.dst.format.name not in kernel.controlled:
        return (), ()
    return control_writes(target, kernel.control, Saturation.OFF)


def _whole_bytes(fmt: Format) -> Format:
    """Return the format as which elements move: packed pairs do as bytes."""
    return format_named("u8") if fmt.bits == 4 else fmt
