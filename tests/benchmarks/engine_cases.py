"""Programs whose simulation is timed: tile casts, wide instructions, bundles, loops."""

from __future__ import annotations

from dataclasses import dataclass

from castsim.execution.tree import Block, Instruction, Loop, Lowered, Tree, elements, width
from castsim.isa.errors import Span
from castsim.isa.formats import format_named
from castsim.machines.mechanisms import lowerer_of
from castsim.machines.strided.strided_instructions import StridedInstruction
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.machines.vliw.stage_latency import BundleOperation
from castsim.targets.dataflow import DataflowTarget
from castsim.targets.loader import Target, load_target
from castsim.tools.estimate.cast_estimates import CastShape, OperandPlacement, TileCastRequest

_NOWHERE = Span("<benchmark>", 1, 1)
BLOCK = 32


@dataclass(frozen=True, slots=True)
class Program:
    """One kind of instruction, repeated: `blocks` is how many blocks of the buffer each asks for."""

    name: str
    target: Target
    node: Lowered
    blocks: int

    def straight(self, count: int) -> Tree:
        """Return `count` instructions in a row; they share what they were lowered to."""
        return self._tree(Block((self.node,) * count))

    def loop(self, trips: int) -> Tree:
        """Return a loop of one instruction."""
        body = Block((self.node,))
        still = tuple(tuple(0 for _ in element.addresses) for element in elements(body))
        assert len(still) == width(body)
        return self._tree(Block((Loop(trips, body, still),)))

    def _tree(self, root: Block) -> Tree:
        return Tree(root, (Instruction(self.name, "V", _NOWHERE),), interlocked=False)


def tile_cast(name: str, src: str, dst: str, rows: int, cols: int) -> Program:
    """Return a cast of whole tiles on a chip with a tile buffer."""
    target = load_target(name)
    assert isinstance(target, DataflowTarget)
    lowerer = lowerer_of(target)
    request = TileCastRequest(format_named(src), format_named(dst), None, None, False)
    shape = CastShape(rows, cols, cols, rows, cols, cols)
    lowered = lowerer.cast(OperandPlacement.of(target, lowerer, request).cast(lowerer, shape))
    node = Lowered(0, lowered.body, lowered.accesses)
    return Program(f"{name} tcvt {src} -> {dst} {rows}x{cols}", target, node, _blocks(node, rows * cols, src, dst))


def bundle(name: str) -> Program:
    """Return a bundle that loads, converts and stores a vector of local memory."""
    work, names = (1, 0, 1, 1), ("ld_l_v", "", "convert", "st_l_v")
    operation = BundleOperation(work, names, loads=0, stores=0, data_due=0, effect=7, bubbles=0)
    return Program(f"{name} bundle", load_target(name), Lowered(0, Block((operation,))), 0)


def _blocks(node: Lowered, count: int, src: str, dst: str) -> int:
    """Return the blocks of a cast of dense tiles."""
    worked = any(isinstance(each, StridedInstruction | VectorFunction) for each in elements(node))
    bits = format_named(src).bits + format_named(dst).bits
    return count * bits // 8 // BLOCK if worked else 0


def tile_casts() -> tuple[Program, ...]:
    """Return a small cast, one of 64 blocks, one of A5."""
    return (
        tile_cast("a2a3", "f32", "f16", 1, 64),
        tile_cast("a2a3", "f32", "i32", 4, 64),
        tile_cast("a5", "f32", "f16", 1, 64),
    )


def every_program() -> tuple[Program, ...]:
    """Return all programs that are timed."""
    return (*tile_casts(), bundle("gaudi2"))
