"""What the structure of a program tells before it is walked, and of a lowered body afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isa.pto import program as pto
from simulator.tree import Block, Lowered, elements


def nodes(body: Sequence[pto.Operation]) -> Iterator[pto.Operation]:
    """Yield every operation of a region and of the regions in it, in the order of the text."""
    for node in body:
        yield node
        if isinstance(node, pto.For | pto.Section):
            yield from nodes(node.body)
        elif isinstance(node, pto.If):
            yield from nodes(node.then_body)
            yield from nodes(node.else_body)


def synchronises(body: Sequence[pto.Operation]) -> bool:
    """Whether a program has flags or barriers of its own."""
    return any(isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) for node in nodes(body))


def has_addresses(body: Sequence[pto.Operation]) -> bool:
    """Whether a program places its tiles itself (level 3)."""
    return any(isinstance(node, pto.AllocTile) and node.address is not None for node in nodes(body))


def main_pipe(body: Block) -> str:
    """Return the pipe that does the main work: the one of the last operation that is not the scalar unit's."""
    pipes = [element.pipe for element in elements(body) if not isinstance(element, Lowered)]
    busy = [pipe for pipe in pipes if pipe != bare(pto.Pipe.S)]
    return busy[-1] if busy else bare(pto.Pipe.S)


def bare(pipe: pto.Pipe) -> str:
    """Return a pipe's name without the prefix PIPE_."""
    return pipe.value.removeprefix("PIPE_")
