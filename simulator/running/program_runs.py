"""Running of a program: computed values, simulated time, and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from castsim.engines import engine_for, simulate
from castsim.execution.input_data import BACKEND, TOOLCHAIN, ProgramChoice, arrayed
from castsim.execution.outcomes import CastPlace, Outcomes, PlotMixin, notebook_function
from castsim.execution.pipe_operations import Placeholder
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, MAX_ELEMENTS, Limits, stale_mode
from castsim.execution.timing import WAITING, Cause, Listener, PipeTiming, Timing, repeated
from castsim.execution.tree import Block, Instruction, InstructionRole, Loop, Lowered, Node, Tree
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import MAX_STATEMENTS, EngineError, ReadError, Span, Warnings, arguments_checked
from castsim.isa.formats import Codes
from castsim.isa.reading import KERNEL_SUFFIX, STDIN, Source, read_source
from castsim.machines.mechanisms import lowerer_of
from castsim.running.languages import C, language_module
from castsim.running.loaded import Inputs, LaunchRequest, Loaded, LoadedProgram, Partial, RunOptions
from castsim.running.program_loading import load
from castsim.running.synchronisation.race_findings import MODES, STOP, RaceFinding
from castsim.targets.description import CORES, with_options
from castsim.targets.loader import Target

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from castsim.machines.vliw.findings import StaleRead
    from castsim.running.loaded import Watch


# What stands in for opaque operations, and how much of a run's time rests on that.


@dataclass(frozen=True, slots=True)
class OpaqueUse:
    """One opaque operation by name: its pipe, its number of executions, and the cycles of each."""

    name: str
    pipe: str
    executions: int
    cycles: int


@dataclass(frozen=True, slots=True)
class OpaqueUses:
    """All opaque operations of a run; `without` is its cycles if they take none, `total` its actual cycles."""

    uses: tuple[OpaqueUse, ...]
    total: int
    without: int

    @property
    def resting(self) -> int:
        """Cycles of the total that are due to placeholders."""
        return self.total - self.without


def placeholders_of(tree: Tree, total: int, timed: Callable[[Tree], int]) -> OpaqueUses | None:
    """Return the placeholders of a tree that takes `total` cycles, None if it has none; `timed` times a tree."""
    if all(instruction.role is not InstructionRole.OPAQUE for instruction in tree.instructions):
        return None
    counts = _count(tree.root, {})
    uses = tuple(
        OpaqueUse(placeholder.kind, placeholder.pipe, times, placeholder.cycles)
        for placeholder, times in counts.items()
    )
    without = total
    if any(use.cycles for use in uses):
        root = _without(tree.root, {})
        assert isinstance(root, Block)
        without = timed(replace(tree, root=root))
    return OpaqueUses(uses, total, without)


def _count(node: Node, counted: dict[int, Counter[Placeholder]]) -> Counter[Placeholder]:
    """Return how often each placeholder is executed."""
    if isinstance(node, Placeholder):
        return Counter((node,))
    if isinstance(node, Loop):
        inner = _count(node.body, counted)
        return Counter({use: times * node.trips for use, times in inner.items()})
    if not isinstance(node, Block | Lowered):
        return Counter()
    if id(node) not in counted:
        counts: Counter[Placeholder] = Counter()
        for item in node.items if isinstance(node, Block) else (node.body,):
            counts.update(_count(item, counted))
        counted[id(node)] = counts
    return counted[id(node)]


def _without(node: Node, cleaned: dict[int, Node]) -> Node:
    """Return a node whose placeholders take no cycles."""
    if id(node) not in cleaned:
        changed: Node = node
        if isinstance(node, Placeholder):
            changed = replace(node, cycles=0)
        elif isinstance(node, Block):
            changed = replace(node, items=tuple(_without(item, cleaned) for item in node.items))
        elif isinstance(node, Loop | Lowered):
            body = _without(node.body, cleaned)
            assert isinstance(body, Block)
            changed = replace(node, body=body)
        cleaned[id(node)] = changed
    return cleaned[id(node)]


RunTable: TypeAlias = Literal["operations", "causes", "lines"]
"""The tables of a run that are available as frames."""

_NO_TIMING = Timing(0, {}, (), (), frozenset())
"""Placeholder timing of programs without a cycle model; it is never shown."""


@dataclass(frozen=True, slots=True, repr=False)
class Result(PlotMixin[RunTable]):
    """Result of a run: arrays by argument name (empty if only timed) and the timing.

    Notebooks show it as a summary with pipes, a small timeline and the costliest lines. `plot` draws the cycles of
    every pipe by cause. Frames, times and durations in cycles of the chip's clock:

    - `operations`: a row per executed operation of a pipe, in issue order; its `line` (0: inserted), `text` and `name`;
      `start` and `end`, the first cycle after its last effect; `pipe_cycles` that its pipe spent on its behalf, and
      these again in a column per cause.
    - `causes`: a row per pipe and cause; the `cycles` of a pipe add up to those of the run, `share` to 1.
    - `lines`: a row per instruction of the source that was executed, without index arithmetic and inserted flags;
      `cycles` from start to end of all its `executions`, which may overlap, `pipe_cycles` that its pipe spent.
    """

    loaded: Loaded
    """The program as it was read for its target."""
    engine: str
    """The engine used: fast or event."""
    outputs: Mapping[str, Codes]
    """Written arguments, by name: arrays of the argument's shape, in the native dtype of their format or,
    if there is none, as codes.
    """
    timing: Timing
    """The timing in cycles: the total, pipes, operations."""
    stale_reads: tuple[StaleRead, ...] | None = None
    """Reads of an exposed pipeline that came too early; None if the machine interlocks or reads were not checked."""
    partial: Mapping[str, Partial] = field(default_factory=dict)
    """Outputs that are not fully computed, because they depend on opaque operations; `outputs` lacks them."""
    undefined: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Masks of output elements that depend on unwritten buffer bytes; they are computed as if these were 0."""
    placeholders: OpaqueUses | None = None
    """The placeholders of opaque operations, and the cycles due to them; None if there are none."""
    races: tuple[RaceFinding, ...] | None = None
    """Accesses whose order a tile program does not guarantee; None if races were not checked."""
    casts: Mapping[CastPlace, Outcomes] = field(default_factory=dict)
    """How many numbers each cast of the source rounded, clamped, wrapped, overflowed; empty if no values were
    computed.
    """

    def __repr__(self) -> str:
        outputs = "".join(f", {name} {arrayed(array)}" for name, array in self.outputs.items())
        loaded = self.loaded
        cycles = "no cycles" if self.untimed else f"{self.cycles:,} cycles"
        return f"<Result {loaded.title} on {loaded.target.name}: {cycles}{outputs}>"

    @property
    def untimed(self) -> str:
        """The reason why the run has no cycles; empty if it has."""
        return self.loaded.untimed

    @property
    def cycles(self) -> int:
        """Cycles from the first instruction until every pipe is empty.

        Raises:
            EngineError: the program's cycles are not modelled.
        """
        if self.untimed:
            raise EngineError(self.untimed)
        return self.timing.total

    @property
    def pipes(self) -> Mapping[str, PipeTiming]:
        """Cycles of each pipe by cause."""
        return self.timing.pipes

    @property
    def trace(self) -> Timing:
        """Start, end and causes of every operation."""
        return self.timing

    @property
    def choices(self) -> tuple[tuple[ProgramChoice, Span], ...]:
        """Options that decide results which the text leaves open, each with a position."""
        return self.loaded.executed.choices

    @property
    def warnings(self) -> Warnings:
        """Warnings about settings without effect and surprising behaviour, each with its position."""
        return self.loaded.executed.warnings

    def timeline(self, start: int = 0, end: int | None = None) -> Figure:
        """Return a figure of the operations that occupy the pipes in cycles [start, end), coloured by instruction.

        Args:
            start, end: in cycles; None is the end of the run. Of very many operations the first 100,000 are drawn, and
                the title says so; None is then the end of these.

        Raises:
            ReadError: the cycles are outside the run, or matplotlib is not installed: the extra `notebook` installs it.
            EngineError: the program's cycles are not modelled.
        """
        figure: Figure = notebook_function("timeline_of")(self, start, end)
        return figure


@dataclass(frozen=True, slots=True)
class RunConfig:
    """The run of a program: its file, target, data and limits, and the reaction to what goes wrong.

    `source` is the program if it was read, recorded or converted before; `program` then only names it.
    """

    program: str
    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    inputs: Inputs = field(default_factory=dict)
    options: Mapping[str, int | str] = field(default_factory=dict)
    """Target options, to which `toolchain` and `backend` are added."""
    source: Source | None = None
    engine: str | None = None
    timing_only: bool = False
    max_cycles: int = MAX_CYCLES
    limits: Limits = DEFAULT_LIMITS
    sync: str = "insert"
    races: str | None = None
    stale_reads: str | None = None
    skip: bool = True
    toolchain: str | None = None
    backend: str | None = None
    opaque: Mapping[str, int] = field(default_factory=dict)
    declare: Path | None = None
    machine: int | None = None
    level: int | None = None
    launch: LaunchRequest | None = None
    unsafe_scratch: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Texts of the parameters of a tile program."""

    @property
    def path(self) -> Path:
        """The file of the program."""
        return Path("/dev/stdin" if self.program == STDIN else self.program)

    @property
    def is_read_once(self) -> bool:
        """Whether the program comes from a pipe, so it cannot be read again."""
        return self.program == STDIN or self.path.is_fifo() or self.path.is_char_device()

    @property
    def is_recorded(self) -> bool:
        """Whether the program is a recording, whose text nobody wrote."""
        return self.source is not None and self.source.program is not None

    def prepared(self, target: Target) -> Target:
        """Return a target with the options set.

        Raises:
            ReadError: an option was set twice in different ways, the target lacks it, or its value is not legal.
        """
        changes = dict(self.options)
        for name, value in ((TOOLCHAIN, self.toolchain), (BACKEND, self.backend)):
            if value is not None and changes.setdefault(name, value) != value:
                raise ReadError(f"--{name} {value} and --option {name}={changes[name]} contradict each other")
        return with_options(target, changes)

    def load(self, lift: Callable[[Target], Target] = lambda target: target) -> LoadedProgram:
        """Read, walk and lower the program; `lift` changes the target once its options are set.

        Raises:
            CastsimError: see `castsim.running.program_loading.load`.
        """
        source = self.source
        if self.parameters:
            from castsim.running.program_edits import with_parameters  # noqa: PLC0415 - few programs have parameters

            source = with_parameters(
                read_source(self.path, lambda: False) if source is None else source, self.parameters
            )
        return load(
            self.path if source is None else source, self.target, self.entry, self.args,
            lambda target: lift(self.prepared(target)),
            lambda target: lowerer_of(target, unsafe_scratch=self.unsafe_scratch), self.sync, declare=self.declare,
            machine=self.machine, opaque=self.opaque, limits=self.limits, level=self.level, launch=self.launch,
        )  # fmt: skip

    def run(
        self, loaded: LoadedProgram, observer: Listener | None = None, stage: Callable[[str], None] = lambda _: None
    ) -> Result:
        """Compute and time the loaded program; see `run_loaded`."""
        return run_loaded(
            loaded, self.inputs, engine=self.engine, timing_only=self.timing_only, max_cycles=self.max_cycles,
            observer=observer, stage=stage, races=self.races or STOP, skip=self.skip, stale_reads=self.stale_reads,
            limits=self.limits,
        )  # fmt: skip


@arguments_checked
def run(
    program: str | Path,
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, Codes | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    engine: str | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    sync: str = "insert",
    races: str = STOP,
    declare: str | Path | None = None,
    skip: bool = True,
    stale_reads: str | None = None,
    max_walk: int | None = None,
    max_statements: int = MAX_STATEMENTS,
    max_elements: int = MAX_ELEMENTS,
    toolchain: str | None = None,
    backend: str | None = None,
    opaque: Mapping[str, int] | None = None,
    cores: int | None = None,
    tensors: Mapping[str, str] | None = None,
    index_space: Sequence[int] | None = None,
    tpcs: int = 1,
    accumulators: str | None = None,
    defines: Mapping[str, str] | None = None,
    folders: Sequence[str | Path] = (),
) -> Result:
    """Run a program file and return its outputs and timing.

    Args:
        program: path of a `.pto`, `.tpc` or `.c` file, or of a TPC binary.
        target: name, path of a description, or a loaded target; None takes the one the file names.
        entry: function to run; None takes the entry, or the only function.
        inputs: arrays by argument name, or values of `--in`: native dtype or codes, of the argument's shape or flat.
        args: values of scalar arguments; of S registers in assembly.
        engine: `fast` (default), or `event`, the discrete-event reference: cycles and causes are the same.
        timing_only: compute no values; no inputs are needed.
        max_cycles: maximum number of simulated cycles.
        sync: `insert` adds the flags of the vendor's tool to a program without flags, `interlock` makes its
            instructions wait for each other's bytes without flags.
        races: `stop` refuses a tile program with races, `report` runs it and returns them, `ignore` does not look.
        declare: file with the declarations of a binary; None takes the one beside it.
        skip: False makes the fast engine execute every trip of every loop.
        max_walk: maximum number of trips and statements of a tile program walked one by one, of executions with
            values, and of walked bundles of assembly; None: `castsim.execution.run_limits.MAX_WALK` for the first,
            `MAX_COMPUTED` for the others.
        max_statements: maximum number of statements in the text; of bundles in assembly.
        max_elements: maximum number of elements of one tensor argument.
        opaque: assumed cycles of operations that are not modelled, by name (`{"tmatmul": 400}`); their
            results are not computed.
        stale_reads: `report` (default) returns the reads of an exposed pipeline that come too early, `stop` raises at
            the first, `ignore` does not check; the values are the old ones.
        toolchain: the assembler of a tile program: `older`, `2026-05`, `2026-07`, `2026-08`; None: the target's option.
        backend: `library` or `vpto`, on A5; None: the target's option.
        cores: number of cores that share global memory; None: one, or the number in the target's description.
        tensors: tensors of a kernel in C in the form of `--tensor`, `{"y": "out:f32[300,5]"}`, sizes fastest first;
            arrays in `inputs` need none.
        index_space: its number of index space members, one to five numbers.
        tpcs: number of engines that share them.
        accumulators: the order of sums in its loops with `loop_unroll`, `source` (default) or `split`.
        defines: its macros, texts by name.
        folders: folders of its headers, in addition to its own.

    Returns:
        Arrays by argument name, cycles by pipe and cause, and findings: races, stale reads, warnings.

    Raises:
        ReadError, IllegalError, TileError, ScratchError, RaceError, StaleReadError, LimitError: see
            `castsim.isa.errors`.
        EngineError: deadlock or cycle limit.
    """
    launch = None
    if Path(program).suffix == KERNEL_SUFFIX:
        launch = language_module(C).launch_request(
            tensors or {}, index_space, tpcs, accumulators, inputs, defines, folders
        )
    elif tensors or index_space or tpcs != 1 or accumulators or defines or folders:
        message = f"'{program}' is not a C kernel: leave out tensors, index space, engines, sums, macros and folders"
        raise ReadError(message, legal=(f"a {KERNEL_SUFFIX} file",))
    config = RunConfig(
        str(program), target, entry, args or {}, inputs or {}, {} if cores is None else {CORES: cores},
        engine=engine, timing_only=timing_only, max_cycles=max_cycles,
        limits=Limits(max_statements, max_walk, max_elements), sync=sync, races=races, stale_reads=stale_reads,
        skip=skip, toolchain=toolchain, backend=backend, opaque=opaque or {},
        declare=None if declare is None else Path(declare), launch=launch,
    )  # fmt: skip
    return config.run(config.load())


def run_loaded(
    loaded: LoadedProgram,
    inputs: Mapping[str, Codes | str],
    *,
    engine: str | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    observer: Listener | None = None,
    stage: Callable[[str], None] = lambda _: None,
    races: str = STOP,
    skip: bool = True,
    stale_reads: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    watch: Watch | None = None,
) -> Result:
    """Compute and time a loaded program; `stage` receives the stage, `observer` follows the engine, `watch` the
    values.
    """
    stale = stale_mode(stale_reads)
    if races not in MODES:
        raise ReadError(f"unknown treatment of races '{races}'", legal=MODES)

    def progress(issued: int) -> None:
        if observer:
            observer.progress(issued, 0)

    how = RunOptions(not timing_only, max_cycles, races, stale, skip, limits, stage, progress, watch)
    issued = loaded.issue(inputs, how)
    stage("time")
    name, ready = engine_for(engine, observer), issued.loaded
    if ready.untimed:
        return Result(
            ready, name, issued.outputs, _NO_TIMING, issued.stale_reads, races=issued.races, casts=issued.casts
        )
    timing = simulate(ready.tree, ready.target, observer, engine=name, max_cycles=max_cycles, skip=skip)
    resting = placeholders_of(
        ready.tree, timing.total,
        lambda tree: simulate(tree, ready.target, None, engine=name, max_cycles=max_cycles, skip=skip).total,
    )  # fmt: skip
    return Result(
        ready, name, issued.outputs, timing, issued.stale_reads, issued.partial, issued.undefined, resting,
        issued.races, issued.casts,
    )  # fmt: skip


def computed(
    loaded: LoadedProgram,
    inputs: Mapping[str, Codes | str],
    limits: Limits = DEFAULT_LIMITS,
    stage: Callable[[str], None] = lambda _: None,
) -> dict[str, Codes]:
    """Return the outputs of a program for its inputs, without timing it or checking races and stale reads.

    Raises:
        ReadError: an input is unknown, missing or misshapen.
        LimitError: there are more executions than the limits allow.
    """
    return dict(loaded.issue(inputs, RunOptions(limits=limits, stage=stage)).outputs)


# The cycles of a run by source instruction.


SourceKey = tuple[str, int, int, str, str]
"""File, line and column of an instruction, its pipe and its name."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """All executions of one source instruction, including inlined copies.

    `text` is only the mnemonic if the copies have different operands. `cycles` adds up their spans from start to
    end, which may overlap; `pipe_cycles` are those that the pipe of each operation spent on its behalf, work
    and waiting, which do not overlap; `work` is the part of them that was work.
    """

    text: str
    pipe: str
    span: Span
    executions: int
    first_start: int
    last_end: int
    cycles: int
    pipe_cycles: int
    work: int
    key: SourceKey


def listed(instruction: Instruction) -> bool:
    """Return whether reports have a row for an instruction: it is in the source and not bookkeeping."""
    return not instruction.inserted and instruction.role is not InstructionRole.BOOKKEEPING


def source_key(instruction: Instruction) -> SourceKey:
    """Return the key that an instruction shares with its inlined or unrolled copies."""
    span = instruction.span
    return span.file, span.line, span.column, instruction.pipe, instruction.name


def source_lines(tree: Tree, timing: Timing) -> tuple[SourceLine, ...]:
    """Return one row per executed source instruction that is `listed`, in source order."""
    spent, spans = _pipe_cycles(timing), _by_instruction(timing)
    copies: dict[SourceKey, list[int]] = {}
    for number in spans:
        if listed(tree.instructions[number]):
            copies.setdefault(source_key(tree.instructions[number]), []).append(number)
    lines = [
        _line(
            [tree.instructions[number] for number in numbers],
            [spans[number] for number in numbers],
            [spent.get(number, (0, 0)) for number in numbers],
        )
        for numbers in copies.values()
    ]
    return tuple(sorted(lines, key=lambda line: (line.span.line, line.span.column)))


def bookkeeping(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return the executions and cycles of index arithmetic and loop turnarounds, which have no lines of their own."""
    ours = [
        s
        for number, s in _by_instruction(timing).items()
        if tree.instructions[number].role is InstructionRole.BOOKKEEPING
    ]
    return sum(spans.count for spans in ours), sum(spans.cycles for spans in ours)


def inserted(tree: Tree, timing: Timing) -> tuple[int, int]:
    """Return the executions of inserted flags and barriers, and the cycles that pipes waited at them."""
    spent, spans = _pipe_cycles(timing), _by_instruction(timing)
    executions = sum(span.count for number, span in spans.items() if tree.instructions[number].inserted)
    return executions, sum(cycles for number, (cycles, _) in spent.items() if tree.instructions[number].inserted)


def causes_by_line(tree: Tree, timing: Timing) -> dict[int, dict[Cause, int]]:
    """Return the cycles that pipes spent on the `listed` instructions of each source line, by cause."""
    causes: dict[int, dict[Cause, int]] = {}
    for operation, _, times in repeated(timing.operations):
        instruction = tree.instructions[timing.executions[operation.execution].instruction]
        if listed(instruction):
            own = causes.setdefault(instruction.span.line, {})
            for cause, cycles in operation.causes.items():
                own[cause] = own.get(cause, 0) + times * cycles
    return causes


@dataclass(slots=True)
class _ExecutionSpans:
    """The executions of one instruction, combined."""

    first_start: int
    last_end: int
    count: int = 0
    cycles: int = 0


def _by_instruction(timing: Timing) -> dict[int, _ExecutionSpans]:
    spans_found: dict[int, _ExecutionSpans] = {}
    for execution, last, times in repeated(timing.executions):
        spans = spans_found.setdefault(execution.instruction, _ExecutionSpans(execution.start, last.end))
        spans.first_start = min(spans.first_start, execution.start)
        spans.last_end = max(spans.last_end, execution.end, last.end)
        spans.count += times
        # What is issued ahead of a loop's slower pipes lasts longer from copy to copy, by the same amount each time.
        spans.cycles += times * (execution.end - execution.start + last.end - last.start) // 2
    return spans_found


def _pipe_cycles(timing: Timing) -> dict[int, tuple[int, int]]:
    """Return the cycles that pipes spent on each instruction, and how many of them were work."""
    pipe_cycles: dict[int, tuple[int, int]] = {}
    executions = timing.executions
    for operation, _, times in repeated(timing.operations):
        number = executions[operation.execution].instruction
        spent, worked = pipe_cycles.get(number, (0, 0))
        waited = sum(cycles for cause, cycles in operation.causes.items() if cause in WAITING)
        whole = sum(operation.causes.values())
        pipe_cycles[number] = spent + times * whole, worked + times * (whole - waited)
    return pipe_cycles


def _line(
    copies: Sequence[Instruction], spans: Sequence[_ExecutionSpans], spent: Sequence[tuple[int, int]]
) -> SourceLine:
    first = copies[0]
    return SourceLine(
        text=first.text if len({copy.text for copy in copies}) == 1 else first.name,
        pipe=first.pipe,
        span=first.span,
        executions=sum(span.count for span in spans),
        first_start=min(span.first_start for span in spans),
        last_end=max(span.last_end for span in spans),
        cycles=sum(span.cycles for span in spans),
        pipe_cycles=sum(cycles for cycles, _ in spent),
        work=sum(work for _, work in spent),
        key=source_key(first),
    )
