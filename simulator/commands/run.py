"""The command `run`: run a program: cycles, the limiting pipe, why pipes wait, outputs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from castsim.commands.kernels import launch_of
from castsim.commands.option_parsers import (
    CORE,
    assignments,
    level_of,
    machine_number,
    most_cycles,
    opaque_cycles,
    output_folder,
    positive,
    refuse,
    refuse_given,
    refuse_tilelang,
    run_limits_of,
    scalars_of,
)
from castsim.commands.outcome import CommandOutcome, error_entry, plain, stacked, tell, write_program
from castsim.commands.run_views import check_views, timeline_of, timeline_text, write_run_page, write_views
from castsim.engines import ENGINES, simulate
from castsim.execution.input_data import BACKEND, TOOLCHAIN, entries, write_array
from castsim.execution.run_limits import stale_mode
from castsim.execution.tree import Block, Loop, Lowered, Node
from castsim.isa.dataclass import replace
from castsim.isa.errors import CastsimError, EngineError, IllegalError, ReadError, Span
from castsim.isa.reading import CPP_SUFFIXES, TILE_SUFFIX, Language, Source, read_source
from castsim.machines.mechanisms import lowerer_of
from castsim.reports.progress import run_progress
from castsim.reports.sections import FULL, RUN, further_reports
from castsim.running.languages import CPP, FRAGMENT, FRAGMENT_NAME, GRAPH, Fragment, language_module, language_of
from castsim.running.loaded import LoadedProgram
from castsim.running.program_loading import load
from castsim.running.program_runs import run_loaded
from castsim.running.synchronisation.race_findings import IGNORE, REPORT, STOP, refusal
from castsim.targets.description import watched, with_options
from castsim.targets.loader import Target, load_target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from castsim.execution.timing import Listener
    from castsim.isa.pto import program as pto
    from castsim.machines.vliw.findings import LintFinding
    from castsim.reports.views.timeline import Timeline
    from castsim.running.cycle_evidence import Sensitivity
    from castsim.running.lifted_limits import LiftedLimit
    from castsim.running.program_runs import Result


# What `castsim run` times the program again for: limits lifted one at a time, facts a little different.

_SHORT = 64
"""Maximum number of operations for which a page and a document weigh facts unasked, at one timing run each."""

_ISSUED = 4_000
"""Maximum number of instructions in vector-unit launches, each of which is scheduled again."""


def check_what_if(options: Namespace) -> None:
    """Reject a program that cannot be read twice.

    Raises:
        ReadError: the program comes from standard input or another pipe.
    """
    if options.what_if is None or not _read_once(options):
        return
    source_name = "standard input" if options.program == "-" else f"'{options.program}'"
    raise ReadError(f"--what-if reads the program several times; {source_name} can be read only once", legal=("FILE",))


def _read_once(options: Namespace) -> bool:
    path = Path(options.program)
    return options.program == "-" or path.is_fifo() or path.is_char_device()


def weighed(options: Namespace, target: Target, result: Result) -> tuple[Sensitivity, ...] | None:
    """Return the weights of numbers in facts, if requested or the program is short; None otherwise.

    Results of the execution depend on no number of cycles, so only the timing is repeated.
    """
    timing = result.timing
    shown = (options.json or options.html) and len(timing.operations) <= _SHORT
    if _read_once(options) or not (options.facts or (shown and _issued(result.loaded.tree.root) <= _ISSUED)):
        return None
    from castsim.running.cycle_evidence import sensitivities  # noqa: PLC0415 - few runs are timed again

    return sensitivities(
        target, timing.facts, timing.total,
        lambda lift: simulate(result.loaded.tree, lift(target), engine=result.engine, record_operations=False).total,
    )  # fmt: skip


def _issued(node: Node) -> int:
    """Return the number of instructions that the launches in a node issue, each launch counted once."""
    from castsim.machines.vector_function.function_launches import MicroFunction  # noqa: PLC0415 - few need it

    if isinstance(node, Block):
        return sum(map(_issued, node.items))
    if isinstance(node, Loop | Lowered):
        return _issued(node.body)
    return node.issued if isinstance(node, MicroFunction) else 0


# The fragments that `castsim run -e` takes in place of a file.

_DRAWN = "random:0"


def fragment_of(options: Namespace) -> Fragment | None:
    """Return the fragment from the command line, None for a file; the fragment then names the program.

    Raises:
        ReadError: neither or both were given, there is no target, or the fragment cannot be read.
    """
    if options.execute is None:
        if options.program is None:
            raise ReadError("nothing to run", legal=("PROGRAM", "-e TEXT"))
        return None
    if options.program is not None:
        raise ReadError(
            f"-e runs a fragment instead of '{options.program}'; give only one of them", legal=("PROGRAM", "-e TEXT")
        )
    if options.target is None:
        raise ReadError("a fragment does not declare a target", legal=("--target T",))
    if options.all_entries or options.entry is not None:
        raise ReadError("--entry and --all-entries apply only to .pto files; a fragment has one entry")
    options.program = FRAGMENT_NAME
    fragment: Fragment = language_module(FRAGMENT).whole(options.execute, load_target(options.target))
    return fragment


# The option of `castsim run` that gives the parameters of a tile program their values.


def with_parameters(texts: Sequence[str], source: Source) -> Source:
    """Return a tile program with the parameter values from `--tile NAME=VALUE`.

    Raises:
        ReadError: the option is malformed, the program declares no such parameter, or is in another language.
    """
    from castsim.isa.pto.lexer import PtoSource, parameters, unknown_parameter, with_values  # noqa: PLC0415 - as below
    from castsim.isa.value_expressions import read_value  # noqa: PLC0415 - few programs have parameters

    given = assignments("--tile", texts)
    if source.language is not Language.TILES:
        raise ReadError(f"--tile {texts[0]}: only tile programs take parameters", legal=("a .pto file",))
    declared = parameters(PtoSource(source.file, source.text))
    values = {}
    for name, text in given.items():
        typed = f"{name}={text}"
        if name not in declared:
            raise unknown_parameter(name, declared, source.file, Span("--tile", 1, 1, typed, len(name)))
        values[name] = read_value(text, Span("--tile", 1, len(name) + 2, typed, len(text)))
    return replace(source, text=with_values(source.text, source.file, values))


# The reports that `castsim run` can add to its own.


def check_report(options: Namespace, target: Target) -> tuple[str, ...]:
    """Return the sections that the requested report adds to those of every run.

    Raises:
        ReadError: the report does not exist, or does not apply to this target.
    """
    if options.report in (RUN, FULL):
        return ()
    legal = (RUN, FULL, *further_reports())
    if options.report not in legal:
        raise ReadError(f"unknown report '{options.report}'", legal=legal)
    from castsim.reports.run_findings import section  # noqa: PLC0415 - the report of a run needs none of the others

    reason = section(options.report).refusal(target)
    if reason is not None:
        raise ReadError(reason, legal=(RUN,))
    return (options.report,)


def execute(options: Namespace) -> CommandOutcome:
    """Simulate the program.

    Raises:
        CastsimError, EngineError: see `castsim.run`; also for a wrong option.
    """
    words = _program_words(options)
    fragment = fragment_of(options)
    language = language_of(options.program)
    if language != GRAPH:
        options.typed = words
    if language not in (CPP, GRAPH):
        refuse(options, CORE, options.program, CPP_SUFFIXES)
    if language is not None:
        outcome: CommandOutcome = language_module(language).execute_run(options, run_source)
        return outcome
    refuse_tilelang(options, options.program)
    if options.all_blocks:
        raise ReadError("--all-blocks applies only to C++ kernels")
    with nullcontext() if fragment is None else fragment.placed():
        return run_source(options, None if fragment is None else fragment.source)


def run_source(
    options: Namespace, source: Source | None, see: Callable[[Result], Result] = lambda result: result
) -> CommandOutcome:
    """Run the program of a source, or the file that the options name, and report what `see` returns for the result."""
    _check_options(options)
    check_views(options)
    check_what_if(options)
    if options.emit_sync is not None and (options.all_entries or (source is not None and source.program is not None)):
        legal = (
            ("--entry F",) if options.all_entries else ("castsim record", "castsim run --emit-sync with its .pto file")
        )
        raise ReadError("--emit-sync saves one function of a .pto file", legal=legal)
    if options.all_entries:
        path = Path("/dev/stdin" if options.program == "-" else options.program)
        return run_entries(
            options, path, lambda entry_options: _simulate(entry_options, _load(entry_options)[0], ())[0]
        )
    loaded, read = _load(options, source)
    further = check_report(options, loaded.target)
    _check_language(options, loaded)
    findings = _lint(loaded) if options.lint else None
    limits: tuple[str, ...] = ()
    if options.what_if is not None:
        from castsim.running.lifted_limits import limits_asked_for  # noqa: PLC0415 - few runs lift limits

        limits = limits_asked_for(loaded.target, [name.strip() for name in options.what_if.split(",")])
    folder = output_folder(options.out)
    result, lifted, timeline, weights = _simulate(options, loaded, limits, source)
    result = see(result)
    written = [] if timeline is None else write_views(options, result, timeline)
    if options.emit_sync is not None:
        from castsim.running.program_edits import with_inserted_flags  # noqa: PLC0415 - few runs save it

        synchronised = with_inserted_flags(result.loaded)
        write_program(Path(options.emit_sync), synchronised)
        again = "" if "_flag[" in synchronised else "; it has no flags: run it with --sync program"
        written.append(f"emit-sync: program with flags and barriers written to {options.emit_sync}{again}")
    files = _write(result, folder, partial=options.partial)
    errors = _errors(options, result)
    code = int(bool(errors) or any(finding.certain for finding in findings or ()))
    if options.quiet and options.json is None and options.html is None:  # nobody reads the report
        return CommandOutcome({}, lambda _: "", code, delivered=lambda: _tell(errors))
    from castsim.reports.run_findings import run_document, run_text  # noqa: PLC0415 - as said
    from castsim.reports.run_report import RunReport  # noqa: PLC0415 - as said

    rested_on = [f"options.{name}" for name in sorted(read)]
    report = replace(
        RunReport.of(result, files, rested_on, weights),
        findings=findings, show_synchronisation=options.show_sync, gains=lifted, further=further,
        list_facts=options.facts, command=options.typed, inputs=_input_words(options),
        changeable=_is_changeable(options),
    )  # fmt: skip
    document = run_document(report)
    is_read = launch_of(options) is None and (source is None or source.program is None)
    written += write_run_page(options, report, document, is_read=is_read)

    def text(width: int) -> RenderableType:
        shown = run_text(report, width, full=options.report == FULL)
        return stacked(shown, *timeline_text(options, result, timeline, written, width))

    if errors:
        document["errors"] = [error_entry(error) for error in errors]
    return CommandOutcome(document, text, code, delivered=lambda: _tell(errors))


_PROGRAM_OPTIONS = {
    "target": "--target", "entry": "--entry", "args": "--arg", "options": "--option",
    "toolchain": f"--{TOOLCHAIN}", "block": "--block", "sub": "--sub", "folders": "--include", "macros": "--define",
    "tensors": "--tensor", "index_space": "--index-space", "accumulators": "--accumulators", "tpcs": "--tpcs",
}  # fmt: skip
"""Options that name the program and its data, which `castsim advise` also takes."""


def _program_words(options: Namespace) -> tuple[str, ...]:
    """Return the arguments that name the program and its target, as typed."""
    words = [options.program] if options.execute is None else ["-e", options.execute]
    for name, option in _PROGRAM_OPTIONS.items():
        given = getattr(options, name, None)
        for value in given if isinstance(given, list) else [given]:
            words += [] if value is None else [option, str(value)]
    return tuple(words)


def _input_words(options: Namespace) -> tuple[str, ...]:
    """Return the arguments that name the inputs, as typed."""
    if options.timing_only:
        return ("--timing-only",)
    return tuple(word for text in options.inputs for word in ("--in", text))


def _is_changeable(options: Namespace) -> bool:
    """Return whether `castsim advise` accepts the program: a text file, and only options that it has."""
    given = (options.execute, options.opaque or None, options.declare, options.machine, options.backend, options.level)
    is_text = options.program.endswith((TILE_SUFFIX, ".tpc", ".c", *CPP_SUFFIXES))
    return is_text and options.program != "-" and not options.tile and given == (None,) * len(given)


def _errors(options: Namespace, result: Result) -> list[CastsimError | EngineError]:
    """Return the errors of a finished run: races, and outputs that are not computed."""
    errors: list[CastsimError | EngineError] = [refusal(result.races)] if result.races else []
    for name, partial in result.partial.items() if not options.partial else ():
        missing = int(np.count_nonzero(~partial.computed))
        message = f"output {name}: {missing} of {partial.computed.size} elements depend on opaque operations"
        errors.append(IllegalError(f"{message} and were not computed", legal=("--partial", "--timing-only")))
    return errors


def _tell(errors: Sequence[CastsimError | EngineError]) -> None:
    for error in errors:
        tell(f"error: {error.render()}")


def _simulate(
    options: Namespace, loaded: LoadedProgram, limits: tuple[str, ...], source: Source | None = None
) -> tuple[Result, tuple[LiftedLimit, ...], Timeline | None, tuple[Sensitivity, ...] | None]:
    """Run the program, and once more with each limit lifted; also return the data of views and the weights of facts."""
    inputs = assignments("--in", options.inputs)
    if source is not None and source.program is None and not options.timing_only:
        inputs = {**{name: _DRAWN for name, use in loaded.arguments.items() if use.needs_input}, **inputs}
    limit = most_cycles(options)
    with run_progress(options, loaded.tree) as progress:

        def simulated(program: LoadedProgram, observer: Listener | None, *, again: bool = False) -> Result:
            return run_loaded(
                program,
                inputs,
                engine=options.engine,
                timing_only=again or options.timing_only,
                max_cycles=limit,
                observer=observer,
                stage=progress.stage if progress else lambda _: None,
                stale_reads=options.stale_reads,
                races=IGNORE if again else options.races or _races(options, source),
                skip=not options.no_skip,
                limits=run_limits_of(options),
            )

        result = simulated(loaded, progress)
        if progress is not None:
            progress.stage("views")
        timeline = timeline_of(options, result, progress)
        weights = None if result.untimed else weighed(options, loaded.target, result)
        if not limits:
            return result, (), timeline, weights
        from castsim.running.lifted_limits import gains  # noqa: PLC0415 - few runs lift limits

        lifted = gains(
            loaded.target, limits, result.timing,
            lambda lift: simulated(_load(options, source, lift)[0], progress, again=True).timing,
            result.loaded.latencies(result.timing),
        )  # fmt: skip
    return result, lifted, timeline, weights


def _races(options: Namespace, source: Source | None) -> str:
    """Return the default treatment of races: a requested page is written first, to show them."""
    shown = options.html is not None or (source is not None and source.program is not None)
    return REPORT if shown else STOP


def _check_options(options: Namespace) -> None:
    if options.engine is not None and options.engine not in ENGINES:
        raise ReadError(f"engine '{options.engine}' is not available", legal=ENGINES)
    if options.no_skip and options.engine == "event":
        raise ReadError("--no-skip applies only to engine 'fast'; engine 'event' never skips")
    if options.timing_only and options.partial:
        raise ReadError("--timing-only computes no values, so --partial has nothing to write")
    if options.timing_only and options.out is not None:
        raise ReadError("--timing-only computes no values, so --out has nothing to write")
    assignments("--in", options.inputs)
    if options.max_cycles is not None:
        positive("--max-cycles", options.max_cycles)
    run_limits_of(options)


def _check_language(options: Namespace, loaded: LoadedProgram) -> None:
    """Reject options that do not apply to the program's language.

    Raises:
        ReadError: such an option was given.
    """
    if loaded.untimed:
        _check_untimed(options, loaded)
    if loaded.language == Language.TILES.value:
        if stale_mode(options.stale_reads) != "report":
            raise ReadError("--stale-reads applies only to assembly; tile programs have no registers")
        return
    names = ("sync", "show-sync", "emit-sync", "races", "unsafe-scratch", TOOLCHAIN, BACKEND)
    why = f"applies only to tile programs; {options.program} is assembly"
    refuse_given(options, names, why, usual=("insert", STOP, IGNORE))


def _check_untimed(options: Namespace, loaded: LoadedProgram) -> None:
    """Reject options about cycles for a program without a cycle model.

    Raises:
        ReadError: such an option was given.
    """
    names = ("timeline", "trace", "what-if", "report", "engine", "sync", "show-sync", "emit-sync")
    refuse_given(options, names, f"has nothing to show: {loaded.untimed}", usual=(RUN, FULL, "insert"))


def _lint(loaded: LoadedProgram) -> tuple[LintFinding, ...]:
    """Check the issue rules of an assembly program.

    Raises:
        ReadError: the program is not assembly.
    """
    findings = loaded.lint()
    if findings is None:
        raise ReadError("--lint applies only to assembly; tile programs have no issue rules")
    return findings


def _load(
    options: Namespace, source: Source | None = None, lift: Callable[[Target], Target] = lambda target: target
) -> tuple[LoadedProgram, set[str]]:
    """Read, walk and lower the program; also return the set that collects the target options that it reads.

    `source` is the program if it was read before; `lift` changes the target once its options are set.
    """
    path = Path("/dev/stdin" if options.program == "-" else options.program)
    scalars = scalars_of(options)
    changes = _target_options(options)
    read: set[str] = set()
    if options.tile:
        source = with_parameters(options.tile, read_source(path, lambda: False) if source is None else source)
    loaded = load(
        path if source is None else source,
        options.target,
        options.entry,
        scalars,
        prepare=lambda target: watched(lift(with_options(target, changes)), read),
        make_lowerer=lambda target: lowerer_of(target, unsafe_scratch=options.unsafe_scratch),
        sync=options.sync,
        declare=None if options.declare is None else Path(options.declare),
        machine=None if options.machine is None else machine_number(options.machine),
        opaque=opaque_cycles(options.opaque),
        limits=run_limits_of(options),
        level=level_of(options),
        launch=launch_of(options),
    )
    return loaded, read


def _target_options(options: Namespace) -> dict[str, str]:
    """Return the target options from all command-line options that set them.

    Raises:
        ReadError: an option was set twice, in different ways.
    """
    changes = assignments("--option", options.options)
    for name, value in ((TOOLCHAIN, options.toolchain), (BACKEND, options.backend)):
        if value is not None and changes.setdefault(name, value) != value:
            raise ReadError(f"--{name} {value} and --option {name}={changes[name]} contradict each other")
    return changes


def _write(result: Result, folder: Path | None, *, partial: bool) -> Mapping[str, Path]:
    """Write the outputs; for partly computed ones, on request, also a mask of the computed elements.

    For outputs that depend on unwritten memory, also write a mask of those elements.
    """
    if folder is None:
        return {}
    from castsim.files import file_names  # noqa: PLC0415 - only with --out
    from castsim.reports.run_report import mask_name, undefined_name  # noqa: PLC0415 - the same

    arrays = dict(result.outputs)
    for name, partial_output in result.partial.items() if partial else ():
        arrays[name] = np.where(
            partial_output.computed, partial_output.values, np.zeros((), partial_output.values.dtype)
        )
        arrays[mask_name(name)] = partial_output.computed
    arrays.update({undefined_name(name): marks for name, marks in result.undefined.items()})
    files = {name: folder / f"{plain}.npy" for name, plain in file_names(arrays).items()}
    for name, path in files.items():
        write_array(path, arrays[name])
    return files


# `--all-entries`: every function of a file by itself, and a table of what came of it.


def run_entries(options: Namespace, path: Path, run: Callable[[Namespace], Result]) -> CommandOutcome:
    """Run every function of a tile program that no other function calls; the exit code is 1 if any fails.

    Values for arguments that a function lacks are ignored. Nothing is written to files.

    Raises:
        ReadError: the file is not a tile program or cannot be read, or an option applies to a single function.
    """
    from castsim.isa.pto.pto_parser import parse  # noqa: PLC0415 - assembly needs none

    names = ("entry", "out", "timeline", "trace", "html", "what-if", "show-sync")
    refuse_given(options, names, "applies to one function; --all-entries runs several")
    if path.suffix != TILE_SUFFIX:
        raise ReadError(f"'{path}' is not a tile program", legal=(f"a {TILE_SUFFIX} file",))
    source = read_source(path, lambda: False)
    program = parse(source.text, source.file, go_past_refused=True)
    outcomes = list(_entry_outcomes(options, program, run))
    if not outcomes:
        raise ReadError(f"{path}: no function to run")
    failed = sum(outcome["error"] is not None for outcome in outcomes)
    document = {"program": source.file, "entries": outcomes, "failed": failed}
    return CommandOutcome(document, lambda _: _entries_text(outcomes, failed), code=1 if failed else 0)


def _entry_outcomes(
    options: Namespace, program: pto.Program, run: Callable[[Namespace], Result]
) -> Iterator[dict[str, str | int | None]]:
    """Yield a function, and its cycles (None if not modelled) or the reason why it cannot be run."""
    refused = {refused_function.name: refused_function.error for refused_function in program.refused}
    functions = {function.name: function for function in entries(program)}
    for name in (*functions, *refused):
        if name in refused:
            yield {"entry": name, "cycles": None, "error": _first_line(refused[name])}
            continue
        arguments = {argument.name for argument in functions[name].arguments}
        changed = Namespace(**vars(options))
        changed.entry = name
        for kind in ("args", "inputs"):
            given = [text for text in getattr(options, kind) if text.partition("=")[0] in arguments]
            setattr(changed, kind, given)
        try:
            result = run(changed)
            yield {"entry": name, "cycles": None if result.untimed else result.cycles, "error": None}
        except (CastsimError, EngineError) as error:
            yield {"entry": name, "cycles": None, "error": _first_line(error)}


def _first_line(error: Exception) -> str:
    """Return an error without its source lines."""
    return str(error).partition("\n")[0]


def _entries_text(outcomes: Sequence[Mapping[str, str | int | None]], failed: int) -> RenderableType:
    width = max(len(str(outcome["entry"])) for outcome in outcomes) + 1
    rows = []
    for outcome in outcomes:
        shown = (
            "no cycles: not modelled for vector instructions"
            if outcome["cycles"] is None
            else f"{outcome['cycles']} cycles"
        )
        shown = shown if outcome["error"] is None else f"failed: {outcome['error']}"
        rows.append(f"@{outcome['entry']}".ljust(width) + f"  {shown}")
    return plain("\n".join([*rows, "", f"{len(outcomes)} functions, {failed} failed"]), no_wrap=False)
