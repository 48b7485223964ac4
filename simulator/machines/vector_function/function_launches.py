"""Launches of vector functions: operations of the vector pipe, their instructions, and their time.

Source: docs/reference/micro.md 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from castsim.execution.pipe_operations import BLOCK, Unaddressed
from castsim.execution.transfer_timing import TICKS, ticks
from castsim.isa.dataclass import dataclass, field, fields, replace
from castsim.isa.errors import IllegalError
from castsim.isa.pto.value_types import MicroOperation
from castsim.machines.vector_function.front_end import time_scope
from castsim.machines.vector_function.function_operations import (
    INTEGER_DIVISION,
    LONG_DIVISION,
    Nest,
    VectorFunction,
    computes,
    distribution_in,
    formats_of,
    is_load,
    mnemonic,
    number_of,
    of_every_trip,
    width_of,
)
from castsim.machines.vector_function.function_timing import bytes_of_row
from castsim.machines.vector_function.instruction_scoreboard import ScopeTiming
from castsim.machines.vector_function.launched_scope import (
    Scope,
    ScopeFacts,
    ScopeInstruction,
    TimingKind,
    issues,
)
from castsim.targets.vector_function import DistributionMode, VectorFunctionTarget


@dataclass(frozen=True, slots=True, eq=False)
class MicroFunction(Unaddressed):
    """One launch with its issued instructions and addresses; it shares no buffer port with transfers."""

    name: str
    scope: Scope
    pipe: str
    _timed: list[tuple[VectorFunctionTarget, ScopeTiming]] = field(default_factory=list, repr=False)

    @property
    def issued(self) -> int:
        """The number of instructions that the launch issues."""
        return sum(1 for _ in issues(self.scope.body))

    def timed(self, target: VectorFunctionTarget) -> ScopeTiming:
        """Return its time on a target; the last target's time is cached."""
        if not self._timed or self._timed[0][0] is not target:
            self._timed[:] = [(target, time_scope(self.scope, target))]
        return self._timed[0][1]


def turn_bytes(target: VectorFunctionTarget) -> int:
    """Return the bytes of a turn around the banks: moving a function by whole turns does not change its time."""
    return target.banks.groups * target.banks.banks_per_group * BLOCK


@dataclass(frozen=True, slots=True)
class _TimedFunction:
    """A tile function on a target; its time does not depend on its name, or on whole turns around the banks."""

    key: tuple[object, ...]
    function: VectorFunction = field(compare=False)
    target: VectorFunctionTarget = field(compare=False)


def _timed_function(function: VectorFunction, target: VectorFunctionTarget) -> _TimedFunction:
    turn = turn_bytes(target)
    destination, source, *operands = (address % turn for address in function.addresses)
    nests = ((tuple(getattr(nest, name) for name in _NEST_FIELDS), *nest.counters.items()) for nest in function.timed)
    bits = function.source_format.bits, function.destination_format.bits
    key = (_timed_facts(target), destination, source, *operands, *nests, *bits)
    moved = replace(function, destination=destination, source=source, operands=tuple(operands))
    return _TimedFunction(key, moved, target)


def _timed_facts(target: VectorFunctionTarget) -> tuple[object, ...]:
    """Return the identities of a target's tables, and the values of its options but for CTRL at the start.

    That changes the functions of a program, but the time of none.
    """
    facts = _FACTS_OF.get(id(target))
    if facts is None or facts[0] is not target:
        if len(_FACTS_OF) >= _MOST_TARGETS:
            _FACTS_OF.clear()
        tables = tuple(id(getattr(target, name)) for name in type(target).model_fields if name != "options")
        start = {"ctrl", *(f"ctrl_{bit}_at_start" for bit in target.control.bits)}
        values = tuple((name, option.value) for name, option in target.options.items() if name not in start)
        facts = _FACTS_OF[id(target)] = target, (*tables, *values)  # the target keeps its tables alive
    return facts[1]


_MOST_TARGETS = 64
_FACTS_OF: dict[int, tuple[VectorFunctionTarget, tuple[object, ...]]] = {}

_NEST_FIELDS = tuple(each.name for each in fields(Nest) if each.name != "counters")


@lru_cache(256)
def _time_of(timed: _TimedFunction) -> ScopeTiming:
    return time_scope(FunctionLaunch(timed.function, timed.target).scope, timed.target)


def timed(function: VectorFunction | MicroFunction, target: VectorFunctionTarget) -> ScopeTiming:
    """Return the time of a function on a target, cached for tile functions."""
    if isinstance(function, MicroFunction):
        return function.timed(target)
    return _time_of(_timed_function(function, target))


def check_scope(function: MicroFunction, target: VectorFunctionTarget) -> None:
    """Reject instructions for which the target has no latency.

    Raises:
        IllegalError: there is such an instruction; the message names the latencies that the target has.
    """
    facts = ScopeFacts(target)
    for issue in issues(function.scope.body):
        instruction = issue.instruction
        if instruction.kind is TimingKind.COMPUTE and not facts.has(instruction.mnemonic, instruction.width):
            mnemonics = (*target.timing.chain.latency_cycles, *target.arithmetic)
            raise IllegalError(f"target '{target.name}' has no latency for '{instruction.mnemonic}'", legal=mnemonics)


# What a vector-function engine can time, and the facts that every function rests on.

FACTS = ("timing.launch", "timing.access", "timing.loops", "timing.chain", "timing.port", "banks")
"""The timing facts that every function depends on."""


def check_function(operation: object, target: VectorFunctionTarget) -> None:
    """Reject nodes other than vector functions, and instructions without a latency on the target.

    Raises:
        IllegalError: there is such a node or instruction; the message names the latencies that the target has.
    """
    if isinstance(operation, MicroFunction):
        check_scope(operation, target)
        return
    if not isinstance(operation, VectorFunction):
        raise IllegalError(f"target '{target.name}' cannot execute a {type(operation).__name__}")
    for nest in operation.timed:
        for item in (*nest.trip, *nest.close):
            if computes(item) and not _is_timed(item, target):
                mnemonics = (*target.timing.chain.latency_cycles, *target.arithmetic)
                raise IllegalError(f"target '{target.name}' has no latency for '{item.mnemonic}'", legal=mnemonics)


def _is_timed(item: MicroOperation, target: VectorFunctionTarget) -> bool:
    is_division = item.mnemonic in (LONG_DIVISION, INTEGER_DIVISION)
    return is_division or target.latency(item.mnemonic, width_of(item)) is not None


# The vector function of a tile operation, written out as the instructions of its kernel text.
#
# Source: docs/reference/micro.md 6.3.

_PARTS = {DistributionMode.UNPK: 2, DistributionMode.UNPK4: 4, DistributionMode.PK: 2, DistributionMode.PK4: 4}
"""Number of parts of a register of which an access with this distribution touches one, by its definition."""

_ONE_ELEMENT = (DistributionMode.BRC, DistributionMode.ONEPT)
"""Distributions that load one element to all lanes, or store one."""


def touched_bytes(node: MicroOperation, target: VectorFunctionTarget) -> int:
    """Return the bytes that a load or a store touches when all lanes are active."""
    read, register_bytes = distribution_in(node), target.registers.register_bytes
    mode, bits = read.mode, read.bits or 0
    if mode is DistributionMode.BLK:
        return target.registers.block_bytes
    if mode is DistributionMode.DINTLV:
        return register_bytes * 2
    if mode is DistributionMode.MASK:
        return max(1, register_bytes // bits)
    if mode in _ONE_ELEMENT:
        return bits // 8
    return register_bytes // _PARTS.get(mode, 1)


def conversion_row(node: MicroOperation, target: VectorFunctionTarget) -> str:
    """Return the row of the table of instructions with the latency of a conversion; '' for other instructions."""
    pair = formats_of(node)
    return "" if pair is None or node.mnemonic == "vtrc" else target.conversion_row(*pair, kernel=True)


def exclusive_ticks(operations: Iterable[MicroOperation], target: VectorFunctionTarget) -> int:
    """Return the ticks for which trips that split a mask over two predicates delay the next one; otherwise 0.

    They run from the load to the end of the instruction that reads the predicates.
    """
    split: set[str] = set()
    delay = 0
    for item in operations:
        if computes(item):
            row = target.arithmetic.get(item.mnemonic)
            if row is not None and row.port == "exclusive":
                split.update(item.results)
            elif not split.isdisjoint(item.operands) and len(item.operands) > 2:  # chooses between two loaded vectors
                latency = target.latency(item.mnemonic, width_of(item)) or 0
                delay = max(delay, ticks(target.timing.access.load_cycles + latency))
    return delay if delay and target.option("predicate_interleave") == "exclusive" else 0


def row_address(function: VectorFunction, nest: Nest, target: VectorFunctionTarget) -> int:
    """Return the ticks for the address of each row of a nest, including the first one: it counts half bytes.

    Source: docs/reference/a5.md section 6.2, rule 10.
    """
    half_bytes = 4 in (function.source_format.bits, function.destination_format.bits)
    if not half_bytes or not any(is_load(item) for item in nest.trip):
        return 0
    ordered = any(item.mnemonic == "mem_bar" for item in nest.trip)
    if nest.trips == 1 and (ordered or not nest.row_loop):  # a barrier in each row takes longer and hides it
        return 0
    loops = target.timing.loops
    return ticks(loops.half_byte_row_cycles if nest.trips > 1 else loops.half_byte_trip_row_cycles)


class FunctionLaunch:
    """A vector function as one launch.

    `scope` are its issued instructions, by the timed nests; lines are indices of instructions and loops in kernel
    order.
    """

    def __init__(self, function: VectorFunction, target: VectorFunctionTarget) -> None:
        self.scope = Scope()
        self._function, self._target = function, target
        self._names: dict[str, int] = {}
        self._numbers: dict[tuple[int, str, int], int] = {}
        self._rows: dict[tuple[int, str, int], tuple[ScopeInstruction, _Moves] | None] = {}
        for number, nest in enumerate(function.timed):
            if nest.runs:
                self._nest(number, nest)

    @property
    def count(self) -> int:
        """The number of instructions and loops of the kernel."""
        return len(self._numbers)

    def _line(self, nest: int, part: str, item: int) -> int:
        """Return the number of an instruction or a loop."""
        return self._numbers.setdefault((nest, part, item), len(self._numbers) + 1)

    def _nest(self, number: int, nest: Nest) -> None:
        if nest.row_loop:
            self.scope.begin_loop(nest.rows, self._line(number, "rows", 0))
        trip, late = of_every_trip(nest), nest.runtime_trips and nest.row_loop
        lead = row_address(self._function, nest, self._target) + nest.broadcasts * TICKS * late
        spread = sum(number_of(item, "held") for item in trip)
        hold = max(spread * TICKS, exclusive_ticks(trip, self._target))
        if nest.paced is not None:
            fact = self._target.timing.paced[nest.paced]
            self.scope.facts.add(f"timing.paced.{nest.paced}")
            lead, hold = lead + ticks(fact.row(nest.trips)), max(hold, ticks(fact.trip(nest.trips)))
        for row in range(nest.rows):
            self._names.clear()  # accumulators start anew
            self._issue(number, "row", nest.row, _Trip(nest, row, 0))
            self.scope.begin_loop(nest.trips, self._line(number, "trips", 0), lead, fixed=not late, hold=hold)
            for turn in range(nest.trips):
                self._issue(number, "trip", trip, _Trip(nest, row, turn))
                self.scope.end_trip()
            self._issue(number, "close", nest.close, _Trip(nest, row, 0, closing=True))
            if nest.row_loop:
                self.scope.end_trip()

    def _issue(self, number: int, part: str, items: Iterable[MicroOperation], trip: _Trip) -> None:
        for index, item in enumerate(items):
            key = number, part, index
            if key not in self._rows:
                self._rows[key] = self._row(item, key, trip)
            row = self._rows[key]
            if row is None:  # predicates by counters are ready when wanted
                self._names.pop(item.results[0], None)
                continue
            instruction, (base, row_bytes, trip_bytes, offset) = row
            rows, start = None, trip.turn * trip_bytes
            if instruction.unpacks:  # the start of the function depends on the bytes of the tile
                rows = 1, 0, max(0, min(instruction.size, trip.row_bytes(trip.nest.source_trip) - start))
            elif instruction.kind is TimingKind.STORE and not trip.closing:
                left = trip.row_bytes(trip.nest.destination_trip) - start - offset
                if left < instruction.size:
                    instruction = replace(instruction, size=max(0, left))
            address = base + trip.row * row_bytes + start
            sources = [self._names[name] for name in item.operands if name in self._names]
            writes = () if instruction.kind is TimingKind.SELECT else item.results
            registers = self.scope.issue(instruction, sources, len(writes), address, rows)
            self._names.update(zip(writes, registers, strict=True))

    def _row(
        self, item: MicroOperation, key: tuple[int, str, int], trip: _Trip
    ) -> tuple[ScopeInstruction, _Moves] | None:
        """Return an instruction of a nest as the engine times it, and how its access moves; None: it takes no time."""
        if mnemonic(item) in ("plt", "pset"):
            return None
        line, nest = self._line(*key), trip.nest
        if is_load(item):
            read, pointer = distribution_in(item), int(item.operands[0])
            instruction = ScopeInstruction(
                "vlds",
                TimingKind.LOAD,
                word=item.word("dist") or "",
                size=touched_bytes(item, self._target),
                unpacks=read.mode is DistributionMode.UNPK and not nest.row_loop,
                updates=nest.post_update,
                masks=read.mode is DistributionMode.MASK,
                line=line,
                text=_text(item),
            )
            moves = number_of(item, "row", nest.source_row), number_of(item, "trip", nest.source_trip)
            return instruction, (self._function.operand(pointer), *moves, 0)
        if item.mnemonic == "vsts":
            offset = number_of(item, "offset")
            room = nest.close_bytes if trip.closing else nest.destination_trip - offset
            size = max(0, min(touched_bytes(item, self._target), room))
            instruction = ScopeInstruction("vsts", TimingKind.STORE, size=size, line=line, text=_text(item))
            base = self._function.destination if nest.writes is None else self._function.operand(nest.writes)
            return instruction, (base + offset, nest.destination_row, nest.destination_trip, offset)
        kind = _KINDS.get(item.mnemonic, TimingKind.COMPUTE)
        instruction = ScopeInstruction(
            item.mnemonic,
            kind,
            width_of(item) or 32,
            word=item.word("barrier") or "",
            masks=item.mnemonic == "punpack",
            row=conversion_row(item, self._target),
            profiled=kind is TimingKind.COMPUTE,
            line=line,
            text=_text(item),
            held=number_of(item, "held") if item.word("held") else None,
        )
        return instruction, (0, 0, 0, 0)


class _Trip(NamedTuple):
    """A trip of a nest; `closing`: what follows the last one of the row."""

    nest: Nest
    row: int
    turn: int
    closing: bool = False

    def row_bytes(self, trip_bytes: int) -> int:
        """Return the bytes of a row, given the bytes of its full trips."""
        return bytes_of_row(self.nest.count, trip_bytes, self.nest.elements)


_Moves = tuple[int, int, int, int]
"""The first byte of an access, the bytes between rows and between trips, and the offset in the first byte."""

_KINDS = {"mem_bar": TimingKind.BARRIER, "select": TimingKind.SELECT}


def _text(item: MicroOperation) -> str:
    """Return an instruction as reports name it."""
    formats, word = formats_of(item), item.word("dist") or item.word("barrier")
    if formats is not None:
        between = " -> ".join(dict.fromkeys(fmt.name for fmt in formats))
        return " ".join(filter(None, (item.mnemonic, between, item.word("rnd"), item.word("part"))))
    if item.mnemonic == "select":
        return "scalar select"
    width = width_of(item)
    return f"{item.mnemonic} b{width}" if width else " ".join(filter(None, (item.mnemonic, word)))
