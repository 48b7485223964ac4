"""What a program needs of the machine, seen without running it: refused here if the target does not have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from isa.errors import IllegalError
from simulator.dataflow.operations import Barrier, ControlWrite, ScalarWork, SetFlag, Transfer, WaitFlag
from simulator.tree import Block, Loop, Lowered, Node, Operation, Tree, elements
from targets.dataflow import DataflowTarget

ALL_PIPES = "ALL"
"""What a barrier over every pipe names."""


def count_operations(node: Node) -> Counter[str]:
    """Return how many operations `node` has per pipe, loops multiplied and not unrolled."""
    counts: Counter[str] = Counter()
    match node:
        case Block(items):
            for item in items:
                counts.update(count_operations(item))
        case Loop(trips, body):
            counts.update({pipe: trips * count for pipe, count in count_operations(body).items()})
        case Lowered():
            counts.update(count_operations(node.body))
        case _:
            counts[node.pipe] += 1
    return counts


def check(tree: Tree, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
    """Refuse what the target's machine cannot execute; `check_work` refuses operations of the vector unit.

    Raises:
        IllegalError: an operation of another mechanism, an unknown pipe or timing row, work sent to the scalar unit.
    """
    span = None
    try:
        for element in elements(tree.root):
            if isinstance(element, Lowered):
                span = tree.instructions[element.instruction].span
            else:
                check_operation(element, target, check_work)
    except IllegalError as error:
        raise (error.at(span) if span is not None else error) from None


def check_operation(operation: Operation, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
    """Refuse an operation that the target's machine cannot execute.

    Raises:
        IllegalError: as `check`, without a place.
    """
    pipes = target.pipes
    working = (pipes.vector, pipes.load, pipes.store)
    every = (pipes.scalar, *working, *pipes.others)
    match operation:
        case SetFlag():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.waiter, every, target)
        case WaitFlag():
            _check_pipe(operation.pipe, every, target)
            _check_pipe(operation.signaller, every, target)
        case Barrier(pipe):
            _check_pipe(pipe, (*every, ALL_PIPES), target)
        case ControlWrite() | ScalarWork():
            _check_pipe(operation.pipe, (pipes.scalar,), target)
        case Transfer():
            _check_pipe(operation.pipe, working, target)
        case _:
            check_work(operation)
            _check_pipe(operation.pipe, working, target)


def _check_pipe(name: str, legal: tuple[str, ...], target: DataflowTarget) -> None:
    if name not in legal:
        raise IllegalError(f"target '{target.name}' has no pipe '{name}' for this", legal=legal)
