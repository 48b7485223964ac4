"""The documents of `castsim run`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from castsim.estimating.cast_estimates import Standing
from castsim.execution.interpreter.memory import Origin
from castsim.reports.schemas.findings import ErrorEntry
from castsim.reports.schemas.keys import (
    Bytes,
    CauseName,
    Column,
    Cycles,
    Elements,
    Form,
    Keys,
    Line,
    Name,
    Scalar,
    Seconds,
    Value,
    absent,
)
from castsim.reports.schemas.objects import FactEntry, LintEntry, Output, StaleRead
from castsim.synchronisation.flags import Place
from castsim.targets.description import SourceKind, Status

# Inside of the launches of vector functions.


class Wait(Keys):
    """What the executions of a line waited for, all together."""

    cause: CauseName
    """The cause."""
    cycles: Annotated[float, Field(json_schema_extra={"unit": "cycles"})]
    """How long; waits overlap each other."""
    for_line: Line | None
    """The line that makes what was waited for; null if it is not one line."""
    for_op: str | None
    """The instruction of that line; null as `for_line`."""


class LaunchLine(Keys):
    """One line of a launch."""

    line: Line | None
    """Line of the source, or number in the kernel of a tile operation; null for what belongs to the launch itself."""
    op: str
    """The instruction."""
    executions: int
    """How often it was executed."""
    cycles: Cycles
    """Cycles of the launches that went to it."""
    causes: dict[CauseName, Cycles]
    """The same by cause."""
    waits: list[Wait]
    """What its executions waited for, the longest first."""


class Launches(Keys):
    """All launches of one instruction of the source; of a tile operation, the first."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    executions: int
    """How many launches."""
    cycles: Cycles
    """Their cycles, those of the lines added up."""
    pipe_cycles: Cycles
    """What the engine counts of them."""
    lines: list[LaunchLine]
    """The lines."""


class LineCycles(Keys):
    """Cycles of a line."""

    line: Line | None
    """As in `lines`."""
    op: str
    """The instruction."""
    cycles: Cycles
    """Its cycles."""


class LaunchesByCause(Launches):
    """All launches of one instruction of the source, with the lines behind each cause."""

    behind_causes: dict[CauseName, list[LineCycles]]
    """The lines with cycles of each cause, most first."""


# What `castsim run --report kernel` adds.

_CYCLES_OF = Field(min_length=2, max_length=2, json_schema_extra={"unit": "cycles"})


class KernelLine(Keys):
    """The cost of a source line to its pipe."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    executions: int
    """How often it was executed."""
    cycles: Cycles
    """Cycles from start to end of its executions, which may overlap."""
    pipe_cycles: Cycles
    """Cycles that its pipe spent on it."""
    share_of_pipe: float
    """Part of its pipe's occupied cycles, from 0 to 1."""
    causes: dict[CauseName, Cycles]
    """The pipe's cycles by cause."""


class PipesAtWork(Keys):
    """The cycles in which so many pipes worked at once."""

    pipes: int
    """Number of pipes."""
    cycles: Cycles
    """Cycles in which exactly so many worked."""


class Overlap(Keys):
    """How far the pipes work at the same time."""

    work_cycles: dict[Name, Cycles]
    """Cycles in which each pipe has an instruction at work."""
    serial_cycles: Cycles
    """Their sum: one pipe after the other."""
    covered_cycles: Cycles
    """Cycles in which some pipe works."""
    cycles_with_pipes_at_work: list[PipesAtWork]
    """The same by the number of pipes at work."""
    achieved: float | None
    """Part of what the busiest pipe could hide that is hidden, from 0 to 1; null if only one pipe works."""


class Bound(Keys):
    """The bottleneck."""

    pipe: str
    """The pipe with the most occupied cycles."""
    cause: CauseName
    """The cause of most of them."""
    cycles: Cycles
    """Cycles of that cause."""
    occupied_cycles: Cycles
    """Cycles in which the pipe is occupied."""


class Stretch(Keys):
    """Bytes of a buffer that instructions treat alike. Pairs are cycles from the first to the one behind the last."""

    first_byte: int
    """Address of the first byte."""
    last_byte: int
    """Address of the last byte."""
    scratch: bool
    """Whether it is some instruction's scratch tile."""
    written_by_lines: list[Line]
    """Lines that write it."""
    read_by_lines: list[Line]
    """Lines that read it."""
    live_cycles: Cycles
    """Cycles in which its content is still needed."""
    live: list[Annotated[list[int], _CYCLES_OF]]
    """When its content is needed."""
    writes: list[Annotated[list[int], _CYCLES_OF]]
    """When it is written."""
    reads: list[Annotated[list[int], _CYCLES_OF]]
    """When it is read."""


class Buffer(Keys):
    """A buffer over time."""

    name: str
    """Name of the memory."""
    capacity_bytes: Bytes
    """Its size."""
    peak_live_bytes: Bytes
    """The most bytes that live at once."""
    peak_cycle: Cycles
    """The first cycle in which they do."""
    stretches: list[Stretch]
    """Its stretches, by address."""


class Kernel(Keys):
    """A whole kernel."""

    lines: list[KernelLine]
    """The lines of the source."""
    overlap: Overlap
    """The overlap of the pipes."""
    bound: Bound | None
    """The bottleneck; null if no pipe did anything."""
    launches: list[LaunchesByCause]
    """Inside of launches."""
    buffers: list[Buffer]
    """The on-chip buffers."""


class Pipe(Keys):
    """The cycles of a pipe."""

    busy_cycles: Cycles
    """Cycles in which it worked."""
    causes: dict[CauseName, Cycles]
    """Cycles by cause, without zeros; they add up to the total of the run."""


class LostMost(Keys):
    """The instruction on which pipes lost most cycles."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    inserted: bool
    """Whether castsim inserted it to synchronise."""
    lost_cycles: Cycles
    """Cycles lost in all its executions."""
    cause: CauseName
    """The cause of most of them."""
    causes: dict[CauseName, Cycles]
    """All of them by cause."""


class Link(Keys):
    """A result and who waits for it, in a program of bundles."""

    producer: str
    """The instruction that gives it."""
    producer_line: Line
    """Its line of the source."""
    consumer: str
    """The instruction that reads it."""
    consumer_line: Line
    """Its line of the source."""
    through: str
    """The register that holds it."""
    distance_bundles: int
    """The smallest distance in bundles at which it can be read."""


class LatencyEntry(Keys):
    """What the latencies of a run cost."""

    longest: Link
    """The link of the chain with the largest distance."""
    chain: list[Link]
    """The chain that costs most, in the order of the program."""
    chain_bundles: int
    """Bundles of one trip through it."""
    trips: int
    """How often it ran."""
    chain_cycles: Cycles
    """Cycles that the longest chains of the run take, all of them."""
    gained_cycles: Cycles
    """Cycles saved if every result could be read in the next bundle; unrolled loops can save more."""


class Instruction(Keys):
    """One execution of an instruction; in very long runs, one of several that an engine took together."""

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    pipe: str
    """Its pipe."""
    start_cycle: Cycles
    """First cycle."""
    end_cycle: Cycles
    """First cycle after its last effect."""
    executions: int = Field(default_factory=absent)
    """How many executions the entry stands for; only in runs of more than 65,536."""
    last_end_cycle: Cycles = Field(default_factory=absent)
    """Where the last of them ends; beside `executions`."""


class ChoiceEntry(Keys):
    """An option that decides results which the text leaves open."""

    option: str
    """Name of the option."""
    value: str
    """Its value in this run."""
    legal: list[str]
    """The values that it may have."""
    effect: str
    """What follows from the value."""
    lines: list[Line]
    """The lines of the source where it counts."""


class PartialOutput(Keys):
    """An output of which not all elements are computed."""

    name: str
    """Name of the argument."""
    file: str | None
    """Its `.npy` file; null if it was not written."""
    computed_file: str | None
    """The `.npy` file that tells which elements are computed; null if it was not written."""
    format: str
    """Name of its format."""
    shape: list[Elements]
    """Extent of each dimension."""
    elements: Elements
    """How many are not computed."""
    first: list[int]
    """Index of the first of them."""


class UndefinedOutput(Keys):
    """An output that rests in part on bytes of a buffer that nothing wrote; they count as 0."""

    name: str
    """Name of the argument."""
    mask_file: str | None
    """The `.npy` file that tells which elements do; null if it was not written."""
    elements: Elements
    """How many do."""
    first: list[int]
    """Index of the first of them."""


class InsertedEntry(Keys):
    """A flag or a barrier that was inserted."""

    line: Line
    """Line of the source at which it stands."""
    place: Place
    """Where, beside that line."""
    text: str
    """The instruction."""
    executions: int
    """How often it was executed."""


class Synchronisation(Keys):
    """Who synchronises the pipes."""

    by: str
    """`insertion`, `program` or `interlock`."""
    inserted: list[InsertedEntry]
    """What was inserted."""


class Race(Keys):
    """What the order of the program does not guarantee."""

    kind: str
    """Kind of the finding."""
    message: str
    """The finding in words."""
    missing: str | None
    """What would cure it; null if that cannot be said."""
    lines: list[Line]
    """Lines of the instructions."""
    pipes: list[str]
    """Their pipes."""
    space: str | None
    """The memory; null where no bytes are concerned."""
    first_byte: int | None
    """Address of the first byte; null as `space`."""
    last_byte: int | None
    """Address of the last byte; null as `space`."""


class Operation(Keys):
    """A vector operation on one element type."""

    op: str
    """The operation."""
    element: str
    """Name of the element's format."""
    validated: bool
    """Whether its cycles were compared with published ones."""
    not_bit_exact: str | None
    """Why its values are not claimed to be bit-exact; null if they are."""


class Read(Keys):
    """A read of memory on which the path rests."""

    read: str
    """The element that was read."""
    file: str
    """The source file."""
    line: Line
    """Line of the read."""
    column: Column
    """Column of the read."""
    value: Value
    """What it gave."""
    origin: Origin
    """Where the value is from."""


class CastLine(Keys):
    """What the casts of an instruction did to their numbers, all executions together; those not named are exact.

    Of vector instructions and TPC code: what conversions of one line between the same formats did, in active lanes.
    """

    line: Line
    """Line of the source."""
    op: str
    """The instruction."""
    src: str
    """Name of the source format."""
    dst: str
    """Name of the destination format."""
    elements: Elements
    """How many numbers were cast."""
    rounded: Elements
    """How many became another number, and were within the range of the destination."""
    clamped: Elements
    """How many were beyond the range and became its end."""
    wrapped: Elements
    """How many were beyond the range and became another number, as a rule by their low bits."""
    overflow: Elements
    """How many became infinity, or NaN."""
    nan: Elements
    """How many were NaN and became a number."""


class PlaceholderUse(Keys):
    """An operation that is not simulated."""

    op: str
    """The operation."""
    pipe: str
    """The pipe that it keeps."""
    executions: int
    """How often."""
    cycles_each: Cycles
    """How long each time, as `--opaque` says."""


class Placeholders(Keys):
    """The opaque operations."""

    operations: list[PlaceholderUse]
    """What they are."""
    cycles_resting_on_them: Cycles
    """How much of the total rests on them."""
    cycles_without_them: Cycles
    """The total if they took no time."""


class Gain(Keys):
    """What lifting a limit of the target gains."""

    name: str
    """The limit."""
    title: str
    """What lifting it means."""
    facts: dict[Name, Scalar]
    """The facts that it sets, by path."""
    total_cycles: Cycles
    """Cycles of the run without the limit."""
    gained_cycles: Cycles
    """Cycles saved; negative if it costs."""
    reason: str | None
    """What takes the cycles where it costs; else null."""


class RestShare(Keys):
    """Cycles that rest on one sort of evidence."""

    basis: SourceKind
    """What the figures were read off that these cycles were compared with, or else the weakest of their facts."""
    standing: Standing
    """How they were compared: with rows that no fact was fitted to, with such as were fitted, or not at all."""
    cycles: Cycles
    """How many they are."""
    operations: list[str]
    """On what they are spent, most first."""


class IntervalEntry(Keys):
    """Where measured cycles lie, by the errors of measured rows that were not fitted."""

    share: int
    """In how many percent of the cases."""
    covered: Cycles
    """The cycles of which this is told: those of kinds of operations with such rows."""
    low: Cycles
    """The lower end for these."""
    high: Cycles
    """The upper end."""
    rows: int
    """The number of these rows."""


class SensitivityEntry(Keys):
    """The weight of a number of a fact."""

    fact: str
    """Its path in the description."""
    status: Status
    """How well the fact is known."""
    value: float
    """The number."""
    less: int
    """By how much cycles change if it is 10 percent less."""
    more: int
    """By how much they change if it is 10 percent more."""


class TrustEntry(Keys):
    """What the cycles rest on."""

    shares: list[RestShare]
    """All cycles by evidence; they add up to the total."""
    interval: IntervalEntry | None
    """Where measured cycles lie; null if too few rows were measured."""
    sensitivities: list[SensitivityEntry] | None
    """Numbers of facts by weight, most first; null if the program is too long to time it again without `--facts`."""
    clock_status: Status
    """How well the clock is known by which seconds are computed."""


class CoreEntry(Keys):
    """A core of a kernel in C++ that ran on all of its cores."""

    block: int
    """Its number, from 0."""
    cycles: Cycles
    """Its cycles."""


class Run(Form):
    """A program that ran. Where no cycles are modelled, what tells of time is null and `untimed` says why."""

    NAME: ClassVar[str] = "run"

    program: str
    """The file."""
    entry: str | None
    """The function; null where there is none."""
    target: str
    """Name of the target."""
    engine: str | None
    """The engine: `fast` or `event`."""
    total_cycles: Cycles | None
    """Cycles of the run."""
    seconds: Seconds | None
    """The same at the target's frequency."""
    launch_cycles: Cycles = Field(default_factory=absent)
    """Launch and end of a kernel, which are in no pipe, where they are known."""
    untimed: str = Field(default_factory=absent)
    """Why no cycles are modelled."""
    pipes: dict[Name, Pipe] | None
    """The pipes by name."""
    lost_most: LostMost | None
    """The instruction on which most cycles were lost; null if none were."""
    latency_bound: LatencyEntry | None = Field(default_factory=absent)
    """The chain of dependences that bounds a program of bundles; null where its latencies bind nothing."""
    instructions: list[Instruction] | None
    """Every execution, in program order."""
    launches: list[Launches] = Field(default_factory=absent)
    """Inside of the launches that a program of vector instructions writes."""
    path_decided_by: list[Read] = Field(default_factory=absent)
    """The reads on which the path rests, if there are any."""
    choices: list[ChoiceEntry] = Field(default_factory=absent)
    """The options on which results rest, if there are any."""
    placeholders: Placeholders = Field(default_factory=absent)
    """The opaque operations, if there are any."""
    outputs: list[Output]
    """The output arrays."""
    outputs_not_computed: list[PartialOutput] = Field(default_factory=absent)
    """Outputs of which not all is computed, if there are any."""
    outputs_undefined: list[UndefinedOutput] = Field(default_factory=absent)
    """Outputs that rest in part on what nothing wrote, if there are any."""
    printed: list[str] = Field(default_factory=absent)
    """What a kernel in C printed, with file and line, if it did."""
    errors: list[ErrorEntry] = Field(default_factory=absent)
    """Why the run fails although it came to its end: races, outputs that are not computed."""
    casts: list[CastLine] = Field(default_factory=absent)
    """What the casts did to their numbers, by instruction; where values were computed."""
    facts_assumed: list[FactEntry] | None
    """The facts that the run rests on and no document states, by weight where it is known."""
    trust: TrustEntry | None
    """What the cycles rest on."""
    warnings: list[str]
    """What the program asks for in vain, or does in a surprising way."""
    synchronisation: Synchronisation = Field(default_factory=absent)
    """Who synchronises; of tile programs."""
    races: list[Race] = Field(default_factory=absent)
    """The races found; of tile programs and those of vector instructions."""
    operations: list[Operation] = Field(default_factory=absent)
    """The vector operations of a tile program, if it has any."""
    stale_reads: list[StaleRead] = Field(default_factory=absent)
    """The reads that came too early; of exposed pipelines that were checked."""
    what_if: list[Gain] | None = Field(default_factory=absent)
    """With `--what-if`: what lifting each limit gains."""
    lint: list[LintEntry] = Field(default_factory=absent)
    """With `--lint`: the certain findings."""
    lint_possible: list[LintEntry] = Field(default_factory=absent)
    """With `--lint`: findings that depend on the path, on predicates or on start values."""
    kernel: Kernel | None = Field(default_factory=absent)
    """With `--report kernel`: the whole kernel."""
    cores: list[CoreEntry] = Field(default_factory=absent)
    """With `--all-blocks`: every core; the document is of the longest."""


class Entry(Keys):
    """A function of a file."""

    entry: str
    """Name of the function."""
    cycles: Cycles | None
    """Its cycles; null if it cannot be run, or they are not modelled."""
    error: str | None
    """Why it cannot be run; null if it can."""


class AllEntries(Form):
    """With `--all-entries`: every function of a file by itself."""

    NAME: ClassVar[str] = "run-all-entries"

    program: str
    """The file."""
    entries: list[Entry]
    """The functions."""
    failed: int
    """How many cannot be run."""
