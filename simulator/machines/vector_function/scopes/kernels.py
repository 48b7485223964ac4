"""The vector function of a tile operation, written out as the instructions of its kernel text.

Source: docs/reference/micro.md 6.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from castsim.isa.pto.micro.conversions import ROUNDINGS
from castsim.machines.vector_function.operations import (
    Bitwise,
    Compute,
    Convert,
    CountDown,
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
from castsim.machines.vector_function.scopes.scope import Instruction as ScopeInstruction, Kind, Scope
from castsim.machines.vector_function.timing import bytes_of_row
from castsim.machines.vector_function.trip_timing import Computing, LoadStep, StoreStep, row_address, trip_shape
from castsim.targets.register_text import Mode, distribution_of
from castsim.targets.vector_function import VectorFunctionTarget


class Kernel:
    """A vector function as one launch.

    `scope` is what it issues, by the nests whose time counts; for lines stand the numbers of instructions and loops in
    the order of the kernel.
    """

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self.scope = Scope()
        self._function, self._target = function, target
        self._names: dict[str, int] = {}
        self._numbers: dict[tuple[int, str, int], int] = {}
        for number, nest in enumerate(function.timed):
            if nest.runs:
                self._nest(number, nest)

    @property
    def count(self) -> int:
        """How many instructions and loops the kernel has."""
        return len(self._numbers)

    def _line(self, nest: int, part: str, item: int) -> int:
        """Return the number of an instruction or a loop."""
        return self._numbers.setdefault((nest, part, item), len(self._numbers) + 1)

    def _nest(self, number: int, nest: Nest) -> None:
        if nest.row_loop:
            self.scope.begin_loop(nest.rows, self._line(number, "rows", 0))
        # Predicates that do not change are made before the loop (docs/reference/a5.md section 6.2, rule 3).
        still = nest.row_loop and nest.trips == 1
        trip = [item for item in nest.trip if not (still and isinstance(item, Spread | TripSelect))]
        shape = trip_shape(nest, self._target)
        inner = [each for each in shape.stores if not each.closing]
        closing = [each for each in shape.stores if each.closing]
        lead = row_address(self._function, nest, self._target)
        for row in range(nest.rows):
            self._issue(number, "row", nest.row, _Place(nest, row, 0, shape.row_loads, ()))
            self.scope.begin_loop(nest.trips, self._line(number, "trips", 0), lead)
            for turn in range(nest.trips):
                self._issue(number, "trip", trip, _Place(nest, row, turn, shape.loads, inner))
                self.scope.end_trip()
            self._issue(number, "close", nest.close, _Place(nest, row, 0, (), closing))
            if nest.row_loop:
                self.scope.end_trip()

    def _issue(self, number: int, part: str, items: Iterable[RegisterOperation], place: _Place) -> None:
        for index, item in enumerate(items):
            match item:
                case Load():
                    self._load(item, self._line(number, part, index), place)
                case Store():
                    self._store(item, self._line(number, part, index), place)
                case MemoryBarrier():
                    line = self._line(number, part, index)
                    self.scope.issue(
                        ScopeInstruction("mem_bar", Kind.BARRIER, word=item.kinds, line=line, text=_text(item))
                    )
                case TripSelect():
                    line = self._line(number, part, index)
                    self.scope.issue(ScopeInstruction("select", Kind.SELECT, line=line, text=_text(item)))
                case CountDown() | SetAll():
                    self._names.pop(item.result, None)
                case Bitwise() | Compute() | Convert() | Gather() | Interleave() | Spread():
                    self._compute(item, self._line(number, part, index))
                case _:
                    pass  # constants are made before the loops

    def _load(self, item: Load, line: int, place: _Place) -> None:
        step = next(place.loads)
        far, near = step.steps
        kind = ScopeInstruction(
            "vlds",
            Kind.LOAD,
            size=step.size,
            unpacks=distribution_of(item.distribution).mode is Mode.UNPK,
            updates=place.nest.post_update,
            masks=step.mask,
            line=line,
            text=_text(item),
        )
        self._put(kind, (), item.results, self._function.operand(step.operand) + place.row * far + place.trip * near)

    def _store(self, item: Store, line: int, place: _Place) -> None:
        step, nest = next(place.stores), place.nest
        start = place.trip * nest.destination_trip + step.offset
        row_bytes = bytes_of_row(nest.count, nest.destination_trip, nest.elements)
        size = step.size if step.closing else max(0, min(step.size, row_bytes - start))
        kind = ScopeInstruction("vsts", Kind.STORE, size=size, line=line, text=_text(item))
        base = self._function.destination if nest.writes is None else self._function.operand(nest.writes)
        self._put(kind, (item.source, item.predicate), (), base + place.row * nest.destination_row + start)

    def _compute(self, item: Computing, line: int) -> None:
        reads: tuple[str, ...]
        writes: tuple[str, ...]
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
        width = item.width if isinstance(item, Bitwise | Interleave | Compute) else 32
        kind = ScopeInstruction(
            mnemonic(item), Kind.COMPUTE, width, masks=isinstance(item, Spread), line=line, text=_text(item)
        )
        self._put(kind, reads, writes)

    def _put(self, kind: ScopeInstruction, reads: Iterable[str], writes: tuple[str, ...], address: int = 0) -> None:
        known = [self._names[name] for name in reads if name in self._names]
        made = self.scope.issue(kind, known, len(writes), address)
        self._names.update(zip(writes, made, strict=True))


class _Place:
    """A trip of a nest: what is left of its loads and stores."""

    def __init__(self, nest: Nest, row: int, trip: int, loads: Iterable[LoadStep], stores: Iterable[StoreStep]) -> None:
        self.nest, self.row, self.trip = nest, row, trip
        self.loads, self.stores = iter(loads), iter(stores)


def _text(item: RegisterOperation) -> str:
    """Return an instruction as reports name it."""
    match item:
        case Load():
            return f"{'vldsx2' if len(item.results) > 1 else 'vlds'} {item.distribution}"
        case Store():
            return f"vsts {item.distribution}"
        case Convert():
            letter = next((one for one, mode in ROUNDINGS.items() if mode is item.policy.rounding), "")
            between = item.src.name if item.integral else f"{item.src.name} -> {item.dst.name}"
            return " ".join(filter(None, (mnemonic(item), between, letter, (item.part or "").removeprefix("PART_"))))
        case Bitwise() | Interleave() | Compute():
            return f"{mnemonic(item)} b{item.width}"
        case Gather() | Spread():
            return mnemonic(item)
        case MemoryBarrier():
            return f"mem_bar {item.kinds}"
        case TripSelect():
            return "scalar select"
        case _:
            return type(item).__name__.lower()
