"""The vector-function mechanism as program execution sees it: one target's lowering behind the common protocol."""

from __future__ import annotations

from dataclasses import replace

from castsim.execution.dataflow.pipe_operations import ControlWrite, ScalarWork
from castsim.execution.dataflow.tile_lowering import DataflowLowerer, tile_access
from castsim.execution.entry_and_target import BACKEND, ProgramChoice
from castsim.execution.interpreter.lowerer import LoweredInstruction
from castsim.execution.tiles import CastTiles, ResolvedTileOp, TileCast
from castsim.execution.tree import Access, Block, Node, loop_of
from castsim.execution.vector_operations import as_rows
from castsim.isa.errors import CastsimError, IllegalError
from castsim.isa.formats import Format, format_named
from castsim.isa.modes import Overflow, Saturation
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vector_function.kernel_nests import LAYOUTS, TIMED, KernelLayout, are_contiguous
from castsim.machines.vector_function.kernel_rearranging import REARRANGING_LAYOUTS
from castsim.machines.vector_function.lowering import FunctionCast, lower_cast, outcome
from castsim.machines.vector_function.plan import backend_effect, backend_matters, control_writes, start_ctrl
from castsim.machines.vector_function.values import ConvertStep, WholeTile, whole_tile
from castsim.targets.options import unwatched, with_options
from castsim.targets.vector_function import VectorFunctionTarget
from castsim.targets.vector_function_operations import KernelVariant, VectorFunctionOperation

# From one vector operation other than a cast to control writes and one vector function.
#
# The kernel of each operation is data of the target (table of kernels, choice of variants); its loops are laid out by
# `kernel_nests` and `kernel_rearranging`. Values are no matter here: see `castsim.execution.vector_operations`.

_LAYOUTS = {**LAYOUTS, **REARRANGING_LAYOUTS}

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
    if kernel.structure == "ramp" and not (work.names_tmp or target.option("ramp_without_tmp") == "vector"):
        trip = Block((ScalarWork("write", pipe=target.pipes.scalar), ScalarWork("loop", pipe=target.pipes.scalar)))
        return Block(tuple(loop_of(work.dst.valid_cols, lambda _: trip)))
    laid_out = KernelLayout(target, work, kernel, kernel_variant(target, work))
    nests = _LAYOUTS[kernel.structure](laid_out)
    timed = (TIMED[kernel.structure](laid_out) if kernel.structure in TIMED else ()) or nests
    first, *others = laid_out.addresses or [work.dst.address]
    if kernel.structure not in _ONE_LOOP and any(tile.type.valid_cols is None for tile in (work.dst, *work.sources)):
        timed = tuple(replace(nest, runtime_trips=True) for nest in timed)
    function = VectorFunction(
        name=f"{work.mnemonic} {work.dst.format.name} {laid_out.variant}",
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
    variants = choice.contiguous if are_contiguous(work.dst, *work.sources) else choice.padded
    return variants[int(target.option("implementation_kind"))]


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


class VectorFunctionLowerer(DataflowLowerer):
    """Lowering for one target. Equal casts are lowered and proven once, equal operations lowered once."""

    def __init__(self, target: VectorFunctionTarget, *, unsafe_scratch: bool = False) -> None:
        """Take a target; its casts use no tmp tile, so that none is too small."""
        super().__init__(target)
        self.target = self._at_start = target
        self._control: int | None = None
        self._unwatched = unwatched(target)
        self._casts: dict[TileCast, LoweredInstruction] = {}
        self._works: dict[ResolvedTileOp, Block] = {}

    def element_bits(self, fmt: Format) -> int:
        """Return the bits one element takes in a tile's pitch and pointer arithmetic; 4-bit elements share bytes."""
        return fmt.bits if fmt.bits == 4 else fmt.storage_bits

    def cast(self, cast: TileCast) -> LoweredInstruction:
        """Lower one tile cast, and prove whether it may be converted in one call."""
        found = self._casts.get(cast)
        if found is None:
            try:
                asked, choices = self.assembled(cast)
                lowered = lower_cast(self.target, asked)
            except CastsimError as error:
                raise error.at(cast.span) from None
            shortcut = whole_tile(lowered.function, cast.src, cast.dst)
            tiles = CastTiles(cast.src, cast.dst, lowered.plan.rounding, _wraps(shortcut))
            found = LoweredInstruction(
                lowered.body, _accesses(cast, lowered), shortcut, lowered.warnings, choices, tiles
            )
            self._casts[cast] = found
        return found

    def assembled(self, cast: TileCast) -> tuple[TileCast, tuple[ProgramChoice, ...]]:
        """Add the choice of the back end, where that decides what the cast gives."""
        asked, choices = super().assembled(cast)
        src, dst = cast.src.format, cast.dst.format
        if not backend_matters(self.target, src, dst):
            return asked, choices
        effect = f"{src.name} -> {dst.name} {backend_effect(self.target)}"
        return asked, (*choices, ProgramChoice(BACKEND, str(self.target.option(BACKEND)), effect))

    def differ(self, one: TileCast, other: TileCast) -> bool:
        """Whether two casts, alike but for their saturation, can give different results."""
        return outcome(self._unwatched, one) != outcome(self._unwatched, other)

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the vector function of any other vector operation, with the control writes around it.

        No source states the loops of a column-major move; they are taken to be those of the exchanged tile. Behind a
        quantisation of blocks everything is lowered under the CTRL that it leaves.
        """
        work = as_rows(work)
        found = self._works.get(work)
        if found is None:
            found = self._works[work] = lower_work(self.target, work)
        if VECTOR_OPERATIONS[work.mnemonic].kind is Kind.BLOCK_QUANTISE:
            left = left_ctrl(self.target)
            if left != start_ctrl(self.target):
                self.set_control(left)
        return found

    def control(self) -> int | None:
        """Return CTRL as operations have left it."""
        return self._control

    def set_control(self, value: int | None) -> None:
        """Take CTRL to hold a value, None for that at start; what was lowered before is lowered anew."""
        if value == self._control:
            return
        self._control, self.target = value, self._at_start
        if value is not None:
            options = {name: value >> bit & 1 for name, bit in self.target.control.options.items()}
            self.target = with_options(self.target, options)
        self._unwatched = unwatched(self.target)
        self._casts.clear()
        self._works.clear()


def _wraps(whole: WholeTile | None) -> bool | None:
    """Whether any step keeps the low bits of integers beyond the range; None if nothing is known of the steps."""
    if whole is None:
        return None
    return any(isinstance(step, ConvertStep) and step.policy.overflow is Overflow.WRAP for step in whole.chain)


def _accesses(cast: TileCast, lowered: FunctionCast) -> tuple[Access, ...]:
    """Return the bytes between first and last valid element of both tiles, and what a zero fill clears."""
    written, read = tile_access(cast.dst, write=True), tile_access(cast.src, write=False)
    if lowered.filled:
        end = max(written.end, cast.dst.address + lowered.filled)
        written = Access(written.space, written.start, end, write=True)
    return tuple(access for access in (written, read) if access.start < access.end)
