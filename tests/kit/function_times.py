"""Timing single vector functions of A5 in the engine tests."""

from __future__ import annotations

from decimal import Decimal

from kit.a5_cases import A5, SPAN, Shape, lowerer, make_cast

from castsim.engines.event_function import FunctionSimulation
from castsim.execution.timing import Listener, Timing
from castsim.execution.tree import Block, Instruction, Lowered, Node, Tree
from castsim.machines.vector_function.function_operations import VectorFunction
from castsim.targets.vector_function import VectorFunctionTarget

LIMIT = 10**9


def padded(rows: int, cols: int) -> Shape:
    """A shape of the 2D kernels, also for a single valid row: the tile has another one."""
    return Shape(rows + 1, cols + 64, rows, cols)


def flat(cols: int) -> Shape:
    return Shape(1, cols, 1, cols)


def function_of(
    src: str,
    dst: str,
    shape: Shape,
    *,
    saturation: str | None = None,
    places: tuple[int, int] | None = None,
    kind: int = 0,
) -> VectorFunction:
    cast = make_cast(src, dst, shape, None, saturation, places=places)
    body = lowerer(implementation_kind=kind).cast(cast).body
    return next(item for item in body.items if isinstance(item, VectorFunction))


def tree_of(*nodes: Node) -> Tree:
    return Tree(Block((Lowered(0, Block(nodes)),)), (Instruction("tcvt", "V", SPAN),), interlocked=False)


def timed(*nodes: Node, target: VectorFunctionTarget = A5, observer: Listener | None = None) -> Timing:
    """Simulate operations issued one after the other."""
    return FunctionSimulation(tree_of(*nodes), target, observer).run(LIMIT)


def cycles(src: str, dst: str, shape: Shape, *, target: VectorFunctionTarget = A5, **choice: object) -> int:
    """Cycles of a cast from the launch of its function to the end of it."""
    execution = timed(function_of(src, dst, shape, **choice), target=target).executions[0]
    return execution.end - execution.start


def with_fact(table: str, key: str, value: object) -> VectorFunctionTarget:
    """A5 with one other timing fact; a number or text becomes a decimal."""
    facts = getattr(A5.timing, table)
    changed = value if isinstance(value, dict) else Decimal(str(value))
    timing = A5.timing.model_copy(update={table: facts.model_copy(update={key: changed})})
    return A5.model_copy(update={"timing": timing})
