"""Loading of programs: detection of the language, and choice of the reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.execution import run_limits
from castsim.execution.buffer_values import CastCounts, TaintTracker
from castsim.execution.input_data import (
    ARRAY_MAGIC,
    OLDEST,
    TOOLCHAIN,
    ArgumentUse,
    ProgramChoice,
    check_elements,
    check_known,
    choose_entry,
    choose_target,
    filled_memory,
    from_memory,
    input_bytes,
    make_inputs,
    read_input,
)
from castsim.execution.interpreter.arguments import Elements, split_arguments
from castsim.execution.interpreter.interpreter import Executed, execute, is_opaque
from castsim.execution.interpreter.lowerer import Lowerer, check_level, has_addresses, has_flags, reads_memory
from castsim.execution.interpreter.memory import Bytes, Memory, Origin, put_elements
from castsim.execution.pipe_operations import NO_VALUES, Idle
from castsim.execution.run_limits import DEFAULT_LIMITS, Limits
from castsim.execution.tree import Block, InstructionRole, Node, Tree
from castsim.execution.vector_operations.quantising import FORMS
from castsim.isa.dataclass import dataclass, field, replace
from castsim.isa.errors import IllegalError, ReadError, Span
from castsim.isa.formats import Codes
from castsim.isa.pto import program as pto
from castsim.isa.pto.lexer import options_named
from castsim.isa.pto.micro_forms import MICRO_ARCHITECTURE, STRIDED_ARCHITECTURE, is_micro, is_strided
from castsim.isa.pto.program import nodes
from castsim.isa.pto.pto_parser import inlined, parse
from castsim.isa.pto.value_types import element_format, held_format
from castsim.isa.reading import TILE_SUFFIX, Language, Source, read_source, source_of
from castsim.machines.mechanisms import compute_of, lowerer_of, tile_target
from castsim.machines.vliw import targets_running
from castsim.running.languages import BINARY, LINTER, C, language_module
from castsim.running.loaded import (
    ExecutionResult,
    Inputs,
    InTileLanguage,
    Loaded,
    LoadedProgram,
    LoadRequest,
    Partial,
    RunOptions,
    WalkedWhenIssued,
    check_executions,
    races_of,
)
from castsim.running.synchronisation.flags import (
    BARRIERS,
    INTERLOCK,
    MODES,
    PROGRAM,
    SynchronisedFunction,
    insert,
    insert_barriers,
    noted,
)
from castsim.running.synchronisation.race_findings import RaceFinding
from castsim.targets.description import with_options
from castsim.targets.loader import Target, TileTarget
from castsim.targets.vliw import VliwTarget

if TYPE_CHECKING:
    from castsim.machines.vliw.assembled import AssembledProgram
    from castsim.machines.vliw.findings import LintFinding
    from castsim.running.loaded import LaunchRequest
    from castsim.running.micro import MicroProgram


# Tile programs: walked and lowered as they are read, since no value decides their path.
#
# Those that read elements are walked with their inputs: see `castsim.running.program_loading`.


@dataclass(frozen=True, slots=True, repr=False)
class TileProgram(InTileLanguage, Loaded):
    """A tile program; see `castsim.running.loaded.LoadedProgram`."""

    elements: Elements = field(default_factory=dict)
    """Given values of single elements of arguments."""

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Find races, and compute values."""
        races, gaps = races_of(self.tree, self.target, how)
        warned = replace(self, executed=replace(self.executed, warnings=(*self.executed.warnings, *gaps)))
        if how.values:
            return warned._computed(inputs, how, races, written=not gaps)
        for name in inputs:
            check_known(name, self.arguments)
        return ExecutionResult(warned, races=races)

    def _computed(
        self, inputs: Inputs, how: RunOptions, races: tuple[RaceFinding, ...] | None, *, written: bool
    ) -> ExecutionResult:
        """Compute the outputs; with opaque operations, partly computed ones separately.

        With opaque operations, casts are not counted, because some of their numbers are unknown. `written` tells that
        everything is written before it is read; otherwise unwritten bytes are followed to the outputs.

        Raises:
            IllegalError: an opaque operation decides the path.
        """
        refuse_unknown_path(self.executed)
        check_executions(self.tree, how.limits.computed, "executions whose values are to be computed", Idle(NO_VALUES))
        check_elements(self.arguments, how.limits.max_elements)
        memory = filled_memory(self.arguments, inputs)
        for name, given in self.elements.items():
            put_elements(memory[name], self.arguments[name], given)
        how.stage("values")
        buffer = np.zeros(self.target.memories["ub"].capacity_bytes, np.uint8)
        opaque = any(instruction.role is InstructionRole.OPAQUE for instruction in self.tree.instructions)
        followed = TaintTracker.beside(buffer, memory, written=written) if opaque or not written else None
        counts = CastCounts()
        follower = followed if how.watch is None else how.watch.tiles(buffer, memory, followed)
        compute_of(self.target)(self.tree, buffer, memory, follower=follower, counts=None if opaque else counts)
        if how.watch is not None:
            how.watch.finish()
        stored = {name: use for name, use in self.arguments.items() if use.stored}
        outputs = {name: from_memory(memory[name], use) for name, use in stored.items()}
        masks = {} if followed is None else {n: from_memory(followed.arguments[n], u) == 0 for n, u in stored.items()}
        marked = {name: mask for name, mask in masks.items() if not mask.all()}
        casts = counts.by_place(self.tree.instructions)
        if not opaque:
            return ExecutionResult(
                self, outputs, races=races, casts=casts, undefined={n: ~mask for n, mask in marked.items()}
            )
        partial = {name: Partial(outputs.pop(name), mask) for name, mask in marked.items()}
        return ExecutionResult(self, outputs, races=races, partial=partial, casts=casts)


def refuse_unknown_path(executed: Executed) -> None:
    """Reject a path that an opaque operation decides.

    Raises:
        IllegalError: it does; the error has the operation's position.
    """
    for read in executed.decided_by:
        if read.origin is Origin.OPAQUE:
            raise IllegalError(
                f"{read.text} is unknown, but decides the path", span=read.span, legal=("--timing-only",)
            )


@dataclass(frozen=True, slots=True)
class Walking:
    """The data for walking a tile program, and for walking it again with other contents of memory."""

    file: str
    text: str
    parsed: pto.Program
    function: pto.Function
    target: TileTarget
    request: LoadRequest
    scalars: Mapping[str, int | float]
    elements: Elements
    plan: SynchronisedFunction | None
    """The function with the flags that it lacked; None if it is walked unchanged."""
    choices: tuple[tuple[ProgramChoice, Span], ...] = ()
    """Earlier decisions of the assembler."""

    def program(self, memory: Memory | None = None) -> TileProgram:
        """Return the program walked, lowered and synchronised.

        Raises:
            ReadError, IllegalError, TileError, ScratchError, LimitError: an instruction is refused.
        """
        request = self.request
        memory = Memory(elements=self.elements) if memory is None else memory
        plan = self.plan
        executed = execute(
            self.parsed, self.function if plan is None else plan.function, request.make_lowerer(self.target),
            self.scalars, cycles=request.opaque, max_walk=request.limits.walk, memory=memory,
        )  # fmt: skip
        if request.sync == INTERLOCK and not executed.tree.interlocked:
            raise ReadError(
                f"@{self.function.name} already has flags or barriers; --sync interlock needs a program without them"
            )
        if self.function.is_recorded:  # arrays may have more elements than one core uses of them
            for use in executed.arguments.values():
                use.follows_reads = True
        executed = replace(executed, choices=(*self.choices, *executed.choices))
        inserted = None if plan is None else noted(plan, executed)
        if inserted is not None:
            executed = replace(executed, tree=replace(executed.tree, interlocked=False))
        return TileProgram(
            self.file, self.function.name, self.target, executed, inserted, self.text, elements=self.elements
        )


def walking_of(source: Source, request: LoadRequest) -> Walking | MicroProgram:
    """Read a `.pto` program, and choose its target and entry; for vector instructions nothing else is needed.

    Raises:
        ReadError: it cannot be read, or lacks the entry. IllegalError: the target runs no such programs.
    """
    if request.sync not in MODES:
        raise ReadError(f"unknown synchronisation '{request.sync}'", legal=MODES)
    if source.program is not None:  # recorded: its arguments are fixed, and its flags are the kernel's own
        request = replace(request, args={}, entry=None, sync=_sync_of(source.program, request.sync))
    parsed = _parsed(source.text, source.file, request) if source.program is None else source.program
    chosen = target_of(parsed, source, request)
    function, left_out = choose_entry(parsed, Path(source.file), request.entry)
    parsed = replace(parsed, warnings=(*left_out, *parsed.warnings))
    return walking_of_function(parsed, inlined(parsed, function), source, chosen, request)


def _sync_of(recorded: pto.Program, asked: str) -> str:
    """Return the synchronisation of a recorded program: its own, unless its tiles have no addresses."""
    (function,) = recorded.functions
    placed = has_addresses(function.body or ()) or (function.is_recorded and is_micro(function))
    return PROGRAM if asked == MODES[0] and placed else asked


def target_of(parsed: pto.Program, source: Source, request: LoadRequest) -> Target:
    """Return the target of a program, with the options from its text and the request.

    Raises:
        ReadError: the target lacks an option. IllegalError: it runs no such programs.
    """
    plain = choose_target(_architecture(parsed, source.file, request), request.target, parsed.target_arch_span)
    request.shipped(plain)
    chosen = request.prepare(_as_named(plain, source.text, source.file))
    if Language.TILES.value not in chosen.languages:
        legal = [f"--target {name}" for name in targets_running(Language.TILES.value)]
        raise IllegalError(f"{chosen.name} does not run .{Language.TILES.value} programs", legal=legal)
    return chosen


def walking_of_function(
    parsed: pto.Program, function: pto.Function, source: Source, chosen: Target, request: LoadRequest
) -> Walking | MicroProgram:
    """Return the walk of a function without calls; for vector instructions nothing else is needed.

    Raises:
        ReadError: the function lacks an argument. CastsimError: an operation cannot be completed.
    """
    check_level(function.body or (), request.level)
    scalars, elements = split_arguments(function, request.args)
    if is_micro(function):
        from castsim.running.micro import micro_program  # noqa: PLC0415 - programs of tiles start without it

        return micro_program(
            source.file, source.text, function, chosen, scalars, parsed,
            as_written=request.sync == PROGRAM, elements=elements,
        )  # fmt: skip
    if function.is_recorded:  # no assembler has seen it
        beyond = {FORMS: "library", "library_types": "accept"}
        chosen = with_options(chosen, {name: value for name, value in beyond.items() if name in chosen.options})
    chip = tile_target(chosen)
    function, choices = request.make_lowerer(chosen).completed(function)
    flagged = has_flags(function.body or ())
    plan = None if flagged else _plan(function, request.make_lowerer(chosen), chip, request.sync)
    return Walking(source.file, source.text, parsed, function, chip, request, scalars, elements, plan, choices)


def _as_named(target: Target, text: str, file: str) -> Target:
    """Return the target with the options that the program itself sets.

    Raises:
        ReadError: the option does not exist, or the value is not legal; the error has its position.
    """
    for option in options_named(text, file):
        try:
            target = with_options(target, {option.name: option.value})
        except ReadError as error:
            raise error.at(option.span) from None
    return target


def _architecture(parsed: pto.Program, file: str, request: LoadRequest) -> str | None:
    """Return the architecture of the file; an entry of vector instructions defaults to the chip that has them."""
    if parsed.target_arch is not None or not any(map(is_micro, parsed.functions)):
        return parsed.target_arch
    function, _ = choose_entry(parsed, Path(file), request.entry)
    return STRIDED_ARCHITECTURE if is_strided(function) else MICRO_ARCHITECTURE if is_micro(function) else None


def _parsed(text: str, file: str, request: LoadRequest) -> pto.Program:
    """Read the requested function and its callees; the whole program if it has no function of that name."""
    most, entry = request.limits.max_statements, request.entry
    if entry is not None:
        name = entry.removeprefix("@")
        parsed = parse(text, file, max_statements=most, go_past_refused=True, only=name)
        if name in {function.name for function in parsed.functions} | {refusal.name for refusal in parsed.refused}:
            return parsed
    return parse(text, file, max_statements=most, go_past_refused=True)


def _plan(function: pto.Function, lowerer: Lowerer, chip: TileTarget, sync: str) -> SynchronisedFunction | None:
    """Return a function with the flags that it lacks, None if it stays without."""
    if sync in (INTERLOCK, PROGRAM):
        return None
    return (insert_barriers if sync == BARRIERS else insert)(function, lowerer, chip)


# Tile programs that read elements of memory: their path is known once their inputs are.
#
# Such a program is walked when it is issued. Inputs that are files or arrays say their size themselves; random ones
# are drawn for the sizes that the program asks for, which may rest on what it reads: the walk is repeated until it
# asks for what it was given.

_ROUNDS = 8
"""Maximum number of walks to find sizes that depend on random values."""


@dataclass(frozen=True, slots=True, repr=False)
class DataDependentProgram(WalkedWhenIssued, InTileLanguage):
    """A tile program that reads elements; see `castsim.running.loaded.LoadedProgram`."""

    walking: Walking

    @property
    def file(self) -> str:
        """Its name in messages."""
        return self.walking.file

    @property
    def entry(self) -> str:
        """The name of the function."""
        return self.walking.function.name

    @property
    def target(self) -> Target:
        """The target that it is read for."""
        return self.walking.target

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments; their used sizes are known only after the walk."""
        return {
            argument.name: ArgumentUse(held_format(element_format(argument.type.element))[0])
            for argument in self.walking.function.arguments
            if isinstance(argument.type, pto.PointerType)
        }

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program with its inputs, then continue as for any other tile program."""
        for name in inputs:
            check_known(name, self.arguments)
        how.stage("path")
        return self.walked(inputs, how).issue(inputs, how)

    def walked(self, inputs: Inputs, how: RunOptions) -> TileProgram:
        """Return the program walked with its inputs.

        Raises:
            ReadError: the random inputs decide their own number, without end.
        """
        contents = _Contents(inputs, self.arguments, how)
        for _ in range(_ROUNDS):
            walked_program = self.walking.program(self._memory(contents, how))
            if contents.fits(walked_program.arguments):
                return walked_program
            contents.sized = walked_program.arguments
        raise ReadError(
            f"@{self.entry}: sizes of random inputs depend on their values; {_ROUNDS} attempts found none that agree",
            legal=("--in NAME=FILE.npy",),
        )

    def _opaque(self) -> bool:
        """Return whether anything in the program is opaque."""
        named = self.walking.request.opaque
        return any(is_opaque(node, named) for node in nodes(self.walking.function.body or ()))

    def _memory(self, contents: _Contents, how: RunOptions) -> Memory:
        target = self.walking.target
        compute, idle = compute_of(target), Idle(NO_VALUES)
        followed = TaintTracker(np.zeros(target.memories["ub"].capacity_bytes, np.uint8)) if self._opaque() else None

        def settle(nodes: list[Node], buffer: Bytes, arguments: Mapping[str, Bytes]) -> None:
            tree = Tree(Block(tuple(nodes)), (), interlocked=False)
            check_executions(tree, how.limits.computed, "executions whose values the path needs", idle)
            if followed is not None:
                followed.grow(arguments)
            compute(tree, buffer, arguments, follower=followed)

        return Memory(
            contents.bytes_of,
            self.walking.elements,
            frozenset(contents.whole),
            frozenset() if contents.sized else frozenset(contents.drawn),
            settle if how.values else None,
            (lambda *_: None) if followed is None else followed.blamed,
            target.memories["ub"].capacity_bytes,
            how.limits.max_elements,
        )


@dataclass(slots=True)
class _Contents:
    """Inputs as bytes, created on request; random ones once the arguments are `sized`."""

    inputs: Inputs
    arguments: Mapping[str, ArgumentUse]
    how: RunOptions
    sized: Mapping[str, ArgumentUse] = field(default_factory=dict)
    asked: bool = False
    """Whether a random input has been requested."""
    _made: dict[str, Bytes] = field(default_factory=dict)
    _drawn: dict[str, Codes] = field(default_factory=dict)

    @property
    def drawn(self) -> dict[str, str]:
        """The inputs whose size the program decides."""
        return {
            name: text
            for name, text in self.inputs.items()
            if isinstance(text, str) and (text == "zeros" or text.startswith("random:"))
        }

    @property
    def whole(self) -> list[str]:
        """The inputs that have a size of their own."""
        return [name for name in self.inputs if name not in self.drawn]

    def bytes_of(self, name: str) -> Bytes | None:
        """Return an input; None if there is none, or not yet."""
        given = self.inputs.get(name)
        if given is None:
            return None
        if isinstance(given, str) and name in self.drawn:
            return self._random(name, given)
        if name not in self._made:
            array = read_input(given, name) if isinstance(given, str) else given
            self._made[name] = input_bytes(array, name, self.arguments[name].format)
        return self._made[name]

    def fits(self, uses: Mapping[str, ArgumentUse]) -> bool:
        """Return whether a walk used the sizes that it was given."""
        if not self.asked or _sizes(uses) == _sizes(self.sized):
            return True
        self._drawn = {}
        return False

    def _random(self, name: str, text: str) -> Bytes | None:
        if text == "zeros":
            return np.zeros(0, np.uint8)
        self.asked = True
        if not self.sized:
            return None
        if not self._drawn:
            check_elements(self.sized, self.how.limits.max_elements)
            self._drawn = make_inputs(self.drawn, self.sized)
        return input_bytes(self._drawn[name], name, self.arguments[name].format)


def _sizes(uses: Mapping[str, ArgumentUse]) -> dict[str, tuple[int, ...]]:
    return {name: use.shape for name, use in uses.items()}


def reads_elements(walking: Walking) -> bool:
    """Return whether elements of memory decide the path of a program."""
    return reads_memory(walking.function.body or ())


def load_tiles(source: Source, request: LoadRequest) -> TileProgram | DataDependentProgram | MicroProgram:
    """Read a `.pto` program, choose target and entry; walk, lower and synchronise it unless its inputs decide the path.

    Raises:
        ReadError: it cannot be read, lacks the entry, or has flags that the request does not allow.
        IllegalError, TileError, ScratchError, LimitError: an instruction is refused.
    """
    walking = walking_of(source, request)
    if not isinstance(walking, Walking):
        return walking
    body = walking.function.body or ()
    if request.sync == INTERLOCK and any(isinstance(node, pto.ScalarAccess) for node in nodes(body)):
        raise ReadError(
            f"@{walking.function.name} accesses memory on the scalar unit, which needs flags; --sync interlock has none"
        )
    return DataDependentProgram(walking) if reads_elements(walking) else walking.program()


# Assembly and binaries: walked when they are run, since values may decide their path.


@dataclass(frozen=True, slots=True, repr=False)
class AssemblyProgram(WalkedWhenIssued):
    """A program of bundles; see `castsim.running.loaded.LoadedProgram`."""

    assembled: AssembledProgram
    text: str = ""
    """The source; empty for a binary."""

    def __repr__(self) -> str:
        return repr(self.assembled)

    @property
    def file(self) -> str:
        """Its name in messages."""
        return self.assembled.file

    @property
    def entry(self) -> str:
        """The file's name without its suffix."""
        return self.assembled.entry

    @property
    def target(self) -> VliwTarget:
        """The target that it is read for."""
        return self.assembled.target

    @property
    def language(self) -> str:
        """The name of its language in descriptions of targets."""
        return Language.ASSEMBLY.value

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The declared data."""
        return self.assembled.arguments

    def issue(self, inputs: Inputs, how: RunOptions) -> ExecutionResult:
        """Walk the program to its end."""
        from castsim.machines.vliw.assembled import execute as walk  # noqa: PLC0415 - as at `_reader`
        from castsim.machines.vliw.latency_bound import latency_bound  # noqa: PLC0415 - likewise

        if how.values:
            check_elements(self.arguments, how.limits.max_elements)
        how.stage("values")
        checked = how.stale_reads != run_limits.IGNORE
        ran = walk(
            self.assembled,
            inputs,
            values=how.values,
            checked=checked,
            stop=how.stale_reads == run_limits.STOP,
            max_bundles=how.max_cycles,
            max_walk=how.limits.computed,
            heard=how.progress,
            skip=how.skip,
            watch=None if how.watch is None else how.watch.bundle,
        )
        if how.watch is not None:
            how.watch.finish()
        executed = Executed(ran.tree, self.arguments, ran.warnings)
        latencies = partial(latency_bound, self.assembled.program, self.target)
        loaded = Loaded(self.file, self.entry, self.target, executed, source=self.text, latencies=latencies)
        return ExecutionResult(loaded, ran.outputs, ran.stale_reads if checked else None, casts=ran.casts)

    def lint(self) -> tuple[LintFinding, ...]:
        """Return the violations of the issue rules."""
        findings: tuple[LintFinding, ...] = language_module(LINTER).lint(self.assembled.program, self.target)
        return findings


def load_bundles(source: Source, request: LoadRequest) -> AssemblyProgram:
    """Read assembly, or a binary; see `castsim.machines.vliw.assembled`.

    Raises:
        ReadError: the file is an array.
    """
    from castsim.machines.vliw.assembled import load_assembly  # noqa: PLC0415 - as at `_reader`

    chosen = (source, request.target, request.entry, request.args, request.prepare)
    if source.language is Language.BINARY:
        if source.data.startswith(ARRAY_MAGIC):
            raise ReadError(
                f"'{source.file}' is an array, not a program", legal=(f"castsim run PROGRAM --in NAME={source.file}",)
            )
        return AssemblyProgram(
            language_module(BINARY).load_binary(*chosen, declare=request.declare, machine=request.machine)
        )
    return AssemblyProgram(load_assembly(*chosen, request.limits.max_statements), source.text)


# Programs of any language.


def load_program(
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    limits: Limits = DEFAULT_LIMITS,
) -> TileProgram:
    """Read a `.pto` program, choose its target and entry, walk, lower and synchronise it.

    `prepare` may change the chosen target (options), `make_lowerer` the lowering of its mechanism. Elements of memory
    that decide the path count as 0 if `args` does not give them.
    """
    request = LoadRequest(target, entry, args, prepare, make_lowerer, sync, limits=limits)
    source = read_source(path, lambda: False)
    if source.language is not Language.TILES:
        raise ReadError(f"'{path}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    walking = walking_of(source, request)
    if not isinstance(walking, Walking):
        raise IllegalError(f"@{walking.entry} of '{path}' contains vector instructions, not tile operations")
    return walking.program()


def load(
    path: Path | Source,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    *,
    declare: Path | None = None,
    machine: int | None = None,
    opaque: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    level: int | None = None,
    launch: LaunchRequest | None = None,
) -> LoadedProgram:
    """Read a program in any language, or a binary; for the parameters see `castsim.running.loaded.LoadRequest`.

    A `Source` is a program that was already read.
    """
    request = LoadRequest(
        target, entry, args, prepare, make_lowerer, sync, declare, machine, opaque or {}, limits, launch, level
    )
    source = path if isinstance(path, Source) else read_source(path, request.prefers_assembly)
    for option, value in (("--declare", declare), ("--machine", machine)):
        if value is not None and source.language is not Language.BINARY:
            raise ReadError(f"{option} applies only to binaries; '{source.file}' is text")
    return _reader(source.language)(source, request)


def load_text(text: str, name: str, target: Target, limits: Limits = DEFAULT_LIMITS) -> LoadedProgram:
    """Read a program from memory; `name` is its name in messages, with a suffix that shows the language.

    Program texts generated by castsim need nothing beyond the oldest assembler.
    """
    if TOOLCHAIN in target.options:
        target = with_options(target, {TOOLCHAIN: OLDEST})
    request = LoadRequest(target, limits=limits)
    source = source_of(text, name, request.prefers_assembly)
    return _reader(source.language)(source, request)


def _reader(language: Language) -> Callable[[Source, LoadRequest], LoadedProgram]:
    """Return the loader of programs of a language."""
    if language is Language.TILES:
        return load_tiles
    if language is Language.KERNEL:
        loader: Callable[[Source, LoadRequest], LoadedProgram] = language_module(C).load_kernel
        return loader
    return load_bundles
