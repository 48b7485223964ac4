"""Launches of micro programs for tests: the instructions of a vector function's kernel, random ones, their time."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from castsim.machines.vector_function.operations import (
    Bitwise,
    Compute,
    Convert,
    CountDown,
    Duplicate,
    Gather,
    Interleave,
    Load,
    MemoryBarrier,
    Nest,
    RegisterOperation,
    SetAll,
    Spread,
    Store,
    TripSelect,
    VectorFunction,
)
from castsim.machines.vector_function.profile import mnemonic
from castsim.machines.vector_function.scopes import Instruction, Kind, Scope
from castsim.machines.vector_function.trip_shape import LoadStep, StoreStep, trip_shape
from castsim.targets.register_text import Mode, distribution_of
from castsim.targets.vector_function import VectorFunctionTarget

LOAD = Instruction("vlds", Kind.LOAD, size=256)
STORE = Instruction("vsts", Kind.STORE, size=256)


def compute(name: str, width: int = 32) -> Instruction:
    """An instruction that computes."""
    return Instruction(name, Kind.COMPUTE, width)


def barrier(word: str) -> Instruction:
    """A memory barrier."""
    return Instruction("mem_bar", Kind.BARRIER, word=word)


class Kernel:
    """A vector function written out as the instructions of its kernel text."""

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self.function, self.target = function, target
        self.scope = Scope()
        self.names: dict[str, int] = {}

    def written(self) -> Scope:
        """The scope of the nests whose time counts."""
        for nest in self.function.timed:
            if nest.runs:
                self._nest(nest)
        return self.scope

    def _nest(self, nest: Nest) -> None:
        if nest.row_loop:
            self.scope.begin_loop(nest.rows)
        # Predicates that do not change are made before the loop (docs/reference/a5.md section 6.2, rule 3).
        still = nest.row_loop and nest.trips == 1
        trip = [item for item in nest.trip if not (still and isinstance(item, Spread | TripSelect))]
        shape = trip_shape(nest, self.target)
        for row in range(nest.rows):
            self._issue(nest.row, nest, row, 0, shape.row_loads, ())
            self.scope.begin_loop(nest.trips)
            for number in range(nest.trips):
                self._issue(trip, nest, row, number, shape.loads, [each for each in shape.stores if not each.closing])
                self.scope.end_trip()
            if nest.row_loop:
                self.scope.end_trip()

    def _issue(
        self,
        items: Iterable[RegisterOperation],
        nest: Nest,
        row: int,
        trip: int,
        loads: Iterable[LoadStep],
        stores: Iterable[StoreStep],
    ) -> None:
        loads, stores = iter(loads), iter(stores)
        function = self.function
        for item in items:
            match item:
                case Load():
                    step = next(loads)
                    far, near = step.steps
                    unpacks = distribution_of(item.distribution).mode is Mode.UNPK
                    kind = Instruction(
                        "vlds", Kind.LOAD, size=step.size, unpacks=unpacks, updates=nest.post_update, masks=step.mask
                    )
                    place = function.operand(step.operand) + row * far + trip * near
                    self._put(kind, (), item.results, place)
                case Store():
                    step = next(stores)
                    start = trip * nest.destination_trip + step.offset
                    row_bytes = -(-nest.count * nest.destination_trip // nest.elements)
                    size = max(0, min(step.size, row_bytes - start))
                    place = function.destination if nest.writes is None else function.operand(nest.writes)
                    kind = Instruction("vsts", Kind.STORE, size=size)
                    self._put(kind, (item.source, item.predicate), (), place + row * nest.destination_row + start)
                case MemoryBarrier():
                    self.scope.issue(barrier(item.kinds))
                case TripSelect():
                    self.scope.issue(Instruction("select", Kind.SELECT))
                case CountDown() | SetAll():
                    self.names.pop(item.result, None)
                case Duplicate():
                    pass
                case Bitwise() | Compute() | Convert() | Gather() | Interleave() | Spread():
                    self._compute(item)

    def _compute(self, item: Bitwise | Compute | Convert | Gather | Interleave | Spread) -> None:
        match item:
            case Bitwise():
                reads, writes = (*item.sources, item.predicate), (item.result,)
            case Interleave() | Compute():
                reads, writes = item.sources, item.results
            case Gather():
                reads, writes = (item.source, item.index), (item.result,)
            case Convert():
                reads, writes = (item.source, item.predicate), (item.result,)
            case Spread():
                reads, writes = (item.source,), (item.result,)
        width = getattr(item, "width", 32)
        kind = Instruction(mnemonic(item), Kind.COMPUTE, width, masks=isinstance(item, Spread))
        self._put(kind, reads, writes)

    def _put(self, kind: Instruction, reads: Iterable[str], writes: tuple[str, ...], address: int = 0) -> None:
        known = [self.names[name] for name in reads if name in self.names]
        made = self.scope.issue(kind, known, len(writes), address)
        self.names.update(zip(writes, made, strict=True))


def pair(producer: str, consumer: str) -> Scope:
    scope = Scope()
    (name,) = scope.issue(LOAD, (), 1)
    (name,) = scope.issue(compute(producer), (name,), 1)
    (name,) = scope.issue(compute(consumer), (name,), 1)
    scope.issue(STORE, (name,), 0, 8192)
    return scope


def wide() -> Scope:
    """Trips of two chains of forty instructions, more than registers and queue hold, and some for the first port."""
    scope = Scope()
    scope.begin_loop(12)
    for trip in range(12):
        names = [scope.issue(LOAD, (), 1, trip * 512 + 256 * side)[0] for side in (0, 1)]
        for step in range(40):
            kind = compute("vdup" if step % 10 == 9 else "vadd")
            names = [scope.issue(kind, (name,), 1)[0] for name in names]
        store = Instruction("vstsx2", Kind.STORE, word="INTLV_B32", size=512)
        scope.issue(store, names, 0, 65536 + 512 * trip)
        scope.end_trip()
    return scope


def dense() -> Scope:
    """Constants made and stored: dispatched faster than anything else, they wait for ports."""
    scope = Scope()
    for number in range(300):
        (name,) = scope.issue(compute("vbr"), (), 1)
        if number % 50 == 0:
            scope.issue(STORE, (name,), 0, 256 * number)
    return scope


def random_scope(rng: Random) -> Scope:
    """A launch of random instructions in random loops, whose accesses lie anywhere in the buffer."""
    scope = Scope()
    _random_items(scope, rng, [], 0)
    return scope


_COMPUTES = (
    *("vadd", "vmul", "vmax", "vabs", "vdup", "vsel", "vand", "vexp", "vdiv", "vcvt", "vtrc", "vintlv", "vcadd"),
    *("vmuls", "vbr", "vselr", "vor", "vshls"),
)


def _random_items(scope: Scope, rng: Random, known: list[int], depth: int) -> None:
    for _ in range(rng.randint(1, 9 if depth else 5)):
        place = rng.randrange(0, 8192, 32)
        match rng.choice("LLCCCCCCSSSBPUTO"):
            case "L":
                size = rng.choice((32, 64, 128, 256, 512))
                load = Instruction("vlds", Kind.LOAD, size=size, updates=rng.random() < 0.1)
                known += scope.issue(load, (), rng.choice((1, 1, 2)), place)
            case "U":
                known += scope.issue(Instruction("vlds", Kind.LOAD, size=128, unpacks=True), (), 1, place)
            case "C":
                reads = rng.sample(known, min(len(known), rng.randint(0, 3)))
                known += scope.issue(compute(rng.choice(_COMPUTES), rng.choice((16, 32))), reads, 1)
            case "S":
                word = rng.choice(("", "", "INTLV_B32"))
                store = Instruction("vsts", Kind.STORE, size=rng.choice((0, 32, 256)), word=word)
                scope.issue(store, rng.sample(known, min(len(known), 2)), 0, place)
            case "B":
                scope.issue(barrier(rng.choice(("VST_VST", "VST_VLD", "VLD_VST", "VV_ALL"))))
            case "P":
                known += scope.issue(Instruction("plt", Kind.PREDICATE), rng.sample(known, min(len(known), 1)), 1)
            case "T":
                scope.issue(Instruction("select", Kind.SELECT))
            case _ if depth < 3:
                trips = rng.choice((0, 1, 2, 3, 7))
                scope.begin_loop(trips)
                for _ in range(trips):
                    _random_items(scope, rng, known, depth + 1)
                    scope.end_trip()
