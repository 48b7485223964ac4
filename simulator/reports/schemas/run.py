"""The documents of `castsim run`; of failing commands, `castsim check`, `schema`, `completion` and `manual`."""

from __future__ import annotations

from typing import Annotated

from castsim.checking.check_finding import Severity
from castsim.estimating.cast_estimates import Standing
from castsim.execution.interpreter.memory import Origin
from castsim.reports.documents import CommandDocument, Keys, says
from castsim.reports.schemas.keys import (
    Bytes,
    CauseName,
    Column,
    Cycles,
    Elements,
    FactEntry,
    Line,
    LintEntry,
    Name,
    Output,
    Scalar,
    Seconds,
    Sha256,
    StaleRead,
    Value,
)
from castsim.synchronisation.flags import Place
from castsim.targets.description import SourceKind, Status

# The documents of failing commands, of `castsim check`, and of `castsim schema`.


class FindingEntry(Keys):
    """Something wrong with a file."""

    severity: Severity = says("How grave it is.")
    kind: str = says("Its kind.")
    message: str = says("The finding in words.")
    file: str = says("The file.")
    line: Line | None = says("Line, from 1; null if it is about the whole file.")
    column: Column | None = says("Column in code points, from 1; null as `line`.")
    end_column: Column | None = says("Column behind the last character; null as `line`.")
    help: str | None = says("The cure; null if there is no one cure.")
    legal: list[str] = says("What would be legal.")


class Check(CommandDocument, name="check"):
    """All findings of files."""

    findings: list[FindingEntry] = says("The findings, file by file.")


class ErrorEntry(Keys):
    """An error."""

    kind: str = says("Its kind; `internal error` is castsim's own fault.")
    message: str = says("The error in words.")
    file: str | None = says("The file; null if it has no place.")
    line: Line | None = says("Line, from 1; null if it has no place.")
    column: Column | None = says("Column in code points, from 1; null if it has no place.")
    legal: list[str] = says("What would be legal.")


class Failure(CommandDocument, name="errors"):
    """What every command writes that fails; the exit code is 1 or 2."""

    errors: list[ErrorEntry] = says("The errors.")


class FormEntry(Keys):
    """A document that a command may write."""

    name: str = says("Its name.")
    version: int = says("Its `schema_version`.")
    shape_sha256: Sha256 = says("Digest of its schema without descriptions.")
    meaning: str = says("What it tells.")


class CommandSchemas(Keys):
    """A command."""

    command: str = says("Its name.")
    documents: list[FormEntry] = says("What it may write.")


class SchemaList(CommandDocument, name="schema-list"):
    """The documents of all commands."""

    commands: list[CommandSchemas] = says("The commands.")


class SchemaEntry(CommandDocument, name="schema"):
    """The schema of a command's documents."""

    command: str = says("Its name.")
    schema_: dict[str, object] = says("The JSON Schema, draft 2020-12.", alias="schema")


class Completion(CommandDocument, name="completion"):
    """What `castsim completion` prints."""

    shell: str = says("Name of the shell.")
    script: str = says("The script that completes commands in it.")


class Manual(CommandDocument, name="manual"):
    """What `castsim manual` prints."""

    page: str = says("The manual page.")


# Inside of the launches of vector functions.


class Wait(Keys):
    """What the executions of a line waited for, all together."""

    cause: CauseName = says("The cause.")
    cycles: Annotated[float, ("unit", "cycles")]
    """How long; waits overlap each other."""
    for_line: Line | None = says("The line that makes what was waited for; null if it is not one line.")
    for_op: str | None = says("The instruction of that line; null as `for_line`.")


class LaunchLine(Keys):
    """One line of a launch."""

    line: Line | None
    """Line of the source, or number in the kernel of a tile operation; null for what belongs to the launch itself."""
    op: str = says("The instruction.")
    executions: int = says("How often it was executed.")
    cycles: Cycles = says("Cycles of the launches that went to it.")
    causes: dict[CauseName, Cycles] = says("The same by cause.")
    waits: list[Wait] = says("What its executions waited for, the longest first.")


class Launches(Keys):
    """All launches of one instruction of the source; of a tile operation, the first."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    executions: int = says("How many launches.")
    cycles: Cycles = says("Their cycles, those of the lines added up.")
    pipe_cycles: Cycles = says("What the engine counts of them.")
    lines: list[LaunchLine] = says("The lines.")


class LineCycles(Keys):
    """Cycles of a line."""

    line: Line | None = says("As in `lines`.")
    op: str = says("The instruction.")
    cycles: Cycles = says("Its cycles.")


class LaunchesByCause(Launches):
    """All launches of one instruction of the source, with the lines behind each cause."""

    behind_causes: dict[CauseName, list[LineCycles]] = says("The lines with cycles of each cause, most first.")


# What `castsim run --report kernel` adds.


FromTo = Annotated[list[int], ("minItems", 2), ("maxItems", 2), ("unit", "cycles")]


class KernelLine(Keys):
    """The cost of a source line to its pipe."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    executions: int = says("How often it was executed.")
    cycles: Cycles = says("Cycles from start to end of its executions, which may overlap.")
    pipe_cycles: Cycles = says("Cycles that its pipe spent on it.")
    share_of_pipe: float = says("Part of its pipe's occupied cycles, from 0 to 1.")
    causes: dict[CauseName, Cycles] = says("The pipe's cycles by cause.")


class PipesAtWork(Keys):
    """The cycles in which so many pipes worked at once."""

    pipes: int = says("Number of pipes.")
    cycles: Cycles = says("Cycles in which exactly so many worked.")


class Overlap(Keys):
    """How far the pipes work at the same time."""

    work_cycles: dict[Name, Cycles] = says("Cycles in which each pipe has an instruction at work.")
    serial_cycles: Cycles = says("Their sum: one pipe after the other.")
    covered_cycles: Cycles = says("Cycles in which some pipe works.")
    cycles_with_pipes_at_work: list[PipesAtWork] = says("The same by the number of pipes at work.")
    achieved: float | None
    """Part of what the busiest pipe could hide that is hidden, from 0 to 1; null if only one pipe works."""


class Bound(Keys):
    """The bottleneck."""

    pipe: str = says("The pipe with the most occupied cycles.")
    cause: CauseName = says("The cause of most of them.")
    cycles: Cycles = says("Cycles of that cause.")
    occupied_cycles: Cycles = says("Cycles in which the pipe is occupied.")


class Stretch(Keys):
    """Bytes of a buffer that instructions treat alike. Pairs are cycles from the first to the one behind the last."""

    first_byte: int = says("Address of the first byte.")
    last_byte: int = says("Address of the last byte.")
    scratch: bool = says("Whether it is some instruction's scratch tile.")
    written_by_lines: list[Line] = says("Lines that write it.")
    read_by_lines: list[Line] = says("Lines that read it.")
    live_cycles: Cycles = says("Cycles in which its content is still needed.")
    live: list[FromTo] = says("When its content is needed.")
    writes: list[FromTo] = says("When it is written.")
    reads: list[FromTo] = says("When it is read.")


class Buffer(Keys):
    """A buffer over time."""

    name: str = says("Name of the memory.")
    capacity_bytes: Bytes = says("Its size.")
    peak_live_bytes: Bytes = says("The most bytes that live at once.")
    peak_cycle: Cycles = says("The first cycle in which they do.")
    stretches: list[Stretch] = says("Its stretches, by address.")


class Kernel(Keys):
    """A whole kernel."""

    lines: list[KernelLine] = says("The lines of the source.")
    overlap: Overlap = says("The overlap of the pipes.")
    bound: Bound | None = says("The bottleneck; null if no pipe did anything.")
    launches: list[LaunchesByCause] = says("Inside of launches.")
    buffers: list[Buffer] = says("The on-chip buffers.")


class Pipe(Keys):
    """The cycles of a pipe."""

    busy_cycles: Cycles = says("Cycles in which it worked.")
    causes: dict[CauseName, Cycles] = says("Cycles by cause, without zeros; they add up to the total of the run.")


class LostMost(Keys):
    """The instruction on which pipes lost most cycles."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    inserted: bool = says("Whether castsim inserted it to synchronise.")
    lost_cycles: Cycles = says("Cycles lost in all its executions.")
    cause: CauseName = says("The cause of most of them.")
    causes: dict[CauseName, Cycles] = says("All of them by cause.")


class Link(Keys):
    """A result and who waits for it, in a program of bundles."""

    producer: str = says("The instruction that gives it.")
    producer_line: Line = says("Its line of the source.")
    consumer: str = says("The instruction that reads it.")
    consumer_line: Line = says("Its line of the source.")
    through: str = says("The register that holds it.")
    distance_bundles: int = says("The smallest distance in bundles at which it can be read.")


class LatencyEntry(Keys):
    """What the latencies of a run cost."""

    longest: Link = says("The link of the chain with the largest distance.")
    chain: list[Link] = says("The chain that costs most, in the order of the program.")
    chain_bundles: int = says("Bundles of one trip through it.")
    trips: int = says("How often it ran.")
    chain_cycles: Cycles = says("Cycles that the longest chains of the run take, all of them.")
    gained_cycles: Cycles
    """Cycles saved if every result could be read in the next bundle; unrolled loops can save more."""


class Instruction(Keys):
    """One execution of an instruction; in very long runs, one of several that an engine took together."""

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    pipe: str = says("Its pipe.")
    start_cycle: Cycles = says("First cycle.")
    end_cycle: Cycles = says("First cycle after its last effect.")
    executions: int = says(optional=True)
    """How many executions the entry stands for; only in runs of more than 65,536."""
    last_end_cycle: Cycles = says("Where the last of them ends; beside `executions`.", optional=True)


class ChoiceEntry(Keys):
    """An option that decides results which the text leaves open."""

    option: str = says("Name of the option.")
    value: str = says("Its value in this run.")
    legal: list[str] = says("The values that it may have.")
    effect: str = says("What follows from the value.")
    lines: list[Line] = says("The lines of the source where it counts.")


class PartialOutput(Keys):
    """An output of which not all elements are computed."""

    name: str = says("Name of the argument.")
    file: str | None = says("Its `.npy` file; null if it was not written.")
    computed_file: str | None
    """The `.npy` file that tells which elements are computed; null if it was not written."""
    format: str = says("Name of its format.")
    shape: list[Elements] = says("Extent of each dimension.")
    elements: Elements = says("How many are not computed.")
    first: list[int] = says("Index of the first of them.")


class UndefinedOutput(Keys):
    """An output that rests in part on bytes of a buffer that nothing wrote; they count as 0."""

    name: str = says("Name of the argument.")
    mask_file: str | None = says("The `.npy` file that tells which elements do; null if it was not written.")
    elements: Elements = says("How many do.")
    first: list[int] = says("Index of the first of them.")


class InsertedEntry(Keys):
    """A flag or a barrier that was inserted."""

    line: Line = says("Line of the source at which it stands.")
    place: Place = says("Where, beside that line.")
    text: str = says("The instruction.")
    executions: int = says("How often it was executed.")


class Synchronisation(Keys):
    """Who synchronises the pipes."""

    by: str = says("`insertion`, `program` or `interlock`.")
    inserted: list[InsertedEntry] = says("What was inserted.")


class Race(Keys):
    """What the order of the program does not guarantee."""

    kind: str = says("Kind of the finding.")
    message: str = says("The finding in words.")
    missing: str | None = says("What would cure it; null if that cannot be said.")
    lines: list[Line] = says("Lines of the instructions.")
    pipes: list[str] = says("Their pipes.")
    space: str | None = says("The memory; null where no bytes are concerned.")
    first_byte: int | None = says("Address of the first byte; null as `space`.")
    last_byte: int | None = says("Address of the last byte; null as `space`.")


class Operation(Keys):
    """A vector operation on one element type."""

    op: str = says("The operation.")
    element: str = says("Name of the element's format.")
    validated: bool = says("Whether its cycles were compared with published ones.")
    not_bit_exact: str | None = says("Why its values are not claimed to be bit-exact; null if they are.")


class Read(Keys):
    """A read of memory on which the path rests."""

    read: str = says("The element that was read.")
    file: str = says("The source file.")
    line: Line = says("Line of the read.")
    column: Column = says("Column of the read.")
    value: Value = says("What it gave.")
    origin: Origin = says("Where the value is from.")


class CastLine(Keys):
    """What the casts of an instruction did to their numbers, all executions together; those not named are exact.

    Of vector instructions and TPC code: what conversions of one line between the same formats did, in active lanes.
    """

    line: Line = says("Line of the source.")
    op: str = says("The instruction.")
    src: str = says("Name of the source format.")
    dst: str = says("Name of the destination format.")
    elements: Elements = says("How many numbers were cast.")
    rounded: Elements = says("How many became another number, and were within the range of the destination.")
    clamped: Elements = says("How many were beyond the range and became its end.")
    wrapped: Elements
    """How many were beyond the range and became another number, as a rule by their low bits."""
    overflow: Elements = says("How many became infinity, or NaN.")
    nan: Elements = says("How many were NaN and became a number.")


class PlaceholderUse(Keys):
    """An operation that is not simulated."""

    op: str = says("The operation.")
    pipe: str = says("The pipe that it keeps.")
    executions: int = says("How often.")
    cycles_each: Cycles = says("How long each time, as `--opaque` says.")


class Placeholders(Keys):
    """The opaque operations."""

    operations: list[PlaceholderUse] = says("What they are.")
    cycles_resting_on_them: Cycles = says("How much of the total rests on them.")
    cycles_without_them: Cycles = says("The total if they took no time.")


class Gain(Keys):
    """What lifting a limit of the target gains."""

    name: str = says("The limit.")
    title: str = says("What lifting it means.")
    facts: dict[Name, Scalar] = says("The facts that it sets, by path.")
    total_cycles: Cycles = says("Cycles of the run without the limit.")
    gained_cycles: Cycles = says("Cycles saved; negative if it costs.")
    reason: str | None = says("What takes the cycles where it costs; else null.")


class RestShare(Keys):
    """Cycles that rest on one sort of evidence."""

    basis: SourceKind
    """What the figures were read off that these cycles were compared with, or else the weakest of their facts."""
    standing: Standing
    """How they were compared: with rows that no fact was fitted to, with such as were fitted, or not at all."""
    cycles: Cycles = says("How many they are.")
    operations: list[str] = says("On what they are spent, most first.")


class IntervalEntry(Keys):
    """Where measured cycles lie, by the errors of measured rows that were not fitted."""

    share: int = says("In how many percent of the cases.")
    covered: Cycles = says("The cycles of which this is told: those of kinds of operations with such rows.")
    low: Cycles = says("The lower end for these.")
    high: Cycles = says("The upper end.")
    rows: int = says("The number of these rows.")


class SensitivityEntry(Keys):
    """The weight of a number of a fact."""

    fact: str = says("Its path in the description.")
    status: Status = says("How well the fact is known.")
    value: float = says("The number.")
    less: int = says("By how much cycles change if it is 10 percent less.")
    more: int = says("By how much they change if it is 10 percent more.")


class TrustEntry(Keys):
    """What the cycles rest on."""

    shares: list[RestShare] = says("All cycles by evidence; they add up to the total.")
    interval: IntervalEntry | None = says("Where measured cycles lie; null if too few rows were measured.")
    sensitivities: list[SensitivityEntry] | None
    """Numbers of facts by weight, most first; null if the program is too long to time it again without `--facts`."""
    clock_status: Status = says("How well the clock is known by which seconds are computed.")


class CoreEntry(Keys):
    """A core of a kernel in C++ that ran on all of its cores."""

    block: int = says("Its number, from 0.")
    cycles: Cycles = says("Its cycles.")


class Run(CommandDocument, name="run"):
    """A program that ran. Where no cycles are modelled, what tells of time is null and `untimed` says why."""

    program: str = says("The file.")
    entry: str | None = says("The function; null where there is none.")
    target: str = says("Name of the target.")
    engine: str | None = says("The engine: `fast` or `event`.")
    total_cycles: Cycles | None = says("Cycles of the run.")
    seconds: Seconds | None = says("The same at the target's frequency.")
    launch_cycles: Cycles = says(optional=True)
    """Launch and end of a kernel, which are in no pipe, where they are known."""
    untimed: str = says("Why no cycles are modelled.", optional=True)
    pipes: dict[Name, Pipe] | None = says("The pipes by name.")
    lost_most: LostMost | None = says("The instruction on which most cycles were lost; null if none were.")
    latency_bound: LatencyEntry | None = says(optional=True)
    """The chain of dependences that bounds a program of bundles; null where its latencies bind nothing."""
    instructions: list[Instruction] | None = says("Every execution, in program order.")
    launches: list[Launches] = says(optional=True)
    """Inside of the launches that a program of vector instructions writes."""
    path_decided_by: list[Read] = says(optional=True)
    """The reads on which the path rests, if there are any."""
    choices: list[ChoiceEntry] = says("The options on which results rest, if there are any.", optional=True)
    placeholders: Placeholders = says("The opaque operations, if there are any.", optional=True)
    outputs: list[Output] = says("The output arrays.")
    outputs_not_computed: list[PartialOutput] = says(optional=True)
    """Outputs of which not all is computed, if there are any."""
    outputs_undefined: list[UndefinedOutput] = says(optional=True)
    """Outputs that rest in part on what nothing wrote, if there are any."""
    printed: list[str] = says("What a kernel in C printed, with file and line, if it did.", optional=True)
    errors: list[ErrorEntry] = says(optional=True)
    """Why the run fails although it came to its end: races, outputs that are not computed."""
    casts: list[CastLine] = says(optional=True)
    """What the casts did to their numbers, by instruction; where values were computed."""
    facts_assumed: list[FactEntry] | None
    """The facts that the run rests on and no document states, by weight where it is known."""
    trust: TrustEntry | None = says("What the cycles rest on.")
    warnings: list[str] = says("What the program asks for in vain, or does in a surprising way.")
    synchronisation: Synchronisation = says("Who synchronises; of tile programs.", optional=True)
    races: list[Race] = says(optional=True)
    """The races found; of tile programs and those of vector instructions."""
    operations: list[Operation] = says(optional=True)
    """The vector operations of a tile program, if it has any."""
    stale_reads: list[StaleRead] = says(optional=True)
    """The reads that came too early; of exposed pipelines that were checked."""
    what_if: list[Gain] | None = says("With `--what-if`: what lifting each limit gains.", optional=True)
    lint: list[LintEntry] = says("With `--lint`: the certain findings.", optional=True)
    lint_possible: list[LintEntry] = says(optional=True)
    """With `--lint`: findings that depend on the path, on predicates or on start values."""
    kernel: Kernel | None = says("With `--report kernel`: the whole kernel.", optional=True)
    cores: list[CoreEntry] = says(optional=True)
    """With `--all-blocks`: every core; the document is of the longest."""


class Entry(Keys):
    """A function of a file."""

    entry: str = says("Name of the function.")
    cycles: Cycles | None = says("Its cycles; null if it cannot be run, or they are not modelled.")
    error: str | None = says("Why it cannot be run; null if it can.")


class AllEntries(CommandDocument, name="run-all-entries"):
    """With `--all-entries`: every function of a file by itself."""

    program: str = says("The file.")
    entries: list[Entry] = says("The functions.")
    failed: int = says("How many cannot be run.")
