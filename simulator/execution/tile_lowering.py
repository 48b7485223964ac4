"""The lowering protocol of every mechanism with a tile buffer; a mechanism adds its casts.

Flags, barriers and transfers are the same for every vector unit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from castsim.execution.buffer_values import Unknown
from castsim.execution.input_data import IMPLICIT_TMP, MAKE_SCRATCH, OLDEST, PASS_OFF, PASS_ON, TOOLCHAIN, ProgramChoice
from castsim.execution.interpreter.interpreter import name_of
from castsim.execution.interpreter.lowerer import LoweredInstruction, check_form, has_addresses, is_binary, pipe_of
from castsim.execution.pipe_operations import (
    BLOCK,
    FlagSignal,
    FlagWait,
    PipeBarrier,
    Placeholder,
    ScalarElementAccess,
    ScalarWork,
    check_tile,
    lower_transfer,
)
from castsim.execution.tree import (
    Access,
    Block,
    GlobalSpace,
    Part,
    ResolvedTileOp,
    ScalarElement,
    Tile,
    TileCast,
    TileTransfer,
    strided,
)
from castsim.execution.vector_operations.accesses import check_work, tile_bytes, work_accesses
from castsim.execution.vector_operations.effect import TileEffect
from castsim.execution.vector_operations.regions import over_destination
from castsim.execution.vector_operations.shapes import as_rows, row_bytes
from castsim.execution.vector_operations.target_rules import behaviour_of
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, Span, TileError, WarningKind, Warnings, WarningText
from castsim.isa.formats import Saturation
from castsim.isa.pto import program as pto
from castsim.isa.pto.program import nodes
from castsim.isa.pto.statement_forms import form_of, form_with_tmp, scratch_of
from castsim.isa.pto.vector_operations import VECTOR_OPERATIONS, Kind, Role
from castsim.targets.dataflow import DataflowTarget, TilePlacement

# The tmp tiles that newer assemblers give operations which need one and have none, before tiles are placed.
#
# Source: docs/reference/pto.md section 1.3.

Needy = pto.Tcvt | pto.TileOperation

ScratchType = Callable[[Needy, int | None], pto.TileType | None]
"""Function that returns the type of an operation's tmp tile, None for none; the number is the pitch of the first source
in elements, if that is a part of a wider tile."""

Made = tuple[pto.Function, tuple[tuple[ProgramChoice, Span], ...]]
"""A function with its tmp tiles, and the decisions with their positions."""


def complete(function: pto.Function, toolchain: str, scratch: ScratchType, target: str) -> Made:
    """Return a function with its assembler's additions.

    Raises:
        ReadError: an operation lacks the tmp tile that the assembler requires.
        IllegalError: the assembler would add one, but the program places its tiles itself.
    """
    body = function.body or ()
    if toolchain not in MAKE_SCRATCH:
        for node in nodes(body):
            check_form(node, toolchain)
        if not any(_lacks_tmp_behind(node) for node in nodes(body)):
            return function, ()
    completing = _Completing(scratch, toolchain, target, has_addresses(body))
    operations = completing.region(body)
    return (replace(function, body=operations), tuple(completing.made)) if completing.made else (function, ())


def lacks_tmp(node: pto.TileOperation) -> tuple[Role, ...] | None:
    """Return the form with a tmp tile that an operation could have, None if there is none."""
    operation = VECTOR_OPERATIONS.get(node.mnemonic)
    form = None if operation is None else form_of(operation, node.input_types)
    if operation is None or form is None or (operation.attribute == "isBinary" and not is_binary(node)):
        return None
    return form_with_tmp(operation, form)


def _lacks_tmp_behind(node: pto.Operation) -> bool:
    """Return whether an optional tmp tile after the destination is missing: every assembler with tquant adds it."""
    operation = VECTOR_OPERATIONS.get(node.mnemonic) if isinstance(node, pto.TileOperation) else None
    if operation is None or not isinstance(node, pto.TileOperation):
        return False
    return operation.tmp_behind and len(node.outputs) == 1


@dataclass(slots=True)
class _Completing:
    """The regions being rewritten; `pitches` are those of parts of tiles, by the name of the part."""

    scratch: ScratchType
    toolchain: str
    target: str
    placed: bool
    made: list[tuple[ProgramChoice, Span]] = field(default_factory=list)
    pitches: dict[str, int] = field(default_factory=dict)

    def region(self, body: Sequence[pto.Operation]) -> tuple[pto.Operation, ...]:
        return tuple(new for node in body for new in self._operation(node))

    def _operation(self, node: pto.Operation) -> Iterator[pto.Operation]:
        match node:
            case pto.For() | pto.Section() | pto.If() | pto.While():
                yield pto.with_regions(node, self.region)
            case pto.TileOperation() if _lacks_tmp_behind(node):
                yield from self._completed(node, node.inputs[0])
            case pto.Tcvt() | pto.TileOperation() if self.toolchain not in MAKE_SCRATCH:
                yield node
            case pto.Tcvt(tmp=None):
                unnamed = node.saturation is None and self.toolchain in PASS_OFF
                off = unnamed or node.saturation is Saturation.OFF
                yield from self._completed(node, node.src) if off else (node,)
            case pto.TileOperation() if lacks_tmp(node) is not None:
                yield from self._completed(node, node.inputs[0])
            case _:
                if isinstance(node, pto.Subview):
                    pitch = self.pitches.get(node.source, _pitch(node.source_type))
                    self.pitches[node.result] = pitch
                yield node

    def _completed(self, node: Needy, source: str) -> Iterator[pto.Operation]:
        """Yield a tile and the operation with it, or the operation alone if it needs none."""
        kind = self.scratch(node, self.pitches.get(source))
        if kind is None:
            yield node
            return
        name = node.mnemonic if isinstance(node, pto.TileOperation) else "tcvt"
        if self.placed:
            behind = _lacks_tmp_behind(node)
            form = "ins(%src, %tmp : ...)" if isinstance(node, pto.Tcvt) else VECTOR_OPERATIONS[name].spellings[0]
            older = (f"--{TOOLCHAIN} {PASS_OFF[0]}", f"--{TOOLCHAIN} {OLDEST}")
            raise IllegalError(
                f"pto.{name} needs an explicit tmp tile: tiles have addresses (level 3), and on "
                f"{self.target} it must be {kind.rows} x {kind.cols} {kind.element}",
                span=node.span,
                legal=("outs(%dst, %tmp : T, T)",) if behind else (form, *older),
            )
        tmp = f"{IMPLICIT_TMP}{len(self.made) + 1}"
        effect = f"{name} has no tmp tile; castsim adds one of {kind.rows} x {kind.cols} {kind.element}"
        self.made.append((ProgramChoice(TOOLCHAIN, self.toolchain, effect), node.span))
        yield pto.AllocTile(tmp, kind, added=True, span=node.span)
        if isinstance(node, pto.Tcvt):
            yield replace(node, tmp=tmp, tmp_type=kind)
            return
        if _lacks_tmp_behind(node):
            yield replace(node, outputs=(*node.outputs, tmp), output_types=(*node.output_types, kind))
            return
        wanted = lacks_tmp(node)
        assert wanted is not None
        index = wanted.index(Role.TMP)
        inputs, types = list(node.inputs), list(node.input_types)
        inputs.insert(index, tmp)
        types.insert(index, kind)
        yield replace(node, inputs=tuple(inputs), input_types=tuple(types))


def _pitch(kind: pto.TileType) -> int:
    return kind.cols if kind.block_layout == "row_major" else kind.rows


# Loads and stores between a view's part and a valid region of another size: what is moved.
#
# Source: docs/reference/pto.md section 3.5; the target's option `transfer_region` chooses.

OPTION = "transfer_region"


def fitted(target: DataflowTarget, transfer: TileTransfer) -> tuple[TileTransfer, Warnings]:
    """Return a transfer whose part and valid region have equal sizes, and a warning if they differed.

    Raises:
        TileError: they differ, and the option forbids that; the valid region exceeds the part; rows of the part
            exceed the tile.
    """
    tile, part = transfer.tile, transfer.part
    if (part.rows, part.cols) == (tile.valid_rows, tile.valid_cols):
        return transfer, ()
    what = (
        f"{'tload' if transfer.load else 'tstore'}: the view's part is {part.rows} x {part.cols}, the valid region of "
        f"%{tile.name} is {tile.valid_rows} x {tile.valid_cols}"
    )
    how = target.option(OPTION) if OPTION in target.options else "tile"
    if how == "refuse":
        raise TileError(what, span=transfer.span)
    if how == "tile":
        fitted_transfer = replace(transfer, part=_cut(transfer, what))
        moved = f"{tile.valid_rows} x {tile.valid_cols}"
    else:
        fitted_transfer = _as_the_library(target, transfer, what)
        moved = f"{fitted_transfer.part.rows} x {fitted_transfer.part.cols}"
    return fitted_transfer, (WarningText(WarningKind.REGION, f"{what}: {moved} are moved"),)


def _cut(transfer: TileTransfer, what: str) -> Part:
    """Return the first rows and columns of the part, as many as are valid.

    Raises:
        TileError: it has fewer, or its rows come from several dimensions of which some would be cut.
    """
    tile, part = transfer.tile, transfer.part
    if not tile.valid_rows or not tile.valid_cols:
        return replace(part, sizes=(1, 1, 1, tile.valid_rows, tile.valid_cols))
    if tile.valid_rows > part.rows or tile.valid_cols > part.cols:
        raise TileError(f"{what}, which exceeds the part", span=transfer.span)
    first, second, third, rows, _ = part.sizes
    if tile.valid_rows != part.rows:
        if first * second * third != 1:
            raise TileError(f"{what}; castsim does not cut rows of several dimensions", span=transfer.span)
        rows = tile.valid_rows
    return replace(part, sizes=(first, second, third, rows, tile.valid_cols))


def _as_the_library(target: DataflowTarget, transfer: TileTransfer, what: str) -> TileTransfer:
    """Return the library's transfer: as many lines as the view's part, each as long as the tile's valid ones.

    Raises:
        TileError: lines exceed the tile.
    """
    tile, part = transfer.tile, transfer.part
    first, second, third, rows, cols = part.sizes
    outer, middle, inner, down, across = part.strides
    skewed = target.transfer_limits.skewed_lines
    if part.layout == "dn":
        sizes = (first, second, third, tile.valid_rows, cols)
        across = tile.valid_rows + across - rows if skewed else across
        tile = replace(tile, valid_cols=cols)
        leaves = cols > tile.cols
    else:
        sizes = (first, second, third, rows, tile.valid_cols)
        down = tile.valid_cols + down - cols if skewed else down
        tile = replace(tile, valid_rows=part.rows)
        leaves = part.rows > tile.rows
    if leaves or down < 0 or across < 0:
        raise TileError(f"{what}; the part's lines exceed the tile", span=transfer.span)
    return replace(transfer, tile=tile, part=replace(part, sizes=sizes, strides=(outer, middle, inner, down, across)))


_UNSATURATED = {"f16", "bf16"}
"""The pair whose casts the assembler of August 2026 leaves without saturation, in both directions."""
_HISTORY = f"OFF since {PASS_OFF[0]}, ON since {PASS_ON[0]}, the library's default before"


class DataflowLowerer(ABC):
    """Lowering of everything but casts and element storage, for one target."""

    def __init__(self, target: DataflowTarget) -> None:
        self._chip = target
        self._tiles: dict[tuple[str, int], Tile] = {}
        self._window_uses: list[tuple[ResolvedTileOp, tuple[int, int]]] = []

    def completed(self, function: pto.Function) -> Made:
        """Return a function with the tmp tiles that its assembler adds, and the decisions with their positions."""
        return complete(function, str(self._chip.option(TOOLCHAIN)), self.implicit_scratch, self._chip.name)

    def implicit_scratch(self, node: Needy, pitch: int | None) -> pto.TileType | None:
        """Return the tmp tile of an operation without one; None, as here, if none is needed."""
        del node, pitch
        return None

    def spared_scratch(self, node: Needy) -> str | None:
        """Return the tmp tile of an operation that the chip does not touch, None if there is none."""
        if isinstance(node, pto.Tcvt):
            return None if self._chip.casts_use_scratch else node.tmp
        rule = self._chip.tile_operation(node.mnemonic)
        if rule is None or rule.tmp != "ignored":
            return None
        return next(iter(scratch_of(node.mnemonic, node.inputs, node.input_types)), None)

    def control(self) -> int | None:
        """Return the control register as left by operations, None if none outlives its operation, as here."""
        return None

    def set_control(self, value: int | None) -> None:
        """Set the assumed control register to the result of `control`."""
        del value

    def buffer(self) -> tuple[str, int, int]:
        """Return name, allocatable bytes and alignment of the unified buffer."""
        memory = self._chip.memories["ub"]
        return "ub", memory.allocatable_bytes, memory.alignment_bytes

    def tile_placement(self) -> TilePlacement | None:
        """Return how tiles without addresses are kept from sharing banks, None if they are adjacent."""
        return self._chip.apart

    def closing_warnings(self) -> Warnings:
        """Return warnings about the whole program: tiles in scratch bytes that are not reserved.

        A mechanism may add others.
        """
        warnings: dict[WarningText, None] = {}
        for work, (start, end) in self._window_uses:
            hit = sorted({tile.name for tile in self._tiles.values() if tile.address < end and start < tile.end})
            if hit:
                tiles = ", ".join(f"%{name}" for name in hit)
                why = f"without tmp it uses bytes {start} .. {end - 1}, the place of {tiles}"
                text = f"{work.mnemonic} of a column vector: {why}"
                warnings[WarningText(WarningKind.SCRATCH, text, work.span)] = None
        return tuple(warnings)

    def check_tile(self, tile: Tile, span: Span) -> None:
        """Reject a tile that does not fit the buffer or the vector unit."""
        check_tile(self._chip, tile, span)
        self._tiles[tile.name, tile.address] = tile

    def assembled(self, cast: TileCast) -> tuple[TileCast, tuple[ProgramChoice, ...]]:
        """Return a cast with the saturation that its assembler passes on, and the choice if the text leaves one.

        Source: docs/reference/pto.md section 1.2.
        """
        if cast.saturation is not None:
            return cast, ()
        off, on = (replace(cast, saturation=saturation) for saturation in (Saturation.OFF, Saturation.ON))
        value = str(self._chip.option(TOOLCHAIN))
        chosen, word = (off, "OFF") if value in PASS_OFF else (cast, "ON")
        if value in PASS_ON:
            chosen, word = (off, "OFF") if {cast.src.format.name, cast.dst.format.name} == _UNSATURATED else (on, "ON")
        if not self.differ(cast, off) and not self.differ(cast, chosen):
            return chosen if value in PASS_ON else cast, ()
        pair = f"{cast.src.format.name} -> {cast.dst.format.name}"
        effect = f"{pair} does not set saturation, which is {word}: {_HISTORY}"
        return chosen, (ProgramChoice(TOOLCHAIN, value, effect),)

    @abstractmethod
    def differ(self, cast: TileCast, other: TileCast) -> bool:
        """Return whether two casts that differ only in saturation can give different results."""

    def transfer(self, transfer: TileTransfer) -> LoweredInstruction:
        """Lower one tile load or store."""
        same, differing = fitted(self._chip, transfer)
        body, warnings = lower_transfer(self._chip, same)
        return LoweredInstruction(body, _transfer_accesses(same), None, differing + warnings)

    def work(self, work: ResolvedTileOp) -> LoweredInstruction:
        """Lower one vector operation; its action is a `TileEffect`, the mechanism's operations carry time and streams.

        A tmp tile that the target ignores is dropped. An operation that writes nothing issues nothing.
        """
        work, regions = over_destination(self._chip, work)
        filled = reduces_nothing(work)
        messages = (*regions, *check_work(self._chip, filled or work))
        warnings = tuple(WarningText(WarningKind.OPERATION, text) for text in messages)
        if filled is not None:
            text = f"pto.{work.mnemonic}: %{work.sources[0].name} is empty; %{work.dst.name} keeps its contents"
            return LoweredInstruction(Block(()), warnings=(*warnings, WarningText(WarningKind.OPERATION, text)))
        rule = self._chip.tile_operation(work.mnemonic)
        if rule is not None and rule.tmp == "ignored":
            work = replace(work, tmp=None)
        plain = as_rows(work)
        behaviour = behaviour_of(self._chip, plain)
        accesses = _without_tails(plain, work_accesses(plain, behaviour))
        if accesses[0].start == accesses[0].end:
            return LoweredInstruction(Block(()), warnings=warnings)
        if behaviour.window is not None:
            self._window_uses.append((work, behaviour.window))
        return LoweredInstruction(self.lower_work(work), accesses, TileEffect(plain, behaviour), warnings)

    def lower_work(self, work: ResolvedTileOp) -> Block:
        """Return the mechanism's instructions for a vector operation that passed `check_work`.

        Raises:
            IllegalError: the mechanism has no lowering for it.
        """
        raise IllegalError(f"pto.{work.mnemonic} is not modelled on {self._chip.name}", span=work.span)

    def set_flag(self, signaller: str, waiter: str, event: int, span: Span) -> FlagSignal:
        """Return the operation that signals a flag."""
        self._check_flag(signaller, waiter, event, span)
        return FlagSignal(signaller, waiter, event)

    def wait_flag(self, signaller: str, waiter: str, event: int, span: Span) -> FlagWait:
        """Return the operation that waits for a flag."""
        self._check_flag(signaller, waiter, event, span)
        return FlagWait(waiter, signaller, event)

    def barrier(self, pipe: str, span: Span) -> PipeBarrier:
        """Return the barrier of one pipe, or of all."""
        self._check_pipe(pipe, span, others=("ALL",))
        return PipeBarrier(pipe)

    def opaque(
        self,
        node: pto.Tcvt | pto.TileOperation | pto.ForeignOperation,
        cycles: int,
        reads: Sequence[Tile | Part],
        writes: Sequence[Tile | Part],
    ) -> LoweredInstruction:
        """Return the placeholder of an operation, on its pipe.

        An operation without a pipe runs on the scalar unit or, if it reads the buffer, on the vector pipe, after all
        earlier work (assumed: no text states how it waits). No other known work is ordered after it: its bytes matter
        only for values.
        """
        pipe = None if isinstance(node, pto.ForeignOperation) else pipe_of(node, self._chip.pipes)
        written = tuple(access for operand in writes for access in _opaque_bytes(operand, write=True))
        name = name_of(node)
        read = tuple(access for operand in reads for access in _opaque_bytes(operand, write=False))
        if pipe is None:
            vector, scalar = self._chip.pipes.vector, self._chip.pipes.scalar
            waiting = (PipeBarrier(vector), Placeholder(name, vector, cycles))
            return LoweredInstruction(
                Block(waiting if read else (Placeholder(name, scalar, cycles),)), (), Unknown(name, written)
            )
        body = Block((Placeholder(name, pipe, cycles),))
        return LoweredInstruction(body, (*written, *read), Unknown(name))

    def scalar_work(self, kind: str) -> ScalarWork:
        """Return the scalar unit's part in `arithmetic` or a `loop` turnaround."""
        return ScalarWork(kind, pipe=self._chip.pipes.scalar)

    def element(self, element: ScalarElement) -> LoweredInstruction:
        """Lower the scalar unit's access to an element; one of a tile stays in the buffer.

        Raises:
            TileError: the element is outside the buffer.
        """
        location, start, end = element.place, element.address, element.address + element.size
        pipe, write = self._chip.pipes.scalar, bool(element.code)
        if isinstance(location, str):
            operation = ScalarElementAccess(element.mnemonic, location, start, element.code, None, pipe)
            return LoweredInstruction(Block((operation,)), (Access(GlobalSpace.of(location), start, end, write),))
        capacity = self._chip.memories["ub"].capacity_bytes
        if start < 0 or end > capacity:
            raise TileError(
                f"{element.mnemonic}: bytes {start} .. {end - 1} are outside the buffer of {capacity} bytes",
                span=element.span,
            )
        warnings: Warnings = ()
        if not location.address <= start < end <= location.end:
            text = (
                f"{element.mnemonic} accesses bytes {start} .. {end - 1}, but %{location.name} has {_bytes(location)}"
            )
            warnings = (WarningText(WarningKind.BEYOND, text),)
        operation = ScalarElementAccess(
            element.mnemonic, None, start, element.code, (location.address, location.end), pipe
        )
        return LoweredInstruction(Block((operation,)), (Access("ub", start, end, write),), warnings=warnings)

    def option(self, name: str) -> int | str:
        """Return the value of a target option."""
        return self._chip.option(name)

    def _check_flag(self, signaller: str, waiter: str, event: int, span: Span) -> None:
        self._check_pipe(signaller, span)
        self._check_pipe(waiter, span)
        if not 0 <= event < self._chip.pipes.event_ids:
            raise IllegalError(
                f"event id {event}: {self._chip.name} has {self._chip.pipes.event_ids} per pair of pipes",
                span=span,
                legal=(f"EVENT_ID0 to EVENT_ID{self._chip.pipes.event_ids - 1}",),
            )

    def _check_pipe(self, pipe: str, span: Span, others: tuple[str, ...] = ()) -> None:
        pipes = self._chip.pipes
        legal = (pipes.scalar, pipes.vector, pipes.load, pipes.store, *pipes.others, *others)
        if pipe not in legal:
            raise IllegalError(f"{self._chip.name} has no pipe {pipe}", span=span, legal=[f"PIPE_{p}" for p in legal])


_REDUCTIONS = (Kind.ROW_REDUCE, Kind.COLUMN_REDUCE, Kind.ROW_ARGUMENT, Kind.COLUMN_ARGUMENT)


def _opaque_bytes(operand: Tile | Part, *, write: bool) -> tuple[Access, ...]:
    """Return the bytes of a tile, or of a part of an argument: all between them if it is boxed or may have gaps."""
    if isinstance(operand, Tile):
        if operand.type.scatter_layout != "none_box":
            return (Access("ub", operand.address, operand.end, write),)
        access = tile_bytes(operand, write=write)
        if operand.format.bits == 4 != operand.element_bits and operand.type.block_layout == "row_major":
            # Where 4-bit elements lie in rows with gaps is for the operation to say.
            access = row_bytes(operand, operand.valid_rows, operand.valid_cols * operand.element_bits // 8, write=write)
        return (access,) if access.start < access.end else ()
    return () if 0 in operand.sizes else (_far(operand, write=write),)


def _without_tails(work: ResolvedTileOp, accesses: tuple[Access, ...]) -> tuple[Access, ...]:
    """Remove the bytes that a copy of whole blocks reads after the valid elements: their values do not matter.

    Source: docs/reference/pto.md section 7.2.
    """
    if VECTOR_OPERATIONS[work.mnemonic].kind is not Kind.MOVE:
        return accesses
    source, dst = work.sources[0], work.dst
    rows, cols = min(source.valid_rows, dst.valid_rows), min(source.valid_cols, dst.valid_cols)
    needed = tile_bytes(replace(source, valid_rows=rows, valid_cols=cols), write=False)
    return (accesses[0], needed, *accesses[2:])


def reduces_nothing(work: ResolvedTileOp) -> ResolvedTileOp | None:
    """Return a reduction of empty lines as one of lines with an element; None for any other operation.

    It does nothing (docs/reference/pto.md section 7.8), and is legal in the same cases.
    """
    kind = VECTOR_OPERATIONS[work.mnemonic].kind if work.mnemonic in VECTOR_OPERATIONS else None
    by_rows = kind in (Kind.ROW_REDUCE, Kind.ROW_ARGUMENT)
    if kind not in _REDUCTIONS or not work.dst.valid_cols or (by_rows and not work.dst.valid_rows):
        return None

    def with_element(tile: Tile) -> Tile:
        return replace(tile, valid_cols=1) if by_rows else replace(tile, valid_rows=1)

    first = work.sources[0]
    if first.valid_cols if by_rows else first.valid_rows:
        return None
    tmp = None if work.tmp is None else with_element(work.tmp)
    return replace(work, sources=tuple(map(with_element, work.sources)), tmp=tmp)


def _bytes(tile: Tile) -> str:
    return f"{tile.address} .. {tile.end - 1}"


def _transfer_accesses(transfer: TileTransfer) -> tuple[Access, ...]:
    if 0 in transfer.part.sizes:
        return ()
    return (_padded(transfer), _far(transfer.part, write=not transfer.load))


def _far(part: Part, *, write: bool) -> Access:
    """Return the bytes of a nonempty part of an argument."""
    bits = part.format.bits if part.format.bits == 4 else part.format.storage_bits
    # Elements side by side are one stretch; those of a column of a wider view are stretches of their own.
    *outer, (cols, step) = zip(part.sizes, part.strides, strict=True)
    inner = (cols * bits + 7) // 8 if step == 1 else (bits + 7) // 8
    rows = [*outer, *([(cols, step)] if step != 1 else [])]
    distances = [(count, distance * bits // 8) for count, distance in rows]
    return strided(GlobalSpace.of(part.argument), part.offset * bits // 8, distances, inner, write=write)


def _padded(transfer: TileTransfer) -> Access:
    """Return the bytes of the tile, and those that a load pads after each row up to the next block."""
    tile = transfer.tile
    near = tile_bytes(tile, write=transfer.load)
    if not transfer.load or not tile.type.pad or tile.type.block_layout != "row_major" or near.start == near.end:
        return near
    length = -(-((tile.valid_cols * tile.packed_bits + 7) // 8) // BLOCK) * BLOCK
    return row_bytes(tile, tile.valid_rows, length, write=True)


def tile_access(tile: Tile, *, write: bool) -> Access:
    """Return the bytes of the valid elements of a tile, all of it if it is column-major."""
    if tile.valid_rows and tile.valid_cols and tile.type.block_layout != "row_major":
        return Access("ub", tile.address, tile.end, write)
    return tile_bytes(tile, write=write)
