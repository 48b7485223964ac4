"""Estimates of casts on chips whose casts are instructions on registers: a software-pipelined loop over vectors.

Both tiles lie in local vector memory. A step loads the registers of one group of elements, converts them by the
instructions of the compiled cast in the order of all_lanes, and stores the result; steps follow
each other as closely as slots and bundle rules allow, with registers renamed from step to step as in an unrolled loop.
Nothing waits, so a kernel takes its bundles and the last store's effect. Rows that are not adjacent
begin steps of their own; the size of local memory is not checked.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import TYPE_CHECKING

from castsim.engines import simulate
from castsim.execution.timing import Cause
from castsim.execution.tree import Block, Instruction, Loop, Lowered, Node, Tree, width
from castsim.isa.dataclass import dataclass, replace
from castsim.isa.errors import IllegalError, ReadError, Span, TileError
from castsim.isa.tpc.forms import Feature
from castsim.isa.tpc.parser import parse
from castsim.isa.tpc.program import Slot, TpcProgram
from castsim.machines.mechanisms import CastAsked
from castsim.machines.vliw.machine import BundleRecorder
from castsim.machines.vliw.plans import prepared
from castsim.machines.vliw.stage_latency import BundleOperation, main_pipe
from castsim.machines.vliw.storage import Registers
from castsim.targets.vliw import VliwTarget
from castsim.tools.estimate.cast_estimates import (
    SCALAR,
    CastShape,
    Estimate,
    EstimateBasis,
    Number,
    NumberFunctions,
    bound_by,
    of_timing,
)
from castsim.tools.estimate.tile_estimates import PLACE, ArrayEstimator, shape_of
from castsim.tools.tpc_compiler.c_table import ElementVector, Path, native_elements, path_of
from castsim.tools.tpc_compiler.cast_building import Order, build
from castsim.tools.tpc_compiler.code_generation import (
    EmittedInstruction,
    Sequence,
    SequenceRegister,
    allocate,
    arranged,
    text_of,
)
from castsim.tools.tpc_lint.lint_checking import side_by_side
from castsim.tools.tpc_lint.lint_flow import Flow

if TYPE_CHECKING:
    from castsim.tools.estimate.tile_estimates import Integers


_FILE = "<kernel>"
_LONGEST = 1 << 10
"""Maximum number of bundles from step to step for which a schedule is sought."""


@dataclass(frozen=True, slots=True)
class OverlappedStep:
    """A step overlapped with its successors: `places` are the bundles of its instructions, from its own first one.

    `interval` is the distance from step to step, `last` the latest effect of a step's instructions, `length` the
    number of bundles of one step, `elements` the number it converts.
    """

    instructions: tuple[tuple[Slot, str], ...]
    places: tuple[int, ...]
    interval: int
    length: int
    last: int
    elements: int

    @property
    def stages(self) -> int:
        """The number of steps that overlap."""
        return -(-self.length // self.interval)


class KernelEstimator(ArrayEstimator):
    """Estimator of casts of one pair on one target."""

    def __init__(self, target: VliwTarget, asked: CastAsked) -> None:
        self._target = target
        names = tuple(fmt.name.partition("@")[0] for fmt in (asked.src, asked.dst))
        path = path_of(names[0], names[1], target)
        if not path.hops:
            raise IllegalError(f"{target.name}: {asked.src.name} -> {asked.dst.name} is not a conversion")
        self.kernel = pipelined(path, _mode(target, asked.rounding), target)
        self._busy = [sum(slot is issue_slot for slot, _ in self.kernel.instructions) for issue_slot in Slot]

    def one(self, *extents: int | None, asked: EstimateBasis | None = None) -> Estimate:
        """Return the estimate of one shape."""
        shape = shape_of(*extents)
        _check(shape)
        cycles, bundles, busy = self._extent(self._steps(shape, SCALAR), SCALAR)
        causes = {Cause.BUSY: busy, Cause.DRAIN: cycles - bundles, Cause.EMPTY: bundles - busy}
        causes = {cause: spent for cause, spent in causes.items() if spent}
        return Estimate(cycles, bound_by(causes), causes, asked)

    def simulate(self, *extents: int | None) -> Estimate:
        """Return the same by simulating the bundles."""
        shape = shape_of(*extents)
        _check(shape)
        timing = simulate(self.tree(self._steps(shape, SCALAR)), self._target, record_operations=False)
        return replace(of_timing(timing), cycles=timing.total) if timing.executions else Estimate(0, Cause.EMPTY, {})

    def fill(
        self, start: int, shape: CastShape, cycles: Integers, causes: Integers, arithmetic: NumberFunctions
    ) -> None:
        """Estimate a chunk of shapes, the first being number `start`."""
        good = _is_legal(shape)
        if not good.all():
            index = int((~good).argmax())
            _check(
                CastShape(*(int(column[index]) for column in shape)), Span(f"<estimate of shape {start + index}>", 1, 1)
            )
        cycles_found, bundles, busy = self._extent(self._steps(shape, arithmetic), arithmetic)
        cycles[:] = cycles_found
        causes[PLACE[Cause.BUSY]] = busy
        causes[PLACE[Cause.DRAIN]] = cycles_found - bundles
        causes[PLACE[Cause.EMPTY]] = bundles - busy

    def tree(self, steps: int) -> Tree:
        """Return the operations of a number of steps: the pipeline filled, the loop, the pipeline emptied."""
        kernel, maker = self.kernel, _Maker(self._target, self.kernel)
        if not steps:
            return Tree(Block(()), (), interlocked=False)
        bundles = (steps - 1) * kernel.interval + kernel.length
        full = steps - kernel.stages + 1
        if full < 2:
            items: list[Node] = [maker.node(number, steps) for number in range(bundles)]
            return Tree(Block(tuple(items)), maker.instructions, interlocked=False)
        begun = (kernel.stages - 1) * kernel.interval
        items = [maker.node(number, steps) for number in range(begun)]
        items.append(maker.loop_instruction())
        body = Block(tuple(maker.node(begun + number, steps) for number in range(kernel.interval)))
        items.append(Loop(full, body, ((),) * width(body)))
        items += [maker.node(number, steps) for number in range(begun + full * kernel.interval, bundles)]
        return Tree(Block(tuple(items)), maker.instructions, interlocked=False)

    def _steps(self, shape: CastShape, arithmetic: NumberFunctions) -> Number:
        flat = (shape.valid_cols == shape.src_stride) & (shape.valid_cols == shape.dst_stride)
        together = -(-shape.valid_rows * shape.valid_cols // self.kernel.elements)
        return arithmetic.choose(flat, together, shape.valid_rows * -(-shape.valid_cols // self.kernel.elements))

    def _extent(self, steps: Number, arithmetic: NumberFunctions) -> tuple[Number, Number, Number]:
        """Return the cycles of a number of steps, their bundles, and the busy bundles of the busiest slot.

        A loop takes an additional bundle, in which the scalar slot is busy.
        """
        kernel, scalar = self.kernel, self._busy[Slot.SPU]
        loop = 1 * (steps > kernel.stages)
        before = (steps - 1) * kernel.interval + loop
        any_step = steps > 0
        cycles = arithmetic.choose(any_step, before + max(kernel.last, kernel.length), 0)
        busy = arithmetic.larger(max(self._busy) * steps, scalar * steps + loop)
        return cycles, arithmetic.choose(any_step, before + kernel.length, 0), busy


def pipelined(path: Path, mode: str, target: VliwTarget) -> OverlappedStep:
    """Return the loop of a path with the smallest distance from step to step.

    Raises:
        IllegalError: more registers are needed at once than exist.
    """
    elements = max(native_elements(path.src, target), native_elements(path.dst, target))
    types = ElementVector(path.src, elements), ElementVector(path.dst, elements)
    sequence = build(path, *types, Order.SWIZZLE, lambda _hop: mode, target)
    instructions = _instructions(sequence, target)
    _, flat = arranged(instructions, target)
    singles = [parse(_line({slot: text}), target.dialect, _FILE).bundles[0] for slot, text in instructions]
    operations = [_operation(TpcProgram((), (single,)), target) for single in singles]
    occupied = [max(operation.slot_cycles) for operation in operations]
    needed = max(
        sum(cycles for (own, _), cycles in zip(instructions, occupied, strict=True) if own is slot) for slot in Slot
    )
    for interval in range(needed, _LONGEST):
        places = _folded(instructions, flat, occupied, interval, target)
        if places is not None:
            return OverlappedStep(
                instructions=tuple(instructions),
                places=tuple(places),
                interval=interval,
                length=max(places) + 1,
                last=max(offset + step.effect for offset, step in zip(places, operations, strict=True)),
                elements=elements,
            )
    raise IllegalError(f"{target.name}: no schedule of {path} repeats within {_LONGEST} bundles")


def _folded(
    instructions: Items[tuple[Slot, str]], flat: Items[int], occupied: Items[int], interval: int, target: VliwTarget
) -> list[int] | None:
    """Return the bundles of a step's instructions if steps follow every `interval` bundles, None if impossible.

    Instructions keep their order and distances or move further apart.
    """
    taken: dict[int, dict[Slot, str]] = {}
    cells_taken: set[tuple[Slot, int]] = set()
    places = [0] * len(flat)
    delay = 0
    for index in sorted(range(len(flat)), key=lambda index: (flat[index], index)):
        slot, text = instructions[index]
        for _ in range(interval):
            offset = flat[index] + delay
            cells = {(slot, (offset + cycle) % interval) for cycle in range(occupied[index])}
            beside = {**taken.get(offset % interval, {}), slot: text}
            if len(cells) == occupied[index] and cells_taken.isdisjoint(cells) and _may_stand(beside, target):
                break
            delay += 1
        else:
            return None
        cells_taken |= cells
        taken[offset % interval] = beside
        places[index] = offset
    return places


def _may_stand(beside: dict[Slot, str], target: VliwTarget) -> bool:
    """Return whether instructions may share a bundle."""
    flow = Flow(parse(_line(beside), target.dialect, _FILE), target)
    return side_by_side(flow)


def _line(beside: dict[Slot, str]) -> str:
    return "; ".join(beside.get(slot, "nop") for slot in Slot) + "\n"


def _instructions(sequence: Sequence, target: VliwTarget) -> list[tuple[Slot, str]]:
    """Return a step as assembly: loads, the sequence, stores, and the address updates.

    If an address may have two parts, the loop's own iterator is one of them and moves all; otherwise every register
    has an address that the scalar slot advances.
    """
    two_parts = target.features.has[Feature.TWO_PART_ADDRESS]
    loads: list[EmittedInstruction] = []
    stores: list[EmittedInstruction] = []
    advances: list[EmittedInstruction] = []
    kept: list[SequenceRegister] = []
    shared = sequence.register()
    for ports, instructions in ((sequence.inputs, loads), (sequence.outputs, stores)):
        for register in (register for port in ports for register in port.registers):
            own = sequence.register()
            kept.append(own)
            address = (shared, own) if two_parts else (own,)
            if instructions is loads:
                instructions.append(EmittedInstruction(Slot.LOAD, "ld_l_v", (register, *address)))
            else:
                instructions.append(EmittedInstruction(Slot.STORE, "st_l_v", (*address, register)))
            if not two_parts:
                advances.append(EmittedInstruction(Slot.SPU, "add.i32", (own, own, target.registers.vector_bytes)))
    steps = [*loads, *sequence.steps, *stores, *advances]
    numbers = allocate(steps, [*kept, shared] if two_parts else kept, target)
    return [(step.slot, text_of(step, numbers)) for step in steps]


def _operation(program: TpcProgram, target: VliwTarget) -> BundleOperation:
    """Return the operation of a program of one bundle."""
    bundle, registers = program.bundles[0], Registers(target)
    plans = tuple(prepared(instruction, 0, slot, registers, target) for slot, instruction in bundle.occupied)
    operation = BundleRecorder((bundle,), (plans,), target).node(0, 0, 0, 0, ()).body.items[0]
    assert isinstance(operation, BundleOperation)
    return operation


class _Maker:
    """Builder of the bundles of a kernel; equal ones are one object."""

    def __init__(self, target: VliwTarget, kernel: OverlappedStep) -> None:
        self._target = target
        self._kernel = kernel
        self._nodes: dict[str, Lowered] = {}
        self._made: list[Instruction] = []

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The bundles, as instructions of the text."""
        return tuple(self._made)

    def node(self, number: int, steps: int) -> Lowered:
        """Return bundle `number` of a run of a number of steps."""
        texts: dict[Slot, str] = {}
        for (slot, text), offset in zip(self._kernel.instructions, self._kernel.places, strict=True):
            step, rest = divmod(number - offset, self._kernel.interval)
            if rest == 0 and 0 <= step < steps:
                texts[slot] = text
        return self._bundle(_line(texts))

    def loop_instruction(self) -> Lowered:
        """Return the bundle that starts the loop: alone, because its immediates require that."""
        names = tuple("loop" if slot is Slot.SPU else "" for slot in Slot)
        slot_cycles = tuple(int(slot is Slot.SPU) for slot in Slot)
        operation = BundleOperation(slot_cycles, names, 0, 0, 0, 1, 0)  # type: ignore[arg-type]  # four slots
        self._made.append(Instruction("loop", main_pipe(names), Span(_FILE, len(self._made) + 1, 1)))
        return Lowered(len(self._made) - 1, Block((operation,)))

    def _bundle(self, line: str) -> Lowered:
        if line not in self._nodes:
            program = parse(line, self._target.dialect, _FILE)
            operation = _operation(program, self._target)
            text = "|".join(name for name in operation.names if name) or "nop"
            self._made.append(Instruction(text, operation.pipe, Span(_FILE, len(self._made) + 1, 1)))
            self._nodes[line] = Lowered(len(self._made) - 1, Block((operation,)))
        return self._nodes[line]


def _mode(target: VliwTarget, asked: str | None) -> str:
    """Return a rounding mode in assembly spelling; the abstract name is accepted too."""
    modes = target.convert_rounding.modes
    if asked is None:
        return target.convert_rounding.default
    words = [word for word, mode in modes.items() if asked.lower() in (word, mode.rounding)]
    if not words:
        raise ReadError(f"unknown rounding mode '{asked}'", legal=modes)
    return words[0]


def _is_legal(shape: CastShape) -> Number:
    good = (shape.rows >= 0) & (shape.valid_rows >= 0) & (shape.valid_cols >= 0)
    good &= (shape.valid_rows <= shape.rows) & (shape.valid_cols <= shape.cols)
    return good & (shape.valid_cols <= shape.src_stride) & (shape.valid_cols <= shape.dst_stride)


def _check(shape: CastShape, span: Span | None = None) -> None:
    if not _is_legal(shape):
        raise TileError(
            f"valid region {shape.valid_rows} x {shape.valid_cols} does not fit {shape.rows} x {shape.cols} "
            f"with row strides {shape.src_stride} and {shape.dst_stride}",
            span=span,
        )
