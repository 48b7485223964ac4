"""The report of an engine: cycles per operation and pipe, each with a named cause.

`simulate(tree, target, observer=None) -> Timing` is the contract of every engine and mechanism. Times are whole
cycles from the start of the program. The causes of a pipe partition [0, total): they add up to `Timing.total`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from castsim.isa.dataclass import dataclass


class Cause(StrEnum):
    """The reason why a pipe spent a cycle as it did."""

    BUSY = "busy"
    FILL = "fill"
    DRAIN = "drain"
    OPERAND_WAIT = "operand wait"
    FLAG_WAIT = "flag wait"
    BARRIER = "barrier"
    DEPENDENCE = "dependence"
    STORE_BARRIER = "store barrier"
    BANK_CONFLICT = "bank conflict"
    PORT = "port"
    INITIATION_INTERVAL = "initiation interval"
    LOOP_TURNAROUND = "loop turnaround"
    SERIALISING_BRANCH = "serialising branch"
    MEMORY_LATENCY = "memory latency"
    MEMORY_BANDWIDTH = "memory bandwidth"
    EMPTY = "empty"

    __hash__ = str.__hash__  # that of enumerations is written in Python, and causes are keys everywhere


WAITING = frozenset({Cause.EMPTY, Cause.OPERAND_WAIT, Cause.FLAG_WAIT, Cause.BARRIER})
"""Causes of waits for another unit; for all others the pipe is occupied itself."""


@dataclass(frozen=True, slots=True)
class OperationTiming:
    """One executed operation: `index` counts operations in issue order, `execution` indexes `Timing.executions`.

    `start` is the first cycle in which its pipe worked for it or it left the scalar unit, `end` the first cycle
    after its last effect. `waits` are the cycles its pipe spent on its behalf, by cause.
    """

    index: int
    execution: int
    pipe: str
    name: str
    start: int
    end: int
    causes: Mapping[Cause, int]


@dataclass(frozen=True, slots=True)
class Execution:
    """One executed source instruction, from its first cycle of work to the end of its last effect.

    For a tile cast that is the published convention: first control write until the vector pipe is empty, the time its
    first pipe operation spent waiting in the queue (for operands, flags, earlier work) not counted.
    """

    instruction: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PipeTiming:
    """Cycles of one pipe by cause; they add up to the total."""

    causes: Mapping[Cause, int]

    @property
    def busy(self) -> int:
        """Cycles in which the pipe worked."""
        return self.causes.get(Cause.BUSY, 0)


@dataclass(frozen=True, slots=True)
class Timing:
    """Result of one simulation.

    The sequences may create their items on demand, and exceed the memory. `facts` are the paths of the
    target's timing facts behind the run (`timing.vector.vconv`).
    """

    total: int
    pipes: Mapping[str, PipeTiming]
    executions: Sequence[Execution]
    operations: Sequence[OperationTiming]
    facts: frozenset[str]

    def __repr__(self) -> str:
        return f"<Timing {self.total:,} cycles, {', '.join(self.pipes)}>"


ProgressCallback = Callable[[str, int, int], None]
"""Function that receives the name of a stage, the finished work and the total work (0: unknown)."""


class Listener(Protocol):
    """Receives the progress of an engine."""

    def progress(self, cycle: int, operations: int) -> None:
        """Receive progress occasionally: the simulation has reached `cycle` and finished `operations` operations."""


@runtime_checkable
class Observer(Listener, Protocol):
    """Receives the events of an engine in detail. Every method may ignore them; none can alter the simulation."""

    def segment(self, pipe: str, start: int, end: int, cause: Cause, operation: int | None) -> None:
        """Receive cycles [start, end) of `pipe`, spent for `cause` on behalf of operation `operation` (None: idle)."""

    def block(self, cycle: int, pipe: str, operation: int, address: int, write: bool, asked: int) -> None:
        """Receive a 32-byte block at byte `address` that crossed a buffer port in `cycle`, requested at `asked`."""


class IgnoresBlocks:
    """An observer that does not receive block accesses, which are the slowest to report."""


class Watcher(Observer, Protocol):
    """An observer of the beginning of a run only."""

    @property
    def until(self) -> int | None:
        """The first cycle whose events it ignores, None for the end; it may decrease during the run."""


Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)


@runtime_checkable
class Repeating(Protocol[Record_co]):
    """Records of which many are copies of others, each some cycles after the previous one."""

    def repeated(self) -> Iterator[tuple[Record_co, Record_co, int]]:
        """Yield records with their last copies and their number; without skipping, each record is its own copy."""
        ...


def repeated(records: Sequence[Record]) -> Iterator[tuple[Record, Record, int]]:
    """Yield every record with its last copy and their number, in time independent of skipped repetitions.

    Copies differ in their cycles and in their numbers. Their order is not that of the records.
    """
    if isinstance(records, Repeating):
        yield from records.repeated()
    else:
        for record in records:
            yield record, record, 1


@dataclass(frozen=True, slots=True)
class Limiter:
    """The pipe with the most occupied cycles, how many of them are busy, and the cause of most of them.

    A pipe is occupied in every cycle of its own: all except its waits for other pipes. It is busy in those
    in which work progresses.
    """

    pipe: str
    cause: Cause
    cycles: int
    occupied: int
    busy: int
    total: int

    @property
    def shares(self) -> str:
        """The occupied and the busy cycles as fractions of the run."""
        return f"{share(self.occupied, self.total)} occupied, {share(self.busy, self.total)} busy"

    def sentence(self, *, named: bool = True) -> str:
        """Return a sentence on the limiter; without the cause unless that is to be `named`."""
        limits = f"{self.pipe} limits ({self.shares})"
        named &= self.cause is not Cause.BUSY
        return f"{limits}; {self.cause} takes {share(self.cycles, self.total)}" if named else limits


def limiter(timing: Timing) -> Limiter | None:
    """Return the bottleneck of a run, None if no pipe worked; the first if equal."""
    spent = {name: occupied(pipe.causes) for name, pipe in timing.pipes.items()}
    pipe = max(spent, key=lambda name: spent[name], default=None)
    if pipe is None or not spent[pipe]:
        return None
    own = {cause: cycles for cause, cycles in timing.pipes[pipe].causes.items() if cause not in WAITING}
    cause = max(own, key=lambda name: own[name])
    return Limiter(pipe, cause, own[cause], spent[pipe], timing.pipes[pipe].busy, timing.total)


def share(part: int, whole: int) -> str:
    """Return a percentage with one decimal."""
    return f"{100 * part / whole:.1f} %" if whole else "0.0 %"


def occupied(causes: Mapping[Cause, int]) -> int:
    """Return the cycles in which a pipe is occupied: all except its waits for other units."""
    return sum(cycles for cause, cycles in causes.items() if cause not in WAITING)
