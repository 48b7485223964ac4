"""What a program needs of the machine, seen without running it: refused here if the target does not have it."""

from __future__ import annotations

from collections import Counter

from isa.errors import IllegalError
from simulator.strided.operations import Barrier, SetFlag, StridedOperation, Transfer, VectorOperation, WaitFlag
from simulator.tree import Block, Loop, Lowered, Node, Tree, elements
from targets.strided_repeat import StridedRepeatTarget

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


def check(tree: Tree, target: StridedRepeatTarget) -> None:
    """Refuse what the target's machine cannot execute.

    Raises:
        IllegalError: an operation of another mechanism, an unknown pipe or timing row, work sent to the scalar unit.
    """
    span = None
    try:
        for element in elements(tree.root):
            if isinstance(element, Lowered):
                span = tree.instructions[element.instruction].span
            else:
                _check_operation(element, target)
    except IllegalError as error:
        raise (error.at(span) if span is not None else error) from None


def _check_operation(operation: object, target: StridedRepeatTarget) -> None:
    if not isinstance(operation, StridedOperation):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    pipes = target.pipes
    working = (pipes.vector, pipes.load, pipes.store)
    if isinstance(operation, VectorOperation | Transfer):
        _check_pipe(operation.pipe, working, target)
        if isinstance(operation, VectorOperation) and operation.timing not in target.timing.vector:
            raise IllegalError(
                f"target '{target.name}' has no vector timing '{operation.timing}'", legal=target.timing.vector
            )
        return
    legal = (pipes.scalar, *working, *pipes.others)
    named: tuple[str, ...]
    match operation:
        case SetFlag():
            named = (operation.pipe, operation.waiter)
        case WaitFlag():
            named = (operation.pipe, operation.signaller)
        case Barrier(pipe):
            named, legal = (pipe,), (*legal, ALL_PIPES)
        case _:
            named, legal = (operation.pipe,), (pipes.scalar,)
    for name in named:
        _check_pipe(name, legal, target)


def _check_pipe(name: str, legal: tuple[str, ...], target: StridedRepeatTarget) -> None:
    if name not in legal:
        raise IllegalError(f"target '{target.name}' has no pipe '{name}' for this", legal=legal)
