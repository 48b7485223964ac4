"""Random operation trees for comparing engines: flags, barriers, loops, interlocks, overlapping tiles, both mechanisms.

Half of the trees deadlock or not as they come; nothing here knows what is to be expected of them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal

from kit.engine_trees import FULL, KIBI, a2a3, cast, control, load, lowered, mask_write, program, store

from castsim.execution.pipe_operations import FlagSignal, FlagWait, PipeBarrier, ScalarWork
from castsim.execution.tree import Access, Block, GlobalSpace, Loop, Lowered, elements
from castsim.isa.formats import FORMATS
from castsim.isa.pto.value_types import MicroOperation, vector
from castsim.machines.vector_function.function_operations import (
    Nest,
    VectorFunction,
    barrier_step,
    compute_step,
    load_step,
    select_step,
    store_step,
)
from castsim.targets.description import with_cores, with_facts
from castsim.targets.loader import load_target

PIPES = ("V", "MTE2", "MTE3", "S", "M")

STRIDED_TARGETS = (
    a2a3(),
    a2a3(vector_head="always"),
    a2a3(vconv=(0, 1, 0), vand=(3, 2, 20), vector_dup=(1, 1, 1), load=(0, "594.3"), store=(2, "64")),
    a2a3(issue_cycles=0, control_write_cycles=0, synchronisation_cycles=0, load=(3, "16.36"), vconv=(2, 3, 5)),
    with_facts(a2a3(), {"timing.vector_pipe.mask_change_cycles": 3, "timing.vector.*.conflict_cycles": Decimal("0.4")}),
    with_facts(a2a3(), {"timing.vector.*.read_cycles": 2}),
    with_facts(a2a3(), {"timing.vector_pipe.tail_cycles": 0, "timing.vector.*.fills_always": True}),
    a2a3(issue_cycles=40, loop_turnaround_cycles=90, load=(30, "128"), store=(5, "300")),
)


class Programs:
    """A generator of trees from one seed; small ones have next to no loops."""

    def __init__(self, seed: int, work, *, small: bool = False) -> None:
        self.small = small
        self.random = random.Random(seed)
        self.work = work
        self.open_flags: list[FlagSignal] = []
        self.sound = self.random.random() < 0.8
        self.few = self.random.random() < 0.5

    def address(self) -> int:
        if self.few or self.random.random() < 0.3:
            return self.random.randrange(4) * 4 * KIBI
        return self.random.randrange(600) * 32

    def pipe(self) -> str:
        return self.random.choice(PIPES[: 3 if self.random.random() < 0.8 else 5])

    def transfer(self):
        make = self.random.choice((load, store))
        pitch = self.random.choice((None, 512, 320))
        return make(self.address(), self.random.randint(0, 300), bursts=self.random.randint(0, 4), pitch=pitch)

    def operation(self):
        kind = self.random.random()
        if kind < 0.4:
            return self.work(self)
        if kind < 0.65:
            return self.transfer()
        if kind < 0.75:
            return self.random.choice((control(), ScalarWork("loop"), ScalarWork("arithmetic")))
        if kind < 0.85:
            return PipeBarrier(self.random.choice(("V", "V", "MTE2", "MTE3", "ALL", "S")))
        flag = FlagSignal(self.pipe(), self.pipe(), self.random.randrange(2))
        self.open_flags.append(flag)
        return flag

    def access(self) -> Access:
        start = self.address()
        space = self.random.choice(("ub", "ub", "ub", GlobalSpace.of("x")))
        return Access(space, start, start + self.random.randint(0, 4 * KIBI), self.random.random() < 0.5)

    def instruction(self, number: int) -> Lowered:
        operations = [self.operation() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        if self.open_flags and self.random.random() < 0.5:
            # A wait behind its signal in program order never ends in a deadlock, unless a loop sets them apart.
            flag = self.open_flags.pop(self.random.randrange(len(self.open_flags)))
            operations.append(FlagWait(flag.waiter, flag.pipe, flag.event))
        if not self.sound and self.random.random() < 0.05:
            operations.append(FlagWait(self.pipe(), self.pipe(), 0))
        if operations and self.random.random() < 0.1:
            operations = [self.loop(Block(tuple(operations)))]
        accesses = tuple(self.access() for _ in range(self.random.choice((0, 1, 2, 3))))
        return lowered(number, *operations, accesses=accesses)

    def block(self, depth: int) -> Block:
        items = []
        for _ in range(self.random.randint(0 if depth == 0 else 1, 6 if depth == 0 else 4)):
            if depth < (1 if self.small else 2) and self.random.random() < (0.1 if self.small else 0.3):
                items.append(self.loop(self.block(depth + 1)))
            else:
                items.append(self.instruction(self.random.randrange(32)))
        return Block(tuple(items))

    def loop(self, body: Block) -> Loop:
        still = self.random.random() < 0.6
        step = 0 if still else self.random.choice((32, 64, 256, 512, 6144, -32))
        odd = self.random.random() < 0.3
        steps = tuple(
            tuple(0 if odd and self.random.random() < 0.5 else step for _ in element.addresses)
            for element in elements(body)
        )
        return Loop(self.random.choice((0, 1, 2, 3, 5) if self.small else (0, 1, 2, 3, 5, 9, 20, 45)), body, steps)

    def tree(self):
        self.open_flags = []
        root = self.block(0)
        return program(*root.items, interlocked=self.random.random() < 0.6)


def strided_work(programs: Programs):
    """A vector instruction with one source or two, none, or rows that conflict; or a write of the mask."""
    choice = programs.random.choice
    if programs.random.random() < 0.2:
        return mask_write()
    instruction = cast(
        programs.random.randint(1, 5),
        programs.address(),
        programs.address(),
        formats=choice((("f32", "f16"), ("f16", "f32"), ("f32", "i32"))),
        block_stride=choice((1, 1, 1, 2, 8, 16)),
        repeat_strides=(choice((8, 8, 0, 1, 3)), choice((4, 4, 0, 16))),
        mask=choice((FULL, FULL, 1, 0, 0xFF00)),
        timing=choice(("vconv", "vand", "vadd", "vector_dup", "vmul", "vcopy", "vconv_f322f16", "vconv_f322bf16")),
    )
    if instruction.timing not in ("vand", "vadd", "vmul"):
        return instruction
    second = replace(instruction.sources[0], address=programs.address())
    return replace(instruction, sources=(*instruction.sources, second))


def shared(target, chance: random.Random):
    """Half of the targets with many cores at work, which share global memory."""
    return with_cores(target, chance.choice((5, 24, 48))) if chance.random() < 0.5 else target


def strided(seed: int, *, small: bool = False):
    """Return a tree and a target."""
    programs = Programs(seed, strided_work, small=small)
    return programs.tree(), shared(programs.random.choice(STRIDED_TARGETS), programs.random)


# ---------------------------------------------------------------------------------------------- vector functions

A5 = load_target("a5")
_REGISTERS = ("v0", "v1", "v2", "v3")
_LOADS = ("NORM", "NORM", "UNPK_B16", "UNPK_B8", "DINTLV_B32", "BRC_B32", "BLK", "MASK_B16")
_STORES = ("NORM_B32", "NORM_B32", "PK_B32", "PK4_B32", "ONEPT_B32")
_COMPUTES = ("vadd", "vmul", "vmax", "vexp", "vsqrt", "vdiv", "vsub", "division")


def _with_timing(**changes):
    """A5 with other facts: `launch={"startup_cycles": "0"}`."""
    timing = A5.timing
    for table, facts in changes.items():
        row = getattr(timing, table)
        known = {key: Decimal(value) if isinstance(value, str) else value for key, value in facts.items()}
        timing = timing.model_copy(update={table: row.model_copy(update=known)})
    return A5.model_copy(update={"timing": timing})


_SLOW_LOAD, _FAST_LOAD = {"startup_cycles": 20}, {"startup_cycles": 1}
FUNCTION_TARGETS = (
    A5,
    A5,
    _with_timing(launch={"startup_cycles": "0", "drain_cycles": "0.5"}, branch={"cycles": "3.25"}, load=_SLOW_LOAD),
    _with_timing(port={"store_cycles": "2.5"}, access={"load_cycles": "3.5"}, store={"startup_cycles": 3}),
    _with_timing(
        loops={"turnaround_cycles": "0", "row_loop_cycles": "0"}, port={"store_cycles": "0.3"}, load=_FAST_LOAD
    ),
    _with_timing(scalar={"issue_cycles": 30}, special_function={"ports": 1}, load={"bytes_per_cycle": "512"}),
)  # fmt: skip


class _Functions:
    """Random vector functions; what they compute makes no sense."""

    def __init__(self, programs: Programs) -> None:
        self.random = programs.random
        self.place = programs.address
        self.operands = self.random.randrange(3)

    def register(self) -> str:
        return self.random.choice(_REGISTERS)

    def load(self) -> MicroOperation:
        steps = (
            None if self.random.random() < 0.7 else (self.random.choice((0, 256, 96)), self.random.choice((0, 256, 4)))
        )
        operand = self.random.randrange(self.operands + 1)
        return load_step(tuple({self.register(), self.register()}), self.random.choice(_LOADS), operand, steps)

    def compute(self):
        kind = self.random.randrange(8)
        predicate = self.random.choice(("p0", "p1", "v3"))
        if kind < 2:
            result, source = self.register(), self.register()
            name, kinds = ("vcvt", "vtrc")[kind], ((vector("f32"),), (vector("f16"),))
            return MicroOperation(name, (source, predicate), kinds[0], (result,), kinds[1], (("rnd", "R"),))
        if kind == 2:
            return compute_step("vor", (self.register(),), (self.register(), self.register(), predicate), 16)
        if kind == 3:
            return compute_step("vselr", (self.register(),), (self.register(), self.register()), 0)
        if kind == 4:
            return compute_step("vintlv", (self.register(), self.register()), (self.register(), self.register()), 8)
        if kind == 5:
            return compute_step("punpack", ("p1",), ("p0",), 0)
        sources = tuple(self.register() for _ in range(self.random.randint(1, 2)))
        return compute_step(self.random.choice(_COMPUTES), (self.register(),), sources, self.random.choice((16, 32)))

    def store(self) -> MicroOperation:
        return store_step(self.register(), "p1", self.random.choice(_STORES), self.random.choice((0, 0, 128)))

    def nest(self) -> Nest:
        chance = self.random.random
        rows, trips = self.random.choice((1, 1, 2, 3)), self.random.choice((1, 1, 2, 5, 9))
        trip = [self.load() for _ in range(self.random.choice((0, 1, 1, 1, 2, 3)))]
        trip += [self.compute() for _ in range(self.random.randint(0, 4))]
        for _ in range(self.random.choice((0, 1, 1, 2))):
            trip += [barrier_step("VST_VST")] * (chance() < 0.2) + [self.store()]
        trip += [select_step("p0", 8, "tail")] * (chance() < 0.15)
        closes = chance() < 0.2
        elements = self.random.choice((32, 64, 128))
        return Nest(
            rows=rows,
            row_loop=rows > 1 or chance() < 0.5,
            trips=trips,
            count=max(1, elements * trips - self.random.choice((0, 0, 5))),
            elements=elements,
            counters={},
            row=tuple(self.load() for _ in range(self.random.choice((0, 0, 0, 1, 2)))),
            trip=tuple(trip),
            source_row=self.random.choice((0, 256, 480, 2048)),
            source_trip=self.random.choice((64, 128, 256)),
            destination_row=self.random.choice((0, 256, 480, 2048)),
            destination_trip=self.random.choice((64, 128, 256)),
            close=(self.compute(), self.store()) if closes else (),
            close_bytes=32 if closes else 0,
            writes=self.random.choice((None, None, self.random.randrange(self.operands + 1))),
            post_update=chance() < 0.1,
        )

    def function(self) -> VectorFunction:
        nests = tuple(self.nest() for _ in range(self.random.choice((0, 1, 1, 1, 2))))
        formats = (FORMATS["f32"], self.random.choice((FORMATS["f16"], FORMATS["e2m1"])))
        places = (self.place(), self.place())
        others = tuple(self.place() for _ in range(self.operands))
        return VectorFunction("vf", *places, *formats, 256, (), nests, nests, "V", others)


def function_work(programs: Programs):
    """A vector function."""
    return _Functions(programs).function()


def functions(seed: int, *, small: bool = False):
    """Return a tree and a target."""
    programs = Programs(seed, function_work, small=small)
    return programs.tree(), shared(programs.random.choice(FUNCTION_TARGETS), programs.random)
