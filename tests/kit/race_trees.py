"""Random programs for synchronisation and races: instructions on three pipes that touch a few bytes, in loops."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork, Transfer
from castsim.execution.tree import Access, Block, GlobalSpace, Instruction, InstructionRole, Loop, Lowered, Tree
from castsim.isa.errors import Span

PIPES = ("V", "MTE2", "MTE3")
_STEPS = (0, 0, 0, 4, 8, -4, 16)


@dataclass
class Builder:
    """Gathers instructions; instruction k stands in line k + 1 of `k.pto`."""

    instructions: list[Instruction] = field(default_factory=list)

    def add(
        self,
        text: str,
        pipe: str,
        operation: object,
        accesses: tuple[Access, ...] = (),
        role: InstructionRole = InstructionRole.WORK,
    ) -> Lowered:
        number = len(self.instructions)
        self.instructions.append(Instruction(text, pipe, Span("k.pto", number + 1, 3), role=role))
        return Lowered(number, Block((operation,)), accesses)

    def work(self, pipe: str, *accesses: Access) -> Lowered:
        """An instruction on a pipe; what it computes does not matter here."""
        return self.add(f"work on {pipe}", pipe, Transfer(pipe, True, "x", 0, 0, 0, 0, 1, 32), accesses)

    def set(self, pipe: str, waiter: str, event: int = 0) -> Lowered:
        return self.add(f"set_flag {pipe} -> {waiter} id {event}", pipe, FlagSignal(pipe, waiter, event))

    def wait(self, signaller: str, pipe: str, event: int = 0) -> Lowered:
        return self.add(f"wait_flag {signaller} -> {pipe} id {event}", pipe, FlagWait(pipe, signaller, event))

    def barrier(self, pipe: str = "ALL") -> Lowered:
        return self.add(f"barrier {pipe}", "S" if pipe == "ALL" else pipe, PipeBarrier(pipe))

    def scalar(self) -> Lowered:
        return self.add("loop", "S", ScalarWork("loop"))

    def tree(self, *items: object, interlocked: bool = False) -> Tree:
        return Tree(Block(items), tuple(self.instructions), interlocked)


def access(start: int, size: int, write: bool = False, *runs: tuple[int, int], space: str = "ub") -> Access:
    """`size` bytes at `start`, repeated by `runs`."""
    return Access(space, start, start + size + sum((n - 1) * d for n, d in runs), write, runs)


def steps_of(block: Block, *moves: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the steps of a loop around `block`, whose instructions move by `moves` in turn; none where they end."""
    rows: list[tuple[int, ...]] = []
    rest = list(moves)

    def walk(node: object) -> None:
        if isinstance(node, Block):
            for item in node.items:
                walk(item)
        elif isinstance(node, Loop):
            walk(node.body)
        else:
            assert isinstance(node, Lowered)
            still = (0,) * len(node.accesses)
            rows.append(rest.pop(0) if rest and node.accesses else still)
            rows.extend((0,) * len(operation.addresses) for operation in node.body.items)

    walk(block)
    return tuple(rows)


def accesses() -> st.SearchStrategy[Access]:
    runs = st.sampled_from([(), (), (), ((2, 8),), ((3, 8),), ((2, 16),), ((2, 24), (2, 6))])
    return st.builds(
        lambda start, size, write, runs, space: access(start, size, write, *runs, space=space),
        st.integers(0, 12).map(lambda n: n * 4 + 64), st.integers(1, 5), st.booleans(), runs,
        st.sampled_from(["ub", "ub", "ub", GlobalSpace.of("x")]),
    )  # fmt: skip


@st.composite
def programs(draw, *, flags: bool, depth: int = 2, most_trips: int = 7):
    """A program with flags and barriers at random, or without any."""
    builder = Builder()
    tree = builder.tree(*draw(_items(builder, flags, depth, most_trips)).items, interlocked=not flags)
    return Tree(tree.root, tuple(builder.instructions), tree.interlocked)


@st.composite
def _items(draw, builder: Builder, flags: bool, depth: int, most_trips: int):
    items: list[object] = []
    open_flags: list[tuple[str, str, int]] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.integers(0, 9))
        if flags and kind >= 7:
            pipes = draw(st.sampled_from([("V", "MTE2"), ("MTE2", "V"), ("V", "MTE3"), ("MTE3", "MTE2"), ("V", "V")]))
            key = (*pipes, draw(st.integers(0, 1)))
            if draw(st.integers(0, 9)):
                items.append(builder.set(*key))
            open_flags.append(key)
        elif flags and kind == 6:
            items.append(builder.barrier(draw(st.sampled_from(["ALL", "V", "MTE2"]))))
        elif depth and kind >= 4:
            body = draw(_items(builder, flags, depth - 1, most_trips))
            count = sum(len(node.accesses) > 0 for node in _lowered(body))
            moves = [
                draw(st.tuples(*[st.sampled_from(_STEPS)] * len(n.accesses))) for n in _lowered(body) if n.accesses
            ]
            assert len(moves) == count
            items.append(Loop(draw(st.integers(1, most_trips)), body, steps_of(body, *moves)))
        else:
            found = draw(st.lists(accesses(), min_size=1, max_size=2))
            items.append(builder.work(draw(st.sampled_from(PIPES)), *found))
        while open_flags and draw(st.integers(0, 2)):
            items.append(builder.wait(*open_flags.pop(0)))
    for key in open_flags:
        if draw(st.integers(0, 4)):
            items.append(builder.wait(*key))
    return Block(tuple(items))


def _lowered(node: object):
    if isinstance(node, Lowered):
        yield node
    elif isinstance(node, Loop):
        yield from _lowered(node.body)
    elif isinstance(node, Block):
        for item in node.items:
            yield from _lowered(item)
