"""A loaded program, whatever its language: its requirements, how it is issued, and the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from castsim.execution import run_limits
from castsim.execution.input_data import ArgumentUse
from castsim.execution.interpreter.interpreter import Executed
from castsim.execution.interpreter.lowerer import Lowerer
from castsim.execution.outcomes import CastPlace, Outcomes
from castsim.execution.pipe_operations import PATH_ONLY, Idle
from castsim.execution.run_limits import DEFAULT_LIMITS, MAX_CYCLES, Limits, walk_limit
from castsim.execution.tree import Block, Loop, Lowered, Node, Tree
from castsim.isa.dataclass import dataclass, field
from castsim.isa.errors import WarningKind, Warnings, WarningText
from castsim.isa.formats import Codes
from castsim.isa.reading import Language
from castsim.machines.mechanisms import lowerer_of, tile_target
from castsim.running.languages import FRAGMENT_NAME
from castsim.running.synchronisation.flags import Synchronised
from castsim.running.synchronisation.race_detector import find_races
from castsim.running.synchronisation.race_findings import IGNORE, SLOTS, STOP, RaceFinding, RaceKind, refusal
from castsim.targets.loader import Target, load_target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from castsim.execution.buffer_values import Follower
    from castsim.execution.interpreter.vector_unit import MicroMemory, VectorUnit
    from castsim.execution.timing import Timing
    from castsim.machines.vliw.findings import LintFinding, StaleRead
    from castsim.machines.vliw.latency_bound import LatencyBound
    from castsim.machines.vliw.machine import VliwCore

    Bytes = NDArray[np.uint8]


Inputs: TypeAlias = "Mapping[str, Codes | str]"
"""Arrays, or values of `--in`, by argument name."""


@dataclass(frozen=True, slots=True)
class TensorGiven:
    """A tensor of a launch: direction, format, and sizes with the fastest dimension first."""

    direction: str
    format: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The launch of a kernel in C: tensors by name, members of the index space, engines, macros, folders of headers."""

    tensors: Mapping[str, TensorGiven] = field(default_factory=dict)
    index_space: tuple[int, ...] = ()
    engines: int = 1
    defines: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[Path, ...] = ()
    accumulators: str = "source"
    """The order in which loops with `loop_unroll` add floats: that of the source, or that of the vendor's compiler."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options for issuing a program.

    `values` False computes only those that the path needs; `races` and `stale_reads` choose the reaction to either;
    `skip` skips trips of loops that repeat earlier ones. `stage` receives the current stage, `progress` the number of
    issued instructions. `watch` follows the values.
    """

    values: bool = True
    max_cycles: int = MAX_CYCLES
    races: str = IGNORE
    stale_reads: str = run_limits.IGNORE
    skip: bool = True
    limits: Limits = DEFAULT_LIMITS
    stage: Callable[[str], None] = lambda _: None
    progress: Callable[[int], None] = lambda _: None
    watch: Watch | None = None


def _no_latencies(timing: Timing) -> None:
    del timing


@dataclass(frozen=True, slots=True, repr=False)
class Loaded:
    """A program walked and lowered for a target, ready to compute and to time."""

    file: str
    entry: str
    target: Target
    executed: Executed
    synchronised: Synchronised | None = None
    """The instructions inserted into a program without flags, as in the tree; None if the program is unchanged."""
    source: str = ""
    """The text of the program."""
    untimed: str = ""
    """The reason why it has no cycles; empty if it has."""
    latencies: Callable[[Timing], LatencyBound | None] = _no_latencies
    """Cost of latencies in a run of this length; None for programs that are not bundles."""
    printed: tuple[str, ...] = ()
    """Output of a kernel in C, line by line."""

    def __repr__(self) -> str:
        return f"<Loaded {self.title} on {self.target.name}>"

    @property
    def title(self) -> str:
        """The file and the function; a fragment has no name."""
        return "fragment" if self.file == FRAGMENT_NAME else f"{self.file} @{self.entry}"

    @property
    def tree(self) -> Tree:
        """The operations that the machine issues."""
        return self.executed.tree

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments and how the program uses them."""
        return self.executed.arguments


@dataclass(frozen=True, slots=True)
class Partial:
    """An output that is not fully computed: `computed` is a mask of the computed elements; others are meaningless."""

    values: Codes
    computed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """Result of a program: the issued operations, the outputs by name, and the findings.

    `stale_reads` and `races` are None if they were not checked.
    """

    loaded: Loaded
    outputs: Mapping[str, Codes] = field(default_factory=dict)
    stale_reads: tuple[StaleRead, ...] | None = None
    races: tuple[RaceFinding, ...] | None = None
    partial: Mapping[str, Partial] = field(default_factory=dict)
    """Outputs that depend on opaque operations, and are not among the others."""
    undefined: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """Masks of the elements that depend on unwritten buffer bytes, by output."""
    casts: Mapping[CastPlace, Outcomes] = field(default_factory=dict)
    """Effects of casts on their numbers, in source order; empty if they are unknown."""


class WalkedWhenIssued:
    """Properties of programs whose inputs decide the path, which is unknown until they are issued."""

    __slots__ = ()

    @property
    def tree(self) -> None:
        """None: the issued operations are known only after the walk."""
        return

    @property
    def untimed(self) -> str:
        """Empty: whether all cycles are modelled is known only after the walk."""
        return ""


class InTileLanguage:
    """Properties of all programs in the tile language."""

    __slots__ = ()

    @property
    def language(self) -> str:
        """The name of its language in descriptions of targets."""
        return Language.TILES.value

    def lint(self) -> None:
        """Return None: the language has no issue rules."""
        return


class LoadedProgram(Protocol):
    """A program read for a target."""

    @property
    def file(self) -> str:
        """Its name in messages."""
        ...

    @property
    def entry(self) -> str:
        """The function or part that is run."""
        ...

    @property
    def target(self) -> Target:
        """The target that it is read for."""
        ...

    @property
    def language(self) -> str:
        """The name of its language in descriptions of targets."""
        ...

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """Its inputs and outputs, by name."""
        ...

    @property
    def tree(self) -> Tree | None:
        """The operations that the machine issues, whatever the values; None if they are known only after issuing."""
        ...

    @property
    def untimed(self) -> str:
        """The reason why its cycles are not modelled; empty if they are."""
        ...

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Compute values and path.

        Raises:
            ReadError: an input is unknown, missing or misshapen.
            RaceError, StaleReadError: a race or stale read stops the run.
            IllegalError, TileError, EngineError: an instruction is refused, or the program does not end.
            LimitError: more is executed than the limits allow.
        """
        ...

    def lint(self) -> tuple[LintFinding, ...] | None:
        """Return the violations of the issue rules, None for a language without any."""
        ...


# Looking for races before a program runs, as its user wants them treated.


def races_of(
    tree: Tree, target: Target, how: RunOptions, *, unwritten: bool = True
) -> tuple[tuple[RaceFinding, ...] | None, Warnings]:
    """Find races, unless they are ignored; `unwritten`: also find reads of unwritten bytes.

    Returns:
        The races, None if they are ignored; and a warning for each instruction that reads unwritten bytes, which
        affects no order and stops nothing.

    Raises:
        RaceError, EngineError: there are races, and they stop the run.
        LimitError: loops are nested too deeply to be compared.
    """
    if how.races == IGNORE:
        return None, ()
    check_executions(tree, how.limits.walk, "executions that are compared for races", Idle(PATH_ONLY), SLOTS)
    races = find_races(tree, tile_target(target), unwritten=unwritten)
    ordering = tuple(race for race in races if race.kind is not RaceKind.UNWRITTEN)
    if ordering and how.races == STOP:
        raise refusal(ordering)
    gaps = (race for race in races if race.kind is RaceKind.UNWRITTEN)
    return ordering, tuple(WarningText(WarningKind.UNDEFINED, race.message, race.spans[-1]) for race in gaps)


# What follows the values of a run, operation by operation, and alters nothing.


class Watch(Protocol):
    """Observer of a run's memories and of every operation just before its values are computed, in program order."""

    def tiles(self, buffer: Bytes, arguments: Mapping[str, Bytes], follower: Follower | None) -> Follower:
        """Start to follow a tile program; return the replacement of `follower`, which delegates to it."""
        ...

    def micro(self, unit: VectorUnit, memory: MicroMemory) -> VectorUnit:
        """Start to follow a program of vector instructions; return the unit that wraps `unit`."""
        ...

    def bundle(self, core: VliwCore, index: int) -> None:
        """Receive the bundle that a core is about to issue."""
        ...

    def finish(self) -> None:
        """Receive the end of the last operation."""
        ...


# What may be asked for when a program is loaded.


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """The request to load a program: target, origin and arguments.

    `prepare` may change the chosen target (options), `make_lowerer` the lowering of its mechanism. `sync` and `opaque`
    apply to tile programs: the source of synchronisation, and the assumed cycles of opaque operations by name.
    `declare` and `machine` apply to binaries: the file of their declarations, an ELF machine number to accept.
    """

    target: str | Path | Target | None = None
    entry: str | None = None
    args: Mapping[str, int | float] = field(default_factory=dict)
    prepare: Callable[[Target], Target] = lambda chosen: chosen
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of
    sync: str = "insert"
    declare: Path | None = None
    machine: int | None = None
    opaque: Mapping[str, int] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    launch: LaunchRequest | None = None
    """Tensors, index space and engines of a kernel in C."""
    level: int | None = None
    """The placement level of a tile program; None: that of its text."""
    shipped: Callable[[Target], None] = lambda _: None
    """Function that receives the target before any option is set."""

    def prefers_assembly(self) -> bool:
        """Return whether a program of unknown language is assembly, because the target runs nothing else."""
        return self.target is not None and load_target(self.target).languages == (Language.ASSEMBLY.value,)


# How often a tree executes instructions, and the limits for that.


def check_executions(
    tree: Tree, limit: int, what: str, idle: Callable[[Node], bool], most_trips: int | None = None
) -> None:
    """Refuse a tree with more instruction executions than a limit; they are summed, not walked.

    Args:
        tree: the issued operations.
        limit: the maximum of executions.
        what: their purpose, for the message.
        idle: finds nodes that do not count.
        most_trips: trips of a loop that count; None: all.

    Raises:
        LimitError: there are more; its place is the loop that has most of them.
    """
    if executions(tree.root, idle, most_trips) <= limit:
        return
    node: Node = tree.root
    inner: Node = node
    while isinstance(node, Block | Loop):
        if isinstance(node, Loop):
            inner = node
            break
        node = max(node.items, key=lambda item: executions(item, idle, most_trips))
    first = _first(inner)
    raise walk_limit(limit, what, None if first is None else tree.instructions[first.instruction].span)


def executions(node: Node, idle: Callable[[Node], bool], most_trips: int | None = None) -> int:
    """Return how often the instructions in `node` that are not `idle` are executed in all."""
    if idle(node):
        return 0
    if isinstance(node, Lowered):
        return 1
    if isinstance(node, Loop):
        trips = node.trips if most_trips is None else min(node.trips, most_trips)
        return trips * executions(node.body, idle, most_trips)
    if isinstance(node, Block):
        return sum(executions(item, idle, most_trips) for item in node.items)
    return 0


def _first(node: Node) -> Lowered | None:
    """Return the first instruction in a node: of a loop that the text has, its own."""
    while isinstance(node, Block | Loop):
        items = node.body.items if isinstance(node, Loop) else node.items
        if not items:
            return None
        node = items[0]
    return node if isinstance(node, Lowered) else None
