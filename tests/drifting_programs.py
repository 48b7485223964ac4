"""Random loops in which pipes drift apart: several groups of pipes with flags of their own, nothing between them."""

from __future__ import annotations

import random

from engine_trees import KIBI, cast, control, load, lowered, program, store
from fast_programs import FUNCTION_TARGETS, STRIDED_TARGETS, Programs, function_work

from castsim.execution.tree import Block, Loop, Lowered, Tree, elements
from castsim.machines.strided.operations import Barrier, ScalarWork, SetFlag, WaitFlag
from castsim.targets import Target

_SPLITS = (
    (("V",), ("MTE2",)), (("V",), ("MTE3",)), (("MTE2",), ("MTE3",)), (("V", "MTE3"), ("MTE2",)),
    (("V", "MTE2"), ("MTE3",)), (("MTE2", "MTE3"), ("V",)), (("V",), ("MTE2",), ("MTE3",)),
)  # fmt: skip


class _Loops:
    """Loops from one generator of random numbers; `wide`: addresses may move from trip to trip."""

    def __init__(self, seed: int, functions: bool) -> None:
        self.random = random.Random(seed)
        self.programs = Programs(seed, function_work) if functions else None

    def work(self, pipe: str) -> list[object]:
        """Return the operations of one instruction on a pipe."""
        choice, place = self.random.choice, self.random.randrange(600) * 32
        operations: list[object] = [control()] if self.random.random() < 0.3 else []
        if pipe == "V" and self.programs is not None:
            return [*operations, function_work(self.programs)]
        if pipe == "V":
            formats = choice((("f32", "f16"), ("f16", "f32"), ("f32", "i32")))
            return [*operations, cast(choice((1, 2, 5, 9, 40)), place, choice((place, 64 * KIBI)), formats=formats)]
        size = choice((32, 300, 1000, 2048))
        return [*operations, (load if pipe == "MTE2" else store)(place, size, bursts=choice((1, 1, 2)))]

    def body(self, groups: tuple[tuple[str, ...], ...]) -> Block:
        items: list[Lowered | Loop] = [lowered(0, ScalarWork("loop"))]
        for group in groups:
            for pipe in group:
                for _ in range(self.random.choice((1, 1, 1, 2))):
                    items.append(lowered(self.random.randrange(1, 9), *self.work(pipe)))
                if self.random.random() < 0.1:
                    items.append(lowered(9, Barrier(pipe)))
            if len(group) == 2 and self.random.random() < 0.9:
                one, other = self.random.sample(group, 2)
                items.append(lowered(10, SetFlag(one, other, 0), WaitFlag(other, one, 0)))
        if self.random.random() < 0.5:
            self.random.shuffle(items)
        if self.random.random() < 0.1:
            items.append(self.loop(2, Block((lowered(11, *self.work(groups[0][0])),))))
        return Block(tuple(items))

    def loop(self, trips: int, body: Block) -> Loop:
        step = self.random.choice((0,) * 12 + (32, 512, 64 * KIBI, -64))
        return Loop(trips, body, tuple((step,) * len(element.addresses) for element in elements(body)))

    def tree(self) -> Tree:
        groups = list(self.random.choice(_SPLITS))
        self.random.shuffle(groups)
        few = [lowered(12, *self.work(pipe)) for pipe in ("MTE2", "V", "MTE3")]
        before = few[: self.random.choice((0, 0, 1, 3))]
        loop = self.loop(self.random.choice((40, 97, 300, 500)), self.body(tuple(groups)))
        after: list[Lowered | Loop] = self.random.choice(
            ([], [], [lowered(13, Barrier("ALL")), *few], [few[self.random.randrange(3)]], [*few, loop])
        )
        return program(*before, loop, *after)


def drifting(seed: int, *, functions: bool = False) -> tuple[Tree, Target]:
    """Return a tree and a target."""
    loops = _Loops(seed, functions)
    targets = FUNCTION_TARGETS if functions else STRIDED_TARGETS
    return loops.tree(), loops.random.choice(targets)
