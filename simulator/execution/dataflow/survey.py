"""What a program consists of and needs of the machine, seen without running it; both engines begin with it.

Every distinct node is looked at once: a straight-line program of ten million instructions may consist of a dozen
different ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from castsim.execution.dataflow.operations import (
    Barrier,
    ControlWrite,
    Placeholder,
    ScalarAccess,
    ScalarWork,
    SetFlag,
    Transfer,
    WaitFlag,
)
from castsim.execution.tree import Block, GlobalSpace, Loop, Lowered, Node, Operation, Tree
from castsim.isa.errors import IllegalError
from castsim.targets.dataflow import DataflowTarget

ALL_PIPES = "ALL"
"""What a barrier over every pipe names."""


class Survey:
    """A look at one tree; its blocks must live as long."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._items: dict[int, tuple[Mapping[int, Node], Mapping[int, int]]] = {}
        self.executions = self._count_executions(tree.root)
        """How many instructions are executed, loops multiplied and not unrolled."""
        self.operations = self._count_operations(tree.root)
        """How many operations every pipe executes."""

    def check(self, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
        """Refuse what the target's machine cannot execute; `check_work` refuses operations of the vector unit.

        Raises:
            IllegalError: an operation of another mechanism, an unknown pipe or timing row, work for the scalar unit.
        """
        span = None
        try:
            for element in self.elements():
                if isinstance(element, Lowered):
                    span = self._tree.instructions[element.instruction].span
                else:
                    _check_operation(element, target, check_work)
        except IllegalError as error:
            raise (error.at(span) if span is not None else error) from None

    def followed_spaces(self) -> list[str]:
        """Return the address spaces in which accesses in flight have to be followed.

        Global memory that the whole program only reads, or only writes, is not among them: loads do not disturb each
        other, and stores never overlap in time because one pipe does them one by one.
        """
        touched: dict[str, set[bool]] = {}
        for element in self.elements():
            if isinstance(element, Lowered):
                for access in element.accesses:
                    touched.setdefault(access.space, set()).add(access.write)
        return [
            space
            for space, writes in touched.items()
            if True in writes and (len(writes) > 1 or not isinstance(space, GlobalSpace))
        ]

    def elements(self) -> Iterator[Lowered | Operation]:
        """Yield the elements of the tree in pre-order; what stands several times in a block only once."""
        return self._elements(self._tree.root)

    def _elements(self, node: Node) -> Iterator[Lowered | Operation]:
        if isinstance(node, Block):
            for item in self._distinct(node)[0].values():
                yield from self._elements(item)
        elif isinstance(node, Loop):
            yield from self._elements(node.body)
        else:
            yield node
            if isinstance(node, Lowered):
                yield from self._elements(node.body)

    def _distinct(self, block: Block) -> tuple[Mapping[int, Node], Mapping[int, int]]:
        """Return the items of a block by identity, and how often each stands there."""
        known = self._items.get(id(block))
        if known is None:
            items = block.items
            known = self._items[id(block)] = (dict(zip(map(id, items), items, strict=True)), Counter(map(id, items)))
        return known

    def _count_executions(self, node: Node) -> int:
        if isinstance(node, Block):
            items, times = self._distinct(node)
            return sum(times[key] * self._count_executions(item) for key, item in items.items())
        return node.trips * self._count_executions(node.body) if isinstance(node, Loop) else 1

    def _count_operations(self, node: Node) -> Counter[str]:
        if isinstance(node, Block):
            items, times = self._distinct(node)
            counts: Counter[str] = Counter()
            for key, item in items.items():
                counts.update(_multiplied(self._count_operations(item), times[key]))
            return counts
        if isinstance(node, Loop):
            return _multiplied(self._count_operations(node.body), node.trips)
        return self._count_operations(node.body) if isinstance(node, Lowered) else Counter((node.pipe,))


def _multiplied(counts: Counter[str], times: int) -> Counter[str]:
    return Counter({name: times * count for name, count in counts.items()})


def _check_operation(operation: Operation, target: DataflowTarget, check_work: Callable[[object], None]) -> None:
    """Refuse an operation that the target's machine cannot execute; the error has no place yet."""
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
        case ScalarWork() | ScalarAccess():
            _check_pipe(operation.pipe, (pipes.scalar,), target)
        case ControlWrite(pipe=pipe) if pipe != pipes.vector:
            _check_pipe(pipe, (pipes.scalar,), target)
        case Placeholder():
            _check_pipe(operation.pipe, every, target)
        case Transfer():
            _check_pipe(operation.pipe, working, target)
        case _:
            check_work(operation)
            _check_pipe(operation.pipe, working, target)


def _check_pipe(name: str, legal: tuple[str, ...], target: DataflowTarget) -> None:
    if name not in legal:
        raise IllegalError(f"target '{target.name}' has no pipe '{name}' for this", legal=legal)
