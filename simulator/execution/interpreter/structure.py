"""What the structure of a program tells before it is walked, and of a lowered body afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from castsim.execution.tree import Block, Lowered, elements
from castsim.isa.errors import ReadError
from castsim.isa.pto import program as pto
from castsim.isa.pto.regions import nodes


def repeats_itself(node: pto.For, known: dict[int, bool]) -> bool:
    """Whether no trip of a loop that carries nothing can differ from another, as far as the text tells.

    That is so where nothing in it names its variable, and nothing changes what the next trip finds: the valid extents
    of a tile. `known` keeps the answers, by the identity of the loop.
    """
    if id(node) not in known:
        inside = tuple(nodes(node.body))
        shaped = any(isinstance(each, pto.SetValidShape) for each in inside)
        known[id(node)] = not shaped and not any(node.variable in _words(each) for each in inside)
    return known[id(node)]


def reads_memory(body: Sequence[pto.Operation]) -> bool:
    """Whether the scalar unit reads elements of memory or of tiles in a region."""
    return any(isinstance(node, pto.ScalarAccess) and node.reads for node in nodes(body))


def _words(node: pto.Operation) -> Iterator[str]:
    """Yield every word that an operation holds, the names of its values among them."""
    for attribute in node.__dataclass_fields__:
        held = getattr(node, attribute)
        yield from (part for part in (held if isinstance(held, tuple) else (held,)) if isinstance(part, str))


def synchronises(body: Sequence[pto.Operation]) -> bool:
    """Whether a program has flags or barriers of its own."""
    return any(isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) for node in nodes(body))


def has_flags(body: Sequence[pto.Operation]) -> bool:
    """Whether a program has flags of its own; barriers alone are none."""
    return any(isinstance(node, pto.SetFlag | pto.WaitFlag) for node in nodes(body))


def is_inserted(node: pto.Operation) -> bool:
    """Whether an operation is a flag or barrier that the text does not have."""
    return isinstance(node, pto.SetFlag | pto.WaitFlag | pto.Barrier) and node.inserted


def check_level(body: Sequence[pto.Operation], level: int | None) -> None:
    """Hold a program to a placement level of the vendor's tool (docs/reference/pto.md section 3.3), None to none.

    Raises:
        ReadError: a tile has an address below level 3, or lacks one at level 3.
    """
    if level is None:
        return
    for node in nodes(body):
        if not isinstance(node, pto.AllocTile | pto.AllocTiles) or (node.address is not None) == (level == 3):
            continue
        if level == 3:
            raise ReadError(f"%{node.result} has no address, which every tile needs at level 3", span=node.span)
        raise ReadError(f"unexpected 'addr' operand: the tool places tiles at level {level}", span=node.span)


def has_addresses(body: Sequence[pto.Operation]) -> bool:
    """Whether a program places its tiles itself (level 3)."""
    return any(isinstance(node, pto.AllocTile | pto.AllocTiles) and node.address is not None for node in nodes(body))


def main_pipe(body: Block) -> str:
    """Return the pipe that does the main work: the one of the last operation that is not the scalar unit's."""
    pipes = [element.pipe for element in elements(body) if not isinstance(element, Lowered)]
    busy = [pipe for pipe in pipes if pipe != bare(pto.Pipe.S)]
    return busy[-1] if busy else bare(pto.Pipe.S)


def bare(pipe: pto.Pipe) -> str:
    """Return a pipe's name without the prefix PIPE_."""
    return pipe.name
