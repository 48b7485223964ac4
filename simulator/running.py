"""Running a program: read, walk and lower, compute values, simulate time."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isa import pto
from isa.errors import IllegalError, ReadError
from simulator.engines import engine_for, simulate
from simulator.execution import ArgumentUse, Executed, Lowerer, execute
from simulator.inputs import check_known, empty_memory, from_memory, make_inputs, to_memory
from simulator.mechanisms import compute_of, lowerer_of
from simulator.races import IGNORE, STOP, Finding, find_races, refusal
from simulator.races import MODES as RACE_MODES
from simulator.synchronisation import INTERLOCK, MODES, Synchronised, insert
from simulator.timing import Listener, PipeTiming, Timing
from simulator.tree import Tree
from simulator.vliw.source import is_assembly, is_binary, targets_running
from targets import Target, load_target, target_for_architecture
from targets.dataflow import DataflowTarget

if TYPE_CHECKING:
    from simulator.vliw.assembled import Assembled
    from simulator.vliw.findings import StaleRead

DEFAULT_ARCHITECTURE = "a3"
"""What a `.pto` file without a target attribute is for (pto_assembly.md section 3.2)."""

MAX_CYCLES = 10**10
"""Cycles after which a simulation is given up, unless the caller says otherwise."""

PIPELINES = ("checked", "hardware")
"""What an exposed pipeline does about stale reads: report them, or say nothing. The values are the same."""

__all__ = [
    "DEFAULT_ARCHITECTURE", "MAX_CYCLES", "PIPELINES", "Loaded", "Result", "load", "load_program", "load_text",
    "program_text", "run", "run_loaded",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program walked and lowered for a target, ready to compute and to time."""

    file: str
    entry: str
    target: Target
    executed: Executed
    synchronised: Synchronised | None = None
    """The tree with what was inserted into a program without flags; None if nothing was."""
    source: str = ""
    """The text of the program."""

    @property
    def tree(self) -> Tree:
        """What the machine issues."""
        return self.executed.tree if self.synchronised is None else self.synchronised.tree

    @property
    def arguments(self) -> Mapping[str, ArgumentUse]:
        """The tensor arguments and how the program uses them."""
        return self.executed.arguments


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a run: arrays by argument name (empty if only timed) and the timing."""

    loaded: Loaded
    engine: str
    outputs: Mapping[str, NDArray[Any]]
    timing: Timing
    stale_reads: tuple[StaleRead, ...] | None = None
    """Reads of an exposed pipeline that came too early; None where the machine interlocks or nothing was checked."""
    races: tuple[Finding, ...] | None = None
    """What the order of a tile program does not guarantee; None if nothing was checked."""

    @property
    def cycles(self) -> int:
        """Cycles from the first instruction until every pipe is empty."""
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
    def warnings(self) -> tuple[str, ...]:
        """What the program asks for in vain, or does in a surprising way; each with its place."""
        return self.loaded.executed.warnings


def run(
    program: str | Path,
    target: str | Path | Target | None = None,
    entry: str | None = None,
    inputs: Mapping[str, NDArray[Any] | str] | None = None,
    args: Mapping[str, int | float] | None = None,
    engine: str | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    pipeline: str = "checked",
    sync: str = "insert",
    races: str = STOP,
    declare: str | Path | None = None,
    skip: bool = True,
) -> Result:
    """Run a program file and return its outputs and timing.

    Args:
        program: path of a `.pto` or `.tpc` file, or of a TPC binary.
        target: name, path of a description, or a loaded target; None takes the one the file names.
        entry: function to run; None takes the entry, or the only function.
        inputs: arrays by argument name (native dtype or codes, any shape of the right size), or what `--in` takes.
        args: values of scalar arguments; of S registers in assembly.
        engine: `fast` (default), or `event`, the discrete-event reference: cycles and causes are the same.
        timing_only: compute no values; no inputs are needed.
        max_cycles: limit after which the simulation is given up.
        pipeline: `checked` reports stale reads of an exposed pipeline, `hardware` does not; the values are the same.
        sync: `insert` gives a program without flags those that the vendor's tool inserts, `interlock` lets its
            instructions wait for each other's bytes without any.
        races: `stop` refuses a tile program with races, `report` runs it and returns them, `ignore` does not look.
        declare: file with the declarations of a binary; None takes the one beside it.
        skip: False makes the fast engine execute every trip of every loop.

    Raises:
        ReadError, IllegalError, TileError, ScratchError, RaceError: see `isa.errors`.
        EngineError: deadlock or cycle limit.
    """
    companion = None if declare is None else Path(declare)
    loaded = load(Path(program), target, entry, args or {}, sync=sync, declare=companion, opaque=timing_only)
    return run_loaded(
        loaded,
        inputs or {},
        engine=engine,
        timing_only=timing_only,
        max_cycles=max_cycles,
        pipeline=pipeline,
        races=races,
        skip=skip,
    )


def load_program(
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
) -> Loaded:
    """Read a `.pto` program, choose target and entry, walk, lower and synchronise it.

    `prepare` may alter the chosen target (options), `make_lowerer` how its mechanism lowers.
    """
    return _walked(program_text(path), path, target, entry, args, prepare, make_lowerer, sync)


def load(
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target] = lambda chosen: chosen,
    make_lowerer: Callable[[Target], Lowerer] = lowerer_of,
    sync: str = "insert",
    *,
    declare: Path | None = None,
    machine: int | None = None,
    opaque: bool = False,
) -> Loaded | Assembled:
    """Read a program of either language, or a binary; only tile programs are walked now.

    The path of the others may depend on their inputs. `declare` and `machine` are for binaries: the file of their
    declarations, an ELF machine number to accept. `opaque` takes operations of the matrix unit for nothing.
    """
    data = _program_data(path)
    if is_binary(path, data):
        from simulator.vliw.binary import load_binary  # noqa: PLC0415 - the other mechanism

        return load_binary(data, path, target, entry, args, prepare, declare=declare, machine=machine)
    for option, value in (("--declare", declare), ("--machine", machine)):
        if value is not None:
            raise ReadError(f"{option} is for binaries; '{path}' is text")
    text = _decoded(path, data)
    if is_assembly(path, text, target):
        from simulator.vliw.source import load_assembly  # noqa: PLC0415 - the other mechanism

        return load_assembly(text, str(path), target, entry, args, prepare)
    return _walked(text, path, target, entry, args, prepare, make_lowerer, sync, opaque=opaque)


def load_text(text: str, name: str, target: Target) -> Loaded | Assembled:
    """Read a program from memory; `name` is what messages call it, its suffix tells the language."""
    path = Path(name)
    if is_assembly(path, text, target):
        from simulator.vliw.source import load_assembly  # noqa: PLC0415 - the other mechanism

        return load_assembly(text, name, target, None, {}, lambda chosen: chosen)
    return _walked(text, path, target, None, {}, lambda chosen: chosen, lowerer_of, "insert")


def program_text(path: Path) -> str:
    """Return the text of a program file.

    Raises:
        ReadError: it is missing, unreadable, or no UTF-8 text.
    """
    return _decoded(path, _program_data(path))


def _program_data(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReadError(f"program '{path}': {error.strerror}") from None


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ReadError(f"program '{path}': is no UTF-8 text") from None


def _walked(
    text: str,
    path: Path,
    target: str | Path | Target | None,
    entry: str | None,
    args: Mapping[str, int | float],
    prepare: Callable[[Target], Target],
    make_lowerer: Callable[[Target], Lowerer],
    sync: str,
    *,
    opaque: bool = False,
) -> Loaded:
    if sync not in MODES:
        raise ReadError(f"unknown synchronisation '{sync}'", legal=MODES)
    parsed = pto.parse(text, str(path))
    chosen = prepare(_choose_target(parsed.target_arch, target))
    if "pto" not in chosen.languages:
        raise IllegalError(f"{chosen.name} does not run .pto programs", legal=targets_running("pto"))
    function = _choose_entry(parsed, path, entry)
    executed = execute(parsed, function, make_lowerer(chosen), args, opaque=opaque)
    if sync == INTERLOCK and not executed.tree.interlocked:
        raise ReadError(f"@{function.name} has flags or barriers of its own; --sync interlock is for programs without")
    inserted = None
    if executed.tree.interlocked and sync != INTERLOCK and isinstance(chosen, DataflowTarget):
        inserted = insert(executed.tree, chosen)
    return Loaded(str(path), function.name, chosen, executed, inserted, text)


def run_loaded(
    loaded: Loaded | Assembled,
    inputs: Mapping[str, NDArray[Any] | str],
    *,
    engine: str | None = None,
    timing_only: bool = False,
    max_cycles: int = MAX_CYCLES,
    observer: Listener | None = None,
    stage: Callable[[str], None] = lambda _: None,
    pipeline: str = "checked",
    races: str = STOP,
    skip: bool = True,
) -> Result:
    """Compute and time a loaded program; `stage` hears what is being done, `observer` follows the engine."""
    if pipeline not in PIPELINES:
        raise ReadError(f"unknown pipeline mode '{pipeline}'", legal=PIPELINES)
    if races not in RACE_MODES:
        raise ReadError(f"unknown way to treat races '{races}'", legal=RACE_MODES)
    if not isinstance(loaded, Loaded):
        name = engine_for(engine, observer)
        return _run_assembled(loaded, inputs, name, timing_only, max_cycles, observer, stage, pipeline, skip=skip)
    found = _races(loaded, races)
    outputs: dict[str, NDArray[Any]] = {}
    if not timing_only:
        memory = _fill(loaded, inputs)
        stage("values")
        buffer = np.zeros(loaded.target.memories["ub"].capacity_bytes, np.uint8)
        compute_of(loaded.target)(loaded.tree, buffer, memory)
        outputs = {name: from_memory(memory[name], use) for name, use in loaded.arguments.items() if use.stored}
    else:
        for name in inputs:
            check_known(name, loaded.arguments)
    stage("time")
    name = engine_for(engine, observer)
    timing = simulate(loaded.tree, loaded.target, observer, engine=name, max_cycles=max_cycles, skip=skip)
    return Result(loaded, name, outputs, timing, races=found)


def _races(loaded: Loaded, mode: str) -> tuple[Finding, ...] | None:
    """Look for races, unless they are ignored.

    Raises:
        RaceError, EngineError: there are some, and they stop the run.
    """
    if mode == IGNORE or not isinstance(loaded.target, DataflowTarget):
        return None
    found = find_races(loaded.tree, loaded.target)
    if found and mode == STOP:
        raise refusal(found)
    return found


def _run_assembled(
    assembled: Assembled,
    inputs: Mapping[str, NDArray[Any] | str],
    engine: str,
    timing_only: bool,
    max_cycles: int,
    observer: Listener | None,
    stage: Callable[[str], None],
    pipeline: str,
    *,
    skip: bool,
) -> Result:
    from simulator.vliw.assembled import execute as execute_assembled  # noqa: PLC0415 - the other mechanism

    stage("values")
    checked = pipeline == "checked"
    ran = execute_assembled(
        assembled,
        inputs,
        values=not timing_only,
        checked=checked,
        max_bundles=max_cycles,
        heard=lambda issued: observer.progress(issued, 0) if observer else None,
        skip=skip,
    )
    executed = Executed(ran.tree, assembled.arguments, ran.warnings)
    stage("time")
    timing = simulate(ran.tree, assembled.target, observer, engine=engine, max_cycles=max_cycles, skip=skip)
    loaded = Loaded(assembled.file, assembled.entry, assembled.target, executed)
    return Result(loaded, engine, ran.outputs, timing, ran.stale_reads if checked else None)


def _fill(loaded: Loaded, inputs: Mapping[str, NDArray[Any] | str]) -> dict[str, NDArray[np.uint8]]:
    """Return global memory, filled from the inputs."""
    uses = loaded.arguments
    for name in inputs:
        check_known(name, uses)
    missing = [name for name, use in uses.items() if use.needs_input and name not in inputs]
    if missing:
        raise ReadError(
            f"the program loads {', '.join(f'%{name}' for name in missing)} before storing to it: no input given",
            legal=[f"--in {name}=FILE.npy|random:SEED|zeros" for name in missing],
        )
    named = {name: text for name, text in inputs.items() if isinstance(text, str)}
    arrays = {
        **{name: array for name, array in inputs.items() if not isinstance(array, str)},
        **make_inputs(named, uses),
    }
    return {
        name: to_memory(arrays[name], name, use) if name in arrays else empty_memory(use) for name, use in uses.items()
    }


def _choose_target(architecture: str | None, given: str | Path | Target | None) -> Target:
    if isinstance(given, str | Path):
        return load_target(given)
    if given is not None:
        return given
    found = target_for_architecture(architecture or DEFAULT_ARCHITECTURE)
    if found is None:
        raise ReadError(
            f"the program is for '{architecture}', which no shipped target answers to; name one by --target"
        )
    return found


def _choose_entry(parsed: pto.Program, path: Path, entry: str | None) -> pto.Function:
    functions = {function.name: function for function in parsed.functions if function.body is not None}
    if entry is not None:
        name = entry.removeprefix("@")
        if name not in functions:
            near = difflib.get_close_matches(name, functions, 3) or list(functions)
            raise ReadError(f"{path}: no function @{name}", legal=[f"@{other}" for other in near])
        return functions[name]
    marked = [function for function in functions.values() if function.is_entry]
    candidates = marked or list(functions.values())
    if len(candidates) != 1:
        what = "no function" if not candidates else f"{len(candidates)} functions"
        raise ReadError(f"{path}: {what} to run; name one by --entry", legal=[f"@{f.name}" for f in candidates])
    return candidates[0]
